/* dashboard.h - what --dashboard serves: one page that shows nodes, jobs, plans and
 * decisions. It changes nothing and loads nothing from elsewhere.
 *
 *   GET /               the page (dashboard/page.html); its Content-Security-Policy
 *                       refuses scripts and styles that it does not contain
 *   GET /feed           WebSocket: the document of dashboard_data.h, and each later one
 *   GET /overview.json  the same, once
 *
 * The loop builds documents at least DASHBOARD_BUILD_MS apart, if something has changed
 * and a client is connected. */
#ifndef CONTROLLER_SERVE_DASHBOARD_H
#define CONTROLLER_SERVE_DASHBOARD_H

#include "controller/operator/loop.h"
#include "controller/serve/server.h"

enum {
    DASHBOARD_BUILD_MS = 500,
    DASHBOARD_READ_MS =
        20, /* while plans are still to be read (dashboard_data_is_partial) */
    DASHBOARD_ROUTES = 3,
    DASHBOARD_WAITING = 64, /* requests for a document that is being built */
};

struct dashboard;

/* `wake` makes the loop call dashboard_step soon; it is called in the server's thread. */
struct dashboard *dashboard_new(struct published *feed, void (*wake)(void *context),
                                void *context);
/* Free it after the server. */
void dashboard_free(struct dashboard *dashboard);

/* The routes for a listener; DASHBOARD_ROUTES of them. */
const struct server_route *dashboard_routes(const struct dashboard *dashboard);

/* In the loop: builds what is due, and answers who waits for it. */
void dashboard_step(struct dashboard *dashboard, struct server *server,
                    const struct controller *controller, int64_t now_ms);
/* Builds at once, even without clients. False if plans are still to be read. */
bool dashboard_build(struct dashboard *dashboard, struct server *server,
                     const struct controller *controller, int64_t now_ms);
/* When dashboard_step has something to do; INT64_MAX: only after a change or a
 * request. */
int64_t dashboard_next_ms(struct dashboard *dashboard,
                          const struct controller *controller);
#endif
