/* inside_planner.h - the planner's library as a simulation's planner (planner_child_inside):
 * the same questions and answers as `hetplan plan -`, with little effort, on the virtual
 * clock; and a planner that breaks, hangs or says nonsense, by chance. */
#ifndef TESTS_CONTROLLER_INSIDE_PLANNER_H
#define TESTS_CONTROLLER_INSIDE_PLANNER_H

#include "controller/operator/planner_child.h"
#include "tests/controller/dice.h"

struct inside_planner {
    struct dice dice;
    unsigned fault_per_mille;
    int64_t latency_ms; /* an answer takes up to so long */
    uint64_t questions, faults;
    char *output, *message; /* of the last answer */
};

void inside_planner_fini(struct inside_planner *planner);
/* `context` is a struct inside_planner. */
void inside_planner_answer(void *context, const json_t *question, int64_t timeout_ms,
                           struct planner_child_reply *ret);

#endif
