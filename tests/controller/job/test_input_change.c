#include "controller/job/input_change.h"

#include <check.h>
#include <stddef.h>

#define BIT(change) (1u << (change))

struct node {
    const char *name, *unusable;
    int64_t allocatable, free;
};

static struct input_state input_of(const struct node *nodes, uint64_t spec,
                                   uint64_t profile)
{
    struct input_state input = { .spec = spec, .profile = profile };
    for (; nodes->name; nodes++)
        input_change_add_node(&input, nodes->name, nodes->unusable, nodes->allocatable,
                              nodes->free);
    return input;
}

static const struct {
    struct node before[4], after[4];
    uint64_t spec, profile; /* after; 1 before */
    unsigned set;
} cases[] = {
    { { { "a", NULL, 4, 4 } }, { { "a", NULL, 4, 4 } }, 1, 1, 0 },
    { { { "a", NULL, 4, 4 } }, { { "a", NULL, 4, 4 } }, 2, 1, BIT(INPUT_CHANGE_SPEC) },
    { { { "a", NULL, 4, 4 } }, { { "a", NULL, 4, 4 } }, 1, 2, BIT(INPUT_CHANGE_PROFILE) },
    { { { "a", NULL, 4, 4 } },
      { { "a", NULL, 4, 4 }, { "b", NULL, 4, 0 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_ADDED) },
    { { { "a", NULL, 4, 4 }, { "b", NULL, 4, 4 } },
      { { "b", NULL, 4, 4 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_REMOVED) },
    { { { "a", NULL, 4, 4 }, { "b", NULL, 4, 4 } },
      { { "a", "Unschedulable", 4, 0 }, { "b", NULL, 4, 4 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_CORDONED) },
    { { { "a", NULL, 4, 4 } },
      { { "a", "Tainted (x)", 4, 0 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_TAINTED) },
    { { { "a", NULL, 4, 4 } },
      { { "a", "NotReady", 4, 0 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_NOT_READY) },
    { { { "a", "NotReady", 4, 0 } },
      { { "a", NULL, 4, 4 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_ADDED) },
    { { { "a", NULL, 4, 4 } },
      { { "b", NULL, 4, 4 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_ADDED) | BIT(INPUT_CHANGE_NODE_REMOVED) },
    { { { "a", NULL, 4, 1 } },
      { { "a", NULL, 4, 3 } },
      1,
      1,
      BIT(INPUT_CHANGE_CAPACITY_FREED) },
    { { { "a", NULL, 4, 4 } },
      { { "a", NULL, 3, 3 } },
      1,
      1,
      BIT(INPUT_CHANGE_GPU_UNHEALTHY) },
    { { { "a", NULL, 3, 3 } },
      { { "a", NULL, 4, 4 } },
      1,
      1,
      BIT(INPUT_CHANGE_CAPACITY_FREED) },
    /* Others took GPUs: nothing that could make a better plan possible. */
    { { { "a", NULL, 4, 4 } }, { { "a", NULL, 4, 2 } }, 1, 1, 0 },
    { { { "a", NULL, 4, 2 } },
      { { "a", NULL, 4, 4 }, { "b", NULL, 8, 8 } },
      1,
      1,
      BIT(INPUT_CHANGE_NODE_ADDED) | BIT(INPUT_CHANGE_CAPACITY_FREED) },
};

START_TEST(changes_are_told_by_their_causes)
{
    struct input_state before = input_of(cases[_i].before, 1, 1);
    struct input_state after =
        input_of(cases[_i].after, cases[_i].spec, cases[_i].profile);
    ck_assert_uint_eq(input_change_between(&before, &after), cases[_i].set);
    ck_assert_uint_eq(input_change_between(&after, &after), 0);
}
END_TEST

START_TEST(order_of_nodes_does_not_matter)
{
    const struct node one[] = { { "a", NULL, 4, 4 }, { "b", NULL, 8, 2 }, { 0 } };
    const struct node two[] = { { "b", NULL, 8, 2 }, { "a", NULL, 4, 4 }, { 0 } };
    struct input_state left = input_of(one, 1, 1), right = input_of(two, 1, 1);
    ck_assert_mem_eq(&left, &right, sizeof left);
}
END_TEST

START_TEST(text_is_read_as_it_was_written_and_nothing_else_is)
{
    struct input_state input = { .spec = UINT64_MAX,
                                 .profile = UINT64_MAX,
                                 .nodes = UINT64_MAX,
                                 .node_count = 100000,
                                 .allocatable = 1600000,
                                 .taken = 1600000,
                                 .cordoned = 100000,
                                 .tainted = 100000,
                                 .not_ready = 7 };
    struct input_state read = { 0 };
    char text[INPUT_CHANGE_TEXT_SIZE];
    input_change_format(&input, text);
    ck_assert(input_change_read(text, &read));
    ck_assert_mem_eq(&input, &read, sizeof input);
    static const char *const bad[] = { "", "spec=1", "spec=x profile=1",
                                       "profile=1 spec=1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert(!input_change_read(bad[i], &read));
    ck_assert_mem_eq(&input, &read, sizeof input);
}
END_TEST

START_TEST(names_are_those_of_the_schema)
{
    for (unsigned i = 0; i < INPUT_CHANGE_COUNT; i++)
        ck_assert_uint_eq(input_change_parse(input_change_name((enum input_change)i)),
                          1u << i);
    ck_assert_uint_eq(input_change_parse("NodeGone"), 0);
}
END_TEST

Suite *test_input_change_suite(void)
{
    Suite *suite = suite_create("input_change");
    TCase *tests = tcase_create("change");
    tcase_add_loop_test(tests, changes_are_told_by_their_causes, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tests, order_of_nodes_does_not_matter);
    tcase_add_test(tests, text_is_read_as_it_was_written_and_nothing_else_is);
    tcase_add_test(tests, names_are_those_of_the_schema);
    suite_add_tcase(suite, tests);
    return suite;
}
