/* narration.h - tells what happens in a simulation: for people as it happens, or as one
 * JSON document at the end. Looks on only. */
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

/* Everything is borrowed and must outlive the report; the simulation is looked at until
 * narration_free. Make it before anything is put into the simulation's server. */
struct narration *narration_new(struct simulation *simulation, FILE *out,
                                const struct narration_options *options);
void narration_free(struct narration *report);

/* The cluster as it is now; call it once it is built. */
void narration_cluster(struct narration *report);
/* A simulation_step: tells what happened since the last one; goes on. */
bool narration_step(void *context, struct simulation *simulation);
/* Jobs, pods and environments at the end. Returns how many jobs have no plan and are not
 * over. */
size_t narration_end(struct narration *report);

#endif
