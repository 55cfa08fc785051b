/* What clients can do to the loop: how long a turn of the real controller takes while its
 * server is left alone, and while others do their worst to it, in turn.
 *
 *     bench-serving [ROUNDS]
 *
 * The cluster is the embedded one, with 200 nodes, 2,000 pods and a job that runs; a turn
 * is the change of a pod and of a node, and all that the controller does about both. It
 * has metrics, and a server in a thread beside it, as main.c makes them. The attackers
 * are a process of their own, of the lowest priority, as they would be another machine.
 * Quiet and attacked windows alternate, so that what else the machine does falls on
 * both. Prints one JSON object an attack: [quiet, attacked] medians and 99th percentiles
 * of the turns in microseconds, by the wall clock and by the thread's CPU time (which
 * leaves out what else the machine does, and waiting for a lock), and how the medians
 * change. Its exit status says whether the server still answered. */
#include "controller/base/log.h"
#include "controller/serve/certificate.h"
#include "controller/serve/endpoints.h"
#include "controller/simulate/simulation.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NODES = 200,
    PODS_A_NODE = 10,
    WINDOW_MS = 500,
    DEFAULT_ROUNDS = 10,
    MOST_TURNS = 1 << 20,
    CLIENTS = 1000,
    BODY = 4 << 20,
};

/* Of this thread. */
static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static double seconds(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int64_t milliseconds(void *context)
{
    return (int64_t)(seconds(context) * 1000);
}

static void fail(const char *what)
{
    fprintf(stderr, "bench-serving: %s\n", what);
    exit(2);
}

/* ---- the cluster ---- */

static void put(struct simulation *simulation, json_t *object)
{
    struct het_error err = { 0 };
    if (!object || api_server_put(simulation_server(simulation), object, &err) < 0)
        fail(err.message);
}

static json_t *node(int index, int turn)
{
    auto_free char *name = xasprintf("node-%03d", index);
    auto_free char *mark = xasprintf("%d", turn);
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s}}, s:{s:{s:s, s:s, s:s, s:s}, "
                     "s:[{s:s, s:s}]}}",
                     "apiVersion", "v1", "kind", "Node", "metadata", "name", name,
                     "labels", "nvidia.com/gpu.product", "Tesla-V100-SXM2-16GB",
                     "bench/turn", mark, "status", "allocatable", "nvidia.com/gpu", "8",
                     "cpu", "96", "memory", "512Gi", "pods", "110", "conditions", "type",
                     "Ready", "status", "True");
}

static json_t *pod(int node_index, int index, int turn)
{
    auto_free char *name = xasprintf("other-%03d-%d", node_index, index);
    auto_free char *node_name = xasprintf("node-%03d", node_index);
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[{s:s, s:s, s:{s:{s:s}}}]}, "
                     "s:{s:s}}",
                     "apiVersion", "v1", "kind", "Pod", "metadata", "name", name,
                     "namespace", "others", "spec", "nodeName", node_name, "containers",
                     "name", "web", "image", "web:1", "resources", "limits",
                     "nvidia.com/gpu", turn % 2 ? "1" : "0", "status", "phase",
                     "Running");
}

static struct simulation *make_cluster(struct metrics *metrics)
{
    struct simulation_config config = { .seed = 1,
                                        .metrics = metrics,
                                        .cluster = simulated_cluster_defaults };
    struct het_error err = { 0 };
    struct simulation *simulation = simulation_new(&config, &err);
    if (!simulation)
        fail(err.message);
    for (int i = 0; i < NODES; i++) {
        put(simulation, node(i, 0));
        for (int k = 0; k < PODS_A_NODE; k++)
            put(simulation, pod(i, k, 0));
    }
    return simulation;
}

static void turn(struct simulation *simulation, int number)
{
    struct het_error err = { 0 };
    put(simulation, pod(number % NODES, number % PODS_A_NODE, number));
    put(simulation, node(number % NODES, number));
    if (simulation_run(simulation, simulation_now_ms(simulation) + 100, NULL, NULL,
                       &err) < 0)
        fail(err.message);
}

/* ---- attackers ---- */

static int port, tls_port;

static int dial_port(int number)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)number),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int dial(void)
{
    return dial_port(port);
}

static void say(int fd, const char *text)
{
    send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Sends `head`, then a byte every 100 ms, over `CLIENTS` connections that are dialled
 * again when they are closed. */
static void drip(const char *head, const char *byte)
{
    int fds[CLIENTS];
    memset(fds, -1, sizeof fds);
    for (;;) {
        for (int i = 0; i < CLIENTS; i++) {
            char answer[64];
            if (fds[i] >= 0 && recv(fds[i], answer, sizeof answer, MSG_DONTWAIT) == 0) {
                close(fds[i]);
                fds[i] = -1;
            }
            if (fds[i] < 0 && (fds[i] = dial()) >= 0)
                say(fds[i], head);
            else if (fds[i] >= 0)
                say(fds[i], byte);
        }
        usleep(100000);
    }
}

static void be_idle(void)
{
    drip("", "");
}

static void be_slow(void)
{
    drip("GET /metrics HTTP/1.1\r\nX-Slow: ", "a");
}

static void stop_halfway(void)
{
    for (;;) {
        int fd = dial();
        say(fd, "POST /metrics HTTP/1.1\r\nContent-Le");
        close(fd);
    }
}

static void send_long_bodies(void)
{
    static char body[BODY];
    for (;;) {
        int fd = dial();
        say(fd, "PUT /log-level HTTP/1.1\r\nContent-Length: 4194304\r\n\r\n");
        send(fd, body, sizeof body, MSG_NOSIGNAL);
        close(fd);
    }
}

/* How a client of TLS 1.2 begins; made before there is a thread, as OpenSSL is not to be
 * used behind a fork. */
static char hello[1024];
static int hello_length;

static void make_hello(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *client = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_max_proto_version(client, TLS1_2_VERSION);
    SSL_set_bio(client, in, out);
    SSL_connect(client);
    hello_length = BIO_read(out, hello, sizeof hello);
    SSL_free(client);
    SSL_CTX_free(context);
    if (hello_length <= 0)
        fail("no client hello");
}

/* Clients that know another authority: they make the server sign, and then refuse. */
static void refuse_certificates(void)
{
    static const char bad_certificate[] = "\x15\x03\x03\x00\x02\x02\x2a";
    char flight[8192];
    for (;;) {
        int fd = dial_port(tls_port);
        send(fd, hello, (size_t)hello_length, MSG_NOSIGNAL);
        recv(fd, flight, sizeof flight, 0);
        send(fd, bad_certificate, sizeof bad_certificate - 1, MSG_NOSIGNAL);
        close(fd);
    }
}

/* As fast as it goes; `read_on`: takes the answers. */
static void ask_on(const char *request, bool read_on)
{
    char answer[65536];
    for (;;) {
        int fd = dial();
        for (int i = 0; i < 200; i++) {
            if (send(fd, request, strlen(request),
                     MSG_NOSIGNAL | (read_on ? 0 : MSG_DONTWAIT)) < 0)
                break;
            if (read_on && recv(fd, answer, sizeof answer, 0) <= 0)
                break;
        }
        if (!read_on)
            usleep(200000);
        close(fd);
    }
}

static void scrape(void)
{
    ask_on("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", true);
}

static void ask_wrongly(void)
{
    ask_on("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", true);
}

static void pipeline(void)
{
    ask_on(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        false);
}

static const struct {
    const char *name;
    void (*run)(void);
} attacks[] = {
    { "nothing", NULL }, /* what two quiet windows differ by */
    { "1000 idle connections", be_idle },
    { "1000 slow heads", be_slow },
    { "half requests", stop_halfway },
    { "4 MiB bodies", send_long_bodies },
    { "scrapes without pause", scrape },
    { "wrong methods", ask_wrongly },
    { "pipelines that nobody reads", pipeline },
    { "refused certificates", refuse_certificates },
};

static pid_t start_attack(void (*run)(void))
{
    pid_t pid = fork();
    if (pid)
        return pid;
    struct rlimit files = { 4096, 4096 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_NOFILE, &files);
    setpriority(PRIO_PROCESS, 0, 19);
    run();
    _exit(0);
}

/* ---- figures ---- */

struct turns {
    double *us, *cpu_us;
    size_t count;
};

static struct turns make_turns(void)
{
    return (struct turns){ .us = xcalloc(MOST_TURNS, sizeof(double)),
                           .cpu_us = xcalloc(MOST_TURNS, sizeof(double)) };
}

static void free_turns(struct turns *turns)
{
    free(turns->us);
    free(turns->cpu_us);
}

static void run_window(struct simulation *simulation, struct turns *into, int *number)
{
    double end_s = seconds(NULL) + WINDOW_MS / 1000.0;
    for (double from_s; (from_s = seconds(NULL)) < end_s && into->count < MOST_TURNS;) {
        double from_cpu_s = cpu_seconds();
        turn(simulation, ++*number);
        into->cpu_us[into->count] = (cpu_seconds() - from_cpu_s) * 1e6;
        into->us[into->count++] = (seconds(NULL) - from_s) * 1e6;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof *values, compare);
    return count ? values[(size_t)((double)(count - 1) * share)] : 0;
}

static bool answers(void)
{
    char answer[64] = "";
    struct timeval patience = { .tv_sec = 5 };
    int fd = dial();
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    recv(fd, answer, sizeof answer - 1, 0);
    close(fd);
    return !strncmp(answer, "HTTP/1.1 ", 9);
}

static bool bench(struct simulation *simulation, size_t attack, int rounds, int *number)
{
    struct turns quiet = make_turns(), attacked = make_turns();
    bool is_alive = true;
    double slowest_s = 0;
    for (int i = 0; i < rounds; i++) {
        run_window(simulation, &quiet, number);
        pid_t pid = attacks[attack].run ? start_attack(attacks[attack].run) : 0;
        usleep(pid ? 300000 : 0);
        run_window(simulation, &attacked, number);
        double from_s = seconds(NULL);
        is_alive = is_alive && answers();
        double took_s = seconds(NULL) - from_s;
        slowest_s = took_s > slowest_s ? took_s : slowest_s;
        if (pid) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        usleep(pid ? 300000 : 0);
    }
    double before_us = quantile(quiet.us, quiet.count, 0.5);
    double after_us = quantile(attacked.us, attacked.count, 0.5);
    double before_cpu_us = quantile(quiet.cpu_us, quiet.count, 0.5);
    double after_cpu_us = quantile(attacked.cpu_us, attacked.count, 0.5);
    printf("{\"bench\":\"serving\",\"attack\":\"%s\",\"turns\":%zu,"
           "\"medianUs\":[%.0f,%.0f],\"changePercent\":%.1f,\"cpuMedianUs\":[%.0f,%.0f],"
           "\"cpuChangePercent\":%.1f,\"p99Us\":[%.0f,%.0f],\"slowestHealthzMs\":%.0f,"
           "\"answers\":%s}\n",
           attacks[attack].name, attacked.count, before_us, after_us,
           (after_us / before_us - 1) * 100, before_cpu_us, after_cpu_us,
           (after_cpu_us / before_cpu_us - 1) * 100,
           quantile(quiet.us, quiet.count, 0.99),
           quantile(attacked.us, attacked.count, 0.99), slowest_s * 1000,
           is_alive ? "true" : "false");
    fflush(stdout);
    free_turns(&quiet);
    free_turns(&attacked);
    return is_alive;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : DEFAULT_ROUNDS, number = 0;
    struct het_error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    log_set_levels("off", NULL);
    struct metrics *metrics = metrics_new(seconds, NULL);
    struct published *feed = published_new();
    struct endpoints *endpoints = endpoints_new(feed, metrics, milliseconds, NULL);
    struct simulation *simulation = make_cluster(metrics);
    static const char *const names[] = { "127.0.0.1" };
    struct certificate certificate;
    if (certificate_make("bench", names, 1, (int64_t)time(NULL) * 1000, &certificate,
                         &err) < 0)
        fail(err.message);
    make_hello();
    struct server_listener listeners[2];
    listeners[0] = (struct server_listener){ .address = "127.0.0.1:0",
                                             .routes = endpoints_routes(endpoints),
                                             .route_count = ENDPOINTS_ROUTES };
    listeners[1] = listeners[0];
    listeners[1].certificate_pem = certificate.certificate_pem;
    listeners[1].key_pem = certificate.key_pem;
    struct server_config config = {
        .listeners = listeners, .listener_count = 2, .feed = feed, .metrics = metrics
    };
    struct server *server = server_new(&config, &err);
    if (!server)
        fail(err.message);
    port = server_port(server, 0);
    tls_port = server_port(server, 1);
    for (int i = 0; i < 500; i++) /* warm */
        turn(simulation, ++number);
    bool is_alive = true;
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++)
        is_alive = bench(simulation, i, rounds, &number) && is_alive;
    server_free(server);
    certificate_fini(&certificate);
    simulation_free(simulation);
    endpoints_free(endpoints);
    published_free(feed);
    metrics_free(metrics);
    return is_alive ? 0 : 1;
}
