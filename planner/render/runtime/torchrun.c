#include "planner/render/runtime/torchrun.h"

#include <string.h>

/* What a plan looks like if it is a grid of tp x pp x dp; all 0 if it is not. */
struct grid {
    uint32_t tp, pp, dp;
};

static struct grid find_grid(const struct het_plan *plan)
{
    const struct grid none = { 0 };
    struct grid grid = none;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        if (p && pipeline->stage_count != grid.pp)
            return none;
        grid.pp = (uint32_t)pipeline->stage_count;
        for (size_t s = 0; s < pipeline->stage_count; s++) {
            const struct het_stage *stage = &pipeline->stages[s];
            if (stage->replica_count != pipeline->stages[0].replica_count)
                return none;
            for (size_t r = 0; r < stage->replica_count; r++) {
                if (grid.tp && stage->replicas[r].tp != grid.tp)
                    return none;
                grid.tp = stage->replicas[r].tp;
            }
        }
        if (pipeline->stage_count)
            grid.dp += (uint32_t)pipeline->stages[0].replica_count;
    }
    return grid;
}

/* Room for every variable below. */
#define ENV_MAX 32

struct env_list {
    struct het_arena *arena;
    struct het_env *items;
    size_t count;
};

static void add_text(struct env_list *list, const char *name, const char *value)
{
    list->items[list->count++] =
        (struct het_env){ name, het_arena_strdup(list->arena, value ? value : "") };
}

static void add_number(struct env_list *list, const char *name, uint64_t value)
{
    list->items[list->count++] = (struct het_env){
        name, het_arena_printf(list->arena, "%llu", (unsigned long long)value)
    };
}

char *het_render_host(struct het_arena *arena, const struct het_render_job *job,
                      size_t rank_node_index)
{
    return het_arena_printf(arena, "%s-%u-%zu.%s.%s.svc", job->job, job->generation,
                            rank_node_index, job->service, job->ns);
}

/* torch reads MASTER_*, torchrun PET_*; NNODES and its like serve scripts that build
 * their own torchrun command line. */
static void add_rendezvous(struct env_list *list, const struct het_render_job *job,
                           size_t node_count, size_t node_index, uint32_t process_count)
{
    const char *master = het_render_host(list->arena, job, 0);
    add_text(list, "MASTER_ADDR", master);
    add_number(list, "MASTER_PORT", job->master_port);
    add_number(list, "NNODES", node_count);
    add_number(list, "NODE_RANK", node_index);
    add_number(list, "NPROC_PER_NODE", process_count);
    add_number(list, "PET_NNODES", node_count);
    add_number(list, "PET_NPROC_PER_NODE", process_count);
    add_number(list, "PET_NODE_RANK", node_index);
    add_text(list, "PET_MASTER_ADDR", master);
    add_number(list, "PET_MASTER_PORT", job->master_port);
    add_text(list, "PET_RDZV_BACKEND", "static");
    add_text(list, "PET_RDZV_ID",
             het_arena_printf(list->arena, "%s-g%u", job->job, job->generation));
}

static void add_grid(struct env_list *list, struct grid grid)
{
    if (!grid.tp)
        return;
    add_number(list, "TP_SIZE", grid.tp);
    add_number(list, "PP_SIZE", grid.pp);
    add_number(list, "DP_SIZE", grid.dp);
}

size_t het_render_torchrun(struct het_arena *arena, const struct het_plan *plan,
                           const struct het_render_job *job, size_t rank_node_index,
                           struct het_env **ret)
{
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &nodes);
    struct env_list list = { .arena = arena,
                             .items = HET_ARENA_ARRAY(arena, struct het_env, ENV_MAX) };
    *ret = list.items;
    if (rank_node_index >= node_count)
        return 0;
    const struct het_rank_node *node = &nodes[rank_node_index];
    const struct het_rank_node *last = &nodes[node_count - 1];

    add_rendezvous(&list, job, node_count, rank_node_index, node->gpu_count);
    add_text(&list, "HETPLAN_FILE", job->plan_path);
    add_number(&list, "HETPLAN_REVISION", job->generation);
    add_text(&list, "HETPLAN_HASH", job->plan_hash);
    add_number(&list, "HETPLAN_RANK_OFFSET", node->rank_offset);
    add_number(&list, "HETPLAN_WORLD_SIZE", last->rank_offset + last->gpu_count);
    add_text(&list, "HETPLAN_GPU_TYPE", node->type_name);
    add_number(&list, "HETPLAN_GLOBAL_BATCH_SIZE", plan->global_batch);
    if (plan->sequence_length)
        add_number(&list, "HETPLAN_SEQUENCE_LENGTH", plan->sequence_length);
    add_grid(&list, find_grid(plan));
    if (job->checkpoint_dir && *job->checkpoint_dir)
        add_text(&list, "CHECKPOINT_DIR", job->checkpoint_dir);
    return list.count;
}

bool het_render_is_reserved(const char *name)
{
    static const char *const reserved[] = {
        "MASTER_ADDR",
        "MASTER_PORT",
        "NNODES",
        "NODE_RANK",
        "NPROC_PER_NODE",
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
        "PET_RDZV_BACKEND",
        "PET_RDZV_ID",
        "TP_SIZE",
        "PP_SIZE",
        "DP_SIZE",
        "CHECKPOINT_DIR",
        /* Not ours to write, but they would override what is. */
        "PET_RDZV_ENDPOINT",
        "PET_STANDALONE",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
    };
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(name, reserved[i]))
            return true;
    return !strncmp(name, "HETPLAN_", strlen("HETPLAN_"));
}

char *het_render_hostfile(struct het_arena *arena, const struct het_plan *plan,
                          const struct het_render_job *job)
{
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(arena, plan, &nodes);
    struct het_arena *scratch = het_arena_new();
    const char **lines = HET_ARENA_ARRAY(scratch, const char *, node_count);
    size_t length = 0;
    for (size_t i = 0; i < node_count; i++) {
        lines[i] = het_arena_printf(scratch, "%s slots=%u type=%s\n",
                                    het_render_host(scratch, job, i), nodes[i].gpu_count,
                                    nodes[i].type_name);
        length += strlen(lines[i]);
    }
    char *text = het_arena_alloc(arena, length + 1), *end = text;
    for (size_t i = 0; i < node_count; i++)
        end = stpcpy(end, lines[i]);
    het_arena_free(scratch);
    return text;
}
