/* timeline.h - what every stage of a plan does during one iteration, task by task.
 * schedule.h makes one, people/timeline.h draws it. */
#ifndef HET_COST_TIMELINE_H
#define HET_COST_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

enum het_task_kind {
    HET_TASK_FORWARD,
    HET_TASK_BACKWARD,
    HET_TASK_SEND_FORWARD, /* activations to the next stage, which receives meanwhile */
    HET_TASK_RECEIVE_FORWARD,
    HET_TASK_SEND_BACKWARD, /* gradients to the previous stage */
    HET_TASK_RECEIVE_BACKWARD,
    HET_TASK_GRADIENT_SYNC,
    HET_TASK_OPTIMIZER_STEP,
};
#define HET_TASK_KINDS 8u

/* "forward", "backward", "send forward", ... */
const char *het_task_kind_name(enum het_task_kind kind);

struct het_task {
    uint32_t pipeline, stage;
    enum het_task_kind kind;
    uint32_t microbatch; /* 0 for gradients and optimizer */
    double start_s, end_s;
};

/* Tasks of a stage follow each other and never overlap: what lies between them is the
 * bubble. */
struct het_timeline {
    const struct het_task *tasks; /* by pipeline, stage, start */
    size_t task_count;
    double end_s; /* of the iteration */
};

#endif
