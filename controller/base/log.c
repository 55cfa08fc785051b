#include "controller/base/log.h"

#include "controller/base/timestamp.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = { "debug", "info", "warning", "error", "off" };

struct log_levels {
    enum log_level others;
    struct {
        char name[24];
        enum log_level level;
    } components[LOG_COMPONENTS];
    size_t component_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct log_levels levels = { .others = LOG_INFO };
static int64_t time_ms;
static bool time_is_set;
static void (*line_sink)(void *context, const char *line, size_t length);
static void *line_sink_context;

void log_set_time(int64_t now_ms)
{
    pthread_mutex_lock(&lock);
    time_ms = now_ms;
    time_is_set = true;
    pthread_mutex_unlock(&lock);
}

void log_set_sink(void (*sink)(void *context, const char *line, size_t length),
                  void *context)
{
    pthread_mutex_lock(&lock);
    line_sink = sink;
    line_sink_context = context;
    pthread_mutex_unlock(&lock);
}

static enum log_level *find_level(struct log_levels *in, const char *name, size_t length)
{
    for (size_t i = 0; i < in->component_count; i++)
        if (strlen(in->components[i].name) == length &&
            !memcmp(in->components[i].name, name, length))
            return &in->components[i].level;
    return NULL;
}

bool log_is_enabled(enum log_level level, const char *component)
{
    pthread_mutex_lock(&lock);
    const enum log_level *own = find_level(&levels, component, strlen(component));
    bool is_enabled = level >= (own ? *own : levels.others);
    pthread_mutex_unlock(&lock);
    return is_enabled;
}

static int parse_level(const char *text, size_t length, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (strlen(level_names[i]) == length && !memcmp(level_names[i], text, length)) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

/* Takes one "component=level" or "level" of the list into `into`. */
static int take_level(struct log_levels *into, const char *text, size_t length,
                      struct het_error *err)
{
    const char *equals = memchr(text, '=', length);
    const char *level_text = equals ? equals + 1 : text;
    enum log_level level;
    if (parse_level(level_text, (size_t)(text + length - level_text), &level) < 0)
        return het_fail(err, HET_BAD_INPUT,
                        "log level \"%.*s\": expected [component=]level, level one of "
                        "debug, info, warning, error, off",
                        (int)(length < 80 ? length : 80), text);
    if (!equals) {
        into->others = level;
        return 0;
    }
    size_t name_length = (size_t)(equals - text);
    enum log_level *own = find_level(into, text, name_length);
    if (!own) {
        if (!name_length || name_length >= sizeof into->components[0].name ||
            into->component_count == LOG_COMPONENTS)
            return het_fail(err, HET_BAD_INPUT,
                            "log level: a component's name has 1 to %zu characters, and "
                            "at most %d have a level of their own",
                            sizeof into->components[0].name - 1, LOG_COMPONENTS);
        memcpy(into->components[into->component_count].name, text, name_length);
        own = &into->components[into->component_count++].level;
    }
    *own = level;
    return 0;
}

int log_set_levels(const char *text, struct het_error *err)
{
    pthread_mutex_lock(&lock);
    struct log_levels changed = levels;
    int result = 0;
    while (!result && *text) {
        size_t length = strcspn(text, ",");
        result = take_level(&changed, text, length, err);
        text += length;
        text += *text == ',';
    }
    if (!result)
        levels = changed;
    pthread_mutex_unlock(&lock);
    return result;
}

char *log_get_levels(void)
{
    pthread_mutex_lock(&lock);
    struct log_levels now = levels;
    pthread_mutex_unlock(&lock);
    char *text = xstrdup(level_names[now.others]);
    for (size_t i = now.component_count; i-- > 0;) {
        char *longer = xasprintf("%s=%s,%s", now.components[i].name,
                                 level_names[now.components[i].level], text);
        free(text);
        text = longer;
    }
    return text;
}

struct line {
    char bytes[LOG_LINE_BYTES];
    size_t length;
    bool is_cut;
};

static const char cut_mark[] = " cut=true";

/* Appends all of `text` or nothing: an escape is never cut in the middle. */
static void put(struct line *line, const char *text, size_t length)
{
    if (line->is_cut)
        return;
    if (length > sizeof line->bytes - sizeof cut_mark - 1 - line->length) {
        line->is_cut = true;
        return;
    }
    memcpy(line->bytes + line->length, text, length);
    line->length += length;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Length of the UTF-8 sequence at `text` and its code point; 0 if it is none (overlong,
 * surrogate, beyond U+10FFFF, cut short). */
static size_t read_utf8(const unsigned char *text, size_t left, uint32_t *ret_code)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t length = text[0] < 0x80             ? 1
                    : (text[0] & 0xe0) == 0xc0 ? 2
                    : (text[0] & 0xf0) == 0xe0 ? 3
                    : (text[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    if (!length || length > left)
        return 0;
    uint32_t code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return length;
}

/* Control characters, and those that break lines, hide, or turn the direction of text. */
static bool acts_on_terminal(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad ||
           code == 0x061c || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
           (code >= 0xe0000 && code <= 0xe0fff);
}

static void put_escaped(struct line *line, const char *text, size_t left)
{
    char escape[16];
    while (left) {
        uint32_t code = 0;
        size_t length = read_utf8((const unsigned char *)text, left, &code);
        if (!length) {
            snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*text);
            put_text(line, escape);
            length = 1;
        } else if (code == '"' || code == '\\') {
            put(line, "\\", 1);
            put(line, text, 1);
        } else if (code == '\n' || code == '\r' || code == '\t') {
            put_text(line, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
        } else if (acts_on_terminal(code)) {
            snprintf(escape, sizeof escape, "\\u{%" PRIx32 "}", code);
            put_text(line, escape);
        } else {
            put(line, text, length);
        }
        text += length;
        left -= length;
    }
}

static bool is_plain(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text <= ' ' || *text > '~' || *text == '"' || *text == '=' || *text == '\\')
            return false;
    return true;
}

static void put_string(struct line *line, const char *text)
{
    size_t length = strlen(text);
    if (length <= LOG_VALUE_BYTES && is_plain(text)) {
        put(line, text, length);
        return;
    }
    bool is_long = length > LOG_VALUE_BYTES;
    put(line, "\"", 1);
    put_escaped(line, text, is_long ? LOG_VALUE_BYTES : length);
    put_text(line, is_long ? "...\"" : "\"");
}

static void put_field(struct line *line, const struct log_field *field)
{
    char number[40];
    put(line, " ", 1);
    put_text(line, field->name);
    put(line, "=", 1);
    switch (field->type) {
    case LOG_TYPE_STR:
        put_string(line, field->text ? field->text : "");
        break;
    case LOG_TYPE_INT:
        snprintf(number, sizeof number, "%" PRId64, field->integer);
        put_text(line, number);
        break;
    case LOG_TYPE_REAL:
        snprintf(number, sizeof number, "%.9g", field->real);
        put_text(line, number);
        break;
    case LOG_TYPE_BOOL:
        put_text(line, field->truth ? "true" : "false");
        break;
    }
}

static void write_line(const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(STDERR_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* a failure here cannot be reported */
        bytes += written;
        length -= (size_t)written;
    }
}

void log_write(enum log_level level, const char *component, const char *event,
               const struct log_field *fields, size_t field_count)
{
    struct line line;
    line.length = 0;
    line.is_cut = false;
    pthread_mutex_lock(&lock);
    bool has_time = time_is_set;
    int64_t now_ms = time_ms;
    void (*sink)(void *, const char *, size_t) = line_sink;
    void *sink_context = line_sink_context;
    pthread_mutex_unlock(&lock);
    if (has_time) {
        char text[TIMESTAMP_SIZE];
        timestamp_format_micro(now_ms, text);
        put_text(&line, "time=");
        put_text(&line, text);
        put(&line, " ", 1);
    }
    put_text(&line, "level=");
    put_text(&line, level_names[level]);
    put_field(&line, &LOG_STR("component", component));
    put_field(&line, &LOG_STR("event", event));
    for (size_t i = 0; i < field_count; i++)
        put_field(&line, &fields[i]);
    if (line.is_cut) {
        memcpy(line.bytes + line.length, cut_mark, sizeof cut_mark - 1);
        line.length += sizeof cut_mark - 1;
    }
    if (sink) {
        line.bytes[line.length] = '\0';
        sink(sink_context, line.bytes, line.length);
        return;
    }
    line.bytes[line.length++] = '\n';
    write_line(line.bytes, line.length);
}
