/* The checkpoint hook: whom it calls, and what it makes of the answers. */
#include "controller/operator/checkpoint_hook.h"

#include "tests/controller/script_transport.h"

#include <arpa/inet.h>
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct script *script;
static struct checkpoint_hooks *hooks;
static json_t *body;
static int dones;
static char done_key[64], done_message[256];
static enum hook_outcome done_outcome;

static void on_done(void *context, const char *key, enum hook_outcome outcome,
                    const char *message)
{
    (void)context;
    dones++;
    done_outcome = outcome;
    snprintf(done_key, sizeof done_key, "%s", key);
    snprintf(done_message, sizeof done_message, "%s", message ? message : "");
}

static void setup(void)
{
    script = script_new();
    hooks = checkpoint_hooks_new(script_transport(script), false, on_done, NULL);
    body = json_pack("{s:i}", "revision", 3);
    dones = 0;
}

static void teardown(void)
{
    checkpoint_hooks_free(hooks);
    script_free(script);
    json_decref(body);
}

static void start_at(const char *key, const char *address, int64_t timeout_ms,
                     int64_t now_ms)
{
    struct checkpoint_hook_request request = { .address = address,
                                               .port = 8476,
                                               .path = "/checkpoint",
                                               .body = body,
                                               .timeout_ms = timeout_ms };
    checkpoint_hooks_start(hooks, key, &request, now_ms);
    checkpoint_hooks_step(hooks, now_ms);
}

static struct script_request *start(void)
{
    start_at("ns/job", "10.1.0.7", 60000, 1000);
    return script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint");
}

START_TEST(program_that_answers_200_has_acknowledged)
{
    struct script_request *request = start();
    ck_assert_str_eq(request->body, "{\"revision\":3}");
    ck_assert_str_eq(request->content_type, "application/json");
    ck_assert_int_eq(request->timeout_ms, 60000);
    ck_assert(request->new_connection);
    script_reply(request, 200, -1, "");
    ck_assert_int_eq(dones, 1);
    ck_assert_str_eq(done_key, "ns/job");
    ck_assert_int_eq(done_outcome, HOOK_ACKNOWLEDGED);
    ck_assert_uint_eq(checkpoint_hooks_count(hooks), 0);
}
END_TEST

START_TEST(program_that_answers_202_is_asked_until_it_is_done)
{
    script_reply(start(), 202, 3, "");
    ck_assert_int_eq(dones, 0);
    ck_assert_int_le(checkpoint_hooks_next_ms(hooks),
                     1000); /* the pause begins with a step */
    checkpoint_hooks_step(hooks, 2000);
    ck_assert_int_eq(checkpoint_hooks_next_ms(hooks), 5000); /* 2 s + Retry-After: 3 */
    checkpoint_hooks_step(hooks, 4999);
    script_expect_nothing(script);
    checkpoint_hooks_step(hooks, 5000);
    struct script_request *get =
        script_expect(script, "GET", "http://10.1.0.7:8476/checkpoint");
    ck_assert_ptr_null(get->body);
    script_reply(get, 202, -1, "");
    checkpoint_hooks_step(hooks, 6000);
    checkpoint_hooks_step(hooks, 7000); /* a second later */
    script_reply(script_expect(script, "GET", "http://10.1.0.7:8476/checkpoint"), 204, -1,
                 "");
    ck_assert_int_eq(done_outcome, HOOK_ACKNOWLEDGED);
}
END_TEST

static const struct {
    int status;
    bool is_refused; /* else it is asked again */
} answers[] = {
    { 0, false },   { 408, false }, { 425, false }, { 429, false }, { 500, false },
    { 503, false }, { 301, true },  { 400, true },  { 401, true },  { 404, true },
};

START_TEST(answers_that_may_change_are_asked_for_again)
{
    struct script_request *request = start();
    if (answers[_i].status)
        script_reply(request, answers[_i].status, -1, "");
    else
        script_fail(request, true);
    ck_assert_int_eq(dones, answers[_i].is_refused);
    if (answers[_i].is_refused) {
        ck_assert_int_eq(done_outcome, HOOK_REFUSED);
        ck_assert_ptr_nonnull(strstr(done_message, "answered"));
        return;
    }
    checkpoint_hooks_step(hooks, 1000);
    ck_assert_int_eq(checkpoint_hooks_next_ms(hooks), 2000);
    checkpoint_hooks_step(hooks, 2000);
    script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint");
}
END_TEST

START_TEST(pauses_between_tries_double_up_to_five_seconds)
{
    static const int64_t pauses_ms[] = { 1000, 2000, 4000, 5000, 5000 };
    struct script_request *request = start();
    int64_t now_ms = 1000;
    for (size_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        script_fail(request, false);
        checkpoint_hooks_step(hooks, now_ms);
        now_ms += pauses_ms[i];
        ck_assert_int_eq(checkpoint_hooks_next_ms(hooks), now_ms);
        checkpoint_hooks_step(hooks, now_ms);
        request = script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint");
        ck_assert_int_eq(request->timeout_ms, 61000 - now_ms);
    }
}
END_TEST

START_TEST(program_that_nobody_hears_refuses)
{
    script_refuse(start());
    checkpoint_hooks_step(hooks, 1000);
    checkpoint_hooks_step(hooks, 2000);
    script_refuse(script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint"));
    ck_assert_int_eq(dones, 0);
    checkpoint_hooks_step(hooks, 2000);
    checkpoint_hooks_step(hooks, 4000);
    script_refuse(script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint"));
    ck_assert_int_eq(done_outcome, HOOK_REFUSED);
    ck_assert_str_eq(done_message, "nobody listens at its port");
}
END_TEST

START_TEST(refusals_between_answers_do_not_add_up)
{
    struct script_request *request = start();
    int64_t now_ms = 1000;
    for (int i = 0; i < 6; i++) {
        if (i % 2)
            script_reply(request, 503, -1, "");
        else
            script_refuse(request);
        checkpoint_hooks_step(hooks, now_ms);
        now_ms += CHECKPOINT_HOOK_MAX_RETRY_MS;
        checkpoint_hooks_step(hooks, now_ms);
        request = script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint");
    }
    ck_assert_int_eq(dones, 0);
}
END_TEST

START_TEST(answer_that_is_too_long_is_a_refusal)
{
    script_fail_too_long(start());
    ck_assert_int_eq(done_outcome, HOOK_REFUSED);
}
END_TEST

START_TEST(hook_is_given_up_at_its_deadline)
{
    struct script_request *request = start();
    ck_assert_int_eq(checkpoint_hooks_next_ms(hooks), 61000);
    checkpoint_hooks_step(hooks, 60999);
    ck_assert(request->is_open);
    checkpoint_hooks_step(hooks, 61000);
    ck_assert(!request->is_open);
    ck_assert_int_eq(dones, 0);
    ck_assert_uint_eq(checkpoint_hooks_count(hooks), 0);
    ck_assert_int_eq(checkpoint_hooks_next_ms(hooks), INT64_MAX);
}
END_TEST

START_TEST(hook_that_is_not_wanted_any_more_ends)
{
    struct script_request *request = start();
    checkpoint_hooks_cancel(hooks, "ns/other");
    ck_assert(request->is_open);
    checkpoint_hooks_cancel(hooks, "ns/job");
    ck_assert(!request->is_open);
    ck_assert_uint_eq(checkpoint_hooks_count(hooks), 0);
}
END_TEST

START_TEST(new_hook_of_a_job_ends_the_old_one)
{
    struct script_request *request = start();
    start_at("ns/job", "10.1.0.8", 60000, 2000);
    ck_assert(!request->is_open);
    script_expect(script, "POST", "http://10.1.0.8:8476/checkpoint");
    ck_assert_uint_eq(checkpoint_hooks_count(hooks), 1);
}
END_TEST

START_TEST(one_namespace_cannot_take_all_hooks)
{
    for (int i = 0; i < CHECKPOINT_HOOK_MAX_OF_NAMESPACE + 1; i++) {
        auto_free char *key = xasprintf("greedy/job-%d", i);
        start_at(key, "10.1.0.7", 60000, 1000);
    }
    ck_assert_uint_eq(script_open_count(script), CHECKPOINT_HOOK_MAX_OF_NAMESPACE);
    start_at("greed/job", "10.1.0.8", 60000, 1000); /* another, of a similar name */
    ck_assert_uint_eq(script_open_count(script), CHECKPOINT_HOOK_MAX_OF_NAMESPACE + 1);
    /* One ends, and the one that waited has its turn. */
    script_reply(script_expect(script, "POST", "http://10.1.0.7:8476/checkpoint"), 200,
                 -1, "");
    ck_assert_int_le(checkpoint_hooks_next_ms(hooks), 1000);
    checkpoint_hooks_step(hooks, 1000);
    ck_assert_uint_eq(script_open_count(script), CHECKPOINT_HOOK_MAX_OF_NAMESPACE + 1);
}
END_TEST

START_TEST(addresses_of_version_6_stand_in_brackets)
{
    start_at("ns/job", "fd00::7", 60000, 1000);
    script_expect(script, "POST", "http://[fd00::7]:8476/checkpoint");
}
END_TEST

static const struct {
    const char *address;
    bool is_allowed, is_allowed_with_loopback;
} addresses[] = {
    { "10.1.0.7", true, true },
    { "192.168.3.4", true, true },
    { "100.64.0.1", true, true },
    { "fd00::7", true, true },
    { "2001:db8::1", true, true },
    { "127.0.0.1", false, true },
    { "127.9.8.7", false, true },
    { "::1", false, true },
    { "0.0.0.0", false, false },
    { "0.1.2.3", false, false },
    { "169.254.169.254", false, false }, /* what clouds tell their machines */
    { "224.0.0.1", false, false },
    { "255.255.255.255", false, false },
    { "::", false, false },
    { "::127.0.0.1", false, false },
    { "::ffff:127.0.0.1", false, false },
    { "::ffff:10.1.0.7", false, false },
    { "64:ff9b::7f00:1", false, false },
    { "2002:7f00:1::", false, false },
    { "fe80::1", false, false },
    { "ff02::1", false, false },
    { "", false, false },
    { "localhost", false, false },
    { "10.1.0.7:80", false, false },
    { "10.1.0.7@evil", false, false },
    { "0x7f.1", false, false },
    { "2130706433", false, false },
    { "fd00::7%eth0", false, false },
};

START_TEST(only_addresses_of_pods_may_be_called)
{
    const char *address = addresses[_i].address;
    ck_assert_int_eq(checkpoint_hook_address_is_allowed(address, false),
                     addresses[_i].is_allowed);
    ck_assert_int_eq(checkpoint_hook_address_is_allowed(address, true),
                     addresses[_i].is_allowed_with_loopback);
    start_at("ns/job", address, 60000, 1000);
    ck_assert_uint_eq(script_open_count(script), addresses[_i].is_allowed);
    ck_assert_int_eq(dones, !addresses[_i].is_allowed);
}
END_TEST

/* ---- the example that people start from ---- */

static const struct http_endpoint *no_endpoint(void *context)
{
    (void)context;
    static const struct http_endpoint endpoint = { 0 };
    return &endpoint;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(socket_fd, (struct sockaddr *)&address, length), 0);
    getsockname(socket_fd, (struct sockaddr *)&address, &length);
    close(socket_fd);
    return ntohs(address.sin_port);
}

/* What it prints can be read from the result. */
static FILE *start_example(int port, pid_t *ret_child)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    auto_free char *port_text = xasprintf("%d", port);
    *ret_child = fork();
    if (!*ret_child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execlp("python3", "python3", "-B", "docs/examples/checkpoint_hook.py", "--host",
               "127.0.0.1", "--port", port_text, "--checkpoint-seconds", "0.3", NULL);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

START_TEST(example_server_speaks_the_protocol)
{
    int port = free_port();
    pid_t child;
    FILE *program = start_example(port, &child);
    char line[80];
    ck_assert_ptr_nonnull(fgets(line, sizeof line, program));
    ck_assert_str_eq(line, "listening\n");

    struct het_error err;
    struct transport *transport = http_transport_new(no_endpoint, NULL, &err);
    struct checkpoint_hooks *real = checkpoint_hooks_new(transport, true, on_done, NULL);
    json_auto_t *asked = json_pack("{s:s}", "requestedAt", "2026-01-01T00:00:00.000000Z");
    struct checkpoint_hook_request request = { .address = "127.0.0.1",
                                               .port = port,
                                               .path = "/checkpoint",
                                               .body = asked,
                                               .timeout_ms = 30000 };
    /* Twice: the second time by somebody who does not know that it was done. */
    for (int time = 1; time <= 2; time++) {
        checkpoint_hooks_start(real, "ns/job", &request, clock_ms());
        while (dones < time && checkpoint_hooks_count(real)) {
            checkpoint_hooks_step(real, clock_ms());
            transport_poll(transport, NULL, 0, 100);
        }
        ck_assert_int_eq(dones, time);
        ck_assert_int_eq(done_outcome, HOOK_ACKNOWLEDGED);
    }
    ck_assert_ptr_nonnull(fgets(line, sizeof line, program));
    ck_assert_str_eq(line, "checkpoint written\n");
    checkpoint_hooks_free(real);
    transport_free(transport);
    fclose(program);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

Suite *test_checkpoint_hook_suite(void);
Suite *test_checkpoint_hook_suite(void)
{
    Suite *suite = suite_create("checkpoint_hook");
    TCase *tcase = tcase_create("hook");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, program_that_answers_200_has_acknowledged);
    tcase_add_test(tcase, program_that_answers_202_is_asked_until_it_is_done);
    tcase_add_loop_test(tcase, answers_that_may_change_are_asked_for_again, 0,
                        sizeof answers / sizeof *answers);
    tcase_add_test(tcase, pauses_between_tries_double_up_to_five_seconds);
    tcase_add_test(tcase, program_that_nobody_hears_refuses);
    tcase_add_test(tcase, refusals_between_answers_do_not_add_up);
    tcase_add_test(tcase, answer_that_is_too_long_is_a_refusal);
    tcase_add_test(tcase, hook_is_given_up_at_its_deadline);
    tcase_add_test(tcase, hook_that_is_not_wanted_any_more_ends);
    tcase_add_test(tcase, new_hook_of_a_job_ends_the_old_one);
    tcase_add_test(tcase, one_namespace_cannot_take_all_hooks);
    tcase_add_test(tcase, addresses_of_version_6_stand_in_brackets);
    tcase_add_test(tcase, example_server_speaks_the_protocol);
    tcase_add_loop_test(tcase, only_addresses_of_pods_may_be_called, 0,
                        sizeof addresses / sizeof *addresses);
    suite_add_tcase(suite, tcase);
    return suite;
}
