#include "controller/simulate/simulate_command.h"

#include "controller/base/log.h"
#include "controller/simulate/api_server/condition.h"
#include "controller/simulate/live_dashboard.h"
#include "controller/simulate/narration.h"
#include "controller/simulate/simulation.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: heterotrain-simulate --nodes FILE --job FILE [OPTION]...\n"
    "\n"
    "Shows what the controller would do: the same code as on a cluster, over an API\n"
    "server inside this process and a clock that jumps from event to event. Nothing\n"
    "outside is touched, and the same input gives the same output.\n"
    "\n"
    "What there is (YAML or JSON; lists and several documents in a file are fine;\n"
    "each option may be given several times; - is standard input):\n"
    "  --nodes FILE      Nodes, as `kubectl get nodes -o json` prints them\n"
    "  --pods FILE       pods that take GPUs, as `kubectl get pods -A -o json` prints\n"
    "  --profile FILE    ModelProfile, ClusterModelProfile\n"
    "  --job FILE        HeteroTrainingJob\n"
    "  --hardware FILE   bandwidths, memory and names of GPU types, once\n"
    "\n"
    "What happens:\n"
    "  --event 'TIME EVENT'   TIME is 90s, 2m, 1m30s, ...; EVENT is one of\n"
    "        delete node/NAME        the node is gone, and what runs on it\n"
    "        restore node/NAME       a deleted node comes back\n"
    "        cordon node/NAME        no new pods on it;  uncordon node/NAME\n"
    "        notready node/NAME      its kubelet falls silent;  ready node/NAME\n"
    "        gpus node/NAME COUNT    so many of its GPUs are healthy\n"
    "        taint node/NAME KEY[=VALUE]:EFFECT;  untaint node/NAME KEY[:EFFECT]\n"
    "        label node/NAME KEY=VALUE            (KEY- removes it; job/NAME, too)\n"
    "        annotate node/NAME KEY=VALUE         (the same)\n"
    "        condition node/NAME TYPE STATUS\n"
    "        occupy node/NAME COUNT  another tenant takes GPUs;  release node/NAME\n"
    "        apply FILE              objects are created or replaced\n"
    "        delete job/NAME         also job/NAMESPACE/NAME\n"
    "        suspend job/NAME;  resume job/NAME\n"
    "        patch job/NAME JSON     a merge patch of the object\n"
    "        succeed job/NAME        its pods exit with 0\n"
    "        fail pod/NAME [CODE]    exits with 1, or CODE\n"
    "        evict pod/NAME;  delete pod/NAME\n"
    "  --until TIME      end of the simulation (600s)\n"
    "  --heartbeats      nodes renew their status every 10 s, as real ones do\n"
    "\n"
    "What is shown:\n"
    "  --output text|json   as it happens, or one document at the end (text)\n"
    "  --ascii           draw with ASCII only\n"
    "  --quiet           only how it ends\n"
    "  --log LEVELS      the controller's log on standard error: info, debug,\n"
    "                    watch=debug,info, ... (off)\n"
    "\n"
    "  --dashboard ADDRESS:PORT   the page of the same option of the controller; then\n"
    "                    time does not jump, and all stays as it is at the end until\n"
    "                    Ctrl-C\n"
    "  --speed NUMBER    of simulated seconds in one (10; with --dashboard)\n"
    "\n"
    "  --hetplan PATH    the planner (hetplan beside this program)\n"
    "  --seed NUMBER     of uids and jitter (1)\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 if at the end every job is placed or over, 1 if one waits for a\n"
    "plan or the controller did not come to rest, 2 for bad input.\n";

enum source { NODES, PODS, PROFILE, JOB, SOURCES };

/* What may stand in the files of an option; the first kind must. */
static const struct {
    const char *option;
    const char *kinds[3];
    const char *expected;
} sources[SOURCES] = {
    [NODES] = { "--nodes",
                { "Node" },
                "Nodes, as `kubectl get nodes -o json` prints them" },
    [PODS] = { "--pods", { "Pod" }, "Pods, as `kubectl get pods -A -o json` prints" },
    [PROFILE] = { "--profile",
                  { "ModelProfile", "ClusterModelProfile" },
                  "a ModelProfile or ClusterModelProfile" },
    [JOB] = { "--job",
              { "HeteroTrainingJob", "ModelProfile", "ClusterModelProfile" },
              "a HeteroTrainingJob" },
};

struct options {
    json_t *objects[SOURCES]; /* arrays */
    json_t *hardware;         /* NULL: none given */
    struct scenario_event *events;
    size_t event_count, event_capacity;
    int64_t until_ms;
    const char *hetplan;
    uint64_t seed;
    bool heartbeats;
    struct live_dashboard_config live_dashboard; /* address NULL: none */
    bool is_running; /* the input was good: what fails now is not its fault */
    struct narration_options report;
};

/* ---- files ---- */

static char *read_all(FILE *file, size_t *ret_length)
{
    char *text = NULL;
    size_t capacity = 0;
    size_t length = 0;
    size_t got;
    do {
        ARRAY_RESERVE(text, &capacity, length + 65536);
        got = fread(text + length, 1, 65536, file);
        length += got;
    } while (got && length <= HET_YAML_MAX_BYTES);
    *ret_length = length;
    return text;
}

/* All documents of a file, as an array. */
static json_t *load_documents(const char *path, struct het_error *err)
{
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
    if (!file) {
        het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    size_t length;
    auto_free char *text = read_all(file, &length);
    bool failed = ferror(file);
    if (file != stdin)
        fclose(file);
    if (failed) {
        het_fail(err, HET_IO, "%s: cannot be read", path);
        return NULL;
    }
    /* JSON is YAML, too, but reads faster as what it is. */
    json_t *json = NULL;
    if (!het_json_decode(text, length, path, &json, NULL))
        return json_pack("[o]", json);
    json_t *documents = NULL;
    if (!het_yaml_parse(text, length, &documents, err))
        return documents;
    het_wrap(err, "%s", path);
    return NULL;
}

/* Adds `document`, or what it lists, to `objects`. Items of a typed list say their kind
 * through the list. */
static void add_objects(json_t *objects, json_t *document)
{
    json_t *items = object_at(document, "items");
    const char *kind = object_text(document, "kind");
    size_t length = strlen(kind);
    if (!json_is_array(items) || length < 4 || strcmp(kind + length - 4, "List") != 0) {
        json_array_append(objects, document);
        return;
    }
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        if (json_is_object(item) && length > 4) {
            object_default(item, "kind", json_stringn(kind, length - 4));
            object_default(item, "apiVersion",
                           json_string(object_text(document, "apiVersion")));
        }
        add_objects(objects, item);
    }
}

static json_t *load_objects(const char *path, struct het_error *err)
{
    json_auto_t *documents = load_documents(path, err);
    if (!documents)
        return NULL;
    json_t *objects = json_array();
    size_t i;
    json_t *document;
    json_array_foreach (documents, i, document) {
        add_objects(objects, document);
    }
    return objects;
}

static bool is_among(const char *kind, const char *const kinds[3])
{
    for (size_t i = 0; i < 3 && kinds[i]; i++)
        if (!strcmp(kind, kinds[i]))
            return true;
    return false;
}

static int load_source(struct options *options, enum source source, const char *path,
                       struct het_error *err)
{
    json_auto_t *objects = load_objects(path, err);
    if (!objects)
        return -1;
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        const char *kind = object_text(object, "kind");
        if (!is_among(kind, sources[source].kinds))
            return het_fail(err, HET_BAD_INPUT, "%s: expected %s, found %s%s", path,
                            sources[source].expected, *kind ? "kind " : "no kind", kind);
    }
    json_array_extend(options->objects[source], objects);
    return 0;
}

/* A hardware file, or the ConfigMap that has it. */
static int load_hardware(struct options *options, const char *path, struct het_error *err)
{
    json_auto_t *documents = load_documents(path, err);
    if (!documents)
        return -1;
    if (options->hardware || json_array_size(documents) != 1)
        return het_fail(err, HET_BAD_INPUT, "%s: expected one document, once", path);
    json_t *document = json_array_get(documents, 0);
    const char *text =
        json_string_value(json_object_get(object_at(document, "data"), "hardware.json"));
    if (!strcmp(object_text(document, "kind"), "ConfigMap") && text)
        return het_json_decode(text, strlen(text), path, &options->hardware, err);
    options->hardware = json_incref(document);
    return 0;
}

/* ---- options ---- */

enum {
    OPTION_HARDWARE = 256,
    OPTION_EVENT,
    OPTION_UNTIL,
    OPTION_HEARTBEATS,
    OPTION_OUTPUT,
    OPTION_ASCII,
    OPTION_QUIET,
    OPTION_LOG,
    OPTION_HETPLAN,
    OPTION_SEED,
    OPTION_DASHBOARD,
    OPTION_SPEED,
    OPTION_HELP,
};

static const struct option long_options[] = {
    { "nodes", required_argument, NULL, NODES },
    { "pods", required_argument, NULL, PODS },
    { "profile", required_argument, NULL, PROFILE },
    { "job", required_argument, NULL, JOB },
    { "hardware", required_argument, NULL, OPTION_HARDWARE },
    { "event", required_argument, NULL, OPTION_EVENT },
    { "until", required_argument, NULL, OPTION_UNTIL },
    { "heartbeats", no_argument, NULL, OPTION_HEARTBEATS },
    { "output", required_argument, NULL, OPTION_OUTPUT },
    { "ascii", no_argument, NULL, OPTION_ASCII },
    { "quiet", no_argument, NULL, OPTION_QUIET },
    { "log", required_argument, NULL, OPTION_LOG },
    { "hetplan", required_argument, NULL, OPTION_HETPLAN },
    { "seed", required_argument, NULL, OPTION_SEED },
    { "dashboard", required_argument, NULL, OPTION_DASHBOARD },
    { "speed", required_argument, NULL, OPTION_SPEED },
    { "help", no_argument, NULL, OPTION_HELP },
    { 0 },
};

static int add_event(struct options *options, const char *text, struct het_error *err)
{
    ARRAY_RESERVE(options->events, &options->event_capacity, options->event_count + 1);
    if (scenario_event_parse(text, load_objects, &options->events[options->event_count],
                             err) < 0)
        return -1;
    options->event_count++;
    return 0;
}

static int set_until(struct options *options, const char *text, struct het_error *err)
{
    options->until_ms = scenario_duration_ms(text);
    return options->until_ms >= 0
               ? 0
               : het_fail(err, HET_BAD_INPUT, "--until %s: not a time like 600s or 10m",
                          text);
}

static int set_output(struct options *options, const char *text, struct het_error *err)
{
    options->report.is_json = !strcmp(text, "json");
    return options->report.is_json || !strcmp(text, "text")
               ? 0
               : het_fail(err, HET_BAD_INPUT, "--output %s: expected text or json", text);
}

static int set_seed(struct options *options, const char *text, struct het_error *err)
{
    char *end;
    options->seed = strtoull(text, &end, 10);
    return *text && !*end
               ? 0
               : het_fail(err, HET_BAD_INPUT, "--seed %s: expected a number", text);
}

static int set_speed(struct options *options, const char *text, struct het_error *err)
{
    char *end;
    options->live_dashboard.speed = strtod(text, &end);
    return *text && !*end && options->live_dashboard.speed >= 0.01 &&
                   options->live_dashboard.speed <= 1e6
               ? 0
               : het_fail(err, HET_BAD_INPUT,
                          "--speed %s: must be a number from 0.01 to 1000000", text);
}

/* One option; 1 for --help. */
static int take_option(struct options *options, int option, const char *value,
                       struct het_error *err)
{
    switch (option) {
    case NODES:
    case PODS:
    case PROFILE:
    case JOB:
        return load_source(options, (enum source)option, value, err);
    case OPTION_HARDWARE:
        return load_hardware(options, value, err);
    case OPTION_EVENT:
        return add_event(options, value, err);
    case OPTION_UNTIL:
        return set_until(options, value, err);
    case OPTION_HEARTBEATS:
        options->heartbeats = true;
        return 0;
    case OPTION_OUTPUT:
        return set_output(options, value, err);
    case OPTION_ASCII:
        options->report.is_ascii = true;
        return 0;
    case OPTION_QUIET:
        options->report.is_quiet = true;
        return 0;
    case OPTION_LOG:
        return log_set_levels(value, err) < 0 ? het_wrap(err, "--log %s", value) : 0;
    case OPTION_HETPLAN:
        options->hetplan = value;
        return 0;
    case OPTION_SEED:
        return set_seed(options, value, err);
    case OPTION_DASHBOARD:
        options->live_dashboard.address = value;
        return 0;
    case OPTION_SPEED:
        return set_speed(options, value, err);
    case OPTION_HELP:
        return 1;
    default:
        return het_fail(err, HET_BAD_INPUT, "see heterotrain-simulate --help");
    }
}

static int read_options(int argc, char **argv, struct options *options,
                        struct het_error *err)
{
    optind = 0; /* GNU: start anew, as tests call it several times */
    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        int status = take_option(options, option, optarg, err);
        if (status)
            return status;
    }
    if (optind < argc)
        return het_fail(err, HET_BAD_INPUT, "%s: not an option; see --help",
                        argv[optind]);
    static const enum source needed[] = { NODES, JOB };
    for (size_t i = 0; i < 2; i++)
        if (!json_array_size(options->objects[needed[i]]))
            return het_fail(err, HET_BAD_INPUT, "%s is missing: expected %s",
                            sources[needed[i]].option, sources[needed[i]].expected);
    return 0;
}

static void options_fini(struct options *options)
{
    for (int i = 0; i < SOURCES; i++)
        json_decref(options->objects[i]);
    json_decref(options->hardware);
    for (size_t i = 0; i < options->event_count; i++)
        scenario_event_fini(&options->events[i]);
    free(options->events);
}

/* ---- the run ---- */

static int put_all(struct simulation *simulation, const json_t *objects,
                   struct het_error *err)
{
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        if (api_server_put(simulation_server(simulation), json_incref(object), err) < 0)
            return het_wrap(err, "%s %s", object_text(object, "kind"),
                            object_text(object, "metadata.name"));
    }
    return 0;
}

/* What hears of each moment of the run. */
struct audience {
    struct narration *report;
    struct live_dashboard *live_dashboard; /* NULL: none */
};

static bool on_moment(void *context, struct simulation *simulation)
{
    struct audience *audience = context;
    bool goes_on = !audience->live_dashboard ||
                   live_dashboard_await(audience->live_dashboard, simulation);
    narration_step(audience->report, simulation);
    if (audience->live_dashboard)
        live_dashboard_show(audience->live_dashboard, simulation);
    return goes_on;
}

static int run_all(struct options *options, struct simulation *simulation,
                   struct audience *audience, FILE *out, size_t *ret_waiting,
                   struct het_error *err)
{
    for (int i = 0; i < SOURCES; i++)
        if (put_all(simulation, options->objects[i], err) < 0)
            return -1;
    if (options->live_dashboard.address) {
        audience->live_dashboard = live_dashboard_new(&options->live_dashboard, err);
        if (!audience->live_dashboard)
            return het_wrap(err, "--dashboard");
        fprintf(out, "The dashboard is at %s\n\n",
                live_dashboard_url(audience->live_dashboard));
    }
    narration_cluster(audience->report);
    for (size_t i = 0; i < options->event_count; i++)
        simulated_cluster_plan(simulation_cluster(simulation), &options->events[i]);
    int status = simulation_run(simulation, options->until_ms, on_moment, audience, err);
    *ret_waiting = narration_end(audience->report);
    if (audience->live_dashboard)
        live_dashboard_hold(audience->live_dashboard);
    return status;
}

static int run(struct options *options, struct simulation *simulation, FILE *out,
               size_t *ret_waiting, struct het_error *err)
{
    struct audience audience = { .report =
                                     narration_new(simulation, out, &options->report) };
    int status = run_all(options, simulation, &audience, out, ret_waiting, err);
    live_dashboard_free(audience.live_dashboard);
    narration_free(audience.report);
    return status;
}

static int simulate(struct options *options, FILE *out, size_t *ret_waiting,
                    struct het_error *err)
{
    struct het_arena *arena = het_arena_new();
    struct simulation_config config = { .planner = options->hetplan,
                                        .hardware = options->hardware,
                                        .seed = options->seed,
                                        .cluster = simulated_cluster_defaults };
    config.cluster.heartbeat_ms = options->heartbeats ? 10000 : 0;
    options->report.hardware = het_hardware_builtin();
    int status = 0;
    if (options->hardware)
        status = het_hardware_json_read(arena, options->hardware, het_hardware_builtin(),
                                        &options->report.hardware, err);
    struct simulation *simulation = status ? NULL : simulation_new(&config, err);
    if (simulation)
        status = run(options, simulation, out, ret_waiting, err);
    else
        status = het_wrap(err, "--hardware");
    simulation_free(simulation);
    het_arena_free(arena);
    return status;
}

int simulate_command_main(int argc, char **argv, const struct simulate_terminal *terminal)
{
    struct options options = {
        .until_ms = 600000,
        .hetplan = terminal->hetplan,
        .seed = 1,
        .live_dashboard = { .speed = 10,
                            .clock_ms = terminal->clock_ms,
                            .sleep_ms = terminal->sleep_ms },
        .report = { .is_ascii = !terminal->is_utf8,
                    .width = terminal->width < 82 ? 82 : terminal->width },
    };
    struct het_error err = { 0 };
    for (int i = 0; i < SOURCES; i++)
        options.objects[i] = json_array();
    log_set_levels("off", NULL);
    size_t waiting = 0;
    int status = read_options(argc, argv, &options, &err);
    if (status > 0)
        fputs(help, terminal->out);
    else if (!status)
        status = simulate(&options, terminal->out, &waiting, &err);
    if (status < 0)
        fprintf(terminal->err, "heterotrain-simulate: %s\n", err.message);
    options_fini(&options);
    if (status < 0)
        return options.is_running ? 1 : 2;
    return waiting ? 1 : 0;
}
