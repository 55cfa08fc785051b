#include "planner/base/text_writer.h"
#include "planner/render/runtime/rank_grid.h"
#include "planner/render/runtime/runtime_files.h"

/* The names of the modules of a stage, as TorchTitan's language models call them. */
static void put_modules(struct het_writer *writer, const struct het_plan *plan,
                        const struct het_stage *stage)
{
    uint32_t end = stage->first_layer + stage->layer_count;
    const char *before = "";
    for (uint32_t layer = stage->first_layer; layer < end; layer++, before = ", ") {
        het_writer_put(writer, "%s", before);
        if (!layer)
            het_writer_put(writer, "\"tok_embeddings\"");
        else if (layer + 1 == plan->layer_count)
            het_writer_put(writer, "\"norm\", \"output\"");
        else
            het_writer_put(writer, "\"layers.%u\"", layer - 1);
    }
}

static const char *write_settings(struct het_arena *arena, const struct het_plan *plan,
                                  const struct het_rank_grid *lanes)
{
    static const char *const modes[] = { [HET_RECOMPUTE_NONE] = "none",
                                         [HET_RECOMPUTE_SELECTIVE] = "selective",
                                         [HET_RECOMPUTE_FULL] = "full" };
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    const struct het_replica *first = het_rank_grid_at(lanes, 0, 0)->replica;
    bool sharded = plan->optimizer == HET_ADAM_DISTRIBUTED;
    het_writer_put(&writer, "[activation_checkpoint]\nmode = \"%s\"\n\n",
                   modes[pipeline->stages[0].recompute]);
    het_writer_put(&writer,
                   "[parallelism]\ndata_parallel_replicate_degree = %zu\n"
                   "data_parallel_shard_degree = %zu\n",
                   sharded ? 1 : lanes->lane_count, sharded ? lanes->lane_count : 1);
    het_writer_put(&writer,
                   "tensor_parallel_degree = %u\npipeline_parallel_degree = %zu\n",
                   first->tp, pipeline->stage_count);
    if (pipeline->stage_count > 1) {
        het_writer_put(&writer,
                       "pipeline_parallel_schedule = \"1F1B\"\n"
                       "pipeline_parallel_microbatch_size = %u\n"
                       "module_fqns_per_model_part = [",
                       first->microbatch_size);
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            het_writer_put(&writer, "%s[", s ? ", " : "");
            put_modules(&writer, plan, &pipeline->stages[s]);
            het_writer_put(&writer, "]");
        }
        het_writer_put(&writer, "]\n");
    }
    /* Without a pipeline, micro-batches are the steps of gradient accumulation. */
    uint64_t local = pipeline->stage_count > 1
                         ? (uint64_t)first->microbatch_size * pipeline->microbatch_count
                         : first->microbatch_size;
    het_writer_put(&writer,
                   "\n[training]\nglobal_batch_size = %u\nlocal_batch_size = %llu\n",
                   plan->global_batch, (unsigned long long)local);
    return het_writer_take(&writer, arena);
}

void het_render_torchtitan(struct het_arena *arena, const struct het_plan *plan,
                           const struct het_render_job *job,
                           struct het_rendering *rendering)
{
    struct het_rank_grid lanes = het_rank_grid_of(arena, plan);
    het_rendering_add_file(rendering, "torchtitan.toml",
                           write_settings(arena, plan, &lanes));
    het_rendering_add_argument(arena, rendering, "--job.config_file");
    het_rendering_add_argument(arena, rendering,
                               het_rendering_path(arena, job, "torchtitan.toml"));
}
