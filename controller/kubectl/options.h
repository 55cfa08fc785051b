/* options.h - the options of kubectl-htj: one table for reading them, for --help and for
 * completion. Written as for kubectl: --name VALUE, --name=VALUE, -n VALUE, -nVALUE,
 * before, between and after other words; "--" ends them. */
#ifndef CONTROLLER_KUBECTL_OPTIONS_H
#define CONTROLLER_KUBECTL_OPTIONS_H

#include "planner/modules.h"

#include <stdbool.h>
#include <stdio.h>

/* The commands that have an option. */
enum htj_command_bit {
    HTJ_PLAN = 1,
    HTJ_EXPLAIN = 2,
    HTJ_TIMELINE = 4,
    HTJ_HISTORY = 8,
    HTJ_STATUS = 16,
    HTJ_APPROVE = 32,
    HTJ_SUSPEND = 64,
    HTJ_RESUME = 128,
    HTJ_COMPLETION = 256,
};

#define HTJ_MAX_WORDS 16
#define HTJ_MAX_LOGIN 16

/* An option passed on to kubectl: which server, and which credentials. */
struct htj_login {
    const char *name, *value; /* "context", "research" */
};

struct htj_options {
    struct htj_login login[HTJ_MAX_LOGIN];
    size_t login_count;
    const char *ns, *output, *file, *config, *config_map, *hardware, *hardware_map;
    int64_t generation; /* 0: the newest */
    bool is_candidate, is_quick, is_svg, is_help;
    const char *words[HTJ_MAX_WORDS]; /* words that are not options */
    size_t word_count;
};

/* `outputs`: the values of -o, "table json"; the first word is the default. Everything is
 * borrowed from `arguments`. Errors: HET_BAD_INPUT. */
int htj_options_parse(unsigned command, const char *outputs, int count,
                      char *const *arguments, struct htj_options *ret,
                      struct het_error *err);
/* The options of a command, a paragraph each, at most 80 columns. */
void htj_options_print_help(unsigned command, const char *outputs, FILE *out);

/* The kind of an option's value, for completion. */
enum htj_value { HTJ_NO_VALUE, HTJ_TEXT, HTJ_FILE, HTJ_NAMESPACE, HTJ_OUTPUT };
/* The kind of value of the option `word` ("-n", "--namespace"); HTJ_NO_VALUE: it takes
 * none, is not an option of the command, or includes its value. */
enum htj_value htj_options_value(unsigned command, const char *word);
/* Prints the options that begin with `prefix`, a line each, with its help after a tab. */
void htj_options_complete(unsigned command, const char *prefix, FILE *out);

#endif
