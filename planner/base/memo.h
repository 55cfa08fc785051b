/* memo.h - a table of values by keys of any bytes. It grows and drops nothing. It has no
 * listing, so results cannot depend on the order of hashes. */
#ifndef HET_BASE_MEMO_H
#define HET_BASE_MEMO_H

#include "planner/base/arena.h"

#include <stdint.h>

union het_memo_value {
    void *pointer;
    size_t number;
};

struct het_memo {
    struct het_arena *arena; /* entries and copies of keys are in it */
    struct het_memo_entry *entries;
    size_t count, capacity;
};

/* With room for `expected` keys; it grows beyond that. */
struct het_memo het_memo_make(struct het_arena *arena, size_t expected);
/* The value of `key`, which is copied; zero for a new key. The pointer is valid until the
 * next call. */
union het_memo_value *het_memo_at(struct het_memo *memo, const void *key, size_t length);

/* A key built word by word. Zero is an empty one; its owner frees `words`. */
struct het_memo_key {
    uint64_t *words;
    size_t count, capacity;
};

void het_memo_key_add(struct het_memo_key *key, uint64_t word);
/* By its bits: 0 and -0 differ. */
void het_memo_key_add_real(struct het_memo_key *key, double real);
/* As het_memo_at; the key is then empty again. */
union het_memo_value *het_memo_at_key(struct het_memo *memo, struct het_memo_key *key);

#endif
