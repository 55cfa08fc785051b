/* decode.h - splits lists and watch lines from an API server into objects without
 * decoding them, so that one bad object cannot hide the others, and decodes single
 * objects within bounds. Pure. */
#ifndef CONTROLLER_KUBE_DECODE_H
#define CONTROLLER_KUBE_DECODE_H

#include "controller/base/object.h"
#include "planner/modules.h"

#include <jansson.h>

enum {
    KUBE_MAX_OBJECT_BYTES = 4 << 20, /* of one object */
    KUBE_MAX_DEPTH = 512,            /* of one object */
};

/* Splits the text of a LIST into its items without decoding them, so that one bad item
 * cannot hide the others. Calls `on_item` with the text of each element of "items" and
 * decodes the list's own metadata. Refuses (HET_BAD_INPUT) a text that is not a complete
 * JSON object, has another kind than `resource->kind`List, or lacks
 * metadata.resourceVersion. `ret_resource_version` and `ret_continue` (may be "") are
 * freed by the caller. */
int kube_split_list(const struct kube_resource *resource, const char *text, size_t length,
                    void (*on_item)(void *context, const char *item, size_t length),
                    void *context, char **ret_resource_version, char **ret_continue,
                    struct het_error *err);
/* Decodes one object of a server: NUL inside strings tolerated, depth at most 512, at
 * most 4 MiB, integers beyond int64 read as reals, the last of several members with one
 * name. On failure returns NULL and fills `err`. */
json_t *kube_decode(const char *text, size_t length, struct het_error *err);

/* Finds the parts of one line of a WATCH without decoding its object. */
int kube_split_event(const char *text, size_t length, char ret_type[16],
                     const char **ret_object, size_t *ret_object_length,
                     struct het_error *err);
/* The identity of an object that cannot be decoded; parts that are not found are "". */
struct kube_identity {
    char ns[256], name[256], uid[128], version[32];
};
/* 0, or -1 if the name, or for a namespaced kind the namespace, cannot be found. */
int kube_scan_identity(const struct kube_resource *resource, const char *text,
                       size_t length, struct kube_identity *ret);

#endif
