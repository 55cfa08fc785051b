/* kueue_watches.h - keeps Kueue's kinds in the store, in a cluster that serves them.
 * Whether it does is asked at the start and every few minutes, so that Kueue may be
 * installed and removed while we run; where it is not, nothing else is requested. */
#ifndef CONTROLLER_OPERATOR_KUEUE_WATCHES_H
#define CONTROLLER_OPERATOR_KUEUE_WATCHES_H

#include "controller/cluster/kueue_quota.h"
#include "controller/kube/watch.h"

enum {
    KUEUE_WATCHES_DISCOVERY_MS =
        300000,                        /* between two questions whether Kueue is there */
    KUEUE_WATCHES_RETRY_MS = 5000,     /* after one that was not answered */
    KUEUE_WATCHES_PATIENCE_MS = 10000, /* what is there is waited for so long, then not */
};

struct kueue_watches;

/* LocalQueues and Workloads of namespace `ns` ("": of all). `on_change` hears of every
 * object, as of those of a watch. Nothing is requested before the first kueue_watches_step. */
struct kueue_watches *kueue_watches_new(struct kube *kube, struct store *store,
                                        const char *ns, uint64_t seed,
                                        watch_change *on_change, void *context);
/* Not from inside a callback. */
void kueue_watches_free(struct kueue_watches *kueue_watches);

void kueue_watches_step(struct kueue_watches *kueue_watches, int64_t now_ms);
/* When kueue_watches_step has something to do next; INT64_MAX if it waits for a reply. */
int64_t kueue_watches_next_ms(const struct kueue_watches *kueue_watches);
/* KUEUE_UNREADABLE until all kinds were listed, and where we have no right to. */
enum kueue_presence kueue_watches_presence(const struct kueue_watches *kueue_watches);
/* Whether it is known if Kueue is there, and what its queues are, or that these can not
 * be had: jobs are decided on only then. */
bool kueue_watches_is_known(const struct kueue_watches *kueue_watches);
/* As of watch.h, of all kinds that are watched. Kinds that cannot be had are not waited
 * for longer than KUEUE_WATCHES_PATIENCE_MS. */
void kueue_watches_require_fresh(struct kueue_watches *kueue_watches);
bool kueue_watches_is_fresh(const struct kueue_watches *kueue_watches);
/* All watches that there are now. */
void kueue_watches_each_watch(const struct kueue_watches *kueue_watches,
                              void (*each)(void *context,
                                           const struct kube_resource *resource,
                                           const struct watch *watch),
                              void *context);
/* What to keep of an object of one of Kueue's kinds; NULL if `resource` is none. */
json_t *(*kueue_watches_trim(const struct kube_resource *resource))(json_t *object);

#endif
