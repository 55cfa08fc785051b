#include "planner/cli/command.h"

#include "planner/format/document/answer_text.h"

#include <errno.h>
#include <string.h>

/* A file of its own for each thing; -1 and the cause if one cannot be written. */
static int write_file(const char *directory, const char *name, const char *text,
                      struct het_error *err)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (file)
        fputs(text, file);
    bool failed = !file || ferror(file);
    if ((file && fclose(file)) || failed)
        return het_fail(err, HET_BAD_INPUT, "%.300s: %s", path, strerror(errno));
    return 0;
}

static int write_pods(struct het_arena *arena, const char *directory, const json_t *pods,
                      struct het_error *err)
{
    for (size_t i = 0; i < json_array_size(pods); i++) {
        const json_t *pod = json_array_get(pods, i);
        const char *arguments = het_arena_printf(arena, "pod-%zu.args", i);
        const char *environment = het_arena_printf(arena, "pod-%zu.env", i);
        if (write_file(directory, arguments, het_answer_pod_arguments(arena, pod), err) <
                0 ||
            write_file(directory, environment, het_answer_pod_environment(arena, pod),
                       err) < 0)
            return -1;
    }
    return 0;
}

static int write_rendering(const char *directory, const json_t *rendering,
                           struct het_error *err)
{
    const char *name;
    json_t *text;
    auto_free char *plan = het_json_canonical(json_object_get(rendering, "plan"));
    auto_free char *line = xasprintf("%s\n", plan);
    if (write_file(directory, "plan.json", line, err) < 0)
        return -1;
    json_object_foreach (json_object_get(rendering, "files"), name, text)
        if (write_file(directory, name, json_string_value(text), err) < 0)
            return -1;
    struct het_arena *arena = het_arena_new();
    int result = write_pods(arena, directory, json_object_get(rendering, "pods"), err);
    het_arena_free(arena);
    return result;
}

/* Prints the rendering, or writes it into the folder of the options. */
static int tell_rendering(const struct het_command *command,
                          const struct het_options *options,
                          const struct het_asked *asked, const char *answer)
{
    const char *directory = het_options_text(options, "directory");
    struct het_error err;
    if (!answer || !directory)
        return het_command_tell(command, asked, answer);
    json_auto_t *rendering = json_loads(answer, 0, NULL);
    if (write_rendering(directory, rendering, &err) < 0)
        return het_command_fail(command, &err);
    return HET_EXIT_DONE;
}

static int run_render(const struct het_command *command,
                      const struct het_options *options)
{
    struct het_error err;
    const json_t *job = json_object_get(options->values, "job");
    const json_t *render = json_object_get(options->values, "render");
    struct het_asked asked = { .form = HET_FORM_JSON };
    if (het_command_read_plan(command, options, &asked.plan, &err) < 0)
        return het_command_fail(command, &err);
    auto_free char *pods = render ? het_command_line(render) : NULL;
    if (!het_options_text(options, "directory") && het_command_wants_table(options))
        asked.form = HET_FORM_TEXT;
    asked.planner = het_asked_planner(options);
    int code = tell_rendering(
        command, options, &asked,
        het_planner_render(asked.planner, asked.plan,
                           json_string_value(json_object_get(job, "runtime")), pods,
                           asked.form));
    het_asked_fini(&asked);
    return code;
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
