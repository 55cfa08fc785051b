/* live_dashboard.h - a simulation on the dashboard, in real time: each of its moments is
 * shown when a clock that runs `speed` times as fast as ours comes to it. */
#ifndef CONTROLLER_SIMULATE_LIVE_DASHBOARD_H
#define CONTROLLER_SIMULATE_LIVE_DASHBOARD_H

#include "controller/simulate/simulation.h"

struct live_dashboard_config {
    const char *address;          /* "127.0.0.1:8081"; port 0: any free one */
    double speed;                 /* simulated seconds in a real one */
    int64_t (*clock_ms)(void);    /* only ever grows */
    bool (*sleep_ms)(int64_t ms); /* false: it is to end */
};

struct live_dashboard;

/* The simulation begins now. Errors: those of server_new. */
struct live_dashboard *live_dashboard_new(const struct live_dashboard_config *config,
                                          struct het_error *err);
void live_dashboard_free(struct live_dashboard *live_dashboard);
/* "http://127.0.0.1:8081/"; as long as the showcase. */
const char *live_dashboard_url(const struct live_dashboard *live_dashboard);

/* Waits for the moment that the simulation is at; what was shown stays. False: it is to
 * end. */
bool live_dashboard_await(struct live_dashboard *live_dashboard,
                          const struct simulation *simulation);
/* Shows the simulation as it is. */
void live_dashboard_show(struct live_dashboard *live_dashboard,
                         struct simulation *simulation);
/* Leaves what was shown there until it is to end. */
void live_dashboard_hold(struct live_dashboard *live_dashboard);

#endif
