#include "planner/model/workload.h"

#include <check.h>
#include <math.h>
#include <string.h>

START_TEST(state_of_a_parameter_follows_precision_and_optimizer)
{
    struct het_workload workload = { .precision = HET_FP32, .optimizer = HET_ADAM };
    ck_assert_double_eq(het_workload_state_bytes(&workload, 4), 4 + 4 + 8);
    workload.precision = HET_BF16;
    ck_assert_double_eq(het_workload_state_bytes(&workload, 4), 2 + 4 + 4 + 8);
    workload.optimizer = HET_ADAM_DISTRIBUTED;
    ck_assert_double_eq(het_workload_state_bytes(&workload, 4), 6 + 12.0 / 4);
    ck_assert_double_eq(het_workload_state_bytes(&workload, 1), 18);
    workload.optimizer = HET_SGD;
    ck_assert_double_eq(het_workload_state_bytes(&workload, 4), 2 + 4 + 4);
    ck_assert_double_eq(het_workload_gradient_bytes(&workload), 4);
}
END_TEST

START_TEST(names_are_read_in_any_case)
{
    enum het_precision precision;
    enum het_optimizer optimizer;
    struct het_error err;
    ck_assert_int_eq(het_precision_parse("BF16", &precision, NULL), 0);
    ck_assert_str_eq(het_precision_name(precision), "bf16");
    ck_assert_int_eq(het_optimizer_parse("AdamW", &optimizer, NULL), 0);
    ck_assert_str_eq(het_optimizer_name(optimizer), "adam");
    ck_assert_int_eq(het_optimizer_parse("adam-distributed", &optimizer, NULL), 0);
    ck_assert_int_eq(optimizer, HET_ADAM_DISTRIBUTED);
    ck_assert_int_eq(het_precision_parse("fp8", &precision, &err), -1);
    ck_assert_str_eq(err.message, "precision \"fp8\": must be fp32, bf16 or fp16");
    ck_assert_int_eq(het_optimizer_parse("", &optimizer, &err), -1);
}
END_TEST

START_TEST(empty_lists_allow_everything)
{
    const uint32_t degrees[] = { 1, 4 };
    const struct het_type_limit limits[] = { { .type = "A100" } };
    struct het_workload workload = { 0 };
    ck_assert(het_workload_allows_tensor_parallel(&workload, 3));
    ck_assert(het_workload_allows_microbatch(&workload, 3));
    ck_assert(het_workload_allows_type(&workload, "V100"));
    workload.tensor_parallel = degrees;
    workload.tensor_parallel_count = 2;
    workload.type_limits = limits;
    workload.type_limit_count = 1;
    ck_assert(het_workload_allows_tensor_parallel(&workload, 4));
    ck_assert(!het_workload_allows_tensor_parallel(&workload, 3));
    ck_assert(het_workload_allows_type(&workload, "A100"));
    ck_assert(!het_workload_allows_type(&workload, "V100"));
    ck_assert_ptr_eq(het_workload_find_limit(&workload, "A100"), limits);
    ck_assert_ptr_null(het_workload_find_limit(&workload, "V100"));
}
END_TEST

static void refuses(const struct het_workload *workload, const char *part)
{
    struct het_error err = { 0 };
    ck_assert_int_eq(het_workload_check(workload, &err), -1);
    ck_assert_int_eq(err.code, HET_BAD_INPUT);
    ck_assert_msg(strstr(err.message, part), "%s", err.message);
}

START_TEST(impossible_wishes_are_refused)
{
    const uint32_t sizes[] = { 1, 0 };
    const struct het_workload good = { .global_batch = 8 };
    ck_assert_int_eq(het_workload_check(&good, NULL), 0);
    struct het_workload bad = good;
    bad.global_batch = 0;
    refuses(&bad, "global batch size: must be 1 to 2147483647, is 0");
    bad = good;
    bad.memory_headroom = NAN;
    refuses(&bad, "memory headroom");
    bad.memory_headroom = 0.91;
    refuses(&bad, "memory headroom");
    bad = good;
    bad.microbatch_sizes = sizes;
    bad.microbatch_size_count = 2;
    refuses(&bad, "micro-batch sizes: entry 1");
    bad = good;
    bad.min_gpus = 5;
    bad.max_gpus = 4;
    refuses(&bad, "GPUs: the least (5) is above the most (4)");
}
END_TEST

Suite *test_workload_suite(void)
{
    Suite *suite = suite_create("workload");
    TCase *cases = tcase_create("workload");
    tcase_add_test(cases, state_of_a_parameter_follows_precision_and_optimizer);
    tcase_add_test(cases, names_are_read_in_any_case);
    tcase_add_test(cases, empty_lists_allow_everything);
    tcase_add_test(cases, impossible_wishes_are_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
