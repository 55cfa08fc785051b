#include "controller/placement/preemption.h"

#include "controller/base/digest.h"
#include "controller/base/timestamp.h"
#include "controller/placement/demand.h"
#include "controller/placement/generation.h"
#include "controller/placement/victims.h"
#include "controller/placement/what_if.h"

#include <inttypes.h>
#include <string.h>

#define GIVEN_UP      "ClaimGivenUp" /* why the generation of a claim was stopped */
#define PREEMPTED     "Preempted"    /* why that of a victim was */
#define REFUSED       "PodsRefused"
/* Why a plan was stopped whose nodes have too little left. */
#define CAPACITY_LOST "CapacityLost"
#define MAX_RUNGS     16 /* questions about one state of the cluster */

/* One question: with the first `offers` given up. */
struct rung {
    size_t offers;
    struct what_if question;
};

static uint64_t rung_digest(const struct snapshot *snapshot,
                            const struct victims_offer *offers, const struct rung *rung)
{
    uint64_t digest = digest_bytes(snapshot->input_digest, &rung->question.max_gpus,
                                   sizeof rung->question.max_gpus);
    for (size_t i = 0; i < rung->offers; i++) {
        for (size_t k = 0; k < offers[i].share_count; k++) {
            const struct capacity_share *share = &offers[i].shares[k];
            digest = digest_text(digest, share->node);
            digest = digest_bytes(digest, &share->gpus, sizeof share->gpus);
        }
    }
    return digest;
}

/* The questions, without their nodes, in the order in which they are asked until one
 * yields a plan: the fewest victims that could suffice, for no more GPUs than needed; the
 * same without that limit; then twice as many victims each time, up to all. */
static size_t list_rungs(const struct pass *pass, const struct victims_offer *offers,
                         size_t count, struct rung ret[MAX_RUNGS])
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t free_gpus = victims_free(snapshot), gpus = free_gpus;
    int64_t least = snapshot->spec.min_gpus > 1 ? snapshot->spec.min_gpus : 1;
    size_t first = 0, rungs = 0;
    while (first < count && (gpus < least || !first))
        gpus += offers[first++].usable;
    if (gpus < least || !first)
        return 0;
    int64_t limit = free_gpus > least ? free_gpus : least;
    int64_t own = snapshot->spec.max_gpus;
    ret[rungs++] =
        (struct rung){ first, { .max_gpus = own && own < limit ? own : limit } };
    for (size_t taken = first; rungs < MAX_RUNGS; taken *= 2) {
        ret[rungs++] =
            (struct rung){ taken < count ? taken : count, { .max_gpus = own } };
        if (taken >= count)
            break;
    }
    for (size_t i = 0; i < rungs; i++)
        ret[i].question.digest = rung_digest(snapshot, offers, &ret[i]);
    return rungs;
}

static void add_nodes(const struct pass *pass, const struct victims_offer *offers,
                      struct rung *rung)
{
    rung->question.nodes =
        victims_view(pass->arena, pass->snapshot, offers, rung->offers);
    rung->question.node_count = pass->snapshot->node_count;
}

/* Whether the newest plan was a claim that never ran: its GPUs did not come free in time,
 * or they did but another tenant now holds something else there (CPU, memory). */
static bool is_given_up(const struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    bool is_short = pass_was_retired_for(pass, CAPACITY_LOST) ||
                    (pass->lost_trigger && !strcmp(pass->lost_trigger, CAPACITY_LOST));
    return pass_was_retired_for(pass, GIVEN_UP) ||
           (is_short && current->claim_until_wall_ms && !current->released_wall_ms);
}

/* Claims that this job has given up in a row until now. */
static int64_t claims_in_vain(const struct pass *pass)
{
    return is_given_up(pass) ? pass->current->claims_in_vain + 1 : 0;
}

/* ANNOTATION_PREEMPTS, for people and for the next pass. */
static const char *preemption_text(struct pass *pass, const struct victims_offer *victims,
                                   size_t count)
{
    int64_t stop_ms = 0;
    json_auto_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *gpus = json_object();
        for (size_t k = 0; k < victims[i].share_count; k++)
            json_object_set_new(gpus, victims[i].shares[k].node,
                                json_integer(victims[i].shares[k].gpus));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:o}", "job", victims[i].peer->key,
                                        "uid", victims[i].peer->uid, "gpus", gpus));
        if (victims[i].peer->stop_ms > stop_ms)
            stop_ms = victims[i].peer->stop_ms;
    }
    char until[TIMESTAMP_SIZE];
    timestamp_format(pass->snapshot->wall_ms + stop_ms, until);
    json_auto_t *claim = json_pack("{s:s, s:I, s:O}", "until", until, "inVain",
                                   (json_int_t)claims_in_vain(pass), "victims", list);
    auto_free char *text = json_dumps(claim, JSON_COMPACT | JSON_SORT_KEYS);
    return het_arena_strdup(pass->arena, text);
}

/* "8 GPUs of ns/a, 2 of ns/b" */
static const char *victims_text(struct pass *pass, const struct victims_offer *victims,
                                size_t count)
{
    const char *text = "";
    for (size_t i = 0; i < count && i < 8; i++)
        text = pass_text(pass, "%s%s%" PRId64 "%s of %s", text, i ? ", " : "",
                         victims[i].usable, i ? "" : " GPUs", victims[i].peer->key);
    return count > 8 ? pass_text(pass, "%s and %zu more jobs", text, count - 8) : text;
}

static bool make_claim(struct pass *pass, const struct victims_offer *offers,
                       const struct rung *rung, const struct het_plan *plan,
                       const char *trigger, int64_t restarts, int64_t replans)
{
    struct victims_offer *victims;
    size_t count =
        victims_find(pass->arena, pass->snapshot, offers, rung->offers, plan, &victims);
    pass->claim = count ? preemption_text(pass, victims, count) : NULL;
    const char *message = pass_text(pass, "%s, with %s",
                                    het_render_summary(pass->arena, plan),
                                    victims_text(pass, victims, count));
    return generation_commit(pass, plan, rung->question.digest, trigger, restarts,
                             replans, "Preempting", message);
}

/* When another claim went before ours, so that two that see each other do not alternate;
 * 0: none did. */
static int64_t overtaken_until_wall_ms(const struct pass *pass)
{
    const struct snapshot_plan *current = pass->current;
    bool is_overtaken = current && current->claim_until_wall_ms &&
                        (preemption_has_stopped(pass) ||
                         (pass->lost_trigger && !strcmp(pass->lost_trigger, PREEMPTED)));
    return is_overtaken ? current->created_wall_ms + PREEMPTION_PAUSE_MS : 0;
}

/* A claim that was given up is not repeated at once, and no job is disturbed for pods
 * that the API server has refused, unless the pods are different now. */
static bool is_pausing(struct pass *pass)
{
    if (pass_was_retired_for(pass, REFUSED))
        return pass->current->pod_digest == pass->snapshot->pod_digest;
    if (!pass_has_come_wall(pass, overtaken_until_wall_ms(pass)))
        return true;
    if (!is_given_up(pass))
        return false;
    int64_t pause_ms = pass_doubled_ms(PREEMPTION_PAUSE_MS, claims_in_vain(pass) - 1,
                                       PREEMPTION_PAUSE_MAX_MS);
    return !pass_has_come_wall(pass, pass->current->claim_until_wall_ms + pause_ms);
}

/* Jobs of the same priority can be claimed from once their own rules allow a move. */
static void look_again(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    for (size_t i = 0; i < snapshot->peer_count; i++) {
        const struct other_job *peer = &snapshot->peers[i];
        if (peer->precedence.priority == snapshot->precedence.priority &&
            peer->gpus > peer->min_gpus && peer->next_move_wall_ms < INT64_MAX &&
            peer->next_move_wall_ms > snapshot->wall_ms)
            pass_requeue_at(pass, snapshot->now_ms + peer->next_move_wall_ms -
                                      snapshot->wall_ms);
    }
}

static uint64_t digest_all(const struct snapshot *snapshot, const struct rung *rungs,
                           size_t count)
{
    uint64_t digest = snapshot->input_digest;
    for (size_t i = 0; i < count; i++)
        digest = digest_bytes(digest, &rungs[i].question.digest,
                              sizeof rungs[i].question.digest);
    return digest;
}

enum preemption_step preemption_seek(struct pass *pass, const char *trigger,
                                     int64_t restarts, int64_t replans, int64_t retry_ms)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct planner_answer *answer = &snapshot->memory.what_if;
    struct victims_offer *offers;
    struct rung rungs[MAX_RUNGS];
    if (is_given_up(pass)) /* none of them can ever run, and only this pass removes
                              them */
        generation_drop_old(pass);
    /* Kueue preempts for the jobs of its queues. */
    if (pass->lost_pods_still_run || snapshot->quota.queue || is_pausing(pass))
        return PREEMPTION_NOTHING;
    if (!snapshot->precedence.never_claims)
        look_again(pass);
    size_t count = victims_offers(pass->arena, snapshot, &offers);
    size_t rung_count = list_rungs(pass, offers, count, rungs), next = 0;
    uint64_t all = digest_all(snapshot, rungs, rung_count);
    if (demand_is_sought(pass, all)) /* all of them were answered without a plan */
        next = rung_count;
    for (size_t i = 0; i < rung_count; i++) {
        if (!what_if_is_answered(pass, &rungs[i].question))
            continue;
        add_nodes(pass, offers, &rungs[i]);
        const struct het_plan *plan = what_if_plan(pass, &rungs[i].question);
        if (plan)
            return make_claim(pass, offers, &rungs[i], plan, trigger, restarts, replans)
                       ? PREEMPTION_MADE
                       : PREEMPTION_NOTHING;
        if (answer->kind == ANSWER_REFUSED)
            return PREEMPTION_NOTHING;
        bool is_broken = answer->kind == ANSWER_FAILED;
        if (is_broken && !pass_has_come(pass, retry_ms))
            return PREEMPTION_NOTHING;
        next = is_broken ? i : i + 1;
    }
    if (next < rung_count) {
        add_nodes(pass, offers, &rungs[next]);
        what_if_ask(pass, &rungs[next].question, true);
        return PREEMPTION_ASKING;
    }
    demand_seek(pass, all);
    return PREEMPTION_NOTHING;
}

/* Whether a node lacks GPUs for place `index` of the current plan. */
static bool is_short(const struct pass *pass, size_t index)
{
    const struct het_rank_node *place = &pass->current->rank_nodes[index];
    const struct capacity_node *node =
        snapshot_find_node(pass->snapshot, place->node_name);
    return node && node->free < place->gpu_count;
}

/* ---- the claim that is laid ---- */

static bool lacks_gpus(const struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        bool is_out = pass->pods[i] && !pass->pods[i]->is_gated;
        if (!is_out && is_short(pass, i))
            return true;
    }
    return false;
}

bool preemption_is_waiting(struct pass *pass)
{
    if (!pass->current->claim_until_wall_ms || *pass->current->retired ||
        !lacks_gpus(pass))
        return false;
    const char *message = pass_text(
        pass, "revision %" PRId64 " waits for GPUs that other jobs are giving up",
        pass->current->generation);
    pass_set_not_placed(pass, "WaitingForPreempted", message);
    pass->facts.holds_gpus = false;
    pass->decision->summary = message;
    if (!pass_has_come_wall(pass, pass->current->claim_until_wall_ms))
        return true;
    generation_stop(pass, GIVEN_UP);
    pass_event(pass, PHASE_EVENTS, true, GIVEN_UP, "Plan",
               "the GPUs that were claimed did not come free in time");
    return true;
}

/* ---- the one who has to give ---- */

bool preemption_has_stopped(const struct pass *pass)
{
    return pass_was_retired_for(pass, PREEMPTED);
}

/* Whether a node that the current plan uses no longer has all of its GPUs. */
static bool is_taken_from(const struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++)
        if (!pass->has_succeeded[i] && is_short(pass, i))
            return true;
    return false;
}

bool preemption_stops_refused(struct pass *pass)
{
    bool is_claimed = victims_must_yield(pass->snapshot) && is_taken_from(pass);
    if (!is_claimed && !preemption_has_stopped(pass))
        return false;
    generation_stop(pass, PREEMPTED);
    const char *message = "a job of higher priority has its GPUs, and no other plan is "
                          "made while the spec is refused";
    pass_set(pass, "PlanFeasible", "False", PREEMPTED, message);
    pass_set_not_placed(pass, PREEMPTED, message);
    pass->decision->summary = message;
    return true;
}
