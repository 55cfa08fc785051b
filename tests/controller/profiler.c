#include "tests/controller/profiler.h"

#include "controller/base/object.h"
#include "tests/controller/quoted.h"

#include <stdlib.h>
#include <string.h>

json_t *profiler_architecture(void)
{
    return quoted("{'layers': 4, 'hiddenSize': 64, 'heads': 4, 'kvHeads': 4, "
                  "'ffnHiddenSize': 128, 'vocabSize': 1000, 'sequenceLength': 128}");
}

const struct settings *profiler_settings(void)
{
    static struct settings settings;
    settings = *settings_default();
    settings.profiler.image = "profiler:1";
    return &settings;
}

/* As make_profile measures them. */
static int factor_of(const char *gpu_type)
{
    return strstr(gpu_type, "A100") ? 1 : strstr(gpu_type, "V100") ? 2 : 4;
}

static json_t *times_at(int factor, int degree, int size)
{
    json_t *groups = json_array();
    for (int i = 0; i < 3; i++)
        json_array_append_new(groups,
                              json_pack("[i, i, I]", factor * 1000 * size / degree,
                                        factor * 2000 * size / degree,
                                        (json_int_t)100000000 * size / degree));
    return json_pack("[i, i, o]", degree, size, groups);
}

char *profiler_result(const char *gpu_type, int most_degree)
{
    json_auto_t *result = quoted(
        "{'v': 1, 'gpuType': '%s', 'memoryMiB': 16384, 'precision': 'BF16', 'optimizer': "
        "'Adam', 'sequenceLength': 128, 'groups': [{'name': 'embedding', 'count': 1, "
        "'parameterBytes': 1000000, 'activationOutputBytes': 1000000}, {'name': "
        "'decoder', 'count': 4, 'parameterBytes': 1000000, 'activationOutputBytes': "
        "1000000}, {'name': 'head', 'count': 1, 'parameterBytes': 1000000, "
        "'activationOutputBytes': 1000000}], 'optimizerMicroseconds': [[1, 2000]], 'm': "
        "[]}",
        gpu_type);
    json_t *points = json_object_get(result, "m");
    for (int degree = 1; degree <= most_degree; degree *= 2)
        for (int size = 1; size <= 4; size *= 2)
            json_array_append_new(points, times_at(factor_of(gpu_type), degree, size));
    return json_dumps(result, JSON_COMPACT);
}

static const char *variable(const json_t *pod, const char *name)
{
    const json_t *containers = object_at(pod, "spec.containers");
    const json_t *environment = json_object_get(json_array_get(containers, 0), "env");
    return object_text(object_find(environment, "name", name), "value");
}

struct simulated_end profiler_run(void *context, const json_t *pod)
{
    struct profiler *profiler = context;
    int most = atoi(variable(pod, "HETPROFILE_TENSOR_PARALLEL"));
    const char *type = profiler->is_forged ? "Another-GPU"
                                           : variable(pod, "HETPROFILE_GPU_TYPE");
    bool fails = profiler->runs++ < profiler->failures;
    return (struct simulated_end){
        .after_ms = profiler->after_ms,
        .exit_code = fails,
        .message = fails ? xstrdup("out of luck") : profiler_result(type, most),
    };
}
