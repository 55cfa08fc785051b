#include "planner/render/lanes.h"
#include "planner/render/rendering.h"
#include "planner/render/writer.h"

/* A stage of Hetu is one entry of --hetero_layers; each lane is a pipeline. */
static const char *write_layers(struct het_arena *arena, const struct het_plan *plan,
                                const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    for (size_t lane = 0; lane < lanes->lane_count; lane++) {
        const struct het_pipeline *pipeline = lanes->pipelines[lane];
        for (size_t s = 0; s < pipeline->stage_count; s++)
            het_writer_put(&writer, "%s%u",
                           s      ? ","
                           : lane ? "],["
                                  : "[[",
                           het_lanes_blocks(plan, &pipeline->stages[s]));
    }
    het_writer_put(&writer, "]]");
    return het_writer_take(&writer, arena);
}

static const char *write_counts(struct het_arena *arena, const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    for (size_t lane = 0; lane < lanes->lane_count; lane++)
        het_writer_put(&writer, "%s%u", lane ? "," : "[",
                       lanes->pipelines[lane]->microbatch_count);
    het_writer_put(&writer, "]");
    return het_writer_take(&writer, arena);
}

/* Transformer layers that a lane recomputes. */
static const char *write_recompute(struct het_arena *arena, const struct het_plan *plan,
                                   const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    for (size_t lane = 0; lane < lanes->lane_count; lane++) {
        const struct het_pipeline *pipeline = lanes->pipelines[lane];
        const char *before = lane ? "],[" : "[[";
        uint32_t block = 0;
        het_writer_put(&writer, "%s", before);
        before = "";
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            uint32_t end = block + het_lanes_blocks(plan, &pipeline->stages[s]);
            for (; block < end; block++)
                if (pipeline->stages[s].recompute == HET_RECOMPUTE_FULL) {
                    het_writer_put(&writer, "%s%u", before, block);
                    before = ",";
                }
        }
    }
    het_writer_put(&writer, "]]");
    return het_writer_take(&writer, arena);
}

/* GPUs of each stage of each lane. */
static const char *write_stage_gpus(struct het_arena *arena,
                                    const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    for (size_t lane = 0; lane < lanes->lane_count; lane++)
        for (size_t s = 0; s < lanes->pipelines[lane]->stage_count; s++)
            het_writer_put(&writer, "%s%u",
                           s      ? ","
                           : lane ? "],["
                                  : "[[",
                           het_lanes_at(lanes, lane, s)->replica->tp);
    het_writer_put(&writer, "]]");
    return het_writer_take(&writer, arena);
}

/* Hetu numbers its ranks lane by lane, stage by stage; the map says which of our ranks
 * each of them is. */
static const char *write_mapping(struct het_arena *arena, const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    uint32_t next = 0;
    for (size_t lane = 0; lane < lanes->lane_count; lane++)
        for (size_t s = 0; s < lanes->pipelines[lane]->stage_count; s++) {
            const struct het_lane_replica *at = het_lanes_at(lanes, lane, s);
            for (uint32_t i = 0; i < at->replica->tp; i++, next++)
                het_writer_put(&writer, "%s%u:%u", next ? "," : "{", next, at->ranks[i]);
        }
    het_writer_put(&writer, "}");
    return het_writer_take(&writer, arena);
}

/* The general form beneath the arguments: for each transformer layer one list of ranks a
 * lane (device_group_union). Layers -1 and the number of layers are embedding and head.
 */
static const char *write_groups(struct het_arena *arena, const struct het_plan *plan,
                                const struct het_lanes *lanes)
{
    struct het_writer writer = { 0 };
    for (uint32_t layer = 0; layer < plan->layer_count; layer++) {
        het_writer_put(&writer, "%s{\"layer\":%u,\"device_group_union\":[",
                       layer ? ",\n " : "[", layer);
        for (size_t lane = 0; lane < lanes->lane_count; lane++) {
            const struct het_pipeline *pipeline = lanes->pipelines[lane];
            size_t s = pipeline->stage_count - 1;
            while (pipeline->stages[s].first_layer > layer)
                s--;
            const struct het_lane_replica *at = het_lanes_at(lanes, lane, s);
            for (uint32_t i = 0; i < at->replica->tp; i++)
                het_writer_put(&writer, "%s%u",
                               i      ? ","
                               : lane ? ",["
                                      : "[",
                               at->ranks[i]);
            het_writer_put(&writer, "]");
        }
        het_writer_put(&writer, "]}");
    }
    het_writer_put(&writer, "]\n");
    return het_writer_take(&writer, arena);
}

void het_render_hetu(struct het_arena *arena, const struct het_plan *plan,
                     const struct het_render_job *job, struct het_rendering *rendering)
{
    (void)job;
    struct het_lanes lanes = het_lanes_of(arena, plan);
    const struct het_replica *first = het_lanes_at(&lanes, 0, 0)->replica;
    het_rendering_add_file(rendering, "device_groups.json",
                           write_groups(arena, plan, &lanes));
    het_rendering_add_argument(arena, rendering, "--hetero_pipeline");
    het_rendering_add_argument(arena, rendering, "--hetero_data");
    het_rendering_add_argument(arena, rendering, "--hetero_layers");
    het_rendering_add_argument(arena, rendering, write_layers(arena, plan, &lanes));
    het_rendering_add_argument(arena, rendering, "--hetero_stage_gpus");
    het_rendering_add_argument(arena, rendering, write_stage_gpus(arena, &lanes));
    het_rendering_add_argument(arena, rendering, "--micro_batch_num_list");
    het_rendering_add_argument(arena, rendering, write_counts(arena, &lanes));
    het_rendering_add_number(arena, rendering, "--micro_batch_size",
                             first->microbatch_size);
    het_rendering_add_number(arena, rendering, "--global_batch_size", plan->global_batch);
    het_rendering_add_argument(arena, rendering, "--rank_to_device_mapping");
    het_rendering_add_argument(arena, rendering, write_mapping(arena, &lanes));
    het_rendering_add_argument(arena, rendering, "--unused_rank");
    het_rendering_add_argument(arena, rendering, "[]");
    het_rendering_add_argument(arena, rendering, "--recompute_layers");
    het_rendering_add_argument(arena, rendering, write_recompute(arena, plan, &lanes));
    if (plan->precision != HET_FP32)
        het_rendering_add_argument(arena, rendering,
                                   plan->precision == HET_BF16 ? "--bf16" : "--fp16");
}
