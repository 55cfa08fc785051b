/* The embedded API server as its client sees it. */
#include "controller/simulate/api_server/api_server.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"
#include "tests/controller/api.h"

#include <check.h>
#include <string.h>

#define PODS  "/api/v1/namespaces/default/pods"
#define MAPS  "/api/v1/namespaces/default/configmaps"
#define JOBS  "/apis/heterotrain.io/v1alpha1/namespaces/default/heterotrainingjobs"
#define JSON  "application/json"
#define MERGE "application/merge-patch+json"
#define APPLY "application/apply-patch+yaml"

static struct api_server *server;
static struct transport *client;

static void setup(void)
{
    server = api_server_new(1);
    client = api_server_transport(server);
}

static void teardown(void)
{
    api_server_free(server);
}

static json_t *a_map(const char *name, const char *value)
{
    return quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': '%s', "
                  "'labels': {'v': '%s'}}, 'data': {'v': '%s'}}",
                  name, value, value);
}

static json_t *a_pod(const char *name)
{
    return quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s'}, "
                  "'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}",
                  name);
}

static json_t *a_job(const char *name, int size)
{
    return quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s'}, 'spec': {'size': %d}}",
        name, size);
}

static void put(json_t *object)
{
    struct het_error err = { 0 };
    ck_assert_msg(api_server_put(server, object, &err) == 0, "%s", err.message);
}

static void bind(const char *pod, const char *node)
{
    json_t *bound = json_deep_copy(api_server_find(server, "pods", "default", pod));
    object_set(bound, "spec.nodeName", json_string(node));
    put(bound);
}

static void advance_s(int64_t seconds)
{
    api_server_advance(server, api_server_now_ms(server) + seconds * 1000);
    transport_poll(client, NULL, 0, 0);
}

#define check_status(reply, code, why)                                                   \
    do {                                                                                 \
        ck_assert_msg((reply).status == (code), "%d %s", (reply).status, (reply).body);  \
        ck_assert_str_eq(object_text((reply).json, "reason"), why);                      \
        ck_assert_str_eq(object_text((reply).json, "kind"), "Status");                   \
        ck_assert_int_eq(object_integer((reply).json, "code", 0), code);                 \
    } while (0)

/* ---- one object ---- */

START_TEST(a_created_object_can_be_read_and_is_stamped)
{
    auto_reply made = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
    ck_assert_int_eq(made.status, 201);
    ck_assert_str_eq(object_text(made.json, "metadata.namespace"), "default");
    ck_assert_str_eq(object_text(made.json, "metadata.creationTimestamp"),
                     "2026-01-01T00:00:00Z");
    ck_assert_uint_eq(strlen(object_text(made.json, "metadata.uid")), 36);
    auto_reply read = api_get(client, MAPS "/m");
    ck_assert_int_eq(read.status, 200);
    ck_assert(json_equal(read.json, made.json));
}
END_TEST

START_TEST(two_servers_with_one_seed_answer_with_the_same_bytes)
{
    struct api_server *other = api_server_new(1);
    auto_reply here = api_call(client, "POST", JSON, a_pod("p"), PODS);
    auto_reply there =
        api_call(api_server_transport(other), "POST", JSON, a_pod("p"), PODS);
    ck_assert_str_eq(here.body, there.body);
    api_server_free(other);
}
END_TEST

START_TEST(refusals_read_like_those_of_a_real_server)
{
    auto_reply missing = api_get(client, PODS "/x");
    check_status(missing, 404, "NotFound");
    ck_assert_str_eq(object_text(missing.json, "message"), "pods \"x\" not found");
    ck_assert_str_eq(object_text(missing.json, "details.kind"), "pods");

    auto_reply job = api_get(client, JOBS "/x");
    ck_assert_str_eq(object_text(job.json, "message"),
                     "heterotrainingjobs.heterotrain.io \"x\" not found");

    auto_reply path = api_get(client, "/api/v1/nonsense");
    check_status(path, 404, "NotFound");

    auto_reply first = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
    auto_reply again = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
    check_status(again, 409, "AlreadyExists");
    ck_assert_str_eq(object_text(again.json, "message"),
                     "configmaps \"m\" already exists");

    auto_reply bad = api_call(client, "POST", JSON, a_map("Bad", "1"), MAPS);
    check_status(bad, 422, "Invalid");
    const json_t *cause = json_array_get(object_at(bad.json, "details.causes"), 0);
    ck_assert_str_eq(object_text(cause, "field"), "metadata.name");

    auto_reply nowhere = api_call(client, "POST", JSON, a_map("m", "1"),
                                  "/api/v1/namespaces/none/configmaps");
    check_status(nowhere, 404, "NotFound");
    ck_assert_str_eq(object_text(nowhere.json, "message"),
                     "namespaces \"none\" not found");

    auto_reply kind = api_call(client, "POST", JSON, a_pod("p"), MAPS);
    check_status(kind, 400, "BadRequest");

    auto_reply text = api_call(client, "POST", JSON, json_string("x"), MAPS);
    check_status(text, 400, "BadRequest");

    auto_reply method = api_call(client, "POST", JSON, a_map("q", "1"), MAPS "/q");
    check_status(method, 405, "MethodNotAllowed");
}
END_TEST

START_TEST(bodies_and_objects_have_limits)
{
    json_t *map = a_map("m", "1");
    char *big = xmalloc((3 << 20) + 1);
    memset(big, 'x', 3 << 20);
    big[3 << 20] = '\0';
    object_set(map, "data.big", json_string(big));
    auto_reply huge = api_call(client, "POST", JSON, map, MAPS);
    check_status(huge, 413, "RequestEntityTooLarge");

    big[(1 << 20) + 1] = '\0';
    map = a_map("m", "1");
    object_set(map, "data.big", json_string(big));
    auto_reply large = api_call(client, "POST", JSON, map, MAPS);
    check_status(large, 422, "Invalid");
    het_free_pointer(&big);
}
END_TEST

START_TEST(an_update_needs_the_latest_version_and_a_repeated_one_changes_nothing)
{
    auto_reply made = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
    json_t *changed = json_deep_copy(made.json);
    object_set(changed, "data.v", json_string("2"));
    auto_reply second = api_call(client, "PUT", JSON, json_incref(changed), MAPS "/m");
    ck_assert_int_eq(second.status, 200);
    auto_reply stale = api_call(client, "PUT", JSON, changed, MAPS "/m");
    check_status(stale, 409, "Conflict");
    auto_reply same = api_call(client, "PUT", JSON, json_incref(second.json), MAPS "/m");
    ck_assert_int_eq(same.status, 200);
    ck_assert_str_eq(object_text(same.json, "metadata.resourceVersion"),
                     object_text(second.json, "metadata.resourceVersion"));
}
END_TEST

START_TEST(generation_follows_the_spec_and_status_has_its_own_path)
{
    auto_reply made = api_call(client, "POST", JSON, a_job("j", 1), JOBS);
    ck_assert_int_eq(object_integer(made.json, "metadata.generation", 0), 1);

    auto_reply status = api_call(client, "PATCH", MERGE,
                                 quoted("{'spec': {'size': 9}, 'status': {'x': 1}}"),
                                 JOBS "/j/status");
    ck_assert_int_eq(status.status, 200);
    ck_assert_int_eq(object_integer(status.json, "spec.size", 0), 1);
    ck_assert_int_eq(object_integer(status.json, "status.x", 0), 1);
    ck_assert_int_eq(object_integer(status.json, "metadata.generation", 0), 1);

    auto_reply spec = api_call(client, "PATCH", MERGE,
                               quoted("{'spec': {'size': 2}, 'status': {'x': 5}}"),
                               JOBS "/j");
    ck_assert_int_eq(object_integer(spec.json, "spec.size", 0), 2);
    ck_assert_int_eq(object_integer(spec.json, "status.x", 0), 1);
    ck_assert_int_eq(object_integer(spec.json, "metadata.generation", 0), 2);

    auto_reply labels = api_call(client, "PATCH", MERGE,
                                 quoted("{'metadata': {'labels': {'a': 'b'}}}"),
                                 JOBS "/j");
    ck_assert_int_eq(object_integer(labels.json, "metadata.generation", 0), 2);

    auto_reply blind = api_call(client, "PUT", JSON, a_job("j", 3), JOBS "/j");
    check_status(blind, 422, "Invalid"); /* custom resources need a resourceVersion */
}
END_TEST

START_TEST(server_side_apply_creates_changes_and_removes)
{
    auto_reply made = api_call(client, "PATCH", APPLY,
                               quoted("{'data': {'a': '1', 'b': '2'}}"),
                               MAPS "/m?fieldManager=me&force=true");
    ck_assert_int_eq(made.status, 201);
    auto_reply same = api_call(client, "PATCH", APPLY,
                               quoted("{'data': {'a': '1', 'b': '2'}}"),
                               MAPS "/m?fieldManager=me&force=true");
    ck_assert_str_eq(object_text(same.json, "metadata.resourceVersion"),
                     object_text(made.json, "metadata.resourceVersion"));
    auto_reply other = api_call(client, "PATCH", APPLY, quoted("{'data': {'a': '5'}}"),
                                MAPS "/m?fieldManager=you");
    check_status(other, 409, "Conflict");
    auto_reply less = api_call(client, "PATCH", APPLY, quoted("{'data': {'b': '2'}}"),
                               MAPS "/m?fieldManager=me&force=true");
    ck_assert_ptr_null(object_at(less.json, "data.a"));
    ck_assert_str_eq(object_text(less.json, "data.b"), "2");
    auto_reply nobody =
        api_call(client, "PATCH", APPLY, quoted("{'data': {}}"), MAPS "/m");
    check_status(nobody, 400, "BadRequest");
    auto_reply type = api_call(client, "PATCH", JSON, quoted("{'data': {}}"), MAPS "/m");
    check_status(type, 415, "UnsupportedMediaType");
}
END_TEST

START_TEST(apply_to_the_status_leaves_the_spec_alone)
{
    auto_reply made = api_call(client, "POST", JSON, a_job("j", 1), JOBS);
    auto_reply first =
        api_call(client, "PATCH", APPLY,
                 quoted("{'spec': {'size': 7}, 'status': {'replans': 1, 'restarts': 2}}"),
                 JOBS "/j/status?fieldManager=s&force=true");
    ck_assert_int_eq(first.status, 200);
    ck_assert_int_eq(object_integer(first.json, "spec.size", 0), 1);
    auto_reply second = api_call(client, "PATCH", APPLY,
                                 quoted("{'status': {'replans': 1}}"),
                                 JOBS "/j/status?fieldManager=s&force=true");
    ck_assert_ptr_null(object_at(second.json, "status.restarts"));
    ck_assert_int_eq(object_integer(second.json, "status.replans", 0), 1);
    auto_reply uid = api_call(client, "PATCH", APPLY,
                              quoted("{'metadata': {'uid': 'other'}, 'status': {}}"),
                              JOBS "/j/status?fieldManager=s&force=true");
    check_status(uid, 409, "Conflict");
    auto_reply missing = api_call(client, "PATCH", APPLY, quoted("{'status': {}}"),
                                  JOBS "/none/status?fieldManager=s&force=true");
    check_status(missing, 404, "NotFound");
}
END_TEST

START_TEST(an_immutable_config_map_stays_as_it_is)
{
    json_t *map = a_map("m", "1");
    object_set(map, "immutable", json_true());
    auto_reply made = api_call(client, "POST", JSON, map, MAPS);
    auto_reply data =
        api_call(client, "PATCH", MERGE, quoted("{'data': {'v': '2'}}"), MAPS "/m");
    check_status(data, 422, "Invalid");
    auto_reply flag =
        api_call(client, "PATCH", MERGE, quoted("{'immutable': false}"), MAPS "/m");
    check_status(flag, 422, "Invalid");
    auto_reply label = api_call(client, "PATCH", MERGE,
                                quoted("{'metadata': {'labels': {'v': '2'}}}"),
                                MAPS "/m");
    ck_assert_int_eq(label.status, 200);
}
END_TEST

START_TEST(a_pods_spec_is_fixed_but_gates_can_go)
{
    json_t *pod = a_pod("p");
    object_set(pod, "spec.schedulingGates", quoted("[{'name': 'g'}]"));
    auto_reply made = api_call(client, "POST", JSON, pod, PODS);
    ck_assert_int_eq(made.status, 201);
    auto_reply host = api_call(client, "PATCH", MERGE,
                               quoted("{'spec': {'hostname': "
                                      "'h'}}"),
                               PODS "/p");
    check_status(host, 422, "Invalid");
    auto_reply pin = api_call(client, "PATCH", MERGE,
                              quoted("{'spec': {'nodeSelector': {'a': 'b'}}}"),
                              PODS "/p");
    ck_assert_int_eq(pin.status, 200);
    auto_reply open = api_call(client, "PATCH", MERGE,
                               quoted("{'spec': {'schedulingGates': null}}"), PODS "/p");
    ck_assert_int_eq(open.status, 200);
    auto_reply shut = api_call(client, "PATCH", MERGE,
                               quoted("{'spec': {'schedulingGates': [{'name': 'g'}]}}"),
                               PODS "/p");
    check_status(shut, 422, "Invalid");
}
END_TEST

START_TEST(a_dry_run_stores_nothing)
{
    auto_reply made = api_call(client, "POST", JSON, a_pod("p"), PODS "?dryRun=All");
    ck_assert_int_eq(made.status, 201);
    ck_assert_ptr_null(api_server_find(server, "pods", "default", "p"));
    auto_reply bad = api_call(client, "POST", JSON, a_pod("P"), PODS "?dryRun=All");
    check_status(bad, 422, "Invalid");
}
END_TEST

/* ---- deletion ---- */

START_TEST(an_unbound_pod_goes_at_once_and_a_bound_one_when_its_kubelet_says_so)
{
    put(a_pod("p"));
    put(a_pod("q"));
    bind("q", "n");
    auto_reply unbound = api_call(client, "DELETE", NULL, NULL, PODS "/p");
    ck_assert_int_eq(unbound.status, 200);
    ck_assert_str_eq(object_text(unbound.json, "kind"), "Pod");
    ck_assert_ptr_null(api_server_find(server, "pods", "default", "p"));

    auto_reply bound = api_call(client, "DELETE", NULL, NULL, PODS "/q");
    ck_assert_str_eq(object_text(bound.json, "metadata.deletionTimestamp"),
                     "2026-01-01T00:00:30Z"); /* the default grace: 30 s */
    auto_reply again = api_call(client, "DELETE", NULL, NULL, PODS "/q");
    ck_assert_str_eq(again.body, bound.body);
    auto_reply shorter =
        api_call(client, "DELETE", JSON, quoted("{'gracePeriodSeconds': 5}"), PODS "/q");
    ck_assert_str_eq(object_text(shorter.json, "metadata.deletionTimestamp"),
                     "2026-01-01T00:00:05Z");
    auto_reply now =
        api_call(client, "DELETE", NULL, NULL, PODS "/q?gracePeriodSeconds=0");
    ck_assert_int_eq(now.status, 200);
    ck_assert_ptr_null(api_server_find(server, "pods", "default", "q"));
}
END_TEST

START_TEST(preconditions_protect_a_successor_of_the_same_name)
{
    auto_reply made = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
    const char *uid = object_text(made.json, "metadata.uid");
    auto_reply other = api_call(client, "DELETE", JSON,
                                quoted("{'preconditions': {'uid': 'other'}}"), MAPS "/m");
    check_status(other, 409, "Conflict");
    auto_reply right = api_call(client, "DELETE", JSON,
                                quoted("{'preconditions': {'uid': '%s'}}", uid),
                                MAPS "/m");
    ck_assert_int_eq(right.status, 200);
    ck_assert_str_eq(object_text(right.json, "status"), "Success");
    ck_assert_str_eq(object_text(right.json, "details.uid"), uid);
    auto_reply gone = api_call(client, "DELETE", NULL, NULL, MAPS "/m");
    check_status(gone, 404, "NotFound");
}
END_TEST

START_TEST(a_finalizer_holds_an_object_until_it_is_removed)
{
    json_t *job = a_job("j", 1);
    object_set(job, "metadata.finalizers", quoted("['x/y']"));
    put(job);
    auto_reply held = api_call(client, "DELETE", NULL, NULL, JOBS "/j");
    ck_assert_int_eq(held.status, 200);
    ck_assert(object_at(held.json, "metadata.deletionTimestamp"));
    ck_assert_int_eq(object_integer(held.json, "metadata.generation", 0), 2);
    ck_assert_ptr_nonnull(api_server_find(server, "heterotrainingjobs", "default", "j"));
    auto_reply free_it = api_call(
        client, "PATCH", MERGE, quoted("{'metadata': {'finalizers': null}}"), JOBS "/j");
    ck_assert_int_eq(free_it.status, 200);
    ck_assert_ptr_null(api_server_find(server, "heterotrainingjobs", "default", "j"));
}
END_TEST

/* ---- lists ---- */

static char *names(const json_t *list)
{
    char *text = xstrdup("");
    size_t i;
    json_t *item;
    json_array_foreach (object_at(list, "items"), i, item) {
        auto_free char *before = text;
        text =
            xasprintf("%s%s%s", before, i ? " " : "", object_text(item, "metadata.name"));
    }
    return text;
}

static void check_names(const char *path, const char *expected)
{
    auto_reply list = api_get(client, "%s", path);
    ck_assert_msg(list.status == 200, "%s", list.body);
    auto_free char *text = names(list.json);
    ck_assert_str_eq(text, expected);
}

START_TEST(lists_are_selected_by_namespace_label_and_field)
{
    put(a_map("a", "1"));
    put(a_map("b", "2"));
    json_t *elsewhere = a_map("c", "2");
    object_set(elsewhere, "metadata.namespace", json_string("other"));
    put(elsewhere);
    check_names("/api/v1/configmaps", "a b c");
    check_names(MAPS, "a b");
    check_names("/api/v1/configmaps?labelSelector=v%3D2", "b c");
    check_names("/api/v1/configmaps?labelSelector=v%20in%20(1,3)", "a");
    check_names("/api/v1/configmaps?fieldSelector=metadata.name%3Dc", "c");
    check_names("/api/v1/configmaps?fieldSelector=metadata.namespace!%3Dother", "a b");
    auto_reply unknown = api_get(client, MAPS "?fieldSelector=data.v%%3D1");
    check_status(unknown, 400, "BadRequest");
    auto_reply bad = api_get(client, MAPS "?labelSelector=v%%3D%%3D%%3D");
    check_status(bad, 400, "BadRequest");
    auto_reply list = api_get(client, MAPS);
    ck_assert_str_eq(object_text(list.json, "kind"), "ConfigMapList");
    const json_t *item = json_array_get(object_at(list.json, "items"), 0);
    ck_assert_ptr_null(object_at(item, "kind"));
}
END_TEST

START_TEST(pages_show_one_moment_whatever_happens_meanwhile)
{
    put(a_map("a", "1"));
    put(a_map("b", "1"));
    put(a_map("c", "1"));
    auto_reply first = api_get(client, MAPS "?limit=2");
    auto_free char *seen = names(first.json);
    ck_assert_str_eq(seen, "a b");
    ck_assert_int_eq(object_integer(first.json, "metadata.remainingItemCount", 0), 1);
    put(a_map("bb", "1"));
    api_server_delete(server, "configmaps", "default", "c", -1, NULL);
    const char *token = object_text(first.json, "metadata.continue");
    auto_reply second = api_get(client, MAPS "?limit=2&continue=%s", token);
    auto_free char *rest = names(second.json);
    ck_assert_str_eq(rest, "c");
    ck_assert_str_eq(object_text(second.json, "metadata.continue"), "");
    ck_assert_str_eq(object_text(second.json, "metadata.resourceVersion"),
                     object_text(first.json, "metadata.resourceVersion"));
    api_server_compact(server);
    auto_reply late = api_get(client, MAPS "?limit=2&continue=%s", token);
    check_status(late, 410, "Expired");
    ck_assert(*object_text(late.json, "metadata.continue"));
    auto_reply nonsense = api_get(client, MAPS "?limit=2&continue=x.y");
    check_status(nonsense, 400, "BadRequest");
}
END_TEST

START_TEST(resource_versions_of_lists_mean_what_they_mean_to_a_real_server)
{
    put(a_map("a", "1"));
    put(a_map("b", "1"));
    check_names(MAPS "?resourceVersion=0&limit=1", "a b"); /* from the cache: no pages */
    auto_reply now = api_get(client, MAPS);
    long version = atol(object_text(now.json, "metadata.resourceVersion"));
    put(a_map("c", "1"));
    auto_reply newer = api_get(client, MAPS "?resourceVersion=%ld", version);
    auto_free char *all = names(newer.json);
    ck_assert_str_eq(all, "a b c"); /* not older than */
    auto_reply exact = api_get(client, MAPS "?limit=9&resourceVersion=%ld", version);
    auto_free char *then = names(exact.json);
    ck_assert_str_eq(then, "a b");
    auto_reply future = api_get(client, MAPS "?resourceVersion=%ld", version + 99);
    check_status(future, 504, "Timeout");
    ck_assert_int_eq(future.retry_after_ms, 1000);
    const json_t *cause = json_array_get(object_at(future.json, "details.causes"), 0);
    ck_assert_str_eq(object_text(cause, "reason"), "ResourceVersionTooLarge");
    api_server_compact(server);
    auto_reply old = api_get(client, MAPS "?limit=9&resourceVersion=%ld", version);
    check_status(old, 410, "Expired");
}
END_TEST

/* ---- watches ---- */

/* "ADDED a" */
static void check_event(struct api_watch *watch, const char *type, const char *name)
{
    json_auto_t *event = api_watch_next(watch);
    ck_assert_msg(event != NULL, "no event, expected %s %s", type, name);
    ck_assert_str_eq(object_text(event, "type"), type);
    ck_assert_str_eq(object_text(event, "object.metadata.name"), name);
}

static void check_quiet(struct api_watch *watch)
{
    transport_poll(client, NULL, 0, 0);
    ck_assert_str_eq(watch->text, "");
}

START_TEST(a_watch_goes_on_from_where_a_list_ended)
{
    put(a_map("a", "1"));
    auto_reply list = api_get(client, MAPS);
    put(a_map("b", "1"));
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true&resourceVersion=%s",
                    object_text(list.json, "metadata.resourceVersion"));
    check_event(&watch, "ADDED", "b");
    check_quiet(&watch);
    put(a_map("a", "2"));
    put(a_pod("p"));
    api_server_delete(server, "configmaps", "default", "b", -1, NULL);
    transport_poll(client, NULL, 0, 0);
    check_event(&watch, "MODIFIED", "a");
    json_auto_t *deleted = api_watch_next(&watch);
    ck_assert_str_eq(object_text(deleted, "type"), "DELETED");
    ck_assert_str_eq(object_text(deleted, "object.data.v"), "1");
    auto_reply now = api_get(client, MAPS);
    ck_assert_str_eq(object_text(deleted, "object.metadata.resourceVersion"),
                     object_text(now.json, "metadata.resourceVersion"));
    check_quiet(&watch);
    api_watch_fini(&watch);
}
END_TEST

START_TEST(a_selected_watch_sees_objects_come_and_go)
{
    put(a_map("a", "1"));
    struct api_watch watch;
    api_watch_start(&watch, client,
                    MAPS "?watch=1&labelSelector=v%%3D2&resourceVersion=0");
    check_quiet(&watch);
    put(a_map("a", "2"));
    put(a_map("b", "3"));
    put(a_map("a", "3"));
    transport_poll(client, NULL, 0, 0);
    check_event(&watch, "ADDED", "a");
    json_auto_t *left = api_watch_next(&watch);
    ck_assert_str_eq(object_text(left, "type"), "DELETED");
    ck_assert_str_eq(object_text(left, "object.data.v"),
                     "2"); /* its last selected state */
    check_quiet(&watch);
    api_watch_fini(&watch);
}
END_TEST

START_TEST(a_watch_without_a_version_begins_with_all_there_is)
{
    put(a_map("a", "1"));
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true");
    check_event(&watch, "ADDED", "a");
    api_watch_fini(&watch);
    struct api_watch streaming;
    api_watch_start(&streaming, client,
                    MAPS "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&"
                         "resourceVersionMatch=NotOlderThan");
    check_event(&streaming, "ADDED", "a");
    json_auto_t *end = api_watch_next(&streaming);
    ck_assert_str_eq(object_text(end, "type"), "BOOKMARK");
    ck_assert(json_object_get(object_at(end, "object.metadata.annotations"),
                              "k8s.io/initial-events-end"));
    api_watch_fini(&streaming);
    auto_reply alone = api_get(client, MAPS "?watch=true&sendInitialEvents=true");
    check_status(alone, 422, "Invalid");
}
END_TEST

START_TEST(bookmarks_come_every_minute_and_shortly_before_the_end)
{
    struct api_watch watch;
    api_watch_start(&watch, client,
                    "/api/v1/nodes?watch=true&allowWatchBookmarks=true&"
                    "resourceVersion=0&timeoutSeconds=90");
    put(a_map("a", "1")); /* another kind moves the version, too */
    ck_assert_int_eq(api_server_next_ms(server), api_server_now_ms(server));
    transport_poll(client, NULL, 0, 0);
    ck_assert_int_eq(api_server_next_ms(server), API_SERVER_START_MS + 60000);
    advance_s(59);
    check_quiet(&watch);
    advance_s(1);
    json_auto_t *bookmark = api_watch_next(&watch);
    ck_assert_str_eq(object_text(bookmark, "type"), "BOOKMARK");
    auto_reply list = api_get(client, "/api/v1/nodes");
    ck_assert_str_eq(object_text(bookmark, "object.metadata.resourceVersion"),
                     object_text(list.json, "metadata.resourceVersion"));
    advance_s(28);
    check_event(&watch, "BOOKMARK", "");
    ck_assert(!watch.done);
    advance_s(2);
    ck_assert(watch.done);
    ck_assert_int_eq(watch.status, 200);
    check_quiet(&watch);
    api_watch_fini(&watch);
}
END_TEST

START_TEST(a_watch_from_a_forgotten_version_gets_410_in_the_stream)
{
    put(a_map("a", "1"));
    put(a_map("a", "2"));
    api_server_compact(server);
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true&resourceVersion=2");
    json_auto_t *event = api_watch_next(&watch);
    ck_assert_str_eq(object_text(event, "type"), "ERROR");
    ck_assert_int_eq(object_integer(event, "object.code", 0), 410);
    ck_assert_str_eq(object_text(event, "object.reason"), "Expired");
    ck_assert(watch.done);
    ck_assert_int_eq(watch.status, 200);
    api_watch_fini(&watch);
}
END_TEST

START_TEST(a_cancelled_watch_hears_nothing_more)
{
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true");
    transport_cancel(client, watch.id);
    put(a_map("a", "1"));
    check_quiet(&watch);
    ck_assert(!watch.done);
    ck_assert_int_eq(api_server_next_ms(server), INT64_MAX);
    api_watch_fini(&watch);
}
END_TEST

/* ---- faults ---- */

static enum api_server_fault one_fault(void *context, const struct api_server_call *call)
{
    enum api_server_fault *fault = context;
    enum api_server_fault now = *fault;
    (void)call;
    *fault = API_SERVER_NO_FAULT;
    return now;
}

START_TEST(faults_do_what_their_names_say)
{
    static const struct {
        enum api_server_fault fault;
        int status;
        bool acted, maybe_sent;
    } cases[] = {
        { API_SERVER_NO_FAULT, 201, true, false },
        { API_SERVER_UNREACHABLE, 0, false, false },
        { API_SERVER_LOSE_REQUEST, 0, false, true },
        { API_SERVER_LOSE_REPLY, 0, true, true },
        { API_SERVER_ANSWER_500, 500, false, false },
        { API_SERVER_ANSWER_503, 503, false, false },
        { API_SERVER_ANSWER_429, 429, false, false },
    };
    enum api_server_fault fault;
    api_server_set_faults(server, one_fault, &fault);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fault = cases[i].fault;
        auto_reply made = api_call(client, "POST", JSON, a_map("m", "1"), MAPS);
        ck_assert_int_eq(made.status, cases[i].status);
        ck_assert(made.maybe_sent == cases[i].maybe_sent);
        ck_assert((api_server_find(server, "configmaps", "default", "m") != NULL) ==
                  cases[i].acted);
        api_server_drop(server, "configmaps", "default", "m");
    }
    ck_assert_uint_eq(api_server_statistics(server).faults, 6);
}
END_TEST

START_TEST(a_cut_watch_ends_in_the_middle_of_a_line)
{
    enum api_server_fault fault = API_SERVER_NO_FAULT;
    api_server_set_faults(server, one_fault, &fault);
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true");
    fault = API_SERVER_CUT;
    put(a_map("a", "1"));
    transport_poll(client, NULL, 0, 0);
    ck_assert(watch.done);
    ck_assert_int_eq(watch.status, 0);
    ck_assert(*watch.text);
    ck_assert_ptr_null(strchr(watch.text, '\n'));
    api_watch_fini(&watch);
}
END_TEST

START_TEST(held_watches_are_silent_until_they_are_let_go)
{
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true&allowWatchBookmarks=true");
    api_server_hold_watches(server, "configmaps", true);
    put(a_map("a", "1"));
    advance_s(120);
    check_quiet(&watch);
    api_server_hold_watches(server, NULL, false);
    transport_poll(client, NULL, 0, 0);
    check_event(&watch, "ADDED", "a");
    api_watch_fini(&watch);
}
END_TEST

START_TEST(latency_delays_replies_and_events_but_keeps_their_order)
{
    api_server_set_random_faults(server, 7, 0, 500);
    struct api_watch watch;
    api_watch_start(&watch, client, MAPS "?watch=true&resourceVersion=1");
    for (int i = 0; i < 20; i++) {
        auto_free char *name = xasprintf("m%02d", i);
        put(a_map(name, "1"));
        advance_s(0);
    }
    for (int i = 0; i < 100; i++) {
        api_server_advance(server, api_server_now_ms(server) + 20);
        transport_poll(client, NULL, 0, 0);
    }
    for (int i = 0; i < 20; i++) {
        auto_free char *name = xasprintf("m%02d", i);
        check_event(&watch, "ADDED", name);
    }
    api_watch_fini(&watch);
}
END_TEST

/* ---- looking on ---- */

static void on_change(void *context, const struct api_server_change *change)
{
    char **text = context;
    auto_free char *before = *text;
    *text = xasprintf(
        "%s%s%s%s %s; ", before, change->by_client ? "client " : "",
        change->before ? change->after ? "changed " : "removed " : "added ",
        change->plural,
        object_text(change->after ? change->after : change->before, "metadata.name"));
}

START_TEST(observers_see_every_change_and_who_made_it)
{
    char *text = xstrdup("");
    api_server_observe(server, on_change, &text);
    put(a_map("a", "1"));
    auto_reply made = api_call(client, "POST", JSON, a_pod("p"), PODS);
    put(a_map("a", "1"));
    put(a_map("a", "2"));
    auto_reply gone = api_call(client, "DELETE", NULL, NULL, PODS "/p");
    ck_assert_str_eq(text, "added configmaps a; client added pods p; changed configmaps "
                           "a; client removed pods p; ");
    ck_assert_uint_eq(api_server_statistics(server).writes, 2);
    het_free_pointer(&text);
}
END_TEST

/* ---- JSON patch, priorities, versions, lists that lie ---- */

#define OPERATIONS "application/json-patch+json"

START_TEST(json_patch_does_all_or_nothing)
{
    put(a_map("m", "1"));
    auto_reply done = api_call(
        client, "PATCH", OPERATIONS,
        quoted("[{'op': 'test', 'path': '/data/v', 'value': '1'}, {'op': 'replace', "
               "'path': '/data/v', 'value': '2'}, {'op': 'add', 'path': "
               "'/metadata/labels/a~1b', 'value': 'c'}, {'op': 'remove', 'path': "
               "'/metadata/labels/v'}]"),
        MAPS "/m");
    ck_assert_int_eq(done.status, 200);
    ck_assert_str_eq(object_text(done.json, "data.v"), "2");
    json_auto_t *labels = quoted("{'a/b': 'c'}");
    ck_assert(json_equal(object_at(done.json, "metadata.labels"), labels));
    static const char *const refused[] = {
        ("[{'op': 'remove', 'path': '/data/v'}, {'op': 'test', 'path': '/data/v', "
         "'value': '2'}]"),
        "[{'op': 'test', 'path': '/metadata/uid', 'value': 'another'}]",
        "[{'op': 'replace', 'path': '/data/none', 'value': 'x'}]",
        "[{'op': 'remove', 'path': '/none/v'}]",
        "[{'op': 'move', 'path': '/data/w', 'from': '/data/v'}]",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        auto_reply reply =
            api_call(client, "PATCH", OPERATIONS, quoted("%s", refused[i]), MAPS "/m");
        check_status(reply, 422, "Invalid");
    }
    ck_assert_str_eq(
        object_text(api_server_find(server, "configmaps", "default", "m"), "data.v"),
        "2");
}
END_TEST

START_TEST(a_gate_is_lifted_by_its_position_and_none_is_added)
{
    json_t *gated = a_pod("p");
    object_set(gated, "spec.schedulingGates", quoted("[{'name': 'x/a'}, {'name': 'y'}]"));
    put(gated);
    auto_reply lifted = api_call(
        client, "PATCH", OPERATIONS,
        quoted("[{'op': 'test', 'path': '/spec/schedulingGates/0/name', 'value': 'x/a'}, "
               "{'op': 'remove', 'path': '/spec/schedulingGates/0'}]"),
        PODS "/p");
    ck_assert_int_eq(lifted.status, 200);
    json_auto_t *left = quoted("[{'name': 'y'}]");
    ck_assert(json_equal(object_at(lifted.json, "spec.schedulingGates"), left));
    auto_reply added =
        api_call(client, "PATCH", OPERATIONS,
                 quoted("[{'op': 'add', 'path': '/spec/schedulingGates/-', 'value': "
                        "{'name': 'z'}}]"),
                 PODS "/p");
    check_status(added, 422, "Invalid");
}
END_TEST

START_TEST(old_servers_drop_gates_without_a_word)
{
    json_t *gated = a_pod("p");
    object_set(gated, "spec.schedulingGates", quoted("[{'name': 'x'}]"));
    api_server_set_minor(server, 26);
    auto_reply version = api_get(client, "/version");
    ck_assert_str_eq(object_text(version.json, "minor"), "26");
    auto_reply made = api_call(client, "POST", JSON, gated, PODS);
    ck_assert_int_eq(made.status, 201);
    ck_assert_ptr_null(object_at(made.json, "spec.schedulingGates"));
}
END_TEST

START_TEST(a_merge_patch_with_another_uid_or_version_is_a_conflict)
{
    put(a_map("m", "1"));
    auto_reply uid = api_call(client, "PATCH", MERGE,
                              quoted("{'metadata': {'uid': 'x'}, 'data': {'v': '2'}}"),
                              MAPS "/m");
    check_status(uid, 409, "Conflict");
    auto_reply version = api_call(
        client, "PATCH", MERGE,
        quoted("{'metadata': {'resourceVersion': '1'}, 'data': {'v': '2'}}"), MAPS "/m");
    check_status(version, 409, "Conflict");
}
END_TEST

START_TEST(a_pod_gets_the_priority_of_its_class)
{
    put(quoted("{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', "
               "'metadata': {'name': 'high'}, 'value': 1000, 'preemptionPolicy': "
               "'Never'}"));
    json_t *pod = a_pod("p");
    object_set(pod, "spec.priorityClassName", json_string("high"));
    auto_reply made = api_call(client, "POST", JSON, pod, PODS);
    ck_assert_int_eq(made.status, 201);
    ck_assert_int_eq(object_integer(made.json, "spec.priority", 0), 1000);
    ck_assert_str_eq(object_text(made.json, "spec.preemptionPolicy"), "Never");
    pod = a_pod("q");
    object_set(pod, "spec.priorityClassName", json_string("none"));
    auto_reply unknown = api_call(client, "POST", JSON, pod, PODS);
    check_status(unknown, 403, "Forbidden");
    pod = a_pod("r");
    object_set(pod, "spec.priority", json_integer(7));
    auto_reply forged = api_call(client, "POST", JSON, pod, PODS);
    check_status(forged, 403, "Forbidden");
}
END_TEST

START_TEST(kinds_that_nobody_installed_are_not_found)
{
    static const char kueue_watches[] = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues";
    auto_reply missing = api_get(client, kueue_watches);
    check_status(missing, 404, "NotFound");
    api_server_install(server, "kueue.x-k8s.io", true);
    auto_reply empty = api_get(client, kueue_watches);
    ck_assert_int_eq(empty.status, 200);
}
END_TEST

static enum api_server_fault fault_of_lists(void *context,
                                            const struct api_server_call *call)
{
    const enum api_server_fault *fault = context;
    (void)call;
    return *fault;
}

START_TEST(lists_can_lie)
{
    for (int i = 0; i < 4; i++) {
        auto_free char *name = xasprintf("m%d", i);
        put(a_map(name, "1"));
    }
    static const struct {
        enum api_server_fault fault;
        size_t most;
    } cases[] = { { API_SERVER_EMPTY_LIST, 0 },
                  { API_SERVER_PARTIAL_LIST, 2 },
                  { API_SERVER_STALE_LIST, 3 } };
    auto_reply truth = api_get(client, MAPS);
    ck_assert_uint_eq(json_array_size(object_at(truth.json, "items")), 4);
    for (size_t i = 0; i < 3; i++) {
        enum api_server_fault fault = cases[i].fault;
        api_server_set_faults(server, fault_of_lists, &fault);
        auto_reply list = api_get(client, MAPS);
        ck_assert_int_eq(list.status, 200);
        ck_assert_uint_le(json_array_size(object_at(list.json, "items")), cases[i].most);
        int earlier = strcmp(object_text(list.json, "metadata.resourceVersion"),
                             object_text(truth.json, "metadata.resourceVersion"));
        ck_assert(fault == API_SERVER_STALE_LIST ? earlier < 0 : earlier == 0);
        auto_reply one = api_get(client, MAPS "/m3");
        ck_assert_int_eq(one.status, 200);
    }
}
END_TEST

Suite *test_api_server_suite(void)
{
    Suite *suite = suite_create("api_server");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_created_object_can_be_read_and_is_stamped);
    tcase_add_test(cases, two_servers_with_one_seed_answer_with_the_same_bytes);
    tcase_add_test(cases, refusals_read_like_those_of_a_real_server);
    tcase_add_test(cases, bodies_and_objects_have_limits);
    tcase_add_test(cases,
                   an_update_needs_the_latest_version_and_a_repeated_one_changes_nothing);
    tcase_add_test(cases, generation_follows_the_spec_and_status_has_its_own_path);
    tcase_add_test(cases, server_side_apply_creates_changes_and_removes);
    tcase_add_test(cases, apply_to_the_status_leaves_the_spec_alone);
    tcase_add_test(cases, an_immutable_config_map_stays_as_it_is);
    tcase_add_test(cases, a_pods_spec_is_fixed_but_gates_can_go);
    tcase_add_test(cases, a_dry_run_stores_nothing);
    tcase_add_test(cases,
                   an_unbound_pod_goes_at_once_and_a_bound_one_when_its_kubelet_says_so);
    tcase_add_test(cases, preconditions_protect_a_successor_of_the_same_name);
    tcase_add_test(cases, a_finalizer_holds_an_object_until_it_is_removed);
    tcase_add_test(cases, lists_are_selected_by_namespace_label_and_field);
    tcase_add_test(cases, pages_show_one_moment_whatever_happens_meanwhile);
    tcase_add_test(cases,
                   resource_versions_of_lists_mean_what_they_mean_to_a_real_server);
    tcase_add_test(cases, a_watch_goes_on_from_where_a_list_ended);
    tcase_add_test(cases, a_selected_watch_sees_objects_come_and_go);
    tcase_add_test(cases, a_watch_without_a_version_begins_with_all_there_is);
    tcase_add_test(cases, bookmarks_come_every_minute_and_shortly_before_the_end);
    tcase_add_test(cases, a_watch_from_a_forgotten_version_gets_410_in_the_stream);
    tcase_add_test(cases, a_cancelled_watch_hears_nothing_more);
    tcase_add_test(cases, faults_do_what_their_names_say);
    tcase_add_test(cases, a_cut_watch_ends_in_the_middle_of_a_line);
    tcase_add_test(cases, held_watches_are_silent_until_they_are_let_go);
    tcase_add_test(cases, json_patch_does_all_or_nothing);
    tcase_add_test(cases, a_gate_is_lifted_by_its_position_and_none_is_added);
    tcase_add_test(cases, old_servers_drop_gates_without_a_word);
    tcase_add_test(cases, a_merge_patch_with_another_uid_or_version_is_a_conflict);
    tcase_add_test(cases, a_pod_gets_the_priority_of_its_class);
    tcase_add_test(cases, kinds_that_nobody_installed_are_not_found);
    tcase_add_test(cases, lists_can_lie);
    tcase_add_test(cases, latency_delays_replies_and_events_but_keeps_their_order);
    tcase_add_test(cases, observers_see_every_change_and_who_made_it);
    suite_add_tcase(suite, cases);
    return suite;
}
