#include "planner/model/plan.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

/* ---- problem ---- */

START_TEST(type_of_the_cluster_takes_the_profiles_type_of_its_name_or_alias)
{
    struct toy *toy = toy_new();
    struct het_problem problem;
    ck_assert_uint_eq(toy->problem.profile_type[0], 0);
    ck_assert_uint_eq(toy->problem.profile_type[1], 1);
    /* By its name in profiles. */
    toy->types[0].name = "another";
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, NULL),
                     0);
    ck_assert_uint_eq(problem.profile_type[0], 0);
    /* By the part that both names mean. */
    static const char *const measured[] = { "NVIDIA-A100-SXM4-40GB", "T4" };
    toy->profile.type_names = measured;
    toy->types[0].name = toy->types[0].profile_name = "a100";
    toy->types[0].memory_bytes = (uint64_t)40 << 30;
    toy->types[1].name = toy->types[1].profile_name = "unknown";
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, NULL),
                     0);
    ck_assert_uint_eq(problem.profile_type[0], 0);
    ck_assert_uint_eq(problem.profile_type[1], HET_NO_TYPE);
    /* The 80 GB version is another part, but computes like the 40 GB one when the profile
     * speaks of A100 in general. */
    toy->types[0].memory_bytes = (uint64_t)80 << 30;
    toy->types[0].name = "a100";
    static const char *const general[] = { "A100", "T4" };
    toy->profile.type_names = general;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, NULL),
                     0);
    ck_assert_uint_eq(problem.profile_type[0], 0);
    toy_free(toy);
}
END_TEST

START_TEST(no_common_type_is_an_error_that_lists_both_sides)
{
    struct toy *toy = toy_new();
    struct het_problem problem;
    struct het_error err;
    toy->types[0].name = toy->types[0].profile_name = "g1";
    toy->types[1].name = toy->types[1].profile_name = "g2";
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, &err),
                     -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_ptr_nonnull(strstr(err.message, "the cluster has g1, g2; the profile has "
                                              "fast, slow"));
    toy_free(toy);
}
END_TEST

START_TEST(types_without_a_limit_are_not_used_when_there_are_limits)
{
    struct toy *toy = toy_new();
    struct het_problem problem;
    const struct het_type_limit limits[] = { { .type = "slow" } };
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 1;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, NULL),
                     0);
    ck_assert_uint_eq(problem.profile_type[0], HET_NO_TYPE);
    ck_assert_uint_eq(problem.profile_type[1], 1);
    toy_free(toy);
}
END_TEST

START_TEST(unknown_memory_matters_only_for_a_type_that_is_used)
{
    struct toy *toy = toy_new();
    struct het_problem problem;
    struct het_error err;
    toy->types[1].memory_bytes = toy->types[1].workspace_bytes = 0;
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, &err),
                     -1);
    ck_assert_ptr_nonnull(
        strstr(err.message, "GPU type slow: memory of one GPU is not known; set"));
    toy->types[1].name = toy->types[1].profile_name = "unmeasured";
    ck_assert_int_eq(het_problem_init(toy->arena, &toy->cluster, &toy->profile,
                                      &toy->workload, &problem, &err),
                     0);
    toy_free(toy);
}
END_TEST

/* ---- binding ---- */

START_TEST(binding_finds_nodes_and_types_by_name)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_replica *replica =
        (struct het_replica *)(uintptr_t)plan.pipelines[1].stages[0].replicas;
    replica->node = replica->type = HET_UNBOUND;
    const struct het_plan *bound;
    ck_assert_int_eq(het_plan_bind(toy->arena, &plan, &toy->cluster, &bound, NULL), 0);
    ck_assert_uint_eq(bound->pipelines[1].stages[0].replicas[0].node, TOY_S0);
    ck_assert_uint_eq(bound->pipelines[1].stages[0].replicas[0].type, 1);

    struct het_error err;
    replica->node_name = "s9";
    ck_assert_int_eq(het_plan_bind(toy->arena, &plan, &toy->cluster, &bound, &err), -1);
    ck_assert_str_eq(err.message, "pipelines[1]: stages[0]: replicas[0]: node: the "
                                  "cluster has no node s9");
    replica->node_name = "s0";
    replica->type_name = "medium";
    ck_assert_int_eq(het_plan_bind(toy->arena, &plan, &toy->cluster, &bound, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "gpuType: the cluster has no GPU type"));
    toy_free(toy);
}
END_TEST

/* ---- check ---- */

static void finds(struct toy *toy, const struct het_plan *plan, const char *message)
{
    struct het_violations found = { 0 };
    size_t count = het_plan_check(toy->arena, &toy->problem, plan, &found);
    ck_assert_uint_eq(count, found.count);
    if (!message) {
        ck_assert_msg(!count, "%s", count ? found.messages[0] : "");
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!strcmp(found.messages[i], message))
            return;
    ck_abort_msg("not found: %s; first: %s", message, count ? found.messages[0] : "none");
}

START_TEST(gpus_of_different_vendors_are_in_no_plan_together)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const char *mixed =
        "pipelines[0].stages[1].replicas[0].gpuType: node f0 has fast of NVIDIA, node s0 "
        "has slow of AMD; GPUs of different vendors cannot talk to each other: use those "
        "of one, or a runtime that joins them (mixed vendors)";
    toy->nodes[TOY_F0].vendor = "nvidia";
    toy->nodes[TOY_S0].vendor = "amd";
    finds(toy, &plan, mixed);
    toy->workload.mixes_vendors = true;
    finds(toy, &plan, NULL);
    toy->workload.mixes_vendors = false;
    toy->nodes[TOY_S0].vendor = "nvidia";
    finds(toy, &plan, NULL);
    toy->nodes[TOY_S0].vendor = NULL;
    finds(toy, &plan, NULL);
    toy_free(toy);
}
END_TEST

START_TEST(sound_plan_has_no_violations)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    finds(toy, &plan, NULL);
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    finds(toy, &plan, NULL);
    toy_free(toy);
}
END_TEST

/* The two pipelines with the parts of the second replaced. */
static struct het_plan with_second(struct toy *toy, struct het_pipeline second)
{
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_pipeline *pipelines =
        TOY_ARRAY(toy, struct het_pipeline, plan.pipelines[0], second);
    plan.pipelines = pipelines;
    return plan;
}

START_TEST(each_violation_is_named_with_its_path)
{
    struct toy *toy = toy_new();
    const struct het_plan good = toy_two_pipelines(toy);
    const struct het_stage first = good.pipelines[1].stages[0];
    const struct het_stage second = good.pipelines[1].stages[1];

    struct het_plan plan = with_second(
        toy, TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 1, first.replicas[0]), second));
    finds(toy, &plan, "pipelines[1].stages[1].firstLayer: is 2, must be 1");

    plan = with_second(toy, TOY_PIPELINE(toy, 2, first));
    finds(toy, &plan, "pipelines[1].stages: end before layer 2, the model has 4 layers");

    plan = with_second(toy, TOY_PIPELINE(toy, 1, first, second));
    finds(toy, &plan, "pipelines: run 6 samples an iteration, the global batch is 8");

    plan = with_second(
        toy, TOY_PIPELINE(toy, 2, first,
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 1))));
    finds(
        toy, &plan,
        "pipelines[1].stages[1].replicas: micro-batch sizes sum up to 1, those of stage "
        "0 to 2");

    plan = with_second(
        toy, TOY_PIPELINE(toy, 2, first,
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 2))));
    finds(toy, &plan,
          "pipelines[1].stages[1].replicas[0].gpus[0]: GPU 0 of node f0 is used twice");

    plan = with_second(
        toy, TOY_PIPELINE(toy, 2, first,
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 3, 2, 2))));
    finds(toy, &plan,
          "pipelines[1].stages[1].replicas[0].gpus[1]: node f0 has no GPU 4 (it has 4)");
    finds(toy, &plan,
          "pipelines: of node f0 GPU 1 is not used but a later one is; a plan uses the "
          "first GPUs of a node");

    plan = with_second(
        toy, TOY_PIPELINE(toy, 2, first,
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 2, 2))));
    finds(toy, &plan, NULL);
    struct het_replica wrong = toy_replica(toy, TOY_F1, 0, 1, 2);
    wrong.type = 1;
    wrong.type_name = "slow";
    plan = with_second(toy, TOY_PIPELINE(toy, 2, first, TOY_STAGE(toy, 2, 2, wrong)));
    finds(toy, &plan,
          "pipelines[1].stages[1].replicas[0].gpuType: node f1 has fast, not slow");

    plan = with_second(
        toy, TOY_PIPELINE(toy, 2, first,
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 3, 2))));
    finds(toy, &plan,
          "pipelines[1].stages[1].replicas[0].gpus: the profile has no tensor-parallel "
          "degree 3 for fast");

    plan = with_second(
        toy,
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 1, 1, 5))));
    finds(toy, &plan,
          "pipelines[1].stages[0].replicas[0].microBatchSize: the profile has no "
          "micro-batch of 5 for fast with tensor-parallel degree 1");

    plan = good;
    plan.pipeline_count = 0;
    finds(toy, &plan, "pipelines: must have at least one");
    plan = good;
    plan.global_batch = 9;
    finds(toy, &plan, "globalBatchSize: is 9, the job has 8");
    plan = good;
    plan.layer_count = 5;
    finds(toy, &plan, "layerCount: is 5, the profile has 4 layers");
    plan = good;
    plan.idle = &(struct het_idle){ "f0", (uint32_t[]){ 3 }, 1 };
    plan.idle_count = 1;
    finds(toy, &plan,
          "idle: is not what the plan leaves of the cluster (nodes in the cluster's "
          "order)");
    toy_free(toy);
}
END_TEST

START_TEST(limits_of_the_job_are_kept)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const uint32_t list[] = { 4 };

    toy->workload.max_pipeline_parallel = 1;
    finds(toy, &plan, "pipelines[0].stages: 2 stages, the job allows at most 1");
    toy->workload = (struct het_workload){ .global_batch = 8,
                                           .tensor_parallel = list,
                                           .tensor_parallel_count = 1 };
    finds(toy, &plan,
          "pipelines[0].stages[0].replicas[0].gpus: the job does not allow "
          "tensor-parallel degree 1");
    toy->workload = (struct het_workload){ .global_batch = 8,
                                           .microbatch_sizes = list,
                                           .microbatch_size_count = 1 };
    finds(toy, &plan,
          "pipelines[0].stages[0].replicas[0].microBatchSize: the job does not allow 2");
    toy->workload = (struct het_workload){ .global_batch = 8, .max_gpus = 3 };
    finds(toy, &plan, "pipelines: 4 GPUs, the job wants 0 to 3");
    toy->workload = (struct het_workload){ .global_batch = 8, .max_data_parallel = 1 };
    finds(
        toy, &plan,
        "pipelines: layer 0 is held by 2 replicas, the job wants a data-parallel degree "
        "of 0 to 1");
    const struct het_type_limit limits[] = {
        { .type = "fast", .min_gpus = 3, .max_gpus = 4 }, { .type = "slow" }
    };
    toy->workload = (struct het_workload){ .global_batch = 8,
                                           .type_limits = limits,
                                           .type_limit_count = 2 };
    finds(toy, &plan, "pipelines: 2 GPUs of type fast, the job wants 3 to 4");
    toy_free(toy);
}
END_TEST

START_TEST(job_that_keeps_all_activations_refuses_recomputation)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_stage *stages = (struct het_stage *)(uintptr_t)plan.pipelines[1].stages;
    stages[1].recompute = HET_RECOMPUTE_FULL;
    struct het_violations violations = { 0 };
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, &plan, &violations), 0);
    toy->workload.no_recompute = true;
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, &plan, &violations), 1);
    ck_assert_str_eq(violations.messages[0],
                     "pipelines[1].stages[1].recompute: the job keeps all activations "
                     "(its constraint is None), so it must be none");
    toy_free(toy);
}
END_TEST

START_TEST(absurd_numbers_are_violations_and_no_more)
{
    struct toy *toy = toy_new();
    struct het_stage stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1));
    stage.first_layer = stage.layer_count = UINT32_MAX;
    struct het_replica *replica = (struct het_replica *)(uintptr_t)stage.replicas;
    replica->microbatch_size = UINT32_MAX;
    replica->gpus = (uint32_t[]){ UINT32_MAX };
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, UINT32_MAX, stage),
                                    TOY_PIPELINE(toy, UINT32_MAX, stage));
    finds(toy, &plan, "pipelines[0].stages[0].firstLayer: is 4294967295, must be 0");
    finds(toy, &plan,
          "pipelines: run 18446744073709551615 samples an iteration, the global batch is "
          "8");
    struct het_violations many = { 0 };
    for (size_t i = 0; i < 2 * HET_MAX_VIOLATIONS; i++)
        het_violations_add(toy->arena, &many, "%zu", i);
    ck_assert_uint_eq(many.count, HET_MAX_VIOLATIONS);
    toy_free(toy);
}
END_TEST

/* ---- idle, ranks, order ---- */

START_TEST(idle_is_what_is_left_in_cluster_order)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    ck_assert_uint_eq(plan.idle_count, 3);
    ck_assert_str_eq(plan.idle[0].node_name, "f0");
    ck_assert_uint_eq(plan.idle[0].gpu_count, 2);
    ck_assert_uint_eq(plan.idle[0].gpus[0], 2);
    ck_assert_str_eq(plan.idle[1].node_name, "f1");
    ck_assert_uint_eq(plan.idle[1].gpu_count, 2);
    toy_free(toy);
}
END_TEST

START_TEST(gpus_of_a_plan_are_counted_by_type)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    const uint32_t *gpus = het_plan_type_gpus(toy->arena, &plan, 2);
    ck_assert_uint_eq(het_plan_gpu_count(&plan), 4); /* two of f0, two of s0 */
    ck_assert_uint_eq(gpus[0], 2);
    ck_assert_uint_eq(gpus[1], 2);
    toy_free(toy);
}
END_TEST

START_TEST(ranks_are_contiguous_on_nodes_in_order_of_appearance)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_rank_node *nodes;
    ck_assert_uint_eq(het_plan_rank_nodes(toy->arena, &plan, &nodes), 2);
    ck_assert_str_eq(nodes[0].node_name, "s0");
    ck_assert_str_eq(nodes[0].type_name, "slow");
    ck_assert_uint_eq(nodes[0].gpu_count, 2);
    ck_assert_uint_eq(nodes[0].rank_offset, 0);
    ck_assert_str_eq(nodes[1].node_name, "f0");
    ck_assert_uint_eq(nodes[1].rank_offset, 2);
    toy_free(toy);
}
END_TEST

START_TEST(order_of_plans_is_total_and_by_content)
{
    struct toy *toy = toy_new();
    struct het_plan a = toy_two_pipelines(toy), b = toy_two_pipelines(toy);
    ck_assert_int_eq(het_plan_compare(&a, &b), 0);
    struct het_replica *replica =
        (struct het_replica *)(uintptr_t)b.pipelines[1].stages[1].replicas;
    replica->gpus = (uint32_t[]){ 2 };
    ck_assert_int_lt(het_plan_compare(&a, &b), 0);
    ck_assert_int_gt(het_plan_compare(&b, &a), 0);
    b.pipeline_count = 1;
    ck_assert_int_gt(het_plan_compare(&a, &b), 0);
    toy_free(toy);
}
END_TEST

Suite *test_plan_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *cases = tcase_create("plan");
    tcase_add_test(cases,
                   type_of_the_cluster_takes_the_profiles_type_of_its_name_or_alias);
    tcase_add_test(cases, no_common_type_is_an_error_that_lists_both_sides);
    tcase_add_test(cases, types_without_a_limit_are_not_used_when_there_are_limits);
    tcase_add_test(cases, unknown_memory_matters_only_for_a_type_that_is_used);
    tcase_add_test(cases, binding_finds_nodes_and_types_by_name);
    tcase_add_test(cases, gpus_of_different_vendors_are_in_no_plan_together);
    tcase_add_test(cases, sound_plan_has_no_violations);
    tcase_add_test(cases, each_violation_is_named_with_its_path);
    tcase_add_test(cases, limits_of_the_job_are_kept);
    tcase_add_test(cases, job_that_keeps_all_activations_refuses_recomputation);
    tcase_add_test(cases, absurd_numbers_are_violations_and_no_more);
    tcase_add_test(cases, idle_is_what_is_left_in_cluster_order);
    tcase_add_test(cases, gpus_of_a_plan_are_counted_by_type);
    tcase_add_test(cases, ranks_are_contiguous_on_nodes_in_order_of_appearance);
    tcase_add_test(cases, order_of_plans_is_total_and_by_content);
    suite_add_tcase(suite, cases);
    return suite;
}
