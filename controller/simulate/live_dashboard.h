/* live_dashboard.h - shows a simulation on the dashboard, `speed` times as fast as real
 * time. */
#ifndef CONTROLLER_SIMULATE_LIVE_DASHBOARD_H
#define CONTROLLER_SIMULATE_LIVE_DASHBOARD_H

#include "controller/simulate/simulation.h"

struct live_dashboard_config {
    const char *address;          /* "127.0.0.1:8081"; port 0: any free one */
    double speed;                 /* simulated seconds in a real one */
    int64_t (*clock_ms)(void);    /* never decreases */
    bool (*sleep_ms)(int64_t ms); /* false: the dashboard should end */
};

struct live_dashboard;

/* The simulation begins now. Errors: those of server_new. */
struct live_dashboard *live_dashboard_new(const struct live_dashboard_config *config,
                                          struct het_error *err);
void live_dashboard_free(struct live_dashboard *live_dashboard);
/* "http://127.0.0.1:8081/"; valid as long as the dashboard. */
const char *live_dashboard_url(const struct live_dashboard *live_dashboard);

/* Waits until real time reaches the simulation's present moment; the display stays as it
 * is. False: the dashboard should end. */
bool live_dashboard_await(struct live_dashboard *live_dashboard,
                          const struct simulation *simulation);
/* Shows the present state of the simulation. */
void live_dashboard_show(struct live_dashboard *live_dashboard,
                         struct simulation *simulation);
/* Keeps the last state on display until the dashboard should end. */
void live_dashboard_hold(struct live_dashboard *live_dashboard);

#endif
