/* log.h - a log of what the operator does, one event a line:
 *
 *   time=2026-01-01T00:00:00.000000Z level=info component=watch event=expired
 * resource=pods
 *
 * A value with other than plain printable characters is put in double quotes, with
 * backslash escapes for quotes, control characters, bytes that are not UTF-8 and
 * characters that a terminal would act on, so text from the cluster can neither end the
 * line nor forge a field. Only the shell logs; the code that decides returns values. All
 * functions are thread-safe. */
#ifndef CONTROLLER_BASE_LOG_H
#define CONTROLLER_BASE_LOG_H

#include "planner/modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_OFF };

enum {
    LOG_LINE_BYTES = 8192,  /* a longer line is cut, and ends in " cut=true" */
    LOG_VALUE_BYTES = 2048, /* of a string before escaping; the rest is "..." */
    LOG_COMPONENTS = 32,    /* with a level of their own */
};

struct log_field {
    const char *name;
    enum { LOG_TYPE_STR, LOG_TYPE_INT, LOG_TYPE_REAL, LOG_TYPE_BOOL } type;
    union {
        const char *text; /* NULL is written as "" */
        int64_t integer;
        double real;
        bool truth;
    };
};

#define LOG_STR(key, value)                                                              \
    ((struct log_field){ .name = (key), .type = LOG_TYPE_STR, .text = (value) })
#define LOG_INT(key, value)                                                              \
    ((struct log_field){ .name = (key), .type = LOG_TYPE_INT, .integer = (value) })
#define LOG_REAL(key, value)                                                             \
    ((struct log_field){ .name = (key), .type = LOG_TYPE_REAL, .real = (value) })
#define LOG_BOOL(key, value)                                                             \
    ((struct log_field){ .name = (key), .type = LOG_TYPE_BOOL, .truth = (value) })

/* log_event(LOG_INFO, "apply", "created", LOG_STR("pod", name), LOG_INT("rank", rank));
 * The fields are evaluated only if the line is wanted. */
#define log_event(level, component, event, ...)                                          \
    do {                                                                                 \
        if (log_is_enabled((level), (component))) {                                      \
            const struct log_field log_fields_[] = { { 0 }, ##__VA_ARGS__ };             \
            log_write((level), (component), (event), log_fields_ + 1,                    \
                      sizeof log_fields_ / sizeof *log_fields_ - 1);                     \
        }                                                                                \
    } while (0)

bool log_is_enabled(enum log_level level, const char *component);
void log_write(enum log_level level, const char *component, const char *event,
               const struct log_field *fields, size_t field_count);

/* Sets the time of the following lines, ms since 1970. Before the first call lines have
 * no time. */
void log_set_time(int64_t now_ms);

/* "info", or "watch=debug,http=warning,info": levels of components, and of all others
 * (unchanged if not named). Levels: debug, info, warning, error, off. On an error nothing
 * changes. Initially info. */
int log_set_levels(const char *text, struct het_error *err);
/* The present levels in the format of log_set_levels, components in the order in which
 * they were first named; the caller frees. */
char *log_get_levels(void);

/* Where lines go, without the newline; NULL: standard error, one write(2) a line. */
void log_set_sink(void (*sink)(void *context, const char *line, size_t length),
                  void *context);

#endif
