/* route.h - which object or collection a request path speaks of, and its query. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_ROUTE_H
#define CONTROLLER_SIMULATE_API_SERVER_ROUTE_H

#include "controller/simulate/api_server/kinds.h"

struct route {
    const struct kind *kind;       /* NULL: the path is not of an object (`path` tells) */
    char *path;                    /* without the query, not decoded */
    char *ns, *name, *subresource; /* "" where there is none; `name` "": the collection */
    json_t *query;                 /* of strings */
};

/* Reads "/api/v1/namespaces/ns/pods/name/status?a=b". NULL, or a new Status for a path
 * that nobody serves; `ret` is filled in both cases. */
json_t *route_parse(const char *text, struct route *ret);
void route_fini(struct route *route);

/* A parameter of the query; "" if it is not given. */
const char *route_query(const struct route *route, const char *name);
bool route_query_is_true(const struct route *route, const char *name);

#endif
