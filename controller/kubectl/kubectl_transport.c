#include "controller/kubectl/kubectl_transport.h"

#include "controller/base/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a line of kubectl's begins that says why it fails; the rest of what it says belongs
 * to it. Source: kubernetes, staging/src/k8s.io/kubectl/pkg/cmd/util/helpers.go,
 * checkErr and StandardErrorMessage. */
static const char *const complaint_beginnings[] = {
    "Error from server",       "error: ", "Unable to connect to the server: ",
    "Error in configuration:", "The ",    "Server returned an unexpected response"
};
#define COMPLAINT_BEGINNINGS (sizeof complaint_beginnings / sizeof *complaint_beginnings)

#define PASSWORD_PROMPT "Please enter Username: "

/* What is said on standard error, letter by letter. */
enum speech {
    SPEECH_LINE_BEGINS, /* `complaint` has what there is of the line */
    SPEECH_PASSED_ON,   /* to the end of the line */
    SPEECH_COMPLAINT,   /* to the end */
};

/* A request: one run of kubectl. */
struct run {
    TAILQ_ENTRY(run) link;
    uint64_t id;
    struct http_handler handler;
    char **arguments; /* up to a NULL */
    size_t argument_count, argument_capacity;
    bool is_write;
    int64_t timeout_ms, end_ms;
    size_t max_body_bytes;

    pid_t pid;    /* 0: it has not begun, or has ended */
    int process;  /* pidfd: readable when it has ended; -1: there is none */
    int out, err; /* our ends; -1: closed */
    char *body;
    size_t body_length, body_capacity;
    enum speech speech;
    char complaint[KUBECTL_MAX_COMPLAINT + 1];
    size_t complaint_length;

    bool is_done;
    int status; /* of the reply */
    bool maybe_sent;
    struct het_error error;
};

struct kubectl_transport {
    struct transport transport;
    const char *program, *field_manager;
    const char *const *options;
    size_t option_count;
    FILE *words;
    uint64_t last_id;
    TAILQ_HEAD(runs, run) runs; /* in the order of asking */
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void kill_run(struct run *run)
{
    if (!run->pid)
        return;
    kill(run->pid, SIGKILL);
    while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    run->pid = 0;
}

static void run_free(struct run *run)
{
    kill_run(run);
    close_end(&run->process);
    close_end(&run->out);
    close_end(&run->err);
    for (size_t i = 0; i < run->argument_count; i++)
        free(run->arguments[i]);
    free(run->arguments);
    free(run->body);
    free(run);
}

/* ---- the command line ---- */

/* Takes `argument` over; NULL ends the list. */
static void add_argument(struct run *run, char *argument)
{
    ARRAY_RESERVE(run->arguments, &run->argument_capacity, run->argument_count + 1);
    run->arguments[run->argument_count] = argument;
    run->argument_count += argument != NULL;
}

static struct run *run_new(struct kubectl_transport *kubectl,
                           const struct http_handler *handler)
{
    struct run *run = xcalloc(1, sizeof *run);
    run->id = ++kubectl->last_id;
    run->handler = *handler;
    run->process = run->out = run->err = -1;
    add_argument(run, xstrdup("kubectl"));
    for (size_t i = 0; i < kubectl->option_count; i++)
        add_argument(run, xstrdup(kubectl->options[i]));
    return run;
}

/* A word is given as "--option=word", so that it can be none itself. */
static int add_patch(const struct kubectl_transport *kubectl, struct run *run,
                     const struct http_request *request)
{
    char group[128], version[64], ns[256], plural[128], name[256], rest;
    if (sscanf(request->path,
               "/apis/%127[^/]/%63[^/]/namespaces/%255[^/]/%127[^/]/%255[^/?%]%c", group,
               version, ns, plural, name, &rest) != 5)
        return -1;
    add_argument(run, xstrdup("patch"));
    add_argument(run, xstrdup("--type=merge"));
    add_argument(run, xasprintf("--field-manager=%s", kubectl->field_manager));
    add_argument(run, xasprintf("--namespace=%s", ns));
    add_argument(run,
                 xasprintf("--patch=%.*s", (int)request->body_length, request->body));
    add_argument(run, xstrdup("--output=json"));
    add_argument(run, xstrdup("--"));
    add_argument(run, xasprintf("%s.%s.%s", plural, version, group));
    add_argument(run, xstrdup(name));
    return 0;
}

static int add_request(const struct kubectl_transport *kubectl, struct run *run,
                       const struct http_request *request)
{
    if (!strcmp(request->method, "GET") && request->path[0] == '/') {
        add_argument(run, xstrdup("get"));
        add_argument(run, xasprintf("--raw=%s", request->path));
        return 0;
    }
    run->is_write = true;
    if (!strcmp(request->method, "PATCH") &&
        !strcmp(request->content_type, "application/merge-patch+json"))
        return add_patch(kubectl, run, request);
    return -1;
}

/* ---- what became of it ---- */

/* Of the reasons that metav1.StatusReason has. */
static const struct {
    const char *reason;
    int status;
} reasons[] = {
    { "BadRequest", 400 },
    { "Unauthorized", 401 },
    { "Forbidden", 403 },
    { "NotFound", 404 },
    { "MethodNotAllowed", 405 },
    { "NotAcceptable", 406 },
    { "AlreadyExists", 409 },
    { "Conflict", 409 },
    { "Gone", 410 },
    { "Expired", 410 },
    { "RequestEntityTooLarge", 413 },
    { "UnsupportedMediaType", 415 },
    { "Invalid", 422 },
    { "TooManyRequests", 429 },
    { "InternalError", 500 },
    { "ServerTimeout", 500 },
    { "ServiceUnavailable", 503 },
    { "Timeout", 504 },
};

static int status_of(const char *reason)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(reasons[i].reason, reason))
            return reasons[i].status;
    return 500;
}

static bool begins_with(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* The server has answered: a reply with a Status, in place of any body there is. */
static void set_refusal(struct run *run, const char *reason, const char *message)
{
    struct het_error printable;
    het_fail(&printable, HET_OK, "%s", message);
    run->status = status_of(reason);
    free(run->body);
    /* Of an object that is missing the server says which; of a path it does not know
     * it has no Status. */
    if (begins_with(message, "the server could not find the requested resource")) {
        run->body = xstrdup("");
    } else {
        json_auto_t *status = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind",
                                        "Status", "apiVersion", "v1", "status", "Failure",
                                        "message", printable.message, "reason", reason,
                                        "code", run->status);
        run->body = json_dumps(status, JSON_COMPACT);
        assert(run->body);
    }
    run->body_length = strlen(run->body);
}

/* "Error from server (REASON): MESSAGE", or without a reason. */
static void read_server_error(struct run *run, const char *text)
{
    char reason[64] = "";
    int length = 0;
    if (sscanf(text, "Error from server (%63[A-Za-z]): %n", reason, &length) != 1 ||
        !length) {
        const char *colon = strchr(text, ':');
        set_refusal(run, "InternalError", colon ? colon + 1 + (colon[1] == ' ') : text);
        return;
    }
    set_refusal(run, reason, text + length);
}

static void read_complaint(struct run *run)
{
    char *text = run->complaint;
    text[run->complaint_length] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    for (size_t i = strlen(text); i && text[i - 1] == ' '; i--)
        text[i - 1] = '\0';
    if (begins_with(text, "Error from server")) {
        read_server_error(run, text);
    } else if (begins_with(text, "error: You must be logged in to the server")) {
        set_refusal(run, "Unauthorized", text + strlen("error: "));
    } else if (begins_with(text, "The ") && strstr(text, " is invalid")) {
        set_refusal(run, "Invalid", text);
    } else if (begins_with(text, "error: ")) {
        het_fail(&run->error, HET_BAD_INPUT, "%s", text + strlen("error: "));
    } else if (begins_with(text, "Error in configuration:")) {
        het_fail(&run->error, HET_BAD_INPUT, "%s", text);
    } else {
        run->maybe_sent = run->is_write && !begins_with(text, "The connection to ");
        het_fail(&run->error, HET_IO, "%s", text);
    }
}

/* It has ended with `status`, as waitpid says it, and all it said has been read. */
static void judge(const struct kubectl_transport *kubectl, struct run *run, int status)
{
    bool is_good = WIFEXITED(status) && !WEXITSTATUS(status);
    run->is_done = true;
    if (is_good || run->speech != SPEECH_COMPLAINT)
        fwrite(run->complaint, 1, run->complaint_length, kubectl->words);
    fflush(kubectl->words);
    if (is_good) {
        run->status = 200;
    } else if (run->speech == SPEECH_COMPLAINT) {
        read_complaint(run);
    } else {
        run->maybe_sent = run->is_write;
        if (WIFSIGNALED(status))
            het_fail(&run->error, HET_IO, "kubectl ended by signal %d", WTERMSIG(status));
        else
            het_fail(&run->error, HET_IO, "kubectl ended with exit status %d",
                     WEXITSTATUS(status));
    }
}

static void give_up(struct run *run, const struct het_error *error)
{
    run->maybe_sent = run->pid && run->is_write;
    kill_run(run);
    run->is_done = true;
    run->error = *error;
}

/* ---- beginning ---- */

static int spawn(const struct kubectl_transport *kubectl, struct run *run,
                 const int ends[2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    if (!isatty(STDIN_FILENO))
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
                                         0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&run->pid, kubectl->program, &actions, &attributes,
                             run->arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error)
        run->pid = 0;
    return error;
}

static int begin(const struct kubectl_transport *kubectl, struct run *run,
                 struct het_error *err)
{
    int out[2], complaints[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return het_fail(err, HET_IO, "pipe: %s", strerror(errno));
    run->out = out[0];
    if (pipe2(complaints, O_CLOEXEC) < 0) {
        close(out[1]);
        return het_fail(err, HET_IO, "pipe: %s", strerror(errno));
    }
    run->err = complaints[0];
    fcntl(run->out, F_SETFL, O_NONBLOCK);
    fcntl(run->err, F_SETFL, O_NONBLOCK);
    int error = spawn(kubectl, run, (const int[]){ out[1], complaints[1] });
    close(out[1]);
    close(complaints[1]);
    if (error == ENOENT)
        return het_fail(
            err, HET_BAD_INPUT, "there is no %s%s, through which the API server is asked",
            kubectl->program, strchr(kubectl->program, '/') ? "" : " in PATH");
    if (error)
        return het_fail(err, HET_BAD_INPUT, "%s: %s", kubectl->program, strerror(error));
    run->process = (int)syscall(SYS_pidfd_open, run->pid, 0);
    run->end_ms = run->timeout_ms ? process_clock_ms(CLOCK_BOOTTIME) + run->timeout_ms
                                  : INT64_MAX;
    return 0;
}

/* Whose turn it is. */
static void begin_waiting(struct kubectl_transport *kubectl)
{
    int going = 0;
    struct run *run;
    struct het_error error;
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link))
        going += run->pid != 0;
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link)) {
        if (going >= KUBECTL_MAX_RUNS)
            return;
        if (run->pid || run->is_done)
            continue;
        if (begin(kubectl, run, &error) < 0)
            give_up(run, &error);
        else
            going++;
    }
}

/* ---- reading ---- */

/* Whether the line that begins with `length` bytes of `text` is, or may become, one that
 * complains. */
static enum speech recognise(const char *text, size_t length)
{
    bool may_become = false;
    for (size_t i = 0; i < COMPLAINT_BEGINNINGS; i++) {
        size_t whole = strlen(complaint_beginnings[i]);
        if (strncmp(text, complaint_beginnings[i], length < whole ? length : whole) != 0)
            continue;
        if (length >= whole)
            return SPEECH_COMPLAINT;
        may_become = true;
    }
    return may_become ? SPEECH_LINE_BEGINS : SPEECH_PASSED_ON;
}

static void hear(const struct kubectl_transport *kubectl, struct run *run, char letter)
{
    if (run->speech == SPEECH_PASSED_ON) {
        putc(letter, kubectl->words);
    } else if (run->complaint_length < KUBECTL_MAX_COMPLAINT) {
        run->complaint[run->complaint_length++] = letter;
        if (run->speech == SPEECH_LINE_BEGINS)
            run->speech = recognise(run->complaint, run->complaint_length);
        if (run->speech == SPEECH_PASSED_ON) {
            fwrite(run->complaint, 1, run->complaint_length, kubectl->words);
            run->complaint_length = 0;
        }
    }
    if (run->speech == SPEECH_PASSED_ON && letter == '\n')
        run->speech = SPEECH_LINE_BEGINS;
}

/* Reads what there is; the length of it, 0 when there is nothing more for now. */
static size_t read_end(int *fd, char *buffer, size_t size)
{
    ssize_t length = *fd < 0 ? 0 : read(*fd, buffer, size);
    if (length < 0 && errno != EAGAIN && errno != EINTR)
        length = 0;
    if (!length)
        close_end(fd);
    return length > 0 ? (size_t)length : 0;
}

/* Without credentials kubectl prompts for a name and a password where no user sees it. */
static bool asks_for_password(const struct run *run)
{
    size_t length = strlen(PASSWORD_PROMPT);
    return run->body_length >= length && !memcmp(run->body, PASSWORD_PROMPT, length);
}

static void read_ends(const struct kubectl_transport *kubectl, struct run *run)
{
    char buffer[65536];
    size_t length;
    while ((length = read_end(&run->err, buffer, sizeof buffer)))
        for (size_t i = 0; i < length; i++)
            hear(kubectl, run, buffer[i]);
    fflush(kubectl->words);
    while ((length = read_end(&run->out, buffer, sizeof buffer))) {
        if (run->body_length + length > run->max_body_bytes) {
            struct het_error error;
            het_fail(&error, HET_BAD_INPUT, "the answer is longer than %zu bytes",
                     run->max_body_bytes);
            give_up(run, &error);
            return;
        }
        ARRAY_RESERVE(run->body, &run->body_capacity, run->body_length + length);
        memcpy(run->body + run->body_length, buffer, length);
        run->body_length += length;
    }
    if (asks_for_password(run)) {
        kill_run(run);
        run->is_done = true;
        set_refusal(run, "Unauthorized", "the kubeconfig has no credentials");
    }
}

/* It is asked for its end first: what is read then is all. Something that it has left
 * behind may hold the other ends open. */
static void step(const struct kubectl_transport *kubectl, struct run *run, int64_t now_ms)
{
    int status = 0;
    bool is_blind = run->process < 0 && run->out >= 0; /* it ends when its output does */
    pid_t ended = is_blind ? 0
                           : waitpid(run->pid, &status, run->process < 0 ? 0 : WNOHANG);
    if (ended)
        run->pid = 0;
    read_ends(kubectl, run);
    if (ended && !run->is_done) {
        judge(kubectl, run, status);
    } else if (!run->is_done && now_ms >= run->end_ms) {
        struct het_error error;
        het_fail(&error, HET_IO, "kubectl has not answered for %lld s",
                 (long long)run->timeout_ms / 1000);
        give_up(run, &error);
    }
}

/* ---- the transport ---- */

static uint64_t start(struct transport *transport, const struct http_request *request,
                      const struct http_handler *handler)
{
    struct kubectl_transport *kubectl = (struct kubectl_transport *)transport;
    assert(!handler->on_data);
    struct run *run = run_new(kubectl, handler);
    run->timeout_ms = request->timeout_ms;
    run->max_body_bytes = request->max_response_bytes ? request->max_response_bytes
                                                      : TRANSPORT_DEFAULT_RESPONSE_BYTES;
    if (add_request(kubectl, run, request) < 0) {
        struct het_error error;
        het_fail(&error, HET_BAD_INPUT, "%s %s: no command of kubectl", request->method,
                 request->path);
        give_up(run, &error);
    }
    add_argument(run, NULL);
    TAILQ_INSERT_TAIL(&kubectl->runs, run, link);
    begin_waiting(kubectl);
    return run->id;
}

static void cancel(struct transport *transport, uint64_t id)
{
    struct kubectl_transport *kubectl = (struct kubectl_transport *)transport;
    struct run *run;
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link))
        if (run->id == id) {
            TAILQ_REMOVE(&kubectl->runs, run, link);
            run_free(run);
            begin_waiting(kubectl);
            return;
        }
}

static struct run *find_done(const struct kubectl_transport *kubectl)
{
    struct run *run;
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link))
        if (run->is_done)
            return run;
    return NULL;
}

/* A callback may start and cancel others. */
static void deliver(struct kubectl_transport *kubectl)
{
    struct run *run;
    while ((run = find_done(kubectl))) {
        TAILQ_REMOVE(&kubectl->runs, run, link);
        struct http_reply reply = { .status = run->status,
                                    .retry_after_ms = -1,
                                    .body = run->status && run->body ? run->body : "",
                                    .body_length = run->status ? run->body_length : 0,
                                    .maybe_sent = run->maybe_sent,
                                    .error = run->error };
        run->handler.on_done(run->handler.context, &reply);
        run_free(run);
    }
}

/* Fills `fds`, 3 for each run that goes; when the first is too late, into `ret_end_ms`.
 */
static size_t poll_list(const struct kubectl_transport *kubectl, struct pollfd *fds,
                        int64_t *ret_end_ms)
{
    const struct run *run;
    size_t count = 0;
    *ret_end_ms = find_done(kubectl) ? 0 : INT64_MAX;
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link)) {
        if (!run->pid)
            continue;
        fds[count++] = (struct pollfd){ .fd = run->out, .events = POLLIN };
        fds[count++] = (struct pollfd){ .fd = run->err, .events = POLLIN };
        fds[count++] = (struct pollfd){ .fd = run->process, .events = POLLIN };
        *ret_end_ms = run->end_ms < *ret_end_ms ? run->end_ms : *ret_end_ms;
    }
    return count;
}

static int poll_runs(struct transport *transport, struct pollfd *extra,
                     size_t extra_count, int64_t timeout_ms)
{
    struct kubectl_transport *kubectl = (struct kubectl_transport *)transport;
    auto_free struct pollfd *fds =
        xcalloc(3 * KUBECTL_MAX_RUNS + extra_count, sizeof *fds);
    int64_t end_ms, now_ms = process_clock_ms(CLOCK_BOOTTIME);
    size_t count = poll_list(kubectl, fds, &end_ms);
    if (end_ms < INT64_MAX && end_ms - now_ms < timeout_ms)
        timeout_ms = end_ms > now_ms ? end_ms - now_ms : 0;
    if (extra_count)
        memcpy(fds + count, extra, extra_count * sizeof *extra);
    int ready = poll(fds, count + extra_count, (int)timeout_ms);
    for (size_t i = 0; i < extra_count; i++)
        extra[i].revents = ready > 0 ? fds[count + i].revents : 0;
    struct run *run;
    now_ms = process_clock_ms(CLOCK_BOOTTIME);
    for (run = TAILQ_FIRST(&kubectl->runs); run; run = TAILQ_NEXT(run, link))
        if (run->pid)
            step(kubectl, run, now_ms);
    deliver(kubectl);
    begin_waiting(kubectl);
    return ready;
}

static void transport_end(struct transport *transport)
{
    struct kubectl_transport *kubectl = (struct kubectl_transport *)transport;
    struct run *run;
    while ((run = TAILQ_FIRST(&kubectl->runs))) {
        TAILQ_REMOVE(&kubectl->runs, run, link);
        run_free(run);
    }
    free(kubectl);
}

static const struct transport_ops kubectl_ops = { start, cancel, poll_runs,
                                                  transport_end };

struct transport *kubectl_transport_new(const char *program, const char *const *options,
                                        size_t option_count, const char *field_manager,
                                        FILE *words)
{
    struct kubectl_transport *kubectl = xcalloc(1, sizeof *kubectl);
    kubectl->transport.ops = &kubectl_ops;
    kubectl->program = program;
    kubectl->options = options;
    kubectl->option_count = option_count;
    kubectl->field_manager = field_manager;
    kubectl->words = words;
    TAILQ_INIT(&kubectl->runs);
    return &kubectl->transport;
}

/* ---- the context ---- */

struct answer {
    bool is_there;
    int status;
    char *body;
    struct het_error error;
};

static void on_namespace(void *context, const struct http_reply *reply)
{
    struct answer *answer = context;
    answer->is_there = true;
    answer->status = reply->status;
    answer->error = reply->error;
    answer->body = xasprintf("%.*s", (int)reply->body_length, reply->body);
}

int kubectl_transport_namespace(struct transport *transport, char **ret,
                                struct het_error *err)
{
    struct kubectl_transport *kubectl = (struct kubectl_transport *)transport;
    struct answer answer = { 0 };
    const struct http_handler handler = { .on_done = on_namespace, .context = &answer };
    struct run *run = run_new(kubectl, &handler);
    run->timeout_ms = KUBECTL_NAMESPACE_TIMEOUT_MS;
    run->max_body_bytes = KUBECTL_MAX_COMPLAINT;
    add_argument(run, xstrdup("config"));
    add_argument(run, xstrdup("view"));
    add_argument(run, xstrdup("--minify"));
    add_argument(run, xstrdup("--output=jsonpath={.contexts[0].context.namespace}"));
    add_argument(run, NULL);
    TAILQ_INSERT_TAIL(&kubectl->runs, run, link);
    begin_waiting(kubectl);
    while (!answer.is_there)
        transport_poll(transport, NULL, 0, KUBECTL_NAMESPACE_TIMEOUT_MS);
    auto_free char *ns = answer.body;
    bool has_none = strstr(answer.error.message, "current-context must exist") != NULL;
    if (answer.status && answer.status != 200)
        return het_fail(err, HET_IO, "kubectl config view: %s", ns);
    if (!answer.status && !has_none) {
        *err = answer.error;
        return -1;
    }
    *ret = has_none ? NULL : *ns ? TAKE(ns) : xstrdup("default");
    return 0;
}
