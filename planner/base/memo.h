/* memo.h - a table of values by keys of any bytes. It grows, and never forgets. Nothing
 * can be listed: what comes of it does not depend on the order of hashes. */
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

/* With room for `expected` keys; more may come. */
struct het_memo het_memo_make(struct het_arena *arena, size_t expected);
/* The value of the key, which is copied: zero when it is new. It holds until the next
 * call. */
union het_memo_value *het_memo_at(struct het_memo *memo, const void *key, size_t length);

/* A key that is put together word by word. Zero is an empty one; `words` is freed by its
 * owner. */
struct het_memo_key {
    uint64_t *words;
    size_t count, capacity;
};

void het_memo_key_add(struct het_memo_key *key, uint64_t word);
/* By its bits: 0 and -0 are two. */
void het_memo_key_add_real(struct het_memo_key *key, double real);
/* As het_memo_at; the key is then empty again. */
union het_memo_value *het_memo_at_key(struct het_memo *memo, struct het_memo_key *key);

#endif
