/* input_change.h - what has changed between two inputs of the planner, in the words of
 * spec.replanPolicy.triggers. An input is kept as a few sums and digests of its parts,
 * small enough for an annotation however many nodes there are. Pure. */
#ifndef CONTROLLER_JOB_INPUT_CHANGE_H
#define CONTROLLER_JOB_INPUT_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits 1 << enum change make a set. */
enum change {
    CHANGE_NODE_ADDED, /* a node can be used that could not; new, or back */
    CHANGE_NODE_REMOVED,
    CHANGE_NODE_CORDONED,
    CHANGE_NODE_TAINTED,
    CHANGE_NODE_NOT_READY,
    CHANGE_CAPACITY_FREED, /* GPUs that others had, or that were ill */
    CHANGE_GPU_UNHEALTHY,
    CHANGE_PROFILE, /* or the hardware settings */
    CHANGE_SPEC,
    CHANGE_COUNT
};
#define CHANGE_ALL ((1u << CHANGE_COUNT) - 1)

/* "NodeAdded", as in the schema. */
const char *change_name(enum change change);
/* The bit of `name`; 0 if it is none. */
unsigned change_parse(const char *name);

struct change_input {
    uint64_t spec, profile;               /* digests */
    uint64_t nodes;                       /* of the names of the nodes that can be used */
    int64_t node_count;                   /* of these */
    int64_t allocatable, taken;           /* their GPUs; those that others have */
    int64_t cordoned, tainted, not_ready; /* GPU nodes that cannot be used, by reason */
};

/* Counts one GPU node: `unusable` as capacity.h has it, NULL if it can be used. Nodes in
 * any order give the same input. */
void change_add_node(struct change_input *input, const char *name, const char *unusable,
                     int64_t allocatable, int64_t free);

enum { CHANGE_TEXT_SIZE = 224 };
void change_format(const struct change_input *input, char ret_text[CHANGE_TEXT_SIZE]);
/* False if `text` is not of change_format; then `ret` is left alone. */
bool change_read(const char *text, struct change_input *ret);

/* The set of changes from `before` to `after`; empty if nothing changed, or nothing that
 * could make a better plan possible (others took GPUs). */
unsigned change_between(const struct change_input *before,
                        const struct change_input *after);

#endif
