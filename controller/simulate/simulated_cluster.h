/* simulated_cluster.h - the other actors of a cluster: scheduler, kubelets, garbage
 * collector, pod collector, node lifecycle, batch Jobs, on an embedded API server and its
 * clock; and the events of a script (scenario.h).
 *
 * Actors react after a delay, never at once, to the state that they then find. The pods'
 * containers run nothing: a pod runs until an actor or event ends it. */
#ifndef CONTROLLER_SIMULATE_SIMULATED_CLUSTER_H
#define CONTROLLER_SIMULATE_SIMULATED_CLUSTER_H

#include "controller/simulate/api_server/api_server.h"
#include "controller/simulate/scenario.h"

struct simulated_cluster_config {
    int64_t schedule_ms;  /* from a pod's creation to its binding */
    int64_t start_ms;     /* from the binding to Running and Ready */
    int64_t stop_ms;      /* from the deletion to the end, if the grace allows it */
    int64_t collect_ms;   /* from an owner's end to the deletion of what it owned */
    int64_t orphan_ms;    /* from a node's deletion to the end of its pods */
    int64_t heartbeat_ms; /* between two updates of each node's status; 0: none */
};

/* A small quick cluster: 100 ms, 2 s, 2 s, 1 s, 40 s (pod collector: every 20 s, and 40 s
 * of quarantine), no heartbeats. */
extern const struct simulated_cluster_config simulated_cluster_defaults;

struct simulated_cluster;

/* `embedded` is borrowed and must outlive the cluster. */
struct simulated_cluster *
simulated_cluster_new(struct api_server *api_server,
                      const struct simulated_cluster_config *config);
void simulated_cluster_free(struct simulated_cluster *cluster);

/* When an actor, the script, or the server has something to do; INT64_MAX: never.
 * `*ret_is_idle` (`ret_is_idle` may be NULL) is true if only heartbeats and bookmarks of
 * watches are left: nothing that changes state is under way. */
int64_t simulated_cluster_next_ms(const struct simulated_cluster *cluster,
                                  bool *ret_is_idle);
/* Advances the clock of cluster and server to `now_ms` and does everything due until
 * then, in order of time. */
void simulated_cluster_advance(struct simulated_cluster *cluster, int64_t now_ms);

/* ---- what listens in the pods ---- */

/* How each running pod with a live kubelet answers requests for http://<podIP>:<any port>
 * (api_server_set_outside). Other addresses refuse the connection. */
struct simulated_hook {
    int status;       /* 200, 500, ...; 0: the connection is refused */
    int64_t delay_ms; /* until the reply; INT64_MAX: it never comes */
};
/* Initially {200, 100 ms}. */
void simulated_cluster_set_hook(struct simulated_cluster *cluster,
                                struct simulated_hook hook);
/* Requests that reached a pod so far, as "METHOD URL", in order. Borrowed. */
const json_t *simulated_cluster_hook_calls(const struct simulated_cluster *cluster);

/* ---- programs that end by themselves ---- */

/* How a pod of a batch Job ends: when (after its start), its exit code, and its
 * termination log (freed by the cluster; NULL: nothing). */
struct simulated_end {
    int64_t after_ms; /* INT64_MAX: it does not end */
    int64_t exit_code;
    char *message;
};
/* Called when such a pod starts; NULL: none ends. */
typedef struct simulated_end simulated_program(void *context, const json_t *pod);
void simulated_cluster_set_program(struct simulated_cluster *cluster,
                                   simulated_program *program, void *context);

/* ---- what happens to the cluster ---- */

/* Carries out `event` now. Errors: HET_NOT_FOUND, HET_BAD_INPUT. */
int simulated_cluster_do(struct simulated_cluster *cluster,
                         const struct scenario_event *event, struct het_error *err);
/* Called when a planned event has been done; `err` is NULL if it worked. */
typedef void simulated_event_done(void *context, const struct scenario_event *event,
                                  const struct het_error *err);
/* Carries out `event` at now + after_ms. Takes ownership of its content. */
void simulated_cluster_plan(struct simulated_cluster *cluster,
                            struct scenario_event *event);
void simulated_cluster_on_event(struct simulated_cluster *cluster,
                                simulated_event_done *done, void *context);

#endif
