/* What is rendered for each runtime is read back by a parser of its grammar, written from
 * the runtime's documentation, and must say what the plan says. The plans are those of
 * tests/golden/render. */
#include "planner/format/document/plan_json.h"
#include "planner/format/document/read_file.h"
#include "planner/render/runtime/runtime_files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rendered {
    struct het_arena *arena;
    const struct het_plan *plan;
    struct het_rendering rendering;
};

static struct rendered render(const char *name)
{
    struct rendered r = { .arena = het_arena_new() };
    const struct het_runtime *runtime = het_runtime_find(name, NULL);
    const struct het_render_job job = { .job = "llm",
                                        .ns = "team",
                                        .service = "llm",
                                        .generation = 3,
                                        .master_port = 29500,
                                        .plan_hash = "",
                                        .plan_path = "" };
    auto_free char *path = xasprintf("tests/golden/render/%s/input.json", name);
    json_t *json;
    ck_assert_int_eq(het_read_file(path, &json, NULL), 0);
    ck_assert_int_eq(het_plan_json_read(r.arena, json, &r.plan, NULL), 0);
    json_decref(json);
    r.plan = het_runtime_express_alone(r.arena, runtime, r.plan, NULL);
    ck_assert_ptr_nonnull(r.plan);
    r.rendering = het_render(r.arena, runtime, r.plan, &job);
    return r;
}

static const char *argument(const struct rendered *r, const char *name)
{
    for (size_t i = 0; i + 1 < r->rendering.argument_count; i++)
        if (!strcmp(r->rendering.arguments[i], name))
            return r->rendering.arguments[i + 1];
    return NULL;
}

static long number(const struct rendered *r, const char *name)
{
    const char *text = argument(r, name);
    ck_assert_msg(text != NULL, "%s is missing", name);
    return strtol(text, NULL, 10);
}

/* The whole numbers behind an argument. */
static size_t numbers(const struct rendered *r, const char *name, long *ret, size_t most)
{
    size_t i = 0, count = 0;
    while (strcmp(r->rendering.arguments[i], name) != 0)
        ck_assert_uint_lt(++i, r->rendering.argument_count);
    for (i++; i < r->rendering.argument_count && count < most; i++) {
        char *end;
        ret[count] = strtol(r->rendering.arguments[i], &end, 10);
        if (*end)
            break;
        count++;
    }
    return count;
}

static const char *file_text(const struct rendered *r, const char *name)
{
    for (size_t i = 0; i < r->rendering.file_count; i++)
        if (!strcmp(r->rendering.files[i].name, name))
            return r->rendering.files[i].text;
    ck_abort_msg("no file %s", name);
}

static json_t *load(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "not JSON: %s", text);
    return json;
}

/* GPUs of the plan. */
static long world(const struct het_plan *plan)
{
    long gpus = 0;
    for (size_t p = 0; p < plan->pipeline_count; p++)
        for (size_t s = 0; s < plan->pipelines[p].stage_count; s++)
            for (size_t r = 0; r < plan->pipelines[p].stages[s].replica_count; r++)
                gpus += plan->pipelines[p].stages[s].replicas[r].tp;
    return gpus;
}

/* ---- Megatron-LM ---- */

struct layout_stage {
    unsigned embeddings, layers, predictions, losses;
};

/* Writes `count` copies of the `length` bytes at `text` to `*end`, before `limit`. */
static void repeat(char **end, const char *limit, const char *text, size_t length,
                   unsigned long count)
{
    ck_assert_uint_ge(count, 1);
    for (; count; count--) {
        ck_assert((size_t)(limit - *end) > length);
        memcpy(*end, text, length);
        *end += length;
    }
    **end = '\0';
}

/* Without commas, and with groups and multiples written out: (X)*n first, in which a bar
 * may stand and no parenthesis, then X*n. */
static void expand_layout(const char *text, char *ret, size_t size)
{
    char *end = ret, *number_end;
    *end = '\0';
    while (*text) {
        const char *close = *text == '(' ? strchr(text, ')') : NULL;
        size_t length = close ? (size_t)(close - text) - 1 : 1;
        const char *behind = close ? close + 1 : text + 1;
        const char *item = close ? text + 1 : text;
        ck_assert_msg(*text != '(' || close, "a group is not closed: %s", text);
        unsigned long times = 1;
        if (*behind == '*') {
            times = strtoul(behind + 1, &number_end, 10);
            ck_assert_ptr_ne(number_end, behind + 1);
            behind = number_end;
        } else {
            ck_assert_msg(!close, "a group without a number: %s", text);
        }
        if (close) { /* what is in it has multiples of its own */
            auto_free char *inner = strndup(item, length);
            char expanded[512];
            expand_layout(inner, expanded, sizeof expanded);
            repeat(&end, ret + size, expanded, strlen(expanded), times);
        } else if (*item != ',') {
            repeat(&end, ret + size, item, 1, times);
        }
        text = behind;
    }
}

/* layout := stage ('|' stage)*, stage := item*, item := [EtmL] | X*n | (group)*n; commas
 * mean nothing. The rules: one E, the first of all; one L, the last; m behind all t.
 * Returns the number of stages. */
static size_t parse_layout(const char *text, struct layout_stage *stages, size_t most)
{
    char expanded[4096];
    size_t count = 1;
    memset(stages, 0, most * sizeof *stages);
    expand_layout(text, expanded, sizeof expanded);
    ck_assert_int_eq(expanded[0], 'E');
    ck_assert_int_eq(expanded[strlen(expanded) - 1], 'L');
    ck_assert_ptr_null(strchr(expanded + 1, 'E'));
    ck_assert_ptr_eq(strchr(expanded, 'L'), expanded + strlen(expanded) - 1);
    if (strchr(expanded, 'm'))
        ck_assert_ptr_null(strchr(strchr(expanded, 'm'), 't'));
    for (const char *c = expanded; *c; c++) {
        struct layout_stage *stage = &stages[count - 1];
        switch (*c) {
        case '|':
            ck_assert_uint_lt(++count, most);
            break;
        case 'E':
            stage->embeddings++;
            break;
        case 't':
            stage->layers++;
            break;
        case 'm':
            stage->predictions++;
            break;
        case 'L':
            stage->losses++;
            break;
        default:
            ck_abort_msg("no item %c", *c);
        }
    }
    return count;
}

/* ---- every flag and value ---- */

enum value_kind { NOTHING, NUMBER, NUMBERS, WORDS, LISTS, LAYOUT, CHOICE };

/* Arguments of Megatron-LM, and of FlagScale (its section "heterogeneous training" and
 * recomputation by stage). */
static const struct flag {
    const char *name;
    enum value_kind kind;
    const char *choices; /* parted by blanks */
    bool only_flagscale;
} flags[] = {
    { "--tensor-model-parallel-size", NUMBER, NULL, false },
    { "--pipeline-model-parallel-size", NUMBER, NULL, false },
    { "--pipeline-model-parallel-layout", LAYOUT, NULL, false },
    { "--use-tp-pp-dp-mapping", NOTHING, NULL, false },
    { "--micro-batch-size", NUMBER, NULL, false },
    { "--global-batch-size", NUMBER, NULL, false },
    { "--bf16", NOTHING, NULL, false },
    { "--fp16", NOTHING, NULL, false },
    { "--recompute-granularity", CHOICE, "full selective", false },
    { "--recompute-method", CHOICE, "uniform block", false },
    { "--recompute-num-layers", NUMBER, NULL, false },
    { "--use-distributed-optimizer", NOTHING, NULL, false },
    { "--dist-ckpt-optim-fully-reshardable", NOTHING, NULL, false },
    { "--ckpt-format", CHOICE, "torch torch_dist torch_dcp fsdp_dtensor", false },
    { "--enable-hetero", NOTHING, NULL, true },
    { "--hetero-process-meshes", NUMBERS, NULL, true },
    { "--hetero-device-types", WORDS, NULL, true },
    { "--hetero-current-device-type", WORDS, NULL, true },
    { "--hetero-pipeline-layer-split", NUMBERS, NULL, true },
    { "--recompute-granularity-per-stage-micro-batch", LISTS, NULL, true },
    { "--recompute-method-per-stage-micro-batch", LISTS, NULL, true },
    { "--recompute-num-layers-per-stage-micro-batch", LISTS, NULL, true },
};
#define FLAG_COUNT (sizeof flags / sizeof *flags)

static const struct flag *find_flag(const char *name, bool is_flagscale)
{
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (!strcmp(flags[i].name, name) && (is_flagscale || !flags[i].only_flagscale))
            return &flags[i];
    ck_abort_msg("no argument %s", name);
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static void check_value(const struct flag *flag, const char *value)
{
    struct layout_stage stages[64];
    json_t *list;
    switch (flag->kind) {
    case NOTHING:
        ck_abort_msg("%s takes no value, has %s", flag->name, value);
    case NUMBER:
    case NUMBERS:
        ck_assert_msg(is_number(value), "%s %s", flag->name, value);
        return;
    case WORDS:
        ck_assert_msg(*value && !strpbrk(value, " \t,"), "%s %s", flag->name, value);
        return;
    case CHOICE:
        ck_assert_msg(strstr(flag->choices, value) != NULL, "%s %s", flag->name, value);
        return;
    case LAYOUT:
        parse_layout(value, stages, 64);
        return;
    case LISTS:
        list = load(value);
        /* [stages, micro-batches, value, micro-batches, value, ...] */
        ck_assert_uint_eq(json_array_size(list) % 2, 1);
        ck_assert_uint_ge(json_array_size(list), 3);
        json_decref(list);
        return;
    }
}

/* Each argument is known, is there once, and has the values that it takes. */
static void check_arguments(const char *const *words, size_t count, bool is_flagscale)
{
    bool seen[FLAG_COUNT] = { false };
    for (size_t i = 0; i < count;) {
        const struct flag *flag = find_flag(words[i++], is_flagscale);
        size_t values = 0;
        ck_assert_msg(!seen[flag - flags], "%s is there twice", flag->name);
        seen[flag - flags] = true;
        for (; i < count && strncmp(words[i], "--", 2); values++)
            check_value(flag, words[i++]);
        bool takes_many = flag->kind == NUMBERS || flag->kind == WORDS ||
                          flag->kind == LISTS;
        ck_assert_msg(takes_many ? values >= 1 : values == (flag->kind != NOTHING),
                      "%s has %zu values", flag->name, values);
    }
}

START_TEST(every_argument_is_known_with_its_values)
{
    static const char *const names[] = { "megatron", "flagscale" };
    for (size_t i = 0; i < 2; i++) {
        struct rendered r = render(names[i]);
        check_arguments(r.rendering.arguments, r.rendering.argument_count, i == 1);
        for (size_t n = 0; n < r.rendering.node_count; n++)
            check_arguments(r.rendering.node_arguments[n], 2, true);
        het_arena_free(r.arena);
    }
}
END_TEST

START_TEST(megatron_layout_says_the_stages)
{
    struct rendered r = render("megatron");
    const struct het_pipeline *pipeline = &r.plan->pipelines[0];
    struct layout_stage stages[64];
    size_t count =
        parse_layout(argument(&r, "--pipeline-model-parallel-layout"), stages, 64);
    ck_assert_uint_eq(count, pipeline->stage_count);
    ck_assert_int_eq(number(&r, "--pipeline-model-parallel-size"), (long)count);
    for (size_t s = 0; s < count; s++) {
        ck_assert_uint_eq(stages[s].embeddings, s == 0);
        ck_assert_uint_eq(stages[s].losses, s + 1 == count);
        ck_assert_uint_eq(stages[s].embeddings + stages[s].layers + stages[s].losses,
                          pipeline->stages[s].layer_count);
    }
    /* Megatron-LM finds out the rest: dp = world / (tp pp), micro-batches = global / (dp
     * size). */
    long tp = number(&r, "--tensor-model-parallel-size");
    long dp = world(r.plan) / tp / (long)count;
    long batches = number(&r, "--global-batch-size") / dp /
                   number(&r, "--micro-batch-size");
    ck_assert_int_eq(batches, pipeline->microbatch_count);
    ck_assert_int_eq(dp, (long)pipeline->stages[0].replica_count);
    het_arena_free(r.arena);
}
END_TEST

START_TEST(megatron_layouts_of_odd_shapes_are_read_back)
{
    struct layout_stage stages[8];
    ck_assert_uint_eq(parse_layout("E|t*3|t|L", stages, 8), 4);
    ck_assert_uint_eq(stages[0].embeddings, 1);
    ck_assert_uint_eq(stages[1].layers, 3);
    ck_assert_uint_eq(stages[2].layers, 1);
    ck_assert_uint_eq(stages[3].losses, 1);
    /* The examples of Megatron-LM's own documentation. */
    struct layout_stage many[64];
    ck_assert_uint_eq(parse_layout("Et*3|(tt|)*29,m|L", many, 64), 32);
    ck_assert_uint_eq(many[0].layers, 3);
    ck_assert_uint_eq(many[29].layers, 2);
    ck_assert_uint_eq(many[30].predictions, 1);
    ck_assert_uint_eq(parse_layout("E||t|L", stages, 8), 4);
    ck_assert_uint_eq(stages[1].layers, 0);
}
END_TEST

/* ---- FlagScale ---- */

START_TEST(flagscale_meshes_cover_the_world_and_the_layers)
{
    struct rendered r = render("flagscale");
    const struct het_pipeline *pipeline = &r.plan->pipelines[0];
    long meshes[40], split[16], stages = 0, gpus = 0, layers = 0;
    size_t count = numbers(&r, "--hetero-process-meshes", meshes, 40);
    ck_assert_uint_eq(count % 5, 0);
    size_t stage = 0;
    for (size_t m = 0; m < count; m += 5) {
        long tp = meshes[m], dp = meshes[m + 3], pp = meshes[m + 4];
        ck_assert_int_eq(meshes[m + 1], 1); /* cp, ep */
        ck_assert_int_eq(meshes[m + 2], 1);
        for (long i = 0; i < pp; i++, stage++) {
            ck_assert_int_eq(pipeline->stages[stage].replicas[0].tp, tp);
            ck_assert_int_eq((long)pipeline->stages[stage].replica_count, dp);
        }
        /* A mesh of dp_i replicas runs micro-batches of dp_0 size / dp_i. */
        ck_assert_int_eq(meshes[3] * number(&r, "--micro-batch-size") % dp, 0);
        stages += pp;
        gpus += tp * dp * pp;
    }
    ck_assert_int_eq(gpus, world(r.plan));
    ck_assert_int_eq(stages, number(&r, "--pipeline-model-parallel-size"));
    ck_assert_uint_eq(numbers(&r, "--hetero-pipeline-layer-split", split, 16),
                      pipeline->stage_count);
    for (long s = 0; s < stages; s++)
        layers += split[s];
    ck_assert_int_eq(layers, (long)r.plan->layer_count - 2);
    het_arena_free(r.arena);
}
END_TEST

/* What its pre_validate_args and the runner's hostfile ask for beside that. */
START_TEST(flagscale_rules_hold)
{
    struct rendered r = render("flagscale");
    long meshes[40];
    size_t count = numbers(&r, "--hetero-process-meshes", meshes, 40) / 5, types = 0;
    const char *const *words = r.rendering.arguments;
    while (strcmp(*words, "--hetero-device-types") != 0)
        words++;
    for (words++; strncmp(words[types], "--", 2); types++)
        for (size_t i = 0; i < types; i++) /* list.index finds the first of a name */
            ck_assert_str_ne(words[i], words[types]);
    ck_assert_uint_eq(types, count);
    for (size_t m = 0; m < count; m++) {
        ck_assert_int_eq(meshes[5 * m + 1], meshes[1]); /* one cp for all */
        for (int i = 0; i < 5; i++)
            ck_assert_int_ge(meshes[5 * m + i], 1);
    }
    /* A line a host, none twice, all typed with a name of the list. */
    const char *line = file_text(&r, "hostfile");
    for (size_t n = 0; n < r.rendering.node_count; n++) {
        char host[128], type[64];
        unsigned slots;
        ck_assert_int_eq(sscanf(line, "%127s slots=%u type=%63s", host, &slots, type), 3);
        ck_assert_str_eq(type, r.rendering.node_arguments[n][1]);
        ck_assert_uint_ge(slots, 1);
        line = strchr(line, '\n') + 1;
        ck_assert_ptr_null(strstr(line, host));
    }
    ck_assert_int_eq(*line, '\0');
    ck_assert_ptr_nonnull(
        strstr(file_text(&r, "hetero.yaml"), "standalone_embedding_stage: false\n"));
    het_arena_free(r.arena);
}
END_TEST

/* Logical ranks are the ranks sorted by the place of their node's type name; that order
 * must be the ranks' own. */
START_TEST(flagscale_type_names_keep_the_order_of_ranks)
{
    struct rendered r = render("flagscale");
    size_t place = 0, previous = 0;
    for (size_t n = 0; n < r.rendering.node_count; n++) {
        const char *name = r.rendering.node_arguments[n][1];
        ck_assert_str_eq(r.rendering.node_arguments[n][0],
                         "--hetero-current-device-type");
        for (place = 0; place < r.rendering.argument_count; place++)
            if (!strcmp(r.rendering.arguments[place], name))
                break;
        ck_assert_uint_lt(place, r.rendering.argument_count);
        ck_assert_uint_ge(place, previous);
        previous = place;
    }
    het_arena_free(r.arena);
}
END_TEST

/* One word a stage, [stages, micro-batches, flag], each a list of its own; and full
 * recomputation for the lists to take away from. */
START_TEST(flagscale_recomputation_is_a_word_a_stage)
{
    struct rendered r = render("flagscale");
    const struct het_pipeline *pipeline = &r.plan->pipelines[0];
    ck_assert_str_eq(argument(&r, "--recompute-granularity"), "full");
    ck_assert_str_eq(argument(&r, "--recompute-method"), "uniform");
    const char *const *words = r.rendering.arguments;
    while (strcmp(*words, "--recompute-granularity-per-stage-micro-batch") != 0)
        words++;
    for (size_t s = 0; s < pipeline->stage_count; s++) {
        json_t *list = load(*++words);
        ck_assert_int_eq(json_integer_value(json_array_get(list, 0)), 1);
        ck_assert_int_eq(json_integer_value(json_array_get(list, 1)),
                         pipeline->microbatch_count);
        ck_assert_int_eq(json_integer_value(json_array_get(list, 2)),
                         pipeline->stages[s].recompute == HET_RECOMPUTE_FULL);
        json_decref(list);
    }
    ck_assert_str_eq(*++words, "--recompute-method-per-stage-micro-batch");
    het_arena_free(r.arena);
}
END_TEST

/* ---- all runtimes ---- */

static const char *const restricted[] = { "megatron", "flagscale", "sailor", "deepspeed",
                                          "torchtitan" };

START_TEST(words_hold_no_blank_and_are_the_variable)
{
    struct rendered r = render(restricted[_i]);
    const struct het_render_job job = { .job = "llm",
                                        .ns = "team",
                                        .service = "llm",
                                        .generation = 3,
                                        .plan_path = "/p/plan.json" };
    const char **words;
    struct het_env *variables;
    struct het_rank_node *nodes;
    size_t node_count = het_plan_rank_nodes(r.arena, r.plan, &nodes);
    for (size_t n = 0; n < node_count; n++) {
        size_t count = het_rendering_arguments(r.arena, &r.rendering, n, &words);
        size_t variable_count =
            het_rendering_environment(r.arena, &r.rendering, r.plan, &job, n, &variables);
        const struct het_env *last = &variables[variable_count - 1];
        ck_assert_str_eq(last->name, "HETPLAN_ARGUMENTS");
        char *rest = het_arena_strdup(r.arena, last->value), *word;
        for (size_t i = 0; i < count; i++) {
            word = strsep(&rest, " ");
            ck_assert_ptr_nonnull(word);
            ck_assert_str_eq(word, words[i]);
        }
        ck_assert_ptr_null(rest);
    }
    het_arena_free(r.arena);
}
END_TEST

START_TEST(files_that_arguments_name_lie_beside_the_plan)
{
    static const struct {
        const char *runtime, *argument, *path;
    } named[] = {
        { "sailor", "--distributed-config-file", "/p/q/dist_config.json" },
        { "deepspeed", "--deepspeed_config", "/p/q/ds_config.json" },
        { "torchtitan", "--job.config_file", "/p/q/torchtitan.toml" },
    };
    struct rendered r = render(named[_i].runtime);
    const struct het_render_job job = {
        .job = "llm", .ns = "team", .service = "llm", .plan_path = "/p/q/plan.json"
    };
    r.rendering =
        het_render(r.arena, het_runtime_find(named[_i].runtime, NULL), r.plan, &job);
    ck_assert_str_eq(argument(&r, named[_i].argument), named[_i].path);
    file_text(&r, strrchr(named[_i].path, '/') + 1);
    het_arena_free(r.arena);
}
END_TEST

/* What is stored as expressed reads back as it was. */
START_TEST(expressed_plan_is_expressed_as_it_is)
{
    struct rendered r = render(restricted[_i]);
    json_auto_t *text = het_plan_json(r.plan);
    const struct het_plan *again;
    ck_assert_int_eq(het_plan_json_read(r.arena, text, &again, NULL), 0);
    again = het_runtime_express_alone(r.arena, het_runtime_find(restricted[_i], NULL),
                                      again, NULL);
    ck_assert_ptr_nonnull(again);
    json_auto_t *second = het_plan_json(again);
    ck_assert(json_equal(text, second));
    het_arena_free(r.arena);
}
END_TEST

/* ---- Sailor ---- */

START_TEST(sailor_groups_hold_every_rank_once)
{
    struct rendered r = render("sailor");
    json_t *groups = load(file_text(&r, "dist_config.json"));
    json_t *training = load(file_text(&r, "training.json"));
    const struct het_pipeline *pipeline = &r.plan->pipelines[0];
    bool seen[64] = { false };
    long count = 0, layers = 0;
    ck_assert_uint_eq(json_array_size(groups), pipeline->stage_count);
    for (size_t s = 0; s < json_array_size(groups); s++) {
        const json_t *stage = json_array_get(groups, s);
        ck_assert_uint_eq(json_array_size(stage), pipeline->stages[s].replica_count);
        for (size_t i = 0; i < json_array_size(stage); i++) {
            const json_t *ranks = json_array_get(stage, i);
            ck_assert_uint_eq(json_array_size(ranks), pipeline->stages[s].replicas[i].tp);
            for (size_t k = 0; k < json_array_size(ranks); k++, count++) {
                json_int_t rank = json_integer_value(json_array_get(ranks, k));
                ck_assert(rank >= 0 && rank < 64 && !seen[rank]);
                seen[rank] = true;
            }
        }
        layers += (long)json_integer_value(
            json_array_get(json_object_get(training, "layers_per_stage"), s));
    }
    ck_assert_int_eq(count, world(r.plan));
    ck_assert_int_eq(layers, (long)r.plan->layer_count);
    json_decref(groups);
    json_decref(training);
    het_arena_free(r.arena);
}
END_TEST

/* ---- DeepSpeed ---- */

START_TEST(deepspeed_batch_is_the_product_that_it_asserts)
{
    struct rendered r = render("deepspeed");
    json_t *settings = load(file_text(&r, "ds_config.json"));
    json_int_t batch, size, steps;
    ck_assert_int_eq(json_unpack(settings, "{s:I, s:I, s:I}", "train_batch_size", &batch,
                                 "train_micro_batch_size_per_gpu", &size,
                                 "gradient_accumulation_steps", &steps),
                     0);
    long dp = world(r.plan) / number(&r, "--tensor-model-parallel-size") /
              number(&r, "--pipeline-model-parallel-size");
    ck_assert_int_eq(batch, size * steps * dp);
    ck_assert_int_eq(batch, r.plan->global_batch);
    json_decref(settings);
    het_arena_free(r.arena);
}
END_TEST

/* ---- TorchTitan ---- */

/* The value of `key` in a TOML file of one line a key. */
static const char *toml_value(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    ck_assert_msg(at != NULL, "%s is missing", key);
    at += strlen(key);
    ck_assert_int_eq(strncmp(at, " = ", 3), 0);
    return at + 3;
}

START_TEST(torchtitan_parts_name_every_module_once_in_order)
{
    struct rendered r = render("torchtitan");
    const struct het_pipeline *pipeline = &r.plan->pipelines[0];
    const char *text = file_text(&r, "torchtitan.toml");
    const char *value = toml_value(text, "module_fqns_per_model_part");
    /* An array of arrays of strings is the same in TOML and JSON. */
    auto_free char *line = strndup(value, strcspn(value, "\n"));
    json_t *parts = load(line);
    uint32_t next = 0;
    ck_assert_uint_eq(json_array_size(parts), pipeline->stage_count);
    for (size_t s = 0; s < json_array_size(parts); s++) {
        const json_t *part = json_array_get(parts, s);
        for (size_t i = 0; i < json_array_size(part); i++) {
            const char *name = json_string_value(json_array_get(part, i));
            auto_free char *block = xasprintf("layers.%u", next - 1);
            if (!next)
                ck_assert_str_eq(name, "tok_embeddings");
            else if (next + 1 < r.plan->layer_count)
                ck_assert_str_eq(name, block);
            else
                ck_assert(!strcmp(name, "norm") || !strcmp(name, "output"));
            next += strcmp(name, "norm") != 0;
        }
        ck_assert_uint_eq(next, pipeline->stages[s].first_layer +
                                    pipeline->stages[s].layer_count);
    }
    long degree = strtol(toml_value(text, "\ntensor_parallel_degree") + 0, NULL, 10) *
                  strtol(toml_value(text, "\npipeline_parallel_degree"), NULL, 10) *
                  strtol(toml_value(text, "data_parallel_replicate_degree"), NULL, 10) *
                  strtol(toml_value(text, "data_parallel_shard_degree"), NULL, 10);
    ck_assert_int_eq(degree, world(r.plan));
    json_decref(parts);
    het_arena_free(r.arena);
}
END_TEST

Suite *test_runtime_files_suite(void)
{
    Suite *suite = suite_create("runtime_files");
    TCase *tcase = tcase_create("rendering");
    tcase_add_test(tcase, megatron_layout_says_the_stages);
    tcase_add_test(tcase, megatron_layouts_of_odd_shapes_are_read_back);
    tcase_add_test(tcase, flagscale_meshes_cover_the_world_and_the_layers);
    tcase_add_test(tcase, every_argument_is_known_with_its_values);
    tcase_add_test(tcase, flagscale_rules_hold);
    tcase_add_test(tcase, flagscale_type_names_keep_the_order_of_ranks);
    tcase_add_test(tcase, flagscale_recomputation_is_a_word_a_stage);
    tcase_add_loop_test(tcase, words_hold_no_blank_and_are_the_variable, 0, 5);
    tcase_add_loop_test(tcase, files_that_arguments_name_lie_beside_the_plan, 0, 3);
    tcase_add_loop_test(tcase, expressed_plan_is_expressed_as_it_is, 0, 5);
    tcase_add_test(tcase, sailor_groups_hold_every_rank_once);
    tcase_add_test(tcase, deepspeed_batch_is_the_product_that_it_asserts);
    tcase_add_test(tcase, torchtitan_parts_name_every_module_once_in_order);
    suite_add_tcase(suite, tcase);
    return suite;
}
