/* command.h - what a command of hetplan is, and what all commands share: building the
 * question from the options, and ending with an exit status. Each command is in its
 * cmd_*.c. */
#ifndef HET_CLI_COMMAND_H
#define HET_CLI_COMMAND_H

#include "planner/cli/options.h"
#include "planner/format/document/question.h"
#include "planner/hetplan.h"

/* Exit statuses. */
enum {
    HET_EXIT_DONE = 0,
    HET_EXIT_NO_PLAN = 1,
    HET_EXIT_BAD_INPUT = 2,
    HET_EXIT_CUT_SHORT = 3,
    HET_EXIT_OUT_OF_MEMORY = 70
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

/* The question that the options ask, for what the library (hetplan.h) has no call for. */
int het_command_read(const struct het_command *command, const struct het_options *options,
                     struct het_arena *arena, struct het_question *ret,
                     struct het_error *err);

/* A question for the library, and how its answer is printed. */
struct het_asked {
    struct het_planner *planner; /* NULL: none yet */
    char *plan;                  /* the text of the operand; NULL: none */
    enum het_form form;
};
void het_asked_fini(struct het_asked *asked);
/* A planner set up for this terminal, without a question yet. */
struct het_planner *het_asked_planner(const struct het_options *options);
/* The plan of the operand as text, to be freed. Errors: HET_BAD_INPUT, also where the
 * operand or an option that the command needs is missing. */
int het_command_read_plan(const struct het_command *command,
                          const struct het_options *options, char **ret,
                          struct het_error *err);
/* Reads the files of the options, and the plan of the operand if the command takes one.
 * Returns the exit status, after saying what is wrong. */
int het_command_ask(const struct het_command *command, const struct het_options *options,
                    bool takes_plan, struct het_asked *ret);
/* Prints the answer, or why there is none; the exit status. */
int het_command_tell(const struct het_command *command, const struct het_asked *asked,
                     const char *answer);
int het_asked_fail(const struct het_command *command, const struct het_planner *planner);

/* As --output says; otherwise on a terminal only. */
bool het_command_wants_table(const struct het_options *options);

/* JSON as one line, to be freed. */
char *het_command_line(const json_t *json);
/* Canonical text and a newline, to standard output. */
void het_command_print(const json_t *json);
/* Says on standard error what went wrong; the exit status for it. */
int het_command_fail(const struct het_command *command, const struct het_error *err);
/* `code`, if all output was written. */
int het_command_finish(const struct het_command *command, int code);

#endif
