#include "tests/controller/happening.h"

#include <assert.h>
#include <stdlib.h>

json_t *happening_no_file(const char *path, struct het_error *err)
{
    het_fail(err, HET_IO, "%s: no such file", path);
    return NULL;
}

int happening(struct embedded_cluster *cluster, const char *text, struct het_error *err)
{
    struct embedded_event event;
    auto_free char *full = xasprintf("0s %s", text);
    int failed = embedded_event_parse(full, happening_no_file, &event, err);
    assert(!failed);
    failed = embedded_cluster_do(cluster, &event, err);
    embedded_event_fini(&event);
    return failed;
}
