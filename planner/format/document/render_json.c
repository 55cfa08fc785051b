#include "planner/format/document/render_json.h"

#include "planner/format/document/plan_json.h"

/* ---- the plan by itself ---- */

/* Checks what can be checked of a plan without cluster and profile; binds it to the nodes
 * that it names. */
static int read_plan(struct het_arena *arena, const json_t *json,
                     const struct het_plan **ret, struct het_error *err)
{
    const struct het_plan *plan;
    if (het_plan_json_read(arena, json, &plan, err) < 0)
        return -1;
    struct het_violations violations = { 0 };
    const struct het_profile profile = { .layer_count = plan->layer_count };
    const struct het_workload workload = { .global_batch = plan->global_batch,
                                           .sequence_length = plan->sequence_length,
                                           .precision = plan->precision,
                                           .optimizer = plan->optimizer };
    const struct het_problem problem = { .cluster = het_plan_own_cluster(arena, plan),
                                         .profile = &profile,
                                         .workload = &workload };
    if (het_plan_bind(arena, plan, problem.cluster, &plan, err) < 0)
        return -1;
    struct het_plan without_idle = *plan;
    without_idle.idle_count = 0;
    if (het_plan_check(arena, &problem, &without_idle, &violations))
        return het_fail(err, HET_BAD_INPUT, "%.300s", violations.messages[0]);
    *ret = plan;
    return 0;
}

/* ---- pods ---- */

static json_t *arguments_json(struct het_arena *arena,
                              const struct het_rendering *rendering, size_t node)
{
    const char **words;
    size_t count = het_rendering_arguments(arena, rendering, node, &words);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, het_json_text(words[i]));
    return list;
}

static json_t *environment_json(struct het_arena *arena,
                                const struct het_rendering *rendering,
                                const struct het_plan *plan,
                                const struct het_render_job *job, size_t node)
{
    struct het_env *variables;
    size_t count =
        het_rendering_environment(arena, rendering, plan, job, node, &variables);
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, variables[i].name, het_json_text(variables[i].value));
    return object;
}

static json_t *pods_json(struct het_arena *arena, const struct het_plan *plan,
                         const struct het_render_job *job,
                         const struct het_rendering *rendering)
{
    struct het_rank_node *nodes;
    size_t count = het_plan_rank_nodes(arena, plan, &nodes);
    json_t *pods = json_array();
    for (size_t n = 0; n < count; n++) {
        const char *host = het_render_host(arena, job, n);
        json_array_append_new(
            pods,
            json_pack("{s:o, s:o, s:i, s:o, s:o}", "host", het_json_text(host), "node",
                      het_json_text(nodes[n].node_name), "gpus", (int)nodes[n].gpu_count,
                      "arguments", arguments_json(arena, rendering, n), "environment",
                      environment_json(arena, rendering, plan, job, n)));
    }
    return pods;
}

int het_render_json(struct het_arena *arena, const struct het_runtime *runtime,
                    const json_t *plan_json, struct het_render_job job, json_t **ret,
                    struct het_error *err)
{
    const struct het_plan *plan = NULL;
    enum het_freedom missing = HET_FREEDOM_COUNT;
    if (!runtime->version && !het_runtime_runs_all(runtime))
        return het_fail(
            err, HET_BAD_INPUT,
            "runtime: %s has no program that reads a plan as arguments; render "
            "for another runtime, or for generic",
            runtime->title);
    if (read_plan(arena, plan_json, &plan, err) < 0)
        return -1;
    plan = het_runtime_express(arena, runtime, plan, &missing);
    if (!plan)
        return het_fail(err, HET_NO_PLAN, "%s; plan again with --runtime %s",
                        het_runtime_lack(arena, runtime, missing), runtime->name);
    job.plan_hash = het_plan_json_hash(arena, plan);
    struct het_rendering rendering = het_render(arena, runtime, plan, &job);
    json_t *files = json_object();
    for (size_t i = 0; i < rendering.file_count; i++)
        json_object_set_new(files, rendering.files[i].name,
                            het_json_text(rendering.files[i].text));
    *ret = json_pack("{s:s, s:s*, s:o, s:o, s:o}", "runtime", runtime->name,
                     "renderedFor", runtime->version, "plan", het_plan_json(plan),
                     "files", files, "pods", pods_json(arena, plan, &job, &rendering));
    return 0;
}
