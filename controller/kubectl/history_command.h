/* history_command.h - the command `history`: what was decided about a job, and why: its
 * plans by generation (those that are kept), the last plan that was weighed against the
 * running one, and the events (those that the API server still has: an hour's, by
 * default). */
#ifndef CONTROLLER_KUBECTL_HISTORY_COMMAND_H
#define CONTROLLER_KUBECTL_HISTORY_COMMAND_H

#include "controller/kubectl/session.h"

int htj_history(struct session *session, struct het_error *err);

#endif
