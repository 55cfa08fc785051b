#include "planner/render/people/explanation.h"

#include "planner/base/text_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct page {
    struct het_writer writer;
    const struct het_problem *problem;
    const struct het_plan *plan;
    const struct het_explanation *explanation;
    int width;
};

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A sentence, broken into lines. */
static void put_sentence(struct page *page, const char *text)
{
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column && column + 1 + length > page->width) {
            het_writer_put(&page->writer, "\n");
            column = 0;
        }
        het_writer_put(&page->writer, "%s%.*s", column ? " " : "", length, text);
        column += length + (column > 0);
        text += length;
        text += *text == ' ';
    }
    het_writer_put(&page->writer, "\n");
}

/* ---- what bounds the step ---- */

static const struct het_explain_stage *find_stage(const struct page *page,
                                                  uint32_t pipeline, uint32_t stage)
{
    const struct het_explanation *e = page->explanation;
    for (size_t i = 0; i < e->stage_count; i++)
        if (e->stages[i].pipeline == pipeline && e->stages[i].stage == stage)
            return &e->stages[i];
    return NULL;
}

/* Types and degrees of a stage: "8 x A100", "2 x V100 tp 2 + 1 x A100". */
static void describe_stage(char *text, size_t size, const struct het_stage *stage)
{
    size_t used = 0;
    *text = '\0';
    for (size_t r = 0; r < stage->replica_count && used < size;) {
        const struct het_replica *replica = &stage->replicas[r];
        size_t end = r;
        while (end < stage->replica_count && stage->replicas[end].tp == replica->tp &&
               !strcmp(stage->replicas[end].type_name, replica->type_name))
            end++;
        int put = snprintf(text + used, size - used, "%s%zu x %.40s", r ? " + " : "",
                           end - r, replica->type_name);
        used += (size_t)put;
        if (replica->tp > 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, " tp %u", replica->tp);
        r = end;
    }
}

static void put_bounds(struct page *page, struct het_arena *arena)
{
    const struct het_explanation *e = page->explanation;
    const struct het_cost *cost = &e->cost;
    char stage_text[160];
    const struct het_pipeline *slowest = &page->plan->pipelines[cost->slowest_pipeline];
    describe_stage(stage_text, sizeof stage_text,
                   &slowest->stages[cost->bottleneck_stage]);
    put_sentence(
        page,
        het_arena_printf(
            arena,
            "A step takes %.4g s: %.0f %% of it the pipelines, %.0f %% the gradients, "
            "%.0f %% the optimizer.",
            cost->iteration_s, percent(cost->pipeline_s, cost->iteration_s),
            percent(cost->sync_s, cost->iteration_s),
            percent(cost->step_s, cost->iteration_s)));
    put_sentence(
        page, het_arena_printf(
                  arena,
                  "Pipeline %u ends last (%u micro-batches, %zu stage%s); its stage %u "
                  "(%s) is busy longest.",
                  cost->slowest_pipeline, slowest->microbatch_count, slowest->stage_count,
                  plural(slowest->stage_count), cost->bottleneck_stage, stage_text));
    const struct het_cluster *cluster = page->problem->cluster;
    if (e->busiest_uplink < cluster->node_count)
        put_sentence(
            page,
            het_arena_printf(arena,
                             "The gradients wait for the uplink of node "
                             "%s (%.3g GB/s).",
                             cluster->nodes[e->busiest_uplink].name,
                             cluster->nodes[e->busiest_uplink].uplink_bytes_per_s / 1e9));
    else if (e->busiest_uplink != HET_UNBOUND)
        put_sentence(page,
                     het_arena_printf(
                         arena, "The gradients wait for the uplink of %s.",
                         cluster->domains[e->busiest_uplink - cluster->node_count].name));
    else if (cost->sync_s > 0)
        put_sentence(page, "The gradients wait for the GPUs' own links.");
    if (e->lower_bound_s > 0)
        put_sentence(page, het_arena_printf(arena,
                                            "No plan is faster than %.4g s; this one is "
                                            "%.1f %% above that.",
                                            e->lower_bound_s,
                                            percent(cost->iteration_s - e->lower_bound_s,
                                                    e->lower_bound_s)));
}

/* ---- stages ---- */

static void put_move(struct page *page, const struct het_explain_move *move)
{
    double now_s = page->explanation->cost.iteration_s;
    if (!move->is_possible)
        het_writer_put(&page->writer, " %8s", "-");
    else if (!move->fits)
        het_writer_put(&page->writer, " %8s", "no room");
    else
        het_writer_put(&page->writer, " %+7.1f%%",
                       percent(move->iteration_s - now_s, now_s));
}

static void put_stages(struct page *page)
{
    const struct het_explanation *e = page->explanation;
    het_writer_put(&page->writer,
                   "\nStages (one line for pipelines that are alike; busy: share of the\n"
                   "bottleneck; memory: the fullest GPU; the last two: the step, if the "
                   "stage\nhad a layer more or less)\n\n");
    het_writer_put(&page->writer, "%6s %5s  %-18s %7s %8s %4s %6s %8s %8s\n", "pipe",
                   "stage", "GPUs", "layers", "s a mb.", "busy", "memory", "+1 layer",
                   "-1 layer");
    for (size_t i = 0; i < e->stage_count; i++) {
        const struct het_explain_stage *stage = &e->stages[i];
        const struct het_stage *of =
            &page->plan->pipelines[stage->pipeline].stages[stage->stage];
        char gpus[160], name[32] = "";
        describe_stage(gpus, sizeof gpus, of);
        if (!stage->stage)
            snprintf(name, sizeof name, stage->pipeline_count > 1 ? "%u x%u" : "%u",
                     stage->pipeline, stage->pipeline_count);
        het_writer_put(&page->writer, "%6s %5u  %-18.40s %3u-%-3u %8.4g %3.0f%% %5.0f%%",
                       name, stage->stage, gpus, of->first_layer,
                       of->first_layer + of->layer_count - 1, stage->compute_s,
                       100 * stage->busy_share,
                       percent((double)stage->peak_bytes, (double)stage->capacity_bytes));
        put_move(page, &stage->take_from_next);
        put_move(page, &stage->give_to_next);
        het_writer_put(&page->writer, "\n");
    }
}

/* A sentence for every cut. */
static const char *why(struct het_arena *arena, const struct page *page,
                       const struct het_explain_stage *stage)
{
    double now_s = page->explanation->cost.iteration_s;
    const struct het_explain_move *take = &stage->take_from_next;
    const struct het_explain_move *give = &stage->give_to_next;
    const struct {
        const struct het_explain_move *move;
        const char *what;
    } sides[] = { { take, "one layer more" }, { give, "one layer less" } };
    const char *text = "";
    for (size_t i = 0; i < 2; i++) {
        const struct het_explain_move *move = sides[i].move;
        const char *because =
            !move->is_possible ? "cannot be had"
            : !move->fits      ? "does not fit"
            : move->iteration_s > now_s * (1 + 1e-9)
                ? het_arena_printf(arena, "would make the step %.1f %% longer",
                                   percent(move->iteration_s - now_s, now_s))
            : move->iteration_s < now_s * (1 - 1e-9)
                ? het_arena_printf(arena, "would make the step %.1f %% shorter",
                                   percent(now_s - move->iteration_s, now_s))
                : "would change nothing";
        text = het_arena_printf(arena, "%s%s%s %s", text, i ? ", " : "", sides[i].what,
                                because);
    }
    return het_arena_printf(
        arena, "Pipeline %u ends stage %u behind layer %u: %s.", stage->pipeline,
        stage->stage,
        page->plan->pipelines[stage->pipeline].stages[stage->stage].first_layer +
            page->plan->pipelines[stage->pipeline].stages[stage->stage].layer_count - 1,
        text);
}

static void put_reasons(struct page *page, struct het_arena *arena)
{
    const struct het_explanation *e = page->explanation;
    het_writer_put(&page->writer, "\n");
    for (size_t i = 0; i < e->stage_count; i++) {
        const struct het_explain_stage *stage = &e->stages[i];
        uint32_t last = (uint32_t)page->plan->pipelines[stage->pipeline].stage_count - 1;
        if (stage->stage < last)
            put_sentence(page, why(arena, page, stage));
    }
    const struct het_explain_stage *bottleneck =
        find_stage(page, e->cost.slowest_pipeline, e->cost.bottleneck_stage);
    if (bottleneck && bottleneck->send_s > 0)
        put_sentence(
            page, het_arena_printf(arena,
                                   "Of what keeps the bottleneck busy, %.0f %% is "
                                   "sending and receiving.",
                                   percent(bottleneck->send_s,
                                           bottleneck->send_s + bottleneck->compute_s)));
}

/* ---- searches ---- */

static void put_freedoms(struct page *page)
{
    const struct het_explain_freedom *freedoms = page->explanation->freedoms;
    double before_s = HUGE_VAL;
    het_writer_put(&page->writer, "\nWhat each freedom of plans brings\n");
    for (size_t i = 0; i < HET_EXPLAIN_FREEDOMS; i++) {
        double seconds = freedoms[i].iteration_s;
        het_writer_put(&page->writer, "  %-58s", freedoms[i].text);
        if (isinf(seconds))
            het_writer_put(&page->writer, " no plan\n");
        else if (isinf(before_s))
            het_writer_put(&page->writer, " %9.4g s\n", seconds);
        else
            het_writer_put(&page->writer, " %9.4g s  %+5.1f%%\n", seconds,
                           percent(seconds - before_s, before_s));
        before_s = seconds;
    }
}

static void put_more(struct page *page)
{
    const struct het_explanation *e = page->explanation;
    het_writer_put(&page->writer, "\nWhat one more node would bring\n");
    for (size_t i = 0; i < e->more_count; i++) {
        const struct het_explain_more *more = &e->more[i];
        het_writer_put(
            &page->writer, "  %2u %-20.20s %9.4g s  %+5.1f%%\n", more->gpus,
            page->problem->cluster->types[more->type].name, more->iteration_s,
            percent(more->iteration_s - e->cost.iteration_s, e->cost.iteration_s));
    }
}

char *het_render_explanation(struct het_arena *arena, const struct het_problem *problem,
                             const struct het_plan *plan,
                             const struct het_explanation *explanation, int width)
{
    struct page page = {
        .problem = problem, .plan = plan, .explanation = explanation, .width = width
    };
    struct het_arena *scratch = het_arena_new();
    put_bounds(&page, scratch);
    put_stages(&page);
    put_reasons(&page, scratch);
    if (explanation->freedoms)
        put_freedoms(&page);
    if (explanation->more_count)
        put_more(&page);
    het_arena_free(scratch);
    return het_writer_take(&page.writer, arena);
}
