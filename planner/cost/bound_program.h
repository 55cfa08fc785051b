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
 * Any prices v_l >= 0 of the layers prove that the minimum is at least
 *
 *   samples sum_l v_l
 *     - sum_t gpus_t max(0, max_{a, e} rate_t(a, e) sum_{a <= l < e} v_l - held_t(a, e))
 *
 * because each run's bytes are at least the worth of its layers less that of its GPUs
 * (the dual of the program). The simplex method only finds good prices. */
#ifndef HET_COST_BOUND_PROGRAM_H
#define HET_COST_BOUND_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct het_bound_program_type {
    double gpus;       /* of the type */
    double node_gpus;  /* of the largest node */
    double uplink;     /* of the widest node, bytes a second; for the caller */
    double free_bytes; /* bytes that a node holds without being counted */
    double *compute; /* [layer_count + 1]: prefix sums of c_tl, GPU seconds of a sample */
    double *crossing; /* [layer_count + 1]: x_t, GPU seconds to receive a sample from, or
                         send it to, another node before layer l; 0 at both ends */
    /* For each run, (a, e) in order; made by het_bound_program_prepare. */
    double *a_second; /* runs that a GPU does in one second */
    double *counted;  /* bytes per GPU: held_t */
};

struct het_bound_program {
    uint32_t layer_count;
    double samples;
    struct het_bound_program_type *types;
    size_t type_count;
    double *bytes;    /* [layer_count + 1]: prefix sums */
    double end_bytes; /* held by nodes with the first or last layer; in no sum */
    double *wait_s;   /* [layer_count + 1]: while a sample passes the layers before l,
                         forward and backward: the GPUs of layer l idle */
};

/* To be called before the first call below, and whenever free_bytes change. */
void het_bound_program_prepare(struct het_bound_program *covering);
/* Frees what het_bound_program_prepare made. */
void het_bound_program_fini(struct het_bound_program *covering);

/* Looks for the prices, [layer_count], that prove the most for `budget_s` seconds;
 * returns the bytes that they prove: a large number if the layers cannot be computed in
 * time. */
double het_bound_program_solve(const struct het_bound_program *covering, double budget_s,
                               double *ret_prices);
/* Bytes that given prices prove. Concave and not increasing in budget_s. */
double het_bound_program_prove(const struct het_bound_program *covering, double budget_s,
                               const double *prices);

#endif
