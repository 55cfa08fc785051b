#include "controller/kube/client.h"

#include "controller/kube/decode.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define DEFAULT_REQUESTS_PER_S 50.0
enum {
    DEFAULT_BURST = 100,
    RECONNECT_MS = 1000, /* client-go's artificial Retry-After for a lost connection */
    MESSAGE_BYTES = 1024,
    EXCERPT_BYTES = 200, /* of a body that is no Status, in a message */
};

/* ---- paths ---- */

char *kube_escape(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *escaped = xmalloc(3 * strlen(text) + 1), *to = escaped;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                             (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
                             c == '~';
        if (is_unreserved) {
            *to++ = *text;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    *to = '\0';
    return escaped;
}

static const char *api_root(const struct kube_resource *resource)
{
    return strchr(resource->group_version, '/') ? "apis" : "api";
}

char *kube_path(const struct kube_resource *resource, const char *ns, const char *name)
{
    auto_free char *ns_part = kube_escape(ns ? ns : "");
    auto_free char *name_part = kube_escape(name ? name : "");
    bool in_namespace = resource->namespaced && *ns_part;
    return xasprintf("/%s/%s%s%s/%s%s%s", api_root(resource), resource->group_version,
                     in_namespace ? "/namespaces/" : "", in_namespace ? ns_part : "",
                     resource->plural, name ? "/" : "", name_part);
}

/* ---- calls ---- */

/* What the body of a 2xx reply is. */
enum reply_form {
    REPLY_OBJECT,  /* one object of the resource's kind */
    REPLY_REMOVED, /* the object removed, or a Status */
    REPLY_RAW,     /* for the caller to read */
};

enum call_state { CALL_QUEUED, CALL_WAITING, CALL_RUNNING };

struct call {
    TAILQ_ENTRY(call) link;
    struct kube *kube;
    uint64_t id, transport_id;
    enum call_state state;

    const struct kube_resource *resource;
    enum reply_form form;
    const char *method, *content_type;
    char *path, *body;
    size_t body_length;
    char *ns, *name; /* of the object asked for; NULL: any */
    bool is_stream, is_probe;
    bool is_patient; /* it only reports something: others overtake it */
    void (*on_data)(void *context, const char *bytes, size_t length);
    kube_callback *callback;
    void *context;

    int retry_count, reconnect_count;
    double started_s; /* by the clock of the metrics */
    /* The time of a reply is not known before the next kube_step: until then a waiting
     * call has a delay but no due time. */
    int64_t wait_ms, due_ms;
    bool is_dated;
};

TAILQ_HEAD(calls, call);

struct kube {
    struct transport *transport;
    struct metrics *metrics; /* NULL: nothing is measured */
    char *user_agent;
    uint64_t last_id;
    struct calls queued, patient, waiting, running;
    int overtaken; /* how often in a row patient calls were */
    size_t call_count, stream_count, parallel_count;
    bool (*fence_is_open)(void *context); /* NULL: there is none */
    void *fence_context;

    /* Token bucket. */
    double requests_per_s, tokens;
    int burst;
    int64_t now_ms;
    bool has_time;
};

struct kube *kube_new(struct transport *transport, const char *user_agent)
{
    struct kube *kube = xcalloc(1, sizeof *kube);
    kube->transport = transport;
    kube->user_agent = xstrdup(user_agent);
    TAILQ_INIT(&kube->queued);
    TAILQ_INIT(&kube->patient);
    TAILQ_INIT(&kube->waiting);
    TAILQ_INIT(&kube->running);
    kube_set_rate(kube, DEFAULT_REQUESTS_PER_S, DEFAULT_BURST);
    return kube;
}

static void call_free(struct call *call)
{
    free(call->path);
    free(call->body);
    free(call->ns);
    free(call->name);
    free(call);
}

static struct calls *list_of(struct kube *kube, const struct call *call)
{
    switch (call->state) {
    case CALL_QUEUED:
        return call->is_patient ? &kube->patient : &kube->queued;
    case CALL_WAITING:
        return &kube->waiting;
    case CALL_RUNNING:
        break;
    }
    return &kube->running;
}

static bool is_parallel(const struct call *call)
{
    return !call->is_stream && !call->is_probe;
}

static void leave_list(struct call *call)
{
    struct kube *kube = call->kube;
    TAILQ_REMOVE(list_of(kube, call), call, link);
    if (call->state == CALL_RUNNING && is_parallel(call))
        kube->parallel_count--;
}

static void enter_list(struct call *call, enum call_state state)
{
    struct kube *kube = call->kube;
    call->state = state;
    TAILQ_INSERT_TAIL(list_of(kube, call), call, link);
    if (state == CALL_RUNNING && is_parallel(call))
        kube->parallel_count++;
}

static void forget_call(struct call *call)
{
    leave_list(call);
    call->kube->call_count--;
    call->kube->stream_count -= call->is_stream;
}

static void cancel_call(struct call *call)
{
    forget_call(call);
    if (call->state == CALL_RUNNING)
        transport_cancel(call->kube->transport, call->transport_id);
    call_free(call);
}

void kube_free(struct kube *kube)
{
    if (!kube)
        return;
    struct calls *lists[] = { &kube->queued, &kube->patient, &kube->waiting,
                              &kube->running };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        while (!TAILQ_EMPTY(lists[i]))
            cancel_call(TAILQ_FIRST(lists[i]));
    free(kube->user_agent);
    free(kube);
}

static void pump(struct kube *kube);

void kube_cancel(struct kube *kube, uint64_t id)
{
    struct calls *lists[] = { &kube->queued, &kube->patient, &kube->waiting,
                              &kube->running };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct call *call;
        TAILQ_FOREACH(call, lists[i], link)
        if (call->id == id) {
            cancel_call(call);
            pump(kube);
            return;
        }
    }
}

void kube_set_rate(struct kube *kube, double requests_per_s, int burst)
{
    assert(requests_per_s > 0);
    assert(burst > 0);
    kube->requests_per_s = requests_per_s;
    kube->burst = burst;
    kube->tokens = burst;
}

void kube_set_metrics(struct kube *kube, struct metrics *metrics)
{
    kube->metrics = metrics;
}

void kube_set_fence(struct kube *kube, bool (*is_open)(void *context), void *context)
{
    kube->fence_is_open = is_open;
    kube->fence_context = context;
}

static bool is_write(const struct call *call)
{
    return strcmp(call->method, "GET") != 0;
}

static bool is_fenced(const struct call *call)
{
    return call->kube->fence_is_open && is_write(call);
}

size_t kube_writes_in_flight(const struct kube *kube)
{
    size_t count = 0;
    const struct call *call;
    TAILQ_FOREACH(call, &kube->running, link)
    count += is_write(call);
    return count;
}

size_t kube_in_flight(const struct kube *kube)
{
    return kube->call_count - kube->stream_count;
}

/* ---- replies ---- */

static const char *const outcome_names[] = {
    [KUBE_OK] = "ok",
    [KUBE_NOT_FOUND] = "not-found",
    [KUBE_EXISTS] = "exists",
    [KUBE_CONFLICT] = "conflict",
    [KUBE_EXPIRED] = "expired",
    [KUBE_RV_TOO_LARGE] = "version-too-large",
    [KUBE_INVALID] = "invalid",
    [KUBE_DENIED] = "denied",
    [KUBE_BUSY] = "busy",
    [KUBE_SERVER_ERROR] = "server-error",
    [KUBE_UNREACHABLE] = "unreachable",
    [KUBE_UNKNOWN] = "unknown",
};

const char *kube_outcome_name(enum kube_outcome outcome)
{
    return outcome_names[outcome];
}

/* By cause (1.19 and later), by the message of a cause (1.17.0 to 1.18.5), by the
 * message (before 1.17). */
static bool is_version_too_large(const json_t *status)
{
    static const char old_text[] = "Too large resource version";
    const json_t *details = json_object_get(status, "details");
    const json_t *causes = json_object_get(details, "causes");
    size_t i;
    const json_t *cause;
    json_array_foreach (causes, i, cause)
        if (!strcmp(object_string(json_object_get(cause, "reason")),
                    "ResourceVersionTooLarge") ||
            !strcmp(object_string(json_object_get(cause, "message")), old_text))
            return true;
    return strstr(object_string(json_object_get(status, "message")), old_text) != NULL;
}

static enum kube_outcome classify(int code, const json_t *status)
{
    const char *reason = object_string(json_object_get(status, "reason"));
    if (code == 410 || !strcmp(reason, "Expired") || !strcmp(reason, "Gone"))
        return KUBE_EXPIRED;
    if (code == 409)
        return strcmp(reason, "AlreadyExists") ? KUBE_CONFLICT : KUBE_EXISTS;
    if (code == 504 && is_version_too_large(status))
        return KUBE_RV_TOO_LARGE;
    if (code == 404)
        return KUBE_NOT_FOUND;
    if (code == 401 || code == 403)
        return KUBE_DENIED;
    if (code == 429)
        return KUBE_BUSY;
    if (code >= 400 && code < 500)
        return KUBE_INVALID;
    return KUBE_SERVER_ERROR;
}

enum kube_outcome kube_status_outcome(const json_t *status)
{
    return classify((int)json_integer_value(json_object_get(status, "code")), status);
}

/* A reply, read: what the result points into lives here. */
struct reading {
    struct kube_result result;
    json_t *decoded;
    char message[MESSAGE_BYTES];
};

/* "PATCH /api/v1/...: " followed by what came back, in one line. */
static void __attribute__((format(printf, 3, 4)))
say(struct reading *reading, const struct call *call, const char *format, ...)
{
    int prefix = snprintf(reading->message, sizeof reading->message,
                          "%s %.*s: ", call->method, (int)strcspn(call->path, "?"),
                          call->path);
    size_t used = prefix < MESSAGE_BYTES ? (size_t)prefix : MESSAGE_BYTES - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(reading->message + used, sizeof reading->message - used, format, args);
    va_end(args);
    for (char *c = reading->message; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

static void read_failure(struct reading *reading, const struct call *call,
                         const struct http_reply *reply)
{
    bool is_get = !strcmp(call->method, "GET");
    bool is_done_perhaps = !is_get && reply->maybe_sent;
    bool is_too_long = reply->error.code == HET_BAD_INPUT;
    reading->result.outcome = is_done_perhaps ? KUBE_UNKNOWN
                              : is_too_long   ? KUBE_INVALID
                                              : KUBE_UNREACHABLE;
    say(reading, call, "%s", reply->error.message);
}

/* Not every error has a Status for its body. */
static void read_refusal(struct reading *reading, const struct call *call,
                         const struct http_reply *reply)
{
    reading->decoded = kube_decode(reply->body, reply->body_length, NULL);
    const json_t *status = reading->decoded;
    if (strcmp(object_string(json_object_get(status, "kind")), "Status") != 0)
        status = NULL;
    reading->result.outcome = classify(reply->status, status);
    reading->result.reason = object_string(json_object_get(status, "reason"));
    const char *message = object_string(json_object_get(status, "message"));
    if (*message) {
        say(reading, call, "%d %s: %s", reply->status, reading->result.reason, message);
    } else {
        size_t excerpt = reply->body_length < EXCERPT_BYTES ? reply->body_length
                                                            : EXCERPT_BYTES;
        while (excerpt && (unsigned char)reply->body[excerpt - 1] <= ' ')
            excerpt--;
        say(reading, call, "%d%s%.*s", reply->status, excerpt ? ": " : "", (int)excerpt,
            reply->body);
    }
}

/* Why `object` is not what was asked for; NULL if it is. */
static char *find_mismatch(const struct call *call, const json_t *object)
{
    const char *kind = object_string(json_object_get(object, "kind"));
    const char *api_version = object_string(json_object_get(object, "apiVersion"));
    if (call->form == REPLY_REMOVED && !strcmp(kind, "Status"))
        return NULL;
    if (strcmp(kind, call->resource->kind) != 0 ||
        strcmp(api_version, call->resource->group_version) != 0)
        return xasprintf("expected %s %s, got %s %s", call->resource->group_version,
                         call->resource->kind, api_version, kind);
    if ((call->name && strcmp(call->name, kube_name(object)) != 0) ||
        (call->ns && strcmp(call->ns, kube_namespace(object)) != 0))
        return xasprintf("expected %s/%s, got %s/%s", call->ns ? call->ns : "",
                         call->name ? call->name : "", kube_namespace(object),
                         kube_name(object));
    return NULL;
}

static void read_success(struct reading *reading, const struct call *call,
                         const struct http_reply *reply)
{
    say(reading, call, "%d", reply->status);
    if (call->is_stream || call->form == REPLY_RAW)
        return;
    struct het_error err = { 0 };
    reading->decoded = kube_decode(reply->body, reply->body_length, &err);
    auto_free char *mismatch = reading->decoded ? find_mismatch(call, reading->decoded)
                                                : xasprintf("%s", err.message);
    if (!mismatch) {
        reading->result.object = reading->decoded;
        return;
    }
    if (call->form == REPLY_REMOVED)
        return; /* the status has said it */
    reading->result.outcome = strcmp(call->method, "GET") != 0 ? KUBE_UNKNOWN
                                                               : KUBE_SERVER_ERROR;
    say(reading, call, "%d, but %s", reply->status, mismatch);
}

static void read_reply(struct reading *reading, const struct call *call,
                       const struct http_reply *reply)
{
    reading->result = (struct kube_result){
        .outcome = KUBE_OK,
        .status = reply->status,
        .body = reply->body ? reply->body : "",
        .body_length = reply->body ? reply->body_length : 0,
        .reason = "",
        .message = reading->message,
        .retry_after_ms = reply->status ? reply->retry_after_ms : -1,
    };
    struct http_reply whole = *reply;
    whole.body = reading->result.body;
    whole.body_length = reading->result.body_length;
    if (!reply->status)
        read_failure(reading, call, &whole);
    else if (reply->status >= 200 && reply->status < 300)
        read_success(reading, call, &whole);
    else
        read_refusal(reading, call, &whole);
}

/* How long to wait before the call is repeated; -1: it is not. */
static int64_t retry_delay_ms(struct call *call, const struct http_reply *reply,
                              const struct kube_result *result)
{
    if (!is_parallel(call))
        return -1;
    /* Only a GET is repeated after a connection broke, and none that never came
     * to be, was too long, or asks for a version that the server does not have. */
    if (!reply->status) {
        bool is_lost = reply->maybe_sent && result->outcome == KUBE_UNREACHABLE;
        return is_lost && call->reconnect_count++ < KUBE_MAX_RECONNECTS ? RECONNECT_MS
                                                                        : -1;
    }
    bool is_asked_for = (reply->status == 429 || reply->status >= 500) &&
                        result->outcome != KUBE_RV_TOO_LARGE &&
                        reply->retry_after_ms >= 0 &&
                        reply->retry_after_ms <= KUBE_MAX_RETRY_AFTER_MS;
    return is_asked_for && call->retry_count++ < KUBE_MAX_RETRIES ? reply->retry_after_ms
                                                                  : -1;
}

static void measure(const struct call *call, int status)
{
    static const char *const codes[] = { "none", "1xx", "2xx", "3xx", "4xx", "5xx" };
    if (call->is_stream)
        return;
    bool is_code = status >= 100 && status < 600;
    struct metrics *metrics = call->kube->metrics;
    metrics_observe(
        metrics, METRIC_REQUEST_SECONDS, metrics_now(metrics) - call->started_s,
        LABELS(call->method, call->resource ? call->resource->plural : "version",
               codes[is_code ? status / 100 : 0]));
}

static void on_done(void *context, const struct http_reply *reply)
{
    struct call *call = context;
    struct kube *kube = call->kube;
    measure(call, reply->status);
    struct reading reading;
    reading.decoded = NULL;
    read_reply(&reading, call, reply);
    call->wait_ms = retry_delay_ms(call, reply, &reading.result);
    if (call->wait_ms >= 0) {
        leave_list(call);
        call->is_dated = false;
        enter_list(call, CALL_WAITING);
    } else {
        forget_call(call);
        call->callback(call->context, &reading.result);
        call_free(call);
    }
    json_decref(reading.decoded);
    pump(kube);
}

static void on_stream_data(void *context, const char *bytes, size_t length)
{
    struct call *call = context;
    call->on_data(call->context, bytes, length);
}

/* ---- starting ---- */

/* A write must not outlive its fence: its time-outs, here and in the server, keep within
 * what the fence allows. */
static char *fenced_path(const struct call *call)
{
    return xasprintf("%s%ctimeout=%ds", call->path, strchr(call->path, '?') ? '&' : '?',
                     KUBE_FENCED_TIMEOUT_MS / 1000);
}

static void start_call(struct call *call)
{
    struct kube *kube = call->kube;
    auto_free char *path = is_fenced(call) ? fenced_path(call) : NULL;
    const struct http_request request = {
        .method = call->method,
        .path = path ? path : call->path,
        .content_type = call->content_type,
        .body = call->body,
        .body_length = call->body_length,
        .timeout_ms = call->is_stream  ? 0
                      : call->is_probe ? KUBE_PROBE_TIMEOUT_MS
                      : path           ? KUBE_FENCED_TIMEOUT_MS
                                       : KUBE_TIMEOUT_MS,
        .new_connection = call->is_probe,
        .user_agent = kube->user_agent,
    };
    const struct http_handler handler = {
        .on_data = call->is_stream ? on_stream_data : NULL,
        .on_done = on_done,
        .context = call,
    };
    enter_list(call, CALL_RUNNING);
    call->started_s = metrics_now(kube->metrics);
    call->transport_id = transport_start(kube->transport, &request, &handler);
}

static bool is_queue_empty(const struct kube *kube)
{
    return TAILQ_EMPTY(&kube->queued) && TAILQ_EMPTY(&kube->patient);
}

static struct call *first_of(const struct calls *calls, bool is_open)
{
    struct call *call = TAILQ_FIRST(calls);
    while (!is_open && call && is_write(call))
        call = TAILQ_NEXT(call, link);
    return call;
}

/* The next call that no fence holds back; NULL: none. */
static struct call *find_startable(const struct kube *kube)
{
    bool is_open = !kube->fence_is_open || is_queue_empty(kube) ||
                   kube->fence_is_open(kube->fence_context);
    struct call *call = first_of(&kube->queued, is_open);
    struct call *patient = first_of(&kube->patient, is_open);
    bool is_its_turn = patient && kube->overtaken >= KUBE_MAX_OVERTAKING;
    return call && !is_its_turn ? call : patient;
}

/* Starts what the bucket, the bound on parallel requests and the fence allow. */
static void pump(struct kube *kube)
{
    while (kube->tokens >= 1 && kube->parallel_count < KUBE_MAX_PARALLEL) {
        struct call *call = find_startable(kube);
        if (!call)
            return;
        leave_list(call);
        bool overtakes = !call->is_patient && !TAILQ_EMPTY(&kube->patient);
        kube->overtaken = overtakes ? kube->overtaken + 1 : 0;
        kube->tokens -= 1;
        start_call(call);
    }
}

static void refill(struct kube *kube, int64_t now_ms)
{
    if (kube->has_time && now_ms > kube->now_ms)
        kube->tokens = fmin(kube->burst, kube->tokens + (double)(now_ms - kube->now_ms) /
                                                            1000 * kube->requests_per_s);
    kube->now_ms = now_ms;
    kube->has_time = true;
}

void kube_step(struct kube *kube, int64_t now_ms)
{
    refill(kube, now_ms);
    struct call *next;
    for (struct call *call = TAILQ_FIRST(&kube->waiting); call; call = next) {
        next = TAILQ_NEXT(call, link);
        if (!call->is_dated) {
            call->due_ms = now_ms + call->wait_ms;
            call->is_dated = true;
        }
        if (call->due_ms <= now_ms) {
            leave_list(call);
            enter_list(call, CALL_QUEUED);
        }
    }
    pump(kube);
}

int64_t kube_next_ms(const struct kube *kube)
{
    int64_t next_ms = INT64_MAX;
    for (const struct call *call = TAILQ_FIRST(&kube->waiting); call;
         call = TAILQ_NEXT(call, link)) {
        int64_t due_ms = call->is_dated ? call->due_ms : kube->now_ms;
        if (due_ms < next_ms)
            next_ms = due_ms;
    }
    /* Without room among the parallel ones, a reply starts the next. */
    if (kube->parallel_count < KUBE_MAX_PARALLEL && find_startable(kube)) {
        double missing = fmax(0, 1 - kube->tokens);
        int64_t due_ms = kube->now_ms +
                         (int64_t)ceil(missing / kube->requests_per_s * 1000);
        if (due_ms < next_ms)
            next_ms = due_ms;
    }
    return next_ms;
}

/* Takes the call's path over from `path`. */
static struct call *call_new(struct kube *kube, const struct kube_resource *resource,
                             const char *method, char *path, kube_callback *callback,
                             void *context)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->kube = kube;
    call->id = ++kube->last_id;
    call->resource = resource;
    call->method = method;
    call->path = path;
    call->callback = callback;
    call->context = context;
    kube->call_count++;
    return call;
}

static void expect(struct call *call, const char *ns, const char *name)
{
    bool in_namespace = call->resource->namespaced && ns && *ns;
    call->ns = in_namespace ? xstrdup(ns) : NULL;
    call->name = name ? xstrdup(name) : NULL;
}

static void give_body(struct call *call, const char *content_type, const json_t *body)
{
    call->content_type = content_type;
    call->body = json_dumps(body, JSON_COMPACT);
    assert(call->body);
    call->body_length = strlen(call->body);
}

static uint64_t enqueue(struct call *call)
{
    uint64_t id = call->id;
    enter_list(call, CALL_QUEUED);
    pump(call->kube);
    return id;
}

/* A call that may not wait still takes a token. */
static uint64_t start_at_once(struct call *call)
{
    call->kube->tokens -= 1;
    start_call(call);
    return call->id;
}

uint64_t kube_get(struct kube *kube, const struct kube_resource *resource, const char *ns,
                  const char *name, kube_callback *callback, void *context)
{
    struct call *call =
        call_new(kube, resource, "GET", kube_path(resource, ns, name), callback, context);
    expect(call, ns, name);
    return enqueue(call);
}

/* The path of a collection with its query. */
static char *list_path(const struct kube_resource *resource, const char *ns,
                       const char *query)
{
    auto_free char *path = kube_path(resource, ns, NULL);
    return xasprintf("%s%s%s", path, *query ? "?" : "", query);
}

/* Takes `path` over. */
static uint64_t get_raw(struct kube *kube, const struct kube_resource *resource,
                        char *path, kube_callback *callback, void *context)
{
    struct call *call = call_new(kube, resource, "GET", path, callback, context);
    call->form = REPLY_RAW;
    return enqueue(call);
}

uint64_t kube_list(struct kube *kube, const struct kube_resource *resource,
                   const char *ns, const char *query, kube_callback *callback,
                   void *context)
{
    return get_raw(kube, resource, list_path(resource, ns, query), callback, context);
}

uint64_t kube_get_version(struct kube *kube, kube_callback *callback, void *context)
{
    static const struct kube_resource version = { "", "version", "Info", false };
    return get_raw(kube, &version, xstrdup("/version"), callback, context);
}

uint64_t kube_probe(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *query, kube_callback *callback,
                    void *context)
{
    struct call *call = call_new(kube, resource, "GET", list_path(resource, ns, query),
                                 callback, context);
    call->form = REPLY_RAW;
    call->is_probe = true;
    return start_at_once(call);
}

uint64_t kube_discover(struct kube *kube, const struct kube_resource *resource,
                       kube_callback *callback, void *context)
{
    char *path = xasprintf("/%s/%s", api_root(resource), resource->group_version);
    return get_raw(kube, resource, path, callback, context);
}

uint64_t kube_watch(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *query,
                    void (*on_data)(void *context, const char *bytes, size_t length),
                    kube_callback *callback, void *context)
{
    struct call *call = call_new(kube, resource, "GET", list_path(resource, ns, query),
                                 callback, context);
    call->form = REPLY_RAW;
    call->is_stream = true;
    call->on_data = on_data;
    kube->stream_count++;
    return start_at_once(call);
}

uint64_t kube_create(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, json_t *object, kube_callback *callback,
                     void *context)
{
    auto_free char *path = kube_path(resource, ns, NULL);
    const char *query = resource == &kube_pod ? "?fieldValidation=Strict" : "";
    struct call *call = call_new(kube, resource, "POST", xasprintf("%s%s", path, query),
                                 callback, context);
    const char *name = kube_name(object);
    expect(call, ns, *name ? name : NULL);
    give_body(call, "application/json", object);
    call->is_patient = resource == &kube_event;
    return enqueue(call);
}

uint64_t kube_update(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, const char *name, json_t *object,
                     kube_callback *callback, void *context)
{
    assert(*kube_resource_version(object));
    struct call *call =
        call_new(kube, resource, "PUT", kube_path(resource, ns, name), callback, context);
    expect(call, ns, name);
    give_body(call, "application/json", object);
    return enqueue(call);
}

static uint64_t send_patch(struct kube *kube, const struct kube_resource *resource,
                           const char *ns, const char *name, const char *subresource,
                           const char *query, const char *content_type,
                           const json_t *patch, kube_callback *callback, void *context)
{
    auto_free char *path = kube_path(resource, ns, name);
    char *whole_path = xasprintf("%s%s%s%s%s", path, subresource ? "/" : "",
                                 subresource ? subresource : "", *query ? "?" : "",
                                 query);
    struct call *call = call_new(kube, resource, "PATCH", whole_path, callback, context);
    expect(call, ns, name);
    give_body(call, content_type, patch);
    call->is_patient = subresource != NULL;
    return enqueue(call);
}

uint64_t kube_apply(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *name, const char *subresource,
                    const char *field_manager, json_t *object, kube_callback *callback,
                    void *context)
{
    auto_free char *manager = kube_escape(field_manager);
    auto_free char *query = xasprintf("fieldManager=%s&force=true", manager);
    return send_patch(kube, resource, ns, name, subresource, query,
                      "application/apply-patch+yaml", object, callback, context);
}

uint64_t kube_patch(struct kube *kube, const struct kube_resource *resource,
                    const char *ns, const char *name, const char *subresource,
                    json_t *patch, kube_callback *callback, void *context)
{
    return send_patch(kube, resource, ns, name, subresource, "",
                      json_is_array(patch) ? "application/json-patch+json"
                                           : "application/merge-patch+json",
                      patch, callback, context);
}

uint64_t kube_delete(struct kube *kube, const struct kube_resource *resource,
                     const char *ns, const char *name, const char *uid, int64_t grace_s,
                     kube_callback *callback, void *context)
{
    assert(*uid);
    struct call *call = call_new(kube, resource, "DELETE", kube_path(resource, ns, name),
                                 callback, context);
    call->form = REPLY_REMOVED;
    expect(call, ns, name);
    /* Never another object of the same name. What it owns is deleted with it, which is
     * not the default of batch/v1. */
    json_auto_t *options = json_pack("{s:s, s:s, s:{s:s}, s:s}", "kind", "DeleteOptions",
                                     "apiVersion", "v1", "preconditions", "uid", uid,
                                     "propagationPolicy", "Background");
    assert(options);
    if (grace_s >= 0)
        json_object_set_new(options, "gracePeriodSeconds", json_integer(grace_s));
    give_body(call, "application/json", options);
    return enqueue(call);
}
