#include "planner/cost/transfer.h"

#include "tests/planner/toy.h"

#include <check.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-12 * (b))

START_TEST(loads_say_how_long_each_uplink_is_busy)
{
    struct toy *toy = toy_new();
    /* Samples 0-1 from s0, 2-3 from f1, all to f0; 10 MB each. s0 has 5 GB/s, the others
     * 10; with 1 ms of latency on s0. */
    toy->nodes[TOY_S0].latency_s = 0.001;
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_S0, 0, 1, 2),
                                      toy_replica(toy, TOY_F1, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 4));
    struct het_link_loads loads = { 0 };
    double latency_s, seconds;
    seconds = het_transfer_loads(&toy->problem, &from, &to, &loads, &latency_s);
    ck_assert_uint_eq(loads.count, 3);
    ck_assert_uint_eq(loads.items[0].link, 2 * TOY_S0);
    ck_near(loads.items[0].seconds, 2 * 10e6 / 5e9);
    ck_assert_uint_eq(loads.items[1].link, 2 * TOY_F1);
    ck_near(loads.items[1].seconds, 2 * 10e6 / 10e9);
    ck_assert_uint_eq(loads.items[2].link, 2 * TOY_F0 + 1);
    ck_assert_uint_eq(loads.items[2].flow_count, 2);
    ck_near(loads.items[2].seconds, 4 * 10e6 / 10e9);
    ck_near(latency_s, 0.001);
    ck_near(seconds, 4 * 10e6 / 10e9);
    het_link_loads_fini(&loads);
    toy_free(toy);
}
END_TEST

START_TEST(send_inside_a_node_loads_nothing_shared)
{
    struct toy *toy = toy_new();
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 1, 1, 2));
    struct het_link_loads loads = { 0 };
    double latency_s, seconds;
    seconds = het_transfer_loads(&toy->problem, &from, &to, &loads, &latency_s);
    ck_assert_uint_eq(loads.count, 0);
    ck_near(seconds, 2 * 10e6 / 100e9);
    het_link_loads_fini(&loads);
    toy_free(toy);
}
END_TEST

START_TEST(racks_limit_what_leaves_them)
{
    struct toy *toy = toy_new();
    /* f0 and f1 in rack a with 4 GB/s, s0 in rack b with 2 GB/s. */
    const struct het_domain racks[] = { { "a", 0, 4e9 }, { "b", 0, 2e9 } };
    toy->cluster.domains = racks;
    toy->cluster.domain_count = 2;
    toy->cluster.level_count = 1;
    toy->nodes[TOY_F0].domain[0] = toy->nodes[TOY_F1].domain[0] = 1;
    toy->nodes[TOY_S0].domain[0] = 2;
    struct het_stage from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 2),
                                      toy_replica(toy, TOY_F1, 0, 1, 2));
    struct het_stage to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 0, 1, 4));
    struct het_link_loads loads = { 0 };
    double latency_s, seconds;
    seconds = het_transfer_loads(&toy->problem, &from, &to, &loads, &latency_s);
    ck_near(seconds, 4 * 10e6 / 2e9);
    ck_assert_uint_eq(loads.count, 5);
    ck_assert_uint_eq(loads.items[2].link, 2 * 3);
    ck_near(loads.items[2].seconds, 4 * 10e6 / 4e9);
    ck_assert_uint_eq(loads.items[4].link, 2 * 3 + 2 + 1);
    ck_near(loads.items[4].seconds, 4 * 10e6 / 2e9);
    /* Inside rack a only the nodes' uplinks count. */
    to = TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 1, 1, 4));
    from = TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 4));
    ck_near(het_transfer_seconds(&toy->problem, &from, &to), 4 * 10e6 / 10e9);
    het_link_loads_fini(&loads);
    toy_free(toy);
}
END_TEST

Suite *test_transfer_suite(void);
Suite *test_transfer_suite(void)
{
    Suite *suite = suite_create("transfer");
    TCase *cases = tcase_create("transfer");
    tcase_add_test(cases, loads_say_how_long_each_uplink_is_busy);
    tcase_add_test(cases, send_inside_a_node_loads_nothing_shared);
    tcase_add_test(cases, racks_limit_what_leaves_them);
    suite_add_tcase(suite, cases);
    return suite;
}
