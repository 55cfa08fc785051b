#include "controller/simulate/api_server/route.h"

#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/refusal.h"
#include "planner/modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes `length` bytes; in a query '+' is a space. */
static char *decode(const char *text, size_t length, bool is_query)
{
    char *out = xmalloc(length + 1);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low >= 0) {
            out[used++] = (char)(high * 16 + low);
            i += 2;
        } else {
            out[used++] = is_query && text[i] == '+' ? ' ' : text[i];
        }
    }
    out[used] = '\0';
    return out;
}

static json_t *parse_query(const char *text)
{
    json_t *query = json_object();
    while (text && *text) {
        size_t length = strcspn(text, "&");
        const char *equals = memchr(text, '=', length);
        size_t name_length = equals ? (size_t)(equals - text) : length;
        auto_free char *name = decode(text, name_length, true);
        auto_free char *value =
            equals ? decode(equals + 1, length - name_length - 1, true) : xstrdup("");
        json_object_set_new(query, name, json_string(value));
        text += length + (text[length] == '&');
    }
    return query;
}

enum { MAX_SEGMENTS = 9 };

/* Cuts "/a/b/c" at its slashes; the segments are freed by the caller. */
static size_t split(const char *path, char *segments[MAX_SEGMENTS])
{
    size_t count = 0;
    while (*path == '/' && path[1] && count < MAX_SEGMENTS) {
        size_t length = strcspn(path + 1, "/");
        segments[count++] = decode(path + 1, length, false);
        path += 1 + length;
    }
    return count;
}

static char *segment_or_empty(char *const *segments, size_t count, size_t index)
{
    return xstrdup(index < count ? segments[index] : "");
}

/* What follows the group and version: [namespaces NS] PLURAL [NAME [SUBRESOURCE]]. */
static bool resolve(const char *group, const char *version, char *const *segments,
                    size_t count, struct route *ret)
{
    bool is_subresource =
        count > 2 && (!strcmp(segments[2], "status") || !strcmp(segments[2], "finalize"));
    bool in_namespace = count > 2 && !strcmp(segments[0], "namespaces") &&
                        !is_subresource;
    size_t at = in_namespace ? 2 : 0;
    if (at >= count || count - at > 3)
        return false;
    ret->kind = kind_find(group, version, segments[at]);
    if (!ret->kind || (in_namespace && !ret->kind->namespaced))
        return false;
    free(ret->ns);
    free(ret->name);
    free(ret->subresource);
    ret->ns = xstrdup(in_namespace ? segments[1] : "");
    ret->name = segment_or_empty(segments, count, at + 1);
    ret->subresource = segment_or_empty(segments, count, at + 2);
    /* One object of a namespaced kind is only found inside its namespace. */
    return !*ret->name || in_namespace == ret->kind->namespaced;
}

static bool is_served(const struct route *route)
{
    if (!*route->subresource)
        return true;
    return !strcmp(route->subresource, "status") && route->kind->has_status;
}

json_t *route_parse(const char *text, struct route *ret)
{
    size_t length = strcspn(text, "?");
    *ret =
        (struct route){ .ns = xstrdup(""),
                        .name = xstrdup(""),
                        .subresource = xstrdup(""),
                        .query = parse_query(text[length] ? text + length + 1 : NULL) };
    ret->path = xmalloc(length + 1);
    memcpy(ret->path, text, length);
    ret->path[length] = '\0';

    char *segments[MAX_SEGMENTS];
    size_t count = split(ret->path, segments);
    bool found = false;
    if (count > 2 && !strcmp(segments[0], "api"))
        found = resolve("", segments[1], segments + 2, count - 2, ret);
    else if (count > 3 && !strcmp(segments[0], "apis"))
        found = resolve(segments[1], segments[2], segments + 3, count - 3, ret);
    else if (count == 1)
        found = true; /* /version, /healthz: the caller knows */
    for (size_t i = 0; i < count; i++)
        free(segments[i]);
    if (found && (!ret->kind || is_served(ret)))
        return NULL;
    return refusal_of(404, "NotFound",
                      "the server could not find the requested resource");
}

void route_fini(struct route *route)
{
    free(route->path);
    free(route->ns);
    free(route->name);
    free(route->subresource);
    json_decref(route->query);
}

const char *route_query(const struct route *route, const char *name)
{
    const char *value = json_string_value(json_object_get(route->query, name));
    return value ? value : "";
}

bool route_query_is_true(const struct route *route, const char *name)
{
    const char *value = route_query(route, name);
    return !strcmp(value, "true") || !strcmp(value, "1");
}
