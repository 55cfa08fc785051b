/* json_scan.h - finds the parts of a JSON text without decoding it, so that a value that
 * cannot be decoded does not hide its neighbours. It follows only strings and brackets: a
 * value may still contain invalid JSON, but a truncated text is never taken for a
 * complete one. */
#ifndef CONTROLLER_BASE_JSON_SCAN_H
#define CONTROLLER_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of borrowed text. */
struct json_span {
    const char *text;
    size_t length;
};

/* Walks the members of an object or the elements of an array:
 *
 *   struct json_walk walk = json_walk_object(text, length);
 *   while (json_next_member(&walk, &key, &value)) ...
 *   if (!json_walk_is_complete(&walk)) ...   the text ended early, or is malformed
 *
 * Only white space may precede and follow the object or array. Keys are returned without
 * quotes, with their escapes unchanged. */
struct json_walk {
    const char *start, *at, *end;
    char closing;
    enum { JSON_WALK_FIRST, JSON_WALK_NEXT, JSON_WALK_DONE, JSON_WALK_BAD } state;
};

struct json_walk json_walk_object(const char *text, size_t length);
struct json_walk json_walk_array(const char *text, size_t length);
bool json_next_member(struct json_walk *walk, struct json_span *ret_key,
                      struct json_span *ret_value);
bool json_next_element(struct json_walk *walk, struct json_span *ret_value);
bool json_walk_is_complete(const struct json_walk *walk);
/* Bytes read so far: where the text is wrong, if the walk ended incomplete. */
size_t json_walk_offset(const struct json_walk *walk);

/* The value of the last member `key` of the object `text`. False if there is none, or the
 * object is not complete. */
bool json_find_member(const char *text, size_t length, const char *key,
                      struct json_span *ret_value);
/* Copies a string value that has no escapes in it. False if `value` is anything else or
 * longer than `size - 1` bytes. */
bool json_copy_plain_string(struct json_span value, char *ret_text, size_t size);
/* Whether `span` is exactly `text`. */
bool json_span_is(struct json_span span, const char *text);

#endif
