/* simulated_cluster.h - everybody else in a cluster: scheduler, kubelets, garbage
 * collector, pod collector, node lifecycle, batch Jobs, as actors on an embedded API
 * server and its clock; and what happens to the cluster by a script (scenario.h).
 *
 * Actors act some time after what they react to, never at once, and only on what they
 * find then. The pods' containers run nothing: a pod runs until somebody ends it. */
#ifndef CONTROLLER_SIMULATE_SIMULATED_CLUSTER_H
#define CONTROLLER_SIMULATE_SIMULATED_CLUSTER_H

#include "controller/simulate/api_server/api_server.h"
#include "controller/simulate/scenario.h"

struct embedded_cluster_config {
    int64_t schedule_ms;  /* from a pod's creation to its binding */
    int64_t start_ms;     /* from the binding to Running and Ready */
    int64_t stop_ms;      /* from the deletion to the end, if the grace allows it */
    int64_t collect_ms;   /* from an owner's end to the deletion of what it owned */
    int64_t orphan_ms;    /* from a node's deletion to the end of its pods */
    int64_t heartbeat_ms; /* between two updates of each node's status; 0: none */
};

/* A small quick cluster: 100 ms, 2 s, 2 s, 1 s, 40 s (pod collector: every 20 s, and 40 s
 * of quarantine), no heartbeats. */
extern const struct embedded_cluster_config embedded_cluster_defaults;

struct embedded_cluster;

/* `embedded` is borrowed and must outlive the cluster. */
struct embedded_cluster *
embedded_cluster_new(struct embedded *embedded,
                     const struct embedded_cluster_config *config);
void embedded_cluster_free(struct embedded_cluster *cluster);

/* When an actor, the script, or the server has something to do; INT64_MAX: never. Only
 * one of a heartbeat or a watch's bookmark is left when `ret_is_idle` (may be NULL) is
 * true: nothing that changes anything is under way. */
int64_t embedded_cluster_next_ms(const struct embedded_cluster *cluster,
                                 bool *ret_is_idle);
/* Moves the clock of cluster and server to `now_ms`; what was due until then is done, in
 * the order of its time. */
void embedded_cluster_advance(struct embedded_cluster *cluster, int64_t now_ms);

/* ---- what listens in the pods ---- */

/* Each running pod whose kubelet speaks answers requests for http://<podIP>:<any port>
 * (embedded_set_outside) like this; nobody answers for another address. */
struct embedded_hook {
    int status;       /* 200, 500, ...; 0: the connection is refused */
    int64_t delay_ms; /* until the reply; INT64_MAX: it never comes */
};
/* {200, 100 ms} at the start. */
void embedded_cluster_set_hook(struct embedded_cluster *cluster,
                               struct embedded_hook hook);
/* Requests that reached a pod so far, as "METHOD URL", in their order. Borrowed. */
const json_t *embedded_cluster_hook_calls(const struct embedded_cluster *cluster);

/* ---- programs that end by themselves ---- */

/* How a pod of a batch Job ends: exit code, and what it writes into its termination log
 * (freed by the cluster; NULL: nothing), so long after it was started. */
struct embedded_end {
    int64_t after_ms; /* INT64_MAX: it runs on */
    int64_t exit_code;
    char *message;
};
/* Asked when such a pod starts; NULL: they all run on. */
typedef struct embedded_end embedded_program(void *context, const json_t *pod);
void embedded_cluster_set_program(struct embedded_cluster *cluster,
                                  embedded_program *program, void *context);

/* ---- what happens to the cluster ---- */

/* Does it now. Errors: HET_NOT_FOUND, HET_BAD_INPUT. */
int embedded_cluster_do(struct embedded_cluster *cluster,
                        const struct embedded_event *event, struct het_error *err);
/* Called when a planned event has been done; `err` is NULL if it worked. */
typedef void embedded_event_done(void *context, const struct embedded_event *event,
                                 const struct het_error *err);
/* Does it at now + after_ms. The content of `event` is taken. */
void embedded_cluster_plan(struct embedded_cluster *cluster,
                           struct embedded_event *event);
void embedded_cluster_on_event(struct embedded_cluster *cluster,
                               embedded_event_done *done, void *context);

#endif
