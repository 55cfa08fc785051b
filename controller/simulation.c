#include "controller/simulation.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PLANNER_WAIT_MS = 100 }; /* of real time, for one look at the planners */

struct simulation {
    struct embedded *server;
    struct embedded_cluster *cluster;
    struct controller *controller;
    struct controller_config controller_config;
    json_t *hardware;
    uint64_t max_rounds;
    int64_t planner_timeout_ms;
    void (*before_round)(void *context, struct simulation *simulation);
    void *before_context;
};

struct simulation *simulation_new(const struct simulation_config *config,
                                  struct het_error *err)
{
    struct simulation *simulation = xcalloc(1, sizeof *simulation);
    simulation->server = embedded_new(config->seed);
    simulation->cluster = embedded_cluster_new(simulation->server, &config->cluster);
    simulation->max_rounds = config->max_rounds ? config->max_rounds : 100000;
    simulation->planner_timeout_ms =
        config->planner_timeout_ms ? config->planner_timeout_ms : 120000;
    if (config->hardware)
        simulation->hardware = json_deep_copy(config->hardware);
    simulation->controller_config = (struct controller_config){
        .planner = config->planner ? config->planner : "",
        .inside = config->inside,
        .inside_context = config->inside_context,
        .planners = 1,
        .hardware = simulation->hardware,
        .seed = config->seed,
    };
    simulation->controller = controller_new(embedded_transport(simulation->server),
                                            &simulation->controller_config, err);
    if (simulation->controller)
        return simulation;
    simulation_free(simulation);
    return NULL;
}

void simulation_free(struct simulation *simulation)
{
    if (!simulation)
        return;
    controller_free(simulation->controller);
    embedded_cluster_free(simulation->cluster);
    embedded_free(simulation->server);
    json_decref(simulation->hardware);
    free(simulation);
}

struct embedded *simulation_server(struct simulation *simulation)
{
    return simulation->server;
}

struct embedded_cluster *simulation_cluster(struct simulation *simulation)
{
    return simulation->cluster;
}

struct controller *simulation_controller(struct simulation *simulation)
{
    return simulation->controller;
}

int64_t simulation_now_ms(const struct simulation *simulation)
{
    return embedded_now_ms(simulation->server) - EMBEDDED_START_MS;
}

void simulation_restart_controller(struct simulation *simulation)
{
    controller_free(simulation->controller);
    embedded_disconnect(simulation->server);
    simulation->controller = controller_new(embedded_transport(simulation->server),
                                            &simulation->controller_config, NULL);
}

void simulation_before_round(struct simulation *simulation,
                             void (*before)(void *context, struct simulation *simulation),
                             void *context)
{
    simulation->before_round = before;
    simulation->before_context = context;
}

static bool is_due(const struct simulation *simulation)
{
    int64_t now_ms = embedded_now_ms(simulation->server);
    return controller_next_ms(simulation->controller) <= now_ms ||
           embedded_next_ms(simulation->server) <= now_ms;
}

/* Planners run in real time, and all else waits for them: else the order of things would
 * depend on how quick they are. */
static int await_planners(struct simulation *simulation, struct het_error *err)
{
    bool is_inside = simulation->controller_config.inside;
    for (int64_t waited_ms = 0; !is_inside && controller_planners(simulation->controller);
         waited_ms += PLANNER_WAIT_MS) {
        if (waited_ms > simulation->planner_timeout_ms)
            return het_fail(err, HET_IO, "a planner has not answered for %" PRId64 " s",
                            simulation->planner_timeout_ms / 1000);
        controller_poll_planners(simulation->controller, PLANNER_WAIT_MS);
    }
    return 0;
}

/* Does all that is due now. */
static int settle(struct simulation *simulation, struct het_error *err)
{
    uint64_t rounds = 0;
    do {
        if (simulation->before_round)
            simulation->before_round(simulation->before_context, simulation);
        int64_t now_ms = embedded_now_ms(simulation->server);
        controller_step(simulation->controller, now_ms, now_ms);
        if (await_planners(simulation, err) < 0)
            return -1;
        controller_poll(simulation->controller, 0);
        if (++rounds > simulation->max_rounds)
            return het_fail(err, HET_IO, "the controller does not come to rest");
    } while (is_due(simulation));
    return 0;
}

static int64_t next_ms(const struct simulation *simulation)
{
    int64_t controller_ms = controller_next_ms(simulation->controller);
    int64_t cluster_ms = embedded_cluster_next_ms(simulation->cluster, NULL);
    return controller_ms < cluster_ms ? controller_ms : cluster_ms;
}

int simulation_run(struct simulation *simulation, int64_t until_ms,
                   simulation_step *after_step, void *context, struct het_error *err)
{
    int64_t end_ms = EMBEDDED_START_MS + until_ms;
    for (;;) {
        /* Actors may already be due: what stood at the start, or was done by a test. */
        embedded_cluster_advance(simulation->cluster,
                                 embedded_now_ms(simulation->server));
        if (settle(simulation, err) < 0)
            return -1;
        if (after_step && !after_step(context, simulation))
            return 0;
        int64_t now_ms = embedded_now_ms(simulation->server);
        if (now_ms >= end_ms)
            return 0;
        int64_t next = next_ms(simulation);
        if (next < now_ms)
            next = now_ms;
        embedded_cluster_advance(simulation->cluster, next < end_ms ? next : end_ms);
    }
}
