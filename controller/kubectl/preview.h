/* preview.h - the planner's question about one job, out of objects that somebody has
 * listed: the same that the controller would ask. Knows no network; nothing is written.
 *
 *     preview = preview_new(settings, hardware, &err);
 *     preview_add(preview, &kube_node, node); ...
 *     preview_question(preview, &request, &question, &err);
 */
#ifndef CONTROLLER_KUBECTL_PREVIEW_H
#define CONTROLLER_KUBECTL_PREVIEW_H

#include "controller/base/object_store.h"
#include "controller/job/settings.h"

struct preview;

/* Both must outlive the preview; `hardware` NULL: what is built in. Errors:
 * HET_BAD_INPUT, when the hardware cannot be read. */
struct preview *preview_new(const struct settings *settings, const json_t *hardware,
                            struct het_error *err);
void preview_free(struct preview *preview);

/* Something that is there (a reference is taken): nodes, pods, plans (ConfigMaps), jobs,
 * profiles; queues, flavors and Workloads of Kueue. */
void preview_add(struct preview *preview, const struct kube_resource *resource,
                 json_t *object);
/* A job that need not be there (borrowed), in `ns`: it takes the place of one of its
 * name, with what that has. */
void preview_add_job(struct preview *preview, const char *ns, const json_t *job);

struct preview_request {
    const char *ns, *name; /* of the job, which has been added */
    /* Its nodes count as there, with the GPUs that it takes: to ask about this very plan.
     * NULL: only what is free counts. */
    const struct het_plan *plan;
    bool knows_queues; /* Kueue is served, and its objects have been added */
    int64_t now_ms, wall_ms;
};

/* The document for `hetplan plan -`, once; a new reference. Errors: HET_BAD_INPUT, when
 * there is no such job, or its spec or profile cannot be used; HET_NO_PLAN, when no GPU
 * can, and why. */
int preview_question(struct preview *preview, const struct preview_request *request,
                     json_t **ret, struct het_error *err);

#endif
