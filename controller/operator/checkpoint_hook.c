#include "controller/operator/checkpoint_hook.h"

#include "controller/base/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct hook {
    struct hook *next;
    struct checkpoint_hooks *hooks;
    char *key;
    char *url, *body;
    bool is_bad_address;
    bool is_in_progress; /* the program said 202: it is asked how it goes */
    uint64_t request;    /* under way; 0: none */
    int64_t pause_ms;    /* before the next request, from the next step on; 0: none */
    int64_t due_ms;      /* of the next request; meaningless while one is under way */
    int64_t deadline_ms;
    int64_t retry_ms; /* the next pause */
    int unheard;      /* connections refused in a row */
};

struct checkpoint_hooks {
    struct transport *transport;
    bool allow_loopback;
    checkpoint_hook_done *done;
    void *context;
    struct hook *first;
    int64_t now_ms;
};

/* ---- addresses ---- */

static bool is_allowed_v4(const struct in_addr *address, bool allow_loopback)
{
    uint32_t bits = ntohl(address->s_addr);
    if (bits >> 24 == 127)
        return allow_loopback;
    bool is_this_network = bits >> 24 == 0;
    bool is_link_local = bits >> 16 == 0xa9fe; /* 169.254.0.0/16 */
    bool is_multicast_or_above = bits >> 28 >= 0xe;
    return !is_this_network && !is_link_local && !is_multicast_or_above;
}

static bool is_allowed_v6(const struct in6_addr *address, bool allow_loopback)
{
    static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    static const uint8_t zero[10] = { 0 };
    if (IN6_IS_ADDR_LOOPBACK(address))
        return allow_loopback;
    /* ::, ::a.b.c.d, ::ffff:a.b.c.d, 64:ff9b::a.b.c.d, 2002::/16 (6to4) */
    bool hides_v4 = !memcmp(address->s6_addr, zero, sizeof zero) ||
                    !memcmp(address->s6_addr, nat64, sizeof nat64) ||
                    (address->s6_addr[0] == 0x20 && address->s6_addr[1] == 0x02);
    return !hides_v4 && !IN6_IS_ADDR_LINKLOCAL(address) &&
           !IN6_IS_ADDR_SITELOCAL(address) && !IN6_IS_ADDR_MULTICAST(address);
}

bool checkpoint_hook_address_is_allowed(const char *address, bool allow_loopback)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1)
        return is_allowed_v4(&v4, allow_loopback);
    return inet_pton(AF_INET6, address, &v6) == 1 && is_allowed_v6(&v6, allow_loopback);
}

/* ---- hooks ---- */

struct checkpoint_hooks *checkpoint_hooks_new(struct transport *transport,
                                              bool allow_loopback,
                                              checkpoint_hook_done *done, void *context)
{
    struct checkpoint_hooks *hooks = xcalloc(1, sizeof *hooks);
    hooks->transport = transport;
    hooks->allow_loopback = allow_loopback;
    hooks->done = done;
    hooks->context = context;
    return hooks;
}

static void remove_hook(struct hook *hook)
{
    struct hook **link = &hook->hooks->first;
    while (*link != hook)
        link = &(*link)->next;
    *link = hook->next;
    if (hook->request)
        transport_cancel(hook->hooks->transport, hook->request);
    free(hook->key);
    free(hook->url);
    free(hook->body);
    free(hook);
}

void checkpoint_hooks_free(struct checkpoint_hooks *hooks)
{
    if (!hooks)
        return;
    while (hooks->first)
        remove_hook(hooks->first);
    free(hooks);
}

static struct hook *find_hook(const struct checkpoint_hooks *hooks, const char *key)
{
    struct hook *hook = hooks->first;
    while (hook && strcmp(hook->key, key) != 0)
        hook = hook->next;
    return hook;
}

void checkpoint_hooks_cancel(struct checkpoint_hooks *hooks, const char *key)
{
    struct hook *hook = find_hook(hooks, key);
    if (hook)
        remove_hook(hook);
}

void checkpoint_hooks_start(struct checkpoint_hooks *hooks, const char *key,
                            const struct checkpoint_hook_request *request, int64_t now_ms)
{
    checkpoint_hooks_cancel(hooks, key);
    struct hook *hook = xcalloc(1, sizeof *hook);
    bool is_v6 = strchr(request->address, ':') != NULL;
    hook->hooks = hooks;
    hook->key = xstrdup(key);
    hook->is_bad_address =
        !checkpoint_hook_address_is_allowed(request->address, hooks->allow_loopback);
    hook->url = xasprintf(HTTP_OUTSIDE "%s%s%s:%d%s", is_v6 ? "[" : "", request->address,
                          is_v6 ? "]" : "", (int)request->port, request->path);
    hook->body = json_dumps(request->body, JSON_COMPACT);
    hook->due_ms = now_ms;
    hook->deadline_ms = now_ms + request->timeout_ms;
    hook->retry_ms = CHECKPOINT_HOOK_PAUSE_MS;
    /* Behind those that wait already. */
    struct hook **link = &hooks->first;
    while (*link)
        link = &(*link)->next;
    *link = hook;
}

static void finish(struct hook *hook, enum hook_outcome outcome, const char *message)
{
    struct checkpoint_hooks *hooks = hook->hooks;
    auto_free char *key = xstrdup(hook->key);
    remove_hook(hook);
    hooks->done(hooks->context, key, outcome, message);
}

static void try_again(struct hook *hook)
{
    hook->pause_ms = hook->retry_ms;
    hook->retry_ms = 2 * hook->retry_ms < CHECKPOINT_HOOK_MAX_RETRY_MS
                         ? 2 * hook->retry_ms
                         : CHECKPOINT_HOOK_MAX_RETRY_MS;
}

static void ask_how_it_goes(struct hook *hook, int64_t retry_after_ms)
{
    int64_t pause_ms = retry_after_ms > 0 ? retry_after_ms : CHECKPOINT_HOOK_PAUSE_MS;
    hook->is_in_progress = true;
    hook->retry_ms = CHECKPOINT_HOOK_PAUSE_MS;
    hook->pause_ms = pause_ms < CHECKPOINT_HOOK_MAX_RETRY_AFTER_MS
                         ? pause_ms
                         : CHECKPOINT_HOOK_MAX_RETRY_AFTER_MS;
}

static void on_reply(void *context, const struct http_reply *reply)
{
    struct hook *hook = context;
    int status = reply->status;
    hook->request = 0;
    log_event(LOG_INFO, "hook", "replied", LOG_STR("job", hook->key),
              LOG_STR("url", hook->url), LOG_INT("status", status),
              LOG_STR("error", status ? "" : reply->error.message));
    hook->unheard = reply->is_refused ? hook->unheard + 1 : 0;
    if (hook->unheard == CHECKPOINT_HOOK_MAX_UNHEARD) {
        finish(hook, HOOK_REFUSED, "nobody listens at its port");
    } else if (status == 202) {
        ask_how_it_goes(hook, reply->retry_after_ms);
    } else if (status >= 200 && status < 300) {
        finish(hook, HOOK_ACKNOWLEDGED, NULL);
    } else if (status == 408 || status == 425 || status == 429 || status >= 500 ||
               (!status && reply->error.code != HET_BAD_INPUT)) {
        try_again(hook);
    } else {
        auto_free char *message =
            status ? xasprintf("it answered %d", status)
                   : xasprintf("its answer cannot be read: %s", reply->error.message);
        finish(hook, HOOK_REFUSED, message);
    }
}

static void ask(struct hook *hook)
{
    bool is_post = !hook->is_in_progress;
    struct http_request request = {
        .method = is_post ? "POST" : "GET",
        .path = hook->url,
        .content_type = is_post ? "application/json" : NULL,
        .body = is_post ? hook->body : NULL,
        .body_length = is_post ? strlen(hook->body) : 0,
        .timeout_ms = hook->deadline_ms - hook->hooks->now_ms,
        .max_response_bytes = CHECKPOINT_HOOK_RESPONSE_BYTES,
        .new_connection = true,
        .user_agent = "heterotrain-controller",
    };
    struct http_handler handler = { .on_done = on_reply, .context = hook };
    hook->request = transport_start(hook->hooks->transport, &request, &handler);
}

/* Whether one more request may be under way for the namespace of `hook`. */
static bool has_room(const struct hook *hook)
{
    size_t all = 0, of_namespace = 0;
    size_t length = strcspn(hook->key, "/") + 1;
    for (const struct hook *other = hook->hooks->first; other; other = other->next) {
        if (!other->request)
            continue;
        all++;
        of_namespace += !strncmp(other->key, hook->key, length);
    }
    return all < CHECKPOINT_HOOK_MAX && of_namespace < CHECKPOINT_HOOK_MAX_OF_NAMESPACE;
}

void checkpoint_hooks_step(struct checkpoint_hooks *hooks, int64_t now_ms)
{
    hooks->now_ms = now_ms;
    for (struct hook *hook = hooks->first, *next; hook; hook = next) {
        next = hook->next;
        if (hook->pause_ms)
            hook->due_ms = now_ms + hook->pause_ms;
        hook->pause_ms = 0;
        if (now_ms >= hook->deadline_ms)
            remove_hook(hook);
        else if (hook->is_bad_address)
            finish(hook, HOOK_REFUSED, "the pod's address is none that may be called");
        else if (!hook->request && now_ms >= hook->due_ms && has_room(hook))
            ask(hook);
    }
}

int64_t checkpoint_hooks_next_ms(const struct checkpoint_hooks *hooks)
{
    int64_t next_ms = INT64_MAX;
    for (const struct hook *hook = hooks->first; hook; hook = hook->next) {
        if (hook->pause_ms)
            return hooks->now_ms;
        bool waits = !hook->request && (hook->due_ms > hooks->now_ms || has_room(hook));
        int64_t due_ms = waits ? hook->due_ms : hook->deadline_ms;
        if (due_ms < next_ms)
            next_ms = due_ms;
        if (hook->deadline_ms < next_ms)
            next_ms = hook->deadline_ms;
    }
    return next_ms;
}

size_t checkpoint_hooks_count(const struct checkpoint_hooks *hooks)
{
    size_t count = 0;
    for (const struct hook *hook = hooks->first; hook; hook = hook->next)
        count++;
    return count;
}
