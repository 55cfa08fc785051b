#include "planner/cli/command.h"

#include "planner/cli/question_document.h"
#include "planner/format/document/question.h"
#include "planner/format/document/read_file.h"
#include "planner/format/profile/config.h"
#include "planner/format/profile/object.h"
#include "planner/format/profile/timers.h"

#include "planner/format/yaml_write.h"

#include <errno.h>
#include <string.h>

/* GPUs of a node where only the types are named. */
#define NODE_GPUS 8

/* ---- names ---- */

/* Whether Kubernetes takes it for the name of an object. */
static bool is_object_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(name);
    return length && length <= HET_MAX_NAME_BYTES && strchr(letters, name[0]) &&
           strchr(letters, name[length - 1]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length;
}

static int check_name(const char *option, const char *name, struct het_error *err)
{
    if (!name || is_object_name(name))
        return 0;
    return het_fail(
        err, HET_BAD_INPUT,
        "--%s: \"%.60s\" is no name of an object: lower-case letters, digits, "
        "- and . that begin and end with a letter or digit",
        option, name);
}

/* ---- GPUs of a profile that is estimated ---- */

/* A cluster of one node of each type, as the document has it. */
static json_t *cluster_of_types(const json_t *types)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < json_array_size(types); i++) {
        const json_t *type = json_array_get(types, i);
        const json_t *gpus = json_object_get(type, "maxGPUs");
        json_array_append_new(
            nodes, json_pack("{s:O, s:I}", "type", json_object_get(type, "name"), "gpus",
                             gpus ? json_integer_value(gpus) : (json_int_t)NODE_GPUS));
    }
    return json_pack("{s:o}", "nodes", nodes);
}

static int add_types(const struct het_options *options, json_t *document,
                     struct het_error *err)
{
    const json_t *types =
        json_object_get(json_object_get(options->values, "convert"), "gpuTypes");
    bool has_cluster = json_object_get(document, "cluster");
    if (has_cluster == !!types)
        return het_fail(err, HET_BAD_INPUT,
                        "give one of --cluster FILE and --gpu-types LIST: the GPUs whose "
                        "times are estimated");
    if (types) {
        json_object_set_new(document, "cluster", cluster_of_types(types));
        json_object_set_new(json_object_get(document, "sources"), "cluster",
                            json_string("--gpu-types"));
    }
    return 0;
}

/* ---- the profile ---- */

static int check_form(enum het_command_bit command, const json_t *profile,
                      const char *path, struct het_error *err)
{
    bool is_metis = json_object_get(profile, "files");
    bool is_config = json_object_get(profile, "config");
    bool is_sailor = !is_metis && json_object_get(profile, "layerTimes");
    if (command == HET_COMMAND_FROM_METIS && !is_metis)
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: is no folder of files called "
                        "DeviceType.<TYPE>_tp<T>_bs<B>.json",
                        path);
    if (command == HET_COMMAND_FROM_SAILOR && !is_sailor)
        return het_fail(err, HET_BAD_INPUT,
                        "%.300s: is no folder of Sailor's <TYPE>.json files", path);
    if (command == HET_COMMAND_FROM_CONFIG && !is_config)
        return het_fail(err, HET_BAD_INPUT, "%.300s: is no config.json of a model", path);
    return 0;
}

static int read_profile(enum het_command_bit command, const struct het_options *options,
                        struct het_arena *arena, const struct het_profile **ret,
                        struct het_error *err)
{
    json_auto_t *document = NULL;
    json_object_set_new(options->values, "profile", json_string(options->operand));
    if (het_question_document_build(options, &document, err) < 0)
        return -1;
    json_t *profile = json_object_get(document, "profile");
    json_t *optimizer = json_object_get(json_object_get(document, "job"), "optimizer");
    if (check_form(command, profile, options->operand, err) < 0 ||
        (command == HET_COMMAND_FROM_CONFIG && add_types(options, document, err) < 0))
        return -1;
    if (optimizer)
        json_object_set(profile, "optimizer", optimizer);
    return het_question_profile(arena, document, ret, err);
}

/* ---- logs of training runs ---- */

#define MAX_RUNS 256

/* "TYPE=FILE", and the text of the file; in `arena`. */
static int read_run(struct het_arena *arena, const char *operand,
                    struct het_timers_run *ret, struct het_error *err)
{
    const char *equals = strchr(operand, '=');
    if (!equals || equals == operand || !equals[1])
        return het_fail(
            err, HET_BAD_INPUT,
            "\"%.60s\": must be TYPE=LOG, the GPU type that the run was on and "
            "its log",
            operand);
    auto_free char *text = NULL;
    size_t length;
    if (het_read_file_text(equals + 1, &text, &length, err) < 0)
        return -1;
    ret->type = het_arena_printf(arena, "%.*s", (int)(equals - operand), operand);
    ret->name = het_arena_strdup(arena, equals + 1);
    ret->text = het_arena_strdup(arena, text);
    return 0;
}

static int read_timers(const struct het_options *options, struct het_arena *arena,
                       const struct het_profile **ret, uint32_t *ret_sequence,
                       struct het_error *err)
{
    const json_t *operands = json_object_get(options->values, "operands");
    size_t count = json_array_size(operands);
    const struct het_hardware *hardware;
    json_auto_t *document = NULL;
    struct het_timers_run runs[MAX_RUNS];
    if (count > MAX_RUNS)
        return het_fail(err, HET_BAD_INPUT, "more than %d logs", MAX_RUNS);
    for (size_t i = 0; i < count; i++)
        if (read_run(arena, json_string_value(json_array_get(operands, i)), &runs[i],
                     err) < 0)
            return -1;
    if (het_question_document_build(options, &document, err) < 0 ||
        het_question_hardware(arena, document, &hardware, err) < 0)
        return -1;
    return het_profile_timers_read(arena, runs, count, hardware, ret, ret_sequence, err);
}

/* ---- the object ---- */

static struct het_profile_facts facts_of(const struct het_options *options)
{
    const json_t *convert = json_object_get(options->values, "convert");
    const json_t *estimate = json_object_get(options->values, "estimate");
    const json_t *own = json_object_get(convert, "sequenceLength");
    const json_t *sequence = own ? own : json_object_get(estimate, "sequenceLength");
    return (struct het_profile_facts){
        .name = json_string_value(json_object_get(convert, "name")),
        .ns = json_string_value(json_object_get(convert, "namespace")),
        .model = json_string_value(json_object_get(convert, "modelName")),
        .sequence = (uint32_t)json_integer_value(sequence),
    };
}

static int convert(enum het_command_bit command, const struct het_options *options,
                   json_t **ret, struct het_error *err)
{
    if (!options->operand)
        return het_fail(err, HET_BAD_INPUT, "the file to convert is missing; see --help");
    if (het_options_need(command, options, err) < 0)
        return -1;
    struct het_profile_facts facts = facts_of(options);
    if (check_name("name", facts.name, err) < 0 ||
        check_name("namespace", facts.ns, err) < 0)
        return -1;
    struct het_arena *arena = het_arena_new();
    const struct het_profile *profile;
    int result = command == HET_COMMAND_FROM_TIMERS
                     ? read_timers(options, arena, &profile, &facts.sequence, err)
                     : read_profile(command, options, arena, &profile, err);
    if (!result)
        result = het_profile_object(profile, &facts, ret, err);
    het_arena_free(arena);
    return result;
}

static int write_object(const struct het_options *options, const json_t *object,
                        struct het_error *err)
{
    const char *output = het_options_text(options, "output");
    const char *path = het_options_text(options, "outputFile");
    bool is_json = output && !strcmp(output, "json");
    auto_free char *text = is_json ? het_json_canonical(object) : het_yaml_text(object);
    FILE *file = path ? fopen(path, "we") : stdout;
    if (!file)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    fprintf(file, is_json ? "%s\n" : "%s", text);
    bool failed = ferror(file);
    if (path && (fclose(file) || failed))
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    return 0;
}

static int run_convert(const struct het_command *command,
                       const struct het_options *options)
{
    struct het_error err;
    json_auto_t *object = NULL;
    if (convert(command->bit, options, &object, &err) < 0 ||
        write_object(options, object, &err) < 0)
        return het_command_fail(command, &err);
    return het_command_finish(command, HET_EXIT_DONE);
}

#define CONVERTED                                                                          \
    "A ModelProfile (docs/api.md) as YAML or JSON. Layers in a row that are equal are "    \
    "one layer group; times that are no whole microseconds are decimals in quotes, exact " \
    "to the last bit."
#define CONVERT_EXIT_STATUS                                                              \
    "0  done\n2  an option or a file is wrong; standard error names file and field"

const struct het_command het_command_from_config = {
    .name = "profile from-config",
    .bit = HET_COMMAND_FROM_CONFIG,
    .run = run_convert,
    .summary = "estimate a ModelProfile from a model's config.json",
    .synopsis = "hetplan profile from-config --name NAME --sequence-length N\n"
                "    (--cluster FILE | --gpu-types LIST) [OPTION]... CONFIG.json",
    .description =
        "Works out what each layer of a model takes on each GPU type, from the model's "
        "config.json and data sheets, as \"hetplan plan --profile CONFIG.json\" does, "
        "and writes it as a ModelProfile. It says of itself that it is estimated, and "
        "so will plans, and the status of jobs. Types whose rate in that precision is "
        "not known are left out.",
    .output = CONVERTED,
    .exit_status = CONVERT_EXIT_STATUS,
    .examples = "hetplan profile from-config --name llama --sequence-length 4096 \\\n"
                "    --gpu-types A100-SXM4-80GB,H100-SXM5-80GB config.json | kubectl "
                "apply -f -",
};

const struct het_command het_command_from_metis = {
    .name = "profile from-metis",
    .bit = HET_COMMAND_FROM_METIS,
    .run = run_convert,
    .summary = "turn a folder of Metis-format measurements into a ModelProfile",
    .synopsis = "hetplan profile from-metis --name NAME [OPTION]... DIR",
    .description =
        "Reads a folder of files called DeviceType.<TYPE>_tp<T>_bs<B>.json, and writes "
        "them as one ModelProfile, with which plans are the same as with the folder. "
        "GPU types keep their names.",
    .output = CONVERTED,
    .exit_status = CONVERT_EXIT_STATUS,
    .examples = "hetplan profile from-metis --name opt-350 --layer-times times/OPT-350 "
                "\\\n    --output-file opt-350.yaml profiles/OPT-350",
};

const struct het_command het_command_from_sailor = {
    .name = "profile from-sailor",
    .bit = HET_COMMAND_FROM_SAILOR,
    .run = run_convert,
    .summary = "turn measurements in Sailor's form into a ModelProfile",
    .synopsis = "hetplan profile from-sailor --name NAME [OPTION]... DIR",
    .description =
        "Reads a folder of Sailor's <TYPE>.json files, with llm_info.json there or in "
        "one of the two folders above, and writes them as one ModelProfile, with which "
        "plans are the same as with the folder. GPU types keep their names.",
    .output = CONVERTED,
    .exit_status = CONVERT_EXIT_STATUS,
    .examples = "hetplan profile from-sailor --name opt-350 --sequence-length 2048 "
                "profiles/OPT-350",
};

const struct het_command het_command_from_timers = {
    .name = "profile from-megatron-timers",
    .bit = HET_COMMAND_FROM_TIMERS,
    .run = run_convert,
    .summary = "turn logs of Megatron-LM's timers into a ModelProfile",
    .synopsis = "hetplan profile from-megatron-timers --name NAME [OPTION]... "
                "TYPE=LOG...",
    .description =
        "Reads what runs of Megatron-LM with --timing-log-level 2 printed: the list of "
        "their arguments, and the times of forward-compute, backward-compute and "
        "optimizer. Each log is of one GPU type, degree and micro-batch size; several "
        "become one profile. Runs with several stages need --timing-log-option all. "
        "Two runs with different numbers of layers tell blocks from embedding and "
        "head; of one run they are told apart by an estimate. Sizes of layers are "
        "worked out from the arguments. Where ranks write logs of their own, put that "
        "of rank 0 before that of the last one.",
    .output = CONVERTED,
    .exit_status = CONVERT_EXIT_STATUS,
    .examples =
        "hetplan profile from-megatron-timers --name gpt \\\n"
        "    A100-SXM4-80GB=a100-tp1.log A100-SXM4-80GB=a100-tp2.log V100=v100.log",
};
