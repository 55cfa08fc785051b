#include "controller/operator/unreadable_jobs.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/base/strmap.h"
#include "controller/base/timestamp.h"
#include "controller/decision/decision.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct unreadable {
    struct unreadable_jobs *jobs;
    char *ns, *name, *uid, *note;
    char since[TIMESTAMP_SIZE]; /* of the condition, if it was False before; "" */
    uint64_t request;           /* that tells it on its status; 0: none is under way */
    bool is_told;
};

struct unreadable_jobs {
    struct kube *kube;
    struct strmap by_key; /* "namespace/name" */
    int64_t tell_ms, now_ms;
};

struct unreadable_jobs *unreadable_jobs_new(struct kube *kube)
{
    struct unreadable_jobs *jobs = xcalloc(1, sizeof *jobs);
    jobs->kube = kube;
    jobs->tell_ms = INT64_MAX;
    return jobs;
}

static void free_job(struct unreadable *job)
{
    if (!job)
        return;
    kube_cancel(job->jobs->kube, job->request);
    free(job->ns);
    free(job->name);
    free(job->uid);
    free(job->note);
    free(job);
}

void unreadable_jobs_free(struct unreadable_jobs *jobs)
{
    if (!jobs)
        return;
    for (size_t i = 0; i < jobs->by_key.capacity; i++)
        free_job(jobs->by_key.slots[i].value);
    strmap_fini(&jobs->by_key);
    free(jobs);
}

void unreadable_jobs_forget(struct unreadable_jobs *jobs, const char *ns,
                            const char *name)
{
    auto_free char *key = xasprintf("%s/%s", ns, name);
    free_job(strmap_remove(&jobs->by_key, key));
}

/* The condition Accepted of a job's text; NULL if there is none. A new reference. */
static json_t *find_accepted(struct json_span job)
{
    struct json_span status, conditions, element;
    if (!json_find_member(job.text, job.length, "status", &status) ||
        !json_find_member(status.text, status.length, "conditions", &conditions))
        return NULL;
    struct json_walk walk = json_walk_array(conditions.text, conditions.length);
    while (json_next_element(&walk, &element)) {
        json_auto_t *condition = kube_decode(element.text, element.length, NULL);
        if (!strcmp(object_text(condition, "type"), "Accepted"))
            return TAKE(condition);
    }
    return NULL;
}

/* What the job says of itself by now, to which another leader may have seen. */
static void read_condition(struct unreadable *job, struct json_span text)
{
    json_auto_t *accepted = find_accepted(text);
    job->since[0] = '\0';
    if (strcmp(object_text(accepted, "status"), "False") != 0)
        return;
    snprintf(job->since, sizeof job->since, "%s",
             object_text(accepted, "lastTransitionTime"));
    if (!strcmp(object_text(accepted, "message"), job->note))
        job->is_told = true;
}

void unreadable_jobs_note(struct unreadable_jobs *jobs,
                          const struct kube_identity *identity, struct json_span text,
                          const char *why)
{
    auto_free char *key = xasprintf("%s/%s", identity->ns, identity->name);
    struct unreadable *job = strmap_find(&jobs->by_key, key);
    bool is_same = job && !strcmp(job->uid, identity->uid);
    if (!why) {
        if (is_same)
            unreadable_jobs_forget(jobs, identity->ns, identity->name);
        return;
    }
    auto_free char *note = xasprintf(
        "the job cannot be read and is left as it is: %.700s; make it smaller", why);
    if (!is_same || strcmp(job->note, note) != 0) {
        unreadable_jobs_forget(jobs, identity->ns, identity->name);
        if (!*identity->ns || !*identity->name || !*identity->uid ||
            jobs->by_key.count >= UNREADABLE_JOBS)
            return;
        job = xcalloc(1, sizeof *job);
        *job = (struct unreadable){ .jobs = jobs,
                                    .ns = xstrdup(identity->ns),
                                    .name = xstrdup(identity->name),
                                    .uid = xstrdup(identity->uid),
                                    .note = TAKE(note) };
        strmap_set(&jobs->by_key, key, job);
        jobs->tell_ms = jobs->now_ms;
    }
    read_condition(job, text);
}

void unreadable_jobs_sweep(struct unreadable_jobs *jobs, const struct watch *watch)
{
    size_t count = 0;
    struct unreadable *gone[UNREADABLE_JOBS];
    for (size_t i = 0; i < jobs->by_key.capacity; i++) {
        struct unreadable *job = jobs->by_key.slots[i].value;
        if (job && !watch_has_listed(watch, job->ns, job->name))
            gone[count++] = job;
    }
    while (count--)
        unreadable_jobs_forget(jobs, gone[count]->ns, gone[count]->name);
}

/* ---- telling ---- */

/* What became of telling is of no consequence. */
static void on_told(void *context, const struct kube_result *result)
{
    (void)context;
    (void)result;
}

static void tell_by_event(const struct unreadable *job, int64_t wall_ms)
{
    uint64_t digest = digest_text(digest_text(0, job->uid), job->note);
    char time[TIMESTAMP_SIZE];
    timestamp_format_micro(wall_ms, time);
    auto_free char *name = xasprintf("%s.%016" PRIx64, job->name, digest);
    json_auto_t *event = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
        "s:{s:s, s:s, s:s, s:s, s:s}}",
        "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "name", name,
        "namespace", job->ns, "eventTime", time, "reportingController",
        "heterotrain.io/controller", "reportingInstance", "heterotrain-controller",
        "action", "Read", "reason", "JobUnreadable", "type", "Warning", "note", job->note,
        "regarding", "apiVersion", kube_job.group_version, "kind", kube_job.kind,
        "namespace", job->ns, "name", job->name, "uid", job->uid);
    if (event)
        kube_create(job->jobs->kube, &kube_event, job->ns, event, on_told, NULL);
}

/* The reply to a write that was done cannot be read either: the job is in it. */
static void on_told_by_status(void *context, const struct kube_result *result)
{
    struct unreadable *job = context;
    struct unreadable_jobs *jobs = job->jobs;
    job->request = 0;
    if (result->status / 100 == 2 || result->outcome == KUBE_INVALID ||
        result->outcome == KUBE_DENIED)
        return;
    if (result->outcome == KUBE_NOT_FOUND || result->outcome == KUBE_CONFLICT) {
        unreadable_jobs_forget(jobs, job->ns, job->name);
        return;
    }
    job->is_told = false;
    jobs->tell_ms = jobs->now_ms + UNREADABLE_RETELL_MS;
}

/* Of the status only this condition, as a manager of its own: what else it says stays.
 * Once the job can be read, the status that follows takes the condition over. */
static void tell_by_status(struct unreadable *job, int64_t wall_ms)
{
    char time[TIMESTAMP_SIZE];
    timestamp_format(wall_ms, time);
    json_auto_t *object = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:[{s:s, s:s, s:s, s:s, s:s}]}}", "apiVersion",
        kube_job.group_version, "kind", kube_job.kind, "metadata", "name", job->name,
        "namespace", job->ns, "uid", job->uid, "status", "conditions", "type", "Accepted",
        "status", "False", "reason", "Unreadable", "message", job->note,
        "lastTransitionTime", *job->since ? job->since : time);
    if (object)
        job->request = kube_apply(job->jobs->kube, &kube_job, job->ns, job->name,
                                  "status", UNREADABLE_FIELD_MANAGER, object,
                                  on_told_by_status, job);
}

void unreadable_jobs_tell(struct unreadable_jobs *jobs, int64_t now_ms, int64_t wall_ms)
{
    jobs->now_ms = now_ms;
    if (jobs->tell_ms > now_ms)
        return;
    jobs->tell_ms = INT64_MAX;
    for (size_t i = 0; i < jobs->by_key.capacity; i++) {
        struct unreadable *job = jobs->by_key.slots[i].value;
        if (!job || job->is_told)
            continue;
        job->is_told = true;
        tell_by_event(job, wall_ms);
        tell_by_status(job, wall_ms);
    }
}

int64_t unreadable_jobs_next_ms(const struct unreadable_jobs *jobs)
{
    return jobs->tell_ms;
}
