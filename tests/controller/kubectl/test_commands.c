/* kubectl-htj on the embedded API server: what it prints, what it writes, what it says
 * when something is missing. */
#include "controller/kubectl/commands.h"

#include "controller/base/object.h"
#include "controller/kubectl/text_table.h"
#include "controller/simulate/api_server/api_server.h"
#include "tests/controller/quoted.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLES "docs/examples/"
#define HASH     "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct api_server *server;
static char *out, *err;

/* ---- the way to the server, on which some collections are denied ---- */

#define MAX_DENIED 16

static struct {
    struct transport transport;
    const char *denied; /* part of the paths; NULL: nothing */
    const char *answer; /* to them: Status */
    int status;
    struct http_handler handlers[MAX_DENIED];
    size_t count;
    size_t fresh, bursts[8], burst_count; /* requests that began between two polls */
} guard;

static uint64_t guard_start(struct transport *transport,
                            const struct http_request *request,
                            const struct http_handler *handler)
{
    (void)transport;
    guard.fresh++;
    if (!guard.denied || !strstr(request->path, guard.denied))
        return transport_start(api_server_transport(server), request, handler);
    ck_assert_uint_lt(guard.count, MAX_DENIED);
    guard.handlers[guard.count++] = *handler;
    return UINT64_C(1) << 60;
}

static void guard_cancel(struct transport *transport, uint64_t id)
{
    (void)transport;
    transport_cancel(api_server_transport(server), id);
}

static int guard_poll(struct transport *transport, struct pollfd *extra, size_t count,
                      int64_t timeout_ms)
{
    (void)transport;
    if (guard.fresh && guard.burst_count < sizeof guard.bursts / sizeof *guard.bursts)
        guard.bursts[guard.burst_count++] = guard.fresh;
    guard.fresh = 0;
    while (guard.count) {
        struct http_handler handler = guard.handlers[--guard.count];
        struct http_reply reply = { .status = guard.status,
                                    .retry_after_ms = -1,
                                    .body = guard.answer,
                                    .body_length = strlen(guard.answer) };
        handler.on_done(handler.context, &reply);
    }
    return transport_poll(api_server_transport(server), extra, count, timeout_ms);
}

static void guard_free(struct transport *transport)
{
    (void)transport;
}

static const struct transport_ops guard_ops = { guard_start, guard_cancel, guard_poll,
                                                guard_free };

static void deny(const char *part)
{
    guard.denied = part;
    guard.status = 403;
    guard.answer = "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"is "
                   "forbidden\",\"reason\":\"Forbidden\",\"code\":403}";
}

/* ---- running the program ---- */

static char login[1024]; /* how the last run would have logged in */

static int connect_to(void *context, const struct htj_options *options,
                      struct htj_link *ret, struct het_error *error)
{
    (void)context;
    size_t length = 0;
    login[0] = '\0';
    for (size_t i = 0; i < options->login_count; i++)
        length += (size_t)snprintf(login + length, sizeof login - length, "%s=%s ",
                                   options->login[i].name, options->login[i].value);
    if (!strcmp(login, "kubeconfig=missing "))
        return het_fail(error, HET_BAD_INPUT, "missing: no such file or directory");
    *ret = (struct htj_link){ .transport = &guard.transport,
                              .ns = options->ns ? options->ns : "default" };
    return 0;
}

static int64_t now_ms(void *context)
{
    (void)context;
    api_server_advance(server, api_server_now_ms(server) + 10);
    return api_server_now_ms(server);
}

static int64_t wall_ms(void *context)
{
    (void)context;
    return api_server_now_ms(server);
}

/* Runs with these words after the program's name; what it printed is in `out`, `err`. */
static int run_as(const char *program, const char *const *words)
{
    char *arguments[32] = { xstrdup(program) };
    int count = 1;
    size_t lengths[2];
    free(out);
    free(err);
    for (; words[count - 1]; count++)
        arguments[count] = xstrdup(words[count - 1]);
    struct htj_host host = { .out = open_memstream(&out, &lengths[0]),
                             .err = open_memstream(&err, &lengths[1]),
                             .width = 80,
                             .connect = connect_to,
                             .now_ms = now_ms,
                             .wall_ms = wall_ms };
    int code = htj_main(count, arguments, &host);
    fclose(host.out);
    fclose(host.err);
    while (count)
        free(arguments[--count]);
    return code;
}
#define run(...)                                                                         \
    run_as("/usr/bin/kubectl-htj", (const char *const[]){ __VA_ARGS__, NULL })

static void check_text(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
}

static void check_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "'%s' in:\n%s", part, text);
}

static void check_width(const char *text, size_t width)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        ck_assert_msg(strcspn(line, "\n") <= width, "too long: %.*s",
                      (int)strcspn(line, "\n"), line);
}

/* ---- what there is ---- */

static void put(json_t *object)
{
    struct het_error error = { 0 };
    ck_assert_msg(api_server_put(server, object, &error) == 0, "%s", error.message);
}

static json_t *read_example(const char *path)
{
    json_t *json;
    struct het_error error;
    ck_assert_msg(het_read_file(path, &json, &error) == 0, "%s", error.message);
    return json;
}

static json_t *find_job(const char *name)
{
    json_t *job = api_server_find(server, "heterotrainingjobs", "default", name);
    ck_assert_ptr_nonnull(job);
    return job;
}

/* The job of the example, as `name`, with `status` and `spec` merged into it. */
static void put_job(const char *name, const char *spec, const char *status)
{
    json_t *job = read_example(EXAMPLES "opt-350-small-job.yaml");
    json_auto_t *more = quoted("{'spec': %s}", spec);
    json_object_set_new(json_object_get(job, "metadata"), "name", json_string(name));
    json_object_set_new(json_object_get(job, "metadata"), "namespace",
                        json_string("default"));
    json_object_update_recursive(job, more);
    json_object_set_new(job, "status", quoted("%s", status));
    put(job);
}

/* Its plan, as `plan` prints it, as what generation `generation` runs. */
static void give_plan(const char *name, int generation)
{
    struct het_arena *arena = het_arena_new();
    const struct het_plan *plan;
    struct het_error error;
    ck_assert_msg(run("plan", name, "-o", "json") == 0, "%s", err);
    json_auto_t *json = json_loads(out, 0, NULL);
    ck_assert_msg(het_plan_json_read(arena, json, &plan, &error) == 0, "%s",
                  error.message);
    const char *hash = het_plan_json_hash(arena, plan);
    json_t *map = quoted(
        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '%s-plan-%d', "
        "'namespace': 'default', 'labels': {'heterotrain.io/job-name': '%s', "
        "'heterotrain.io/plan-revision': '%d', 'app.kubernetes.io/managed-by': "
        "'heterotrain'}, 'annotations': {'heterotrain.io/trigger': 'JobCreated', "
        "'heterotrain.io/computed-at': '2026-01-01T00:00:0%dZ', "
        "'heterotrain.io/plan-hash': '%s'}, 'ownerReferences': [{'apiVersion': "
        "'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', 'name': '%s', 'uid': "
        "'%s', 'controller': true}]}, 'immutable': true}",
        name, generation, name, generation, generation, hash, name,
        kube_uid(find_job(name)));
    auto_free char *text = het_json_canonical(json);
    json_object_set_new(map, "data", json_pack("{s:s}", "plan.json", text));
    put(map);
    json_t *job = json_deep_copy(find_job(name));
    json_object_set_new(json_object_get(job, "status"), "plan",
                        json_pack("{s:i, s:s, s:s}", "revision", generation, "hash", hash,
                                  "summary", het_render_summary(arena, plan)));
    put(job);
    het_arena_free(arena);
}

static void setup(void)
{
    server = api_server_new(1);
    guard.transport.ops = &guard_ops;
    guard.denied = NULL;
    guard.fresh = guard.burst_count = 0;
    json_auto_t *nodes = read_example(EXAMPLES "nodes-mixed.json");
    json_t *items = json_object_get(nodes, "items");
    for (size_t i = 0; i < json_array_size(items); i++)
        put(json_deep_copy(json_array_get(items, i)));
    json_t *profile = read_example(EXAMPLES "opt-350-profile.yaml");
    json_object_set_new(json_object_get(profile, "metadata"), "namespace",
                        json_string("default"));
    put(profile);
    put(read_example(EXAMPLES "hardware-configmap.yaml"));
    put_job("train", "{}", "{}");
}

static void teardown(void)
{
    api_server_free(server);
    free(out);
    free(err);
    out = err = NULL;
}

static uint64_t writes(void)
{
    return api_server_statistics(server).writes;
}

/* ---- plan ---- */

START_TEST(plan_is_shown_and_nothing_is_written)
{
    uint64_t before = writes();
    ck_assert_msg(run("plan", "train") == 0, "%s", err);
    check_text(out, "s a step");
    check_text(out, "A100-SXM4-40GB");
    check_width(out, 80);
    ck_assert_str_eq(err, "");
    ck_assert_int_eq(run("plan", "htj/train", "--output=json"), 0);
    json_auto_t *plan = json_loads(out, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(plan, "kind")), "Plan");
    ck_assert_uint_eq(writes(), before);
}
END_TEST

START_TEST(plan_of_a_file_needs_no_job)
{
    ck_assert_msg(run("plan", "-f", EXAMPLES "opt-350-small-job.yaml") == 0, "%s", err);
    check_text(out, "s a step");
    ck_assert_int_eq(run("plan", EXAMPLES "opt-350-small-job.yaml", "-n", "other"), 2);
    check_text(err, "there is no profile"); /* in that namespace */
    ck_assert_int_eq(run("plan", "-f", EXAMPLES "opt-350-profile.yaml"), 2);
    check_text(err, "must be a HeteroTrainingJob with a name");
    ck_assert_int_eq(run("plan", "train", "-f", EXAMPLES "opt-350-small-job.yaml"), 2);
}
END_TEST

/* The first answer says that we are logged in; what else is needed is asked at once. */
START_TEST(plan_asks_for_several_things_at_once)
{
    ck_assert_int_eq(run("plan", "train"), 0);
    ck_assert_uint_eq(guard.bursts[0], 1); /* the job */
    /* settings, hardware, pods, nodes, plans, jobs, profile */
    ck_assert_uint_eq(guard.bursts[1], 7);
    ck_assert_uint_eq(guard.burst_count, 2);
    guard.burst_count = 0;
    ck_assert_int_eq(run("plan", "-f", EXAMPLES "opt-350-small-job.yaml"), 0);
    ck_assert_uint_eq(guard.bursts[0], 1); /* settings */
    ck_assert_uint_eq(guard.bursts[1], 6);
}
END_TEST

START_TEST(plan_is_compared_with_the_one_there_is)
{
    give_plan("train", 3);
    ck_assert_int_eq(run("plan", "train"), 0);
    check_text(out, "This is the plan that the job has (revision 3).");
    json_t *job = json_deep_copy(find_job("train"));
    json_object_set_new(json_object_get(json_object_get(job, "spec"), "resources"),
                        "maxGPUs", json_integer(2));
    put(job);
    ck_assert_msg(run("plan", "train") == 0, "%s", err);
    check_text(out, "The plan that the job has (revision 3) cannot run on these GPUs.");
}
END_TEST

START_TEST(plan_says_what_does_not_fit)
{
    put_job("large", "{'resources': {'minGPUs': 4096, 'maxGPUs': 4096}}", "{}");
    ck_assert_int_eq(run("plan", "large"), 1);
    ck_assert_str_eq(out, "");
    check_text(err, "kubectl htj plan: ");
}
END_TEST

START_TEST(plan_needs_to_know_who_has_which_gpus)
{
    deny("/api/v1/pods");
    ck_assert_int_eq(run("plan", "train"), 3);
    check_text(err, "no right to list pods; see `kubectl auth can-i list pods "
                    "--all-namespaces`");
    deny("/api/v1/nodes");
    ck_assert_int_eq(run("plan", "train"), 3);
    check_text(err, "no right to list nodes; see `kubectl auth can-i list nodes`");
    deny("/api/v1/configmaps");
    ck_assert_int_eq(run("plan", "train"), 0);
    check_text(err, "note: GPUs that jobs of other namespaces have reserved");
}
END_TEST

START_TEST(hardware_settings_are_those_of_the_installation)
{
    ck_assert_int_eq(run("plan", "train", "--hardware-configmap", "default/none"), 2);
    check_text(err, "there is no ConfigMap default/none");
    ck_assert_int_eq(run("plan", "train", "--hardware-configmap", "none"), 2);
    ck_assert_int_eq(run("plan", "train", "-o", "json"), 0);
    auto_free char *before = xstrdup(out);
    deny("configmaps/heterotrain-hardware");
    ck_assert_int_eq(run("plan", "train", "-o", "json"), 0);
    check_text(err, "note: the installation's settings (heterotrain-system/"
                    "heterotrain-hardware) are not looked at");
    guard.denied = NULL;
    put(quoted(
        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
        "'heterotrain-hardware', 'namespace': 'heterotrain-system'}, 'data': "
        "{'hardware.json': '{\\\"gpuTypes\\\":[{\\\"name\\\":\\\"A100-SXM4-40GB\\\","
        "\\\"workspaceGiB\\\":39}]}'}}"));
    ck_assert_int_eq(run("plan", "train", "-o", "json"), 0);
    ck_assert_str_ne(out, before); /* nothing fits on an A100 now */
    check_lacks(out, "A100-SXM4-40GB\",\"gpus\":[");
}
END_TEST

START_TEST(settings_are_those_of_the_installation)
{
    put(quoted(
        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
        "'heterotrain-config', 'namespace': 'heterotrain-system'}, 'data': "
        "{'config.json': '{\\\"leavingAnnotations\\\":[\\\"example.org/going\\\"]}'"
        "}}"));
    ck_assert_msg(run("plan", "train") == 0, "%s", err);
    for (size_t i = 0; i < api_server_count(server, "nodes"); i++) {
        json_t *node = json_deep_copy(api_server_at(server, "nodes", i));
        json_object_set_new(json_object_get(node, "metadata"), "annotations",
                            quoted("{'example.org/going': 'soon'}"));
        put(node);
    }
    ck_assert_int_eq(run("plan", "train"), 1);
    check_text(err, "nodes Leaving");
    ck_assert_int_eq(run("plan", "train", "--config-configmap", "default/none"), 2);
    ck_assert_int_eq(run("plan", "train", "--config-configmap",
                         "heterotrain-system/heterotrain-hardware"),
                     2);
    check_text(err, "ConfigMap heterotrain-hardware: there is no data.config.json");
    ck_assert_int_eq(run("plan", "train", "--config", EXAMPLES "hardware.json"), 2);
    check_text(err, EXAMPLES "hardware.json");
}
END_TEST

/* ---- explain, timeline ---- */

START_TEST(explain_says_what_bounds_the_plan)
{
    give_plan("train", 1);
    ck_assert_msg(run("explain", "train", "--no-search") == 0, "%s", err);
    check_text(out, "plan revision 1: ");
    check_width(out, 80);
    ck_assert_msg(run("explain", "train", "--no-search", "-ojson") == 0, "%s", err);
    json_auto_t *json = json_loads(out, 0, NULL);
    ck_assert(json_number_value(json_object_get(json, "iterationSeconds")) > 0);
}
END_TEST

START_TEST(explain_needs_no_more_than_the_plan)
{
    give_plan("train", 1);
    deny("/api/v1/nodes");
    ck_assert_msg(run("explain", "train", "--no-search") == 0, "%s", err);
    check_text(err, "note: only the GPUs of the plan are looked at: no right to list "
                    "nodes");
    guard.denied = NULL;
    for (size_t i = api_server_count(server, "nodes"); i-- > 0;)
        api_server_drop(server, "nodes", "",
                        kube_name(api_server_at(server, "nodes", i)));
    ck_assert_msg(run("explain", "train", "--no-search") == 0, "%s", err);
}
END_TEST

START_TEST(timeline_is_text_picture_or_trace)
{
    give_plan("train", 1);
    ck_assert_msg(run("timeline", "train") == 0, "%s", err);
    check_text(out, "plan revision 1: ");
    check_width(out, 80);
    ck_assert_int_eq(run("timeline", "train", "--svg"), 0);
    ck_assert_int_eq(strncmp(out, "<svg", 4), 0);
    check_text(out, "</svg>");
    ck_assert_int_eq(run("timeline", "--output", "trace", "train"), 0);
    json_auto_t *trace = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json_object_get(trace, "traceEvents"));
}
END_TEST

START_TEST(plan_that_is_not_there_is_said_to_be_so)
{
    put_job("waits", "{}",
            "{'conditions': [{'type': 'Accepted', 'status': 'True'}, {'type': "
            "'PlanFeasible', 'status': 'False', 'reason': 'NoPlanFits', 'message': 'too "
            "few GPUs'}]}");
    ck_assert_int_eq(run("explain", "waits"), 1);
    check_text(err, "job default/waits has no plan yet: NoPlanFits: too few GPUs");
    ck_assert_int_eq(run("timeline", "train"), 1);
    check_text(err, "does the controller run?");
    ck_assert_int_eq(run("timeline", "train", "--candidate"), 1);
    check_text(err, "job default/train shows no candidate");
    give_plan("train", 2);
    ck_assert_int_eq(run("timeline", "train", "--revision", "1"), 2);
    check_text(err, "job default/train has no plan of revision 1: history lists");
    ck_assert_int_eq(run("explain", "nobody"), 2);
    check_text(err, "there is no HeteroTrainingJob default/nobody");
}
END_TEST

START_TEST(forged_plan_is_no_plan)
{
    give_plan("train", 1);
    json_t *map =
        json_deep_copy(api_server_find(server, "configmaps", "default", "train-plan-1"));
    json_object_set_new(json_object_get(map, "data"), "plan.json", json_string("{}"));
    api_server_drop(server, "configmaps", "default", "train-plan-1");
    put(map);
    ck_assert_int_eq(run("explain", "train"), 2);
    check_text(err, "ConfigMap default/train-plan-1 is no plan as the controller");
}
END_TEST

/* ---- history, status ---- */

static void put_event(const char *name, const char *uid, const char *time,
                      const char *note)
{
    put(quoted("{'apiVersion': 'events.k8s.io/v1', 'kind': 'Event', 'metadata': {'name': "
               "'%s', 'namespace': 'default'}, 'eventTime': '%s', 'reason': "
               "'ReplanTriggered', 'type': 'Normal', 'action': 'Plan', "
               "'reportingController': 'x', 'reportingInstance': 'x', 'note': '%s', "
               "'regarding': {'kind': 'HeteroTrainingJob', 'namespace': 'default', "
               "'name': 'train', 'uid': '%s'}}",
               name, time, note, uid));
}

START_TEST(history_has_plans_decisions_and_events)
{
    give_plan("train", 1);
    give_plan("train", 2);
    const char *uid = kube_uid(find_job("train"));
    put_event("late", uid, "2026-01-01T00:00:09.000000Z", "second \\u001b[31mred");
    put_event("early", uid, "2026-01-01T00:00:05.000000Z", "first");
    put_event("other", "of-another-job", "2026-01-01T00:00:07.000000Z", "not mine");
    json_t *job = json_deep_copy(find_job("train"));
    json_object_set_new(
        json_object_get(job, "status"), "lastReplanDecision",
        quoted("{'time': '2026-01-01T00:00:08Z', 'trigger': 'CapacityFreed', 'result': "
               "'Rejected', 'reason': 'BelowThreshold', 'candidateHash': '" HASH "', "
               "'currentIterationMilliseconds': 2000, 'candidateIterationMilliseconds': "
               "1900, 'gainPercent': 5, 'benefitSeconds': 180, 'horizonSeconds': 3600, "
               "'costSeconds': 70}"));
    put(job);
    ck_assert_msg(run("history", "train") == 0, "%s", err);
    check_text(out, "1    2026-01-01T00:00:01Z  JobCreated  ");
    check_text(out, "2    2026-01-01T00:00:02Z  JobCreated  ");
    check_text(out, "2026-01-01T00:00:08Z: Rejected (BelowThreshold), because of ");
    check_text(out, "(+5 %)");
    ck_assert(strstr(out, "first") < strstr(out, "second"));
    check_text(out, "second ?[31mred"); /* it cannot colour the terminal */
    check_lacks(out, "not mine");
    check_width(out, 80);
    ck_assert_int_eq(run("history", "train", "-o", "json"), 0);
    json_auto_t *json = json_loads(out, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "plans")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "events")), 2);
    deny("/events");
    ck_assert_int_eq(run("history", "train"), 0);
    check_text(err, "note: events are not shown: no right to list events.events.k8s.io "
                    "in namespace default");
}
END_TEST

START_TEST(status_tells_where_a_job_stands)
{
    put_job("runs", "{'replanPolicy': {'mode': 'Manual'}}",
            "{'conditions': [{'type': 'Running', 'status': 'True', 'reason': "
            "'AllPodsReady', 'message': 'all 4 pods of a revision that has been going "
            "for a while now run, and are ready', 'lastTransitionTime': "
            "'2026-01-01T00:00:00Z'}], 'pods': {'desired': 4, 'running': 4}, "
            "'allocation': [{'gpuType': 'A100', 'gpus': 8, 'nodes': 1}], 'unusedGPUs': [{"
            "'reason': 'NodeNotReady', 'gpuType': 'V100', 'gpus': 24, 'nodeCount': 3, "
            "'nodes': ['v-0', 'v-1'], 'message': 'the node is not ready'}, {'reason': "
            "'NoGPULabel', 'gpus': 2, 'nodeCount': 1, 'nodes': ['x-0'], 'message': 'no "
            "label says what they are'}], 'candidate': "
            "{'hash': '" HASH "', 'summary': 'A100x16:tp1', 'predicted': "
            "{'iterationMilliseconds': 1500}}}");
    ck_assert_msg(run("status", "runs") == 0, "%s", err);
    check_text(out, "job        default/runs: Running\n");
    check_text(out, "GPUs       8 A100 on 1 node\n");
    check_text(out, "unused     24 V100 on v-0, v-1 and 1 more: the node is not ready "
                    "(NodeNotReady)\n"
                    "           2 on x-0: no label says what they are (NoGPULabel)\n");
    check_text(out, "pods       4 running of 4\n");
    check_text(out, "candidate  A100x16:tp1, 1.5 s a step\n"
                    "           sha256:0123456789abcdef\n"
                    "           kubectl htj approve runs sha256:0123456789abcdef -n "
                    "default\n");
    check_width(out, 80);
    check_text(out, "Running    True  2026-01-01T00:00:00Z  AllPodsReady: all 4 pods");
    ck_assert_int_eq(run("status", "train"), 0);
    check_text(out, "does the controller run?");
    ck_assert_int_eq(run("status", "runs", "-o", "json"), 0);
    json_auto_t *status = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json_object_get(status, "candidate"));
}
END_TEST

/* ---- approve, suspend, resume ---- */

#define WAITING                                                                          \
    "{'candidate': {'hash': '" HASH "', 'summary': 'A100x16:tp1', 'predicted': "         \
    "{'iterationMilliseconds': 1500}}}"
#define MANUAL "{'replanPolicy': {'mode': 'Manual'}}"

static const char *approval(const char *name)
{
    return object_text(find_job(name), "spec.replanPolicy.approvedPlanHash");
}

START_TEST(approval_is_of_what_is_shown)
{
    put_job("manual", MANUAL, WAITING);
    ck_assert_msg(run("approve", "manual") == 0, "%s", err);
    ck_assert_str_eq(approval("manual"), HASH);
    check_text(out, "heterotrainingjob.heterotrain.io/manual approved: " HASH);
    check_text(out, "A100x16:tp1, 1.5 s a step");
}
END_TEST

START_TEST(approval_of_another_plan_is_refused)
{
    put_job("manual", MANUAL, WAITING);
    ck_assert_int_eq(run("approve", "manual", "sha256:fffffff0"), 1);
    check_text(err, "the plan that waits is another one by now: " HASH);
    ck_assert_int_eq(run("approve", "manual", "0123"), 2);
    ck_assert_int_eq(run("approve", "manual", "not-a-hash"), 2);
    ck_assert_str_eq(approval("manual"), "");
    ck_assert_int_eq(run("approve", "manual", "01234567"), 0);
    ck_assert_str_eq(approval("manual"), HASH);
}
END_TEST

/* Somebody changes the job between the reading and the writing. */
static int meddlings;
static enum api_server_fault meddle(void *context, const struct api_server_call *call)
{
    (void)context;
    if (strcmp(call->method, "PATCH") != 0 || meddlings == 0)
        return API_SERVER_NO_FAULT;
    meddlings--;
    json_t *job = json_deep_copy(find_job("manual"));
    json_object_set_new(
        json_object_get(json_object_get(job, "status"), "candidate"), "hash",
        json_string("sha256:abababababababababababababababababababababababababababababab"
                    "abab"));
    put(job);
    return API_SERVER_NO_FAULT;
}

START_TEST(plan_that_changes_meanwhile_is_not_approved)
{
    put_job("manual", MANUAL, WAITING);
    meddlings = 1;
    api_server_set_faults(server, meddle, NULL);
    ck_assert_int_eq(run("approve", "manual", "01234567"), 1);
    check_text(err, "another one by now: sha256:abab");
    ck_assert_str_eq(approval("manual"), "");
    ck_assert_int_eq(meddlings, 0);
}
END_TEST

START_TEST(nothing_to_approve_is_explained)
{
    put_job("manual", MANUAL,
            "{'conditions': [{'type': 'PlanOutdated', 'status': 'False', 'reason': "
            "'UpToDate', 'message': 'the plan is for the GPUs there are'}]}");
    ck_assert_int_eq(run("approve", "manual"), 1);
    check_text(err, "waits for approval: the plan is for the GPUs there are");
    ck_assert_int_eq(run("approve", "train"), 1);
    check_text(err, "spec.replanPolicy.mode is Automatic, not Manual");
    uint64_t before = writes();
    put_job("dry", MANUAL, WAITING);
    json_t *job = json_deep_copy(find_job("dry"));
    object_set(job, "spec.planOnly", json_true());
    put(job);
    ck_assert_int_eq(run("approve", "dry"), 1);
    check_text(err, "set spec.planOnly to false to let it run");
    ck_assert_uint_eq(writes(), before);
}
END_TEST

static bool is_suspended(const char *name)
{
    return json_is_true(
        json_object_get(json_object_get(find_job(name), "spec"), "suspend"));
}

START_TEST(jobs_are_suspended_and_resumed)
{
    put_job("second", "{}", "{}");
    ck_assert_int_eq(run("suspend", "train", "second"), 0);
    ck_assert_str_eq(out, "heterotrainingjob.heterotrain.io/train suspended\n"
                          "heterotrainingjob.heterotrain.io/second suspended\n");
    ck_assert(is_suspended("train") && is_suspended("second"));
    uint64_t before = writes();
    ck_assert_int_eq(run("suspend", "train"), 0);
    check_text(out, "suspended (unchanged)");
    ck_assert_uint_eq(writes(), before);
    ck_assert_int_eq(run("resume", "nobody", "second", "noone"), 2);
    check_text(err, "there is no HeteroTrainingJob default/nobody");
    check_text(err, "there is no HeteroTrainingJob default/noone");
    ck_assert(!is_suspended("second"));
    deny("/heterotrainingjobs/");
    ck_assert_int_eq(run("resume", "train"), 3);
    check_text(err, "no right to get heterotrainingjobs.heterotrain.io in namespace "
                    "default; see `kubectl auth can-i get "
                    "heterotrainingjobs.heterotrain.io -n default`");
}
END_TEST

/* ---- words ---- */

START_TEST(wrong_words_are_refused)
{
    ck_assert_int_eq(run("frobnicate"), 2);
    check_text(err, "no command \"frobnicate\"");
    check_text(err, "Usage: kubectl htj COMMAND");
    ck_assert_int_eq(run("plan"), 2);
    check_text(err, "the name of a job is missing");
    ck_assert_int_eq(run("plan", "train", "second"), 2);
    check_text(err, "unexpected word \"second\"");
    ck_assert_int_eq(run("plan", "train", "--svg"), 2);
    check_text(err, "no option --svg");
    ck_assert_int_eq(run("plan", "train", "-o"), 2);
    ck_assert_int_eq(run("plan", "train", "-o", "svg"), 2);
    check_text(err, "--output svg: must be one of: table json");
    ck_assert_int_eq(run("explain", "train", "--revision", "0"), 2);
    ck_assert_int_eq(run("explain", "train", "--candidate=yes"), 2);
    ck_assert_int_eq(run("plan", "train", "--kubeconfig", "missing"), 2);
    check_text(err, "no such file or directory");
}
END_TEST

START_TEST(logging_in_is_left_to_kubectl)
{
    ck_assert_int_eq(run("status", "--context", "research", "train", "--as=alice",
                         "--as-group=a", "--as-group", "b", "-s", "https://e"),
                     0);
    ck_assert_str_eq(login,
                     "context=research as=alice as-group=a as-group=b server=https://e ");
    const char *words[2 + HTJ_MAX_LOGIN + 1] = { "status", "train" };
    for (size_t i = 2; i < 2 + HTJ_MAX_LOGIN; i++)
        words[i] = "--as-group=g";
    ck_assert_int_eq(run_as("kubectl-htj", words), 0);
    words[1] = "--as-group=g";
    ck_assert_int_eq(run_as("kubectl-htj", words), 2);
    check_text(err, "--as-group: too many options");
}
END_TEST

START_TEST(every_command_has_help_of_80_columns)
{
    static const char *const names[] = { "status",   "plan",    "explain",
                                         "timeline", "history", "approve",
                                         "suspend",  "resume",  "completion" };
    ck_assert_int_eq(run("--help"), 0);
    check_width(out, 80);
    auto_free char *usage = xstrdup(out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_text(usage, names[i]);
        ck_assert_int_eq(run(names[i], "--help"), 0);
        check_text(out, "Usage: kubectl htj ");
        check_text(out, "--help");
        check_width(out, 80);
    }
    ck_assert_int_eq(run("help", "approve"), 0);
    check_text(out, "JOB [HASH]");
}
END_TEST

START_TEST(words_are_completed)
{
    put_job("second", MANUAL, WAITING);
    ck_assert_int_eq(run("__complete", "sus"), 0);
    ck_assert_str_eq(out, "suspend\tstop jobs and free their GPUs\n:4\n");
    ck_assert_int_eq(run("__complete", "explain", ""), 0);
    ck_assert_str_eq(out, "second\ntrain\n:4\n");
    ck_assert_int_eq(run("__complete", "suspend", "second", ""), 0);
    ck_assert_str_eq(out, "train\n:4\n");
    ck_assert_int_eq(run("__complete", "plan", "tr"), 0);
    ck_assert_str_eq(out, "train\n:0\n"); /* or a file */
    ck_assert_int_eq(run("__complete", "approve", "second", ""), 0);
    ck_assert_str_eq(out, HASH "\tA100x16:tp1\n:4\n");
    ck_assert_int_eq(run("__complete", "timeline", "train", "-o", ""), 0);
    ck_assert_str_eq(out, "text\nsvg\ntrace\n:4\n");
    ck_assert_int_eq(run("__complete", "timeline", "--sv"), 0);
    ck_assert_str_eq(out, "--svg\tThe same as --output svg\n:4\n");
    ck_assert_int_eq(run("__complete", "plan", "-f", ""), 0);
    ck_assert_str_eq(out, ":0\n");
    ck_assert_int_eq(run("__complete", "explain", "-n", "kube-", ""), 0);
    ck_assert_int_eq(run("__complete", "completion", "z"), 0);
    ck_assert_str_eq(out, "zsh\n:4\n");
    ck_assert_int_eq(run("__complete", "frobnicate", ""), 0);
    ck_assert_str_eq(out, ":4\n");
    deny("/heterotrainingjobs");
    ck_assert_int_eq(run_as("/usr/bin/kubectl_complete-htj",
                            (const char *const[]){ "explain", "", NULL }),
                     0);
    ck_assert_str_eq(out, ":4\n");
    ck_assert_str_eq(err, "");
}
END_TEST

START_TEST(shells_get_their_scripts)
{
    static const char *const names[] = { "bash", "zsh", "fish" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(run("completion", names[i]), 0);
        check_text(out, "kubectl-htj __complete");
    }
    ck_assert_int_eq(run("completion", "tcsh"), 2);
    check_text(err, "bash, zsh or fish");
}
END_TEST

/* ---- tables ---- */

static char *print_table(int width, const char *last)
{
    static const char *const headings[] = { "NAME", "WHY", NULL };
    struct het_arena *arena = het_arena_new();
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct text_table *table = text_table_new(arena, headings);
    text_table_add(table, (const char *const[]){ "w\xc3\xa4re", last });
    text_table_add(table, (const char *const[]){ NULL, "" });
    text_table_print(table, file, width);
    fclose(file);
    het_arena_free(arena);
    return text;
}

START_TEST(last_column_is_broken_between_words)
{
    auto_free char *text = print_table(28, "one two three four five");
    ck_assert_str_eq(text, "NAME  WHY\n"
                           "w\xc3\xa4re  one two three four\n"
                           "      five\n"
                           "-\n");
    auto_free char *below = print_table(20, "one two three four five");
    ck_assert_str_eq(below, "NAME  WHY\n"
                            "w\xc3\xa4re\n"
                            "    one two three\n"
                            "    four five\n"
                            "-\n");
    auto_free char *safe = print_table(80, "a\x1b[2Jb\nc\td\xc2\x9b");
    check_text(safe, "a?[2Jb c d??");
}
END_TEST

Suite *test_commands_suite(void)
{
    Suite *suite = suite_create("commands");
    TCase *tests = tcase_create("htj");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, plan_is_shown_and_nothing_is_written);
    tcase_add_test(tests, plan_of_a_file_needs_no_job);
    tcase_add_test(tests, plan_asks_for_several_things_at_once);
    tcase_add_test(tests, plan_is_compared_with_the_one_there_is);
    tcase_add_test(tests, plan_says_what_does_not_fit);
    tcase_add_test(tests, plan_needs_to_know_who_has_which_gpus);
    tcase_add_test(tests, hardware_settings_are_those_of_the_installation);
    tcase_add_test(tests, settings_are_those_of_the_installation);
    tcase_add_test(tests, explain_says_what_bounds_the_plan);
    tcase_add_test(tests, explain_needs_no_more_than_the_plan);
    tcase_add_test(tests, timeline_is_text_picture_or_trace);
    tcase_add_test(tests, plan_that_is_not_there_is_said_to_be_so);
    tcase_add_test(tests, forged_plan_is_no_plan);
    tcase_add_test(tests, history_has_plans_decisions_and_events);
    tcase_add_test(tests, status_tells_where_a_job_stands);
    tcase_add_test(tests, approval_is_of_what_is_shown);
    tcase_add_test(tests, approval_of_another_plan_is_refused);
    tcase_add_test(tests, plan_that_changes_meanwhile_is_not_approved);
    tcase_add_test(tests, nothing_to_approve_is_explained);
    tcase_add_test(tests, jobs_are_suspended_and_resumed);
    tcase_add_test(tests, wrong_words_are_refused);
    tcase_add_test(tests, logging_in_is_left_to_kubectl);
    tcase_add_test(tests, every_command_has_help_of_80_columns);
    tcase_add_test(tests, words_are_completed);
    tcase_add_test(tests, shells_get_their_scripts);
    tcase_add_test(tests, last_column_is_broken_between_words);
    suite_add_tcase(suite, tests);
    return suite;
}
