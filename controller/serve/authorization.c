#include "controller/serve/authorization.h"

#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/serve/questions.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 32 };

enum verdict { NOT_KNOWN, ALLOWED, UNAUTHENTICATED, FORBIDDEN };

/* What the API server said of a token. */
struct kept {
    unsigned char digest[DIGEST_BYTES];
    enum verdict verdict; /* NOT_KNOWN: the place is free */
    int64_t end_ms;
};

/* A request that waits for the API server's answer about its token. */
struct asking {
    struct question question; /* first */
    struct authorization *authorization;
    unsigned char digest[DIGEST_BYTES];
    json_t *review; /* a TokenReview, then a SubjectAccessReview */
};

struct authorization {
    struct authorization_config config;
    struct server_route route;
    struct questions *questions;
    struct server *server; /* the loop's thread alone */

    pthread_mutex_t lock;
    struct kept kept[AUTHORIZATION_KEPT];
};

/* ---- what is kept ---- */

static enum verdict find_verdict(struct authorization *authorization,
                                 const unsigned char *digest, int64_t now_ms)
{
    enum verdict verdict = NOT_KNOWN;
    pthread_mutex_lock(&authorization->lock);
    for (size_t i = 0; i < AUTHORIZATION_KEPT; i++) {
        const struct kept *kept = &authorization->kept[i];
        if (kept->end_ms > now_ms && !memcmp(kept->digest, digest, DIGEST_BYTES))
            verdict = kept->verdict;
    }
    pthread_mutex_unlock(&authorization->lock);
    return verdict;
}

/* Whether `a` is evicted before `b`: expired entries first, then refused ones, so that
 * many bad tokens do not push out a good one; then those that expire sooner. */
static bool goes_before(const struct kept *a, const struct kept *b, int64_t now_ms)
{
    bool a_ended = a->end_ms <= now_ms, b_ended = b->end_ms <= now_ms;
    if (a_ended != b_ended)
        return a_ended;
    if ((a->verdict == ALLOWED) != (b->verdict == ALLOWED))
        return b->verdict == ALLOWED;
    return a->end_ms < b->end_ms;
}

static void keep(struct authorization *authorization, const unsigned char *digest,
                 enum verdict verdict)
{
    const struct authorization_config *config = &authorization->config;
    int64_t now_ms = config->clock_ms(config->context);
    pthread_mutex_lock(&authorization->lock);
    struct kept *place = &authorization->kept[0];
    for (size_t i = 0; i < AUTHORIZATION_KEPT; i++) {
        struct kept *kept = &authorization->kept[i];
        if (!memcmp(kept->digest, digest, DIGEST_BYTES)) {
            place = kept;
            break;
        }
        if (goes_before(kept, place, now_ms))
            place = kept;
    }
    memcpy(place->digest, digest, DIGEST_BYTES);
    place->verdict = verdict;
    place->end_ms = now_ms + (verdict == ALLOWED ? AUTHORIZATION_ALLOWED_MS
                                                 : AUTHORIZATION_REFUSED_MS);
    pthread_mutex_unlock(&authorization->lock);
}

/* ---- the server's thread ---- */

static void refuse(struct server_reply *reply, int status, const char *why)
{
    *reply = (struct server_reply){ .status = status, .body = xasprintf("%s\n", why) };
    reply->body_length = strlen(reply->body);
    if (status == 401)
        reply->headers = "WWW-Authenticate: Bearer\r\n";
}

/* "" if `header` has none, or one that could be none (RFC 6750, 2.1). */
static const char *bearer_token(const char *header)
{
    static const char scheme[] = "Bearer ";
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-._~+/=";
    if (strncasecmp(header, scheme, strlen(scheme)) != 0)
        return "";
    const char *token = header + strlen(scheme);
    return token[strspn(token, allowed)] ? "" : token;
}

static void asking_free(struct question *question)
{
    struct asking *asking = (struct asking *)question;
    json_decref(asking->review);
    free(asking);
}

/* Hands it to the loop: false; or says that too many wait. */
static bool hand_over(struct authorization *authorization, uint64_t id, const char *token,
                      const unsigned char *digest, struct server_reply *ret_reply)
{
    struct asking *asking = xcalloc(1, sizeof *asking);
    asking->question.id = id;
    asking->authorization = authorization;
    memcpy(asking->digest, digest, DIGEST_BYTES);
    asking->review = object_pack("{s:s, s:s, s:{s:s}}", "apiVersion",
                                 "authentication.k8s.io/v1", "kind", "TokenReview",
                                 "spec", "token", token);
    if (questions_add(authorization->questions, &asking->question))
        return false;
    asking_free(&asking->question);
    refuse(ret_reply, 503, "too many ask at the same time");
    return true;
}

static bool on_request(void *context, const struct server_request *request,
                       struct server_reply *ret_reply)
{
    struct authorization *authorization = context;
    const struct authorization_config *config = &authorization->config;
    const char *token = bearer_token(request->authorization);
    unsigned char digest[DIGEST_BYTES];
    if (!*token) {
        refuse(ret_reply, 401, "send a bearer token of the cluster");
        return true;
    }
    EVP_Digest(token, strlen(token), digest, NULL, EVP_sha256(), NULL);
    switch (find_verdict(authorization, digest, config->clock_ms(config->context))) {
    case ALLOWED:
        return config->route->handler(config->route->context, request, ret_reply);
    case UNAUTHENTICATED:
        refuse(ret_reply, 401, "the API server does not know this token");
        return true;
    case FORBIDDEN:
        refuse(ret_reply, 403,
               "needs the verb get on this path as nonResourceURL, by a ClusterRole");
        return true;
    case NOT_KNOWN:
        break;
    }
    return hand_over(authorization, request->id, token, digest, ret_reply);
}

/* ---- the loop's thread ---- */

static void close_asking(struct asking *asking)
{
    questions_close(asking->authorization->questions, &asking->question);
    asking_free(&asking->question);
}

/* The request is looked at once more, with what is known now. */
static void conclude(struct asking *asking, enum verdict verdict)
{
    struct authorization *authorization = asking->authorization;
    keep(authorization, asking->digest, verdict);
    server_resume(authorization->server, asking->question.id);
    close_asking(asking);
}

static void fail(struct asking *asking, const char *why)
{
    struct server_reply reply;
    log_event(LOG_WARNING, "authorization", "question not answered",
              LOG_STR("path", asking->authorization->route.path), LOG_STR("why", why));
    refuse(&reply, 503, "the API server cannot be asked who you are and what you may do");
    server_answer(asking->authorization->server, asking->question.id, &reply);
    close_asking(asking);
}

static void on_access(void *context, const struct kube_result *result)
{
    struct asking *asking = context;
    if (result->outcome != KUBE_OK)
        fail(asking, result->message);
    else
        conclude(asking,
                 object_is_true(result->object, "status.allowed") ? ALLOWED : FORBIDDEN);
}

/* What the token's user, as given by the TokenReview, may do. */
static void ask_access(struct asking *asking, const json_t *user)
{
    json_t *spec = object_pack("{s:{s:s, s:s}, s:s}", "nonResourceAttributes", "path",
                               asking->authorization->route.path, "verb", "get", "user",
                               object_text(user, "username"));
    static const char *const fields[] = { "uid", "groups", "extra" };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_t *value = json_object_get(user, fields[i]);
        if (value)
            json_object_set(spec, fields[i], value);
    }
    json_decref(asking->review);
    asking->review = object_pack("{s:s, s:s, s:o}", "apiVersion",
                                 "authorization.k8s.io/v1", "kind", "SubjectAccessReview",
                                 "spec", spec);
    asking->question.request_id = kube_create(asking->authorization->config.kube,
                                              &kube_access_review, NULL, asking->review,
                                              on_access, asking);
}

static void on_user(void *context, const struct kube_result *result)
{
    struct asking *asking = context;
    const json_t *user = object_at(result->object, "status.user");
    if (result->outcome != KUBE_OK)
        fail(asking, result->message);
    else if (object_is_true(result->object, "status.authenticated") &&
             *object_text(user, "username"))
        ask_access(asking, user);
    else
        conclude(asking, UNAUTHENTICATED);
}

static void ask(struct question *question)
{
    struct asking *asking = (struct asking *)question;
    question->request_id = kube_create(asking->authorization->config.kube,
                                       &kube_token_review, NULL, asking->review, on_user,
                                       asking);
}

static void give_up(struct question *question)
{
    fail((struct asking *)question, "the API server did not answer within 4 s");
}

void authorization_step(struct authorization *authorization, int64_t now_ms)
{
    questions_step(authorization->questions, now_ms);
}

int64_t authorization_next_ms(const struct authorization *authorization)
{
    return questions_next_ms(authorization->questions);
}

/* ---- life ---- */

struct authorization *authorization_new(const struct authorization_config *config)
{
    struct authorization *authorization = xcalloc(1, sizeof *authorization);
    authorization->config = *config;
    authorization->route = *config->route;
    authorization->route.handler = on_request;
    authorization->route.context = authorization;
    pthread_mutex_init(&authorization->lock, NULL);
    struct questions_config questions = {
        .kube = config->kube,
        .most = AUTHORIZATION_WAITING,
        .patience_ms = AUTHORIZATION_MS,
        .clock_ms = config->clock_ms,
        .wake = config->wake,
        .context = config->context,
        .ask = ask,
        .give_up = give_up,
        .free = asking_free,
    };
    authorization->questions = questions_new(&questions);
    kube_set_rate(config->kube, AUTHORIZATION_REQUESTS_PER_S,
                  AUTHORIZATION_REQUESTS_PER_S);
    return authorization;
}

void authorization_free(struct authorization *authorization)
{
    if (!authorization)
        return;
    questions_free(authorization->questions);
    pthread_mutex_destroy(&authorization->lock);
    free(authorization);
}

const struct server_route *authorization_route(const struct authorization *authorization)
{
    return &authorization->route;
}

void authorization_set_server(struct authorization *authorization, struct server *server)
{
    authorization->server = server;
}
