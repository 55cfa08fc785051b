/* timestamp.h - times as Kubernetes writes them. Inside, a time is int64_t milliseconds
 * since 1970 (UTC); this is where they become text and back. */
#ifndef CONTROLLER_BASE_TIMESTAMP_H
#define CONTROLLER_BASE_TIMESTAMP_H

#include <stdint.h>

enum { TIMESTAMP_SIZE = 64 }; /* bytes of a buffer for either form */

/* metav1.Time, seconds, rounded down: "2026-01-01T00:00:00Z". */
void timestamp_format(int64_t ms, char ret_text[TIMESTAMP_SIZE]);
/* metav1.MicroTime, as in Events and Leases: "2026-01-01T00:00:00.000000Z". */
void timestamp_format_micro(int64_t ms, char ret_text[TIMESTAMP_SIZE]);
/* Reads RFC 3339 with any fraction and offset, cut to milliseconds. 0, or -1 if `text`
 * (may be NULL) is not such a time, or not in the years 0 to 9999 of UTC; then `ret_ms`
 * is left alone. */
int timestamp_parse(const char *text, int64_t *ret_ms);

#endif
