#include "planner/cost/cost.h"

#include "planner/cost/link_sharing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- one stage ---- */

/* Whether replica `r` takes as long as the one before it, as most do. */
static bool repeats_previous(const struct het_stage *stage, size_t r)
{
    const struct het_replica *a = &stage->replicas[r], *b = a - 1;
    return r && a->type == b->type && a->tp == b->tp &&
           a->microbatch_size == b->microbatch_size;
}

int het_cost_stage(const struct het_problem *problem, const struct het_stage *stage,
                   double *ret_forward_s, double *ret_backward_s, struct het_error *err)
{
    double slowest_forward = 0, slowest_backward = 0;
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        double forward, backward;
        if (repeats_previous(stage, r))
            continue;
        if (het_profile_times(problem->profile, problem->profile_type[replica->type],
                              replica->tp, replica->microbatch_size, stage->first_layer,
                              stage->layer_count, &forward, &backward, err) < 0)
            return -1;
        if (stage->recompute == HET_RECOMPUTE_FULL)
            backward += forward;
        /* Where selective recomputation was not measured, het_plan_check refuses it. */
        if (stage->recompute == HET_RECOMPUTE_SELECTIVE)
            het_profile_selective_s(problem->profile,
                                    problem->profile_type[replica->type], replica->tp,
                                    replica->microbatch_size, stage->first_layer,
                                    stage->layer_count, &backward);
        slowest_forward = fmax(slowest_forward, forward);
        slowest_backward = fmax(slowest_backward, backward);
    }
    *ret_forward_s = slowest_forward;
    *ret_backward_s = slowest_backward;
    return 0;
}

/* ---- activations from stage to stage ---- */

double het_cost_send(const struct het_problem *problem, const struct het_stage *from,
                     const struct het_stage *to)
{
    return het_transfer_seconds(problem, from, to);
}

void het_cost_sends(const struct het_problem *problem, const struct het_stage *from,
                    const struct het_stage *to, double *ret_send_s)
{
    const double *bytes = problem->profile->boundary_bytes;
    struct het_stage sender = *from;
    sender.layer_count = 1;
    for (uint32_t cut = 1; cut < problem->profile->layer_count; cut++) {
        uint32_t same = 1;
        while (bytes[same - 1] != bytes[cut - 1])
            same++;
        sender.first_layer = cut - 1;
        ret_send_s[cut] = same < cut ? ret_send_s[same]
                                     : het_cost_send(problem, &sender, to);
    }
}

/* ---- load on uplinks ---- */

/* Seconds that the uplink of each node, and then of each domain, is busy, either way.
 * Up to INLINE_UPLINKS of them need no allocation. */
#define INLINE_UPLINKS 128
struct uplink {
    double busy_s;
    uint32_t gpus;       /* of a node: those that synchronise */
    uint32_t last_class; /* layer class counted last, plus one */
};
struct uplinks {
    struct uplink *list;
    struct uplink inlined[INLINE_UPLINKS];
};

static void uplinks_init(struct uplinks *uplinks, size_t count)
{
    uplinks->list = uplinks->inlined;
    if (count > INLINE_UPLINKS)
        uplinks->list = xcalloc(count, sizeof *uplinks->list);
    else
        memset(uplinks->inlined, 0, count * sizeof *uplinks->inlined);
}

static void uplinks_fini(struct uplinks *uplinks)
{
    if (uplinks->list != uplinks->inlined)
        het_free_pointer(&uplinks->list);
}

/* ---- gradients ---- */

/* Layers [first, end) that the same replicas hold. */
struct layer_class {
    uint32_t first, end;
    bool both_ends; /* the shared embedding: layer 0 and the last, held by either's */
    uint64_t holders;
    double whole_bytes; /* of gradients, over the tensor-parallel ranks of a holder */
    double latency_s;
    uint32_t highest_tp;
    uint32_t first_node;
    bool leaves_node;
    bool leaves_domain[HET_MAX_LEVELS]; /* some holders are in others, or in none */
    uint64_t kinds;                     /* of nodes: bits of struct sync */
};

#define INLINE_CLASSES 32
#define MAX_KINDS      64
struct sync {
    const struct het_problem *problem;
    const struct het_plan *plan;
    uint16_t class_of_first[HET_MAX_LAYERS]; /* class that begins at a layer */
    struct layer_class *classes;
    struct layer_class inlined[INLINE_CLASSES];
    size_t class_count;
    struct uplinks uplinks;
    /* With measured curves, a node of each place that the plan uses, the first
     * MAX_KINDS. */
    uint32_t kind_nodes[MAX_KINDS];
    uint32_t kind_count;
    double largest_s;
    uint32_t largest_uplink; /* HET_UNBOUND: a GPU's link, or none */
};

/* Cuts the layers wherever a stage of any pipeline begins. */
static void sync_init(struct sync *sync, const struct het_problem *problem,
                      const struct het_plan *plan)
{
    uint32_t layer_count = problem->profile->layer_count;
    bool shared = problem->profile->shared_embedding && layer_count > 1;
    bool is_cut[HET_MAX_LAYERS + 1];
    memset(is_cut, 0, layer_count + 1);
    is_cut[0] = is_cut[layer_count] = true;
    if (shared)
        is_cut[1] = is_cut[layer_count - 1] = true;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            is_cut[plan->pipelines[p].stages[s].first_layer] = true;

    size_t count = 0;
    for (uint32_t l = 0; l < layer_count; l++)
        count += is_cut[l];
    sync->problem = problem;
    sync->plan = plan;
    sync->class_count = count;
    sync->classes = count <= INLINE_CLASSES ? sync->inlined
                                            : xcalloc(count, sizeof *sync->classes);
    sync->largest_s = 0;
    sync->largest_uplink = HET_UNBOUND;
    struct layer_class *class = sync->classes;
    for (uint32_t first = 0, end; first < layer_count; first = end, class ++) {
        for (end = first + 1; !is_cut[end];)
            end++;
        *class =
            (struct layer_class){ .first = first, .end = end, .first_node = HET_UNBOUND };
        sync->class_of_first[first] = (uint16_t)(class - sync->classes);
    }
    sync->classes[0].both_ends = shared;
    sync->kind_count = 0;
    uplinks_init(&sync->uplinks,
                 problem->cluster->node_count + problem->cluster->domain_count);
}

static void sync_fini(struct sync *sync)
{
    uplinks_fini(&sync->uplinks);
    if (sync->classes != sync->inlined)
        het_free_pointer(&sync->classes);
}

/* The last layer of a shared embedding is summed with layer 0. */
static bool is_summed_with_first(const struct sync *sync, const struct layer_class *class)
{
    return sync->classes[0].both_ends && class != sync->classes &&
           class->end == sync->problem->profile->layer_count;
}

/* Gradient bytes of the class on one rank of degree `tp`. */
static double shard_bytes(const struct sync *sync, const struct layer_class *class,
                          uint32_t tp)
{
    const struct het_profile *profile = sync->problem->profile;
    const struct het_layer_bytes *bytes = het_profile_bytes(profile, tp);
    if (!bytes)
        return 0;
    double parameters = bytes->parameters[class->end] - bytes->parameters[class->first];
    uint32_t last = profile->layer_count - 1;
    if (class->both_ends)
        parameters =
            fmax(parameters, bytes->parameters[last + 1] - bytes->parameters[last]);
    return parameters * het_workload_gradient_bytes(sync->problem->workload);
}

/* Share of its shard that each GPU of a ring of n sends and receives: 2 (n-1)/n. */
static double ring_share(const struct layer_class *class)
{
    return 2 * (double)(class->holders - 1) / (double)class->holders;
}

/* Bit of the node's place among those of the plan; 0: it has none. */
static uint64_t kind_of(struct sync *sync, uint32_t node)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    uint32_t place = cluster->network ? cluster->nodes[node].place : 0, k = 0;
    if (!place)
        return 0;
    while (k < sync->kind_count && cluster->nodes[sync->kind_nodes[k]].place != place)
        k++;
    if (k == MAX_KINDS)
        return 0;
    if (k == sync->kind_count)
        sync->kind_nodes[sync->kind_count++] = node;
    return UINT64_C(1) << k;
}

static void look_at_holder(struct sync *sync, struct layer_class *class,
                           const struct het_replica *replica)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    const struct het_node *node = &cluster->nodes[replica->node];
    class->holders++;
    class->whole_bytes =
        fmax(class->whole_bytes, shard_bytes(sync, class, replica->tp) * replica->tp);
    class->latency_s = fmax(class->latency_s, node->latency_s);
    class->highest_tp = replica->tp > class->highest_tp ? replica->tp : class->highest_tp;
    if (class->first_node == HET_UNBOUND)
        class->first_node = replica->node;
    class->leaves_node = class->leaves_node || replica->node != class->first_node;
    class->kinds |= kind_of(sync, replica->node);
    for (uint32_t level = 0; level < cluster->level_count; level++)
        if (node->domain[level] != cluster->nodes[class->first_node].domain[level])
            class->leaves_domain[level] = true;
}

/* What one rank sends in a step of the ring. */
static double step_bytes(const struct layer_class *class)
{
    return class->whole_bytes / class->highest_tp / (double)class->holders;
}

/* What the rings of a class get out of a node: its uplink, for the GPUs of it that
 * synchronise, or the slowest curve from it to the other kinds of nodes. */
static double ring_bandwidth(const struct sync *sync, const struct layer_class *class,
                             uint32_t node)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    uint32_t gpus = sync->uplinks.list[node].gpus;
    double least = het_cluster_uplink(cluster, node, gpus, step_bytes(class));
    for (uint32_t k = 0; k < sync->kind_count; k++)
        if ((class->kinds >> k & 1) &&
            cluster->nodes[sync->kind_nodes[k]].place != cluster->nodes[node].place)
            least = fmin(least, het_cluster_pair(cluster, node, sync->kind_nodes[k], gpus,
                                                 step_bytes(class)));
    return least;
}

static void add_busy(struct sync *sync, struct layer_class *class, size_t uplink_index,
                     double seconds)
{
    struct uplink *uplink = &sync->uplinks.list[uplink_index];
    uint32_t stamp = (uint32_t)(class - sync->classes) + 1;
    if (uplink->last_class == stamp)
        return;
    uplink->last_class = stamp;
    uplink->busy_s += seconds + 2 * (double)(class->holders - 1) * class->latency_s;
    if (uplink->busy_s > sync->largest_s) {
        sync->largest_s = uplink->busy_s;
        sync->largest_uplink = (uint32_t)uplink_index;
    }
}

static void load_uplinks(struct sync *sync, struct layer_class *class,
                         const struct het_replica *replica)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    const struct het_node *node = &cluster->nodes[replica->node];
    double bytes = ring_share(class) * class->whole_bytes;
    add_busy(sync, class, replica->node,
             bytes / ring_bandwidth(sync, class, replica->node));
    for (uint32_t level = 0; level < cluster->level_count; level++) {
        uint32_t domain = node->domain[level];
        if (domain && class->leaves_domain[level])
            add_busy(sync, class, cluster->node_count + domain - 1,
                     bytes / cluster->domains[domain - 1].uplink_bytes_per_s);
    }
}

static const struct het_stage *find_stage(const struct het_pipeline *pipeline,
                                          uint32_t layer)
{
    size_t low = 0, high = pipeline->stage_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (pipeline->stages[middle].first_layer <= layer)
            low = middle;
        else
            high = middle;
    }
    return &pipeline->stages[low];
}

/* Calls `visit` for every replica that holds the class. */
static void each_holder(struct sync *sync, struct layer_class *class,
                        void (*visit)(struct sync *, struct layer_class *,
                                      const struct het_replica *))
{
    for (size_t p = 0; p < sync->plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &sync->plan->pipelines[p];
        const struct het_stage *stage = find_stage(pipeline, class->first);
        for (size_t r = 0; r < stage->replica_count; r++)
            visit(sync, class, &stage->replicas[r]);
        const struct het_stage *last = &pipeline->stages[pipeline->stage_count - 1];
        if (class->both_ends && last != stage)
            for (size_t r = 0; r < last->replica_count; r++)
                visit(sync, class, &last->replicas[r]);
    }
}

/* What each GPU of a replica gets of its own link, and as one flow to other nodes; with
 * curves the latter is in ring_bandwidth. */
static double flow_bandwidth(const struct sync *sync, uint32_t node)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    if (cluster->network && cluster->nodes[node].place)
        return HUGE_VAL;
    return het_cluster_pair(cluster, node, node, 1, 1);
}

/* Seconds that the GPUs of a replica spend sending, on their own link and as one flow. */
static void load_gpus(struct sync *sync, const struct het_stage *stage,
                      const struct het_replica *replica)
{
    const struct het_cluster *cluster = sync->problem->cluster;
    double link_s = 0, flow_s = 0;
    const struct layer_class *class =
        &sync->classes[sync->class_of_first[stage->first_layer]];
    const struct layer_class *end = sync->classes + sync->class_count;
    for (; class < end && class->first < stage->first_layer + stage->layer_count;
         class ++) {
        const struct layer_class *summed = class;
        if (is_summed_with_first(sync, class)) {
            if (!stage->first_layer)
                continue; /* counted with layer 0 */
            summed = sync->classes;
        }
        if (summed->holders < 2)
            continue;
        double bytes = ring_share(summed) * shard_bytes(sync, summed, replica->tp);
        link_s += bytes / het_cluster_gpu_link(cluster, replica->node,
                                               sync->uplinks.list[replica->node].gpus,
                                               step_bytes(summed));
        if (summed->leaves_node)
            flow_s += bytes / flow_bandwidth(sync, replica->node);
    }
    if (fmax(link_s, flow_s) > sync->largest_s) {
        sync->largest_s = fmax(link_s, flow_s);
        sync->largest_uplink = HET_UNBOUND;
    }
}

/* How many GPUs of each node synchronise: all that the plan uses there. */
static void count_gpus(struct sync *sync)
{
    for (size_t p = 0; p < sync->plan->pipeline_count; p++)
        for (size_t s = 0; s < sync->plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &sync->plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                sync->uplinks.list[stage->replicas[r].node].gpus += stage->replicas[r].tp;
        }
}

double het_cost_sync(const struct het_problem *problem, const struct het_plan *plan)
{
    uint32_t uplink;
    return het_cost_sync_uplink(problem, plan, &uplink);
}

double het_cost_sync_uplink(const struct het_problem *problem,
                            const struct het_plan *plan, uint32_t *ret_uplink)
{
    struct sync sync;
    sync_init(&sync, problem, plan);
    count_gpus(&sync);
    for (size_t i = 0; i < sync.class_count; i++) {
        struct layer_class *class = &sync.classes[i];
        if (is_summed_with_first(&sync, class))
            continue;
        each_holder(&sync, class, look_at_holder);
        if (class->leaves_node)
            each_holder(&sync, class, load_uplinks);
    }
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                load_gpus(&sync, stage, &stage->replicas[r]);
        }
    double largest_s = sync.largest_s;
    *ret_uplink = sync.largest_uplink;
    sync_fini(&sync);
    return largest_s;
}

/* ---- optimizer, whole plan ---- */

/* Of a distributed optimizer each of the h holders of a layer updates 1/h of it. */
static double replica_step(const struct het_problem *problem, const uint32_t *holders,
                           const struct het_stage *stage,
                           const struct het_replica *replica)
{
    uint32_t type = problem->profile_type[replica->type];
    uint32_t end = stage->first_layer + stage->layer_count;
    if (problem->workload->optimizer != HET_ADAM_DISTRIBUTED)
        return het_profile_optimizer_s(problem->profile, type, replica->tp,
                                       stage->first_layer, stage->layer_count);
    double seconds = 0;
    for (uint32_t first = stage->first_layer, next; first < end; first = next) {
        for (next = first + 1; next < end && holders[next] == holders[first];)
            next++;
        seconds += het_profile_optimizer_s(problem->profile, type, replica->tp, first,
                                           next - first) /
                   holders[first];
    }
    return seconds;
}

double het_cost_step(const struct het_problem *problem, const struct het_plan *plan)
{
    double slowest = 0;
    uint32_t holders[HET_MAX_LAYERS];
    if (problem->workload->optimizer == HET_ADAM_DISTRIBUTED)
        het_plan_count_holders(plan, problem->profile->layer_count, holders);
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++) {
            const struct het_stage *stage = &plan->pipelines[p].stages[s];
            for (size_t r = 0; r < stage->replica_count; r++)
                if (!repeats_previous(stage, r))
                    slowest = fmax(slowest, replica_step(problem, holders, stage,
                                                         &stage->replicas[r]));
        }
    return slowest;
}

/* What of the plan's stages does not depend on other pipelines. */
static int read_stages(const struct het_problem *problem, const struct het_plan *plan,
                       struct het_stage_times *times, struct het_error *err)
{
    for (uint32_t p = 0; p < plan->pipeline_count; p++)
        for (uint32_t s = 0; s < plan->pipelines[p].stage_count; s++, times++) {
            double forward, backward;
            if (het_cost_stage(problem, &plan->pipelines[p].stages[s], &forward,
                               &backward, err) < 0)
                return het_wrap(err, "pipelines[%u]: stages[%u]", p, s);
            times->compute_s = forward + backward;
        }
    return 0;
}

static size_t count_stages(const struct het_plan *plan)
{
    size_t count = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        count += plan->pipelines[p].stage_count;
    return count;
}

int het_cost_plan(const struct het_problem *problem, const struct het_plan *plan,
                  struct het_cost *ret, struct het_error *err)
{
    struct het_cost cost = { 0 };
    auto_free struct het_stage_times *times = xcalloc(count_stages(plan), sizeof *times);
    if (read_stages(problem, plan, times, err) < 0)
        return -1;
    het_link_sharing_plan(problem, plan, times);
    const struct het_stage_times *first = times;
    for (uint32_t p = 0; p < plan->pipeline_count; p++) {
        const struct het_pipeline *pipeline = &plan->pipelines[p];
        uint32_t bottleneck;
        double seconds = het_link_sharing_pipeline(
            first, pipeline->stage_count, pipeline->microbatch_count, &bottleneck);
        first += pipeline->stage_count;
        if (seconds > cost.pipeline_s) {
            cost.pipeline_s = seconds;
            cost.slowest_pipeline = p;
            cost.bottleneck_stage = bottleneck;
        }
    }
    cost.sync_s = het_cost_sync_uplink(problem, plan, &cost.sync_uplink);
    cost.step_s = het_cost_step(problem, plan);
    cost.iteration_s = cost.pipeline_s + cost.sync_s + cost.step_s;
    *ret = cost;
    return 0;
}
