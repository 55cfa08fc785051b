#include "controller/kube/lease.h"

#include "controller/base/log.h"
#include "controller/base/timestamp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum question {
    NOTHING,
    READ,
    CREATE,
    UPDATE, /* takes or renews */
    GIVE_BACK,
};

/* A reply; the next step, which knows the time, takes it. */
struct answer {
    bool is_there;
    enum kube_outcome outcome;
    json_t *object;
    char *message;
};

struct lease {
    struct kube *kube;
    struct lease_config config;
    uint64_t random;
    enum lease_state state;
    int64_t now_ms; /* of the latest step */

    enum question asked; /* under way */
    uint64_t request_id;
    int64_t asked_ms;
    struct answer answer;

    json_t *observed;    /* the Lease as last read; NULL: never read */
    int64_t observed_ms; /* when it was first seen so */
    bool must_read;      /* before anything else */
    bool is_missing;     /* there is no Lease, as far as we know */
    char *holder;        /* text of lease_holder */
    int64_t renewed_ms;  /* HOLDS: when the latest renewal that succeeded was sent */
    int64_t due_ms;      /* the next request */
};

struct lease *lease_new(struct kube *kube, const struct lease_config *config)
{
    struct lease *lease = xcalloc(1, sizeof *lease);
    lease->kube = kube;
    lease->config = *config;
    lease->random = config->seed;
    lease->must_read = true;
    lease->holder = xstrdup("");
    return lease;
}

static void drop_answer(struct lease *lease)
{
    json_decref(lease->answer.object);
    free(lease->answer.message);
    lease->answer = (struct answer){ 0 };
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    kube_cancel(lease->kube, lease->request_id);
    drop_answer(lease);
    json_decref(lease->observed);
    free(lease->holder);
    free(lease);
}

enum lease_state lease_state(const struct lease *lease)
{
    return lease->state;
}

const char *lease_holder(const struct lease *lease)
{
    return lease->holder;
}

bool lease_fence_is_open(void *context)
{
    const struct lease *lease = context;
    int64_t now_ms = lease->config.clock_ms(lease->config.clock_context);
    return lease->state == LEASE_HOLDS && now_ms - lease->renewed_ms < LEASE_FENCE_MS;
}

/* ---- the Lease ---- */

static const json_t *spec_of(const struct lease *lease)
{
    return json_object_get(lease->observed, "spec");
}

static const char *holder_of(const struct lease *lease)
{
    const char *text =
        json_string_value(json_object_get(spec_of(lease), "holderIdentity"));
    return text ? text : "";
}

static bool is_ours(const struct lease *lease)
{
    return !strcmp(holder_of(lease), lease->config.identity);
}

static int64_t transitions_of(const struct lease *lease)
{
    return json_integer_value(json_object_get(spec_of(lease), "leaseTransitions"));
}

static int64_t duration_ms_of(const struct lease *lease)
{
    int64_t seconds =
        json_integer_value(json_object_get(spec_of(lease), "leaseDurationSeconds"));
    return seconds >= 1 && seconds <= LEASE_LONGEST_S ? seconds * 1000
                                                      : LEASE_DURATION_MS;
}

/* The Lease is free: released, or unchanged for its whole duration. */
static bool is_free(const struct lease *lease, int64_t now_ms)
{
    return !*holder_of(lease) || now_ms - lease->observed_ms >= duration_ms_of(lease);
}

static void observe(struct lease *lease, json_t *object, int64_t now_ms)
{
    bool is_same = lease->observed && !strcmp(kube_resource_version(lease->observed),
                                              kube_resource_version(object));
    lease->is_missing = lease->must_read = false;
    if (is_same)
        return;
    json_incref(object);
    json_decref(lease->observed);
    lease->observed = object;
    lease->observed_ms = now_ms;
    auto_free char *before = TAKE(lease->holder);
    lease->holder = xasprintf("%s/%" PRId64, holder_of(lease), transitions_of(lease));
    if (strcmp(before, lease->holder) != 0)
        log_event(LOG_INFO, "lease", "holder", LOG_STR("lease", lease->config.name),
                  LOG_STR("holder", holder_of(lease)),
                  LOG_INT("transitions", transitions_of(lease)));
}

/* The Lease with `holder`; its other members stay. */
static json_t *lease_object(const struct lease *lease, const char *holder,
                            int64_t wall_ms)
{
    bool is_kept = is_ours(lease);
    json_t *object = lease->observed && !lease->is_missing
                         ? json_deep_copy(lease->observed)
                         : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion",
                                     kube_lease.group_version, "kind", kube_lease.kind,
                                     "metadata", "name", lease->config.name, "namespace",
                                     lease->config.ns);
    char now[TIMESTAMP_SIZE];
    timestamp_format_micro(wall_ms, now);
    json_t *spec = json_object_get(object, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(object, "spec", spec);
    }
    json_object_set_new(spec, "holderIdentity", json_string(holder));
    json_object_set_new(
        spec, "leaseDurationSeconds",
        json_integer(*holder ? LEASE_DURATION_MS / 1000 : LEASE_RELEASED_S));
    json_object_set_new(spec, "renewTime", json_string(now));
    if (!is_kept || !json_object_get(spec, "acquireTime"))
        json_object_set_new(spec, "acquireTime", json_string(now));
    json_object_set_new(
        spec, "leaseTransitions",
        json_integer(transitions_of(lease) + (lease->observed && !is_kept)));
    return object;
}

/* ---- asking ---- */

static void on_answer(void *context, const struct kube_result *result)
{
    struct lease *lease = context;
    lease->request_id = 0;
    lease->answer = (struct answer){
        .is_there = true,
        .outcome = result->outcome,
        .object = json_incref(result->object),
        .message = xstrdup(result->message),
    };
}

static void ask(struct lease *lease, enum question question, int64_t now_ms,
                int64_t wall_ms)
{
    const struct lease_config *config = &lease->config;
    lease->asked = question;
    lease->asked_ms = now_ms;
    json_auto_t *object =
        question == READ
            ? NULL
            : lease_object(lease, question == GIVE_BACK ? "" : config->identity, wall_ms);
    switch (question) {
    case NOTHING:
        break;
    case READ:
        lease->request_id = kube_get(lease->kube, &kube_lease, config->ns, config->name,
                                     on_answer, lease);
        break;
    case CREATE:
        lease->request_id =
            kube_create(lease->kube, &kube_lease, config->ns, object, on_answer, lease);
        break;
    case UPDATE:
    case GIVE_BACK:
        lease->request_id = kube_update(lease->kube, &kube_lease, config->ns,
                                        config->name, object, on_answer, lease);
        break;
    }
}

/* What to ask at `now_ms`; NOTHING: look again later. */
static enum question next_question(const struct lease *lease, int64_t now_ms)
{
    if (lease->must_read)
        return READ;
    if (lease->state == LEASE_RELEASES)
        return lease->is_missing || !is_ours(lease) ? NOTHING : GIVE_BACK;
    if (lease->is_missing)
        return CREATE;
    if (lease->state == LEASE_HOLDS || is_ours(lease) || is_free(lease, now_ms))
        return UPDATE;
    return READ;
}

/* ---- taking answers ---- */

static void end(struct lease *lease, enum lease_state state, const char *why)
{
    lease->state = state;
    lease->due_ms = INT64_MAX;
    log_event(state == LEASE_LOST ? LOG_WARNING : LOG_INFO, "lease",
              state == LEASE_LOST ? "lost" : "released",
              LOG_STR("lease", lease->config.name),
              LOG_STR("identity", lease->config.identity), LOG_STR("why", why));
}

/* When a follower looks again: after a random delay, but not later than the Lease becomes
 * free. */
static int64_t next_look_ms(struct lease *lease)
{
    uint64_t jitter_ms = LEASE_RETRY_MS * LEASE_JITTER_PERMILLE / 1000;
    int64_t look_ms = lease->asked_ms + LEASE_RETRY_MS +
                      (int64_t)het_random_below(&lease->random, jitter_ms + 1);
    int64_t free_ms = lease->observed_ms + duration_ms_of(lease);
    return !lease->must_read && free_ms < look_ms ? free_ms : look_ms;
}

/* Our update or creation succeeded: we hold the lease since it was sent. */
static void take_hold(struct lease *lease)
{
    if (lease->state == LEASE_FOLLOWS)
        log_event(LOG_INFO, "lease", "acquired", LOG_STR("lease", lease->config.name),
                  LOG_STR("identity", lease->config.identity),
                  LOG_INT("transitions", transitions_of(lease)));
    lease->state = LEASE_HOLDS;
    lease->renewed_ms = lease->asked_ms;
    lease->due_ms = lease->asked_ms + LEASE_RETRY_MS;
}

static void take_success(struct lease *lease, enum question asked, json_t *object,
                         int64_t now_ms)
{
    observe(lease, object, now_ms);
    if (asked == GIVE_BACK) {
        end(lease, LEASE_RELEASED, "");
    } else if (lease->state == LEASE_RELEASES) {
        lease->due_ms = now_ms;
    } else if (asked != READ && is_ours(lease)) {
        take_hold(lease);
    } else if (lease->state == LEASE_HOLDS && !is_ours(lease)) {
        end(lease, LEASE_LOST, lease->holder);
    } else if (lease->state == LEASE_FOLLOWS && !is_ours(lease) &&
               !is_free(lease, now_ms)) {
        lease->due_ms = next_look_ms(lease);
    } else {
        lease->due_ms = now_ms; /* there is something to write */
    }
}

/* Others may have written, so our copy of the Lease is stale. After a conflict it is read
 * back at once; after a server error, later. */
static void take_failure(struct lease *lease, enum question asked, int64_t now_ms)
{
    enum kube_outcome outcome = lease->answer.outcome;
    bool is_contended = outcome == KUBE_CONFLICT || outcome == KUBE_EXISTS;
    log_event(is_contended || outcome == KUBE_NOT_FOUND ? LOG_INFO : LOG_WARNING, "lease",
              "request failed", LOG_STR("lease", lease->config.name),
              LOG_STR("outcome", kube_outcome_name(outcome)),
              LOG_STR("error", lease->answer.message));
    lease->must_read = outcome != KUBE_NOT_FOUND;
    lease->is_missing = outcome == KUBE_NOT_FOUND;
    if (lease->state == LEASE_RELEASES) {
        bool is_vain = (asked == READ && !lease->is_missing) ||
                       (asked == GIVE_BACK && !is_contended);
        lease->due_ms = now_ms;
        if (is_vain)
            end(lease, LEASE_RELEASED, lease->answer.message);
    } else if (asked == READ ? lease->is_missing : is_contended) {
        lease->due_ms = now_ms;
    } else if (lease->state == LEASE_HOLDS) {
        lease->due_ms = lease->asked_ms + LEASE_RETRY_MS;
    } else {
        lease->due_ms = next_look_ms(lease);
    }
}

static void take_answer(struct lease *lease, int64_t now_ms)
{
    enum question asked = lease->asked;
    lease->asked = NOTHING;
    if (lease->answer.outcome == KUBE_OK && lease->answer.object)
        take_success(lease, asked, lease->answer.object, now_ms);
    else
        take_failure(lease, asked, now_ms);
    drop_answer(lease);
}

/* The outcome of a request that takes too long is unknown. */
static void give_up(struct lease *lease)
{
    kube_cancel(lease->kube, lease->request_id);
    lease->request_id = 0;
    lease->answer = (struct answer){ .is_there = true,
                                     .outcome = KUBE_UNKNOWN,
                                     .message = xstrdup("no answer in time") };
}

void lease_step(struct lease *lease, int64_t now_ms, int64_t wall_ms)
{
    lease->now_ms = now_ms;
    if (lease->asked != NOTHING && !lease->answer.is_there &&
        now_ms - lease->asked_ms >= LEASE_REQUEST_MS)
        give_up(lease);
    if (lease->answer.is_there)
        take_answer(lease, now_ms);
    if (lease->state == LEASE_HOLDS && now_ms - lease->renewed_ms >= LEASE_RENEW_MS)
        end(lease, LEASE_LOST, "not renewed in time");
    if (lease->asked != NOTHING || now_ms < lease->due_ms || lease->due_ms == INT64_MAX)
        return;
    enum question question = next_question(lease, now_ms);
    if (question == NOTHING)
        end(lease, LEASE_RELEASED, "held by nobody or somebody else");
    else
        ask(lease, question, now_ms, wall_ms);
}

int64_t lease_next_ms(const struct lease *lease)
{
    if (lease->answer.is_there)
        return lease->now_ms;
    int64_t next_ms = lease->asked != NOTHING ? lease->asked_ms + LEASE_REQUEST_MS
                                              : lease->due_ms;
    int64_t lost_ms = lease->state == LEASE_HOLDS ? lease->renewed_ms + LEASE_RENEW_MS
                                                  : INT64_MAX;
    return next_ms < lost_ms ? next_ms : lost_ms;
}

void lease_release(struct lease *lease)
{
    switch (lease->state) {
    case LEASE_HOLDS:
        lease->state = LEASE_RELEASES;
        lease->due_ms = lease->now_ms;
        break;
    case LEASE_FOLLOWS:
        /* An update under way may make it ours. */
        if (lease->asked == CREATE || lease->asked == UPDATE || is_ours(lease)) {
            lease->state = LEASE_RELEASES;
            lease->due_ms = lease->now_ms;
        } else {
            end(lease, LEASE_RELEASED, "it was not ours");
        }
        break;
    case LEASE_LOST:
    case LEASE_RELEASES:
    case LEASE_RELEASED:
        break;
    }
}
