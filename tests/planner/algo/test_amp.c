#include "planner/algo/amp.h"

#include "planner/format/document/cluster_json.h"
#include "planner/format/document/profile_json.h"
#include "planner/format/document/workload_json.h"
#include "tests/planner/files.h"
#include "tests/planner/random_problem.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static const struct het_search_options defaults;
static const struct het_search_options as_in_the_paper = {
    .amp_speeds = HET_AMP_MEAN_SPEEDS, .amp_sends = HET_AMP_HIDDEN
};

/* Runs `algorithm` on the whole cluster alone. */
static struct het_search run(struct het_arena *arena, const struct het_problem *problem,
                             const struct het_algorithm *algorithm,
                             const struct het_search_options *options)
{
    struct het_search search = { .problem = problem,
                                 .available = problem->cluster,
                                 .algorithm = algorithm,
                                 .options = options,
                                 .arena = arena,
                                 .scratch = arena,
                                 .effort_left = HET_DEFAULT_EFFORT };
    struct het_error err = { 0 };
    ck_assert_int_eq(algorithm->run(&search, &err), 0);
    return search;
}

static const struct het_problem *bind(struct toy *toy)
{
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
    return &toy->problem;
}

/* ---- the settings of section 4.3 ---- */

/* A row of the paper's tables 7, 9 and 11, without its cuts. */
struct published {
    uint32_t size, tp, pp;
};

static const struct setting {
    const char *profile, *cluster;
    uint32_t batch;
    struct published fastest; /* as the paper measured it: 1.20, 1.28, 1.07 s */
    struct published others[4];
} settings[] = {
    { "tests/data/amp/gpt2.json",
      "tests/data/amp/t4x16.json",
      32,
      { 1, 1, 4 },
      { { 1, 1, 2 }, { 1, 1, 8 }, { 2, 1, 2 }, { 1, 1, 16 } } },
    { "tests/data/amp/gpt2.json",
      "tests/data/amp/v100x12_t4x4.json",
      32,
      { 1, 1, 8 },
      { { 1, 1, 4 }, { 1, 1, 16 }, { 2, 1, 4 }, { 2, 1, 8 } } },
    { "tests/data/amp/transgan.json",
      "tests/data/amp/v100x16.json",
      64,
      { 1, 1, 4 },
      { { 2, 1, 4 }, { 2, 1, 16 }, { 1, 1, 16 }, { 2, 1, 8 } } },
};

static const struct het_problem *read_setting(struct het_arena *arena,
                                              const struct setting *setting)
{
    json_auto_t *profile_json = test_read_json(setting->profile);
    json_auto_t *cluster_json = test_read_json(setting->cluster);
    json_auto_t *job = json_pack("{s:i}", "globalBatchSize", (int)setting->batch);
    const struct het_profile *profile;
    const struct het_cluster *cluster;
    struct het_workload *workload = HET_ARENA_ARRAY(arena, struct het_workload, 1);
    struct het_problem *problem = HET_ARENA_ARRAY(arena, struct het_problem, 1);
    struct het_search_options options = { 0 };
    struct het_error err = { 0 };
    ck_assert_msg(
        !het_profile_json_read(arena, profile_json, &profile, &err) &&
            !het_cluster_json_read(arena, cluster_json, het_hardware_builtin(), &cluster,
                                   &err) &&
            !het_workload_json_read(arena, job, profile, workload, &options, &err) &&
            !het_problem_init(arena, cluster, profile, workload, problem, &err),
        "%s", err.message);
    return problem;
}

/* ---- cuts ---- */

/* Megatron's placement of a strategy, by itself: groups of tp GPUs, node by node. */
static struct het_plan place(struct het_arena *arena, const struct het_problem *problem,
                             const struct het_amp_strategy *strategy)
{
    static const uint32_t gpus[64] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                       11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                       22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };
    uint32_t count = strategy->dp * strategy->pp, filled = 0;
    struct het_replica *replicas = HET_ARENA_ARRAY(arena, struct het_replica, count);
    for (uint32_t n = 0; n < problem->cluster->node_count; n++) {
        const struct het_node *node = &problem->cluster->nodes[n];
        uint32_t type = problem->profile_type[node->type];
        if (type == HET_NO_TYPE ||
            !het_profile_covers(problem->profile, type, strategy->tp,
                                strategy->microbatch_size))
            continue;
        for (uint32_t gpu = 0; gpu + strategy->tp <= node->gpu_count && filled < count;
             gpu += strategy->tp)
            replicas[filled++] = (struct het_replica){
                .node_name = node->name,
                .type_name = problem->cluster->types[node->type].name,
                .node = n,
                .type = node->type,
                .gpus = gpus + gpu,
                .tp = strategy->tp,
                .microbatch_size = strategy->microbatch_size,
            };
    }
    ck_assert_uint_eq(filled, count);
    struct het_stage *stages = HET_ARENA_ARRAY(arena, struct het_stage, strategy->pp);
    for (uint32_t s = 0; s < strategy->pp; s++)
        stages[s] = (struct het_stage){ .replicas = replicas + s * strategy->dp,
                                        .replica_count = strategy->dp };
    struct het_pipeline *pipeline = HET_ARENA_ARRAY(arena, struct het_pipeline, 1);
    *pipeline = (struct het_pipeline){ .microbatch_count = strategy->microbatch_count,
                                       .stages = stages,
                                       .stage_count = strategy->pp };
    return (struct het_plan){ .pipelines = pipeline,
                              .pipeline_count = 1,
                              .global_batch = problem->workload->global_batch,
                              .layer_count = problem->profile->layer_count };
}

static void set_cuts(struct het_plan *plan, const uint32_t *cuts)
{
    struct het_stage *stages = (struct het_stage *)(uintptr_t)plan->pipelines->stages;
    for (size_t s = 0; s < plan->pipelines->stage_count; s++) {
        stages[s].first_layer = cuts[s];
        stages[s].layer_count = cuts[s + 1] - cuts[s];
    }
}

/* Eq. 5 with both directions of a send: (m - 1) max t + sum e + sum t. */
static double equation_5(const struct het_problem *problem, const struct het_plan *plan)
{
    const struct het_pipeline *pipeline = plan->pipelines;
    double sum_s = 0, largest_s = 0;
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        double forward_s, backward_s;
        ck_assert_int_eq(
            het_cost_stage(problem, &pipeline->stages[s], &forward_s, &backward_s, NULL),
            0);
        sum_s += forward_s + backward_s;
        largest_s = fmax(largest_s, forward_s + backward_s);
        if (s + 1 < pipeline->stage_count)
            sum_s += 2 * het_cost_send(problem, &pipeline->stages[s],
                                       &pipeline->stages[s + 1]);
    }
    return sum_s + (pipeline->microbatch_count - 1.0) * largest_s;
}

static double pipeline_seconds(const struct het_problem *problem,
                               const struct het_plan *plan, bool hides_sends)
{
    struct het_cost cost;
    if (hides_sends)
        return equation_5(problem, plan);
    ck_assert_int_eq(het_cost_plan(problem, plan, &cost, NULL), 0);
    return cost.pipeline_s;
}

/* The least seconds over all cuts from `stage` on that fit in memory. */
static double best_of_all(struct het_arena *arena, const struct het_problem *problem,
                          struct het_plan *plan, uint32_t *cuts, uint32_t stage,
                          bool hides_sends)
{
    uint32_t layers = plan->layer_count;
    double best_s = HUGE_VAL;
    if (stage == plan->pipelines->stage_count) {
        struct het_peak_memory *peaks;
        size_t count;
        cuts[stage] = layers;
        set_cuts(plan, cuts);
        return het_memory_plan(arena, problem, plan, &peaks, &count, NULL)
                   ? HUGE_VAL
                   : pipeline_seconds(problem, plan, hides_sends);
    }
    uint32_t later = (uint32_t)plan->pipelines->stage_count - stage;
    for (cuts[stage] = cuts[stage - 1] + 1; cuts[stage] + later <= layers;
         cuts[stage]++) {
        uint32_t copy[64];
        memcpy(copy, cuts, sizeof copy);
        best_s =
            fmin(best_s, best_of_all(arena, problem, plan, copy, stage + 1, hides_sends));
    }
    return best_s;
}

/* Compares up to this many strategies of each problem with all cuts. */
#define COMPARED 6u

static uint32_t compare_cuts(uint64_t seed, bool hides_sends)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = random_joined_problem(arena, seed);
    struct het_search_options options = { .amp_sends = hides_sends ? HET_AMP_HIDDEN
                                                                   : HET_AMP_EXPOSED };
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(arena, problem, &options, &strategies);
    uint32_t compared = 0;
    for (size_t i = 0; i < count && compared < COMPARED; i++) {
        const struct het_amp_strategy *strategy = &strategies[i];
        uint32_t cuts[64] = { 0 };
        ck_assert(!i || strategies[i - 1].seconds <= strategy->seconds);
        if (strategy->pp > 5 || problem->profile->layer_count > 9)
            continue;
        struct het_plan plan = place(arena, problem, strategy);
        double best_s = best_of_all(arena, problem, &plan, cuts, 1, hides_sends);
        set_cuts(&plan, strategy->cuts);
        double found_s = pipeline_seconds(problem, &plan, hides_sends);
        ck_assert_msg(found_s <= best_s * (1 + 1e-12), "seed %llu, strategy %zu: %g, %g",
                      (unsigned long long)seed, i, found_s, best_s);
        double estimate_s = found_s + het_cost_sync(problem, &plan) +
                            het_cost_step(problem, &plan);
        ck_assert_double_eq_tol(strategy->seconds, estimate_s, 1e-12 * estimate_s);
        compared++;
    }
    het_arena_free(arena);
    return compared;
}

START_TEST(no_cut_that_fits_is_better)
{
    uint32_t compared = 0;
    for (uint64_t seed = 1; seed <= 150; seed++)
        compared += compare_cuts(seed, seed % 2);
    ck_assert_uint_gt(compared, 200);
}
END_TEST

START_TEST(a_cut_with_a_large_send_is_avoided)
{
    /* One micro-batch on one GPU of f0 and f1 each: 3 + 6 + 9 + 12 = 30 ms wherever the
     * cut is, and the send there and back. Only behind layer 2 it is large. */
    struct toy *toy = toy_new();
    toy->nodes[TOY_F0].gpu_count = toy->nodes[TOY_F1].gpu_count = 1;
    toy->cluster.node_count = 2;
    toy->types[0].memory_bytes = (uint64_t)80 << 30;
    double boundary[] = { 10e6, 10e6, 100e6, 10e6 };
    toy->profile.boundary_bytes = boundary;
    toy->workload.global_batch = 1;
    const struct het_search_options hidden = { .amp_sends = HET_AMP_HIDDEN };
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(toy->arena, bind(toy), &hidden, &strategies);
    for (size_t i = 0; i < count; i++)
        if (strategies[i].pp == 2 && strategies[i].tp == 1) {
            ck_assert_uint_ne(strategies[i].cuts[1], 3);
            ck_assert_double_ge(strategies[i].seconds, 0.030 + 2 * 0.001);
        }
    ck_assert_uint_ge(count, 2);
    toy_free(toy);
}
END_TEST

/* ---- enumeration and placement ---- */

START_TEST(ranks_follow_the_nodes)
{
    struct toy *toy = toy_new();
    toy->workload.global_batch = 8;
    toy->workload.max_data_parallel = toy->workload.min_data_parallel = 4;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    toy->nodes[TOY_F1].gpu_count = 4;
    struct het_search search = run(toy->arena, bind(toy), &het_algo_amp, &defaults);
    const struct het_pipeline *pipeline = &search.incumbent->pipelines[0];
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        const struct het_stage *stage = &pipeline->stages[s];
        ck_assert_uint_eq(stage->replica_count, 4);
        for (size_t r = 1; r < 4; r++)
            ck_assert_uint_ge(stage->replicas[r].node, stage->replicas[r - 1].node);
        if (s)
            ck_assert_uint_ge(stage->replicas[0].node,
                              pipeline->stages[s - 1].replicas[3].node);
    }
    toy_free(toy);
}
END_TEST

START_TEST(counts_that_are_no_grid_leave_gpus_idle)
{
    struct toy *toy = toy_new();
    toy->workload.global_batch = 7;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(toy->arena, bind(toy), &defaults, &strategies);
    ck_assert_uint_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        const struct het_amp_strategy *strategy = &strategies[i];
        ck_assert_uint_eq(
            strategy->dp * strategy->microbatch_size * strategy->microbatch_count, 7);
        ck_assert_uint_eq(
            strategy->tp * strategy->dp * strategy->pp + strategy->idle_gpus, 10);
    }
    toy_free(toy);
}
END_TEST

/* Layers of the first stage of the two-stage strategy with micro-batch 1, tp 1. */
static uint32_t first_stage_layers(struct toy *toy, enum het_amp_speeds speeds)
{
    const struct het_search_options options = { .amp_speeds = speeds };
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(toy->arena, bind(toy), &options, &strategies);
    for (size_t i = 0; i < count; i++)
        if (strategies[i].pp == 2 && strategies[i].tp == 1 &&
            strategies[i].microbatch_size == 1)
            return strategies[i].cuts[1];
    ck_abort_msg("no such strategy");
}

START_TEST(mean_speeds_do_not_see_the_slow_stage)
{
    /* f0 and s0, the toy's layers turned round: one sample takes 12 9 6 3 ms, on slow
     * GPUs twice that. Own speeds: 2 layers and 2, max(21, 18) against max(12, 36) and
     * max(27, 6). Mean speeds: 1 and 3, max(12, 18) against max(21, 9), times 1.5. */
    struct toy *toy = toy_new();
    toy->cluster.nodes =
        TOY_ARRAY(toy, struct het_node, toy->nodes[TOY_F0], toy->nodes[TOY_S0]);
    toy->cluster.node_count = 2;
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)80 << 30;
    struct het_measurement *points =
        (struct het_measurement *)(uintptr_t)toy->profile.measurements;
    for (size_t i = 0; i < toy->profile.measurement_count; i++) {
        double *forward = HET_ARENA_ARRAY(toy->arena, double, 5);
        double *backward = HET_ARENA_ARRAY(toy->arena, double, 5);
        for (int l = 0; l <= 4; l++) {
            forward[l] = points[i].forward_s[4] - points[i].forward_s[4 - l];
            backward[l] = points[i].backward_s[4] - points[i].backward_s[4 - l];
        }
        points[i].forward_s = forward;
        points[i].backward_s = backward;
    }
    ck_assert_uint_eq(first_stage_layers(toy, HET_AMP_OWN_SPEEDS), 2);
    ck_assert_uint_eq(first_stage_layers(toy, HET_AMP_MEAN_SPEEDS), 1);
    toy_free(toy);
}
END_TEST

START_TEST(what_does_not_fit_is_a_noted_miss)
{
    struct toy *toy = toy_new();
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)2 << 30;
    struct het_search search = run(toy->arena, bind(toy), &het_algo_amp, &defaults);
    ck_assert_ptr_null(search.incumbent);
    ck_assert(search.nearest_miss_ratio > 1);
    ck_assert_ptr_nonnull(strstr(search.nearest_miss, "(2.0 GiB, 2.0 usable)"));
    toy_free(toy);
}
END_TEST

/* The TransGAN on 16 equal GPUs, planned for a runtime. */
static const struct het_pipeline *plan_for(struct het_arena *arena, const char *runtime)
{
    struct het_problem *problem =
        (struct het_problem *)(uintptr_t)read_setting(arena, &settings[2]);
    struct het_workload *workload = HET_ARENA_ARRAY(arena, struct het_workload, 1);
    *workload = *problem->workload;
    workload->runtime = het_runtime_find(runtime, NULL);
    ck_assert_ptr_nonnull(workload->runtime);
    problem->workload = workload;
    struct het_search search = run(arena, problem, &het_algo_amp, &defaults);
    ck_assert_ptr_nonnull(search.incumbent);
    return search.incumbent->pipelines;
}

START_TEST(the_runtime_says_where_cuts_may_be)
{
    struct het_arena *arena = het_arena_new();
    /* DeepSpeed: even stages. FlagScale: no stage of embedding or head alone. */
    const struct het_pipeline *even = plan_for(arena, "deepspeed");
    for (uint32_t s = 0; s < even->stage_count; s++)
        ck_assert_uint_eq(even->stages[s].layer_count,
                          het_runtime_even_layers(56, (uint32_t)even->stage_count, s));
    const struct het_pipeline *uneven = plan_for(arena, "flagscale");
    ck_assert_uint_gt(uneven->stage_count, 1);
    ck_assert_uint_gt(uneven->stages[0].layer_count, 1);
    ck_assert_uint_gt(uneven->stages[uneven->stage_count - 1].layer_count, 1);
    het_arena_free(arena);
}
END_TEST

/* ---- annealing ---- */

START_TEST(annealing_is_never_worse_than_its_start)
{
    uint32_t better = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct het_arena *arena = het_arena_new();
        const struct het_problem *problem = random_joined_problem(arena, seed);
        const struct het_search_options *options = seed % 2 ? &defaults
                                                            : &as_in_the_paper;
        struct het_search start = run(arena, problem, &het_algo_amp, options);
        struct het_search end = run(arena, problem, &het_algo_amp_sa, options);
        ck_assert_msg(!start.incumbent || end.incumbent, "seed %llu",
                      (unsigned long long)seed);
        ck_assert_msg(het_search_worth(&end) <= het_search_worth(&start), "seed %llu",
                      (unsigned long long)seed);
        better += het_search_worth(&end) < het_search_worth(&start);
        het_arena_free(arena);
    }
    ck_assert_uint_gt(better, 0);
}
END_TEST

START_TEST(the_seed_alone_decides)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct het_arena *arena = het_arena_new();
        const struct het_problem *problem = random_joined_problem(arena, seed);
        struct het_search_options options = { .seed = seed };
        struct het_search a = run(arena, problem, &het_algo_amp_sa, &options);
        struct het_search b = run(arena, problem, &het_algo_amp_sa, &options);
        ck_assert_uint_eq(a.statistics.plans_priced, b.statistics.plans_priced);
        ck_assert_uint_eq(a.effort_spent, b.effort_spent);
        ck_assert(!a.incumbent == !b.incumbent);
        ck_assert(!a.incumbent || het_plan_compare(a.incumbent, b.incumbent) == 0);
        het_arena_free(arena);
    }
}
END_TEST

/* ---- what the paper found ---- */

/* Where the row stands among the strategies that use every GPU, from 1 on; only those of
 * degree `tp` count, unless it is 0. */
static uint32_t find_rank(const struct het_amp_strategy *strategies, size_t count,
                          struct published row, uint32_t tp)
{
    uint32_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        const struct het_amp_strategy *strategy = &strategies[i];
        rank += !strategy->idle_gpus && (!tp || strategy->tp == tp);
        if (!strategy->idle_gpus && strategy->microbatch_size == row.size &&
            strategy->tp == row.tp && strategy->pp == row.pp)
            return rank;
    }
    ck_abort_msg("micro-batch %u, %u stages: not among the strategies", row.size, row.pp);
}

START_TEST(the_papers_fastest_strategies_are_in_the_top_five)
{
    const struct het_search_options *options[] = { &defaults, &as_in_the_paper };
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = read_setting(arena, &settings[_i / 2]);
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(arena, problem, options[_i % 2], &strategies);
    ck_assert_uint_le(find_rank(strategies, count, settings[_i / 2].fastest, 0), 5);
    het_arena_free(arena);
}
END_TEST

START_TEST(the_papers_five_are_among_the_first_six_without_tensor_parallelism)
{
    struct het_arena *arena = het_arena_new();
    const struct het_problem *problem = read_setting(arena, &settings[_i]);
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(arena, problem, &as_in_the_paper, &strategies);
    ck_assert_uint_le(find_rank(strategies, count, settings[_i].fastest, 1), 6);
    for (size_t row = 0; row < 4; row++)
        ck_assert_uint_le(find_rank(strategies, count, settings[_i].others[row], 1), 6);
    het_arena_free(arena);
}
END_TEST

START_TEST(the_cuts_of_the_transgan_are_the_papers)
{
    /* The released program lists 0 12 44 49 56, table 11 has 48 in its place. */
    static const uint32_t cuts[] = { 0, 12, 44, 49, 56 };
    struct het_arena *arena = het_arena_new();
    const struct het_amp_strategy *strategies;
    size_t count = het_amp_rank(arena, read_setting(arena, &settings[2]),
                                &as_in_the_paper, &strategies);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(strategies[0].pp, 4);
    ck_assert_mem_eq(strategies[0].cuts, cuts, sizeof cuts);
    het_arena_free(arena);
}
END_TEST

Suite *test_amp_suite(void)
{
    Suite *suite = suite_create("amp");
    TCase *cases = tcase_create("amp");
    tcase_add_test(cases, no_cut_that_fits_is_better);
    tcase_add_test(cases, a_cut_with_a_large_send_is_avoided);
    tcase_add_test(cases, ranks_follow_the_nodes);
    tcase_add_test(cases, counts_that_are_no_grid_leave_gpus_idle);
    tcase_add_test(cases, mean_speeds_do_not_see_the_slow_stage);
    tcase_add_test(cases, what_does_not_fit_is_a_noted_miss);
    tcase_add_test(cases, the_runtime_says_where_cuts_may_be);
    tcase_add_test(cases, annealing_is_never_worse_than_its_start);
    tcase_add_test(cases, the_seed_alone_decides);
    tcase_add_loop_test(cases, the_papers_fastest_strategies_are_in_the_top_five, 0, 6);
    tcase_add_loop_test(
        cases, the_papers_five_are_among_the_first_six_without_tensor_parallelism, 0, 3);
    tcase_add_test(cases, the_cuts_of_the_transgan_are_the_papers);
    suite_add_tcase(suite, cases);
    return suite;
}
