/* A record, as `heterotrain-controller replay` reads it: what is accepted can be decided
 * on, and the decision is written and is the same when it is made again. */
#include "tests/fuzz/fuzz.h"

#include "controller/reconcile/reconcile.h"
#include "controller/record/snapshot_json.h"

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    struct record record;
    if (record_read(arena, json, &record, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        struct decision first, second;
        reconcile(arena, &record.snapshot, &first);
        reconcile(arena, &record.snapshot, &second);
        json_auto_t *one = record_decision(&record.snapshot, &first, true);
        json_auto_t *other = record_decision(&record.snapshot, &second, true);
        assert(json_equal(one, other));
        json_auto_t *again = record_write(&record.snapshot, &first, record.has_env);
        fuzz_assert_round_trip(again);
        decision_fini(&first);
        decision_fini(&second);
    }
    het_arena_free(arena);
}
