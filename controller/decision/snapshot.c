#include "controller/decision/snapshot.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static uint64_t digest_json(uint64_t digest, const json_t *json)
{
    auto_free char *text =
        json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    return digest_text(digest, text ? text : "-");
}

bool snapshot_job_is_finished(const json_t *job)
{
    return object_condition_is_true(job, "Complete") ||
           object_condition_is_true(job, "Failed");
}

/* ---- pods ---- */

/* Whether the infrastructure made a pod fail: status.reason as the kubelet (admission,
 * eviction, preemption, shutdown) and the node controller write it. */
static bool has_infrastructure_reason(const char *reason)
{
    static const char *const reasons[] = { "NodeLost",   "NodeShutdown",
                                           "Terminated", "NodeAffinity",
                                           "Evicted",    "Preempting",
                                           "Shutdown",   "UnexpectedAdmissionError" };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(reason, reasons[i]))
            return true;
    return !strncmp(reason, "OutOf", strlen("OutOf"));
}

/* Exit code of the container that trains (`name`, or the first); -1 if unknown. */
static int64_t exit_code_of(const json_t *pod, const char *name)
{
    const json_t *list = object_at(pod, "status.containerStatuses");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *status = json_array_get(list, i);
        if (name && strcmp(object_text(status, "name"), name))
            continue;
        const json_t *code = object_at(status, "state.terminated.exitCode");
        if (code)
            return json_integer_value(code);
    }
    return -1;
}

static void read_gates(const json_t *object, struct snapshot_pod *pod)
{
    const json_t *gates = object_at(object, "spec.schedulingGates");
    for (size_t i = 0; i < json_array_size(gates); i++) {
        bool is_ours =
            !strcmp(object_text(json_array_get(gates, i), "name"), SCHEDULING_GATE);
        *(is_ours ? &pod->is_gated : &pod->has_other_gates) = true;
    }
}

/* False if it is not a pod of a plan. */
static bool read_pod(const json_t *object, const struct capacity *capacity,
                     const char *container, struct snapshot_pod *ret)
{
    const char *phase = object_text(object, "status.phase");
    const char *node = object_text(object, "spec.nodeName");
    *ret = (struct snapshot_pod){
        .object = object,
        .name = kube_name(object),
        .uid = kube_uid(object),
        .node = node,
        .phase = POD_PENDING,
        .is_ready = object_condition_is_true(object, "Ready"),
        .is_scheduled = *node != '\0',
        .is_deleting = kube_is_deleting(object),
        .exit_code = -1,
    };
    if (!strcmp(phase, "Running"))
        ret->phase = POD_RUNNING;
    else if (!strcmp(phase, "Succeeded"))
        ret->phase = POD_SUCCEEDED;
    else if (!strcmp(phase, "Failed"))
        ret->phase = POD_FAILED;

    read_gates(object, ret);
    bool node_is_gone = ret->is_scheduled && !capacity_has_node(capacity, ret->node);
    ret->is_on_lost_node =
        node_is_gone ||
        (ret->is_scheduled && capacity_is_out_of_service(capacity, ret->node));
    ret->is_gone = ret->phase == POD_SUCCEEDED || ret->phase == POD_FAILED ||
                   ret->is_on_lost_node;
    if (ret->phase == POD_FAILED)
        ret->exit_code = exit_code_of(object, container);
    ret->is_disrupted = object_condition_is_true(object, "DisruptionTarget") ||
                        ret->is_on_lost_node ||
                        has_infrastructure_reason(object_text(object, "status.reason"));
    return plan_object_place(object, &ret->generation, &ret->index);
}

static int compare_pods(const void *a, const void *b)
{
    const struct snapshot_pod *left = a, *right = b;
    if (left->generation != right->generation)
        return left->generation < right->generation ? -1 : 1;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Owned objects of `resource`. */
static size_t find_children(struct het_arena *arena, const struct store *store,
                            const struct kube_resource *resource, const json_t *job,
                            json_t ***ret)
{
    json_t **objects;
    size_t count = store_find_owned(store, resource, kube_uid(job), arena, &objects);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (plan_object_is_of(objects[i], job))
            objects[kept++] = objects[i];
    *ret = objects;
    return kept;
}

static void take_pods(struct het_arena *arena, const struct snapshot_sources *sources,
                      struct snapshot *snapshot)
{
    json_t **objects;
    size_t count =
        find_children(arena, sources->store, &kube_pod, snapshot->job, &objects);
    struct snapshot_pod *pods = HET_ARENA_ARRAY(arena, struct snapshot_pod, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += read_pod(objects[i], sources->capacity, snapshot->spec.container_name,
                         &pods[kept]);
    qsort(pods, kept, sizeof *pods, compare_pods);
    snapshot->pods = pods;
    snapshot->pod_count = kept;
}

/* ---- plans ---- */

static int compare_plans(const void *a, const void *b)
{
    const struct snapshot_plan *left = a, *right = b;
    if (left->generation != right->generation)
        return left->generation > right->generation ? -1 : 1;
    return strcmp(left->name, right->name);
}

void snapshot_read_plan(struct het_arena *arena, struct snapshot_plan *plan)
{
    plan->plan = plan_object_read(arena, plan->config_map);
    if (plan->plan)
        plan->rank_node_count = het_plan_rank_nodes(arena, plan->plan, &plan->rank_nodes);
}

/* Whether both have the same plan: annotations come and go, the plan stays. */
static bool is_plan_of(const json_t *config_map, const json_t *held)
{
    return config_map == held || (held && !strcmp(kube_uid(config_map), kube_uid(held)) &&
                                  json_equal(json_object_get(config_map, "data"),
                                             json_object_get(held, "data")));
}

/* Takes the newest plan, which is long, from the memo if it is still the same one. */
static void read_newest(struct het_arena *arena, struct snapshot_memo *memo,
                        struct snapshot_plan *plan)
{
    if (!memo) {
        snapshot_read_plan(arena, plan);
        return;
    }
    if (!is_plan_of(plan->config_map, memo->config_map)) {
        json_decref(memo->config_map);
        het_arena_free(memo->arena);
        memo->config_map = json_incref((json_t *)(uintptr_t)plan->config_map);
        memo->arena = het_arena_new();
        snapshot_read_plan(memo->arena, plan);
        memo->plan = plan->plan;
        memo->rank_nodes = plan->rank_nodes;
        memo->rank_node_count = plan->rank_node_count;
    }
    plan->plan = memo->plan;
    plan->rank_nodes = memo->rank_nodes;
    plan->rank_node_count = memo->rank_node_count;
}

/* The hostfile has a line for each pod; older plans are not decoded for that. */
static size_t count_pods(const json_t *config_map)
{
    const char *line = object_text(config_map, "data.hostfile");
    size_t count = 0;
    while ((line = strchr(line, '\n'))) {
        count++;
        line++;
    }
    return count;
}

static void read_checkpoint(struct snapshot_plan *plan)
{
    const json_t *map = plan->config_map;
    timestamp_parse(kube_annotation(map, ANNOTATION_CHECKPOINT_REQUESTED),
                    &plan->checkpoint_requested_wall_ms);
    plan->checkpoint_is_for_notice =
        !strcmp(kube_annotation(map, ANNOTATION_CHECKPOINT_FOR), CHECKPOINT_FOR_NOTICE);
    plan->checkpoint_is_over =
        *kube_annotation(map, ANNOTATION_CHECKPOINT_ACKNOWLEDGED) ||
        *kube_annotation(map, ANNOTATION_CHECKPOINT_FAILED);
}

static void take_plans(struct het_arena *arena, const struct snapshot_sources *sources,
                       struct snapshot *snapshot)
{
    json_t **objects;
    size_t count =
        find_children(arena, sources->store, &kube_config_map, snapshot->job, &objects);
    int64_t horizon = plan_object_horizon(snapshot->job);
    struct snapshot_plan *plans = HET_ARENA_ARRAY(arena, struct snapshot_plan, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct snapshot_plan *plan = &plans[kept];
        *plan = (struct snapshot_plan){
            .config_map = objects[i],
            .name = kube_name(objects[i]),
            .uid = kube_uid(objects[i]),
            .hash = kube_annotation(objects[i], ANNOTATION_PLAN_HASH),
            .retired = kube_annotation(objects[i], ANNOTATION_RETIRED),
            .generation = plan_object_generation(objects[i]),
            .input_parts = kube_annotation(objects[i], ANNOTATION_INPUT_PARTS),
            .replan_times = kube_annotation(objects[i], ANNOTATION_REPLAN_TIMES),
            .restarts =
                plan_object_number(kube_annotation(objects[i], ANNOTATION_RESTARTS)),
            .gang_timeouts =
                plan_object_number(kube_annotation(objects[i], ANNOTATION_GANG_TIMEOUTS)),
            .replans =
                plan_object_number(kube_annotation(objects[i], ANNOTATION_REPLANS)),
            .input_digest =
                strtoull(kube_annotation(objects[i], ANNOTATION_INPUT_DIGEST), NULL, 16),
            .pod_digest =
                strtoull(kube_annotation(objects[i], ANNOTATION_POD_DIGEST), NULL, 16),
        };
        timestamp_parse(kube_annotation(objects[i], ANNOTATION_RETIRED_AT),
                        &plan->retired_wall_ms);
        timestamp_parse(kube_annotation(objects[i], ANNOTATION_COMPUTED_AT),
                        &plan->created_wall_ms);
        timestamp_parse(kube_annotation(objects[i], ANNOTATION_RELEASED),
                        &plan->released_wall_ms);
        plan->pod_count = count_pods(objects[i]);
        read_checkpoint(plan);
        if (plan->generation > 0 && plan->generation <= horizon &&
            !kube_is_deleting(objects[i]))
            kept++;
        if (plan_object_is_candidate(objects[i]) && !kube_is_deleting(objects[i]))
            snapshot->candidate = objects[i];
    }
    qsort(plans, kept, sizeof *plans, compare_plans);
    if (kept)
        read_newest(arena, sources->memo, &plans[0]);
    snapshot->plans = plans;
    snapshot->plan_count = kept;
}

/* ---- nodes ---- */

const struct capacity_node *snapshot_find_node(const struct snapshot *snapshot,
                                               const char *name)
{
    size_t low = 0, high = snapshot->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(snapshot->nodes[middle].name, name);
        if (!order)
            return &snapshot->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Whether `list` ("a,b,c") names `node`. */
static bool names_node(const char *list, const char *node)
{
    size_t length = strlen(node);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, node, length) && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

/* Nodes that a generation of the job waited for in vain are left out for a while. */
static void avoid_nodes(struct snapshot *snapshot, struct capacity_node *nodes)
{
    for (size_t i = 0; i < snapshot->plan_count; i++) {
        const json_t *map = snapshot->plans[i].config_map;
        const char *list = kube_annotation(map, ANNOTATION_AVOID);
        int64_t until = 0;
        if (!*list ||
            timestamp_parse(kube_annotation(map, ANNOTATION_AVOID_UNTIL), &until) < 0 ||
            until <= snapshot->wall_ms)
            continue;
        for (size_t n = 0; n < snapshot->node_count; n++) {
            if (nodes[n].unusable || !names_node(list, nodes[n].name))
                continue;
            nodes[n].unusable = het_unused_name(HET_UNUSED_AVOIDED);
            nodes[n].unusable_since_ms = snapshot->now_ms;
            nodes[n].free = 0;
        }
        if (!snapshot->avoided_until_wall_ms || until < snapshot->avoided_until_wall_ms)
            snapshot->avoided_until_wall_ms = until;
    }
}

/* Takes the leases read for the newest plan's nodes. */
static void take_leases(struct het_arena *arena, const struct snapshot_sources *sources,
                        struct snapshot *snapshot)
{
    if (!snapshot->plan_count || !store_count(sources->store, &kube_lease))
        return;
    const struct snapshot_plan *plan = &snapshot->plans[0];
    const json_t **leases =
        HET_ARENA_ARRAY(arena, const json_t *, plan->rank_node_count + 1);
    for (size_t i = 0; i < plan->rank_node_count; i++) {
        const json_t *lease = store_find(sources->store, &kube_lease, NODE_LEASES,
                                         plan->rank_nodes[i].node_name);
        if (lease)
            leases[snapshot->lease_count++] = lease;
    }
    snapshot->leases = leases;
}

/* ---- quota ---- */

/* Whether one of the job's pods owns `workload`; its name alone proves nothing. */
static bool owns_workload(const struct snapshot *snapshot, const json_t *workload)
{
    const json_t *owners = object_at(workload, "metadata.ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const char *uid =
            json_string_value(json_object_get(json_array_get(owners, i), "uid"));
        for (size_t k = 0; uid && k < snapshot->pod_count; k++)
            if (!strcmp(snapshot->pods[k].uid, uid))
                return true;
    }
    return false;
}

/* Reads the quota of the job's queue, if it is in one, and limits the nodes to it. */
static void take_quota(struct het_arena *arena, const struct snapshot_sources *sources,
                       struct snapshot *snapshot, struct capacity_node *nodes)
{
    const json_t **workloads =
        HET_ARENA_ARRAY(arena, const json_t *, snapshot->pod_count + 1);
    size_t count = 0;
    int64_t last = -1; /* pods are in the order of their generations */
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        if (sources->kueue != KUEUE_PRESENT || snapshot->pods[i].generation == last)
            continue;
        last = snapshot->pods[i].generation;
        const json_t *workload =
            store_find(sources->store, &kube_workload, snapshot->spec.ns,
                       kueue_group(arena, snapshot->spec.name, last));
        if (workload && owns_workload(snapshot, workload))
            workloads[count++] = workload;
    }
    kueue_read_quota(arena, sources->store, sources->kueue, snapshot->job, workloads,
                     count, &snapshot->quota);
    if (!snapshot->quota.queue)
        return;
    const struct snapshot_plan *kept =
        snapshot->plan_count && !*snapshot->plans->retired ? snapshot->plans : NULL;
    kueue_limit_nodes(arena, sources->store, &snapshot->quota,
                      kept ? kept->rank_nodes : NULL, kept ? kept->rank_node_count : 0,
                      nodes, snapshot->node_count);
}

/* ---- the whole ---- */

void snapshot_memo_fini(struct snapshot_memo *memo)
{
    json_decref(memo->job);
    free(memo->refused);
    capacity_kept_fini(&memo->kept);
    json_decref(memo->profile);
    json_decref(memo->config_map);
    het_arena_free(memo->arena);
}

/* Profiles are long. */
static uint64_t digest_profile(const json_t *profile, struct snapshot_memo *memo)
{
    const json_t *spec = json_object_get(profile, "spec");
    if (!memo || !profile)
        return digest_json(0, spec);
    if (memo->profile != profile) {
        json_decref(memo->profile);
        memo->profile = json_incref((json_t *)(uintptr_t)profile);
        memo->profile_digest = digest_json(0, spec);
    }
    return memo->profile_digest;
}

/* Whether the job's runtime is among those that join GPUs of different vendors. */
static bool mixes_vendors(const struct snapshot *snapshot)
{
    const struct settings_planner *planner = &snapshot->settings->planner;
    for (size_t i = 0; i < planner->mixed_vendor_runtime_count; i++)
        if (snapshot->spec.runtime &&
            !strcasecmp(planner->mixed_vendor_runtimes[i], snapshot->spec.runtime))
            return true;
    return false;
}

/* Digests what the planner's answer depends on besides the nodes: as a whole, and by
 * parts so that changes can be named. */
static void digest_input(struct snapshot *snapshot,
                         const struct snapshot_sources *sources, uint64_t planning_digest)
{
    struct input_state parts = { .spec = planning_digest };
    const uint64_t profile[] = { sources->hardware_digest,
                                 digest_profile(snapshot->profile, sources->memo) };
    parts.profile = digest_bytes(0, profile, sizeof profile);
    const uint64_t both[] = { parts.spec, parts.profile };
    snapshot->spec_digest = digest_bytes(0, both, sizeof both);
    for (size_t i = 0; i < snapshot->level_count; i++)
        snapshot->spec_digest = digest_text(snapshot->spec_digest, snapshot->levels[i]);
    if (mixes_vendors(snapshot))
        snapshot->spec_digest = digest_text(snapshot->spec_digest, "mixed vendors");
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        input_change_add_node(&parts, node->name, node->unusable, node->allocatable,
                              node->free);
    }
    snapshot->input_parts = parts;
}

/* Adds the level with that label if the hardware settings give it a bandwidth. */
static void add_level(struct snapshot *snapshot, const json_t *levels, const char *label)
{
    for (size_t i = 0; i < snapshot->level_count; i++)
        if (!strcmp(snapshot->levels[i], label))
            return;
    for (size_t i = 0; i < json_array_size(levels); i++) {
        const char *known =
            json_string_value(json_object_get(json_array_get(levels, i), "label"));
        if (known && !strcmp(known, label) && snapshot->level_count < HET_MAX_LEVELS)
            snapshot->levels[snapshot->level_count++] = known;
    }
}

/* The job's topology keys, else the installation's, else the hardware's levels. */
static void take_levels(struct snapshot *snapshot)
{
    const struct job_spec *spec = &snapshot->spec;
    const struct settings *settings = snapshot->settings;
    const json_t *levels = json_object_get(snapshot->hardware, "levels");
    bool is_own = spec->topology_key_count > 0;
    const char *const *keys = is_own ? spec->topology_keys : settings->topology_keys;
    size_t count = is_own ? spec->topology_key_count : settings->topology_key_count;
    for (size_t i = 0; i < count; i++)
        add_level(snapshot, levels, keys[i]);
    for (size_t i = 0; !count && i < json_array_size(levels); i++) {
        const char *label =
            json_string_value(json_object_get(json_array_get(levels, i), "label"));
        if (label)
            add_level(snapshot, levels, label);
    }
}

static uint64_t digest_place(const struct snapshot *snapshot,
                             const struct capacity_node *node, uint64_t digest)
{
    for (size_t i = 0; i < snapshot->level_count; i++) {
        const char *name =
            json_string_value(json_object_get(node->labels, snapshot->levels[i]));
        digest = digest_text(digest, name ? name : "");
    }
    return digest_bytes(digest, &node->preference, sizeof node->preference);
}

static uint64_t digest_nodes(const struct snapshot *snapshot, uint64_t digest)
{
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        if (!node->free)
            continue;
        digest = digest_text(digest, node->name);
        digest = digest_text(digest, node->type);
        if (node->vendor)
            digest = digest_text(digest, node->vendor);
        const char *instance = het_node_instance_type(node->labels);
        digest = digest_text(digest, instance ? instance : "");
        digest = digest_bytes(digest, &node->memory_bytes, sizeof node->memory_bytes);
        digest = digest_bytes(digest, &node->free, sizeof node->free);
        digest = digest_place(snapshot, node, digest);
    }
    return digest;
}

/* Digests what determines the content of a plan's pods, without what only determines when
 * they start. */
static uint64_t digest_pods(const struct job_spec *spec)
{
    const char *const texts[] = {
        spec->runtime,
        spec->container_name,
        spec->plan_mount_path,
        spec->checkpoint_uri,
        spec->priority_class,
        spec->scheduler_name ? spec->scheduler_name : "default-scheduler"
    };
    uint64_t digest = digest_bytes(0, &spec->master_port, sizeof spec->master_port);
    if (spec->runtime_appends_arguments)
        digest = digest_text(digest, "AppendArgs");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        digest = digest_text(digest, texts[i] ? texts[i] : "");
    digest = digest_json(digest, spec->per_gpu_resources);
    return digest_json(digest, spec->pod_template);
}

/* ---- other jobs ---- */

/* Records on the nodes what this job itself has claimed. */
static void take_own_claim(struct het_arena *arena, const struct capacity *capacity,
                           const struct snapshot *snapshot, struct snapshot_plan *plan,
                           struct capacity_node *nodes)
{
    struct claim claim = { 0 };
    if (!other_jobs_read_claim(arena, plan->config_map, &claim))
        return;
    plan->claim_until_wall_ms = claim.until_wall_ms;
    plan->claims_in_vain = claim.in_vain;
    for (size_t i = 0; i < claim.victim_count; i++) {
        struct capacity_share *shares;
        size_t count = capacity_holdings(capacity, arena, claim.victims[i], &shares);
        for (size_t k = 0; k < count; k++) {
            const struct capacity_node *node =
                snapshot_find_node(snapshot, shares[k].node);
            if (node)
                nodes[node - snapshot->nodes].claimed += shares[k].gpus;
        }
    }
}

/* The claim on this job with the highest precedence; claims of lower priority do not
 * count. */
static const struct claim *find_claim(struct het_arena *arena, const struct store *store,
                                      const struct precedence *precedence,
                                      const char *job_key)
{
    struct claim *claims;
    size_t count = other_jobs_claims(arena, store, &claims);
    for (size_t i = 0; i < count; i++)
        if (!claims[i].is_served && other_jobs_claim_names(&claims[i], job_key) &&
            claims[i].precedence.priority >= precedence->priority)
            return &claims[i];
    return NULL;
}

/* Whether the planner has answered that nothing fits the free GPUs. */
static bool is_told_no(const struct snapshot *snapshot)
{
    const struct planner_answer *answer = &snapshot->memory.answer;
    int64_t gpus = 0;
    for (size_t i = 0; i < snapshot->node_count; i++)
        gpus += snapshot->nodes[i].free;
    return !gpus ||
           (answer->kind == ANSWER_NO_PLAN && answer->digest == snapshot->input_digest);
}

/* Whether the job, which holds nothing, may make a claim (preemption.h). Only then does
 * it matter what others hold. */
static bool may_claim(const struct snapshot *snapshot)
{
    return !snapshot->precedence.never_claims && !snapshot->quota.queue &&
           !snapshot->refused_reason && !snapshot->spec.is_suspended &&
           !snapshot_job_is_finished(snapshot->job) && is_told_no(snapshot);
}

static void take_others(struct het_arena *arena, const struct snapshot_sources *sources,
                        const char *job_key, struct snapshot *snapshot)
{
    snapshot->precedence = precedence_of(sources->store, snapshot->job);
    bool waits = !snapshot->plan_count || *snapshot->plans[0].retired;
    if (!waits) {
        if (capacity_has_claims(sources->capacity))
            snapshot->claimed_by =
                find_claim(arena, sources->store, &snapshot->precedence, job_key);
        return;
    }
    if (!may_claim(snapshot))
        return;
    struct other_job *peers;
    snapshot->peer_count = other_jobs_take(arena, sources->store, sources->capacity,
                                           &snapshot->settings->limits, job_key,
                                           sources->wall_ms, &peers);
    snapshot->peers = peers;
}

/* Lists the measurements that run, or should, for the job. A job whose spec cannot be
 * read keeps those it has. */
static void take_measurements(struct het_arena *arena,
                              const struct snapshot_sources *sources,
                              struct snapshot *snapshot)
{
    const struct job_spec *spec = &snapshot->spec;
    struct measurement_sources known = {
        .store = sources->store,
        .spec = spec,
        .settings = snapshot->settings,
        .hardware = capacity_hardware(sources->capacity),
        .profile = snapshot->profile,
    };
    bool wants_none = !spec->profile_grows || spec->is_suspended || spec->is_plan_only ||
                      snapshot_job_is_finished(snapshot->job);
    if (snapshot->refused_reason || !snapshot->settings->profiler.image)
        return;
    snapshot->spent_measurement_count =
        measurement_list_spent(arena, &known, wants_none, &snapshot->spent_measurements);
    struct measurement *list;
    if (!wants_none)
        snapshot->measurement_count =
            measurement_list(arena, &known, snapshot->nodes, snapshot->node_count, &list);
    if (snapshot->measurement_count)
        snapshot->measurements = list;
}

static void cap_planner(const struct settings *settings, struct job_spec *spec)
{
    if (spec->effort > settings->planner.most_effort)
        spec->effort = settings->planner.most_effort;
    if (spec->planner_timeout_ms > settings->planner.most_timeout_ms)
        spec->planner_timeout_ms = settings->planner.most_timeout_ms;
}

bool snapshot_read_spec(struct het_arena *arena, const struct het_hardware *table,
                        struct snapshot *snapshot)
{
    struct het_error err;
    if (job_spec_parse(snapshot->job, &snapshot->spec, &snapshot->refused_reason, &err) ==
        0) {
        job_spec_name_types(&snapshot->spec, table);
        job_spec_limit(&snapshot->spec, &snapshot->settings->limits);
        cap_planner(snapshot->settings, &snapshot->spec);
        return true;
    }
    snapshot->refused = het_arena_strdup(arena, err.message);
    job_spec_read_identity(snapshot->job, &snapshot->spec);
    return false;
}

/* Parts of the spec that the planner's answer depends on. */
static const char *const planning_parts[] = { "model", "training", "resources", "planner",
                                              "perGPUResources" };

static uint64_t digest_planning(const json_t *job, const struct job_spec *known)
{
    const json_t *spec = json_object_get(job, "spec");
    uint64_t digest = 0;
    for (size_t i = 0; i < sizeof planning_parts / sizeof *planning_parts; i++)
        digest = digest_json(digest, json_object_get(spec, planning_parts[i]));
    /* Runtimes without limits give the same plans. */
    const struct het_runtime *runtime = job_spec_runtime(known);
    return het_runtime_runs_all(runtime) ? digest : digest_text(digest, runtime->name);
}

uint64_t snapshot_digest_terms(const struct snapshot *snapshot)
{
    json_auto_t *terms = json_deep_copy(json_object_get(snapshot->job, "spec"));
    object_remove(terms, "replanPolicy.approvedPlanHash");
    return digest_json(0, terms);
}

/* Reads the spec into the memo, unless the memo already holds this job's spec. */
static void remember_spec(struct snapshot_memo *memo, const struct het_hardware *table,
                          const struct settings *settings, const json_t *job)
{
    if (memo->job == job)
        return;
    struct het_arena *arena = het_arena_new();
    struct snapshot read = { .job = job, .settings = settings };
    bool is_good = snapshot_read_spec(arena, table, &read);
    /* A status write changes nothing of what the job sees. */
    if (!memo->job ||
        !json_equal(json_object_get(memo->job, "spec"), json_object_get(job, "spec")))
        capacity_kept_fini(&memo->kept);
    json_decref(memo->job);
    free(memo->refused);
    memo->job = json_incref((json_t *)(uintptr_t)job);
    memo->spec = read.spec;
    memo->refused_reason = read.refused_reason;
    memo->refused = read.refused ? xstrdup(read.refused) : NULL;
    memo->pod_digest = is_good ? digest_pods(&read.spec) : 0;
    memo->planning_digest = digest_planning(job, &read.spec);
    memo->parses++;
    het_arena_free(arena);
}

/* Takes the spec and what derives from it, from the memo if there is one. */
static uint64_t take_spec(struct het_arena *arena, const struct snapshot_sources *sources,
                          struct snapshot *snapshot)
{
    const struct het_hardware *table = capacity_hardware(sources->capacity);
    struct snapshot_memo *memo = sources->memo;
    if (!memo) {
        if (snapshot_read_spec(arena, table, snapshot))
            snapshot->pod_digest = digest_pods(&snapshot->spec);
        return digest_planning(snapshot->job, &snapshot->spec);
    }
    remember_spec(memo, table, snapshot->settings, snapshot->job);
    snapshot->spec = memo->spec;
    snapshot->refused_reason = memo->refused_reason;
    snapshot->refused = memo->refused;
    snapshot->pod_digest = memo->pod_digest;
    return memo->planning_digest;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_node(const struct capacity_node *a, const struct capacity_node *b)
{
    return !strcmp(a->name, b->name) && same_text(a->type, b->type) &&
           same_text(a->resource, b->resource) && same_text(a->vendor, b->vendor) &&
           a->labels == b->labels && a->memory_bytes == b->memory_bytes &&
           a->allocatable == b->allocatable && a->free == b->free &&
           a->most_free == b->most_free && a->claimed == b->claimed &&
           same_text(a->limited_by, b->limited_by) &&
           same_text(a->unusable, b->unusable) &&
           a->unusable_since_ms == b->unusable_since_ms &&
           a->preference == b->preference && a->is_spot == b->is_spot &&
           a->is_leaving == b->is_leaving && same_text(a->leaving_by, b->leaving_by) &&
           a->leaving_since_ms == b->leaving_since_ms;
}

bool snapshot_is_same(const struct snapshot *a, const struct snapshot *b)
{
    if (a->job != b->job || a->node_count != b->node_count ||
        a->input_digest != b->input_digest || a->spec_digest != b->spec_digest ||
        a->pod_digest != b->pod_digest ||
        !same_text(a->refused_reason, b->refused_reason) ||
        !same_text(a->refused, b->refused) || a->peer_count != b->peer_count ||
        a->plan_count != b->plan_count || !a->claimed_by != !b->claimed_by)
        return false;
    for (size_t i = 0; i < a->node_count; i++)
        if (!same_node(&a->nodes[i], &b->nodes[i]))
            return false;
    return true;
}

struct tenancy snapshot_tenancy(const struct snapshot *snapshot)
{
    return (struct tenancy){ .settings = snapshot->settings,
                             .server_minor = snapshot->server_minor,
                             .namespace_policy = snapshot->namespace_policy };
}

bool snapshot_take(struct het_arena *arena, const struct snapshot_sources *sources,
                   const char *ns, const char *name, const struct job_memory *memory,
                   struct snapshot *ret)
{
    json_t *job = store_find(sources->store, &kube_job, ns, name);
    if (!job)
        return false;
    struct snapshot snapshot = {
        .now_ms = sources->now_ms,
        .wall_ms = sources->wall_ms,
        .job = job,
        .hardware = sources->hardware,
        .server_minor = sources->server_minor,
        .namespace_policy = pod_security_of_labels(
            object_at(store_find(sources->store, &kube_namespaces, "", ns),
                      "metadata.labels"),
            sources->server_minor),
        .pods_version = sources->pods_version,
        .settings = sources->settings ? sources->settings : settings_default(),
        .leader = sources->leader,
    };
    if (memory)
        snapshot.memory = *memory;
    uint64_t planning_digest = take_spec(arena, sources, &snapshot);

    const struct job_spec *spec = &snapshot.spec;
    if (spec->profile_name)
        snapshot.profile =
            spec->profile_is_cluster
                ? store_find(sources->store, &kube_cluster_model_profile, "",
                             spec->profile_name)
                : store_find(sources->store, &kube_model_profile, ns, spec->profile_name);
    take_plans(arena, sources, &snapshot);
    take_pods(arena, sources, &snapshot);
    take_leases(arena, sources, &snapshot);
    snapshot.service = store_find(sources->store, &kube_service, ns, name);

    struct capacity_node *nodes;
    const char *key = het_arena_printf(arena, "%s/%s", spec->ns, spec->uid);
    snapshot.node_count = capacity_view(sources->capacity, arena, key, spec,
                                        sources->memo ? &sources->memo->kept : NULL,
                                        &nodes);
    avoid_nodes(&snapshot, nodes);
    take_quota(arena, sources, &snapshot, nodes);
    snapshot.nodes = nodes;
    take_measurements(arena, sources, &snapshot);
    take_levels(&snapshot);
    digest_input(&snapshot, sources, planning_digest);
    snapshot.input_digest = digest_nodes(&snapshot, snapshot.spec_digest);
    if (snapshot.plan_count)
        take_own_claim(arena, sources->capacity, &snapshot,
                       (struct snapshot_plan *)(uintptr_t)&snapshot.plans[0], nodes);
    take_others(arena, sources, key, &snapshot);
    *ret = snapshot;
    return true;
}
