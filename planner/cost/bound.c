#include "planner/cost/bound.h"

#include "planner/base/simplex.h"
#include "planner/cost/bound_program.h"
#include "planner/cost/memory.h"
#include "planner/model/vendor_group.h"

#include <math.h>
#include <string.h>

/* ---- compute floor ---- */

/* The linear program of the header: rows 0 .. n-1 are the GPU types, row n says that the
 * assignments' weights sum up to 1. Columns: the time T, an assignment (its seconds on
 * each type), or the slack of a type. */
struct program {
    size_t types; /* n */
    double gpus[HET_MAX_TYPES];
    size_t class_count;   /* layers that cost alike are one class */
    double *class_layers; /* [class_count]: how many they are */
    double *class_cost;   /* [class_count][types]: c_lt */
    struct het_simplex simplex;
};

/* Whether a replica of `tp` GPUs can hold the layer and `samples` samples of it. */
static bool layer_fits(const struct het_problem *problem, uint32_t type, uint32_t tp,
                       uint32_t layer, uint32_t samples, enum het_recompute recompute)
{
    const struct het_memory_question question = {
        .type = type,
        .tp = tp,
        .first_layer = layer,
        .layer_count = 1,
        .samples = samples,
        .in_flight = 1,
        .holders = UINT32_MAX,
        .recompute = recompute,
    };
    return het_memory_replica_bytes(problem, &question) <=
           het_memory_usable_bytes(problem, type);
}

/* Seconds of the layer, forward and backward, at a measured point; HUGE_VAL if it was not
 * measured so. */
static double pass_seconds(const struct het_measurement *m, uint32_t layer,
                           enum het_recompute recompute)
{
    double forward_s = fmax(m->forward_s[layer + 1] - m->forward_s[layer], 0);
    double backward_s = fmax(m->backward_s[layer + 1] - m->backward_s[layer], 0);
    const double *selective = m->selective_backward_s;
    switch (recompute) {
    case HET_RECOMPUTE_NONE:
        return forward_s + backward_s;
    case HET_RECOMPUTE_SELECTIVE:
        return selective ? forward_s + fmax(selective[layer + 1] - selective[layer], 0)
                         : HUGE_VAL;
    case HET_RECOMPUTE_FULL:
        return forward_s + backward_s + forward_s;
    }
    return 0;
}

/* Least GPU seconds of `layer` for one sample on a cluster type, of the measured points
 * that fit in memory, or of all if none does; HUGE_VAL if the workload allows none. */
static double layer_floor(const struct het_problem *problem, uint32_t type,
                          uint32_t largest_tp, uint32_t layer)
{
    static const enum het_recompute choices[] = { HET_RECOMPUTE_NONE,
                                                  HET_RECOMPUTE_SELECTIVE,
                                                  HET_RECOMPUTE_FULL };
    const struct het_profile *profile = problem->profile;
    double least = HUGE_VAL, least_fitting = HUGE_VAL;
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *m = &profile->measurements[i];
        if (m->type != problem->profile_type[type] || m->tp > largest_tp ||
            !het_workload_allows_tensor_parallel(problem->workload, m->tp))
            continue;
        for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
            double seconds = m->tp * pass_seconds(m, layer, choices[c]) / m->microbatch;
            least = fmin(least, seconds);
            if (seconds < least_fitting &&
                layer_fits(problem, type, m->tp, layer, m->microbatch, choices[c]))
                least_fitting = seconds;
        }
    }
    return least_fitting < HUGE_VAL ? least_fitting : least;
}

/* layer_floor of all layers of a type under a largest degree. */
struct floor_row {
    uint32_t type, largest_tp;
    double *seconds; /* [layer] */
};

struct het_bound_rows {
    const struct het_problem *problem;
    struct floor_row *rows;
    size_t count, capacity;
};

struct het_bound_rows *het_bound_rows_new(const struct het_problem *problem)
{
    struct het_bound_rows *rows = xcalloc(1, sizeof *rows);
    rows->problem = problem;
    return rows;
}

void het_bound_rows_free(struct het_bound_rows *rows)
{
    for (size_t i = 0; rows && i < rows->count; i++)
        xfree(rows->rows[i].seconds);
    if (rows)
        xfree(rows->rows);
    xfree(rows);
}

size_t het_bound_rows_count(const struct het_bound_rows *rows)
{
    return rows->count;
}

static const double *find_row(struct het_bound_rows *rows, uint32_t type,
                              uint32_t largest_tp)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].type == type && rows->rows[i].largest_tp == largest_tp)
            return rows->rows[i].seconds;
    uint32_t layers = rows->problem->profile->layer_count;
    struct floor_row row = { type, largest_tp, xcalloc(layers, sizeof(double)) };
    for (uint32_t l = 0; l < layers; l++)
        row.seconds[l] = layer_floor(rows->problem, type, largest_tp, l);
    ARRAY_RESERVE(rows->rows, &rows->capacity, rows->count + 1);
    rows->rows[rows->count++] = row;
    return row.seconds;
}

/* The most GPUs of a type that a plan may use. */
static uint32_t most_gpus(const struct het_problem *problem, uint32_t type)
{
    uint32_t gpus = het_problem_usable_gpus(problem, type);
    uint32_t most = problem->workload->max_gpus;
    return most && most < gpus ? most : gpus;
}

/* Types that can compute, with their GPUs and costs. */
static void program_init(struct program *program, struct het_bound_rows *rows,
                         const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    uint32_t layers = problem->profile->layer_count;
    *program = (struct program){
        .class_layers = xcalloc(layers, sizeof(double)),
        .class_cost = xcalloc((size_t)layers * HET_MAX_TYPES, sizeof(double)),
    };
    const double *seconds[HET_MAX_TYPES] = { NULL };
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        if (problem->profile_type[t] == HET_NO_TYPE)
            continue;
        seconds[program->types] =
            find_row(rows, t, het_cluster_largest_node_gpus(cluster, t));
        if (seconds[program->types][0] < HUGE_VAL)
            program->gpus[program->types++] = most_gpus(problem, t);
    }
    for (uint32_t l = 0; l < layers; l++) {
        double *cost = program->class_cost + program->class_count * program->types;
        for (size_t t = 0; t < program->types; t++)
            cost[t] = seconds[t][l];
        size_t same = 0;
        while (memcmp(program->class_cost + same * program->types, cost,
                      program->types * sizeof *cost))
            same++;
        program->class_layers[same]++;
        program->class_count += same == program->class_count;
    }
    het_simplex_init(&program->simplex, program->types + 1, 1e-12);
}

static void program_fini(struct program *program)
{
    het_free_pointer(&program->class_layers);
    het_free_pointer(&program->class_cost);
    het_simplex_fini(&program->simplex);
}

/* sum_l min_t w_t c_lt; fills the simplex's column with the seconds that the minimising
 * assignment puts on each type. */
static double price_layers(struct program *program, const double *weights)
{
    double total = 0, *column = program->simplex.column;
    memset(column, 0, program->types * sizeof *column);
    column[program->types] = 1;
    for (size_t i = 0; i < program->class_count; i++) {
        const double *cost = program->class_cost + i * program->types;
        size_t best = 0;
        for (size_t t = 1; t < program->types; t++)
            if (weights[t] * cost[t] < weights[best] * cost[best])
                best = t;
        double seconds = program->class_layers[i] * cost[best];
        column[best] += seconds;
        total += weights[best] * seconds;
    }
    return total;
}

/* The bound that prices `weights` (made non-negative, scaled) prove. */
static double evaluate(struct program *program, const double *weights)
{
    double scaled[HET_MAX_TYPES], sum = 0;
    for (size_t t = 0; t < program->types; t++) {
        scaled[t] = fmax(weights[t], 0);
        sum += scaled[t] * program->gpus[t];
    }
    if (!(sum > 0) || !isfinite(sum))
        return 0;
    for (size_t t = 0; t < program->types; t++)
        scaled[t] /= sum;
    return price_layers(program, scaled);
}

/* Begins with all layers on the type that is then done first: a basis of that
 * assignment, T, and the slacks of the other types. */
static void start_basis(struct program *program)
{
    double *column = program->simplex.column;
    size_t best = 0;
    double best_s = HUGE_VAL, best_seconds = 0;
    for (size_t t = 0; t < program->types; t++) {
        double seconds = 0;
        for (size_t i = 0; i < program->class_count; i++)
            seconds += program->class_layers[i] *
                       program->class_cost[i * program->types + t];
        if (seconds / program->gpus[t] < best_s) {
            best_s = seconds / program->gpus[t];
            best_seconds = seconds;
            best = t;
        }
    }
    program->simplex.amounts[program->types] = 1;
    column[best] = best_seconds;
    column[program->types] = 1;
    het_simplex_replace(&program->simplex, program->types, 0);
    for (size_t t = 0; t < program->types; t++)
        column[t] = -program->gpus[t];
    column[program->types] = 0;
    het_simplex_replace(&program->simplex, best, 1);
}

/* One step; false at the optimum, or when rounding stops it. */
static bool improve(struct program *program, double *best_bound)
{
    size_t n = program->types;
    const double *prices = het_simplex_price(&program->simplex);
    double weights[HET_MAX_TYPES];
    size_t most_negative = n;
    for (size_t t = 0; t < n; t++) {
        weights[t] = -prices[t];
        if (weights[t] < -1e-12 &&
            (most_negative == n || weights[t] < weights[most_negative]))
            most_negative = t;
    }
    *best_bound = fmax(*best_bound, evaluate(program, weights));
    if (most_negative < n) {
        memset(program->simplex.column, 0, (n + 1) * sizeof(double));
        program->simplex.column[most_negative] = 1;
    } else if (price_layers(program, weights) >= prices[n] * (1 - 1e-12)) {
        return false;
    }
    return het_simplex_enter(&program->simplex, 0) <= n;
}

/* Steps are few (tens for some types); the limit only guards against cycling. */
#define MAX_STEPS 2000

/* The least of `bound` over the groups of GPUs of which a plan may be. */
static double least_of_groups(const struct het_problem *problem,
                              double (*bound)(const struct het_problem *problem))
{
    if (!het_vendor_is_split(problem))
        return bound(problem);
    struct het_arena *arena = het_arena_new();
    const struct het_vendor_group *groups;
    size_t count = het_vendor_groups(arena, problem, &groups);
    double least_s = HUGE_VAL;
    for (size_t i = 0; i < count; i++)
        least_s = fmin(least_s, bound(&groups[i].problem));
    het_arena_free(arena);
    return least_s;
}

double het_bound_floor_of_part(struct het_bound_rows *rows,
                               const struct het_problem *part)
{
    struct program program;
    program_init(&program, rows, part);
    double bound = 0;
    if (program.types) {
        start_basis(&program);
        for (int step = 0; step < MAX_STEPS && improve(&program, &bound); step++)
            ;
    }
    program_fini(&program);
    /* The last digits are rounding's. */
    return bound * part->workload->global_batch * (1 - 1e-12);
}

static double floor_of(const struct het_problem *problem)
{
    struct het_bound_rows *rows = het_bound_rows_new(problem);
    double floor_s = het_bound_floor_of_part(rows, problem);
    het_bound_rows_free(rows);
    return floor_s;
}

double het_bound_floor(const struct het_problem *problem)
{
    return least_of_groups(problem, floor_of);
}

/* ---- gradients and sends ---- */

/* Points that cut the time of synchronisation into intervals. */
#define MAX_POINTS 20u

/* What rounding may have added. */
#define ROUNDING 1e-9

/* The most that an uplink can carry, whatever goes through it: curves do not fall with
 * the message. */
static double uplink_limit(const struct het_cluster *cluster, uint32_t node)
{
    if (!cluster->network)
        return cluster->nodes[node].uplink_bytes_per_s;
    double most = 0;
    for (uint32_t gpus = 1; gpus <= cluster->nodes[node].gpu_count; gpus++)
        most = fmax(most, het_cluster_uplink(cluster, node, gpus, HET_LARGEST_MESSAGE));
    return most;
}

/* Of the nodes that can compute: how many, and the widest uplink of each type. */
struct uplinks {
    size_t node_count;
    double widest[HET_MAX_TYPES]; /* bytes a second */
};

static struct uplinks measure_uplinks(const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    struct uplinks uplinks = { 0 };
    for (uint32_t n = 0; n < cluster->node_count; n++) {
        uint32_t type = cluster->nodes[n].type;
        if (problem->profile_type[type] == HET_NO_TYPE)
            continue;
        double bandwidth = uplink_limit(cluster, n);
        uplinks.node_count++;
        uplinks.widest[type] = fmax(uplinks.widest[type], bandwidth);
    }
    return uplinks;
}

static bool is_shared(const struct het_profile *profile)
{
    return profile->shared_embedding && profile->layer_count > 1;
}

/* Least gradient bytes of a layer, or of the larger of two, all ranks together. */
static double gradient_bytes(const struct het_problem *problem, uint32_t layer,
                             uint32_t other)
{
    const struct het_profile *profile = problem->profile;
    double least = HUGE_VAL;
    for (size_t i = 0; i < profile->bytes_count; i++) {
        const struct het_layer_bytes *bytes = &profile->bytes[i];
        const double *sums = bytes->parameters;
        double parameters =
            fmax(sums[layer + 1] - sums[layer], sums[other + 1] - sums[other]);
        if (het_workload_allows_tensor_parallel(problem->workload, bytes->tp))
            least = fmin(least, parameters * bytes->tp);
    }
    return least < HUGE_VAL ? least * het_workload_gradient_bytes(problem->workload) : 0;
}

/* Least seconds of a layer for any micro-batch; least seconds of its optimizer step. */
static void find_least(const struct het_problem *problem, uint32_t layer,
                       double *ret_pass_s, double *ret_step_s)
{
    const struct het_profile *profile = problem->profile;
    *ret_pass_s = *ret_step_s = HUGE_VAL;
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *m = &profile->measurements[i];
        bool is_used = false;
        for (size_t t = 0; t < problem->cluster->type_count; t++)
            is_used = is_used || problem->profile_type[t] == m->type;
        if (!is_used || !het_workload_allows_tensor_parallel(problem->workload, m->tp))
            continue;
        *ret_pass_s =
            fmin(*ret_pass_s, fmin(pass_seconds(m, layer, HET_RECOMPUTE_NONE),
                                   pass_seconds(m, layer, HET_RECOMPUTE_SELECTIVE)));
        *ret_step_s =
            fmin(*ret_step_s, het_profile_optimizer_s(profile, m->type, m->tp, layer, 1));
    }
}

static void covering_init(struct het_bound_program *covering,
                          const struct het_problem *problem,
                          const struct uplinks *uplinks)
{
    const struct het_cluster *cluster = problem->cluster;
    uint32_t layers = problem->profile->layer_count;
    *covering = (struct het_bound_program){
        .layer_count = layers,
        .samples = problem->workload->global_batch,
        .types = xcalloc(cluster->type_count, sizeof *covering->types),
        .bytes = xcalloc((size_t)layers + 1, sizeof(double)),
        .wait_s = xcalloc((size_t)layers + 1, sizeof(double)),
    };
    bool shared = is_shared(problem->profile);
    if (shared)
        covering->end_bytes = gradient_bytes(problem, 0, layers - 1);
    for (uint32_t l = 0; l < layers; l++) {
        double pass_s, step_s;
        bool is_end = shared && (!l || l + 1 == layers);
        find_least(problem, l, &pass_s, &step_s);
        covering->bytes[l + 1] = covering->bytes[l] +
                                 (is_end ? 0 : gradient_bytes(problem, l, l));
        covering->wait_s[l + 1] = covering->wait_s[l] + pass_s;
    }
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        uint32_t largest_tp = het_cluster_largest_node_gpus(cluster, t);
        if (problem->profile_type[t] == HET_NO_TYPE || !largest_tp ||
            layer_floor(problem, t, largest_tp, 0) >= HUGE_VAL)
            continue;
        struct het_bound_program_type *type = &covering->types[covering->type_count++];
        type->gpus = most_gpus(problem, t);
        type->node_gpus = largest_tp;
        type->uplink = uplinks->widest[t];
        type->compute = xcalloc((size_t)layers + 1, sizeof(double));
        type->crossing = xcalloc((size_t)layers + 1, sizeof(double));
        for (uint32_t l = 0; l < layers; l++) {
            type->compute[l + 1] = type->compute[l] +
                                   layer_floor(problem, t, largest_tp, l);
            if (l)
                type->crossing[l] = 2 * problem->profile->boundary_bytes[l - 1] /
                                    uplinks->widest[t];
        }
    }
}

static void covering_fini(struct het_bound_program *covering)
{
    het_bound_program_fini(covering);
    for (size_t t = 0; t < covering->type_count; t++) {
        het_free_pointer(&covering->types[t].compute);
        het_free_pointer(&covering->types[t].crossing);
    }
    het_free_pointer(&covering->types);
    het_free_pointer(&covering->bytes);
    het_free_pointer(&covering->wait_s);
}

/* Of the time that pipelines may take: how often prices are looked for that prove more,
 * and the share of the time that makes that worth while. */
#define MAX_ROUNDS  4
#define WORTH_WHILE 1e-4

/* Where the bytes that `prices` prove fall to `bytes`, from `low_s` on, where they are
 * more: they do not increase with the time. */
static double find_end(const struct het_bound_program *covering, const double *prices,
                       double bytes, double low_s)
{
    double high_s = low_s, reach_s = low_s * WORTH_WHILE;
    do {
        low_s = high_s;
        high_s = low_s + reach_s;
        reach_s *= 2;
    } while (reach_s < HUGE_VAL &&
             het_bound_program_prove(covering, high_s, prices) > bytes);
    while (high_s - low_s > low_s * WORTH_WHILE / 16) {
        double middle_s = (low_s + high_s) / 2;
        if (het_bound_program_prove(covering, middle_s, prices) > bytes)
            low_s = middle_s;
        else
            high_s = middle_s;
    }
    return low_s;
}

/* What is asked about one plan's time: that of its pipelines for that of its gradients.
 */
struct spread {
    struct het_bound_program *covering;
    double whole_bytes;
    double *prices; /* [layer_count] */
};

/* Seconds that the pipelines take at least if gradients take `sync_s` at most; it is
 * known that they take `least_s`. */
static double prove_pipelines(const struct spread *spread, double sync_s, double least_s)
{
    struct het_bound_program *covering = spread->covering;
    for (size_t t = 0; t < covering->type_count; t++)
        covering->types[t].free_bytes = sync_s * covering->types[t].uplink / 2;
    het_bound_program_prepare(covering);
    /* The prices of another point are a good start. */
    if (het_bound_program_prove(covering, least_s, spread->prices) > spread->whole_bytes)
        least_s = find_end(covering, spread->prices, spread->whole_bytes, least_s);
    for (int round = 0; round < MAX_ROUNDS; round++) {
        if (!(het_bound_program_solve(covering, least_s, spread->prices) >
              spread->whole_bytes))
            break;
        double proved_s =
            find_end(covering, spread->prices, spread->whole_bytes, least_s);
        bool is_done = proved_s < least_s * (1 + WORTH_WHILE);
        least_s = proved_s;
        if (is_done)
            break;
    }
    return least_s;
}

/* Gradients take up to `sync_s`, more than the next interval's; the pipelines then take
 * `pipeline_s`. */
struct point {
    double sync_s, pipeline_s;
};

/* The interval [i, i + 1] of points in which least is proved. */
static size_t find_weakest(const struct point *points, size_t count)
{
    size_t weakest = 0;
    for (size_t i = 1; i + 1 < count; i++)
        if (points[i].sync_s + points[i + 1].pipeline_s <
            points[weakest].sync_s + points[weakest + 1].pipeline_s)
            weakest = i;
    return weakest;
}

/* Least D + Y, knowing that D is at least `least_s`: Y is cut into intervals, in each of
 * which Y is at least its lower end, and D what it must be at the upper end; the weakest
 * interval is halved again and again. */
static double prove_spread(const struct spread *spread, double least_s)
{
    struct point points[MAX_POINTS];
    size_t count = 2;
    double most_s = 0;
    for (size_t t = 0; t < spread->covering->type_count; t++)
        most_s =
            fmax(most_s, 2 * spread->whole_bytes / spread->covering->types[t].uplink);
    points[0] = (struct point){ 0, HUGE_VAL };
    points[1] = (struct point){ most_s, least_s };
    while (count < MAX_POINTS) {
        size_t at = find_weakest(points, count);
        double low_s = points[at].sync_s, high_s = points[at + 1].sync_s;
        if (!(high_s - low_s > WORTH_WHILE * least_s))
            break;
        double sync_s = (low_s + high_s) / 2;
        memmove(points + at + 2, points + at + 1, (count - at - 1) * sizeof *points);
        points[at + 1] =
            (struct point){ sync_s,
                            prove_pipelines(spread, sync_s, points[at + 2].pipeline_s) };
        count++;
    }
    size_t at = find_weakest(points, count);
    return points[at].sync_s + points[at + 1].pipeline_s;
}

static double bound_unreserved(const struct het_problem *problem)
{
    uint32_t layers = problem->profile->layer_count;
    const struct uplinks uplinks = measure_uplinks(problem);
    struct het_bound_program covering;
    covering_init(&covering, problem, &uplinks);
    double bound_s = fmax(floor_of(problem), covering.wait_s[layers]);
    if (uplinks.node_count > 1 && covering.type_count && layers <= HET_BOUND_MAX_LAYERS &&
        bound_s > 0 && bound_s < HUGE_VAL) {
        auto_free double *prices = xcalloc(layers, sizeof *prices);
        const struct spread spread = { .covering = &covering,
                                       .whole_bytes = covering.bytes[layers] +
                                                      covering.end_bytes,
                                       .prices = prices };
        bound_s = prove_spread(&spread, bound_s);
    }
    covering_fini(&covering);
    double optimizer_s = 0;
    for (uint32_t l = 0; l < layers; l++) {
        double pass_s, step_s;
        find_least(problem, l, &pass_s, &step_s);
        if (step_s < HUGE_VAL)
            optimizer_s = fmax(optimizer_s, step_s);
    }
    /* A distributed optimizer shares a layer's step out among its holders. */
    if (problem->workload->optimizer == HET_ADAM_DISTRIBUTED)
        optimizer_s /= het_cluster_gpu_count(problem->cluster);
    return (bound_s + optimizer_s) * (1 - ROUNDING);
}

double het_bound_iteration(const struct het_problem *problem)
{
    struct het_workload workload = *problem->workload;
    struct het_problem unreserved = *problem;
    workload.state_reserve_bytes = 0;
    unreserved.workload = &workload;
    return least_of_groups(&unreserved, bound_unreserved);
}
