#include "controller/simulate/api_server/refusal.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_MESSAGE = 4096 };

/* A message that was cut in the middle of a character is cut before it. */
static json_t *text_of(const char *message)
{
    size_t length = strlen(message);
    json_t *text = json_stringn(message, length);
    for (int i = 0; !text && i < 4 && length > 0; i++)
        text = json_stringn(message, --length);
    return text ? text : json_string("");
}

static json_t *make(int code, const char *reason, const char *message)
{
    return json_pack("{s:s, s:s, s:{}, s:s, s:o, s:s, s:i}", "kind", "Status",
                     "apiVersion", "v1", "metadata", "status", "Failure", "message",
                     text_of(message), "reason", reason, "code", code);
}

json_t *refusal_of(int code, const char *reason, const char *format, ...)
{
    char message[LONGEST_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return make(code, reason, message);
}

json_t *refusal_bad_request(const char *format, ...)
{
    char message[LONGEST_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return make(400, "BadRequest", message);
}

json_t *refusal_expired(const char *format, ...)
{
    char message[LONGEST_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return make(410, "Expired", message);
}

/* "pods", or "heterotrainingjobs.heterotrain.io" */
static char *qualified(const char *what, const char *group)
{
    return xasprintf("%s%s%s", what, *group ? "." : "", group);
}

static void add_details(json_t *status, const struct refusal_subject *subject,
                        const char *kind)
{
    json_t *details = json_pack("{s:s, s:s}", "name", subject->name, "kind", kind);
    if (*subject->group)
        object_set(details, "group", json_string(subject->group));
    object_set(status, "details", details);
}

json_t *refusal_not_found(const struct refusal_subject *subject)
{
    auto_free char *what = qualified(subject->plural, subject->group);
    json_t *status =
        refusal_of(404, "NotFound", "%s \"%s\" not found", what, subject->name);
    add_details(status, subject, subject->plural);
    return status;
}

json_t *refusal_already_exists(const struct refusal_subject *subject)
{
    auto_free char *what = qualified(subject->plural, subject->group);
    json_t *status =
        refusal_of(409, "AlreadyExists", "%s \"%s\" already exists", what, subject->name);
    add_details(status, subject, subject->plural);
    return status;
}

json_t *refusal_conflict(const struct refusal_subject *subject, const char *why)
{
    auto_free char *what = qualified(subject->plural, subject->group);
    json_t *status = refusal_of(409, "Conflict",
                                "Operation cannot be fulfilled on %s \"%s\": %s", what,
                                subject->name, why);
    add_details(status, subject, subject->plural);
    return status;
}

/* "field: message", or "[field: message, field: message]" */
static char *join_causes(const json_t *causes)
{
    char *text = xstrdup("");
    size_t i;
    json_t *cause;
    json_array_foreach (causes, i, cause) {
        auto_free char *before = text;
        text = xasprintf("%s%s%s: %s", before, i ? ", " : "", object_text(cause, "field"),
                         object_text(cause, "message"));
    }
    if (json_array_size(causes) < 2)
        return text;
    auto_free char *before = text;
    return xasprintf("[%s]", before);
}

json_t *refusal_invalid(const struct refusal_subject *subject, json_t *causes)
{
    auto_free char *what = qualified(subject->kind, subject->group);
    auto_free char *why = join_causes(causes);
    json_t *status =
        refusal_of(422, "Invalid", "%s \"%s\" is invalid: %s", what, subject->name, why);
    add_details(status, subject, subject->kind);
    object_set(status, "details.causes", causes);
    return status;
}

json_t *refusal_version_too_large(unsigned long long asked, unsigned long long current)
{
    json_t *status = refusal_of(504, "Timeout",
                                "Too large resource version: %llu, current: %llu", asked,
                                current);
    json_t *cause = json_pack("{s:s, s:s}", "reason", "ResourceVersionTooLarge",
                              "message", "Too large resource version");
    object_set(status, "details",
               json_pack("{s:[o], s:i}", "causes", cause, "retryAfterSeconds", 1));
    return status;
}

json_t *refusal_none(const struct refusal_subject *subject, const char *uid)
{
    json_t *status = json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status", "apiVersion",
                               "v1", "metadata", "status", "Success");
    add_details(status, subject, subject->plural);
    object_set(status, "details.uid", json_string(uid));
    return status;
}

int refusal_code(const json_t *status)
{
    return (int)object_integer(status, "code", 200);
}

void refusal_add_cause(json_t *causes, const char *reason, const char *field,
                       const char *format, ...)
{
    char message[LONGEST_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    json_array_append_new(causes, json_pack("{s:s, s:o, s:s}", "reason", reason,
                                            "message", text_of(message), "field", field));
}
