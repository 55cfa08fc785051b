/* input_change.h - what has changed between two inputs of the planner, in the terms of
 * spec.replanPolicy.triggers. An input is stored as a few sums and digests of its parts,
 * small enough for an annotation with any number of nodes. Pure. */
#ifndef CONTROLLER_JOB_INPUT_CHANGE_H
#define CONTROLLER_JOB_INPUT_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits 1 << enum input_change make a set. */
enum input_change {
    INPUT_CHANGE_NODE_ADDED, /* a node became usable; new, or back */
    INPUT_CHANGE_NODE_REMOVED,
    INPUT_CHANGE_NODE_CORDONED,
    INPUT_CHANGE_NODE_TAINTED,
    INPUT_CHANGE_NODE_NOT_READY,
    INPUT_CHANGE_CAPACITY_FREED, /* GPUs that others had, or that were unhealthy */
    INPUT_CHANGE_GPU_UNHEALTHY,
    INPUT_CHANGE_PROFILE, /* or the hardware settings */
    INPUT_CHANGE_SPEC,
    INPUT_CHANGE_COUNT
};
#define INPUT_CHANGE_ALL ((1u << INPUT_CHANGE_COUNT) - 1)

/* "NodeAdded", as in the schema. */
const char *input_change_name(enum input_change change);
/* The bit of `name`; 0 if there is no such change. */
unsigned input_change_parse(const char *name);

struct input_state {
    uint64_t spec, profile;               /* digests */
    uint64_t nodes;                       /* of the names of the usable nodes */
    int64_t node_count;                   /* of these */
    int64_t allocatable, taken;           /* their GPUs; those that others have */
    int64_t cordoned, tainted, not_ready; /* unusable GPU nodes, by reason */
};

/* Adds one GPU node: `unusable` as in capacity_view.h, NULL if it is usable. The order of
 * the nodes does not matter. */
void input_change_add_node(struct input_state *input, const char *name,
                           const char *unusable, int64_t allocatable, int64_t free);

enum { INPUT_CHANGE_TEXT_SIZE = 224 };
void input_change_format(const struct input_state *input,
                         char ret_text[INPUT_CHANGE_TEXT_SIZE]);
/* False if `text` is not from input_change_format; `ret` is then left alone. */
bool input_change_read(const char *text, struct input_state *ret);

/* The set of changes from `before` to `after`; empty if nothing changed that could allow
 * a better plan (if others took GPUs, say). */
unsigned input_change_between(const struct input_state *before,
                              const struct input_state *after);

#endif
