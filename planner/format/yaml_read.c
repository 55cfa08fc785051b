#include "planner/format/yaml_read.h"

#include "planner/base/arena.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* How much of the bounds a value takes. */
struct weight {
    size_t nodes, bytes;
    int depth;
};

/* A value with its weight; the reference is the holder's. */
struct built {
    json_t *value;
    struct weight weight;
};

struct anchor {
    char *name;
    struct built built; /* value NULL while it is being read */
};

struct reader {
    yaml_parser_t parser;
    struct het_error *err;
    struct anchor *anchors;
    size_t anchor_count, anchor_capacity;
    size_t node_count, aliased_nodes, aliased_bytes;
};

static int fail_at(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail_at(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return het_fail(reader->err, HET_BAD_INPUT, "line %zu, column %zu: %s", mark.line + 1,
                    mark.column + 1, what);
}

static int next_event(struct reader *reader, yaml_event_t *ret_event)
{
    yaml_parser_t *parser = &reader->parser;
    if (yaml_parser_parse(parser, ret_event))
        return 0;
    const char *problem = parser->problem ? parser->problem : "cannot be read";
    if (parser->error == YAML_READER_ERROR)
        return het_fail(reader->err, HET_BAD_INPUT, "line %zu, byte %zu of the text: %s",
                        parser->mark.line + 1, parser->problem_offset + 1, problem);
    return fail_at(reader, parser->problem_mark, "%s%s%s", problem,
                   parser->context ? ", " : "", parser->context ? parser->context : "");
}

/* ---- scalars ---- */

struct word {
    const char *text;
    enum { WORD_NULL, WORD_TRUE, WORD_FALSE, WORD_NO_JSON } meaning;
};

/* goyaml.v2/resolve.go, resolveMapList. */
static const struct word words[] = {
    { "", WORD_NULL },         { "~", WORD_NULL },        { "null", WORD_NULL },
    { "Null", WORD_NULL },     { "NULL", WORD_NULL },     { "true", WORD_TRUE },
    { "True", WORD_TRUE },     { "TRUE", WORD_TRUE },     { "yes", WORD_TRUE },
    { "Yes", WORD_TRUE },      { "YES", WORD_TRUE },      { "y", WORD_TRUE },
    { "Y", WORD_TRUE },        { "on", WORD_TRUE },       { "On", WORD_TRUE },
    { "ON", WORD_TRUE },       { "false", WORD_FALSE },   { "False", WORD_FALSE },
    { "FALSE", WORD_FALSE },   { "no", WORD_FALSE },      { "No", WORD_FALSE },
    { "NO", WORD_FALSE },      { "n", WORD_FALSE },       { "N", WORD_FALSE },
    { "off", WORD_FALSE },     { "Off", WORD_FALSE },     { "OFF", WORD_FALSE },
    { ".nan", WORD_NO_JSON },  { ".NaN", WORD_NO_JSON },  { ".NAN", WORD_NO_JSON },
    { ".inf", WORD_NO_JSON },  { ".Inf", WORD_NO_JSON },  { ".INF", WORD_NO_JSON },
    { "+.inf", WORD_NO_JSON }, { "+.Inf", WORD_NO_JSON }, { "+.INF", WORD_NO_JSON },
    { "-.inf", WORD_NO_JSON }, { "-.Inf", WORD_NO_JSON }, { "-.INF", WORD_NO_JSON },
};

static const struct word *find_word(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].text, text))
            return &words[i];
    return NULL;
}

static bool is_all_of(const char *text, const char *characters)
{
    return *text && !text[strspn(text, characters)];
}

/* An integer as Go's ParseInt reads it with base 0, or NULL. */
static json_t *parse_integer(const char *text)
{
    bool is_negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int base = 10;
    if (digits[0] == '0' && digits[1]) {
        switch (digits[1] | 0x20) {
        case 'x':
            base = 16;
            break;
        case 'o':
            base = 8;
            break;
        case 'b':
            base = 2;
            break;
        }
        digits += base == 10 ? 0 : 2;
        if (base == 10 && is_all_of(digits, "01234567"))
            base = 8;
    }
    static const char all[] = "0123456789abcdefABCDEF";
    char allowed[sizeof all];
    size_t allowed_count = base == 16 ? sizeof all - 1 : (size_t)base;
    memcpy(allowed, all, allowed_count);
    allowed[allowed_count] = '\0';
    if (!is_all_of(digits, allowed))
        return NULL;
    errno = 0;
    unsigned long long magnitude = strtoull(digits, NULL, base);
    const unsigned long long largest = (unsigned long long)INT64_MAX + is_negative;
    bool is_wide = errno == ERANGE || magnitude > largest;
    if (!is_wide)
        return json_integer((json_int_t)(is_negative ? -magnitude : magnitude));
    double real = errno == ERANGE ? strtod(text, NULL)
                  : is_negative   ? -(double)magnitude
                                  : (double)magnitude;
    return isfinite(real) ? json_real(real) : NULL;
}

/* ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$ */
static bool looks_like_real(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-' || *text == '+';
    size_t whole = strspn(text, digits);
    text += whole;
    if (*text == '.') {
        size_t fraction = strspn(text + 1, digits);
        if (!whole && !fraction)
            return false;
        text += 1 + fraction;
    } else if (!whole) {
        return false;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        return is_all_of(text, digits);
    }
    return !*text;
}

static json_t *parse_number(const char *text)
{
    if (!*text || !strchr("0123456789+-.", *text))
        return NULL;
    auto_free char *plain = xstrdup(text);
    char *to = plain;
    for (const char *from = text; *from; from++)
        if (*from != '_' || *text == '.')
            *to++ = *from;
    *to = '\0';
    json_t *integer = parse_integer(plain);
    if (integer)
        return integer;
    double real = looks_like_real(plain) ? strtod(plain, NULL) : INFINITY;
    return isfinite(real) ? json_real(real) : NULL;
}

static json_t *make_string(const struct reader *reader, const yaml_event_t *event)
{
    json_t *string =
        json_stringn((const char *)event->data.scalar.value, event->data.scalar.length);
    if (!string)
        fail_at(reader, event->start_mark, "a string that is not UTF-8");
    return string;
}

/* What a scalar without quotes and tag means. NULL, with the error filled, for what has
 * no JSON. */
static json_t *resolve(const struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const struct word *word = find_word(text);
    json_t *number = word ? NULL : parse_number(text);
    if (!word)
        return number ? number : make_string(reader, event);
    switch (word->meaning) {
    case WORD_NULL:
        return json_null();
    case WORD_TRUE:
        return json_true();
    case WORD_FALSE:
        return json_false();
    case WORD_NO_JSON:
        break;
    }
    fail_at(reader, event->start_mark,
            "%s cannot be written in JSON: quote it, or give a "
            "number",
            text);
    return NULL;
}

static const char tag_prefix[] = "tag:yaml.org,2002:";

/* The name of a core tag, "" for another. */
static const char *core_tag(const yaml_char_t *tag)
{
    const char *text = (const char *)tag;
    return strncmp(text, tag_prefix, sizeof tag_prefix - 1)
               ? ""
               : text + sizeof tag_prefix - 1;
}

static bool is_of_type(const json_t *value, const char *type)
{
    return (!strcmp(type, "int") && json_is_integer(value)) ||
           (!strcmp(type, "float") && json_is_number(value)) ||
           (!strcmp(type, "bool") && json_is_boolean(value)) ||
           (!strcmp(type, "null") && json_is_null(value));
}

static json_t *read_tagged(const struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *type = core_tag(event->data.scalar.tag);
    bool is_string = !strcmp(type, "str") ||
                     !strcmp((const char *)event->data.scalar.tag, "!");
    if (is_string)
        return make_string(reader, event);
    if (strcmp(type, "int") != 0 && strcmp(type, "float") != 0 &&
        strcmp(type, "bool") != 0 && strcmp(type, "null") != 0) {
        fail_at(reader, event->start_mark, "tag %s is not supported",
                (const char *)event->data.scalar.tag);
        return NULL;
    }
    json_t *value = resolve(reader, event);
    if (value && is_of_type(value, type)) {
        if (!strcmp(type, "float") && json_is_integer(value)) {
            json_t *real = json_real((double)json_integer_value(value));
            json_decref(value);
            return real;
        }
        return value;
    }
    if (value)
        fail_at(reader, event->start_mark, "\"%s\" is no !!%s", text, type);
    json_decref(value);
    return NULL;
}

/* ---- bounds ---- */

static int count_node(struct reader *reader, yaml_mark_t mark)
{
    if (++reader->node_count > HET_YAML_MAX_NODES)
        return fail_at(reader, mark, "more than %d values", HET_YAML_MAX_NODES);
    return 0;
}

static int check_depth(const struct reader *reader, yaml_mark_t mark, int depth)
{
    if (depth > HET_YAML_MAX_DEPTH)
        return fail_at(reader, mark, "nested deeper than %d", HET_YAML_MAX_DEPTH);
    return 0;
}

static void add_weight(struct weight *sum, struct weight part)
{
    sum->nodes += part.nodes;
    sum->bytes += part.bytes;
    if (part.depth + 1 > sum->depth)
        sum->depth = part.depth + 1;
}

/* ---- anchors ---- */

static struct anchor *find_anchor(struct reader *reader, const char *name)
{
    /* The last of a name counts. */
    for (size_t i = reader->anchor_count; i-- > 0;)
        if (!strcmp(reader->anchors[i].name, name))
            return &reader->anchors[i];
    return NULL;
}

/* The index of a new anchor, or of the one of this name. */
static int open_anchor(struct reader *reader, const yaml_event_t *event,
                       const yaml_char_t *name, size_t *ret_index)
{
    struct anchor *old = find_anchor(reader, (const char *)name);
    if (old) {
        json_decref(old->built.value);
        old->built = (struct built){ 0 };
        *ret_index = (size_t)(old - reader->anchors);
        return 0;
    }
    if (reader->anchor_count == HET_YAML_MAX_ANCHORS)
        return fail_at(reader, event->start_mark, "more than %d anchors in a document",
                       HET_YAML_MAX_ANCHORS);
    ARRAY_RESERVE(reader->anchors, &reader->anchor_capacity, reader->anchor_count + 1);
    reader->anchors[reader->anchor_count] =
        (struct anchor){ .name = xstrdup((const char *)name) };
    *ret_index = reader->anchor_count++;
    return 0;
}

static void close_anchor(struct reader *reader, size_t index, const struct built *built)
{
    struct anchor *anchor = &reader->anchors[index];
    json_decref(anchor->built.value); /* one of the same name inside it */
    anchor->built = *built;
    json_incref(anchor->built.value);
}

static void forget_anchors(struct reader *reader)
{
    for (size_t i = 0; i < reader->anchor_count; i++) {
        xfree(reader->anchors[i].name);
        json_decref(reader->anchors[i].built.value);
    }
    reader->anchor_count = 0;
}

/* A copy, so that a change in one place does not change the other, and so that what is
 * bounded here is what it costs to walk the result. */
static int read_alias(struct reader *reader, const yaml_event_t *event, int depth,
                      struct built *ret)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(reader, name);
    if (!anchor)
        return fail_at(reader, event->start_mark, "alias *%s without an anchor", name);
    if (!anchor->built.value)
        return fail_at(reader, event->start_mark, "alias *%s inside its own anchor",
                       name);
    const struct weight weight = anchor->built.weight;
    reader->aliased_nodes += weight.nodes;
    reader->aliased_bytes += weight.bytes;
    reader->node_count += weight.nodes;
    if (reader->aliased_nodes > HET_YAML_MAX_ALIASED_NODES ||
        reader->aliased_bytes > HET_YAML_MAX_ALIASED_BYTES ||
        reader->node_count > HET_YAML_MAX_NODES)
        return fail_at(reader, event->start_mark,
                       "aliases expand to more than %d values or %d bytes",
                       HET_YAML_MAX_ALIASED_NODES, HET_YAML_MAX_ALIASED_BYTES);
    if (check_depth(reader, event->start_mark, depth + weight.depth) < 0)
        return -1;
    *ret = (struct built){ json_deep_copy(anchor->built.value), weight };
    return 0;
}

/* ---- nodes ---- */

static int read_node(struct reader *reader, const yaml_event_t *event, int depth,
                     struct built *ret);

static int read_scalar(struct reader *reader, const yaml_event_t *event,
                       struct built *ret)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (strlen(text) != length)
        return fail_at(reader, event->start_mark, "NUL character in a string");
    json_t *value;
    if (event->data.scalar.tag)
        value = read_tagged(reader, event);
    else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        value = resolve(reader, event);
    else
        value = make_string(reader, event);
    if (!value)
        return -1;
    *ret = (struct built){ value, { .nodes = 1, .bytes = length } };
    return 0;
}

static int check_collection_tag(const struct reader *reader, const yaml_event_t *event,
                                const yaml_char_t *tag, const char *expected)
{
    if (!tag || !strcmp((const char *)tag, "!") || !strcmp(core_tag(tag), expected))
        return 0;
    return fail_at(reader, event->start_mark, "tag %s is not supported here",
                   (const char *)tag);
}

static int read_elements(struct reader *reader, int depth, struct built *sequence)
{
    for (;;) {
        yaml_event_t event;
        if (next_event(reader, &event) < 0)
            return -1;
        bool is_end = event.type == YAML_SEQUENCE_END_EVENT;
        struct built element = { 0 };
        int result = is_end ? 0 : read_node(reader, &event, depth, &element);
        yaml_event_delete(&event);
        if (is_end || result < 0)
            return result;
        add_weight(&sequence->weight, element.weight);
        json_array_append_new(sequence->value, element.value);
    }
}

/* The text of a key; the caller frees. */
static int read_key(struct reader *reader, const yaml_event_t *event, char **ret_key,
                    bool *ret_is_merge)
{
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(reader, event->start_mark, "a key must be a plain value");
    struct built key;
    if (count_node(reader, event->start_mark) < 0 || read_scalar(reader, event, &key) < 0)
        return -1;
    bool is_null = json_is_null(key.value);
    json_decref(key.value);
    if (is_null)
        return fail_at(reader, event->start_mark, "a key must not be null");
    *ret_key = xstrdup((const char *)event->data.scalar.value);
    *ret_is_merge = !event->data.scalar.tag &&
                    event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                    !strcmp(*ret_key, "<<");
    return 0;
}

/* <<: a mapping, or a sequence of mappings of which the first that has a key wins. */
static int merge(const struct reader *reader, yaml_mark_t mark, json_t *mapping,
                 const json_t *source)
{
    if (json_is_object(source)) {
        json_t *copy = json_deep_copy(source);
        json_object_update_missing(mapping, copy);
        json_decref(copy);
        return 0;
    }
    size_t i;
    const json_t *one;
    bool is_good = json_is_array(source);
    json_array_foreach (source, i, one) {
        is_good = is_good && json_is_object(one);
        if (is_good && merge(reader, mark, mapping, one) < 0)
            return -1;
    }
    if (!is_good)
        return fail_at(reader, mark, "<< needs a mapping or a sequence of mappings");
    return 0;
}

/* One member, whose key has come as `key_event`. A merge goes to `merges`. */
static int read_member(struct reader *reader, const yaml_event_t *key_event, int depth,
                       struct built *mapping, json_t **merges)
{
    auto_free char *key = NULL;
    bool is_merge = false;
    if (read_key(reader, key_event, &key, &is_merge) < 0)
        return -1;
    bool is_double = is_merge ? *merges != NULL
                              : json_object_get(mapping->value, key) != NULL;
    if (is_double)
        return fail_at(reader, key_event->start_mark, "key \"%s\" comes twice", key);
    yaml_event_t event;
    if (next_event(reader, &event) < 0)
        return -1;
    struct built value = { 0 };
    int result = read_node(reader, &event, depth, &value);
    yaml_event_delete(&event);
    if (result < 0)
        return -1;
    add_weight(&mapping->weight, value.weight);
    mapping->weight.nodes++;
    mapping->weight.bytes += strlen(key);
    if (is_merge)
        *merges = value.value;
    else
        json_object_set_new(mapping->value, key, value.value);
    return 0;
}

static int read_members(struct reader *reader, int depth, struct built *mapping)
{
    json_auto_t *merges = NULL;
    yaml_mark_t end = { 0 };
    for (;;) {
        yaml_event_t event;
        if (next_event(reader, &event) < 0)
            return -1;
        end = event.start_mark;
        bool is_end = event.type == YAML_MAPPING_END_EVENT;
        int result = is_end ? 0 : read_member(reader, &event, depth, mapping, &merges);
        yaml_event_delete(&event);
        if (result < 0)
            return -1;
        if (is_end)
            return merges ? merge(reader, end, mapping->value, merges) : 0;
    }
}

static int read_collection(struct reader *reader, const yaml_event_t *event, int depth,
                           struct built *ret)
{
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_mapping ? event->data.mapping_start.tag
                                        : event->data.sequence_start.tag;
    if (check_depth(reader, event->start_mark, depth + 1) < 0 ||
        check_collection_tag(reader, event, tag, is_mapping ? "map" : "seq") < 0)
        return -1;
    struct built built = { is_mapping ? json_object() : json_array(),
                           { .nodes = 1, .depth = 1 } };
    int result = is_mapping ? read_members(reader, depth + 1, &built)
                            : read_elements(reader, depth + 1, &built);
    if (result < 0)
        json_decref(built.value);
    else
        *ret = built;
    return result;
}

static const yaml_char_t *anchor_of(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor;
    if (event->type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.anchor;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor;
    return NULL;
}

/* The node that begins with `event`, inside `depth` collections. */
static int read_node(struct reader *reader, const yaml_event_t *event, int depth,
                     struct built *ret)
{
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(reader, event, depth, ret);
    if (count_node(reader, event->start_mark) < 0)
        return -1;
    const yaml_char_t *name = anchor_of(event);
    size_t anchor = 0;
    if (name && open_anchor(reader, event, name, &anchor) < 0)
        return -1;
    int result = event->type == YAML_SCALAR_EVENT
                     ? read_scalar(reader, event, ret)
                     : read_collection(reader, event, depth, ret);
    if (result == 0 && name)
        close_anchor(reader, anchor, ret);
    return result;
}

static int read_document(struct reader *reader, json_t *documents)
{
    yaml_event_t event;
    if (next_event(reader, &event) < 0)
        return -1;
    struct built built = { 0 };
    int result = read_node(reader, &event, 0, &built);
    if (result == 0 && !json_is_null(built.value)) {
        if (json_array_size(documents) == HET_YAML_MAX_DOCUMENTS)
            result = fail_at(reader, event.start_mark, "more than %d documents",
                             HET_YAML_MAX_DOCUMENTS);
        json_array_append(documents, built.value);
    }
    json_decref(built.value);
    yaml_event_delete(&event);
    forget_anchors(reader);
    return result;
}

static int read_stream(struct reader *reader, json_t *documents)
{
    for (;;) {
        yaml_event_t event;
        if (next_event(reader, &event) < 0)
            return -1;
        yaml_event_type_t type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type == YAML_DOCUMENT_START_EVENT && read_document(reader, documents) < 0)
            return -1;
    }
}

int het_yaml_parse(const char *text, size_t length, json_t **ret_documents,
                   struct het_error *err)
{
    if (length > HET_YAML_MAX_BYTES)
        return het_fail(err, HET_BAD_INPUT, "YAML of %zu bytes: at most %d are read",
                        length, HET_YAML_MAX_BYTES);
    struct reader reader = { .err = err };
    if (!yaml_parser_initialize(&reader.parser))
        return het_fail(err, HET_BAD_INPUT, "libyaml cannot be set up");
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    json_auto_t *documents = json_array();
    int result = read_stream(&reader, documents);
    forget_anchors(&reader);
    xfree(reader.anchors);
    yaml_parser_delete(&reader.parser);
    if (result == 0)
        *ret_documents = TAKE(documents);
    return result;
}

int het_yaml_parse_one(const char *text, size_t length, json_t **ret_document,
                       struct het_error *err)
{
    json_t *documents;
    if (het_yaml_parse(text, length, &documents, err) < 0)
        return -1;
    size_t count = json_array_size(documents);
    if (count == 1)
        *ret_document = json_incref(json_array_get(documents, 0));
    json_decref(documents);
    if (count != 1)
        return het_fail(err, HET_BAD_INPUT, "expected one document, found %zu", count);
    return 0;
}

bool het_yaml_is_likely(const char *text)
{
    char first = text[strspn(text, " \t\r\n")];
    return first && first != '{' && first != '[';
}
