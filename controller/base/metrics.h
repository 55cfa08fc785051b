/* metrics.h - what the operator counts and measures, as Prometheus reads it (text
 * exposition format 0.0.4). The table of metrics is in metrics.c and nowhere else: name,
 * kind, labels, buckets, the most series. All threads may call everything; a call takes
 * less than a microsecond. Only the shell measures; what decides returns values.
 *
 * Every function takes NULL for `metrics` and then does nothing: nobody listens. */
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
    METRICS_BUCKETS = 20,      /* of a histogram, the last (+Inf) left out */
};

/* Values of the metric's labels, in the order of its table. A byte that is no printable
 * ASCII counts as '?'. */
struct metrics_labels {
    const char *values[METRICS_LABELS];
};
#define LABELS(...) ((struct metrics_labels){ { __VA_ARGS__ } })
#define NO_LABELS   ((struct metrics_labels){ { NULL } })

struct metrics;

/* `clock_s` tells the seconds since any moment; NULL: it is always 0. */
struct metrics *metrics_new(double (*clock_s)(void *context), void *context);
void metrics_free(struct metrics *metrics);

/* What the clock says; 0 for NULL. */
double metrics_now(const struct metrics *metrics);

/* A counter or gauge. When a metric has its most series, all further ones are one, whose
 * labels are "other". */
void metrics_add(struct metrics *metrics, enum metric metric, double amount,
                 struct metrics_labels labels);
void metrics_set(struct metrics *metrics, enum metric metric, double value,
                 struct metrics_labels labels);
/* A histogram. NaN is not counted: it would make the sum NaN for ever. */
void metrics_observe(struct metrics *metrics, enum metric metric, double value,
                     struct metrics_labels labels);

/* All series of a gauge at once: those not named are no more. */
struct metrics_value {
    struct metrics_labels labels;
    double value;
};
void metrics_replace(struct metrics *metrics, enum metric metric,
                     const struct metrics_value *values, size_t count);

/* The whole exposition, which the caller frees. Metrics stand in the order of the enum,
 * series in that of their labels. Metrics without a series have only HELP and TYPE. */
char *metrics_render(struct metrics *metrics, size_t *ret_length);

#endif
