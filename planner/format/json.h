/* json.h - JSON texts in and out, and a view of a value that knows its place in the
 * document, so that every error names its path ("nodes[2].memory_gb: ..."). */
#ifndef HET_FORMAT_JSON_H
#define HET_FORMAT_JSON_H

#include "planner/base/arena.h"
#include "planner/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define HET_MAX_JSON_BYTES ((size_t)64 << 20)
#define HET_MAX_NAME_BYTES 253u

/* Decodes one JSON text; HET_BAD_INPUT with line and column. `what` names it in errors.
 * Refuses duplicate members and texts above HET_MAX_JSON_BYTES. */
int het_json_decode(const char *text, size_t length, const char *what, json_t **ret,
                    struct het_error *err);
/* Canonical text: keys sorted, no white space, shortest round-trip numbers. The caller
 * frees it. */
char *het_json_canonical(const json_t *json);
/* The same laid out for people: members sorted, two blanks a level, lists of numbers on
 * one line. Ends with a newline. */
char *het_json_pretty(const json_t *json);

/* json_pack of what we made ourselves: cannot fail. A new reference. */
json_t *het_json_pack(const char *format, ...);
/* A number, at most INT64_MAX. */
json_t *het_json_u64(uint64_t value);
/* A JSON string; bytes that are not UTF-8, as where a message was cut, become '?'. */
json_t *het_json_text(const char *text);

/* A value in a document. Views live on the stack; a child must not outlive its parent. */
struct het_view {
    const json_t *json; /* NULL: absent (null counts as absent) */
    const struct het_view *parent;
    const char *key; /* NULL: an entry of a list, at `index`, or the root */
    size_t index;
};

struct het_view het_view_root(const json_t *json);
/* Member `key`; absent if `object` is none. */
struct het_view het_view_get(const struct het_view *object, const char *key);
struct het_view het_view_at(const struct het_view *array, size_t index);

/* Fails with HET_BAD_INPUT, "path: " and the message. */
int het_view_fail(const struct het_view *view, struct het_error *err, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));
/* Puts the path before the message of `err`. */
int het_view_wrap(const struct het_view *view, struct het_error *err);

/* Each fails if the value has the wrong form. An absent value is no failure and leaves
 * `ret` alone; only het_view_need fails on it. */
int het_view_need(const struct het_view *view, struct het_error *err);
int het_view_object(const struct het_view *view, struct het_error *err);
/* Fails on a member of the object that is not one of `names`, which end with NULL: a
 * misspelt field must not pass for one that was left out. */
int het_view_members(const struct het_view *view, const char *const *names,
                     struct het_error *err);
int het_view_array(const struct het_view *view, size_t most, size_t *ret_count,
                   struct het_error *err);
/* A copy in `arena`: 1 to HET_MAX_NAME_BYTES bytes, none of them a control character. */
int het_view_name(const struct het_view *view, struct het_arena *arena, const char **ret,
                  struct het_error *err);
/* Also of a text that is a number ("3.67"). */
int het_view_number(const struct het_view *view, double low, double high, double *ret,
                    struct het_error *err);
/* Also of a real number that is whole. */
int het_view_u32(const struct het_view *view, uint32_t low, uint32_t high, uint32_t *ret,
                 struct het_error *err);
int het_view_u64(const struct het_view *view, uint64_t low, uint64_t high, uint64_t *ret,
                 struct het_error *err);
int het_view_i32(const struct het_view *view, int32_t low, int32_t high, int32_t *ret,
                 struct het_error *err);
/* Member `key` of `object`: GB/s, as bytes/s; GiB, at least `low`, as bytes. */
int het_view_bandwidth(const struct het_view *object, const char *key, double *ret,
                       struct het_error *err);
int het_view_gibibytes(const struct het_view *object, const char *key, double low,
                       uint64_t *ret, struct het_error *err);
/* Which of `names`, which end with NULL, the text is. */
int het_view_choice(const struct het_view *view, const char *const *names, int *ret,
                    struct het_error *err);
int het_view_bool(const struct het_view *view, bool *ret, struct het_error *err);

#endif
