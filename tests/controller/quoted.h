/* quoted.h - JSON that can be read in C. */
#ifndef TESTS_CONTROLLER_QUOTED_H
#define TESTS_CONTROLLER_QUOTED_H

#include <jansson.h>

/* Reads JSON written with ' for "; aborts if it is none. A new reference. */
json_t *quoted(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
