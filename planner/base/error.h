/* error.h - how a function of ours says what went wrong.
 *
 * A function that can fail returns 0 for success and -1 for failure. On failure it has
 * filled the `struct het_error` it was given and left its outputs alone; on success it
 * has left the error alone. The function that finds the cause calls het_fail; callers
 * that know the context call het_wrap on the way out, so that a message reads outside in:
 *
 *     profile opt350/DeviceType.A100_tp1_bs1.json: model.num_layers: expected ... */
#ifndef HET_BASE_ERROR_H
#define HET_BASE_ERROR_H

enum het_error_code {
    HET_OK = 0,
    HET_BAD_INPUT,  /* input is wrong; the message says which field and what to change.
                       hetplan exits 2 */
    HET_NO_PROFILE, /* no measurement for a (device type, tp, microbatch) */
    HET_NO_PLAN,    /* no plan fits; the message says what is missing. hetplan exits 1 */
    HET_CUT_SHORT,  /* told to stop before there was a plan. hetplan exits 3 */
    HET_IO,         /* a file, pipe or connection failed */
    HET_NOT_FOUND,  /* the API server has no such object */
    HET_CONFLICT,   /* the object changed, or exists already */
    HET_DENIED,     /* 401, 403, or an admission rule refused */
};

struct het_error {
    enum het_error_code code;
    /* One line of UTF-8, cut with "..." when too long; control characters and bytes that
     * are not UTF-8, in what a message quotes, are '?'. */
    char message[1024];
    /* The field it is about, "job.constraints.dataParallel.minReplicas", cleaned as the
     * message is; "" if there is none or it is not known. */
    char path[256];
};

/* Fills `err` (may be NULL) and returns -1, so that a failing function can end with
 * `return het_fail(err, ...)`. */
int het_fail(struct het_error *err, enum het_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message of `err` (may be NULL) and returns -1. */
int het_wrap(struct het_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts `outer` before the path of `err` (may be NULL): "spec" before "layers" or "[3]".
 * The message does not change. */
void het_error_locate(struct het_error *err, const char *outer);

#endif
