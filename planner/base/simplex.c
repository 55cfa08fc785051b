#include "planner/base/simplex.h"

#include "planner/base/arena.h"

#include <math.h>
#include <string.h>

void het_simplex_init(struct het_simplex *simplex, size_t rows, double least_pivot)
{
    double *vectors = xcalloc(rows * (rows + 5), sizeof *vectors);
    *simplex = (struct het_simplex){
        .rows = rows,
        .least_pivot = least_pivot,
        .amounts = vectors,
        .costs = vectors + rows,
        .prices = vectors + 2 * rows,
        .column = vectors + 3 * rows,
        .direction = vectors + 4 * rows,
        .inverse = vectors + 5 * rows,
    };
    for (size_t i = 0; i < rows; i++)
        simplex->inverse[i * rows + i] = 1;
}

void het_simplex_fini(struct het_simplex *simplex)
{
    het_free_pointer(&simplex->amounts);
}

const double *het_simplex_price(struct het_simplex *simplex)
{
    size_t rows = simplex->rows;
    memset(simplex->prices, 0, rows * sizeof *simplex->prices);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; simplex->costs[i] != 0 && j < rows; j++)
            simplex->prices[j] += simplex->costs[i] * simplex->inverse[i * rows + j];
    return simplex->prices;
}

/* direction = inverse * column: what of the basis one of the column replaces. */
static void find_direction(struct het_simplex *simplex)
{
    size_t rows = simplex->rows;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < rows; j++)
            sum += simplex->inverse[i * rows + j] * simplex->column[j];
        simplex->direction[i] = sum;
    }
}

static size_t find_leaving(const struct het_simplex *simplex)
{
    size_t leaving = simplex->rows;
    double least = HUGE_VAL;
    for (size_t i = 0; i < simplex->rows; i++) {
        double pivot = simplex->direction[i];
        if (pivot <= simplex->least_pivot)
            continue;
        double ratio = fmax(simplex->amounts[i], 0) / pivot;
        if (ratio < least * (1 - 1e-12) ||
            (ratio <= least && pivot > simplex->direction[leaving])) {
            least = ratio;
            leaving = i;
        }
    }
    return leaving;
}

static void pivot(struct het_simplex *simplex, size_t row, double cost)
{
    size_t rows = simplex->rows;
    double *pivot_row = simplex->inverse + row * rows;
    double step = simplex->amounts[row] / simplex->direction[row];
    for (size_t j = 0; j < rows; j++)
        pivot_row[j] /= simplex->direction[row];
    for (size_t i = 0; i < rows; i++) {
        double factor = simplex->direction[i];
        if (i == row || factor == 0)
            continue;
        simplex->amounts[i] -= factor * step;
        for (size_t j = 0; j < rows; j++)
            simplex->inverse[i * rows + j] -= factor * pivot_row[j];
    }
    simplex->amounts[row] = step;
    simplex->costs[row] = cost;
}

size_t het_simplex_enter(struct het_simplex *simplex, double cost)
{
    find_direction(simplex);
    size_t leaving = find_leaving(simplex);
    if (leaving < simplex->rows)
        pivot(simplex, leaving, cost);
    return leaving;
}

void het_simplex_replace(struct het_simplex *simplex, size_t row, double cost)
{
    find_direction(simplex);
    pivot(simplex, row, cost);
}
