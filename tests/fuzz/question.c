/* The whole question of `hetplan plan -`: a plan that the judge takes, or an error. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* An iteration should take milliseconds: small problems, little effort. */
enum { MAX_GPUS = 64, MAX_NODES = 16, MAX_LAYERS = 64, EFFORT = 300 };

static bool is_small(const struct het_problem *problem)
{
    uint64_t gpus = 0;
    for (size_t i = 0; i < problem->cluster->node_count; i++)
        gpus += problem->cluster->nodes[i].gpu_count;
    return gpus <= MAX_GPUS && problem->cluster->node_count <= MAX_NODES &&
           problem->profile->layer_count <= MAX_LAYERS;
}

static void assert_plan(struct het_arena *arena, const struct het_question *question,
                        const struct het_plan *plan)
{
    json_auto_t *json = het_plan_json(plan);
    fuzz_assert_round_trip(json);
    json_auto_t *verdict = het_question_judge(arena, question, json);
    assert(json_is_true(json_object_get(verdict, "valid")));
    assert(json_number_value(json_object_get(verdict, "iterationSeconds")) ==
           plan->predicted.iteration_s);
    assert(plan->predicted.iteration_s >= plan->predicted.lower_bound_s);
    assert(het_render_table(arena, &question->problem, plan, 100, HET_UTF8));
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    struct het_arena *arena = het_arena_new();
    struct het_question question;
    struct het_error err;
    const struct het_plan *plan;
    const json_t *from = json_object_get(json_object_get(json, "job"), "from");
    if (het_question_read(arena, json, &question, &err) < 0) {
        fuzz_assert_error(&err);
    } else if (is_small(&question.problem)) {
        question.options.effort = EFFORT;
        if (het_question_plan(arena, &question, &plan, &err) < 0)
            fuzz_assert_error(&err);
        else
            assert_plan(arena, &question, plan);
        json_auto_t *verdict = het_question_judge(arena, &question, from);
        fuzz_assert_round_trip(verdict);
    }
    het_arena_free(arena);
}
