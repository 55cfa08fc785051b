#include "controller/kube/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* A request and what has come back of it. libcurl forbids to add or remove requests
 * inside its callbacks: these only collect, and the handler is called when libcurl has
 * returned. */
struct exchange {
    LIST_ENTRY(exchange) link;
    TAILQ_ENTRY(exchange) ready_link; /* with something for the handler */
    bool is_ready, is_being_delivered, is_cancelled;
    struct http_transport *transport;
    uint64_t id, generation;
    struct http_handler handler;

    bool is_outside; /* not to the server: no credentials, no TLS */
    CURL *easy;      /* NULL if it could not be set up */
    bool is_in_multi;
    struct curl_slist *headers, *connect_to;
    char error_text[CURL_ERROR_SIZE];
    char *body;
    size_t body_length, body_sent;

    int64_t retry_after_ms;
    char *bytes; /* the body, or the pieces of a stream not yet delivered */
    size_t length, capacity, max_bytes;
    bool is_too_long;
    bool is_done;
    int status;
    bool maybe_sent, is_refused;
    struct het_error error;
};

struct http_transport {
    struct transport transport;
    http_endpoint_source *source;
    void *source_context;
    void (*on_unauthorized)(void *context, uint64_t generation);
    CURLM *multi;
    uint64_t last_id;
    LIST_HEAD(exchange_list, exchange) exchanges;
    TAILQ_HEAD(exchange_queue, exchange) ready;
};

static void make_ready(struct exchange *exchange)
{
    if (exchange->is_ready)
        return;
    exchange->is_ready = true;
    TAILQ_INSERT_TAIL(&exchange->transport->ready, exchange, ready_link);
}

/* The token is in one of them. */
static void free_headers(struct curl_slist *headers)
{
    for (struct curl_slist *header = headers; header; header = header->next)
        explicit_bzero(header->data, strlen(header->data));
    curl_slist_free_all(headers);
}

static void exchange_free(struct exchange *exchange)
{
    if (exchange->is_in_multi)
        curl_multi_remove_handle(exchange->transport->multi, exchange->easy);
    if (exchange->is_ready)
        TAILQ_REMOVE(&exchange->transport->ready, exchange, ready_link);
    LIST_REMOVE(exchange, link);
    curl_easy_cleanup(exchange->easy);
    free_headers(exchange->headers);
    curl_slist_free_all(exchange->connect_to);
    free(exchange->body);
    free(exchange->bytes);
    free(exchange);
}

/* ---- callbacks of libcurl ---- */

static bool is_success(const struct exchange *exchange)
{
    long status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    (void)size; /* always 1 */
    struct exchange *exchange = context;
    bool is_streamed = exchange->handler.on_data && is_success(exchange);
    size_t most = is_success(exchange) ? exchange->max_bytes : HTTP_ERROR_BODY_BYTES;
    if (!is_streamed && count > most - exchange->length) {
        exchange->is_too_long = true;
        return 0;
    }
    ARRAY_RESERVE(exchange->bytes, &exchange->capacity, exchange->length + count + 1);
    memcpy(exchange->bytes + exchange->length, bytes, count);
    exchange->length += count;
    exchange->bytes[exchange->length] = '\0';
    if (is_streamed)
        make_ready(exchange);
    return count;
}

/* Seconds only: a date would need a clock, and the API server sends none. */
static int64_t parse_retry_after(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    int64_t seconds = 0;
    const char *digits = text;
    for (; text < end && *text >= '0' && *text <= '9' && text - digits < 9; text++)
        seconds = seconds * 10 + (*text - '0');
    bool is_number = text > digits && (text == end || *text == '\r' || *text == '\n');
    return is_number ? seconds * 1000 : -1;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    (void)size;
    static const char name[] = "Retry-After:";
    struct exchange *exchange = context;
    if (count >= 5 && !strncasecmp(line, "HTTP/", 5))
        exchange->retry_after_ms = -1; /* a new reply, after a 100 */
    if (count >= sizeof name - 1 && !strncasecmp(line, name, sizeof name - 1))
        exchange->retry_after_ms =
            parse_retry_after(line + sizeof name - 1, line + count);
    return count;
}

static size_t give_bytes(char *buffer, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t left = exchange->body_length - exchange->body_sent;
    size_t room = size * count;
    size_t given = left < room ? left : room;
    memcpy(buffer, exchange->body + exchange->body_sent, given);
    exchange->body_sent += given;
    return given;
}

/* ---- setting up ---- */

/* Where the server is: "https://HOST[:PORT][/PREFIX]" in its parts. */
struct address {
    char *host; /* with brackets, if there are any */
    char *port;
    char *prefix; /* "" or "/..." */
};

static void address_fini(struct address *address)
{
    free(address->host);
    free(address->port);
    free(address->prefix);
}

static int parse_server(const char *server, struct address *ret, struct het_error *err)
{
    static const char scheme[] = "https://";
    if (strncasecmp(server, scheme, sizeof scheme - 1) != 0)
        return het_fail(err, HET_BAD_INPUT,
                        "server \"%s\": expected https://..., nothing else is spoken",
                        server);
    const char *host = server + sizeof scheme - 1;
    size_t authority = strcspn(host, "/?#");
    const char *end = host + authority;
    const char *close = *host == '[' ? memchr(host, ']', authority) : NULL;
    const char *colon = close ? close + 1 : memchr(host, ':', authority);
    if (!colon || colon == end)
        colon = end;
    bool is_bad = colon == host || memchr(host, '@', authority) || *end == '?' ||
                  *end == '#' || (colon < end && (*colon != ':' || colon + 1 == end));
    for (const char *digit = colon + 1; digit < end; digit++)
        is_bad |= *digit < '0' || *digit > '9';
    if (is_bad)
        return het_fail(err, HET_BAD_INPUT,
                        "server \"%s\": expected https://HOST[:PORT][/PREFIX]", server);
    ret->host = xasprintf("%.*s", (int)(colon - host), host);
    ret->port = colon < end ? xasprintf("%.*s", (int)(end - colon - 1), colon + 1)
                            : xstrdup("443");
    ret->prefix = xstrdup(end);
    return 0;
}

/* The second of libcurl's two ways to fail silently: a list that lost its head lost the
 * token with it. */
static int append(struct curl_slist **list, struct het_error *err, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

static int append(struct curl_slist **list, struct het_error *err, const char *format,
                  ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int length = vasprintf(&text, format, args);
    va_end(args);
    struct curl_slist *longer = length < 0 ? NULL : curl_slist_append(*list, text);
    if (length >= 0)
        explicit_bzero(text, (size_t)length);
    free(length < 0 ? NULL : text);
    if (!longer)
        return het_fail(err, HET_IO, "cannot set up the request");
    *list = longer;
    return 0;
}

/* Sets one option or returns from the function. */
#define SET(easy, option, value)                                                         \
    do {                                                                                 \
        CURLcode code_ = curl_easy_setopt((easy), (option), (value));                    \
        if (code_ != CURLE_OK)                                                           \
            return het_fail(err, HET_IO, "libcurl refuses " #option ": %s",              \
                            curl_easy_strerror(code_));                                  \
    } while (0)

static int set_pem(CURL *easy, CURLoption option, char *pem, struct het_error *err)
{
    struct curl_blob blob = { pem, strlen(pem), CURL_BLOB_COPY };
    SET(easy, option, &blob);
    return 0;
}

/* Options of every request, whatever its address. */
static int set_caution(CURL *easy, const char *scheme, struct het_error *err)
{
    SET(easy, CURLOPT_PROTOCOLS_STR, scheme);
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, CURLOPT_UNRESTRICTED_AUTH, 0L);
    SET(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(easy, CURLOPT_HTTPAUTH, CURLAUTH_NONE);
    SET(easy, CURLOPT_NOPROXY, "");
    SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    return 0;
}

/* There is no way to turn verification off. */
static int set_security(CURL *easy, const struct http_endpoint *endpoint,
                        struct het_error *err)
{
    SET(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    SET(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (set_caution(easy, "https", err) < 0)
        return -1;
    /* "" also keeps the environment's proxies out. */
    SET(easy, CURLOPT_PROXY, endpoint->proxy ? endpoint->proxy : "");
    if (endpoint->ca_pem) {
        /* The cluster's CA only, not the system's beside it. */
        SET(easy, CURLOPT_CAINFO, NULL);
        SET(easy, CURLOPT_CAPATH, NULL);
        if (set_pem(easy, CURLOPT_CAINFO_BLOB, endpoint->ca_pem, err) < 0)
            return -1;
    }
    if (endpoint->client_certificate_pem &&
        (set_pem(easy, CURLOPT_SSLCERT_BLOB, endpoint->client_certificate_pem, err) < 0 ||
         set_pem(easy, CURLOPT_SSLKEY_BLOB, endpoint->client_key_pem, err) < 0))
        return -1;
    return 0;
}

/* The URL, and with another name for TLS the way from that name to the server. */
static int set_address(struct exchange *exchange, const struct http_endpoint *endpoint,
                       const char *path, struct het_error *err)
{
    struct address address __attribute__((cleanup(address_fini))) = { 0 };
    if (parse_server(endpoint->server, &address, err) < 0)
        return -1;
    const char *name = endpoint->tls_server_name;
    bool has_name = name && *name;
    auto_free char *url = xasprintf("https://%s:%s%s%s", has_name ? name : address.host,
                                    address.port, address.prefix, path);
    SET(exchange->easy, CURLOPT_URL, url);
    if (!has_name)
        return 0;
    if (append(&exchange->connect_to, err, "%s:%s:%s:%s", name, address.port,
               address.host, address.port) < 0 ||
        append(&exchange->headers, err, "Host: %s:%s", address.host, address.port) < 0)
        return -1;
    SET(exchange->easy, CURLOPT_CONNECT_TO, exchange->connect_to);
    return 0;
}

static bool is_literal_address(const char *host, size_t length)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in6_addr address;
    bool is_v6 = length > 2 && *host == '[' && host[length - 1] == ']';
    if (length >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(is_v6 ? length - 2 : length), host + is_v6);
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, text, &address) == 1;
}

/* For an address other than the server's: sends none of our credentials and does not
 * reuse the connection. */
static int set_outside(CURL *easy, const char *url, struct het_error *err)
{
    const char *host = url + strlen(HTTP_OUTSIDE);
    size_t length = *host == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/");
    if (!is_literal_address(host, length))
        return het_fail(err, HET_IO, "%s: its host is no literal address", url);
    if (set_caution(easy, "http", err) < 0)
        return -1;
    SET(easy, CURLOPT_PROXY, "");
    SET(easy, CURLOPT_URL, url);
    SET(easy, CURLOPT_FRESH_CONNECT, 1L);
    SET(easy, CURLOPT_FORBID_REUSE, 1L);
    return 0;
}

static int set_body(struct exchange *exchange, const struct http_request *request,
                    struct het_error *err)
{
    CURL *easy = exchange->easy;
    bool is_get = !strcmp(request->method, "GET");
    if (request->body) {
        /* Through a callback and without a way to rewind: else libcurl would send a
         * write again by itself after a reused connection broke. */
        exchange->body = xmalloc(request->body_length + 1);
        memcpy(exchange->body, request->body, request->body_length);
        exchange->body_length = request->body_length;
        SET(easy, CURLOPT_POST, 1L);
        SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        SET(easy, CURLOPT_READFUNCTION, give_bytes);
        SET(easy, CURLOPT_READDATA, exchange);
        if (append(&exchange->headers, err, "Content-Type: %s", request->content_type) <
                0 ||
            append(&exchange->headers, err, "Expect:") < 0)
            return -1;
    }
    SET(easy, CURLOPT_CUSTOMREQUEST, request->method);
    /* A connection that is not reused causes no second send either. */
    bool is_bare_write = !is_get && !request->body;
    SET(easy, CURLOPT_FRESH_CONNECT, request->new_connection || is_bare_write ? 1L : 0L);
    return 0;
}

static int set_limits(struct exchange *exchange, const struct http_request *request,
                      struct het_error *err)
{
    CURL *easy = exchange->easy;
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_TIMEOUT_MS);
    SET(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    SET(easy, CURLOPT_TCP_KEEPINTVL, 10L);
    exchange->max_bytes = request->max_response_bytes ? request->max_response_bytes
                                                      : TRANSPORT_DEFAULT_RESPONSE_BYTES;
    if (exchange->handler.on_data || exchange->is_outside)
        return 0;
    SET(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    SET(easy, CURLOPT_LOW_SPEED_TIME, (long)HTTP_STALL_S);
    return 0;
}

static int set_callbacks(struct exchange *exchange, struct het_error *err)
{
    CURL *easy = exchange->easy;
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_PRIVATE, exchange);
    SET(easy, CURLOPT_ERRORBUFFER, exchange->error_text);
    SET(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    SET(easy, CURLOPT_WRITEDATA, exchange);
    SET(easy, CURLOPT_HEADERFUNCTION, on_header);
    SET(easy, CURLOPT_HEADERDATA, exchange);
    return 0;
}

static int set_headers(struct exchange *exchange, const struct http_endpoint *endpoint,
                       const struct http_request *request, struct het_error *err)
{
    if (append(&exchange->headers, err, "Accept: application/json") < 0)
        return -1;
    if (endpoint->token && !exchange->is_outside &&
        append(&exchange->headers, err, "Authorization: Bearer %s", endpoint->token) < 0)
        return -1;
    SET(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    SET(exchange->easy, CURLOPT_USERAGENT,
        request->user_agent ? request->user_agent : "heterotrain");
    SET(exchange->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    return 0;
}

static int set_target(struct exchange *exchange, const struct http_endpoint *endpoint,
                      const char *path, struct het_error *err)
{
    if (exchange->is_outside)
        return set_outside(exchange->easy, path, err);
    return set_security(exchange->easy, endpoint, err) < 0
               ? -1
               : set_address(exchange, endpoint, path, err);
}

static int set_up(struct exchange *exchange, const struct http_request *request,
                  struct het_error *err)
{
    struct http_transport *transport = exchange->transport;
    const struct http_endpoint *endpoint = transport->source(transport->source_context);
    exchange->generation = endpoint->generation;
    exchange->is_outside = http_is_outside(request->path);
    exchange->easy = curl_easy_init();
    if (!exchange->easy)
        return het_fail(err, HET_IO, "libcurl gives no handle");
    if (set_callbacks(exchange, err) < 0 || set_body(exchange, request, err) < 0 ||
        set_limits(exchange, request, err) < 0 ||
        set_target(exchange, endpoint, request->path, err) < 0 ||
        set_headers(exchange, endpoint, request, err) < 0)
        return -1;
    CURLMcode code = curl_multi_add_handle(transport->multi, exchange->easy);
    if (code != CURLM_OK)
        return het_fail(err, HET_IO, "libcurl: %s", curl_multi_strerror(code));
    exchange->is_in_multi = true;
    return 0;
}

static uint64_t http_start(struct transport *base, const struct http_request *request,
                           const struct http_handler *handler)
{
    struct http_transport *transport = (struct http_transport *)base;
    struct exchange *exchange = xcalloc(1, sizeof *exchange);
    exchange->transport = transport;
    exchange->id = ++transport->last_id;
    exchange->handler = *handler;
    exchange->retry_after_ms = -1;
    LIST_INSERT_HEAD(&transport->exchanges, exchange, link);
    if (set_up(exchange, request, &exchange->error) < 0) {
        exchange->is_done = true;
        make_ready(exchange);
    }
    return exchange->id;
}

static void http_cancel(struct transport *base, uint64_t id)
{
    struct http_transport *transport = (struct http_transport *)base;
    struct exchange *exchange = LIST_FIRST(&transport->exchanges);
    while (exchange && exchange->id != id)
        exchange = LIST_NEXT(exchange, link);
    if (!exchange)
        return;
    if (exchange->is_being_delivered)
        exchange->is_cancelled = true; /* freed when its callback returns */
    else
        exchange_free(exchange);
}

/* ---- running ---- */

static void finish(struct exchange *exchange, CURLcode code)
{
    long status = 0, request_bytes = 0, why = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(exchange->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    exchange->is_done = true;
    curl_easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO, &why);
    exchange->maybe_sent = request_bytes > 0;
    exchange->is_refused = code == CURLE_COULDNT_CONNECT && why == ECONNREFUSED;
    make_ready(exchange);
    if (code == CURLE_OK) {
        exchange->status = (int)status;
        return;
    }
    if (exchange->is_too_long) {
        het_fail(&exchange->error, HET_BAD_INPUT, "reply of more than %zu bytes",
                 status >= 200 && status < 300 ? exchange->max_bytes
                                               : (size_t)HTTP_ERROR_BODY_BYTES);
        return;
    }
    /* OpenSSL's messages can be obscure; libcurl's say what failed. */
    het_fail(&exchange->error, HET_IO, "%s%s%s", curl_easy_strerror(code),
             *exchange->error_text ? ": " : "", exchange->error_text);
}

static int run_curl(struct http_transport *transport)
{
    int running;
    CURLMcode code = curl_multi_perform(transport->multi, &running);
    if (code != CURLM_OK)
        return -1;
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(transport->multi, &left))) {
        char *private;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        finish((struct exchange *)(void *)private, result);
    }
    return 0;
}

/* Delivers the pieces that have arrived. */
static void deliver_data(struct exchange *exchange)
{
    size_t length = exchange->length;
    auto_free char *bytes = TAKE(exchange->bytes);
    exchange->length = exchange->capacity = 0;
    exchange->handler.on_data(exchange->handler.context, bytes, length);
}

static void deliver_end(struct exchange *exchange)
{
    struct http_transport *transport = exchange->transport;
    bool has_body = exchange->status && exchange->bytes;
    const struct http_reply reply = {
        .status = exchange->status,
        .retry_after_ms = exchange->retry_after_ms,
        .body = has_body ? exchange->bytes : "",
        .body_length = has_body ? exchange->length : 0,
        .maybe_sent = exchange->maybe_sent,
        .is_refused = exchange->is_refused,
        .error = exchange->error,
    };
    if (reply.status == 401 && !exchange->is_outside && transport->on_unauthorized)
        transport->on_unauthorized(transport->source_context, exchange->generation);
    exchange->handler.on_done(exchange->handler.context, &reply);
}

static void deliver(struct exchange *exchange)
{
    exchange->is_being_delivered = true;
    if (exchange->length && exchange->handler.on_data && is_success(exchange))
        deliver_data(exchange);
    bool is_over = exchange->is_cancelled || exchange->is_done;
    if (!exchange->is_cancelled && exchange->is_done)
        deliver_end(exchange);
    exchange->is_being_delivered = false;
    if (is_over || exchange->is_cancelled)
        exchange_free(exchange);
}

/* Returns whether there was anything. */
static bool deliver_all(struct http_transport *transport)
{
    bool has_delivered = false;
    struct exchange *exchange;
    while ((exchange = TAILQ_FIRST(&transport->ready))) {
        TAILQ_REMOVE(&transport->ready, exchange, ready_link);
        exchange->is_ready = false;
        deliver(exchange);
        has_delivered = true;
    }
    return has_delivered;
}

static int wait_for_events(struct http_transport *transport, struct pollfd *extra,
                           size_t extra_count, int64_t timeout_ms)
{
    auto_free struct curl_waitfd *fds = xcalloc(extra_count, sizeof *fds);
    for (size_t i = 0; i < extra_count; i++) {
        fds[i].fd = extra[i].fd;
        fds[i].events = (short)((extra[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                                (extra[i].events & POLLPRI ? CURL_WAIT_POLLPRI : 0) |
                                (extra[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
    }
    int timeout = timeout_ms < 0 ? 0 : timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
    CURLMcode code =
        curl_multi_poll(transport->multi, fds, (unsigned)extra_count, timeout, NULL);
    /* libcurl does not report that the other side hung up. */
    for (size_t i = 0; i < extra_count; i++)
        extra[i].revents = 0;
    if (extra_count)
        poll(extra, extra_count, 0);
    return code == CURLM_OK ? 0 : -1;
}

static int http_poll(struct transport *base, struct pollfd *extra, size_t extra_count,
                     int64_t timeout_ms)
{
    struct http_transport *transport = (struct http_transport *)base;
    if (run_curl(transport) < 0)
        return -1;
    if (deliver_all(transport))
        timeout_ms = 0;
    if (wait_for_events(transport, extra, extra_count, timeout_ms) < 0 ||
        run_curl(transport) < 0)
        return -1;
    deliver_all(transport);
    return 0;
}

static void http_free(struct transport *base)
{
    struct http_transport *transport = (struct http_transport *)base;
    while (!LIST_EMPTY(&transport->exchanges))
        exchange_free(LIST_FIRST(&transport->exchanges));
    curl_multi_cleanup(transport->multi);
    free(transport);
}

static const struct transport_ops http_ops = { http_start, http_cancel, http_poll,
                                               http_free };

struct transport *http_transport_new(http_endpoint_source *source, void *context,
                                     struct het_error *err)
{
    CURLM *multi = curl_multi_init();
    bool is_set_up =
        multi &&
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)HTTP_IDLE_CONNECTIONS) ==
            CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK;
    if (!is_set_up) {
        curl_multi_cleanup(multi);
        het_fail(err, HET_IO, "libcurl cannot be set up");
        return NULL;
    }
    struct http_transport *transport = xcalloc(1, sizeof *transport);
    transport->transport.ops = &http_ops;
    transport->source = source;
    transport->source_context = context;
    transport->multi = multi;
    LIST_INIT(&transport->exchanges);
    TAILQ_INIT(&transport->ready);
    return &transport->transport;
}

void http_transport_wake(struct transport *base)
{
    curl_multi_wakeup(((struct http_transport *)base)->multi);
}

void http_transport_on_unauthorized(struct transport *base,
                                    void (*on_unauthorized)(void *context,
                                                            uint64_t generation))
{
    ((struct http_transport *)base)->on_unauthorized = on_unauthorized;
}
