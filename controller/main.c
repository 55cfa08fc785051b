/* heterotrain-controller - wires the operator together. The only reader of clock, flags,
 * environment and signals. */
#include "controller/base/log.h"
#include "controller/base/process.h"
#include "controller/job/settings.h"
#include "controller/kube/auth.h"
#include "controller/operator/loop.h"
#include "controller/record/record_file.h"
#include "controller/record/replay_command.h"
#include "controller/serve/admission_route.h"
#include "controller/serve/authorization.h"
#include "controller/serve/certificate_bundle.h"
#include "controller/serve/check_command.h"
#include "controller/serve/dashboard.h"
#include "controller/serve/endpoints.h"
#include "controller/serve/server.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_INPUT = 2 };

/* A signal is noticed after at most this: the loop's longest wait. */
#define LONGEST_WAIT_MS         ((int64_t)1000)
/* To finish writes and give the lease back after a signal; all is over within 5 s. */
#define STOP_MS                 ((int64_t)3000)
/* Where the lease is when we are in no pod. */
#define DEFAULT_LEASE_NAMESPACE "heterotrain-system"
#define DEFAULT_LEASE           "heterotrain-controller"
#define DEFAULT_SERVICE         "heterotrain-webhook"
#define DEFAULT_CONFIGURATION   "heterotrain"

static const char help[] =
    "Usage: heterotrain-controller [OPTION]...\n"
    "       heterotrain-controller replay FILE [OPTION]...\n"
    "       heterotrain-controller check URL [OPTION]...\n"
    "\n"
    "Watches HeteroTrainingJobs, nodes and pods; plans each job on the GPUs that can be\n"
    "had (hetplan), and writes the plan and its pods. Runs until SIGTERM or SIGINT.\n"
    "\n"
    "The API server is found like kubectl does: --kubeconfig or $KUBECONFIG, else the\n"
    "service account of the pod, else ~/.kube/config.\n"
    "\n"
    "Options:\n"
    "  --kubeconfig FILES     kubeconfig files, separated by colons\n"
    "  --context NAME         context of the kubeconfig (default: its current-context)\n"
    "  --namespace NAME       only jobs of this namespace (default: all namespaces)\n"
    "  --config FILE          settings for all jobs, JSON or YAML (docs/operations.md)\n"
    "  --hardware FILE        GPU types, aliases, bandwidths (docs/operations.md)\n"
    "  --hardware-configmap NAMESPACE/NAME\n"
    "                         the same in a ConfigMap, key hardware.json; followed while\n"
    "                         running, and it wins over --hardware while it is there\n"
    "  --no-leader-elect      there are no other replicas (--leader-elect: there may be;\n"
    "                         one decides, the others wait. The default)\n"
    "  --lease-namespace NAME, --lease-name NAME\n"
    "                         by which replicas elect (default: the pod's namespace, else\n"
    "                         heterotrain-system; heterotrain-controller)\n"
    "  --hetplan PATH         the planner (default: hetplan beside this program)\n"
    "  --requests-per-second N, --burst N\n"
    "                         limits of requests to the API server (default 50 and 100)\n"
    "  --http ADDRESS:PORT    serve /healthz, /readyz and /log-level there (default: not)\n"
    "  --metrics ADDRESS:PORT serve /metrics there, over TLS, to those whose bearer token\n"
    "                         gives them the right to (default: not)\n"
    "  --metrics-cert-dir DIR with the certificate tls.crt and its key tls.key there, read\n"
    "                         again when they change; else with our own\n"
    "  --metrics-open         in the clear, and to all who can reach it\n"
    "  --dashboard ADDRESS:PORT\n"
    "                         serve a page there that shows nodes, jobs and decisions, to\n"
    "                         all who can reach it (default: none)\n"
    "  --webhook ADDRESS:PORT serve the admission webhook there, over TLS (default: not)\n"
    "  --webhook-cert-dir DIR with the certificate tls.crt and its key tls.key there, read\n"
    "                         again when they change; else with our own:\n"
    "  --webhook-service NAME for this Service (default heterotrain-webhook), in the\n"
    "                         namespace of the lease,\n"
    "  --webhook-configuration NAME\n"
    "                         and its authority is written into the caBundle of this\n"
    "                         ValidatingWebhookConfiguration (default heterotrain)\n"
    "  --record FILE          write every decision, and all it was made from, as a line of\n"
    "                         JSON (docs/operations.md); \"replay FILE\" shows them\n"
    "  --record-max-bytes N   then FILE becomes FILE.1, and a new one is begun (256 MiB)\n"
    "  --record-env           with the values of environment variables of podTemplate\n"
    "  --log LEVELS           debug, info, warning, error, off; or by component:\n"
    "                         watch=debug,info (default info)\n"
    "  --help                 this text\n"
    "\n"
    "Logs go to standard error, one event a line, key=value.\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 the API server or the planner cannot be used, or\n"
    "the lease was lost; 2 bad option, kubeconfig, settings or hardware file.\n"
    "\n"
    "\"check\" succeeds when the answer of URL has status 200.\n";

struct options {
    const char *kubeconfig, *context, *ns, *config, *hardware, *hardware_map, *hetplan,
        *log, *lease_ns, *lease, *http, *metrics, *metrics_folder, *dashboard, *webhook,
        *certificate_folder, *service, *configuration;
    const char *record;
    int64_t record_max_bytes;
    bool record_env;
    bool is_alone; /* no election */
    bool metrics_open;
    double requests_per_s;
    int burst;
};

/* ---- options ---- */

enum {
    KUBECONFIG = 1,
    CONTEXT,
    NAMESPACE,
    CONFIG,
    HARDWARE,
    MAP,
    HETPLAN,
    ELECT,
    NO_ELECT,
    LEASE_NAMESPACE,
    LEASE,
    RATE,
    BURST,
    HTTP,
    METRICS,
    METRICS_FOLDER,
    METRICS_OPEN,
    DASHBOARD,
    WEBHOOK,
    CERTIFICATE_FOLDER,
    SERVICE,
    CONFIGURATION,
    RECORD,
    RECORD_MAX,
    RECORD_ENV,
    LOG,
    HELP
};

static const struct option long_options[] = {
    { "kubeconfig", required_argument, NULL, KUBECONFIG },
    { "context", required_argument, NULL, CONTEXT },
    { "namespace", required_argument, NULL, NAMESPACE },
    { "config", required_argument, NULL, CONFIG },
    { "hardware", required_argument, NULL, HARDWARE },
    { "hardware-configmap", required_argument, NULL, MAP },
    { "hetplan", required_argument, NULL, HETPLAN },
    { "leader-elect", no_argument, NULL, ELECT },
    { "no-leader-elect", no_argument, NULL, NO_ELECT },
    { "lease-namespace", required_argument, NULL, LEASE_NAMESPACE },
    { "lease-name", required_argument, NULL, LEASE },
    { "requests-per-second", required_argument, NULL, RATE },
    { "burst", required_argument, NULL, BURST },
    { "http", required_argument, NULL, HTTP },
    { "metrics", required_argument, NULL, METRICS },
    { "metrics-cert-dir", required_argument, NULL, METRICS_FOLDER },
    { "metrics-open", no_argument, NULL, METRICS_OPEN },
    { "dashboard", required_argument, NULL, DASHBOARD },
    { "webhook", required_argument, NULL, WEBHOOK },
    { "webhook-cert-dir", required_argument, NULL, CERTIFICATE_FOLDER },
    { "webhook-service", required_argument, NULL, SERVICE },
    { "webhook-configuration", required_argument, NULL, CONFIGURATION },
    { "record", required_argument, NULL, RECORD },
    { "record-max-bytes", required_argument, NULL, RECORD_MAX },
    { "record-env", no_argument, NULL, RECORD_ENV },
    { "log", required_argument, NULL, LOG },
    { "help", no_argument, NULL, HELP },
    { 0 },
};

static int read_number(const char *name, const char *text, double least, double most,
                       double *ret, struct het_error *err)
{
    char *end;
    double number = strtod(text, &end);
    if (!*text || *end || !(number >= least && number <= most))
        return het_fail(err, HET_BAD_INPUT, "--%s %s: must be a number from %g to %g",
                        name, text, least, most);
    *ret = number;
    return 0;
}

/* Where the text of an option goes; NULL: it is none that takes a text as it is. */
static const char **text_of(struct options *options, int option)
{
    switch (option) {
    case KUBECONFIG:
        return &options->kubeconfig;
    case CONTEXT:
        return &options->context;
    case NAMESPACE:
        return &options->ns;
    case CONFIG:
        return &options->config;
    case HARDWARE:
        return &options->hardware;
    case MAP:
        return &options->hardware_map;
    case HETPLAN:
        return &options->hetplan;
    case LEASE_NAMESPACE:
        return &options->lease_ns;
    case LEASE:
        return &options->lease;
    case HTTP:
        return &options->http;
    case METRICS:
        return &options->metrics;
    case METRICS_FOLDER:
        return &options->metrics_folder;
    case DASHBOARD:
        return &options->dashboard;
    case WEBHOOK:
        return &options->webhook;
    case CERTIFICATE_FOLDER:
        return &options->certificate_folder;
    case SERVICE:
        return &options->service;
    case CONFIGURATION:
        return &options->configuration;
    case RECORD:
        return &options->record;
    case LOG:
        return &options->log;
    }
    return NULL;
}

/* 0; 1 for --help; -1. */
static int read_option(int option, struct options *options, struct het_error *err)
{
    const char **text = text_of(options, option);
    double number;
    if (text) {
        *text = optarg;
        return 0;
    }
    switch (option) {
    case ELECT:
    case NO_ELECT:
        options->is_alone = option == NO_ELECT;
        return 0;
    case RATE:
        return read_number("requests-per-second", optarg, 0.1, 10000,
                           &options->requests_per_s, err);
    case BURST:
        if (read_number("burst", optarg, 1, 10000, &number, err) < 0)
            return -1;
        options->burst = (int)number;
        return 0;
    case RECORD_MAX:
        if (read_number("record-max-bytes", optarg, 1 << 20, 1e15, &number, err) < 0)
            return -1;
        options->record_max_bytes = (int64_t)number;
        return 0;
    case RECORD_ENV:
        options->record_env = true;
        return 0;
    case METRICS_OPEN:
        options->metrics_open = true;
        return 0;
    case HELP:
        return 1;
    }
    return het_fail(err, HET_BAD_INPUT, "see heterotrain-controller --help");
}

/* 0; 1 for --help; -1. */
static int read_options(int argc, char **argv, struct options *options,
                        struct het_error *err)
{
    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        int result = read_option(option, options, err);
        if (result)
            return result;
    }
    if (optind < argc)
        return het_fail(err, HET_BAD_INPUT,
                        "%s: not a command; there are replay and check", argv[optind]);
    return 0;
}

/* ---- the operator ---- */

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

/* Signals that end us are noted; a closed pipe is an error of write, not the end. */
static void set_signals(void)
{
    struct sigaction stop = { .sa_handler = on_signal };
    sigemptyset(&stop.sa_mask);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Tokens must not end up in a core file or another process's hands. */
static void protect_memory(void)
{
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}

/* A listener over TLS, whose certificate is replaced in time. */
struct secured {
    struct program *program;
    struct certificate_bundle *trust;
    char *owner;
    size_t listener;
};

/* What --webhook takes; all NULL without it. */
struct webhook_service {
    struct kube *kube; /* every replica answers: there is no fence */
    struct admission_route *admission;
    struct secured secured;
    char *host, *service_name;
    const char *names[2]; /* of the certificate */
    size_t name_count;
};

/* What --metrics takes; all NULL without it, and with --metrics-open. */
struct metrics_service {
    struct kube *kube; /* as of the webhook */
    struct authorization *authorization;
    struct secured secured;
};

/* Everything that needs giving back, in the order of its making. */
struct program {
    struct het_arena *arena;
    struct settings settings;
    json_t *hardware;
    char *hardware_ns, *hetplan, *identity;
    struct lease_config lease;
    struct metrics *metrics;
    struct published *feed;
    struct endpoints *endpoints;
    struct dashboard *dashboard; /* NULL without --dashboard */
    struct server_listener listeners[SERVER_LISTENERS];
    char *host_name;
    const char *hosts[SETTINGS_MAX_LIST + 1];
    size_t host_count;
    size_t listener_count;
    struct server *server;
    struct auth *auth;
    struct transport *transport;
    struct webhook_service webhook;
    struct metrics_service metrics_service;
    struct record_file *recorder;
    struct controller *controller;
};

static void secured_fini(struct secured *secured)
{
    certificate_bundle_free(secured->trust);
    free(secured->owner);
}

static void webhook_fini(struct webhook_service *webhook)
{
    admission_route_free(webhook->admission);
    secured_fini(&webhook->secured);
    if (webhook->kube)
        kube_free(webhook->kube);
    free(webhook->host);
    free(webhook->service_name);
}

static void metrics_service_fini(struct metrics_service *service)
{
    authorization_free(service->authorization);
    secured_fini(&service->secured);
    if (service->kube)
        kube_free(service->kube);
}

static void program_fini(struct program *program)
{
    controller_free(program->controller);
    record_file_free(program->recorder);
    server_free(program->server);
    free(program->host_name);
    webhook_fini(&program->webhook);
    metrics_service_fini(&program->metrics_service);
    if (program->transport)
        transport_free(program->transport);
    auth_free(program->auth);
    dashboard_free(program->dashboard);
    endpoints_free(program->endpoints);
    published_free(program->feed);
    metrics_free(program->metrics);
    free(program->hetplan);
    free(program->identity);
    free(program->hardware_ns);
    json_decref(program->hardware);
    het_arena_free(program->arena);
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* When it has something to do next. */
static int64_t webhook_step(const struct webhook_service *webhook,
                            const struct controller *controller, int64_t now_ms)
{
    if (!webhook->kube)
        return INT64_MAX;
    struct certificate_bundle *trust = webhook->secured.trust;
    admission_route_set_server_minor(webhook->admission,
                                     controller_server_minor(controller));
    certificate_bundle_step(trust, now_ms, process_clock_ms(CLOCK_REALTIME));
    admission_route_step(webhook->admission, now_ms);
    kube_step(webhook->kube, now_ms);
    return earlier(kube_next_ms(webhook->kube),
                   earlier(certificate_bundle_next_ms(trust),
                           admission_route_next_ms(webhook->admission)));
}

/* The same. */
static int64_t metrics_service_step(const struct metrics_service *service, int64_t now_ms)
{
    if (!service->kube)
        return INT64_MAX;
    struct certificate_bundle *trust = service->secured.trust;
    certificate_bundle_step(trust, now_ms, process_clock_ms(CLOCK_REALTIME));
    authorization_step(service->authorization, now_ms);
    kube_step(service->kube, now_ms);
    return earlier(kube_next_ms(service->kube),
                   earlier(certificate_bundle_next_ms(trust),
                           authorization_next_ms(service->authorization)));
}

/* Returns when it is to be called next. */
static int64_t step_dashboard(struct program *program, int64_t now_ms)
{
    if (!program->dashboard)
        return INT64_MAX;
    dashboard_step(program->dashboard, program->server, program->controller, now_ms);
    return dashboard_next_ms(program->dashboard, program->controller);
}

/* One turn of the loop, waiting at most `longest_ms`. Time goes on while the machine is
 * suspended: a replica that wakes up must not assume that it still has the lease. */
static void turn(struct program *program, int64_t longest_ms)
{
    struct controller *controller = program->controller;
    int64_t now_ms = process_clock_ms(CLOCK_BOOTTIME);
    double from_s = metrics_now(program->metrics);
    published_beat(program->feed, now_ms);
    auth_step(program->auth, now_ms);
    int64_t served_ms = earlier(webhook_step(&program->webhook, controller, now_ms),
                                metrics_service_step(&program->metrics_service, now_ms));
    controller_step(controller, now_ms, process_clock_ms(CLOCK_REALTIME));
    int64_t shown_ms = step_dashboard(program, now_ms);
    metrics_observe(program->metrics, METRIC_LOOP_SECONDS,
                    metrics_now(program->metrics) - from_s, NO_LABELS);
    int64_t next_ms = earlier(earlier(controller_next_ms(controller), shown_ms),
                              earlier(auth_next_ms(program->auth), served_ms));
    controller_poll(controller, earlier(next_ms - now_ms, longest_ms));
}

static void stop(struct program *program)
{
    int64_t end_ms = process_clock_ms(CLOCK_BOOTTIME) + STOP_MS;
    published_set_ready(program->feed, false);
    controller_stop(program->controller);
    while (!controller_has_stopped(program->controller) &&
           process_clock_ms(CLOCK_BOOTTIME) < end_ms)
        turn(program, STOP_MS / 10);
}

/* Until a signal, or until another replica may have taken the lease: -1. */
static int run(struct program *program)
{
    bool was_synced = false;
    while (!stop_signal && controller_lease(program->controller) != LEASE_LOST) {
        turn(program, LONGEST_WAIT_MS);
        if (!was_synced && controller_is_synced(program->controller)) {
            was_synced = true;
            log_event(LOG_INFO, "main", "synced");
        }
        const struct certificate_bundle *trust = program->webhook.secured.trust;
        published_set_ready(program->feed,
                            was_synced && (!trust || certificate_bundle_is_ready(trust)));
    }
    log_event(LOG_INFO, "main", "ending",
              LOG_STR("why", stop_signal ? strsignal(stop_signal) : "lost the lease"));
    if (!stop_signal)
        return -1;
    stop(program);
    return 0;
}

/* ---- what it serves ---- */

static int64_t boot_clock_ms(void *context)
{
    (void)context;
    return process_clock_ms(CLOCK_BOOTTIME);
}

static double boot_clock_s(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct server_listener *add_listener(struct program *program, const char *address,
                                            const struct server_route *routes,
                                            size_t route_count)
{
    struct server_listener *listener = &program->listeners[program->listener_count++];
    *listener = (struct server_listener){ .address = address,
                                          .routes = routes,
                                          .route_count = route_count };
    return listener;
}

static void wake_loop(void *context)
{
    struct program *program = context;
    http_transport_wake(program->transport);
}

/* Identifies this listener: differs between replicas, and stays the same after a
 * restart. */
static char *make_owner(const char *address)
{
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    return xasprintf("%s %s", host, address);
}

static int use_certificate(void *context, const char *certificate_pem,
                           const char *key_pem, struct het_error *err)
{
    const struct secured *secured = context;
    return server_set_certificate(secured->program->server, secured->listener,
                                  certificate_pem, key_pem, err);
}

/* Adds the listener of one route over TLS, whose certificate is as `config` says. */
static int open_secured(struct program *program, struct secured *secured,
                        struct certificate_bundle_config *config, const char *address,
                        const struct server_route *route, struct het_error *err)
{
    secured->program = program;
    secured->owner = make_owner(address);
    config->owner = secured->owner;
    config->use = use_certificate;
    config->context = secured;
    secured->trust = certificate_bundle_new(config, process_clock_ms(CLOCK_BOOTTIME),
                                            process_clock_ms(CLOCK_REALTIME), err);
    if (!secured->trust)
        return -1;
    secured->listener = program->listener_count;
    struct server_listener *listener = add_listener(program, address, route, 1);
    listener->answers_any_host = true;
    listener->certificate_pem = certificate_bundle_certificate(secured->trust);
    listener->key_pem = certificate_bundle_key(secured->trust);
    return 0;
}

/* As the API server calls us: by the Service, or by our address. */
static int name_service(struct webhook_service *webhook, const struct options *options,
                        const char *ns, struct het_error *err)
{
    int port;
    if (server_parse_address(options->webhook, &webhook->host, &port, err) < 0)
        return -1;
    webhook->service_name =
        xasprintf("%s.%s.svc", options->service ? options->service : DEFAULT_SERVICE, ns);
    webhook->names[webhook->name_count++] = webhook->service_name;
    if (strcmp(webhook->host, "0.0.0.0") && strcmp(webhook->host, "::"))
        webhook->names[webhook->name_count++] = webhook->host;
    return 0;
}

/* The webhook, up to its listener. */
static int open_webhook(struct program *program, const struct options *options,
                        const char *ns, struct het_error *err)
{
    struct webhook_service *webhook = &program->webhook;
    if (name_service(webhook, options, ns, err) < 0)
        return -1;
    webhook->kube = kube_new(program->transport, "heterotrain-webhook");
    struct certificate_bundle_config trust = {
        .folder = options->certificate_folder,
        .names = webhook->names,
        .name_count = webhook->name_count,
        .configuration = options->configuration ? options->configuration
                                                : DEFAULT_CONFIGURATION,
        .kube = webhook->kube,
        .metrics = program->metrics,
    };
    struct admission_route_config admission = {
        .settings = &program->settings,
        .kube = webhook->kube,
        .metrics = program->metrics,
        .clock_ms = boot_clock_ms,
        .wake = wake_loop,
        .context = program,
    };
    webhook->admission = admission_route_new(&admission);
    return open_secured(program, &webhook->secured, &trust, options->webhook,
                        admission_route_routes(webhook->admission), err);
}

/* Metrics, up to their listener. The authority of our own certificate is not published:
 * clients do not verify it, or a folder provides another certificate. */
static int open_metrics(struct program *program, const struct options *options,
                        struct het_error *err)
{
    static const char *const names[] = { "localhost" };
    struct metrics_service *service = &program->metrics_service;
    const struct server_route *route = endpoints_metrics_route(program->endpoints);
    if (options->metrics_open) {
        add_listener(program, options->metrics, route, 1);
        return 0;
    }
    service->kube = kube_new(program->transport, "heterotrain-metrics");
    struct certificate_bundle_config trust = { .folder = options->metrics_folder,
                                               .names = names,
                                               .name_count = 1 };
    struct authorization_config authorization = {
        .route = route,
        .kube = service->kube,
        .clock_ms = boot_clock_ms,
        .wake = wake_loop,
        .context = program,
    };
    service->authorization = authorization_new(&authorization);
    return open_secured(program, &service->secured, &trust, options->metrics,
                        authorization_route(service->authorization), err);
}

/* Allowed host names: our pod's name, and those in the settings. */
static void name_hosts(struct program *program)
{
    const struct settings *settings = &program->settings;
    for (size_t i = 0; i < settings->allowed_host_count; i++)
        program->hosts[program->host_count++] = settings->allowed_hosts[i];
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    program->host_name = xstrdup(name);
    program->hosts[program->host_count++] = program->host_name;
}

/* `ns` is our own. */
static int serve(struct program *program, const struct options *options, const char *ns,
                 struct het_error *err)
{
    program->endpoints =
        endpoints_new(program->feed, program->metrics, boot_clock_ms, NULL);
    if (options->http)
        add_listener(program, options->http, endpoints_routes(program->endpoints),
                     ENDPOINTS_OPEN_ROUTES);
    if (options->metrics && open_metrics(program, options, err) < 0)
        return het_wrap(err, "--metrics");
    if (options->dashboard) {
        program->dashboard = dashboard_new(program->feed, wake_loop, program);
        add_listener(program, options->dashboard, dashboard_routes(program->dashboard),
                     DASHBOARD_ROUTES);
    }
    if (options->webhook && open_webhook(program, options, ns, err) < 0)
        return het_wrap(err, "--webhook");
    name_hosts(program);
    struct server_config config = { .listeners = program->listeners,
                                    .listener_count = program->listener_count,
                                    .hosts = program->hosts,
                                    .host_count = program->host_count,
                                    .feed = program->feed,
                                    .metrics = program->metrics };
    if (program->listener_count) {
        program->server = server_new(&config, err);
        if (!program->server)
            return -1;
    }
    if (program->webhook.admission)
        admission_route_set_server(program->webhook.admission, program->server);
    if (program->metrics_service.authorization)
        authorization_set_server(program->metrics_service.authorization, program->server);
    return 0;
}

static int read_hardware(const struct options *options, struct controller_config *config,
                         json_t **ret_hardware, char **ret_ns, struct het_error *err)
{
    if (options->hardware &&
        het_read_file_settings(options->hardware, ret_hardware, err) < 0)
        return -1;
    config->hardware = *ret_hardware;
    if (!options->hardware_map)
        return 0;
    const char *slash = strchr(options->hardware_map, '/');
    if (!slash || slash == options->hardware_map || !slash[1])
        return het_fail(err, HET_BAD_INPUT,
                        "--hardware-configmap %s: must be NAMESPACE/NAME",
                        options->hardware_map);
    *ret_ns =
        xasprintf("%.*s", (int)(slash - options->hardware_map), options->hardware_map);
    config->hardware_map_ns = *ret_ns;
    config->hardware_map = slash + 1;
    return 0;
}

static int read_config(const char *path, struct het_arena *arena,
                       struct settings *settings, struct het_error *err)
{
    json_auto_t *json = NULL;
    if (het_read_file(path, &json, err) < 0)
        return -1;
    return settings_parse(arena, json, settings, err) < 0
               ? het_wrap(err, "--config %.300s", path)
               : 0;
}

/* Of this process alone: a pod that is started again keeps the name of its host. */
static char *make_identity(void)
{
    char host[HOST_NAME_MAX + 1] = "";
    uint32_t suffix = 0;
    gethostname(host, sizeof host - 1);
    if (getrandom(&suffix, sizeof suffix, 0) != sizeof suffix)
        suffix = (uint32_t)process_clock_ms(CLOCK_REALTIME) ^ (uint32_t)getpid();
    return xasprintf("%s_%08" PRIx32, host, suffix);
}

/* The namespace where the operator is itself. */
static const char *own_namespace(const struct program *program,
                                 const struct options *options,
                                 const struct auth_config *auth)
{
    bool in_pod = !auth->kubeconfig && auth->service_host;
    return options->lease_ns ? options->lease_ns
           : in_pod          ? auth_namespace(program->auth)
                             : DEFAULT_LEASE_NAMESPACE;
}

static void set_lease(struct program *program, const struct options *options,
                      const struct auth_config *auth, struct controller_config *config)
{
    if (options->is_alone)
        return;
    program->identity = make_identity();
    program->lease = (struct lease_config){
        .ns = own_namespace(program, options, auth),
        .name = options->lease ? options->lease : DEFAULT_LEASE,
        .identity = program->identity,
        .seed = config->seed,
        .clock_ms = boot_clock_ms,
    };
    config->lease = &program->lease;
}

/* Where the API server is looked for. */
static struct auth_config auth_of(const struct options *options)
{
    const char *files = options->kubeconfig ? options->kubeconfig : getenv("KUBECONFIG");
    return (struct auth_config){
        .kubeconfig = files && *files ? files : NULL,
        .context = options->context,
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .home = getenv("HOME"),
    };
}

/* The way to the API server. */
static int open_transport(const struct auth_config *auth, struct program *program,
                          struct het_error *err)
{
    if (auth_load(auth, &program->auth, err) < 0)
        return -1;
    program->transport = http_transport_new(auth_endpoint, program->auth, err);
    if (!program->transport)
        return -1;
    http_transport_on_unauthorized(program->transport, auth_unauthorized);
    return 0;
}

static int program_init(struct program *program, const struct options *options,
                        struct het_error *err)
{
    struct controller_config config = {
        .ns = options->ns,
        .requests_per_s = options->requests_per_s,
        .burst = options->burst ? options->burst : 100,
        .seed = (uint64_t)process_clock_ms(CLOCK_REALTIME) ^ (uint64_t)getpid(),
    };
    program->arena = het_arena_new();
    program->settings = *settings_default();
    config.settings = &program->settings;
    program->hetplan = options->hetplan ? xstrdup(options->hetplan)
                                        : process_path_beside("hetplan");
    config.planner = program->hetplan;
    if (options->log && log_set_levels(options->log, err) < 0)
        return het_wrap(err, "--log %s", options->log);
    if (access(program->hetplan, X_OK) < 0)
        return het_fail(err, HET_IO, "%s: %s; say --hetplan PATH", program->hetplan,
                        strerror(errno));
    if (options->config &&
        read_config(options->config, program->arena, &program->settings, err) < 0)
        return -1;
    if (read_hardware(options, &config, &program->hardware, &program->hardware_ns, err) <
        0)
        return -1;
    struct auth_config auth = auth_of(options);
    if (open_transport(&auth, program, err) < 0)
        return -1;
    set_lease(program, options, &auth, &config);
    if (options->record) {
        program->recorder = record_file_new(options->record, options->record_max_bytes,
                                            options->record_env, err);
        if (!program->recorder)
            return -1;
        config.on_decision = record_file_add;
        config.decision_context = program->recorder;
    }
    program->feed = published_new();
    program->metrics = options->metrics ? metrics_new(boot_clock_s, NULL) : NULL;
    config.metrics = program->metrics;
    metrics_set(program->metrics, METRIC_BUILD_INFO, 1, LABELS(HETEROTRAIN_VERSION));
    metrics_set(program->metrics, METRIC_START_TIME,
                (double)process_clock_ms(CLOCK_REALTIME) / 1000, NO_LABELS);
    program->controller = controller_new(program->transport, &config, err);
    if (!program->controller)
        return -1;
    return serve(program, options, own_namespace(program, options, &auth), err);
}

static int run_operator(const struct options *options)
{
    struct het_error err = { 0 };
    struct program program = { 0 };
    set_signals();
    protect_memory();
    log_set_time(process_clock_ms(CLOCK_REALTIME));
    if (program_init(&program, options, &err) < 0) {
        fprintf(stderr, "heterotrain-controller: %s\n", err.message);
        program_fini(&program);
        return err.code == HET_BAD_INPUT ? EXIT_BAD_INPUT : EXIT_FAILED;
    }
    log_event(LOG_INFO, "main", "starting",
              LOG_STR("server", auth_endpoint(program.auth)->server),
              LOG_STR("as", auth_description(program.auth)),
              LOG_STR("namespace", options->ns ? options->ns : "(all)"),
              LOG_STR("planner", program.hetplan),
              LOG_STR("identity", program.identity ? program.identity : ""));
    int failed = run(&program);
    program_fini(&program);
    return failed ? EXIT_FAILED : EXIT_DONE;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    json_set_alloc_funcs(xmalloc, xfree); /* never NULL */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fprintf(stderr, "heterotrain-controller: libcurl cannot be set up\n");
        return EXIT_FAILED;
    }
    if (argc > 1 && !strcmp(argv[1], "replay"))
        return replay_command_main(argc - 1, argv + 1, stdout, stderr);
    if (argc > 1 && !strcmp(argv[1], "check"))
        return check_command_main(argc - 1, argv + 1, stdout, stderr);

    struct options options = { 0 };
    struct het_error err;
    switch (read_options(argc, argv, &options, &err)) {
    case 0:
        return run_operator(&options);
    case 1:
        fputs(help, stdout);
        return EXIT_DONE;
    default:
        fprintf(stderr, "heterotrain-controller: %s\n", err.message);
        return EXIT_BAD_INPUT;
    }
}
