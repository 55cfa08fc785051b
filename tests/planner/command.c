#include "tests/planner/command.h"

#include "planner/base/arena.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ARGUMENTS 32

void command_folder(char *ret)
{
    strcpy(ret, "/tmp/test-hetplan-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ret));
}

void command_remove(const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; (entry = readdir(directory));) {
        auto_free char *path = xasprintf("%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(directory);
    rmdir(folder);
}

char *command_write(const char *folder, const char *name, const char *text, size_t length)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
    return path;
}

static char *read_back(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    char *text = xcalloc(length + 1, 1);
    ck_assert_uint_eq(fread(text, 1, length, file), length);
    fclose(file);
    *ret_length = length;
    return text;
}

static _Noreturn void become(const char *in, const char *out, const char *err,
                             char *const *arguments)
{
    const char *program = getenv("HETPLAN");
    if (dup2(open(in, O_RDONLY), 0) < 0 ||
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1) < 0 ||
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2) < 0)
        _exit(126);
    execv(program ? program : "build/hetplan", arguments);
    _exit(127);
}

struct command_result command_run(const char *folder, const char *input, ...)
{
    char *arguments[MAX_ARGUMENTS + 2] = { (char *)(uintptr_t) "hetplan" };
    va_list list;
    va_start(list, input);
    for (int i = 1; i <= MAX_ARGUMENTS && (arguments[i] = va_arg(list, char *)); i++)
        ;
    va_end(list);
    auto_free char *in =
        command_write(folder, "stdin", input ? input : "", input ? strlen(input) : 0);
    auto_free char *out = xasprintf("%s/stdout", folder);
    auto_free char *err = xasprintf("%s/stderr", folder);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child)
        become(in, out, err, arguments);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    struct command_result result = { .exit_code = WIFEXITED(status)
                                                      ? WEXITSTATUS(status)
                                                      : 128 + WTERMSIG(status) };
    size_t length;
    result.out = read_back(out, &result.out_length);
    result.err = read_back(err, &length);
    return result;
}

void command_result_fini(struct command_result *result)
{
    free(result->out);
    free(result->err);
}
