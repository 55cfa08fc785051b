#include "planner/model/instance_type.h"

#include "planner/format/document/cluster_json.h"
#include "planner/format/document/hardware_json.h"
#include "planner/format/document/prediction_json.h"
#include "planner/format/document/question.h"
#include "planner/format/kubernetes_node.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gbit/s, GB/s and how its GPUs are joined, of one line of the file. */
static void check_row(const char *name, double gbit, double inside, const char *join)
{
    const struct het_instance *found = het_instance_find(name);
    ck_assert_msg(found != NULL, "%s is not in instance_type.c", name);
    double share = !strcmp(join, "switch") ? 0.8
                   : !strcmp(join, "mesh") ? 0.4
                   : !strcmp(join, "pcie") ? 0.75
                                           : 0;
    ck_assert_msg(found->uplink_bytes_per_s == gbit * 1e9 / 8, "%s", name);
    ck_assert_msg(found->intra_bytes_per_s == inside * 1e9 * share, "%s", name);
}

START_TEST(table_is_the_one_of_the_file)
{
    FILE *file = fopen("planner/model/instance_types.csv", "r");
    char line[1024], name[64], join[16];
    size_t rows = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file); rows++) {
        double gbit, inside;
        ck_assert_int_eq(sscanf(line,
                                "%63[^,],%*[^,],%*[^,],%*[^,],%*[^,],%lf,%lf,%15[^,]",
                                name, &gbit, &inside, join),
                         4);
        check_row(name, gbit, inside, join);
    }
    fclose(file);
    ck_assert_uint_eq(rows, 90);
    ck_assert_ptr_null(het_instance_find("m5.large"));
}
END_TEST

static const struct het_cluster *read_cluster(struct het_arena *arena, const char *text,
                                              const char *settings)
{
    json_auto_t *json = json_loads(text, 0, NULL);
    json_auto_t *hardware_json = json_loads(settings, 0, NULL);
    const struct het_hardware *hardware;
    const struct het_cluster *cluster;
    struct het_error err = { 0 };
    ck_assert_msg(!het_hardware_json_read(arena, hardware_json, het_hardware_builtin(),
                                          &hardware, &err),
                  "%s", err.message);
    ck_assert_msg(!het_cluster_json_read(arena, json, hardware, &cluster, &err), "%s",
                  err.message);
    return cluster;
}

/* Two nodes; the settings may state a rate, the first node too. */
#define CLUSTER(stated)                                                                  \
    "{\"nodes\":[{\"name\":\"a\",\"type\":\"A10G\",\"gpus\":4,"                          \
    "\"instance_type\":\"g5.12xlarge\"" stated "},"                                      \
    "{\"name\":\"b\",\"type\":\"A10G\",\"gpus\":1}]}"
#define SETTINGS "{\"gpuTypes\":[{\"name\":\"A10G\",\"interGBs\":2,\"intraGBs\":20}]}"

START_TEST(figures_of_the_administrator_come_before_tables_before_guesses)
{
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster = read_cluster(arena, CLUSTER(""), "{}");
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 40e9 / 8);
    ck_assert_int_eq(cluster->nodes[0].uplink_source, HET_LINK_INSTANCE);
    ck_assert_int_eq(cluster->nodes[0].intra_source, HET_LINK_INSTANCE);
    ck_assert_double_eq(cluster->nodes[1].uplink_bytes_per_s,
                        HET_DEFAULT_INTER_BYTES_PER_S);
    ck_assert_int_eq(cluster->nodes[1].uplink_source, HET_LINK_DEFAULT);
    ck_assert_int_eq(cluster->nodes[1].intra_source, HET_LINK_GPU_TYPE);

    cluster = read_cluster(arena, CLUSTER(""), SETTINGS);
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 2e9);
    ck_assert_double_eq(cluster->nodes[0].intra_bytes_per_s, 20e9);
    ck_assert_int_eq(cluster->nodes[1].uplink_source, HET_LINK_STATED);

    cluster = read_cluster(arena, CLUSTER(",\"inter_gb_s\":7"), SETTINGS);
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 7e9);
    het_arena_free(arena);
}
END_TEST

START_TEST(
    figures_of_the_administrator_by_instance_type_come_before_those_of_the_gpu_type)
{
    static const char settings[] =
        "{\"gpuTypes\":[{\"name\":\"A10G\",\"interGBs\":2,\"intraGBs\":20}],"
        "\"instanceTypes\":[{\"name\":\"g5.12xlarge\",\"interGBs\":4.5},"
        "{\"name\":\"lab-box\",\"interGBs\":1,\"intraGBs\":9}]}";
    struct het_arena *arena = het_arena_new();
    const struct het_assumed_link *links;
    const struct het_cluster *cluster = read_cluster(arena, CLUSTER(""), settings);
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 4.5e9);
    ck_assert_double_eq(cluster->nodes[0].intra_bytes_per_s, 20e9);
    ck_assert_double_eq(cluster->nodes[1].uplink_bytes_per_s, 2e9);
    ck_assert_uint_eq(het_cluster_assumed_links(arena, cluster, &links), 0);

    /* A machine that no table has. */
    cluster = read_cluster(
        arena,
        "{\"nodes\":[{\"type\":\"A10G\",\"gpus\":4,\"instance_type\":\"lab-box\"}]}",
        settings);
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 1e9);
    ck_assert_double_eq(cluster->nodes[0].intra_bytes_per_s, 9e9);
    ck_assert_int_eq(cluster->nodes[0].uplink_source, HET_LINK_STATED);

    cluster = read_cluster(arena, CLUSTER(",\"inter_gb_s\":7"), settings);
    ck_assert_double_eq(cluster->nodes[0].uplink_bytes_per_s, 7e9);
    het_arena_free(arena);
}
END_TEST

START_TEST(instance_types_of_the_administrator_that_say_nothing_or_two_things_are_refused)
{
    static const char *const cases[][2] = {
        { "[{\"name\":\"a\"}]",
          "instanceTypes[0]: must state intraGBs or interGBs of a" },
        { "[{\"name\":\"a\",\"interGBs\":1},{\"name\":\"a\",\"interGBs\":2}]",
          "instanceTypes[1]: two instance types are named a" },
        { "[{\"interGBs\":1}]", "instanceTypes[0].name: is missing" },
        { "[{\"name\":\"a\",\"uplink\":1}]",
          "instanceTypes[0].uplink: unknown field; known are name, intraGBs, interGBs" },
    };
    struct het_arena *arena = het_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct het_hardware *hardware;
        struct het_error err = { 0 };
        json_auto_t *list = json_loads(cases[i][0], 0, NULL);
        json_auto_t *json = json_pack("{s:O}", "instanceTypes", list);
        ck_assert_int_eq(
            het_hardware_json_read(arena, json, het_hardware_builtin(), &hardware, &err),
            -1);
        ck_assert_str_eq(err.message, cases[i][1]);
    }
    het_arena_free(arena);
}
END_TEST

START_TEST(what_is_assumed_is_listed_once)
{
    struct het_arena *arena = het_arena_new();
    const struct het_assumed_link *links;
    const struct het_cluster *cluster = read_cluster(arena, CLUSTER(""), "{}");
    /* The second node has one GPU, so no link inside. */
    ck_assert_uint_eq(het_cluster_assumed_links(arena, cluster, &links), 3);
    json_auto_t *json = het_prediction_json_links(links, 3);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(
        text, "[{\"GBs\":5.0,\"from\":\"InstanceType\",\"gpuType\":\"A10G\","
              "\"instanceType\":\"g5.12xlarge\",\"link\":\"BetweenNodes\"},"
              "{\"GBs\":3.0,\"from\":\"Default\",\"gpuType\":\"A10G\",\"link\":"
              "\"BetweenNodes\"},{\"GBs\":24.0,\"from\":\"InstanceType\",\"gpuType\":"
              "\"A10G\",\"instanceType\":\"g5.12xlarge\",\"link\":\"InsideNode\"}]");
    free(text);
    cluster = read_cluster(arena, CLUSTER(""), SETTINGS);
    ck_assert_uint_eq(het_cluster_assumed_links(arena, cluster, &links), 0);
    het_arena_free(arena);
}
END_TEST

START_TEST(label_of_a_node_says_its_instance_type)
{
    json_auto_t *labels =
        json_pack("{s:s}", "node.kubernetes.io/instance-type", "a3-highgpu-8g");
    ck_assert_str_eq(het_node_instance_type(labels), "a3-highgpu-8g");
    /* Also one that no table has: the hardware settings may. */
    json_object_set_new(labels, "node.kubernetes.io/instance-type", json_string("mine"));
    ck_assert_str_eq(het_node_instance_type(labels), "mine");
    json_object_set_new(labels, "node.kubernetes.io/instance-type", json_string(""));
    ck_assert_ptr_null(het_node_instance_type(labels));
    ck_assert_ptr_null(het_node_instance_type(NULL));
}
END_TEST

Suite *test_instance_type_suite(void)
{
    Suite *suite = suite_create("instance_type");
    TCase *cases = tcase_create("instance");
    tcase_add_test(cases, table_is_the_one_of_the_file);
    tcase_add_test(cases, figures_of_the_administrator_come_before_tables_before_guesses);
    tcase_add_test(
        cases,
        figures_of_the_administrator_by_instance_type_come_before_those_of_the_gpu_type);
    tcase_add_test(
        cases,
        instance_types_of_the_administrator_that_say_nothing_or_two_things_are_refused);
    tcase_add_test(cases, what_is_assumed_is_listed_once);
    tcase_add_test(cases, label_of_a_node_says_its_instance_type);
    suite_add_tcase(suite, cases);
    return suite;
}
