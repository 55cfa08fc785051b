/* What happens before pods that run well are stopped. */
#include "controller/base/object.h"
#include "tests/controller/world.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_HOOK                                                                        \
    "{'checkpoint': {'onDisruption': {'method': 'HTTP', 'timeoutSeconds': 100, 'http': " \
    "{'port': 8476}}}}"

static struct world *world;

static void setup(void)
{
    world = world_of("a:4 b:4 c:4");
}

static void teardown(void)
{
    world_free(world);
}

static void cordon(const char *name)
{
    json_t *node = world_copy(world, &kube_node, "", name);
    json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    world_put(world, &kube_node, node);
}

/* A job runs on a and b; a takes no new pods any more, and the plan is to go to c. */
static void move_job(const char *spec)
{
    world_run_job(world, spec);
    cordon("a");
    world_settle(world);
    world->now_ms += 60000; /* nodeFailureGraceSeconds and the debounce */
    world_settle(world);
    world->now_ms += 60000;
    world_settle(world);
    world_answer_nodes(world, "b:4 c:4", 2.0);
    world_settle(world);
}

static void ck_old_pods_stay(void)
{
    ck_assert_ptr_nonnull(store_find(world->store, &kube_pod, "ns", "job-1-0"));
    ck_assert_ptr_nonnull(store_find(world->store, &kube_pod, "ns", "job-1-1"));
}

static void ck_old_pods_are_gone(void)
{
    ck_assert_ptr_null(store_find(world->store, &kube_pod, "ns", "job-1-0"));
    ck_assert_ptr_null(store_find(world->store, &kube_pod, "ns", "job-1-1"));
}

START_TEST(pods_stay_until_their_program_has_acknowledged)
{
    move_job(HTTP_HOOK);
    ck_old_pods_stay();
    ck_assert_ptr_nonnull(store_find(world->store, &kube_config_map, "ns", "job-plan-2"));
    ck_assert_str_eq(world_reason(world, "Placed"), "WaitingForCheckpoint");
    ck_assert_str_ne(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_REQUESTED),
                     "");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FOR),
                     CHECKPOINT_FOR_STOP);
    ck_assert_int_eq(world->hooks, 1);
    world->now_ms += 50000;
    world_settle(world);
    ck_old_pods_stay();
    ck_assert_int_eq(world->hooks, 1);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_ACKNOWLEDGED),
                     "");

    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    world_settle(world);
    ck_assert_str_ne(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_ACKNOWLEDGED),
                     "");
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FAILED), "");
    ck_old_pods_are_gone();
    ck_assert_ptr_nonnull(store_find(world->store, &kube_pod, "ns", "job-2-1"));
    ck_assert_int_eq(world->memory.hook.outcome, HOOK_IDLE);
}
END_TEST

START_TEST(acknowledgement_is_written_down_before_a_pod_goes)
{
    move_job(HTTP_HOOK);
    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    struct decision decision;
    world_decide(world, world->arena, &decision);
    size_t patch = SIZE_MAX, deletion = SIZE_MAX;
    for (size_t i = decision.action_count; i-- > 0;) {
        if (decision.actions[i].kind == ACTION_PATCH)
            patch = i;
        if (decision.actions[i].kind == ACTION_DELETE)
            deletion = i;
    }
    ck_assert_uint_lt(patch, decision.action_count);
    ck_assert_uint_lt(deletion, decision.action_count);
    ck_assert_int_lt(decision.actions[patch].phase, decision.actions[deletion].phase);
    decision_fini(&decision);
}
END_TEST

START_TEST(pods_go_when_the_time_is_over)
{
    move_job(HTTP_HOOK);
    world->now_ms += 99999;
    world_settle(world);
    ck_old_pods_stay();
    world->now_ms += 1; /* 100 s after the request */
    world_settle(world);
    ck_old_pods_are_gone();
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FAILED),
                     "CheckpointTimedOut");
    ck_assert(world_has_event(world, "CheckpointTimedOut"));
}
END_TEST

START_TEST(pods_go_at_once_when_the_program_refuses)
{
    move_job(HTTP_HOOK);
    world->memory.hook.outcome = HOOK_REFUSED;
    world->memory.hook.message = "it answered 404";
    world_settle(world);
    ck_old_pods_are_gone();
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FAILED),
                     "CheckpointRefused");
    ck_assert(world_has_event(world, "CheckpointRefused"));
}
END_TEST

START_TEST(who_takes_over_asks_again_within_the_same_time)
{
    move_job(HTTP_HOOK);
    auto_free char *requested =
        xstrdup(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_REQUESTED));
    world->now_ms += 60000;
    world->memory.hook = (struct hook_memory){ 0 };
    world_settle(world);
    ck_assert_int_eq(world->hooks, 2);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_REQUESTED),
                     requested);
    ck_old_pods_stay();
    world->now_ms += 40000; /* 60 s + 40 s */
    world_settle(world);
    ck_old_pods_are_gone();
}
END_TEST

START_TEST(answer_to_another_request_is_none_to_this)
{
    move_job(HTTP_HOOK);
    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    world->memory.hook.requested_wall_ms--;
    world_settle(world);
    ck_old_pods_stay();
    ck_assert_int_eq(world->hooks, 2);
}
END_TEST

START_TEST(broken_gang_is_not_asked)
{
    move_job(HTTP_HOOK);
    world_pod_phase(world, "job-1-1", "Failed", 1);
    world_settle(world);
    ck_assert_ptr_null(store_find(world->store, &kube_pod, "ns", "job-1-0"));
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FAILED), "");
}
END_TEST

START_TEST(gang_on_a_silent_node_is_not_asked)
{
    move_job(HTTP_HOOK);
    world_node_ready(world, "b", false);
    world_step(world);
    ck_assert_ptr_null(store_find(world->store, &kube_pod, "ns", "job-1-0"));
}
END_TEST

START_TEST(nobody_is_asked_with_method_none)
{
    move_job("{'checkpoint': {'onDisruption': {'method': 'None'}}}");
    ck_old_pods_are_gone();
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_REQUESTED),
                     "");
    ck_assert_int_eq(world->last_grace_s, -1);
}
END_TEST

START_TEST(signalled_pods_get_the_longer_grace)
{
    move_job("{'checkpoint': {'onDisruption': {'timeoutSeconds': 90}}, 'podTemplate': "
             "{'spec': {'terminationGracePeriodSeconds': 60}}}");
    ck_old_pods_are_gone();
    ck_assert_int_eq(world->hooks, 0);
    ck_assert_int_eq(world->last_grace_s, 90);
}
END_TEST

START_TEST(signalled_pods_keep_a_grace_that_is_longer)
{
    move_job("{'checkpoint': {'onDisruption': {'timeoutSeconds': 90}}, 'podTemplate': "
             "{'spec': {'terminationGracePeriodSeconds': 91}}}");
    ck_old_pods_are_gone();
    ck_assert_int_eq(world->last_grace_s, -1);
}
END_TEST

START_TEST(limit_holds_for_a_job_that_was_allowed_more)
{
    struct settings settings = *settings_default();
    settings.limits = (struct settings_limits){ .checkpoint_s = 60,
                                                .gang_s = 60,
                                                .termination_grace_s = 20 };
    move_job("{'checkpoint': {'onDisruption': {'method': 'HTTP', 'timeoutSeconds': 900, "
             "'http': {'port': 8476}}}, 'podTemplate': {'spec': "
             "{'terminationGracePeriodSeconds': 900}}}");
    ck_assert_int_eq(world->hooks, 1);
    /* The administrator lowers the limits. */
    world->settings = &settings;
    json_t *job = world_copy(world, &kube_job, "ns", "job");
    object_set(job, "spec.suspend", json_true());
    world_put(world, &kube_job, job);
    world->now_ms += 59000;
    world_settle(world);
    ck_old_pods_stay();
    world->now_ms += 1000;
    world_settle(world);
    ck_old_pods_are_gone();
    ck_assert_int_eq(world->last_grace_s, 20);
}
END_TEST

START_TEST(limit_holds_for_how_long_a_silent_node_is_waited_for)
{
    struct settings settings = *settings_default();
    settings.limits.node_failure_s = 10;
    world->settings = &settings;
    world_run_job(world, "{}"); /* 30 by default */
    world_node_ready(world, "b", false);
    world_pass_s(world, 9);
    ck_assert_str_ne(world_reason(world, "PlanOutdated"), "NodeNotReady");
    world_pass_s(world, 1);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NodeNotReady");
}
END_TEST

/* ---- nodes that say that they will go ---- */

#define LONG_HOOK                                                                        \
    "{'checkpoint': {'onDisruption': {'method': 'HTTP', 'timeoutSeconds': 300, 'http': " \
    "{'port': 8476}}}, 'replanPolicy': {'mode': '%s'}}"
#define SPOT_NOTICE "aws-node-termination-handler/spot-itn"

static void set_taints(const char *name, const char *key)
{
    json_t *node = world_copy(world, &kube_node, "", name);
    json_t *taints = key ? quoted("[{'key': '%s', 'effect': 'NoSchedule'}]", key)
                         : json_array();
    json_object_set_new(json_object_get(node, "spec"), "taints", taints);
    world_put(world, &kube_node, node);
    world_settle(world);
}

static void run_job_in_mode(const char *mode)
{
    auto_free char *spec = xasprintf(LONG_HOOK, mode);
    world_run_job(world, spec);
}

START_TEST(spot_notice_moves_the_job_without_a_pause)
{
    run_job_in_mode("Automatic");
    set_taints("a", SPOT_NOTICE);
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "SpotNotice");
    ck_assert_int_eq(world->plans_asked, 1);
    world->now_ms += 5000; /* of collecting; the cool-down is 600 s */
    world_settle(world);
    ck_assert_int_eq(world->plans_asked, 2);
    world_answer_nodes(world, "b:4 c:4", 2.0);
    world_settle(world);
    ck_assert_str_eq(
        kube_annotation(store_find(world->store, &kube_config_map, "ns", "job-plan-2"),
                        ANNOTATION_TRIGGER),
        "SpotNotice");
    ck_assert_int_eq(world->hooks, 1);
    ck_old_pods_stay();
    world->now_ms += 114999; /* the machine goes 120 s after its notice */
    world_settle(world);
    ck_old_pods_stay();
    world->now_ms += 1;
    world_settle(world);
    ck_old_pods_are_gone();
}
END_TEST

START_TEST(pods_without_another_place_stay_with_their_checkpoint)
{
    world_remove(world, &kube_node, "", "c");
    run_job_in_mode("Automatic");
    set_taints("a", "karpenter.sh/disrupted");
    ck_assert_str_eq(world_reason(world, "PlanOutdated"), "NodeDraining");
    world->now_ms += 5000;
    world_settle(world);
    ck_assert_int_eq(world->hooks, 0); /* the planner is at work */
    world_answer_no_plan(world, "nothing fits");
    world_settle(world);
    ck_assert_int_eq(world->hooks, 1);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FOR),
                     CHECKPOINT_FOR_NOTICE);
    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    world_settle(world);
    ck_assert_str_ne(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_ACKNOWLEDGED),
                     "");
    world->now_ms += 1000000;
    world_settle(world);
    ck_old_pods_stay();
    ck_assert_int_eq(world->hooks, 1);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
}
END_TEST

START_TEST(next_notice_is_asked_for_again)
{
    run_job_in_mode("Never");
    for (int notice = 1; notice <= 2; notice++) {
        set_taints("a", "karpenter.sh/disrupted");
        world->now_ms += 5000;
        world_settle(world);
        ck_assert_int_eq(world->hooks, notice);
        world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
        world_settle(world);
        ck_assert_str_ne(
            world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_ACKNOWLEDGED), "");
        set_taints("a", NULL);
        ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_REQUESTED),
                         "");
    }
    ck_assert_int_eq(world->plans_asked, 1);
    ck_old_pods_stay();
}
END_TEST

START_TEST(old_checkpoint_does_not_do_for_a_stop)
{
    world_remove(world, &kube_node, "", "c");
    run_job_in_mode("Automatic");
    set_taints("a", "karpenter.sh/disrupted");
    world->now_ms += 5000;
    world_settle(world);
    world_answer_no_plan(world, "nothing fits");
    world_settle(world);
    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    world_settle(world);
    world->now_ms += 301000; /* longer than a checkpoint takes at most */
    world_node(world, "c", "NVIDIA-" A100, 4);
    world_settle(world);
    world->now_ms += 30000;
    world_settle(world);
    world_answer_nodes(world, "b:4 c:4", 2.0);
    world_settle(world);
    ck_old_pods_stay();
    ck_assert_int_eq(world->hooks, 2);
    ck_assert_str_eq(world_plan_annotation(world, 1, ANNOTATION_CHECKPOINT_FOR),
                     CHECKPOINT_FOR_STOP);
    world->memory.hook.outcome = HOOK_ACKNOWLEDGED;
    world_settle(world);
    ck_old_pods_are_gone();
}
END_TEST

Suite *test_drain_suite(void);
Suite *test_drain_suite(void)
{
    Suite *suite = suite_create("drain");
    TCase *tcase = tcase_create("drain");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, pods_stay_until_their_program_has_acknowledged);
    tcase_add_test(tcase, acknowledgement_is_written_down_before_a_pod_goes);
    tcase_add_test(tcase, pods_go_when_the_time_is_over);
    tcase_add_test(tcase, pods_go_at_once_when_the_program_refuses);
    tcase_add_test(tcase, who_takes_over_asks_again_within_the_same_time);
    tcase_add_test(tcase, answer_to_another_request_is_none_to_this);
    tcase_add_test(tcase, broken_gang_is_not_asked);
    tcase_add_test(tcase, gang_on_a_silent_node_is_not_asked);
    tcase_add_test(tcase, nobody_is_asked_with_method_none);
    tcase_add_test(tcase, limit_holds_for_a_job_that_was_allowed_more);
    tcase_add_test(tcase, limit_holds_for_how_long_a_silent_node_is_waited_for);
    tcase_add_test(tcase, signalled_pods_get_the_longer_grace);
    tcase_add_test(tcase, signalled_pods_keep_a_grace_that_is_longer);
    tcase_add_test(tcase, spot_notice_moves_the_job_without_a_pause);
    tcase_add_test(tcase, pods_without_another_place_stay_with_their_checkpoint);
    tcase_add_test(tcase, next_notice_is_asked_for_again);
    tcase_add_test(tcase, old_checkpoint_does_not_do_for_a_stop);
    suite_add_tcase(suite, tcase);
    return suite;
}
