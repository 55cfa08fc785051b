/* kubectl-htj - the program: terminal, clock, environment and the way to the API server,
 * for htj.h. */
#include "controller/auth.h"
#include "controller/htj.h"
#include "controller/log.h"

#include <curl/curl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Of lines: where nobody says it, and at least and at most. */
#define WIDTH_DEFAULT 80
#define WIDTH_LEAST   70
#define WIDTH_MOST    160

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int terminal_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        width = size.ws_col;
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

/* What is open to one API server. */
struct connection {
    struct auth *auth;
    struct transport *transport;
};

/* As kubectl: --kubeconfig, $KUBECONFIG, ~/.kube/config, and only then the service
 * account of a pod. */
static char *kubeconfig_files(const char *given)
{
    const char *variable = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (given)
        return xstrdup(given);
    if (variable && *variable)
        return xstrdup(variable);
    auto_free char *usual = xasprintf("%s/.kube/config", home ? home : "");
    return home && access(usual, F_OK) == 0 ? TAKE(usual) : NULL;
}

static int connect_to(void *context, const char *kubeconfig, const char *context_name,
                      struct htj_link *ret, struct het_error *err)
{
    struct connection *connection = context;
    auto_free char *files = kubeconfig_files(kubeconfig);
    struct auth_config config = {
        .kubeconfig = files,
        .context = context_name,
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .home = getenv("HOME"),
        .runs_exec = true,
    };
    if (auth_load(&config, &connection->auth, err) < 0)
        return -1;
    connection->transport = http_transport_new(auth_endpoint, connection->auth, err);
    if (!connection->transport)
        return -1;
    http_transport_on_unauthorized(connection->transport, auth_unauthorized);
    *ret = (struct htj_link){ .transport = connection->transport,
                              .ns = auth_namespace(connection->auth),
                              .server = auth_endpoint(connection->auth)->server };
    return 0;
}

static int64_t now_ms(void *context)
{
    struct connection *connection = context;
    int64_t now = clock_ms(CLOCK_BOOTTIME);
    if (connection->auth)
        auth_step(connection->auth, now);
    return now;
}

static int64_t wall_ms(void *context)
{
    (void)context;
    return clock_ms(CLOCK_REALTIME);
}

int main(int argc, char **argv)
{
    struct connection connection = { 0 };
    struct het_error err;
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write */
    json_set_alloc_funcs(xmalloc, free);
    log_set_levels("off", &err);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fprintf(stderr, "kubectl htj: libcurl cannot be set up\n");
        return HTJ_EXIT_SERVER;
    }
    struct htj_host host = {
        .out = stdout,
        .err = stderr,
        .width = terminal_width(),
        .is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
        .connect = connect_to,
        .now_ms = now_ms,
        .wall_ms = wall_ms,
        .context = &connection,
    };
    int code = htj_main(argc, argv, &host);
    if (connection.transport)
        transport_free(connection.transport);
    auth_free(connection.auth);
    return code;
}
