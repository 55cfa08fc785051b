/* Stands in for a planner that has been taken over by a question: reads the name of a
 * folder on standard input, tries what a thief would try, and prints what came of it, one
 * attempt a line. Linked as hetplan is. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char secret[4096], spoil[4096];

static long read_secret(void)
{
    return open(secret, O_RDONLY);
}

static long write_file(void)
{
    return open(spoil, O_WRONLY | O_CREAT, 0600);
}

static long read_environment_of_parent(void)
{
    return open("/proc/1/environ", O_RDONLY);
}

static long open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long open_local_socket(void)
{
    int ends[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static long start_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 ? -1 : waitpid(pid, NULL, 0);
}

static long trace_process(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long signal_process(void)
{
    return kill(1, 0);
}

static long delete_file(void)
{
    return unlink(secret);
}

static long make_code(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : 0;
}

static long raise_limit(void)
{
    struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };
    return setrlimit(RLIMIT_CPU, &more);
}

static long become_root(void)
{
    return setuid(0);
}

int main(void)
{
    static const struct {
        const char *name;
        long (*try)(void);
    } attempts[] = {
        { "read a secret", read_secret },
        { "write a file", write_file },
        { "delete a file", delete_file },
        { "read another's environment", read_environment_of_parent },
        { "open a socket", open_socket },
        { "open a local socket", open_local_socket },
        { "start a process", start_process },
        { "trace a process", trace_process },
        { "signal a process", signal_process },
        { "make code", make_code },
        { "raise a limit", raise_limit },
        { "become root", become_root },
    };
    char folder[2048] = "";
    if (scanf("{\"folder\":\"%2047[^\"]", folder) != 1)
        return 3;
    snprintf(secret, sizeof secret, "%s/secret", folder);
    snprintf(spoil, sizeof spoil, "%s/spoil", folder);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        errno = 0;
        long result = attempts[i].try();
        printf("%s: %s\n", attempts[i].name, result < 0 ? strerror(errno) : "done");
    }
    return 0;
}
