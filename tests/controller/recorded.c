#include "tests/controller/recorded.h"

#include "controller/reconcile/reconcile.h"
#include "controller/record/snapshot_json.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void check_equal(const char *what, const json_t *before, const json_t *after)
{
    auto_free char *recorded = json_dumps(before, JSON_INDENT(1) | JSON_ENCODE_ANY);
    auto_free char *again = json_dumps(after, JSON_INDENT(1) | JSON_ENCODE_ANY);
    ck_assert_msg(!strcmp(recorded, again), "%s: decided %s, and again %s", what,
                  recorded, again);
}

void recorded_check(void *context, const struct snapshot *snapshot,
                    const struct decision *decision)
{
    (void)context;
    json_auto_t *written = record_write(snapshot, decision, true);
    auto_free char *text = json_dumps(written, JSON_COMPACT);
    ck_assert_ptr_null(strchr(text, '\n'));
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    struct record record;
    json_t *json;
    ck_assert_msg(!het_json_decode(text, strlen(text), "record", &json, &err) &&
                      !record_read(arena, json, &record, &err),
                  "%s", err.message);
    struct decision again;
    reconcile(arena, &record.snapshot, &again);
    json_auto_t *first = record_decision(snapshot, decision, true);
    json_auto_t *second = record_decision(&record.snapshot, &again, true);
    check_equal("decision", first, second);
    check_equal("record", record.decision, second);
    for (size_t i = 0; i < decision->action_count; i++)
        if (decision->actions[i].object)
            check_equal("object", decision->actions[i].object, again.actions[i].object);
    decision_fini(&again);
    json_decref(json);
    het_arena_free(arena);
}
