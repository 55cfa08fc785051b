#include "planner/cli/options.h"

#include "planner/format/json.h"
#include "planner/model/cluster.h"
#include "planner/model/profile.h"
#include "planner/model/workload.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLAN    HET_COMMAND_PLAN
#define JUDGE   (HET_COMMAND_COST | HET_COMMAND_CHECK)
#define DIFF    HET_COMMAND_DIFF
/* Commands that search, by an algorithm that is named, or by all. */
#define SEARCH  (PLAN | HET_COMMAND_EXPLAIN)
#define COMPARE HET_COMMAND_COMPARE
#define PRINTED (SEARCH | JUDGE | DIFF | COMPARE) /* as JSON or as a table */
#define SHOW    HET_COMMAND_SIMULATE
#define ALL     (PRINTED | SHOW)
#define CONFIG  HET_COMMAND_FROM_CONFIG
#define METIS   HET_COMMAND_FROM_METIS
#define SAILOR  HET_COMMAND_FROM_SAILOR
#define TIMERS  HET_COMMAND_FROM_TIMERS
#define CONVERT (CONFIG | METIS | SAILOR | TIMERS) /* to a ModelProfile */
/* Commands that take several arguments beside their options. */
#define SEVERAL TIMERS

/* Names that het_runtime_find knows. */
#define RUNTIMES                                                                         \
    "generic torchrun custom megatron flagscale hetu sailor deepspeed torchtitan"

#define MAX_WHOLE 9007199254740992.0 /* 2^53: JSON readers keep these exactly */
#define MAX_LIST  256

/* How a value is read; `low` and `high` bound each number. */
enum kind {
    KIND_FLAG,
    KIND_TEXT,
    KIND_WHOLE,
    KIND_NUMBER,
    KIND_LIST,  /* whole numbers: 1,2,4 */
    KIND_STEPS, /* A100=0.2@4x2 -> [{ "gpuType", "seconds", ... }] */
    KIND_TYPES, /* A100,V100:16 -> [{ "name", "maxGPUs" }] */
    KIND_WORDS, /* of the choices: flagscale,custom */
};

static const struct option {
    const char *name, *value; /* "--name VALUE" */
    const char *path;         /* in het_options.values */
    unsigned commands, required;
    enum kind kind;
    double low, high;
    const char *choices; /* "json table"; NULL: any text */
    const char *preset;  /* the default, as the help says it; NULL: none */
    const char *help;
} options[] = {
    { .name = "profile",
      .value = "DIR|FILE",
      .path = "profile",
      .commands = ALL,
      .required = ALL,
      .kind = KIND_TEXT,
      .help =
          "Measurements of the model: a folder of Metis-format files "
          "(DeviceType.<TYPE>_tp<T>_bs<B>.json); a folder of Sailor's <TYPE>.json "
          "files, with llm_info.json there or in one of the two folders above; a "
          "ModelProfile as YAML or JSON, as kubectl applies it; or the config.json of "
          "a model, whose times are then estimated." },
    { .name = "cluster",
      .value = "FILE",
      .path = "cluster",
      .commands = ALL | CONFIG,
      .required = ALL,
      .kind = KIND_TEXT,
      .help = "The nodes: the short form, or what kubectl get nodes -o json prints." },
    { .name = "global-batch-size",
      .value = "N",
      .path = "job.globalBatchSize",
      .commands = PLAN | COMPARE,
      .required = PLAN | COMPARE,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = HET_MAX_GLOBAL_BATCH,
      .help = "Samples of one iteration, over all GPUs. A plan runs exactly these." },
    { .name = "hardware",
      .value = "FILE",
      .path = "hardware",
      .commands = ALL | CONFIG | TIMERS,
      .kind = KIND_TEXT,
      .preset = "built in",
      .help = "Facts about GPU types that nodes do not carry: aliases, memory, "
              "bandwidths, workspace, price; laid over the built-in table." },
    { .name = "network",
      .value = "FILE|DIR",
      .path = "network",
      .commands = ALL | CONFIG,
      .kind = KIND_TEXT,
      .help = "Measured bandwidth over message size, by GPU type and number of GPUs "
              "that communicate, in a form of Sailor's files; of a folder all of them. "
              "Replaces the bandwidths of the cluster where it has curves." },
    { .name = "pods",
      .value = "FILE",
      .path = "pods",
      .commands = ALL,
      .kind = KIND_TEXT,
      .help = "What kubectl get pods -A -o json prints; GPUs that these pods hold are "
              "taken off the nodes'." },
    { .name = "layer-times",
      .value = "DIR",
      .path = "layerTimes",
      .commands = ALL | METIS,
      .kind = KIND_TEXT,
      .help = "Folder of <TYPE>.json files, {B: {T: {layer: [forward s, backward s, "
              "update s]}}}, that replace the times of a Metis-format profile, which has "
              "forward and backward only together." },
    { .name = "llm-info",
      .value = "FILE",
      .path = "llmInfo",
      .commands = ALL | SAILOR,
      .kind = KIND_TEXT,
      .preset = "llm_info.json near the folder",
      .help =
          "Sizes of the layers, {MODEL: {T: {layer: {params_floats, act_mem_floats, "
          "act_output_floats}}}}, for a profile that is a folder of Sailor's files." },
    { .name = "model",
      .value = "NAME",
      .path = "model",
      .commands = ALL | SAILOR,
      .kind = KIND_TEXT,
      .preset = "the folder's name",
      .help = "The model of llm_info.json that such a folder measures; the case of "
              "letters does not matter." },
    { .name = "sequence-length",
      .value = "N",
      .path = "estimate.sequenceLength",
      .commands = ALL | CONFIG,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = 16777216,
      .help = "Tokens of a sample, for a profile that is a config.json." },
    { .name = "attention",
      .value = "NAME",
      .path = "estimate.attention",
      .commands = ALL | CONFIG,
      .kind = KIND_TEXT,
      .choices = "flash eager",
      .preset = "flash, with fp32 eager",
      .help = "For a config.json: eager attention keeps its scores in memory." },
    { .name = "largest-microbatch",
      .value = "N",
      .path = "estimate.largestMicroBatch",
      .commands = ALL | CONFIG,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = HET_MAX_MICROBATCH,
      .preset = "64",
      .help = "For a config.json: the largest micro-batch that is estimated." },
    { .name = "calibrate",
      .value = "LIST",
      .path = "estimate.calibration",
      .commands = ALL | CONFIG,
      .kind = KIND_STEPS,
      .low = 1,
      .high = UINT32_MAX,
      .help = "For a config.json: measured steps as TYPE=SECONDS, TYPE=SECONDS@B, "
              "TYPE=SECONDS@BxT or TYPE=SECONDS@BxTxN: seconds forward and backward, "
              "without the optimizer, of one micro-batch of B samples (1) on one "
              "tensor-parallel group of T GPUs (1) that holds embedding, head and N "
              "blocks (all). The share of its peak rate that each type reaches is fitted "
              "to its step." },
    { .name = "extrapolate",
      .value = "N",
      .path = "job.extrapolate",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = HET_MAX_EXTRAPOLATION,
      .preset = "1",
      .help =
          "Micro-batches of up to N times the largest measured may be used; they take "
          "as long as the largest measured so many times. The plan then says so." },
    { .name = "algorithm",
      .value = "NAME",
      .path = "job.algorithm",
      .commands = SEARCH,
      .kind = KIND_TEXT,
      .preset = "auto",
      .help = "How to search; the names are listed below. auto runs all of them and "
              "keeps the best plan." },
    { .name = "effort",
      .value = "N",
      .path = "job.effort",
      .commands = SEARCH | COMPARE,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = MAX_WHOLE,
      .preset = "1000000",
      .help = "Work that the search may spend, in candidates looked at. It is counted, "
              "not timed, so that the same input gives the same plan on any machine." },
    { .name = "seed",
      .value = "N",
      .path = "job.seed",
      .commands = SEARCH | COMPARE,
      .kind = KIND_WHOLE,
      .low = 0,
      .high = MAX_WHOLE,
      .preset = "0",
      .help = "Of algorithms that choose at random." },
    { .name = "precision",
      .value = "NAME",
      .path = "job.precision",
      .commands = ALL | CONFIG | METIS | SAILOR,
      .kind = KIND_TEXT,
      .choices = "fp32 bf16 fp16",
      .preset = "the profile's",
      .help = "Precision of the weights. Metis-format files do not say theirs (fp32 is "
              "assumed), so for them this says in which they were measured; for a "
              "ModelProfile another one than its own is refused." },
    { .name = "optimizer",
      .value = "NAME",
      .path = "job.optimizer",
      .commands = ALL,
      .kind = KIND_TEXT,
      .choices = "adam adam-distributed sgd",
      .preset = "the profile's",
      .help = "Decides how many bytes a GPU holds for each parameter. A measured state "
              "counts only for the optimizer that was measured." },
    { .name = "memory-headroom-percent",
      .value = "X",
      .path = "job.memoryHeadroomPercent",
      .commands = ALL,
      .kind = KIND_NUMBER,
      .low = 0,
      .high = 90,
      .preset = "8 for plans, 12 with an estimated profile",
      .help =
          "Share of each GPU's memory that a plan leaves free. cost and check ask for "
          "none unless told." },
    { .name = "gradient-overlap-percent",
      .value = "X",
      .path = "job.gradientOverlapPercent",
      .commands = ALL,
      .kind = KIND_NUMBER,
      .low = 0,
      .high = 100,
      .preset = "0",
      .help = "Share of the gradient exchange that the runtime hides behind the backward "
              "pass; it is taken as stated." },
    { .name = "state-reserve-bytes",
      .value = "X",
      .path = "job.stateReserveBytes",
      .commands = ALL,
      .kind = KIND_NUMBER,
      .low = 0,
      .high = 1000,
      .preset = "8 for plans in fp32, else 0",
      .help = "Bytes a parameter that must be free beside the state that is predicted, "
              "for what frameworks hold at times (gradient buckets, temporaries of the "
              "optimizer). cost and check ask for none unless told." },
    { .name = "microbatch-sizes",
      .value = "LIST",
      .path = "job.microBatchSizes",
      .commands = ALL,
      .kind = KIND_LIST,
      .low = 1,
      .high = HET_MAX_MICROBATCH,
      .preset = "any",
      .help = "Sizes that a replica's micro-batch may have, as 1,2,4." },
    { .name = "tensor-parallel",
      .value = "LIST",
      .path = "job.constraints.tensorParallel.allowedDegrees",
      .commands = ALL,
      .kind = KIND_LIST,
      .low = 1,
      .high = HET_MAX_NODE_GPUS,
      .preset = "any measured",
      .help = "Tensor-parallel degrees that a replica may have, as 1,2,4." },
    { .name = "max-pipeline",
      .value = "N",
      .path = "job.constraints.pipelineParallel.maxStages",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = HET_MAX_LAYERS,
      .preset = "no limit",
      .help = "The most stages that a pipeline may have." },
    { .name = "min-data-parallel",
      .value = "N",
      .path = "job.constraints.dataParallel.minReplicas",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = UINT32_MAX,
      .preset = "1",
      .help = "The least replicas that each layer must have." },
    { .name = "max-data-parallel",
      .value = "N",
      .path = "job.constraints.dataParallel.maxReplicas",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = UINT32_MAX,
      .preset = "no limit",
      .help = "The most replicas that each layer may have." },
    { .name = "min-gpus",
      .value = "N",
      .path = "job.minGPUs",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = UINT32_MAX,
      .preset = "1",
      .help = "The least GPUs that a plan must use." },
    { .name = "max-gpus",
      .value = "N",
      .path = "job.maxGPUs",
      .commands = ALL,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = UINT32_MAX,
      .preset = "no limit",
      .help = "The most GPUs that a plan may use." },
    { .name = "gpu-types",
      .value = "LIST",
      .path = "job.gpuTypes",
      .commands = ALL,
      .kind = KIND_TYPES,
      .low = 1,
      .high = UINT32_MAX,
      .preset = "all",
      .help = "GPU types that a plan may use, each with the most GPUs of it behind a "
              "colon, if there is a limit: A100,V100:16." },
    { .name = "shared-embedding",
      .path = "sharedEmbedding",
      .commands = ALL | METIS | SAILOR,
      .kind = KIND_FLAG,
      .help = "The head uses the embedding's weights, so that the first and the last "
              "stage both hold and synchronise them (for folders of "
              "measurements; a ModelProfile says it itself)." },
    { .name = "runtime",
      .value = "NAME",
      .path = "job.runtime",
      .commands = ALL | HET_COMMAND_RENDER,
      .required = HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .choices = RUNTIMES,
      .preset = "generic",
      .help = "The training runtime. Plans that it cannot express are not proposed, and "
              "refused by check. generic, torchrun and custom run every plan." },
    { .name = "mixed-vendors",
      .value = "NAMES",
      .path = "mixedVendorRuntimes",
      .commands = ALL,
      .kind = KIND_WORDS,
      .choices = RUNTIMES,
      .preset = "none",
      .help = "Runtimes that join GPUs of different vendors (flagscale,custom): plans "
              "for others have GPUs of one vendor only, as NCCL and RCCL cannot talk "
              "to each other." },
    { .name = "metis-variance",
      .value = "X",
      .path = "job.metisVariance",
      .commands = SEARCH | COMPARE,
      .kind = KIND_NUMBER,
      .low = 0.001,
      .high = 1,
      .preset = "0.5",
      .help = "Of metis: how unequal groups of GPUs may be; 1 is least." },
    { .name = "metis-rows",
      .value = "NAME",
      .path = "job.metisRows",
      .commands = PLAN,
      .kind = KIND_TEXT,
      .choices = "types mixed",
      .preset = "types",
      .help = "Of metis: groups are cut from rows with the nodes of a type together, or "
              "also from rows in which the types take turns." },
    { .name = "memory-model",
      .value = "NAME",
      .path = "job.memoryModel",
      .commands = PLAN,
      .kind = KIND_TEXT,
      .choices = "own metis",
      .preset = "own",
      .help = "Of metis-walk and oomfirst-walk: each GPU by itself, or, as the papers' "
              "programs, five times the memory of the layers against the sum of all "
              "GPUs of a stage. What is answered fits by our own rule." },
    { .name = "statistics",
      .path = "job.statistics",
      .commands = PLAN,
      .kind = KIND_FLAG,
      .help = "Say what the search did: search.statistics of the plan." },
    { .name = "metis-permute",
      .value = "N",
      .path = "job.metisPermute",
      .commands = SEARCH | COMPARE,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = 4096,
      .preset = "4",
      .help = "Of metis: the longest list of groups whose every order is tried." },
    { .name = "metis-sizes",
      .value = "NAME",
      .path = "job.metisSizes",
      .commands = SEARCH | COMPARE,
      .kind = KIND_TEXT,
      .choices = "auto powers any",
      .preset = "auto",
      .help = "Of metis: sizes of groups of GPUs: powers of two, any, or any on a small "
              "cluster only." },
    { .name = "amp-speeds",
      .value = "NAME",
      .path = "job.ampSpeeds",
      .commands = SEARCH | COMPARE,
      .kind = KIND_TEXT,
      .choices = "own mean",
      .preset = "own",
      .help = "Of amp and amp-sa, while they search: each GPU counts with its own speed, "
              "or, as in the paper, all with their mean." },
    { .name = "amp-sends",
      .value = "NAME",
      .path = "job.ampSends",
      .commands = SEARCH | COMPARE,
      .kind = KIND_TEXT,
      .choices = "exposed hidden",
      .preset = "exposed",
      .help = "Of amp and amp-sa, while they search: sends hold up the stages on both "
              "ends, as plans are priced, or, as in the paper, hide behind their work." },
    { .name = "from",
      .value = "PLAN.json",
      .path = "from",
      .commands = PLAN | DIFF,
      .required = DIFF,
      .kind = KIND_TEXT,
      .help = "The running plan. Nodes that the cluster lacks are lost." },
    { .name = "max-migration-seconds",
      .value = "X",
      .path = "job.migration.maxSeconds",
      .commands = PLAN,
      .kind = KIND_NUMBER,
      .low = 0,
      .high = 1e9,
      .preset = "no limit",
      .help = "With --from: besides the best plan also the best one among those that are "
              "reached within this time (predicted.stable)." },
    { .name = "max-slowdown-percent",
      .value = "P",
      .path = "job.migration.maxSlowdownPercent",
      .commands = PLAN,
      .kind = KIND_NUMBER,
      .low = 0,
      .high = 1e9,
      .preset = "not asked",
      .help = "With --from: besides the best plan also the running plan or its repair "
              "(predicted.stable), if its iterations take at most P percent longer and "
              "less of the state moves." },
    { .name = "disk-gb-s",
      .value = "X",
      .path = "job.migration.diskGBs",
      .commands = PLAN | DIFF,
      .kind = KIND_NUMBER,
      .low = 1e-6,
      .high = 1e6,
      .preset = "nodes keep nothing",
      .help = "Rate at which a node reads its own checkpoint shards, GB/s. Without it "
              "all state is read from storage that the nodes share, at --cloud-gb-s." },
    { .name = "cloud-gb-s",
      .value = "X",
      .path = "job.migration.cloudGBs",
      .commands = PLAN | DIFF,
      .kind = KIND_NUMBER,
      .low = 1e-6,
      .high = 1e6,
      .preset = "storageGBs of the hardware settings, else 1.2",
      .help = "Rate at which the job reads and writes checkpoints on the storage that "
              "nodes share, or in the cloud, GB/s." },
    { .name = "job",
      .value = "NAME",
      .path = "render.job",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .preset = "job",
      .help = "Name of the job: pods are called NAME-GENERATION-INDEX." },
    { .name = "namespace",
      .value = "NAME",
      .path = "render.namespace",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .preset = "default",
      .help = "Namespace of the job." },
    { .name = "service",
      .value = "NAME",
      .path = "render.service",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .preset = "the job's name",
      .help = "Headless service under which the pods resolve each other." },
    { .name = "revision",
      .value = "N",
      .path = "render.revision",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = 2147483647,
      .preset = "1",
      .help = "Revision of the plan." },
    { .name = "master-port",
      .value = "N",
      .path = "render.masterPort",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = 65535,
      .preset = "29500",
      .help = "Port on which the pod of rank 0 listens for the others." },
    { .name = "directory",
      .value = "DIR",
      .path = "directory",
      .commands = HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .help = "Writes the files, and the arguments and environment of every pod "
              "(pod-INDEX.args, pod-INDEX.env), into this folder, which must be there." },
    { .name = "ditto-folding",
      .value = "NAME",
      .path = "job.dittoFolding",
      .commands = SEARCH | COMPARE,
      .kind = KIND_TEXT,
      .choices = "plain communication none",
      .preset = "plain",
      .help =
          "Of ditto and ditto-greedy: how many of the weakest GPUs one GPU counts as: "
          "by the model's time alone, or with what so many would communicate. none, "
          "of ditto only, tries all assignments of GPUs to stages instead." },
    { .name = "output",
      .value = "FORM",
      .path = "output",
      .commands = PRINTED | HET_COMMAND_RENDER,
      .kind = KIND_TEXT,
      .choices = "json table",
      .preset = "table on a terminal, else json",
      .help = "json prints one line of canonical JSON; table is for people." },
    { .name = "output",
      .value = "FORM",
      .path = "output",
      .commands = SHOW,
      .kind = KIND_TEXT,
      .choices = "text svg trace",
      .preset = "text",
      .help = "text draws the timeline with letters; svg is a picture; trace is JSON for "
              "chrome://tracing or https://ui.perfetto.dev." },
    { .name = "width",
      .value = "N",
      .path = "width",
      .commands = SHOW,
      .kind = KIND_WHOLE,
      .low = 70,
      .high = 1000,
      .preset = "the terminal's",
      .help = "Columns of a timeline as text." },
    { .name = "no-search",
      .path = "noSearch",
      .commands = HET_COMMAND_EXPLAIN,
      .kind = KIND_FLAG,
      .help = "Leaves out what each freedom and what more GPUs would bring, for which "
              "plans are searched anew." },
    { .name = "quiet",
      .path = "quiet",
      .commands = PLAN,
      .kind = KIND_FLAG,
      .help = "Show no progress (it is shown only when standard error is a terminal)." },
    { .name = "name",
      .value = "NAME",
      .path = "convert.name",
      .commands = CONVERT,
      .required = CONVERT,
      .kind = KIND_TEXT,
      .help = "Of the ModelProfile." },
    { .name = "namespace",
      .value = "NAME",
      .path = "convert.namespace",
      .commands = CONVERT,
      .kind = KIND_TEXT,
      .preset = "none: kubectl says it",
      .help = "Of the ModelProfile." },
    { .name = "model-name",
      .value = "TEXT",
      .path = "convert.modelName",
      .commands = CONVERT,
      .kind = KIND_TEXT,
      .preset = "the source's, or that of the object",
      .help = "What the model is called, for people." },
    { .name = "sequence-length",
      .value = "N",
      .path = "convert.sequenceLength",
      .commands = METIS | SAILOR,
      .kind = KIND_WHOLE,
      .low = 1,
      .high = 16777216,
      .preset = "not said",
      .help = "Tokens of a sample that was measured. Jobs that train with another number "
              "are then refused." },
    { .name = "gpu-types",
      .value = "LIST",
      .path = "convert.gpuTypes",
      .commands = CONFIG,
      .kind = KIND_TYPES,
      .low = 1,
      .high = HET_MAX_NODE_GPUS,
      .help =
          "In place of a cluster: GPU types of the hardware table, each with the GPUs "
          "of a node behind a colon, if they are not 8: A100-SXM4-80GB,V100:4." },
    { .name = "optimizer",
      .value = "NAME",
      .path = "job.optimizer",
      .commands = CONFIG | METIS | SAILOR,
      .kind = KIND_TEXT,
      .choices = "adam sgd",
      .preset = "adam",
      .help = "The optimizer that was measured, or is estimated." },
    { .name = "output",
      .value = "FORM",
      .path = "output",
      .commands = CONVERT,
      .kind = KIND_TEXT,
      .choices = "yaml json",
      .preset = "yaml",
      .help = "As kubectl applies it, or one line of canonical JSON." },
    { .name = "output-file",
      .value = "FILE",
      .path = "outputFile",
      .commands = CONVERT,
      .kind = KIND_TEXT,
      .preset = "standard output",
      .help = "Writes the ModelProfile into this file." },
    { .name = "help",
      .path = "help",
      .commands = ALL | HET_COMMAND_RENDER | CONVERT,
      .kind = KIND_FLAG,
      .help = "Print this text." },
};
#define OPTION_COUNT (sizeof options / sizeof *options)

static const struct option *find_option(enum het_command_bit command, const char *name,
                                        size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].commands & command) && strlen(options[i].name) == length &&
            !strncmp(options[i].name, name, length))
            return &options[i];
    return NULL;
}

/* ---- values ---- */

static int fail_range(const struct option *option, const char *text,
                      struct het_error *err)
{
    const char *what = option->kind == KIND_NUMBER ? "a number" : "a whole number";
    return het_fail(err, HET_BAD_INPUT,
                    "--%s: must be %s from %.16g to %.16g, is \"%.60s\"", option->name,
                    what, option->low, option->high, text);
}

static int parse_number(const struct option *option, const char *text, double *ret,
                        struct het_error *err)
{
    char *end;
    double value = strtod(text, &end);
    bool is_plain = *text && strspn(text, "0123456789.eE+-") == strlen(text) && !*end;
    if (!is_plain || !(value >= option->low && value <= option->high) ||
        (option->kind != KIND_NUMBER && value != floor(value)))
        return fail_range(option, text, err);
    *ret = value;
    return 0;
}

static json_t *number_json(const struct option *option, double value)
{
    return option->kind == KIND_NUMBER ? json_real(value)
                                       : json_integer((json_int_t)value);
}

/* "A100:16" -> { "name", "maxGPUs" }; a name may not contain ':'. */
static json_t *parse_type(const struct option *option, char *text, struct het_error *err)
{
    char *colon = strchr(text, ':');
    double most;
    if (colon) {
        *colon = '\0';
        if (parse_number(option, colon + 1, &most, err) < 0)
            return NULL;
    }
    json_t *type = *text ? json_pack("{s:s}", "name", text) : NULL;
    if (!type) {
        het_fail(err, HET_BAD_INPUT, "--%s: a name is empty or not UTF-8", option->name);
        return NULL;
    }
    if (colon)
        json_object_set_new(type, "maxGPUs", json_integer((json_int_t)most));
    return type;
}

/* "A100=0.21@4x2x24" -> { "gpuType", "seconds", "microBatchSize", "tensorParallel",
 * "blocks" }, of which the last three may be missing. */
static json_t *parse_step(const struct option *option, char *text, struct het_error *err)
{
    static const char *const keys[] = { "microBatchSize", "tensorParallel", "blocks" };
    char *equals = strrchr(text, '='), *counts = equals ? strchr(equals, '@') : NULL;
    char *end = NULL;
    if (counts)
        *counts++ = '\0';
    if (equals)
        *equals++ = '\0';
    double seconds = equals ? strtod(equals, &end) : 0;
    json_auto_t *step = equals && *text
                            ? json_pack("{s:s, s:f}", "gpuType", text, "seconds", seconds)
                            : NULL;
    if (!step || end == equals || *end || !(seconds > 0)) {
        het_fail(err, HET_BAD_INPUT,
                 "--%s: \"%.60s\": must be TYPE=SECONDS, with @BxTxN behind it where the "
                 "micro-batch, degree or blocks are others than 1, 1 and all",
                 option->name, text);
        return NULL;
    }
    for (size_t i = 0; counts; i++) {
        char *count = strsep(&counts, "x");
        double value;
        if (i == sizeof keys / sizeof *keys) {
            het_fail(err, HET_BAD_INPUT, "--%s: more than BxTxN behind \"@\"",
                     option->name);
            return NULL;
        }
        if (parse_number(option, count, &value, err) < 0)
            return NULL;
        json_object_set_new(step, keys[i], json_integer((json_int_t)value));
    }
    return TAKE(step);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (const char *word = choices; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (length && !strncmp(word, text, length) &&
            (word[length] == ' ' || !word[length]))
            return true;
    }
    return false;
}

static json_t *parse_text(const struct option *option, const char *text,
                          struct het_error *err)
{
    if (option->choices && !is_choice(option->choices, text)) {
        het_fail(err, HET_BAD_INPUT, "--%s: must be one of: %s; is \"%.60s\"",
                 option->name, option->choices, text);
        return NULL;
    }
    json_t *json = *text ? json_string(text) : NULL;
    if (!json)
        het_fail(err, HET_BAD_INPUT, "--%s: is empty or not UTF-8", option->name);
    return json;
}

static json_t *parse_item(const struct option *option, char *text, struct het_error *err)
{
    double value;
    if (option->kind == KIND_TYPES)
        return parse_type(option, text, err);
    if (option->kind == KIND_STEPS)
        return parse_step(option, text, err);
    if (option->kind == KIND_WORDS)
        return parse_text(option, text, err);
    return parse_number(option, text, &value, err) < 0 ? NULL
                                                       : number_json(option, value);
}

static json_t *parse_list(const struct option *option, const char *text,
                          struct het_error *err)
{
    json_auto_t *list = json_array();
    auto_free char *copy = xstrdup(text);
    for (char *rest = copy, *item; (item = strsep(&rest, ","));) {
        json_t *json = parse_item(option, item, err);
        if (!json)
            return NULL;
        json_array_append_new(list, json);
        if (json_array_size(list) > MAX_LIST) {
            het_fail(err, HET_BAD_INPUT, "--%s: more than %d entries", option->name,
                     MAX_LIST);
            return NULL;
        }
    }
    return TAKE(list);
}

/* A new reference, or NULL with the error. */
static json_t *parse_value(const struct option *option, const char *text,
                           struct het_error *err)
{
    double value;
    switch (option->kind) {
    case KIND_FLAG:
        return json_true();
    case KIND_TEXT:
        return parse_text(option, text, err);
    case KIND_WHOLE:
    case KIND_NUMBER:
        return parse_number(option, text, &value, err) < 0 ? NULL
                                                           : number_json(option, value);
    case KIND_LIST:
    case KIND_STEPS:
    case KIND_TYPES:
    case KIND_WORDS:
        return parse_list(option, text, err);
    }
    return NULL;
}

/* Puts `value` (taken over) at the dotted path; false if something is there. */
static bool set_path(json_t *values, const char *path, json_t *value)
{
    auto_free char *copy = xstrdup(path);
    char *key = copy;
    for (char *dot; (dot = strchr(key, '.')); key = dot + 1) {
        *dot = '\0';
        json_t *child = json_object_get(values, key);
        if (!child) {
            child = json_object();
            json_object_set_new(values, key, child);
        }
        values = child;
    }
    if (json_object_get(values, key)) {
        json_decref(value);
        return false;
    }
    json_object_set_new(values, key, value);
    return true;
}

static const json_t *get_path(const json_t *values, const char *path)
{
    auto_free char *copy = xstrdup(path);
    char *key = copy;
    for (char *dot; (dot = strchr(key, '.')); key = dot + 1) {
        *dot = '\0';
        values = json_object_get(values, key);
    }
    return json_object_get(values, key);
}

/* ---- arguments ---- */

/* Reads the option at `arguments[*index]` and moves behind it. */
static int parse_option(enum het_command_bit command, int count, char *const *arguments,
                        int *index, json_t *values, struct het_error *err)
{
    const char *name = arguments[(*index)++] + strlen("--");
    size_t length = strcspn(name, "=");
    const char *text = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option = find_option(command, name, length);
    if (!option)
        return het_fail(err, HET_BAD_INPUT, "unknown option --%.*s; see --help",
                        (int)(length < 60 ? length : 60), name);
    if (option->kind == KIND_FLAG && text)
        return het_fail(err, HET_BAD_INPUT, "--%s: takes no value", option->name);
    if (option->kind != KIND_FLAG && !text) {
        if (*index >= count)
            return het_fail(err, HET_BAD_INPUT, "--%s: needs a value (%s)", option->name,
                            option->value);
        text = arguments[(*index)++];
    }
    json_t *value = parse_value(option, text, err);
    if (!value)
        return -1;
    if (!set_path(values, option->path, value))
        return het_fail(err, HET_BAD_INPUT, "--%s: is given twice", option->name);
    return 0;
}

int het_options_parse(enum het_command_bit command, int count, char *const *arguments,
                      struct het_options *ret, struct het_error *err)
{
    json_auto_t *values = json_object(), *operands = json_array();
    const char *operand = NULL;
    bool only_operands = false;
    for (int i = 0; i < count;) {
        const char *argument = arguments[i];
        if (!only_operands && !strcmp(argument, "--")) {
            only_operands = true;
            i++;
        } else if (!only_operands && !strcmp(argument, "-h")) {
            set_path(values, "help", json_true());
            i++;
        } else if (!only_operands && !strncmp(argument, "--", 2)) {
            if (parse_option(command, count, arguments, &i, values, err) < 0)
                return -1;
        } else if (!only_operands && argument[0] == '-' && argument[1]) {
            return het_fail(err, HET_BAD_INPUT, "unknown option %.60s; see --help",
                            argument);
        } else if (operand && !(command & SEVERAL)) {
            return het_fail(err, HET_BAD_INPUT, "unexpected argument \"%.60s\"",
                            argument);
        } else {
            operand = operand ? operand : argument;
            json_array_append_new(operands, het_json_text(argument));
            i++;
        }
    }
    ret->help = json_is_true(json_object_get(values, "help"));
    ret->operand = operand;
    if (command & SEVERAL)
        json_object_set(values, "operands", operands);
    ret->values = TAKE(values);
    return 0;
}

int het_options_need(enum het_command_bit command, const struct het_options *parsed,
                     struct het_error *err)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].required & command) && !get_path(parsed->values, options[i].path))
            return het_fail(err, HET_BAD_INPUT, "--%s %s is missing; see --help",
                            options[i].name, options[i].value);
    return 0;
}

const char *het_options_text(const struct het_options *parsed, const char *key)
{
    return json_string_value(json_object_get(parsed->values, key));
}

/* ---- completion ---- */

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* Whether the value may be a file. */
static bool complete_value(FILE *out, const struct option *option, const char *prefix)
{
    const char *choices = option->choices ? option->choices : "";
    while (*choices) {
        int length = (int)strcspn(choices, " ");
        if (begins_with(choices, prefix))
            fprintf(out, "%.*s\n", length, choices);
        choices += length + (choices[length] == ' ');
    }
    return option->kind == KIND_TEXT && !option->choices;
}

bool het_options_complete(FILE *out, enum het_command_bit command, const char *before,
                          const char *prefix)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        if ((option->commands & command) && option->kind != KIND_FLAG &&
            begins_with(before, "--") && !strcmp(option->name, before + 2))
            return complete_value(out, option, prefix);
    }
    for (size_t i = 0; i < OPTION_COUNT && *prefix == '-'; i++) {
        const struct option *option = &options[i];
        auto_free char *word = xasprintf("--%s", option->name);
        if ((option->commands & command) && begins_with(word, prefix))
            fprintf(out, "%s\t%s\n", word, option->help);
    }
    return *prefix != '-';
}

/* ---- help ---- */

#define HELP_COLUMNS 79

void het_options_wrap(FILE *out, int indent, const char *text)
{
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (length && column && column + 1 + length > HELP_COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        if (length) {
            column += fprintf(out, "%*s%.*s", column ? 1 : indent, "", length, text);
            text += length;
        }
        if (*text == '\n') {
            fputc('\n', out);
            column = 0;
        }
        text += *text != '\0';
    }
    if (column)
        fputc('\n', out);
}

/* "Default auto. From 1 to 90." */
static char *range_text(const struct option *option)
{
    auto_free char *range = xstrdup("");
    bool bounded = option->kind == KIND_WHOLE || option->kind == KIND_NUMBER ||
                   option->kind == KIND_LIST;
    if (option->choices) {
        xfree(range);
        range = xasprintf(" One of: %s.", option->choices);
    } else if (bounded && option->high < UINT32_MAX) {
        xfree(range);
        range = xasprintf(" From %.16g to %.16g.", option->low, option->high);
    } else if (bounded) {
        xfree(range);
        range = xasprintf(" At least %.16g.", option->low);
    }
    if (option->preset)
        return xasprintf("%s Default: %s.", range, option->preset);
    return TAKE(range);
}

void het_options_print(FILE *out, enum het_command_bit command)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        if (!(option->commands & command))
            continue;
        fprintf(out, "  --%s%s%s%s\n", option->name, option->value ? " " : "",
                option->value ? option->value : "",
                option->required & command ? " (required)" : "");
        auto_free char *range = range_text(option);
        auto_free char *text = xasprintf("%s%s", option->help, range);
        het_options_wrap(out, 6, text);
    }
}
