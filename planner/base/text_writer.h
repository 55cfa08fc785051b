/* text_writer.h - text that grows, for what is rendered. */
#ifndef HET_BASE_TEXT_WRITER_H
#define HET_BASE_TEXT_WRITER_H

#include "planner/base/arena.h"

#include <stdint.h>

struct het_writer {
    char *text; /* "" or NULL-terminated text; NULL before the first byte */
    size_t length, capacity;
};

void het_writer_put(struct het_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* `text` as a JSON string, in quotes. */
void het_writer_put_quoted(struct het_writer *writer, const char *text);
/* The text in `arena`; empties the writer. */
char *het_writer_take(struct het_writer *writer, struct het_arena *arena);

#endif
