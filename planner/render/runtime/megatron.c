#include "planner/base/text_writer.h"
#include "planner/render/runtime/rank_grid.h"
#include "planner/render/runtime/runtime_files.h"

/* --pipeline-model-parallel-layout: a stage is E (embedding), t (a transformer layer,
 * t*n for n) and L (loss); stages are parted by |. Not to be expanded by a shell. */
static const char *write_layout(struct het_arena *arena, const struct het_plan *plan)
{
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        const struct het_stage *stage = &pipeline->stages[s];
        uint32_t blocks = het_rank_grid_blocks(plan, stage);
        het_writer_put(&writer, "%s%s", s ? "|" : "", stage->first_layer ? "" : "E");
        if (blocks)
            het_writer_put(&writer, blocks > 1 ? "t*%u" : "t", blocks);
        if (stage->first_layer + stage->layer_count == plan->layer_count)
            het_writer_put(&writer, "L");
    }
    return het_writer_take(&writer, arena);
}

/* Whether ranks go through the stages of a lane before the next lane. */
static bool is_lane_major(const struct het_rank_grid *lanes)
{
    if (lanes->stage_count < 2 || lanes->lane_count < 2)
        return false;
    const struct het_rank_grid_replica *first = het_rank_grid_at(lanes, 0, 0);
    return het_rank_grid_at(lanes, 1, 0)->ranks[0] !=
           first->ranks[0] + first->replica->tp;
}

void het_render_megatron(struct het_arena *arena, const struct het_plan *plan,
                         const struct het_render_job *job,
                         struct het_rendering *rendering)
{
    (void)job;
    struct het_rank_grid lanes = het_rank_grid_of(arena, plan);
    het_rendering_add_number(arena, rendering, "--tensor-model-parallel-size",
                             het_rank_grid_at(&lanes, 0, 0)->replica->tp);
    het_rendering_add_number(arena, rendering, "--pipeline-model-parallel-size",
                             lanes.stage_count);
    if (lanes.stage_count > 1) {
        het_rendering_add_argument(arena, rendering, "--pipeline-model-parallel-layout");
        het_rendering_add_argument(arena, rendering, write_layout(arena, plan));
    }
    if (is_lane_major(&lanes))
        het_rendering_add_argument(arena, rendering, "--use-tp-pp-dp-mapping");
    het_rendering_add_training(arena, rendering, plan);
    if (plan->optimizer == HET_ADAM_DISTRIBUTED) {
        het_rendering_add_argument(arena, rendering, "--use-distributed-optimizer");
        het_rendering_add_argument(arena, rendering,
                                   "--dist-ckpt-optim-fully-reshardable");
    }
    het_rendering_add_argument(arena, rendering, "--ckpt-format");
    het_rendering_add_argument(arena, rendering, "torch_dist");
}
