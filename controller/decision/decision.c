#include "controller/decision/decision.h"

/* Stable: actions of one phase keep their order. Few enough for insertion. */
void decision_sort(struct decision *decision)
{
    for (size_t i = 1; i < decision->action_count; i++)
        for (size_t k = i;
             k > 0 && decision->actions[k - 1].phase > decision->actions[k].phase; k--) {
            struct action swapped = decision->actions[k];
            decision->actions[k] = decision->actions[k - 1];
            decision->actions[k - 1] = swapped;
        }
}

void decision_fini(struct decision *decision)
{
    if (!decision)
        return;
    for (size_t i = 0; i < decision->action_count; i++)
        json_decref(decision->actions[i].object);
    decision->action_count = 0;
}
