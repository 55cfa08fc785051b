#include "controller/base/process.h"

#include "planner/modules.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int64_t process_clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int process_terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

char *process_path_beside(const char *program)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return xstrdup(program);
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    return xasprintf("%.*s/%s", slash ? (int)(slash - path) : 0, path, program);
}
