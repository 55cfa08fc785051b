/* question.h - one question to the planner as a document, one answer: what
 * `hetplan plan -` does between standard input and standard output (docs/planner.md). */
#ifndef HET_FORMAT_DOCUMENT_QUESTION_H
#define HET_FORMAT_DOCUMENT_QUESTION_H

#include "planner/cost/migrate.h"
#include "planner/cost/timeline.h"
#include "planner/format/json.h"
#include "planner/run/explain.h"

/* Names of runtimes in a list, at most. */
#define HET_MAX_MIXED_RUNTIMES 64u

/* A problem and options out of the input document; everything lives in `arena`:
 *
 *   { "cluster": ..., "pods": ..., "profile": ..., "hardware": ..., "network": ...,
 *     "job": ..., "unused": [...], "sources": { "cluster": FILE, ... },
 *     "mixedVendorRuntimes": [ "flagscale" ] }
 *
 * Each part has the form of its file (cluster_json.h, ...); a profile may be { "config":
 * ... } (profile/config.h), to be estimated. "pods" is a PodList, to be subtracted when
 * the cluster is a NodeList. "network" (network_json.h) wins over what cluster and
 * hardware say of it. "unused" are GPUs that whoever asks knows cannot be used, as a plan
 * has them (het_unused_json_read): the plan reports them. "sources" says where parts come
 * from, for messages. "mixedVendorRuntimes" are names of runtimes that join GPUs of
 * different vendors (vendor_group.h): the administrator's word, which is why it is no
 * part of the job. Only cluster, profile and job must be there. */
struct het_question {
    struct het_problem problem;
    struct het_search_options options;
    const struct het_hardware *hardware;
    /* GPUs of the cluster that never became part of the problem: of a NodeList, and what
     * the document says in "unused". */
    struct het_unused_list left_out;
    const struct het_plan *from; /* running plan, or NULL */
    struct het_migrate_rates rates;
    double max_migration_s;      /* HUGE_VAL: no limit */
    double max_slowdown_percent; /* < 0: not asked for */
};

/* The question's problem as plans are searched for: with the default reserve of memory
 * (workload.h), if the question does not say. In `arena`. */
struct het_problem het_question_problem(struct het_arena *arena,
                                        const struct het_question *question);

/* Errors: HET_BAD_INPUT names part and field; HET_NO_PLAN, when no node has a free GPU.
 * The search's progress callback is not set. */
int het_question_read(struct het_arena *arena, const json_t *document,
                      struct het_question *ret, struct het_error *err);

/* Makes the document's job, an object, that of a plan file: with its batch, and its
 * optimizer unless the job says one. */
void het_question_take_batch(json_t *document, const json_t *plan);

/* The hardware of such a document alone. */
int het_question_hardware(struct het_arena *arena, const json_t *document,
                          const struct het_hardware **ret, struct het_error *err);
/* The profile of such a document alone, which needs no job then, and a cluster only for a
 * profile that is estimated. */
int het_question_profile(struct het_arena *arena, const json_t *document,
                         const struct het_profile **ret, struct het_error *err);

/* Runs the search. On success the plan, whole (predicted, search, idle, unused). With
 * `from` it is predicted too how long an iteration of that plan takes now
 * (from_iteration_s), unless it cannot run on this cluster, with this profile and the
 * job's limits. */
int het_question_plan(struct het_arena *arena, const struct het_question *question,
                      const struct het_plan **ret, struct het_error *err);

/* Explains a plan file, which must be valid for the question; searches anew (with the
 * question's algorithm and effort) if asked. Errors: HET_BAD_INPUT names the first
 * violation. */
int het_question_explain(struct het_arena *arena, const struct het_question *question,
                         const json_t *plan, bool searches,
                         const struct het_plan **ret_plan, struct het_explanation *ret,
                         struct het_error *err);
/* { "iterationSeconds", "parts", "slowestPipeline", "bottleneckStage", "busiestUplink",
 * "lowerBoundSeconds", "stages": [...], "freedoms": [...], "more": [...] }: the fields of
 * explain.h. A new reference. */
json_t *het_question_explanation_json(const struct het_question *question,
                                      const struct het_explanation *explanation);

/* The timeline of one iteration of a plan file, which must be valid, though it need not
 * fit into memory; `ret_plan` is the plan, bound. Both are in `arena`. Errors:
 * HET_BAD_INPUT says what is wrong with the plan, or that the timeline is too long. */
int het_question_simulate(struct het_arena *arena, const struct het_question *question,
                          const json_t *plan_json, const struct het_plan **ret_plan,
                          struct het_timeline *ret, struct het_error *err);

/* What a stage of a plan takes for one micro-batch: cost.h's f, g and c, its transfers
 * alone. */
struct het_stage_parts {
    double forward_s, backward_s;
    double send_s; /* to the next stage; 0 of the last one */
};
/* Of all stages by pipeline, in `arena`; the plan need not be bound, nor fit into memory.
 * Errors: HET_BAD_INPUT says what is wrong with it. */
int het_question_stage_times(struct het_arena *arena, const struct het_question *question,
                             const struct het_plan *plan, struct het_stage_parts **ret,
                             struct het_error *err);

/* What it takes to go from the question's `from` to a plan file, which must be valid:
 *
 *   { "seconds", "bottleneck": { "resource", "node" }, "bytes": { "local", "peer",
 * "cloud", "state" }, "ranksKept", "ranks": [ { "rank", "node", "gpu", "keeps",
 * "localBytes", "peerBytes", "cloudBytes" } ], "fromIterationSeconds", "iterationSeconds"
 * }
 *
 * migrate.h says what they mean; fromIterationSeconds is left out if the old plan cannot
 * run any more. Errors: HET_BAD_INPUT for a plan that is not well formed, or one of
 * another model. */
int het_question_diff(struct het_arena *arena, const struct het_question *question,
                      const json_t *plan, json_t **ret, struct het_error *err);

/* { "valid", "violations", "iterationSeconds", "closedFormSeconds", "parts",
 * "peakMemoryBytes" }, and "profile" and "extrapolated" as in a plan's prediction, of any
 * plan file; never fails on a bad plan, it says so. Only a well-formed plan has a price
 * and memory; one that merely does not fit has both. A new reference. */
json_t *het_question_judge(struct het_arena *arena, const struct het_question *question,
                           const json_t *plan);

#endif
