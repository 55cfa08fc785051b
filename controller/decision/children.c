#include "controller/decision/children.h"

#include "controller/base/object.h"
#include "controller/base/quantity.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"
#include "controller/job/node_selector.h"
#include "controller/job/tenancy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_VOLUME   "heterotrain-plan"
#define BYTES_PER_GIB 1073741824.0

/* ---- the planner's question ---- */

/* Where the node is on each level: { LABEL: NAME }; NULL if on none. */
static json_t *node_levels(const struct snapshot *snapshot,
                           const struct capacity_node *node)
{
    json_t *levels = NULL;
    for (size_t i = 0; i < snapshot->level_count; i++) {
        const char *label = snapshot->levels[i];
        json_t *name = json_object_get(node->labels, label);
        if (!json_string_length(name))
            continue;
        levels = levels ? levels : json_object();
        json_object_set(levels, label, name);
    }
    return levels;
}

/* The hardware's topology levels that the planner uses for the job; NULL if it has
 * none. */
static json_t *cluster_levels(const struct snapshot *snapshot)
{
    const json_t *known = json_object_get(snapshot->hardware, "levels");
    if (!json_array_size(known))
        return NULL;
    json_t *levels = json_array();
    for (size_t i = 0; i < snapshot->level_count; i++)
        for (size_t k = 0; k < json_array_size(known); k++) {
            json_t *level = json_array_get(known, k);
            const char *label = json_string_value(json_object_get(level, "label"));
            if (label && !strcmp(label, snapshot->levels[i]))
                json_array_append(levels, level);
        }
    return levels;
}

static json_t *cluster_nodes(const struct snapshot *snapshot)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        if (node->free < 1)
            continue;
        json_t *entry = object_pack("{s:s, s:s, s:I}", "name", node->name, "type",
                                    node->type, "gpus", (json_int_t)node->free);
        if (node->memory_bytes)
            json_object_set_new(entry, "memory_gb",
                                json_real((double)node->memory_bytes / BYTES_PER_GIB));
        if (node->vendor)
            json_object_set_new(entry, "vendor", json_string(node->vendor));
        const char *instance = het_node_instance_type(node->labels);
        if (instance)
            json_object_set_new(entry, "instance_type", json_string(instance));
        if (node->preference)
            json_object_set_new(entry, "preference", json_integer(node->preference));
        json_t *levels = node_levels(snapshot, node);
        if (levels)
            json_object_set_new(entry, "levels", levels);
        json_array_append_new(nodes, entry);
    }
    return nodes;
}

static json_t *gpu_type_limits(const struct job_spec *spec)
{
    json_t *list = json_array();
    for (size_t i = 0; i < spec->gpu_type_count; i++) {
        const struct job_gpu_type *type = &spec->gpu_types[i];
        json_array_append_new(list,
                              object_pack("{s:s, s:I, s:I, s:I}", "name", type->name,
                                          "minGPUs", (json_int_t)type->min_gpus,
                                          "maxGPUs", (json_int_t)type->max_gpus,
                                          "preference", (json_int_t)type->preference));
    }
    return list;
}

static json_t *job_part(const struct job_spec *spec)
{
    json_t *job = object_pack("{s:I, s:I, s:s, s:I, s:I, s:s}", "globalBatchSize",
                              (json_int_t)spec->global_batch, "minGPUs",
                              (json_int_t)spec->min_gpus, "algorithm", spec->algorithm,
                              "effort", (json_int_t)spec->effort, "seed",
                              (json_int_t)spec->seed, "runtime", spec->runtime);
    if (spec->memory_headroom_percent >= 0)
        json_object_set_new(job, "memoryHeadroomPercent",
                            json_integer(spec->memory_headroom_percent));
    if (spec->sequence_length)
        json_object_set_new(job, "sequenceLength", json_integer(spec->sequence_length));
    if (spec->max_gpus)
        json_object_set_new(job, "maxGPUs", json_integer(spec->max_gpus));
    if (spec->microbatch_sizes)
        json_object_set(job, "microBatchSizes",
                        (json_t *)(uintptr_t)spec->microbatch_sizes);
    if (spec->constraints)
        json_object_set(job, "constraints", (json_t *)(uintptr_t)spec->constraints);
    if (spec->gpu_type_count)
        json_object_set_new(job, "gpuTypes", gpu_type_limits(spec));
    return job;
}

static json_t *estimated_profile(const struct job_architecture *model)
{
    return object_pack("{s:o, s:I, s:s}", "config", job_spec_model_config(model),
                       "sequenceLength", (json_int_t)model->sequence_length, "precision",
                       model->precision);
}

static json_t *profile_part(const struct snapshot *snapshot)
{
    const struct job_spec *spec = &snapshot->spec;
    return spec->profile_name ? json_incref((json_t *)(uintptr_t)snapshot->profile)
                              : estimated_profile(&spec->architecture);
}

/* The newest plan, even a stopped one, so that the planner prices it with the present
 * input and moves little of what its nodes hold; NULL: none. */
static json_t *last_plan(const struct snapshot *snapshot)
{
    if (!snapshot->plan_count || !snapshot->plans[0].plan)
        return NULL;
    return het_plan_json(snapshot->plans[0].plan);
}

/* How much slower a plan may be if it moves less; unlimited where only few plans can load
 * the checkpoint. */
static json_t *migration_part(const struct job_spec *spec)
{
    return object_pack("{s:I}", "maxSlowdownPercent",
                       spec->resharding == RESHARDING_ANY
                           ? (json_int_t)spec->max_slowdown_percent
                           : (json_int_t)1000000);
}

static json_t *mixed_vendor_runtimes(const struct settings_planner *planner)
{
    json_t *list = json_array();
    for (size_t i = 0; i < planner->mixed_vendor_runtime_count; i++)
        json_array_append_new(list, json_string(planner->mixed_vendor_runtimes[i]));
    return list;
}

bool children_can_ask(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->node_count; i++)
        if (snapshot->nodes[i].free > 0)
            return true;
    return false;
}

/* Why the job does not have all GPUs of a node that it can use. */
static enum het_unused_reason why_not_all(const struct snapshot *snapshot,
                                          const struct capacity_node *node)
{
    if (snapshot->quota.queue)
        return HET_UNUSED_QUOTA;
    return node->limited_by ? HET_UNUSED_NO_ROOM : HET_UNUSED_IN_USE;
}

void children_unused(struct het_arena *arena, const struct snapshot *snapshot,
                     struct het_unused_list *ret)
{
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        enum het_unused_reason reason = why_not_all(snapshot, node);
        const char *detail = reason == HET_UNUSED_NO_ROOM ? node->limited_by : "";
        int64_t gpus = node->allocatable - node->free;
        if (gpus <= 0 || (node->unusable &&
                          !het_unused_parse(arena, node->unusable, &reason, &detail)))
            continue;
        const char *type = reason == HET_UNUSED_MIXED_GPUS ? "" : node->type;
        het_unused_add(arena, ret, reason, type, detail, node->name, (uint32_t)gpus);
    }
    het_unused_sort(ret);
}

static json_t *unused_part(const struct snapshot *snapshot)
{
    struct het_arena *arena = het_arena_new();
    struct het_unused_list list = { 0 };
    children_unused(arena, snapshot, &list);
    json_t *json = list.count ? het_unused_json(list.groups, list.count) : NULL;
    het_arena_free(arena);
    return json;
}

json_t *children_question(const struct snapshot *snapshot)
{
    if (!children_can_ask(snapshot))
        return NULL;
    json_auto_t *nodes = cluster_nodes(snapshot);
    json_t *question = object_pack("{s:{s:O}, s:o, s:o}", "cluster", "nodes", nodes,
                                   "profile", profile_part(snapshot), "job",
                                   job_part(&snapshot->spec));
    json_t *levels = cluster_levels(snapshot);
    if (levels)
        json_object_set_new(json_object_get(question, "cluster"), "levels", levels);
    json_t *from = last_plan(snapshot);
    if (from) {
        json_t *job = json_object_get(question, "job");
        json_object_set_new(job, "from", from);
        json_object_set_new(job, "migration", migration_part(&snapshot->spec));
    }
    if (snapshot->settings->planner.mixed_vendor_runtime_count)
        json_object_set_new(question, "mixedVendorRuntimes",
                            mixed_vendor_runtimes(&snapshot->settings->planner));
    if (snapshot->hardware)
        json_object_set(question, "hardware", (json_t *)(uintptr_t)snapshot->hardware);
    json_t *unused = unused_part(snapshot);
    if (unused)
        json_object_set_new(question, "unused", unused);
    return question;
}

/* ---- what all children share ---- */

/* Labels of all children; `generation` 0: of none. */
static void set_labels(json_t *labels, const struct job_spec *spec, int64_t generation)
{
    json_object_set_new(labels, "app.kubernetes.io/name", json_string("heterotrain"));
    json_object_set_new(labels, "app.kubernetes.io/instance", json_string(spec->name));
    json_object_set_new(labels, "app.kubernetes.io/component", json_string("trainer"));
    json_object_set_new(labels, "app.kubernetes.io/part-of", json_string("heterotrain"));
    json_object_set_new(labels, LABEL_MANAGED_BY, json_string(MANAGED_BY));
    json_object_set_new(labels, LABEL_JOB_NAME, json_string(spec->name));
    json_object_set_new(labels, LABEL_JOB_UID, json_string(spec->uid));
    if (generation)
        json_object_set_new(labels, LABEL_PLAN_REVISION,
                            json_sprintf("%" PRId64, generation));
}

static json_t *child_metadata(const struct job_spec *spec, const char *name,
                              int64_t generation)
{
    json_t *labels = json_object();
    set_labels(labels, spec, generation);
    return object_pack("{s:s, s:s, s:o, s:o}", "name", name, "namespace", spec->ns,
                       "labels", labels, "ownerReferences",
                       job_spec_owner_references(spec));
}

static struct het_render_job render_job(const struct snapshot *snapshot,
                                        struct het_arena *arena, int64_t generation,
                                        const char *hash)
{
    const struct job_spec *spec = &snapshot->spec;
    return (struct het_render_job){
        .job = spec->name,
        .ns = spec->ns,
        .service = spec->name,
        .generation = (uint32_t)generation,
        .plan_hash = hash,
        .plan_path = het_arena_printf(arena, "%s/plan.json", spec->plan_mount_path),
        .checkpoint_dir = spec->checkpoint_uri,
        .master_port = (uint16_t)spec->master_port,
    };
}

bool children_runs(struct het_arena *arena, const struct job_spec *spec,
                   const struct het_plan *plan, const char **ret_why)
{
    const struct het_runtime *runtime = job_spec_runtime(spec);
    enum het_freedom missing;
    if (het_runtime_runs_all(runtime))
        return true;
    const struct het_plan *found =
        het_runtime_express_alone(arena, runtime, plan, &missing);
    if (found && !het_plan_compare(found, plan))
        return true;
    if (!ret_why)
        return false;
    if (found)
        *ret_why = het_arena_printf(
            arena, "%s wants the ranks of the plan in another order", runtime->title);
    else if (missing == HET_FREEDOM_COUNT)
        *ret_why = "the plan does not hold together";
    else
        *ret_why = het_runtime_lack(arena, runtime, missing);
    return false;
}

/* Size in bytes of the first pod's arguments; those of other pods differ by their GPU
 * type. */
static size_t arguments_size(struct het_arena *arena,
                             const struct het_rendering *rendering)
{
    const char **words;
    size_t count = het_rendering_arguments(arena, rendering, 0, &words), size = 0;
    for (size_t i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    return size;
}

/* ---- plan ConfigMap ---- */

/* Records the input that the plan was made for, and how many plans were made recently. */
static void note_planning(json_t *annotations,
                          const struct children_generation *generation)
{
    json_object_set_new(annotations, ANNOTATION_INPUT_PARTS,
                        json_string(generation->input_parts));
    if (*generation->replan_times)
        json_object_set_new(annotations, ANNOTATION_REPLAN_TIMES,
                            json_string(generation->replan_times));
    if (generation->planner_ms >= 0)
        json_object_set_new(annotations, ANNOTATION_PLANNER_MS,
                            json_sprintf("%" PRId64, generation->planner_ms));
}

/* The files beside the plan: those of the runtime, whose hostfile replaces ours.
 * `*ret_size` is their total size. */
static json_t *plan_files(struct het_arena *arena, const struct het_rendering *rendering,
                          const struct het_plan *plan, const struct het_render_job *job,
                          size_t *ret_size)
{
    json_auto_t *plan_json = het_plan_json(plan);
    json_auto_t *ranks = het_plan_json_rankmap(plan);
    auto_free char *plan_text = het_json_canonical(plan_json);
    auto_free char *rank_text = het_json_canonical(ranks);
    json_t *files = object_pack("{s:s, s:s, s:s}", "plan.json", plan_text, "rankmap.json",
                                rank_text, "hostfile",
                                het_render_hostfile(arena, plan, job));
    for (size_t i = 0; i < rendering->file_count; i++)
        json_object_set_new(files, rendering->files[i].name,
                            json_string(rendering->files[i].text));
    const char *name;
    json_t *text;
    *ret_size = 0;
    json_object_foreach (files, name, text)
        *ret_size += json_string_length(text);
    return files;
}

static json_t *plan_metadata(const struct snapshot *snapshot, struct het_arena *arena,
                             const struct children_generation *generation,
                             const char *hash)
{
    const struct job_spec *spec = &snapshot->spec;
    char computed_at[TIMESTAMP_SIZE];
    timestamp_format(snapshot->wall_ms, computed_at);
    const char *name = plan_object_name(arena, spec->name, generation->generation);
    json_t *metadata = child_metadata(spec, name, generation->generation);
    json_t *annotations = object_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:s*}", ANNOTATION_TRIGGER,
        generation->trigger, ANNOTATION_INPUT_DIGEST,
        json_sprintf("%016" PRIx64, generation->input_digest), ANNOTATION_POD_DIGEST,
        json_sprintf("%016" PRIx64, snapshot->pod_digest), ANNOTATION_RESTARTS,
        json_sprintf("%" PRId64, generation->restarts), ANNOTATION_REPLANS,
        json_sprintf("%" PRId64, generation->replans), ANNOTATION_COMPUTED_AT,
        computed_at, ANNOTATION_PLAN_HASH, hash, ANNOTATION_LEADER, snapshot->leader);
    note_planning(annotations, generation);
    if (generation->claim)
        json_object_set_new(annotations, ANNOTATION_PREEMPTS,
                            json_string(generation->claim));
    json_object_set_new(metadata, "annotations", annotations);
    return metadata;
}

int children_config_map(const struct snapshot *snapshot,
                        const struct children_generation *generation, json_t **ret,
                        const char **ret_reason, struct het_error *err)
{
    const struct job_spec *spec = &snapshot->spec;
    const struct het_plan *plan = generation->plan;
    struct het_arena *arena = het_arena_new();
    const char *why;
    int result = 0;
    if (!children_runs(arena, spec, plan, &why)) {
        *ret_reason = "NotExpressible";
        result = het_fail(err, HET_BAD_INPUT, "%s; change spec.runtime.type", why);
        het_arena_free(arena);
        return result;
    }
    const char *hash = het_plan_json_hash(arena, plan);
    struct het_render_job job = render_job(snapshot, arena, generation->generation, hash);
    struct het_rendering rendering =
        het_render(arena, job_spec_runtime(spec), plan, &job);
    size_t argument_size = arguments_size(arena, &rendering), size;
    json_t *files = plan_files(arena, &rendering, plan, &job, &size);
    *ret_reason = "PlanTooLarge";
    if (size > PLAN_MAX_BYTES)
        result = het_fail(err, HET_BAD_INPUT,
                          "the plan is %zu bytes, a ConfigMap takes at most %zu; lower "
                          "spec.resources.maxGPUs",
                          size, PLAN_MAX_BYTES);
    else if (argument_size > ARGUMENTS_MAX_BYTES)
        result = het_fail(err, HET_BAD_INPUT,
                          "the plan is %zu bytes of arguments, a program takes at most "
                          "%zu; lower spec.resources.maxGPUs",
                          argument_size, ARGUMENTS_MAX_BYTES);
    if (result == 0)
        *ret = object_pack("{s:s, s:s, s:o, s:b, s:o}", "apiVersion", "v1", "kind",
                           "ConfigMap", "metadata",
                           plan_metadata(snapshot, arena, generation, hash), "immutable",
                           1, "data", files);
    else
        json_decref(files);
    het_arena_free(arena);
    return result;
}

json_t *children_candidate(const struct snapshot *snapshot, const struct het_plan *plan,
                           const char *hash)
{
    json_auto_t *body = het_plan_json(plan);
    auto_free char *text = het_json_canonical(body);
    if (strlen(text) > PLAN_MAX_BYTES)
        return NULL;
    char computed_at[TIMESTAMP_SIZE];
    timestamp_format(snapshot->wall_ms, computed_at);
    struct het_arena *arena = het_arena_new();
    json_t *metadata = child_metadata(
        &snapshot->spec, plan_object_candidate_name(arena, snapshot->spec.name), 0);
    json_object_set_new(metadata, "annotations",
                        object_pack("{s:s, s:s, s:s*}", ANNOTATION_PLAN_HASH, hash,
                                    ANNOTATION_COMPUTED_AT, computed_at,
                                    ANNOTATION_LEADER, snapshot->leader));
    het_arena_free(arena);
    return object_pack("{s:s, s:s, s:o, s:b, s:{s:s}}", "apiVersion", "v1", "kind",
                       "ConfigMap", "metadata", metadata, "immutable", 1, "data",
                       "plan.json", text);
}

/* ---- Service ---- */

json_t *children_service(const struct snapshot *snapshot, int64_t generation)
{
    const struct job_spec *spec = &snapshot->spec;
    return object_pack(
        "{s:s, s:s, s:o, s:{s:s, s:b, s:{s:s, s:o}, s:[{s:s, s:I, s:I, s:s}]}}",
        "apiVersion", "v1", "kind", "Service", "metadata",
        child_metadata(spec, spec->name, 0), "spec", "clusterIP", "None",
        "publishNotReadyAddresses", 1, "selector", LABEL_JOB_NAME, spec->name,
        LABEL_PLAN_REVISION, json_sprintf("%" PRId64, generation), "ports", "name",
        "master", "port", (json_int_t)spec->master_port, "targetPort",
        (json_int_t)spec->master_port, "protocol", "TCP");
}

/* ---- pods ---- */

static const json_t *template_spec(const struct job_spec *spec)
{
    return json_object_get(spec->pod_template, "spec");
}

/* Index of the container that trains; -1 if the template lacks it. */
static int trainer_index(const struct job_spec *spec)
{
    const json_t *containers = json_object_get(template_spec(spec), "containers");
    if (!spec->container_name)
        return json_array_size(containers) ? 0 : -1;
    for (size_t i = 0; i < json_array_size(containers); i++)
        if (!strcmp(object_text(json_array_get(containers, i), "name"),
                    spec->container_name))
            return (int)i;
    return -1;
}

/* A resource that `container` requests although only the operator may set it; NULL:
 * none. */
static const char *find_gpu_resource(const struct job_spec *spec, const json_t *container)
{
    static const char *const paths[] = { "resources.limits", "resources.requests" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *name;
        const json_t *amount;
        json_object_foreach ((json_t *)(uintptr_t)object_at(container, paths[i]), name,
                             amount)
            if (job_spec_is_gpu_resource(spec, name))
                return name;
    }
    return NULL;
}

static int check_container(const struct job_spec *spec, const json_t *container,
                           const char *field, size_t index, struct het_error *err)
{
    if (!json_is_object(container) || !*object_text(container, "name"))
        return het_fail(err, HET_BAD_INPUT,
                        "spec.podTemplate.spec.%s[%zu].name: is missing", field, index);
    const json_t *environment = json_object_get(container, "env");
    for (size_t i = 0; i < json_array_size(environment); i++) {
        const char *name = object_text(json_array_get(environment, i), "name");
        if (het_render_is_reserved(name))
            return het_fail(
                err, HET_BAD_INPUT,
                "spec.podTemplate.spec.%s[%zu].env: %s is set by the operator "
                "from the plan; remove it",
                field, index, name);
    }
    const char *resource = find_gpu_resource(spec, container);
    if (resource)
        return het_fail(
            err, HET_BAD_INPUT,
            "spec.podTemplate.spec.%s[%zu].resources: %s is set by the operator "
            "from the plan; remove it",
            field, index, resource);
    return 0;
}

/* What `container` requests of resource `name` plus `per_gpu` for each of its GPUs, in
 * milli-units. */
static int sum_quantity(const json_t *container, const char *name, const json_t *per_gpu,
                        int64_t gpus, int64_t *ret, struct het_error *err)
{
    const json_t *request =
        json_object_get(object_at(container, "resources.requests"), name);
    const json_t *limit = json_object_get(object_at(container, "resources.limits"), name);
    int64_t each = quantity_of(per_gpu, -1), sum;
    int64_t own = request ? quantity_of(request, -1) : 0;
    if (each < 0 || own < 0 || (limit && quantity_of(limit, -1) < 0) ||
        __builtin_mul_overflow(each, gpus, &sum) || __builtin_add_overflow(sum, own, ret))
        return het_fail(err, HET_BAD_INPUT,
                        "spec.perGPUResources.%s: it and the container's own must be "
                        "quantities that can be multiplied and added",
                        name);
    return 0;
}

/* Fields of the pod spec that the operator decides. */
static const char *const operator_fields[] = { "nodeName", "hostname", "subdomain",
                                               "schedulingGates" };

/* For a pod of one GPU. */
static int check_per_gpu_resources(const struct job_spec *spec, struct het_error *err)
{
    const json_t *container = json_array_get(
        json_object_get(template_spec(spec), "containers"), (size_t)trainer_index(spec));
    const char *name;
    json_t *each;
    int64_t sum;
    json_object_foreach ((json_t *)(uintptr_t)spec->per_gpu_resources, name, each)
        if (sum_quantity(container, name, each, 1, &sum, err) < 0)
            return -1;
    return 0;
}

static int check_template(const struct job_spec *spec, struct het_error *err)
{
    const json_t *template = template_spec(spec);
    for (size_t i = 0; i < sizeof operator_fields / sizeof *operator_fields; i++)
        if (json_object_get(template, operator_fields[i]))
            return het_fail(
                err, HET_BAD_INPUT,
                "spec.podTemplate.spec.%s: is decided by the operator; remove "
                "it",
                operator_fields[i]);
    const char *restart = object_text(template, "restartPolicy");
    if (*restart && strcmp(restart, "Never"))
        return het_fail(
            err, HET_BAD_INPUT,
            "spec.podTemplate.spec.restartPolicy: must be Never (a failed rank "
            "restarts all pods of the plan)");
    static const char *const lists[] = { "containers", "initContainers" };
    for (size_t k = 0; k < 2; k++) {
        const json_t *containers = json_object_get(template, lists[k]);
        for (size_t i = 0; i < json_array_size(containers); i++)
            if (check_container(spec, json_array_get(containers, i), lists[k], i, err) <
                0)
                return -1;
    }
    const json_t *volumes = json_object_get(template, "volumes");
    for (size_t i = 0; i < json_array_size(volumes); i++)
        if (!strcmp(object_text(json_array_get(volumes, i), "name"), PLAN_VOLUME))
            return het_fail(
                err, HET_BAD_INPUT,
                "spec.podTemplate.spec.volumes[%zu].name: %s is the operator's; "
                "rename it",
                i, PLAN_VOLUME);
    if (trainer_index(spec) < 0)
        return het_fail(err, HET_BAD_INPUT, "spec.podTemplate.spec.containers: %s%s",
                        spec->container_name ? "no container is named "
                                             : "there is no container",
                        spec->container_name ? spec->container_name : "");
    const json_t *trainer = json_array_get(json_object_get(template, "containers"),
                                           (size_t)trainer_index(spec));
    if (spec->runtime_appends_arguments &&
        !json_array_size(json_object_get(trainer, "command")) &&
        !json_array_size(json_object_get(trainer, "args")))
        return het_fail(
            err, HET_BAD_INPUT,
            "spec.podTemplate.spec.containers[%d]: must have a command or args "
            "to append to, as spec.runtime.argsPolicy is AppendArgs",
            trainer_index(spec));
    return check_per_gpu_resources(spec, err);
}

int children_check_job(const struct tenancy *tenancy, const struct job_spec *spec,
                       const json_t *job, const char **ret_reason, struct het_error *err)
{
    if (tenancy_check_fields(tenancy, job, err) < 0 || check_template(spec, err) < 0) {
        *ret_reason = "InvalidSpec";
        return -1;
    }
    if (spec->profile_grows && !tenancy->settings->profiler.image) {
        *ret_reason = "ProfilerNotConfigured";
        return het_fail(err, HET_BAD_INPUT,
                        "spec.model.profilePolicy: OnDemand needs profiler.image in the "
                        "controller's settings; have the administrator set it, or use "
                        "Existing");
    }
    return tenancy_check_job(tenancy, spec->ns, job, ret_reason, err);
}

/* Required node affinity on metadata.name, in every term together with the job's and the
 * template's own: terms are ORed, so one without the pin would let the pod go elsewhere.
 */
static void pin(json_t *pod_spec, const struct job_spec *spec, const char *node)
{
    json_t *affinity = object_map(pod_spec, "affinity.nodeAffinity");
    json_object_set_new(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
                        node_selector_join(spec->node_affinity,
                                           job_spec_template_affinity(spec),
                                           spec->node_selector, node));
}

/* The resource by which a place requests its GPUs: the node's as the job sees it, or, if
 * the node is of another type by now, the one that the job gives for the type. */
static const char *gpu_resource(const struct snapshot *snapshot,
                                const struct het_rank_node *place)
{
    const struct capacity_node *node = snapshot_find_node(snapshot, place->node_name);
    if (node && !strcmp(node->type, place->type_name))
        return node->resource;
    const struct job_gpu_type *rule =
        job_spec_find_gpu_type(&snapshot->spec, place->type_name);
    return rule && rule->resource ? rule->resource : JOB_SPEC_GPU_RESOURCE;
}

static void tolerate(json_t *pod_spec, const char *taint)
{
    json_array_append_new(object_list(pod_spec, "tolerations"),
                          object_pack("{s:s, s:s, s:s}", "key", taint, "operator",
                                      "Exists", "effect", "NoSchedule"));
}

/* Does what Kubernetes' admission plugin ExtendedResourceToleration does where it is
 * enabled. */
static void tolerate_gpu_taints(json_t *pod_spec, const char *resource)
{
    tolerate(pod_spec, JOB_SPEC_GPU_RESOURCE);
    if (strcmp(resource, JOB_SPEC_GPU_RESOURCE))
        tolerate(pod_spec, resource);
}

/* Passes the plan to the program: in its environment and, if the job asks for it, as
 * further arguments after its own. */
static void tell_plan(struct het_arena *arena, json_t *container,
                      const struct snapshot *snapshot, const struct snapshot_plan *plan,
                      size_t index, const struct het_rendering *rendering)
{
    struct het_render_job job = render_job(snapshot, arena, plan->generation, plan->hash);
    struct het_env *variables;
    const char **words;
    size_t count =
        het_rendering_environment(arena, rendering, plan->plan, &job, index, &variables);
    size_t word_count = het_rendering_arguments(arena, rendering, index, &words);
    json_t *environment = object_list(container, "env");
    for (size_t i = 0; i < count; i++)
        json_array_append_new(environment,
                              object_pack("{s:s, s:s}", "name", variables[i].name,
                                          "value", variables[i].value));
    for (size_t i = 0; snapshot->spec.runtime_appends_arguments && i < word_count; i++)
        json_array_append_new(object_list(container, "args"), json_string(words[i]));
}

static void mount_plan(json_t *pod_spec, json_t *container,
                       const struct snapshot *snapshot, const struct snapshot_plan *plan)
{
    json_array_append_new(object_list(pod_spec, "volumes"),
                          object_pack("{s:s, s:{s:s}}", "name", PLAN_VOLUME, "configMap",
                                      "name", plan->name));
    json_array_append_new(object_list(container, "volumeMounts"),
                          object_pack("{s:s, s:s, s:b}", "name", PLAN_VOLUME, "mountPath",
                                      snapshot->spec.plan_mount_path, "readOnly", 1));
}

/* A request as Kubernetes writes it, from milli-units. */
static json_t *quantity_text(int64_t milli)
{
    return milli % 1000 ? json_sprintf("%" PRId64 "m", milli)
                        : json_sprintf("%" PRId64, milli / 1000);
}

/* Whether Kubernetes wants the limit of a resource to be its request. */
static bool needs_limit(const char *resource)
{
    return strchr(resource, '/') || !strncmp(resource, "hugepages-", 10);
}

/* Sets GPUs as limits and adds perGPUResources times the GPUs to what the container
 * requests. A limit below the request would make the pod invalid, so it is raised. */
static int add_resources(json_t *container, const struct job_spec *spec,
                         const char *resource, int64_t gpus, struct het_error *err)
{
    json_t *requests = object_map(container, "resources.requests");
    json_t *limits = object_map(container, "resources.limits");
    const char *name;
    json_t *each;
    json_object_foreach ((json_t *)(uintptr_t)spec->per_gpu_resources, name, each) {
        int64_t sum;
        if (sum_quantity(container, name, each, gpus, &sum, err) < 0)
            return -1;
        const json_t *limit = json_object_get(limits, name);
        json_object_set_new(requests, name, quantity_text(sum));
        if (needs_limit(name) || (limit && quantity_of(limit, -1) < sum))
            json_object_set_new(limits, name, quantity_text(sum));
    }
    json_object_set_new(requests, resource, json_sprintf("%" PRId64, gpus));
    json_object_set_new(limits, resource, json_sprintf("%" PRId64, gpus));
    return 0;
}

static json_t *pod_metadata(const struct snapshot *snapshot,
                            const struct snapshot_plan *plan, size_t index,
                            const char *name)
{
    const struct job_spec *spec = &snapshot->spec;
    const json_t *user = json_object_get(spec->pod_template, "metadata");
    json_t *metadata = child_metadata(spec, name, plan->generation);
    json_t *labels = json_object_get(metadata, "labels");
    json_t *user_labels = json_object_get(user, "labels");
    if (json_is_object(user_labels))
        json_object_update_missing(labels, user_labels);
    json_object_set_new(labels, LABEL_POD_INDEX, json_sprintf("%zu", index));
    json_object_set_new(labels, LABEL_GPU_TYPE,
                        json_string(plan->rank_nodes[index].type_name));
    json_t *annotations = object_pack("{s:s, s:s, s:s}", "karpenter.sh/do-not-disrupt",
                                      "true",
                                      "cluster-autoscaler.kubernetes.io/safe-to-evict",
                                      "false", ANNOTATION_PLAN_HASH, plan->hash);
    json_t *user_annotations = json_object_get(user, "annotations");
    if (json_is_object(user_annotations))
        json_object_update_missing(annotations, user_annotations);
    json_object_set_new(metadata, "annotations", annotations);
    return metadata;
}

static const json_t *find_node_object(const struct snapshot *snapshot, const char *name)
{
    const struct capacity_node *node = snapshot_find_node(snapshot, name);
    return node && snapshot->quota.nodes ? snapshot->quota.nodes[node - snapshot->nodes]
                                         : NULL;
}

/* Pods may have scheduling gates since Kubernetes 1.27. */
#define GATES_MINOR 27

bool children_has_gates(const struct snapshot *snapshot)
{
    return snapshot->server_minor >= GATES_MINOR && snapshot->spec.gang_has_gates;
}

int children_rendering(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                       struct het_arena *arena, struct het_rendering *ret,
                       const char **ret_reason, struct het_error *err)
{
    const struct job_spec *spec = &snapshot->spec;
    struct het_render_job job = render_job(snapshot, arena, plan->generation, plan->hash);
    const json_t *files = json_object_get(plan->config_map, "data");
    const char *why;
    *ret_reason = "NotExpressible";
    if (!children_runs(arena, spec, plan->plan, &why))
        return het_fail(err, HET_BAD_INPUT, "%s", why);
    *ret = het_render(arena, job_spec_runtime(spec), plan->plan, &job);
    for (size_t i = 0; i < ret->file_count; i++)
        if (!json_object_get(files, ret->files[i].name))
            return het_fail(err, HET_BAD_INPUT,
                            "%s was written for another runtime: it has no %s",
                            plan->name, ret->files[i].name);
    return 0;
}

int children_pod(const struct snapshot *snapshot, const struct snapshot_plan *plan,
                 const struct het_rendering *rendering, size_t index, json_t **ret,
                 const char **ret_reason, struct het_error *err)
{
    const struct job_spec *spec = &snapshot->spec;
    const struct het_rank_node *place = &plan->rank_nodes[index];
    *ret_reason = "InvalidSpec";
    if (check_template(spec, err) < 0)
        return -1;
    struct het_arena *arena = het_arena_new();
    const char *name =
        plan_object_pod_name(arena, spec->name, plan->generation, (int64_t)index);

    json_t *pod_spec = json_deep_copy(template_spec(spec));
    json_t *container = json_array_get(json_object_get(pod_spec, "containers"),
                                       (size_t)trainer_index(spec));
    mount_plan(pod_spec, container, snapshot, plan);
    const char *resource = gpu_resource(snapshot, place);
    tell_plan(arena, container, snapshot, plan, index, rendering);
    int result = add_resources(container, spec, resource, place->gpu_count, err);
    pin(pod_spec, spec, place->node_name);
    tolerate_gpu_taints(pod_spec, resource);
    json_object_set_new(pod_spec, "restartPolicy", json_string("Never"));
    json_object_set_new(pod_spec, "enableServiceLinks", json_false());
    /* Training needs no rights on the API server; a job that does says so, and is
     * checked. */
    if (!json_is_boolean(json_object_get(pod_spec, "automountServiceAccountToken")))
        json_object_set_new(pod_spec, "automountServiceAccountToken", json_false());
    json_object_set_new(pod_spec, "hostname", json_string(name));
    json_object_set_new(pod_spec, "subdomain", json_string(spec->name));
    if (spec->priority_class)
        json_object_set_new(pod_spec, "priorityClassName",
                            json_string(spec->priority_class));
    if (spec->scheduler_name)
        json_object_set_new(pod_spec, "schedulerName", json_string(spec->scheduler_name));

    if (children_has_gates(snapshot))
        json_object_set_new(pod_spec, "schedulingGates",
                            object_pack("[{s:s}]", "name", SCHEDULING_GATE));
    json_t *pod = object_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod",
                              "metadata", pod_metadata(snapshot, plan, index, name),
                              "spec", pod_spec);
    kueue_decorate_pod(&snapshot->quota, snapshot->job,
                       find_node_object(snapshot, place->node_name),
                       kueue_group(arena, spec->name, plan->generation),
                       plan->rank_node_count, place->type_name, place->gpu_count, pod);
    /* The finished pod is checked, wherever its requests came from. */
    struct tenancy tenancy = snapshot_tenancy(snapshot);
    if (result == 0)
        result = tenancy_check_pod(&tenancy, spec->ns, pod, ret_reason, err);
    if (result < 0)
        json_decref(pod);
    else
        *ret = pod;
    het_arena_free(arena);
    return result;
}
