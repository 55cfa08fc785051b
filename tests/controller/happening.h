/* happening.h - what happens to an embedded cluster in a test: one event of the script
 * (scenario.h), now. */
#ifndef TESTS_CONTROLLER_HAPPENING_H
#define TESTS_CONTROLLER_HAPPENING_H

#include "controller/simulate/simulated_cluster.h"

/* An event without its time: "delete node/a". It must be one. Errors: that it cannot be,
 * as there is no such node, pod or job. */
int happening(struct simulated_cluster *cluster, const char *text, struct het_error *err);
/* For scenario_event_parse: there is no file. */
json_t *happening_no_file(const char *path, struct het_error *err);

#endif
