#include "controller/kube/decode.h"

#include "controller/base/json_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- decoding ---- */

/* Whether the number of `length` characters is an integer that int64_t cannot hold. */
static bool is_wide_integer(const char *number, size_t length)
{
    bool is_negative = *number == '-';
    const char *digits = number + is_negative;
    length -= is_negative;
    if (length < 19)
        return false;
    for (size_t i = 0; i < length; i++)
        if (digits[i] < '0' || digits[i] > '9')
            return false;
    if (length > 19)
        return true;
    return memcmp(digits, is_negative ? "9223372036854775808" : "9223372036854775807",
                  19) > 0;
}

/* What a decoder cannot be asked to take: how deep it goes, and where integers end that
 * are to become reals. */
struct survey {
    size_t deepest;
    size_t *wide_ends;
    size_t wide_count, wide_capacity;
};

static const char *survey_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

static struct survey survey_text(const char *text, size_t length)
{
    struct survey survey = { 0 };
    size_t depth = 0;
    const char *end = text + length;
    for (const char *at = text; at < end;) {
        if (*at == '"') {
            at = survey_string(at, end);
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            size_t number = 1;
            while (at + number < end && strchr("0123456789+-.eE", at[number]) &&
                   at[number])
                number++;
            if (is_wide_integer(at, number)) {
                ARRAY_RESERVE(survey.wide_ends, &survey.wide_capacity,
                              survey.wide_count + 1);
                survey.wide_ends[survey.wide_count++] = (size_t)(at + number - text);
            }
            at += number;
        } else {
            if (*at == '{' || *at == '[')
                depth++;
            if ((*at == '}' || *at == ']') && depth)
                depth--;
            if (depth > survey.deepest)
                survey.deepest = depth;
            at++;
        }
    }
    return survey;
}

/* A copy of `text` with ".0" behind each integer that is too wide. */
static char *widen(const char *text, size_t length, const struct survey *survey,
                   size_t *ret_length)
{
    char *copy = xmalloc(length + 2 * survey->wide_count);
    size_t from = 0, to = 0;
    for (size_t i = 0; i < survey->wide_count; i++) {
        memcpy(copy + to, text + from, survey->wide_ends[i] - from);
        to += survey->wide_ends[i] - from;
        from = survey->wide_ends[i];
        copy[to++] = '.';
        copy[to++] = '0';
    }
    memcpy(copy + to, text + from, length - from);
    *ret_length = to + length - from;
    return copy;
}

json_t *kube_decode(const char *text, size_t length, struct het_error *err)
{
    if (length > KUBE_MAX_OBJECT_BYTES) {
        het_fail(err, HET_BAD_INPUT, "object of %zu bytes: at most %d are read", length,
                 KUBE_MAX_OBJECT_BYTES);
        return NULL;
    }
    struct survey survey = survey_text(text, length);
    auto_free size_t *wide_ends = survey.wide_ends;
    if (survey.deepest > KUBE_MAX_DEPTH) {
        het_fail(err, HET_BAD_INPUT, "object nested %zu deep: at most %d are read",
                 survey.deepest, KUBE_MAX_DEPTH);
        return NULL;
    }
    auto_free char *widened = wide_ends ? widen(text, length, &survey, &length) : NULL;
    json_error_t error;
    json_t *object = json_loadb(widened ? widened : text, length, JSON_ALLOW_NUL, &error);
    if (!object)
        het_fail(err, HET_BAD_INPUT, "not JSON: %s (byte %d)", error.text,
                 error.position);
    else if (!json_is_object(object)) {
        het_fail(err, HET_BAD_INPUT, "not a JSON object");
        json_decref(object);
        object = NULL;
    }
    return object;
}

/* ---- lists and events as text ---- */

/* The members of a list that count, each once at most. */
struct list_parts {
    struct json_span kind, api_version, metadata, items;
};

static int find_list_parts(const char *text, size_t length, struct list_parts *ret,
                           struct het_error *err)
{
    const struct {
        const char *key;
        struct json_span *span;
    } wanted[] = {
        { "kind", &ret->kind },
        { "apiVersion", &ret->api_version },
        { "metadata", &ret->metadata },
        { "items", &ret->items },
    };
    struct json_walk walk = json_walk_object(text, length);
    struct json_span key, value;
    while (json_next_member(&walk, &key, &value)) {
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            if (!json_span_is(key, wanted[i].key))
                continue;
            if (wanted[i].span->text)
                return het_fail(err, HET_BAD_INPUT, "two members \"%s\"", wanted[i].key);
            *wanted[i].span = value;
        }
    }
    if (!json_walk_is_complete(&walk))
        return het_fail(err, HET_BAD_INPUT,
                        "not a complete JSON object: wrong or cut at byte %zu of %zu",
                        json_walk_offset(&walk), length);
    return 0;
}

static int check_list_type(const struct kube_resource *resource,
                           const struct list_parts *parts, struct het_error *err)
{
    char kind[128] = "", api_version[128] = "";
    auto_free char *expected = xasprintf("%sList", resource->kind);
    json_copy_plain_string(parts->kind, kind, sizeof kind);
    if (strcmp(kind, expected) != 0)
        return het_fail(err, HET_BAD_INPUT, "expected kind %s, got \"%s\"", expected,
                        kind);
    if (!parts->api_version.text)
        return 0;
    json_copy_plain_string(parts->api_version, api_version, sizeof api_version);
    if (strcmp(api_version, resource->group_version) != 0)
        return het_fail(err, HET_BAD_INPUT, "expected apiVersion %s, got \"%s\"",
                        resource->group_version, api_version);
    return 0;
}

static int check_items(struct json_span items, struct het_error *err)
{
    if (!items.text)
        return het_fail(err, HET_BAD_INPUT, "no items");
    struct json_walk walk = json_walk_array(items.text, items.length);
    struct json_span item;
    while (json_next_element(&walk, &item))
        ;
    if (!json_walk_is_complete(&walk))
        return het_fail(err, HET_BAD_INPUT,
                        "items are not an array: wrong at byte %zu of it",
                        json_walk_offset(&walk));
    return 0;
}

int kube_split_list(const struct kube_resource *resource, const char *text, size_t length,
                    void (*on_item)(void *context, const char *item, size_t length),
                    void *context, char **ret_resource_version, char **ret_continue,
                    struct het_error *err)
{
    struct list_parts parts = { 0 };
    if (find_list_parts(text, length, &parts, err) < 0 ||
        check_list_type(resource, &parts, err) < 0 || check_items(parts.items, err) < 0)
        return het_wrap(err, "list of %s", resource->plural);
    if (!parts.metadata.text)
        return het_fail(err, HET_BAD_INPUT, "list of %s: no metadata", resource->plural);
    json_auto_t *metadata = kube_decode(parts.metadata.text, parts.metadata.length, err);
    if (!metadata)
        return het_wrap(err, "list of %s: metadata", resource->plural);
    const char *version = object_string(json_object_get(metadata, "resourceVersion"));
    if (!*version)
        return het_fail(err, HET_BAD_INPUT, "list of %s: no metadata.resourceVersion",
                        resource->plural);

    struct json_walk walk = json_walk_array(parts.items.text, parts.items.length);
    struct json_span item;
    while (json_next_element(&walk, &item))
        on_item(context, item.text, item.length);
    *ret_resource_version = xstrdup(version);
    *ret_continue = xstrdup(object_string(json_object_get(metadata, "continue")));
    return 0;
}

int kube_split_event(const char *text, size_t length, char ret_type[16],
                     const char **ret_object, size_t *ret_object_length,
                     struct het_error *err)
{
    struct json_walk walk = json_walk_object(text, length);
    struct json_span key, value, type = { 0 }, object = { 0 };
    while (json_next_member(&walk, &key, &value)) {
        if (json_span_is(key, "type"))
            type = value;
        if (json_span_is(key, "object"))
            object = value;
    }
    if (!json_walk_is_complete(&walk))
        return het_fail(err, HET_BAD_INPUT,
                        "watch event: not a complete JSON object: wrong or cut at byte "
                        "%zu of %zu",
                        json_walk_offset(&walk), length);
    if (!object.text || *object.text != '{' || !type.text ||
        !json_copy_plain_string(type, ret_type, 16))
        return het_fail(err, HET_BAD_INPUT, "watch event: no type or no object");
    *ret_object = object.text;
    *ret_object_length = object.length;
    return 0;
}

int kube_scan_identity(const struct kube_resource *resource, const char *text,
                       size_t length, struct kube_identity *ret)
{
    memset(ret, 0, sizeof *ret);
    const struct {
        const char *key;
        char *text;
        size_t size;
    } wanted[] = {
        { "namespace", ret->ns, sizeof ret->ns },
        { "name", ret->name, sizeof ret->name },
        { "uid", ret->uid, sizeof ret->uid },
        { "resourceVersion", ret->version, sizeof ret->version },
    };
    struct json_span metadata, value;
    if (!json_find_member(text, length, "metadata", &metadata))
        return -1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (json_find_member(metadata.text, metadata.length, wanted[i].key, &value))
            json_copy_plain_string(value, wanted[i].text, wanted[i].size);
    return *ret->name && (!resource->namespaced || *ret->ns) ? 0 : -1;
}
