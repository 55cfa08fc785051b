/* loop.h - one operator: watches the cluster, and for each job that something
 * concerns takes a snapshot, decides (reconcile.h), asks the planner, writes (apply.h).
 *
 * One thread, one loop, and whoever runs it owns the clock:
 *
 *     for (;;) {
 *         controller_step(controller, now_ms, wall_ms);
 *         controller_poll(controller, controller_next_ms(controller) - now_ms);
 *     }
 *
 * All that it knows is the API server's; it may be freed at any moment and made anew.
 *
 * Of several replicas the one that holds the lease (lease.h) decides. The others watch,
 * so that they know what it knows, and write nothing but the lease. Every other request
 * that changes something goes through one kube, whose fence is the lease's. */
#ifndef CONTROLLER_OPERATOR_LOOP_H
#define CONTROLLER_OPERATOR_LOOP_H

#include "controller/base/metrics.h"
#include "controller/decision/decision.h"
#include "controller/job/settings.h"
#include "controller/kube/lease.h"
#include "controller/operator/dashboard_data.h"
#include "controller/operator/planner_child.h"

#include <jansson.h>

enum {
    CONTROLLER_PLANNERS = 2,        /* children that plan at the same time */
    CONTROLLER_KEYS_A_STEP = 8,     /* jobs decided between two looks at the network */
    CONTROLLER_RESYNC_MS = 600000,  /* every job is looked at again after 10 min + 10 % */
    CONTROLLER_MAX_POLL_MS = 30000, /* one wait */
    CONTROLLER_SLACK_MS = 2000, /* others wait for a search: its CPU time, and this, */
    CONTROLLER_PATIENCE_MS = 32000, /* but at most this */
    /* A search is cut short after its turn if others wait that come before it. */
    CONTROLLER_TURN_MS = 10000,      /* of one that a job cannot run without */
    CONTROLLER_LATER_TURN_MS = 1000, /* of another; both double with each cut, */
    CONTROLLER_TURN_DOUBLINGS = 3,   /* so often; then what it has is the answer */
    CONTROLLER_DOUBT_MS = 10000,     /* a plan whose writing failed may yet appear */
    CONTROLLER_MEASURE_MS = 5000,    /* metrics of what is there are no older */
    /* A job whose writes failed is not decided on before its pause is over, whatever
     * happens, unless its spec changes; a longer pause is for what nobody disturbs. */
    CONTROLLER_HOLD_MS = 30000,
    /* Runs of writes for one job: so many at once, and then one in so many ms. What ever
     * goes round in circles goes round slowly, and its neighbours do not feel it. */
    CONTROLLER_RUNS = 60,
    CONTROLLER_RUN_MS = 6000,
};

struct controller_config {
    const char *ns;               /* of the jobs; "" or NULL: all namespaces */
    const char *planner;          /* path of hetplan */
    planner_child_inside *inside; /* plans instead of hetplan, in this process; NULL: */
    void *inside_context;         /*   hetplan does */
    const json_t *hardware;       /* the admin's hardware file, may be NULL */
    const char *hardware_map_ns;  /* ConfigMap that has it under "hardware.json"; NULL: */
    const char *hardware_map;     /*   none. While it is there it wins over `hardware` */
    const struct settings *settings; /* NULL: the default */
    size_t planners;       /* children at the same time; 0: CONTROLLER_PLANNERS */
    double requests_per_s; /* to the API server; 0: client.h's own */
    int burst;
    uint64_t seed;                    /* of jitter */
    struct metrics *metrics;          /* borrowed; NULL: nothing is measured */
    const struct lease_config *lease; /* copied; NULL: there are no other replicas */
    /* Called with each decision that reconcile makes, before it is carried out; NULL: no
     * one listens. */
    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
    /* For tests: each snapshot is taken again without what is remembered of the job, and
     * must be the same. */
    bool doubts_memos;
};

struct controller;

/* `transport` is borrowed; the strings of `config` too. Nothing is requested before the
 * first step. Errors: HET_BAD_INPUT, what is wrong with the hardware file. */
struct controller *controller_new(struct transport *transport,
                                  const struct controller_config *config,
                                  struct het_error *err);
/* Ends requests and planners where they are. */
void controller_free(struct controller *controller);

/* Does all that is due at `now_ms`, which only ever grows; `wall_ms` since 1970 goes into
 * what people read. */
void controller_step(struct controller *controller, int64_t now_ms, int64_t wall_ms);
/* When controller_step has something to do; INT64_MAX: only when the network or a planner
 * speaks. */
int64_t controller_next_ms(const struct controller *controller);
/* Waits for network and planners, at most `timeout_ms` (what is negative is none). */
void controller_poll(struct controller *controller, int64_t timeout_ms);

/* Waits for planners alone, at most `timeout_ms`, and takes their answers; for whoever
 * has another clock than they. */
void controller_poll_planners(struct controller *controller, int64_t timeout_ms);

/* LEASE_LOST: it must not go on, and the process has to end. LEASE_HOLDS, as long as
 * there are no other replicas. */
enum lease_state controller_lease(const struct controller *controller);
/* Decides and writes nothing any more; the lease is given back once the writes that are
 * on their way are over. Then, or at once where there is no lease, controller_has_stopped
 * is true. */
void controller_stop(struct controller *controller);
bool controller_has_stopped(const struct controller *controller);

/* Whether all that is watched has been listed; nothing is decided before. */
bool controller_is_synced(const struct controller *controller);
/* The API server is of Kubernetes 1.minor; 0: it has not said yet. */
int64_t controller_server_minor(const struct controller *controller);
/* Whether requests (other than watches), planners or checkpoint hooks are under way. */
bool controller_is_busy(const struct controller *controller);
/* Planners under way. */
size_t controller_planners(const struct controller *controller);

struct controller_statistics {
    uint64_t passes;   /* jobs decided */
    uint64_t actions;  /* of those decisions, writes and questions */
    uint64_t failures; /* runs of writes that failed */
    uint64_t held;     /* runs that ended with the job held back (CONTROLLER_RUNS) */
    uint64_t plans;    /* questions to the planner */
    uint64_t events;   /* objects that came, changed or went */
};
struct controller_statistics controller_statistics(const struct controller *controller);
/* What it knows, as the dashboard shows it (overview.h); the caller frees. Complete once
 * all that is watched has been listed. */
char *controller_overview(const struct controller *controller,
                          struct dashboard_data *overview, size_t *ret_length);
/* A node that more GPUs are planned or taken on than it has; NULL: none (capacity.h). */
const char *controller_find_overcommit(const struct controller *controller);

#endif
