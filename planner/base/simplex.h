/* simplex.h - the revised simplex method, for linear programs whose columns the caller
 * makes up as they are wanted:
 *
 *   minimise sum_j cost_j y_j  such that  sum_j y_j column_j = limits,  y >= 0
 *
 * It begins with the unit columns, whose amounts are the limits. A step: read the prices
 * of the rows, find a column whose cost is below its worth at those prices, and enter
 * it. No column: the amounts are optimal. The prices prove a bound at any time. */
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

/* Numbers up to `least_pivot` are taken for rounding of zero: nothing is divided by them. */
void het_simplex_init(struct het_simplex *simplex, size_t rows, double least_pivot);
void het_simplex_fini(struct het_simplex *simplex);

/* The prices of the rows at which no column of the basis has a gain. */
const double *het_simplex_price(struct het_simplex *simplex);
/* `column`, at `cost`, takes the place in the basis of the one that is the first to fall
 * to nothing; of equal ones of that with the largest pivot. Returns the place; `rows`,
 * and nothing has changed, if none does: then the column could grow without end. */
size_t het_simplex_enter(struct het_simplex *simplex, double cost);
/* It takes place `row`, whether or not amounts stay above zero. */
void het_simplex_replace(struct het_simplex *simplex, size_t row, double cost);

#endif
