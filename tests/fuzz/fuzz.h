/* fuzz.h - what the fuzz targets of this folder share. A target is one file with one
 * fuzz_one(): it puts the bytes into a parser and asserts what must hold of whatever
 * comes out. Crashes, sanitizer reports, leaks, failed assertions and more than ten
 * seconds for one input are findings. fuzz.c feeds it, and mutates JSON as JSON. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "planner/format/json.h"
#include "planner/modules.h"

#include <assert.h>
#include <stddef.h>

/* One input; no NUL behind it. */
void fuzz_one(const char *bytes, size_t length);

/* The JSON in the input, NULL if there is none. A new reference. */
json_t *fuzz_decode(const char *bytes, size_t length);
/* The input with a NUL behind it; the caller frees it. */
char *fuzz_text(const char *bytes, size_t length);
/* Whether `err` is one that people can read: a code, and one line of UTF-8. */
void fuzz_assert_error(const struct het_error *err);
/* That `json` is written as JSON text and reads back as the same. */
void fuzz_assert_round_trip(const json_t *json);

#endif
