#include "planner/model/hardware.h"

#include <check.h>
#include <string.h>

static const char *canonical(const char *label)
{
    const struct het_gpu_type *type = het_hardware_find(het_hardware_builtin(), label);
    return type ? type->name : "none";
}

START_TEST(table_is_sorted_and_whole)
{
    const struct het_hardware *table = het_hardware_builtin();
    for (size_t i = 0; i < table->type_count; i++) {
        const struct het_gpu_type *type = &table->types[i];
        if (i)
            ck_assert_msg(strcmp(table->types[i - 1].name, type->name) < 0, "%s",
                          type->name);
        ck_assert_uint_ge(type->memory_bytes, (uint64_t)11 << 30);
        ck_assert_uint_le(type->workspace_bytes, HET_DEFAULT_WORKSPACE_BYTES);
        ck_assert_uint_le(type->workspace_bytes, type->memory_bytes / 2);
        ck_assert_double_ge(type->intra_bytes_per_s, 6e9);
        ck_assert_double_eq(type->inter_bytes_per_s, 0); /* it does not say */
        /* A name means its own entry, and an alias one of those that list it. */
        ck_assert_ptr_eq(het_hardware_find(table, type->name), type);
        for (size_t a = 0; a < type->alias_count; a++)
            ck_assert_ptr_eq(
                het_hardware_find_sized(table, type->aliases[a], type->memory_bytes),
                type);
    }
}
END_TEST

START_TEST(bandwidth_follows_the_rule_of_its_link)
{
    const struct het_hardware *table = het_hardware_builtin();
    /* 600 GB/s both ways, 0.8 of one; V100 meshed: 300 both ways, 0.4 of one; PCIe 4:
     * 0.75 of 32; RTX 3090 through the host: half of that. */
    ck_assert_double_eq(het_hardware_find(table, "A100-SXM4-80GB")->intra_bytes_per_s,
                        240e9);
    ck_assert_double_eq(het_hardware_find(table, "V100-SXM2-16GB")->intra_bytes_per_s,
                        60e9);
    ck_assert_double_eq(het_hardware_find(table, "L40S")->intra_bytes_per_s, 24e9);
    ck_assert_double_eq(het_hardware_find(table, "RTX-3090")->intra_bytes_per_s, 12e9);
}
END_TEST

START_TEST(labels_of_all_clouds_are_known)
{
    static const struct {
        const char *label, *name;
    } cases[] = {
        /* NVIDIA GPU Feature Discovery */
        { "NVIDIA-A100-SXM4-40GB", "A100-SXM4-40GB" },
        { "NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB" },
        { "A100-SXM4-80GB", "A100-SXM4-80GB" },
        { "NVIDIA-A100-80GB-PCIe", "A100-PCIE-80GB" },
        { "NVIDIA-A100-PCIE-40GB", "A100-PCIE-40GB" },
        { "Tesla-V100-SXM2-16GB", "V100-SXM2-16GB" },
        { "Tesla-T4", "T4" },
        { "NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB" },
        { "NVIDIA-H100-PCIe", "H100-PCIE-80GB" },
        { "NVIDIA-GH200-480GB", "GH200-96GB" },
        { "NVIDIA-GeForce-RTX-3090", "RTX-3090" },
        { "NVIDIA GeForce RTX 3090", "RTX-3090" },
        { "NVIDIA-L40S", "L40S" },
        { "TITAN-RTX", "Titan-RTX" },
        /* AMD */
        { "AMD_Instinct_MI300X_OAM", "MI300X" },
        /* GKE */
        { "nvidia-tesla-a100", "A100-SXM4-40GB" },
        { "nvidia-a100-80gb", "A100-SXM4-80GB" },
        { "nvidia-tesla-v100", "V100-SXM2-16GB" },
        { "nvidia-tesla-t4", "T4" },
        { "nvidia-l4", "L4" },
        { "nvidia-h100-80gb", "H100-SXM5-80GB" },
        { "nvidia-h100-mega-80gb", "H100-SXM5-80GB" },
        { "nvidia-h200-141gb", "H200-SXM-141GB" },
        { "nvidia-b200", "B200-SXM-192GB" },
        /* EKS, Karpenter, instance types */
        { "t4", "T4" },
        { "a10g", "A10G" },
        { "p3dn.24xlarge", "V100-SXM2-32GB" },
        { "Standard_ND96asr_v4", "A100-SXM4-40GB" },
        { "standard_nc24ads_a100_v4", "A100-PCIE-80GB" },
        /* Profiles */
        { "RTX3090", "RTX-3090" },
        { "GH200", "GH200-96GB" },
        /* Nothing of ours */
        { "NVIDIA-A100-SXM4-41GB", "none" },
        { "nvidia-", "none" },
        { "", "none" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(canonical(cases[i].label), cases[i].name);
}
END_TEST

START_TEST(memory_tells_versions_of_a_shared_alias_apart)
{
    const struct het_hardware *table = het_hardware_builtin();
    const uint64_t gib = (uint64_t)1 << 30;
    ck_assert_str_eq(het_hardware_find_sized(table, "a100", 80 * gib)->name,
                     "A100-SXM4-80GB");
    ck_assert_str_eq(het_hardware_find_sized(table, "a100", 39 * gib)->name,
                     "A100-SXM4-40GB");
    ck_assert_str_eq(het_hardware_find_sized(table, "a100", 0)->name, "A100-SXM4-40GB");
    ck_assert_str_eq(het_hardware_find_sized(table, "v100", 32 * gib)->name,
                     "V100-SXM2-32GB");
    /* A name is a name, whatever the memory. */
    ck_assert_str_eq(het_hardware_find_sized(table, "A100-SXM4-40GB", 80 * gib)->name,
                     "A100-SXM4-40GB");
}
END_TEST

START_TEST(what_an_admin_writes_wins)
{
    struct het_arena *arena = het_arena_new();
    const struct het_gpu_type types[] = {
        { .name = "a100-sxm4-40gb",
          .aliases = (const char *const[]){ "our-card" },
          .alias_count = 1,
          .price_per_hour = 3.67,
          .intra_bytes_per_s = 200e9 },
        { .name = "X1",
          .aliases = (const char *const[]){ "NVIDIA-T4", "A100" },
          .alias_count = 2,
          .memory_bytes = 1 },
    };
    const struct het_hardware extra = { .types = types, .type_count = 2 };
    const struct het_hardware *merged =
        het_hardware_merge(arena, het_hardware_builtin(), &extra);
    ck_assert_uint_eq(merged->type_count, het_hardware_builtin()->type_count + 1);
    const struct het_gpu_type *a100 = het_hardware_find(merged, "our-card");
    ck_assert_double_eq(a100->price_per_hour, 3.67);
    ck_assert_double_eq(a100->intra_bytes_per_s, 200e9);
    ck_assert_uint_eq(a100->memory_bytes, (uint64_t)40 << 30); /* from the table */
    ck_assert_str_eq(a100->profile, "A100");
    ck_assert_ptr_eq(het_hardware_find(merged, "A100-40GB"), a100);
    ck_assert_str_eq(het_hardware_find(merged, "Tesla-T4")->name, "X1");
    ck_assert_str_eq(het_hardware_find_sized(merged, "A100", (uint64_t)80 << 30)->name,
                     "X1");
    het_arena_free(arena);
}
END_TEST

START_TEST(unknown_label_keeps_its_own_words)
{
    struct het_arena *arena = het_arena_new();
    ck_assert_str_eq(het_hardware_plain_name(arena, "NVIDIA-RTX 9090"), "RTX-9090");
    ck_assert_str_eq(het_hardware_plain_name(arena, "Tesla-Z1_b"), "Z1_b");
    het_arena_free(arena);
}
END_TEST

Suite *test_hardware_suite(void)
{
    Suite *suite = suite_create("hardware");
    TCase *cases = tcase_create("hardware");
    tcase_add_test(cases, table_is_sorted_and_whole);
    tcase_add_test(cases, bandwidth_follows_the_rule_of_its_link);
    tcase_add_test(cases, labels_of_all_clouds_are_known);
    tcase_add_test(cases, memory_tells_versions_of_a_shared_alias_apart);
    tcase_add_test(cases, what_an_admin_writes_wins);
    tcase_add_test(cases, unknown_label_keeps_its_own_words);
    suite_add_tcase(suite, cases);
    return suite;
}
