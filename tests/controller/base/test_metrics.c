#include "controller/base/metrics.h"
#include "tests/controller/exposition.h"

#include "planner/modules.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct metrics *metrics;

static void set_up(void)
{
    metrics = metrics_new(NULL, NULL);
}

static void tear_down(void)
{
    metrics_free(metrics);
}

static struct exposition *read_all(void)
{
    size_t length;
    auto_free char *text = metrics_render(metrics, &length);
    ck_assert_uint_eq(length, strlen(text));
    return exposition_read(text);
}

static double read_one(const char *series)
{
    struct exposition *exposition = read_all();
    double value = exposition_value(exposition, series);
    exposition_free(exposition);
    return value;
}

START_TEST(nothing_measured_is_help_and_type_of_every_metric)
{
    struct exposition *exposition = read_all();
    ck_assert_uint_eq(exposition_samples(exposition), 0);
    ck_assert_str_eq(exposition_type(exposition, "workqueue_adds_total"), "counter");
    ck_assert_str_eq(exposition_type(exposition, "heterotrain_gpus"), "gauge");
    ck_assert_str_eq(exposition_type(exposition, "heterotrain_plan_duration_seconds"),
                     "histogram");
    exposition_free(exposition);
}
END_TEST

START_TEST(counter_adds_up_by_labels)
{
    metrics_add(metrics, METRIC_REPLANS, 1, LABELS("NodeLost", "Replaced"));
    metrics_add(metrics, METRIC_REPLANS, 2, LABELS("NodeLost", "Replaced"));
    metrics_add(metrics, METRIC_REPLANS, 1, LABELS("CapacityAdded", "Rejected"));
    ck_assert_double_eq(
        read_one("heterotrain_replans_total{trigger=\"NodeLost\",result=\"Replaced\"}"),
        1 + 2);
    ck_assert_double_eq(read_one("heterotrain_replans_total{trigger=\"CapacityAdded\","
                                 "result=\"Rejected\"}"),
                        1);
}
END_TEST

START_TEST(gauge_has_the_last_value)
{
    metrics_set(metrics, METRIC_LEADER, 1, NO_LABELS);
    metrics_set(metrics, METRIC_LEADER, 0, NO_LABELS);
    metrics_set(metrics, METRIC_RESIDENT_BYTES, 12345678912, NO_LABELS);
    metrics_set(metrics, METRIC_PREDICTED_ITERATION, 0.1, LABELS("ns", "job"));
    ck_assert_double_eq(read_one("heterotrain_leader"), 0);
    ck_assert_double_eq(read_one("process_resident_memory_bytes"), 12345678912);
    ck_assert_double_eq(
        read_one("heterotrain_predicted_iteration_seconds{namespace=\"ns\",job=\"job\"}"),
        0.1);
}
END_TEST

START_TEST(histogram_counts_a_value_in_its_bucket_and_all_above)
{
    metrics_observe(metrics, METRIC_PLAN_GAP, 0.01, NO_LABELS); /* the bound itself */
    metrics_observe(metrics, METRIC_PLAN_GAP, 0.015, NO_LABELS);
    metrics_observe(metrics, METRIC_PLAN_GAP, 7, NO_LABELS);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"0.005\"}"), 0);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"0.01\"}"), 1);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"0.025\"}"), 2);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"1\"}"), 2);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"+Inf\"}"), 3);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_count"), 3);
    ck_assert_double_eq_tol(read_one("heterotrain_plan_gap_sum"), 0.01 + 0.015 + 7,
                            1e-12);
}
END_TEST

START_TEST(value_that_is_no_number_is_not_counted)
{
    metrics_observe(metrics, METRIC_PLAN_GAP, 0.5, NO_LABELS);
    metrics_observe(metrics, METRIC_PLAN_GAP, NAN, NO_LABELS);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_bucket{le=\"+Inf\"}"), 1);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_sum"), 0.5);
}
END_TEST

START_TEST(label_cannot_forge_a_line)
{
    metrics_set(metrics, METRIC_GPUS, 1, LABELS("a\"} 9\n\\x\xc3\xa9", "free"));
    ck_assert_double_eq(
        read_one("heterotrain_gpus{type=\"a\"} 9?\\x??\",state=\"free\"}"), 1);
}
END_TEST

START_TEST(long_label_is_cut)
{
    char name[METRICS_LABEL_BYTES + 11];
    memset(name, '"', sizeof name - 1); /* each is two when it is written */
    name[sizeof name - 1] = '\0';
    metrics_set(metrics, METRIC_PREDICTED_ITERATION, 1, LABELS(name, name));
    name[METRICS_LABEL_BYTES] = '\0';
    auto_free char *series =
        xasprintf("heterotrain_predicted_iteration_seconds{namespace=\"%s\",job=\"%s\"}",
                  name, name);
    ck_assert_double_eq(read_one(series), 1);
}
END_TEST

/* 1,000 series, and one for the rest. */
START_TEST(series_are_bounded_and_the_rest_is_other)
{
    for (int i = 0; i < 1500; i++) {
        char job[16];
        snprintf(job, sizeof job, "job-%d", i);
        metrics_set(metrics, METRIC_PREDICTED_ITERATION, i, LABELS("ns", job));
    }
    struct exposition *exposition = read_all();
    ck_assert_uint_eq(exposition_samples(exposition), 1001);
    ck_assert_double_eq(exposition_value(exposition,
                                         "heterotrain_predicted_iteration_seconds{"
                                         "namespace=\"ns\",job=\"job-999\"}"),
                        999);
    ck_assert_double_eq(exposition_value(exposition,
                                         "heterotrain_predicted_iteration_seconds{"
                                         "namespace=\"other\",job=\"other\"}"),
                        1499);
    exposition_free(exposition);
}
END_TEST

START_TEST(replaced_gauge_has_only_what_was_named)
{
    const struct metrics_value first[] = { { LABELS("A100", "free"), 8 },
                                           { LABELS("V100", "free"), 4 } };
    const struct metrics_value second[] = { { LABELS("V100", "free"), 3 },
                                            { LABELS("T4", "free"), 2 } };
    metrics_replace(metrics, METRIC_GPUS, first, 2);
    metrics_replace(metrics, METRIC_GPUS, second, 2);
    struct exposition *exposition = read_all();
    ck_assert_uint_eq(exposition_samples(exposition), 2);
    ck_assert_double_eq(
        exposition_value(exposition, "heterotrain_gpus{type=\"V100\",state=\"free\"}"),
        3);
    ck_assert_double_eq(
        exposition_value(exposition, "heterotrain_gpus{type=\"T4\",state=\"free\"}"), 2);
    exposition_free(exposition);
}
END_TEST

/* Those that are gone do not take the places of those that came. */
START_TEST(full_gauge_can_be_replaced_by_others)
{
    struct metrics_value values[1000];
    char names[1000][16];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(names[i], sizeof names[i], "job-%d-%d", round, i);
            values[i] = (struct metrics_value){ LABELS("ns", names[i]), 1 };
        }
        metrics_replace(metrics, METRIC_PREDICTED_ITERATION, values, 1000);
    }
    struct exposition *exposition = read_all();
    ck_assert_uint_eq(exposition_samples(exposition), 1000);
    ck_assert(
        !isnan(exposition_value(exposition, "heterotrain_predicted_iteration_seconds{"
                                            "namespace=\"ns\",job=\"job-1-999\"}")));
    exposition_free(exposition);
}
END_TEST

START_TEST(same_values_are_the_same_text_in_any_order)
{
    struct metrics *other = metrics_new(NULL, NULL);
    size_t length;
    metrics_add(metrics, METRIC_QUEUE_ADDS, 1, LABELS("jobs"));
    metrics_add(metrics, METRIC_QUEUE_ADDS, 1, LABELS("wishes"));
    metrics_add(other, METRIC_QUEUE_ADDS, 1, LABELS("wishes"));
    metrics_add(other, METRIC_QUEUE_ADDS, 1, LABELS("jobs"));
    auto_free char *a = metrics_render(metrics, &length);
    auto_free char *b = metrics_render(other, &length);
    ck_assert_str_eq(a, b);
    metrics_free(other);
}
END_TEST

static void *count(void *context)
{
    for (int i = 0; i < 20000; i++) {
        metrics_add(metrics, METRIC_QUEUE_ADDS, 1, LABELS(context));
        metrics_observe(metrics, METRIC_PLAN_GAP, 0.01, NO_LABELS);
    }
    return NULL;
}

START_TEST(threads_count_together)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert(!pthread_create(&threads[i], NULL, count, i % 2 ? "jobs" : "wishes"));
    for (int i = 0; i < 20; i++) /* read meanwhile, it is whole each time */
        exposition_free(read_all());
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_double_eq(read_one("workqueue_adds_total{name=\"jobs\"}"), 2 * 20000);
    ck_assert_double_eq(read_one("heterotrain_plan_gap_count"), 4 * 20000);
}
END_TEST

START_TEST(nobody_listens_and_nothing_is_measured)
{
    size_t length;
    metrics_add(NULL, METRIC_QUEUE_ADDS, 1, LABELS("jobs"));
    metrics_observe(NULL, METRIC_PLAN_GAP, 1, NO_LABELS);
    metrics_replace(NULL, METRIC_GPUS, NULL, 0);
    ck_assert_double_eq(metrics_now(NULL), 0);
    auto_free char *text = metrics_render(NULL, &length);
    ck_assert_str_eq(text, "");
}
END_TEST

Suite *test_metrics_suite(void)
{
    Suite *suite = suite_create("metrics");
    TCase *cases = tcase_create("metrics");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, nothing_measured_is_help_and_type_of_every_metric);
    tcase_add_test(cases, counter_adds_up_by_labels);
    tcase_add_test(cases, gauge_has_the_last_value);
    tcase_add_test(cases, histogram_counts_a_value_in_its_bucket_and_all_above);
    tcase_add_test(cases, value_that_is_no_number_is_not_counted);
    tcase_add_test(cases, label_cannot_forge_a_line);
    tcase_add_test(cases, long_label_is_cut);
    tcase_add_test(cases, series_are_bounded_and_the_rest_is_other);
    tcase_add_test(cases, replaced_gauge_has_only_what_was_named);
    tcase_add_test(cases, full_gauge_can_be_replaced_by_others);
    tcase_add_test(cases, same_values_are_the_same_text_in_any_order);
    tcase_add_test(cases, threads_count_together);
    tcase_add_test(cases, nobody_listens_and_nothing_is_measured);
    suite_add_tcase(suite, cases);
    return suite;
}
