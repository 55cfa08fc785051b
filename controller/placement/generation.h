/* generation.h - decides, fences off and stops generations of pods. Pure. */
#ifndef CONTROLLER_PLACEMENT_GENERATION_H
#define CONTROLLER_PLACEMENT_GENERATION_H

#include "controller/decision/pass.h"

/* Generations whose names foreign objects have are skipped: at most this many beyond the
 * newest generation, and for this long, after which the objects may be gone. */
#define GENERATION_MOST_TAKEN ((int64_t)1024)
#define GENERATION_TAKEN_MS   ((int64_t)300000)

/* Decides on a new generation. Its ConfigMap is the decision and reserves its GPUs; the
 * next pass acts on it. `digest` is that of the input that the plan was made for. False
 * if the plan cannot be written. */
bool generation_commit(struct pass *pass, const struct het_plan *plan, uint64_t digest,
                       const char *trigger, int64_t restarts, int64_t replans,
                       const char *event, const char *message);
/* Deletes pods of generations other than `keep` once they are drained (drain.h). Ended
 * pods stay as long as their plan, for people to read. Returns how many can still hold a
 * GPU or run a rank. */
size_t generation_fence_older(struct pass *pass, int64_t keep);
/* Deletes the ConfigMaps of generations beyond PLANS_KEPT that have no pod left. */
void generation_drop_old(struct pass *pass);
/* Records on the ConfigMap of the current generation that it never starts again (one of
 * its ranks may still run on an unreachable node), why, and `restarts`, from which the
 * next generation counts. Does nothing if it is already retired. */
void generation_retire(struct pass *pass, const char *trigger, int64_t restarts);
/* Deletes the pods of the current generation that have not ended. */
void generation_delete_pods(struct pass *pass);
/* Stops the current generation for good, as pods without their peers only hold GPUs:
 * retires it, then deletes its pods once they are drained. */
void generation_stop(struct pass *pass, const char *trigger);

#endif
