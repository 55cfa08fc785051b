#include "controller/health_check.h"

#include "planner/hetplan.h"

#include <curl/curl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTEMPT_MS 5000L

static const char help[] =
    "Usage: heterotrain-controller check URL [--timeout SECONDS]\n"
    "\n"
    "Asks the URL (http) once a second until the answer has status 200, and prints it.\n"
    "\n"
    "Options:\n"
    "  --timeout SECONDS      give up after so long, from 0 to 3600 (default 30)\n"
    "  --help                 this text\n"
    "\n"
    "Exit status: 0 the answer was 200; 1 it was not in time; 2 bad option.\n";

static const struct option long_options[] = {
    { "timeout", required_argument, NULL, 1 },
    { "help", no_argument, NULL, 2 },
    { 0 },
};

struct options {
    const char *url;
    long timeout_s;
};

/* 0; 1 for --help; -1. */
static int read_options(int argc, char **argv, struct options *options,
                        struct het_error *err)
{
    char *end;
    optind = 0; /* GNU: begin anew */
    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        switch (option) {
        case 1:
            options->timeout_s = strtol(optarg, &end, 10);
            if (!*optarg || *end || options->timeout_s < 0 || options->timeout_s > 3600)
                return het_fail(err, HET_BAD_INPUT,
                                "--timeout %s: must be a number from 0 to 3600", optarg);
            break;
        case 2:
            return 1;
        default:
            return het_fail(err, HET_BAD_INPUT,
                            "see heterotrain-controller check --help");
        }
    }
    if (optind != argc - 1)
        return het_fail(err, HET_BAD_INPUT, "check: needs one URL");
    options->url = argv[optind];
    return 0;
}

struct answer {
    char text[HEALTH_CHECK_BYTES + 1];
    size_t length;
};

/* More than fits is not an answer of ours: ends the transfer. */
static size_t on_text(char *bytes, size_t size, size_t count, void *context)
{
    struct answer *answer = context;
    (void)size; /* 1 */
    if (count > HEALTH_CHECK_BYTES - answer->length)
        return 0;
    memcpy(answer->text + answer->length, bytes, count);
    answer->length += count;
    answer->text[answer->length] = '\0';
    return count;
}

/* One question; `ret_why` of a failure is one line. */
static bool is_good(CURL *curl, struct answer *answer, char ret_why[256])
{
    long status = 0;
    *answer = (struct answer){ 0 };
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        snprintf(ret_why, 256, "%s", curl_easy_strerror(code));
    else
        snprintf(ret_why, 256, "status %ld: %.*s", status,
                 (int)strcspn(answer->text, "\r\n"), answer->text);
    return code == CURLE_OK && status == 200;
}

static time_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static bool is_good_in_time(CURL *curl, long timeout_s, struct answer *answer,
                            char ret_why[256])
{
    time_t end = seconds() + timeout_s;
    while (!is_good(curl, answer, ret_why)) {
        if (seconds() >= end)
            return false;
        nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    }
    return true;
}

/* No proxy of the environment, no redirect: what is asked is what answers. */
static CURL *prepare(const char *url, struct answer *answer)
{
    CURL *curl = curl_easy_init();
    if (!curl)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ATTEMPT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_text);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    return curl;
}

int health_check_main(int argc, char **argv, FILE *out, FILE *err_out)
{
    struct options options = { .timeout_s = HEALTH_CHECK_TIMEOUT_S };
    struct het_error err;
    struct answer answer;
    char why[256];
    switch (read_options(argc, argv, &options, &err)) {
    case 0:
        break;
    case 1:
        fputs(help, out);
        return 0;
    default:
        fprintf(err_out, "heterotrain-controller: %s\n", err.message);
        return 2;
    }
    CURL *curl = prepare(options.url, &answer);
    bool good = curl && is_good_in_time(curl, options.timeout_s, &answer, why);
    if (good)
        fprintf(out, "%s%s", answer.text,
                answer.length && answer.text[answer.length - 1] == '\n' ? "" : "\n");
    else
        fprintf(err_out, "heterotrain-controller check: %s: %s\n", options.url,
                curl ? why : "libcurl cannot be set up");
    curl_easy_cleanup(curl);
    return good ? 0 : 1;
}
