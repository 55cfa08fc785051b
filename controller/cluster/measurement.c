#include "controller/cluster/measurement.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/kept_fields.h"
#include "controller/cluster/kueue_quota.h"
#include "controller/job/node_selector.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER        "profiler"
#define RESULT_PATH      "/dev/termination-log"
#define RESULT_VERSION   1
#define OPTIMIZER        "Adam"
#define MAX_GROUPS       64
#define MAX_LAYERS       4096
#define MAX_BYTES        ((uint64_t)1 << 53)
#define MAX_MICROSECONDS ((uint64_t)86400000000) /* a day */
#define MAX_MICROBATCH   4096
#define MAX_MEMORY_MIB   16777216
#define MAX_STATE_BYTES  64
/* Not root; no user of that number need exist in the image. */
#define USER             65532

/* ---- which there are ---- */

/* The name says what is measured, for which profile, and by what. */
static const char *name_of(struct het_arena *arena,
                           const struct measurement_sources *sources, const char *type)
{
    const struct job_spec *spec = sources->spec;
    const struct job_architecture *model = &spec->architecture;
    const struct settings_profiler *profiler = &sources->settings->profiler;
    const int64_t sizes[] = { model->layers,          model->hidden,
                              model->heads,           model->kv_heads,
                              model->ffn_hidden,      model->vocabulary,
                              model->sequence_length, profiler->largest_microbatch };
    const char *const texts[] = { spec->profile_name, type, model->precision,
                                  profiler->image };
    uint64_t digest = digest_bytes(0, sizes, sizeof sizes);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        digest = digest_text(digest, texts[i]);
    for (size_t i = 0; i < profiler->command_count; i++)
        digest = digest_text(digest, profiler->command[i]);
    return het_arena_printf(arena, "measure-%016" PRIx64, digest);
}

bool measurement_is_profiled(const struct het_hardware *hardware, const json_t *profile,
                             const char *type)
{
    const json_t *entries = object_at(profile, "spec.gpuTypes");
    const struct het_gpu_type *part = het_hardware_find(hardware, type);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const char *name = object_text(json_array_get(entries, i), "name");
        bool is_short = part && part->profile && !strcmp(name, part->profile);
        if (!strcmp(name, type) || is_short ||
            (part && het_hardware_find(hardware, name) == part))
            return true;
    }
    return false;
}

static bool has_succeeded(const json_t *pod)
{
    return !strcmp(object_text(pod, "status.phase"), "Succeeded");
}

/* Whether `pod` is better than `best`: one that succeeded, else the newest. */
static bool is_better(const json_t *pod, const json_t *best)
{
    if (!best || has_succeeded(pod) != has_succeeded(best))
        return !best || has_succeeded(pod);
    int order = strcmp(object_text(pod, "metadata.creationTimestamp"),
                       object_text(best, "metadata.creationTimestamp"));
    return has_succeeded(pod) ? false : order > 0;
}

static const json_t *find_pod(struct het_arena *arena, const struct store *store,
                              const json_t *job)
{
    json_t **pods;
    const json_t *best = NULL;
    size_t count = job ? store_find_owned(store, &kube_pod, kube_uid(job), arena, &pods)
                       : 0;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kube_namespace(pods[i]), kube_namespace(job)) &&
            is_better(pods[i], best))
            best = pods[i];
    return best;
}

static bool may_use(const struct job_spec *spec, const char *type)
{
    return *type && job_spec_allows_type(spec, type);
}

/* Types that nodes have and the job may use; whether nodes of each are usable. Returns
 * how many. */
static size_t list_types(const struct job_spec *spec, const struct capacity_node *nodes,
                         size_t node_count, struct measurement types[HET_MAX_TYPES],
                         bool is_usable[HET_MAX_TYPES])
{
    size_t count = 0;
    for (size_t i = 0; i < node_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(types[at].type, nodes[i].type) != 0)
            at++;
        if (at == HET_MAX_TYPES || !*nodes[i].type || !may_use(spec, nodes[i].type))
            continue;
        if (at == count) {
            is_usable[count] = false;
            types[count++] = (struct measurement){ .type = nodes[i].type };
        }
        is_usable[at] |= !nodes[i].unusable;
    }
    return count;
}

static int compare_types(const void *a, const void *b)
{
    const struct measurement *left = a, *right = b;
    return strcmp(left->type, right->type);
}

size_t measurement_list(struct het_arena *arena,
                        const struct measurement_sources *sources,
                        const struct capacity_node *nodes, size_t node_count,
                        struct measurement **ret)
{
    bool is_usable[HET_MAX_TYPES];
    struct measurement *list = HET_ARENA_ARRAY(arena, struct measurement, HET_MAX_TYPES);
    size_t count = list_types(sources->spec, nodes, node_count, list, is_usable);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct measurement one = list[i];
        if (measurement_is_profiled(sources->hardware, sources->profile, one.type))
            continue;
        one.name = name_of(arena, sources, one.type);
        one.job =
            store_find(sources->store, &kube_batch_job, sources->spec->ns, one.name);
        one.pod = find_pod(arena, sources->store, one.job);
        if (is_usable[i] || one.job)
            list[kept++] = one;
    }
    qsort(list, kept, sizeof *list, compare_types);
    *ret = list;
    return kept;
}

static bool is_measurement(const json_t *job)
{
    return job_spec_find_owner(job) &&
           !strcmp(kube_label(job, LABEL_MANAGED_BY), MANAGED_BY) &&
           !strcmp(kube_label(job, LABEL_COMPONENT), COMPONENT_PROFILER);
}

/* Whether what `job` measures is still wanted, wherever the nodes of its type are. */
static bool is_wanted(struct het_arena *arena, const struct measurement_sources *sources,
                      const json_t *job)
{
    const char *type = kube_label(job, LABEL_GPU_TYPE);
    return may_use(sources->spec, type) &&
           !measurement_is_profiled(sources->hardware, sources->profile, type) &&
           !strcmp(name_of(arena, sources, type), kube_name(job));
}

size_t measurement_list_spent(struct het_arena *arena,
                              const struct measurement_sources *sources, bool wants_none,
                              const json_t *const **ret)
{
    const struct job_spec *spec = sources->spec;
    json_t **owned;
    size_t count =
        store_find_owned(sources->store, &kube_batch_job, spec->uid, arena, &owned);
    const json_t **spent = HET_ARENA_ARRAY(arena, const json_t *, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kube_namespace(owned[i]), spec->ns) && is_measurement(owned[i]) &&
            !kube_is_deleting(owned[i]) &&
            (wants_none || !is_wanted(arena, sources, owned[i])))
            spent[kept++] = owned[i];
    *ret = spent;
    return kept;
}

int64_t measurement_gpus(const struct job_spec *spec, const char *type,
                         const struct capacity_node *nodes, size_t node_count)
{
    size_t nodes_of[HET_MAX_NODE_GPUS + 1] = { 0 };
    size_t usual = 0;
    for (size_t i = 0; i < node_count; i++)
        if (!nodes[i].unusable && !strcmp(nodes[i].type, type) &&
            nodes[i].allocatable > 0 && nodes[i].allocatable <= HET_MAX_NODE_GPUS)
            nodes_of[nodes[i].allocatable]++;
    for (size_t gpus = 1; gpus <= HET_MAX_NODE_GPUS; gpus++)
        usual = nodes_of[gpus] > nodes_of[usual] ? gpus : usual;
    if (!usual)
        return 0;
    const struct job_architecture *model = &spec->architecture;
    int64_t degree = 1;
    while (2 * degree <= (int64_t)usual && 2 * degree <= MEASUREMENT_MAX_DEGREE &&
           model->kv_heads % (2 * degree) == 0 && model->ffn_hidden % (2 * degree) == 0)
        degree *= 2;
    return degree;
}

/* ---- the Job ---- */

static const char *precision_name(struct het_arena *arena,
                                  const struct job_architecture *model)
{
    char *name = het_arena_strdup(arena, model->precision);
    for (char *at = name; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return name;
}

static void add_variable(json_t *environment, const char *name, json_t *value)
{
    json_array_append_new(environment,
                          object_pack("{s:s, s:o}", "name", name, "value", value));
}

static json_t *number_text(int64_t number)
{
    return json_sprintf("%" PRId64, number);
}

static json_t *environment(const struct job_spec *spec,
                           const struct settings_profiler *profiler,
                           const struct measurement *measurement, int64_t gpus)
{
    const struct job_architecture *model = &spec->architecture;
    struct het_arena *arena = het_arena_new();
    json_auto_t *config = job_spec_model_config(model);
    auto_free char *config_text = het_json_canonical(config);
    json_t *list = json_array();
    add_variable(list, "HETPROFILE_MODEL", json_string(config_text));
    add_variable(list, "HETPROFILE_GPU_TYPE", json_string(measurement->type));
    add_variable(list, "HETPROFILE_PRECISION", json_string(precision_name(arena, model)));
    add_variable(list, "HETPROFILE_SEQUENCE_LENGTH", number_text(model->sequence_length));
    add_variable(list, "HETPROFILE_TENSOR_PARALLEL", number_text(gpus));
    add_variable(list, "HETPROFILE_MICRO_BATCH",
                 number_text(profiler->largest_microbatch));
    add_variable(list, "HETPROFILE_RESULT", json_string(RESULT_PATH));
    add_variable(list, "HOME", json_string("/tmp"));
    het_arena_free(arena);
    return list;
}

static json_t *resources(const struct settings_profiler *profiler, const char *gpu,
                         int64_t gpus)
{
    json_t *amounts = json_object();
    for (size_t i = 0; i < profiler->resource_count; i++)
        json_object_set_new(amounts, profiler->resources[i].key,
                            json_string(profiler->resources[i].value));
    json_object_set_new(amounts, gpu, number_text(gpus));
    return object_pack("{s:O, s:o}", "requests", amounts, "limits", amounts);
}

static json_t *container(const struct job_spec *spec,
                         const struct settings_profiler *profiler,
                         const struct measurement *measurement, const char *gpu,
                         int64_t gpus)
{
    json_t *result = object_pack(
        "{s:s, s:s, s:o, s:o, s:s, s:s, s:{s:b, s:b, s:{s:[s]}}, "
        "s:[{s:s, s:s}, {s:s, s:s}]}",
        "name", CONTAINER, "image", profiler->image, "env",
        environment(spec, profiler, measurement, gpus), "resources",
        resources(profiler, gpu, gpus), "terminationMessagePath", RESULT_PATH,
        "terminationMessagePolicy", "File", "securityContext", "allowPrivilegeEscalation",
        0, "readOnlyRootFilesystem", 1, "capabilities", "drop", "ALL", "volumeMounts",
        "name", "tmp", "mountPath", "/tmp", "name", "shm", "mountPath", "/dev/shm");
    for (size_t i = 0; i < profiler->command_count; i++)
        json_array_append_new(object_list(result, "command"),
                              json_string(profiler->command[i]));
    return result;
}

static void tolerate(json_t *tolerations, const char *taint)
{
    json_array_append_new(tolerations,
                          object_pack("{s:s, s:s, s:s}", "key", taint, "operator",
                                      "Exists", "effect", "NoSchedule"));
}

/* Where pods of the job may go, as checked with the template's tolerations. The
 * measurement does not get the job's priority: it preempts nothing. */
static void set_place(json_t *pod_spec, const struct job_spec *spec,
                      const struct capacity_node *node)
{
    const json_t *template = json_object_get(spec->pod_template, "spec");
    json_t *own = json_object_get(template, "tolerations");
    json_t *tolerations = json_is_array(own) ? json_deep_copy(own) : json_array();
    tolerate(tolerations, JOB_SPEC_GPU_RESOURCE);
    if (strcmp(node->resource, JOB_SPEC_GPU_RESOURCE) != 0)
        tolerate(tolerations, node->resource);
    json_object_set_new(pod_spec, "tolerations", tolerations);
    object_set(pod_spec,
               "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
               node_selector_join(NULL, NULL, NULL, node->name));
    const char *runtime = object_text(template, "runtimeClassName");
    if (*runtime)
        json_object_set_new(pod_spec, "runtimeClassName", json_string(runtime));
}

/* Pod Security restricted, no credentials, and nothing of the job's template but where it
 * may run: the image is the administrator's. */
static json_t *pod_spec(const struct job_spec *spec,
                        const struct settings_profiler *profiler,
                        const struct measurement *measurement,
                        const struct capacity_node *node, int64_t gpus)
{
    json_t *result = object_pack(
        "{s:s, s:b, s:b, s:i, s:{s:b, s:i, s:i, s:i, s:{s:s}}, s:[o], "
        "s:[{s:s, s:{}}, {s:s, s:{s:s}}]}",
        "restartPolicy", "Never", "automountServiceAccountToken", 0, "enableServiceLinks",
        0, "terminationGracePeriodSeconds", 10, "securityContext", "runAsNonRoot", 1,
        "runAsUser", USER, "runAsGroup", USER, "fsGroup", USER, "seccompProfile", "type",
        "RuntimeDefault", "containers",
        container(spec, profiler, measurement, node->resource, gpus), "volumes", "name",
        "tmp", "emptyDir", "name", "shm", "emptyDir", "medium", "Memory");
    set_place(result, spec, node);
    return result;
}

/* Labels of the Job and its pods. Kubernetes creates the pods, so they get no labels
 * under heterotrain.io/, which only the controller may set. */
static json_t *labels(const struct job_spec *spec, const char *queue)
{
    json_t *labels = object_pack(
        "{s:s, s:s, s:s, s:s, s:s}", "app.kubernetes.io/name", "heterotrain",
        "app.kubernetes.io/instance", spec->name, "app.kubernetes.io/part-of",
        "heterotrain", LABEL_MANAGED_BY, MANAGED_BY, LABEL_COMPONENT, COMPONENT_PROFILER);
    if (queue)
        json_object_set_new(labels, KUEUE_LABEL_QUEUE, json_string(queue));
    return labels;
}

json_t *measurement_job(const struct job_spec *spec, const struct settings *settings,
                        const struct measurement *measurement,
                        const struct capacity_node *node, int64_t gpus, const char *queue)
{
    const struct settings_profiler *profiler = &settings->profiler;
    json_t *job_labels = labels(spec, queue);
    json_object_set_new(job_labels, LABEL_GPU_TYPE, json_string(measurement->type));
    return object_pack(
        "{s:s, s:s, s:{s:s, s:s, s:o, s:{s:s, s:o}, s:o}, "
        "s:{s:i, s:I, s:i, s:{s:{s:o, s:{s:s, s:s}}, s:o}}}",
        "apiVersion", kube_batch_job.group_version, "kind", kube_batch_job.kind,
        "metadata", "name", measurement->name, "namespace", spec->ns, "labels",
        job_labels, "annotations", ANNOTATION_MODEL_PROFILE, spec->profile_name,
        ANNOTATION_GPUS, number_text(gpus), "ownerReferences",
        job_spec_owner_references(spec), "spec", "backoffLimit", MEASUREMENT_RETRIES,
        "activeDeadlineSeconds", (json_int_t)profiler->deadline_s,
        "ttlSecondsAfterFinished", MEASUREMENT_FAILED_TTL_S, "template", "metadata",
        "labels", labels(spec, queue), "annotations", "karpenter.sh/do-not-disrupt",
        "true", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false", "spec",
        pod_spec(spec, profiler, measurement, node, gpus));
}

/* ---- how far it is ---- */

static const json_t *container_state(const json_t *pod)
{
    return object_at(
        object_find(object_at(pod, "status.containerStatuses"), "name", CONTAINER),
        "state");
}

/* Why a pod that is not bound, or does not start, does not. */
static enum measurement_state look_at_pending(struct het_arena *arena, const json_t *pod,
                                              const char **ret_why)
{
    const json_t *waiting = object_at(container_state(pod), "waiting");
    const char *reason = object_text(waiting, "reason");
    const json_t *scheduled = object_find_condition(pod, "PodScheduled");
    if (*reason && strcmp(reason, "ContainerCreating") != 0 &&
        strcmp(reason, "PodInitializing") != 0) {
        *ret_why = het_arena_printf(arena, "its pod cannot start: %.63s: %.300s", reason,
                                    object_text(waiting, "message"));
        return MEASUREMENT_STUCK;
    }
    if (!strcmp(object_text(scheduled, "status"), "False"))
        *ret_why = het_arena_printf(arena, "its pod waits for its node: %.300s",
                                    object_text(scheduled, "message"));
    else
        *ret_why = "its pod starts";
    return MEASUREMENT_WAITING;
}

/* What a pod that failed has said. */
static const char *last_words(struct het_arena *arena, const json_t *pod)
{
    const json_t *ended = object_at(container_state(pod), "terminated");
    if (!ended)
        return object_text(pod, "status.message");
    return het_arena_printf(arena, "exit code %lld %.63s %.300s",
                            (long long)object_integer(ended, "exitCode", -1),
                            object_text(ended, "reason"), object_text(ended, "message"));
}

static enum measurement_state look_at_pod(struct het_arena *arena, const json_t *pod,
                                          const char **ret_why)
{
    const char *phase = object_text(pod, "status.phase");
    if (!strcmp(phase, "Running")) {
        *ret_why =
            het_arena_printf(arena, "runs on %s", object_text(pod, "spec.nodeName"));
        return MEASUREMENT_RUNNING;
    }
    if (!strcmp(phase, "Failed")) {
        *ret_why = het_arena_printf(arena, "a pod failed (%s), and it is tried again",
                                    last_words(arena, pod));
        return MEASUREMENT_WAITING;
    }
    return look_at_pending(arena, pod, ret_why);
}

enum measurement_state measurement_look(struct het_arena *arena,
                                        const struct measurement *measurement,
                                        const char **ret_why)
{
    const json_t *job = measurement->job, *pod = measurement->pod;
    const json_t *failed = object_find_condition(job, "Failed");
    *ret_why = "";
    if (!is_measurement(job))
        return MEASUREMENT_FOREIGN;
    if (pod && has_succeeded(pod))
        return MEASUREMENT_DONE;
    if (object_condition_is_true(job, "Complete"))
        return MEASUREMENT_LOST;
    if (!strcmp(object_text(failed, "status"), "True")) {
        *ret_why = het_arena_printf(
            arena, "%.63s: %.200s%s%s", object_text(failed, "reason"),
            object_text(failed, "message"), pod ? "; its last pod: " : "",
            pod ? last_words(arena, pod) : "");
        return MEASUREMENT_FAILED;
    }
    if (pod)
        return look_at_pod(arena, pod, ret_why);
    *ret_why = object_is_true(job, "spec.suspend")
                   ? "waits in its queue"
                   : "has no pod yet; the events of the Job say why";
    return MEASUREMENT_WAITING;
}

int64_t measurement_completed_ms(const struct measurement *measurement)
{
    int64_t completed_ms = 0;
    timestamp_parse(object_text(measurement->job, "status.completionTime"),
                    &completed_ms);
    return completed_ms;
}

/* ---- what comes of it ---- */

void measurement_result_fini(struct measurement_result *result)
{
    json_decref(result->model);
    json_decref(result->layer_groups);
    json_decref(result->entry);
}

/* A result being read. */
struct reading {
    struct het_arena *arena;
    const struct job_spec *spec;
    const struct measurement *measurement;
    const char *groups[MAX_GROUPS];
    size_t group_count;
    uint64_t largest_degree;
    struct measurement_result result;
};

static int need_whole(const struct het_view *view, uint64_t low, uint64_t high,
                      uint64_t *ret, struct het_error *err)
{
    return het_view_need(view, err) < 0 ? -1 : het_view_u64(view, low, high, ret, err);
}

static int need_member(const struct het_view *object, const char *key, uint64_t low,
                       uint64_t high, uint64_t *ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    return need_whole(&view, low, high, ret, err);
}

static bool is_power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

/* A text that must equal what was asked for. */
static int need_text(struct reading *reading, const struct het_view *root,
                     const char *key, const char *wanted, struct het_error *err)
{
    struct het_view view = het_view_get(root, key);
    const char *text = NULL;
    if (het_view_need(&view, err) < 0 ||
        het_view_name(&view, reading->arena, &text, err) < 0)
        return -1;
    if (strcmp(text, wanted) != 0)
        return het_view_fail(&view, err, "is %.63s, asked for was %.63s", text, wanted);
    return 0;
}

/* What a profile says of a model besides, and what must be as it was asked for. */
static int read_shape(struct reading *reading, const struct het_view *root,
                      struct het_error *err)
{
    const struct job_architecture *model = &reading->spec->architecture;
    const struct {
        const char *key;
        uint64_t low, high;
    } members[] = {
        { "hiddenSize", (uint64_t)model->hidden, (uint64_t)model->hidden },
        { "vocabSize", (uint64_t)model->vocabulary, (uint64_t)model->vocabulary },
        { "stateBytesPerParameter", 1, MAX_STATE_BYTES },
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct het_view view = het_view_get(root, members[i].key);
        uint64_t number = 0;
        if (het_view_u64(&view, members[i].low, members[i].high, &number, err) < 0)
            return -1;
        if (number)
            json_object_set_new(reading->result.model, members[i].key,
                                json_integer((json_int_t)number));
    }
    struct het_view weights = het_view_get(root, "embeddingWeights");
    if (!weights.json)
        return 0;
    if (need_text(reading, root, "embeddingWeights", "Separate", err) < 0)
        return -1;
    json_object_set_new(reading->result.model, "embeddingWeights",
                        json_string("Separate"));
    return 0;
}

static int read_model(struct reading *reading, const struct het_view *root,
                      struct het_error *err)
{
    const struct job_architecture *model = &reading->spec->architecture;
    const char *precision = precision_name(reading->arena, model);
    uint64_t version = 0, length = 0;
    if (need_member(root, "v", RESULT_VERSION, RESULT_VERSION, &version, err) < 0 ||
        need_text(reading, root, "gpuType", reading->measurement->type, err) < 0 ||
        need_text(reading, root, "precision", precision, err) < 0 ||
        need_text(reading, root, "optimizer", OPTIMIZER, err) < 0 ||
        need_member(root, "sequenceLength", (uint64_t)model->sequence_length,
                    (uint64_t)model->sequence_length, &length, err) < 0)
        return -1;
    reading->result.model = object_pack("{s:s, s:s, s:I}", "precision", precision,
                                        "optimizer", OPTIMIZER, "sequenceLength",
                                        (json_int_t)length);
    return read_shape(reading, root, err);
}

/* Whole numbers of one list; those from `needed` on may be left out, and are 0. */
static int read_row(const struct het_view *view, const uint64_t *most, size_t needed,
                    size_t size, uint64_t *ret, struct het_error *err)
{
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_array(view, size, &count, err) < 0)
        return -1;
    if (count < needed)
        return het_view_fail(view, err, "has fewer than %zu numbers", needed);
    for (size_t i = 0; i < size; i++) {
        struct het_view item = het_view_at(view, i);
        ret[i] = 0;
        if (i < count && need_whole(&item, 0, most[i], &ret[i], err) < 0)
            return -1;
    }
    return 0;
}

/* A list of [degree, amount], in the order of degrees, which are powers of two; as
 * objects with `key` for the amount, into `name` of `into`. What is absent is nothing. */
static int read_pairs(const struct reading *reading, const struct het_view *list,
                      uint64_t most_amount, json_t *into, const char *name,
                      const char *key, struct het_error *err)
{
    const uint64_t most[] = { reading->largest_degree, most_amount };
    uint64_t last = 0;
    size_t count = 0;
    if (het_view_array(list, MEASUREMENT_MAX_DEGREE, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(list, i);
        uint64_t row[2];
        if (read_row(&item, most, 2, 2, row, err) < 0)
            return -1;
        if (!is_power_of_two(row[0]) || row[0] <= last)
            return het_view_fail(&item, err,
                                 "degrees must be powers of two, in their order");
        last = row[0];
        json_array_append_new(object_list(into, name),
                              object_pack("{s:I, s:I}", "tensorParallel",
                                          (json_int_t)row[0], key, (json_int_t)row[1]));
    }
    return 0;
}

/* As the schema wants it: a DNS label. */
static bool is_group_name(const char *name)
{
    size_t length = strlen(name);
    return length <= 63 && name[0] != '-' && name[length - 1] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static int read_group(struct reading *reading, const struct het_view *view,
                      uint64_t *layers, struct het_error *err)
{
    static const char *const names[] = { "name",
                                         "count",
                                         "parameterBytes",
                                         "activationOutputBytes",
                                         "parameterBytesPerRank",
                                         NULL };
    struct het_view name_view = het_view_get(view, "name");
    struct het_view ranks = het_view_get(view, "parameterBytesPerRank");
    const char *name = NULL;
    uint64_t count = 0, parameters = 0, output = 0;
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0 ||
        het_view_members(view, names, err) < 0 || het_view_need(&name_view, err) < 0 ||
        het_view_name(&name_view, reading->arena, &name, err) < 0 ||
        need_member(view, "count", 1, MAX_LAYERS, &count, err) < 0 ||
        need_member(view, "parameterBytes", 0, MAX_BYTES, &parameters, err) < 0 ||
        need_member(view, "activationOutputBytes", 0, MAX_BYTES, &output, err) < 0)
        return -1;
    if (!is_group_name(name))
        return het_view_fail(&name_view, err, "must be lower-case letters, digits and -");
    for (size_t i = 0; i < reading->group_count; i++)
        if (!strcmp(reading->groups[i], name))
            return het_view_fail(&name_view, err, "another group is called %s", name);
    reading->groups[reading->group_count++] = name;
    *layers += count;
    json_t *group = object_pack("{s:s, s:I, s:I, s:I}", "name", name, "count",
                                (json_int_t)count, "parameterBytes",
                                (json_int_t)parameters, "activationOutputBytes",
                                (json_int_t)output);
    json_array_append_new(reading->result.layer_groups, group);
    return read_pairs(reading, &ranks, MAX_BYTES, group, "parameterBytesPerRank", "bytes",
                      err);
}

static int read_groups(struct reading *reading, const struct het_view *root,
                       struct het_error *err)
{
    struct het_view list = het_view_get(root, "groups");
    uint64_t layers = 0;
    uint64_t wanted = (uint64_t)reading->spec->architecture.layers + 2;
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MAX_GROUPS, &count, err) < 0)
        return -1;
    reading->result.layer_groups = json_array();
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_group(reading, &item, &layers, err) < 0)
            return -1;
    }
    if (layers != wanted)
        return het_view_fail(&list, err,
                             "have %" PRIu64 " layers, the model has %" PRIu64
                             " with embedding and head",
                             layers, wanted);
    return 0;
}

/* One layer group at one degree and size. */
static int read_times(struct reading *reading, const struct het_view *view, size_t group,
                      uint64_t degree, uint64_t microbatch, uint64_t *total,
                      struct het_error *err)
{
    static const uint64_t most[] = { MAX_MICROSECONDS, MAX_MICROSECONDS, MAX_BYTES,
                                     MAX_BYTES };
    uint64_t row[4];
    if (read_row(view, most, 3, 4, row, err) < 0)
        return -1;
    json_t *measured = object_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I}", "layerGroup", reading->groups[group],
        "tensorParallel", (json_int_t)degree, "microBatchSize", (json_int_t)microbatch,
        "forwardMicroseconds", (json_int_t)row[0], "backwardMicroseconds",
        (json_int_t)row[1], "activationBytes", (json_int_t)row[2]);
    if (row[3])
        json_object_set_new(measured, "workspaceBytes", json_integer((json_int_t)row[3]));
    json_array_append_new(object_list(reading->result.entry, "measurements"), measured);
    *total += row[0] + row[1];
    return 0;
}

/* Whether there are measurements of that degree and size. */
static bool is_known(const struct reading *reading, uint64_t degree, uint64_t microbatch)
{
    const json_t *list = json_object_get(reading->result.entry, "measurements");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (object_integer(item, "tensorParallel", 0) == (int64_t)degree &&
            object_integer(item, "microBatchSize", 0) == (int64_t)microbatch)
            return true;
    }
    return false;
}

/* [degree, size, [[forward, backward, activation], ...]] */
static int read_point(struct reading *reading, const struct het_view *view,
                      struct het_error *err)
{
    struct het_view degree_view = het_view_at(view, 0), size_view = het_view_at(view, 1);
    struct het_view groups = het_view_at(view, 2);
    uint64_t degree = 0, microbatch = 0, total = 0;
    size_t count = 0;
    if (het_view_need(view, err) < 0 || het_view_array(view, 3, &count, err) < 0 ||
        need_whole(&degree_view, 1, reading->largest_degree, &degree, err) < 0 ||
        need_whole(&size_view, 1, MAX_MICROBATCH, &microbatch, err) < 0 ||
        het_view_need(&groups, err) < 0 ||
        het_view_array(&groups, MAX_GROUPS, &count, err) < 0)
        return -1;
    if (!is_power_of_two(degree) || !is_power_of_two(microbatch))
        return het_view_fail(view, err, "degree and size must be powers of two");
    if (count != reading->group_count)
        return het_view_fail(&groups, err, "must have an entry for each of %zu groups",
                             reading->group_count);
    if (is_known(reading, degree, microbatch))
        return het_view_fail(view, err, "was given before");
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&groups, i);
        if (read_times(reading, &item, i, degree, microbatch, &total, err) < 0)
            return -1;
    }
    return total ? 0 : het_view_fail(view, err, "no layer takes any time");
}

static int read_points(struct reading *reading, const struct het_view *root,
                       struct het_error *err)
{
    struct het_view list = het_view_get(root, "m");
    size_t count = 0;
    if (het_view_need(&list, err) < 0 ||
        het_view_array(&list, MEASUREMENT_RESULT_BYTES, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_point(reading, &item, err) < 0)
            return -1;
    }
    return count ? 0 : het_view_fail(&list, err, "is empty");
}

/* What may be left out: the memory of a GPU, and the time of the optimizer. */
static int read_extras(struct reading *reading, const struct het_view *root,
                       struct het_error *err)
{
    struct het_view memory = het_view_get(root, "memoryMiB");
    struct het_view list = het_view_get(root, "optimizerMicroseconds");
    uint64_t memory_mib = 0;
    if (het_view_u64(&memory, 1, MAX_MEMORY_MIB, &memory_mib, err) < 0)
        return -1;
    if (memory_mib)
        json_object_set_new(reading->result.entry, "memoryMiB",
                            json_integer((json_int_t)memory_mib));
    return read_pairs(reading, &list, MAX_MICROSECONDS, reading->result.entry,
                      "optimizerMicroseconds", "microseconds", err);
}

static int read_root(struct reading *reading, const json_t *json, struct het_error *err)
{
    /* `name`, `oom` and `cut` are for people. */
    static const char *const names[] = { "v",
                                         "gpuType",
                                         "memoryMiB",
                                         "name",
                                         "precision",
                                         "optimizer",
                                         "hiddenSize",
                                         "vocabSize",
                                         "stateBytesPerParameter",
                                         "oom",
                                         "cut",
                                         "embeddingWeights",
                                         "groups",
                                         "m",
                                         "optimizerMicroseconds",
                                         "sequenceLength",
                                         NULL };
    struct het_view root = het_view_root(json);
    if (!json_is_object(json))
        return het_fail(err, HET_BAD_INPUT, "must be an object");
    reading->result.entry = object_pack("{s:s}", "name", reading->measurement->type);
    if (het_view_members(&root, names, err) < 0 || read_model(reading, &root, err) < 0 ||
        read_groups(reading, &root, err) < 0 || read_extras(reading, &root, err) < 0)
        return -1;
    return read_points(reading, &root, err);
}

/* GPUs that the Job was given. */
static uint64_t largest_degree(const json_t *job)
{
    const char *text = kube_annotation(job, ANNOTATION_GPUS);
    long gpus = strtol(text, NULL, 10);
    return gpus >= 1 && gpus <= MEASUREMENT_MAX_DEGREE ? (uint64_t)gpus
                                                       : MEASUREMENT_MAX_DEGREE;
}

int measurement_read(const char *text, size_t length, const struct job_spec *spec,
                     const struct measurement *measurement,
                     struct measurement_result *ret, struct het_error *err)
{
    if (length > MEASUREMENT_RESULT_BYTES)
        return het_fail(err, HET_BAD_INPUT, "the result is longer than %d bytes",
                        MEASUREMENT_RESULT_BYTES);
    json_t *json = NULL;
    if (het_json_decode(text, length, "the result", &json, err) < 0)
        return -1;
    struct reading reading = { .arena = het_arena_new(),
                               .spec = spec,
                               .measurement = measurement,
                               .largest_degree = largest_degree(measurement->job) };
    int result = read_root(&reading, json, err);
    json_decref(json);
    het_arena_free(reading.arena);
    if (result < 0) {
        measurement_result_fini(&reading.result);
        return het_wrap(err, "the result");
    }
    *ret = reading.result;
    return 0;
}

int measurement_read_pod(const struct job_spec *spec,
                         const struct measurement *measurement,
                         struct measurement_result *ret, struct het_error *err)
{
    const json_t *message =
        object_at(container_state(measurement->pod), "terminated.message");
    const char *text = json_string_value(message);
    if (!text)
        return het_fail(err, HET_BAD_INPUT, "its pod ended without a result");
    return measurement_read(text, json_string_length(message), spec, measurement, ret,
                            err);
}

json_t *measurement_profile(const struct job_spec *spec,
                            const struct measurement_result *result)
{
    json_t *model = json_copy(result->model);
    json_object_set_new(model, "name", json_string(spec->profile_name));
    return object_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}}, s:{s:o, s:O, s:[O]}}",
                       "apiVersion", kube_model_profile.group_version, "kind",
                       kube_model_profile.kind, "metadata", "name", spec->profile_name,
                       "namespace", spec->ns, "labels", LABEL_MANAGED_BY, MANAGED_BY,
                       LABEL_COMPONENT, COMPONENT_PROFILER, "spec", "model", model,
                       "layerGroups", result->layer_groups, "gpuTypes", result->entry);
}

/* ---- a profile that is there ---- */

/* AdamW keeps and does what Adam does. */
static bool is_same_optimizer(const char *a, const char *b)
{
    return !strncmp(a, "Adam", 4) ? !strncmp(b, "Adam", 4) : !strcmp(a, b);
}

static int check_same_model(const json_t *profile, const struct measurement_result *own,
                            struct het_error *err)
{
    const json_t *model = object_at(profile, "spec.model");
    int64_t length = object_integer(model, "sequenceLength", 0);
    const char *precision = object_text(own->model, "precision");
    if (strcmp(object_text(model, "precision"), precision) != 0)
        return het_fail(err, HET_BAD_INPUT,
                        "spec.model.precision: is %.63s, measured was "
                        "%s",
                        object_text(model, "precision"), precision);
    if (!is_same_optimizer(object_text(model, "optimizer"),
                           object_text(own->model, "optimizer")))
        return het_fail(err, HET_BAD_INPUT,
                        "spec.model.optimizer: is %.63s, measured was "
                        "%s",
                        object_text(model, "optimizer"),
                        object_text(own->model, "optimizer"));
    if (length && length != object_integer(own->model, "sequenceLength", 0))
        return het_fail(err, HET_BAD_INPUT,
                        "spec.model.sequenceLength: is %" PRId64
                        ", measured was another one",
                        length);
    return 0;
}

/* Measurements refer to layer groups by name, and to layers of that size. */
static int check_same_groups(const json_t *profile, const struct measurement_result *own,
                             struct het_error *err)
{
    const json_t *there = object_at(profile, "spec.layerGroups");
    if (json_array_size(there) != json_array_size(own->layer_groups))
        return het_fail(err, HET_BAD_INPUT,
                        "spec.layerGroups: has %zu, measured were %zu",
                        json_array_size(there), json_array_size(own->layer_groups));
    for (size_t i = 0; i < json_array_size(there); i++) {
        const json_t *a = json_array_get(there, i);
        const json_t *b = json_array_get(own->layer_groups, i);
        if (strcmp(object_text(a, "name"), object_text(b, "name")) != 0 ||
            object_integer(a, "count", 1) != object_integer(b, "count", 1) ||
            object_integer(a, "parameterBytes", -1) !=
                object_integer(b, "parameterBytes", -1))
            return het_fail(err, HET_BAD_INPUT,
                            "spec.layerGroups[%zu]: is not what was measured: %s, count "
                            "%" PRId64 ", parameterBytes %" PRId64,
                            i, object_text(b, "name"), object_integer(b, "count", 1),
                            object_integer(b, "parameterBytes", -1));
    }
    return 0;
}

int measurement_patch(const json_t *profile, const struct measurement_result *result,
                      json_t **ret, struct het_error *err)
{
    if (!json_is_array(object_at(profile, "spec.gpuTypes")))
        return het_fail(err, HET_BAD_INPUT, "spec.gpuTypes: is missing");
    if (check_same_model(profile, result, err) < 0 ||
        check_same_groups(profile, result, err) < 0)
        return -1;
    *ret = object_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:O}]", "op",
                       "test", "path", "/metadata/uid", "value", kube_uid(profile), "op",
                       "test", "path", "/metadata/resourceVersion", "value",
                       kube_resource_version(profile), "op", "add", "path",
                       "/spec/gpuTypes/-", "value", result->entry);
    return 0;
}

/* ---- what the store keeps ---- */

json_t *measurement_trim_job(json_t *job)
{
    static const char *const metadata[] = { "name",
                                            "namespace",
                                            "uid",
                                            "resourceVersion",
                                            "labels",
                                            "annotations",
                                            "ownerReferences",
                                            "creationTimestamp",
                                            "deletionTimestamp",
                                            NULL };
    static const char *const spec[] = { "suspend", NULL };
    static const char *const status[] = { "conditions", "completionTime", NULL };
    return object_pack("{s:o, s:o, s:o}", "metadata",
                       kept_fields_pick(json_object_get(job, "metadata"), metadata),
                       "spec", kept_fields_pick(json_object_get(job, "spec"), spec),
                       "status",
                       kept_fields_pick(json_object_get(job, "status"), status));
}
