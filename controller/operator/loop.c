#include "controller/operator/loop.h"

#include "controller/base/digest.h"
#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/base/strmap.h"
#include "controller/base/timestamp.h"
#include "controller/base/workqueue.h"
#include "controller/cluster/hardware_map.h"
#include "controller/cluster/kept_fields.h"
#include "controller/cluster/plan_object.h"
#include "controller/cluster/precedence.h"
#include "controller/kube/decode.h"
#include "controller/kube/watch.h"
#include "controller/operator/apply.h"
#include "controller/operator/checkpoint_hook.h"
#include "controller/operator/gauges.h"
#include "controller/operator/kueue_watches.h"
#include "controller/operator/planner_child.h"
#include "controller/operator/unreadable_jobs.h"
#include "controller/placement/generation.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the process knows of one job besides the store. Lost with it, without harm. */
struct job {
    char *key; /* "namespace/name" */
    char *uid;
    struct precedence precedence;
    int64_t generation; /* metadata.generation */
    bool wants_gpus;    /* ours, not finished, not being deleted */
    bool is_queued;     /* names a queue of Kueue */
    /* It is not yet decided whether it gets GPUs: later jobs wait for it, each at most as
     * long as its planner may take. */
    bool is_unanswered;
    int64_t planner_limit_ms;
    bool is_failing;         /* its writes fail: it does not hold up others */
    int64_t hold_until_ms;   /* so it is not decided on before, */
    int64_t hold_generation; /* as long as this is its metadata.generation */
    double spent_runs;       /* of CONTROLLER_RUNS, when that was counted last */
    int64_t spent_ms;
    bool is_held_up;          /* by another job, when it was looked at last */
    int64_t deaf_until_ms;    /* decision.h */
    int64_t status_since_ms;  /* a status that may wait has waited since; 0: none */
    int64_t blocked_since_ms; /* it waits for its turn since then; 0: it does not */
    bool is_called;           /* its turn to ask the planner has come */
    bool asks_urgently;       /* of its search that is under way: it cannot run without */
    bool is_being_cut;        /* the search was told to end */
    int cuts;                 /* of its searches in a row; then no job waits for it */
    struct bid bid;           /* for GPUs that are free */
    int64_t bid_since_ms;     /* of its state */
    /* Until then, a plan of it is being written or may have been: no other job may decide
     * on GPUs that it may have taken. */
    int64_t commits_until_ms;
    struct job_memory memory;
    char *answer_text, *answer_message;   /* what memory.answer points at */
    char *what_if_text, *what_if_message; /* what memory.what_if points at */
    char *refusal;                        /* what memory.refusal points at */
    char *hook_message;                   /* what memory.hook points at */
    char *profiling_refusal;              /* what memory.profiling_refusal points at */
    /* Of the run of writes that is under way. */
    bool run_creates_pods, run_profiles;
    struct snapshot_memo memo;
};

/* A change of an object; the next step, which knows the time, passes it to capacity and
 * queue. */
struct event {
    const struct kube_resource *resource;
    json_t *before, *after;
};

/* A run of writes is over. */
struct outcome {
    char *key;
    bool has_failed, is_refused;
    bool is_profiling;        /* what failed is about measurements, and not about pods */
    int64_t taken_generation; /* somebody else's object has the name of one of it */
    bool taken_is_plan;       /* ... that of its plan; nothing has been created for it
                                 yet */
    char *message;
    int64_t retry_after_ms;
};

enum { WATCHES = 10, POD_WATCH = 1 };

struct controller {
    const char *ns;
    struct kube *kube, *lease_kube;
    struct lease *lease; /* NULL: there are no other replicas */
    bool is_stopping;
    struct transport *transport;
    struct store *store;
    struct watch *watches[WATCHES];
    size_t watch_count;
    struct kueue_watches *kueue_watches; /* of Kueue */
    enum kueue_presence kueue;
    struct workqueue *queue;
    /* Jobs that want to ask the planner: those that cannot run without an answer, and
     * those that can. */
    struct workqueue *urgent, *wishes;
    struct job *searching[PLANNER_CHILD_MAX_CHILDREN]; /* whose searches are under way */
    size_t searching_count;
    size_t called; /* jobs whose turn has come, and that have not been looked at yet */
    const struct settings *settings;
    struct capacity *capacity;
    struct apply *apply;
    struct checkpoint_hooks *hooks;
    struct planner_child *planner;
    size_t planners; /* at most so many at a time */
    int64_t now_ms, wall_ms;
    uint64_t seed;

    struct job **jobs; /* by precedence */
    size_t job_count, job_capacity;
    struct strmap jobs_by_key;
    struct unreadable_jobs *unreadable;

    bool capacity_has_changed; /* by the events that are being taken */
    struct event *events;
    size_t event_count, event_capacity;
    struct outcome *outcomes;
    size_t outcome_count, outcome_capacity;

    /* The hardware ConfigMap has a store of its own: a watch speaks for a whole
     * namespace of the store it fills. */
    struct store *hardware_store;
    struct watch *hardware_watch; /* NULL: no such ConfigMap is named */
    char *hardware_ns, *hardware_map;
    json_t *hardware_file; /* of the command line */
    json_t *hardware;      /* what holds now; NULL: what is built in */
    uint64_t hardware_digest;
    struct het_arena *hardware_arena;

    /* What the server can do; asked for at the start, and again when watches were begun
     * anew: an upgrade ends them. */
    bool is_version_known, is_version_asked;
    int64_t server_minor;
    int64_t version_due_ms;
    uint64_t version_watches; /* started when it was asked last */

    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
    bool doubts_memos;
    struct controller_statistics statistics;
    struct metrics *metrics; /* NULL: nothing is measured */
    int64_t measure_due_ms;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- jobs ---- */

static struct job *find_job(const struct controller *controller, const char *key)
{
    return strmap_find(&controller->jobs_by_key, key);
}

static void insert_job(struct controller *controller, struct job *job)
{
    ARRAY_RESERVE(controller->jobs, &controller->job_capacity, controller->job_count + 1);
    size_t at = controller->job_count++;
    for (; at > 0 && precedence_compare(&job->precedence,
                                        &controller->jobs[at - 1]->precedence) < 0;
         at--)
        controller->jobs[at] = controller->jobs[at - 1];
    controller->jobs[at] = job;
}

static void take_out_job(struct controller *controller, const struct job *job)
{
    size_t at = 0;
    while (controller->jobs[at] != job)
        at++;
    memmove(controller->jobs + at, controller->jobs + at + 1,
            (--controller->job_count - at) * sizeof(struct job *));
}

/* Where the job stands among the others, which its class and its spec decide. True if
 * that changed. */
static bool rank_job(struct controller *controller, struct job *job, const json_t *object)
{
    struct precedence precedence = precedence_of(controller->store, object);
    precedence.uid = job->uid;
    bool changed = precedence_compare(&precedence, &job->precedence) != 0 ||
                   precedence.never_claims != job->precedence.never_claims;
    if (!changed)
        return false;
    take_out_job(controller, job);
    job->precedence = precedence;
    insert_job(controller, job);
    return true;
}

static void forget_memo(struct job *job)
{
    snapshot_memo_fini(&job->memo);
    job->memo = (struct snapshot_memo){ 0 };
}

static void free_job(struct job *job)
{
    free(job->key);
    free(job->uid);
    free(job->answer_text);
    free(job->answer_message);
    free(job->what_if_text);
    free(job->what_if_message);
    free(job->refusal);
    free(job->profiling_refusal);
    free(job->hook_message);
    snapshot_memo_fini(&job->memo);
    free(job);
}

static void enqueue_unfinished(struct controller *controller)
{
    for (size_t i = 0; i < controller->job_count; i++)
        if (controller->jobs[i]->wants_gpus)
            workqueue_add(controller->queue, controller->jobs[i]->key);
}

/* GPUs came free or were taken: jobs that care look for themselves, others later. Those
 * that are held up are called in their turn. */
static void enqueue_attentive(struct controller *controller)
{
    for (size_t i = 0; i < controller->job_count; i++) {
        const struct job *job = controller->jobs[i];
        if (job->wants_gpus && !job->is_held_up && job->deaf_until_ms < INT64_MAX)
            workqueue_add_at(controller->queue, job->key, job->deaf_until_ms);
    }
}

static void end_search(struct controller *controller, struct job *job)
{
    struct job **searching = controller->searching;
    for (size_t i = 0; i < controller->searching_count; i++) {
        if (searching[i] == job) {
            searching[i] = searching[--controller->searching_count];
            break;
        }
    }
    job->is_being_cut = false;
    job->memory.is_planning = false;
}

static void forget_job(struct controller *controller, struct job *job)
{
    end_search(controller, job);
    take_out_job(controller, job);
    strmap_remove(&controller->jobs_by_key, job->key);
    planner_child_cancel(controller->planner, job->key);
    checkpoint_hooks_cancel(controller->hooks, job->key);
    workqueue_remove(controller->queue, job->key);
    workqueue_remove(controller->urgent, job->key);
    workqueue_remove(controller->wishes, job->key);
    controller->called -= job->is_called;
    free_job(job);
}

/* Until when `job` waits for `earlier`, which comes before it and has not been told yet
 * whether it gets GPUs: as long as one search may take, and at most as long as one with
 * the default time, from the moment `job` began to wait. A planner that hangs, or a
 * tenant with many long searches, delays no job for longer. */
static int64_t patience_ms(const struct controller *controller, const struct job *job,
                           const struct job *earlier)
{
    int64_t since = job->blocked_since_ms ? job->blocked_since_ms : controller->now_ms;
    return since + least(earlier->planner_limit_ms, CONTROLLER_PATIENCE_MS);
}

/* A job other than `but` that is just taking GPUs; NULL: none is. */
static const struct job *find_committing(const struct controller *controller,
                                         const struct job *but)
{
    for (size_t i = 0; i < controller->job_count; i++)
        if (controller->jobs[i] != but &&
            controller->now_ms < controller->jobs[i]->commits_until_ms)
            return controller->jobs[i];
    return NULL;
}

/* The job that `job` has to wait for, and until when: one that is just taking GPUs, or
 * else the first of those before it that have not been told whether they get any. */
static const struct job *find_blocker(const struct controller *controller,
                                      const struct job *job, int64_t *ret_until_ms)
{
    const struct job *committing = find_committing(controller, job);
    if (committing) {
        *ret_until_ms = committing->commits_until_ms;
        return committing;
    }
    for (size_t i = 0; i < controller->job_count && controller->jobs[i] != job; i++) {
        const struct job *earlier = controller->jobs[i];
        *ret_until_ms = patience_ms(controller, job, earlier);
        if (earlier->wants_gpus && earlier->is_unanswered && !earlier->is_failing &&
            !earlier->cuts && controller->now_ms < *ret_until_ms)
            return earlier;
    }
    return NULL;
}

/* Queues the first held-up job if no job holds it up any longer. Later ones wait for the
 * same job, and for this one until it is answered, so they are queued one after the
 * other, not all each time. */
static void call_held_up(struct controller *controller)
{
    size_t i = 0;
    while (i < controller->job_count && !controller->jobs[i]->is_held_up)
        i++;
    int64_t until_ms;
    if (i == controller->job_count ||
        find_blocker(controller, controller->jobs[i], &until_ms))
        return;
    controller->jobs[i]->is_held_up = false;
    workqueue_add(controller->queue, controller->jobs[i]->key);
}

/* Jobs that could take free GPUs if no other job wanted them more. */
static void enqueue_bidders(struct controller *controller, const struct job *but)
{
    for (size_t i = 0; i < controller->job_count; i++)
        if (controller->jobs[i] != but && controller->jobs[i]->bid.state == BID_OPEN)
            workqueue_add(controller->queue, controller->jobs[i]->key);
}

static void set_unanswered(struct controller *controller, struct job *job, bool value)
{
    bool was_unanswered = job->is_unanswered;
    job->is_unanswered = value;
    if (was_unanswered && !value)
        enqueue_bidders(controller, job);
}

static void set_bid(struct controller *controller, struct job *job, const struct bid *bid)
{
    bool changed = job->bid.state != bid->state || job->bid.value != bid->value;
    if (job->bid.state != bid->state)
        job->bid_since_ms = controller->now_ms;
    job->bid = *bid;
    if (changed)
        enqueue_bidders(controller, job);
}

/* Finds rivals for the free GPUs that `job` may want. Waits for those that have not yet
 * bid or been answered as long as a search may take. Returns when to look again. */
static int64_t find_rivals(const struct controller *controller, const struct job *job,
                           struct snapshot *snapshot)
{
    int64_t again_ms = INT64_MAX, now_ms = controller->now_ms;
    bool is_after = false; /* of two equal bids that of the first by precedence wins */
    for (size_t i = 0; i < controller->job_count; i++) {
        const struct job *other = controller->jobs[i];
        is_after = is_after || other == job;
        if (other == job || !other->wants_gpus || other->is_failing)
            continue;
        int64_t since_ms = other->bid.state == BID_ASKING ? other->bid_since_ms
                                                          : job->bid_since_ms;
        int64_t until_ms = since_ms + other->planner_limit_ms;
        bool may_come = other->bid.state == BID_ASKING || other->is_unanswered;
        if (may_come && now_ms < until_ms) {
            snapshot->rival_asking = other->key;
            again_ms = least(again_ms, until_ms);
        }
        double value = is_after ? other->bid.value : nextafter(other->bid.value, 1e300);
        if (other->bid.state == BID_OPEN &&
            (!snapshot->rival || value > snapshot->rival_bid)) {
            snapshot->rival = other->key;
            snapshot->rival_bid = value;
        }
    }
    return again_ms;
}

/* ---- the server's version ---- */

#define VERSION_RETRY_MS 5000
#define VERSION_AGAIN_MS 60000

static void on_version(void *context, const struct kube_result *result)
{
    struct controller *controller = context;
    struct het_error err;
    json_auto_t *version = result->outcome == KUBE_OK
                               ? kube_decode(result->body, result->body_length, &err)
                               : NULL;
    const char *major = json_string_value(json_object_get(version, "major"));
    const char *minor = json_string_value(json_object_get(version, "minor"));
    controller->is_version_asked = false;
    if (!major || !minor) {
        controller->version_due_ms = controller->now_ms + VERSION_RETRY_MS;
        controller->version_watches = 0; /* what was known holds until it is */
        log_event(LOG_WARNING, "controller", "version unknown",
                  LOG_STR("error", result->message));
        return;
    }
    /* "27", or "27+" of some vendors. */
    int64_t found = strtol(major, NULL, 10) > 1 ? INT32_MAX : strtol(minor, NULL, 10);
    bool is_news = !controller->is_version_known || found != controller->server_minor;
    controller->is_version_known = true;
    controller->server_minor = found;
    if (!is_news)
        return;
    enqueue_unfinished(controller);
    log_event(LOG_INFO, "controller", "server", LOG_STR("major", major),
              LOG_STR("minor", minor));
}

static uint64_t count_watches(const struct controller *controller)
{
    uint64_t started = 0;
    for (size_t i = 0; i < controller->watch_count; i++)
        started += watch_statistics(controller->watches[i]).watches;
    return started;
}

/* Whether the version is to be asked for at version_due_ms. */
static bool wants_version(const struct controller *controller)
{
    return !controller->is_version_asked &&
           (!controller->is_version_known ||
            controller->version_watches != count_watches(controller));
}

static void ask_version(struct controller *controller)
{
    if (!wants_version(controller) || controller->now_ms < controller->version_due_ms)
        return;
    controller->is_version_asked = true;
    controller->version_watches = count_watches(controller);
    controller->version_due_ms = controller->now_ms + VERSION_AGAIN_MS;
    kube_get_version(controller->kube, on_version, controller);
}

/* ---- hardware ---- */

/* Takes `json` (may be NULL: what is built in) into use, or says why it cannot. */
static int use_hardware(struct controller *controller, json_t *json,
                        struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    const struct het_hardware *hardware = het_hardware_builtin();
    if (json && het_hardware_json_read(arena, json, hardware, &hardware, err) < 0) {
        het_arena_free(arena);
        return -1;
    }
    auto_free char *text = json ? het_json_canonical(json) : xstrdup("");
    controller->hardware_digest = digest_bytes(0, text, strlen(text));
    json_incref(json);
    json_decref(controller->hardware);
    controller->hardware = json;
    capacity_set_hardware(controller->capacity, hardware, controller->now_ms);
    het_arena_free(controller->hardware_arena);
    controller->hardware_arena = arena;
    for (size_t i = 0; i < controller->job_count; i++) /* its types are named again */
        forget_memo(controller->jobs[i]);
    return 0;
}

/* The ConfigMap changed; a bad one is reported and the present settings stay. */
static void on_hardware_map(void *context, const struct kube_resource *resource,
                            json_t *before, json_t *after)
{
    struct controller *controller = context;
    (void)resource;
    (void)before;
    struct het_error err = { 0 };
    json_t *json = NULL;
    int failed = after ? hardware_map_read(after, &json, &err) : 0;
    if (!failed)
        failed = use_hardware(controller, after ? json : controller->hardware_file, &err);
    json_decref(json);
    log_event(failed ? LOG_ERROR : LOG_INFO, "controller",
              failed ? "hardware refused" : "hardware read",
              LOG_STR("configmap", controller->hardware_map),
              LOG_STR("error", failed ? err.message : ""));
    if (!failed)
        enqueue_unfinished(controller);
}

/* ---- what the store keeps ---- */

/* Everything except managedFields, which is large and not used. */
static json_t *trim_common(json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    if (!json_object_get(metadata, "managedFields"))
        return json_incref(object);
    json_t *trimmed = json_copy(object);
    json_t *kept = json_copy(metadata);
    json_object_del(kept, "managedFields");
    json_object_set_new(trimmed, "metadata", kept);
    return trimmed;
}

/* Of a namespace, its Pod Security level (pod_security.h). */
static json_t *trim_namespace(json_t *object)
{
    static const char *const metadata_names[] = { "name", "uid", "resourceVersion",
                                                  NULL };
    static const char *const label_names[] = { POD_SECURITY_LABEL,
                                               POD_SECURITY_VERSION_LABEL, NULL };
    json_t *metadata =
        kept_fields_pick(json_object_get(object, "metadata"), metadata_names);
    json_object_set_new(
        metadata, "labels",
        kept_fields_pick(object_at(object, "metadata.labels"), label_names));
    return json_pack("{s:o}", "metadata", metadata);
}

/* Of a Service, whose it is and whom it selects. */
static json_t *trim_service(json_t *object)
{
    json_auto_t *common = trim_common(object);
    json_t *trimmed = json_object();
    json_object_set(trimmed, "metadata", json_object_get(common, "metadata"));
    json_t *selector = json_object_get(json_object_get(object, "spec"), "selector");
    if (selector)
        json_object_set_new(trimmed, "spec", json_pack("{s:O}", "selector", selector));
    return trimmed;
}

/* What is watched. Of ConfigMaps only plans; all Services, as a foreign one may have the
 * name that a job needs. Pods of all namespaces: they take GPUs. Batch Jobs, the last,
 * only where there is a profiler. */
static const struct {
    const struct kube_resource *resource;
    json_t *(*trim)(json_t *object);
    const char *label_selector;
    bool is_cluster_wide;
} watched[WATCHES] = {
    { &kube_node, kept_fields_node, NULL, true },
    [POD_WATCH] = { &kube_pod, kept_fields_pod, NULL, true },
    { &kube_config_map, trim_common, LABEL_MANAGED_BY "=" MANAGED_BY, false },
    { &kube_service, trim_service, NULL, false },
    { &kube_model_profile, trim_common, NULL, false },
    { &kube_cluster_model_profile, trim_common, NULL, true },
    { &kube_priority_class, trim_common, NULL, true },
    { &kube_namespaces, trim_namespace, NULL, true },
    { &kube_job, trim_common, NULL, false },
    { &kube_batch_job, measurement_trim_job,
      LABEL_MANAGED_BY "=" MANAGED_BY "," LABEL_COMPONENT "=" COMPONENT_PROFILER, false },
};

static json_t *trim(const struct kube_resource *resource, json_t *object)
{
    for (size_t i = 0; i < WATCHES; i++)
        if (watched[i].resource == resource)
            return watched[i].trim(object);
    json_t *(*queue_trim)(json_t * object) = kueue_watches_trim(resource);
    return queue_trim ? queue_trim(object) : json_incref(object);
}

/* ---- events ---- */

static void add_event(void *context, const struct kube_resource *resource, json_t *before,
                      json_t *after)
{
    struct controller *controller = context;
    ARRAY_RESERVE(controller->events, &controller->event_capacity,
                  controller->event_count + 1);
    controller->events[controller->event_count++] = (struct event){
        .resource = resource,
        .before = json_incref(before),
        .after = json_incref(after),
    };
}

/* The job that controls `object`, as a key; NULL if none does. */
static char *owner_key(const json_t *object)
{
    const char *name =
        json_string_value(json_object_get(job_spec_find_owner(object), "name"));
    return name ? xasprintf("%s/%s", kube_namespace(object), name) : NULL;
}

static void enqueue_owner(struct controller *controller, const json_t *object)
{
    auto_free char *key = owner_key(object);
    if (key && find_job(controller, key))
        workqueue_add(controller->queue, key);
}

/* Jobs that have GPUs of a node that has changed, which may be lost, before others, which
 * may find something better. */
static void enqueue_holders(struct controller *controller, const char *node)
{
    for (size_t i = 0; i < controller->job_count; i++) {
        const struct job *job = controller->jobs[i];
        auto_free char *key =
            xasprintf("%.*s/%s", (int)strcspn(job->key, "/"), job->key, job->uid);
        if (job->wants_gpus && capacity_holds(controller->capacity, key, node))
            workqueue_add(controller->queue, job->key);
    }
}

static bool on_node(struct controller *controller, const char *name,
                    const struct event *event)
{
    bool changed =
        capacity_set_node(controller->capacity, name, event->after, controller->now_ms);
    if (!event->after)
        store_remove(controller->store, &kube_lease, NODE_LEASES, name, NULL);
    /* Whether a node is there or out of service says which pods are gone. */
    const json_t *before =
        json_object_get(json_object_get(event->before, "spec"), "taints");
    const json_t *after =
        json_object_get(json_object_get(event->after, "spec"), "taints");
    return changed || !event->before || !event->after ||
           (before != after && !json_equal(before, after));
}

static void on_job(struct controller *controller, const struct event *event)
{
    const json_t *object = event->after ? event->after : event->before;
    unreadable_jobs_forget(controller->unreadable, kube_namespace(object),
                           kube_name(object));
    auto_free char *key = object_key(object);
    auto_free char *uid_key =
        xasprintf("%s/%s", kube_namespace(object), kube_uid(object));
    struct job *job = find_job(controller, key);
    bool is_alive = event->after && !snapshot_job_is_finished(event->after);
    if (job && (!event->after || strcmp(job->uid, kube_uid(object)) != 0)) {
        forget_job(controller, job);
        job = NULL;
    }
    if (capacity_set_job(controller->capacity, uid_key, is_alive ? event->after : NULL))
        controller->capacity_has_changed = true;
    if (!event->after)
        return;
    if (!job) {
        job = xcalloc(1, sizeof *job);
        job->key = xstrdup(key);
        job->uid = xstrdup(kube_uid(object));
        job->is_unanswered = true;
        job->planner_limit_ms = CONTROLLER_DOUBT_MS; /* its spec says, once it is read */
        job->precedence = precedence_of(controller->store, object);
        job->precedence.uid = job->uid;
        insert_job(controller, job);
        strmap_set(&controller->jobs_by_key, job->key, job);
    } else {
        rank_job(controller, job, object);
    }
    job->is_queued = kueue_queue_of(object) != NULL;
    job->wants_gpus = is_alive && job_spec_is_ours(object) && !kube_is_deleting(object);
    job->generation = json_integer_value(
        json_object_get(json_object_get(object, "metadata"), "generation"));
    workqueue_add(controller->queue, key);
}

/* PriorityClasses changed: so may the order of the jobs. */
static void on_priority_class(struct controller *controller)
{
    for (size_t i = 0; i < store_count(controller->store, &kube_job); i++) {
        const json_t *object = store_at(controller->store, &kube_job, i);
        auto_free char *key = object_key(object);
        struct job *job = find_job(controller, key);
        if (job && rank_job(controller, job, object))
            workqueue_add(controller->queue, key);
    }
}

/* Jobs that wait in a queue of Kueue: what one may have depends on what others hold. */
static void enqueue_queued(struct controller *controller)
{
    for (size_t i = 0; i < controller->job_count; i++)
        if (controller->jobs[i]->is_queued)
            workqueue_add(controller->queue, controller->jobs[i]->key);
}

/* Jobs of a namespace in which something is measured: several may wait for it. */
static void enqueue_namespace(struct controller *controller, const char *ns)
{
    size_t length = strlen(ns);
    for (size_t i = 0; i < controller->job_count; i++) {
        const struct job *job = controller->jobs[i];
        if (job->wants_gpus && !strncmp(job->key, ns, length) && job->key[length] == '/')
            workqueue_add(controller->queue, job->key);
    }
}

static bool is_claim(const json_t *config_map)
{
    return *kube_annotation(config_map, ANNOTATION_PREEMPTS);
}

/* Passes the change to capacity and queue. */
static void take_event(struct controller *controller, const struct event *event)
{
    const struct kube_resource *resource = event->resource;
    const json_t *object = event->after ? event->after : event->before;
    struct capacity *capacity = controller->capacity;
    bool changed = false;
    if (resource == &kube_node) {
        changed = on_node(controller, kube_name(object), event);
        if (changed)
            enqueue_holders(controller, kube_name(object));
    } else if (resource == &kube_pod) {
        changed = capacity_set_pod(capacity, kube_uid(object), event->after);
        if (!strcmp(kube_label(object, LABEL_COMPONENT), COMPONENT_PROFILER))
            enqueue_namespace(controller, kube_namespace(object));
    } else if (resource == &kube_config_map) {
        changed = capacity_set_plan(capacity, kube_uid(object), event->after);
        if (changed && is_claim(object)) /* whose GPUs it is on, others know */
            enqueue_unfinished(controller);
    } else if (resource == &kube_job) {
        if (controller_lease(controller) == LEASE_HOLDS)
            gauges_note_job(controller->metrics, event->before, event->after);
        on_job(controller, event);
        return;
    } else if (resource == &kube_priority_class) {
        on_priority_class(controller);
        return;
    } else if (resource == &kube_service) {
        auto_free char *key = object_key(object);
        if (find_job(controller, key))
            workqueue_add(controller->queue, key);
    } else if (kueue_watches_trim(resource)) {
        enqueue_queued(controller);
    } else if (resource == &kube_batch_job) {
        enqueue_namespace(controller, kube_namespace(object));
    } else if (resource == &kube_namespaces) {
        enqueue_namespace(controller, kube_name(object));
    } else {
        enqueue_unfinished(controller); /* a profile: any job may be waiting for it */
    }
    enqueue_owner(controller, event->before);
    enqueue_owner(controller, event->after);
    controller->capacity_has_changed |= changed;
}

static void take_events(struct controller *controller)
{
    controller->statistics.events += controller->event_count;
    /* None is added meanwhile: only callbacks of the transport do. */
    for (size_t i = 0; i < controller->event_count; i++) {
        struct event *event = &controller->events[i];
        take_event(controller, event);
        json_decref(event->before);
        json_decref(event->after);
    }
    controller->event_count = 0;
    if (controller->capacity_has_changed)
        enqueue_attentive(controller);
    controller->capacity_has_changed = false;
}

/* ---- pauses ---- */

/* The job's runs of writes, less those that have expired. */
static double spent_runs(const struct controller *controller, const struct job *job)
{
    double earned = (double)(controller->now_ms - job->spent_ms) / CONTROLLER_RUN_MS;
    return fmax(0, job->spent_runs - earned);
}

static void spend_run(struct controller *controller, struct job *job)
{
    job->spent_runs = spent_runs(controller, job) + 1;
    job->spent_ms = controller->now_ms;
    if (job->spent_runs + 1 <= CONTROLLER_RUNS)
        return;
    job->hold_until_ms = controller->now_ms + CONTROLLER_RUN_MS;
    job->hold_generation = job->generation;
    controller->statistics.held++;
    log_event(LOG_WARNING, "controller", "job held back", LOG_STR("job", job->key),
              LOG_STR("why", "more writes than anything that happens to a job leads to"),
              LOG_INT("for_ms", CONTROLLER_RUN_MS));
}

/* Its writes failed: holds the job back for this long. */
static void hold_failed(struct controller *controller, struct job *job,
                        int64_t backoff_ms)
{
    job->hold_until_ms = controller->now_ms + least(backoff_ms, CONTROLLER_HOLD_MS);
    job->hold_generation = job->generation;
}

/* Whether the key of a job must wait; then it comes back when it need not. */
static bool is_held(struct controller *controller, const char *key)
{
    struct job *job = find_job(controller, key);
    if (!job || controller->now_ms >= job->hold_until_ms ||
        job->generation != job->hold_generation)
        return false;
    /* Others may ask the planner meanwhile. */
    controller->called -= job->is_called;
    job->is_called = false;
    workqueue_done(controller->queue, key);
    workqueue_add_at(controller->queue, key, job->hold_until_ms);
    return true;
}

/* ---- our own writes ---- */

static uint64_t on_reading(void *context)
{
    const struct controller *controller = context;
    return store_removals(controller->store);
}

/* Tells what store_put or store_put_read of `after` changed. */
static void add_put(struct controller *controller, const struct kube_resource *resource,
                    json_t *before, json_t *after)
{
    bool is_another = before && strcmp(kube_uid(before), kube_uid(after)) != 0;
    if (is_another)
        add_event(controller, resource, before, NULL);
    add_event(controller, resource, is_another ? NULL : before, after);
}

/* An object was read, as what we knew of it did not hold. */
static void on_read(void *context, const struct kube_resource *resource, json_t *object,
                    uint64_t reading)
{
    struct controller *controller = context;
    json_auto_t *before = json_incref(store_find(
        controller->store, resource, kube_namespace(object), kube_name(object)));
    if (resource == &kube_lease) { /* of a node, for the decision that asked for it */
        store_put_read(controller->store, resource, object, reading);
        return;
    }
    json_auto_t *trimmed = trim(resource, object);
    if (trimmed && store_put_read(controller->store, resource, trimmed, reading))
        add_put(controller, resource, before, trimmed);
}

/* An object came back from one of our writes: the store has it before the watch does. */
static void on_object(void *context, const struct kube_resource *resource, const char *ns,
                      const char *name, const char *uid, json_t *object)
{
    struct controller *controller = context;
    json_auto_t *before = json_incref(store_find(controller->store, resource, ns, name));
    if (!object) {
        if (store_remove(controller->store, resource, ns, name, uid))
            add_event(controller, resource, before, NULL);
        return;
    }
    json_auto_t *trimmed = trim(resource, object);
    if (trimmed && store_put(controller->store, resource, trimmed))
        add_put(controller, resource, before, trimmed);
}

/* Whether writes to it are those of profiling.h. */
static bool is_profiling(const struct kube_resource *resource)
{
    return resource == &kube_batch_job || resource == &kube_model_profile;
}

/* Of the plan, or of the pod; 0: it is neither. */
static int64_t generation_of(const json_t *object)
{
    int64_t generation = plan_object_generation(object), index;
    return generation || plan_object_place(object, &generation, &index) ? generation : 0;
}

static void on_done(void *context, const char *key, const struct apply_outcome *outcome)
{
    struct controller *controller = context;
    const struct het_error *err = outcome->err;
    ARRAY_RESERVE(controller->outcomes, &controller->outcome_capacity,
                  controller->outcome_count + 1);
    controller->outcomes[controller->outcome_count++] = (struct outcome){
        .key = xstrdup(key),
        .has_failed = err != NULL,
        .is_refused = err && err->code == HET_DENIED,
        .is_profiling = is_profiling(outcome->failed),
        .taken_generation = outcome->taken ? generation_of(outcome->taken) : 0,
        .taken_is_plan = outcome->taken && outcome->failed == &kube_config_map,
        .message = xstrdup(err ? err->message : ""),
        .retry_after_ms = outcome->retry_after_ms,
    };
}

/* Remembers that the next generation is to be another one (generation.h). */
static void note_taken(const struct controller *controller, struct job_memory *memory,
                       int64_t generation)
{
    if (controller->now_ms - memory->taken_ms >= GENERATION_TAKEN_MS)
        memory->taken = 0;
    memory->taken++;
    memory->taken_ms = controller->now_ms;
    memory->taken_generation = generation;
}

/* Remembers that the API server refuses what the job wants created, until pods of it were
 * created; the next decision says so and frees what was reserved. Of what has GPU types
 * measured every failure is remembered, apart from those. */
static void note_refusal(struct controller *controller, struct job *job,
                         const struct outcome *outcome)
{
    if (!outcome->has_failed && job->run_profiles) {
        job->memory.profiling_refusals = 0;
    } else if (outcome->has_failed && outcome->is_profiling) {
        free(job->profiling_refusal);
        job->profiling_refusal = xstrdup(outcome->message);
        job->memory.profiling_refusal = job->profiling_refusal;
        job->memory.profiling_refusals++;
        job->memory.profiling_refused_ms = controller->now_ms;
        return;
    }
    if (outcome->taken_generation)
        note_taken(controller, &job->memory, outcome->taken_generation);
    if (!outcome->has_failed && job->run_creates_pods) {
        job->memory.refusals = job->memory.taken = 0;
    } else if (outcome->is_refused && !outcome->taken_is_plan) {
        free(job->refusal);
        job->refusal = xstrdup(outcome->message);
        job->memory.refusal = job->refusal;
        job->memory.refusals++;
        job->memory.refused_ms = controller->now_ms;
        job->memory.refused_generation = job->generation;
    }
}

static void take_outcome(struct controller *controller, const struct outcome *outcome)
{
    struct job *job = find_job(controller, outcome->key);
    workqueue_done(controller->queue, outcome->key);
    if (!job)
        return;
    job->is_failing = outcome->has_failed;
    if (job->commits_until_ms) {
        /* The plan may exist although the write failed: the watch will show it. */
        job->commits_until_ms =
            outcome->has_failed ? controller->now_ms + CONTROLLER_DOUBT_MS : 0;
    }
    note_refusal(controller, job, outcome);
    if (outcome->has_failed) /* what was to be read anew may not have been */
        job->memory.checked_generation = job->memory.searched_generation = 0;
    if (!outcome->has_failed) {
        workqueue_forget(controller->queue, outcome->key);
        return;
    }
    controller->statistics.failures++;
    log_event(LOG_WARNING, "controller", "pass failed", LOG_STR("job", outcome->key),
              LOG_STR("error", outcome->message));
    hold_failed(
        controller, job,
        workqueue_add_failed(controller->queue, outcome->key, controller->now_ms));
    if (outcome->retry_after_ms > 0)
        workqueue_add_at(controller->queue, outcome->key,
                         controller->now_ms + outcome->retry_after_ms);
}

static void take_outcomes(struct controller *controller)
{
    for (size_t i = 0; i < controller->outcome_count; i++) {
        take_outcome(controller, &controller->outcomes[i]);
        free(controller->outcomes[i].key);
        free(controller->outcomes[i].message);
    }
    controller->outcome_count = 0;
}

/* ---- the planner ---- */

static void set_answer(struct controller *controller, struct job *job,
                       enum answer_kind kind, uint64_t digest, const char *text,
                       const char *message, int64_t took_ms, bool is_cut)
{
    end_search(controller, job);
    bool what_if = job->memory.is_what_if;
    char **held_text = what_if ? &job->what_if_text : &job->answer_text;
    char **held_message = what_if ? &job->what_if_message : &job->answer_message;
    char *new_text = xstrdup(text ? text : "");
    char *new_message = xstrdup(message ? message : "");
    free(*held_text);
    free(*held_message);
    *held_text = new_text;
    *held_message = new_message;
    struct planner_answer *held = what_if ? &job->memory.what_if : &job->memory.answer;
    *held = (struct planner_answer){
        .kind = kind,
        .digest = digest,
        .spec_digest = job->memory.planning_spec_digest,
        .parts = job->memory.planning_parts,
        .asked_ms = job->memory.planning_asked_ms,
        .text = new_text,
        .message = new_message,
        .planner_ms = took_ms,
        .is_cut = is_cut,
    };
}

/* A search that was cut short, and whose best plan so far is not the answer: it is asked
 * again at the job's next turn, which is longer. */
static void ask_again(struct controller *controller, struct job *job)
{
    end_search(controller, job);
    job->cuts++;
    log_event(LOG_INFO, "planner", "cut short", LOG_STR("job", job->key),
              LOG_INT("times", job->cuts));
    workqueue_add(controller->queue, job->key);
}

/* Whether to ignore the answer of a search that was cut short: there is none, or the job
 * runs or should not run, so there is time for a better one. */
static bool is_passed_over(const struct job *job, const struct planner_child_reply *reply)
{
    return reply->outcome == PLANNER_CHILD_CUT || (reply->is_cut && !job->asks_urgently &&
                                                   job->cuts < CONTROLLER_TURN_DOUBLINGS);
}

static void count_failure(struct controller *controller, struct job *job)
{
    job->memory.planner_failures++;
    job->memory.planner_failed_ms = controller->now_ms;
}

/* Whether the planner's output is a plan; if not, reports why. Measures its gap. */
static bool is_plan(struct metrics *metrics, const char *text, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    const struct het_plan *plan;
    bool result = het_plan_json_text(arena, text, "plan", &plan, err) == 0;
    if (result && plan->predicted.lower_bound_s > 0)
        metrics_observe(metrics, METRIC_PLAN_GAP,
                        plan->predicted.iteration_s / plan->predicted.lower_bound_s - 1,
                        NO_LABELS);
    het_arena_free(arena);
    return result;
}

static void on_answer(void *context, const char *key, uint64_t digest,
                      const struct planner_child_reply *reply)
{
    static const enum answer_kind kinds[] = { [PLANNER_CHILD_PLAN] = ANSWER_PLAN,
                                              [PLANNER_CHILD_NO_PLAN] = ANSWER_NO_PLAN,
                                              [PLANNER_CHILD_REFUSED] = ANSWER_REFUSED,
                                              [PLANNER_CHILD_BROKE] = ANSWER_FAILED };
    static const char *const outcomes[] = { [ANSWER_PLAN] = "plan",
                                            [ANSWER_NO_PLAN] = "no-plan",
                                            [ANSWER_REFUSED] = "refused",
                                            [ANSWER_FAILED] = "failed" };
    struct controller *controller = context;
    struct job *job = find_job(controller, key);
    enum answer_kind kind = kinds[reply->outcome];
    if (!job)
        return;
    if (is_passed_over(job, reply)) {
        metrics_observe(controller->metrics, METRIC_PLAN_SECONDS,
                        (double)reply->took_ms / 1000, LABELS("cut"));
        ask_again(controller, job);
        return;
    }
    struct het_error err = { 0 };
    const char *message = reply->message;
    if (kind == ANSWER_PLAN && !is_plan(controller->metrics, reply->output, &err)) {
        kind = ANSWER_FAILED;
        message = err.message;
    }
    metrics_observe(controller->metrics, METRIC_PLAN_SECONDS,
                    (double)reply->took_ms / 1000, LABELS(outcomes[kind]));
    log_event(kind == ANSWER_FAILED ? LOG_WARNING : LOG_INFO, "planner", "answered",
              LOG_STR("job", key), LOG_INT("took_ms", reply->took_ms),
              LOG_BOOL("has_plan", kind == ANSWER_PLAN),
              LOG_STR("message", kind == ANSWER_PLAN ? "" : message));
    set_answer(controller, job, kind, digest, reply->output, message, reply->took_ms,
               reply->is_cut && job->asks_urgently);
    job->cuts = 0;
    if (kind == ANSWER_FAILED)
        count_failure(controller, job);
    else
        job->memory.planner_failures = 0;
    workqueue_add(controller->queue, key);
}

/* Children that may be started for questions of this kind: one is kept for jobs that
 * cannot run without an answer. */
static size_t planners_for(const struct controller *controller, bool is_urgent)
{
    return is_urgent || controller->planners == 1 ? controller->planners
                                                  : controller->planners - 1;
}

static bool has_room(const struct controller *controller, bool is_urgent)
{
    return planner_child_has_room(controller->planner) &&
           planner_child_running(controller->planner) + controller->called <
               planners_for(controller, is_urgent);
}

/* Jobs still waiting for their turn go first. */
static enum planner_load load_for(const struct controller *controller,
                                  const struct job *job)
{
    if (job->is_called)
        return PLANNER_FREE;
    if (!has_room(controller, true) || workqueue_length(controller->urgent))
        return PLANNER_FULL;
    return has_room(controller, false) && !workqueue_length(controller->wishes)
               ? PLANNER_FREE
               : PLANNER_BUSY;
}

/* The queue whose next job can be called; NULL: there is none. A job that cannot run
 * without an answer would not ask while another takes GPUs, and lose its turn. */
static struct workqueue *find_waiting(const struct controller *controller)
{
    if (workqueue_length(controller->urgent))
        return has_room(controller, true) && !find_committing(controller, NULL)
                   ? controller->urgent
                   : NULL;
    return workqueue_length(controller->wishes) && has_room(controller, false)
               ? controller->wishes
               : NULL;
}

/* ---- turns ---- */

/* Searches under way of a namespace. */
static size_t count_searches(void *context, const char *ns)
{
    const struct controller *controller = context;
    size_t count = 0, length = strlen(ns);
    for (size_t i = 0; i < controller->searching_count; i++) {
        const char *key = controller->searching[i]->key;
        count += !strncmp(key, ns, length) && key[length] == '/';
    }
    return count;
}

static size_t count_searches_beside(const struct controller *controller, const char *key)
{
    char ns[256];
    snprintf(ns, sizeof ns, "%.*s", (int)strcspn(key, "/"), key);
    return count_searches((void *)(uintptr_t)controller, ns);
}

/* The job that waits for a planner of this kind and is called next; NULL: none waits, or
 * there is a planner for it. */
static const char *next_waiting(const struct controller *controller, bool is_urgent)
{
    struct workqueue *queue = is_urgent ? controller->urgent : controller->wishes;
    return workqueue_length(queue) && !has_room(controller, is_urgent)
               ? workqueue_peek(queue, controller->now_ms)
               : NULL;
}

/* Whether jobs of other namespaces wait for the answer to `job`. */
static bool holds_up_others(const struct controller *controller, const struct job *job)
{
    size_t length = strcspn(job->key, "/") + 1, at = 0;
    if (!job->is_unanswered || job->cuts)
        return false;
    while (controller->jobs[at] != job)
        at++;
    for (size_t i = at + 1; i < controller->job_count; i++)
        if (controller->jobs[i]->is_held_up &&
            strncmp(controller->jobs[i]->key, job->key, length) != 0)
            return true;
    return false;
}

/* When the search of `job` is cut short, as things are: where a job waits that cannot run
 * without an answer, and this one can; where jobs of other namespaces wait for its
 * answer; and where its namespace has more searches under way than that of a job that
 * waits. INT64_MAX: it is not. */
static int64_t cut_due_ms(const struct controller *controller, const struct job *job)
{
    int64_t asked_ms = job->memory.planning_asked_ms;
    int doublings = job->cuts < CONTROLLER_TURN_DOUBLINGS ? job->cuts
                                                          : CONTROLLER_TURN_DOUBLINGS;
    int64_t turn_ms = least(job->planner_limit_ms, CONTROLLER_TURN_MS) << doublings;
    int64_t later_turn_ms = (int64_t)CONTROLLER_LATER_TURN_MS << doublings;
    if (job->asks_urgently && holds_up_others(controller, job))
        return asked_ms + turn_ms;
    const char *waiting = next_waiting(controller, true);
    if (waiting && !job->asks_urgently)
        return asked_ms + later_turn_ms;
    if (!waiting && !job->asks_urgently)
        waiting = next_waiting(controller, false);
    return waiting && count_searches_beside(controller, job->key) >
                          count_searches_beside(controller, waiting)
               ? asked_ms + turn_ms
               : INT64_MAX;
}

/* The search to cut short next, and when; NULL: none. One at a time. */
static struct job *find_cut(const struct controller *controller, int64_t *ret_due_ms)
{
    struct job *found = NULL;
    *ret_due_ms = INT64_MAX;
    for (size_t i = 0; i < controller->searching_count; i++) {
        struct job *job = controller->searching[i];
        if (job->is_being_cut) {
            *ret_due_ms = INT64_MAX;
            return NULL;
        }
        int64_t due_ms = cut_due_ms(controller, job);
        if (due_ms < *ret_due_ms) {
            *ret_due_ms = due_ms;
            found = job;
        }
    }
    return found;
}

static void cut_searches(struct controller *controller)
{
    int64_t due_ms;
    struct job *job = find_cut(controller, &due_ms);
    if (!job || controller->now_ms < due_ms)
        return;
    job->is_being_cut = true;
    planner_child_cut(controller->planner, job->key, controller->now_ms);
}

/* Calls jobs that wait for a planner, as many as there are planners free. The namespace
 * with the fewest searches under way is next; among equal ones they take turns. Within a
 * namespace the first to ask is the first to be answered. */
static void call_waiting(struct controller *controller)
{
    for (struct workqueue *queue; (queue = find_waiting(controller));) {
        auto_free char *key = xstrdup(workqueue_take(queue, controller->now_ms));
        workqueue_done(queue, key);
        struct job *job = find_job(controller, key);
        if (!job || job->is_called)
            continue;
        job->is_called = true;
        controller->called++;
        workqueue_add(controller->queue, key);
    }
}

/* ---- who decides ---- */

/* Others may have decided until now: what they wrote is read before anything is decided
 * here (watch.h). */
static void require_fresh(struct controller *controller)
{
    for (size_t i = 0; i < controller->watch_count; i++)
        watch_require_fresh(controller->watches[i]);
    kueue_watches_require_fresh(controller->kueue_watches);
    if (controller->hardware_watch)
        watch_require_fresh(controller->hardware_watch);
}

static bool is_fresh(const struct controller *controller)
{
    bool fresh = !controller->hardware_watch ||
                 watch_is_fresh(controller->hardware_watch);
    for (size_t i = 0; i < controller->watch_count; i++)
        fresh = fresh && watch_is_fresh(controller->watches[i]);
    return fresh && kueue_watches_is_fresh(controller->kueue_watches);
}

/* Whether we may decide: all watched collections are known, and writes are allowed at
 * once. */
static bool may_decide(const struct controller *controller)
{
    return !controller->is_stopping && controller_is_synced(controller) &&
           is_fresh(controller) &&
           (!controller->lease || lease_fence_is_open(controller->lease));
}

/* The lease is released when no write sent under it can still take effect. */
static void step_lease(struct controller *controller)
{
    if (!controller->lease)
        return;
    kube_step(controller->lease_kube, controller->now_ms);
    if (controller->is_stopping && !kube_writes_in_flight(controller->kube))
        lease_release(controller->lease);
    bool held = lease_state(controller->lease) == LEASE_HOLDS;
    lease_step(controller->lease, controller->now_ms, controller->wall_ms);
    if (!held && lease_state(controller->lease) == LEASE_HOLDS)
        require_fresh(controller);
}

static bool is_never_open(void *context)
{
    (void)context;
    return false;
}

void controller_stop(struct controller *controller)
{
    controller->is_stopping = true;
    kube_set_fence(controller->kube, is_never_open, NULL);
}

bool controller_has_stopped(const struct controller *controller)
{
    if (!controller->is_stopping || !controller->lease)
        return controller->is_stopping;
    enum lease_state state = lease_state(controller->lease);
    return state == LEASE_RELEASED || state == LEASE_LOST;
}

enum lease_state controller_lease(const struct controller *controller)
{
    return controller->lease ? lease_state(controller->lease) : LEASE_HOLDS;
}

/* ---- checkpoint hooks ---- */

static void on_hook(void *context, const char *key, enum hook_outcome outcome,
                    const char *message)
{
    struct controller *controller = context;
    struct job *job = find_job(controller, key);
    if (!job)
        return;
    free(job->hook_message);
    job->hook_message = message ? xstrdup(message) : NULL;
    job->memory.hook.outcome = outcome;
    job->memory.hook.message = job->hook_message;
    workqueue_add(controller->queue, key);
}

/* Starts what was decided; ends what is not wanted any more. */
static void keep_hook(struct controller *controller, const struct job *job,
                      const struct decision *decision)
{
    if (job->memory.hook.outcome == HOOK_IDLE)
        checkpoint_hooks_cancel(controller->hooks, job->key);
    for (size_t i = 0; i < decision->action_count; i++) {
        const struct action *action = &decision->actions[i];
        if (action->kind != ACTION_HOOK)
            continue;
        struct checkpoint_hook_request request = { .address = action->address,
                                                   .port = action->port,
                                                   .path = action->path,
                                                   .body = action->object,
                                                   .timeout_ms = action->timeout_ms };
        checkpoint_hooks_start(controller->hooks, job->key, &request, controller->now_ms);
    }
}

/* ---- one job ---- */

static void ask_planner(struct controller *controller, struct job *job,
                        const struct action *action)
{
    struct het_error err = { 0 };
    job->memory.is_planning = true;
    job->memory.is_what_if = action->is_what_if;
    job->memory.planning_digest = action->digest;
    job->memory.planning_spec_digest = action->spec_digest;
    job->memory.planning_parts = action->parts;
    job->memory.planning_asked_ms = controller->now_ms;
    job->asks_urgently = action->is_urgent;
    controller->searching[controller->searching_count++] = job;
    controller->statistics.plans++;
    if (planner_child_start(controller->planner, job->key, action->digest, action->object,
                            action->timeout_ms, controller->now_ms, &err) == 0)
        return;
    log_event(LOG_ERROR, "planner", "cannot start", LOG_STR("job", job->key),
              LOG_STR("error", err.message));
    set_answer(controller, job, ANSWER_FAILED, action->digest, "", err.message, 0, false);
    count_failure(controller, job);
    workqueue_add(controller->queue, job->key);
}

/* Asks what was decided to be asked, or notes that the job wants to. */
static void keep_question(struct controller *controller, struct job *job,
                          const struct decision *decision)
{
    controller->called -= job->is_called;
    job->is_called = false;
    for (size_t i = 0; i < decision->action_count; i++)
        if (decision->actions[i].kind == ACTION_PLAN)
            ask_planner(controller, job, &decision->actions[i]);
    if (decision->planner_wish != WISH_NONE)
        workqueue_add(decision->planner_wish == WISH_NOW ? controller->urgent
                                                         : controller->wishes,
                      job->key);
}

static bool creates(const struct decision *decision, const struct kube_resource *resource)
{
    for (size_t i = 0; i < decision->action_count; i++)
        if (decision->actions[i].kind == ACTION_CREATE &&
            decision->actions[i].resource == resource)
            return true;
    return false;
}

/* Whether it decides on a plan, which takes GPUs. */
static bool commits(const struct decision *decision)
{
    for (size_t i = 0; i < decision->action_count; i++)
        if (decision->actions[i].kind == ACTION_CREATE &&
            plan_object_generation(decision->actions[i].object))
            return true;
    return false;
}

static bool profiles(const struct decision *decision)
{
    for (size_t i = 0; i < decision->action_count; i++)
        if (is_profiling(decision->actions[i].resource))
            return true;
    return false;
}

/* Whether anything is written but events, which only tell. */
static bool writes(const struct decision *decision)
{
    for (size_t i = 0; i < decision->action_count; i++)
        switch (decision->actions[i].kind) {
        case ACTION_CREATE:
        case ACTION_APPLY:
        case ACTION_PATCH:
        case ACTION_DELETE:
        case ACTION_STATUS:
            return true;
        case ACTION_EVENT:
        case ACTION_REFRESH:
        case ACTION_PLAN:
        case ACTION_HOOK:
            break;
        }
    return false;
}

static int64_t resync_ms(const struct controller *controller, const struct job *job)
{
    uint64_t digest = digest_bytes(controller->seed, job->uid, strlen(job->uid));
    return controller->now_ms + CONTROLLER_RESYNC_MS +
           (int64_t)(digest % (CONTROLLER_RESYNC_MS / 10));
}

/* A status that may wait is left out until it has waited so long, and decided on anew
 * then: steps that follow each other become one write. */
static void hold_status(struct controller *controller, struct job *job,
                        struct decision *decision)
{
    size_t at = 0;
    while (at < decision->action_count && decision->actions[at].kind != ACTION_STATUS)
        at++;
    int64_t since_ms = job->status_since_ms;
    job->status_since_ms = 0;
    if (at == decision->action_count || !decision->actions[at].patience_ms)
        return;
    if (!since_ms)
        since_ms = controller->now_ms;
    int64_t due_ms = since_ms + decision->actions[at].patience_ms;
    if (controller->now_ms >= due_ms)
        return;
    job->status_since_ms = since_ms;
    decision->requeue_ms = least(decision->requeue_ms, due_ms);
    json_decref(decision->actions[at].object);
    memmove(&decision->actions[at], &decision->actions[at + 1],
            (--decision->action_count - at) * sizeof *decision->actions);
}

/* Carries out the decision. The key stays taken until the writes are done. */
static void carry_out(struct controller *controller, struct job *job,
                      const struct decision *decision)
{
    struct planner_answer answer = job->memory.answer, what_if = job->memory.what_if;
    job->memory = decision->memory;
    job->memory.answer = answer; /* ours, the decision's is borrowed */
    job->memory.what_if = what_if;
    keep_question(controller, job, decision);
    keep_hook(controller, job, decision);
    if (writes(decision))
        spend_run(controller, job);
    job->run_creates_pods = creates(decision, &kube_pod);
    job->run_profiles = profiles(decision);
    if (commits(decision))
        job->commits_until_ms = INT64_MAX;
    set_unanswered(controller, job, decision->is_unanswered);
    set_bid(controller, job, &decision->bid);
    job->is_held_up = decision->is_held_up;
    job->deaf_until_ms = decision->deaf_until_ms;
    if (!decision->is_unanswered)
        job->blocked_since_ms = 0;
    else if (job->is_held_up && !job->blocked_since_ms)
        job->blocked_since_ms = controller->now_ms;
    controller->statistics.passes++;
    controller->statistics.actions += decision->action_count;
    int64_t again_ms = resync_ms(controller, job);
    workqueue_add_at(controller->queue, job->key, least(decision->requeue_ms, again_ms));
    log_event(decision->action_count ? LOG_INFO : LOG_DEBUG, "controller", "decided",
              LOG_STR("job", job->key), LOG_STR("state", decision->summary),
              LOG_INT("actions", (int64_t)decision->action_count));
    apply_start(controller->apply, job->key, decision);
}

static struct snapshot_sources sources_of(const struct controller *controller)
{
    return (struct snapshot_sources){
        .store = controller->store,
        .capacity = controller->capacity,
        .hardware = controller->hardware,
        .hardware_digest = controller->hardware_digest,
        .settings = controller->settings,
        .leader = controller->lease ? lease_holder(controller->lease) : NULL,
        .kueue = controller->kueue,
        .server_minor = controller->server_minor,
        .pods_version = watch_version(controller->watches[POD_WATCH]),
        .now_ms = controller->now_ms,
        .wall_ms = controller->wall_ms,
    };
}

/* The memo must make no difference. */
static void doubt_memo(struct het_arena *arena, struct snapshot_sources sources,
                       const struct job *job, const struct snapshot *snapshot)
{
    struct snapshot anew;
    sources.memo = NULL;
    bool found = snapshot_take(arena, &sources, snapshot->spec.ns, snapshot->spec.name,
                               &job->memory, &anew);
    assert(found);
    assert(snapshot_is_same(snapshot, &anew));
}

/* Decides about one job; false if there is none of that key. */
static bool decide(struct controller *controller, const char *key)
{
    struct job *job = find_job(controller, key);
    if (!job)
        return false;
    double from_s = metrics_now(controller->metrics);
    struct het_arena *arena = het_arena_new();
    struct snapshot_sources sources = sources_of(controller);
    sources.memo = &job->memo;
    const char *slash = strchr(key, '/');
    const char *ns = het_arena_printf(arena, "%.*s", (int)(slash - key), key);
    struct snapshot snapshot;
    bool found = snapshot_take(arena, &sources, ns, slash + 1, &job->memory, &snapshot);
    if (found && controller->doubts_memos)
        doubt_memo(arena, sources, job, &snapshot);
    if (found) {
        snapshot.planner_load = load_for(controller, job);
        int64_t blocked_until_ms;
        const struct job *blocker = find_blocker(controller, job, &blocked_until_ms);
        snapshot.blocked_by = blocker ? blocker->key : NULL;
        job->planner_limit_ms = snapshot.spec.planner_timeout_ms + CONTROLLER_SLACK_MS;
        int64_t rivals_until_ms = find_rivals(controller, job, &snapshot);
        struct decision decision;
        reconcile(arena, &snapshot, &decision);
        if (controller->on_decision)
            controller->on_decision(controller->decision_context, &snapshot, &decision);
        if (decision.bid.state == BID_OPEN)
            decision.requeue_ms = least(decision.requeue_ms, rivals_until_ms);
        if (decision.is_held_up)
            decision.requeue_ms = least(decision.requeue_ms, blocked_until_ms);
        hold_status(controller, job, &decision);
        carry_out(controller, job, &decision);
        decision_fini(&decision);
    }
    het_arena_free(arena);
    metrics_observe(controller->metrics, METRIC_RECONCILE_SECONDS,
                    metrics_now(controller->metrics) - from_s, NO_LABELS);
    return found;
}

static void decide_due(struct controller *controller)
{
    for (int i = 0; i < CONTROLLER_KEYS_A_STEP && may_decide(controller); i++) {
        const char *taken = workqueue_take(controller->queue, controller->now_ms);
        if (!taken)
            return;
        auto_free char *key = xstrdup(taken);
        if (is_held(controller, key))
            continue;
        if (!decide(controller, key))
            workqueue_done(controller->queue, key);
        /* Runs without a write are over at once: their keys must not look taken. */
        take_outcomes(controller);
        call_held_up(controller);
    }
}

/* ---- life ---- */

static void on_unreadable_job(void *context, const struct kube_identity *identity,
                              struct json_span text, const char *why)
{
    struct controller *controller = context;
    unreadable_jobs_note(controller->unreadable, identity, text, why);
}

static void on_jobs_listed(void *context, const struct watch *watch)
{
    struct controller *controller = context;
    unreadable_jobs_sweep(controller->unreadable, watch);
}

static void make_watches(struct controller *controller)
{
    controller->watch_count = controller->settings->profiler.image ? WATCHES
                                                                   : WATCHES - 1;
    for (size_t i = 0; i < controller->watch_count; i++) {
        struct watch_config config = {
            .resource = watched[i].resource,
            .ns = watched[i].is_cluster_wide ? "" : controller->ns,
            .label_selector = watched[i].label_selector,
            .trim = watched[i].trim,
            .digest = watched[i].resource == &kube_node ? kept_fields_node_digest : NULL,
            .on_quarantine = watched[i].resource == &kube_job ? on_unreadable_job : NULL,
            .on_listed = watched[i].resource == &kube_job ? on_jobs_listed : NULL,
        };
        controller->watches[i] = watch_new(controller->kube, controller->store, &config,
                                           controller->seed + i, add_event, controller);
    }
    controller->kueue_watches =
        kueue_watches_new(controller->kube, controller->store, controller->ns,
                          controller->seed + 2 * WATCHES, add_event, controller);
}

static void make_hardware_watch(struct controller *controller,
                                const struct controller_config *config)
{
    if (!config->hardware_map)
        return;
    controller->hardware_ns = xstrdup(config->hardware_map_ns);
    controller->hardware_map = xasprintf("metadata.name=%s", config->hardware_map);
    controller->hardware_store = store_new();
    struct watch_config watch = { .resource = &kube_config_map,
                                  .ns = controller->hardware_ns,
                                  .field_selector = controller->hardware_map };
    controller->hardware_watch = watch_new(controller->kube, controller->hardware_store,
                                           &watch, config->seed + WATCHES,
                                           on_hardware_map, controller);
}

static void confine_planner(struct controller *controller)
{
    enum planner_confinement confinement = controller->settings->planner.confinement;
    planner_child_set_confinement(controller->planner, confinement);
    if (confinement == PLANNER_UNCONFINED || !het_system_call_filter_is_possible())
        log_event(LOG_WARNING, "planner", "not confined",
                  LOG_STR("reason", confinement == PLANNER_UNCONFINED
                                        ? "planner.confinement is Off"
                                        : "this system, or this build, has no filters of "
                                          "system calls (seccomp)"));
}

struct controller *controller_new(struct transport *transport,
                                  const struct controller_config *config,
                                  struct het_error *err)
{
    struct controller *controller = xcalloc(1, sizeof *controller);
    controller->ns = config->ns ? config->ns : "";
    controller->transport = transport;
    controller->seed = config->seed;
    controller->planners = config->planners ? config->planners : CONTROLLER_PLANNERS;
    controller->metrics = config->metrics;
    controller->kube = kube_new(transport, "heterotrain-controller");
    controller->unreadable = unreadable_jobs_new(controller->kube);
    kube_set_metrics(controller->kube, config->metrics);
    if (config->requests_per_s > 0)
        kube_set_rate(controller->kube, config->requests_per_s, config->burst);
    if (config->lease) {
        controller->lease_kube = kube_new(transport, "heterotrain-controller");
        kube_set_metrics(controller->lease_kube, config->metrics);
        controller->lease = lease_new(controller->lease_kube, config->lease);
        kube_set_fence(controller->kube, lease_fence_is_open, controller->lease);
    }
    controller->store = store_new();
    controller->queue = workqueue_new();
    controller->urgent = workqueue_new();
    controller->wishes = workqueue_new();
    workqueue_set_load(controller->urgent, count_searches, controller);
    workqueue_set_load(controller->wishes, count_searches, controller);
    workqueue_set_metrics(controller->queue, config->metrics, "jobs");
    workqueue_set_metrics(controller->urgent, config->metrics, "urgent-questions");
    workqueue_set_metrics(controller->wishes, config->metrics, "wishes");
    controller->settings = config->settings ? config->settings : settings_default();
    controller->on_decision = config->on_decision;
    controller->decision_context = config->decision_context;
    controller->doubts_memos = config->doubts_memos;
    controller->capacity = capacity_new();
    capacity_set_settings(controller->capacity, controller->settings, 0);
    struct apply_callbacks callbacks = { .on_reading = on_reading,
                                         .on_read = on_read,
                                         .on_object = on_object,
                                         .on_done = on_done,
                                         .context = controller };
    controller->apply = apply_new(controller->kube, &callbacks);
    controller->planner = planner_child_new(config->planner, on_answer, controller);
    confine_planner(controller);
    if (config->inside)
        planner_child_answer_inside(controller->planner, config->inside,
                                    config->inside_context);
    controller->hooks = checkpoint_hooks_new(
        transport, controller->settings->allow_loopback_hooks, on_hook, controller);
    if (config->hardware)
        controller->hardware_file = json_deep_copy(config->hardware);
    make_watches(controller);
    make_hardware_watch(controller, config);
    if (!controller->lease)
        require_fresh(controller);
    if (use_hardware(controller, controller->hardware_file, err) < 0) {
        controller_free(controller);
        return NULL;
    }
    return controller;
}

static void drop_events(struct controller *controller)
{
    for (size_t i = 0; i < controller->event_count; i++) {
        json_decref(controller->events[i].before);
        json_decref(controller->events[i].after);
    }
    for (size_t i = 0; i < controller->outcome_count; i++) {
        free(controller->outcomes[i].key);
        free(controller->outcomes[i].message);
    }
    free(controller->events);
    free(controller->outcomes);
}

void controller_free(struct controller *controller)
{
    if (!controller)
        return;
    watch_free(controller->hardware_watch);
    for (size_t i = 0; i < controller->watch_count; i++)
        watch_free(controller->watches[i]);
    kueue_watches_free(controller->kueue_watches);
    planner_child_free(controller->planner);
    lease_free(controller->lease);
    kube_free(controller->lease_kube);
    checkpoint_hooks_free(controller->hooks);
    unreadable_jobs_free(controller->unreadable);
    kube_free(controller->kube);
    apply_free(controller->apply);
    drop_events(controller);
    for (size_t i = 0; i < controller->job_count; i++)
        free_job(controller->jobs[i]);
    free(controller->jobs);
    strmap_fini(&controller->jobs_by_key);
    capacity_free(controller->capacity);
    workqueue_free(controller->wishes);
    workqueue_free(controller->urgent);
    workqueue_free(controller->queue);
    store_free(controller->hardware_store);
    store_free(controller->store);
    free(controller->hardware_ns);
    free(controller->hardware_map);
    json_decref(controller->hardware_file);
    json_decref(controller->hardware);
    het_arena_free(controller->hardware_arena);
    free(controller);
}

int64_t controller_server_minor(const struct controller *controller)
{
    return controller->server_minor;
}

bool controller_is_synced(const struct controller *controller)
{
    bool synced =
        controller->is_version_known &&
        (!controller->hardware_watch || watch_is_synced(controller->hardware_watch));
    for (size_t i = 0; i < controller->watch_count; i++)
        synced = synced && watch_is_synced(controller->watches[i]);
    return synced && kueue_watches_is_known(controller->kueue_watches);
}

static void step_queues(struct controller *controller)
{
    kueue_watches_step(controller->kueue_watches, controller->now_ms);
    enum kueue_presence presence = kueue_watches_presence(controller->kueue_watches);
    if (presence != controller->kueue)
        enqueue_queued(controller);
    controller->kueue = presence;
}

/* ---- metrics ---- */

static void measure_watch(void *context, const struct kube_resource *resource,
                          const struct watch *watch)
{
    struct metrics *metrics = context;
    struct watch_statistics counts = watch_statistics(watch);
    struct metrics_labels labels = LABELS(resource->plural);
    metrics_set(metrics, METRIC_WATCH_RESTARTS, (double)counts.watches, labels);
    metrics_set(metrics, METRIC_WATCH_LISTS, (double)counts.lists, labels);
    metrics_set(metrics, METRIC_WATCH_EVENTS, (double)counts.events, labels);
    metrics_set(metrics, METRIC_WATCH_FAILURES, (double)counts.failures, labels);
    metrics_set(metrics, METRIC_WATCH_QUARANTINED, (double)counts.quarantined, labels);
}

/* How far the work is. */
static void measure_progress(const struct controller *controller)
{
    const struct controller_statistics *counts = &controller->statistics;
    const struct {
        enum metric metric;
        double value;
    } values[] = {
        { METRIC_LEADER, controller_lease(controller) == LEASE_HOLDS },
        { METRIC_SYNCED, controller_is_synced(controller) },
        { METRIC_DECISIONS, (double)counts->passes },
        { METRIC_ACTIONS, (double)counts->actions },
        { METRIC_WRITE_FAILURES, (double)counts->failures },
        { METRIC_JOBS_HELD, (double)counts->held },
        { METRIC_REQUESTS_WAITING, (double)kube_in_flight(controller->kube) },
        { METRIC_PLANNERS, (double)planner_child_running(controller->planner) },
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        metrics_set(controller->metrics, values[i].metric, values[i].value, NO_LABELS);
    metrics_set(controller->metrics, METRIC_QUEUE_DEPTH,
                (double)workqueue_length(controller->queue), LABELS("jobs"));
    metrics_set(controller->metrics, METRIC_QUEUE_DEPTH,
                (double)workqueue_length(controller->urgent), LABELS("urgent-questions"));
    metrics_set(controller->metrics, METRIC_QUEUE_DEPTH,
                (double)workqueue_length(controller->wishes), LABELS("wishes"));
}

/* What is counted elsewhere, or is there. */
static void measure(struct controller *controller)
{
    if (!controller->metrics || controller->now_ms < controller->measure_due_ms)
        return;
    controller->measure_due_ms = controller->now_ms + CONTROLLER_MEASURE_MS;
    measure_progress(controller);
    for (size_t i = 0; i < controller->watch_count; i++)
        measure_watch(controller->metrics, watched[i].resource, controller->watches[i]);
    kueue_watches_each_watch(controller->kueue_watches, measure_watch,
                             controller->metrics);
    gauges_take(controller->metrics, controller->store, controller->capacity);
}

void controller_step(struct controller *controller, int64_t now_ms, int64_t wall_ms)
{
    controller->now_ms = now_ms;
    controller->wall_ms = wall_ms;
    log_set_time(wall_ms);
    step_lease(controller);
    kube_step(controller->kube, now_ms);
    ask_version(controller);
    for (size_t i = 0; i < controller->watch_count; i++)
        watch_step(controller->watches[i], now_ms);
    step_queues(controller);
    if (controller->hardware_watch)
        watch_step(controller->hardware_watch, now_ms);
    take_events(controller);
    take_outcomes(controller);
    planner_child_step(controller->planner, now_ms);
    if (may_decide(controller)) {
        unreadable_jobs_tell(controller->unreadable, controller->now_ms,
                             controller->wall_ms);
        cut_searches(controller);
        call_waiting(controller);
        call_held_up(controller);
    }
    decide_due(controller);
    if (may_decide(controller))
        checkpoint_hooks_step(controller->hooks, now_ms);
    measure(controller);
}

int64_t controller_next_ms(const struct controller *controller)
{
    if (controller->event_count || controller->outcome_count)
        return controller->now_ms;
    int64_t next_ms =
        least(kube_next_ms(controller->kube), planner_child_next_ms(controller->planner));
    for (size_t i = 0; i < controller->watch_count; i++)
        next_ms = least(next_ms, watch_next_ms(controller->watches[i]));
    next_ms = least(next_ms, kueue_watches_next_ms(controller->kueue_watches));
    if (controller->hardware_watch)
        next_ms = least(next_ms, watch_next_ms(controller->hardware_watch));
    if (controller->lease) {
        next_ms = least(next_ms, kube_next_ms(controller->lease_kube));
        next_ms = least(next_ms, lease_next_ms(controller->lease));
    }
    if (wants_version(controller))
        next_ms = least(next_ms, controller->version_due_ms);
    if (may_decide(controller)) {
        next_ms = least(next_ms, unreadable_jobs_next_ms(controller->unreadable));
        if (find_waiting(controller))
            return controller->now_ms;
        const struct job *committing = find_committing(controller, NULL);
        if (committing && workqueue_length(controller->urgent))
            next_ms = least(next_ms, committing->commits_until_ms);
        int64_t cut_ms;
        find_cut(controller, &cut_ms);
        next_ms = least(next_ms, cut_ms);
        next_ms = least(next_ms, workqueue_next_ms(controller->queue));
        next_ms = least(next_ms, checkpoint_hooks_next_ms(controller->hooks));
    }
    return next_ms;
}

void controller_poll(struct controller *controller, int64_t timeout_ms)
{
    struct pollfd fds[3 * PLANNER_CHILD_MAX_CHILDREN];
    size_t count =
        planner_child_poll_list(controller->planner, fds, sizeof fds / sizeof *fds);
    if (timeout_ms < 0)
        timeout_ms = 0;
    if (transport_poll(controller->transport, fds, count,
                       least(timeout_ms, CONTROLLER_MAX_POLL_MS)) < 0)
        log_event(LOG_ERROR, "controller", "cannot wait for the network",
                  LOG_STR("why", "file descriptors or memory are short"));
}

void controller_poll_planners(struct controller *controller, int64_t timeout_ms)
{
    struct pollfd fds[3 * PLANNER_CHILD_MAX_CHILDREN];
    size_t count =
        planner_child_poll_list(controller->planner, fds, sizeof fds / sizeof *fds);
    poll(fds, (nfds_t)count, (int)least(timeout_ms, CONTROLLER_MAX_POLL_MS));
    planner_child_step(controller->planner, controller->now_ms);
}

bool controller_is_busy(const struct controller *controller)
{
    return kube_in_flight(controller->kube) ||
           planner_child_running(controller->planner) ||
           checkpoint_hooks_count(controller->hooks);
}

size_t controller_planners(const struct controller *controller)
{
    return planner_child_running(controller->planner);
}

struct controller_statistics controller_statistics(const struct controller *controller)
{
    return controller->statistics;
}

char *controller_overview(const struct controller *controller,
                          struct dashboard_data *overview, size_t *ret_length)
{
    struct snapshot_sources sources = sources_of(controller);
    return dashboard_data_build(overview, &sources, ret_length);
}

const char *controller_find_overcommit(const struct controller *controller)
{
    return capacity_find_overcommit(controller->capacity);
}
