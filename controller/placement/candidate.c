#include "controller/placement/candidate.h"

#include "controller/base/object.h"
#include "controller/cluster/plan_object.h"
#include "controller/placement/fit.h"
#include "controller/placement/resharding.h"

#include <string.h>

void candidate_show(struct pass *pass, const struct het_plan *plan)
{
    pass->facts.candidate = plan;
    pass->facts.candidate_is_dropped = false;
}

void candidate_drop(struct pass *pass)
{
    pass->facts.candidate = NULL;
    pass->facts.candidate_is_dropped = true;
}

void candidate_keep(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *held = snapshot->candidate;
    const char *hash = status_candidate(pass->arena, snapshot, &pass->facts);
    if (*hash && held && !strcmp(kube_annotation(held, ANNOTATION_PLAN_HASH), hash))
        return;
    if (held)
        pass_delete(pass, PHASE_DELETE, &kube_config_map, kube_name(held), kube_uid(held),
                    -1)
            ->may_fail = true;
    if (!pass->facts.candidate || !*hash) {
        candidate_drop(pass); /* somebody deleted it: it is looked for again */
        return;
    }
    json_t *wanted = children_candidate(snapshot, pass->facts.candidate, hash);
    if (wanted)
        pass_create(pass, PHASE_PLAN_OBJECT, &kube_config_map, wanted)->may_fail = true;
}

const struct het_plan *candidate_find_approved(struct pass *pass)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    if (!*spec->approved_hash || spec->is_plan_only)
        return NULL;
    const json_t *held = pass->snapshot->candidate;
    const struct het_plan *plan =
        !strcmp(kube_annotation(held, ANNOTATION_PLAN_HASH), spec->approved_hash)
            ? plan_object_read(pass->arena, held)
            : NULL;
    return plan && fit_holds(pass, plan) && resharding_allows(pass, plan) ? plan : NULL;
}

const char *candidate_stale_approval(struct pass *pass, const char *hash)
{
    const char *approved = pass->snapshot->spec.approved_hash;
    if (!*approved || (hash && !strcmp(approved, hash)) ||
        (pass->current && !strcmp(approved, pass->current->hash)))
        return "";
    return pass_text(pass,
                     "; the approval of %.80s is for another plan, or for one that "
                     "fits no more: it is passed over",
                     approved);
}

bool candidate_may_follow(struct pass *pass, const struct het_plan *plan, const char *why)
{
    const struct job_spec *spec = &pass->snapshot->spec;
    if (!spec->is_plan_only && (spec->replan_mode != REPLAN_MANUAL || !pass->current))
        return true;
    const char *hash = het_plan_json_hash(pass->arena, plan);
    if (!spec->is_plan_only && !strcmp(spec->approved_hash, hash))
        return true;
    candidate_show(pass, plan);
    const char *stale = candidate_stale_approval(pass, hash);
    pass->approval_reason = spec->is_plan_only ? "PlanOnly"
                            : *stale           ? "ApprovalStale"
                                               : "ApprovalNeeded";
    pass->approval_message =
        spec->is_plan_only
            ? pass_text(pass, "%s: %s; spec.planOnly is true: nothing is changed", why,
                        het_render_summary(pass->arena, plan))
            : pass_text(pass, "%s: %s; approve it by %s: %s%s", why,
                        het_render_summary(pass->arena, plan),
                        "spec.replanPolicy.approvedPlanHash", hash, stale);
    pass_set(pass, "PlanOutdated", "True", pass->approval_reason, pass->approval_message);
    return false;
}
