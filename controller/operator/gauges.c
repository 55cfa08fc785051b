#include "controller/operator/gauges.h"

#include "controller/base/object.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- all of them ---- */

static void count_gpus(struct metrics *metrics, struct het_arena *arena,
                       const struct capacity *capacity)
{
    struct capacity_total *totals;
    size_t count = capacity_totals(capacity, arena, &totals);
    struct metrics_value *values =
        HET_ARENA_ARRAY(arena, struct metrics_value, 3 * count);
    for (size_t i = 0; i < count; i++) {
        const char *type = totals[i].type;
        values[3 * i] =
            (struct metrics_value){ LABELS(type, "free"), (double)totals[i].free };
        values[3 * i + 1] =
            (struct metrics_value){ LABELS(type, "used"), (double)totals[i].used };
        values[3 * i + 2] = (struct metrics_value){ LABELS(type, "unusable"),
                                                    (double)totals[i].unusable };
    }
    metrics_replace(metrics, METRIC_GPUS, values, 3 * count);
}

/* Seconds that the slowest of the job's pods reports; 0: none does. */
static double reported_seconds(const struct store *store, struct het_arena *arena,
                               const json_t *job)
{
    json_t **pods;
    size_t count = store_find_owned(store, &kube_pod, kube_uid(job), arena, &pods);
    double slowest = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t generation, index;
        if (!plan_object_is_of(pods[i], job) ||
            !plan_object_place(pods[i], &generation, &index))
            continue;
        const char *text = kube_annotation(pods[i], ANNOTATION_STEP_SECONDS);
        char *end;
        double seconds = strtod(text, &end);
        bool is_number = *text && !*end && isfinite(seconds);
        if (is_number && !kube_is_deleting(pods[i]) && seconds > slowest)
            slowest = seconds;
    }
    return slowest;
}

static double predicted_seconds(const json_t *job)
{
    return (double)object_integer(job, "status.plan.predicted.iterationMilliseconds", 0) /
           1000;
}

static void count_jobs(struct metrics *metrics, struct het_arena *arena,
                       const struct store *store)
{
    size_t count = store_count(store, &kube_job), predicted = 0, reported = 0;
    double by_state[STATUS_STATES] = { 0 };
    struct metrics_value *predictions =
        HET_ARENA_ARRAY(arena, struct metrics_value, count);
    struct metrics_value *reports = HET_ARENA_ARRAY(arena, struct metrics_value, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *job = store_at(store, &kube_job, i);
        const char *state = status_state(json_object_get(job, "status"));
        for (size_t k = 0; k < STATUS_STATES; k++)
            by_state[k] += !strcmp(state, status_state_name(k));
        if (strcmp(state, "Running") != 0)
            continue;
        struct metrics_labels labels = LABELS(kube_namespace(job), kube_name(job));
        double seconds = predicted_seconds(job);
        if (seconds > 0)
            predictions[predicted++] = (struct metrics_value){ labels, seconds };
        seconds = reported_seconds(store, arena, job);
        if (seconds > 0)
            reports[reported++] = (struct metrics_value){ labels, seconds };
    }
    for (size_t i = 0; i < STATUS_STATES; i++)
        metrics_set(metrics, METRIC_JOBS, by_state[i], LABELS(status_state_name(i)));
    metrics_replace(metrics, METRIC_PREDICTED_ITERATION, predictions, predicted);
    metrics_replace(metrics, METRIC_REPORTED_ITERATION, reports, reported);
}

void gauges_take(struct metrics *metrics, const struct store *store,
                 const struct capacity *capacity)
{
    if (!metrics)
        return;
    struct het_arena *arena = het_arena_new();
    count_gpus(metrics, arena, capacity);
    count_jobs(metrics, arena, store);
    het_arena_free(arena);
}

/* ---- one that changed ---- */

void gauges_note_job(struct metrics *metrics, const json_t *before, const json_t *after)
{
    static const char replans[] = "status.replans", last[] = "status.lastReplanDecision";
    if (!metrics || !before || !after)
        return;
    if (object_integer(after, replans, 0) > object_integer(before, replans, 0))
        metrics_add(metrics, METRIC_REPLANS, 1,
                    LABELS(object_text(after, "status.plan.trigger"), "Replaced"));
    const json_t *decision = object_at(after, last);
    const char *result = object_text(decision, "result");
    if (!json_equal(decision, object_at(before, last)) && !strcmp(result, "Rejected"))
        metrics_add(metrics, METRIC_REPLANS, 1,
                    LABELS(object_text(decision, "trigger"), result));
}
