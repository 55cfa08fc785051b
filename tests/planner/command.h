/* command.h - runs hetplan ($HETPLAN, or build/hetplan) as a process of its own, with
 * files that a test writes. */
#ifndef TEST_COMMAND_H
#define TEST_COMMAND_H

#include <stddef.h>

struct command_result {
    int exit_code; /* 128 + signal, if one ended it */
    char *out, *err;
    size_t out_length;
};

/* A folder for one test; its path is kept in `ret` (at least 64 bytes). */
void command_folder(char *ret);
/* Removes the folder and the files right in it. */
void command_remove(const char *folder);
/* Writes a file into it; the path is returned, to be freed. */
char *command_write(const char *folder, const char *name, const char *text,
                    size_t length);

/* Runs hetplan with the arguments up to NULL; `input` (may be NULL) is its standard
 * input. */
struct command_result command_run(const char *folder, const char *input, ...)
    __attribute__((sentinel));
void command_result_fini(struct command_result *result);

#endif
