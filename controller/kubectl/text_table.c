#include "controller/kubectl/text_table.h"

#include <assert.h>
#include <string.h>

#define GAP        2  /* blanks between columns */
#define LEAST_LAST 20 /* columns of the last one, or its text goes below its line */

struct text_table {
    struct het_arena *arena;
    const char *const *headings;
    size_t column_count, row_count, capacity;
    const char *(*rows)[TEXT_TABLE_MAX_COLUMNS];
};

struct text_table *text_table_new(struct het_arena *arena, const char *const *headings)
{
    struct text_table *table = het_arena_alloc(arena, sizeof *table);
    *table = (struct text_table){ .arena = arena, .headings = headings };
    while (headings[table->column_count])
        table->column_count++;
    assert(table->column_count > 0);
    assert(table->column_count <= TEXT_TABLE_MAX_COLUMNS);
    return table;
}

char *text_table_printable(struct het_arena *arena, const char *text)
{
    char *copy = het_arena_strdup(arena, text);
    for (unsigned char *c = (unsigned char *)copy; *c; c++) {
        if (*c == '\n' || *c == '\t' || *c == '\r')
            *c = ' ';
        else if (*c < ' ' || *c == 127)
            *c = '?';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?'; /* control characters beyond ASCII */
    }
    return copy;
}

void text_table_add(struct text_table *table, const char *const *cells)
{
    if (table->row_count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        void *rows = het_arena_alloc(table->arena,
                                     capacity * TEXT_TABLE_MAX_COLUMNS * sizeof(char *));
        if (table->row_count)
            memcpy(rows, table->rows, table->row_count * sizeof *table->rows);
        table->rows = rows;
        table->capacity = capacity;
    }
    for (size_t i = 0; i < table->column_count; i++)
        table->rows[table->row_count][i] =
            text_table_printable(table->arena, cells[i] ? cells[i] : "-");
    table->row_count++;
}

/* Characters of UTF-8, each a column wide. */
static int width_of(const char *text, size_t length)
{
    int width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* Goes on at `column` of a line that began before; ends it. */
static void print_words(FILE *out, const char *text, int column, int indent, int width)
{
    bool is_first = true;
    for (;;) {
        text += strspn(text, " ");
        size_t length = strcspn(text, " ");
        if (!length)
            break;
        int wide = width_of(text, length);
        if (!is_first && column + 1 + wide > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!is_first) {
            putc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += wide;
        text += length;
        is_first = false;
    }
    putc('\n', out);
}

void text_table_print_text(FILE *out, const char *label, const char *text, int indent,
                           int width)
{
    fprintf(out, "%-*s", indent, label);
    print_words(out, text, indent, indent, width);
}

static void print_row(const struct text_table *table, const char *const *cells,
                      const int *widths, int last_column, FILE *out, int width)
{
    size_t last = table->column_count - 1;
    for (size_t i = 0; i < last; i++) {
        int blanks = widths[i] - width_of(cells[i], strlen(cells[i]));
        /* Nothing trails where the last cell is empty or below. */
        bool is_end = i + 1 == last && (!*cells[last] || last_column > width);
        fprintf(out, "%s%*s", cells[i], is_end ? 0 : blanks + GAP, "");
    }
    if (!*cells[last]) {
        putc('\n', out);
    } else if (last_column > width) {
        putc('\n', out);
        text_table_print_text(out, "", cells[last], 2 * GAP, width);
    } else {
        print_words(out, cells[last], last_column, last_column, width);
    }
}

void text_table_print(const struct text_table *table, FILE *out, int width)
{
    int widths[TEXT_TABLE_MAX_COLUMNS];
    int last_column = 0;
    size_t last = table->column_count - 1;
    for (size_t i = 0; i < last; i++) {
        widths[i] = width_of(table->headings[i], strlen(table->headings[i]));
        for (size_t k = 0; k < table->row_count; k++) {
            const char *cell = table->rows[k][i];
            int wide = width_of(cell, strlen(cell));
            widths[i] = wide > widths[i] ? wide : widths[i];
        }
        last_column += widths[i] + GAP;
    }
    int longest = 0;
    for (size_t k = 0; k < table->row_count; k++) {
        int wide = width_of(table->rows[k][last], strlen(table->rows[k][last]));
        longest = wide > longest ? wide : longest;
    }
    bool is_below = last_column + LEAST_LAST > width && last_column + longest > width;
    print_row(table, table->headings, widths, last_column, out, width);
    for (size_t k = 0; k < table->row_count; k++)
        print_row(table, table->rows[k], widths, is_below ? width + 1 : last_column, out,
                  width);
}
