/* lease.h - leader election: of all replicas, the one that holds a coordination.k8s.io/v1
 * Lease decides and writes; the others keep their stores up to date and wait. The
 * protocol is client-go's.
 *
 * Times that others wrote into the Lease are never compared with our clock: a holder
 * counts as gone when we have watched its Lease for its whole duration without a change.
 * Time is monotonic and continues while the machine is suspended.
 *
 *     t = 0    the holder sends a renewal that will succeed; nobody else can have seen
 *              the Lease change before
 *     t < 5 s  its fence is open: a write may be sent, and ends, here and in the server,
 *              within KUBE_FENCED_TIMEOUT_MS, that is before
 *     t = 10 s the lease is lost (LEASE_RENEW_MS): the process has to end
 *     t = 15 s the earliest that another replica may take the lease (LEASE_DURATION_MS)
 *
 * The holder renews every 2 s, so the fence closes after two renewals that failed. A
 * holder that was stopped between any two instructions finds the fence closed when it
 * continues. Clock speeds may differ by up to a half. A holder recreates a deleted Lease
 * without knowing whether another replica did so; writes therefore have preconditions of
 * their own (apply.h).
 *
 * Every update carries the resourceVersion read before it. After an update with an
 * unknown outcome or a conflict, the Lease is read back. */
#ifndef CONTROLLER_KUBE_LEASE_H
#define CONTROLLER_KUBE_LEASE_H

#include "controller/kube/client.h"

enum {
    LEASE_DURATION_MS = 15000,
    LEASE_RENEW_MS = 10000, /* without a renewal for this long: lost */
    LEASE_RETRY_MS = 2000,  /* between two renewals, and two looks of a follower... */
    LEASE_JITTER_PERMILLE = 1200, /* ...who waits up to this much longer, at random */
    LEASE_REQUEST_MS = 5000,      /* a request that takes longer is given up */
    LEASE_FENCE_MS = LEASE_RENEW_MS - KUBE_FENCED_TIMEOUT_MS,
    LEASE_RELEASED_S = 1,   /* duration of a released Lease */
    LEASE_LONGEST_S = 3600, /* of what others write; else LEASE_DURATION_MS */
};

struct lease_config {
    const char *ns, *name;
    const char *identity; /* of this process, and of no other ever */
    uint64_t seed;        /* of jitter */
    /* The present time of the clock behind lease_step's `now_ms`, in ms. */
    int64_t (*clock_ms)(void *context);
    void *clock_context;
};

enum lease_state {
    LEASE_FOLLOWS,
    LEASE_HOLDS,
    LEASE_LOST,     /* for good: the process has to end */
    LEASE_RELEASES, /* after lease_release */
    LEASE_RELEASED, /* for good: released, never held, or unknown */
};

struct lease;

/* `kube` is borrowed. It must be a separate one without a fence, so that the lease does
 * not wait behind other requests. The strings of `config` must outlive the lease. Nothing
 * is requested before the first step. */
struct lease *lease_new(struct kube *kube, const struct lease_config *config);
void lease_free(struct lease *lease);

/* Takes replies and sends the requests due at `now_ms`; `wall_ms` (since 1970) goes into
 * the Lease for people to read. */
void lease_step(struct lease *lease, int64_t now_ms, int64_t wall_ms);
/* When lease_step has something to do; INT64_MAX: only when a request is answered. */
int64_t lease_next_ms(const struct lease *lease);

enum lease_state lease_state(const struct lease *lease);
/* Whether a write may be sent now, by the clock. For kube_set_fence, with the lease as
 * context. */
bool lease_fence_is_open(void *lease);
/* "identity/transitions" of the holder named in the Lease; transitions count the previous
 * holders. "" before the Lease is first read. */
const char *lease_holder(const struct lease *lease);

/* Closes the fence and releases the lease, so that the next replica need not wait. No
 * write may be under way. */
void lease_release(struct lease *lease);

#endif
