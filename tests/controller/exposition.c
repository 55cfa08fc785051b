#include "tests/controller/exposition.h"

#include "planner/modules.h"

#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    char *series; /* NAME{LABEL="VALUE",...} */
    char *others; /* the same without le */
    char *name;
    double value, le; /* le: NaN without */
};

struct family {
    char *name, *type;
};

struct exposition {
    struct sample *samples;
    size_t sample_count, sample_capacity;
    struct family *families;
    size_t family_count, family_capacity;
};

static size_t name_length(const char *text, const char *also)
{
    size_t length = 0;
    while (isalpha((unsigned char)text[length]) || text[length] == '_' ||
           (text[length] && strchr(also, text[length])) ||
           (length && isdigit((unsigned char)text[length])))
        length++;
    return length;
}

static char *copy(const char *text, size_t length)
{
    return xasprintf("%.*s", (int)length, text);
}

static struct family *find_family(const struct exposition *in, const char *name)
{
    for (size_t i = 0; i < in->family_count; i++)
        if (!strcmp(in->families[i].name, name))
            return &in->families[i];
    return NULL;
}

/* "# HELP name text" opens a family, "# TYPE name kind" comes next. */
static void read_comment(struct exposition *in, const char *line)
{
    bool is_help = !strncmp(line, "# HELP ", 7);
    const char *name = line + 7;
    ck_assert_msg(is_help || !strncmp(line, "# TYPE ", 7), "%s", line);
    size_t length = name_length(name, ":");
    auto_free char *own = copy(name, length);
    ck_assert_msg(length && name[length] == ' ' && name[length + 1], "%s", line);
    struct family *family = find_family(in, own);
    if (is_help) {
        ck_assert_msg(!family, "twice: %s", line);
        ck_assert_msg(!strchr(name, '\\'), "unescaped: %s", line);
        ARRAY_RESERVE(in->families, &in->family_capacity, in->family_count + 1);
        in->families[in->family_count++] = (struct family){ .name = TAKE(own) };
        return;
    }
    ck_assert_msg(family && family == &in->families[in->family_count - 1], "HELP: %s",
                  line);
    ck_assert_msg(!family->type, "twice: %s", line);
    family->type = xstrdup(name + length + 1);
    ck_assert_msg(!strcmp(family->type, "counter") || !strcmp(family->type, "gauge") ||
                      !strcmp(family->type, "histogram"),
                  "%s", line);
}

/* Reads a quoted value into `to`, unescaped; returns where it ends. */
static const char *read_value(const char *at, char *to, const char *line)
{
    ck_assert_msg(*at == '"', "%s", line);
    for (at++; *at != '"'; at++) {
        ck_assert_msg(*at, "no end of a value: %s", line);
        if (*at == '\\') {
            at++;
            ck_assert_msg(*at && strchr("\\\"n", *at), "escape: %s", line);
            *to++ = *at == 'n' ? '\n' : *at;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return at + 1;
}

static const char *read_labels(struct sample *sample, const char *at, const char *line)
{
    auto_free char *all = xstrdup(""), *others = xstrdup("");
    auto_free char *value = xmalloc(strlen(line) + 1);
    for (at++; *at != '}';) {
        size_t length = name_length(at, "");
        auto_free char *name = copy(at, length);
        ck_assert_msg(length && at[length] == '=', "%s", line);
        at = read_value(at + length + 1, value, line);
        auto_free char *pair = xasprintf("%s=\"%s\"", name, value);
        auto_free char *old_all = TAKE(all);
        all = xasprintf("%s%s%s", old_all, *old_all ? "," : "", pair);
        if (!strcmp(name, "le")) {
            sample->le = !strcmp(value, "+Inf") ? INFINITY : strtod(value, NULL);
        } else {
            auto_free char *old_others = TAKE(others);
            others = xasprintf("%s%s%s", old_others, *old_others ? "," : "", pair);
        }
        ck_assert_msg(*at == ',' || *at == '}', "%s", line);
        at += *at == ',';
    }
    sample->series = xasprintf("%s{%s}", sample->name, all);
    sample->others = xasprintf("{%s}", others);
    return at + 1;
}

/* The family of a sample: by its name, or without a histogram's suffix. */
static const struct family *family_of(const struct exposition *in, const char *name)
{
    static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
    const struct family *family = find_family(in, name);
    for (size_t i = 0; !family && i < 3; i++) {
        size_t length = strlen(name), cut = strlen(suffixes[i]);
        if (length <= cut || strcmp(name + length - cut, suffixes[i]) != 0)
            continue;
        auto_free char *stem = copy(name, length - cut);
        family = find_family(in, stem);
        if (family && strcmp(family->type, "histogram") != 0)
            family = NULL;
    }
    return family;
}

static void read_sample(struct exposition *in, const char *line)
{
    struct sample sample = { .le = NAN };
    size_t length = name_length(line, ":");
    ck_assert_msg(length, "%s", line);
    sample.name = copy(line, length);
    const char *at = line + length;
    if (*at == '{') {
        at = read_labels(&sample, at, line);
    } else {
        sample.series = xstrdup(sample.name);
        sample.others = xstrdup("{}");
    }
    char *end;
    ck_assert_msg(*at == ' ' && at[1] && at[1] != ' ', "%s", line);
    sample.value = strtod(at + 1, &end);
    ck_assert_msg(!*end, "number: %s", line);
    const struct family *family = family_of(in, sample.name);
    ck_assert_msg(family && family->type, "not announced: %s", line);
    ck_assert_msg(family == &in->families[in->family_count - 1], "scattered: %s", line);
    for (size_t i = 0; i < in->sample_count; i++)
        ck_assert_msg(strcmp(in->samples[i].series, sample.series) != 0, "twice: %s",
                      line);
    ARRAY_RESERVE(in->samples, &in->sample_capacity, in->sample_count + 1);
    in->samples[in->sample_count++] = sample;
}

static double value_of(const struct exposition *in, const char *name, const char *suffix,
                       const char *others)
{
    auto_free char *whole = xasprintf("%s%s", name, suffix);
    for (size_t i = 0; i < in->sample_count; i++)
        if (!strcmp(in->samples[i].name, whole) && !strcmp(in->samples[i].others, others))
            return in->samples[i].value;
    return NAN;
}

/* Buckets ascend in le and in count, end with +Inf, which is the count; there is a sum.
 */
static void check_histogram(const struct exposition *in, const char *name)
{
    auto_free char *bucket = xasprintf("%s_bucket", name);
    for (size_t i = 0; i < in->sample_count; i++) {
        const struct sample *sample = &in->samples[i];
        if (strcmp(sample->name, bucket) != 0)
            continue;
        ck_assert_msg(!isnan(sample->le), "%s has no le", sample->series);
        const struct sample *next = i + 1 < in->sample_count ? sample + 1 : NULL;
        if (sample->le == INFINITY) {
            ck_assert_double_eq(sample->value,
                                value_of(in, name, "_count", sample->others));
            ck_assert(!isnan(value_of(in, name, "_sum", sample->others)));
            continue;
        }
        ck_assert_msg(next && !strcmp(next->others, sample->others) &&
                          next->le > sample->le && next->value >= sample->value,
                      "%s is not cumulative", sample->series);
    }
}

struct exposition *exposition_read(const char *text)
{
    struct exposition *in = xcalloc(1, sizeof *in);
    while (*text) {
        size_t length = strcspn(text, "\n");
        auto_free char *line = copy(text, length);
        ck_assert_msg(text[length] == '\n', "no end of the line: %s", line);
        if (*line == '#')
            read_comment(in, line);
        else
            read_sample(in, line);
        text += length + 1;
    }
    for (size_t i = 0; i < in->family_count; i++)
        if (!strcmp(in->families[i].type, "histogram"))
            check_histogram(in, in->families[i].name);
    return in;
}

void exposition_free(struct exposition *in)
{
    for (size_t i = 0; i < in->sample_count; i++) {
        free(in->samples[i].series);
        free(in->samples[i].others);
        free(in->samples[i].name);
    }
    for (size_t i = 0; i < in->family_count; i++) {
        free(in->families[i].name);
        free(in->families[i].type);
    }
    free(in->samples);
    free(in->families);
    free(in);
}

double exposition_value(const struct exposition *in, const char *series)
{
    for (size_t i = 0; i < in->sample_count; i++)
        if (!strcmp(in->samples[i].series, series))
            return in->samples[i].value;
    return NAN;
}

const char *exposition_type(const struct exposition *in, const char *name)
{
    const struct family *family = find_family(in, name);
    return family ? family->type : "";
}

size_t exposition_samples(const struct exposition *in)
{
    return in->sample_count;
}
