#include "controller/record/snapshot_json.h"

#include "controller/base/digest.h"
#include "controller/base/timestamp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a decision, longer texts are told by their digest. */
#define LONGEST_TEXT 1024
/* The largest whole number that every JSON reader keeps; a thousandfold fits int64_t. */
#define LARGEST      ((int64_t)1 << 53)

/* ---- tables ---- */

enum kind {
    TEXT,      /* const char * */
    OBJECT,    /* json_t *: any JSON */
    WHOLE,     /* int64_t; INT64_MAX is "never", or "no limit" */
    COUNT,     /* int64_t, not negative */
    SMALL,     /* int */
    HASH,      /* uint64_t */
    FLAG,      /* bool */
    CHOICE,    /* an enum, from 0 to `last` */
    MEMBER,    /* a struct */
    BORROWED,  /* pointer to a struct */
    LIST,      /* pointer to structs; all lists are counted by a size_t beside them */
    TEXTS,     /* pointer to const char * */
    FEW_TEXTS, /* array of const char * */
    OBJECTS,   /* pointer to const json_t * */
    LENGTH,    /* size_t, of a list */
    SIZE,      /* size_t, of something else */
    REAL,      /* double */
    DERIVED,   /* made from the rest */
    PARSED,    /* pointer, made from the rest: only whether it is there */
    RESOURCE,  /* const struct kube_resource *, of a decision */
    WRITTEN,   /* json_t *, of a decision: a digest */
};

struct table;

struct field {
    const char *name;
    enum kind kind;
    size_t offset, size;
    bool is_needed;            /* a text, object or struct that must be there */
    int last;                  /* CHOICE */
    size_t count_offset;       /* LIST, TEXTS, OBJECTS */
    const struct table *table; /* MEMBER, BORROWED, LIST */
};

struct table {
    const char *name;
    size_t size;
    const struct field *fields;
    size_t count;
};

#define FIELD(what, member, ...)                                                         \
    {                                                                                    \
        .name = #member, .kind = what, .offset = offsetof(STRUCT, member),               \
        .size = sizeof(((STRUCT *)0)->member), ##__VA_ARGS__                             \
    }
#define COUNTED(member) .count_offset = offsetof(STRUCT, member)
#define TABLE(title, list)                                                               \
    {                                                                                    \
        .name = title, .size = sizeof(STRUCT), .fields = list,                           \
        .count = sizeof(list) / sizeof *(list)                                           \
    }

#define STRUCT struct input_state
static const struct field change_fields[] = {
    FIELD(HASH, spec),        FIELD(HASH, profile),      FIELD(HASH, nodes),
    FIELD(COUNT, node_count), FIELD(COUNT, allocatable), FIELD(WHOLE, taken),
    FIELD(COUNT, cordoned),   FIELD(COUNT, tainted),     FIELD(COUNT, not_ready),
};
static const struct table change_table = TABLE("struct input_state", change_fields);
#undef STRUCT

#define STRUCT struct planner_answer
static const struct field answer_fields[] = {
    FIELD(CHOICE, kind, .last = ANSWER_FAILED),
    FIELD(HASH, digest),
    FIELD(HASH, spec_digest),
    FIELD(MEMBER, parts, .table = &change_table),
    FIELD(WHOLE, asked_ms),
    FIELD(TEXT, text),
    FIELD(TEXT, message),
    FIELD(WHOLE, planner_ms),
    FIELD(FLAG, is_cut),
};
static const struct table answer_table = TABLE("struct planner_answer", answer_fields);
#undef STRUCT

#define STRUCT struct hook_memory
static const struct field hook_fields[] = {
    FIELD(CHOICE, outcome, .last = HOOK_REFUSED),
    FIELD(WHOLE, generation),
    FIELD(WHOLE, requested_wall_ms),
    FIELD(TEXT, message),
};
static const struct table hook_table = TABLE("struct hook_memory", hook_fields);
#undef STRUCT

#define STRUCT struct job_memory
static const struct field memory_fields[] = {
    FIELD(HASH, input_digest),
    FIELD(WHOLE, input_changed_ms),
    FIELD(WHOLE, input_unsettled_ms),
    FIELD(WHOLE, lost_since_ms),
    FIELD(MEMBER, answer, .table = &answer_table),
    FIELD(HASH, considered_digest),
    FIELD(HASH, considered_terms),
    FIELD(WHOLE, checked_generation),
    FIELD(WHOLE, checked_ms),
    FIELD(WHOLE, fit_mark_wall_ms),
    FIELD(WHOLE, searched_generation),
    FIELD(WHOLE, searched_ms),
    FIELD(WHOLE, heard_generation),
    FIELD(WHOLE, heard_ms),
    FIELD(CHOICE, hearing, .last = HEARING_OVER),
    FIELD(HASH, doubt_digest),
    FIELD(MEMBER, what_if, .table = &answer_table),
    FIELD(FLAG, is_planning),
    FIELD(FLAG, is_what_if),
    FIELD(HASH, planning_digest),
    FIELD(HASH, planning_spec_digest),
    FIELD(MEMBER, planning_parts, .table = &change_table),
    FIELD(WHOLE, planning_asked_ms),
    FIELD(SMALL, planner_failures),
    FIELD(WHOLE, planner_failed_ms),
    FIELD(MEMBER, hook, .table = &hook_table),
    FIELD(SMALL, refusals),
    FIELD(WHOLE, refused_ms),
    FIELD(WHOLE, refused_generation),
    FIELD(TEXT, refusal),
    FIELD(COUNT, taken_generation),
    FIELD(WHOLE, taken_ms),
    FIELD(SMALL, taken),
    FIELD(SMALL, profiling_refusals),
    FIELD(WHOLE, profiling_refused_ms),
    FIELD(TEXT, profiling_refusal),
};
static const struct table memory_table = TABLE("struct job_memory", memory_fields);
#undef STRUCT

#define STRUCT struct snapshot_pod
static const struct field pod_fields[] = {
    FIELD(OBJECT, object, .is_needed = true),
    FIELD(TEXT, name, .is_needed = true),
    FIELD(TEXT, uid, .is_needed = true),
    FIELD(TEXT, node, .is_needed = true),
    FIELD(COUNT, generation),
    FIELD(COUNT, index),
    FIELD(CHOICE, phase, .last = POD_FAILED),
    FIELD(FLAG, is_ready),
    FIELD(FLAG, is_scheduled),
    FIELD(FLAG, is_deleting),
    FIELD(FLAG, is_gated),
    FIELD(FLAG, has_other_gates),
    FIELD(FLAG, is_gone),
    FIELD(FLAG, is_disrupted),
    FIELD(FLAG, is_on_lost_node),
    FIELD(WHOLE, exit_code),
};
static const struct table pod_table = TABLE("struct snapshot_pod", pod_fields);
#undef STRUCT

#define STRUCT struct snapshot_plan
static const struct field plan_fields[] = {
    FIELD(OBJECT, config_map, .is_needed = true),
    FIELD(TEXT, name, .is_needed = true),
    FIELD(TEXT, uid, .is_needed = true),
    FIELD(TEXT, hash, .is_needed = true),
    FIELD(TEXT, retired, .is_needed = true),
    FIELD(WHOLE, retired_wall_ms),
    FIELD(HASH, pod_digest),
    FIELD(COUNT, generation),
    FIELD(WHOLE, created_wall_ms),
    FIELD(WHOLE, released_wall_ms),
    FIELD(HASH, input_digest),
    FIELD(COUNT, restarts),
    FIELD(COUNT, replans),
    FIELD(TEXT, input_parts, .is_needed = true),
    FIELD(TEXT, replan_times, .is_needed = true),
    FIELD(WHOLE, claim_until_wall_ms),
    FIELD(COUNT, claims_in_vain),
    FIELD(COUNT, gang_timeouts),
    FIELD(PARSED, plan),
    FIELD(DERIVED, rank_nodes),
    FIELD(DERIVED, rank_node_count),
    FIELD(SIZE, pod_count),
    FIELD(WHOLE, checkpoint_requested_wall_ms),
    FIELD(FLAG, checkpoint_is_for_notice),
    FIELD(FLAG, checkpoint_is_over),
};
static const struct table plan_table = TABLE("struct snapshot_plan", plan_fields);
#undef STRUCT

#define STRUCT struct capacity_node
static const struct field node_fields[] = {
    FIELD(TEXT, name, .is_needed = true),
    FIELD(TEXT, type, .is_needed = true),
    FIELD(TEXT, resource, .is_needed = true),
    FIELD(TEXT, vendor),
    FIELD(OBJECT, labels),
    FIELD(HASH, memory_bytes),
    FIELD(COUNT, allocatable),
    FIELD(COUNT, free),
    FIELD(COUNT, most_free),
    FIELD(COUNT, claimed),
    FIELD(TEXT, limited_by),
    FIELD(TEXT, unusable),
    FIELD(WHOLE, unusable_since_ms),
    FIELD(SMALL, preference),
    FIELD(FLAG, is_spot),
    FIELD(FLAG, is_leaving),
    FIELD(WHOLE, leaving_since_ms),
    FIELD(TEXT, leaving_by),
};
static const struct table node_table = TABLE("struct capacity_node", node_fields);
#undef STRUCT

#define STRUCT struct kueue_flavor
static const struct field flavor_fields[] = {
    FIELD(TEXT, name, .is_needed = true),
    FIELD(TEXT, resource, .is_needed = true),
    FIELD(OBJECT, node_labels),
    FIELD(COUNT, available),
};
static const struct table flavor_table = TABLE("struct kueue_flavor", flavor_fields);
#undef STRUCT

#define STRUCT struct kueue_quota
static const struct field quota_fields[] = {
    FIELD(TEXT, queue),
    FIELD(TEXT, cluster_queue),
    FIELD(TEXT, reason),
    FIELD(TEXT, message),
    FIELD(LIST, flavors, .table = &flavor_table, COUNTED(flavor_count)),
    FIELD(LENGTH, flavor_count),
    FIELD(OBJECTS, nodes, COUNTED(node_count)),
    FIELD(LENGTH, node_count),
    FIELD(OBJECTS, workloads, COUNTED(workload_count)),
    FIELD(LENGTH, workload_count),
};
static const struct table quota_table = TABLE("struct kueue_quota", quota_fields);
#undef STRUCT

#define STRUCT struct het_node_condition
static const struct field condition_fields[] = {
    FIELD(TEXT, type, .is_needed = true),
    FIELD(TEXT, status, .is_needed = true),
};
static const struct table condition_table =
    TABLE("struct het_node_condition", condition_fields);
#undef STRUCT

#define STRUCT struct settings_label
static const struct field label_fields[] = {
    FIELD(TEXT, key, .is_needed = true),
    FIELD(TEXT, value, .is_needed = true),
};
static const struct table label_table = TABLE("struct settings_label", label_fields);
#undef STRUCT

#define STRUCT struct settings_level
static const struct field level_fields[] = {
    FIELD(TEXT, ns, .is_needed = true),
    FIELD(CHOICE, level, .last = POD_SECURITY_NAMESPACE),
};
static const struct table level_table = TABLE("struct settings_level", level_fields);
#undef STRUCT

#define STRUCT struct settings_accounts
static const struct field accounts_fields[] = {
    FIELD(TEXT, ns, .is_needed = true),
    FIELD(TEXTS, names, COUNTED(name_count)),
    FIELD(LENGTH, name_count),
};
static const struct table accounts_table =
    TABLE("struct settings_accounts", accounts_fields);
#undef STRUCT

#define STRUCT struct settings_profiler
static const struct field profiler_fields[] = {
    FIELD(TEXT, image),
    FIELD(TEXTS, command, COUNTED(command_count)),
    FIELD(LENGTH, command_count),
    FIELD(LIST, resources, .table = &label_table, COUNTED(resource_count)),
    FIELD(LENGTH, resource_count),
    FIELD(COUNT, deadline_s),
    FIELD(COUNT, largest_microbatch),
};
static const struct table profiler_table =
    TABLE("struct settings_profiler", profiler_fields);
#undef STRUCT

#define STRUCT struct settings_planner
static const struct field settings_planner_fields[] = {
    FIELD(CHOICE, confinement, .last = PLANNER_UNCONFINED),
    FIELD(COUNT, most_effort),
    FIELD(COUNT, most_timeout_ms),
    FIELD(TEXTS, mixed_vendor_runtimes, COUNTED(mixed_vendor_runtime_count)),
    FIELD(LENGTH, mixed_vendor_runtime_count),
};
static const struct table settings_planner_table =
    TABLE("struct settings_planner", settings_planner_fields);
#undef STRUCT

#define STRUCT struct settings_limits
static const struct field limits_fields[] = {
    FIELD(COUNT, checkpoint_s),
    FIELD(COUNT, gang_s),
    FIELD(COUNT, termination_grace_s),
    FIELD(COUNT, node_failure_s),
};
static const struct table limits_table = TABLE("struct settings_limits", limits_fields);
#undef STRUCT

#define STRUCT struct settings
static const struct field settings_fields[] = {
    FIELD(LIST, unhealthy_conditions, .table = &condition_table,
          COUNTED(unhealthy_condition_count)),
    FIELD(LENGTH, unhealthy_condition_count),
    FIELD(TEXTS, leaving_taints, COUNTED(leaving_taint_count)),
    FIELD(LENGTH, leaving_taint_count),
    FIELD(TEXTS, leaving_annotations, COUNTED(leaving_annotation_count)),
    FIELD(LENGTH, leaving_annotation_count),
    FIELD(LIST, spot_labels, .table = &label_table, COUNTED(spot_label_count)),
    FIELD(LENGTH, spot_label_count),
    FIELD(TEXTS, topology_keys, COUNTED(topology_key_count)),
    FIELD(LENGTH, topology_key_count),
    FIELD(FLAG, allow_loopback_hooks),
    FIELD(CHOICE, pod_security, .last = POD_SECURITY_NAMESPACE),
    FIELD(LIST, pod_security_levels, .table = &level_table,
          COUNTED(pod_security_level_count)),
    FIELD(LENGTH, pod_security_level_count),
    FIELD(LIST, service_accounts, .table = &accounts_table,
          COUNTED(service_account_count)),
    FIELD(LENGTH, service_account_count),
    FIELD(TEXTS, runtime_classes, COUNTED(runtime_class_count)),
    FIELD(LENGTH, runtime_class_count),
    FIELD(MEMBER, profiler, .table = &profiler_table),
    FIELD(MEMBER, planner, .table = &settings_planner_table),
    FIELD(MEMBER, limits, .table = &limits_table),
    FIELD(TEXTS, allowed_hosts, COUNTED(allowed_host_count)),
    FIELD(LENGTH, allowed_host_count),
};
static const struct table settings_table = TABLE("struct settings", settings_fields);
#undef STRUCT

#define STRUCT struct measurement
static const struct field measurement_fields[] = {
    FIELD(TEXT, type, .is_needed = true),
    FIELD(TEXT, name, .is_needed = true),
    FIELD(OBJECT, job),
    FIELD(OBJECT, pod),
};
static const struct table measurement_table =
    TABLE("struct measurement", measurement_fields);
#undef STRUCT

#define STRUCT struct precedence
static const struct field precedence_fields[] = {
    FIELD(WHOLE, priority),
    FIELD(FLAG, never_claims),
    FIELD(WHOLE, created_ms),
    FIELD(TEXT, uid, .is_needed = true),
};
static const struct table precedence_table =
    TABLE("struct precedence", precedence_fields);
#undef STRUCT

#define STRUCT struct pod_security_policy
static const struct field policy_fields[] = {
    FIELD(CHOICE, level, .last = POD_SECURITY_PRIVILEGED),
    FIELD(WHOLE, minor),
};
static const struct table policy_table =
    TABLE("struct pod_security_policy", policy_fields);
#undef STRUCT

#define STRUCT struct capacity_share
static const struct field share_fields[] = {
    FIELD(TEXT, node, .is_needed = true),
    FIELD(COUNT, gpus),
};
static const struct table share_table = TABLE("struct capacity_share", share_fields);
#undef STRUCT

#define STRUCT struct other_job
static const struct field peer_fields[] = {
    FIELD(TEXT, key, .is_needed = true),
    FIELD(TEXT, uid, .is_needed = true),
    FIELD(MEMBER, precedence, .table = &precedence_table),
    FIELD(LIST, shares, .table = &share_table, COUNTED(share_count)),
    FIELD(LENGTH, share_count),
    FIELD(COUNT, gpus),
    FIELD(WHOLE, min_gpus),
    FIELD(WHOLE, next_move_wall_ms),
    FIELD(WHOLE, stop_ms),
    FIELD(FLAG, is_in_a_claim),
};
static const struct table peer_table = TABLE("struct other_job", peer_fields);
#undef STRUCT

#define STRUCT struct claim
static const struct field claim_fields[] = {
    FIELD(TEXT, key, .is_needed = true),
    FIELD(TEXT, uid, .is_needed = true),
    FIELD(MEMBER, precedence, .table = &precedence_table),
    FIELD(FLAG, is_served),
    FIELD(WHOLE, until_wall_ms),
    FIELD(COUNT, in_vain),
    FIELD(TEXTS, victims, COUNTED(victim_count)),
    FIELD(LENGTH, victim_count),
};
static const struct table claim_table = TABLE("struct claim", claim_fields);
#undef STRUCT

#define STRUCT struct snapshot
static const struct field snapshot_fields[] = {
    FIELD(WHOLE, now_ms),
    FIELD(WHOLE, wall_ms),
    FIELD(OBJECT, job, .is_needed = true),
    FIELD(DERIVED, spec),
    FIELD(DERIVED, refused_reason),
    FIELD(DERIVED, refused),
    FIELD(OBJECT, profile),
    FIELD(LIST, measurements, .table = &measurement_table, COUNTED(measurement_count)),
    FIELD(LENGTH, measurement_count),
    FIELD(OBJECTS, spent_measurements, COUNTED(spent_measurement_count)),
    FIELD(LENGTH, spent_measurement_count),
    FIELD(OBJECT, hardware),
    FIELD(BORROWED, settings, .is_needed = true, .table = &settings_table),
    FIELD(TEXT, leader),
    FIELD(LIST, plans, .table = &plan_table, COUNTED(plan_count)),
    FIELD(LENGTH, plan_count),
    FIELD(OBJECT, candidate),
    FIELD(LIST, pods, .table = &pod_table, COUNTED(pod_count)),
    FIELD(LENGTH, pod_count),
    FIELD(OBJECTS, leases, COUNTED(lease_count)),
    FIELD(LENGTH, lease_count),
    FIELD(OBJECT, service),
    FIELD(LIST, nodes, .table = &node_table, COUNTED(node_count)),
    FIELD(LENGTH, node_count),
    FIELD(MEMBER, quota, .table = &quota_table),
    FIELD(WHOLE, avoided_until_wall_ms),
    FIELD(WHOLE, server_minor),
    FIELD(MEMBER, namespace_policy, .table = &policy_table),
    FIELD(TEXT, pods_version),
    FIELD(FEW_TEXTS, levels, COUNTED(level_count)),
    FIELD(LENGTH, level_count),
    FIELD(REAL, rival_bid),
    FIELD(TEXT, rival),
    FIELD(TEXT, rival_asking),
    FIELD(MEMBER, precedence, .table = &precedence_table),
    FIELD(BORROWED, claimed_by, .table = &claim_table),
    FIELD(LIST, peers, .table = &peer_table, COUNTED(peer_count)),
    FIELD(LENGTH, peer_count),
    FIELD(HASH, input_digest),
    FIELD(HASH, spec_digest),
    FIELD(HASH, pod_digest),
    FIELD(MEMBER, input_parts, .table = &change_table),
    FIELD(MEMBER, memory, .table = &memory_table),
    FIELD(TEXT, blocked_by),
    FIELD(CHOICE, planner_load, .last = PLANNER_FULL),
};
static const struct table snapshot_table = TABLE("struct snapshot", snapshot_fields);
#undef STRUCT

#define STRUCT struct action
static const struct field action_fields[] = {
    FIELD(CHOICE, kind, .last = ACTION_HOOK),
    FIELD(SMALL, phase),
    FIELD(RESOURCE, resource),
    FIELD(TEXT, ns),
    FIELD(TEXT, name),
    FIELD(TEXT, uid),
    FIELD(TEXT, query),
    FIELD(WHOLE, grace_s),
    FIELD(FLAG, may_fail),
    FIELD(WRITTEN, object),
    FIELD(HASH, digest),
    FIELD(HASH, spec_digest),
    FIELD(MEMBER, parts, .table = &change_table),
    FIELD(FLAG, is_what_if),
    FIELD(FLAG, is_urgent),
    FIELD(WHOLE, timeout_ms),
    FIELD(WHOLE, patience_ms),
    FIELD(TEXT, address),
    FIELD(TEXT, path),
    FIELD(WHOLE, port),
};
static const struct table action_table = TABLE("struct action", action_fields);
#undef STRUCT

#define STRUCT struct bid
static const struct field bid_fields[] = {
    FIELD(CHOICE, state, .last = BID_OPEN),
    FIELD(REAL, value),
};
static const struct table bid_table = TABLE("struct bid", bid_fields);
#undef STRUCT

#define STRUCT struct decision
static const struct field decision_fields[] = {
    FIELD(LIST, actions, .table = &action_table, COUNTED(action_count)),
    FIELD(LENGTH, action_count),
    FIELD(DERIVED, action_capacity),
    FIELD(WHOLE, requeue_ms),
    FIELD(FLAG, is_unanswered),
    FIELD(FLAG, is_held_up),
    FIELD(WHOLE, deaf_until_ms),
    FIELD(CHOICE, planner_wish, .last = WISH_NOW),
    FIELD(MEMBER, bid, .table = &bid_table),
    FIELD(MEMBER, memory, .table = &memory_table),
    FIELD(TEXT, summary),
};
static const struct table decision_table = TABLE("struct decision", decision_fields);
#undef STRUCT

static const struct table *const tables[] = {
    &change_table, &answer_table,    &memory_table,   &pod_table,
    &plan_table,   &node_table,      &flavor_table,   &quota_table,
    &label_table,  &condition_table, &settings_table, &snapshot_table,
    &action_table, &decision_table,  &hook_table,     &precedence_table,
    &share_table,  &peer_table,      &claim_table,    &bid_table,
    &level_table,  &accounts_table,  &profiler_table, &measurement_table,
};

const char *record_table(size_t index)
{
    return index < sizeof tables / sizeof *tables ? tables[index]->name : NULL;
}

bool record_has_field(size_t index, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < tables[index]->count; i++)
        count += !strcmp(tables[index]->fields[i].name, name);
    return count == 1;
}

/* ---- what is not recorded ---- */

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(json_string_value(json_array_get(list, i)), text))
            return true;
    return false;
}

/* One entry of "env" without its value; `names` (NULL: all) says of which variables. */
static json_t *redact_variable(const json_t *variable, const json_t *names)
{
    const char *name = json_string_value(json_object_get(variable, "name"));
    bool is_meant = json_object_get(variable, "value") &&
                    (!names || (name && has_text(names, name)));
    json_t *kept = is_meant ? json_copy((json_t *)(uintptr_t)variable)
                            : json_incref((json_t *)(uintptr_t)variable);
    if (is_meant)
        json_object_set_new(kept, "value", json_string(RECORD_REDACTED));
    return kept;
}

static json_t *redact(json_t *json, const json_t *names);

static json_t *redact_member(const char *key, json_t *value, const json_t *names)
{
    if (!strcmp(key, "kubectl.kubernetes.io/last-applied-configuration"))
        return json_string(RECORD_REDACTED);
    if (strcmp(key, "env") != 0 || !json_is_array(value))
        return redact(value, names);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(list, redact_variable(json_array_get(value, i), names));
    return list;
}

/* A copy of `json` without what is secret; itself, where there is nothing. A new
 * reference. */
static json_t *redact(json_t *json, const json_t *names)
{
    json_t *copy = NULL;
    const char *key;
    json_t *value;
    json_object_foreach (json, key, value) {
        json_t *kept = redact_member(key, value, names);
        if (kept != value && !copy)
            copy = json_copy(json);
        if (copy)
            json_object_set_new(copy, key, kept);
        else
            json_decref(kept);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        value = json_array_get(json, i);
        json_t *kept = redact(value, names);
        if (kept != value && !copy)
            copy = json_copy(json);
        if (copy)
            json_array_set_new(copy, i, kept);
        else
            json_decref(kept);
    }
    return copy ? copy : json_incref(json);
}

/* The variables that the job's template sets: of those, what we write has the values. */
static json_t *template_variables(const json_t *job)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const json_t *spec = json_object_get(
        json_object_get(json_object_get(job, "spec"), "podTemplate"), "spec");
    json_t *names = json_array();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *containers = json_object_get(spec, lists[i]);
        for (size_t k = 0; k < json_array_size(containers); k++) {
            const json_t *env = json_object_get(json_array_get(containers, k), "env");
            for (size_t n = 0; n < json_array_size(env); n++) {
                json_t *name = json_object_get(json_array_get(env, n), "name");
                if (json_is_string(name))
                    json_array_append(names, name);
            }
        }
    }
    return names;
}

/* ---- writing ---- */

struct writer {
    bool with_env;
    bool is_short;       /* a decision */
    const json_t *names; /* of the variables whose values are left out; NULL: of all */
};

static json_t *write_hash(uint64_t hash)
{
    return json_sprintf("%016" PRIx64, hash);
}

static json_t *write_digest(const char *text, size_t length)
{
    return json_sprintf("%zu bytes, %016" PRIx64, length, digest_bytes(0, text, length));
}

static json_t *write_text(const struct writer *writer, const char *text)
{
    size_t length = strlen(text);
    return writer->is_short && length > LONGEST_TEXT ? write_digest(text, length)
                                                     : het_json_text(text);
}

static json_t *write_object(const struct writer *writer, const json_t *object)
{
    json_t *shared = (json_t *)(uintptr_t)object; /* only its count of references */
    return writer->with_env ? json_incref(shared) : redact(shared, writer->names);
}

static json_t *write_written(const struct writer *writer, const json_t *object)
{
    json_auto_t *kept = write_object(writer, object);
    auto_free char *text = json_dumps(kept, JSON_COMPACT | JSON_ENCODE_ANY);
    return write_digest(text, strlen(text));
}

static json_t *write_struct(const struct writer *writer, const struct table *table,
                            const void *value);

static json_t *write_list(const struct writer *writer, const struct field *field,
                          const char *elements, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const void *pointer = elements + i * sizeof(void *);
        json_array_append_new(
            list, field->kind == LIST ? write_struct(writer, field->table,
                                                     elements + i * field->table->size)
                  : field->kind == TEXTS || field->kind == FEW_TEXTS
                      ? write_text(writer, *(const char *const *)pointer)
                  : *(const json_t *const *)pointer
                      ? write_object(writer, *(const json_t *const *)pointer)
                      : json_null());
    }
    return list;
}

/* The field at `at` of the struct at `whole`; NULL: it is not there. */
static json_t *write_field(const struct writer *writer, const struct field *field,
                           const char *whole)
{
    const void *at = whole + field->offset;
    const void *pointer = NULL;
    if (field->size == sizeof pointer)
        memcpy(&pointer, at, sizeof pointer);
    switch (field->kind) {
    case TEXT:
        return pointer ? write_text(writer, pointer) : NULL;
    case OBJECT:
        return pointer ? write_object(writer, pointer) : NULL;
    case WHOLE:
    case COUNT:
        return json_integer(*(const int64_t *)at);
    case SIZE:
        return json_integer((json_int_t) * (const size_t *)at);
    case REAL:
        return json_real(*(const double *)at);
    case SMALL:
    case CHOICE:
        return json_integer(*(const int *)at);
    case HASH:
        return write_hash(*(const uint64_t *)at);
    case FLAG:
        return json_boolean(*(const bool *)at);
    case MEMBER:
        return write_struct(writer, field->table, at);
    case BORROWED:
        return pointer ? write_struct(writer, field->table, pointer) : NULL;
    case LIST:
    case TEXTS:
    case OBJECTS:
        return pointer ? write_list(
                             writer, field, pointer,
                             *(const size_t *)(const void *)(whole + field->count_offset))
                       : NULL;
    case FEW_TEXTS:
        return write_list(writer, field, at,
                          *(const size_t *)(const void *)(whole + field->count_offset));
    case PARSED:
        return json_boolean(pointer != NULL);
    case RESOURCE:
        return pointer ? json_string(((const struct kube_resource *)pointer)->kind)
                       : NULL;
    case WRITTEN:
        return pointer ? write_written(writer, pointer) : NULL;
    case LENGTH:
    case DERIVED:
        break;
    }
    return NULL;
}

static json_t *write_struct(const struct writer *writer, const struct table *table,
                            const void *value)
{
    json_t *json = json_object();
    for (size_t i = 0; i < table->count; i++) {
        json_t *member = write_field(writer, &table->fields[i], value);
        if (member)
            json_object_set_new(json, table->fields[i].name, member);
    }
    return json;
}

json_t *record_decision(const struct snapshot *snapshot, const struct decision *decision,
                        bool with_env)
{
    json_auto_t *names = template_variables(snapshot->job);
    struct writer writer = { .with_env = with_env, .is_short = true, .names = names };
    return write_struct(&writer, &decision_table, decision);
}

json_t *record_write(const struct snapshot *snapshot, const struct decision *decision,
                     bool with_env)
{
    struct writer writer = { .with_env = with_env };
    char time[TIMESTAMP_SIZE];
    timestamp_format(snapshot->wall_ms, time);
    return json_pack("{s:s, s:i, s:s, s:o, s:b, s:o, s:o}", "format", RECORD_FORMAT,
                     "version", RECORD_VERSION, "time", time, "job",
                     json_sprintf("%s/%s", snapshot->spec.ns, snapshot->spec.name),
                     "hasEnv", with_env, "decision",
                     record_decision(snapshot, decision, with_env), "snapshot",
                     write_struct(&writer, &snapshot_table, snapshot));
}

/* ---- reading ---- */

static int read_text(struct het_arena *arena, const struct het_view *view,
                     const char **ret, struct het_error *err)
{
    if (!json_is_string(view->json))
        return het_view_fail(view, err, "must be a text");
    *ret = het_arena_strdup(arena, json_string_value(view->json));
    return 0;
}

static int read_whole(const struct het_view *view, int64_t low, int64_t high,
                      int64_t *ret, struct het_error *err)
{
    int64_t value = json_integer_value(view->json);
    bool is_never = high == LARGEST && value == INT64_MAX;
    if (!json_is_integer(view->json) || value < low || (value > high && !is_never))
        return het_view_fail(
            view, err, "must be a whole number from %" PRId64 " to %" PRId64, low, high);
    *ret = value;
    return 0;
}

static int read_int(const struct het_view *view, int first, int last, int *ret,
                    struct het_error *err)
{
    int64_t value = 0;
    if (read_whole(view, first, last, &value, err) < 0)
        return -1;
    *ret = (int)value;
    return 0;
}

static int read_size(const struct het_view *view, size_t *ret, struct het_error *err)
{
    int64_t value = 0;
    if (read_whole(view, 0, INT32_MAX, &value, err) < 0)
        return -1;
    *ret = (size_t)value;
    return 0;
}

static int read_hash(const struct het_view *view, uint64_t *ret, struct het_error *err)
{
    const char *text = json_string_value(view->json);
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return het_view_fail(view, err, "must be 16 hexadecimal digits");
    *ret = strtoull(text, NULL, 16);
    return 0;
}

static int read_struct(struct het_arena *arena, const struct het_view *view,
                       const struct table *table, void *ret, struct het_error *err);

static int read_element(struct het_arena *arena, const struct het_view *view,
                        const struct field *field, char *elements, size_t index,
                        struct het_error *err)
{
    void *pointer = elements + index * sizeof(void *);
    if (field->kind == LIST)
        return read_struct(arena, view, field->table,
                           elements + index * field->table->size, err);
    if (field->kind == TEXTS || field->kind == FEW_TEXTS)
        return read_text(arena, view, pointer, err);
    *(const json_t **)pointer = json_is_null(view->json) ? NULL : view->json;
    return 0;
}

static int read_list(struct het_arena *arena, const struct het_view *view,
                     const struct field *field, char *whole, struct het_error *err)
{
    size_t count;
    size_t element = field->kind == LIST ? field->table->size : sizeof(void *);
    bool is_inside = field->kind == FEW_TEXTS;
    if (het_view_array(view, is_inside ? field->size / element : RECORD_MAX_LIST, &count,
                       err) < 0)
        return -1;
    char *elements = is_inside ? whole + field->offset
                               : het_arena_array(arena, count, element);
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(view, i);
        if (read_element(arena, &item, field, elements, i, err) < 0)
            return -1;
    }
    if (!is_inside)
        memcpy(whole + field->offset, &elements, sizeof elements);
    memcpy(whole + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_borrowed(struct het_arena *arena, const struct het_view *view,
                         const struct table *table, void *at, struct het_error *err)
{
    void *value = het_arena_array(arena, 1, table->size);
    if (read_struct(arena, view, table, value, err) < 0)
        return -1;
    memcpy(at, &value, sizeof value);
    return 0;
}

/* A member that is there. */
static int read_field(struct het_arena *arena, const struct het_view *view,
                      const struct field *field, char *whole, struct het_error *err)
{
    void *at = whole + field->offset;
    switch (field->kind) {
    case TEXT:
        return read_text(arena, view, at, err);
    case OBJECT:
        if (!json_is_object(view->json))
            return het_view_fail(view, err, "must be an object");
        *(const json_t **)at = view->json;
        return 0;
    case WHOLE:
        return read_whole(view, -LARGEST, LARGEST, at, err);
    case COUNT:
        return read_whole(view, 0, INT32_MAX, at, err);
    case SIZE:
        return read_size(view, at, err);
    case REAL:
        return het_view_number(view, -1e15, 1e15, at, err);
    case SMALL:
        return read_int(view, -INT32_MAX, INT32_MAX, at, err);
    case CHOICE:
        return read_int(view, 0, field->last, at, err);
    case HASH:
        return read_hash(view, at, err);
    case FLAG:
        return het_view_bool(view, at, err);
    case MEMBER:
        return read_struct(arena, view, field->table, at, err);
    case BORROWED:
        return read_borrowed(arena, view, field->table, at, err);
    case LIST:
    case TEXTS:
    case FEW_TEXTS:
    case OBJECTS:
        return read_list(arena, view, field, whole, err);
    case LENGTH:
    case DERIVED:
    case PARSED:
    case RESOURCE:
    case WRITTEN:
        break;
    }
    return 0;
}

/* Whether the member may not be left out. */
static bool is_needed(const struct field *field)
{
    switch (field->kind) {
    case TEXT:
    case OBJECT:
    case BORROWED:
        return field->is_needed;
    case WHOLE:
    case COUNT:
    case SIZE:
    case REAL:
    case SMALL:
    case CHOICE:
    case HASH:
    case FLAG:
    case MEMBER:
    case PARSED:
        return true;
    case LIST:
    case TEXTS:
    case FEW_TEXTS:
    case OBJECTS:
    case LENGTH:
    case DERIVED:
    case RESOURCE:
    case WRITTEN:
        break;
    }
    return false;
}

static int read_struct(struct het_arena *arena, const struct het_view *view,
                       const struct table *table, void *ret, struct het_error *err)
{
    if (het_view_need(view, err) < 0 || het_view_object(view, err) < 0)
        return -1;
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        struct het_view member = het_view_get(view, field->name);
        if (!member.json && is_needed(field))
            return het_view_need(&member, err);
        if (member.json && read_field(arena, &member, field, ret, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the whole ---- */

/* What is computed from the rest. */
static int derive(struct het_arena *arena, const struct het_view *view,
                  struct snapshot *snapshot, struct het_error *err)
{
    struct het_view hardware = het_view_get(view, "hardware");
    const struct het_hardware *table = het_hardware_builtin();
    if (snapshot->hardware &&
        het_hardware_json_read(arena, snapshot->hardware, table, &table, err) < 0)
        return het_view_wrap(&hardware, err);
    snapshot_read_spec(arena, table, snapshot);
    struct het_view plans = het_view_get(view, "plans");
    struct snapshot_plan *list = (struct snapshot_plan *)(uintptr_t)snapshot->plans;
    for (size_t i = 0; i < snapshot->plan_count; i++) {
        struct het_view plan = het_view_at(&plans, i);
        struct het_view body = het_view_get(&plan, "plan");
        bool is_there = json_is_true(body.json);
        if (is_there)
            snapshot_read_plan(arena, &list[i]);
        if (is_there && !list[i].plan)
            return het_view_fail(&body, err, "there is none in the ConfigMap");
    }
    return 0;
}

/* What a snapshot promises beyond the kinds of its fields (snapshot.h). */
static int check(const struct het_view *view, const struct snapshot *snapshot,
                 struct het_error *err)
{
    const struct planner_answer *answer = &snapshot->memory.answer;
    struct het_view memory = het_view_get(view, "memory");
    struct het_view nodes = het_view_get(view, "nodes");
    struct het_view plans = het_view_get(view, "plans");
    struct het_view quota = het_view_get(view, "quota");
    if (answer->kind != ANSWER_NONE && (!answer->text || !answer->message))
        return het_view_fail(&memory, err, "answer.text and answer.message are missing");
    if (snapshot->memory.refusals && !snapshot->memory.refusal)
        return het_view_fail(&memory, err, "refusal is missing");
    if (snapshot->memory.profiling_refusals && !snapshot->memory.profiling_refusal)
        return het_view_fail(&memory, err, "profiling_refusal is missing");
    for (size_t i = 1; i < snapshot->node_count; i++)
        if (strcmp(snapshot->nodes[i - 1].name, snapshot->nodes[i].name) >= 0)
            return het_view_fail(&nodes, err, "must be in the order of their names");
    for (size_t i = 0; i < snapshot->plan_count; i++)
        if (snapshot->plans[i].generation < 1 ||
            (i && snapshot->plans[i].generation > snapshot->plans[i - 1].generation))
            return het_view_fail(&plans, err, "must be in the order of generations");
    if ((snapshot->quota.nodes && snapshot->quota.node_count != snapshot->node_count) ||
        (snapshot->quota.queue && !snapshot->quota.cluster_queue) ||
        (snapshot->quota.reason && !snapshot->quota.message))
        return het_view_fail(&quota, err, "is not whole");
    return 0;
}

int record_read(struct het_arena *arena, const json_t *json, struct record *ret,
                struct het_error *err)
{
    struct het_view root = het_view_root(json);
    struct het_view format = het_view_get(&root, "format");
    struct het_view version = het_view_get(&root, "version");
    struct het_view time = het_view_get(&root, "time");
    struct het_view job = het_view_get(&root, "job");
    struct het_view has_env = het_view_get(&root, "hasEnv");
    struct het_view snapshot = het_view_get(&root, "snapshot");
    const char *text = json_string_value(format.json);
    struct record record = { .decision = json_object_get(json, "decision") };
    if (!text || strcmp(text, RECORD_FORMAT) != 0)
        return het_fail(err, HET_BAD_INPUT,
                        "is no record (format: \"" RECORD_FORMAT "\")");
    if (json_integer_value(version.json) != RECORD_VERSION)
        return het_view_fail(&version, err, "must be %d; another release wrote this",
                             RECORD_VERSION);
    if (timestamp_parse(json_string_value(time.json), &record.wall_ms) < 0)
        return het_view_fail(&time, err, "must be a time");
    if (read_text(arena, &job, &record.job, err) < 0 ||
        het_view_need(&has_env, err) < 0 ||
        het_view_bool(&has_env, &record.has_env, err) < 0 ||
        read_struct(arena, &snapshot, &snapshot_table, &record.snapshot, err) < 0 ||
        derive(arena, &snapshot, &record.snapshot, err) < 0 ||
        check(&snapshot, &record.snapshot, err) < 0)
        return -1;
    *ret = record;
    return 0;
}
