/* A HeteroTrainingJob as any client may have written it. */
#include "tests/fuzz/fuzz.h"

#include "controller/decision/children.h"

#include <string.h>

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *job = fuzz_decode(bytes, length);
    if (!job)
        return;
    struct job_spec spec;
    struct het_error err;
    const char *reason = NULL;
    job_spec_is_ours(job);
    job_spec_read_identity(job, &spec);
    assert(spec.ns && spec.name && spec.uid);
    if (job_spec_parse(job, &spec, &reason, &err) < 0) {
        fuzz_assert_error(&err);
        assert(!strcmp(reason, "InvalidSpec"));
    } else {
        assert((spec.profile_name || spec.architecture.layers) && spec.global_batch > 0);
        assert(spec.gpu_type_count <= JOB_SPEC_MAX_GPU_TYPES);
        assert(spec.debounce_ms >= 0 && spec.cooldown_ms >= 0);
        struct tenancy tenancy = { .settings = settings_default(), .server_minor = 34 };
        if (children_check_job(&tenancy, &spec, job, &reason, &err) < 0)
            fuzz_assert_error(&err);
    }
}
