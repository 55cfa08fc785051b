/* The actors of the embedded cluster, and the script. */
#include "controller/simulate/simulated_cluster.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"
#include "tests/controller/api.h"
#include "tests/controller/happening.h"

#include <check.h>
#include <string.h>

static struct api_server *server;
static struct simulated_cluster *cluster;

static void setup(void)
{
    server = api_server_new(1);
    cluster = simulated_cluster_new(server, &simulated_cluster_defaults);
}

static void teardown(void)
{
    simulated_cluster_free(cluster);
    api_server_free(server);
}

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

static void put_node(const char *name, int gpus)
{
    put(quoted(
        "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': '%s'}, 'status':"
        " {'capacity': {'nvidia.com/gpu': '%d'}, 'allocatable': {'nvidia.com/gpu': "
        "'%d', 'cpu': '64'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
        name, gpus, gpus));
}

static void put_pod(const char *name, int gpus, const char *owner_uid)
{
    json_t *pod =
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', 'labels': "
               "{'heterotrain.io/job-uid': '%s'}}, 'spec': {'containers': [{'name': 'c', "
               "'image': 'i', 'resources': {'limits': {'nvidia.com/gpu': '%d'}}}]}}",
               name, owner_uid, gpus);
    if (*owner_uid)
        object_set(pod, "metadata.ownerReferences",
                   quoted("[{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': "
                          "'HeteroTrainingJob', 'name': 'j', 'uid': '%s', 'controller': "
                          "true}]",
                          owner_uid));
    put(pod);
}

static const char *put_job(void)
{
    put(quoted("{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
               "'metadata': {'name': 'j'}, 'spec': {}}"));
    return object_text(api_server_find(server, "heterotrainingjobs", "default", "j"),
                       "metadata.uid");
}

static json_t *pod(const char *name)
{
    return api_server_find(server, "pods", "default", name);
}

static const char *phase(const char *name)
{
    return object_text(pod(name), "status.phase");
}

static void advance_ms(int64_t ms)
{
    simulated_cluster_advance(cluster, api_server_now_ms(server) + ms);
}

/* "delete node/a", now */
static void do_event(const char *text)
{
    struct het_error err = { 0 };
    ck_assert_msg(happening(cluster, text, &err) == 0, "%s", err.message);
}

/* ---- actors ---- */

START_TEST(a_pod_is_bound_and_runs_after_the_delays)
{
    put_node("a", 4);
    put_pod("p", 4, "");
    advance_ms(99);
    ck_assert_str_eq(object_text(pod("p"), "spec.nodeName"), "");
    advance_ms(1);
    ck_assert_str_eq(object_text(pod("p"), "spec.nodeName"), "a");
    ck_assert(object_condition_is_true(pod("p"), "PodScheduled"));
    advance_ms(1999);
    ck_assert_str_eq(phase("p"), "Pending");
    advance_ms(1);
    ck_assert_str_eq(phase("p"), "Running");
    ck_assert(object_condition_is_true(pod("p"), "Ready"));
    bool idle;
    simulated_cluster_next_ms(cluster, &idle);
    ck_assert(idle);
}
END_TEST

START_TEST(a_pod_that_does_not_fit_says_why_and_starts_when_room_is_made)
{
    put_node("a", 4);
    put_pod("p", 4, "");
    advance_ms(5000);
    put_pod("q", 1, "");
    advance_ms(5000);
    const json_t *condition =
        object_find(object_at(pod("q"), "status.conditions"), "type", "PodScheduled");
    ck_assert_str_eq(object_text(condition, "reason"), "Unschedulable");
    ck_assert_str_eq(object_text(condition, "message"),
                     "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
    do_event("fail pod/p 3");
    ck_assert_str_eq(phase("p"), "Failed");
    const json_t *status =
        json_array_get(object_at(pod("p"), "status.containerStatuses"), 0);
    ck_assert_int_eq(object_integer(status, "state.terminated.exitCode", 0), 3);
    advance_ms(5000);
    ck_assert_str_eq(phase("q"), "Running");
}
END_TEST

START_TEST(a_gated_pod_waits_for_its_gate)
{
    put_node("a", 4);
    json_t *gated =
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'g'},"
               " 'spec': {'schedulingGates': [{'name': 'x'}], 'containers': "
               "[{'name': 'c', 'image': 'i'}]}}");
    put(gated);
    advance_ms(5000);
    ck_assert_str_eq(object_text(pod("g"), "spec.nodeName"), "");
    json_t *open = json_deep_copy(pod("g"));
    object_remove(open, "spec.schedulingGates");
    put(open);
    advance_ms(5000);
    ck_assert_str_eq(phase("g"), "Running");
}
END_TEST

START_TEST(a_deleted_pod_stops_in_its_own_time)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    api_server_delete(server, "pods", "default", "p", -1, NULL);
    advance_ms(1999);
    ck_assert_ptr_nonnull(pod("p"));
    advance_ms(1);
    ck_assert_ptr_null(pod("p"));
}
END_TEST

START_TEST(what_a_deleted_job_owned_is_collected)
{
    const char *uid = put_job();
    put_node("a", 4);
    put_pod("p", 1, uid);
    put_pod("other", 1, "");
    advance_ms(5000);
    api_server_delete(server, "heterotrainingjobs", "default", "j", -1, NULL);
    advance_ms(5000);
    ck_assert_ptr_null(pod("p"));
    ck_assert_ptr_nonnull(pod("other"));
    put_pod("late", 1, "5f000000-0000-4000-8000-000000000000");
    advance_ms(5000);
    ck_assert_ptr_null(pod("late")); /* its owner never was */
}
END_TEST

START_TEST(a_deleted_namespace_takes_all_with_it)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm', "
               "'namespace': 'team'}}"));
    api_server_delete(server, "namespaces", "", "team", -1, NULL);
    struct transport *client = api_server_transport(server);
    auto_reply late = api_call(client, "POST", "application/json",
                               quoted("{'metadata': {'name': 'n'}}"),
                               "/api/v1/namespaces/team/configmaps");
    ck_assert_int_eq(late.status, 403);
    advance_ms(5000);
    ck_assert_ptr_null(api_server_find(server, "configmaps", "team", "m"));
    ck_assert_ptr_null(api_server_find(server, "namespaces", "", "team"));
}
END_TEST

START_TEST(pods_of_a_deleted_node_end_after_a_while_unless_it_returns)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    do_event("delete node/a");
    advance_ms(39000);
    ck_assert_str_eq(phase("p"), "Running");
    do_event("restore node/a");
    advance_ms(5000);
    ck_assert_str_eq(phase("p"), "Running");
    do_event("delete node/a");
    api_server_delete(server, "pods", "default", "p", -1, NULL);
    advance_ms(39000);
    ck_assert_ptr_nonnull(pod("p")); /* no kubelet to end it */
    advance_ms(1000);
    ck_assert_ptr_null(pod("p"));
}
END_TEST

START_TEST(a_silent_node_keeps_its_pods_until_their_tolerations_end)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    do_event("notready node/a");
    const json_t *node = api_server_find(server, "nodes", "", "a");
    ck_assert(!object_condition_is_true(node, "Ready"));
    ck_assert_uint_eq(json_array_size(object_at(node, "spec.taints")), 2);
    ck_assert(!object_condition_is_true(pod("p"), "Ready"));
    ck_assert_str_eq(phase("p"), "Running");
    advance_ms(299000);
    ck_assert(!object_at(pod("p"), "metadata.deletionTimestamp"));
    advance_ms(1000); /* tolerationSeconds: 300 */
    ck_assert(object_at(pod("p"), "metadata.deletionTimestamp"));
    ck_assert(object_condition_is_true(pod("p"), "DisruptionTarget"));
    advance_ms(600000);
    ck_assert_ptr_nonnull(pod("p"));
    do_event("ready node/a");
    advance_ms(5000);
    ck_assert_ptr_null(pod("p"));
    node = api_server_find(server, "nodes", "", "a");
    ck_assert(object_condition_is_true(node, "Ready"));
    ck_assert_ptr_null(object_at(node, "spec.taints"));
}
END_TEST

START_TEST(a_node_that_speaks_again_in_time_keeps_its_pods)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    do_event("notready node/a");
    advance_ms(60000);
    do_event("ready node/a");
    advance_ms(600000);
    ck_assert_str_eq(phase("p"), "Running");
    ck_assert(object_condition_is_true(pod("p"), "Ready"));
}
END_TEST

START_TEST(cordons_and_gpu_counts_are_seen_by_the_scheduler)
{
    put_node("a", 4);
    do_event("cordon node/a");
    put_pod("p", 4, "");
    advance_ms(5000);
    ck_assert_str_eq(phase("p"), "Pending");
    do_event("gpus node/a 3");
    do_event("uncordon node/a");
    advance_ms(5000);
    ck_assert_str_eq(phase("p"), "Pending");
    do_event("gpus node/a 4");
    advance_ms(5000);
    ck_assert_str_eq(phase("p"), "Running");
}
END_TEST

START_TEST(a_job_succeeds_when_told_so)
{
    const char *uid = put_job();
    put_node("a", 4);
    put_pod("p", 1, uid);
    put_pod("q", 1, uid);
    advance_ms(5000);
    do_event("succeed job/j");
    ck_assert_str_eq(phase("p"), "Succeeded");
    ck_assert_str_eq(phase("q"), "Succeeded");
}
END_TEST

START_TEST(another_tenant_takes_what_is_free_and_leaves)
{
    put_node("a", 4);
    put_pod("p", 3, "");
    advance_ms(5000);
    do_event("occupy node/a 4");
    ck_assert_uint_eq(api_server_count(server, "pods"), 2);
    const json_t *tenant = api_server_at(server, "pods", 0);
    ck_assert_str_eq(object_text(tenant, "spec.nodeName"), "a");
    put_pod("q", 1, "");
    advance_ms(5000);
    ck_assert_str_eq(phase("q"), "Pending");
    const json_t *scheduled =
        object_find(object_at(pod("q"), "status.conditions"), "type", "PodScheduled");
    ck_assert_str_eq(object_text(scheduled, "reason"), "Unschedulable");
    do_event("release node/a");
    advance_ms(5000);
    ck_assert_str_eq(phase("q"), "Running");
}
END_TEST

START_TEST(a_taint_that_evicts_ends_pods_unless_it_is_taken_back)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    do_event("taint node/a spot/leaving=soon:NoSchedule");
    advance_ms(5000);
    ck_assert_str_eq(phase("p"), "Running");
    do_event("untaint node/a spot/leaving");
    ck_assert_ptr_null(
        object_at(api_server_find(server, "nodes", "", "a"), "spec.taints"));
    do_event("taint node/a spot/leaving:NoExecute");
    advance_ms(0);
    ck_assert(object_at(pod("p"), "metadata.deletionTimestamp"));
    ck_assert(object_condition_is_true(pod("p"), "DisruptionTarget"));
}
END_TEST

START_TEST(nodes_and_jobs_are_marked)
{
    put_node("a", 4);
    put_job();
    do_event("label node/a zone=z1");
    do_event("annotate node/a note=an=y");
    do_event("condition node/a GpuTrouble True");
    do_event("suspend job/j");
    do_event("patch job/j {\"spec\": {\"resources\": {\"maxGPUs\": 3}}}");
    const json_t *node = api_server_find(server, "nodes", "", "a");
    const json_t *job = api_server_find(server, "heterotrainingjobs", "default", "j");
    ck_assert_str_eq(object_text(node, "metadata.labels.zone"), "z1");
    ck_assert_str_eq(object_text(node, "metadata.annotations.note"), "an=y");
    ck_assert(object_condition_is_true(node, "GpuTrouble"));
    ck_assert(object_is_true(job, "spec.suspend"));
    ck_assert_int_eq(object_integer(job, "spec.resources.maxGPUs", 0), 3);
    ck_assert_int_eq(object_integer(job, "metadata.generation", 0), 3);
    do_event("label node/a zone-");
    do_event("resume job/j");
    node = api_server_find(server, "nodes", "", "a");
    ck_assert_ptr_null(object_at(node, "metadata.labels.zone"));
    job = api_server_find(server, "heterotrainingjobs", "default", "j");
    ck_assert(!object_is_true(job, "spec.suspend"));
}
END_TEST

START_TEST(an_evicted_pod_says_so_and_ends)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    advance_ms(5000);
    do_event("evict pod/p");
    ck_assert(object_condition_is_true(pod("p"), "DisruptionTarget"));
    advance_ms(5000);
    ck_assert_ptr_null(pod("p"));
}
END_TEST

/* POSTs to the pod; the HTTP status, -1 while there is no reply. */
static int hook_status;

static void on_hook(void *context, const struct http_reply *reply)
{
    (void)context;
    hook_status = reply->status;
}

static void post(const char *url)
{
    struct http_request request = { .method = "POST", .path = url, .timeout_ms = 5000 };
    struct http_handler handler = { .on_done = on_hook };
    hook_status = -1;
    transport_start(api_server_transport(server), &request, &handler);
    transport_poll(api_server_transport(server), NULL, 0, 0);
}

static void wait_ms(int64_t ms)
{
    advance_ms(ms);
    transport_poll(api_server_transport(server), NULL, 0, 0);
}

START_TEST(running_pods_answer_at_their_address)
{
    put_node("a", 4);
    put_pod("p", 1, "");
    put_pod("q", 1, "");
    advance_ms(5000);
    ck_assert_str_ne(object_text(pod("p"), "status.podIP"),
                     object_text(pod("q"), "status.podIP"));
    auto_free char *url =
        xasprintf("http://%s:8476/checkpoint", object_text(pod("p"), "status.podIP"));
    post(url);
    wait_ms(99);
    ck_assert_int_eq(hook_status, -1);
    wait_ms(1);
    ck_assert_int_eq(hook_status, 200);
    simulated_cluster_set_hook(cluster, (struct simulated_hook){ .status = 500 });
    post(url);
    wait_ms(0);
    ck_assert_int_eq(hook_status, 500);
    simulated_cluster_set_hook(cluster, (struct simulated_hook){ .delay_ms = INT64_MAX });
    post(url);
    wait_ms(4999);
    ck_assert_int_eq(hook_status, -1);
    wait_ms(1);
    ck_assert_int_eq(hook_status, 0);
    post("http://10.9.9.9:1/");
    wait_ms(5000);
    ck_assert_int_eq(hook_status, 0);
    json_auto_t *calls = json_pack("[s++, s++, s++]", "POST ", url, "", "POST ", url, "",
                                   "POST ", url, "");
    ck_assert(json_equal(simulated_cluster_hook_calls(cluster), calls));
    ck_assert_uint_eq(api_server_statistics(server).writes, 0);
}
END_TEST

START_TEST(heartbeats_are_noise_in_the_background)
{
    struct api_server *other = api_server_new(1);
    struct simulated_cluster_config config = simulated_cluster_defaults;
    config.heartbeat_ms = 10000;
    struct simulated_cluster *noisy = simulated_cluster_new(other, &config);
    struct het_error err;
    json_t *node =
        quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'a'},"
               " 'status': {'conditions': [{'type': 'Ready', 'status': "
               "'True'}]}}");
    ck_assert_int_eq(api_server_put(other, node, &err), 0);
    simulated_cluster_advance(noisy, API_SERVER_START_MS + 1000);
    bool idle = false;
    ck_assert_int_eq(simulated_cluster_next_ms(noisy, &idle),
                     API_SERVER_START_MS + 10000);
    ck_assert(idle);
    const char *before =
        object_text(api_server_find(other, "nodes", "", "a"), "metadata.resourceVersion");
    auto_free char *version = xstrdup(before);
    simulated_cluster_advance(noisy, API_SERVER_START_MS + 10000);
    ck_assert_str_ne(
        object_text(api_server_find(other, "nodes", "", "a"), "metadata.resourceVersion"),
        version);
    simulated_cluster_free(noisy);
    api_server_free(other);
}
END_TEST

/* ---- script ---- */

START_TEST(durations_are_read)
{
    ck_assert_int_eq(scenario_duration_ms("60s"), 60000);
    ck_assert_int_eq(scenario_duration_ms("1m30s"), 90000);
    ck_assert_int_eq(scenario_duration_ms("1500ms"), 1500);
    ck_assert_int_eq(scenario_duration_ms("2h"), 7200000);
    ck_assert_int_eq(scenario_duration_ms("0s"), 0);
    ck_assert_int_eq(scenario_duration_ms("60"), -1);
    ck_assert_int_eq(scenario_duration_ms(""), -1);
    ck_assert_int_eq(scenario_duration_ms("s"), -1);
    ck_assert_int_eq(scenario_duration_ms("1s 2"), -1);
}
END_TEST

START_TEST(events_are_read)
{
    static const struct {
        const char *text;
        enum scenario_event_kind kind;
        const char *ns, *name;
        int64_t number;
    } cases[] = {
        { "60s delete node/a-1.x", EVENT_DELETE_NODE, "", "a-1.x", 0 },
        { "60s  restore   node/a", EVENT_CREATE_NODE, "", "a", 0 },
        { "60s gpus node/a 7", EVENT_GPUS, "", "a", 7 },
        { "60s delete job/j", EVENT_DELETE_JOB, "", "j", 0 },
        { "60s delete job/ns/j", EVENT_DELETE_JOB, "ns", "j", 0 },
        { "60s taint node/a b=c:NoSchedule", EVENT_TAINT, "", "a", 0 },
        { "60s occupy node/a 3", EVENT_OCCUPY, "", "a", 3 },
        { "60s patch job/ns/j {\"a\": 1} ", EVENT_PATCH_JOB, "ns", "j", 0 },
        { "60s fail pod/p", EVENT_FAIL_POD, "", "p", 1 },
        { "60s fail pod/p 137", EVENT_FAIL_POD, "", "p", 137 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario_event event;
        struct het_error err = { 0 };
        ck_assert_msg(
            scenario_event_parse(cases[i].text, happening_no_file, &event, &err) == 0,
            "%s", err.message);
        ck_assert_int_eq(event.after_ms, 60000);
        ck_assert_int_eq(event.kind, cases[i].kind);
        ck_assert_str_eq(event.ns, cases[i].ns);
        ck_assert_str_eq(event.name, cases[i].name);
        ck_assert_int_eq(event.number, cases[i].number);
        scenario_event_fini(&event);
    }
}
END_TEST

START_TEST(what_is_no_event_is_refused_with_what_to_write)
{
    static const char *const cases[][2] = {
        { "delete node/a", "expected TIME VERB SUBJECT" },
        { "60 delete node/a", "is not a time like 90s" },
        { "60s explode node/a", "is not one of" },
        { "60s cordon pod/a", "is not one of" },
        { "60s delete node/", "is not one of" },
        { "60s gpus node/a", "expected a number" },
        { "60s gpus node/a x", "expected a number" },
        { "60s delete node/a 5", "expected nothing" },
        { "60s apply none.yaml", "none.yaml: no such file" },
        { "60s delete node/a b c", "expected nothing" },
        { "60s taint node/a key", "expected KEY[=VALUE]:EFFECT" },
        { "60s label node/a key", "expected KEY=VALUE or KEY-" },
        { "60s condition node/a Ready maybe", "expected TYPE True|False|Unknown" },
        { "60s patch job/j {", "expected a JSON merge patch" },
        { "60s delete", "expected TIME VERB SUBJECT" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario_event event;
        struct het_error err = { 0 };
        ck_assert_msg(scenario_event_parse(cases[i][0], happening_no_file, &event, &err) <
                          0,
                      "%s", cases[i][0]);
        ck_assert_msg(strstr(err.message, cases[i][1]) != NULL, "%s", err.message);
    }
}
END_TEST

static void on_event(void *context, const struct scenario_event *event,
                     const struct het_error *err)
{
    char **text = context;
    auto_free char *before = *text;
    *text = xasprintf("%s%lld %s%s%s; ", before, (long long)event->after_ms, event->text,
                      err ? ": " : "", err ? err->message : "");
}

START_TEST(planned_events_happen_in_their_time)
{
    char *text = xstrdup("");
    put_node("a", 4);
    simulated_cluster_on_event(cluster, on_event, &text);
    static const char *const events[] = { "20s restore node/a", "10s delete node/a",
                                          "30s delete node/b" };
    for (size_t i = 0; i < 3; i++) {
        struct scenario_event event;
        ck_assert_int_eq(scenario_event_parse(events[i], happening_no_file, &event, NULL),
                         0);
        simulated_cluster_plan(cluster, &event);
    }
    advance_ms(9999);
    ck_assert_str_eq(text, "");
    advance_ms(90000);
    ck_assert_str_eq(text, "10000 delete node/a; 20000 restore node/a; 30000 delete "
                           "node/b: there is no node b; ");
    ck_assert_ptr_nonnull(api_server_find(server, "nodes", "", "a"));
    het_free_pointer(&text);
}
END_TEST

Suite *test_simulated_cluster_suite(void)
{
    Suite *suite = suite_create("simulated_cluster");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_pod_is_bound_and_runs_after_the_delays);
    tcase_add_test(cases, a_pod_that_does_not_fit_says_why_and_starts_when_room_is_made);
    tcase_add_test(cases, a_gated_pod_waits_for_its_gate);
    tcase_add_test(cases, a_deleted_pod_stops_in_its_own_time);
    tcase_add_test(cases, what_a_deleted_job_owned_is_collected);
    tcase_add_test(cases, a_deleted_namespace_takes_all_with_it);
    tcase_add_test(cases, pods_of_a_deleted_node_end_after_a_while_unless_it_returns);
    tcase_add_test(cases, a_silent_node_keeps_its_pods_until_their_tolerations_end);
    tcase_add_test(cases, a_node_that_speaks_again_in_time_keeps_its_pods);
    tcase_add_test(cases, cordons_and_gpu_counts_are_seen_by_the_scheduler);
    tcase_add_test(cases, a_job_succeeds_when_told_so);
    tcase_add_test(cases, another_tenant_takes_what_is_free_and_leaves);
    tcase_add_test(cases, a_taint_that_evicts_ends_pods_unless_it_is_taken_back);
    tcase_add_test(cases, nodes_and_jobs_are_marked);
    tcase_add_test(cases, an_evicted_pod_says_so_and_ends);
    tcase_add_test(cases, running_pods_answer_at_their_address);
    tcase_add_test(cases, heartbeats_are_noise_in_the_background);
    tcase_add_test(cases, durations_are_read);
    tcase_add_test(cases, events_are_read);
    tcase_add_test(cases, what_is_no_event_is_refused_with_what_to_write);
    tcase_add_test(cases, planned_events_happen_in_their_time);
    suite_add_tcase(suite, cases);
    return suite;
}
