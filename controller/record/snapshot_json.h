/* snapshot_json.h - one decision and its input as a JSON object, a line of `--record
 * FILE`. The snapshot is complete, so that reconcile makes the same decision from it
 * again, byte for byte (`heterotrain-controller replay`). Pure.
 *
 *   { "format": "heterotrain.io/record", "version": 1, "time": "2026-01-01T00:00:00Z",
 *     "job": "namespace/name", "decision": {...}, "snapshot": {...} }
 *
 * Members are named as in the structs; 64-bit digests are text, "%016x". Tables in
 * snapshot_json.c list every field of every struct in a snapshot or a decision; a test
 * compares them with the headers, so that none is missing. Derived values (the spec from
 * the job, a plan from its ConfigMap) are computed again. In a decision, objects and long
 * texts are recorded as digests.
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
    RECORD_MAX_LIST = 65536, /* elements of a list when reading */
};

/* The record of a decision. `with_env`: includes values of environment variables. Returns
 * a new reference. */
json_t *record_write(const struct snapshot *snapshot, const struct decision *decision,
                     bool with_env);
/* A decision in the form of a record. Returns a new reference. */
json_t *record_decision(const struct snapshot *snapshot, const struct decision *decision,
                        bool with_env);

struct record {
    const char *job; /* "namespace/name" */
    int64_t wall_ms;
    bool has_env;           /* values of environment variables are included */
    const json_t *decision; /* as recorded */
    struct snapshot snapshot;
};

/* Reads a record; results are in `arena` or borrowed from `json`, which is not trusted.
 * Errors: HET_BAD_INPUT, with the path of the member. */
int record_read(struct het_arena *arena, const json_t *json, struct record *ret,
                struct het_error *err);

/* For the test that no field is missing: the structs that the tables describe ("struct
 * snapshot"; NULL after the last), and whether a table lists a field exactly once. */
const char *record_table(size_t index);
bool record_has_field(size_t index, const char *name);

#endif
