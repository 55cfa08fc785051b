/* live_dashboard.h - a simulation on the dashboard, in real time: each of its moments is
 * shown when a clock that runs `speed` times as fast as ours comes to it. */
#ifndef CONTROLLER_SIMULATE_LIVE_DASHBOARD_H
#define CONTROLLER_SIMULATE_LIVE_DASHBOARD_H

#include "controller/simulate/simulation.h"

struct showcase_config {
    const char *address;          /* "127.0.0.1:8081"; port 0: any free one */
    double speed;                 /* simulated seconds in a real one */
    int64_t (*clock_ms)(void);    /* only ever grows */
    bool (*sleep_ms)(int64_t ms); /* false: it is to end */
};

struct showcase;

/* The simulation begins now. Errors: those of server_new. */
struct showcase *showcase_new(const struct showcase_config *config,
                              struct het_error *err);
void showcase_free(struct showcase *showcase);
/* "http://127.0.0.1:8081/"; as long as the showcase. */
const char *showcase_url(const struct showcase *showcase);

/* Waits for the moment that the simulation is at; what was shown stays. False: it is to
 * end. */
bool showcase_await(struct showcase *showcase, const struct simulation *simulation);
/* Shows the simulation as it is. */
void showcase_show(struct showcase *showcase, struct simulation *simulation);
/* Leaves what was shown there until it is to end. */
void showcase_hold(struct showcase *showcase);

#endif
