/* text_table.h - text for people: lines in columns, paragraphs. Text from the cluster is
 * made printable first, so that no message can move the cursor. */
#ifndef CONTROLLER_KUBECTL_TEXT_TABLE_H
#define CONTROLLER_KUBECTL_TEXT_TABLE_H

#include "planner/modules.h"

#include <stdio.h>

#define TEXT_TABLE_MAX_COLUMNS 8

struct text_table;

/* Columns with these headings, up to a NULL; everything is in `arena`. */
struct text_table *text_table_new(struct het_arena *arena, const char *const *headings);
/* A line: as many cells as columns, copied. NULL is "-". */
void text_table_add(struct text_table *table, const char *const *cells);
/* Every column is as wide as its content. The text of the last one is wrapped between
 * words to a total `width` if that leaves it 20 columns; otherwise it goes below its
 * line. */
void text_table_print(const struct text_table *table, FILE *out, int width);

/* Prints `text` from column `indent` on, wrapped between words to `width`; `label`, at
 * most `indent` characters, precedes the first line. */
void text_table_print_text(FILE *out, const char *label, const char *text, int indent,
                           int width);
/* `text` without control characters, in `arena`; line ends become blanks. */
char *text_table_printable(struct het_arena *arena, const char *text);

#endif
