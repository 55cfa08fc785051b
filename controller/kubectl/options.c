#include "controller/kubectl/options.h"

#include "controller/kubectl/text_table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS  (HTJ_EXPLAIN | HTJ_TIMELINE) /* at a plan that is there */
#define PLANS  (HTJ_PLAN | LOOKS)
#define PRINTS (PLANS | HTJ_HISTORY | HTJ_STATUS)
#define ASKS   (PRINTS | HTJ_APPROVE | HTJ_SUSPEND | HTJ_RESUME)
#define ALL    (ASKS | HTJ_COMPLETION)

#define HELP_INDENT 6
#define HELP_WIDTH  80

enum kind { KIND_FLAG, KIND_TEXT, KIND_NUMBER, KIND_LOGIN };

static const struct option {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* as the help calls it */
    unsigned commands;
    enum kind kind;
    enum htj_value completes;
    size_t member;
    const char *help;
} options[] = {
    { "namespace", 'n', "NAME", ASKS, KIND_TEXT, HTJ_NAMESPACE,
      offsetof(struct htj_options, ns),
      "Namespace of the job. Default: that of the context." },
    { "output", 'o', "FORM", PRINTS, KIND_TEXT, HTJ_OUTPUT,
      offsetof(struct htj_options, output), "What to print" },
    { "filename", 'f', "FILE", HTJ_PLAN, KIND_TEXT, HTJ_FILE,
      offsetof(struct htj_options, file),
      "A HeteroTrainingJob, YAML or JSON, that need not be in the cluster; - is standard "
      "input." },
    { "revision", 0, "N", LOOKS, KIND_NUMBER, HTJ_TEXT,
      offsetof(struct htj_options, generation),
      "The plan of this revision, as history lists them. Default: the newest." },
    { "candidate", 0, NULL, LOOKS, KIND_FLAG, HTJ_NO_VALUE,
      offsetof(struct htj_options, is_candidate),
      "The plan that waits for approval, or that planOnly shows (status.candidate)." },
    { "no-search", 0, NULL, HTJ_EXPLAIN, KIND_FLAG, HTJ_NO_VALUE,
      offsetof(struct htj_options, is_quick),
      "Leave out what each freedom and what more GPUs would bring, for which plans are "
      "searched anew." },
    { "svg", 0, NULL, HTJ_TIMELINE, KIND_FLAG, HTJ_NO_VALUE,
      offsetof(struct htj_options, is_svg), "The same as --output svg." },
    { "hardware", 0, "FILE", PLANS, KIND_TEXT, HTJ_FILE,
      offsetof(struct htj_options, hardware),
      "Hardware settings (bandwidths, memory, names of GPU types) instead of those of "
      "the installation." },
    { "hardware-configmap", 0, "NAMESPACE/NAME", PLANS, KIND_TEXT, HTJ_TEXT,
      offsetof(struct htj_options, hardware_map),
      "The installation's hardware settings: the ConfigMap that the controller was told "
      "of. Default: heterotrain-system/heterotrain-hardware; what is built in where "
      "there is none." },
    { "config", 0, "FILE", PLANS, KIND_TEXT, HTJ_FILE,
      offsetof(struct htj_options, config),
      "Settings for all jobs, as the controller's --config, instead of those of the "
      "installation." },
    { "config-configmap", 0, "NAMESPACE/NAME", PLANS, KIND_TEXT, HTJ_TEXT,
      offsetof(struct htj_options, config_map),
      "The installation's settings: a ConfigMap with the key config.json. Default: "
      "heterotrain-system/heterotrain-config; the controller's defaults where there is "
      "none." },
    { "kubeconfig", 0, "FILE", ASKS, KIND_LOGIN, HTJ_FILE, 0,
      "Kubeconfig file. This and all below are as kubectl's." },
    { "context", 0, "NAME", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "Context of the kubeconfig. Default: its current-context." },
    { "cluster", 0, "NAME", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "Cluster of the kubeconfig. Default: that of the context." },
    { "user", 0, "NAME", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "User of the kubeconfig. Default: that of the context." },
    { "server", 's', "URL", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "The API server, instead of the cluster's." },
    { "token", 0, "TOKEN", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "Bearer token, instead of the user's." },
    { "as", 0, "NAME", ASKS, KIND_LOGIN, HTJ_TEXT, 0, "User to impersonate." },
    { "as-group", 0, "NAME", ASKS, KIND_LOGIN, HTJ_TEXT, 0,
      "Group to impersonate; may be given several times." },
    { "as-uid", 0, "UID", ASKS, KIND_LOGIN, HTJ_TEXT, 0, "UID to impersonate." },
    { "help", 'h', NULL, ALL, KIND_FLAG, HTJ_NO_VALUE,
      offsetof(struct htj_options, is_help), "This text." },
};
#define OPTIONS (sizeof options / sizeof *options)

/* ---- reading ---- */

/* The option that `word` names: --name, --name=value, -n, -nvalue; its value, if it has
 * it with it. NULL: none of the command's. */
static const struct option *find_option(unsigned command, const char *word,
                                        const char **ret_value)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->commands & command))
            continue;
        if (word[1] == '-' && strlen(option->name) == length &&
            !strncmp(option->name, name, length)) {
            *ret_value = name[length] ? name + length + 1 : NULL;
            return option;
        }
        if (word[1] != '-' && option->letter == word[1] && option->letter) {
            *ret_value = word[2] == '=' ? word + 3 : word[2] ? word + 2 : NULL;
            return option;
        }
    }
    return NULL;
}

static int read_number(const struct option *option, const char *text, int64_t *ret,
                       struct het_error *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (!*text || *end || errno || number < 1 || number > INT32_MAX)
        return het_fail(err, HET_BAD_INPUT, "--%s %.60s: must be a number from 1",
                        option->name, text);
    *ret = number;
    return 0;
}

static int add_login(const struct option *option, const char *value,
                     struct htj_options *ret, struct het_error *err)
{
    if (ret->login_count == HTJ_MAX_LOGIN)
        return het_fail(err, HET_BAD_INPUT, "--%s: too many options", option->name);
    ret->login[ret->login_count++] = (struct htj_login){ option->name, value };
    return 0;
}

static int set_option(const struct option *option, const char *value,
                      struct htj_options *ret, struct het_error *err)
{
    void *member = (char *)ret + option->member;
    switch (option->kind) {
    case KIND_FLAG:
        if (value)
            return het_fail(err, HET_BAD_INPUT, "--%s takes no value", option->name);
        *(bool *)member = true;
        break;
    case KIND_TEXT:
        *(const char **)member = value;
        break;
    case KIND_NUMBER:
        return read_number(option, value, member, err);
    case KIND_LOGIN:
        return add_login(option, value, ret, err);
    }
    return 0;
}

static bool is_choice(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = choices; (at = strstr(at, word)); at += length)
        if ((at == choices || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return length > 0;
    return false;
}

static int check_output(const char *outputs, const struct htj_options *options_read,
                        struct het_error *err)
{
    if (options_read->output && !is_choice(outputs, options_read->output))
        return het_fail(err, HET_BAD_INPUT, "--output %.60s: must be one of: %s",
                        options_read->output, outputs);
    return 0;
}

int htj_options_parse(unsigned command, const char *outputs, int count,
                      char *const *arguments, struct htj_options *ret,
                      struct het_error *err)
{
    bool has_ended = false;
    for (int i = 0; i < count; i++) {
        const char *word = arguments[i], *value = NULL;
        if (!has_ended && !strcmp(word, "--")) {
            has_ended = true;
            continue;
        }
        if (has_ended || word[0] != '-' || !word[1]) {
            if (ret->word_count == HTJ_MAX_WORDS)
                return het_fail(err, HET_BAD_INPUT, "too many words");
            ret->words[ret->word_count++] = word;
            continue;
        }
        const struct option *option = find_option(command, word, &value);
        if (!option)
            return het_fail(err, HET_BAD_INPUT, "no option %.60s; see --help", word);
        if (option->kind != KIND_FLAG && !value && ++i == count)
            return het_fail(err, HET_BAD_INPUT, "%.60s: %s is missing", word,
                            option->value);
        if (option->kind != KIND_FLAG && !value)
            value = arguments[i];
        if (set_option(option, value, ret, err) < 0)
            return -1;
    }
    return check_output(outputs, ret, err);
}

/* ---- help ---- */

void htj_options_print_help(unsigned command, const char *outputs, FILE *out)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->commands & command))
            continue;
        fprintf(out, "  ");
        if (option->letter)
            fprintf(out, "-%c, ", option->letter);
        fprintf(out, "--%s%s%s\n", option->name, option->value ? " " : "",
                option->value ? option->value : "");
        auto_free char *text =
            option->completes == HTJ_OUTPUT
                ? xasprintf("%s: one of %s. Default: the first.", option->help, outputs)
                : xstrdup(option->help);
        text_table_print_text(out, "", text, HELP_INDENT, HELP_WIDTH);
    }
}

/* ---- completion ---- */

enum htj_value htj_options_value(unsigned command, const char *word)
{
    const char *value = NULL;
    const struct option *option =
        word[0] == '-' && word[1] ? find_option(command, word, &value) : NULL;
    return option && !value ? option->completes : HTJ_NO_VALUE;
}

void htj_options_complete(unsigned command, const char *prefix, FILE *out)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        auto_free char *name = xasprintf("--%s", option->name);
        if (option->commands & command && !strncmp(name, prefix, strlen(prefix)))
            fprintf(out, "%s\t%.*s\n", name, (int)strcspn(option->help, ".:;("),
                    option->help);
    }
}
