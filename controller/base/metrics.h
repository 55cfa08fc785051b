/* metrics.h - what the operator counts and measures, in Prometheus' text exposition
 * format 0.0.4. The table in metrics.c defines all metrics: name, kind, labels, buckets,
 * greatest number of series. All functions are thread-safe; a call takes less than a
 * microsecond. Only the shell measures; the code that decides returns values.
 *
 * Every function accepts NULL for `metrics` and then does nothing. */
#ifndef CONTROLLER_BASE_METRICS_H
#define CONTROLLER_BASE_METRICS_H

#include <stddef.h>

enum metric {
    METRIC_BUILD_INFO,
    METRIC_LEADER,
    METRIC_SYNCED,
    METRIC_LOOP_SECONDS,
    METRIC_RECONCILE_SECONDS,
    METRIC_DECISIONS,
    METRIC_ACTIONS,
    METRIC_WRITE_FAILURES,
    METRIC_JOBS_HELD,
    METRIC_QUEUE_DEPTH,
    METRIC_QUEUE_ADDS,
    METRIC_QUEUE_RETRIES,
    METRIC_QUEUE_WAIT_SECONDS,
    METRIC_QUEUE_WORK_SECONDS,
    METRIC_WATCH_RESTARTS,
    METRIC_WATCH_LISTS,
    METRIC_WATCH_EVENTS,
    METRIC_WATCH_FAILURES,
    METRIC_WATCH_QUARANTINED,
    METRIC_REQUEST_SECONDS,
    METRIC_REQUESTS_WAITING,
    METRIC_PLAN_SECONDS,
    METRIC_PLAN_GAP,
    METRIC_PLANNERS,
    METRIC_REPLANS,
    METRIC_PREDICTED_ITERATION,
    METRIC_REPORTED_ITERATION,
    METRIC_GPUS,
    METRIC_JOBS,
    METRIC_SERVER_CONNECTIONS,
    METRIC_SERVER_REFUSED,
    METRIC_SERVER_REQUESTS,
    METRIC_ADMISSIONS,
    METRIC_ADMISSION_SECONDS,
    METRIC_CERTIFICATE_END,
    METRIC_RESIDENT_BYTES,
    METRIC_CPU_SECONDS,
    METRIC_START_TIME,
    METRIC_OPEN_FILES,
    METRIC_COUNT
};

enum {
    METRICS_LABELS = 3,        /* of one metric */
    METRICS_LABEL_BYTES = 128, /* of a value; the rest is cut off */
    METRICS_BUCKETS = 20,      /* of a histogram, without the last (+Inf) */
};

/* Values of the metric's labels, in the order of its table. A byte that is not printable
 * ASCII becomes '?'. */
struct metrics_labels {
    const char *values[METRICS_LABELS];
};
#define LABELS(...) ((struct metrics_labels){ { __VA_ARGS__ } })
#define NO_LABELS   ((struct metrics_labels){ { NULL } })

struct metrics;

/* `clock_s` returns seconds since any fixed moment; NULL: the time is always 0. */
struct metrics *metrics_new(double (*clock_s)(void *context), void *context);
void metrics_free(struct metrics *metrics);

/* The time of the clock; 0 for NULL. */
double metrics_now(const struct metrics *metrics);

/* Update a counter or gauge. When a metric has its most series, all further ones share
 * one whose labels are "other". */
void metrics_add(struct metrics *metrics, enum metric metric, double amount,
                 struct metrics_labels labels);
void metrics_set(struct metrics *metrics, enum metric metric, double value,
                 struct metrics_labels labels);
/* Updates a histogram. NaN is ignored: it would make the sum NaN for ever. */
void metrics_observe(struct metrics *metrics, enum metric metric, double value,
                     struct metrics_labels labels);

/* Replaces all series of a gauge; those not named are removed. */
struct metrics_value {
    struct metrics_labels labels;
    double value;
};
void metrics_replace(struct metrics *metrics, enum metric metric,
                     const struct metrics_value *values, size_t count);

/* Renders the whole exposition; the caller frees it. Metrics follow the order of the
 * enum, series that of their labels. A metric without series has only HELP and TYPE. */
char *metrics_render(struct metrics *metrics, size_t *ret_length);

#endif
