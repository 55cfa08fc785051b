#include "controller/htj/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The longest sleep, so that what is due for the link is done. */
#define LONGEST_WAIT_MS ((int64_t)1000)

struct client {
    const struct htj_host *host;
    const struct htj_link *link;
    struct kube *kube;
};

/* A request, for its messages, and what came of it. */
struct call {
    const struct kube_resource *resource;
    const char *verb, *ns, *name; /* as RBAC calls them; name NULL: of a list */
    bool is_done;
    enum kube_outcome outcome;
    int status;
    char *message, *body, *reason;
    size_t body_length;
    json_t *object;
};

struct client *client_new(const struct htj_host *host, const struct htj_link *link)
{
    struct client *client = xcalloc(1, sizeof *client);
    *client = (struct client){ .host = host,
                               .link = link,
                               .kube = kube_new(link->transport, "kubectl-htj") };
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    kube_free(client->kube);
    free(client);
}

static void call_fini(struct call *call)
{
    free(call->message);
    free(call->body);
    free(call->reason);
    json_decref(call->object);
}
#define auto_call __attribute__((cleanup(call_fini))) struct call

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

static void fail(const struct client *client, const struct call *call,
                 struct het_error *err)
{
    if (call->outcome == KUBE_DENIED && call->status == 403)
        fail_denied(call, err);
    else if (call->outcome == KUBE_DENIED)
        het_fail(err, HET_DENIED, "%s does not know who you are: %s",
                 client->link->server, call->message);
    else if (call->outcome == KUBE_NOT_FOUND && !*call->reason)
        het_fail(err, HET_IO, "%s has no %s: is Heterotrain installed there?",
                 client->link->server, call->resource->plural);
    else if (call->outcome == KUBE_NOT_FOUND)
        het_fail(err, HET_NOT_FOUND, "there is no %s %s%s%s", call->resource->kind,
                 call->ns, *call->ns ? "/" : "", call->name ? call->name : "");
    else
        het_fail(err, call->outcome == KUBE_CONFLICT ? HET_CONFLICT : HET_IO, "%s",
                 call->message);
}

/* ---- one request ---- */

/* Waits for the request `id`. Fills `err` unless it went well. */
static enum kube_outcome finish(struct client *client, struct call *call, uint64_t id,
                                struct het_error *err)
{
    const struct htj_host *host = client->host;
    int64_t now_ms = host->now_ms(host->context), end_ms = now_ms + CLIENT_TIMEOUT_MS;
    while (!call->is_done && now_ms < end_ms) {
        kube_step(client->kube, now_ms);
        int64_t wait_ms = kube_next_ms(client->kube);
        wait_ms = wait_ms - now_ms < LONGEST_WAIT_MS ? wait_ms - now_ms : LONGEST_WAIT_MS;
        transport_poll(client->link->transport, NULL, 0, wait_ms > 0 ? wait_ms : 0);
        now_ms = host->now_ms(host->context);
    }
    if (!call->is_done) {
        kube_cancel(client->kube, id);
        call->outcome = KUBE_UNREACHABLE;
        het_fail(err, HET_IO, "%s has not answered for %d s: %s %s", client->link->server,
                 CLIENT_TIMEOUT_MS / 1000, call->verb, call->resource->plural);
    } else if (call->outcome != KUBE_OK) {
        fail(client, call, err);
    }
    return call->outcome;
}

enum kube_outcome client_get(struct client *client, const struct kube_resource *resource,
                             const char *ns, const char *name, json_t **ret,
                             struct het_error *err)
{
    auto_call call = { .resource = resource, .verb = "get", .ns = ns, .name = name };
    uint64_t id = kube_get(client->kube, resource, ns, name, on_done, &call);
    if (finish(client, &call, id, err) == KUBE_OK)
        *ret = json_incref(call.object);
    return call.outcome;
}

enum kube_outcome client_patch(struct client *client,
                               const struct kube_resource *resource, const char *ns,
                               const char *name, json_t *patch, struct het_error *err)
{
    auto_call call = { .resource = resource, .verb = "patch", .ns = ns, .name = name };
    uint64_t id =
        kube_patch(client->kube, resource, ns, name, NULL, patch, on_done, &call);
    return finish(client, &call, id, err);
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

/* One page into `listing`; `page` becomes the token of the next one, "" after the last.
 */
static enum kube_outcome list_page(struct client *client, struct call *call,
                                   const char *query, struct listing *listing,
                                   char **page, struct het_error *err)
{
    auto_free char *version = NULL, *next = NULL;
    uint64_t id = kube_list(client->kube, call->resource, call->ns, query, on_done, call);
    if (finish(client, call, id, err) != KUBE_OK)
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

enum kube_outcome client_list(struct client *client, const struct kube_resource *resource,
                              const char *ns, const char *selector,
                              json_t *(*trim)(json_t *object), json_t **ret,
                              struct het_error *err)
{
    struct listing listing = { .objects = json_array(), .trim = trim };
    auto_free char *page = xstrdup("");
    enum kube_outcome outcome;
    for (bool is_paged = true;;) {
        auto_call call = { .resource = resource, .verb = "list", .ns = ns };
        auto_free char *token = kube_escape(page);
        auto_free char *limit = is_paged ? xasprintf("limit=%d", CLIENT_PAGE_SIZE)
                                         : xstrdup("resourceVersion=0");
        auto_free char *query = xasprintf("%s%s%s%s%s", limit, *selector ? "&" : "",
                                          selector, *page ? "&continue=" : "", token);
        outcome = list_page(client, &call, query, &listing, &page, err);
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
