#include "controller/operator/dashboard_plan.h"

#include "controller/base/strmap.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static void append_integer(json_t *list, int64_t value)
{
    json_array_append_new(list, json_integer(value));
}

/* ---- which pipelines are alike ---- */

static bool same_replica(const struct het_replica *a, const struct het_replica *b)
{
    return a->tp == b->tp && a->microbatch_size == b->microbatch_size &&
           !strcmp(a->type_name, b->type_name);
}

static bool same_stage(const struct het_stage *a, const struct het_stage *b)
{
    if (a->first_layer != b->first_layer || a->layer_count != b->layer_count ||
        a->recompute != b->recompute || a->replica_count != b->replica_count)
        return false;
    for (size_t r = 0; r < a->replica_count; r++)
        if (!same_replica(&a->replicas[r], &b->replicas[r]))
            return false;
    return true;
}

static bool same_pipeline(const struct het_pipeline *a, const struct het_pipeline *b)
{
    if (a->microbatch_count != b->microbatch_count || a->stage_count != b->stage_count)
        return false;
    for (size_t s = 0; s < a->stage_count; s++)
        if (!same_stage(&a->stages[s], &b->stages[s]))
            return false;
    return true;
}

/* ---- a stage ---- */

/* Replicas that follow each other and are alike, counted. */
static json_t *stage_gpus(const struct het_stage *stage)
{
    json_t *list = json_array();
    for (size_t r = 0, same; r < stage->replica_count; r += same) {
        const struct het_replica *replica = &stage->replicas[r];
        for (same = 1; r + same < stage->replica_count; same++)
            if (!same_replica(replica, &stage->replicas[r + same]))
                break;
        json_array_append_new(list, json_string(replica->type_name));
        append_integer(list, (int64_t)same);
        append_integer(list, replica->tp);
        append_integer(list, replica->microbatch_size);
    }
    return list;
}

static int64_t microseconds(double seconds)
{
    double us = seconds * 1e6;
    return us < 1e15 ? (int64_t)round(us) : (int64_t)1e15; /* NaN, too */
}

static json_t *stage_json(const struct het_stage *stage,
                          const struct het_stage_parts *times)
{
    static const char *const recompute[] = {
        [HET_RECOMPUTE_SELECTIVE] = "selective", [HET_RECOMPUTE_FULL] = "full"
    };
    json_t *json = json_pack("{s:[I, I], s:o}", "layers", (json_int_t)stage->first_layer,
                             (json_int_t)stage->layer_count, "gpus", stage_gpus(stage));
    if (stage->recompute != HET_RECOMPUTE_NONE)
        json_object_set_new(json, "recompute", json_string(recompute[stage->recompute]));
    if (!times)
        return json;
    json_t *us = json_array();
    append_integer(us, microseconds(times->forward_s));
    append_integer(us, microseconds(times->backward_s));
    append_integer(us, microseconds(times->send_s));
    json_object_set_new(json, "us", us);
    return json;
}

/* ---- where it is ---- */

struct places {
    json_t *list;
    int64_t node, first, count; /* not in the list yet; count 0: none */
};

static void end_run(struct places *places)
{
    if (!places->count)
        return;
    append_integer(places->list, places->node);
    append_integer(places->list, places->first);
    append_integer(places->list, places->count);
    places->count = 0;
}

static void add_gpu(struct places *places, int64_t node, int64_t gpu)
{
    if (!places->count || places->node != node || places->first + places->count != gpu) {
        end_run(places);
        places->node = node;
        places->first = gpu;
    }
    places->count++;
}

static json_t *stage_places(const struct strmap *nodes,
                            const struct het_rank_node *rank_nodes,
                            const struct het_stage *stage)
{
    struct places places = { .list = json_array() };
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        const struct het_rank_node *node = strmap_find(nodes, replica->node_name);
        for (uint32_t g = 0; node && g < replica->tp; g++)
            add_gpu(&places, node - rank_nodes, replica->gpus[g]);
    }
    end_run(&places);
    return places.list;
}

static json_t *pipeline_places(const struct strmap *nodes,
                               const struct het_rank_node *rank_nodes,
                               const struct het_pipeline *pipeline)
{
    json_t *list = json_array();
    for (size_t s = 0; s < pipeline->stage_count; s++)
        json_array_append_new(list,
                              stage_places(nodes, rank_nodes, &pipeline->stages[s]));
    return list;
}

/* ---- the whole ---- */

static json_t *lane_json(const struct het_pipeline *pipeline,
                         const struct het_stage_parts *times)
{
    json_t *stages = json_array();
    for (size_t s = 0; s < pipeline->stage_count; s++)
        json_array_append_new(stages,
                              stage_json(&pipeline->stages[s], times ? times + s : NULL));
    return json_pack("{s:I, s:o, s:[]}", "microbatches",
                     (json_int_t)pipeline->microbatch_count, "stages", stages, "at");
}

json_t *dashboard_plan_json(struct het_arena *arena, const struct het_plan *plan,
                            const struct het_stage_parts *times)
{
    struct het_rank_node *rank_nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &rank_nodes);
    struct strmap nodes = { 0 };
    json_t *names = json_array(), *lanes = json_array(), *lane = NULL;
    for (size_t i = 0; i < node_count; i++) {
        strmap_set(&nodes, rank_nodes[i].node_name, &rank_nodes[i]);
        json_array_append_new(names, json_string(rank_nodes[i].node_name));
    }
    for (size_t p = 0, stage = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        if (!p || !same_pipeline(pipeline - 1, pipeline)) {
            lane = lane_json(pipeline, times ? times + stage : NULL);
            json_array_append_new(lanes, lane);
        }
        json_array_append_new(json_object_get(lane, "at"),
                              pipeline_places(&nodes, rank_nodes, pipeline));
        stage += pipeline->stage_count;
    }
    strmap_fini(&nodes);
    return json_pack("{s:o, s:o}", "nodes", names, "lanes", lanes);
}
