#include "controller/simulate/api_server/storage.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    char *key; /* "namespace/name": etcd's order, in which '/' follows '-' and '.' */
    json_t *object;
};

struct table {
    struct slot *slots;
    size_t count, capacity;
};

struct storage {
    struct table *tables; /* one a kind, in the order of kinds[] */
    struct storage_change *changes;
    size_t change_count, change_capacity;
    size_t forgotten; /* changes before this one are compacted, their slots unused */
    uint64_t first;   /* revision of changes[0] */
};

struct storage *storage_new(void)
{
    struct storage *history = xcalloc(1, sizeof *history);
    history->tables = xcalloc(kind_count, sizeof *history->tables);
    history->first = 2;
    return history;
}

static void change_fini(struct storage_change *change)
{
    json_decref(change->before);
    json_decref(change->after);
    json_decref(change->object);
}

void storage_free(struct storage *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < kind_count; i++) {
        struct table *table = &history->tables[i];
        for (size_t k = 0; k < table->count; k++) {
            free(table->slots[k].key);
            json_decref(table->slots[k].object);
        }
        free(table->slots);
    }
    for (size_t i = history->forgotten; i < history->change_count; i++)
        change_fini(&history->changes[i]);
    free(history->tables);
    free(history->changes);
    free(history);
}

uint64_t storage_revision(const struct storage *history)
{
    return history->first + history->change_count - 1;
}

uint64_t storage_compacted(const struct storage *history)
{
    return history->first + history->forgotten - 1;
}

/* Closes the gap once more than half of the array is unused. */
static void squeeze(struct storage *history)
{
    if (history->forgotten * 2 < history->change_count)
        return;
    history->change_count -= history->forgotten;
    history->first += history->forgotten;
    memmove(history->changes, history->changes + history->forgotten,
            history->change_count * sizeof *history->changes);
    history->forgotten = 0;
}

void storage_compact(struct storage *history, uint64_t revision)
{
    while (history->forgotten < history->change_count &&
           history->first + history->forgotten <= revision)
        change_fini(&history->changes[history->forgotten++]);
    squeeze(history);
}

const struct storage_change *storage_change(const struct storage *history,
                                            uint64_t revision)
{
    assert(revision > storage_compacted(history));
    assert(revision <= storage_revision(history));
    return &history->changes[revision - history->first];
}

static struct table *table_of(const struct storage *history, const struct kind *kind)
{
    return &history->tables[kind - kinds];
}

/* The position of `key`, or where it would stand. */
static size_t slot_index(const struct table *table, const char *key, bool *ret_found)
{
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(table->slots[middle].key, key);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

static void insert(struct table *table, size_t index, struct slot slot)
{
    ARRAY_RESERVE(table->slots, &table->capacity, table->count + 1);
    memmove(table->slots + index + 1, table->slots + index,
            (table->count - index) * sizeof *table->slots);
    table->slots[index] = slot;
    table->count++;
}

static void take_out(struct table *table, size_t index)
{
    table->count--;
    memmove(table->slots + index, table->slots + index + 1,
            (table->count - index) * sizeof *table->slots);
}

static void record(struct storage *history, struct storage_change change)
{
    if (history->change_count - history->forgotten >= STORAGE_MAX)
        storage_compact(history, storage_revision(history) - STORAGE_MAX / 2);
    ARRAY_RESERVE(history->changes, &history->change_capacity, history->change_count + 1);
    change.revision = storage_revision(history) + 1;
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)change.revision);
    object_set(change.object, "metadata.resourceVersion", json_string(text));
    history->changes[history->change_count++] = change;
}

json_t *storage_put(struct storage *history, const struct kind *kind, json_t *object,
                    int64_t now_ms)
{
    struct table *table = table_of(history, kind);
    auto_free char *key = object_key(object);
    bool found;
    size_t index = slot_index(table, key, &found);
    json_t *before = found ? table->slots[index].object : NULL;
    record(history, (struct storage_change){ .at_ms = now_ms,
                                             .kind = kind,
                                             .before = before,
                                             .after = json_incref(object),
                                             .object = json_incref(object) });
    if (found)
        table->slots[index].object = object;
    else
        insert(table, index, (struct slot){ .key = TAKE(key), .object = object });
    return object;
}

json_t *storage_remove(struct storage *history, const struct kind *kind, json_t *object,
                       int64_t now_ms)
{
    struct table *table = table_of(history, kind);
    auto_free char *key = object_key(object);
    bool found;
    size_t index = slot_index(table, key, &found);
    assert(found);
    record(history, (struct storage_change){ .at_ms = now_ms,
                                             .kind = kind,
                                             .before = table->slots[index].object,
                                             .object = object });
    free(table->slots[index].key);
    take_out(table, index);
    return object;
}

json_t *storage_find(const struct storage *history, const struct kind *kind,
                     const char *ns, const char *name)
{
    const struct table *table = table_of(history, kind);
    auto_free char *key = xasprintf("%s%s%s", ns, *ns ? "/" : "", name);
    bool found;
    size_t index = slot_index(table, key, &found);
    return found ? table->slots[index].object : NULL;
}

size_t storage_count(const struct storage *history, const struct kind *kind)
{
    return table_of(history, kind)->count;
}

json_t *storage_at(const struct storage *history, const struct kind *kind, size_t index)
{
    return table_of(history, kind)->slots[index].object;
}

/* Undoes `change` in `view`, which borrows its objects and keys. A key that has to be
 * made is remembered in `made`, so that it can be freed. */
static void undo(struct table *view, const struct storage_change *change,
                 struct table *made)
{
    auto_free char *key = object_key(change->object);
    bool found;
    size_t index = slot_index(view, key, &found);
    if (found && change->before) {
        view->slots[index].object = change->before;
    } else if (found) {
        take_out(view, index);
    } else if (change->before) {
        struct slot slot = { .key = TAKE(key), .object = change->before };
        insert(view, index, slot);
        insert(made, made->count, slot);
    }
}

json_t *storage_list_at(const struct storage *history, const struct kind *kind,
                        uint64_t revision)
{
    const struct table *now = table_of(history, kind);
    struct table view = { 0 };
    struct table made = { 0 };
    for (size_t i = 0; i < now->count; i++)
        insert(&view, i, now->slots[i]);
    for (uint64_t r = storage_revision(history); r > revision; r--) {
        const struct storage_change *change = storage_change(history, r);
        if (change->kind == kind)
            undo(&view, change, &made);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < view.count; i++)
        json_array_append(list, view.slots[i].object);
    for (size_t i = 0; i < made.count; i++)
        free(made.slots[i].key);
    free(made.slots);
    free(view.slots);
    return list;
}
