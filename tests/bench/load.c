/* What the operator takes where there is much of everything: the real controller and the
 * real planner as a child, on the embedded API server.
 *
 *     bench-load HETPLAN starts NODES JOBS [SUSPENDED] [--trace]
 *     bench-load HETPLAN gang NODES JOB_NODES [--trace]
 *     bench-load HETPLAN heartbeats NODES
 *
 * `starts`: a cluster of NODES nodes with 10 pods of others each, SUSPENDED jobs of 240
 * KB (0), and JOBS jobs of 8 GPUs that come all at once. Prints how long it took until
 * all were placed and until all ran, what the controller spent of CPU time, without the
 * server in the same process and without the planner, what it wrote, and how often and
 * how much it read beside its watches. The clock is virtual, but moves on with what
 * controller and planner take. `gang`: the same of one job of JOB_NODES nodes.
 * `heartbeats`: what one update of a node's status costs in which nothing but times has
 * changed. One JSON object a line; --trace prints each write before. */
#include "controller/base/log.h"
#include "controller/operator/loop.h"
#include "controller/simulate/simulated_cluster.h"
#include "tests/bench/cluster_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define FAT_BYTES        240000
#define MOST_MS          3600000 /* of the virtual clock */
#define REST_MS          5000    /* without a write, after all jobs run */
#define HEARTBEAT_ROUNDS 5
#define PLANNER_POLL_MS  100

static double read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* Of the planner's children so far. */
static double planner_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- the controller's own end of the server ---- */

/* A transport that measures what happens in the controller's callbacks, and counts. */
struct meter {
    struct transport base;
    struct transport *server;
    struct exchange {
        struct meter *meter;
        struct http_handler handler;
        bool is_read;
        struct exchange *next;
    } * exchanges;
    bool is_traced;
    double cpu_s;
    size_t writes, statuses, events, reads, read_bytes;
};

static void on_data(void *context, const char *bytes, size_t length)
{
    struct exchange *exchange = context;
    double from_s = cpu_seconds();
    exchange->handler.on_data(exchange->handler.context, bytes, length);
    exchange->meter->cpu_s += cpu_seconds() - from_s;
}

static void on_done(void *context, const struct http_reply *reply)
{
    struct exchange *exchange = context;
    double from_s = cpu_seconds();
    if (exchange->is_read)
        exchange->meter->read_bytes += reply->body_length;
    exchange->handler.on_done(exchange->handler.context, reply);
    exchange->meter->cpu_s += cpu_seconds() - from_s;
}

static void count_write(struct meter *meter, const struct http_request *request)
{
    meter->writes++;
    meter->statuses += strstr(request->path, "/status") != NULL;
    meter->events += strstr(request->path, "/events") != NULL;
    if (meter->is_traced)
        fprintf(stderr, "%s %s %.*s\n", request->method, request->path,
                (int)(request->body_length < 4000 ? request->body_length : 4000),
                request->body ? request->body : "");
}

static uint64_t meter_start(struct transport *transport,
                            const struct http_request *request,
                            const struct http_handler *handler)
{
    struct meter *meter = (struct meter *)transport;
    struct exchange *exchange = xcalloc(1, sizeof *exchange);
    *exchange = (struct exchange){ .meter = meter,
                                   .handler = *handler,
                                   .next = meter->exchanges };
    meter->exchanges = exchange;
    if (strcmp(request->method, "GET") != 0)
        count_write(meter, request);
    else
        exchange->is_read = !handler->on_data;
    meter->reads += exchange->is_read;
    struct http_handler own = { .on_data = handler->on_data ? on_data : NULL,
                                .on_done = on_done,
                                .context = exchange };
    return transport_start(meter->server, request, &own);
}

static void meter_cancel(struct transport *transport, uint64_t id)
{
    transport_cancel(((struct meter *)transport)->server, id);
}

static int meter_poll(struct transport *transport, struct pollfd *extra,
                      size_t extra_count, int64_t timeout_ms)
{
    return transport_poll(((struct meter *)transport)->server, extra, extra_count,
                          timeout_ms);
}

static void meter_free(struct transport *transport)
{
    struct meter *meter = (struct meter *)transport;
    while (meter->exchanges) {
        struct exchange *next = meter->exchanges->next;
        free(meter->exchanges);
        meter->exchanges = next;
    }
}

static const struct transport_ops meter_ops = { meter_start, meter_cancel, meter_poll,
                                                meter_free };

/* ---- a world ---- */

struct world {
    struct api_server *server;
    struct simulated_cluster *cluster;
    struct controller *controller;
    struct meter meter;
    double ahead_ms; /* what controller and planner took, not on the clock yet */
    int jobs, pods;  /* are there, or will be */
    int bound, running;
    int64_t placed_ms, running_ms; /* when the last of them was */
};

static void put(struct world *world, json_t *object)
{
    struct het_error err;
    if (api_server_put(world->server, object, &err) == 0)
        return;
    fprintf(stderr, "bench-load: %s\n", err.message);
    exit(2);
}

static void world_init(struct world *world, const char *hetplan, int nodes,
                       bool is_traced)
{
    struct simulated_cluster_config config = simulated_cluster_defaults;
    *world = (struct world){ .server = api_server_new(1) };
    world->cluster = simulated_cluster_new(world->server, &config);
    world->meter = (struct meter){ .base.ops = &meter_ops,
                                   .server = api_server_transport(world->server),
                                   .is_traced = is_traced };
    struct controller_config controller = { .planner = hetplan, .seed = 1 };
    struct het_error err;
    world->controller = controller_new(&world->meter.base, &controller, &err);
    if (!world->controller) {
        fprintf(stderr, "bench-load: %s\n", err.message);
        exit(2);
    }
    for (int i = 0; i < nodes; i++) {
        put(world, bench_node(i, 0));
        for (int k = 0; k < PODS_A_NODE; k++)
            put(world, bench_other_pod(i, k));
    }
    put(world, bench_profile());
}

static void world_fini(struct world *world)
{
    controller_free(world->controller);
    transport_free(&world->meter.base);
    simulated_cluster_free(world->cluster);
    api_server_free(world->server);
}

static int64_t now_ms(const struct world *world)
{
    return api_server_now_ms(world->server);
}

static int64_t next_ms(const struct world *world)
{
    int64_t controller_ms = controller_next_ms(world->controller);
    int64_t cluster_ms = simulated_cluster_next_ms(world->cluster, NULL);
    return controller_ms < cluster_ms ? controller_ms : cluster_ms;
}

/* The clock stands still while a planner is at work, and then moves on by what it took of
 * CPU time: whoever else uses the machine changes nothing. */
static void turn(struct world *world)
{
    simulated_cluster_advance(world->cluster, now_ms(world));
    double from_s = cpu_seconds(), before_s = world->meter.cpu_s;
    controller_step(world->controller, now_ms(world), now_ms(world));
    world->meter.cpu_s += cpu_seconds() - from_s;
    controller_poll(world->controller, 0);
    world->ahead_ms += 1000 * (world->meter.cpu_s - before_s);

    int64_t wait_ms = next_ms(world) - now_ms(world);
    if (wait_ms > 0 && controller_planners(world->controller)) {
        double planner_s = planner_cpu_seconds();
        controller_poll_planners(world->controller, PLANNER_POLL_MS);
        world->ahead_ms += 1000 * (planner_cpu_seconds() - planner_s);
        wait_ms = 0;
    }
    int64_t step_ms = (int64_t)world->ahead_ms;
    world->ahead_ms -= (double)step_ms;
    if (wait_ms > step_ms)
        step_ms = wait_ms;
    if (step_ms > 0)
        simulated_cluster_advance(world->cluster, now_ms(world) + step_ms);
}

/* ---- jobs that start ---- */

static bool is_true(const json_t *job, const char *condition)
{
    const json_t *list = json_object_get(json_object_get(job, "status"), "conditions");
    size_t i;
    json_t *one;
    json_array_foreach ((json_t *)(uintptr_t)list, i, one)
        if (!strcmp(json_string_value(json_object_get(one, "type")), condition))
            return !strcmp(json_string_value(json_object_get(one, "status")), "True");
    return false;
}

static bool is_bound(const json_t *pod)
{
    return json_object_get(json_object_get(pod, "spec"), "nodeName");
}

/* Counts jobs that begin to run, and pods of jobs that are bound. */
static void on_change(void *context, const struct api_server_change *change)
{
    struct world *world = context;
    const json_t *metadata = json_object_get(change->after, "metadata");
    const char *name = json_string_value(json_object_get(metadata, "name"));
    if (!name || strncmp(name, "job-", 4) != 0)
        return;
    if (!strcmp(change->plural, "pods") && is_bound(change->after) &&
        !is_bound(change->before) && ++world->bound == world->pods)
        world->placed_ms = change->at_ms;
    if (!strcmp(change->plural, "heterotrainingjobs") &&
        is_true(change->after, "Running") && !is_true(change->before, "Running") &&
        ++world->running == world->jobs)
        world->running_ms = change->at_ms;
}

static void let_settle(struct world *world)
{
    size_t writes = SIZE_MAX;
    for (int64_t since_ms = now_ms(world); now_ms(world) < since_ms + REST_MS;) {
        if (world->meter.writes != writes)
            since_ms = now_ms(world);
        writes = world->meter.writes;
        turn(world);
    }
}

static void bench_starts(struct world *world, const char *bench, int nodes, int jobs,
                         int gpus, int suspended)
{
    for (int i = 0; i < suspended; i++) {
        auto_free char *name = xasprintf("fat-%04d", i);
        json_t *fat = bench_job(name, GPUS_A_NODE, GPUS_A_NODE, FAT_BYTES);
        json_object_set_new(json_object_get(fat, "spec"), "suspend", json_true());
        put(world, fat);
    }
    let_settle(world);
    world->jobs = jobs;
    world->pods = jobs * gpus / GPUS_A_NODE;
    api_server_observe(world->server, on_change, world);
    struct meter before = world->meter;
    struct controller_statistics first = controller_statistics(world->controller);
    for (int i = 0; i < jobs; i++) {
        auto_free char *name = xasprintf("job-%04d", i);
        put(world, bench_job(name, gpus, gpus, 0));
    }
    int64_t start_ms = now_ms(world);
    while (!world->running_ms && now_ms(world) < start_ms + MOST_MS)
        turn(world);
    let_settle(world);
    struct controller_statistics last = controller_statistics(world->controller);
    printf(
        "{\"bench\":\"%s\",\"nodes\":%d,\"otherPods\":%d,\"jobs\":%d,"
        "\"nodesAJob\":%d,\"suspendedJobs\":%d,\"placedSeconds\":%.1f,\"runningSeconds\":%.1f,"
        "\"cpuSeconds\":%.2f,\"writes\":%zu,\"statusWrites\":%zu,\"events\":%zu,"
        "\"reads\":%zu,\"readBytes\":%zu,"
        "\"plannerCpuSeconds\":%.2f,\"decisions\":%" PRIu64 ",\"questions\":%" PRIu64
        "}\n",
        bench, nodes, nodes * PODS_A_NODE, jobs, gpus / GPUS_A_NODE, suspended,
        (double)(world->placed_ms - start_ms) / 1000,
        (double)(world->running_ms - start_ms) / 1000, world->meter.cpu_s - before.cpu_s,
        world->meter.writes - before.writes, world->meter.statuses - before.statuses,
        world->meter.events - before.events, world->meter.reads - before.reads,
        world->meter.read_bytes - before.read_bytes, planner_cpu_seconds(),
        last.passes - first.passes, last.plans - first.plans);
}

/* ---- heartbeats ---- */

static void bench_heartbeats(struct world *world, int nodes)
{
    let_settle(world);
    double before_s = world->meter.cpu_s;
    for (int beat = 1; beat <= HEARTBEAT_ROUNDS; beat++) {
        for (int i = 0; i < nodes; i++)
            put(world, bench_node(i, 10 * beat));
        let_settle(world);
    }
    printf("{\"bench\":\"heartbeats\",\"nodes\":%d,\"heartbeatMilliseconds\":%.4f}\n",
           nodes, 1000 * (world->meter.cpu_s - before_s) / HEARTBEAT_ROUNDS / nodes);
}

int main(int argc, char **argv)
{
    struct het_error err;
    struct world world;
    log_set_levels("warning", &err);
    bool is_traced = argc > 4 && !strcmp(argv[argc - 1], "--trace");
    argc -= is_traced;
    bool starts = argc >= 5 && argc <= 6 && !strcmp(argv[2], "starts");
    bool gang = argc == 5 && !strcmp(argv[2], "gang");
    if (!starts && !gang && (argc != 4 || strcmp(argv[2], "heartbeats") != 0)) {
        fprintf(stderr,
                "usage: bench-load HETPLAN starts NODES JOBS [SUSPENDED] [--trace]\n"
                "       bench-load HETPLAN gang NODES JOB_NODES [--trace]\n"
                "       bench-load HETPLAN heartbeats NODES\n");
        return 2;
    }
    int nodes = atoi(argv[3]);
    world_init(&world, argv[1], nodes, is_traced);
    if (starts)
        bench_starts(&world, "starts", nodes, atoi(argv[4]), GPUS_A_NODE,
                     argc > 5 ? atoi(argv[5]) : 0);
    else if (gang)
        bench_starts(&world, "gang", nodes, 1, GPUS_A_NODE * atoi(argv[4]), 0);
    else
        bench_heartbeats(&world, nodes);
    world_fini(&world);
    return 0;
}
