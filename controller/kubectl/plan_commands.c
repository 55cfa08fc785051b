#include "controller/kubectl/plan_commands.h"

#include "controller/kubectl/planner_question.h"
#include "controller/kubectl/text_table.h"

#include <inttypes.h>
#include <string.h>

static bool is_output(const struct session *session, const char *form)
{
    const char *output = session->options->output;
    return output && !strcmp(output, form);
}

static enum het_charset charset(const struct session *session)
{
    return session->host->is_utf8 ? HET_UTF8 : HET_ASCII;
}

static void print_json(const struct session *session, const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    fprintf(session->host->out, "%s\n", text);
}

/* ---- plan ---- */

/* A job of a file, in the namespace that it says unless the options say one. */
static int read_job(struct session *session, const char *path, json_t **ret,
                    struct het_error *err)
{
    json_auto_t *job = NULL;
    if (het_read_file(path, &job, err) < 0)
        return -1;
    if (strcmp(object_text(job, "kind"), kube_job.kind) != 0 || !*kube_name(job))
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: must be a HeteroTrainingJob with a name", path);
    if (!session->options->ns && *kube_namespace(job))
        session->ns = het_arena_strdup(session->arena, kube_namespace(job));
    *ret = TAKE(job);
    return 0;
}

/* Jobs are called by DNS labels: what has a dot, or a slash that is not that of "htj/",
 * is a file. */
static bool is_file(const char *word)
{
    return strchr(word, '.') || (strchr(word, '/') && strncmp(word, "htj/", 4) != 0);
}

static int find_job(struct session *session, json_t **ret, bool *ret_in_cluster,
                    struct het_error *err)
{
    const struct htj_options *options = session->options;
    const char *name = NULL;
    if (options->file && options->word_count)
        return het_fail(err, HET_BAD_INPUT, "either a JOB or a FILE, not both");
    if (!options->file && session_get_name(session, 1, &name, err) < 0)
        return -1;
    *ret_in_cluster = !options->file && !is_file(name);
    return *ret_in_cluster
               ? session_get_job(session, name, ret, err)
               : read_job(session, options->file ? options->file : name, ret, err);
}

/* How it compares with the plan that the job has. */
static void print_change(const struct session *session, const json_t *job,
                         const struct het_plan *plan)
{
    FILE *out = session->host->out;
    const struct het_prediction *predicted = &plan->predicted;
    int64_t generation = object_integer(job, "status.plan.revision", 0);
    const char *hash = het_plan_json_hash(session->arena, plan);
    if (generation && !strcmp(object_text(job, "status.plan.hash"), hash))
        fprintf(out, "\nThis is the plan that the job has (revision %" PRId64 ").\n",
                generation);
    else if (generation && predicted->from_iteration_s > 0)
        fprintf(out,
                "\nThe plan that the job has (revision %" PRId64
                ") takes %.6g s a step: this one does %+.1f %% in throughput.\n",
                generation, predicted->from_iteration_s,
                100 * (predicted->from_iteration_s / predicted->iteration_s - 1));
    else if (generation)
        fprintf(out,
                "\nThe plan that the job has (revision %" PRId64
                ") cannot run on these GPUs.\n",
                generation);
}

static int search(struct session *session, const json_t *document, const json_t *job,
                  struct het_error *err)
{
    struct het_question question;
    const struct het_plan *plan;
    if (het_question_read(session->arena, document, &question, err) < 0 ||
        het_question_plan(session->arena, &question, &plan, err) < 0)
        return -1;
    if (is_output(session, "json")) {
        json_auto_t *json = het_plan_json(plan);
        print_json(session, json);
    } else {
        fputs(het_render_table(session->arena, &question.problem, plan,
                               session->host->width, charset(session)),
              session->host->out);
        print_change(session, job, plan);
    }
    return 0;
}

int htj_plan(struct session *session, struct het_error *err)
{
    json_auto_t *job = NULL, *document = NULL;
    bool is_in_cluster = true;
    if (find_job(session, &job, &is_in_cluster, err) < 0 ||
        planner_question_make(session, job, is_in_cluster, NULL, &document, err) < 0)
        return -1;
    return search(session, document, job, err);
}

/* ---- explain, timeline ---- */

/* What both begin with: a plan of the job, and the question it answers. */
static int take_plan(struct session *session, struct shown_plan *ret_shown,
                     struct het_question *ret_question, json_t **ret_document,
                     struct het_error *err)
{
    const char *name;
    json_auto_t *job = NULL;
    if (session_get_name(session, 1, &name, err) < 0 ||
        session_get_job(session, name, &job, err) < 0 ||
        session_get_plan(session, job, ret_shown, err) < 0 ||
        planner_question_make(session, job, true, ret_shown->plan, ret_document, err) < 0)
        return -1;
    json_object_del(ret_shown->json, "idle"); /* of the cluster as it was then */
    return het_question_read(session->arena, *ret_document, ret_question, err);
}

/* Which plan it is about, above the text for people. */
static void print_heading(const struct session *session, const struct shown_plan *shown)
{
    FILE *out = session->host->out;
    if (shown->generation)
        fprintf(out, "plan revision %" PRId64 ": ", shown->generation);
    else
        fputs("candidate: ", out);
    fprintf(out, "%s\n\n", het_render_summary(session->arena, shown->plan));
}

/* The spec, or the cluster, may be another one since. */
static int fail_for_plan(const struct shown_plan *shown, struct het_error *err)
{
    return shown->generation
               ? het_wrap(err, "plan revision %" PRId64 ", for the job as it is now",
                          shown->generation)
               : het_wrap(err, "candidate, for the job as it is now");
}

static int explain(struct session *session, const struct shown_plan *shown,
                   const struct het_question *question, struct het_error *err)
{
    struct het_explanation explanation;
    const struct het_plan *plan;
    if (het_question_explain(session->arena, question, shown->json,
                             !session->options->is_quick, &plan, &explanation, err) < 0)
        return fail_for_plan(shown, err);
    if (is_output(session, "json")) {
        json_auto_t *json = het_question_explanation_json(question, &explanation);
        print_json(session, json);
        return 0;
    }
    print_heading(session, shown);
    fputs(het_render_explanation(session->arena, &question->problem, plan, &explanation,
                                 session->host->width),
          session->host->out);
    return 0;
}

int htj_explain(struct session *session, struct het_error *err)
{
    struct shown_plan shown = { 0 };
    struct het_question question;
    json_auto_t *document = NULL;
    int result = take_plan(session, &shown, &question, &document, err);
    if (!result)
        result = explain(session, &shown, &question, err);
    shown_plan_fini(&shown);
    return result;
}

static int draw(struct session *session, const struct shown_plan *shown,
                const struct het_question *question, struct het_error *err)
{
    struct het_arena *arena = session->arena;
    FILE *out = session->host->out;
    struct het_timeline timeline;
    const struct het_plan *plan;
    if (het_question_simulate(arena, question, shown->json, &plan, &timeline, err) < 0)
        return fail_for_plan(shown, err);
    if (session->options->is_svg || is_output(session, "svg")) {
        fputs(het_render_timeline_svg(arena, plan, &timeline), out);
    } else if (is_output(session, "trace")) {
        fputs(het_render_timeline_trace(arena, plan, &timeline), out);
    } else {
        print_heading(session, shown);
        fputs(het_render_timeline_text(arena, plan, &timeline, session->host->width,
                                       charset(session)),
              out);
    }
    return 0;
}

int htj_timeline(struct session *session, struct het_error *err)
{
    struct shown_plan shown = { 0 };
    struct het_question question;
    json_auto_t *document = NULL;
    int result = take_plan(session, &shown, &question, &document, err);
    if (!result)
        result = draw(session, &shown, &question, err);
    shown_plan_fini(&shown);
    return result;
}
