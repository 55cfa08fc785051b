#include "controller/placement/victims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_use(const struct snapshot *snapshot, const char *name)
{
    const struct capacity_node *node = snapshot_find_node(snapshot, name);
    return node && !node->unusable && job_spec_allows_type(&snapshot->spec, node->type);
}

int64_t victims_free(const struct snapshot *snapshot)
{
    int64_t gpus = 0;
    for (size_t i = 0; i < snapshot->node_count; i++)
        if (job_spec_allows_type(&snapshot->spec, snapshot->nodes[i].type))
            gpus += snapshot->nodes[i].free;
    return gpus;
}

/* How many of the `gpus` that a peer gives up on a node the job can use: none where other
 * tenants leave too little of something else. */
static int64_t usable_of(const struct snapshot *snapshot, const char *name, int64_t gpus)
{
    const struct capacity_node *node = snapshot_find_node(snapshot, name);
    if (!is_of_use(snapshot, name) || node->most_free <= node->free)
        return 0;
    int64_t room = node->most_free - node->free;
    return gpus < room ? gpus : room;
}

/* Offers `gpus` of what the peer holds, from its last nodes on; GPUs that the job cannot
 * use are no offer. */
static struct victims_offer make_offer(struct het_arena *arena,
                                       const struct snapshot *snapshot,
                                       const struct other_job *peer, int64_t gpus)
{
    struct capacity_share *shares =
        HET_ARENA_ARRAY(arena, struct capacity_share, peer->share_count);
    struct victims_offer offer = { .peer = peer, .shares = shares };
    for (size_t i = peer->share_count; i-- > 0 && gpus > 0;) {
        struct capacity_share share = peer->shares[i];
        share.gpus = usable_of(snapshot, share.node, share.gpus);
        if (!share.gpus)
            continue;
        if (share.gpus > gpus)
            share.gpus = gpus;
        gpus -= share.gpus;
        offer.usable += share.gpus;
        shares[offer.share_count++] = share;
    }
    return offer;
}

/* How many GPUs the peer can spare and still run. */
static int64_t surplus(const struct snapshot *snapshot, const struct other_job *peer)
{
    bool is_lower = peer->precedence.priority < snapshot->precedence.priority;
    bool is_equal = peer->precedence.priority == snapshot->precedence.priority;
    bool may_move = snapshot->wall_ms >= peer->next_move_wall_ms;
    return (is_lower || (is_equal && may_move)) && peer->gpus > peer->min_gpus
               ? peer->gpus - peer->min_gpus
               : 0;
}

size_t victims_offers(struct het_arena *arena, const struct snapshot *snapshot,
                      struct victims_offer **ret)
{
    struct victims_offer *offers =
        HET_ARENA_ARRAY(arena, struct victims_offer, 2 * snapshot->peer_count);
    size_t count = 0;
    for (int whole = 0; whole < 2 && !snapshot->precedence.never_claims; whole++) {
        for (size_t i = snapshot->peer_count; i-- > 0;) { /* the last goes first */
            const struct other_job *peer = &snapshot->peers[i];
            bool is_lower = peer->precedence.priority < snapshot->precedence.priority;
            int64_t gpus = whole ? (is_lower ? peer->gpus : 0) : surplus(snapshot, peer);
            if (peer->is_in_a_claim || !gpus)
                continue;
            offers[count] = make_offer(arena, snapshot, peer, gpus);
            count += offers[count].usable > 0;
        }
    }
    *ret = offers;
    return count;
}

/* Whether a later one of the first `count` offers is of the same peer. */
static bool is_outdone(const struct victims_offer *offers, size_t count, size_t at)
{
    for (size_t i = at + 1; i < count; i++)
        if (offers[i].peer == offers[at].peer)
            return true;
    return false;
}

const struct capacity_node *victims_view(struct het_arena *arena,
                                         const struct snapshot *snapshot,
                                         const struct victims_offer *offers, size_t count)
{
    struct capacity_node *nodes =
        HET_ARENA_ARRAY(arena, struct capacity_node, snapshot->node_count);
    memcpy(nodes, snapshot->nodes, snapshot->node_count * sizeof *nodes);
    for (size_t i = 0; i < count; i++) {
        if (is_outdone(offers, count, i))
            continue;
        for (size_t k = 0; k < offers[i].share_count; k++) {
            const struct capacity_share *share = &offers[i].shares[k];
            struct capacity_node *node =
                &nodes[snapshot_find_node(snapshot, share->node) - snapshot->nodes];
            node->free += share->gpus;
            if (node->free > node->most_free)
                node->free = node->most_free;
        }
    }
    return nodes;
}

/* Cuts `offer` to what covers `missing`, which holds GPUs by node and is lowered by
 * it. */
static struct victims_offer cut(struct het_arena *arena, const struct snapshot *snapshot,
                                const struct victims_offer *offer, int64_t *missing)
{
    struct capacity_share *shares =
        HET_ARENA_ARRAY(arena, struct capacity_share, offer->share_count);
    struct victims_offer result = { .peer = offer->peer, .shares = shares };
    for (size_t k = 0; k < offer->share_count; k++) {
        struct capacity_share share = offer->shares[k];
        int64_t *of_node =
            &missing[snapshot_find_node(snapshot, share.node) - snapshot->nodes];
        if (share.gpus > *of_node)
            share.gpus = *of_node;
        if (share.gpus <= 0)
            continue;
        *of_node -= share.gpus;
        result.usable += share.gpus;
        shares[result.share_count++] = share;
    }
    return result;
}

size_t victims_find(struct het_arena *arena, const struct snapshot *snapshot,
                    const struct victims_offer *offers, size_t count,
                    const struct het_plan *plan, struct victims_offer **ret)
{
    int64_t *missing = HET_ARENA_ARRAY(arena, int64_t, snapshot->node_count);
    memset(missing, 0, snapshot->node_count * sizeof *missing);
    struct het_rank_node *places;
    size_t place_count = het_plan_rank_nodes(arena, plan, &places);
    for (size_t i = 0; i < place_count; i++) {
        const struct capacity_node *node =
            snapshot_find_node(snapshot, places[i].node_name);
        if (node)
            missing[node - snapshot->nodes] = places[i].gpu_count - node->free;
    }
    struct victims_offer *victims = HET_ARENA_ARRAY(arena, struct victims_offer, count);
    size_t victim_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_outdone(offers, count, i))
            continue;
        victims[victim_count] = cut(arena, snapshot, &offers[i], missing);
        victim_count += victims[victim_count].share_count > 0;
    }
    *ret = victims;
    return victim_count;
}

bool victims_must_yield(const struct snapshot *snapshot)
{
    const struct claim *claim = snapshot->claimed_by;
    return claim && claim->precedence.priority > snapshot->precedence.priority;
}

/* ---- growth ---- */

double victims_bid(struct het_arena *arena, const struct het_plan *now,
                   const struct het_plan *then, double gain)
{
    struct het_rank_node *held, *wanted;
    size_t held_count = het_plan_rank_nodes(arena, now, &held);
    size_t wanted_count = het_plan_rank_nodes(arena, then, &wanted);
    int64_t added = 0;
    for (size_t i = 0; i < wanted_count; i++) {
        int64_t more = (int64_t)wanted[i].gpu_count -
                       het_plan_gpus_on(held, held_count, wanted[i].node_name);
        added += more > 0 ? more : 0;
    }
    return log1p(gain) / (double)(added > 1 ? added : 1);
}

bool victims_wins(const struct snapshot *snapshot, double value)
{
    return !snapshot->rival_asking && !(snapshot->rival && snapshot->rival_bid > value);
}
