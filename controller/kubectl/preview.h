/* preview.h - builds the planner's question about one job from objects that the caller
 * has listed: the same question that the controller would ask. Uses no network and writes
 * nothing.
 *
 *     preview = preview_new(settings, hardware, &err);
 *     preview_add(preview, &kube_node, node); ...
 *     preview_question(preview, &request, &question, &err); */
#ifndef CONTROLLER_KUBECTL_PREVIEW_H
#define CONTROLLER_KUBECTL_PREVIEW_H

#include "controller/base/object_store.h"
#include "controller/job/settings.h"

struct preview;

/* Both must outlive the preview; `hardware` NULL: the built-in table. Errors:
 * HET_BAD_INPUT, when the hardware cannot be read. */
struct preview *preview_new(const struct settings *settings, const json_t *hardware,
                            struct het_error *err);
void preview_free(struct preview *preview);

/* Adds a present object (takes a reference): nodes, pods, plans (ConfigMaps), jobs,
 * profiles; queues, flavors and Workloads of Kueue. */
void preview_add(struct preview *preview, const struct kube_resource *resource,
                 json_t *object);
/* Adds a job in `ns` (borrowed) that need not exist: it replaces one of the same name and
 * takes over its children. */
void preview_add_job(struct preview *preview, const char *ns, const json_t *job);

struct preview_request {
    const char *ns, *name; /* of the job, which has been added */
    /* Asks about exactly this plan: its nodes count as present, with the GPUs that it
     * takes. NULL: only free GPUs count. */
    const struct het_plan *plan;
    bool knows_queues; /* Kueue is served, and its objects have been added */
    int64_t now_ms, wall_ms;
};

/* The document for `hetplan plan -`, a new reference; call once. Errors: HET_BAD_INPUT
 * when there is no such job, or its spec or profile is unusable; HET_NO_PLAN when no GPU
 * is usable, and why. */
int preview_question(struct preview *preview, const struct preview_request *request,
                     json_t **ret, struct het_error *err);

#endif
