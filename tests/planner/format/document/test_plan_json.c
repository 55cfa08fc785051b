#include "planner/format/document/plan_json.h"

#include "tests/planner/toy.h"

#include <check.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &problem);
    ck_assert_msg(json != NULL, "%d: %s: %s", problem.column, problem.text, text);
    return json;
}

static struct het_plan priced_plan(struct toy *toy)
{
    struct het_plan plan = toy_two_pipelines(toy);
    het_plan_fill_idle(toy->arena, &toy->cluster, &plan);
    static const struct het_peak_memory peaks[] = {
        { .stage = 1, .bytes = 5, .capacity_bytes = 9 }
    };
    plan.predicted = (struct het_prediction){ .iteration_s = 1.5,
                                              .samples_per_s = 8 / 1.5,
                                              .closed_form_s = 1.625,
                                              .lower_bound_s = 1,
                                              .from_iteration_s = 1.75,
                                              .pipeline_s = 1.25,
                                              .gradient_sync_s = 0.125,
                                              .optimizer_s = 0.125,
                                              .peak_memory = peaks,
                                              .peak_memory_count = 1 };
    plan.search = (struct het_search_report){ .effort = 10, .plans_priced = 3 };
    static const struct het_unused unused[] = {
        { HET_UNUSED_NO_GPU_LABEL, "", "", 4, 1, { "bare" } },
        { HET_UNUSED_TAINTED,
          "slow",
          "sku",
          72,
          9,
          { "a", "b", "c", "d", "e", "f", "g", "h" } },
    };
    plan.unused = unused;
    plan.unused_count = 2;
    return plan;
}

START_TEST(plan_reads_back_as_it_was_written)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    plan.sequence_length = 2048;
    json_auto_t *json = het_plan_json(&plan);
    auto_free char *text = het_json_canonical(json);
    ck_assert_ptr_nonnull(
        strstr(text, "\"pipelines\":[{\"microBatches\":2,\"stages\":[{\"firstLayer\":0,"
                     "\"layerCount\":2,\"recompute\":\"none\",\"replicas\":[{\"gpuType\":"
                     "\"slow\",\"gpus\":[0],\"microBatchSize\":2,\"node\":\"s0\"}]}"));
    ck_assert_ptr_nonnull(strstr(text, "\"gap\":0.5,"));
    ck_assert_ptr_nonnull(strstr(
        text,
        "{\"detail\":\"sku\",\"gpuType\":\"slow\",\"gpus\":72,\"message\":\"their "
        "node has a taint that is not tolerated (sku)\",\"nodeCount\":9,\"nodes\":["
        "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"reason\":\"Tainted\"}"));
    ck_assert_ptr_nonnull(strstr(text, "\"closedFormSeconds\":1.625,"));
    ck_assert_ptr_nonnull(strstr(text, "\"fromIterationSeconds\":1.75,"));
    ck_assert_ptr_nonnull(strstr(text, "\"idle\":[{\"gpus\":[2,3],\"node\":\"f0\"}"));

    json_t *decoded = NULL;
    ck_assert_int_eq(het_json_decode(text, strlen(text), "plan", &decoded, NULL), 0);
    const struct het_plan *again;
    struct het_error err;
    ck_assert_msg(!het_plan_json_read(toy->arena, decoded, &again, &err), "%s",
                  err.message);
    ck_assert_int_eq(het_plan_compare(&plan, again), 0);
    ck_assert_uint_eq(again->pipelines[0].stages[0].replicas[0].node, HET_UNBOUND);
    json_auto_t *json_again = het_plan_json(again);
    auto_free char *text_again = het_json_canonical(json_again);
    ck_assert_str_eq(text, text_again);
    json_decref(decoded);

    /* What was measured is not said; what was not is. */
    ck_assert_ptr_null(strstr(text, "extrapolated"));
    ck_assert_int_eq(again->predicted.profile_origin, HET_PROFILE_MEASURED);
    plan.predicted.profile_origin = HET_PROFILE_CALIBRATED;
    plan.predicted.extrapolated = true;
    json_auto_t *marked = het_plan_json(&plan);
    ck_assert_int_eq(het_plan_json_read(toy->arena, marked, &again, &err), 0);
    ck_assert_int_eq(again->predicted.profile_origin, HET_PROFILE_CALIBRATED);
    ck_assert(again->predicted.extrapolated);

    plan.predicted.from_iteration_s = 0;
    json_auto_t *without = het_plan_json(&plan);
    ck_assert_ptr_null(
        json_object_get(json_object_get(without, "predicted"), "fromIterationSeconds"));
    toy_free(toy);
}
END_TEST

START_TEST(plan_without_an_algorithm_reads_back_as_it_was_written)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    plan.algorithm = "";
    json_auto_t *json = het_plan_json(&plan);
    ck_assert_ptr_null(json_object_get(json, "algorithm"));
    const struct het_plan *again;
    struct het_error err;
    ck_assert_msg(!het_plan_json_read(toy->arena, json, &again, &err), "%s", err.message);
    ck_assert_str_eq(again->algorithm, "");
    ck_assert_str_eq(het_plan_json_hash(toy->arena, again),
                     het_plan_json_hash(toy->arena, &plan));
    toy_free(toy);
}
END_TEST

START_TEST(hash_is_of_the_plan_not_of_what_is_predicted)
{
    struct toy *toy = toy_new();
    struct het_plan plan = priced_plan(toy);
    const char *hash = het_plan_json_hash(toy->arena, &plan);
    ck_assert_uint_eq(strlen(hash), strlen("sha256:") + 64);
    ck_assert_int_eq(strncmp(hash, "sha256:", 7), 0);
    plan.predicted.iteration_s = 2;
    plan.predicted.from_iteration_s = 3;
    plan.search.seed = 5;
    ck_assert_str_eq(het_plan_json_hash(toy->arena, &plan), hash);
    plan.global_batch++;
    ck_assert_str_ne(het_plan_json_hash(toy->arena, &plan), hash);
    toy_free(toy);
}
END_TEST

START_TEST(rankmap_follows_nodes_and_local_indices)
{
    struct toy *toy = toy_new();
    struct het_plan plan = toy_two_pipelines(toy);
    json_auto_t *json = het_plan_json_rankmap(&plan);
    auto_free char *text = het_json_canonical(json);
    ck_assert_str_eq(
        text,
        "{\"ranks\":["
        "{\"firstLayer\":0,\"gpuType\":\"slow\",\"layerCount\":2,\"localIndex\":0,"
        "\"microBatchSize\":2,\"node\":\"s0\",\"pipeline\":0,\"rank\":0,\"replica\":0,"
        "\"stage\":0,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":0,\"gpuType\":\"slow\",\"layerCount\":2,\"localIndex\":1,"
        "\"microBatchSize\":2,\"node\":\"s0\",\"pipeline\":1,\"rank\":1,\"replica\":0,"
        "\"stage\":0,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":2,\"gpuType\":\"fast\",\"layerCount\":2,\"localIndex\":0,"
        "\"microBatchSize\":2,\"node\":\"f0\",\"pipeline\":0,\"rank\":2,\"replica\":0,"
        "\"stage\":1,\"tensorParallel\":1,\"tensorParallelIndex\":0},"
        "{\"firstLayer\":2,\"gpuType\":\"fast\",\"layerCount\":2,\"localIndex\":1,"
        "\"microBatchSize\":2,\"node\":\"f0\",\"pipeline\":1,\"rank\":3,\"replica\":0,"
        "\"stage\":1,\"tensorParallel\":1,\"tensorParallelIndex\":0}],"
        "\"worldSize\":4}");
    toy_free(toy);
}
END_TEST

START_TEST(faults_of_a_plan_name_the_field)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "[]", "must be an object" },
        { "{\"kind\":\"Job\"}", "kind: must be Plan, is Job" },
        { "{\"apiVersion\":\"heterotrain.io/v2\"}",
          "apiVersion: must be heterotrain.io/v1alpha1, is heterotrain.io/v2" },
        { "{\"schedule\":\"GPipe\"}", "schedule: must be 1F1B, is GPipe" },
        { "{\"globalBatchSize\":1,\"layerCount\":2}", "pipelines: is missing" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{}]}",
          "pipelines[0].microBatches: is missing" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4097}]}]}",
          "pipelines[0].stages[0].layerCount: must be 0 to 4096, is 4097" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4,\"recompute\":\"some\"}]}]}",
          "pipelines[0].stages[0].recompute: must be none, selective or full" },
        { "{\"globalBatchSize\":1,\"layerCount\":2,\"pipelines\":[{\"microBatches\":1,"
          "\"stages\":[{\"firstLayer\":0,\"layerCount\":4,\"replicas\":[{\"node\":\"a\","
          "\"gpuType\":\"t\",\"microBatchSize\":1,\"gpus\":[1024]}]}]}]}",
          "pipelines[0].stages[0].replicas[0].gpus[0]: must be 0 to 1023, is 1024" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = parse(cases[i].text);
        const struct het_plan *plan;
        struct het_error err = { 0 };
        ck_assert_int_eq(het_plan_json_read(arena, json, &plan, &err), -1);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s", err.message);
        het_arena_free(arena);
    }
}
END_TEST

Suite *test_plan_json_suite(void)
{
    Suite *suite = suite_create("plan_json");
    TCase *cases = tcase_create("plan_json");
    tcase_add_test(cases, plan_reads_back_as_it_was_written);
    tcase_add_test(cases, plan_without_an_algorithm_reads_back_as_it_was_written);
    tcase_add_test(cases, hash_is_of_the_plan_not_of_what_is_predicted);
    tcase_add_test(cases, rankmap_follows_nodes_and_local_indices);
    tcase_add_test(cases, faults_of_a_plan_name_the_field);
    suite_add_tcase(suite, cases);
    return suite;
}
