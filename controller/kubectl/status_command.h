/* status_command.h - the command `status`: shows the state of a job: its plan, its pods,
 * its conditions, and what waits for approval. */
#ifndef CONTROLLER_KUBECTL_STATUS_COMMAND_H
#define CONTROLLER_KUBECTL_STATUS_COMMAND_H

#include "controller/kubectl/session.h"

int htj_status(struct session *session, struct het_error *err);

#endif
