/* What a command takes, by the operating system's account of its process alone.
 *
 *     bench-measure CPU_SECONDS COMMAND [ARGUMENT]...
 *
 * Runs it, stops it when it has taken CPU_SECONDS, and writes "STATUS USER_SECONDS
 * PEAK_KIB" as the last line of standard error; a status of 152 says that it was stopped.
 * A child's peak begins with what its parent held when it forked, so this stays small,
 * which the script that asks is not. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;
    if (argc < 3)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        rlim_t limit_s = strtoul(argv[1], NULL, 10);
        setrlimit(RLIMIT_CPU, &(struct rlimit){ limit_s, limit_s + 1 });
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        perror("bench-measure");
        return 2;
    }
    fprintf(stderr, "\n%d %.6f %ld\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
            usage.ru_maxrss);
    return 0;
}
