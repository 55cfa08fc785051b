/* simulation.h - the real controller over an embedded API server and cluster, on one
 * virtual clock: what `heterotrain-controller simulate` and the simulation tests run.
 *
 * Time stands still while anything is under way, planners too, and then jumps to the next
 * moment at which something is due; so a run depends on its input alone. */
#ifndef CONTROLLER_SIMULATION_H
#define CONTROLLER_SIMULATION_H

#include "controller/controller.h"
#include "controller/embedded_cluster.h"

struct simulation_config {
    const char *planner;    /* path of hetplan */
    planner_inside *inside; /* plans instead of hetplan, on the virtual clock; NULL: */
    void *inside_context;   /*   hetplan does, while the clock stands still */
    const json_t *hardware; /* may be NULL */
    uint64_t seed;
    struct embedded_cluster_config cluster;
    /* Rounds at one moment of the clock before the run is given up: a controller that
     * never comes to rest is wrong. 0: 100,000. */
    uint64_t max_rounds;
    int64_t planner_timeout_ms; /* real time that one planner may take; 0: 120 s */
};

struct simulation;

/* Errors: HET_BAD_INPUT, what is wrong with the hardware. */
struct simulation *simulation_new(const struct simulation_config *config,
                                  struct het_error *err);
void simulation_free(struct simulation *simulation);

struct embedded *simulation_server(struct simulation *simulation);
struct embedded_cluster *simulation_cluster(struct simulation *simulation);
struct controller *simulation_controller(struct simulation *simulation);
/* Milliseconds since the start. */
int64_t simulation_now_ms(const struct simulation *simulation);

/* Runs until `until_ms` after the start. Calls `after_step` (may be NULL) each time all
 * is done that was due at one moment; it may change the cluster, and ends the run by
 * returning false. Errors: HET_IO when the controller does not come to rest, or a planner
 * takes too long. */
typedef bool simulation_step(void *context, struct simulation *simulation);
int simulation_run(struct simulation *simulation, int64_t until_ms,
                   simulation_step *after_step, void *context, struct het_error *err);

/* The controller is killed and a new one starts; between two rounds, so that writes of
 * the old one may be on their way. */
void simulation_restart_controller(struct simulation *simulation);
/* Called before each round (a step of the controller and an exchange with the server);
 * NULL: none. For tests that kill the controller in the middle of its work. */
void simulation_before_round(struct simulation *simulation,
                             void (*before)(void *context, struct simulation *simulation),
                             void *context);

#endif
