#include "planner/cost/timeline.h"

const char *het_task_kind_name(enum het_task_kind kind)
{
    static const char *const names[HET_TASK_KINDS] = {
        [HET_TASK_FORWARD] = "forward",
        [HET_TASK_BACKWARD] = "backward",
        [HET_TASK_SEND_FORWARD] = "send forward",
        [HET_TASK_RECEIVE_FORWARD] = "receive forward",
        [HET_TASK_SEND_BACKWARD] = "send backward",
        [HET_TASK_RECEIVE_BACKWARD] = "receive backward",
        [HET_TASK_GRADIENT_SYNC] = "gradient sync",
        [HET_TASK_OPTIMIZER_STEP] = "optimizer step",
    };
    return names[kind];
}
