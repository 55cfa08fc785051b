#include "planner/base/logarithm.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN_2         0x1.62e42fefa39efp-1
#define LOG2_E       0x1.71547652b82fep+0
#define SQRT_2       0x1.6a09e667f3bcdp+0
#define MANTISSA     52
#define EXPONENT_ONE 1023 /* the exponent field of numbers from 1 to 2 */

/* x = mantissa * 2^exponent, with the mantissa between the roots of 1/2 and 2. */
static double split(double x, int *ret_exponent)
{
    int exponent = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p54;
        exponent = -54;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    exponent += (int)(bits >> MANTISSA) - EXPONENT_ONE;
    bits = (bits & ((UINT64_C(1) << MANTISSA) - 1)) | (uint64_t)EXPONENT_ONE << MANTISSA;
    double mantissa;
    memcpy(&mantissa, &bits, sizeof mantissa);
    if (mantissa > SQRT_2) {
        mantissa /= 2;
        exponent++;
    }
    *ret_exponent = exponent;
    return mantissa;
}

/* ln m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1): s^2 is at
 * most 0.0295, so what follows s^23 is below a 1e-18th of the sum. */
#define LAST_POWER 23

static double log_near_one(double mantissa)
{
    double s = (mantissa - 1) / (mantissa + 1), square = s * s, sum = 0;
    for (int power = LAST_POWER; power > 1; power -= 2)
        sum = (sum + 1.0 / power) * square;
    return 2 * (s + s * sum);
}

double het_log(double x)
{
    assert(x >= 0 && x < HUGE_VAL);
    if (x <= 0)
        return -HUGE_VAL;
    int exponent;
    double mantissa = split(x, &exponent);
    return exponent * LN_2 + log_near_one(mantissa);
}

double het_log2(double x)
{
    assert(x >= 0 && x < HUGE_VAL);
    if (x <= 0)
        return -HUGE_VAL;
    int exponent;
    double mantissa = split(x, &exponent);
    return exponent + log_near_one(mantissa) * LOG2_E;
}
