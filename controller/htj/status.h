/* htj/status.h - the command `status`: where a job stands, for people: its plan, its
 * pods, its conditions, and what waits for approval. */
#ifndef CONTROLLER_HTJ_STATUS_H
#define CONTROLLER_HTJ_STATUS_H

#include "controller/htj/session.h"

int htj_status(struct session *session, struct het_error *err);

#endif
