#include "planner/cli/command.h"

#include "planner/format/document/read_file.h"
#include "planner/format/document/render_json.h"
#include "planner/model/runtime.h"

#include <errno.h>
#include <string.h>

static const char *text_or(const struct het_options *options, const char *key,
                           const char *otherwise)
{
    const json_t *render = json_object_get(options->values, "render");
    const char *text = json_string_value(json_object_get(render, key));
    return text ? text : otherwise;
}

static uint32_t number_or(const struct het_options *options, const char *key,
                          uint32_t otherwise)
{
    const json_t *number =
        json_object_get(json_object_get(options->values, "render"), key);
    return number ? (uint32_t)json_integer_value(number) : otherwise;
}

static struct het_render_job render_job(const struct het_options *options)
{
    const char *job = text_or(options, "job", "job");
    return (struct het_render_job){
        .job = job,
        .ns = text_or(options, "namespace", "default"),
        .service = text_or(options, "service", job),
        .generation = number_or(options, "generation", 1),
        .master_port = (uint16_t)number_or(options, "masterPort", 29500),
        .plan_path = "/etc/hetero-plan/plan.json",
    };
}

/* Words for a shell: each in single quotes where it needs them. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_./:=,@+";
    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
    putc('\'', out);
}

static void put_arguments(FILE *out, const json_t *pod)
{
    const json_t *list = json_object_get(pod, "arguments");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i)
            putc(' ', out);
        put_word(out, json_string_value(json_array_get(list, i)));
    }
    putc('\n', out);
}

static void put_environment(FILE *out, const json_t *pod)
{
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(pod, "environment"), name, value)
        fprintf(out, "%s=%s\n", name, json_string_value(value));
}

static void print_rendering(const json_t *rendering)
{
    const char *name;
    json_t *text;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        printf("# %s\n%s\n", name, json_string_value(text));
    const json_t *pods = json_object_get(rendering, "pods");
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        printf("# %s on node %s\n", json_string_value(json_object_get(pod, "host")),
               json_string_value(json_object_get(pod, "node")));
        put_environment(stdout, pod);
        put_arguments(stdout, pod);
        putchar('\n');
    }
}

/* A file of its own for each thing; -1 and the cause if one cannot be written. */
static int write_file(const char *directory, const char *name,
                      void (*put)(FILE *out, const json_t *what), const json_t *what,
                      struct het_error *err)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (file)
        put(file, what);
    bool failed = !file || ferror(file);
    if ((file && fclose(file)) || failed)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    return 0;
}

static void put_text(FILE *out, const json_t *text)
{
    fputs(json_string_value(text), out);
}

static void put_json_line(FILE *out, const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    fprintf(out, "%s\n", text);
}

static int write_rendering(const char *directory, const json_t *rendering,
                           struct het_error *err)
{
    const char *name;
    json_t *text;
    const json_t *pods = json_object_get(rendering, "pods");
    if (write_file(directory, "plan.json", put_json_line,
                   json_object_get(rendering, "plan"), err) < 0)
        return -1;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        if (write_file(directory, name, put_text, text, err) < 0)
            return -1;
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        auto_free char *arguments = xasprintf("pod-%zu.args", i);
        auto_free char *environment = xasprintf("pod-%zu.env", i);
        if (write_file(directory, arguments, put_arguments, pod, err) < 0 ||
            write_file(directory, environment, put_environment, pod, err) < 0)
            return -1;
    }
    return 0;
}

static int run_render(const struct het_command *command,
                      const struct het_options *options)
{
    struct het_arena *arena = het_arena_new();
    struct het_error err;
    json_auto_t *plan = NULL, *rendering = NULL;
    const char *directory = het_options_text(options, "directory");
    const json_t *job = json_object_get(options->values, "job");
    const char *name = json_string_value(json_object_get(job, "runtime"));
    const struct het_runtime *runtime = NULL;
    int code = HET_EXIT_DONE;
    if (!options->operand)
        het_fail(&err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (!options->operand || het_options_need(command->bit, options, &err) < 0 ||
        !(runtime = het_runtime_find(name, &err)) ||
        het_input_read(options->operand, &plan, &err) < 0 ||
        het_render_json(arena, runtime, plan, render_job(options), &rendering, &err) <
            0 ||
        (directory && write_rendering(directory, rendering, &err) < 0))
        code = het_command_fail(command, &err);
    else if (!directory && het_command_wants_table(options))
        print_rendering(rendering);
    else if (!directory)
        het_command_print(rendering);
    het_arena_free(arena);
    return het_command_finish(command, code);
}

const struct het_command het_command_render = {
    .name = "render",
    .bit = HET_COMMAND_RENDER,
    .run = run_render,
    .summary = "write a plan as a training runtime reads it",
    .synopsis = "hetplan render --runtime NAME [OPTION]... PLAN.json",
    .description =
        "Writes what a training runtime needs to run the plan: its own files, and for "
        "each pod the arguments of the program and the environment of torchrun. A "
        "plan that the runtime cannot run is refused with the reason. \"-\" reads the "
        "plan from standard input.",
    .output = "{\"runtime\", \"plan\", \"files\", \"pods\": [ { \"host\", \"node\", "
              "\"gpus\", \"arguments\", \"environment\" } ] }, or the same as text; with "
              "--directory files.",
    .exit_status = "0  the plan was rendered\n1  the runtime cannot run it\n2  an "
                   "option or a file is wrong",
    .examples = "hetplan render --runtime megatron plan.json\n"
                "hetplan render --runtime flagscale --directory out plan.json",
};
