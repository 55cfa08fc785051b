/* runtime_files.h - a plan as one training runtime reads it: files and arguments. What
 * every process start needs besides (rendezvous, ranks) is torchrun.h's. */
#ifndef HET_RENDER_RUNTIME_RUNTIME_FILES_H
#define HET_RENDER_RUNTIME_RUNTIME_FILES_H

#include "planner/model/runtime.h"
#include "planner/render/runtime/torchrun.h"

struct het_file {
    const char *name, *text;
};

#define HET_RENDER_MAX_FILES 4u

struct het_rendering {
    struct het_file files[HET_RENDER_MAX_FILES];
    size_t file_count;
    /* For the program in every pod, one word each; no blanks inside. Files are named with
     * the directory of the job's plan_path. */
    const char **arguments;
    size_t argument_count, argument_capacity;
    /* [rank-node][2]: further ones of a pod; NULL: none */
    const char *(*node_arguments)[2];
    size_t node_count;
};

/* Renders `plan` for `runtime`; everything is in `arena`. The plan must have come from
 * het_runtime_express. Files and grammars are described in docs/planner.md, Runtimes.
 * The generic runtime gets nothing but plan.json and the environment. */
struct het_rendering het_render(struct het_arena *arena,
                                const struct het_runtime *runtime,
                                const struct het_plan *plan,
                                const struct het_render_job *job);

/* The words for the program in the pod of rank-node `node`; returns how many. */
size_t het_rendering_arguments(struct het_arena *arena,
                               const struct het_rendering *rendering, size_t node,
                               const char ***ret);

/* As het_render_torchrun, and HETPLAN_ARGUMENTS: those words, parted by single blanks;
 * not set where there are none. */
size_t het_rendering_environment(struct het_arena *arena,
                                 const struct het_rendering *rendering,
                                 const struct het_plan *plan,
                                 const struct het_render_job *job, size_t node,
                                 struct het_env **ret);

/* For the renderers. */
/* Where the pod finds file `name`: beside the job's plan.json. */
const char *het_rendering_path(struct het_arena *arena, const struct het_render_job *job,
                               const char *name);
void het_rendering_add_file(struct het_rendering *rendering, const char *name,
                            const char *text);
void het_rendering_add_argument(struct het_arena *arena, struct het_rendering *rendering,
                                const char *argument);
void het_rendering_add_number(struct het_arena *arena, struct het_rendering *rendering,
                              const char *argument, uint64_t value);
/* `argument` and each of the words of `words`, which are parted by single blanks. */
void het_rendering_add_words(struct het_arena *arena, struct het_rendering *rendering,
                             const char *argument, const char *words);
/* --bf16 or --fp16, --micro-batch-size, --global-batch-size, and recomputation as
 * Megatron-LM's arguments say them. */
void het_rendering_add_training(struct het_arena *arena, struct het_rendering *rendering,
                                const struct het_plan *plan);

/* Recomputation of all stages alike, by itself. */
void het_rendering_add_recompute(struct het_arena *arena, struct het_rendering *rendering,
                                 enum het_recompute recompute);

/* One function a runtime, each in its own file. */
typedef void het_renderer(struct het_arena *arena, const struct het_plan *plan,
                          const struct het_render_job *job,
                          struct het_rendering *rendering);
het_renderer het_render_megatron, het_render_flagscale, het_render_sailor,
    het_render_deepspeed, het_render_torchtitan;

#endif
