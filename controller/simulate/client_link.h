/* client_link.h - one client's own end of a transport that several clients share. What
 * arrives for the client waits until it polls its own end, so that a client may stand
 * still, as a process does that was stopped, while the others and the server go on. For
 * simulations of several replicas. */
#ifndef CONTROLLER_SIMULATE_CLIENT_LINK_H
#define CONTROLLER_SIMULATE_CLIENT_LINK_H

#include "controller/kube/transport.h"

/* `shared` is borrowed and must outlive the wire; it is polled with the wire. Freeing it
 * cancels what this client has asked for. */
struct transport *client_link_new(struct transport *shared);
/* Whether something has arrived that the client has not looked at. */
bool client_link_has_mail(const struct transport *wire);

#endif
