#include "tests/controller/random_world.h"

#include "controller/job/job_spec.h"
#include "controller/simulate/api_server/condition.h"
#include "tests/controller/happening.h"
#include "tests/controller/objects.h"
#include "tests/controller/quoted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const namespaces[] = { "default", "team" };
/* Those that make_profile knows. */
static const char *const types[] = { "A100-SXM4-40GB", "V100-SXM2-16GB", "Tesla-T4" };

static void put(struct random_world *world, json_t *object)
{
    struct het_error err = { 0 };
    int failed = api_server_put(world->server, object, &err);
    assert(!failed);
}

/* ---- what is there at the start ---- */

static void put_node(struct random_world *world, size_t index)
{
    static const int sizes[] = { 1, 2, 4, 4, 8 };
    struct dice *dice = &world->dice;
    int gpus = dice_pick(dice, sizes);
    int cpus = dice_chance(dice, 150) ? gpus : 64; /* scarce now and then */
    /* What such a node calls its GPUs may be what others do. */
    const char *resource = world->has_vendors && index % 2 ? JOB_SPEC_AMD_RESOURCE
                                                           : JOB_SPEC_GPU_RESOURCE;
    world->gpus[index] = gpus;
    json_t *node = quoted(
        "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n%zu', 'labels': "
        "{'nvidia.com/gpu.product': '%s', 'topology.kubernetes.io/zone': 'z%d', 'pool': "
        "'%s'}}, 'status': {'capacity': {'%s': '%d'}, 'allocatable': "
        "{'%s': '%d', 'cpu': '%d', 'memory': '256Gi', 'ephemeral-storage': "
        "'500Gi', 'pods': '%d'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
        index, dice_pick(dice, types), (int)dice_throw(dice, 2),
        dice_chance(dice, 800) ? "training" : "other", resource, gpus, resource, gpus,
        cpus, dice_chance(dice, 50) ? 1 : 110);
    json_t *labels = object_at(node, "metadata.labels");
    if (dice_chance(dice, 200))
        json_object_set_new(labels, "karpenter.sh/capacity-type", json_string("spot"));
    if (dice_chance(dice, 50))
        json_object_set_new(labels, "nvidia.com/gpu.sharing-strategy",
                            json_string("time-slicing"));
    if (dice_chance(dice, 100))
        object_set(node, "spec.taints",
                   quoted("[{'key': 'dedicated', 'effect': 'NoSchedule'}]"));
    put(world, node);
}

/* A pod, a ConfigMap and a Service that look like ours to whoever trusts a label. */
static void put_bystanders(struct random_world *world)
{
    put(world,
        quoted("{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': "
               "'j0-plan-1', 'labels': {'%s': 'j0', '%s': '1', '%s': '%s'}}, 'data': "
               "{'plan.json': '{}'}}",
               LABEL_JOB_NAME, LABEL_PLAN_REVISION, LABEL_MANAGED_BY, MANAGED_BY));
    put(world, quoted("{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'j1',"
                      " 'labels': {'%s': 'j1'}}, 'spec': {'ports': [{'port': 80}]}}",
                      LABEL_JOB_NAME));
    put(world,
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'j0-1-0', "
               "'labels': {'%s': 'j0', '%s': '1', '%s': '%s'}}, 'spec': {'containers': "
               "[{'name': 'c', 'image': 'i'}]}}",
               LABEL_JOB_NAME, LABEL_PLAN_REVISION, LABEL_MANAGED_BY, MANAGED_BY));
}

static const struct {
    const char *plural, *name;
} bystanders[] = { { "configmaps", "j0-plan-1" },
                   { "services", "j1" },
                   { "pods", "j0-1-0" } };

bool random_world_has_bystanders(const struct random_world *world)
{
    /* The pod may have gone with its node. */
    for (size_t i = 0; world->has_bystanders && i < 2; i++)
        if (!api_server_find(world->server, bystanders[i].plural, "default",
                             bystanders[i].name))
            return false;
    return true;
}

static void take_bystanders_away(struct random_world *world)
{
    for (size_t i = 0; world->has_bystanders && i < 3; i++)
        api_server_drop(world->server, bystanders[i].plural, "default",
                        bystanders[i].name);
    world->has_bystanders = false;
}

static void put_class(struct random_world *world, const char *name, int value)
{
    put(world, quoted("{'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', "
                      "'metadata': {'name': '%s'}, 'value': %d}",
                      name, value));
}

void random_world_build(struct random_world *world)
{
    /* Dice of their own: other worlds are as they were. */
    struct dice vendors = dice_of(world->dice.state, 1);
    world->has_vendors = dice_chance(&vendors, 250);
    world->profiler = (struct profiler){ .after_ms = 20000 };
    simulated_cluster_set_program(world->cluster, profiler_run, &world->profiler);
    world->node_count = (size_t)dice_between(&world->dice, 3, RANDOM_WORLD_NODES);
    for (size_t i = 0; i < world->node_count; i++)
        put_node(world, i);
    for (size_t i = 0; i < 2; i++)
        put(world,
            make_profile(namespaces[i], (size_t)dice_between(&world->dice, 1, 3), 1));
    put_class(world, "low", -10);
    put_class(world, "high", 1000);
    world->has_bystanders = dice_chance(&world->dice, 150);
    if (world->has_bystanders)
        put_bystanders(world);
}

/* ---- jobs ---- */

static void maybe(struct dice *dice, unsigned per_mille, json_t *spec, const char *path,
                  json_t *value)
{
    if (dice_chance(dice, per_mille))
        object_set(spec, path, value);
    else
        json_decref(value);
}

static void choose_resources(struct dice *dice, json_t *spec)
{
    static const char *const spot[] = { "Forbid", "PreferOnDemand" };
    int64_t least = dice_between(dice, 1, 4);
    object_set(spec, "resources.minGPUs", json_integer(least));
    maybe(dice, 600, spec, "resources.maxGPUs",
          json_integer(least + dice_between(dice, 0, 8)));
    maybe(dice, 150, spec, "resources.spotPolicy", json_string(dice_pick(dice, spot)));
    maybe(dice, 100, spec, "resources.sharedGPUPolicy", json_string("Allow"));
    maybe(dice, 100, spec, "resources.nodeSelector", quoted("{'pool': 'training'}"));
    maybe(
        dice, 100, spec, "resources.nodeAffinity",
        quoted("{'nodeSelectorTerms': [{'matchExpressions': [{'key': "
               "'topology.kubernetes.io/zone', 'operator': 'In', 'values': ['z%d']}]}]}",
               (int)dice_throw(dice, 2)));
    if (!dice_chance(dice, 300))
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < 3; i++)
        if (dice_chance(dice, 600))
            json_array_append_new(
                list,
                quoted("{'name': '%s', 'maxGPUs': %d, 'preference': %d}", types[i],
                       (int)dice_between(dice, 2, 8), (int)dice_between(dice, -2, 2)));
    if (json_array_size(list) && dice_chance(dice, 300))
        object_set(json_array_get(list, 0), "minGPUs", json_integer(1));
    if (json_array_size(list))
        object_set(spec, "resources.gpuTypes", list);
    else
        json_decref(list);
}

static void choose_planner(struct dice *dice, json_t *spec)
{
    static const char *const algorithms[] = { "megatron", "metis", "oomfirst", "amp" };
    maybe(dice, 700, spec, "planner.algorithm", json_string(dice_pick(dice, algorithms)));
    maybe(dice, 150, spec, "planner.constraints.tensorParallel.allowedDegrees",
          json_pack("[i]", 1));
    maybe(dice, 100, spec, "planner.constraints.pipelineParallel.maxStages",
          json_integer(dice_between(dice, 1, 2)));
    maybe(dice, 50, spec, "planner.topologyKeys",
          json_pack("[s]", "topology.kubernetes.io/zone"));
}

static void choose_replanning(struct dice *dice, json_t *spec)
{
    static const char *const modes[] = { "Manual", "Never" };
    int64_t debounce_s = dice_between(dice, 0, 30);
    object_set(spec, "replanPolicy.debounceSeconds", json_integer(debounce_s));
    object_set(spec, "replanPolicy.cooldownSeconds",
               json_integer(debounce_s + dice_between(dice, 0, 120)));
    object_set(spec, "replanPolicy.minImprovementPercent",
               json_integer(dice_between(dice, 0, 30)));
    maybe(dice, 500, spec, "replanPolicy.maxSlowdownPercent",
          json_integer(dice_between(dice, 0, 60)));
    maybe(dice, 200, spec, "replanPolicy.mode", json_string(dice_pick(dice, modes)));
    maybe(dice, 300, spec, "replanPolicy.nodeFailureGraceSeconds",
          json_integer(dice_between(dice, 0, 60)));
    maybe(dice, 300, spec, "replanPolicy.amortizationSeconds",
          json_integer(dice_between(dice, 60, 36000)));
    maybe(dice, 300, spec, "replanPolicy.maxReplansPerHour",
          json_integer(dice_between(dice, 1, 6)));
    maybe(dice, 100, spec, "replanPolicy.triggers",
          quoted("['NodeAdded', 'NodeRemoved', 'CapacityFreed']"));
}

static void choose_checkpoint(struct dice *dice, json_t *spec)
{
    static const char *const resharding[] = { "SamePipeline", "SamePlan" };
    json_t *http = quoted("{'method': 'HTTP', 'http': {'port': 8476, 'path': "
                          "'/checkpoint'}, 'timeoutSeconds': %d}",
                          (int)dice_between(dice, 1, 30));
    json_t *signal = quoted("{'method': 'Signal', 'timeoutSeconds': %d}",
                            (int)dice_between(dice, 1, 30));
    switch (dice_throw(dice, 4)) {
    case 0:
        object_set(spec, "checkpoint.onDisruption", json_incref(http));
        break;
    case 1:
        object_set(spec, "checkpoint.onDisruption", json_incref(signal));
        break;
    case 2:
        object_set(spec, "checkpoint.onDisruption", quoted("{'method': 'None'}"));
        break;
    default:
        break;
    }
    json_decref(http);
    json_decref(signal);
    maybe(dice, 300, spec, "checkpoint.intervalSeconds",
          json_integer(dice_between(dice, 60, 1800)));
    maybe(dice, 200, spec, "checkpoint.storageURI", json_string("pvc://c/d"));
    maybe(dice, 50, spec, "checkpoint.resharding",
          json_string(dice_pick(dice, resharding)));
}

/* One to three rules about what happens to pods here. */
static json_t *choose_failure_rules(struct dice *dice)
{
    static const char *const actions[] = { "FailJob", "Ignore", "Count" };
    static const char *const matches[] = {
        "'onExitCodes': {'operator': 'In', 'values': [2]}",
        "'onExitCodes': {'containerName': 'trainer', 'operator': 'NotIn', 'values': [2]}",
        "'onPodConditions': [{'type': 'DisruptionTarget'}]"
    };
    json_t *rules = json_array();
    for (int64_t left = dice_between(dice, 1, 3); left > 0; left--) {
        const char *action = dice_pick(dice, actions);
        json_array_append_new(
            rules, quoted("{'action': '%s', %s}", action, dice_pick(dice, matches)));
    }
    return rules;
}

static void choose_life(struct dice *dice, json_t *spec)
{
    object_set(spec, "failurePolicy.maxRestarts", json_integer(dice_between(dice, 0, 3)));
    object_set(spec, "failurePolicy.backoffSeconds",
               json_integer(dice_between(dice, 1, 20)));
    object_set(spec, "failurePolicy.backoffMaxSeconds",
               json_integer(dice_between(dice, 20, 60)));
    maybe(dice, 300, spec, "failurePolicy.rules", choose_failure_rules(dice));
    maybe(dice, 200, spec, "failurePolicy.resetAfterSeconds",
          json_integer(dice_between(dice, 10, 600)));
    maybe(dice, 150, spec, "successPolicy.completeWhen", json_string("RankZero"));
    maybe(dice, 100, spec, "activeDeadlineSeconds",
          json_integer(dice_between(dice, 30, 1200)));
    maybe(dice, 200, spec, "ttlSecondsAfterFinished",
          json_integer(dice_between(dice, 0, 300)));
    maybe(dice, 60, spec, "suspend", json_true());
    maybe(dice, 20, spec, "managedBy", json_string("somebody.else/controller"));
}

static void choose_scheduling(struct dice *dice, json_t *spec)
{
    static const char *const classes[] = { "low", "high", "high", "missing" };
    maybe(dice, 300, spec, "scheduling.priorityClassName",
          json_string(dice_pick(dice, classes)));
    object_set(spec, "scheduling.gangTimeoutSeconds",
               json_integer(dice_between(dice, 10, 90)));
    maybe(dice, 50, spec, "scheduling.gang", json_string("None"));
    maybe(dice, 300, spec, "perGPUResources",
          quoted("{'cpu': '%d', 'memory': '%dGi'}", (int)dice_between(dice, 1, 6),
                 (int)dice_between(dice, 1, 40)));
    maybe(dice, 150, spec, "podTemplate.spec.tolerations",
          quoted("[{'key': 'dedicated', 'operator': 'Exists'}]"));
    maybe(dice, 200, spec, "podTemplate.spec.terminationGracePeriodSeconds",
          json_integer(dice_between(dice, 0, 5)));
}

/* Some have what their profile lacks measured. */
static void choose_profile(struct dice *dice, json_t *spec)
{
    bool grows = dice_chance(dice, 250);
    object_set(spec, "model.profilePolicy", json_string(grows ? "OnDemand" : "Existing"));
    if (grows)
        object_set(spec, "model.architecture", profiler_architecture());
    else
        object_remove(spec, "model.architecture");
}

static json_t *random_job(struct random_world *world, const char *ns, const char *name)
{
    struct dice *dice = &world->dice;
    json_t *job = quoted(
        "{'apiVersion': 'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', "
        "'metadata': {'name': '%s', 'namespace': '%s'}, 'spec': {'model': {'profileRef': "
        "{'kind': 'ModelProfile', 'name': 'small'}}, 'training': {'globalBatchSize': %d}, "
        "'podTemplate': {'spec': {'terminationGracePeriodSeconds': 30, 'containers': "
        "[{'name': 'trainer', 'image': 'train:1', 'command': ['torchrun']}]}}}}",
        name, ns, dice_chance(dice, 500) ? 32 : 8);
    json_t *spec = object_at(job, "spec");
    choose_profile(dice, spec);
    choose_resources(dice, spec);
    choose_planner(dice, spec);
    choose_replanning(dice, spec);
    choose_checkpoint(dice, spec);
    choose_life(dice, spec);
    choose_scheduling(dice, spec);
    return make_restricted(job);
}

/* Changes a part of a job that is there, as its user would. */
static json_t *changed_job(struct random_world *world, const json_t *job)
{
    struct dice *dice = &world->dice;
    json_t *changed = json_deep_copy(job);
    json_t *spec = object_at(changed, "spec");
    switch (dice_throw(dice, 9)) {
    case 0:
        choose_resources(dice, spec);
        break;
    case 8:
        choose_profile(dice, spec);
        break;
    case 1:
        choose_replanning(dice, spec);
        break;
    case 2:
        choose_life(dice, spec);
        break;
    case 3:
        choose_checkpoint(dice, spec);
        break;
    case 4:
        object_set(spec, "suspend", json_boolean(!object_is_true(spec, "suspend")));
        break;
    case 5:
        object_set(json_array_get(object_at(spec, "podTemplate.spec.containers"), 0),
                   "image", json_string(dice_chance(dice, 500) ? "train:2" : "train:3"));
        break;
    case 6: /* no such field value: refused until it is put right */
        object_set(spec, "resources.minGPUs",
                   json_integer(dice_chance(dice, 500) ? 5000 : 2));
        break;
    default:
        object_set(spec, "resources.minGPUs", json_integer(dice_between(dice, 1, 6)));
        object_remove(spec, "resources.maxGPUs");
        break;
    }
    json_t *manager = object_at(job, "spec.managedBy"); /* it cannot be changed */
    object_remove(spec, "managedBy");
    if (manager)
        json_object_set(spec, "managedBy", manager);
    object_remove(changed, "status");
    return changed;
}

char *random_world_delete_job(struct random_world *world)
{
    size_t count = api_server_count(world->server, "heterotrainingjobs");
    if (!count)
        return xstrdup("");
    const json_t *job = api_server_at(world->server, "heterotrainingjobs",
                                      (size_t)dice_throw(&world->dice, count));
    char *what = xasprintf("delete job %s/%s", object_text(job, "metadata.namespace"),
                           object_text(job, "metadata.name"));
    auto_free char *ns = xstrdup(object_text(job, "metadata.namespace"));
    auto_free char *name = xstrdup(object_text(job, "metadata.name"));
    api_server_delete(world->server, "heterotrainingjobs", ns, name, -1, NULL);
    return what;
}

char *random_world_add_job(struct random_world *world)
{
    struct dice *dice = &world->dice;
    auto_free char *name = xasprintf("j%d", (int)dice_throw(dice, RANDOM_WORLD_JOBS));
    const char *ns = namespaces[dice_chance(dice, 250)];
    const json_t *held = api_server_find(world->server, "heterotrainingjobs", ns, name);
    if (held && dice_chance(dice, 300)) {
        api_server_delete(world->server, "heterotrainingjobs", ns, name, -1, NULL);
        if (dice_chance(dice, 500))
            return xasprintf("delete job %s/%s", ns, name);
        held = NULL;
    }
    world->jobs_made++;
    json_t *job = held ? changed_job(world, held) : random_job(world, ns, name);
    auto_free char *spec = json_dumps(object_at(job, "spec"), JSON_COMPACT);
    char *text = xasprintf("%s job %s/%s %s", held ? "change" : "create", ns, name, spec);
    put(world, job);
    return text;
}

/* ---- events ---- */

/* "delete node/a", now; takes the text, returns it, or "" if it cannot be (there is no
 * such node or pod). */
static char *do_event(struct random_world *world, char *text)
{
    if (!happening(world->cluster, text, NULL))
        return text;
    free(text);
    return xstrdup("");
}

static char *shake_node(struct random_world *world)
{
    static const char *const verbs[] = {
        "delete node/%s",
        "restore node/%s",
        "restore node/%s",
        "cordon node/%s",
        "uncordon node/%s",
        "notready node/%s",
        "ready node/%s",
        "ready node/%s",
        "taint node/%s dedicated:NoSchedule",
        "taint node/%s node.kubernetes.io/out-of-service:NoExecute",
        "taint node/%s cloud.google.com/impending-node-termination:NoSchedule",
        "taint node/%s sick:NoExecute",
        "untaint node/%s dedicated",
        "untaint node/%s node.kubernetes.io/out-of-service",
        "untaint node/%s sick",
        "condition node/%s GpuUnhealthy True",
        "condition node/%s GpuUnhealthy False",
        "label node/%s pool=training",
        "label node/%s pool=other",
        "label node/%s nvidia.com/mig.config.state=pending",
        "label node/%s nvidia.com/mig.config.state-",
        "label node/%s nvidia.com/gpu.product=Tesla-T4",
        "annotate node/%s note=changed",
        "release node/%s",
    };
    struct dice *dice = &world->dice;
    auto_free char *name = xasprintf("n%d", (int)dice_throw(dice, world->node_count));
    if (dice_chance(dice, 150))
        return do_event(
            world, xasprintf("gpus node/%s %d", name, (int)dice_between(dice, 0, 8)));
    if (dice_chance(dice, 150))
        return do_event(
            world, xasprintf("occupy node/%s %d", name, (int)dice_between(dice, 1, 4)));
    char *text = NULL;
    if (asprintf(&text, dice_pick(dice, verbs), name) < 0)
        abort();
    return do_event(world, text);
}

static char *shake_pod(struct random_world *world)
{
    static const char *const verbs[] = { "fail pod/%s/%s",   "fail pod/%s/%s 2",
                                         "fail pod/%s/%s 0", "evict pod/%s/%s",
                                         "delete pod/%s/%s", "fail pod/%s/%s 137",
                                         "evict pod/%s/%s" };
    struct dice *dice = &world->dice;
    size_t count = api_server_count(world->server, "pods");
    if (!count)
        return xstrdup("");
    const json_t *pod = api_server_at(world->server, "pods", dice_throw(dice, count));
    /* A bystander never runs, so nothing of it can fail. */
    if (!json_object_get(object_at(pod, "metadata.labels"), LABEL_JOB_UID))
        return xstrdup("");
    char *text = NULL;
    if (asprintf(&text, dice_pick(dice, verbs), object_text(pod, "metadata.namespace"),
                 object_text(pod, "metadata.name")) < 0)
        abort();
    return do_event(world, text);
}

/* A pod of somebody else that the scheduler is to place. */
static char *add_foreign_pod(struct random_world *world)
{
    struct dice *dice = &world->dice;
    auto_free char *name = xasprintf("foreign-%d", (int)++world->foreign_made);
    int gpus = (int)dice_between(dice, 0, 4);
    json_t *pod =
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': '%s', "
               "'namespace': 'foreign'}, 'spec': {'containers': [{'name': 'c', 'image': "
               "'i', 'resources': {'limits': {'nvidia.com/gpu': '%d', 'cpu': '%d'}}}]}}",
               name, gpus, (int)dice_between(dice, 1, 32));
    if (dice_chance(dice, 300))
        object_set(pod, "spec.priorityClassName", json_string("high"));
    put(world, pod);
    return xasprintf("create pod foreign/%s with %d GPUs", name, gpus);
}

static char *remove_foreign_pods(struct random_world *world)
{
    while (api_server_count(world->server, "pods")) {
        size_t i = 0;
        while (i < api_server_count(world->server, "pods") &&
               strcmp(object_text(api_server_at(world->server, "pods", i),
                                  "metadata.namespace"),
                      "foreign") != 0)
            i++;
        if (i == api_server_count(world->server, "pods"))
            break;
        auto_free char *name = xstrdup(
            object_text(api_server_at(world->server, "pods", i), "metadata.name"));
        api_server_drop(world->server, "pods", "foreign", name);
    }
    return xstrdup("foreign pods end");
}

static void put_phantom(struct random_world *world, const json_t *owner, size_t node)
{
    put(world,
        quoted("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'phantom-%d', "
               "'namespace': '%s', 'ownerReferences': [{'apiVersion': "
               "'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', 'name': '%s', "
               "'uid': '%s', 'controller': true}]}, 'spec': {'affinity': "
               "{'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
               "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', "
               "'operator': 'In', 'values': ['n%zu']}]}]}}}, 'containers': [{'name': "
               "'c', 'image': 'i', 'resources': {'limits': {'nvidia.com/gpu': '1000', "
               "'cpu': '100000', 'invented.io/r%d': '1'}}}]}}",
               (int)++world->foreign_made, kube_namespace(owner), kube_name(owner),
               kube_uid(owner), node, (int)dice_throw(&world->dice, 100)));
}

/* Pods that a tenant pins to the nodes, one to each, an invented one too, and says a job
 * is the controller of. They ask for more than there is, and stay as long as the job. */
static char *add_phantoms(struct random_world *world)
{
    size_t count = api_server_count(world->server, "heterotrainingjobs");
    if (!count)
        return xstrdup("");
    const json_t *owner = api_server_at(world->server, "heterotrainingjobs",
                                        dice_throw(&world->dice, count));
    for (size_t i = 0; i <= world->node_count; i++)
        put_phantom(world, owner, i);
    return xasprintf("create pods of job %s/%s, pinned to all nodes",
                     kube_namespace(owner), kube_name(owner));
}

static char *shake_job(struct random_world *world)
{
    static const char *const verbs[] = {
        "succeed job/%s",
        "suspend job/%s",
        "resume job/%s",
        "patch job/%s {\"spec\": {\"planOnly\": true}}",
        "patch job/%s {\"spec\": {\"planOnly\": false}}",
    };
    struct dice *dice = &world->dice;
    auto_free char *name = xasprintf("j%d", (int)dice_throw(dice, RANDOM_WORLD_JOBS));
    char *text = NULL;
    if (asprintf(&text, dice_pick(dice, verbs), name) < 0)
        abort();
    return do_event(world, text);
}

static char *shake_hook(struct random_world *world)
{
    static const struct simulated_hook hooks[] = {
        { 200, 0 }, { 200, 3000 }, { 500, 100 }, { 0, 0 }, { 200, INT64_MAX }
    };
    struct simulated_hook hook = dice_pick(&world->dice, hooks);
    simulated_cluster_set_hook(world->cluster, hook);
    return xasprintf("hooks answer %d", hook.status);
}

static char *shake_profile(struct random_world *world)
{
    const char *ns = namespaces[dice_throw(&world->dice, 2)];
    if (dice_chance(&world->dice, 300)) {
        api_server_drop(world->server, "modelprofiles", ns, "small");
        return xasprintf("delete profile %s/small", ns);
    }
    int factor = (int)dice_between(&world->dice, 1, 3);
    int count = (int)dice_between(&world->dice, 1, 3);
    put(world, make_profile(ns, (size_t)count, factor));
    return xasprintf("profile %s/small of %d types, times %d", ns, count, factor);
}

/* The profilers that start from now on. */
static char *shake_profiler(struct random_world *world)
{
    struct profiler *profiler = &world->profiler;
    *profiler = (struct profiler){
        .after_ms = dice_chance(&world->dice, 150)
                        ? INT64_MAX
                        : 1000 * dice_between(&world->dice, 1, 90),
        .failures = dice_chance(&world->dice, 300) ? 100 : 0,
        .is_forged = dice_chance(&world->dice, 200),
    };
    return xasprintf("profilers take %lld ms%s%s", (long long)profiler->after_ms,
                     profiler->failures ? ", and fail" : "",
                     profiler->is_forged ? ", and lie" : "");
}

/* The controller hears nothing new of one kind, or hears all of it. */
static char *shake_watches(struct random_world *world)
{
    static const char *const plurals[] = { "pods", "pods", "nodes", "configmaps",
                                           "heterotrainingjobs" };
    const char *plural = dice_pick(&world->dice, plurals);
    bool held = world->may_hold && dice_chance(&world->dice, 600);
    api_server_hold_watches(world->server, held ? plural : NULL, held);
    return held ? xasprintf("watches of %s are held", plural)
                : xstrdup("no watch is held");
}

char *random_world_shake(struct random_world *world)
{
    if (world->may_hold && dice_chance(&world->dice, 150))
        return shake_watches(world);
    uint64_t face = dice_throw(&world->dice, 100);
    if (face < 45)
        return shake_node(world);
    if (face < 62)
        return shake_pod(world);
    if (face < 75)
        return random_world_add_job(world);
    if (face < 84)
        return shake_job(world);
    if (face < 89)
        return add_foreign_pod(world);
    if (face < 91)
        return add_phantoms(world);
    if (face < 94)
        return remove_foreign_pods(world);
    if (face < 96)
        return shake_hook(world);
    return dice_chance(&world->dice, 500) ? shake_profiler(world) : shake_profile(world);
}

void random_world_admit(struct random_world *world)
{
    api_server_hold_watches(world->server, NULL, false);
    put_class(world, "missing", 0);
}

static void let_planned_jobs_run(struct random_world *world)
{
    for (size_t i = 0; i < api_server_count(world->server, "heterotrainingjobs"); i++) {
        const json_t *job = api_server_at(world->server, "heterotrainingjobs", i);
        free(
            do_event(world, xasprintf("patch job/%s/%s {\"spec\": {\"planOnly\": false}}",
                                      object_text(job, "metadata.namespace"),
                                      object_text(job, "metadata.name"))));
    }
}

void random_world_heal(struct random_world *world)
{
    static const char *const cures[] = {
        "restore node/n%zu",
        "ready node/n%zu",
        "uncordon node/n%zu",
        "release node/n%zu",
        "untaint node/n%zu dedicated",
        "untaint node/n%zu sick",
        "untaint node/n%zu node.kubernetes.io/out-of-service",
        "untaint node/n%zu cloud.google.com/impending-node-termination",
        "condition node/n%zu GpuUnhealthy False",
        "label node/n%zu nvidia.com/mig.config.state-",
    };
    for (size_t i = 0; i < world->node_count; i++) {
        for (size_t k = 0; k < sizeof cures / sizeof *cures; k++) {
            char *text = NULL;
            if (asprintf(&text, cures[k], i) < 0)
                abort();
            free(do_event(world, text));
        }
        free(do_event(world, xasprintf("gpus node/n%zu %d", i, world->gpus[i])));
    }
    free(remove_foreign_pods(world));
    random_world_admit(world);
    let_planned_jobs_run(world);
    take_bystanders_away(world);
    simulated_cluster_set_hook(world->cluster, (struct simulated_hook){ 200, 100 });
    world->profiler = (struct profiler){ .after_ms = 20000 };
    for (size_t i = 0; i < 2; i++)
        put(world, make_profile(namespaces[i], 3, 1));
}
