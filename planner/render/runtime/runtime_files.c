#include "planner/render/runtime/runtime_files.h"

#include "planner/base/text_writer.h"

#include <assert.h>
#include <string.h>

void het_rendering_add_file(struct het_rendering *rendering, const char *name,
                            const char *text)
{
    assert(rendering->file_count < HET_RENDER_MAX_FILES);
    rendering->files[rendering->file_count++] = (struct het_file){ name, text };
}

void het_rendering_add_argument(struct het_arena *arena, struct het_rendering *rendering,
                                const char *argument)
{
    if (rendering->argument_count == rendering->argument_capacity) {
        size_t capacity = rendering->argument_capacity ? 2 * rendering->argument_count
                                                       : 32;
        const char **grown = HET_ARENA_ARRAY(arena, const char *, capacity);
        if (rendering->argument_count)
            memcpy(grown, rendering->arguments,
                   rendering->argument_count * sizeof *grown);
        rendering->arguments = grown;
        rendering->argument_capacity = capacity;
    }
    rendering->arguments[rendering->argument_count++] = argument;
}

void het_rendering_add_number(struct het_arena *arena, struct het_rendering *rendering,
                              const char *argument, uint64_t value)
{
    het_rendering_add_argument(arena, rendering, argument);
    het_rendering_add_argument(
        arena, rendering, het_arena_printf(arena, "%llu", (unsigned long long)value));
}

void het_rendering_add_words(struct het_arena *arena, struct het_rendering *rendering,
                             const char *argument, const char *words)
{
    char *rest = het_arena_strdup(arena, words), *word;
    het_rendering_add_argument(arena, rendering, argument);
    while ((word = strsep(&rest, " ")))
        het_rendering_add_argument(arena, rendering, word);
}

void het_rendering_add_recompute(struct het_arena *arena, struct het_rendering *rendering,
                                 enum het_recompute recompute)
{
    switch (recompute) {
    case HET_RECOMPUTE_NONE:
        return;
    case HET_RECOMPUTE_SELECTIVE:
        het_rendering_add_argument(arena, rendering, "--recompute-granularity");
        het_rendering_add_argument(arena, rendering, "selective");
        return;
    case HET_RECOMPUTE_FULL:
        het_rendering_add_argument(arena, rendering, "--recompute-granularity");
        het_rendering_add_argument(arena, rendering, "full");
        het_rendering_add_argument(arena, rendering, "--recompute-method");
        het_rendering_add_argument(arena, rendering, "uniform");
        het_rendering_add_number(arena, rendering, "--recompute-num-layers", 1);
        return;
    }
}

void het_rendering_add_training(struct het_arena *arena, struct het_rendering *rendering,
                                const struct het_plan *plan)
{
    const struct het_stage *stage = &plan->pipelines[0].stages[0];
    het_rendering_add_number(arena, rendering, "--micro-batch-size",
                             stage->replicas[0].microbatch_size);
    het_rendering_add_number(arena, rendering, "--global-batch-size", plan->global_batch);
    if (plan->precision != HET_FP32)
        het_rendering_add_argument(arena, rendering,
                                   plan->precision == HET_BF16 ? "--bf16" : "--fp16");
    bool differs = het_runtime_freedoms_of(plan) & 1u << HET_RECOMPUTE_PER_STAGE;
    if (!differs)
        het_rendering_add_recompute(arena, rendering, stage->recompute);
}

const char *het_rendering_path(struct het_arena *arena, const struct het_render_job *job,
                               const char *name)
{
    const char *slash = strrchr(job->plan_path, '/');
    int length = slash ? (int)(slash + 1 - job->plan_path) : 0;
    return het_arena_printf(arena, "%.*s%s", length, job->plan_path, name);
}

size_t het_rendering_arguments(struct het_arena *arena,
                               const struct het_rendering *rendering, size_t node,
                               const char ***ret)
{
    size_t count = rendering->argument_count;
    const char **words = HET_ARENA_ARRAY(arena, const char *, count + 2);
    if (count)
        memcpy(words, rendering->arguments, count * sizeof *words);
    for (size_t i = 0; rendering->node_arguments && i < 2; i++)
        words[count++] = rendering->node_arguments[node][i];
    *ret = words;
    return count;
}

size_t het_rendering_environment(struct het_arena *arena,
                                 const struct het_rendering *rendering,
                                 const struct het_plan *plan,
                                 const struct het_render_job *job, size_t node,
                                 struct het_env **ret)
{
    struct het_env *variables;
    const char **words;
    size_t count = het_render_torchrun(arena, plan, job, node, &variables);
    size_t word_count = het_rendering_arguments(arena, rendering, node, &words);
    *ret = variables;
    if (!count || !word_count)
        return count;
    *ret = HET_ARENA_ARRAY(arena, struct het_env, count + 1);
    memcpy(*ret, variables, count * sizeof *variables);
    struct het_writer writer = { 0 };
    for (size_t i = 0; i < word_count; i++)
        het_writer_put(&writer, "%s%s", i ? " " : "", words[i]);
    (*ret)[count] =
        (struct het_env){ "HETPLAN_ARGUMENTS", het_writer_take(&writer, arena) };
    return count + 1;
}

struct het_rendering het_render(struct het_arena *arena,
                                const struct het_runtime *runtime,
                                const struct het_plan *plan,
                                const struct het_render_job *job)
{
    static const struct {
        const char *runtime;
        het_renderer *render;
    } renderers[] = {
        { "megatron", het_render_megatron },     { "flagscale", het_render_flagscale },
        { "sailor", het_render_sailor },         { "deepspeed", het_render_deepspeed },
        { "torchtitan", het_render_torchtitan },
    };
    struct het_rendering rendering = { 0 };
    for (size_t i = 0; runtime && i < sizeof renderers / sizeof *renderers; i++)
        if (!strcmp(renderers[i].runtime, runtime->name))
            renderers[i].render(arena, plan, job, &rendering);
    return rendering;
}
