#include "controller/base/object.h"
#include "controller/cluster/kept_fields.h"
#include "tests/controller/quoted.h"

#include <check.h>

#define STATUS                                                                           \
    "'status': {'phase': 'Failed', 'qosClass': 'Guaranteed', 'conditions': [{'type': "   \
    "'DisruptionTarget', 'status': 'True'}], 'initContainerStatuses': [{'name': 'a'}], " \
    "'containerStatuses': [{'name': 'b'}]}"

/* What failurePolicy.rules are about. */
START_TEST(of_a_pod_of_ours_it_is_kept_how_it_ended)
{
    json_auto_t *pod = quoted(
        "{'metadata': {'name': 'p', 'ownerReferences': [{'apiVersion': "
        "'heterotrain.io/v1alpha1', 'kind': 'HeteroTrainingJob', 'name': 'j', 'uid': "
        "'u', 'controller': true}]}, 'spec': {'containers': [{'name': 'b'}]}, " STATUS
        "}");
    json_auto_t *kept = kept_fields_pod(pod);
    json_auto_t *expected = quoted("{" STATUS "}");
    object_remove(expected, "status.qosClass");
    ck_assert(
        json_equal(json_object_get(kept, "status"), json_object_get(expected, "status")));
}
END_TEST

START_TEST(of_a_pod_of_somebody_else_only_what_it_takes_is_kept)
{
    json_auto_t *pod = quoted("{'metadata': {'name': 'p', 'labels': {'a': 'b'}}, 'spec': "
                              "{'nodeName': 'n', 'containers': [{'name': 'c', "
                              "'resources': {'requests': {'cpu': '2'}}}]}, " STATUS "}");
    json_auto_t *kept = kept_fields_pod(pod);
    json_auto_t *expected =
        quoted("{'metadata': {'name': 'p'}, 'spec': {'nodeName': 'n', 'resources': "
               "{'requests': {'cpu': '2000m'}}}, 'status': {'phase': 'Failed'}}");
    ck_assert(json_equal(kept, expected));
}
END_TEST

Suite *test_kept_fields_suite(void)
{
    Suite *suite = suite_create("kept_fields");
    TCase *tests = tcase_create("pods");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, of_a_pod_of_ours_it_is_kept_how_it_ended);
    tcase_add_test(tests, of_a_pod_of_somebody_else_only_what_it_takes_is_kept);
    return suite;
}
