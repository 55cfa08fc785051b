#include "planner/cost/migrate.h"

#include "tests/planner/toy_plan.h"

#include <check.h>
#include <string.h>

#define ck_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-6 * (1 + (b)))

/* Checkpoint bytes of the toy's layers: 12 for each of 400, 200, 200, 300 million
 * parameters (fp32 Adam). */
#define L0 (12 * 400e6)
#define L1 (12 * 200e6)
#define L2 (12 * 200e6)
#define L3 (12 * 300e6)

static struct het_migration migrate(const struct toy *toy, const struct het_plan *old,
                                    const struct het_plan *new)
{
    return het_migrate(toy->arena, &toy->problem, old, new, NULL);
}

static struct het_plan whole_model(const struct toy *toy, uint32_t node, uint32_t gpu,
                                   uint32_t tp)
{
    return TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 4, toy_replica(toy, node, gpu, tp, 1))));
}

START_TEST(same_plan_moves_nothing_between_nodes)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    struct het_migration m = migrate(toy, &plan, &plan);
    ck_assert_uint_eq(m.ranks_kept, 4);
    ck_assert_uint_eq(m.rank_count, 4);
    ck_near(m.peer_bytes + m.cloud_bytes, 0);
    ck_near(m.state_bytes, L0 + L1 + L2 + L3);
    /* Two GPUs of s0 read layers 0-1, two of f0 layers 2-3; each disk reads them once. */
    ck_near(m.local_bytes, 2 * m.state_bytes);
    ck_assert_int_eq(m.bottleneck, HET_MIGRATE_DISK);
    ck_assert_uint_eq(m.bottleneck_node, TOY_S0);
    ck_near(m.seconds, (L0 + L1) / 3.5e9);
    toy_free(toy);
}
END_TEST

START_TEST(what_another_node_holds_comes_over_the_uplinks)
{
    struct toy *toy = toy_new();
    struct het_plan old = whole_model(toy, TOY_F0, 0, 1);
    struct het_plan new = whole_model(toy, TOY_S0, 0, 1);
    struct het_migration m = migrate(toy, &old, &new);
    ck_assert_uint_eq(m.ranks_kept, 0);
    ck_near(m.peer_bytes, L0 + L1 + L2 + L3);
    ck_near(m.local_bytes + m.cloud_bytes, 0);
    /* s0 takes 5 GB/s in, f0 could send 10. */
    ck_assert_int_eq(m.bottleneck, HET_MIGRATE_UPLINK_IN);
    ck_assert_uint_eq(m.bottleneck_node, TOY_S0);
    ck_near(m.seconds, (L0 + L1 + L2 + L3) / 5e9);
    ck_near(m.ranks[0].peer_bytes, L0 + L1 + L2 + L3);
    toy_free(toy);
}
END_TEST

START_TEST(what_only_lost_nodes_held_is_downloaded_once)
{
    struct toy *toy = toy_new();
    struct het_plan old = whole_model(toy, TOY_F0, 0, 1);
    struct het_replica *replica =
        (struct het_replica *)(uintptr_t)old.pipelines[0].stages[0].replicas;
    replica->node_name = "gone";
    /* Both f0 and s0 need all layers: one downloads, the other has it from there. */
    struct het_plan new = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_S0, 0, 1, 1))));
    struct het_migration m = migrate(toy, &old, &new);
    ck_near(m.cloud_bytes, L0 + L1 + L2 + L3);
    ck_near(m.peer_bytes, L0 + L1 + L2 + L3);
    ck_assert_int_eq(m.bottleneck, HET_MIGRATE_CLOUD);
    ck_near(m.seconds, (L0 + L1 + L2 + L3) / 1.2e9);
    ck_near(m.ranks[1].cloud_bytes, L0 + L1 + L2 + L3);
    toy_free(toy);
}
END_TEST

START_TEST(shared_storage_is_read_by_every_node_and_by_none_if_nothing_changes)
{
    struct toy *toy = toy_new();
    const struct het_migrate_rates rates = { .disk_bytes_per_s = 1e12,
                                             .cloud_bytes_per_s = 1.2e9,
                                             .is_shared = true };
    struct het_plan old = whole_model(toy, TOY_F0, 0, 1);
    struct het_plan new = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 1))),
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_S0, 0, 1, 1))));
    /* f0 held all of it, but not on a disk: both read the whole from the storage. */
    struct het_migration m = het_migrate(toy->arena, &toy->problem, &old, &new, &rates);
    ck_near(m.seconds, 2 * (L0 + L1 + L2 + L3) / 1.2e9);
    ck_assert_int_eq(m.bottleneck, HET_MIGRATE_CLOUD);
    m = het_migrate(toy->arena, &toy->problem, &old, &old, &rates);
    ck_near(m.seconds, 0);
    toy_free(toy);
}
END_TEST

START_TEST(shards_are_split_and_joined)
{
    struct toy *toy = toy_new();
    /* Degree 1 on f0's GPU 0, then degree 2 on its GPUs 0 and 1: each has half, both of
     * it on the node; GPU 0 held more than its half. */
    struct het_plan one = whole_model(toy, TOY_F0, 0, 1);
    struct het_plan two = whole_model(toy, TOY_F0, 0, 2);
    struct het_migration m = migrate(toy, &one, &two);
    ck_near(m.local_bytes, L0 + L1 + L2 + L3);
    ck_near(m.ranks[0].local_bytes, (L0 + L1 + L2 + L3) / 2);
    ck_assert(m.ranks[0].keeps && !m.ranks[1].keeps);
    /* Back: the GPU held but half. */
    m = migrate(toy, &two, &one);
    ck_near(m.local_bytes, L0 + L1 + L2 + L3);
    ck_assert_uint_eq(m.ranks_kept, 0);
    toy_free(toy);
}
END_TEST

START_TEST(half_of_a_group_that_was_lost_is_downloaded)
{
    struct toy *toy = toy_new();
    /* Layers 0-1 were on a lost node, 2-3 on s0, where all are wanted. */
    struct het_plan old = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_S0, 0, 1, 1))));
    struct het_replica *replica =
        (struct het_replica *)(uintptr_t)old.pipelines[0].stages[0].replicas;
    replica->node_name = "gone";
    struct het_plan new = whole_model(toy, TOY_S0, 0, 1);
    struct het_migration m = migrate(toy, &old, &new);
    ck_near(m.cloud_bytes, L0 + L1);
    ck_near(m.local_bytes, L2 + L3);
    ck_near(m.peer_bytes, 0);
    toy_free(toy);
}
END_TEST

/* AutoHet, section V.C: everything local against everything from the cloud, with the
 * rates it measured, is at least 3500 / 1200 = 2.9; with ever less local it goes to 1. */
START_TEST(local_state_is_worth_the_ratio_of_the_rates)
{
    struct toy *toy = toy_new();
    struct het_plan plan = whole_model(toy, TOY_F0, 0, 1), gone = plan;
    struct het_stage stage = plan.pipelines[0].stages[0];
    struct het_replica replica = stage.replicas[0];
    replica.node_name = "gone";
    stage.replicas = &replica;
    struct het_pipeline pipeline = { .microbatch_count = 8,
                                     .stages = &stage,
                                     .stage_count = 1 };
    gone.pipelines = &pipeline;
    double local_s = migrate(toy, &plan, &plan).seconds;
    double cloud_s = migrate(toy, &gone, &plan).seconds;
    ck_assert_double_ge(cloud_s / local_s, 2.9);
    toy_free(toy);
}
END_TEST

START_TEST(plan_is_placed_where_its_layers_are)
{
    struct toy *toy = toy_new();
    /* f1 made equal to f0: the old plan ran layers 0-1 on f1 and 2-3 on f0, the new one
     * has them the other way round. */
    toy->nodes[TOY_F1] = toy->nodes[TOY_F0];
    toy->nodes[TOY_F1].name = "f1";
    struct het_plan old = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F1, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F0, 0, 1, 1))));
    struct het_plan new = TOY_PLAN(
        toy, TOY_PIPELINE(toy, 8, TOY_STAGE(toy, 0, 2, toy_replica(toy, TOY_F0, 0, 1, 1)),
                          TOY_STAGE(toy, 2, 2, toy_replica(toy, TOY_F1, 0, 1, 1))));
    ck_assert_double_gt(migrate(toy, &old, &new).peer_bytes, 0);
    const struct het_plan *placed =
        het_migrate_place(toy->arena, &toy->problem, &old, &new);
    struct het_migration m = migrate(toy, &old, placed);
    ck_near(m.peer_bytes, 0);
    ck_assert_uint_eq(m.ranks_kept, 2);
    ck_assert_uint_eq(placed->pipelines[0].stages[0].replicas[0].node, TOY_F1);
    ck_assert_str_eq(placed->pipelines[0].stages[0].replicas[0].node_name, "f1");
    /* Placing once more changes nothing. */
    const struct het_plan *again =
        het_migrate_place(toy->arena, &toy->problem, placed, placed);
    ck_assert_int_eq(het_plan_compare(again, placed), 0);
    /* Nodes between which other bandwidths were measured are not alike. */
    toy->nodes[TOY_F1].place = 1;
    const struct het_plan *kept =
        het_migrate_place(toy->arena, &toy->problem, &old, &new);
    ck_assert_uint_eq(kept->pipelines[0].stages[0].replicas[0].node, TOY_F0);
    toy_free(toy);
}
END_TEST

Suite *test_migrate_suite(void)
{
    Suite *suite = suite_create("migrate");
    TCase *tcase = tcase_create("migrate");
    tcase_add_test(tcase, same_plan_moves_nothing_between_nodes);
    tcase_add_test(tcase, what_another_node_holds_comes_over_the_uplinks);
    tcase_add_test(tcase, what_only_lost_nodes_held_is_downloaded_once);
    tcase_add_test(tcase,
                   shared_storage_is_read_by_every_node_and_by_none_if_nothing_changes);
    tcase_add_test(tcase, shards_are_split_and_joined);
    tcase_add_test(tcase, half_of_a_group_that_was_lost_is_downloaded);
    tcase_add_test(tcase, local_state_is_worth_the_ratio_of_the_rates);
    tcase_add_test(tcase, plan_is_placed_where_its_layers_are);
    suite_add_tcase(suite, tcase);
    return suite;
}
