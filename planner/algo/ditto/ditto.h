/* ditto.h - pipelines recovered from those of a folded cluster: it views the cluster as
 * one of equal, weakest GPUs, makes a template for that, and assigns its stages to the
 * real GPUs.
 *
 * Source: Z. Zhu et al., "Ditto: Automating Hybrid Parallelism for Large Model Training
 * on Heterogeneous Cluster", 2024, sections 3, 5 and 6, on the templates of I. Jang et
 * al., "Oobleck", SOSP 2023, section 4.1. The tables are equal_gpus.h's and
 * pipeline_template.h's, which state where they depart from the papers. `ditto` recovers
 * by dynamic program, `ditto-greedy` greedily.
 *
 * For each size of a micro-batch that divides the global batch, and for several numbers
 * of pipelines: each pipeline gets an equal share of the GPUs of each type, and all are
 * made from one template.
 *
 * Differs:
 *  - One pipeline of all GPUs is the paper's; more are what Oobleck fills a cluster with.
 *    With more than one, GPUs that cannot be shared out evenly stay idle.
 *  - A stage on x GPUs of a node is x / t tensor-parallel groups of t, for every t that
 *    was measured (Oobleck: one way to use x GPUs, its time divided by x). x is any
 *    number up to a node's size, not only powers of two.
 *  - Memory, which the paper leaves to later work: layers must fit for the micro-batches
 *    in flight. As these depend on the template, a template that does not fit is rebuilt
 *    with the room that its stages had, at most HET_DITTO_MAX_ROUNDS times.
 *  - The paper's time T takes N_b as given and is meaningless for fewer micro-batches
 *    than stages; then as many as stages are counted. It chooses the template; the search
 *    prices the plan, with sends and gradients.
 *  - Nodes may differ in size; a stage is on one node where one has room, else its groups
 *    are spread.
 *  - Folding takes the weakest type of those that can run the micro-batch; a type that
 *    was not measured on one GPU counts its GPU seconds on the fewest. */
#ifndef HET_ALGO_DITTO_DITTO_H
#define HET_ALGO_DITTO_DITTO_H

#include "planner/search/search.h"

#define HET_DITTO_MAX_ROUNDS 6u

extern const struct het_algorithm het_algo_ditto;
extern const struct het_algorithm het_algo_ditto_greedy;

#endif
