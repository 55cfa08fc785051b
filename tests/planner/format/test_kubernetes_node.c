#include "planner/format/kubernetes_node.h"

#include <check.h>
#include <string.h>

START_TEST(quantities_are_read_as_kubernetes_writes_them)
{
    static const struct {
        const char *text;
        int milli;
        int64_t value;
    } cases[] = {
        { "4", 0, 4 },
        { "4", 1, 4000 },
        { "500m", 1, 500 },
        { "500m", 0, 1 }, /* rounded up */
        { "0.1", 1, 100 },
        { "1.5Gi", 0, (int64_t)3 << 29 },
        { "16Gi", 0, (int64_t)16 << 30 },
        { "1e3", 0, 1000 },
        { "1E3", 0, 1000 },
        { "1E", 0, 1000000000000000000 },
        { "12e-1", 0, 2 },
        { "100u", 1, 1 },
        { "0n", 0, 0 },
        { "+2k", 0, 2000 },
        { ".5", 1, 500 },
        { "8Ei", 0, INT64_MAX },
        { "99999999999999999999999", 0, INT64_MAX },
        { "0.00000000000000000000000001", 0, 1 },
        { "000000000000000000000000000000000000000001", 0, 1 },
        { "1e999999999", 0, INT64_MAX },
        { "", 0, -1 },
        { "-1", 0, -1 },
        { "4x", 0, -1 },
        { "1..5", 0, -1 },
        { "e3", 0, -1 },
        { "1e", 0, -1 },
        { "1e 3", 0, -1 },
        { ".", 0, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(het_quantity_parse(cases[i].text, cases[i].milli) == cases[i].value,
                      "%s: %lld", cases[i].text,
                      (long long)het_quantity_parse(cases[i].text, cases[i].milli));
}
END_TEST

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, 0, &problem);
    ck_assert_msg(json != NULL, "%d: %s", problem.column, problem.text);
    return json;
}

/* ---- pods ---- */

static int64_t request_of(const char *spec, const char *resource, int milli)
{
    json_auto_t *pod = json_object();
    json_object_set_new(pod, "spec", parse(spec));
    return het_pod_request(pod, resource, milli);
}

START_TEST(request_of_a_pod_is_its_peak)
{
    const char *gpu = "nvidia.com/gpu";
    /* A limit alone is a request. */
    ck_assert_int_eq(
        request_of("{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/"
                   "gpu\":\"2\"}}},{\"resources\":{\"requests\":{\"nvidia."
                   "com/gpu\":1}}},{}]}",
                   gpu, 0),
        2 + 1);
    /* Init containers run before, with the sidecars started so far. */
    const char *with_init =
        "{\"initContainers\":["
        "{\"resources\":{\"requests\":{\"cpu\":\"1500m\"}}},"
        "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"200m\"}}},"
        "{\"resources\":{\"requests\":{\"cpu\":\"2\"}}}],"
        "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],"
        "\"overhead\":{\"cpu\":\"50m\"}}";
    ck_assert_int_eq(request_of(with_init, "cpu", 1), 200 + 2000 + 50);
    ck_assert_int_eq(request_of("{\"resources\":{\"requests\":{\"cpu\":\"3\"}},"
                                "\"containers\":[{\"resources\":{\"requests\":{\"cpu\":"
                                "\"1\"}}}]}",
                                "cpu", 1),
                     3000);
    ck_assert_int_eq(request_of("{\"containers\":7}", gpu, 0), 0);
    ck_assert_int_eq(request_of("[]", gpu, 0), 0);
}
END_TEST

START_TEST(pod_holds_from_binding_to_its_end)
{
    static const struct {
        const char *pod;
        int holds;
    } cases[] = {
        { "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\"}}", 1 },
        { "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Pending\"}}", 1 },
        { "{\"spec\":{\"nodeName\":\"a\"}}", 1 },
        { "{\"spec\":{\"nodeName\":\"\"}}", 0 },
        { "{\"spec\":{}}", 0 },
        { "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Succeeded\"}}", 0 },
        { "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Failed\"}}", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *pod = parse(cases[i].pod);
        ck_assert_msg(het_pod_holds(pod) == cases[i].holds, "%s", cases[i].pod);
    }
}
END_TEST

/* ---- nodes ---- */

/* A ready node with `labels` (JSON object), `spec` and four GPUs. */
static json_t *make_node(const char *name, const char *labels, const char *spec)
{
    json_t *node = json_pack("{s:{s:s, s:o}, s:o, s:{s:{s:s, s:s}, s:[{s:s, s:s}]}}",
                             "metadata", "name", name, "labels", parse(labels), "spec",
                             parse(spec), "status", "allocatable", "nvidia.com/gpu", "4",
                             "cpu", "64", "conditions", "type", "Ready", "status",
                             "True");
    ck_assert_ptr_nonnull(node);
    return node;
}

static struct het_node_facts read_node(struct het_arena *arena, const json_t *node)
{
    struct het_node_facts facts;
    het_node_read(arena, node, "nvidia.com/gpu", het_hardware_builtin(), &facts);
    return facts;
}

#define MIB ((uint64_t)1 << 20)

START_TEST(type_is_read_from_the_most_trusted_label)
{
    static const struct {
        const char *labels, *type;
        uint64_t memory_mib;
    } cases[] = {
        { "{\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB\",\"nvidia.com/"
          "gpu.memory\":\"40536\"}",
          "A100-SXM4-40GB", 40536 },
        { "{\"heterotrain.io/gpu-type\":\"T4\",\"nvidia.com/gpu.product\":\"NVIDIA-L4\"}",
          "T4", 15360 },
        { "{\"nvidia.com/gpu.product\":\"NVIDIA-Z9\",\"nvidia.com/gpu.memory\":\"1000\"}",
          "Z9", 1000 },
        { "{\"nvidia.com/gpu.product\":\"NVIDIA-Z9\",\"nvidia.com/gpu.memory\":\"x\"}",
          "Z9", 0 },
        { "{\"karpenter.k8s.aws/instance-gpu-name\":\"a100\",\"karpenter.k8s.aws/"
          "instance-gpu-memory\":\"81920\"}",
          "A100-SXM4-80GB", 81920 },
        { "{\"karpenter.k8s.aws/instance-gpu-name\":\"a100\",\"karpenter.k8s.aws/"
          "instance-gpu-memory\":\"40960\"}",
          "A100-SXM4-40GB", 40960 },
        { "{\"cloud.google.com/gke-accelerator\":\"nvidia-tesla-a100\"}",
          "A100-SXM4-40GB", 40960 },
        { "{\"k8s.amazonaws.com/accelerator\":\"nvidia-tesla-v100\"}", "V100-SXM2-16GB",
          16384 },
        { "{\"node.kubernetes.io/instance-type\":\"Standard_ND40rs_v2\"}",
          "V100-SXM2-32GB", 32768 },
        { "{\"amd.com/gpu.product-name\":\"AMD_Instinct_MI210\"}", "MI210", 65520 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *node = make_node("n", cases[i].labels, "{}");
        struct het_node_facts facts = read_node(arena, node);
        ck_assert_str_eq(facts.type, cases[i].type);
        ck_assert_uint_eq(facts.memory_bytes, cases[i].memory_mib * MIB);
        ck_assert_int_eq(facts.allocatable, 4);
        ck_assert_ptr_null(facts.unusable);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(unusable_node_says_why)
{
    static const struct {
        const char *labels, *spec, *reason;
    } cases[] = {
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\"}", "{\"unschedulable\":true}",
          "Unschedulable" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4-SHARED\"}", "{}", "SharedGPU" },
        { "{\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\"}", "{}",
          "SharedGPU" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/gpu.replicas\":\"4\"}",
          "{}", "SharedGPU" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/"
          "gpu.sharing-strategy\":\"mps\"}",
          "{}", "SharedGPU" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/"
          "mig.config.state\":\"pending\"}",
          "{}", "Repartitioning" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/"
          "gpu.workload.config\":\"vm-passthrough\"}",
          "{}", "VirtualMachine" },
        { "{\"node.kubernetes.io/instance-type\":\"m5.large\"}", "{}", "NoGPULabel" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/"
          "gpu.sharing-strategy\":\"none\",\"nvidia.com/gpu.replicas\":\"1\",\"nvidia."
          "com/mig.config.state\":\"success\"}",
          "{}", NULL },
        /* GPU Feature Discovery found two of the four to be T4. */
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/gpu.count\":\"2\"}",
          "{}", "MixedGPUs" },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/gpu.count\":\"4\"}",
          "{}", NULL },
        /* One is broken, and offered no more. */
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/gpu.count\":\"5\"}",
          "{}", NULL },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/gpu.count\":\"2\","
          "\"heterotrain.io/gpu-type\":\"T4\"}",
          "{}", NULL },
        { "{\"nvidia.com/gpu.product\":\"Tesla-T4-SHARED\",\"nvidia.com/"
          "gpu.count\":\"2\",\"nvidia.com/gpu.replicas\":\"2\"}",
          "{}", "SharedGPU" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *node = make_node("n", cases[i].labels, cases[i].spec);
        ck_assert_pstr_eq(read_node(arena, node).unusable, cases[i].reason);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(absurd_facts_of_a_node_count_as_none)
{
    static const struct {
        const char *allocatable, *product, *unusable;
        uint64_t memory_bytes;
    } cases[] = {
        { "4096", "Tesla-T4", NULL, (uint64_t)15360 << 20 },
        { "4097", "Tesla-T4", "NoGPU", (uint64_t)15360 << 20 },
        { "9e99", "Tesla-T4", "NoGPU", (uint64_t)15360 << 20 },
        { "-4", "Tesla-T4", "NoGPU", (uint64_t)15360 << 20 },
        { "NaN", "Tesla-T4", "NoGPU", (uint64_t)15360 << 20 },
        { "4", "Tesla\x1b[31m", "NoGPULabel", (uint64_t)15360 << 20 },
        { "4", "%n%s", "NoGPULabel", (uint64_t)15360 << 20 },
        { "4", "a\nb", "NoGPULabel", (uint64_t)15360 << 20 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_auto_t *node = json_pack(
            "{s:{s:s, s:{s:s, s:s}}, s:{s:{s:s}, s:[{s:s, s:s}]}}", "metadata", "name",
            "n", "labels", "nvidia.com/gpu.product", cases[i].product,
            "nvidia.com/gpu.memory", "15360", "status", "allocatable", "nvidia.com/gpu",
            cases[i].allocatable, "conditions", "type", "Ready", "status", "True");
        struct het_arena *arena = het_arena_new();
        struct het_node_facts facts;
        het_node_read(arena, node, "nvidia.com/gpu", het_hardware_builtin(), &facts);
        ck_assert_msg(facts.unusable == cases[i].unusable ||
                          (facts.unusable && cases[i].unusable &&
                           !strcmp(facts.unusable, cases[i].unusable)),
                      "%zu: %s", i, facts.unusable ? facts.unusable : "usable");
        ck_assert_uint_eq(facts.memory_bytes, cases[i].memory_bytes);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(node_whose_name_is_none_has_none)
{
    static const char *const names[] = { "", "a b", "A", "a\nb", "a/b", "\x1b[0m" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_auto_t *node = json_pack("{s:{s:s}}", "metadata", "name", names[i]);
        struct het_arena *arena = het_arena_new();
        struct het_node_facts facts;
        het_node_read(arena, node, "nvidia.com/gpu", het_hardware_builtin(), &facts);
        ck_assert_ptr_null(facts.name);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(each_resource_of_a_node_has_its_own_type_and_memory)
{
    static const char mixed[] =
        "{\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB\",\"nvidia.com/"
        "gpu.memory\":\"40960\",\"nvidia.com/mig-3g.20gb.product\":\"NVIDIA-A100-SXM4-"
        "40GB-MIG-3g.20gb\",\"nvidia.com/mig-3g.20gb.memory\":\"19968\"}";
    static const char shared[] = "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia."
                                 "com/gpu.memory\":\"15360\",\"nvidia.com/"
                                 "gpu.replicas\":\"4\"}";
    static const struct {
        const char *labels, *resource, *type;
        uint64_t memory_mib;
        bool is_shared;
    } cases[] = {
        { mixed, "nvidia.com/gpu", "A100-SXM4-40GB", 40960, false },
        { mixed, "nvidia.com/mig-3g.20gb", "A100-SXM4-40GB-MIG-3g.20gb", 19968, true },
        { mixed, "nvidia.com/mig-1g.5gb", "A100-SXM4-40GB-MIG-1g.5gb", 0, true },
        { "{\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb\",\"nvidia."
          "com/gpu.memory\":\"4864\"}",
          "nvidia.com/gpu", "A100-SXM4-40GB-MIG-1g.5gb", 4864, true },
        { shared, "nvidia.com/gpu", "T4", 15360 / 4, true },
        { shared, "nvidia.com/gpu.shared", "T4", 15360 / 4, true },
        { "{\"amd.com/gpu.product-name\":\"AMD_Instinct_Z9\",\"amd.com/gpu.vram\":"
          "\"64G\"}",
          "amd.com/gpu", "Instinct_Z9", 65536, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *node = make_node("n", cases[i].labels, "{}");
        struct het_node_gpus gpus;
        het_node_read_gpus(arena, node, cases[i].resource, het_hardware_builtin(), &gpus);
        ck_assert_str_eq(gpus.type, cases[i].type);
        ck_assert_uint_eq(gpus.memory_bytes, cases[i].memory_mib * MIB);
        ck_assert_msg(gpus.is_shared == cases[i].is_shared, "%s", cases[i].resource);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(any_object_at_all_is_read_without_failing)
{
    static const char *const objects[] = {
        "{}",
        "[]",
        "{\"metadata\":[],\"spec\":3,\"status\":{\"conditions\":{}}}",
        "{\"metadata\":{\"labels\":{\"nvidia.com/gpu.product\":7}},\"status\":{"
        "\"allocatable\":{\"nvidia.com/gpu\":{}}}}",
        "{\"metadata\":{\"labels\":{\"nvidia.com/gpu.product\":\"-MIG-\"}},\"spec\":{"
        "\"taints\":{}}}",
    };
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *node = parse(objects[i]);
        ck_assert_str_eq(read_node(arena, node).unusable, "NotReady");
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(free_gpus_of_usable_nodes_are_the_cluster)
{
    struct het_arena *arena = het_arena_new();
    const char *t4 = "{\"nvidia.com/gpu.product\":\"Tesla-T4\",\"nvidia.com/"
                     "gpu.memory\":\"15360\"}";
    json_auto_t *nodes = json_pack(
        "{s:[o, o, o, o, o, o, {}]}", "items", make_node("c", t4, "{}"),
        make_node("bare", "{}", "{}"),
        make_node("a", t4,
                  "{\"taints\":[{\"key\":\"nvidia.com/gpu\",\"effect\":\"NoSchedule\"},"
                  "{\"key\":\"x\",\"effect\":\"PreferNoSchedule\"}]}"),
        make_node("tainted", t4,
                  "{\"taints\":[{\"key\":\"sku\",\"effect\":\"NoExecute\"}]}"),
        make_node("cordoned", t4, "{\"unschedulable\":true}"),
        make_node("full", t4, "{}"));
    json_auto_t *pods =
        parse("{\"items\":["
              "{\"spec\":{\"nodeName\":\"c\",\"containers\":[{\"resources\":{\"limits\":{"
              "\"nvidia.com/gpu\":\"1\"}}}]}},"
              "{\"spec\":{\"nodeName\":\"c\",\"containers\":[{\"resources\":{\"limits\":{"
              "\"nvidia.com/gpu\":\"2\"}}}]},\"status\":{\"phase\":\"Succeeded\"}},"
              "{\"spec\":{\"nodeName\":\"full\",\"containers\":[{\"resources\":{"
              "\"limits\":{\"nvidia.com/gpu\":\"9\"}}}]}},"
              "{\"spec\":{\"nodeName\":\"nowhere\"}}]}");
    json_auto_t *cluster = NULL;
    struct het_unused_list left_out = { 0 };
    struct het_error err;
    ck_assert_int_eq(het_node_list_cluster(arena, nodes, pods, het_hardware_builtin(),
                                           &cluster, &left_out, &err),
                     0);
    auto_free char *text = het_json_canonical(cluster);
    ck_assert_str_eq(text, "{\"nodes\":[{\"gpus\":4,\"memory_gb\":15,\"name\":\"a\","
                           "\"type\":\"T4\"},{\"gpus\":3,\"memory_gb\":15,\"name\":\"c\","
                           "\"type\":\"T4\"}]}");
    /* 4 + 4 + 3 of 20 GPUs are free; of the rest each is told, with its reason. */
    het_unused_sort(&left_out);
    ck_assert_uint_eq(left_out.count, 4);
    static const struct {
        const char *reason, *type, *detail, *node;
        uint32_t gpus;
    } expected[] = { { "NoGPULabel", "", "", "bare", 4 },
                     { "Tainted", "T4", "sku", "tainted", 4 },
                     { "Unschedulable", "T4", "", "cordoned", 4 },
                     { "InUse", "T4", "", "c", 5 } };
    for (size_t i = 0; i < left_out.count; i++) {
        const struct het_unused *group = &left_out.groups[i];
        ck_assert_str_eq(het_unused_name(group->reason), expected[i].reason);
        ck_assert_str_eq(group->type, expected[i].type);
        ck_assert_str_eq(group->detail, expected[i].detail);
        ck_assert_str_eq(group->nodes[0], expected[i].node);
        ck_assert_uint_eq(group->gpus, expected[i].gpus);
    }
    ck_assert_uint_eq(left_out.groups[3].node_count, 2);
    ck_assert_str_eq(left_out.groups[3].nodes[1], "full");
    het_arena_free(arena);
}
END_TEST

START_TEST(no_free_gpu_is_no_plan_with_reasons)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *nodes =
        json_pack("{s:[o]}", "items",
                  make_node("a", "{\"nvidia.com/gpu.product\":\"Tesla-T4\"}",
                            "{\"unschedulable\":true}"));
    json_t *cluster = NULL;
    struct het_error err;
    ck_assert_int_eq(het_node_list_cluster(arena, nodes, NULL, het_hardware_builtin(),
                                           &cluster, NULL, &err),
                     -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    ck_assert_str_eq(err.message, "no free GPUs on a usable node: a: Unschedulable");
    json_auto_t *empty = parse("{\"items\":[]}");
    ck_assert_int_eq(het_node_list_cluster(arena, empty, NULL, het_hardware_builtin(),
                                           &cluster, NULL, &err),
                     -1);
    ck_assert_int_eq(err.code, HET_NO_PLAN);
    het_arena_free(arena);
}
END_TEST

Suite *test_kubernetes_node_suite(void)
{
    Suite *suite = suite_create("kubernetes_node");
    TCase *cases = tcase_create("node_list");
    tcase_add_test(cases, quantities_are_read_as_kubernetes_writes_them);
    tcase_add_test(cases, request_of_a_pod_is_its_peak);
    tcase_add_test(cases, pod_holds_from_binding_to_its_end);
    tcase_add_test(cases, type_is_read_from_the_most_trusted_label);
    tcase_add_test(cases, unusable_node_says_why);
    tcase_add_test(cases, absurd_facts_of_a_node_count_as_none);
    tcase_add_test(cases, node_whose_name_is_none_has_none);
    tcase_add_test(cases, each_resource_of_a_node_has_its_own_type_and_memory);
    tcase_add_test(cases, any_object_at_all_is_read_without_failing);
    tcase_add_test(cases, free_gpus_of_usable_nodes_are_the_cluster);
    tcase_add_test(cases, no_free_gpu_is_no_plan_with_reasons);
    suite_add_tcase(suite, cases);
    return suite;
}
