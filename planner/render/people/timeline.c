#include "planner/render/people/timeline.h"

#include "planner/base/text_writer.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- rows ---- */

/* What is drawn alike. */
enum shade {
    SHADE_BUBBLE,
    SHADE_FORWARD,
    SHADE_BACKWARD,
    SHADE_SEND,
    SHADE_SYNC,
    SHADE_STEP
};
#define SHADES 6

static enum shade shade_of(enum het_task_kind kind)
{
    static const enum shade shades[HET_TASK_KINDS] = {
        [HET_TASK_FORWARD] = SHADE_FORWARD,    [HET_TASK_BACKWARD] = SHADE_BACKWARD,
        [HET_TASK_SEND_FORWARD] = SHADE_SEND,  [HET_TASK_RECEIVE_FORWARD] = SHADE_SEND,
        [HET_TASK_SEND_BACKWARD] = SHADE_SEND, [HET_TASK_RECEIVE_BACKWARD] = SHADE_SEND,
        [HET_TASK_GRADIENT_SYNC] = SHADE_SYNC, [HET_TASK_OPTIMIZER_STEP] = SHADE_STEP,
    };
    return shades[kind];
}

struct row {
    const struct het_task *tasks;
    size_t task_count;
    uint32_t pipeline, stage;
    const char *gpus; /* "2 A100, V100" */
    double busy_s;    /* computing */
};

/* Pipelines shown once. */
struct band {
    uint32_t pipeline, copies;
    size_t first_row, row_count;
};

struct picture {
    struct het_arena *arena;
    const struct het_plan *plan;
    const struct het_timeline *timeline;
    const struct het_task **first_task; /* [pipeline + 1] */
    struct band *bands;
    size_t band_count;
    struct row *rows;
    size_t row_count;
    uint32_t hidden_pipelines; /* not shown: there is no room */
    uint32_t hidden_stages;    /* of the last band */
};

/* "4 A100, 2 V100": GPUs of a stage by type. */
static const char *name_gpus(struct het_arena *arena, const struct het_stage *stage)
{
    const char *text = "";
    for (size_t r = 0; r < stage->replica_count; r++) {
        const char *type = stage->replicas[r].type_name;
        uint32_t gpus = 0;
        bool is_named = false;
        for (size_t q = 0; q < stage->replica_count; q++) {
            bool is_same = !strcmp(stage->replicas[q].type_name, type);
            is_named = is_named || (is_same && q < r);
            gpus += is_same ? stage->replicas[q].tp : 0;
        }
        if (!is_named)
            text =
                het_arena_printf(arena, "%s%s%u %s", text, *text ? ", " : "", gpus, type);
    }
    return text;
}

static bool does_the_same(const struct picture *picture, uint32_t p, uint32_t q)
{
    const struct het_pipeline *a = &picture->plan->pipelines[p];
    const struct het_pipeline *b = &picture->plan->pipelines[q];
    const struct het_task *x = picture->first_task[p], *y = picture->first_task[q];
    ptrdiff_t count = picture->first_task[p + 1] - x;
    if (picture->first_task[q + 1] - y != count || a->stage_count != b->stage_count)
        return false;
    for (size_t s = 0; s < a->stage_count; s++)
        if (a->stages[s].replica_count != b->stages[s].replica_count ||
            strcmp(a->stages[s].replicas[0].type_name,
                   b->stages[s].replicas[0].type_name) != 0 ||
            a->stages[s].replicas[0].tp != b->stages[s].replicas[0].tp)
            return false;
    for (ptrdiff_t i = 0; i < count; i++)
        if (x[i].stage != y[i].stage || x[i].kind != y[i].kind ||
            x[i].start_s != y[i].start_s || x[i].end_s != y[i].end_s)
            return false;
    return true;
}

static void add_rows(struct picture *picture, struct band *band)
{
    const struct het_pipeline *pipeline = &picture->plan->pipelines[band->pipeline];
    const struct het_task *task = picture->first_task[band->pipeline];
    const struct het_task *end = picture->first_task[band->pipeline + 1];
    band->first_row = picture->row_count;
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        struct row row = { .tasks = task, .pipeline = band->pipeline, .stage = s };
        for (; task < end && task->stage == s; task++) {
            row.task_count++;
            if (task->kind == HET_TASK_FORWARD || task->kind == HET_TASK_BACKWARD)
                row.busy_s += task->end_s - task->start_s;
        }
        if (picture->row_count == HET_RENDER_MAX_ROWS) {
            picture->hidden_stages++;
            continue;
        }
        row.gpus = name_gpus(picture->arena, &pipeline->stages[s]);
        picture->rows[picture->row_count++] = row;
        band->row_count++;
    }
}

static void add_pipeline(struct picture *picture, uint32_t p)
{
    for (size_t i = 0; i < picture->band_count; i++)
        if (does_the_same(picture, picture->bands[i].pipeline, p)) {
            picture->bands[i].copies++;
            return;
        }
    if (picture->row_count == HET_RENDER_MAX_ROWS) {
        picture->hidden_pipelines++;
        return;
    }
    struct band *band = &picture->bands[picture->band_count++];
    *band = (struct band){ .pipeline = p, .copies = 1 };
    add_rows(picture, band);
}

static void picture_init(struct picture *picture, struct het_arena *arena,
                         const struct het_plan *plan, const struct het_timeline *timeline)
{
    *picture = (struct picture){
        .arena = arena,
        .plan = plan,
        .timeline = timeline,
        .first_task =
            HET_ARENA_ARRAY(arena, const struct het_task *, plan->pipeline_count + 1),
        .bands = HET_ARENA_ARRAY(arena, struct band, HET_RENDER_MAX_ROWS),
        .rows = HET_ARENA_ARRAY(arena, struct row, HET_RENDER_MAX_ROWS),
    };
    const struct het_task *task = timeline->tasks, *end = task + timeline->task_count;
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        picture->first_task[p] = task;
        while (task < end && task->pipeline == p)
            task++;
    }
    picture->first_task[plan->pipeline_count] = task;
    for (uint32_t p = 0; p < plan->pipeline_count; p++)
        add_pipeline(picture, p);
}

static const char *name_band(const struct picture *picture, const struct band *band)
{
    const struct het_pipeline *pipeline = &picture->plan->pipelines[band->pipeline];
    const char *copies =
        band->copies > 1
            ? het_arena_printf(picture->arena, " and %u like it", band->copies - 1)
            : "";
    return het_arena_printf(picture->arena, "pipeline %u%s: %u micro-batch%s",
                            band->pipeline, copies, pipeline->microbatch_count,
                            pipeline->microbatch_count == 1 ? "" : "es");
}

/* What is not shown; "" if nothing. */
static const char *name_hidden(const struct picture *picture)
{
    const char *text = "";
    if (picture->hidden_stages)
        text = het_arena_printf(picture->arena, "%u more stages of it",
                                picture->hidden_stages);
    if (picture->hidden_pipelines)
        text = het_arena_printf(picture->arena, "%s%s%u more pipelines", text,
                                *text ? ", " : "", picture->hidden_pipelines);
    return *text ? het_arena_printf(picture->arena, "not shown: %s", text) : "";
}

/* For each of `count` equal parts of the iteration what takes most of it in the row. */
static void fill_columns(const struct picture *picture, const struct row *row,
                         enum shade *columns, size_t count)
{
    double width_s = picture->timeline->end_s / (double)count;
    size_t task = 0;
    for (size_t c = 0; c < count; c++) {
        double from = (double)c * width_s, to = from + width_s;
        double taken[SHADES] = { 0 }, free_s = width_s;
        while (task < row->task_count && row->tasks[task].end_s <= from)
            task++;
        for (size_t i = task; i < row->task_count && row->tasks[i].start_s < to; i++) {
            double part = fmin(row->tasks[i].end_s, to) -
                          fmax(row->tasks[i].start_s, from);
            taken[shade_of(row->tasks[i].kind)] += part;
            free_s -= part;
        }
        columns[c] = SHADE_BUBBLE;
        taken[SHADE_BUBBLE] = free_s;
        for (enum shade s = SHADE_FORWARD; s < SHADES; s++)
            if (taken[s] > taken[columns[c]])
                columns[c] = s;
    }
}

/* The largest power of ten that is not above `x`. */
static double power_of_ten(double x)
{
    /* One of them is exact up to 1e22, the other one division from it. */
    double above = 1, below = 1;
    while (above * 10 <= x)
        above *= 10;
    while (1 / below > x && below < 1e22)
        below *= 10;
    return above / below;
}

/* The round number of seconds between two marks, for at most `most` of them. */
static double mark_distance(double end_s, int most)
{
    if (!(end_s > 0))
        return 1;
    double least = end_s / most, power = power_of_ten(least);
    static const double steps[] = { 1, 2, 5 };
    for (size_t i = 0; i < 3; i++)
        if (steps[i] * power >= least)
            return steps[i] * power;
    return 10 * power;
}

/* ---- text ---- */

#define MIN_WIDTH 70
#define END_WIDTH 8 /* "  99.9 %" */

static const char *const glyphs[2][SHADES] = {
    [HET_UTF8] = { "·", "▒", "█", "─", "═", "■" },
    [HET_ASCII] = { ".", "f", "B", "-", "=", "#" },
};

static void put_marks(struct het_writer *out, const struct picture *picture, int label,
                      int columns)
{
    double end_s = picture->timeline->end_s, step = mark_distance(end_s, columns / 12);
    int at = 0;
    het_writer_put(out, "%*s", label, "");
    for (int i = 0; i * step < end_s; i++) {
        int column = (int)(i * step / end_s * columns);
        const char *text = het_arena_printf(picture->arena, "|%.6g s", i * step);
        if (column < at || column + (int)strlen(text) > columns)
            continue;
        het_writer_put(out, "%*s%s", column - at, "", text);
        at = column + (int)strlen(text);
    }
    het_writer_put(out, "\n");
}

static void put_row(struct het_writer *out, const struct picture *picture,
                    const struct row *row, int label, int columns,
                    enum het_charset charset)
{
    enum shade *shades = HET_ARENA_ARRAY(picture->arena, enum shade, (size_t)columns);
    fill_columns(picture, row, shades, (size_t)columns);
    const char *name =
        het_arena_printf(picture->arena, "  %-3u %s", row->stage, row->gpus);
    het_writer_put(out, "%-*.*s", label, label - 1, name);
    for (int c = 0; c < columns; c++)
        het_writer_put(out, "%s", glyphs[charset][shades[c]]);
    het_writer_put(out, " %5.1f %%\n", 100 * row->busy_s / picture->timeline->end_s);
}

static int label_width(const struct picture *picture)
{
    size_t longest = 8;
    for (size_t i = 0; i < picture->row_count; i++) {
        size_t length = strlen(picture->rows[i].gpus) + 6;
        longest = length > longest ? length : longest;
    }
    return longest < 30 ? (int)longest + 1 : 30;
}

char *het_render_timeline_text(struct het_arena *arena, const struct het_plan *plan,
                               const struct het_timeline *timeline, int width,
                               enum het_charset charset)
{
    struct picture picture;
    struct het_writer out = { 0 };
    picture_init(&picture, arena, plan, timeline);
    int label = label_width(&picture);
    int columns = (width > MIN_WIDTH ? width : MIN_WIDTH) - label - END_WIDTH;
    const char *const *glyph = glyphs[charset];
    het_writer_put(&out,
                   "%.6g s a step; a column is %.3g s\n"
                   "%s forward  %s backward  %s send, receive  %s gradients  "
                   "%s optimizer  %s bubble\n\n",
                   timeline->end_s, timeline->end_s / columns, glyph[SHADE_FORWARD],
                   glyph[SHADE_BACKWARD], glyph[SHADE_SEND], glyph[SHADE_SYNC],
                   glyph[SHADE_STEP], glyph[SHADE_BUBBLE]);
    put_marks(&out, &picture, label, columns);
    for (size_t i = 0; i < picture.band_count; i++) {
        const struct band *band = &picture.bands[i];
        het_writer_put(&out, "%s\n", name_band(&picture, band));
        for (size_t r = 0; r < band->row_count; r++)
            put_row(&out, &picture, &picture.rows[band->first_row + r], label, columns,
                    charset);
    }
    const char *hidden = name_hidden(&picture);
    if (*hidden)
        het_writer_put(&out, "%s\n", hidden);
    het_writer_put(&out, "\nAt the end of a row: the share of the step that the stage "
                         "computes.\n");
    return het_writer_take(&out, arena);
}

/* ---- picture ---- */

#define LEFT      190 /* labels */
#define CHART     1000
#define RIGHT     70 /* share computed */
#define TOP       64
#define ROW       20
#define ROW_GAP   4
#define BAND_HEAD 24
#define AXIS      36
#define HUES      8

/* Forward, backward of a pipeline's hue, on light and on dark ground: Tableau 10 without
 * the reds and greys, and lighter and darker by hand. */
static const struct hue {
    const char *forward, *backward, *dark_forward, *dark_backward;
} hues[HUES] = {
    { "#9ecae9", "#3a78b0", "#2f6a9f", "#7db8e8" },
    { "#ffcf9e", "#d9761c", "#a85b14", "#ffb469" },
    { "#a8dba0", "#3d9142", "#2f7434", "#86cf86" },
    { "#d0b8e3", "#7d54a8", "#67458c", "#bd97e0" },
    { "#9fdcd8", "#2d8d88", "#22706c", "#74cbc5" },
    { "#e8c3a8", "#8f5f3f", "#74492c", "#cf9f7c" },
    { "#f4bcd6", "#b84d84", "#8f3a66", "#e88fba" },
    { "#dcd58a", "#978a1f", "#776c14", "#cfc35e" },
};

static void put_style(struct het_writer *out)
{
    het_writer_put(out, "<style>\n"
                        "svg{font:12px system-ui,'DejaVu Sans',sans-serif}\n"
                        ".bg{fill:#fff}.ink{fill:#222}.dim{fill:#666}.track{fill:#eceef1}"
                        ".grid{stroke:#d5d8dd}\n"
                        ".send{fill:#9aa0a8}.sync{fill:#c0392b}.step{fill:#5d6470}\n"
                        ".n{font-size:10px;text-anchor:middle;fill:#111}"
                        ".m{font-size:10px;text-anchor:middle;fill:#fff}\n");
    for (int i = 0; i < HUES; i++)
        het_writer_put(out, ".f%d{fill:%s}.b%d{fill:%s}\n", i, hues[i].forward, i,
                       hues[i].backward);
    het_writer_put(out, "@media (prefers-color-scheme:dark){\n"
                        ".bg{fill:#16181c}.ink{fill:#e6e8eb}.dim{fill:#9aa1ab}"
                        ".track{fill:#262a30}.grid{stroke:#3a3f47}\n"
                        ".send{fill:#767d87}.sync{fill:#e06a5c}.step{fill:#aeb6c2}\n"
                        ".n{fill:#f2f4f6}.m{fill:#111}\n");
    for (int i = 0; i < HUES; i++)
        het_writer_put(out, ".f%d{fill:%s}.b%d{fill:%s}\n", i, hues[i].dark_forward, i,
                       hues[i].dark_backward);
    het_writer_put(out, "}\n</style>\n");
}

/* `text` with what XML keeps for itself escaped. */
static void put_text(struct het_writer *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            het_writer_put(out, "&lt;");
        else if (*text == '>')
            het_writer_put(out, "&gt;");
        else if (*text == '&')
            het_writer_put(out, "&amp;");
        else
            het_writer_put(out, "%c", (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void put_label(struct het_writer *out, double x, double y, const char *class,
                      const char *anchor, const char *text)
{
    het_writer_put(out, "<text x=\"%.6g\" y=\"%.6g\" class=\"%s\" text-anchor=\"%s\">", x,
                   y, class, anchor);
    put_text(out, text);
    het_writer_put(out, "</text>\n");
}

static const char *class_of(const struct picture *picture, enum shade shade, size_t band)
{
    switch (shade) {
    case SHADE_FORWARD:
        return het_arena_printf(picture->arena, "f%zu", band % HUES);
    case SHADE_BACKWARD:
        return het_arena_printf(picture->arena, "b%zu", band % HUES);
    case SHADE_SEND:
        return "send";
    case SHADE_SYNC:
        return "sync";
    case SHADE_STEP:
        return "step";
    case SHADE_BUBBLE:
        break;
    }
    return "track";
}

static void put_legend(struct het_writer *out, const struct picture *picture)
{
    static const char *const names[SHADES] = {
        "bubble", "forward", "backward", "send, receive", "gradients", "optimizer"
    };
    double x = LEFT;
    for (enum shade s = SHADE_FORWARD; s < SHADES; s++) {
        het_writer_put(out,
                       "<rect x=\"%.6g\" y=\"36\" width=\"14\" height=\"14\" rx=\"2\" "
                       "class=\"%s\"/>\n",
                       x, class_of(picture, s, 0));
        put_label(out, x + 20, 47, "ink", "start", names[s]);
        x += 34 + 7.0 * (double)strlen(names[s]);
    }
    het_writer_put(out,
                   "<rect x=\"%.6g\" y=\"36\" width=\"14\" height=\"14\" rx=\"2\" "
                   "class=\"track\"/>\n",
                   x);
    put_label(out, x + 20, 47, "ink", "start", names[SHADE_BUBBLE]);
    put_label(out, LEFT + CHART + RIGHT - 6, 47, "dim", "end", "computing");
}

static void put_axis(struct het_writer *out, const struct picture *picture, double bottom)
{
    double end_s = picture->timeline->end_s, step = mark_distance(end_s, 12);
    for (int i = 0; i * step <= end_s; i++) {
        double x = LEFT + i * step / end_s * CHART;
        het_writer_put(out,
                       "<line x1=\"%.6g\" y1=\"%d\" x2=\"%.6g\" y2=\"%.6g\" "
                       "class=\"grid\"/>\n",
                       x, TOP, x, bottom + 4);
        put_label(out, x, bottom + 18, "dim", "middle",
                  het_arena_printf(picture->arena, "%.6g s", i * step));
    }
}

/* One rectangle a task, with its number where there is room, and its times. */
static void put_blocks(struct het_writer *out, const struct picture *picture,
                       const struct row *row, size_t band, double y)
{
    double scale = CHART / picture->timeline->end_s;
    for (size_t i = 0; i < row->task_count; i++) {
        const struct het_task *task = &row->tasks[i];
        double x = LEFT + task->start_s * scale;
        double width = (task->end_s - task->start_s) * scale;
        enum shade shade = shade_of(task->kind);
        if (!(width > 0))
            continue;
        het_writer_put(out,
                       "<rect x=\"%.6g\" y=\"%.6g\" width=\"%.4g\" height=\"%d\" "
                       "class=\"%s\"><title>%s",
                       x, y, width, ROW, class_of(picture, shade, band),
                       het_task_kind_name(task->kind));
        if (shade < SHADE_SYNC)
            het_writer_put(out, " of micro-batch %u", task->microbatch);
        het_writer_put(out, ", %.6g to %.6g s</title></rect>\n", task->start_s,
                       task->end_s);
        if (shade <= SHADE_BACKWARD && width > 20)
            het_writer_put(out, "<text x=\"%.6g\" y=\"%.6g\" class=\"%s\">%u</text>\n",
                           x + width / 2, y + 14, shade == SHADE_FORWARD ? "n" : "m",
                           task->microbatch);
    }
}

/* One path a shade, by pixels. */
static void put_pixels(struct het_writer *out, const struct picture *picture,
                       const struct row *row, size_t band, double y)
{
    enum shade columns[CHART];
    fill_columns(picture, row, columns, CHART);
    for (enum shade s = SHADE_FORWARD; s < SHADES; s++) {
        bool has_begun = false;
        for (int from = 0, to; from < CHART; from = to) {
            for (to = from + 1; to < CHART && columns[to] == columns[from];)
                to++;
            if (columns[from] != s)
                continue;
            if (!has_begun)
                het_writer_put(out, "<path class=\"%s\" d=\"",
                               class_of(picture, s, band));
            has_begun = true;
            het_writer_put(out, "M%d %.6gh%dv%dh%dz", LEFT + from, y, to - from, ROW,
                           from - to);
        }
        if (has_begun)
            het_writer_put(out, "\"/>\n");
    }
}

static void put_stage(struct het_writer *out, const struct picture *picture,
                      const struct row *row, size_t band, double y, bool has_blocks)
{
    put_label(out, 14, y + 14, "ink", "start",
              het_arena_printf(picture->arena, "stage %u", row->stage));
    const char *gpus = row->gpus;
    if (strlen(gpus) > 17)
        gpus = het_arena_printf(picture->arena, "%.15s...", gpus);
    put_label(out, LEFT - 8, y + 14, "dim", "end", gpus);
    het_writer_put(out,
                   "<rect x=\"%d\" y=\"%.6g\" width=\"%d\" height=\"%d\" "
                   "class=\"track\"/>\n",
                   LEFT, y, CHART, ROW);
    if (has_blocks)
        put_blocks(out, picture, row, band, y);
    else
        put_pixels(out, picture, row, band, y);
    put_label(out, LEFT + CHART + RIGHT - 6, y + 14, "dim", "end",
              het_arena_printf(picture->arena, "%.1f %%",
                               100 * row->busy_s / picture->timeline->end_s));
}

static size_t count_blocks(const struct picture *picture)
{
    size_t count = 0;
    for (size_t i = 0; i < picture->row_count; i++)
        count += picture->rows[i].task_count;
    return count;
}

char *het_render_timeline_svg(struct het_arena *arena, const struct het_plan *plan,
                              const struct het_timeline *timeline)
{
    struct picture picture;
    struct het_writer out = { 0 };
    picture_init(&picture, arena, plan, timeline);
    bool has_blocks = count_blocks(&picture) <= HET_RENDER_MAX_BLOCKS;
    int bottom = TOP + (int)picture.band_count * BAND_HEAD +
                 (int)picture.row_count * (ROW + ROW_GAP);
    const char *hidden = name_hidden(&picture);
    int height = bottom + AXIS + (*hidden || !has_blocks ? 20 : 0);
    het_writer_put(&out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                   "width=\"%d\" height=\"%d\">\n",
                   LEFT + CHART + RIGHT, height, LEFT + CHART + RIGHT, height);
    put_style(&out);
    het_writer_put(&out, "<rect width=\"%d\" height=\"%d\" class=\"bg\"/>\n",
                   LEFT + CHART + RIGHT, height);
    put_label(&out, 14, 24, "ink", "start",
              het_arena_printf(arena,
                               "One iteration: %.6g s, %zu pipeline%s, %u layers, global "
                               "batch %u",
                               timeline->end_s, plan->pipeline_count,
                               plan->pipeline_count == 1 ? "" : "s", plan->layer_count,
                               plan->global_batch));
    put_legend(&out, &picture);
    put_axis(&out, &picture, bottom);
    double y = TOP;
    for (size_t b = 0; b < picture.band_count; b++) {
        const struct band *band = &picture.bands[b];
        put_label(&out, 14, y + 17, "ink", "start", name_band(&picture, band));
        y += BAND_HEAD;
        for (size_t r = 0; r < band->row_count; r++, y += ROW + ROW_GAP)
            put_stage(&out, &picture, &picture.rows[band->first_row + r], b, y,
                      has_blocks);
    }
    const char *coarse = has_blocks ? "" : "a pixel shows what takes most of its time";
    if (*hidden || *coarse)
        put_label(&out, 14, height - 10, "dim", "start",
                  het_arena_printf(arena, "%s%s%s", hidden,
                                   *hidden && *coarse ? "; " : "", coarse));
    het_writer_put(&out, "</svg>\n");
    return het_writer_take(&out, arena);
}

/* ---- trace ---- */

static void put_names(struct het_writer *out, struct het_arena *arena,
                      const struct het_plan *plan)
{
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        het_writer_put(out,
                       "%s{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{"
                       "\"name\":\"pipeline %u\"}}",
                       p ? ",\n" : "\n", p, p);
        for (uint32_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            het_writer_put(out,
                           ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":"
                           "\"thread_name\",\"args\":{\"name\":",
                           p, s);
            het_writer_put_quoted(
                out, het_arena_printf(arena, "stage %u: layers %u-%u, %s", s,
                                      stage->first_layer,
                                      stage->first_layer + stage->layer_count - 1,
                                      name_gpus(arena, stage)));
            het_writer_put(out, "}}");
        }
    }
}

char *het_render_timeline_trace(struct het_arena *arena, const struct het_plan *plan,
                                const struct het_timeline *timeline)
{
    struct het_writer out = { 0 };
    het_writer_put(&out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_names(&out, arena, plan);
    for (size_t i = 0; i < timeline->task_count; i++) {
        const struct het_task *task = &timeline->tasks[i];
        const char *name = het_task_kind_name(task->kind);
        het_writer_put(&out,
                       ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,"
                       "\"cat\":\"%s\",\"name\":\"%s",
                       task->pipeline, task->stage, task->start_s * 1e6,
                       (task->end_s - task->start_s) * 1e6, name, name);
        if (shade_of(task->kind) < SHADE_SYNC)
            het_writer_put(&out, " %u\",\"args\":{\"microBatch\":%u}}", task->microbatch,
                           task->microbatch);
        else
            het_writer_put(&out, "\"}");
    }
    het_writer_put(&out, "\n]}\n");
    return het_writer_take(&out, arena);
}
