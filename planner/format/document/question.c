#include "planner/format/document/question.h"

#include "planner/cost/idle_gpus.h"
#include "planner/cost/schedule.h"
#include "planner/format/document/cluster_json.h"
#include "planner/format/document/hardware_json.h"
#include "planner/format/document/plan_json.h"
#include "planner/format/document/prediction_json.h"
#include "planner/format/document/profile_json.h"
#include "planner/format/document/unused_json.h"
#include "planner/format/document/workload_json.h"
#include "planner/format/kubernetes_node.h"
#include "planner/format/network_json.h"
#include "planner/format/profile/config.h"
#include "planner/format/profile/model.h"
#include "planner/model/runtime.h"
#include "planner/run/run_all.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- question ---- */

static const char *const document_fields[] = {
    "cluster",  "pods",    "profile",
    "hardware", "network", "job",
    "unused",   "sources", "mixedVendorRuntimes",
    NULL,
};

/* What messages call a part: its file, if the document says so. */
static const char *part_name(const json_t *document, const char *part)
{
    const json_t *sources = json_object_get(document, "sources");
    const char *name = json_string_value(json_object_get(sources, part));
    return name ? name : part;
}

static int fail_in_part(const json_t *document, const char *part, struct het_error *err)
{
    het_error_locate(err, part);
    return het_wrap(err, "%.300s", part_name(document, part));
}

static int get_part(const json_t *document, const char *part, const json_t **ret,
                    struct het_error *err)
{
    *ret = json_object_get(document, part);
    if (*ret)
        return 0;
    het_fail(err, HET_BAD_INPUT, "%s: is missing", part);
    het_error_locate(err, part);
    return -1;
}

int het_question_hardware(struct het_arena *arena, const json_t *document,
                          const struct het_hardware **ret, struct het_error *err)
{
    const json_t *json = json_object_get(document, "hardware");
    const struct het_hardware *hardware = het_hardware_builtin();
    if (json && !json_is_null(json) &&
        het_hardware_json_read(arena, json, hardware, &hardware, err) < 0)
        return fail_in_part(document, "hardware", err);
    hardware =
        het_profile_model_hardware(arena, json_object_get(document, "profile"), hardware);
    const json_t *curves = json_object_get(document, "network");
    struct het_hardware *with_network = het_arena_alloc(arena, sizeof *with_network);
    *with_network = *hardware;
    if (curves && !json_is_null(curves) &&
        het_network_read(arena, curves, &with_network->network, err) < 0)
        return fail_in_part(document, "network", err);
    *ret = with_network;
    return 0;
}

static int read_cluster(struct het_arena *arena, const json_t *document,
                        const struct het_hardware *hardware,
                        const struct het_cluster **ret, struct het_unused_list *left_out,
                        struct het_error *err)
{
    const json_t *cluster, *pods = json_object_get(document, "pods");
    if (get_part(document, "cluster", &cluster, err) < 0)
        return -1;
    if (pods && !json_is_array(json_object_get(pods, "items"))) {
        het_fail(err, HET_BAD_INPUT, "items: must be a list of pods");
        return fail_in_part(document, "pods", err);
    }
    json_auto_t *short_form = NULL;
    if (het_node_is_list(cluster)) {
        if (het_node_list_cluster(arena, cluster, pods, hardware, &short_form, left_out,
                                  err) < 0)
            return fail_in_part(document, "cluster", err);
        cluster = short_form;
    }
    json_auto_t *without_network = NULL;
    if (json_object_get(document, "network") && json_object_get(cluster, "network")) {
        without_network = json_copy((json_t *)(uintptr_t)cluster);
        json_object_del(without_network, "network");
        cluster = without_network;
    }
    if (het_cluster_json_read(arena, cluster, hardware, ret, err) < 0)
        return fail_in_part(document, "cluster", err);
    return 0;
}

/* Limits may use any name of a type; those of the cluster are what the rest compares. */
static void rename_limits(struct het_arena *arena, const struct het_cluster *cluster,
                          struct het_workload *workload)
{
    struct het_type_limit *limits =
        HET_ARENA_ARRAY(arena, struct het_type_limit, workload->type_limit_count);
    for (size_t i = 0; i < workload->type_limit_count; i++) {
        limits[i] = workload->type_limits[i];
        const struct het_gpu_type *part =
            het_hardware_find(cluster->hardware, limits[i].type);
        if (!part || het_cluster_find_type(cluster, limits[i].type) != HET_NO_TYPE)
            continue;
        for (size_t t = 0; t < cluster->type_count; t++)
            if (het_hardware_find_sized(cluster->hardware, cluster->types[t].name,
                                        cluster->types[t].memory_bytes) == part)
                limits[i].type = cluster->types[t].name;
    }
    workload->type_limits = limits;
}

/* A plan file, unbound; what it does not say is as in `workload`. */
static int decode_plan(struct het_arena *arena, const struct het_workload *workload,
                       const json_t *json, const struct het_plan **ret,
                       struct het_error *err)
{
    const struct het_plan *read;
    if (het_plan_json_read(arena, json, &read, err) < 0)
        return -1;
    struct het_plan *plan = het_plan_copy(arena, read);
    if (!plan->sequence_length)
        plan->sequence_length = workload->sequence_length;
    if (!json_object_get(json, "precision"))
        plan->precision = workload->precision;
    if (!json_object_get(json, "optimizer"))
        plan->optimizer = workload->optimizer;
    *ret = plan;
    return 0;
}

/* "migration": { "diskGBs", "cloudGBs", "maxSeconds", "maxSlowdownPercent" }. */
static int read_migration(const json_t *job, struct het_question *question,
                          struct het_error *err)
{
    static const char *const fields[] = { "diskGBs", "cloudGBs", "maxSeconds",
                                          "maxSlowdownPercent", NULL };
    struct het_view root = het_view_root(job);
    struct het_view view = het_view_get(&root, "migration");
    struct het_view disk = het_view_get(&view, "diskGBs");
    struct het_view most = het_view_get(&view, "maxSeconds");
    struct het_view percent = het_view_get(&view, "maxSlowdownPercent");
    double stated = question->hardware->storage_bytes_per_s;
    struct het_migrate_rates rates = {
        .disk_bytes_per_s = HET_MIGRATE_DISK_BYTES_PER_S,
        .cloud_bytes_per_s = stated > 0 ? stated : HET_MIGRATE_CLOUD_BYTES_PER_S,
        .is_shared = !disk.json,
    };
    question->max_migration_s = HUGE_VAL;
    question->max_slowdown_percent = -1;
    if (het_view_object(&view, err) < 0 || het_view_members(&view, fields, err) < 0 ||
        het_view_bandwidth(&view, "diskGBs", &rates.disk_bytes_per_s, err) < 0 ||
        het_view_bandwidth(&view, "cloudGBs", &rates.cloud_bytes_per_s, err) < 0 ||
        het_view_number(&most, 0, 1e9, &question->max_migration_s, err) < 0 ||
        het_view_number(&percent, 0, 1e9, &question->max_slowdown_percent, err) < 0)
        return -1;
    question->rates = rates;
    return 0;
}

static int read_job(struct het_arena *arena, const json_t *document,
                    const struct het_profile *profile, struct het_workload *workload,
                    struct het_question *question, struct het_error *err)
{
    const json_t *job;
    if (get_part(document, "job", &job, err) < 0)
        return -1;
    if (het_workload_json_read(arena, job, profile, workload, &question->options, err) <
        0)
        return fail_in_part(document, "job", err);
    if (read_migration(job, question, err) < 0)
        return fail_in_part(document, "job", err);
    const json_t *from = json_object_get(job, "from");
    if (from && !json_is_null(from) &&
        decode_plan(arena, workload, from, &question->from, err) < 0) {
        het_error_locate(err, "job.from");
        return het_wrap(err, "%s: from", part_name(document, "job"));
    }
    return 0;
}

/* Whether the job's runtime is one of those that join GPUs of different vendors. It is
 * compared as it is written: that one program joins them says nothing of another that
 * runs the same plans. */
static int read_mixed_vendors(struct het_arena *arena, const json_t *document, bool *ret,
                              struct het_error *err)
{
    const struct het_view root = het_view_root(document);
    struct het_view list = het_view_get(&root, "mixedVendorRuntimes");
    const json_t *job = json_object_get(document, "job");
    const char *own = json_string_value(json_object_get(job, "runtime"));
    size_t count = 0;
    if (het_view_array(&list, HET_MAX_MIXED_RUNTIMES, &count, err) < 0)
        return -1;
    own = own ? own : het_runtimes()->name;
    for (size_t i = 0; i < count; i++) {
        struct het_view item = het_view_at(&list, i);
        struct het_error unknown;
        const char *name = NULL;
        if (het_view_need(&item, err) < 0 || het_view_name(&item, arena, &name, err) < 0)
            return -1;
        if (!het_runtime_find(name, &unknown))
            return het_view_fail(&item, err, "%s", unknown.message);
        *ret = *ret || !strcmp(name, own);
    }
    return 0;
}

/* A config is estimated for the cluster, in the job's precision if it says none. */
static int estimate_profile(struct het_arena *arena, const json_t *document,
                            const json_t *json, const struct het_cluster *cluster,
                            const struct het_hardware *hardware,
                            const struct het_profile **ret, struct het_error *err)
{
    json_t *precision = json_object_get(json_object_get(document, "job"), "precision");
    json_auto_t *question = json_copy((json_t *)(uintptr_t)json);
    if (precision && !json_object_get(question, "precision"))
        json_object_set(question, "precision", precision);
    return het_profile_config_read(arena, question, cluster, hardware, ret, err);
}

/* `profile`, with the sizes that the job allows beyond those measured. */
static int allow_extrapolation(struct het_arena *arena, const json_t *document,
                               const struct het_profile **profile, struct het_error *err)
{
    const struct het_view root = het_view_root(json_object_get(document, "job"));
    struct het_view factor = het_view_get(&root, "extrapolate");
    struct het_profile *copy = het_arena_alloc(arena, sizeof *copy);
    *copy = **profile;
    if (het_view_u32(&factor, 1, HET_MAX_EXTRAPOLATION, &copy->extrapolation, err) < 0)
        return fail_in_part(document, "job", err);
    *profile = copy;
    return 0;
}

static int read_profile(struct het_arena *arena, const json_t *document,
                        const struct het_cluster *cluster,
                        const struct het_hardware *hardware,
                        const struct het_profile **ret, struct het_error *err)
{
    const json_t *json;
    if (get_part(document, "profile", &json, err) < 0)
        return -1;
    int result =
        json_object_get(json, "config")
            ? estimate_profile(arena, document, json, cluster, hardware, ret, err)
            : het_profile_json_read(arena, json, ret, err);
    return result < 0 ? fail_in_part(document, "profile", err)
                      : allow_extrapolation(arena, document, ret, err);
}

int het_question_profile(struct het_arena *arena, const json_t *document,
                         const struct het_profile **ret, struct het_error *err)
{
    const struct het_hardware *hardware;
    const struct het_cluster *cluster = NULL;
    bool is_estimated = json_object_get(json_object_get(document, "profile"), "config");
    if (het_question_hardware(arena, document, &hardware, err) < 0 ||
        (is_estimated &&
         read_cluster(arena, document, hardware, &cluster, NULL, err) < 0))
        return -1;
    return read_profile(arena, document, cluster, hardware, ret, err);
}

static int read_unused(struct het_arena *arena, const struct het_view *root,
                       struct het_unused_list *left_out, struct het_error *err)
{
    struct het_view list = het_view_get(root, "unused");
    return het_unused_json_read(arena, &list, left_out, err);
}

int het_question_read(struct het_arena *arena, const json_t *document,
                      struct het_question *ret, struct het_error *err)
{
    struct het_question question = { 0 };
    const struct het_cluster *cluster;
    const struct het_profile *profile;
    struct het_workload *workload = het_arena_alloc(arena, sizeof *workload);
    if (!json_is_object(document))
        return het_fail(err, HET_BAD_INPUT,
                        "must be an object with cluster, profile and job");
    const struct het_view root = het_view_root(document);
    if (het_view_members(&root, document_fields, err) < 0 ||
        het_question_hardware(arena, document, &question.hardware, err) < 0 ||
        read_cluster(arena, document, question.hardware, &cluster, &question.left_out,
                     err) < 0 ||
        read_unused(arena, &root, &question.left_out, err) < 0 ||
        read_profile(arena, document, cluster, question.hardware, &profile, err) < 0)
        return -1;
    if (read_job(arena, document, profile, workload, &question, err) < 0 ||
        read_mixed_vendors(arena, document, &workload->mixes_vendors, err) < 0)
        return -1;
    rename_limits(arena, cluster, workload);
    if (het_problem_init(arena, cluster, profile, workload, &question.problem, err) < 0)
        return -1;
    *ret = question;
    return 0;
}

void het_question_take_batch(json_t *document, const json_t *plan)
{
    json_t *job = json_object_get(document, "job");
    json_t *batch = json_object_get(plan, "globalBatchSize");
    json_t *optimizer = json_object_get(plan, "optimizer");
    bool is_usable = json_is_integer(batch) && json_integer_value(batch) > 0 &&
                     json_integer_value(batch) <= HET_MAX_GLOBAL_BATCH;
    enum het_optimizer known;
    json_object_set_new(job, "globalBatchSize",
                        is_usable ? json_incref(batch) : json_integer(1));
    if (!json_object_get(job, "optimizer") && json_is_string(optimizer) &&
        !het_optimizer_parse(json_string_value(optimizer), &known, NULL))
        json_object_set(job, "optimizer", optimizer);
}

/* ---- answers ---- */

struct het_problem het_question_problem(struct het_arena *arena,
                                        const struct het_question *question)
{
    struct het_problem problem = question->problem;
    struct het_workload *workload = het_arena_alloc(arena, sizeof *workload);
    *workload = *problem.workload;
    if (workload->state_reserve_bytes < 0)
        workload->state_reserve_bytes = het_workload_default_reserve(workload);
    if (workload->memory_headroom < 0)
        workload->memory_headroom = problem.profile->origin == HET_PROFILE_MEASURED
                                        ? HET_DEFAULT_HEADROOM
                                        : HET_DEFAULT_HEADROOM_ESTIMATED;
    problem.workload = workload;
    return problem;
}

/* All GPUs of the cluster that the plan does not use. */
static void tell_unused(struct het_arena *arena, const struct het_question *question,
                        struct het_plan *plan)
{
    struct het_unused_list list = { 0 };
    het_unused_merge(arena, &list, question->left_out.groups, question->left_out.count);
    het_idle_gpus_explain(arena, &question->problem, plan, &list);
    het_unused_sort(&list);
    plan->unused = list.groups;
    plan->unused_count = list.count;
}

/* Seconds an iteration of the running plan takes for this question's cluster, profile and
 * limits; 0 if it cannot run there. */
static double from_iteration_s(struct het_arena *arena,
                               const struct het_question *question)
{
    const struct het_problem *problem = &question->problem;
    const struct het_plan *bound;
    struct het_peak_memory *peaks;
    struct het_cost cost;
    size_t count;
    if (!question->from ||
        het_plan_bind(arena, question->from, problem->cluster, &bound, NULL) < 0)
        return 0;
    struct het_plan plan = *bound;
    plan.idle_count = 0; /* what the plan left idle then; the cluster may have grown */
    struct het_violations violations = { 0 };
    if (het_plan_check(arena, problem, &plan, &violations) ||
        !het_runtime_express(arena, problem->workload->runtime, &plan, NULL) ||
        het_memory_plan(arena, problem, &plan, &peaks, &count, NULL) ||
        het_schedule_simulate(NULL, problem, &plan, &cost, NULL, NULL) < 0)
        return 0;
    return cost.iteration_s;
}

/* What the runtime's limits cost: the best plan without them, if it is faster. */
static void find_unrestricted(struct het_arena *arena,
                              const struct het_question *question,
                              struct het_prediction *predicted)
{
    struct het_workload workload = *question->problem.workload;
    struct het_problem problem = question->problem;
    const struct het_plan *found;
    if (het_runtime_runs_all(workload.runtime))
        return;
    workload.runtime = NULL;
    problem.workload = &workload;
    if (het_search_run(arena, &problem, &question->options, &found, NULL, NULL) < 0 ||
        found->predicted.iteration_s >= predicted->iteration_s)
        return;
    predicted->unrestricted_s = found->predicted.iteration_s;
    predicted->unrestricted_needs =
        het_runtime_needs(question->problem.workload->runtime, found);
}

/* The plan where least moves of the running one. */
static void place(struct het_arena *arena, const struct het_question *question,
                  struct het_plan *plan)
{
    const struct het_problem *problem = &question->problem;
    struct het_migration *migration = het_arena_alloc(arena, sizeof *migration);
    plan->pipelines = het_migrate_place(arena, problem, question->from, plan)->pipelines;
    het_plan_fill_idle(arena, problem->cluster, plan);
    *migration = het_migrate(arena, problem, question->from, plan, &question->rates);
    plan->predicted.migration = migration;
}

/* Bytes that leave the node that holds them. */
static double moved_bytes(const struct het_plan *plan)
{
    return plan->predicted.migration->peer_bytes + plan->predicted.migration->cloud_bytes;
}

/* Whether `plan` is worth telling of beside `best`: it is reached in the time allowed, as
 * `best` is not; or it moves less, and is as good but for the percents allowed. */
static bool is_stabler(const struct het_question *question, const struct het_plan *plan,
                       const struct het_plan *best)
{
    double most_s = question->max_migration_s;
    if (best->predicted.migration->seconds > most_s &&
        plan->predicted.migration->seconds <= most_s)
        return true;
    return question->max_slowdown_percent >= 0 && moved_bytes(plan) < moved_bytes(best) &&
           plan->predicted.iteration_s <=
               best->predicted.iteration_s * (1 + question->max_slowdown_percent / 100);
}

/* The running plan or its repair, if it is worth telling of beside `best`. */
static const struct het_plan *find_stable(struct het_arena *arena,
                                          const struct het_question *question,
                                          const struct het_plan *best)
{
    struct het_search_options options = question->options;
    const struct het_plan *found;
    if (best->predicted.migration->seconds <= question->max_migration_s &&
        (question->max_slowdown_percent < 0 || moved_bytes(best) <= 0))
        return NULL;
    options.algorithm = "repair";
    options.from = question->from;
    if (het_search_run(arena, &question->problem, &options, &found, NULL, NULL) < 0)
        return NULL;
    struct het_plan *stable = het_plan_copy(arena, found);
    place(arena, question, stable);
    tell_unused(arena, question, stable);
    return is_stabler(question, stable, best) ? stable : NULL;
}

static struct het_question planning_question(struct het_arena *arena,
                                             const struct het_question *question)
{
    struct het_question planning = *question;
    planning.problem = het_question_problem(arena, question);
    return planning;
}

int het_question_plan(struct het_arena *arena, const struct het_question *question,
                      const struct het_plan **ret, struct het_error *err)
{
    struct het_search_statistics statistics;
    const struct het_question planning = planning_question(arena, question);
    struct het_search_options options = question->options;
    const struct het_plan *found;
    options.from = question->from;
    if (het_search_run(arena, &planning.problem, &options, &found, &statistics, err) < 0)
        return -1;
    struct het_plan *plan = het_plan_copy(arena, found);
    plan->predicted.profile_origin = question->problem.profile->origin;
    plan->predicted.extrapolated = het_plan_extrapolates(&question->problem, plan);
    plan->predicted.assumed_link_count = het_cluster_assumed_links(
        arena, question->problem.cluster, &plan->predicted.assumed_links);
    if (question->from) {
        place(arena, question, plan);
        plan->predicted.from_iteration_s = from_iteration_s(arena, question);
        plan->predicted.stable = find_stable(arena, &planning, plan);
    }
    tell_unused(arena, &planning, plan);
    find_unrestricted(arena, &planning, &plan->predicted);
    /* Even if only what is told besides was cut short: it is not the whole answer. */
    plan->search.is_cut_short |= options.stop && *options.stop;
    *ret = plan;
    return 0;
}

static void judge_runtime(struct het_arena *arena, const struct het_problem *problem,
                          const struct het_plan *plan, struct het_violations *violations)
{
    const struct het_runtime *runtime = problem->workload->runtime;
    enum het_freedom missing;
    if (!het_runtime_express(arena, runtime, plan, &missing))
        het_violations_add(arena, violations, "runtime: %s",
                           het_runtime_lack(arena, runtime, missing));
}

/* Price and memory of a well-formed plan. */
static void price(struct het_arena *arena, const struct het_problem *problem,
                  const struct het_plan *plan, json_t *verdict,
                  struct het_violations *violations)
{
    struct het_error err;
    struct het_cost cost, closed_form;
    if (het_schedule_simulate(NULL, problem, plan, &cost, NULL, &err) < 0 ||
        het_cost_plan(problem, plan, &closed_form, &err) < 0) {
        het_violations_add(arena, violations, "%s", err.message);
        return;
    }
    struct het_peak_memory *peaks;
    size_t count;
    het_memory_plan(arena, problem, plan, &peaks, &count, violations);
    het_prediction_json_add_origin(verdict, problem->profile->origin,
                                   het_plan_extrapolates(problem, plan));
    const struct het_assumed_link *links;
    size_t link_count = het_cluster_assumed_links(arena, problem->cluster, &links);
    if (link_count)
        json_object_set_new(verdict, "assumedLinks",
                            het_prediction_json_links(links, link_count));
    json_object_set_new(verdict, "iterationSeconds", json_real(cost.iteration_s));
    json_object_set_new(verdict, "closedFormSeconds", json_real(closed_form.iteration_s));
    json_object_set_new(
        verdict, "parts",
        het_prediction_json_parts(cost.pipeline_s, cost.sync_s, cost.step_s));
    json_object_set_new(verdict, "peakMemoryBytes",
                        het_prediction_json_peak_memory(peaks, count, true));
}

/* ---- migration ---- */

static json_t *rank_json(const struct het_problem *problem,
                         const struct het_migration *migration, size_t rank)
{
    const struct het_migrate_rank *r = &migration->ranks[rank];
    return json_pack("{s:i, s:o, s:i, s:b, s:f, s:f, s:f}", "rank", (int)rank, "node",
                     het_json_text(problem->cluster->nodes[r->node].name), "gpu",
                     (int)r->local_index, "keeps", r->keeps, "localBytes", r->local_bytes,
                     "peerBytes", r->peer_bytes, "cloudBytes", r->cloud_bytes);
}

static json_t *migration_json(const struct het_problem *problem,
                              const struct het_migration *migration)
{
    json_t *json = het_prediction_json_migration(migration), *ranks = json_array();
    for (size_t i = 0; i < migration->rank_count; i++)
        json_array_append_new(ranks, rank_json(problem, migration, i));
    json_object_set_new(json, "ranks", ranks);
    if (migration->bottleneck_node != HET_UNBOUND)
        json_object_set_new(
            json_object_get(json, "bottleneck"), "node",
            het_json_text(problem->cluster->nodes[migration->bottleneck_node].name));
    return json;
}

/* A plan file, bound; it must obey all rules but memory. */
static int read_valid(struct het_arena *arena, const struct het_question *question,
                      const json_t *json, const struct het_plan **ret,
                      struct het_error *err)
{
    const struct het_problem *problem = &question->problem;
    struct het_violations violations = { 0 };
    const struct het_plan *plan = NULL;
    if (decode_plan(arena, problem->workload, json, &plan, err) < 0 ||
        het_plan_bind(arena, plan, problem->cluster, &plan, err) < 0)
        return -1;
    if (het_plan_check(arena, problem, plan, &violations))
        return het_fail(err, HET_BAD_INPUT, "%.300s", violations.messages[0]);
    *ret = plan;
    return 0;
}

int het_question_simulate(struct het_arena *arena, const struct het_question *question,
                          const json_t *plan_json, const struct het_plan **ret_plan,
                          struct het_timeline *ret, struct het_error *err)
{
    const struct het_plan *plan = NULL;
    struct het_cost cost;
    if (read_valid(arena, question, plan_json, &plan, err) < 0 ||
        het_schedule_simulate(arena, &question->problem, plan, &cost, ret, err) < 0)
        return -1;
    *ret_plan = plan;
    return 0;
}

int het_question_stage_times(struct het_arena *arena, const struct het_question *question,
                             const struct het_plan *plan, struct het_stage_parts **ret,
                             struct het_error *err)
{
    const struct het_problem *problem = &question->problem;
    struct het_violations violations = { 0 };
    struct het_plan whole = *plan;
    size_t count = 0, at = 0;
    whole.idle_count = 0; /* of the cluster as it was then */
    if (het_plan_bind(arena, &whole, problem->cluster, &plan, err) < 0)
        return -1;
    if (het_plan_check(arena, problem, plan, &violations))
        return het_fail(err, HET_BAD_INPUT, "%.300s", violations.messages[0]);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        count += plan->pipelines[p].stage_count;
    struct het_stage_parts *times = HET_ARENA_ARRAY(arena, struct het_stage_parts, count);
    for (size_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        for (size_t s = 0; s < pipeline->stage_count; s++, at++) {
            const struct het_stage *stage = &pipeline->stages[s];
            if (het_cost_stage(problem, stage, &times[at].forward_s,
                               &times[at].backward_s, err) < 0)
                return -1;
            if (s + 1 < pipeline->stage_count)
                times[at].send_s = het_cost_send(problem, stage, stage + 1);
        }
    }
    *ret = times;
    return 0;
}

int het_question_diff(struct het_arena *arena, const struct het_question *question,
                      const json_t *plan_json, json_t **ret, struct het_error *err)
{
    const struct het_problem *problem = &question->problem;
    const struct het_plan *plan = NULL;
    struct het_cost cost;
    if (!question->from)
        return het_fail(err, HET_BAD_INPUT, "from: the running plan is missing");
    if (question->from->layer_count != problem->profile->layer_count)
        return het_fail(err, HET_BAD_INPUT,
                        "from: layerCount: is %u, the profile has %u layers; both plans "
                        "must be of one model",
                        question->from->layer_count, problem->profile->layer_count);
    if (read_valid(arena, question, plan_json, &plan, err) < 0 ||
        het_schedule_simulate(arena, problem, plan, &cost, NULL, err) < 0)
        return -1;
    struct het_migration migration =
        het_migrate(arena, problem, question->from, plan, &question->rates);
    *ret = migration_json(problem, &migration);
    json_object_set_new(*ret, "iterationSeconds", json_real(cost.iteration_s));
    double from_s = from_iteration_s(arena, question);
    if (from_s > 0)
        json_object_set_new(*ret, "fromIterationSeconds", json_real(from_s));
    return 0;
}

/* ---- explanation ---- */

int het_question_explain(struct het_arena *arena, const struct het_question *question,
                         const json_t *plan_json, bool searches,
                         const struct het_plan **ret_plan, struct het_explanation *ret,
                         struct het_error *err)
{
    if (read_valid(arena, question, plan_json, ret_plan, err) < 0)
        return -1;
    const struct het_problem problem = het_question_problem(arena, question);
    return het_explain(arena, &problem, *ret_plan, searches ? &question->options : NULL,
                       ret, err);
}

static json_t *move_json(const struct het_explain_move *move)
{
    if (!move->is_possible)
        return json_null();
    return json_pack("{s:b, s:f}", "fits", move->fits, "iterationSeconds",
                     move->iteration_s);
}

static json_t *stages_json(const struct het_explanation *explanation)
{
    json_t *list = json_array();
    for (size_t i = 0; i < explanation->stage_count; i++) {
        const struct het_explain_stage *stage = &explanation->stages[i];
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:I, s:I, s:o, s:o}",
                            "pipeline", (int)stage->pipeline, "stage", (int)stage->stage,
                            "pipelines", (int)stage->pipeline_count, "computeSeconds",
                            stage->compute_s, "sendSeconds", stage->send_s, "busyShare",
                            stage->busy_share, "pipelineSeconds", stage->pipeline_s,
                            "peakBytes", (json_int_t)stage->peak_bytes, "capacityBytes",
                            (json_int_t)stage->capacity_bytes, "takeFromNext",
                            move_json(&stage->take_from_next), "giveToNext",
                            move_json(&stage->give_to_next)));
    }
    return list;
}

/* null where there is no plan. */
static json_t *seconds_json(double seconds)
{
    return isfinite(seconds) ? json_real(seconds) : json_null();
}

static const char *uplink_name(const struct het_cluster *cluster, uint32_t uplink)
{
    if (uplink < cluster->node_count)
        return cluster->nodes[uplink].name;
    return uplink == HET_UNBOUND ? NULL
                                 : cluster->domains[uplink - cluster->node_count].name;
}

json_t *het_question_explanation_json(const struct het_question *question,
                                      const struct het_explanation *explanation)
{
    const struct het_cluster *cluster = question->problem.cluster;
    const struct het_cost *cost = &explanation->cost;
    const char *uplink = uplink_name(cluster, explanation->busiest_uplink);
    json_t *json = json_pack(
        "{s:f, s:o, s:i, s:i, s:f, s:o}", "iterationSeconds", cost->iteration_s, "parts",
        het_prediction_json_parts(cost->pipeline_s, cost->sync_s, cost->step_s),
        "slowestPipeline", (int)cost->slowest_pipeline, "bottleneckStage",
        (int)cost->bottleneck_stage, "lowerBoundSeconds", explanation->lower_bound_s,
        "stages", stages_json(explanation));
    json_object_set_new(json, "busiestUplink",
                        uplink ? het_json_text(uplink) : json_null());
    json_t *freedoms = json_array(), *more = json_array();
    for (size_t i = 0; explanation->freedoms && i < HET_EXPLAIN_FREEDOMS; i++)
        json_array_append_new(
            freedoms, json_pack("{s:s, s:o}", "name", explanation->freedoms[i].name,
                                "iterationSeconds",
                                seconds_json(explanation->freedoms[i].iteration_s)));
    for (size_t i = 0; i < explanation->more_count; i++)
        json_array_append_new(
            more, json_pack("{s:o, s:i, s:f}", "gpuType",
                            het_json_text(cluster->types[explanation->more[i].type].name),
                            "gpus", (int)explanation->more[i].gpus, "iterationSeconds",
                            explanation->more[i].iteration_s));
    if (explanation->freedoms) {
        json_object_set_new(json, "freedoms", freedoms);
        json_object_set_new(json, "more", more);
    } else {
        json_decref(freedoms);
        json_decref(more);
    }
    return json;
}

json_t *het_question_judge(struct het_arena *arena, const struct het_question *question,
                           const json_t *plan_json)
{
    const struct het_problem *problem = &question->problem;
    struct het_violations violations = { 0 };
    struct het_error err;
    const struct het_plan *plan;
    json_t *verdict = json_object();
    if (decode_plan(arena, problem->workload, plan_json, &plan, &err) < 0 ||
        het_plan_bind(arena, plan, problem->cluster, &plan, &err) < 0)
        het_violations_add(arena, &violations, "%s", err.message);
    else if (!het_plan_check(arena, problem, plan, &violations)) {
        judge_runtime(arena, problem, plan, &violations);
        price(arena, problem, plan, verdict, &violations);
    }

    json_t *list = json_array();
    for (size_t i = 0; i < violations.count; i++)
        json_array_append_new(list, het_json_text(violations.messages[i]));
    json_object_set_new(verdict, "violations", list);
    json_object_set_new(verdict, "valid", json_boolean(!violations.count));
    return verdict;
}
