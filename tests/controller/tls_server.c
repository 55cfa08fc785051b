#include "tests/controller/tls_server.h"

#include "planner/modules.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tls_server {
    int listener, port;
    SSL_CTX *context;
    char *ca_pem, *client_certificate_pem, *client_key_pem;
    pthread_t acceptor;
    pthread_t *threads; /* of the connections; the acceptor's until it has ended */
    size_t thread_count, thread_capacity;
    atomic_int connections, requests;
    atomic_bool is_ending;
};

/* ---- certificates ---- */

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

/* Signed by itself if there is no issuer; then a CA. */
static X509 *make_certificate(const char *name, EVP_PKEY *key, X509 *issuer,
                              EVP_PKEY *issuer_key, const char *alternative_names)
{
    static long serial = 1;
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : subject);
    if (!issuer)
        add_extension(certificate, certificate, NID_basic_constraints,
                      "critical,CA:TRUE");
    if (alternative_names)
        add_extension(certificate, issuer, NID_subject_alt_name, alternative_names);
    X509_sign(certificate, issuer_key ? issuer_key : key, EVP_sha256());
    return certificate;
}

static char *take_bio(BIO *bio)
{
    char *data;
    long length = BIO_get_mem_data(bio, &data);
    char *text = xasprintf("%.*s", (int)length, data);
    BIO_free(bio);
    return text;
}

static char *certificate_pem(X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    return take_bio(bio);
}

static char *key_pem(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return take_bio(bio);
}

static void make_credentials(struct tls_server *server,
                             const struct tls_server_options *options)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256"),
             *client_key = EVP_EC_gen("P-256");
    X509 *ca = make_certificate("test CA", ca_key, NULL, NULL, NULL);
    X509 *certificate = make_certificate("server", key, ca, ca_key, options->names);
    X509 *client = make_certificate("tester", client_key, ca, ca_key, NULL);
    server->ca_pem = certificate_pem(ca);
    server->client_certificate_pem = certificate_pem(client);
    server->client_key_pem = key_pem(client_key);

    server->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(server->context, certificate);
    SSL_CTX_use_PrivateKey(server->context, key);
    if (options->highest_version) {
        SSL_CTX_set_min_proto_version(server->context, 0);
        SSL_CTX_set_max_proto_version(server->context, options->highest_version);
        SSL_CTX_set_cipher_list(server->context, "ALL:@SECLEVEL=0");
    }
    if (options->wants_client) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(server->context), ca);
        SSL_CTX_set_verify(server->context,
                           SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_session_id_context(server->context, (const unsigned char *)"t", 1);
    }
    X509_free(ca);
    X509_free(certificate);
    X509_free(client);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    EVP_PKEY_free(client_key);
}

/* ---- requests ---- */

struct connection {
    struct tls_server *server;
    int socket;
    SSL *ssl;
    int request_count;
    char buffer[65536]; /* a request: its head, and what has come of its body */
    size_t length;
};

static bool send_text(struct connection *connection, const char *text)
{
    size_t length = strlen(text);
    return !length || SSL_write(connection->ssl, text, (int)length) > 0;
}

static bool send_reply(struct connection *connection, int status, const char *headers,
                       const char *body)
{
    auto_free char *text =
        xasprintf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\nContent-Type: text/plain\r\n"
                  "%s\r\n%s",
                  status, strlen(body), headers, body);
    return send_text(connection, text);
}

static bool send_big(struct connection *connection, long length, bool says_length)
{
    auto_free char *head =
        says_length ? xasprintf("HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", length)
                    : xasprintf("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    bool is_sent = send_text(connection, head);
    char block[4097];
    memset(block, 'x', sizeof block);
    while (is_sent && length > 0) {
        block[length < 4096 ? length : 4096] = '\0';
        is_sent = send_text(connection, block);
        length -= 4096;
    }
    return is_sent && says_length;
}

static bool send_chunks(struct connection *connection, int count, bool has_end)
{
    bool is_sent =
        send_text(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < count && is_sent; i++) {
        auto_free char *piece = xasprintf("chunk %d\n", i);
        auto_free char *chunk = xasprintf("%zx\r\n%s\r\n", strlen(piece), piece);
        is_sent = send_text(connection, chunk);
        usleep(10000);
    }
    return is_sent && has_end && send_text(connection, "0\r\n\r\n");
}

static void wait_for_end(struct connection *connection)
{
    char byte;
    while (!connection->server->is_ending && SSL_read(connection->ssl, &byte, 1) > 0)
        ;
}

static char *client_name(SSL *ssl)
{
    X509 *certificate = SSL_get1_peer_certificate(ssl);
    if (!certificate)
        return xstrdup("");
    char name[100] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof name);
    X509_free(certificate);
    return xstrdup(name);
}

/* `head` ends behind its last line. */
static bool send_echo(struct connection *connection, const char *head, const char *body)
{
    const char *sni = SSL_get_servername(connection->ssl, TLSEXT_NAMETYPE_host_name);
    auto_free char *client = client_name(connection->ssl);
    auto_free char *text =
        xasprintf("%ssni: %s\nclient: %s\n\n%s", head, sni ? sni : "", client, body);
    return send_reply(connection, 200, "", text);
}

/* Returns whether the connection goes on. */
static bool answer(struct connection *connection, const char *path, const char *head,
                   const char *body)
{
    const char *number = strrchr(path, '/') + 1;
    if (!strncmp(path, "/status/", 8)) {
        auto_free char *text = xasprintf("status %s", number);
        return send_reply(connection, atoi(number),
                          atoi(number) == 429 ? "Retry-After: 7\r\n" : "", text);
    }
    if (!strncmp(path, "/retry-after/", 13)) {
        auto_free char *header = xasprintf("Retry-After: %s\r\n", number);
        return send_reply(connection, 503, header, "");
    }
    if (!strncmp(path, "/big/", 5) || !strncmp(path, "/big-unsaid/", 12))
        return send_big(connection, atol(number), path[4] == '/');
    if (!strncmp(path, "/chunks", 7))
        return send_chunks(connection, atoi(number), path[7] == '/');
    if (!strcmp(path, "/redirect"))
        return send_reply(connection, 302, "Location: /echo\r\n", "");
    if (!strcmp(path, "/half")) {
        send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        return false;
    }
    if (!strcmp(path, "/silent-stream"))
        send_text(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\nhi\n\r\n");
    if (!strcmp(path, "/silent-stream") || !strcmp(path, "/hang")) {
        wait_for_end(connection);
        return false;
    }
    if (!strcmp(path, "/close") ||
        (!strcmp(path, "/reset-reused") && connection->request_count > 1))
        return false;
    return send_echo(connection, head, body);
}

/* Reads until `needed` bytes are there, or the end of the head if 0. */
static bool read_more(struct connection *connection, size_t needed)
{
    while (needed ? connection->length < needed
                  : !strstr(connection->buffer, "\r\n\r\n")) {
        size_t room = sizeof connection->buffer - 1 - connection->length;
        int count =
            SSL_read(connection->ssl, connection->buffer + connection->length, (int)room);
        if (count <= 0)
            return false;
        connection->length += (size_t)count;
        connection->buffer[connection->length] = '\0';
    }
    return true;
}

static bool serve_request(struct connection *connection)
{
    connection->length = 0;
    connection->buffer[0] = '\0';
    if (!read_more(connection, 0))
        return false;
    char *end = strstr(connection->buffer, "\r\n\r\n");
    size_t head_length = (size_t)(end - connection->buffer) + 4;
    char *announced = strcasestr(connection->buffer, "content-length:");
    size_t body_length = announced && announced < end ? (size_t)atol(announced + 15) : 0;
    if (body_length && !read_more(connection, head_length + body_length))
        return false;
    auto_free char *body =
        xasprintf("%.*s", (int)body_length, connection->buffer + head_length);
    auto_free char *head = xasprintf("%.*s\n", (int)head_length - 4, connection->buffer);
    char *to = head;
    for (const char *from = head; (*to = *from); from++)
        to += *from != '\r';
    char path[1000] = "";
    sscanf(connection->buffer, "%*s %999s", path);
    connection->server->requests++;
    connection->request_count++;
    return answer(connection, path, head, body);
}

static void *serve_connection(void *argument)
{
    struct connection *connection = argument;
    SSL_set_fd(connection->ssl, connection->socket);
    if (SSL_accept(connection->ssl) == 1)
        while (!connection->server->is_ending && serve_request(connection))
            ;
    SSL_free(connection->ssl);
    close(connection->socket);
    free(connection);
    return NULL;
}

static void *accept_connections(void *argument)
{
    struct tls_server *server = argument;
    for (;;) {
        int socket = accept(server->listener, NULL, NULL);
        if (socket < 0 || server->is_ending) {
            close(socket);
            return NULL;
        }
        /* So that a thread sees the end of the server. */
        struct timeval limit = { .tv_sec = 5 };
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        server->connections++;
        struct connection *connection = xcalloc(1, sizeof *connection);
        connection->server = server;
        connection->socket = socket;
        connection->ssl = SSL_new(server->context);
        ARRAY_RESERVE(server->threads, &server->thread_capacity,
                      server->thread_count + 1);
        int result = pthread_create(&server->threads[server->thread_count++], NULL,
                                    serve_connection, connection);
        assert(result == 0);
    }
}

struct tls_server *tls_server_new(const struct tls_server_options *options)
{
    signal(SIGPIPE, SIG_IGN);
    struct tls_server *server = xcalloc(1, sizeof *server);
    make_credentials(server, options);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int result = bind(server->listener, (struct sockaddr *)&address, length);
    assert(result == 0);
    listen(server->listener, 64);
    getsockname(server->listener, (struct sockaddr *)&address, &length);
    server->port = ntohs(address.sin_port);
    pthread_create(&server->acceptor, NULL, accept_connections, server);
    return server;
}

/* Clients must have closed their connections. The threads are joined, not counted: what
 * OpenSSL keeps for each is freed at its very end, and must not be while the process
 * ends, which frees the same. */
void tls_server_free(struct tls_server *server)
{
    if (!server)
        return;
    server->is_ending = true;
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    for (size_t i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
    free(server->threads);
    SSL_CTX_free(server->context);
    free(server->ca_pem);
    free(server->client_certificate_pem);
    free(server->client_key_pem);
    free(server);
}

int tls_server_port(const struct tls_server *server)
{
    return server->port;
}

const char *tls_server_ca(const struct tls_server *server)
{
    return server->ca_pem;
}

const char *tls_server_client_certificate(const struct tls_server *server)
{
    return server->client_certificate_pem;
}

const char *tls_server_client_key(const struct tls_server *server)
{
    return server->client_key_pem;
}

int tls_server_connections(const struct tls_server *server)
{
    return server->connections;
}

int tls_server_requests(const struct tls_server *server)
{
    return server->requests;
}
