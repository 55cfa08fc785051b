/* random_world.h - a small cluster, its jobs, and what happens to them, all out of dice:
 * nodes of several types and sizes, some of them spot, tainted or short of memory; jobs
 * with any field of the spec that has an effect; events of the script (scenario.h)
 * and of people. */
#ifndef TESTS_CONTROLLER_RANDOM_WORLD_H
#define TESTS_CONTROLLER_RANDOM_WORLD_H

#include "controller/simulate/simulated_cluster.h"
#include "tests/controller/dice.h"
#include "tests/controller/profiler.h"

enum { RANDOM_WORLD_NODES = 6, RANDOM_WORLD_JOBS = 4 };

struct random_world {
    struct api_server *server;
    struct simulated_cluster *cluster;
    struct dice dice;
    struct profiler profiler; /* of all measurements */
    size_t node_count;
    int gpus[RANDOM_WORLD_NODES]; /* of node "n<i>" when it is well */
    uint64_t jobs_made, foreign_made;
    bool has_bystanders; /* objects with our names and labels that are not ours */
    bool has_vendors;    /* every other node has GPUs of AMD */
    bool may_hold;       /* watches may stand still for a while */
};

/* Makes nodes, profile, priority classes and perhaps bystanders; no job. */
void random_world_build(struct random_world *world);
/* One job is made, or made anew, or changed. Returns what was done, freed by the caller.
 */
char *random_world_add_job(struct random_world *world);
char *random_world_delete_job(struct random_world *world);
/* Something happens. Returns what ("" if it could not), freed by the caller. */
char *random_world_shake(struct random_world *world);
/* The API server refuses nothing any more, as the priority class that is missing is made,
 * and no watch is held. */
void random_world_admit(struct random_world *world);
/* Whether all bystanders are still there, if there were any. */
bool random_world_has_bystanders(const struct random_world *world);
/* All nodes are there, well, and ours; profile, classes and pods' hooks are well; there
 * are no bystanders any more. */
void random_world_heal(struct random_world *world);

#endif
