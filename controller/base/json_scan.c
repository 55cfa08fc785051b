#include "controller/base/json_scan.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* `at` is the opening quote; returns what follows the closing one, NULL if there is none.
 */
static const char *skip_string(const char *at, const char *end)
{
    const char *from = at + 1;
    while (from < end) {
        const char *quote = memchr(from, '"', (size_t)(end - from));
        if (!quote)
            return NULL;
        size_t slashes = 0;
        while (quote - slashes > from && quote[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        from = quote + 1;
        if (slashes % 2 == 0)
            return from;
    }
    return NULL;
}

/* `at` is the opening bracket. */
static const char *skip_brackets(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_string(at, end);
            if (!at)
                return NULL;
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (!--depth)
                return at + 1;
            break;
        }
        at++;
    }
    return NULL;
}

static bool is_literal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-' || c == '+' || c == '.';
}

static const char *skip_value(const char *at, const char *end)
{
    if (at == end)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '{' || *at == '[')
        return skip_brackets(at, end);
    const char *start = at;
    while (at < end && is_literal(*at))
        at++;
    return at == start ? NULL : at;
}

static struct json_walk walk_between(const char *text, size_t length, char opening,
                                     char closing)
{
    struct json_walk walk = { .start = text, .end = text + length, .closing = closing };
    walk.at = skip_space(text, walk.end);
    if (walk.at < walk.end && *walk.at == opening) {
        walk.at++;
        walk.state = JSON_WALK_FIRST;
    } else {
        walk.state = JSON_WALK_BAD;
    }
    return walk;
}

struct json_walk json_walk_object(const char *text, size_t length)
{
    return walk_between(text, length, '{', '}');
}

struct json_walk json_walk_array(const char *text, size_t length)
{
    return walk_between(text, length, '[', ']');
}

static bool stop(struct json_walk *walk)
{
    walk->state = JSON_WALK_BAD;
    return false;
}

/* Goes to the start of the next member or element; false at the end, or if there is no
 * way to one. */
static bool go_to_next(struct json_walk *walk)
{
    if (walk->state != JSON_WALK_FIRST && walk->state != JSON_WALK_NEXT)
        return false;
    walk->at = skip_space(walk->at, walk->end);
    if (walk->at == walk->end)
        return stop(walk);
    if (*walk->at == walk->closing) {
        walk->at = skip_space(walk->at + 1, walk->end);
        walk->state = walk->at == walk->end ? JSON_WALK_DONE : JSON_WALK_BAD;
        return false;
    }
    if (walk->state == JSON_WALK_NEXT) {
        if (*walk->at != ',')
            return stop(walk);
        walk->at = skip_space(walk->at + 1, walk->end);
    }
    walk->state = JSON_WALK_NEXT;
    return true;
}

bool json_next_element(struct json_walk *walk, struct json_span *ret_value)
{
    if (!go_to_next(walk))
        return false;
    const char *after = skip_value(walk->at, walk->end);
    if (!after)
        return stop(walk);
    *ret_value = (struct json_span){ walk->at, (size_t)(after - walk->at) };
    walk->at = after;
    return true;
}

bool json_next_member(struct json_walk *walk, struct json_span *ret_key,
                      struct json_span *ret_value)
{
    if (!go_to_next(walk))
        return false;
    if (walk->at == walk->end || *walk->at != '"')
        return stop(walk);
    const char *after = skip_string(walk->at, walk->end);
    if (!after)
        return stop(walk);
    struct json_span key = { walk->at + 1, (size_t)(after - walk->at) - 2 };
    walk->at = skip_space(after, walk->end);
    if (walk->at == walk->end || *walk->at != ':')
        return stop(walk);
    walk->at = skip_space(walk->at + 1, walk->end);
    after = skip_value(walk->at, walk->end);
    if (!after)
        return stop(walk);
    *ret_key = key;
    *ret_value = (struct json_span){ walk->at, (size_t)(after - walk->at) };
    walk->at = after;
    return true;
}

bool json_walk_is_complete(const struct json_walk *walk)
{
    return walk->state == JSON_WALK_DONE;
}

size_t json_walk_offset(const struct json_walk *walk)
{
    return (size_t)(walk->at - walk->start);
}

bool json_find_member(const char *text, size_t length, const char *key,
                      struct json_span *ret_value)
{
    struct json_walk walk = json_walk_object(text, length);
    struct json_span name, value, found = { 0 };
    while (json_next_member(&walk, &name, &value))
        if (json_span_is(name, key))
            found = value;
    if (!found.text || !json_walk_is_complete(&walk))
        return false;
    *ret_value = found;
    return true;
}

bool json_copy_plain_string(struct json_span value, char *ret_text, size_t size)
{
    if (value.length < 2 || *value.text != '"' || value.length - 2 >= size)
        return false;
    size_t length = value.length - 2;
    for (size_t i = 0; i < length; i++)
        if (value.text[i + 1] == '\\' || (unsigned char)value.text[i + 1] < ' ')
            return false;
    memcpy(ret_text, value.text + 1, length);
    ret_text[length] = '\0';
    return true;
}

bool json_span_is(struct json_span span, const char *text)
{
    return span.length == strlen(text) && !memcmp(span.text, text, span.length);
}
