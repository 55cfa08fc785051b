#include "controller/kube/transport.h"

#include <string.h>

bool http_is_outside(const char *path)
{
    return !strncmp(path, HTTP_OUTSIDE, strlen(HTTP_OUTSIDE));
}

uint64_t transport_start(struct transport *transport, const struct http_request *request,
                         const struct http_handler *handler)
{
    return transport->ops->start(transport, request, handler);
}

void transport_cancel(struct transport *transport, uint64_t id)
{
    transport->ops->cancel(transport, id);
}

int transport_poll(struct transport *transport, struct pollfd *extra, size_t extra_count,
                   int64_t timeout_ms)
{
    if (transport->ops->poll(transport, extra, extra_count, timeout_ms) == 0)
        return 0;
    int64_t pause_ms = timeout_ms < TRANSPORT_PAUSE_MS ? timeout_ms : TRANSPORT_PAUSE_MS;
    poll(extra, (nfds_t)extra_count, pause_ms > 0 ? (int)pause_ms : 0);
    return -1;
}

void transport_free(struct transport *transport)
{
    if (transport)
        transport->ops->free(transport);
}
