/* Random lives of a cluster under the real controller: a few of those that `make sim`
 * lives. */
#include "tests/controller/random_run.h"

#include "tests/controller/recorded.h"
#include "tests/scale.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

START_TEST(same_seed_same_life)
{
    uint64_t digests[3];
    static const uint64_t seeds[] = { 7, 7, 8 };
    for (size_t i = 0; i < 3; i++) {
        struct random_run_result result =
            random_run(&(struct random_run_config){ .seed = seeds[i] });
        digests[i] = result.digest;
        free(result.broken);
    }
    ck_assert_uint_eq(digests[0], digests[1]);
    ck_assert_uint_ne(digests[0], digests[2]);
}
END_TEST

START_TEST(life_breaks_no_invariant)
{
    struct random_run_config config = { .seed = (uint64_t)_i,
                                        .on_decision = recorded_check };
    struct random_run_result result = random_run(&config);
    ck_assert_msg(!result.broken, "seed %d: %s (make sim SEED=%d)", _i, result.broken,
                  _i);
    free(result.broken);
}
END_TEST

Suite *test_random_run_suite(void)
{
    Suite *suite = suite_create("random_run");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, same_seed_same_life);
    tcase_add_loop_test(cases, life_breaks_no_invariant, 1, 1 + SCALED(20));
    suite_add_tcase(suite, cases);
    return suite;
}
