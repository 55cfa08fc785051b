#include "planner/cost/cost.h"

#include "tests/planner/toy_plan.h"

#include <check.h>
#include <math.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

START_TEST(stage_is_as_slow_as_its_slowest_replica_each_way)
{
    struct toy *toy = toy_new();
    /* Layers 1-2: fast, four samples (2 + 3) * 2.5 = 12.5 ms; slow, one sample
     * (2 + 3) * 2 = 10 ms. Backward twice that. */
    struct het_stage stage = TOY_STAGE(toy, 1, 2, toy_replica(toy, TOY_F0, 0, 1, 4),
                                       toy_replica(toy, TOY_S0, 0, 1, 1));
    double forward, backward;
    ck_assert_int_eq(het_cost_stage(&toy->problem, &stage, &forward, &backward, NULL), 0);
    ck_near(forward, 0.0125);
    ck_near(backward, 0.025);
    stage.recompute = HET_RECOMPUTE_FULL;
    ck_assert_int_eq(het_cost_stage(&toy->problem, &stage, &forward, &backward, NULL), 0);
    ck_near(backward, 0.025 + 0.0125);
    toy_free(toy);
}
END_TEST

START_TEST(missing_profile_is_named)
{
    struct toy *toy = toy_new();
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 8))));
    struct het_cost cost;
    struct het_error err;
    ck_assert_int_eq(het_cost_plan(&toy->problem, &plan, &cost, &err), -1);
    ck_assert_int_eq(err.code, HET_NO_PROFILE);
    ck_assert_str_eq(err.message,
                     "pipelines[0]: stages[0]: no profile for fast, tp 1, micro-batch 8");
    toy_free(toy);
}
END_TEST

START_TEST(send_inside_a_node_uses_the_gpus_links)
{
    struct toy *toy = toy_new();
    /* Two samples of 10 MB over one 100 GB/s link. */
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 100e9);
    /* A receiver of two ranks takes half on each, the sender's one link is the limit. */
    to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 2, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 100e9);
    toy_free(toy);
}
END_TEST

START_TEST(sends_by_cut_are_those_of_each_cut)
{
    static const double bytes[] = { 10e6, 20e6, 10e6, 40e6 };
    struct toy *toy = toy_new();
    double send_s[5] = { -1, 0, 0, 0, -1 };
    toy->profile.boundary_bytes = bytes;
    struct het_stage from = TOY_STAGE(toy, 0, 1, toy_replica(toy, TOY_F0, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 1, 3, toy_replica(toy, TOY_F0, 1, 1, 2));
    het_cost_sends(&toy->problem, &from, &to, send_s);
    ck_near(send_s[1], 2 * 10e6 / 100e9); /* two samples over one 100 GB/s link */
    ck_near(send_s[2], 2 * 20e6 / 100e9);
    ck_assert_double_eq(send_s[3], send_s[1]);
    ck_assert_double_eq(send_s[0], -1);
    ck_assert_double_eq(send_s[4], -1);
    toy_free(toy);
}
END_TEST

START_TEST(replicas_that_send_at_once_share_the_uplink)
{
    struct toy *toy = toy_new();
    /* All four samples leave s0 by its 5 GB/s uplink, though f0 could take 10. */
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 2),
                                      toy_replica(toy, TOY_S0, 1, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 4));
    ck_near(het_cost_send(&toy->problem, &from, &to), 4 * 10e6 / 5e9);
    /* With a limit of 1 GB/s a flow: two flows of two samples each. */
    toy->nodes[TOY_F0].flow_bytes_per_s = 1e9;
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 1e9);
    toy->nodes[TOY_F0].latency_s = 0.001;
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 1e9 + 0.001);
    toy_free(toy);
}
END_TEST

START_TEST(only_samples_that_change_node_cross_the_uplink)
{
    struct toy *toy = toy_new();
    /* f0 holds samples 0-2, s0 sample 3; then f0 0-1, s0 2-3: one sample crosses, into
     * s0 at 5 GB/s. */
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 3),
                                      toy_replica(toy, TOY_S0, 0, 1, 1));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2),
                                    toy_replica(toy, TOY_S0, 1, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 1 * 10e6 / 5e9);
    toy_free(toy);
}
END_TEST

START_TEST(ring_crosses_an_uplink_once_however_many_replicas)
{
    struct toy *toy = toy_new();
    /* All 1100 M parameters, 4 bytes; three replicas on f0, one on f1: n = 4. Each uplink
     * carries 2 * 3/4 of 4.4 GB at 10 GB/s. */
    struct het_stage stage = TOY_STAGE(
        toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 2), toy_replica(toy, TOY_F0, 1, 1, 2),
        toy_replica(toy, TOY_F0, 2, 1, 2), toy_replica(toy, TOY_F1, 0, 1, 2));
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    ck_near(het_cost_sync(&toy->problem, &plan), 1.5 * 4.4e9 / 10e9);
    /* tp 2: two rings of half the bytes cross the uplink, n = 2. */
    stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 2, 4),
                      toy_replica(toy, TOY_F1, 0, 2, 4));
    plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    ck_near(het_cost_sync(&toy->problem, &plan), 1.0 * 4.4e9 / 10e9);
    /* On one node only the GPUs' links count: 2 * 1/2 * 4.4 GB at 100 GB/s. */
    stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                      toy_replica(toy, TOY_F0, 1, 1, 4));
    plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    ck_near(het_cost_sync(&toy->problem, &plan), 1.0 * 4.4e9 / 100e9);
    /* A single replica has nothing to sum. */
    stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4));
    plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 2, stage));
    ck_assert(het_cost_sync(&toy->problem, &plan) == 0);
    toy_free(toy);
}
END_TEST

START_TEST(layers_are_summed_over_the_replicas_that_hold_them)
{
    struct toy *toy = toy_new();
    /* Pipeline 0: layers 0-1 on s0, 2-3 on f0; pipeline 1: all on f1.
     * Layers 0-1 (600 M): s0 and f1; 2-3 (500 M): f0 and f1; n = 2, share 1.
     * s0: 2.4 GB / 5 GB/s = 0.48 s; f0: 2 GB / 10 GB/s; f1 has both: 4.4 GB / 10 GB/s. */
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 4)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 4))),
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F1, 0, 1, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 2.4e9 / 5e9);
    toy->nodes[TOY_S0].uplink_bytes_per_s = 10e9;
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 10e9);
    /* f1's GPU sends both classes: with a slow link inside it is the limit. */
    toy->nodes[TOY_F1].intra_bytes_per_s = 4e9;
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 4e9);
    /* 2 (n-1) = 2 steps wait for the latency of s0, in the class of layers 0-1. */
    toy->nodes[TOY_F1].intra_bytes_per_s = 100e9;
    toy->nodes[TOY_S0].latency_s = 0.01;
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 10e9 + 2 * 0.01);
    toy_free(toy);
}
END_TEST

START_TEST(unequal_degrees_are_limited_by_the_largest_shard)
{
    struct toy *toy = toy_new();
    /* One replica of one GPU, one of two, same node: 2 * 1/2 of 4.4 GB on the first. */
    struct het_stage stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                       toy_replica(toy, TOY_F0, 1, 2, 4));
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 100e9);
    toy_free(toy);
}
END_TEST

START_TEST(shared_embedding_is_summed_over_both_ends)
{
    struct toy *toy = toy_new();
    toy->profile.shared_embedding = true;
    /* One pipeline, s0 then f0: layers 0 and 3 are one tensor, the larger is 400 M. */
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 4)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 1.6e9 / 5e9);
    /* Both ends in one stage: nothing to sum. */
    plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4))));
    ck_assert(het_cost_sync(&toy->problem, &plan) == 0);
    toy_free(toy);
}
END_TEST

START_TEST(plan_costs_pipelines_then_gradients_then_optimizer)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    /* Both pipelines alike, two samples a micro-batch, two micro-batches:
     * stage 0, slow: (1 + 2) * 3 * 1.5 * 2 = 27 ms; stage 1, fast: (3 + 4) * 3 * 1.5 =
     * 31.5 ms; send 20 MB at 5 GB/s = 4 ms, two at a time: 8 ms.
     * T_p = 27 + 31.5 + 2 * 8 + (2 - 1) * (31.5 + 2 * 8) = 122 ms. */
    const double pipeline_s = 0.0270 + 0.0315 + 2 * 0.008 + (0.0315 + 2 * 0.008);
    /* Layers 0-1 by two replicas on s0: 2.4 GB at 50 GB/s; 2-3 on f0: 2 GB at 100. */
    const double sync_s = 2.4e9 / 50e9;
    /* 600 of 1100 M parameters at 22 ms a model; fast: 500 of 1100 at 11 ms. */
    const double step_s = 0.022 * 600 / 1100;
    struct het_cost cost;
    ck_assert_int_eq(het_cost_plan(&toy->problem, &plan, &cost, NULL), 0);
    ck_near(cost.pipeline_s, pipeline_s);
    ck_near(cost.sync_s, sync_s);
    ck_near(cost.step_s, step_s);
    ck_near(cost.iteration_s, pipeline_s + sync_s + step_s);
    ck_assert_uint_eq(cost.slowest_pipeline, 0);
    ck_assert_uint_eq(cost.bottleneck_stage, 1);
    toy_free(toy);
}
END_TEST

/* ---- random plans against the definitions ---- */

/* The definition of het_cost_sync layer by layer and GPU by GPU. */
static double sync_by_definition(const struct toy *toy, const struct het_plan *plan)
{
    double uplink_s[3] = { 0 }, gpu_s[3][4] = { { 0 } }, largest = 0;
    for (uint32_t l = 0; l < 4; l++) {
        const struct het_replica *holders[32];
        size_t n = 0;
        bool on_node[3] = { false };
        for (size_t p = 0; p < plan->pipeline_count; p++)
            for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
                const struct het_stage *stage = &plan->pipelines[p].stages[s];
                if (l < stage->first_layer ||
                    l >= stage->first_layer + stage->layer_count)
                    continue;
                for (size_t r = 0; r < stage->replica_count; r++)
                    holders[n++] = &stage->replicas[r];
            }
        const double *parameters = toy->profile.bytes[0].parameters;
        double bytes = (parameters[l + 1] - parameters[l]) * 4;
        double share = 2.0 * (double)(n - 1) / (double)n;
        for (size_t i = 0; i < n; i++) {
            on_node[holders[i]->node] = true;
            for (uint32_t g = 0; g < holders[i]->tp; g++)
                gpu_s[holders[i]->node][holders[i]->gpus[g]] +=
                    share * bytes / holders[i]->tp /
                    toy->nodes[holders[i]->node].intra_bytes_per_s;
        }
        bool leaves = on_node[0] + on_node[1] + on_node[2] > 1;
        for (size_t node = 0; node < 3; node++)
            if (on_node[node] && leaves)
                uplink_s[node] += share * bytes / toy->nodes[node].uplink_bytes_per_s;
    }
    for (size_t node = 0; node < 3; node++) {
        largest = fmax(largest, uplink_s[node]);
        for (size_t g = 0; g < 4; g++)
            largest = fmax(largest, gpu_s[node][g]);
    }
    return largest;
}

static const struct het_replica *holder_of(const struct het_stage *stage, uint32_t sample)
{
    const struct het_replica *replica = stage->replicas;
    for (; sample >= replica->microbatch_size; replica++)
        sample -= replica->microbatch_size;
    return replica;
}

/* The definition of het_cost_send sample by sample. */
static double send_by_definition(const struct toy *toy, const struct het_stage *from,
                                 const struct het_stage *to)
{
    double out[3] = { 0 }, in[3] = { 0 }, gpu = 0, largest = 0;
    double bytes = toy->profile.boundary_bytes[from->first_layer + from->layer_count - 1];
    uint32_t samples = 0;
    for (size_t r = 0; r < from->replica_count; r++)
        samples += from->replicas[r].microbatch_size;
    for (uint32_t i = 0; i < samples; i++) {
        const struct het_replica *sender = holder_of(from, i),
                                 *receiver = holder_of(to, i);
        if (sender->node == receiver->node)
            continue;
        out[sender->node] += bytes / toy->nodes[sender->node].uplink_bytes_per_s;
        in[receiver->node] += bytes / toy->nodes[receiver->node].uplink_bytes_per_s;
    }
    const struct het_stage *sides[] = { from, to };
    for (size_t side = 0; side < 2; side++)
        for (size_t r = 0; r < sides[side]->replica_count; r++) {
            const struct het_replica *replica = &sides[side]->replicas[r];
            gpu = fmax(gpu, replica->microbatch_size * bytes / replica->tp /
                                toy->nodes[replica->node].intra_bytes_per_s);
        }
    for (size_t node = 0; node < 3; node++)
        largest = fmax(largest, fmax(out[node], in[node]));
    return fmax(largest, gpu);
}

START_TEST(random_plans_are_priced_as_defined)
{
    size_t made = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        struct toy *toy = toy_new();
        struct het_plan plan;
        uint64_t state = seed;
        if (toy_random_plan(toy, &state, &plan)) {
            made++;
            struct het_violations violations = { 0 };
            struct het_error err;
            struct het_cost cost;
            ck_assert_msg(!het_plan_check(toy->arena, &toy->problem, &plan, &violations),
                          "seed %d: %s", (int)seed, violations.messages[0]);
            ck_assert_msg(!het_cost_plan(&toy->problem, &plan, &cost, &err),
                          "seed %d: %s", (int)seed, err.message);
            ck_near(cost.sync_s, sync_by_definition(toy, &plan));
            for (size_t p = 0; p < plan.pipeline_count; p++)
                for (size_t s = 0; s + 1 < plan.pipelines[p].stage_count; s++) {
                    const struct het_stage *stage = &plan.pipelines[p].stages[s];
                    ck_near(het_cost_send(&toy->problem, stage, stage + 1),
                            send_by_definition(toy, stage, stage + 1));
                }
        }
        toy_free(toy);
    }
    ck_assert_uint_gt(made, 1000);
}
END_TEST

START_TEST(distributed_optimizer_steps_on_its_shard)
{
    struct toy *toy = toy_new();
    /* Layers 0-1 (600 of 1100 M parameters) have two holders, 2-3 one; fast: 11 ms for
     * all of them. */
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 1,
                          TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2),
                                    toy_replica(toy, TOY_F0, 1, 1, 2)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 4))));
    ck_near(het_cost_step(&toy->problem, &plan), 0.011 * 600 / 1100);
    toy->workload.optimizer = HET_ADAM_DISTRIBUTED;
    ck_near(het_cost_step(&toy->problem, &plan), 0.011 * 500 / 1100);
    toy_free(toy);
}
END_TEST

START_TEST(distributed_optimizer_gathers_weights_instead_of_gradients)
{
    struct toy *toy = toy_new();
    /* Two holders on nodes of 10 GB/s: half a ring reduces 1100 M gradients of 4 bytes,
     * 1/2 of them, and half gathers as much. */
    struct het_stage stage = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                       toy_replica(toy, TOY_F1, 0, 1, 4));
    struct het_plan plan = TOY_PLAN(toy, TOY_PIPELINE(toy, 1, stage));
    ck_near(het_cost_sync(&toy->problem, &plan), 0.5 * (4.4e9 + 4.4e9) / 10e9);
    toy->workload.optimizer = HET_ADAM_DISTRIBUTED;
    ck_near(het_cost_sync(&toy->problem, &plan), 0.5 * (4.4e9 + 4.4e9) / 10e9);
    toy->workload.precision = HET_BF16;
    ck_near(het_cost_sync(&toy->problem, &plan), 0.5 * (4.4e9 + 2.2e9) / 10e9);
    toy->workload.optimizer = HET_ADAM;
    ck_near(het_cost_sync(&toy->problem, &plan), 0.5 * (4.4e9 + 4.4e9) / 10e9);
    /* A quarter of it hides behind the backward pass. */
    toy->workload.gradient_overlap = 0.25;
    ck_near(het_cost_sync(&toy->problem, &plan), 0.75 * 4.4e9 / 10e9);
    toy_free(toy);
}
END_TEST

Suite *test_cost_suite(void)
{
    Suite *suite = suite_create("cost");
    TCase *cases = tcase_create("cost");
    tcase_add_test(cases, stage_is_as_slow_as_its_slowest_replica_each_way);
    tcase_add_test(cases, missing_profile_is_named);
    tcase_add_test(cases, send_inside_a_node_uses_the_gpus_links);
    tcase_add_test(cases, sends_by_cut_are_those_of_each_cut);
    tcase_add_test(cases, replicas_that_send_at_once_share_the_uplink);
    tcase_add_test(cases, only_samples_that_change_node_cross_the_uplink);
    tcase_add_test(cases, ring_crosses_an_uplink_once_however_many_replicas);
    tcase_add_test(cases, layers_are_summed_over_the_replicas_that_hold_them);
    tcase_add_test(cases, unequal_degrees_are_limited_by_the_largest_shard);
    tcase_add_test(cases, shared_embedding_is_summed_over_both_ends);
    tcase_add_test(cases, plan_costs_pipelines_then_gradients_then_optimizer);
    tcase_add_test(cases, random_plans_are_priced_as_defined);
    tcase_add_test(cases, distributed_optimizer_steps_on_its_shard);
    tcase_add_test(cases, distributed_optimizer_gathers_weights_instead_of_gradients);
    suite_add_tcase(suite, cases);
    return suite;
}
