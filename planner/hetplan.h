/* hetplan.h - plans for training a model on unequal GPUs: the library.
 *
 * Questions and answers are texts, in the forms of the program hetplan (docs/planner.md,
 * Files). A planner holds one question, part by part, and answers what is asked about it:
 *
 *     struct het_planner *planner = het_planner_new();
 *     het_planner_set(planner, "profile", profile_yaml);
 *     het_planner_set(planner, "cluster", nodes_json);
 *     het_planner_set(planner, "job", "{\"globalBatchSize\": 256}");
 *     const char *plan = het_planner_plan(planner, HET_FORM_JSON);
 *     puts(plan ? plan : het_planner_message(planner));
 *     het_planner_free(planner);
 *
 * Nothing here reads a file, a clock or the environment, prints, or ends the process: bad
 * input and failed allocations become a status and a message. The same question gets the
 * same answer, byte for byte, whatever the locale.
 *
 * Threads: different planners may be used at the same time. One planner is used by one
 * thread at a time; only het_planner_cancel may be called from others. A call needs 512
 * KiB of stack.
 *
 * Out of memory: one list holds all that a call allocates, also in the library's own
 * copies of jansson and libyaml. When memory runs out, the call ends where it is
 * (longjmp), the list is freed, and the status is HET_STATUS_OUT_OF_MEMORY; the planner
 * is as it was before the call. Checking each allocation instead would put a branch that
 * is never taken, and a result to pass on, into every function of the search. */
#ifndef HETPLAN_H
#define HETPLAN_H

#ifdef __cplusplus
extern "C" {
#endif

#define HET_VERSION "0.1.0"
#define HET_API     __attribute__((visibility("default")))

/* The library's version, which need not be that of this header. */
HET_API const char *het_version(void);

/* Result of the last call, equal to the exit status of the command of that name. */
enum het_status {
    HET_STATUS_DONE = 0,
    HET_STATUS_NO = 1, /* no plan fits, or the given plan is not valid or not for the
                          runtime */
    HET_STATUS_BAD_INPUT = 2,
    HET_STATUS_CUT_SHORT = 3, /* cancelled before there was a plan */
    HET_STATUS_OUT_OF_MEMORY = 4
};

struct het_planner;

/* NULL: out of memory. */
HET_API struct het_planner *het_planner_new(void);
/* `planner` may be NULL. */
HET_API void het_planner_free(struct het_planner *planner);

/* Status of the last call, these three functions and het_planner_cancel aside. */
HET_API enum het_status het_planner_status(const struct het_planner *planner);
/* One line of UTF-8 that says what is wrong and, for bad input, what to write instead; ""
 * if nothing is wrong. Valid until the next call. */
HET_API const char *het_planner_message(const struct het_planner *planner);
/* The field that the message is about, as "job.maxGPUs"; "" if there is none. Valid until
 * the next call. */
HET_API const char *het_planner_path(const struct het_planner *planner);

/* ---- the question ---- */

/* Sets a part of the question, or removes it (`text` NULL):
 *
 *   profile   a ModelProfile; or { "config": CONFIG.JSON, "sequenceLength": N }; needed
 *   cluster   nodes, in the short form or as kubectl get nodes -o json prints; needed
 *   job       { "globalBatchSize": N, ... }; needed to plan. Where a plan is given the
 *             batch is the plan's
 *   pods      as kubectl get pods -A -o json prints: GPUs that they hold are not free
 *   hardware, network, unused, mixedVendorRuntimes
 *   question  all parts in one object, as `hetplan plan -` reads it, in place of all that
 *             was set
 *
 * Text is JSON or YAML, and is copied. This call checks its form; the calls that answer
 * check its meaning. */
HET_API enum het_status het_planner_set(struct het_planner *planner, const char *part,
                                        const char *text);

/* ---- answers ---- */

/* Each returns a text, or NULL; status and message then say why. A text is valid until
 * the planner's next answer, and may be passed to the call that makes it. `plan` is a
 * text from het_planner_plan or any other source. */

enum het_form {
    HET_FORM_JSON,  /* one line of canonical JSON */
    HET_FORM_TEXT,  /* for people: lines of het_planner_set_width columns */
    HET_FORM_SVG,   /* a picture; het_planner_simulate only */
    HET_FORM_TRACE, /* JSON for chrome://tracing and https://ui.perfetto.dev;
                       het_planner_simulate only */
};

/* For HET_FORM_TEXT: columns (70 to 1000, 100 at first), and whether characters beyond
 * ASCII may be used (not 0; 0 at first). */
HET_API void het_planner_set_width(struct het_planner *planner, int columns, int is_utf8);

/* The plan with the shortest iteration. */
HET_API const char *het_planner_plan(struct het_planner *planner, enum het_form form);
/* Whether a plan is valid, and what it costs. A plan that is not valid also gets a text,
 * with HET_STATUS_NO. */
HET_API const char *het_planner_cost(struct het_planner *planner, const char *plan,
                                     enum het_form form);
/* The same without the cost. */
HET_API const char *het_planner_check(struct het_planner *planner, const char *plan,
                                      enum het_form form);
/* Why a plan is as it is; `searches` (not 0): and what other freedoms and GPUs would
 * bring, which takes several searches. */
HET_API const char *het_planner_explain(struct het_planner *planner, const char *plan,
                                        int searches, enum het_form form);
/* What it takes to go from one plan to another; `from` NULL: from the job's plan. */
HET_API const char *het_planner_diff(struct het_planner *planner, const char *from,
                                     const char *plan, enum het_form form);
/* What every stage does during an iteration. Not as HET_FORM_JSON. */
HET_API const char *het_planner_simulate(struct het_planner *planner, const char *plan,
                                         enum het_form form);
/* The plan as a training runtime ("megatron") reads it: files, and arguments and
 * environment of every pod. Needs no question. `pods` is NULL, or says how the pods are
 * named: { "job", "namespace", "service", "revision", "masterPort" }. */
HET_API const char *het_planner_render(struct het_planner *planner, const char *plan,
                                       const char *runtime, const char *pods,
                                       enum het_form form);

/* ---- while it searches ---- */

/* Only the library makes this struct; later versions may append members. */
struct het_progress {
    const char *algorithm; /* running now */
    unsigned long long plans_priced;
    double best_s;  /* an iteration of the best plan so far; 0: none yet */
    double bound_s; /* no plan is faster */
};

/* A search calls `progress` now and then, on the thread that asked for the plan; NULL
 * removes it. It must return. It may use other planners, and on this one
 * het_planner_cancel. */
HET_API void het_planner_on_progress(
    struct het_planner *planner,
    void (*progress)(void *context, const struct het_progress *progress), void *context);

/* Ends the running search, or else the next one, at once with the best plan so far, which
 * says so ("search": { "cutShort": true }). Any thread or signal handler may call it. */
HET_API void het_planner_cancel(struct het_planner *planner);

#ifdef __cplusplus
}
#endif

#endif
