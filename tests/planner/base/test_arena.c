#include "planner/base/arena.h"

#include <check.h>
#include <stdint.h>
#include <string.h>

START_TEST(arena_memory_is_zeroed_aligned_and_kept)
{
    struct het_arena *arena = het_arena_new();
    char *first = het_arena_strdup(arena, "first");
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        unsigned char *memory = het_arena_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)memory % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            ck_assert_uint_eq(memory[i], 0);
        memset(memory, 0xff, size);
    }
    ck_assert_str_eq(first, "first");
    ck_assert_str_eq(het_arena_printf(arena, "%s-%d", "node", 7), "node-7");
    het_arena_free(arena);
}
END_TEST

START_TEST(array_reserve_keeps_its_elements)
{
    auto_free int *numbers = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        ARRAY_RESERVE(numbers, &capacity, (size_t)i + 1);
        numbers[i] = i;
    }
    ck_assert_uint_ge(capacity, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(numbers[i], i);
}
END_TEST

Suite *test_arena_suite(void)
{
    Suite *suite = suite_create("arena");
    TCase *cases = tcase_create("arena");
    tcase_add_test(cases, arena_memory_is_zeroed_aligned_and_kept);
    tcase_add_test(cases, array_reserve_keeps_its_elements);
    suite_add_tcase(suite, cases);
    return suite;
}
