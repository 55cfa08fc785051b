/* logarithm.h - logarithms that are the same to the last bit on every machine. libm's
 * choose their code by what the CPU can do (with or without fused multiply-add), so that
 * their last bits, and with them a plan, could differ between two machines. These add,
 * multiply and divide only, in a fixed order; the compiler fuses nothing
 * (-ffp-contract=off). */
#ifndef HET_BASE_LOGARITHM_H
#define HET_BASE_LOGARITHM_H

/* To base e and to base 2, of a finite number above 0; 0 gives minus infinity. Within
 * 4e-16 of the exact value, in proportion to it, or 4e-16 where it is below 1. A power of
 * two has its exponent, exactly, to base 2. */
double het_log(double x);
double het_log2(double x);

#endif
