/* strmap.h - a map from strings to pointers: copies its keys and owns nothing else. It
 * has no order: callers that need one sort the entries. It also shrinks: there are at
 * most sixteen slots, or sixteen per entry. */
#ifndef CONTROLLER_BASE_STRMAP_H
#define CONTROLLER_BASE_STRMAP_H

#include <stddef.h>

struct strmap {
    struct strmap_slot {
        char *key; /* NULL: empty */
        void *value;
    } * slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
};

/* A zeroed struct is an empty map. */
void strmap_fini(struct strmap *map);
/* NULL if absent. */
void *strmap_find(const struct strmap *map, const char *key);
/* Sets or replaces; `value` must not be NULL. */
void strmap_set(struct strmap *map, const char *key, void *value);
/* Removes and returns the value; NULL if absent. */
void *strmap_remove(struct strmap *map, const char *key);

#endif
