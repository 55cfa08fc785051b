#include "planner/base/text_writer.h"
#include "planner/render/runtime/rank_grid.h"
#include "planner/render/runtime/runtime_files.h"

#include <string.h>

/* A mesh: consecutive stages of one GPU type, tensor-parallel and data-parallel degree.
 */
struct mesh {
    size_t first_stage, stage_count;
    size_t dp;
    uint32_t tp;
};

/* The replicas of a stage over all pipelines, which are equal but for their GPUs. */
static size_t replicas_of(const struct het_plan *plan, size_t stage)
{
    size_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        count += plan->pipelines[p].stages[stage].replica_count;
    return count;
}

static size_t find_meshes(struct het_arena *arena, const struct het_plan *plan,
                          struct mesh **ret)
{
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    struct mesh *meshes = HET_ARENA_ARRAY(arena, struct mesh, pipeline->stage_count);
    size_t count = 0;
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        size_t dp = replicas_of(plan, s);
        uint32_t tp = pipeline->stages[s].replicas[0].tp;
        if (!count || meshes[count - 1].dp != dp || meshes[count - 1].tp != tp ||
            strcmp(pipeline->stages[s].replicas[0].type_name,
                   pipeline->stages[s - 1].replicas[0].type_name) != 0)
            meshes[count++] = (struct mesh){ .first_stage = s, .dp = dp, .tp = tp };
        meshes[count - 1].stage_count++;
    }
    *ret = meshes;
    return count;
}

/* FlagScale sorts ranks by the place of their node's device type in its list, so each
 * mesh gets a type name of its own: the GPU type, a dash, and the mesh's number. */
static const char *mesh_name(struct het_arena *arena, const struct het_plan *plan,
                             const struct mesh *meshes, size_t m)
{
    const struct het_stage *stage = &plan->pipelines[0].stages[meshes[m].first_stage];
    char *name = het_arena_printf(arena, "%s-m%zu", stage->replicas[0].type_name, m);
    for (char *c = name; (c = strpbrk(c, " \t"));)
        *c = '_';
    return name;
}

/* The mesh of rank `rank`. */
static size_t mesh_of_rank(const struct mesh *meshes, size_t count, uint64_t rank)
{
    uint64_t end = 0;
    for (size_t m = 0; m < count; m++) {
        end += (uint64_t)meshes[m].tp * meshes[m].dp * meshes[m].stage_count;
        if (rank < end)
            return m;
    }
    return count - 1;
}

static void name_nodes(struct het_arena *arena, const struct het_plan *plan,
                       const struct mesh *meshes, size_t count,
                       struct het_rendering *rendering)
{
    struct het_rank_node *nodes;
    rendering->node_count = het_plan_rank_nodes(arena, plan, &nodes);
    rendering->node_arguments =
        het_arena_array(arena, rendering->node_count, sizeof *rendering->node_arguments);
    for (size_t n = 0; n < rendering->node_count; n++) {
        size_t m = mesh_of_rank(meshes, count, nodes[n].rank_offset);
        rendering->node_arguments[n][0] = "--hetero-current-device-type";
        rendering->node_arguments[n][1] = mesh_name(arena, plan, meshes, m);
    }
}

/* As het_render_hostfile, with the names of the meshes: FlagScale's runner takes a node's
 * current device type from here. */
static const char *write_hostfile(struct het_arena *arena, const struct het_plan *plan,
                                  const struct mesh *meshes, size_t count,
                                  const struct het_render_job *job)
{
    struct het_writer writer = { 0 };
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &nodes);
    for (size_t n = 0; n < node_count; n++)
        het_writer_put(&writer, "%s slots=%u type=%s\n", het_render_host(arena, job, n),
                       nodes[n].gpu_count,
                       mesh_name(arena, plan, meshes,
                                 mesh_of_rank(meshes, count, nodes[n].rank_offset)));
    return het_writer_take(&writer, arena);
}

/* The hetero section of FlagScale's train.system settings. */
static const char *write_settings(struct het_arena *arena, const struct het_plan *plan,
                                  const struct mesh *meshes, size_t count)
{
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    het_writer_put(&writer,
                   "system:\n  tensor_model_parallel_size: %u\n"
                   "  pipeline_model_parallel_size: %zu\n",
                   meshes[0].tp, pipeline->stage_count);
    het_writer_put(&writer, "  hetero:\n    enable_hetero: true\n"
                            "    hetero_process_meshes: [");
    for (size_t m = 0; m < count; m++)
        het_writer_put(&writer, "%s%u, 1, 1, %zu, %zu", m ? ", " : "", meshes[m].tp,
                       meshes[m].dp, meshes[m].stage_count);
    het_writer_put(&writer, "]\n    hetero_device_types: [");
    for (size_t m = 0; m < count; m++) {
        het_writer_put(&writer, "%s", m ? ", " : "");
        het_writer_put_quoted(&writer, mesh_name(arena, plan, meshes, m));
    }
    het_writer_put(&writer, "]\n    hetero_pipeline_layer_split: [");
    for (size_t s = 0; s < pipeline->stage_count; s++)
        het_writer_put(&writer, "%s%u", s ? ", " : "",
                       het_rank_grid_blocks(plan, &pipeline->stages[s]));
    het_writer_put(&writer, "]\n    standalone_embedding_stage: false\n");
    return het_writer_take(&writer, arena);
}

/* One word "[stages,micro-batches,value]" for each stage. */
static void add_recompute_words(struct het_arena *arena, const struct het_plan *plan,
                                struct het_rendering *rendering, const char *argument,
                                uint32_t value)
{
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    het_rendering_add_argument(arena, rendering, argument);
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        bool is_full = pipeline->stages[s].recompute == HET_RECOMPUTE_FULL;
        het_rendering_add_argument(arena, rendering,
                                   het_arena_printf(arena, "[1,%u,%u]",
                                                    pipeline->microbatch_count,
                                                    is_full ? value : 0));
    }
}

/* Stage by stage; FlagScale wants full recomputation to be on then, of which the lists
 * take it away. */
static void add_stage_recompute(struct het_arena *arena, const struct het_plan *plan,
                                struct het_rendering *rendering)
{
    if (!(het_runtime_freedoms_of(plan) & 1u << HET_RECOMPUTE_PER_STAGE))
        return;
    het_rendering_add_recompute(arena, rendering, HET_RECOMPUTE_FULL);
    add_recompute_words(arena, plan, rendering,
                        "--recompute-granularity-per-stage-micro-batch", 1);
    add_recompute_words(arena, plan, rendering,
                        "--recompute-method-per-stage-micro-batch", 0);
    add_recompute_words(arena, plan, rendering,
                        "--recompute-num-layers-per-stage-micro-batch", 1);
}

/* Lists as one argument of words parted by blanks would be: each number is a word. */
static const char *write_list(struct het_arena *arena, const struct het_plan *plan,
                              const struct mesh *meshes, size_t count, bool of_layers)
{
    struct het_writer writer = { 0 };
    const struct het_pipeline *pipeline = &plan->pipelines[0];
    for (size_t s = 0; of_layers && s < pipeline->stage_count; s++)
        het_writer_put(&writer, "%s%u", s ? " " : "",
                       het_rank_grid_blocks(plan, &pipeline->stages[s]));
    for (size_t m = 0; !of_layers && m < count; m++)
        het_writer_put(&writer, "%s%u 1 1 %zu %zu", m ? " " : "", meshes[m].tp,
                       meshes[m].dp, meshes[m].stage_count);
    return het_writer_take(&writer, arena);
}

void het_render_flagscale(struct het_arena *arena, const struct het_plan *plan,
                          const struct het_render_job *job,
                          struct het_rendering *rendering)
{
    struct mesh *meshes;
    size_t count = find_meshes(arena, plan, &meshes);
    het_rendering_add_file(rendering, "hetero.yaml",
                           write_settings(arena, plan, meshes, count));
    het_rendering_add_file(rendering, "hostfile",
                           write_hostfile(arena, plan, meshes, count, job));
    het_rendering_add_number(arena, rendering, "--tensor-model-parallel-size",
                             meshes[0].tp);
    het_rendering_add_number(arena, rendering, "--pipeline-model-parallel-size",
                             plan->pipelines[0].stage_count);
    het_rendering_add_argument(arena, rendering, "--enable-hetero");
    het_rendering_add_words(arena, rendering, "--hetero-process-meshes",
                            write_list(arena, plan, meshes, count, false));
    het_rendering_add_argument(arena, rendering, "--hetero-device-types");
    for (size_t m = 0; m < count; m++)
        het_rendering_add_argument(arena, rendering, mesh_name(arena, plan, meshes, m));
    het_rendering_add_words(arena, rendering, "--hetero-pipeline-layer-split",
                            write_list(arena, plan, meshes, count, true));
    het_rendering_add_training(arena, rendering, plan);
    add_stage_recompute(arena, plan, rendering);
    if (plan->optimizer == HET_ADAM_DISTRIBUTED)
        het_rendering_add_argument(arena, rendering, "--use-distributed-optimizer");
    name_nodes(arena, plan, meshes, count, rendering);
}
