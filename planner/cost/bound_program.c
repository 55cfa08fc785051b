#include "planner/cost/bound_program.h"

#include "planner/base/arena.h"
#include "planner/base/simplex.h"

#include <math.h>
#include <string.h>

/* ---- runs ---- */

struct run {
    size_t type;
    uint32_t first, end;
};

static double held_bytes(const struct het_bound_program *covering, uint32_t first,
                         uint32_t end)
{
    double bytes = covering->bytes[end] - covering->bytes[first];
    bool has_end = !first || end == covering->layer_count;
    return has_end ? bytes + covering->end_bytes : bytes;
}

static void prepare_type(const struct het_bound_program *covering,
                         struct het_bound_program_type *type)
{
    uint32_t layers = covering->layer_count;
    size_t run = 0, runs = (size_t)layers * (layers + 1) / 2;
    if (!type->a_second) {
        type->a_second = xcalloc(runs, sizeof *type->a_second);
        type->counted = xcalloc(runs, sizeof *type->counted);
    }
    for (uint32_t first = 0; first < layers; first++)
        for (uint32_t end = first + 1; end <= layers; end++, run++) {
            double seconds = type->compute[end] - type->compute[first] +
                             type->crossing[first] + type->crossing[end];
            double bytes = held_bytes(covering, first, end) - type->free_bytes;
            type->a_second[run] = seconds > 0 ? 1 / seconds : 1e300;
            type->counted[run] = fmax(bytes, 0) / type->node_gpus;
        }
}

void het_bound_program_prepare(struct het_bound_program *covering)
{
    for (size_t t = 0; t < covering->type_count; t++)
        prepare_type(covering, &covering->types[t]);
}

void het_bound_program_fini(struct het_bound_program *covering)
{
    for (size_t t = 0; t < covering->type_count; t++) {
        het_free_pointer(&covering->types[t].a_second);
        het_free_pointer(&covering->types[t].counted);
    }
}

/* The run of `type` with the most worth less bytes, at prices whose prefix sums are
 * `worth`; what it gains a GPU goes into `ret_gain`. */
static struct run find_best_run(const struct het_bound_program *covering, size_t type,
                                double budget_s, const double *worth, double *ret_gain)
{
    const double *a_second = covering->types[type].a_second;
    const double *counted = covering->types[type].counted;
    struct run best = { .type = type, .end = 1 };
    double best_gain = -HUGE_VAL;
    for (uint32_t first = 0; first < covering->layer_count; first++) {
        double time_s = fmax(budget_s - covering->wait_s[first], 0);
        for (uint32_t end = first + 1; end <= covering->layer_count; end++) {
            double gain = time_s * *a_second++ * (worth[end] - worth[first]) - *counted++;
            if (gain > best_gain) {
                best_gain = gain;
                best.first = first;
                best.end = end;
            }
        }
    }
    *ret_gain = best_gain;
    return best;
}

/* Position of a run in a_second and counted. */
static size_t run_index(const struct het_bound_program *covering, const struct run *run)
{
    size_t layers = covering->layer_count, first = run->first;
    return first * layers - first * (first - 1) / 2 + (run->end - run->first - 1);
}

/* ---- the program ---- */

/* Rows: layers, then types. Columns: runs; for each layer a surplus and, so that there is
 * always a solution, samples bought for `penalty` bytes; for each type its idle GPUs. */
struct program {
    const struct het_bound_program *covering;
    double budget_s, penalty;
    struct het_simplex simplex;
    double *worth; /* [layer_count + 1]: prefix sums of the layers' prices */
};

static void program_init(struct program *program,
                         const struct het_bound_program *covering, double budget_s)
{
    size_t layers = covering->layer_count, rows = layers + covering->type_count;
    double all_bytes = 0;
    for (size_t t = 0; t < covering->type_count; t++)
        all_bytes += covering->types[t].gpus / covering->types[t].node_gpus *
                     held_bytes(covering, 0, covering->layer_count);
    *program = (struct program){
        .covering = covering,
        .budget_s = budget_s,
        .penalty = 20 * all_bytes / covering->samples,
        .worth = xcalloc(layers + 1, sizeof(double)),
    };
    het_simplex_init(&program->simplex, rows, 1e-9);
    for (size_t i = 0; i < rows; i++) {
        program->simplex.amounts[i] = i < layers ? covering->samples
                                                 : covering->types[i - layers].gpus;
        program->simplex.costs[i] = i < layers ? program->penalty : 0;
    }
}

static void program_fini(struct program *program)
{
    het_simplex_fini(&program->simplex);
    het_free_pointer(&program->worth);
}

/* The layers' prices, none negative, summed up. */
static void find_worth(struct program *program)
{
    const double *prices = het_simplex_price(&program->simplex);
    for (uint32_t l = 0; l < program->covering->layer_count; l++)
        program->worth[l + 1] = program->worth[l] + fmax(prices[l], 0);
}

/* Fills the simplex's column with what enters the basis, and returns true; false at the
 * optimum. `ret_cost` is the column's, `ret_proof` what the prices prove. */
static bool choose_column(struct program *program, double *ret_cost, double *ret_proof)
{
    const struct het_bound_program *covering = program->covering;
    uint32_t layers = covering->layer_count;
    struct het_simplex *simplex = &program->simplex;
    double tolerance = 1e-9 * program->penalty;
    *ret_proof = covering->samples * program->worth[layers];
    memset(simplex->column, 0, simplex->rows * sizeof *simplex->column);

    struct run best = { 0 };
    double best_gain = 0;
    for (size_t t = 0; t < covering->type_count; t++) {
        double gain, type_price = -simplex->prices[layers + t];
        struct run run =
            find_best_run(covering, t, program->budget_s, program->worth, &gain);
        *ret_proof -= covering->types[t].gpus * fmax(gain, 0);
        /* Of a whole type, so that types weigh by what they can change. */
        double gain_of_type = (gain - type_price) * covering->types[t].gpus;
        if (gain - type_price > 1e-12 * held_bytes(covering, 0, layers) &&
            gain_of_type > best_gain) {
            best_gain = gain_of_type;
            best = run;
        }
    }
    for (size_t i = 0; i < simplex->rows; i++)
        if ((i < layers && simplex->prices[i] < -tolerance) ||
            (i >= layers &&
             simplex->prices[i] > 1e-12 * held_bytes(covering, 0, layers))) {
            simplex->column[i] = i < layers ? -1 : 1; /* surplus, or idle GPUs */
            *ret_cost = 0;
            return true;
        }
    if (!(best_gain > 0))
        return false;
    const struct het_bound_program_type *type = &covering->types[best.type];
    size_t index = run_index(covering, &best);
    double time_s = fmax(program->budget_s - covering->wait_s[best.first], 0);
    double samples = time_s * type->a_second[index];
    for (uint32_t l = best.first; l < best.end; l++)
        simplex->column[l] = samples;
    simplex->column[layers + best.type] = 1;
    *ret_cost = type->counted[index];
    return true;
}

/* Steps a row; few are needed (two or three), the limit guards against cycling. */
#define MAX_STEPS_A_ROW 12

double het_bound_program_solve(const struct het_bound_program *covering, double budget_s,
                               double *ret_prices)
{
    struct program program;
    program_init(&program, covering, budget_s);
    double best = -HUGE_VAL;
    for (size_t step = 0; step < MAX_STEPS_A_ROW * program.simplex.rows; step++) {
        double cost, proof;
        find_worth(&program);
        bool has_column = choose_column(&program, &cost, &proof);
        if (proof > best) {
            best = proof;
            for (uint32_t l = 0; l < covering->layer_count; l++)
                ret_prices[l] = program.worth[l + 1] - program.worth[l];
        }
        if (!has_column ||
            het_simplex_enter(&program.simplex, cost) == program.simplex.rows)
            break;
    }
    program_fini(&program);
    return best;
}

double het_bound_program_prove(const struct het_bound_program *covering, double budget_s,
                               const double *prices)
{
    uint32_t layers = covering->layer_count;
    auto_free double *worth = xcalloc((size_t)layers + 1, sizeof *worth);
    for (uint32_t l = 0; l < layers; l++)
        worth[l + 1] = worth[l] + prices[l];
    double proof = covering->samples * worth[layers];
    for (size_t t = 0; t < covering->type_count; t++) {
        double gain;
        find_best_run(covering, t, budget_s, worth, &gain);
        proof -= covering->types[t].gpus * fmax(gain, 0);
    }
    return proof;
}
