/* admission_verdict.h - what the API server is told about a HeteroTrainingJob that somebody wants
 * to create or change: an AdmissionReview (admission.k8s.io/v1) in, a verdict out. Pure.
 *
 * The reconciler refuses the same jobs by their condition Accepted, as the webhook may be
 * off; here their authors hear of it at once, and the reason why there is one at all:
 * whoever may not create pods in a namespace must not get them by a job. That is for the
 * API server to say (SubjectAccessReview); the verdict has the question.
 *
 *   what changes                                  checked  user is asked for
 *   a new job                                     yes      yes
 *   spec, of a job that is there                  yes      yes
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
 * So a job that is refused by what was settled after its creation can still be stopped,
 * labelled, and let go by its finalizers. */
#ifndef CONTROLLER_SERVE_ADMISSION_VERDICT_H
#define CONTROLLER_SERVE_ADMISSION_VERDICT_H

#include "controller/decision/children.h"

#define ADMISSION_VERDICT_API_VERSION "admission.k8s.io/v1"

enum admission_decision {
    ADMISSION_VERDICT_ALLOW,
    ADMISSION_VERDICT_DENY,
    ADMISSION_VERDICT_ASK, /* allowed, if the API server says that the user may create pods */
};

struct admission_verdict {
    enum admission_decision decision;
    const char *uid; /* of the request */
    const char
        *reason; /* ADMISSION_VERDICT_DENY: as that of condition Accepted (docs/api.md) */
    const char *message; /* ADMISSION_VERDICT_DENY: the field, and what to change */
    json_t *question; /* ADMISSION_VERDICT_ASK: a SubjectAccessReview, a new reference */
    const char *warning; /* that the author is shown, if the job is allowed; NULL: none */
};

/* Everything but `ret->question` lives in `arena`. Errors: HET_BAD_INPUT for what is no
 * AdmissionReview that could be answered. */
int admission_verdict_review(struct het_arena *arena, const struct tenancy *tenancy,
                             const json_t *review, struct admission_verdict *ret,
                             struct het_error *err);

/* Makes an allowed or denied verdict of `verdict` by what the API server answered to its
 * question: a SubjectAccessReview with a status. */
void admission_verdict_hear(struct het_arena *arena, const json_t *answer,
                            struct admission_verdict *verdict);
/* Makes a denied verdict of `verdict`, as its question has no answer: `why`. */
void admission_verdict_give_up(struct het_arena *arena, const char *why,
                               struct admission_verdict *verdict);

/* The AdmissionReview to send back. A verdict that asks is none. A new reference. */
json_t *admission_verdict_answer(const struct admission_verdict *verdict);

#endif
