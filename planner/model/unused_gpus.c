#include "planner/model/unused_gpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HARDWARE "gpuTypes of the hardware settings (--hardware)"
#define LABEL    "heterotrain.io/gpu-type"

static const struct {
    const char *name, *text;
} words[HET_UNUSED_REASONS] = {
    [HET_UNUSED_UNKNOWN_PRODUCT] = { "UnknownProduct",
                                     "no table knows them, nor does the profile: give "
                                     "their name as an alias, or an entry of its own, "
                                     "in " HARDWARE ", or label their nodes " LABEL },
    [HET_UNUSED_NO_GPU_LABEL] = { "NoGPULabel",
                                  "no label says in plain characters what they are: run "
                                  "GPU Feature Discovery, or label their nodes " LABEL },
    [HET_UNUSED_MIXED_GPUS] = { "MixedGPUs",
                                "their node offers GPUs of several types as one "
                                "resource: part them, or, if they are alike, label the "
                                "node " LABEL },
    [HET_UNUSED_NO_RATES] = { "NoRates",
                              "times cannot be estimated, as their rates are not known: "
                              "give TFLOPS and memoryGBs of their entry in " HARDWARE },
    [HET_UNUSED_NOT_MEASURED] = { "NotMeasured",
                                  "the profile has no measurement of them" },
    [HET_UNUSED_PRECISION_UNSUPPORTED] = { "PrecisionUnsupported",
                                           "they have no units for the precision" },
    [HET_UNUSED_TOO_LITTLE_MEMORY] = { "TooLittleMemory",
                                       "not one layer fits into their memory" },
    [HET_UNUSED_TYPE_NOT_ALLOWED] = { "TypeNotAllowed",
                                      "the job's gpuTypes do not name their type" },
    [HET_UNUSED_TYPE_LIMIT] = { "TypeLimit",
                                "the plan uses as many of them as maxGPUs of their type "
                                "allows" },
    [HET_UNUSED_GPU_LIMIT] = { "GPULimit",
                               "the plan uses as many GPUs as the job's maxGPUs allows" },
    [HET_UNUSED_NOT_WITHIN_LIMITS] = { "NotWithinLimits",
                                       "no degree and micro-batch that was measured of "
                                       "them is within the job's limits" },
    [HET_UNUSED_OTHER_VENDOR] = { "OtherVendor",
                                  "they cannot talk to the plan's, which are another "
                                  "vendor's; a plan on them alone was not chosen" },
    [HET_UNUSED_NOT_SELECTED] = { "NotSelected",
                                  "selectors or affinity of the job leave their node "
                                  "out" },
    [HET_UNUSED_TAINTED] = { "Tainted", "their node has a taint that is not tolerated" },
    [HET_UNUSED_SPOT_FORBIDDEN] = { "SpotForbidden",
                                    "their node is a spot node, which the job's "
                                    "spotPolicy forbids" },
    [HET_UNUSED_SHARED_GPU] = { "SharedGPU",
                                "they are shared or cut up, and nobody allowed that" },
    [HET_UNUSED_OTHER_RESOURCE] = { "OtherResource",
                                    "the job asks for their type by another resource" },
    [HET_UNUSED_NOT_READY] = { "NotReady", "their node is not ready" },
    [HET_UNUSED_UNSCHEDULABLE] = { "Unschedulable", "their node is cordoned" },
    [HET_UNUSED_LEAVING] = { "Leaving", "their node says that it will go" },
    [HET_UNUSED_GPU_UNHEALTHY] = { "GPUUnhealthy",
                                   "a condition of their node says that a GPU is "
                                   "broken" },
    [HET_UNUSED_REPARTITIONING] = { "Repartitioning", "MIG is being set up" },
    [HET_UNUSED_VIRTUAL_MACHINE] = { "VirtualMachine",
                                     "their node is set aside for virtual machines" },
    [HET_UNUSED_AVOIDED] = { "Avoided",
                             "a revision of the job waited for their node in vain" },
    [HET_UNUSED_NO_GPU] = { "NoGPU", "their node offers none of them" },
    [HET_UNUSED_NODE_GONE] = { "NodeGone", "their node is gone" },
    [HET_UNUSED_IN_USE] = { "InUse", "others hold them" },
    [HET_UNUSED_NO_ROOM] = { "NoRoom",
                             "others hold them, or their node has too little else left "
                             "for a pod that takes them" },
    [HET_UNUSED_QUOTA] = { "Quota", "others hold them, or the quota does not allow "
                                    "them" },
    [HET_UNUSED_NOT_CHOSEN] = { "NotChosen", "the best plan found does not use them" },
};

const char *het_unused_name(enum het_unused_reason reason)
{
    return words[reason].name;
}

bool het_unused_parse(struct het_arena *arena, const char *text,
                      enum het_unused_reason *ret, const char **ret_detail)
{
    static const char open[] = " (";
    for (int reason = 0; reason < HET_UNUSED_REASONS; reason++) {
        size_t length = strlen(words[reason].name);
        if (strncmp(text, words[reason].name, length))
            continue;
        const char *rest = text + length;
        size_t tail = strlen(rest);
        bool has_detail = !strncmp(rest, open, sizeof open - 1) && rest[tail - 1] == ')';
        if (*rest && !has_detail)
            continue;
        *ret = (enum het_unused_reason)reason;
        *ret_detail = has_detail ? het_arena_printf(arena, "%.*s", (int)(tail - 3),
                                                    rest + sizeof open - 1)
                                 : "";
        return true;
    }
    return false;
}

bool het_unused_is_unknown(enum het_unused_reason reason)
{
    return reason <= HET_UNUSED_NO_RATES;
}

/* ---- lists ---- */

static struct het_unused *find_group(const struct het_unused_list *list,
                                     const struct het_unused *like)
{
    for (size_t i = 0; i < list->count; i++) {
        struct het_unused *group = &list->groups[i];
        if (group->reason == like->reason && !strcmp(group->type, like->type) &&
            !strcmp(group->detail, like->detail))
            return group;
    }
    return NULL;
}

static struct het_unused *get_group(struct het_arena *arena, struct het_unused_list *list,
                                    const struct het_unused *like)
{
    struct het_unused wanted = { .reason = like->reason,
                                 .type = like->type,
                                 .detail = like->detail };
    if (!list->groups)
        list->groups = HET_ARENA_ARRAY(arena, struct het_unused, HET_UNUSED_GROUPS);
    struct het_unused *group = find_group(list, &wanted);
    if (!group && list->count + HET_UNUSED_REASONS >= HET_UNUSED_GROUPS) {
        wanted.type = wanted.detail = "";
        group = find_group(list, &wanted);
    }
    if (group)
        return group;
    assert(list->count < HET_UNUSED_GROUPS);
    list->groups[list->count] = wanted;
    return &list->groups[list->count++];
}

static uint32_t sum(uint32_t a, uint32_t b)
{
    return a < HET_UNUSED_MOST - b ? a + b : HET_UNUSED_MOST;
}

size_t het_unused_name_count(const struct het_unused *group)
{
    return group->node_count < HET_UNUSED_NODES ? group->node_count : HET_UNUSED_NODES;
}

void het_unused_merge(struct het_arena *arena, struct het_unused_list *list,
                      const struct het_unused *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!groups[i].gpus)
            continue;
        struct het_unused *group = get_group(arena, list, &groups[i]);
        for (size_t k = 0; k < het_unused_name_count(&groups[i]); k++)
            if (group->node_count + k < HET_UNUSED_NODES)
                group->nodes[group->node_count + k] = groups[i].nodes[k];
        group->node_count = sum(group->node_count, groups[i].node_count);
        group->gpus = sum(group->gpus, groups[i].gpus);
    }
}

void het_unused_add(struct het_arena *arena, struct het_unused_list *list,
                    enum het_unused_reason reason, const char *type, const char *detail,
                    const char *node, uint32_t gpus)
{
    const struct het_unused one = { .reason = reason,
                                    .type = type,
                                    .detail = detail,
                                    .gpus = gpus,
                                    .node_count = 1,
                                    .nodes = { node } };
    het_unused_merge(arena, list, &one, 1);
}

static int compare_groups(const void *a, const void *b)
{
    const struct het_unused *left = a, *right = b;
    int order = (int)left->reason - (int)right->reason;
    if (!order)
        order = strcmp(left->type, right->type);
    return order ? order : strcmp(left->detail, right->detail);
}

void het_unused_sort(struct het_unused_list *list)
{
    if (list->count)
        qsort(list->groups, list->count, sizeof *list->groups, compare_groups);
}

const char *het_unused_text(struct het_arena *arena, const struct het_unused *group)
{
    const char *text = words[group->reason].text;
    return *group->detail ? het_arena_printf(arena, "%s (%s)", text, group->detail)
                          : text;
}
