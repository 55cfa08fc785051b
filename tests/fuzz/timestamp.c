/* Times of Kubernetes objects: what was read is written and read as the same time. */
#include "tests/fuzz/fuzz.h"

#include "controller/base/timestamp.h"

void fuzz_one(const char *bytes, size_t length)
{
    auto_free char *text = fuzz_text(bytes, length);
    int64_t ms, again;
    char written[TIMESTAMP_SIZE];
    if (timestamp_parse(text, &ms) < 0)
        return;
    timestamp_format_micro(ms, written);
    assert(!timestamp_parse(written, &again) && again == ms);
    timestamp_format(ms, written);
    assert(!timestamp_parse(written, &again) && again <= ms && again > ms - 1000);
}
