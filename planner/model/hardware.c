#include "planner/model/hardware.h"

#include <ctype.h>
#include <string.h>

/* What a ring or a send gets of the figures in vendors' data sheets.
 *
 * Switched (NVSwitch, or one fabric between all GPUs): 0.8 of one direction. Sailor's
 * measurements (SOSP'25, network/intra_node_bandwidths.json) peak at 243 of 300 GB/s on
 * four A100 SXM4.
 * Meshed (NVLink 1 and 2 without a switch): a pair is joined by two links of four or six,
 * so 0.4 of one direction; the same file peaks at 68 of 150 GB/s on V100 SXM2.
 * PCIe x16: 0.75 of one direction (packet headers, switch); cards without peer-to-peer
 * (GeForce, Titan) copy through host memory, which crosses the bus twice: half of that.
 * Optional bridges join pairs only and are not counted. */
#define GB                 1e9
#define SWITCHED(total_gb) ((total_gb) / 2.0 * 0.8 * GB)
#define MESHED(total_gb)   ((total_gb) / 2.0 * 0.4 * GB)
#define PCIE3              (16 * 0.75 * GB)
#define PCIE4              (32 * 0.75 * GB)
#define PCIE5              (64 * 0.75 * GB)
#define THROUGH_HOST       0.5

/* Dense rates in TFLOP/s: bf16, fp16 (0: the part has no such units) and fp32 outside
 * them; memory bandwidth in GB/s. Vendors' data sheets; fp16 with fp32 sums, where a part
 * halves that. TF32 units, which fp32 training uses where a part has them, run at half
 * the rate of bf16. */
#define RATES(bf16, fp16, fp32, memory_gb_per_s)                                         \
    .bf16_flops = (bf16)*1e12, .fp16_flops = (fp16)*1e12, .fp32_flops = (fp32)*1e12,     \
    .memory_bytes_per_s = (memory_gb_per_s)*GB
#define TF32_RATES(bf16, fp32, memory_gb_per_s)                                          \
    RATES(bf16, bf16, fp32, memory_gb_per_s), .tf32_flops = (bf16) / 2.0 * 1e12

#define MIB(mib) ((uint64_t)(mib) << 20)
#define WORKSPACE(mib)                                                                   \
    (MIB(mib) / 2 < HET_DEFAULT_WORKSPACE_BYTES ? MIB(mib) / 2                           \
                                                : HET_DEFAULT_WORKSPACE_BYTES)
#define ALIASES(...)                                                                     \
    .aliases = (const char *const[]){ __VA_ARGS__ },                                     \
    .alias_count = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)
#define GPU(gpu_name, memory_mib, intra)                                                 \
    .name = (gpu_name), .memory_bytes = MIB(memory_mib), .intra_bytes_per_s = (intra),   \
    .workspace_bytes = WORKSPACE(memory_mib)

/* Memory is what the driver reports in MiB (nvidia-smi, rocm-smi). Link figures: vendors'
 * data sheets, both directions together. `profile` is the short name that published
 * profiles use for the part; the 40 and 80 GB versions compute alike. Names that differ
 * from a name here only by what het_hardware_find ignores need no alias; cloud labels:
 * GKE gke-accelerator, Karpenter instance-gpu-name (a100 and v100 are told apart by
 * memory), AWS and Azure instance types. */
static const struct het_gpu_type builtin_types[] = {
    { GPU("A10", 23028, PCIE4), TF32_RATES(125, 31.2, 600),
      ALIASES("Standard_NV36ads_A10_v5", "Standard_NV72ads_A10_v5") },
    { GPU("A100-PCIE-40GB", 40960, PCIE4), TF32_RATES(312, 19.5, 1555) },
    { GPU("A100-PCIE-80GB", 81920, PCIE4), TF32_RATES(312, 19.5, 1935),
      ALIASES("A100-80GB-PCIe", "Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4",
              "Standard_NC96ads_A100_v4") },
    { GPU("A100-SXM4-40GB", 40960, SWITCHED(600)), TF32_RATES(312, 19.5, 1555),
      .profile = "A100",
      ALIASES("A100", "A100-40GB", "A100-40", "p4d.24xlarge", "Standard_ND96asr_v4") },
    { GPU("A100-SXM4-80GB", 81920, SWITCHED(600)), TF32_RATES(312, 19.5, 2039),
      .profile = "A100",
      ALIASES("A100", "A100-80GB", "A100-80", "p4de.24xlarge",
              "Standard_ND96amsr_A100_v4") },
    { GPU("A10G", 23028, PCIE4), TF32_RATES(70, 31.2, 600),
      ALIASES("g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge", "g5.12xlarge",
              "g5.16xlarge", "g5.24xlarge", "g5.48xlarge") },
    { GPU("A30", 24576, PCIE4), TF32_RATES(165, 10.3, 933) },
    { GPU("A40", 46068, PCIE4), TF32_RATES(149.7, 37.4, 696) },
    { GPU("A800-PCIE-80GB", 81920, PCIE4), TF32_RATES(312, 19.5, 1935),
      ALIASES("A800-80GB-PCIe") },
    { GPU("A800-SXM4-80GB", 81920, SWITCHED(400)), TF32_RATES(312, 19.5, 2039),
      .profile = "A800", ALIASES("A800", "A800-80GB") },
    { GPU("B200-SXM-192GB", 183359, SWITCHED(1800)), TF32_RATES(2250, 75, 8000),
      .profile = "B200", ALIASES("B200", "p6-b200.48xlarge") },
    { GPU("GB200-186GB", 189471, SWITCHED(1800)), TF32_RATES(2500, 80, 8000),
      .profile = "GB200", ALIASES("GB200") },
    { GPU("GH200-144GB", 147456, 250 * GB), TF32_RATES(989, 67, 4900), .profile = "GH200",
      ALIASES("GH200-144G-HBM3e") },
    /* Measured by Sailor between the four of a node (a mesh of NVLink 4). */
    { GPU("GH200-96GB", 97871, 250 * GB), TF32_RATES(989, 67, 4000), .profile = "GH200",
      ALIASES("GH200", "GH200-480GB", "GH200-120GB", "GH-96") },
    { GPU("H100-NVL-94GB", 95830, PCIE5), TF32_RATES(835, 60, 3938),
      ALIASES("H100-NVL", "Standard_NC40ads_H100_v5", "Standard_NC80adis_H100_v5") },
    { GPU("H100-PCIE-80GB", 81559, PCIE5), TF32_RATES(756, 51, 2000),
      ALIASES("H100-PCIe") },
    { GPU("H100-SXM5-80GB", 81559, SWITCHED(900)), TF32_RATES(989, 67, 3350),
      .profile = "H100",
      ALIASES("H100", "H100-80GB-HBM3", "H100-80GB", "H100-mega-80GB", "p5.48xlarge",
              "p5.4xlarge", "Standard_ND96isr_H100_v5") },
    { GPU("H20-SXM-96GB", 97871, SWITCHED(900)), TF32_RATES(148, 44, 4000),
      .profile = "H20", ALIASES("H20") },
    { GPU("H200-SXM-141GB", 143771, SWITCHED(900)), TF32_RATES(989, 67, 4800),
      .profile = "H200",
      ALIASES("H200", "H200-141GB", "p5e.48xlarge", "p5en.48xlarge",
              "Standard_ND96isr_H200_v5") },
    { GPU("H800-SXM5-80GB", 81559, SWITCHED(400)), TF32_RATES(989, 67, 3350),
      .profile = "H800", ALIASES("H800") },
    { GPU("L20", 46068, PCIE4), TF32_RATES(119.5, 59.8, 864) },
    { GPU("L4", 23034, PCIE4), TF32_RATES(121, 30.3, 300),
      ALIASES("g6.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.8xlarge", "g6.12xlarge",
              "g6.16xlarge", "g6.24xlarge", "g6.48xlarge") },
    { GPU("L40", 46068, PCIE4), TF32_RATES(181.05, 90.5, 864) },
    { GPU("L40S", 46068, PCIE4), TF32_RATES(362, 91.6, 864),
      ALIASES("g6e.xlarge", "g6e.2xlarge", "g6e.4xlarge", "g6e.8xlarge", "g6e.12xlarge",
              "g6e.16xlarge", "g6e.24xlarge", "g6e.48xlarge") },
    { GPU("MI210", 65520, PCIE4), RATES(181, 181, 22.6, 1638),
      ALIASES("Instinct-MI210") },
    /* A module is two GPUs to the driver and to Kubernetes: half of its figures each. */
    { GPU("MI250", 65520, MESHED(400)), RATES(181.05, 181.05, 22.65, 1638.5),
      ALIASES("Instinct-MI250") },
    { GPU("MI250X", 65520, MESHED(400)), RATES(191.5, 191.5, 23.95, 1638.5),
      ALIASES("Instinct-MI250X") },
    { GPU("MI300X", 196592, MESHED(896)), TF32_RATES(1307.4, 163.4, 5300),
      ALIASES("Instinct-MI300X", "Instinct-MI300X-OAM", "Standard_ND96isr_MI300X_v5") },
    { GPU("P100-PCIE-16GB", 16384, PCIE3), RATES(0, 18.7, 9.3, 732), .profile = "P100",
      ALIASES("P100") },
    { GPU("P100-SXM2-16GB", 16384, MESHED(160)), RATES(0, 21.2, 10.6, 732),
      .profile = "P100" },
    { GPU("RTX-2080-Ti", 11264, PCIE3 *THROUGH_HOST), RATES(0, 53.8, 13.4, 616),
      ALIASES("GeForce-RTX-2080-Ti", "RTX2080Ti", "RTX-2080", "RTX2080") },
    { GPU("RTX-3090", 24576, PCIE4 *THROUGH_HOST), TF32_RATES(71, 35.6, 936),
      ALIASES("GeForce-RTX-3090", "RTX3090") },
    { GPU("RTX-4090", 24564, PCIE4 *THROUGH_HOST), TF32_RATES(165.2, 82.6, 1008),
      ALIASES("GeForce-RTX-4090", "RTX4090") },
    { GPU("RTX-A6000", 49140, PCIE4), TF32_RATES(154.85, 38.7, 768), ALIASES("A6000") },
    { GPU("T4", 15360, PCIE3), RATES(0, 65, 8.1, 320),
      ALIASES("g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge", "g4dn.8xlarge",
              "g4dn.12xlarge", "g4dn.16xlarge", "g4dn.metal", "Standard_NC4as_T4_v3",
              "Standard_NC8as_T4_v3", "Standard_NC16as_T4_v3", "Standard_NC64as_T4_v3") },
    { GPU("Titan-RTX", 24576, PCIE3 *THROUGH_HOST), RATES(0, 130.5, 16.3, 672),
      ALIASES("TitanRTX") },
    { GPU("V100-PCIE-16GB", 16384, PCIE3), RATES(0, 112, 14, 900),
      ALIASES("Standard_NC6s_v3", "Standard_NC12s_v3", "Standard_NC24s_v3",
              "Standard_NC24rs_v3") },
    { GPU("V100-PCIE-32GB", 32768, PCIE3), RATES(0, 112, 14, 900) },
    { GPU("V100-SXM2-16GB", 16384, MESHED(300)), RATES(0, 125, 15.7, 900),
      .profile = "V100",
      ALIASES("V100", "V100-16GB", "V100-16", "p3.2xlarge", "p3.8xlarge",
              "p3.16xlarge") },
    { GPU("V100-SXM2-32GB", 32768, MESHED(300)), RATES(0, 125, 15.7, 900),
      .profile = "V100",
      ALIASES("V100", "V100-32GB", "V100-SXM3-32GB", "p3dn.24xlarge",
              "Standard_ND40rs_v2") },
};

const struct het_hardware *het_hardware_builtin(void)
{
    static const struct het_hardware builtin = {
        .types = builtin_types,
        .type_count = sizeof builtin_types / sizeof *builtin_types,
    };
    return &builtin;
}

static int plain_char(char c)
{
    return c == '_' || c == ' ' ? '-' : tolower((unsigned char)c);
}

/* `label` behind the vendor words that say nothing about the part. */
static const char *skip_vendor(const char *label)
{
    static const char *const words[] = { "nvidia-", "tesla-", "amd-" };
    for (size_t i = 0; i < sizeof words / sizeof *words;) {
        size_t length = 0;
        while (words[i][length] && plain_char(label[length]) == words[i][length])
            length++;
        if (!words[i][length] && label[length]) {
            label += length;
            i = 0;
        } else {
            i++;
        }
    }
    return label;
}

static bool same_label(const char *a, const char *b)
{
    a = skip_vendor(a);
    b = skip_vendor(b);
    while (*a && plain_char(*a) == plain_char(*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

static bool is_called(const struct het_gpu_type *type, const char *label)
{
    if (same_label(type->name, label))
        return true;
    for (size_t i = 0; i < type->alias_count; i++)
        if (same_label(type->aliases[i], label))
            return true;
    return false;
}

const struct het_gpu_type *het_hardware_find(const struct het_hardware *hardware,
                                             const char *label)
{
    for (size_t i = 0; i < hardware->type_count; i++)
        if (is_called(&hardware->types[i], label))
            return &hardware->types[i];
    return NULL;
}

const struct het_gpu_type *het_hardware_find_sized(const struct het_hardware *hardware,
                                                   const char *label,
                                                   uint64_t memory_bytes)
{
    const struct het_gpu_type *best = NULL;
    uint64_t best_distance = UINT64_MAX;
    for (size_t i = 0; i < hardware->type_count; i++) {
        const struct het_gpu_type *type = &hardware->types[i];
        if (!is_called(type, label))
            continue;
        if (!memory_bytes || !type->memory_bytes || same_label(type->name, label))
            return best ? best : type;
        uint64_t distance = type->memory_bytes > memory_bytes
                                ? type->memory_bytes - memory_bytes
                                : memory_bytes - type->memory_bytes;
        if (distance < best_distance) {
            best = type;
            best_distance = distance;
        }
    }
    return best;
}

const char *het_hardware_plain_name(struct het_arena *arena, const char *label)
{
    char *name = het_arena_strdup(arena, skip_vendor(label));
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '-';
    return name;
}

/* ---- merging ---- */

static bool any_is_called(const struct het_hardware *hardware, const char *label)
{
    return het_hardware_find(hardware, label) != NULL;
}

static const struct het_gpu_type *find_name(const struct het_hardware *hardware,
                                            const char *name)
{
    for (size_t i = 0; i < hardware->type_count; i++)
        if (same_label(hardware->types[i].name, name))
            return &hardware->types[i];
    return NULL;
}

/* The aliases of `own`, then those of `base` that nothing in `extra` claims. */
static void merge_aliases(struct het_arena *arena, const struct het_hardware *extra,
                          const struct het_gpu_type *own, const struct het_gpu_type *base,
                          struct het_gpu_type *ret)
{
    size_t own_count = own ? own->alias_count : 0;
    size_t base_count = base ? base->alias_count : 0;
    const char **aliases = HET_ARENA_ARRAY(arena, const char *, own_count + base_count);
    size_t count = 0;
    for (size_t i = 0; i < own_count; i++)
        aliases[count++] = own->aliases[i];
    for (size_t i = 0; i < base_count; i++)
        if (!any_is_called(extra, base->aliases[i]))
            aliases[count++] = base->aliases[i];
    ret->aliases = aliases;
    ret->alias_count = count;
}

static struct het_gpu_type overlay(const struct het_gpu_type *base,
                                   const struct het_gpu_type *own)
{
    struct het_gpu_type type = base ? *base : (struct het_gpu_type){ 0 };
    type.name = own->name;
    if (own->profile)
        type.profile = own->profile;
    if (own->vendor)
        type.vendor = own->vendor;
    if (own->memory_bytes)
        type.memory_bytes = own->memory_bytes;
    if (own->intra_bytes_per_s > 0)
        type.intra_bytes_per_s = own->intra_bytes_per_s;
    type.intra_is_stated |= own->intra_bytes_per_s > 0;
    if (own->inter_bytes_per_s > 0)
        type.inter_bytes_per_s = own->inter_bytes_per_s;
    if (own->workspace_bytes)
        type.workspace_bytes = own->workspace_bytes;
    if (own->price_per_hour > 0)
        type.price_per_hour = own->price_per_hour;
    if (own->bf16_flops > 0)
        type.bf16_flops = own->bf16_flops;
    if (own->fp16_flops > 0)
        type.fp16_flops = own->fp16_flops;
    if (own->tf32_flops > 0)
        type.tf32_flops = own->tf32_flops;
    if (own->fp32_flops > 0)
        type.fp32_flops = own->fp32_flops;
    if (own->memory_bytes_per_s > 0)
        type.memory_bytes_per_s = own->memory_bytes_per_s;
    return type;
}

const struct het_hardware *het_hardware_merge(struct het_arena *arena,
                                              const struct het_hardware *base,
                                              const struct het_hardware *extra)
{
    struct het_gpu_type *types =
        HET_ARENA_ARRAY(arena, struct het_gpu_type, base->type_count + extra->type_count);
    size_t count = 0;
    /* What the admin wrote comes first, so that its names and aliases are found first. */
    for (size_t i = 0; i < extra->type_count; i++) {
        const struct het_gpu_type *own = &extra->types[i];
        const struct het_gpu_type *below = find_name(base, own->name);
        types[count] = overlay(below, own);
        merge_aliases(arena, extra, own, below, &types[count++]);
    }
    for (size_t i = 0; i < base->type_count; i++) {
        if (find_name(extra, base->types[i].name))
            continue;
        types[count] = base->types[i];
        merge_aliases(arena, extra, NULL, &base->types[i], &types[count++]);
    }
    struct het_hardware *merged = het_arena_alloc(arena, sizeof *merged);
    const struct het_hardware *instances = extra->instance_count ? extra : base;
    const struct het_hardware *levels = extra->level_count ? extra : base;
    *merged = (struct het_hardware){
        .types = types,
        .type_count = count,
        .instances = instances->instances,
        .instance_count = instances->instance_count,
        .levels = levels->levels,
        .level_count = levels->level_count,
        .network = extra->network ? extra->network : base->network,
        .storage_bytes_per_s = extra->storage_bytes_per_s > 0 ? extra->storage_bytes_per_s
                                                              : base->storage_bytes_per_s,
    };
    return merged;
}

uint64_t het_hardware_default_workspace(uint64_t memory_bytes)
{
    uint64_t half = memory_bytes / 2;
    return half < HET_DEFAULT_WORKSPACE_BYTES ? half : HET_DEFAULT_WORKSPACE_BYTES;
}
