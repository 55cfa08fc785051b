/* refusal.h - what an API server answers when it refuses: metav1.Status objects, worded
 * as in k8s.io/apimachinery/pkg/api/errors, because clients read them. Each function
 * returns a new reference. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_REFUSAL_H
#define CONTROLLER_SIMULATE_API_SERVER_REFUSAL_H

#include <jansson.h>

/* The object of a Status: "pods" and "heterotrain.io" (or ""), and its name. */
struct refusal_subject {
    const char *group, *plural, *kind, *name;
};

json_t *refusal_of(int code, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
json_t *refusal_bad_request(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
json_t *refusal_not_found(const struct refusal_subject *subject);
json_t *refusal_already_exists(const struct refusal_subject *subject);
json_t *refusal_conflict(const struct refusal_subject *subject, const char *why);
/* 422 from a list of causes {reason, field, message}; takes ownership of it. */
json_t *refusal_invalid(const struct refusal_subject *subject, json_t *causes);
/* 410 of a list or of a watch that began too long ago. */
json_t *refusal_expired(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 504 for a resourceVersion in the future. */
json_t *refusal_version_too_large(unsigned long long asked, unsigned long long current);
/* 200 after a deletion that removed the object. */
json_t *refusal_none(const struct refusal_subject *subject, const char *uid);

int refusal_code(const json_t *status);

/* Adds one cause to the list for refusal_invalid. `reason` is "FieldValueInvalid",
 * "FieldValueRequired", "FieldValueForbidden", ...; the message begins as Kubernetes
 * writes it: "Invalid value: ...", "Required value", "Forbidden: ...". */
void refusal_add_cause(json_t *causes, const char *reason, const char *field,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
