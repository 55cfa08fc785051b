#include "controller/simulate/simulation.h"

#include "controller/simulate/client_link.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_NAMESPACE "kube-system"
#define LEASE           "heterotrain-controller"

enum { PLANNER_WAIT_MS = 100 }; /* of real time, for one look at the planners */

struct replica {
    struct controller *controller;
    struct transport *wire; /* NULL: the only client */
    char identity[64];
    uint64_t lives;
    bool is_frozen;
};

struct simulation {
    struct api_server *server;
    struct simulated_cluster *cluster;
    struct replica replicas[SIMULATION_MAX_REPLICAS];
    size_t replica_count;
    uint64_t losses;
    struct controller_config controller_config;
    json_t *hardware;
    uint64_t max_rounds;
    int64_t planner_timeout_ms;
    void (*before_round)(void *context, struct simulation *simulation);
    void *before_context;
};

static int64_t clock_ms(void *simulation)
{
    return api_server_now_ms(((struct simulation *)simulation)->server);
}

static int start_replica(struct simulation *simulation, size_t index,
                         struct het_error *err)
{
    struct replica *replica = &simulation->replicas[index];
    struct controller_config config = simulation->controller_config;
    struct transport *transport = api_server_transport(simulation->server);
    config.seed += index;
    snprintf(replica->identity, sizeof replica->identity, "replica-%zu_%" PRIu64, index,
             ++replica->lives);
    struct lease_config lease = { .ns = LEASE_NAMESPACE,
                                  .name = LEASE,
                                  .identity = replica->identity,
                                  .seed = config.seed + replica->lives,
                                  .clock_ms = clock_ms,
                                  .clock_context = simulation };
    if (simulation->replica_count > 1) {
        transport = replica->wire = client_link_new(transport);
        config.lease = &lease;
    }
    replica->controller = controller_new(transport, &config, err);
    return replica->controller ? 0 : -1;
}

static void end_replica(struct simulation *simulation, size_t index)
{
    struct replica *replica = &simulation->replicas[index];
    controller_free(replica->controller);
    if (replica->wire)
        transport_free(replica->wire);
    else
        api_server_disconnect(simulation->server);
    replica->controller = NULL;
    replica->wire = NULL;
    replica->is_frozen = false;
}

struct simulation *simulation_new(const struct simulation_config *config,
                                  struct het_error *err)
{
    struct simulation *simulation = xcalloc(1, sizeof *simulation);
    simulation->server = api_server_new(config->seed);
    simulation->cluster = simulated_cluster_new(simulation->server, &config->cluster);
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
        .settings = config->settings,
        .on_decision = config->on_decision,
        .decision_context = config->decision_context,
        .doubts_memos = config->doubts_memos,
        .metrics = config->metrics,
        .seed = config->seed,
    };
    simulation->replica_count = config->replicas ? config->replicas : 1;
    assert(simulation->replica_count <= SIMULATION_MAX_REPLICAS);
    for (size_t i = 0; i < simulation->replica_count; i++) {
        if (start_replica(simulation, i, err) == 0)
            continue;
        simulation_free(simulation);
        return NULL;
    }
    return simulation;
}

void simulation_free(struct simulation *simulation)
{
    if (!simulation)
        return;
    for (size_t i = 0; i < simulation->replica_count; i++)
        end_replica(simulation, i);
    simulated_cluster_free(simulation->cluster);
    api_server_free(simulation->server);
    json_decref(simulation->hardware);
    free(simulation);
}

struct api_server *simulation_server(struct simulation *simulation)
{
    return simulation->server;
}

struct simulated_cluster *simulation_cluster(struct simulation *simulation)
{
    return simulation->cluster;
}

struct controller *simulation_controller(struct simulation *simulation)
{
    return simulation->replicas[0].controller;
}

int64_t simulation_now_ms(const struct simulation *simulation)
{
    return api_server_now_ms(simulation->server) - API_SERVER_START_MS;
}

void simulation_restart_controller(struct simulation *simulation)
{
    simulation_restart_replica(simulation, 0);
}

void simulation_restart_replica(struct simulation *simulation, size_t index)
{
    end_replica(simulation, index);
    start_replica(simulation, index, NULL);
}

void simulation_freeze(struct simulation *simulation, size_t index)
{
    assert(simulation->replicas[index].wire);
    simulation->replicas[index].is_frozen = true;
}

void simulation_thaw(struct simulation *simulation, size_t index)
{
    simulation->replicas[index].is_frozen = false;
    controller_poll(simulation->replicas[index].controller, 0);
}

size_t simulation_leader(const struct simulation *simulation)
{
    const json_t *lease =
        api_server_find(simulation->server, "leases", LEASE_NAMESPACE, LEASE);
    const char *holder = json_string_value(
        json_object_get(json_object_get(lease, "spec"), "holderIdentity"));
    for (size_t i = 0; i < simulation->replica_count; i++)
        if (holder && !strcmp(holder, simulation->replicas[i].identity))
            return i;
    return SIMULATION_MAX_REPLICAS;
}

uint64_t simulation_losses(const struct simulation *simulation)
{
    return simulation->losses;
}

void simulation_before_round(struct simulation *simulation,
                             void (*before)(void *context, struct simulation *simulation),
                             void *context)
{
    simulation->before_round = before;
    simulation->before_context = context;
}

/* When a replica has something to do; INT64_MAX while it stands still. */
static int64_t replica_next_ms(const struct replica *replica)
{
    if (replica->is_frozen)
        return INT64_MAX;
    return replica->wire && client_link_has_mail(replica->wire)
               ? INT64_MIN
               : controller_next_ms(replica->controller);
}

static int64_t replicas_next_ms(const struct simulation *simulation)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < simulation->replica_count; i++) {
        int64_t one_ms = replica_next_ms(&simulation->replicas[i]);
        next_ms = one_ms < next_ms ? one_ms : next_ms;
    }
    return next_ms;
}

static bool is_due(const struct simulation *simulation)
{
    int64_t now_ms = api_server_now_ms(simulation->server);
    return replicas_next_ms(simulation) <= now_ms ||
           api_server_next_ms(simulation->server) <= now_ms;
}

/* Planners run in real time, and all else waits for them: else the order of things would
 * depend on how quick they are. */
static int await_planners(struct simulation *simulation, struct controller *controller,
                          struct het_error *err)
{
    bool is_inside = simulation->controller_config.inside;
    for (int64_t waited_ms = 0; !is_inside && controller_planners(controller);
         waited_ms += PLANNER_WAIT_MS) {
        if (waited_ms > simulation->planner_timeout_ms)
            return het_fail(err, HET_IO, "a planner has not answered for %" PRId64 " s",
                            simulation->planner_timeout_ms / 1000);
        controller_poll_planners(controller, PLANNER_WAIT_MS);
    }
    return 0;
}

/* One turn of a replica's loop, as main has it. */
static int turn(struct simulation *simulation, size_t index, struct het_error *err)
{
    struct replica *replica = &simulation->replicas[index];
    int64_t now_ms = api_server_now_ms(simulation->server);
    if (replica->is_frozen) {
        /* The server continues, and its replies wait in the link. */
        transport_poll(api_server_transport(simulation->server), NULL, 0, 0);
        return 0;
    }
    controller_step(replica->controller, now_ms, now_ms);
    if (controller_lease(replica->controller) == LEASE_LOST) {
        simulation->losses++;
        simulation_restart_replica(simulation, index);
        return 0;
    }
    if (await_planners(simulation, replica->controller, err) < 0)
        return -1;
    controller_poll(replica->controller, 0);
    return 0;
}

/* Does all that is due now. */
static int settle(struct simulation *simulation, struct het_error *err)
{
    uint64_t rounds = 0;
    do {
        if (simulation->before_round)
            simulation->before_round(simulation->before_context, simulation);
        for (size_t i = 0; i < simulation->replica_count; i++)
            if (turn(simulation, i, err) < 0)
                return -1;
        if (++rounds > simulation->max_rounds)
            return het_fail(err, HET_IO, "the controller does not come to rest");
    } while (is_due(simulation));
    return 0;
}

static int64_t next_ms(const struct simulation *simulation)
{
    int64_t controller_ms = replicas_next_ms(simulation);
    int64_t cluster_ms = simulated_cluster_next_ms(simulation->cluster, NULL);
    return controller_ms < cluster_ms ? controller_ms : cluster_ms;
}

int simulation_run(struct simulation *simulation, int64_t until_ms,
                   simulation_step *after_step, void *context, struct het_error *err)
{
    int64_t end_ms = API_SERVER_START_MS + until_ms;
    for (;;) {
        /* Actors may already be due: what stood at the start, or was done by a test. */
        simulated_cluster_advance(simulation->cluster,
                                  api_server_now_ms(simulation->server));
        if (settle(simulation, err) < 0)
            return -1;
        if (after_step && !after_step(context, simulation))
            return 0;
        int64_t now_ms = api_server_now_ms(simulation->server);
        if (now_ms >= end_ms)
            return 0;
        int64_t next = next_ms(simulation);
        if (next < now_ms)
            next = now_ms;
        simulated_cluster_advance(simulation->cluster, next < end_ms ? next : end_ms);
    }
}
