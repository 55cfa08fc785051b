/* blocking_client.h - the API server, for a command that waits for each answer. What the
 * server refuses becomes a sentence that says which right is missing. */
#ifndef CONTROLLER_KUBECTL_BLOCKING_CLIENT_H
#define CONTROLLER_KUBECTL_BLOCKING_CLIENT_H

#include "controller/kube/client.h"
#include "controller/kube/decode.h"
#include "controller/kubectl/host.h"

enum {
    BLOCKING_CLIENT_TIMEOUT_MS = 60000, /* of one request, with a login in a browser */
    BLOCKING_CLIENT_PAGE_SIZE = 500,    /* objects of one answer to a list */
};

struct client;

/* `host` and `link` are borrowed. */
struct client *blocking_client_new(const struct htj_host *host,
                                   const struct htj_link *link);
void blocking_client_free(struct client *client);

/* Asks for what a blocking_client_get, or without `name` a blocking_client_list, of the very same will ask
 * soon: several answers are then waited for at once. Nothing is asked ahead before the
 * first answer is there: who has to log in does so once. */
void blocking_client_ahead(struct client *client, const struct kube_resource *resource,
                           const char *ns, const char *name, const char *selector);

/* Each returns KUBE_OK, or what came of it, with `err` filled: HET_NOT_FOUND if the
 * object is not there; HET_DENIED names verb, resource and namespace; HET_CONFLICT,
 * HET_IO. `ns` is "" for all namespaces and kinds without; objects are new references. */
enum kube_outcome blocking_client_get(struct client *client,
                                      const struct kube_resource *resource,
                                      const char *ns, const char *name, json_t **ret,
                                      struct het_error *err);
/* All objects, as an array, each as `trim` leaves it (NULL: whole); `selector` is part of
 * a query, "labelSelector=a%3Db", or "". What cannot be decoded is left out. */
enum kube_outcome blocking_client_list(struct client *client,
                                       const struct kube_resource *resource,
                                       const char *ns, const char *selector,
                                       json_t *(*trim)(json_t *object), json_t **ret,
                                       struct het_error *err);
/* A merge patch; with a metadata.resourceVersion in it only of that version
 * (KUBE_CONFLICT). */
enum kube_outcome blocking_client_patch(struct client *client,
                                        const struct kube_resource *resource,
                                        const char *ns, const char *name, json_t *patch,
                                        struct het_error *err);

#endif
