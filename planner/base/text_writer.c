#include "planner/base/text_writer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void het_writer_put(struct het_writer *writer, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int needed = vsnprintf(NULL, 0, format, args);
    assert(needed >= 0);
    size_t size = (size_t)needed + 1;
    ARRAY_RESERVE(writer->text, &writer->capacity, writer->length + size);
    vsnprintf(writer->text + writer->length, size, format, again);
    writer->length += size - 1;
    va_end(again);
    va_end(args);
}

void het_writer_put_quoted(struct het_writer *writer, const char *text)
{
    het_writer_put(writer, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            het_writer_put(writer, "\\%c", *c);
        else if ((unsigned char)*c < ' ')
            het_writer_put(writer, "\\u%04x", (unsigned)*c);
        else
            het_writer_put(writer, "%c", *c);
    }
    het_writer_put(writer, "\"");
}

char *het_writer_take(struct het_writer *writer, struct het_arena *arena)
{
    char *text = het_arena_strdup(arena, writer->text ? writer->text : "");
    xfree(writer->text);
    *writer = (struct het_writer){ 0 };
    return text;
}
