#include "tests/controller/api.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_done(void *context, const struct http_reply *reply)
{
    struct api_reply *out = context;
    out->done = true;
    out->status = reply->status;
    out->body = strndup(reply->body, reply->body_length);
    out->json = json_loadb(reply->body, reply->body_length, JSON_DECODE_ANY, NULL);
    out->retry_after_ms = reply->retry_after_ms;
    out->maybe_sent = reply->maybe_sent;
}

static struct api_reply call(struct transport *transport, const char *method,
                             const char *content_type, json_t *body, const char *path)
{
    struct api_reply reply = { 0 };
    auto_free char *text = body ? json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    struct http_request request = { .method = method,
                                    .path = path,
                                    .content_type = content_type,
                                    .body = text,
                                    .body_length = text ? strlen(text) : 0 };
    struct http_handler handler = { .on_done = on_done, .context = &reply };
    uint64_t id = transport_start(transport, &request, &handler);
    json_decref(body);
    for (int i = 0; i < 10 && !reply.done; i++)
        transport_poll(transport, NULL, 0, 0);
    if (!reply.done)
        transport_cancel(transport, id);
    return reply;
}

struct api_reply api_call(struct transport *transport, const char *method,
                          const char *content_type, json_t *body, const char *path, ...)
{
    char full[1024];
    va_list args;
    va_start(args, path);
    vsnprintf(full, sizeof full, path, args);
    va_end(args);
    return call(transport, method, content_type, body, full);
}

struct api_reply api_get(struct transport *transport, const char *path, ...)
{
    char full[1024];
    va_list args;
    va_start(args, path);
    vsnprintf(full, sizeof full, path, args);
    va_end(args);
    return call(transport, "GET", NULL, NULL, full);
}

void api_reply_fini(struct api_reply *reply)
{
    free(reply->body);
    json_decref(reply->json);
}

static void on_watch_data(void *context, const char *bytes, size_t length)
{
    struct api_watch *watch = context;
    auto_free char *before = watch->text;
    watch->text = xasprintf("%s%.*s", before, (int)length, bytes);
}

static void on_watch_done(void *context, const struct http_reply *reply)
{
    struct api_watch *watch = context;
    watch->done = true;
    watch->status = reply->status;
}

void api_watch_start(struct api_watch *watch, struct transport *transport,
                     const char *path, ...)
{
    char full[1024];
    va_list args;
    va_start(args, path);
    vsnprintf(full, sizeof full, path, args);
    va_end(args);
    *watch = (struct api_watch){ .text = xstrdup("") };
    struct http_request request = { .method = "GET", .path = full };
    struct http_handler handler = { .on_data = on_watch_data,
                                    .on_done = on_watch_done,
                                    .context = watch };
    watch->id = transport_start(transport, &request, &handler);
    transport_poll(transport, NULL, 0, 0);
}

json_t *api_watch_next(struct api_watch *watch)
{
    char *end = strchr(watch->text, '\n');
    if (!end)
        return NULL;
    json_t *event = json_loadb(watch->text, (size_t)(end - watch->text), 0, NULL);
    ck_assert_ptr_nonnull(event);
    memmove(watch->text, end + 1, strlen(end + 1) + 1);
    return event;
}

void api_watch_fini(struct api_watch *watch)
{
    free(watch->text);
}
