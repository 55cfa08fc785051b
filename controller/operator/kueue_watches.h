/* kueue_watches.h - keeps Kueue's kinds in the store, in a cluster that serves them.
 * Whether it does is asked at the start and every few minutes, so that Kueue may be
 * installed and removed while we run; where it is not, nothing else is requested. */
#ifndef CONTROLLER_OPERATOR_KUEUE_WATCHES_H
#define CONTROLLER_OPERATOR_KUEUE_WATCHES_H

#include "controller/cluster/kueue.h"
#include "controller/kube/watch.h"

enum {
    QUEUES_DISCOVERY_MS = 300000, /* between two questions whether Kueue is there */
    QUEUES_RETRY_MS = 5000,       /* after one that was not answered */
    QUEUES_PATIENCE_MS = 10000,   /* what is there is waited for so long, then not */
};

struct queues;

/* LocalQueues and Workloads of namespace `ns` ("": of all). `on_change` hears of every
 * object, as of those of a watch. Nothing is requested before the first queues_step. */
struct queues *queues_new(struct kube *kube, struct store *store, const char *ns,
                          uint64_t seed, watch_change *on_change, void *context);
/* Not from inside a callback. */
void queues_free(struct queues *queues);

void queues_step(struct queues *queues, int64_t now_ms);
/* When queues_step has something to do next; INT64_MAX if it waits for a reply. */
int64_t queues_next_ms(const struct queues *queues);
/* KUEUE_UNREADABLE until all kinds were listed, and where we have no right to. */
enum kueue_presence queues_presence(const struct queues *queues);
/* Whether it is known if Kueue is there, and what its queues are, or that these can not
 * be had: jobs are decided on only then. */
bool queues_is_known(const struct queues *queues);
/* As of watch.h, of all kinds that are watched. Kinds that cannot be had are not waited
 * for longer than QUEUES_PATIENCE_MS. */
void queues_require_fresh(struct queues *queues);
bool queues_is_fresh(const struct queues *queues);
/* All watches that there are now. */
void queues_each_watch(const struct queues *queues,
                       void (*each)(void *context, const struct kube_resource *resource,
                                    const struct watch *watch),
                       void *context);
/* What to keep of an object of one of Kueue's kinds; NULL if `resource` is none. */
json_t *(*queues_trim(const struct kube_resource *resource))(json_t *object);

#endif
