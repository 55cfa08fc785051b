#include "controller/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* long double holds 64 bits of mantissa: every int64 count of thousandths exactly. */
static const struct {
    const char *suffix;
    long double milli;
} units[] = {
    { "", 1e3L },
    { "m", 1.0L },
    { "u", 1e-3L },
    { "n", 1e-6L },
    { "k", 1e6L },
    { "M", 1e9L },
    { "G", 1e12L },
    { "T", 1e15L },
    { "P", 1e18L },
    { "E", 1e21L },
    { "Ki", 1e3L * 1024 },
    { "Mi", 1e3L * 1024 * 1024 },
    { "Gi", 1e3L * 1024 * 1024 * 1024 },
    { "Ti", 1e3L * 1024 * 1024 * 1024 * 1024 },
    { "Pi", 1e3L * 1024 * 1024 * 1024 * 1024 * 1024 },
    { "Ei", 1e3L * 1024 * 1024 * 1024 * 1024 * 1024 * 1024 },
};

/* The milli factor of what follows the digits: a unit, or a decimal exponent. */
static int factor_of(const char *suffix, long double *ret_milli)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!strcmp(suffix, units[i].suffix)) {
            *ret_milli = units[i].milli;
            return 0;
        }
    }
    if (*suffix != 'e' && *suffix != 'E')
        return -1;
    const char *digits = suffix + 1 + (suffix[1] == '+' || suffix[1] == '-');
    size_t count = strspn(digits, "0123456789");
    if (!count || count > 3 || digits[count])
        return -1;
    *ret_milli = powl(10.0L, strtold(suffix + 1, NULL)) * 1e3L;
    return 0;
}

int quantity_parse(const char *text, int64_t *ret_milli)
{
    if (!text)
        return -1;
    if (*text == '+')
        text++;
    size_t whole = strspn(text, "0123456789");
    size_t length = whole;
    size_t fraction = 0;
    if (text[length] == '.') {
        fraction = strspn(text + length + 1, "0123456789");
        length += 1 + fraction;
    }
    long double factor;
    if (whole + fraction == 0 || length > 40 || factor_of(text + length, &factor) < 0)
        return -1;
    char number[48];
    memcpy(number, text, length);
    number[length] = '\0';
    long double milli = ceill(strtold(number, NULL) * factor);
    *ret_milli = milli >= (long double)INT64_MAX ? INT64_MAX : (int64_t)milli;
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
