#include "controller/job/job_spec.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/job/failure_policy.h"
#include "controller/job/node_selector.h"
#include "controller/job/settings.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_FAILURE_GRACE_MS ((int64_t)30000) /* unless the spec says otherwise */

/* A spec being read: the first mistake is kept, readers after it return defaults. */
struct reader {
    const json_t *spec;
    struct het_error *err;
    const char *reason; /* NULL: no mistake yet */
};

/* The value at a dotted path below `object`; NULL if absent or null. */
static const json_t *find(const json_t *object, const char *path)
{
    const json_t *value = object_at(object, path);
    return json_is_null(value) ? NULL : value;
}

__attribute__((format(printf, 3, 4))) static void
refuse(struct reader *reader, const char *reason, const char *format, ...)
{
    if (reader->reason)
        return;
    reader->reason = reason;
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    het_fail(reader->err, HET_BAD_INPUT, "%s", text);
}

static int64_t read_integer(struct reader *reader, const char *path, int64_t fallback,
                            int64_t least, int64_t most)
{
    const json_t *value = find(reader->spec, path);
    if (!value)
        return fallback;
    if (!json_is_integer(value)) {
        refuse(reader, "InvalidSpec", "spec.%s: must be a whole number", path);
        return fallback;
    }
    int64_t number = json_integer_value(value);
    if (number < least || number > most) {
        refuse(reader, "InvalidSpec", "spec.%s: is %lld, must be between %lld and %lld",
               path, (long long)number, (long long)least, (long long)most);
        return fallback;
    }
    return number;
}

/* Text that may stand in a command, a path or a log line: no control characters. */
static bool is_plain_text(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t length = json_string_length(value);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return true;
}

static const char *read_text(struct reader *reader, const char *path,
                             const char *fallback, size_t longest)
{
    const json_t *value = find(reader->spec, path);
    if (!value)
        return fallback;
    if (!json_is_string(value) || json_string_length(value) > longest ||
        !is_plain_text(value)) {
        refuse(reader, "InvalidSpec",
               "spec.%s: must be a text of at most %zu characters without control "
               "characters",
               path, longest);
        return fallback;
    }
    return *json_string_value(value) ? json_string_value(value) : fallback;
}

static const json_t *read_object(struct reader *reader, const char *path)
{
    const json_t *value = find(reader->spec, path);
    if (value && !json_is_object(value)) {
        refuse(reader, "InvalidSpec", "spec.%s: must be an object", path);
        return NULL;
    }
    return value;
}

static const char *text_or_empty(const json_t *value)
{
    return json_is_string(value) ? json_string_value(value) : "";
}

static void check_boolean(struct reader *reader, const char *path)
{
    const json_t *value = find(reader->spec, path);
    if (value && !json_is_boolean(value))
        refuse(reader, "InvalidSpec", "spec.%s: must be true or false", path);
}

struct choice {
    const char *name;
    const char *value; /* as hetplan calls it; NULL where the position says all */
    int64_t number;
};

/* Position in `choices`; 0, the default, if nothing is said, or nothing that is known. */
static size_t read_choice(struct reader *reader, const char *path,
                          const struct choice *choices, size_t count)
{
    const char *text = read_text(reader, path, choices[0].name, 63);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(choices[i].name, text))
            return i;
    auto_free char *names = xstrdup(choices[0].name);
    for (size_t i = 1; i < count; i++) {
        auto_free char *shorter = names;
        names = xasprintf("%s, %s", shorter, choices[i].name);
    }
    refuse(reader, "InvalidSpec", "spec.%s: %s is not one of %s", path, text, names);
    return 0;
}
#define READ_CHOICE(reader, path, choices)                                               \
    read_choice(reader, path, choices, sizeof(choices) / sizeof *(choices))

static const struct choice precisions[] = { { "BF16", .value = "bf16" },
                                            { "FP16", .value = "fp16" },
                                            { "FP32", .value = "fp32" } };
static const struct choice arguments_policies[] = {
    [false] = { .name = "EnvOnly" },
    [true] = { .name = "AppendArgs" },
};
/* Work budgets of the search (hetplan --effort). */
static const struct choice efforts[] = {
    { "Normal", .number = EFFORT_NORMAL },
    { "Low", .number = EFFORT_LOW },
    { "High", .number = EFFORT_HIGH },
};
static const struct choice share_policies[] = { { .name = "Weighted" },
                                                { .name = "Equal" } };
static const struct choice degree_policies[] = { { .name = "Mixed" },
                                                 { .name = "Uniform" } };
static const struct choice recomputations[] = { { .name = "Auto" }, { .name = "None" } };
static const struct choice model_types[] = { { .name = "Transformer" } };
static const struct choice replan_modes[] = {
    [REPLAN_AUTOMATIC] = { .name = "Automatic" },
    [REPLAN_MANUAL] = { .name = "Manual" },
    [REPLAN_NEVER] = { .name = "Never" },
};
static const struct choice reshardings[] = {
    [RESHARDING_ANY] = { .name = "Reshardable" },
    [RESHARDING_SAME_PIPELINE] = { .name = "SamePipeline" },
    [RESHARDING_SAME_PLAN] = { .name = "SamePlan" },
};
static const struct choice hook_methods[] = {
    [HOOK_SIGNAL] = { .name = "Signal" },
    [HOOK_HTTP] = { .name = "HTTP" },
    [HOOK_NONE] = { .name = "None" },
};
static const struct choice spot_policies[] = {
    [SPOT_ALLOW] = { .name = "Allow" },
    [SPOT_FORBID] = { .name = "Forbid" },
    [SPOT_PREFER_ON_DEMAND] = { .name = "PreferOnDemand" },
};
static const struct choice completions[] = {
    [false] = { .name = "AllPods" },
    [true] = { .name = "RankZero" },
};
static const struct choice shared_policies[] = {
    [false] = { .name = "Forbid" },
    [true] = { .name = "Allow" },
};
static const struct choice profile_kinds[] = {
    [false] = { .name = "ModelProfile" },
    [true] = { .name = "ClusterModelProfile" },
};
static const struct choice profile_policies[] = {
    [false] = { .name = "Existing" },
    [true] = { .name = "OnDemand" },
};
enum { GANG_GATE, GANG_NONE };
static const struct choice gangs[] = {
    [GANG_GATE] = { .name = "Gate" },
    [GANG_NONE] = { .name = "None" },
};

static void read_gpu_types(struct reader *reader, struct job_spec *spec)
{
    const json_t *list = find(reader->spec, "resources.gpuTypes");
    if (!list)
        return;
    if (!json_is_array(list) || json_array_size(list) > JOB_SPEC_MAX_GPU_TYPES) {
        refuse(reader, "InvalidSpec",
               "spec.resources.gpuTypes: must be a list of at most %d entries",
               JOB_SPEC_MAX_GPU_TYPES);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct reader entry = *reader;
        entry.spec = json_array_get(list, i);
        struct job_gpu_type *type = &spec->gpu_types[spec->gpu_type_count++];
        type->name = read_text(&entry, "name", NULL, 63);
        type->min_gpus = read_integer(&entry, "minGPUs", 0, 0, 65536);
        type->max_gpus = read_integer(&entry, "maxGPUs", 0, 0, 65536);
        type->preference = read_integer(&entry, "preference", 0, -100, 100);
        type->resource = read_text(&entry, "resourceName", NULL, 317);
        if (!type->name)
            refuse(&entry, "InvalidSpec", "spec.resources.gpuTypes[%zu].name: is missing",
                   i);
        if (type->max_gpus && type->min_gpus > type->max_gpus)
            refuse(&entry, "InvalidSpec",
                   "spec.resources.gpuTypes[%zu]: minGPUs is above maxGPUs", i);
        if (type->resource && !strchr(type->resource, '/'))
            refuse(&entry, "InvalidSpec",
                   "spec.resources.gpuTypes[%zu].resourceName: must be an extended "
                   "resource such as nvidia.com/gpu",
                   i);
        for (size_t k = 0; type->name && k < i; k++)
            if (spec->gpu_types[k].name && !strcmp(spec->gpu_types[k].name, type->name))
                refuse(&entry, "InvalidSpec",
                       "spec.resources.gpuTypes[%zu].name: %s is named twice", i,
                       type->name);
        reader->reason = entry.reason;
    }
}

static void read_microbatch_sizes(struct reader *reader, struct job_spec *spec)
{
    const json_t *list = find(reader->spec, "training.microBatchSizes");
    if (!list || (json_is_array(list) && !json_array_size(list)))
        return;
    bool good = json_is_array(list) && json_array_size(list) <= 16;
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const json_t *size = json_array_get(list, i);
        good = json_is_integer(size) && json_integer_value(size) >= 1 &&
               json_integer_value(size) <= 65536;
    }
    if (!good)
        refuse(
            reader, "InvalidSpec",
            "spec.training.microBatchSizes: must be a list of at most 16 whole numbers "
            "from 1 to 65536");
    spec->microbatch_sizes = list;
}

const json_t *job_spec_find_owner(const json_t *object)
{
    static const char group[] = "heterotrain.io/"; /* in any version */
    const json_t *owner = kube_controller(object);
    const char *version = text_or_empty(json_object_get(owner, "apiVersion"));
    const char *kind = text_or_empty(json_object_get(owner, "kind"));
    bool is_job = !strncmp(version, group, strlen(group)) && !strcmp(kind, kube_job.kind);
    return is_job ? owner : NULL;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void job_spec_limit(struct job_spec *spec, const struct settings_limits *limits)
{
    spec->hook_timeout_ms = lesser(spec->hook_timeout_ms, 1000 * limits->checkpoint_s);
    spec->gang_timeout_ms = lesser(spec->gang_timeout_ms, 1000 * limits->gang_s);
    spec->termination_grace_s =
        lesser(spec->termination_grace_s, limits->termination_grace_s);
    spec->node_failure_grace_ms =
        lesser(spec->node_failure_grace_ms, 1000 * limits->node_failure_s);
}

json_t *job_spec_owner_references(const struct job_spec *spec)
{
    json_t *owners = json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion",
                               kube_job.group_version, "kind", kube_job.kind, "name",
                               spec->name, "uid", spec->uid, "controller", 1,
                               "blockOwnerDeletion", 1);
    assert(owners);
    return owners;
}

void job_spec_name_types(struct job_spec *spec, const struct het_hardware *hardware)
{
    for (size_t i = 0; i < spec->gpu_type_count; i++) {
        const struct het_gpu_type *part =
            het_hardware_find(hardware, spec->gpu_types[i].name);
        if (part)
            spec->gpu_types[i].name = part->name;
    }
}

const struct job_gpu_type *job_spec_find_gpu_type(const struct job_spec *spec,
                                                  const char *type)
{
    for (size_t i = 0; i < spec->gpu_type_count; i++)
        if (!strcmp(spec->gpu_types[i].name, type))
            return &spec->gpu_types[i];
    return NULL;
}

bool job_spec_allows_type(const struct job_spec *spec, const char *type)
{
    return !spec->gpu_type_count || job_spec_find_gpu_type(spec, type);
}

struct job_rules job_spec_rules(const struct job_spec *spec)
{
    return (struct job_rules){
        .is_readable = true,
        .min_gpus = spec->min_gpus,
        .termination_grace_s = spec->termination_grace_s,
        .hook_timeout_ms = spec->hook_timeout_ms,
        .planner_timeout_ms = spec->planner_timeout_ms,
        .replan_mode = spec->replan_mode,
        .cooldown_ms = spec->cooldown_ms,
        .max_replans_per_hour = spec->max_replans_per_hour,
    };
}

bool job_spec_is_default_resource(const char *resource)
{
    return !strcmp(resource, JOB_SPEC_GPU_RESOURCE) ||
           !strcmp(resource, JOB_SPEC_AMD_RESOURCE);
}

bool job_spec_is_gpu_resource(const struct job_spec *spec, const char *resource)
{
    for (size_t i = 0; i < spec->gpu_type_count; i++)
        if (spec->gpu_types[i].resource && !strcmp(spec->gpu_types[i].resource, resource))
            return true;
    return job_spec_is_default_resource(resource);
}

bool job_spec_is_ours(const json_t *job)
{
    const char *manager = json_string_value(find(job, "spec.managedBy"));
    return !manager || !strcmp(manager, JOB_SPEC_MANAGED_BY);
}

void job_spec_read_identity(const json_t *job, struct job_spec *ret)
{
    const json_t *metadata = json_object_get(job, "metadata");
    *ret = (struct job_spec){
        .ns = text_or_empty(json_object_get(metadata, "namespace")),
        .name = text_or_empty(json_object_get(metadata, "name")),
        .uid = text_or_empty(json_object_get(metadata, "uid")),
        .generation = json_integer_value(json_object_get(metadata, "generation")),
        .is_suspended = json_is_true(find(job, "spec.suspend")),
        .is_plan_only = json_is_true(find(job, "spec.planOnly")),
        .node_failure_grace_ms = NODE_FAILURE_GRACE_MS,
        .ttl_ms = -1,
    };
    timestamp_parse(json_string_value(json_object_get(metadata, "creationTimestamp")),
                    &ret->created_wall_ms);
}

/* RFC 1035 label of at most 40 characters: pod names add generation and index. */
static bool is_job_name(const char *name)
{
    size_t length = strlen(name);
    if (!length || length > 40 || name[0] < 'a' || name[0] > 'z' ||
        name[length - 1] == '-')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

/* A number of the architecture, which must be there. */
static int64_t need_size(struct reader *reader, const char *path, int64_t most)
{
    int64_t size = read_integer(reader, path, 0, 1, most);
    if (!size)
        refuse(reader, "InvalidSpec", "spec.%s: is missing", path);
    return size ? size : 1;
}

static void read_architecture(struct reader *reader, struct job_architecture *ret)
{
    const int64_t most = 1 << 24;
    READ_CHOICE(reader, "model.architecture.type", model_types);
    *ret = (struct job_architecture){
        .layers = need_size(reader, "model.architecture.layers", 1024),
        .hidden = need_size(reader, "model.architecture.hiddenSize", 1 << 20),
        .heads = need_size(reader, "model.architecture.heads", 4096),
        .ffn_hidden = need_size(reader, "model.architecture.ffnHiddenSize", 1 << 22),
        .vocabulary = need_size(reader, "model.architecture.vocabSize", most),
        .sequence_length = need_size(reader, "model.architecture.sequenceLength", most),
        .precision =
            precisions[READ_CHOICE(reader, "model.architecture.precision", precisions)]
                .value,
    };
    ret->kv_heads =
        read_integer(reader, "model.architecture.kvHeads", ret->heads, 1, 4096);
    if (ret->hidden % ret->heads)
        refuse(reader, "InvalidSpec",
               "spec.model.architecture.hiddenSize: must be a multiple of heads");
    if (ret->heads % ret->kv_heads)
        refuse(reader, "InvalidSpec",
               "spec.model.architecture.kvHeads: must divide heads");
}

/* Measurements go into a profile of the namespace, and what they measure must be
 * known. */
static void check_growing_profile(struct reader *reader, const struct job_spec *spec,
                                  bool has_architecture)
{
    if (!spec->profile_name || !has_architecture)
        refuse(reader, "InvalidSpec",
               "spec.model.profilePolicy: OnDemand needs both profileRef, the profile "
               "that grows, and architecture, what is measured");
    if (spec->profile_is_cluster)
        refuse(reader, "InvalidSpec",
               "spec.model.profileRef.kind: must be ModelProfile with profilePolicy "
               "OnDemand");
}

json_t *job_spec_model_config(const struct job_architecture *model)
{
    json_t *config = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b}", "hidden_size",
        (json_int_t)model->hidden, "num_hidden_layers", (json_int_t)model->layers,
        "num_attention_heads", (json_int_t)model->heads, "num_key_value_heads",
        (json_int_t)model->kv_heads, "intermediate_size", (json_int_t)model->ffn_hidden,
        "vocab_size", (json_int_t)model->vocabulary, "rms_norm_eps", 1e-5,
        "tie_word_embeddings", 0);
    assert(config);
    return config;
}

static void read_model(struct reader *reader, struct job_spec *spec)
{
    spec->profile_is_cluster =
        READ_CHOICE(reader, "model.profileRef.kind", profile_kinds);
    spec->profile_name = read_text(reader, "model.profileRef.name", NULL, 253);
    spec->sequence_length =
        read_integer(reader, "training.sequenceLength", 0, 1, 1 << 24);
    spec->profile_grows = READ_CHOICE(reader, "model.profilePolicy", profile_policies);
    bool has_architecture = read_object(reader, "model.architecture");
    if (spec->profile_grows)
        check_growing_profile(reader, spec, has_architecture);
    else if (has_architecture && find(reader->spec, "model.profileRef"))
        refuse(reader, "InvalidSpec",
               "spec.model: give exactly one of profileRef and architecture, or "
               "profilePolicy OnDemand");
    if (has_architecture)
        read_architecture(reader, &spec->architecture);
    else if (!spec->profile_name)
        refuse(reader, "InvalidSpec",
               "spec.model.profileRef.name: is missing; name a ModelProfile or "
               "ClusterModelProfile, or give model.architecture");
    if (has_architecture && spec->sequence_length)
        spec->architecture.sequence_length = spec->sequence_length;
    if (spec->profile_grows) /* existing entries must have been measured with the same
                                length */
        spec->sequence_length = spec->architecture.sequence_length;
    spec->global_batch =
        read_integer(reader, "training.globalBatchSize", 0, 1, INT32_MAX);
    if (!spec->global_batch)
        refuse(reader, "InvalidSpec", "spec.training.globalBatchSize: is missing");
    read_microbatch_sizes(reader, spec);
}

static const json_t *template_affinity(const json_t *pod_template)
{
    return find(pod_template, "spec.affinity.nodeAffinity."
                              "requiredDuringSchedulingIgnoredDuringExecution");
}

const struct het_runtime *job_spec_runtime(const struct job_spec *spec)
{
    return spec->runtime ? het_runtime_find(spec->runtime, NULL) : NULL;
}

const json_t *job_spec_template_affinity(const struct job_spec *spec)
{
    return template_affinity(spec->pod_template);
}

static void check_selector(struct reader *reader, const json_t *selector,
                           const char *what)
{
    struct het_error err;
    if (node_selector_check(selector, what, &err) < 0)
        refuse(reader, "InvalidSpec", "%s", err.message);
}

/* Both are checked here, as a pod that carries them joined would be refused whole. */
static void read_affinity(struct reader *reader, struct job_spec *spec)
{
    const json_t *own = template_affinity(json_object_get(reader->spec, "podTemplate"));
    spec->node_affinity = read_object(reader, "resources.nodeAffinity");
    check_selector(reader, spec->node_affinity, "spec.resources.nodeAffinity");
    check_selector(reader, own,
                   "spec.podTemplate.spec.affinity.nodeAffinity."
                   "requiredDuringSchedulingIgnoredDuringExecution");
    size_t terms = node_selector_join_count(spec->node_affinity, own);
    if (terms > NODE_SELECTOR_MAX_TERMS)
        refuse(reader, "InvalidSpec",
               "spec.resources.nodeAffinity: its terms times those of the template's "
               "node affinity are %zu, at most %zu are accepted",
               terms, NODE_SELECTOR_MAX_TERMS);
}

static void read_resources(struct reader *reader, struct job_spec *spec)
{
    spec->min_gpus = read_integer(reader, "resources.minGPUs", 1, 1, 65536);
    spec->max_gpus = read_integer(reader, "resources.maxGPUs", 0, 0, 65536);
    if (spec->max_gpus && spec->min_gpus > spec->max_gpus)
        refuse(reader, "InvalidSpec",
               "spec.resources: minGPUs (%lld) is above maxGPUs (%lld)",
               (long long)spec->min_gpus, (long long)spec->max_gpus);
    spec->node_selector = read_object(reader, "resources.nodeSelector");
    read_affinity(reader, spec);
    spec->spot_policy =
        (enum spot_policy)READ_CHOICE(reader, "resources.spotPolicy", spot_policies);
    spec->allows_shared_gpus =
        READ_CHOICE(reader, "resources.sharedGPUPolicy", shared_policies);
    read_gpu_types(reader, spec);
}

static void read_topology_keys(struct reader *reader, struct job_spec *spec)
{
    const json_t *list = find(reader->spec, "planner.topologyKeys");
    size_t count = json_array_size(list);
    bool good = !list || (json_is_array(list) && count <= JOB_SPEC_MAX_TOPOLOGY);
    for (size_t i = 0; good && i < count; i++) {
        const json_t *key = json_array_get(list, i);
        good = json_is_string(key) && json_string_length(key) && is_plain_text(key);
        spec->topology_keys[i] = json_string_value(key);
    }
    if (!good)
        refuse(reader, "InvalidSpec",
               "spec.planner.topologyKeys: must be a list of at most %d label keys",
               JOB_SPEC_MAX_TOPOLOGY);
    spec->topology_key_count = good ? count : 0;
}

static void read_algorithm(struct reader *reader, struct job_spec *spec)
{
    struct het_error unknown;
    spec->algorithm = read_text(reader, "planner.algorithm", "auto", 63);
    if (het_search_check_name(spec->algorithm, &unknown) < 0)
        refuse(reader, "InvalidSpec", "spec.planner.algorithm: %s", unknown.message);
}

static void read_planner(struct reader *reader, struct job_spec *spec)
{
    const int64_t most = (int64_t)1 << 53;
    read_algorithm(reader, spec);
    spec->seed = read_integer(reader, "planner.seed", 1, 0, most);
    spec->effort = efforts[READ_CHOICE(reader, "planner.effort", efforts)].number;
    spec->planner_timeout_ms =
        1000 * read_integer(reader, "planner.timeoutSeconds", 30, 1, 3600);
    spec->constraints = read_object(reader, "planner.constraints");
    read_topology_keys(reader, spec);
    READ_CHOICE(reader, "planner.constraints.recompute", recomputations);
    READ_CHOICE(reader, "planner.constraints.dataParallel.sharePolicy", share_policies);
    READ_CHOICE(reader, "planner.constraints.tensorParallel.degreePolicy",
                degree_policies);
    spec->memory_headroom_percent =
        read_integer(reader, "planner.constraints.memoryHeadroomPercent", -1, 0, 90);
}

/* The set of changes that may lead to a new plan; all if the list is left out. */
static unsigned read_triggers(struct reader *reader)
{
    const json_t *list = find(reader->spec, "replanPolicy.triggers");
    if (!list)
        return INPUT_CHANGE_ALL;
    unsigned set = 0;
    bool good = json_is_array(list) && json_array_size(list) <= INPUT_CHANGE_COUNT;
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        unsigned bit = name ? input_change_parse(name) : 0;
        good = bit != 0;
        set |= bit;
    }
    if (!good)
        refuse(reader, "InvalidSpec",
               "spec.replanPolicy.triggers: must be a list of names that the schema has");
    return good && set ? set : INPUT_CHANGE_ALL;
}

#define PLAN_HASH_PREFIX "sha256:"
#define PLAN_HASH_LENGTH (strlen(PLAN_HASH_PREFIX) + 64)

static bool is_plan_hash(const char *text)
{
    size_t prefix = strlen(PLAN_HASH_PREFIX);
    return strlen(text) == PLAN_HASH_LENGTH && !strncmp(text, PLAN_HASH_PREFIX, prefix) &&
           strspn(text + prefix, "0123456789abcdef") == PLAN_HASH_LENGTH - prefix;
}

static void read_replan_policy(struct reader *reader, struct job_spec *spec)
{
    spec->replan_mode =
        (enum replan_mode)READ_CHOICE(reader, "replanPolicy.mode", replan_modes);
    spec->debounce_ms = 1000 *
                        read_integer(reader, "replanPolicy.debounceSeconds", 30, 0, 3600);
    spec->cooldown_ms =
        1000 * read_integer(reader, "replanPolicy.cooldownSeconds", 600, 0, 604800);
    spec->node_failure_grace_ms =
        1000 * read_integer(reader, "replanPolicy.nodeFailureGraceSeconds",
                            NODE_FAILURE_GRACE_MS / 1000, 0, 3600);
    spec->min_improvement_percent =
        read_integer(reader, "replanPolicy.minImprovementPercent", 15, 0, 1000);
    spec->max_slowdown_percent =
        read_integer(reader, "replanPolicy.maxSlowdownPercent", 15, 0, 1000);
    spec->amortization_ms =
        1000 * read_integer(reader, "replanPolicy.amortizationSeconds", 3600, 1, 2592000);
    spec->max_replans_per_hour =
        read_integer(reader, "replanPolicy.maxReplansPerHour", 6, 1, 3600);
    spec->replan_triggers = read_triggers(reader);
    spec->approved_hash =
        read_text(reader, "replanPolicy.approvedPlanHash", "", PLAN_HASH_LENGTH);
    if (*spec->approved_hash && !is_plan_hash(spec->approved_hash))
        refuse(reader, "InvalidSpec",
               "spec.replanPolicy.approvedPlanHash: must be the hash of a plan, as "
               "status.candidate.hash has it: sha256: and 64 hex digits");
}

static void read_runtime_type(struct reader *reader, struct job_spec *spec)
{
    struct het_error unknown;
    spec->runtime = read_text(reader, "runtime.type", "torchrun", 63);
    spec->runtime_appends_arguments =
        READ_CHOICE(reader, "runtime.argsPolicy", arguments_policies);
    const struct het_runtime *runtime = het_runtime_find(spec->runtime, &unknown);
    if (!runtime)
        refuse(reader, "InvalidSpec", "spec.runtime.type: %s", unknown.message);
    else if (spec->runtime_appends_arguments && !runtime->version)
        refuse(reader, "InvalidSpec",
               "spec.runtime.argsPolicy: AppendArgs needs a runtime.type that reads its "
               "plan from arguments, such as megatron; use EnvOnly");
}

static void read_runtime(struct reader *reader, struct job_spec *spec)
{
    spec->resharding =
        (enum resharding)READ_CHOICE(reader, "checkpoint.resharding", reshardings);
    spec->checkpoint_interval_ms =
        1000 * read_integer(reader, "checkpoint.intervalSeconds", 0, 1, 604800);
    spec->checkpoint_uri = read_text(reader, "checkpoint.storageURI", NULL, 1024);
    read_runtime_type(reader, spec);
    spec->container_name = read_text(reader, "runtime.containerName", NULL, 63);
    spec->master_port = read_integer(reader, "runtime.masterPort", 29500, 1024, 65535);
    spec->plan_mount_path =
        read_text(reader, "runtime.planMountPath", "/etc/hetero-plan", 253);
    if (spec->plan_mount_path[0] != '/' || strstr(spec->plan_mount_path, ".."))
        refuse(reader, "InvalidSpec",
               "spec.runtime.planMountPath: must be an absolute path without ..");
    spec->pod_template = read_object(reader, "podTemplate");
    if (!json_is_object(json_object_get(spec->pod_template, "spec")))
        refuse(reader, "InvalidSpec", "spec.podTemplate.spec: is missing");
    spec->per_gpu_resources = read_object(reader, "perGPUResources");
    spec->priority_class = read_text(reader, "scheduling.priorityClassName", NULL, 253);
    spec->scheduler_name = read_text(reader, "scheduling.schedulerName", NULL, 253);
    spec->gang_has_gates = READ_CHOICE(reader, "scheduling.gang", gangs) == GANG_GATE;
    spec->gang_timeout_ms =
        1000 * read_integer(reader, "scheduling.gangTimeoutSeconds", 300, 10, 86400);
}

static bool is_visible_ascii(const char *text)
{
    for (; *text; text++)
        if (*text < '!' || *text > '~')
            return false;
    return true;
}

static void read_hook(struct reader *reader, struct job_spec *spec)
{
    spec->hook_method = (enum hook_method)READ_CHOICE(
        reader, "checkpoint.onDisruption.method", hook_methods);
    spec->hook_timeout_ms = 1000 * read_integer(reader,
                                                "checkpoint.onDisruption.timeoutSeconds",
                                                120, 1, 86400);
    spec->hook_port =
        read_integer(reader, "checkpoint.onDisruption.http.port", 0, 1, 65535);
    spec->hook_path =
        read_text(reader, "checkpoint.onDisruption.http.path", "/checkpoint", 1024);
    if (spec->hook_path[0] != '/' || !is_visible_ascii(spec->hook_path))
        refuse(reader, "InvalidSpec",
               "spec.checkpoint.onDisruption.http.path: must start with / and have no "
               "blanks and no letters beyond ASCII");
    if (spec->hook_method == HOOK_HTTP && !spec->hook_port)
        refuse(
            reader, "InvalidSpec",
            "spec.checkpoint.onDisruption.http.port: is missing; method HTTP needs it");
    /* The address of such pods is their node's: anything may listen there. */
    if (spec->hook_method == HOOK_HTTP &&
        json_is_true(find(reader->spec, "podTemplate.spec.hostNetwork")))
        refuse(reader, "InvalidSpec",
               "spec.checkpoint.onDisruption.method: HTTP needs pods with a network of "
               "their own; leave out podTemplate.spec.hostNetwork");
    spec->termination_grace_s = read_integer(
        reader, "podTemplate.spec.terminationGracePeriodSeconds", 30, 0, 86400);
}

static void read_failure_policy(struct reader *reader, struct job_spec *spec)
{
    spec->max_restarts = read_integer(reader, "failurePolicy.maxRestarts", 6, 0, 1024);
    spec->backoff_ms = 1000 *
                       read_integer(reader, "failurePolicy.backoffSeconds", 10, 0, 86400);
    spec->backoff_max_ms =
        1000 * read_integer(reader, "failurePolicy.backoffMaxSeconds", 600, 0, 86400);
    if (spec->backoff_max_ms < spec->backoff_ms)
        refuse(reader, "InvalidSpec",
               "spec.failurePolicy: backoffMaxSeconds is below backoffSeconds");
    spec->reset_after_ms =
        1000 * read_integer(reader, "failurePolicy.resetAfterSeconds", 3600, 1, 2592000);
    struct het_error err;
    spec->failure_rules = find(reader->spec, "failurePolicy.rules");
    if (failure_policy_check(spec->failure_rules,
                             json_object_get(spec->pod_template, "spec"), &err) < 0)
        refuse(reader, "InvalidSpec", "%s", err.message);
}

static void read_life(struct reader *reader, struct job_spec *spec)
{
    const int64_t ten_years = 315360000;
    read_object(reader, "successPolicy");
    spec->rank_zero_decides =
        READ_CHOICE(reader, "successPolicy.completeWhen", completions);
    spec->deadline_ms = 1000 *
                        read_integer(reader, "activeDeadlineSeconds", 0, 1, ten_years);
    check_boolean(reader, "planOnly");
    int64_t ttl_s = read_integer(reader, "ttlSecondsAfterFinished", -1, 0, ten_years);
    spec->ttl_ms = ttl_s < 0 ? -1 : 1000 * ttl_s;
}

static void check_size(struct reader *reader, const json_t *job)
{
    size_t size = json_dumpb(job, NULL, 0, JSON_COMPACT);
    if (size > JOB_SPEC_MAX_BYTES)
        refuse(reader, "InvalidSpec",
               "the job is %zu bytes as JSON, at most %zu are accepted; move data into "
               "ConfigMaps",
               size, JOB_SPEC_MAX_BYTES);
}

int job_spec_parse(const json_t *job, struct job_spec *ret, const char **ret_reason,
                   struct het_error *err)
{
    struct reader reader = { .spec = json_object_get(job, "spec"), .err = err };
    struct job_spec spec;
    job_spec_read_identity(job, &spec);
    if (!is_job_name(spec.name))
        refuse(&reader, "InvalidSpec",
               "metadata.name: must be lower-case letters, digits and -, start with a "
               "letter, and have at most 40 characters");
    check_size(&reader, job);
    read_model(&reader, &spec);
    read_resources(&reader, &spec);
    read_planner(&reader, &spec);
    read_replan_policy(&reader, &spec);
    read_runtime(&reader, &spec);
    read_hook(&reader, &spec);
    read_failure_policy(&reader, &spec);
    read_life(&reader, &spec);
    if (reader.reason) {
        *ret_reason = reader.reason;
        return -1;
    }
    *ret = spec;
    return 0;
}
