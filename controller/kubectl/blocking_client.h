/* blocking_client.h - a client of the API server for commands that wait for each answer.
 * If the server refuses a request, the error names the missing right. */
#ifndef CONTROLLER_KUBECTL_BLOCKING_CLIENT_H
#define CONTROLLER_KUBECTL_BLOCKING_CLIENT_H

#include "controller/kube/client.h"
#include "controller/kube/decode.h"
#include "controller/kubectl/host.h"

enum {
    BLOCKING_CLIENT_TIMEOUT_MS = 60000, /* of one request, including a login in a
                                           browser */
    BLOCKING_CLIENT_PAGE_SIZE = 500,    /* objects of one answer to a list */
};

struct client;

/* `host` and `link` are borrowed. */
struct client *blocking_client_new(const struct htj_host *host,
                                   const struct htj_link *link);
void blocking_client_free(struct client *client);

/* Sends ahead the request of a later blocking_client_get, or without `name`
 * blocking_client_list, with the same arguments, so that several answers are awaited at
 * once. Nothing is sent ahead before the first answer, so that a user has to log in only
 * once. */
void blocking_client_ahead(struct client *client, const struct kube_resource *resource,
                           const char *ns, const char *name, const char *selector);

/* Each returns KUBE_OK, or another outcome with `err` filled: HET_NOT_FOUND if there is
 * no such object; HET_DENIED names verb, resource and namespace; HET_CONFLICT, HET_IO.
 * `ns` is "" for all namespaces and kinds without; objects are new references. */
enum kube_outcome blocking_client_get(struct client *client,
                                      const struct kube_resource *resource,
                                      const char *ns, const char *name, json_t **ret,
                                      struct het_error *err);
/* All objects, as an array, each as `trim` leaves it (NULL: whole); `selector` is part of
 * a query, "labelSelector=a%3Db", or "". Objects that cannot be decoded are left out. */
enum kube_outcome blocking_client_list(struct client *client,
                                       const struct kube_resource *resource,
                                       const char *ns, const char *selector,
                                       json_t *(*trim)(json_t *object), json_t **ret,
                                       struct het_error *err);
/* Sends a merge patch; one with a metadata.resourceVersion applies only to that version
 * (else KUBE_CONFLICT). */
enum kube_outcome blocking_client_patch(struct client *client,
                                        const struct kube_resource *resource,
                                        const char *ns, const char *name, json_t *patch,
                                        struct het_error *err);

#endif
