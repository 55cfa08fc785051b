/* generation.h - generations of pods: decided, fenced off, stopped. Pure. */
#ifndef CONTROLLER_PLACEMENT_GENERATION_H
#define CONTROLLER_PLACEMENT_GENERATION_H

#include "controller/decision/pass.h"

/* Names that somebody else's objects have are skipped, up to so many beyond the newest
 * generation, and for so long: then they may be gone. */
#define GENERATION_MOST_TAKEN ((int64_t)1024)
#define GENERATION_TAKEN_MS   ((int64_t)300000)

/* Decides a new generation: its ConfigMap is the decision, and the reservation of its
 * GPUs. What follows from it, the next pass does. `digest` is of the input that the plan
 * was made for. False if the plan cannot be written. */
bool generation_commit(struct pass *pass, const struct het_plan *plan, uint64_t digest,
                       const char *trigger, int64_t restarts, int64_t replans,
                       const char *event, const char *message);
/* Deletes pods of other generations than `keep`, once they are drained (drain.h). Ended
 * ones stay while their plan stays, for people to read. Returns how many can still hold a
 * GPU or run a rank. */
size_t generation_fence_older(struct pass *pass, int64_t keep);
/* Deletes ConfigMaps of generations that are too old to be read, and have no pod left. */
void generation_drop_old(struct pass *pass);
/* Writes on the ConfigMap of the current generation that it never starts again, as a rank
 * of it may still run on a node that nobody can reach; why, and `restarts`, which the
 * next generation counts from. Nothing, if it is retired already. */
void generation_retire(struct pass *pass, const char *trigger, int64_t restarts);
/* Deletes the pods of the current generation that have not ended. */
void generation_delete_pods(struct pass *pass);
/* Stops the current generation for good: pods without their peers only hold GPUs. It is
 * retired first. Its pods are deleted once they are drained. */
void generation_stop(struct pass *pass, const char *trigger);

#endif
