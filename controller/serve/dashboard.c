#include "controller/serve/dashboard.h"

#include "controller/base/digest.h"
#include "controller/operator/dashboard_data.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OVERVIEW  "overview"
#define JSON_TYPE "application/json"

/* dashboard/page.html as numbers, by the Makefile. */
static const unsigned char page[] = {
#include <dashboard/page.inc>
};

struct dashboard {
    struct published *feed;
    void (*wake)(void *context);
    void *wake_context;
    struct dashboard_data *overview;
    struct server_route routes[DASHBOARD_ROUTES];
    char *page_headers;
    pthread_mutex_t lock; /* of what follows */
    uint64_t waiting[DASHBOARD_WAITING];
    size_t waiting_count;
    bool is_fresh; /* nothing has changed since the last document */
    /* The loop alone. */
    uint64_t events, digest;
    int64_t built_ms; /* INT64_MIN: never */
};

/* ---- the page ---- */

/* "'sha256-...'" of the page's only element `tag`, as a Content-Security-Policy names a
 * script or style that may stand in the page. */
static char *source_of(const char *tag)
{
    auto_free char *text = xasprintf("%.*s", (int)sizeof page, (const char *)page);
    auto_free char *begin = xasprintf("<%s>", tag), *end = xasprintf("</%s>", tag);
    const char *from = strstr(text, begin) + strlen(begin);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned char encoded[4 * EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_Digest(from, (size_t)(strstr(from, end) - from), digest, &length, EVP_sha256(),
               NULL);
    EVP_EncodeBlock(encoded, digest, (int)length);
    return xasprintf("'sha256-%s'", (const char *)encoded);
}

static char *make_page_headers(void)
{
    auto_free char *script = source_of("script"), *style = source_of("style");
    return xasprintf(
        "Content-Security-Policy: default-src 'none'; script-src %s; style-src %s; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
        "'none'; require-trusted-types-for 'script'\r\n"
        "Referrer-Policy: no-referrer\r\n",
        script, style);
}

static bool on_page(void *context, const struct server_request *request,
                    struct server_reply *ret_reply)
{
    const struct dashboard *dashboard = context;
    (void)request;
    *ret_reply = (struct server_reply){ .status = 200,
                                        .content_type = "text/html; charset=utf-8",
                                        .headers = dashboard->page_headers,
                                        .body = xmalloc(sizeof page),
                                        .body_length = sizeof page };
    memcpy(ret_reply->body, page, sizeof page);
    return true;
}

/* ---- the document ---- */

static struct server_reply unavailable(void)
{
    char *body = xstrdup("not all that is watched has been listed\n");
    return (
        struct server_reply){ .status = 503, .body = body, .body_length = strlen(body) };
}

static struct server_reply newest(const struct dashboard *dashboard)
{
    const struct published_text *text = published_take(dashboard->feed, OVERVIEW);
    if (!text)
        return unavailable();
    struct server_reply reply = { .status = 200,
                                  .content_type = JSON_TYPE,
                                  .body = xmalloc(text->length),
                                  .body_length = text->length };
    memcpy(reply.body, text->bytes, text->length);
    published_give_back(dashboard->feed, text);
    return reply;
}

static bool on_overview(void *context, const struct server_request *request,
                        struct server_reply *ret_reply)
{
    struct dashboard *dashboard = context;
    pthread_mutex_lock(&dashboard->lock);
    bool waits = !dashboard->is_fresh && dashboard->waiting_count < DASHBOARD_WAITING;
    if (waits)
        dashboard->waiting[dashboard->waiting_count++] = request->id;
    pthread_mutex_unlock(&dashboard->lock);
    if (waits)
        dashboard->wake(dashboard->wake_context);
    else
        *ret_reply = newest(dashboard);
    return !waits;
}

static void answer_waiting(struct dashboard *dashboard, struct server *server)
{
    uint64_t waiting[DASHBOARD_WAITING];
    pthread_mutex_lock(&dashboard->lock);
    size_t count = dashboard->waiting_count;
    memcpy(waiting, dashboard->waiting, count * sizeof *waiting);
    dashboard->waiting_count = 0;
    pthread_mutex_unlock(&dashboard->lock);
    for (size_t i = 0; i < count; i++) {
        struct server_reply reply = newest(dashboard);
        server_answer(server, waiting[i], &reply);
    }
}

/* ---- in the loop ---- */

static void set_fresh(struct dashboard *dashboard, bool value)
{
    pthread_mutex_lock(&dashboard->lock);
    dashboard->is_fresh = value;
    pthread_mutex_unlock(&dashboard->lock);
}

static bool is_wanted(struct dashboard *dashboard)
{
    pthread_mutex_lock(&dashboard->lock);
    bool waits = dashboard->waiting_count > 0;
    pthread_mutex_unlock(&dashboard->lock);
    return waits || published_listeners(dashboard->feed, OVERVIEW) > 0;
}

static bool has_changed(const struct dashboard *dashboard,
                        const struct controller *controller)
{
    return dashboard->built_ms == INT64_MIN ||
           dashboard_data_is_partial(dashboard->overview) ||
           controller_statistics(controller).events != dashboard->events;
}

static int64_t due_ms(const struct dashboard *dashboard)
{
    bool is_partial = dashboard_data_is_partial(dashboard->overview);
    return dashboard->built_ms == INT64_MIN
               ? 0
               : dashboard->built_ms +
                     (is_partial ? DASHBOARD_READ_MS : DASHBOARD_BUILD_MS);
}

bool dashboard_build(struct dashboard *dashboard, struct server *server,
                     const struct controller *controller, int64_t now_ms)
{
    size_t length;
    char *text = controller_overview(controller, dashboard->overview, &length);
    uint64_t digest = digest_bytes(0, text, length);
    if (digest != dashboard->digest || !published_version(dashboard->feed, OVERVIEW))
        published_publish(dashboard->feed, OVERVIEW, text, length);
    else
        free(text);
    dashboard->digest = digest;
    dashboard->events = controller_statistics(controller).events;
    dashboard->built_ms = now_ms;
    set_fresh(dashboard, true);
    answer_waiting(dashboard, server);
    return !dashboard_data_is_partial(dashboard->overview);
}

void dashboard_step(struct dashboard *dashboard, struct server *server,
                    const struct controller *controller, int64_t now_ms)
{
    bool changed = has_changed(dashboard, controller);
    if (changed && is_wanted(dashboard) && controller_is_synced(controller) &&
        now_ms >= due_ms(dashboard)) {
        dashboard_build(dashboard, server, controller, now_ms);
        return;
    }
    set_fresh(dashboard, !changed);
    answer_waiting(dashboard, server); /* with what there is */
}

int64_t dashboard_next_ms(struct dashboard *dashboard,
                          const struct controller *controller)
{
    return is_wanted(dashboard) && controller_is_synced(controller) &&
                   has_changed(dashboard, controller)
               ? due_ms(dashboard)
               : INT64_MAX;
}

/* ---- life ---- */

struct dashboard *dashboard_new(struct published *feed, void (*wake)(void *context),
                                void *context)
{
    struct dashboard *dashboard = xcalloc(1, sizeof *dashboard);
    struct server_route routes[DASHBOARD_ROUTES] = {
        { .method = "GET", .path = "/", .handler = on_page, .context = dashboard },
        { .method = "GET", .path = "/feed", .feed = OVERVIEW },
        { .method = "GET",
          .path = "/overview.json",
          .handler = on_overview,
          .context = dashboard },
    };
    memcpy(dashboard->routes, routes, sizeof routes);
    dashboard->feed = feed;
    dashboard->wake = wake;
    dashboard->wake_context = context;
    dashboard->overview = dashboard_data_new();
    dashboard->page_headers = make_page_headers();
    dashboard->built_ms = INT64_MIN;
    pthread_mutex_init(&dashboard->lock, NULL);
    return dashboard;
}

void dashboard_free(struct dashboard *dashboard)
{
    if (!dashboard)
        return;
    pthread_mutex_destroy(&dashboard->lock);
    dashboard_data_free(dashboard->overview);
    free(dashboard->page_headers);
    free(dashboard);
}

const struct server_route *dashboard_routes(const struct dashboard *dashboard)
{
    return dashboard->routes;
}
