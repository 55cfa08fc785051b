/* route.h - the object or collection of a request path, and its query. */
#ifndef CONTROLLER_SIMULATE_API_SERVER_ROUTE_H
#define CONTROLLER_SIMULATE_API_SERVER_ROUTE_H

#include "controller/simulate/api_server/kinds.h"

struct route {
    const struct kind *kind;       /* NULL: the path is not that of an object (see
                                      `path`) */
    char *path;                    /* without the query, not decoded */
    char *ns, *name, *subresource; /* "" where there is none; `name` "": the collection */
    json_t *query;                 /* of strings */
};

/* Reads "/api/v1/namespaces/ns/pods/name/status?a=b". Returns NULL, or a new Status for a
 * path that is not served; fills `ret` in both cases. */
json_t *route_parse(const char *text, struct route *ret);
void route_fini(struct route *route);

/* A parameter of the query; "" if it is not given. */
const char *route_query(const struct route *route, const char *name);
bool route_query_is_true(const struct route *route, const char *name);

#endif
