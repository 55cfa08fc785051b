/* text_table.h - text for people: lines in columns, paragraphs. Whatever the cluster says
 * is made printable first: nobody's message can move the cursor. */
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
/* Every column is as wide as it has to be; the text of the last one is broken between
 * words into lines of `width` in all, if it then has room for 20 letters, and stands
 * below its line otherwise. */
void text_table_print(const struct text_table *table, FILE *out, int width);

/* `text` from column `indent` on, broken between words into lines of `width`; `label`, at
 * most `indent` characters, stands before the first line. */
void text_table_print_text(FILE *out, const char *label, const char *text, int indent,
                           int width);
/* `text` without control characters, in `arena`; line ends become blanks. */
char *text_table_printable(struct het_arena *arena, const char *text);

#endif
