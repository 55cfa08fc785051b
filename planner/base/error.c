#include "planner/base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `text`, 0 if there is none (Unicode 15, table 3-7). */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char first = text[0], second = text[0] ? text[1] : 0;
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length > 1 && (first < 0xc2 || first > 0xf4 || second < least || second > most))
        return 0;
    for (size_t i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return length;
}

/* Messages quote what came in, and become lines of a terminal and texts in JSON: control
 * characters, and bytes that are not (or, where a text was cut, no longer) UTF-8, become
 * '?'. */
static void make_plain(char *message)
{
    unsigned char *at = (unsigned char *)message;
    while (*at) {
        size_t length = utf8_length(at);
        bool is_control = *at < 0x20 || *at == 0x7f ||
                          (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
        if (!length || is_control)
            memset(at, '?', length ? length : 1);
        at += length ? length : 1;
    }
}

/* vsnprintf into `size` bytes; a text that does not fit ends in "...". */
__attribute__((format(printf, 3, 0))) static void
print_bounded(char *out, size_t size, const char *format, va_list args)
{
    int length = vsnprintf(out, size, format, args);
    if (length >= 0 && (size_t)length >= size)
        memcpy(out + size - 4, "...", 4);
}

int het_fail(struct het_error *err, enum het_error_code code, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    print_bounded(err->message, sizeof err->message, format, args);
    va_end(args);
    make_plain(err->message);
    err->code = code;
    err->path[0] = '\0';
    return -1;
}

int het_wrap(struct het_error *err, const char *format, ...)
{
    if (!err)
        return -1;
    char inner[sizeof err->message];
    memcpy(inner, err->message, sizeof inner);
    char context[sizeof err->message];
    va_list args;
    va_start(args, format);
    print_bounded(context, sizeof context, format, args);
    va_end(args);

    int length = snprintf(err->message, sizeof err->message, "%s: %s", context, inner);
    if (length >= 0 && (size_t)length >= sizeof err->message)
        memcpy(err->message + sizeof err->message - 4, "...", 4);
    make_plain(err->message);
    return -1;
}

void het_error_locate(struct het_error *err, const char *outer)
{
    if (!err)
        return;
    char inner[sizeof err->path];
    memcpy(inner, err->path, sizeof inner);
    const char *joint = *inner && *inner != '[' ? "." : "";
    snprintf(err->path, sizeof err->path, "%.120s%s%.120s", outer, joint, inner);
    make_plain(err->path);
}
