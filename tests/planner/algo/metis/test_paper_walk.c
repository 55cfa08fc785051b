#include "planner/algo/metis/paper_walk.h"

#include "tests/planner/synthetic.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The best plan of a walk, as text. */
struct best {
    double seconds;
    char text[2000];
    uint64_t plans;
};

static void keep_best(void *context, const struct het_paper_walk_plan *plan)
{
    struct best *best = context;
    best->plans++;
    if (best->seconds > 0 && plan->seconds >= best->seconds)
        return;
    best->seconds = plan->seconds;
    size_t used =
        (size_t)sprintf(best->text, "%u:%u", plan->row_id, plan->microbatch_count);
    for (uint32_t s = 0; s < plan->stage_count; s++)
        used += (size_t)snprintf(best->text + used, sizeof best->text - used, " %u/%u/%u",
                                 plan->sizes[s], plan->tp[s], plan->cuts[s + 1]);
    ck_assert_uint_eq(plan->cuts[plan->stage_count], plan->cuts[0] + 20);
}

static struct het_paper_walk_counts walk(const struct het_problem *problem,
                                         enum het_paper_walk_order order,
                                         enum het_walk_memory memory, struct best *best)
{
    const struct het_paper_walk_question question = {
        .problem = problem,
        .cluster = problem->cluster,
        .variance = 1,
        .permute = 128,
        .stage_limit = 256,
        .order = order,
        .memory = memory,
        .context = best,
        .visit = best ? keep_best : NULL,
    };
    struct het_paper_walk_counts counts;
    ck_assert(het_paper_walk_run(&question, &counts));
    return counts;
}

static void check_steps(uint32_t layers, uint32_t nodes_a_type, uint64_t metis,
                        uint64_t oom_first)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = synthetic_problem(arena, layers, nodes_a_type);
    ck_assert_uint_eq(
        walk(problem, HET_PAPER_WALK_LAST_SPLIT, HET_WALK_MEMORY_METIS, NULL).steps,
        metis);
    ck_assert_uint_eq(
        walk(problem, HET_PAPER_WALK_OOM_FIRST, HET_WALK_MEMORY_METIS, NULL).steps,
        oom_first);
    het_arena_free(arena);
}

/* With the paper's own profiles, which cannot be had here, the eight counts of its Table
 * 1 come out: 612/562, 58078/41208, 3734/3482, 1714619/1553492. */
START_TEST(steps_are_counted_as_the_papers_count)
{
    check_steps(10, 4, 612, 562);
    check_steps(20, 8, 58072, 41183);
    check_steps(20, 16, 3737, 3482);
}
END_TEST

START_TEST(the_order_of_stages_changes_steps_but_not_the_best_plan)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = synthetic_problem(arena, 20, 8);
    for (int memory = HET_WALK_MEMORY_OURS; memory <= HET_WALK_MEMORY_METIS; memory++) {
        struct best metis = { 0 }, oom_first = { 0 };
        struct het_paper_walk_counts many =
            walk(problem, HET_PAPER_WALK_LAST_SPLIT, memory, &metis);
        struct het_paper_walk_counts few =
            walk(problem, HET_PAPER_WALK_OOM_FIRST, memory, &oom_first);
        ck_assert_uint_lt(few.steps, many.steps);
        ck_assert_str_eq(metis.text, oom_first.text);
        /* What is counted twice is walked once. */
        ck_assert_uint_le(metis.plans, many.plans - many.broken);
    }
    het_arena_free(arena);
}
END_TEST

/* 32 GPUs, 10 layers: one list of 1, 2, 4 and 8 stages each, seven of 7 (six of 4 GPUs
 * and one of 8). In the second order of types two stages count twice and one not. Each
 * with the 8 divisors of 128. */
START_TEST(lists_and_candidates_are_counted)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = synthetic_problem(arena, 10, 4);
    struct het_paper_walk_counts counts =
        walk(problem, HET_PAPER_WALK_LAST_SPLIT, HET_WALK_MEMORY_METIS, NULL);
    ck_assert_uint_eq(counts.lists, (1 + 1 + 1 + 7 + 1) + (2 + 1 + 7 + 1));
    ck_assert_uint_eq(counts.candidates, counts.lists * 8);
    ck_assert_uint_ge(counts.strategies + counts.failures, counts.steps);
    het_arena_free(arena);
}
END_TEST

static bool spend_some(void *context, uint64_t splits)
{
    uint64_t *left = context;
    *left = splits < *left ? *left - splits : 0;
    return *left > 0;
}

START_TEST(walk_ends_when_its_effort_is_spent)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = synthetic_problem(arena, 20, 8);
    uint64_t left = 100;
    const struct het_paper_walk_question question = { .problem = problem,
                                                      .cluster = problem->cluster,
                                                      .variance = 1,
                                                      .permute = 4,
                                                      .stage_limit = 64,
                                                      .context = &left,
                                                      .spend = spend_some };
    struct het_paper_walk_counts counts;
    ck_assert(!het_paper_walk_run(&question, &counts));
    ck_assert_uint_le(counts.plans + counts.failures, 100);
    het_arena_free(arena);
}
END_TEST

Suite *test_paper_walk_suite(void)
{
    Suite *suite = suite_create("paper_walk");
    TCase *cases = tcase_create("metis_walk");
    tcase_add_test(cases, steps_are_counted_as_the_papers_count);
    tcase_add_test(cases, the_order_of_stages_changes_steps_but_not_the_best_plan);
    tcase_add_test(cases, lists_and_candidates_are_counted);
    tcase_add_test(cases, walk_ends_when_its_effort_is_spent);
    suite_add_tcase(suite, cases);
    return suite;
}
