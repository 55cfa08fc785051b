#include "controller/kubectl/session.h"

#include "controller/cluster/plan_object.h"
#include "controller/decision/children.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

int session_init(struct session *session, const struct htj_host *host,
                 const struct htj_options *options, struct het_error *err)
{
    *session = (struct session){ .host = host, .options = options };
    if (host->connect(host->context, options, &session->link, err) < 0)
        return -1;
    session->arena = het_arena_new();
    session->client = blocking_client_new(host, &session->link);
    session->ns = session->link.ns;
    return 0;
}

void session_fini(struct session *session)
{
    blocking_client_free(session->client);
    het_arena_free(session->arena);
}

int session_get_name(const struct session *session, size_t most, const char **ret,
                     struct het_error *err)
{
    const struct htj_options *options = session->options;
    if (!options->word_count)
        return het_fail(err, HET_BAD_INPUT, "the name of a job is missing; see --help");
    if (options->word_count > most)
        return het_fail(err, HET_BAD_INPUT, "unexpected word \"%.60s\"; see --help",
                        options->words[most]);
    *ret = options->words[0];
    return 0;
}

int session_get_job(struct session *session, const char *name, json_t **ret,
                    struct het_error *err)
{
    /* "htj/train" is how kubectl get -o name and its users say it. */
    const char *slash = strrchr(name, '/');
    if (blocking_client_get(session->client, &kube_job, session->ns,
                            slash ? slash + 1 : name, ret, err) == KUBE_OK)
        return 0;
    return -1;
}

void session_note(const struct session *session, const char *format, ...)
{
    struct het_error note;
    char text[sizeof note.message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    het_fail(&note, HET_OK, "%s", text); /* makes it printable */
    fprintf(session->host->err, "note: %s\n", note.message);
}

/* ---- plans ---- */

void shown_plan_fini(struct shown_plan *plan)
{
    json_decref(plan->json);
    plan->json = NULL;
}

/* Why a job has no plan: its first condition that is not as it should be. */
static int fail_without_plan(const json_t *job, struct het_error *err)
{
    static const char *const types[] = { "Accepted", "Suspended", "PlanFeasible" };
    const char *ns = kube_namespace(job), *name = kube_name(job);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const json_t *condition = object_find_condition(job, types[i]);
        const char *good = strcmp(types[i], "Suspended") != 0 ? "True" : "False";
        if (condition && strcmp(object_text(condition, "status"), good) != 0)
            return het_fail(err, HET_NO_PLAN, "job %s/%s has no plan yet: %s: %s", ns,
                            name, object_text(condition, "reason"),
                            object_text(condition, "message"));
    }
    return het_fail(err, HET_NO_PLAN,
                    "job %s/%s has no plan yet, and nothing is said about it: does the "
                    "controller run?",
                    ns, name);
}

/* ConfigMap `name` of `generation`, 0: of the candidate; `missing` says that there is
 * none. */
static int read_plan(struct session *session, const json_t *job, const char *name,
                     int64_t generation, const char *missing, struct shown_plan *ret,
                     struct het_error *err)
{
    json_auto_t *map = NULL;
    if (blocking_client_get(session->client, &kube_config_map, kube_namespace(job), name,
                            &map, err) != KUBE_OK)
        return err->code == HET_NOT_FOUND ? het_fail(err, HET_NOT_FOUND, "%s", missing)
                                          : -1;
    bool is_it = generation ? plan_object_generation(map) == generation
                            : plan_object_is_candidate(map);
    ret->plan = plan_object_read(session->arena, map);
    if (!ret->plan || !is_it || !plan_object_is_of(map, job))
        return het_fail(err, HET_BAD_INPUT,
                        "ConfigMap %s/%s is no plan as the controller writes them",
                        kube_namespace(job), name);
    const char *text =
        json_string_value(json_object_get(json_object_get(map, "data"), "plan.json"));
    ret->generation = generation;
    return het_json_decode(text, strlen(text), "plan.json", &ret->json, err);
}

static int get_candidate(struct session *session, const json_t *job,
                         struct shown_plan *ret, struct het_error *err)
{
    const char *name = object_text(job, "status.candidate.configMapRef.name");
    const char *missing = het_arena_printf(session->arena, "job %s/%s shows no candidate",
                                           kube_namespace(job), kube_name(job));
    if (!*name)
        return het_fail(err, HET_NO_PLAN, "%s", missing);
    return read_plan(session, job, name, 0, missing, ret, err);
}

static int get_generation(struct session *session, const json_t *job, int64_t generation,
                          struct shown_plan *ret, struct het_error *err)
{
    return read_plan(session, job,
                     plan_object_name(session->arena, kube_name(job), generation),
                     generation,
                     het_arena_printf(session->arena,
                                      "job %s/%s has no plan of revision %" PRId64
                                      ": history lists those that are kept",
                                      kube_namespace(job), kube_name(job), generation),
                     ret, err);
}

int session_get_plan(struct session *session, const json_t *job, struct shown_plan *ret,
                     struct het_error *err)
{
    const struct htj_options *options = session->options;
    int64_t newest = object_integer(job, "status.plan.revision", 0);
    *ret = (struct shown_plan){ 0 };
    if (options->is_candidate && options->generation)
        return het_fail(err, HET_BAD_INPUT,
                        "--candidate and --revision are two different plans");
    if (options->is_candidate)
        return get_candidate(session, job, ret, err);
    if (!options->generation && newest < 1)
        return fail_without_plan(job, err);
    return get_generation(session, job,
                          options->generation ? options->generation : newest, ret, err);
}
