#include "controller/serve/admission_route.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/kube/decode.h"
#include "controller/serve/admission_verdict.h"
#include "controller/serve/questions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

/* A request that waits for the API server's answer about its user. */
struct waiting {
    struct question question; /* first */
    struct admission_route *admission;
    struct het_arena *arena;
    struct admission_verdict verdict;
    double from_s; /* by the clock of the metrics */
};

struct admission_route {
    struct admission_route_config config;
    struct server_route route;
    struct questions *questions;
    atomic_int_least64_t server_minor; /* of the API server; 0: not known */
    struct server *server;             /* the loop's thread alone */
};

/* ---- answers ---- */

static void set_body(struct server_reply *reply, int status, const char *type, char *text)
{
    *reply = (struct server_reply){
        .status = status, .content_type = type, .body = text, .body_length = strlen(text)
    };
}

/* Of a verdict that is one. */
static void make_reply(struct admission_route *admission,
                       const struct admission_verdict *verdict, double from_s,
                       struct server_reply *ret)
{
    json_auto_t *answer = admission_verdict_answer(verdict);
    bool is_allowed = verdict->decision == ADMISSION_VERDICT_ALLOW;
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

static void waiting_free(struct question *question)
{
    struct waiting *waiting = (struct waiting *)question;
    json_decref(waiting->verdict.question);
    het_arena_free(waiting->arena);
    free(waiting);
}

/* ---- the server's thread ---- */

/* Decides, or hands it to the loop: false. */
static bool judge(struct admission_route *admission, const json_t *review, uint64_t id,
                  struct server_reply *ret_reply)
{
    const struct admission_route_config *config = &admission->config;
    struct waiting *waiting = xcalloc(1, sizeof *waiting);
    struct admission_verdict *verdict = &waiting->verdict;
    struct het_error err = { 0 };
    *waiting = (struct waiting){
        .question.id = id,
        .admission = admission,
        .arena = het_arena_new(),
        .from_s = metrics_now(config->metrics),
    };
    struct tenancy tenancy = { .settings = config->settings,
                               .server_minor = atomic_load(&admission->server_minor),
                               .namespace_policy = { POD_SECURITY_PRIVILEGED, 0 } };
    if (admission_verdict_review(waiting->arena, &tenancy, review, verdict, &err) < 0) {
        set_body(ret_reply, 400, NULL, xasprintf("%s\n", err.message));
        waiting_free(&waiting->question);
        return true;
    }
    if (verdict->decision == ADMISSION_VERDICT_ASK) {
        if (questions_add(admission->questions, &waiting->question))
            return false;
        admission_verdict_give_up(waiting->arena, "too many ask at the same time",
                                  verdict);
    }
    make_reply(admission, verdict, waiting->from_s, ret_reply);
    waiting_free(&waiting->question);
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
    struct admission_route *admission = context;
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

/* Its verdict is made. */
static void answer(struct waiting *waiting)
{
    struct admission_route *admission = waiting->admission;
    struct server_reply reply;
    make_reply(admission, &waiting->verdict, waiting->from_s, &reply);
    server_answer(admission->server, waiting->question.id, &reply);
    questions_close(admission->questions, &waiting->question);
    waiting_free(&waiting->question);
}

static void on_answer(void *context, const struct kube_result *result)
{
    struct waiting *waiting = context;
    if (result->outcome == KUBE_OK)
        admission_verdict_hear(waiting->arena, result->object, &waiting->verdict);
    else {
        log_event(LOG_WARNING, "admission", "question not answered",
                  LOG_STR("outcome", kube_outcome_name(result->outcome)),
                  LOG_STR("message", result->message));
        admission_verdict_give_up(waiting->arena, result->message, &waiting->verdict);
    }
    answer(waiting);
}

static void ask(struct question *question)
{
    struct waiting *waiting = (struct waiting *)question;
    question->request_id = kube_create(waiting->admission->config.kube,
                                       &kube_access_review, NULL,
                                       waiting->verdict.question, on_answer, waiting);
}

static void give_up(struct question *question)
{
    struct waiting *waiting = (struct waiting *)question;
    admission_verdict_give_up(waiting->arena, "the API server did not answer within 4 s",
                              &waiting->verdict);
    answer(waiting);
}

void admission_route_step(struct admission_route *admission, int64_t now_ms)
{
    questions_step(admission->questions, now_ms);
}

int64_t admission_route_next_ms(const struct admission_route *admission)
{
    return questions_next_ms(admission->questions);
}

/* ---- life ---- */

struct admission_route *admission_route_new(const struct admission_route_config *config)
{
    struct admission_route *admission = xcalloc(1, sizeof *admission);
    admission->config = *config;
    admission->route = (struct server_route){
        .method = "POST",
        .path = "/validate",
        .handler = on_validate,
        .context = admission,
        .max_body_bytes = ADMISSION_ROUTE_BODY_BYTES,
    };
    struct questions_config questions = {
        .kube = config->kube,
        .most = ADMISSION_ROUTE_WAITING,
        .patience_ms = ADMISSION_ROUTE_MS,
        .clock_ms = config->clock_ms,
        .wake = config->wake,
        .context = config->context,
        .ask = ask,
        .give_up = give_up,
        .free = waiting_free,
    };
    admission->questions = questions_new(&questions);
    kube_set_rate(config->kube, ADMISSION_ROUTE_REQUESTS_PER_S,
                  ADMISSION_ROUTE_REQUESTS_PER_S);
    return admission;
}

void admission_route_free(struct admission_route *admission)
{
    if (!admission)
        return;
    questions_free(admission->questions);
    free(admission);
}

const struct server_route *admission_route_routes(const struct admission_route *admission)
{
    return &admission->route;
}

void admission_route_set_server(struct admission_route *admission, struct server *server)
{
    admission->server = server;
}

void admission_route_set_server_minor(struct admission_route *admission, int64_t minor)
{
    atomic_store(&admission->server_minor, minor);
}
