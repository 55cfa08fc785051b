/* The life of a job: what suspends, ends, restarts and removes it. */
#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct world *world;

static void setup(void)
{
    world = world_of("a:4 b:4 c:2");
}

static void teardown(void)
{
    world_free(world);
}

/* As kubectl edit does; `spec` is merged over the spec. */
static void change_spec(const char *spec)
{
    json_t *job = json_deep_copy(world_get_job(world));
    json_t *metadata = json_object_get(job, "metadata");
    json_auto_t *changes = quoted("%s", spec);
    json_object_update_recursive(json_object_get(job, "spec"), changes);
    json_object_set_new(
        metadata, "generation",
        json_integer(json_integer_value(json_object_get(metadata, "generation")) + 1));
    world_put(world, &kube_job, job);
}

static int64_t status_number(const char *key)
{
    return json_integer_value(world_status(world, key));
}

static const char *status_word(const char *key)
{
    const char *text = json_string_value(world_status(world, key));
    return text ? text : "";
}

static const char *trigger(void)
{
    return json_string_value(json_object_get(world_status(world, "plan"), "trigger"));
}

static const char *condition(const char *type)
{
    return object_condition(world_get_job(world), type);
}

/* `pod` failed `ended_s` seconds ago, with these changes of its metadata and conditions.
 */
static void fail_pod(const char *name, int exit_code, int ended_s, const char *metadata,
                     const char *conditions)
{
    world_pod_phase(world, name, "Failed", exit_code);
    json_t *pod = json_deep_copy(store_find(world->store, &kube_pod, "ns", name));
    char time[TIMESTAMP_SIZE];
    timestamp_format(1767225600000 + world->now_ms - 1000 * ended_s, time);
    json_t *status = json_object_get(pod, "status");
    json_t *terminated = json_object_get(
        json_object_get(json_array_get(json_object_get(status, "containerStatuses"), 0),
                        "state"),
        "terminated");
    json_object_set_new(terminated, "finishedAt", json_string(time));
    json_auto_t *changes = quoted("%s", metadata);
    json_object_update(json_object_get(pod, "metadata"), changes);
    json_auto_t *more = quoted("%s", conditions);
    json_array_extend(json_object_get(status, "conditions"), more);
    world_put(world, &kube_pod, pod);
}

/* Restart number `restart` comes when its back-off is over, and not earlier. */
static void check_restart_after(int64_t backoff_s, int64_t restart)
{
    world_pass_s(world, backoff_s - 1);
    ck_assert_int_eq(world_generation(world), restart);
    world_pass_s(world, 1);
    ck_assert_int_eq(world_generation(world), restart + 1);
    ck_assert_int_eq(status_number("restarts"), restart);
}

/* ---- suspend, resume ---- */

START_TEST(suspended_job_gives_its_gpus_back_and_keeps_its_plan)
{
    world_run_job(world, "{}");
    ck_assert_str_eq(condition("Suspended"), ""); /* nobody spoke of it */
    ck_assert_int_eq(world_free_on(world, "a"), 0);
    change_spec("{'suspend': true}");
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world_reason(world, "Suspended"), "JobSuspended");
    ck_assert_str_eq(condition("Suspended"), "True");
    ck_assert_str_eq(condition("Running"), "False");
    ck_assert_str_eq(condition("PlanFeasible"), "Unknown");
    ck_assert_int_eq(status_number("allocatedGPUs"), 0);
    ck_assert_str_eq(status_word("startTime"), "");
    ck_assert_str_eq(world->last_event, "JobSuspended");
    ck_assert_int_eq(world_free_on(world, "a"), 4);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED), "JobSuspended");
    /* Whatever happens around it, it sleeps. */
    world_node(world, "d", "NVIDIA-" A100, 8);
    world_pass_s(world, 3600);
    ck_assert_int_eq(world->plans_asked, 1);
    ck_assert_uint_eq(world_step(world), 0);
}
END_TEST

START_TEST(resumed_job_is_planned_anew)
{
    world_run_job(world, "{}");
    change_spec("{'suspend': true}");
    world_settle(world);
    world_node(world, "d", "NVIDIA-" A100, 8);
    change_spec("{'suspend': false}");
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    world_answer_nodes(world, "d:8", 2.0);
    world_settle(world);
    world_run_pods(world);
    world_pass_s(world, 1);
    ck_assert_str_eq(world_pods(world), "job-2-0@d");
    ck_assert_str_eq(trigger(), "Resumed");
    ck_assert_str_eq(world_reason(world, "Suspended"), "JobResumed");
    ck_assert_str_eq(condition("Suspended"), "False");
    ck_assert_str_eq(condition("Running"), "True");
    ck_assert_int_eq(status_number("restarts"), 0);
    ck_assert_str_ne(status_word("startTime"), "");
}
END_TEST

START_TEST(pods_that_end_because_of_a_pause_do_not_count_as_failed)
{
    world_run_job(world, "{}");
    change_spec("{'suspend': true}");
    fail_pod("job-1-0", 143, 0,
             "{'deletionTimestamp': '2026-01-01T00:17:10Z', "
             "'deletionGracePeriodSeconds': 30}",
             "[]");
    world_settle(world);
    change_spec("{'suspend': false}");
    world_settle(world);
    ck_assert_int_eq(status_number("restarts"), 0);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(job_created_suspended_is_not_planned_until_it_is_resumed)
{
    world_job(world, "{'suspend': true}");
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 0);
    ck_assert_str_eq(condition("Accepted"), "True");
    ck_assert_str_eq(condition("Suspended"), "True");
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "JobSuspended");
    change_spec("{'suspend': false}");
    world_settle(world);
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(trigger(), "JobCreated");
}
END_TEST

START_TEST(suspended_job_holds_nobody_up)
{
    world_job(world, "{'suspend': true}");
    struct decision decision;
    world_settle(world);
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .now_ms = world->now_ms };
    struct snapshot snapshot;
    ck_assert(snapshot_take(world->arena, &sources, "ns", "job", NULL, &snapshot));
    reconcile(world->arena, &snapshot, &decision);
    ck_assert(!decision.is_unanswered);
    decision_fini(&decision);
}
END_TEST

START_TEST(job_with_a_spec_that_is_refused_can_still_be_stopped)
{
    world_run_job(world, "{}");
    change_spec("{'runtime': {'masterPort': 80}, 'suspend': true}");
    world_settle(world);
    ck_assert_str_eq(condition("Accepted"), "False");
    ck_assert_str_eq(condition("Suspended"), "True");
    ck_assert_str_eq(world_pods(world), "");
}
END_TEST

/* ---- failures ---- */

START_TEST(failure_is_answered_after_the_back_off_that_doubles)
{
    world_run_job(world, "{'failurePolicy': {'backoffSeconds': 10}}");
    fail_pod("job-1-1", 3, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Running"), "RestartBackOff");
    check_restart_after(10, 1);
    ck_assert_str_ne(status_word("lastRestartTime"), "");
    world_run_pods(world);
    world_settle(world);
    fail_pod("job-2-0", 3, 0, "{}", "[]");
    check_restart_after(20, 2);
}
END_TEST

START_TEST(failed_pod_that_somebody_tidies_away_still_counts)
{
    world_run_job(world, "{'failurePolicy': {'backoffSeconds': 10}}");
    fail_pod("job-1-1", 3, 0, "{}", "[]");
    world_settle(world);
    world_remove(world, &kube_pod, "ns", "job-1-1");
    check_restart_after(10, 1);
}
END_TEST

#define RULES(list) "{'failurePolicy': {'maxRestarts': 1, 'rules': [" list "]}}"
#define ON_CODES(action, operator, values)                                               \
    "{'action': '" action "', 'onExitCodes': {'containerName': 'trainer', 'operator': '" \
    operator"', 'values': " values "}}"
#define ON_DISRUPTION(action)                                                            \
    "{'action': '" action "', 'onPodConditions': [{'type': 'DisruptionTarget', "         \
    "'status': 'True'}]}"
#define EVICTED                                                                          \
    "[{'type': 'DisruptionTarget', 'status': 'True', 'reason': "                         \
    "'EvictionByEvictionAPI', 'lastTransitionTime': '2026-01-01T00:16:38Z'}]"

START_TEST(exit_code_that_nothing_mends_ends_the_job_at_once)
{
    world_run_job(world, RULES(ON_CODES("FailJob", "In", "[2, 78]")));
    fail_pod("job-1-0", 1, 1, "{}", "[]"); /* dies of its peer's death */
    fail_pod("job-1-1", 78, 1, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "PodFailurePolicy");
    ck_assert_str_eq(world_message(world, "Failed"),
                     "pod job-1-1: container trainer ended with exit code 78 "
                     "(failurePolicy.rules[0]: FailJob)");
    ck_assert_str_eq(condition("Failed"), "True");
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_int_eq(world_free_on(world, "a"), 4);
}
END_TEST

START_TEST(failure_that_is_ignored_is_answered_uncounted_by_the_same_plan)
{
    world_run_job(world, RULES(ON_CODES("Ignore", "In", "[75]")));
    for (int generation = 1; generation <= 3; generation++) {
        auto_free char *name = xasprintf("job-%d-1", generation);
        fail_pod(name, 75, 0, "{}", "[]");
        world_pass_s(world, 10);
        ck_assert_int_eq(world_generation(world), generation + 1);
        ck_assert_str_eq(trigger(), "PodFailureIgnored");
        ck_assert_int_eq(status_number("restarts"), 0);
        world_run_pods(world);
        world_settle(world);
        ck_assert_str_eq(condition("Running"), "True");
    }
}
END_TEST

START_TEST(ignored_failure_waits_for_the_back_off_like_a_disruption)
{
    world_run_job(world, "{'failurePolicy': {'backoffSeconds': 100, 'rules': [" ON_CODES(
                             "Ignore", "In", "[75]") "]}}");
    fail_pod("job-1-1", 75, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED),
                     "PodFailureIgnored");
    world_remove(world, &kube_pod, "ns", "job-1-1");
    world_pass_s(world, 99);
    ck_assert_int_eq(world_generation(world), 1);
    world_pass_s(world, 1);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
}
END_TEST

START_TEST(first_rule_that_matches_any_pod_is_followed)
{
    /* Count of 3 stands before FailJob of all but 75. */
    world_run_job(world,
                  RULES(ON_CODES("Ignore", "In", "[75]") ", " ON_CODES(
                      "Count", "In", "[3]") ", " ON_CODES("FailJob", "NotIn", "[75]")));
    fail_pod("job-1-0", 3, 0, "{}", "[]");
    check_restart_after(10, 1);
    world_run_pods(world);
    world_settle(world);
    fail_pod("job-2-0", 1, 1, "{}", "[]"); /* of its peer's death */
    fail_pod("job-2-1", 75, 1, "{}", "[]");
    world_pass_s(world, 10);
    ck_assert_int_eq(world_generation(world), 3);
    ck_assert_int_eq(status_number("restarts"), 1);
    world_run_pods(world);
    world_settle(world);
    fail_pod("job-3-0", 1, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "PodFailurePolicy");
    ck_assert_ptr_nonnull(strstr(world_message(world, "Failed"), "rules[2]: FailJob"));
}
END_TEST

START_TEST(disruption_counts_or_ends_the_job_where_a_rule_says_so)
{
    world_run_job(world, RULES(ON_DISRUPTION("Count")));
    fail_pod("job-1-1", 137, 0, "{}", EVICTED);
    world_settle(world);
    check_restart_after(10, 1);
    world_run_pods(world);
    change_spec(RULES(ON_DISRUPTION("FailJob")));
    world_settle(world);
    fail_pod("job-2-1", 137, 0, "{}", EVICTED);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "PodFailurePolicy");
    ck_assert_ptr_nonnull(strstr(world_message(world, "Failed"),
                                 "pod job-2-1: condition DisruptionTarget is True"));
}
END_TEST

START_TEST(exit_code_of_a_rank_whose_peer_was_evicted_is_not_asked_for)
{
    world_run_job(world, RULES(ON_CODES("FailJob", "NotIn", "[75]")));
    fail_pod("job-1-1", 137, 0, "{}", EVICTED);
    fail_pod("job-1-0", 1, 1, "{}", "[]"); /* at 00:16:39 */
    world_pass_s(world, 10);
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
}
END_TEST

START_TEST(no_rule_is_asked_about_a_lost_node)
{
    world_run_job(
        world, RULES(ON_CODES("FailJob", "NotIn", "[75]") ", " ON_DISRUPTION("FailJob")));
    world_remove(world, &kube_node, "", "b");
    fail_pod("job-1-1", 137, 0, "{}", EVICTED);
    fail_pod("job-1-0", 1, 0, "{}", "[]");
    world_settle(world);
    world_pass_s(world, 10);
    world_answer_nodes(world, "a:4 c:2", 2.0);
    world_settle(world);
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(trigger(), "NodeLost");
}
END_TEST

START_TEST(final_exit_code_ends_the_job_even_while_another_failure_backs_off)
{
    world_run_job(world, RULES(ON_CODES("Ignore", "In",
                                        "[75]") ", " ON_CODES("FailJob", "In", "[78]")));
    json_t *peer = json_deep_copy(store_find(world->store, &kube_pod, "ns", "job-1-1"));
    fail_pod("job-1-0", 1, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED),
                     "RestartBackOff");
    json_object_del(json_object_get(peer, "metadata"), "uid");
    world_put(world, &kube_pod, peer);
    fail_pod("job-1-1", 78, 1, "{}", "[]"); /* heard of only now */
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "PodFailurePolicy");
}
END_TEST

START_TEST(exit_code_of_a_pod_that_was_told_to_end_ends_no_job)
{
    world_run_job(world, RULES(ON_CODES("FailJob", "In", "[143]")));
    fail_pod("job-1-0", 143, 0,
             "{'deletionTimestamp': '2026-01-01T00:17:10Z', "
             "'deletionGracePeriodSeconds': 30}",
             "[]");
    world_pass_s(world, 10);
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
}
END_TEST

/* The node drain of rank 1 takes rank 0 down with it, by an error of its own. */
START_TEST(rank_that_fails_after_its_peer_was_evicted_does_not_count)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 0}}");
    fail_pod("job-1-1", 137, 0, "{}",
             "[{'type': 'DisruptionTarget', 'status': 'True', 'reason': "
             "'EvictionByEvictionAPI', 'lastTransitionTime': '2026-01-01T00:16:38Z'}]");
    fail_pod("job-1-0", 1, 1, "{}", "[]"); /* at 00:16:39 */
    world_pass_s(world, 10);
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_int_eq(status_number("restarts"), 0);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

START_TEST(rank_that_failed_before_anybody_was_evicted_counts)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 0}}");
    fail_pod("job-1-0", 1, 5, "{}", "[]"); /* at 00:16:35 */
    fail_pod("job-1-1", 137, 0, "{}",
             "[{'type': 'DisruptionTarget', 'status': 'True', 'reason': "
             "'EvictionByEvictionAPI', 'lastTransitionTime': '2026-01-01T00:16:38Z'}]");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "RestartLimitReached");
}
END_TEST

START_TEST(rank_that_fails_while_a_node_is_silent_does_not_count)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 0}}");
    world_node_ready(world, "b", false);
    fail_pod("job-1-0", 1, 0, "{}", "[]");
    world_pass_s(world, 10);
    ck_assert_str_eq(condition("Failed"), "False");
    world_answer_nodes(world, "a:4 c:2", 2.0);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
}
END_TEST

/* The node's heartbeat was `age_s` seconds ago. */
static void put_lease(const char *node, int age_s)
{
    char time[TIMESTAMP_SIZE];
    timestamp_format(1767225600000 + world->now_ms - 1000 * age_s, time);
    world_put(world, &kube_lease,
              quoted("{'metadata': {'name': '%s', 'namespace': '%s'}, 'spec': "
                     "{'renewTime': '%s'}}",
                     node, NODE_LEASES, time));
}

static void fail_a_rank_of(const char *spec, int age_s)
{
    world_run_job(world, spec);
    put_lease("a", 3);
    put_lease("b", age_s);
    fail_pod("job-1-0", 1, 0, "{}", "[]");
    world_settle(world);
}

/* The rank on node a of a job that may not restart fails; the heartbeat of b, where its
 * peers are, was `age_s` seconds ago. */
static void fail_a_rank_beside(int age_s)
{
    fail_a_rank_of("{'failurePolicy': {'maxRestarts': 0}}", age_s);
}

START_TEST(no_rule_ends_the_job_for_a_node_that_hangs)
{
    fail_a_rank_of(RULES(ON_CODES("FailJob", "NotIn", "[75]")), 17);
    ck_assert_str_eq(condition("Failed"), "False");
    put_lease("a", 3);
    world_pass_s(world, 11);
    ck_assert_str_eq(condition("Failed"), "False");
    world_answer_nodes(world, "a:4 c:2", 2.0);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(trigger(), "NodeNotReady");
}
END_TEST

START_TEST(rank_that_fails_as_a_node_hangs_does_not_count_and_the_node_is_left)
{
    fail_a_rank_beside(17);
    ck_assert_int_eq(world->refreshes, 4); /* 2 to see the fit, 2 leases */
    ck_assert_str_eq(condition("Failed"), "False");
    put_lease("a", 3); /* renewed */
    world_pass_s(world, 11);
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_AVOID), "b");
    world_answer_nodes(world, "a:4 c:2", 2.0);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
    ck_assert_str_eq(trigger(), "NodeNotReady");
}
END_TEST

/* Its clock is slow. */
START_TEST(node_whose_heartbeats_only_look_old_is_not_blamed)
{
    fail_a_rank_beside(40);
    ck_assert_str_eq(condition("Failed"), "False");
    put_lease("b", 40);
    world_pass_s(world, 11);
    ck_assert_str_eq(condition("Failed"), "True");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_AVOID), "");
}
END_TEST

START_TEST(failure_while_all_nodes_speak_counts_at_once)
{
    fail_a_rank_beside(9);
    ck_assert_str_eq(condition("Failed"), "True");
}
END_TEST

/* Of a generation that was disrupted nothing starts before backoffSeconds; the pods that
 * end meanwhile, with whatever code, were told to. */
START_TEST(disrupted_generation_starts_again_uncounted)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 0, 'backoffSeconds': 100}}");
    fail_pod("job-1-1", 137, 0, "{}", "[{'type': 'DisruptionTarget', 'status': 'True'}]");
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_RETIRED), "PodDisrupted");
    world_remove(world, &kube_pod, "ns", "job-1-1");
    world_pass_s(world, 99);
    ck_assert_int_eq(world_generation(world), 1);
    world_pass_s(world, 1);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_int_eq(status_number("restarts"), 0);
    ck_assert_str_eq(condition("Failed"), "False");
}
END_TEST

START_TEST(restarts_are_forgotten_after_healthy_time)
{
    world_run_job(world, "{'failurePolicy': {'maxRestarts': 1, 'backoffSeconds': 10, "
                         "'resetAfterSeconds': 600}}");
    fail_pod("job-1-0", 3, 0, "{}", "[]");
    world_pass_s(world, 10);
    world_run_pods(world);
    world_settle(world);
    ck_assert_int_eq(status_number("restarts"), 1);
    world_pass_s(world, 600);
    fail_pod("job-2-0", 3, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_plan_annotation(world, 2, ANNOTATION_RESTARTS), "0");
    world_pass_s(world, 10); /* the first back-off again, not the second */
    ck_assert_str_eq(condition("Failed"), "False");
    ck_assert_int_eq(world_generation(world), 3);
    ck_assert_int_eq(status_number("restarts"), 1);
    world_run_pods(world);
    world_pass_s(world, 599);
    fail_pod("job-3-0", 3, 0, "{}", "[]");
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Failed"), "RestartLimitReached");
}
END_TEST

/* ---- the end ---- */

START_TEST(another_rank_than_zero_decides_nothing)
{
    world_run_job(world, "{'successPolicy': {'completeWhen': 'RankZero'}}");
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(condition("Complete"), "False");
    ck_assert_str_eq(condition("Running"), "True");
}
END_TEST

START_TEST(others_are_stopped_when_rank_zero_has_succeeded)
{
    world_run_job(world, "{'successPolicy': {'completeWhen': 'RankZero'}}");
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Complete"), "RankZeroSucceeded");
    ck_assert_str_eq(world_pods(world), "job-1-0@a");
    ck_assert_int_eq(world_free_on(world, "b"), 4);
}
END_TEST

START_TEST(pod_that_succeeded_and_went_with_its_node_is_not_lost)
{
    world_run_job(world, "{}");
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    const json_t *pods = world_status(world, "pods");
    ck_assert_str_eq(json_string_value(json_object_get(pods, "succeededIndexes")), "1");
    world_remove(world, &kube_pod, "ns", "job-1-1");
    world_remove(world, &kube_node, "", "b");
    world_pass_s(world, 60);
    ck_assert_str_eq(world_pods(world), "job-1-0@a");
    ck_assert_str_eq(condition("Running"), "True");
    ck_assert_int_eq(
        json_integer_value(json_object_get(world_status(world, "pods"), "succeeded")), 1);
    ck_assert_int_eq(world_generation(world), 1);
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(world_reason(world, "Complete"), "AllPodsSucceeded");
    pods = world_status(world, "pods");
    ck_assert_str_eq(json_string_value(json_object_get(pods, "succeededIndexes")), "0-1");
}
END_TEST

START_TEST(deadline_counts_from_the_start_and_ends_the_job)
{
    world_job(world, "{'activeDeadlineSeconds': 100}");
    world_settle(world);
    world_pass_s(world, 500); /* no plan yet: waiting does not count */
    ck_assert_str_eq(condition("Failed"), "False");
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    world_pass_s(world, 99);
    ck_assert_str_eq(condition("Failed"), "False");
    world_pass_s(world, 1);
    ck_assert_str_eq(world_reason(world, "Failed"), "DeadlineExceeded");
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_int_eq(world_free_on(world, "a"), 4);
    ck_assert_str_ne(status_word("completionTime"), "");
}
END_TEST

START_TEST(deadline_starts_anew_after_a_pause)
{
    world_run_job(world, "{'activeDeadlineSeconds': 100}");
    world_pass_s(world, 90);
    change_spec("{'suspend': true}");
    world_pass_s(world, 90);
    ck_assert_str_eq(condition("Failed"), "False");
    change_spec("{'suspend': false}");
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    world_pass_s(world, 99);
    ck_assert_str_eq(condition("Failed"), "False");
    world_pass_s(world, 1);
    ck_assert_str_eq(world_reason(world, "Failed"), "DeadlineExceeded");
}
END_TEST

/* One pass over the job as it is; what it asks to be looked at next. */
static int64_t next_look_ms(void)
{
    struct snapshot_sources sources = { .store = world->store,
                                        .capacity = world->capacity,
                                        .now_ms = world->now_ms,
                                        .wall_ms = 1767225600000 + world->now_ms };
    struct snapshot snapshot;
    struct decision decision;
    ck_assert(
        snapshot_take(world->arena, &sources, "ns", "job", &world->memory, &snapshot));
    reconcile(world->arena, &snapshot, &decision);
    decision_fini(&decision);
    return decision.requeue_ms;
}

START_TEST(finished_job_goes_when_its_time_to_live_is_over)
{
    world_run_job(world, "{'ttlSecondsAfterFinished': 60}");
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    ck_assert_str_eq(condition("Complete"), "True");
    ck_assert_int_eq(next_look_ms(), world->now_ms + 60000);
    world->now_ms += 59000;
    ck_assert_uint_eq(world_step(world), 0);
    world->now_ms += 1000;
    ck_assert_uint_eq(world_step(world), 1); /* its uid is checked in world.c */
    ck_assert_ptr_null(world_get_job(world));
}
END_TEST

START_TEST(finished_job_without_a_time_to_live_is_kept)
{
    world_run_job(world, "{}");
    world_pod_phase(world, "job-1-0", "Succeeded", 0);
    world_pod_phase(world, "job-1-1", "Succeeded", 0);
    world_settle(world);
    ck_assert_int_eq(next_look_ms(), INT64_MAX);
    world_pass_s(world, 86400);
    ck_assert_ptr_nonnull(world_get_job(world));
}
END_TEST

START_TEST(job_of_another_manager_is_not_touched)
{
    world_job(world, "{'managedBy': 'example.com/other', 'suspend': true, "
                     "'ttlSecondsAfterFinished': 0}");
    ck_assert_uint_eq(world_step(world), 0);
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(
        job, "status",
        quoted("{'completionTime': '2026-01-01T00:00:00Z', 'conditions': [{'type': "
               "'Complete', 'status': 'True'}]}"));
    world_put(world, &kube_job, job);
    ck_assert_uint_eq(world_step(world), 0);
}
END_TEST

START_TEST(nothing_is_made_again_for_a_job_that_is_being_deleted)
{
    world_run_job(world, "{}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(json_object_get(job, "metadata"), "deletionTimestamp",
                        json_string("2026-01-01T00:20:00Z"));
    world_put(world, &kube_job, job);
    world_remove(world, &kube_pod, "ns", "job-1-0");
    world_remove(world, &kube_service, "ns", "job");
    ck_assert_uint_eq(world_step(world), 0);
}
END_TEST

/* ---- changes of the spec ---- */

static const struct {
    const char *spec;
    bool changes_pods;
} changes[] = {
    { "{'podTemplate': {'metadata': {'labels': {'x': 'y'}}}}", true },
    { "{'runtime': {'masterPort': 29501}}", true },
    { "{'runtime': {'planMountPath': '/plan'}}", true },
    { "{'checkpoint': {'storageURI': '/ckpt'}}", true },
    { "{'perGPUResources': {'cpu': '2'}}", true },
    { "{'scheduling': {'priorityClassName': 'high'}}", true },
    { "{'scheduling': {'schedulerName': 'other'}}", true },
    /* What the API server fills in by itself is no change. */
    { "{'runtime': {'masterPort': 29500, 'type': 'torchrun', 'argsPolicy': 'EnvOnly'}, "
      "'scheduling': "
      "{'schedulerName': 'default-scheduler', 'gangTimeoutSeconds': 20}}",
      false },
    { "{'ttlSecondsAfterFinished': 5, 'activeDeadlineSeconds': 90000}", false },
    { "{'replanPolicy': {'debounceSeconds': 20}}", false },
};

START_TEST(change_of_the_pods_starts_the_same_plan_with_new_ones)
{
    world_run_job(world, "{}");
    change_spec(changes[_i].spec);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), changes[_i].changes_pods ? 2 : 1);
    if (!changes[_i].changes_pods)
        return;
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@b");
    ck_assert_str_eq(trigger(), "PodsChanged");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_PLAN_HASH),
                     world_plan_annotation(world, 2, ANNOTATION_PLAN_HASH));
    ck_assert_int_eq(world->plans_asked, 1);
    ck_assert_int_eq(status_number("restarts"), 0);
}
END_TEST

START_TEST(changed_pods_wait_while_their_nodes_are_in_doubt)
{
    world_run_job(world, "{}");
    world_node_ready(world, "b", false);
    change_spec("{'runtime': {'masterPort': 29501}}");
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 1);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@b");
    world_node_ready(world, "b", true);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
}
END_TEST

/* The training container of pod 0 of the first generation. */
static const json_t *trainer(void)
{
    const json_t *pod = store_find(world->store, &kube_pod, "ns", "job-1-0");
    return json_array_get(object_at(pod, "spec.containers"), 0);
}

/* What it has in its environment; NULL: nothing. */
static const char *variable(const char *name)
{
    const json_t *entry = object_find(json_object_get(trainer(), "env"), "name", name);
    return entry ? object_text(entry, "value") : NULL;
}

static const char *plan_file(const char *name)
{
    const json_t *map = store_find(world->store, &kube_config_map, "ns", "job-plan-1");
    return json_string_value(json_object_get(json_object_get(map, "data"), name));
}

/* A job whose first plan, for `nodes`, is written, and has no pods yet. */
static void write_plan(const char *spec, const char *nodes)
{
    world_job(world, spec);
    world_settle(world);
    world_answer_nodes(world, nodes, 2.0);
    for (int i = 0; i < 5 && !plan_file("plan.json"); i++)
        world_step(world);
    ck_assert_ptr_nonnull(plan_file("plan.json"));
    ck_assert_str_eq(world_pods(world), "");
}

#define COMMAND                                                                          \
    "'podTemplate': {'spec': {'containers': [{'name': 'train', 'image': 'x', 'args': "   \
    "['pretrain_gpt.py']}]}}"
#define MEGATRON_WORDS                                                                   \
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 1 "                   \
    "--micro-batch-size 1 --global-batch-size 8 --ckpt-format torch_dist"

START_TEST(arguments_of_the_runtime_reach_the_pods)
{
    world_run_job(world, _i ? "{'runtime': {'type': 'megatron', 'argsPolicy': "
                              "'AppendArgs'}, " COMMAND "}"
                            : "{'runtime': {'type': 'megatron'}, " COMMAND "}");
    ck_assert_str_eq(variable("HETPLAN_ARGUMENTS"), MEGATRON_WORDS);
    const json_t *arguments = json_object_get(trainer(), "args");
    auto_free char *joined = xstrdup("");
    for (size_t i = 0; i < json_array_size(arguments); i++) {
        char *longer = xasprintf("%s%s%s", joined, i ? " " : "",
                                 json_string_value(json_array_get(arguments, i)));
        free(joined);
        joined = longer;
    }
    ck_assert_str_eq(joined, _i ? "pretrain_gpt.py " MEGATRON_WORDS : "pretrain_gpt.py");
}
END_TEST

START_TEST(files_of_the_runtime_lie_beside_the_plan)
{
    world_run_job(world, "{'runtime': {'type': 'flagscale', 'planMountPath': '/plan'}}");
    ck_assert_ptr_nonnull(strstr(plan_file("hetero.yaml"), "enable_hetero: true"));
    ck_assert_ptr_nonnull(strstr(plan_file("hostfile"), " slots=4 type=" A100 "-m0\n"));
    ck_assert_ptr_nonnull(strstr(variable("HETPLAN_ARGUMENTS"),
                                 "--hetero-current-device-type " A100 "-m0"));
    ck_assert_str_eq(variable("HETPLAN_FILE"), "/plan/plan.json");
}
END_TEST

START_TEST(other_runtime_with_the_same_plan_starts_new_pods)
{
    world_run_job(world, "{}");
    ck_assert_ptr_null(variable("HETPLAN_ARGUMENTS"));
    change_spec("{'runtime': {'type': 'megatron'}}");
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 2);
    ck_assert_str_eq(trigger(), "PodsChanged");
}
END_TEST

/* One replica on four GPUs, one on two: no degree of tensor parallelism is both. */
START_TEST(plan_that_another_runtime_cannot_run_is_replaced_when_there_is_one)
{
    world_run_job_on(world, "{'replanPolicy': {'debounceSeconds': 1}}", "a:4 c:2");
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@c");
    change_spec("{'runtime': {'type': 'megatron'}}");
    world_settle(world);
    world_pass_s(world, 5);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-1-0@a job-1-1@c");
    ck_assert_str_eq(condition("PlanOutdated"), "True");
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@a job-2-1@b");
    ck_assert_str_eq(trigger(), "SpecChanged");
}
END_TEST

/* No pod is made for a runtime that the plan is not for, and it does not keep its GPUs.
 */
START_TEST(plan_without_pods_goes_when_another_runtime_cannot_run_it)
{
    write_plan(_i ? "{'replanPolicy': {'mode': 'Never', 'debounceSeconds': 1}}"
                  : "{'replanPolicy': {'debounceSeconds': 1}}",
               "a:4 c:2");
    change_spec("{'runtime': {'type': 'megatron'}}");
    world_settle(world);
    world_pass_s(world, 5);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_int_eq(world_free_on(world, "a"), 4);
    if (_i)
        return;
    world_answer_nodes(world, "a:4 b:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
}
END_TEST

/* DeepSpeed reads a file that the plan's ConfigMap lacks; while a node is in doubt there
 * is no new one. */
START_TEST(pods_are_not_made_from_the_files_of_another_runtime)
{
    write_plan("{}", "a:4 b:4");
    world_node_ready(world, "b", false);
    change_spec("{'runtime': {'type': 'deepspeed'}}");
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "");
    ck_assert_str_eq(world_reason(world, "Accepted"), "NotExpressible");
    world_node_ready(world, "b", true);
    world_settle(world);
    ck_assert_str_eq(world_pods(world), "job-2-0@ job-2-1@");
    ck_assert_str_eq(world_reason(world, "Accepted"), "Valid");
}
END_TEST

/* Not that the planner gives such plans; but what it gives is checked. */
START_TEST(plan_that_the_runtime_cannot_run_is_not_written)
{
    world_job(world, "{'runtime': {'type': 'megatron'}}");
    world_settle(world);
    world_answer_nodes(world, "a:4 c:2", 2.0);
    world_settle(world);
    ck_assert_int_eq(world_generation(world), 0);
    ck_assert_str_eq(world_reason(world, "PlanFeasible"), "PlannerFailed");
}
END_TEST

START_TEST(scaled_job_takes_no_more_than_it_may_and_says_so)
{
    world_run_job(world, "{'resources': {'maxGPUs': 8}}");
    change_spec("{'resources': {'maxGPUs': 4}}");
    world_settle(world);
    world_pass_s(world, 5);
    world_answer_nodes(world, "a:4", 2.0);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    ck_assert_str_eq(trigger(), "SpecChanged");
    ck_assert_int_eq(status_number("allocatedGPUs"), 4);
}
END_TEST

Suite *test_lifecycle_suite(void)
{
    Suite *suite = suite_create("lifecycle");
    TCase *cases = tcase_create("life");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, suspended_job_gives_its_gpus_back_and_keeps_its_plan);
    tcase_add_test(cases, resumed_job_is_planned_anew);
    tcase_add_test(cases, pods_that_end_because_of_a_pause_do_not_count_as_failed);
    tcase_add_test(cases, job_created_suspended_is_not_planned_until_it_is_resumed);
    tcase_add_test(cases, suspended_job_holds_nobody_up);
    tcase_add_test(cases, job_with_a_spec_that_is_refused_can_still_be_stopped);
    tcase_add_test(cases, failure_is_answered_after_the_back_off_that_doubles);
    tcase_add_test(cases, failed_pod_that_somebody_tidies_away_still_counts);
    tcase_add_test(cases, exit_code_that_nothing_mends_ends_the_job_at_once);
    tcase_add_test(cases, failure_that_is_ignored_is_answered_uncounted_by_the_same_plan);
    tcase_add_test(cases, ignored_failure_waits_for_the_back_off_like_a_disruption);
    tcase_add_test(cases, first_rule_that_matches_any_pod_is_followed);
    tcase_add_test(cases, disruption_counts_or_ends_the_job_where_a_rule_says_so);
    tcase_add_test(cases, exit_code_of_a_rank_whose_peer_was_evicted_is_not_asked_for);
    tcase_add_test(cases, no_rule_is_asked_about_a_lost_node);
    tcase_add_test(cases,
                   final_exit_code_ends_the_job_even_while_another_failure_backs_off);
    tcase_add_test(cases, no_rule_ends_the_job_for_a_node_that_hangs);
    tcase_add_test(cases, exit_code_of_a_pod_that_was_told_to_end_ends_no_job);
    tcase_add_test(cases, rank_that_fails_after_its_peer_was_evicted_does_not_count);
    tcase_add_test(cases, rank_that_failed_before_anybody_was_evicted_counts);
    tcase_add_test(cases, rank_that_fails_while_a_node_is_silent_does_not_count);
    tcase_add_test(cases,
                   rank_that_fails_as_a_node_hangs_does_not_count_and_the_node_is_left);
    tcase_add_test(cases, node_whose_heartbeats_only_look_old_is_not_blamed);
    tcase_add_test(cases, failure_while_all_nodes_speak_counts_at_once);
    tcase_add_test(cases, disrupted_generation_starts_again_uncounted);
    tcase_add_test(cases, restarts_are_forgotten_after_healthy_time);
    tcase_add_test(cases, another_rank_than_zero_decides_nothing);
    tcase_add_test(cases, others_are_stopped_when_rank_zero_has_succeeded);
    tcase_add_test(cases, pod_that_succeeded_and_went_with_its_node_is_not_lost);
    tcase_add_test(cases, deadline_counts_from_the_start_and_ends_the_job);
    tcase_add_test(cases, deadline_starts_anew_after_a_pause);
    tcase_add_test(cases, finished_job_goes_when_its_time_to_live_is_over);
    tcase_add_test(cases, finished_job_without_a_time_to_live_is_kept);
    tcase_add_test(cases, job_of_another_manager_is_not_touched);
    tcase_add_test(cases, nothing_is_made_again_for_a_job_that_is_being_deleted);
    tcase_add_loop_test(cases, change_of_the_pods_starts_the_same_plan_with_new_ones, 0,
                        sizeof changes / sizeof *changes);
    tcase_add_test(cases, changed_pods_wait_while_their_nodes_are_in_doubt);
    tcase_add_loop_test(cases, arguments_of_the_runtime_reach_the_pods, 0, 2);
    tcase_add_test(cases, files_of_the_runtime_lie_beside_the_plan);
    tcase_add_test(cases, other_runtime_with_the_same_plan_starts_new_pods);
    tcase_add_test(cases,
                   plan_that_another_runtime_cannot_run_is_replaced_when_there_is_one);
    tcase_add_test(cases, plan_that_the_runtime_cannot_run_is_not_written);
    tcase_add_loop_test(cases, plan_without_pods_goes_when_another_runtime_cannot_run_it,
                        0, 2);
    tcase_add_test(cases, pods_are_not_made_from_the_files_of_another_runtime);
    tcase_add_test(cases, scaled_job_takes_no_more_than_it_may_and_says_so);
    suite_add_tcase(suite, cases);
    return suite;
}
