/* network.h - measured bandwidth between GPUs over message size, by the GPUs' types and
 * zones and how many communicate at a time. cluster.h asks here first and takes a node's
 * plain figures where nothing was measured.
 *
 * A curve is a parabola over x = log2(message bytes / 1e6), bytes a second:
 *
 *   bandwidth = a x^2 + b x + c
 *
 * fitted to messages of about 1 MB and more. Only the branch on which bandwidth grows
 * with the message is used: below 1 MB, and on the wrong side of the vertex, the value at
 * that edge holds. The result is at most the largest measured bandwidth, and at least
 * 1/1000 of it. A falling line (a = 0, b < 0) has no such branch: its value at 1 MB holds
 * everywhere, as for a parabola whose vertex lies below that. So no curve falls as the
 * message grows, and its value at HET_LARGEST_MESSAGE is its maximum.
 *
 * A pair that was not measured in a zone takes the curve of the same types without one. A
 * GPU count that was not measured takes the slower of the two measured ones around it;
 * beyond them, the nearest. */
#ifndef HET_MODEL_NETWORK_H
#define HET_MODEL_NETWORK_H

#include "planner/base/error.h"

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#define HET_MAX_PLACES 1024u
#define HET_MAX_CURVES 65536u
#define HET_NO_PLACE   UINT32_MAX

/* Bytes; no message is larger. */
#define HET_LARGEST_MESSAGE DBL_MAX

/* What a curve is measured between: GPUs of a type, in a zone. */
struct het_place {
    const char *zone; /* NULL: anywhere */
    const char *type; /* as the file calls it: "A100-40" */
};

struct het_curve {
    /* Indices into places; the same, with to_gpus 0: inside a node. */
    uint32_t from, to;
    /* GPUs that communicate at a time, on the sender's and the receiver's node. */
    uint32_t from_gpus, to_gpus;
    double a, b, c;
    double most_bytes_per_s;
};

struct het_network {
    const struct het_place *places;
    size_t place_count;
    const struct het_curve *curves; /* sorted by (from, to, from_gpus, to_gpus) */
    size_t curve_count;
};

/* Order of curves in a network. */
int het_curve_compare(const struct het_curve *a, const struct het_curve *b);
/* Bytes a second of one curve; `message_bytes` > 0. Does not fall as that grows. */
double het_curve_bandwidth(const struct het_curve *curve, double message_bytes);

/* The place of GPU type `type` in `zone` (NULL: unknown): of both names; else of the type
 * alone, anywhere; else the first of the type. HET_NO_PLACE if there is none. */
uint32_t het_network_find_place(const struct het_network *network, const char *zone,
                                const char *type);

/* Bytes a second that each GPU of a node gets, when `gpus` of the node communicate with
 * each other; 0: not measured. */
double het_network_inside(const struct het_network *network, uint32_t place,
                          uint32_t gpus, double message_bytes);
/* Bytes a second that `gpus` GPUs of a node get together, sending to as many of another;
 * 0: not measured. `message_bytes` is what one of them sends. */
double het_network_between(const struct het_network *network, uint32_t from, uint32_t to,
                           uint32_t gpus, double message_bytes);

/* Refuses (HET_BAD_INPUT) curves that are unsorted, not finite, without a maximum or out
 * of range.
 */
int het_network_check(const struct het_network *network, struct het_error *err);

#endif
