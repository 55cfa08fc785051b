/* heterotrain-simulate - the program: terminal and clock for simulate_command.h. */
#include "controller/base/process.h"
#include "controller/simulate/simulate_command.h"
#include "planner/modules.h"

#include <jansson.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Width of lines: the default, the least and the most. */
#define WIDTH_DEFAULT 100
#define WIDTH_LEAST   80
#define WIDTH_MOST    160

static int line_width(void)
{
    int width = process_terminal_width();
    if (!width)
        width = WIDTH_DEFAULT;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

/* For what is shown of a simulation. */
static int64_t clock_ms(void)
{
    return process_clock_ms(CLOCK_MONOTONIC);
}

static bool sleep_ms(int64_t ms)
{
    struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&wait, NULL);
    return true; /* a signal ends the process */
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);             /* a reader that went away is a failed write */
    json_set_alloc_funcs(xmalloc, xfree); /* never NULL */
    auto_free char *hetplan = process_path_beside("hetplan");
    struct simulate_terminal terminal = {
        .out = stdout,
        .err = stderr,
        .is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
        .width = line_width(),
        .hetplan = hetplan,
        .clock_ms = clock_ms,
        .sleep_ms = sleep_ms,
    };
    return simulate_command_main(argc, argv, &terminal);
}
