#include "controller/kubectl/completion.h"

#include "controller/kubectl/session.h"

#include <string.h>

/* ---- what may stand there ---- */

static const struct kube_resource namespaces = { "v1", "namespaces", "Namespace", false };

/* What is being completed: the last word, and all before it. */
struct completing {
    const struct htj_host *host;
    const struct htj_completed *command;
    const char *prefix;
    struct htj_options options; /* of the words before */
};

static void offer(const struct completing *completing, const char *word, const char *what)
{
    if (!strncmp(word, completing->prefix, strlen(completing->prefix)))
        fprintf(completing->host->out, "%s%s%s\n", word, *what ? "\t" : "", what);
}

/* The words of "table json". */
static void offer_each(const struct completing *completing, const char *choices)
{
    while (*choices) {
        size_t length = strcspn(choices, " ");
        auto_free char *word = xasprintf("%.*s", (int)length, choices);
        offer(completing, word, "");
        choices += length + strspn(choices + length, " ");
    }
}

static bool is_among(const struct htj_options *options, const char *name)
{
    for (size_t i = 0; i < options->word_count; i++)
        if (!strcmp(options->words[i], name))
            return true;
    return false;
}

/* Names of all objects; of jobs with where they stand. */
static void offer_objects(const struct completing *completing,
                          const struct kube_resource *resource)
{
    struct session session;
    struct het_error err;
    json_auto_t *objects = NULL;
    if (session_init(&session, completing->host, &completing->options, &err) < 0)
        return;
    blocking_client_list(session.client, resource, resource->namespaced ? session.ns : "",
                         "", NULL, &objects, &err);
    for (size_t i = 0; i < json_array_size(objects); i++) {
        const json_t *object = json_array_get(objects, i);
        if (!is_among(&completing->options, kube_name(object)))
            offer(completing, kube_name(object),
                  object_text(object, "status.plan.summary"));
    }
    session_fini(&session);
}

static void offer_hash(const struct completing *completing)
{
    struct session session;
    struct het_error err;
    json_auto_t *job = NULL;
    if (session_init(&session, completing->host, &completing->options, &err) < 0)
        return;
    if (session_get_job(&session, completing->options.words[0], &job, &err) == 0 &&
        *object_text(job, "status.candidate.hash"))
        offer(completing, object_text(job, "status.candidate.hash"),
              object_text(job, "status.candidate.summary"));
    session_fini(&session);
}

/* True if it may be a file as well. */
static bool offer_value(const struct completing *completing, enum htj_value value)
{
    switch (value) {
    case HTJ_NAMESPACE:
        offer_objects(completing, &namespaces);
        break;
    case HTJ_OUTPUT:
        offer_each(completing, completing->command->outputs);
        break;
    case HTJ_FILE:
        return true;
    case HTJ_TEXT:
    case HTJ_NO_VALUE:
        break;
    }
    return false;
}

/* True if it may be a file as well. */
static bool offer_operand(const struct completing *completing)
{
    size_t before = completing->options.word_count;
    switch (completing->command->operand) {
    case HTJ_SHELL:
        for (size_t i = 0; !before && het_shells[i]; i++)
            offer(completing, het_shells[i], "");
        break;
    case HTJ_JOB_AND_HASH:
        if (before == 1)
            offer_hash(completing);
        if (before)
            break;
        offer_objects(completing, &kube_job);
        break;
    case HTJ_JOB:
    case HTJ_JOB_OR_FILE:
        if (before)
            break;
        offer_objects(completing, &kube_job);
        return completing->command->operand == HTJ_JOB_OR_FILE;
    case HTJ_JOBS:
        offer_objects(completing, &kube_job);
        break;
    }
    return false;
}

static const struct htj_completed *find(const struct htj_completed *commands,
                                        size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

void htj_complete(const struct htj_host *host, const struct htj_completed *commands,
                  size_t command_count, int count, char *const *words)
{
    struct completing completing = { .host = host,
                                     .prefix = count ? words[count - 1] : "" };
    bool takes_file = false;
    if (count > 1)
        completing.command = find(commands, command_count, words[0]);
    if (count <= 1) {
        for (size_t i = 0; i < command_count; i++)
            offer(&completing, commands[i].name, commands[i].summary);
    } else if (completing.command) {
        const struct htj_completed *command = completing.command;
        enum htj_value value =
            count > 2 ? htj_options_value(command->bit, words[count - 2]) : HTJ_NO_VALUE;
        struct het_error err;
        htj_options_parse(command->bit, command->outputs,
                          count - 2 - (value != HTJ_NO_VALUE), words + 1,
                          &completing.options, &err);
        if (value != HTJ_NO_VALUE)
            takes_file = offer_value(&completing, value);
        else if (completing.prefix[0] == '-')
            htj_options_complete(command->bit, completing.prefix, host->out);
        else
            takes_file = offer_operand(&completing);
    }
    fputs(takes_file ? ":0\n" : ":4\n", host->out);
}
