#include "controller/simulate/narration.h"

#include "controller/base/object.h"
#include "controller/decision/status.h"
#include "controller/simulate/api_server/condition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    INDENT = 12,      /* columns of the time */
    NAMES_SHOWN = 8,  /* pods named one by one in one line */
    MAX_COLUMNS = 24, /* of a table */
};

/* One thing to tell: a line, and for pods the names that share it. */
struct entry {
    char *what;    /* "plan", "pods created" */
    json_t *names; /* of pods, "opt-350-1-0 on a100-0"; NULL: not of pods */
    json_t *data;  /* the entry of the JSON document */
    char *text;    /* what to print after the names or by itself; may have many lines */
};

struct narration {
    struct simulation *simulation;
    FILE *out;
    struct narration_options options;
    struct entry *entries; /* of this moment */
    size_t entry_count, entry_capacity;
    json_t *timeline; /* JSON: all entries so far */
    json_t *cluster;
    json_t *shown; /* "ns/job": generation whose pods have been shown running */
};

/* ---- text ---- */

static void print_time(const struct narration *report, int64_t now_ms)
{
    fprintf(report->out, "%*.1f s  ", INDENT - 4, (double)now_ms / 1000);
}

/* Prints `text` with INDENT blanks before every line but the first. */
static void print_indented(const struct narration *report, const char *text)
{
    for (const char *c = text; *c; c++) {
        fputc(*c, report->out);
        if (*c == '\n' && c[1] && c[1] != '\n')
            fprintf(report->out, "%*s", INDENT, "");
    }
    if (*text && text[strlen(text) - 1] != '\n')
        fputc('\n', report->out);
}

/* Columns that a UTF-8 text takes: bytes that do not continue a character. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789.") == strlen(text);
}

static const char *cell(const json_t *rows, size_t row, size_t column)
{
    const char *text =
        json_string_value(json_array_get(json_array_get(rows, row), column));
    return text ? text : "";
}

/* Takes blanks off the end. */
static void end_line(char *text)
{
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ')
        text[--length] = '\0';
}

/* A table of texts, an array of rows of which the first has the headings. Columns of
 * numbers stand to the right. */
static char *draw_table(const json_t *rows)
{
    size_t columns = json_array_size(json_array_get(rows, 0));
    size_t count = json_array_size(rows);
    int widths[MAX_COLUMNS] = { 0 };
    bool right[MAX_COLUMNS];
    if (columns > MAX_COLUMNS)
        columns = MAX_COLUMNS;
    for (size_t k = 0; k < columns; k++) {
        right[k] = count > 1;
        for (size_t i = 0; i < count; i++) {
            int width = width_of(cell(rows, i, k));
            widths[k] = width > widths[k] ? width : widths[k];
            right[k] = right[k] && (i == 0 || is_number(cell(rows, i, k)));
        }
    }
    char *text = xstrdup("");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < columns; k++) {
            auto_free char *before = text;
            int fill = widths[k] - width_of(cell(rows, i, k));
            bool is_last = k + 1 == columns;
            text = xasprintf("%s%*s%s%*s%s", before, right[k] ? fill : 0, "",
                             cell(rows, i, k), right[k] || is_last ? 0 : fill, "",
                             is_last ? "" : "  ");
        }
        end_line(text);
        auto_free char *before = text;
        text = xasprintf("%s\n", before);
    }
    return text;
}

/* Texts that were cut in the middle of a character show a question mark. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    return json ? json : json_string("?");
}

static void add_cell(json_t *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_cell(json_t *row, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(row, text_json(text));
}

static json_t *add_row(json_t *rows)
{
    json_t *row = json_array();
    json_array_append_new(rows, row);
    return row;
}

static void add_headings(json_t *rows, const char *const *names, size_t count)
{
    json_t *row = add_row(rows);
    for (size_t i = 0; i < count; i++)
        add_cell(row, "%s", names[i]);
}

/* Breaks words over lines of at most `width` columns. */
static char *wrap(const char *text, int width)
{
    char *copy = xstrdup(text);
    int column = 0;
    char *space = NULL; /* the last one in this line */
    for (char *c = copy; *c; c++, column++) {
        if (*c == ' ')
            space = c;
        if (column >= width && space) {
            *space = '\n';
            column = (int)(c - space);
            space = NULL;
        }
    }
    return copy;
}

/* ---- entries ---- */

/* `data` is taken and may be NULL, `text` is taken. */
static void add_entry(struct narration *report, const char *what, json_t *data,
                      char *text)
{
    ARRAY_RESERVE(report->entries, &report->entry_capacity, report->entry_count + 1);
    report->entries[report->entry_count++] = (struct entry){
        .what = xstrdup(what), .data = data ? data : json_object(), .text = text
    };
}

/* Pods to which the same happens at the same moment share an entry. */
static void add_pod(struct narration *report, const char *what, const json_t *pod,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
static void add_pod(struct narration *report, const char *what, const json_t *pod,
                    const char *format, ...)
{
    char detail[512];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    size_t i = 0;
    while (i < report->entry_count &&
           (!report->entries[i].names || strcmp(report->entries[i].what, what) != 0))
        i++;
    if (i == report->entry_count) {
        add_entry(report, what, json_pack("{s:[]}", "pods"), xstrdup(""));
        report->entries[i].names = json_array();
    }
    const char *name = object_text(pod, "metadata.name");
    json_array_append_new(report->entries[i].names,
                          json_sprintf("%s%s%s", name, *detail ? " " : "", detail));
    auto_free char *key = object_key(pod);
    json_array_append_new(
        object_at(report->entries[i].data, "pods"),
        json_pack("{s:s, s:s}", "pod", key, "node", object_text(pod, "spec.nodeName")));
}

/* "3 pods created: a-1-0, a-1-1, a-1-2" */
static char *pods_line(const struct narration *report, const struct entry *entry)
{
    size_t count = json_array_size(entry->names);
    char *text = xasprintf("%zu %s %s:", count, count == 1 ? "pod" : "pods", entry->what);
    for (size_t i = 0; i < count; i++) {
        auto_free char *before = text;
        if (i + 1 < count && i + 1 >= NAMES_SHOWN) {
            text = xasprintf("%s, ... and %zu more", before, count - i);
            break;
        }
        text = xasprintf("%s%s %s", before, i ? "," : "",
                         json_string_value(json_array_get(entry->names, i)));
    }
    auto_free char *line = text;
    return wrap(line, report->options.width - INDENT);
}

static void entry_fini(struct entry *entry)
{
    free(entry->what);
    free(entry->text);
    json_decref(entry->names);
    json_decref(entry->data);
}

static void tell(struct narration *report, struct entry *entry)
{
    int64_t now_ms = simulation_now_ms(report->simulation);
    if (report->options.is_json) {
        object_set(entry->data, "atSeconds", json_real((double)now_ms / 1000));
        object_set(entry->data, "what", json_string(entry->what));
        json_array_append(report->timeline, entry->data);
    } else if (!report->options.is_quiet) {
        auto_free char *line = entry->names ? pods_line(report, entry)
                                            : xstrdup(entry->text);
        print_time(report, now_ms);
        print_indented(report, line);
    }
}

/* Prints or keeps what happened in this moment: first what the script did. */
static void flush(struct narration *report)
{
    for (size_t i = 0; i < report->entry_count; i++)
        if (!strcmp(report->entries[i].what, "script"))
            tell(report, &report->entries[i]);
    for (size_t i = 0; i < report->entry_count; i++)
        if (strcmp(report->entries[i].what, "script") != 0)
            tell(report, &report->entries[i]);
    for (size_t i = 0; i < report->entry_count; i++)
        entry_fini(&report->entries[i]);
    report->entry_count = 0;
}

/* ---- what is told of each kind ---- */

static int64_t exit_code(const json_t *pod)
{
    const json_t *status = json_array_get(object_at(pod, "status.containerStatuses"), 0);
    return object_integer(status, "state.terminated.exitCode", -1);
}

static void tell_pod(struct narration *report, const struct api_server_change *change)
{
    const json_t *before = change->before;
    const json_t *after = change->after;
    const char *phase = object_text(after, "status.phase");
    if (!before)
        add_pod(report, "created", after, "%s", "");
    if (!after) {
        add_pod(report, "gone", before, "%s", "");
        return;
    }
    if (*object_text(after, "spec.nodeName") && !*object_text(before, "spec.nodeName"))
        add_pod(report, "placed", after, "on %s", object_text(after, "spec.nodeName"));
    if (object_at(after, "metadata.deletionTimestamp") &&
        !object_at(before, "metadata.deletionTimestamp"))
        add_pod(report, "told to end", after, "%s", "");
    if (!before || !strcmp(phase, object_text(before, "status.phase")))
        return;
    if (!strcmp(phase, "Running"))
        add_pod(report, "running", after, "%s", "");
    else if (!strcmp(phase, "Succeeded"))
        add_pod(report, "succeeded", after, "%s", "");
    else if (!strcmp(phase, "Failed") && exit_code(after) >= 0)
        add_pod(report, "failed", after, "(exit code %" PRId64 ")", exit_code(after));
    else if (!strcmp(phase, "Failed"))
        add_pod(report, "failed", after, "(with its node)");
}

static const struct het_plan *read_plan(struct het_arena *arena, const json_t *config_map)
{
    const struct het_plan *plan;
    const char *text =
        json_string_value(json_object_get(object_at(config_map, "data"), "plan.json"));
    if (!text || het_plan_json_text(arena, text, "plan.json", &plan, NULL) < 0)
        return NULL;
    return plan;
}

/* The plan ConfigMap of `owner_uid` with the largest generation below `generation`. */
static const json_t *plan_before(const struct narration *report, const json_t *config_map)
{
    struct api_server *server = simulation_server(report->simulation);
    const char *uid = kube_label(config_map, LABEL_JOB_UID);
    int64_t generation = atoll(kube_label(config_map, LABEL_PLAN_REVISION));
    const json_t *best = NULL;
    for (size_t i = 0; i < api_server_count(server, "configmaps"); i++) {
        const json_t *other = api_server_at(server, "configmaps", i);
        int64_t number = atoll(kube_label(other, LABEL_PLAN_REVISION));
        if (strcmp(kube_label(other, LABEL_JOB_UID), uid) != 0 || number >= generation ||
            !number)
            continue;
        if (!best || number > atoll(kube_label(best, LABEL_PLAN_REVISION)))
            best = other;
    }
    return best;
}

static char *append(char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static char *append(char *text, const char *format, ...)
{
    char more[512];
    va_list args;
    va_start(args, format);
    vsnprintf(more, sizeof more, format, args);
    va_end(args);
    auto_free char *before = text;
    return xasprintf("%s%s", before, more);
}

/* "against plan 1: without v100-1 (4 GPUs); with a100-2 (2 instead of 8 GPUs); step
 * time 1.23 s instead of 1.10 s" */
static char *describe_change(struct het_arena *arena, const struct het_plan *old,
                             const struct het_plan *new)
{
    struct het_rank_node *was, *is;
    size_t was_count = het_plan_rank_nodes(arena, old, &was);
    size_t is_count = het_plan_rank_nodes(arena, new, &is);
    char *text = xstrdup("");
    for (size_t i = 0; i < was_count; i++)
        if (!het_plan_gpus_on(is, is_count, was[i].node_name))
            text = append(text, "%s%s leaves (%u GPUs)", *text ? ", " : "",
                          was[i].node_name, was[i].gpu_count);
    for (size_t i = 0; i < is_count; i++) {
        uint32_t before = het_plan_gpus_on(was, was_count, is[i].node_name);
        if (!before)
            text = append(text, "%s%s joins (%u GPUs)", *text ? ", " : "",
                          is[i].node_name, is[i].gpu_count);
        else if (before != is[i].gpu_count)
            text = append(text, "%s%s has %u GPUs instead of %u", *text ? ", " : "",
                          is[i].node_name, is[i].gpu_count, before);
    }
    if (!*text)
        text = append(text, "the same nodes");
    double old_s = old->predicted.iteration_s;
    double new_s = new->predicted.iteration_s;
    if (old_s > 0 && new_s > 0)
        text = append(text, "; a step takes %.3f s instead of %.3f s (%+.1f %%)", new_s,
                      old_s, (new_s / old_s - 1) * 100);
    return text;
}

/* A new generation: why, what changed, the plan. */
static void tell_plan(struct narration *report, const json_t *config_map)
{
    struct het_arena *arena = het_arena_new();
    const struct het_plan *plan = read_plan(arena, config_map);
    const json_t *older = plan_before(report, config_map);
    const struct het_plan *old = older ? read_plan(arena, older) : NULL;
    const char *ns = object_text(config_map, "metadata.namespace");
    const char *job = kube_label(config_map, LABEL_JOB_NAME);
    const char *generation = kube_label(config_map, LABEL_PLAN_REVISION);
    const char *trigger = kube_annotation(config_map, ANNOTATION_TRIGGER);
    const char *text =
        json_string_value(json_object_get(object_at(config_map, "data"), "plan.json"));
    json_t *json = json_loads(text ? text : "null", JSON_DECODE_ANY, NULL);
    json_t *data = json_pack("{s:s, s:s, s:s, s:s, s:o?}", "namespace", ns, "job", job,
                             "revision", generation, "trigger", trigger, "plan", json);
    auto_free char *change = plan && old ? describe_change(arena, old, plan)
                                         : xstrdup("");
    auto_free char *wrapped = wrap(change, report->options.width - INDENT);
    const char *page =
        plan ? het_render_table(arena, NULL, plan, report->options.width - INDENT,
                                report->options.is_ascii ? HET_ASCII : HET_UTF8)
             : "it cannot be read";
    if (*change)
        object_set(data, "change", text_json(change));
    add_entry(report, "plan", data,
              xasprintf("plan %s of job %s/%s, because: %s\n%s%s%s", generation, ns, job,
                        trigger, wrapped, *wrapped ? "\n" : "", page));
    het_arena_free(arena);
}

static void tell_service(struct narration *report, const struct api_server_change *change)
{
    static const char path[] = "spec.selector";
    const json_t *service = change->after;
    const char *generation =
        json_string_value(json_object_get(object_at(service, path), LABEL_PLAN_REVISION));
    if (!generation || (change->before && json_equal(object_at(change->before, path),
                                                     object_at(service, path))))
        return;
    const char *name = object_text(service, "metadata.name");
    add_entry(report, "service",
              json_pack("{s:s, s:s}", "service", name, "revision", generation),
              xasprintf("service %s now finds the pods of plan %s", name, generation));
}

static void tell_event(struct narration *report, const json_t *event)
{
    const char *reason = object_text(event, "reason");
    const char *note = object_text(event, "note");
    const char *job = object_text(event, "regarding.name");
    auto_free char *line =
        xasprintf("job %s: %s%s%s", job, reason, *note ? ": " : "", note);
    add_entry(report, "event",
              json_pack("{s:s, s:s, s:s, s:s}", "job", job, "type",
                        object_text(event, "type"), "reason", reason, "note", note),
              wrap(line, report->options.width - INDENT));
}

/* Why a plan stays although there could be another one: no Event says that. */
static void tell_kept_plan(struct narration *report,
                           const struct api_server_change *change)
{
    const json_t *was = object_find(object_at(change->before, "status.conditions"),
                                    "type", "PlanOutdated");
    const json_t *is = object_find(object_at(change->after, "status.conditions"), "type",
                                   "PlanOutdated");
    const char *reason = object_text(is, "reason");
    const char *message = object_text(is, "message");
    if ((strcmp(reason, "BelowThreshold") != 0 && strcmp(reason, "NoBetterPlan") != 0) ||
        !strcmp(object_text(was, "message"), message))
        return;
    const char *job = object_text(change->after, "metadata.name");
    auto_free char *line =
        xasprintf("job %s keeps its plan: %s: %s", job, reason, message);
    add_entry(
        report, "plan kept",
        json_pack("{s:s, s:s, s:s}", "job", job, "reason", reason, "message", message),
        wrap(line, report->options.width - INDENT));
}

static void tell_job(struct narration *report, const struct api_server_change *change)
{
    const json_t *job = change->after ? change->after : change->before;
    auto_free char *key = object_key(job);
    const char *what = !change->before ? "created" : "deleted";
    if (change->before && change->after) {
        tell_kept_plan(report, change);
        return;
    }
    add_entry(report, "job", json_pack("{s:s, s:s}", "job", key, "is", what),
              xasprintf("job %s %s", key, what));
}

static void on_change(void *context, const struct api_server_change *change)
{
    struct narration *report = context;
    if (!strcmp(change->plural, "pods"))
        tell_pod(report, change);
    else if (!strcmp(change->plural, "heterotrainingjobs"))
        tell_job(report, change);
    else if (!strcmp(change->plural, "configmaps") && !change->before &&
             *kube_label(change->after, LABEL_PLAN_REVISION))
        tell_plan(report, change->after);
    else if (!strcmp(change->plural, "services") && change->after)
        tell_service(report, change);
    else if (!strcmp(change->plural, "events") && !change->before)
        tell_event(report, change->after);
}

static void on_scripted(void *context, const struct scenario_event *event,
                        const struct het_error *err)
{
    struct narration *report = context;
    add_entry(
        report, "script",
        json_pack("{s:s, s:s}", "event", event->text, "error", err ? err->message : ""),
        xasprintf("==> %s%s%s", event->text, err ? ": " : "", err ? err->message : ""));
}

/* ---- pods and their environment ---- */

static const json_t *environment(const json_t *pod)
{
    size_t i;
    json_t *container;
    json_array_foreach (object_at(pod, "spec.containers"), i, container) {
        if (object_find(object_at(container, "env"), "name", "HETPLAN_FILE"))
            return object_at(container, "env");
    }
    return NULL;
}

static const char *variable(const json_t *pod, const char *name)
{
    return object_text(object_find(environment(pod), "name", name), "value");
}

/* Whether all pods have the same value of it. */
static bool is_common(const json_t *pods, const char *name)
{
    const char *first = variable(json_array_get(pods, 0), name);
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (strcmp(variable(pod, name), first) != 0)
            return false;
    }
    return true;
}

/* torchrun's own names repeat ours; a table does not. */
static bool is_shown(const char *name)
{
    return strncmp(name, "PET_", strlen("PET_")) != 0;
}

/* Pods of one generation: where they are, and what differs in their environment; then
 * what all have. */
static char *draw_pods(const struct narration *report, const json_t *pods)
{
    const json_t *first = environment(json_array_get(pods, 0));
    json_auto_t *rows = json_array();
    json_t *heading = add_row(rows);
    char *common = xstrdup("");
    size_t i;
    json_t *entry;
    add_cell(heading, "POD");
    add_cell(heading, "NODE");
    json_array_foreach (first, i, entry) {
        const char *name = object_text(entry, "name");
        if (is_common(pods, name))
            common = append(common, "%s%s=%s", *common ? " " : "", name,
                            object_text(entry, "value"));
        else if (is_shown(name))
            add_cell(heading, "%s", name);
    }
    size_t k;
    json_t *pod;
    json_array_foreach (pods, k, pod) {
        json_t *row = add_row(rows);
        add_cell(row, "%s", object_text(pod, "metadata.name"));
        add_cell(row, "%s", object_text(pod, "spec.nodeName"));
        for (i = 2; i < json_array_size(heading); i++)
            add_cell(row, "%s",
                     variable(pod, json_string_value(json_array_get(heading, i))));
    }
    auto_free char *table = draw_table(rows);
    auto_free char *same = xasprintf("in all of them: %s", common);
    auto_free char *wrapped = wrap(same, report->options.width - INDENT);
    free(common);
    return xasprintf("%s%s\n", table, wrapped);
}

/* Pods of the newest plan of `job`, in the order of their index; NULL unless all run. */
static json_t *running_pods(const struct narration *report, const json_t *job)
{
    struct api_server *server = simulation_server(report->simulation);
    const char *uid = object_text(job, "metadata.uid");
    int64_t generation = object_integer(job, "status.plan.revision", 0);
    int64_t desired = object_integer(job, "status.pods.desired", 0);
    json_t *pods = json_array();
    for (size_t i = 0; i < api_server_count(server, "pods"); i++) {
        json_t *pod = api_server_at(server, "pods", i);
        if (!strcmp(kube_label(pod, LABEL_JOB_UID), uid) &&
            atoll(kube_label(pod, LABEL_PLAN_REVISION)) == generation &&
            !strcmp(object_text(pod, "status.phase"), "Running"))
            json_array_append(pods, pod);
    }
    if (desired && (int64_t)json_array_size(pods) == desired)
        return pods;
    json_decref(pods);
    return NULL;
}

/* Shows the pods of a job once for each generation, when all of them run. */
static void show_running(struct narration *report, const json_t *job)
{
    auto_free char *key = object_key(job);
    json_int_t generation = object_integer(job, "status.plan.revision", 0);
    if (json_integer_value(json_object_get(report->shown, key)) == generation ||
        !object_condition_is_true(job, "Running"))
        return;
    json_auto_t *pods = running_pods(report, job);
    if (!pods)
        return;
    json_object_set_new(report->shown, key, json_integer(generation));
    auto_free char *table = draw_pods(report, pods);
    add_entry(report, "running",
              json_pack("{s:s, s:I}", "job", key, "revision", generation),
              xasprintf("job %s runs:\n%s", key, table));
}

bool narration_step(void *context, struct simulation *simulation)
{
    struct narration *report = context;
    struct api_server *server = simulation_server(simulation);
    for (size_t i = 0; i < api_server_count(server, "heterotrainingjobs"); i++)
        show_running(report, api_server_at(server, "heterotrainingjobs", i));
    flush(report);
    fflush(report->out);
    return true;
}

/* ---- the cluster ---- */

void narration_cluster(struct narration *report)
{
    struct api_server *server = simulation_server(report->simulation);
    struct het_arena *arena = het_arena_new();
    json_auto_t *rows = json_array();
    int64_t gpus = 0;
    static const char *const headings[] = { "NODE", "GPUS", "TYPE", "GIB", "STATE" };
    add_headings(rows, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < api_server_count(server, "nodes"); i++) {
        struct het_node_facts facts;
        het_node_read(arena, api_server_at(server, "nodes", i), JOB_SPEC_GPU_RESOURCE,
                      report->options.hardware, &facts);
        if (!facts.type)
            continue;
        json_t *row = add_row(rows);
        gpus += facts.allocatable;
        add_cell(row, "%s", facts.name);
        add_cell(row, "%" PRId64, facts.allocatable);
        add_cell(row, "%s", facts.type);
        add_cell(row, "%.0f", (double)facts.memory_bytes / (1 << 30));
        add_cell(row, "%s", facts.unusable ? facts.unusable : "ready");
        json_array_append_new(report->cluster,
                              json_pack("{s:s, s:s, s:I}", "node", facts.name, "gpuType",
                                        facts.type, "gpus",
                                        (json_int_t)facts.allocatable));
    }
    if (!report->options.is_json && !report->options.is_quiet) {
        auto_free char *table = draw_table(rows);
        fprintf(report->out, "The cluster: %" PRId64 " GPUs on %zu nodes\n\n%s\n", gpus,
                json_array_size(rows) - 1, table);
    }
    het_arena_free(arena);
}

/* ---- the end ---- */

static const char *state_of(const json_t *job)
{
    return status_state(object_at(job, "status"));
}

/* Whether the job is not over and has no plan. */
static bool waits(const json_t *job)
{
    static const char *const types[] = { "Complete", "Failed", "Running",
                                         "PlanFeasible" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (object_condition_is_true(job, types[i]))
            return false;
    return true;
}

/* Why a job waits. */
static const char *reason_of(const json_t *job)
{
    static const char *const types[] = { "Accepted", "PlanFeasible", "Placed" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const json_t *condition =
            object_find(object_at(job, "status.conditions"), "type", types[i]);
        if (condition && strcmp(object_text(condition, "status"), "True") != 0)
            return object_text(condition, "message");
    }
    return "";
}

static void add_job_row(json_t *rows, const json_t *job)
{
    auto_free char *key = object_key(job);
    json_t *row = add_row(rows);
    add_cell(row, "%s", key);
    add_cell(row, "%s", state_of(job));
    add_cell(row, "%" PRId64, object_integer(job, "status.plan.revision", 0));
    add_cell(row, "%" PRId64, object_integer(job, "status.allocatedGPUs", 0));
    add_cell(row, "%" PRId64, object_integer(job, "status.restarts", 0));
    add_cell(row, "%" PRId64, object_integer(job, "status.replans", 0));
    add_cell(row, "%s",
             waits(job) ? reason_of(job) : object_text(job, "status.plan.summary"));
}

static void print_end(const struct narration *report, const json_t *jobs)
{
    static const char *const headings[] = { "JOB",      "STATE",   "PLAN", "GPUS",
                                            "RESTARTS", "REPLANS", "" };
    json_auto_t *rows = json_array();
    add_headings(rows, headings, sizeof headings / sizeof *headings);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        add_job_row(rows, job);
    }
    auto_free char *table = draw_table(rows);
    fprintf(report->out, "\nAfter %.0f s:\n\n%s",
            (double)simulation_now_ms(report->simulation) / 1000,
            json_array_size(jobs) ? table : "there is no job\n");
}

static void print_json(struct narration *report, const json_t *jobs)
{
    json_auto_t *shown = json_array();
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        json_array_append_new(shown, json_pack("{s:s, s:s, s:s, s:O?}", "namespace",
                                               object_text(job, "metadata.namespace"),
                                               "name", object_text(job, "metadata.name"),
                                               "state", state_of(job), "status",
                                               object_at(job, "status")));
    }
    json_auto_t *document = json_pack("{s:O, s:O, s:O}", "cluster", report->cluster,
                                      "timeline", report->timeline, "jobs", shown);
    json_dumpf(document, report->out, JSON_INDENT(1));
    fputc('\n', report->out);
}

size_t narration_end(struct narration *report)
{
    struct api_server *server = simulation_server(report->simulation);
    json_auto_t *jobs = json_array();
    size_t waiting = 0;
    for (size_t i = 0; i < api_server_count(server, "heterotrainingjobs"); i++) {
        json_t *job = api_server_at(server, "heterotrainingjobs", i);
        json_array_append(jobs, job);
        waiting += waits(job);
    }
    if (report->options.is_json)
        print_json(report, jobs);
    else
        print_end(report, jobs);
    return waiting;
}

/* ---- life ---- */

struct narration *narration_new(struct simulation *simulation, FILE *out,
                                const struct narration_options *options)
{
    struct narration *report = xcalloc(1, sizeof *report);
    report->simulation = simulation;
    report->out = out;
    report->options = *options;
    report->timeline = json_array();
    report->cluster = json_array();
    report->shown = json_object();
    api_server_observe(simulation_server(simulation), on_change, report);
    simulated_cluster_on_event(simulation_cluster(simulation), on_scripted, report);
    return report;
}

void narration_free(struct narration *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->entry_count; i++)
        entry_fini(&report->entries[i]);
    free(report->entries);
    json_decref(report->timeline);
    json_decref(report->cluster);
    json_decref(report->shown);
    free(report);
}
