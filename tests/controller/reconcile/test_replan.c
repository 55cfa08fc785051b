/* Whether a job moves to a better plan, by every field of spec.replanPolicy. */
#include "controller/base/object.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/children.h"
#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;

static void setup(void)
{
    world = world_of("a:4 b:4");
}

static void teardown(void)
{
    world_free(world);
}

static void answer(const char *nodes, double iteration_s)
{
    world_answer_nodes(world, nodes, iteration_s);
    world_settle(world);
}

/* A job that runs on a:4 and b:4, 2 s an iteration, for an hour; the start took 60 s. */
static void run_job(const char *spec)
{
    world_job(world, spec);
    world_settle(world);
    answer("a:4 b:4", 2.0);
    world_pass_s(world, 60);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    world_pass_s(world, 3600);
}

/* Node `name` joins; the debounce is over. */
static void join(const char *name)
{
    world_node(world, name, "NVIDIA-" A100, 4);
    world_settle(world);
    world_pass_s(world, 30);
}

static int64_t number_at(const char *object, const char *key)
{
    return json_integer_value(json_object_get(world_status(world, object), key));
}

static const char *text_at(const char *object, const char *key)
{
    const char *text =
        json_string_value(json_object_get(world_status(world, object), key));
    return text ? text : "";
}

/* As `kubectl patch` does. */
static void change_spec(const char *path, json_t *value)
{
    json_t *job = json_deep_copy(world_get_job(world));
    object_set(json_object_get(job, "spec"), path, value);
    json_object_set_new(json_object_get(job, "metadata"), "generation",
                        json_integer(object_integer(job, "metadata.generation", 0) + 1));
    world_put(world, &kube_job, job);
    world_settle(world);
}

static void approve(const char *hash)
{
    change_spec("replanPolicy.approvedPlanHash", json_string(hash));
}

static void plan_only(bool is_so)
{
    change_spec("planOnly", json_boolean(is_so));
}

/* The controller was restarted. */
static void forget(void)
{
    world->memory = (struct job_memory){ 0 };
    world_settle(world);
}

/* ---- the rule ---- */

START_TEST(plan_that_does_not_pay_is_turned_down_with_its_numbers)
{
    /* 25 % of 1,200 s are 300 s; half an interval of 600 s and a start of 60 s are lost.
     * The profile says nothing of the state's size. */
    run_job("{'replanPolicy': {'amortizationSeconds': 1200, 'minImprovementPercent': 1}, "
            "'checkpoint': {'intervalSeconds': 600}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NotWorthTheRestart");
    ck_assert_str_eq(text_at("lastReplanDecision", "result"), "Rejected");
    ck_assert_str_eq(text_at("lastReplanDecision", "reason"), "NotWorthTheRestart");
    ck_assert_str_eq(text_at("lastReplanDecision", "trigger"), "NodeAdded");
    ck_assert_int_eq(number_at("lastReplanDecision", "gainPercent"), 25);
    ck_assert_int_eq(number_at("lastReplanDecision", "costSeconds"), 360);
    ck_assert_int_eq(number_at("lastReplanDecision", "benefitSeconds"), 300);
    ck_assert_int_eq(number_at("lastReplanDecision", "horizonSeconds"), 1200);
    ck_assert_int_eq(number_at("lastReplanDecision", "currentIterationMilliseconds"),
                     2000);
    ck_assert_int_eq(number_at("lastReplanDecision", "candidateIterationMilliseconds"),
                     1600);
    ck_assert_int_eq((int)strlen(text_at("lastReplanDecision", "candidateHash")),
                     (int)strlen("sha256:") + 64);
    ck_assert_str_eq(world->last_event, "ReplanSuppressed");

    /* Nothing more is said, though the clock goes on. */
    int writes = world->writes;
    for (int i = 0; i < 5; i++)
        world_pass_s(world, 3600);
    ck_assert_int_eq(world->writes, writes);
    ck_assert_int_eq(world_generation(world), 1);
}
END_TEST

START_TEST(longer_horizon_makes_the_same_plan_pay)
{
    run_job("{'replanPolicy': {'amortizationSeconds': 3600, 'minImprovementPercent': 1}, "
            "'checkpoint': {'intervalSeconds': 600}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(text_at("lastReplanDecision", "result"), "Accepted");
    ck_assert_int_eq(number_at("lastReplanDecision", "benefitSeconds"), 900);
    ck_assert_str_eq(text_at("plan", "trigger"), "BetterPlan");
    ck_assert_str_ne(json_string_value(world_status(world, "lastReplanTime")), "");
}
END_TEST

START_TEST(program_that_says_when_its_checkpoint_is_written_loses_no_work)
{
    run_job("{'replanPolicy': {'amortizationSeconds': 1200, 'minImprovementPercent': 1}, "
            "'checkpoint': {'intervalSeconds': 600, 'onDisruption': {'method': 'HTTP', "
            "'http': {'port': 8080}}}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_int_eq(number_at("lastReplanDecision", "costSeconds"), 60);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(deadline_bounds_the_horizon)
{
    /* Started after 60 s; an hour and 30 s later 20 minutes are left. */
    run_job("{'activeDeadlineSeconds': 4830, 'replanPolicy': {'minImprovementPercent': "
            "1}, 'checkpoint': {'intervalSeconds': 600}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_int_eq(number_at("lastReplanDecision", "horizonSeconds"), 1200);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NotWorthTheRestart");
}
END_TEST

START_TEST(least_improvement_counts_after_the_cost)
{
    /* 25 % - 60 s / 600 s = 15 %; one percent more is asked. */
    run_job(
        "{'replanPolicy': {'amortizationSeconds': 600, 'minImprovementPercent': 16}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NotWorthTheRestart");
}
END_TEST

START_TEST(changed_policy_weighs_the_same_plan_again)
{
    run_job("{'replanPolicy': {'minImprovementPercent': 50}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "BelowThreshold");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(json_object_get(job, "spec"), "replanPolicy"),
                        "minImprovementPercent", json_integer(10));
    json_object_set_new(json_object_get(job, "metadata"), "generation", json_integer(2));
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(start_is_measured_once_a_generation)
{
    run_job("{}");
    ck_assert_int_eq(number_at("lastStart", "revision"), 1);
    ck_assert_int_eq(number_at("lastStart", "seconds"), 60);
}
END_TEST

/* ---- damping ---- */

START_TEST(cap_of_an_hour_counts_voluntary_plans_only)
{
    run_job("{'replanPolicy': {'maxReplansPerHour': 2, 'cooldownSeconds': 60, "
            "'minImprovementPercent': 1}}");
    join("c");
    answer("a:4 b:4 c:4", 1.0);
    world_run_pods(world);
    world_pass_s(world, 60);
    /* A lost node is not voluntary. */
    world_remove(world, &kube_node, "", "c");
    world_settle(world);
    world_pass_s(world, 5);
    answer("a:4 b:4", 2.0);
    world_run_pods(world);
    world_pass_s(world, 60);
    ck_assert_int_eq(world_generation(world), 3);
    join("d");
    world_pass_s(world, 60);
    answer("a:4 b:4 d:4", 1.0);
    world_run_pods(world);
    world_pass_s(world, 60);
    ck_assert_int_eq(world_generation(world), 4);
    int asked = world->plans_asked;
    join("e");
    world_pass_s(world, 60);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "HourlyLimit");
    ck_assert_int_eq(world->plans_asked, asked);
    forget(); /* the count is in the cluster */
    world_pass_s(world, 120);
    ck_assert_int_eq(world->plans_asked, asked);
    world_pass_s(world, 3600);
    ck_assert_int_eq(world->plans_asked, asked + 1);
}
END_TEST

START_TEST(cooling_down_is_said)
{
    run_job("{'replanPolicy': {'cooldownSeconds': 7200}}");
    join("c");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "CoolingDown");
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

START_TEST(changes_that_are_not_listed_are_passed_over)
{
    run_job("{'replanPolicy': {'triggers': ['CapacityFreed']}}");
    join("c");
    world_pass_s(world, 3600);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "TriggerNotListed");
    ck_assert_ptr_nonnull(strstr(world_message(world, "PlanOutdated"), "NodeAdded"));
    ck_assert_int_eq(world->plans_asked, 1);
    /* What is lost is always acted on. */
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world_pass_s(world, 5);
    ck_assert_int_eq(world->plans_asked, 2);
}
END_TEST

START_TEST(cordoned_node_is_left_only_if_that_is_listed)
{
    run_job("{'replanPolicy': {'triggers': ['NodeAdded']}}");
    json_t *node = json_deep_copy(store_find(world->store, &kube_node, "", "b"));
    json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    world_put(world, &kube_node, node);
    world_settle(world);
    world_pass_s(world, 60);
    ck_assert_int_eq(world->plans_asked, 1);
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(json_object_get(job, "spec"), "replanPolicy"),
                        "triggers", quoted("['NodeCordoned']"));
    world_put(world, &kube_job, job);
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
}
END_TEST

START_TEST(never_does_not_look)
{
    run_job("{'replanPolicy': {'mode': 'Never'}}");
    join("c");
    world_pass_s(world, 3600);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "ModeIsNever");
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

/* ---- approval ---- */

#define OTHER_HASH                                                                       \
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void offer_candidate(void)
{
    run_job("{'replanPolicy': {'mode': 'Manual'}}");
    join("c");
    answer("a:4 b:4 c:4", 1.0);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "ApprovalNeeded");
    ck_assert_str_eq(text_at("lastReplanDecision", "result"), "Reported");
    ck_assert_ptr_nonnull(
        strstr(world_message(world, "PlanOutdated"), text_at("candidate", "hash")));
    ck_assert_int_eq(world_generation(world), 1);
}

START_TEST(approved_candidate_is_carried_out)
{
    offer_candidate();
    int writes = world->writes;
    world_pass_s(world, 7200);
    ck_assert_int_eq(world->writes, writes);
    const char *hash = het_arena_strdup(world->arena, text_at("candidate", "hash"));
    approve(hash);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(text_at("plan", "hash"), hash);
    ck_assert_str_eq(text_at("plan", "trigger"), "Approved");
    ck_assert_ptr_null(world_status(world, "candidate"));
    world_run_pods(world);
    world_pass_s(world, 7200);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "UpToDate");
    ck_assert_ptr_null(strstr(world_message(world, "PlanOutdated"), "approval"));
}
END_TEST

START_TEST(approved_candidate_is_carried_out_by_another_controller_too)
{
    offer_candidate();
    const char *hash = het_arena_strdup(world->arena, text_at("candidate", "hash"));
    world->memory = (struct job_memory){ 0 };
    approve(hash);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(world->plans_asked, 2);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@ job-2-2@");
}
END_TEST

START_TEST(approval_of_another_plan_is_passed_over_and_that_is_said)
{
    offer_candidate();
    approve(OTHER_HASH);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "ApprovalStale");
    ck_assert_ptr_nonnull(strstr(world_message(world, "PlanOutdated"), OTHER_HASH));
    ck_assert_str_eq(world->last_event, "ApprovalStale");
}
END_TEST

START_TEST(approval_of_another_plan_does_not_weigh_anew_what_was_turned_down)
{
    /* What a restart loses grows with each second that the pods run. */
    run_job("{'checkpoint': {'onDisruption': {'method': 'None'}}}");
    join("c");
    answer("a:4 b:4 c:4", 1.6);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NotWorthTheRestart");
    int64_t cost_s = number_at("lastReplanDecision", "costSeconds");
    world_pass_s(world, 600);
    approve(OTHER_HASH);
    ck_assert_ptr_nonnull(strstr(world_message(world, "PlanOutdated"), OTHER_HASH));
    ck_assert_int_eq(number_at("lastReplanDecision", "costSeconds"), cost_s);
    ck_assert_int_eq(world->plans_asked, 2);
    change_spec("replanPolicy.minImprovementPercent", json_integer(16));
    ck_assert_int_ge(number_at("lastReplanDecision", "costSeconds"), cost_s + 600);
}
END_TEST

START_TEST(approved_candidate_that_fits_no_more_is_passed_over)
{
    offer_candidate();
    const char *hash = het_arena_strdup(world->arena, text_at("candidate", "hash"));
    world_remove(world, &kube_node, "", "c");
    world_settle(world);
    approve(hash);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "UpToDate");
    ck_assert_ptr_nonnull(strstr(world_message(world, "PlanOutdated"), "passed over"));
}
END_TEST

START_TEST(lost_node_in_manual_mode_waits_for_approval_of_another_plan)
{
    run_job("{'replanPolicy': {'mode': 'Manual'}}");
    world_node(world, "c", "NVIDIA-" A100, 4);
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world_pass_s(world, 5);
    answer("a:4 c:4", 2.0);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "ApprovalNeeded");
    ck_assert_str_eq(world_pods(world), "");
    const char *hash = het_arena_strdup(world->arena, text_at("candidate", "hash"));
    approve(hash);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
}
END_TEST

/* ---- what moves, and what may ---- */

/* The answer `best` with `stable` beside it. */
static void answer_both(const char *best, double best_s, const char *stable,
                        double stable_s)
{
    auto_free char *best_text = world_plan(best, A100, best_s);
    auto_free char *stable_text = world_plan(stable, A100, stable_s);
    json_auto_t *plan = json_loads(best_text, 0, NULL);
    json_object_set_new(json_object_get(plan, "predicted"), "stable",
                        json_loads(stable_text, 0, NULL));
    auto_free char *text = json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS);
    world_answer(world, text);
    world_settle(world);
}

START_TEST(plan_that_moves_less_is_taken_before_the_fastest_one)
{
    run_job("{}");
    world_node(world, "c", "NVIDIA-" A100, 4);
    world_node(world, "d", "NVIDIA-" A100, 4);
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world_pass_s(world, 5);
    answer_both("c:4 d:4", 2.0, "a:4 c:4", 2.1);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@c");
}
END_TEST

/* The planner knows how fast the storage is; the program gets 120 s at most. */
static void check_cost_of_writing(double write_s, int cost_s)
{
    run_job("{'replanPolicy': {'amortizationSeconds': 1200}}");
    join("c");
    auto_free char *text = world_plan("a:4 b:4 c:4", A100, 1.9);
    json_auto_t *plan = json_loads(text, 0, NULL);
    json_object_set_new(json_object_get(plan, "predicted"), "migration",
                        json_pack("{s:f, s:f}", "seconds", 5.0, "writeSeconds", write_s));
    auto_free char *with_migration = json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS);
    world_answer(world, with_migration);
    world_settle(world);
    ck_assert_str_eq(text_at("lastReplanDecision", "result"), "Rejected");
    ck_assert_int_eq(number_at("lastReplanDecision", "costSeconds"), cost_s);
}

START_TEST(checkpoint_costs_what_writing_it_takes)
{
    check_cost_of_writing(40, 60 + 5 + 40);
}
END_TEST

START_TEST(checkpoint_costs_no_more_than_the_program_gets)
{
    check_cost_of_writing(400, 60 + 5 + 120);
}
END_TEST

START_TEST(question_says_how_much_slower_a_plan_may_be_that_moves_less)
{
    run_job("{'replanPolicy': {'minImprovementPercent': 40, 'maxSlowdownPercent': 12}}");
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .now_ms = world->now_ms };
    struct snapshot snapshot;
    ck_assert(
        snapshot_take(world->arena, &sources, "ns", "job", &world->memory, &snapshot));
    json_auto_t *question = children_question(&snapshot);
    const json_t *job = json_object_get(question, "job");
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(job, "migration"),
                                                        "maxSlowdownPercent")),
                     12);
    ck_assert_ptr_nonnull(json_object_get(job, "from"));
}
END_TEST

START_TEST(same_plan_moves_to_equal_nodes_and_to_no_others)
{
    run_job("{'checkpoint': {'resharding': 'SamePlan'}}");
    world_node(world, "c", "NVIDIA-" A100, 2);
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world_pass_s(world, 5);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "CheckpointNotLoadable");
    ck_assert_str_eq(world_pods(world), "");
    world_node(world, "d", "NVIDIA-" A100, 8);
    world_pass_s(world, 5);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@d");
    ck_assert_int_eq(world->plans_asked, 1);
}
END_TEST

/* A plan of two stages, one layer each, on nodes a and b. */
static char *two_stage_plan(double iteration_s)
{
    auto_free char *text = world_plan("a:4 b:4", A100, iteration_s);
    json_auto_t *plan = json_loads(text, 0, NULL);
    json_t *pipeline = json_array_get(json_object_get(plan, "pipelines"), 0);
    json_t *stages = json_object_get(pipeline, "stages");
    json_t *first = json_array_get(stages, 0);
    json_t *second = json_deep_copy(first);
    json_object_set_new(pipeline, "microBatches", json_integer(8));
    json_array_remove(json_object_get(first, "replicas"), 1);
    json_array_remove(json_object_get(second, "replicas"), 0);
    json_object_set_new(first, "layerCount", json_integer(1));
    json_object_set_new(second, "layerCount", json_integer(1));
    json_object_set_new(second, "firstLayer", json_integer(1));
    json_array_append_new(stages, second);
    return json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS);
}

START_TEST(other_cut_cannot_follow_a_checkpoint_of_the_same_pipeline)
{
    run_job("{'checkpoint': {'resharding': 'SamePipeline'}}");
    join("c");
    auto_free char *plan = two_stage_plan(1.0);
    world_answer(world, plan);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "CheckpointNotLoadable");
    join("d");
    answer("a:4 b:4 c:4 d:4", 1.0); /* one stage of all layers, as before */
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(any_plan_may_follow_before_there_is_a_checkpoint)
{
    world_job(world, "{'checkpoint': {'resharding': 'SamePlan'}}");
    world_settle(world);
    answer("a:4 b:4", 2.0);
    world_remove(world, &kube_node, "", "b");
    world_settle(world);
    world_pass_s(world, 5);
    answer("a:4", 4.0);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

/* ---- previews ---- */

static json_t *candidate_map(void)
{
    return store_find(world->store, &kube_config_map, "ns", "job-candidate");
}

/* The plan that is shown is the one ConfigMap. */
static void check_candidate(void)
{
    const struct het_plan *plan = plan_object_read(world->arena, candidate_map());
    ck_assert_ptr_nonnull(plan);
    ck_assert_str_eq(het_plan_json_hash(world->arena, plan),
                     text_at("candidate", "hash"));
    ck_assert_str_eq(
        object_text(world_get_job(world), "status.candidate.configMapRef.name"),
        "job-candidate");
    ck_assert_uint_eq(store_count(world->store, &kube_config_map), 1);
}

START_TEST(plan_only_shows_the_plan_and_creates_nothing_else)
{
    world_job(world, "{}");
    plan_only(true);
    answer("a:4 b:4", 2.0);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "PlanOnly");
    ck_assert_str_eq(object_condition(world_get_job(world), "PlanFeasible"), "True");
    ck_assert_str_eq(world_reason(world, "Running"), "PlanOnly");
    ck_assert_str_eq(object_text(world_get_job(world), "status.state"), "Planned");
    check_candidate();
    ck_assert_uint_eq(store_count(world->store, &kube_service), 0);
    ck_assert_uint_eq(store_count(world->store, &kube_pod), 0);
    ck_assert_ptr_null(world_status(world, "plan"));

    /* It follows the cluster, after the debounce. */
    world_node(world, "c", "NVIDIA-" A100, 4);
    world_settle(world);
    world_pass_s(world, 29);
    ck_assert_int_eq(world->plans_asked, 1);
    world_pass_s(world, 1);
    answer("a:4 b:4 c:4", 1.0);
    ck_assert_int_eq(json_integer_value(json_object_get(
                         json_object_get(world_status(world, "candidate"), "predicted"),
                         "iterationMilliseconds")),
                     1000);
    check_candidate();

    plan_only(false);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_ptr_null(world_status(world, "candidate"));
    ck_assert_ptr_null(candidate_map());
}
END_TEST

START_TEST(candidate_whose_config_map_was_deleted_is_looked_for_again)
{
    world_job(world, "{}");
    plan_only(true);
    answer("a:4 b:4", 2.0);
    world_remove(world, &kube_config_map, "ns", "job-candidate");
    world_settle(world);
    check_candidate();
    /* Also where nobody remembers the plan. */
    world_remove(world, &kube_config_map, "ns", "job-candidate");
    world->memory = (struct job_memory){ 0 };
    world_settle(world);
    ck_assert_ptr_null(world_status(world, "candidate"));
    answer("a:4 b:4", 2.0);
    check_candidate();
}
END_TEST

START_TEST(plan_only_says_which_links_its_plan_takes_for_granted)
{
    world_job(world, "{}");
    plan_only(true);
    auto_free char *plan = world_plan("a:4 b:4", A100, 2.0);
    json_auto_t *json = json_loads(plan, 0, NULL);
    json_object_set_new(json_object_get(json, "predicted"), "assumedLinks",
                        quoted("[{'gpuType': '" A100 "', 'link': 'BetweenNodes', "
                               "'GBs': 3.0, 'from': 'Default'}]"));
    auto_free char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    world_answer(world, text);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "PlanOnly");
    ck_assert_str_eq(object_condition(world_get_job(world), "LinksAssumed"), "True");
    ck_assert_str_eq(world_reason(world, "LinksAssumed"), "NobodyMeasured");
    ck_assert_ptr_nonnull(strstr(world_message(world, "LinksAssumed"),
                                 "3 GB/s out of a node of " A100 " is a guess"));
}
END_TEST

START_TEST(plan_only_of_a_running_job_shows_the_better_plan)
{
    run_job("{}");
    plan_only(true);
    join("c");
    answer("a:4 b:4 c:4", 1.0);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "PlanOnly");
    approve(text_at("candidate", "hash"));
    ck_assert_int_eq(world_generation(world), 1);
    plan_only(false);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

/* ---- times ---- */

START_TEST(status_says_how_long_the_search_took_and_when_the_last_restart_was)
{
    world_job(world, "{'failurePolicy': {'backoffSeconds': 10}}");
    world_settle(world);
    auto_free char *plan = world_plan("a:4 b:4", A100, 2.0);
    world_answer(world, plan);
    world->memory.answer.planner_ms = 123;
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_int_eq(number_at("plan", "plannerMilliseconds"), 123);
    ck_assert_ptr_null(world_status(world, "lastRestartTime"));
    world_pass_s(world, 100);
    world_pod_phase(world, "job-1-1", "Failed", 3);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(json_string_value(world_status(world, "lastRestartTime")),
                     text_at("plan", "computedAt"));
    /* No search led to this one. */
    ck_assert_ptr_null(
        json_object_get(world_status(world, "plan"), "plannerMilliseconds"));
}
END_TEST

Suite *test_replan_suite(void)
{
    Suite *suite = suite_create("replan");
    TCase *tests = tcase_create("replan");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, plan_that_does_not_pay_is_turned_down_with_its_numbers);
    tcase_add_test(tests, longer_horizon_makes_the_same_plan_pay);
    tcase_add_test(tests, program_that_says_when_its_checkpoint_is_written_loses_no_work);
    tcase_add_test(tests, deadline_bounds_the_horizon);
    tcase_add_test(tests, least_improvement_counts_after_the_cost);
    tcase_add_test(tests, changed_policy_weighs_the_same_plan_again);
    tcase_add_test(tests, start_is_measured_once_a_generation);
    tcase_add_test(tests, cap_of_an_hour_counts_voluntary_plans_only);
    tcase_add_test(tests, cooling_down_is_said);
    tcase_add_test(tests, changes_that_are_not_listed_are_passed_over);
    tcase_add_test(tests, cordoned_node_is_left_only_if_that_is_listed);
    tcase_add_test(tests, never_does_not_look);
    tcase_add_test(tests, approved_candidate_is_carried_out);
    tcase_add_test(tests, approved_candidate_is_carried_out_by_another_controller_too);
    tcase_add_test(tests, approval_of_another_plan_is_passed_over_and_that_is_said);
    tcase_add_test(tests,
                   approval_of_another_plan_does_not_weigh_anew_what_was_turned_down);
    tcase_add_test(tests, approved_candidate_that_fits_no_more_is_passed_over);
    tcase_add_test(tests, lost_node_in_manual_mode_waits_for_approval_of_another_plan);
    tcase_add_test(tests, plan_that_moves_less_is_taken_before_the_fastest_one);
    tcase_add_test(tests, checkpoint_costs_what_writing_it_takes);
    tcase_add_test(tests, checkpoint_costs_no_more_than_the_program_gets);
    tcase_add_test(tests, question_says_how_much_slower_a_plan_may_be_that_moves_less);
    tcase_add_test(tests, same_plan_moves_to_equal_nodes_and_to_no_others);
    tcase_add_test(tests, other_cut_cannot_follow_a_checkpoint_of_the_same_pipeline);
    tcase_add_test(tests, any_plan_may_follow_before_there_is_a_checkpoint);
    tcase_add_test(tests, plan_only_shows_the_plan_and_creates_nothing_else);
    tcase_add_test(tests, candidate_whose_config_map_was_deleted_is_looked_for_again);
    tcase_add_test(tests, plan_only_says_which_links_its_plan_takes_for_granted);
    tcase_add_test(tests, plan_only_of_a_running_job_shows_the_better_plan);
    tcase_add_test(tests,
                   status_says_how_long_the_search_took_and_when_the_last_restart_was);
    suite_add_tcase(suite, tests);
    return suite;
}
