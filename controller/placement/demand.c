#include "controller/placement/demand.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/placement/resharding.h"
#include "controller/placement/victims.h"
#include "controller/placement/what_if.h"

#include <string.h>

/* A name that no node of Kubernetes can have, after all that they can have. */
#define NEW_NODE   "~%02zu-%04zu"
#define NEW_PREFIX '~'

/* ---- the questions ---- */

struct shape {
    const char *type;
    int64_t gpus;       /* of one node */
    const char *vendor; /* as of the nodes that there are */
};

static size_t add_shape(const struct snapshot *snapshot, const char *type,
                        struct shape *shapes, size_t count)
{
    if (!type || !*type || count == JOB_SPEC_MAX_GPU_TYPES)
        return count;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(shapes[i].type, type))
            return count;
    struct shape shape = { .type = type };
    for (size_t i = 0; i < snapshot->node_count; i++)
        if (!strcmp(snapshot->nodes[i].type, type) &&
            snapshot->nodes[i].allocatable > shape.gpus) {
            shape.gpus = snapshot->nodes[i].allocatable;
            shape.vendor = snapshot->nodes[i].vendor;
        }
    if (!shape.gpus)
        shape.gpus = DEMAND_NODE_GPUS;
    shapes[count] = shape;
    return count + 1;
}

/* The types that the job may use: those of its spec, or else of its profile; without one,
 * those of the cluster. */
static size_t list_shapes(const struct snapshot *snapshot,
                          struct shape ret[JOB_SPEC_MAX_GPU_TYPES])
{
    const struct job_spec *spec = &snapshot->spec;
    const json_t *profiled = object_at(snapshot->profile, "spec.gpuTypes");
    size_t count = 0;
    for (size_t i = 0; i < spec->gpu_type_count; i++)
        count = add_shape(snapshot, spec->gpu_types[i].name, ret, count);
    for (size_t i = 0; !spec->gpu_type_count && i < json_array_size(profiled); i++)
        count = add_shape(
            snapshot,
            json_string_value(json_object_get(json_array_get(profiled, i), "name")), ret,
            count);
    for (size_t i = 0; !spec->gpu_type_count && !profiled && i < snapshot->node_count;
         i++)
        count = add_shape(snapshot, snapshot->nodes[i].type, ret, count);
    return count;
}

/* What the job needs at least, of all types together. */
static int64_t least_gpus(const struct job_spec *spec)
{
    int64_t least = 1, of_types = 0;
    for (size_t i = 0; i < spec->gpu_type_count; i++)
        of_types += spec->gpu_types[i].min_gpus;
    least = spec->min_gpus > least ? spec->min_gpus : least;
    return of_types > least ? of_types : least;
}

static int64_t nodes_for(int64_t gpus, const struct shape *shape)
{
    return (gpus + shape->gpus - 1) / shape->gpus;
}

/* The nodes that there are, and new ones for `gpus` GPUs of each type. */
static void add_nodes(const struct pass *pass, const struct shape *shapes, size_t count,
                      struct what_if *question)
{
    const struct snapshot *snapshot = pass->snapshot;
    int64_t gpus = question->max_gpus;
    size_t added = 0;
    for (size_t i = 0; i < count; i++)
        added += (size_t)nodes_for(gpus, &shapes[i]);
    struct capacity_node *nodes =
        HET_ARENA_ARRAY(pass->arena, struct capacity_node, snapshot->node_count + added);
    if (snapshot->node_count)
        memcpy(nodes, snapshot->nodes, snapshot->node_count * sizeof *nodes);
    size_t at = snapshot->node_count;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < (size_t)nodes_for(gpus, &shapes[i]); k++)
            nodes[at++] = (struct capacity_node){
                .name = het_arena_printf(pass->arena, NEW_NODE, i, k),
                .type = shapes[i].type,
                .vendor = shapes[i].vendor,
                .allocatable = shapes[i].gpus,
                .free = shapes[i].gpus,
            };
    question->nodes = nodes;
    question->node_count = at;
}

/* The questions, without their nodes. */
static size_t list_questions(const struct pass *pass, uint64_t asked,
                             const struct shape *shapes, size_t shape_count,
                             struct what_if ret[DEMAND_QUESTIONS])
{
    int64_t own = pass->snapshot->spec.max_gpus;
    uint64_t digest = digest_bytes(asked, "demand", strlen("demand"));
    for (size_t i = 0; i < shape_count; i++)
        digest = digest_bytes(digest, &shapes[i].gpus, sizeof shapes[i].gpus);
    size_t count = 0;
    for (int64_t gpus = least_gpus(&pass->snapshot->spec); count < DEMAND_QUESTIONS;
         gpus *= 2) {
        bool is_last = own && gpus >= own;
        gpus = is_last ? own : gpus;
        int64_t nodes = 0;
        for (size_t i = 0; i < shape_count; i++)
            nodes += nodes_for(gpus, &shapes[i]);
        if (!nodes || nodes > DEMAND_MAX_NODES)
            break;
        ret[count++] =
            (struct what_if){ .max_gpus = gpus,
                              .digest = digest_bytes(digest, &gpus, sizeof gpus) };
        if (is_last)
            break;
    }
    return count;
}

/* ---- what comes of them ---- */

static void add_demand(struct pass *pass, const char *type, int64_t gpus)
{
    struct status_facts *facts = &pass->facts;
    for (size_t i = 0; i < facts->demand_count; i++) {
        if (!strcmp(facts->demands[i].type, type)) {
            facts->demands[i].gpus += gpus;
            return;
        }
    }
    if (facts->demand_count < STATUS_MAX_DEMANDS)
        facts->demands[facts->demand_count++] = (struct status_demand){ type, gpus };
}

/* What `plan` takes of new nodes. */
static void take_demand(struct pass *pass, const struct het_plan *plan)
{
    struct het_rank_node *places;
    size_t count = het_plan_rank_nodes(pass->arena, plan, &places);
    for (size_t i = 0; i < count; i++)
        if (*places[i].node_name == NEW_PREFIX)
            add_demand(pass, places[i].type_name, places[i].gpu_count);
}

/* Whether the cluster has changed a moment ago: it may do so again. */
static bool is_restless(struct pass *pass)
{
    return !pass_has_come(pass, pass->decision->memory.input_changed_ms +
                                    pass->snapshot->spec.debounce_ms);
}

void demand_seek(struct pass *pass, uint64_t asked)
{
    struct shape shapes[JOB_SPEC_MAX_GPU_TYPES];
    struct what_if questions[DEMAND_QUESTIONS];
    size_t shape_count = list_shapes(pass->snapshot, shapes);
    size_t count = list_questions(pass, asked, shapes, shape_count, questions), next = 0;
    for (size_t i = 0; i < count; i++) {
        if (!what_if_is_answered(pass, &questions[i]))
            continue;
        add_nodes(pass, shapes, shape_count, &questions[i]);
        const struct het_plan *plan = what_if_plan(pass, &questions[i]);
        if (plan)
            take_demand(pass, plan);
        /* A planner that breaks on this, or refuses it, is not asked for more. */
        if (plan || pass->snapshot->memory.what_if.kind != ANSWER_NO_PLAN)
            return;
        next = i + 1;
    }
    if (next >= count)
        return; /* no number of GPUs would do */
    pass->facts.demands_stand = true;
    if (is_restless(pass))
        return;
    add_nodes(pass, shapes, shape_count, &questions[next]);
    what_if_ask(pass, &questions[next], false);
}

bool demand_is_sought(const struct pass *pass, uint64_t asked)
{
    struct shape shapes[JOB_SPEC_MAX_GPU_TYPES];
    struct what_if questions[DEMAND_QUESTIONS];
    size_t shape_count = list_shapes(pass->snapshot, shapes);
    size_t count = list_questions(pass, asked, shapes, shape_count, questions);
    for (size_t i = 0; i < count; i++)
        if (what_if_is_answered(pass, &questions[i]))
            return true;
    return false;
}

/* ---- a job that runs ---- */

static const char *main_type(const struct pass *pass)
{
    const char *most = NULL;
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        const char *type = pass->current->rank_nodes[i].type_name;
        int64_t more = most ? pass_count_gpus(pass, type) - pass_count_gpus(pass, most)
                            : 1;
        if (more > 0 || (!more && strcmp(type, most) < 0))
            most = type;
    }
    return most;
}

/* What the spec lets the job use of the type. */
static int64_t most_of_type(const struct job_spec *spec, const char *type)
{
    const struct job_gpu_type *rule = job_spec_find_gpu_type(spec, type);
    return rule && rule->max_gpus ? rule->max_gpus : INT64_MAX;
}

void demand_growth(struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const struct job_spec *spec = &snapshot->spec;
    const char *type = main_type(pass);
    if (!type || spec->replan_mode != REPLAN_AUTOMATIC || snapshot->quota.queue ||
        resharding_is_fixed(pass))
        return;
    /* What the job may plan with: its own GPUs and free ones. */
    int64_t gpus = spec->max_gpus - victims_free(snapshot);
    int64_t of_type = most_of_type(spec, type) - pass_count_gpus(pass, type);
    gpus = gpus < of_type ? gpus : of_type;
    if (gpus > 0)
        add_demand(pass, type, gpus);
}
