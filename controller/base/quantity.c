#include "controller/base/quantity.h"

#include "planner/modules.h"

#include <math.h>

int quantity_parse(const char *text, int64_t *ret_milli)
{
    int64_t milli = text ? het_quantity_parse(text, 1) : -1;
    if (milli < 0)
        return -1;
    *ret_milli = milli;
    return 0;
}

int64_t quantity_of(const json_t *value, int64_t fallback)
{
    int64_t milli = fallback;
    if (json_is_string(value)) {
        if (quantity_parse(json_string_value(value), &milli) < 0)
            return fallback;
        return milli;
    }
    if (!json_is_number(value) || json_number_value(value) < 0)
        return fallback;
    double thousandths = ceil(json_number_value(value) * 1e3);
    return thousandths >= (double)INT64_MAX ? INT64_MAX : (int64_t)thousandths;
}

int64_t quantity_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
