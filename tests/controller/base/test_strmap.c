#include "controller/base/strmap.h"

#include "planner/modules.h"

#include <check.h>
#include <stdio.h>

START_TEST(keys_are_found_replaced_and_removed_at_any_load)
{
    enum { COUNT = 3000 };
    static int values[COUNT];
    struct strmap map = { 0 };
    char key[32];
    ck_assert_ptr_null(strmap_find(&map, "nothing"));
    ck_assert_ptr_null(strmap_remove(&map, "nothing"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        strmap_set(&map, key, &values[i]);
    }
    for (int i = 0; i < COUNT; i += 3) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_eq(strmap_remove(&map, key), &values[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_eq(strmap_find(&map, key), i % 3 ? &values[i] : NULL);
    }
    ck_assert_uint_eq(map.count, COUNT - COUNT / 3);
    strmap_set(&map, "key-1", &values[7]);
    ck_assert_ptr_eq(strmap_find(&map, "key-1"), &values[7]);
    ck_assert_uint_eq(map.count, COUNT - COUNT / 3);
    strmap_fini(&map);
}
END_TEST

START_TEST(map_that_was_large_is_small_again_when_little_is_left)
{
    static int value;
    struct strmap map = { 0 };
    char key[32];
    for (int i = 0; i < 10000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        strmap_set(&map, key, &value);
    }
    for (int i = 3; i < 10000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_eq(strmap_remove(&map, key), &value);
        ck_assert_uint_le(map.capacity, map.count > 1 ? map.count * 16 : 16);
    }
    ck_assert_ptr_eq(strmap_find(&map, "key-0"), &value);
    ck_assert_ptr_eq(strmap_find(&map, "key-2"), &value);
    ck_assert_ptr_null(strmap_find(&map, "key-3"));
    ck_assert_uint_eq(map.capacity, 16);
    strmap_fini(&map);
}
END_TEST

Suite *test_strmap_suite(void)
{
    Suite *suite = suite_create("strmap");
    TCase *cases = tcase_create("strmap");
    tcase_add_test(cases, keys_are_found_replaced_and_removed_at_any_load);
    tcase_add_test(cases, map_that_was_large_is_small_again_when_little_is_left);
    suite_add_tcase(suite, cases);
    return suite;
}
