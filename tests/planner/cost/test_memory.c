#include "planner/cost/memory.h"

#include "planner/cost/cost.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const double gib = 0x1p30;

START_TEST(replica_holds_state_activations_and_workspace)
{
    struct toy *toy = toy_new();
    struct het_memory_question question = {
        .type = 1,
        .tp = 2,
        .first_layer = 1,
        .layer_count = 2,
        .samples = 3,
        .in_flight = 4,
        .holders = 1,
    };
    /* Half of 400 M parameters at 16 bytes; half of 400 MB a sample; while the largest
     * layer runs two micro-batches of its 100 MB (on one of two ranks). */
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question),
                        200e6 * 16 + 200e6 * 3 * 4 + 2 * 100e6 * 3 + gib);
    /* Recomputed: outputs of layers 0 and 1 come in, and the largest layer is
     * there once. */
    question.recompute = HET_RECOMPUTE_FULL;
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question),
                        200e6 * 16 + (2 * 10e6 * 4 + 100e6) * 3 + 2 * 100e6 * 3 + gib);
    /* What was measured while a layer runs counts in place of that. */
    struct het_layer_bytes bytes[] = { toy->profile.bytes[0], toy->profile.bytes[1] };
    bytes[1].workspace_bytes = 7e6;
    toy->profile.bytes = bytes;
    question.recompute = HET_RECOMPUTE_NONE;
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question),
                        200e6 * 16 + 200e6 * 3 * 4 + 7e6 + gib);
    question.tp = 3;
    ck_assert(het_memory_replica_bytes(&toy->problem, &question) == HUGE_VAL);
    toy_free(toy);
}
END_TEST

START_TEST(measured_state_counts_only_where_it_was_measured)
{
    struct toy *toy = toy_new();
    const double state[] = { 0, 1e9, 2e9, 3e9, 4e9 };
    struct het_layer_bytes bytes[] = { toy->profile.bytes[0], toy->profile.bytes[1] };
    bytes[0].state = state;
    toy->profile.bytes = bytes;
    const struct het_memory_question question = { .tp = 1,
                                                  .layer_count = 4,
                                                  .holders = 2 };
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question), 4e9 + gib);
    /* Another optimizer: 1100 M parameters at 8 + 8/2 bytes. */
    toy->workload.optimizer = HET_ADAM_DISTRIBUTED;
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question),
                        1100e6 * (8 + 8.0 / 2) + gib);
    toy_free(toy);
}
END_TEST

START_TEST(early_stages_hold_more_micro_batches)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_peak_memory *peaks;
    size_t count;
    ck_assert_uint_eq(
        het_memory_plan(toy->arena, &toy->problem, &plan, &peaks, &count, NULL), 1 + 1);
    ck_assert_uint_eq(count, 4);
    /* Stage 0: 600 M parameters, 300 MB a sample, two samples, two in flight; its largest
     * layer has 200 MB a sample. */
    ck_assert_uint_eq(peaks[0].bytes, 600000000ull * 16 + 300000000ull * 2 * 2 +
                                          2 * 200000000ull * 2 + (1ull << 30));
    /* Stage 1: one in flight. */
    ck_assert_uint_eq(peaks[1].bytes, 500000000ull * 16 + 300000000ull * 2 * 1 +
                                          2 * 200000000ull * 2 + (1ull << 30));
    ck_assert_uint_eq(peaks[3].pipeline, 1);
    ck_assert_uint_eq(peaks[3].stage, 1);
    ck_assert_uint_eq(peaks[3].capacity_bytes, 20ull << 30);

    struct het_violations violations = { 0 };
    het_memory_plan(toy->arena, &toy->problem, &plan, &peaks, &count, &violations);
    ck_assert_uint_eq(violations.count, 2);
    ck_assert_str_eq(violations.messages[0],
                     "pipelines[0].stages[0].replicas[0]: needs 11.80 GiB a GPU, slow "
                     "has 10.00 GiB to use");
    toy_free(toy);
}
END_TEST

START_TEST(headroom_is_kept_free)
{
    struct toy *toy = toy_new();
    toy->workload.memory_headroom = 0.25;
    ck_assert_double_eq(het_memory_usable_bytes(&toy->problem, 0), 15 * gib);
    toy_free(toy);
}
END_TEST

START_TEST(distributed_state_is_spread_over_each_layers_holders)
{
    struct toy *toy = toy_new();
    toy->workload.optimizer = HET_ADAM_DISTRIBUTED;
    /* Layers 0-1 have two holders, 2-3 three: f1's, and two replicas on f0. */
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 4)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 2),
                               toy_replica(toy, TOY_F0, 1, 1, 2))),
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F1, 0, 1, 4))));
    struct het_peak_memory *peaks;
    size_t count;
    het_memory_plan(toy->arena, &toy->problem, &plan, &peaks, &count, NULL);
    ck_assert_uint_eq(count, 4);
    double state = 600e6 * (8 + 8.0 / 2) + 500e6 * (8 + 8.0 / 3);
    ck_assert_uint_eq(peaks[3].bytes,
                      (uint64_t)ceil(state + 600e6 * 4 + 2 * 200e6 * 4 + gib));
    toy_free(toy);
}
END_TEST

START_TEST(selective_recomputation_keeps_what_the_profile_says)
{
    struct toy *toy = toy_new();
    static const double kept[] = { 0, 100e6, 200e6, 300e6, 400e6 };
    struct het_layer_bytes bytes = toy->profile.bytes[0];
    double backward[] = { 0, 0.003, 0.008, 0.015, 0.024 };
    struct het_measurement *measurements =
        toy_copy(toy, toy->profile.measurements,
                 toy->profile.measurement_count * sizeof *toy->profile.measurements);
    measurements[0].selective_backward_s = backward; /* fast, tp 1, one sample */
    toy->profile.measurements = measurements;
    struct het_memory_question question = { .tp = 1,
                                            .layer_count = 4,
                                            .samples = 1,
                                            .in_flight = 2,
                                            .holders = 1,
                                            .recompute = HET_RECOMPUTE_SELECTIVE };
    /* Unknown: as without, 600 MB a micro-batch. */
    double without = het_memory_replica_bytes(&toy->problem, &question);
    bytes.selective_activations = kept;
    toy->profile.bytes = &bytes;
    toy->profile.bytes_count = 1;
    ck_assert_double_eq(het_memory_replica_bytes(&toy->problem, &question),
                        without - 2 * 600e6 + 2 * 400e6);

    struct het_stage stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1));
    stage.recompute = HET_RECOMPUTE_SELECTIVE;
    double forward_s, backward_s;
    ck_assert(!het_cost_stage(&toy->problem, &stage, &forward_s, &backward_s, NULL));
    ck_assert_double_eq(backward_s, 0.024);
    /* Two samples were not measured so: such a plan is refused. */
    toy->workload.global_batch = 2;
    stage = (struct het_stage)TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 2));
    stage.recompute = HET_RECOMPUTE_SELECTIVE;
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    struct het_violations violations = { 0 };
    ck_assert_uint_eq(het_plan_check(toy->arena, &toy->problem, &plan, &violations), 1);
    ck_assert_str_eq(violations.messages[0],
                     "pipelines[0].stages[0].recompute: the profile has no selective "
                     "recomputation for fast with tensor-parallel degree 1, micro-batch "
                     "2; use none or full");
    toy_free(toy);
}
END_TEST

Suite *test_memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *cases = tcase_create("memory");
    tcase_add_test(cases, replica_holds_state_activations_and_workspace);
    tcase_add_test(cases, measured_state_counts_only_where_it_was_measured);
    tcase_add_test(cases, early_stages_hold_more_micro_batches);
    tcase_add_test(cases, headroom_is_kept_free);
    tcase_add_test(cases, distributed_state_is_spread_over_each_layers_holders);
    tcase_add_test(cases, selective_recomputation_keeps_what_the_profile_says);
    suite_add_tcase(suite, cases);
    return suite;
}
