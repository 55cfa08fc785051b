#include "controller/base/strmap.h"

#include "controller/base/digest.h"
#include "planner/modules.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16

static size_t hash(const char *key)
{
    uint64_t h = digest_bytes(0, key, strlen(key));
    return (size_t)(h ^ (h >> 32));
}

/* The slot that holds `key`, or the empty one where it belongs. */
static struct strmap_slot *slot_of(const struct strmap *map, const char *key)
{
    size_t mask = map->capacity - 1;
    for (size_t i = hash(key) & mask;; i = (i + 1) & mask) {
        struct strmap_slot *slot = &map->slots[i];
        if (!slot->key || !strcmp(slot->key, key))
            return slot;
    }
}

void strmap_fini(struct strmap *map)
{
    for (size_t i = 0; i < map->capacity; i++)
        free(map->slots[i].key);
    free(map->slots);
    *map = (struct strmap){ 0 };
}

void *strmap_find(const struct strmap *map, const char *key)
{
    return map->capacity ? slot_of(map, key)->value : NULL;
}

static void resize(struct strmap *map, size_t capacity)
{
    struct strmap other = { .capacity = capacity, .count = map->count };
    other.slots = xcalloc(capacity, sizeof *other.slots);
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key)
            *slot_of(&other, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = other;
}

void strmap_set(struct strmap *map, const char *key, void *value)
{
    if ((map->count + 1) * 4 > map->capacity * 3)
        resize(map, map->capacity ? map->capacity * 2 : FIRST_CAPACITY);
    struct strmap_slot *slot = slot_of(map, key);
    if (!slot->key) {
        slot->key = xstrdup(key);
        map->count++;
    }
    slot->value = value;
}

void *strmap_remove(struct strmap *map, const char *key)
{
    if (!map->capacity)
        return NULL;
    struct strmap_slot *hole = slot_of(map, key);
    if (!hole->key)
        return NULL;
    void *value = hole->value;
    free(hole->key);
    *hole = (struct strmap_slot){ 0 };
    map->count--;

    /* Later entries of the run may have been pushed past the hole: place them again. */
    size_t mask = map->capacity - 1;
    for (size_t i = ((size_t)(hole - map->slots) + 1) & mask; map->slots[i].key;
         i = (i + 1) & mask) {
        struct strmap_slot moved = map->slots[i];
        map->slots[i] = (struct strmap_slot){ 0 };
        *slot_of(map, moved.key) = moved;
    }
    if (map->capacity > FIRST_CAPACITY && map->count * 8 < map->capacity)
        resize(map, map->capacity / 2);
    return value;
}
