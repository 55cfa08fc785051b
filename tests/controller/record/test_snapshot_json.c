/* Records of decisions: that nothing is missing in them, what is left out, the file that
 * they are written to, and `heterotrain-controller replay`. That every decision can be
 * made again is checked wherever tests decide (recorded.h). */
#include "controller/record/record_file.h"
#include "controller/record/replay_command.h"
#include "controller/record/snapshot_json.h"
#include "tests/controller/world.h"

#include <check.h>
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world *world;
static char folder[64], path[96], old_path[104];
static char *out, *err;

static void setup(void)
{
    world = world_new();
    world_node(world, "a", "NVIDIA-" A100, 4);
    world_node(world, "b", "NVIDIA-" A100, 4);
    strcpy(folder, "/tmp/heterotrain-record-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/record", folder);
    snprintf(old_path, sizeof old_path, "%s.1", path);
}

static void teardown(void)
{
    world_free(world);
    unlink(path);
    unlink(old_path);
    rmdir(folder);
    free(out);
    free(err);
    out = err = NULL;
}

static char *read_file(const char *name)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = fopen(name, "r");
    ck_assert_msg(file != NULL, "no %s", name);
    ck_assert_int_ge(getdelim(&text, &length, EOF, file), 0);
    fclose(file);
    return text;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count;
}

/* A job from its creation until its pods run, with all decisions recorded. */
static void live(int64_t max_bytes, bool with_env)
{
    struct het_error error = { 0 };
    struct record_file *recorder = record_file_new(path, max_bytes, with_env, &error);
    ck_assert_msg(recorder != NULL, "%s", error.message);
    world->on_decision = record_file_add;
    world->decision_context = recorder;
    world_job(world,
              "{'podTemplate': {'spec': {'containers': [{'name': 'trainer', 'image': "
              "'x', 'env': [{'name': 'TOKEN', 'value': 'hunter2'}]}]}}}");
    json_t *job = json_deep_copy(world_get_job(world));
    json_object_set_new(
        json_object_get(job, "metadata"), "annotations",
        quoted("{'kubectl.kubernetes.io/last-applied-configuration': 'hunter2'}"));
    world_put(world, &kube_job, job);
    world_settle(world);
    auto_free char *plan = world_plan("a:4 b:4", A100, 2.0);
    world_answer(world, plan);
    world_settle(world);
    world_run_pods(world);
    world_settle(world);
    world->on_decision = NULL;
    record_file_free(recorder);
}

static int replay(const char *first, ...)
{
    char *arguments[16] = { NULL };
    int count = 0;
    va_list args;
    va_start(args, first);
    arguments[count++] = xstrdup("replay");
    for (const char *text = first; text; text = va_arg(args, const char *))
        arguments[count++] = xstrdup(text);
    va_end(args);
    free(out);
    free(err);
    size_t out_length, err_length;
    FILE *out_file = open_memstream(&out, &out_length);
    FILE *err_file = open_memstream(&err, &err_length);
    optind = 0;
    int status = replay_command_main(count, arguments, out_file, err_file);
    fclose(out_file);
    fclose(err_file);
    while (count)
        free(arguments[--count]);
    return status;
}

/* ---- whole ---- */

static const char *const headers[] = {
    "controller/decision/snapshot.h",   "controller/decision/decision.h",
    "controller/job/settings.h",        "controller/cluster/capacity_view.h",
    "controller/job/input_change.h",    "controller/cluster/kueue_quota.h",
    "controller/decision/other_jobs.h", "controller/cluster/precedence.h",
    "planner/format/kubernetes_node.h", "controller/cluster/measurement.h",
};

/* What stands between the braces of a struct, without comments and inner braces; NULL: no
 * header has it. The caller frees it. */
static char *find_struct(const char *name)
{
    auto_free char *opening = xasprintf("\n%s {\n", name);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        auto_free char *text = read_file(headers[i]);
        const char *at = strstr(text, opening);
        if (!at)
            continue;
        at += strlen(opening);
        char *body = xcalloc(strlen(at) + 1, 1), *end = body;
        for (int depth = 0; strncmp(at, "\n};", 3) != 0; at++) {
            if (!strncmp(at, "/*", 2)) {
                at = strstr(at, "*/") + 1;
                continue;
            }
            depth += *at == '{';
            if (!depth && *at != '\n')
                *end++ = *at;
            depth -= *at == '}';
        }
        return body;
    }
    return NULL;
}

/* The last word of a declarator: "const char *const *names[3]" to "names". */
static char *last_word(char *text)
{
    char *bracket = strchr(text, '[');
    if (bracket)
        *bracket = '\0';
    for (char *end = text + strlen(text); end > text && end[-1] == ' ';)
        *--end = '\0';
    char *word = text + strlen(text);
    while (word > text && (isalnum((unsigned char)word[-1]) || word[-1] == '_'))
        word--;
    return word;
}

START_TEST(every_field_of_every_struct_is_in_a_table)
{
    size_t fields = 0;
    for (size_t i = 0; record_table(i); i++) {
        auto_free char *body = find_struct(record_table(i));
        ck_assert_msg(body != NULL, "no header has %s", record_table(i));
        for (char *rest = body, *text; (text = strsep(&rest, ",;"));) {
            const char *name = last_word(text);
            ck_assert_msg(
                !*name || record_has_field(i, name),
                "%s.%s is not in the table of controller/record/snapshot_json.c, or twice",
                record_table(i), name);
            fields += *name != '\0';
        }
    }
    ck_assert_uint_gt(fields, 100);
}
END_TEST

/* ---- what is left out ---- */

START_TEST(values_of_environment_variables_are_left_out)
{
    live(0, false);
    auto_free char *text = read_file(path);
    ck_assert_ptr_null(strstr(text, "hunter2"));
    ck_assert_ptr_nonnull(strstr(text, "TOKEN"));
    ck_assert_int_eq(replay(path, NULL), 0);
}
END_TEST

START_TEST(values_of_environment_variables_are_recorded_if_asked_for)
{
    live(0, true);
    auto_free char *text = read_file(path);
    ck_assert_ptr_nonnull(strstr(text, "hunter2"));
    ck_assert_int_eq(replay(path, NULL), 0);
}
END_TEST

/* ---- the file ---- */

START_TEST(file_is_for_its_owner_alone)
{
    live(0, false);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
}
END_TEST

START_TEST(recorder_goes_on_at_the_end_of_the_file)
{
    write_file("before\n");
    live(0, false);
    auto_free char *text = read_file(path);
    ck_assert(!strncmp(text, "before\n{", strlen("before\n{")));
}
END_TEST

START_TEST(full_file_makes_room_for_a_new_one)
{
    enum { LIMIT = 20000 };
    live(LIMIT, false);
    struct stat status, old_status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(stat(old_path, &old_status), 0);
    ck_assert_int_le(status.st_size, LIMIT);
    ck_assert_int_le(old_status.st_size, LIMIT);
    /* Both are made of whole lines. */
    ck_assert_int_eq(replay(path, NULL), 0);
    ck_assert_int_eq(replay(old_path, NULL), 0);
}
END_TEST

START_TEST(decision_larger_than_the_file_is_left_out)
{
    live(100, false);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 0);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
}
END_TEST

START_TEST(full_disk_disturbs_nobody)
{
    ck_assert_int_eq(symlink("/dev/full", path), 0);
    live(0, false);
    ck_assert_str_eq(world_reason(world, "Running"), "AllPodsReady");
}
END_TEST

START_TEST(file_that_cannot_be_opened_is_refused)
{
    struct het_error error = { 0 };
    ck_assert_ptr_null(record_file_new("/nowhere/record", 0, false, &error));
    ck_assert_msg(strstr(error.message, "--record /nowhere/record: No such") != NULL,
                  "%s", error.message);
}
END_TEST

/* ---- replay ---- */

START_TEST(replay_shows_actions_and_reasons)
{
    live(0, false);
    ck_assert_int_eq(replay(path, NULL), 0);
    static const char *const texts[] = {
        "  ns/job  line 1  same\n",
        " create  ConfigMap ns/job-plan-1  JobCreated\n",
        " create  Pod ns/job-1-0\n",
        " event   Event ns/job.",
        "PlanComputed: ",
        " refresh Pod   fieldSelector=spec.nodeName%3Da\n",
        " status  HeteroTrainingJob ns/job  ",
        "Running=True (AllPodsReady)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(strstr(out, texts[i]) != NULL, "no '%s' in\n%s", texts[i], out);
    ck_assert_str_eq(err, "");
}
END_TEST

START_TEST(replay_prints_one_json_object_a_decision)
{
    live(0, false);
    auto_free char *text = read_file(path);
    ck_assert_int_eq(replay("--output", "json", path, NULL), 0);
    ck_assert_uint_eq(count_lines(out), count_lines(text));
    json_error_t error;
    json_auto_t *first = json_loads(out, JSON_DISABLE_EOF_CHECK, &error);
    ck_assert_msg(first != NULL, "%s", error.text);
    ck_assert_str_eq(json_string_value(json_object_get(first, "job")), "ns/job");
    ck_assert(json_is_true(json_object_get(first, "same")));
}
END_TEST

START_TEST(replay_picks_a_job_and_a_line)
{
    live(0, false);
    ck_assert_int_eq(replay(path, "--job", "ns/other", NULL), 0);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(replay(path, "--line", "2", NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "line 2  same"));
    ck_assert_ptr_null(strstr(out, "line 1 "));
    ck_assert_int_eq(replay(path, "--line", "1000", NULL), 2);
    ck_assert_int_eq(replay(path, "--quiet", NULL), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

/* `text` with the first `before` made `after`; the caller frees it. */
static char *replaced(const char *text, const char *before, const char *after)
{
    const char *at = strstr(text, before);
    ck_assert_msg(at != NULL, "no %s", before);
    return xasprintf("%.*s%s%s", (int)(at - text), text, after, at + strlen(before));
}

START_TEST(replay_says_what_differs)
{
    live(0, false);
    auto_free char *text = read_file(path);
    auto_free char *changed =
        replaced(text, "\"is_unanswered\":true", "\"is_unanswered\":false");
    write_file(changed);
    ck_assert_int_eq(replay(path, NULL), 1);
    ck_assert_msg(strstr(out, "line 1  DIFFERENT\n") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "    is_unanswered: recorded false, now true\n") != NULL,
                  "%s", out);
    ck_assert_int_eq(replay(path, "--line", "2", NULL), 0);
}
END_TEST

static const struct {
    bool in_snapshot;
    const char *before, *after, *error;
} bad[] = {
    { false, "{\"format\"", "{\"form\"", "line 1: is no record" },
    { false, "\"version\":1", "\"version\":2",
      "line 1: version: must be 1; another release" },
    { false, "{\"format\"", "{\"format\":", "line 1: record" },
    { true, "\"now_ms\":", "\"now\":", "line 1: snapshot.now_ms: " },
    { true, "\"server_minor\":34", "\"server_minor\":true",
      "line 1: snapshot.server_minor: must be a whole" },
    { true, "\"is_planning\":false", "\"is_planning\":0",
      "line 1: snapshot.memory.is_planning: must be true or false" },
    { true, "\"name\":\"a\",\"type\"", "\"name\":\"c\",\"type\"",
      "line 1: snapshot.nodes: must be in the order of their names" },
    { true, "\"free\":4", "\"free\":-4",
      "line 1: snapshot.nodes[0].free: must be a whole" },
    { true, "\"answer\":{\"kind\":0", "\"answer\":{\"kind\":1",
      "line 1: snapshot.memory: answer.text and answer.message are missing" },
    { true, "\"pod_digest\":\"", "\"pod_digest\":\"x",
      "line 1: snapshot.pod_digest: must be 16 hexadecimal digits" },
};

START_TEST(bad_line_is_refused_with_its_number_and_the_member)
{
    live(0, false);
    auto_free char *text = read_file(path);
    char *snapshot = bad[_i].in_snapshot ? strstr(text, "\"snapshot\":") : text;
    auto_free char *rest = replaced(snapshot, bad[_i].before, bad[_i].after);
    auto_free char *changed = xasprintf("%.*s%s", (int)(snapshot - text), text, rest);
    write_file(changed);
    ck_assert_int_eq(replay(path, NULL), 1);
    ck_assert_msg(strstr(err, bad[_i].error) != NULL, "%s: %s", bad[_i].error, err);
    ck_assert_uint_eq(count_lines(err), 1);
    ck_assert_ptr_nonnull(strstr(out, "line 2  same"));
}
END_TEST

START_TEST(bad_option_is_refused)
{
    ck_assert_int_eq(replay(NULL), 2);
    ck_assert_int_eq(replay("/nowhere/record", NULL), 2);
    ck_assert_int_eq(replay(path, "--line", "none", NULL), 2);
    ck_assert_int_eq(replay(path, "--output", "yaml", NULL), 2);
    ck_assert_int_eq(replay("--help", NULL), 0);
}
END_TEST

Suite *test_snapshot_json_suite(void);
Suite *test_snapshot_json_suite(void)
{
    Suite *suite = suite_create("snapshot_json");
    TCase *cases = tcase_create("record");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, every_field_of_every_struct_is_in_a_table);
    tcase_add_test(cases, values_of_environment_variables_are_left_out);
    tcase_add_test(cases, values_of_environment_variables_are_recorded_if_asked_for);
    tcase_add_test(cases, file_is_for_its_owner_alone);
    tcase_add_test(cases, recorder_goes_on_at_the_end_of_the_file);
    tcase_add_test(cases, full_file_makes_room_for_a_new_one);
    tcase_add_test(cases, decision_larger_than_the_file_is_left_out);
    tcase_add_test(cases, full_disk_disturbs_nobody);
    tcase_add_test(cases, file_that_cannot_be_opened_is_refused);
    tcase_add_test(cases, replay_shows_actions_and_reasons);
    tcase_add_test(cases, replay_prints_one_json_object_a_decision);
    tcase_add_test(cases, replay_picks_a_job_and_a_line);
    tcase_add_test(cases, replay_says_what_differs);
    tcase_add_loop_test(cases, bad_line_is_refused_with_its_number_and_the_member, 0,
                        sizeof bad / sizeof *bad);
    tcase_add_test(cases, bad_option_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
