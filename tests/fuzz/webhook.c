/* An AdmissionReview, as anybody who reaches the webhook may have sent it. */
#include "controller/kube/decode.h"
#include "tests/fuzz/fuzz.h"

#include "controller/base/object.h"
#include "controller/serve/admission_verdict.h"

#include <string.h>

static void check_verdict(struct het_arena *arena, struct admission_verdict *verdict,
                          const json_t *review)
{
    if (verdict->decision == ADMISSION_VERDICT_ASK) {
        assert(*object_text(verdict->question, "spec.user"));
        assert(
            !strcmp(object_text(verdict->question, "spec.resourceAttributes.namespace"),
                    object_text(review, "request.object.metadata.namespace")));
        /* What the API server says is read from the same input. */
        admission_verdict_hear(arena, review, verdict);
        assert((verdict->decision == ADMISSION_VERDICT_ALLOW) <=
               object_is_true(review, "status.allowed"));
    }
    json_auto_t *answer = admission_verdict_answer(verdict);
    bool is_allowed = object_is_true(answer, "response.allowed");
    assert(is_allowed == (verdict->decision == ADMISSION_VERDICT_ALLOW));
    assert(is_allowed || *object_text(answer, "response.status.message"));
    assert(
        !strcmp(object_text(answer, "response.uid"), object_text(review, "request.uid")));
    fuzz_assert_round_trip(answer);
}

void fuzz_one(const char *bytes, size_t length)
{
    struct het_error err;
    json_auto_t *review = kube_decode(bytes, length, &err);
    if (!review)
        return;
    struct het_arena *arena = het_arena_new();
    struct admission_verdict verdict;
    struct tenancy tenancy = { .settings = settings_default(), .server_minor = 34 };
    if (admission_verdict_review(arena, &tenancy, review, &verdict, &err) < 0)
        fuzz_assert_error(&err);
    else
        check_verdict(arena, &verdict, review);
    het_arena_free(arena);
}
