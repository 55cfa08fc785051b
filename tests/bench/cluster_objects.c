#include "tests/bench/cluster_objects.h"

#include "planner/modules.h"

#include <stdio.h>
#include <string.h>

static json_t *conditions(int beat)
{
    static const struct {
        const char *type, *status, *reason, *message;
    } known[] = {
        { "MemoryPressure", "False", "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available" },
        { "DiskPressure", "False", "KubeletHasNoDiskPressure",
          "kubelet has no disk pressure" },
        { "PIDPressure", "False", "KubeletHasSufficientPID",
          "kubelet has sufficient PID available" },
        { "Ready", "True", "KubeletReady", "kubelet is posting ready status" },
    };
    auto_free char *time =
        xasprintf("2026-01-01T%02d:%02d:%02dZ", beat / 3600, beat / 60 % 60, beat % 60);
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type", known[i].type,
                            "status", known[i].status, "reason", known[i].reason,
                            "message", known[i].message, "lastHeartbeatTime", time,
                            "lastTransitionTime", "2026-01-01T00:00:00Z"));
    return list;
}

/* What a node has pulled: 50 images, as kubelets report them. */
static json_t *images(void)
{
    json_t *list = json_array();
    for (int i = 0; i < 50; i++) {
        auto_free char *digest =
            xasprintf("registry.example/team/image-%02d@sha256:%064d", i, i);
        auto_free char *tag = xasprintf("registry.example/team/image-%02d:1.%d.0", i, i);
        json_array_append_new(list, json_pack("{s:[s,s], s:i}", "names", digest, tag,
                                              "sizeBytes", 100000000 + i));
    }
    return list;
}

json_t *bench_node(int index, int beat)
{
    bool is_a100 = index % 2;
    char gpus[8];
    snprintf(gpus, sizeof gpus, "%d", GPUS_A_NODE);
    auto_free char *name = xasprintf("node-%04d", index);
    json_t *node = json_pack(
        "{s:s, s:s, s:{s:s, s:{s:s, s:s}, s:{s:s, s:s}}, s:{}, s:{s:{s:s, s:s, s:s, "
        "s:s}, s:{s:s, s:s, s:s, s:s}, s:o, s:o}}",
        "apiVersion", "v1", "kind", "Node", "metadata", "name", name, "labels",
        "kubernetes.io/hostname", name, "nvidia.com/gpu.product",
        is_a100 ? "NVIDIA-A100-SXM4-40GB" : "Tesla-V100-SXM2-16GB", "annotations",
        "node.alpha.kubernetes.io/ttl", "0",
        "volumes.kubernetes.io/controller-managed-attach-detach", "true", "spec",
        "status", "capacity", "nvidia.com/gpu", gpus, "cpu", "96", "memory", "512Gi",
        "pods", "110", "allocatable", "nvidia.com/gpu", gpus, "cpu", "96", "memory",
        "512Gi", "pods", "110", "conditions", conditions(beat), "images", images());
    json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
    for (int i = 0; i < 40; i++) {
        auto_free char *key = xasprintf("feature.node.kubernetes.io/cpu-cpuid.F%02d", i);
        json_object_set_new(labels, key, json_string("true"));
    }
    return node;
}

json_t *bench_other_pod(int node_index, int index)
{
    auto_free char *name = xasprintf("other-%04d-%02d", node_index, index);
    auto_free char *node_name = xasprintf("node-%04d", node_index);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}}, s:{s:s, s:[{s:s, s:s, "
                     "s:{s:{s:s, s:s}}}]}, s:{s:s}}",
                     "apiVersion", "v1", "kind", "Pod", "metadata", "name", name,
                     "namespace", "others", "labels", "app", "web", "pod-template-hash",
                     "5d4f8b7c9", "spec", "nodeName", node_name, "containers", "name",
                     "web", "image", "registry.example/web:1.2.3", "resources",
                     "requests", "cpu", "100m", "memory", "128Mi", "status", "phase",
                     "Running");
}

/* 24 equal layers; times in microseconds for tensor-parallel degrees 1, 2, 4, 8. */
json_t *bench_profile(void)
{
    static const char *const types[] = { "A100-SXM4-40GB", "V100-SXM2-16GB" };
    json_t *gpu_types = json_array();
    for (int type = 0; type < 2; type++) {
        json_t *measurements = json_array();
        for (int tp = 1; tp <= 8; tp *= 2)
            for (int batch = 1; batch <= 8; batch *= 2) {
                int time = (type ? 2500 : 1000) * batch / tp + 150 * (tp > 1);
                json_array_append_new(
                    measurements,
                    json_pack("{s:s, s:i, s:i, s:s, s:i, s:i, s:I}", "layerGroup",
                              "decoder", "tensorParallel", tp, "microBatchSize", batch,
                              "recompute", "None", "forwardMicroseconds", time,
                              "backwardMicroseconds", 2 * time, "activationBytes",
                              (json_int_t)batch * 400000000 / tp));
            }
        json_array_append_new(gpu_types, json_pack("{s:s, s:i, s:o}", "name", types[type],
                                                   "memoryMiB", type ? 16384 : 40960,
                                                   "measurements", measurements));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s, s:s, s:s, s:i, s:i, s:i}, "
                     "s:[{s:s, s:i, s:i, s:i}], s:o}}",
                     "apiVersion", "heterotrain.io/v1alpha1", "kind", "ModelProfile",
                     "metadata", "name", "bench", "namespace", "default", "spec", "model",
                     "name", "bench", "precision", "BF16", "optimizer", "AdamW",
                     "sequenceLength", 2048, "vocabSize", 50000, "hiddenSize", 2048,
                     "layerGroups", "name", "decoder", "count", 24, "parameterBytes",
                     100000000, "activationOutputBytes", 8388608, "gpuTypes", gpu_types);
}

json_t *bench_job(const char *name, int min, int max, size_t bytes)
{
    json_t *job = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:{s:{s:{s:s, s:s}}, s:{s:i}, s:{s:i, s:i}, s:{s:i, "
        "s:i}, s:{s:{s:{s:b, s:{s:s}}, s:[{s:s, s:s, s:{s:b, s:{s:[s]}}}]}}}}",
        "apiVersion", "heterotrain.io/v1alpha1", "kind", "HeteroTrainingJob", "metadata",
        "name", name, "namespace", "default", "spec", "model", "profileRef", "kind",
        "ModelProfile", "name", "bench", "training", "globalBatchSize", 512, "resources",
        "minGPUs", min, "maxGPUs", max, "replanPolicy", "debounceSeconds", 0,
        "nodeFailureGraceSeconds", 0, "podTemplate", "spec", "securityContext",
        "runAsNonRoot", 1, "seccompProfile", "type", "RuntimeDefault", "containers",
        "name", "trainer", "image", "registry.example/train:1", "securityContext",
        "allowPrivilegeEscalation", 0, "capabilities", "drop", "ALL");
    json_t *template = json_object_get(
        json_object_get(json_object_get(job, "spec"), "podTemplate"), "spec");
    json_t *containers = json_object_get(template, "containers"), *list = json_array();
    for (size_t i = 0; i < bytes / 100; i++) {
        auto_free char *key = xasprintf("SETTING_%06zu", i);
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", key, "value",
                                              "a value of one of many variables that a "
                                              "training program reads"));
    }
    if (bytes)
        json_object_set_new(json_array_get(containers, 0), "env", list);
    else
        json_decref(list);
    return job;
}
