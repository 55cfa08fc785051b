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
 * input and memory that cannot be had are a status and a message. The same question gets
 * the same answer, byte for byte, whatever the locale.
 *
 * Threads: different planners may be used at the same time. One planner is used by one
 * thread at a time; only het_planner_cancel may be called meanwhile. A call needs 512 KiB
 * of stack.
 *
 * Out of memory: all that a call allocates, jansson and libyaml included, of which the
 * library has copies of its own, goes into one list. When memory is out, the call ends
 * where it is (longjmp), the list is freed, and the status is HET_STATUS_OUT_OF_MEMORY;
 * the planner is as before the call. Checking each allocation instead would put a branch
 * that is never taken, and a result to pass on, into every function of the search. */
#ifndef HETPLAN_H
#define HETPLAN_H

#ifdef __cplusplus
extern "C" {
#endif

#define HET_VERSION "0.1.0"
#define HET_API     __attribute__((visibility("default")))

/* The library's version, which need not be that of this header. */
HET_API const char *het_version(void);

/* What the last call came to: the exit status of the command of its name. */
enum het_status {
    HET_STATUS_DONE = 0,
    HET_STATUS_NO = 1, /* no plan fits; a plan that was given is not valid, or not for the
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

/* Of the last call but these three and het_planner_cancel. */
HET_API enum het_status het_planner_status(const struct het_planner *planner);
/* One line of UTF-8 that says what is wrong, and where input is wrong what to write
 * instead; "" where nothing is. Valid until the next call. */
HET_API const char *het_planner_message(const struct het_planner *planner);
/* The field that it is about, "job.maxGPUs"; "" where it is about
 * none. Valid until the next call. */
HET_API const char *het_planner_path(const struct het_planner *planner);

/* ---- the question ---- */

/* Sets a part of the question, or takes it away (`text` NULL):
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
 * Text is JSON or YAML, and is copied. Its form is checked here, its meaning when
 * something is asked. */
HET_API enum het_status het_planner_set(struct het_planner *planner, const char *part,
                                        const char *text);

/* ---- answers ---- */

/* Each returns a text, or NULL, and status and message say why. A text is valid until the
 * planner's next answer, and may itself be given to the call that makes that. `plan` is a
 * text that het_planner_plan, or anybody else, has written. */

enum het_form {
    HET_FORM_JSON,  /* one line of canonical JSON */
    HET_FORM_TEXT,  /* for people: lines of het_planner_set_width columns */
    HET_FORM_SVG,   /* of het_planner_simulate only: a picture; */
    HET_FORM_TRACE, /* JSON for chrome://tracing and https://ui.perfetto.dev */
};

/* For HET_FORM_TEXT: columns (70 to 1000, 100 at first), and whether characters beyond
 * ASCII may be used (not 0; 0 at first). */
HET_API void het_planner_set_width(struct het_planner *planner, int columns, int is_utf8);

/* The plan with the shortest iteration. */
HET_API const char *het_planner_plan(struct het_planner *planner, enum het_form form);
/* Whether a plan is valid, and what it costs: a text in both cases, with HET_STATUS_NO
 * where it is not. */
HET_API const char *het_planner_cost(struct het_planner *planner, const char *plan,
                                     enum het_form form);
/* The same without the cost. */
HET_API const char *het_planner_check(struct het_planner *planner, const char *plan,
                                      enum het_form form);
/* Why a plan is as it is; `searches` (not 0): and what other freedoms and GPUs would
 * bring, which takes several searches. */
HET_API const char *het_planner_explain(struct het_planner *planner, const char *plan,
                                        int searches, enum het_form form);
/* What it takes to go from one plan to another; `from` NULL: from that of the job. */
HET_API const char *het_planner_diff(struct het_planner *planner, const char *from,
                                     const char *plan, enum het_form form);
/* What every stage does during an iteration. Not as HET_FORM_JSON. */
HET_API const char *het_planner_simulate(struct het_planner *planner, const char *plan,
                                         enum het_form form);
/* The plan as a training runtime ("megatron") reads it: files, and arguments and
 * environment of every pod. Needs no question. `pods` is NULL, or what they are to be
 * called: { "job", "namespace", "service", "revision", "masterPort" }. */
HET_API const char *het_planner_render(struct het_planner *planner, const char *plan,
                                       const char *runtime, const char *pods,
                                       enum het_form form);

/* ---- while it searches ---- */

/* Made by the library alone; later versions may have more members, behind these. */
struct het_progress {
    const char *algorithm; /* that runs now */
    unsigned long long plans_priced;
    double best_s;  /* an iteration of the best plan so far; 0: none yet */
    double bound_s; /* no plan is faster */
};

/* `progress` is called now and then while a plan is searched for, on the thread that
 * asked; NULL takes it away. It must return. It may use other planners, and of this one
 * het_planner_cancel. */
HET_API void het_planner_on_progress(
    struct het_planner *planner,
    void (*progress)(void *context, const struct het_progress *progress), void *context);

/* The search that runs, or else the next one, ends at once with the best plan so far,
 * which says so ("search": { "cutShort": true }). From any thread or signal handler. */
HET_API void het_planner_cancel(struct het_planner *planner);

#ifdef __cplusplus
}
#endif

#endif
