/* exposition.h - reads Prometheus' text format (0.0.4) strictly, by its grammar and not
 * by what metrics.c does: HELP and TYPE before the samples of their metric and once,
 * names, escapes, numbers, no series twice, histograms that are whole and cumulative. */
#ifndef TESTS_EXPOSITION_H
#define TESTS_EXPOSITION_H

#include <stddef.h>

struct exposition;

/* Fails the test with the line and what is wrong with it. */
struct exposition *exposition_read(const char *text);
void exposition_free(struct exposition *exposition);

/* The value of the sample NAME or NAME{LABEL="VALUE",...}, labels as in the text but
 * unescaped; NaN: there is none. */
double exposition_value(const struct exposition *exposition, const char *series);
/* "counter", "gauge", "histogram"; "" for a metric that is not named. */
const char *exposition_type(const struct exposition *exposition, const char *name);
size_t exposition_samples(const struct exposition *exposition);

#endif
