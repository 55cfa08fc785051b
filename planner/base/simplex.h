/* simplex.h - the revised simplex method, for linear programs whose columns the caller
 * generates on demand:
 *
 *   minimise sum_j cost_j y_j  such that  sum_j y_j column_j = limits,  y >= 0
 *
 * It begins with the unit columns, whose amounts are the limits. A step: read the prices
 * of the rows, find a column whose cost is below its worth at those prices, and enter
 * it. If there is none, the amounts are optimal. The prices prove a bound at any time. */
#ifndef HET_BASE_SIMPLEX_H
#define HET_BASE_SIMPLEX_H

#include <stdbool.h>
#include <stddef.h>

/* Row i of the basis is a column that has entered, or the unit column i. */
struct het_simplex {
    size_t rows;
    double least_pivot;
    double *amounts;   /* [rows]: y of the basis; before the first step the limits */
    double *costs;     /* [rows]: of the basis; before the first step the unit columns' */
    double *prices;    /* [rows]: of the last het_simplex_price */
    double *column;    /* [rows]: the caller fills it with what is to enter */
    double *inverse;   /* [rows][rows]: of the basis */
    double *direction; /* [rows] */
};

/* Numbers up to `least_pivot` are taken for rounding of zero: nothing is divided by
 * them. */
void het_simplex_init(struct het_simplex *simplex, size_t rows, double least_pivot);
void het_simplex_fini(struct het_simplex *simplex);

/* The prices of the rows at which no column of the basis has a gain. */
const double *het_simplex_price(struct het_simplex *simplex);
/* `column`, at `cost`, replaces the column of the basis that falls to zero first; of
 * equal ones the one with the largest pivot. Returns its row; `rows`, with nothing
 * changed, if none falls: the new column could then grow without bound. */
size_t het_simplex_enter(struct het_simplex *simplex, double cost);
/* `column` replaces row `row` of the basis, whether or not amounts stay above zero. */
void het_simplex_replace(struct het_simplex *simplex, size_t row, double cost);

#endif
