#include "controller/simulate/api_server/selector.h"

#include "controller/simulate/api_server/condition.h"
#include "planner/modules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum relation { IS_IN, IS_NOT_IN, EXISTS, DOES_NOT_EXIST };

struct requirement {
    char *key;
    enum relation relation;
    bool is_set; /* written with "in" or "notin", which fields do not know */
    char **values;
    size_t value_count, value_capacity;
};

struct selector {
    bool is_field;
    struct requirement *requirements;
    size_t count, capacity;
};

static void skip_space(const char **text)
{
    while (isspace((unsigned char)**text))
        (*text)++;
}

/* The characters of keys and values; NULL if there is none. */
static char *take_word(const char **text)
{
    skip_space(text);
    size_t length = strcspn(*text, " \t=!,()<>");
    if (!length)
        return NULL;
    char *word = xmalloc(length + 1);
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    skip_space(text);
    return word;
}

static bool take_token(const char **text, const char *token)
{
    skip_space(text);
    if (strncmp(*text, token, strlen(token)) != 0)
        return false;
    *text += strlen(token);
    skip_space(text);
    return true;
}

static void take_value(const char **text, struct requirement *requirement)
{
    char *value = take_word(text);
    ARRAY_RESERVE(requirement->values, &requirement->value_capacity,
                  requirement->value_count + 1);
    requirement->values[requirement->value_count++] = value ? value : xstrdup("");
}

/* "(a,b)" */
static bool take_set(const char **text, struct requirement *requirement)
{
    if (!take_token(text, "("))
        return false;
    do {
        take_value(text, requirement);
    } while (take_token(text, ","));
    return take_token(text, ")");
}

/* What follows a key: nothing, "= b", "!= b", "in (b,c)", "notin (b,c)". */
static bool take_relation(const char **text, struct requirement *requirement)
{
    static const struct {
        const char *token;
        enum relation relation;
        bool is_set;
    } relations[] = { { "!=", IS_NOT_IN, false },
                      { "==", IS_IN, false },
                      { "=", IS_IN, false },
                      { "in", IS_IN, true },
                      { "notin", IS_NOT_IN, true } };
    requirement->relation = EXISTS;
    if (!**text || **text == ',')
        return true;
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        if (!take_token(text, relations[i].token))
            continue;
        requirement->relation = relations[i].relation;
        requirement->is_set = relations[i].is_set;
        if (requirement->is_set)
            return take_set(text, requirement);
        take_value(text, requirement);
        return true;
    }
    return false;
}

static bool take_requirement(const char **text, struct requirement *requirement)
{
    bool negated = take_token(text, "!");
    requirement->key = take_word(text);
    if (!requirement->key)
        return false;
    if (!negated)
        return take_relation(text, requirement);
    requirement->relation = DOES_NOT_EXIST;
    return true;
}

struct selector *selector_new(const char *text, bool is_field, const char **ret_message)
{
    struct selector *selector = xcalloc(1, sizeof *selector);
    selector->is_field = is_field;
    skip_space(&text);
    while (*text) {
        ARRAY_RESERVE(selector->requirements, &selector->capacity, selector->count + 1);
        struct requirement *requirement = &selector->requirements[selector->count++];
        *requirement = (struct requirement){ 0 };
        bool good = take_requirement(&text, requirement);
        if (is_field)
            good = good && requirement->relation <= IS_NOT_IN && !requirement->is_set;
        if (!good || (*text && !take_token(&text, ","))) {
            *ret_message = is_field ? "invalid field selector"
                                    : "unable to parse "
                                      "requirement";
            selector_free(selector);
            return NULL;
        }
    }
    return selector;
}

void selector_free(struct selector *selector)
{
    if (!selector)
        return;
    for (size_t i = 0; i < selector->count; i++) {
        struct requirement *requirement = &selector->requirements[i];
        for (size_t k = 0; k < requirement->value_count; k++)
            free(requirement->values[k]);
        free(requirement->values);
        free(requirement->key);
    }
    free(selector->requirements);
    free(selector);
}

bool selector_is_empty(const struct selector *selector)
{
    return selector->count == 0;
}

static bool is_among(const char *text, char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, values[i]))
            return true;
    return false;
}

/* `text` is NULL where the object has no such label. */
static bool is_met(const struct requirement *requirement, const char *text)
{
    switch (requirement->relation) {
    case IS_IN:
        return text && is_among(text, requirement->values, requirement->value_count);
    case IS_NOT_IN:
        return !text || !is_among(text, requirement->values, requirement->value_count);
    case EXISTS:
        return text;
    case DOES_NOT_EXIST:
        return !text;
    }
    return false;
}

bool selector_matches(const struct selector *selector, const json_t *object)
{
    const json_t *labels = object_at(object, "metadata.labels");
    for (size_t i = 0; i < selector->count; i++) {
        const struct requirement *requirement = &selector->requirements[i];
        const char *text =
            selector->is_field
                ? object_text(object, requirement->key)
                : json_string_value(json_object_get(labels, requirement->key));
        if (!is_met(requirement, text))
            return false;
    }
    return true;
}

const char *selector_unknown_field(const struct selector *selector,
                                   const char *const *fields)
{
    for (size_t i = 0; i < selector->count; i++) {
        const char *const *field = fields;
        while (*field && strcmp(*field, selector->requirements[i].key) != 0)
            field++;
        if (!*field)
            return selector->requirements[i].key;
    }
    return NULL;
}

static bool is_text_among(const char *text, const json_t *values)
{
    size_t i;
    json_t *value;
    json_array_foreach (values, i, value) {
        if (json_is_string(value) && !strcmp(json_string_value(value), text))
            return true;
    }
    return false;
}

/* One {key, operator, values} against the text of a label or field, NULL if absent. */
static bool expression_is_met(const json_t *expression, const char *text)
{
    const char *relation = object_text(expression, "operator");
    const json_t *values = object_at(expression, "values");
    if (!strcmp(relation, "In"))
        return text && is_text_among(text, values);
    if (!strcmp(relation, "NotIn"))
        return !text || !is_text_among(text, values);
    if (!strcmp(relation, "Exists"))
        return text;
    if (!strcmp(relation, "DoesNotExist"))
        return !text;
    const char *bound = json_string_value(json_array_get(values, 0));
    if (!text || !bound)
        return false;
    if (!strcmp(relation, "Gt"))
        return atoll(text) > atoll(bound);
    return !strcmp(relation, "Lt") && atoll(text) < atoll(bound);
}

bool selector_term_matches(const json_t *term, const json_t *node)
{
    const json_t *labels = object_at(node, "metadata.labels");
    const json_t *expressions = object_at(term, "matchExpressions");
    const json_t *fields = object_at(term, "matchFields");
    size_t i;
    json_t *expression;
    json_array_foreach (expressions, i, expression) {
        const char *key = object_text(expression, "key");
        if (!expression_is_met(expression,
                               json_string_value(json_object_get(labels, key))))
            return false;
    }
    json_array_foreach (fields, i, expression) {
        if (strcmp(object_text(expression, "key"), "metadata.name") != 0 ||
            !expression_is_met(expression, object_text(node, "metadata.name")))
            return false;
    }
    return json_array_size(expressions) + json_array_size(fields) > 0;
}
