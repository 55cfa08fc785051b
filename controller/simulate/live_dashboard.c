#include "controller/simulate/live_dashboard.h"

#include "controller/serve/dashboard.h"

#include <stdlib.h>
#include <string.h>

enum { HOLD_MS = 1000 }; /* of one sleep */

struct live_dashboard {
    struct live_dashboard_config config;
    struct published *feed;
    struct dashboard *dashboard;
    struct server_listener listener;
    struct server *server;
    char *url;
    int64_t start_ms; /* of clock_ms */
};

/* Each moment is shown as it comes. */
static void wake_nobody(void *context)
{
    (void)context;
}

struct live_dashboard *live_dashboard_new(const struct live_dashboard_config *config,
                                          struct het_error *err)
{
    struct live_dashboard *live_dashboard = xcalloc(1, sizeof *live_dashboard);
    char *host = NULL;
    int port;
    live_dashboard->config = *config;
    live_dashboard->feed = published_new();
    live_dashboard->dashboard = dashboard_new(live_dashboard->feed, wake_nobody, NULL);
    live_dashboard->listener =
        (struct server_listener){ .address = config->address,
                                  .routes = dashboard_routes(live_dashboard->dashboard),
                                  .route_count = DASHBOARD_ROUTES };
    struct server_config server = { .listeners = &live_dashboard->listener,
                                    .listener_count = 1,
                                    .feed = live_dashboard->feed };
    if (server_parse_address(config->address, &host, &port, err) == 0)
        live_dashboard->server = server_new(&server, err);
    if (!live_dashboard->server) {
        free(host);
        live_dashboard_free(live_dashboard);
        return NULL;
    }
    live_dashboard->url =
        xasprintf(strchr(host, ':') ? "http://[%s]:%d/" : "http://%s:%d/", host,
                  server_port(live_dashboard->server, 0));
    live_dashboard->start_ms = config->clock_ms();
    free(host);
    return live_dashboard;
}

void live_dashboard_free(struct live_dashboard *live_dashboard)
{
    if (!live_dashboard)
        return;
    server_free(live_dashboard->server);
    dashboard_free(live_dashboard->dashboard);
    published_free(live_dashboard->feed);
    free(live_dashboard->url);
    free(live_dashboard);
}

const char *live_dashboard_url(const struct live_dashboard *live_dashboard)
{
    return live_dashboard->url;
}

bool live_dashboard_await(struct live_dashboard *live_dashboard,
                          const struct simulation *simulation)
{
    const struct live_dashboard_config *config = &live_dashboard->config;
    double at_ms = (double)simulation_now_ms(simulation) / config->speed;
    int64_t wait_ms = live_dashboard->start_ms + (int64_t)at_ms - config->clock_ms();
    return wait_ms <= 0 || config->sleep_ms(wait_ms);
}

void live_dashboard_show(struct live_dashboard *live_dashboard,
                         struct simulation *simulation)
{
    const struct controller *controller = simulation_controller(simulation);
    while (!dashboard_build(live_dashboard->dashboard, live_dashboard->server, controller,
                            0))
        continue;
}

void live_dashboard_hold(struct live_dashboard *live_dashboard)
{
    while (live_dashboard->config.sleep_ms(HOLD_MS))
        continue;
}
