#include "controller/operator/planner_child.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A script stands in for hetplan; not confined, as it opens libraries and starts
 * programs.
 */
static char script[] = "/tmp/heterotrain-planner-XXXXXX";
static struct planner_child *planner;
static int answers;
static bool was_cut;
static enum planner_child_outcome outcome;
static char text[8192], answered_key[64];

static void on_answer(void *context, const char *key, uint64_t digest,
                      const struct planner_child_reply *reply)
{
    ck_assert_ptr_eq(context, &answers);
    ck_assert_uint_eq(digest, 42);
    answers++;
    outcome = reply->outcome;
    was_cut = reply->is_cut;
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
    planner = planner_child_new(script, on_answer, &answers);
    planner_child_set_confinement(planner, PLANNER_UNCONFINED);
}

static void teardown(void)
{
    planner_child_free(planner);
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
    ck_assert_int_eq(planner_child_start(planner, key, 42, question, 1000, 0, &err), 0);
    json_decref(question);
}

/* Polls until all have answered, at most 20 s of real time; `now_ms` stands still. */
static void wait_for(int count, int64_t now_ms)
{
    for (int i = 0; i < 2000 && answers < count; i++) {
        struct pollfd fds[3 * PLANNER_CHILD_MAX_CHILDREN];
        size_t polled =
            planner_child_poll_list(planner, fds, 3 * PLANNER_CHILD_MAX_CHILDREN);
        poll(fds, polled, 10);
        planner_child_step(planner, now_ms);
    }
    ck_assert_int_eq(answers, count);
    ck_assert_uint_eq(planner_child_running(planner), 0);
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
    ck_assert_int_eq(outcome, PLANNER_CHILD_PLAN);
    ck_assert_str_eq(text, "{\"a\":1}");
    ck_assert_str_eq(answered_key, "ns/job");
}
END_TEST

START_TEST(exit_codes_say_what_the_answer_is)
{
    static const struct {
        const char *body;
        enum planner_child_outcome outcome;
        const char *text;
    } cases[] = {
        { "echo '{\"error\":{\"code\":\"NoPlan\",\"message\":\"needs 9 GPUs\"}}'; exit 1",
          PLANNER_CHILD_NO_PLAN, "needs 9 GPUs" },
        { "echo '{\"error\":{\"message\":\"job.x: y\"}}'; exit 2", PLANNER_CHILD_REFUSED,
          "job.x: y" },
        { "echo oops >&2; exit 2", PLANNER_CHILD_REFUSED, "oops " },
        { "echo oops >&2; exit 70", PLANNER_CHILD_BROKE,
          "the planner exited with 70: oops " },
        { "kill -SEGV $$", PLANNER_CHILD_BROKE,
          "the planner was ended by signal 11 (Segmentation fault)" },
        { "echo why >&2; kill -SEGV $$", PLANNER_CHILD_BROKE,
          "the planner was ended by signal 11 (Segmentation fault): why " },
        { "exit 0", PLANNER_CHILD_BROKE, "the planner printed nothing" },
        { "head -c 5000000 /dev/zero", PLANNER_CHILD_BROKE,
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
    ck_assert_int_eq(outcome, PLANNER_CHILD_BROKE);
}
END_TEST

START_TEST(hanging_planner_is_killed_when_its_wall_time_is_over)
{
    write_script("sleep 100 >/dev/null 2>&1 <&1; sleep 100");
    start("ns/job", json_object());
    ck_assert_int_eq(planner_child_next_ms(planner), planner_child_wall_ms(1000));
    planner_child_step(planner, planner_child_wall_ms(1000) - 1);
    ck_assert_int_eq(answers, 0);
    wait_for(1, planner_child_wall_ms(1000));
    ck_assert_int_eq(outcome, PLANNER_CHILD_BROKE);
    ck_assert_ptr_nonnull(strstr(text, "ended after 60 s of wall time"));
    ck_assert_ptr_nonnull(strstr(text, "the controller has too little CPU"));
}
END_TEST

START_TEST(wall_time_leaves_room_for_a_throttled_planner)
{
    ck_assert_int_eq(planner_child_wall_ms(1000), PLANNER_CHILD_WALL_MS);
    ck_assert_int_eq(planner_child_wall_ms(30000), 300000);
    /* A second of CPU time takes a minute here, and the answer counts. */
    write_script("cat >/dev/null; sleep 0.2; echo plan");
    start("ns/job", json_object());
    wait_for(1, 59000);
    ck_assert_int_eq(outcome, PLANNER_CHILD_PLAN);
    ck_assert_str_eq(text, "plan");
}
END_TEST

START_TEST(busy_planner_runs_out_of_cpu_time)
{
    ask("while :; do :; done");
    ck_assert_int_eq(outcome, PLANNER_CHILD_BROKE);
    ck_assert_str_eq(text,
                     "the planner used up its 1 s of CPU time (planner.timeoutSeconds) "
                     "before it had found a plan");
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
    ck_assert_int_eq(outcome, PLANNER_CHILD_PLAN);
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
    for (int i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        ck_assert(planner_child_has_room(planner));
        snprintf(key, sizeof key, "ns/%d", i);
        start(key, json_object());
    }
    ck_assert(!planner_child_has_room(planner));
    planner_child_cancel(planner, "ns/0");
    wait_for(PLANNER_CHILD_MAX_CHILDREN - 1, 5);
    ck_assert_str_ne(answered_key, "ns/0");
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__)
/* The program that tries, with a folder that has a secret; its report is in `text`. */
static void ask_hostile(const char *folder, enum planner_confinement confinement)
{
    const char *program = getenv("HOSTILE_PLANNER");
    char secret[128];
    snprintf(secret, sizeof secret, "%s/secret", folder);
    int fd = open(secret, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    planner_child_free(planner);
    planner = planner_child_new(program ? program : "build/hostile-planner", on_answer,
                                &answers);
    planner_child_set_confinement(planner, confinement);
    start("ns/job", json_pack("{s:s}", "folder", folder));
    wait_for(1, 5);
    ck_assert_msg(outcome == PLANNER_CHILD_PLAN, "%s", text);
}

START_TEST(planner_that_was_taken_over_finds_nothing_to_take)
{
    static const char refused[] = "Operation not permitted";
    static const char *const attempts[] = {
        "read a secret",   "write a file",        "delete a file",
        "open a socket",   "open a local socket", "read another's environment",
        "start a process", "trace a process",     "signal a process",
        "make code",       "raise a limit",       "become root",
    };
    char folder[] = "/tmp/heterotrain-hostile-XXXXXX", path[128], line[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ask_hostile(folder, PLANNER_CONFINED);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        snprintf(line, sizeof line, "%s: %s", attempts[i], refused);
        ck_assert_msg(strstr(text, line) != NULL, "not \"%s\" in:\n%s", line, text);
    }
    snprintf(path, sizeof path, "%s/spoil", folder);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/secret", folder);
    ck_assert_int_eq(unlink(path), 0);
    rmdir(folder);
}
END_TEST

/* Else the test above would show nothing. */
START_TEST(unconfined_planner_could_take_what_it_likes)
{
    char folder[] = "/tmp/heterotrain-hostile-XXXXXX", path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ask_hostile(folder, PLANNER_UNCONFINED);
    ck_assert_ptr_nonnull(strstr(text, "read a secret: done"));
    ck_assert_ptr_nonnull(strstr(text, "write a file: done"));
    ck_assert_ptr_nonnull(strstr(text, "open a socket: done"));
    ck_assert_ptr_nonnull(strstr(text, "start a process: done"));
    snprintf(path, sizeof path, "%s/spoil", folder);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(confined_planner_gets_no_library_and_says_so)
{
    write_script("echo never");
    planner_child_set_confinement(planner, PLANNER_CONFINED);
    start("ns/job", json_object());
    wait_for(1, 5);
    ck_assert_int_eq(outcome, PLANNER_CHILD_BROKE);
    ck_assert_msg(strstr(text, "exited with") != NULL, "%s", text);
}
END_TEST

/* In the test's own process, as the program of `hetplan plan -` does it. */
START_TEST(program_confines_itself_to_reading_writing_and_memory)
{
    struct sock_filter filter[HET_SYSTEM_CALL_FILTER_MAX];
    ck_assert(het_system_call_filter_enter(filter,
                                           het_system_call_filter_build(false, filter)));
    errno = 0;
    ck_assert_int_eq(execl("/bin/true", "true", NULL), -1);
    ck_assert_int_eq(errno, EPERM);
    free(xcalloc(1, 1 << 20));
    _exit(0);
}
END_TEST
#endif

START_TEST(search_that_is_cut_short_says_what_it_has)
{
    char ready[64];
    snprintf(ready, sizeof ready, "%s.ready", script);
    write_script("trap 'echo \"{\\\"cutShort\\\":true}\"; exit 0' TERM\n"
                 ": > \"$0.ready\"; while :; do sleep 0.01; done");
    start("ns/job", json_object());
    for (int i = 0; i < 2000 && access(ready, F_OK) < 0; i++)
        poll(NULL, 0, 10);
    unlink(ready);
    planner_child_cut(planner, "ns/other", 5);
    planner_child_step(planner, 5);
    ck_assert_int_eq(answers, 0);
    planner_child_cut(planner, "ns/job", 5);
    wait_for(1, 5);
    ck_assert_msg(outcome == PLANNER_CHILD_PLAN, "%s", text);
    ck_assert(was_cut);
}
END_TEST

START_TEST(search_without_a_plan_is_cut_short_for_good)
{
    write_script("trap '' TERM; sleep 100");
    start("ns/job", json_object());
    planner_child_cut(planner, "ns/job", 5);
    ck_assert_int_eq(planner_child_next_ms(planner), 5 + PLANNER_CHILD_LAST_MS);
    wait_for(1, 5 + PLANNER_CHILD_LAST_MS);
    ck_assert_int_eq(outcome, PLANNER_CHILD_CUT);
}
END_TEST

/* The real one, with far more effort than there is time. */
START_TEST(hetplan_answers_with_a_valid_plan_when_it_is_cut_short)
{
    const char *program = getenv("HETPLAN");
    planner_child_free(planner);
    planner = planner_child_new(program ? program : "build/hetplan", on_answer, &answers);
    json_t *question =
        json_pack("{s:o, s:o, s:{s:i, s:I, s:s}}", "cluster",
                  json_load_file("tests/data/gpt2-xl/ex3.json", 0, NULL), "profile",
                  json_load_file("tests/data/gpt2-xl/profile.json", 0, NULL), "job",
                  "globalBatchSize", 128, "effort", (json_int_t)1000000000000,
                  "algorithm", "metis");
    ck_assert_ptr_nonnull(question);
    struct het_error err;
    ck_assert_int_eq(planner_child_start(planner, "ns/job", 42, question, 60000, 0, &err),
                     0);
    json_decref(question);
    for (int i = 0; i < 20; i++) {
        struct pollfd fds[3 * PLANNER_CHILD_MAX_CHILDREN];
        poll(fds, planner_child_poll_list(planner, fds, 3 * PLANNER_CHILD_MAX_CHILDREN),
             100);
        planner_child_step(planner, 5);
    }
    planner_child_cut(planner, "ns/job", 5);
    wait_for(1, 5);
    ck_assert_msg(outcome == PLANNER_CHILD_PLAN, "%s", text);
}
END_TEST

static void plan_inside(void *context, const json_t *question, int64_t timeout_ms,
                        struct planner_child_reply *ret)
{
    ck_assert_ptr_eq(context, &answers);
    ck_assert_int_eq(timeout_ms, 1000);
    ret->outcome = PLANNER_CHILD_PLAN;
    ret->output = json_string_value(json_object_get(question, "say"));
    ret->took_ms = 70;
}

START_TEST(answer_from_inside_arrives_in_its_time_unless_it_is_cancelled)
{
    planner_child_answer_inside(planner, plan_inside, &answers);
    json_auto_t *question = json_pack("{s:s}", "say", "inside");
    for (int i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        ck_assert(planner_child_has_room(planner));
        start(i ? "ns/other" : "ns/job", json_incref(question));
    }
    ck_assert(!planner_child_has_room(planner));
    planner_child_cancel(planner, "ns/other");
    ck_assert_uint_eq(planner_child_running(planner), 1);
    ck_assert_int_eq(planner_child_next_ms(planner), 70);
    planner_child_step(planner, 69);
    ck_assert_int_eq(answers, 0);
    planner_child_step(planner, 70);
    ck_assert_int_eq(answers, 1);
    ck_assert_int_eq(outcome, PLANNER_CHILD_PLAN);
    ck_assert_str_eq(text, "inside");
    ck_assert_str_eq(answered_key, "ns/job");
    ck_assert_int_eq(planner_child_next_ms(planner), INT64_MAX);
}
END_TEST

Suite *test_planner_child_suite(void)
{
    Suite *suite = suite_create("planner_child");
    TCase *cases = tcase_create("planner_child");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, question_goes_in_and_the_plan_comes_out);
    tcase_add_loop_test(cases, exit_codes_say_what_the_answer_is, 0, 8);
    tcase_add_test(cases, missing_program_is_a_broken_planner);
    tcase_add_test(cases, hanging_planner_is_killed_when_its_wall_time_is_over);
    tcase_add_test(cases, wall_time_leaves_room_for_a_throttled_planner);
    tcase_add_test(cases, busy_planner_runs_out_of_cpu_time);
    tcase_add_test(cases, large_question_to_a_deaf_child_ends_well);
    tcase_add_test(cases, child_has_no_environment_and_no_other_files);
    tcase_add_test(cases, several_children_answer_for_their_own_job);
    tcase_add_test(cases, answer_from_inside_arrives_in_its_time_unless_it_is_cancelled);
    tcase_add_test(cases, search_that_is_cut_short_says_what_it_has);
    tcase_add_test(cases, search_without_a_plan_is_cut_short_for_good);
    tcase_add_test(cases, hetplan_answers_with_a_valid_plan_when_it_is_cut_short);
#if !defined(__SANITIZE_ADDRESS__)
    tcase_add_test(cases, planner_that_was_taken_over_finds_nothing_to_take);
    tcase_add_test(cases, unconfined_planner_could_take_what_it_likes);
    tcase_add_test(cases, confined_planner_gets_no_library_and_says_so);
    tcase_add_exit_test(cases, program_confines_itself_to_reading_writing_and_memory, 0);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}
