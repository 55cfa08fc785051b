#include "controller/kube/auth.h"

#include "controller/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct auth {
    struct http_endpoint endpoint;
    /* Where the parts of the endpoint come from; NULL: no file. */
    char *ca_file, *certificate_file, *key_file, *token_file;
    char *ns, *description;
    bool has_time, is_token_refused;
    int64_t token_read_ms, token_due_ms, certificates_due_ms;
};

/* ---- files ---- */

static void free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static int read_open_file(int fd, const char *path, size_t most, char **ret_text,
                          struct het_error *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return het_fail(err, HET_IO, "%s: not a regular file", path);
    if (status.st_size > (off_t)most)
        return het_fail(err, HET_BAD_INPUT, "%s: larger than %zu bytes", path, most);
    char *text = xmalloc(most + 1);
    size_t length = 0;
    ssize_t count = 0;
    while (length < most && (count = read(fd, text + length, most - length)) > 0)
        length += (size_t)count;
    text[length] = '\0';
    if (count < 0 || strlen(text) != length) {
        explicit_bzero(text, length);
        free(text);
        return count < 0 ? het_fail(err, HET_IO, "%s: %s", path, strerror(errno))
                         : het_fail(err, HET_BAD_INPUT, "%s: has a NUL inside", path);
    }
    *ret_text = xreallocarray(text, length + 1, 1);
    return 0;
}

/* The text of a regular file (a symbolic link to one is how pods get theirs). */
static int read_file(const char *path, size_t most, char **ret_text,
                     struct het_error *err)
{
    /* O_NONBLOCK: a fifo must not stop us before we see that it is one. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
    int result = read_open_file(fd, path, most, ret_text, err);
    close(fd);
    return result;
}

/* Trims white space. Characters that a token may not contain could end its header and
 * begin another. */
static int check_token(char *text, const char *from, struct het_error *err)
{
    size_t start = strspn(text, " \t\r\n");
    size_t length = strlen(text) - start;
    memmove(text, text + start, length + 1);
    while (length && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    if (!length)
        return het_fail(err, HET_BAD_INPUT, "%s: the token is empty", from);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return het_fail(err, HET_BAD_INPUT,
                            "%s: the token has a character that no token may have", from);
    return 0;
}

static int read_token(const char *path, char **ret_token, struct het_error *err)
{
    char *text;
    if (read_file(path, AUTH_TOKEN_BYTES, &text, err) < 0)
        return -1;
    if (check_token(text, path, err) < 0) {
        free_secret(text);
        return -1;
    }
    *ret_token = text;
    return 0;
}

static void warn_of_mode(const char *path)
{
    struct stat status;
    if (!path || stat(path, &status) < 0)
        return;
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        log_event(LOG_WARNING, "auth", "token-file-writable-by-others",
                  LOG_STR("file", path));
    else if (status.st_mode & S_IROTH)
        log_event(LOG_INFO, "auth", "token-file-readable-by-all", LOG_STR("file", path));
}

/* ---- certificates ---- */

/* OpenSSL would ask the terminal for the password of an encrypted key. */
static int give_no_password(char *buffer, int size, int is_writing, void *context)
{
    (void)buffer, (void)size, (void)is_writing, (void)context;
    return -1;
}

static X509 *parse_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, give_no_password, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return certificate;
}

static EVP_PKEY *parse_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, give_no_password, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

static int check_ca(const char *pem, struct het_error *err)
{
    X509 *certificate = parse_certificate(pem);
    X509_free(certificate);
    return certificate ? 0
                       : het_fail(err, HET_BAD_INPUT,
                                  "the certificate authority is no PEM certificate");
}

static int check_pair(const char *certificate_pem, const char *key_pem,
                      struct het_error *err)
{
    X509 *certificate = parse_certificate(certificate_pem);
    EVP_PKEY *key = parse_key(key_pem);
    bool is_pair = certificate && key && X509_check_private_key(certificate, key) == 1;
    ERR_clear_error();
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (!certificate)
        return het_fail(err, HET_BAD_INPUT,
                        "the client certificate is no PEM certificate");
    if (!key)
        return het_fail(err, HET_BAD_INPUT,
                        "the client key is no PEM private key, or it is encrypted (not "
                        "supported)");
    return is_pair ? 0
                   : het_fail(err, HET_BAD_INPUT,
                              "the client key does not belong to the client certificate");
}

/* ---- reading again ---- */

/* Reads `path` into `*ret` unless it is NULL; then `*ret` is a copy of `present`. */
static int read_or_copy(const char *path, const char *present, char **ret,
                        struct het_error *err)
{
    if (path)
        return read_file(path, AUTH_FILE_BYTES, ret, err);
    *ret = present ? xstrdup(present) : NULL;
    return 0;
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Takes `fresh` over in place of `*present`. */
static void replace_secret(struct auth *auth, char **present, char *fresh)
{
    if (!is_same(*present, fresh))
        auth->endpoint.generation++;
    free_secret(*present);
    *present = fresh;
}

static int load_token(struct auth *auth, struct het_error *err)
{
    char *token;
    if (!auth->token_file)
        return 0;
    if (read_token(auth->token_file, &token, err) < 0)
        return -1;
    replace_secret(auth, &auth->endpoint.token, token);
    return 0;
}

/* All or nothing: a certificate and the key of another are worse than two old ones. */
static int load_certificates(struct auth *auth, struct het_error *err)
{
    struct http_endpoint *endpoint = &auth->endpoint;
    char *ca = NULL, *certificate = NULL, *key = NULL;
    bool is_good = read_or_copy(auth->ca_file, endpoint->ca_pem, &ca, err) == 0 &&
                   read_or_copy(auth->certificate_file, endpoint->client_certificate_pem,
                                &certificate, err) == 0 &&
                   read_or_copy(auth->key_file, endpoint->client_key_pem, &key, err) ==
                       0 &&
                   (!ca || check_ca(ca, err) == 0) &&
                   (!certificate || check_pair(certificate, key, err) == 0);
    if (!is_good) {
        free(ca);
        free(certificate);
        free_secret(key);
        return -1;
    }
    replace_secret(auth, &endpoint->ca_pem, ca);
    replace_secret(auth, &endpoint->client_certificate_pem, certificate);
    replace_secret(auth, &endpoint->client_key_pem, key);
    return 0;
}

static void step_token(struct auth *auth, int64_t now_ms)
{
    bool is_due =
        now_ms >= auth->token_due_ms ||
        (auth->is_token_refused && now_ms - auth->token_read_ms >= AUTH_REFUSED_MS);
    if (!auth->token_file || !is_due)
        return;
    struct het_error err = { 0 };
    int result = load_token(auth, &err);
    if (result < 0)
        log_event(LOG_WARNING, "auth", "token-not-read", LOG_STR("message", err.message));
    auth->is_token_refused = false;
    auth->token_read_ms = now_ms;
    auth->token_due_ms = now_ms + (result < 0 ? AUTH_RETRY_MS : AUTH_TOKEN_MS);
}

static bool has_certificate_files(const struct auth *auth)
{
    return auth->ca_file || auth->certificate_file || auth->key_file;
}

static void step_certificates(struct auth *auth, int64_t now_ms)
{
    if (!has_certificate_files(auth) || now_ms < auth->certificates_due_ms)
        return;
    struct het_error err = { 0 };
    int result = load_certificates(auth, &err);
    if (result < 0)
        log_event(LOG_WARNING, "auth", "certificates-not-read",
                  LOG_STR("message", err.message));
    auth->certificates_due_ms = now_ms +
                                (result < 0 ? AUTH_RETRY_MS : AUTH_CERTIFICATES_MS);
}

void auth_step(struct auth *auth, int64_t now_ms)
{
    if (!auth->has_time) {
        /* Everything was read just now. */
        auth->has_time = true;
        auth->token_read_ms = now_ms;
        auth->token_due_ms = now_ms + AUTH_TOKEN_MS;
        auth->certificates_due_ms = now_ms + AUTH_CERTIFICATES_MS;
    }
    step_token(auth, now_ms);
    step_certificates(auth, now_ms);
}

int64_t auth_next_ms(const struct auth *auth)
{
    int64_t next_ms = INT64_MAX;
    if (!auth->has_time)
        return auth->token_file || has_certificate_files(auth) ? 0 : next_ms;
    if (auth->token_file)
        next_ms = auth->is_token_refused &&
                          auth->token_read_ms + AUTH_REFUSED_MS < auth->token_due_ms
                      ? auth->token_read_ms + AUTH_REFUSED_MS
                      : auth->token_due_ms;
    if (has_certificate_files(auth) && auth->certificates_due_ms < next_ms)
        next_ms = auth->certificates_due_ms;
    return next_ms;
}

void auth_unauthorized(void *context, uint64_t generation)
{
    struct auth *auth = context;
    /* A token that came after the request was made is not the one refused. */
    if (generation == auth->endpoint.generation)
        auth->is_token_refused = true;
}

const struct http_endpoint *auth_endpoint(void *context)
{
    return &((struct auth *)context)->endpoint;
}

const char *auth_namespace(const struct auth *auth)
{
    return auth->ns && *auth->ns ? auth->ns : "default";
}

const char *auth_description(const struct auth *auth)
{
    return auth->description;
}

void auth_free(struct auth *auth)
{
    if (!auth)
        return;
    struct http_endpoint *endpoint = &auth->endpoint;
    free(endpoint->server);
    free(endpoint->tls_server_name);
    free_secret(endpoint->proxy); /* may hold a password */
    free(endpoint->ca_pem);
    free(endpoint->client_certificate_pem);
    free_secret(endpoint->client_key_pem);
    free_secret(endpoint->token);
    free(auth->ca_file);
    free(auth->certificate_file);
    free(auth->key_file);
    free(auth->token_file);
    free(auth->ns);
    free(auth->description);
    free(auth);
}

/* ---- service account ---- */

static void load_service_account(const struct auth_config *config, struct auth *auth)
{
    const char *dir = config->service_account_dir ? config->service_account_dir
                                                  : SERVICE_ACCOUNT_DIR;
    const char *host = config->service_host;
    const char *port =
        config->service_port && *config->service_port ? config->service_port : "443";
    bool is_ipv6 = strchr(host, ':') != NULL;
    auth->endpoint.server = xasprintf("https://%s%s%s:%s", is_ipv6 ? "[" : "", host,
                                      is_ipv6 ? "]" : "", port);
    auth->ca_file = xasprintf("%s/ca.crt", dir);
    auth->token_file = xasprintf("%s/token", dir);
    auth->description = xasprintf("service account in %s", dir);
    auto_free char *ns_file = xasprintf("%s/namespace", dir);
    struct het_error ignored;
    if (read_file(ns_file, 1024, &auth->ns, &ignored) == 0)
        auth->ns[strcspn(auth->ns, " \t\r\n")] = '\0';
}

/* ---- kubeconfig ---- */

/* The files, merged by looking into one after the other: the first that has it wins. */
struct kubeconfig {
    struct {
        char *path;
        json_t *document;
    } * files;
    size_t count, capacity;
};

static void kubeconfig_fini(struct kubeconfig *config)
{
    for (size_t i = 0; i < config->count; i++) {
        free(config->files[i].path);
        json_decref(config->files[i].document);
    }
    free(config->files);
}

static int parse_kubeconfig(const char *path, json_t **ret_document,
                            struct het_error *err)
{
    char *text;
    if (read_file(path, AUTH_FILE_BYTES, &text, err) < 0)
        return -1;
    json_t *documents;
    int result = het_yaml_parse(text, strlen(text), &documents, err);
    free_secret(text);
    if (result < 0)
        return het_wrap(err, "%s", path);
    json_t *first = json_array_get(documents, 0);
    bool is_good = json_array_size(documents) <= 1 && (!first || json_is_object(first));
    *ret_document = first ? json_incref(first) : json_object();
    json_decref(documents);
    if (is_good)
        return 0;
    json_decref(*ret_document);
    return het_fail(err, HET_BAD_INPUT, "%s: not a kubeconfig: expected one mapping",
                    path);
}

/* If several files are given, missing ones are skipped, as kubectl does. */
static int open_kubeconfig(const char *paths, struct kubeconfig *ret,
                           struct het_error *err)
{
    bool is_list = strchr(paths, ':') != NULL;
    while (*paths) {
        size_t length = strcspn(paths, ":");
        auto_free char *path = xasprintf("%.*s", (int)length, paths);
        paths += length + (paths[length] == ':');
        if (!*path)
            continue;
        if (is_list && access(path, F_OK) < 0 && errno == ENOENT)
            continue;
        json_t *document = NULL;
        if (parse_kubeconfig(path, &document, err) < 0)
            return het_wrap(err, "kubeconfig");
        ARRAY_RESERVE(ret->files, &ret->capacity, ret->count + 1);
        ret->files[ret->count].path = TAKE(path);
        ret->files[ret->count++].document = document;
    }
    return ret->count ? 0 : het_fail(err, HET_IO, "kubeconfig: none of the files exists");
}

/* A member that is a string; "" if there is none. */
static int get_text(const json_t *object, const char *key, const char **ret_text,
                    struct het_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_null(value) && !json_is_string(value))
        return het_fail(err, HET_BAD_INPUT, "%s: expected a string", key);
    const char *text = json_string_value(value);
    *ret_text = text ? text : "";
    return 0;
}

/* The member `singular` of the entry `name` of the list `plural`, and the file it is in.
 */
static const json_t *find_entry(const struct kubeconfig *config, const char *plural,
                                const char *singular, const char *name,
                                const char **ret_path)
{
    for (size_t f = 0; f < config->count; f++) {
        const json_t *list = json_object_get(config->files[f].document, plural);
        size_t i;
        const json_t *entry;
        json_array_foreach (list, i, entry) {
            const char *entry_name = json_string_value(json_object_get(entry, "name"));
            if (!entry_name || strcmp(entry_name, name) != 0)
                continue;
            *ret_path = config->files[f].path;
            const json_t *value = json_object_get(entry, singular);
            return json_is_object(value) ? value : NULL;
        }
    }
    return NULL;
}

/* `path` as seen from the file that names it. */
static char *resolve_path(const char *path, const char *kubeconfig_path)
{
    const char *slash = strrchr(kubeconfig_path, '/');
    if (*path == '/' || !slash)
        return xstrdup(path);
    return xasprintf("%.*s/%s", (int)(slash - kubeconfig_path), kubeconfig_path, path);
}

static int decode_base64(const char *text, char **ret_decoded, struct het_error *err)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *decoded = xmalloc(strlen(text) + 1), *to = decoded;
    unsigned bits = 0, bit_count = 0, digit_count = 0, padding = 0;
    bool is_good = true;
    for (; *text; text++) {
        const char *digit = strchr(alphabet, *text);
        if (*text == '\n' || *text == '\r')
            continue;
        digit_count++;
        if (*text == '=') {
            padding++;
            continue;
        }
        is_good = is_good && digit && !padding;
        bits = bits << 6 | (digit ? (unsigned)(digit - alphabet) : 0);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            *to = (char)(bits >> bit_count & 0xff);
            is_good = is_good && *to++;
        }
    }
    *to = '\0';
    if (is_good && digit_count % 4 == 0 && padding <= 2) {
        *ret_decoded = decoded;
        return 0;
    }
    free_secret(decoded);
    return het_fail(err, HET_BAD_INPUT, "expected text in base64");
}

/* KEY-data over KEY: the text of the one, or the path of the other. */
static int get_data_or_file(const json_t *object, const char *key,
                            const char *kubeconfig_path, char **ret_text, char **ret_path,
                            struct het_error *err)
{
    auto_free char *data_key = xasprintf("%s-data", key);
    const char *data, *path;
    if (get_text(object, data_key, &data, err) < 0 ||
        get_text(object, key, &path, err) < 0)
        return -1;
    if (*data)
        return decode_base64(data, ret_text, err) < 0 ? het_wrap(err, "%s", data_key) : 0;
    if (*path)
        *ret_path = resolve_path(path, kubeconfig_path);
    return 0;
}

static bool is_set(const json_t *value)
{
    return value && !json_is_null(value) &&
           !(json_is_string(value) && !*json_string_value(value));
}

static int take_cluster(struct auth *auth, const json_t *cluster, const char *path,
                        struct het_error *err)
{
    const char *server, *tls_server_name, *proxy;
    if (get_text(cluster, "server", &server, err) < 0 ||
        get_text(cluster, "tls-server-name", &tls_server_name, err) < 0 ||
        get_text(cluster, "proxy-url", &proxy, err) < 0 ||
        get_data_or_file(cluster, "certificate-authority", path, &auth->endpoint.ca_pem,
                         &auth->ca_file, err) < 0)
        return -1;
    const json_t *insecure = json_object_get(cluster, "insecure-skip-tls-verify");
    if (is_set(insecure) && !json_is_false(insecure))
        return het_fail(err, HET_BAD_INPUT,
                        "insecure-skip-tls-verify is refused: give the cluster's CA in "
                        "certificate-authority-data instead");
    size_t length = strlen(server);
    while (length && server[length - 1] == '/')
        length--;
    if (strncasecmp(server, "https://", 8) != 0 || length <= 8)
        return het_fail(err, HET_BAD_INPUT,
                        "server: expected https://HOST[:PORT], got \"%s\"", server);
    bool is_proxy_known = !strncmp(proxy, "http://", 7) ||
                          !strncmp(proxy, "https://", 8) ||
                          !strncmp(proxy, "socks5://", 9);
    if (*proxy && !is_proxy_known)
        return het_fail(err, HET_BAD_INPUT,
                        "proxy-url: expected http://, https:// or socks5://");
    auth->endpoint.server = xasprintf("%.*s", (int)length, server);
    auth->endpoint.tls_server_name = *tls_server_name ? xstrdup(tls_server_name) : NULL;
    auth->endpoint.proxy = *proxy ? xstrdup(proxy) : NULL;
    return 0;
}

static const struct {
    const char *key, *message;
} unsupported[] = {
    { "exec", "exec plugins are not run here; use a token or client certificate" },
    { "auth-provider", "auth providers are not supported; use a token or client "
                       "certificate" },
    { "username", "passwords are not supported; use a token or client certificate" },
    { "password", "passwords are not supported; use a token or client certificate" },
    { "as", "impersonation is not supported; use the account itself" },
    { "as-uid", "impersonation is not supported; use the account itself" },
    { "as-groups", "impersonation is not supported; use the account itself" },
    { "as-user-extra", "impersonation is not supported; use the account itself" },
};

static int take_user(struct auth *auth, const json_t *user, const char *path,
                     struct het_error *err)
{
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (is_set(json_object_get(user, unsupported[i].key)))
            return het_fail(err, HET_BAD_INPUT, "%s: %s", unsupported[i].key,
                            unsupported[i].message);
    struct http_endpoint *endpoint = &auth->endpoint;
    const char *token, *token_file;
    if (get_text(user, "token", &token, err) < 0 ||
        get_text(user, "tokenFile", &token_file, err) < 0 ||
        get_data_or_file(user, "client-certificate", path,
                         &endpoint->client_certificate_pem, &auth->certificate_file,
                         err) < 0 ||
        get_data_or_file(user, "client-key", path, &endpoint->client_key_pem,
                         &auth->key_file, err) < 0)
        return -1;
    bool has_certificate = endpoint->client_certificate_pem || auth->certificate_file;
    bool has_key = endpoint->client_key_pem || auth->key_file;
    if (has_certificate != has_key)
        return het_fail(err, HET_BAD_INPUT,
                        "client-certificate and client-key are "
                        "needed both or not at all");
    if (*token_file) {
        auth->token_file = resolve_path(token_file, path);
    } else if (*token) {
        endpoint->token = xstrdup(token);
        return check_token(endpoint->token, "token", err);
    }
    return 0;
}

static const char *find_current_context(const struct kubeconfig *config)
{
    for (size_t f = 0; f < config->count; f++) {
        const char *name = json_string_value(
            json_object_get(config->files[f].document, "current-context"));
        if (name && *name)
            return name;
    }
    return "";
}

static int take_context(const struct kubeconfig *config, const char *name,
                        struct auth *auth, struct het_error *err)
{
    const char *context_path, *path, *cluster_name, *user_name, *ns;
    const json_t *context =
        find_entry(config, "contexts", "context", name, &context_path);
    if (!context)
        return het_fail(err, HET_BAD_INPUT, "there is no such context");
    if (get_text(context, "cluster", &cluster_name, err) < 0 ||
        get_text(context, "user", &user_name, err) < 0 ||
        get_text(context, "namespace", &ns, err) < 0)
        return -1;
    auth->ns = xstrdup(ns);
    auth->description = xasprintf("context %s of %s", name, context_path);
    const json_t *cluster =
        find_entry(config, "clusters", "cluster", cluster_name, &path);
    if (!cluster)
        return het_fail(err, HET_BAD_INPUT, "there is no cluster \"%s\"", cluster_name);
    if (take_cluster(auth, cluster, path, err) < 0)
        return het_wrap(err, "cluster \"%s\"", cluster_name);
    if (!*user_name)
        return 0;
    const json_t *user = find_entry(config, "users", "user", user_name, &path);
    if (!user)
        return het_fail(err, HET_BAD_INPUT, "there is no user \"%s\"", user_name);
    if (take_user(auth, user, path, err) < 0)
        return het_wrap(err, "user \"%s\"", user_name);
    return 0;
}

static int load_kubeconfig(const char *paths, const struct auth_config *wanted,
                           struct auth *auth, struct het_error *err)
{
    struct kubeconfig config __attribute__((cleanup(kubeconfig_fini))) = { 0 };
    if (open_kubeconfig(paths, &config, err) < 0)
        return -1;
    const char *context = wanted->context;
    const char *name = context && *context ? context : find_current_context(&config);
    if (!*name)
        return het_fail(err, HET_BAD_INPUT,
                        "kubeconfig %s: no current-context, and none was asked for",
                        paths);
    if (take_context(&config, name, auth, err) < 0)
        return het_wrap(err, "kubeconfig %s: context \"%s\"", paths, name);
    return 0;
}

/* ---- all of it ---- */

static int load_source(const struct auth_config *config, struct auth *auth,
                       struct het_error *err)
{
    if (config->kubeconfig && *config->kubeconfig)
        return load_kubeconfig(config->kubeconfig, config, auth, err);
    if (config->service_host && *config->service_host) {
        load_service_account(config, auth);
        return 0;
    }
    if (!config->home || !*config->home)
        return het_fail(err, HET_BAD_INPUT,
                        "no cluster: give --kubeconfig or KUBECONFIG, or run in a pod");
    auto_free char *path = xasprintf("%s/.kube/config", config->home);
    return load_kubeconfig(path, config, auth, err);
}

int auth_load(const struct auth_config *config, struct auth **ret, struct het_error *err)
{
    struct auth *auth = xcalloc(1, sizeof *auth);
    auth->endpoint.generation = 1;
    int result = load_source(config, auth, err);
    if (result == 0 && (load_token(auth, err) < 0 || load_certificates(auth, err) < 0))
        result = het_wrap(err, "%s", auth->description);
    if (result < 0) {
        auth_free(auth);
        return -1;
    }
    warn_of_mode(auth->token_file);
    *ret = auth;
    return 0;
}
