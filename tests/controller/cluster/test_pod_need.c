#include "controller/cluster/pod_need.h"

#include "tests/controller/world.h"

#include <check.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

static struct het_arena *arena;
static struct pod_need *needs;
static size_t need_count;

static void setup(void)
{
    arena = het_arena_new();
}

static void teardown(void)
{
    het_arena_free(arena);
}

static void read_needs(json_t *template, json_t *per_gpu)
{
    struct job_spec spec = { .pod_template = template, .per_gpu_resources = per_gpu };
    need_count = pod_need_read(arena, &spec, &needs);
}

static const struct pod_need *need_of(const char *resource)
{
    for (size_t i = 0; i < need_count; i++)
        if (!strcmp(needs[i].resource, resource))
            return &needs[i];
    ck_abort_msg("nothing is needed of %s", resource);
}

START_TEST(containers_sidecars_and_gpus_add_up_and_init_containers_peak)
{
    json_auto_t *template = quoted(
        "{'spec': {'overhead': {'memory': '1Gi'}, 'containers': [{'resources': "
        "{'requests': {'cpu': '2', 'memory': '4Gi'}}}, {'resources': {'limits': {'cpu': "
        "'500m', 'nvidia.com/gpu': '1'}}}], 'initContainers': [{'restartPolicy': "
        "'Always', 'resources': {'requests': {'cpu': '1'}}}, {'resources': {'requests': "
        "{'cpu': '8', 'memory': '40Gi'}}}]}}");
    json_auto_t *per_gpu = quoted("{'cpu': '1500m', 'memory': '16Gi', 'x/hca': 1}");
    read_needs(template, per_gpu);
    ck_assert_uint_eq(need_count, 4); /* cpu, memory, pods, x/hca; GPUs are no need */
    const struct pod_need *cpu = need_of("cpu");
    /* 2 + 0.5 + 1 (sidecar) + g * 1.5; while starting 1 + 8 */
    ck_assert_int_eq(pod_need_amount(cpu, 0), 9000);
    ck_assert_int_eq(pod_need_amount(cpu, 3), 9000);
    ck_assert_int_eq(pod_need_amount(cpu, 4), 3500 + 4 * 1500);
    const struct pod_need *memory = need_of("memory");
    ck_assert_int_eq(pod_need_amount(memory, 2), (40 + 1) * GIB);
    ck_assert_int_eq(pod_need_amount(memory, 4), (4 + 64 + 1) * GIB);
    ck_assert_int_eq(pod_need_amount(need_of("pods"), 8), 1);
    ck_assert_int_eq(pod_need_amount(need_of("x/hca"), 8), 8);
}
END_TEST

START_TEST(request_of_the_whole_pod_wins)
{
    json_auto_t *template =
        quoted("{'spec': {'resources': {'requests': {'cpu': '4'}}, 'containers': "
               "[{'resources': {'requests': {'cpu': '2'}}}]}}");
    json_auto_t *per_gpu = quoted("{'cpu': '1'}");
    read_needs(template, per_gpu);
    ck_assert_int_eq(pod_need_amount(need_of("cpu"), 8), 4000);
}
END_TEST

/* The most GPUs that fit, against trying them one by one. */
START_TEST(fit_is_the_largest_number_whose_need_fits)
{
    unsigned seed = (unsigned)_i + 1;
    struct pod_need need = { .running = rand_r(&seed) % 20,
                             .per_gpu = rand_r(&seed) % 4,
                             .starting = rand_r(&seed) % 40,
                             .overhead = rand_r(&seed) % 5 };
    for (int64_t left = -2; left < 60; left++) {
        int64_t most = 0;
        for (int64_t gpus = 1; gpus <= 8; gpus++)
            if (pod_need_amount(&need, gpus) <= left)
                most = gpus;
        ck_assert_int_eq(pod_need_fit(&need, left, 8), most);
    }
}
END_TEST

START_TEST(absurd_quantities_saturate)
{
    json_auto_t *template = quoted("{'spec': {'containers': [{'resources': "
                                   "{'requests': {'memory': '9E'}}}]}}");
    json_auto_t *per_gpu = quoted("{'memory': '9E'}");
    read_needs(template, per_gpu);
    ck_assert_int_eq(pod_need_amount(need_of("memory"), 1024), INT64_MAX);
    ck_assert_int_eq(pod_need_fit(need_of("memory"), (int64_t)1 << 50, 8), 0);
}
END_TEST

Suite *test_pod_need_suite(void)
{
    Suite *suite = suite_create("pod_need");
    TCase *cases = tcase_create("pod_need");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, containers_sidecars_and_gpus_add_up_and_init_containers_peak);
    tcase_add_test(cases, request_of_the_whole_pod_wins);
    tcase_add_loop_test(cases, fit_is_the_largest_number_whose_need_fits, 0, 50);
    tcase_add_test(cases, absurd_quantities_saturate);
    suite_add_tcase(suite, cases);
    return suite;
}
