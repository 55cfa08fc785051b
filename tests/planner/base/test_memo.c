#include "planner/base/memo.h"

#include <check.h>

START_TEST(value_of_a_key_is_zero_until_it_is_set)
{
    struct het_arena *arena = het_arena_new();
    struct het_memo memo = het_memo_make(arena, 0);
    ck_assert_uint_eq(het_memo_at(&memo, "one", 3)->number, 0);
    het_memo_at(&memo, "one", 3)->number = 1;
    /* Neither a part of it nor what it is a part of. */
    ck_assert_uint_eq(het_memo_at(&memo, "on", 2)->number, 0);
    ck_assert_uint_eq(het_memo_at(&memo, "one\0", 4)->number, 0);
    ck_assert_uint_eq(het_memo_at(&memo, "", 0)->number, 0);
    ck_assert_uint_eq(het_memo_at(&memo, "one", 3)->number, 1);
    het_arena_free(arena);
}
END_TEST

START_TEST(key_is_copied)
{
    struct het_arena *arena = het_arena_new();
    struct het_memo memo = het_memo_make(arena, 0);
    char key[] = "a";
    het_memo_at(&memo, key, 1)->number = 7;
    key[0] = 'b';
    ck_assert_uint_eq(het_memo_at(&memo, key, 1)->number, 0);
    ck_assert_uint_eq(het_memo_at(&memo, "a", 1)->number, 7);
    het_arena_free(arena);
}
END_TEST

START_TEST(values_stay_when_the_table_grows)
{
    struct het_arena *arena = het_arena_new();
    struct het_memo memo = het_memo_make(arena, 3);
    for (uint32_t i = 0; i < 10000; i++)
        het_memo_at(&memo, &i, sizeof i)->number = i + 1;
    ck_assert_uint_eq(memo.count, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        ck_assert_uint_eq(het_memo_at(&memo, &i, sizeof i)->number, i + 1);
    het_arena_free(arena);
}
END_TEST

START_TEST(key_is_put_together_by_words_and_bits_of_reals)
{
    struct het_arena *arena = het_arena_new();
    struct het_memo memo = het_memo_make(arena, 0);
    struct het_memo_key key = { 0 };
    static const struct {
        uint64_t word;
        double real;
        size_t number;
    } keys[] = { { 1, 0.5, 1 }, { 1, 0.0, 2 }, { 1, -0.0, 3 }, { 2, 0.5, 4 } };
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            het_memo_key_add(&key, keys[i].word);
            het_memo_key_add_real(&key, keys[i].real);
            union het_memo_value *value = het_memo_at_key(&memo, &key);
            ck_assert_uint_eq(value->number, again ? keys[i].number : 0);
            value->number = keys[i].number;
            ck_assert_uint_eq(key.count, 0);
        }
    het_free_pointer(&key.words);
    het_arena_free(arena);
}
END_TEST

Suite *test_memo_suite(void)
{
    Suite *suite = suite_create("memo");
    TCase *cases = tcase_create("memo");
    tcase_add_test(cases, value_of_a_key_is_zero_until_it_is_set);
    tcase_add_test(cases, key_is_copied);
    tcase_add_test(cases, values_stay_when_the_table_grows);
    tcase_add_test(cases, key_is_put_together_by_words_and_bits_of_reals);
    suite_add_tcase(suite, cases);
    return suite;
}
