#include "controller/serve/check_command.h"

#include "planner/modules.h"
#include "tests/controller/tls_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A server in a child process that gives each of `replies` once, in their order, and is
 * then gone. */
struct server {
    pid_t pid;
    char url[64];
};

static void serve(int listener, const char *const *replies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char request[1024];
        int peer = accept(listener, NULL, NULL);
        if (read(peer, request, sizeof request) < 0 ||
            write(peer, replies[i], strlen(replies[i])) < 0)
            _exit(1);
        close(peer);
    }
    _exit(0);
}

static struct server start(const char *const *replies, size_t count)
{
    struct server server;
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    getsockname(listener, (struct sockaddr *)&address, &length);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/readyz",
             ntohs(address.sin_port));
    server.pid = fork();
    if (server.pid == 0)
        serve(listener, replies, count);
    close(listener);
    return server;
}

static void finish(struct server *server)
{
    int status;
    ck_assert_int_eq(waitpid(server->pid, &status, 0), server->pid);
    ck_assert_int_eq(status, 0);
}

#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nready"
#define LATE "HTTP/1.1 503 No\r\nContent-Length: 9\r\nConnection: close\r\n\r\nnot yet\nx"
#define AWAY                                                                             \
    "HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* What `check ARGUMENTS` says, without and with errors. */
struct said {
    int status;
    char out[8192], err[8192];
};

static struct said check_with(int count, char **arguments)
{
    struct said said = { 0 };
    FILE *out = fmemopen(said.out, sizeof said.out, "w");
    FILE *err = fmemopen(said.err, sizeof said.err, "w");
    said.status = check_command_main(count, arguments, out, err);
    fclose(out);
    fclose(err);
    return said;
}

static struct said check(char *a, char *b, char *c)
{
    return check_with(a ? b ? c ? 4 : 3 : 2 : 1, (char *[]){ "check", a, b, c, NULL });
}

/* A file that is gone when the test is over. */
struct file {
    char path[32];
};

static struct file file_with(const char *text)
{
    struct file file = { "/tmp/check-XXXXXX" };
    int fd = mkstemp(file.path);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return file;
}

/* `check URL --dry-run JOB` of somebody whom the API server at `port` knows. */
static struct said check_job(const char *job, int port, const char *ca)
{
    struct server ready = start((const char *[]){ OK }, 1);
    struct file file = file_with(job), authority = file_with(ca);
    auto_free char *kubeconfig = xasprintf(
        "{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:%d', "
        "certificate-authority: %s}}], users: [{name: a, user: {token: t}}]}",
        port, authority.path);
    struct file config = file_with(kubeconfig);
    setenv("KUBECONFIG", config.path, 1);
    struct said said = check_with(6, (char *[]){ "check", ready.url, "--dry-run",
                                                 file.path, "--timeout", "0", NULL });
    unlink(file.path);
    unlink(authority.path);
    unlink(config.path);
    finish(&ready);
    return said;
}

START_TEST(answer_of_200_is_printed)
{
    struct server server = start((const char *[]){ OK }, 1);
    struct said said = check(server.url, NULL, NULL);
    ck_assert_str_eq(said.out, "ready\n");
    ck_assert_str_eq(said.err, "");
    ck_assert_int_eq(said.status, 0);
    finish(&server);
}
END_TEST

START_TEST(who_is_not_ready_is_asked_again)
{
    struct server server = start((const char *[]){ LATE, OK }, 2);
    ck_assert_int_eq(check("--timeout", "20", server.url).status, 0);
    finish(&server);
}
END_TEST

START_TEST(who_does_not_get_ready_is_told)
{
    struct server server = start((const char *[]){ LATE }, 1);
    struct said said = check("--timeout", "0", server.url);
    ck_assert_int_eq(said.status, 1);
    ck_assert_str_eq(said.out, "");
    ck_assert_ptr_nonnull(strstr(said.err, "/readyz: status 503: not yet\n"));
    finish(&server);
    said = check("--timeout", "0", server.url); /* nobody listens */
    ck_assert_int_eq(said.status, 1);
    ck_assert_ptr_nonnull(strstr(said.err, "Couldn't connect"));
}
END_TEST

START_TEST(redirects_are_not_followed)
{
    struct server server = start((const char *[]){ AWAY }, 1);
    struct said said = check("--timeout", "0", server.url);
    ck_assert_int_eq(said.status, 1);
    ck_assert_ptr_nonnull(strstr(said.err, "status 302"));
    finish(&server);
}
END_TEST

START_TEST(answer_without_end_is_none)
{
    char *reply = malloc(20000);
    int length = sprintf(reply, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    memset(reply + length, 'x', 10000);
    reply[length + 10000] = '\0';
    struct server server = start((const char *[]){ reply }, 1);
    ck_assert_int_eq(check("--timeout", "0", server.url).status, 1);
    waitpid(server.pid, NULL, 0); /* it may not have been listened to until its end */
    free(reply);
}
END_TEST

START_TEST(only_http_is_asked)
{
    struct said said = check("--timeout", "0", "file:///etc/passwd");
    ck_assert_int_eq(said.status, 1);
    ck_assert_str_eq(said.out, "");
}
END_TEST

#define JOB                                                                              \
    "{\"apiVersion\": \"heterotrain.io/v1alpha1\", \"kind\": \"HeteroTrainingJob\", "    \
    "\"metadata\": {\"name\": \"j\", \"namespace\": \"team-a\"}}"

/* Whatever is not 201 Created. That one is accepted is seen where there is an API server:
 * tests/e2e/chart, `helm test`. */
START_TEST(job_that_is_refused_is_told_why)
{
    struct tls_server *api =
        tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    struct said said = check_job(JOB, tls_server_port(api), tls_server_ca(api));
    ck_assert_int_eq(said.status, 1);
    ck_assert_ptr_nonnull(strstr(said.out, "ready"));
    ck_assert_ptr_nonnull(strstr(said.err, ": status 200: "));
    ck_assert_int_eq(tls_server_requests(api), 1);
    tls_server_free(api);
}
END_TEST

START_TEST(file_that_is_no_job_is_refused)
{
    struct said said = check_job("{\"kind\": \"Pod\"}", 9, "");
    ck_assert_int_eq(said.status, 2);
    ck_assert_ptr_nonnull(strstr(said.err, "must be a HeteroTrainingJob"));
    ck_assert_ptr_nonnull(strstr(check_job("{", 9, "").err, "line 1"));
}
END_TEST

START_TEST(bad_arguments_are_named)
{
    ck_assert_int_eq(check(NULL, NULL, NULL).status, 2);
    ck_assert_int_eq(check("http://a", "http://b", NULL).status, 2);
    struct said said = check("--timeout", "soon", "http://a");
    ck_assert_int_eq(said.status, 2);
    ck_assert_ptr_nonnull(strstr(said.err, "--timeout soon"));
    said = check("--help", NULL, NULL);
    ck_assert_int_eq(said.status, 0);
    ck_assert_ptr_nonnull(strstr(said.out, "Usage: heterotrain-controller check URL"));
}
END_TEST

Suite *test_check_command_suite(void)
{
    Suite *suite = suite_create("check_command");
    TCase *tests = tcase_create("health_check");
    tcase_add_test(tests, answer_of_200_is_printed);
    tcase_add_test(tests, who_is_not_ready_is_asked_again);
    tcase_add_test(tests, who_does_not_get_ready_is_told);
    tcase_add_test(tests, redirects_are_not_followed);
    tcase_add_test(tests, answer_without_end_is_none);
    tcase_add_test(tests, only_http_is_asked);
    tcase_add_test(tests, job_that_is_refused_is_told_why);
    tcase_add_test(tests, file_that_is_no_job_is_refused);
    tcase_add_test(tests, bad_arguments_are_named);
    suite_add_tcase(suite, tests);
    return suite;
}
