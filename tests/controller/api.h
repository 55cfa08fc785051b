/* api.h - a client of a transport that waits for each answer, for tests. */
#ifndef TESTS_CONTROLLER_API_H
#define TESTS_CONTROLLER_API_H

#include "controller/kube/http.h"
#include "tests/controller/quoted.h"

#include <jansson.h>

struct api_reply {
    bool done;
    int status;
    char *body;
    json_t *json; /* NULL if the body is not JSON */
    int64_t retry_after_ms;
    bool maybe_sent;
};

/* `body` (may be NULL) is taken. Valid until api_reply_fini. */
struct api_reply api_call(struct transport *transport, const char *method,
                          const char *content_type, json_t *body, const char *path, ...)
    __attribute__((format(printf, 5, 6)));
struct api_reply api_get(struct transport *transport, const char *path, ...)
    __attribute__((format(printf, 2, 3)));
void api_reply_fini(struct api_reply *reply);
#define auto_reply __attribute__((cleanup(api_reply_fini))) struct api_reply

/* A watch: the text of its lines so far, and whether it has ended. */
struct api_watch {
    uint64_t id;
    char *text;
    bool done;
    int status;
};
void api_watch_start(struct api_watch *watch, struct transport *transport,
                     const char *path, ...) __attribute__((format(printf, 3, 4)));
/* The next event, removed from the text; NULL if there is no complete line. */
json_t *api_watch_next(struct api_watch *watch);
void api_watch_fini(struct api_watch *watch);

#endif
