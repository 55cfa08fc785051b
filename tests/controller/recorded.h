/* recorded.h - that a decision can be made again from its record. */
#ifndef TESTS_CONTROLLER_RECORDED_H
#define TESTS_CONTROLLER_RECORDED_H

#include "controller/decision/decision.h"

/* Records the decision as text, reads that back and decides again; fails the test if the
 * two decisions differ in anything. As controller_config.on_decision, too. */
void recorded_check(void *context, const struct snapshot *snapshot,
                    const struct decision *decision);

#endif
