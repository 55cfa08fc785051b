/* digest.h - a number for a text: for tables by key, and to see that something has
 * changed. Whoever wants two texts to look alike can make them. Pure.
 * Source: Fowler, Noll, Vo: FNV-1a, 64 bits. */
#ifndef CONTROLLER_BASE_DIGEST_H
#define CONTROLLER_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Chained through `digest`; start with 0. */
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t length);
/* With its NUL, so that texts in a row are told apart. */
uint64_t digest_text(uint64_t digest, const char *text);

#endif
