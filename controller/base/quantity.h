/* quantity.h - Kubernetes quantities ("500m", "64Gi", "1e3") as whole thousandths, so
 * that cpu, memory and GPU counts are compared and added without rounding twice. */
#ifndef CONTROLLER_BASE_QUANTITY_H
#define CONTROLLER_BASE_QUANTITY_H

#include <jansson.h>
#include <stdint.h>

/* Thousandths of `text`, rounded away from zero as Kubernetes does, clamped to
 * [0, INT64_MAX]: "2" is 2000, "500m" 500, "1Ki" 1024000. 0, or -1 if `text` (may be
 * NULL) is not a quantity or is negative; then `ret_milli` is left alone.
 * Source: the grammar in k8s.io/apimachinery/pkg/api/resource/quantity.go. */
int quantity_parse(const char *text, int64_t *ret_milli);
/* The same for a JSON value, which may be a string or a number (the API server accepts
 * both); NULL and everything else count as `fallback`. */
int64_t quantity_of(const json_t *value, int64_t fallback);
/* a + b, INT64_MAX if the sum is larger. */
int64_t quantity_add(int64_t a, int64_t b);

#endif
