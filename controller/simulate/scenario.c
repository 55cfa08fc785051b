#include "controller/simulate/scenario.h"

#include <stdlib.h>
#include <string.h>

int64_t scenario_duration_ms(const char *text)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
    int64_t total_ms = 0;
    do {
        size_t digits = strspn(text, "0123456789");
        if (!digits || digits > 9)
            return -1;
        int64_t number = atoll(text);
        text += digits;
        size_t letters = strcspn(text, "0123456789");
        size_t i = 0;
        while (i < 4 && (strlen(units[i].unit) != letters ||
                         strncmp(units[i].unit, text, letters) != 0))
            i++;
        if (i == 4)
            return -1;
        total_ms += number * units[i].ms;
        text += letters;
    } while (*text);
    return total_ms;
}

/* ---- what follows the subject: each reads `rest` into `ret`, or returns false ---- */

static bool read_nothing(const char *rest, struct scenario_event *ret)
{
    (void)ret;
    return !*rest;
}

static bool read_number(const char *rest, struct scenario_event *ret)
{
    char *end;
    ret->number = strtoll(rest, &end, 10);
    return *rest && !*end && ret->number >= 0 && ret->number <= 255;
}

static bool read_exit_code(const char *rest, struct scenario_event *ret)
{
    ret->number = 1;
    return !*rest || read_number(rest, ret);
}

/* KEY[=VALUE][:EFFECT] */
static bool read_taint(const char *rest, struct scenario_event *ret)
{
    size_t key = strcspn(rest, "=:");
    size_t effect = strcspn(rest, ":");
    bool has_effect = rest[effect] && rest[effect + 1];
    if (!key || strpbrk(rest, " \t") || (ret->kind == EVENT_TAINT && !has_effect))
        return false;
    ret->objects = json_pack("{s:s%}", "key", rest, key);
    if (key < effect)
        json_object_set_new(ret->objects, "value",
                            json_stringn(rest + key + 1, effect - key - 1));
    if (has_effect)
        json_object_set_new(ret->objects, "effect", json_string(rest + effect + 1));
    return true;
}

/* KEY=VALUE, or KEY- to remove it */
static bool read_mark(const char *rest, struct scenario_event *ret)
{
    size_t length = strlen(rest);
    const char *equals = strchr(rest, '=');
    bool removes = !equals && length > 1 && rest[length - 1] == '-';
    if (equals == rest || (!equals && !removes))
        return false;
    auto_free char *key =
        xasprintf("%.*s", (int)(equals ? (size_t)(equals - rest) : length - 1), rest);
    ret->objects =
        json_pack("{s:o}", key, equals ? json_string(equals + 1) : json_null());
    return true;
}

/* TYPE STATUS */
static bool read_condition(const char *rest, struct scenario_event *ret)
{
    size_t type = strcspn(rest, " \t");
    const char *status = rest + type + strspn(rest + type, " \t");
    if (strcmp(status, "True") != 0 && strcmp(status, "False") != 0 &&
        strcmp(status, "Unknown") != 0)
        return false;
    ret->objects = json_pack("{s:s%, s:s}", "type", rest, type, "status", status);
    return true;
}

static bool read_patch(const char *rest, struct scenario_event *ret)
{
    ret->objects = json_loads(rest, 0, NULL);
    return json_is_object(ret->objects);
}

/* ---- lines ---- */

static const struct verb {
    const char *verb;
    enum scenario_subject subject;
    enum scenario_event_kind kind;
    bool (*read)(const char *rest, struct scenario_event *ret);
    const char *expected; /* after the subject */
} verbs[] = {
    { "delete", OF_NODE, EVENT_DELETE_NODE, read_nothing, "nothing" },
    { "create", OF_NODE, EVENT_CREATE_NODE, read_nothing, "nothing" },
    { "restore", OF_NODE, EVENT_CREATE_NODE, read_nothing, "nothing" },
    { "cordon", OF_NODE, EVENT_CORDON, read_nothing, "nothing" },
    { "uncordon", OF_NODE, EVENT_UNCORDON, read_nothing, "nothing" },
    { "notready", OF_NODE, EVENT_NOT_READY, read_nothing, "nothing" },
    { "ready", OF_NODE, EVENT_READY, read_nothing, "nothing" },
    { "gpus", OF_NODE, EVENT_GPUS, read_number, "a number from 0 to 255" },
    { "taint", OF_NODE, EVENT_TAINT, read_taint, "KEY[=VALUE]:EFFECT" },
    { "untaint", OF_NODE, EVENT_UNTAINT, read_taint, "KEY[:EFFECT]" },
    { "label", OF_NODE, EVENT_LABEL, read_mark, "KEY=VALUE or KEY-" },
    { "annotate", OF_NODE, EVENT_ANNOTATE, read_mark, "KEY=VALUE or KEY-" },
    { "condition", OF_NODE, EVENT_CONDITION, read_condition, "TYPE True|False|Unknown" },
    { "occupy", OF_NODE, EVENT_OCCUPY, read_number, "a number from 0 to 255" },
    { "release", OF_NODE, EVENT_RELEASE, read_nothing, "nothing" },
    { "apply", OF_FILE, EVENT_APPLY, read_nothing, "nothing" },
    { "delete", OF_JOB, EVENT_DELETE_JOB, read_nothing, "nothing" },
    { "succeed", OF_JOB, EVENT_SUCCEED_JOB, read_nothing, "nothing" },
    { "suspend", OF_JOB, EVENT_SUSPEND_JOB, read_nothing, "nothing" },
    { "resume", OF_JOB, EVENT_RESUME_JOB, read_nothing, "nothing" },
    { "patch", OF_JOB, EVENT_PATCH_JOB, read_patch, "a JSON merge patch" },
    { "label", OF_JOB, EVENT_LABEL, read_mark, "KEY=VALUE or KEY-" },
    { "fail", OF_POD, EVENT_FAIL_POD, read_exit_code, "a number from 0 to 255" },
    { "delete", OF_POD, EVENT_DELETE_POD, read_nothing, "nothing" },
    { "evict", OF_POD, EVENT_EVICT_POD, read_nothing, "nothing" },
};

static const char *const subjects[] = {
    [OF_NODE] = "node/", [OF_JOB] = "job/", [OF_POD] = "pod/", [OF_FILE] = ""
};

/* "node/N" or "job/NS/NAME" into `ret`; false if it does not begin with `prefix`. */
static bool read_subject(const char *word, const char *prefix, struct scenario_event *ret)
{
    size_t length = strlen(prefix);
    if (strncmp(word, prefix, length) != 0 || !word[length])
        return false;
    const char *slash = *prefix ? strchr(word + length, '/') : NULL;
    const char *name = slash ? slash + 1 : word + length;
    ret->ns = slash ? xasprintf("%.*s", (int)(slash - word - (long)length), word + length)
                    : xstrdup("");
    ret->name = xstrdup(name);
    return true;
}

static int read_event(const char *verb, const char *subject, const char *rest,
                      scenario_load *load, struct scenario_event *ret,
                      struct het_error *err)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verb, verbs[i].verb) != 0 ||
            !read_subject(subject, subjects[verbs[i].subject], ret))
            continue;
        ret->kind = verbs[i].kind;
        ret->subject = verbs[i].subject;
        if (!verbs[i].read(rest, ret))
            return het_fail(err, HET_BAD_INPUT, "expected %s after \"%s %s\"",
                            verbs[i].expected, verb, subject);
        if (ret->kind != EVENT_APPLY)
            return 0;
        ret->objects = load(ret->name, err);
        return ret->objects ? 0 : -1;
    }
    return het_fail(err, HET_BAD_INPUT,
                    "\"%s %s\" is not one of: delete, restore, cordon, uncordon, "
                    "notready, ready, release node/NAME; gpus, occupy node/NAME COUNT; "
                    "taint, untaint, label, annotate node/NAME WHAT; condition node/NAME "
                    "TYPE STATUS; apply FILE; delete, succeed, suspend, resume job/NAME; "
                    "patch, label job/NAME WHAT; fail, delete, evict pod/NAME",
                    verb, subject);
}

/* Cuts the next word off `rest`; "" if there is none. */
static const char *next_word(char **rest)
{
    *rest += strspn(*rest, " \t");
    char *word = *rest;
    *rest += strcspn(*rest, " \t");
    if (**rest)
        *(*rest)++ = '\0';
    *rest += strspn(*rest, " \t");
    return word;
}

int scenario_event_parse(const char *text, scenario_load *load,
                         struct scenario_event *ret, struct het_error *err)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy;
    const char *time = next_word(&rest);
    const char *verb = next_word(&rest);
    const char *subject = next_word(&rest);
    for (size_t end = strlen(rest); end && strchr(" \t", rest[end - 1]);)
        rest[--end] = '\0';
    struct scenario_event event = { .after_ms = scenario_duration_ms(time) };
    if (!*subject)
        return het_fail(err, HET_BAD_INPUT,
                        "event \"%s\": expected TIME VERB SUBJECT, like \"60s delete "
                        "node/NAME\"",
                        text);
    if (event.after_ms < 0)
        return het_fail(err, HET_BAD_INPUT,
                        "event \"%s\": \"%s\" is not a time like 90s or 1m30s", text,
                        time);
    if (read_event(verb, subject, rest, load, &event, err) < 0) {
        scenario_event_fini(&event);
        return het_wrap(err, "event \"%s\"", text);
    }
    event.text = xasprintf("%s %s%s%s", verb, subject, *rest ? " " : "", rest);
    *ret = event;
    return 0;
}

void scenario_event_fini(struct scenario_event *event)
{
    if (!event)
        return;
    free(event->text);
    free(event->ns);
    free(event->name);
    json_decref(event->objects);
}
