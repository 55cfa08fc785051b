#include "planner/hetplan.h"

#include "planner/cost/bound.h"
#include "planner/format/document/answer_text.h"
#include "planner/format/document/plan_json.h"
#include "planner/format/document/question.h"
#include "planner/format/document/render_json.h"
#include "planner/format/yaml_read.h"
#include "planner/render/people/explanation.h"
#include "planner/render/people/table.h"
#include "planner/render/people/timeline.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* "question" is the whole, the others replace its members. */
static const char *const part_names[] = {
    "question", "cluster", "pods",   "profile",
    "hardware", "network", "unused", "mixedVendorRuntimes",
    "job",
};
#define PARTS (sizeof part_names / sizeof *part_names)

#define WIDTH_LEAST 70
#define WIDTH_MOST  1000

struct het_planner {
    char *parts[PARTS]; /* NULL: not set */
    char *answer;       /* the last one; NULL: none */
    int width;
    enum het_charset charset;
    void (*progress)(void *context, const struct het_progress *progress);
    void *progress_context;
    atomic_bool is_cancelled;
    enum het_status status;
    struct het_error err;
};

/* One question on its way to the answer. What `make` allocates is gone when it has
 * returned (het_memory_scope), JSON as well: in programs of ours by json_set_alloc_funcs,
 * in the library because its jansson calls xmalloc. So nothing is given back here. */
struct call {
    struct het_planner *planner;
    const char *(*make)(struct call *call);
    const char *plan, *other, *runtime; /* texts that were given */
    enum het_form form;
    bool searches, with_price;
    locale_t callers_locale;
    double bound_s; /* 0: not worked out */
    /* Of `make`. */
    struct het_arena *arena;
    struct het_question question;
    /* What it came to. */
    char *answer;
    enum het_status status;
    struct het_error err;
};

/* ---- a planner ---- */

const char *het_version(void)
{
    return HET_VERSION;
}

struct het_planner *het_planner_new(void)
{
    struct het_planner *planner = calloc(1, sizeof *planner);
    if (!planner)
        return NULL;
    planner->width = 100;
    planner->charset = HET_ASCII;
    atomic_init(&planner->is_cancelled, false);
    return planner;
}

void het_planner_free(struct het_planner *planner)
{
    if (!planner)
        return;
    for (size_t i = 0; i < PARTS; i++)
        free(planner->parts[i]);
    free(planner->answer);
    free(planner);
}

enum het_status het_planner_status(const struct het_planner *planner)
{
    return planner->status;
}

const char *het_planner_message(const struct het_planner *planner)
{
    return planner->err.message;
}

const char *het_planner_path(const struct het_planner *planner)
{
    return planner->err.path;
}

void het_planner_set_width(struct het_planner *planner, int columns, int is_utf8)
{
    planner->width = columns < WIDTH_LEAST  ? WIDTH_LEAST
                     : columns > WIDTH_MOST ? WIDTH_MOST
                                            : columns;
    planner->charset = is_utf8 ? HET_UTF8 : HET_ASCII;
}

void het_planner_on_progress(struct het_planner *planner,
                             void (*progress)(void *context,
                                              const struct het_progress *progress),
                             void *context)
{
    planner->progress = progress;
    planner->progress_context = context;
}

void het_planner_cancel(struct het_planner *planner)
{
    atomic_store(&planner->is_cancelled, true);
}

static enum het_status end(struct het_planner *planner, enum het_status status)
{
    static const struct het_error nothing;
    planner->status = status;
    if (status == HET_STATUS_DONE)
        planner->err = nothing;
    if (status == HET_STATUS_OUT_OF_MEMORY)
        het_fail(&planner->err, HET_IO, "out of memory");
    return status;
}

static enum het_status refuse_part(struct het_planner *planner, const char *part)
{
    het_fail(&planner->err, HET_BAD_INPUT,
             "%.60s: no part of a question; parts are question, profile, cluster, job, "
             "pods, hardware, network, unused and mixedVendorRuntimes",
             part ? part : "NULL");
    return end(planner, HET_STATUS_BAD_INPUT);
}

enum het_status het_planner_set(struct het_planner *planner, const char *part,
                                const char *text)
{
    size_t at = 0;
    while (at < PARTS && (!part || strcmp(part_names[at], part) != 0))
        at++;
    if (at == PARTS)
        return refuse_part(planner, part);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return end(planner, HET_STATUS_OUT_OF_MEMORY);
    for (size_t i = at; i < (at ? at + 1 : PARTS); i++) {
        free(planner->parts[i]);
        planner->parts[i] = NULL;
    }
    planner->parts[at] = copy;
    return end(planner, HET_STATUS_DONE);
}

/* ---- a call ---- */

static void take_answer(void *context)
{
    struct call *call = context;
    call->arena = het_arena_new();
    const char *text = call->make(call);
    call->answer = text ? strdup(text) : NULL; /* which outlives the scope */
    if (text && !call->answer)
        call->status = HET_STATUS_OUT_OF_MEMORY;
}

static enum het_status status_of(const struct het_error *err)
{
    return err->code == HET_NO_PLAN     ? HET_STATUS_NO
           : err->code == HET_CUT_SHORT ? HET_STATUS_CUT_SHORT
                                        : HET_STATUS_BAD_INPUT;
}

/* Runs the call under the locale "C", which is where numbers have points. */
static const char *answer(struct call *call)
{
    struct het_planner *planner = call->planner;
    call->callers_locale = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (het_memory_scope(take_answer, call) < 0)
        call->status = HET_STATUS_OUT_OF_MEMORY;
    uselocale(call->callers_locale);
    if (call->status == HET_STATUS_OUT_OF_MEMORY) {
        end(planner, call->status);
        return NULL;
    }
    if (!call->answer) {
        planner->err = call->err;
        end(planner, status_of(&call->err));
        return NULL;
    }
    end(planner, call->status);
    free(planner->answer);
    planner->answer = call->answer;
    return planner->answer;
}

static int refuse(struct call *call, const char *path, const char *message)
{
    het_fail(&call->err, HET_BAD_INPUT, "%s: %s", path, message);
    het_error_locate(&call->err, path);
    return -1;
}

static int read_text(struct call *call, const char *what, const char *text, json_t **ret)
{
    if (!text)
        return refuse(call, what, "is missing");
    size_t length = strlen(text);
    if (!het_yaml_is_likely(text)) {
        if (het_json_decode(text, length, what, ret, &call->err) == 0)
            return 0;
    } else if (het_yaml_parse_one(text, length, ret, &call->err) == 0) {
        return 0;
    } else {
        het_wrap(&call->err, "%s", what);
    }
    het_error_locate(&call->err, what);
    return -1;
}

/* A plan that was given: an object. */
static int read_plan(struct call *call, const char *what, const char *text, json_t **ret)
{
    if (read_text(call, what, text, ret) < 0)
        return -1;
    return json_is_object(*ret) ? 0 : refuse(call, what, "must be an object");
}

/* The parts as one document. */
static int build_document(struct call *call, json_t **ret)
{
    char *const *parts = call->planner->parts;
    json_t *document = NULL, *part;
    if (!parts[0])
        document = json_object();
    else if (read_text(call, part_names[0], parts[0], &document) < 0)
        return -1;
    if (!json_is_object(document))
        return refuse(call, part_names[0],
                      "must be an object with cluster, profile and job");
    for (size_t i = 1; i < PARTS; i++) {
        if (!parts[i])
            continue;
        if (read_text(call, part_names[i], parts[i], &part) < 0)
            return -1;
        json_object_set_new(document, part_names[i], part);
    }
    *ret = document;
    return 0;
}

/* What the question says of a job is that of `plan`, if there is one. */
static int read_question(struct call *call, json_t *plan, json_t *from)
{
    json_t *document = NULL;
    if (build_document(call, &document) < 0)
        return -1;
    if (plan && !json_object_get(document, "job"))
        json_object_set_new(document, "job", json_object());
    json_t *job = json_object_get(document, "job");
    if (plan && json_is_object(job))
        het_question_take_batch(document, plan);
    if (from && json_is_object(job))
        json_object_set(job, "from", from);
    return het_question_read(call->arena, document, &call->question, &call->err);
}

/* The question about `call->plan`, which is read as well. */
static int read_question_of_plan(struct call *call, json_t **ret_plan)
{
    return read_plan(call, "plan", call->plan, ret_plan) < 0
               ? -1
               : read_question(call, *ret_plan, NULL);
}

static int need_form(struct call *call, bool is_picture)
{
    if (is_picture ? call->form > HET_FORM_JSON && call->form <= HET_FORM_TRACE
                   : call->form == HET_FORM_JSON || call->form == HET_FORM_TEXT)
        return 0;
    return refuse(call, "form",
                  is_picture ? "must be HET_FORM_TEXT, HET_FORM_SVG or HET_FORM_TRACE"
                             : "must be HET_FORM_JSON or HET_FORM_TEXT");
}

/* ---- progress ---- */

static void report(void *context, const struct het_search *search)
{
    struct call *call = context;
    const struct het_planner *planner = call->planner;
    if (!(call->bound_s > 0))
        call->bound_s = het_bound_floor(search->problem);
    const struct het_progress progress = {
        .algorithm = search->algorithm ? search->algorithm->name : "",
        .plans_priced = search->statistics.plans_priced,
        .best_s = search->incumbent ? search->incumbent_cost.iteration_s : 0,
        .bound_s = call->bound_s,
    };
    struct memory_scope *own = het_memory_scope_leave();
    locale_t c = uselocale(call->callers_locale);
    planner->progress(planner->progress_context, &progress);
    uselocale(c);
    het_memory_scope_enter(own);
}

static void watch_search(struct call *call)
{
    struct het_search_options *options = &call->question.options;
    options->stop = &call->planner->is_cancelled;
    if (call->planner->progress) {
        options->progress = report;
        options->progress_context = call;
    }
}

/* ---- answers ---- */

static const char *make_plan(struct call *call)
{
    const struct het_plan *plan;
    if (need_form(call, false) < 0 || read_question(call, NULL, NULL) < 0)
        return NULL;
    watch_search(call);
    if (het_question_plan(call->arena, &call->question, &plan, &call->err) < 0)
        return NULL;
    if (call->form == HET_FORM_TEXT)
        return het_render_table(call->arena, &call->question.problem, plan,
                                call->planner->width, call->planner->charset);
    return het_json_canonical(het_plan_json(plan));
}

const char *het_planner_plan(struct het_planner *planner, enum het_form form)
{
    struct call call = { .planner = planner, .make = make_plan, .form = form };
    const char *text = answer(&call);
    atomic_store(&planner->is_cancelled, false);
    return text;
}

static const char *make_verdict(struct call *call)
{
    static const char *const price[] = {
        "iterationSeconds", "closedFormSeconds", "parts",        "peakMemoryBytes",
        "profile",          "extrapolated",      "assumedLinks",
    };
    json_t *plan;
    if (need_form(call, false) < 0 || read_question_of_plan(call, &plan) < 0)
        return NULL;
    json_t *verdict = het_question_judge(call->arena, &call->question, plan);
    if (!json_is_true(json_object_get(verdict, "valid")))
        call->status = HET_STATUS_NO;
    for (size_t i = 0; !call->with_price && i < sizeof price / sizeof *price; i++)
        json_object_del(verdict, price[i]);
    return call->form == HET_FORM_TEXT ? het_answer_verdict_text(call->arena, verdict)
                                       : het_json_canonical(verdict);
}

const char *het_planner_cost(struct het_planner *planner, const char *plan,
                             enum het_form form)
{
    struct call call = { .planner = planner,
                         .make = make_verdict,
                         .plan = plan,
                         .form = form,
                         .with_price = true };
    return answer(&call);
}

const char *het_planner_check(struct het_planner *planner, const char *plan,
                              enum het_form form)
{
    struct call call = {
        .planner = planner, .make = make_verdict, .plan = plan, .form = form
    };
    return answer(&call);
}

static const char *make_explanation(struct call *call)
{
    struct het_planner *planner = call->planner;
    struct het_explanation explanation;
    const struct het_plan *plan;
    json_t *json;
    if (need_form(call, false) < 0 || read_question_of_plan(call, &json) < 0)
        return NULL;
    watch_search(call);
    if (het_question_explain(call->arena, &call->question, json, call->searches, &plan,
                             &explanation, &call->err) < 0)
        return NULL;
    if (call->searches && atomic_load(&planner->is_cancelled)) {
        het_fail(&call->err, HET_CUT_SHORT, "cancelled before all searches were done");
        return NULL;
    }
    if (call->form == HET_FORM_TEXT)
        return het_render_explanation(call->arena, &call->question.problem, plan,
                                      &explanation, planner->width);
    return het_json_canonical(
        het_question_explanation_json(&call->question, &explanation));
}

const char *het_planner_explain(struct het_planner *planner, const char *plan,
                                int searches, enum het_form form)
{
    struct call call = { .planner = planner,
                         .make = make_explanation,
                         .plan = plan,
                         .searches = searches,
                         .form = form };
    const char *text = answer(&call);
    if (searches)
        atomic_store(&planner->is_cancelled, false);
    return text;
}

static const char *make_migration(struct call *call)
{
    json_t *plan, *from = NULL, *migration;
    if (need_form(call, false) < 0 ||
        (call->other && read_plan(call, "from", call->other, &from) < 0) ||
        read_plan(call, "plan", call->plan, &plan) < 0 ||
        read_question(call, plan, from) < 0 ||
        het_question_diff(call->arena, &call->question, plan, &migration, &call->err) < 0)
        return NULL;
    return call->form == HET_FORM_TEXT ? het_answer_migration_text(call->arena, migration)
                                       : het_json_canonical(migration);
}

const char *het_planner_diff(struct het_planner *planner, const char *from,
                             const char *plan, enum het_form form)
{
    struct call call = { .planner = planner,
                         .make = make_migration,
                         .plan = plan,
                         .other = from,
                         .form = form };
    return answer(&call);
}

static const char *make_timeline(struct call *call)
{
    const struct het_planner *planner = call->planner;
    struct het_timeline timeline;
    const struct het_plan *plan;
    json_t *json;
    if (need_form(call, true) < 0 || read_question_of_plan(call, &json) < 0 ||
        het_question_simulate(call->arena, &call->question, json, &plan, &timeline,
                              &call->err) < 0)
        return NULL;
    switch (call->form) {
    case HET_FORM_SVG:
        return het_render_timeline_svg(call->arena, plan, &timeline);
    case HET_FORM_TRACE:
        return het_render_timeline_trace(call->arena, plan, &timeline);
    case HET_FORM_JSON:
    case HET_FORM_TEXT:
        break;
    }
    return het_render_timeline_text(call->arena, plan, &timeline, planner->width,
                                    planner->charset);
}

const char *het_planner_simulate(struct het_planner *planner, const char *plan,
                                 enum het_form form)
{
    struct call call = {
        .planner = planner, .make = make_timeline, .plan = plan, .form = form
    };
    return answer(&call);
}

/* ---- rendering ---- */

static int read_pods(struct call *call, const char *text, struct het_render_job *ret)
{
    static const char *const fields[] = { "job",      "namespace",  "service",
                                          "revision", "masterPort", NULL };
    json_t *json = json_object();
    uint32_t generation = 1, port = 29500;
    if (text && read_text(call, "pods", text, &json) < 0)
        return -1;
    const struct het_view root = het_view_root(json);
    const struct het_view job = het_view_get(&root, "job");
    const struct het_view ns = het_view_get(&root, "namespace");
    const struct het_view service = het_view_get(&root, "service");
    const struct het_view number = het_view_get(&root, "revision");
    const struct het_view master = het_view_get(&root, "masterPort");
    *ret = (struct het_render_job){ .job = "job",
                                    .ns = "default",
                                    .plan_path = "/etc/hetero-plan/plan.json" };
    if (het_view_object(&root, &call->err) < 0 ||
        het_view_members(&root, fields, &call->err) < 0 ||
        het_view_name(&job, call->arena, &ret->job, &call->err) < 0 ||
        het_view_name(&ns, call->arena, &ret->ns, &call->err) < 0 ||
        het_view_name(&service, call->arena, &ret->service, &call->err) < 0 ||
        het_view_u32(&number, 1, INT32_MAX, &generation, &call->err) < 0 ||
        het_view_u32(&master, 1, UINT16_MAX, &port, &call->err) < 0) {
        het_error_locate(&call->err, "pods");
        return het_wrap(&call->err, "pods");
    }
    if (!ret->service)
        ret->service = ret->job;
    ret->generation = generation;
    ret->master_port = (uint16_t)port;
    return 0;
}

static const char *make_rendering(struct call *call)
{
    const struct het_runtime *runtime;
    struct het_render_job job;
    json_t *plan, *rendering;
    if (!call->runtime) {
        refuse(call, "runtime", "is missing");
        return NULL;
    }
    if (need_form(call, false) < 0)
        return NULL;
    if (!(runtime = het_runtime_find(call->runtime, &call->err))) {
        het_error_locate(&call->err, "runtime");
        return NULL;
    }
    if (read_pods(call, call->other, &job) < 0 ||
        read_plan(call, "plan", call->plan, &plan) < 0 ||
        het_render_json(call->arena, runtime, plan, job, &rendering, &call->err) < 0)
        return NULL;
    return call->form == HET_FORM_TEXT ? het_answer_rendering_text(call->arena, rendering)
                                       : het_json_canonical(rendering);
}

const char *het_planner_render(struct het_planner *planner, const char *plan,
                               const char *runtime, const char *pods, enum het_form form)
{
    struct call call = { .planner = planner,
                         .make = make_rendering,
                         .plan = plan,
                         .runtime = runtime,
                         .other = pods,
                         .form = form };
    return answer(&call);
}
