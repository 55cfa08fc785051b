#include "planner/cli/options.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The options of `hetplan plan`; `line` is cut at blanks. */
static int parse(const char *line, struct het_options *ret, struct het_error *err)
{
    static char copy[256]; /* the operand lies in it */
    char *arguments[16], *rest = copy, *word;
    int count = 0;
    *ret = (struct het_options){ 0 };
    strcpy(copy, line);
    while ((word = strsep(&rest, " ")))
        arguments[count++] = word;
    return het_options_parse(HET_COMMAND_PLAN, count, arguments, ret, err);
}

static json_t *job_of(const struct het_options *options)
{
    return json_object_get(options->values, "job");
}

START_TEST(both_ways_to_write_a_value_are_the_same)
{
    struct het_options apart, together;
    ck_assert_int_eq(parse("--effort 12 --algorithm metis", &apart, NULL), 0);
    ck_assert_int_eq(parse("--effort=12 --algorithm=metis", &together, NULL), 0);
    ck_assert(json_equal(apart.values, together.values));
    ck_assert_int_eq(json_integer_value(json_object_get(job_of(&apart), "effort")), 12);
    json_decref(apart.values);
    json_decref(together.values);
}
END_TEST

START_TEST(lists_are_of_numbers_and_of_types_with_their_limits)
{
    struct het_options options;
    ck_assert_int_eq(
        parse("--microbatch-sizes 1,2,4 --gpu-types A100,V100:16", &options, NULL), 0);
    json_auto_t *expected = json_pack("{s:[i, i, i], s:[{s:s}, {s:s, s:i}]}",
                                      "microBatchSizes", 1, 2, 4, "gpuTypes", "name",
                                      "A100", "name", "V100", "maxGPUs", 16);
    ck_assert(json_equal(job_of(&options), expected));
    json_decref(options.values);
}
END_TEST

START_TEST(what_is_wrong_is_named_with_its_range)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        { "--effort 0", "--effort: must be a whole number from 1 to" },
        { "--effort 1.5", "is \"1.5\"" },
        { "--effort 1x", "is \"1x\"" },
        { "--effort", "--effort: needs a value (N)" },
        { "--effort 1 --effort 2", "--effort: is given twice" },
        { "--memory-headroom-percent 91", "must be a number from 0 to 90, is \"91\"" },
        { "--precision fp64", "--precision: must be one of: fp32 bf16 fp16" },
        { "--gpu-types :3", "--gpu-types: a name is empty" },
        { "--shared-embedding=yes", "--shared-embedding: takes no value" },
        { "--efort 1", "unknown option --efort" },
        { "-e 1", "unknown option -e" },
        { "one two", "unexpected argument \"two\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_options options;
        struct het_error err = { 0 };
        ck_assert_int_eq(parse(cases[i].line, &options, &err), -1);
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s: %s", cases[i].line,
                      err.message);
    }
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    struct het_options options;
    ck_assert_int_eq(parse("--effort 3 -- --effort", &options, NULL), 0);
    ck_assert_str_eq(options.operand, "--effort");
    ck_assert_int_eq(json_integer_value(json_object_get(job_of(&options), "effort")), 3);
    json_decref(options.values);
    ck_assert_int_eq(parse("-", &options, NULL), 0); /* standard input */
    ck_assert_str_eq(options.operand, "-");
    json_decref(options.values);
}
END_TEST

START_TEST(required_options_that_are_missing_are_named)
{
    struct het_options options;
    struct het_error err = { 0 };
    ck_assert_int_eq(parse("--profile a --cluster b", &options, NULL), 0);
    ck_assert_int_eq(het_options_need(HET_COMMAND_PLAN, &options, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "--global-batch-size N is missing"));
    ck_assert_int_eq(het_options_need(HET_COMMAND_COST, &options, NULL), 0);
    ck_assert_str_eq(het_options_text(&options, "profile"), "a");
    json_decref(options.values);
}
END_TEST

START_TEST(text_is_wrapped_behind_its_indent)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    char words[200];
    memset(words, 'x', sizeof words);
    words[39] = words[79] = ' ';
    words[119] = '\0';
    het_options_wrap(out, 4, words); /* three words of 39: two would be 4 + 79 wide */
    fclose(out);
    ck_assert_uint_eq(size, 3 * (4 + 39 + 1));
    ck_assert(!strncmp(text, "    xxx", 7));
    free(text);
}
END_TEST

Suite *test_options_suite(void)
{
    Suite *suite = suite_create("options");
    TCase *cases = tcase_create("options");
    tcase_add_test(cases, both_ways_to_write_a_value_are_the_same);
    tcase_add_test(cases, lists_are_of_numbers_and_of_types_with_their_limits);
    tcase_add_test(cases, what_is_wrong_is_named_with_its_range);
    tcase_add_test(cases, two_dashes_end_the_options);
    tcase_add_test(cases, required_options_that_are_missing_are_named);
    tcase_add_test(cases, text_is_wrapped_behind_its_indent);
    suite_add_tcase(suite, cases);
    return suite;
}
