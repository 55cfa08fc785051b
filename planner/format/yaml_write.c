#include "planner/format/yaml_write.h"

#include "planner/base/arena.h"
#include "planner/base/text_writer.h"
#include "planner/format/json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- one value ---- */

/* Words that YAML 1.1 takes for something else, in any case of letters. */
static bool is_reserved(const char *text)
{
    static const char *const words[] = { "y",   "n",    "yes",   "no",  "on",
                                         "off", "true", "false", "null" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(words[i], text))
            return true;
    return false;
}

/* Whether a string means itself without quotes: a word of letters, digits and - _ . /
 * that begins with a letter. */
static bool is_plain(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_./";
    return *text && strchr(letters, *text) && strspn(text, more) == strlen(text) &&
           !is_reserved(text);
}

/* What is not plain is as in JSON, which YAML reads too. */
static void put_scalar(struct het_writer *out, const json_t *json)
{
    const char *text = json_string_value(json);
    if (text && is_plain(text)) {
        het_writer_put(out, "%s", text);
        return;
    }
    auto_free char *quoted = het_json_canonical(json);
    het_writer_put(out, "%s", quoted);
}

static void put_key(struct het_writer *out, const char *key)
{
    json_auto_t *text = json_string(key);
    put_scalar(out, text);
    het_writer_put(out, ":");
}

/* ---- on one line ---- */

static bool is_scalar(const json_t *json)
{
    return !json_is_object(json) && !json_is_array(json);
}

/* An object or list without objects and lists in it. */
static bool is_flat(const json_t *json)
{
    const char *key;
    json_t *child;
    size_t i;
    json_array_foreach (json, i, child)
        if (!is_scalar(child))
            return false;
    json_object_foreach ((json_t *)(uintptr_t)json, key, child)
        if (!is_scalar(child))
            return false;
    return true;
}

static void put_flat(struct het_writer *out, const json_t *json)
{
    const char *key, *separator = "";
    json_t *child;
    size_t i;
    het_writer_put(out, json_is_array(json) ? "[" : "{");
    json_array_foreach (json, i, child) {
        het_writer_put(out, "%s", separator);
        put_scalar(out, child);
        separator = ", ";
    }
    json_object_foreach ((json_t *)(uintptr_t)json, key, child) {
        het_writer_put(out, "%s", separator);
        put_key(out, key);
        het_writer_put(out, " ");
        put_scalar(out, child);
        separator = ", ";
    }
    het_writer_put(out, json_is_array(json) ? "]" : "}");
}

/* ---- over several lines ---- */

static void put_lines(struct het_writer *out, const json_t *json, int indent);

/* What stands behind "key:" or a dash, to the end of the line at least. `indent` is that
 * of the lines below. */
static void put_value(struct het_writer *out, const json_t *json, int indent,
                      bool is_entry)
{
    bool is_empty = !json_object_size(json) && !json_array_size(json);
    if (is_scalar(json)) {
        het_writer_put(out, " ");
        put_scalar(out, json);
        het_writer_put(out, "\n");
    } else if (is_empty || (is_flat(json) && (is_entry || json_is_array(json)))) {
        het_writer_put(out, " ");
        put_flat(out, json);
        het_writer_put(out, "\n");
    } else {
        het_writer_put(out, "\n");
        put_lines(out, json, indent);
    }
}

/* `indent` is that of the mapping; `blanks` of its first line may be fewer. */
static void put_member(struct het_writer *out, const char *key, const json_t *value,
                       int blanks, int indent)
{
    het_writer_put(out, "%*s", blanks, "");
    put_key(out, key);
    put_value(out, value, json_is_array(value) ? indent : indent + 2, false);
}

/* An entry that is a mapping begins beside its dash. */
static void put_entry(struct het_writer *out, const json_t *entry, int indent)
{
    het_writer_put(out, "%*s-", indent, "");
    if (!json_object_size(entry) || is_flat(entry)) {
        put_value(out, entry, indent + 2, true);
        return;
    }
    const char *key;
    json_t *child;
    int blanks = 1;
    json_object_foreach ((json_t *)(uintptr_t)entry, key, child) {
        put_member(out, key, child, blanks, indent + 2);
        blanks = indent + 2;
    }
}

static void put_lines(struct het_writer *out, const json_t *json, int indent)
{
    const char *key;
    json_t *child;
    size_t i;
    json_array_foreach (json, i, child)
        put_entry(out, child, indent);
    json_object_foreach ((json_t *)(uintptr_t)json, key, child)
        put_member(out, key, child, indent, indent);
}

char *het_yaml_text(const json_t *object)
{
    struct het_writer out = { 0 };
    if (json_object_size(object))
        put_lines(&out, object, 0);
    else
        het_writer_put(&out, "{}\n");
    return out.text;
}
