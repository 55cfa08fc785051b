/* yaml_read.h - YAML in, JSON out: manifests, kubeconfig, cluster and hardware files.
 *
 * A text means here what it means to kubectl (sigs.k8s.io/yaml, goyaml.v2/resolve.go), so
 * that a file read by us and applied by kubectl is one object:
 *
 *   null    ~ null Null NULL, and nothing at all
 *   bool    true false yes no on off y n, in lower case, Capital or UPPER CASE
 *   integer 12 -3 1_000 0x1F 0o17 017 0b101; beyond int64 a real
 *   real    1.5 .5 1e3; .inf and .nan have no JSON and are refused
 *   string  everything else, and all that is quoted
 *
 * Unlike there: a key is its text as written (kubectl makes "true" of the key y); a
 * mapping with the same key twice, a key that is null or no scalar, and a tag other than
 * the core ones (!!str !!int !!float !!bool !!null !!map !!seq) are refused. Anchors,
 * aliases and merge keys (<<) are expanded, within the bounds below. NUL is refused. */
#ifndef HET_FORMAT_YAML_READ_H
#define HET_FORMAT_YAML_READ_H

#include "planner/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    HET_YAML_MAX_BYTES = 64 << 20,         /* of the text */
    HET_YAML_MAX_DEPTH = 100,              /* of mappings and sequences, expanded */
    HET_YAML_MAX_NODES = 4 << 20,          /* of all documents, expanded */
    HET_YAML_MAX_ANCHORS = 1000,           /* of one document */
    HET_YAML_MAX_ALIASED_NODES = 100000,   /* that come by aliases */
    HET_YAML_MAX_ALIASED_BYTES = 16 << 20, /* of strings that come by aliases */
    HET_YAML_MAX_DOCUMENTS = 10000,
};

/* All documents of `text` in order, as a JSON array; empty and null ones are left out, as
 * kubectl does. UTF-8, or UTF-16 with a byte order mark. Members keep their order.
 * Errors: HET_BAD_INPUT with "line L, column C: ..."; both count from 1. */
int het_yaml_parse(const char *text, size_t length, json_t **ret_documents,
                   struct het_error *err);

/* The same for a text that must hold exactly one document. */
int het_yaml_parse_one(const char *text, size_t length, json_t **ret_document,
                       struct het_error *err);

/* Whether a text that may be JSON is YAML: it does not begin like an object or a list. */
bool het_yaml_is_likely(const char *text);

#endif
