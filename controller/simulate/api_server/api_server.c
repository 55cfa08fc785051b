#include "controller/simulate/api_server/api_server.h"

#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/refusal.h"
#include "controller/simulate/api_server/route.h"
#include "controller/simulate/api_server/selector.h"
#include "controller/simulate/api_server/verbs.h"
#include "planner/modules.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BODY = 3 << 20,          /* apiserver MaxRequestBodyBytes */
    BOOKMARK_MS = 60 * 1000,     /* about once a minute */
    LAST_BOOKMARK_MS = 2 * 1000, /* and shortly before a watch ends */
    DEFAULT_WATCH_S = 1800,      /* --min-request-timeout */
    MAX_OBSERVERS = 8,
};

struct watching {
    struct route route;
    struct selector *labels, *fields;
    uint64_t seen; /* revision up to which all has been sent */
    int64_t end_ms, bookmark_ms;
    bool wants_bookmarks;
    char *first; /* lines to send before any change; NULL: sent */
};

/* One request, from transport_start to its on_done. */
struct exchange {
    uint64_t id;
    char *method, *path, *content_type, *body;
    size_t body_length, max_response_bytes;
    struct http_handler handler;
    int64_t start_ms, timeout_ms;
    enum { QUEUED, ANSWERED, WATCHING, ENDED } state;
    int64_t due_ms; /* QUEUED: when it is acted on; ANSWERED: when the reply arrives */

    int status;
    char *answer;
    int64_t retry_after_ms;
    bool maybe_sent, is_refused;
    struct watching *watching;
    /* Of a list: API_SERVER_EMPTY_LIST, ...; 0: it tells the truth. */
    enum api_server_fault lie;
};

struct api_server {
    struct transport transport; /* first: the client's view */
    struct verbs registry;
    struct exchange **exchanges; /* in the order of their start */
    size_t exchange_count, exchange_capacity;
    uint64_t last_id;
    bool is_polling;

    struct {
        api_server_observer *call;
        void *context;
    } observers[MAX_OBSERVERS];
    size_t observer_count;
    uint64_t told; /* revision up to which the observers know */
    bool is_telling;
    uint64_t client_first, client_last; /* revisions that its latest write made */

    api_server_outside *outside;
    void *outside_context;

    api_server_fault_source *fault_source;
    void *fault_context;
    uint64_t calls, writes, draws;
    unsigned fault_per_mille;
    int64_t latency_ms;
    bool *held, *is_missing; /* one a kind */
    struct api_server_statistics statistics;
};

/* ---- observers ---- */

static void tell(struct api_server *api_server)
{
    if (api_server->is_telling)
        return;
    api_server->is_telling = true;
    struct storage *history = api_server->registry.history;
    while (api_server->told < storage_revision(history)) {
        /* A copy: an observer's own changes may compact the history. */
        struct storage_change change = *storage_change(history, ++api_server->told);
        struct api_server_change shown = {
            .plural = change.kind->plural,
            .revision = change.revision,
            .at_ms = change.at_ms,
            .before = json_incref(change.before),
            .after = json_incref(change.after),
            .by_client = change.revision >= api_server->client_first &&
                         change.revision <= api_server->client_last
        };
        for (size_t i = 0; i < api_server->observer_count; i++)
            api_server->observers[i].call(api_server->observers[i].context, &shown);
        json_decref(shown.before);
        json_decref(shown.after);
    }
    api_server->is_telling = false;
}

void api_server_observe(struct api_server *api_server, api_server_observer *observer,
                        void *context)
{
    assert(api_server->observer_count < MAX_OBSERVERS);
    api_server->observers[api_server->observer_count].call = observer;
    api_server->observers[api_server->observer_count++].context = context;
}

/* ---- faults ---- */

static uint64_t draw(struct api_server *api_server, uint64_t bound)
{
    return het_random_below(&api_server->draws, bound);
}

static enum api_server_fault random_fault(void *context,
                                          const struct api_server_call *call)
{
    static const enum api_server_fault request_faults[] = {
        API_SERVER_UNREACHABLE, API_SERVER_LOSE_REQUEST, API_SERVER_LOSE_REPLY,
        API_SERVER_LOSE_REPLY,  API_SERVER_HANG,         API_SERVER_ANSWER_500,
        API_SERVER_ANSWER_503,  API_SERVER_ANSWER_429,   API_SERVER_ANSWER_409,
        API_SERVER_ANSWER_410,
    };
    static const enum api_server_fault watch_faults[] = { API_SERVER_CUT, API_SERVER_CUT,
                                                          API_SERVER_ANSWER_410 };
    struct api_server *api_server = context;
    if (draw(api_server, 1000) >= api_server->fault_per_mille)
        return API_SERVER_NO_FAULT;
    if (!strcmp(call->method, "WATCH"))
        return watch_faults[draw(api_server, 3)];
    return request_faults[draw(api_server, sizeof request_faults / sizeof(int))];
}

void api_server_set_faults(struct api_server *api_server, api_server_fault_source *source,
                           void *context)
{
    api_server->fault_source = source;
    api_server->fault_context = context;
}

void api_server_set_random_faults(struct api_server *api_server, uint64_t seed,
                                  unsigned per_mille, int64_t latency_ms)
{
    api_server->draws = seed;
    api_server->fault_per_mille = per_mille;
    api_server->latency_ms = latency_ms;
    api_server_set_faults(api_server, per_mille ? random_fault : NULL, api_server);
}

static int64_t some_latency(struct api_server *api_server)
{
    if (!api_server->latency_ms)
        return 0;
    return (int64_t)(draw(api_server, (uint64_t)api_server->latency_ms + 1));
}

static enum api_server_fault ask_fault(struct api_server *api_server, const char *method,
                                       const char *path, bool is_write)
{
    struct api_server_call call = { .method = method,
                                    .path = path,
                                    .ordinal = ++api_server->calls,
                                    .write_ordinal = is_write ? ++api_server->writes
                                                              : 0 };
    if (!api_server->fault_source)
        return API_SERVER_NO_FAULT;
    enum api_server_fault fault =
        api_server->fault_source(api_server->fault_context, &call);
    api_server->statistics.faults += fault != API_SERVER_NO_FAULT;
    return fault;
}

void api_server_hold_watches(struct api_server *api_server, const char *plural, bool held)
{
    for (size_t i = 0; i < kind_count; i++)
        if (!plural || !strcmp(plural, kinds[i].plural))
            api_server->held[i] = held;
}

void api_server_compact(struct api_server *api_server)
{
    struct storage *history = api_server->registry.history;
    storage_compact(history, storage_revision(history));
}

/* ---- answers ---- */

/* `answer` is taken. */
static void answer_text(struct api_server *api_server, struct exchange *exchange,
                        int status, char *answer)
{
    free(exchange->answer);
    exchange->state = ANSWERED;
    exchange->status = status;
    exchange->answer = answer;
    exchange->due_ms = api_server->registry.now_ms + some_latency(api_server);
}

/* `body` is taken. */
static void answer(struct api_server *api_server, struct exchange *exchange, int status,
                   json_t *body)
{
    answer_text(api_server, exchange, status, json_dumps(body, JSON_COMPACT));
    int64_t retry_after_s = object_integer(body, "details.retryAfterSeconds", -1);
    exchange->retry_after_ms = retry_after_s < 0 ? -1 : retry_after_s * 1000;
    json_decref(body);
}

static void refuse(struct api_server *api_server, struct exchange *exchange,
                   json_t *status)
{
    answer(api_server, exchange, refusal_code(status), status);
}

/* The connection breaks: status 0. */
static void fail(struct api_server *api_server, struct exchange *exchange,
                 bool maybe_sent)
{
    answer_text(api_server, exchange, 0, xstrdup(""));
    exchange->maybe_sent = maybe_sent;
}

/* ---- lists ---- */

/* Where a list goes on: the revision it was begun at and the last key shown. Opaque to
 * clients, so hexadecimal. */
static char *make_token(uint64_t revision, const char *key)
{
    char *token = xasprintf("%llu.", (unsigned long long)revision);
    for (const char *c = key; *c; c++) {
        auto_free char *before = token;
        token = xasprintf("%s%02x", before, (unsigned char)*c);
    }
    return token;
}

/* 0, or -1 if it is not one of our tokens. */
static int parse_token(const char *token, uint64_t *ret_revision, char **ret_key)
{
    char *end;
    unsigned long long revision = strtoull(token, &end, 10);
    size_t length = *end == '.' ? strlen(end + 1) : 1;
    if (length % 2)
        return -1;
    char *key = xmalloc(length / 2 + 1);
    for (size_t i = 0; i < length / 2; i++) {
        char pair[3] = { end[1 + 2 * i], end[2 + 2 * i], '\0' };
        key[i] = (char)strtoul(pair, NULL, 16);
    }
    key[length / 2] = '\0';
    *ret_revision = revision;
    *ret_key = key;
    return 0;
}

struct selection {
    const struct route *route;
    struct selector *labels, *fields;
};

static bool is_selected(const struct selection *selection, const json_t *object)
{
    const char *ns = selection->route->ns;
    return object && (!*ns || !strcmp(ns, object_text(object, "metadata.namespace"))) &&
           selector_matches(selection->labels, object) &&
           selector_matches(selection->fields, object);
}

static void selection_fini(struct selection *selection)
{
    selector_free(selection->labels);
    selector_free(selection->fields);
}

/* NULL or a Status; the selectors are made in any case but that. */
static json_t *selection_init(const struct route *route, struct selection *ret)
{
    const char *labels = route_query(route, "labelSelector");
    const char *fields = route_query(route, "fieldSelector");
    const char *message = NULL;
    ret->route = route;
    ret->labels = selector_new(labels, false, &message);
    if (!ret->labels)
        return refusal_bad_request("unable to parse label selector \"%s\": %s", labels,
                                   message);
    ret->fields = selector_new(fields, true, &message);
    const char *unknown = NULL;
    if (ret->fields)
        unknown =
            selector_unknown_field(ret->fields, kind_selectable_fields(route->kind));
    if (ret->fields && !unknown)
        return NULL;
    json_t *refused = unknown
                          ? refusal_bad_request("field label not supported: %s", unknown)
                          : refusal_bad_request("invalid selector: '%s'", fields);
    selection_fini(ret);
    return refused;
}

struct page {
    uint64_t revision;
    char *after;  /* last key of the page before; NULL: this is the first */
    size_t limit; /* 0: none */
};

/* At which revision a list is taken, and from where; NULL or a Status. */
static json_t *page_init(const struct api_server *api_server, const struct route *route,
                         struct page *ret)
{
    const struct storage *history = api_server->registry.history;
    const char *version = route_query(route, "resourceVersion");
    const char *token = route_query(route, "continue");
    const char *match = route_query(route, "resourceVersionMatch");
    uint64_t asked = strtoull(version, NULL, 10);
    uint64_t now = storage_revision(history);
    *ret = (struct page){ .revision = now,
                          .limit = strtoull(route_query(route, "limit"), NULL, 10) };
    if (*token) {
        if (*version && asked)
            return refusal_bad_request("specifying resource version is not allowed when "
                                       "using continue");
        if (parse_token(token, &ret->revision, &ret->after) < 0)
            return refusal_bad_request("continue key is not valid");
        if (ret->revision >= storage_compacted(history))
            return NULL;
        json_t *expired = refusal_expired(
            "The provided continue parameter is too old to display a consistent list "
            "result. You can start a new list without the continue parameter, or use the "
            "continue token in this response to retrieve the remainder of the results.");
        auto_free char *fresh = make_token(now, ret->after);
        object_set(expired, "metadata.continue", json_string(fresh));
        return expired;
    }
    if (asked > now)
        return refusal_version_too_large(asked, now);
    if (*version && !asked)
        ret->limit = 0; /* any version will do: the cache answers, without pages */
    if (!strcmp(match, "Exact") || (asked && ret->limit && !*match))
        ret->revision = asked;
    if (ret->revision < storage_compacted(history))
        return refusal_expired("The resourceVersion for the provided list is too old.");
    return NULL;
}

/* Items of the kinds that are built in do not repeat what the list says. */
static json_t *list_item(const struct kind *kind, json_t *object)
{
    if (kind->is_custom)
        return json_incref(object);
    json_t *item = json_copy(object);
    json_object_del(item, "kind");
    json_object_del(item, "apiVersion");
    return item;
}

/* Whether a list that lies leaves out the object at `index`. */
static bool is_left_out(enum api_server_fault lie, size_t index)
{
    return lie == API_SERVER_EMPTY_LIST || (lie == API_SERVER_PARTIAL_LIST && index % 2);
}

static json_t *make_list(const struct api_server *api_server, const struct kind *kind,
                         const struct selection *selection, const struct page *page,
                         enum api_server_fault lie)
{
    json_auto_t *all =
        storage_list_at(api_server->registry.history, kind, page->revision);
    json_t *items = json_array();
    auto_free char *next = NULL;
    auto_free char *version = kind_api_version(kind);
    json_int_t remaining = 0;
    size_t i;
    json_t *object;
    json_array_foreach (all, i, object) {
        auto_free char *key = object_key(object);
        if ((page->after && strcmp(key, page->after) <= 0) ||
            !is_selected(selection, object) || is_left_out(lie, i))
            continue;
        if (page->limit && json_array_size(items) == page->limit) {
            remaining++;
            continue;
        }
        json_array_append_new(items, list_item(kind, object));
        if (json_array_size(items) == page->limit)
            next = make_token(page->revision, key);
    }
    json_t *list = json_pack(
        "{s:o, s:s, s:{s:o}, s:o}", "kind", json_sprintf("%sList", kind->name),
        "apiVersion", version, "metadata", "resourceVersion",
        json_sprintf("%llu", (unsigned long long)page->revision), "items", items);
    if (remaining) {
        object_set(list, "metadata.continue", json_string(next));
        if (selector_is_empty(selection->labels) && selector_is_empty(selection->fields))
            object_set(list, "metadata.remainingItemCount", json_integer(remaining));
    }
    return list;
}

/* Some revision before `revision` that is still known. */
static uint64_t earlier_revision(struct api_server *api_server, uint64_t revision)
{
    uint64_t first = storage_compacted(api_server->registry.history);
    return revision > first ? first + draw(api_server, revision - first) : revision;
}

static void serve_list(struct api_server *api_server, struct exchange *exchange,
                       const struct route *route)
{
    struct selection selection;
    struct page page;
    api_server->statistics.lists++;
    json_t *refused = selection_init(route, &selection);
    if (refused) {
        refuse(api_server, exchange, refused);
        return;
    }
    refused = page_init(api_server, route, &page);
    if (!refused && exchange->lie == API_SERVER_STALE_LIST)
        page.revision = earlier_revision(api_server, page.revision);
    if (refused)
        refuse(api_server, exchange, refused);
    else
        answer(api_server, exchange, 200,
               make_list(api_server, route->kind, &selection, &page, exchange->lie));
    free(page.after);
    selection_fini(&selection);
}

/* ---- watches ---- */

static void watching_free(struct watching *watching)
{
    if (!watching)
        return;
    route_fini(&watching->route);
    selector_free(watching->labels);
    selector_free(watching->fields);
    free(watching->first);
    free(watching);
}

static struct selection selection_of(const struct watching *watching)
{
    return (struct selection){ &watching->route, watching->labels, watching->fields };
}

static char *event_line(const char *type, json_t *object)
{
    auto_free char *text = json_dumps(object, JSON_COMPACT);
    return xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, text);
}

static char *bookmark_line(const struct kind *kind, uint64_t revision, bool ends_initial)
{
    auto_free char *version = kind_api_version(kind);
    json_auto_t *object = json_pack("{s:s, s:s, s:{s:o, s:n}}", "kind", kind->name,
                                    "apiVersion", version, "metadata", "resourceVersion",
                                    json_sprintf("%llu", (unsigned long long)revision),
                                    "creationTimestamp");
    if (ends_initial)
        object_set(object, "metadata.annotations",
                   json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    return event_line("BOOKMARK", object);
}

static void append(char **text, char *more)
{
    auto_free char *before = *text;
    auto_free char *added = more;
    *text = xasprintf("%s%s", before ? before : "", added);
}

/* What a watch without a beginning is sent first: everything there is. */
static void add_initial(const struct api_server *api_server, struct watching *watching)
{
    const struct storage *history = api_server->registry.history;
    const struct kind *kind = watching->route.kind;
    struct selection selection = selection_of(watching);
    for (size_t i = 0; i < storage_count(history, kind); i++) {
        json_t *object = storage_at(history, kind, i);
        if (is_selected(&selection, object))
            append(&watching->first, event_line("ADDED", object));
    }
}

static json_t *check_watch_query(const struct route *route)
{
    const char *match = route_query(route, "resourceVersionMatch");
    bool wants_initial = *route_query(route, "sendInitialEvents");
    if (wants_initial == (*match != '\0'))
        return NULL;
    struct refusal_subject subject = { "meta.k8s.io", "listoptions", "ListOptions", "" };
    json_t *causes = json_array();
    refusal_add_cause(causes, "FieldValueForbidden", "resourceVersionMatch",
                      wants_initial
                          ? "Forbidden: sendInitialEvents requires setting "
                            "resourceVersionMatch to NotOlderThan"
                          : "Forbidden: resourceVersionMatch is forbidden for watch "
                            "unless sendInitialEvents is provided");
    return refusal_invalid(&subject, causes);
}

static void begin_watch(struct api_server *api_server, struct exchange *exchange,
                        struct watching *watching)
{
    const struct route *route = &watching->route;
    const char *version = route_query(route, "resourceVersion");
    uint64_t asked = strtoull(version, NULL, 10);
    uint64_t now = storage_revision(api_server->registry.history);
    int64_t timeout_s = atoll(route_query(route, "timeoutSeconds"));
    if (timeout_s <= 0)
        timeout_s = DEFAULT_WATCH_S + (int64_t)(exchange->id % DEFAULT_WATCH_S);
    watching->wants_bookmarks = route_query_is_true(route, "allowWatchBookmarks");
    watching->end_ms = api_server->registry.now_ms + timeout_s * 1000;
    watching->bookmark_ms = api_server->registry.now_ms + BOOKMARK_MS;
    watching->seen = asked ? asked : now;
    bool initial = route_query_is_true(route, "sendInitialEvents");
    if (!asked || initial) {
        watching->seen = now;
        add_initial(api_server, watching);
    }
    if (initial)
        append(&watching->first, bookmark_line(route->kind, now, true));
    exchange->watching = watching;
    exchange->state = WATCHING;
}

/* `route` is taken over by the watch, if there is one. */
static void serve_watch(struct api_server *api_server, struct exchange *exchange,
                        struct route *route)
{
    struct selection selection;
    api_server->statistics.watches++;
    json_t *refused = check_watch_query(route);
    if (!refused)
        refused = selection_init(route, &selection);
    if (refused) {
        refuse(api_server, exchange, refused);
        return;
    }
    struct watching *watching = xcalloc(1, sizeof *watching);
    watching->route = *route;
    watching->labels = selection.labels;
    watching->fields = selection.fields;
    *route = (struct route){ 0 };
    begin_watch(api_server, exchange, watching);
}

/* Sends a piece of the stream; collects it for a client that wants it whole. */
static void emit(struct exchange *exchange, const char *text, size_t length)
{
    if (exchange->handler.on_data) {
        exchange->handler.on_data(exchange->handler.context, text, length);
        return;
    }
    auto_free char *before = exchange->answer;
    exchange->answer = xasprintf("%s%.*s", before ? before : "", (int)length, text);
}

static void end_watch(struct api_server *api_server, struct exchange *exchange)
{
    if (exchange->state == WATCHING)
        answer_text(api_server, exchange, 200,
                    exchange->answer ? TAKE(exchange->answer) : xstrdup(""));
}

static void send_line(struct exchange *exchange, char *line)
{
    auto_free char *text = line;
    emit(exchange, text, strlen(text));
}

static void send_expired(struct api_server *api_server, struct exchange *exchange)
{
    json_auto_t *status = refusal_expired(
        "too old resource version: %llu (%llu)",
        (unsigned long long)exchange->watching->seen,
        (unsigned long long)storage_compacted(api_server->registry.history) + 1);
    send_line(exchange, event_line("ERROR", status));
    end_watch(api_server, exchange);
}

/* What a watch shows of a change; NULL if nothing. The text is freed by the caller. */
static char *line_of_change(const struct watching *watching,
                            const struct storage_change *change)
{
    struct selection selection = selection_of(watching);
    bool was = is_selected(&selection, change->before);
    bool is = is_selected(&selection, change->after);
    if (!was && !is)
        return NULL;
    if (is)
        return event_line(was ? "MODIFIED" : "ADDED", change->after);
    if (!change->after)
        return event_line("DELETED", change->object);
    /* It left the selection: its last selected state, at the revision of its leaving. */
    json_auto_t *last = json_deep_copy(change->before);
    object_set(last, "metadata.resourceVersion",
               json_sprintf("%llu", (unsigned long long)change->revision));
    return event_line("DELETED", last);
}

/* When the change reaches this watch: the same each time it is asked. */
static int64_t arrival_ms(const struct api_server *api_server,
                          const struct exchange *exchange,
                          const struct storage_change *change)
{
    if (!api_server->latency_ms)
        return change->at_ms;
    uint64_t bits = (change->revision * 31 + exchange->id) * 0x9e3779b97f4a7c15u;
    return change->at_ms +
           (int64_t)((bits >> 33) % (uint64_t)(api_server->latency_ms + 1));
}

/* Sends `line` (taken), or what a fault makes of it. */
static void send_event(struct api_server *api_server, struct exchange *exchange,
                       char *line)
{
    auto_free char *text = line;
    switch (ask_fault(api_server, "WATCH", exchange->path, false)) {
    case API_SERVER_CUT:
    case API_SERVER_UNREACHABLE:
    case API_SERVER_LOSE_REPLY:
        emit(exchange, text, strlen(text) / 2);
        if (exchange->state == WATCHING)
            fail(api_server, exchange, true);
        return;
    case API_SERVER_ANSWER_410:
        send_expired(api_server, exchange);
        return;
    case API_SERVER_NO_FAULT:
    case API_SERVER_LOSE_REQUEST:
    case API_SERVER_HANG:
    case API_SERVER_ANSWER_500:
    case API_SERVER_ANSWER_503:
    case API_SERVER_ANSWER_429:
    case API_SERVER_ANSWER_409:
    case API_SERVER_EMPTY_LIST:
    case API_SERVER_PARTIAL_LIST:
    case API_SERVER_STALE_LIST:
        break;
    }
    emit(exchange, text, strlen(text));
}

static bool is_held(const struct api_server *api_server, const struct watching *watching)
{
    return api_server->held[watching->route.kind - kinds];
}

static void send_changes(struct api_server *api_server, struct exchange *exchange)
{
    struct storage *history = api_server->registry.history;
    struct watching *watching = exchange->watching;
    while (exchange->state == WATCHING && watching->seen < storage_revision(history)) {
        if (watching->seen < storage_compacted(history)) {
            send_expired(api_server, exchange);
            return;
        }
        const struct storage_change *change = storage_change(history, watching->seen + 1);
        if (arrival_ms(api_server, exchange, change) > api_server->registry.now_ms)
            return;
        watching->seen++;
        char *line = change->kind == watching->route.kind
                         ? line_of_change(watching, change)
                         : NULL;
        if (line)
            send_event(api_server, exchange, line);
    }
}

static void send_bookmark(struct api_server *api_server, struct exchange *exchange)
{
    struct watching *watching = exchange->watching;
    int64_t now_ms = api_server->registry.now_ms;
    if (exchange->state != WATCHING || now_ms < watching->bookmark_ms)
        return;
    int64_t last_ms = watching->end_ms - LAST_BOOKMARK_MS;
    watching->bookmark_ms = now_ms < last_ms && now_ms + BOOKMARK_MS > last_ms
                                ? last_ms
                                : now_ms + BOOKMARK_MS;
    if (watching->wants_bookmarks)
        send_line(exchange, bookmark_line(watching->route.kind, watching->seen, false));
}

static void serve_stream(struct api_server *api_server, struct exchange *exchange)
{
    struct watching *watching = exchange->watching;
    if (is_held(api_server, watching))
        return;
    if (watching->first) {
        auto_free char *first = TAKE(watching->first);
        emit(exchange, first, strlen(first));
    }
    if (exchange->state == WATCHING)
        send_changes(api_server, exchange);
    send_bookmark(api_server, exchange);
    if (exchange->state == WATCHING && api_server->registry.now_ms >= watching->end_ms)
        end_watch(api_server, exchange);
}

/* ---- requests on one object ---- */

static json_t *decode_body(const struct exchange *exchange, json_t **ret_body)
{
    json_error_t error;
    if (exchange->body_length > MAX_BODY)
        return refusal_of(413, "RequestEntityTooLarge",
                          "Request entity too large: limit is %d", MAX_BODY);
    *ret_body = json_loadb(exchange->body, exchange->body_length, JSON_ALLOW_NUL, &error);
    return *ret_body ? NULL
                     : refusal_bad_request("the object provided is unrecognized: %s "
                                           "(offset %d)",
                                           error.text, error.position);
}

static int patch_type(const char *content_type, enum patch_type *ret)
{
    if (!strcmp(content_type, "application/merge-patch+json"))
        *ret = PATCH_MERGE;
    else if (!strcmp(content_type, "application/json-patch+json"))
        *ret = PATCH_OPERATIONS;
    else if (!strcmp(content_type, "application/apply-patch+yaml"))
        *ret = PATCH_APPLY;
    else
        return -1;
    return 0;
}

static int serve_patch(struct api_server *api_server, const struct exchange *exchange,
                       const struct route *route, const struct target *target,
                       json_t *body, json_t **ret_body)
{
    struct patch patch = { .body = body,
                           .manager = route_query(route, "fieldManager"),
                           .force = route_query_is_true(route, "force") };
    if (patch_type(exchange->content_type, &patch.type) < 0)
        *ret_body = refusal_of(415, "UnsupportedMediaType",
                               "the body of the request was in an unknown format - "
                               "accepted media types include: "
                               "application/json-patch+json, "
                               "application/merge-patch+json, "
                               "application/apply-patch+yaml");
    else if (patch.type == PATCH_APPLY && !*patch.manager)
        *ret_body = refusal_bad_request("PatchOptions.meta.k8s.io \"\" is invalid: "
                                        "fieldManager: Required value: is required for "
                                        "apply patch");
    else
        return verbs_patch(&api_server->registry, target, &patch, ret_body);
    return refusal_code(*ret_body);
}

/* DeleteOptions may stand in the body and in the query. */
static void options_from_query(const struct route *route, json_t *options)
{
    const char *grace = route_query(route, "gracePeriodSeconds");
    if (*grace)
        object_default(options, "gracePeriodSeconds", json_integer(atoll(grace)));
}

static json_t *method_not_allowed(void)
{
    return refusal_of(405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
}

static int serve_write(struct api_server *api_server, const struct exchange *exchange,
                       const struct route *route, json_t **ret_body)
{
    struct verbs *registry = &api_server->registry;
    struct target target = { .kind = route->kind,
                             .ns = route->ns,
                             .name = route->name,
                             .subresource = route->subresource,
                             .dry_run = !strcmp(route_query(route, "dryRun"), "All") };
    json_auto_t *body = NULL;
    bool is_delete = !strcmp(exchange->method, "DELETE");
    json_t *refused = is_delete && !exchange->body_length ? NULL
                                                          : decode_body(exchange, &body);
    if (!refused && !strcmp(exchange->method, "POST") == (*route->name != '\0'))
        refused = method_not_allowed();
    if (refused) {
        *ret_body = refused;
        return refusal_code(refused);
    }
    if (!strcmp(exchange->method, "POST"))
        return verbs_create(registry, &target, json_incref(body), ret_body);
    if (!strcmp(exchange->method, "PUT"))
        return verbs_update(registry, &target, json_incref(body), ret_body);
    if (!strcmp(exchange->method, "PATCH"))
        return serve_patch(api_server, exchange, route, &target, body, ret_body);
    if (is_delete && !*route->subresource) {
        json_auto_t *options = body ? json_copy(body) : json_object();
        options_from_query(route, options);
        target.dry_run = target.dry_run || json_array_size(object_at(options, "dryRun"));
        return verbs_delete(registry, &target, options, ret_body);
    }
    *ret_body = method_not_allowed();
    return 405;
}

static void serve_get(struct api_server *api_server, struct exchange *exchange,
                      const struct route *route)
{
    json_t *object =
        storage_find(api_server->registry.history, route->kind, route->ns, route->name);
    struct refusal_subject subject = { route->kind->group, route->kind->plural,
                                       route->kind->name, route->name };
    api_server->statistics.reads++;
    if (object)
        answer(api_server, exchange, 200, json_incref(object));
    else
        refuse(api_server, exchange, refusal_not_found(&subject));
}

/* version.Info, as far as clients read it. */
static json_t *version_body(int minor)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s}", "major", "1", "minor",
                     json_sprintf("%d", minor), "gitVersion",
                     json_sprintf("v1.%d.0", minor), "gitTreeState", "clean", "buildDate",
                     "2026-01-01T00:00:00Z", "goVersion", "go1.24.0", "compiler", "gc",
                     "platform", "linux/amd64");
}

/* /version, /healthz, /livez, /readyz */
static void serve_other(struct api_server *api_server, struct exchange *exchange,
                        const struct route *route)
{
    if (!strcmp(route->path, "/version"))
        answer(api_server, exchange, 200, version_body(api_server->registry.minor));
    else if (!strcmp(route->path, "/healthz") || !strcmp(route->path, "/livez") ||
             !strcmp(route->path, "/readyz"))
        answer_text(api_server, exchange, 200, xstrdup("ok"));
    else
        refuse(api_server, exchange,
               refusal_of(404, "NotFound",
                          "the server could not find the requested resource"));
}

static bool is_write(const struct exchange *exchange)
{
    return strcmp(exchange->method, "GET") != 0;
}

static void serve(struct api_server *api_server, struct exchange *exchange)
{
    struct route route;
    json_t *body = route_parse(exchange->path, &route);
    if (body) {
        refuse(api_server, exchange, body);
    } else if (!route.kind || api_server->is_missing[route.kind - kinds]) {
        serve_other(api_server, exchange, &route);
    } else if (is_write(exchange)) {
        api_server->client_first = storage_revision(api_server->registry.history) + 1;
        int status = serve_write(api_server, exchange, &route, &body);
        api_server->client_last = storage_revision(api_server->registry.history);
        tell(api_server);
        api_server->statistics.refused += status >= 400 && status < 500;
        answer(api_server, exchange, status, body);
    } else if (*route.name) {
        serve_get(api_server, exchange, &route);
    } else if (route_query_is_true(&route, "watch")) {
        serve_watch(api_server, exchange, &route);
    } else {
        serve_list(api_server, exchange, &route);
    }
    route_fini(&route);
}

/* ---- what happens to a request ---- */

static void answer_with_fault(struct api_server *api_server, struct exchange *exchange,
                              enum api_server_fault fault)
{
    struct refusal_subject subject = { "", "objects", "Object", "injected" };
    bool may_conflict = is_write(exchange) && strcmp(exchange->method, "POST") != 0;
    switch (fault) {
    case API_SERVER_UNREACHABLE:
        fail(api_server, exchange, false);
        return;
    case API_SERVER_LOSE_REQUEST:
    case API_SERVER_CUT:
        fail(api_server, exchange, true);
        return;
    case API_SERVER_HANG:
        fail(api_server, exchange, true);
        exchange->due_ms = exchange->start_ms + exchange->timeout_ms;
        return;
    case API_SERVER_ANSWER_503:
    case API_SERVER_ANSWER_429:
        answer_text(api_server, exchange, fault == API_SERVER_ANSWER_429 ? 429 : 503,
                    xstrdup("Too many requests, please try again later.\n"));
        exchange->retry_after_ms = 1000;
        return;
    case API_SERVER_ANSWER_409:
        if (may_conflict) {
            refuse(api_server, exchange,
                   refusal_conflict(&subject, "a fault was injected"));
            return;
        }
        break;
    case API_SERVER_ANSWER_410:
        if (!is_write(exchange)) {
            refuse(api_server, exchange, refusal_expired("a fault was injected"));
            return;
        }
        break;
    case API_SERVER_NO_FAULT:
    case API_SERVER_LOSE_REPLY:
    case API_SERVER_ANSWER_500:
    case API_SERVER_EMPTY_LIST:
    case API_SERVER_PARTIAL_LIST:
    case API_SERVER_STALE_LIST:
        break;
    }
    refuse(
        api_server, exchange,
        refusal_of(500, "InternalError", "an error on the server: a fault was injected"));
}

void api_server_set_outside(struct api_server *api_server, api_server_outside *outside,
                            void *context)
{
    api_server->outside = outside;
    api_server->outside_context = context;
}

static void ask_outside(struct api_server *api_server, struct exchange *exchange)
{
    int64_t delay_ms = 0;
    int status = api_server->outside
                     ? api_server->outside(api_server->outside_context, exchange->method,
                                           exchange->path, &delay_ms)
                     : 0;
    int64_t patience_ms = exchange->timeout_ms ? exchange->timeout_ms : INT64_MAX / 2;
    exchange->is_refused = !status && delay_ms < patience_ms;
    if (delay_ms >= patience_ms) {
        status = 0;
        delay_ms = patience_ms;
    }
    answer_text(api_server, exchange, status, xstrdup(""));
    exchange->maybe_sent = !status && !exchange->is_refused;
    exchange->due_ms = api_server->registry.now_ms + delay_ms;
}

static void act(struct api_server *api_server, struct exchange *exchange)
{
    if (http_is_outside(exchange->path)) {
        ask_outside(api_server, exchange);
        return;
    }
    enum api_server_fault fault =
        ask_fault(api_server, exchange->method, exchange->path, is_write(exchange));
    api_server->statistics.writes += is_write(exchange);
    exchange->lie = fault >= API_SERVER_EMPTY_LIST ? fault : API_SERVER_NO_FAULT;
    if (fault != API_SERVER_NO_FAULT && fault != API_SERVER_LOSE_REPLY &&
        !exchange->lie) {
        answer_with_fault(api_server, exchange, fault);
        return;
    }
    serve(api_server, exchange);
    if (fault == API_SERVER_LOSE_REPLY)
        fail(api_server, exchange, true);
}

static void deliver(struct exchange *exchange)
{
    struct http_reply reply = { .status = exchange->status,
                                .retry_after_ms = exchange->retry_after_ms,
                                .body = exchange->answer,
                                .body_length = strlen(exchange->answer),
                                .maybe_sent = exchange->maybe_sent,
                                .is_refused = exchange->is_refused };
    exchange->state = ENDED;
    if (exchange->max_response_bytes && !exchange->watching &&
        reply.body_length > exchange->max_response_bytes) {
        reply =
            (struct http_reply){ .retry_after_ms = -1, .body = "", .maybe_sent = true };
        het_fail(&reply.error, HET_BAD_INPUT, "the reply is longer than %zu bytes",
                 exchange->max_response_bytes);
    } else if (!reply.status) {
        het_fail(&reply.error, HET_IO, "the connection was lost");
    }
    bool stream = exchange->handler.on_data && reply.status >= 200 && reply.status < 300;
    if (stream && reply.body_length) {
        exchange->state = ANSWERED;
        exchange->handler.on_data(exchange->handler.context, reply.body,
                                  reply.body_length);
        if (exchange->state == ENDED)
            return; /* cancelled from inside */
        exchange->state = ENDED;
        reply.body = "";
        reply.body_length = 0;
    }
    if (exchange->handler.on_done)
        exchange->handler.on_done(exchange->handler.context, &reply);
}

static void run(struct api_server *api_server, struct exchange *exchange)
{
    int64_t now_ms = api_server->registry.now_ms;
    if (exchange->state == QUEUED && exchange->due_ms <= now_ms)
        act(api_server, exchange);
    if (exchange->state == WATCHING)
        serve_stream(api_server, exchange);
    if (exchange->state == ANSWERED && exchange->due_ms <= now_ms)
        deliver(exchange);
}

/* ---- the transport ---- */

static struct api_server *api_server_of(struct transport *transport)
{
    return (struct api_server *)transport;
}

static uint64_t start(struct transport *transport, const struct http_request *request,
                      const struct http_handler *handler)
{
    struct api_server *api_server = api_server_of(transport);
    struct exchange *exchange = xcalloc(1, sizeof *exchange);
    *exchange = (struct exchange){
        .id = ++api_server->last_id,
        .method = xstrdup(request->method),
        .path = xstrdup(request->path),
        .content_type = xstrdup(request->content_type ? request->content_type : ""),
        .body = xmalloc(request->body_length + 1),
        .body_length = request->body_length,
        .max_response_bytes = request->max_response_bytes,
        .handler = *handler,
        .start_ms = api_server->registry.now_ms,
        .timeout_ms = request->timeout_ms,
        .due_ms = api_server->registry.now_ms + some_latency(api_server),
        .retry_after_ms = -1,
    };
    if (request->body_length)
        memcpy(exchange->body, request->body, request->body_length);
    exchange->body[request->body_length] = '\0';
    ARRAY_RESERVE(api_server->exchanges, &api_server->exchange_capacity,
                  api_server->exchange_count + 1);
    api_server->exchanges[api_server->exchange_count++] = exchange;
    return exchange->id;
}

static void exchange_free(struct exchange *exchange)
{
    watching_free(exchange->watching);
    free(exchange->method);
    free(exchange->path);
    free(exchange->content_type);
    free(exchange->body);
    free(exchange->answer);
    free(exchange);
}

static void sweep(struct api_server *api_server)
{
    size_t kept = 0;
    for (size_t i = 0; i < api_server->exchange_count; i++) {
        if (api_server->exchanges[i]->state == ENDED)
            exchange_free(api_server->exchanges[i]);
        else
            api_server->exchanges[kept++] = api_server->exchanges[i];
    }
    api_server->exchange_count = kept;
}

/* A write that was under way when its client left may still arrive. */
static void abandon(struct api_server *api_server, struct exchange *exchange)
{
    if (exchange->state == QUEUED && is_write(exchange) &&
        !http_is_outside(exchange->path) &&
        ask_fault(api_server, exchange->method, exchange->path, true) ==
            API_SERVER_LOSE_REPLY)
        serve(api_server, exchange);
    exchange->state = ENDED;
}

static void cancel(struct transport *transport, uint64_t id)
{
    struct api_server *api_server = api_server_of(transport);
    for (size_t i = 0; i < api_server->exchange_count; i++)
        if (api_server->exchanges[i]->id == id &&
            api_server->exchanges[i]->state != ENDED)
            abandon(api_server, api_server->exchanges[i]);
    if (!api_server->is_polling)
        sweep(api_server);
}

static int poll_requests(struct transport *transport, struct pollfd *extra,
                         size_t extra_count, int64_t timeout_ms)
{
    struct api_server *api_server = api_server_of(transport);
    bool is_due = api_server_next_ms(api_server) <= api_server->registry.now_ms;
    /* Writes first, then what they changed: a reply comes before its watch event. What
     * callbacks start is for the next call. */
    size_t count = api_server->exchange_count;
    api_server->is_polling = true;
    for (size_t i = 0; i < count; i++)
        if (api_server->exchanges[i]->state != WATCHING)
            run(api_server, api_server->exchanges[i]);
    for (size_t i = 0; i < count; i++)
        run(api_server, api_server->exchanges[i]);
    api_server->is_polling = false;
    sweep(api_server);
    if (!extra_count)
        return 0;
    int wait_ms = is_due ? 0 : timeout_ms > 60000 ? 60000 : (int)timeout_ms;
    return poll(extra, (nfds_t)extra_count, wait_ms) < 0 ? -1 : 0;
}

static void release(struct transport *transport)
{
    api_server_disconnect(api_server_of(transport));
}

struct transport *api_server_transport(struct api_server *api_server)
{
    return &api_server->transport;
}

void api_server_disconnect(struct api_server *api_server)
{
    for (size_t i = 0; i < api_server->exchange_count; i++)
        if (api_server->exchanges[i]->state != ENDED)
            abandon(api_server, api_server->exchanges[i]);
    if (!api_server->is_polling)
        sweep(api_server);
}

/* ---- life and time ---- */

struct api_server *api_server_new(uint64_t seed)
{
    static const struct transport_ops ops = {
        .start = start, .cancel = cancel, .poll = poll_requests, .free = release
    };
    static const char *const namespaces[] = { "default", "kube-system" };
    struct api_server *api_server = xcalloc(1, sizeof *api_server);
    api_server->transport.ops = &ops;
    api_server->registry.history = storage_new();
    api_server->registry.seed = seed;
    api_server->registry.now_ms = API_SERVER_START_MS;
    api_server->registry.minor = API_SERVER_MINOR;
    api_server->held = xcalloc(kind_count, sizeof *api_server->held);
    api_server->is_missing = xcalloc(kind_count, sizeof *api_server->is_missing);
    api_server_install(api_server, "kueue.x-k8s.io", false);
    api_server->told = storage_revision(api_server->registry.history);
    for (size_t i = 0; i < 2; i++)
        api_server_put(api_server,
                       json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind",
                                 "Namespace", "metadata", "name", namespaces[i]),
                       NULL);
    return api_server;
}

void api_server_free(struct api_server *api_server)
{
    if (!api_server)
        return;
    for (size_t i = 0; i < api_server->exchange_count; i++)
        exchange_free(api_server->exchanges[i]);
    free(api_server->exchanges);
    storage_free(api_server->registry.history);
    free(api_server->held);
    free(api_server->is_missing);
    free(api_server);
}

void api_server_set_minor(struct api_server *api_server, int minor)
{
    api_server->registry.minor = minor;
}

void api_server_install(struct api_server *api_server, const char *group,
                        bool is_installed)
{
    for (size_t i = 0; i < kind_count; i++)
        if (!strcmp(kinds[i].group, group))
            api_server->is_missing[i] = !is_installed;
}

int64_t api_server_now_ms(const struct api_server *api_server)
{
    return api_server->registry.now_ms;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_of_watch(const struct api_server *api_server,
                             const struct exchange *exchange)
{
    const struct storage *history = api_server->registry.history;
    const struct watching *watching = exchange->watching;
    if (is_held(api_server, watching))
        return INT64_MAX;
    if (watching->first)
        return api_server->registry.now_ms;
    int64_t next_ms = watching->end_ms;
    if (watching->wants_bookmarks)
        next_ms = least(next_ms, watching->bookmark_ms);
    if (watching->seen >= storage_revision(history))
        return next_ms;
    if (watching->seen < storage_compacted(history))
        return api_server->registry.now_ms;
    return least(next_ms, arrival_ms(api_server, exchange,
                                     storage_change(history, watching->seen + 1)));
}

int64_t api_server_next_ms(const struct api_server *api_server)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < api_server->exchange_count; i++) {
        const struct exchange *exchange = api_server->exchanges[i];
        if (exchange->state == WATCHING)
            next_ms = least(next_ms, next_of_watch(api_server, exchange));
        else if (exchange->state != ENDED)
            next_ms = least(next_ms, exchange->due_ms);
    }
    return next_ms;
}

void api_server_advance(struct api_server *api_server, int64_t now_ms)
{
    assert(now_ms >= api_server->registry.now_ms);
    api_server->registry.now_ms = now_ms;
}

struct api_server_statistics api_server_statistics(const struct api_server *api_server)
{
    return api_server->statistics;
}

/* ---- the administrator ---- */

static const struct kind *known_kind(const char *plural)
{
    const struct kind *kind = kind_find_plural(plural);
    assert(kind);
    return kind;
}

int api_server_put(struct api_server *api_server, json_t *object, struct het_error *err)
{
    json_auto_t *body = NULL;
    int status = verbs_put(&api_server->registry, object, &body);
    tell(api_server);
    if (status >= 400)
        return het_fail(err, HET_BAD_INPUT, "%s", object_text(body, "message"));
    return 0;
}

int api_server_delete(struct api_server *api_server, const char *plural, const char *ns,
                      const char *name, int64_t grace_s, struct het_error *err)
{
    struct target target = {
        .kind = known_kind(plural), .ns = ns, .name = name, .subresource = ""
    };
    json_auto_t *options = json_object();
    json_auto_t *body = NULL;
    if (grace_s >= 0)
        object_set(options, "gracePeriodSeconds", json_integer(grace_s));
    int status = verbs_delete(&api_server->registry, &target, options, &body);
    tell(api_server);
    if (status >= 400)
        return het_fail(err, HET_NOT_FOUND, "%s", object_text(body, "message"));
    return 0;
}

void api_server_drop(struct api_server *api_server, const char *plural, const char *ns,
                     const char *name)
{
    verbs_drop(&api_server->registry, known_kind(plural), ns, name);
    tell(api_server);
}

json_t *api_server_find(const struct api_server *api_server, const char *plural,
                        const char *ns, const char *name)
{
    return storage_find(api_server->registry.history, known_kind(plural), ns, name);
}

size_t api_server_count(const struct api_server *api_server, const char *plural)
{
    return storage_count(api_server->registry.history, known_kind(plural));
}

json_t *api_server_at(const struct api_server *api_server, const char *plural,
                      size_t index)
{
    return storage_at(api_server->registry.history, known_kind(plural), index);
}
