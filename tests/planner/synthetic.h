/* synthetic.h - the setting of the OOM-first paper's Table 1 with base numbers of our
 * own: a GPT-like model on A100 and V100 nodes of 4, as tests/bench/synthetic_profile.py
 * writes it as files. */
#ifndef TEST_SYNTHETIC_H
#define TEST_SYNTHETIC_H

#include "planner/model/plan.h"

/* `layer_count` layers, `nodes_a_type` nodes of 4 A100 of 80 GiB and as many of 4 V100 of
 * 16 GiB, a global batch of 128; in `arena`, bound. */
struct het_problem *synthetic_problem(struct het_arena *arena, uint32_t layer_count,
                                      uint32_t nodes_a_type);

#endif
