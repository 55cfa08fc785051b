#include "controller/placement/planning.h"

#include "controller/base/object.h"
#include "controller/placement/candidate.h"
#include "controller/placement/fit.h"
#include "controller/placement/generation.h"
#include "controller/placement/preemption.h"
#include "controller/placement/resharding.h"

#include <inttypes.h>
#include <string.h>

/* An answer whose nodes have changed since is used only if its plan fits and it is no
 * older than this. */
#define STALE_ANSWER_MS        ((int64_t)60000)
/* A planner that failed is asked again after 1 s * 2^failures, at most this. */
#define PLANNER_BACKOFF_MAX_MS ((int64_t)300000)
/* Refused writes are retried after 500 ms * 2^refusals, at most this. */
#define REFUSED_BACKOFF_MAX_MS ((int64_t)256000)

int64_t planning_quiet_ms(const struct job_spec *spec)
{
    return spec->debounce_ms < LOSS_DEBOUNCE_MS ? spec->debounce_ms : LOSS_DEBOUNCE_MS;
}

/* ---- the planner ---- */

bool planning_is_answered(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    return snapshot->memory.answer.kind != ANSWER_NONE &&
           snapshot->memory.answer.digest == snapshot->input_digest;
}

static int64_t planner_retry_ms(const struct job_memory *memory)
{
    return memory->planner_failed_ms +
           pass_doubled_ms(1000, memory->planner_failures, PLANNER_BACKOFF_MAX_MS);
}

/* Message: why no GPU can be used, with the number of nodes for each reason. */
static const char *no_gpus_message(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!snapshot->node_count)
        return "no node of the cluster has a GPU that we know of (label "
               "nvidia.com/gpu.product or heterotrain.io/gpu-type)";
    const char *list = "";
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const struct capacity_node *node = &snapshot->nodes[i];
        if (i == 8) {
            list =
                pass_text(pass, "%s, and %zu more nodes", list, snapshot->node_count - i);
            break;
        }
        const char *why = node->unusable          ? node->unusable
                          : snapshot->quota.queue ? "no GPU free within the quota"
                                                  : "no GPU free";
        list = pass_text(pass, "%s%s%s: %s", list, *list ? ", " : "", node->name, why);
    }
    return pass_text(pass, "no GPU can be used now (%s)", list);
}

bool planning_ask(struct pass *pass, bool is_urgent)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &snapshot->memory;
    if (memory->is_planning) {
        pass_deafen(pass, INT64_MAX); /* until there is an answer */
        return false;
    }
    if (memory->answer.kind == ANSWER_FAILED && planning_is_answered(pass) &&
        !pass_has_come(pass, planner_retry_ms(memory)))
        return false;
    if (!children_can_ask(snapshot))
        return true;
    pass_deafen(pass, INT64_MAX);
    if (!pass_may_ask(pass, is_urgent))
        return false;
    struct action *action =
        pass_ask_planner(pass, children_question(snapshot), snapshot->input_digest);
    action->parts = snapshot->input_parts;
    action->is_urgent = is_urgent;
    pass->decision->memory.input_unsettled_ms = 0;
    return false;
}

/* Reads a plan of an answer and what its prediction says about the move. False if the
 * plan does not fit or cannot load the job's checkpoint. */
static bool read_offer(struct pass *pass, const json_t *json, struct planning_offer *ret)
{
    const json_t *migration = object_at(json, "predicted.migration");
    struct planning_offer offer = {
        .migration_s = json_number_value(object_at(migration, "seconds")),
        .write_s = json_number_value(object_at(migration, "writeSeconds")),
    };
    if (het_plan_json_read(pass->arena, json, &offer.plan, NULL) < 0 ||
        !fit_holds(pass, offer.plan))
        return false;
    pass->is_unloadable = !resharding_allows(pass, offer.plan);
    if (!pass->is_unloadable)
        *ret = offer;
    return !pass->is_unloadable;
}

/* Whether the last answer is for the present input, or nearly so. */
static bool is_answer_current(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct planner_answer *answer = &snapshot->memory.answer;
    if (answer->kind != ANSWER_PLAN || answer->spec_digest != snapshot->spec_digest)
        return false;
    return planning_is_answered(pass) ||
           (!snapshot->memory.is_planning &&
            snapshot->now_ms - answer->asked_ms <= STALE_ANSWER_MS &&
            answer->digest != snapshot->memory.considered_digest &&
            answer->asked_ms >= snapshot->memory.lost_since_ms);
}

size_t planning_offers(struct pass *pass, struct planning_offer ret[2])
{
    const char *text = pass->snapshot->memory.answer.text;
    json_t *json = NULL;
    size_t count = 0;
    pass->is_unloadable = false;
    if (!is_answer_current(pass) ||
        het_json_decode(text, strlen(text), "plan", &json, NULL) < 0)
        return 0;
    const json_t *stable = object_at(json, "predicted.stable");
    if (stable && read_offer(pass, stable, &ret[count]))
        count++;
    if (read_offer(pass, json, &ret[count]))
        count++;
    json_decref(json);
    return count;
}

/* ---- waiting for a plan ---- */

static void set_no_plan(struct pass *pass)
{
    pass_set(pass, "Placed", "False", "NoPlan", "there is no plan that could be placed");
    pass_set(pass, "Running", "False", "NoPlan", "there is no plan that could run");
}

/* Only a job that has reported the condition reports that it is over. */
void planning_tell_unknown(struct pass *pass, const struct het_unused *groups,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct het_unused *group = &groups[i];
        if (!het_unused_is_unknown(group->reason))
            continue;
        const char *more = group->node_count > 1
                               ? het_arena_printf(pass->arena, " and %" PRIu32 " more",
                                                  group->node_count - 1)
                               : "";
        pass_set(pass, "GPUsUnknown", "True", het_unused_name(group->reason),
                 pass_text(pass, "%" PRIu32 " GPUs%s%s on %s%s: %s", group->gpus,
                           *group->type ? " called " : "", group->type, group->nodes[0],
                           more, het_unused_text(pass->arena, group)));
        return;
    }
    if (pass_present(pass, "GPUsUnknown"))
        pass_set(pass, "GPUsUnknown", "False", "AllKnown", "");
}

/* Shows the GPUs that a waiting job cannot use; the list stays while the reason is the
 * same. */
static void show_unused(struct pass *pass, const char *reason, const char *message)
{
    const json_t *before = pass_present(pass, "PlanFeasible");
    if (!strcmp(object_text(before, "reason"), reason) &&
        !strcmp(object_text(before, "message"), message)) {
        pass->facts.unused_stand = true;
        return;
    }
    struct het_unused_list *list = het_arena_alloc(pass->arena, sizeof *list);
    children_unused(pass->arena, pass->snapshot, list);
    planning_tell_unknown(pass, list->groups, list->count);
    pass->facts.unused = list;
}

void planning_wait(struct pass *pass, const char *reason, const char *message)
{
    show_unused(pass, reason, message);
    pass_set(pass, "PlanFeasible", "False", reason, message);
    set_no_plan(pass);
    pass->decision->summary = pass_text(pass, "waiting: %s", message);
}

void planning_wait_for_planner(struct pass *pass)
{
    const char *message =
        "the planner is at work, or jobs that come before it are planned first";
    /* A waiting job keeps reporting what is missing until the planner answers
     * otherwise. */
    if (strcmp(object_condition(pass->snapshot->job, "PlanFeasible"), "False"))
        pass_set(pass, "PlanFeasible", "Unknown", "Planning", message);
    set_no_plan(pass);
    pass->facts.demands_stand = true;
    pass->facts.unused_stand = true;
    pass->decision->summary = message;
}

/* The other job, and whether the planner already works, are only logged: in the status
 * they would cost a write for each job that is planned. */
void planning_wait_for_turn(struct pass *pass)
{
    planning_wait_for_planner(pass);
    pass->decision->summary =
        pass_text(pass, "waits for job %s", pass->snapshot->blocked_by);
}

/* The planner rejected its input, mostly because of the profile. */
void planning_report_refusal(struct pass *pass)
{
    const char *message = pass->snapshot->memory.answer.message;
    bool is_profile = !strncmp(message, "profile", strlen("profile"));
    pass_set(pass, "Accepted", "False", is_profile ? "ProfileInvalid" : "InvalidSpec",
             pass_text(pass, "%s", message));
}

/* ---- writes that the API server refuses ---- */

/* After the API server refused our objects (invalid pod, quota, admission): the job
 * reports it, holds no GPUs meanwhile, and tries again after a back-off or when its spec
 * changes. True if it has to wait now. */
bool planning_wait_for_refused(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &snapshot->memory;
    if (!memory->refusals || memory->refused_generation != snapshot->spec.generation)
        return false;
    int64_t wait = pass_doubled_ms(500, memory->refusals, REFUSED_BACKOFF_MAX_MS);
    if (pass_has_come(pass, memory->refused_ms + wait))
        return false;
    pass->decision->is_unanswered = false;
    if (pass->current)
        generation_stop(pass, "PodsRefused");
    const char *message = pass_text(pass, "the API server refuses %s", memory->refusal);
    pass_set(pass, "PlanFeasible", "False", "PodsRefused", message);
    pass_set_not_placed(pass, "PodsRefused", message);
    pass->decision->summary = message;
    return true;
}

/* ---- getting a plan ---- */

/* After an answer that nothing fits, GPUs may come free one by one, and a plan for the
 * first would be worse than one for all of them. True if the job should wait for more. */
static bool is_settling(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_memory *memory = &pass->decision->memory;
    if (snapshot->memory.answer.kind != ANSWER_NO_PLAN || planning_is_answered(pass))
        return false;
    int64_t quiet = planning_quiet_ms(&snapshot->spec);
    int64_t due = memory->input_changed_ms + quiet;
    int64_t latest = memory->input_unsettled_ms + DEBOUNCES_AT_MOST * quiet;
    if (pass_has_come(pass, due < latest ? due : latest))
        return false;
    pass_deafen(pass, due < latest ? due : latest);
    return true;
}

/* Whether the planner has answered that nothing fits the free GPUs. */
static bool is_told_no(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t gpus = 0;
    for (size_t i = 0; i < snapshot->node_count; i++)
        gpus += snapshot->nodes[i].free;
    return !gpus ||
           (planning_is_answered(pass) && snapshot->memory.answer.kind == ANSWER_NO_PLAN);
}

/* Sets the conditions that explain why there is no plan yet; asks the planner if it was
 * not asked. */
static void explain_no_plan(struct pass *pass)
{
    const struct planner_answer *answer = &pass->snapshot->memory.answer;
    bool is_told = planning_is_answered(pass);
    const char *message = pass_text(pass, "%s", answer->message);
    if (!is_told || answer->kind == ANSWER_FAILED) {
        /* Nothing waits for a plan that is only shown. */
        bool is_urgent = !pass->snapshot->spec.is_plan_only;
        if (!is_settling(pass) && planning_ask(pass, is_urgent)) {
            pass->decision->is_unanswered = false;
            planning_wait(pass,
                          preemption_has_stopped(pass) ? "Preempted" : "NoUsableGPUs",
                          no_gpus_message(pass));
        } else if (is_told) {
            pass->decision->is_unanswered = false;
            planning_wait(pass, "PlannerFailed", message);
        } else {
            planning_wait_for_planner(pass);
        }
        return;
    }
    pass->decision->is_unanswered = false;
    if (answer->kind == ANSWER_REFUSED) {
        planning_report_refusal(pass);
        planning_wait(pass, "InputRefused", message);
    } else if (answer->kind == ANSWER_NO_PLAN) {
        planning_wait(pass, preemption_has_stopped(pass) ? "Preempted" : "NoPlanFits",
                      message);
    } else if (pass->is_unloadable) {
        planning_wait(pass, "CheckpointNotLoadable", resharding_message(pass));
    } else {
        planning_wait(
            pass, "PlannerFailed",
            "the planner's answer is not a plan for the GPUs that it was given, or not one "
            "for the job's runtime");
    }
}

/* Only the same plan may follow: it moves to equal nodes, or waits for some. */
static const struct het_plan *move_plan(struct pass *pass)
{
    const struct het_plan *plan = resharding_move(pass);
    pass->decision->is_unanswered = false;
    if (!plan)
        planning_wait(pass, "CheckpointNotLoadable",
                      pass_text(pass, "%s; there are not enough nodes like its own free",
                                resharding_message(pass)));
    return plan;
}

/* A plan for the present input, and the digest of the input it was made for; NULL if
 * there is none yet, and the conditions say why. */
static const struct het_plan *find_plan(struct pass *pass, uint64_t *ret_digest)
{
    const struct het_plan *plan = candidate_find_approved(pass);
    *ret_digest = pass->snapshot->input_digest;
    if (plan)
        return plan;
    if (resharding_is_fixed(pass))
        return move_plan(pass);
    *ret_digest = pass->snapshot->memory.answer.digest;
    struct planning_offer offers[2];
    if (!planning_offers(pass, offers)) {
        explain_no_plan(pass);
        return NULL;
    }
    pass->decision->memory.considered_digest = *ret_digest;
    if (pass->snapshot->memory.answer.is_cut)
        *ret_digest = 0; /* a better one is looked for later */
    return offers[0].plan;
}

/* ---- plans that were found ---- */

/* "3 GB/s out of a node of A100, ..." of the links whose source is `source`; "" for
 * none. */
static const char *links_text(struct pass *pass, const struct het_prediction *predicted,
                              enum het_link_source source)
{
    const char *text = "";
    size_t shown = 0;
    for (size_t i = 0; i < predicted->assumed_link_count && shown < 8; i++) {
        const struct het_assumed_link *link = &predicted->assumed_links[i];
        if (link->source != source)
            continue;
        text =
            het_arena_printf(pass->arena, "%s%s%.4g GB/s %s %s", text,
                             shown++ ? ", " : "", link->bytes_per_s / 1e9,
                             link->leaves_node ? "out of a node of" : "between GPUs of",
                             link->instance_type ? link->instance_type : link->type);
    }
    return text;
}

void planning_tell_links(struct pass *pass, const struct het_plan *plan)
{
    const struct het_prediction *predicted = &plan->predicted;
    const char *guessed = links_text(pass, predicted, HET_LINK_DEFAULT);
    const char *instance = links_text(pass, predicted, HET_LINK_INSTANCE);
    const char *type = links_text(pass, predicted, HET_LINK_GPU_TYPE);
    if (*guessed)
        pass_set(pass, "LinksAssumed", "True", "NobodyMeasured",
                 het_arena_printf(pass->arena,
                                  "%s is a guess; state it in the hardware settings, or "
                                  "have links measured",
                                  guessed));
    else if (*instance || *type)
        pass_set(pass, "LinksAssumed", "False", "DataSheets",
                 het_arena_printf(pass->arena, "%s%s%s", instance,
                                  *instance && *type ? ", " : "", type));
    else
        pass_set(pass, "LinksAssumed", "False", "StatedOrMeasured",
                 "all bandwidths were stated or measured");
}

/* For a job of which only the plan is wanted. */
static void show_plan(struct pass *pass, const struct het_plan *plan)
{
    candidate_show(pass, plan);
    pass_set(pass, "PlanFeasible", "True", "PlanOnly",
             het_render_summary(pass->arena, plan));
    planning_tell_links(pass, plan);
    planning_tell_unknown(pass, plan->unused, plan->unused_count);
    struct het_unused_list *list = het_arena_alloc(pass->arena, sizeof *list);
    *list = (struct het_unused_list){ (struct het_unused *)(uintptr_t)plan->unused,
                                      plan->unused_count };
    pass->facts.unused = list;
    pass_set(pass, "Placed", "False", "PlanOnly",
             "spec.planOnly is true: no pod is created");
    pass_set(pass, "Running", "False", "PlanOnly", "spec.planOnly is true: nothing runs");
    pass->decision->summary = "planned, and only shown";
}

/* Whether a plan already shown may stay a while longer, however the cluster changes. */
static bool is_shown_long_enough(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    return !object_at(snapshot->job, "status.candidate") || planning_is_answered(pass) ||
           pass_has_come(pass, pass->decision->memory.input_changed_ms +
                                   snapshot->spec.debounce_ms);
}

void planning_preview(struct pass *pass)
{
    uint64_t digest;
    if (is_shown_long_enough(pass)) {
        const struct het_plan *plan = find_plan(pass, &digest);
        if (plan)
            show_plan(pass, plan);
    }
    pass->decision->is_unanswered = false; /* it takes no GPUs */
}

/* Nothing fits the free GPUs, so others may have to give some up. True if a generation
 * was decided. */
static bool seek_with_claim(struct pass *pass, const char *trigger, int64_t restarts,
                            int64_t replans)
{
    if (resharding_is_fixed(pass) || !is_told_no(pass))
        return false;
    struct status_facts facts = pass->facts;
    switch (preemption_seek(pass, trigger, restarts, replans,
                            planner_retry_ms(&pass->snapshot->memory))) {
    case PREEMPTION_NOTHING:
        /* The conditions say why there is no plan, not what the claim ran into. */
        memcpy(pass->facts.conditions, facts.conditions, sizeof facts.conditions);
        pass->facts.condition_count = facts.condition_count;
        return false;
    case PREEMPTION_ASKING:
        pass->facts.demands_stand = true;
        pass->decision->is_unanswered = !pass->snapshot->memory.planner_failures;
        return false;
    case PREEMPTION_MADE:
        pass->decision->is_unanswered = true; /* until it is written */
        return true;
    }
    return false;
}

bool planning_seek(struct pass *pass, const char *trigger, int64_t restarts,
                   int64_t replans, const char *event)
{
    const struct snapshot *snapshot = pass->snapshot;
    if (!pass->can_plan) {
        planning_wait(pass, "NoProfile", "there is no profile to plan with");
        return false;
    }
    /* Other jobs do not wait for one whose planner failed. */
    pass->decision->is_unanswered = !snapshot->memory.planner_failures;
    if (pass_is_held_up(pass)) {
        planning_wait_for_turn(pass);
        return false;
    }
    uint64_t digest;
    const struct het_plan *plan = find_plan(pass, &digest);
    if (!plan)
        return seek_with_claim(pass, trigger, restarts, replans);
    pass->decision->is_unanswered = false;
    if (pass->lost_pods_still_run && !het_plan_compare(plan, pass->current->plan))
        return false; /* there is nothing better than what runs */
    const char *why = pass_text(pass, "a plan for %s", trigger);
    if (!candidate_may_follow(pass, plan, why)) {
        planning_wait(pass, pass->approval_reason, pass->approval_message);
        return false;
    }
    if (!generation_commit(
            pass, plan, digest, trigger, restarts, replans, event,
            pass_text(pass, "%s (%s)", het_render_summary(pass->arena, plan), trigger)))
        return false;
    pass->decision->is_unanswered = true; /* until it is written */
    return true;
}
