#include "tests/planner/synthetic.h"

#include <check.h>
#include <math.h>

#define SIZES      8 /* degrees and micro-batches 1, 2, ... 128 */
#define MEASURED   4u
#define MIB        0x1p20
#define SLOW_V100  3.5
#define BOUNDARY   (4.0 * 4096 * 1024)
#define GIB(count) ((uint64_t)(count) << 30)

static double at_most(double value, double limit)
{
    return value < limit ? value : limit;
}

/* Milliseconds of embedding (0), block (1) and head (2) on an A100. */
static double base_ms(int kind, uint32_t tp, uint32_t batch)
{
    double exchange = (tp == 1 ? 0 : tp == 2 ? 1.1 : 1.54) * (1 + batch);
    if (kind == 1)
        return (29.0 * batch + 1) / tp + exchange;
    return kind ? 0.2 * batch + 0.2 : 0.3 * batch + (tp > 1 ? 0.8 : 0);
}

static int layer_kind(uint32_t layer, uint32_t layers)
{
    return layer ? layer + 1 < layers ? 1 : 2 : 0;
}

static struct het_measurement measure(struct het_arena *arena, uint32_t type, uint32_t tp,
                                      uint32_t batch, uint32_t layers)
{
    double *forward = HET_ARENA_ARRAY(arena, double, layers + 1);
    double *backward = HET_ARENA_ARRAY(arena, double, layers + 1);
    double scale = (type ? SLOW_V100 : 1) * fmax(1, batch / (double)MEASURED) /
                   fmax(1, tp / (double)MEASURED);
    uint32_t base_tp = (uint32_t)at_most(tp, MEASURED);
    uint32_t base_batch = (uint32_t)at_most(batch, MEASURED);
    for (uint32_t l = 0; l < layers; l++) {
        double seconds = scale * base_ms(layer_kind(l, layers), base_tp, base_batch) *
                         1e-3;
        forward[l + 1] = forward[l] + seconds / 3;
        backward[l + 1] = backward[l] + seconds * 2 / 3;
    }
    return (struct het_measurement){
        .type = type,
        .tp = tp,
        .microbatch = batch,
        .forward_s = forward,
        .backward_s = backward,
        .optimizer_s = (type ? SLOW_V100 : 1) * 4e-3 / base_tp * layers,
    };
}

static struct het_layer_bytes layer_bytes(struct het_arena *arena, uint32_t tp,
                                          uint32_t layers)
{
    static const double parameters_of[] = { 100e6, 50e6, 100e6 };
    static const double memory_mib[] = { 8000, 4150, 12100 };
    double *parameters = HET_ARENA_ARRAY(arena, double, layers + 1);
    double *state = HET_ARENA_ARRAY(arena, double, layers + 1);
    for (uint32_t l = 0; l < layers; l++) {
        int kind = layer_kind(l, layers);
        parameters[l + 1] = parameters[l] + parameters_of[kind];
        state[l + 1] = state[l] + memory_mib[kind] * MIB;
    }
    return (struct het_layer_bytes){
        .tp = tp,
        .parameters = parameters,
        .state = state,
        .activations = HET_ARENA_ARRAY(arena, double, layers + 1),
    };
}

static const struct het_profile *synthetic_profile(struct het_arena *arena,
                                                   uint32_t layers)
{
    static const char *const types[] = { "A100", "V100" };
    struct het_measurement *points =
        HET_ARENA_ARRAY(arena, struct het_measurement, 2 * SIZES * SIZES);
    struct het_layer_bytes *bytes = HET_ARENA_ARRAY(arena, struct het_layer_bytes, SIZES);
    double *boundary = HET_ARENA_ARRAY(arena, double, layers);
    size_t count = 0;
    for (uint32_t type = 0; type < 2; type++)
        for (uint32_t tp = 0; tp < SIZES; tp++)
            for (uint32_t batch = 0; batch < SIZES; batch++)
                points[count++] = measure(arena, type, 1u << tp, 1u << batch, layers);
    for (uint32_t tp = 0; tp < SIZES; tp++)
        bytes[tp] = layer_bytes(arena, 1u << tp, layers);
    for (uint32_t l = 0; l < layers; l++)
        boundary[l] = BOUNDARY;
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    *profile = (struct het_profile){ .layer_count = layers,
                                     .type_names = types,
                                     .type_count = 2,
                                     .measurements = points,
                                     .measurement_count = count,
                                     .bytes = bytes,
                                     .bytes_count = SIZES,
                                     .boundary_bytes = boundary,
                                     .parameter_element_bytes = 4 };
    return profile;
}

struct het_problem *synthetic_problem(struct het_arena *arena, uint32_t layer_count,
                                      uint32_t nodes_a_type)
{
    static const struct het_cluster_type types[] = {
        { .name = "A100", .profile_name = "A100", .memory_bytes = GIB(80) },
        { .name = "V100", .profile_name = "V100", .memory_bytes = GIB(16) },
    };
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, 2 * nodes_a_type);
    for (uint32_t n = 0; n < 2 * nodes_a_type; n++)
        nodes[n] = (struct het_node){ .name = het_arena_printf(arena, "n%u", n),
                                      .type = n < nodes_a_type ? 1 : 0,
                                      .gpu_count = 4,
                                      .intra_bytes_per_s = n < nodes_a_type ? 50e9 : 46e9,
                                      .uplink_bytes_per_s = 10e9 };
    struct het_cluster *cluster = het_arena_alloc(arena, sizeof *cluster);
    *cluster = (struct het_cluster){
        .types = types, .type_count = 2, .nodes = nodes, .node_count = 2 * nodes_a_type
    };
    struct het_workload *workload = het_arena_alloc(arena, sizeof *workload);
    workload->global_batch = 128;
    struct het_problem *problem = het_arena_alloc(arena, sizeof *problem);
    struct het_error err = { 0 };
    ck_assert_msg(het_problem_init(arena, cluster, synthetic_profile(arena, layer_count),
                                   workload, problem, &err) == 0,
                  "%s", err.message);
    return problem;
}
