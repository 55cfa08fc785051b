#include "controller/base/object.h"
#include "controller/job/job_spec.h"
#include "tests/controller/world.h"

#include <check.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* The least job that is valid, with `spec` merged over its spec. */
static json_t *job_with(const char *spec)
{
    json_t *job = quoted("{'metadata': {'name': 'opt', 'namespace': 'ns', 'uid': 'u', "
                         "'generation': 3, 'creationTimestamp': '2026-01-01T00:00:01Z'}, "
                         "'spec': {'model': {'profileRef': {'name': 'p'}}, 'training': "
                         "{'globalBatchSize': 64}, 'podTemplate': {'spec': {}}}}");
    json_auto_t *extra = quoted("%s", spec);
    json_object_update_recursive(json_object_get(job, "spec"), extra);
    return job;
}

START_TEST(absent_fields_take_the_defaults)
{
    json_auto_t *job = job_with("{}");
    struct job_spec spec;
    const char *reason;
    struct het_error err;
    ck_assert_int_eq(job_spec_parse(job, &spec, &reason, &err), 0);
    ck_assert_str_eq(spec.name, "opt");
    ck_assert_int_eq(spec.generation, 3);
    ck_assert_int_eq(spec.created_wall_ms, 1767225601000);
    ck_assert(!spec.profile_is_cluster);
    ck_assert_int_eq(spec.min_gpus, 1);
    ck_assert_int_eq(spec.max_gpus, 0);
    ck_assert_str_eq(spec.algorithm, "auto");
    ck_assert_int_eq(spec.debounce_ms, 30000);
    ck_assert_int_eq(spec.cooldown_ms, 600000);
    ck_assert_int_eq(spec.min_improvement_percent, 15);
    ck_assert_int_eq(spec.max_slowdown_percent, 15);
    ck_assert_int_eq(spec.node_failure_grace_ms, 30000);
    ck_assert_int_eq(spec.master_port, 29500);
    ck_assert_str_eq(spec.plan_mount_path, "/etc/hetero-plan");
    ck_assert_int_eq(spec.max_restarts, 6);
    ck_assert_int_eq(spec.reset_after_ms, 3600000);
    ck_assert_ptr_null(spec.failure_rules);
    ck_assert_str_eq(spec.approved_hash, "");
    ck_assert(!spec.is_plan_only);
    ck_assert(!spec.is_suspended);
    ck_assert(!spec.rank_zero_decides);
    ck_assert_int_eq(spec.deadline_ms, 0);
    ck_assert_int_eq(spec.ttl_ms, -1);
    ck_assert_ptr_null(spec.checkpoint_uri);
    ck_assert_int_eq(spec.hook_method, HOOK_SIGNAL);
    ck_assert_int_eq(spec.hook_timeout_ms, 120000);
    ck_assert_str_eq(spec.hook_path, "/checkpoint");
    ck_assert_int_eq(spec.termination_grace_s, 30);
    ck_assert_int_eq(spec.spot_policy, SPOT_ALLOW);
    ck_assert(!spec.allows_shared_gpus);
    ck_assert_uint_eq(spec.topology_key_count, 0);
}
END_TEST

#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(given_fields_are_read)
{
    json_auto_t *job = job_with(
        "{'model': {'profileRef': {'kind': 'ClusterModelProfile'}}, 'resources': "
        "{'minGPUs': 2, 'maxGPUs': 8, 'gpuTypes': [{'name': 'T4', 'maxGPUs': 3, "
        "'preference': -5, 'resourceName': 'x.io/t4'}], 'spotPolicy': 'PreferOnDemand', "
        "'sharedGPUPolicy': 'Allow', 'nodeAffinity': {'nodeSelectorTerms': []}}, "
        "'planner': {'algorithm': 'metis', 'seed': 7, 'topologyKeys': ['rack'], "
        "'effort': 'Low'}, 'replanPolicy': {'mode': 'Manual', 'debounceSeconds': "
        "1, 'approvedPlanHash': '" HASH
        "'}, 'planOnly': true, 'checkpoint': {'storageURI': 'pvc://x', 'onDisruption': {'method': 'HTTP', "
        "'timeoutSeconds': 7, 'http': {'port': 8476, 'path': '/save'}}}, 'runtime': "
        "{'type': 'custom'}, 'podTemplate': {'spec': {'terminationGracePeriodSeconds': "
        "9}}, 'suspend': true, 'successPolicy': {'completeWhen': 'RankZero'}, "
        "'activeDeadlineSeconds': 90, 'ttlSecondsAfterFinished': 0, 'failurePolicy': "
        "{'rules': [{'action': 'Count', 'onPodConditions': [{'type': 'A'}]}], "
        "'resetAfterSeconds': 60}}");
    struct job_spec spec;
    const char *reason;
    struct het_error err;
    ck_assert_int_eq(job_spec_parse(job, &spec, &reason, &err), 0);
    ck_assert(spec.profile_is_cluster);
    ck_assert_int_eq(spec.max_gpus, 8);
    ck_assert_uint_eq(spec.gpu_type_count, 1);
    ck_assert_str_eq(spec.gpu_types[0].name, "T4");
    ck_assert_int_eq(spec.gpu_types[0].preference, -5);
    ck_assert_str_eq(spec.gpu_types[0].resource, "x.io/t4");
    ck_assert_ptr_eq(job_spec_find_gpu_type(&spec, "T4"), &spec.gpu_types[0]);
    ck_assert_ptr_null(job_spec_find_gpu_type(&spec, "V100"));
    ck_assert_int_eq(spec.spot_policy, SPOT_PREFER_ON_DEMAND);
    ck_assert(spec.allows_shared_gpus);
    ck_assert_ptr_nonnull(spec.node_affinity);
    ck_assert_uint_eq(spec.topology_key_count, 1);
    ck_assert_str_eq(spec.topology_keys[0], "rack");
    ck_assert_str_eq(spec.algorithm, "metis");
    ck_assert_int_eq(spec.effort, 100000);
    ck_assert_int_eq(spec.replan_mode, REPLAN_MANUAL);
    ck_assert_int_eq(spec.debounce_ms, 1000);
    ck_assert_str_eq(spec.approved_hash, HASH);
    ck_assert(spec.is_plan_only);
    ck_assert_str_eq(spec.checkpoint_uri, "pvc://x");
    ck_assert(spec.is_suspended);
    ck_assert(spec.rank_zero_decides);
    ck_assert_int_eq(spec.deadline_ms, 90000);
    ck_assert_int_eq(spec.ttl_ms, 0);
    ck_assert_int_eq(spec.reset_after_ms, 60000);
    ck_assert_uint_eq(json_array_size(spec.failure_rules), 1);
    ck_assert_int_eq(spec.hook_method, HOOK_HTTP);
    ck_assert_int_eq(spec.hook_timeout_ms, 7000);
    ck_assert_int_eq(spec.hook_port, 8476);
    ck_assert_str_eq(spec.hook_path, "/save");
    ck_assert_int_eq(spec.termination_grace_s, 9);
    ck_assert_str_eq(spec.runtime, "custom");
}
END_TEST

/* Fills `value` with the defaults that `schema` gives below it, in objects that it makes
 * where it must. Returns whether there was any. */
static bool fill_defaults(const json_t *schema, json_t *value)
{
    const char *name;
    json_t *property;
    bool any = false;
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        json_t *fallback = json_object_get(property, "default");
        json_t *present = json_object_get(value, name);
        if (json_object_get(property, "properties")) {
            json_t *child = present ? json_incref(present) : json_object();
            if (fill_defaults(property, child)) {
                json_object_set(value, name, child);
                any = true;
            }
            json_decref(child);
        } else if (fallback && !present) {
            json_object_set(value, name, fallback);
            any = true;
        }
    }
    return any;
}

/* The schema of spec, as it is in crds/; in `ret_crd`, to be given back. */
static json_t *read_schema(json_t **ret_crd)
{
    FILE *file = fopen("crds/heterotrain.io_heterotrainingjobs.yaml", "r");
    ck_assert_ptr_nonnull(file);
    static char text[400000];
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    struct het_error err;
    ck_assert_int_eq(het_yaml_parse_one(text, length, ret_crd, &err), 0);
    json_t *schema = NULL;
    ck_assert_int_eq(json_unpack(*ret_crd, "{s:{s:[{s:{s:{s:{s:o}}}}]}}", "spec",
                                 "versions", "schema", "openAPIV3Schema", "properties",
                                 "spec", &schema),
                     0);
    return schema;
}

/* What a job whose spec has `text` at `path` is refused with; "": it is not. */
static char *complaint_about(const char *object, const char *field, const char *text)
{
    auto_free char *spec = xasprintf("{'%s': {'%s': '%s'}}", object, field, text);
    json_auto_t *job = job_with(spec);
    struct job_spec parsed;
    const char *reason;
    struct het_error err;
    return xstrdup(job_spec_parse(job, &parsed, &reason, &err) < 0 ? err.message : "");
}

static void check_name_is_taken(const json_t *schema, const char *object,
                                const char *field, const char *name)
{
    auto_free char *path = xasprintf("properties.%s.properties.%s", object, field);
    const json_t *property = object_at(schema, path);
    auto_free char *complaint = complaint_about(object, field, name);
    regex_t pattern;
    ck_assert_int_eq(
        regcomp(&pattern, object_text(property, "pattern"), REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(!regexec(&pattern, name, 0, NULL, 0), "%s", name);
    regfree(&pattern);
    ck_assert_ptr_null(json_object_get(property, "enum"));
    ck_assert_str_eq(complaint, "");
}

START_TEST(names_are_those_of_the_planners_tables)
{
    json_t *crd;
    const json_t *schema = read_schema(&crd);
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++)
        check_name_is_taken(schema, "planner", "algorithm", (*a)->name);
    for (const struct het_runtime *r = het_runtimes(); r->name; r++)
        check_name_is_taken(schema, "runtime", "type", r->name);
    check_name_is_taken(schema, "planner", "algorithm", "auto");
    check_name_is_taken(schema, "runtime", "type", "custom");
    json_decref(crd);
}
END_TEST

START_TEST(names_that_the_planner_lacks_are_answered_with_those_it_has)
{
    auto_free char *algorithm = complaint_about("planner", "algorithm", "Best");
    auto_free char *runtime = complaint_about("runtime", "type", "horovod");
    ck_assert_str_eq(algorithm,
                     "spec.planner.algorithm: no algorithm \"Best\"; there are auto, "
                     "megatron, metis, oomfirst, amp, amp-sa, ditto, ditto-greedy, "
                     "autohet, repair, optimal, exhaustive, metis-walk, oomfirst-walk");
    ck_assert_str_eq(runtime,
                     "spec.runtime.type: no runtime \"horovod\"; there are generic, "
                     "torchrun, custom, megatron, flagscale, hetu, sailor, deepspeed, "
                     "torchtitan");
}
END_TEST

START_TEST(defaults_are_those_of_the_schema)
{
    json_t *crd;
    struct het_error err;
    const json_t *schema = read_schema(&crd);
    json_auto_t *bare = job_with("{}");
    json_auto_t *filled = job_with("{}");
    ck_assert(fill_defaults(schema, json_object_get(filled, "spec")));
    /* A member of a group of which only one may be there. */
    json_object_del(json_object_get(json_object_get(filled, "spec"), "model"),
                    "architecture");
    struct job_spec ours, theirs;
    const char *reason;
    ck_assert_int_eq(job_spec_parse(bare, &ours, &reason, &err), 0);
    ck_assert_msg(job_spec_parse(filled, &theirs, &reason, &err) == 0, "%s", err.message);
    ck_assert_int_eq(theirs.profile_is_cluster, ours.profile_is_cluster);
    ck_assert_int_eq(theirs.min_gpus, ours.min_gpus);
    ck_assert_int_eq(theirs.max_gpus, ours.max_gpus);
    ck_assert_int_eq(theirs.spot_policy, ours.spot_policy);
    ck_assert_int_eq(theirs.allows_shared_gpus, ours.allows_shared_gpus);
    ck_assert_str_eq(theirs.algorithm, ours.algorithm);
    ck_assert_int_eq(theirs.seed, ours.seed);
    ck_assert_int_eq(theirs.effort, ours.effort);
    ck_assert_int_eq(theirs.planner_timeout_ms, ours.planner_timeout_ms);
    ck_assert_int_eq(theirs.memory_headroom_percent, ours.memory_headroom_percent);
    ck_assert_int_eq(theirs.replan_mode, ours.replan_mode);
    ck_assert_int_eq(theirs.debounce_ms, ours.debounce_ms);
    ck_assert_int_eq(theirs.cooldown_ms, ours.cooldown_ms);
    ck_assert_int_eq(theirs.node_failure_grace_ms, ours.node_failure_grace_ms);
    ck_assert_int_eq(theirs.min_improvement_percent, ours.min_improvement_percent);
    ck_assert_int_eq(theirs.max_slowdown_percent, ours.max_slowdown_percent);
    ck_assert_str_eq(theirs.runtime, ours.runtime);
    ck_assert_int_eq(theirs.master_port, ours.master_port);
    ck_assert_str_eq(theirs.plan_mount_path, ours.plan_mount_path);
    ck_assert_int_eq(theirs.max_restarts, ours.max_restarts);
    ck_assert_int_eq(theirs.backoff_ms, ours.backoff_ms);
    ck_assert_int_eq(theirs.backoff_max_ms, ours.backoff_max_ms);
    ck_assert_int_eq(theirs.reset_after_ms, ours.reset_after_ms);
    ck_assert_int_eq(theirs.rank_zero_decides, ours.rank_zero_decides);
    ck_assert_int_eq(theirs.is_suspended, ours.is_suspended);
    json_decref(crd);
}
END_TEST

static const struct {
    const char *spec, *reason, *message;
} refused[] = {
    { "{'training': {'globalBatchSize': 0}}", "InvalidSpec",
      "spec.training.globalBatchSize" },
    { "{'training': {'globalBatchSize': 'x'}}", "InvalidSpec", "must be a whole number" },
    { "{'training': {'microBatchSizes': [1, 0]}}", "InvalidSpec", "microBatchSizes" },
    { "{'model': {'profileRef': {'name': ''}}}", "InvalidSpec",
      "profileRef.name: is missing" },
    { "{'model': {'profileRef': {'kind': 'Secret'}}}", "InvalidSpec", "profileRef.kind" },
    { "{'model': {'architecture': {'layers': 2}}}", "InvalidSpec",
      "exactly one of profileRef and architecture" },
    { "{'model': {'profilePolicy': 'OnDemand'}}", "InvalidSpec",
      "OnDemand needs both profileRef" },
    { "{'model': {'profilePolicy': 'OnDemand', 'profileRef': null, 'architecture': "
      "{'layers': 2}}}",
      "InvalidSpec", "OnDemand needs both profileRef" },
    { "{'model': {'profilePolicy': 'OnDemand', 'profileRef': {'kind': "
      "'ClusterModelProfile'}, 'architecture': {'layers': 2}}}",
      "InvalidSpec", "profileRef.kind: must be ModelProfile" },
    { "{'model': {'profilePolicy': 'Always'}}", "InvalidSpec", "profilePolicy" },
    { "{'model': {'profileRef': null, 'architecture': {'layers': 2}}}", "InvalidSpec",
      "spec.model.architecture.hiddenSize: is missing" },
    { "{'model': {'profileRef': null, 'architecture': {'layers': 2, 'hiddenSize': 64, "
      "'heads': 8, 'kvHeads': 3, 'ffnHiddenSize': 4, 'vocabSize': 5, 'sequenceLength': "
      "6}}}",
      "InvalidSpec", "kvHeads: must divide heads" },
    { "{'model': {'profileRef': null, 'architecture': {'layers': 2, 'hiddenSize': 65, "
      "'heads': 8, 'ffnHiddenSize': 4, 'vocabSize': 5, 'sequenceLength': 6}}}",
      "InvalidSpec", "hiddenSize: must be a multiple of heads" },
    { "{'model': {'profileRef': null, 'architecture': {'layers': 2, 'hiddenSize': 64, "
      "'heads': 8, 'ffnHiddenSize': 4, 'vocabSize': 5, 'sequenceLength': 6, "
      "'precision': 'FP8'}}}",
      "InvalidSpec", "architecture.precision" },
    { "{'model': {'profileRef': null, 'architecture': {'type': 'Mamba'}}}", "InvalidSpec",
      "architecture.type" },
    { "{'training': {'sequenceLength': 0}}", "InvalidSpec", "sequenceLength" },
    { "{'resources': {'minGPUs': 9, 'maxGPUs': 8}}", "InvalidSpec",
      "minGPUs (9) is above" },
    { "{'resources': {'gpuTypes': [{}]}}", "InvalidSpec",
      "gpuTypes[0].name: is missing" },
    { "{'resources': {'gpuTypes': [{'name': 'x', 'resourceName': 'gpu'}]}}",
      "InvalidSpec", "gpuTypes[0].resourceName" },
    { "{'resources': {'gpuTypes': [{'name': 'x'}, {'name': 'x'}]}}", "InvalidSpec",
      "gpuTypes[1].name: x is named twice" },
    { "{'resources': {'spotPolicy': 'Never'}}", "InvalidSpec", "spotPolicy" },
    { "{'resources': {'sharedGPUPolicy': 'Maybe'}}", "InvalidSpec", "sharedGPUPolicy" },
    { "{'resources': {'nodeAffinity': {'nodeSelectorTerms': [{'matchExpressions': "
      "[{'key': 'x', 'operator': 'Is'}]}]}}}",
      "InvalidSpec", "spec.resources.nodeAffinity.nodeSelectorTerms[0]" },
    { "{'podTemplate': {'spec': {'affinity': {'nodeAffinity': "
      "{'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [3]}}}}}}",
      "InvalidSpec", "spec.podTemplate.spec.affinity" },
    { "{'planner': {'topologyKeys': ['a', '']}}", "InvalidSpec", "topologyKeys" },
    { "{'runtime': {'argsPolicy': 'AppendArgs'}}", "InvalidSpec",
      "spec.runtime.argsPolicy" },
    { "{'runtime': {'type': 'megatron', 'argsPolicy': 'Shell'}}", "InvalidSpec",
      "Shell is not one of" },
    { "{'runtime': {'type': 'hetu', 'argsPolicy': 'AppendArgs'}}", "InvalidSpec",
      "spec.runtime.argsPolicy" },
    { "{'planner': {'algorithm': 'Best'}}", "InvalidSpec", "spec.planner.algorithm" },
    { "{'planner': {'algorithm': 3}}", "InvalidSpec", "spec.planner.algorithm" },
    { "{'runtime': {'type': 'Torchrun'}}", "InvalidSpec", "spec.runtime.type" },
    { "{'planner': {'constraints': {'recompute': 'Full'}}}", "InvalidSpec", "recompute" },
    { "{'replanPolicy': {'debounceSeconds': -1}}", "InvalidSpec", "between 0 and 3600" },
    { "{'replanPolicy': {'approvedPlanHash': 'sha256:0123'}}", "InvalidSpec",
      "spec.replanPolicy.approvedPlanHash: must be the hash of a plan" },
    { "{'replanPolicy': {'approvedPlanHash': '" HASH "0'}}", "InvalidSpec",
      "approvedPlanHash" },
    { "{'planOnly': 'true'}", "InvalidSpec", "spec.planOnly: must be true or false" },
    { "{'runtime': {'planMountPath': 'relative'}}", "InvalidSpec", "absolute path" },
    { "{'runtime': {'planMountPath': '/a/../b'}}", "InvalidSpec", "absolute path" },
    { "{'runtime': {'containerName': 'a\\nb'}}", "InvalidSpec", "control" },
    { "{'runtime': {'masterPort': 80}}", "InvalidSpec", "between 1024 and 65535" },
    { "{'planner': {'constraints': {'tensorParallel': {'degreePolicy': true}}}}",
      "InvalidSpec", "tensorParallel.degreePolicy" },
    { "{'planner': {'constraints': {'dataParallel': {'sharePolicy': 'Even'}}}}",
      "InvalidSpec", "dataParallel.sharePolicy: Even is not one of Weighted, Equal" },
    { "{'successPolicy': {'completeWhen': 'RankOne'}}", "InvalidSpec",
      "spec.successPolicy.completeWhen: RankOne is not one of" },
    { "{'successPolicy': 'RankZero'}", "InvalidSpec",
      "spec.successPolicy: must be an object" },
    { "{'ttlSecondsAfterFinished': -1}", "InvalidSpec", "ttlSecondsAfterFinished" },
    { "{'failurePolicy': {'rules': [{'action': 'Count'}]}}", "InvalidSpec",
      "spec.failurePolicy.rules[0]: give exactly one of" },
    { "{'failurePolicy': {'rules': [{'action': 'FailJob', 'onExitCodes': "
      "{'containerName': 'none', 'operator': 'In', 'values': [3]}}]}}",
      "InvalidSpec", "none is no container of podTemplate.spec" },
    { "{'failurePolicy': {'resetAfterSeconds': 0}}", "InvalidSpec", "resetAfterSeconds" },
    { "{'scheduling': {'gang': 'Volcano'}}", "InvalidSpec", "spec.scheduling.gang" },
    { "{'activeDeadlineSeconds': 0}", "InvalidSpec", "activeDeadlineSeconds" },
    { "{'checkpoint': {'onDisruption': {'method': 'HTTP'}}}", "InvalidSpec",
      "onDisruption.http.port: is missing" },
    { "{'checkpoint': {'onDisruption': {'method': 'HTTP', 'http': {'port': 8476, 'path': "
      "'/a b'}}}}",
      "InvalidSpec", "http.path" },
    { "{'checkpoint': {'onDisruption': {'method': 'HTTP', 'http': {'port': 8476}}}, "
      "'podTemplate': {'spec': {'hostNetwork': true}}}",
      "InvalidSpec", "hostNetwork" },
    { "{'checkpoint': {'onDisruption': {'method': 'Exec'}}}", "InvalidSpec", "method" },
    { "{'checkpoint': {'onDisruption': {'timeoutSeconds': 0}}}", "InvalidSpec",
      "between 1 and 86400" },
    { "{'failurePolicy': {'backoffSeconds': 700}}", "InvalidSpec", "backoffMaxSeconds" },
    { "{'podTemplate': 3}", "InvalidSpec", "spec.podTemplate: must be an object" },
};

START_TEST(what_cannot_be_is_refused_by_field)
{
    json_auto_t *job = job_with(refused[_i].spec);
    struct job_spec spec;
    const char *reason = NULL;
    struct het_error err = { 0 };
    ck_assert_msg(job_spec_parse(job, &spec, &reason, &err) == -1, "%s",
                  refused[_i].spec);
    ck_assert_str_eq(reason, refused[_i].reason);
    ck_assert_msg(strstr(err.message, refused[_i].message) != NULL, "%s", err.message);
}
END_TEST

START_TEST(names_that_would_not_make_pod_names_are_refused)
{
    static const char *const names[] = {
        "Opt", "1opt", "opt-", "opt.x", "", "a2345678901234567890123456789012345678901"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_auto_t *job = job_with("{}");
        json_object_set_new(json_object_get(job, "metadata"), "name",
                            json_string(names[i]));
        struct job_spec spec;
        const char *reason;
        struct het_error err;
        ck_assert_int_eq(job_spec_parse(job, &spec, &reason, &err), -1);
        ck_assert_ptr_nonnull(strstr(err.message, "metadata.name"));
    }
}
END_TEST

START_TEST(too_large_a_job_is_refused)
{
    json_auto_t *job = job_with("{}");
    char *text = xcalloc(JOB_SPEC_MAX_BYTES + 1, 1);
    memset(text, 'x', JOB_SPEC_MAX_BYTES);
    json_object_set_new(json_object_get(job, "spec"), "junk", json_string(text));
    free(text);
    struct job_spec spec;
    const char *reason;
    struct het_error err;
    ck_assert_int_eq(job_spec_parse(job, &spec, &reason, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "bytes"));
}
END_TEST

START_TEST(job_of_another_manager_is_not_ours)
{
    json_auto_t *other = job_with("{'managedBy': 'kueue.x-k8s.io/multikueue'}");
    json_auto_t *ours = job_with("{'managedBy': 'heterotrain.io/controller'}");
    ck_assert(!job_spec_is_ours(other));
    ck_assert(job_spec_is_ours(ours));
}
END_TEST

Suite *test_job_spec_suite(void)
{
    Suite *suite = suite_create("job_spec");
    TCase *cases = tcase_create("job_spec");
    tcase_add_test(cases, absent_fields_take_the_defaults);
    tcase_add_test(cases, given_fields_are_read);
    tcase_add_test(cases, defaults_are_those_of_the_schema);
    tcase_add_test(cases, names_are_those_of_the_planners_tables);
    tcase_add_test(cases, names_that_the_planner_lacks_are_answered_with_those_it_has);
    tcase_add_loop_test(cases, what_cannot_be_is_refused_by_field, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(cases, names_that_would_not_make_pod_names_are_refused);
    tcase_add_test(cases, too_large_a_job_is_refused);
    tcase_add_test(cases, job_of_another_manager_is_not_ours);
    suite_add_tcase(suite, cases);
    return suite;
}
