/* simulation.h - the real controller over an embedded API server and cluster, on one
 * virtual clock: what `heterotrain-simulate` and the simulation tests run.
 *
 * Several replicas of the controller may run and elect a leader (lease.h). Any of them
 * can be stopped and continued, as by SIGSTOP and SIGCONT; one that lost its lease ends
 * and restarts at once.
 *
 * Time stands still while anything is under way, including planners, and then jumps to
 * the next due moment, so a run depends only on its input. */
#ifndef CONTROLLER_SIMULATE_SIMULATION_H
#define CONTROLLER_SIMULATE_SIMULATION_H

#include "controller/operator/loop.h"
#include "controller/simulate/simulated_cluster.h"

struct simulation_config {
    const char *planner; /* path of hetplan */
    planner_child_inside
        *inside;            /* plans on the virtual clock instead of hetplan; NULL: */
    void *inside_context;   /*   hetplan does, while the clock stands still */
    const json_t *hardware; /* may be NULL */
    const struct settings *settings; /* NULL: the default; borrowed */
    /* As in loop.h. */
    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
    bool doubts_memos;
    struct metrics *metrics; /* of all replicas together; borrowed, may be NULL */
    uint64_t seed;
    size_t replicas; /* 0: one, without an election */
    struct simulated_cluster_config cluster;
    /* Rounds at one moment of the clock before the run fails: a controller that never
     * comes to rest is wrong. 0: 100,000. */
    uint64_t max_rounds;
    int64_t planner_timeout_ms; /* real time that one planner may take; 0: 120 s */
};

enum { SIMULATION_MAX_REPLICAS = 8 };

struct simulation;

/* Errors: HET_BAD_INPUT, what is wrong with the hardware. */
struct simulation *simulation_new(const struct simulation_config *config,
                                  struct het_error *err);
void simulation_free(struct simulation *simulation);

struct api_server *simulation_server(struct simulation *simulation);
struct simulated_cluster *simulation_cluster(struct simulation *simulation);
/* The first replica. */
struct controller *simulation_controller(struct simulation *simulation);
/* Milliseconds since the start. */
int64_t simulation_now_ms(const struct simulation *simulation);

/* Runs until `until_ms` after the start. Calls `after_step` (may be NULL) whenever
 * everything due at one moment is done; it may change the cluster, and ends the run by
 * returning false. Errors: HET_IO when the controller does not come to rest, or a planner
 * takes too long. */
typedef bool simulation_step(void *context, struct simulation *simulation);
int simulation_run(struct simulation *simulation, int64_t until_ms,
                   simulation_step *after_step, void *context, struct het_error *err);

/* Kills the controller (the first replica) between two rounds and starts a new one.
 * Writes of the old one may be under way. */
void simulation_restart_controller(struct simulation *simulation);
void simulation_restart_replica(struct simulation *simulation, size_t index);
/* Stops the replica, one of several, until simulation_thaw: it receives and does nothing.
 * Requests that it had sent are done. */
void simulation_freeze(struct simulation *simulation, size_t index);
/* The replica continues with the replies that have arrived meanwhile, as in the middle of
 * a poll. */
void simulation_thaw(struct simulation *simulation, size_t index);
/* The replica that the Lease names; SIMULATION_MAX_REPLICAS: none of the present ones. */
size_t simulation_leader(const struct simulation *simulation);
/* How often a replica lost its lease and ended. */
uint64_t simulation_losses(const struct simulation *simulation);
/* Called before each round (a step of the controller and an exchange with the server);
 * NULL: none. For tests that kill the controller in the middle of its work. */
void simulation_before_round(struct simulation *simulation,
                             void (*before)(void *context, struct simulation *simulation),
                             void *context);

#endif
