#include "controller/planner_child.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A script stands in for hetplan. */
static char script[] = "/tmp/heterotrain-planner-XXXXXX";
static struct planner *planner;
static int answers;
static enum planner_outcome outcome;
static char text[8192], answered_key[64];

static void on_answer(void *context, const char *key, uint64_t digest,
                      const struct planner_reply *reply)
{
    ck_assert_ptr_eq(context, &answers);
    ck_assert_uint_eq(digest, 42);
    answers++;
    outcome = reply->outcome;
    snprintf(text, sizeof text, "%s%s", reply->output, reply->message);
    snprintf(answered_key, sizeof answered_key, "%s", key);
}

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    strcpy(script + strlen(script) - 6, "XXXXXX");
    int fd = mkstemp(script);
    ck_assert_int_ge(fd, 0);
    close(fd);
    answers = 0;
    text[0] = '\0';
    planner = planner_new(script, on_answer, &answers);
}

static void teardown(void)
{
    planner_free(planner);
    unlink(script);
}

static void write_script(const char *body)
{
    FILE *file = fopen(script, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/bash\n%s\n", body);
    fclose(file);
    ck_assert_int_eq(chmod(script, 0700), 0);
}

static void start(const char *key, json_t *question)
{
    struct het_error err;
    ck_assert_int_eq(planner_start(planner, key, 42, question, 1000, 0, &err), 0);
    json_decref(question);
}

/* Polls until all have answered, at most 20 s of real time; `now_ms` stands still. */
static void wait_for(int count, int64_t now_ms)
{
    for (int i = 0; i < 2000 && answers < count; i++) {
        struct pollfd fds[3 * PLANNER_MAX_CHILDREN];
        size_t polled = planner_poll_list(planner, fds, 3 * PLANNER_MAX_CHILDREN);
        poll(fds, polled, 10);
        planner_step(planner, now_ms);
    }
    ck_assert_int_eq(answers, count);
    ck_assert_uint_eq(planner_running(planner), 0);
}

static void ask(const char *body)
{
    write_script(body);
    start("ns/job", json_pack("{s:i}", "a", 1));
    wait_for(1, 5);
}

START_TEST(question_goes_in_and_the_plan_comes_out)
{
    ask("[ \"$1 $2\" = 'plan -' ] || exit 9; cat; echo");
    ck_assert_int_eq(outcome, PLANNER_PLAN);
    ck_assert_str_eq(text, "{\"a\":1}");
    ck_assert_str_eq(answered_key, "ns/job");
}
END_TEST

START_TEST(exit_codes_say_what_the_answer_is)
{
    static const struct {
        const char *body;
        enum planner_outcome outcome;
        const char *text;
    } cases[] = {
        { "echo '{\"error\":{\"code\":\"NoPlan\",\"message\":\"needs 9 GPUs\"}}'; exit 1",
          PLANNER_NO_PLAN, "needs 9 GPUs" },
        { "echo '{\"error\":{\"message\":\"job.x: y\"}}'; exit 2", PLANNER_REFUSED,
          "job.x: y" },
        { "echo oops >&2; exit 2", PLANNER_REFUSED, "oops " },
        { "echo oops >&2; exit 70", PLANNER_BROKE, "the planner exited with 70: oops " },
        { "kill -SEGV $$", PLANNER_BROKE,
          "the planner was ended by signal 11 (Segmentation fault)" },
        { "exit 0", PLANNER_BROKE, "the planner printed nothing" },
        { "head -c 5000000 /dev/zero", PLANNER_BROKE,
          "the planner's answer passes 4194304 bytes" },
    };
    ask(cases[_i].body);
    ck_assert_int_eq(outcome, cases[_i].outcome);
    ck_assert_str_eq(text, cases[_i].text);
}
END_TEST

START_TEST(missing_program_is_a_broken_planner)
{
    unlink(script);
    start("ns/job", json_object());
    wait_for(1, 5);
    ck_assert_int_eq(outcome, PLANNER_BROKE);
}
END_TEST

START_TEST(hanging_planner_is_killed_when_its_time_is_over)
{
    write_script("sleep 100 >/dev/null 2>&1 <&1; sleep 100");
    start("ns/job", json_object());
    ck_assert_int_eq(planner_next_ms(planner), 1000 + PLANNER_KILL_MS);
    planner_step(planner, 2999);
    ck_assert_int_eq(answers, 0);
    wait_for(1, 3000);
    ck_assert_int_eq(outcome, PLANNER_BROKE);
    ck_assert_ptr_nonnull(strstr(text, "within 3000 ms"));
}
END_TEST

START_TEST(busy_planner_runs_out_of_cpu_time)
{
    ask("while :; do :; done");
    ck_assert_int_eq(outcome, PLANNER_BROKE);
    ck_assert_ptr_nonnull(strstr(text, "CPU time"));
}
END_TEST

START_TEST(large_question_to_a_deaf_child_ends_well)
{
    write_script("exec 0<&-; echo done");
    char *big = xcalloc(1, 3000001);
    memset(big, 'x', 3000000);
    start("ns/job", json_pack("{s:s}", "big", big));
    free(big);
    wait_for(1, 5);
    ck_assert_int_eq(outcome, PLANNER_PLAN);
}
END_TEST

START_TEST(child_has_no_environment_and_no_other_files)
{
    int leaked = open("/dev/null", 0);
    setenv("SECRET", "x", 1);
    ask("echo \"$SECRET\"; ls -m /proc/self/fd; ulimit -n; ulimit -c");
    close(leaked);
    ck_assert_str_eq(text, "\n0, 1, 2, 3\n16\n0"); /* 3 reads the folder */
}
END_TEST

START_TEST(several_children_answer_for_their_own_job)
{
    write_script("cat");
    char key[16];
    for (int i = 0; i < PLANNER_MAX_CHILDREN; i++) {
        ck_assert(planner_has_room(planner));
        snprintf(key, sizeof key, "ns/%d", i);
        start(key, json_object());
    }
    ck_assert(!planner_has_room(planner));
    planner_cancel(planner, "ns/0");
    wait_for(PLANNER_MAX_CHILDREN - 1, 5);
    ck_assert_str_ne(answered_key, "ns/0");
}
END_TEST

static void plan_inside(void *context, const json_t *question, int64_t timeout_ms,
                        struct planner_reply *ret)
{
    ck_assert_ptr_eq(context, &answers);
    ck_assert_int_eq(timeout_ms, 1000);
    ret->outcome = PLANNER_PLAN;
    ret->output = json_string_value(json_object_get(question, "say"));
    ret->took_ms = 70;
}

START_TEST(answer_from_inside_arrives_in_its_time_unless_it_is_cancelled)
{
    planner_answer_inside(planner, plan_inside, &answers);
    json_auto_t *question = json_pack("{s:s}", "say", "inside");
    for (int i = 0; i < PLANNER_MAX_CHILDREN; i++) {
        ck_assert(planner_has_room(planner));
        start(i ? "ns/other" : "ns/job", json_incref(question));
    }
    ck_assert(!planner_has_room(planner));
    planner_cancel(planner, "ns/other");
    ck_assert_uint_eq(planner_running(planner), 1);
    ck_assert_int_eq(planner_next_ms(planner), 70);
    planner_step(planner, 69);
    ck_assert_int_eq(answers, 0);
    planner_step(planner, 70);
    ck_assert_int_eq(answers, 1);
    ck_assert_int_eq(outcome, PLANNER_PLAN);
    ck_assert_str_eq(text, "inside");
    ck_assert_str_eq(answered_key, "ns/job");
    ck_assert_int_eq(planner_next_ms(planner), INT64_MAX);
}
END_TEST

Suite *test_planner_child_suite(void)
{
    Suite *suite = suite_create("planner_child");
    TCase *cases = tcase_create("planner_child");
    tcase_set_timeout(cases, 30);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, question_goes_in_and_the_plan_comes_out);
    tcase_add_loop_test(cases, exit_codes_say_what_the_answer_is, 0, 7);
    tcase_add_test(cases, missing_program_is_a_broken_planner);
    tcase_add_test(cases, hanging_planner_is_killed_when_its_time_is_over);
    tcase_add_test(cases, busy_planner_runs_out_of_cpu_time);
    tcase_add_test(cases, large_question_to_a_deaf_child_ends_well);
    tcase_add_test(cases, child_has_no_environment_and_no_other_files);
    tcase_add_test(cases, several_children_answer_for_their_own_job);
    tcase_add_test(cases, answer_from_inside_arrives_in_its_time_unless_it_is_cancelled);
    suite_add_tcase(suite, cases);
    return suite;
}
