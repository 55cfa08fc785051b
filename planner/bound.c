#include "planner/bound.h"

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
    double *inverse;      /* [n+1][n+1] of the basis */
    size_t time_row;      /* basis position of T */
    double *direction;    /* [n+1]: entering column in the basis */
    double *column;       /* [n+1] */
};

/* Least GPU seconds of `layer` for one sample on profile type `type`; HUGE_VAL if the
 * workload allows no measured point. */
static double layer_floor(const struct het_problem *problem, uint32_t type,
                          uint32_t largest_tp, uint32_t layer)
{
    const struct het_profile *profile = problem->profile;
    double least = HUGE_VAL;
    for (size_t i = 0; i < profile->measurement_count; i++) {
        const struct het_measurement *m = &profile->measurements[i];
        if (m->type != type || m->tp > largest_tp ||
            !het_workload_allows_tensor_parallel(problem->workload, m->tp))
            continue;
        double seconds = m->forward_s[layer + 1] - m->forward_s[layer] +
                         (m->backward_s[layer + 1] - m->backward_s[layer]);
        least = fmin(least, m->tp * fmax(seconds, 0) / m->microbatch);
    }
    return least;
}

static uint32_t largest_node(const struct het_cluster *cluster, uint32_t type)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].type == type && cluster->nodes[i].gpu_count > largest)
            largest = cluster->nodes[i].gpu_count;
    return largest;
}

/* The most GPUs of a type that a plan may use. */
static uint32_t usable_gpus(const struct het_problem *problem, uint32_t type)
{
    const struct het_workload *workload = problem->workload;
    uint32_t gpus = het_cluster_type_gpu_count(problem->cluster, type);
    if (workload->max_gpus && workload->max_gpus < gpus)
        gpus = workload->max_gpus;
    for (size_t i = 0; i < workload->type_limit_count; i++) {
        const struct het_type_limit *limit = &workload->type_limits[i];
        if (limit->max_gpus && limit->max_gpus < gpus &&
            !strcmp(limit->type, problem->cluster->types[type].name))
            gpus = limit->max_gpus;
    }
    return gpus;
}

/* Types that can compute, with their GPUs and costs. */
static void program_init(struct program *program, const struct het_problem *problem)
{
    const struct het_cluster *cluster = problem->cluster;
    uint32_t layers = problem->profile->layer_count;
    *program = (struct program){
        .class_layers = xcalloc(layers, sizeof(double)),
        .class_cost = xcalloc((size_t)layers * HET_MAX_TYPES, sizeof(double)),
    };
    struct {
        uint32_t profile_type, largest_tp;
    } type[HET_MAX_TYPES];
    for (uint32_t t = 0; t < cluster->type_count; t++) {
        uint32_t largest_tp = largest_node(cluster, t);
        uint32_t profile_type = problem->profile_type[t];
        if (profile_type == HET_NO_TYPE ||
            layer_floor(problem, profile_type, largest_tp, 0) >= HUGE_VAL)
            continue;
        type[program->types].profile_type = profile_type;
        type[program->types].largest_tp = largest_tp;
        program->gpus[program->types++] = usable_gpus(problem, t);
    }
    for (uint32_t l = 0; l < layers; l++) {
        double *cost = program->class_cost + program->class_count * program->types;
        for (size_t t = 0; t < program->types; t++)
            cost[t] = layer_floor(problem, type[t].profile_type, type[t].largest_tp, l);
        size_t same = 0;
        while (memcmp(program->class_cost + same * program->types, cost,
                      program->types * sizeof *cost))
            same++;
        program->class_layers[same]++;
        program->class_count += same == program->class_count;
    }
    size_t rows = program->types + 1;
    program->inverse = xcalloc(rows * rows, sizeof(double));
    program->direction = xcalloc(rows, sizeof(double));
    program->column = xcalloc(rows, sizeof(double));
}

static void program_fini(struct program *program)
{
    het_free_pointer(&program->class_layers);
    het_free_pointer(&program->class_cost);
    het_free_pointer(&program->inverse);
    het_free_pointer(&program->direction);
    het_free_pointer(&program->column);
}

/* sum_l min_t w_t c_lt; fills program->column with the seconds that the minimising
 * assignment puts on each type. */
static double price_layers(struct program *program, const double *weights)
{
    double total = 0;
    memset(program->column, 0, program->types * sizeof *program->column);
    program->column[program->types] = 1;
    for (size_t i = 0; i < program->class_count; i++) {
        const double *cost = program->class_cost + i * program->types;
        size_t best = 0;
        for (size_t t = 1; t < program->types; t++)
            if (weights[t] * cost[t] < weights[best] * cost[best])
                best = t;
        double seconds = program->class_layers[i] * cost[best];
        program->column[best] += seconds;
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

/* direction = inverse * column. */
static void transform_column(struct program *program)
{
    size_t rows = program->types + 1;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < rows; j++)
            sum += program->inverse[i * rows + j] * program->column[j];
        program->direction[i] = sum;
    }
}

/* The column of `direction` takes the basis position `row`. */
static void pivot(struct program *program, size_t row)
{
    size_t rows = program->types + 1;
    double *pivot_row = program->inverse + row * rows;
    for (size_t j = 0; j < rows; j++)
        pivot_row[j] /= program->direction[row];
    for (size_t i = 0; i < rows; i++) {
        if (i == row)
            continue;
        double factor = program->direction[i];
        for (size_t j = 0; j < rows; j++)
            program->inverse[i * rows + j] -= factor * pivot_row[j];
    }
}

/* Begins with all layers on the type that is then done first: a basis of that
 * assignment, T, and the slacks of the other types. */
static void start_basis(struct program *program)
{
    size_t rows = program->types + 1, best = 0;
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
    for (size_t i = 0; i < rows; i++)
        program->inverse[i * rows + i] = 1;
    memset(program->column, 0, rows * sizeof *program->column);
    program->column[best] = best_seconds;
    program->column[program->types] = 1;
    transform_column(program);
    pivot(program, program->types);
    for (size_t t = 0; t < program->types; t++)
        program->column[t] = -program->gpus[t];
    program->column[program->types] = 0;
    transform_column(program);
    pivot(program, best);
    program->time_row = best;
}

/* The position that limits how far program->direction can be followed. The right hand
 * side is the last unit vector, so the basis' values are the inverse's last column. */
static size_t ratio_test(const struct program *program)
{
    size_t rows = program->types + 1, leaving = rows;
    double least = HUGE_VAL;
    for (size_t i = 0; i < rows; i++) {
        if (program->direction[i] <= 1e-12)
            continue;
        double ratio = fmax(program->inverse[i * rows + rows - 1], 0) /
                       program->direction[i];
        if (ratio < least) {
            least = ratio;
            leaving = i;
        }
    }
    return leaving;
}

/* One step of the revised simplex method; false at the optimum, or when rounding stops
 * it. */
static bool improve(struct program *program, double *best_bound)
{
    size_t n = program->types, rows = n + 1;
    const double *duals = program->inverse + program->time_row * rows;
    double weights[HET_MAX_TYPES];
    size_t most_negative = n;
    for (size_t t = 0; t < n; t++) {
        weights[t] = -duals[t];
        if (weights[t] < -1e-12 &&
            (most_negative == n || weights[t] < weights[most_negative]))
            most_negative = t;
    }
    *best_bound = fmax(*best_bound, evaluate(program, weights));
    if (most_negative < n) {
        memset(program->column, 0, rows * sizeof *program->column);
        program->column[most_negative] = 1;
    } else if (price_layers(program, weights) >= duals[n] * (1 - 1e-12)) {
        return false;
    }
    transform_column(program);
    size_t leaving = ratio_test(program);
    if (leaving == rows || leaving == program->time_row)
        return false;
    pivot(program, leaving);
    return true;
}

/* Steps are few (tens for some types); the limit only guards against cycling. */
#define MAX_STEPS 2000

double het_bound_floor(const struct het_problem *problem)
{
    struct program program;
    program_init(&program, problem);
    double bound = 0;
    if (program.types) {
        start_basis(&program);
        for (int step = 0; step < MAX_STEPS && improve(&program, &bound); step++)
            ;
    }
    program_fini(&program);
    /* The last digits are rounding's. */
    return bound * problem->workload->global_batch * (1 - 1e-12);
}
