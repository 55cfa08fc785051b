#include "controller/kubectl/change_commands.h"

#include "controller/decision/snapshot.h"
#include "controller/job/job_spec.h"
#include "controller/kubectl/text_table.h"

#include <string.h>

#define HASH_PREFIX "sha256:"

/* ---- approve ---- */

static int fail_without_candidate(const json_t *job, struct het_error *err)
{
    const char *ns = kube_namespace(job), *name = kube_name(job);
    const json_t *outdated = object_find_condition(job, "PlanOutdated");
    const char *mode = object_text(job, "spec.replanPolicy.mode");
    if (strcmp(mode, "Manual") != 0)
        return het_fail(err, HET_NO_PLAN,
                        "no plan of job %s/%s waits for approval: "
                        "spec.replanPolicy.mode is %s, not Manual",
                        ns, name, *mode ? mode : "Automatic");
    return het_fail(err, HET_NO_PLAN, "no plan of job %s/%s waits for approval%s%s", ns,
                    name, outdated ? ": " : "", object_text(outdated, "message"));
}

/* Whether `given`, whole or the first digits of it, is `hash`. */
static int check_hash(const char *given, const char *hash, struct het_error *err)
{
    const char *digits = strncmp(given, HASH_PREFIX, strlen(HASH_PREFIX))
                             ? given
                             : given + strlen(HASH_PREFIX);
    size_t length = strlen(digits);
    if (length < CHANGE_LEAST_DIGITS || strspn(digits, "0123456789abcdef") != length)
        return het_fail(err, HET_BAD_INPUT,
                        "%.100s: must be a plan's hash, or its first %d digits or more",
                        given, CHANGE_LEAST_DIGITS);
    if (strncmp(hash + strlen(HASH_PREFIX), digits, length) != 0)
        return het_fail(err, HET_CONFLICT,
                        "the plan that waits is another one by now: %s; look at it "
                        "(status, explain --candidate) and approve that",
                        hash);
    return 0;
}

/* What is about to be approved. */
static int check_candidate(const struct session *session, const json_t *job,
                           const char **ret_hash, struct het_error *err)
{
    const char *hash = object_text(job, "status.candidate.hash");
    if (object_is_true(job, "spec.planOnly"))
        return het_fail(err, HET_NO_PLAN,
                        "job %s/%s is only planned: set spec.planOnly to false to let it "
                        "run",
                        kube_namespace(job), kube_name(job));
    if (strncmp(hash, HASH_PREFIX, strlen(HASH_PREFIX)) != 0 ||
        strcmp(object_text(job, "spec.replanPolicy.mode"), "Manual") != 0)
        return fail_without_candidate(job, err);
    if (session->options->word_count > 1 &&
        check_hash(session->options->words[1], hash, err) < 0)
        return -1;
    *ret_hash = hash;
    return 0;
}

static void print_approval(const struct session *session, const json_t *job,
                           const char *hash)
{
    FILE *out = session->host->out;
    const json_t *candidate = object_at(job, "status.candidate");
    double s = (double)object_integer(candidate, "predicted.iterationMilliseconds", 0);
    fprintf(out, "heterotrainingjob.heterotrain.io/%s approved: %s\n", kube_name(job),
            hash);
    fprintf(out, "  %s, %.6g s a step\n",
            text_table_printable(session->arena, object_text(candidate, "summary")),
            s / 1000);
}

int htj_approve(struct session *session, struct het_error *err)
{
    const char *name, *hash = "";
    if (session_get_name(session, 2, &name, err) < 0)
        return -1;
    for (int tries = 0; tries < CHANGE_TRIES; tries++) {
        json_auto_t *job = NULL;
        if (session_get_job(session, name, &job, err) < 0 ||
            check_candidate(session, job, &hash, err) < 0)
            return -1;
        json_auto_t *patch = json_pack("{s:{s:s}, s:{s:{s:s}}}", "metadata",
                                       "resourceVersion", kube_resource_version(job),
                                       "spec", "replanPolicy", "approvedPlanHash", hash);
        enum kube_outcome outcome = blocking_client_patch(
            session->client, &kube_job, session->ns, kube_name(job), patch, err);
        if (outcome == KUBE_OK)
            print_approval(session, job, hash);
        if (outcome != KUBE_CONFLICT)
            return outcome == KUBE_OK ? 0 : -1;
    }
    return -1; /* the last conflict */
}

/* ---- suspend, resume ---- */

static int set_suspend(struct session *session, const char *name, bool suspend,
                       struct het_error *err)
{
    json_auto_t *job = NULL;
    const char *word = suspend ? "suspended" : "resumed";
    if (session_get_job(session, name, &job, err) < 0)
        return -1;
    bool is_so = json_is_true(object_at(job, "spec.suspend")) == suspend;
    json_auto_t *patch = json_pack("{s:{s:b}}", "spec", "suspend", suspend);
    if (!is_so && blocking_client_patch(session->client, &kube_job, session->ns,
                                        kube_name(job), patch, err) != KUBE_OK)
        return -1;
    fprintf(session->host->out, "heterotrainingjob.heterotrain.io/%s %s%s\n",
            kube_name(job), word, is_so ? " (unchanged)" : "");
    if (!suspend && snapshot_job_is_finished(job))
        session_note(session, "job %s is over: it does not run again", kube_name(job));
    return 0;
}

static int set_all(struct session *session, bool suspend, struct het_error *err)
{
    const char *name;
    struct het_error first = { 0 };
    if (session_get_name(session, HTJ_MAX_WORDS, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < session->options->word_count; i++) {
        if (set_suspend(session, session->options->words[i], suspend, err) == 0)
            continue;
        if (first.code)
            session_note(session, "%s", err->message);
        else
            first = *err;
    }
    if (!first.code)
        return 0;
    *err = first;
    return -1;
}

int htj_suspend(struct session *session, struct het_error *err)
{
    return set_all(session, true, err);
}

int htj_resume(struct session *session, struct het_error *err)
{
    return set_all(session, false, err);
}
