/* world.h - a cluster as a table for tests of decisions: objects are put in by hand, and
 * a decision's actions are performed on the table at once. No server, no clock. Each
 * decision is made again from its record (recorded.h). */
#ifndef TESTS_CONTROLLER_WORLD_H
#define TESTS_CONTROLLER_WORLD_H

#include "controller/reconcile/reconcile.h"
#include "tests/controller/quoted.h"

/* Of the nodes of world_of, and of the plans of world_answer_nodes. */
#define A100 "A100-SXM4-40GB"

struct world {
    struct store *store;
    struct capacity *capacity;
    struct het_arena *arena; /* for the test; freed with the world */
    int64_t now_ms;
    enum kueue_presence kueue;
    const struct settings *settings; /* NULL: the default */
    struct job_memory memory;        /* of the one job under test */
    char *answer, *what_if;          /* texts that memory.answer and .what_if point at */
    uint64_t next_uid, next_version;
    bool is_contested;    /* others take what is planned: overcommitment is not ours */
    int64_t server_minor; /* 34 */
    const char
        *pods_version; /* what the watch of pods has come to; NULL: to the present */
    int plans_asked, hooks, writes, events, refreshes;
    char last_event[64];   /* reason */
    json_t *event_reasons; /* of all events so far, as keys */
    int64_t last_grace_s;  /* of what was deleted last */
    /* Hears of every decision; NULL: nobody. */
    void (*on_decision)(void *context, const struct snapshot *snapshot,
                        const struct decision *decision);
    void *decision_context;
};

struct world *world_new(void);
/* With ready nodes of A100: "a:4 b:2". */
struct world *world_of(const char *nodes);
void world_free(struct world *world);

/* Puts `object` (taken over), giving it uid and resourceVersion if it has none; replaces
 * what has its name. */
json_t *world_put(struct world *world, const struct kube_resource *resource,
                  json_t *object);
void world_remove(struct world *world, const struct kube_resource *resource,
                  const char *ns, const char *name);

/* A copy of an object that is there, to be changed and put again. */
json_t *world_copy(struct world *world, const struct kube_resource *resource,
                   const char *ns, const char *name);

/* A ready node with `gpus` GPUs of `product`. */
void world_node(struct world *world, const char *name, const char *product, int gpus);
void world_node_ready(struct world *world, const char *name, bool is_ready);
/* Job "ns/job" with profile "p"; `spec` is JSON (with ') merged over the usual spec, or
 * "{}". */
void world_job(struct world *world, const char *spec);
json_t *world_get_job(struct world *world);
/* Member `key` of the job's status, NULL if absent; and its plan's generation. */
json_t *world_status(struct world *world, const char *key);
int64_t world_generation(struct world *world);
/* Reason and message of a condition of the job; "" if absent. */
const char *world_reason(struct world *world, const char *type);
const char *world_message(struct world *world, const char *type);
/* An annotation of the ConfigMap of a generation's plan; "" if absent. */
const char *world_plan_annotation(struct world *world, int generation, const char *key);

/* A plan of one stage with one replica of tp GPUs on each node of `nodes` ("a:4 b:2"). */
char *world_plan(const char *nodes, const char *type, double iteration_s);
/* What the planner answers to the question asked last. */
void world_answer(struct world *world, const char *plan);
/* With a plan for `nodes` of A100. */
void world_answer_nodes(struct world *world, const char *nodes, double iteration_s);
void world_answer_no_plan(struct world *world, const char *why);
void world_answer_refused(struct world *world, const char *why);

/* Scheduling gates of a pod. */
size_t world_gates(const json_t *pod);

bool world_has_event(const struct world *world, const char *reason);

/* Decides, and performs nothing. */
void world_decide(struct world *world, struct het_arena *arena, struct decision *ret);
/* One pass: decide and perform. Returns the number of actions. */
size_t world_step(struct world *world);
/* Passes until nothing is to be done (at most 20; fails the test otherwise). */
void world_settle(struct world *world);
/* The same, so much later. */
void world_pass_s(struct world *world, int64_t seconds);
/* All pods of the job that are there: bound to their nodes, Running and Ready. */
void world_run_pods(struct world *world);
/* The job is made, with a plan for `nodes` of A100, and its pods run. */
void world_run_job_on(struct world *world, const char *spec, const char *nodes);
/* The same for a:4 and b:4. */
void world_run_job(struct world *world, const char *spec);
/* GPUs of the node that another job could have; -1: there is no such node. */
int64_t world_free_on(struct world *world, const char *node);
void world_pod_phase(struct world *world, const char *name, const char *phase,
                     int exit_code);
/* Pods "name@node name@node", sorted. In the world's arena. */
const char *world_pods(struct world *world);

#endif
