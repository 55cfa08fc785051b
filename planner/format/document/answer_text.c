#include "planner/format/document/answer_text.h"

#include "planner/base/text_writer.h"

#include <stdbool.h>
#include <string.h>

static double get_real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- verdict ---- */

static void put_violations(struct het_writer *out, const json_t *verdict)
{
    const json_t *list = json_object_get(verdict, "violations");
    for (size_t i = 0; i < json_array_size(list); i++)
        het_writer_put(out, "  %s\n", json_string_value(json_array_get(list, i)));
}

static void put_assumed_links(struct het_writer *out, const json_t *links)
{
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);
        const char *where = get_text(link, "link");
        het_writer_put(
            out, "  %.4g GB/s %s %s is assumed, not measured\n", get_real(link, "GBs"),
            !strcmp(where, "BetweenNodes") ? "out of a node of" : "between GPUs of",
            get_text(link, "gpuType"));
    }
}

static void put_price(struct het_writer *out, const json_t *verdict)
{
    if (!json_object_get(verdict, "iterationSeconds"))
        return;
    const json_t *parts = json_object_get(verdict, "parts");
    het_writer_put(
        out,
        "%.6g s a step: pipelines %.6g, gradients %.6g, optimizer %.6g\n"
        "%.6g s in closed form\n",
        get_real(verdict, "iterationSeconds"), get_real(parts, "pipelineSeconds"),
        get_real(parts, "gradientSyncSeconds"), get_real(parts, "optimizerSeconds"),
        get_real(verdict, "closedFormSeconds"));
    const char *origin = get_text(verdict, "profile");
    if (origin)
        het_writer_put(out, "  the profile is %s, not measured\n", origin);
    if (json_object_get(verdict, "extrapolated"))
        het_writer_put(out, "  a micro-batch is larger than any that was measured\n");
    put_assumed_links(out, json_object_get(verdict, "assumedLinks"));
    const json_t *peaks = json_object_get(verdict, "peakMemoryBytes");
    for (size_t i = 0; i < json_array_size(peaks); i++) {
        const json_t *peak = json_array_get(peaks, i);
        het_writer_put(
            out, "  pipeline %.0f, stage %.0f, replica %.0f: %.2f of %.2f GiB a GPU\n",
            get_real(peak, "pipeline"), get_real(peak, "stage"),
            get_real(peak, "replica"), get_real(peak, "bytes") / 0x1p30,
            get_real(peak, "capacityBytes") / 0x1p30);
    }
}

char *het_answer_verdict_text(struct het_arena *arena, const json_t *verdict)
{
    struct het_writer out = { 0 };
    bool valid = json_is_true(json_object_get(verdict, "valid"));
    het_writer_put(&out, "%s\n", valid ? "The plan is valid." : "The plan is not valid:");
    put_violations(&out, verdict);
    put_price(&out, verdict);
    return het_writer_take(&out, arena);
}

/* ---- migration ---- */

char *het_answer_migration_text(struct het_arena *arena, const json_t *migration)
{
    struct het_writer out = { 0 };
    const json_t *bytes = json_object_get(migration, "bytes");
    const json_t *bottleneck = json_object_get(migration, "bottleneck");
    const char *node = get_text(bottleneck, "node");
    size_t ranks = json_array_size(json_object_get(migration, "ranks"));
    if (json_object_get(migration, "fromIterationSeconds"))
        het_writer_put(&out, "%.6g s a step now, %.6g s then\n",
                       get_real(migration, "fromIterationSeconds"),
                       get_real(migration, "iterationSeconds"));
    else
        het_writer_put(&out, "the running plan cannot go on; %.6g s a step then\n",
                       get_real(migration, "iterationSeconds"));
    het_writer_put(&out, "%.0f of %zu ranks keep their layers\n",
                   get_real(migration, "ranksKept"), ranks);
    het_writer_put(&out,
                   "%.3f GB from local disks, %.3f from other nodes, %.3f from the cloud "
                   "(the state is %.3f)\n",
                   get_real(bytes, "local") / 1e9, get_real(bytes, "peer") / 1e9,
                   get_real(bytes, "cloud") / 1e9, get_real(bytes, "state") / 1e9);
    het_writer_put(&out, "%.3g s, by %s%s%s\n", get_real(migration, "seconds"),
                   get_text(bottleneck, "resource"), node ? " of " : "",
                   node ? node : "");
    return het_writer_take(&out, arena);
}

/* ---- rendering ---- */

/* A word for a shell: in single quotes where it needs them. */
static void put_word(struct het_writer *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_./:=,@+";
    if (*word && strspn(word, plain) == strlen(word)) {
        het_writer_put(out, "%s", word);
        return;
    }
    het_writer_put(out, "'");
    for (; *word; word++)
        het_writer_put(out, "%s", *word == '\'' ? "'\\''" : (char[]){ *word, 0 });
    het_writer_put(out, "'");
}

static void put_arguments(struct het_writer *out, const json_t *pod)
{
    const json_t *list = json_object_get(pod, "arguments");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i)
            het_writer_put(out, " ");
        put_word(out, json_string_value(json_array_get(list, i)));
    }
    het_writer_put(out, "\n");
}

static void put_environment(struct het_writer *out, const json_t *pod)
{
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(pod, "environment"), name, value)
        het_writer_put(out, "%s=%s\n", name, json_string_value(value));
}

char *het_answer_pod_arguments(struct het_arena *arena, const json_t *pod)
{
    struct het_writer out = { 0 };
    put_arguments(&out, pod);
    return het_writer_take(&out, arena);
}

char *het_answer_pod_environment(struct het_arena *arena, const json_t *pod)
{
    struct het_writer out = { 0 };
    put_environment(&out, pod);
    return het_writer_take(&out, arena);
}

char *het_answer_rendering_text(struct het_arena *arena, const json_t *rendering)
{
    struct het_writer out = { 0 };
    const char *name;
    json_t *text;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        het_writer_put(&out, "# %s\n%s\n", name, json_string_value(text));
    const json_t *pods = json_object_get(rendering, "pods");
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        het_writer_put(&out, "# %s on node %s\n", get_text(pod, "host"),
                       get_text(pod, "node"));
        put_environment(&out, pod);
        put_arguments(&out, pod);
        het_writer_put(&out, "\n");
    }
    return het_writer_take(&out, arena);
}
