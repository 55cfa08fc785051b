/* vendor_group.h - a problem, split where GPUs cannot communicate. NCCL joins GPUs of
 * NVIDIA, RCCL those of AMD, and no library joins both: a plan has GPUs of one vendor
 * only, unless the administrator says that the runtime joins them
 * (workload.mixes_vendors). */
#ifndef HET_MODEL_VENDOR_GROUP_H
#define HET_MODEL_VENDOR_GROUP_H

#include "planner/model/plan.h"

/* Whose GPUs a plan may have. */
struct het_vendor_group {
    const char *vendor; /* NULL: all GPUs, as they are one vendor's or may be mixed */
    /* The problem with the nodes of that vendor alone; types and levels are as before. */
    struct het_problem problem;
    uint32_t gpus; /* of its nodes */
};

/* Whether nodes of different vendors have GPUs that the job may use, but not together. */
bool het_vendor_is_split(const struct het_problem *problem);

/* Vendors considered, at most; GPUs of further ones stay idle. */
#define HET_MAX_VENDORS 16u

/* The groups, in order of their first node; if the problem is not split, one of all of
 * it. In `arena`. */
size_t het_vendor_groups(struct het_arena *arena, const struct het_problem *problem,
                         const struct het_vendor_group **ret);

#endif
