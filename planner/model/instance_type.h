/* instance_type.h - the link rates of cloud instance types: the table of
 * instance_types.csv, compiled in. A GPU type says nothing about its node's network: an
 * A10G is sold with 2.5 to 100 Gbit/s. */
#ifndef HET_MODEL_INSTANCE_TYPE_H
#define HET_MODEL_INSTANCE_TYPE_H

/* Also an administrator's own entry (hardware.h), where 0 means not stated. */
struct het_instance {
    const char *name;          /* as in the label node.kubernetes.io/instance-type */
    double uplink_bytes_per_s; /* each direction, the rate of its interfaces: what the
                                  provider states without bursts */
    double intra_bytes_per_s;  /* between its GPUs, each direction; 0: it has one GPU */
};

/* NULL if the table does not have it. Case counts. */
const struct het_instance *het_instance_find(const char *name);

#endif
