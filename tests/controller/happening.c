#include "tests/controller/happening.h"

#include <assert.h>
#include <stdlib.h>

json_t *happening_no_file(const char *path, struct het_error *err)
{
    het_fail(err, HET_IO, "%s: no such file", path);
    return NULL;
}

int happening(struct simulated_cluster *cluster, const char *text, struct het_error *err)
{
    struct scenario_event event;
    auto_free char *full = xasprintf("0s %s", text);
    int failed = scenario_event_parse(full, happening_no_file, &event, err);
    assert(!failed);
    failed = simulated_cluster_do(cluster, &event, err);
    scenario_event_fini(&event);
    return failed;
}
