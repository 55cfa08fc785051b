#include "controller/job/node_selector.h"

#include "controller/base/object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const json_t *labels_of(const json_t *node)
{
    return json_object_get(json_object_get(node, "metadata"), "labels");
}

bool node_selector_matches_labels(const json_t *labels, const json_t *node)
{
    const json_t *present = labels_of(node);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value) {
        const char *label = json_string_value(json_object_get(present, key));
        const char *wanted = json_string_value(value);
        if (!label || !wanted || strcmp(label, wanted))
            return false;
    }
    return true;
}

/* ---- one requirement ---- */

enum match { IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS, UNKNOWN };

static const char *const operators[] = {
    [IN] = "In",         [NOT_IN] = "NotIn",
    [EXISTS] = "Exists", [DOES_NOT_EXIST] = "DoesNotExist",
    [GREATER] = "Gt",    [LESS] = "Lt",
};

static enum match match_of(const json_t *requirement)
{
    const char *name = object_text(requirement, "operator");
    for (size_t i = 0; i < UNKNOWN; i++)
        if (!strcmp(operators[i], name))
            return (enum match)i;
    return UNKNOWN;
}

static bool has_value(const json_t *values, const char *text)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const char *value = json_string_value(json_array_get(values, i));
        if (value && !strcmp(value, text))
            return true;
    }
    return false;
}

/* A whole decimal number of at most 18 digits, so that it cannot overflow. */
static bool read_integer(const char *text, long long *ret)
{
    const char *digits = text + (*text == '-' || *text == '+');
    size_t length = strlen(digits);
    if (!length || length > 18 || strspn(digits, "0123456789") != length)
        return false;
    *ret = strtoll(text, NULL, 10);
    return true;
}

/* Whether the label is above (or below) the one value; both must be whole numbers. */
static bool is_beyond(const char *label, const json_t *values, bool above)
{
    const char *text = json_string_value(json_array_get(values, 0));
    long long limit, number;
    if (!label || !text || !read_integer(text, &limit) || !read_integer(label, &number))
        return false;
    return above ? number > limit : number < limit;
}

/* `value`: what the node has under the requirement's key; NULL: nothing. */
static bool holds(const json_t *requirement, const char *value)
{
    const json_t *values = json_object_get(requirement, "values");
    switch (match_of(requirement)) {
    case IN:
        return value && has_value(values, value);
    case NOT_IN:
        return !value || !has_value(values, value);
    case EXISTS:
        return value;
    case DOES_NOT_EXIST:
        return !value;
    case GREATER:
        return is_beyond(value, values, true);
    case LESS:
        return is_beyond(value, values, false);
    case UNKNOWN:
        return false;
    }
    return false;
}

/* ---- terms ---- */

static bool term_matches(const json_t *term, const json_t *node)
{
    const json_t *expressions = json_object_get(term, "matchExpressions");
    const json_t *fields = json_object_get(term, "matchFields");
    if (!json_array_size(expressions) && !json_array_size(fields))
        return false;
    for (size_t i = 0; i < json_array_size(expressions); i++) {
        const json_t *expression = json_array_get(expressions, i);
        const json_t *label =
            json_object_get(labels_of(node), object_text(expression, "key"));
        if (!holds(expression, json_string_value(label)))
            return false;
    }
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (strcmp(object_text(field, "key"), "metadata.name") ||
            !holds(field, object_text(node, "metadata.name")))
            return false;
    }
    return true;
}

/* NULL: the selector says nothing. */
static const json_t *terms_of(const json_t *selector)
{
    const json_t *terms = json_object_get(selector, "nodeSelectorTerms");
    return json_is_null(terms) ? NULL : terms;
}

bool node_selector_matches(const json_t *selector, const json_t *node)
{
    const json_t *terms = terms_of(selector);
    if (!terms)
        return true;
    for (size_t i = 0; i < json_array_size(terms); i++)
        if (term_matches(json_array_get(terms, i), node))
            return true;
    return false;
}

/* ---- checking ---- */

static int check_requirement(const json_t *requirement, bool is_field, const char *path,
                             struct het_error *err)
{
    const json_t *values = json_object_get(requirement, "values");
    const char *key = object_text(requirement, "key");
    enum match match = match_of(requirement);
    size_t count = json_array_size(values);
    long long number;
    if (!json_is_object(requirement) || !*key)
        return het_fail(err, HET_BAD_INPUT, "%s.key: is missing", path);
    if (values && !json_is_null(values) && !json_is_array(values))
        return het_fail(err, HET_BAD_INPUT, "%s.values: must be a list", path);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(values, i)))
            return het_fail(err, HET_BAD_INPUT, "%s.values[%zu]: must be a text", path,
                            i);
    if (is_field && strcmp(key, "metadata.name"))
        return het_fail(err, HET_BAD_INPUT,
                        "%s.key: is %.60s, must be metadata.name, the only field of "
                        "nodes that can be matched",
                        path, key);
    if (is_field && (count != 1 || (match != IN && match != NOT_IN)))
        return het_fail(err, HET_BAD_INPUT, "%s: a field takes In or NotIn and one value",
                        path);
    switch (match) {
    case IN:
    case NOT_IN:
        if (!count)
            return het_fail(err, HET_BAD_INPUT, "%s.values: must have one at least",
                            path);
        return 0;
    case EXISTS:
    case DOES_NOT_EXIST:
        if (count)
            return het_fail(err, HET_BAD_INPUT, "%s.values: must be left out", path);
        return 0;
    case GREATER:
    case LESS:
        if (count != 1 ||
            !read_integer(json_string_value(json_array_get(values, 0)), &number))
            return het_fail(err, HET_BAD_INPUT, "%s.values: must be one whole number",
                            path);
        return 0;
    case UNKNOWN:
        break;
    }
    return het_fail(err, HET_BAD_INPUT,
                    "%s.operator: must be In, NotIn, Exists, DoesNotExist, Gt or Lt",
                    path);
}

static int check_list(const json_t *term, const char *name, const char *path,
                      struct het_error *err)
{
    const json_t *list = json_object_get(term, name);
    if (list && !json_is_null(list) && !json_is_array(list))
        return het_fail(err, HET_BAD_INPUT, "%s.%s: must be a list", path, name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        auto_free char *entry = xasprintf("%s.%s[%zu]", path, name, i);
        if (check_requirement(json_array_get(list, i), !strcmp(name, "matchFields"),
                              entry, err) < 0)
            return -1;
    }
    return 0;
}

int node_selector_check(const json_t *selector, const char *what, struct het_error *err)
{
    if (!selector || json_is_null(selector))
        return 0;
    const json_t *terms = terms_of(selector);
    if (!json_is_object(selector) || (terms && !json_is_array(terms)))
        return het_fail(err, HET_BAD_INPUT,
                        "%s: must be an object with a list nodeSelectorTerms", what);
    for (size_t i = 0; i < json_array_size(terms); i++) {
        const json_t *term = json_array_get(terms, i);
        auto_free char *path = xasprintf("%s.nodeSelectorTerms[%zu]", what, i);
        if (!json_is_object(term))
            return het_fail(err, HET_BAD_INPUT, "%s: must be an object", path);
        if (check_list(term, "matchExpressions", path, err) < 0 ||
            check_list(term, "matchFields", path, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- building ---- */

size_t node_selector_join_count(const json_t *a, const json_t *b)
{
    size_t a_count = terms_of(a) ? json_array_size(terms_of(a)) : 1;
    size_t b_count = terms_of(b) ? json_array_size(terms_of(b)) : 1;
    return a_count * b_count;
}

static void append_all(json_t *list, const json_t *from, const char *name)
{
    const json_t *more = json_object_get(from, name);
    for (size_t i = 0; i < json_array_size(more); i++)
        json_array_append(list, json_array_get(more, i));
}

static bool is_empty_term(const json_t *term)
{
    return !json_array_size(json_object_get(term, "matchExpressions")) &&
           !json_array_size(json_object_get(term, "matchFields"));
}

/* One term with all that `a` and `b` (NULL: nothing) ask for; NULL if one of them admits
 * no node. */
static json_t *join_terms(const json_t *a, const json_t *b, const json_t *labels,
                          const char *name)
{
    if ((a && is_empty_term(a)) || (b && is_empty_term(b)))
        return NULL;
    json_t *fields = json_array(), *expressions = json_array();
    json_array_append_new(fields, json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name",
                                            "operator", "In", "values", name));
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)labels, key, value)
        json_array_append_new(expressions, json_pack("{s:s, s:s, s:[O]}", "key", key,
                                                     "operator", "In", "values", value));
    append_all(fields, a, "matchFields");
    append_all(fields, b, "matchFields");
    append_all(expressions, a, "matchExpressions");
    append_all(expressions, b, "matchExpressions");
    json_t *term = json_pack("{s:o}", "matchFields", fields);
    if (json_array_size(expressions))
        json_object_set(term, "matchExpressions", expressions);
    json_decref(expressions);
    return term;
}

json_t *node_selector_join(const json_t *a, const json_t *b, const json_t *labels,
                           const char *name)
{
    assert(node_selector_join_count(a, b) <= NODE_SELECTOR_MAX_TERMS);
    const json_t *a_terms = terms_of(a), *b_terms = terms_of(b);
    size_t a_count = a_terms ? json_array_size(a_terms) : 1;
    size_t b_count = b_terms ? json_array_size(b_terms) : 1;
    json_t *joined = json_array();
    for (size_t i = 0; i < a_count; i++)
        for (size_t k = 0; k < b_count; k++) {
            json_t *term = join_terms(json_array_get(a_terms, i),
                                      json_array_get(b_terms, k), labels, name);
            if (term)
                json_array_append_new(joined, term);
        }
    /* The API server takes no empty list: an empty term, which admits no node. */
    if (!json_array_size(joined))
        json_array_append_new(joined, json_object());
    return json_pack("{s:o}", "nodeSelectorTerms", joined);
}
