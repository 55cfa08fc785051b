/* logarithm.h - logarithms that are the same to the last bit on every machine. libm
 * selects code by CPU (with or without fused multiply-add), so the last bits of its
 * logarithms, and with them a plan, could differ between machines. These add, multiply
 * and divide only, in a fixed order; the compiler fuses nothing (-ffp-contract=off). */
#ifndef HET_BASE_LOGARITHM_H
#define HET_BASE_LOGARITHM_H

/* To base e and to base 2, of a finite number above 0; 0 gives minus infinity. Within
 * 4e-16 of the exact value, in proportion to it, or 4e-16 where it is below 1. To base 2
 * a power of two gives exactly its exponent. */
double het_log(double x);
double het_log2(double x);

#endif
