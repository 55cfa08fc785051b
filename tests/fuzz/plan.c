/* Plan files: read, written and read again they are the same plan with the same hash; and
 * whatever was read can be rendered. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void render(struct het_arena *arena, const struct het_plan *plan)
{
    static const struct het_render_job job = {
        .job = "job", .ns = "ns", .service = "job", .plan_hash = "", .plan_path = "/plan"
    };
    struct het_rank_node *nodes;
    struct het_env *variables;
    size_t count = het_plan_rank_nodes(arena, plan, &nodes);
    for (size_t i = 0; i < count; i++)
        assert(het_render_torchrun(arena, plan, &job, i, &variables));
    assert(!het_render_torchrun(arena, plan, &job, count, &variables));
    assert(het_render_hostfile(arena, plan, &job));
    assert(strlen(het_render_summary(arena, plan)) <= 120);
    assert(het_render_table(arena, NULL, plan, 70, HET_ASCII));
    assert(het_render_table(arena, NULL, plan, 100, HET_UTF8));
    json_auto_t *rankmap = het_plan_json_rankmap(plan);
    fuzz_assert_round_trip(rankmap);
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    const struct het_plan *plan, *again;
    struct het_error err;
    if (het_plan_json_read(arena, json, &plan, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        json_auto_t *written = het_plan_json(plan);
        fuzz_assert_round_trip(written);
        assert(!het_plan_json_read(arena, written, &again, &err));
        json_auto_t *rewritten = het_plan_json(again);
        auto_free char *a = het_json_canonical(written);
        auto_free char *b = het_json_canonical(rewritten);
        assert(!strcmp(a, b));
        assert(
            !strcmp(het_plan_json_hash(arena, plan), het_plan_json_hash(arena, again)));
        assert(!het_plan_compare(plan, again));
        render(arena, plan);
    }
    het_arena_free(arena);
}
