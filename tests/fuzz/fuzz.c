#include "tests/fuzz/fuzz.h"

#include "controller/base/log.h"

#include <stdlib.h>
#include <string.h>

/* What libFuzzer calls, and what it lends. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_out_size,
                                 unsigned int seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    json_object_seed(1); /* the same input takes the same path in every process */
    log_set_levels("off", NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_one((const char *)data, size);
    return 0;
}

/* ---- for targets ---- */

json_t *fuzz_decode(const char *bytes, size_t length)
{
    json_t *json;
    return het_json_decode(bytes, length, "input", &json, NULL) < 0 ? NULL : json;
}

char *fuzz_text(const char *bytes, size_t length)
{
    char *text = xmalloc(length + 1);
    memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}

void fuzz_assert_error(const struct het_error *err)
{
    assert(err->code != HET_OK);
    assert(*err->message);
    assert(!strpbrk(err->message, "\n\r"));
    json_auto_t *text = json_string(err->message);
    assert(text);
}

void fuzz_assert_round_trip(const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    json_auto_t *read = fuzz_decode(text, strlen(text));
    assert(read);
    auto_free char *again = het_json_canonical(read);
    assert(!strcmp(text, again));
}

/* ---- mutation of JSON as JSON ---- */

/* Bytes turned at random are rarely JSON still, so most would test the decoder alone. An
 * input that is an object or an array is therefore mostly mutated as a tree. */

enum { MAX_SLOTS = 8192 };

/* A place for a value: a member of an object or an element of an array. */
struct slot {
    json_t *container;
    const char *key; /* NULL: an array */
    size_t index;
};

struct slots {
    struct slot at[MAX_SLOTS];
    size_t count;
};

static uint64_t state;

static size_t random_below(size_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return bound ? (size_t)(state >> 33) % bound : 0;
}

static void find_slots(json_t *json, struct slots *slots)
{
    const char *key;
    size_t i;
    json_t *value;
    json_object_foreach (json, key, value) {
        if (slots->count == MAX_SLOTS)
            return;
        slots->at[slots->count++] = (struct slot){ .container = json, .key = key };
        find_slots(value, slots);
    }
    json_array_foreach (json, i, value) {
        if (slots->count == MAX_SLOTS)
            return;
        slots->at[slots->count++] = (struct slot){ .container = json, .index = i };
        find_slots(value, slots);
    }
}

static json_t *slot_get(const struct slot *slot)
{
    return slot->key ? json_object_get(slot->container, slot->key)
                     : json_array_get(slot->container, slot->index);
}

/* Takes `value`, which may be NULL: nothing happens. */
static void slot_set(const struct slot *slot, json_t *value)
{
    if (slot->key)
        json_object_set_new(slot->container, slot->key, value);
    else
        json_array_set_new(slot->container, slot->index, value);
}

static json_t *odd_value(void)
{
    static const char *const values[] = {
        "null",
        "true",
        "false",
        "0",
        "1",
        "2",
        "-1",
        "3.5",
        "1e300",
        "1e-300",
        "-0.0",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "1e19",
        "\"\"",
        "\"a\"",
        "\"1\"",
        "\"1e400\"",
        "\"a100-0\"",
        "\"\\u0000\"",
        "\"True\"",
        "\"2026-01-01T00:00:00Z\"",
        "\"9223372036854775807\"",
        "\"100m\"",
        "\"nvidia.com/gpu\"",
        "\"\\u00e9\\u20ac\\n\\u007f\"",
        "[]",
        "[0]",
        "[[]]",
        "[null]",
        "{}",
        "{\"\":0}",
    };
    const char *text = values[random_below(sizeof values / sizeof *values)];
    return json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* A string changed by libFuzzer, which knows what the code compares strings with. NULL if
 * it is UTF-8 no longer. */
static json_t *mutate_string(const json_t *string)
{
    uint8_t bytes[512];
    size_t length = json_string_length(string);
    if (length > sizeof bytes / 2)
        length = sizeof bytes / 2;
    memcpy(bytes, json_string_value(string), length);
    length = LLVMFuzzerMutate(bytes, length, sizeof bytes);
    return json_stringn((const char *)bytes, length);
}

static json_t *mutate_number(const json_t *number)
{
    double real = json_number_value(number);
    json_int_t whole = json_is_integer(number) ? json_integer_value(number) : 0;
    switch (random_below(8)) {
    case 0:
        return json_integer((json_int_t)((uint64_t)whole + 1));
    case 1:
        return json_integer((json_int_t)((uint64_t)whole - 1));
    case 2:
        return json_integer((json_int_t)((uint64_t)whole * 2));
    case 3:
        return json_integer(whole / 2);
    case 4:
        return json_integer((json_int_t)random_below(40));
    case 5:
        return json_real(-real);
    case 6:
        return json_real(real * 1.5); /* NULL if it is infinite */
    default:
        return json_integer((json_int_t)((uint64_t)1 << random_below(64)));
    }
}

static json_t *mutate_value(const json_t *value)
{
    if (json_is_string(value) && random_below(3))
        return mutate_string(value);
    if (json_is_number(value) && random_below(3))
        return mutate_number(value);
    return odd_value();
}

static void mutate_slot(const struct slot *slot, const struct slots *slots)
{
    const struct slot *other = &slots->at[random_below(slots->count)];
    json_t *value = slot_get(slot);
    switch (random_below(8)) {
    case 0: /* away with it */
        if (slot->key)
            json_object_del(slot->container, slot->key);
        else
            json_array_remove(slot->container, slot->index);
        return;
    case 1: /* another's value in its place */
        slot_set(slot, json_deep_copy(slot_get(other)));
        return;
    case 2: /* another's value, or its own again, beside it */
        if (!slot->key)
            json_array_insert_new(
                slot->container, slot->index,
                json_deep_copy(random_below(2) ? value : slot_get(other)));
        else if (other->key)
            json_object_set_new(slot->container, other->key,
                                json_deep_copy(slot_get(other)));
        return;
    case 3: /* under another name */
        if (slot->key && other->key)
            json_object_set(slot->container, other->key, value);
        return;
    default:
        slot_set(slot, mutate_value(value));
        return;
    }
}

static json_t *decode_tree(const uint8_t *data, size_t size)
{
    return json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
}

/* Into `out`; 0 if it is longer than `most`. */
static size_t encode_tree(const json_t *json, uint8_t *out, size_t most)
{
    size_t length = json_dumpb(json, (char *)out, most, JSON_COMPACT | JSON_ENCODE_ANY);
    return length <= most ? length : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed)
{
    static struct slots slots;
    state = seed;
    json_auto_t *json = random_below(8) ? decode_tree(data, size) : NULL;
    for (size_t n = 1 + random_below(3); json && n; n--) {
        slots.count = 0;
        find_slots(json, &slots);
        if (slots.count)
            mutate_slot(&slots.at[random_below(slots.count)], &slots);
    }
    size_t length = json ? encode_tree(json, data, max_size) : 0;
    return length ? length : LLVMFuzzerMutate(data, size, max_size);
}

/* A part of the second in the place of a part of the first. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_out_size,
                                 unsigned int seed)
{
    static struct slots into, from;
    state = seed;
    json_auto_t *a = decode_tree(data1, size1), *b = decode_tree(data2, size2);
    if (a && b) {
        into.count = from.count = 0;
        find_slots(a, &into);
        find_slots(b, &from);
        if (into.count && from.count)
            slot_set(&into.at[random_below(into.count)],
                     json_deep_copy(slot_get(&from.at[random_below(from.count)])));
        return encode_tree(a, out, max_out_size);
    }
    /* Texts: the head of one, the tail of the other. */
    size_t head = random_below(size1 + 1), start = random_below(size2 + 1);
    size_t tail = size2 - start;
    if (head > max_out_size)
        head = max_out_size;
    if (tail > max_out_size - head)
        tail = max_out_size - head;
    if (head)
        memcpy(out, data1, head);
    if (tail)
        memcpy(out + head, data2 + start, tail);
    return head + tail;
}
