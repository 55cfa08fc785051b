#include "controller/serve/admission.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/kube/decode.h"
#include "controller/serve/review.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define JSON_TYPE "application/json"

/* A request that waits for what the API server says of its user. */
struct waiting {
    TAILQ_ENTRY(waiting) link;
    struct admission *admission;
    uint64_t id; /* of the server's request */
    struct het_arena *arena;
    struct webhook_verdict verdict;
    int64_t end_ms;
    double from_s;       /* by the clock of the metrics */
    uint64_t request_id; /* of the question */
};

TAILQ_HEAD(waitings, waiting);

struct admission {
    struct admission_config config;
    struct server_route route;
    atomic_int_least64_t server_minor; /* of the API server; 0: not known */

    pthread_mutex_t lock;
    struct waitings queue; /* for the loop to ask */
    size_t count;          /* of all that wait */

    /* The loop's thread alone. */
    struct server *server;
    struct waitings asked; /* in the order of their ends */
};

/* ---- answers ---- */

static void set_body(struct server_reply *reply, int status, const char *type, char *text)
{
    *reply = (struct server_reply){
        .status = status, .content_type = type, .body = text, .body_length = strlen(text)
    };
}

/* Of a verdict that is one. */
static void make_reply(struct admission *admission, const struct webhook_verdict *verdict,
                       double from_s, struct server_reply *ret)
{
    json_auto_t *answer = webhook_answer(verdict);
    bool is_allowed = verdict->decision == WEBHOOK_ALLOW;
    struct metrics *metrics = admission->config.metrics;
    metrics_add(
        metrics, METRIC_ADMISSIONS, 1,
        LABELS(is_allowed ? "allowed" : "denied", is_allowed ? "" : verdict->reason));
    metrics_observe(metrics, METRIC_ADMISSION_SECONDS, metrics_now(metrics) - from_s,
                    NO_LABELS);
    log_event(LOG_DEBUG, "admission", is_allowed ? "allowed" : "denied",
              LOG_STR("uid", verdict->uid), LOG_STR("reason", verdict->reason),
              LOG_STR("message", verdict->message));
    set_body(ret, 200, JSON_TYPE, json_dumps(answer, JSON_COMPACT));
}

static void waiting_free(struct waiting *waiting)
{
    json_decref(waiting->verdict.question);
    het_arena_free(waiting->arena);
    free(waiting);
}

/* ---- the server's thread ---- */

/* Whether the loop will answer; not if enough others wait. */
static bool enqueue(struct admission *admission, struct waiting *waiting)
{
    pthread_mutex_lock(&admission->lock);
    bool has_room = admission->count < ADMISSION_WAITING;
    if (has_room) {
        admission->count++;
        TAILQ_INSERT_TAIL(&admission->queue, waiting, link);
    }
    pthread_mutex_unlock(&admission->lock);
    if (has_room)
        admission->config.wake(admission->config.context);
    return has_room;
}

/* Decides, or hands it to the loop: false. */
static bool judge(struct admission *admission, const json_t *review, uint64_t id,
                  struct server_reply *ret_reply)
{
    const struct admission_config *config = &admission->config;
    struct waiting *waiting = xcalloc(1, sizeof *waiting);
    struct webhook_verdict *verdict = &waiting->verdict;
    struct het_error err = { 0 };
    *waiting = (struct waiting){
        .admission = admission,
        .id = id,
        .arena = het_arena_new(),
        .end_ms = config->clock_ms(config->context) + ADMISSION_MS,
        .from_s = metrics_now(config->metrics),
    };
    struct tenancy tenancy = { .settings = config->settings,
                               .server_minor = atomic_load(&admission->server_minor) };
    if (webhook_review(waiting->arena, &tenancy, review, verdict, &err) < 0) {
        set_body(ret_reply, 400, NULL, xasprintf("%s\n", err.message));
        waiting_free(waiting);
        return true;
    }
    if (verdict->decision == WEBHOOK_ASK) {
        if (enqueue(admission, waiting))
            return false;
        webhook_give_up(waiting->arena, "too many ask at the same time", verdict);
    }
    make_reply(admission, verdict, waiting->from_s, ret_reply);
    waiting_free(waiting);
    return true;
}

static bool is_json(const char *content_type)
{
    size_t length = strlen(JSON_TYPE);
    return !strncasecmp(content_type, JSON_TYPE, length) &&
           (!content_type[length] || strchr("; \t", content_type[length]));
}

static bool on_validate(void *context, const struct server_request *request,
                        struct server_reply *ret_reply)
{
    struct admission *admission = context;
    struct het_error err = { 0 };
    if (!is_json(request->content_type)) {
        set_body(ret_reply, 415, NULL, xstrdup("must be " JSON_TYPE "\n"));
        return true;
    }
    json_auto_t *review = kube_decode(request->body, request->body_length, &err);
    if (!review) {
        set_body(ret_reply, 400, NULL, xasprintf("%s\n", err.message));
        return true;
    }
    return judge(admission, review, request->id, ret_reply);
}

/* ---- the loop's thread ---- */

/* Out of the list of those that were asked about; its verdict is made. */
static void answer(struct waiting *waiting)
{
    struct admission *admission = waiting->admission;
    struct server_reply reply;
    make_reply(admission, &waiting->verdict, waiting->from_s, &reply);
    server_answer(admission->server, waiting->id, &reply);
    TAILQ_REMOVE(&admission->asked, waiting, link);
    pthread_mutex_lock(&admission->lock);
    admission->count--;
    pthread_mutex_unlock(&admission->lock);
    waiting_free(waiting);
}

static void on_answer(void *context, const struct kube_result *result)
{
    struct waiting *waiting = context;
    if (result->outcome == KUBE_OK)
        webhook_hear(waiting->arena, result->object, &waiting->verdict);
    else {
        log_event(LOG_WARNING, "admission", "question not answered",
                  LOG_STR("outcome", kube_outcome_name(result->outcome)),
                  LOG_STR("message", result->message));
        webhook_give_up(waiting->arena, result->message, &waiting->verdict);
    }
    answer(waiting);
}

static struct waiting *take_from_queue(struct admission *admission)
{
    pthread_mutex_lock(&admission->lock);
    struct waiting *waiting = TAILQ_FIRST(&admission->queue);
    if (waiting)
        TAILQ_REMOVE(&admission->queue, waiting, link);
    pthread_mutex_unlock(&admission->lock);
    return waiting;
}

void admission_step(struct admission *admission, int64_t now_ms)
{
    struct kube *kube = admission->config.kube;
    for (struct waiting *waiting; (waiting = take_from_queue(admission)) != NULL;) {
        TAILQ_INSERT_TAIL(&admission->asked, waiting, link);
        waiting->request_id = kube_create(kube, &kube_access_review, NULL,
                                          waiting->verdict.question, on_answer, waiting);
    }
    for (struct waiting *first;
         (first = TAILQ_FIRST(&admission->asked)) != NULL && first->end_ms <= now_ms;) {
        kube_cancel(kube, first->request_id);
        webhook_give_up(first->arena, "the API server did not answer within 4 s",
                        &first->verdict);
        answer(first);
    }
}

int64_t admission_next_ms(const struct admission *admission)
{
    const struct waiting *first = TAILQ_FIRST(&admission->asked);
    return first ? first->end_ms : INT64_MAX;
}

/* ---- life ---- */

struct admission *admission_new(const struct admission_config *config)
{
    struct admission *admission = xcalloc(1, sizeof *admission);
    admission->config = *config;
    admission->route = (struct server_route){
        .method = "POST",
        .path = "/validate",
        .handler = on_validate,
        .context = admission,
        .max_body_bytes = ADMISSION_BODY_BYTES,
    };
    pthread_mutex_init(&admission->lock, NULL);
    TAILQ_INIT(&admission->queue);
    TAILQ_INIT(&admission->asked);
    kube_set_rate(config->kube, ADMISSION_REQUESTS_PER_S, ADMISSION_REQUESTS_PER_S);
    return admission;
}

void admission_free(struct admission *admission)
{
    if (!admission)
        return;
    for (struct waiting *waiting; (waiting = take_from_queue(admission)) != NULL;)
        waiting_free(waiting);
    for (struct waiting *first; (first = TAILQ_FIRST(&admission->asked)) != NULL;) {
        TAILQ_REMOVE(&admission->asked, first, link);
        kube_cancel(admission->config.kube, first->request_id);
        waiting_free(first);
    }
    pthread_mutex_destroy(&admission->lock);
    free(admission);
}

const struct server_route *admission_routes(const struct admission *admission)
{
    return &admission->route;
}

void admission_set_server(struct admission *admission, struct server *server)
{
    admission->server = server;
}

void admission_set_server_minor(struct admission *admission, int64_t minor)
{
    atomic_store(&admission->server_minor, minor);
}
