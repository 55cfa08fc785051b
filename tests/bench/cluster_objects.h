/* cluster_objects.h - what lies in the clusters of the benches. */
#ifndef TESTS_BENCH_CLUSTER_OBJECTS_H
#define TESTS_BENCH_CLUSTER_OBJECTS_H

#include <jansson.h>

#define GPUS_A_NODE 8
#define PODS_A_NODE 10 /* of others, as many as the memory goal of 10,000 pods says */

/* New references. Nodes are "node-0000" and so on, A100 and V100 in turns, with as much
 * text as real ones have: conditions, images, what managers have written. `beat` is the
 * time of their heartbeat in seconds. */
json_t *bench_node(int index, int beat);
/* A pod of somebody else, without GPUs, on `node_index`. */
json_t *bench_other_pod(int node_index, int index);
/* ModelProfile "bench" of 24 equal layers. */
json_t *bench_profile(void);
/* A job of `min` to `max` GPUs with a spec of about `bytes` more than it needs. */
json_t *bench_job(const char *name, int min, int max, size_t bytes);

#endif
