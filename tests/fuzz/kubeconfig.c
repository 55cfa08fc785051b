/* Kubeconfig files: a server to talk to, or an error that says why not. */
#include "tests/fuzz/fuzz.h"

#include "controller/kube/auth.h"

#include <sys/mman.h>
#include <unistd.h>

static void use(struct auth *auth)
{
    const struct http_endpoint *endpoint = auth_endpoint(auth);
    assert(endpoint && auth_namespace(auth) && auth_description(auth));
    auth_step(auth, 0);
    auth_unauthorized(auth, endpoint->generation);
    auth_step(auth, 1000000);
    auth_next_ms(auth);
    assert(auth_endpoint(auth));
}

void fuzz_one(const char *bytes, size_t length)
{
    int file = memfd_create("kubeconfig", MFD_CLOEXEC);
    assert(file >= 0);
    assert(write(file, bytes, length) == (ssize_t)length);
    auto_free char *path = xasprintf("/proc/self/fd/%d", file);
    const struct auth_config config = { .kubeconfig = path, .home = "/nonexistent" };
    struct auth *auth;
    struct het_error err;
    if (auth_load(&config, &auth, &err) < 0) {
        fuzz_assert_error(&err);
    } else {
        use(auth);
        auth_free(auth);
    }
    close(file);
}
