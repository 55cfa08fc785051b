/* bound_program.h - a linear program: the least share of the model that nodes must hold
 * so that every layer of every sample is computed in time. bound.h says what it proves.
 *
 * A run is what a node computes of one sample without a break: layers [a, e). A GPU of
 * type t that spends its time on runs [a, e) holds
 *
 *   held_t(a, e) = max(0, sum_{a <= l < e} bytes_l - free_t) / node_gpus_t
 *
 * (the bytes of its node beyond those that are free, spread over the node's GPUs) and
 * does
 *
 *   rate_t(a, e) = (D - wait(a)) / (sum_{a <= l < e} c_tl + x_t(a) + x_t(e))
 *
 * runs in D seconds. With y_t(a, e) GPUs of type t on each run:
 *
 *   minimise   sum y_t(a, e) held_t(a, e)
 *   such that  sum_{t, a <= l < e} y_t(a, e) rate_t(a, e) >= samples    for each layer l
 *              sum_{a, e} y_t(a, e) <= gpus_t                           for each type t
 *
 * Prices v_l >= 0 of the layers prove, whatever they are, that the least is at least
 *
 *   samples sum_l v_l
 *     - sum_t gpus_t max(0, max_{a, e} rate_t(a, e) sum_{a <= l < e} v_l - held_t(a, e))
 *
 * as each run's bytes are at least what its layers are worth less what its GPUs are: the
 * dual of the program. The simplex method only looks for good prices. */
#ifndef HET_COST_BOUND_PROGRAM_H
#define HET_COST_BOUND_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct het_bound_program_type {
    double gpus;       /* there are */
    double node_gpus;  /* of a node, the most */
    double uplink;     /* of a node, bytes a second, the most: for the caller */
    double free_bytes; /* that a node may hold, and they do not count */
    double *compute; /* [layer_count + 1]: prefix sums of c_tl, GPU seconds of a sample */
    double *crossing; /* [layer_count + 1]: x_t, GPU seconds of a sample that comes from,
                         or goes to, another node before layer l; 0 at both ends */
    /* Of each run, (a, e) in order; het_bound_program_prepare makes them. */
    double *a_second; /* runs that a GPU does in one */
    double *counted;  /* bytes, a GPU: held_t */
};

struct het_bound_program {
    uint32_t layer_count;
    double samples;
    struct het_bound_program_type *types;
    size_t type_count;
    double *bytes;    /* [layer_count + 1]: prefix sums */
    double end_bytes; /* held by whoever has the first layer or the last; in no sum */
    double *wait_s;   /* [layer_count + 1]: until a sample has passed the layers before,
                         and passes them again: the GPUs of layer l have nothing to do */
};

/* Before the first of the calls below, and whenever free_bytes have changed. */
void het_bound_program_prepare(struct het_bound_program *covering);
/* Gives back what that made. */
void het_bound_program_fini(struct het_bound_program *covering);

/* Looks for prices, [layer_count], that prove the most for `budget_s` seconds; returns
 * the bytes that they prove. Where the layers cannot be computed in time, that is a
 * large number. */
double het_bound_program_solve(const struct het_bound_program *covering, double budget_s,
                               double *ret_prices);
/* Bytes that given prices prove. Concave and not increasing in budget_s. */
double het_bound_program_prove(const struct het_bound_program *covering, double budget_s,
                               const double *prices);

#endif
