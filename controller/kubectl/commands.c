#include "controller/kubectl/commands.h"

#include "controller/kubectl/change_commands.h"
#include "controller/kubectl/completion.h"
#include "controller/kubectl/history_command.h"
#include "controller/kubectl/plan_commands.h"
#include "controller/kubectl/status_command.h"

#include <errno.h>
#include <string.h>

static int run_completion(struct session *session, struct het_error *err)
{
    const char *shell;
    if (session_get_name(session, 1, &shell, err) < 0)
        return -1;
    return het_shell_completion(shell, "kubectl-htj", session->host->out, err);
}

static const struct command {
    struct htj_completed is; /* name, summary, outputs, bit, operand */
    const char *synopsis, *text;
    int (*run)(struct session *session, struct het_error *err);
} commands[] = {
    { { "status", "where a job stands", "text json", HTJ_STATUS, HTJ_JOB },
      "JOB",
      "Shows the job's plan and what is predicted of it, its GPUs and pods, its\n"
      "conditions with their reasons, and the plan that waits for approval, if one\n"
      "does. With -o json it is the job's status as it is.\n",
      htj_status },
    { { "plan", "what plan a job would get now", "table json", HTJ_PLAN,
        HTJ_JOB_OR_FILE },
      "JOB | -f FILE",
      "Asks the planner what the controller would ask it about the job, on the GPUs\n"
      "that are free now (those that the job has count as free), and prints the plan.\n"
      "Nothing is written. JOB is a job of the cluster; what has a dot or a slash in it\n"
      "is a file, as with -f. With -o json the plan is one line, as hetplan prints it.\n",
      htj_plan },
    { { "explain", "why a job's plan is as it is", "text json", HTJ_EXPLAIN, HTJ_JOB },
      "JOB",
      "Says what bounds a step of the plan, for each cut what a layer more or less\n"
      "would do, and what each freedom of plans and more GPUs of each type would bring.\n"
      "The plan is read from its ConfigMap and priced with the job's profile as it is\n"
      "now. Without the right to list nodes and pods only the plan's own GPUs count.\n",
      htj_explain },
    { { "timeline", "when each stage works and waits", "text svg trace", HTJ_TIMELINE,
        HTJ_JOB },
      "JOB",
      "Draws one iteration of the plan, simulated task by task: as text, as a picture\n"
      "(SVG), or as a trace for chrome://tracing and https://ui.perfetto.dev.\n",
      htj_timeline },
    { { "history", "what was decided, and why", "text json", HTJ_HISTORY, HTJ_JOB },
      "JOB",
      "Lists the plans of the job by revision, with the change that led to each and\n"
      "the one that ended it; the last plan that was weighed against the one that runs;\n"
      "and events. The last three plans are kept, and the API server keeps events for\n"
      "an hour unless it is told otherwise.\n",
      htj_history },
    { { "approve", "carry out the plan that waits for approval", "", HTJ_APPROVE,
        HTJ_JOB_AND_HASH },
      "JOB [HASH]",
      "Approves the plan that a job with replanPolicy.mode Manual shows: sets\n"
      "spec.replanPolicy.approvedPlanHash to its hash, if the job still shows that\n"
      "plan when it is written. With HASH (whole, or its first 8 digits or more) only\n"
      "the plan of that hash is approved; status shows it.\n",
      htj_approve },
    { { "suspend", "stop jobs and free their GPUs", "", HTJ_SUSPEND, HTJ_JOBS },
      "JOB...",
      "Sets spec.suspend: the program is asked for a checkpoint, then its pods are\n"
      "deleted and its GPUs are free.\n",
      htj_suspend },
    { { "resume", "let suspended jobs run", "", HTJ_RESUME, HTJ_JOBS },
      "JOB...",
      "Unsets spec.suspend: the job runs again, on a new plan.\n",
      htj_resume },
    { { "completion", "what a shell reads to complete commands", "", HTJ_COMPLETION,
        HTJ_SHELL },
      "bash | zsh | fish",
      "Prints what makes a shell complete the words of kubectl-htj:\n"
      "  source <(kubectl-htj completion bash)\n"
      "kubectl completes `kubectl htj` by itself where kubectl_complete-htj is in PATH.\n",
      run_completion },
};
#define COMMANDS (sizeof commands / sizeof *commands)

static const char exit_status[] =
    "Exit status: 0 done; 1 no plan: none fits, there is none yet, or none waits for\n"
    "approval; 2 a wrong option or file, no such job, or no kubectl; 3 the API server\n"
    "refuses, or cannot be reached.\n";

static void print_usage(FILE *out)
{
    fputs("Usage: kubectl htj COMMAND [OPTION]...\n\n"
          "Looks at HeteroTrainingJobs and their plans: those that are, and those that\n"
          "would be.\n\nCommands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s  %s\n", commands[i].is.name, commands[i].is.summary);
    fputs("\n\"kubectl htj COMMAND --help\" explains a command.\n", out);
}

static void print_help(const struct command *command, FILE *out)
{
    fprintf(out, "Usage: kubectl htj %s %s%s\n\n%s\nOptions:\n", command->is.name,
            command->synopsis, command->is.bit == HTJ_COMPLETION ? "" : " [OPTION]...",
            command->text);
    htj_options_print_help(command->is.bit, command->is.outputs, out);
    fprintf(out, "\n%s", exit_status);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].is.name, name))
            return &commands[i];
    return NULL;
}

static int exit_code(enum het_error_code code)
{
    switch (code) {
    case HET_OK:
        return HTJ_EXIT_DONE;
    case HET_NO_PLAN:
    case HET_CUT_SHORT:
    case HET_CONFLICT: /* the plan that waits is another one */
        return HTJ_EXIT_NO_PLAN;
    case HET_BAD_INPUT:
    case HET_NO_PROFILE:
    case HET_NOT_FOUND:
        return HTJ_EXIT_BAD_INPUT;
    case HET_IO:
    case HET_DENIED:
        return HTJ_EXIT_SERVER;
    }
    return HTJ_EXIT_SERVER;
}

static int run(const struct command *command, const struct htj_options *options,
               const struct htj_host *host, struct het_error *err)
{
    struct session session = { .host = host, .options = options };
    if (command->is.bit == HTJ_COMPLETION)
        return command->run(&session, err);
    if (session_init(&session, host, options, err) < 0)
        return -1;
    int result = command->run(&session, err);
    session_fini(&session);
    return result;
}

/* Whether all that was printed has arrived. */
static int finish(const struct htj_host *host, const char *name, int code)
{
    if (!fflush(host->out) && !ferror(host->out))
        return code;
    fprintf(host->err, "kubectl htj %s: standard output: %s\n", name, strerror(errno));
    return HTJ_EXIT_BAD_INPUT;
}

static int run_command(const struct command *command, int count, char *const *words,
                       const struct htj_host *host)
{
    struct htj_options options = { 0 };
    struct het_error err = { 0 };
    int result = htj_options_parse(command->is.bit, command->is.outputs, count, words,
                                   &options, &err);
    if (!result && options.is_help)
        print_help(command, host->out);
    else if (!result)
        result = run(command, &options, host, &err);
    if (result < 0)
        fprintf(host->err, "kubectl htj %s: %s\n", command->is.name, err.message);
    return finish(host, command->is.name, result < 0 ? exit_code(err.code) : 0);
}

static int complete(const struct htj_host *host, int count, char *const *words)
{
    struct htj_completed completed[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        completed[i] = commands[i].is;
    htj_complete(host, completed, COMMANDS, count, words);
    return finish(host, "__complete", HTJ_EXIT_DONE);
}

int htj_main(int argc, char **argv, const struct htj_host *host)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = argc > 1 ? argv[1] : "";
    if (!strcmp(slash ? slash + 1 : argv[0], "kubectl_complete-htj"))
        return complete(host, argc - 1, argv + 1);
    if (!strcmp(name, "__complete"))
        return complete(host, argc - 2, argv + 2);
    const struct command *command = find_command(name);
    if (command)
        return run_command(command, argc - 2, argv + 2, host);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command)
            print_help(command, host->out);
        else
            print_usage(host->out);
        return finish(host, name, HTJ_EXIT_DONE);
    }
    if (*name)
        fprintf(host->err, "kubectl htj: no command \"%.60s\"\n\n", name);
    print_usage(host->err);
    return HTJ_EXIT_BAD_INPUT;
}
