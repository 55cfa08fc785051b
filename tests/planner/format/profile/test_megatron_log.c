#include "planner/format/profile/megatron_log.h"

#include <check.h>
#include <string.h>

#define ARGUMENTS                                                                        \
    "using world size: 2, data-parallel size: 1\n"                                       \
    "------------------------ arguments ------------------------\n"                      \
    "  hidden_dropout .................................. 0.0\n"                          \
    "  num_layers ...................................... 24\n"                           \
    "  recompute_granularity ........................... None\n"                         \
    "  swiglu .......................................... True\n"                         \
    "-------------------- end of arguments ---------------------\n"

static struct het_megatron_log read_log(struct het_arena *arena, const char *text)
{
    struct het_megatron_log log;
    struct het_error err;
    ck_assert_msg(!het_megatron_log_read(arena, "run.log", text, &log, &err), "%s",
                  err.message);
    return log;
}

static double ms_of(const struct het_megatron_log *log, enum het_megatron_timer timer,
                    uint32_t rank)
{
    double ms = -1;
    ck_assert(het_megatron_ms(log, timer, rank, &ms));
    return ms;
}

START_TEST(arguments_are_names_and_values)
{
    struct het_arena *arena = het_arena_new();
    const struct het_megatron_log log = read_log(arena, ARGUMENTS
                                                 "max time across ranks (ms):\n"
                                                 "    forward-compute .....: 1\n"
                                                 "    backward-compute ....: 2\n");
    struct het_error err;
    uint32_t number = 0;
    ck_assert_str_eq(het_megatron_argument(&log, "hidden_dropout"), "0.0");
    ck_assert_ptr_null(het_megatron_argument(&log, "recompute_granularity"));
    ck_assert_ptr_null(het_megatron_argument(&log, "hidden"));
    ck_assert(het_megatron_is_set(&log, "swiglu"));
    ck_assert(!het_megatron_is_set(&log, "num_layers"));
    ck_assert(!het_megatron_number(&log, "num_layers", 100, &number, &err));
    ck_assert_uint_eq(number, 24);
    ck_assert(het_megatron_number(&log, "num_layers", 23, &number, &err) < 0);
    ck_assert_str_eq(err.message, "run.log: argument num_layers: must be a whole number "
                                  "from 1 to 23, is \"24\"");
    ck_assert(het_megatron_number(&log, "seq_length", 23, &number, &err) < 0);
    ck_assert_str_eq(err.message, "run.log: argument seq_length: is missing");
    het_arena_free(arena);
}
END_TEST

START_TEST(times_of_all_ranks_are_the_median_without_the_first)
{
    static const char *const reports =
        "(min, max) time across ranks (ms):\n"
        "    model-and-optimizer-setup ......................: (1.00, 2.00)\n"
        " iteration  1/ 4 | elapsed time per iteration (ms): 900.0 |\n"
        "(min, max) time across ranks (ms):\n"
        "    forward-backward ...............................: (800.00, 900.00)\n"
        "    forward-compute ................................: (500.00, 600.00)\n"
        "    backward-compute ...............................: (300.00, 300.00)\n"
        "    optimizer-inner-step ...........................: (77.00, 77.00)\n"
        "    optimizer ......................................: (99.00, 99.00)\n"
        "[default1]:(min, max) time across ranks (ms):\n"
        "[default1]:    forward-compute ....................: (10.00, 12.00)\n"
        "[default1]:    backward-compute ...................: (20.00, 24.00)\n"
        "[default1]:    optimizer ..........................: (7.00, 9.00)\n"
        "    forward-compute ................................: (14.00, 16.00)\r\n"
        "    backward-compute ...............................: (20.00, 20.00)\n"
        "    forward-compute ................................: (90.00, 90.00)\n"
        "    backward-compute ...............................: (26.00, 26.00)\n";
    struct het_arena *arena = het_arena_new();
    auto_free char *text = xasprintf("%s%s", ARGUMENTS, reports);
    const struct het_megatron_log log = read_log(arena, text);
    ck_assert(!het_megatron_has_ranks(&log));
    /* 11, 15, 90; 22, 20, 26; 8. */
    ck_assert_double_eq(ms_of(&log, HET_MEGATRON_FORWARD, HET_MEGATRON_ALL_RANKS), 15);
    ck_assert_double_eq(ms_of(&log, HET_MEGATRON_BACKWARD, HET_MEGATRON_ALL_RANKS), 22);
    ck_assert_double_eq(ms_of(&log, HET_MEGATRON_OPTIMIZER, HET_MEGATRON_ALL_RANKS), 8);
    het_arena_free(arena);
}
END_TEST

START_TEST(times_rank_by_rank_and_of_the_old_form)
{
    struct het_arena *arena = het_arena_new();
    const struct het_megatron_log ranks = read_log(arena,
                                                   ARGUMENTS "times across ranks (ms):\n"
                                                             "  forward-compute:\n"
                                                             "     rank  0: 10.50\n"
                                                             "     rank  1: 30.25\n"
                                                             "  forward-recv:\n"
                                                             "     rank  1: 99.00\n"
                                                             "  backward-compute:\n"
                                                             "     rank  0: 20.00\n"
                                                             "     rank  1: 40.00\n");
    ck_assert(het_megatron_has_ranks(&ranks));
    ck_assert_double_eq(ms_of(&ranks, HET_MEGATRON_FORWARD, 1), 30.25);
    ck_assert_double_eq(ms_of(&ranks, HET_MEGATRON_BACKWARD, 0), 20);
    double ms;
    ck_assert(!het_megatron_ms(&ranks, HET_MEGATRON_FORWARD, 2, &ms));
    ck_assert(!het_megatron_ms(&ranks, HET_MEGATRON_OPTIMIZER, 0, &ms));
    const struct het_megatron_log old =
        read_log(arena, ARGUMENTS "time (ms) | forward-compute: 31.57 | "
                                  "backward-compute: 41.76 | optimizer-inner-step: 9 | "
                                  "optimizer: 57.50 | batch-generator: 5.24\n");
    ck_assert_double_eq(ms_of(&old, HET_MEGATRON_FORWARD, HET_MEGATRON_ALL_RANKS), 31.57);
    ck_assert_double_eq(ms_of(&old, HET_MEGATRON_OPTIMIZER, HET_MEGATRON_ALL_RANKS),
                        57.5);
    het_arena_free(arena);
}
END_TEST

START_TEST(a_log_without_arguments_or_times_is_refused)
{
    struct het_arena *arena = het_arena_new();
    struct het_megatron_log log;
    struct het_error err;
    ck_assert(het_megatron_log_read(arena, "a.log", "", &log, &err) < 0);
    ck_assert(!strncmp(err.message, "a.log: has no list of arguments", 31));
    ck_assert(het_megatron_log_read(arena, "a.log", ARGUMENTS, &log, &err) < 0);
    ck_assert(!strncmp(err.message, "a.log: has no times of forward-compute", 38));
    het_arena_free(arena);
}
END_TEST

Suite *test_megatron_log_suite(void)
{
    Suite *suite = suite_create("megatron_log");
    TCase *all = tcase_create("all");
    tcase_add_test(all, arguments_are_names_and_values);
    tcase_add_test(all, times_of_all_ranks_are_the_median_without_the_first);
    tcase_add_test(all, times_rank_by_rank_and_of_the_old_form);
    tcase_add_test(all, a_log_without_arguments_or_times_is_refused);
    suite_add_tcase(suite, all);
    return suite;
}
