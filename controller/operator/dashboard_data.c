#include "controller/operator/dashboard_data.h"

#include "controller/base/object.h"
#include "controller/base/strmap.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/children.h"
#include "controller/decision/status.h"
#include "controller/operator/dashboard_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plan's ConfigMap, which never changes, as far as it has been read. */
struct reading {
    char *uid;
    uint64_t round; /* it was there last */
    bool is_read, is_drawn;
    int64_t iteration_us, gpus;
    json_t *json; /* what "plan" says of it; NULL until it is drawn, or if it cannot be */
};

struct dashboard_data {
    struct strmap readings; /* by uid */
    uint64_t round;
    size_t bytes, drawn; /* of plans read in this round; of those, drawn */
    bool is_partial;
};

/* What one document is built with. */
struct building {
    struct dashboard_data *overview;
    const struct snapshot_sources *sources;
    struct het_arena *arena;
    struct strmap types, reasons, jobs; /* -> size_t: the position in its list */
    json_t *type_names, *reason_names;
};

struct dashboard_data *dashboard_data_new(void)
{
    return xcalloc(1, sizeof(struct dashboard_data));
}

static void free_reading(struct reading *reading)
{
    json_decref(reading->json);
    free(reading->uid);
    free(reading);
}

void dashboard_data_free(struct dashboard_data *overview)
{
    if (!overview)
        return;
    for (size_t i = 0; i < overview->readings.capacity; i++)
        if (overview->readings.slots[i].key)
            free_reading(overview->readings.slots[i].value);
    strmap_fini(&overview->readings);
    free(overview);
}

bool dashboard_data_is_partial(const struct dashboard_data *overview)
{
    return overview->is_partial;
}

/* ---- small things ---- */

static void append_text(json_t *list, const char *text)
{
    json_array_append_new(list, json_string(text));
}

static void append_integer(json_t *list, int64_t value)
{
    json_array_append_new(list, json_integer(value));
}

/* As much of a message as is shown, cut between characters. */
static json_t *message_json(const char *text)
{
    size_t length = strnlen(text, DASHBOARD_DATA_MESSAGE_BYTES + 1);
    if (length <= DASHBOARD_DATA_MESSAGE_BYTES)
        return json_string(text);
    length = DASHBOARD_DATA_MESSAGE_BYTES;
    while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return json_stringn(text, length);
}

static int64_t microseconds(double seconds)
{
    double us = seconds * 1e6;
    return us < 1e15 ? (int64_t)round(us) : 0; /* NaN, too */
}

static size_t *new_number(struct building *building, size_t value)
{
    size_t *number = HET_ARENA_ARRAY(building->arena, size_t, 1);
    *number = value;
    return number;
}

/* Position of `name` among those named so far. */
static int64_t number_of(struct building *building, struct strmap *map, json_t *names,
                         const char *name)
{
    size_t *number = strmap_find(map, name);
    if (!number) {
        number = new_number(building, json_array_size(names));
        strmap_set(map, name, number);
        append_text(names, name);
    }
    return (int64_t)*number;
}

/* ---- plans ---- */

static struct reading *find_reading(struct dashboard_data *overview, const char *uid)
{
    struct reading *reading = strmap_find(&overview->readings, uid);
    if (!reading) {
        reading = xcalloc(1, sizeof *reading);
        reading->uid = xstrdup(uid);
        strmap_set(&overview->readings, uid, reading);
    }
    reading->round = overview->round;
    return reading;
}

static void forget_readings(struct dashboard_data *overview)
{
    size_t count = 0;
    struct reading **gone =
        xreallocarray(NULL, overview->readings.count + 1, sizeof(struct reading *));
    for (size_t i = 0; i < overview->readings.capacity; i++) {
        struct reading *reading = overview->readings.slots[i].value;
        if (overview->readings.slots[i].key && reading->round != overview->round)
            gone[count++] = reading;
    }
    for (size_t i = 0; i < count; i++) {
        strmap_remove(&overview->readings, gone[i]->uid);
        free_reading(gone[i]);
    }
    free(gone);
}

/* The nodes of the plan alone, as they were for it: what is asked is what it takes. */
static void keep_plan_nodes(struct het_arena *arena, const struct het_plan *plan,
                            struct snapshot *snapshot)
{
    struct het_rank_node *ranks;
    size_t count = het_plan_rank_nodes(arena, plan, &ranks);
    struct capacity_node *nodes = HET_ARENA_ARRAY(arena, struct capacity_node, count);
    for (size_t i = 0; i < count; i++) {
        const struct capacity_node *known =
            snapshot_find_node(snapshot, ranks[i].node_name);
        bool is_same = known && !strcmp(known->type, ranks[i].type_name);
        nodes[i] = is_same ? *known
                           : (struct capacity_node){ .name = ranks[i].node_name,
                                                     .type = ranks[i].type_name };
        nodes[i].free = ranks[i].gpu_count;
    }
    snapshot->nodes = nodes;
    snapshot->node_count = count;
}

/* What its stages take, with the job's profile and limits as they are; NULL: it cannot be
 * said. */
static const struct het_stage_parts *stage_times(const struct building *building,
                                                 const json_t *job,
                                                 const struct het_plan *plan)
{
    struct het_arena *arena = building->arena;
    struct snapshot_sources sources = *building->sources;
    struct snapshot snapshot;
    sources.memo = NULL;
    if (!snapshot_take(arena, &sources, kube_namespace(job), kube_name(job), NULL,
                       &snapshot) ||
        snapshot.refused_reason || (snapshot.spec.profile_name && !snapshot.profile))
        return NULL;
    keep_plan_nodes(arena, plan, &snapshot);
    snapshot.plan_count = 0; /* nothing is moved */
    json_auto_t *document = children_question(&snapshot);
    struct het_question question;
    struct het_stage_parts *times;
    if (!document || het_question_read(arena, document, &question, NULL) < 0 ||
        het_question_stage_times(arena, &question, plan, &times, NULL) < 0)
        return NULL;
    return times;
}

/* GPUs of each type, in the order of the plan. */
static json_t *plan_types(struct het_arena *arena, const struct het_plan *plan)
{
    struct het_rank_node *nodes;
    size_t count = het_plan_rank_nodes(arena, plan, &nodes);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        int64_t gpus = 0;
        bool is_told = false;
        for (size_t k = 0; k < count && !is_told; k++) {
            bool same = !strcmp(nodes[k].type_name, nodes[i].type_name);
            is_told = same && k < i;
            gpus += same ? nodes[k].gpu_count : 0;
        }
        if (is_told)
            continue;
        append_text(list, nodes[i].type_name);
        append_integer(list, gpus);
    }
    return list;
}

static json_t *draw_plan(const struct building *building, const json_t *job,
                         const struct het_plan *plan)
{
    const struct het_prediction *predicted = &plan->predicted;
    json_t *json =
        dashboard_plan_json(building->arena, plan, stage_times(building, job, plan));
    json_t *us = json_array();
    append_integer(us, microseconds(predicted->iteration_s));
    append_integer(us, microseconds(predicted->lower_bound_s));
    append_integer(us, microseconds(predicted->pipeline_s));
    append_integer(us, microseconds(predicted->gradient_sync_s));
    append_integer(us, microseconds(predicted->optimizer_s));
    json_object_set_new(json, "us", us);
    json_object_set_new(json, "samples", json_sprintf("%.4g", predicted->samples_per_s));
    json_object_set_new(json, "estimated",
                        json_boolean(predicted->profile_origin != HET_PROFILE_MEASURED));
    json_object_set_new(json, "types", plan_types(building->arena, plan));
    json_object_set_new(json, "algorithm", json_string(plan->algorithm));
    json_object_set_new(json, "summary",
                        json_string(het_render_summary(building->arena, plan)));
    return json;
}

/* Reads the plan, if there is room for it in this round; draws it, if it is to be. */
static void read_plan(struct building *building, struct reading *reading,
                      const json_t *config_map, const json_t *job, bool draws)
{
    struct dashboard_data *overview = building->overview;
    if (reading->is_read && (reading->is_drawn || !draws))
        return;
    size_t bytes = json_string_length(
        json_object_get(json_object_get(config_map, "data"), "plan.json"));
    if ((overview->bytes && overview->bytes + bytes > DASHBOARD_DATA_PLAN_BYTES) ||
        (draws && overview->drawn == DASHBOARD_DATA_DRAWN)) {
        overview->is_partial = true;
        return;
    }
    overview->bytes += bytes;
    overview->drawn += draws;
    const struct het_plan *plan = plan_object_read(building->arena, config_map);
    reading->is_read = true;
    reading->is_drawn = draws;
    if (!plan)
        return;
    reading->iteration_us = microseconds(plan->predicted.iteration_s);
    reading->gpus = het_plan_gpu_count(plan);
    if (draws)
        reading->json = draw_plan(building, job, plan);
}

/* A job's plans, newest first. */
struct generation {
    const json_t *config_map;
    int64_t number;
    struct reading *reading;
};

static int compare_generations(const void *a, const void *b)
{
    int64_t left = ((const struct generation *)a)->number;
    int64_t right = ((const struct generation *)b)->number;
    return (left < right) - (left > right);
}

static size_t find_generations(struct building *building, const json_t *job,
                               struct generation **ret)
{
    json_t **maps;
    size_t count = store_find_owned(building->sources->store, &kube_config_map,
                                    kube_uid(job), building->arena, &maps),
           found = 0;
    struct generation *list = HET_ARENA_ARRAY(building->arena, struct generation, count);
    int64_t horizon = plan_object_horizon(job);
    for (size_t i = 0; i < count; i++) {
        int64_t number = plan_object_generation(maps[i]);
        if (number > 0 && number <= horizon && plan_object_is_of(maps[i], job))
            list[found++] =
                (struct generation){ .config_map = maps[i], .number = number };
    }
    if (found)
        qsort(list, found, sizeof *list, compare_generations);
    found = found < DASHBOARD_DATA_HISTORY ? found : DASHBOARD_DATA_HISTORY;
    for (size_t i = 0; i < found; i++)
        list[i].reading = find_reading(building->overview, kube_uid(list[i].config_map));
    *ret = list;
    return found;
}

static json_t *history_json(const struct generation *generations, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct generation *generation = &generations[i];
        const json_t *map = generation->config_map;
        const char *took = kube_annotation(map, ANNOTATION_PLANNER_MS);
        json_t *entry = json_array();
        append_integer(entry, generation->number);
        append_text(entry, kube_annotation(map, ANNOTATION_COMPUTED_AT));
        append_text(entry, kube_annotation(map, ANNOTATION_TRIGGER));
        append_integer(entry,
                       *took >= '0' && *took <= '9' ? strtoll(took, NULL, 10) : -1);
        append_integer(entry, generation->reading->iteration_us);
        append_integer(entry, generation->reading->gpus);
        append_text(entry, kube_annotation(map, ANNOTATION_RETIRED));
        append_text(entry, kube_annotation(map, ANNOTATION_RETIRED_AT));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *plan_json(const struct generation *generation)
{
    const json_t *map = generation->config_map;
    json_t *json = generation->reading->json ? json_copy(generation->reading->json)
                                             : json_object();
    json_object_set_new(json, "revision", json_integer(generation->number));
    json_object_set_new(json, "hash",
                        json_string(kube_annotation(map, ANNOTATION_PLAN_HASH)));
    json_object_set_new(json, "trigger",
                        json_string(kube_annotation(map, ANNOTATION_TRIGGER)));
    json_object_set_new(json, "time",
                        json_string(kube_annotation(map, ANNOTATION_COMPUTED_AT)));
    return json;
}

/* ---- jobs ---- */

static json_t *conditions_json(const json_t *job)
{
    const json_t *conditions = object_at(job, "status.conditions");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(conditions) && i < STATUS_MAX_CONDITIONS;
         i++) {
        const json_t *condition = json_array_get(conditions, i);
        json_t *entry = json_array();
        append_text(entry, object_text(condition, "type"));
        append_text(entry, object_text(condition, "status"));
        append_text(entry, object_text(condition, "reason"));
        json_array_append_new(entry, message_json(object_text(condition, "message")));
        append_text(entry, object_text(condition, "lastTransitionTime"));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *demand_json(const json_t *job)
{
    const json_t *demands = object_at(job, "status.unmetDemand");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(demands) && i < STATUS_MAX_DEMANDS; i++) {
        const json_t *demand = json_array_get(demands, i);
        append_text(list, object_text(demand, "gpuType"));
        append_integer(list, object_integer(demand, "gpus", 0));
    }
    return list;
}

static void set_known(json_t *json, const char *key, json_t *value)
{
    if (value)
        json_object_set(json, key, value);
}

/* Of the plan that waits for its approval, what is not the plan itself. */
static json_t *candidate_json(const json_t *job)
{
    const json_t *candidate = object_at(job, "status.candidate");
    if (!candidate)
        return NULL;
    json_t *json = json_object();
    set_known(json, "hash", object_at(candidate, "hash"));
    set_known(json, "summary", object_at(candidate, "summary"));
    set_known(json, "predicted", object_at(candidate, "predicted"));
    return json;
}

static json_t *job_json(const json_t *job, const struct generation *generations,
                        size_t count)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:[I, I], s:s, s:o, s:o, s:o, s:o*}",
                  "namespace", kube_namespace(job), "name", kube_name(job), "state",
                  status_state(json_object_get(job, "status")), "created",
                  object_text(job, "metadata.creationTimestamp"), "gpus",
                  (json_int_t)object_integer(job, "status.allocatedGPUs", 0), "limits",
                  (json_int_t)object_integer(job, "spec.resources.minGPUs", 1),
                  (json_int_t)object_integer(job, "spec.resources.maxGPUs", 0),
                  "algorithm", object_text(job, "spec.planner.algorithm"), "conditions",
                  conditions_json(job), "demand", demand_json(job), "history",
                  history_json(generations, count), "candidate", candidate_json(job));
    set_known(json, "pods", object_at(job, "status.pods"));
    set_known(json, "decision", object_at(job, "status.lastReplanDecision"));
    /* A plan that was stopped for good holds nothing and is history. */
    if (count && !*kube_annotation(generations[0].config_map, ANNOTATION_RETIRED))
        json_object_set_new(json, "plan", plan_json(&generations[0]));
    return json;
}

/* What is drawn is read before what is only told of, so that each round shows more. */
static json_t *jobs_json(struct building *building)
{
    const struct store *store = building->sources->store;
    size_t count = store_count(store, &kube_job);
    count = count < DASHBOARD_DATA_JOBS ? count : DASHBOARD_DATA_JOBS;
    struct generation **generations =
        HET_ARENA_ARRAY(building->arena, struct generation *, count);
    size_t *counts = HET_ARENA_ARRAY(building->arena, size_t, count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_t *job = store_at(store, &kube_job, i);
        counts[i] = find_generations(building, job, &generations[i]);
        if (counts[i])
            read_plan(building, generations[i][0].reading, generations[i][0].config_map,
                      job, true);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *job = store_at(store, &kube_job, i);
        const char *key = het_arena_printf(building->arena, "%s/%s", kube_namespace(job),
                                           kube_uid(job));
        strmap_set(&building->jobs, key, new_number(building, i));
        for (size_t k = 1; k < counts[i]; k++)
            read_plan(building, generations[i][k].reading, generations[i][k].config_map,
                      job, false);
        json_array_append_new(list, job_json(job, generations[i], counts[i]));
    }
    return list;
}

/* ---- nodes ---- */

static json_t *node_json(struct building *building, const struct capacity_place *place)
{
    const char *why = place->is_there ? place->unusable : "Gone";
    json_t *json = json_array();
    append_text(json, place->name);
    append_integer(json, *place->type ? number_of(building, &building->types,
                                                  building->type_names, place->type)
                                      : -1);
    append_integer(json, place->allocatable);
    append_integer(
        json,
        why ? number_of(building, &building->reasons, building->reason_names, why) : -1);
    append_integer(json, place->foreign);
    for (size_t i = 0; i < place->use_count; i++) {
        const size_t *number = strmap_find(&building->jobs, place->uses[i].job);
        append_integer(json, number ? (int64_t)*number : -1);
        append_integer(json, place->uses[i].gpus);
    }
    return json;
}

static json_t *nodes_json(struct building *building, size_t *ret_left)
{
    struct capacity_place *places;
    size_t count = capacity_places(building->sources->capacity, building->arena, &places);
    size_t shown = count < DASHBOARD_DATA_NODES ? count : DASHBOARD_DATA_NODES;
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++)
        json_array_append_new(list, node_json(building, &places[i]));
    *ret_left = count - shown;
    return list;
}

char *dashboard_data_build(struct dashboard_data *overview,
                           const struct snapshot_sources *sources, size_t *ret_length)
{
    struct building building = { .overview = overview,
                                 .sources = sources,
                                 .arena = het_arena_new(),
                                 .type_names = json_array(),
                                 .reason_names = json_array() };
    overview->round++;
    overview->bytes = overview->drawn = 0;
    overview->is_partial = false;
    json_t *jobs = jobs_json(&building);
    size_t left, more = store_count(sources->store, &kube_job) - json_array_size(jobs);
    json_t *nodes = nodes_json(&building, &left);
    json_auto_t *json = json_pack("{s:i, s:o, s:o, s:o, s:o, s:[I, I]}", "version", 1,
                                  "nodes", nodes, "types", building.type_names, "reasons",
                                  building.reason_names, "jobs", jobs, "left",
                                  (json_int_t)left, (json_int_t)more);
    char *text = json_dumps(json, JSON_COMPACT);
    forget_readings(overview);
    strmap_fini(&building.types);
    strmap_fini(&building.reasons);
    strmap_fini(&building.jobs);
    het_arena_free(building.arena);
    *ret_length = strlen(text);
    return text;
}
