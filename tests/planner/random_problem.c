#include "tests/planner/random_problem.h"

#include "planner/base/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)het_random_below(state, limit);
}

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(het_random_next(state) >> 11) * 0x1p-53;
}

/* True in one of `n` cases. */
static bool one_in(uint64_t *state, uint32_t n)
{
    return below(state, n) == 0;
}

static const char *const type_names[] = { "A100", "H100-PCIe_80GB", "V100" };
enum { TYPES = 3 };

/* The most of each that a problem has. */
struct size {
    uint32_t more_nodes; /* than GPU types */
    uint32_t node_gpus, large_node_gpus;
    uint32_t gpus; /* 0: any number */
    uint32_t layers;
    uint32_t batch; /* 0: any of a list */
};

/* Nodes lose GPUs, the last ones first, until no more than `most` are left. */
static void limit_gpus(struct het_cluster *cluster, struct het_node *nodes, uint32_t most)
{
    while (het_cluster_gpu_count(cluster) > most) {
        size_t n = cluster->node_count - 1;
        while (n && nodes[n].gpu_count == 1)
            n--;
        nodes[n].gpu_count--;
    }
}

static struct het_cluster *random_cluster(struct het_arena *arena, uint64_t *state,
                                          const struct size *size)
{
    struct het_cluster *cluster = het_arena_alloc(arena, sizeof *cluster);
    struct het_cluster_type *types =
        HET_ARENA_ARRAY(arena, struct het_cluster_type, TYPES);
    cluster->types = types;
    cluster->type_count = 1 + below(state, TYPES);
    for (size_t t = 0; t < cluster->type_count; t++)
        types[t] = (struct het_cluster_type){
            .name = type_names[t],
            .memory_bytes = (uint64_t)between(state, 8e9, 60e9),
            .workspace_bytes = (uint64_t)between(state, 0, 2e9),
        };
    cluster->node_count = cluster->type_count + below(state, size->more_nodes + 1);
    struct het_node *nodes = HET_ARENA_ARRAY(arena, struct het_node, cluster->node_count);
    cluster->nodes = nodes;
    for (uint32_t n = 0; n < cluster->node_count; n++)
        nodes[n] = (struct het_node){
            .name = het_arena_printf(arena, "node-%u", n),
            .type = n < cluster->type_count ? n
                                            : below(state, (uint32_t)cluster->type_count),
            .gpu_count = 1 + below(state, one_in(state, 3) ? size->large_node_gpus
                                                           : size->node_gpus),
            .intra_bytes_per_s = between(state, 5e9, 300e9),
            .uplink_bytes_per_s = between(state, 1e8, 20e9),
            .flow_bytes_per_s = one_in(state, 3) ? between(state, 1e8, 5e9) : 0,
            .latency_s = one_in(state, 2) ? between(state, 0, 1e-4) : 0,
        };
    if (size->gpus)
        limit_gpus(cluster, nodes, size->gpus);
    return cluster;
}

/* ---- what joins the nodes ---- */

/* Zones, and racks that need not lie inside them. */
static void add_levels(struct het_arena *arena, uint64_t *state,
                       struct het_cluster *cluster, struct het_node *nodes)
{
    enum { DOMAINS = 2 };
    cluster->level_count = 1 + below(state, 2);
    struct het_domain *domains =
        HET_ARENA_ARRAY(arena, struct het_domain, DOMAINS * cluster->level_count);
    for (uint32_t level = 0; level < cluster->level_count; level++)
        for (uint32_t i = 0; i < DOMAINS; i++)
            domains[cluster->domain_count++] = (struct het_domain){
                .name = het_arena_printf(arena, "domain-%u-%u", level, i),
                .level = level,
                .uplink_bytes_per_s = between(state, 1e8, 20e9),
            };
    cluster->domains = domains;
    for (size_t n = 0; n < cluster->node_count; n++)
        for (uint32_t level = 0; level < cluster->level_count; level++) {
            uint32_t at = below(state, DOMAINS + 1);
            nodes[n].domain[level] = at ? level * DOMAINS + at : 0;
        }
}

/* Any shape that a file may hold: flat, a line or a parabola, rising or falling, wholly
 * above what was measured or below nothing. In some networks all are falling lines, in
 * which the largest messages get least. */
static struct het_curve random_curve(uint64_t *state, double most, bool falls)
{
    double bent = falls || one_in(state, 2) ? 0 : between(state, -0.05, 0.05);
    double steep = one_in(state, 4) ? 0 : between(state, -0.3, 0.3);
    return (struct het_curve){ .a = bent * most,
                               .b = (falls ? -fabs(steep) : steep) * most,
                               .c = between(state, falls ? 0.5 : -0.2, 1.2) * most,
                               .most_bytes_per_s = most };
}

/* Curves of one pair of places for some numbers of GPUs, appended in their order. */
static void add_curves(uint64_t *state, struct het_network *network,
                       struct het_curve *curves, struct het_curve ends, bool inside,
                       bool falls)
{
    static const uint32_t counts[] = { 1, 2, 4, 8 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (one_in(state, 2))
            continue;
        struct het_curve *curve = &curves[network->curve_count++];
        *curve = random_curve(
            state, inside ? between(state, 5e9, 300e9) : between(state, 1e8, 20e9),
            falls);
        curve->from = ends.from;
        curve->to = ends.to;
        curve->from_gpus = counts[i];
        curve->to_gpus = inside ? 0 : counts[i];
    }
}

/* Measured curves between some of the places: a place a type, and one in a zone. */
static void add_network(struct het_arena *arena, uint64_t *state,
                        struct het_cluster *cluster, struct het_node *nodes)
{
    enum { PLACES = TYPES + 1, COUNTS = 4 };
    struct het_network *network = het_arena_alloc(arena, sizeof *network);
    struct het_place *places = HET_ARENA_ARRAY(arena, struct het_place, PLACES);
    struct het_curve *curves =
        HET_ARENA_ARRAY(arena, struct het_curve, (PLACES + 1) * PLACES * COUNTS);
    for (uint32_t i = 0; i < TYPES; i++)
        places[i].type = type_names[i];
    places[TYPES] = (struct het_place){ .zone = "zone", .type = type_names[0] };
    *network =
        (struct het_network){ .places = places, .place_count = PLACES, .curves = curves };
    bool falls = one_in(state, 3);
    for (uint32_t from = 0; from < PLACES; from++)
        for (uint32_t to = 0; to < PLACES; to++) {
            const struct het_curve ends = { .from = from, .to = to };
            if (from == to && one_in(state, 2))
                add_curves(state, network, curves, ends, true, falls);
            if (!one_in(state, 4))
                add_curves(state, network, curves, ends, false, falls);
        }
    cluster->network = network;
    for (size_t n = 0; n < cluster->node_count; n++)
        if (!one_in(state, 8))
            nodes[n].place =
                1 + (nodes[n].type || one_in(state, 2) ? nodes[n].type : (uint32_t)TYPES);
}

/* ---- the profile ---- */

static double *prefix_sums(struct het_arena *arena, const double *values, uint32_t count,
                           double factor)
{
    double *sums = HET_ARENA_ARRAY(arena, double, (size_t)count + 1);
    for (uint32_t l = 0; l < count; l++)
        sums[l + 1] = sums[l] + values[l] * factor;
    return sums;
}

/* Values of layers: like each other in the middle, the ends unlike. */
static double *random_layers(struct het_arena *arena, uint64_t *state, uint32_t count,
                             double low, double high)
{
    double *values = HET_ARENA_ARRAY(arena, double, count);
    double middle = between(state, low, high);
    for (uint32_t l = 0; l < count; l++)
        values[l] = l && l + 1 < count && !one_in(state, 4) ? middle
                                                            : between(state, low, high);
    return values;
}

/* What selective recomputation takes and keeps, for all points and degrees or some. */
static void add_selective(struct het_arena *arena, uint64_t *state,
                          const struct het_profile *profile,
                          struct het_measurement *measurements,
                          struct het_layer_bytes *bytes)
{
    uint32_t layers = profile->layer_count;
    bool has_gaps = one_in(state, 3);
    for (size_t i = 0; i < profile->bytes_count; i++) {
        double share = between(state, 0.3, 1);
        double *kept = HET_ARENA_ARRAY(arena, double, (size_t)layers + 1);
        for (uint32_t l = 0; l <= layers; l++)
            kept[l] = bytes[i].activations[l] * share;
        if (!has_gaps || !one_in(state, 4))
            bytes[i].selective_activations = kept;
    }
    for (size_t i = 0; i < profile->measurement_count; i++) {
        /* Now and then it was measured to be faster than without. */
        double factor = between(state, 0.9, 1.5);
        double *backward = HET_ARENA_ARRAY(arena, double, (size_t)layers + 1);
        for (uint32_t l = 0; l <= layers; l++)
            backward[l] = measurements[i].backward_s[l] * factor;
        if (!has_gaps || !one_in(state, 4))
            measurements[i].selective_backward_s = backward;
    }
}

static void add_measurements(struct het_arena *arena, uint64_t *state,
                             struct het_profile *profile,
                             struct het_measurement *measurements)
{
    uint32_t layers = profile->layer_count;
    const double *forward = random_layers(arena, state, layers, 1e-4, 1e-2);
    const double *backward = random_layers(arena, state, layers, 1e-4, 2e-2);
    uint32_t smallest = one_in(state, 8) ? 2 : 1, largest = 1u << below(state, 5);
    for (uint32_t type = 0; type < profile->type_count; type++) {
        double slower = between(state, 1, 4);
        for (size_t i = 0; i < profile->bytes_count; i++) {
            double overhead = between(state, 0, 2);
            uint32_t tp = profile->bytes[i].tp;
            if (tp > 1 && one_in(state, 6))
                continue;
            for (uint32_t size = smallest; size <= largest || size == smallest;
                 size *= 2) {
                double factor = slower * (overhead + size) /
                                (tp * between(state, 0.6, 1));
                measurements[profile->measurement_count++] = (struct het_measurement){
                    .type = type,
                    .tp = tp,
                    .microbatch = size,
                    .forward_s = prefix_sums(arena, forward, layers, factor),
                    .backward_s = prefix_sums(arena, backward, layers, factor),
                    .optimizer_s = between(state, 0, 0.01),
                };
                if (one_in(state, 10))
                    break; /* a card that ran out of memory when it was measured */
            }
        }
    }
}

static struct het_profile *random_profile(struct het_arena *arena, uint64_t *state,
                                          uint32_t most_layers)
{
    static const uint32_t degrees[] = { 1, 2, 3, 4, 8 };
    struct het_profile *profile = het_arena_alloc(arena, sizeof *profile);
    uint32_t layers = 1 + below(state, most_layers);
    const double *parameters = random_layers(arena, state, layers, 1e6, 400e6);
    const double *activations = random_layers(arena, state, layers, 1e6, 1e9);
    struct het_layer_bytes *bytes = HET_ARENA_ARRAY(arena, struct het_layer_bytes, 5);
    bool has_state = one_in(state, 3);
    for (size_t i = 0; i < 5; i++) {
        uint32_t tp = degrees[i];
        if (i && (tp == 3 ? !one_in(state, 4) : one_in(state, 3)))
            continue;
        bytes[profile->bytes_count++] = (struct het_layer_bytes){
            .tp = tp,
            .parameters = prefix_sums(arena, parameters, layers, 1.0 / tp),
            .state = has_state ? prefix_sums(arena, parameters, layers, 20.0 / tp) : NULL,
            .activations = prefix_sums(arena, activations, layers, 1.0 / tp),
        };
    }
    struct het_measurement *measurements =
        HET_ARENA_ARRAY(arena, struct het_measurement, TYPES * 5 * 8);
    profile->model = "random";
    profile->layer_count = layers;
    profile->type_names = type_names;
    profile->type_count = TYPES;
    profile->measurements = measurements;
    profile->bytes = bytes;
    profile->boundary_bytes = random_layers(arena, state, layers, 1e4, 50e6);
    profile->parameter_element_bytes = 4;
    profile->shared_embedding = one_in(state, 4);
    add_measurements(arena, state, profile, measurements);
    return profile;
}

static struct het_workload *random_workload(struct het_arena *arena, uint64_t *state,
                                            uint32_t most_batch)
{
    static const uint32_t batches[] = {
        1, 2, 3, 7, 8, 13, 16, 24, 31, 48, 64, 96, 97, 100
    };
    struct het_workload *workload = het_arena_alloc(arena, sizeof *workload);
    workload->global_batch = batches[below(state, sizeof batches / sizeof *batches)];
    if (most_batch)
        workload->global_batch = 1 + below(state, most_batch);
    workload->precision = (enum het_precision)below(state, 3);
    workload->optimizer = (enum het_optimizer)below(state, 3);
    workload->memory_headroom = one_in(state, 2) ? between(state, 0, 0.3) : 0;
    if (one_in(state, 8)) {
        uint32_t *sizes = HET_ARENA_ARRAY(arena, uint32_t, 2);
        sizes[0] = 1 + below(state, 4);
        sizes[1] = sizes[0] + 1 + below(state, 4);
        workload->microbatch_sizes = sizes;
        workload->microbatch_size_count = 2;
    }
    if (one_in(state, 8)) {
        uint32_t *degrees = HET_ARENA_ARRAY(arena, uint32_t, 1);
        degrees[0] = 1u << below(state, 3);
        workload->tensor_parallel = degrees;
        workload->tensor_parallel_count = 1;
    }
    if (one_in(state, 8))
        workload->max_gpus = 1 + below(state, 12);
    if (one_in(state, 8))
        workload->min_gpus = 1 +
                             below(state, workload->max_gpus ? workload->max_gpus : 8);
    if (one_in(state, 8))
        workload->max_data_parallel = 1 + below(state, 4);
    if (one_in(state, 10))
        workload->min_data_parallel = 1 + below(state, workload->max_data_parallel
                                                           ? workload->max_data_parallel
                                                           : 3);
    if (one_in(state, 8))
        workload->max_pipeline_parallel = 1 + below(state, 3);
    if (one_in(state, 8)) {
        struct het_type_limit *limits = HET_ARENA_ARRAY(arena, struct het_type_limit, 2);
        limits[0] =
            (struct het_type_limit){ .type = type_names[0], .max_gpus = below(state, 5) };
        limits[1] =
            (struct het_type_limit){ .type = type_names[1], .min_gpus = below(state, 3) };
        workload->type_limits = limits;
        workload->type_limit_count = 1 + below(state, 2);
    }
    return workload;
}

/* Nodes of two vendors, mostly told apart by their types; a few runtimes mix them. */
static void add_vendors(uint64_t *state, struct het_cluster *cluster,
                        struct het_workload *workload)
{
    struct het_node *nodes = (struct het_node *)(uintptr_t)cluster->nodes;
    bool by_type = !one_in(state, 4);
    for (size_t n = 0; n < cluster->node_count; n++)
        nodes[n].vendor = (by_type ? nodes[n].type > 0 : one_in(state, 2)) ? "amd"
                                                                           : "nvidia";
    workload->mixes_vendors = one_in(state, 6);
}

/* What makes a problem unlike the plain ones, each in some of them: curves, levels,
 * larger micro-batches than were measured, selective recomputation, gradients sent
 * meanwhile, GPUs of several vendors. Drawn apart, so that the rest of the problem is the
 * same with and without.
 */
static void add_extras(struct het_arena *arena, uint64_t seed,
                       struct het_cluster *cluster, struct het_profile *profile,
                       struct het_workload *workload)
{
    uint64_t state = ~seed;
    struct het_node *nodes = (struct het_node *)(uintptr_t)cluster->nodes;
    if (one_in(&state, 4))
        add_levels(arena, &state, cluster, nodes);
    if (one_in(&state, 3))
        add_network(arena, &state, cluster, nodes);
    if (one_in(&state, 4))
        profile->extrapolation = 2 + below(&state, 3);
    if (one_in(&state, 4))
        add_selective(arena, &state, profile,
                      (struct het_measurement *)(uintptr_t)profile->measurements,
                      (struct het_layer_bytes *)(uintptr_t)profile->bytes);
    if (one_in(&state, 4))
        workload->gradient_overlap = one_in(&state, 4) ? 1 : between(&state, 0, 1);
    if (one_in(&state, 8))
        workload->no_recompute = true;
    if (one_in(&state, 4))
        add_vendors(&state, cluster, workload);
}

static struct het_problem *make_problem(struct het_arena *arena, uint64_t seed,
                                        const struct size *size)
{
    uint64_t state = seed;
    struct het_problem *problem = het_arena_alloc(arena, sizeof *problem);
    struct het_cluster *cluster = random_cluster(arena, &state, size);
    struct het_profile *profile = random_profile(arena, &state, size->layers);
    struct het_workload *workload = random_workload(arena, &state, size->batch);
    struct het_error err = { 0 };
    add_extras(arena, seed, cluster, profile, workload);
    if (het_problem_init(arena, cluster, profile, workload, problem, &err) < 0) {
        fprintf(stderr, "random_problem: seed %" PRIu64 ": %s\n", seed, err.message);
        abort(); /* not by Check: the bench uses this as well */
    }
    return problem;
}

struct het_problem *random_problem(struct het_arena *arena, uint64_t seed)
{
    static const struct size size = {
        .more_nodes = 3, .node_gpus = 4, .large_node_gpus = 8, .layers = 12
    };
    return make_problem(arena, seed, &size);
}

struct het_problem *random_joined_problem(struct het_arena *arena, uint64_t seed)
{
    struct het_problem *problem = random_problem(arena, seed);
    ((struct het_workload *)(uintptr_t)problem->workload)->mixes_vendors = true;
    return problem;
}

struct het_problem *random_small_problem(struct het_arena *arena, uint64_t seed)
{
    static const struct size size = { .more_nodes = 3,
                                      .node_gpus = 2,
                                      .large_node_gpus = 4,
                                      .gpus = 6,
                                      .layers = 6,
                                      .batch = 8 };
    return make_problem(arena, seed, &size);
}
