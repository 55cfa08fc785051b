#include "planner/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    err->code = code;
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
    return -1;
}
