#include "controller/kubectl/planner_question.h"

#include "controller/cluster/hardware_map.h"
#include "controller/cluster/kept_fields.h"
#include "controller/cluster/kueue_quota.h"
#include "controller/kubectl/preview.h"

#include <stdlib.h>
#include <string.h>

#define PLANS_SELECTOR "labelSelector=app.kubernetes.io%2Fmanaged-by%3D" MANAGED_BY

#define SETTINGS_KEY "config.json"

/* What is being put together. */
struct gathering {
    struct session *session;
    struct preview *preview;
    json_t *job;
    bool is_about_plan; /* what is denied is left out */
};

/* ---- what the administrator has settled ---- */

/* The ConfigMap "NAMESPACE/NAME" that `option` was given; else, if it is there and may be
 * read, the `usual` one. NULL: none. */
static int find_map(struct session *session, const char *option, const char *given,
                    const char *usual, json_t **ret, struct het_error *err)
{
    const char *both = given ? given : usual, *slash = strchr(both, '/');
    if (!slash || slash == both || !slash[1])
        return het_fail(err, HET_BAD_INPUT, "%s %.300s: must be NAMESPACE/NAME", option,
                        both);
    const char *ns = het_arena_printf(session->arena, "%.*s", (int)(slash - both), both);
    enum kube_outcome outcome =
        blocking_client_get(session->client, &kube_config_map, ns, slash + 1, ret, err);
    if (!given && outcome == KUBE_DENIED)
        session_note(session,
                     "the installation's settings (%s) are not looked at, the built-in "
                     "ones count: %s",
                     usual, err->message);
    bool is_no_failure = !given && (outcome == KUBE_DENIED || outcome == KUBE_NOT_FOUND);
    return outcome == KUBE_OK || is_no_failure ? 0 : -1;
}

/* The settings in a ConfigMap, if there is one. */
static int read_settings_map(struct session *session, json_t **ret, struct het_error *err)
{
    json_auto_t *map = NULL;
    if (find_map(session, "--config-configmap", session->options->config_map,
                 PLANNER_QUESTION_CONFIG_MAP, &map, err) < 0)
        return -1;
    const char *text =
        json_string_value(json_object_get(json_object_get(map, "data"), SETTINGS_KEY));
    if (map && !text)
        return het_fail(err, HET_BAD_INPUT,
                        "ConfigMap %s: there is no data." SETTINGS_KEY, kube_name(map));
    return text ? het_json_decode(text, strlen(text), SETTINGS_KEY, ret, err) : 0;
}

static int read_settings(struct session *session, struct settings *ret,
                         struct het_error *err)
{
    const char *path = session->options->config;
    json_auto_t *json = NULL;
    *ret = *settings_default();
    if ((path ? het_read_file(path, &json, err)
              : read_settings_map(session, &json, err)) < 0)
        return -1;
    return json && settings_parse(session->arena, json, ret, err) < 0
               ? het_wrap(err, "%.300s", path ? path : "settings")
               : 0;
}

static int read_hardware_map(struct session *session, json_t **ret, struct het_error *err)
{
    json_auto_t *map = NULL;
    if (find_map(session, "--hardware-configmap", session->options->hardware_map,
                 PLANNER_QUESTION_HARDWARE_MAP, &map, err) < 0)
        return -1;
    return map && hardware_map_read(map, ret, err) < 0
               ? het_wrap(err, "ConfigMap %s", kube_name(map))
               : 0;
}

static int read_hardware(struct session *session, json_t **ret, struct het_error *err)
{
    const char *path = session->options->hardware;
    return path ? het_read_file_settings(path, ret, err)
                : read_hardware_map(session, ret, err);
}

/* ---- what there is ---- */

static const struct kube_resource *profile_of(const json_t *job, const char **ret_name)
{
    const json_t *reference = object_at(job, "spec.model.profileRef");
    bool is_cluster = !strcmp(object_text(reference, "kind"), "ClusterModelProfile");
    *ret_name = object_text(reference, "name");
    return is_cluster ? &kube_cluster_model_profile : &kube_model_profile;
}

static void add_all(struct gathering *gathering, const struct kube_resource *resource,
                    const json_t *objects)
{
    for (size_t i = 0; i < json_array_size(objects); i++)
        preview_add(gathering->preview, resource, json_array_get(objects, i));
}

static enum kube_outcome list(struct gathering *gathering,
                              const struct kube_resource *resource, const char *ns,
                              const char *selector, json_t *(*trim)(json_t *object),
                              struct het_error *err)
{
    json_auto_t *objects = NULL;
    enum kube_outcome outcome = blocking_client_list(gathering->session->client, resource,
                                                     ns, selector, trim, &objects, err);
    if (outcome == KUBE_OK)
        add_all(gathering, resource, objects);
    return outcome;
}

/* Nodes and pods: which GPUs there are, and which are free. One without the other says
 * nothing. */
static int list_gpus(struct gathering *gathering, struct het_error *err)
{
    enum kube_outcome outcome = list(gathering, &kube_pod, "", "", kept_fields_pod, err);
    if (outcome == KUBE_OK)
        outcome = list(gathering, &kube_node, "", "", kept_fields_node, err);
    if (outcome != KUBE_DENIED || !gathering->is_about_plan)
        return outcome == KUBE_OK ? 0 : -1;
    session_note(gathering->session, "only the GPUs of the plan are looked at: %s",
                 err->message);
    return 0;
}

/* Plans hold GPUs before their pods do, those of other namespaces as well. */
static int list_plans(struct gathering *gathering, struct het_error *err)
{
    enum kube_outcome outcome =
        list(gathering, &kube_config_map, "", PLANS_SELECTOR, NULL, err);
    if (outcome == KUBE_OK)
        outcome = list(gathering, &kube_job, "", "", NULL, err);
    if (outcome != KUBE_DENIED)
        return outcome == KUBE_OK ? 0 : -1;
    if (!gathering->is_about_plan)
        session_note(gathering->session,
                     "GPUs that jobs of other namespaces have reserved, and no pod of "
                     "theirs holds yet, count as free: %s",
                     err->message);
    const char *ns = gathering->session->ns;
    outcome = list(gathering, &kube_config_map, ns, PLANS_SELECTOR, NULL, err);
    if (outcome == KUBE_OK)
        outcome = list(gathering, &kube_job, ns, "", NULL, err);
    return outcome == KUBE_OK || outcome == KUBE_DENIED ? 0 : -1;
}

static int get_profile(struct gathering *gathering, struct het_error *err)
{
    const char *name;
    const struct kube_resource *resource = profile_of(gathering->job, &name);
    json_auto_t *profile = NULL;
    if (!*name)
        return 0;
    enum kube_outcome outcome = blocking_client_get(
        gathering->session->client, resource,
        resource->namespaced ? gathering->session->ns : "", name, &profile, err);
    if (outcome == KUBE_OK)
        preview_add(gathering->preview, resource, profile);
    /* That it is missing is said with the job's other faults. */
    return outcome == KUBE_OK || err->code == HET_NOT_FOUND ? 0 : -1;
}

/* Of a job that waits in a queue: what Kueue has to say. */
static int list_queues(struct gathering *gathering, bool *ret_known,
                       struct het_error *err)
{
    static const struct {
        const struct kube_resource *resource;
        json_t *(*trim)(json_t *object);
    } kinds[] = { { &kube_resource_flavor, kueue_trim_queue },
                  { &kube_cluster_queue, kueue_trim_queue },
                  { &kube_local_queue, kueue_trim_queue },
                  { &kube_workload, kueue_trim_workload } };
    *ret_known = false;
    if (!kueue_queue_of(gathering->job))
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        enum kube_outcome outcome =
            list(gathering, kinds[i].resource, "", "", kinds[i].trim, err);
        if (outcome == KUBE_NOT_FOUND)
            return 0; /* the server does not know Kueue */
        if (outcome == KUBE_DENIED) {
            session_note(gathering->session, "Kueue's quota is not looked at: %s",
                         err->message);
            return 0;
        }
        if (outcome != KUBE_OK)
            return -1;
    }
    *ret_known = true;
    return 0;
}

static int gather(struct gathering *gathering, bool is_in_cluster, bool *ret_queues,
                  struct het_error *err)
{
    if (list_gpus(gathering, err) < 0 || list_plans(gathering, err) < 0 ||
        get_profile(gathering, err) < 0 || list_queues(gathering, ret_queues, err) < 0)
        return -1;
    if (is_in_cluster)
        preview_add(gathering->preview, &kube_job, gathering->job);
    else
        preview_add_job(gathering->preview, gathering->session->ns, gathering->job);
    return 0;
}

/* What will be read, as far as that can be said before. */
static void ask_ahead(const struct session *session, const json_t *job)
{
    struct client *client = session->client;
    const char *name;
    const struct kube_resource *profile = profile_of(job, &name);
    if (!session->options->hardware && !session->options->hardware_map)
        blocking_client_ahead(client, &kube_config_map, PLANNER_QUESTION_NAMESPACE,
                              PLANNER_QUESTION_HARDWARE, "");
    blocking_client_ahead(client, &kube_pod, "", NULL, "");
    blocking_client_ahead(client, &kube_node, "", NULL, "");
    blocking_client_ahead(client, &kube_config_map, "", NULL, PLANS_SELECTOR);
    blocking_client_ahead(client, &kube_job, "", NULL, "");
    if (*name)
        blocking_client_ahead(client, profile, profile->namespaced ? session->ns : "",
                              name, "");
}

int planner_question_make(struct session *session, json_t *job, bool is_in_cluster,
                          const struct het_plan *plan, json_t **ret,
                          struct het_error *err)
{
    struct settings settings;
    json_auto_t *hardware = NULL;
    ask_ahead(session, job);
    if (read_settings(session, &settings, err) < 0 ||
        read_hardware(session, &hardware, err) < 0)
        return -1;
    struct gathering gathering = { .session = session,
                                   .job = job,
                                   .is_about_plan = plan != NULL };
    gathering.preview = preview_new(&settings, hardware, err);
    if (!gathering.preview)
        return -1;
    const struct htj_host *host = session->host;
    struct preview_request request = { .ns = session->ns,
                                       .name = kube_name(job),
                                       .plan = plan,
                                       .now_ms = host->now_ms(host->context),
                                       .wall_ms = host->wall_ms(host->context) };
    int result = gather(&gathering, is_in_cluster, &request.knows_queues, err);
    if (!result)
        result = preview_question(gathering.preview, &request, ret, err);
    preview_free(gathering.preview);
    return result;
}
