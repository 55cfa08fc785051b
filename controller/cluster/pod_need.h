/* pod_need.h - what one pod of a job requests of its node besides GPUs, as a function of
 * its GPUs g. For each resource
 *
 *   need(g) = max(running + g * per_gpu, starting) + overhead
 *
 *   running   sum of the template's containers and sidecars
 *   per_gpu   spec.perGPUResources
 *   starting  the most that its init containers request at once
 *   overhead  of the runtime class
 *
 * or the template's pod-level request, if it has one. This is what Kubernetes counts for
 * the pod that children_pod makes. Pure. */
#ifndef CONTROLLER_CLUSTER_POD_NEED_H
#define CONTROLLER_CLUSTER_POD_NEED_H

#include "controller/job/job_spec.h"

/* The resource of which each pod takes one. */
#define POD_NEED_PODS "pods"

struct pod_need {
    const char *resource;
    /* Milli-units of cpu, bytes of memory and storage, otherwise pieces. */
    int64_t running, per_gpu, starting, overhead;
};

/* Whether quantities of `resource` are counted in thousandths. */
bool pod_need_is_milli(const char *resource);

/* Reads the needs by resource name, without the resources by which GPUs are requested. In
 * `arena` or borrowed from the job. Returns how many. */
size_t pod_need_read(struct het_arena *arena, const struct job_spec *spec,
                     struct pod_need **ret);
/* need(gpus), at most INT64_MAX. */
int64_t pod_need_amount(const struct pod_need *need, int64_t gpus);
/* The most GPUs, 0 to `most`, with which need(gpus) <= left. */
int64_t pod_need_fit(const struct pod_need *need, int64_t left, int64_t most);

#endif
