#include "controller/simulate/api_server/verbs.h"

#include "controller/base/timestamp.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/api_server/merge.h"
#include "controller/simulate/api_server/refusal.h"
#include "planner/modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STORED = 1536 << 10, /* etcd --max-request-bytes */
    DEFAULT_GRACE_S = 30,
    FIRST_MINOR_WITH_GATES = 27, /* PodSchedulingReadiness is on by default */
};

static struct refusal_subject subject_of(const struct target *target)
{
    return (struct refusal_subject){ .group = target->kind->group,
                                     .plural = target->kind->plural,
                                     .kind = target->kind->name,
                                     .name = target->name };
}

static int refuse(json_t *status, json_t **ret_body)
{
    *ret_body = status;
    return refusal_code(status);
}

static int refuse_conflict(const struct target *target, const char *why,
                           json_t **ret_body)
{
    struct refusal_subject subject = subject_of(target);
    return refuse(refusal_conflict(&subject, why), ret_body);
}

static json_t *find(const struct verbs *registry, const struct target *target)
{
    return storage_find(registry->history, target->kind, target->ns, target->name);
}

static json_t *time_text(int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(ms, text);
    return json_string(text);
}

static uint64_t mix(uint64_t value)
{
    return het_random_next(&value);
}

/* A version 4 UUID that no other object of this registry has. */
static json_t *next_uid(struct verbs *registry)
{
    uint64_t high = mix(registry->seed ^ mix(++registry->uids));
    uint64_t low = mix(high ^ registry->uids);
    return json_sprintf(
        "%08llx-%04llx-4%03llx-%04llx-%012llx", (unsigned long long)(high >> 32),
        (unsigned long long)(high >> 16 & 0xffff), (unsigned long long)(high & 0xfff),
        (unsigned long long)(0x8000 | (low >> 48 & 0x3fff)),
        (unsigned long long)(low & 0xffffffffffffu));
}

static void generate_name(struct verbs *registry, json_t *object)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* util/rand */
    const char *base = object_text(object, "metadata.generateName");
    if (!*base || *object_text(object, "metadata.name"))
        return;
    uint64_t bits = mix(registry->seed ^ mix(++registry->uids));
    char suffix[6] = "";
    for (int i = 0; i < 5; i++, bits /= sizeof letters - 1)
        suffix[i] = letters[bits % (sizeof letters - 1)];
    object_set(object, "metadata.name", json_sprintf("%s%s", base, suffix));
}

/* ---- what every write checks ---- */

/* Whether `object` is what the path speaks of; NULL or a Status. Fills in what it leaves
 * out. */
static json_t *check_identity(const struct target *target, json_t *object)
{
    auto_free char *version = kind_api_version(target->kind);
    object_default(object, "kind", json_string(target->kind->name));
    object_default(object, "apiVersion", json_string(version));
    json_t *metadata = object_at(object, "metadata");
    if (!json_is_object(object) || (metadata && !json_is_object(metadata)))
        return refusal_bad_request("the request is not an object with metadata");
    if (strcmp(object_text(object, "kind"), target->kind->name) != 0 ||
        strcmp(object_text(object, "apiVersion"), version) != 0)
        return refusal_bad_request("%s in version \"%s\" cannot be handled as a %s",
                                   object_text(object, "kind"),
                                   object_text(object, "apiVersion"), target->kind->name);
    if (*target->ns)
        object_default(object, "metadata.namespace", json_string(target->ns));
    if (strcmp(object_text(object, "metadata.namespace"), target->ns) != 0)
        return refusal_bad_request("the namespace of the provided object does not match "
                                   "the namespace sent on the request");
    if (*target->name)
        object_default(object, "metadata.name", json_string(target->name));
    if (*target->name && strcmp(object_text(object, "metadata.name"), target->name) != 0)
        return refusal_bad_request("the name of the object (%s) does not match the name "
                                   "on the URL (%s)",
                                   object_text(object, "metadata.name"), target->name);
    json_t *spec = object_at(object, "spec");
    return spec && !json_is_object(spec) ? refusal_bad_request("spec is not an object")
                                         : NULL;
}

static json_t *check_namespace(const struct verbs *registry, const struct target *target,
                               const char *name)
{
    const struct kind *namespaces = kind_find_plural("namespaces");
    if (!target->kind->namespaced)
        return NULL;
    const json_t *ns = storage_find(registry->history, namespaces, "", target->ns);
    if (!ns) {
        struct refusal_subject subject = { "", "namespaces", "Namespace", target->ns };
        return refusal_not_found(&subject);
    }
    if (!object_at(ns, "metadata.deletionTimestamp"))
        return NULL;
    return refusal_of(403, "Forbidden",
                      "%s \"%s\" is forbidden: unable to create new content in namespace "
                      "%s because it is being terminated",
                      target->kind->plural, name, target->ns);
}

static json_t *check_content(const struct target *target, const json_t *before,
                             const json_t *object)
{
    json_t *causes = kind_check(target->kind, before, object);
    struct refusal_subject subject = subject_of(target);
    subject.name = object_text(object, "metadata.name");
    if (json_array_size(causes))
        return refusal_invalid(&subject, causes);
    json_decref(causes);
    if (json_dumpb(object, NULL, 0, JSON_COMPACT) > MAX_STORED)
        return refusal_of(500, "InternalError", "etcdserver: request is too large");
    return NULL;
}

static int commit(struct verbs *registry, const struct target *target, json_t *object,
                  json_t **ret_body)
{
    bool is_new = !storage_find(registry->history, target->kind, target->ns,
                                object_text(object, "metadata.name"));
    *ret_body = object;
    if (!target->dry_run)
        storage_put(registry->history, target->kind, json_incref(object),
                    registry->now_ms);
    return is_new ? 201 : 200;
}

/* ---- what admission plugins and old servers make of an object ---- */

/* A server silently drops unknown fields. */
static void drop_unknown(const struct verbs *registry, const struct kind *kind,
                         json_t *object)
{
    if (!strcmp(kind->name, "Pod") && registry->minor < FIRST_MINOR_WITH_GATES)
        object_remove(object, "spec.schedulingGates");
}

/* The class that a pod without one gets; NULL if none is the default. */
static const json_t *default_class(const struct verbs *registry)
{
    const struct kind *classes = kind_find_plural("priorityclasses");
    for (size_t i = 0; i < storage_count(registry->history, classes); i++) {
        const json_t *class = storage_at(registry->history, classes, i);
        if (object_is_true(class, "globalDefault"))
            return class;
    }
    return NULL;
}

/* The Priority admission plugin: a new pod gets the number of its class. NULL or a
 * Status. */
static json_t *admit_priority(const struct verbs *registry, json_t *pod)
{
    const struct kind *classes = kind_find_plural("priorityclasses");
    const char *name = object_text(pod, "spec.priorityClassName");
    const json_t *class = *name ? storage_find(registry->history, classes, "", name)
                                : default_class(registry);
    if (*name && !class)
        return refusal_of(403, "Forbidden",
                          "pods \"%s\" is forbidden: no PriorityClass with name %s was "
                          "found",
                          object_text(pod, "metadata.name"), name);
    int64_t priority = object_integer(class, "value", 0);
    if (object_integer(pod, "spec.priority", priority) != priority)
        return refusal_of(
            403, "Forbidden",
            "pods \"%s\" is forbidden: the integer value of priority (%lld) "
            "must not be provided in pod spec; priority admission "
            "controller computed %lld from the given PriorityClass name",
            object_text(pod, "metadata.name"),
            (long long)object_integer(pod, "spec.priority", 0), (long long)priority);
    if (!class)
        return NULL;
    object_set(pod, "spec.priorityClassName",
               json_incref(object_at(class, "metadata.name")));
    object_set(pod, "spec.priority", json_integer(priority));
    const char *policy = object_text(class, "preemptionPolicy");
    if (*policy)
        object_default(pod, "spec.preemptionPolicy", json_string(policy));
    return NULL;
}

/* ---- create ---- */

static void stamp(struct verbs *registry, const struct kind *kind, json_t *object)
{
    static const char *const not_ours[] = { "metadata.deletionTimestamp",
                                            "metadata.deletionGracePeriodSeconds",
                                            "metadata.selfLink" };
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        object_remove(object, not_ours[i]);
    generate_name(registry, object);
    object_set(object, "metadata.uid", next_uid(registry));
    object_set(object, "metadata.creationTimestamp", time_text(registry->now_ms));
    if (kind->is_custom)
        object_set(object, "metadata.generation", json_integer(1));
}

int verbs_create(struct verbs *registry, const struct target *target, json_t *object,
                 json_t **ret_body)
{
    json_auto_t *made = json_deep_copy(object);
    json_decref(object);
    json_t *refused = check_identity(target, made);
    if (refused)
        return refuse(refused, ret_body);
    if (*object_text(made, "metadata.resourceVersion"))
        return refuse(refusal_bad_request("resourceVersion should not be set on objects "
                                          "to be created"),
                      ret_body);
    /* Kubelets register with a status; everybody else's is dropped. */
    if (target->kind->has_status && strcmp(target->kind->name, "Node") != 0)
        object_remove(made, "status");
    drop_unknown(registry, target->kind, made);
    stamp(registry, target->kind, made);
    const char *name = object_text(made, "metadata.name");
    refused = check_namespace(registry, target, name);
    if (!refused && !strcmp(target->kind->name, "Pod"))
        refused = admit_priority(registry, made);
    kind_fill(target->kind, made, registry->now_ms);
    if (!refused)
        refused = check_content(target, NULL, made);
    if (!refused && storage_find(registry->history, target->kind, target->ns, name)) {
        struct refusal_subject subject = subject_of(target);
        subject.name = name;
        refused = refusal_already_exists(&subject);
    }
    if (refused)
        return refuse(refused, ret_body);
    return commit(registry, target, json_incref(made), ret_body);
}

/* ---- update ---- */

/* What a client cannot change: put back into `object` what `before` says. */
static void keep_fixed(const struct target *target, const json_t *before, json_t *object)
{
    static const char *const fixed[] = { "metadata.uid",
                                         "metadata.creationTimestamp",
                                         "metadata.deletionTimestamp",
                                         "metadata.deletionGracePeriodSeconds",
                                         "metadata.generation",
                                         "metadata.resourceVersion",
                                         "metadata.generateName" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        json_t *value = object_at(before, fixed[i]);
        if (value)
            object_set(object, fixed[i], json_incref(value));
        else
            object_remove(object, fixed[i]);
    }
    const json_t *status = object_at(before, "status");
    if (!target->kind->has_status || *target->subresource)
        return;
    if (status)
        object_set(object, "status", json_deep_copy(status));
    else
        object_remove(object, "status");
}

/* `before` with the status of `object`: all that the status subresource can change. */
static json_t *only_status(const json_t *before, const json_t *object)
{
    json_t *result = json_deep_copy(before);
    static const char *const parts[] = { "status", "metadata.managedFields" };
    for (size_t i = 0; i < 2; i++) {
        json_t *value = object_at(object, parts[i]);
        if (value)
            object_set(result, parts[i], json_deep_copy(value));
        else
            object_remove(result, parts[i]);
    }
    return result;
}

/* Whether something outside metadata and status differs. */
static bool spec_differs(const json_t *a, const json_t *b)
{
    json_auto_t *left = json_deep_copy(a);
    json_auto_t *right = json_deep_copy(b);
    static const char *const parts[] = { "metadata", "status" };
    for (size_t i = 0; i < 2; i++) {
        json_object_del(left, parts[i]);
        json_object_del(right, parts[i]);
    }
    return !json_equal(left, right);
}

/* Whether nothing holds an object that is being deleted any more. */
static bool may_go(const json_t *object)
{
    return object_at(object, "metadata.deletionTimestamp") &&
           !json_array_size(object_at(object, "metadata.finalizers")) &&
           !json_array_size(object_at(object, "spec.finalizers")) &&
           object_integer(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

static json_t *check_preconditions(const struct target *target, const json_t *before,
                                   const json_t *object)
{
    const char *version = object_text(object, "metadata.resourceVersion");
    const char *uid = object_text(object, "metadata.uid");
    struct refusal_subject subject = subject_of(target);
    if (*uid && strcmp(uid, object_text(before, "metadata.uid")) != 0) {
        auto_free char *why = xasprintf(
            "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid,
            object_text(before, "metadata.uid"));
        return refusal_conflict(&subject, why);
    }
    if (*version && strcmp(version, object_text(before, "metadata.resourceVersion")) != 0)
        return refusal_conflict(&subject, "the object has been modified; please apply "
                                          "your changes to the latest version and try "
                                          "again");
    return NULL;
}

/* Makes `object` (taken, not shared) what is stored, unless it is refused or equal. */
static int replace(struct verbs *registry, const struct target *target,
                   const json_t *before, json_t *object, json_t **ret_body)
{
    json_auto_t *given = object;
    json_t *refused = check_preconditions(target, before, given);
    if (refused)
        return refuse(refused, ret_body);
    json_auto_t *made = *target->subresource ? only_status(before, given)
                                             : json_incref(given);
    keep_fixed(target, before, made);
    drop_unknown(registry, target->kind, made);
    kind_fill(target->kind, made, registry->now_ms);
    refused = check_content(target, before, made);
    if (refused)
        return refuse(refused, ret_body);
    if (target->kind->is_custom && spec_differs(before, made))
        object_set(made, "metadata.generation",
                   json_integer(object_integer(before, "metadata.generation", 0) + 1));
    if (json_equal(before, made)) {
        *ret_body = json_incref(made);
        return 200;
    }
    if (may_go(made) && !target->dry_run) {
        *ret_body = json_incref(made);
        storage_remove(registry->history, target->kind, json_incref(made),
                       registry->now_ms);
        return 200;
    }
    return commit(registry, target, json_incref(made), ret_body);
}

static int refuse_not_found(const struct target *target, json_t **ret_body)
{
    struct refusal_subject subject = subject_of(target);
    return refuse(refusal_not_found(&subject), ret_body);
}

int verbs_update(struct verbs *registry, const struct target *target, json_t *object,
                 json_t **ret_body)
{
    json_auto_t *given = json_deep_copy(object);
    json_decref(object);
    json_t *refused = check_identity(target, given);
    if (refused)
        return refuse(refused, ret_body);
    const json_t *before = find(registry, target);
    if (!before)
        return refuse_not_found(target, ret_body);
    if (target->kind->is_custom && !*object_text(given, "metadata.resourceVersion")) {
        json_t *causes = json_array();
        refusal_add_cause(causes, "FieldValueInvalid", "metadata.resourceVersion",
                          "Invalid value: 0: must be specified for an update");
        struct refusal_subject subject = subject_of(target);
        return refuse(refusal_invalid(&subject, causes), ret_body);
    }
    return replace(registry, target, before, json_incref(given), ret_body);
}

/* ---- patch ---- */

/* Applies where there is nothing yet: a creation. */
static int apply_new(struct verbs *registry, const struct target *target, json_t *applied,
                     json_t **ret_body)
{
    if (*object_text(applied, "metadata.uid")) {
        auto_free char *why = xasprintf("uid mismatch: the provided object specified uid "
                                        "%s, and no existing object was found",
                                        object_text(applied, "metadata.uid"));
        json_decref(applied);
        return refuse_conflict(target, why, ret_body);
    }
    return verbs_create(registry, target, applied, ret_body);
}

static int apply(struct verbs *registry, const struct target *target,
                 const json_t *before, const struct patch *patch, json_t **ret_body)
{
    json_auto_t *applied = json_deep_copy(patch->body);
    json_t *refused = check_identity(target, applied);
    if (refused)
        return refuse(refused, ret_body);
    if (object_at(applied, "metadata.managedFields"))
        return refuse(refusal_bad_request("metadata.managedFields must be nil"),
                      ret_body);
    if (!before && *target->subresource)
        return refuse_not_found(target, ret_body);
    /* The main path of a kind with a status subresource does not own the status. */
    if (target->kind->has_status && !*target->subresource)
        object_remove(applied, "status");
    json_auto_t *nothing = json_object();
    auto_free char *conflict = NULL;
    json_t *merged = merge_apply(before ? before : nothing, applied, patch->manager,
                                 target->subresource, patch->force, registry->now_ms,
                                 &conflict);
    if (!merged)
        return refuse(
            refusal_of(409, "Conflict", "Apply failed with 1 conflict: %s", conflict),
            ret_body);
    return before ? replace(registry, target, before, merged, ret_body)
                  : apply_new(registry, target, merged, ret_body);
}

/* `before` after a merge patch or JSON patch; NULL and a Status if that cannot be. */
static json_t *patched_object(const json_t *before, const struct patch *patch,
                              json_t **ret_refused)
{
    bool is_list = json_is_array(patch->body);
    if (is_list != (patch->type == PATCH_OPERATIONS) ||
        (!is_list && !json_is_object(patch->body))) {
        *ret_refused = refusal_bad_request("the patch is not %s",
                                           is_list ? "an object" : "what its type says");
        return NULL;
    }
    if (!is_list)
        return merge_patch(before, patch->body);
    auto_free char *why = NULL;
    json_t *patched = merge_operations(before, patch->body, &why);
    if (!patched)
        *ret_refused =
            refusal_of(422, "Invalid",
                       "the server rejected our request due to an error in our "
                       "request: %s",
                       why);
    return patched;
}

int verbs_patch(struct verbs *registry, const struct target *target,
                const struct patch *patch, json_t **ret_body)
{
    const json_t *before = find(registry, target);
    if (patch->type == PATCH_APPLY)
        return apply(registry, target, before, patch, ret_body);
    if (!before)
        return refuse_not_found(target, ret_body);
    json_t *refused = NULL;
    json_auto_t *patched = patched_object(before, patch, &refused);
    if (!refused)
        refused = check_identity(target, patched);
    if (refused)
        return refuse(refused, ret_body);
    return replace(registry, target, before, json_incref(patched), ret_body);
}

/* ---- delete ---- */

static json_t *check_delete_preconditions(const struct target *target,
                                          const json_t *before, const json_t *options)
{
    static const struct {
        const char *option, *field, *name;
    } conditions[] = {
        { "preconditions.uid", "metadata.uid", "UID" },
        { "preconditions.resourceVersion", "metadata.resourceVersion",
          "ResourceVersion" },
    };
    for (size_t i = 0; i < 2; i++) {
        const char *wanted = object_text(options, conditions[i].option);
        const char *actual = object_text(before, conditions[i].field);
        if (!*wanted || !strcmp(wanted, actual))
            continue;
        auto_free char *why = xasprintf(
            "Precondition failed: %s in precondition: %s, %s in object meta: %s",
            conditions[i].name, wanted, conditions[i].name, actual);
        struct refusal_subject subject = subject_of(target);
        return refusal_conflict(&subject, why);
    }
    return NULL;
}

/* Seconds until the object may go. Only a pod that may be running is given any. */
static int64_t grace_of(const struct target *target, const json_t *object,
                        const json_t *options)
{
    const char *phase = object_text(object, "status.phase");
    if (strcmp(target->kind->name, "Pod") != 0 ||
        !*object_text(object, "spec.nodeName") || !strcmp(phase, "Succeeded") ||
        !strcmp(phase, "Failed"))
        return 0;
    int64_t own =
        object_integer(object, "spec.terminationGracePeriodSeconds", DEFAULT_GRACE_S);
    int64_t asked = object_integer(options, "gracePeriodSeconds", own);
    /* A second deletion can only shorten the first. */
    int64_t left = object_integer(object, "metadata.deletionGracePeriodSeconds", asked);
    return asked < left ? asked : left;
}

static void mark_deleted(struct verbs *registry, const struct target *target,
                         json_t *object, int64_t grace_s)
{
    int64_t start_ms = registry->now_ms;
    int64_t before_s = object_integer(object, "metadata.deletionGracePeriodSeconds", 0);
    int64_t deleted_ms;
    if (timestamp_parse(object_text(object, "metadata.deletionTimestamp"), &deleted_ms) ==
        0)
        start_ms = deleted_ms - before_s * 1000;
    else if (target->kind->is_custom)
        object_set(object, "metadata.generation",
                   json_integer(object_integer(object, "metadata.generation", 0) + 1));
    object_set(object, "metadata.deletionTimestamp",
               time_text(start_ms + grace_s * 1000));
    object_set(object, "metadata.deletionGracePeriodSeconds", json_integer(grace_s));
    if (!strcmp(target->kind->name, "Namespace"))
        object_set(object, "status.phase", json_string("Terminating"));
}

static int removed(struct verbs *registry, const struct target *target, json_t *object,
                   json_t **ret_body)
{
    struct refusal_subject subject = subject_of(target);
    *ret_body = target->kind->shows_deleted
                    ? json_incref(object)
                    : refusal_none(&subject, object_text(object, "metadata.uid"));
    if (!target->dry_run)
        storage_remove(registry->history, target->kind, json_incref(object),
                       registry->now_ms);
    return 200;
}

int verbs_delete(struct verbs *registry, const struct target *target,
                 const json_t *options, json_t **ret_body)
{
    const json_t *before = find(registry, target);
    if (!before)
        return refuse_not_found(target, ret_body);
    json_t *refused = check_delete_preconditions(target, before, options);
    if (refused)
        return refuse(refused, ret_body);
    json_auto_t *object = json_deep_copy(before);
    int64_t grace_s = grace_of(target, object, options);
    bool again = object_at(before, "metadata.deletionTimestamp");
    if (!again ||
        grace_s < object_integer(before, "metadata.deletionGracePeriodSeconds", 0))
        mark_deleted(registry, target, object, grace_s);
    if (may_go(object)) {
        if (!again && grace_s == 0) {
            /* Gone at once: the last state does not show the marks. */
            json_auto_t *last = json_deep_copy(before);
            return removed(registry, target, last, ret_body);
        }
        return removed(registry, target, object, ret_body);
    }
    if (json_equal(before, object)) {
        *ret_body = json_incref(object);
        return 200;
    }
    return commit(registry, target, json_incref(object), ret_body);
}

/* ---- administration ---- */

static void ensure_namespace(struct verbs *registry, const char *name)
{
    const struct kind *namespaces = kind_find_plural("namespaces");
    if (!*name || storage_find(registry->history, namespaces, "", name))
        return;
    struct target target = {
        .kind = namespaces, .ns = "", .name = "", .subresource = ""
    };
    json_t *body = NULL;
    verbs_create(registry, &target, json_pack("{s:{s:s}}", "metadata", "name", name),
                 &body);
    json_decref(body);
}

int verbs_put(struct verbs *registry, json_t *object, json_t **ret_body)
{
    json_auto_t *made = json_deep_copy(object);
    json_decref(object);
    const struct kind *kind = kind_of(made);
    if (!kind)
        return refuse(refusal_bad_request("no kind \"%s\" in version \"%s\"",
                                          object_text(made, "kind"),
                                          object_text(made, "apiVersion")),
                      ret_body);
    if (kind->namespaced)
        object_default(made, "metadata.namespace", json_string("default"));
    else
        object_remove(made, "metadata.namespace");
    struct target target = { .kind = kind,
                             .ns = object_text(made, "metadata.namespace"),
                             .name = object_text(made, "metadata.name"),
                             .subresource = "" };
    ensure_namespace(registry, target.ns);
    json_t *refused = check_identity(&target, made);
    const json_t *before = find(registry, &target);
    if (refused)
        return refuse(refused, ret_body);
    object_remove(made, "metadata.resourceVersion");
    drop_unknown(registry, kind, made);
    if (!before && !strcmp(kind->name, "Pod"))
        refused = admit_priority(registry, made);
    if (refused)
        return refuse(refused, ret_body);
    if (!before) {
        stamp(registry, kind, made);
        kind_fill(kind, made, registry->now_ms);
        refused = check_content(&target, NULL, made);
    } else {
        struct target whole = target;
        whole.subresource = object_at(made, "status") ? "status" : "";
        keep_fixed(&whole, before, made);
        kind_fill(kind, made, registry->now_ms);
        if (kind->is_custom && spec_differs(before, made))
            object_set(
                made, "metadata.generation",
                json_integer(object_integer(before, "metadata.generation", 0) + 1));
    }
    if (refused)
        return refuse(refused, ret_body);
    if (before && json_equal(before, made)) {
        *ret_body = json_incref(made);
        return 200;
    }
    return commit(registry, &target, json_incref(made), ret_body);
}

void verbs_drop(struct verbs *registry, const struct kind *kind, const char *ns,
                const char *name)
{
    const json_t *before = storage_find(registry->history, kind, ns, name);
    if (before)
        storage_remove(registry->history, kind, json_deep_copy(before), registry->now_ms);
}
