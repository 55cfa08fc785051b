#include "controller/simulate/live_dashboard.h"

#include "controller/serve/dashboard.h"

#include <stdlib.h>
#include <string.h>

enum { HOLD_MS = 1000 }; /* of one sleep */

struct showcase {
    struct showcase_config config;
    struct feed *feed;
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

struct showcase *showcase_new(const struct showcase_config *config, struct het_error *err)
{
    struct showcase *showcase = xcalloc(1, sizeof *showcase);
    char *host = NULL;
    int port;
    showcase->config = *config;
    showcase->feed = feed_new();
    showcase->dashboard = dashboard_new(showcase->feed, wake_nobody, NULL);
    showcase->listener =
        (struct server_listener){ .address = config->address,
                                  .routes = dashboard_routes(showcase->dashboard),
                                  .route_count = DASHBOARD_ROUTES };
    struct server_config server = { .listeners = &showcase->listener,
                                    .listener_count = 1,
                                    .feed = showcase->feed };
    if (server_parse_address(config->address, &host, &port, err) == 0)
        showcase->server = server_new(&server, err);
    if (!showcase->server) {
        free(host);
        showcase_free(showcase);
        return NULL;
    }
    showcase->url = xasprintf(strchr(host, ':') ? "http://[%s]:%d/" : "http://%s:%d/",
                              host, server_port(showcase->server, 0));
    showcase->start_ms = config->clock_ms();
    free(host);
    return showcase;
}

void showcase_free(struct showcase *showcase)
{
    if (!showcase)
        return;
    server_free(showcase->server);
    dashboard_free(showcase->dashboard);
    feed_free(showcase->feed);
    free(showcase->url);
    free(showcase);
}

const char *showcase_url(const struct showcase *showcase)
{
    return showcase->url;
}

bool showcase_await(struct showcase *showcase, const struct simulation *simulation)
{
    const struct showcase_config *config = &showcase->config;
    double at_ms = (double)simulation_now_ms(simulation) / config->speed;
    int64_t wait_ms = showcase->start_ms + (int64_t)at_ms - config->clock_ms();
    return wait_ms <= 0 || config->sleep_ms(wait_ms);
}

void showcase_show(struct showcase *showcase, struct simulation *simulation)
{
    const struct controller *controller = simulation_controller(simulation);
    while (!dashboard_build(showcase->dashboard, showcase->server, controller, 0))
        continue;
}

void showcase_hold(struct showcase *showcase)
{
    while (showcase->config.sleep_ms(HOLD_MS))
        continue;
}
