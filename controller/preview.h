/* preview.h - the planner's question about one job on the cluster as it is now:
 * everything is listed once, nothing is written. What asks it is the caller's matter.
 *
 *     while (!preview_is_synced(preview)) {
 *         preview_step(preview, now_ms);
 *         transport_poll(transport, NULL, 0, preview_next_ms(preview) - now_ms);
 *     }
 *     preview_question(preview, now_ms, wall_ms, &question, &err);
 */
#ifndef CONTROLLER_PREVIEW_H
#define CONTROLLER_PREVIEW_H

#include "controller/http.h"
#include "controller/settings.h"

#include <jansson.h>

struct preview_config {
    const char *ns;   /* of the job */
    const char *name; /* of a job that is there; NULL: `job` */
    json_t *job;      /* a HeteroTrainingJob that need not be there (borrowed) */
    json_t *hardware; /* NULL: what is built in (borrowed) */
    const struct settings *settings;
};

struct preview;

/* The config and what it points at must outlive the preview. Errors: HET_BAD_INPUT, when
 * the hardware cannot be read. */
struct preview *preview_new(struct transport *transport,
                            const struct preview_config *config, struct het_error *err);
void preview_free(struct preview *preview);
void preview_step(struct preview *preview, int64_t now_ms);
int64_t preview_next_ms(const struct preview *preview);
bool preview_is_synced(const struct preview *preview);
/* The document for `hetplan plan -`; a new reference. Errors: HET_BAD_INPUT, when there
 * is no such job, or its spec or profile cannot be used; HET_NO_PLAN, when no GPU can. */
int preview_question(struct preview *preview, int64_t now_ms, int64_t wall_ms,
                     json_t **ret, struct het_error *err);

#endif
