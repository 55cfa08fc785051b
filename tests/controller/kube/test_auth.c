#include "controller/kube/auth.h"

#include "controller/base/log.h"
#include "tests/controller/tls_server.h"

#include <check.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One server makes the certificates for all tests. */
static struct tls_server *server;
static char dir[] = "/tmp/test-auth-XXXXXX";
static struct auth *auth;
static struct het_error err;
static char logged[LOG_LINE_BYTES];

static void keep_line(void *context, const char *line, size_t length)
{
    (void)context;
    memcpy(logged, line, length);
    logged[length] = '\0';
}

static void set_up(void)
{
    log_set_levels("info", NULL);
    log_set_sink(keep_line, NULL);
    strcpy(dir, "/tmp/test-auth-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    server = tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    memset(&err, 0, sizeof err);
    logged[0] = '\0';
}

static void tear_down(void)
{
    auth_free(auth);
    auth = NULL;
    tls_server_free(server);
    auto_free char *command = xasprintf("rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static char *in_dir(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void write_bytes(const char *name, const char *bytes, size_t length)
{
    auto_free char *path = in_dir(name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    chmod(path, 0600);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static char *base64(const char *text)
{
    char *encoded = xmalloc(strlen(text) * 2 + 8);
    EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)text,
                    (int)strlen(text));
    return encoded;
}

/* ---- service account ---- */

static void write_service_account(void)
{
    write_text("token", "first-token\n");
    write_text("ca.crt", tls_server_ca(server));
    write_text("namespace", "training\n");
}

static int load_service_account(const char *host, const char *port)
{
    return auth_load(&(struct auth_config){ .service_host = host,
                                            .service_port = port,
                                            .service_account_dir = dir },
                     &auth, &err);
}

static const struct http_endpoint *endpoint(void)
{
    return auth_endpoint(auth);
}

START_TEST(service_account_is_read)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("10.0.0.1", "6443"), 0);
    ck_assert_str_eq(endpoint()->server, "https://10.0.0.1:6443");
    ck_assert_str_eq(endpoint()->token, "first-token");
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(server));
    ck_assert_ptr_null(endpoint()->client_certificate_pem);
    ck_assert_ptr_null(endpoint()->proxy);
    ck_assert_str_eq(auth_namespace(auth), "training");
    auto_free char *description = xasprintf("service account in %s", dir);
    ck_assert_str_eq(auth_description(auth), description);
}
END_TEST

START_TEST(address_of_ipv6_has_brackets)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("fd00::1", NULL), 0);
    ck_assert_str_eq(endpoint()->server, "https://[fd00::1]:443");
}
END_TEST

START_TEST(service_account_without_namespace_has_the_default)
{
    write_service_account();
    auto_free char *path = in_dir("namespace");
    unlink(path);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    ck_assert_str_eq(auth_namespace(auth), "default");
}
END_TEST

static const struct {
    const char *file, *text, *message;
} broken_accounts[] = {
    { "token", NULL, "No such file" },
    { "token", "", "the token is empty" },
    { "token", " \n\t\r\n", "the token is empty" },
    { "token", "a\nX-Evil: 1", "a character that no token may have" },
    { "token", "a b", "a character that no token may have" },
    { "token", "a\x7f", "a character that no token may have" },
    { "ca.crt", NULL, "No such file" },
    { "ca.crt", "", "no PEM certificate" },
    { "ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      "no PEM certificate" },
};

START_TEST(broken_service_account_is_refused)
{
    write_service_account();
    auto_free char *path = in_dir(broken_accounts[_i].file);
    unlink(path);
    if (broken_accounts[_i].text)
        write_text(broken_accounts[_i].file, broken_accounts[_i].text);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), -1);
    ck_assert_msg(strstr(err.message, broken_accounts[_i].message), "%s", err.message);
    ck_assert_ptr_null(strstr(err.message, "Evil"));
    ck_assert_ptr_null(auth);
}
END_TEST

START_TEST(token_with_nul_or_of_wrong_kind_is_refused)
{
    write_service_account();
    write_bytes("token", "ab\0cd", 5);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "has a NUL inside"));
    auto_free char *path = in_dir("token");
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "not a regular file"));
    unlink(path);
    auto_free char *large = xmalloc(AUTH_TOKEN_BYTES + 2);
    memset(large, 'x', AUTH_TOKEN_BYTES + 1);
    write_bytes("token", large, AUTH_TOKEN_BYTES + 1);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than 65536 bytes"));
    write_bytes("token", large, AUTH_TOKEN_BYTES);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
}
END_TEST

START_TEST(token_may_be_a_symbolic_link)
{
    write_service_account();
    auto_free char *path = in_dir("token");
    unlink(path);
    write_text("..data", "linked-token");
    ck_assert_int_eq(symlink("..data", path), 0);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    ck_assert_str_eq(endpoint()->token, "linked-token");
}
END_TEST

START_TEST(mode_of_the_token_file_is_told)
{
    write_service_account();
    auto_free char *path = in_dir("token");
    chmod(path, 0660);
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    ck_assert_ptr_nonnull(strstr(logged, "token-file-writable-by-others"));
}
END_TEST

/* ---- rotation ---- */

START_TEST(token_is_read_again_every_50_s)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    uint64_t generation = endpoint()->generation;
    auth_step(auth, 1000);
    ck_assert_int_eq(auth_next_ms(auth), 51000);
    write_text("token", "second-token");
    auth_step(auth, 50999);
    ck_assert_str_eq(endpoint()->token, "first-token");
    auth_step(auth, 51000);
    ck_assert_str_eq(endpoint()->token, "second-token");
    ck_assert_uint_ne(endpoint()->generation, generation);
    generation = endpoint()->generation;
    auth_step(auth, 101000);
    ck_assert_uint_eq(endpoint()->generation, generation); /* the same again */
}
END_TEST

START_TEST(unreadable_token_leaves_the_old_one)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    auth_step(auth, 0);
    write_text("token", "");
    auth_step(auth, 50000);
    ck_assert_str_eq(endpoint()->token, "first-token");
    ck_assert_ptr_nonnull(strstr(logged, "event=token-not-read"));
    ck_assert_int_eq(auth_next_ms(auth), 60000); /* sooner than usual */
    write_text("token", "third-token");
    auth_step(auth, 60000);
    ck_assert_str_eq(endpoint()->token, "third-token");
}
END_TEST

START_TEST(refused_token_is_read_again_at_once)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    auth_step(auth, 0);
    uint64_t generation = endpoint()->generation;
    write_text("token", "second-token");
    auth_unauthorized(auth, generation);
    ck_assert_int_eq(auth_next_ms(auth), 1000);
    auth_step(auth, 1000);
    ck_assert_str_eq(endpoint()->token, "second-token");
    /* A late refusal of the first says nothing about the second. */
    write_text("token", "third-token");
    auth_unauthorized(auth, generation);
    auth_step(auth, 5000);
    ck_assert_str_eq(endpoint()->token, "second-token");
    /* No more than once a second. */
    auth_unauthorized(auth, endpoint()->generation);
    auth_step(auth, 5001);
    ck_assert_str_eq(endpoint()->token, "third-token");
    write_text("token", "fourth-token");
    auth_unauthorized(auth, endpoint()->generation);
    auth_step(auth, 5002);
    ck_assert_str_eq(endpoint()->token, "third-token");
    auth_step(auth, 6001);
    ck_assert_str_eq(endpoint()->token, "fourth-token");
}
END_TEST

START_TEST(ca_is_read_again_every_5_minutes)
{
    write_service_account();
    ck_assert_int_eq(load_service_account("10.0.0.1", "443"), 0);
    auth_step(auth, 0);
    struct tls_server *other =
        tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    write_text("ca.crt", tls_server_ca(other));
    auth_step(auth, 299999);
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(server));
    auth_step(auth, 300000);
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(other));
    write_text("ca.crt", "garbage");
    auth_step(auth, 600000);
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(other));
    ck_assert_ptr_nonnull(strstr(logged, "event=certificates-not-read"));
    tls_server_free(other);
}
END_TEST

/* ---- kubeconfig ---- */

static void write_certificates(void)
{
    write_text("ca.pem", tls_server_ca(server));
    write_text("client.pem", tls_server_client_certificate(server));
    write_text("client.key", tls_server_client_key(server));
    write_text("token-file", "file-token\n");
}

static int load_kubeconfig(const char *names, const char *context)
{
    char *paths = xstrdup("");
    while (*names) {
        size_t length = strcspn(names, ":");
        auto_free char *old = paths;
        paths = xasprintf("%s%s%s/%.*s", old, *old ? ":" : "", dir, (int)length, names);
        names += length + (names[length] == ':');
    }
    auto_free char *all = paths;
    return auth_load(&(struct auth_config){ .kubeconfig = all, .context = context },
                     &auth, &err);
}

/* A kubeconfig with one context; `cluster` and `user` are its YAML in flow style. */
static void write_kubeconfig(const char *name, const char *cluster, const char *user)
{
    auto_free char *text = xasprintf(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: ns}\n"
        "clusters:\n- name: k\n  cluster: {%s}\nusers:\n- name: u\n  user: {%s}\n",
        cluster, user);
    write_text(name, text);
}

START_TEST(kubeconfig_with_data_is_read)
{
    auto_free char *ca = base64(tls_server_ca(server));
    auto_free char *certificate = base64(tls_server_client_certificate(server));
    auto_free char *key = base64(tls_server_client_key(server));
    auto_free char *cluster = xasprintf(
        "server: 'https://example:6443/', certificate-authority-data: %s, "
        "certificate-authority: /does/not/exist, tls-server-name: kube.example, "
        "proxy-url: 'http://proxy:3128'",
        ca);
    auto_free char *user = xasprintf(
        "client-certificate-data: %s, client-key-data: %s, client-key: /nowhere, "
        "token: ' secret '",
        certificate, key);
    write_kubeconfig("config", cluster, user);
    ck_assert_msg(load_kubeconfig("config", NULL) == 0, "%s", err.message);
    ck_assert_str_eq(endpoint()->server, "https://example:6443");
    ck_assert_str_eq(endpoint()->tls_server_name, "kube.example");
    ck_assert_str_eq(endpoint()->proxy, "http://proxy:3128");
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(server));
    ck_assert_str_eq(endpoint()->client_certificate_pem,
                     tls_server_client_certificate(server));
    ck_assert_str_eq(endpoint()->client_key_pem, tls_server_client_key(server));
    ck_assert_str_eq(endpoint()->token, "secret");
    ck_assert_str_eq(auth_namespace(auth), "ns");
    auto_free char *description = xasprintf("context c of %s/config", dir);
    ck_assert_str_eq(auth_description(auth), description);
    auth_step(auth, 0);
    ck_assert_int_eq(auth_next_ms(auth), INT64_MAX); /* no files to look at */
}
END_TEST

START_TEST(kubeconfig_with_files_is_read_beside_itself)
{
    write_certificates();
    write_kubeconfig("config", "server: 'https://example', certificate-authority: ca.pem",
                     "client-certificate: client.pem, client-key: ./client.key, "
                     "tokenFile: token-file, token: unused");
    ck_assert_msg(load_kubeconfig("config", NULL) == 0, "%s", err.message);
    ck_assert_str_eq(endpoint()->ca_pem, tls_server_ca(server));
    ck_assert_str_eq(endpoint()->client_key_pem, tls_server_client_key(server));
    ck_assert_str_eq(endpoint()->token, "file-token");
    auth_step(auth, 0);
    write_text("token-file", "rotated");
    auth_step(auth, 50000);
    ck_assert_str_eq(endpoint()->token, "rotated");
}
END_TEST

START_TEST(certificate_without_its_key_leaves_the_old_pair)
{
    write_certificates();
    write_kubeconfig("config", "server: 'https://example', certificate-authority: ca.pem",
                     "client-certificate: client.pem, client-key: client.key");
    ck_assert_int_eq(load_kubeconfig("config", NULL), 0);
    auth_step(auth, 0);
    struct tls_server *other =
        tls_server_new(&(struct tls_server_options){ .names = "IP:127.0.0.1" });
    write_text("client.pem", tls_server_client_certificate(other));
    auth_step(auth, 300000);
    ck_assert_str_eq(endpoint()->client_certificate_pem,
                     tls_server_client_certificate(server));
    ck_assert_ptr_nonnull(strstr(logged, "does not belong"));
    write_text("client.key", tls_server_client_key(other));
    auth_step(auth, 310000);
    ck_assert_str_eq(endpoint()->client_certificate_pem,
                     tls_server_client_certificate(other));
    ck_assert_str_eq(endpoint()->client_key_pem, tls_server_client_key(other));
    tls_server_free(other);
}
END_TEST

START_TEST(minimal_kubeconfig_is_enough)
{
    write_text("config", "current-context: c\n"
                         "contexts: [{name: c, context: {cluster: k}}]\n"
                         "clusters: [{name: k, cluster: {server: 'https://example'}}]\n");
    ck_assert_msg(load_kubeconfig("config", NULL) == 0, "%s", err.message);
    ck_assert_ptr_null(endpoint()->token);
    ck_assert_ptr_null(endpoint()->ca_pem);
    ck_assert_str_eq(auth_namespace(auth), "default");
}
END_TEST

START_TEST(context_may_be_asked_for)
{
    write_text("config", "current-context: a\n"
                         "contexts:\n- {name: a, context: {cluster: ka, user: u}}\n"
                         "- {name: b, context: {cluster: kb, user: u}}\n"
                         "clusters:\n- {name: ka, cluster: {server: 'https://a'}}\n"
                         "- {name: kb, cluster: {server: 'https://b'}}\n"
                         "users: [{name: u, user: {token: t}}]\n");
    ck_assert_int_eq(load_kubeconfig("config", "b"), 0);
    ck_assert_str_eq(endpoint()->server, "https://b");
    auth_free(auth);
    auth = NULL;
    ck_assert_int_eq(load_kubeconfig("config", "z"), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "context \"z\": there is no such context"));
}
END_TEST

START_TEST(first_of_several_files_wins)
{
    write_certificates();
    write_text("one", "clusters: [{name: k, cluster: {server: 'https://one'}}]\n"
                      "users: [{name: u, user: {token: one}}]\n");
    auto_free char *sub = in_dir("sub");
    mkdir(sub, 0700);
    write_text("sub/two",
               "current-context: c\n"
               "contexts: [{name: c, context: {cluster: k, user: v}}]\n"
               "clusters: [{name: k, cluster: {server: 'https://two'}}]\n"
               "users: [{name: u, user: {token: two}}, {name: v, user: {tokenFile: "
               "../token-file}}]\n");
    write_text("three", "current-context: d\n");
    write_text("empty", "");
    ck_assert_msg(load_kubeconfig("missing:empty:one:sub/two:three", NULL) == 0, "%s",
                  err.message);
    ck_assert_str_eq(endpoint()->server, "https://one");
    ck_assert_str_eq(endpoint()->token, "file-token"); /* beside the file that names it */
}
END_TEST

static const struct {
    const char *cluster, *user, *message;
} refusals[] = {
    { "server: 'https://e', insecure-skip-tls-verify: true", "token: t",
      "cluster \"k\": insecure-skip-tls-verify is refused: give the cluster's CA" },
    { "server: 'https://e', insecure-skip-tls-verify: 'yes'", "token: t",
      "insecure-skip-tls-verify is refused" },
    { "server: 'http://e'", "token: t", "server: expected https://HOST[:PORT], got" },
    { "server: 'https://'", "token: t", "server: expected https://HOST[:PORT], got" },
    { "", "token: t", "server: expected https://HOST[:PORT], got" },
    { "server: 7", "token: t", "server: expected a string" },
    { "server: 'https://e', proxy-url: 'ftp://x'", "token: t",
      "proxy-url: expected http" },
    { "server: 'https://e', certificate-authority: missing", "token: t", "No such file" },
    { "server: 'https://e', certificate-authority-data: '!!!'", "token: t",
      "certificate-authority-data: expected text in base64" },
    { "server: 'https://e', certificate-authority-data: 'YWJj='", "token: t",
      "certificate-authority-data: expected text in base64" },
    { "server: 'https://e', certificate-authority-data: 'YQBi'", "token: t",
      "certificate-authority-data: expected text in base64" },
    { "server: 'https://e', certificate-authority-data: 'YWJj'", "token: t",
      "no PEM certificate" },
    { "server: 'https://e'", "exec: {command: aws}",
      "user \"u\": exec: exec plugins are not run here; use a token or client "
      "certificate" },
    { "server: 'https://e'", "auth-provider: {name: oidc}",
      "auth providers are not supported" },
    { "server: 'https://e'", "username: me, password: secret-word",
      "passwords are not supported" },
    { "server: 'https://e'", "token: t, as: admin", "impersonation is not supported" },
    { "server: 'https://e'", "token: t, as-groups: [g]",
      "impersonation is not supported" },
    { "server: 'https://e'", "token: [t]", "token: expected a string" },
    { "server: 'https://e'", "token: 'secret\tword'",
      "character that no token may have" },
    { "server: 'https://e'", "tokenFile: missing", "No such file" },
    { "server: 'https://e'", "client-certificate: client.pem",
      "client-certificate and client-key are needed both" },
    { "server: 'https://e'", "client-key: client.key",
      "client-certificate and client-key are needed both" },
    { "server: 'https://e'", "client-certificate: ca.pem, client-key: client.key",
      "the client key does not belong to the client certificate" },
    { "server: 'https://e'", "client-certificate: client.key, client-key: client.key",
      "the client certificate is no PEM certificate" },
    { "server: 'https://e'", "client-certificate: client.pem, client-key: client.pem",
      "the client key is no PEM private key" },
};

START_TEST(what_is_not_supported_is_refused_in_words)
{
    write_certificates();
    write_kubeconfig("config", refusals[_i].cluster, refusals[_i].user);
    ck_assert_int_eq(load_kubeconfig("config", NULL), -1);
    ck_assert_msg(strstr(err.message, refusals[_i].message), "%s", err.message);
    ck_assert_msg(strstr(err.message, dir), "%s", err.message); /* names the file */
    ck_assert_ptr_null(strstr(err.message, "secret"));
    ck_assert_ptr_null(auth);
}
END_TEST

START_TEST(absent_values_are_no_values)
{
    write_kubeconfig("config",
                     "server: 'https://e', insecure-skip-tls-verify: false, "
                     "certificate-authority: '', proxy-url: ~",
                     "token: t, exec: ~, username: '', as: ''");
    ck_assert_msg(load_kubeconfig("config", NULL) == 0, "%s", err.message);
}
END_TEST

static const struct {
    const char *text, *message;
} broken_files[] = {
    { "", "no current-context, and none was asked for" },
    { "current-context: c\n", "context \"c\": there is no such context" },
    { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n",
      "there is no cluster \"k\"" },
    { "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
      "clusters: [{name: k, cluster: {server: 'https://e'}}]\n",
      "there is no user \"u\"" },
    { "current-context: c\ncontexts: [{name: c, context: 7}]\n", "no such context" },
    { "current-context: c\ncontexts: {name: c}\n", "no such context" },
    { "- a\n", "not a kubeconfig" },
    { "a: 1\n---\nb: 2\n", "not a kubeconfig" },
    { "a: [1\n", "line 2, column 1" },
    { "a: 1\na: 2\n", "line 2, column 1: key \"a\" comes twice" },
};

START_TEST(broken_kubeconfig_is_refused)
{
    write_text("config", broken_files[_i].text);
    ck_assert_int_eq(load_kubeconfig("config", NULL), -1);
    ck_assert_msg(strstr(err.message, broken_files[_i].message), "%s", err.message);
    ck_assert_msg(strstr(err.message, "kubeconfig"), "%s", err.message);
}
END_TEST

START_TEST(missing_kubeconfig_is_an_error)
{
    ck_assert_int_eq(load_kubeconfig("missing", NULL), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "No such file"));
    ck_assert_int_eq(load_kubeconfig("missing:none", NULL), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "none of the files exists"));
}
END_TEST

START_TEST(sources_are_tried_in_their_order)
{
    write_service_account();
    auto_free char *kube_dir = in_dir(".kube");
    mkdir(kube_dir, 0700);
    write_kubeconfig(".kube/config", "server: 'https://home'", "token: t");
    write_kubeconfig("config", "server: 'https://given'", "token: t");
    auto_free char *path = in_dir("config");
    struct auth_config config = {
        .kubeconfig = path, .service_host = "pod", .service_account_dir = dir, .home = dir
    };
    static const char *const servers[] = { "https://given", "https://pod:443",
                                           "https://home" };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(auth_load(&config, &auth, &err), 0);
        ck_assert_str_eq(endpoint()->server, servers[i]);
        auth_free(auth);
        auth = NULL;
        if (i == 0)
            config.kubeconfig = "";
        else
            config.service_host = NULL;
    }
    config.home = NULL;
    ck_assert_int_eq(auth_load(&config, &auth, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "no cluster: give --kubeconfig"));
}
END_TEST

/* ---- with the transport ---- */

static void keep_body(void *context, const struct http_reply *reply)
{
    char **body = context;
    ck_assert_msg(reply->status == 200, "%s", reply->error.message);
    *body = xstrdup(reply->body);
}

START_TEST(endpoint_reaches_the_server)
{
    write_certificates();
    auto_free char *cluster =
        xasprintf("server: 'https://127.0.0.1:%d', certificate-authority: ca.pem",
                  tls_server_port(server));
    write_kubeconfig("config", cluster, "tokenFile: token-file");
    ck_assert_int_eq(load_kubeconfig("config", NULL), 0);
    struct transport *transport = http_transport_new(auth_endpoint, auth, &err);
    http_transport_on_unauthorized(transport, auth_unauthorized);
    char *body = NULL;
    transport_start(transport, &(struct http_request){ .method = "GET", .path = "/echo" },
                    &(struct http_handler){ .on_done = keep_body, .context = &body });
    for (int i = 0; i < 100 && !body; i++)
        transport_poll(transport, NULL, 0, 100);
    ck_assert_ptr_nonnull(strstr(body, "Authorization: Bearer file-token\n"));
    free(body);
    transport_free(transport);
}
END_TEST

#define ADD_TABLE(cases, test, table)                                                    \
    tcase_add_loop_test((cases), test, 0, sizeof(table) / sizeof *(table))

Suite *test_auth_suite(void)
{
    Suite *suite = suite_create("auth");
    TCase *cases = tcase_create("auth");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, service_account_is_read);
    tcase_add_test(cases, address_of_ipv6_has_brackets);
    tcase_add_test(cases, service_account_without_namespace_has_the_default);
    ADD_TABLE(cases, broken_service_account_is_refused, broken_accounts);
    tcase_add_test(cases, token_with_nul_or_of_wrong_kind_is_refused);
    tcase_add_test(cases, token_may_be_a_symbolic_link);
    tcase_add_test(cases, mode_of_the_token_file_is_told);
    tcase_add_test(cases, token_is_read_again_every_50_s);
    tcase_add_test(cases, unreadable_token_leaves_the_old_one);
    tcase_add_test(cases, refused_token_is_read_again_at_once);
    tcase_add_test(cases, ca_is_read_again_every_5_minutes);
    tcase_add_test(cases, kubeconfig_with_data_is_read);
    tcase_add_test(cases, kubeconfig_with_files_is_read_beside_itself);
    tcase_add_test(cases, certificate_without_its_key_leaves_the_old_pair);
    tcase_add_test(cases, minimal_kubeconfig_is_enough);
    tcase_add_test(cases, context_may_be_asked_for);
    tcase_add_test(cases, first_of_several_files_wins);
    ADD_TABLE(cases, what_is_not_supported_is_refused_in_words, refusals);
    tcase_add_test(cases, absent_values_are_no_values);
    ADD_TABLE(cases, broken_kubeconfig_is_refused, broken_files);
    tcase_add_test(cases, missing_kubeconfig_is_an_error);
    tcase_add_test(cases, sources_are_tried_in_their_order);
    tcase_add_test(cases, endpoint_reaches_the_server);
    suite_add_tcase(suite, cases);
    return suite;
}
