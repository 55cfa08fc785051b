/* What an API server sends: lists, lines of a watch, objects. The parts that are found
 * without decoding are those that decoding finds. */
#include "tests/fuzz/fuzz.h"

#include "controller/kube/decode.h"

#include <stdlib.h>
#include <string.h>

/* Items seen, against those of the decoded list; NULL: it cannot be decoded. */
struct items {
    const char *text, *end;
    const json_t *list;
    bool is_plain; /* no escapes: names are what they look like */
    size_t count;
};

static void check_identity(const char *text, size_t length, const json_t *object,
                           bool is_plain)
{
    struct kube_identity identity;
    if (kube_scan_identity(&kube_pod, text, length, &identity) < 0 || !object)
        return;
    assert(*identity.name && *identity.ns);
    assert(!is_plain || !strcmp(identity.name, kube_name(object)));
    assert(!is_plain || !strcmp(identity.ns, kube_namespace(object)));
}

static void on_item(void *context, const char *text, size_t length)
{
    struct items *items = context;
    assert(text >= items->text && text + length <= items->end);
    struct het_error err;
    json_auto_t *object = kube_decode(text, length, &err);
    if (!object)
        fuzz_assert_error(&err);
    check_identity(text, length, object, items->is_plain);
    if (items->list && object)
        assert(json_equal(object, json_array_get(items->list, items->count)));
    items->count++;
}

static void read_list(const char *bytes, size_t length, const json_t *whole,
                      bool is_plain)
{
    struct items items = { .text = bytes,
                           .end = bytes + length,
                           .list = is_plain ? json_object_get(whole, "items") : NULL,
                           .is_plain = is_plain };
    struct het_error err;
    char *version, *more;
    if (kube_split_list(&kube_pod, bytes, length, on_item, &items, &version, &more,
                        &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    assert(*version && more);
    assert(!items.list || items.count == json_array_size(items.list));
    free(version);
    free(more);
}

static void read_event(const char *bytes, size_t length, bool is_plain)
{
    char type[16];
    const char *object;
    size_t object_length;
    struct het_error err;
    if (kube_split_event(bytes, length, type, &object, &object_length, &err) < 0) {
        fuzz_assert_error(&err);
        return;
    }
    assert(memchr(type, '\0', sizeof type));
    assert(object >= bytes && object + object_length <= bytes + length);
    json_auto_t *decoded = kube_decode(object, object_length, &err);
    check_identity(object, object_length, decoded, is_plain);
    if (decoded)
        kube_outcome_name(kube_status_outcome(decoded));
}

void fuzz_one(const char *bytes, size_t length)
{
    struct het_error err;
    bool is_plain = !length || !memchr(bytes, '\\', length);
    json_auto_t *whole = kube_decode(bytes, length, &err);
    if (!whole)
        fuzz_assert_error(&err);
    else
        kube_status_outcome(whole);
    read_list(bytes, length, whole, is_plain);
    read_event(bytes, length, is_plain);
}
