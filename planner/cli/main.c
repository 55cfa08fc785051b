/* hetplan - searches, prices and checks parallelism plans on clusters of unequal GPUs.
 * Files in, JSON or text out. */
#include "planner/cli/command.h"
#include "planner/run/run_all.h"
#include "planner/shell_completion.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct het_command *const commands[] = {
    &het_command_plan,       &het_command_cost,        &het_command_check,
    &het_command_simulate,   &het_command_diff,        &het_command_explain,
    &het_command_compare,    &het_command_render,      &het_command_from_config,
    &het_command_from_metis, &het_command_from_sailor, &het_command_from_timers,
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* ---- help ---- */

static void print_section(const char *title, const char *text)
{
    printf("\n%s\n", title);
    het_options_wrap(stdout, 2, text);
}

/* Text whose lines stay as they are. */
static void print_lines(const char *title, const char *text)
{
    printf("\n%s\n", title);
    while (*text) {
        int length = (int)strcspn(text, "\n");
        printf("  %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static void print_algorithms(void)
{
    puts("\nALGORITHMS");
    for (const struct het_algorithm *const *a = het_search_algorithms(); *a; a++) {
        printf("  %s\n", (*a)->name);
        auto_free char *text = xasprintf("%s. %s.", (*a)->summary, (*a)->source);
        het_options_wrap(stdout, 6, text);
    }
}

static void print_files(void)
{
    print_section(
        "FILES",
        "A cluster in the short form: { \"nodes\": [ { \"name\": \"a100\", \"type\": "
        "\"A100\", \"gpus\": 4, \"memory_gb\": 40, \"intra_gb_s\": 240, \"inter_gb_s\": 3, "
        "\"repeat\": 8 }, ... ] }. memory_gb is GiB of one GPU; bandwidths are GB/s each "
        "way: between the GPUs of the node, and the node's uplink, shared by all that "
        "leaves it. All but type and gpus may be left out where the hardware table knows "
        "the type. Also: inter_flow_gb_s, latency_us, workspace_gb, profile.\n\n"
        "A hardware file: { \"gpuTypes\": [ { \"name\": \"A100-SXM4-40GB\", \"aliases\": "
        "[...], \"profile\": \"A100\", \"memoryGiB\": 40, \"intraGBs\": 240, \"interGBs\": "
        "3, \"workspaceGiB\": 4, \"pricePerHour\": \"3.67\" } ] }.\n\n"
        "Files may be YAML or JSON. docs/planner.md has the formats of all files and the "
        "cost model.");
}

static void print_help(const struct het_command *command)
{
    printf("NAME\n  hetplan %s - %s\n", command->name, command->summary);
    print_lines("SYNOPSIS", command->synopsis);
    print_section("DESCRIPTION", command->description);
    puts("\nOPTIONS");
    het_options_print(stdout, command->bit);
    if (command->bit == HET_COMMAND_PLAN)
        print_algorithms();
    print_files();
    print_section("OUTPUT", command->output);
    print_lines("EXIT STATUS", command->exit_status);
    print_lines("EXAMPLES", command->examples);
}

static void print_usage(FILE *out)
{
    fputs("Usage: hetplan COMMAND [OPTION]...\n\n"
          "Plans the training of a model on a cluster of unequal GPUs.\n\nCommands:\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-28s  %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n\"hetplan COMMAND --help\" explains a command. \"hetplan completion SHELL\" is what\n"
        "bash, zsh or fish reads to complete commands.\n",
        out);
}

/* The command that the words begin with, one of them or two ("profile from-metis"), and
 * how many those are. */
static const struct het_command *find_command(int count, char *const *words,
                                              int *ret_word_count)
{
    auto_free char *pair =
        xasprintf("%s %s", count > 0 ? words[0] : "", count > 1 ? words[1] : "");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        bool is_pair = !strcmp(commands[i]->name, pair);
        if (is_pair || (count > 0 && !strcmp(commands[i]->name, words[0]))) {
            *ret_word_count = is_pair ? 2 : 1;
            return commands[i];
        }
    }
    return NULL;
}

/* ---- completion ---- */

/* The commands that may stand there, of "profile ..." the second word. */
static void complete_command(int count, char *const *words)
{
    const char *prefix = words[count - 1];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const char *name = commands[i]->name, *blank = strchr(name, ' ');
        size_t first = blank ? (size_t)(blank - name) : strlen(name);
        if (count == 2 && blank && strlen(words[0]) == first &&
            !strncmp(name, words[0], first))
            name = blank + 1;
        else if (count > 1)
            continue;
        if (!strncmp(name, prefix, strlen(prefix)))
            printf("%.*s\t%s\n", count > 1 ? (int)strlen(name) : (int)first, name,
                   commands[i]->summary);
    }
}

static int complete(int count, char *const *words)
{
    int used = 0;
    const struct het_command *command = find_command(count - 1, words, &used);
    bool takes_file = false;
    if (command)
        takes_file = het_options_complete(stdout, command->bit, words[count - 2],
                                          words[count - 1]);
    else if (count)
        complete_command(count, words);
    puts(takes_file ? ":0" : ":4");
    return HET_EXIT_DONE;
}

static int print_completion(const char *shell)
{
    struct het_error err;
    if (het_shell_completion(shell, "hetplan", stdout, &err) == 0)
        return fflush(stdout) ? HET_EXIT_BAD_INPUT : HET_EXIT_DONE;
    fprintf(stderr, "hetplan completion: %s\n", err.message);
    return HET_EXIT_BAD_INPUT;
}

static int run_command(const struct het_command *command, int count,
                       char *const *arguments)
{
    struct het_options options = { 0 };
    struct het_error err;
    if (het_options_parse(command->bit, count, arguments, &options, &err) < 0)
        return het_command_fail(command, &err);
    int code = HET_EXIT_DONE;
    if (options.help) {
        print_help(command);
        code = het_command_finish(command, HET_EXIT_DONE);
    } else {
        code = command->run(command, &options);
    }
    json_decref(options.values);
    return code;
}

/* Whether `plan` is asked about a live cluster, which kubectl-htj knows. */
static bool is_about_live_cluster(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "--kubeconfig") ||
            !strncmp(argv[i], "--kubeconfig=", strlen("--kubeconfig=")))
            return argc > 2 && !strcmp(argv[1], "plan");
    return false;
}

/* Becomes `kubectl-htj plan` with the same options: there a job is no option, and a table
 * is the rule. */
static int plan_for_live_cluster(int argc, char **argv)
{
    char path[PATH_MAX], as_json[] = "--output=json";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(path, '/');
    auto_free char *program =
        xasprintf("%.*s/kubectl-htj", slash ? (int)(slash - path) : 0, path);
    auto_free char **words = xcalloc((size_t)argc + 3, sizeof *words);
    int count = 0;
    bool has_output = isatty(STDOUT_FILENO);
    words[count++] = program;
    for (int i = 1; i < argc; i++) {
        bool has_value = !strncmp(argv[i], "--job=", strlen("--job="));
        has_output = has_output || !strncmp(argv[i], "--output", strlen("--output"));
        if (strcmp(argv[i], "--job") != 0)
            words[count++] = has_value ? argv[i] + strlen("--job=") : argv[i];
    }
    if (!has_output)
        words[count++] = as_json;
    execv(program, words);
    fprintf(stderr, "hetplan plan: --kubeconfig needs %s: %s\n", program,
            strerror(errno));
    return HET_EXIT_BAD_INPUT;
}

int main(int argc, char **argv)
{
    json_set_alloc_funcs(xmalloc, xfree);
    /* A reader that went away is a failed write, to be reported like any other. */
    signal(SIGPIPE, SIG_IGN);
    if (is_about_live_cluster(argc, argv))
        return plan_for_live_cluster(argc, argv);
    const char *name = argc > 1 ? argv[1] : "";
    int words = 0;
    const struct het_command *command = find_command(argc - 1, argv + 1, &words);
    if (command)
        return run_command(command, argc - 1 - words, argv + 1 + words);
    if (!strcmp(name, "__complete"))
        return complete(argc - 2, argv + 2);
    if (!strcmp(name, "completion"))
        return print_completion(argc > 2 ? argv[2] : "");
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        command = find_command(argc - 2, argv + 2, &words);
        if (command)
            print_help(command);
        else
            print_usage(stdout);
        return fflush(stdout) ? HET_EXIT_BAD_INPUT : HET_EXIT_DONE;
    }
    if (*name)
        fprintf(stderr, "hetplan: no command \"%.60s\"\n\n", name);
    print_usage(stderr);
    return HET_EXIT_BAD_INPUT;
}
