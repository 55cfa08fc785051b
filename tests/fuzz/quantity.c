/* Quantities ("500m", "16Gi"): planner and controller read them alike. */
#include "tests/fuzz/fuzz.h"

#include "controller/base/quantity.h"

void fuzz_one(const char *bytes, size_t length)
{
    auto_free char *text = fuzz_text(bytes, length);
    int64_t units = het_quantity_parse(text, 0), milli = het_quantity_parse(text, 1);
    int64_t other = -1;
    int result = quantity_parse(text, &other);
    assert((units < 0) == (milli < 0));
    assert(units <= milli);
    assert((milli < 0) == (result < 0));
    assert(result < 0 || other == milli);
}
