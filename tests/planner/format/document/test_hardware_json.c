#include "planner/format/document/hardware_json.h"

#include "planner/model/network.h"

#include <check.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &problem);
    ck_assert_msg(json != NULL, "%d: %s: %s", problem.column, problem.text, text);
    return json;
}

START_TEST(hardware_file_is_laid_over_the_table)
{
    struct het_arena *arena = het_arena_new();
    json_auto_t *json = parse(
        "{\"gpuTypes\":[{\"name\":\"A100-SXM4-40GB\",\"aliases\":[\"lab-card\"],"
        "\"memoryGiB\":39.5,\"intraGBs\":200,\"interGBs\":12.5,\"workspaceGiB\":3,"
        "\"pricePerHour\":\"3.67\",\"fp16TFLOPS\":250,\"memoryGBs\":1400}],\"levels\":[{\"label\":\"rack\",\"uplinkGBs\":20}],"
        "\"network\":{\"A100-40\":{\"2\":[[0,0,9],9e9]}}}");
    const struct het_hardware *hardware;
    ck_assert_int_eq(
        het_hardware_json_read(arena, json, het_hardware_builtin(), &hardware, NULL), 0);
    const struct het_gpu_type *type = het_hardware_find(hardware, "LAB_CARD");
    ck_assert_uint_eq(type->memory_bytes, (uint64_t)79 << 29);
    ck_assert_uint_eq(type->workspace_bytes, (uint64_t)3 << 30);
    ck_assert_double_eq(type->intra_bytes_per_s, 200e9);
    ck_assert_double_eq(type->inter_bytes_per_s, 12.5e9);
    ck_assert_double_eq(type->price_per_hour, 3.67);
    ck_assert_str_eq(type->profile, "A100");
    ck_assert_str_eq(hardware->levels[0].label, "rack");
    ck_assert_double_eq(hardware->levels[0].uplink_bytes_per_s, 20e9);
    ck_assert_uint_eq(hardware->network->curve_count, 1);
    ck_assert_double_eq(type->fp16_flops, 250e12);
    ck_assert_double_eq(type->bf16_flops, 312e12); /* the table's */
    ck_assert_double_eq(type->memory_bytes_per_s, 1400e9);

    struct het_error err;
    json_auto_t *bad = parse("{\"gpuTypes\":[{\"name\":\"X\",\"intraGBs\":0}]}");
    ck_assert_int_eq(
        het_hardware_json_read(arena, bad, het_hardware_builtin(), &hardware, &err), -1);
    ck_assert_str_eq(err.message, "gpuTypes[0].intraGBs: must be 1e-06 to 1e+06, is 0");
    json_auto_t *misspelt = parse("{\"gpuTypes\":[{\"name\":\"X\",\"intraGbs\":1}]}");
    ck_assert_int_eq(
        het_hardware_json_read(arena, misspelt, het_hardware_builtin(), &hardware, &err),
        -1);
    ck_assert_str_eq(
        err.message,
        "gpuTypes[0].intraGbs: unknown field; known are name, aliases, "
        "profile, memoryGiB, intraGBs, interGBs, workspaceGiB, pricePerHour, "
        "bf16TFLOPS, fp16TFLOPS, tf32TFLOPS, fp32TFLOPS, memoryGBs, vendor");
    json_auto_t *part = parse("{\"gpuType\":[]}");
    ck_assert_int_eq(
        het_hardware_json_read(arena, part, het_hardware_builtin(), &hardware, &err), -1);
    ck_assert_str_eq(err.message,
                     "gpuType: unknown field; known are gpuTypes, instanceTypes, levels, "
                     "network, storageGBs");
    het_arena_free(arena);
}
END_TEST

Suite *test_hardware_json_suite(void)
{
    Suite *suite = suite_create("hardware_json");
    TCase *cases = tcase_create("hardware_json");
    tcase_add_test(cases, hardware_file_is_laid_over_the_table);
    suite_add_tcase(suite, cases);
    return suite;
}
