#include "controller/record/replay_command.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/reconcile/reconcile.h"
#include "controller/record/snapshot_json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Differences that are shown of one decision. */
#define MAX_DIFFERENCES 20

static const char help[] =
    "Usage: heterotrain-controller replay FILE [OPTION]...\n"
    "\n"
    "Makes the decisions again that a controller recorded (--record FILE), shows them with\n"
    "their actions and reasons, and says where they are not what was decided then. Nothing\n"
    "outside is touched. FILE \"-\" is standard input.\n"
    "\n"
    "Options:\n"
    "  --job NAMESPACE/NAME  only decisions about that job\n"
    "  --line NUMBER         only that line of the file\n"
    "  --output text|json    for people, or a JSON object a decision, one a line (text)\n"
    "  --quiet               only decisions that differ\n"
    "  --help                this text\n"
    "\n"
    "Exit status: 0 all are the same; 1 one differs, or a line cannot be read; 2 bad\n"
    "option or file.\n";

struct options {
    const char *file, *job;
    int64_t line; /* 0: all */
    bool is_json, is_quiet;
};

enum { JOB = 1, LINE, OUTPUT, QUIET, HELP };

static const struct option long_options[] = {
    { "job", required_argument, NULL, JOB },
    { "line", required_argument, NULL, LINE },
    { "output", required_argument, NULL, OUTPUT },
    { "quiet", no_argument, NULL, QUIET },
    { "help", no_argument, NULL, HELP },
    { 0 },
};

static int read_line_number(const char *text, int64_t *ret, struct het_error *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (!*text || *end || errno || number < 1)
        return het_fail(err, HET_BAD_INPUT, "--line %.40s: must be a number from 1",
                        text);
    *ret = number;
    return 0;
}

/* 0; 1 for --help; -1. */
static int read_options(int argc, char **argv, struct options *options,
                        struct het_error *err)
{
    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        switch (option) {
        case JOB:
            options->job = optarg;
            break;
        case LINE:
            if (read_line_number(optarg, &options->line, err) < 0)
                return -1;
            break;
        case OUTPUT:
            options->is_json = !strcmp(optarg, "json");
            if (!options->is_json && strcmp(optarg, "text") != 0)
                return het_fail(err, HET_BAD_INPUT, "--output %.40s: text or json",
                                optarg);
            break;
        case QUIET:
            options->is_quiet = true;
            break;
        case HELP:
            return 1;
        default:
            return het_fail(err, HET_BAD_INPUT,
                            "see heterotrain-controller replay --help");
        }
    }
    if (optind + 1 != argc)
        return het_fail(err, HET_BAD_INPUT, "say one FILE to replay");
    options->file = argv[optind];
    return 0;
}

/* ---- lines ---- */

/* The next line without its end, of at most HET_MAX_JSON_BYTES (of a longer one, the
 * beginning): 1; 0 at the end of the file. */
static int next_line(FILE *file, char **line, size_t *capacity, size_t *ret_length)
{
    size_t length = 0;
    int c = getc_unlocked(file);
    if (c == EOF)
        return 0;
    for (; c != EOF && c != '\n'; c = getc_unlocked(file)) {
        if (length > HET_MAX_JSON_BYTES)
            continue; /* too long already: het_json_decode says so */
        ARRAY_RESERVE(*line, capacity, length + 1);
        (*line)[length++] = (char)c;
    }
    *ret_length = length;
    return 1;
}

/* ---- what differs ---- */

struct differences {
    json_t *list; /* of { "path", "recorded", "now" } */
    size_t count; /* also of those not in the list */
};

static void compare(struct differences *differences, const char *path,
                    const json_t *recorded, const json_t *now);

static void compare_members(struct differences *differences, const char *path,
                            const json_t *recorded, const json_t *now)
{
    json_auto_t *keys = json_object();
    json_object_update(keys, (json_t *)(uintptr_t)recorded);
    json_object_update(keys, (json_t *)(uintptr_t)now);
    const char *key;
    json_t *value;
    json_object_foreach (keys, key, value) {
        auto_free char *inner = xasprintf("%s%s%s", path, *path ? "." : "", key);
        compare(differences, inner, json_object_get(recorded, key),
                json_object_get(now, key));
    }
}

static void compare_elements(struct differences *differences, const char *path,
                             const json_t *recorded, const json_t *now)
{
    size_t count = json_array_size(recorded) > json_array_size(now)
                       ? json_array_size(recorded)
                       : json_array_size(now);
    for (size_t i = 0; i < count; i++) {
        auto_free char *inner = xasprintf("%s[%zu]", path, i);
        compare(differences, inner, json_array_get(recorded, i), json_array_get(now, i));
    }
}

/* Either may be NULL: not there. */
static void compare(struct differences *differences, const char *path,
                    const json_t *recorded, const json_t *now)
{
    if (json_is_object(recorded) && json_is_object(now)) {
        compare_members(differences, path, recorded, now);
    } else if (json_is_array(recorded) && json_is_array(now)) {
        compare_elements(differences, path, recorded, now);
    } else if (!recorded || !now || !json_equal(recorded, now)) {
        if (differences->count++ < MAX_DIFFERENCES)
            json_array_append_new(differences->list,
                                  json_pack("{s:s, s:O?, s:O?}", "path", path, "recorded",
                                            recorded, "now", now));
    }
}

/* ---- what is shown ---- */

static const char *action_name(enum action_kind kind)
{
    switch (kind) {
    case ACTION_CREATE:
        return "create";
    case ACTION_APPLY:
        return "apply";
    case ACTION_PATCH:
        return "patch";
    case ACTION_DELETE:
        return "delete";
    case ACTION_STATUS:
        return "status";
    case ACTION_EVENT:
        return "event";
    case ACTION_REFRESH:
        return "refresh";
    case ACTION_PLAN:
        return "plan";
    case ACTION_HOOK:
        return "hook";
    }
    return "";
}

/* The conditions that a status turns, as "Placed=False (WaitingForOldPods), ...". */
static const char *describe_status(struct het_arena *arena,
                                   const struct snapshot *snapshot, const json_t *status)
{
    const json_t *list = json_object_get(status, "conditions");
    const char *text = "";
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *condition = json_array_get(list, i);
        const char *type = object_text(condition, "type");
        const json_t *before = object_find_condition(snapshot->job, type);
        if (!strcmp(object_text(before, "status"), object_text(condition, "status")) &&
            !strcmp(object_text(before, "reason"), object_text(condition, "reason")))
            continue;
        text = het_arena_printf(arena, "%s%s%s=%s (%s)", text, *text ? ", " : "", type,
                                object_text(condition, "status"),
                                object_text(condition, "reason"));
    }
    return text;
}

/* Members of `object` with texts, as "key=value, ...". */
static const char *describe_texts(struct het_arena *arena, const json_t *object)
{
    const char *text = "", *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        text = het_arena_printf(arena, "%s%s%s=%s", text, *text ? ", " : "", key,
                                json_is_string(value) ? json_string_value(value) : "");
    }
    return text;
}

/* Why: what the action itself says of it. */
static const char *action_reason(struct het_arena *arena, const struct snapshot *snapshot,
                                 const struct action *action)
{
    const json_t *metadata = json_object_get(action->object, "metadata");
    const json_t *annotations = json_object_get(metadata, "annotations");
    switch (action->kind) {
    case ACTION_EVENT:
        return het_arena_printf(arena, "%s: %s", object_text(action->object, "reason"),
                                object_text(action->object, "note"));
    case ACTION_STATUS:
        return describe_status(arena, snapshot,
                               json_object_get(action->object, "status"));
    case ACTION_CREATE:
        return kube_annotation(action->object, ANNOTATION_TRIGGER);
    case ACTION_PATCH:
        return json_is_array(action->object) ? "JSON patch"
                                             : describe_texts(arena, annotations);
    case ACTION_REFRESH:
        return action->query;
    case ACTION_APPLY:
    case ACTION_DELETE:
    case ACTION_HOOK:
    case ACTION_PLAN:
        break;
    }
    return "";
}

/* The replayed decision with all that is shown of it. */
static json_t *describe(struct het_arena *arena, const struct record *record,
                        int64_t line, const struct decision *decision,
                        const struct differences *differences)
{
    char time[TIMESTAMP_SIZE];
    timestamp_format(record->wall_ms, time);
    json_t *actions = json_array();
    for (size_t i = 0; i < decision->action_count; i++) {
        const struct action *action = &decision->actions[i];
        const char *kind = action->resource ? action->resource->kind : "";
        json_array_append_new(
            actions,
            json_pack("{s:s, s:i, s:s, s:o, s:o, s:o}", "action",
                      action_name(action->kind), "phase", action->phase, "kind", kind,
                      "namespace", het_json_text(action->ns ? action->ns : ""), "name",
                      het_json_text(action->name ? action->name : ""), "reason",
                      het_json_text(action_reason(arena, &record->snapshot, action))));
    }
    return json_pack("{s:I, s:s, s:s, s:b, s:o, s:o, s:O, s:I}", "line", (json_int_t)line,
                     "time", time, "job", record->job, "same", differences->count == 0,
                     "summary", het_json_text(decision->summary), "actions", actions,
                     "differences", differences->list, "differenceCount",
                     (json_int_t)differences->count);
}

/* Text from an untrusted file: a terminal must not act on it. */
static void print_text(FILE *out, const char *text)
{
    for (; *text; text++)
        putc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

static void print_value(FILE *out, const json_t *value)
{
    auto_free char *text = value && !json_is_null(value)
                               ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY)
                               : NULL;
    print_text(out, text ? text : "(nothing)");
}

static void print_differences(FILE *out, const json_t *shown)
{
    const json_t *list = json_object_get(shown, "differences");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        fputs("    ", out);
        print_text(out, object_text(one, "path"));
        fputs(": recorded ", out);
        print_value(out, json_object_get(one, "recorded"));
        fputs(", now ", out);
        print_value(out, json_object_get(one, "now"));
        putc('\n', out);
    }
    int64_t more = json_integer_value(json_object_get(shown, "differenceCount")) -
                   (int64_t)json_array_size(list);
    if (more > 0)
        fprintf(out, "    and %" PRId64 " more\n", more);
}

static void print_people(FILE *out, const json_t *shown)
{
    const json_t *actions = json_object_get(shown, "actions");
    fprintf(out, "%s  ", object_text(shown, "time"));
    print_text(out, object_text(shown, "job"));
    fprintf(out, "  line %" PRId64 "  %s\n  ",
            (int64_t)json_integer_value(json_object_get(shown, "line")),
            json_is_true(json_object_get(shown, "same")) ? "same" : "DIFFERENT");
    print_text(out, object_text(shown, "summary"));
    putc('\n', out);
    for (size_t i = 0; i < json_array_size(actions); i++) {
        const json_t *action = json_array_get(actions, i);
        fprintf(out, "    %" PRId64 " %-7s %s%s",
                (int64_t)json_integer_value(json_object_get(action, "phase")),
                object_text(action, "action"), object_text(action, "kind"),
                *object_text(action, "kind") ? " " : "");
        print_text(out, object_text(action, "namespace"));
        fputs(*object_text(action, "name") ? "/" : "", out);
        print_text(out, object_text(action, "name"));
        fputs(*object_text(action, "reason") ? "  " : "", out);
        print_text(out, object_text(action, "reason"));
        putc('\n', out);
    }
    print_differences(out, shown);
}

/* ---- the command ---- */

static bool is_wanted(const struct options *options, const json_t *json)
{
    const char *job = object_text(json, "job");
    return !options->job || !strcmp(options->job, job);
}

/* Decides `record` again and shows it. Whether it is the same. */
static bool replay(struct het_arena *arena, const struct options *options,
                   const struct record *record, int64_t line, FILE *out)
{
    struct decision decision;
    reconcile(arena, &record->snapshot, &decision);
    struct differences differences = { .list = json_array() };
    json_auto_t *now = record_decision(&record->snapshot, &decision, record->has_env);
    compare(&differences, "", record->decision, now);
    json_auto_t *shown = describe(arena, record, line, &decision, &differences);
    bool is_same = !differences.count;
    if (options->is_quiet && is_same) {
        /* nothing to say */
    } else if (options->is_json) {
        json_dumpf(shown, out, JSON_COMPACT);
        putc('\n', out);
    } else {
        print_people(out, shown);
    }
    json_decref(differences.list);
    decision_fini(&decision);
    return is_same;
}

/* 1: the same; 0: another decision; -1: not a record. */
static int replay_line(const struct options *options, const char *text, size_t length,
                       int64_t line, FILE *out, struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    json_t *json = NULL;
    struct record record;
    int status = 1;
    if (het_json_decode(text, length, "record", &json, err) < 0)
        status = -1;
    else if (is_wanted(options, json))
        status = record_read(arena, json, &record, err) < 0
                     ? -1
                     : replay(arena, options, &record, line, out);
    json_decref(json);
    het_arena_free(arena);
    return status;
}

/* The exit status. */
static int replay_file(const struct options *options, FILE *file, FILE *out,
                       FILE *err_out)
{
    auto_free char *text = NULL;
    size_t capacity = 0, length;
    int64_t line = 0;
    int exit_status = 0;
    while (next_line(file, &text, &capacity, &length)) {
        struct het_error err = { 0 };
        line++;
        if ((options->line && options->line != line) || !length)
            continue;
        int status = replay_line(options, text, length, line, out, &err);
        if (status < 0) {
            fprintf(err_out, "heterotrain-controller: line %" PRId64 ": ", line);
            print_text(err_out, err.message);
            putc('\n', err_out);
        }
        exit_status |= status < 1;
    }
    if (options->line > line) {
        fprintf(err_out, "heterotrain-controller: there are only %" PRId64 " lines\n",
                line);
        return 2;
    }
    return exit_status;
}

int replay_command_main(int argc, char **argv, FILE *out, FILE *err_out)
{
    struct options options = { 0 };
    struct het_error err = { 0 };
    int status = read_options(argc, argv, &options, &err);
    if (status > 0) {
        fputs(help, out);
        return 0;
    }
    bool is_stdin = !status && !strcmp(options.file, "-");
    FILE *file = status < 0 ? NULL : is_stdin ? stdin : fopen(options.file, "re");
    if (!status && !file)
        status = het_fail(&err, HET_IO, "%.300s: %s", options.file, strerror(errno));
    if (status < 0) {
        fprintf(err_out, "heterotrain-controller: %s\n", err.message);
        return 2;
    }
    status = replay_file(&options, file, out, err_out);
    if (ferror(file)) {
        fprintf(err_out, "heterotrain-controller: %.300s: cannot be read to its end\n",
                options.file);
        status = 2;
    }
    if (!is_stdin)
        fclose(file);
    return status;
}
