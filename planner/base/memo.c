#include "planner/base/memo.h"

#include <string.h>

struct het_memo_entry {
    const void *key; /* NULL: free */
    size_t length;
    uint64_t hash;
    union het_memo_value value;
};

/* FNV-1a over words, with the high bits folded in. */
static uint64_t hash_bytes(const void *key, size_t length)
{
    const unsigned char *at = key;
    uint64_t hash = 0xcbf29ce484222325u ^ length, word;
    for (; length >= sizeof word; length -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, at, length);
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static struct het_memo_entry *find_entry(const struct het_memo *memo, const void *key,
                                         size_t length, uint64_t hash)
{
    size_t slot = hash & (memo->capacity - 1);
    for (;; slot = (slot + 1) & (memo->capacity - 1)) {
        struct het_memo_entry *entry = &memo->entries[slot];
        if (!entry->key || (entry->hash == hash && entry->length == length &&
                            !memcmp(entry->key, key, length)))
            return entry;
    }
}

struct het_memo het_memo_make(struct het_arena *arena, size_t expected)
{
    struct het_memo memo = { .arena = arena, .capacity = 16 };
    while (memo.capacity < 2 * expected)
        memo.capacity *= 2;
    memo.entries = HET_ARENA_ARRAY(arena, struct het_memo_entry, memo.capacity);
    return memo;
}

static void grow(struct het_memo *memo)
{
    struct het_memo larger = het_memo_make(memo->arena, memo->capacity);
    for (size_t i = 0; i < memo->capacity; i++) {
        const struct het_memo_entry *entry = &memo->entries[i];
        if (entry->key)
            *find_entry(&larger, entry->key, entry->length, entry->hash) = *entry;
    }
    larger.count = memo->count;
    *memo = larger;
}

union het_memo_value *het_memo_at(struct het_memo *memo, const void *key, size_t length)
{
    uint64_t hash = hash_bytes(key, length);
    struct het_memo_entry *entry = find_entry(memo, key, length, hash);
    if (entry->key)
        return &entry->value;
    if (2 * (memo->count + 1) > memo->capacity) {
        grow(memo);
        entry = find_entry(memo, key, length, hash);
    }
    void *kept = het_arena_alloc(memo->arena, length);
    memcpy(kept, key, length);
    *entry = (struct het_memo_entry){ .key = kept, .length = length, .hash = hash };
    memo->count++;
    return &entry->value;
}

void het_memo_key_add(struct het_memo_key *key, uint64_t word)
{
    ARRAY_RESERVE(key->words, &key->capacity, key->count + 1);
    key->words[key->count++] = word;
}

void het_memo_key_add_real(struct het_memo_key *key, double real)
{
    uint64_t word;
    memcpy(&word, &real, sizeof word);
    het_memo_key_add(key, word);
}

union het_memo_value *het_memo_at_key(struct het_memo *memo, struct het_memo_key *key)
{
    size_t length = key->count * sizeof *key->words;
    key->count = 0;
    return het_memo_at(memo, key->words, length);
}
