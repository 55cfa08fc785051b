#include "controller/cluster/plan_object.h"

#include "controller/base/object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int64_t plan_object_number(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    return *text && !*end && number >= 0 && number <= INT32_MAX ? number : 0;
}

/* ---- names ---- */

const char *plan_object_name(struct het_arena *arena, const char *job, int64_t generation)
{
    return het_arena_printf(arena, "%s-plan-%" PRId64, job, generation);
}

const char *plan_object_candidate_name(struct het_arena *arena, const char *job)
{
    return het_arena_printf(arena, "%s-candidate", job);
}

const char *plan_object_pod_name(struct het_arena *arena, const char *job,
                                 int64_t generation, int64_t index)
{
    return het_arena_printf(arena, "%s-%" PRId64 "-%" PRId64, job, generation, index);
}

/* What comes after "<job>-" in the object's name; NULL: its controller is no job, or has
 * another name. */
static const char *own_part(const json_t *object)
{
    const char *job = object_text(job_spec_find_owner(object), "name");
    const char *name = kube_name(object);
    size_t length = strlen(job);
    return length && !strncmp(name, job, length) && name[length] == '-'
               ? name + length + 1
               : NULL;
}

/* Reads a number as we write them, "0" or without a leading zero, up to INT32_MAX. */
static bool read_number(const char **at, int64_t *ret)
{
    char *end;
    bool is_number = (**at >= '1' && **at <= '9') ||
                     (**at == '0' && ((*at)[1] < '0' || (*at)[1] > '9'));
    long long number = is_number ? strtoll(*at, &end, 10) : 0;
    if (!is_number || number > INT32_MAX)
        return false;
    *at = end;
    *ret = number;
    return true;
}

int64_t plan_object_generation(const json_t *config_map)
{
    static const char word[] = "plan-";
    const char *at = own_part(config_map);
    const char *label = kube_label(config_map, LABEL_PLAN_REVISION);
    const char *job = object_text(job_spec_find_owner(config_map), "name");
    int64_t generation;
    if (!at || strncmp(at, word, strlen(word)) ||
        !json_is_true(json_object_get(config_map, "immutable")))
        return 0;
    at += strlen(word);
    bool is_labelled = !strcmp(label, at) &&
                       !strcmp(kube_label(config_map, LABEL_JOB_NAME), job);
    return is_labelled && read_number(&at, &generation) && !*at ? generation : 0;
}

bool plan_object_is_candidate(const json_t *config_map)
{
    const char *part = own_part(config_map);
    return part && !strcmp(part, "candidate") &&
           json_is_true(json_object_get(config_map, "immutable"));
}

bool plan_object_place(const json_t *pod, int64_t *ret_generation, int64_t *ret_index)
{
    const char *at = own_part(pod);
    int64_t generation, index;
    if (!at || !read_number(&at, &generation) || !generation || *at++ != '-' ||
        !read_number(&at, &index) || *at)
        return false;
    *ret_generation = generation;
    *ret_index = index;
    return true;
}

bool plan_object_is_of(const json_t *object, const json_t *job)
{
    const json_t *owner = job_spec_find_owner(object);
    return owner && !strcmp(object_text(owner, "uid"), kube_uid(job)) &&
           !strcmp(object_text(owner, "name"), kube_name(job)) &&
           !strcmp(kube_namespace(object), kube_namespace(job));
}

int64_t plan_object_known(const json_t *job)
{
    int64_t newest = object_integer(job, "status.plan.revision", 0);
    int64_t started = object_integer(job, "status.lastStart.revision", 0);
    return newest > started ? newest : started;
}

int64_t plan_object_horizon(const json_t *job)
{
    int64_t known = plan_object_known(job);
    return known < PLAN_OBJECT_LAST - PLAN_OBJECT_AHEAD ? known + PLAN_OBJECT_AHEAD
                                                        : PLAN_OBJECT_LAST;
}

/* ---- content ---- */

const struct het_plan *plan_object_read(struct het_arena *arena, const json_t *config_map)
{
    const char *text = json_string_value(
        json_object_get(json_object_get(config_map, "data"), "plan.json"));
    const struct het_plan *plan;
    if (!text || het_plan_json_text(arena, text, "plan.json", &plan, NULL) < 0 ||
        strcmp(het_plan_json_hash(arena, plan),
               kube_annotation(config_map, ANNOTATION_PLAN_HASH)))
        return NULL;
    return plan;
}
