#include "controller/serve/server.h"

#include "controller/base/log.h"
#include "controller/serve/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <libwebsockets.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 16384, /* written or read at a time */
    STALL_S = 1,         /* for a reply, before it is looked at */
    DISCARD_S = 3,       /* for the rest of an unwanted body */
    /* With those that others take the places of; more wait in the kernel. */
    MOST_CONNECTIONS = 2 * SERVER_CONNECTIONS,
    PING_S = 30,            /* a WebSocket silent for this long is pinged */
    HANG_UP_S = 45,         /* ... and that does not answer until then is closed */
    WEBSOCKET_BYTES = 1024, /* of what a client says */
    NICE = 10,              /* the loop comes first */
    BURST_US = 200000,      /* of CPU time, beyond the share */
};

#define PLAIN_TEXT "text/plain; charset=utf-8"
#define HEADERS    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"

enum state {
    WAITING,    /* for a request's head */
    READING,    /* its body */
    THINKING,   /* server_answer is awaited */
    WRITING,    /* the reply */
    DISCARDING, /* the reply is out; the rest of the body is read, then it is closed */
    FEEDING,    /* a WebSocket */
};

struct connection {
    TAILQ_ENTRY(connection) link; /* in the server's list */
    struct server *server;
    struct listener *listener;
    struct lws *wsi;
    enum state state;
    bool is_dying; /* another one takes its place */
    uint64_t id;   /* of the request */

    const struct server_route *route;
    const char *method;
    char *path, *query, *content_type, *authorization;
    char *body;
    size_t body_length, body_capacity, content_length;

    bool has_answered;  /* an earlier request */
    bool must_close;    /* after the reply */
    unsigned body_ends; /* how often its end was told of */
    char *reply;        /* head and body, behind LWS_PRE bytes */
    size_t reply_length, reply_sent;
    bool has_stalled; /* the reply is not out after STALL_S */

    const struct published_text *text; /* being sent; NULL: none */
    size_t text_sent;
    uint64_t text_version; /* sent last */
};

TAILQ_HEAD(connections, connection);

struct listener {
    struct server *server;
    const struct server_listener *config;
    char *name, *host; /* libwebsockets only points at them */
    struct lws_vhost *vhost;
    SSL_CTX *tls; /* NULL: in the clear */
    struct tls_identity *identity;
};

/* What other threads have for the server's. */
struct message {
    STAILQ_ENTRY(message) link;
    uint64_t id;  /* of the request that `reply` is for */
    bool resumes; /* there is no reply: the handler is asked again */
    struct server_reply reply;
    struct listener *listener; /* whose identity is to be `identity`; NULL: none */
    struct tls_identity *identity;
};

struct server {
    struct lws_context *context;
    struct listener listeners[SERVER_LISTENERS];
    size_t listener_count;
    const char *const *hosts;
    size_t host_count;
    struct published *feed;
    struct metrics *metrics;
    int request_s;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_ending;

    /* The server's thread alone. */
    struct connections idle; /* those that wait; for longest first */
    struct connections busy;
    size_t connection_count, dying_count, websocket_count, bodies_bytes;
    uint64_t last_id;

    pthread_mutex_t lock;
    STAILQ_HEAD(messages, message) messages;
};

static void count_refusal(const struct server *server, const char *reason)
{
    metrics_add(server->metrics, METRIC_SERVER_REFUSED, 1, LABELS(reason));
}

/* ---- connections ---- */

static void drop_request(struct connection *connection)
{
    connection->server->bodies_bytes -= connection->body_capacity;
    free(connection->path);
    free(connection->query);
    free(connection->content_type);
    free(connection->authorization);
    free(connection->body);
    free(connection->reply);
    connection->path = connection->query = NULL;
    connection->content_type = connection->authorization = NULL;
    connection->body = connection->reply = NULL;
    connection->body_length = connection->body_capacity = 0;
    connection->reply_length = connection->reply_sent = 0;
    connection->route = NULL;
    connection->id = 0;
}

static void set_state(struct connection *connection, enum state state)
{
    struct server *server = connection->server;
    struct connections *from = connection->state == WAITING ? &server->idle
                                                            : &server->busy;
    struct connections *to = state == WAITING ? &server->idle : &server->busy;
    TAILQ_REMOVE(from, connection, link);
    TAILQ_INSERT_TAIL(to, connection, link);
    connection->state = state;
}

static void note_connections(const struct server *server)
{
    metrics_set(server->metrics, METRIC_SERVER_CONNECTIONS,
                (double)server->connection_count, NO_LABELS);
}

static void add_connection(struct listener *listener, struct lws *wsi)
{
    struct server *server = listener->server;
    struct connection *connection = xcalloc(1, sizeof *connection);
    connection->server = server;
    connection->listener = listener;
    connection->wsi = wsi;
    TAILQ_INSERT_TAIL(&server->idle, connection, link);
    server->connection_count++;
    note_connections(server);
}

/* libwebsockets forgets what is set before the first event after the creation. */
static struct connection *find_connection(const struct server *server, struct lws *wsi)
{
    struct connection *connection = lws_get_opaque_user_data(wsi);
    if (connection)
        return connection;
    TAILQ_FOREACH(connection, &server->idle, link)
    if (connection->wsi == wsi)
        break;
    lws_set_opaque_user_data(wsi, connection);
    return connection;
}

static void stop_feeding(struct connection *connection)
{
    struct server *server = connection->server;
    published_give_back(server->feed, connection->text);
    connection->text = NULL;
    published_add_listeners(server->feed, connection->route->feed, -1);
    server->websocket_count--;
}

static void remove_connection(struct connection *connection)
{
    struct server *server = connection->server;
    if (connection->state == FEEDING)
        stop_feeding(connection);
    TAILQ_REMOVE(connection->state == WAITING ? &server->idle : &server->busy, connection,
                 link);
    drop_request(connection);
    server->connection_count--;
    server->dying_count -= connection->is_dying;
    note_connections(server);
    lws_set_opaque_user_data(connection->wsi, NULL);
    free(connection);
}

/* Whether a whole head waits to be read: it came while others were being accepted. Of
 * what comes over TLS nothing can be seen. */
static bool holds_request(struct lws *wsi)
{
    char bytes[1024];
    ssize_t length =
        recv(lws_get_socket_fd(wsi), bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    return length > 0 && memmem(bytes, (size_t)length, "\r\n\r\n", 4);
}

/* Whether one more may come. If there are enough, the one that has been idle for longest
 * is closed, as soon as the present call is over. */
static bool make_room(struct server *server)
{
    if (server->connection_count - server->dying_count < SERVER_CONNECTIONS)
        return true;
    struct connection *oldest = TAILQ_FIRST(&server->idle);
    while (oldest && (oldest->is_dying || holds_request(oldest->wsi)))
        oldest = TAILQ_NEXT(oldest, link);
    if (!oldest) {
        count_refusal(server, "full");
        return false;
    }
    oldest->is_dying = true;
    server->dying_count++;
    lws_set_timeout(oldest->wsi, PENDING_TIMEOUT_KILLED_BY_PARENT, LWS_TO_KILL_ASYNC);
    count_refusal(server, "idle");
    return true;
}

static void set_deadline(struct connection *connection, int seconds)
{
    lws_set_timer_usecs(connection->wsi, seconds * LWS_USEC_PER_SEC);
}

/* ---- replies ---- */

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        { 200, "OK" },
        { 204, "No Content" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 411, "Length Required" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 503, "Service Unavailable" },
    };
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "";
}

/* Begins to send `reply`, whose body it takes. */
static void start_reply(struct connection *connection, struct server_reply *reply)
{
    auto_free char *body = TAKE(reply->body);
    auto_free char *head =
        xasprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n" HEADERS
                  "%s%s\r\n",
                  reply->status, reason_phrase(reply->status),
                  reply->content_type ? reply->content_type : PLAIN_TEXT,
                  reply->body_length, reply->headers ? reply->headers : "",
                  connection->must_close ? "Connection: close\r\n" : "");
    size_t head_length = strlen(head);
    char code[16];
    snprintf(code, sizeof code, "%d", reply->status);
    metrics_add(connection->server->metrics, METRIC_SERVER_REQUESTS, 1,
                LABELS(connection->route ? connection->route->path : "other", code));
    connection->reply_length = head_length + reply->body_length;
    connection->reply_sent = 0;
    connection->has_stalled = false;
    connection->reply = xmalloc(LWS_PRE + connection->reply_length);
    memcpy(connection->reply + LWS_PRE, head, head_length);
    if (body)
        memcpy(connection->reply + LWS_PRE + head_length, body, reply->body_length);
    set_state(connection, WRITING);
    set_deadline(connection, STALL_S);
    lws_callback_on_writable(connection->wsi);
}

/* An answer of the server itself: one line, which `headers` may go with. */
static void refuse(struct connection *connection, int status, const char *why,
                   const char *headers)
{
    struct server_reply reply = { .status = status,
                                  .headers = headers,
                                  .body = xasprintf("%s\n", why) };
    reply.body_length = strlen(reply.body);
    start_reply(connection, &reply);
}

/* The same where what follows on the connection cannot be trusted, or is not wanted. */
static void refuse_and_close(struct connection *connection, int status, const char *why)
{
    connection->must_close = true;
    refuse(connection, status, why, NULL);
}

/* Writes a piece of the reply. -1: the connection is to be closed. */
static int write_reply(struct connection *connection)
{
    struct lws *wsi = connection->wsi;
    size_t left = connection->reply_length - connection->reply_sent;
    if (left) {
        size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;
        char *from = connection->reply + LWS_PRE + connection->reply_sent;
        if (lws_write(wsi, (unsigned char *)from, length, LWS_WRITE_HTTP) < 0)
            return -1;
        connection->reply_sent += length;
        lws_callback_on_writable(wsi);
        return 0;
    }
    bool has_rest = connection->body_length < connection->content_length;
    if (connection->must_close && has_rest) {
        /* To close a connection on which something has not been read would take the
         * reply away from the client. */
        set_state(connection, DISCARDING);
        set_deadline(connection, DISCARD_S);
        return 0;
    }
    if (connection->must_close)
        return -1;
    drop_request(connection);
    connection->has_answered = true;
    set_state(connection, WAITING);
    lws_set_timer_usecs(wsi, LWS_SET_TIMER_USEC_CANCEL);
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

/* ---- requests ---- */

static bool is_loopback(struct lws *wsi)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getpeername(lws_get_socket_fd(wsi), (struct sockaddr *)&address, &length) < 0)
        return false;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&address)->sin6_addr;
    return address.ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(v6) ||
            (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127));
}

static void call_handler(struct connection *connection)
{
    struct server_request request = {
        .id = connection->id,
        .method = connection->method,
        .path = connection->path,
        .query = connection->query,
        .content_type = connection->content_type,
        .authorization = connection->authorization,
        .body = connection->body ? connection->body : "",
        .body_length = connection->body_length,
        .is_loopback = is_loopback(connection->wsi),
    };
    struct server_reply reply = { .status = 200 };
    set_state(connection, THINKING);
    if (connection->route->handler(connection->route->context, &request, &reply))
        start_reply(connection, &reply);
    else /* what comes next waits in the kernel */
        lws_rx_flow_control(connection->wsi, 0);
}

/* The value of a header, "" if it is not there; the caller frees. */
static char *copy_header(struct lws *wsi, enum lws_token_indexes token)
{
    int length = lws_hdr_total_length(wsi, token);
    if (length <= 0)
        return xstrdup("");
    char *text = xmalloc((size_t)length + 1);
    if (lws_hdr_copy(wsi, text, length + 1, token) < 0)
        *text = '\0';
    return text;
}

/* Libwebsockets has taken it apart at every "&". */
static char *copy_query(struct lws *wsi)
{
    char *query = xstrdup("");
    int length;
    for (int i = 0;
         (length = lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, i)) > 0; i++) {
        auto_free char *part = xmalloc((size_t)length + 1);
        auto_free char *before = query;
        if (lws_hdr_copy_fragment(wsi, part, length + 1, WSI_TOKEN_HTTP_URI_ARGS, i) < 0)
            *part = '\0';
        query = xasprintf("%s%s%s", before, i ? "&" : "", part);
    }
    return query;
}

static const char *method_of(struct lws *wsi, const char **ret_path)
{
    static const char *const names[] = {
        [LWSHUMETH_GET] = "GET",         [LWSHUMETH_POST] = "POST",
        [LWSHUMETH_OPTIONS] = "OPTIONS", [LWSHUMETH_PUT] = "PUT",
        [LWSHUMETH_PATCH] = "PATCH",     [LWSHUMETH_DELETE] = "DELETE",
        [LWSHUMETH_CONNECT] = "CONNECT", [LWSHUMETH_HEAD] = "HEAD",
    };
    char *path = NULL;
    int length = 0, method = lws_http_get_uri_and_method(wsi, &path, &length);
    *ret_path = path ? path : "";
    return method >= 0 && method < (int)(sizeof names / sizeof *names) && names[method]
               ? names[method]
               : "";
}

static const struct server_route *find_route(const struct server_listener *listener,
                                             const char *method, const char *path,
                                             bool *ret_has_path)
{
    *ret_has_path = false;
    for (size_t i = 0; i < listener->route_count; i++) {
        const struct server_route *route = &listener->routes[i];
        if (strcmp(route->path, path) != 0)
            continue;
        *ret_has_path = true;
        if (!strcmp(route->method, method))
            return route;
    }
    return NULL;
}

static bool may_have_body(const struct connection *connection)
{
    return !strcmp(connection->method, "POST") || !strcmp(connection->method, "PUT") ||
           !strcmp(connection->method, "PATCH") ||
           lws_hdr_total_length(connection->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 ||
           lws_hdr_total_length(connection->wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
}

/* The length of the body that is to come: 0 without one. False: it was refused. */
static bool read_length(struct connection *connection)
{
    struct lws *wsi = connection->wsi;
    auto_free char *text = copy_header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    connection->content_length = 0;
    if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
        refuse_and_close(connection, 501, "transfer codings are not understood");
        return false;
    }
    if (!*text && may_have_body(connection)) {
        refuse_and_close(connection, 411, "a body needs a Content-Length");
        return false;
    }
    if (strlen(text) > 18 || strspn(text, "0123456789") != strlen(text)) {
        refuse_and_close(connection, 400, "Content-Length must be a number");
        return false;
    }
    connection->content_length = (size_t)strtoull(text, NULL, 10);
    return true;
}

/* Cuts the port off "name:8081", "10.1.0.7:8081" and "[fd00::7]:8081", and the brackets;
 * the name. NULL: it is none of these. */
static char *cut_port(char *authority)
{
    bool is_v6 = *authority == '[';
    char *name = authority + is_v6;
    char *end = name + strcspn(name, is_v6 ? "]" : ":");
    if (is_v6 && *end != ']')
        return NULL;
    const char *port = end + is_v6;
    if (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1)))
        return NULL;
    *end = '\0';
    return name;
}

static bool is_address(const char *name)
{
    struct in6_addr address;
    return inet_pton(AF_INET, name, &address) == 1 ||
           inet_pton(AF_INET6, name, &address) == 1;
}

/* Whether what the request calls us is our name. One that calls us nothing is of no
 * browser. */
static bool is_our_host(const struct connection *connection)
{
    const struct server *server = connection->server;
    auto_free char *host = copy_header(connection->wsi, WSI_TOKEN_HOST);
    if (connection->listener->config->answers_any_host || !*host)
        return true;
    const char *name = cut_port(host);
    bool is_ours = name && (is_address(name) || !strcasecmp(name, "localhost"));
    for (size_t i = 0; name && !is_ours && i < server->host_count; i++)
        is_ours = !strcasecmp(name, server->hosts[i]);
    if (!is_ours)
        count_refusal(server, "host");
    return is_ours;
}

static bool check_host(struct connection *connection)
{
    if (is_our_host(connection))
        return true;
    refuse_and_close(connection, 421,
                     "the server is not known by this name: use its address, or have "
                     "allowedHosts of the controller's settings list the name");
    return false;
}

/* The first of: no such path, another method, a body that is too long. */
static bool check_route(struct connection *connection)
{
    bool has_path;
    connection->route = find_route(connection->listener->config, connection->method,
                                   connection->path, &has_path);
    const struct server_route *route = connection->route;
    connection->must_close = connection->content_length > 0 ||
                             !strcmp(connection->method, "HEAD");
    if (!has_path)
        refuse(connection, 404, "there is nothing here", NULL);
    else if (!route || !route->handler)
        refuse(connection, 405, route ? "this is a WebSocket" : "not with this method",
               "Allow: GET\r\n");
    else if (connection->content_length > route->max_body_bytes)
        refuse(connection, 413, "the body is too long", NULL);
    else
        return true;
    return false;
}

static int send_continue(struct lws *wsi)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char buffer[LWS_PRE + sizeof line];
    memcpy(buffer + LWS_PRE, line, sizeof line);
    return lws_write(wsi, (unsigned char *)buffer + LWS_PRE, sizeof line - 1,
                     LWS_WRITE_HTTP_HEADERS) < 0
               ? -1
               : 0;
}

/* The head of a request is complete. */
static int on_head(struct connection *connection)
{
    struct lws *wsi = connection->wsi;
    const char *path;
    if (connection->state != WAITING || connection->is_dying)
        return -1;
    connection->id = ++connection->server->last_id;
    connection->method = method_of(wsi, &path);
    connection->path = xstrdup(path);
    connection->query = copy_query(wsi);
    connection->content_type = copy_header(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE);
    connection->authorization = copy_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION);
    connection->must_close = false;
    connection->body_ends = 0;
    set_deadline(connection, connection->server->request_s);
    set_state(connection, READING);
    /* Of a body that comes with other requests libwebsockets 4.1 takes the wrong bytes,
     * or waits for ever: it is the only one of its connection. */
    if (connection->has_answered && may_have_body(connection))
        return -1;
    if (!check_host(connection) || !read_length(connection) || !check_route(connection))
        return 0;
    if (!connection->content_length)
        call_handler(connection);
    else if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_EXPECT) > 0)
        return send_continue(wsi);
    return 0;
}

static int on_body(struct connection *connection, const char *bytes, size_t length)
{
    struct server *server = connection->server;
    size_t had = connection->body_capacity;
    size_t total = connection->body_length + length;
    if (connection->state != READING) {
        connection->body_length = total; /* counted, and not kept */
        return 0;
    }
    /* libwebsockets counts by itself, and otherwise where the length is 0. */
    if (total > connection->content_length)
        return -1;
    if (server->bodies_bytes - had + total > SERVER_BODIES_BYTES) {
        count_refusal(server, "bodies");
        connection->body_length = total;
        refuse_and_close(connection, 503, "too many long requests at a time");
        return 0;
    }
    ARRAY_RESERVE(connection->body, &connection->body_capacity, total + 1);
    server->bodies_bytes += connection->body_capacity - had;
    memcpy(connection->body + connection->body_length, bytes, length);
    connection->body[total] = '\0';
    connection->body_length = total;
    return 0;
}

static int on_body_end(struct connection *connection)
{
    /* Reported more than once: the connection carries more than this request. */
    if (connection->state == DISCARDING || connection->body_ends++)
        return -1;
    if (connection->state == READING)
        call_handler(connection);
    return 0;
}

static int on_writable(struct connection *connection)
{
    return connection->state == WRITING ? write_reply(connection) : 0;
}

static bool has_input(struct lws *wsi)
{
    char byte;
    return recv(lws_get_socket_fd(wsi), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int on_deadline(struct connection *connection)
{
    if (connection->state == WAITING || connection->state == FEEDING)
        return 0; /* libwebsockets calls once more when a deadline is taken back */
    /* libwebsockets would ask poll(2) again and again for a client that goes on asking
     * and does not read: it has to go. One that only reads slowly has its time. */
    if (connection->state == WRITING && !connection->has_stalled &&
        !has_input(connection->wsi)) {
        connection->has_stalled = true;
        set_deadline(connection, connection->server->request_s);
        return 0;
    }
    if (connection->state != DISCARDING)
        count_refusal(connection->server, "slow");
    return -1;
}

/* ---- WebSockets ---- */

/* A page of another origin could read what its reader may, and it must not. Programs that
 * are no browsers say no origin. */
static bool is_same_origin(struct lws *wsi)
{
    auto_free char *origin = copy_header(wsi, WSI_TOKEN_ORIGIN);
    auto_free char *host = copy_header(wsi, WSI_TOKEN_HOST);
    const char *authority = strstr(origin, "://");
    return !*origin || (authority && *host && !strcasecmp(authority + 3, host));
}

static bool may_upgrade(const struct connection *connection)
{
    struct lws *wsi = connection->wsi;
    auto_free char *upgrade = copy_header(wsi, WSI_TOKEN_UPGRADE);
    const char *path, *method = method_of(wsi, &path);
    bool has_path;
    const struct server_route *route =
        find_route(connection->listener->config, method, path, &has_path);
    if (connection->state != WAITING || strcasecmp(upgrade, "websocket") != 0 || !route ||
        !route->feed || !is_our_host(connection) || !is_same_origin(wsi))
        return false;
    if (connection->server->websocket_count < SERVER_WEBSOCKETS)
        return true;
    count_refusal(connection->server, "websockets");
    return false;
}

static void start_feeding(struct connection *connection)
{
    struct server *server = connection->server;
    const char *path, *method = method_of(connection->wsi, &path);
    bool has_path;
    connection->route = find_route(connection->listener->config, method, path, &has_path);
    set_state(connection, FEEDING);
    server->websocket_count++;
    published_add_listeners(server->feed, connection->route->feed, 1);
    lws_callback_on_writable(connection->wsi);
}

/* Sends a piece of the newest version, of which one that was begun is sent to its end. */
static int feed_some(struct connection *connection)
{
    struct server *server = connection->server;
    const char *name = connection->route->feed;
    unsigned char buffer[LWS_PRE + PIECE_BYTES];
    if (!connection->text) {
        if (published_version(server->feed, name) == connection->text_version)
            return 0;
        connection->text = published_take(server->feed, name);
        connection->text_sent = 0;
    }
    const struct published_text *text = connection->text;
    size_t left = text->length - connection->text_sent;
    size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;
    int flags =
        lws_write_ws_flags(LWS_WRITE_TEXT, !connection->text_sent, length == left);
    memcpy(buffer + LWS_PRE, text->bytes + connection->text_sent, length);
    if (lws_write(connection->wsi, buffer + LWS_PRE, length,
                  (enum lws_write_protocol)flags) < 0)
        return -1;
    connection->text_sent += length;
    if (connection->text_sent == text->length) {
        connection->text_version = text->version;
        published_give_back(server->feed, text);
        connection->text = NULL;
    }
    lws_callback_on_writable(connection->wsi);
    return 0;
}

/* ---- from other threads ---- */

static void wake(void *context)
{
    struct server *server = context;
    lws_cancel_service(server->context);
}

static void post(struct server *server, const struct message *message)
{
    struct message *copy = xmalloc(sizeof *copy);
    *copy = *message;
    pthread_mutex_lock(&server->lock);
    STAILQ_INSERT_TAIL(&server->messages, copy, link);
    pthread_mutex_unlock(&server->lock);
    wake(server);
}

static void message_free(struct message *message)
{
    free(message->reply.body);
    tls_identity_free(message->identity);
    free(message);
}

static void take_message(struct server *server, struct message *message)
{
    struct connection *connection;
    struct listener *listener = message->listener;
    struct het_error err = { 0 };
    if (listener) {
        if (tls_use_identity(listener->tls, message->identity, &err) < 0)
            log_event(LOG_ERROR, "server", "certificate refused",
                      LOG_STR("error", err.message));
        return;
    }
    TAILQ_FOREACH(connection, &server->busy, link)
    if (connection->state == THINKING && connection->id == message->id) {
        lws_rx_flow_control(connection->wsi, 1);
        if (message->resumes)
            call_handler(connection);
        else
            start_reply(connection, &message->reply);
        return;
    }
}

static void take_messages(struct server *server)
{
    for (;;) {
        pthread_mutex_lock(&server->lock);
        struct message *message = STAILQ_FIRST(&server->messages);
        if (message)
            STAILQ_REMOVE_HEAD(&server->messages, link);
        pthread_mutex_unlock(&server->lock);
        if (!message)
            return;
        take_message(server, message);
        message_free(message);
    }
}

static void on_wake(struct server *server)
{
    struct connection *connection;
    take_messages(server);
    TAILQ_FOREACH(connection, &server->busy, link)
    if (connection->state == FEEDING)
        lws_callback_on_writable(connection->wsi);
}

void server_answer(struct server *server, uint64_t id, const struct server_reply *reply)
{
    post(server, &(struct message){ .id = id, .reply = *reply });
}

void server_resume(struct server *server, uint64_t id)
{
    post(server, &(struct message){ .id = id, .resumes = true });
}

int server_set_certificate(struct server *server, size_t index,
                           const char *certificate_pem, const char *key_pem,
                           struct het_error *err)
{
    assert(index < server->listener_count);
    struct listener *listener = &server->listeners[index];
    assert(listener->tls);
    struct tls_identity *identity = tls_identity_new(certificate_pem, key_pem, err);
    if (!identity)
        return -1;
    post(server, &(struct message){ .listener = listener, .identity = identity });
    return 0;
}

/* ---- libwebsockets ---- */

/* What it tells of one connection. */
static int on_connection_event(struct connection *connection,
                               enum lws_callback_reasons reason, const char *in,
                               size_t length)
{
    switch ((int)reason) { /* it has a hundred others */
    case LWS_CALLBACK_WSI_DESTROY:
        remove_connection(connection);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return may_upgrade(connection) ? 0 : -1;
    case LWS_CALLBACK_HTTP:
        return on_head(connection);
    case LWS_CALLBACK_HTTP_BODY:
        return on_body(connection, in, length);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return on_body_end(connection);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_writable(connection);
    case LWS_CALLBACK_TIMER:
        return on_deadline(connection);
    case LWS_CALLBACK_ESTABLISHED:
        start_feeding(connection);
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return feed_some(connection);
    case LWS_CALLBACK_RAW_ADOPT: /* of CONNECT */
    case LWS_CALLBACK_RAW_RX:
        return -1;
    default:
        return 0;
    }
}

static int on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                  size_t length)
{
    if (reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS) {
        struct listener *listener = lws_get_vhost_user(in);
        listener->tls = user;
        return tls_use_identity(user, listener->identity, NULL);
    }
    struct lws_vhost *vhost = wsi ? lws_get_vhost(wsi) : NULL;
    struct listener *listener = vhost ? lws_get_vhost_user(vhost) : NULL;
    if (!listener)
        return 0;
    switch ((int)reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        on_wake(listener->server);
        return 0;
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
        return make_room(listener->server) ? 0 : 1;
    case LWS_CALLBACK_WSI_CREATE:
        add_connection(listener, wsi);
        return 0;
    default:
        break;
    }
    struct connection *connection = find_connection(listener->server, wsi);
    return connection ? on_connection_event(connection, reason, in, length) : 0;
}

static void on_lws_log(int level, const char *line)
{
    (void)level;
    log_event(LOG_DEBUG, "server", "libwebsockets", LOG_STR("message", line));
}

/* ---- life ---- */

int server_parse_address(const char *text, char **ret_host, int *ret_port,
                         struct het_error *err)
{
    const char *colon = strrchr(text, ':');
    bool is_v6 = *text == '[' && colon && colon > text + 1 && colon[-1] == ']';
    char *end = NULL;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    struct in6_addr address;
    auto_free char *host = NULL;
    if (colon)
        host = xasprintf("%.*s", (int)(colon - text - 2 * is_v6), text + is_v6);
    bool is_port = colon && colon[1] >= '0' && colon[1] <= '9' && !*end && port <= 65535;
    if (!is_port || inet_pton(is_v6 ? AF_INET6 : AF_INET, host, &address) != 1)
        return het_fail(err, HET_BAD_INPUT,
                        "%.100s: must be ADDRESS:PORT, such as 0.0.0.0:8080", text);
    *ret_host = TAKE(host);
    *ret_port = (int)port;
    return 0;
}

/* libwebsockets does not say why it cannot listen. */
static int try_address(const char *host, int port, struct het_error *err)
{
    struct sockaddr_storage storage = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    bool is_v6 = strchr(host, ':') != NULL;
    int family = is_v6 ? AF_INET6 : AF_INET, on = 1;
    storage.ss_family = (sa_family_t)family;
    inet_pton(family, host, is_v6 ? (void *)&v6->sin6_addr : &v4->sin_addr);
    if (is_v6)
        v6->sin6_port = htons((uint16_t)port);
    else
        v4->sin_port = htons((uint16_t)port);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int failed = fd < 0 || bind(fd, (struct sockaddr *)&storage,
                                is_v6 ? sizeof *v6 : sizeof *v4) < 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return failed ? het_fail(err, HET_IO, "cannot listen on %s, port %d: %s", host, port,
                             strerror(error))
                  : 0;
}

static const struct lws_protocols protocols[] = {
    { .name = "http", .callback = on_lws, .rx_buffer_size = WEBSOCKET_BYTES },
    { 0 },
};

static const lws_retry_bo_t websocket_policy = {
    .secs_since_valid_ping = PING_S,
    .secs_since_valid_hangup = HANG_UP_S,
};

static int positive(int value, int other)
{
    return value > 0 ? value : other;
}

static int open_listener(struct server *server, const struct server_config *config,
                         size_t index, struct het_error *err)
{
    struct listener *listener = &server->listeners[index];
    int port;
    listener->server = server;
    listener->config = &config->listeners[index];
    if (server_parse_address(listener->config->address, &listener->host, &port, err) <
            0 ||
        try_address(listener->host, port, err) < 0)
        return -1;
    listener->name = xasprintf("listener-%zu", index);
    const char *host = listener->host;
    bool is_v6 = strchr(host, ':') != NULL, is_any = !strcmp(host, "0.0.0.0");
    struct lws_context_creation_info info = {
        .iface = is_any || !strcmp(host, "::") ? NULL : host,
        .port = port,
        .protocols = protocols,
        .vhost_name = listener->name,
        .user = listener,
        .options = LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
                   (is_v6 ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6),
        .alpn = "http/1.1",
        .keepalive_timeout = positive(config->idle_s, SERVER_IDLE_S),
        .timeout_secs_ah_idle = (unsigned)positive(config->header_s, SERVER_HEADER_S),
        .retry_and_idle_policy = &websocket_policy,
    };
    if (listener->config->certificate_pem) {
        listener->identity = tls_identity_new(listener->config->certificate_pem,
                                              listener->config->key_pem, err);
        if (!listener->identity)
            return -1;
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
                        LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
    }
    server->listener_count++;
    listener->vhost = lws_create_vhost(server->context, &info);
    if (!listener->vhost || (listener->identity && !listener->tls))
        return het_fail(err, HET_IO, "cannot listen on %s", listener->config->address);
    return 0;
}

static int open_context(struct server *server, const struct server_config *config,
                        struct het_error *err)
{
    bool has_tls = false;
    for (size_t i = 0; i < config->listener_count; i++)
        has_tls |= config->listeners[i].certificate_pem != NULL;
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS |
                   (has_tls ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0),
        .fd_limit_per_thread = MOST_CONNECTIONS + SERVER_LISTENERS + 8,
        .max_http_header_pool2 = MOST_CONNECTIONS,
        .max_http_header_data2 = SERVER_HEADER_BYTES,
        .pt_serv_buf_size = PIECE_BYTES,
        .timeout_secs = (unsigned)positive(config->header_s, SERVER_HEADER_S),
        .gid = -1,
        .uid = -1,
    };
    lws_set_log_level(LLL_ERR | LLL_WARN, on_lws_log);
    server->context = lws_create_context(&info);
    if (!server->context)
        return het_fail(err, HET_IO, "libwebsockets cannot be set up");
    return 0;
}

static int64_t read_clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Whatever clients do, this thread leaves SERVER_CPU_PERCENT of one processor and more to
 * the loop: it sleeps off what it used beyond its share, but for a burst. */
struct share {
    int64_t wall_us, cpu_us; /* when it was looked at last */
    int64_t left_us;         /* of CPU time */
};

static void keep_to_share(struct share *share)
{
    int64_t wall_us = read_clock_us(CLOCK_MONOTONIC);
    int64_t cpu_us = read_clock_us(CLOCK_THREAD_CPUTIME_ID);
    share->left_us += (wall_us - share->wall_us) * SERVER_CPU_PERCENT / 100 -
                      (cpu_us - share->cpu_us);
    if (share->left_us > BURST_US)
        share->left_us = BURST_US;
    share->wall_us = wall_us;
    share->cpu_us = cpu_us;
    if (share->left_us < 0)
        usleep((useconds_t)(-share->left_us * 100 / SERVER_CPU_PERCENT));
}

/* Signals are the main thread's. */
static void *serve(void *context)
{
    struct server *server = context;
    struct share share = { .wall_us = read_clock_us(CLOCK_MONOTONIC),
                           .cpu_us = read_clock_us(CLOCK_THREAD_CPUTIME_ID),
                           .left_us = BURST_US };
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    while (!server->is_ending && lws_service(server->context, 0) >= 0)
        keep_to_share(&share);
    return NULL;
}

static int start_thread(struct server *server, struct het_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&server->thread, NULL, serve, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server->has_thread = !error;
    return error ? het_fail(err, HET_IO, "no thread for the server: %s", strerror(error))
                 : 0;
}

struct server *server_new(const struct server_config *config, struct het_error *err)
{
    assert(config->listener_count <= SERVER_LISTENERS);
    struct server *server = xcalloc(1, sizeof *server);
    server->hosts = config->hosts;
    server->host_count = config->host_count;
    server->feed = config->feed;
    server->metrics = config->metrics;
    server->request_s = positive(config->request_s, SERVER_REQUEST_S);
    pthread_mutex_init(&server->lock, NULL);
    STAILQ_INIT(&server->messages);
    TAILQ_INIT(&server->idle);
    TAILQ_INIT(&server->busy);
    int result = open_context(server, config, err);
    for (size_t i = 0; !result && i < config->listener_count; i++)
        result = open_listener(server, config, i, err);
    if (!result)
        result = start_thread(server, err);
    if (result < 0) {
        server_free(server);
        return NULL;
    }
    if (server->feed)
        published_on_publish(server->feed, wake, server);
    return server;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    if (server->has_thread) {
        if (server->feed)
            published_on_publish(server->feed, NULL, NULL);
        server->is_ending = true;
        wake(server);
        pthread_join(server->thread, NULL);
    }
    if (server->context)
        lws_context_destroy(server->context);
    while (!STAILQ_EMPTY(&server->messages)) {
        struct message *message = STAILQ_FIRST(&server->messages);
        STAILQ_REMOVE_HEAD(&server->messages, link);
        message_free(message);
    }
    for (size_t i = 0; i < SERVER_LISTENERS; i++) {
        tls_identity_free(server->listeners[i].identity);
        free(server->listeners[i].name);
        free(server->listeners[i].host);
    }
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int server_port(const struct server *server, size_t index)
{
    assert(index < server->listener_count);
    return lws_get_vhost_listen_port(server->listeners[index].vhost);
}
