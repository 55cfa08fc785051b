#include "tests/controller/random_run.h"

#include "controller/simulate/api_server/condition.h"
#include "tests/controller/inside_planner.h"
#include "tests/controller/random_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FOR_WORLD = 1, FOR_SCHEDULE, FOR_FAULTS, FOR_DEATHS, FOR_PLANNER, FOR_STALLS };

/* By then every back-off, cool-down, deadline and hourly cap of a random job is over. */
#define REST_MS     ((int64_t)2 * 3600 * 1000)
#define QUIET_MS    ((int64_t)60 * 1000)
/* Of one moment; the busiest seeds need a few dozen. */
#define MOST_ROUNDS 2000
/* A server lies in one list, and not in the next. */
#define HONEST_MS   ((int64_t)60 * 1000)
/* All is listed, planned and looked at again. */
#define ANEW_MS     ((int64_t)180 * 1000)

struct run {
    uint64_t seed;
    FILE *trace;
    struct simulation *simulation;
    struct api_server *server;
    struct invariants *invariants;
    struct random_world world;
    struct inside_planner planner;
    struct dice schedule, fate, deaths, stalls;
    unsigned fault_per_mille, death_per_mille;
    size_t replicas;
    unsigned stall_per_mille;
    bool is_dying, lists_lie;
    int64_t lied_ms;
    uint64_t faults, restarts, events, writes, opinions, digest;
    char *broken;
};

__attribute__((format(printf, 2, 3))) static void tell(struct run *run,
                                                       const char *format, ...)
{
    if (!run->trace)
        return;
    va_list args;
    va_start(args, format);
    fprintf(run->trace, "%9.3f  ", (double)simulation_now_ms(run->simulation) / 1000);
    vfprintf(run->trace, format, args);
    fputc('\n', run->trace);
    va_end(args);
}

/* ---- looking on ---- */

static void digest_bytes(struct run *run, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++) /* FNV-1a */
        run->digest = (run->digest ^ byte[i]) * 0x100000001b3u;
}

static int digest_dump(const char *buffer, size_t size, void *run)
{
    digest_bytes(run, buffer, size);
    return 0;
}

/* "Running, gated, terminating"; what a person wants to know of an object. */
static char *state_of(const struct api_server_change *change)
{
    const json_t *after = change->after;
    if (!strcmp(change->plural, "pods"))
        return xasprintf(
            "%s%s%s%s%s", object_text(after, "status.phase"),
            *object_text(after, "spec.nodeName") ? " on " : "",
            object_text(after, "spec.nodeName"),
            json_array_size(object_at(after, "spec.schedulingGates")) ? ", gated" : "",
            object_at(after, "metadata.deletionTimestamp") ? ", ending" : "");
    if (!strcmp(change->plural, "events"))
        return xasprintf("%s: %s", object_text(after, "reason"),
                         object_text(after, "note"));
    if (strcmp(change->plural, "heterotrainingjobs") != 0)
        return json_dumps(object_at(after, "metadata.annotations"),
                          JSON_COMPACT | JSON_ENCODE_ANY);
    char *text = xstrdup("");
    size_t i;
    json_t *condition;
    json_array_foreach (object_at(after, "status.conditions"), i, condition) {
        auto_free char *before = text;
        text = xasprintf("%s %s=%s/%s", before, object_text(condition, "type"),
                         object_text(condition, "status"),
                         object_text(condition, "reason"));
    }
    return text;
}

/* A job without what the controller thinks of other plans for it. */
static json_t *without_opinion(const json_t *job)
{
    json_t *copy = json_deep_copy(job);
    object_remove(copy, "metadata.resourceVersion");
    object_remove(copy, "metadata.managedFields");
    object_remove(copy, "status.lastReplanDecision");
    object_remove(copy, "status.unmetDemand");
    json_t *conditions = object_at(copy, "status.conditions");
    for (size_t i = json_array_size(conditions); i-- > 0;)
        if (!strcmp(object_text(json_array_get(conditions, i), "type"), "PlanOutdated"))
            json_array_remove(conditions, i);
    return copy;
}

/* What a better plan would gain, and what a job that waits would need, depends on the
 * time at which the planner is asked: a controller that knows nothing asks again, says so
 * in events, and may find other numbers. */
static bool is_opinion(const struct api_server_change *change)
{
    if (!strcmp(change->plural, "events"))
        return true;
    if (strcmp(change->plural, "heterotrainingjobs") != 0 || !change->before ||
        !change->after)
        return false;
    json_auto_t *before = without_opinion(change->before);
    json_auto_t *after = without_opinion(change->after);
    return json_equal(before, after);
}

static void on_change(void *context, const struct api_server_change *change)
{
    struct run *run = context;
    const json_t *object = change->after ? change->after : change->before;
    digest_bytes(run, &change->at_ms, sizeof change->at_ms);
    json_dump_callback(object, digest_dump, run, JSON_COMPACT | JSON_SORT_KEYS);
    bool is_lease = !strcmp(change->plural, "leases");
    run->writes += change->by_client && !is_lease;
    run->opinions += change->by_client && is_opinion(change);
    if (!run->trace)
        return;
    auto_free char *state = change->after ? state_of(change) : NULL;
    auto_free char *key = object_key(object);
    tell(run, "%s %s %s %s  %s", change->by_client ? "  ctrl" : "      ",
         !change->before  ? "create"
         : !change->after ? "remove"
                          : "change",
         change->plural, key, state ? state : "");
}

/* ---- faults ---- */

/* Kind of what a path lists, as in its watch; NULL: of something else. */
static const char *listed_kind(const struct api_server_call *call)
{
    static const char *const plurals[] = { "pods", "nodes", "configmaps",
                                           "heterotrainingjobs" };
    bool is_list = strstr(call->path, "limit=") || strstr(call->path, "resourceVersion=");
    for (size_t i = 0; i < sizeof plurals / sizeof *plurals; i++) {
        auto_free char *end = xasprintf("/%s?", plurals[i]);
        if (!strcmp(call->method, "GET") && is_list && strstr(call->path, end))
            return plurals[i];
    }
    return NULL;
}

/* A list that lacks most of what there is: all of it, or half where that is enough to be
 * doubted. What nobody can know is left out: the same lie twice, and one in the first
 * list of a controller, which it can compare with nothing. */
static enum api_server_fault lie_of(struct run *run, const char *plural)
{
    int64_t now_ms = simulation_now_ms(run->simulation);
    if (now_ms - run->lied_ms < HONEST_MS || run->death_per_mille || run->replicas > 1)
        return API_SERVER_NO_FAULT;
    run->lied_ms = now_ms;
    bool is_large = api_server_count(run->server, plural) >= 10;
    return is_large && dice_chance(&run->stalls, 500) ? API_SERVER_PARTIAL_LIST
                                                      : API_SERVER_EMPTY_LIST;
}

static enum api_server_fault fault_of(void *context, const struct api_server_call *call)
{
    static const enum api_server_fault of_requests[] = {
        API_SERVER_UNREACHABLE, API_SERVER_LOSE_REQUEST, API_SERVER_LOSE_REPLY,
        API_SERVER_LOSE_REPLY,  API_SERVER_HANG,         API_SERVER_ANSWER_500,
        API_SERVER_ANSWER_503,  API_SERVER_ANSWER_429,   API_SERVER_ANSWER_409,
        API_SERVER_ANSWER_410,
    };
    static const enum api_server_fault of_watches[] = { API_SERVER_CUT, API_SERVER_CUT,
                                                        API_SERVER_ANSWER_410 };
    struct run *run = context;
    /* What was on its way when the controller died arrives, or does not. */
    if (run->is_dying)
        return dice_chance(&run->fate, 500) ? API_SERVER_LOSE_REPLY
                                            : API_SERVER_LOSE_REQUEST;
    if (!dice_chance(&run->fate, run->fault_per_mille))
        return API_SERVER_NO_FAULT;
    run->faults++;
    enum api_server_fault fault = !strcmp(call->method, "WATCH")
                                      ? dice_pick(&run->fate, of_watches)
                                      : dice_pick(&run->fate, of_requests);
    const char *listed = listed_kind(call);
    if (listed && run->lists_lie && dice_chance(&run->stalls, 700))
        fault = lie_of(run, listed);
    tell(run, "fault %d of %s %s", fault, call->method, call->path);
    return fault;
}

static void restart(struct run *run, size_t replica)
{
    run->restarts++;
    run->is_dying = true;
    tell(run, "controller %zu dies", replica);
    simulation_restart_replica(run->simulation, replica);
    run->is_dying = false;
}

static void before_round(void *context, struct simulation *simulation)
{
    struct run *run = context;
    (void)simulation;
    if (!dice_chance(&run->deaths, run->death_per_mille))
        return;
    size_t replica = dice_throw(&run->deaths, run->replicas);
    if (run->replicas == 1 || dice_chance(&run->deaths, 500)) {
        restart(run, replica);
        return;
    }
    tell(run, "controller %zu stands still", replica);
    simulation_freeze(run->simulation, replica);
}

static void thaw(struct run *run)
{
    for (size_t i = 0; run->replicas > 1 && i < run->replicas; i++)
        simulation_thaw(run->simulation, i);
}

/* ---- the run ---- */

static bool after_step(void *context, struct simulation *simulation)
{
    struct run *run = context;
    (void)simulation;
    invariants_step(run->invariants);
    return !invariants_broken(run->invariants);
}

/* Runs on for `ms`; false if something broke. */
static bool go_on(struct run *run, int64_t ms)
{
    struct het_error err = { 0 };
    if (run->broken || invariants_broken(run->invariants))
        return false;
    if (simulation_run(run->simulation, simulation_now_ms(run->simulation) + ms,
                       after_step, run, &err) < 0)
        run->broken = xasprintf("after %.1f s: %s",
                                (double)simulation_now_ms(run->simulation) / 1000,
                                err.message);
    return !run->broken && !invariants_broken(run->invariants);
}

static void set_up(struct run *run)
{
    struct dice *dice = &run->schedule;
    bool is_faulty = dice_chance(dice, 600);
    bool is_deadly = dice_chance(dice, 400);
    run->fault_per_mille = is_faulty ? (unsigned)dice_between(dice, 5, 80) : 0;
    run->death_per_mille = is_deadly ? (unsigned)dice_between(dice, 2, 40) : 0;
    run->planner.fault_per_mille =
        dice_chance(dice, 300) ? (unsigned)dice_between(dice, 50, 500) : 0;
    run->planner.latency_ms = dice_chance(dice, 700) ? dice_between(dice, 1, 3000) : 0;
    if (dice_chance(dice, 150))
        api_server_set_minor(run->server, 26);
    int64_t latency_ms = is_faulty ? dice_between(dice, 1, 500) : 0;
    api_server_set_random_faults(run->server, run->seed, 0, latency_ms);
    run->lists_lie = is_faulty && dice_chance(&run->stalls, 400);
    run->stall_per_mille = dice_chance(&run->stalls, 400) ? 300 : 0;
    api_server_set_faults(run->server, fault_of, run);
    simulation_before_round(run->simulation, before_round, run);
    run->world.may_hold = dice_chance(dice, 300);
    struct invariants_config config = { .is_late = is_faulty || is_deadly ||
                                                   run->world.may_hold ||
                                                   run->stall_per_mille ||
                                                   run->replicas > 1 };
    run->invariants = invariants_new(run->simulation, &config);
    api_server_observe(run->server, on_change, run);
}

static void happen(struct run *run, char *what)
{
    auto_free char *text = what;
    run->events += *text != '\0';
    if (*text)
        tell(run, "==> %s", text);
}

static int64_t random_pause_ms(struct dice *dice)
{
    static const int64_t longest_ms[] = { 1000, 5000, 30000, 60000, 200000 };
    return dice_between(dice, 0, dice_pick(dice, longest_ms));
}

/* A watch stays open and says nothing for a while, in which something happens; often
 * just that of which it would have told. Half of the time all other watches expire. */
static void stall(struct run *run)
{
    static const char *const plurals[] = { "heterotrainingjobs", "heterotrainingjobs",
                                           "pods", "configmaps", "nodes" };
    const char *plural = dice_pick(&run->stalls, plurals);
    api_server_hold_watches(run->server, plural, true);
    run->faults++;
    tell(run, "==> the watch of %s stalls", plural);
    if (!strcmp(plural, "heterotrainingjobs") && dice_chance(&run->stalls, 700))
        happen(run, random_world_delete_job(&run->world));
    else
        happen(run, random_world_shake(&run->world));
    if (dice_chance(&run->stalls, 500))
        api_server_compact(run->server);
    go_on(run, dice_between(&run->stalls, 1000, 60000));
    api_server_hold_watches(run->server, plural, false);
    tell(run, "==> the watch of %s goes on", plural);
}

static void shake(struct run *run)
{
    int64_t jobs = dice_between(&run->schedule, 1, 3);
    for (int64_t i = 0; i < jobs; i++)
        happen(run, random_world_add_job(&run->world));
    int64_t events = dice_between(&run->schedule, 4, 16);
    for (int64_t i = 0; i < events && go_on(run, random_pause_ms(&run->schedule)); i++) {
        happen(run, random_world_shake(&run->world));
        if (dice_chance(&run->schedule, 300))
            thaw(run);
        if (dice_chance(&run->stalls, run->stall_per_mille))
            stall(run);
    }
}

static void end_troubles(struct run *run)
{
    run->fault_per_mille = 0;
    run->death_per_mille = 0;
    run->planner.fault_per_mille = 0;
    run->lists_lie = false;
    thaw(run);
}

/* Nothing happens to the cluster, but everything to the connection. */
static void disturb(struct run *run)
{
    end_troubles(run);
    random_world_admit(&run->world);
    if (!go_on(run, REST_MS))
        return;
    tell(run, "==> only the connection is bad for a while");
    invariants_set_calm(run->invariants, true);
    run->fault_per_mille = 60;
    run->death_per_mille = 5;
    go_on(run, 600 * 1000);
    end_troubles(run);
    go_on(run, 60 * 1000);
    invariants_set_calm(run->invariants, false);
}

/* Pods that the API server refuses are tried again, with pauses that double up to 256 s.
 */
static uint64_t count_retries(const struct run *run,
                              const struct invariants_statistics *seen)
{
    uint64_t seconds = (uint64_t)simulation_now_ms(run->simulation) / 1000;
    uint64_t most = seen->jobs_seen * (8 + seconds / 256);
    return seen->retries < most ? seen->retries : most;
}

/* I8: a plan costs a few writes for each pod, and only what happens leads to a plan. The
 * factors are about twice what the worst of thousands of seeds needed. */
static void check_work(struct run *run)
{
    struct invariants_statistics seen = invariants_statistics(run->invariants);
    uint64_t causes = seen.jobs_seen + run->events;
    uint64_t most_plans = 2 * (causes + run->restarts) + run->faults +
                          run->planner.faults + count_retries(run, &seen);
    uint64_t most_writes = 10 * seen.plans + 5 * seen.pods + 10 * causes +
                           5 * run->restarts + 2 * (run->faults + run->planner.faults);
    if (!run->broken && (seen.plans > most_plans || run->writes > most_writes))
        run->broken = xasprintf("I8: %" PRIu64 " plans (%" PRIu64 " at most) and %" PRIu64
                                " writes (%" PRIu64 " at most)",
                                seen.plans, most_plans, run->writes, most_writes);
}

static void rest(struct run *run)
{
    end_troubles(run);
    tell(run, "==> all is well from now on");
    if (!run->broken && !random_world_has_bystanders(&run->world))
        run->broken = xstrdup("I7: an object that only looks like ours is gone");
    random_world_heal(&run->world);
    if (!go_on(run, REST_MS))
        return;
    invariants_at_rest(run->invariants);
    uint64_t writes = run->writes;
    if (go_on(run, QUIET_MS) && run->writes != writes)
        run->broken = xasprintf("I10: %" PRIu64 " writes in a minute of rest",
                                run->writes - writes);
    /* The status says what is there, not what somebody remembers: a controller that
     * knows nothing has nothing to add. */
    for (size_t i = 0; i < run->replicas; i++)
        restart(run, i);
    writes = run->writes - run->opinions;
    if (go_on(run, ANEW_MS) && run->writes - run->opinions != writes)
        run->broken = xasprintf("I5: %" PRIu64 " writes of a new controller at rest",
                                run->writes - run->opinions - writes);
    check_work(run);
}

struct random_run_result random_run(const struct random_run_config *config)
{
    uint64_t seed = config->seed;
    struct run run = { .seed = seed,
                       .trace = config->trace,
                       .planner = { .dice = dice_of(seed, FOR_PLANNER) },
                       .schedule = dice_of(seed, FOR_SCHEDULE),
                       .fate = dice_of(seed, FOR_FAULTS),
                       .deaths = dice_of(seed, FOR_DEATHS),
                       .stalls = dice_of(seed, FOR_STALLS),
                       .replicas = seed % 10 ? 1 : 2,
                       .digest = 0xcbf29ce484222325u };
    struct simulation_config simulated = { .inside = inside_planner_answer,
                                           .doubts_memos = true,
                                           .inside_context = &run.planner,
                                           .on_decision = config->on_decision,
                                           .decision_context = config->decision_context,
                                           .settings = profiler_settings(),
                                           .seed = seed,
                                           .replicas = run.replicas,
                                           .max_rounds = MOST_ROUNDS,
                                           .cluster = simulated_cluster_defaults };
    run.simulation = simulation_new(&simulated, NULL);
    run.server = simulation_server(run.simulation);
    run.world = (struct random_world){ .server = run.server,
                                       .cluster = simulation_cluster(run.simulation),
                                       .dice = dice_of(seed, FOR_WORLD) };
    set_up(&run);
    random_world_build(&run.world);
    shake(&run);
    if (dice_chance(&run.schedule, 200))
        disturb(&run);
    rest(&run);
    const char *broken = invariants_broken(run.invariants);
    struct random_run_result result = {
        .broken = broken ? xstrdup(broken) : TAKE(run.broken),
        .digest = run.digest,
        .seen = invariants_statistics(run.invariants),
        .writes = run.writes,
        .faults = run.faults,
        .restarts = run.restarts,
        .planner_questions = run.planner.questions,
        .events = run.events,
        .virtual_ms = simulation_now_ms(run.simulation),
    };
    free(run.broken);
    invariants_free(run.invariants);
    simulation_free(run.simulation);
    inside_planner_fini(&run.planner);
    return result;
}
