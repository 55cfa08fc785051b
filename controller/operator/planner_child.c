#include "controller/operator/planner_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STDERR_KEPT    1024      /* the tail of what the child says on standard error */
#define EXIT_CUT_SHORT 3         /* of hetplan */
#define PIPE_BYTES     (1 << 20) /* what the system lets everybody have */

struct child {
    pid_t pid; /* 0: free */
    char *key;
    uint64_t digest;
    int64_t started_ms, kill_ms, timeout_ms;
    int in, out, err; /* our ends; -1: closed */
    int process;      /* pidfd: readable when the child has ended; -1: there is none */
    char *question;
    size_t question_length, question_written;
    char *output;
    size_t output_length, output_capacity;
    bool is_too_long, is_late;
    bool is_cut; /* told to end with what it has */
    char complaint[STDERR_KEPT + 1];
    size_t complaint_length;
};

/* An answer that was made inside this process, and arrives later. */
struct promise {
    char *key; /* NULL: free */
    uint64_t digest;
    enum planner_child_outcome outcome;
    char *output, *message;
    int64_t took_ms;
    int64_t asked_ms, due_ms, first_ms; /* by the clock */
    bool is_cut;
};

struct planner_child {
    planner_child_inside *inside;
    void *inside_context;
    struct promise promises[PLANNER_CHILD_MAX_CHILDREN];
    char *program;
    enum planner_confinement confinement;
    bool can_confine;
    struct sock_filter filter[HET_SYSTEM_CALL_FILTER_MAX];
    size_t filter_length;
    planner_child_callback *callback;
    void *context;
    struct child children[PLANNER_CHILD_MAX_CHILDREN];
};

struct planner_child *planner_child_new(const char *program,
                                        planner_child_callback *callback, void *context)
{
    struct planner_child *planner = xcalloc(1, sizeof *planner);
    planner->program = xstrdup(program);
    planner->callback = callback;
    planner->context = context;
    planner->can_confine = het_system_call_filter_is_possible();
    planner->filter_length = het_system_call_filter_build(true, planner->filter);
    planner_child_set_confinement(planner, PLANNER_CONFINED);
    return planner;
}

void planner_child_set_confinement(struct planner_child *planner,
                                   enum planner_confinement confinement)
{
#if defined(__SANITIZE_ADDRESS__)
    if (confinement == PLANNER_CONFINED)
        confinement = PLANNER_CONFINED_IF_POSSIBLE;
#endif
    planner->confinement = confinement;
}

void planner_child_answer_inside(struct planner_child *planner,
                                 planner_child_inside *inside, void *context)
{
    planner->inside = inside;
    planner->inside_context = context;
}

static void promise_fini(struct promise *promise)
{
    free(promise->key);
    free(promise->output);
    free(promise->message);
    *promise = (struct promise){ 0 };
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void forget(struct child *child)
{
    close_end(&child->in);
    close_end(&child->out);
    close_end(&child->err);
    close_end(&child->process);
    free(child->key);
    free(child->question);
    free(child->output);
    *child = (struct child){ 0 };
}

static void kill_child(struct child *child)
{
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    forget(child);
}

void planner_child_free(struct planner_child *planner)
{
    if (!planner)
        return;
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        if (planner->children[i].pid)
            kill_child(&planner->children[i]);
        promise_fini(&planner->promises[i]);
    }
    free(planner->program);
    free(planner);
}

static struct child *find_room(const struct planner_child *planner)
{
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++)
        if (!planner->children[i].pid)
            return (struct child *)(uintptr_t)&planner->children[i];
    return NULL;
}

bool planner_child_has_room(const struct planner_child *planner)
{
    return planner->inside ? planner_child_running(planner) < PLANNER_CHILD_MAX_CHILDREN
                           : find_room(planner) != NULL;
}

static void start_inside(struct planner_child *planner, const char *key, uint64_t digest,
                         const json_t *question, int64_t timeout_ms, int64_t now_ms)
{
    struct planner_child_reply reply = { .output = "", .message = "" };
    size_t i = 0;
    while (planner->promises[i].key)
        i++;
    planner->inside(planner->inside_context, question, timeout_ms, &reply);
    planner->promises[i] = (struct promise){ .key = xstrdup(key),
                                             .digest = digest,
                                             .outcome = reply.outcome,
                                             .output = xstrdup(reply.output),
                                             .message = xstrdup(reply.message),
                                             .took_ms = reply.took_ms,
                                             .due_ms = now_ms + reply.took_ms,
                                             .asked_ms = now_ms,
                                             .first_ms = now_ms + reply.first_ms };
}

static void keep_promises(struct planner_child *planner, int64_t now_ms)
{
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        struct promise promise = planner->promises[i];
        if (!promise.key || now_ms < promise.due_ms)
            continue;
        planner->promises[i] = (struct promise){ 0 };
        struct planner_child_reply reply = { .outcome = promise.outcome,
                                             .output = promise.output,
                                             .message = promise.message,
                                             .is_cut = promise.is_cut,
                                             .took_ms = promise.took_ms };
        planner->callback(planner->context, promise.key, promise.digest, &reply);
        promise_fini(&promise);
    }
}

static void limit(enum __rlimit_resource resource, rlim_t soft, rlim_t hard)
{
    struct rlimit limits = { soft, hard };
    setrlimit(resource, &limits);
}

/* In the child, before its program starts: reports why, and exits. */
static _Noreturn void give_up(const char *why)
{
    (void)!write(STDERR_FILENO, why, strlen(why));
    _exit(126);
}

/* In the child: pipes on 0, 1, 2, nothing else open, limits set, confined; then hetplan.
 * Between vfork and exec only calls that are safe there. */
static _Noreturn void become_planner(const struct planner_child *planner, int in, int out,
                                     int err, rlim_t cpu_s)
{
    /* The ends may have low numbers themselves: move them up before they are placed. */
    int ends[3] = { fcntl(in, F_DUPFD, 3), fcntl(out, F_DUPFD, 3),
                    fcntl(err, F_DUPFD, 3) };
    for (int i = 0; i < 3; i++)
        if (ends[i] < 0 || dup2(ends[i], i) < 0)
            _exit(126);
    close_range(3, ~0u, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CPU, cpu_s,
          cpu_s + PLANNER_CHILD_LAST_CPU_S); /* SIGXCPU, then SIGKILL */
#if !defined(__SANITIZE_ADDRESS__) /* its shadow takes more address space than that */
    limit(RLIMIT_AS, PLANNER_CHILD_MEMORY_BYTES, PLANNER_CHILD_MEMORY_BYTES);
#endif
    limit(RLIMIT_NOFILE, PLANNER_CHILD_OPEN_FILES, PLANNER_CHILD_OPEN_FILES);
    limit(RLIMIT_CORE, 0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    char *const arguments[] = { (char *)(uintptr_t) "hetplan", (char *)(uintptr_t) "plan",
                                (char *)(uintptr_t) "-", NULL };
    char *const environment[] = { NULL };
    if (planner->confinement != PLANNER_UNCONFINED && planner->can_confine &&
        !het_system_call_filter_enter(planner->filter, planner->filter_length))
        give_up("it could not be confined");
    execve(planner->program, arguments, environment);
    give_up("it could not be started");
}

int64_t planner_child_wall_ms(int64_t timeout_ms)
{
    int64_t wall_ms = PLANNER_CHILD_WALL_TIMES * timeout_ms;
    return wall_ms > PLANNER_CHILD_WALL_MS ? wall_ms : PLANNER_CHILD_WALL_MS;
}

/* Our ends do not block and are not inherited by later children. */
static void set_our_end(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int open_pipes(int pipes[3][2], struct het_error *err)
{
    for (int i = 0; i < 3; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) < 0) {
            int error = errno;
            while (i-- > 0) {
                close(pipes[i][0]);
                close(pipes[i][1]);
            }
            return het_fail(err, HET_IO, "pipe: %s", strerror(error));
        }
    }
    return 0;
}

/* A child that ends early must not end us: SIGPIPE is ignored by main, EPIPE closes. */
static void write_question(struct child *child)
{
    while (child->in >= 0) {
        ssize_t written = write(child->in, child->question + child->question_written,
                                child->question_length - child->question_written);
        if (written < 0) {
            if (errno != EAGAIN && errno != EINTR)
                close_end(&child->in);
            return;
        }
        child->question_written += (size_t)written;
        if (child->question_written == child->question_length)
            close_end(&child->in);
    }
}

static int start_child(const struct planner_child *planner, struct child *child,
                       const char *key, uint64_t digest, const json_t *question,
                       int64_t timeout_ms, int64_t now_ms, struct het_error *err)
{
    int pipes[3][2]; /* standard input, output, error of the child */
    if (planner->confinement == PLANNER_CONFINED && !planner->can_confine)
        return het_fail(
            err, HET_IO,
            "the planner cannot be confined, as this system has no filters of "
            "system calls (seccomp); the setting planner.confinement says "
            "whether it may run all the same");
    if (open_pipes(pipes, err) < 0)
        return -1;
    char *text = json_dumps(question, JSON_COMPACT | JSON_SORT_KEYS);
    rlim_t cpu_s = (rlim_t)((timeout_ms + 999) / 1000);
    /* Not fork: to copy the page tables of a large process takes longer than many a
     * search. The child only makes system calls. */
    pid_t pid = vfork();
    if (pid == 0)
        become_planner(planner, pipes[0][0], pipes[1][1], pipes[2][1], cpu_s);
    int error = errno;
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    if (pid < 0) {
        free(text);
        close(pipes[0][1]);
        close(pipes[1][0]);
        close(pipes[2][0]);
        return het_fail(err, HET_IO, "fork: %s", strerror(error));
    }
    *child = (struct child){
        .pid = pid,
        .key = xstrdup(key),
        .digest = digest,
        .started_ms = now_ms,
        .kill_ms = now_ms + planner_child_wall_ms(timeout_ms),
        .timeout_ms = timeout_ms,
        .process = (int)syscall(SYS_pidfd_open, pid, 0),
        .in = pipes[0][1],
        .out = pipes[1][0],
        .err = pipes[2][0],
        .question = text,
        .question_length = strlen(text),
    };
    set_our_end(child->in);
    set_our_end(child->out);
    set_our_end(child->err);
    /* Most questions and answers then need not wait for us in between. */
    fcntl(child->in, F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(child->out, F_SETPIPE_SZ, PIPE_BYTES);
    write_question(child);
    return 0;
}

int planner_child_start(struct planner_child *planner, const char *key, uint64_t digest,
                        const json_t *question, int64_t timeout_ms, int64_t now_ms,
                        struct het_error *err)
{
    if (!planner_child_has_room(planner))
        return het_fail(err, HET_IO, "%d planner children run already",
                        PLANNER_CHILD_MAX_CHILDREN);
    if (!planner->inside)
        return start_child(planner, find_room(planner), key, digest, question, timeout_ms,
                           now_ms, err);
    start_inside(planner, key, digest, question, timeout_ms, now_ms);
    return 0;
}

void planner_child_cancel(struct planner_child *planner, const char *key)
{
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        if (planner->children[i].pid && !strcmp(planner->children[i].key, key))
            kill_child(&planner->children[i]);
        if (planner->promises[i].key && !strcmp(planner->promises[i].key, key))
            promise_fini(&planner->promises[i]);
    }
}

static void cut_promise(struct promise *promise, int64_t now_ms)
{
    if (promise->is_cut || now_ms >= promise->due_ms)
        return;
    promise->is_cut = true;
    promise->due_ms = now_ms;
    promise->took_ms = now_ms - promise->asked_ms;
    if (promise->outcome != PLANNER_CHILD_PLAN || now_ms < promise->first_ms)
        promise->outcome = PLANNER_CHILD_CUT;
}

void planner_child_cut(struct planner_child *planner, const char *key, int64_t now_ms)
{
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        struct child *child = &planner->children[i];
        struct promise *promise = &planner->promises[i];
        if (promise->key && !strcmp(promise->key, key))
            cut_promise(promise, now_ms);
        if (!child->pid || strcmp(child->key, key) != 0 || child->is_cut)
            continue;
        child->is_cut = true;
        kill(child->pid, SIGTERM);
        if (child->kill_ms > now_ms + PLANNER_CHILD_LAST_MS)
            child->kill_ms = now_ms + PLANNER_CHILD_LAST_MS;
    }
}

size_t planner_child_poll_list(const struct planner_child *planner, struct pollfd *fds,
                               size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        const struct child *child = &planner->children[i];
        if (!child->pid)
            continue;
        const struct pollfd ends[] = { { .fd = child->in, .events = POLLOUT },
                                       { .fd = child->out, .events = POLLIN },
                                       { .fd = child->err, .events = POLLIN },
                                       /* Its output has ended, so it ends too. */
                                       { .fd = child->out < 0 ? child->process : -1,
                                         .events = POLLIN } };
        for (size_t k = 0; k < 4; k++)
            if (ends[k].fd >= 0 && count < capacity)
                fds[count++] = ends[k];
    }
    return count;
}

static void read_output(struct child *child)
{
    char buffer[65536];
    while (child->out >= 0) {
        ssize_t length = read(child->out, buffer, sizeof buffer);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            close_end(&child->out);
            return;
        }
        if (child->output_length + (size_t)length > PLANNER_CHILD_OUTPUT_BYTES) {
            child->is_too_long = true;
            continue; /* read on, so that the child can end */
        }
        ARRAY_RESERVE(child->output, &child->output_capacity,
                      child->output_length + (size_t)length + 1);
        memcpy(child->output + child->output_length, buffer, (size_t)length);
        child->output_length += (size_t)length;
    }
}

/* Keeps the tail, without what would break a log line. */
static void read_complaint(struct child *child)
{
    char buffer[STDERR_KEPT];
    while (child->err >= 0) {
        ssize_t length = read(child->err, buffer, sizeof buffer);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            close_end(&child->err);
            return;
        }
        size_t kept = child->complaint_length;
        if (kept + (size_t)length > STDERR_KEPT) {
            size_t drop = kept + (size_t)length - STDERR_KEPT;
            memmove(child->complaint, child->complaint + drop, kept - drop);
            kept -= drop;
        }
        memcpy(child->complaint + kept, buffer, (size_t)length);
        child->complaint_length = kept + (size_t)length;
    }
}

/* The child's own words ({"error": {"message"}}), or the tail of its standard error. */
static const char *reason_given(struct het_arena *arena, const struct child *child)
{
    json_auto_t *json =
        json_loadb(child->output ? child->output : "", child->output_length, 0, NULL);
    const char *message =
        json_string_value(json_object_get(json_object_get(json, "error"), "message"));
    if (message && *message)
        return het_arena_strdup(arena, message);
    char *tail = het_arena_strdup(arena, child->complaint);
    for (char *c = tail; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' ';
    return tail;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* Of an ended child: its status and resource usage. */
struct end {
    int status;
    struct rusage used;
};

static const char *say_signal(struct het_arena *arena, const struct child *child,
                              int number)
{
    const char *last = reason_given(arena, child);
    return het_arena_printf(arena, "the planner was ended by signal %d (%s)%s%s", number,
                            strsignal(number), *last ? ": " : "", last);
}

/* Whether the CPU time was over: told so by SIGXCPU, or ended by SIGKILL later on. */
static bool has_used_up(int status, double used_s, double timeout_s)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == EXIT_CUT_SHORT;
    return WTERMSIG(status) == SIGXCPU ||
           (WTERMSIG(status) == SIGKILL && used_s >= timeout_s);
}

static struct planner_child_reply judge(struct het_arena *arena, struct child *child,
                                        const struct end *end, int64_t now_ms)
{
    struct planner_child_reply reply = { .outcome = PLANNER_CHILD_BROKE,
                                         .output = "",
                                         .message = "",
                                         .took_ms = now_ms - child->started_ms };
    int status = end->status;
    double timeout_s = (double)child->timeout_ms / 1000;
    double used_s = seconds(end->used.ru_utime) + seconds(end->used.ru_stime);
    bool has_no_plan = WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_CUT_SHORT;
    if (child->is_cut && has_no_plan) {
        reply.outcome = PLANNER_CHILD_CUT;
        reply.message = "the search was cut short before it had found a plan";
    } else if (child->is_late) {
        reply.message = het_arena_printf(
            arena,
            "the planner was ended after %.4g s of wall time, of which it got %.4g s of "
            "CPU time (planner.timeoutSeconds gives it %.4g); if that is little, the "
            "controller has too little CPU",
            (double)(child->kill_ms - child->started_ms) / 1000, used_s, timeout_s);
    } else if (has_used_up(status, used_s, timeout_s)) {
        reply.message = het_arena_printf(
            arena,
            "the planner used up its %.4g s of CPU time (planner.timeoutSeconds) before it "
            "had found a plan",
            timeout_s);
    } else if (WIFSIGNALED(status)) {
        reply.message = say_signal(arena, child, WTERMSIG(status));
    } else if (child->is_too_long) {
        reply.message = het_arena_printf(arena, "the planner's answer passes %zu bytes",
                                         PLANNER_CHILD_OUTPUT_BYTES);
    } else if (WEXITSTATUS(status) == 0) {
        while (child->output_length && child->output[child->output_length - 1] == '\n')
            child->output_length--;
        if (!child->output_length) {
            reply.message = "the planner printed nothing";
            return reply;
        }
        child->output[child->output_length] = '\0';
        reply.outcome = PLANNER_CHILD_PLAN;
        reply.output = child->output;
        /* One that had just ended is whole; canonical JSON has one way to say this. */
        reply.is_cut = child->is_cut && strstr(child->output, "\"cutShort\":true");
    } else {
        const char *reason = reason_given(arena, child);
        int code = WEXITSTATUS(status);
        if (code == 1 || code == 2) {
            reply.outcome = code == 1 ? PLANNER_CHILD_NO_PLAN : PLANNER_CHILD_REFUSED;
            reply.message = reason;
        } else {
            reply.message =
                het_arena_printf(arena, "the planner exited with %d: %s", code, reason);
        }
    }
    return reply;
}

/* A child is over when it has closed its output and ended. */
static void finish_if_over(struct planner_child *planner, struct child *child,
                           int64_t now_ms)
{
    if (child->out >= 0)
        return;
    struct end end = { 0 };
    pid_t ended = wait4(child->pid, &end.status, WNOHANG, &end.used);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return;
    if (ended < 0)
        end.status = 127 << 8; /* it was reaped elsewhere; there is no reliable answer */
    read_complaint(child);
    struct het_arena *arena = het_arena_new();
    struct planner_child_reply reply = judge(arena, child, &end, now_ms);
    auto_free char *key = TAKE(child->key);
    auto_free char *output = TAKE(child->output);
    uint64_t digest = child->digest;
    forget(child); /* the callback may start the next one */
    planner->callback(planner->context, key, digest, &reply);
    (void)output;
    het_arena_free(arena);
}

void planner_child_step(struct planner_child *planner, int64_t now_ms)
{
    keep_promises(planner, now_ms);
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        struct child *child = &planner->children[i];
        if (!child->pid)
            continue;
        write_question(child);
        read_output(child);
        read_complaint(child);
        if (now_ms >= child->kill_ms && !child->is_late) {
            child->is_late = true;
            kill(child->pid, SIGKILL);
            close_end(&child->out);
        }
        finish_if_over(planner, child, now_ms);
    }
}

int64_t planner_child_next_ms(const struct planner_child *planner)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++) {
        const struct child *child = &planner->children[i];
        if (planner->promises[i].key && planner->promises[i].due_ms < next)
            next = planner->promises[i].due_ms;
        if (!child->pid)
            continue;
        /* Its pipes are closed but it has not ended yet: look again soon. */
        int64_t due = child->out < 0 ? child->started_ms : child->kill_ms;
        if (due < next)
            next = due;
    }
    return next;
}

size_t planner_child_running(const struct planner_child *planner)
{
    size_t count = 0;
    for (size_t i = 0; i < PLANNER_CHILD_MAX_CHILDREN; i++)
        count += planner->children[i].pid != 0 || planner->promises[i].key;
    return count;
}
