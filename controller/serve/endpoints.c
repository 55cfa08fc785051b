#include "controller/serve/endpoints.h"

#include "controller/base/log.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct endpoints {
    struct published *feed;
    struct metrics *metrics;
    int64_t (*clock_ms)(void *context);
    void *clock_context;
    struct server_route routes[ENDPOINTS_ROUTES];
    /* The server's thread alone. */
    char *rendered;
    size_t rendered_length;
    int64_t rendered_ms;
};

static void say(struct server_reply *reply, int status, char *text)
{
    reply->status = status;
    reply->body = text;
    reply->body_length = strlen(text);
}

static int64_t now_ms(const struct endpoints *endpoints)
{
    return endpoints->clock_ms(endpoints->clock_context);
}

static bool on_healthz(void *context, const struct server_request *request,
                       struct server_reply *ret_reply)
{
    const struct endpoints *endpoints = context;
    (void)request;
    int64_t beat_ms = published_last_beat_ms(endpoints->feed);
    int64_t age_ms = beat_ms == INT64_MIN ? INT64_MAX : now_ms(endpoints) - beat_ms;
    if (age_ms <= ENDPOINTS_BEAT_MS)
        say(ret_reply, 200, xstrdup("ok\n"));
    else
        say(ret_reply, 503, xstrdup("the loop does not turn\n"));
    return true;
}

static bool on_readyz(void *context, const struct server_request *request,
                      struct server_reply *ret_reply)
{
    const struct endpoints *endpoints = context;
    (void)request;
    if (published_is_ready(endpoints->feed))
        say(ret_reply, 200, xstrdup("ok\n"));
    else
        say(ret_reply, 503, xstrdup("not all that is watched has been listed\n"));
    return true;
}

/* ---- /metrics ---- */

static double resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage usage = { 0 };
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = -3; /* ".", "..", and the folder itself */
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static bool on_metrics(void *context, const struct server_request *request,
                       struct server_reply *ret_reply)
{
    struct endpoints *endpoints = context;
    (void)request;
    int64_t time_ms = now_ms(endpoints);
    if (!endpoints->rendered ||
        time_ms - endpoints->rendered_ms >= ENDPOINTS_METRICS_MS) {
        metrics_set(endpoints->metrics, METRIC_RESIDENT_BYTES, resident_bytes(),
                    NO_LABELS);
        metrics_set(endpoints->metrics, METRIC_CPU_SECONDS, cpu_seconds(), NO_LABELS);
        metrics_set(endpoints->metrics, METRIC_OPEN_FILES, open_files(), NO_LABELS);
        free(endpoints->rendered);
        endpoints->rendered =
            metrics_render(endpoints->metrics, &endpoints->rendered_length);
        endpoints->rendered_ms = time_ms;
    }
    ret_reply->content_type = METRICS_TYPE;
    say(ret_reply, 200, xstrdup(endpoints->rendered));
    return true;
}

/* ---- /log-level ---- */

static bool on_get_level(void *context, const struct server_request *request,
                         struct server_reply *ret_reply)
{
    (void)context;
    (void)request;
    auto_free char *levels = log_get_levels();
    say(ret_reply, 200, xasprintf("%s\n", levels));
    return true;
}

static bool on_put_level(void *context, const struct server_request *request,
                         struct server_reply *ret_reply)
{
    struct het_error err = { 0 };
    if (!request->is_loopback) {
        say(ret_reply, 403, xstrdup("only from this host: kubectl port-forward\n"));
        return true;
    }
    size_t length = request->body_length;
    while (length && request->body[length - 1] == '\n')
        length--;
    auto_free char *levels = xasprintf("%.*s", (int)length, request->body);
    if (log_set_levels(levels, &err) < 0) {
        say(ret_reply, 400, xasprintf("%s\n", err.message));
        return true;
    }
    log_event(LOG_INFO, "server", "log levels set", LOG_STR("levels", levels));
    return on_get_level(context, request, ret_reply);
}

/* ---- life ---- */

struct endpoints *endpoints_new(struct published *feed, struct metrics *metrics,
                                int64_t (*clock_ms)(void *context), void *context)
{
    struct endpoints *endpoints = xcalloc(1, sizeof *endpoints);
    static const struct {
        const char *method, *path;
        server_handler *handler;
        size_t max_body_bytes;
    } served[ENDPOINTS_ROUTES] = {
        { "GET", "/healthz", on_healthz, 0 },
        { "GET", "/readyz", on_readyz, 0 },
        { "GET", "/log-level", on_get_level, 0 },
        { "PUT", "/log-level", on_put_level, ENDPOINTS_LEVEL_BYTES },
        [ENDPOINTS_OPEN_ROUTES] = { "GET", "/metrics", on_metrics, 0 },
    };
    for (size_t i = 0; i < ENDPOINTS_ROUTES; i++)
        endpoints->routes[i] = (struct server_route){
            .method = served[i].method,
            .path = served[i].path,
            .handler = served[i].handler,
            .context = endpoints,
            .max_body_bytes = served[i].max_body_bytes,
        };
    endpoints->feed = feed;
    endpoints->metrics = metrics;
    endpoints->clock_ms = clock_ms;
    endpoints->clock_context = context;
    return endpoints;
}

void endpoints_free(struct endpoints *endpoints)
{
    if (!endpoints)
        return;
    free(endpoints->rendered);
    free(endpoints);
}

const struct server_route *endpoints_routes(const struct endpoints *endpoints)
{
    return endpoints->routes;
}

const struct server_route *endpoints_metrics_route(const struct endpoints *endpoints)
{
    return &endpoints->routes[ENDPOINTS_OPEN_ROUTES];
}
