#include "controller/base/metrics.h"

#include "planner/modules.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct description {
    const char *name, *help;
    enum kind kind;
    const char *labels[METRICS_LABELS];
    const double *buckets; /* ascending, ends with 0 */
    size_t max_series;
};

/* From what a store look-up takes to what a search may take. */
static const double quick_s[] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                  0.005,  0.01,    0.025,  0.05,  0.1,
                                  0.25,   0.5,     1,      5,     0 };
static const double request_s[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                    0.5,   1,      2.5,   5,    10,    30,   60,  0 };
static const double plan_s[] = { 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,   2.5,
                                 5,    10,    20,   30,  60,   120, 300, 0 };
static const double work_s[] = { 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1,
                                 5,     10,    30,   60,   300, 0 };
static const double gap[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                              0.1,   0.2,    0.3,   0.5,  1,     0 };

/* The most series, then the names of the labels. */
#define TALLY(its_name, its_help, most, ...)                                             \
    {                                                                                    \
        .name = (its_name), .help = (its_help), .kind = COUNTER, .max_series = (most),   \
        .labels = {                                                                      \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define LEVEL(its_name, its_help, most, ...)                                             \
    {                                                                                    \
        .name = (its_name), .help = (its_help), .kind = GAUGE, .max_series = (most),     \
        .labels = {                                                                      \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define SPREAD(its_name, its_help, its_buckets, most, ...)                               \
    {                                                                                    \
        .name = (its_name), .help = (its_help), .kind = HISTOGRAM,                       \
        .buckets = (its_buckets), .max_series = (most), .labels = {                      \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

static const struct description table[METRIC_COUNT] = {
    [METRIC_BUILD_INFO] =
        LEVEL("heterotrain_build_info", "1; the label says which build.", 1, "version"),
    [METRIC_LEADER] =
        LEVEL("heterotrain_leader", "Whether this replica decides.", 1, NULL),
    [METRIC_SYNCED] = LEVEL("heterotrain_synced",
                            "Whether all that is watched has been listed.", 1, NULL),
    [METRIC_LOOP_SECONDS] = SPREAD("heterotrain_loop_duration_seconds",
                                   "Work of one turn of the loop, waiting left out.",
                                   quick_s, 1, NULL),
    [METRIC_RECONCILE_SECONDS] = SPREAD("heterotrain_reconcile_duration_seconds",
                                        "Snapshot and decision of one job.", quick_s, 1,
                                        NULL),
    [METRIC_DECISIONS] =
        TALLY("heterotrain_decisions_total", "Decisions about jobs.", 1, NULL),
    [METRIC_ACTIONS] = TALLY("heterotrain_actions_total",
                             "Writes and questions that were decided.", 1, NULL),
    [METRIC_WRITE_FAILURES] = TALLY("heterotrain_write_failures_total",
                                    "Runs of writes that failed and are tried again.", 1,
                                    NULL),
    [METRIC_JOBS_HELD] =
        TALLY("heterotrain_jobs_held_back_total",
              "Times that a job was held back as it led to writes without end.", 1, NULL),
    [METRIC_QUEUE_DEPTH] =
        LEVEL("workqueue_depth", "Keys that wait, ready or not.", 4, "name"),
    [METRIC_QUEUE_ADDS] = TALLY("workqueue_adds_total", "Keys added.", 4, "name"),
    [METRIC_QUEUE_RETRIES] =
        TALLY("workqueue_retries_total", "Keys added after a failure.", 4, "name"),
    [METRIC_QUEUE_WAIT_SECONDS] = SPREAD("workqueue_queue_duration_seconds",
                                         "From ready to taken.", work_s, 4, "name"),
    [METRIC_QUEUE_WORK_SECONDS] = SPREAD("workqueue_work_duration_seconds",
                                         "From taken to done, writes included.", work_s,
                                         4, "name"),
    [METRIC_WATCH_RESTARTS] =
        TALLY("watch_restarts_total", "Watches started.", 32, "resource"),
    [METRIC_WATCH_LISTS] = TALLY("watch_lists_total", "Lists taken.", 32, "resource"),
    [METRIC_WATCH_EVENTS] =
        TALLY("watch_events_total", "Objects that watches brought.", 32, "resource"),
    [METRIC_WATCH_FAILURES] = TALLY("watch_failures_total",
                                    "Whatever made a watch pause before it went on.", 32,
                                    "resource"),
    [METRIC_WATCH_QUARANTINED] = TALLY("watch_quarantined_total",
                                       "Objects that could not be read.", 32, "resource"),
    [METRIC_REQUEST_SECONDS] = SPREAD("heterotrain_request_duration_seconds",
                                      "Requests to the API server, watches left out.",
                                      request_s, 256, "verb", "resource", "code"),
    [METRIC_REQUESTS_WAITING] =
        LEVEL("heterotrain_requests_in_flight",
              "Requests that wait for their turn or their answer.", 1, NULL),
    [METRIC_PLAN_SECONDS] = SPREAD("heterotrain_plan_duration_seconds",
                                   "What the planner took for an answer.", plan_s, 8,
                                   "outcome"),
    [METRIC_PLAN_GAP] = SPREAD(
        "heterotrain_plan_gap",
        "How far plans may be above the proven lower bound: seconds of an iteration over the bound, less 1.",
        gap, 1, NULL),
    [METRIC_PLANNERS] =
        LEVEL("heterotrain_planners_running", "Planners at work.", 1, NULL),
    [METRIC_REPLANS] =
        TALLY("heterotrain_replans_total",
              "Plans of jobs that had one, by what led to them and what came of it.", 128,
              "trigger", "result"),
    [METRIC_PREDICTED_ITERATION] = LEVEL("heterotrain_predicted_iteration_seconds",
                                         "Seconds of an iteration, as the plan says.",
                                         1000, "namespace", "job"),
    [METRIC_REPORTED_ITERATION] = LEVEL(
        "heterotrain_reported_iteration_seconds",
        "Seconds of an iteration, as the pods say (annotation heterotrain.io/step-seconds): the slowest of them.",
        1000, "namespace", "job"),
    [METRIC_GPUS] = LEVEL("heterotrain_gpus",
                          "GPUs of the nodes: free, used, or unusable.", 128, "type",
                          "state"),
    [METRIC_JOBS] = LEVEL("heterotrain_jobs", "Jobs by state.", 16, "state"),
    [METRIC_SERVER_CONNECTIONS] = LEVEL("heterotrain_server_connections",
                                        "Connections to our own server.", 1, NULL),
    [METRIC_SERVER_REFUSED] = TALLY("heterotrain_server_refused_total",
                                    "Connections and requests that were cut off.", 16,
                                    "reason"),
    [METRIC_SERVER_REQUESTS] = TALLY("heterotrain_server_requests_total",
                                     "Requests to our own server.", 64, "path", "code"),
    [METRIC_ADMISSIONS] = TALLY("heterotrain_admissions_total",
                                "Jobs that the webhook was asked about, by what it said "
                                "and, if denied, why.",
                                32, "result", "reason"),
    [METRIC_ADMISSION_SECONDS] = SPREAD("heterotrain_admission_duration_seconds",
                                        "What the webhook took for an answer.", quick_s,
                                        1, NULL),
    [METRIC_CERTIFICATE_END] =
        LEVEL("heterotrain_webhook_certificate_end_time_seconds",
              "When the webhook's certificate ends, seconds since 1970.", 1, NULL),
    [METRIC_RESIDENT_BYTES] =
        LEVEL("process_resident_memory_bytes", "Resident memory.", 1, NULL),
    [METRIC_CPU_SECONDS] =
        TALLY("process_cpu_seconds_total", "User and system CPU time.", 1, NULL),
    [METRIC_START_TIME] = LEVEL("process_start_time_seconds",
                                "When the process started, seconds since 1970.", 1, NULL),
    [METRIC_OPEN_FILES] = LEVEL("process_open_fds", "Open file descriptors.", 1, NULL),
};

struct series {
    char *labels;     /* as they are rendered, without braces; "" for none */
    double value;     /* of a histogram the sum */
    uint64_t *counts; /* of a histogram: one a bucket, and +Inf */
    bool is_kept;     /* among what metrics_replace was given */
};

struct family {
    struct series *series; /* by labels */
    size_t count, capacity;
};

struct metrics {
    pthread_mutex_t lock;
    double (*clock_s)(void *context);
    void *clock_context;
    struct family families[METRIC_COUNT];
};

struct metrics *metrics_new(double (*clock_s)(void *context), void *context)
{
    struct metrics *metrics = xcalloc(1, sizeof *metrics);
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->clock_s = clock_s;
    metrics->clock_context = context;
    return metrics;
}

static void series_fini(struct series *series)
{
    free(series->labels);
    free(series->counts);
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        for (size_t k = 0; k < metrics->families[i].count; k++)
            series_fini(&metrics->families[i].series[k]);
        free(metrics->families[i].series);
    }
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

double metrics_now(const struct metrics *metrics)
{
    return metrics && metrics->clock_s ? metrics->clock_s(metrics->clock_context) : 0;
}

/* ---- series ---- */

/* All labels: name="value", every character of a value escaped. */
#define LABEL_TEXT_BYTES (METRICS_LABELS * (2 * METRICS_LABEL_BYTES + 32))

static char *put_value(char *to, const char *value)
{
    size_t length = strnlen(value, METRICS_LABEL_BYTES);
    for (const char *end = value + length; value < end; value++) {
        if (*value == '"' || *value == '\\')
            *to++ = '\\';
        *to++ = *value >= ' ' && *value <= '~' ? *value : '?';
    }
    return to;
}

/* NULL for a value stands for "other". */
static void render_labels(const struct description *description,
                          const struct metrics_labels *labels, char *ret)
{
    for (size_t i = 0; i < METRICS_LABELS && description->labels[i]; i++) {
        if (i)
            *ret++ = ',';
        ret = stpcpy(stpcpy(ret, description->labels[i]), "=\"");
        ret = put_value(ret, labels ? labels->values[i] : "other");
        *ret++ = '"';
    }
    *ret = '\0';
}

/* Where `labels` is, or would be. */
static size_t find_place(const struct family *family, const char *labels, bool *ret_found)
{
    size_t from = 0, to = family->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(family->series[middle].labels, labels);
        *ret_found = order == 0;
        if (!order)
            return middle;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *ret_found = false;
    return from;
}

static size_t count_buckets(const struct description *description)
{
    size_t count = 0;
    while (description->buckets && description->buckets[count] > 0)
        count++;
    assert(count <= METRICS_BUCKETS);
    return count;
}

static struct series *insert_series(struct family *family, size_t at, const char *labels,
                                    const struct description *description)
{
    ARRAY_RESERVE(family->series, &family->capacity, family->count + 1);
    memmove(family->series + at + 1, family->series + at,
            (family->count++ - at) * sizeof *family->series);
    struct series *series = &family->series[at];
    *series = (struct series){ .labels = xstrdup(labels) };
    if (description->kind == HISTOGRAM)
        series->counts = xcalloc(count_buckets(description) + 1, sizeof *series->counts);
    return series;
}

static struct series *get_series(struct metrics *metrics, enum metric metric,
                                 const struct metrics_labels *labels)
{
    const struct description *description = &table[metric];
    struct family *family = &metrics->families[metric];
    char text[LABEL_TEXT_BYTES];
    bool found;
    for (size_t i = 0; i < METRICS_LABELS; i++)
        assert(!labels->values[i] == !description->labels[i]);
    render_labels(description, labels, text);
    size_t at = find_place(family, text, &found);
    if (!found && family->count >= description->max_series) {
        render_labels(description, NULL, text);
        at = find_place(family, text, &found);
    }
    return found ? &family->series[at] : insert_series(family, at, text, description);
}

void metrics_add(struct metrics *metrics, enum metric metric, double amount,
                 struct metrics_labels labels)
{
    if (!metrics)
        return;
    assert(table[metric].kind != HISTOGRAM);
    pthread_mutex_lock(&metrics->lock);
    get_series(metrics, metric, &labels)->value += amount;
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_set(struct metrics *metrics, enum metric metric, double value,
                 struct metrics_labels labels)
{
    if (!metrics)
        return;
    assert(table[metric].kind != HISTOGRAM);
    pthread_mutex_lock(&metrics->lock);
    get_series(metrics, metric, &labels)->value = value;
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_observe(struct metrics *metrics, enum metric metric, double value,
                     struct metrics_labels labels)
{
    if (!metrics || isnan(value))
        return;
    const struct description *description = &table[metric];
    assert(description->kind == HISTOGRAM);
    size_t bucket = 0, buckets = count_buckets(description);
    while (bucket < buckets && value > description->buckets[bucket])
        bucket++;
    pthread_mutex_lock(&metrics->lock);
    struct series *series = get_series(metrics, metric, &labels);
    series->counts[bucket]++;
    series->value += value;
    pthread_mutex_unlock(&metrics->lock);
}

/* Drops the series that are not among `values`; the rest become 0. */
static void drop_others(struct family *family, enum metric metric,
                        const struct metrics_value *values, size_t count)
{
    char text[LABEL_TEXT_BYTES];
    bool found;
    for (size_t i = 0; i < count; i++) {
        render_labels(&table[metric], &values[i].labels, text);
        size_t at = find_place(family, text, &found);
        if (found)
            family->series[at].is_kept = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < family->count; i++) {
        struct series series = family->series[i];
        if (!series.is_kept) {
            series_fini(&series);
            continue;
        }
        series.is_kept = false;
        series.value = 0;
        family->series[kept++] = series;
    }
    family->count = kept;
}

void metrics_replace(struct metrics *metrics, enum metric metric,
                     const struct metrics_value *values, size_t count)
{
    if (!metrics)
        return;
    assert(table[metric].kind == GAUGE);
    struct family *family = &metrics->families[metric];
    pthread_mutex_lock(&metrics->lock);
    drop_others(family, metric, values, count);
    for (size_t i = 0; i < count; i++) /* several may have the same labels: "other" */
        get_series(metrics, metric, &values[i].labels)->value += values[i].value;
    pthread_mutex_unlock(&metrics->lock);
}

/* ---- text ---- */

static void put_number(FILE *out, double value)
{
    if (isnan(value))
        fputs("NaN", out);
    else if (isinf(value))
        fputs(value > 0 ? "+Inf" : "-Inf", out);
    else
        fprintf(out, "%.*g", value == rint(value) ? 17 : 15, value);
}

static void put_sample(FILE *out, const char *name, const char *suffix,
                       const char *labels, double value)
{
    fprintf(out, "%s%s%s%s%s ", name, suffix, *labels ? "{" : "", labels,
            *labels ? "}" : "");
    put_number(out, value);
    fputc('\n', out);
}

static void put_histogram(FILE *out, const struct description *description,
                          const struct series *series)
{
    size_t buckets = count_buckets(description);
    uint64_t count = 0;
    for (size_t i = 0; i <= buckets; i++) {
        count += series->counts[i];
        fprintf(out, "%s_bucket{%s%sle=\"", description->name, series->labels,
                *series->labels ? "," : "");
        if (i < buckets)
            fprintf(out, "%g", description->buckets[i]);
        else
            fputs("+Inf", out);
        fprintf(out, "\"} %" PRIu64 "\n", count);
    }
    put_sample(out, description->name, "_sum", series->labels, series->value);
    put_sample(out, description->name, "_count", series->labels, (double)count);
}

static void put_family(FILE *out, const struct description *description,
                       const struct family *family)
{
    static const char *const kinds[] = { "counter", "gauge", "histogram" };
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", description->name, description->help,
            description->name, kinds[description->kind]);
    for (size_t i = 0; i < family->count; i++) {
        if (description->kind == HISTOGRAM)
            put_histogram(out, description, &family->series[i]);
        else
            put_sample(out, description->name, "", family->series[i].labels,
                       family->series[i].value);
    }
}

char *metrics_render(struct metrics *metrics, size_t *ret_length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_length);
    if (!out)
        abort(); /* out of memory */
    /* The loop waits for one metric at most. */
    for (size_t i = 0; metrics && i < METRIC_COUNT; i++) {
        pthread_mutex_lock(&metrics->lock);
        put_family(out, &table[i], &metrics->families[i]);
        pthread_mutex_unlock(&metrics->lock);
    }
    fclose(out);
    return text;
}
