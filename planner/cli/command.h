/* command.h - what a command of hetplan is, and what all of them need: the question out of
 * the options, and an end with an exit status. A command stands in its cmd_*.c. */
#ifndef HET_CLI_COMMAND_H
#define HET_CLI_COMMAND_H

#include "planner/cli/options.h"
#include "planner/format/document/question.h"
#include "planner/render/people/table.h"

/* Exit statuses. */
enum {
    HET_EXIT_DONE = 0,
    HET_EXIT_NO_PLAN = 1,
    HET_EXIT_BAD_INPUT = 2,
    HET_EXIT_CUT_SHORT = 3
};

struct het_command {
    const char *name;
    enum het_command_bit bit;
    const char *synopsis, *summary, *description, *output, *exit_status, *examples;
    int (*run)(const struct het_command *command, const struct het_options *options);
};

extern const struct het_command het_command_plan, het_command_cost, het_command_check,
    het_command_simulate, het_command_diff, het_command_explain, het_command_compare,
    het_command_render, het_command_from_config, het_command_from_metis,
    het_command_from_sailor, het_command_from_timers;

/* The question that the options ask; about `plan`, or NULL. */
int het_command_read(const struct het_command *command, const struct het_options *options,
                     const json_t *plan, struct het_arena *arena,
                     struct het_question *ret, struct het_error *err);
/* The same about the plan of the operand, a new reference even where the rest fails. */
int het_command_read_plan(const struct het_command *command,
                          const struct het_options *options, struct het_arena *arena,
                          json_t **ret_plan, struct het_question *ret,
                          struct het_error *err);

/* Columns of the terminal or $COLUMNS, within bounds; what the locale can show. */
int het_terminal_width(void);
enum het_charset het_terminal_charset(void);
/* As --output says; otherwise on a terminal only. */
bool het_command_wants_table(const struct het_options *options);

/* The number of member `key`; 0 if there is none. */
double het_command_number(const json_t *object, const char *key);
/* Canonical text and a newline, to standard output. */
void het_command_print(const json_t *json);
int het_command_exit_code(const struct het_error *err);
/* Says on standard error what went wrong; the exit status for it. */
int het_command_fail(const struct het_command *command, const struct het_error *err);
/* `code`, if all that was printed has arrived. */
int het_command_finish(const struct het_command *command, int code);

#endif
