/* kueue_watches.h - keeps Kueue's kinds in the store, in a cluster that serves them. It
 * checks for Kueue at the start and every few minutes, so Kueue may be installed or
 * removed while the controller runs; without Kueue, it requests nothing else. */
#ifndef CONTROLLER_OPERATOR_KUEUE_WATCHES_H
#define CONTROLLER_OPERATOR_KUEUE_WATCHES_H

#include "controller/cluster/kueue_quota.h"
#include "controller/kube/watch.h"

enum {
    KUEUE_WATCHES_DISCOVERY_MS = 300000, /* between two checks for Kueue */
    KUEUE_WATCHES_RETRY_MS = 5000,       /* after a check without an answer */
    KUEUE_WATCHES_PATIENCE_MS = 10000,   /* how long to wait for its objects */
};

struct kueue_watches;

/* Watches LocalQueues and Workloads of namespace `ns` ("": all). `on_change` is called as
 * by a watch. Nothing is requested before the first kueue_watches_step. */
struct kueue_watches *kueue_watches_new(struct kube *kube, struct store *store,
                                        const char *ns, uint64_t seed,
                                        watch_change *on_change, void *context);
/* Not from inside a callback. */
void kueue_watches_free(struct kueue_watches *kueue_watches);

void kueue_watches_step(struct kueue_watches *kueue_watches, int64_t now_ms);
/* When kueue_watches_step has something to do next; INT64_MAX if it waits for a reply. */
int64_t kueue_watches_next_ms(const struct kueue_watches *kueue_watches);
/* KUEUE_UNREADABLE until all kinds are listed, and if we lack the right to list them. */
enum kueue_presence kueue_watches_presence(const struct kueue_watches *kueue_watches);
/* Whether it is known if Kueue is present, and either its queues or that they cannot be
 * read. Jobs are decided on only then. */
bool kueue_watches_is_known(const struct kueue_watches *kueue_watches);
/* As in watch.h, for all watched kinds. Kinds that cannot be read are waited for at most
 * KUEUE_WATCHES_PATIENCE_MS. */
void kueue_watches_require_fresh(struct kueue_watches *kueue_watches);
bool kueue_watches_is_fresh(const struct kueue_watches *kueue_watches);
/* Visits all present watches. */
void kueue_watches_each_watch(const struct kueue_watches *kueue_watches,
                              void (*each)(void *context,
                                           const struct kube_resource *resource,
                                           const struct watch *watch),
                              void *context);
/* The trim function (watch.h) for one of Kueue's kinds; NULL for any other `resource`. */
json_t *(*kueue_watches_trim(const struct kube_resource *resource))(json_t *object);

#endif
