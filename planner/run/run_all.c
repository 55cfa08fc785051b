#include "planner/run/run_all.h"

#include "planner/algo/amp.h"
#include "planner/algo/autohet/autohet.h"
#include "planner/algo/ditto/ditto.h"
#include "planner/algo/exhaustive.h"
#include "planner/algo/megatron.h"
#include "planner/algo/metis/metis.h"
#include "planner/algo/metis/oomfirst.h"
#include "planner/algo/optimal/optimal.h"
#include "planner/algo/repair/repair.h"
#include "planner/base/vendor.h"
#include "planner/cost/bound.h"
#include "planner/cost/infeasible.h"
#include "planner/model/vendor_group.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct het_algorithm *const *het_search_algorithms(void)
{
    static const struct het_algorithm *const algorithms[] = {
        &het_algo_megatron,      //
        &het_algo_metis,         //
        &het_algo_oomfirst,      //
        &het_algo_amp,           //
        &het_algo_amp_sa,        //
        &het_algo_ditto,         //
        &het_algo_ditto_greedy,  //
        &het_algo_autohet,       //
        &het_algo_repair,        //
        &het_algo_optimal,       //
        &het_algo_exhaustive,    //
        &het_algo_metis_walk,    //
        &het_algo_oomfirst_walk, //
        NULL,
    };
    return algorithms;
}

static const struct het_algorithm *find_algorithm(const char *name)
{
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++)
        if (!strcmp((*a)->name, name))
            return *a;
    return NULL;
}

int het_search_check_name(const char *name, struct het_error *err)
{
    if (!strcmp(name, "auto") || find_algorithm(name))
        return 0;
    struct het_arena *arena = het_arena_new();
    const char *names = "auto";
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++)
        names = het_arena_printf(arena, "%s, %s", names, (*a)->name);
    int result =
        het_fail(err, HET_BAD_INPUT, "no algorithm \"%.60s\"; there are %s", name, names);
    het_arena_free(arena);
    return result;
}

/* The algorithms to run, NULL at the end: all for auto, and for one that starts from the
 * others. */
static int choose_algorithms(const struct het_search_options *options,
                             const struct het_algorithm **ret, struct het_error *err)
{
    const char *name = options->algorithm;
    bool all = !name || !*name || !strcmp(name, "auto");
    const struct het_algorithm *named = all ? NULL : find_algorithm(name);
    size_t count = 0;
    if (!all && !named)
        return het_search_check_name(name, err);
    all = all || named->starts_from_others;
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++)
        if (*a == named ||
            (all && !(*a)->is_apart && (options->from || !(*a)->needs_from)))
            ret[count++] = *a;
    ret[count] = NULL;
    return 0;
}

/* ---- parts of the cluster ---- */

/* Up to this many nodes of a type, every number of them is a choice. */
#define MAX_COUNTED_NODES 8u

/* How much of one type a part takes. */
struct share {
    uint32_t gpus, trim; /* nodes give multiples of `trim` */
};

struct part {
    struct share *shares; /* [type] */
    uint64_t gpus;
    double speed;   /* samples a second, roughly: for the order */
    double floor_s; /* no plan on it is faster; 0: not asked yet */
    size_t index;   /* as they were found */
    bool is_done;   /* searched to the end, or cannot win */
    bool is_winner;
};

/* Shares of one type that are tried. */
struct choices {
    struct share shares[96];
    size_t count;
    uint32_t most, least; /* of this type, by the job's limits */
    double speed;         /* of one GPU */
};

struct parts {
    const struct het_problem *problem;
    struct het_arena *arena;
    struct choices *types; /* [type] */
    size_t type_count;
    struct part *items;
    size_t count, capacity;
    struct het_bound_rows *rows;
};

static uint32_t trimmed(const struct het_cluster *cluster, uint32_t type, uint32_t trim)
{
    uint32_t gpus = 0;
    for (size_t n = 0; n < cluster->node_count; n++)
        if (cluster->nodes[n].type == type)
            gpus += cluster->nodes[n].gpu_count / trim * trim;
    return gpus;
}

static void add_choice(struct choices *choices, uint32_t gpus, uint32_t trim)
{
    if (gpus < choices->least || gpus > choices->most ||
        choices->count == sizeof choices->shares / sizeof *choices->shares)
        return;
    for (size_t i = 0; i < choices->count; i++)
        if (choices->shares[i].gpus == gpus && choices->shares[i].trim == trim)
            return;
    choices->shares[choices->count++] = (struct share){ gpus, trim };
}

/* Samples a second of one GPU of the type, at its best measured point. */
static double gpu_speed(const struct het_problem *problem, uint32_t type)
{
    const struct het_profile *profile = problem->profile;
    double best = 0;
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *point = &profile->measurements[i];
        double seconds = point->forward_s[profile->layer_count] +
                         point->backward_s[profile->layer_count];
        if (point->type == problem->profile_type[type] && seconds > 0)
            best = fmax(best, point->microbatch / (seconds * point->tp));
    }
    return best;
}

/* A node of the type at hand, as a part may use it. */
struct ranked_node {
    const struct het_node *node;
    uint32_t index, gpus;
};

/* The larger first, then the better connected, then the better liked, then input order.
 */
static int compare_nodes(const void *left, const void *right)
{
    const struct ranked_node *a = left, *b = right;
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus ? -1 : 1;
    if (a->node->uplink_bytes_per_s != b->node->uplink_bytes_per_s)
        return a->node->uplink_bytes_per_s > b->node->uplink_bytes_per_s ? -1 : 1;
    if (a->node->preference != b->node->preference)
        return a->node->preference > b->node->preference ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static struct ranked_node *rank_nodes(const struct het_cluster *cluster, uint32_t type,
                                      uint32_t trim, size_t *ret_count)
{
    struct ranked_node *ranked = xcalloc(cluster->node_count, sizeof *ranked);
    *ret_count = 0;
    for (uint32_t n = 0; n < cluster->node_count; n++)
        if (cluster->nodes[n].type == type)
            ranked[(*ret_count)++] =
                (struct ranked_node){ .node = &cluster->nodes[n],
                                      .index = n,
                                      .gpus = cluster->nodes[n].gpu_count / trim * trim };
    qsort(ranked, *ret_count, sizeof *ranked, compare_nodes);
    return ranked;
}

/* The GPUs of the first one, two, ... nodes as they will be taken, where nodes are few.
 */
static void add_node_choices(const struct het_cluster *cluster, uint32_t type,
                             struct choices *choices)
{
    size_t count;
    auto_free struct ranked_node *ranked = rank_nodes(cluster, type, 1, &count);
    uint32_t gpus = 0;
    for (size_t i = 0; i < count && count <= MAX_COUNTED_NODES; i++) {
        gpus += ranked[i].gpus;
        add_choice(choices, gpus, 1);
    }
}

static void fill_choices(struct parts *parts, uint32_t type)
{
    const struct het_problem *problem = parts->problem;
    const struct het_cluster *cluster = problem->cluster;
    struct choices *choices = &parts->types[type];
    bool usable = problem->profile_type[type] != HET_NO_TYPE;
    uint32_t have = usable ? het_cluster_type_gpu_count(cluster, type) : 0;
    const struct het_type_limit *limit =
        het_workload_find_limit(problem->workload, cluster->types[type].name);
    choices->most = usable ? het_problem_usable_gpus(problem, type) : 0;
    choices->least = limit ? limit->min_gpus : 0;
    choices->speed = usable ? gpu_speed(problem, type) : 0;
    add_choice(choices, choices->most, 1);
    add_choice(choices, choices->least, 1);
    add_choice(choices, 0, 1);
    uint32_t power = 1;
    while (power <= choices->most / 2)
        power *= 2;
    for (uint32_t gpus = power; gpus && choices->most; gpus /= 2)
        add_choice(choices, gpus, 1);
    for (uint32_t gpus = choices->most / 2; gpus; gpus /= 2)
        add_choice(choices, gpus, 1);
    if (choices->most)
        add_node_choices(cluster, type, choices);
    for (size_t i = 0; usable && i < problem->profile->bytes_count; i++) {
        uint32_t trim = problem->profile->bytes[i].tp;
        uint32_t gpus = trim ? trimmed(cluster, type, trim) : have;
        if (gpus != have && gpus)
            add_choice(choices, gpus < choices->most ? gpus : choices->most, trim);
    }
}

static void add_part(struct parts *parts, const struct share *shares)
{
    const struct het_workload *workload = parts->problem->workload;
    struct part part = { 0 };
    for (size_t t = 0; t < parts->type_count; t++) {
        const struct choices *choices = &parts->types[t];
        if (shares[t].gpus < choices->least || shares[t].gpus > choices->most)
            return;
        part.gpus += shares[t].gpus;
        part.speed += shares[t].gpus * choices->speed;
    }
    if (!part.gpus || part.gpus < workload->min_gpus ||
        (workload->max_gpus && part.gpus > workload->max_gpus))
        return;
    size_t bytes = parts->type_count * sizeof *shares;
    part.index = parts->count;
    part.shares = HET_ARENA_ARRAY(parts->arena, struct share, parts->type_count);
    memcpy(part.shares, shares, bytes);
    ARRAY_RESERVE(parts->items, &parts->capacity, parts->count + 1);
    parts->items[parts->count++] = part;
}

/* The part itself; and where the job caps its GPUs, with one type filling up to the cap.
 */
static void add_parts_near(struct parts *parts, struct share *shares)
{
    uint32_t cap = parts->problem->workload->max_gpus;
    add_part(parts, shares);
    uint64_t total = 0;
    for (size_t t = 0; t < parts->type_count; t++)
        total += shares[t].gpus;
    for (size_t t = 0; cap && t < parts->type_count; t++) {
        struct share kept = shares[t];
        uint64_t others = total - kept.gpus;
        if (others >= cap)
            continue;
        uint64_t fill = cap - others;
        shares[t].gpus = fill < parts->types[t].most ? (uint32_t)fill
                                                     : parts->types[t].most;
        shares[t].trim = 1;
        add_part(parts, shares);
        shares[t] = kept;
    }
}

/* Combinations looked at before the best HET_SEARCH_MAX_PARTS are kept. */
#define MAX_COMBINATIONS 4096u

static int compare_index(const struct part *a, const struct part *b)
{
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The one that can compute most first, of equal ones the one found first. */
static int compare_parts(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    if (a->speed != b->speed)
        return a->speed > b->speed ? -1 : 1;
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus ? -1 : 1;
    return compare_index(a, b);
}

static int compare_shares(const void *left, const void *right, void *context)
{
    const struct part *a = left, *b = right;
    const struct parts *parts = context;
    int order = memcmp(a->shares, b->shares, parts->type_count * sizeof *a->shares);
    return order ? order : compare_index(a, b);
}

/* Of equal parts the one found first stays. */
static void drop_repetitions(struct parts *parts)
{
    size_t kept = 0, bytes = parts->type_count * sizeof *parts->items->shares;
    qsort_r(parts->items, parts->count, sizeof *parts->items, compare_shares, parts);
    for (size_t i = 0; i < parts->count; i++)
        if (!kept || memcmp(parts->items[kept - 1].shares, parts->items[i].shares, bytes))
            parts->items[kept++] = parts->items[i];
    parts->count = kept;
}

static bool is_inside_a_node(const struct parts *parts, const struct part *part)
{
    for (uint32_t t = 0; t < parts->type_count; t++)
        if (part->shares[t].gpus == part->gpus)
            return part->gpus <=
                   het_cluster_largest_node_gpus(parts->problem->cluster, t);
    return false;
}

/* Moves the parts inside a node right behind the first part, in the order they have. */
static void advance_single_nodes(struct parts *parts)
{
    size_t to = 1;
    for (size_t i = 1; i < parts->count; i++) {
        struct part part = parts->items[i];
        if (!is_inside_a_node(parts, &part))
            continue;
        memmove(parts->items + to + 1, parts->items + to,
                (i - to) * sizeof *parts->items);
        parts->items[to++] = part;
    }
}

static void sort_parts(struct parts *parts)
{
    if (!parts->count)
        return;
    drop_repetitions(parts);
    qsort(parts->items, parts->count, sizeof *parts->items, compare_parts);
    if (parts->count > HET_SEARCH_MAX_PARTS)
        parts->count = HET_SEARCH_MAX_PARTS;
    advance_single_nodes(parts);
}

/* Where choices are made one type after the other. */
struct combining {
    struct parts *parts;
    uint32_t *order; /* types, the one that changes last first */
    uint64_t *least; /* GPUs that the job wants of the types from each place on */
    struct share *shares;
    size_t looked_at;
};

/* Whether parts may come of `gpus` of the types before the `at`th place, at most
 * `largest` of one type: one type's share may still be cut to the job's cap. */
static bool may_fit(const struct combining *combining, size_t at, uint64_t gpus,
                    uint32_t largest)
{
    uint64_t cap = combining->parts->problem->workload->max_gpus;
    uint64_t rest = gpus - largest + combining->least[at];
    return !cap || rest < cap || (rest == cap && !largest);
}

static void combine(struct combining *combining, size_t at, uint64_t gpus,
                    uint32_t largest)
{
    struct parts *parts = combining->parts;
    if (combining->looked_at == MAX_COMBINATIONS ||
        !may_fit(combining, at, gpus, largest))
        return;
    if (at == parts->type_count) {
        combining->looked_at++;
        add_parts_near(parts, combining->shares);
        return;
    }
    uint32_t type = combining->order[at];
    const struct choices *choices = &parts->types[type];
    for (size_t i = 0; i < choices->count; i++) {
        uint32_t share = choices->shares[i].gpus;
        if (share < choices->least)
            continue;
        combining->shares[type] = choices->shares[i];
        combine(combining, at + 1, gpus + share, share > largest ? share : largest);
    }
}

static uint64_t *least_from(const struct parts *parts, const uint32_t *order)
{
    uint64_t *least = HET_ARENA_ARRAY(parts->arena, uint64_t, parts->type_count + 1);
    for (size_t at = parts->type_count; at-- > 0;)
        least[at] = least[at + 1] + parts->types[order[at]].least;
    return least;
}

/* The last type first; but where there are too many combinations to look at them all, the
 * fastest, so that those that are looked at have many GPUs of it. */
static uint32_t *order_types(const struct parts *parts)
{
    uint32_t *order = HET_ARENA_ARRAY(parts->arena, uint32_t, parts->type_count);
    double combinations = 1;
    for (uint32_t t = 0; t < parts->type_count; t++)
        combinations *= (double)parts->types[t].count;
    for (uint32_t t = 0; t < parts->type_count; t++) {
        size_t at = t;
        for (; at && (combinations <= MAX_COMBINATIONS ||
                      parts->types[order[at - 1]].speed <= parts->types[t].speed);
             at--)
            order[at] = order[at - 1];
        order[at] = t;
    }
    return order;
}

static void find_parts(struct parts *parts)
{
    for (uint32_t t = 0; t < parts->type_count; t++) {
        fill_choices(parts, t);
        if (!parts->types[t].count)
            return; /* the job wants more of this type than there is */
    }
    uint32_t *order = order_types(parts);
    struct combining combining = {
        .parts = parts,
        .order = order,
        .least = least_from(parts, order),
        .shares = HET_ARENA_ARRAY(parts->arena, struct share, parts->type_count),
    };
    combine(&combining, 0, 0, 0);
    sort_parts(parts);
}

/* Gives `share` of `type` to nodes: whole ones as long as one is not enough, then the
 * smallest that has the rest. */
static void place_share(const struct het_cluster *cluster, uint32_t type,
                        struct share share, struct het_node *nodes)
{
    size_t count, next = 0;
    auto_free struct ranked_node *ranked = rank_nodes(cluster, type, share.trim, &count);
    uint32_t rest = share.gpus;
    for (; next < count && ranked[next].gpus <= rest; next++) {
        nodes[ranked[next].index].gpu_count = ranked[next].gpus;
        rest -= ranked[next].gpus;
    }
    if (!rest || next == count)
        return;
    size_t last = next;
    while (last + 1 < count && ranked[last + 1].gpus >= rest)
        last++;
    while (last > next && ranked[last - 1].gpus == ranked[last].gpus)
        last--; /* the best connected of them */
    nodes[ranked[last].index].gpu_count = rest;
}

static const struct het_cluster *part_cluster(struct het_arena *arena,
                                              const struct het_cluster *cluster,
                                              const struct part *part)
{
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, cluster->node_count);
    for (size_t n = 0; n < cluster->node_count; n++) {
        nodes[n] = cluster->nodes[n];
        nodes[n].gpu_count = 0;
    }
    for (uint32_t t = 0; t < cluster->type_count; t++)
        if (part->shares[t].gpus)
            place_share(cluster, t, part->shares[t], nodes);
    struct het_cluster *smaller = het_arena_alloc(arena, sizeof *smaller);
    *smaller = *cluster;
    smaller->nodes = nodes;
    return smaller;
}

/* ---- running ---- */

static bool can_win(const struct het_search *search, struct parts *parts,
                    struct part *part)
{
    if (!search->incumbent)
        return true;
    struct het_problem problem = *search->problem;
    problem.cluster = search->available;
    if (part->floor_s == 0)
        part->floor_s = het_bound_floor_of_part(parts->rows, &problem);
    double slack = search->preference ? HET_PREFERENCE_SLACK : 0;
    return part->floor_s < search->incumbent_cost.iteration_s * (1 + slack);
}

/* Of the effort for a first look, each part may use this fraction of what is left, so
 * that the parts that can compute most are looked at longest. */
#define LOOK_SHARES 16u

static int run_part(struct het_search *search, struct parts *parts, struct part *part,
                    uint64_t effort, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    const struct het_plan *before = search->incumbent;
    search->available = part_cluster(arena, search->problem->cluster, part);
    search->scratch = arena;
    search->effort_left = effort;
    int result = 0;
    part->is_done = !can_win(search, parts, part);
    if (!part->is_done) {
        result = search->algorithm->run(search, err);
        part->is_done = search->effort_left > 0;
        part->is_winner = search->incumbent != before;
    }
    search->available = search->problem->cluster;
    search->scratch = NULL;
    het_arena_free(arena);
    return result;
}

/* The part to go on with: the one that the incumbent is of, else the first. */
static struct part *next_part(struct parts *parts)
{
    struct part *next = NULL;
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        if (!part->is_done && (!next || part->is_winner))
            next = part;
    }
    return next;
}

static int run_parts(struct het_search *search, struct parts *parts, uint64_t effort,
                     struct het_error *err)
{
    int result = 0;
    for (size_t i = 0; i < parts->count; i++)
        parts->items[i].is_done = parts->items[i].is_winner = false;
    for (size_t i = 0; i < parts->count && result == 0 && !search->is_cut_short; i++) {
        size_t rest = parts->count - i;
        uint64_t look = effort / 4 * 3 - search->effort_spent;
        uint64_t share = i ? look / (rest < LOOK_SHARES ? rest : LOOK_SHARES) : look / 2;
        result = run_part(search, parts, &parts->items[i], share ? share : 1, err);
        for (size_t j = 0; j < i && parts->items[i].is_winner; j++)
            parts->items[j].is_winner = false;
        if (search->effort_spent >= effort / 4 * 3)
            break;
    }
    struct part *part;
    while (result == 0 && !search->is_cut_short && search->effort_spent < effort &&
           (part = next_part(parts))) {
        uint64_t left = effort - search->effort_spent;
        result = run_part(search, parts, part, (left + 1) / 2, err);
        part->is_done = true;
    }
    return result;
}

/* An algorithm that leaves GPUs idle by itself. */
static int run_whole(struct het_search *search, uint64_t effort, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    search->scratch = arena;
    search->effort_left = effort;
    int result = search->algorithm->run(search, err);
    search->scratch = NULL;
    het_arena_free(arena);
    return result;
}

/* One algorithm. It starts without an incumbent, so that what it finds does not depend on
 * the others; or from the best of them. */
static int run_algorithm(struct het_search *search, struct parts *parts,
                         const struct het_algorithm *algorithm, uint64_t effort,
                         struct het_error *err)
{
    search->algorithm = algorithm;
    if (!algorithm->starts_from_others)
        search->incumbent = NULL;
    het_shortlist_clear(search->shortlist);
    search->effort_spent = 0;
    search->is_optimal = false;
    int result = 0;
    if (algorithm->is_whole && parts->count)
        result = run_whole(search, effort, err);
    else
        result = run_parts(search, parts, effort, err);
    if (search->effort_spent >= effort)
        search->has_run_out = true;
    return result == 0 ? 0 : het_wrap(err, "algorithm %s", algorithm->name);
}

/* Keeps the fastest plans, distinct in their times. */
static void add_seed(struct het_search *search, const struct het_plan *plan,
                     double seconds)
{
    size_t at = 0;
    while (at < search->seed_count && search->seed_s[at] < seconds)
        at++;
    if (at == HET_SEARCH_MAX_SEEDS ||
        (at < search->seed_count && search->seed_s[at] == seconds))
        return;
    if (search->seed_count < HET_SEARCH_MAX_SEEDS)
        search->seed_count++;
    for (size_t i = search->seed_count - 1; i > at; i--) {
        search->seeds[i] = search->seeds[i - 1];
        search->seed_s[i] = search->seed_s[i - 1];
    }
    search->seeds[at] = plan;
    search->seed_s[at] = seconds;
}

/* Whether the algorithm, as one of `count`, would do what "metis" has done. */
static bool is_repetition(const struct het_search *search,
                          const struct het_algorithm *algorithm, size_t count)
{
    return count > 1 && algorithm->repeats_metis && !search->has_short_stages;
}

/* All algorithms; the best plan by simulation is the incumbent in the end, the first of
 * equal ones, or one that is nearly as fast and liked better (preference.h). */
static int run_algorithms(struct het_search *search, struct parts *parts,
                          const struct het_algorithm **algorithms, uint64_t effort,
                          struct het_error *err)
{
    const struct het_plan *best = NULL;
    struct het_cost best_cost = { 0 }, cost;
    bool is_optimal = false;
    size_t count = 0;
    while (algorithms[count])
        count++;
    for (; *algorithms && !search->is_cut_short; algorithms++) {
        if (is_repetition(search, *algorithms, count))
            continue;
        search->incumbent = best;
        search->incumbent_cost = best_cost;
        if (best && !(*algorithms)->is_simulated)
            het_cost_plan(search->problem, best, &search->incumbent_cost, NULL);
        if (run_algorithm(search, parts, *algorithms, effort, err) < 0)
            return -1;
        is_optimal = is_optimal || search->is_optimal;
        const struct het_plan *plan =
            het_shortlist_best(search->shortlist, search->problem, &cost);
        if (!plan)
            continue;
        plan = het_plan_copy(search->arena, plan);
        add_seed(search, plan, cost.iteration_s);
        if (!best || cost.iteration_s < best_cost.iteration_s) {
            best = plan;
            best_cost = cost;
        }
    }
    if (best && search->preference) {
        const struct het_plan *chosen =
            het_preference_choose(search->preference, best, &best_cost);
        is_optimal = is_optimal && chosen == best;
        best = chosen == best ? best : het_plan_copy(search->arena, chosen);
    }
    search->is_optimal = is_optimal;
    search->incumbent = best;
    search->incumbent_cost = best_cost;
    return 0;
}

/* ---- the answer ---- */

/* What was not looked at may fit. */
static int fail_early(const struct het_search *search, uint64_t effort,
                      struct het_error *err)
{
    bool has_miss = search->nearest_miss_ratio > 0;
    return het_fail(
        err, HET_NO_PLAN,
        "no plan was found within --effort %llu; more effort may find one%s%s",
        (unsigned long long)effort, has_miss ? ". The nearest miss " : "",
        has_miss ? search->nearest_miss : "");
}

/* The least measured degree that the job allows on a type that it may use; and the most
 * GPUs of a node of such a type. */
static bool has_replica(const struct het_problem *problem, const struct parts *parts,
                        uint32_t *ret_least_degree, uint32_t *ret_most_gpus)
{
    const struct het_cluster *cluster = problem->cluster;
    const struct het_profile *profile = problem->profile;
    bool found = false;
    *ret_least_degree = UINT32_MAX;
    *ret_most_gpus = 0;
    for (size_t n = 0; n < cluster->node_count; n++) {
        const struct het_node *node = &cluster->nodes[n];
        if (!parts->types[node->type].most)
            continue;
        if (*ret_most_gpus < node->gpu_count)
            *ret_most_gpus = node->gpu_count;
        for (size_t i = 0; i < profile->measurement_count; i++) {
            const struct het_measurement *measured = &profile->measurements[i];
            if (measured->type != problem->profile_type[node->type] ||
                !het_workload_allows_tensor_parallel(problem->workload, measured->tp))
                continue;
            if (*ret_least_degree > measured->tp)
                *ret_least_degree = measured->tp;
            found = found || measured->tp <= node->gpu_count;
        }
    }
    return found;
}

static int fail_no_replica(const struct het_search *search, uint32_t least_degree,
                           uint32_t most_gpus, struct het_error *err)
{
    const char *limits = search->problem->workload->tensor_parallel_count
                             ? " and that the job allows"
                             : "";
    if (least_degree == UINT32_MAX)
        return het_fail(err, HET_NO_PLAN,
                        "no plan: there is no tensor-parallel degree that the profile "
                        "has for these GPUs%s; measure or allow another",
                        limits);
    return het_fail(err, HET_NO_PLAN,
                    "no plan: no node has GPUs enough for a tensor-parallel degree that "
                    "the profile has for them%s: the least is %u, the largest node has "
                    "%u GPUs; measure or allow lower degrees",
                    limits, least_degree, most_gpus);
}

/* -1, with the reason, if there can be no plan, however long is searched. */
static int prove_no_plan(const struct het_search *search, const struct parts *parts,
                         struct het_error *err)
{
    const struct het_workload *workload = search->problem->workload;
    uint64_t usable = 0;
    for (size_t t = 0; t < parts->type_count; t++) {
        const struct choices *choices = &parts->types[t];
        usable += choices->most;
        if (choices->least > choices->most)
            return het_fail(err, HET_NO_PLAN,
                            "no plan: the job wants at least %u GPUs of type %s, the "
                            "cluster has %u; wait for more, or lower that limit",
                            choices->least, search->problem->cluster->types[t].name,
                            choices->most);
    }
    if (usable < workload->min_gpus)
        return het_fail(err, HET_NO_PLAN,
                        "no plan: the job wants at least %u GPUs, the cluster has %llu "
                        "of types that it can use; wait for more, or lower that limit",
                        workload->min_gpus, (unsigned long long)usable);
    if (!parts->count)
        return het_fail(err, HET_NO_PLAN,
                        "no plan: no choice of GPUs meets the job's limits (at least %u, "
                        "at most %u, and those of single types)",
                        workload->min_gpus, workload->max_gpus);
    uint32_t least_degree, most_gpus;
    if (!has_replica(search->problem, parts, &least_degree, &most_gpus))
        return fail_no_replica(search, least_degree, most_gpus, err);
    char proof[512];
    if (het_infeasible_memory(search->problem, proof, sizeof proof))
        return het_fail(err, HET_NO_PLAN, "no plan fits in memory: %s", proof);
    return 0;
}

static int fail_no_plan(const struct het_search *search, uint64_t effort,
                        struct het_error *err)
{
    const struct het_workload *workload = search->problem->workload;
    if (search->inexpressible_count)
        return het_fail(err, HET_NO_PLAN,
                        "no plan that %s can run was found: the plans that fit need %s; "
                        "take a runtime that has it, or more of one GPU type",
                        workload->runtime->title,
                        het_freedom_text(search->missing_freedom));
    if (search->has_run_out)
        return fail_early(search, effort, err);
    if (search->nearest_miss_ratio > 0)
        return het_fail(
            err, HET_NO_PLAN,
            "no plan fits in memory: the nearest miss %s. More GPUs, GPUs with more "
            "memory, a profile of higher tensor-parallel degrees or smaller micro-"
            "batches%s would help",
            search->nearest_miss,
            workload->memory_headroom > 0       ? ", or less memory headroom"
            : workload->state_reserve_bytes > 0 ? ", or a smaller --state-reserve-bytes,"
                                                : "");
    return het_fail(
        err, HET_NO_PLAN,
        "no plan: a global batch of %u cannot be shared out over micro-batches that the "
        "profile has, within the job's limits on micro-batch sizes, tensor-parallel and "
        "data-parallel degrees; allow or measure more of them, or change the batch",
        workload->global_batch);
}

/* The winner once more past the checker, memory and simulation; then what is known of it.
 */
static const struct het_plan *finish(struct het_arena *arena,
                                     const struct het_search *search, uint64_t effort)
{
    const struct het_problem *problem = search->problem;
    struct het_plan *plan = het_plan_copy(arena, search->incumbent);
    het_plan_fill_idle(arena, problem->cluster, plan);

    struct het_violations violations = { 0 };
    struct het_peak_memory *peaks;
    size_t peak_count;
    struct het_cost cost, closed_form;
    size_t violation_count = het_plan_check(arena, problem, plan, &violations);
    assert(violation_count == 0);
    size_t misfits =
        het_memory_plan(arena, problem, plan, &peaks, &peak_count, &violations);
    assert(misfits == 0);
    int priced = het_cost_plan(problem, plan, &closed_form, NULL);
    int simulated = het_schedule_simulate(NULL, problem, plan, &cost, NULL, NULL);
    assert(priced == 0);
    assert(simulated == 0);

    double bound_s = search->options->no_bound ? 0 : het_bound_iteration(problem);
    assert(bound_s <= cost.iteration_s);
    if (search->is_optimal)
        bound_s = cost.iteration_s;
    if (search->options->algorithm && find_algorithm(search->options->algorithm))
        plan->algorithm = find_algorithm(search->options->algorithm)->name;
    plan->predicted = (struct het_prediction){
        .iteration_s = cost.iteration_s,
        .closed_form_s = closed_form.iteration_s,
        .samples_per_s = plan->global_batch / cost.iteration_s,
        .lower_bound_s = bound_s,
        .pipeline_s = cost.pipeline_s,
        .gradient_sync_s = cost.sync_s,
        .optimizer_s = cost.step_s,
        .peak_memory = peaks,
        .peak_memory_count = peak_count,
    };
    plan->search = (struct het_search_report){
        .effort = effort,
        .plans_priced = search->statistics.plans_priced,
        .has_statistics = search->options->statistics,
        .statistics = search->statistics,
        .seed = search->options->seed,
        .is_cut_short = search->is_cut_short,
        .optimal = plan->predicted.lower_bound_s >= cost.iteration_s,
        .has_run_out = search->has_run_out &&
                       plan->predicted.lower_bound_s < cost.iteration_s,
    };
    return plan;
}

static int fail_cut_short(struct het_error *err)
{
    return het_fail(err, HET_CUT_SHORT,
                    "the search was told to stop before it had found a plan");
}

/* What came of a search of one group of GPUs (vendor_group.h). */
struct outcome {
    const struct het_plan *plan; /* NULL: none */
    struct het_search_statistics statistics;
    bool is_impossible; /* proved: there can be no plan */
    bool has_run_out;   /* of effort */
    bool is_cut_short;
};

static int fail(const struct het_search *search, const struct parts *parts,
                uint64_t effort, struct outcome *ret, struct het_error *err)
{
    if (search->is_cut_short)
        return fail_cut_short(err);
    int proof = prove_no_plan(search, parts, err);
    ret->is_impossible = proof < 0 || search->is_optimal;
    return proof < 0 ? -1 : fail_no_plan(search, effort, err);
}

/* GPUs that may all be in one plan. What came of it is known of a failure too. */
static int search_group(struct het_arena *arena, const struct het_problem *problem,
                        const struct het_search_options *options, uint64_t effort,
                        struct outcome *ret, struct het_error *err)
{
    const struct het_algorithm *algorithms[32];
    *ret = (struct outcome){ 0 };
    if (choose_algorithms(options, algorithms, err) < 0)
        return -1;
    struct het_shortlist shortlist = { 0 };
    struct het_search search = {
        .problem = problem,
        .available = problem->cluster,
        .options = options,
        .arena = het_arena_new(),
        .shortlist = &shortlist,
    };
    search.preference = het_preference_new(search.arena, problem);
    struct parts parts = {
        .problem = problem,
        .arena = search.arena,
        .types =
            HET_ARENA_ARRAY(search.arena, struct choices, problem->cluster->type_count),
        .type_count = problem->cluster->type_count,
        .rows = het_bound_rows_new(problem),
    };
    find_parts(&parts);
    int result = run_algorithms(&search, &parts, algorithms, effort, err);
    if (search.statistics.walk_best)
        search.statistics.walk_best =
            het_arena_strdup(arena, search.statistics.walk_best);
    if (result == 0 && search.incumbent)
        ret->plan = finish(arena, &search, effort);
    else if (result == 0)
        result = fail(&search, &parts, effort, ret, err);
    ret->statistics = search.statistics;
    ret->has_run_out = search.has_run_out;
    ret->is_cut_short = search.is_cut_short;
    het_shortlist_clear(&shortlist);
    het_preference_clear(search.preference);
    xfree(parts.items);
    het_bound_rows_free(parts.rows);
    het_arena_free(search.arena);
    return result;
}

/* ---- GPUs of several vendors ---- */

/* A vendor's GPUs, searched by themselves. */
struct contender {
    const struct het_vendor_group *group;
    const struct het_plan *plan; /* the best so far, bound to the whole cluster */
    double bound_s;              /* of its plans */
    uint64_t effort;             /* its part */
    bool is_done;                /* there is no more to look at, or no more effort */
    bool has_run_out;            /* of effort */
    struct het_error why;        /* without a plan */
};

struct contest {
    struct het_arena *arena;
    const struct het_problem *problem;
    const struct het_search_options *options;
    const struct het_preference *preference; /* of all GPUs; NULL: none */
    struct contender *contenders;
    size_t count;
    struct het_search_statistics statistics;
    bool is_cut_short;
};

/* Of its effort, a vendor has this part for a first look. */
#define FIRST_LOOK  16u
/* Effort goes by the number of GPUs, but each vendor has this part of it at the least. */
#define LEAST_SHARE 8u

static uint64_t share_effort(uint64_t effort, uint32_t gpus, uint64_t all_gpus)
{
    uint64_t share = effort / all_gpus * gpus + effort % all_gpus * gpus / all_gpus;
    uint64_t least = effort / LEAST_SHARE;
    share = share < least ? least : share;
    return share ? share : 1;
}

static void add_statistics(struct het_search_statistics *sum,
                           const struct het_search_statistics *more)
{
    sum->groups_enumerated += more->groups_enumerated;
    sum->strategies_tried += more->strategies_tried;
    sum->partitions_failed += more->partitions_failed;
    sum->plans_priced += more->plans_priced;
    sum->walk_steps += more->walk_steps;
    sum->walk_plans += more->walk_plans;
    sum->walk_broken += more->walk_broken;
    if (more->walk_best && (!sum->walk_best || more->walk_best_s < sum->walk_best_s)) {
        sum->walk_best = more->walk_best;
        sum->walk_best_s = more->walk_best_s;
    }
}

static const struct het_plan *bind_to_all(const struct contest *contest,
                                          const struct het_plan *plan)
{
    const struct het_plan *bound;
    int known =
        het_plan_bind(contest->arena, plan, contest->problem->cluster, &bound, NULL);
    assert(known == 0);
    return bound;
}

/* Searches a contender's GPUs; -1 for what is wrong with the question. */
static int look_at(struct contest *contest, struct contender *contender, uint64_t effort,
                   struct het_error *err)
{
    struct outcome outcome;
    int result = search_group(contest->arena, &contender->group->problem,
                              contest->options, effort, &outcome, &contender->why);
    add_statistics(&contest->statistics, &outcome.statistics);
    contest->is_cut_short |= outcome.is_cut_short;
    contender->has_run_out = outcome.has_run_out && !outcome.is_impossible;
    if (result < 0 && contender->why.code != HET_NO_PLAN &&
        contender->why.code != HET_CUT_SHORT)
        return het_fail(err, contender->why.code, "%s", contender->why.message);
    contender->is_done = !contender->has_run_out && !outcome.is_cut_short;
    if (outcome.is_impossible)
        contender->bound_s = HUGE_VAL;
    if (!outcome.plan)
        return 0;
    contender->bound_s = fmax(contender->bound_s, outcome.plan->predicted.lower_bound_s);
    if (!contender->plan ||
        outcome.plan->predicted.iteration_s < contender->plan->predicted.iteration_s)
        contender->plan = bind_to_all(contest, outcome.plan);
    return 0;
}

static double seconds_of(const struct contender *contender)
{
    return contender->plan ? contender->plan->predicted.iteration_s : HUGE_VAL;
}

/* The fastest, the first of equal ones; NULL: none has a plan. */
static const struct contender *fastest(const struct contest *contest)
{
    const struct contender *best = NULL;
    for (size_t i = 0; i < contest->count; i++)
        if (contest->contenders[i].plan &&
            (!best || seconds_of(&contest->contenders[i]) < seconds_of(best)))
            best = &contest->contenders[i];
    return best;
}

/* Of those that are about as fast as the fastest the one that is liked best. */
static const struct contender *choose(const struct contest *contest)
{
    const struct contender *best = fastest(contest), *chosen = best;
    for (size_t i = 0; best && contest->preference && i < contest->count; i++) {
        const struct contender *other = &contest->contenders[i];
        if (other->plan &&
            seconds_of(other) <= seconds_of(best) * (1 + HET_PREFERENCE_SLACK) &&
            het_preference_of(contest->preference, other->plan) >
                het_preference_of(contest->preference, chosen->plan))
            chosen = other;
    }
    return chosen;
}

/* The one to go on with, after a look at each: the fastest of those that are not done and
 * can still win; NULL: none. */
static struct contender *next_contender(const struct contest *contest)
{
    const struct contender *best = fastest(contest);
    double slack = contest->preference ? HET_PREFERENCE_SLACK : 0;
    double most_s = best ? seconds_of(best) * (1 + slack) : HUGE_VAL;
    struct contender *next = NULL;
    for (size_t i = 0; i < contest->count; i++) {
        struct contender *contender = &contest->contenders[i];
        if (!contender->is_done && contender->bound_s < most_s &&
            (!next || seconds_of(contender) < seconds_of(next)))
            next = contender;
    }
    return next;
}

/* A look at each vendor, so that a plan is known soon, whosever GPUs it is on; then more
 * of those of which more can come. */
static int run_contest(struct contest *contest, struct het_error *err)
{
    for (size_t i = 0; i < contest->count && !contest->is_cut_short; i++) {
        struct contender *contender = &contest->contenders[i];
        uint64_t look = contender->effort / FIRST_LOOK;
        /* It may fail as the effort is too little; the next look says so. */
        if (look)
            look_at(contest, contender, look, NULL);
    }
    struct contender *next;
    while (!contest->is_cut_short && (next = next_contender(contest))) {
        uint64_t effort = next->effort - next->effort / FIRST_LOOK;
        if (look_at(contest, next, effort, err) < 0)
            return -1;
        next->is_done = true;
    }
    return 0;
}

static int fail_contest(const struct contest *contest, struct het_error *err)
{
    if (contest->is_cut_short)
        return fail_cut_short(err);
    const char *reasons = "";
    for (size_t i = 0; i < contest->count; i++) {
        const struct contender *contender = &contest->contenders[i];
        reasons = het_arena_printf(contest->arena, "%s; with those of %s (%u): %.400s",
                                   reasons, het_vendor_title(contender->group->vendor),
                                   contender->group->gpus, contender->why.message);
    }
    return het_fail(err, HET_NO_PLAN,
                    "no plan with GPUs of one vendor, and those of several cannot talk "
                    "to each other%s",
                    reasons);
}

/* The winner, with what is known of all. */
static const struct het_plan *announce(const struct contest *contest,
                                       struct het_arena *arena, uint64_t effort)
{
    struct het_plan *plan = het_plan_copy(arena, choose(contest)->plan);
    double bound_s = HUGE_VAL;
    bool has_run_out = false;
    for (size_t i = 0; i < contest->count; i++) {
        bound_s = fmin(bound_s, contest->contenders[i].bound_s);
        has_run_out |= contest->contenders[i].has_run_out;
    }
    assert(bound_s <= plan->predicted.iteration_s);
    het_plan_fill_idle(arena, contest->problem->cluster, plan);
    plan->predicted.lower_bound_s = bound_s;
    plan->search.effort = effort;
    plan->search.plans_priced = contest->statistics.plans_priced;
    plan->search.statistics = contest->statistics;
    plan->search.is_cut_short = contest->is_cut_short;
    plan->search.optimal = bound_s >= plan->predicted.iteration_s;
    plan->search.has_run_out = has_run_out && !plan->search.optimal;
    return plan;
}

/* Each vendor's GPUs by themselves; the best of their plans. */
static int search_vendors(struct het_arena *arena, const struct het_problem *problem,
                          const struct het_search_options *options, uint64_t effort,
                          struct outcome *ret, struct het_error *err)
{
    struct contest contest = { .arena = arena, .problem = problem, .options = options };
    const struct het_vendor_group *groups;
    uint64_t gpus = 0;
    contest.preference = het_preference_new(arena, problem);
    contest.count = het_vendor_groups(arena, problem, &groups);
    contest.contenders = HET_ARENA_ARRAY(arena, struct contender, contest.count);
    for (size_t i = 0; i < contest.count; i++)
        gpus += groups[i].gpus;
    for (size_t i = 0; i < contest.count; i++)
        contest.contenders[i] = (struct contender){
            .group = &groups[i],
            .bound_s = het_bound_iteration(&groups[i].problem),
            .effort = share_effort(effort, groups[i].gpus, gpus),
        };
    if (run_contest(&contest, err) < 0)
        return -1;
    if (!fastest(&contest))
        return fail_contest(&contest, err);
    ret->plan = announce(&contest, arena, effort);
    ret->statistics = contest.statistics;
    return 0;
}

int het_search_run(struct het_arena *arena, const struct het_problem *problem,
                   const struct het_search_options *options, const struct het_plan **ret,
                   struct het_search_statistics *ret_statistics, struct het_error *err)
{
    uint64_t effort = options->effort ? options->effort : HET_DEFAULT_EFFORT;
    struct outcome outcome = { 0 };
    if ((het_vendor_is_split(problem) ? search_vendors : search_group)(
            arena, problem, options, effort, &outcome, err) < 0)
        return -1;
    *ret = outcome.plan;
    if (ret_statistics)
        *ret_statistics = outcome.statistics;
    return 0;
}
