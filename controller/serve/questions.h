/* questions.h - client requests that need an answer from the API server, which only the
 * loop asks. They wait in a queue between the two threads, bounded in number and time. */
#ifndef CONTROLLER_SERVE_QUESTIONS_H
#define CONTROLLER_SERVE_QUESTIONS_H

#include "controller/kube/client.h"

#include <sys/queue.h>

/* First member of a waiting request's struct. */
struct question {
    TAILQ_ENTRY(question) link;
    uint64_t id;         /* of the server's request */
    int64_t end_ms;      /* set by questions_add */
    uint64_t request_id; /* of the request to the API server; set by `ask` */
};

struct questions_config {
    struct kube *kube; /* the loop's; without a fence */
    size_t most;       /* greatest number of waiting questions */
    int64_t patience_ms;
    int64_t (*clock_ms)(void *context); /* the clock of questions_step; called from any
                                           thread */
    void (*wake)(void *context);        /* wakes the loop; called from any thread */
    void *context;
    /* In the loop: asks the API server. The code that gets the answer calls
     * questions_close. */
    void (*ask)(struct question *question);
    /* In the loop: the API server has not answered in time. Cancels the request and calls
     * questions_close. */
    void (*give_up)(struct question *question);
    void (*free)(struct question *question); /* for questions left at the end */
};

struct questions;

struct questions *questions_new(const struct questions_config *config);
/* Free it after the server and before the kube. */
void questions_free(struct questions *questions);

/* Called in the server's thread. False: the queue is full, and the caller keeps
 * `question`. */
bool questions_add(struct questions *questions, struct question *question);

/* In the loop: removes `question` from the queue; the caller owns it again. */
void questions_close(struct questions *questions, struct question *question);
void questions_step(struct questions *questions, int64_t now_ms);
/* When one has waited long enough; INT64_MAX: none waits. */
int64_t questions_next_ms(const struct questions *questions);

#endif
