/* The invariants themselves: histories that break one are told apart from a good one. The
 * test is the controller: it writes through its transport. */
#include "tests/controller/invariants.h"

#include "controller/job/job_spec.h"
#include "controller/simulate/api_server/condition.h"
#include "tests/controller/api.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

#define JSON  "application/json"
#define MERGE "application/merge-patch+json"
#define API   "/api/v1/namespaces/default/"
#define JOBS  "/apis/heterotrain.io/v1alpha1/namespaces/default/heterotrainingjobs"

static struct simulation *simulation;
static struct api_server *server;
static struct transport *client;
static struct invariants *invariants;
static struct inside_planner planner;

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

static void put_job(const char *name)
{
    put(quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s'}, 'spec': {'scheduling': {'gangTimeoutSeconds': "
        "10}}}",
        name));
}

static void set_up(const struct invariants_config *invariants_config)
{
    struct simulation_config config = { .inside = inside_planner_answer,
                                        .inside_context = &planner,
                                        .cluster = simulated_cluster_defaults };
    simulation = simulation_new(&config, NULL);
    server = simulation_server(simulation);
    client = api_server_transport(server);
    invariants = invariants_new(simulation, invariants_config);
    for (int i = 0; i < 2; i++)
        put(quoted("{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n%d'}, "
                   "'status': {'capacity': {'nvidia.com/gpu': '4'}, 'allocatable': "
                   "{'nvidia.com/gpu': '4'}, 'conditions': [{'type': 'Ready', 'status': "
                   "'True'}]}}",
                   i));
    put_job("j");
    put_job("k");
}

static void setup(void)
{
    set_up(&(struct invariants_config){ .is_late = false });
}

static void setup_late(void)
{
    set_up(&(struct invariants_config){ .is_late = true });
}

static void teardown(void)
{
    invariants_free(invariants);
    simulation_free(simulation);
    inside_planner_fini(&planner);
    planner = (struct inside_planner){ 0 };
}

/* Everybody but the controller acts. */
static void wait_ms(int64_t ms)
{
    int64_t end_ms = api_server_now_ms(server) + ms;
    while (api_server_now_ms(server) < end_ms) {
        simulated_cluster_advance(simulation_cluster(simulation),
                                  api_server_now_ms(server) + 100);
        invariants_step(invariants);
    }
}

static void write_to(const char *method, const char *type, json_t *body, const char *path)
{
    auto_reply reply = api_call(client, method, type, body, "%s", path);
    ck_assert_msg(reply.status >= 200 && reply.status < 300, "%s", reply.body);
}

static json_t *child(const char *kind, const char *job, const char *name, int generation)
{
    const json_t *owner = api_server_find(server, "heterotrainingjobs", "default", job);
    const char *uid = owner ? object_text(owner, "metadata.uid") : "never-was";
    return quoted(
        "{'apiVersion': 'v1', 'kind': '%s', 'metadata': {'name': '%s', "
        "'labels': {'%s': '%s', '%s': '%s', '%s': '%d', '%s': '0'}, "
        "'ownerReferences': [{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': "
        "'HeteroTrainingJob', 'name': '%s', 'uid': '%s', 'controller': true}]}}",
        kind, name, LABEL_JOB_NAME, job, LABEL_JOB_UID, uid, LABEL_PLAN_REVISION,
        generation, LABEL_POD_INDEX, job, uid);
}

/* "n0:4 n1:2" */
static void plan(const char *job, int generation, const char *nodes)
{
    auto_free char *name = xasprintf("%s-plan-%d", job, generation);
    auto_free char *text = world_plan(nodes, "A100", 1);
    json_t *map = child("ConfigMap", job, name, generation);
    json_object_set_new(object_map(map, "data"), "plan.json", json_string(text));
    write_to("POST", JSON, map, API "configmaps");
}

static json_t *a_pod(const char *job, int generation, const char *node, int gpus)
{
    auto_free char *name = xasprintf("%s-%d-%s", job, generation, node);
    json_t *pod = child("Pod", job, name, generation);
    object_set(pod, "spec",
               quoted("{'containers': [{'name': 'c', 'image': 'i', 'resources': "
                      "{'limits': {'nvidia.com/gpu': '%d'}}}], 'affinity': "
                      "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution'"
                      ": {'nodeSelectorTerms': [{'matchFields': [{'key': "
                      "'metadata.name', 'operator': 'In', 'values': ['%s']}]}]}}}}",
                      gpus, node));
    json_object_set_new(object_at(pod, "metadata.labels"), LABEL_POD_INDEX,
                        json_string(node));
    return pod;
}

static void release_pod(const char *job, int generation, const char *node, int gpus)
{
    write_to("POST", JSON, a_pod(job, generation, node, gpus), API "pods");
}

static void add_gated_pod(const char *job, int generation, const char *node, int gpus)
{
    json_t *pod = a_pod(job, generation, node, gpus);
    object_set(pod, "spec.schedulingGates", quoted("[{'name': 'g'}]"));
    write_to("POST", JSON, pod, API "pods");
}

static void check_good(void)
{
    const char *broken = invariants_broken(invariants);
    ck_assert_msg(!broken, "%s", broken);
}

static void check_broken(const char *by)
{
    const char *broken = invariants_broken(invariants);
    ck_assert_msg(broken && strstr(broken, by), "%s, not %s", broken ? broken : "good",
                  by);
}

START_TEST(good_history_breaks_nothing)
{
    plan("j", 1, "n0:4 n1:2");
    release_pod("j", 1, "n0", 4);
    release_pod("j", 1, "n1", 2);
    wait_ms(60000);
    plan("j", 2, "n1:2");
    add_gated_pod("j", 2, "n1", 2);
    write_to("DELETE", JSON, NULL, API "pods/j-1-n0");
    write_to("DELETE", JSON, NULL, API "pods/j-1-n1");
    wait_ms(10000);
    write_to("PATCH", MERGE, quoted("{'spec': {'schedulingGates': null}}"),
             API "pods/j-2-n1");
    wait_ms(60000);
    check_good();
}
END_TEST

START_TEST(two_generations_at_once_break_I3)
{
    plan("j", 1, "n0:4");
    release_pod("j", 1, "n0", 4);
    wait_ms(5000);
    plan("j", 2, "n1:4");
    add_gated_pod("j", 2, "n1", 4);
    check_good();
    write_to("PATCH", MERGE, quoted("{'spec': {'schedulingGates': null}}"),
             API "pods/j-2-n1");
    check_broken("I1, I3: j-2-n1 is released while j-1-n0 may run");
}
END_TEST

START_TEST(pod_that_is_not_as_planned_breaks_I3)
{
    static const struct {
        const char *node;
        int generation, gpus;
        const char *broken;
    } cases[] = { { "n0", 1, 2, "not as planned" },
                  { "n1", 1, 4, "not as planned" },
                  { "n0", 2, 4, "but revision 1 is decided" } };
    plan("j", 1, "n0:4");
    release_pod("j", cases[_i].generation, cases[_i].node, cases[_i].gpus);
    check_broken(cases[_i].broken);
}
END_TEST

START_TEST(pod_without_plan_breaks_I3)
{
    release_pod("j", 1, "n0", 4);
    check_broken("I3: j-1-n0 has no plan");
}
END_TEST

/* The controller has not heard yet that the job is gone. */
START_TEST(pod_of_a_job_that_is_gone_is_of_its_last_plan)
{
    static const struct {
        const char *node;
        int generation, gpus;
        const char *broken;
    } cases[] = { { "n0", 2, 4, NULL },
                  { "n0", 2, 2, "I3: j-2-n0 has 2 GPUs on n0, not as planned" },
                  { "n1", 2, 4, "I3: j-2-n1 has 4 GPUs on n1, not as planned" },
                  { "n1", 1, 4, "I3: j-1-n1 is made or released, but revision 2" } };
    plan("j", 1, "n1:4");
    plan("j", 2, "n0:4");
    json_t *pod = a_pod("j", cases[_i].generation, cases[_i].node, cases[_i].gpus);
    api_server_drop(server, "heterotrainingjobs", "default", "j");
    api_server_drop(server, "configmaps", "default", "j-plan-2");
    api_server_drop(server, "configmaps", "default", "j-plan-1");
    write_to("POST", JSON, pod, API "pods");
    if (cases[_i].broken)
        check_broken(cases[_i].broken);
    else
        check_good();
}
END_TEST

START_TEST(pod_of_a_plan_that_is_gone_breaks_I3_while_its_job_is_there)
{
    plan("j", 1, "n0:4");
    api_server_drop(server, "configmaps", "default", "j-plan-1");
    release_pod("j", 1, "n0", 4);
    check_broken("I3: j-1-n0 has no plan");
}
END_TEST

START_TEST(gpus_planned_twice_break_I2)
{
    plan("j", 1, "n0:3");
    check_good();
    plan("k", 1, "n0:2");
    check_broken("I2: with k-plan-1, 5 of 4 GPUs of n0 are planned");
}
END_TEST

START_TEST(gpus_of_another_tenant_break_I2_when_they_are_known)
{
    put(quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'other'}, "
               "'spec': {'nodeName': 'n0', 'containers': [{'name': 'c', 'image': 'i', "
               "'resources': {'limits': {'nvidia.com/gpu': '3'}}}]}}"));
    plan("j", 1, "n0:4");
    if (_i)
        wait_ms(6000);
    release_pod("j", 1, "n0", 4);
    if (_i)
        check_broken("I2: with j-1-n0, 7 of 4 GPUs of n0 are asked for");
    else
        check_good();
}
END_TEST

START_TEST(gang_in_parts_breaks_its_time_out)
{
    plan("j", 1, "n0:4 n1:4");
    release_pod("j", 1, "n0", 4);
    wait_ms(90000);
    check_good();
    wait_ms(20000);
    check_broken("gang: 1 of 2 pods of j-plan-1 hold GPUs");
}
END_TEST

START_TEST(write_to_what_is_not_ours_breaks_I7)
{
    static const struct {
        const char *method, *path, *body, *broken;
    } cases[] = {
        { "PATCH", API "configmaps/theirs", "{'data': {'a': 'b'}}", "configmaps theirs" },
        { "DELETE", API "configmaps/theirs", NULL, "configmaps theirs" },
        { "PATCH", "/api/v1/nodes/n0", "{'metadata': {'labels': {'a': 'b'}}}",
          "nodes n0" },
        { "PATCH", JOBS "/j", "{'spec': {'suspend': true}}", "changed job j" },
        { "DELETE", JOBS "/j", NULL, "deleted job j" },
    };
    put(quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
               "'theirs'}}"));
    write_to(cases[_i].method, MERGE,
             cases[_i].body ? quoted("%s", cases[_i].body) : NULL, cases[_i].path);
    check_broken(cases[_i].broken);
}
END_TEST

static void set_status(const char *status)
{
    write_to("PATCH", MERGE, quoted("{'status': %s}", status), JOBS "/j/status");
}

START_TEST(what_is_taken_back_breaks_I5)
{
    static const char *const cases[][3] = {
        { "{'conditions': [{'type': 'Failed', 'status': 'True'}]}",
          "{'conditions': [{'type': 'Failed', 'status': 'False'}]}", "Failed of j" },
        { "{'observedGeneration': 1}", "{'observedGeneration': 0}",
          "observedGeneration of j falls" },
        { "{'plan': {'revision': 2}}", "{'plan': {'revision': 1}}",
          "plan.revision of j falls" },
        { "{}", "{'observedGeneration': 2}", "a spec that is not there" },
    };
    set_status(cases[_i][0]);
    check_good();
    set_status(cases[_i][1]);
    check_broken(cases[_i][2]);
}
END_TEST

START_TEST(healthy_pod_that_ends_in_calm_breaks_I9)
{
    plan("j", 1, "n0:4");
    release_pod("j", 1, "n0", 4);
    wait_ms(5000);
    invariants_set_calm(invariants, _i);
    write_to("DELETE", JSON, NULL, API "pods/j-1-n0");
    if (_i)
        check_broken("I9: j-1-n0");
    else
        check_good();
}
END_TEST

START_TEST(rest_without_an_answer_breaks_I4)
{
    invariants_at_rest(invariants);
    check_broken("I4: j neither runs nor says why");
}
END_TEST

START_TEST(status_that_is_not_so_breaks_I5)
{
    static const char *const cases[][2] = {
        { "{'observedGeneration': 0}", "the spec was not looked at" },
        { "{'observedGeneration': 1}", "1 pods are Running, status says 0" },
        { "{'observedGeneration': 1, 'pods': {'running': 1}}", "status has revision" },
        { "{'observedGeneration': 1, 'pods': {'running': 1}, 'plan': {'revision': 1}, "
          "'conditions': [{'type': 'Running', 'status': 'True'}]}",
          "j says that it runs" },
    };
    plan("j", 1, "n0:4 n1:4");
    release_pod("j", 1, "n0", 4);
    wait_ms(5000);
    set_status(cases[_i][0]);
    write_to("PATCH", MERGE,
             quoted("{'status': {'conditions': [{'type': 'Accepted', 'status': "
                    "'False'}]}}"),
             JOBS "/k/status");
    if (_i < 3)
        write_to("PATCH", MERGE,
                 quoted("{'status': {'conditions': [{'type': 'Accepted', 'status': "
                        "'False'}]}}"),
                 JOBS "/j/status");
    invariants_at_rest(invariants);
    check_broken(cases[_i][1]);
}
END_TEST

START_TEST(what_is_left_over_breaks_I6_and_I10)
{
    static const char *const cases[] = { "I6: pods j-1-n0 has no job any more",
                                         "I10: j-1-n0 waits behind its gate" };
    static const char accepted[] = "{'observedGeneration': 1, 'plan': {'revision': 1}, "
                                   "'conditions': [{'type': 'Accepted', 'status': "
                                   "'False'}]}";
    plan("j", 1, "n0:4");
    add_gated_pod("j", 1, "n0", 4);
    set_status(accepted);
    write_to("PATCH", MERGE,
             quoted("{'status': {'observedGeneration': 1, 'conditions': [{'type': "
                    "'Accepted', 'status': 'False'}]}}"),
             JOBS "/k/status");
    if (!_i)
        api_server_drop(server, "heterotrainingjobs", "default", "j");
    if (!_i)
        api_server_drop(server, "configmaps", "default", "j-plan-1");
    invariants_at_rest(invariants);
    check_broken(cases[_i]);
}
END_TEST

Suite *test_invariants_suite(void)
{
    Suite *suite = suite_create("invariants");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, good_history_breaks_nothing);
    tcase_add_test(cases, two_generations_at_once_break_I3);
    tcase_add_loop_test(cases, pod_that_is_not_as_planned_breaks_I3, 0, 3);
    tcase_add_test(cases, pod_without_plan_breaks_I3);
    tcase_add_test(cases, gpus_planned_twice_break_I2);
    tcase_add_loop_test(cases, gpus_of_another_tenant_break_I2_when_they_are_known, 0, 2);
    tcase_add_test(cases, gang_in_parts_breaks_its_time_out);
    tcase_add_loop_test(cases, write_to_what_is_not_ours_breaks_I7, 0, 5);
    tcase_add_loop_test(cases, what_is_taken_back_breaks_I5, 0, 4);
    tcase_add_loop_test(cases, healthy_pod_that_ends_in_calm_breaks_I9, 0, 2);
    tcase_add_test(cases, rest_without_an_answer_breaks_I4);
    tcase_add_loop_test(cases, status_that_is_not_so_breaks_I5, 0, 4);
    tcase_add_loop_test(cases, what_is_left_over_breaks_I6_and_I10, 0, 2);
    suite_add_tcase(suite, cases);
    TCase *late = tcase_create("late");
    tcase_add_checked_fixture(late, setup_late, teardown);
    tcase_add_loop_test(late, pod_of_a_job_that_is_gone_is_of_its_last_plan, 0, 4);
    tcase_add_test(late, pod_of_a_plan_that_is_gone_breaks_I3_while_its_job_is_there);
    tcase_add_test(late, pod_without_plan_breaks_I3);
    suite_add_tcase(suite, late);
    return suite;
}
