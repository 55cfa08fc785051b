#include "controller/simulate/batch_jobs.h"

#include "controller/base/timestamp.h"
#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include <assert.h>
#include <string.h>

#define FIRST_BACKOFF_MS 10000
#define NAME_LETTERS     5

static int64_t time_at(const json_t *job, const char *path)
{
    int64_t ms = INT64_MIN;
    timestamp_parse(object_text(job, path), &ms);
    return ms;
}

static json_t *time_text(int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(ms, text);
    return json_string(text);
}

struct count {
    int64_t active, succeeded, failed;
    int64_t failed_ms; /* the last one */
};

static struct count count_pods(const json_t *pods)
{
    struct count count = { .failed_ms = INT64_MIN };
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        const char *phase = object_text(pod, "status.phase");
        bool has_failed = !strcmp(phase, "Failed");
        count.succeeded += !strcmp(phase, "Succeeded");
        count.failed += has_failed;
        count.active += !has_failed && strcmp(phase, "Succeeded") != 0 &&
                        !object_at(pod, "metadata.deletionTimestamp");
        const json_t *ready = object_find_condition(pod, "Ready");
        int64_t ms = INT64_MIN;
        if (has_failed &&
            !timestamp_parse(object_text(ready, "lastTransitionTime"), &ms) &&
            ms > count.failed_ms)
            count.failed_ms = ms;
    }
    return count;
}

static void set_number(json_t *status, const char *key, int64_t number)
{
    if (number)
        json_object_set_new(status, key, json_integer(number));
}

/* Ends the Job: `reason` NULL says well. */
static void end(struct batch_jobs_verdict *verdict, const char *reason,
                const char *message, int64_t now_ms)
{
    json_auto_t *holder = json_pack("{s:O}", "status", verdict->status);
    condition_set(holder, reason ? "Failed" : "Complete", "True", reason, message,
                  now_ms);
    if (!reason)
        json_object_set_new(verdict->status, "completionTime", time_text(now_ms));
    verdict->ends_pods = true;
}

static int64_t backoff_ms(int64_t failures)
{
    int64_t ms = FIRST_BACKOFF_MS;
    for (int64_t i = 1; i < failures; i++)
        ms *= 2;
    return ms;
}

/* A Job that is not finished. */
static void go_on(const json_t *job, const struct count *count, int64_t now_ms,
                  struct batch_jobs_verdict *verdict)
{
    int64_t started_ms = time_at(job, "status.startTime");
    int64_t deadline_s = object_integer(job, "spec.activeDeadlineSeconds", 0);
    if (started_ms == INT64_MIN)
        started_ms = now_ms;
    int64_t deadline_ms = deadline_s ? started_ms + deadline_s * 1000 : INT64_MAX;
    int64_t next_ms = count->failed ? count->failed_ms + backoff_ms(count->failed)
                                    : now_ms;
    json_object_set_new(verdict->status, "startTime", time_text(started_ms));
    if (count->succeeded)
        end(verdict, NULL, NULL, now_ms);
    else if (count->failed > object_integer(job, "spec.backoffLimit", 6))
        end(verdict, "BackoffLimitExceeded",
            "Job has reached the specified backoff limit", now_ms);
    else if (now_ms >= deadline_ms)
        end(verdict, "DeadlineExceeded", "Job was active longer than specified deadline",
            now_ms);
    else if (!count->active && now_ms >= next_ms)
        verdict->wants_pod = true;
    verdict->due_ms = deadline_ms;
    if (!count->active && next_ms > now_ms && next_ms < deadline_ms)
        verdict->due_ms = next_ms;
}

static bool is_finished(const json_t *job)
{
    return object_condition_is_true(job, "Complete") ||
           object_condition_is_true(job, "Failed");
}

struct batch_jobs_verdict batch_jobs_look(const json_t *job, const json_t *pods,
                                          int64_t now_ms)
{
    json_t *before = object_at(job, "status");
    struct count count = count_pods(pods);
    struct batch_jobs_verdict verdict = { .due_ms = INT64_MAX };
    verdict.status = before ? json_deep_copy(before) : json_object();
    json_object_del(verdict.status, "active");
    set_number(verdict.status, "active", count.active);
    set_number(verdict.status, "succeeded", count.succeeded);
    set_number(verdict.status, "failed", count.failed);
    if (!is_finished(job) && !object_is_true(job, "spec.suspend"))
        go_on(job, &count, now_ms, &verdict);
    return verdict;
}

json_t *batch_jobs_make_pod(const json_t *job, uint64_t number)
{
    char letters[NAME_LETTERS + 1] = "";
    for (size_t i = 0; i < NAME_LETTERS; i++, number /= 26)
        letters[NAME_LETTERS - 1 - i] = (char)('a' + number % 26);
    const char *name = object_text(job, "metadata.name");
    const char *uid = object_text(job, "metadata.uid");
    json_t *template = object_at(job, "spec.template");
    json_t *metadata = json_object();
    json_t *given = json_object_get(template, "metadata");
    if (given)
        json_object_update(metadata, given);
    json_t *labels = json_object();
    if (json_object_get(given, "labels"))
        json_object_update(labels, json_object_get(given, "labels"));
    json_object_set_new(labels, "job-name", json_string(name));
    json_object_set_new(labels, "controller-uid", json_string(uid));
    json_object_set_new(metadata, "labels", labels);
    json_object_set_new(metadata, "name", json_sprintf("%s-%s", name, letters));
    json_object_set(metadata, "namespace", object_at(job, "metadata.namespace"));
    json_object_set_new(metadata, "ownerReferences",
                        json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion",
                                  "batch/v1", "kind", "Job", "name", name, "uid", uid,
                                  "controller", 1, "blockOwnerDeletion", 1));
    json_t *pod = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod",
                            "metadata", metadata, "spec",
                            json_deep_copy(json_object_get(template, "spec")));
    assert(pod);
    return pod;
}
