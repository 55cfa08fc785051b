/* gang.h - the pods of one generation, all or none. Pure. */
#ifndef CONTROLLER_RECONCILE_GANG_H
#define CONTROLLER_RECONCILE_GANG_H

#include "controller/reconcile/pass.h"

/* Makes what the current generation needs: older pods end, the Service turns to it, its
 * pods are created. Returns true once all pods are there. */
bool gang_form(struct pass *pass);
/* Conditions Placed and Running from the pods there are. */
void gang_report(struct pass *pass);

#endif
