#include "planner/render/people/table.h"

#include "planner/cost/bound.h"
#include "planner/cost/memory.h"
#include "planner/cost/schedule.h"
#include "planner/model/runtime.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- a page ---- */

#define MIN_WIDTH 70

struct glyphs {
    const char *across, *down, *bar;
    const char *top[3], *bottom[3]; /* left, between, right */
    const char *dots;
};

static const struct glyphs *find_glyphs(enum het_charset charset)
{
    static const struct glyphs utf8 = {
        "─", "│", "█", { "┌", "┬", "┐" }, { "└", "┴", "┘" }, "…"
    };
    static const struct glyphs ascii = {
        "-", "|", "#", { "+", "+", "+" }, { "+", "+", "+" }, "..."
    };
    switch (charset) {
    case HET_UTF8:
        return &utf8;
    case HET_ASCII:
        return &ascii;
    }
    return &ascii;
}

struct page {
    struct het_arena *arena;
    const struct het_plan *plan;
    const struct glyphs *glyphs;
    int width;
    char *text;
    size_t length, capacity;
    struct het_prediction predicted;
    bool is_judged; /* all that is shown was worked out here, none of it read */
    const struct het_peak_memory *
        *peaks;            /* [replica in plan order]; NULL entries: not known */
    size_t *first_replica; /* [pipeline] of its peaks */
};

static void put(struct page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct page *page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return;
    ARRAY_RESERVE(page->text, &page->capacity, page->length + (size_t)length + 1);
    va_start(args, format);
    vsnprintf(page->text + page->length, (size_t)length + 1, format, args);
    va_end(args);
    page->length += (size_t)length;
}

static void put_times(struct page *page, const char *glyph, int count)
{
    for (int i = 0; i < count; i++)
        put(page, "%s", glyph);
}

/* `text` in exactly `columns` columns, cut with dots if it is longer. Names are plain
 * ASCII, so that bytes are columns. */
static void put_cell(struct page *page, const char *text, int columns)
{
    if ((int)strlen(text) <= columns)
        put(page, "%-*s", columns, text);
    else if (columns > 3)
        put(page, "%.*s...", columns - 3, text);
    else
        put(page, "%.*s", columns, text);
}

/* ---- what is shown of replicas ---- */

/* Replicas of a stage that differ in place only. */
struct kind {
    const char *type_name;
    uint32_t tp, microbatch_size, count;
    uint64_t peak_bytes, capacity_bytes; /* the worst; 0: not known */
};

/* Replicas of stages that are too mixed are shown by their first kinds. */
#define MAX_KINDS 8

static bool is_same_kind(const struct kind *kind, const struct het_replica *replica)
{
    return kind->tp == replica->tp && kind->microbatch_size == replica->microbatch_size &&
           !strcmp(kind->type_name, replica->type_name);
}

static size_t find_kinds(const struct het_stage *stage, struct kind *kinds)
{
    size_t count = 0;
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        size_t k = 0;
        while (k < count && !is_same_kind(&kinds[k], replica))
            k++;
        if (k == MAX_KINDS)
            continue;
        if (k == count)
            kinds[count++] = (struct kind){ .type_name = replica->type_name,
                                            .tp = replica->tp,
                                            .microbatch_size = replica->microbatch_size };
        kinds[k].count++;
    }
    return count;
}

/* The worst peaks of the kinds of a stage over all pipelines of its shape. */
static void find_peaks(const struct page *page, size_t pipeline, size_t stage_index,
                       struct kind *kinds, size_t kind_count)
{
    const struct het_pipeline *at = &page->plan->pipelines[pipeline];
    const struct het_stage *stage = &at->stages[stage_index];
    size_t index = page->first_replica[pipeline];
    for (size_t s = 0; s < stage_index; s++)
        index += at->stages[s].replica_count;
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_peak_memory *peak = page->peaks[index + r];
        for (size_t k = 0; peak && k < kind_count; k++)
            if (is_same_kind(&kinds[k], &stage->replicas[r]) &&
                peak->bytes >= kinds[k].peak_bytes) {
                kinds[k].peak_bytes = peak->bytes;
                kinds[k].capacity_bytes = peak->capacity_bytes;
            }
    }
}

/* Length of `name` without its trailing digits, and their value; -1 without any. */
static size_t split_number(const char *name, long *ret_number)
{
    size_t length = strlen(name), digits = 0;
    while (digits < length && digits < 9 && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9')
        digits++;
    *ret_number = digits ? strtol(name + length - digits, NULL, 10) : -1;
    return length - digits;
}

/* "a100-0..3, v100-2": names in order, runs of numbers joined. */
static const char *join_names(struct het_arena *arena, const char *const *names,
                              size_t count)
{
    const char *text = "";
    for (size_t i = 0; i < count;) {
        long first, next;
        size_t stem = split_number(names[i], &first), end = i + 1;
        while (first >= 0 && end < count && split_number(names[end], &next) == stem &&
               !strncmp(names[end], names[i], stem) && next == first + (long)(end - i))
            end++;
        const char *comma = i ? ", " : "";
        text = end - i > 1 ? het_arena_printf(arena, "%s%s%s..%ld", text, comma, names[i],
                                              first + (long)(end - i) - 1)
                           : het_arena_printf(arena, "%s%s%s", text, comma, names[i]);
        i = end;
        if (strlen(text) > 200)
            break;
    }
    return text;
}

/* Nodes of the replicas of one kind, each once. */
static const char *kind_nodes(const struct page *page, const struct het_stage *stage,
                              const struct kind *kind)
{
    const char **names = HET_ARENA_ARRAY(page->arena, const char *, stage->replica_count);
    size_t count = 0;
    for (size_t r = 0; r < stage->replica_count; r++) {
        const char *name = stage->replicas[r].node_name;
        if (is_same_kind(kind, &stage->replicas[r]) &&
            (!count || strcmp(names[count - 1], name) != 0))
            names[count++] = name;
    }
    return join_names(page->arena, names, count);
}

static const char *layer_range(const struct page *page, const struct het_stage *stage)
{
    return stage->layer_count == 1
               ? het_arena_printf(page->arena, "%u", stage->first_layer)
               : het_arena_printf(page->arena, "%u-%u", stage->first_layer,
                                  stage->first_layer + stage->layer_count - 1);
}

/* ---- shapes ---- */

/* Pipelines that differ in place only. */
struct shape {
    size_t first; /* pipeline shown */
    size_t count;
};

static bool is_same_stage(const struct het_stage *a, const struct het_stage *b)
{
    struct kind left[MAX_KINDS], right[MAX_KINDS];
    size_t count = find_kinds(a, left);
    if (a->layer_count != b->layer_count || a->first_layer != b->first_layer ||
        a->replica_count != b->replica_count || find_kinds(b, right) != count)
        return false;
    for (size_t k = 0; k < count; k++)
        if (left[k].tp != right[k].tp || left[k].count != right[k].count ||
            left[k].microbatch_size != right[k].microbatch_size ||
            strcmp(left[k].type_name, right[k].type_name) != 0)
            return false;
    return true;
}

static bool is_same_shape(const struct het_pipeline *a, const struct het_pipeline *b)
{
    if (a->stage_count != b->stage_count || a->microbatch_count != b->microbatch_count)
        return false;
    for (size_t s = 0; s < a->stage_count; s++)
        if (!is_same_stage(&a->stages[s], &b->stages[s]))
            return false;
    return true;
}

/* At most HET_RENDER_MAX_SHAPES; `ret_rest` pipelines have other ones. */
static size_t find_shapes(const struct het_plan *plan, struct shape *shapes,
                          size_t *ret_rest)
{
    size_t count = 0;
    *ret_rest = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        size_t i = 0;
        while (i < count &&
               !is_same_shape(&plan->pipelines[shapes[i].first], &plan->pipelines[p]))
            i++;
        if (i == HET_RENDER_MAX_SHAPES)
            ++*ret_rest;
        else if (i < count)
            shapes[i].count++;
        else
            shapes[count++] = (struct shape){ p, 1 };
    }
    return count;
}

/* ---- table ---- */

enum column {
    PIPELINE,
    STAGE,
    LAYERS,
    REPLICAS,
    TYPE,
    NODES,
    MICROBATCH,
    MEMORY,
    COLUMNS
};

struct row {
    const char *cells[COLUMNS];
};

struct rows {
    struct row *items;
    size_t count, capacity;
};

static void add_kind_row(struct page *page, struct rows *rows, const struct row *start,
                         const struct het_stage *stage, const struct kind *kind)
{
    struct het_arena *arena = page->arena;
    struct row row = *start;
    row.cells[REPLICAS] = het_arena_printf(arena, "%u x tp %u", kind->count, kind->tp);
    row.cells[TYPE] = kind->type_name;
    row.cells[NODES] = kind_nodes(page, stage, kind);
    row.cells[MICROBATCH] =
        kind->count > 1
            ? het_arena_printf(arena, "%u x %u", kind->count, kind->microbatch_size)
            : het_arena_printf(arena, "%u", kind->microbatch_size);
    row.cells[MEMORY] = kind->capacity_bytes
                            ? het_arena_printf(arena, "%.1f of %.0f",
                                               (double)kind->peak_bytes / 0x1p30,
                                               (double)kind->capacity_bytes / 0x1p30)
                            : "";
    ARRAY_RESERVE(rows->items, &rows->capacity, rows->count + 1);
    rows->items[rows->count++] = row;
}

static void add_shape_rows(struct page *page, struct rows *rows,
                           const struct shape *shape)
{
    const struct het_pipeline *pipeline = &page->plan->pipelines[shape->first];
    for (size_t s = 0; s < pipeline->stage_count && s < HET_RENDER_MAX_STAGES; s++) {
        const struct het_stage *stage = &pipeline->stages[s];
        struct kind kinds[MAX_KINDS];
        size_t count = find_kinds(stage, kinds);
        find_peaks(page, shape->first, s, kinds, count);
        for (size_t k = 0; k < count; k++) {
            struct row row = { { "", "", "" } };
            if (!s && !k)
                row.cells[PIPELINE] =
                    shape->count > 1 ? het_arena_printf(page->arena, "%zu (x %zu)",
                                                        shape->first, shape->count)
                                     : het_arena_printf(page->arena, "%zu", shape->first);
            if (!k) {
                row.cells[STAGE] = het_arena_printf(page->arena, "%zu", s);
                row.cells[LAYERS] = layer_range(page, stage);
            }
            add_kind_row(page, rows, &row, stage, &kinds[k]);
        }
    }
}

/* Natural widths; what is too wide for the page is taken from the nodes, then the type.
 */
static void find_widths(const struct page *page, const struct rows *rows, int *widths)
{
    int total = 0;
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = 0;
        for (size_t r = 0; r < rows->count; r++) {
            int length = (int)strlen(rows->items[r].cells[c]);
            widths[c] = length > widths[c] ? length : widths[c];
        }
        total += widths[c] + (c ? 2 : 0);
    }
    static const struct {
        enum column column;
        int least;
    } elastic[] = { { NODES, 14 }, { TYPE, 10 }, { NODES, 6 }, { TYPE, 5 } };
    for (size_t i = 0; i < sizeof elastic / sizeof *elastic; i++) {
        int *width = &widths[elastic[i].column];
        int over = total - page->width, slack = *width - elastic[i].least;
        int cut = over < slack ? over : slack;
        if (cut > 0) {
            *width -= cut;
            total -= cut;
        }
    }
}

static void put_table(struct page *page, const struct shape *shapes, size_t shape_count)
{
    static const struct row heading = { { "pipe", "stage", "layers", "replicas",
                                          "GPU type", "nodes", "samples", "GiB" } };
    struct rows rows = { 0 };
    ARRAY_RESERVE(rows.items, &rows.capacity, 1);
    rows.items[rows.count++] = heading;
    for (size_t i = 0; i < shape_count; i++)
        add_shape_rows(page, &rows, &shapes[i]);
    int widths[COLUMNS];
    find_widths(page, &rows, widths);
    for (size_t r = 0; r < rows.count; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            put(page, "%s", c ? "  " : "");
            if (c + 1 < COLUMNS)
                put_cell(page, rows.items[r].cells[c], widths[c]);
            else
                put(page, "%s", rows.items[r].cells[c]);
        }
        put(page, "\n");
    }
    xfree(rows.items);
}

/* ---- picture ---- */

/* Room for "4 x A100, tp 2, batch 8"; names that are longer are cut. */
#define BOX_COLUMNS 18

/* Columns of the boxes of stages first .. end - 1, in proportion to their layers. */
static void find_boxes(const struct page *page, const struct het_pipeline *pipeline,
                       size_t first, size_t end, int *columns)
{
    int room = page->width - 1, count = (int)(end - first);
    uint32_t layers = 0;
    for (size_t s = first; s < end; s++)
        layers += pipeline->stages[s].layer_count;
    int spare = room - count * (BOX_COLUMNS + 1);
    for (size_t s = first; s < end; s++)
        columns[s - first] =
            BOX_COLUMNS +
            (layers ? (int)((double)spare * pipeline->stages[s].layer_count / layers)
                    : 0);
}

static void put_edge(struct page *page, const char *const *corners, const int *columns,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(page, "%s", corners[i ? 1 : 0]);
        put_times(page, page->glyphs->across, columns[i]);
    }
    put(page, "%s\n", corners[2]);
}

/* Line `line` of the text in a box; NULL behind the last. */
static const char *box_line(const struct page *page, const struct het_stage *stage,
                            size_t stage_index, size_t line)
{
    struct het_arena *arena = page->arena;
    if (line == 0)
        return het_arena_printf(arena, " stage %zu", stage_index);
    if (line == 1)
        return stage->layer_count == 1
                   ? het_arena_printf(arena, " layer %s", layer_range(page, stage))
                   : het_arena_printf(arena, " layers %s", layer_range(page, stage));
    struct kind kinds[MAX_KINDS];
    size_t count = find_kinds(stage, kinds), kind = (line - 2) / 2;
    if (kind >= count)
        return NULL;
    if (line % 2 == 0)
        return het_arena_printf(arena, " %u %s", kinds[kind].count * kinds[kind].tp,
                                kinds[kind].type_name);
    return het_arena_printf(arena, " dp %u, tp %u", kinds[kind].count, kinds[kind].tp);
}

static void put_boxes(struct page *page, const struct het_pipeline *pipeline,
                      size_t first, size_t end)
{
    auto_free int *columns = xcalloc(end - first, sizeof *columns);
    find_boxes(page, pipeline, first, end, columns);
    put_edge(page, page->glyphs->top, columns, end - first);
    for (size_t line = 0;; line++) {
        bool any = false;
        for (size_t s = first; s < end; s++)
            any |= box_line(page, &pipeline->stages[s], s, line) != NULL;
        if (!any)
            break;
        for (size_t s = first; s < end; s++) {
            const char *text = box_line(page, &pipeline->stages[s], s, line);
            put(page, "%s", page->glyphs->down);
            put_cell(page, text ? text : "", columns[s - first]);
        }
        put(page, "%s\n", page->glyphs->down);
    }
    put_edge(page, page->glyphs->bottom, columns, end - first);
}

static void put_picture(struct page *page, const struct shape *shape)
{
    const struct het_pipeline *pipeline = &page->plan->pipelines[shape->first];
    uint64_t samples = 0;
    for (size_t r = 0; pipeline->stage_count && r < pipeline->stages[0].replica_count;
         r++)
        samples += pipeline->stages[0].replicas[r].microbatch_size;
    put(page, "\npipeline %zu: %u micro-batch%s of %llu sample%s", shape->first,
        pipeline->microbatch_count, pipeline->microbatch_count == 1 ? "" : "es",
        (unsigned long long)samples, samples == 1 ? "" : "s");
    if (shape->count > 1)
        put(page, "   x %zu more pipeline%s like this", shape->count - 1,
            shape->count == 2 ? "" : "s");
    put(page, "\n");
    size_t shown = pipeline->stage_count < HET_RENDER_MAX_STAGES ? pipeline->stage_count
                                                                 : HET_RENDER_MAX_STAGES;
    size_t a_row = (size_t)(page->width - 1) / (BOX_COLUMNS + 1);
    size_t rows = (shown + a_row - 1) / a_row;
    for (size_t i = 0; i < rows; i++)
        put_boxes(page, pipeline, shown * i / rows, shown * (i + 1) / rows);
    if (shown < pipeline->stage_count)
        put(page, "%s and %zu more stages\n", page->glyphs->dots,
            pipeline->stage_count - shown);
}

/* ---- step time ---- */

static void put_part(struct page *page, const char *name, double seconds, double whole_s)
{
    int room = page->width - 40;
    int bar = (int)lround(room * seconds / whole_s);
    put(page, "  %-12s %12.6g s  %5.1f %%  ", name, seconds, 100 * seconds / whole_s);
    put_times(page, page->glyphs->bar, bar < room ? bar : room);
    put(page, "\n");
}

static void put_step_time(struct page *page)
{
    const struct het_prediction *predicted = &page->predicted;
    if (!(predicted->iteration_s > 0))
        return;
    put(page, "\nstep time\n");
    put_part(page, "pipeline", predicted->pipeline_s, predicted->iteration_s);
    put_part(page, "gradients", predicted->gradient_sync_s, predicted->iteration_s);
    put_part(page, "optimizer", predicted->optimizer_s, predicted->iteration_s);
    put_part(page, "together", predicted->iteration_s, predicted->iteration_s);
    if (!(predicted->lower_bound_s > 0))
        return;
    put_part(page, "lower bound", predicted->lower_bound_s, predicted->iteration_s);
    put(page,
        "  no plan for this input is below the bound; this one is %.1f %% above it\n",
        100 * (predicted->iteration_s / predicted->lower_bound_s - 1));
}

/* Whether more effort may help. */
static void put_effort(struct page *page)
{
    const struct het_search_report *report = &page->plan->search;
    if (report->has_run_out && !page->is_judged)
        put(page,
            "\nthe effort of %llu ran out before the search was at its end: more "
            "(--effort) may find\na better plan\n",
            (unsigned long long)report->effort);
}

/* What a runtime's limits cost. */
static void put_unrestricted(struct page *page)
{
    const struct het_prediction *predicted = &page->predicted;
    if (!(predicted->unrestricted_s > 0))
        return;
    put(page,
        "\na runtime without limits would take %.6g s a step (%.1f %% less), with:\n",
        predicted->unrestricted_s,
        100 * (1 - predicted->unrestricted_s / predicted->iteration_s));
    for (int f = 0; f < HET_FREEDOM_COUNT; f++)
        if (predicted->unrestricted_needs & 1u << f)
            put(page, "  %s\n", het_freedom_text((enum het_freedom)f));
}

/* `text`, the first line from `column` on, in lines of at most the page's width, the
 * others indented. */
static void put_words(struct page *page, const char *text, int column, int indent)
{
    for (bool is_first = true; *text; is_first = false) {
        size_t length = strcspn(text, " ");
        if (!is_first && column + 1 + (int)length > page->width) {
            put(page, "\n%*s", indent, "");
            column = indent;
            is_first = true;
        }
        int room = page->width - indent;
        put(page, "%s%.*s", is_first ? "" : " ", (int)length < room ? (int)length : room,
            text);
        column += (int)length + !is_first;
        text += length;
        text += strspn(text, " ");
    }
    put(page, "\n");
}

static void put_unused(struct page *page)
{
    const struct het_plan *plan = page->plan;
    put(page, "\nnot used\n");
    for (size_t i = 0; i < plan->unused_count; i++) {
        const struct het_unused *group = &plan->unused[i];
        size_t names = het_unused_name_count(group);
        const char *more = group->node_count > names
                               ? het_arena_printf(page->arena, " and %zu more",
                                                  group->node_count - names)
                               : "";
        put(page, "  ");
        put_words(page,
                  het_arena_printf(page->arena, "%u %s%sGPU%s on %s%s: %s", group->gpus,
                                   group->type, *group->type ? " " : "",
                                   group->gpus == 1 ? "" : "s",
                                   join_names(page->arena, group->nodes, names), more,
                                   het_unused_text(page->arena, group)),
                  2, 4);
    }
}

static void put_idle(struct page *page)
{
    const struct het_plan *plan = page->plan;
    if (plan->unused_count) {
        put_unused(page);
        return;
    }
    size_t gpus = 0;
    const char **names = HET_ARENA_ARRAY(page->arena, const char *, plan->idle_count);
    for (size_t i = 0; i < plan->idle_count; i++) {
        names[i] = plan->idle[i].node_name;
        gpus += plan->idle[i].gpu_count;
    }
    if (!gpus)
        return;
    put(page, "\nidle: %zu GPU%s on ", gpus, gpus == 1 ? "" : "s");
    const char *joined = join_names(page->arena, names, plan->idle_count);
    int used = snprintf(NULL, 0, "idle: %zu GPUs on ", gpus);
    int length = (int)strlen(joined);
    put_cell(page, joined, length < page->width - used ? length : page->width - used);
    put(page, "\n");
}

/* ---- the whole ---- */

static void put_heading(struct page *page)
{
    const struct het_plan *plan = page->plan;
    const char *whose = page->predicted.is_read ? ", as its file says" : "";
    uint32_t used = het_plan_gpu_count(plan);
    size_t idle = 0;
    for (size_t i = 0; i < plan->idle_count; i++)
        idle += plan->idle[i].gpu_count;
    if (page->predicted.iteration_s > 0)
        put(page, "%.6g s a step, %.6g samples a second (by %s%s)\n",
            page->predicted.iteration_s, plan->global_batch / page->predicted.iteration_s,
            plan->algorithm ? plan->algorithm : "hand", whose);
    else
        put(page, "plan by %s\n", plan->algorithm ? plan->algorithm : "hand");
    put(page, "%u layers, global batch %u, %s, %s\n%zu pipeline%s on %u of %zu GPUs\n\n",
        plan->layer_count, plan->global_batch, het_precision_name(plan->precision),
        het_optimizer_name(plan->optimizer), plan->pipeline_count,
        plan->pipeline_count == 1 ? "" : "s", used, used + idle);
}

static void put_origin(struct page *page)
{
    const struct het_prediction *predicted = &page->predicted;
    switch (predicted->profile_origin) {
    case HET_PROFILE_MEASURED:
        break;
    case HET_PROFILE_ESTIMATED:
        put(page, "warning: times are estimated from data sheets, not measured\n");
        break;
    case HET_PROFILE_CALIBRATED:
        put(page, "note: times are estimated, fitted to a measured step of each type\n");
        break;
    }
    if (predicted->extrapolated)
        put(page, "warning: a micro-batch is larger than any that was measured\n");
    if (predicted->extrapolated || predicted->profile_origin != HET_PROFILE_MEASURED)
        put(page, "\n");
}

static void put_assumed_links(struct page *page)
{
    const struct het_prediction *predicted = &page->predicted;
    for (size_t i = 0; i < predicted->assumed_link_count; i++) {
        const struct het_assumed_link *link = &predicted->assumed_links[i];
        const char *where = link->leaves_node ? "out of a node of" : "between GPUs of";
        if (link->source == HET_LINK_DEFAULT)
            put(page, "warning: %.4g GB/s %s %s is a guess: state or measure it\n",
                link->bytes_per_s / 1e9, where, link->type);
        else
            put(page, "note: %.4g GB/s %s %s is what is known of %s\n",
                link->bytes_per_s / 1e9, where, link->type,
                link->instance_type ? link->instance_type : "the GPU type");
    }
    if (predicted->assumed_link_count)
        put(page, "\n");
}

static void put_statistics(struct page *page)
{
    const struct het_search_report *report = &page->plan->search;
    const struct het_search_statistics *statistics = &report->statistics;
    if (!report->has_statistics)
        return;
    put(page,
        "\nsearch: %llu lists of groups, %llu strategies, %llu partitions failed, %llu "
        "plans priced\n",
        (unsigned long long)statistics->groups_enumerated,
        (unsigned long long)statistics->strategies_tried,
        (unsigned long long)statistics->partitions_failed,
        (unsigned long long)statistics->plans_priced);
    if (!statistics->walk_best)
        return;
    put(page, "walk: %llu steps, %llu plans (%llu of them broken)\n",
        (unsigned long long)statistics->walk_steps,
        (unsigned long long)statistics->walk_plans,
        (unsigned long long)statistics->walk_broken);
    put(page, "its best: %.6g s by its own rules: %s\n", statistics->walk_best_s,
        statistics->walk_best);
}

/* What the prediction lacks, from `problem`. */
static void work_out(struct page *page, const struct het_problem *problem)
{
    struct het_prediction *predicted = &page->predicted;
    struct het_peak_memory *peaks;
    struct het_cost cost;
    predicted->profile_origin = problem->profile->origin;
    predicted->extrapolated = het_plan_extrapolates(problem, page->plan);
    predicted->assumed_link_count = het_cluster_assumed_links(
        page->arena, problem->cluster, &predicted->assumed_links);
    if (!predicted->peak_memory_count) {
        het_memory_plan(page->arena, problem, page->plan, &peaks,
                        &predicted->peak_memory_count, NULL);
        predicted->peak_memory = peaks;
    }
    if (!(predicted->iteration_s > 0) &&
        het_schedule_simulate(NULL, problem, page->plan, &cost, NULL, NULL) == 0) {
        predicted->iteration_s = cost.iteration_s;
        predicted->pipeline_s = cost.pipeline_s;
        predicted->gradient_sync_s = cost.sync_s;
        predicted->optimizer_s = cost.step_s;
        predicted->lower_bound_s = het_bound_iteration(problem);
    }
}

/* What is known of the plan's time and memory. */
static void find_numbers(struct page *page, const struct het_problem *problem)
{
    const struct het_plan *plan = page->plan;
    size_t replicas = 0;
    page->is_judged = problem && plan->predicted.is_read;
    if (!page->is_judged)
        page->predicted = plan->predicted;
    if (problem)
        work_out(page, problem);
    page->first_replica = HET_ARENA_ARRAY(page->arena, size_t, plan->pipeline_count);
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        page->first_replica[p] = replicas;
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            replicas += plan->pipelines[p].stages[s].replica_count;
    }
    page->peaks = HET_ARENA_ARRAY(page->arena, const struct het_peak_memory *, replicas);
    /* Peaks stand in plan order, each replica once. */
    for (size_t i = 0; page->predicted.peak_memory_count == replicas && i < replicas; i++)
        page->peaks[i] = &page->predicted.peak_memory[i];
}

char *het_render_table(struct het_arena *arena, const struct het_problem *problem,
                       const struct het_plan *plan, int width, enum het_charset charset)
{
    struct page page = { .arena = het_arena_new(),
                         .plan = plan,
                         .glyphs = find_glyphs(charset),
                         .width = width > MIN_WIDTH ? width : MIN_WIDTH };
    struct shape shapes[HET_RENDER_MAX_SHAPES];
    size_t rest, shape_count = find_shapes(plan, shapes, &rest);
    find_numbers(&page, problem);
    put_heading(&page);
    put_origin(&page);
    put_assumed_links(&page);
    put_table(&page, shapes, shape_count);
    for (size_t i = 0; i < shape_count; i++)
        put_picture(&page, &shapes[i]);
    if (rest)
        put(&page, "\n%s and %zu more pipelines of other shapes\n", page.glyphs->dots,
            rest);
    put_step_time(&page);
    put_effort(&page);
    put_unrestricted(&page);
    put_idle(&page);
    put_statistics(&page);
    char *text = het_arena_strdup(arena, page.text);
    xfree(page.text);
    het_arena_free(page.arena);
    return text;
}
