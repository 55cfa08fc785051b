#include "planner/cli/command.h"

#include "planner/cli/question_document.h"
#include "planner/format/document/read_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- terminal ---- */

#define WIDTH_DEFAULT 100
#define WIDTH_LEAST   70
#define WIDTH_MOST    160

static int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        width = size.ws_col;
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

static bool terminal_is_utf8(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

bool het_command_wants_table(const struct het_options *options)
{
    const char *output = het_options_text(options, "output");
    return output ? !strcmp(output, "table") : isatty(STDOUT_FILENO);
}

static int exit_code(const struct het_error *err)
{
    return err->code == HET_NO_PLAN     ? HET_EXIT_NO_PLAN
           : err->code == HET_CUT_SHORT ? HET_EXIT_CUT_SHORT
                                        : HET_EXIT_BAD_INPUT;
}

int het_command_fail(const struct het_command *command, const struct het_error *err)
{
    fprintf(stderr, "hetplan %s: %s\n", command->name, err->message);
    return exit_code(err);
}

/* Whether all that was printed has arrived. */
static bool printed(const struct het_command *command)
{
    if (!fflush(stdout) && !ferror(stdout))
        return true;
    fprintf(stderr, "hetplan %s: standard output: %s\n", command->name, strerror(errno));
    return false;
}

int het_command_finish(const struct het_command *command, int code)
{
    return printed(command) ? code : HET_EXIT_BAD_INPUT;
}

void het_command_print(const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    puts(text);
}

/* ---- questions ---- */

int het_command_read(const struct het_command *command, const struct het_options *options,
                     struct het_arena *arena, struct het_question *ret,
                     struct het_error *err)
{
    json_auto_t *document = NULL;
    if (het_options_need(command->bit, options, err) < 0 ||
        het_question_document_build(options, &document, err) < 0)
        return -1;
    return het_question_read(arena, document, ret, err);
}

void het_asked_fini(struct het_asked *asked)
{
    het_planner_free(asked->planner);
    xfree(asked->plan);
}

char *het_command_line(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
}

int het_asked_fail(const struct het_command *command, const struct het_planner *planner)
{
    fprintf(stderr, "hetplan %s: %s\n", command->name, het_planner_message(planner));
    enum het_status status = het_planner_status(planner);
    return status == HET_STATUS_OUT_OF_MEMORY ? HET_EXIT_OUT_OF_MEMORY : (int)status;
}

struct het_planner *het_asked_planner(const struct het_options *options)
{
    const json_t *width = json_object_get(options->values, "width");
    struct het_planner *planner = het_planner_new();
    if (!planner)
        exit(HET_EXIT_OUT_OF_MEMORY);
    het_planner_set_width(planner,
                          width ? (int)json_integer_value(width) : terminal_width(),
                          terminal_is_utf8());
    return planner;
}

int het_command_read_plan(const struct het_command *command,
                          const struct het_options *options, char **ret,
                          struct het_error *err)
{
    json_auto_t *json = NULL;
    if (!options->operand)
        return het_fail(err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (het_options_need(command->bit, options, err) < 0 ||
        het_read_file(options->operand, &json, err) < 0)
        return -1;
    *ret = het_command_line(json);
    return 0;
}

int het_command_ask(const struct het_command *command, const struct het_options *options,
                    bool takes_plan, struct het_asked *ret)
{
    struct het_error err;
    json_auto_t *document = NULL;
    *ret = (struct het_asked){ .form = het_command_wants_table(options) ? HET_FORM_TEXT
                                                                        : HET_FORM_JSON };
    if ((takes_plan && het_command_read_plan(command, options, &ret->plan, &err) < 0) ||
        het_options_need(command->bit, options, &err) < 0 ||
        het_question_document_build(options, &document, &err) < 0)
        return het_command_fail(command, &err);
    auto_free char *question = het_command_line(document);
    ret->planner = het_asked_planner(options);
    het_planner_set(ret->planner, "question", question);
    return HET_EXIT_DONE;
}

int het_command_tell(const struct het_command *command, const struct het_asked *asked,
                     const char *answer)
{
    if (!answer)
        return het_asked_fail(command, asked->planner);
    printf(asked->form == HET_FORM_JSON ? "%s\n" : "%s", answer);
    return het_command_finish(command, (int)het_planner_status(asked->planner));
}
