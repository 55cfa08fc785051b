/* script_transport.h - a transport whose server is the test: requests are recorded, and
 * the test answers them one by one, at once or in pieces. */
#ifndef TESTS_SCRIPT_TRANSPORT_H
#define TESTS_SCRIPT_TRANSPORT_H

#include "controller/kube/http.h"

struct script;

/* A request as it was started. Lives as long as the script. */
struct script_request {
    struct script *script;
    uint64_t id;
    char *method, *path, *content_type, *body, *user_agent;
    int64_t timeout_ms;
    bool new_connection, is_stream;
    bool is_open;     /* neither answered nor cancelled */
    bool is_expected; /* handed out by script_expect */
    struct http_handler handler;
};

struct script *script_new(void);
void script_free(struct script *script);
struct transport *script_transport(struct script *script);

/* The oldest request not handed out yet; fails the test unless it is `method` of a path
 * that matches `pattern` (fnmatch; "[" and "?" stand for themselves). */
struct script_request *script_expect(struct script *script, const char *method,
                                     const char *pattern);
/* Fails the test if a request was started that was not expected. */
void script_expect_nothing(struct script *script);
/* Requests that are open now. */
size_t script_open_count(const struct script *script);

/* Answers, with callbacks before they return. `retry_after_s` < 0: no such header. */
void script_reply(struct script_request *request, int status, int retry_after_s,
                  const char *body);
/* No reply: could not connect, or the connection broke. */
void script_fail(struct script_request *request, bool maybe_sent);
/* Nobody listens. */
void script_refuse(struct script_request *request);
void script_fail_too_long(struct script_request *request);
/* A piece of a stream; its proper end. */
void script_send(struct script_request *request, const char *bytes, size_t length);
void script_send_text(struct script_request *request, const char *text);
void script_end(struct script_request *request);

#endif
