#include "controller/job/input_change.h"

#include "controller/base/digest.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[INPUT_CHANGE_COUNT] = {
    [INPUT_CHANGE_NODE_ADDED] = "NodeAdded",
    [INPUT_CHANGE_NODE_REMOVED] = "NodeRemoved",
    [INPUT_CHANGE_NODE_CORDONED] = "NodeCordoned",
    [INPUT_CHANGE_NODE_TAINTED] = "NodeTainted",
    [INPUT_CHANGE_NODE_NOT_READY] = "NodeNotReady",
    [INPUT_CHANGE_CAPACITY_FREED] = "CapacityFreed",
    [INPUT_CHANGE_GPU_UNHEALTHY] = "GPUUnhealthy",
    [INPUT_CHANGE_PROFILE] = "ProfileChanged",
    [INPUT_CHANGE_SPEC] = "SpecChanged",
};

const char *input_change_name(enum input_change change)
{
    return names[change];
}

unsigned input_change_parse(const char *name)
{
    for (unsigned i = 0; i < INPUT_CHANGE_COUNT; i++)
        if (!strcmp(names[i], name))
            return 1u << i;
    return 0;
}

/* With a final mix, so that sums of digests differ between sets. */
static uint64_t digest_name(const char *name)
{
    uint64_t h = digest_bytes(0, name, strlen(name));
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 33);
}

void input_change_add_node(struct input_state *input, const char *name,
                           const char *unusable, int64_t allocatable, int64_t free)
{
    if (!unusable) {
        input->nodes += digest_name(name);
        input->node_count++;
        input->allocatable += allocatable;
        input->taken += allocatable - free;
        return;
    }
    input->cordoned += !strcmp(unusable, "Unschedulable");
    input->tainted += !strncmp(unusable, "Tainted", strlen("Tainted"));
    input->not_ready += !strcmp(unusable, "NotReady");
}

void input_change_format(const struct input_state *input,
                         char ret_text[INPUT_CHANGE_TEXT_SIZE])
{
    snprintf(ret_text, INPUT_CHANGE_TEXT_SIZE,
             "spec=%016" PRIx64 " profile=%016" PRIx64 " nodes=%016" PRIx64
             " usable=%" PRId64 " gpus=%" PRId64 " taken=%" PRId64 " cordoned=%" PRId64
             " tainted=%" PRId64 " notReady=%" PRId64,
             input->spec, input->profile, input->nodes, input->node_count,
             input->allocatable, input->taken, input->cordoned, input->tainted,
             input->not_ready);
}

/* The number after `key` at `*text`, which is moved past it and one blank. */
static bool read_number(const char **text, const char *key, int base, uint64_t *ret)
{
    size_t length = strlen(key);
    char *end;
    if (strncmp(*text, key, length))
        return false;
    *ret = strtoull(*text + length, &end, base);
    if (end == *text + length || (*end && *end != ' '))
        return false;
    *text = end + (*end == ' ');
    return true;
}

bool input_change_read(const char *text, struct input_state *ret)
{
    struct input_state input;
    uint64_t count, allocatable, taken, cordoned, tainted, not_ready;
    if (!read_number(&text, "spec=", 16, &input.spec) ||
        !read_number(&text, "profile=", 16, &input.profile) ||
        !read_number(&text, "nodes=", 16, &input.nodes) ||
        !read_number(&text, "usable=", 10, &count) ||
        !read_number(&text, "gpus=", 10, &allocatable) ||
        !read_number(&text, "taken=", 10, &taken) ||
        !read_number(&text, "cordoned=", 10, &cordoned) ||
        !read_number(&text, "tainted=", 10, &tainted) ||
        !read_number(&text, "notReady=", 10, &not_ready) || *text)
        return false;
    input.node_count = (int64_t)count;
    input.allocatable = (int64_t)allocatable;
    input.taken = (int64_t)taken;
    input.cordoned = (int64_t)cordoned;
    input.tainted = (int64_t)tainted;
    input.not_ready = (int64_t)not_ready;
    *ret = input;
    return true;
}

/* Why nodes are no longer usable. */
static unsigned losses_between(const struct input_state *before,
                               const struct input_state *after)
{
    unsigned set = 0;
    if (after->cordoned > before->cordoned)
        set |= 1u << INPUT_CHANGE_NODE_CORDONED;
    if (after->tainted > before->tainted)
        set |= 1u << INPUT_CHANGE_NODE_TAINTED;
    if (after->not_ready > before->not_ready)
        set |= 1u << INPUT_CHANGE_NODE_NOT_READY;
    return set ? set : 1u << INPUT_CHANGE_NODE_REMOVED;
}

unsigned input_change_between(const struct input_state *before,
                              const struct input_state *after)
{
    unsigned set = 0;
    if (before->spec != after->spec)
        set |= 1u << INPUT_CHANGE_SPEC;
    if (before->profile != after->profile)
        set |= 1u << INPUT_CHANGE_PROFILE;
    if (before->nodes == after->nodes) {
        if (after->allocatable < before->allocatable)
            set |= 1u << INPUT_CHANGE_GPU_UNHEALTHY;
        if (after->allocatable > before->allocatable)
            set |= 1u << INPUT_CHANGE_CAPACITY_FREED;
    } else {
        /* As many as before are others than before. */
        if (after->node_count >= before->node_count)
            set |= 1u << INPUT_CHANGE_NODE_ADDED;
        if (after->node_count <= before->node_count)
            set |= losses_between(before, after);
    }
    if (after->taken < before->taken && after->node_count >= before->node_count)
        set |= 1u << INPUT_CHANGE_CAPACITY_FREED;
    return set;
}
