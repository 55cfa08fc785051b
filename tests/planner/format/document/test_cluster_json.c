#include "planner/format/document/cluster_json.h"

#include "planner/format/document/hardware_json.h"
#include "tests/controller/quoted.h"
#include "tests/planner/files.h"

#include <check.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &problem);
    ck_assert_msg(json != NULL, "%d: %s: %s", problem.column, problem.text, text);
    return json;
}

static const struct het_cluster *read_cluster(struct het_arena *arena, const char *text)
{
    json_auto_t *json = parse(text);
    const struct het_cluster *cluster = NULL;
    struct het_error err;
    ck_assert_msg(
        !het_cluster_json_read(arena, json, het_hardware_builtin(), &cluster, &err),
        "%s: %s", text, err.message);
    return cluster;
}

START_TEST(short_form_expands_copies_and_names)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster = read_cluster(
        arena,
        "{\"nodes\":[{\"name\":\"v\",\"type\":\"V100\",\"gpus\":4,\"memory_gb\":16,"
        "\"intra_gb_s\":60,\"inter_gb_s\":3,\"inter_flow_gb_s\":1.5,\"latency_us\":"
        "20,\"repeat\":2},"
        "{\"type\":\"A100\",\"gpus\":8,\"repeat\":1},"
        "{\"name\":\"x\",\"type\":\"V100\",\"gpus\":2,\"memory_gb\":15.5},"
        "{\"type\":\"A100\",\"gpus\":8,\"profile\":\"A100-fast\"}]}");
    ck_assert_uint_eq(cluster->node_count, 5);
    ck_assert_str_eq(cluster->nodes[0].name, "v-0");
    ck_assert_str_eq(cluster->nodes[1].name, "v-1");
    ck_assert_str_eq(cluster->nodes[2].name, "a100-0");
    ck_assert_str_eq(cluster->nodes[3].name, "x");
    ck_assert_str_eq(cluster->nodes[4].name, "a100-1");
    ck_assert_double_eq(cluster->nodes[1].intra_bytes_per_s, 60e9);
    ck_assert_double_eq(cluster->nodes[1].uplink_bytes_per_s, 3e9);
    ck_assert_double_eq(cluster->nodes[1].flow_bytes_per_s, 1.5e9);
    ck_assert_double_eq_tol(cluster->nodes[1].latency_s, 20e-6, 1e-18);
    /* Types are sorted by name; nodes point at them. */
    ck_assert_str_eq(cluster->types[0].name, "A100");
    ck_assert_str_eq(cluster->types[1].name, "V100");
    ck_assert_uint_eq(cluster->nodes[0].type, 1);
    ck_assert_uint_eq(cluster->nodes[2].type, 0);
    /* What was not said comes from the table: 40 GiB, 240 GB/s, workspace. */
    ck_assert_uint_eq(cluster->types[0].memory_bytes, (uint64_t)40 << 30);
    ck_assert_uint_eq(cluster->types[0].workspace_bytes, HET_DEFAULT_WORKSPACE_BYTES);
    ck_assert_double_eq(cluster->nodes[2].intra_bytes_per_s, 240e9);
    ck_assert_double_eq(cluster->nodes[2].uplink_bytes_per_s, 3e9);
    ck_assert_str_eq(cluster->types[0].profile_name, "A100-fast");
    /* The least memory of a type counts for all its nodes. */
    ck_assert_uint_eq(cluster->types[1].memory_bytes, (uint64_t)31 << 29);
    het_arena_free(arena);
}
END_TEST

START_TEST(unknown_type_needs_only_its_memory)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster =
        read_cluster(arena, "{\"nodes\":[{\"type\":\"Z9\",\"gpus\":1,\"memory_gb\":8}]}");
    ck_assert_str_eq(cluster->types[0].profile_name, "Z9");
    ck_assert_uint_eq(cluster->types[0].workspace_bytes, (uint64_t)4 << 30); /* 8 / 2 */
    ck_assert_double_eq(cluster->nodes[0].intra_bytes_per_s,
                        HET_DEFAULT_INTRA_BYTES_PER_S);
    het_arena_free(arena);
}
END_TEST

START_TEST(faults_of_a_cluster_name_the_field)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "[]", "must be an object with a list \"nodes\"" },
        { "{}", "must be an object with a list \"nodes\"" },
        { "{\"nodes\":[]}", "nodes: must have at least one node" },
        { "{\"nodes\":[null]}", "nodes[0]: is missing" },
        { "{\"nodes\":[3]}", "nodes[0]: must be an object, is a number" },
        { "{\"nodes\":[{\"gpus\":1}]}", "nodes[0].type: is missing" },
        { "{\"nodes\":[{\"type\":\"A100\"}]}", "nodes[0].gpus: is missing" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":0}]}",
          "nodes[0].gpus: must be 1 to 1024, is 0" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":2.5}]}",
          "nodes[0].gpus: must be a whole number" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"memory_gb\":-1}]}",
          "nodes[0].memory_gb: must be 0.0625 to 16384, is -1" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"inter_gb_s\":0}]}",
          "nodes[0].inter_gb_s: must be 1e-06" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"repeat\":65536},{\"type\":"
          "\"A100\",\"gpus\":1}]}",
          "nodes[1]: more than 65536 nodes together" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"name\":\"a\"},{\"type\":"
          "\"A100\",\"gpus\":1,\"name\":\"a\"}]}",
          "nodes[1].name: two nodes are called a, this one and one of nodes[0]; rename one "
          "of them" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"repeat\":2},{\"type\":\"V100\",\"gpus\":"
          "1},{\"type\":\"A100\",\"gpus\":1,\"name\":\"a100-1\"}]}",
          "nodes[2].name: two nodes are called a100-1, this one and one of nodes[0]" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1,\"inter_gbs\":3}]}",
          "nodes[0].inter_gbs: unknown field; known are name, type, gpus, memory_gb, "
          "intra_gb_s, inter_gb_s, inter_flow_gb_s, latency_us, instance_type, workspace_gb, profile, "
          "repeat, levels" },
        { "{\"nodes\":[{\"type\":\"A100\",\"gpus\":1}],\"node\":[]}",
          "node: unknown field; known are nodes, levels, network" },
        { "{\"items\":7}", "items: must be a list" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = parse(cases[i].text);
        const struct het_cluster *cluster;
        struct het_error err = { 0 };
        ck_assert_int_eq(
            het_cluster_json_read(arena, json, het_hardware_builtin(), &cluster, &err),
            -1);
        ck_assert_int_eq(err.code, HET_BAD_INPUT);
        ck_assert_msg(strstr(err.message, cases[i].message), "%s: %s", cases[i].text,
                      err.message);
        het_arena_free(arena);
    }
}
END_TEST

START_TEST(examples_are_read)
{
    static const struct {
        const char *path;
        uint32_t gpus;
    } cases[] = {
        { "tests/data/clusters/a100x8_v100x8.json", 16 },
        { "tests/data/clusters/uneven_a100x8_v100x4_v100x2.json", 14 },
        { "tests/data/clusters/a100x32_v100x96.json", 128 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct het_arena *arena = het_arena_new();
        json_auto_t *json = test_read_json(cases[i].path);
        const struct het_cluster *cluster;
        ck_assert_int_eq(
            het_cluster_json_read(arena, json, het_hardware_builtin(), &cluster, NULL),
            0);
        ck_assert_uint_eq(het_cluster_gpu_count(cluster), cases[i].gpus);
        ck_assert_uint_eq(cluster->type_count, 2);
        het_arena_free(arena);
    }
}
END_TEST

/* The vendor of the last node of a cluster. */
static const char *vendor_by(struct het_arena *arena, const char *nodes,
                             const char *hardware_text, struct het_error *err)
{
    json_auto_t *json = quoted("{'nodes': [%s]}", nodes);
    json_auto_t *extra = quoted("%s", hardware_text);
    const struct het_hardware *hardware;
    const struct het_cluster *cluster;
    if (het_hardware_json_read(arena, extra, het_hardware_builtin(), &hardware, err) <
            0 ||
        het_cluster_json_read(arena, json, hardware, &cluster, err) < 0)
        return NULL;
    return cluster->nodes[cluster->node_count - 1].vendor;
}

START_TEST(vendor_is_stated_or_known_by_name)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err = { 0 };
    static const char stated[] = "{'gpuTypes': [{'name': 'X', 'vendor': 'Ascend'}]}";
    ck_assert_str_eq(vendor_by(arena, "{'type': 'X', 'gpus': 1}", "{}", &err), "nvidia");
    ck_assert_str_eq(
        vendor_by(arena, "{'type': 'Instinct-MI250X', 'gpus': 1}", "{}", &err), "amd");
    ck_assert_str_eq(vendor_by(arena, "{'type': 'X', 'gpus': 1}", stated, &err),
                     "ascend");
    ck_assert_str_eq(
        vendor_by(arena, "{'type': 'X', 'gpus': 1, 'vendor': 'AMD'}", stated, &err),
        "amd");
    /* Nodes that call their GPUs alike may have them of two vendors. */
    ck_assert_str_eq(vendor_by(arena,
                               "{'name': 'a', 'type': 'X', 'gpus': 1}, {'name': 'b', "
                               "'type': 'X', 'gpus': 1, 'vendor': 'amd'}",
                               "{}", &err),
                     "amd");
    het_arena_free(arena);
}
END_TEST

Suite *test_cluster_json_suite(void)
{
    Suite *suite = suite_create("cluster_json");
    TCase *cases = tcase_create("cluster_json");
    tcase_add_test(cases, short_form_expands_copies_and_names);
    tcase_add_test(cases, unknown_type_needs_only_its_memory);
    tcase_add_test(cases, faults_of_a_cluster_name_the_field);
    tcase_add_test(cases, examples_are_read);
    tcase_add_test(cases, vendor_is_stated_or_known_by_name);
    suite_add_tcase(suite, cases);
    return suite;
}
