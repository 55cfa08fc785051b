#include "controller/kube/watch.h"

#include "controller/base/json_scan.h"
#include "controller/base/log.h"
#include "controller/base/strmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Asks for nothing, but makes the server wait until it has the version asked for, like
 * any other list: an answer proves that server and history are alive. */
#define PROBE_SELECTOR "metadata.name=silence-probe"

enum phase {
    PHASE_LIST_DUE,
    PHASE_LISTING,
    PHASE_WATCH_DUE,
    PHASE_WATCHING,
};

/* How long until what is due. The time of a reply is not known before the next
 * watch_step: until then there is a reason to wait but no due time. */
enum delay {
    DELAY_NONE,
    DELAY_BACKOFF,
    DELAY_CONFIRM,
    DELAY_IF_SHORT, /* back-off, if the watch that ended was a short one */
};

/* An item of a list: decoded, or quarantined with what is known of it. */
struct item {
    json_t *object;
    char *ns, *name;
};

/* A list while its pages come in. */
struct listing {
    char *requested_version; /* "" asks for a quorum read */
    bool is_paged;
    char *version, *next_page;
    int page_count;
    struct item *items;
    size_t item_count, item_capacity;
    bool has_nameless; /* an item that cannot be read or even named */
};

struct watch {
    struct strmap origins; /* by "namespace/name"; where config.digest is set */
    struct kube *kube;
    struct store *store;
    struct watch_config config;
    watch_change *on_change;
    void *context;
    uint64_t random;
    struct watch_statistics statistics;
    bool is_synced;

    enum phase phase;
    enum delay delay;
    bool is_dated;
    int64_t due_ms, now_ms;
    int64_t retry_after_ms; /* least delay of the next back-off */

    int backoff_step;
    bool has_backed_off;
    int64_t backoff_ms; /* when it was last asked for */
    bool has_internal_error;
    int64_t internal_error_ms; /* when the first of a row came */

    /* Lists. */
    char *last_version; /* "" before the first list */
    bool must_read_quorum, may_go_back;
    json_t *doubted;    /* uids that the list in doubt lacks, as keys; NULL: none is */
    bool must_be_fresh; /* until a list from quorum is believed */
    bool asks_for_seen; /* the next list: whether the server knows what we have seen */
    struct listing listing;
    uint64_t list_id;

    /* The watch. */
    uint64_t watch_id, probe_id;
    int64_t started_ms, heard_ms, silence_ms;
    bool has_heard; /* bytes since the last watch_step */
    bool has_bytes, has_events, has_other_than_added, began_anywhere;
    char *frame; /* the line that is coming in */
    size_t frame_length, frame_capacity;
};

struct watch *watch_new(struct kube *kube, struct store *store,
                        const struct watch_config *config, uint64_t seed,
                        watch_change *on_change, void *context)
{
    struct watch *watch = xcalloc(1, sizeof *watch);
    watch->kube = kube;
    watch->store = store;
    watch->config = *config;
    if (!watch->config.ns)
        watch->config.ns = "";
    watch->on_change = on_change;
    watch->context = context;
    watch->random = seed;
    watch->last_version = xstrdup("");
    return watch;
}

static void listing_clear(struct listing *listing)
{
    for (size_t i = 0; i < listing->item_count; i++) {
        json_decref(listing->items[i].object);
        free(listing->items[i].ns);
        free(listing->items[i].name);
    }
    free(listing->items);
    free(listing->requested_version);
    free(listing->version);
    free(listing->next_page);
    *listing = (struct listing){ 0 };
}

/* Ends the watch and its probe, without callbacks. */
static void close_stream(struct watch *watch)
{
    kube_cancel(watch->kube, watch->watch_id);
    kube_cancel(watch->kube, watch->probe_id);
    watch->watch_id = watch->probe_id = 0;
    free(watch->frame);
    watch->frame = NULL;
    watch->frame_length = watch->frame_capacity = 0;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    kube_cancel(watch->kube, watch->list_id);
    close_stream(watch);
    listing_clear(&watch->listing);
    json_decref(watch->doubted);
    free(watch->last_version);
    for (size_t k = 0; k < watch->origins.capacity; k++)
        free(watch->origins.slots[k].value);
    strmap_fini(&watch->origins);
    free(watch);
}

bool watch_is_synced(const struct watch *watch)
{
    return watch->is_synced;
}

bool watch_is_fresh(const struct watch *watch)
{
    return !watch->must_be_fresh;
}

const char *watch_version(const struct watch *watch)
{
    return watch->last_version;
}

struct watch_statistics watch_statistics(const struct watch *watch)
{
    return watch->statistics;
}

static void set_text(char **place, const char *text)
{
    char *copy = xstrdup(text);
    free(*place);
    *place = copy;
}

/* ---- when ---- */

static int64_t random_below(struct watch *watch, int64_t bound)
{
    return (int64_t)het_random_below(&watch->random, (uint64_t)bound);
}

static void plan(struct watch *watch, enum phase phase, enum delay delay)
{
    watch->phase = phase;
    watch->delay = delay;
    watch->is_dated = false;
}

static void plan_after_failure(struct watch *watch, enum phase phase)
{
    watch->statistics.failures++;
    plan(watch, phase, DELAY_BACKOFF);
}

/* 800 ms, doubled up to 30 s, plus up to as much again; from the start after 2
 * minutes without. */
static int64_t next_backoff_ms(struct watch *watch)
{
    if (watch->has_backed_off &&
        watch->now_ms - watch->backoff_ms > WATCH_BACKOFF_RESET_MS)
        watch->backoff_step = 0;
    watch->has_backed_off = true;
    watch->backoff_ms = watch->now_ms;
    int64_t base_ms = (int64_t)WATCH_BACKOFF_FIRST_MS << watch->backoff_step;
    if (base_ms >= WATCH_BACKOFF_LAST_MS)
        base_ms = WATCH_BACKOFF_LAST_MS;
    else
        watch->backoff_step++;
    int64_t delay_ms = base_ms + random_below(watch, base_ms);
    if (delay_ms < watch->retry_after_ms)
        delay_ms = watch->retry_after_ms;
    watch->retry_after_ms = 0;
    return delay_ms;
}

static void set_date(struct watch *watch)
{
    if (watch->delay == DELAY_IF_SHORT) {
        bool is_short = watch->now_ms - watch->started_ms < WATCH_SHORT_MS &&
                        !watch->has_events;
        plan(watch, watch->phase, DELAY_NONE);
        if (is_short)
            plan_after_failure(watch, PHASE_LIST_DUE);
    }
    int64_t delay_ms = 0;
    if (watch->delay == DELAY_BACKOFF)
        delay_ms = next_backoff_ms(watch);
    if (watch->delay == DELAY_CONFIRM)
        delay_ms = WATCH_CONFIRM_MS;
    watch->due_ms = watch->now_ms + delay_ms;
    watch->is_dated = true;
}

static void log_trouble(const struct watch *watch, const char *event, const char *message)
{
    log_event(LOG_WARNING, "watch", event,
              LOG_STR("resource", watch->config.resource->plural),
              LOG_STR("namespace", watch->config.ns),
              LOG_STR("version", watch->last_version), LOG_STR("message", message));
}

/* ---- objects ---- */

static void log_quarantine(struct watch *watch, const struct kube_identity *identity,
                           struct json_span text, const char *why)
{
    watch->statistics.quarantined++;
    log_event(LOG_WARNING, "watch", "quarantined",
              LOG_STR("resource", watch->config.resource->plural),
              LOG_STR("namespace", identity->ns), LOG_STR("name", identity->name),
              LOG_STR("uid", identity->uid), LOG_STR("reason", why));
    if (watch->config.on_quarantine)
        watch->config.on_quarantine(watch->context, identity, text, why);
}

/* What is wrong with a decoded object; NULL if nothing. */
static const char *find_fault(const struct watch *watch, const json_t *object)
{
    const struct kube_resource *resource = watch->config.resource;
    const json_t *kind = json_object_get(object, "kind");
    if (kind &&
        strcmp(json_is_string(kind) ? json_string_value(kind) : "", resource->kind) != 0)
        return "of another kind";
    if (!*kube_name(object) || !*kube_uid(object) || !*kube_resource_version(object))
        return "without a readable name, uid or resourceVersion";
    if ((*kube_namespace(object) != '\0') != resource->namespaced)
        return "with a namespace where there is none, or without one";
    if (*watch->config.ns && strcmp(watch->config.ns, kube_namespace(object)) != 0)
        return "of another namespace";
    return NULL;
}

/* Reads one object; NULL when it goes into quarantine. A new reference. */
static json_t *read_object(struct watch *watch, const char *text, size_t length)
{
    struct het_error err = { 0 };
    const char *fault = NULL;
    json_t *object = kube_decode(text, length, &err);
    if (object)
        fault = find_fault(watch, object);
    if (object && !fault) {
        /* The items of a typed list come without these. */
        const struct kube_resource *resource = watch->config.resource;
        json_object_set_new(object, "kind", json_string(resource->kind));
        json_object_set_new(object, "apiVersion", json_string(resource->group_version));
        json_t *kept = watch->config.trim ? watch->config.trim(object)
                                          : json_incref(object);
        json_decref(object);
        if (kept)
            return kept;
        object = NULL;
        fault = "refused by what reads it";
    }
    json_decref(object);
    struct kube_identity identity;
    kube_scan_identity(watch->config.resource, text, length, &identity);
    log_quarantine(watch, &identity, (struct json_span){ text, length },
                   fault ? fault : err.message);
    return NULL;
}

/* Takes `held` out of the store; it was gone at `version`. */
static void remove_object(struct watch *watch, json_t *held, const char *version)
{
    auto_free char *key = xasprintf("%s/%s", kube_namespace(held), kube_name(held));
    free(strmap_remove(&watch->origins, key));
    json_incref(held);
    if (store_remove_at(watch->store, watch->config.resource, kube_namespace(held),
                        kube_name(held), kube_uid(held), version))
        watch->on_change(watch->context, watch->config.resource, held, NULL);
    json_decref(held);
}

/* Puts `object` into the store. With `is_truth`, whatever its version. */
static void put_object(struct watch *watch, json_t *object, bool is_truth)
{
    const struct kube_resource *resource = watch->config.resource;
    json_t *before =
        store_find(watch->store, resource, kube_namespace(object), kube_name(object));
    /* Identity is the uid, not the name. */
    if (before && strcmp(kube_uid(before), kube_uid(object)) != 0) {
        if (!is_truth && kube_compare_versions(kube_resource_version(object),
                                               kube_resource_version(before)) < 0)
            return;
        remove_object(watch, before, kube_resource_version(object));
        before = NULL;
    }
    json_incref(before);
    bool is_changed = is_truth ? store_replace(watch->store, resource, object)
                               : store_put(watch->store, resource, object);
    if (is_changed)
        watch->on_change(watch->context, resource, before, object);
    json_decref(before);
}

/* ---- lists ---- */

static void on_list(void *context, const struct kube_result *result);

/* Appends a parameter to the query. */
static void add_parameter(char **query, const char *name, const char *value)
{
    auto_free char *old = *query;
    auto_free char *escaped = kube_escape(value);
    *query = xasprintf("%s%s%s=%s", old, *old ? "&" : "", name, escaped);
}

static char *selector_query(const struct watch *watch, const char *more_fields)
{
    char *query = xstrdup("");
    const char *fields = watch->config.field_selector;
    if (watch->config.label_selector)
        add_parameter(&query, "labelSelector", watch->config.label_selector);
    if (fields || more_fields) {
        auto_free char *all = xasprintf("%s%s%s", fields ? fields : "",
                                        fields && more_fields ? "," : "",
                                        more_fields ? more_fields : "");
        add_parameter(&query, "fieldSelector", all);
    }
    return query;
}

static void ask_for_page(struct watch *watch)
{
    struct listing *listing = &watch->listing;
    auto_free char *query = selector_query(watch, NULL);
    if (listing->is_paged)
        add_parameter(&query, "limit", "500");
    /* A token has its version in it, and the server wants no other beside it. */
    if (listing->next_page && *listing->next_page)
        add_parameter(&query, "continue", listing->next_page);
    else if (*listing->requested_version)
        add_parameter(&query, "resourceVersion", listing->requested_version);
    _Static_assert(WATCH_PAGE_SIZE == 500, "as in the query");
    watch->phase = PHASE_LISTING;
    watch->list_id = kube_list(watch->kube, watch->config.resource, watch->config.ns,
                               query, on_list, watch);
}

/* Any age first, then not older than what was seen, or the newest if that failed.
 * In pages only where the server does not turn that into a read of one exact
 * version. */
static void start_list(struct watch *watch)
{
    struct listing *listing = &watch->listing;
    listing_clear(listing);
    bool is_quorum = watch->must_read_quorum ||
                     (watch->must_be_fresh && !watch->asks_for_seen);
    watch->asks_for_seen = false;
    listing->requested_version = xstrdup(is_quorum              ? ""
                                         : *watch->last_version ? watch->last_version
                                                                : "0");
    listing->is_paged = is_quorum || !*watch->last_version;
    ask_for_page(watch);
}

/* Pages of which a later one has expired are read again as one. */
static void start_unpaged_list(struct watch *watch)
{
    struct listing *listing = &watch->listing;
    auto_free char *requested_version = TAKE(listing->requested_version);
    listing_clear(listing);
    listing->requested_version = TAKE(requested_version);
    ask_for_page(watch);
}

static void add_item(void *context, const char *text, size_t length)
{
    struct watch *watch = context;
    struct listing *listing = &watch->listing;
    struct item item = { .object = read_object(watch, text, length) };
    struct kube_identity identity;
    if (item.object) {
        item.ns = xstrdup(kube_namespace(item.object));
        item.name = xstrdup(kube_name(item.object));
    } else if (!kube_scan_identity(watch->config.resource, text, length, &identity)) {
        item.ns = xstrdup(watch->config.resource->namespaced ? identity.ns : "");
        item.name = xstrdup(identity.name);
    } else {
        listing->has_nameless = true;
        return;
    }
    ARRAY_RESERVE(listing->items, &listing->item_capacity, listing->item_count + 1);
    listing->items[listing->item_count++] = item;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *left = a, *right = b;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

/* In a listing whose items are in order. */
static const struct item *find_item(const struct listing *listing, const char *ns,
                                    const char *name)
{
    struct item wanted = { .ns = (char *)(uintptr_t)ns, .name = (char *)(uintptr_t)name };
    return listing->item_count ? bsearch(&wanted, listing->items, listing->item_count,
                                         sizeof *listing->items, compare_items)
                               : NULL;
}

bool watch_has_listed(const struct watch *watch, const char *ns, const char *name)
{
    const struct listing *listing = &watch->listing;
    return listing->has_nameless || find_item(listing, ns, name);
}

/* Whether the list shows that `held` is gone. */
static bool is_missing(const struct watch *watch, const json_t *held, bool is_truth)
{
    const struct listing *listing = &watch->listing;
    /* Our own write may be newer than the list. */
    if (!is_truth &&
        kube_compare_versions(kube_resource_version(held), listing->version) > 0)
        return false;
    const struct item *item = find_item(listing, kube_namespace(held), kube_name(held));
    if (!item)
        return !listing->has_nameless; /* it could be this one */
    return item->object && strcmp(kube_uid(item->object), kube_uid(held)) != 0;
}

/* Objects that the list does not have: references, in `*ret_missing`. */
static size_t find_missing(const struct watch *watch, bool is_truth,
                           json_t ***ret_missing, size_t *ret_held_count)
{
    const struct kube_resource *resource = watch->config.resource;
    json_t **missing = NULL;
    size_t count = 0, capacity = 0;
    *ret_held_count = 0;
    for (size_t i = 0; i < store_count(watch->store, resource); i++) {
        json_t *held = store_at(watch->store, resource, i);
        if (*watch->config.ns && strcmp(kube_namespace(held), watch->config.ns) != 0)
            continue;
        ++*ret_held_count;
        if (!is_missing(watch, held, is_truth))
            continue;
        ARRAY_RESERVE(missing, &capacity, count + 1);
        missing[count++] = json_incref(held);
    }
    *ret_missing = missing;
    return count;
}

static bool is_mass_delete(size_t missing_count, size_t held_count, size_t item_count)
{
    if (!item_count)
        return missing_count > 0;
    return missing_count * 2 > held_count ||
           (missing_count >= WATCH_MASS_DELETE_LEAST &&
            missing_count * 100 > held_count * WATCH_MASS_DELETE_PERCENT);
}

static void end_doubt(struct watch *watch)
{
    json_decref(watch->doubted);
    watch->doubted = NULL;
}

/* Counts missing objects that the list in doubt still had. */
static size_t count_contradictions(const struct watch *watch, json_t **missing,
                                   size_t missing_count)
{
    size_t count = 0;
    for (size_t i = 0; i < missing_count; i++)
        count += !json_object_get(watch->doubted, kube_uid(missing[i]));
    return count;
}

/* An API server that answers nonsense must not take the cluster with it. */
static void doubt_list(struct watch *watch, json_t **missing, size_t missing_count,
                       size_t held_count)
{
    end_doubt(watch);
    watch->doubted = json_object();
    for (size_t i = 0; i < missing_count; i++)
        json_object_set_new(watch->doubted, kube_uid(missing[i]), json_true());
    log_event(LOG_WARNING, "watch", "mass-deletion-doubted",
              LOG_STR("resource", watch->config.resource->plural),
              LOG_INT("held", (int64_t)held_count),
              LOG_INT("missing", (int64_t)missing_count),
              LOG_STR("version", watch->listing.version));
    watch->statistics.doubted++;
    watch->must_read_quorum = true;
    plan(watch, PHASE_LIST_DUE, DELAY_CONFIRM);
}

/* Makes the store equal to the list. */
static void believe_list(struct watch *watch, json_t **missing, size_t missing_count,
                         bool goes_back)
{
    struct listing *listing = &watch->listing;
    set_text(&watch->last_version, listing->version);
    watch->statistics.lists++;
    watch->is_synced = true;
    if (!*listing->requested_version)
        watch->must_be_fresh = false;
    watch->must_read_quorum = watch->may_go_back = false;
    end_doubt(watch);
    watch->has_internal_error = false;
    for (size_t i = 0; i < missing_count; i++)
        remove_object(watch, missing[i], listing->version);
    for (size_t i = 0; i < listing->item_count; i++)
        if (listing->items[i].object)
            put_object(watch, listing->items[i].object, goes_back);
    if (watch->config.on_listed)
        watch->config.on_listed(watch->context, watch);
    log_event(
        LOG_INFO, "watch", "listed", LOG_STR("resource", watch->config.resource->plural),
        LOG_INT("objects", (int64_t)listing->item_count),
        LOG_INT("removed", (int64_t)missing_count), LOG_STR("version", listing->version));
    plan(watch, watch->must_be_fresh ? PHASE_LIST_DUE : PHASE_WATCH_DUE, DELAY_NONE);
}

static void take_list(struct watch *watch)
{
    struct listing *listing = &watch->listing;
    bool goes_back = kube_compare_versions(listing->version, watch->last_version) < 0;
    if (goes_back && !watch->may_go_back) {
        /* Ask for what we have seen: if the history went back, the answer will say so. */
        log_trouble(watch, "list-is-older", listing->version);
        watch->must_read_quorum = false;
        end_doubt(watch);
        watch->asks_for_seen = true;
        plan_after_failure(watch, PHASE_LIST_DUE);
        return;
    }
    if (listing->item_count)
        qsort(listing->items, listing->item_count, sizeof *listing->items, compare_items);
    auto_free json_t **missing = NULL;
    size_t held_count;
    size_t missing_count = find_missing(watch, goes_back, &missing, &held_count);
    size_t doubtful = count_contradictions(watch, missing, missing_count);
    if (is_mass_delete(doubtful, held_count, listing->item_count))
        doubt_list(watch, missing, missing_count, held_count);
    else
        believe_list(watch, missing, missing_count, goes_back);
    for (size_t i = 0; i < missing_count; i++)
        json_decref(missing[i]);
}

/* One page has come. */
static void take_page(struct watch *watch, const struct kube_result *result)
{
    struct listing *listing = &watch->listing;
    struct het_error err = { 0 };
    auto_free char *version = NULL, *next_page = NULL;
    if (kube_split_list(watch->config.resource, result->body, result->body_length,
                        add_item, watch, &version, &next_page, &err) < 0) {
        log_trouble(watch, "list-refused", err.message);
        plan_after_failure(watch, PHASE_LIST_DUE);
        return;
    }
    /* All pages show one version; if not, objects may have moved between them. */
    bool is_torn = listing->version && strcmp(listing->version, version) != 0;
    bool is_stuck = listing->next_page && *next_page &&
                    !strcmp(listing->next_page, next_page);
    if (is_torn || is_stuck || ++listing->page_count > WATCH_MAX_PAGES) {
        log_trouble(watch, "pages-refused", is_torn ? version : next_page);
        start_unpaged_list(watch);
        return;
    }
    set_text(&listing->version, version);
    set_text(&listing->next_page, next_page);
    if (*next_page && listing->is_paged)
        ask_for_page(watch);
    else if (*next_page) {
        log_trouble(watch, "list-refused", "pages where none were asked for");
        plan_after_failure(watch, PHASE_LIST_DUE);
    } else
        take_list(watch);
}

/* After "expired" or "too large", once, at once, what quorum says. */
static void read_quorum(struct watch *watch)
{
    bool was_quorum = watch->must_read_quorum;
    watch->must_read_quorum = true;
    if (was_quorum)
        plan_after_failure(watch, PHASE_LIST_DUE);
    else
        plan(watch, PHASE_LIST_DUE, DELAY_NONE);
}

static void on_list(void *context, const struct kube_result *result)
{
    struct watch *watch = context;
    watch->list_id = 0;
    if (result->outcome == KUBE_OK) {
        take_page(watch, result);
        if (watch->phase != PHASE_LISTING)
            listing_clear(&watch->listing);
        return;
    }
    log_trouble(watch, "list-failed", result->message);
    if (result->outcome == KUBE_EXPIRED) {
        watch->statistics.expired++;
        if (watch->listing.page_count)
            start_unpaged_list(watch);
        else
            read_quorum(watch);
    } else if (result->outcome == KUBE_RV_TOO_LARGE) {
        /* The server's history ends before what we have seen: go back with it. */
        watch->may_go_back = true;
        read_quorum(watch);
    } else {
        if (result->retry_after_ms > 0)
            watch->retry_after_ms = result->retry_after_ms;
        plan_after_failure(watch, PHASE_LIST_DUE);
    }
}

/* ---- events ---- */

/* The events that bring the present state of a watch begun anywhere are in no
 * order. */
static void advance(struct watch *watch, const char *type, const char *version)
{
    bool is_added = !strcmp(type, "ADDED");
    watch->has_other_than_added |= !is_added;
    if (is_added && watch->began_anywhere && !watch->has_other_than_added)
        return;
    if (kube_compare_versions(version, watch->last_version) > 0)
        set_text(&watch->last_version, version);
}

static void end_watch(struct watch *watch, enum phase phase, const char *event,
                      const char *message)
{
    log_trouble(watch, event, message);
    close_stream(watch);
    plan_after_failure(watch, phase);
}

/* A server with an internal error is asked again for a while, then listed. */
static enum phase after_internal_error(struct watch *watch)
{
    if (!watch->has_internal_error) {
        watch->has_internal_error = true;
        watch->internal_error_ms = watch->now_ms;
    }
    bool may_last = watch->now_ms - watch->internal_error_ms < WATCH_INTERNAL_ERROR_MS;
    return may_last ? PHASE_WATCH_DUE : PHASE_LIST_DUE;
}

/* What follows a watch that was refused, by HTTP status or by an ERROR event. */
static enum phase phase_after(struct watch *watch, enum kube_outcome outcome, int code)
{
    if (outcome == KUBE_EXPIRED)
        watch->statistics.expired++;
    if (outcome == KUBE_BUSY)
        return PHASE_WATCH_DUE;
    if (code == 500)
        return after_internal_error(watch);
    return PHASE_LIST_DUE;
}

static void take_error(struct watch *watch, const char *text, size_t length)
{
    json_auto_t *status = kube_decode(text, length, NULL);
    const char *message = json_string_value(json_object_get(status, "message"));
    int code = (int)json_integer_value(json_object_get(status, "code"));
    enum phase next = phase_after(watch, kube_status_outcome(status), code);
    end_watch(watch, next, "watch-error", message ? message : "");
}

/* A deletion needs only the object's identity, so that any object can be deleted. */
static void take_deletion(struct watch *watch, const struct kube_identity *gone)
{
    const struct kube_resource *resource = watch->config.resource;
    bool is_elsewhere = *watch->config.ns && strcmp(watch->config.ns, gone->ns) != 0;
    if (!*gone->name || !*gone->uid || !*gone->version || is_elsewhere)
        return;
    json_t *held = store_find(watch->store, resource,
                              resource->namespaced ? gone->ns : "", gone->name);
    if (!held || strcmp(kube_uid(held), gone->uid) != 0) {
        store_remove_at(watch->store, resource, gone->ns, gone->name, gone->uid,
                        gone->version);
        if (watch->config.on_quarantine)
            watch->config.on_quarantine(watch->context, gone, (struct json_span){ 0 },
                                        NULL);
        return;
    }
    /* A repeated old event: the held object is newer. */
    if (kube_compare_versions(gone->version, kube_resource_version(held)) < 0)
        return;
    remove_object(watch, held, gone->version);
}

/* The text that an object came from. All versions between the held one and the last one
 * not decoded have its content: none of them is a step back. */
struct origin {
    uint64_t digest;
    char version[]; /* of the object that was decoded */
};

/* Whether an object with that digest equals the held one in all kept fields. */
static bool is_unchanged(const struct watch *watch, const struct kube_identity *identity,
                         uint64_t digest)
{
    const json_t *held =
        store_find(watch->store, watch->config.resource, identity->ns, identity->name);
    if (!digest || !held || strcmp(kube_uid(held), identity->uid) != 0)
        return false;
    auto_free char *key = xasprintf("%s/%s", identity->ns, identity->name);
    const struct origin *origin = strmap_find(&watch->origins, key);
    return origin && origin->digest == digest &&
           !strcmp(origin->version, kube_resource_version(held));
}

static void keep_origin(struct watch *watch, const struct kube_identity *identity,
                        uint64_t digest)
{
    auto_free char *key = xasprintf("%s/%s", identity->ns, identity->name);
    free(strmap_remove(&watch->origins, key));
    if (!digest)
        return;
    size_t size = strlen(identity->version) + 1;
    struct origin *origin = xmalloc(sizeof *origin + size);
    origin->digest = digest;
    memcpy(origin->version, identity->version, size);
    strmap_set(&watch->origins, key, origin);
}

static void take_object(struct watch *watch, const struct kube_identity *identity,
                        const char *text, size_t length)
{
    uint64_t digest = watch->config.digest ? watch->config.digest(text, length) : 0;
    if (is_unchanged(watch, identity, digest)) {
        watch->statistics.unchanged++;
        return;
    }
    json_auto_t *object = read_object(watch, text, length);
    if (!object)
        return;
    put_object(watch, object, false);
    if (watch->config.digest)
        keep_origin(watch, identity, digest);
}

static bool has_right_kind(const struct watch *watch, const char *text, size_t length)
{
    char kind[64] = "";
    struct json_span value;
    if (!json_find_member(text, length, "kind", &value))
        return true;
    json_copy_plain_string(value, kind, sizeof kind);
    return !strcmp(kind, watch->config.resource->kind);
}

static void take_line(struct watch *watch, const char *line, size_t line_length)
{
    char type[16];
    const char *object;
    size_t length;
    struct het_error err = { 0 };
    if (kube_split_event(line, line_length, type, &object, &length, &err) < 0) {
        /* Its content is unknown: only a list can replace it. */
        end_watch(watch, PHASE_LIST_DUE, "watch-garbled", err.message);
        return;
    }
    if (!strcmp(type, "ERROR")) {
        take_error(watch, object, length);
        return;
    }
    bool is_known = !strcmp(type, "ADDED") || !strcmp(type, "MODIFIED") ||
                    !strcmp(type, "DELETED") || !strcmp(type, "BOOKMARK");
    if (!is_known || !has_right_kind(watch, object, length)) {
        log_trouble(watch, is_known ? "wrong-kind-ignored" : "unknown-type-ignored",
                    type);
        return;
    }
    struct kube_identity identity;
    kube_scan_identity(watch->config.resource, object, length, &identity);
    if (!strcmp(type, "BOOKMARK")) {
        watch->statistics.bookmarks++;
    } else {
        watch->statistics.events++;
        watch->has_events = true;
        watch->has_internal_error = false;
        if (!strcmp(type, "DELETED"))
            take_deletion(watch, &identity);
        else
            take_object(watch, &identity, object, length);
    }
    advance(watch, type, identity.version);
}

static bool is_blank(const char *text, size_t length)
{
    while (length && (*text == ' ' || *text == '\r' || *text == '\t'))
        text++, length--;
    return !length;
}

/* Adds to the line that is coming in. -1 when it gets too long. */
static int extend_frame(struct watch *watch, const char *bytes, size_t length)
{
    if (length > WATCH_MAX_FRAME_BYTES - watch->frame_length)
        return -1;
    ARRAY_RESERVE(watch->frame, &watch->frame_capacity, watch->frame_length + length + 1);
    memcpy(watch->frame + watch->frame_length, bytes, length);
    watch->frame_length += length;
    return 0;
}

/* Only a line that has its end is one. */
static void on_data(void *context, const char *bytes, size_t length)
{
    struct watch *watch = context;
    watch->has_heard = watch->has_bytes = true;
    while (length && watch->phase == PHASE_WATCHING) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline ? (size_t)(newline - bytes) : length;
        if (extend_frame(watch, bytes, piece) < 0) {
            end_watch(watch, PHASE_LIST_DUE, "watch-line-too-long", "");
            return;
        }
        if (!newline)
            return;
        bytes += piece + 1;
        length -= piece + 1;
        /* The line is removed first: handling it may close the stream. */
        auto_free char *line = TAKE(watch->frame);
        size_t line_length = watch->frame_length;
        watch->frame_length = watch->frame_capacity = 0;
        if (!is_blank(line, line_length))
            take_line(watch, line, line_length);
    }
}

static void on_watch_end(void *context, const struct kube_result *result)
{
    struct watch *watch = context;
    watch->watch_id = 0;
    close_stream(watch);
    /* The ends that are no errors. */
    bool is_cut = result->outcome == KUBE_UNREACHABLE;
    if (result->outcome == KUBE_OK || (is_cut && watch->has_bytes)) {
        plan(watch, PHASE_WATCH_DUE, DELAY_IF_SHORT);
        return;
    }
    log_trouble(watch, "watch-failed", result->message);
    if (result->retry_after_ms > 0)
        watch->retry_after_ms = result->retry_after_ms;
    enum phase next = is_cut ? PHASE_WATCH_DUE
                             : phase_after(watch, result->outcome, result->status);
    plan_after_failure(watch, next);
}

static void start_watch(struct watch *watch)
{
    int64_t timeout_s =
        WATCH_TIMEOUT_MIN_S +
        random_below(watch, WATCH_TIMEOUT_MAX_S - WATCH_TIMEOUT_MIN_S + 1);
    auto_free char *timeout = xasprintf("%lld", (long long)timeout_s);
    auto_free char *query = selector_query(watch, NULL);
    add_parameter(&query, "watch", "1");
    add_parameter(&query, "allowWatchBookmarks", "true");
    add_parameter(&query, "timeoutSeconds", timeout);
    add_parameter(&query, "resourceVersion", watch->last_version);
    watch->statistics.watches++;
    watch->phase = PHASE_WATCHING;
    watch->started_ms = watch->heard_ms = watch->now_ms;
    watch->silence_ms =
        WATCH_SILENCE_MIN_MS +
        random_below(watch, WATCH_SILENCE_MAX_MS - WATCH_SILENCE_MIN_MS + 1);
    watch->has_heard = watch->has_bytes = watch->has_events = false;
    watch->has_other_than_added = false;
    watch->began_anywhere = !kube_compare_versions(watch->last_version, "0");
    watch->watch_id = kube_watch(watch->kube, watch->config.resource, watch->config.ns,
                                 query, on_data, on_watch_end, watch);
}

/* ---- silence ---- */

static void on_probe(void *context, const struct kube_result *result)
{
    struct watch *watch = context;
    watch->probe_id = 0;
    log_event(LOG_INFO, "watch", "silence-probed",
              LOG_STR("resource", watch->config.resource->plural),
              LOG_STR("outcome", kube_outcome_name(result->outcome)),
              LOG_STR("version", watch->last_version));
    close_stream(watch);
    switch (result->outcome) {
    case KUBE_OK:
        plan(watch, PHASE_WATCH_DUE, DELAY_NONE);
        break;
    case KUBE_RV_TOO_LARGE:
        watch->may_go_back = true;
        read_quorum(watch);
        break;
    case KUBE_EXPIRED:
        watch->statistics.expired++;
        read_quorum(watch);
        break;
    case KUBE_NOT_FOUND:
    case KUBE_EXISTS:
    case KUBE_CONFLICT:
    case KUBE_INVALID:
    case KUBE_DENIED:
    case KUBE_BUSY:
    case KUBE_SERVER_ERROR:
    case KUBE_UNREACHABLE:
    case KUBE_UNKNOWN:
        plan_after_failure(watch, PHASE_WATCH_DUE);
        break;
    }
}

/* A stream silent for longer than the bookmark interval may be dead without notice. */
static void notice_silence(struct watch *watch)
{
    if (watch->has_heard) {
        watch->has_heard = false;
        watch->heard_ms = watch->now_ms;
        kube_cancel(watch->kube, watch->probe_id);
        watch->probe_id = 0;
    }
    if (watch->probe_id || watch->now_ms - watch->heard_ms < watch->silence_ms)
        return;
    auto_free char *query = selector_query(watch, PROBE_SELECTOR);
    add_parameter(&query, "resourceVersion", watch->last_version);
    watch->statistics.probes++;
    watch->probe_id = kube_probe(watch->kube, watch->config.resource, watch->config.ns,
                                 query, on_probe, watch);
}

/* ---- freshness ---- */

void watch_require_fresh(struct watch *watch)
{
    kube_cancel(watch->kube, watch->list_id);
    watch->list_id = 0;
    listing_clear(&watch->listing);
    close_stream(watch);
    watch->must_be_fresh = true;
    watch->asks_for_seen = false;
    /* A pause that a failure has earned stays. */
    if (watch->phase != PHASE_LIST_DUE)
        plan(watch, PHASE_LIST_DUE, DELAY_NONE);
}

/* ---- steps ---- */

void watch_step(struct watch *watch, int64_t now_ms)
{
    watch->now_ms = now_ms;
    bool is_due = watch->phase == PHASE_LIST_DUE || watch->phase == PHASE_WATCH_DUE;
    if (is_due && !watch->is_dated)
        set_date(watch);
    switch (watch->phase) {
    case PHASE_LIST_DUE:
        if (watch->due_ms <= now_ms)
            start_list(watch);
        break;
    case PHASE_WATCH_DUE:
        if (watch->due_ms <= now_ms)
            start_watch(watch);
        break;
    case PHASE_WATCHING:
        notice_silence(watch);
        break;
    case PHASE_LISTING:
        break;
    }
}

int64_t watch_next_ms(const struct watch *watch)
{
    switch (watch->phase) {
    case PHASE_LIST_DUE:
    case PHASE_WATCH_DUE:
        return watch->is_dated ? watch->due_ms : watch->now_ms;
    case PHASE_WATCHING:
        if (watch->has_heard)
            return watch->now_ms;
        return watch->probe_id ? INT64_MAX : watch->heard_ms + watch->silence_ms;
    case PHASE_LISTING:
        break;
    }
    return INT64_MAX;
}
