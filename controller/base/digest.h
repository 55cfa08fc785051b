/* digest.h - a hash of a text, for tables by key and to detect changes. Not
 * cryptographic: collisions can be constructed. Pure. Source: Fowler, Noll, Vo: FNV-1a,
 * 64 bits. */
#ifndef CONTROLLER_BASE_DIGEST_H
#define CONTROLLER_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Chained through `digest`; start with 0. */
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t length);
/* Includes the NUL, so that the boundaries of chained texts count. */
uint64_t digest_text(uint64_t digest, const char *text);

#endif
