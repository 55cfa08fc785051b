/* record_file.h - `--record FILE`: writes each decision and what it was made from as a
 * line of FILE (snapshot_json.h). When FILE would become larger than its limit it is
 * renamed FILE.1, in place of the one before, and a new one begun; so both together are
 * never larger than twice the limit. A disk that fails disturbs nothing: what cannot be
 * written is left out, and the log says so once, and when it can be written again. */
#ifndef CONTROLLER_RECORD_RECORD_FILE_H
#define CONTROLLER_RECORD_RECORD_FILE_H

#include "controller/record/snapshot_json.h"

#define RECORD_FILE_MAX_BYTES ((int64_t)256 << 20)

struct record_file;

/* Opens `path`, to go on at its end; only its owner may read it. `max_bytes` 0:
 * RECORD_FILE_MAX_BYTES. Errors: HET_IO. */
struct record_file *record_file_new(const char *path, int64_t max_bytes, bool with_env,
                                    struct het_error *err);
void record_file_free(struct record_file *recorder);

/* For controller_config.on_decision; the context is the recorder. */
void record_file_add(void *recorder, const struct snapshot *snapshot,
                     const struct decision *decision);

#endif
