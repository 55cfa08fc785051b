#include "tests/controller/quoted.h"

#include "planner/modules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

json_t *quoted(const char *format, ...)
{
    auto_free char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
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
