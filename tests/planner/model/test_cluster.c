#include "planner/model/cluster.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <math.h>
#include <string.h>

START_TEST(gpus_are_counted_in_all_and_by_type)
{
    struct toy *toy = toy_new();
    ck_assert_uint_eq(het_cluster_gpu_count(&toy->cluster), 4 + 2 + 4);
    ck_assert_uint_eq(het_cluster_type_gpu_count(&toy->cluster, 0), 4 + 2);
    ck_assert_uint_eq(het_cluster_type_gpu_count(&toy->cluster, 1), 4);
    ck_assert_uint_eq(het_cluster_find_type(&toy->cluster, "slow"), 1);
    ck_assert_uint_eq(het_cluster_find_type(&toy->cluster, "none"), HET_NO_TYPE);
    toy_free(toy);
}
END_TEST

START_TEST(nodes_are_alike_in_all_but_name_and_preference)
{
    struct toy *toy = toy_new();
    const struct het_node node = toy->nodes[TOY_F0];
    struct het_node other = node;
    other.name = "other";
    other.preference = -1;
    ck_assert_int_eq(het_node_compare(&node, &other), 0);
#define DIFFERS(field, value)                                                            \
    do {                                                                                 \
        other = node;                                                                    \
        other.field = value;                                                             \
        int order_ = het_node_compare(&node, &other);                                    \
        ck_assert_msg(order_ && (order_ < 0) == (het_node_compare(&other, &node) > 0),   \
                      #field);                                                           \
    } while (0)
    DIFFERS(type, 1);
    DIFFERS(gpu_count, 1);
    DIFFERS(intra_bytes_per_s, 1);
    DIFFERS(uplink_bytes_per_s, 1);
    DIFFERS(flow_bytes_per_s, 1);
    DIFFERS(latency_s, 1);
    DIFFERS(place, 1);
    DIFFERS(domain[0], 1);
    DIFFERS(domain[HET_MAX_LEVELS - 1], 1);
    toy_free(toy);
}
END_TEST

START_TEST(flow_is_as_fast_as_the_tighter_end)
{
    struct toy *toy = toy_new();
    struct het_cluster *cluster = &toy->cluster;
    ck_assert_double_eq(het_cluster_gpu_link(cluster, TOY_F0, 2, 1e6), 100e9);
    ck_assert_double_eq(het_cluster_uplink(cluster, TOY_S0, 1, 1e6), 5e9);
    ck_assert(het_cluster_pair(cluster, TOY_F0, TOY_S0, 1, 1e6) == HUGE_VAL);
    toy->nodes[TOY_F0].flow_bytes_per_s = 2e9;
    ck_assert_double_eq(het_cluster_pair(cluster, TOY_S0, TOY_F0, 1, 1e6), 2e9);
    ck_assert_double_eq(het_cluster_pair(cluster, TOY_S0, TOY_F0, 3, 1e6), 6e9);
    toy_free(toy);
}
END_TEST

static void refuses(struct toy *toy, const char *part)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(het_cluster_check(&toy->cluster, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, part), "%s", err.message);
}

START_TEST(what_no_planner_can_use_is_refused)
{
    struct toy *toy = toy_new();
    ck_assert_int_eq(het_cluster_check(&toy->cluster, NULL), 0);

    struct het_node *node = &toy->nodes[TOY_F1];
    const struct het_node good = *node;
    node->name = "f0";
    refuses(toy, "two nodes are called f0");
    *node = good;
    node->gpu_count = 0;
    refuses(toy, "node f1: gpus must be 1 to 1024");
    node->gpu_count = HET_MAX_NODE_GPUS + 1;
    refuses(toy, "node f1: gpus must be 1 to 1024");
    *node = good;
    node->uplink_bytes_per_s = NAN;
    refuses(toy, "f1: bandwidth between nodes must be a positive number");
    node->uplink_bytes_per_s = INFINITY;
    refuses(toy, "f1: bandwidth between nodes");
    *node = good;
    node->intra_bytes_per_s = 0;
    refuses(toy, "f1: bandwidth inside the node");
    *node = good;
    node->latency_s = -1;
    refuses(toy, "f1: latency");
    *node = good;
    node->type = 2;
    refuses(toy, "f1: GPU type is missing");
    *node = good;
    toy->types[0].memory_bytes = toy->types[0].workspace_bytes;
    refuses(toy, "GPU type fast: the workspace takes all");
    toy->cluster.node_count = 0;
    refuses(toy, "no nodes");
    toy_free(toy);
}
END_TEST

Suite *test_cluster_suite(void)
{
    Suite *suite = suite_create("cluster");
    TCase *cases = tcase_create("cluster");
    tcase_add_test(cases, gpus_are_counted_in_all_and_by_type);
    tcase_add_test(cases, nodes_are_alike_in_all_but_name_and_preference);
    tcase_add_test(cases, flow_is_as_fast_as_the_tighter_end);
    tcase_add_test(cases, what_no_planner_can_use_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
