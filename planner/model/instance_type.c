#include "planner/model/instance_type.h"

#include <stdlib.h>
#include <string.h>

/* What a ring or a send gets of one direction: as of the GPU types (hardware.c). Of a
 * network interface, all of it. */
#define NIC(gbit_per_s)  ((gbit_per_s)*1e9 / 8)
#define SWITCH(gb_per_s) ((gb_per_s)*1e9 * 0.8)
#define MESH(gb_per_s)   ((gb_per_s)*1e9 * 0.4)
#define PCIE(gb_per_s)   ((gb_per_s)*1e9 * 0.75)

/* The rows of instance_types.csv, which has the source of each; sorted by name. */
static const struct het_instance instances[] = {
    { "Standard_NC16as_T4_v3", NIC(8), 0 },
    { "Standard_NC24ads_A100_v4", NIC(20), 0 },
    { "Standard_NC40ads_H100_v5", NIC(40), 0 },
    { "Standard_NC48ads_A100_v4", NIC(40), PCIE(32) },
    { "Standard_NC4as_T4_v3", NIC(8), 0 },
    { "Standard_NC64as_T4_v3", NIC(32), PCIE(16) },
    { "Standard_NC80adis_H100_v5", NIC(80), PCIE(64) },
    { "Standard_NC8as_T4_v3", NIC(8), 0 },
    { "Standard_NC96ads_A100_v4", NIC(80), PCIE(32) },
    { "Standard_ND128isr_NDR_GB200_v6", NIC(1600), SWITCH(900) },
    { "Standard_ND40rs_v2", NIC(100), MESH(150) },
    { "Standard_ND96amsr_A100_v4", NIC(1600), SWITCH(300) },
    { "Standard_ND96asr_v4", NIC(1600), SWITCH(300) },
    { "Standard_ND96isr_H100_v5", NIC(3200), SWITCH(450) },
    { "Standard_ND96isr_H200_v5", NIC(3200), SWITCH(450) },
    { "Standard_ND96isr_MI300X_v5", NIC(3200), MESH(448) },
    { "Standard_NV36ads_A10_v5", NIC(40), 0 },
    { "Standard_NV72ads_A10_v5", NIC(80), PCIE(32) },
    { "a2-highgpu-1g", NIC(24), 0 },
    { "a2-highgpu-2g", NIC(32), SWITCH(300) },
    { "a2-highgpu-4g", NIC(50), SWITCH(300) },
    { "a2-highgpu-8g", NIC(100), SWITCH(300) },
    { "a2-megagpu-16g", NIC(100), SWITCH(300) },
    { "a2-ultragpu-1g", NIC(24), 0 },
    { "a2-ultragpu-2g", NIC(32), SWITCH(300) },
    { "a2-ultragpu-4g", NIC(50), SWITCH(300) },
    { "a2-ultragpu-8g", NIC(100), SWITCH(300) },
    { "a3-highgpu-8g", NIC(800), SWITCH(450) },
    { "a3-megagpu-8g", NIC(1600), SWITCH(450) },
    { "a3-ultragpu-8g", NIC(3200), SWITCH(450) },
    { "a4-highgpu-8g", NIC(3200), SWITCH(900) },
    { "a4x-highgpu-4g", NIC(1600), SWITCH(900) },
    { "g2-standard-12", NIC(16), 0 },
    { "g2-standard-16", NIC(32), 0 },
    { "g2-standard-24", NIC(32), PCIE(32) },
    { "g2-standard-32", NIC(32), 0 },
    { "g2-standard-4", NIC(10), 0 },
    { "g2-standard-48", NIC(50), PCIE(32) },
    { "g2-standard-8", NIC(16), 0 },
    { "g2-standard-96", NIC(100), PCIE(32) },
    { "g4dn.12xlarge", NIC(50), PCIE(16) },
    { "g4dn.16xlarge", NIC(50), 0 },
    { "g4dn.2xlarge", NIC(10), 0 },
    { "g4dn.4xlarge", NIC(20), 0 },
    { "g4dn.8xlarge", NIC(50), 0 },
    { "g4dn.metal", NIC(100), PCIE(16) },
    { "g4dn.xlarge", NIC(5), 0 },
    { "g5.12xlarge", NIC(40), PCIE(32) },
    { "g5.16xlarge", NIC(25), 0 },
    { "g5.24xlarge", NIC(50), PCIE(32) },
    { "g5.2xlarge", NIC(5), 0 },
    { "g5.48xlarge", NIC(100), PCIE(32) },
    { "g5.4xlarge", NIC(10), 0 },
    { "g5.8xlarge", NIC(25), 0 },
    { "g5.xlarge", NIC(2.5), 0 },
    { "g6.12xlarge", NIC(40), PCIE(32) },
    { "g6.16xlarge", NIC(25), 0 },
    { "g6.24xlarge", NIC(50), PCIE(32) },
    { "g6.2xlarge", NIC(5), 0 },
    { "g6.48xlarge", NIC(100), PCIE(32) },
    { "g6.4xlarge", NIC(10), 0 },
    { "g6.8xlarge", NIC(25), 0 },
    { "g6.xlarge", NIC(2.5), 0 },
    { "g6e.12xlarge", NIC(100), PCIE(32) },
    { "g6e.16xlarge", NIC(35), 0 },
    { "g6e.24xlarge", NIC(200), PCIE(32) },
    { "g6e.2xlarge", NIC(5), 0 },
    { "g6e.48xlarge", NIC(400), PCIE(32) },
    { "g6e.4xlarge", NIC(20), 0 },
    { "g6e.8xlarge", NIC(25), 0 },
    { "g6e.xlarge", NIC(2.5), 0 },
    { "g7e.12xlarge", NIC(400), PCIE(64) },
    { "g7e.24xlarge", NIC(800), PCIE(64) },
    { "g7e.2xlarge", NIC(50), 0 },
    { "g7e.48xlarge", NIC(1600), PCIE(64) },
    { "g7e.4xlarge", NIC(50), 0 },
    { "g7e.8xlarge", NIC(100), 0 },
    { "gr6.4xlarge", NIC(10), 0 },
    { "gr6.8xlarge", NIC(25), 0 },
    { "p3.16xlarge", NIC(25), MESH(150) },
    { "p3.8xlarge", NIC(10), MESH(100) },
    { "p3dn.24xlarge", NIC(100), MESH(150) },
    { "p4d.24xlarge", NIC(400), SWITCH(300) },
    { "p4de.24xlarge", NIC(400), SWITCH(300) },
    { "p5.48xlarge", NIC(3200), SWITCH(450) },
    { "p5.4xlarge", NIC(100), 0 },
    { "p5e.48xlarge", NIC(3200), SWITCH(450) },
    { "p5en.48xlarge", NIC(3200), SWITCH(450) },
    { "p6-b200.48xlarge", NIC(3200), SWITCH(900) },
    { "p6-b300.48xlarge", NIC(6400), SWITCH(900) },
};

static int compare(const void *name, const void *instance)
{
    return strcmp(name, ((const struct het_instance *)instance)->name);
}

const struct het_instance *het_instance_find(const char *name)
{
    return bsearch(name, instances, sizeof instances / sizeof *instances,
                   sizeof *instances, compare);
}
