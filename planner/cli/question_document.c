#include "planner/cli/question_document.h"

#include "planner/format/document/question.h"
#include "planner/format/document/read_file.h"
#include "planner/format/profile/config.h"

#include <string.h>

/* Reads the file of option `part`, if it was given, as that part of the document. */
static int add_part(const struct het_options *options, const char *part,
                    int (*read)(const char *path, json_t **ret, struct het_error *err),
                    json_t *document, struct het_error *err)
{
    const char *path = het_options_text(options, part);
    json_t *json;
    if (!path)
        return 0;
    if (read(path, &json, err) < 0)
        return -1;
    json_object_set_new(document, part, json);
    json_t *sources = json_object_get(document, "sources");
    json_object_set_new(sources, part, het_json_text(path));
    return 0;
}

/* Sailor's sizes of layers, and whose they are, beside the times of a folder. */
static int add_llm_info(const struct het_options *options, json_t *profile,
                        struct het_error *err)
{
    const char *folder = het_options_text(options, "profile");
    const char *model = het_options_text(options, "model");
    auto_free char *path = het_options_text(options, "llmInfo")
                               ? xstrdup(het_options_text(options, "llmInfo"))
                               : het_read_file_find_llm_info(folder);
    auto_free char *name = model ? xstrdup(model) : het_read_file_folder_name(folder);
    json_t *info;
    if (!path)
        return het_fail(
            err, HET_BAD_INPUT,
            "%.300s: no llm_info.json here or in the two folders above, which "
            "has the sizes of the layers; name it by --llm-info",
            folder);
    if (het_read_file(path, &info, err) < 0)
        return -1;
    json_object_set_new(profile, "llmInfo", info);
    if (name)
        json_object_set_new(profile, "model", het_json_text(name));
    return 0;
}

/* Wraps a config.json with what is to be estimated of it. */
static int wrap_config(const struct het_options *options, json_t *document,
                       struct het_error *err)
{
    json_t *config = json_object_get(document, "profile");
    json_t *estimate = json_object_get(options->values, "estimate");
    if (!json_object_get(estimate, "sequenceLength"))
        return het_fail(err, HET_BAD_INPUT,
                        "--sequence-length N is missing: a profile estimated from a "
                        "model's config.json needs the tokens of a sample");
    json_t *profile = json_copy(estimate);
    json_object_set(profile, "config", config);
    json_object_set_new(document, "profile", profile);
    return 0;
}

/* Options that only some forms of a profile take: "files", "layerTimes" or neither. */
static int check_profile_options(const struct het_options *options, const json_t *profile,
                                 struct het_error *err)
{
    bool is_metis = json_object_get(profile, "files");
    bool is_config = het_profile_config_is_model(profile);
    bool is_sailor = !is_metis && json_object_get(profile, "layerTimes");
    if (!is_metis && het_options_text(options, "layerTimes"))
        return het_fail(err, HET_BAD_INPUT,
                        "--layer-times: is for a folder of Metis-format files");
    if (!is_sailor &&
        (het_options_text(options, "llmInfo") || het_options_text(options, "model")))
        return het_fail(err, HET_BAD_INPUT,
                        "--llm-info, --model: are for a folder of <TYPE>.json files");
    if (!is_config && json_object_get(options->values, "estimate"))
        return het_fail(err, HET_BAD_INPUT,
                        "--sequence-length, --attention, --largest-microbatch and "
                        "--calibrate: are for a model's config.json");
    if (!is_metis && !is_sailor && json_object_get(options->values, "sharedEmbedding"))
        return het_fail(err, HET_BAD_INPUT,
                        "--shared-embedding: is for folders of measurements; a "
                        "ModelProfile says it itself");
    return 0;
}

/* What folders of measurements do not say, put beside them. */
static int complete_profile(const struct het_options *options, json_t *document,
                            struct het_error *err)
{
    json_t *profile = json_object_get(document, "profile");
    const char *times = het_options_text(options, "layerTimes");
    if (check_profile_options(options, profile, err) < 0)
        return -1;
    if (het_profile_config_is_model(profile))
        return wrap_config(options, document, err);
    if (!json_object_get(profile, "files") && !json_object_get(profile, "layerTimes"))
        return 0;
    json_t *precision = json_object_get(json_object_get(document, "job"), "precision");
    if (precision)
        json_object_set(profile, "precision", precision);
    json_t *shared = json_object_get(options->values, "sharedEmbedding");
    if (shared)
        json_object_set(profile, "sharedEmbedding", shared);
    if (!json_object_get(profile, "files"))
        return add_llm_info(options, profile, err);
    json_t *layer_times;
    if (!times)
        return 0;
    if (het_read_file_layer_times(times, &layer_times, err) < 0)
        return -1;
    json_object_set_new(profile, "layerTimes", layer_times);
    return 0;
}

/* The running plan, as "from" of the job. */
static int add_from(const struct het_options *options, json_t *job, struct het_error *err)
{
    const char *path = het_options_text(options, "from");
    json_t *json;
    if (!path)
        return 0;
    if (het_read_file(path, &json, err) < 0)
        return -1;
    json_object_set_new(job, "from", json);
    return 0;
}

int het_question_document_build(const struct het_options *options, json_t **ret,
                                struct het_error *err)
{
    json_auto_t *document = json_pack("{s:{s:s}}", "sources", "job", "options");
    json_t *job = json_object_get(options->values, "job");
    job = job ? json_incref(job) : json_object();
    json_object_set_new(document, "job", job);
    if (add_part(options, "profile", het_read_file_profile, document, err) < 0 ||
        add_part(options, "cluster", het_read_file_settings, document, err) < 0 ||
        add_part(options, "hardware", het_read_file_settings, document, err) < 0 ||
        add_part(options, "network", het_read_file_network, document, err) < 0 ||
        add_part(options, "pods", het_read_file, document, err) < 0 ||
        add_from(options, job, err) < 0 || complete_profile(options, document, err) < 0)
        return -1;
    json_t *mixed = json_object_get(options->values, "mixedVendorRuntimes");
    if (mixed)
        json_object_set(document, "mixedVendorRuntimes", mixed);
    *ret = TAKE(document);
    return 0;
}
