#include "planner/cost/migrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *het_migrate_resource_name(enum het_migrate_resource resource)
{
    static const char *const names[] = {
        [HET_MIGRATE_NOTHING] = "nothing",      [HET_MIGRATE_DISK] = "disk",
        [HET_MIGRATE_UPLINK_OUT] = "uplinkOut", [HET_MIGRATE_UPLINK_IN] = "uplinkIn",
        [HET_MIGRATE_CLOUD] = "cloud",
    };
    return names[resource];
}

/* ---- shards as bits ---- */

/* A layer is cut into as many cells as the least common multiple of all degrees, so that
 * a shard is a run of cells; one bit each. Beyond 64 a shard is widened to whole cells.
 */
#define MAX_CELLS 64u
typedef uint64_t shard_bits;

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint32_t common_cells(uint32_t cells, uint32_t tp)
{
    uint64_t both = (uint64_t)cells / greatest_divisor(cells, tp) * tp;
    return both > MAX_CELLS ? MAX_CELLS : (uint32_t)both;
}

static uint32_t cells_of(uint32_t cells, const struct het_plan *plan)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                if (stage->replicas[r].tp)
                    cells = common_cells(cells, stage->replicas[r].tp);
        }
    return cells;
}

/* Shard `index` of `tp`. */
static shard_bits shard(uint32_t cells, uint32_t index, uint32_t tp)
{
    uint32_t first = (uint32_t)((uint64_t)index * cells / tp);
    uint32_t end = (uint32_t)((((uint64_t)index + 1) * cells + tp - 1) / tp);
    shard_bits below_end = end >= 64 ? ~(shard_bits)0 : ((shard_bits)1 << end) - 1;
    return below_end & ~(((shard_bits)1 << first) - 1);
}

static double count_bits(shard_bits bits)
{
    return (double)__builtin_popcountll(bits);
}

/* ---- what is held and needed ---- */

struct state {
    const struct het_problem *problem;
    const struct het_plan *old, *new;
    const struct het_migrate_rates *rates;
    uint32_t cells, layer_count;
    size_t node_count;
    double *cell_bytes; /* [layer] */
    uint32_t *index_of; /* [cluster node]: among those in use, plus one */
    uint32_t *nodes;    /* [in use]: cluster node */
    size_t used;
    shard_bits *held;                          /* [in use][layer] */
    shard_bits *needed;                        /* [in use][layer] */
    shard_bits *fetched;                       /* [in use][layer]: from the cloud */
    double *disk_bytes, *out_bytes, *in_bytes; /* [in use] */
    double cloud_bytes;
};

typedef void visit_replica(void *context, const struct het_stage *stage,
                           const struct het_replica *replica);

static void each_replica(const struct het_plan *plan, visit_replica *visit, void *context)
{
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                visit(context, stage, &stage->replicas[r]);
        }
}

/* The old plan with the nodes of this cluster; those that it lacks are HET_UNBOUND. Names
 * decide, as the indices that the plan came with may be of another cluster. */
static const struct het_plan *bind_old(struct het_arena *arena,
                                       const struct het_cluster *cluster,
                                       const struct het_plan *old)
{
    const struct het_node_name *names = het_cluster_sort_names(arena, cluster);
    struct het_replica *replicas;
    struct het_plan *bound = het_plan_copy_replicas(arena, old, &replicas);
    for (size_t i = het_plan_replica_count(old); i-- > 0;)
        replicas[i].node = het_cluster_find_node(cluster, names, replicas[i].node_name);
    return bound;
}

static void use_node(void *context, const struct het_stage *stage,
                     const struct het_replica *replica)
{
    struct state *state = context;
    (void)stage;
    if (replica->node == HET_UNBOUND || state->index_of[replica->node])
        return;
    state->nodes[state->used++] = replica->node;
    state->index_of[replica->node] = (uint32_t)state->used;
}

static void add_shards(const struct state *state, shard_bits *bits,
                       const struct het_stage *stage, const struct het_replica *replica)
{
    if (replica->node == HET_UNBOUND)
        return;
    shard_bits *of_node = bits + (size_t)(state->index_of[replica->node] - 1) *
                                     state->layer_count;
    shard_bits all = 0;
    for (uint32_t i = 0; i < replica->tp; i++)
        all |= shard(state->cells, i, replica->tp);
    for (uint32_t l = 0; l < stage->layer_count; l++)
        if (stage->first_layer + l < state->layer_count)
            of_node[stage->first_layer + l] |= all;
}

static void hold(void *context, const struct het_stage *stage,
                 const struct het_replica *replica)
{
    struct state *state = context;
    add_shards(state, state->held, stage, replica);
}

static void need(void *context, const struct het_stage *stage,
                 const struct het_replica *replica)
{
    struct state *state = context;
    add_shards(state, state->needed, stage, replica);
}

/* Checkpoint bytes of one cell of each layer: those of the least degree that is measured,
 * times the degree. */
static void find_cell_bytes(struct het_arena *arena, struct state *state)
{
    const struct het_profile *profile = state->problem->profile;
    double a_parameter = het_workload_checkpoint_bytes(state->problem->workload);
    state->cell_bytes = HET_ARENA_ARRAY(arena, double, state->layer_count);
    if (!profile->bytes_count)
        return;
    const struct het_layer_bytes *bytes = &profile->bytes[0];
    for (uint32_t l = 0; l < state->layer_count; l++)
        state->cell_bytes[l] = (bytes->parameters[l + 1] - bytes->parameters[l]) *
                               bytes->tp * a_parameter / state->cells;
}

static void state_init(struct state *state, struct het_arena *arena,
                       const struct het_problem *problem, const struct het_plan *old,
                       const struct het_plan *new, const struct het_migrate_rates *rates)
{
    static const struct het_migrate_rates defaults = {
        .disk_bytes_per_s = HET_MIGRATE_DISK_BYTES_PER_S,
        .cloud_bytes_per_s = HET_MIGRATE_CLOUD_BYTES_PER_S,
    };
    const struct het_cluster *cluster = problem->cluster;
    *state = (struct state){
        .problem = problem,
        .old = bind_old(arena, cluster, old),
        .new = new,
        .rates = rates ? rates : &defaults,
        .cells = cells_of(cells_of(1, old), new),
        .layer_count = problem->profile->layer_count,
        .index_of = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count),
        .nodes = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count),
    };
    each_replica(state->new, use_node, state);
    each_replica(state->old, use_node, state);
    size_t size = state->used * state->layer_count;
    state->held = HET_ARENA_ARRAY(arena, shard_bits, size);
    state->needed = HET_ARENA_ARRAY(arena, shard_bits, size);
    state->fetched = HET_ARENA_ARRAY(arena, shard_bits, size);
    state->disk_bytes = HET_ARENA_ARRAY(arena, double, state->used);
    state->out_bytes = HET_ARENA_ARRAY(arena, double, state->used);
    state->in_bytes = HET_ARENA_ARRAY(arena, double, state->used);
    find_cell_bytes(arena, state);
    each_replica(state->old, hold, state);
    each_replica(state->new, need, state);
}

/* ---- transfers ---- */

static double uplink(const struct state *state, size_t n)
{
    return state->problem->cluster->nodes[state->nodes[n]].uplink_bytes_per_s;
}

/* The node that has the cell and is done sending first; used if none has it. */
static size_t find_sender(const struct state *state, uint32_t layer, shard_bits cell)
{
    size_t best = state->used;
    double best_s = HUGE_VAL;
    for (size_t n = 0; n < state->used; n++) {
        size_t at = n * state->layer_count + layer;
        if (!((state->held[at] | state->fetched[at]) & cell))
            continue;
        double seconds = state->out_bytes[n] / uplink(state, n);
        if (seconds < best_s) {
            best_s = seconds;
            best = n;
        }
    }
    return best;
}

/* Brings one cell to a node that lacks it. */
static void fetch(struct state *state, size_t to, uint32_t layer, shard_bits cell)
{
    double bytes = state->cell_bytes[layer];
    size_t from = find_sender(state, layer, cell);
    state->in_bytes[to] += bytes;
    if (from < state->used)
        state->out_bytes[from] += bytes;
    else
        state->cloud_bytes += bytes;
}

/* Cells that no surviving node holds: the first node that needs one downloads it. */
static void fetch_layer(struct state *state, uint32_t layer)
{
    for (size_t n = 0; n < state->used; n++) {
        size_t at = n * state->layer_count + layer;
        shard_bits missing = state->needed[at] & ~state->held[at];
        state->disk_bytes[n] += state->cell_bytes[layer] *
                                count_bits(state->needed[at] & state->held[at]);
        for (; missing; missing &= missing - 1) {
            shard_bits cell = missing & -missing;
            fetch(state, n, layer, cell);
            state->fetched[at] |= cell;
        }
    }
}

/* ---- account by rank ---- */

struct account {
    struct state *state;
    struct het_migration *migration;
    struct het_migrate_rank *ranks;
    uint32_t *rank_offset; /* [in use] */
    shard_bits *everyone;  /* [layer]: held by any surviving node */
};

static void count_rank(struct account *account, const struct het_stage *stage,
                       const struct het_replica *replica, uint32_t shard_index)
{
    struct state *state = account->state;
    size_t n = state->index_of[replica->node] - 1;
    struct het_migrate_rank *rank =
        &account->ranks[account->rank_offset[n] + replica->gpus[shard_index]];
    shard_bits mine = shard(state->cells, shard_index, replica->tp);
    rank->node = replica->node;
    rank->local_index = replica->gpus[shard_index];
    for (uint32_t l = stage->first_layer; l < stage->first_layer + stage->layer_count;
         l++) {
        shard_bits held = state->held[n * state->layer_count + l];
        double bytes = state->cell_bytes[l];
        rank->local_bytes += bytes * count_bits(mine & held);
        rank->peer_bytes += bytes * count_bits(mine & ~held & account->everyone[l]);
        rank->cloud_bytes += bytes * count_bits(mine & ~held & ~account->everyone[l]);
    }
    account->migration->local_bytes += rank->local_bytes;
}

static void count_replica(void *context, const struct het_stage *stage,
                          const struct het_replica *replica)
{
    for (uint32_t i = 0; i < replica->tp; i++)
        count_rank(context, stage, replica, i);
}

/* Ranks whose GPU held the same. */
struct keeper {
    const struct account *account;
    const struct het_stage *stage; /* of the new plan */
    const struct het_replica *replica;
    uint32_t shard_index;
    bool keeps;
};

static void look_for_keeper(void *context, const struct het_stage *stage,
                            const struct het_replica *replica)
{
    struct keeper *keeper = context;
    const struct state *state = keeper->account->state;
    if (replica->node != keeper->replica->node ||
        stage->first_layer > keeper->stage->first_layer ||
        stage->first_layer + stage->layer_count <
            keeper->stage->first_layer + keeper->stage->layer_count)
        return;
    shard_bits mine = shard(state->cells, keeper->shard_index, keeper->replica->tp);
    for (uint32_t i = 0; i < replica->tp; i++)
        if (replica->gpus[i] == keeper->replica->gpus[keeper->shard_index] &&
            !(mine & ~shard(state->cells, i, replica->tp)))
            keeper->keeps = true;
}

/* Old replicas by node, so that only those of a rank's node are looked at. */
struct by_node {
    struct {
        const struct het_stage *stage;
        const struct het_replica *replica;
    } * items;
    size_t *first; /* [in use + 1] */
    size_t *next;  /* [in use] while filling */
    const struct state *state;
};

static void count_node(void *context, const struct het_stage *stage,
                       const struct het_replica *replica)
{
    struct by_node *by_node = context;
    (void)stage;
    if (replica->node != HET_UNBOUND)
        by_node->first[by_node->state->index_of[replica->node]]++;
}

static void put_node(void *context, const struct het_stage *stage,
                     const struct het_replica *replica)
{
    struct by_node *by_node = context;
    if (replica->node == HET_UNBOUND)
        return;
    size_t at = by_node->next[by_node->state->index_of[replica->node] - 1]++;
    by_node->items[at].stage = stage;
    by_node->items[at].replica = replica;
}

static void sort_by_node(struct by_node *by_node, struct het_arena *arena,
                         const struct state *state)
{
    *by_node = (struct by_node){ .state = state };
    by_node->first = HET_ARENA_ARRAY(arena, size_t, state->used + 1);
    by_node->next = HET_ARENA_ARRAY(arena, size_t, state->used);
    each_replica(state->old, count_node, by_node);
    for (size_t n = 0; n < state->used; n++) {
        by_node->first[n + 1] += by_node->first[n];
        by_node->next[n] = by_node->first[n];
    }
    by_node->items =
        het_arena_array(arena, by_node->first[state->used], sizeof *by_node->items);
    each_replica(state->old, put_node, by_node);
}

static void find_keepers(struct het_arena *arena, struct account *account)
{
    const struct state *state = account->state;
    struct by_node by_node;
    sort_by_node(&by_node, arena, state);
    for (size_t p = 0; p < state->new->pipeline_count; p++)
        for (size_t s = 0; s < state->new->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &state->new->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++) {
                const struct het_replica *replica = &stage->replicas[r];
                size_t n = state->index_of[replica->node] - 1;
                for (uint32_t k = 0; k < replica->tp; k++) {
                    struct keeper keeper = { account, stage, replica, k, false };
                    for (size_t i = by_node.first[n]; i < by_node.first[n + 1]; i++)
                        look_for_keeper(&keeper, by_node.items[i].stage,
                                        by_node.items[i].replica);
                    size_t rank = account->rank_offset[n] + replica->gpus[k];
                    account->ranks[rank].keeps = keeper.keeps;
                    account->migration->ranks_kept += keeper.keeps;
                }
            }
        }
}

static void find_offsets(struct het_arena *arena, struct account *account)
{
    struct state *state = account->state;
    struct het_rank_node *ranks;
    size_t count = het_plan_rank_nodes(arena, state->new, &ranks);
    account->rank_offset = HET_ARENA_ARRAY(arena, uint32_t, state->used);
    /* Nodes in use begin with those of the new plan, by first appearance. */
    for (size_t n = 0; n < count; n++) {
        account->rank_offset[n] = ranks[n].rank_offset;
        account->migration->rank_count += ranks[n].gpu_count;
    }
}

/* Bytes that the GPUs of a node need, each once. */
static double needed_bytes(const struct state *state, size_t n)
{
    double bytes = 0;
    for (uint32_t l = 0; l < state->layer_count; l++)
        bytes += state->cell_bytes[l] *
                 count_bits(state->needed[n * state->layer_count + l]);
    return bytes;
}

/* Everything is read from storage that all nodes share. */
static void find_shared_bottleneck(const struct state *state,
                                   struct het_migration *migration)
{
    double all = 0;
    migration->bottleneck_node = HET_UNBOUND;
    if (migration->ranks_kept == migration->rank_count &&
        het_plan_gpu_count(state->old) == migration->rank_count)
        return;
    for (size_t n = 0; n < state->used; n++) {
        double bytes = needed_bytes(state, n);
        all += bytes;
        if (bytes / uplink(state, n) > migration->seconds) {
            migration->seconds = bytes / uplink(state, n);
            migration->bottleneck = HET_MIGRATE_UPLINK_IN;
            migration->bottleneck_node = state->nodes[n];
        }
    }
    double storage_s = all / state->rates->cloud_bytes_per_s;
    if (storage_s > migration->seconds) {
        migration->seconds = storage_s;
        migration->bottleneck = HET_MIGRATE_CLOUD;
        migration->bottleneck_node = HET_UNBOUND;
    }
}

static void find_bottleneck(const struct state *state, struct het_migration *migration)
{
    migration->bottleneck_node = HET_UNBOUND;
    for (size_t n = 0; n < state->used; n++) {
        const double seconds[] = {
            [HET_MIGRATE_DISK] = state->disk_bytes[n] / state->rates->disk_bytes_per_s,
            [HET_MIGRATE_UPLINK_OUT] = state->out_bytes[n] / uplink(state, n),
            [HET_MIGRATE_UPLINK_IN] = state->in_bytes[n] / uplink(state, n),
        };
        for (int r = HET_MIGRATE_DISK; r <= HET_MIGRATE_UPLINK_IN; r++)
            if (seconds[r] > migration->seconds) {
                migration->seconds = seconds[r];
                migration->bottleneck = (enum het_migrate_resource)r;
                migration->bottleneck_node = state->nodes[n];
            }
    }
    double cloud_s = state->cloud_bytes / state->rates->cloud_bytes_per_s;
    if (cloud_s > migration->seconds) {
        migration->seconds = cloud_s;
        migration->bottleneck = HET_MIGRATE_CLOUD;
        migration->bottleneck_node = HET_UNBOUND;
    }
}

struct het_migration het_migrate(struct het_arena *arena,
                                 const struct het_problem *problem,
                                 const struct het_plan *old, const struct het_plan *new,
                                 const struct het_migrate_rates *rates)
{
    struct het_arena *scratch = het_arena_new();
    struct het_migration migration = { 0 };
    struct state state;
    state_init(&state, scratch, problem, old, new, rates);
    struct account account = {
        .state = &state,
        .migration = &migration,
        .everyone = HET_ARENA_ARRAY(scratch, shard_bits, state.layer_count),
    };
    for (uint32_t l = 0; l < state.layer_count; l++) {
        for (size_t n = 0; n < state.used; n++)
            account.everyone[l] |= state.held[n * state.layer_count + l];
        fetch_layer(&state, l);
        migration.state_bytes += state.cell_bytes[l] * state.cells;
    }
    migration.write_s = migration.state_bytes / state.rates->cloud_bytes_per_s;
    find_offsets(scratch, &account);
    account.ranks = HET_ARENA_ARRAY(arena, struct het_migrate_rank, migration.rank_count);
    each_replica(new, count_replica, &account);
    find_keepers(scratch, &account);
    migration.ranks = account.ranks;
    for (size_t n = 0; n < state.used; n++)
        migration.peer_bytes += state.in_bytes[n];
    migration.cloud_bytes = state.cloud_bytes;
    migration.peer_bytes -= state.cloud_bytes;
    if (state.rates->is_shared)
        find_shared_bottleneck(&state, &migration);
    else
        find_bottleneck(&state, &migration);
    het_arena_free(scratch);
    return migration;
}

/* ---- placing ---- */

/* A node of the plan may stand on a node of the cluster. */
struct pairing {
    double bytes; /* that stay */
    uint32_t from, to;
};

static int compare_pairings(const void *left, const void *right)
{
    const struct pairing *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    /* Staying where it is is as good a way as any to break a tie. */
    bool a_stays = a->from == a->to, b_stays = b->from == b->to;
    if (a_stays != b_stays)
        return a_stays ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Liked equally, too: a plan does not leave better nodes for what others hold. */
static bool is_equal_node(const struct het_cluster *cluster, uint32_t a, uint32_t b)
{
    const struct het_node *x = &cluster->nodes[a], *y = &cluster->nodes[b];
    return !het_node_compare(x, y) && x->preference == y->preference;
}

/* Bytes that cluster node `to` holds of what plan node `from` needs. */
static double common_bytes(const struct state *state, uint32_t from, uint32_t to)
{
    if (!state->index_of[to])
        return 0;
    const shard_bits *needed = state->needed +
                               (size_t)(state->index_of[from] - 1) * state->layer_count;
    const shard_bits *held = state->held +
                             (size_t)(state->index_of[to] - 1) * state->layer_count;
    double bytes = 0;
    for (uint32_t l = 0; l < state->layer_count; l++)
        bytes += state->cell_bytes[l] * count_bits(needed[l] & held[l]);
    return bytes;
}

/* Where each node of the plan goes; [cluster node]. */
static const uint32_t *pair_nodes(struct het_arena *arena, const struct state *state,
                                  size_t plan_nodes)
{
    const struct het_cluster *cluster = state->problem->cluster;
    uint32_t *goes = HET_ARENA_ARRAY(arena, uint32_t, cluster->node_count);
    bool *taken = HET_ARENA_ARRAY(arena, bool, cluster->node_count);
    size_t count = 0, capacity = 0;
    struct pairing *pairings = NULL;
    for (size_t n = 0; n < plan_nodes; n++)
        for (uint32_t to = 0; to < cluster->node_count; to++) {
            uint32_t from = state->nodes[n];
            if (!is_equal_node(cluster, from, to))
                continue;
            ARRAY_RESERVE(pairings, &capacity, count + 1);
            pairings[count++] =
                (struct pairing){ common_bytes(state, from, to), from, to };
        }
    if (count)
        qsort(pairings, count, sizeof *pairings, compare_pairings);
    memset(goes, 0xff, cluster->node_count * sizeof *goes);
    for (size_t i = 0; i < count; i++) {
        const struct pairing *pairing = &pairings[i];
        if (goes[pairing->from] != HET_UNBOUND || taken[pairing->to])
            continue;
        goes[pairing->from] = pairing->to;
        taken[pairing->to] = true;
    }
    xfree(pairings);
    return goes;
}

/* Pairs grow with the square of the nodes; beyond this the plan stays where it is. */
#define MAX_PLACED_NODES 2048u

const struct het_plan *het_migrate_place(struct het_arena *arena,
                                         const struct het_problem *problem,
                                         const struct het_plan *old,
                                         const struct het_plan *plan)
{
    if (problem->cluster->node_count > MAX_PLACED_NODES)
        return plan;
    struct het_arena *scratch = het_arena_new();
    struct het_rank_node *ranks;
    struct state state;
    state_init(&state, scratch, problem, old, plan, NULL);
    size_t plan_nodes = het_plan_rank_nodes(scratch, plan, &ranks);
    const uint32_t *goes = pair_nodes(scratch, &state, plan_nodes);
    struct het_replica *replicas;
    struct het_plan *placed = het_plan_copy_replicas(arena, plan, &replicas);
    for (size_t i = het_plan_replica_count(plan); i-- > 0;) {
        replicas[i].node = goes[replicas[i].node];
        replicas[i].node_name = problem->cluster->nodes[replicas[i].node].name;
    }
    placed->idle_count = 0;
    het_arena_free(scratch);
    return placed;
}
