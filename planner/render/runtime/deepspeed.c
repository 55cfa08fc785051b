#include "planner/base/text_writer.h"
#include "planner/render/runtime/rank_grid.h"
#include "planner/render/runtime/runtime_files.h"

static const char *write_settings(struct het_arena *arena, const struct het_plan *plan)
{
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    het_writer_put(&writer,
                   "{\"gradient_accumulation_steps\":%u,\"train_batch_size\":%u,"
                   "\"train_micro_batch_size_per_gpu\":%u",
                   pipeline->microbatch_count, plan->global_batch,
                   pipeline->stages[0].replicas[0].microbatch_size);
    if (plan->precision != HET_FP32)
        het_writer_put(&writer, ",\"%s\":{\"enabled\":true}",
                       het_precision_name(plan->precision));
    if (plan->optimizer == HET_ADAM_DISTRIBUTED)
        het_writer_put(&writer, ",\"zero_optimization\":{\"stage\":1}");
    het_writer_put(&writer, "}\n");
    return het_writer_take(&writer, arena);
}

void het_render_deepspeed(struct het_arena *arena, const struct het_plan *plan,
                          const struct het_render_job *job,
                          struct het_rendering *rendering)
{
    struct het_rank_grid lanes = het_rank_grid_of(arena, plan);
    het_rendering_add_file(rendering, "ds_config.json", write_settings(arena, plan));
    het_rendering_add_file(rendering, "hostfile", het_render_hostfile(arena, plan, job));
    het_rendering_add_argument(arena, rendering, "--deepspeed");
    het_rendering_add_argument(arena, rendering, "--deepspeed_config");
    het_rendering_add_argument(arena, rendering,
                               het_rendering_path(arena, job, "ds_config.json"));
    het_rendering_add_number(arena, rendering, "--tensor-model-parallel-size",
                             het_rank_grid_at(&lanes, 0, 0)->replica->tp);
    het_rendering_add_number(arena, rendering, "--pipeline-model-parallel-size",
                             lanes.stage_count);
    het_rendering_add_training(arena, rendering, plan);
}
