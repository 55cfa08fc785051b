/* profiler.h - a profiler that measures nothing: what it says of the model of
 * profiler_architecture and a GPU type, for tests of measurements. It fits the profile of
 * make_profile, where a type takes twice as long as the one before it. */
#ifndef TESTS_CONTROLLER_PROFILER_H
#define TESTS_CONTROLLER_PROFILER_H

#include "controller/job/settings.h"
#include "controller/simulate/simulated_cluster.h"

/* Member "architecture" of spec.model. A new reference. */
json_t *profiler_architecture(void);
/* Settings with a profiler, that live as long as the process. */
const struct settings *profiler_settings(void);
/* The compact result for `gpu_type` with degrees 1 and 2 of tensor parallelism, or only
 * 1; the caller frees it. */
char *profiler_result(const char *gpu_type, int most_degree);

/* What the program in a simulated profiler's pod does. */
struct profiler {
    int64_t after_ms; /* that it takes */
    int failures;     /* pods that fail before one succeeds */
    bool is_forged;   /* it says what it was not asked for */
    int runs;         /* pods so far */
};
/* An simulated_program; `context` is a struct profiler. */
struct simulated_end profiler_run(void *context, const json_t *pod);

#endif
