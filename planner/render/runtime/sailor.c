#include "planner/base/text_writer.h"
#include "planner/render/runtime/rank_grid.h"
#include "planner/render/runtime/runtime_files.h"

/* [stage][replica] -> ranks of its tensor-parallel group. */
static const char *write_groups(struct het_arena *arena,
                                const struct het_rank_grid *lanes)
{
    struct het_writer writer = { 0 };
    for (size_t s = 0; s < lanes->stage_count; s++) {
        for (size_t lane = 0; lane < lanes->lane_count; lane++) {
            const struct het_rank_grid_replica *at = het_rank_grid_at(lanes, lane, s);
            het_writer_put(&writer, "%s", lane ? "," : s ? ",\n [" : "[[");
            for (uint32_t i = 0; i < at->replica->tp; i++)
                het_writer_put(&writer, "%s%u", i ? "," : "[", at->ranks[i]);
            het_writer_put(&writer, "]");
        }
        het_writer_put(&writer, "]");
    }
    het_writer_put(&writer, "]\n");
    return het_writer_take(&writer, arena);
}

/* The list counts the embedding and the head. */
static const char *write_training(struct het_arena *arena, const struct het_plan *plan)
{
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    het_writer_put(&writer,
                   "{\"global_batch_size\":%u,\"gradient_accumulation_steps\":%u,"
                   "\"layers_per_stage\":[",
                   plan->global_batch, pipeline->microbatch_count);
    for (size_t s = 0; s < pipeline->stage_count; s++)
        het_writer_put(&writer, "%s%u", s ? "," : "", pipeline->stages[s].layer_count);
    het_writer_put(&writer, "],\"micro_batch_size\":%u}\n",
                   pipeline->stages[0].replicas[0].microbatch_size);
    return het_writer_take(&writer, arena);
}

void het_render_sailor(struct het_arena *arena, const struct het_plan *plan,
                       const struct het_render_job *job, struct het_rendering *rendering)
{
    struct het_rank_grid lanes = het_rank_grid_of(arena, plan);
    het_rendering_add_file(rendering, "dist_config.json", write_groups(arena, &lanes));
    het_rendering_add_file(rendering, "training.json", write_training(arena, plan));
    het_rendering_add_argument(arena, rendering, "--distributed-config-file");
    het_rendering_add_argument(arena, rendering,
                               het_rendering_path(arena, job, "dist_config.json"));
    het_rendering_add_number(arena, rendering, "--pipeline-model-parallel-size",
                             lanes.stage_count);
    het_rendering_add_training(arena, rendering, plan);
}
