/* vendor.h - the vendor of a GPU. The libraries by which GPUs talk to each other (NCCL,
 * RCCL) know those of one vendor only, so that a training job runs on one vendor's GPUs
 * (vendor_group.h). Vendors go by short names in small letters: nvidia, amd, intel,
 * habana, or another that an administrator's hardware file has. */
#ifndef HET_BASE_VENDOR_H
#define HET_BASE_VENDOR_H

/* Whose devices a Kubernetes resource counts, by its domain ("nvidia.com/gpu",
 * "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi"); NULL: unknown. */
const char *het_vendor_of_resource(const char *resource);

/* Whose product it is, by the name of the GPU type: "MI300X", "Instinct-MI210" and
 * "Radeon-..." are AMD's, "Gaudi2" and "HL-225" Habana's, "Max-1550" and "Flex-170"
 * Intel's, and what no rule knows is NVIDIA's. */
const char *het_vendor_of_type(const char *type);

/* The name in its usual spelling: "NVIDIA", "AMD"; an unknown name as it is. */
const char *het_vendor_title(const char *vendor);

#endif
