/* { "nodes": NodeList, "pods": PodList }: each object alone, and the cluster they make.
 */
#include "tests/fuzz/fuzz.h"

static void read_each(struct het_arena *arena, const json_t *nodes, const json_t *pods)
{
    size_t i;
    json_t *object;
    json_array_foreach (json_object_get(nodes, "items"), i, object) {
        struct het_node_facts facts;
        het_node_read(arena, object, "nvidia.com/gpu", het_hardware_builtin(), &facts);
        assert(facts.unusable || (facts.type && facts.allocatable > 0));
    }
    json_array_foreach (json_object_get(pods, "items"), i, object) {
        assert(het_pod_request(object, "nvidia.com/gpu", 0) >= 0);
        assert(het_pod_request(object, "cpu", 1) >= 0);
        het_pod_holds(object);
    }
}

void fuzz_one(const char *bytes, size_t length)
{
    json_auto_t *json = fuzz_decode(bytes, length);
    if (!json)
        return;
    const json_t *nodes = json_object_get(json, "nodes");
    const json_t *pods = json_object_get(json, "pods");
    struct het_arena *arena = het_arena_new();
    const struct het_cluster *cluster;
    struct het_error err;
    json_t *short_form;
    read_each(arena, nodes, pods);
    if (het_node_list_cluster(arena, nodes, pods, het_hardware_builtin(), &short_form,
                              NULL, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        fuzz_assert_round_trip(short_form);
        if (het_cluster_json_read(arena, short_form, het_hardware_builtin(), &cluster,
                                  &err) < 0)
            fuzz_assert_error(&err);
        json_decref(short_form);
    }
    het_arena_free(arena);
}
