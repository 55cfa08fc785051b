/* kubectl-htj - the program: terminal, clock, environment and the way to the API server,
 * for commands.h. */
#include "controller/base/process.h"
#include "controller/kubectl/commands.h"
#include "controller/kubectl/kubectl_transport.h"

#include <jansson.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Width of lines: the default, the least and the most. */
#define WIDTH_DEFAULT 80
#define WIDTH_LEAST   70
#define WIDTH_MOST    160

#define POD_NAMESPACE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

static int terminal_width(void)
{
    const char *columns = getenv("COLUMNS");
    int width = process_terminal_width();
    if (!width && columns)
        width = atoi(columns);
    if (width <= 0)
        width = WIDTH_DEFAULT;
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

/* What is open to the API server. */
struct connection {
    struct transport *transport;
    char *options[HTJ_MAX_LOGIN]; /* of kubectl */
    size_t option_count;
    char *ns;
};

static void connection_fini(struct connection *connection)
{
    transport_free(connection->transport);
    for (size_t i = 0; i < connection->option_count; i++)
        free(connection->options[i]);
    free(connection->ns);
}

/* Where there is no context, kubectl uses the service account of its pod. */
static char *namespace_of_pod(void)
{
    char name[256] = "";
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    FILE *file = host && *host ? fopen(POD_NAMESPACE, "re") : NULL;
    bool is_read = file && fgets(name, sizeof name, file);
    if (file)
        fclose(file);
    return xstrdup(is_read ? name : "default");
}

static int connect_to(void *context, const struct htj_options *options,
                      struct htj_link *ret, struct het_error *err)
{
    struct connection *connection = context;
    for (size_t i = 0; i < options->login_count; i++)
        connection->options[connection->option_count++] =
            xasprintf("--%s=%s", options->login[i].name, options->login[i].value);
    connection->transport =
        kubectl_transport_new("kubectl", (const char *const *)connection->options,
                              connection->option_count, "kubectl-htj", stderr);
    if (options->ns && *options->ns)
        connection->ns = xstrdup(options->ns);
    else if (kubectl_transport_namespace(connection->transport, &connection->ns, err) < 0)
        return -1;
    if (!connection->ns)
        connection->ns = namespace_of_pod();
    *ret = (struct htj_link){ .transport = connection->transport, .ns = connection->ns };
    return 0;
}

static int64_t now_ms(void *context)
{
    (void)context;
    return process_clock_ms(CLOCK_BOOTTIME);
}

static int64_t wall_ms(void *context)
{
    (void)context;
    return process_clock_ms(CLOCK_REALTIME);
}

int main(int argc, char **argv)
{
    struct connection connection = { 0 };
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write */
    signal(SIGCHLD, SIG_DFL); /* our parent may ignore it: no run would have a status */
    json_set_alloc_funcs(xmalloc, xfree);
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
    connection_fini(&connection);
    return code;
}
