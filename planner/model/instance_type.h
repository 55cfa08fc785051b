/* instance_type.h - what the instance types of clouds have for links: the table of
 * instance_types.csv, as it is compiled in. A GPU type says nothing about its node's
 * network: an A10G is sold with 2.5 to 100 Gbit/s. */
#ifndef HET_MODEL_INSTANCE_TYPE_H
#define HET_MODEL_INSTANCE_TYPE_H

/* Also of the administrator's own (hardware.h), where 0 is what they do not state. */
struct het_instance {
    const char *name;          /* as in the label node.kubernetes.io/instance-type */
    double uplink_bytes_per_s; /* each direction, the rate of its interfaces: what the
                                  provider states without bursts */
    double intra_bytes_per_s;  /* between its GPUs, each direction; 0: it has one GPU */
};

/* NULL if the table does not have it. Case counts. */
const struct het_instance *het_instance_find(const char *name);

#endif
