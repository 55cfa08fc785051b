/* planner/render/people/timeline.c */
#include "planner/render/people/timeline.h"

#include "planner/cost/schedule.h"
#include "tests/planner/toy_plan.h"
#include "tests/scale.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct het_timeline simulate(const struct toy *toy, const struct het_plan *plan)
{
    struct het_timeline timeline;
    struct het_cost cost;
    ck_assert_int_eq(
        het_schedule_simulate(toy->arena, &toy->problem, plan, &cost, &timeline, NULL),
        0);
    return timeline;
}

/* Two pipelines that do the same, and one of one stage. */
static struct het_plan three_pipelines(struct toy *toy)
{
    struct het_plan two = toy_two_pipelines(toy);
    struct het_stage whole = TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F1, 0, 1, 1));
    toy->workload.global_batch = 10;
    return TOY_PLAN(toy, two.pipelines[0], two.pipelines[1], TOY_PIPELINE(toy, 2, whole));
}

/* The timeline of test_simulate_plan.c: equal_pipelines_go_in_step_and_share_the_uplink;
 * then 48 ms of gradients and 12 of the optimizer. */
START_TEST(text_has_a_row_a_stage)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_timeline timeline = simulate(toy, &plan);
    ck_assert_str_eq(
        het_render_timeline_text(toy->arena, &plan, &timeline, 80, HET_ASCII),
        "0.182 s a step; a column is 0.00308 s\n"
        "f forward  B backward  - send, receive  = gradients  # optimizer  . bubble\n"
        "\n"
        "             |0 s            |0.05 s         |0.1 s          |0.15 s\n"
        "pipeline 0 and 1 like it: 2 micro-batches\n"
        "  0   1 slow fff---ff........-----BBBBBB....---BBBBBB===============####  29.7 %\n"
        "  1   1 fast ...---fffBBBBBBB-----fffBBBBBBB---......===============####  34.6 %\n"
        "\n"
        "At the end of a row: the share of the step that the stage computes.\n");
    toy_free(toy);
}
END_TEST

START_TEST(trace_has_every_task)
{
    struct toy *toy = toy_new();
    struct het_plan plan = three_pipelines(toy);
    struct het_timeline timeline = simulate(toy, &plan);
    json_t *trace =
        json_loads(het_render_timeline_trace(toy->arena, &plan, &timeline), 0, NULL);
    const json_t *events = json_object_get(trace, "traceEvents");
    size_t named = 0, tasks = 0, index;
    const json_t *event;
    json_array_foreach (events, index, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        named += !strcmp(phase, "M");
        if (strcmp(phase, "X") != 0)
            continue;
        const struct het_task *task = &timeline.tasks[tasks++];
        ck_assert_int_eq(json_integer_value(json_object_get(event, "pid")),
                         task->pipeline);
        ck_assert_int_eq(json_integer_value(json_object_get(event, "tid")), task->stage);
        ck_assert_double_eq_tol(json_number_value(json_object_get(event, "ts")),
                                task->start_s * 1e6, 1e-3);
        ck_assert_double_eq_tol(json_number_value(json_object_get(event, "dur")),
                                (task->end_s - task->start_s) * 1e6, 1e-3);
    }
    ck_assert_uint_eq(tasks, timeline.task_count);
    ck_assert_uint_eq(named, 3 + 5); /* pipelines, stages */
    json_decref(trace);
    toy_free(toy);
}
END_TEST

/* Whether `text` is one XML element: tags that close in order, attributes in quotes, no
 * bare & or < between. */
static bool is_well_formed(const char *text)
{
    char open[16][16];
    size_t depth = 0, roots = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '&' && strncmp(at, "&lt;", 4) != 0 && strncmp(at, "&gt;", 4) != 0 &&
            strncmp(at, "&amp;", 5) != 0)
            return false;
        if (*at != '<')
            continue;
        bool closes = at[1] == '/';
        const char *name = at + 1 + closes;
        size_t length = strcspn(name, " />\n");
        const char *end = name + length;
        for (bool is_quoted = false; *end && (is_quoted || *end != '>'); end++) {
            if (*end == '<')
                return false;
            is_quoted ^= *end == '"';
        }
        if (!*end || !length || length >= sizeof *open)
            return false;
        if (closes) {
            if (!depth-- || strncmp(open[depth], name, length) || open[depth][length])
                return false;
        } else if (end[-1] != '/') {
            roots += !depth;
            if (depth == 16)
                return false;
            memcpy(open[depth], name, length);
            open[depth++][length] = '\0';
        }
        at = end;
    }
    return depth == 0 && roots == 1;
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    while ((text = strstr(text, what)) != NULL) {
        found++;
        text++;
    }
    return found;
}

START_TEST(picture_has_a_block_a_task)
{
    struct toy *toy = toy_new();
    struct het_plan plan = three_pipelines(toy);
    struct het_replica odd = plan.pipelines[2].stages->replicas[0];
    odd.type_name = "a & <b>";
    struct het_stage stage = plan.pipelines[2].stages[0];
    stage.replicas = &odd;
    struct het_pipeline pipelines[] = { plan.pipelines[0], plan.pipelines[1],
                                        plan.pipelines[2] };
    pipelines[2].stages = &stage;
    plan.pipelines = pipelines;
    struct het_timeline timeline = simulate(toy, &plan);
    const char *svg = het_render_timeline_svg(toy->arena, &plan, &timeline);
    ck_assert(is_well_formed(svg));
    /* One of the two like pipelines: 2 * 8 tasks of the schedule; 4 of the other; each
     * stage's gradients and optimizer. */
    ck_assert_uint_eq(count(svg, "<title>"), 2 * 8 + 4 + 3 * 2);
    ck_assert_uint_eq(count(svg, "prefers-color-scheme:dark"), 1);
    ck_assert_ptr_nonnull(strstr(svg, "pipeline 0 and 1 like it: 2 micro-batches"));
    ck_assert_ptr_nonnull(strstr(svg, "a &amp; &lt;b&gt;"));
    ck_assert(!is_well_formed("<svg><g></svg></g>"));
    ck_assert(!is_well_formed("<svg a=\"1></svg>"));
    ck_assert(!is_well_formed("<svg>a & b</svg>"));
    toy_free(toy);
}
END_TEST

/* Pipelines of one GPU each that differ in their micro-batches. */
static struct het_plan many_pipelines(struct toy *toy, uint32_t pipelines, uint32_t least)
{
    struct het_pipeline *list =
        HET_ARENA_ARRAY(toy->arena, struct het_pipeline, pipelines);
    for (uint32_t p = 0; p < pipelines; p++)
        list[p] = TOY_PIPELINE(toy, least + p,
                               TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1)));
    return (struct het_plan){ .pipelines = list, .pipeline_count = pipelines };
}

START_TEST(large_pictures_stay_small_and_say_what_is_left_out)
{
    struct toy *toy = toy_new();
    struct het_plan plan = many_pipelines(toy, 200, 500);
    struct het_timeline timeline = simulate(toy, &plan);
    const char *svg = het_render_timeline_svg(toy->arena, &plan, &timeline);
    ck_assert(is_well_formed(svg));
    ck_assert_uint_lt(strlen(svg), 2u << 20);
    ck_assert_ptr_nonnull(strstr(svg, "not shown: 136 more pipelines; a pixel shows"));
    const char *text =
        het_render_timeline_text(toy->arena, &plan, &timeline, 100, HET_UTF8);
    ck_assert_uint_eq(count(text, "micro-batches\n"), HET_RENDER_MAX_ROWS);
    ck_assert_ptr_nonnull(strstr(text, "not shown: 136 more pipelines\n"));
    toy_free(toy);
}
END_TEST

START_TEST(random_timelines_are_well_formed)
{
    for (int seed = 1; seed <= SCALED(300); seed++) {
        struct toy *toy = toy_new();
        struct het_plan plan;
        uint64_t state = (uint64_t)seed;
        if (toy_random_plan(toy, &state, &plan)) {
            struct het_timeline timeline = simulate(toy, &plan);
            ck_assert_msg(
                is_well_formed(het_render_timeline_svg(toy->arena, &plan, &timeline)),
                "seed %d", seed);
            json_t *trace = json_loads(
                het_render_timeline_trace(toy->arena, &plan, &timeline), 0, NULL);
            ck_assert_msg(trace != NULL, "seed %d", seed);
            json_decref(trace);
            const char *text =
                het_render_timeline_text(toy->arena, &plan, &timeline, 90, HET_ASCII);
            for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
                ck_assert_msg(strcspn(line, "\n") <= 90, "seed %d: %s", seed, line);
        }
        toy_free(toy);
    }
}
END_TEST

Suite *test_timeline_suite(void)
{
    Suite *suite = suite_create("timeline");
    TCase *cases = tcase_create("timeline");
    tcase_add_test(cases, text_has_a_row_a_stage);
    tcase_add_test(cases, trace_has_every_task);
    tcase_add_test(cases, picture_has_a_block_a_task);
    tcase_add_test(cases, large_pictures_stay_small_and_say_what_is_left_out);
    tcase_add_test(cases, random_timelines_are_well_formed);
    suite_add_tcase(suite, cases);
    return suite;
}
