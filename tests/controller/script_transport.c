#include "tests/controller/script_transport.h"

#include <check.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct script {
    struct transport transport;
    struct script_request **requests;
    size_t count, capacity;
};

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static uint64_t start(struct transport *transport, const struct http_request *request,
                      const struct http_handler *handler)
{
    struct script *script = (struct script *)transport;
    struct script_request *copy = xcalloc(1, sizeof *copy);
    *copy = (struct script_request){
        .script = script,
        .id = script->count + 1,
        .method = xstrdup(request->method),
        .path = xstrdup(request->path),
        .content_type = copy_text(request->content_type),
        .body = request->body
                    ? xasprintf("%.*s", (int)request->body_length, request->body)
                    : NULL,
        .user_agent = copy_text(request->user_agent),
        .timeout_ms = request->timeout_ms,
        .new_connection = request->new_connection,
        .is_stream = handler->on_data != NULL,
        .is_open = true,
        .handler = *handler,
    };
    ARRAY_RESERVE(script->requests, &script->capacity, script->count + 1);
    script->requests[script->count++] = copy;
    return copy->id;
}

static void cancel(struct transport *transport, uint64_t id)
{
    struct script *script = (struct script *)transport;
    ck_assert_uint_ge(id, 1);
    ck_assert_uint_le(id, script->count);
    script->requests[id - 1]->is_open = false;
}

static int poll_nothing(struct transport *transport, struct pollfd *extra,
                        size_t extra_count, int64_t timeout_ms)
{
    (void)transport, (void)extra, (void)extra_count, (void)timeout_ms;
    return 0;
}

static void free_transport(struct transport *transport)
{
    script_free((struct script *)transport);
}

static const struct transport_ops ops = { start, cancel, poll_nothing, free_transport };

struct script *script_new(void)
{
    struct script *script = xcalloc(1, sizeof *script);
    script->transport.ops = &ops;
    return script;
}

void script_free(struct script *script)
{
    if (!script)
        return;
    for (size_t i = 0; i < script->count; i++) {
        struct script_request *request = script->requests[i];
        free(request->method);
        free(request->path);
        free(request->content_type);
        free(request->body);
        free(request->user_agent);
        free(request);
    }
    free(script->requests);
    free(script);
}

struct transport *script_transport(struct script *script)
{
    return &script->transport;
}

static struct script_request *first_unexpected(struct script *script)
{
    for (size_t i = 0; i < script->count; i++)
        if (!script->requests[i]->is_expected)
            return script->requests[i];
    return NULL;
}

static bool matches(const char *pattern, const char *path)
{
    char escaped[2048];
    size_t length = 0;
    for (; *pattern; pattern++) {
        ck_assert_uint_lt(length, sizeof escaped - 2);
        if (*pattern == '?' || *pattern == '[')
            escaped[length++] = '\\';
        escaped[length++] = *pattern;
    }
    escaped[length] = '\0';
    return !fnmatch(escaped, path, 0);
}

struct script_request *script_expect(struct script *script, const char *method,
                                     const char *pattern)
{
    struct script_request *request = first_unexpected(script);
    ck_assert_msg(request, "expected %s %s, but nothing was asked", method, pattern);
    ck_assert_msg(!strcmp(request->method, method) && matches(pattern, request->path),
                  "expected %s %s, got %s %s", method, pattern, request->method,
                  request->path);
    request->is_expected = true;
    return request;
}

void script_expect_nothing(struct script *script)
{
    struct script_request *request = first_unexpected(script);
    ck_assert_msg(!request, "expected nothing, got %s %s", request->method,
                  request->path);
}

size_t script_open_count(const struct script *script)
{
    size_t count = 0;
    for (size_t i = 0; i < script->count; i++)
        count += script->requests[i]->is_open;
    return count;
}

static void finish(struct script_request *request, const struct http_reply *reply)
{
    ck_assert_msg(request->is_open, "%s %s is not open", request->method, request->path);
    request->is_open = false;
    request->handler.on_done(request->handler.context, reply);
}

void script_reply(struct script_request *request, int status, int retry_after_s,
                  const char *body)
{
    if (request->is_stream && status >= 200 && status < 300) {
        script_send_text(request, body);
        script_end(request);
        return;
    }
    const struct http_reply reply = {
        .status = status,
        .retry_after_ms = retry_after_s < 0 ? -1 : retry_after_s * 1000,
        .body = body,
        .body_length = strlen(body),
        .maybe_sent = true,
    };
    finish(request, &reply);
}

static void fail_with(struct script_request *request, bool maybe_sent,
                      enum het_error_code code, const char *message)
{
    struct http_reply reply = { .retry_after_ms = -1,
                                .body = "",
                                .maybe_sent = maybe_sent };
    het_fail(&reply.error, code, "%s", message);
    finish(request, &reply);
}

void script_fail(struct script_request *request, bool maybe_sent)
{
    fail_with(request, maybe_sent, HET_IO,
              maybe_sent ? "connection reset" : "connection refused");
}

void script_refuse(struct script_request *request)
{
    struct http_reply reply = { .retry_after_ms = -1, .body = "", .is_refused = true };
    het_fail(&reply.error, HET_IO, "connection refused");
    finish(request, &reply);
}

void script_fail_too_long(struct script_request *request)
{
    fail_with(request, true, HET_BAD_INPUT, "reply is too long");
}

void script_send(struct script_request *request, const char *bytes, size_t length)
{
    ck_assert(request->is_stream);
    if (request->is_open && length)
        request->handler.on_data(request->handler.context, bytes, length);
}

void script_send_text(struct script_request *request, const char *text)
{
    script_send(request, text, strlen(text));
}

void script_end(struct script_request *request)
{
    const struct http_reply reply = { .status = 200, .retry_after_ms = -1, .body = "" };
    if (request->is_open)
        finish(request, &reply);
}
