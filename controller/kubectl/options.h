/* options.h - the options of kubectl-htj: one table for reading them, for --help and
 * for completion. Written as kubectl's: --name VALUE, --name=VALUE, -n VALUE, -nVALUE,
 * before, between and behind other words; "--" ends them. */
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

/* An option that is kubectl's to understand: which server, and who we are there. */
struct htj_login {
    const char *name, *value; /* "context", "research" */
};

struct htj_options {
    struct htj_login login[HTJ_MAX_LOGIN];
    size_t login_count;
    const char *ns, *output, *file, *config, *config_map, *hardware, *hardware_map;
    int64_t generation; /* 0: the newest */
    bool is_candidate, is_quick, is_svg, is_help;
    const char *words[HTJ_MAX_WORDS]; /* what is no option */
    size_t word_count;
};

/* `outputs`: what -o may be, "table json"; its first word is the default. Everything is
 * borrowed from `arguments`. Errors: HET_BAD_INPUT. */
int htj_options_parse(unsigned command, const char *outputs, int count,
                      char *const *arguments, struct htj_options *ret,
                      struct het_error *err);
/* The options of a command, a paragraph each, at most 80 columns. */
void htj_options_print_help(unsigned command, const char *outputs, FILE *out);

/* What the value of an option is, for completion. */
enum htj_value { HTJ_NO_VALUE, HTJ_TEXT, HTJ_FILE, HTJ_NAMESPACE, HTJ_OUTPUT };
/* Of the option that `word` is ("-n", "--namespace"); HTJ_NO_VALUE: it takes none, or is
 * not an option of the command, or has its value with it. */
enum htj_value htj_options_value(unsigned command, const char *word);
/* Those that begin with `prefix`, a line each with its help behind a tab. */
void htj_options_complete(unsigned command, const char *prefix, FILE *out);

#endif
