#include "controller/decision/status.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MEMORY_PERCENT 1000    /* of status.plan.predicted.peakMemoryPercent */
#define MAX_GAIN_PERCENT   1000000 /* of status.lastReplanDecision.gainPercent */
#define MAX_GPUS           1048576 /* of status.unmetDemand[].gpus */
#define MAX_STAGES         64      /* the schema's bound of status.plan.stages */
#define MAX_MESSAGE        32768   /* the schema's bound of a condition's message */

/* Where the condition is, or belongs. */
static size_t position_of(const struct status_facts *facts, const char *type)
{
    size_t at = 0;
    while (at < facts->condition_count && strcmp(facts->conditions[at].type, type) != 0)
        at++;
    return at;
}

void status_set(struct status_facts *facts, const char *type, const char *status,
                const char *reason, const char *message)
{
    size_t at = position_of(facts, type);
    assert(at < STATUS_MAX_CONDITIONS);
    if (at == facts->condition_count)
        facts->condition_count++;
    facts->conditions[at] =
        (struct status_condition){ type, status, reason, message ? message : "" };
}

bool status_has(const struct status_facts *facts, const char *type)
{
    return position_of(facts, type) < facts->condition_count;
}

const struct status_condition *status_find(const struct status_facts *facts,
                                           const char *type)
{
    size_t at = position_of(facts, type);
    return at < facts->condition_count ? &facts->conditions[at] : NULL;
}

static json_t *time_json(int64_t wall_ms)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(wall_ms, text);
    return json_string(text);
}

static void set_integer(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

/* ---- conditions ---- */

static json_t *condition_json(const struct snapshot *snapshot,
                              const struct status_condition *condition)
{
    const json_t *present = object_find_condition(snapshot->job, condition->type);
    json_t *json = json_object();
    json_object_set_new(json, "type", json_string(condition->type));
    json_object_set_new(json, "status", json_string(condition->status));
    json_object_set_new(json, "reason", json_string(condition->reason));
    size_t length = strnlen(condition->message, MAX_MESSAGE);
    json_t *message = json_stringn(condition->message, length);
    json_object_set_new(json, "message", message ? message : json_string(""));
    set_integer(json, "observedGeneration", snapshot->spec.generation);
    bool same = present && !strcmp(object_text(present, "status"), condition->status);
    const char *since = object_text(present, "lastTransitionTime");
    json_object_set_new(json, "lastTransitionTime",
                        same && *since ? json_string(since)
                                       : time_json(snapshot->wall_ms));
    return json;
}

/* The conditions of this pass, then the present ones that it does not touch. */
static json_t *conditions_json(const struct snapshot *snapshot,
                               const struct status_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->condition_count; i++)
        json_array_append_new(list, condition_json(snapshot, &facts->conditions[i]));
    json_t *before = object_at(snapshot->job, "status.conditions");
    size_t i;
    json_t *old;
    json_array_foreach (before, i, old) {
        if (!status_has(facts, object_text(old, "type"))) {
            json_t *kept = json_copy(old);
            set_integer(kept, "observedGeneration", snapshot->spec.generation);
            json_array_append_new(list, kept);
        }
    }
    return list;
}

/* ---- the plan ---- */

/* "A100-SXM4-40GB", or "A100-SXM4-40GB+V100-SXM2-16GB" for a mixed stage. */
static const char *stage_types(struct het_arena *arena, const struct het_stage *stage)
{
    const char *text = "";
    for (size_t r = 0; r < stage->replica_count; r++) {
        const char *type = stage->replicas[r].type_name;
        bool is_named = false;
        for (size_t k = 0; k < r; k++)
            is_named |= !strcmp(stage->replicas[k].type_name, type);
        if (!is_named)
            text = het_arena_printf(arena, "%s%s%s", text, *text ? "+" : "", type);
    }
    return text;
}

static json_t *stages_json(struct het_arena *arena, const struct het_plan *plan)
{
    json_t *list = json_array();
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            if (json_array_size(list) == MAX_STAGES)
                return list;
            json_t *json = json_object();
            set_integer(json, "index", (int64_t)json_array_size(list));
            set_integer(json, "pipeline", (int64_t)p);
            json_object_set_new(json, "gpuType", json_string(stage_types(arena, stage)));
            set_integer(json, "layerStart", stage->first_layer);
            set_integer(json, "layerEnd", stage->first_layer + stage->layer_count);
            set_integer(json, "tensorParallel", stage->replicas[0].tp);
            set_integer(json, "dataParallel", (int64_t)stage->replica_count);
            json_array_append_new(list, json);
        }
    }
    return list;
}

static json_t *parallelism_json(const struct het_plan *plan)
{
    uint32_t tp_least = UINT32_MAX, tp_most = 0;
    size_t deepest = 0, widest = 0;
    int64_t microbatches = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        deepest = pipeline->stage_count > deepest ? pipeline->stage_count : deepest;
        microbatches += pipeline->microbatch_count;
        size_t pipeline_width = 0;
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            const struct het_stage *stage = &pipeline->stages[s];
            if (stage->replica_count > pipeline_width)
                pipeline_width = stage->replica_count;
            for (size_t r = 0; r < stage->replica_count; r++) {
                uint32_t tp = stage->replicas[r].tp;
                tp_least = tp < tp_least ? tp : tp_least;
                tp_most = tp > tp_most ? tp : tp_most;
            }
        }
        widest += pipeline_width;
    }
    json_t *json = json_object();
    set_integer(json, "pipelines", (int64_t)plan->pipeline_count);
    set_integer(json, "data", (int64_t)widest);
    set_integer(json, "pipeline", (int64_t)deepest);
    set_integer(json, "tensorMin", tp_most ? tp_least : 0);
    set_integer(json, "tensorMax", tp_most);
    set_integer(json, "microBatches", microbatches);
    return json;
}

/* A plan file may hold any number; the schema takes up to `most`. */
static int64_t bounded(double value, int64_t most)
{
    return value < (double)most ? (int64_t)value : most; /* NaN: most */
}

static int64_t milliseconds(double seconds)
{
    return bounded(round(seconds * 1000), (int64_t)1 << 53);
}

static json_t *predicted_json(const struct het_prediction *predicted)
{
    double worst = 0;
    for (size_t i = 0; i < predicted->peak_memory_count; i++) {
        const struct het_peak_memory *peak = &predicted->peak_memory[i];
        double capacity = peak->capacity_bytes ? (double)peak->capacity_bytes : 1;
        double share = (double)peak->bytes / capacity;
        worst = share > worst ? share : worst;
    }
    json_t *json = json_object();
    set_integer(json, "iterationMilliseconds", milliseconds(predicted->iteration_s));
    if (predicted->lower_bound_s > 0)
        set_integer(json, "lowerBoundMilliseconds",
                    milliseconds(predicted->lower_bound_s));
    json_object_set_new(json, "samplesPerSecond",
                        json_sprintf("%.4g", predicted->samples_per_s));
    set_integer(json, "peakMemoryPercent",
                bounded(ceil(worst * 100), MAX_MEMORY_PERCENT));
    if (predicted->profile_origin != HET_PROFILE_MEASURED)
        json_object_set_new(json, "estimated", json_true());
    for (size_t i = 0; i < predicted->assumed_link_count; i++)
        if (predicted->assumed_links[i].source == HET_LINK_DEFAULT)
            json_object_set_new(json, "linksAssumed", json_true());
    return json;
}

static json_t *plan_json(struct het_arena *arena, const struct snapshot_plan *plan)
{
    json_t *json = json_object();
    const char *computed = kube_annotation(plan->config_map, ANNOTATION_COMPUTED_AT);
    set_integer(json, "revision", plan->generation);
    json_object_set_new(json, "hash", json_string(plan->hash));
    json_object_set_new(json, "configMapRef", json_pack("{s:s}", "name", plan->name));
    if (*computed)
        json_object_set_new(json, "computedAt", json_string(computed));
    json_object_set_new(
        json, "trigger",
        json_string(kube_annotation(plan->config_map, ANNOTATION_TRIGGER)));
    const char *took = kube_annotation(plan->config_map, ANNOTATION_PLANNER_MS);
    if (*took >= '0' && *took <= '9')
        set_integer(json, "plannerMilliseconds",
                    bounded(strtod(took, NULL), (int64_t)1 << 53));
    if (!plan->plan)
        return json;
    json_object_set_new(json, "algorithm", json_string(plan->plan->algorithm));
    json_object_set_new(json, "summary",
                        json_string(het_render_summary(arena, plan->plan)));
    json_object_set_new(json, "parallelism", parallelism_json(plan->plan));
    json_object_set_new(json, "stages", stages_json(arena, plan->plan));
    json_object_set_new(json, "predicted", predicted_json(&plan->plan->predicted));
    return json;
}

/* GPUs and nodes of each type, by type name. */
static json_t *allocation_json(const struct snapshot_plan *plan, int64_t *ret_gpus)
{
    json_auto_t *by_type = json_object();
    *ret_gpus = 0;
    for (size_t i = 0; i < plan->rank_node_count; i++) {
        const struct het_rank_node *node = &plan->rank_nodes[i];
        json_t *entry = json_object_get(by_type, node->type_name);
        if (!entry) {
            entry = json_pack("{s:s, s:i, s:i}", "gpuType", node->type_name, "gpus", 0,
                              "nodes", 0);
            json_object_set_new(by_type, node->type_name, entry);
        }
        set_integer(entry, "gpus",
                    json_integer_value(json_object_get(entry, "gpus")) + node->gpu_count);
        set_integer(entry, "nodes",
                    json_integer_value(json_object_get(entry, "nodes")) + 1);
        *ret_gpus += node->gpu_count;
    }
    json_t *list = json_array();
    const char *name;
    json_t *entry;
    json_object_foreach (by_type, name, entry)
        json_array_append(list, entry);
    return list;
}

/* ---- pods ---- */

/* Marks the indexes of "0,2-4" in `ret`[count]; indexes beyond `count` are ignored. */
static void parse_indexes(const char *text, bool *ret, size_t count)
{
    char *end;
    for (; *text >= '0' && *text <= '9'; text = end + (*end == ',')) {
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < count; i++)
            ret[i] = true;
    }
}

static const char *format_indexes(struct het_arena *arena, const bool *marks,
                                  size_t count)
{
    size_t size = count * (sizeof "65536," - 1) + 1, length = 0;
    char *text = HET_ARENA_ARRAY(arena, char, size);
    text[0] = '\0';
    for (size_t i = 0, end; i < count; i = end + 1) {
        for (end = i; end < count && marks[end]; end++)
            ;
        if (end == i)
            continue;
        const char *comma = length ? "," : "";
        length += (size_t)(end == i + 1
                               ? snprintf(text + length, size - length, "%s%zu", comma, i)
                               : snprintf(text + length, size - length, "%s%zu-%zu",
                                          comma, i, end - 1));
    }
    return text;
}

void status_find_succeeded(const struct snapshot *snapshot,
                           const struct snapshot_plan *plan, bool *ret)
{
    const json_t *present = json_object_get(snapshot->job, "status");
    memset(ret, 0, plan->rank_node_count * sizeof *ret);
    if (object_integer(present, "plan.revision", 0) == plan->generation)
        parse_indexes(object_text(present, "pods.succeededIndexes"), ret,
                      plan->rank_node_count);
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (pod->generation == plan->generation && pod->phase == POD_SUCCEEDED &&
            pod->index < (int64_t)plan->rank_node_count)
            ret[pod->index] = true;
    }
}

static json_t *pods_json(struct het_arena *arena, const struct snapshot *snapshot,
                         const struct snapshot_plan *plan)
{
    size_t places = plan ? plan->rank_node_count : 0, succeeded = 0;
    bool *marks = HET_ARENA_ARRAY(arena, bool, places);
    if (plan)
        status_find_succeeded(snapshot, plan, marks);
    for (size_t i = 0; i < places; i++)
        succeeded += marks[i];
    const char *indexes = format_indexes(arena, marks, places);
    int64_t counts[POD_FAILED + 1] = { 0 }, gated = 0;
    for (size_t i = 0; i < snapshot->pod_count; i++) {
        const struct snapshot_pod *pod = &snapshot->pods[i];
        if (!plan || pod->generation != plan->generation)
            continue;
        *(pod->is_gated || pod->has_other_gates ? &gated : &counts[pod->phase]) += 1;
    }
    json_t *json = json_object();
    set_integer(json, "desired", plan ? (int64_t)plan->rank_node_count : 0);
    set_integer(json, "gated", gated);
    set_integer(json, "pending", counts[POD_PENDING]);
    set_integer(json, "running", counts[POD_RUNNING]);
    set_integer(json, "succeeded", (int64_t)succeeded);
    if (*indexes)
        json_object_set_new(json, "succeededIndexes", json_string(indexes));
    set_integer(json, "failed", counts[POD_FAILED]);
    return json;
}

/* ---- times that are set once ---- */

static bool is_set(const struct status_facts *facts, const char *type)
{
    const struct status_condition *condition = status_find(facts, type);
    return condition && !strcmp(condition->status, "True");
}

/* Keeps `key` of the present status, or sets it to now if `happened`. */
static void set_time_once(json_t *status, const json_t *present, const char *key,
                          bool happened, int64_t wall_ms)
{
    const char *before = object_text(present, key);
    if (*before)
        json_object_set_new(status, key, json_string(before));
    else if (happened)
        json_object_set_new(status, key, time_json(wall_ms));
}

/* Without the time; a new reference. */
static json_t *decision_json(const struct status_decision *decision)
{
    json_t *json = json_pack("{s:s, s:s, s:s}", "trigger", decision->trigger, "result",
                             decision->result, "reason", decision->reason);
    if (!decision->candidate_hash)
        return json;
    const int64_t most_s = (int64_t)1 << 31;
    double percent = floor(decision->gain * 100);
    json_object_set_new(json, "candidateHash", json_string(decision->candidate_hash));
    set_integer(json, "currentIterationMilliseconds", milliseconds(decision->current_s));
    set_integer(json, "candidateIterationMilliseconds",
                milliseconds(decision->candidate_s));
    set_integer(json, "gainPercent",
                percent >= -100 ? bounded(percent, MAX_GAIN_PERCENT) : -100);
    set_integer(json, "costSeconds", bounded(ceil(decision->cost_s), most_s));
    set_integer(json, "benefitSeconds",
                decision->benefit_s > 0 ? bounded(decision->benefit_s, most_s) : 0);
    set_integer(json, "horizonSeconds", bounded(decision->horizon_s, most_s));
    return json;
}

bool status_decision_is_new(const json_t *job, const struct status_decision *decision)
{
    json_auto_t *json = decision_json(decision);
    json_auto_t *before = json_copy(object_at(job, "status.lastReplanDecision"));
    json_object_del(before, "time");
    return !before || !json_equal(before, json);
}

static void set_decision(json_t *status, const json_t *present,
                         const struct snapshot *snapshot,
                         const struct status_facts *facts)
{
    json_t *before = json_object_get(present, "lastReplanDecision");
    if (!facts->decision.trigger) {
        if (before)
            json_object_set(status, "lastReplanDecision", before);
        return;
    }
    json_t *decision = decision_json(&facts->decision);
    if (status_decision_is_new(snapshot->job, &facts->decision))
        json_object_set_new(decision, "time", time_json(snapshot->wall_ms));
    else
        json_object_set(decision, "time", json_object_get(before, "time"));
    json_object_set_new(status, "lastReplanDecision", decision);
}

/* ---- a plan that is shown only ---- */

const char *status_candidate(struct het_arena *arena, const struct snapshot *snapshot,
                             const struct status_facts *facts)
{
    const struct job_spec *spec = &snapshot->spec;
    if (facts->candidate_is_dropped ||
        (!spec->is_plan_only && spec->replan_mode != REPLAN_MANUAL))
        return "";
    const char *hash = facts->candidate
                           ? het_plan_json_hash(arena, facts->candidate)
                           : object_text(snapshot->job, "status.candidate.hash");
    return facts->plan && !strcmp(hash, facts->plan->hash) ? "" : hash;
}

static json_t *candidate_json(struct het_arena *arena, const struct snapshot *snapshot,
                              const struct het_plan *plan, const char *hash)
{
    return json_pack(
        "{s:s, s:{s:s}, s:s, s:s, s:o, s:o, s:o}", "hash", hash, "configMapRef", "name",
        plan_object_candidate_name(arena, snapshot->spec.name), "algorithm",
        plan->algorithm, "summary", het_render_summary(arena, plan), "parallelism",
        parallelism_json(plan), "predicted", predicted_json(&plan->predicted),
        "computedAt", time_json(snapshot->wall_ms));
}

static void set_candidate(struct het_arena *arena, json_t *status, const json_t *present,
                          const struct snapshot *snapshot,
                          const struct status_facts *facts)
{
    json_t *before = json_object_get(present, "candidate");
    const char *hash = status_candidate(arena, snapshot, facts);
    if (!*hash)
        return;
    if (!strcmp(object_text(before, "hash"), hash))
        json_object_set(status, "candidate", before);
    else
        json_object_set_new(status, "candidate",
                            candidate_json(arena, snapshot, facts->candidate, hash));
}

/* Sets how long the last generation took from its decision until all its pods were
 * ready. */
static void set_last_start(json_t *status, const json_t *present,
                           const struct snapshot *snapshot,
                           const struct status_facts *facts)
{
    json_t *before = json_object_get(present, "lastStart");
    int64_t measured = json_integer_value(json_object_get(before, "revision"));
    const struct snapshot_plan *plan = facts->plan;
    int64_t took_ms = plan ? snapshot->wall_ms - plan->created_wall_ms : -1;
    if (plan && is_set(facts, "Running") && measured != plan->generation && took_ms >= 0)
        json_object_set_new(
            status, "lastStart",
            json_pack("{s:I, s:I}", "revision", (json_int_t)plan->generation, "seconds",
                      (json_int_t)bounded((double)took_ms / 1000, INT32_MAX)));
    else if (before)
        json_object_set(status, "lastStart", before);
}

/* When the last counted restart was decided: with its plan. */
static void set_restart_time(json_t *status, const json_t *present,
                             const struct snapshot_plan *plan)
{
    const char *computed = kube_annotation(plan->config_map, ANNOTATION_COMPUTED_AT);
    const char *trigger = kube_annotation(plan->config_map, ANNOTATION_TRIGGER);
    const char *before = object_text(present, "lastRestartTime");
    const char *time = strcmp(trigger, "PodFailed") ? before : computed;
    if (*time)
        json_object_set_new(status, "lastRestartTime", json_string(time));
}

static void set_demands(json_t *status, const json_t *present,
                        const struct status_facts *facts)
{
    json_t *before = json_object_get(present, "unmetDemand");
    if (facts->demands_stand && before) {
        json_object_set(status, "unmetDemand", before);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < facts->demand_count; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:I}", "gpuType", facts->demands[i].type, "gpus",
                      (json_int_t)bounded((double)facts->demands[i].gpus, MAX_GPUS)));
    if (facts->demand_count)
        json_object_set_new(status, "unmetDemand", list);
    else
        json_decref(list);
}

/* As of when the plan was made: what others hold by now is no news of this job. */
static void set_unused(json_t *status, const json_t *present,
                       const struct status_facts *facts)
{
    const struct het_plan *plan = facts->plan ? facts->plan->plan : NULL;
    json_t *before = json_object_get(present, "unusedGPUs");
    struct het_unused_list list = { 0 };
    if (facts->unused) {
        list = *facts->unused;
    } else if (!plan || facts->unused_stand) {
        if (before)
            json_object_set(status, "unusedGPUs", before);
        return;
    } else {
        list.groups = (struct het_unused *)(uintptr_t)plan->unused;
        list.count = plan->unused_count;
    }
    if (list.count)
        json_object_set_new(status, "unusedGPUs",
                            het_unused_json(list.groups, list.count));
}

/* ---- the state, in a word ---- */

/* The first of them that holds; `reason` NULL: any. */
static const struct {
    const char *name, *condition, *status, *reason;
} states[STATUS_STATES] = {
    { "Failed", "Failed", "True", NULL },
    { "Complete", "Complete", "True", NULL },
    { "Suspended", "Suspended", "True", NULL },
    { "Running", "Running", "True", NULL },
    { "NotAccepted", "Accepted", "False", NULL },
    { "Planned", "PlanFeasible", "True", "PlanOnly" },
    { "Restarting", "Running", "False", "RestartBackOff" },
    { "Planning", "PlanFeasible", "Unknown", "Planning" },
    { "Measuring", "PlanFeasible", "Unknown", "Measuring" },
    { "Queued", "QuotaReserved", "False", NULL },
    { "Starting", "PlanFeasible", "True", NULL },
    { "Pending", NULL, NULL, NULL },
};

const char *status_state(const json_t *status)
{
    const json_t *conditions = json_object_get(status, "conditions");
    size_t i = 0;
    for (; states[i].condition; i++) {
        const json_t *held = object_find(conditions, "type", states[i].condition);
        if (!strcmp(object_text(held, "status"), states[i].status) &&
            (!states[i].reason || !strcmp(object_text(held, "reason"), states[i].reason)))
            break;
    }
    return states[i].name;
}

const char *status_state_name(size_t i)
{
    return states[i].name;
}

json_t *status_build(struct het_arena *arena, const struct snapshot *snapshot,
                     const struct status_facts *facts)
{
    const struct snapshot_plan *plan = facts->plan;
    const json_t *present = json_object_get(snapshot->job, "status");
    json_t *status = json_object();
    set_integer(status, "observedGeneration", snapshot->spec.generation);
    json_object_set_new(status, "conditions", conditions_json(snapshot, facts));
    json_object_set_new(status, "pods", pods_json(arena, snapshot, plan));
    /* As in batch/v1: the clock of activeDeadlineSeconds starts anew after a pause. */
    if (!is_set(facts, "Suspended"))
        set_time_once(status, present, "startTime", is_set(facts, "Running"),
                      snapshot->wall_ms);
    set_time_once(status, present, "completionTime",
                  is_set(facts, "Complete") || is_set(facts, "Failed"),
                  snapshot->wall_ms);
    set_decision(status, present, snapshot, facts);
    set_candidate(arena, status, present, snapshot, facts);
    set_last_start(status, present, snapshot, facts);
    set_demands(status, present, facts);
    set_unused(status, present, facts);

    int64_t gpus = 0;
    if (plan) {
        json_object_set_new(status, "plan", plan_json(arena, plan));
        if (facts->holds_gpus)
            json_object_set_new(status, "allocation", allocation_json(plan, &gpus));
        set_restart_time(status, present, plan);
        if (plan->replans) {
            const char *computed =
                kube_annotation(plan->config_map, ANNOTATION_COMPUTED_AT);
            bool same = json_integer_value(json_object_get(present, "replans")) ==
                        plan->replans;
            const char *before = object_text(present, "lastReplanTime");
            json_object_set_new(status, "lastReplanTime",
                                json_string(same && *before ? before : computed));
        }
    }
    set_integer(status, "allocatedGPUs", gpus);
    set_integer(status, "restarts", plan ? plan->restarts : 0);
    set_integer(status, "replans", plan ? plan->replans : 0);
    json_object_set_new(status, "state", json_string(status_state(status)));
    return status;
}

json_t *status_recount(struct het_arena *arena, const struct snapshot *snapshot,
                       const struct status_facts *facts)
{
    json_t *status = json_deep_copy(json_object_get(snapshot->job, "status"));
    json_t *pods = json_object_get(status, "pods");
    /* The spec may still be changed; it is seen, and nothing follows. */
    set_integer(status, "observedGeneration", snapshot->spec.generation);
    if (facts->condition_count)
        json_object_set_new(status, "conditions", conditions_json(snapshot, facts));
    /* What has ended stays counted when somebody tidies the pods away. */
    if (json_integer_value(json_object_get(pods, "pending")) ||
        json_integer_value(json_object_get(pods, "running")))
        json_object_set_new(status, "pods",
                            pods_json(arena, snapshot,
                                      snapshot->plan_count ? &snapshot->plans[0] : NULL));
    return status;
}

/* A copy of `status` whose lists with keys are objects by key: the server may keep them
 * in another order. */
static json_t *without_order(const json_t *status)
{
    static const struct {
        const char *list, *key;
    } lists[] = { { "conditions", "type" },
                  { "allocation", "gpuType" },
                  { "unmetDemand", "gpuType" } };
    json_t *copy = json_copy((json_t *)(uintptr_t)status);
    for (size_t i = 0; copy && i < sizeof lists / sizeof *lists; i++) {
        json_t *by_key = json_object();
        size_t k;
        json_t *entry;
        json_array_foreach (json_object_get(status, lists[i].list), k, entry)
            json_object_set(by_key, object_text(entry, lists[i].key), entry);
        json_object_set_new(copy, lists[i].list, by_key);
    }
    return copy;
}

bool status_differs(const json_t *job, const json_t *status)
{
    json_auto_t *present = without_order(json_object_get(job, "status"));
    json_auto_t *wanted = without_order(status);
    return !present || !json_equal(present, wanted);
}

/* ---- what may wait ---- */

/* Whether a condition that turns from `before` ("" : not there) to `after` is a step on
 * the way, which the next write may tell. */
static bool is_step(const char *type, const char *before, const char *after)
{
    bool is_new = !*before,
         was_or_is_true = !strcmp(before, "True") || !strcmp(after, "True");
    if (!strcmp(type, "Placed"))
        return true;
    if (!strcmp(type, "PlanFeasible"))
        return strcmp(before, "False") != 0 && strcmp(after, "False") != 0;
    if (!strcmp(type, "Running") || !strcmp(type, "PlanOutdated"))
        return !was_or_is_true;
    if (!strcmp(type, "Accepted"))
        return is_new && !strcmp(after, "True");
    return is_new && (!strcmp(type, "Complete") || !strcmp(type, "Failed")) &&
           !strcmp(after, "False");
}

static bool conditions_may_wait(const json_t *job, const json_t *status)
{
    size_t i;
    json_t *condition;
    json_array_foreach (json_object_get(status, "conditions"), i, condition) {
        const char *type = object_text(condition, "type");
        const char *before = object_condition(job, type);
        const char *after = object_text(condition, "status");
        if (strcmp(before, after) != 0 && !is_step(type, before, after))
            return false;
    }
    return true;
}

/* A copy without what steps on the way change. */
static json_t *without_steps(const json_t *status)
{
    static const char *const steps[] = {
        "conditions",        "state", "plan", "allocation", "allocatedGPUs", "unusedGPUs",
        "observedGeneration"
    };
    static const char *const of_pods[] = { "desired", "gated", "pending", "running" };
    json_t *rest = json_copy((json_t *)(uintptr_t)status);
    json_t *pods = json_copy(json_object_get(status, "pods"));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        json_object_del(rest, steps[i]);
    for (size_t i = 0; i < sizeof of_pods / sizeof *of_pods; i++)
        json_object_del(pods, of_pods[i]);
    json_object_set_new(rest, "pods", pods);
    return rest;
}

/* What a job has before its first status. */
static json_t *first_status(void)
{
    return json_pack("{s:{s:i, s:i}, s:i, s:i}", "pods", "succeeded", 0, "failed", 0,
                     "restarts", 0, "replans", 0);
}

int64_t status_patience_ms(const json_t *job, const json_t *status)
{
    const json_t *present = json_object_get(job, "status");
    json_t *seen = json_object_get(present, "observedGeneration");
    if (seen && !json_equal(seen, json_object_get(status, "observedGeneration")))
        return 0; /* somebody changed the spec and waits for the word on it */
    json_auto_t *none = first_status();
    json_auto_t *before = without_steps(seen ? present : none);
    json_auto_t *after = without_steps(status);
    return json_equal(before, after) && conditions_may_wait(job, status)
               ? STATUS_PROGRESS_MS
               : 0;
}
