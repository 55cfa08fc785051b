#include "controller/kubectl/status_command.h"

#include "controller/decision/status.h"
#include "controller/kubectl/text_table.h"

#include <inttypes.h>
#include <string.h>

#define LABEL_WIDTH 11 /* of what stands before a line */
#define HASH_SHOWN  (int)(sizeof "sha256:0123456789abcdef" - 1)

/* ---- lines ---- */

static void print_line(const struct session *session, const char *label, const char *text)
{
    text_table_print_text(session->host->out, label,
                          text_table_printable(session->arena, text), LABEL_WIDTH,
                          session->host->width);
}

/* As much of a plan's hash as tells it from others, and as approve takes. */
static const char *short_hash(const struct session *session, const char *hash)
{
    return het_arena_printf(session->arena, "%.*s", HASH_SHOWN, hash);
}

static double seconds_at(const json_t *object, const char *path)
{
    return (double)object_integer(object, path, 0) / 1000;
}

/* ---- parts ---- */

static void print_plan(const struct session *session, const json_t *job)
{
    struct het_arena *arena = session->arena;
    const json_t *plan = object_at(job, "status.plan");
    if (!plan)
        return;
    print_line(session, "plan",
               het_arena_printf(
                   arena, "revision %" PRId64 ", by %s, made %s for %s",
                   object_integer(plan, "revision", 0), object_text(plan, "algorithm"),
                   object_text(plan, "computedAt"), object_text(plan, "trigger")));
    print_line(session, "", object_text(plan, "summary"));
    print_line(session, "", short_hash(session, object_text(plan, "hash")));
    const char *text = het_arena_printf(
        arena, "%.6g s a step, %s samples a second, %" PRId64 " %% of the memory%s",
        seconds_at(plan, "predicted.iterationMilliseconds"),
        object_text(plan, "predicted.samplesPerSecond"),
        object_integer(plan, "predicted.peakMemoryPercent", 0),
        json_is_true(object_at(plan, "predicted.estimated")) ? ", estimated" : "");
    double bound_s = seconds_at(plan, "predicted.lowerBoundMilliseconds");
    if (bound_s > 0)
        text = het_arena_printf(arena, "%s; no plan is below %.6g s", text, bound_s);
    print_line(session, "predicted", text);
}

static void print_gpus(const struct session *session, const json_t *job)
{
    struct het_arena *arena = session->arena;
    const json_t *list = object_at(job, "status.allocation");
    const json_t *demand = object_at(job, "status.unmetDemand");
    const char *text = "";
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        int64_t nodes = object_integer(entry, "nodes", 0);
        text = het_arena_printf(arena, "%s%s%" PRId64 " %s on %" PRId64 " node%s", text,
                                *text ? ", " : "", object_integer(entry, "gpus", 0),
                                object_text(entry, "gpuType"), nodes,
                                nodes == 1 ? "" : "s");
    }
    if (*text)
        print_line(session, "GPUs", text);
    text = "";
    for (size_t i = 0; i < json_array_size(demand); i++) {
        const json_t *entry = json_array_get(demand, i);
        text = het_arena_printf(arena, "%s%s%" PRId64 " %s", text, *text ? ", " : "",
                                object_integer(entry, "gpus", 0),
                                object_text(entry, "gpuType"));
    }
    if (*text)
        print_line(session, "missing", text);
}

/* GPUs of the cluster that the job does not use, and why. */
static void print_unused(const struct session *session, const json_t *job)
{
    struct het_arena *arena = session->arena;
    const json_t *list = object_at(job, "status.unusedGPUs");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *names = object_at(entry, "nodes");
        const char *type = object_text(entry, "gpuType"), *nodes = "";
        int64_t more = object_integer(entry, "nodeCount", 0) -
                       (int64_t)json_array_size(names);
        for (size_t k = 0; k < json_array_size(names); k++)
            nodes = het_arena_printf(arena, "%s%s%s", nodes, k ? ", " : "",
                                     object_string(json_array_get(names, k)));
        if (more > 0)
            nodes = het_arena_printf(arena, "%s and %" PRId64 " more", nodes, more);
        print_line(session, i ? "" : "unused",
                   het_arena_printf(arena, "%" PRId64 "%s%s on %s: %s (%s)",
                                    object_integer(entry, "gpus", 0), *type ? " " : "",
                                    type, nodes, object_text(entry, "message"),
                                    object_text(entry, "reason")));
    }
}

static void print_pods(const struct session *session, const json_t *job)
{
    static const char *const counts[] = { "gated", "pending", "running", "succeeded",
                                          "failed" };
    struct het_arena *arena = session->arena;
    const json_t *pods = object_at(job, "status.pods");
    int64_t desired = object_integer(pods, "desired", 0);
    int64_t restarts = object_integer(job, "status.restarts", 0);
    int64_t replans = object_integer(job, "status.replans", 0);
    const char *text = "";
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t count = object_integer(pods, counts[i], 0);
        if (count)
            text = het_arena_printf(arena, "%s%s%" PRId64 " %s", text, *text ? ", " : "",
                                    count, counts[i]);
    }
    if (desired || *text)
        print_line(
            session, "pods",
            het_arena_printf(arena, "%s of %" PRId64, *text ? text : "none", desired));
    print_line(session, "so far",
               het_arena_printf(arena, "%" PRId64 " restart%s, %" PRId64 " new plan%s",
                                restarts, restarts == 1 ? "" : "s", replans,
                                replans == 1 ? "" : "s"));
}

static void print_candidate(const struct session *session, const json_t *job)
{
    struct het_arena *arena = session->arena;
    const json_t *candidate = object_at(job, "status.candidate");
    if (!candidate)
        return;
    print_line(
        session, "candidate",
        het_arena_printf(arena, "%s, %.6g s a step", object_text(candidate, "summary"),
                         seconds_at(candidate, "predicted.iterationMilliseconds")));
    const char *hash = short_hash(session, object_text(candidate, "hash"));
    print_line(session, "", hash);
    if (!strcmp(object_text(job, "spec.replanPolicy.mode"), "Manual"))
        print_line(session, "",
                   het_arena_printf(arena, "kubectl htj approve %s %s -n %s",
                                    kube_name(job), hash, session->ns));
}

static void print_conditions(const struct session *session, const json_t *job)
{
    static const char *const headings[] = { "CONDITION", "IS", "SINCE", "WHY", NULL };
    struct text_table *table = text_table_new(session->arena, headings);
    const json_t *conditions = object_at(job, "status.conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        const char *message = object_text(condition, "message");
        const char *cells[] = {
            object_text(condition, "type"),
            object_text(condition, "status"),
            object_text(condition, "lastTransitionTime"),
            het_arena_printf(session->arena, "%s%s%s", object_text(condition, "reason"),
                             *message ? ": " : "", message),
        };
        text_table_add(table, cells);
    }
    fputs("\n", session->host->out);
    text_table_print(table, session->host->out, session->host->width);
}

int htj_status(struct session *session, struct het_error *err)
{
    const char *name;
    json_auto_t *job = NULL;
    if (session_get_name(session, 1, &name, err) < 0 ||
        session_get_job(session, name, &job, err) < 0)
        return -1;
    const char *output = session->options->output;
    if (output && !strcmp(output, "json")) {
        json_t *status = object_at(job, "status");
        auto_free char *text = status ? het_json_canonical(status) : xstrdup("{}");
        fprintf(session->host->out, "%s\n", text);
        return 0;
    }
    print_line(session, "job",
               het_arena_printf(session->arena, "%s/%s: %s", session->ns, kube_name(job),
                                kube_is_deleting(job)
                                    ? "being deleted"
                                    : status_state(object_at(job, "status"))));
    print_plan(session, job);
    print_gpus(session, job);
    print_unused(session, job);
    print_pods(session, job);
    print_candidate(session, job);
    if (json_array_size(object_at(job, "status.conditions")))
        print_conditions(session, job);
    else
        fputs("\nNothing is said about it yet: does the controller run?\n",
              session->host->out);
    return 0;
}
