/* options.h - the options of the command line. One table says of each its name, the
 * commands that take it, its range, its default, where its value goes and what it means;
 * parsing, checking and the help text come from it. */
#ifndef HET_CLI_OPTIONS_H
#define HET_CLI_OPTIONS_H

#include "planner/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum het_command_bit {
    HET_COMMAND_PLAN = 1,
    HET_COMMAND_COST = 2,
    HET_COMMAND_CHECK = 4,
    HET_COMMAND_RENDER = 8,
    HET_COMMAND_DIFF = 32,
    HET_COMMAND_EXPLAIN = 64,
    HET_COMMAND_COMPARE = 128,
    HET_COMMAND_SIMULATE = 256,
    HET_COMMAND_FROM_CONFIG = 512,
    HET_COMMAND_FROM_METIS = 1024,
    HET_COMMAND_FROM_SAILOR = 2048,
    HET_COMMAND_FROM_TIMERS = 4096
};

struct het_options {
    /* By the paths of the table: { "profile": FILE, "output": "json", "job": { ... } };
     * what was not given is not there. The caller owns the reference. */
    json_t *values;
    const char *operand; /* the argument that is no option, or NULL; borrowed from argv.
                            Of a command that takes several the first; "operands" of
                            values has all of them. */
    bool help;
};

/* Reads the `count` arguments behind the command's name. "--name VALUE" and
 * "--name=VALUE" are the same; "--" ends the options. Errors: HET_BAD_INPUT names the
 * option and its range. Whether what a command needs is there is asked by
 * het_options_need. */
int het_options_parse(enum het_command_bit command, int count, char *const *arguments,
                      struct het_options *ret, struct het_error *err);

/* Fails if an option that `command` cannot do without is missing. */
int het_options_need(enum het_command_bit command, const struct het_options *options,
                     struct het_error *err);

/* Text at a key of `values`; NULL if it was not given. */
const char *het_options_text(const struct het_options *options, const char *key);

/* The options of `command` with ranges and defaults, for its help. */
void het_options_print(FILE *out, enum het_command_bit command);

/* What may stand where `prefix` begins, for completion (shell_completion.h), behind the
 * word `before`: a value of that option, or an option of `command`. True if it may be a
 * file as well. */
bool het_options_complete(FILE *out, enum het_command_bit command, const char *before,
                          const char *prefix);

/* Prints `text` in lines of at most 79 columns, each after `indent` blanks. A newline in
 * the text ends a paragraph. */
void het_options_wrap(FILE *out, int indent, const char *text);

#endif
