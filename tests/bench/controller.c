/* How long the operator takes from a node's end to the pods of the new generation, and
 * how much memory it has then: the real controller, the real planner as a child, the
 * embedded API server, on clusters of 10, 100 and 1,000 nodes that other pods use too.
 *
 *     bench-controller HETPLAN [NODES]...
 *
 * Prints one JSON object a line; controllerMiB is what the process grew by once the
 * controller had watched the cluster and placed a job, residentMiB all of it, server
 * included. The embedded server's virtual clock stands still while
 * anything is under way, so the seconds are those of the machine: decision, planning,
 * writes, and the server's own work on them, which is in the same process and memory. */
#include "controller/base/log.h"
#include "controller/simulate/simulation.h"
#include "tests/bench/cluster_objects.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define JOB_GPUS 64

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Resident kilobytes now; 0 if the system does not say. */
static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size, resident = 0;
    if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * 4;
}

static void put(struct simulation *simulation, json_t *object)
{
    struct het_error err;
    if (!object || api_server_put(simulation_server(simulation), object, &err) < 0) {
        fprintf(stderr, "bench-controller: %s\n", object ? err.message : "bad object");
        exit(2);
    }
}

struct run {
    int64_t generation; /* wait for pods of this one */
    size_t pods;        /* of it, at the end */
};

/* How many pods of the generation there are, and whether that is all of them. */
static bool count_pods(struct simulation *simulation, struct run *run)
{
    struct api_server *server = simulation_server(simulation);
    const json_t *status = json_object_get(
        api_server_find(server, "heterotrainingjobs", "default", "bench"), "status");
    int64_t generation =
        json_integer_value(json_object_get(json_object_get(status, "plan"), "revision"));
    int64_t desired =
        json_integer_value(json_object_get(json_object_get(status, "pods"), "desired"));
    char prefix[32];
    snprintf(prefix, sizeof prefix, "bench-%d-", (int)run->generation);
    run->pods = 0;
    for (size_t i = 0; i < api_server_count(server, "pods"); i++) {
        const json_t *metadata =
            json_object_get(api_server_at(server, "pods", i), "metadata");
        const char *name = json_string_value(json_object_get(metadata, "name"));
        run->pods += !strncmp(name, prefix, strlen(prefix));
    }
    return generation == run->generation && desired > 0 && run->pods >= (size_t)desired;
}

static bool until_placed(void *context, struct simulation *simulation)
{
    return !count_pods(simulation, context);
}

/* Runs on until the generation's pods are written; the seconds that took. */
static double time_generation(struct simulation *simulation, struct run *run)
{
    struct het_error err;
    double start = seconds();
    if (simulation_run(simulation, simulation_now_ms(simulation) + 600000, until_placed,
                       run, &err) < 0 ||
        !count_pods(simulation, run)) {
        fprintf(stderr, "bench-controller: revision %d never came\n",
                (int)run->generation);
        exit(1);
    }
    return seconds() - start;
}

/* Seconds of the planner children so far. */
static double planner_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void bench(const char *hetplan, int nodes)
{
    struct simulation_config config = { .planner = hetplan,
                                        .seed = 1,
                                        .cluster = simulated_cluster_defaults };
    struct het_error err;
    struct simulation *simulation = simulation_new(&config, &err);
    if (!simulation) {
        fprintf(stderr, "bench-controller: %s\n", err.message);
        exit(2);
    }
    for (int i = 0; i < nodes; i++) {
        put(simulation, bench_node(i, 0));
        for (int k = 0; k < PODS_A_NODE; k++)
            put(simulation, bench_other_pod(i, k));
    }
    put(simulation, bench_profile());
    put(simulation, bench_job("bench", 8, JOB_GPUS, 0));
    struct run run = { .generation = 1 };
    long server_kib = resident_kib();
    double first_s = time_generation(simulation, &run);
    /* The server's own part of the growth (one job's objects, its history) counts too. */
    long controller_kib = resident_kib() - server_kib;
    size_t first_pods = run.pods;

    const json_t *pod =
        api_server_find(simulation_server(simulation), "pods", "default", "bench-1-0");
    json_t *terms = NULL;
    json_unpack((json_t *)(uintptr_t)pod, "{s:{s:{s:{s:{s:o}}}}}", "spec", "affinity",
                "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                "nodeSelectorTerms", &terms);
    const char *lost = "";
    json_unpack(terms, "[{s:[{s:[s]}]}]", "matchFields", "values", &lost);
    api_server_delete(simulation_server(simulation), "nodes", "", lost, 0, &err);
    run.generation = 2;
    double planner_s = planner_seconds();
    double again_s = time_generation(simulation, &run);
    planner_s = planner_seconds() - planner_s;
    printf("{\"bench\":\"controller\",\"nodes\":%d,\"otherPods\":%d,\"createPods\":%zu,"
           "\"createSeconds\":%.3f,\"replanPods\":%zu,\"replanSeconds\":%.3f,"
           "\"plannerSeconds\":%.3f,\"controllerMiB\":%.1f,\"residentMiB\":%.1f}\n",
           nodes, nodes * PODS_A_NODE, first_pods, first_s, run.pods, again_s, planner_s,
           (double)controller_kib / 1024, (double)resident_kib() / 1024);
    fflush(stdout);
    simulation_free(simulation);
}

int main(int argc, char **argv)
{
    struct het_error err;
    log_set_levels("warning", &err);
    if (argc < 2) {
        fprintf(stderr, "usage: bench-controller HETPLAN [NODES]...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        bench(argv[1], atoi(argv[i]));
    return 0;
}
