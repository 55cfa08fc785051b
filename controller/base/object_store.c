#include "controller/base/object_store.h"

#include "controller/base/digest.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { DEAD_UIDS = 4096 };

/* One stored object. The strings are in the object, which is never changed. */
struct entry {
    json_t *object;
    const char *ns, *name, *uid, *version;
    const char *owner_uid; /* "" without a controller */
};

/* Pointers to entries in some order. */
struct list {
    struct entry **entries;
    size_t count, capacity;
};

struct collection {
    const struct kube_resource *resource;
    struct list by_name;  /* (namespace, name) */
    struct list by_owner; /* (owner uid, namespace, name); only what has an owner */
};

/* A ring of removed uids. The hashes stand apart so that a search reads one array. */
struct graveyard {
    uint64_t hashes[DEAD_UIDS];
    struct {
        char *uid;
        char *version; /* NULL: no version of it is ever taken again */
        uint64_t ordinal;
    } dead[DEAD_UIDS];
    size_t next;
    uint64_t burials;
};

struct store {
    struct collection *collections;
    size_t collection_count, collection_capacity;
    struct graveyard graveyard;
};

struct store *store_new(void)
{
    return xcalloc(1, sizeof(struct store));
}

static void entry_free(struct entry *entry)
{
    json_decref(entry->object);
    free(entry);
}

void store_free(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->collection_count; i++) {
        struct collection *collection = &store->collections[i];
        for (size_t e = 0; e < collection->by_name.count; e++)
            entry_free(collection->by_name.entries[e]);
        free(collection->by_name.entries);
        free(collection->by_owner.entries);
    }
    free(store->collections);
    for (size_t i = 0; i < DEAD_UIDS; i++) {
        free(store->graveyard.dead[i].uid);
        free(store->graveyard.dead[i].version);
    }
    free(store);
}

/* ---- the dead ---- */

/* Index of `uid` in the graveyard, DEAD_UIDS if it is not there. */
static size_t find_dead(const struct graveyard *graveyard, const char *uid)
{
    uint64_t hash = digest_bytes(0, uid, strlen(uid));
    for (size_t i = 0; i < DEAD_UIDS; i++)
        if (graveyard->hashes[i] == hash && graveyard->dead[i].uid &&
            !strcmp(graveyard->dead[i].uid, uid))
            return i;
    return DEAD_UIDS;
}

static void dig_up(struct graveyard *graveyard, size_t index)
{
    free(graveyard->dead[index].uid);
    free(graveyard->dead[index].version);
    graveyard->dead[index].uid = NULL;
    graveyard->dead[index].version = NULL;
}

static void bury(struct graveyard *graveyard, const char *uid, const char *version)
{
    if (!*uid)
        return;
    size_t index = find_dead(graveyard, uid);
    if (index == DEAD_UIDS) {
        index = graveyard->next;
        graveyard->next = (graveyard->next + 1) % DEAD_UIDS;
    }
    /* Copied first: they may point into the object that is freed now. */
    char *uid_copy = xstrdup(uid);
    char *version_copy = version ? xstrdup(version) : NULL;
    dig_up(graveyard, index);
    graveyard->hashes[index] = digest_bytes(0, uid, strlen(uid));
    graveyard->dead[index].uid = uid_copy;
    graveyard->dead[index].version = version_copy;
    graveyard->dead[index].ordinal = ++graveyard->burials;
}

static bool is_dead(const struct graveyard *graveyard, const struct entry *entry)
{
    size_t index = find_dead(graveyard, entry->uid);
    if (index == DEAD_UIDS)
        return false;
    const char *version = graveyard->dead[index].version;
    return !version || kube_compare_versions(entry->version, version) <= 0;
}

/* ---- ordered lists ---- */

typedef int compare_entries(const struct entry *a, const struct entry *b);

static int compare_names(const struct entry *a, const struct entry *b)
{
    int order = strcmp(a->ns, b->ns);
    return order ? order : strcmp(a->name, b->name);
}

static int compare_owners(const struct entry *a, const struct entry *b)
{
    int order = strcmp(a->owner_uid, b->owner_uid);
    return order ? order : compare_names(a, b);
}

/* Index of the first entry that is not before `key`. */
static size_t lower_bound(const struct list *list, const struct entry *key,
                          compare_entries *compare)
{
    size_t low = 0, high = list->count;
    /* A list of the server comes in order: most searches end behind the last one. */
    if (high && compare(list->entries[high - 1], key) < 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(list->entries[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_insert(struct list *list, struct entry *entry, compare_entries *compare)
{
    ARRAY_RESERVE(list->entries, &list->capacity, list->count + 1);
    size_t at = lower_bound(list, entry, compare);
    memmove(list->entries + at + 1, list->entries + at,
            (list->count - at) * sizeof(struct entry *));
    list->entries[at] = entry;
    list->count++;
}

static void list_remove(struct list *list, const struct entry *entry,
                        compare_entries *compare)
{
    size_t at = lower_bound(list, entry, compare);
    assert(at < list->count);
    assert(list->entries[at] == entry);
    list->count--;
    memmove(list->entries + at, list->entries + at + 1,
            (list->count - at) * sizeof(struct entry *));
}

static struct entry *list_find(const struct list *list, const struct entry *key)
{
    size_t at = lower_bound(list, key, compare_names);
    if (at == list->count || compare_names(list->entries[at], key))
        return NULL;
    return list->entries[at];
}

/* ---- collections ---- */

static struct collection *find_collection(const struct store *store,
                                          const struct kube_resource *resource)
{
    for (size_t i = 0; i < store->collection_count; i++)
        if (store->collections[i].resource == resource)
            return &store->collections[i];
    return NULL;
}

static struct collection *get_collection(struct store *store,
                                         const struct kube_resource *resource)
{
    struct collection *found = find_collection(store, resource);
    if (found)
        return found;
    ARRAY_RESERVE(store->collections, &store->collection_capacity,
                  store->collection_count + 1);
    found = &store->collections[store->collection_count++];
    *found = (struct collection){ .resource = resource };
    return found;
}

static void take_out(struct collection *collection, struct entry *entry)
{
    list_remove(&collection->by_name, entry, compare_names);
    if (*entry->owner_uid)
        list_remove(&collection->by_owner, entry, compare_owners);
    entry_free(entry);
}

static struct entry describe(json_t *object)
{
    return (struct entry){
        .object = object,
        .ns = kube_namespace(object),
        .name = kube_name(object),
        .uid = kube_uid(object),
        .version = kube_resource_version(object),
        .owner_uid = kube_controller_uid(object),
    };
}

static void put_in(struct store *store, struct collection *collection,
                   const struct entry *described, struct entry *held)
{
    struct entry *entry = xmalloc(sizeof *entry);
    *entry = *described;
    json_incref(entry->object);
    if (held) {
        if (strcmp(held->uid, entry->uid) != 0)
            bury(&store->graveyard, held->uid, entry->version);
        take_out(collection, held);
    }
    list_insert(&collection->by_name, entry, compare_names);
    if (*entry->owner_uid)
        list_insert(&collection->by_owner, entry, compare_owners);
}

bool store_put(struct store *store, const struct kube_resource *resource, json_t *object)
{
    struct entry described = describe(object);
    if (!*described.name || is_dead(&store->graveyard, &described))
        return false;
    struct collection *collection = get_collection(store, resource);
    struct entry *held = list_find(&collection->by_name, &described);
    if (held) {
        int order = kube_compare_versions(described.version, held->version);
        if (order < 0 || (order == 0 && !strcmp(described.uid, held->uid)))
            return false;
    }
    put_in(store, collection, &described, held);
    return true;
}

uint64_t store_removals(const struct store *store)
{
    return store->graveyard.burials;
}

bool store_put_read(struct store *store, const struct kube_resource *resource,
                    json_t *object, uint64_t sent_at)
{
    size_t dead = find_dead(&store->graveyard, kube_uid(object));
    if (dead != DEAD_UIDS && store->graveyard.dead[dead].ordinal <= sent_at)
        dig_up(&store->graveyard, dead);
    return store_put(store, resource, object);
}

bool store_replace(struct store *store, const struct kube_resource *resource,
                   json_t *object)
{
    struct entry described = describe(object);
    if (!*described.name)
        return false;
    size_t dead = find_dead(&store->graveyard, described.uid);
    if (dead != DEAD_UIDS)
        dig_up(&store->graveyard, dead);
    struct collection *collection = get_collection(store, resource);
    struct entry *held = list_find(&collection->by_name, &described);
    if (held && !strcmp(described.uid, held->uid) &&
        !kube_compare_versions(described.version, held->version))
        return false;
    put_in(store, collection, &described, held);
    return true;
}

static struct entry *find_entry(const struct store *store,
                                const struct kube_resource *resource, const char *ns,
                                const char *name)
{
    const struct collection *collection = find_collection(store, resource);
    const struct entry key = { .ns = ns ? ns : "", .name = name };
    return collection ? list_find(&collection->by_name, &key) : NULL;
}

static bool remove_and_bury(struct store *store, const struct kube_resource *resource,
                            const char *ns, const char *name, const char *uid,
                            const char *version)
{
    struct entry *held = find_entry(store, resource, ns, name);
    if (!held || (uid && strcmp(held->uid, uid) != 0)) {
        /* Its creation may still be on the way here. */
        if (uid)
            bury(&store->graveyard, uid, version);
        return false;
    }
    bury(&store->graveyard, held->uid, version);
    take_out(get_collection(store, resource), held);
    return true;
}

bool store_remove(struct store *store, const struct kube_resource *resource,
                  const char *ns, const char *name, const char *uid)
{
    return remove_and_bury(store, resource, ns, name, uid, NULL);
}

bool store_remove_at(struct store *store, const struct kube_resource *resource,
                     const char *ns, const char *name, const char *uid,
                     const char *version)
{
    return remove_and_bury(store, resource, ns, name, uid, version);
}

json_t *store_find(const struct store *store, const struct kube_resource *resource,
                   const char *ns, const char *name)
{
    struct entry *found = find_entry(store, resource, ns, name);
    return found ? found->object : NULL;
}

size_t store_count(const struct store *store, const struct kube_resource *resource)
{
    const struct collection *collection = find_collection(store, resource);
    return collection ? collection->by_name.count : 0;
}

json_t *store_at(const struct store *store, const struct kube_resource *resource,
                 size_t index)
{
    const struct collection *collection = find_collection(store, resource);
    assert(collection);
    assert(index < collection->by_name.count);
    return collection->by_name.entries[index]->object;
}

size_t store_find_owned(const struct store *store, const struct kube_resource *resource,
                        const char *uid, struct het_arena *arena, json_t ***ret_objects)
{
    *ret_objects = NULL;
    const struct collection *collection = find_collection(store, resource);
    if (!collection || !*uid)
        return 0;
    const struct list *list = &collection->by_owner;
    const struct entry key = { .owner_uid = uid, .ns = "", .name = "" };
    size_t first = lower_bound(list, &key, compare_owners);
    size_t end = first;
    while (end < list->count && !strcmp(list->entries[end]->owner_uid, uid))
        end++;
    if (end == first)
        return 0;
    *ret_objects = HET_ARENA_ARRAY(arena, json_t *, end - first);
    for (size_t i = first; i < end; i++)
        (*ret_objects)[i - first] = list->entries[i]->object;
    return end - first;
}

size_t store_total(const struct store *store)
{
    size_t total = 0;
    for (size_t i = 0; i < store->collection_count; i++)
        total += store->collections[i].by_name.count;
    return total;
}
