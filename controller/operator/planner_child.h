/* planner_child.h - asks the planner: runs `hetplan plan -` as a child process with
 * limits on CPU time, memory and files, the question on its standard input, the answer on
 * its standard output. A crash or an endless search costs one job a condition and never
 * affects the operator. Nothing blocks: its pipes are polled with those of the transport.
 *
 * The child gets no environment and no open file except its three pipes. Before the
 * program starts it is confined (planner/system_call_filter.h): it can open no file or
 * socket and start or signal no process, so a malicious question that takes it over gains
 * nothing. */
#ifndef CONTROLLER_OPERATOR_PLANNER_CHILD_H
#define CONTROLLER_OPERATOR_PLANNER_CHILD_H

#include "controller/job/settings.h"
#include "planner/modules.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>

#define PLANNER_CHILD_MEMORY_BYTES ((uint64_t)1 << 30) /* RLIMIT_AS */
#define PLANNER_CHILD_OPEN_FILES   16                  /* RLIMIT_NOFILE */
#define PLANNER_CHILD_OUTPUT_BYTES ((size_t)4 << 20)   /* a longer answer is an error */
#define PLANNER_CHILD_WALL_TIMES   10 /* wall time: this times the CPU time, */
#define PLANNER_CHILD_WALL_MS      ((int64_t)60000) /* at least this */
#define PLANNER_CHILD_LAST_CPU_S   2 /* to print its best plan, past its CPU time */
#define PLANNER_CHILD_LAST_MS      ((int64_t)3000) /* the same, once it is cut short */
#define PLANNER_CHILD_MAX_CHILDREN 4

enum planner_child_outcome {
    PLANNER_CHILD_PLAN,    /* exit 0: `output` is the plan */
    PLANNER_CHILD_NO_PLAN, /* exit 1: `message` says why none fits */
    PLANNER_CHILD_REFUSED, /* exit 2: the question is wrong; `message` names the field */
    PLANNER_CHILD_CUT,     /* cut short (planner_child_cut) before it had a plan */
    PLANNER_CHILD_BROKE,   /* crashed, timed out or printed garbage; see `message` */
};

struct planner_child_reply {
    enum planner_child_outcome outcome;
    const char *output;  /* of PLANNER_CHILD_PLAN: canonical JSON, without the newline */
    const char *message; /* of the others */
    bool is_cut;         /* of PLANNER_CHILD_PLAN: cut short, the best plan so far */
    int64_t took_ms;     /* in terms of the now_ms passed in */
    int64_t first_ms;    /* of planner_child_inside: time of the first plan */
};

/* Called from planner_child_step, at most once per question. */
typedef void planner_child_callback(void *context, const char *key, uint64_t digest,
                                    const struct planner_child_reply *reply);

struct planner_child;

/* `program` is the path of hetplan. */
struct planner_child *planner_child_new(const char *program,
                                        planner_child_callback *callback, void *context);
/* Kills the children that still run. */
void planner_child_free(struct planner_child *planner);
/* The default is PLANNER_CONFINED; a build with sanitizers treats it as
 * PLANNER_CONFINED_IF_POSSIBLE, as it cannot be confined
 * (planner/system_call_filter.h). */
void planner_child_set_confinement(struct planner_child *planner,
                                   enum planner_confinement confinement);

/* Plans a question inside this process: fills `ret`, whose strings are borrowed until the
 * next call; the answer arrives `took_ms` after the question, in terms of the now_ms
 * passed in. If cut short, it arrives at once, without a plan before `first_ms`. */
typedef void planner_child_inside(void *context, const json_t *question,
                                  int64_t timeout_ms, struct planner_child_reply *ret);
/* From now on `inside` answers and no child is started; for callers with a virtual
 * clock. */
void planner_child_answer_inside(struct planner_child *planner,
                                 planner_child_inside *inside, void *context);

/* Whether another child may be started now. */
bool planner_child_has_room(const struct planner_child *planner);
/* Wall time after which a child with CPU time `timeout_ms` is killed. It is far longer,
 * as a child that shares its processors is slow but not broken. */
int64_t planner_child_wall_ms(int64_t timeout_ms);
/* Starts a child for `key`; the question is serialised here. `timeout_ms` bounds its CPU
 * time, and its wall time by planner_child_wall_ms. Errors: HET_IO. */
int planner_child_start(struct planner_child *planner, const char *key, uint64_t digest,
                        const json_t *question, int64_t timeout_ms, int64_t now_ms,
                        struct het_error *err);
/* Kills the child of `key`, if any; its callback is not called. */
void planner_child_cancel(struct planner_child *planner, const char *key);

/* Makes the search of `key`, if any, end with its best plan within
 * PLANNER_CHILD_LAST_MS. */
void planner_child_cut(struct planner_child *planner, const char *key, int64_t now_ms);

/* Pipes to poll: fills up to `capacity` entries, returns how many there are (at most 3 a
 * child). */
size_t planner_child_poll_list(const struct planner_child *planner, struct pollfd *fds,
                               size_t capacity);
/* Reads and writes without blocking, ends children that are done or too late, and calls
 * back. */
void planner_child_step(struct planner_child *planner, int64_t now_ms);
/* When planner_child_step has to kill a child, or an answer from inside arrives;
 * INT64_MAX: nothing runs. */
int64_t planner_child_next_ms(const struct planner_child *planner);
size_t planner_child_running(const struct planner_child *planner);

#endif
