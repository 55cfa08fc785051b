#include "planner/format/document/plan_json.h"
#include "planner/render/people/table.h"
#include "planner/run/run_all.h"
#include "tests/planner/toy.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <string.h>
#include <time.h>

static const struct het_plan *search(struct toy *toy, const char *algorithm)
{
    const struct het_search_options options = { .algorithm = algorithm };
    const struct het_plan *plan = NULL;
    struct het_error err = { 0 };
    int result = het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err);
    ck_assert_msg(result == 0, "%s", err.message);
    return plan;
}

static struct het_error search_fails(struct toy *toy, const char *algorithm)
{
    const struct het_search_options options = { .algorithm = algorithm };
    const struct het_plan *plan = NULL;
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), -1);
    ck_assert_ptr_null(plan);
    return err;
}

static void bind(struct toy *toy)
{
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                   &toy->workload, &toy->problem, &err) == 0,
                  "%s", err.message);
}

static uint32_t used_gpus(const struct het_plan *plan, const char *type)
{
    uint32_t used = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            for (size_t r = 0; r < plan->pipelines[p].stages[s].replica_count; r++) {
                const struct het_replica *replica =
                    &plan->pipelines[p].stages[s].replicas[r];
                if (!type || !strcmp(replica->type_name, type))
                    used += replica->tp;
            }
    return used;
}

START_TEST(winner_is_whole_valid_and_priced)
{
    struct toy *toy = toy_new();
    const struct het_plan *plan = search(toy, "auto");
    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    struct het_cost cost;
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, plan, &violations), 0);
    ck_assert_uint_eq(het_memory_plan(toy->arena, &toy->problem, plan, &peaks,
                                      &peak_count, &violations),
                      0);
    ck_assert_int_eq(het_schedule_simulate(NULL, &toy->problem, plan, &cost, NULL, NULL),
                     0);
    ck_assert(plan->predicted.iteration_s == cost.iteration_s);
    ck_assert(plan->predicted.pipeline_s == cost.pipeline_s);
    ck_assert(plan->predicted.gradient_sync_s == cost.sync_s);
    ck_assert(plan->predicted.optimizer_s == cost.step_s);
    ck_assert(plan->predicted.samples_per_s == 8 / cost.iteration_s);
    ck_assert(plan->predicted.lower_bound_s > 0);
    ck_assert(plan->predicted.lower_bound_s <= cost.iteration_s);
    ck_assert_uint_eq(plan->predicted.peak_memory_count, peak_count);
    ck_assert_uint_gt(plan->search.plans_priced, 0);
    ck_assert_uint_eq(plan->search.effort, HET_DEFAULT_EFFORT);
    uint32_t idle = 0;
    for (size_t i = 0; i < plan->idle_count; i++)
        idle += (uint32_t)plan->idle[i].gpu_count;
    ck_assert_uint_eq(used_gpus(plan, NULL) + idle, 10);
    toy_free(toy);
}
END_TEST

START_TEST(auto_is_the_best_of_all)
{
    struct toy *toy = toy_new();
    double best = search(toy, "auto")->predicted.iteration_s;
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        if ((*a)->needs_from)
            continue;
        if ((*a)->is_apart)
            continue;
        const struct het_plan *plan = search(toy, (*a)->name);
        ck_assert_str_eq(plan->algorithm, (*a)->name);
        ck_assert(best <= plan->predicted.iteration_s);
    }
    ck_assert(search(toy, NULL)->predicted.iteration_s == best);
    toy_free(toy);
}
END_TEST

/* Nodes like the toy's, `repeat` of each. */
static void widen(struct toy *toy, size_t repeat)
{
    struct het_node *nodes = HET_ARENA_ARRAY(toy->arena, struct het_node, 3 * repeat);
    for (size_t n = 0; n < 3 * repeat; n++) {
        nodes[n] = toy->nodes[n % 3];
        nodes[n].name = het_arena_printf(toy->arena, "node-%zu", n);
    }
    toy->cluster.nodes = nodes;
    toy->cluster.node_count = 3 * repeat;
    toy->workload.global_batch = 240;
    bind(toy);
}

START_TEST(auto_on_many_gpus_is_never_worse_than_one_alone)
{
    struct toy *toy = toy_new();
    widen(toy, _i);
    double best_s = search(toy, "auto")->predicted.iteration_s;
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++)
        if (!(*a)->is_apart && !(*a)->needs_from)
            ck_assert_msg(best_s <= search(toy, (*a)->name)->predicted.iteration_s,
                          "%d GPUs: %s alone is faster", 10 * _i, (*a)->name);
    toy_free(toy);
}
END_TEST

START_TEST(plan_says_whether_effort_ran_out)
{
    struct toy *toy = toy_new();
    widen(toy, 4);
    struct het_search_options options = { .algorithm = "autohet", .effort = 300 };
    const struct het_plan *plan = NULL;
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), 0);
    ck_assert(plan->search.has_run_out);
    ck_assert(strstr(het_render_table(toy->arena, &toy->problem, plan, 90, HET_ASCII),
                     "the effort of 300 ran out"));
    options.effort = 0;
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), 0);
    ck_assert(!plan->search.has_run_out);
    ck_assert(!strstr(het_render_table(toy->arena, &toy->problem, plan, 90, HET_ASCII),
                      "ran out"));
    toy_free(toy);
}
END_TEST

START_TEST(limits_on_gpus_are_kept)
{
    static const struct het_type_limit limits[] = {
        { .type = "fast", .min_gpus = 1, .max_gpus = 3 },
        { .type = "slow", .min_gpus = 2 },
    };
    struct toy *toy = toy_new();
    for (uint32_t most = 3; most <= 10; most++) {
        toy->workload.max_gpus = most;
        bind(toy);
        const struct het_plan *plan = search(toy, "auto");
        ck_assert_uint_le(used_gpus(plan, NULL), most);
    }
    toy->workload.max_gpus = 0;
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 2;
    bind(toy);
    const struct het_plan *plan = search(toy, "auto");
    ck_assert_uint_le(used_gpus(plan, "fast"), 3);
    ck_assert_uint_ge(used_gpus(plan, "fast"), 1);
    ck_assert_uint_ge(used_gpus(plan, "slow"), 2);
    toy_free(toy);
}
END_TEST

START_TEST(a_type_without_entry_is_not_used)
{
    static const struct het_type_limit limits[] = { { .type = "slow" } };
    struct toy *toy = toy_new();
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 1;
    bind(toy);
    const struct het_plan *plan = search(toy, "auto");
    ck_assert_uint_eq(used_gpus(plan, "fast"), 0);
    ck_assert_uint_ge(used_gpus(plan, "slow"), 1);
    toy_free(toy);
}
END_TEST

START_TEST(a_type_that_only_slows_down_stays_idle)
{
    struct toy *toy = toy_new();
    toy->nodes[TOY_S0].uplink_bytes_per_s = 1e6; /* 10 s for a sample's activations */
    bind(toy);
    const struct het_plan *plan = search(toy, "metis");
    ck_assert_uint_eq(used_gpus(plan, "slow"), 0);
    ck_assert_uint_ge(plan->idle_count, 1);
    toy_free(toy);
}
END_TEST

START_TEST(unknown_algorithm_names_those_there_are)
{
    struct toy *toy = toy_new();
    struct het_error err = search_fails(toy, "magic");
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err.message, "\"magic\""));
    ck_assert_ptr_nonnull(strstr(err.message, "auto, megatron, metis"));
    toy_free(toy);
}
END_TEST

START_TEST(no_plan_says_what_came_nearest)
{
    struct toy *toy = toy_new();
    /* Each layer fits, and all states together, but no cut of them. */
    toy->types[0].memory_bytes = (uint64_t)(4.2 * 0x1p30);
    toy->types[1].memory_bytes = (uint64_t)2 << 30;
    bind(toy);
    struct het_error err = search_fails(toy, "auto");
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    /* Three stages of two ranks each: layers 1 and 2 have 200e6 parameters of 16 bytes a
     * rank, 200 MB for each of 2 micro-batches in flight, 100 MB for each of 2 while a
     * layer runs, 1 GiB workspace: 3.8e9 / 2^30 + 1 = 4.54 GiB. */
    ck_assert_msg(strstr(err.message,
                         "the nearest miss needs 4.5 GiB on fast (4.2 GiB, 4.2 usable) "
                         "for layers 1-2, tensor-parallel degree 2, micro-batch 1"),
                  "%s", err.message);
    toy_free(toy);
}
END_TEST

START_TEST(no_plan_names_the_limit_that_cannot_be_met)
{
    static const struct het_type_limit limits[] = { { .type = "fast", .min_gpus = 7 } };
    struct toy *toy = toy_new();
    toy->workload.min_gpus = 11;
    bind(toy);
    struct het_error err = search_fails(toy, "auto");
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_ptr_nonnull(strstr(err.message, "at least 11 GPUs, the cluster has 10"));

    toy->workload.min_gpus = 0;
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 1;
    bind(toy);
    err = search_fails(toy, "auto");
    ck_assert_ptr_nonnull(
        strstr(err.message, "at least 7 GPUs of type fast, the cluster has 6"));

    static const uint32_t degrees[] = { 2, 4 };
    toy->workload.type_limit_count = 0;
    toy->workload.tensor_parallel = degrees;
    toy->workload.tensor_parallel_count = 2;
    for (size_t n = 0; n < 3; n++)
        toy->nodes[n].gpu_count = 1;
    bind(toy);
    err = search_fails(toy, "auto");
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_msg(strstr(err.message, "the job allows: the least is 2, the largest node "
                                      "has 1 GPUs"),
                  "%s", err.message);
    toy->workload.tensor_parallel = degrees + 1;
    toy->workload.tensor_parallel_count = 1;
    bind(toy);
    err = search_fails(toy, "auto");
    ck_assert_msg(strstr(err.message, "no tensor-parallel degree that the profile has"),
                  "%s", err.message);

    static const uint32_t sizes[] = { 3 };
    toy->workload.tensor_parallel_count = 0;
    toy->workload.microbatch_sizes = sizes; /* 3 = 2 + 1, but 8 is no multiple of 3 */
    toy->workload.microbatch_size_count = 1;
    bind(toy);
    err = search_fails(toy, "auto");
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_ptr_nonnull(strstr(err.message, "global batch of 8"));
    toy_free(toy);
}
END_TEST

START_TEST(effort_is_a_limit)
{
    struct toy *toy = toy_new();
    struct het_search_options options = { .algorithm = "metis", .effort = 50 };
    const struct het_plan *plan;
    struct het_search_statistics few = { 0 }, many = { 0 };
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, &few, &err), 0);
    double little = plan->predicted.iteration_s;
    options.effort = 0;
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, &many, &err), 0);
    ck_assert(plan->predicted.iteration_s <= little);
    ck_assert_uint_lt(few.strategies_tried, many.strategies_tried);
    toy_free(toy);
}
END_TEST

START_TEST(effort_that_ended_is_said_before_memory)
{
    struct toy *toy = toy_new();
    struct het_search_options options = { .algorithm = "metis", .effort = 1 };
    const struct het_plan *plan;
    struct het_search_statistics statistics;
    struct het_error err = { 0 };
    /* Each layer fits, and all states together, but no cut of them. */
    toy->types[0].memory_bytes = (uint64_t)(4.2 * 0x1p30);
    toy->types[1].memory_bytes = 1;
    toy->types[1].workspace_bytes = 0;
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, &statistics, &err),
        -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    const char begin[] = "no plan was found within --effort 1; more effort may find one";
    ck_assert_msg(!strncmp(err.message, begin, strlen(begin)), "%s", err.message);

    options.effort = 0;
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, &statistics, &err),
        -1);
    ck_assert_msg(!strncmp(err.message, "no plan fits in memory", 22), "%s", err.message);
    toy_free(toy);
}
END_TEST

START_TEST(no_effort_is_asked_for_where_none_would_help)
{
    struct toy *toy = toy_new();
    struct het_search_options options = { .effort = 1 };
    const struct het_plan *plan;
    struct het_error err = { 0 };
    /* Layer 0 has 400 million parameters of 16 bytes, 3 GiB a GPU with degree 2. */
    toy->types[0].memory_bytes = toy->types[1].memory_bytes = (uint64_t)2 << 30;
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_msg(strstr(err.message, "layer 0 alone fits on no GPU; it comes nearest on "
                                      "fast, which has 2.0 GiB to use"),
                  "%s", err.message);
    /* 1100 million parameters of 16 bytes are 16.4 GiB; one GPU has 19. */
    toy->types[0].memory_bytes = (uint64_t)8 << 30;
    toy->workload.max_gpus = 2;
    bind(toy);
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), -1);
    ck_assert_msg(strstr(err.message, "optimizer state needs 16.4 GiB, and the GPUs "
                                      "that the job may use (2) have 14.0 GiB for it. At "
                                      "least 1 more of the largest"),
                  "%s", err.message);
    toy_free(toy);
}
END_TEST

/* Prefix sums over `layers` equal layers. */
static double *even_layers(struct het_arena *arena, uint32_t layers, double each)
{
    double *sums = HET_ARENA_ARRAY(arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++)
        sums[l + 1] = (l + 1) * each;
    return sums;
}

/* `nodes` nodes of 8 equal GPUs; `layers` layers measured at `sizes` micro-batches, those
 * that are no multiples of 64 much slower a sample. */
static struct het_problem *wide_problem(struct het_arena *arena, uint32_t nodes,
                                        uint32_t layers, uint32_t sizes, uint32_t batch)
{
    static const struct het_cluster_type type = { .name = "A100",
                                                  .profile_name = "A100",
                                                  .memory_bytes = (uint64_t)80 << 30 };
    static const char *const names[] = { "A100" };
    struct het_node *node = HET_ARENA_ARRAY(arena, struct het_node, nodes);
    for (uint32_t n = 0; n < nodes; n++)
        node[n] = (struct het_node){ .name = het_arena_printf(arena, "n%u", n),
                                     .gpu_count = 8,
                                     .intra_bytes_per_s = 240e9,
                                     .uplink_bytes_per_s = 25e9 };
    struct het_cluster *cluster = het_arena_alloc(arena, sizeof *cluster);
    *cluster = (struct het_cluster){
        .types = &type, .type_count = 1, .nodes = node, .node_count = nodes
    };
    struct het_measurement *points =
        HET_ARENA_ARRAY(arena, struct het_measurement, sizes);
    for (uint32_t n = 1; n <= sizes; n++) {
        double seconds = (n % 64 ? 2 : 1) * (1e-4 + n * 1e-5) / layers;
        points[n - 1] = (struct het_measurement){
            .tp = 1,
            .microbatch = n,
            .forward_s = even_layers(arena, layers, seconds),
            .backward_s = even_layers(arena, layers, 2 * seconds),
            .optimizer_s = 1e-3,
        };
    }
    struct het_layer_bytes *bytes = het_arena_alloc(arena, sizeof *bytes);
    *bytes = (struct het_layer_bytes){ .tp = 1,
                                       .parameters = even_layers(arena, layers, 1e6),
                                       .activations = even_layers(arena, layers, 1e5) };
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    *profile = (struct het_profile){ .layer_count = layers,
                                     .type_names = names,
                                     .type_count = 1,
                                     .measurements = points,
                                     .measurement_count = sizes,
                                     .bytes = bytes,
                                     .bytes_count = 1,
                                     .boundary_bytes = even_layers(arena, layers, 1),
                                     .parameter_element_bytes = 4 };
    struct het_workload *workload = het_arena_alloc(arena, sizeof *workload);
    workload->global_batch = batch;
    struct het_problem *problem = het_arena_alloc(arena, sizeof *problem);
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(arena, cluster, profile, workload, problem, &err) == 0,
                  "%s", err.message);
    return problem;
}

/* What is not charged would run into the CPU time that a test may take: the first took
 * over 300 s, the second 10 s an algorithm. */
START_TEST(effort_bounds_what_large_problems_take)
{
    static const struct {
        uint32_t nodes, layers, sizes, batch;
    } cases[] = {
        { 16, 16, 4096, 1048576 }, /* every size to 4,096 on 128 GPUs */
        { 16, 1000, 4, 1048576 },  /* many layers */
        { 128, 64, 8, 999983 },    /* many GPUs, a prime batch */
    };
    struct het_arena *arena = het_arena_new();
    struct het_problem *problem = wide_problem(arena, cases[_i].nodes, cases[_i].layers,
                                               cases[_i].sizes, cases[_i].batch);
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        const struct het_search_options options = { .algorithm = (*a)->name,
                                                    .effort = 1000 };
        const struct het_plan *plan = NULL;
        struct het_error err = { 0 };
        clock_t start = clock();
        if (!(*a)->needs_from)
            het_search_run(arena, problem, &options, &plan, NULL, &err);
        ck_assert_msg(clock() - start < 60 * CLOCKS_PER_SEC, "%s took %lds", (*a)->name,
                      (long)((clock() - start) / CLOCKS_PER_SEC));
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(rule_of_thumb_needs_no_effort)
{
    struct toy *toy = toy_new();
    struct het_search_options options = { .algorithm = "megatron", .effort = 1 };
    const struct het_plan *plan = NULL;
    struct het_search_statistics statistics;
    struct het_error err = { 0 };
    /* One GPU's model does not fit: the first candidate is not the answer. */
    int result =
        het_search_run(toy->arena, &toy->problem, &options, &plan, &statistics, &err);
    ck_assert_msg(!result, "%s", err.message);
    ck_assert_uint_gt(
        plan->pipelines[0].stage_count * plan->pipelines[0].stages[0].replicas[0].tp, 1);
    toy_free(toy);
}
END_TEST

static void count_calls(void *context, const struct het_search *at)
{
    ck_assert_uint_gt(at->effort_spent, 0);
    ++*(int *)context;
}

START_TEST(progress_is_told)
{
    struct toy *toy = toy_new();
    int calls = 0;
    const struct het_search_options options = { .progress = count_calls,
                                                .progress_context = &calls };
    const struct het_plan *plan;
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), 0);
    ck_assert_int_gt(calls, 0);
    toy_free(toy);
}
END_TEST

/* Told to stop once there is a plan. */
static void stop_at_first(void *context, const struct het_search *at)
{
    *(atomic_bool *)context = at->incumbent != NULL;
}

START_TEST(search_that_is_told_to_stop_gives_its_best_plan_so_far)
{
    struct toy *toy = toy_new();
    atomic_bool stop = 0;
    struct het_search_options options = { .progress = stop_at_first,
                                          .progress_context = (void *)(uintptr_t)&stop,
                                          .stop = &stop };
    const struct het_plan *early, *whole = search(toy, NULL);
    struct het_search_statistics statistics;
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &early, &statistics, &err),
        0);
    ck_assert(early->search.is_cut_short);
    ck_assert(!whole->search.is_cut_short);
    ck_assert_uint_lt(early->search.plans_priced, whole->search.plans_priced);
    ck_assert(early->predicted.iteration_s >= whole->predicted.iteration_s);
    struct het_violations violations = { 0 };
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, early, &violations), 0);
    /* The document says so, and a whole one says nothing. */
    json_auto_t *cut = het_plan_json(early), *other = het_plan_json(whole);
    const struct het_plan *read;
    ck_assert(json_is_true(json_object_get(json_object_get(cut, "search"), "cutShort")));
    ck_assert_ptr_null(json_object_get(json_object_get(other, "search"), "cutShort"));
    ck_assert_int_eq(het_plan_json_read(toy->arena, cut, &read, &err), 0);
    ck_assert(read->search.is_cut_short);
    toy_free(toy);
}
END_TEST

START_TEST(search_that_is_stopped_before_it_has_a_plan_says_so)
{
    struct toy *toy = toy_new();
    atomic_bool stop = 1;
    struct het_search_options options = { .algorithm = "metis", .stop = &stop };
    const struct het_plan *plan;
    struct het_error err = { 0 };
    ck_assert_int_eq(
        het_search_run(toy->arena, &toy->problem, &options, &plan, NULL, &err), -1);
    ck_assert_int_eq(err.code, HET_CUT_SHORT);
    toy_free(toy);
}
END_TEST

Suite *test_run_all_suite(void)
{
    Suite *suite = suite_create("run_all");
    TCase *cases = tcase_create("search");
    tcase_add_test(cases, winner_is_whole_valid_and_priced);
    tcase_add_test(cases, auto_is_the_best_of_all);
    tcase_add_loop_test(cases, auto_on_many_gpus_is_never_worse_than_one_alone, 3,
                        is_check_run() ? 4 : 8);
    tcase_add_test(cases, plan_says_whether_effort_ran_out);
    tcase_add_test(cases, limits_on_gpus_are_kept);
    tcase_add_test(cases, a_type_without_entry_is_not_used);
    tcase_add_test(cases, a_type_that_only_slows_down_stays_idle);
    tcase_add_test(cases, unknown_algorithm_names_those_there_are);
    tcase_add_test(cases, no_plan_says_what_came_nearest);
    tcase_add_test(cases, no_plan_names_the_limit_that_cannot_be_met);
    tcase_add_test(cases, effort_is_a_limit);
    tcase_add_test(cases, effort_that_ended_is_said_before_memory);
    tcase_add_test(cases, no_effort_is_asked_for_where_none_would_help);
    tcase_add_loop_test(cases, effort_bounds_what_large_problems_take, 0, 3);
    tcase_add_test(cases, rule_of_thumb_needs_no_effort);
    tcase_add_test(cases, progress_is_told);
    tcase_add_test(cases, search_that_is_told_to_stop_gives_its_best_plan_so_far);
    tcase_add_test(cases, search_that_is_stopped_before_it_has_a_plan_says_so);
    suite_add_tcase(suite, cases);
    return suite;
}
