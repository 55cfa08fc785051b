#include "planner/cli/command.h"

#include "planner/cli/question_document.h"
#include "planner/format/document/read_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- question ---- */

int het_command_read(const struct het_command *command, const struct het_options *options,
                     const json_t *plan, struct het_arena *arena,
                     struct het_question *ret, struct het_error *err)
{
    json_auto_t *document = NULL;
    if (het_options_need(command->bit, options, err) < 0 ||
        het_document_build(options, plan, &document, err) < 0)
        return -1;
    return het_question_read(arena, document, ret, err);
}

int het_command_read_plan(const struct het_command *command,
                          const struct het_options *options, struct het_arena *arena,
                          json_t **ret_plan, struct het_question *ret,
                          struct het_error *err)
{
    if (!options->operand)
        return het_fail(err, HET_BAD_INPUT, "PLAN.json is missing; see --help");
    if (het_options_need(command->bit, options, err) < 0 ||
        het_input_read(options->operand, ret_plan, err) < 0)
        return -1;
    return het_command_read(command, options, *ret_plan, arena, ret, err);
}

/* ---- terminal ---- */

#define WIDTH_DEFAULT 100
#define WIDTH_LEAST   70
#define WIDTH_MOST    160

int het_terminal_width(void)
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

enum het_charset het_terminal_charset(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8") ? HET_UTF8
                                                                           : HET_ASCII;
    }
    return HET_ASCII;
}

bool het_command_wants_table(const struct het_options *options)
{
    const char *output = het_options_text(options, "output");
    return output ? !strcmp(output, "table") : isatty(STDOUT_FILENO);
}

int het_command_exit_code(const struct het_error *err)
{
    return err->code == HET_NO_PLAN     ? HET_EXIT_NO_PLAN
           : err->code == HET_CUT_SHORT ? HET_EXIT_CUT_SHORT
                                        : HET_EXIT_BAD_INPUT;
}

int het_command_fail(const struct het_command *command, const struct het_error *err)
{
    fprintf(stderr, "hetplan %s: %s\n", command->name, err->message);
    return het_command_exit_code(err);
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

double het_command_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void het_command_print(const json_t *json)
{
    auto_free char *text = het_json_canonical(json);
    puts(text);
}
