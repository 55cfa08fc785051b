/* history_command.h - the command `history`: what was decided about a job, and why: the
 * kept plans by generation, the last plan weighed against the running one, and the events
 * that the API server still has (by default those of an hour). */
#ifndef CONTROLLER_KUBECTL_HISTORY_COMMAND_H
#define CONTROLLER_KUBECTL_HISTORY_COMMAND_H

#include "controller/kubectl/session.h"

int htj_history(struct session *session, struct het_error *err);

#endif
