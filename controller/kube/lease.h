/* lease.h - leader election: of all replicas, the one that holds a coordination.k8s.io/v1
 * Lease decides and writes; the others keep what they know up to date and wait.
 * The protocol is client-go's.
 *
 * What others wrote into the Lease is never compared with a clock of ours: a holder is
 * gone when its Lease has not changed, before our eyes, for as long as it lasts. Time is
 * monotonic and goes on while the machine is suspended.
 *
 *     t = 0    the holder sends a renewal that will succeed; nobody else can have seen
 *              the Lease change before
 *     t < 5 s  its fence is open: a write may be sent, and ends, here and in the server,
 *              within KUBE_FENCED_TIMEOUT_MS, that is before
 *     t = 10 s the lease is lost (LEASE_RENEW_MS): the process has to end
 *     t = 15 s the earliest that another replica may take the lease (LEASE_DURATION_MS)
 *
 * The holder renews every 2 s, so the fence closes after two renewals that failed. A
 * holder that was stopped between any two of its instructions finds the fence closed when
 * it goes on. Clocks may run at different speed, by up to a half. A Lease that somebody
 * deletes is made again by its holder, who cannot know that nobody else did; what is
 * written has preconditions of its own (apply.h).
 *
 * Every update has the resourceVersion that was read before. After an update whose
 * outcome is unknown, or that met a conflict, the Lease is read back. */
#ifndef CONTROLLER_KUBE_LEASE_H
#define CONTROLLER_KUBE_LEASE_H

#include "controller/kube/client.h"

enum {
    LEASE_DURATION_MS = 15000,
    LEASE_RENEW_MS = 10000, /* without a renewal for so long: lost */
    LEASE_RETRY_MS = 2000,  /* between two renewals, and two looks of a follower... */
    LEASE_JITTER_PERMILLE = 1200, /* ...who waits up to so much longer, at random */
    LEASE_REQUEST_MS = 5000,      /* a request that takes longer is given up */
    LEASE_FENCE_MS = LEASE_RENEW_MS - KUBE_FENCED_TIMEOUT_MS,
    LEASE_RELEASED_S = 1,   /* duration of a Lease that was given back */
    LEASE_LONGEST_S = 3600, /* of what others write into it; beyond: LEASE_DURATION_MS */
};

struct lease_config {
    const char *ns, *name;
    const char *identity; /* of this process, and of no other ever */
    uint64_t seed;        /* of jitter */
    /* Milliseconds of the clock that lease_step's `now_ms` is of, right now. */
    int64_t (*clock_ms)(void *context);
    void *clock_context;
};

enum lease_state {
    LEASE_FOLLOWS,
    LEASE_HOLDS,
    LEASE_LOST,     /* for good: the process has to end */
    LEASE_RELEASES, /* after lease_release */
    LEASE_RELEASED, /* for good: given back, or never held, or nobody can know */
};

struct lease;

/* `kube` is borrowed: one of its own, so that the lease does not wait behind other
 * requests; no fence must be set on it. The strings of `config` must outlive the lease.
 * Nothing is requested before the first step. */
struct lease *lease_new(struct kube *kube, const struct lease_config *config);
void lease_free(struct lease *lease);

/* Takes what was answered and asks for what is due at `now_ms`; `wall_ms` since 1970 goes
 * into the Lease for people to read. */
void lease_step(struct lease *lease, int64_t now_ms, int64_t wall_ms);
/* When lease_step has something to do; INT64_MAX: only when a request is answered. */
int64_t lease_next_ms(const struct lease *lease);

enum lease_state lease_state(const struct lease *lease);
/* Whether a write may be sent at this moment: asks the clock. For kube_set_fence, the
 * context is the lease. */
bool lease_fence_is_open(void *lease);
/* "identity/transitions" of whom the Lease names as its holder; transitions count the
 * holders there were before. "" before it was read first. */
const char *lease_holder(const struct lease *lease);

/* Closes the fence and gives the lease back, so that the next replica need not wait. No
 * write may be on its way any more. */
void lease_release(struct lease *lease);

#endif
