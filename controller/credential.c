#include "controller/credential.h"

#include "controller/object.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 256

static const char *const versions[] = { "client.authentication.k8s.io/v1",
                                        "client.authentication.k8s.io/v1beta1" };

static void free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void credential_fini(struct credential *credential)
{
    free_secret(credential->token);
    free_secret(credential->key_pem);
    free(credential->certificate_pem);
    *credential = (struct credential){ 0 };
}

/* ---- what is run ---- */

/* A command line, its words borrowed; `info` is KUBERNETES_EXEC_INFO. */
struct command {
    char *path, *info;
    const char *words[MAX_WORDS + 2];
    const json_t *environment;
    bool is_interactive;
};

static void command_fini(struct command *command)
{
    free(command->path);
    free(command->info);
}

static int check_version(const json_t *exec, struct het_error *err)
{
    const char *version = object_text(exec, "apiVersion");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(version, versions[i]))
            return 0;
    return het_fail(err, HET_BAD_INPUT, "apiVersion \"%s\": expected %s", version,
                    versions[0]);
}

static char *make_info(const json_t *exec, json_t *cluster, bool is_interactive)
{
    bool wants_cluster = json_is_true(object_at(exec, "provideClusterInfo"));
    json_auto_t *info = json_pack("{s:s, s:s, s:{s:b, s:O*}}", "apiVersion",
                                  object_text(exec, "apiVersion"), "kind",
                                  "ExecCredential", "spec", "interactive", is_interactive,
                                  "cluster", wants_cluster ? cluster : NULL);
    return json_dumps(info, JSON_COMPACT);
}

static int read_command(const json_t *exec, const char *folder, json_t *cluster,
                        struct command *ret, struct het_error *err)
{
    const char *name = object_text(exec, "command");
    const char *mode = object_text(exec, "interactiveMode");
    const json_t *arguments = object_at(exec, "args");
    if (check_version(exec, err) < 0)
        return -1;
    if (!*name)
        return het_fail(err, HET_BAD_INPUT, "command is missing");
    if (json_array_size(arguments) > MAX_WORDS)
        return het_fail(err, HET_BAD_INPUT, "args: more than %d", MAX_WORDS);
    /* As client-go: a path is seen from the kubeconfig, a name is looked for in PATH. */
    bool is_relative = *name != '/' && strchr(name, '/') && *folder;
    ret->path = is_relative ? xasprintf("%s/%s", folder, name) : xstrdup(name);
    ret->is_interactive = strcmp(mode, "Never") != 0 && isatty(STDIN_FILENO);
    if (!strcmp(mode, "Always") && !ret->is_interactive)
        return het_fail(err, HET_BAD_INPUT, "%s: needs a terminal", name);
    ret->environment = object_at(exec, "env");
    ret->words[0] = ret->path;
    for (size_t i = 0; i < json_array_size(arguments); i++) {
        ret->words[i + 1] = json_string_value(json_array_get(arguments, i));
        if (!ret->words[i + 1])
            return het_fail(err, HET_BAD_INPUT, "args[%zu]: expected a string", i);
    }
    ret->info = make_info(exec, cluster, ret->is_interactive);
    return 0;
}

/* In the child: becomes the program, with its output in `pipe`. */
static void become(const struct command *command, int pipe)
{
    for (size_t i = 0; i < json_array_size(command->environment); i++) {
        const json_t *entry = json_array_get(command->environment, i);
        setenv(object_text(entry, "name"), object_text(entry, "value"), 1);
    }
    setenv("KUBERNETES_EXEC_INFO", command->info, 1);
    dup2(pipe, STDOUT_FILENO);
    execvp(command->path, (char *const *)(uintptr_t)command->words);
    _exit(errno == ENOENT ? 127 : 126);
}

/* All that `pipe` holds, until it is closed; NULL if it is too much. */
static char *read_all(int pipe)
{
    char *text = xmalloc(CREDENTIAL_MAX_BYTES + 1);
    size_t length = 0;
    ssize_t count;
    do {
        count = read(pipe, text + length, CREDENTIAL_MAX_BYTES - length);
        length += count > 0 ? (size_t)count : 0;
    } while (count > 0 || (count < 0 && errno == EINTR));
    text[length] = '\0';
    if (length < CREDENTIAL_MAX_BYTES)
        return text;
    free_secret(text);
    return NULL;
}

static int run(const struct command *command, const char *hint, char **ret_text,
               struct het_error *err)
{
    int ends[2], status = 0;
    if (pipe(ends) < 0)
        return het_fail(err, HET_IO, "%s: %s", command->path, strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become(command, ends[1]);
    }
    close(ends[1]);
    char *text = child > 0 ? read_all(ends[0]) : NULL;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && text && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        *ret_text = text;
        return 0;
    }
    free_secret(text);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return het_fail(err, HET_DENIED, "%s is not installed%s%s", command->path,
                        *hint ? ": " : "", hint);
    return het_fail(err, HET_DENIED, "%s ended badly, or printed too much (status %d)",
                    command->path, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* ---- what it says ---- */

static char *copy_text(const json_t *status, const char *key)
{
    const char *text = object_text(status, key);
    return *text ? xstrdup(text) : NULL;
}

static int read_credential(const json_t *exec, const char *text, struct credential *ret,
                           struct het_error *err)
{
    json_auto_t *json = NULL;
    if (het_json_decode(text, strlen(text), "what it prints", &json, err) < 0)
        return -1;
    if (strcmp(object_text(json, "apiVersion"), object_text(exec, "apiVersion")) != 0)
        return het_fail(err, HET_BAD_INPUT, "prints apiVersion \"%s\", not \"%s\"",
                        object_text(json, "apiVersion"), object_text(exec, "apiVersion"));
    const json_t *status = object_at(json, "status");
    *ret = (struct credential){ copy_text(status, "token"),
                                copy_text(status, "clientCertificateData"),
                                copy_text(status, "clientKeyData") };
    if (ret->token || (ret->certificate_pem && ret->key_pem))
        return 0;
    credential_fini(ret);
    return het_fail(err, HET_BAD_INPUT,
                    "prints neither status.token nor a certificate and its key");
}

int credential_run(const json_t *exec, const char *folder, json_t *cluster,
                   struct credential *ret, struct het_error *err)
{
    struct command command __attribute__((cleanup(command_fini))) = { 0 };
    char *text = NULL;
    if (read_command(exec, folder, cluster, &command, err) < 0 ||
        run(&command, object_text(exec, "installHint"), &text, err) < 0)
        return -1;
    int result = read_credential(exec, text, ret, err);
    free_secret(text);
    return result < 0 ? het_wrap(err, "%s", command.path) : 0;
}
