/* node_state.h - what one Node object says about itself, before any job looks at it: its
 * state, whether it leaves, whether it is a spot node, and the GPUs that it offers by
 * each of its extended resources. Pure. */
#ifndef CONTROLLER_CLUSTER_NODE_STATE_H
#define CONTROLLER_CLUSTER_NODE_STATE_H

#include "controller/job/settings.h"

/* GPUs by one resource. */
struct node_offer {
    char *resource, *type; /* type NULL: unknown */
    const char *vendor; /* if the type does not say it (het_node_vendor); static text */
    uint64_t memory_bytes;
    int64_t allocatable;
    bool is_shared;
    bool is_stated; /* an administrator's label says the type */
    bool is_mixed;  /* GPUs of several types behind one resource */
    /* What the labels said of the GPUs last (the label NULL: they never named one); that
     * they said another type before of the same GPUs, and that they changed again. */
    char *seen_label, *seen_type;
    bool has_changed;
    bool has_flipped;
};

struct node_state {
    const char *unusable; /* NULL: usable; static text */
    char *leaving;        /* the taint or annotation that says so; NULL: it stays */
    bool is_spot;
    char *machine; /* changes when the node is made anew or boots */
    /* Every extended resource that it has, and nvidia.com/gpu in any case, by name: what
     * would be asked for if GPUs were named so. */
    struct node_offer *offers;
    size_t offer_count;
};

/* `node` NULL: gone. Zeroed structs may be given to _fini and _same. */
void node_state_init(struct node_state *state, const json_t *node,
                     const struct het_hardware *hardware,
                     const struct settings *settings);
/* Adds what `before` knew of the same node: GPUs whose labels call them another type, and
 * then another one or the first again, while neither the machine nor they were gone in
 * between, are of several types (GPU Feature Discovery writes the labels of any one of
 * them), and stay so until one of both was gone. A label that changes once was put right.
 * An administrator's label is believed, as are types of shared GPUs, which may be cut
 * anew. Types are compared only where the label itself is another, so that a new hardware
 * table makes none. */
void node_state_follow(struct node_state *state, const struct node_state *before);
void node_state_fini(struct node_state *state);
bool node_state_same(const struct node_state *a, const struct node_state *b);
/* NULL if the node has no such resource. */
const struct node_offer *node_state_find_offer(const struct node_state *state,
                                               const char *resource);
/* The offer for jobs that name no resource: the first of nvidia.com/gpu and amd.com/gpu
 * that has GPUs, else nvidia.com/gpu. NULL only for a zeroed state. */
const struct node_offer *node_state_default_offer(const struct node_state *state);
/* Whether it offers GPUs: a resource whose type is known, or one of NVIDIA or AMD. */
bool node_state_has_gpus(const struct node_state *state);

#endif
