/* unused_gpus.h - the GPUs of a cluster that a plan does not use, and why: groups of one
 * reason and GPU type, so that the list is short however large the cluster is. One table
 * here holds every word that planner and controller use for such a reason. */
#ifndef HET_MODEL_UNUSED_GPUS_H
#define HET_MODEL_UNUSED_GPUS_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which groups are listed: first what an administrator can fix. */
enum het_unused_reason {
    /* The GPUs are not known. */
    HET_UNUSED_UNKNOWN_PRODUCT,
    HET_UNUSED_NO_GPU_LABEL,
    HET_UNUSED_MIXED_GPUS,
    HET_UNUSED_NO_RATES,
    /* The model, on GPUs of the type. */
    HET_UNUSED_NOT_MEASURED,
    HET_UNUSED_PRECISION_UNSUPPORTED,
    HET_UNUSED_TOO_LITTLE_MEMORY,
    /* What the job allows. */
    HET_UNUSED_TYPE_NOT_ALLOWED,
    HET_UNUSED_TYPE_LIMIT,
    HET_UNUSED_GPU_LIMIT,
    HET_UNUSED_NOT_WITHIN_LIMITS,
    HET_UNUSED_OTHER_VENDOR,
    HET_UNUSED_NOT_SELECTED,
    HET_UNUSED_TAINTED,
    HET_UNUSED_SPOT_FORBIDDEN,
    HET_UNUSED_SHARED_GPU,
    HET_UNUSED_OTHER_RESOURCE,
    /* The state of the node. */
    HET_UNUSED_NOT_READY,
    HET_UNUSED_UNSCHEDULABLE,
    HET_UNUSED_LEAVING,
    HET_UNUSED_GPU_UNHEALTHY,
    HET_UNUSED_REPARTITIONING,
    HET_UNUSED_VIRTUAL_MACHINE,
    HET_UNUSED_AVOIDED,
    HET_UNUSED_NO_GPU,
    HET_UNUSED_NODE_GONE,
    /* Others. */
    HET_UNUSED_IN_USE,
    HET_UNUSED_NO_ROOM,
    HET_UNUSED_QUOTA,
    /* They could be used. */
    HET_UNUSED_NOT_CHOSEN,
    HET_UNUSED_REASONS
};

/* "NotMeasured". */
const char *het_unused_name(enum het_unused_reason reason);
/* The reason of a text as "Tainted" or "Tainted (key)", and in `arena` what stands in the
 * brackets, "" if nothing does; false if it is none. */
bool het_unused_parse(struct het_arena *arena, const char *text,
                      enum het_unused_reason *ret, const char **ret_detail);
/* Whether the GPUs are not known, which an administrator should fix. */
bool het_unused_is_unknown(enum het_unused_reason reason);

/* Names of nodes that a group keeps, and groups of a list: beyond that, further GPUs of a
 * reason are one group, whatever their type. */
#define HET_UNUSED_NODES  8u
#define HET_UNUSED_MOST   ((uint32_t)INT32_MAX) /* GPUs and nodes of a group */
#define HET_UNUSED_GROUPS 64u

struct het_unused {
    enum het_unused_reason reason;
    const char *type;   /* of the GPUs; "": not known, or several */
    const char *detail; /* the taint, the resource, ... that the reason is about; "": none
                         */
    uint32_t gpus, node_count;
    const char *nodes[HET_UNUSED_NODES]; /* the first of them */
};

struct het_unused_list {
    struct het_unused *groups; /* [HET_UNUSED_GROUPS], NULL: there is none */
    size_t count;
};

/* Adds GPUs of one node, which is called but once for each reason; strings are borrowed.
 * 0 GPUs add nothing. */
void het_unused_add(struct het_arena *arena, struct het_unused_list *list,
                    enum het_unused_reason reason, const char *type, const char *detail,
                    const char *node, uint32_t gpus);
/* Adds whole groups. */
void het_unused_merge(struct het_arena *arena, struct het_unused_list *list,
                      const struct het_unused *groups, size_t count);
/* By reason, type, detail. */
void het_unused_sort(struct het_unused_list *list);

/* For users: why the GPUs are not used and, where that is known, what to set. In
 * `arena`. */
const char *het_unused_text(struct het_arena *arena, const struct het_unused *group);
size_t het_unused_name_count(const struct het_unused *group); /* of `nodes` */

#endif
