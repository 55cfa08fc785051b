#include "planner/format/json.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GIB  0x1p30
#define BYTES_PER_GB   1e9
#define MAX_MEMORY_GIB 16384.0
#define MAX_GB_S       1e6

/* What the decoder's words leave open; NULL: nothing. */
static const char *decode_advice(enum json_error_code code)
{
    static const struct {
        enum json_error_code code;
        const char *advice;
    } advices[] = {
        { json_error_null_character, "texts must not contain \\u0000; take it out" },
        { json_error_null_byte_in_key, "names must not contain \\u0000; take it out" },
        { json_error_duplicate_key, "give each field of an object once" },
        { json_error_invalid_utf8, "save the text as UTF-8" },
        { json_error_numeric_overflow, "give a number that fits 64 bits" },
        { json_error_premature_end_of_input, "the text ends too early; complete it" },
    };
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].code == code)
            return advices[i].advice;
    return NULL;
}

static int fail_decode(const json_error_t *problem, const char *what,
                       struct het_error *err)
{
    enum json_error_code code = json_error_code(problem);
    const char *advice = decode_advice(code);
    if (code == json_error_stack_overflow)
        return het_fail(
            err, HET_BAD_INPUT,
            "%s: line %d, column %d: lists and objects are nested deeper than "
            "%d; no file that is read here needs that",
            what, problem->line, problem->column, JSON_PARSER_MAX_DEPTH);
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        return het_fail(err, HET_BAD_INPUT, "%s: line %d, column %d: %s", what,
                        problem->line, problem->column, advice);
    return het_fail(err, HET_BAD_INPUT, "%s: line %d, column %d: %s%s%s", what,
                    problem->line, problem->column, problem->text, advice ? "; " : "",
                    advice ? advice : "");
}

int het_json_decode(const char *text, size_t length, const char *what, json_t **ret,
                    struct het_error *err)
{
    if (length > HET_MAX_JSON_BYTES)
        return het_fail(err, HET_BAD_INPUT, "%s: larger than %zu MiB", what,
                        HET_MAX_JSON_BYTES >> 20);
    json_error_t problem;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (!json)
        return fail_decode(&problem, what, err);
    *ret = json;
    return 0;
}

/* ---- writing ---- */

struct text {
    char *bytes;
    size_t length, capacity;
};

static void add_bytes(struct text *text, const char *bytes, size_t count)
{
    ARRAY_RESERVE(text->bytes, &text->capacity, text->length + count + 1);
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

static void add(struct text *text, const char *words)
{
    add_bytes(text, words, strlen(words));
}

static void add_string(struct text *text, const json_t *string)
{
    static const char *const escapes[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t"
    };
    const char *bytes = json_string_value(string);
    size_t length = json_string_length(string);
    add(text, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < 128 && escapes[c]) {
            add(text, escapes[c]);
        } else if (c < 0x20 || c == 0x7f) {
            char code[8];
            snprintf(code, sizeof code, "\\u%04x", c);
            add(text, code);
        } else {
            add_bytes(text, bytes + i, 1);
        }
    }
    add(text, "\"");
}

/* The shortest decimal that reads back as `value`. Whole numbers up to 2^53 carry no
 * exponent. */
static void add_real(struct text *text, double value)
{
    char digits[40];
    if (value == 0) {
        add(text, "0");
        return;
    }
    if (fabs(value) <= 0x1p53 && value == floor(value)) {
        snprintf(digits, sizeof digits, "%.0f", value);
        add(text, digits);
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    add(text, digits);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys of `object` in order; the caller frees the array. */
static const char **sorted_keys(json_t *object)
{
    const char **keys = xcalloc(json_object_size(object), sizeof *keys);
    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value)
        keys[count++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    return keys;
}

static void add_newline(struct text *text, int depth)
{
    add(text, "\n");
    for (int i = 0; i < depth; i++)
        add(text, "  ");
}

/* Lists of plain numbers stay on one line. */
static bool is_plain_list(const json_t *array)
{
    size_t i;
    json_t *value;
    json_array_foreach ((json_t *)(uintptr_t)array, i, value)
        if (!json_is_number(value))
            return false;
    return true;
}

/* `depth` is negative for canonical text. */
static void add_value(struct text *text, const json_t *json, int depth);

static void add_array(struct text *text, const json_t *json, int depth)
{
    bool one_line = depth < 0 || is_plain_list(json);
    add(text, "[");
    for (size_t i = 0; i < json_array_size(json); i++) {
        if (i)
            add(text, depth >= 0 && one_line ? ", " : ",");
        if (!one_line)
            add_newline(text, depth + 1);
        add_value(text, json_array_get(json, i), depth < 0 ? depth : depth + 1);
    }
    if (!one_line)
        add_newline(text, depth);
    add(text, "]");
}

static void add_object(struct text *text, const json_t *json, int depth)
{
    auto_free const char **keys = sorted_keys((json_t *)(uintptr_t)json);
    size_t count = json_object_size(json);
    add(text, "{");
    for (size_t i = 0; i < count; i++) {
        if (i)
            add(text, ",");
        if (depth >= 0)
            add_newline(text, depth + 1);
        json_auto_t *key = json_string(keys[i]);
        add_string(text, key);
        add(text, depth < 0 ? ":" : ": ");
        add_value(text, json_object_get(json, keys[i]), depth < 0 ? depth : depth + 1);
    }
    if (depth >= 0 && count)
        add_newline(text, depth);
    add(text, "}");
}

static void add_value(struct text *text, const json_t *json, int depth)
{
    char digits[32];
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        add_object(text, json, depth);
        return;
    case JSON_ARRAY:
        add_array(text, json, depth);
        return;
    case JSON_STRING:
        add_string(text, json);
        return;
    case JSON_INTEGER:
        snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json));
        add(text, digits);
        return;
    case JSON_REAL:
        add_real(text, json_real_value(json));
        return;
    case JSON_TRUE:
        add(text, "true");
        return;
    case JSON_FALSE:
        add(text, "false");
        return;
    case JSON_NULL:
        add(text, "null");
        return;
    }
}

char *het_json_canonical(const json_t *json)
{
    struct text text = { 0 };
    add_value(&text, json, -1);
    return text.bytes;
}

char *het_json_pretty(const json_t *json)
{
    struct text text = { 0 };
    add_value(&text, json, 0);
    add(&text, "\n");
    return text.bytes;
}

json_t *het_json_pack(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    json_t *json = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    assert(json);
    return json;
}

json_t *het_json_u64(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *het_json_text(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    auto_free char *plain = xstrdup(text);
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(plain);
}

/* ---- views ---- */

struct het_view het_view_root(const json_t *json)
{
    return (struct het_view){ .json = json };
}

static const json_t *present(const json_t *json)
{
    return json_is_null(json) ? NULL : json;
}

struct het_view het_view_get(const struct het_view *object, const char *key)
{
    return (struct het_view){ .json = present(json_object_get(object->json, key)),
                              .parent = object,
                              .key = key };
}

struct het_view het_view_at(const struct het_view *array, size_t index)
{
    return (struct het_view){ .json = present(json_array_get(array->json, index)),
                              .parent = array,
                              .index = index };
}

/* Writes the path of `view` into `out`, cut when it is longer. */
static void print_path(const struct het_view *view, char *out, size_t size)
{
    out[0] = '\0';
    if (!view->parent)
        return;
    print_path(view->parent, out, size);
    size_t length = strlen(out);
    if (view->key)
        snprintf(out + length, size - length, "%s%s", length ? "." : "", view->key);
    else
        snprintf(out + length, size - length, "[%zu]", view->index);
}

int het_view_wrap(const struct het_view *view, struct het_error *err)
{
    char path[512];
    print_path(view, path, sizeof path);
    if (!path[0])
        return -1;
    het_error_locate(err, path);
    return het_wrap(err, "%s", path);
}

int het_view_fail(const struct het_view *view, struct het_error *err, const char *format,
                  ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    het_fail(err, HET_BAD_INPUT, "%s", message);
    return het_view_wrap(view, err);
}

static const char *type_name(const json_t *json)
{
    static const char *const names[] = { "an object", "a list", "a text", "a number",
                                         "a number",  "true",   "false",  "null" };
    return names[json_typeof(json)];
}

int het_view_need(const struct het_view *view, struct het_error *err)
{
    return view->json ? 0 : het_view_fail(view, err, "is missing");
}

int het_view_object(const struct het_view *view, struct het_error *err)
{
    if (view->json && !json_is_object(view->json))
        return het_view_fail(view, err, "must be an object, is %s",
                             type_name(view->json));
    return 0;
}

/* "a, b, c", with `last` before the last of them. */
static char *join_names(const char *const *names, const char *last)
{
    char *joined = xstrdup(names[0]);
    for (size_t i = 1; names[i]; i++) {
        auto_free char *before = joined;
        joined = xasprintf("%s%s%s", before, names[i + 1] ? ", " : last, names[i]);
    }
    return joined;
}

static int fail_unknown(const struct het_view *view, const char *key,
                        const char *const *names, struct het_error *err)
{
    const struct het_view member = { .parent = view, .key = key };
    auto_free char *known = join_names(names, ", ");
    return het_view_fail(&member, err, "unknown field; known are %s", known);
}

int het_view_members(const struct het_view *view, const char *const *names,
                     struct het_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)view->json, key, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key))
            i++;
        if (!names[i])
            return fail_unknown(view, key, names, err);
    }
    return 0;
}

int het_view_array(const struct het_view *view, size_t most, size_t *ret_count,
                   struct het_error *err)
{
    if (!view->json)
        return 0;
    if (!json_is_array(view->json))
        return het_view_fail(view, err, "must be a list, is %s", type_name(view->json));
    size_t count = json_array_size(view->json);
    if (count > most)
        return het_view_fail(view, err, "has %zu entries, at most %zu are allowed", count,
                             most);
    *ret_count = count;
    return 0;
}

static int check_name(const struct het_view *view, struct het_error *err)
{
    if (!json_is_string(view->json))
        return het_view_fail(view, err, "must be a text, is %s", type_name(view->json));
    const char *text = json_string_value(view->json);
    size_t length = strlen(text);
    if (!length || length > HET_MAX_NAME_BYTES)
        return het_view_fail(view, err, "must be 1 to %u bytes long, is %zu",
                             HET_MAX_NAME_BYTES, length);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return het_view_fail(view, err, "must not contain control characters");
    return 0;
}

int het_view_name(const struct het_view *view, struct het_arena *arena, const char **ret,
                  struct het_error *err)
{
    if (!view->json)
        return 0;
    if (check_name(view, err) < 0)
        return -1;
    *ret = het_arena_strdup(arena, json_string_value(view->json));
    return 0;
}

int het_view_choice(const struct het_view *view, const char *const *names, int *ret,
                    struct het_error *err)
{
    if (!view->json)
        return 0;
    if (check_name(view, err) < 0)
        return -1;
    for (int i = 0; names[i]; i++)
        if (!strcmp(json_string_value(view->json), names[i])) {
            *ret = i;
            return 0;
        }
    auto_free char *known = join_names(names, " or ");
    return het_view_fail(view, err, "must be %s", known);
}

/* The number that `view` is or spells out; NAN if it is none. */
static double read_number(const struct het_view *view)
{
    if (json_is_number(view->json))
        return json_number_value(view->json);
    const char *text = json_string_value(view->json);
    if (!text || !*text || strspn(text, "0123456789.eE+-") != strlen(text))
        return NAN;
    char *end;
    double value = strtod(text, &end);
    return *end ? NAN : value;
}

int het_view_number(const struct het_view *view, double low, double high, double *ret,
                    struct het_error *err)
{
    if (!view->json)
        return 0;
    double value = read_number(view);
    if (isnan(value))
        return het_view_fail(view, err, "must be a number, is %s", type_name(view->json));
    if (!(value >= low && value <= high))
        return het_view_fail(view, err, "must be %g to %g, is %g", low, high, value);
    *ret = value;
    return 0;
}

int het_view_bandwidth(const struct het_view *object, const char *key, double *ret,
                       struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    double gigabytes = 0;
    if (het_view_number(&view, 1e-6, MAX_GB_S, &gigabytes, err) < 0)
        return -1;
    if (view.json)
        *ret = gigabytes * BYTES_PER_GB;
    return 0;
}

int het_view_gibibytes(const struct het_view *object, const char *key, double low,
                       uint64_t *ret, struct het_error *err)
{
    struct het_view view = het_view_get(object, key);
    double gibibytes = 0;
    if (het_view_number(&view, low, MAX_MEMORY_GIB, &gibibytes, err) < 0)
        return -1;
    if (view.json)
        *ret = (uint64_t)(gibibytes * BYTES_PER_GIB);
    return 0;
}

int het_view_u64(const struct het_view *view, uint64_t low, uint64_t high, uint64_t *ret,
                 struct het_error *err)
{
    if (!view->json)
        return 0;
    if (json_is_integer(view->json)) {
        json_int_t value = json_integer_value(view->json);
        if (value < 0 || (uint64_t)value < low || (uint64_t)value > high)
            return het_view_fail(
                view, err, "must be %llu to %llu, is %" JSON_INTEGER_FORMAT,
                (unsigned long long)low, (unsigned long long)high, value);
        *ret = (uint64_t)value;
        return 0;
    }
    if (!json_is_real(view->json) ||
        json_real_value(view->json) != floor(json_real_value(view->json)))
        return het_view_fail(view, err, "must be a whole number");
    double value = json_real_value(view->json);
    /* Reals are exact up to 2^53 only; nothing that is counted here is larger. */
    if (value < (double)low || value > (double)high || value > 0x1p53)
        return het_view_fail(view, err, "must be %llu to %llu, is %g",
                             (unsigned long long)low, (unsigned long long)high, value);
    *ret = (uint64_t)value;
    return 0;
}

int het_view_u32(const struct het_view *view, uint32_t low, uint32_t high, uint32_t *ret,
                 struct het_error *err)
{
    uint64_t value = *ret;
    if (het_view_u64(view, low, high, &value, err) < 0)
        return -1;
    *ret = (uint32_t)value;
    return 0;
}

int het_view_i32(const struct het_view *view, int32_t low, int32_t high, int32_t *ret,
                 struct het_error *err)
{
    double value = *ret;
    if (het_view_number(view, low, high, &value, err) < 0)
        return -1;
    if (value != floor(value))
        return het_view_fail(view, err, "must be a whole number");
    *ret = (int32_t)value;
    return 0;
}

int het_view_bool(const struct het_view *view, bool *ret, struct het_error *err)
{
    if (!view->json)
        return 0;
    if (!json_is_boolean(view->json))
        return het_view_fail(view, err, "must be true or false");
    *ret = json_is_true(view->json);
    return 0;
}
