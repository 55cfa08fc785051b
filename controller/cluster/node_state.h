/* node_state.h - what a Node object says about itself, independent of any job: its state,
 * whether it will go, whether it is a spot node, and the GPUs that it offers through each
 * of its extended resources. Pure. */
#ifndef CONTROLLER_CLUSTER_NODE_STATE_H
#define CONTROLLER_CLUSTER_NODE_STATE_H

#include "controller/job/settings.h"

/* GPUs offered through one resource. */
struct node_offer {
    char *resource, *type; /* type NULL: unknown */
    const char *vendor; /* if the type does not give it (het_node_vendor); static text */
    uint64_t memory_bytes;
    int64_t allocatable;
    bool is_shared;
    bool is_stated; /* an administrator's label gives the type */
    bool is_mixed;  /* GPUs of several types behind one resource */
    /* The label and type last seen for the GPUs (label NULL: none named one); whether the
     * labels had named another type for the same GPUs before, and whether they changed
     * again. */
    char *seen_label, *seen_type;
    bool has_changed;
    bool has_flipped;
};

struct node_state {
    const char *unusable; /* NULL: usable; static text */
    char *leaving;        /* the taint or annotation that announces it; NULL: it stays */
    bool is_spot;
    char *machine; /* changes when the node is recreated or boots */
    /* Every extended resource of the node, and always nvidia.com/gpu, by name: each could
     * be a resource by which jobs request GPUs. */
    struct node_offer *offers;
    size_t offer_count;
};

/* `node` NULL: gone. Zeroed structs may be given to _fini and _same. */
void node_state_init(struct node_state *state, const json_t *node,
                     const struct het_hardware *hardware,
                     const struct settings *settings);
/* Adds what `before` knew of the same node. If the labels change the type of its GPUs
 * twice while neither the machine nor the GPUs were gone in between, the GPUs are of
 * several types (GPU Feature Discovery writes the labels of any one of them). They stay
 * so until the machine or the GPUs were gone. A label that changes once was corrected. An
 * administrator's label is believed, and so are the types of shared GPUs, which may be
 * repartitioned. Types are compared only if the label itself differs, so a new hardware
 * table makes no difference. */
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
