/* admission_verdict.h - decides whether a user may create or change a HeteroTrainingJob:
 * takes an AdmissionReview (admission.k8s.io/v1) and returns a verdict. Pure.
 *
 * The reconciler refuses the same jobs through the condition Accepted, as the webhook may
 * be off; the webhook tells authors at once. Its main purpose is another: users who may
 * not create pods in a namespace must not get them through a job. The API server decides
 * that (SubjectAccessReview); the verdict holds the question.
 *
 *   what changes                                  checked  user's right asked
 *   a new job                                     yes      yes
 *   spec of an existing job                       yes      yes
 *   only what lets a job start: spec.suspend to
 *     false, spec.planOnly,
 *     spec.replanPolicy.approvedPlanHash          no       yes
 *   spec.suspend to true; other metadata; a job
 *     that is being deleted, or another
 *     controller's (spec.managedBy)               no       no
 *
 * A pod template with a field that only a newer API server may know is allowed, with a
 * warning.
 *
 * So a job refused by settings made after its creation can still be stopped, labelled,
 * and released by its finalizers. */
#ifndef CONTROLLER_SERVE_ADMISSION_VERDICT_H
#define CONTROLLER_SERVE_ADMISSION_VERDICT_H

#include "controller/decision/children.h"

#define ADMISSION_VERDICT_API_VERSION "admission.k8s.io/v1"

enum admission_decision {
    ADMISSION_VERDICT_ALLOW,
    ADMISSION_VERDICT_DENY,
    ADMISSION_VERDICT_ASK, /* allowed if the API server says that the user may create
                              pods */
};

struct admission_verdict {
    enum admission_decision decision;
    const char *uid; /* of the request */
    const char
        *reason; /* ADMISSION_VERDICT_DENY: as that of condition Accepted (docs/api.md) */
    const char *message; /* ADMISSION_VERDICT_DENY: the field, and what to change */
    json_t *question; /* ADMISSION_VERDICT_ASK: a SubjectAccessReview, a new reference */
    const char *warning; /* shown to the author if the job is allowed; NULL: none */
};

/* Everything except `ret->question` is in `arena`. Errors: HET_BAD_INPUT for a document
 * that is not an answerable AdmissionReview. */
int admission_verdict_review(struct het_arena *arena, const struct tenancy *tenancy,
                             const json_t *review, struct admission_verdict *ret,
                             struct het_error *err);

/* Turns `verdict` into an allowed or denied one by the API server's answer, a
 * SubjectAccessReview with a status. */
void admission_verdict_hear(struct het_arena *arena, const json_t *answer,
                            struct admission_verdict *verdict);
/* Turns `verdict` into a denied one because its question got no answer: `why`. */
void admission_verdict_give_up(struct het_arena *arena, const char *why,
                               struct admission_verdict *verdict);

/* The AdmissionReview to send back; `verdict` must not be one that asks. Returns a new
 * reference. */
json_t *admission_verdict_answer(const struct admission_verdict *verdict);

#endif
