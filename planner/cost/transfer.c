#include "planner/cost/transfer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- what nodes and domains send or receive ---- */

/* Sums for a node, by node index, or for a domain. */
struct sum {
    uint32_t index;
    uint32_t flows; /* or GPUs */
    double bytes;
};

#define INLINE_SUMS 64
struct sums {
    struct sum *list;
    size_t count, capacity;
    struct sum inlined[INLINE_SUMS];
};

static void sums_init(struct sums *sums)
{
    sums->list = sums->inlined;
    sums->count = 0;
    sums->capacity = INLINE_SUMS;
}

static void sums_fini(struct sums *sums)
{
    if (sums->list != sums->inlined)
        xfree(sums->list);
}

static void grow(struct sums *sums)
{
    struct sum *larger = xcalloc(sums->capacity * 2, sizeof *larger);
    for (size_t i = 0; i < sums->count; i++)
        larger[i] = sums->list[i];
    sums_fini(sums);
    sums->list = larger;
    sums->capacity *= 2;
}

/* Replicas come node by node, mostly: the entry asked for is the last one. */
static void add(struct sums *sums, uint32_t index, double bytes, uint32_t flows)
{
    size_t i = sums->count;
    while (i && sums->list[i - 1].index != index)
        i--;
    if (!i) {
        if (sums->count == sums->capacity)
            grow(sums);
        i = ++sums->count;
        sums->list[i - 1] = (struct sum){ .index = index };
    }
    sums->list[i - 1].bytes += bytes;
    sums->list[i - 1].flows += flows;
}

/* ---- a send ---- */

/* Sums by node and by domain of the sending stage [0] and the receiving one [1]. */
struct send {
    const struct het_cluster *cluster;
    double bytes_per_sample;
    struct sums nodes[2], domains[2];
    struct sums gpus; /* of both stages, by node; only where curves depend on it */
    double largest_s; /* the largest load so far, without the uplinks */
    double latency_s;
};

static void send_init(struct send *send, const struct het_problem *problem,
                      const struct het_stage *from)
{
    uint32_t last_layer = from->first_layer + from->layer_count - 1;
    send->cluster = problem->cluster;
    send->bytes_per_sample = problem->profile->boundary_bytes[last_layer];
    send->largest_s = send->latency_s = 0;
    sums_init(&send->gpus);
    for (size_t side = 0; side < 2; side++) {
        sums_init(&send->nodes[side]);
        sums_init(&send->domains[side]);
    }
}

static void send_fini(struct send *send)
{
    sums_fini(&send->gpus);
    for (size_t side = 0; side < 2; side++) {
        sums_fini(&send->nodes[side]);
        sums_fini(&send->domains[side]);
    }
}

/* What leaves a zone or rack on its way. */
static void add_domains(struct send *send, const struct het_node *sender,
                        const struct het_node *receiver, double bytes, uint32_t flows)
{
    for (uint32_t level = 0; level < send->cluster->level_count; level++) {
        uint32_t out = sender->domain[level], in = receiver->domain[level];
        if (out == in)
            continue;
        if (out)
            add(&send->domains[0], out - 1, bytes, flows);
        if (in)
            add(&send->domains[1], in - 1, bytes, flows);
    }
}

static void send_samples(struct send *send, const struct het_replica *from,
                         const struct het_replica *to, uint64_t samples)
{
    if (from->node == to->node)
        return;
    const struct het_node *sender = &send->cluster->nodes[from->node];
    const struct het_node *receiver = &send->cluster->nodes[to->node];
    double bytes = (double)samples * send->bytes_per_sample;
    uint32_t flows = from->tp < to->tp ? from->tp : to->tp;
    add(&send->nodes[0], from->node, bytes, flows);
    add(&send->nodes[1], to->node, bytes, flows);
    add_domains(send, sender, receiver, bytes, flows);
    double pair =
        het_cluster_pair(send->cluster, from->node, to->node, flows, bytes / flows);
    send->largest_s = fmax(send->largest_s, bytes / pair);
    send->latency_s = fmax(send->latency_s, fmax(sender->latency_s, receiver->latency_s));
}

/* Both sides hold samples 0 .. b-1 in replica order: walks the common refinement. */
static void send_all(struct send *send, const struct het_stage *from,
                     const struct het_stage *to)
{
    size_t f = 0, t = 0;
    uint64_t sent = 0, from_end = 0, to_end = 0;
    while (f < from->replica_count && t < to->replica_count) {
        uint64_t next_from = from_end + from->replicas[f].microbatch_size;
        uint64_t next_to = to_end + to->replicas[t].microbatch_size;
        uint64_t next = next_from < next_to ? next_from : next_to;
        send_samples(send, &from->replicas[f], &to->replicas[t], next - sent);
        sent = next;
        if (next_from == next) {
            from_end = next;
            f++;
        }
        if (next_to == next) {
            to_end = next;
            t++;
        }
    }
}

static void count_gpus(struct send *send, const struct het_stage *stage)
{
    if (!send->cluster->network)
        return;
    for (size_t r = 0; r < stage->replica_count; r++)
        add(&send->gpus, stage->replicas[r].node, 0, stage->replicas[r].tp);
}

static uint32_t gpus_on(const struct send *send, uint32_t node)
{
    for (size_t i = send->gpus.count; i; i--)
        if (send->gpus.list[i - 1].index == node)
            return send->gpus.list[i - 1].flows;
    return 0;
}

/* A replica's own samples leave or enter through the links of its tp GPUs. */
static void load_gpu_links(struct send *send, const struct het_stage *stage)
{
    for (size_t r = 0; r < stage->replica_count; r++) {
        const struct het_replica *replica = &stage->replicas[r];
        double bytes = replica->microbatch_size * send->bytes_per_sample / replica->tp;
        double link = het_cluster_gpu_link(send->cluster, replica->node,
                                           gpus_on(send, replica->node), bytes);
        send->largest_s = fmax(send->largest_s, bytes / link);
    }
}

/* Seconds that the flows of `sum` take alone through the uplink of their node. */
static double node_seconds(const struct send *send, const struct sum *sum)
{
    return sum->bytes / het_cluster_uplink(send->cluster, sum->index, sum->flows,
                                           sum->bytes / sum->flows);
}

static double domain_seconds(const struct send *send, const struct sum *sum)
{
    return sum->bytes / send->cluster->domains[sum->index].uplink_bytes_per_s;
}

/* Without the latency. */
static double alone_seconds(const struct send *send)
{
    double largest_s = send->largest_s;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < send->nodes[side].count; i++)
            largest_s = fmax(largest_s, node_seconds(send, &send->nodes[side].list[i]));
        for (size_t i = 0; i < send->domains[side].count; i++)
            largest_s =
                fmax(largest_s, domain_seconds(send, &send->domains[side].list[i]));
    }
    return largest_s;
}

static void load_all(struct send *send, const struct het_problem *problem,
                     const struct het_stage *from, const struct het_stage *to)
{
    send_init(send, problem, from);
    send_all(send, from, to);
    count_gpus(send, from);
    count_gpus(send, to);
    load_gpu_links(send, from);
    load_gpu_links(send, to);
}

double het_transfer_seconds(const struct het_problem *problem,
                            const struct het_stage *from, const struct het_stage *to)
{
    struct send send;
    load_all(&send, problem, from, to);
    double seconds = alone_seconds(&send) + send.latency_s;
    send_fini(&send);
    return seconds;
}

/* ---- loads on links ---- */

/* All GPUs of the node together may get more than the send's own. */
static double node_load(const struct send *send, const struct sum *sum)
{
    uint32_t gpus = send->cluster->nodes[sum->index].gpu_count;
    double all =
        het_cluster_uplink(send->cluster, sum->index, gpus, sum->bytes / sum->flows);
    return fmin(sum->bytes / all, node_seconds(send, sum));
}

static void add_load(struct het_link_loads *loads, uint32_t link, uint32_t flow_count,
                     double seconds)
{
    ARRAY_RESERVE(loads->items, &loads->capacity, loads->count + 1);
    loads->items[loads->count++] = (struct het_link_load){ link, flow_count, seconds };
}

double het_transfer_loads(const struct het_problem *problem, const struct het_stage *from,
                          const struct het_stage *to, struct het_link_loads *loads,
                          double *ret_latency_s)
{
    struct send send;
    load_all(&send, problem, from, to);
    uint32_t first_domain = 2 * (uint32_t)problem->cluster->node_count;
    for (uint32_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < send.nodes[side].count; i++) {
            const struct sum *sum = &send.nodes[side].list[i];
            add_load(loads, 2 * sum->index + side, sum->flows, node_load(&send, sum));
        }
        for (size_t i = 0; i < send.domains[side].count; i++) {
            const struct sum *sum = &send.domains[side].list[i];
            add_load(loads, first_domain + 2 * sum->index + side, sum->flows,
                     domain_seconds(&send, sum));
        }
    }
    double seconds = alone_seconds(&send);
    *ret_latency_s = send.latency_s;
    send_fini(&send);
    return seconds;
}

void het_link_loads_fini(struct het_link_loads *loads)
{
    het_free_pointer(&loads->items);
    *loads = (struct het_link_loads){ 0 };
}
