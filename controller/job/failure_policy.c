#include "controller/job/failure_policy.h"

#include "controller/base/object.h"

#include <inttypes.h>
#include <string.h>

/* As in the schema. */
#define MAX_RULES      20
#define MAX_VALUES     255
#define MAX_CONDITIONS 20

static const char *const actions[] = {
    [FAILURE_COUNT] = "Count", [FAILURE_IGNORE] = "Ignore", [FAILURE_FAIL_JOB] = "FailJob"
};

/* Position of `text` in `words`, or `count`. */
static size_t position(const char *text, const char *const *words, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(text, words[i]) != 0)
        i++;
    return i;
}

static bool is_list(const json_t *json, size_t least, size_t most)
{
    return json_is_array(json) && json_array_size(json) >= least &&
           json_array_size(json) <= most;
}

/* ---- what is refused ---- */

static bool has_container(const json_t *pod_spec, const char *name)
{
    return object_find(json_object_get(pod_spec, "containers"), "name", name) ||
           object_find(json_object_get(pod_spec, "initContainers"), "name", name);
}

static int check_exit_codes(const json_t *codes, const json_t *pod_spec, const char *path,
                            struct het_error *err)
{
    static const char *const operators[] = { "In", "NotIn" };
    size_t chosen = position(object_text(codes, "operator"), operators, 2);
    int least = chosen ? 0 : 1; /* In could not match 0: it is no failure */
    const json_t *values = json_object_get(codes, "values");
    const char *container = object_text(codes, "containerName");
    bool good = is_list(values, 1, MAX_VALUES);
    for (size_t i = 0; good && i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        good = json_is_integer(value) && json_integer_value(value) >= least &&
               json_integer_value(value) <= 255;
    }
    if (chosen == 2)
        return het_fail(err, HET_BAD_INPUT, "%s.operator: must be In or NotIn", path);
    if (!good)
        return het_fail(
            err, HET_BAD_INPUT,
            "%s.values: must be a list of 1 to %d whole numbers from %d to 255", path,
            MAX_VALUES, least);
    if (json_object_get(codes, "containerName") && !has_container(pod_spec, container))
        return het_fail(err, HET_BAD_INPUT,
                        "%s.containerName: %.63s is no container of podTemplate.spec; "
                        "name one, or leave it out to mean all",
                        path, container);
    return 0;
}

static int check_conditions(const json_t *conditions, const char *path,
                            struct het_error *err)
{
    static const char *const statuses[] = { "True", "False", "Unknown", "" };
    if (!is_list(conditions, 1, MAX_CONDITIONS))
        return het_fail(err, HET_BAD_INPUT, "%s: must be a list of 1 to %d conditions",
                        path, MAX_CONDITIONS);
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        if (!*object_text(condition, "type"))
            return het_fail(err, HET_BAD_INPUT, "%s[%zu].type: is missing", path, i);
        if (position(object_text(condition, "status"), statuses, 4) == 4)
            return het_fail(err, HET_BAD_INPUT,
                            "%s[%zu].status: must be True, False or Unknown", path, i);
    }
    return 0;
}

static int check_rule(const json_t *rule, const json_t *pod_spec, const char *path,
                      struct het_error *err)
{
    const json_t *codes = json_object_get(rule, "onExitCodes");
    const json_t *conditions = json_object_get(rule, "onPodConditions");
    if (position(object_text(rule, "action"), actions, 3) == 3)
        return het_fail(err, HET_BAD_INPUT, "%s.action: must be FailJob, Ignore or Count",
                        path);
    if (!codes == !conditions)
        return het_fail(err, HET_BAD_INPUT,
                        "%s: give exactly one of onExitCodes and onPodConditions", path);
    auto_free char *below =
        xasprintf("%s.%s", path, codes ? "onExitCodes" : "onPodConditions");
    return codes ? check_exit_codes(codes, pod_spec, below, err)
                 : check_conditions(conditions, below, err);
}

int failure_policy_check(const json_t *rules, const json_t *pod_spec,
                         struct het_error *err)
{
    static const char where[] = "spec.failurePolicy.rules";
    if (rules && !is_list(rules, 0, MAX_RULES))
        return het_fail(err, HET_BAD_INPUT, "%s: must be a list of at most %d rules",
                        where, MAX_RULES);
    for (size_t i = 0; i < json_array_size(rules); i++) {
        auto_free char *path = xasprintf("%s[%zu]", where, i);
        if (check_rule(json_array_get(rules, i), pod_spec, path, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- what matches ---- */

enum failure_action failure_policy_action(const json_t *rule)
{
    return (enum failure_action)position(object_text(rule, "action"), actions, 3);
}

bool failure_policy_asks_exit_code(const json_t *rule)
{
    return json_object_get(rule, "onExitCodes");
}

static bool has_value(const json_t *values, int64_t code)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_integer_value(json_array_get(values, i)) == code)
            return true;
    return false;
}

static const char *match_containers(struct het_arena *arena, const json_t *codes,
                                    const json_t *statuses)
{
    const char *only = object_text(codes, "containerName");
    bool is_in = !strcmp(object_text(codes, "operator"), "In");
    for (size_t i = 0; i < json_array_size(statuses); i++) {
        const json_t *container = json_array_get(statuses, i);
        const char *name = object_text(container, "name");
        int64_t code = object_integer(container, "state.terminated.exitCode", 0);
        if (code && (!*only || !strcmp(name, only)) &&
            has_value(json_object_get(codes, "values"), code) == is_in)
            return het_arena_printf(
                arena, "container %.63s ended with exit code %" PRId64, name, code);
    }
    return NULL;
}

static const char *match_conditions(struct het_arena *arena, const json_t *wanted,
                                    const json_t *pod)
{
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const char *type = object_text(json_array_get(wanted, i), "type");
        const char *status = object_text(json_array_get(wanted, i), "status");
        const char *expected = *status ? status : "True";
        if (!strcmp(object_condition(pod, type), expected))
            return het_arena_printf(arena, "condition %.317s is %s", type, expected);
    }
    return NULL;
}

const char *failure_policy_match(struct het_arena *arena, const json_t *rule,
                                 const json_t *pod)
{
    const json_t *codes = json_object_get(rule, "onExitCodes");
    if (!codes)
        return match_conditions(arena, json_object_get(rule, "onPodConditions"), pod);
    const char *why =
        match_containers(arena, codes, object_at(pod, "status.containerStatuses"));
    return why ? why
               : match_containers(arena, codes,
                                  object_at(pod, "status.initContainerStatuses"));
}
