/* profile.h - measured seconds and bytes of each layer by (GPU type, tensor-parallel
 * degree, micro-batch size). Layer 0 is the embedding, the last the head.
 *
 * Rules: a micro-batch size that was not measured takes the sum of its binary parts (7 =
 * 4 + 2 + 1; Metis, section 4.3). A part that was not measured takes twice its half (4 =
 * 2 + 2), and so on down; sizes below the smallest measured one have no time. Sizes
 * beyond the largest measured one have none either, unless `extrapolation` allows them:
 * such a size takes as many of the largest measured one as fit and the parts of the rest.
 * So a time is always a sum of measured ones, and never less per sample than the best of
 * them. A degree without measurements does not exist for that type. */
#ifndef HET_MODEL_PROFILE_H
#define HET_MODEL_PROFILE_H

#include "planner/base/arena.h"
#include "planner/base/error.h"
#include "planner/model/hardware.h"
#include "planner/model/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HET_MAX_LAYERS        4096u
#define HET_MAX_MICROBATCH    65536u
#define HET_MAX_EXTRAPOLATION 16u

/* Where times come from: all from measurements; from data sheets (estimate.h); or from
 * data sheets fitted to a measured step of each GPU type. */
enum het_profile_origin {
    HET_PROFILE_MEASURED,
    HET_PROFILE_ESTIMATED,
    HET_PROFILE_CALIBRATED
};

/* One measured point. Times are seconds for `microbatch` samples on one rank of a
 * tensor-parallel group of `tp`; prefix sums: entry l is the sum over layers 0 .. l-1, so
 * each array has layer_count + 1 entries. */
struct het_measurement {
    uint32_t type; /* index into type_names */
    uint32_t tp;
    uint32_t microbatch;
    const double *forward_s;  /* prefix sums */
    const double *backward_s; /* prefix sums */
    /* Backward with selective recomputation, which computes the attention's core again;
     * NULL: not measured. */
    const double *selective_backward_s;
    double optimizer_s; /* optimizer step of the whole model on one rank */
};

/* Bytes of each layer on one rank of degree `tp`; prefix sums, layer_count + 1 entries.
 */
struct het_layer_bytes {
    uint32_t tp;
    const double *parameters; /* parameter count of one rank (elements, not bytes) */
    const double *state;      /* measured bytes of weights, gradients and optimizer state;
                                 NULL: by het_workload_state_bytes */
    const double *activations; /* bytes kept for the backward pass, per sample */
    const double *selective_activations; /* the same with selective recomputation; NULL:
                                            not measured */
    double workspace_bytes; /* the most that one layer needs only while it runs, beside
                               the workspace of the GPU type */
};

struct het_profile {
    const char *model;
    uint32_t layer_count;
    const char *const *type_names; /* sorted */
    size_t type_count;
    const struct het_measurement *measurements; /* sorted by (type, tp, microbatch) */
    size_t measurement_count;
    const struct het_layer_bytes *bytes; /* sorted by tp */
    size_t bytes_count;
    const double *boundary_bytes;   /* [layer_count]: output of layer l for one sample,
                                       whole tensor, sent between stages */
    double parameter_element_bytes; /* 4 for fp32 profiles */
    uint32_t sequence_length;       /* tokens of a sample; 0: it does not say */
    enum het_precision precision;   /* in which it was measured */
    enum het_optimizer optimizer;   /* that het_layer_bytes.state counts */
    enum het_profile_origin origin;
    uint32_t extrapolation; /* sizes up to this many times the largest measured
                               micro-batch have a time; 0 and 1: only up to that one */
    bool shared_embedding;  /* head and embedding are one tensor (both ends hold and
                               synchronise it) */
};

/* Order of the points of a profile, as qsort wants it: by the name of the type, then tp,
 * then micro-batch. */
struct het_profile_point {
    const char *type;
    uint32_t tp, microbatch;
};
int het_profile_compare_points(struct het_profile_point left,
                               struct het_profile_point right);

/* Index of `name` in type_names; HET_NO_TYPE if absent. */
uint32_t het_profile_find_type(const struct het_profile *profile, const char *name);
/* The measured point; NULL if absent. */
const struct het_measurement *het_profile_find(const struct het_profile *profile,
                                               uint32_t type, uint32_t tp,
                                               uint32_t microbatch);
/* Entry of degree `tp`; NULL if absent. */
const struct het_layer_bytes *het_profile_bytes(const struct het_profile *profile,
                                                uint32_t tp);
/* "measured", "estimated", "calibrated"; and back, HET_BAD_INPUT for another name. */
const char *het_profile_origin_name(enum het_profile_origin origin);
int het_profile_origin_parse(const char *name, enum het_profile_origin *ret,
                             struct het_error *err);

/* Largest micro-batch of (type, tp) that has a time, and smallest that was measured; 0 if
 * the degree is absent. */
uint32_t het_profile_max_microbatch(const struct het_profile *profile, uint32_t type,
                                    uint32_t tp);
uint32_t het_profile_min_microbatch(const struct het_profile *profile, uint32_t type,
                                    uint32_t tp);

/* Seconds forward and backward that layers [first, first + count) take for `samples`
 * samples on one rank of degree `tp`. `samples` 0 takes no time. Errors: HET_NO_PROFILE,
 * if the size has no time by the rules above. */
int het_profile_times(const struct het_profile *profile, uint32_t type, uint32_t tp,
                      uint32_t samples, uint32_t first_layer, uint32_t layer_count,
                      double *ret_forward_s, double *ret_backward_s,
                      struct het_error *err);
/* Seconds backward of the same with selective recomputation. False, if that was not
 * measured: `ret_backward_s` is left alone. */
bool het_profile_selective_s(const struct het_profile *profile, uint32_t type,
                             uint32_t tp, uint32_t samples, uint32_t first_layer,
                             uint32_t layer_count, double *ret_backward_s);
/* Whether (type, tp, samples) has a time by the rules above. */
bool het_profile_covers(const struct het_profile *profile, uint32_t type, uint32_t tp,
                        uint32_t samples);
/* Whether the size is beyond the largest that was measured of (type, tp). */
bool het_profile_extrapolates(const struct het_profile *profile, uint32_t type,
                              uint32_t tp, uint32_t samples);
/* Optimizer seconds of layers [first, first + count): the model's, in proportion to the
 * parameters, from the smallest measured micro-batch of (type, tp). */
double het_profile_optimizer_s(const struct het_profile *profile, uint32_t type,
                               uint32_t tp, uint32_t first_layer, uint32_t layer_count);

/* Consistency of a profile just built (sorted, finite, positive, monotonic prefix sums);
 * HET_BAD_INPUT names the measurement. */
int het_profile_check(const struct het_profile *profile, struct het_error *err);

#endif
