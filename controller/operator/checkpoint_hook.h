/* checkpoint_hook.h - asks training programs for a checkpoint, over HTTP, before their
 * pods are deleted (docs/api.md, "The checkpoint hook").
 *
 *   POST http://ADDRESS:PORT/PATH   with the CheckpointRequest as JSON
 *
 *   2xx   the checkpoint is written; the reply may take as long as that takes
 *   202   it is being written: GET of the same address, until it says something else,
 *         after Retry-After (1 s if it says none, 10 s at most)
 *   408, 425, 429, 5xx, or no reply
 *         the same again, after 1 s, 2 s, 4 s, then every 5 s
 *   nobody listens
 *         the same, but the third time in a row it is a refusal
 *   else  the program writes no checkpoint: refused
 *
 * Only literal IP addresses are called, as the API server reports them for the job's own
 * pod, and none by which the controller would reach itself or its node: no unspecified,
 * loopback, link-local, multicast or broadcast address, and no IPv6 form that embeds an
 * IPv4 one. No redirect is followed, no credential sent, no more than 64 KiB read. A job
 * has one hook at a time; a hung program delays only its own job. */
#ifndef CONTROLLER_OPERATOR_CHECKPOINT_HOOK_H
#define CONTROLLER_OPERATOR_CHECKPOINT_HOOK_H

#include "controller/decision/snapshot.h"
#include "controller/kube/transport.h"

enum {
    CHECKPOINT_HOOK_MAX = 256,             /* requests under way */
    CHECKPOINT_HOOK_MAX_OF_NAMESPACE = 32, /* of these, for the jobs of one namespace */
    CHECKPOINT_HOOK_RESPONSE_BYTES = 64 << 10,
    CHECKPOINT_HOOK_PAUSE_MS = 1000,     /* before the second try, and between two GETs */
    CHECKPOINT_HOOK_MAX_RETRY_MS = 5000, /* pauses between tries double up to this */
    CHECKPOINT_HOOK_MAX_RETRY_AFTER_MS = 10000,
    CHECKPOINT_HOOK_MAX_UNHEARD = 3, /* consecutive refused connections */
};

struct checkpoint_hook_request {
    const char *address; /* of the pod: "10.1.0.7", "fd00::7" */
    int64_t port;
    const char *path;   /* "/checkpoint": visible ASCII */
    const json_t *body; /* what is posted */
    int64_t timeout_ms; /* the hook is then given up without a callback */
};

/* `outcome` is HOOK_ACKNOWLEDGED, or HOOK_REFUSED with the reply as `message`. */
typedef void checkpoint_hook_done(void *context, const char *key,
                                  enum hook_outcome outcome, const char *message);

struct checkpoint_hooks;

/* `transport` is borrowed; it must outlive the hooks. `allow_loopback`: for tests whose
 * pods are processes on one machine. */
struct checkpoint_hooks *checkpoint_hooks_new(struct transport *transport,
                                              bool allow_loopback,
                                              checkpoint_hook_done *done, void *context);
void checkpoint_hooks_free(struct checkpoint_hooks *hooks);

/* Whether a program at `address` may be called. */
bool checkpoint_hook_address_is_allowed(const char *address, bool allow_loopback);

/* Starts the hook of job `key` ("namespace/name") and gives up one under way. `request`
 * is copied. checkpoint_hook_done is called from checkpoint_hooks_step or
 * transport_poll. */
void checkpoint_hooks_start(struct checkpoint_hooks *hooks, const char *key,
                            const struct checkpoint_hook_request *request,
                            int64_t now_ms);
/* Gives up the hook of `key`, if there is one. */
void checkpoint_hooks_cancel(struct checkpoint_hooks *hooks, const char *key);
/* Starts what is due at `now_ms`. */
void checkpoint_hooks_step(struct checkpoint_hooks *hooks, int64_t now_ms);
/* When checkpoint_hooks_step has something to do; INT64_MAX: only after a reply. */
int64_t checkpoint_hooks_next_ms(const struct checkpoint_hooks *hooks);
/* Jobs with a hook under way. */
size_t checkpoint_hooks_count(const struct checkpoint_hooks *hooks);

#endif
