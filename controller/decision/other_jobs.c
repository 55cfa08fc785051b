#include "controller/decision/other_jobs.h"

#include "controller/base/object.h"
#include "controller/base/timestamp.h"
#include "controller/cluster/plan_object.h"
#include "controller/decision/replan_rule.h"
#include "controller/job/job_spec.h"

#include <stdlib.h>
#include <string.h>

/* Time that a move takes besides ending the pods: quiet time, a search, a new
 * generation. */
#define MOVE_SLACK_MS   ((int64_t)60000)
#define DEFAULT_GRACE_S 30 /* of a pod, core/v1 */

/* ---- claims ---- */

/* The newest plan of the job; NULL: it has none. */
static const json_t *newest_plan(struct het_arena *arena, const struct store *store,
                                 const json_t *job)
{
    json_t **maps;
    size_t count = store_find_owned(store, &kube_config_map, kube_uid(job), arena, &maps);
    const json_t *newest = NULL;
    int64_t highest = 0, horizon = plan_object_horizon(job);
    for (size_t i = 0; i < count; i++) {
        int64_t generation = plan_object_generation(maps[i]);
        if (generation > highest && generation <= horizon &&
            plan_object_is_of(maps[i], job)) {
            highest = generation;
            newest = maps[i];
        }
    }
    return newest;
}

static void read_victims(struct het_arena *arena, const json_t *list, struct claim *ret)
{
    size_t count = json_array_size(list);
    const char **keys = HET_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *victim = json_array_get(list, i);
        const char *job = object_text(victim, "job");
        keys[i] = het_arena_printf(arena, "%.*s/%s", (int)strcspn(job, "/"), job,
                                   object_text(victim, "uid"));
    }
    ret->victims = keys;
    ret->victim_count = count;
}

bool other_jobs_read_claim(struct het_arena *arena, const json_t *config_map,
                           struct claim *ret)
{
    const char *text = kube_annotation(config_map, ANNOTATION_PREEMPTS);
    json_t *json = NULL;
    if (!*text ||
        het_json_decode(text, strlen(text), ANNOTATION_PREEMPTS, &json, NULL) < 0)
        return false;
    timestamp_parse(object_text(json, "until"), &ret->until_wall_ms);
    ret->in_vain = json_integer_value(json_object_get(json, "inVain"));
    read_victims(arena, json_object_get(json, "victims"), ret);
    json_decref(json);
    return true;
}

/* The claim in `config_map`, if it is still its job's current one. */
static bool read_claim(struct het_arena *arena, const struct store *store,
                       const json_t *config_map, struct claim *ret)
{
    if (!*kube_annotation(config_map, ANNOTATION_PREEMPTS) ||
        *kube_annotation(config_map, ANNOTATION_RETIRED))
        return false;
    const json_t *job = store_find(store, &kube_job, kube_namespace(config_map),
                                   object_text(job_spec_find_owner(config_map), "name"));
    if (!job || newest_plan(arena, store, job) != config_map)
        return false;
    *ret = (struct claim){
        .key = het_arena_printf(arena, "%s/%s", kube_namespace(job), kube_name(job)),
        .uid = kube_uid(job),
        .precedence = precedence_of(store, job),
        .is_served = object_condition_is_true(job, "Placed"),
    };
    return other_jobs_read_claim(arena, config_map, ret);
}

static int compare_claims(const void *a, const void *b)
{
    const struct claim *left = a, *right = b;
    return precedence_compare(&left->precedence, &right->precedence);
}

size_t other_jobs_claims(struct het_arena *arena, const struct store *store,
                         struct claim **ret)
{
    size_t maps = store_count(store, &kube_config_map), count = 0, capacity = 0;
    struct claim *claims = NULL;
    for (size_t i = 0; i < maps; i++) {
        struct claim claim;
        if (!read_claim(arena, store, store_at(store, &kube_config_map, i), &claim))
            continue;
        if (count == capacity) {
            struct claim *larger = HET_ARENA_ARRAY(arena, struct claim, capacity * 2 + 4);
            if (count)
                memcpy(larger, claims, count * sizeof *claims);
            claims = larger;
            capacity = capacity * 2 + 4;
        }
        claims[count++] = claim;
    }
    if (count)
        qsort(claims, count, sizeof *claims, compare_claims);
    *ret = claims;
    return count;
}

bool other_jobs_claim_names(const struct claim *claim, const char *job_key)
{
    for (size_t i = 0; i < claim->victim_count; i++)
        if (!strcmp(claim->victims[i], job_key))
            return true;
    return false;
}

/* ---- peers ---- */

static bool is_in_a_claim(const struct claim *claims, size_t count, const char *uid,
                          const char *job_key)
{
    for (size_t i = 0; i < count; i++)
        if (!claims[i].is_served &&
            (!strcmp(claims[i].uid, uid) || other_jobs_claim_names(&claims[i], job_key)))
            return true;
    return false;
}

/* When the peer may move voluntarily: after its cool-down and within its hourly cap. */
static int64_t next_move_ms(struct het_arena *arena, const struct job_rules *rules,
                            const json_t *plan, int64_t wall_ms)
{
    int64_t decided_ms = 0, *times;
    timestamp_parse(kube_annotation(plan, ANNOTATION_COMPUTED_AT), &decided_ms);
    size_t count = replan_rule_read_times(
        arena, kube_annotation(plan, ANNOTATION_REPLAN_TIMES), &times);
    int64_t cap_ms =
        replan_rule_allowed_ms(times, count, rules->max_replans_per_hour, wall_ms);
    int64_t cool_ms = decided_ms + rules->cooldown_ms;
    return cool_ms > cap_ms ? cool_ms : cap_ms;
}

/* What the peer's spec says about giving up GPUs. */
static void read_rules(struct het_arena *arena, const struct settings_limits *limits,
                       const struct job_rules *rules, const json_t *plan, int64_t wall_ms,
                       struct other_job *ret)
{
    ret->min_gpus = ret->next_move_wall_ms = INT64_MAX;
    ret->stop_ms = MOVE_SLACK_MS + 1000 * DEFAULT_GRACE_S;
    if (!rules->is_readable)
        return;
    struct job_spec limited = { .hook_timeout_ms = rules->hook_timeout_ms,
                                .planner_timeout_ms = rules->planner_timeout_ms };
    job_spec_limit(&limited, limits);
    ret->min_gpus = rules->min_gpus;
    ret->stop_ms = MOVE_SLACK_MS + 1000 * rules->termination_grace_s +
                   limited.hook_timeout_ms + limited.planner_timeout_ms;
    if (rules->replan_mode == REPLAN_AUTOMATIC)
        ret->next_move_wall_ms = next_move_ms(arena, rules, plan, wall_ms);
}

static int compare_peers(const void *a, const void *b)
{
    const struct other_job *left = a, *right = b;
    return precedence_compare(&left->precedence, &right->precedence);
}

size_t other_jobs_take(struct het_arena *arena, const struct store *store,
                       const struct capacity *capacity,
                       const struct settings_limits *limits, const char *job_key,
                       int64_t wall_ms, struct other_job **ret)
{
    struct claim *claims = NULL;
    size_t claim_count =
        capacity_has_claims(capacity) ? other_jobs_claims(arena, store, &claims) : 0;
    size_t jobs = store_count(store, &kube_job), count = 0;
    struct other_job *peers = HET_ARENA_ARRAY(arena, struct other_job, jobs);
    for (size_t i = 0; i < jobs; i++) {
        const json_t *job = store_at(store, &kube_job, i);
        const char *ns = kube_namespace(job);
        const char *key = het_arena_printf(arena, "%s/%s", ns, kube_uid(job));
        struct capacity_share *shares;
        size_t share_count = capacity_holdings(capacity, arena, key, &shares);
        if (!share_count || !strcmp(key, job_key) || kube_is_deleting(job) ||
            !job_spec_is_ours(job))
            continue;
        struct other_job *peer = &peers[count++];
        *peer = (struct other_job){
            .key = het_arena_printf(arena, "%s/%s", ns, kube_name(job)),
            .uid = kube_uid(job),
            .precedence = precedence_of(store, job),
            .shares = shares,
            .share_count = share_count,
            .is_in_a_claim = is_in_a_claim(claims, claim_count, kube_uid(job), key),
        };
        for (size_t k = 0; k < share_count; k++)
            peer->gpus += shares[k].gpus;
        struct job_rules rules;
        capacity_rules_of(capacity, key, &rules);
        read_rules(arena, limits, &rules, newest_plan(arena, store, job), wall_ms, peer);
    }
    qsort(peers, count, sizeof *peers, compare_peers);
    *ret = peers;
    return count;
}
