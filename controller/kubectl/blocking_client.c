#include "controller/kubectl/blocking_client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* The longest sleep, so that what is due for the link is done. */
#define LONGEST_WAIT_MS ((int64_t)1000)

/* A request, for its messages, and what came of it. */
struct call {
    TAILQ_ENTRY(call) link; /* while it is ahead */
    const struct kube_resource *resource;
    const char *verb;        /* as RBAC calls it */
    char *ns, *name, *query; /* name NULL: of a list */
    uint64_t id;             /* 0: not begun */
    bool is_done;
    enum kube_outcome outcome;
    int status;
    char *message, *body, *reason;
    size_t body_length;
    json_t *object;
};

struct client {
    const struct htj_host *host;
    const struct htj_link *link;
    struct kube *kube;
    bool has_answer;
    TAILQ_HEAD(calls, call) ahead; /* in the order of asking */
};

struct client *blocking_client_new(const struct htj_host *host,
                                   const struct htj_link *link)
{
    struct client *client = xcalloc(1, sizeof *client);
    *client = (struct client){ .host = host,
                               .link = link,
                               .kube = kube_new(link->transport, "kubectl-htj") };
    TAILQ_INIT(&client->ahead);
    return client;
}

static void call_free(struct call *call)
{
    if (!call)
        return;
    free(call->ns);
    free(call->name);
    free(call->query);
    free(call->message);
    free(call->body);
    free(call->reason);
    json_decref(call->object);
    free(call);
}

static void free_pointed_call(struct call **call)
{
    call_free(*call);
}
#define auto_call __attribute__((cleanup(free_pointed_call))) struct call

void blocking_client_free(struct client *client)
{
    struct call *call;
    if (!client)
        return;
    kube_free(client->kube);
    while ((call = TAILQ_FIRST(&client->ahead))) {
        TAILQ_REMOVE(&client->ahead, call, link);
        call_free(call);
    }
    free(client);
}

static void on_done(void *context, const struct kube_result *result)
{
    struct call *call = context;
    call->is_done = true;
    call->outcome = result->outcome;
    call->status = result->status;
    call->message = xstrdup(result->message);
    call->reason = xstrdup(result->reason);
    call->body = xmalloc(result->body_length + 1);
    memcpy(call->body, result->body, result->body_length);
    call->body[result->body_length] = '\0';
    call->body_length = result->body_length;
    call->object = json_incref(result->object);
}

/* ---- what went wrong, in words ---- */

static const char *group_of(const struct kube_resource *resource, char ret[128])
{
    const char *slash = strchr(resource->group_version, '/');
    snprintf(ret, 128, "%s%.*s", slash ? "." : "",
             slash ? (int)(slash - resource->group_version) : 0, resource->group_version);
    return ret;
}

static void fail_denied(const struct call *call, struct het_error *err)
{
    char group[128];
    bool is_wide = !call->ns[0];
    group_of(call->resource, group);
    het_fail(err, HET_DENIED,
             "no right to %s %s%s%s%s; see `kubectl auth can-i %s %s%s%s%s`", call->verb,
             call->resource->plural, group, is_wide ? "" : " in namespace ", call->ns,
             call->verb, call->resource->plural, group,
             is_wide && call->resource->namespaced ? " --all-namespaces"
             : is_wide                             ? ""
                                                   : " -n ",
             call->ns);
}

static void fail(const struct call *call, struct het_error *err)
{
    if (call->outcome == KUBE_DENIED && call->status == 403)
        fail_denied(call, err);
    else if (call->outcome == KUBE_DENIED)
        het_fail(err, HET_DENIED, "the API server does not know who you are: %s",
                 call->message);
    else if (call->outcome == KUBE_NOT_FOUND && !*call->reason)
        het_fail(err, HET_IO, "the API server has no %s: is Heterotrain installed there?",
                 call->resource->plural);
    else if (call->outcome == KUBE_NOT_FOUND)
        het_fail(err, HET_NOT_FOUND, "there is no %s %s%s%s", call->resource->kind,
                 call->ns, *call->ns ? "/" : "", call->name ? call->name : "");
    else if (call->outcome == KUBE_INVALID && !call->status)
        het_fail(err, HET_BAD_INPUT, "%s", call->message); /* it never got there */
    else
        het_fail(err, call->outcome == KUBE_CONFLICT ? HET_CONFLICT : HET_IO, "%s",
                 call->message);
}

/* ---- one request ---- */

static struct call *call_new(const struct kube_resource *resource, const char *verb,
                             const char *ns, const char *name, const char *query)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->resource = resource;
    call->verb = verb;
    call->ns = xstrdup(ns);
    call->name = name ? xstrdup(name) : NULL;
    call->query = xstrdup(query);
    return call;
}

static void begin(struct client *client, struct call *call)
{
    if (call->id)
        return;
    call->id = call->name ? kube_get(client->kube, call->resource, call->ns, call->name,
                                     on_done, call)
                          : kube_list(client->kube, call->resource, call->ns, call->query,
                                      on_done, call);
}

/* Waits for the request. Fills `err` unless it went well. */
static enum kube_outcome finish(struct client *client, struct call *call,
                                struct het_error *err)
{
    const struct htj_host *host = client->host;
    int64_t now_ms = host->now_ms(host->context),
            end_ms = now_ms + BLOCKING_CLIENT_TIMEOUT_MS;
    while (!call->is_done && now_ms < end_ms) {
        kube_step(client->kube, now_ms);
        int64_t wait_ms = kube_next_ms(client->kube);
        wait_ms = wait_ms - now_ms < LONGEST_WAIT_MS ? wait_ms - now_ms : LONGEST_WAIT_MS;
        transport_poll(client->link->transport, NULL, 0, wait_ms > 0 ? wait_ms : 0);
        now_ms = host->now_ms(host->context);
    }
    if (!call->is_done) {
        kube_cancel(client->kube, call->id);
        call->outcome = KUBE_UNREACHABLE;
        het_fail(err, HET_IO, "the API server has not answered for %d s: %s %s",
                 BLOCKING_CLIENT_TIMEOUT_MS / 1000, call->verb, call->resource->plural);
    } else if (call->outcome != KUBE_OK) {
        fail(call, err);
    }
    struct call *ahead;
    client->has_answer = client->has_answer || call->status;
    for (ahead = TAILQ_FIRST(&client->ahead); client->has_answer && ahead;
         ahead = TAILQ_NEXT(ahead, link))
        begin(client, ahead);
    return call->outcome;
}

static bool is_of(const struct call *call, const struct kube_resource *resource,
                  const char *ns, const char *name, const char *query)
{
    return call->resource == resource && !strcmp(call->ns, ns) && !name == !call->name &&
           (!name || !strcmp(call->name, name)) && !strcmp(call->query, query);
}

/* The call that is ahead, or a new one. */
static struct call *take(struct client *client, const struct kube_resource *resource,
                         const char *ns, const char *name, const char *query)
{
    struct call *call = TAILQ_FIRST(&client->ahead);
    while (call && !is_of(call, resource, ns, name, query))
        call = TAILQ_NEXT(call, link);
    if (call) {
        TAILQ_REMOVE(&client->ahead, call, link);
        return call;
    }
    return call_new(resource, name ? "get" : "list", ns, name, query);
}

enum kube_outcome blocking_client_get(struct client *client,
                                      const struct kube_resource *resource,
                                      const char *ns, const char *name, json_t **ret,
                                      struct het_error *err)
{
    auto_call *call = take(client, resource, ns, name, "");
    begin(client, call);
    if (finish(client, call, err) == KUBE_OK)
        *ret = json_incref(call->object);
    return call->outcome;
}

enum kube_outcome blocking_client_patch(struct client *client,
                                        const struct kube_resource *resource,
                                        const char *ns, const char *name, json_t *patch,
                                        struct het_error *err)
{
    auto_call *call = call_new(resource, "patch", ns, name, "");
    call->id = kube_patch(client->kube, resource, ns, name, NULL, patch, on_done, call);
    return finish(client, call, err);
}

/* ---- lists ---- */

struct listing {
    json_t *objects;
    json_t *(*trim)(json_t *object);
};

static void add_item(void *context, const char *text, size_t length)
{
    struct listing *listing = context;
    json_auto_t *object = kube_decode(text, length, NULL);
    json_t *kept = !object         ? NULL
                   : listing->trim ? listing->trim(object)
                                   : json_incref(object);
    if (kept)
        json_array_append_new(listing->objects, kept);
}

/* Of the page that `token` begins: NULL for all at once. */
static char *list_query(const char *token, const char *selector)
{
    auto_free char *escaped = token ? kube_escape(token) : NULL;
    auto_free char *limit = token ? xasprintf("limit=%d", BLOCKING_CLIENT_PAGE_SIZE)
                                  : xstrdup("resourceVersion=0");
    return xasprintf("%s%s%s%s%s", limit, *selector ? "&" : "", selector,
                     token && *token ? "&continue=" : "", token ? escaped : "");
}

void blocking_client_ahead(struct client *client, const struct kube_resource *resource,
                           const char *ns, const char *name, const char *selector)
{
    auto_free char *query = name ? xstrdup("") : list_query("", selector);
    struct call *call = take(client, resource, ns, name, query);
    TAILQ_INSERT_TAIL(&client->ahead, call, link);
    if (client->has_answer)
        begin(client, call);
}

/* One page into `listing`; `page` becomes the token of the next one, "" after the last.
 */
static enum kube_outcome list_page(struct client *client, struct call *call,
                                   struct listing *listing, char **page,
                                   struct het_error *err)
{
    auto_free char *version = NULL, *next = NULL;
    begin(client, call);
    if (finish(client, call, err) != KUBE_OK)
        return call->outcome;
    if (kube_split_list(call->resource, call->body, call->body_length, add_item, listing,
                        &version, &next, err) < 0) {
        het_wrap(err, "list of %s", call->resource->plural);
        return KUBE_SERVER_ERROR;
    }
    free(*page);
    *page = TAKE(next);
    return KUBE_OK;
}

enum kube_outcome blocking_client_list(struct client *client,
                                       const struct kube_resource *resource,
                                       const char *ns, const char *selector,
                                       json_t *(*trim)(json_t *object), json_t **ret,
                                       struct het_error *err)
{
    struct listing listing = { .objects = json_array(), .trim = trim };
    auto_free char *page = xstrdup("");
    enum kube_outcome outcome;
    for (bool is_paged = true;;) {
        auto_free char *query = list_query(is_paged ? page : NULL, selector);
        auto_call *call = take(client, resource, ns, NULL, query);
        outcome = list_page(client, call, &listing, &page, err);
        bool is_expired = outcome == KUBE_EXPIRED && is_paged;
        if (!is_expired && (outcome != KUBE_OK || !is_paged || !*page))
            break;
        if (is_expired) { /* the history that the pages are of is gone: all at once */
            is_paged = false;
            *page = '\0';
            json_array_clear(listing.objects);
        }
    }
    if (outcome == KUBE_OK)
        *ret = listing.objects;
    else
        json_decref(listing.objects);
    return outcome;
}
