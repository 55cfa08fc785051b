/* client_link.h - one client's own end of a transport that several clients share. Replies
 * for the client wait until it polls its own end, so a client can stand still like a
 * stopped process while the others and the server continue. For simulations of several
 * replicas. */
#ifndef CONTROLLER_SIMULATE_CLIENT_LINK_H
#define CONTROLLER_SIMULATE_CLIENT_LINK_H

#include "controller/kube/transport.h"

/* `shared` is borrowed and must outlive the link; polling the link polls it too. Freeing
 * the link cancels this client's requests. */
struct transport *client_link_new(struct transport *shared);
/* Whether replies have arrived that the client has not polled. */
bool client_link_has_mail(const struct transport *wire);

#endif
