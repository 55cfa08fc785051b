/* input_change.h - what has changed between two inputs of the planner, in the words of
 * spec.replanPolicy.triggers. An input is kept as a few sums and digests of its parts,
 * small enough for an annotation however many nodes there are. Pure. */
#ifndef CONTROLLER_JOB_INPUT_CHANGE_H
#define CONTROLLER_JOB_INPUT_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits 1 << enum input_change make a set. */
enum input_change {
    INPUT_CHANGE_NODE_ADDED, /* a node can be used that could not; new, or back */
    INPUT_CHANGE_NODE_REMOVED,
    INPUT_CHANGE_NODE_CORDONED,
    INPUT_CHANGE_NODE_TAINTED,
    INPUT_CHANGE_NODE_NOT_READY,
    INPUT_CHANGE_CAPACITY_FREED, /* GPUs that others had, or that were ill */
    INPUT_CHANGE_GPU_UNHEALTHY,
    INPUT_CHANGE_PROFILE, /* or the hardware settings */
    INPUT_CHANGE_SPEC,
    INPUT_CHANGE_COUNT
};
#define INPUT_CHANGE_ALL ((1u << INPUT_CHANGE_COUNT) - 1)

/* "NodeAdded", as in the schema. */
const char *input_change_name(enum input_change change);
/* The bit of `name`; 0 if it is none. */
unsigned input_change_parse(const char *name);

struct input_state {
    uint64_t spec, profile;               /* digests */
    uint64_t nodes;                       /* of the names of the nodes that can be used */
    int64_t node_count;                   /* of these */
    int64_t allocatable, taken;           /* their GPUs; those that others have */
    int64_t cordoned, tainted, not_ready; /* GPU nodes that cannot be used, by reason */
};

/* Counts one GPU node: `unusable` as capacity.h has it, NULL if it can be used. Nodes in
 * any order give the same input. */
void input_change_add_node(struct input_state *input, const char *name,
                           const char *unusable, int64_t allocatable, int64_t free);

enum { INPUT_CHANGE_TEXT_SIZE = 224 };
void input_change_format(const struct input_state *input,
                         char ret_text[INPUT_CHANGE_TEXT_SIZE]);
/* False if `text` is not of input_change_format; then `ret` is left alone. */
bool input_change_read(const char *text, struct input_state *ret);

/* The set of changes from `before` to `after`; empty if nothing changed, or nothing that
 * could make a better plan possible (others took GPUs). */
unsigned input_change_between(const struct input_state *before,
                              const struct input_state *after);

#endif
