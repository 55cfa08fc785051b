/* Who has to give GPUs up, to whom, and in what order; whose growth comes first. */
#include "controller/placement/victims.h"

#include "tests/controller/world.h"

#include <check.h>
#include <math.h>
#include <string.h>

#define V100 "V100-SXM2-16GB"

static struct het_arena *arena;

/* Nodes a and b have 8 A100 each, c has 4 V100; one A100 of a is free. */
static struct capacity_node nodes[] = {
    { .name = "a", .type = A100, .allocatable = 8, .free = 1, .most_free = 8 },
    { .name = "b", .type = A100, .allocatable = 8, .most_free = 8 },
    { .name = "c", .type = V100, .allocatable = 4, .most_free = 4 },
};
static struct capacity_share on_a[] = { { "a", 7 } };
static struct capacity_share on_b[] = { { "b", 8 } };
static struct capacity_share on_c[] = { { "c", 4 } };

/* By precedence: a job of the asking one's priority, then two of lower. */
static struct other_job peers[] = {
    { .key = "ns/equal",
      .uid = "e",
      .precedence = { .priority = 10 },
      .shares = on_a,
      .share_count = 1,
      .gpus = 7,
      .min_gpus = 4,
      .next_move_wall_ms = 1000 },
    { .key = "ns/low",
      .uid = "l",
      .precedence = { .priority = 1, .created_ms = 1 },
      .shares = on_b,
      .share_count = 1,
      .gpus = 8,
      .min_gpus = 2,
      .next_move_wall_ms = INT64_MAX },
    { .key = "ns/younger",
      .uid = "y",
      .precedence = { .priority = 1, .created_ms = 2 },
      .shares = on_c,
      .share_count = 1,
      .gpus = 4,
      .min_gpus = 4,
      .next_move_wall_ms = INT64_MAX },
};
static struct snapshot snapshot;

static void setup(void)
{
    arena = het_arena_new();
    snapshot = (struct snapshot){ .wall_ms = 2000,
                                  .precedence = { .priority = 10, .uid = "me" },
                                  .nodes = nodes,
                                  .node_count = 3,
                                  .peers = peers,
                                  .peer_count = 3 };
    peers[1].is_in_a_claim = false;
}

static void teardown(void)
{
    het_arena_free(arena);
}

/* "job:gpus job:gpus" */
static const char *text_of(const struct victims_offer *offers, size_t count)
{
    const char *text = "";
    for (size_t i = 0; i < count; i++)
        text = het_arena_printf(arena, "%s%s%s:%d", text, *text ? " " : "",
                                offers[i].peer->key, (int)offers[i].usable);
    return text;
}

static const char *offers_text(void)
{
    struct victims_offer *offers;
    size_t count = victims_offers(arena, &snapshot, &offers);
    return text_of(offers, count);
}

static const struct het_plan *plan_of(const char *list, double iteration_s)
{
    auto_free char *text = world_plan(list, A100, iteration_s);
    json_auto_t *json = json_loads(text, 0, NULL);
    const struct het_plan *plan;
    ck_assert_int_eq(het_plan_json_read(arena, json, &plan, NULL), 0);
    return plan;
}

START_TEST(what_jobs_can_spare_goes_before_jobs_that_would_stop)
{
    /* low can spare 8 - 2, equal 7 - 4; younger nothing; then whole ones, youngest first.
     */
    ck_assert_str_eq(offers_text(), "ns/low:6 ns/equal:3 ns/younger:4 ns/low:8");
}
END_TEST

START_TEST(job_of_the_same_priority_gives_only_when_it_may_move)
{
    snapshot.wall_ms = 999; /* equal may move from 1000 on */
    ck_assert_str_eq(offers_text(), "ns/low:6 ns/younger:4 ns/low:8");
}
END_TEST

START_TEST(nobody_gives_to_a_job_of_lower_priority)
{
    snapshot.precedence.priority = 0;
    ck_assert_str_eq(offers_text(), "");
}
END_TEST

START_TEST(class_that_never_preempts_takes_nothing)
{
    snapshot.precedence.never_claims = true;
    ck_assert_str_eq(offers_text(), "");
}
END_TEST

START_TEST(job_in_a_claim_is_left_alone)
{
    peers[1].is_in_a_claim = true;
    ck_assert_str_eq(offers_text(), "ns/equal:3 ns/younger:4");
}
END_TEST

START_TEST(gpus_of_other_types_are_no_offer)
{
    snapshot.spec.gpu_types[0] = (struct job_gpu_type){ .name = V100 };
    snapshot.spec.gpu_type_count = 1;
    ck_assert_str_eq(offers_text(), "ns/younger:4");
    ck_assert_int_eq(victims_free(&snapshot), 0);
}
END_TEST

START_TEST(gpus_that_would_come_without_cpu_are_no_offer)
{
    struct capacity_node scarce[] = { nodes[0], nodes[1], nodes[2] };
    scarce[0].most_free = 1;
    scarce[1].most_free = 3;
    snapshot.nodes = scarce;
    ck_assert_str_eq(offers_text(), "ns/low:3 ns/younger:4 ns/low:3");
    struct victims_offer *offers;
    size_t count = victims_offers(arena, &snapshot, &offers);
    const struct capacity_node *view = victims_view(arena, &snapshot, offers, count);
    ck_assert_int_eq(view[0].free, 1);
    ck_assert_int_eq(view[1].free, 3);
}
END_TEST

START_TEST(view_shows_what_would_be_free_and_counts_no_job_twice)
{
    struct victims_offer *offers;
    size_t count = victims_offers(arena, &snapshot, &offers);
    const struct capacity_node *view = victims_view(arena, &snapshot, offers, 2);
    ck_assert_int_eq(view[0].free, 1 + 3);
    ck_assert_int_eq(view[1].free, 6);
    ck_assert_int_eq(view[2].free, 0);
    view = victims_view(arena, &snapshot, offers, count); /* low: 8, not 6 + 8 */
    ck_assert_int_eq(view[1].free, 8);
    ck_assert_int_eq(view[2].free, 4);
}
END_TEST

START_TEST(only_those_whose_gpus_the_plan_takes_are_victims)
{
    struct victims_offer *offers, *victims;
    victims_offers(arena, &snapshot, &offers);
    size_t count =
        victims_find(arena, &snapshot, offers, 2, plan_of("a:1 b:2", 1), &victims);
    ck_assert_str_eq(text_of(victims, count), "ns/low:2"); /* a:1 is free */
    count = victims_find(arena, &snapshot, offers, 2, plan_of("a:3 b:2", 1), &victims);
    ck_assert_str_eq(text_of(victims, count), "ns/low:2 ns/equal:2");
}
END_TEST

START_TEST(claim_of_higher_priority_must_be_met)
{
    struct claim claim = { .precedence = { .priority = 10 } };
    ck_assert(!victims_must_yield(&snapshot));
    snapshot.claimed_by = &claim;
    ck_assert(!victims_must_yield(&snapshot));
    claim.precedence.priority = 11;
    ck_assert(victims_must_yield(&snapshot));
}
END_TEST

START_TEST(bid_is_the_gain_for_each_gpu_that_is_taken)
{
    const struct het_plan *now = plan_of("a:2", 2.0);
    /* b:2 and one more of a: 3 GPUs; twice as fast is ln 2 */
    double bid = victims_bid(arena, now, plan_of("a:3 b:2", 1.0), 1.0);
    ck_assert_double_eq_tol(bid, log(2) / 3, 1e-12);
    /* No GPU more, but better ones given up: as for one */
    ck_assert_double_eq_tol(victims_bid(arena, now, plan_of("a:1", 1.0), 0.5), log(1.5),
                            1e-12);
}
END_TEST

START_TEST(growth_waits_for_whoever_has_not_bidden_and_yields_to_more)
{
    ck_assert(victims_wins(&snapshot, 0.1));
    snapshot.rival = "ns/other";
    snapshot.rival_bid = 0.2;
    ck_assert(!victims_wins(&snapshot, 0.1));
    ck_assert(victims_wins(&snapshot, 0.3));
    snapshot.rival_asking = "ns/third";
    ck_assert(!victims_wins(&snapshot, 0.3));
}
END_TEST

Suite *test_victims_suite(void)
{
    Suite *suite = suite_create("victims");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, what_jobs_can_spare_goes_before_jobs_that_would_stop);
    tcase_add_test(all, job_of_the_same_priority_gives_only_when_it_may_move);
    tcase_add_test(all, nobody_gives_to_a_job_of_lower_priority);
    tcase_add_test(all, class_that_never_preempts_takes_nothing);
    tcase_add_test(all, job_in_a_claim_is_left_alone);
    tcase_add_test(all, gpus_of_other_types_are_no_offer);
    tcase_add_test(all, gpus_that_would_come_without_cpu_are_no_offer);
    tcase_add_test(all, view_shows_what_would_be_free_and_counts_no_job_twice);
    tcase_add_test(all, only_those_whose_gpus_the_plan_takes_are_victims);
    tcase_add_test(all, claim_of_higher_priority_must_be_met);
    tcase_add_test(all, bid_is_the_gain_for_each_gpu_that_is_taken);
    tcase_add_test(all, growth_waits_for_whoever_has_not_bidden_and_yields_to_more);
    suite_add_tcase(suite, all);
    return suite;
}
