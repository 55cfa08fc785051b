#include "planner/render/table.h"

#include <stdio.h>
#include <string.h>

#define SUMMARY_LENGTH 120
#define MAX_TYPES      16

struct type_use {
    const char *name;
    uint32_t gpus, tp_least, tp_most;
};

/* GPUs and tensor-parallel degrees by type, in order of appearance. */
static size_t count_types(const struct het_plan *plan, struct type_use *uses)
{
    size_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            for (size_t r = 0; r < plan->pipelines[p].stages[s].replica_count; r++) {
                const struct het_replica *replica =
                    &plan->pipelines[p].stages[s].replicas[r];
                size_t i = 0;
                while (i < count && strcmp(uses[i].name, replica->type_name))
                    i++;
                if (i == MAX_TYPES)
                    continue;
                if (i == count)
                    uses[count++] =
                        (struct type_use){ replica->type_name, 0, replica->tp, 0 };
                uses[i].gpus += replica->tp;
                if (replica->tp < uses[i].tp_least)
                    uses[i].tp_least = replica->tp;
                if (replica->tp > uses[i].tp_most)
                    uses[i].tp_most = replica->tp;
            }
    return count;
}

const char *het_render_summary(struct het_arena *arena, const struct het_plan *plan)
{
    struct type_use uses[MAX_TYPES];
    size_t count = count_types(plan, uses);
    const char *text = "";
    for (size_t i = 0; i < count; i++) {
        const struct type_use *use = &uses[i];
        const char *range =
            use->tp_least == use->tp_most
                ? het_arena_printf(arena, "%u", use->tp_most)
                : het_arena_printf(arena, "%u-%u", use->tp_least, use->tp_most);
        text =
            het_arena_printf(arena, "%s%sx%u:tp%s ", text, use->name, use->gpus, range);
    }
    size_t deepest = 0, widest = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        size_t width = 0;
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            if (plan->pipelines[p].stages[s].replica_count > width)
                width = plan->pipelines[p].stages[s].replica_count;
        widest += width;
        if (plan->pipelines[p].stage_count > deepest)
            deepest = plan->pipelines[p].stage_count;
    }
    text = het_arena_printf(arena, "%spp%zu dp%zu", text, deepest, widest);
    if (strlen(text) <= SUMMARY_LENGTH)
        return text;
    return het_arena_printf(arena, "%.*s...", SUMMARY_LENGTH - 3, text);
}
