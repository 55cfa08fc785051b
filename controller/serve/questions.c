#include "controller/serve/questions.h"

#include <pthread.h>
#include <stdlib.h>

TAILQ_HEAD(question_list, question);

struct questions {
    struct questions_config config;

    pthread_mutex_t lock;
    struct question_list queue; /* for the loop to ask */
    size_t count;               /* of all that wait */

    /* The loop's thread alone. */
    struct question_list asked; /* in the order of their ends */
};

bool questions_add(struct questions *questions, struct question *question)
{
    const struct questions_config *config = &questions->config;
    question->end_ms = config->clock_ms(config->context) + config->patience_ms;
    pthread_mutex_lock(&questions->lock);
    bool has_room = questions->count < config->most;
    if (has_room) {
        questions->count++;
        TAILQ_INSERT_TAIL(&questions->queue, question, link);
    }
    pthread_mutex_unlock(&questions->lock);
    if (has_room)
        config->wake(config->context);
    return has_room;
}

void questions_close(struct questions *questions, struct question *question)
{
    TAILQ_REMOVE(&questions->asked, question, link);
    pthread_mutex_lock(&questions->lock);
    questions->count--;
    pthread_mutex_unlock(&questions->lock);
}

static struct question *take_from_queue(struct questions *questions)
{
    pthread_mutex_lock(&questions->lock);
    struct question *question = TAILQ_FIRST(&questions->queue);
    if (question)
        TAILQ_REMOVE(&questions->queue, question, link);
    pthread_mutex_unlock(&questions->lock);
    return question;
}

void questions_step(struct questions *questions, int64_t now_ms)
{
    const struct questions_config *config = &questions->config;
    for (struct question *question; (question = take_from_queue(questions)) != NULL;) {
        TAILQ_INSERT_TAIL(&questions->asked, question, link);
        config->ask(question);
    }
    for (struct question *first;
         (first = TAILQ_FIRST(&questions->asked)) != NULL && first->end_ms <= now_ms;) {
        kube_cancel(config->kube, first->request_id);
        config->give_up(first);
    }
}

int64_t questions_next_ms(const struct questions *questions)
{
    const struct question *first = TAILQ_FIRST(&questions->asked);
    return first ? first->end_ms : INT64_MAX;
}

struct questions *questions_new(const struct questions_config *config)
{
    struct questions *questions = xcalloc(1, sizeof *questions);
    questions->config = *config;
    pthread_mutex_init(&questions->lock, NULL);
    TAILQ_INIT(&questions->queue);
    TAILQ_INIT(&questions->asked);
    return questions;
}

void questions_free(struct questions *questions)
{
    if (!questions)
        return;
    const struct questions_config *config = &questions->config;
    for (struct question *question; (question = take_from_queue(questions)) != NULL;)
        config->free(question);
    for (struct question *first; (first = TAILQ_FIRST(&questions->asked)) != NULL;) {
        TAILQ_REMOVE(&questions->asked, first, link);
        kube_cancel(config->kube, first->request_id);
        config->free(first);
    }
    pthread_mutex_destroy(&questions->lock);
    free(questions);
}
