/* hardware.h - facts about GPU types that neither nodes nor cluster files carry: names
 * and aliases, memory, link bandwidths, workspace, price, speed. A table for common GPUs
 * is built in; an admin's hardware file (docs/planner.md) is laid over it. */
#ifndef HET_MODEL_HARDWARE_H
#define HET_MODEL_HARDWARE_H

#include "planner/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In place of a type's index: no such type. */
#define HET_NO_TYPE UINT32_MAX

struct het_gpu_type {
    const char *name; /* "A100-SXM4-40GB": SXM and PCIe, 40 and 80 GB stay apart */
    const char *const *aliases; /* "NVIDIA-A100-SXM4-40GB", "nvidia-tesla-a100" */
    size_t alias_count;
    const char *profile;      /* name used in profiles, NULL: `name` */
    const char *vendor;       /* vendor.h; NULL: the one that the name implies */
    uint64_t memory_bytes;    /* of one GPU */
    double intra_bytes_per_s; /* each direction, between GPUs of a node */
    bool intra_is_stated;     /* by an admin's file, not by the built-in table */
    double inter_bytes_per_s; /* each direction, a node's uplink, as an admin states it;
                                 0: not stated */
    uint64_t workspace_bytes; /* framework and communicator on each GPU */
    double price_per_hour;    /* 0: unknown */
    /* What estimates need (estimate.h); 0: the part has no such units, or it is unknown.
     * Dense FLOP/s of a GPU, by the precision of the factors. */
    double bf16_flops, fp16_flops, tf32_flops, fp32_flops;
    double memory_bytes_per_s;
};

/* Zones, racks: the nodes that have the same value of a label share an uplink to all
 * others. */
struct het_level {
    const char *label; /* "topology.kubernetes.io/zone" */
    double uplink_bytes_per_s;
};

struct het_instance;
struct het_network;
struct het_hardware {
    const struct het_gpu_type *types;
    size_t type_count;
    /* What an admin states of machines by their instance type (instance_type.h). */
    const struct het_instance *instances;
    size_t instance_count;
    const struct het_level *levels;
    size_t level_count;
    const struct het_network *network; /* measured curves; NULL: none */
    double storage_bytes_per_s; /* of the storage of checkpoints, for a whole job; 0: not
                                   stated */
};

/* What is assumed of a GPU type that no table knows: PCIe 3 between GPUs, 25 Gbit/s out.
 */
#define HET_DEFAULT_INTRA_BYTES_PER_S 12.0e9
#define HET_DEFAULT_INTER_BYTES_PER_S 3.0e9
/* A framework takes 4 GiB beside what layers need, as 15 measured runs of
 * Megatron-DeepSpeed show (planner.md, Memory). Added to it are the buffers of three
 * communicators of NCCL (data, tensor and pipeline parallelism): in a ring two
 * connections of 16 channels with 4 MiB (NCCL_BUFFSIZE) each. */
#define HET_FRAMEWORK_BYTES           ((uint64_t)4 << 30)
#define HET_COMMUNICATOR_BYTES        ((uint64_t)2 * 16 * 4 << 20)
#define HET_DEFAULT_WORKSPACE_BYTES   (HET_FRAMEWORK_BYTES + 3 * HET_COMMUNICATOR_BYTES)
/* The default, but at most half of the memory. */
uint64_t het_hardware_default_workspace(uint64_t memory_bytes);

/* The built-in table, sorted by name. Bandwidths are what a ring gets, from the vendors'
 * link figures (each entry's source stands in hardware.c). */
const struct het_hardware *het_hardware_builtin(void);

/* `extra` laid over `base`: an entry of the same name replaces the fields it sets (zero
 * and NULL mean unset) and adds its aliases; new names are added; instances, levels,
 * network and storage, if it has any, replace those below. In `arena`. */
const struct het_hardware *het_hardware_merge(struct het_arena *arena,
                                              const struct het_hardware *base,
                                              const struct het_hardware *extra);

/* The type whose name or alias equals `label` after normalisation (case, "NVIDIA-",
 * "Tesla-", "AMD-", blanks and underscores as "-"); NULL if there is none. An alias that
 * `extra` of a merge brought wins over a built-in one. An alias that several types share
 * ("A100": 40 or 80 GB) means the first of them. */
const struct het_gpu_type *het_hardware_find(const struct het_hardware *hardware,
                                             const char *label);
/* The same, but of several types that share the alias the one whose memory is nearest to
 * `memory_bytes` (0: unknown, the first). */
const struct het_gpu_type *het_hardware_find_sized(const struct het_hardware *hardware,
                                                   const char *label,
                                                   uint64_t memory_bytes);

/* The name that a label gets if no table knows it: "NVIDIA-" and "Tesla-" stripped,
 * blanks turned into "-". In `arena`. */
const char *het_hardware_plain_name(struct het_arena *arena, const char *label);

#endif
