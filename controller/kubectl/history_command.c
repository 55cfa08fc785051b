#include "controller/kubectl/history_command.h"

#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"
#include "controller/kubectl/text_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- plans ---- */

static json_t *annotation_json(const json_t *map, const char *key)
{
    const char *text = kube_annotation(map, key);
    return *text ? json_string(text) : NULL;
}

static json_t *annotation_number(const json_t *map, const char *key)
{
    const char *text = kube_annotation(map, key);
    return *text ? json_integer(strtoll(text, NULL, 10)) : NULL;
}

/* A plan ConfigMap as a line of the history. */
static json_t *plan_entry(struct session *session, const json_t *map)
{
    const struct het_plan *plan = plan_object_read(session->arena, map);
    json_t *entry =
        json_pack("{s:I, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
                  "revision", (json_int_t)plan_object_generation(map), "computedAt",
                  annotation_json(map, ANNOTATION_COMPUTED_AT), "trigger",
                  annotation_json(map, ANNOTATION_TRIGGER), "hash",
                  annotation_json(map, ANNOTATION_PLAN_HASH), "restarts",
                  annotation_number(map, ANNOTATION_RESTARTS), "replans",
                  annotation_number(map, ANNOTATION_REPLANS), "plannerMilliseconds",
                  annotation_number(map, ANNOTATION_PLANNER_MS), "leader",
                  annotation_json(map, ANNOTATION_LEADER), "preempts",
                  annotation_json(map, ANNOTATION_PREEMPTS), "retired",
                  annotation_json(map, ANNOTATION_RETIRED), "retiredAt",
                  annotation_json(map, ANNOTATION_RETIRED_AT));
    if (plan) {
        json_object_set_new(entry, "summary",
                            het_json_text(het_render_summary(session->arena, plan)));
        json_object_set_new(entry, "gpus", json_integer(het_plan_gpu_count(plan)));
        json_object_set_new(entry, "iterationSeconds",
                            json_real(plan->predicted.iteration_s));
    }
    return entry;
}

static int compare_generations(const void *a, const void *b)
{
    int64_t left = object_integer(*(json_t *const *)a, "revision", 0);
    int64_t right = object_integer(*(json_t *const *)b, "revision", 0);
    return (left > right) - (left < right);
}

static int compare_times(const void *a, const void *b)
{
    int order = strcmp(object_text(*(json_t *const *)a, "time"),
                       object_text(*(json_t *const *)b, "time"));
    return order ? order
                 : strcmp(object_text(*(json_t *const *)a, "note"),
                          object_text(*(json_t *const *)b, "note"));
}

/* The entries of `list` in order; takes the list. */
static json_t *sorted(json_t *list, int (*compare)(const void *a, const void *b))
{
    size_t count = json_array_size(list);
    json_t **entries = xreallocarray(NULL, count + 1, sizeof(json_t *));
    json_t *result = json_array();
    for (size_t i = 0; i < count; i++)
        entries[i] = json_array_get(list, i);
    qsort(entries, count, sizeof(json_t *), compare);
    for (size_t i = 0; i < count; i++)
        json_array_append(result, entries[i]);
    free(entries);
    json_decref(list);
    return result;
}

static int list_plans(struct session *session, const json_t *job, json_t **ret,
                      struct het_error *err)
{
    auto_free char *name = kube_escape(kube_name(job));
    auto_free char *selector =
        xasprintf("labelSelector=heterotrain.io%%2Fjob-name%%3D%s", name);
    json_auto_t *maps = NULL;
    if (blocking_client_list(session->client, &kube_config_map, session->ns, selector,
                             NULL, &maps, err) != KUBE_OK)
        return -1;
    json_t *plans = json_array();
    for (size_t i = 0; i < json_array_size(maps); i++) {
        const json_t *map = json_array_get(maps, i);
        if (plan_object_generation(map) > 0 &&
            !strcmp(kube_controller_uid(map), kube_uid(job)))
            json_array_append_new(plans, plan_entry(session, map));
    }
    *ret = sorted(plans, compare_generations);
    return 0;
}

/* ---- events ---- */

/* When it was seen last, to the second. */
static json_t *event_time(const json_t *event)
{
    static const char *const paths[] = { "series.lastObservedTime", "eventTime",
                                         "deprecatedLastTimestamp",
                                         "metadata.creationTimestamp" };
    char text[TIMESTAMP_SIZE];
    int64_t ms;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (timestamp_parse(json_string_value(object_at(event, paths[i])), &ms) == 0) {
            timestamp_format(ms, text);
            return json_string(text);
        }
    return json_string("");
}

static json_t *event_entry(const json_t *event)
{
    json_t *entry = json_pack("{s:o, s:O*, s:O*, s:O*}", "time", event_time(event),
                              "type", object_at(event, "type"), "reason",
                              object_at(event, "reason"), "note",
                              object_at(event, "note"));
    int64_t count = object_integer(event, "series.count", 0);
    if (count > 1)
        json_object_set_new(entry, "count", json_integer(count));
    return entry;
}

/* Without the right to, the history has no events, and says so. */
static int list_events(struct session *session, const json_t *job, json_t **ret,
                       struct het_error *err)
{
    auto_free char *name = kube_escape(kube_name(job));
    auto_free char *selector =
        xasprintf("fieldSelector=regarding.kind%%3D%s%%2Cregarding.name%%3D%s",
                  kube_job.kind, name);
    json_auto_t *events = NULL;
    enum kube_outcome outcome = blocking_client_list(
        session->client, &kube_event, session->ns, selector, NULL, &events, err);
    *ret = json_array();
    if (outcome == KUBE_DENIED)
        session_note(session, "events are not shown: %s", err->message);
    else if (outcome != KUBE_OK)
        return -1;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (!strcmp(object_text(event, "regarding.uid"), kube_uid(job)))
            json_array_append_new(*ret, event_entry(event));
    }
    *ret = sorted(*ret, compare_times);
    return 0;
}

/* ---- for people ---- */

static void print_plans(const struct session *session, const json_t *plans)
{
    static const char *const headings[] = { "GEN",      "MADE", "WHY", "GPUS",
                                            "S A STEP", "PLAN", NULL };
    struct het_arena *arena = session->arena;
    struct text_table *table = text_table_new(arena, headings);
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const json_t *entry = json_array_get(plans, i);
        const char *summary = object_text(entry, "summary");
        const char *retired = object_text(entry, "retired");
        const char *cells[] = {
            het_arena_printf(arena, "%" PRId64, object_integer(entry, "revision", 0)),
            object_text(entry, "computedAt"),
            object_text(entry, "trigger"),
            het_arena_printf(arena, "%" PRId64, object_integer(entry, "gpus", 0)),
            het_arena_printf(arena, "%.4g",
                             json_real_value(object_at(entry, "iterationSeconds"))),
            het_arena_printf(arena, "%s%s%s%s%s", *summary ? summary : "(cannot be read)",
                             *retired ? "; ended by " : "", retired,
                             *retired ? " at " : "", object_text(entry, "retiredAt")),
        };
        text_table_add(table, cells);
    }
    text_table_print(table, session->host->out, session->host->width);
}

static void print_decision(const struct session *session, const json_t *decision)
{
    struct het_arena *arena = session->arena;
    if (!decision)
        return;
    const char *text = het_arena_printf(
        arena, "%s: %s (%s), because of %s.", object_text(decision, "time"),
        object_text(decision, "result"), object_text(decision, "reason"),
        object_text(decision, "trigger"));
    if (object_at(decision, "candidateHash"))
        text = het_arena_printf(
            arena,
            "%s It takes %.4g s a step, the plan that runs %.4g s (%+" PRId64
            " %%): %" PRId64 " s gained in %" PRId64 " s, for a restart of %" PRId64
            " s.",
            text,
            (double)object_integer(decision, "candidateIterationMilliseconds", 0) / 1000,
            (double)object_integer(decision, "currentIterationMilliseconds", 0) / 1000,
            object_integer(decision, "gainPercent", 0),
            object_integer(decision, "benefitSeconds", 0),
            object_integer(decision, "horizonSeconds", 0),
            object_integer(decision, "costSeconds", 0));
    fputs("\nLast plan that was weighed against the one that runs:\n",
          session->host->out);
    text_table_print_text(session->host->out, "", text_table_printable(arena, text), 2,
                          session->host->width);
}

static void print_events(const struct session *session, const json_t *events)
{
    static const char *const headings[] = { "WHEN", "WHAT", "WHY", NULL };
    struct het_arena *arena = session->arena;
    struct text_table *table = text_table_new(arena, headings);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *entry = json_array_get(events, i);
        int64_t count = object_integer(entry, "count", 0);
        const char *cells[] = {
            object_text(entry, "time"),
            object_text(entry, "reason"),
            count > 1 ? het_arena_printf(arena, "%s (%" PRId64 " times)",
                                         object_text(entry, "note"), count)
                      : object_text(entry, "note"),
        };
        text_table_add(table, cells);
    }
    fputs("\n", session->host->out);
    text_table_print(table, session->host->out, session->host->width);
}

static void print_history(const struct session *session, const json_t *history)
{
    const json_t *plans = json_object_get(history, "plans");
    const json_t *events = json_object_get(history, "events");
    if (json_array_size(plans))
        print_plans(session, plans);
    else
        fputs("No plan yet.\n", session->host->out);
    print_decision(session, json_object_get(history, "lastReplanDecision"));
    if (json_array_size(events))
        print_events(session, events);
}

int htj_history(struct session *session, struct het_error *err)
{
    const char *name;
    json_auto_t *job = NULL, *plans = NULL, *events = NULL;
    if (session_get_name(session, 1, &name, err) < 0 ||
        session_get_job(session, name, &job, err) < 0 ||
        list_plans(session, job, &plans, err) < 0 ||
        list_events(session, job, &events, err) < 0)
        return -1;
    json_auto_t *history =
        json_pack("{s:s, s:s, s:O, s:O*, s:O}", "namespace", session->ns, "job",
                  kube_name(job), "plans", plans, "lastReplanDecision",
                  object_at(job, "status.lastReplanDecision"), "events", events);
    const char *output = session->options->output;
    if (output && !strcmp(output, "json")) {
        auto_free char *text = het_json_canonical(history);
        fprintf(session->host->out, "%s\n", text);
    } else {
        print_history(session, history);
    }
    return 0;
}
