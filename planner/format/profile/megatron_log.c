#include "planner/format/profile/megatron_log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 4096u
#define MAX_REPORTS   (1u << 20)
#define MAX_MS        86400000.0 /* a day */

static const char *const timer_names[] = {
    [HET_MEGATRON_FORWARD] = "forward-compute",
    [HET_MEGATRON_BACKWARD] = "backward-compute",
    [HET_MEGATRON_OPTIMIZER] = "optimizer",
};
#define TIMER_COUNT (sizeof timer_names / sizeof *timer_names)

struct reader {
    struct het_arena *arena;
    struct het_megatron_argument *arguments;
    size_t argument_count, argument_capacity;
    struct het_megatron_report *reports;
    size_t report_count, report_capacity;
    bool has_timer; /* `timer` is the one whose ranks follow */
    enum het_megatron_timer timer;
};

/* ---- lines ---- */

/* Behind the word, if the line has it by itself: blanks, a colon or nothing before it,
 * and a blank or colon behind. */
static char *find_word(char *line, const char *word)
{
    size_t length = strlen(word);
    for (char *at = line; (at = strstr(at, word)); at += length) {
        bool begins = at == line || strchr(" \t:|", at[-1]);
        if (begins && (at[length] == ' ' || at[length] == ':'))
            return at + length;
    }
    return NULL;
}

/* Behind blanks and dots. */
static char *skip_dots(char *text)
{
    return text + strspn(text, " .");
}

static bool read_ms(const char *text, double *ret, char **ret_end)
{
    double value = strtod(text, ret_end);
    if (*ret_end == text || !(value >= 0 && value <= MAX_MS))
        return false;
    *ret = value;
    return true;
}

static void add_report(struct reader *reader, uint32_t rank, double ms)
{
    if (reader->report_count == MAX_REPORTS)
        return;
    ARRAY_RESERVE(reader->reports, &reader->report_capacity, reader->report_count + 1);
    reader->reports[reader->report_count] =
        (struct het_megatron_report){ reader->timer, rank, reader->report_count, ms };
    reader->report_count++;
}

/* "(10.25, 10.31)" or "10.31" behind the colon: of all ranks. */
static bool read_over_ranks(struct reader *reader, const char *text)
{
    double least, most;
    char *end;
    text += strspn(text, " ");
    if (*text == '(') {
        if (!read_ms(text + 1, &least, &end) || *end != ',' ||
            !read_ms(end + 1, &most, &end) || *end != ')')
            return false;
        add_report(reader, HET_MEGATRON_ALL_RANKS, (least + most) / 2);
        return true;
    }
    if (!read_ms(text, &most, &end))
        return false;
    add_report(reader, HET_MEGATRON_ALL_RANKS, most);
    return true;
}

/* A line that names a timer; several of them in the old form. */
static bool read_timers(struct reader *reader, char *line)
{
    bool found = false;
    for (size_t t = 0; t < TIMER_COUNT; t++) {
        char *behind = find_word(line, timer_names[t]);
        char *colon = behind ? skip_dots(behind) : NULL;
        if (!colon || *colon != ':')
            continue;
        reader->timer = (enum het_megatron_timer)t;
        /* Nothing behind the colon: ranks follow. */
        reader->has_timer = !colon[1 + strspn(colon + 1, " \r")];
        found |= reader->has_timer || read_over_ranks(reader, colon + 1);
    }
    return found;
}

static bool read_rank(struct reader *reader, char *line)
{
    char *behind = find_word(line, "rank"), *end;
    double ms;
    if (!reader->has_timer || !behind)
        return false;
    unsigned long rank = strtoul(behind, &end, 10);
    if (end == behind || *end != ':' || rank >= HET_MEGATRON_ALL_RANKS ||
        !read_ms(end + 1, &ms, &end))
        return false;
    add_report(reader, (uint32_t)rank, ms);
    return true;
}

/* "name ...... value", at least three dots. */
static void read_argument(struct reader *reader, char *line)
{
    char *dots = strstr(line, " ...");
    if (!dots || reader->argument_count == MAX_ARGUMENTS)
        return;
    char *name = dots, *value = skip_dots(dots);
    while (name > line && (islower((unsigned char)name[-1]) ||
                           isdigit((unsigned char)name[-1]) || name[-1] == '_'))
        name--;
    if (name == dots || value[-1] != ' ' || (name > line && name[-1] != ' '))
        return;
    value[strcspn(value, "\r")] = '\0';
    *dots = '\0';
    ARRAY_RESERVE(reader->arguments, &reader->argument_capacity,
                  reader->argument_count + 1);
    reader->arguments[reader->argument_count++] =
        (struct het_megatron_argument){ name, value };
}

static void read_line(struct reader *reader, char *line)
{
    if (read_timers(reader, line) || read_rank(reader, line))
        return;
    reader->has_timer = false;
    read_argument(reader, line);
}

/* ---- the log ---- */

static int compare_reports(const void *a, const void *b)
{
    const struct het_megatron_report *left = a, *right = b;
    if (left->timer != right->timer)
        return left->timer < right->timer ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}

static void *keep(struct het_arena *arena, void *array, size_t size)
{
    void *copy = het_arena_alloc(arena, size ? size : 1);
    if (size)
        memcpy(copy, array, size);
    xfree(array);
    return copy;
}

static bool has_timer(const struct het_megatron_log *log, enum het_megatron_timer timer)
{
    for (size_t i = 0; i < log->report_count; i++)
        if (log->reports[i].timer == timer)
            return true;
    return false;
}

int het_megatron_log_read(struct het_arena *arena, const char *name, const char *text,
                          struct het_megatron_log *ret, struct het_error *err)
{
    struct reader reader = { .arena = arena };
    char *rest = het_arena_strdup(arena, text), *line;
    while ((line = strsep(&rest, "\n")))
        read_line(&reader, line);
    if (reader.report_count)
        qsort(reader.reports, reader.report_count, sizeof *reader.reports,
              compare_reports);
    struct het_megatron_log log = {
        .name = name,
        .arguments = keep(arena, reader.arguments,
                          reader.argument_count * sizeof *reader.arguments),
        .argument_count = reader.argument_count,
        .reports =
            keep(arena, reader.reports, reader.report_count * sizeof *reader.reports),
        .report_count = reader.report_count,
    };
    if (!log.argument_count)
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: has no list of arguments, which rank 0 of Megatron-LM "
                        "prints when it starts; where ranks have logs of their own, put "
                        "that of rank 0 before that of the last rank",
                        name);
    if (!has_timer(&log, HET_MEGATRON_FORWARD) || !has_timer(&log, HET_MEGATRON_BACKWARD))
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: has no times of forward-compute and backward-compute, "
                        "which the last rank prints with --timing-log-level 2",
                        name);
    *ret = log;
    return 0;
}

/* ---- arguments ---- */

const char *het_megatron_argument(const struct het_megatron_log *log, const char *name)
{
    for (size_t i = 0; i < log->argument_count; i++)
        if (!strcmp(log->arguments[i].name, name))
            return strcmp(log->arguments[i].value, "None") ? log->arguments[i].value
                                                           : NULL;
    return NULL;
}

int het_megatron_number_if(const struct het_megatron_log *log, const char *name,
                           uint32_t most, uint32_t *ret, struct het_error *err)
{
    const char *text = het_megatron_argument(log, name);
    char *end;
    if (!text)
        return 0;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 1 && value <= most) || value != floor(value))
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: argument %s: must be a whole number from 1 to %u, is "
                        "\"%.60s\"",
                        log->name, name, most, text);
    *ret = (uint32_t)value;
    return 0;
}

int het_megatron_number(const struct het_megatron_log *log, const char *name,
                        uint32_t most, uint32_t *ret, struct het_error *err)
{
    if (!het_megatron_argument(log, name))
        return het_fail(err, HET_BAD_INPUT, "%.300s: argument %s: is missing", log->name,
                        name);
    return het_megatron_number_if(log, name, most, ret, err);
}

bool het_megatron_is_set(const struct het_megatron_log *log, const char *name)
{
    const char *text = het_megatron_argument(log, name);
    return text && !strcmp(text, "True");
}

/* ---- times ---- */

/* The reports of a timer on a rank; `ret_count` of them. */
static const struct het_megatron_report *find_reports(const struct het_megatron_log *log,
                                                      enum het_megatron_timer timer,
                                                      uint32_t rank, size_t *ret_count)
{
    size_t low = 0, high = log->report_count;
    const struct het_megatron_report key = { .timer = timer, .rank = rank };
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_reports(&log->reports[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < log->report_count && log->reports[end].timer == timer &&
           log->reports[end].rank == rank)
        end++;
    *ret_count = end - low;
    return &log->reports[low];
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

bool het_megatron_ms(const struct het_megatron_log *log, enum het_megatron_timer timer,
                     uint32_t rank, double *ret_ms)
{
    size_t count;
    const struct het_megatron_report *reports = find_reports(log, timer, rank, &count);
    if (!count)
        return false;
    size_t first = count > 1, used = count - first;
    auto_free double *ms = xcalloc(used, sizeof *ms);
    for (size_t i = 0; i < used; i++)
        ms[i] = reports[first + i].ms;
    qsort(ms, used, sizeof *ms, compare_doubles);
    *ret_ms = (ms[(used - 1) / 2] + ms[used / 2]) / 2;
    return true;
}

bool het_megatron_has_ranks(const struct het_megatron_log *log)
{
    return log->reports[0].rank != HET_MEGATRON_ALL_RANKS;
}
