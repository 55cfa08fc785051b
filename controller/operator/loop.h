/* loop.h - one operator: watches the cluster and, for each affected job, takes a
 * snapshot, decides (reconcile.h), asks the planner, and writes (apply.h).
 *
 * One thread, one loop; the caller owns the clock:
 *
 *     for (;;) {
 *         controller_step(controller, now_ms, wall_ms);
 *         controller_poll(controller, controller_next_ms(controller) - now_ms);
 *     }
 *
 * All state is in the API server; the controller may be freed and recreated at any
 * moment.
 *
 * Of several replicas, the one that holds the lease (lease.h) decides. The others watch,
 * so that their stores are up to date, and write only the lease. All other writes go
 * through one kube with the lease's fence. */
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
    CONTROLLER_PLANNERS = 2,        /* planner processes at the same time */
    CONTROLLER_KEYS_A_STEP = 8,     /* jobs decided between two looks at the network */
    CONTROLLER_RESYNC_MS = 600000,  /* every job is looked at again after 10 min + 10 % */
    CONTROLLER_MAX_POLL_MS = 30000, /* one wait */
    CONTROLLER_SLACK_MS = 2000,     /* others wait for a search's CPU time plus this, */
    CONTROLLER_PATIENCE_MS = 32000, /* but at most this */
    /* A search is cut short after its turn if jobs with precedence wait. */
    CONTROLLER_TURN_MS = 10000,      /* of a search that a job cannot run without */
    CONTROLLER_LATER_TURN_MS = 1000, /* of another; both double with each cut, */
    CONTROLLER_TURN_DOUBLINGS = 3,   /* this often; then its best plan is the answer */
    CONTROLLER_DOUBT_MS = 10000,     /* a plan whose write failed may still appear */
    CONTROLLER_MEASURE_MS = 5000,    /* greatest age of metrics about present objects */
    /* A job whose writes failed is not decided on before its back-off, or this much of
     * it, is over, unless its spec changes. After that, events end the back-off early. */
    CONTROLLER_HOLD_MS = 30000,
    /* Runs of writes for one job: a burst of this many, then one per CONTROLLER_RUN_MS. A
     * job that goes in circles thus goes slowly and does not affect the others. */
    CONTROLLER_RUNS = 60,
    CONTROLLER_RUN_MS = 6000,
};

struct controller_config {
    const char *ns;               /* of the jobs; "" or NULL: all namespaces */
    const char *planner;          /* path of hetplan */
    planner_child_inside *inside; /* plans in this process instead of hetplan; NULL: */
    void *inside_context;         /*   hetplan does */
    const json_t *hardware;       /* the admin's hardware file, may be NULL */
    const char *hardware_map_ns;  /* ConfigMap that has it under "hardware.json"; NULL: */
    const char *hardware_map;     /*   none. If it exists, it overrides `hardware` */
    const struct settings *settings; /* NULL: the default */
    size_t planners;       /* processes at the same time; 0: CONTROLLER_PLANNERS */
    double requests_per_s; /* to the API server; 0: client.h's own */
    int burst;
    uint64_t seed;                    /* of jitter */
    struct metrics *metrics;          /* borrowed; NULL: nothing is measured */
    const struct lease_config *lease; /* copied; NULL: there are no other replicas */
    /* Called with each decision of reconcile before it is carried out; may be NULL. */
    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
    /* For tests: takes each snapshot again without the job's memo, and requires it to be
     * the same. */
    bool doubts_memos;
};

struct controller;

/* Borrows `transport` and the strings of `config`. Requests nothing before the first
 * step. Errors: HET_BAD_INPUT if the hardware file is wrong. */
struct controller *controller_new(struct transport *transport,
                                  const struct controller_config *config,
                                  struct het_error *err);
/* Cancels requests and kills planners. */
void controller_free(struct controller *controller);

/* Does everything due at `now_ms`, which never decreases; `wall_ms` (since 1970) is for
 * times that people read. */
void controller_step(struct controller *controller, int64_t now_ms, int64_t wall_ms);
/* When controller_step has something to do; INT64_MAX: only after input from the network
 * or a planner. */
int64_t controller_next_ms(const struct controller *controller);
/* Waits for network and planners, at most `timeout_ms`; a negative value means 0. */
void controller_poll(struct controller *controller, int64_t timeout_ms);

/* Waits only for planners, at most `timeout_ms`, and takes their answers; for callers
 * with a virtual clock. */
void controller_poll_planners(struct controller *controller, int64_t timeout_ms);

/* The state of the lease; LEASE_HOLDS if there are no other replicas. After LEASE_LOST
 * the controller must not continue, and the process has to end. */
enum lease_state controller_lease(const struct controller *controller);
/* Stops deciding and writing, and releases the lease once the writes under way have
 * ended. controller_has_stopped is true from then on, or at once without a lease. */
void controller_stop(struct controller *controller);
bool controller_has_stopped(const struct controller *controller);

/* Whether all watched collections have been listed; nothing is decided before. */
bool controller_is_synced(const struct controller *controller);
/* Minor version of the API server (Kubernetes 1.minor); 0: not known yet. */
int64_t controller_server_minor(const struct controller *controller);
/* Whether requests (other than watches), planners or checkpoint hooks are under way. */
bool controller_is_busy(const struct controller *controller);
/* Planners under way. */
size_t controller_planners(const struct controller *controller);

struct controller_statistics {
    uint64_t passes;   /* jobs decided */
    uint64_t actions;  /* writes and questions of those decisions */
    uint64_t failures; /* runs of writes that failed */
    uint64_t held;     /* runs after which the job was held back (CONTROLLER_RUNS) */
    uint64_t plans;    /* questions to the planner */
    uint64_t events;   /* objects added, changed or removed */
};
struct controller_statistics controller_statistics(const struct controller *controller);
/* The dashboard's document (dashboard_data.h); the caller frees it. Complete once all
 * watched collections have been listed. */
char *controller_overview(const struct controller *controller,
                          struct dashboard_data *overview, size_t *ret_length);
/* A node with more GPUs planned or taken than it has; NULL: none (capacity.h). */
const char *controller_find_overcommit(const struct controller *controller);

#endif
