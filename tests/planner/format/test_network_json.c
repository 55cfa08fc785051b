#include "planner/format/network_json.h"

#include "planner/cost/cost.h"
#include "planner/format/document/cluster_json.h"
#include "planner/format/document/read_file.h"
#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-9 * fabs(b))

#define FOLDER "tests/data/sailor/network"

static const struct het_network *read_network(struct het_arena *arena, const char *path)
{
    const struct het_network *network;
    struct het_error err;
    json_t *json;
    ck_assert_msg(het_read_file_network(path, &json, &err) == 0, "%s", err.message);
    int result = het_network_read(arena, json, &network, &err);
    json_decref(json);
    ck_assert_msg(result == 0, "%s", err.message);
    return network;
}

/* ---- one curve ---- */

START_TEST(curve_is_a_parabola_over_the_logarithm_of_the_message)
{
    /* 10 + 4 x - 0.5 x^2 GB/s at 4 MB, x = 2: 10 + 8 - 2 = 16. */
    const struct het_curve curve = {
        .a = -0.5e9, .b = 4e9, .c = 10e9, .most_bytes_per_s = 100e9
    };
    ck_near(het_curve_bandwidth(&curve, 4e6), 16e9);
    /* The vertex, 18 GB/s, is at x = 4: it holds beyond 16 MB. */
    ck_near(het_curve_bandwidth(&curve, 16e6), 18e9);
    ck_near(het_curve_bandwidth(&curve, 1e12), 18e9);
    /* Below 1 MB what it is at 1 MB. */
    ck_near(het_curve_bandwidth(&curve, 1e6), 10e9);
    ck_near(het_curve_bandwidth(&curve, 1), 10e9);
}
END_TEST

START_TEST(bandwidth_stays_within_what_was_measured)
{
    /* Rises without end, and is negative at 1 MB. */
    const struct het_curve curve = {
        .a = 1e9, .b = 2e9, .c = -5e9, .most_bytes_per_s = 20e9
    };
    ck_near(het_curve_bandwidth(&curve, 1e12), 20e9);
    ck_near(het_curve_bandwidth(&curve, 1e6), 20e9 / 1000);
    /* Opens upwards with its vertex at x = 2: does not rise again towards small ones. */
    const struct het_curve bowl = {
        .a = 1e9, .b = -4e9, .c = 10e9, .most_bytes_per_s = 20e9
    };
    ck_near(het_curve_bandwidth(&bowl, 1e6), 6e9);
    ck_near(het_curve_bandwidth(&bowl, 8e6), 9e9 - 12e9 + 10e9);
}
END_TEST

START_TEST(falling_line_counts_as_what_it_is_at_its_edge)
{
    /* 8 - x GB/s: 8 at 1 MB, less at larger messages, where nothing is known of it. */
    const struct het_curve line = { .b = -1e9, .c = 8e9, .most_bytes_per_s = 20e9 };
    ck_near(het_curve_bandwidth(&line, 1e3), 8e9);
    ck_near(het_curve_bandwidth(&line, 1e6), 8e9);
    ck_near(het_curve_bandwidth(&line, 64e6), 8e9);
    ck_near(het_curve_bandwidth(&line, HET_LARGEST_MESSAGE), 8e9);
    /* The same of a parabola that falls everywhere, however little it is bent. */
    const struct het_curve bent = {
        .a = -1e-6, .b = -1e9, .c = 8e9, .most_bytes_per_s = 20e9
    };
    ck_near(het_curve_bandwidth(&bent, 64e6), 8e9);
}
END_TEST

START_TEST(no_curve_falls_with_the_message)
{
    static const double coefficients[] = { -1e9, -1e3, -1e-9, 0, 1e-9, 1e3, 1e9 };
    const double most = 5e9;
    for (int i = 0; i < 7 * 7 * 7; i++) {
        const struct het_curve curve = { .a = coefficients[i % 7],
                                         .b = coefficients[i / 7 % 7],
                                         .c = coefficients[i / 49] * 3,
                                         .most_bytes_per_s = most };
        double before = most / 1000;
        for (double bytes = 1; bytes < 1e300; bytes *= 7) {
            double now = het_curve_bandwidth(&curve, bytes);
            ck_assert_msg(now >= before && now <= most, "curve %d at %g bytes", i, bytes);
            before = now;
        }
        ck_assert_double_ge(het_curve_bandwidth(&curve, HET_LARGEST_MESSAGE), before);
    }
}
END_TEST

START_TEST(bandwidth_of_measured_curves_never_falls_with_the_message)
{
    struct het_arena *arena = het_arena_new();
    const struct het_network *network = read_network(arena, FOLDER);
    ck_assert_uint_gt(network->curve_count, 100);
    for (size_t i = 0; i < network->curve_count; i++) {
        double before = 0;
        for (double bytes = 1; bytes < 1e13; bytes *= 3) {
            double now = het_curve_bandwidth(&network->curves[i], bytes);
            ck_assert_double_gt(now, 0);
            ck_assert_double_ge(now, before);
            before = now;
        }
    }
    het_arena_free(arena);
}
END_TEST

/* ---- files ---- */

START_TEST(curves_are_found_by_type_and_number_of_gpus)
{
    struct het_arena *arena = het_arena_new();
    const struct het_network *network =
        read_network(arena, FOLDER "/network_coeffs_all_homo.json");
    uint32_t a100 = het_network_find_place(network, NULL, "A100-40");
    uint32_t rtx = het_network_find_place(network, "anywhere", "RTX-3090");
    ck_assert_uint_ne(a100, HET_NO_PLACE);
    ck_assert_uint_eq(het_network_find_place(network, NULL, "B200"), HET_NO_PLACE);
    /* At 1 MB the third coefficient: of one GPU, of two, of four. */
    double one = het_network_between(network, a100, a100, 1, 1e6);
    double two = het_network_between(network, a100, a100, 2, 1e6);
    double four = het_network_between(network, a100, a100, 4, 1e6);
    ck_near(one, 1.116822757126346e9);
    ck_near(two, 2.1127137995063974e9);
    ck_near(four, 4.5592610071684785e9);
    /* Three were not measured: the slower of two and four; eight: as four. */
    ck_near(het_network_between(network, a100, a100, 3, 1e6), two);
    ck_near(het_network_between(network, a100, a100, 8, 1e6), four);
    /* Inside a node of RTX 3090 two are joined by a bridge, four are not: the slower. */
    ck_near(het_network_inside(network, rtx, 2, 1e6), 18.34015839e9);
    ck_near(het_network_inside(network, rtx, 3, 1e6), 6.14624375e9);
    ck_near(het_network_inside(network, rtx, 1, 1e6), 18.34015839e9);
    /* No file of this form has pairs of types. */
    ck_assert(het_network_between(network, a100, rtx, 1, 1e6) == 0);
    het_arena_free(arena);
}
END_TEST

START_TEST(all_forms_go_together)
{
    struct het_arena *arena = het_arena_new();
    const struct het_network *network = read_network(arena, FOLDER);
    uint32_t a100 = het_network_find_place(network, NULL, "A100-40");
    uint32_t v100 = het_network_find_place(network, NULL, "V100-16");
    ck_near(het_network_inside(network, v100, 4, 1e6), 22.51179176e9);
    /* Four A100 to four V100 is a V100 curve. */
    ck_near(het_network_between(network, a100, v100, 4, 1e6),
            het_network_between(network, v100, v100, 4, 1e6));
    het_arena_free(arena);
}
END_TEST

START_TEST(zones_are_told_apart)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json =
        json_loads("[{\"east\":{\"X\":{\"1\":{\"east\":{\"X\":{\"1\":[[0,0,4],4e9]}},"
                   "\"west\":{\"X\":{\"1\":[[0,0,1],1e9]}}}}},"
                   "\"west\":{\"X\":{\"1\":{\"west\":{\"X\":{\"1\":[[0,0,3],3e9]}}}}}},"
                   "{\"X\":{\"2\":[[0,0,9],9e9]}}]",
                   0, NULL);
    const struct het_network *network;
    struct het_error err;
    ck_assert_msg(het_network_read(arena, json, &network, &err) == 0, "%s", err.message);
    uint32_t east = het_network_find_place(network, "east", "X");
    uint32_t west = het_network_find_place(network, "west", "X");
    ck_assert_uint_ne(east, west);
    ck_near(het_network_between(network, east, east, 1, 1e6), 4e9);
    ck_near(het_network_between(network, east, west, 1, 1e6), 1e9);
    ck_assert(het_network_between(network, west, east, 1, 1e6) == 0);
    /* Inside a node the file without zones counts for both. */
    ck_near(het_network_inside(network, west, 2, 1e6), 9e9);
    het_arena_free(arena);
}
END_TEST

START_TEST(bad_curves_are_refused_by_their_place)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "{\"X\":{\"two\":[[0,0,1],1e9]}}", "X.two: the name must be a number of GPUs" },
        { "{\"X\":{\"2\":[[0,0],1e9]}}", "X.2: must be [[a, b, c]" },
        { "{\"X\":{\"2\":[[0,0,1]]}}", "X.2: must be [[a, b, c]" },
        { "{\"X\":{\"2\":[[0,0,1],-1]}}", "X.2[1]: must be 1 to" },
        { "{\"inter\":{\"X\":3}}", "inter.X: must be an object" },
        { "{\"inter\":{},\"extra\":{}}", "extra: unknown field" },
        { "{\"z\":{\"X\":{\"1\":{\"z\":{\"X\":{\"0\":[[0,0,1],1e9]}}}}}}",
          "z.X.1.z.X.0: the name must be" },
        { "[7]", "[0]: must be an object" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = json_loads(cases[i].text, 0, NULL);
        const struct het_network *network;
        struct het_error err;
        ck_assert_int_eq(het_network_read(arena, json, &network, &err), -1);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s: %s", cases[i].text,
                      err.message);
        het_arena_free(arena);
    }
}
END_TEST

/* ---- what plans get ---- */

/* Flat curves for the toy: out of a fast node 1 GPU gets 3, 2 or more get 4 GB/s; out of
 * a slow one 2; from fast to slow 1. Inside a fast node two GPUs get 50 each. */
static const struct het_place toy_places[] = { { NULL, "fast" }, { NULL, "slow" } };
static const struct het_curve toy_curves[] = {
    { .from = 0, .to = 0, .from_gpus = 2, .c = 50e9, .most_bytes_per_s = 50e9 },
    { 0, 0, 1, 1, 0, 0, 3e9, 3e9 },
    { 0, 0, 2, 2, 0, 0, 4e9, 4e9 },
    { 0, 1, 1, 1, 0, 0, 1e9, 1e9 },
    { 1, 1, 1, 1, 0, 0, 2e9, 2e9 },
};
static const struct het_network toy_network = { toy_places, 2, toy_curves, 5 };

static struct toy *toy_with_network(void)
{
    struct toy *toy = toy_new();
    toy->cluster.network = &toy_network;
    for (size_t i = 0; i < toy->cluster.node_count; i++)
        toy->nodes[i].place = toy->nodes[i].type + 1;
    ck_assert_int_eq(het_cluster_check(&toy->cluster, NULL), 0);
    return toy;
}

START_TEST(sends_take_the_curve_of_the_gpus_that_send)
{
    struct toy *toy = toy_with_network();
    /* One GPU of f0 to one of f1: two samples of 10 MB at 3 GB/s. */
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 3e9);
    /* Alone it cannot fill the node's 4 GB/s. */
    struct het_link_loads loads = { 0 };
    double latency_s;
    het_transfer_loads(&toy->problem, &from, &to, &loads, &latency_s);
    ck_near(loads.items[0].seconds, 2 * 10e6 / 4e9);
    het_link_loads_fini(&loads);
    /* Two at a time get 4 GB/s together. */
    from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2),
                     toy_replica(toy, TOY_F0, 1, 1, 2));
    to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 2),
                   toy_replica(toy, TOY_F1, 1, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 4 * 10e6 / 4e9);
    /* To a slow node 1 GB/s, whichever way was measured. */
    from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 2));
    to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 1e9);
    /* Inside f0 the curve of two GPUs; s0 has none and keeps its 50 GB/s. */
    from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2));
    to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2));
    ck_near(het_cost_send(&toy->problem, &from, &to), 2 * 10e6 / 50e9);
    toy_free(toy);
}
END_TEST

START_TEST(rings_take_the_slowest_curve_between_their_nodes)
{
    struct toy *toy = toy_with_network();
    /* 4.4 GB, n = 2, share 1, over two fast nodes: one GPU of each, 3 GB/s. */
    struct het_plan plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 1,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                             toy_replica(toy, TOY_F1, 0, 1, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 3e9);
    /* Two GPUs of each: two replicas with tp 2 run two rings, together at 4 GB/s. */
    plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 1,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 2, 4),
                                             toy_replica(toy, TOY_F1, 0, 2, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 4e9);
    /* With a slow node in the ring: 1 GB/s from fast to slow. */
    plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 1,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                             toy_replica(toy, TOY_S0, 0, 1, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 1e9);
    toy_free(toy);
}
END_TEST

START_TEST(rings_cross_the_uplinks_of_racks)
{
    struct toy *toy = toy_new();
    const struct het_domain racks[] = { { "a", 0, 1e9 }, { "b", 0, 2e9 } };
    toy->cluster.domains = racks;
    toy->cluster.domain_count = 2;
    toy->cluster.level_count = 1;
    toy->nodes[TOY_F0].domain[0] = toy->nodes[TOY_F1].domain[0] = 1;
    toy->nodes[TOY_S0].domain[0] = 2;
    /* Inside rack a: 4.4 GB at the nodes' 10 GB/s. */
    struct het_plan plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 1,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                             toy_replica(toy, TOY_F1, 0, 1, 4))));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.4e9 / 10e9);
    /* Over both: n = 3, 4/3 of 4.4 GB leave rack a once, at 1 GB/s. */
    plan =
        TOY_PLAN(toy, TOY_PIPELINE(toy, 1,
                                   TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 4),
                                             toy_replica(toy, TOY_F1, 0, 1, 2),
                                             toy_replica(toy, TOY_S0, 0, 1, 2))));
    ck_near(het_cost_sync(&toy->problem, &plan), 4.0 / 3 * 4.4e9 / 1e9);
    toy_free(toy);
}
END_TEST

/* ---- clusters ---- */

static const struct het_cluster *read_cluster(struct het_arena *arena, const char *text,
                                              const struct het_hardware *hardware,
                                              struct het_error *err)
{
    const struct het_cluster *cluster;
    json_auto_t *json = json_loads(text, 0, NULL);
    return het_cluster_json_read(arena, json, hardware, &cluster, err) < 0 ? NULL
                                                                           : cluster;
}

START_TEST(types_of_a_cluster_find_their_curves_by_any_name)
{
    struct het_arena *arena = het_arena_new();
    struct het_hardware hardware = *het_hardware_builtin();
    hardware.network = read_network(arena, FOLDER);
    const struct het_cluster *cluster =
        read_cluster(arena,
                     "{\"nodes\":[{\"type\":\"A100\",\"gpus\":4,\"memory_gb\":40},"
                     "{\"type\":\"GH200\",\"gpus\":4},{\"type\":\"RTX3090\",\"gpus\":8},"
                     "{\"type\":\"TitanRTX\",\"gpus\":8},{\"type\":\"L4\",\"gpus\":1}]}",
                     &hardware, NULL);
    static const char *const names[] = { "A100-40", "GH-96", "RTX-3090", "Titan-RTX" };
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_gt(cluster->nodes[i].place, 0);
        ck_assert_str_eq(hardware.network->places[cluster->nodes[i].place - 1].type,
                         names[i]);
    }
    ck_assert_uint_eq(cluster->nodes[4].place, 0);
    /* The figures of a node are those of a message of 1 GB, the most of any count. */
    ck_near(cluster->nodes[0].uplink_bytes_per_s, 6.03591305104673e9);
    ck_near(cluster->nodes[0].flow_bytes_per_s, het_cluster_uplink(cluster, 0, 1, 1e9));
    ck_near(cluster->nodes[0].intra_bytes_per_s, 248.8761698840839e9);
    ck_near(het_cluster_uplink(cluster, 4, 1, 1e6), 3e9);
    /* The node has four GPUs: more do not communicate. */
    ck_near(het_cluster_uplink(cluster, 0, 9, 1e6), 4.5592610071684785e9);
    het_arena_free(arena);
}
END_TEST

START_TEST(nodes_say_which_zone_and_rack_they_are_in)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster = read_cluster(
        arena,
        "{\"levels\":[{\"label\":\"zone\",\"uplinkGBs\":10},"
        "{\"label\":\"rack\",\"uplink_gb_s\":5}],"
        "\"nodes\":[{\"type\":\"A100\",\"gpus\":4,\"repeat\":2,"
        "\"levels\":{\"zone\":\"z\",\"rack\":\"r\"}},"
        "{\"type\":\"A100\",\"gpus\":4,\"name\":\"x\",\"levels\":{\"rack\":\"q\"}}]}",
        het_hardware_builtin(), NULL);
    ck_assert_uint_eq(cluster->level_count, 2);
    ck_assert_uint_eq(cluster->domain_count, 3);
    ck_assert_uint_eq(cluster->nodes[0].domain[0], 1);
    ck_assert_uint_eq(cluster->nodes[1].domain[1], 2);
    ck_assert_uint_eq(cluster->nodes[2].domain[0], 0);
    ck_assert_uint_eq(cluster->nodes[2].domain[1], 3);
    ck_near(cluster->domains[0].uplink_bytes_per_s, 10e9);
    ck_near(cluster->domains[2].uplink_bytes_per_s, 5e9);
    struct het_error err;
    ck_assert_ptr_null(read_cluster(
        arena,
        "{\"levels\":[{\"label\":\"zone\",\"uplinkGBs\":10}],"
        "\"nodes\":[{\"type\":\"A100\",\"gpus\":4,\"levels\":{\"row\":\"q\"}}]}",
        het_hardware_builtin(), &err));
    ck_assert_msg(strstr(err.message, "nodes[0].levels.row: unknown field"), "%s",
                  err.message);
    ck_assert_ptr_null(read_cluster(arena,
                                    "{\"levels\":[{\"label\":\"zone\"}],\"nodes\":[]}",
                                    het_hardware_builtin(), &err));
    ck_assert_ptr_null(read_cluster(
        arena, "{\"network\":\"n.json\",\"nodes\":[{\"type\":\"A100\",\"gpus\":4}]}",
        het_hardware_builtin(), &err));
    ck_assert_str_eq(err.message,
                     "network: \"n.json\" is the name of a file; its content "
                     "must stand here");
    het_arena_free(arena);
}
END_TEST

START_TEST(labels_of_kubernetes_nodes_are_levels)
{
    struct het_arena *arena = het_arena_new();
    const struct het_level level = { "topology.kubernetes.io/zone", 10e9 };
    struct het_hardware hardware = *het_hardware_builtin();
    hardware.levels = &level;
    hardware.level_count = 1;
    const struct het_cluster *cluster =
        read_cluster(arena,
                     "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"labels\":{"
                     "\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB\","
                     "\"topology.kubernetes.io/zone\":\"east\"}},"
                     "\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"4\"},"
                     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                     &hardware, NULL);
    ck_assert_ptr_nonnull(cluster);
    ck_assert_uint_eq(cluster->nodes[0].domain[0], 1);
    ck_assert_str_eq(cluster->domains[0].name, "east");
    het_arena_free(arena);
}
END_TEST

Suite *test_network_json_suite(void);
Suite *test_network_json_suite(void)
{
    Suite *suite = suite_create("network_json");
    TCase *cases = tcase_create("network");
    tcase_add_test(cases, curve_is_a_parabola_over_the_logarithm_of_the_message);
    tcase_add_test(cases, bandwidth_stays_within_what_was_measured);
    tcase_add_test(cases, falling_line_counts_as_what_it_is_at_its_edge);
    tcase_add_test(cases, no_curve_falls_with_the_message);
    tcase_add_test(cases, bandwidth_of_measured_curves_never_falls_with_the_message);
    tcase_add_test(cases, curves_are_found_by_type_and_number_of_gpus);
    tcase_add_test(cases, all_forms_go_together);
    tcase_add_test(cases, zones_are_told_apart);
    tcase_add_test(cases, bad_curves_are_refused_by_their_place);
    tcase_add_test(cases, sends_take_the_curve_of_the_gpus_that_send);
    tcase_add_test(cases, rings_take_the_slowest_curve_between_their_nodes);
    tcase_add_test(cases, rings_cross_the_uplinks_of_racks);
    tcase_add_test(cases, types_of_a_cluster_find_their_curves_by_any_name);
    tcase_add_test(cases, nodes_say_which_zone_and_rack_they_are_in);
    tcase_add_test(cases, labels_of_kubernetes_nodes_are_levels);
    suite_add_tcase(suite, cases);
    return suite;
}
