#include "planner/cost/idle_gpus.h"

#include "tests/planner/toy.h"
#include "tests/planner/toy_plan.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- words ---- */

START_TEST(every_reason_has_a_word_that_reads_back)
{
    struct het_arena *arena = het_arena_new();
    for (int i = 0; i < HET_UNUSED_REASONS; i++) {
        enum het_unused_reason reason = (enum het_unused_reason)i, again;
        const char *detail;
        ck_assert(het_unused_parse(arena, het_unused_name(reason), &again, &detail));
        ck_assert_int_eq(again, i);
        ck_assert_str_eq(detail, "");
        const char *text = het_arena_printf(arena, "%s (a key)", het_unused_name(reason));
        ck_assert(het_unused_parse(arena, text, &again, &detail));
        ck_assert_int_eq(again, i);
        ck_assert_str_eq(detail, "a key");
        const struct het_unused group = { .reason = reason, .type = "", .detail = "x" };
        ck_assert_ptr_nonnull(strstr(het_unused_text(arena, &group), " (x)"));
    }
    static const char *const none[] = { "", "Taint", "Taintedx", "Tainted (",
                                        "(Tainted)" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        enum het_unused_reason reason;
        const char *detail;
        ck_assert(!het_unused_parse(arena, none[i], &reason, &detail));
    }
    het_arena_free(arena);
}
END_TEST

/* ---- lists ---- */

START_TEST(a_list_stays_short_and_counts_every_gpu)
{
    enum { NODES = 1000, TYPES = 200 };
    struct het_arena *arena = het_arena_new();
    struct het_unused_list list = { 0 };
    for (int n = 0; n < NODES; n++)
        het_unused_add(arena, &list,
                       n % 2 ? HET_UNUSED_NOT_READY : HET_UNUSED_UNKNOWN_PRODUCT,
                       het_arena_printf(arena, "type-%d", n % TYPES), "",
                       het_arena_printf(arena, "node-%03d", n), 8);
    het_unused_add(arena, &list, HET_UNUSED_TAINTED, "x", "", "none", 0);
    het_unused_sort(&list);
    ck_assert_uint_le(list.count, HET_UNUSED_GROUPS);
    uint32_t gpus = 0, nodes = 0;
    for (size_t i = 0; i < list.count; i++) {
        gpus += list.groups[i].gpus;
        nodes += list.groups[i].node_count;
        ck_assert_int_ne(list.groups[i].reason, HET_UNUSED_TAINTED);
        ck_assert_uint_le(het_unused_name_count(&list.groups[i]), HET_UNUSED_NODES);
        for (size_t k = 0; k < het_unused_name_count(&list.groups[i]); k++)
            ck_assert_ptr_nonnull(list.groups[i].nodes[k]);
    }
    ck_assert_uint_eq(gpus, NODES * 8);
    ck_assert_uint_eq(nodes, NODES);
    /* What did not fit by type is one group of the reason; what to mend comes first. */
    ck_assert_int_eq(list.groups[0].reason, HET_UNUSED_UNKNOWN_PRODUCT);
    ck_assert_str_eq(list.groups[0].type, "");
    het_arena_free(arena);
}
END_TEST

/* ---- idle GPUs ---- */

/* Why `node` is idle when the plan uses a pipeline of one GPU of f0; "": it is not. */
static const char *why(struct toy *toy, const char *node)
{
    struct het_plan plan = TOY_PLAN(
        toy,
        TOY_PIPELINE(toy, 4, TOY_STAGE(toy, 0, 4, toy_replica(toy, TOY_F0, 0, 1, 2))));
    struct het_unused_list list = { 0 };
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    het_idle_gpus_explain(toy->arena, &toy->problem, &plan, &list);
    for (size_t i = 0; i < list.count; i++)
        for (size_t k = 0; k < het_unused_name_count(&list.groups[i]); k++)
            if (!strcmp(list.groups[i].nodes[k], node))
                return het_unused_name(list.groups[i].reason);
    return "";
}

START_TEST(an_idle_gpu_has_the_reason_that_the_planner_knows)
{
    struct toy *toy = toy_new();
    ck_assert_str_eq(why(toy, "s0"), "NotChosen");
    ck_assert_str_eq(why(toy, "f0"), "NotChosen"); /* the other three of it */

    toy->workload.max_gpus = 1;
    ck_assert_str_eq(why(toy, "s0"), "GPULimit");
    toy->workload.max_gpus = 2;
    ck_assert_str_eq(why(toy, "s0"), "NotChosen");

    toy->nodes[TOY_F0].vendor = toy->nodes[TOY_F1].vendor = "nvidia";
    toy->nodes[TOY_S0].vendor = "amd";
    ck_assert_str_eq(why(toy, "s0"), "OtherVendor");
    ck_assert_str_eq(why(toy, "f1"), "NotChosen");
    toy->workload.mixes_vendors = true;
    ck_assert_str_eq(why(toy, "s0"), "NotChosen");
    toy->workload.mixes_vendors = false;
    toy->nodes[TOY_S0].vendor = "nvidia";

    struct het_type_limit limits[] = { { "fast", 0, 1, 0 }, { "slow", 0, 2, 0 } };
    toy->workload.type_limits = limits;
    toy->workload.type_limit_count = 2;
    ck_assert_str_eq(why(toy, "f1"), "TypeLimit");
    ck_assert_str_eq(why(toy, "s0"), "NotChosen"); /* of 2 none is used */
    toy->workload.type_limit_count = 1;
    ck_assert_str_eq(why(toy, "s0"), "TypeNotAllowed");
    toy->workload.type_limit_count = 0;

    uint32_t degrees[] = { 4 };
    toy->workload.tensor_parallel = degrees;
    toy->workload.tensor_parallel_count = 1;
    ck_assert_str_eq(why(toy, "s0"), "NotWithinLimits");
    toy->workload.tensor_parallel_count = 0;

    /* The least layer has 200 million parameters of 16 bytes: 3.2 GB beside 1 GiB. */
    toy->types[1].memory_bytes = (uint64_t)2 << 30;
    ck_assert_str_eq(why(toy, "s0"), "TooLittleMemory");
    ck_assert_str_eq(why(toy, "f1"), "NotChosen");
    toy_free(toy);
}
END_TEST

START_TEST(a_type_without_times_says_what_is_missing)
{
    struct toy *toy = toy_new();
    static const struct het_gpu_type parts[] = {
        { .name = "slow", .fp16_flops = 1e12, .memory_bytes_per_s = 1e9 }
    };
    static const struct het_hardware known = { .types = parts, .type_count = 1 };
    uint32_t *profile_type = (uint32_t *)(uintptr_t)toy->problem.profile_type;
    profile_type[1] = HET_NO_TYPE;
    ck_assert_str_eq(toy->types[1].name, "slow");
    ck_assert_str_eq(why(toy, "s0"), "UnknownProduct");
    toy->cluster.hardware = &known;
    ck_assert_str_eq(why(toy, "s0"), "NotMeasured");
    toy->workload.precision = HET_BF16;
    toy->profile.origin = HET_PROFILE_ESTIMATED;
    ck_assert_str_eq(why(toy, "s0"), "PrecisionUnsupported");
    static const struct het_gpu_type bare[] = { { .name = "slow" } };
    static const struct het_hardware unrated = { .types = bare, .type_count = 1 };
    toy->cluster.hardware = &unrated;
    ck_assert_str_eq(why(toy, "s0"), "NoRates");
    toy_free(toy);
}
END_TEST

Suite *test_unused_gpus_suite(void)
{
    Suite *suite = suite_create("unused_gpus");
    TCase *cases = tcase_create("unused");
    tcase_add_test(cases, every_reason_has_a_word_that_reads_back);
    tcase_add_test(cases, a_list_stays_short_and_counts_every_gpu);
    tcase_add_test(cases, an_idle_gpu_has_the_reason_that_the_planner_knows);
    tcase_add_test(cases, a_type_without_times_says_what_is_missing);
    suite_add_tcase(suite, cases);
    return suite;
}
