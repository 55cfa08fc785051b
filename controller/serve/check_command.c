#include "controller/serve/check_command.h"

#include "controller/base/object.h"
#include "controller/kube/auth.h"
#include "controller/kube/http.h"
#include "planner/modules.h"

#include <curl/curl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTEMPT_MS 5000L

static const char help[] =
    "Usage: heterotrain-controller check URL [--timeout SECONDS] [--dry-run FILE]\n"
    "\n"
    "Asks the URL (http) once a second until the answer has status 200, and prints it.\n"
    "\n"
    "Options:\n"
    "  --dry-run FILE         then ask the API server (the pod's own, or KUBECONFIG) whether\n"
    "                         it would create the HeteroTrainingJob of FILE (JSON, with its\n"
    "                         namespace); nothing is written\n"
    "  --timeout SECONDS      give up after so long, from 0 to 3600 (default 30)\n"
    "  --help                 this text\n"
    "\n"
    "Exit status: 0 the answer was 200; 1 it was not in time; 2 bad option.\n";

static const struct option long_options[] = {
    { "timeout", required_argument, NULL, 1 },
    { "help", no_argument, NULL, 2 },
    { "dry-run", required_argument, NULL, 3 },
    { 0 },
};

struct options {
    const char *url;
    const char *dry_run; /* file of a job; NULL: none */
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
        case 3:
            options->dry_run = optarg;
            break;
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

/* Waits a second; false, if it is too late for another try. */
static bool may_try_again(time_t end)
{
    return seconds() < end && !nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
}

static bool is_good_in_time(CURL *curl, time_t end, struct answer *answer,
                            char ret_why[256])
{
    while (!is_good(curl, answer, ret_why)) {
        if (!may_try_again(end))
            return false;
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

/* ---- the job ---- */

struct verdict {
    bool is_done;
    bool is_accepted;
    char why[256];
};

static void on_verdict(void *context, const struct http_reply *reply)
{
    struct verdict *verdict = context;
    json_auto_t *status = json_loadb(reply->body, reply->body_length, 0, NULL);
    const char *message = object_text(status, "message");
    verdict->is_done = true;
    verdict->is_accepted = reply->status == 201;
    snprintf(verdict->why, sizeof verdict->why, "status %d: %.200s", reply->status,
             reply->status ? message : reply->error.message);
}

/* Asks until the job is accepted or `end` has come: a webhook may still be starting. */
static bool is_job_accepted(struct transport *transport, const char *path,
                            const char *body, time_t end, char ret_why[256])
{
    struct http_request request = {
        .method = "POST",
        .path = path,
        .content_type = "application/json",
        .body = body,
        .body_length = strlen(body),
        .timeout_ms = ATTEMPT_MS,
    };
    struct verdict verdict;
    do {
        verdict = (struct verdict){ 0 };
        transport_start(
            transport, &request,
            &(struct http_handler){ .on_done = on_verdict, .context = &verdict });
        while (!verdict.is_done)
            transport_poll(transport, NULL, 0, ATTEMPT_MS);
    } while (!verdict.is_accepted && may_try_again(end));
    memcpy(ret_why, verdict.why, sizeof verdict.why);
    return verdict.is_accepted;
}

/* Path to create the job of a file at, and its text. */
static int read_job(const char *file, char **ret_path, char **ret_body,
                    struct het_error *err)
{
    json_error_t error;
    json_auto_t *job = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
    if (!job)
        return het_fail(err, HET_BAD_INPUT, "%s: line %d: %s", file, error.line,
                        error.text);
    const char *ns = object_text(job, "metadata.namespace");
    if (strcmp(object_text(job, "apiVersion"), "heterotrain.io/v1alpha1") != 0 ||
        strcmp(object_text(job, "kind"), "HeteroTrainingJob") != 0 || !*ns)
        return het_fail(err, HET_BAD_INPUT,
                        "%s: must be a HeteroTrainingJob of heterotrain.io/v1alpha1 "
                        "with metadata.namespace",
                        file);
    *ret_path = xasprintf("/apis/heterotrain.io/v1alpha1/namespaces/%s/"
                          "heterotrainingjobs?dryRun=All&fieldValidation=Strict",
                          ns);
    *ret_body = json_dumps(job, JSON_COMPACT);
    return 0;
}

/* The exit status of --dry-run. */
static int check_job(const char *file, time_t end, FILE *out, FILE *err_out)
{
    auto_free char *path = NULL, *body = NULL;
    struct auth *auth = NULL;
    struct transport *transport = NULL;
    struct het_error err;
    char why[256];
    int status = 2;
    struct auth_config config = {
        .kubeconfig = getenv("KUBECONFIG"),
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .home = getenv("HOME"),
    };
    if (read_job(file, &path, &body, &err) < 0 || auth_load(&config, &auth, &err) < 0 ||
        !(transport = http_transport_new(auth_endpoint, auth, &err))) {
        fprintf(err_out, "heterotrain-controller check: %s\n", err.message);
    } else if (is_job_accepted(transport, path, body, end, why)) {
        fprintf(out, "the API server would create the job of %s\n", file);
        status = 0;
    } else {
        fprintf(err_out, "heterotrain-controller check: %s: %s\n", file, why);
        status = 1;
    }
    transport_free(transport);
    auth_free(auth);
    return status;
}

int check_command_main(int argc, char **argv, FILE *out, FILE *err_out)
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
    time_t end = seconds() + options.timeout_s;
    CURL *curl = prepare(options.url, &answer);
    bool good = curl && is_good_in_time(curl, end, &answer, why);
    if (good)
        fprintf(out, "%s%s", answer.text,
                answer.length && answer.text[answer.length - 1] == '\n' ? "" : "\n");
    else
        fprintf(err_out, "heterotrain-controller check: %s: %s\n", options.url,
                curl ? why : "libcurl cannot be set up");
    curl_easy_cleanup(curl);
    if (!good)
        return 1;
    return options.dry_run ? check_job(options.dry_run, end, out, err_out) : 0;
}
