#include "planner/cost/memory.h"

#include <math.h>
#include <stdbool.h>

/* Whether the profile's measured state is that of the workload. */
static bool has_measured_state(const struct het_problem *problem,
                               const struct het_layer_bytes *bytes)
{
    return bytes->state && problem->profile->precision == problem->workload->precision &&
           problem->profile->optimizer == problem->workload->optimizer;
}

static double sum_layers(const double *prefix, uint32_t first, uint32_t count)
{
    return prefix[first + count] - prefix[first];
}

static double state_bytes(const struct het_problem *problem,
                          const struct het_layer_bytes *bytes,
                          const struct het_memory_question *question)
{
    if (has_measured_state(problem, bytes))
        return sum_layers(bytes->state, question->first_layer, question->layer_count);
    return sum_layers(bytes->parameters, question->first_layer, question->layer_count) *
           het_workload_state_bytes(problem->workload, question->holders);
}

/* What the state may come to with what is kept in reserve. */
static double reserved_bytes(const struct het_problem *problem,
                             const struct het_layer_bytes *bytes,
                             const struct het_memory_question *question)
{
    const struct het_workload *workload = problem->workload;
    double state = state_bytes(problem, bytes, question);
    if (!(workload->state_reserve_bytes > 0))
        return state;
    double parameters =
        sum_layers(bytes->parameters, question->first_layer, question->layer_count);
    return fmax(state,
                parameters * (het_workload_state_bytes(workload, question->holders) +
                              workload->state_reserve_bytes));
}

/* Of one sample. */
static double largest_layer_bytes(const struct het_layer_bytes *bytes,
                                  const struct het_memory_question *question)
{
    const double *activations = bytes->activations + question->first_layer;
    double largest = 0;
    for (uint32_t l = 0; l < question->layer_count; l++)
        largest = fmax(largest, activations[l + 1] - activations[l]);
    return largest;
}

/* What is needed only while a layer runs. */
static double passing_bytes(const struct het_layer_bytes *bytes,
                            const struct het_memory_question *question)
{
    if (bytes->workspace_bytes > 0)
        return bytes->workspace_bytes;
    return HET_MEMORY_BACKWARD_BATCHES * question->samples *
           largest_layer_bytes(bytes, question);
}

/* What is kept for the backward pass. */
static double kept_bytes(const struct het_problem *problem,
                         const struct het_layer_bytes *bytes,
                         const struct het_memory_question *question)
{
    uint32_t first = question->first_layer, end = first + question->layer_count;
    bool is_selective = question->recompute == HET_RECOMPUTE_SELECTIVE &&
                        bytes->selective_activations;
    const double *kept = is_selective ? bytes->selective_activations : bytes->activations;
    if (question->recompute != HET_RECOMPUTE_FULL)
        return sum_layers(kept, first, question->layer_count) * question->samples *
               question->in_flight;
    double inputs = 0;
    for (uint32_t l = first; l < end; l++)
        inputs += l ? problem->profile->boundary_bytes[l - 1] : 0;
    return (inputs * question->in_flight + largest_layer_bytes(bytes, question)) *
           question->samples;
}

static double activation_bytes(const struct het_problem *problem,
                               const struct het_layer_bytes *bytes,
                               const struct het_memory_question *question)
{
    return kept_bytes(problem, bytes, question) + passing_bytes(bytes, question);
}

double het_memory_replica_bytes(const struct het_problem *problem,
                                const struct het_memory_question *question)
{
    const struct het_layer_bytes *bytes =
        het_profile_bytes(problem->profile, question->tp);
    if (!bytes)
        return HUGE_VAL;
    return reserved_bytes(problem, bytes, question) +
           activation_bytes(problem, bytes, question) +
           (double)problem->cluster->types[question->type].workspace_bytes;
}

double het_memory_usable_bytes(const struct het_problem *problem, uint32_t type)
{
    return (double)problem->cluster->types[type].memory_bytes *
           (1 - fmax(0, problem->workload->memory_headroom));
}

/* ---- a whole plan ---- */

/* The parts of a replica's bytes, with the state of each layer by its own holders; false,
 * if the profile lacks the degree. */
struct parts {
    double state, activations, workspace;
    double reserved; /* state and reserve */
};
static bool find_parts(const struct het_problem *problem, const uint32_t *holders,
                       const struct het_memory_question *question, struct parts *ret)
{
    const struct het_layer_bytes *bytes =
        het_profile_bytes(problem->profile, question->tp);
    if (!bytes)
        return false;
    *ret = (struct parts){
        .activations = activation_bytes(problem, bytes, question),
        .workspace = (double)problem->cluster->types[question->type].workspace_bytes,
    };
    uint32_t end = question->first_layer + question->layer_count;
    for (uint32_t first = question->first_layer, next; first < end; first = next) {
        for (next = first + 1; next < end && holders[next] == holders[first];)
            next++;
        struct het_memory_question part = *question;
        part.first_layer = first;
        part.layer_count = next - first;
        part.holders = holders[first];
        ret->state += state_bytes(problem, bytes, &part);
        ret->reserved += reserved_bytes(problem, bytes, &part);
    }
    return true;
}

static uint64_t whole_bytes(double bytes)
{
    return bytes < 0x1p63 ? (uint64_t)ceil(bytes) : UINT64_MAX;
}

static void complain(struct het_arena *arena, const struct het_problem *problem,
                     const struct het_replica *replica,
                     const struct het_peak_memory *peak, double needed_bytes,
                     struct het_violations *violations)
{
    const double gib = 0x1p30;
    het_violations_add(
        arena, violations,
        "pipelines[%u].stages[%u].replicas[%u]: needs %.2f GiB a GPU, %s has %.2f GiB "
        "to use",
        peak->pipeline, peak->stage, peak->replica, needed_bytes / gib,
        problem->cluster->types[replica->type].name,
        het_memory_usable_bytes(problem, replica->type) / gib);
}

size_t het_memory_plan(struct het_arena *arena, const struct het_problem *problem,
                       const struct het_plan *plan, struct het_peak_memory **ret_peaks,
                       size_t *ret_count, struct het_violations *violations)
{
    size_t count = het_plan_replica_count(plan), filled = 0, misfits = 0;
    struct het_peak_memory *peaks = HET_ARENA_ARRAY(arena, struct het_peak_memory, count);
    uint32_t layer_count = problem->profile->layer_count;
    uint32_t *holders = HET_ARENA_ARRAY(arena, uint32_t, layer_count);
    het_plan_count_holders(plan, layer_count, holders);
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (uint32_t s = 0; s < pipeline->stage_count; s++) {
            const struct het_stage *stage = &pipeline->stages[s];
            uint32_t later = (uint32_t)pipeline->stage_count - s;
            for (uint32_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                const struct het_memory_question question = {
                    .type = replica->type,
                    .tp = replica->tp,
                    .first_layer = stage->first_layer,
                    .layer_count = stage->layer_count,
                    .samples = replica->microbatch_size,
                    .in_flight = pipeline->microbatch_count < later
                                     ? pipeline->microbatch_count
                                     : later,
                    .recompute = stage->recompute,
                };
                struct parts parts = { HUGE_VAL, 0, 0, HUGE_VAL };
                find_parts(problem, holders, &question, &parts);
                double bytes = parts.state + parts.activations + parts.workspace;
                peaks[filled] = (struct het_peak_memory){
                    .pipeline = p,
                    .stage = s,
                    .replica = r,
                    .bytes = whole_bytes(bytes),
                    .capacity_bytes = problem->cluster->types[replica->type].memory_bytes,
                    .state_bytes = whole_bytes(parts.state),
                    .activation_bytes = whole_bytes(parts.activations),
                    .workspace_bytes = whole_bytes(parts.workspace),
                };
                double needed = parts.reserved + parts.activations + parts.workspace;
                if (needed > het_memory_usable_bytes(problem, replica->type)) {
                    misfits++;
                    if (violations)
                        complain(arena, problem, replica, &peaks[filled], needed,
                                 violations);
                }
                filled++;
            }
        }
    }
    *ret_peaks = peaks;
    *ret_count = count;
    return misfits;
}
