/* questions.h - requests of the server's clients that the API server has to be asked
 * about, which only the loop does. They wait in a queue between the two threads: so many
 * at a time and no more, each for so long and no longer. */
#ifndef CONTROLLER_SERVE_QUESTIONS_H
#define CONTROLLER_SERVE_QUESTIONS_H

#include "controller/kube/client.h"

#include <sys/queue.h>

/* The first member of what waits. */
struct question {
    TAILQ_ENTRY(question) link;
    uint64_t id;         /* of the server's request */
    int64_t end_ms;      /* set by questions_add */
    uint64_t request_id; /* of what the API server is asked; set by `ask` */
};

struct questions_config {
    struct kube *kube; /* the loop's; without a fence */
    size_t most;       /* that wait at a time */
    int64_t patience_ms;
    int64_t (*clock_ms)(void *context); /* that of questions_step; any thread asks */
    void (*wake)(void *context);        /* so that the loop turns; from any thread */
    void *context;
    /* In the loop: asks. Whoever has the answer calls questions_close. */
    void (*ask)(struct question *question);
    /* In the loop: the API server has not answered in time, and what it was asked is
     * cancelled. Calls questions_close. */
    void (*give_up)(struct question *question);
    void (*free)(struct question *question); /* of those left at the end */
};

struct questions;

struct questions *questions_new(const struct questions_config *config);
/* After the server, and before the kube. */
void questions_free(struct questions *questions);

/* From the server's thread. False: enough others wait, and `question` is still the
 * caller's. */
bool questions_add(struct questions *questions, struct question *question);

/* In the loop: `question` waits no more, and is the caller's again. */
void questions_close(struct questions *questions, struct question *question);
void questions_step(struct questions *questions, int64_t now_ms);
/* When one has waited long enough; INT64_MAX: none waits. */
int64_t questions_next_ms(const struct questions *questions);

#endif
