/* selector.h - label and field selectors, as in a list's query and in pods. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_SELECTOR_H
#define CONTROLLER_SIMULATE_API_SERVER_SELECTOR_H

#include <jansson.h>
#include <stdbool.h>

struct selector;

/* Reads "a=b,c!=d,e in (f,g),h notin (i),j,!k" (labels; `is_field` false) or
 * "metadata.name=x,status.phase!=y" (fields). NULL and a message in `ret_message`
 * (borrowed, static) if it cannot be read. "" selects everything. */
struct selector *selector_new(const char *text, bool is_field, const char **ret_message);
void selector_free(struct selector *selector);
bool selector_is_empty(const struct selector *selector);
/* Whether `object` is selected. A field that the object lacks is "". */
bool selector_matches(const struct selector *selector, const json_t *object);
/* The first field of a field selector that is not in `fields` (ends with NULL). */
const char *selector_unknown_field(const struct selector *selector,
                                   const char *const *fields);

/* A v1.NodeSelectorTerm {matchExpressions, matchFields} against a node; operators In,
 * NotIn, Exists, DoesNotExist, Gt, Lt. A term without any requirement matches nothing. */
bool selector_term_matches(const json_t *term, const json_t *node);

#endif
