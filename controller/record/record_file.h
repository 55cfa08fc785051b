/* record_file.h - `--record FILE`: writes each decision and its input as a line of FILE
 * (snapshot_json.h). Before FILE exceeds its limit it is renamed to FILE.1, replacing the
 * previous one, and a new FILE is begun, so both together never exceed twice the limit. A
 * failing disk does no harm: records that cannot be written are dropped, and the log
 * reports the failure once, and the recovery. */
#ifndef CONTROLLER_RECORD_RECORD_FILE_H
#define CONTROLLER_RECORD_RECORD_FILE_H

#include "controller/record/snapshot_json.h"

#define RECORD_FILE_MAX_BYTES ((int64_t)256 << 20)

struct record_file;

/* Opens `path` for appending; only its owner may read it. `max_bytes` 0:
 * RECORD_FILE_MAX_BYTES. Errors: HET_IO. */
struct record_file *record_file_new(const char *path, int64_t max_bytes, bool with_env,
                                    struct het_error *err);
void record_file_free(struct record_file *recorder);

/* For controller_config.on_decision; the context is the recorder. */
void record_file_add(void *recorder, const struct snapshot *snapshot,
                     const struct decision *decision);

#endif
