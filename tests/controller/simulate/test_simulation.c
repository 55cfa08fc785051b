/* The real controller on the embedded server: scenarios, each under all invariants
 * (invariants.h). Plans come from the real hetplan ($SIMULATION_HETPLAN). */
#include "controller/simulate/simulation.h"

#include "controller/base/timestamp.h"
#include "controller/decision/decision.h"
#include "controller/decision/snapshot.h"
#include "controller/operator/unreadable_jobs.h"
#include "controller/placement/generation.h"
#include "controller/simulate/api_server/condition.h"
#include "tests/controller/happening.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/invariants.h"
#include "tests/controller/objects.h"
#include "tests/controller/profiler.h"
#include "tests/controller/quoted.h"
#include "tests/controller/recorded.h"
#include "tests/scale.h"

#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct simulation *simulation;
static struct api_server *server;
static struct invariants *invariants;

/* What must hold; says when it did not. */
#define hold(condition, format, ...)                                                     \
    ck_assert_msg(condition, "after %.1f s: " format,                                    \
                  (double)simulation_now_ms(simulation) / 1000, ##__VA_ARGS__)

/* ---- the world ---- */

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

static void put_node(const char *name, const char *type, int gpus)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': '%s', 'labels':"
               " {'nvidia.com/gpu.product': '%s'}}, 'status': {'capacity': "
               "{'nvidia.com/gpu': '%d', 'cpu': '64', 'memory': '256Gi', 'pods': '110'}, "
               "'allocatable': {'nvidia.com/gpu': '%d', 'cpu': '64', 'memory': '256Gi', "
               "'pods': '110'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
               name, type, gpus, gpus));
}

static void put_profile(void)
{
    put(make_profile("default", 2, 1));
}

static void put_job(const char *name, int max_gpus)
{
    put(make_restricted(quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s'}, 'spec': {'model': {'profileRef': {'kind': "
        "'ModelProfile', 'name': 'small'}}, 'training': {'globalBatchSize': 32}, "
        "'resources': {'minGPUs': 2, 'maxGPUs': %d}, 'replanPolicy': {'debounceSeconds': "
        "10, 'cooldownSeconds': 60, 'minImprovementPercent': 10}, 'failurePolicy': "
        "{'maxRestarts': 2, 'backoffSeconds': 10, 'backoffMaxSeconds': 60}, "
        "'podTemplate': {'spec': {'terminationGracePeriodSeconds': 30, 'containers': "
        "[{'name': 'trainer', 'image': 'train:1', 'command': ['torchrun']}]}}}}",
        name, max_gpus)));
}

static const char *hetplan(void)
{
    const char *path = getenv("SIMULATION_HETPLAN");
    return path ? path : "build/hetplan";
}

/* ---- running ---- */

static bool after_step(void *context, struct simulation *at)
{
    (void)context;
    (void)at;
    invariants_step(invariants);
    return !invariants_broken(invariants);
}

static void check_invariants(void)
{
    const char *broken = invariants_broken(invariants);
    ck_assert_msg(!broken, "%s", broken);
}

static void run_ms(int64_t ms)
{
    struct het_error err = { 0 };
    int64_t until_ms = simulation_now_ms(simulation) + ms;
    hold(simulation_run(simulation, until_ms, after_step, NULL, &err) == 0, "%s",
         err.message);
    check_invariants();
}

static void run_s(int64_t seconds)
{
    run_ms(seconds * 1000);
}

static void check_rest(void)
{
    invariants_at_rest(invariants);
    check_invariants();
}

/* Nothing happens: nothing is written. */
static void check_quiet(void)
{
    uint64_t writes = api_server_statistics(server).writes;
    run_s(700); /* more than a resync */
    ck_assert_uint_eq(api_server_statistics(server).writes, writes);
    check_rest();
}

static void do_event(const char *text)
{
    struct het_error err = { 0 };
    ck_assert_msg(!happening(simulation_cluster(simulation), text, &err), "%s: %s", text,
                  err.message);
}

/* The controller hears late of what happens: that is not held against it. */
static bool is_late;

static void begin_with(const struct simulation_config *config)
{
    struct het_error err = { 0 };
    signal(SIGPIPE, SIG_IGN); /* as main does: a planner may end early */
    simulation = simulation_new(config, &err);
    ck_assert_msg(simulation != NULL, "%s", err.message);
    server = simulation_server(simulation);
    invariants =
        invariants_new(simulation, &(struct invariants_config){ .is_late = is_late });
}

/* Name of the job that was decided on first since this was made "". */
static char decided_first[64];

static void note_decision(void *context, const struct snapshot *snapshot,
                          const struct decision *decision)
{
    recorded_check(context, snapshot, decision);
    if (!*decided_first)
        snprintf(decided_first, sizeof decided_first, "%s", snapshot->spec.name);
}

static struct profiler profiler;

static void begin(uint64_t seed, bool heartbeats, size_t replicas)
{
    struct simulation_config config = { .planner = hetplan(),
                                        .doubts_memos = true,
                                        .settings = profiler_settings(),
                                        .seed = seed,
                                        .replicas = replicas,
                                        .on_decision = note_decision,
                                        .cluster = simulated_cluster_defaults };
    config.cluster.heartbeat_ms = heartbeats ? 10000 : 0;
    begin_with(&config);
    profiler = (struct profiler){ .after_ms = 60000 };
    simulated_cluster_set_program(simulation_cluster(simulation), profiler_run,
                                  &profiler);
    put_node("a-0", "NVIDIA-A100-SXM4-40GB", 4);
    put_node("a-1", "NVIDIA-A100-SXM4-40GB", 4);
    put_node("v-0", "Tesla-V100-SXM2-16GB", 4);
    put_node("v-1", "Tesla-V100-SXM2-16GB", 2);
    put_profile();
}

static void setup(void)
{
    begin(1, true, 1);
}

static void teardown(void)
{
    invariants_free(invariants);
    simulation_free(simulation);
}

static json_t *job(const char *name)
{
    return api_server_find(server, "heterotrainingjobs", "default", name);
}

#define check_condition(name, type, status, reason)                                      \
    do {                                                                                 \
        const json_t *is_ =                                                              \
            object_find(object_at(job(name), "status.conditions"), "type", type);        \
        ck_assert_msg(!strcmp(object_text(is_, "status"), status) &&                     \
                          !strcmp(object_text(is_, "reason"), reason),                   \
                      "%s %s is %s %s: %s", name, type, object_text(is_, "status"),      \
                      object_text(is_, "reason"), object_text(is_, "message"));          \
    } while (0)

static bool is_true(const char *name, const char *type)
{
    return !strcmp(object_condition(job(name), type), "True");
}

static bool runs(const char *name)
{
    return is_true(name, "Running");
}

static int64_t gpus_of(const char *name)
{
    return object_integer(job(name), "status.allocatedGPUs", 0);
}

static int64_t generation_now(const char *name)
{
    return object_integer(job(name), "status.plan.revision", 0);
}

static int64_t restarts_of(const char *name)
{
    return object_integer(job(name), "status.restarts", 0);
}

static json_t *find_plan(const char *name, int generation)
{
    auto_free char *map = xasprintf("%s-plan-%d", name, generation);
    return api_server_find(server, "configmaps", "default", map);
}

/* The nodes of the running pods of a job, in the order of its ranks: "a-0 a-1 " */
static char *nodes_of(const char *name)
{
    char *text = xstrdup("");
    const char *uid = object_text(job(name), "metadata.uid");
    for (size_t i = 0; i < api_server_count(server, "pods"); i++) {
        const json_t *pod = api_server_at(server, "pods", i);
        auto_free char *before = text;
        bool shown = !strcmp(kube_label(pod, LABEL_JOB_UID), uid) &&
                     !strcmp(object_text(pod, "status.phase"), "Running");
        text = xasprintf("%s%s%s", before, shown ? object_text(pod, "spec.nodeName") : "",
                         shown ? " " : "");
    }
    return text;
}

/* Job "j" is made, and runs. */
static void run_job(int max_gpus)
{
    put_job("j", max_gpus);
    run_s(30);
    ck_assert(runs("j"));
}

/* A minute later, job "j" runs, and nothing more is to be done. */
static void check_runs_and_rests(void)
{
    run_s(60);
    ck_assert(runs("j"));
    check_quiet();
}

static void check_pods_have_ended(void)
{
    for (size_t i = 0; i < api_server_count(server, "pods"); i++) {
        const char *phase = object_text(api_server_at(server, "pods", i), "status.phase");
        ck_assert(!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"));
    }
}

/* ---- scenarios ---- */

START_TEST(job_is_planned_placed_and_runs)
{
    run_job(8);
    check_condition("j", "PlanFeasible", "True", "PlanComputed");
    /* No node says its instance type, and there are no settings. */
    check_condition("j", "LinksAssumed", "True", "NobodyMeasured");
    ck_assert_int_eq(generation_now("j"), 1);
    const json_t *service = api_server_find(server, "services", "default", "j");
    ck_assert_str_eq(object_text(service, "spec.clusterIP"), "None");
    check_rest();
    check_quiet();
}
END_TEST

static const json_t *find_unused(const char *reason)
{
    const json_t *job = api_server_find(server, "heterotrainingjobs", "default", "j");
    const json_t *list = object_at(job, "status.unusedGPUs");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(object_text(json_array_get(list, i), "reason"), reason))
            return json_array_get(list, i);
    return NULL;
}

START_TEST(gpus_that_a_job_does_not_use_have_their_reasons)
{
    put_node("bare", "", 2);
    put_node("foo", "NVIDIA-H100-FOO", 4);
    run_job(64);
    const json_t *foo = find_unused("UnknownProduct"), *bare = find_unused("NoGPULabel");
    ck_assert_str_eq(object_text(foo, "gpuType"), "H100-FOO");
    ck_assert_int_eq(object_integer(foo, "gpus", 0), 4);
    ck_assert_ptr_nonnull(strstr(object_text(foo, "message"), "gpuTypes"));
    ck_assert_int_eq(object_integer(bare, "gpus", 0), 2);
    check_condition("j", "GPUsUnknown", "True", "UnknownProduct");
    size_t events = 0;
    for (size_t i = 0; i < api_server_count(server, "events"); i++)
        events += !strcmp(object_text(api_server_at(server, "events", i), "reason"),
                          "UnknownProduct");
    ck_assert_uint_eq(events, 1);

    /* Its GPUs are called now this and now that, and are the same: they are not planned
     * with. */
    static const char *const names[] = { "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-FOO",
                                         "NVIDIA-A100-SXM4-40GB" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put_node("foo", names[i], 4);
        run_s(2);
    }
    run_s(700);
    ck_assert_int_eq(generation_now("j"), 1);
    check_quiet();
    /* A new machine of that name is. */
    ck_assert_int_eq(api_server_delete(server, "nodes", "", "foo", -1, NULL), 0);
    run_s(60);
    put_node("foo", "NVIDIA-A100-SXM4-40GB", 4);
    run_s(700);
    ck_assert_int_eq(generation_now("j"), 2);
    check_condition("j", "GPUsUnknown", "True", "NoGPULabel");
}
END_TEST

START_TEST(a_job_that_waits_says_why_it_cannot_have_gpus)
{
    put_node("a-0", "", 4);
    put_node("a-1", "", 4);
    put_node("v-0", "", 4);
    put_node("v-1", "", 2);
    put_job("j", 8);
    run_s(60);
    check_condition("j", "PlanFeasible", "False", "NoUsableGPUs");
    check_condition("j", "GPUsUnknown", "True", "NoGPULabel");
    ck_assert_int_eq(object_integer(find_unused("NoGPULabel"), "gpus", 0), 14);
    ck_assert_int_eq(object_integer(find_unused("NoGPULabel"), "nodeCount", 0), 4);
    /* GPU Feature Discovery runs again. */
    put_node("a-0", "NVIDIA-A100-SXM4-40GB", 4);
    put_node("a-1", "NVIDIA-A100-SXM4-40GB", 4);
    put_node("v-0", "Tesla-V100-SXM2-16GB", 4);
    put_node("v-1", "Tesla-V100-SXM2-16GB", 2);
    run_s(120);
    ck_assert(runs("j"));
    ck_assert_ptr_null(find_unused("NoGPULabel"));
    check_condition("j", "GPUsUnknown", "False", "AllKnown");
}
END_TEST

START_TEST(heartbeats_of_nodes_cause_nothing)
{
    put_job("j", 8);
    run_s(60);
    struct controller_statistics before =
        controller_statistics(simulation_controller(simulation));
    run_s(300); /* 30 heartbeats of 4 nodes */
    struct controller_statistics after =
        controller_statistics(simulation_controller(simulation));
    ck_assert_uint_eq(after.passes, before.passes);
    ck_assert_uint_eq(after.plans, before.plans);
}
END_TEST

START_TEST(job_moves_when_its_node_is_lost_and_stays_when_that_returns)
{
    run_job(8);
    auto_free char *before = nodes_of("j");
    ck_assert_str_eq(before, "a-0 a-1 ");
    do_event("delete node/a-1");
    run_s(60);
    ck_assert(runs("j"));
    auto_free char *after = nodes_of("j");
    ck_assert_ptr_null(strstr(after, "a-1"));
    ck_assert_int_eq(generation_now("j"), 2);
    ck_assert_int_eq(object_integer(job("j"), "status.replans", 0), 1);
    ck_assert_int_eq(restarts_of("j"), 0);
    do_event("restore node/a-1");
    run_s(200);
    ck_assert(runs("j")); /* on the better plan: two A100 nodes again */
    auto_free char *again = nodes_of("j");
    ck_assert_str_eq(again, "a-0 a-1 ");
    check_quiet();
}
END_TEST

/* Node a-1 of a job on a-0 and a-1 is lost. A mix of a-0 and v-0 is best then; a-0 alone,
 * as it was, is slower by 49 %. */
static char *nodes_after_a_loss(int max_slowdown_percent)
{
    put_job("j", 8);
    json_t *changed = json_deep_copy(job("j"));
    object_set(object_at(changed, "spec.replanPolicy"), "maxSlowdownPercent",
               json_integer(max_slowdown_percent));
    put(changed);
    run_s(30);
    do_event("delete node/a-1");
    run_s(60);
    ck_assert(runs("j"));
    return nodes_of("j");
}

START_TEST(lost_node_leaves_the_others_as_they_were_where_that_costs_little)
{
    auto_free char *nodes = nodes_after_a_loss(60);
    ck_assert_str_eq(nodes, "a-0 ");
}
END_TEST

START_TEST(lost_node_moves_the_others_where_staying_costs_much)
{
    auto_free char *nodes = nodes_after_a_loss(10);
    ck_assert_ptr_nonnull(strstr(nodes, "v-0"));
}
END_TEST

START_TEST(job_that_lost_a_node_is_decided_on_before_others)
{
    put_job("old", 8);
    run_s(1);
    put_job("new", 8);
    run_s(60);
    ck_assert(runs("old"));
    ck_assert(runs("new"));
    *decided_first = '\0';
    do_event("delete node/v-0");
    run_s(1);
    ck_assert_str_eq(decided_first, "new");
}
END_TEST

START_TEST(job_waits_for_gpus_and_starts_by_itself)
{
    static const char *const nodes[] = { "a-0", "a-1", "v-0", "v-1" };
    for (size_t i = 0; i < 4; i++) {
        auto_free char *event = xasprintf("cordon node/%s", nodes[i]);
        do_event(event);
    }
    put_job("j", 8);
    run_s(60);
    check_condition("j", "PlanFeasible", "False", "NoUsableGPUs");
    ck_assert_uint_eq(api_server_count(server, "pods"), 0);
    check_quiet();
    do_event("uncordon node/v-0");
    run_s(60);
    ck_assert(runs("j"));
    auto_free char *now = nodes_of("j");
    ck_assert_str_eq(now, "v-0 ");
    check_quiet();
}
END_TEST

START_TEST(two_jobs_share_the_cluster_and_the_older_comes_first)
{
    put_job("old", 8);
    run_s(1);
    put_job("new", 8);
    run_s(60);
    ck_assert(runs("old"));
    ck_assert(runs("new"));
    auto_free char *of_old = nodes_of("old");
    auto_free char *of_new = nodes_of("new");
    ck_assert_str_eq(of_old, "a-0 a-1 ");
    ck_assert_str_eq(of_new, "v-0 v-1 ");
    do_event("delete job/old");
    run_s(300);
    ck_assert_ptr_null(job("old"));
    auto_free char *moved = nodes_of("new");
    ck_assert_str_eq(moved, "a-0 a-1 "); /* twice as fast there */
    check_quiet();
}
END_TEST

START_TEST(two_jobs_of_one_second_do_not_take_the_same_gpus)
{
    put_job("a", 14);
    put_job("b", 14);
    run_s(200); /* on_change has looked at each plan */
    ck_assert(runs("a"));
    ck_assert(runs("b")); /* the other has made room after its cool-down */
    check_rest();
    check_quiet();
}
END_TEST

/* ---- many jobs ---- */

static void put_classes(void)
{
    put(quoted("{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', "
               "'metadata': {'name': 'high'}, 'value': 1000}"));
    put(quoted("{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', "
               "'metadata': {'name': 'polite'}, 'value': 1000, 'preemptionPolicy': "
               "'Never'}"));
}

/* As put_job, with other limits and a PriorityClass ("": none). */
static void put_ranked_job(const char *name, int min_gpus, int max_gpus,
                           const char *class)
{
    put_job(name, max_gpus);
    json_t *changed = json_deep_copy(job(name));
    object_set(object_at(changed, "spec.resources"), "minGPUs", json_integer(min_gpus));
    if (*class)
        object_set(object_at(changed, "spec"), "scheduling",
                   json_pack("{s:s}", "priorityClassName", class));
    put(changed);
}

START_TEST(higher_priority_is_served_first)
{
    put_classes();
    put_ranked_job("old", 8, 8, "");
    put_ranked_job("young", 8, 8, "high"); /* of the same second, or later */
    run_s(60);
    ck_assert(runs("young"));
    auto_free char *nodes = nodes_of("young");
    ck_assert_str_eq(nodes, "a-0 a-1 ");
    ck_assert(!runs("old"));
}
END_TEST

START_TEST(lower_priority_is_preempted_down_to_its_minimum)
{
    put_classes();
    put_ranked_job("low", 2, 14, "");
    run_s(60);
    ck_assert(runs("low"));
    int64_t before = gpus_of("low");
    ck_assert_int_gt(before, 10);
    put_ranked_job("high", 4, 4, "high");
    run_s(120);
    ck_assert(runs("high"));
    ck_assert(runs("low")); /* with what is left */
    ck_assert_int_eq(gpus_of("high"), 4);
    ck_assert_int_le(gpus_of("low"), 10);
    ck_assert_int_ge(gpus_of("low"), 2);
    ck_assert_int_eq(restarts_of("low"), 0);
    check_quiet();
}
END_TEST

START_TEST(lower_priority_is_preempted_whole_and_comes_back)
{
    put_classes();
    put_ranked_job("low", 8, 14, "");
    run_s(60);
    ck_assert(runs("low"));
    put_ranked_job("high", 8, 8, "high");
    run_s(120);
    ck_assert(runs("high"));
    ck_assert(!runs("low"));
    check_condition("low", "PlanFeasible", "False", "Preempted");
    ck_assert_int_eq(gpus_of("low"), 0);
    check_quiet();
    do_event("delete job/high");
    run_s(120);
    ck_assert(runs("low"));
    ck_assert_int_eq(restarts_of("low"), 0);
    check_quiet();
}
END_TEST

/* Sets a field of a job's spec. */
static void set_spec(const char *name, const char *path, const char *key, json_t *value)
{
    json_t *changed = json_deep_copy(job(name));
    object_set(object_at(changed, path), key, value);
    put(changed);
}

START_TEST(job_with_a_spec_that_is_refused_is_preempted_whole)
{
    put_classes();
    put_ranked_job("low", 2, 14, "");
    run_s(60);
    ck_assert(runs("low"));
    set_spec("low", "spec.resources", "maxGPUs", json_integer(1)); /* below minGPUs */
    run_s(10);
    check_condition("low", "Accepted", "False", "InvalidSpec");
    ck_assert(runs("low"));
    put_ranked_job("high", 4, 4, "high");
    run_s(120);
    ck_assert(runs("high"));
    ck_assert(!runs("low"));
    check_condition("low", "PlanFeasible", "False", "Preempted");
    ck_assert_int_eq(gpus_of("low"), 0);
    check_quiet();
    set_spec("low", "spec.resources", "maxGPUs", json_integer(14));
    run_s(60);
    ck_assert(runs("low")); /* with what is left */
}
END_TEST

/* The one that is asked says that it could shrink, and cannot. */
START_TEST(claims_in_vain_become_rare_and_leave_little)
{
    put_ranked_job("stiff", 2, 14, "");
    set_spec("stiff", "spec", "checkpoint", json_pack("{s:s}", "resharding", "SamePlan"));
    run_s(120);
    ck_assert(runs("stiff"));
    put_ranked_job("second", 4, 4, "");
    run_s(3 * 3600);
    ck_assert(runs("stiff"));
    ck_assert_int_eq(generation_now("stiff"), 1);
    /* Pauses of 5, 10, 20, 40 and 60 minutes are 135 of the 180. */
    uint64_t claims = invariants_statistics(invariants).plans - 1;
    ck_assert_uint_ge(claims, 4);
    ck_assert_uint_le(claims, 6);
    ck_assert_uint_le(api_server_count(server, "configmaps"), 1 + PLANS_KEPT + 1);
}
END_TEST

/* Other tenants hold so much CPU of each node. */
static void take_cpus(int cpus)
{
    static const char *const nodes[] = { "a-0", "a-1", "v-0", "v-1" };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        put(quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'on-%s'}, "
                   "'spec': {'nodeName': '%s', 'containers': [{'name': 'c', 'image': "
                   "'i', 'resources': {'requests': {'cpu': '%d'}}}]}}",
                   nodes[i], nodes[i], cpus));
}

/* No node has 5 CPUs left, whatever the job there gives up. */
START_TEST(gpus_that_would_come_without_cpu_are_not_claimed)
{
    put_classes();
    take_cpus(60);
    put_ranked_job("low", 2, 14, "");
    run_s(120);
    ck_assert(runs("low"));
    put_ranked_job("high", 4, 4, "high");
    set_spec("high", "spec", "perGPUResources", json_pack("{s:s}", "cpu", "5"));
    run_s(3 * 3600);
    ck_assert(runs("low"));
    ck_assert_int_eq(generation_now("low"), 1);
    ck_assert_int_eq(generation_now("high"), 0);
    check_condition("high", "PlanFeasible", "False", "NoUsableGPUs");
}
END_TEST

/* The CPUs that others leave are enough for one GPU of each node. */
START_TEST(claim_takes_no_more_of_a_node_than_comes_with_cpu)
{
    put_classes();
    take_cpus(60);
    put_ranked_job("low", 2, 14, "");
    run_s(120);
    ck_assert(runs("low"));
    put_ranked_job("high", 4, 4, "high");
    set_spec("high", "spec", "perGPUResources", json_pack("{s:s}", "cpu", "4"));
    run_s(3 * 3600);
    ck_assert(runs("low"));
    ck_assert(runs("high"));
    auto_free char *nodes = nodes_of("high");
    ck_assert_str_eq(nodes, "a-0 a-1 v-0 v-1 ");
    ck_assert_int_eq(generation_now("high"), 1);
    ck_assert_int_eq(generation_now("low"), 2);
}
END_TEST

/* "A100-SXM4-40GB:8 V100-SXM2-16GB:4" */
static char *unmet(const char *name)
{
    const json_t *list = object_at(job(name), "status.unmetDemand");
    char *text = xstrdup("");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        auto_free char *before = text;
        text = xasprintf("%s%s%s:%lld", before, i ? " " : "",
                         object_text(entry, "gpuType"),
                         (long long)object_integer(entry, "gpus", 0));
    }
    return text;
}

#define check_unmet(name, expected)                                                      \
    do {                                                                                 \
        auto_free char *is_ = unmet(name);                                               \
        ck_assert_str_eq(is_, expected);                                                 \
    } while (0)

START_TEST(what_is_missing_is_told_and_adding_it_helps)
{
    put_job("j", 20);
    set_spec("j", "spec.resources", "minGPUs", json_integer(16)); /* there are 14 */
    run_s(5);
    check_condition("j", "PlanFeasible", "False", "NoPlanFits");
    check_unmet("j", ""); /* the cluster may change yet */
    run_s(60);
    /* The best 16 that could be had beside the 14: new A100 are as near as the others. */
    auto_free char *said = unmet("j");
    const char *number = strchr(said, ':');
    ck_assert_ptr_nonnull(number);
    ck_assert_ptr_null(strchr(said, ' '));
    int missing = atoi(number + 1);
    ck_assert_int_ge(missing, 2);
    ck_assert_int_le(missing, 16);
    check_quiet();
    for (int added = 0, i = 0; added < missing; added += 4, i++) {
        auto_free char *node = xasprintf("new-%d", i);
        put_node(node, "NVIDIA-A100-SXM4-40GB", 4);
    }
    run_s(60);
    ck_assert(runs("j"));
}
END_TEST

/* The node's GPUs, called as before, are AMD's. */
static void make_amd(const char *name, int gpus)
{
    json_t *node = json_deep_copy(api_server_find(server, "nodes", "", name));
    static const char *const lists[] = { "status.capacity", "status.allocatable" };
    for (size_t i = 0; i < 2; i++) {
        json_t *list = object_at(node, lists[i]);
        json_object_del(list, "nvidia.com/gpu");
        json_object_set_new(list, "amd.com/gpu", json_sprintf("%d", gpus));
    }
    put(node);
}

/* The resource by which all pods ask for GPUs; "": there are no pods. */
static const char *resource_of_pods(void)
{
    const char *found = "";
    for (size_t i = 0; i < api_server_count(server, "pods"); i++) {
        const json_t *containers =
            object_at(api_server_at(server, "pods", i), "spec.containers");
        const json_t *limits =
            object_at(json_array_get(containers, 0), "resources.limits");
        const char *own = json_object_get(limits, "amd.com/gpu") ? "amd.com/gpu"
                                                                 : "nvidia.com/gpu";
        ck_assert_ptr_nonnull(json_object_get(limits, own));
        ck_assert_msg(!*found || !strcmp(found, own), "%s and %s", found, own);
        found = own;
    }
    return found;
}

START_TEST(job_runs_on_the_gpus_of_one_vendor)
{
    make_amd("v-0", 4);
    make_amd("v-1", 2);
    put_job("j", 14);
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_str_eq(resource_of_pods(), "nvidia.com/gpu");
    ck_assert_int_eq(generation_now("j"), 1);
    check_quiet(); /* the others' GPUs are free, and it does not plan for them for ever */

    /* It moves when its own are gone, and asks by the resource of the new nodes. */
    do_event("delete node/a-0");
    do_event("delete node/a-1");
    run_s(300);
    ck_assert(runs("j"));
    ck_assert_str_eq(resource_of_pods(), "amd.com/gpu");
    check_quiet();
}
END_TEST

START_TEST(what_one_vendor_lacks_is_missing_though_another_has_it)
{
    make_amd("v-0", 4);
    make_amd("v-1", 2);
    put_job("j", 20);
    set_spec("j", "spec.resources", "minGPUs", json_integer(10)); /* 8 and 6 */
    run_s(120);
    ck_assert(!runs("j"));
    check_condition("j", "PlanFeasible", "False", "NoPlanFits");
    auto_free char *said = unmet("j");
    const char *number = strchr(said, ':');
    ck_assert_ptr_nonnull(number);
    ck_assert_int_ge(atoi(number + 1), 2);
    check_quiet();
    put_node("a-2", "NVIDIA-A100-SXM4-40GB", 4);
    run_s(120);
    ck_assert(runs("j"));
}
END_TEST

START_TEST(job_that_no_number_of_gpus_helps_demands_none)
{
    uint64_t before = controller_statistics(simulation_controller(simulation)).plans;
    put_job("j", 4096);
    set_spec("j", "spec.training", "microBatchSizes", quoted("[3]")); /* not measured */
    run_s(300);
    ck_assert(!runs("j"));
    check_unmet("j", "");
    uint64_t asked = controller_statistics(simulation_controller(simulation)).plans -
                     before;
    ck_assert_uint_le(asked, 1 + 8);
    check_quiet();
}
END_TEST

START_TEST(search_of_all_plans_is_for_small_jobs_only)
{
    put_job("large", 20);
    set_spec("large", "spec", "planner",
             quoted("{'algorithm': 'exhaustive', 'effort': 'Low'}"));
    run_s(60);
    check_condition("large", "Accepted", "False", "InvalidSpec");
    check_condition("large", "PlanFeasible", "False", "InputRefused");
    const json_t *accepted =
        object_find(object_at(job("large"), "status.conditions"), "type", "Accepted");
    ck_assert_ptr_nonnull(
        strstr(object_text(accepted, "message"), "too large to look at all plans"));
    check_unmet("large", "");
    check_quiet();

    put_job("small", 2);
    set_spec("small", "spec.training", "globalBatchSize", json_integer(2));
    set_spec("small", "spec", "planner", quoted("{'algorithm': 'exhaustive'}"));
    run_s(30);
    ck_assert(runs("small"));
    ck_assert_str_eq(object_text(job("small"), "status.plan.algorithm"), "exhaustive");

    set_spec("large", "spec", "planner", quoted("{'algorithm': 'oomfirst'}"));
    run_s(60);
    ck_assert(runs("large"));
    check_condition("large", "Accepted", "True", "Valid");
    ck_assert_str_eq(object_text(job("large"), "status.plan.algorithm"), "oomfirst");
}
END_TEST

START_TEST(elastic_job_tells_what_it_could_use_besides)
{
    put_job("j", 20);
    run_s(60);
    ck_assert(runs("j"));
    check_unmet("j", "A100-SXM4-40GB:6"); /* 20 - 14 */
    put_node("a-2", "NVIDIA-A100-SXM4-40GB", 4);
    run_s(200);
    check_unmet("j", "A100-SXM4-40GB:2");
    set_spec("j", "spec.resources", "maxGPUs", json_integer(14));
    run_s(200);
    check_unmet("j", "");
    check_quiet();
}
END_TEST

START_TEST(nobody_is_preempted_for_a_plan_that_would_not_fit)
{
    put_classes();
    put_ranked_job("low", 2, 14, "");
    run_s(60);
    int64_t generation = generation_now("low");
    put_ranked_job("huge", 20, 40, "high"); /* there are 14 GPUs */
    put_ranked_job("patient", 4, 4, "polite");
    put_ranked_job("equal", 14, 14, ""); /* it would have to stop low whole */
    run_s(600);
    ck_assert(runs("low"));
    ck_assert_int_eq(generation_now("low"), generation);
    ck_assert(!runs("huge"));
    ck_assert(!runs("patient"));
    ck_assert(!runs("equal"));
    check_quiet();
}
END_TEST

START_TEST(elastic_job_makes_room_for_one_of_its_priority_after_its_cool_down)
{
    put_ranked_job("first", 2, 14, "");
    run_s(30);
    ck_assert(runs("first"));
    ck_assert_int_gt(gpus_of("first"), 10);
    put_ranked_job("second", 4, 4, "");
    run_s(20); /* within the first one's cool-down of 60 s */
    ck_assert(!runs("second"));
    ck_assert_int_eq(generation_now("first"), 1);
    run_s(120);
    ck_assert(runs("first"));
    ck_assert(runs("second"));
    ck_assert_int_eq(gpus_of("second"), 4);
    check_quiet();
}
END_TEST

/* Whichever is the older, and asks first. */
START_TEST(free_gpus_go_where_they_buy_the_most)
{
    const char *first = _i ? "small" : "big", *second = _i ? "big" : "small";
    do_event("cordon node/a-1");
    do_event("cordon node/v-0");
    put_ranked_job("big", 4, 4, ""); /* on a-0 */
    run_s(1);
    put_ranked_job("small", 2, 2, ""); /* on v-1 */
    run_s(100);                        /* both may move again */
    ck_assert_int_eq(gpus_of("big"), 4);
    ck_assert_int_eq(gpus_of("small"), 2);
    put_ranked_job(first, 2, _i ? 6 : 8, "");
    put_ranked_job(second, 2, _i ? 8 : 6, "");
    do_event("uncordon node/a-1");
    run_s(100);
    /* 4 A100 would make big twice as fast, and small, with 2 V100, several times. */
    ck_assert_int_eq(gpus_of("big"), 4);
    ck_assert_int_ge(gpus_of("small"), 4);
    ck_assert_int_eq(generation_now("big"), 1);
    check_quiet();
}
END_TEST

START_TEST(jobs_do_not_preempt_each_other_in_turns)
{
    put_classes();
    put_ranked_job("low-1", 4, 14, "");
    put_ranked_job("low-2", 4, 14, "");
    put_ranked_job("high-1", 4, 14, "high");
    put_ranked_job("high-2", 4, 14, "high");
    run_s(600);
    int64_t before = generation_now("low-1") + generation_now("low-2") +
                     generation_now("high-1") + generation_now("high-2");
    ck_assert(runs("high-1"));
    ck_assert(runs("high-2"));
    run_s(3600);
    ck_assert_int_eq(generation_now("low-1") + generation_now("low-2") +
                         generation_now("high-1") + generation_now("high-2"),
                     before);
    check_rest();
}
END_TEST

START_TEST(deleted_job_leaves_nothing)
{
    run_job(8);
    do_event("delete job/j");
    run_s(60);
    ck_assert_uint_eq(api_server_count(server, "pods"), 0);
    ck_assert_uint_eq(api_server_count(server, "configmaps"), 0);
    ck_assert_uint_eq(api_server_count(server, "services"), 0);
    check_quiet();
}
END_TEST

START_TEST(failed_pod_restarts_all_until_the_limit)
{
    run_job(8);
    for (int restart = 1; restart <= 2; restart++) {
        auto_free char *event = xasprintf("fail pod/j-%d-0 3", restart);
        do_event(event);
        run_s(120);
        ck_assert(runs("j"));
        ck_assert_int_eq(restarts_of("j"), restart);
        ck_assert_int_eq(generation_now("j"), restart + 1);
    }
    do_event("fail pod/j-3-0 3");
    run_s(120);
    check_condition("j", "Failed", "True", "RestartLimitReached");
    check_quiet();
    check_pods_have_ended();
}
END_TEST

START_TEST(job_is_complete_when_all_its_pods_succeed)
{
    put_job("j", 8);
    put_job("waits", 8);
    run_s(30);
    do_event("succeed job/j");
    run_s(300);
    check_condition("j", "Complete", "True", "AllPodsSucceeded");
    ck_assert(runs("waits")); /* has moved to what is free now */
    auto_free char *nodes = nodes_of("waits");
    ck_assert_str_eq(nodes, "a-0 a-1 ");
    check_quiet();
}
END_TEST

START_TEST(silent_node_is_left_after_its_grace)
{
    run_job(8);
    do_event("notready node/a-0");
    run_s(20);
    ck_assert_int_eq(generation_now("j"), 1);
    run_s(60); /* nodeFailureGraceSeconds is 30 */
    ck_assert(runs("j"));
    auto_free char *nodes = nodes_of("j");
    ck_assert_ptr_null(strstr(nodes, "a-0"));
    check_quiet();
}
END_TEST

START_TEST(node_that_speaks_again_within_its_grace_is_not_left)
{
    run_job(8);
    do_event("notready node/a-0");
    run_s(20);
    do_event("ready node/a-0");
    run_s(120);
    ck_assert(runs("j"));
    ck_assert_int_eq(generation_now("j"), 1);
    check_quiet();
}
END_TEST

START_TEST(cordoned_node_is_left_when_there_is_a_place_to_go)
{
    run_job(4);
    auto_free char *before = nodes_of("j");
    auto_free char *event = xasprintf("cordon node/%.3s", before);
    do_event(event);
    run_s(200);
    ck_assert(runs("j"));
    auto_free char *after = nodes_of("j");
    ck_assert_str_ne(before, after);
    check_quiet();
}
END_TEST

/* ---- checkpoint hooks ---- */

static size_t hook_calls(void)
{
    return json_array_size(simulated_cluster_hook_calls(simulation_cluster(simulation)));
}

/* A job with a hook is about to move; its program has been called just now. */
static void begin_to_move(struct simulated_hook hook)
{
    simulated_cluster_set_hook(simulation_cluster(simulation), hook);
    put_job("j", 4);
    do_event(
        "patch job/j {\"spec\":{\"checkpoint\":{\"onDisruption\":{\"method\":\"HTTP\","
        "\"http\":{\"port\":8476},\"timeoutSeconds\":120}}}}");
    run_s(30);
    auto_free char *nodes = nodes_of("j");
    auto_free char *event = xasprintf("cordon node/%.3s", nodes);
    do_event(event);
    for (int s = 0; s < 120 && !hook_calls(); s++)
        run_s(1);
    ck_assert_uint_eq(hook_calls(), 1);
}

static bool old_pod_is_there(void)
{
    const json_t *pod = api_server_find(server, "pods", "default", "j-1-0");
    return pod && !object_at(pod, "metadata.deletionTimestamp");
}

START_TEST(pods_wait_for_the_checkpoint_of_their_program)
{
    begin_to_move((struct simulated_hook){ .status = 200, .delay_ms = 60000 });
    const char *call = json_string_value(
        json_array_get(simulated_cluster_hook_calls(simulation_cluster(simulation)), 0));
    ck_assert(!strncmp(call, "POST http://10.1.0.", strlen("POST http://10.1.0.")));
    ck_assert_ptr_nonnull(strstr(call, ":8476/checkpoint"));
    run_s(57);
    ck_assert(old_pod_is_there());
    check_condition("j", "Placed", "False", "WaitingForCheckpoint");
    run_s(5);
    ck_assert(!old_pod_is_there());
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_uint_eq(hook_calls(), 1);
    check_quiet();
}
END_TEST

START_TEST(program_that_hangs_has_its_time_and_no_more)
{
    begin_to_move((struct simulated_hook){ .status = 200, .delay_ms = INT64_MAX });
    run_s(115);
    ck_assert(old_pod_is_there());
    run_s(10);
    ck_assert(!old_pod_is_there());
    check_runs_and_rests();
}
END_TEST

START_TEST(controller_that_takes_over_asks_the_program_again)
{
    begin_to_move((struct simulated_hook){ .status = 200, .delay_ms = 60000 });
    run_s(20);
    simulation_restart_controller(simulation);
    run_s(5);
    ck_assert_uint_eq(hook_calls(), 2);
    ck_assert(old_pod_is_there());
    run_s(65); /* 60 s from the second call, 90 s from the request */
    ck_assert(!old_pod_is_there());
    check_runs_and_rests();
}
END_TEST

START_TEST(program_that_refuses_is_stopped_at_once)
{
    begin_to_move((struct simulated_hook){ .status = 404, .delay_ms = 100 });
    run_s(2);
    ck_assert(!old_pod_is_there());
    check_runs_and_rests();
}
END_TEST

START_TEST(program_that_nobody_hears_is_stopped_soon)
{
    begin_to_move((struct simulated_hook){ .status = 0 });
    run_s(6); /* the third connection, 3 s after the first */
    ck_assert(!old_pod_is_there());
    check_runs_and_rests();
}
END_TEST

/* A job holds all GPUs, and its program does not answer. */
START_TEST(urgent_job_waits_no_longer_than_the_limits_allow)
{
    const struct settings_limits *limits = &settings_default()->limits;
    put_classes();
    simulated_cluster_set_hook(
        simulation_cluster(simulation),
        (struct simulated_hook){ .status = 200, .delay_ms = INT64_MAX });
    put_ranked_job("low", 8, 14, "");
    set_spec("low", "spec", "checkpoint",
             quoted("{'onDisruption': {'method': 'HTTP', 'http': {'port': 8476}, "
                    "'timeoutSeconds': 86400}}"));
    run_s(60);
    check_condition("low", "Accepted", "False", "LimitExceeded");
    ck_assert(!runs("low"));
    set_spec("low", "spec.checkpoint.onDisruption", "timeoutSeconds",
             json_integer(limits->checkpoint_s));
    run_s(60);
    ck_assert(runs("low"));
    put_ranked_job("high", 8, 8, "high");
    run_s(limits->checkpoint_s + 60);
    ck_assert(runs("high"));
    check_quiet();
}
END_TEST

START_TEST(lost_gpu_leads_to_a_new_plan)
{
    run_job(8);
    do_event("gpus node/a-1 3");
    run_s(200);
    ck_assert(runs("j"));
    ck_assert_int_ge(generation_now("j"), 2);
    check_quiet();
}
END_TEST

static enum api_server_fault count_status(void *context,
                                          const struct api_server_call *call)
{
    uint64_t *statuses = context;
    if (call->write_ordinal && strstr(call->path, "/status?"))
        ++*statuses;
    return API_SERVER_NO_FAULT;
}

/* From the loss of one of two nodes until as many pods run again. */
START_TEST(replan_of_two_pods_takes_one_status_a_phase)
{
    /* Statuses: the node is lost; the pods stop; there is a plan; it is placed; it runs.
     * Beside them the old plan is retired, and marked as released the new one, which is
     * made; a pod is deleted, made and has its gate lifted; the Service; three events. */
    enum { STATUSES = 5, WRITES = STATUSES + 3 + 2 * 3 + 1 + 3 };
    run_job(8);
    uint64_t statuses = 0, writes = api_server_statistics(server).writes;
    api_server_set_faults(server, count_status, &statuses);
    do_event("delete node/a-0");
    run_s(60);
    api_server_set_faults(server, NULL, NULL);
    writes = api_server_statistics(server).writes - writes;
    ck_assert(runs("j"));
    ck_assert_int_eq(generation_now("j"), 2);
    hold(statuses <= STATUSES && writes <= WRITES,
         "%" PRIu64 " writes, %" PRIu64 " of them status", writes, statuses);
    check_quiet();
}
END_TEST

START_TEST(gpus_that_somebody_else_takes_are_counted)
{
    put(quoted(
        "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'other'}, 'spec':"
        " {'nodeName': 'a-0', 'containers': [{'name': 'c', 'image': 'i', "
        "'resources': {'limits': {'nvidia.com/gpu': '3'}}}]}}"));
    put_job("j", 14);
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_int_le(invariants_planned_on(invariants, find_plan("j", 1), "a-0"), 1);
    check_quiet();
}
END_TEST

/* What a tenant can write who may create pods: one that can never be placed, with a pin
 * to `node` and job `owner` as its controller. */
static void put_phantom(const char *name, const char *owner, const char *node)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', "
               "'ownerReferences': [{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': "
               "'HeteroTrainingJob', 'name': '%s', 'uid': '%s', 'controller': true}]}, "
               "'spec': {'affinity': {'nodeAffinity': "
               "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
               "[{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': "
               "['%s']}]}]}}}, 'containers': [{'name': 'c', 'image': 'i', 'resources': "
               "{'limits': {'nvidia.com/gpu': '1000', 'cpu': '100000'}}}]}}",
               name, owner, object_text(job(owner), "metadata.uid"), node));
}

START_TEST(pods_that_nobody_planned_hold_no_node)
{
    put_job("hog", 2);
    do_event("suspend job/hog");
    put_phantom("x-0", "hog", "a-0");
    put_phantom("x-1", "hog", "a-1");
    put_phantom("x-2", "hog", "v-0");
    put_phantom("x-3", "hog", "v-1");
    run_job(8);
    auto_free char *nodes = nodes_of("j");
    ck_assert_str_eq(nodes, "a-0 a-1 ");
    /* Nor do they make a job that runs leave its nodes. */
    put_phantom("y-0", "j", "a-0");
    put_phantom("y-1", "hog", "a-1");
    run_s(300);
    ck_assert_int_eq(generation_now("j"), 1);
    ck_assert(runs("j"));
    ck_assert_ptr_null(controller_find_overcommit(simulation_controller(simulation)));
}
END_TEST

START_TEST(job_waits_for_its_profile)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put_job("j", 8);
    run_s(30);
    check_condition("j", "Accepted", "False", "ProfileNotFound");
    put_profile();
    run_s(60);
    ck_assert(runs("j"));
}
END_TEST

/* Llama-3-8B in BF16, which V100 has no units for. */
START_TEST(model_without_a_profile_is_estimated)
{
    put(make_restricted(quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': 'j'}, 'spec': {'model': {'architecture': {'layers': 32, "
        "'hiddenSize': 4096, 'heads': 32, 'kvHeads': 8, 'ffnHiddenSize': 14336, "
        "'vocabSize': 128256, 'sequenceLength': 2048}}, 'training': {'globalBatchSize': "
        "32}, 'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
        "'train:1'}]}}}}")));
    run_s(60);
    ck_assert(runs("j"));
    ck_assert(json_is_true(object_at(job("j"), "status.plan.predicted.estimated")));
    check_rest();
}
END_TEST

/* ---- profiles that grow ---- */

/* A job whose profile "small" grows. */
static void put_growing_job(const char *name, int max_gpus)
{
    put_job(name, max_gpus);
    json_t *copy = json_deep_copy(job(name));
    object_set(copy, "spec.model.profilePolicy", json_string("OnDemand"));
    object_set(copy, "spec.model.architecture", profiler_architecture());
    put(copy);
}

static size_t entries(void)
{
    return json_array_size(object_at(
        api_server_find(server, "modelprofiles", "default", "small"), "spec.gpuTypes"));
}

static const char *message_of(const char *name, const char *type)
{
    return object_text(object_find_condition(job(name), type), "message");
}

START_TEST(new_gpu_type_is_measured_and_then_used)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put(make_profile("default", 2, 4)); /* slow: one of T4 is worth having */
    put_growing_job("j", 32);
    run_s(60);
    check_condition("j", "ProfilesReady", "True", "AllMeasured");
    ck_assert_int_eq(gpus_of("j"), 14);
    put_node("t-0", "Tesla-T4", 4);
    put_node("t-1", "Tesla-T4", 4);
    run_s(30);
    ck_assert(runs("j"));
    ck_assert_int_eq(gpus_of("j"), 14); /* planned without the type */
    check_condition("j", "ProfilesReady", "False", "Measuring");
    ck_assert_msg(strstr(message_of("j", "ProfilesReady"), "T4: Job measure-") != NULL,
                  "%s", message_of("j", "ProfilesReady"));
    run_s(60);
    check_condition("j", "ProfilesReady", "True", "AllMeasured");
    ck_assert_uint_eq(entries(), 3);
    run_s(600); /* the cool-down, and then */
    ck_assert(runs("j"));
    ck_assert_int_gt(gpus_of("j"), 14);
    ck_assert_uint_eq(api_server_count(server, "jobs"), 0);
    ck_assert_int_eq(profiler.runs, 1);
    check_quiet();
}
END_TEST

START_TEST(job_without_any_profile_waits_for_the_first_measurement)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put_growing_job("j", 8);
    run_s(30);
    check_condition("j", "Accepted", "True", "Valid");
    check_condition("j", "PlanFeasible", "Unknown", "Measuring");
    put_profile(); /* of somebody else, elsewhere: nobody waits for job j */
    api_server_drop(server, "modelprofiles", "default", "small");
    run_s(90);
    ck_assert(runs("j"));
    ck_assert_uint_eq(entries(), 2);
    check_condition("j", "ProfilesReady", "True", "AllMeasured");
    check_quiet();
}
END_TEST

START_TEST(two_jobs_share_a_measurement)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put_growing_job("j", 4);
    put_growing_job("k", 4);
    run_s(240);                         /* with the cool-down of the second type */
    ck_assert_int_eq(profiler.runs, 2); /* one for each type */
    ck_assert_uint_eq(entries(), 2);
    ck_assert(runs("j"));
    ck_assert(runs("k"));
    check_quiet();
}
END_TEST

START_TEST(measurement_that_fails_is_not_tried_without_end)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put(make_profile("default", 1, 1));
    profiler.failures = 1000;
    put_growing_job("j", 8);
    run_s(400);
    ck_assert(runs("j"));
    check_condition("j", "ProfilesReady", "False", "MeasurementFailed");
    ck_assert_msg(strstr(message_of("j", "ProfilesReady"), "out of luck") != NULL, "%s",
                  message_of("j", "ProfilesReady"));
    ck_assert_int_eq(profiler.runs, 1 + MEASUREMENT_RETRIES);
    check_quiet();
    ck_assert_int_eq(profiler.runs, 1 + MEASUREMENT_RETRIES);
    /* Whoever deletes the Job has it tried again. */
    profiler.failures = 0;
    auto_free char *name =
        xstrdup(object_text(api_server_at(server, "jobs", 0), "metadata.name"));
    api_server_delete(server, "jobs", "default", name, -1, NULL);
    run_s(120);
    check_condition("j", "ProfilesReady", "True", "AllMeasured");
    ck_assert_uint_eq(entries(), 2);
}
END_TEST

START_TEST(forged_result_changes_nothing)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put(make_profile("default", 1, 1));
    profiler.is_forged = true;
    put_growing_job("j", 8);
    run_s(120);
    ck_assert(runs("j"));
    check_condition("j", "ProfilesReady", "False", "MeasurementFailed");
    ck_assert_uint_eq(entries(), 1);
    check_quiet();
}
END_TEST

/* Somebody's ConfigMap with the name of a plan of job "j"; without a label of ours, so
 * that no watch shows it. */
static void take_plan_name(int generation)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
               "'j-plan-%d'}}",
               generation));
}

START_TEST(names_that_somebody_took_are_skipped)
{
    for (int i = 1; i <= 12; i++)
        take_plan_name(i);
    run_job(8);
    ck_assert_int_eq(generation_now("j"), 16); /* after 1, 2, 4 and 8 */
    ck_assert_uint_eq(api_server_statistics(server).refused, 4);
    /* So is that of a pod. */
    put(quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'j-17-0'}, "
               "'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}"));
    do_event("delete node/a-1");
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_int_eq(generation_now("j"), 18);
    check_quiet();
}
END_TEST

START_TEST(names_that_are_all_taken_are_told_and_may_come_free)
{
    for (int i = 1; i <= GENERATION_MOST_TAKEN; i *= 2)
        take_plan_name(i);
    put_job("j", 8);
    run_s(30);
    check_condition("j", "PlanFeasible", "False", "NamesTaken");
    ck_assert_uint_eq(api_server_statistics(server).refused, 11);
    for (int i = 1; i <= GENERATION_MOST_TAKEN; i *= 2) {
        auto_free char *name = xasprintf("j-plan-%d", i);
        api_server_drop(server, "configmaps", "default", name);
    }
    run_ms(GENERATION_TAKEN_MS);
    ck_assert(runs("j"));
    ck_assert_int_eq(generation_now("j"), 1);
    check_quiet();
}
END_TEST

START_TEST(suspended_job_has_nothing_measured)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put_growing_job("j", 8);
    run_s(20);
    ck_assert_uint_eq(api_server_count(server, "jobs"), 2);
    do_event("suspend job/j");
    run_s(30);
    ck_assert_uint_eq(api_server_count(server, "jobs"), 0);
    check_quiet();
    do_event("resume job/j");
    run_s(120);
    ck_assert(runs("j"));
    ck_assert_uint_eq(entries(), 2);
}
END_TEST

START_TEST(controller_that_dies_leaves_a_measurement_to_the_next)
{
    api_server_drop(server, "modelprofiles", "default", "small");
    put_growing_job("j", 8);
    run_s(20);
    simulation_restart_controller(simulation);
    run_s(60);
    simulation_restart_controller(simulation);
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_int_eq(profiler.runs, 2);
    check_quiet();
}
END_TEST

START_TEST(job_made_again_under_its_name_is_another)
{
    run_job(8);
    auto_free char *uid = xstrdup(object_text(job("j"), "metadata.uid"));
    do_event("delete job/j");
    put_job("j", 4);
    run_s(120);
    ck_assert(runs("j"));
    ck_assert_str_ne(object_text(job("j"), "metadata.uid"), uid);
    check_quiet();
}
END_TEST

/* ---- the life of a job ---- */

static void label_namespace(const char *level)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': "
               "'default', 'labels': {'pod-security.kubernetes.io/enforce': '%s'}}}",
               level));
}

/* Its pods would be refused; when the namespace allows more, it goes on by itself, and what
 * runs is not stopped by a stricter level. */
START_TEST(job_is_held_to_what_its_namespace_says)
{
    put_job("j", 8);
    json_t *root = json_deep_copy(job("j"));
    json_object_del(object_at(root, "metadata"), "uid");
    json_object_set_new(object_at(root, "metadata"), "name", json_string("root"));
    json_object_del(
        json_array_get(object_at(root, "spec.podTemplate.spec.containers"), 0),
        "securityContext");
    json_object_del(root, "status");
    api_server_drop(server, "heterotrainingjobs", "default", "j");
    label_namespace("baseline");
    put(root);
    run_s(60);
    ck_assert(runs("root"));
    label_namespace("restricted");
    run_s(60);
    check_condition("root", "Accepted", "False", "PodSecurity");
    ck_assert(runs("root"));
    do_event("suspend job/root");
    run_s(60);
    do_event("resume job/root");
    run_s(60);
    ck_assert(!runs("root"));
    check_condition("root", "Accepted", "False", "PodSecurity");
    label_namespace("privileged");
    run_s(60);
    check_condition("root", "Accepted", "True", "Valid");
    ck_assert(runs("root"));
    check_quiet();
}
END_TEST

START_TEST(suspended_job_leaves_its_gpus_to_others_and_comes_back)
{
    run_job(8);
    put_job("waits", 8);
    run_s(60);
    auto_free char *before = nodes_of("waits");
    ck_assert_str_eq(before, "v-0 v-1 ");
    do_event("suspend job/j");
    run_s(300);
    check_condition("j", "Suspended", "True", "JobSuspended");
    auto_free char *sleeping = nodes_of("j");
    ck_assert_str_eq(sleeping, "");
    auto_free char *moved = nodes_of("waits");
    ck_assert_str_eq(moved, "a-0 a-1 "); /* twice as fast there */
    check_quiet();
    do_event("resume job/j");
    run_s(60);
    ck_assert(runs("j"));
    check_condition("j", "Suspended", "False", "JobResumed");
    ck_assert_str_eq(object_text(job("j"), "status.plan.trigger"), "Resumed");
    ck_assert_int_eq(restarts_of("j"), 0);
    check_quiet();
}
END_TEST

START_TEST(job_that_is_suspended_when_it_is_made_waits_for_its_resume)
{
    put_job("j", 8);
    do_event("suspend job/j"); /* before anybody has seen it */
    run_s(60);
    ck_assert_uint_eq(api_server_count(server, "configmaps"), 0);
    check_condition("j", "PlanFeasible", "Unknown", "JobSuspended");
    check_quiet();
    do_event("resume job/j");
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_str_eq(object_text(job("j"), "status.plan.trigger"), "JobCreated");
}
END_TEST

START_TEST(suspended_job_gives_up_pods_of_a_node_that_dies)
{
    run_job(8);
    do_event("notready node/a-0");
    do_event("suspend job/j");
    run_s(600);
    check_condition("j", "Suspended", "True", "JobSuspended");
    ck_assert_uint_eq(api_server_count(server, "pods"), 0);
    check_quiet();
}
END_TEST

START_TEST(evictions_and_final_exit_codes_go_by_their_rules)
{
    put_job("j", 8);
    do_event("patch job/j {\"spec\": {\"failurePolicy\": {\"maxRestarts\": 0, "
             "\"rules\": [{\"action\": \"FailJob\", \"onExitCodes\": "
             "{\"operator\": \"In\", \"values\": [7]}}]}}}");
    run_s(30);
    do_event("evict pod/j-1-1");
    run_s(120);
    ck_assert(runs("j"));
    ck_assert_int_eq(restarts_of("j"), 0);
    ck_assert_int_eq(generation_now("j"), 2);
    do_event("fail pod/j-2-1 7");
    run_s(60);
    check_condition("j", "Failed", "True", "PodFailurePolicy");
    check_quiet();
}
END_TEST

START_TEST(healthy_time_makes_restarts_forgotten)
{
    put_job("j", 8);
    do_event("patch job/j {\"spec\": {\"failurePolicy\": {\"maxRestarts\": 1, "
             "\"resetAfterSeconds\": 1000}}}");
    run_s(30);
    for (int generation = 1; generation <= 3; generation++) {
        run_s(1000);
        auto_free char *event = xasprintf("fail pod/j-%d-0 3", generation);
        do_event(event);
        run_s(120);
        ck_assert(runs("j"));
        ck_assert_int_eq(restarts_of("j"), 1);
    }
    do_event("fail pod/j-4-0 3");
    run_s(60);
    check_condition("j", "Failed", "True", "RestartLimitReached");
}
END_TEST

START_TEST(deadline_and_time_to_live_end_a_job_to_the_second)
{
    put_job("j", 8);
    do_event("patch job/j {\"spec\": {\"activeDeadlineSeconds\": 300, "
             "\"ttlSecondsAfterFinished\": 100}}");
    run_s(30);
    int64_t started_ms, ended_ms;
    ck_assert_int_eq(
        timestamp_parse(object_text(job("j"), "status.startTime"), &started_ms), 0);
    run_s(300);
    check_condition("j", "Failed", "True", "DeadlineExceeded");
    ck_assert_int_eq(
        timestamp_parse(object_text(job("j"), "status.completionTime"), &ended_ms), 0);
    ck_assert_int_eq(ended_ms - started_ms, 300000);
    run_s((ended_ms - started_ms) / 1000 + 100 - 330 - 1);
    ck_assert_ptr_nonnull(job("j"));
    run_s(5);
    ck_assert_ptr_null(job("j"));
    run_s(60);
    ck_assert_uint_eq(api_server_count(server, "configmaps"),
                      0); /* the garbage collector */
    ck_assert_uint_eq(api_server_count(server, "pods"), 0);
    check_quiet();
}
END_TEST

START_TEST(rank_zero_ends_the_job_where_its_policy_says_so)
{
    put_job("j", 8);
    do_event(
        "patch job/j {\"spec\": {\"successPolicy\": {\"completeWhen\": \"RankZero\"}}}");
    run_s(30);
    do_event("fail pod/j-1-0 0");
    run_s(60);
    check_condition("j", "Complete", "True", "RankZeroSucceeded");
    check_pods_have_ended();
    check_quiet();
}
END_TEST

START_TEST(rank_that_succeeded_is_not_lost_with_its_node)
{
    run_job(8);
    do_event("fail pod/j-1-1 0");
    run_s(10);
    do_event("delete node/a-1");
    do_event("delete pod/j-1-1");
    run_s(300);
    ck_assert_int_eq(generation_now("j"), 1);
    ck_assert_str_eq(object_text(job("j"), "status.pods.succeededIndexes"), "1");
    do_event("fail pod/j-1-0 0");
    run_s(30);
    check_condition("j", "Complete", "True", "AllPodsSucceeded");
    check_quiet();
}
END_TEST

START_TEST(change_of_the_pods_replaces_them_under_the_same_plan)
{
    run_job(8);
    auto_free char *hash = xstrdup(object_text(job("j"), "status.plan.hash"));
    do_event("patch job/j {\"spec\": {\"runtime\": {\"masterPort\": 29501}}}");
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_int_eq(generation_now("j"), 2);
    ck_assert_str_eq(object_text(job("j"), "status.plan.hash"), hash);
    ck_assert_str_eq(object_text(job("j"), "status.plan.trigger"), "PodsChanged");
    check_quiet();
}
END_TEST

START_TEST(scale_is_followed_down_and_up)
{
    run_job(8);
    ck_assert_int_eq(gpus_of("j"), 8);
    do_event("patch job/j {\"spec\": {\"resources\": {\"maxGPUs\": 4}}}");
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_int_eq(gpus_of("j"), 4);
    do_event("patch job/j {\"spec\": {\"resources\": {\"maxGPUs\": 8}}}");
    run_s(300);
    ck_assert(runs("j"));
    ck_assert_int_eq(gpus_of("j"), 8);
    check_quiet();
}
END_TEST

START_TEST(job_of_another_manager_is_left_alone)
{
    put_job("j", 8);
    /* The schema forbids the change; here it stands for a job that was made so. */
    do_event("patch job/j {\"spec\": {\"managedBy\": \"example.com/other\", "
             "\"ttlSecondsAfterFinished\": 0}}");
    uint64_t writes = api_server_statistics(server).writes;
    run_s(60);
    ck_assert_uint_eq(api_server_statistics(server).writes, writes);
    ck_assert_ptr_null(json_object_get(job("j"), "status"));
}
END_TEST

START_TEST(work_for_a_plan_is_bounded)
{
    put_job("j", 14);
    run_s(60);
    ck_assert(runs("j"));
    /* I8: at most 4 writes a rank and 20 more. */
    int64_t ranks = gpus_of("j");
    ck_assert_int_le((int64_t)api_server_statistics(server).writes, 4 * ranks + 20);
    ck_assert_uint_eq(api_server_statistics(server).refused, 0);
}
END_TEST

/* What it takes to start a job, among as many. */
START_TEST(jobs_that_start_together_cost_each_as_much_as_one_alone)
{
    /* Seven that make objects and events; the status says that the job waits, that it is
     * placed, that it runs. */
    enum { JOBS = 24, DECISIONS = 14, WRITES = 10 };
    for (int i = 0; i < JOBS; i++) {
        auto_free char *node = xasprintf("m-%02d", i);
        put_node(node, "NVIDIA-A100-SXM4-40GB", 2);
    }
    run_s(1);
    struct controller_statistics before =
        controller_statistics(simulation_controller(simulation));
    uint64_t writes = api_server_statistics(server).writes;
    for (int i = 0; i < JOBS; i++) {
        auto_free char *name = xasprintf("many-%02d", i);
        put_job(name, 2);
    }
    run_s(40); /* and none has cooled down */
    struct controller_statistics after =
        controller_statistics(simulation_controller(simulation));
    for (int i = 0; i < JOBS; i++) {
        auto_free char *name = xasprintf("many-%02d", i);
        ck_assert(runs(name));
    }
    writes = api_server_statistics(server).writes - writes;
    hold(writes <= WRITES * JOBS, "%d jobs took %" PRIu64 " writes", JOBS, writes);
    hold(after.passes - before.passes <= DECISIONS * JOBS,
         "%d jobs took %" PRIu64 " decisions", JOBS, after.passes - before.passes);
    hold(after.plans - before.plans <= JOBS + JOBS / 2, "and %" PRIu64 " questions",
         after.plans - before.plans);
}
END_TEST

/* Rubbish first, then what the planner's library says. */
static void plan_late(void *context, const json_t *question, int64_t timeout_ms,
                      struct planner_child_reply *ret)
{
    struct inside_planner *planner = context;
    if (planner->questions++ < 2) {
        ret->outcome = PLANNER_CHILD_PLAN;
        ret->output = planner->questions == 1 ? "{\"pipe" : "{\"kind\": \"Plan\"}";
        return;
    }
    inside_planner_answer(planner, question, timeout_ms, ret);
}

START_TEST(planner_that_says_rubbish_is_asked_again)
{
    struct inside_planner planner = { .dice = dice_of(1, 1) };
    struct simulation_config config = { .inside = plan_late,
                                        .inside_context = &planner,
                                        .seed = 1,
                                        .cluster = simulated_cluster_defaults };
    teardown();
    begin_with(&config);
    put_node("a-0", "A100-SXM4-40GB", 4);
    put_profile();
    put_job("j", 4);
    run_s(1);
    check_condition("j", "PlanFeasible", "False", "PlannerFailed");
    run_s(60);
    ck_assert(runs("j"));
    inside_planner_fini(&planner);
}
END_TEST

/* ---- each write, one by one ---- */

struct one_fault {
    uint64_t at; /* which write */
    enum api_server_fault fault;
    bool dies; /* the controller, too */
    bool has_struck, has_died;
};

static enum api_server_fault strike(void *context, const struct api_server_call *call)
{
    struct one_fault *one = context;
    if (call->write_ordinal != one->at)
        return API_SERVER_NO_FAULT;
    one->has_struck = true;
    return one->fault;
}

static void die_once(void *context, struct simulation *at)
{
    struct one_fault *one = context;
    if (!one->dies || !one->has_struck || one->has_died)
        return;
    one->has_died = true;
    simulation_restart_controller(at);
}

/* A job from its creation over the loss of a node to its end; returns the number of
 * writes. */
static uint64_t live_through(struct one_fault *one)
{
    begin(one->at, false, 1);
    api_server_set_faults(server, strike, one);
    simulation_before_round(simulation, die_once, one);
    put_job("j", 8);
    run_s(120);
    hold(runs("j"), "write %llu, fault %d: the job does not run",
         (unsigned long long)one->at, one->fault);
    do_event("delete node/a-1");
    run_s(200);
    hold(runs("j"), "write %llu, fault %d: the job does not run again",
         (unsigned long long)one->at, one->fault);
    auto_free char *nodes = nodes_of("j");
    hold(!strstr(nodes, "a-1"), "%s", nodes);
    check_rest();
    do_event("delete job/j");
    run_s(120);
    check_rest();
    uint64_t writes = api_server_statistics(server).writes;
    teardown();
    return writes;
}

/* A job from a pause over a change of its pods to the end of its time to live. */
static uint64_t live_with_pauses(struct one_fault *one)
{
    begin(one->at, false, 1);
    api_server_set_faults(server, strike, one);
    simulation_before_round(simulation, die_once, one);
    put_job("j", 8);
    run_s(60);
    do_event("suspend job/j");
    run_s(120);
    hold(!api_server_count(server, "pods") && is_true("j", "Suspended"),
         "write %llu, fault %d: the job does not sleep", (unsigned long long)one->at,
         one->fault);
    do_event("resume job/j");
    run_s(60);
    do_event("patch job/j {\"spec\": {\"runtime\": {\"masterPort\": 29501}, "
             "\"ttlSecondsAfterFinished\": 10}}");
    run_s(120);
    hold(runs("j") && restarts_of("j") == 0,
         "write %llu, fault %d: the job does not run again", (unsigned long long)one->at,
         one->fault);
    check_rest();
    do_event("succeed job/j");
    run_s(120);
    hold(!job("j"), "write %llu, fault %d: the job is kept", (unsigned long long)one->at,
         one->fault);
    check_rest();
    uint64_t writes = api_server_statistics(server).writes;
    teardown();
    return writes;
}

/* Each write; in a quick run every so many-th, others for each fault. */
static void strike_each_write(enum api_server_fault fault, bool dies)
{
    uint64_t (*const lives[])(struct one_fault *) = { live_through, live_with_pauses };
    uint64_t step = one_round_of(18, 9);
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        struct one_fault none = { 0 };
        uint64_t writes = lives[i](&none);
        for (uint64_t at = 1 + fault % step; at <= writes; at += step) {
            struct one_fault one = { .at = at, .fault = fault, .dies = dies };
            lives[i](&one);
        }
    }
}

START_TEST(controller_dies_before_a_write)
{
    strike_each_write(API_SERVER_LOSE_REQUEST, true);
}
END_TEST

START_TEST(controller_dies_after_a_write)
{
    strike_each_write(API_SERVER_LOSE_REPLY, true);
}
END_TEST

START_TEST(reply_to_a_write_is_lost)
{
    strike_each_write(API_SERVER_LOSE_REPLY, false);
}
END_TEST

START_TEST(write_is_not_answered)
{
    strike_each_write(API_SERVER_HANG, false);
}
END_TEST

START_TEST(write_meets_a_conflict)
{
    strike_each_write(API_SERVER_ANSWER_409, false);
}
END_TEST

START_TEST(server_fails_at_a_write)
{
    strike_each_write(API_SERVER_ANSWER_500, false);
}
END_TEST

START_TEST(server_is_too_busy_for_a_write)
{
    strike_each_write(API_SERVER_ANSWER_429, false);
}
END_TEST

/* ---- two replicas ---- */

/* The leader is stopped when the write `at`, the lease's not counted, has been sent. */
struct freeze {
    uint64_t at, writes;
    size_t frozen; /* SIMULATION_MAX_REPLICAS: nobody yet */
    int64_t at_ms;
};

static enum api_server_fault count_write(void *context,
                                         const struct api_server_call *call)
{
    struct freeze *freeze = context;
    freeze->writes += call->write_ordinal && !strstr(call->path, "/leases");
    return API_SERVER_NO_FAULT;
}

static void freeze_once(void *context, struct simulation *at)
{
    struct freeze *freeze = context;
    if (freeze->frozen < SIMULATION_MAX_REPLICAS || !freeze->at ||
        freeze->writes < freeze->at)
        return;
    freeze->frozen = simulation_leader(at);
    freeze->at_ms = simulation_now_ms(at);
    simulation_freeze(at, freeze->frozen);
}

/* It goes on after 20 s or more, with the answers that came meanwhile; the other one
 * stands still for that moment, so that what is written is its. */
static void thaw(struct freeze *freeze)
{
    int64_t left_ms = freeze->at_ms + 20000 - simulation_now_ms(simulation);
    if (left_ms > 0)
        run_s((left_ms + 999) / 1000);
    size_t other = 1 - freeze->frozen;
    hold(simulation_leader(simulation) == other, "write %llu: nobody took over",
         (unsigned long long)freeze->at);
    uint64_t writes = freeze->writes;
    simulation_freeze(simulation, other);
    simulation_thaw(simulation, freeze->frozen);
    run_s(0);
    hold(freeze->writes == writes, "write %llu: %llu writes of who lost the lease",
         (unsigned long long)freeze->at, (unsigned long long)(freeze->writes - writes));
    hold(simulation_losses(simulation) == 1, "write %llu: it goes on",
         (unsigned long long)freeze->at);
    simulation_thaw(simulation, other);
}

/* As live_through, with two replicas; returns the number of writes. */
static uint64_t live_through_freeze(struct freeze *freeze)
{
    freeze->frozen = SIMULATION_MAX_REPLICAS;
    begin(freeze->at, false, 2);
    api_server_set_faults(server, count_write, freeze);
    simulation_before_round(simulation, freeze_once, freeze);
    put_job("j", 8);
    run_s(60);
    do_event("delete node/a-1");
    run_s(60);
    if (freeze->at)
        thaw(freeze);
    run_s(200);
    hold(runs("j"), "write %llu: the job does not run", (unsigned long long)freeze->at);
    check_rest();
    uint64_t writes = freeze->writes;
    run_s(120);
    hold(freeze->writes == writes, "write %llu: not quiet",
         (unsigned long long)freeze->at);
    teardown();
    return writes;
}

START_TEST(stopped_leader_writes_nothing_when_it_goes_on)
{
    struct freeze none = { 0 };
    uint64_t writes = live_through_freeze(&none);
    ck_assert_uint_ge(writes, 10);
    uint64_t step = one_round_of(18, 9);
    for (uint64_t at = 1; at <= writes; at += step) {
        struct freeze freeze = { .at = at };
        live_through_freeze(&freeze);
    }
}
END_TEST

START_TEST(replica_takes_over_when_the_leader_dies)
{
    struct freeze none = { 0 };
    begin(1, false, 2);
    api_server_set_faults(server, count_write, &none);
    run_job(8);
    size_t leader = simulation_leader(simulation);
    ck_assert_uint_lt(leader, 2);
    simulation_freeze(simulation, leader); /* for ever */
    uint64_t writes = none.writes;
    do_event("delete node/a-1");
    run_s(10);
    ck_assert_uint_eq(none.writes, writes); /* the lease may still be held */
    run_s(110);
    ck_assert_uint_eq(simulation_leader(simulation), 1 - leader);
    ck_assert(runs("j"));
    auto_free char *nodes = nodes_of("j");
    ck_assert_ptr_null(strstr(nodes, "a-1"));
    const json_t *map = find_plan("j", 2);
    auto_free char *by = xasprintf("replica-%zu_1/1", 1 - leader);
    ck_assert_str_eq(kube_annotation(map, ANNOTATION_LEADER), by);
    check_rest();
    teardown();
}
END_TEST

START_TEST(time_passes_while_all_replicas_stand_still)
{
    begin(1, false, 2);
    put_job("j", 8);
    while (!find_plan("j", 1)) /* its pods are not there yet */
        run_ms(10);
    simulation_freeze(simulation, 0);
    simulation_freeze(simulation, 1);
    run_s(1);
    size_t pods = api_server_count(server, "pods");
    run_s(400); /* bookmarks are due, requests end */
    ck_assert_uint_eq(api_server_count(server, "pods"), pods);
    ck_assert_uint_eq(simulation_losses(simulation), 0);
    simulation_thaw(simulation, 0);
    simulation_thaw(simulation, 1);
    run_s(60);
    ck_assert(runs("j"));
    check_rest();
    teardown();
}
END_TEST

/* The plan and the pods of a job are written while nobody hears of them. */
START_TEST(replica_that_takes_over_knows_what_its_watches_do_not)
{
    struct freeze none = { 0 };
    begin(1, false, 2);
    api_server_set_faults(server, count_write, &none);
    run_s(5);
    api_server_hold_watches(server, "configmaps", true);
    api_server_hold_watches(server, "pods", true);
    put_job("j", 8);
    run_s(30);
    ck_assert_ptr_nonnull(find_plan("j", 1));
    size_t leader = simulation_leader(simulation);
    uint64_t refused = api_server_statistics(server).refused;
    simulation_freeze(simulation, leader); /* for ever */
    run_s(40);
    ck_assert_uint_eq(simulation_leader(simulation), 1 - leader);
    ck_assert(runs("j")); /* it has seen the pods, too */
    ck_assert_ptr_null(find_plan("j", 2));
    ck_assert_uint_eq(api_server_statistics(server).refused, refused);
    api_server_hold_watches(server, "configmaps", false);
    api_server_hold_watches(server, "pods", false);
    run_s(30);
    check_rest();
    teardown();
}
END_TEST

/* ---- what the controller does not hear of ---- */

/* POSTs of kind `plural`, PATCHes of pods, and all writes but those of leases and events.
 */
struct tally {
    const char *plural;
    uint64_t posts, patches, writes;
};

static enum api_server_fault tally_write(void *context,
                                         const struct api_server_call *call)
{
    struct tally *tally = context;
    bool is_told = strstr(call->path, "/events") || strstr(call->path, "/leases");
    tally->writes += call->write_ordinal && !is_told;
    tally->patches += !strcmp(call->method, "PATCH") && strstr(call->path, "/pods/");
    tally->posts += !strcmp(call->method, "POST") && strstr(call->path, tally->plural);
    return API_SERVER_NO_FAULT;
}

static void begin_late(struct tally *tally)
{
    is_late = true;
    begin(1, false, 1);
    is_late = false;
    api_server_set_faults(server, tally_write, tally);
}

static void run_two_jobs(void)
{
    put_job("j", 4);
    put_job("k", 4);
    run_s(60);
    ck_assert(runs("j"));
    ck_assert(runs("k"));
}

/* The stream of jobs stays open and says nothing while one of them is deleted. */
START_TEST(job_that_was_deleted_behind_a_stalled_watch_gets_no_plans)
{
    struct tally tally = { .plural = "/configmaps" };
    begin_late(&tally);
    run_two_jobs();
    uint64_t posts = tally.posts, writes = tally.writes;
    auto_free char *nodes = nodes_of("k");
    api_server_hold_watches(server, "heterotrainingjobs", true);
    do_event("delete job/j");
    run_s(30);
    hold(tally.posts <= posts + 1, "%d plans for a job that is gone",
         (int)(tally.posts - posts));
    hold(tally.writes <= writes + 12, "%d writes for a job that is gone",
         (int)(tally.writes - writes));
    ck_assert_int_eq(generation_now("k"), 1);
    auto_free char *nodes_now = nodes_of("k");
    ck_assert_str_eq(nodes_now, nodes);
    api_server_hold_watches(server, "heterotrainingjobs", false);
    run_s(60);
    ck_assert_uint_eq(api_server_count(server, "configmaps"), 1);
    check_rest();
    teardown();
}
END_TEST

/* The same, and another job has its name when the controller looks. */
START_TEST(job_made_again_behind_a_stalled_watch_is_found)
{
    struct tally tally = { .plural = "/configmaps" };
    begin_late(&tally);
    run_two_jobs();
    uint64_t writes = tally.writes;
    api_server_hold_watches(server, "heterotrainingjobs", true);
    do_event("delete job/j");
    put_job("j", 4);
    run_s(60);
    ck_assert(runs("j"));
    hold(tally.writes <= writes + 40, "%d writes", (int)(tally.writes - writes));
    api_server_hold_watches(server, "heterotrainingjobs", false);
    run_s(60);
    check_rest();
    teardown();
}
END_TEST

/* Which lists lie, and how. */
struct liar {
    struct tally tally;
    const char *plural;
    bool lies, expires;
};

static enum api_server_fault lie_of(void *context, const struct api_server_call *call)
{
    struct liar *liar = context;
    tally_write(&liar->tally, call);
    bool is_list = !strcmp(call->method, "GET") && strstr(call->path, liar->plural) &&
                   strstr(call->path, "resourceVersion=");
    if (liar->expires && !strcmp(call->method, "WATCH") &&
        strstr(call->path, liar->plural))
        return API_SERVER_ANSWER_410;
    return liar->lies && is_list ? API_SERVER_PARTIAL_LIST : API_SERVER_NO_FAULT;
}

/* Heartbeats of all nodes but one. */
static void renew_leases(const char *but)
{
    for (size_t i = 0; i < api_server_count(server, "nodes"); i++) {
        const char *name = kube_name(api_server_at(server, "nodes", i));
        char time[TIMESTAMP_SIZE];
        timestamp_format(api_server_now_ms(server), time);
        if (strcmp(name, but) != 0)
            put(quoted("{'apiVersion': 'coordination.k8s.io/v1', 'kind': 'Lease', "
                       "'metadata': {'name': '%s', 'namespace': '%s'}, 'spec': "
                       "{'renewTime': '%s'}}",
                       name, NODE_LEASES, time));
    }
}

/* A machine hangs; 15 s later its peers give up, and it still counts as ready. */
START_TEST(peers_of_a_node_that_hangs_start_again_without_it_and_uncounted)
{
    begin(1, false, 1);
    run_job(8);
    auto_free char *before = nodes_of("j");
    ck_assert_ptr_nonnull(strstr(before, "a-1"));
    renew_leases("");
    for (int i = 0; i < 3; i++) {
        run_s(5);
        renew_leases("a-1");
    }
    do_event("fail pod/j-1-0 1");
    for (int i = 0; i < 16; i++) {
        run_s(5);
        renew_leases("a-1");
    }
    ck_assert(runs("j"));
    auto_free char *after = nodes_of("j");
    ck_assert_msg(!strstr(after, "a-1"), "it runs on %s", after);
    ck_assert_int_eq(restarts_of("j"), 0);
    teardown();
}
END_TEST

/* A server is upgraded, which ends its watches. */
START_TEST(server_that_is_upgraded_is_asked_again_what_it_can_do)
{
    struct tally tally = { .plural = "/pods" };
    begin(1, false, 1);
    api_server_set_faults(server, tally_write, &tally);
    api_server_set_minor(server, 26);
    put_job("j", 4);
    run_s(30);
    ck_assert(runs("j"));
    ck_assert_uint_eq(tally.patches, 0);
    api_server_set_minor(server, 34);
    run_s(11 * 60); /* watches end by themselves */
    put_job("k", 4);
    run_s(30);
    ck_assert(runs("k"));
    ck_assert_uint_gt(tally.patches, 0); /* gates that were lifted */
    teardown();
}
END_TEST

/* Deeper than anything is read. */
static json_t *deep(int levels)
{
    json_t *value = json_object();
    for (int i = 0; i < levels; i++)
        value = json_pack("{s:o}", "x", value);
    return value;
}

/* As `name` is, or "j", but deeper. */
static void put_deep_job(const char *name)
{
    const json_t *held = job(name);
    json_t *nested = json_deep_copy(held ? held : job("j"));
    object_set(nested, "metadata.name", json_string(name));
    if (!held) {
        object_remove(nested, "metadata.uid");
        object_remove(nested, "metadata.resourceVersion");
        object_remove(nested, "status");
    }
    object_set(nested, "spec.podTemplate.spec.x", deep(600));
    put(nested);
}

static void make_flat(const char *name)
{
    json_t *flat = json_deep_copy(job(name));
    object_remove(flat, "spec.podTemplate.spec.x");
    put(flat);
}

START_TEST(job_that_is_nested_too_deep_is_told_so_and_others_go_on)
{
    begin(1, false, 1);
    put_job("j", 4);
    put_deep_job("deep");
    run_s(60);
    ck_assert(runs("j"));
    check_condition("deep", "Accepted", "False", "Unreadable");
    const char *told = "";
    for (size_t i = 0; i < api_server_count(server, "events"); i++) {
        const json_t *event = api_server_at(server, "events", i);
        if (!strcmp(object_text(event, "regarding.name"), "deep"))
            told = object_text(event, "note");
    }
    ck_assert_msg(strstr(told, "512") != NULL, "told: %s", told);
    teardown();
}
END_TEST

START_TEST(job_that_can_be_read_again_goes_on_and_says_so)
{
    struct tally tally = { .plural = "/heterotrainingjobs" };
    begin(1, false, 1);
    api_server_set_faults(server, tally_write, &tally);
    put_job("j", 4);
    run_s(60);
    put_deep_job("deep");
    uint64_t writes = tally.writes;
    run_s(300);
    check_condition("deep", "Accepted", "False", "Unreadable");
    ck_assert_uint_le(tally.writes, writes + 2); /* its condition, and an event */
    make_flat("deep");
    run_s(60);
    check_condition("deep", "Accepted", "True", "Valid");
    ck_assert(runs("deep"));
    check_rest();
    teardown();
}
END_TEST

/* Nothing is decided about it any more, and still it does not call itself unreadable. */
START_TEST(job_that_is_over_and_can_be_read_again_says_so)
{
    begin(1, false, 1);
    run_job(4);
    do_event("succeed job/j");
    run_s(60);
    put_deep_job("j");
    run_s(60);
    check_condition("j", "Accepted", "False", "Unreadable");
    make_flat("j");
    run_s(60);
    check_condition("j", "Accepted", "True", "Valid");
    check_condition("j", "Complete", "True", "AllPodsSucceeded");
    check_rest();
    teardown();
}
END_TEST

START_TEST(next_leader_does_not_tell_of_an_unreadable_job_again)
{
    begin(1, false, 2);
    put_job("j", 4);
    run_s(60);
    put_deep_job("deep");
    run_s(60);
    check_condition("deep", "Accepted", "False", "Unreadable");
    auto_free char *version = xstrdup(kube_resource_version(job("deep")));
    simulation_freeze(simulation, simulation_leader(simulation)); /* for ever */
    run_s(120);
    ck_assert_str_eq(kube_resource_version(job("deep")), version);
    teardown();
}
END_TEST

static const char *refused_since(void)
{
    return object_text(object_find_condition(job("deep"), "Accepted"),
                       "lastTransitionTime");
}

START_TEST(refused_job_that_becomes_unreadable_is_refused_as_long)
{
    begin(1, false, 1);
    put_job("j", 4);
    put_job("deep", 4);
    json_t *refused = json_deep_copy(job("deep"));
    object_set(refused, "spec.model.profileRef.name", json_string("none"));
    put(refused);
    run_s(60);
    check_condition("deep", "Accepted", "False", "ProfileNotFound");
    auto_free char *since = xstrdup(refused_since());
    put_deep_job("deep");
    run_s(60);
    check_condition("deep", "Accepted", "False", "Unreadable");
    ck_assert_str_eq(refused_since(), since);
    teardown();
}
END_TEST

/* Else they would count for ever, and others not be told. */
START_TEST(unreadable_jobs_that_went_unseen_are_forgotten)
{
    begin(1, false, 1);
    put_job("j", 4);
    run_s(60);
    for (int i = 0; i < UNREADABLE_JOBS; i++) {
        auto_free char *name = xasprintf("deep-%d", i);
        put_deep_job(name);
    }
    run_s(90);
    check_condition("deep-0", "Accepted", "False", "Unreadable");
    api_server_hold_watches(server, "heterotrainingjobs", true);
    for (int i = 0; i < UNREADABLE_JOBS; i++) {
        auto_free char *event = xasprintf("delete job/deep-%d", i);
        do_event(event);
    }
    run_s(1);
    api_server_compact(server);
    api_server_hold_watches(server, "heterotrainingjobs", false);
    run_s(60);
    put_deep_job("deep");
    run_s(60);
    check_condition("deep", "Accepted", "False", "Unreadable");
    teardown();
}
END_TEST

/* A name that somebody else has keeps a plan from being kept whole, and nothing more. */
START_TEST(job_whose_candidate_cannot_be_written_goes_on)
{
    begin(1, false, 1);
    put(quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
               "'j-candidate', 'namespace': 'default'}}"));
    put_job("j", 4);
    json_t *changed = json_deep_copy(job("j"));
    object_set(changed, "spec.planOnly", json_true());
    put(changed);
    run_s(60);
    check_condition("j", "PlanFeasible", "True", "PlanOnly");
    ck_assert_ptr_nonnull(object_at(job("j"), "status.candidate"));
    changed = json_deep_copy(job("j"));
    object_set(changed, "spec.planOnly", json_false());
    put(changed);
    run_s(60);
    ck_assert(runs("j"));
    ck_assert_ptr_null(object_at(job("j"), "status.candidate"));
    check_rest();
    teardown();
}
END_TEST

/* What a replica was shown before it led is told of all the same. */
START_TEST(job_that_no_leader_has_seen_is_told_of_by_the_next)
{
    struct freeze none = { 0 };
    begin(1, false, 2);
    api_server_set_faults(server, count_write, &none);
    run_job(4);
    simulation_freeze(simulation, simulation_leader(simulation)); /* for ever */
    put_deep_job("deep");
    run_s(120);
    check_condition("deep", "Accepted", "False", "Unreadable");
    teardown();
}
END_TEST

/* After 410, a list lacks every other pod, and says that it is the newest there is. */
START_TEST(half_a_list_after_410_costs_a_few_writes)
{
    struct liar liar = { .tally = { .plural = "/pods" }, .plural = "/pods?" };
    begin_late(&liar.tally);
    api_server_set_faults(server, lie_of, &liar);
    put_job("j", 14);
    run_s(60);
    ck_assert(runs("j"));
    hold(api_server_count(server, "pods") >= 2, "the job has one pod");
    auto_free char *nodes = nodes_of("j");
    uint64_t posts = liar.tally.posts, writes = liar.tally.writes;
    liar.lies = liar.expires = true;
    json_t *told = json_deep_copy(api_server_find(server, "pods", "default", "j-1-0"));
    object_set(told, "metadata.annotations.x", json_string("y"));
    put(told); /* something to be told of */
    run_s(1);
    liar.expires = false;
    run_s(75);
    hold(liar.tally.posts <= posts + 4, "%d pods are made",
         (int)(liar.tally.posts - posts));
    hold(liar.tally.writes <= writes + 10, "%d writes",
         (int)(liar.tally.writes - writes));
    liar.lies = false;
    run_s(60);
    auto_free char *nodes_now = nodes_of("j");
    ck_assert_str_eq(nodes_now, nodes);
    teardown();
}
END_TEST

Suite *test_simulation_suite(void)
{
    Suite *suite = suite_create("simulation");
    TCase *scenarios = tcase_create("scenarios");
    tcase_add_checked_fixture(scenarios, setup, teardown);
    tcase_add_test(scenarios, job_is_planned_placed_and_runs);
    tcase_add_test(scenarios, gpus_that_a_job_does_not_use_have_their_reasons);
    tcase_add_test(scenarios, a_job_that_waits_says_why_it_cannot_have_gpus);
    tcase_add_test(scenarios, heartbeats_of_nodes_cause_nothing);
    tcase_add_test(scenarios,
                   job_moves_when_its_node_is_lost_and_stays_when_that_returns);
    tcase_add_test(scenarios,
                   lost_node_leaves_the_others_as_they_were_where_that_costs_little);
    tcase_add_test(scenarios, lost_node_moves_the_others_where_staying_costs_much);
    tcase_add_test(scenarios, job_that_lost_a_node_is_decided_on_before_others);
    tcase_add_test(scenarios, job_waits_for_gpus_and_starts_by_itself);
    tcase_add_test(scenarios, two_jobs_share_the_cluster_and_the_older_comes_first);
    tcase_add_test(scenarios, two_jobs_of_one_second_do_not_take_the_same_gpus);
    tcase_add_test(scenarios, higher_priority_is_served_first);
    tcase_add_test(scenarios, lower_priority_is_preempted_down_to_its_minimum);
    tcase_add_test(scenarios, lower_priority_is_preempted_whole_and_comes_back);
    tcase_add_test(scenarios, job_with_a_spec_that_is_refused_is_preempted_whole);
    tcase_add_test(scenarios, claims_in_vain_become_rare_and_leave_little);
    tcase_add_test(scenarios, gpus_that_would_come_without_cpu_are_not_claimed);
    tcase_add_test(scenarios, claim_takes_no_more_of_a_node_than_comes_with_cpu);
    tcase_add_test(scenarios, what_is_missing_is_told_and_adding_it_helps);
    tcase_add_test(scenarios, job_runs_on_the_gpus_of_one_vendor);
    tcase_add_test(scenarios, what_one_vendor_lacks_is_missing_though_another_has_it);
    tcase_add_test(scenarios, job_that_no_number_of_gpus_helps_demands_none);
    tcase_add_test(scenarios, search_of_all_plans_is_for_small_jobs_only);
    tcase_add_test(scenarios, elastic_job_tells_what_it_could_use_besides);
    tcase_add_test(scenarios, nobody_is_preempted_for_a_plan_that_would_not_fit);
    tcase_add_test(scenarios,
                   elastic_job_makes_room_for_one_of_its_priority_after_its_cool_down);
    tcase_add_loop_test(scenarios, free_gpus_go_where_they_buy_the_most, 0, 2);
    tcase_add_test(scenarios, jobs_do_not_preempt_each_other_in_turns);
    tcase_add_test(scenarios, names_that_somebody_took_are_skipped);
    tcase_add_test(scenarios, names_that_are_all_taken_are_told_and_may_come_free);
    tcase_add_test(scenarios, deleted_job_leaves_nothing);
    tcase_add_test(scenarios, failed_pod_restarts_all_until_the_limit);
    tcase_add_test(scenarios, job_is_complete_when_all_its_pods_succeed);
    tcase_add_test(scenarios, silent_node_is_left_after_its_grace);
    tcase_add_test(scenarios, node_that_speaks_again_within_its_grace_is_not_left);
    tcase_add_test(scenarios, cordoned_node_is_left_when_there_is_a_place_to_go);
    tcase_add_test(scenarios, pods_wait_for_the_checkpoint_of_their_program);
    tcase_add_test(scenarios, program_that_hangs_has_its_time_and_no_more);
    tcase_add_test(scenarios, controller_that_takes_over_asks_the_program_again);
    tcase_add_test(scenarios, program_that_refuses_is_stopped_at_once);
    tcase_add_test(scenarios, program_that_nobody_hears_is_stopped_soon);
    tcase_add_test(scenarios, urgent_job_waits_no_longer_than_the_limits_allow);
    tcase_add_test(scenarios, lost_gpu_leads_to_a_new_plan);
    tcase_add_test(scenarios, replan_of_two_pods_takes_one_status_a_phase);
    tcase_add_test(scenarios, gpus_that_somebody_else_takes_are_counted);
    tcase_add_test(scenarios, pods_that_nobody_planned_hold_no_node);
    tcase_add_test(scenarios, job_waits_for_its_profile);
    tcase_add_test(scenarios, model_without_a_profile_is_estimated);
    tcase_add_test(scenarios, job_made_again_under_its_name_is_another);
    tcase_add_test(scenarios, work_for_a_plan_is_bounded);
    tcase_add_test(scenarios, jobs_that_start_together_cost_each_as_much_as_one_alone);
    tcase_add_test(scenarios, planner_that_says_rubbish_is_asked_again);
    suite_add_tcase(suite, scenarios);
    TCase *profiles = tcase_create("profiles");
    tcase_add_checked_fixture(profiles, setup, teardown);
    tcase_add_test(profiles, new_gpu_type_is_measured_and_then_used);
    tcase_add_test(profiles, job_without_any_profile_waits_for_the_first_measurement);
    tcase_add_test(profiles, two_jobs_share_a_measurement);
    tcase_add_test(profiles, measurement_that_fails_is_not_tried_without_end);
    tcase_add_test(profiles, forged_result_changes_nothing);
    tcase_add_test(profiles, suspended_job_has_nothing_measured);
    tcase_add_test(profiles, controller_that_dies_leaves_a_measurement_to_the_next);
    suite_add_tcase(suite, profiles);
    TCase *lives = tcase_create("lives");
    tcase_add_checked_fixture(lives, setup, teardown);
    tcase_add_test(lives, job_is_held_to_what_its_namespace_says);
    tcase_add_test(lives, suspended_job_leaves_its_gpus_to_others_and_comes_back);
    tcase_add_test(lives, job_that_is_suspended_when_it_is_made_waits_for_its_resume);
    tcase_add_test(lives, suspended_job_gives_up_pods_of_a_node_that_dies);
    tcase_add_test(lives, evictions_and_final_exit_codes_go_by_their_rules);
    tcase_add_test(lives, healthy_time_makes_restarts_forgotten);
    tcase_add_test(lives, deadline_and_time_to_live_end_a_job_to_the_second);
    tcase_add_test(lives, rank_zero_ends_the_job_where_its_policy_says_so);
    tcase_add_test(lives, rank_that_succeeded_is_not_lost_with_its_node);
    tcase_add_test(lives, change_of_the_pods_replaces_them_under_the_same_plan);
    tcase_add_test(lives, scale_is_followed_down_and_up);
    tcase_add_test(lives, job_of_another_manager_is_left_alone);
    suite_add_tcase(suite, lives);
    TCase *writes = tcase_create("writes");
    tcase_add_test(writes, controller_dies_before_a_write);
    tcase_add_test(writes, controller_dies_after_a_write);
    tcase_add_test(writes, reply_to_a_write_is_lost);
    tcase_add_test(writes, write_is_not_answered);
    tcase_add_test(writes, write_meets_a_conflict);
    tcase_add_test(writes, server_fails_at_a_write);
    tcase_add_test(writes, server_is_too_busy_for_a_write);
    suite_add_tcase(suite, writes);
    TCase *deaf = tcase_create("deaf");
    tcase_add_test(deaf, job_that_was_deleted_behind_a_stalled_watch_gets_no_plans);
    tcase_add_test(deaf, job_made_again_behind_a_stalled_watch_is_found);
    tcase_add_test(deaf, half_a_list_after_410_costs_a_few_writes);
    tcase_add_test(deaf, peers_of_a_node_that_hangs_start_again_without_it_and_uncounted);
    tcase_add_test(deaf, server_that_is_upgraded_is_asked_again_what_it_can_do);
    tcase_add_test(deaf, job_that_is_nested_too_deep_is_told_so_and_others_go_on);
    tcase_add_test(deaf, job_that_can_be_read_again_goes_on_and_says_so);
    tcase_add_test(deaf, job_whose_candidate_cannot_be_written_goes_on);
    tcase_add_test(deaf, job_that_no_leader_has_seen_is_told_of_by_the_next);
    tcase_add_test(deaf, job_that_is_over_and_can_be_read_again_says_so);
    tcase_add_test(deaf, next_leader_does_not_tell_of_an_unreadable_job_again);
    tcase_add_test(deaf, refused_job_that_becomes_unreadable_is_refused_as_long);
    tcase_add_test(deaf, unreadable_jobs_that_went_unseen_are_forgotten);
    suite_add_tcase(suite, deaf);
    TCase *replicas = tcase_create("replicas");
    tcase_add_test(replicas, replica_takes_over_when_the_leader_dies);
    tcase_add_test(replicas, time_passes_while_all_replicas_stand_still);
    tcase_add_test(replicas, replica_that_takes_over_knows_what_its_watches_do_not);
    tcase_add_test(replicas, stopped_leader_writes_nothing_when_it_goes_on);
    suite_add_tcase(suite, replicas);
    return suite;
}
