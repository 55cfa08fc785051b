#include "planner/format/document/prediction_json.h"

#include "planner/cost/migrate.h"
#include "planner/model/runtime.h"

#include <string.h>

#define MAX_LIST 4096u

static int read_peak_memory(struct het_arena *arena, const struct het_view *predicted,
                            struct het_prediction *ret, struct het_error *err)
{
    struct het_view list = het_view_get(predicted, "peakMemoryBytes");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_PLAN_GPUS, &count, err) < 0)
        return -1;
    struct het_peak_memory *peaks = HET_ARENA_ARRAY(arena, struct het_peak_memory, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_view pipeline = het_view_get(&item, "pipeline");
        struct het_view stage = het_view_get(&item, "stage");
        struct het_view replica = het_view_get(&item, "replica");
        struct het_view bytes = het_view_get(&item, "bytes");
        struct het_view capacity = het_view_get(&item, "capacityBytes");
        if (het_view_object(&item, err) < 0 ||
            het_view_u32(&pipeline, 0, UINT32_MAX, &peaks[i].pipeline, err) < 0 ||
            het_view_u32(&stage, 0, UINT32_MAX, &peaks[i].stage, err) < 0 ||
            het_view_u32(&replica, 0, UINT32_MAX, &peaks[i].replica, err) < 0 ||
            het_view_u64(&bytes, 0, INT64_MAX, &peaks[i].bytes, err) < 0 ||
            het_view_u64(&capacity, 0, INT64_MAX, &peaks[i].capacity_bytes, err) < 0)
            return -1;
    }
    ret->peak_memory = peaks;
    ret->peak_memory_count = count;
    return 0;
}

static int read_assumed_link(struct het_arena *arena, const struct het_view *item,
                             struct het_assumed_link *ret, struct het_error *err)
{
    struct het_view type = het_view_get(item, "gpuType");
    struct het_view instance = het_view_get(item, "instanceType");
    struct het_view link = het_view_get(item, "link");
    struct het_view from = het_view_get(item, "from");
    const char *where = "", *who = "";
    *ret = (struct het_assumed_link){ .type = "" };
    if (het_view_object(item, err) < 0 ||
        het_view_name(&type, arena, &ret->type, err) < 0 ||
        het_view_name(&instance, arena, &ret->instance_type, err) < 0 ||
        het_view_name(&link, arena, &where, err) < 0 ||
        het_view_name(&from, arena, &who, err) < 0 ||
        het_view_bandwidth(item, "GBs", &ret->bytes_per_s, err) < 0)
        return -1;
    ret->leaves_node = !strcmp(where, "BetweenNodes");
    ret->source = HET_LINK_DEFAULT;
    while (ret->source > HET_LINK_STATED &&
           strcmp(het_link_source_name(ret->source), who) != 0)
        ret->source--;
    return 0;
}

static int read_assumed_links(struct het_arena *arena, const struct het_view *predicted,
                              struct het_prediction *ret, struct het_error *err)
{
    struct het_view list = het_view_get(predicted, "assumedLinks");
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_ASSUMED_LINKS, &count, err) < 0)
        return -1;
    struct het_assumed_link *links =
        HET_ARENA_ARRAY(arena, struct het_assumed_link, count);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        if (read_assumed_link(arena, &item, &links[i], err) < 0)
            return -1;
    }
    ret->assumed_links = links;
    ret->assumed_link_count = count;
    return 0;
}

/* Names that are not known are left out: a later version may know more. */
static int read_unrestricted(struct het_arena *arena, const struct het_view *predicted,
                             struct het_prediction *ret, struct het_error *err)
{
    struct het_view view = het_view_get(predicted, "unrestricted");
    struct het_view seconds = het_view_get(&view, "iterationSeconds");
    struct het_view needs = het_view_get(&view, "needs");
    size_t count = 0;
    if (het_view_object(&view, err) < 0 ||
        het_view_number(&seconds, 0, 1e300, &ret->unrestricted_s, err) < 0 ||
        het_view_array(&needs, MAX_LIST, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&needs, i);
        const char *name = "";
        if (het_view_name(&item, arena, &name, err) < 0)
            return -1;
        for (int f = 0; f < HET_FREEDOM_COUNT; f++)
            if (!strcmp(name, het_freedom_reason((enum het_freedom)f)))
                ret->unrestricted_needs |= 1u << f;
    }
    return 0;
}

static int read_origin(struct het_arena *arena, const struct het_view *predicted,
                       struct het_prediction *ret, struct het_error *err)
{
    struct het_view profile = het_view_get(predicted, "profile");
    struct het_view extrapolated = het_view_get(predicted, "extrapolated");
    const char *name = NULL;
    if (het_view_name(&profile, arena, &name, err) < 0 ||
        het_view_bool(&extrapolated, &ret->extrapolated, err) < 0)
        return -1;
    if (name && het_profile_origin_parse(name, &ret->profile_origin, err) < 0)
        return het_view_wrap(&profile, err);
    return 0;
}

int het_prediction_json_read(struct het_arena *arena, const struct het_view *plan,
                             struct het_prediction *ret, struct het_error *err)
{
    const double most = 1e300;
    struct het_view predicted = het_view_get(plan, "predicted");
    struct het_view iteration = het_view_get(&predicted, "iterationSeconds");
    struct het_view rate = het_view_get(&predicted, "samplesPerSecond");
    struct het_view bound = het_view_get(&predicted, "lowerBoundSeconds");
    struct het_view closed_form = het_view_get(&predicted, "closedFormSeconds");
    struct het_view from = het_view_get(&predicted, "fromIterationSeconds");
    struct het_view parts = het_view_get(&predicted, "parts");
    struct het_view pipeline = het_view_get(&parts, "pipelineSeconds");
    struct het_view sync = het_view_get(&parts, "gradientSyncSeconds");
    struct het_view optimizer = het_view_get(&parts, "optimizerSeconds");
    if (het_view_object(&predicted, err) < 0 ||
        het_view_number(&iteration, 0, most, &ret->iteration_s, err) < 0 ||
        het_view_number(&rate, 0, most, &ret->samples_per_s, err) < 0 ||
        het_view_number(&bound, 0, most, &ret->lower_bound_s, err) < 0 ||
        het_view_number(&closed_form, 0, most, &ret->closed_form_s, err) < 0 ||
        het_view_number(&from, 0, most, &ret->from_iteration_s, err) < 0 ||
        het_view_number(&pipeline, 0, most, &ret->pipeline_s, err) < 0 ||
        het_view_number(&sync, 0, most, &ret->gradient_sync_s, err) < 0 ||
        het_view_number(&optimizer, 0, most, &ret->optimizer_s, err) < 0 ||
        read_origin(arena, &predicted, ret, err) < 0 ||
        read_unrestricted(arena, &predicted, ret, err) < 0 ||
        read_assumed_links(arena, &predicted, ret, err) < 0)
        return -1;
    return read_peak_memory(arena, &predicted, ret, err);
}

json_t *het_prediction_json_peak_memory(const struct het_peak_memory *peaks, size_t count,
                                        bool with_parts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct het_peak_memory *peak = &peaks[i];
        json_t *item = het_json_pack(
            "{s:o, s:o, s:o, s:o, s:o}", "pipeline", het_json_u64(peak->pipeline),
            "stage", het_json_u64(peak->stage), "replica", het_json_u64(peak->replica),
            "bytes", het_json_u64(peak->bytes), "capacityBytes",
            het_json_u64(peak->capacity_bytes));
        if (with_parts) {
            json_object_set_new(item, "stateBytes", het_json_u64(peak->state_bytes));
            json_object_set_new(item, "activationBytes",
                                het_json_u64(peak->activation_bytes));
            json_object_set_new(item, "workspaceBytes",
                                het_json_u64(peak->workspace_bytes));
        }
        json_array_append_new(list, item);
    }
    return list;
}

void het_prediction_json_add_origin(json_t *object, enum het_profile_origin origin,
                                    bool extrapolated)
{
    if (origin != HET_PROFILE_MEASURED)
        json_object_set_new(object, "profile",
                            json_string(het_profile_origin_name(origin)));
    if (extrapolated)
        json_object_set_new(object, "extrapolated", json_true());
}

json_t *het_prediction_json_parts(double pipeline_s, double gradient_sync_s,
                                  double optimizer_s)
{
    return het_json_pack("{s:f, s:f, s:f}", "pipelineSeconds", pipeline_s,
                         "gradientSyncSeconds", gradient_sync_s, "optimizerSeconds",
                         optimizer_s);
}

static json_t *unrestricted_json(const struct het_prediction *predicted)
{
    json_t *needs = json_array();
    for (int f = 0; f < HET_FREEDOM_COUNT; f++)
        if (predicted->unrestricted_needs & 1u << f)
            json_array_append_new(needs,
                                  json_string(het_freedom_reason((enum het_freedom)f)));
    return het_json_pack("{s:f, s:o}", "iterationSeconds", predicted->unrestricted_s,
                         "needs", needs);
}

json_t *het_prediction_json_migration(const struct het_migration *migration)
{
    return het_json_pack("{s:f, s:f, s:{s:s}, s:{s:f, s:f, s:f, s:f}, s:o, s:o}",
                         "seconds", migration->seconds, "writeSeconds",
                         migration->write_s, "bottleneck", "resource",
                         het_migrate_resource_name(migration->bottleneck), "bytes",
                         "local", migration->local_bytes, "peer", migration->peer_bytes,
                         "cloud", migration->cloud_bytes, "state", migration->state_bytes,
                         "ranksKept", het_json_u64(migration->ranks_kept), "rankCount",
                         het_json_u64(migration->rank_count));
}

json_t *het_prediction_json_links(const struct het_assumed_link *links, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, het_json_pack("{s:s, s:s*, s:s, s:f, s:s}", "gpuType", links[i].type,
                                "instanceType", links[i].instance_type, "link",
                                links[i].leaves_node ? "BetweenNodes" : "InsideNode",
                                "GBs", links[i].bytes_per_s / 1e9, "from",
                                het_link_source_name(links[i].source)));
    return list;
}

json_t *het_prediction_json(const struct het_prediction *predicted)
{
    json_t *json = het_json_pack(
        "{s:f, s:f, s:o, s:o}", "iterationSeconds", predicted->iteration_s,
        "samplesPerSecond", predicted->samples_per_s, "parts",
        het_prediction_json_parts(predicted->pipeline_s, predicted->gradient_sync_s,
                                  predicted->optimizer_s),
        "peakMemoryBytes",
        het_prediction_json_peak_memory(predicted->peak_memory,
                                        predicted->peak_memory_count, false));
    if (predicted->lower_bound_s > 0) {
        double gap = predicted->iteration_s / predicted->lower_bound_s - 1;
        json_object_set_new(json, "lowerBoundSeconds",
                            json_real(predicted->lower_bound_s));
        json_object_set_new(json, "gap", json_real(gap));
    }
    het_prediction_json_add_origin(json, predicted->profile_origin,
                                   predicted->extrapolated);
    if (predicted->assumed_link_count)
        json_object_set_new(json, "assumedLinks",
                            het_prediction_json_links(predicted->assumed_links,
                                                      predicted->assumed_link_count));
    if (predicted->closed_form_s > 0)
        json_object_set_new(json, "closedFormSeconds",
                            json_real(predicted->closed_form_s));
    if (predicted->from_iteration_s > 0)
        json_object_set_new(json, "fromIterationSeconds",
                            json_real(predicted->from_iteration_s));
    if (predicted->migration)
        json_object_set_new(json, "migration",
                            het_prediction_json_migration(predicted->migration));
    if (predicted->unrestricted_s > 0)
        json_object_set_new(json, "unrestricted", unrestricted_json(predicted));
    return json;
}
