/* snapshot_json.h - what one decision was made from, and what it was, as one JSON object:
 * the lines of `--record FILE`. The snapshot is whole, so that reconcile makes the same
 * decision of it again, byte for byte (`heterotrain-controller replay`). Pure.
 *
 *   { "format": "heterotrain.io/record", "version": 1, "time": "2026-01-01T00:00:00Z",
 *     "job": "namespace/name", "decision": {...}, "snapshot": {...} }
 *
 * Members are called as in the structs; 64-bit digests are text, "%016x". Tables in
 * snapshot_json.c name every field of every struct that a snapshot or a decision is made
 * of; a test compares them with the headers, so that none is left out. What is
 * computed from the rest (the spec out of the job, a plan out of its ConfigMap) is
 * computed anew. Of a decision, objects and long texts are digests.
 *
 * Values of environment variables are left out unless asked for, and so is kubectl's copy
 * of the object among its annotations. No decision depends on either. */
#ifndef CONTROLLER_RECORD_SNAPSHOT_JSON_H
#define CONTROLLER_RECORD_SNAPSHOT_JSON_H

#include "controller/decision/decision.h"

#define RECORD_FORMAT   "heterotrain.io/record"
#define RECORD_REDACTED "(not recorded)"
enum {
    RECORD_VERSION = 1,
    RECORD_MAX_LIST = 65536, /* elements of a list that is read */
};

/* The record of a decision. `with_env`: values of environment variables, too. A new
 * reference. */
json_t *record_write(const struct snapshot *snapshot, const struct decision *decision,
                     bool with_env);
/* A decision as a record has it. A new reference. */
json_t *record_decision(const struct snapshot *snapshot, const struct decision *decision,
                        bool with_env);

struct record {
    const char *job; /* "namespace/name" */
    int64_t wall_ms;
    bool has_env;           /* values of environment variables are there */
    const json_t *decision; /* as recorded */
    struct snapshot snapshot;
};

/* Reads a record; all is in `arena` or borrowed from `json`. Nothing in it is trusted.
 * Errors: HET_BAD_INPUT, with the path of the member. */
int record_read(struct het_arena *arena, const json_t *json, struct record *ret,
                struct het_error *err);

/* The structs that the tables describe ("struct snapshot"), for the test that no field is
 * missing: NULL after the last; and whether a table names a field, once. */
const char *record_table(size_t index);
bool record_has_field(size_t index, const char *name);

#endif
