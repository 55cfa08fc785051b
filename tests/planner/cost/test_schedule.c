/* planner/cost/schedule.c */
#include "planner/cost/bound.h"
#include "planner/cost/schedule.h"

#include "tests/planner/toy_plan.h"
#include "tests/scale.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12)

static struct het_cost simulate(const struct toy *toy, const struct het_plan *plan,
                                struct het_timeline *timeline)
{
    struct het_cost cost;
    struct het_error err = { 0 };
    ck_assert_msg(het_schedule_simulate(toy->arena, &toy->problem, plan, &cost, timeline,
                                        &err) == 0,
                  "%s", err.message);
    return cost;
}

static struct het_cost closed_form(const struct toy *toy, const struct het_plan *plan)
{
    struct het_cost cost;
    ck_assert_int_eq(het_cost_plan(&toy->problem, plan, &cost, NULL), 0);
    return cost;
}

/* Task `kind` of `microbatch`; milliseconds. */
static void ck_task(const struct het_timeline *timeline, uint32_t pipeline,
                    uint32_t stage, enum het_task_kind kind, uint32_t microbatch,
                    double start_ms, double end_ms)
{
    for (size_t i = 0; i < timeline->task_count; i++) {
        const struct het_task *task = &timeline->tasks[i];
        if (task->pipeline != pipeline || task->stage != stage || task->kind != kind ||
            task->microbatch != microbatch)
            continue;
        ck_assert_msg(fabs(task->start_s * 1e3 - start_ms) < 1e-9 &&
                          fabs(task->end_s * 1e3 - end_ms) < 1e-9,
                      "%s of micro-batch %u in stage %u.%u: %.9g to %.9g ms",
                      het_task_kind_name(kind), microbatch, pipeline, stage,
                      task->start_s * 1e3, task->end_s * 1e3);
        return;
    }
    ck_abort_msg("no %s of micro-batch %u in stage %u.%u", het_task_kind_name(kind),
                 microbatch, pipeline, stage);
}

/* ---- timelines by hand ---- */

START_TEST(one_stage_alternates_without_a_gap)
{
    struct toy *toy = toy_new();
    /* All layers for two samples: 10 * 1.5 = 15 ms forward, 30 back; 4 micro-batches. */
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 2))));
    struct het_timeline timeline;
    struct het_cost cost = simulate(toy, &plan, &timeline);
    ck_near(cost.pipeline_s, 4 * 0.045);
    ck_near(cost.iteration_s, 4 * 0.045 + 0.011); /* the optimizer */
    ck_assert_uint_eq(timeline.task_count, 4 * 2 + 2);
    ck_task(&timeline, 0, 0, HET_TASK_FORWARD, 3, 135, 150);
    ck_task(&timeline, 0, 0, HET_TASK_BACKWARD, 3, 150, 180);
    ck_task(&timeline, 0, 0, HET_TASK_GRADIENT_SYNC, 0, 180, 180);
    ck_task(&timeline, 0, 0, HET_TASK_OPTIMIZER_STEP, 0, 180, 191);
    ck_near(timeline.end_s, cost.iteration_s);
    toy_free(toy);
}
END_TEST

START_TEST(two_stages_exchange_activations_and_gradients)
{
    struct toy *toy = toy_new();
    /* Two samples. Layers 0-1: 3 * 1.5 = 4.5 ms forward, 9 back; layers 2-3: 7 * 1.5 =
     * 10.5 and 21. A send is 2 * 10 MB at 100 GB/s = 0.2 ms. */
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2))));
    struct het_timeline timeline;
    struct het_cost cost = simulate(toy, &plan, &timeline);
    ck_task(&timeline, 0, 0, HET_TASK_FORWARD, 0, 0, 4.5);
    ck_task(&timeline, 0, 0, HET_TASK_SEND_FORWARD, 0, 4.5, 4.7);
    ck_task(&timeline, 0, 1, HET_TASK_RECEIVE_FORWARD, 0, 4.5, 4.7);
    ck_task(&timeline, 0, 0, HET_TASK_FORWARD, 1, 4.7, 9.2);
    ck_task(&timeline, 0, 1, HET_TASK_FORWARD, 0, 4.7, 15.2);
    ck_task(&timeline, 0, 1, HET_TASK_BACKWARD, 0, 15.2, 36.2);
    /* Stage 0 has waited since 9.2. Activations first, then gradients. */
    ck_task(&timeline, 0, 0, HET_TASK_SEND_FORWARD, 1, 36.2, 36.4);
    ck_task(&timeline, 0, 0, HET_TASK_RECEIVE_BACKWARD, 0, 36.4, 36.6);
    ck_task(&timeline, 0, 1, HET_TASK_SEND_BACKWARD, 0, 36.4, 36.6);
    ck_task(&timeline, 0, 0, HET_TASK_BACKWARD, 0, 36.6, 45.6);
    ck_task(&timeline, 0, 1, HET_TASK_FORWARD, 1, 36.6, 47.1);
    ck_task(&timeline, 0, 1, HET_TASK_BACKWARD, 1, 47.1, 68.1);
    ck_task(&timeline, 0, 0, HET_TASK_RECEIVE_BACKWARD, 1, 68.1, 68.3);
    ck_task(&timeline, 0, 0, HET_TASK_BACKWARD, 1, 68.3, 77.3);
    ck_near(cost.pipeline_s, 0.0773);
    /* The closed form: 13.5 + 31.5 + 2 * 0.2 + (2 - 1) * (31.5 + 2 * 0.2) = 77.3. */
    ck_near(closed_form(toy, &plan).pipeline_s, 0.0773);
    ck_assert_uint_eq(cost.bottleneck_stage, 1);
    /* Tasks of a stage stand by start: 2 * (2 + 2) of the schedule, two more. */
    ck_assert_uint_eq(timeline.task_count, 2 * (2 * 4 + 2));
    toy_free(toy);
}
END_TEST

START_TEST(three_stages_wait_for_each_other)
{
    struct toy *toy = toy_new();
    /* One sample, three micro-batches, no time for sends inside the node to speak of:
     * made 0. Forward 3, 3, 4 ms (layers 0-1, 2, 3), backward twice that. */
    toy->nodes[TOY_F0].intra_bytes_per_s = 1e30;
    toy->workload.global_batch = 3;
    struct het_plan plan = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 3, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 1, toy_replica(toy, TOY_F0, 1, 1, 1)),
                          TOY_STAGE(toy, 3, 1, toy_replica(toy, TOY_F0, 2, 1, 1))));
    struct het_timeline timeline;
    struct het_cost cost = simulate(toy, &plan, &timeline);
    /* Stage 0 runs two forwards before it waits, stage 1 one; stage 1 is given
     * micro-batch 1 at 6 and hands it on only when stage 2 has done its backward. */
    ck_task(&timeline, 0, 0, HET_TASK_FORWARD, 1, 3, 6);
    ck_task(&timeline, 0, 0, HET_TASK_FORWARD, 2, 6, 9);
    ck_task(&timeline, 0, 1, HET_TASK_FORWARD, 0, 3, 6);
    ck_task(&timeline, 0, 1, HET_TASK_FORWARD, 1, 6, 9);
    ck_task(&timeline, 0, 2, HET_TASK_FORWARD, 0, 6, 10);
    ck_task(&timeline, 0, 2, HET_TASK_BACKWARD, 0, 10, 18);
    ck_task(&timeline, 0, 1, HET_TASK_BACKWARD, 0, 18, 24);
    ck_task(&timeline, 0, 2, HET_TASK_FORWARD, 1, 18, 22);
    ck_task(&timeline, 0, 2, HET_TASK_BACKWARD, 1, 22, 30);
    ck_task(&timeline, 0, 0, HET_TASK_BACKWARD, 0, 24, 30);
    ck_task(&timeline, 0, 1, HET_TASK_FORWARD, 2, 24, 27);
    ck_task(&timeline, 0, 2, HET_TASK_FORWARD, 2, 30, 34);
    ck_task(&timeline, 0, 1, HET_TASK_BACKWARD, 1, 30, 36);
    ck_task(&timeline, 0, 2, HET_TASK_BACKWARD, 2, 34, 42);
    ck_task(&timeline, 0, 1, HET_TASK_BACKWARD, 2, 42, 48);
    ck_task(&timeline, 0, 0, HET_TASK_BACKWARD, 2, 48, 54);
    /* 9 + 9 + 12 + (3 - 1) * 12 */
    ck_near(cost.pipeline_s, 0.054);
    toy_free(toy);
}
END_TEST

START_TEST(equal_pipelines_go_in_step_and_share_the_uplink)
{
    struct toy *toy = toy_new();
    /* Slow stage: 9 ms forward, 18 back; fast: 10.5 and 21. 20 MB a send, which alone
     * would take 4 ms through the 5 GB/s of s0; the two pipelines send at once: 8. */
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_timeline timeline;
    struct het_cost cost = simulate(toy, &plan, &timeline);
    for (uint32_t p = 0; p < 2; p++) {
        ck_task(&timeline, p, 0, HET_TASK_SEND_FORWARD, 0, 9, 17);
        ck_task(&timeline, p, 0, HET_TASK_FORWARD, 1, 17, 26);
        ck_task(&timeline, p, 1, HET_TASK_BACKWARD, 0, 27.5, 48.5);
        ck_task(&timeline, p, 1, HET_TASK_RECEIVE_FORWARD, 1, 48.5, 56.5);
        ck_task(&timeline, p, 1, HET_TASK_SEND_BACKWARD, 0, 56.5, 64.5);
        ck_task(&timeline, p, 1, HET_TASK_BACKWARD, 1, 75, 96);
        ck_task(&timeline, p, 0, HET_TASK_RECEIVE_BACKWARD, 1, 96, 104);
        ck_task(&timeline, p, 0, HET_TASK_BACKWARD, 1, 104, 122);
    }
    ck_near(cost.pipeline_s, 0.122);
    /* With a millisecond of latency behind each of the four sends that follow each other.
     */
    toy->nodes[TOY_S0].latency_s = 0.001;
    ck_near(simulate(toy, &plan, NULL).pipeline_s, 0.126);
    toy_free(toy);
}
END_TEST

/* Pipelines on s0 and f0 with unlike first stages, `first` samples a micro-batch in one,
 * four in the other. */
static struct het_plan unlike_pipelines(struct toy *toy, uint32_t microbatches,
                                        uint32_t first)
{
    toy->workload.global_batch = microbatches * first + 4;
    return TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, microbatches,
                     TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, first)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, first))),
        TOY_PIPELINE(toy, 1, TOY_STAGE(toy, 0, 1, toy_replica(toy, TOY_S0, 1, 1, 4)),
                     TOY_STAGE(toy, 1, 3, toy_replica(toy, TOY_F0, 1, 1, 4))));
}

START_TEST(sends_are_rated_anew_when_one_begins_or_ends)
{
    struct toy *toy = toy_new();
    /* One is done with layers 0-1 of a sample at 3 * 2 = 6 ms, the other with layer 0 of
     * four at 1 * 2 * 2.5 = 5. Its 40 MB would take 8 ms; at 6 it has 35 left. Then both
     * have 2.5 GB/s: 10 MB from 6 to 10, when the other has 25 MB left: 5 ms more. */
    struct het_plan plan = unlike_pipelines(toy, 4, 1);
    struct het_timeline timeline;
    simulate(toy, &plan, &timeline);
    ck_task(&timeline, 0, 0, HET_TASK_SEND_FORWARD, 0, 6, 10);
    ck_task(&timeline, 1, 0, HET_TASK_SEND_FORWARD, 0, 5, 15);
    toy_free(toy);
}
END_TEST

START_TEST(what_a_flow_cannot_use_is_left_to_others)
{
    struct toy *toy = toy_new();
    /* The second pipeline goes on to f1, which takes 1 GB/s a flow: of s0's 5 GB/s the
     * first has 4. 10 MB from 6 to 8.5 ms, 40 MB from 5 to 45. */
    struct het_plan plan = unlike_pipelines(toy, 4, 1);
    const struct het_stage *stages = TOY_ARRAY(
        toy, struct het_stage, TOY_STAGE(toy, 0, 1, toy_replica(toy, TOY_S0, 1, 1, 4)),
        TOY_STAGE(toy, 1, 3, toy_replica(toy, TOY_F1, 0, 1, 4)));
    struct het_pipeline pipelines[] = { plan.pipelines[0], { 1, stages, 2 } };
    plan.pipelines = pipelines;
    toy->nodes[TOY_F1].flow_bytes_per_s = 1e9;
    struct het_timeline timeline;
    simulate(toy, &plan, &timeline);
    ck_task(&timeline, 0, 0, HET_TASK_SEND_FORWARD, 0, 6, 8.5);
    ck_task(&timeline, 1, 0, HET_TASK_SEND_FORWARD, 0, 5, 45);
    toy_free(toy);
}
END_TEST

START_TEST(a_link_is_shared_by_flows)
{
    struct toy *toy = toy_new();
    /* The first stage of one is two replicas, two flows of one sample each: they get two
     * thirds of s0's 5 GB/s. They begin at 3 * 2 = 6 ms with 20 MB, when the other, alone
     * since 5, has 35 MB left: 6 ms for the 20 MB, the other has moved 10 MB meanwhile
     * and needs 5 ms for the rest. */
    struct het_plan plan = unlike_pipelines(toy, 4, 1);
    const struct het_stage *stages =
        TOY_ARRAY(toy, struct het_stage,
                  TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 1),
                            toy_replica(toy, TOY_S0, 2, 1, 1)),
                  TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 2)));
    struct het_pipeline pipelines[] = { { 2, stages, 2 }, plan.pipelines[1] };
    plan.pipelines = pipelines;
    struct het_timeline timeline;
    simulate(toy, &plan, &timeline);
    ck_task(&timeline, 0, 0, HET_TASK_SEND_FORWARD, 0, 6, 12);
    ck_task(&timeline, 1, 0, HET_TASK_SEND_FORWARD, 0, 5, 17);
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
    ck_assert_int_eq(
        het_schedule_simulate(toy->arena, &toy->problem, &plan, &cost, NULL, &err), -1);
    ck_assert_int_eq(err.code, HET_NO_PROFILE);
    ck_assert_str_eq(err.message,
                     "pipelines[0]: stages[0]: no profile for fast, tp 1, micro-batch 8");
    toy_free(toy);
}
END_TEST

/* ---- long runs ---- */

START_TEST(a_long_run_goes_on_at_its_pace)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_pipeline pipelines[] = { plan.pipelines[0], plan.pipelines[1] };
    plan.pipelines = pipelines;
    double short_s[2];
    for (uint32_t i = 0; i < 2; i++) {
        pipelines[0].microbatch_count = pipelines[1].microbatch_count = 100 + i;
        short_s[i] = simulate(toy, &plan, NULL).pipeline_s;
    }
    pipelines[0].microbatch_count = pipelines[1].microbatch_count = 1000100;
    double expected = short_s[0] + 1e6 * (short_s[1] - short_s[0]);
    ck_assert_double_eq_tol(simulate(toy, &plan, NULL).pipeline_s / expected, 1, 1e-9);
    struct het_cost cost;
    struct het_timeline timeline;
    struct het_error err;
    ck_assert_int_eq(
        het_schedule_simulate(toy->arena, &toy->problem, &plan, &cost, &timeline, &err),
        -1);
    ck_assert_ptr_nonnull(strstr(err.message, "too long to show"));
    /* A pipeline of one stage is no work at all. */
    struct het_stage whole = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 2));
    pipelines[0] = (struct het_pipeline){ 2000000000, &whole, 1 };
    plan.pipeline_count = 1;
    ck_assert_double_eq_tol(simulate(toy, &plan, NULL).pipeline_s, 2e9 * 0.045, 1e-3);
    toy_free(toy);
}
END_TEST

/* ---- random plans ---- */

static double busy_s(const struct toy *toy, const struct het_pipeline *pipeline,
                     uint32_t s)
{
    double forward, backward;
    ck_assert_int_eq(
        het_cost_stage(&toy->problem, &pipeline->stages[s], &forward, &backward, NULL),
        0);
    double sends = 0;
    if (s)
        sends +=
            het_cost_send(&toy->problem, &pipeline->stages[s - 1], &pipeline->stages[s]);
    if (s + 1 < pipeline->stage_count)
        sends +=
            het_cost_send(&toy->problem, &pipeline->stages[s], &pipeline->stages[s + 1]);
    return pipeline->microbatch_count * (forward + backward + 2 * sends);
}

/* Each stage does its work, in order, one task at a time; what it receives was sent at
 * the same time. */
static void check_timeline(int seed, const struct het_plan *plan,
                           const struct het_timeline *timeline)
{
    static const enum het_task_kind received[HET_TASK_KINDS] = {
        [HET_TASK_SEND_FORWARD] = HET_TASK_RECEIVE_FORWARD,
        [HET_TASK_SEND_BACKWARD] = HET_TASK_RECEIVE_BACKWARD,
    };
    size_t computes = 0, transfers = 0, expected = 0, expected_transfers = 0;
    for (size_t i = 0; i < timeline->task_count; i++) {
        const struct het_task *task = &timeline->tasks[i];
        ck_assert_msg(task->start_s <= task->end_s, "seed %d", seed);
        if (i && task[-1].pipeline == task->pipeline && task[-1].stage == task->stage)
            ck_assert_msg(task[-1].end_s <= task->start_s * (1 + 1e-12), "seed %d", seed);
        if (task->kind == HET_TASK_FORWARD || task->kind == HET_TASK_BACKWARD)
            computes++;
        if (!received[task->kind])
            continue;
        transfers++;
        uint32_t other = task->kind == HET_TASK_SEND_FORWARD ? task->stage + 1
                                                             : task->stage - 1;
        bool found = false;
        for (size_t j = 0; j < timeline->task_count && !found; j++) {
            const struct het_task *mate = &timeline->tasks[j];
            found = mate->pipeline == task->pipeline && mate->stage == other &&
                    mate->kind == received[task->kind] &&
                    mate->microbatch == task->microbatch &&
                    mate->start_s == task->start_s && mate->end_s == task->end_s;
        }
        ck_assert_msg(found, "seed %d: a send that nobody receives", seed);
    }
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        expected += 2 * pipeline->stage_count * pipeline->microbatch_count;
        expected_transfers += 2 * (pipeline->stage_count - 1) *
                              pipeline->microbatch_count;
    }
    ck_assert_msg(computes == expected, "seed %d", seed);
    ck_assert_msg(transfers == expected_transfers, "seed %d", seed);
}

/* One more micro-batch in pipeline `p`. */
static struct het_plan with_one_more(const struct toy *toy, const struct het_plan *plan,
                                     size_t p)
{
    struct het_plan more = *plan;
    struct het_pipeline *pipelines =
        toy_copy(toy, plan->pipelines, plan->pipeline_count * sizeof *pipelines);
    pipelines[p].microbatch_count++;
    more.pipelines = pipelines;
    return more;
}

static void check_random_plan(int seed, struct toy *toy, const struct het_plan *plan)
{
    struct het_timeline timeline;
    struct het_cost cost = simulate(toy, plan, &timeline), again;
    again = simulate(toy, plan, NULL);
    ck_assert_msg(!memcmp(&cost, &again, sizeof cost), "seed %d", seed);
    check_timeline(seed, plan, &timeline);
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (uint32_t s = 0; s < pipeline->stage_count; s++)
            ck_assert_msg(busy_s(toy, pipeline, s) <= cost.pipeline_s * (1 + 1e-12),
                          "seed %d: below the work of stage %u.%u", seed, p, s);
        /* Alone a pipeline is no slower, and takes more time for more. */
        struct het_plan alone = *plan;
        alone.pipelines = pipeline;
        alone.pipeline_count = 1;
        double alone_s = simulate(toy, &alone, NULL).pipeline_s;
        ck_assert_msg(alone_s <= cost.pipeline_s * (1 + 1e-9), "seed %d", seed);
        struct het_plan more = with_one_more(toy, &alone, 0);
        ck_assert_msg(alone_s < simulate(toy, &more, NULL).pipeline_s, "seed %d", seed);
        /* The closed form, which fills a pipeline stage after stage, is above it. */
        double closed_s = closed_form(toy, &alone).pipeline_s;
        ck_assert_msg(alone_s <= closed_s * (1 + 1e-9), "seed %d: %.9g, %.9g", seed,
                      alone_s, closed_s);
    }
    ck_assert_msg(het_bound_floor(&toy->problem) <= cost.iteration_s, "seed %d", seed);
}

START_TEST(random_plans_keep_what_every_timeline_keeps)
{
    size_t made = 0;
    for (int seed = 1; seed <= SCALED(2000); seed++) {
        struct toy *toy = toy_new();
        struct het_plan plan;
        uint64_t state = (uint64_t)seed;
        if (toy_random_plan(toy, &state, &plan)) {
            made++;
            check_random_plan(seed, toy, &plan);
        }
        toy_free(toy);
    }
    ck_assert_uint_gt(made, SCALED(500));
}
END_TEST

Suite *test_schedule_suite(void)
{
    Suite *suite = suite_create("schedule");
    TCase *cases = tcase_create("simulate_plan");
    tcase_add_test(cases, one_stage_alternates_without_a_gap);
    tcase_add_test(cases, two_stages_exchange_activations_and_gradients);
    tcase_add_test(cases, three_stages_wait_for_each_other);
    tcase_add_test(cases, equal_pipelines_go_in_step_and_share_the_uplink);
    tcase_add_test(cases, sends_are_rated_anew_when_one_begins_or_ends);
    tcase_add_test(cases, what_a_flow_cannot_use_is_left_to_others);
    tcase_add_test(cases, a_link_is_shared_by_flows);
    tcase_add_test(cases, missing_profile_is_named);
    tcase_add_test(cases, a_long_run_goes_on_at_its_pace);
    tcase_add_test(cases, random_plans_keep_what_every_timeline_keeps);
    suite_add_tcase(suite, cases);
    return suite;
}
