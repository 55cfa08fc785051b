#include "tests/controller/quoted.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

json_t *quoted(const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &error);
    if (value)
        return value;
    fprintf(stderr, "%s: %s\n", error.text, text);
    abort();
}
