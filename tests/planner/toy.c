#include "tests/planner/toy.h"

#include <stdlib.h>
#include <string.h>

#define TOY_LAYERS 4

static double *prefix_sums(struct het_arena *arena, const double *values, double factor)
{
    double *sums = HET_ARENA_ARRAY(arena, double, TOY_LAYERS + 1);
    for (size_t l = 0; l < TOY_LAYERS; l++)
        sums[l + 1] = sums[l] + values[l] * factor;
    return sums;
}

static void make_profile(struct toy *toy)
{
    static const char *const names[] = { "fast", "slow" };
    static const double forward[] = { 0.001, 0.002, 0.003, 0.004 };
    static const double parameters[] = { 400e6, 200e6, 200e6, 300e6 };
    static const double activations[] = { 100e6, 200e6, 200e6, 100e6 };
    static const double boundary[] = { 10e6, 10e6, 10e6, 40e6 };
    static const uint32_t sizes[] = { 1, 2, 4 };
    static const double size_factor[] = { 1, 1.5, 2.5 };

    struct het_measurement *measurements =
        HET_ARENA_ARRAY(toy->arena, struct het_measurement, 12);
    size_t count = 0;
    for (uint32_t type = 0; type < 2; type++)
        for (uint32_t tp = 1; tp <= 2; tp++)
            for (size_t i = 0; i < 3; i++) {
                double factor = (type ? 2 : 1) * (tp == 2 ? 0.6 : 1);
                measurements[count++] = (struct het_measurement){
                    .type = type,
                    .tp = tp,
                    .microbatch = sizes[i],
                    .forward_s =
                        prefix_sums(toy->arena, forward, factor * size_factor[i]),
                    .backward_s =
                        prefix_sums(toy->arena, forward, 2 * factor * size_factor[i]),
                    .optimizer_s = 0.011 * factor,
                };
            }
    struct het_layer_bytes *bytes =
        HET_ARENA_ARRAY(toy->arena, struct het_layer_bytes, 2);
    for (uint32_t tp = 1; tp <= 2; tp++)
        bytes[tp - 1] = (struct het_layer_bytes){
            .tp = tp,
            .parameters = prefix_sums(toy->arena, parameters, 1.0 / tp),
            .activations = prefix_sums(toy->arena, activations, 1.0 / tp),
        };
    toy->profile = (struct het_profile){
        .model = "toy",
        .layer_count = TOY_LAYERS,
        .type_names = names,
        .type_count = 2,
        .measurements = measurements,
        .measurement_count = count,
        .bytes = bytes,
        .bytes_count = 2,
        .boundary_bytes = boundary,
        .parameter_element_bytes = 4,
    };
}

static struct het_node toy_node(const char *name, uint32_t type, uint32_t gpus,
                                double link, double uplink)
{
    return (struct het_node){ .name = name,
                              .type = type,
                              .gpu_count = gpus,
                              .intra_bytes_per_s = link,
                              .uplink_bytes_per_s = uplink };
}

struct toy *toy_new(void)
{
    struct toy *toy = xcalloc(1, sizeof *toy);
    toy->arena = het_arena_new();
    toy->types[0] = (struct het_cluster_type){ "fast", "fast", (uint64_t)20 << 30,
                                               (uint64_t)1 << 30, 0 };
    toy->types[1] = (struct het_cluster_type){ "slow", "slow", (uint64_t)10 << 30,
                                               (uint64_t)1 << 30, 0 };
    toy->nodes[TOY_F0] = toy_node("f0", 0, 4, 100e9, 10e9);
    toy->nodes[TOY_F1] = toy_node("f1", 0, 2, 100e9, 10e9);
    toy->nodes[TOY_S0] = toy_node("s0", 1, 4, 50e9, 5e9);
    toy->cluster = (struct het_cluster){
        .types = toy->types, .type_count = 2, .nodes = toy->nodes, .node_count = 3
    };
    make_profile(toy);
    toy->workload = (struct het_workload){ .global_batch = 8 };
    struct het_error err;
    if (het_problem_init(toy->arena, &toy->cluster, &toy->profile, &toy->workload,
                         &toy->problem, &err) < 0)
        abort();
    return toy;
}

void toy_free(struct toy *toy)
{
    het_arena_free(toy->arena);
    free(toy);
}

void *toy_copy(const struct toy *toy, const void *array, size_t bytes)
{
    return memcpy(het_arena_alloc(toy->arena, bytes), array, bytes);
}

struct het_replica toy_replica(const struct toy *toy, uint32_t node, uint32_t first_gpu,
                               uint32_t tp, uint32_t microbatch_size)
{
    uint32_t *gpus = HET_ARENA_ARRAY(toy->arena, uint32_t, tp);
    for (uint32_t i = 0; i < tp; i++)
        gpus[i] = first_gpu + i;
    return (struct het_replica){ .node_name = toy->nodes[node].name,
                                 .type_name = toy->types[toy->nodes[node].type].name,
                                 .node = node,
                                 .type = toy->nodes[node].type,
                                 .gpus = gpus,
                                 .tp = tp,
                                 .microbatch_size = microbatch_size };
}

struct het_plan toy_two_pipelines(const struct toy *toy)
{
    return TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 2)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 2))),
        TOY_PIPELINE(toy, 2, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 1, 1, 2)),
                     TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2))));
}
