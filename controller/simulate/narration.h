/* narration.h - reports a simulation: as text while it runs, or as one JSON document at
 * the end. It only observes. */
#ifndef CONTROLLER_SIMULATE_NARRATION_H
#define CONTROLLER_SIMULATE_NARRATION_H

#include "controller/simulate/simulation.h"

#include <stdio.h>

struct narration_options {
    bool is_json;
    bool is_ascii; /* else UTF-8 */
    bool is_quiet; /* text: only the end */
    int width;     /* of a line of text; at least 80 */
    const struct het_hardware *hardware;
};

struct narration;

/* Everything is borrowed and must outlive the report, which observes the simulation until
 * narration_free. Create it before anything is put into the simulation's server. */
struct narration *narration_new(struct simulation *simulation, FILE *out,
                                const struct narration_options *options);
void narration_free(struct narration *report);

/* Reports the present cluster; call once it is built. */
void narration_cluster(struct narration *report);
/* A simulation_step: reports what happened since the last one and returns true. */
bool narration_step(void *context, struct simulation *simulation);
/* Reports jobs, pods and environments at the end. Returns how many unfinished jobs have
 * no plan. */
size_t narration_end(struct narration *report);

#endif
