#include "planner/model/vendor_group.h"

#include "planner/algo/exhaustive.h"
#include "planner/cost/bound.h"
#include "planner/render/people/table.h"
#include "planner/run/run_all.h"
#include "tests/planner/random_problem.h"
#include "tests/planner/toy.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* "fast" of NVIDIA, "slow" of AMD. */
static struct toy *split_toy(void)
{
    struct toy *toy = toy_new();
    toy->nodes[TOY_F0].vendor = toy->nodes[TOY_F1].vendor = "nvidia";
    toy->nodes[TOY_S0].vendor = "amd";
    return toy;
}

/* ---- groups ---- */

START_TEST(nodes_of_each_vendor_are_a_group)
{
    struct toy *toy = split_toy();
    const struct het_vendor_group *groups;
    ck_assert(het_vendor_is_split(&toy->problem));
    ck_assert_uint_eq(het_vendor_groups(toy->arena, &toy->problem, &groups), 2);
    ck_assert_str_eq(groups[0].vendor, "nvidia");
    ck_assert_uint_eq(groups[0].gpus, 6);
    ck_assert_uint_eq(groups[0].problem.cluster->node_count, 2);
    ck_assert_str_eq(groups[1].vendor, "amd");
    ck_assert_uint_eq(groups[1].gpus, 4);
    ck_assert_str_eq(groups[1].problem.cluster->nodes[0].name, "s0");
    toy_free(toy);
}
END_TEST

static void is_whole(struct toy *toy)
{
    const struct het_vendor_group *groups;
    ck_assert(!het_vendor_is_split(&toy->problem));
    ck_assert_uint_eq(het_vendor_groups(toy->arena, &toy->problem, &groups), 1);
    ck_assert_ptr_null(groups[0].vendor);
    ck_assert_uint_eq(groups[0].gpus, het_cluster_gpu_count(&toy->cluster));
    ck_assert_ptr_eq(groups[0].problem.cluster, &toy->cluster);
}

START_TEST(what_can_work_together_is_one_group)
{
    struct toy *toy = split_toy();
    toy->workload.mixes_vendors = true;
    is_whole(toy);
    toy->workload.mixes_vendors = false;
    toy->nodes[TOY_S0].vendor = "nvidia"; /* one vendor */
    is_whole(toy);
    toy->nodes[TOY_S0].vendor = NULL; /* nobody says */
    is_whole(toy);
    toy_free(toy);
}
END_TEST

START_TEST(vendor_without_gpus_that_the_job_may_use_is_no_group)
{
    struct toy *toy = split_toy();
    const uint32_t only_fast[] = { 0, HET_NO_TYPE };
    toy->problem.profile_type = only_fast;
    is_whole(toy);
    toy_free(toy);

    toy = split_toy();
    toy->cluster.node_count = 2; /* the slow node is gone, its type is still known */
    is_whole(toy);
    toy_free(toy);
}
END_TEST

/* ---- plans ---- */

static const struct het_plan *plan_by(struct het_arena *arena,
                                      const struct het_problem *problem,
                                      const char *algorithm, uint64_t effort,
                                      struct het_error *err)
{
    const struct het_search_options options = { .algorithm = algorithm,
                                                .effort = effort };
    const struct het_plan *plan = NULL;
    return het_search_run(arena, problem, &options, &plan, NULL, err) < 0 ? NULL : plan;
}

/* The vendor of all replicas of a bound plan. */
static const char *vendor_of(const struct het_problem *problem,
                             const struct het_plan *plan)
{
    const char *vendor = NULL;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const char *own = problem->cluster->nodes[stage->replicas[r].node].vendor;
                vendor = vendor ? vendor : own;
                ck_assert_msg(!strcmp(vendor, own), "%s and %s in one plan", vendor, own);
            }
        }
    return vendor;
}

START_TEST(plan_is_on_the_gpus_of_one_vendor)
{
    struct toy *toy = split_toy();
    struct het_error err = { 0 };
    const struct het_plan *plan = plan_by(toy->arena, &toy->problem, NULL, 0, &err);
    ck_assert_msg(plan != NULL, "%s", err.message);
    ck_assert_str_eq(vendor_of(&toy->problem, plan), "nvidia");
    /* All of the other vendor's stay idle, and are listed. */
    bool is_idle = false;
    for (size_t i = 0; i < plan->idle_count; i++)
        is_idle = is_idle || (!strcmp(plan->idle[i].node_name, "s0") &&
                              plan->idle[i].gpu_count == 4);
    ck_assert(is_idle);
    toy_free(toy);
}
END_TEST

START_TEST(slower_vendor_is_taken_where_the_faster_has_no_plan)
{
    struct toy *toy = split_toy();
    struct het_error err = { 0 };
    toy->types[0].memory_bytes = (uint64_t)2 << 30; /* of the fast: no layer fits */
    const struct het_plan *plan = plan_by(toy->arena, &toy->problem, NULL, 0, &err);
    ck_assert_msg(plan != NULL, "%s", err.message);
    ck_assert_str_eq(vendor_of(&toy->problem, plan), "amd");
    toy_free(toy);
}
END_TEST

START_TEST(no_plan_needs_a_reason_of_each_vendor)
{
    struct toy *toy = split_toy();
    struct het_error err = { 0 };
    toy->workload.min_gpus = 7; /* both together have ten */
    ck_assert_ptr_null(plan_by(toy->arena, &toy->problem, NULL, 0, &err));
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_str_eq(
        err.message,
        "no plan with GPUs of one vendor, and those of several cannot talk to each "
        "other; with those of NVIDIA (6): no plan: the job wants at least 7 GPUs, the "
        "cluster has 6 of types that it can use; wait for more, or lower that limit; "
        "with those of AMD (4): no plan: the job wants at least 7 GPUs, the cluster has "
        "4 of types that it can use; wait for more, or lower that limit");

    /* A runtime that joins them has ten. */
    toy->workload.mixes_vendors = true;
    const struct het_plan *mixed = plan_by(toy->arena, &toy->problem, NULL, 0, &err);
    ck_assert_msg(mixed != NULL, "%s", err.message);
    ck_assert_uint_ge(het_plan_gpu_count(mixed), 7);
    toy_free(toy);
}
END_TEST

/* With little between the vendors, the one that the job likes. */
START_TEST(liked_vendor_wins_where_both_are_as_fast)
{
    struct toy *toy = split_toy();
    struct het_error err = { 0 };
    uint32_t alike[] = { 0, 0 }; /* the slow are measured as the fast */
    toy->problem.profile_type = alike;
    toy->nodes[TOY_F0].gpu_count = 2; /* the slow node is replaced by one like it */
    toy->nodes[TOY_F1] = toy->nodes[TOY_F0];
    toy->nodes[TOY_F1].name = "f1";
    toy->nodes[TOY_F1].type = 1;
    toy->cluster.node_count = 2;
    toy->types[1] = toy->types[0];
    toy->types[1].name = "slow";
    toy->nodes[TOY_F1].vendor = "amd";
    toy->workload.max_gpus = 2;
    const struct het_plan *first = plan_by(toy->arena, &toy->problem, NULL, 0, &err);
    ck_assert_msg(first != NULL, "%s", err.message);
    ck_assert_str_eq(vendor_of(&toy->problem, first), "nvidia");
    const struct het_type_limit limits[] = { { .type = "fast" },
                                             { .type = "slow", .preference = 1 } };
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 2;
    const struct het_plan *liked = plan_by(toy->arena, &toy->problem, NULL, 0, &err);
    ck_assert_str_eq(vendor_of(&toy->problem, liked), "amd");
    toy_free(toy);
}
END_TEST

static void stop_at_first(void *context, const struct het_search *at)
{
    *(atomic_bool *)context = at->incumbent != NULL;
}

START_TEST(search_that_is_told_to_stop_keeps_the_plan_of_one_vendor)
{
    struct toy *toy = split_toy();
    atomic_bool stop = 0;
    const struct het_search_options options = {
        .progress = stop_at_first,
        .progress_context = (void *)(uintptr_t)&stop,
        .stop = &stop,
    };
    const struct het_plan *plan;
    struct het_violations violations = { 0 };
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), 0);
    ck_assert(plan->search.is_cut_short);
    ck_assert(!plan->search.optimal);
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, plan, &violations), 0);
    ck_assert_double_le(plan->predicted.lower_bound_s,
                        het_bound_iteration(&toy->problem) * (1 + 1e-9));
    toy_free(toy);
}
END_TEST

START_TEST(bound_is_the_least_of_the_vendors)
{
    struct toy *toy = split_toy();
    const struct het_vendor_group *groups;
    het_vendor_groups(toy->arena, &toy->problem, &groups);
    double fast_s = het_bound_iteration(&groups[0].problem);
    double slow_s = het_bound_iteration(&groups[1].problem);
    double split_s = het_bound_iteration(&toy->problem);
    ck_assert(split_s == fmin(fast_s, slow_s));
    ck_assert(
        het_bound_floor(&toy->problem) ==
        fmin(het_bound_floor(&groups[0].problem), het_bound_floor(&groups[1].problem)));
    toy->workload.mixes_vendors = true;
    ck_assert_double_lt(het_bound_iteration(&toy->problem), split_s);
    toy_free(toy);
}
END_TEST

/* ---- any problem ---- */

#define PROBLEMS SCALED(160u)
#define EFFORT   20000u

/* The first node and those of its type are one vendor's, the others another's. */
static struct het_problem *split(struct het_problem *problem)
{
    struct het_node *nodes = (struct het_node *)(uintptr_t)problem->cluster->nodes;
    for (size_t n = 0; n < problem->cluster->node_count; n++)
        nodes[n].vendor = nodes[n].type == nodes[0].type ? "nvidia" : "amd";
    ((struct het_workload *)(uintptr_t)problem->workload)->mixes_vendors = false;
    return problem;
}

/* The best of the exhaustive searches of each vendor's nodes; false if one of them is too
 * large. */
static bool best_of_groups(struct het_arena *arena, const struct het_problem *problem,
                           double *ret_s)
{
    const struct het_vendor_group *groups;
    size_t count = het_vendor_groups(arena, problem, &groups);
    *ret_s = HUGE_VAL;
    for (size_t i = 0; i < count; i++) {
        struct het_error err = { 0 };
        const struct het_plan *plan =
            plan_by(arena, &groups[i].problem, "exhaustive", EFFORT, &err);
        if (!plan && err.code != HET_NO_PLAN)
            return false;
        if (plan)
            *ret_s = fmin(*ret_s, plan->predicted.iteration_s);
    }
    return true;
}

START_TEST(exhaustive_search_of_all_is_the_best_of_each)
{
    uint32_t compared = 0;
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        struct het_arena *arena = het_arena_new();
        struct het_problem *problem = split(random_small_problem(arena, seed));
        double best_s;
        struct het_error err = { 0 };
        if (het_vendor_is_split(problem) && best_of_groups(arena, problem, &best_s)) {
            const struct het_plan *plan =
                plan_by(arena, problem, "exhaustive", 8 * EFFORT, &err);
            ck_assert_msg(plan || err.code == HET_NO_PLAN, "seed %llu: %s",
                          (unsigned long long)seed, err.message);
            double plan_s = plan ? plan->predicted.iteration_s : HUGE_VAL;
            ck_assert_msg(plan_s == best_s, "seed %llu: %g, best %g",
                          (unsigned long long)seed, plan_s, best_s);
            if (plan) {
                vendor_of(problem, plan);
                ck_assert(plan->search.optimal);
            }
            compared++;
        }
        het_arena_free(arena);
    }
    ck_assert_uint_gt(compared, PROBLEMS / 20);
}
END_TEST

START_TEST(no_search_mixes_vendors)
{
    uint32_t planned = 0;
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        struct het_arena *arena = het_arena_new();
        struct het_problem *problem = split(random_problem(arena, seed));
        for (const struct het_algorithm *const *a = het_search_algorithms();
             *a && het_vendor_is_split(problem); a++) {
            const struct het_plan *plan =
                (*a)->needs_from ? NULL : plan_by(arena, problem, (*a)->name, 1500, NULL);
            if (!plan)
                continue;
            vendor_of(problem, plan);
            planned++;
        }
        het_arena_free(arena);
    }
    ck_assert_uint_gt(planned, PROBLEMS / 20);
}
END_TEST

Suite *test_vendor_group_suite(void)
{
    Suite *suite = suite_create("vendor_group");
    TCase *cases = tcase_create("vendor_group");
    tcase_add_test(cases, nodes_of_each_vendor_are_a_group);
    tcase_add_test(cases, what_can_work_together_is_one_group);
    tcase_add_test(cases, vendor_without_gpus_that_the_job_may_use_is_no_group);
    tcase_add_test(cases, plan_is_on_the_gpus_of_one_vendor);
    tcase_add_test(cases, slower_vendor_is_taken_where_the_faster_has_no_plan);
    tcase_add_test(cases, no_plan_needs_a_reason_of_each_vendor);
    tcase_add_test(cases, liked_vendor_wins_where_both_are_as_fast);
    tcase_add_test(cases, search_that_is_told_to_stop_keeps_the_plan_of_one_vendor);
    tcase_add_test(cases, bound_is_the_least_of_the_vendors);
    tcase_add_test(cases, exhaustive_search_of_all_is_the_best_of_each);
    tcase_add_test(cases, no_search_mixes_vendors);
    suite_add_tcase(suite, cases);
    return suite;
}
