#include "controller/reconcile/heartbeat.h"

#include "controller/base/digest.h"
#include "controller/base/object.h"
#include "controller/base/timestamp.h"

#include <string.h>

static void read_leases(struct pass *pass)
{
    for (size_t i = 0; i < pass->current->rank_node_count; i++) {
        struct action *action = pass_add(pass, ACTION_REFRESH, PHASE_PODS);
        action->resource = &kube_lease;
        action->ns = NODE_LEASES;
        action->name = "";
        action->query = het_arena_printf(pass->arena, "fieldSelector=metadata.name%%3D%s",
                                         pass->current->rank_nodes[i].node_name);
    }
    pass_requeue_at(pass, pass->snapshot->now_ms);
}

static uint64_t digest_lease(const json_t *lease)
{
    return digest_text(digest_text(0, kube_name(lease)), kube_resource_version(lease));
}

/* The lease that was renewed longest ago; NULL: none is late. */
static const json_t *find_late(const struct pass *pass)
{
    const struct snapshot *snapshot = pass->snapshot;
    const json_t *late = NULL;
    int64_t oldest_ms = snapshot->wall_ms - HEARTBEAT_LATE_MS;
    for (size_t i = 0; i < snapshot->lease_count; i++) {
        int64_t renewed_ms;
        if (timestamp_parse(object_text(snapshot->leases[i], "spec.renewTime"),
                            &renewed_ms) == 0 &&
            renewed_ms < oldest_ms) {
            late = snapshot->leases[i];
            oldest_ms = renewed_ms;
        }
    }
    return late;
}

static void avoid(struct pass *pass, const char *node)
{
    char until[TIMESTAMP_SIZE];
    timestamp_format(pass->snapshot->wall_ms + HEARTBEAT_AVOID_MS, until);
    const json_t *map = pass->current->config_map;
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_AVOID, node);
    pass_annotate(pass, PHASE_RETIRE, &kube_config_map, map, ANNOTATION_AVOID_UNTIL,
                  until);
}

/* At the second read: whether the lease is unchanged. The next pass then leaves its node
 * out. */
static bool judge(struct pass *pass, uint64_t doubt_digest)
{
    for (size_t i = 0; i < pass->snapshot->lease_count; i++) {
        const json_t *lease = pass->snapshot->leases[i];
        if (digest_lease(lease) != doubt_digest)
            continue;
        avoid(pass, kube_name(lease));
        pass_requeue_at(pass, pass->snapshot->now_ms);
        return true;
    }
    return false;
}

bool heartbeat_listen(struct pass *pass)
{
    struct job_memory *memory = &pass->decision->memory;
    if (pass->current->rank_node_count < 2)
        return false; /* a rank that lost a peer had it on another node */
    if (memory->heard_generation != pass->current->generation)
        memory->hearing = HEARING_NONE;
    memory->heard_generation = pass->current->generation;
    const json_t *late;
    switch (memory->hearing) {
    case HEARING_NONE:
        memory->hearing = HEARING_ASKED;
        read_leases(pass);
        return true;
    case HEARING_ASKED:
        late = find_late(pass);
        memory->hearing = late ? HEARING_DOUBT : HEARING_OVER;
        memory->doubt_digest = late ? digest_lease(late) : 0;
        memory->heard_ms = pass->snapshot->now_ms;
        if (late)
            pass_requeue_at(pass, memory->heard_ms + HEARTBEAT_LATE_MS);
        return late != NULL;
    case HEARING_DOUBT:
        if (!pass_has_come(pass, memory->heard_ms + HEARTBEAT_LATE_MS))
            return true;
        memory->hearing = HEARING_AGAIN;
        read_leases(pass);
        return true;
    case HEARING_AGAIN:
        memory->hearing = HEARING_OVER;
        return judge(pass, memory->doubt_digest);
    case HEARING_OVER:
        break;
    }
    return false;
}

const char *heartbeat_silent(const struct pass *pass)
{
    const char *node = kube_annotation(pass->current->config_map, ANNOTATION_AVOID);
    return *node ? node : NULL;
}
