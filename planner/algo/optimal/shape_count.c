#include "planner/algo/optimal/shape_count.h"

#include "planner/base/simplex.h"

#include <math.h>
#include <string.h>

/* ---- what can be had ---- */

/* The split of a signature that does most samples within the budget. */
struct offer {
    const struct het_pipeline_shape_split *split;
    uint64_t samples;
};

/* A choice of the program: a whole-node cell, or a node of a class with pipelines on
 * `gpus` of its GPUs. */
struct column {
    const struct het_pipeline_shape_split *split; /* NULL: a node */
    uint32_t node_class, gpus;
    uint64_t samples;
    double *uses; /* [row] */
    uint32_t count;
};

/* The best choice on 0 .. gpu_count GPUs of a node. */
struct node_choice {
    uint64_t samples;
    uint32_t signature; /* of the last pipeline; HET_UNBOUND: leave the GPU idle */
    uint32_t replicas;
};

struct program {
    const struct het_shape_catalog *catalog;
    struct het_arena *arena;
    const struct het_shape_count_budget *budget;
    struct offer *offers;       /* [signature] */
    struct node_choice **nodes; /* [class][GPUs] */
    struct column *columns;
    size_t column_count;
    double *limits; /* [row] */
    uint32_t row_count, class_rows;
    double *prices; /* [row] */
};

static void find_offers(struct program *program)
{
    const struct het_shape_catalog *catalog = program->catalog;
    const struct het_shape_count_budget *budget = program->budget;
    program->offers =
        HET_ARENA_ARRAY(program->arena, struct offer, catalog->signature_count);
    for (size_t i = 0; i < catalog->split_count; i++) {
        const struct het_pipeline_shape_split *split = &catalog->splits[i];
        struct offer *offer = &program->offers[split->signature];
        if (split->sync_s > budget->sync_s || split->step_s > budget->step_s)
            continue;
        uint64_t samples =
            (uint64_t)split->cell->samples *
            het_pipeline_shape_split_microbatches(split, budget->pipeline_s);
        if (samples > offer->samples)
            *offer = (struct offer){ split, samples };
    }
}

static void fill_node(struct program *program, uint32_t class)
{
    uint32_t gpus = program->catalog->market.inventory->classes[class].gpu_count;
    struct node_choice *best =
        HET_ARENA_ARRAY(program->arena, struct node_choice, gpus + (size_t)1);
    for (uint32_t g = 0; g <= gpus; g++)
        best[g] = (struct node_choice){ .samples = g ? best[g - 1].samples : 0,
                                        .signature = HET_UNBOUND,
                                        .replicas = g ? best[g - 1].replicas : 0 };
    for (uint32_t g = 1; g <= gpus; g++) {
        best[g] = best[g - 1];
        best[g].signature = HET_UNBOUND;
        for (uint32_t i = 0; i < program->catalog->signature_count; i++) {
            const struct het_signature *signature = &program->catalog->signatures[i];
            if (!signature->gpus || signature->gpu_class != class ||
                signature->gpus > g || !program->offers[i].samples)
                continue;
            const struct node_choice *rest = &best[g - signature->gpus];
            uint64_t samples = rest->samples + program->offers[i].samples;
            if (samples > best[g].samples)
                best[g] = (struct node_choice){
                    .samples = samples,
                    .signature = i,
                    .replicas = rest->replicas + program->offers[i].split->cell->replicas,
                };
        }
    }
    program->nodes[class] = best;
}

/* ---- rows ---- */

static bool has_gpu_limits(const struct het_workload *workload)
{
    return workload->max_gpus || workload->max_data_parallel ||
           workload->type_limit_count;
}

/* Nodes of each class; then GPUs, replicas of a layer, GPUs of each type with a limit. */
static void set_limits(struct program *program)
{
    const struct het_node_classes *inventory = program->catalog->market.inventory;
    const struct het_workload *workload = program->catalog->market.problem->workload;
    program->class_rows = inventory->class_count;
    program->row_count = inventory->class_count;
    if (has_gpu_limits(workload))
        program->row_count += 2 + (uint32_t)workload->type_limit_count;
    program->limits = HET_ARENA_ARRAY(program->arena, double, program->row_count);
    for (uint32_t c = 0; c < inventory->class_count; c++)
        program->limits[c] = inventory->classes[c].node_count;
    if (!has_gpu_limits(workload))
        return;
    double *limits = program->limits + program->class_rows;
    limits[0] = workload->max_gpus ? workload->max_gpus : 1e9;
    limits[1] = workload->max_data_parallel ? workload->max_data_parallel : 1e9;
    for (size_t i = 0; i < workload->type_limit_count; i++)
        limits[2 + i] =
            workload->type_limits[i].max_gpus ? workload->type_limits[i].max_gpus : 1e9;
}

static void use_gpus(const struct program *program, uint32_t class, double gpus,
                     double *uses)
{
    const struct het_problem *problem = program->catalog->market.problem;
    const struct het_workload *workload = problem->workload;
    uint32_t type = program->catalog->market.inventory->classes[class].type;
    double *limited = uses + program->class_rows;
    if (program->row_count == program->class_rows)
        return;
    limited[0] += gpus;
    for (size_t i = 0; i < workload->type_limit_count; i++)
        if (!strcmp(workload->type_limits[i].type, problem->cluster->types[type].name))
            limited[2 + i] += gpus;
}

static struct column *push_column(struct program *program, uint64_t samples,
                                  uint32_t replicas)
{
    struct column *column = &program->columns[program->column_count++];
    *column = (struct column){
        .samples = samples,
        .uses = HET_ARENA_ARRAY(program->arena, double, program->row_count),
    };
    if (program->row_count > program->class_rows)
        column->uses[program->class_rows + 1] = replicas;
    return column;
}

static void push_node(struct program *program, uint32_t class, uint32_t gpus)
{
    const struct node_choice *choice = &program->nodes[class][gpus];
    if (!choice->samples)
        return;
    struct column *column = push_column(program, choice->samples, choice->replicas);
    column->node_class = class;
    column->gpus = gpus;
    column->uses[class] = 1;
    use_gpus(program, class, gpus, column->uses);
}

static void push_cell(struct program *program, const struct offer *offer)
{
    const struct het_node_classes *inventory = program->catalog->market.inventory;
    const struct het_pipeline_shape *cell = offer->split->cell;
    struct column *column = push_column(program, offer->samples, cell->replicas);
    column->split = offer->split;
    for (uint32_t c = 0; c < inventory->class_count; c++) {
        column->uses[c] = cell->nodes[c];
        use_gpus(program, c, cell->nodes[c] * (double)inventory->classes[c].gpu_count,
                 column->uses);
    }
}

static void set_columns(struct program *program)
{
    const struct het_shape_catalog *catalog = program->catalog;
    const struct het_node_classes *inventory = catalog->market.inventory;
    bool in_part = has_gpu_limits(catalog->market.problem->workload);
    size_t most = catalog->signature_count;
    for (uint32_t c = 0; c < inventory->class_count; c++)
        most += inventory->classes[c].gpu_count;
    program->columns = HET_ARENA_ARRAY(program->arena, struct column, most);
    program->nodes =
        HET_ARENA_ARRAY(program->arena, struct node_choice *, inventory->class_count);
    for (uint32_t c = 0; c < inventory->class_count; c++) {
        uint32_t gpus = inventory->classes[c].gpu_count;
        fill_node(program, c);
        for (uint32_t g = in_part ? 1 : gpus; g <= gpus; g++)
            push_node(program, c, g);
    }
    for (size_t i = 0; i < catalog->signature_count; i++)
        if (!catalog->signatures[i].gpus && program->offers[i].samples)
            push_cell(program, &program->offers[i]);
}

/* ---- the linear program ---- */

#define MAX_STEPS 400

/* What a column costs, which is less by its samples, less what its uses are worth. */
static double reduced_cost(const struct column *column, const struct het_simplex *simplex)
{
    double cost = -(double)column->samples;
    for (size_t r = 0; r < simplex->rows; r++)
        cost -= column->uses[r] * simplex->prices[r];
    return cost;
}

/* What is to enter: a column, or behind them the slack of a row; the least cost first.
 * One behind those: nothing is worth it. */
static size_t choose_entering(const struct program *program,
                              const struct het_simplex *simplex)
{
    size_t slacks = program->column_count, nothing = slacks + simplex->rows;
    size_t entering = nothing;
    double least = -1e-7;
    for (size_t j = 0; j < nothing; j++) {
        double cost = j < slacks ? reduced_cost(&program->columns[j], simplex)
                                 : -simplex->prices[j - slacks];
        if (cost < least) {
            least = cost;
            entering = j;
        }
    }
    return entering;
}

/* One step; `basis` has what stands in each place. false: no step makes it better. */
static bool improve(const struct program *program, struct het_simplex *simplex,
                    size_t *basis)
{
    size_t slacks = program->column_count;
    size_t entering = choose_entering(program, simplex);
    double cost = 0;
    if (entering == slacks + simplex->rows)
        return false;
    if (entering < slacks) {
        cost = -(double)program->columns[entering].samples;
        memcpy(simplex->column, program->columns[entering].uses,
               simplex->rows * sizeof(double));
    } else {
        memset(simplex->column, 0, simplex->rows * sizeof(double));
        simplex->column[entering - slacks] = 1;
    }
    size_t at = het_simplex_enter(simplex, cost);
    if (at == simplex->rows)
        return false;
    basis[at] = entering;
    het_simplex_price(simplex);
    return true;
}

/* The optimum; whole numbers of cells and the prices of the rows into `program`. */
static double solve(struct program *program)
{
    struct het_simplex simplex;
    size_t rows = program->row_count;
    double samples = 0;
    if (!program->column_count)
        return 0;
    size_t *basis = HET_ARENA_ARRAY(program->arena, size_t, rows);
    het_simplex_init(&simplex, rows, 1e-9);
    for (size_t r = 0; r < rows; r++) {
        simplex.amounts[r] = program->limits[r];
        basis[r] = program->column_count + r;
    }
    for (int i = 0; i < MAX_STEPS && improve(program, &simplex, basis); i++)
        ;
    program->prices = HET_ARENA_ARRAY(program->arena, double, rows);
    for (size_t r = 0; r < rows; r++) {
        program->prices[r] = fmax(-simplex.prices[r], 0);
        samples -= simplex.costs[r] * simplex.amounts[r];
        if (basis[r] < program->column_count)
            program->columns[basis[r]].count = (uint32_t)(simplex.amounts[r] + 1e-6);
    }
    het_simplex_fini(&simplex);
    return samples;
}

/* ---- whole numbers ---- */

static bool has_room(const struct program *program, const struct column *column,
                     const double *left)
{
    for (uint32_t r = 0; r < program->row_count; r++)
        if (column->uses[r] > left[r])
            return false;
    return true;
}

static double worth(const struct program *program, const struct column *column)
{
    double price = 1e-9;
    for (uint32_t r = 0; r < program->row_count; r++)
        price += column->uses[r] * (program->prices[r] + 1e-6);
    return (double)column->samples / price;
}

/* Takes the best cell for its price as long as one has room. */
static void fill_rest(struct program *program)
{
    double *left = HET_ARENA_ARRAY(program->arena, double, program->row_count);
    for (uint32_t r = 0; r < program->row_count; r++) {
        left[r] = program->limits[r];
        for (size_t j = 0; j < program->column_count; j++)
            left[r] -= program->columns[j].count * program->columns[j].uses[r];
    }
    for (;;) {
        struct column *best = NULL;
        for (size_t j = 0; j < program->column_count; j++)
            if (has_room(program, &program->columns[j], left) &&
                (!best ||
                 worth(program, &program->columns[j]) > worth(program, best) * 1.000001))
                best = &program->columns[j];
        if (!best)
            return;
        uint32_t times = UINT32_MAX;
        for (uint32_t r = 0; r < program->row_count; r++)
            if (best->uses[r] > 0)
                times = (uint32_t)fmin(times, left[r] / best->uses[r]);
        best->count += times;
        for (uint32_t r = 0; r < program->row_count; r++)
            left[r] -= times * best->uses[r];
    }
}

/* The pipelines on a node of the column's class, the last chosen first. */
static void read_node(const struct program *program, const struct column *column,
                      struct het_shape_count_group *group)
{
    const struct node_choice *choices = program->nodes[column->node_class];
    group->splits = HET_ARENA_ARRAY(
        program->arena, const struct het_pipeline_shape_split *, column->gpus);
    group->node_class = column->node_class;
    for (uint32_t g = column->gpus; g;) {
        if (choices[g].signature == HET_UNBOUND) {
            g--;
            continue;
        }
        group->splits[group->split_count++] = program->offers[choices[g].signature].split;
        g -= program->catalog->signatures[choices[g].signature].gpus;
    }
}

static void read_mixture(const struct program *program, struct het_shape_count *ret)
{
    *ret = (struct het_shape_count){
        .groups = HET_ARENA_ARRAY(program->arena, struct het_shape_count_group,
                                  program->column_count),
    };
    for (size_t j = 0; j < program->column_count; j++) {
        const struct column *column = &program->columns[j];
        struct het_shape_count_group *group = &ret->groups[ret->group_count];
        if (!column->count)
            continue;
        ret->group_count++;
        *group = (struct het_shape_count_group){ .count = column->count,
                                                 .samples = column->samples,
                                                 .node_class = HET_UNBOUND };
        ret->samples += column->count * column->samples;
        if (!column->split) {
            read_node(program, column, group);
            continue;
        }
        group->splits =
            HET_ARENA_ARRAY(program->arena, const struct het_pipeline_shape_split *, 1);
        group->splits[0] = column->split;
        group->split_count = 1;
    }
}

bool het_shape_count_find(const struct het_shape_catalog *catalog,
                          struct het_arena *arena,
                          const struct het_shape_count_budget *budget, uint64_t batch,
                          struct het_shape_count *ret)
{
    struct program program = { .catalog = catalog, .arena = arena, .budget = budget };
    find_offers(&program);
    set_limits(&program);
    set_columns(&program);
    if (solve(&program) < (double)batch * (1 - 1e-9))
        return false;
    fill_rest(&program);
    read_mixture(&program, ret);
    return ret->samples >= batch;
}
