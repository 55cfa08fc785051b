/* scenario.h - reads the events of a simulated cluster from lines of text: "60s delete
 * node/NAME". simulated_cluster.h carries them out. */
#ifndef CONTROLLER_SIMULATE_SCENARIO_H
#define CONTROLLER_SIMULATE_SCENARIO_H

#include "planner/modules.h"

#include <jansson.h>
#include <stdint.h>

enum scenario_event_kind {
    EVENT_DELETE_NODE, /* "delete node/N": the object and its kubelet are gone */
    EVENT_CREATE_NODE, /* "create node/N", "restore node/N": a deleted one comes back */
    EVENT_CORDON,      /* "cordon node/N" */
    EVENT_UNCORDON,    /* "uncordon node/N" */
    EVENT_NOT_READY,   /* "notready node/N": its kubelet falls silent, the node is
                          tainted, its pods are evicted when their tolerations end */
    EVENT_READY,       /* "ready node/N" */
    EVENT_GPUS,        /* "gpus node/N COUNT": allocatable GPUs */
    EVENT_TAINT,       /* "taint node/N KEY[=VALUE]:EFFECT"; NoExecute evicts */
    EVENT_UNTAINT,     /* "untaint node/N KEY[:EFFECT]" */
    EVENT_LABEL,       /* "label node/N KEY=VALUE", "label node/N KEY-"; jobs, too */
    EVENT_ANNOTATE,    /* the same with annotations */
    EVENT_CONDITION,   /* "condition node/N TYPE STATUS" */
    EVENT_OCCUPY,      /* "occupy node/N GPUS": another tenant's pod is bound there at
                          once, with at most the GPUs that are still free */
    EVENT_RELEASE,     /* "release node/N": all such pods are gone at once */
    EVENT_APPLY,       /* "apply FILE": objects are created or replaced */
    EVENT_DELETE_JOB,  /* "delete job/NAME", "delete job/NS/NAME" */
    EVENT_SUCCEED_JOB, /* "succeed job/NAME": its running pods exit with 0 */
    EVENT_SUSPEND_JOB, /* "suspend job/NAME": spec.suspend = true */
    EVENT_RESUME_JOB,  /* "resume job/NAME" */
    EVENT_PATCH_JOB,   /* "patch job/NAME JSON": a merge patch of the object */
    EVENT_FAIL_POD,    /* "fail pod/NAME [EXIT-CODE]": exits with 1 or that code */
    EVENT_DELETE_POD,  /* "delete pod/NAME" */
    EVENT_EVICT_POD,   /* "evict pod/NAME": as through the eviction API */
};

enum scenario_subject { OF_NODE, OF_JOB, OF_POD, OF_FILE };

struct scenario_event {
    int64_t after_ms; /* from the start of the script */
    enum scenario_event_kind kind;
    char *text; /* as written, without the time */
    char *ns, *name;
    enum scenario_subject subject;
    int64_t number; /* EVENT_GPUS, EVENT_OCCUPY, EVENT_FAIL_POD */
    /* EVENT_APPLY: the objects, an array. EVENT_TAINT, EVENT_UNTAINT: the taint.
     * EVENT_LABEL, EVENT_ANNOTATE: {key: value or null}. EVENT_CONDITION: {type, status}.
     * EVENT_PATCH_JOB: the patch. */
    json_t *objects;
};

/* Reads the objects of a file, as an array (a new reference), for "apply". */
typedef json_t *scenario_load(const char *path, struct het_error *err);

/* "60s delete node/NAME"; times are like 90s, 2m, 1m30s, 1500ms, 1h. Errors:
 * HET_BAD_INPUT, and those of `load`. */
int scenario_event_parse(const char *text, scenario_load *load,
                         struct scenario_event *ret, struct het_error *err);
void scenario_event_fini(struct scenario_event *event);
/* "90s", "1m30s" in milliseconds; -1 if it is not a duration. */
int64_t scenario_duration_ms(const char *text);

#endif
