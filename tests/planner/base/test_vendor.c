#include "planner/base/vendor.h"
#include "planner/model/hardware.h"

#include <check.h>
#include <string.h>

START_TEST(resource_says_whose_the_gpus_are)
{
    ck_assert_str_eq(het_vendor_of_resource("nvidia.com/gpu"), "nvidia");
    ck_assert_str_eq(het_vendor_of_resource("nvidia.com/mig-3g.20gb"), "nvidia");
    ck_assert_str_eq(het_vendor_of_resource("amd.com/gpu"), "amd");
    ck_assert_str_eq(het_vendor_of_resource("gpu.intel.com/i915"), "intel");
    ck_assert_str_eq(het_vendor_of_resource("habana.ai/gaudi"), "habana");
    ck_assert_ptr_null(het_vendor_of_resource("example.com/gpu"));
    ck_assert_ptr_null(het_vendor_of_resource("notamd.com/gpu"));
    ck_assert_ptr_null(het_vendor_of_resource("amd.com.example/gpu"));
}
END_TEST

START_TEST(name_says_whose_a_product_is)
{
    static const char *const names[][2] = {
        { "MI300X", "amd" },       { "mi210", "amd" },
        { "Instinct_Z9", "amd" },  { "Radeon-RX-7900", "amd" },
        { "AMD-X1", "amd" },       { "Gaudi2", "habana" },
        { "HL-225", "habana" },    { "Max-1550", "intel" },
        { "H100", "nvidia" },      { "A100-SXM4-40GB", "nvidia" },
        { "MIG-slice", "nvidia" }, { "X1", "nvidia" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_str_eq(het_vendor_of_type(names[i][0]), names[i][1]);
}
END_TEST

START_TEST(vendors_of_the_built_in_table_are_known)
{
    const struct het_hardware *hardware = het_hardware_builtin();
    for (size_t i = 0; i < hardware->type_count; i++) {
        const char *name = hardware->types[i].name;
        const char *vendor = strncmp(name, "MI", 2) ? "nvidia" : "amd";
        ck_assert_msg(!strcmp(het_vendor_of_type(name), vendor), "%s", name);
    }
}
END_TEST

START_TEST(titles_are_as_people_write_them)
{
    ck_assert_str_eq(het_vendor_title("amd"), "AMD");
    ck_assert_str_eq(het_vendor_title("ascend"), "ascend");
}
END_TEST

Suite *test_vendor_suite(void)
{
    Suite *suite = suite_create("vendor");
    TCase *cases = tcase_create("vendor");
    tcase_add_test(cases, resource_says_whose_the_gpus_are);
    tcase_add_test(cases, name_says_whose_a_product_is);
    tcase_add_test(cases, vendors_of_the_built_in_table_are_known);
    tcase_add_test(cases, titles_are_as_people_write_them);
    suite_add_tcase(suite, cases);
    return suite;
}
