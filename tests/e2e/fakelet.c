/* fakelet - the kubelets of a cluster that has none. One process stands in for the
 * kubelet of every node in a list: it registers the nodes, renews their leases, and takes
 * the pods that the scheduler binds to them through Pending, Running, and gone. What real
 * machines do by accident it does on command, by lines written to a FIFO:
 *
 *     fail POD CODE      the pod's containers exit with CODE     POD: [NAMESPACE/]NAME,
 *     succeed POD        the pod's containers exit with 0        or the name of a job,
 *                                                                for all of its pods
 *     silence NODE       the machine hangs: no lease, no status, pods untouched
 *     delete NODE        the machine and its Node object are gone
 *     restore NODE       the machine is back, as it was at the start
 *     gpus NODE COUNT    so many of its GPUs are healthy
 *     renew SECONDS      leases are renewed so often, as with --lease-ms
 *     hook POD STATUS SECONDS   the program in the pod answers its checkpoint hook so,
 * after so long; STATUS 0: never. At the start: 200, at once
 *
 * Pods have addresses of 127.244.0.0/16, or of --pod-network, and with --hook-port the
 * programs in them listen on that port.
 *
 * With --run PROGRAM their containers are processes: for a pod that starts, PROGRAM gets
 * a folder below --run-dir, called by the pod's uid, with the pod in pod.json, and the
 * pod's address. It ends as the container does, and leaves the termination message in
 * termination-log. A pod that is deleted gets SIGTERM, and SIGKILL after its grace; on a
 * machine that is gone, or for a pod that was deleted by force, SIGKILL.
 *
 * A Node object that somebody else deletes means that its machine is gone, too; `restore`
 * brings it back. Without --strict nothing is refused, so that a test can see GPUs
 * promised twice; with it, pods beyond what a node has fail as a kubelet fails them. */
#include "controller/base/log.h"
#include "controller/base/object.h"
#include "controller/base/process.h"
#include "controller/base/timestamp.h"
#include "controller/base/workqueue.h"
#include "controller/kube/auth.h"
#include "controller/kube/watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEASE_NAMESPACE "kube-node-lease"
#define JOB_NAME_LABEL  "heterotrain.io/job-name"
#define RETRY_MS        500  /* after a write that failed */
#define REQUESTS_PER_S  1000 /* the limiter is not what is tested */
/* Of a node list; a real node takes 10 KiB. */
#define NODE_LIST_BYTES ((size_t)16 << 20)
#define MAX_CALLS       32   /* of checkpoint hooks, at the same time */
#define MAX_PROGRAMS    64   /* that run, or have ended and are not told of yet */
#define MESSAGE_BYTES   4096 /* of a termination message, as a kubelet takes */

static const struct kube_resource lease_resource = { "coordination.k8s.io/v1", "leases",
                                                     "Lease", true };

struct node {
    const char *name; /* in `object` */
    json_t *object;   /* as in the list; `gpus` changes its allocatable */
    json_t *allocatable;
    enum { MACHINE_UP, MACHINE_SILENT, MACHINE_GONE } machine;
    bool is_registered, has_lease;
    bool is_status_due;
    bool is_writing, is_renewing; /* a request is on its way */
    bool is_admitting;            /* a pod's first status is on its way */
    int64_t write_due_ms, lease_due_ms;
};

/* Somebody calls the checkpoint hook of a pod. */
struct call {
    int fd; /* 0: none */
    char *pod;
    int status; /* of the answer; 0: there will be none */
    int64_t due_ms;
    bool is_told; /* the log knows of it */
};

/* What runs as the container of a pod (--run). */
struct program {
    enum { PROGRAM_NONE, PROGRAM_RUNS, PROGRAM_ENDED } state;
    pid_t pid;
    char *pod, *uid, *node;
    int64_t kill_ms; /* SIGTERM was sent; SIGKILL comes then. 0: it may run on */
    int exit_code;
};

struct fakelet {
    struct kube *kube;
    struct store *store;
    struct workqueue *pods; /* that need something done */
    struct node *nodes;
    size_t node_count;
    int64_t now_ms, wall_ms; /* as of look_at_clock */
    int64_t start_ms, stop_ms, lease_ms;
    bool is_strict;
    const char *pod_network; /* the first two numbers of pods' addresses */
    unsigned next_address;
    json_t *hooks; /* pod or job: [status, seconds] */
    struct call calls[MAX_CALLS];
    const char *run, *run_dir; /* NULL: containers are not run */
    struct program programs[MAX_PROGRAMS];
    char command[1024]; /* what was read of the next command */
    size_t command_length;
};

/* Called at each turn of the loop, and when something arrives: a delay counts from then.
 */
static void look_at_clock(struct fakelet *fakelet)
{
    fakelet->now_ms = process_clock_ms(CLOCK_MONOTONIC);
    fakelet->wall_ms = process_clock_ms(CLOCK_REALTIME);
    log_set_time(fakelet->wall_ms);
}

static struct node *node_find(struct fakelet *fakelet, const char *name)
{
    for (size_t i = 0; i < fakelet->node_count; i++)
        if (strcmp(fakelet->nodes[i].name, name) == 0)
            return &fakelet->nodes[i];
    return NULL;
}

static const char *string_at(const json_t *object, const char *outer, const char *inner)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(object, outer), inner));
    return text ? text : "";
}

static json_t *now_string(const struct fakelet *fakelet)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(fakelet->wall_ms, text);
    return json_string(text);
}

static json_t *condition(const struct fakelet *fakelet, const char *type, bool is_true,
                         const char *reason, const char *message)
{
    json_t *made = json_pack("{s:s, s:s, s:o}", "type", type, "status",
                             is_true ? "True" : "False", "lastTransitionTime",
                             now_string(fakelet));
    if (reason)
        json_object_set_new(made, "reason", json_string(reason));
    if (message)
        json_object_set_new(made, "message", json_string(message));
    return made;
}

/* What a request is about, until its callback: names, as objects may go meanwhile. */
struct errand {
    struct fakelet *fakelet;
    struct node *node; /* nodes live as long as the process */
    char *pod;         /* "namespace/name" */
};

static struct errand *errand_new(struct fakelet *fakelet, struct node *node,
                                 const char *pod)
{
    struct errand *errand = xcalloc(1, sizeof *errand);
    errand->fakelet = fakelet;
    errand->node = node;
    errand->pod = pod ? xstrdup(pod) : NULL;
    return errand;
}

static void errand_free(struct errand *errand)
{
    free(errand->pod);
    free(errand);
}

static void log_failure(const struct kube_result *result, const char *what,
                        const char *name)
{
    log_event(LOG_WARNING, "fakelet", what, LOG_STR("name", name),
              LOG_INT("status", result->status), LOG_STR("message", result->message));
}

/* ---- nodes ---- */

/* The five conditions of a healthy kubelet. */
static json_t *node_conditions(const struct fakelet *fakelet)
{
    static const struct {
        const char *type, *reason, *message;
    } table[] = {
        { "MemoryPressure", "KubeletHasSufficientMemory", "there is enough memory" },
        { "DiskPressure", "KubeletHasNoDiskPressure", "there is enough disk" },
        { "PIDPressure", "KubeletHasSufficientPID", "there are enough process ids" },
        { "NetworkUnavailable", "RouteCreated", "the network is there" },
        { "Ready", "KubeletReady", "the fake kubelet is posting ready status" },
    };
    json_t *conditions = json_array();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        json_t *made = condition(fakelet, table[i].type,
                                 strcmp(table[i].type, "Ready") == 0, table[i].reason,
                                 table[i].message);
        json_object_set_new(made, "lastHeartbeatTime", now_string(fakelet));
        json_array_append_new(conditions, made);
    }
    return conditions;
}

static json_t *node_status(const struct fakelet *fakelet, const struct node *node)
{
    json_t *status = json_deep_copy(json_object_get(node->object, "status"));
    if (!status)
        status = json_object();
    json_object_set(status, "allocatable", node->allocatable);
    json_object_set_new(status, "conditions", node_conditions(fakelet));
    json_object_set_new(status, "addresses",
                        json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "InternalIP",
                                  "address", "127.0.0.1", "type", "Hostname", "address",
                                  node->name));
    return status;
}

static void node_written(void *context, const struct kube_result *result)
{
    struct errand *errand = context;
    struct node *node = errand->node;
    node->is_writing = false;
    switch ((int)result->outcome) {
    case KUBE_OK:
        node->is_registered = true;
        break;
    case KUBE_EXISTS: /* it was there before us: make its status ours */
        node->is_registered = true;
        node->is_status_due = true;
        break;
    default:
        log_failure(result, "node-not-written", node->name);
        node->is_status_due = node->is_registered;
        node->write_due_ms = errand->fakelet->now_ms + RETRY_MS;
    }
    errand_free(errand);
}

static void node_register(struct fakelet *fakelet, struct node *node)
{
    json_auto_t *object = json_deep_copy(node->object);
    json_object_set_new(object, "status", node_status(fakelet, node));
    node->is_writing = true;
    kube_create(fakelet->kube, &kube_node, "", object, node_written,
                errand_new(fakelet, node, NULL));
}

static void node_write_status(struct fakelet *fakelet, struct node *node)
{
    json_auto_t *patch = json_pack("{s:o}", "status", node_status(fakelet, node));
    node->is_writing = true;
    node->is_status_due = false;
    kube_patch(fakelet->kube, &kube_node, "", node->name, "status", patch, node_written,
               errand_new(fakelet, node, NULL));
}

static void lease_written(void *context, const struct kube_result *result)
{
    struct errand *errand = context;
    struct node *node = errand->node;
    node->is_renewing = false;
    if (result->outcome == KUBE_OK || result->outcome == KUBE_EXISTS)
        node->has_lease = true;
    else if (result->outcome == KUBE_NOT_FOUND)
        node->has_lease = false; /* deleted with its node: make it again */
    else
        log_failure(result, "lease-not-renewed", node->name);
    errand_free(errand);
}

static void node_renew(struct fakelet *fakelet, struct node *node)
{
    char renewed[TIMESTAMP_SIZE];
    timestamp_format_micro(fakelet->wall_ms, renewed);
    json_auto_t *lease = json_pack("{s:{s:s, s:i, s:s}}", "spec", "holderIdentity",
                                   node->name, "leaseDurationSeconds", 40, "renewTime",
                                   renewed);
    struct errand *errand = errand_new(fakelet, node, NULL);
    node->is_renewing = true;
    node->lease_due_ms = fakelet->now_ms + fakelet->lease_ms;
    if (node->has_lease) {
        kube_patch(fakelet->kube, &lease_resource, LEASE_NAMESPACE, node->name, NULL,
                   lease, lease_written, errand);
        return;
    }
    json_object_set_new(lease, "apiVersion", json_string(lease_resource.group_version));
    json_object_set_new(lease, "kind", json_string(lease_resource.kind));
    json_object_set_new(lease, "metadata", json_pack("{s:s}", "name", node->name));
    kube_create(fakelet->kube, &lease_resource, LEASE_NAMESPACE, lease, lease_written,
                errand);
}

static int64_t node_step(struct fakelet *fakelet, struct node *node)
{
    if (node->machine != MACHINE_UP)
        return INT64_MAX;
    bool is_write_due = !node->is_registered || node->is_status_due;
    if (is_write_due && !node->is_writing && node->write_due_ms <= fakelet->now_ms) {
        if (node->is_registered)
            node_write_status(fakelet, node);
        else
            node_register(fakelet, node);
    }
    if (!node->is_renewing && node->lease_due_ms <= fakelet->now_ms)
        node_renew(fakelet, node);
    if (is_write_due && !node->is_writing && node->write_due_ms < node->lease_due_ms)
        return node->write_due_ms;
    return node->lease_due_ms;
}

/* Power off: what ran there is gone without a word. */
static void node_kill_programs(struct fakelet *fakelet, const struct node *node)
{
    for (size_t i = 0; i < MAX_PROGRAMS; i++) {
        const struct program *program = &fakelet->programs[i];
        if (program->state == PROGRAM_RUNS && !strcmp(program->node, node->name))
            kill(program->pid, SIGKILL);
    }
}

static void node_changed(struct fakelet *fakelet, const json_t *before,
                         const json_t *after)
{
    struct node *node = node_find(fakelet, kube_name(after ? after : before));
    if (!node || node->machine != MACHINE_UP)
        return;
    if (after) {
        node->is_registered = true;
        if (!object_condition_is_true(after, "Ready"))
            node->is_status_due = true;
    } else if (node->is_registered) {
        log_event(LOG_INFO, "fakelet", "node-deleted", LOG_STR("name", node->name));
        node->machine = MACHINE_GONE;
        node->is_registered = node->has_lease = false;
        node_kill_programs(fakelet, node);
    }
}

/* ---- pods ---- */

/* The node whose kubelet cares for `pod`, if its machine is up. */
static struct node *pod_node(struct fakelet *fakelet, const json_t *pod)
{
    struct node *node = node_find(fakelet, string_at(pod, "spec", "nodeName"));
    return node && node->machine == MACHINE_UP ? node : NULL;
}

static bool pod_is_over(const json_t *pod)
{
    const char *phase = string_at(pod, "status", "phase");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static bool pod_is_pending(const json_t *pod)
{
    const char *phase = string_at(pod, "status", "phase");
    return strcmp(phase, "Pending") == 0 || strcmp(phase, "") == 0;
}

/* The node controller says so of the pods of a node that was silent for a while. */
static bool pod_is_called_unready(const json_t *pod)
{
    return strcmp(string_at(pod, "status", "phase"), "Running") == 0 &&
           object_find_condition(pod, "Ready") && !object_condition_is_true(pod, "Ready");
}

static void pod_look_later(struct fakelet *fakelet, const json_t *pod)
{
    if (!pod_node(fakelet, pod))
        return;
    auto_free char *key = xasprintf("%s/%s", kube_namespace(pod), kube_name(pod));
    if (kube_is_deleting(pod))
        workqueue_add_at(fakelet->pods, key, fakelet->now_ms + fakelet->stop_ms);
    else if (pod_is_pending(pod))
        workqueue_add_at(fakelet->pods, key, fakelet->now_ms + fakelet->start_ms);
    else if (pod_is_called_unready(pod))
        workqueue_add(fakelet->pods, key);
}

/* Units of extended resource `name` that the containers of `pod` are limited to. */
static json_int_t pod_units(const json_t *pod, const char *name)
{
    json_int_t total = 0;
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(json_object_get(pod, "spec"), "containers"), i,
                        each) {
        json_t *limits = json_object_get(json_object_get(each, "resources"), "limits");
        const char *text = json_string_value(json_object_get(limits, name));
        total += text ? strtoll(text, NULL, 10) : 0;
    }
    return total;
}

/* Units that pods which were admitted to `node` before hold. */
static json_int_t node_used_units(const struct fakelet *fakelet, const struct node *node,
                                  const char *name)
{
    json_int_t used = 0;
    for (size_t i = 0; i < store_count(fakelet->store, &kube_pod); i++) {
        const json_t *pod = store_at(fakelet->store, &kube_pod, i);
        if (strcmp(string_at(pod, "spec", "nodeName"), node->name) == 0 &&
            strcmp(string_at(pod, "status", "phase"), "Running") == 0)
            used += pod_units(pod, name);
    }
    return used;
}

/* The extended resource of which the node has too little for `pod`, or NULL;
 * `ret_message` is then what a kubelet says. */
static const char *node_find_lack(const struct fakelet *fakelet, const struct node *node,
                                  const json_t *pod, char **ret_message)
{
    const char *name;
    json_t *capacity;
    json_object_foreach (node->allocatable, name, capacity) {
        json_int_t asked = strchr(name, '/') ? pod_units(pod, name) : 0;
        if (asked == 0)
            continue;
        json_int_t used = node_used_units(fakelet, node, name);
        json_int_t has = strtoll(json_string_value(capacity), NULL, 10);
        if (used + asked <= has)
            continue;
        *ret_message = xasprintf(
            "Pod was rejected: Node didn't have enough resource: %s, requested: "
            "%" JSON_INTEGER_FORMAT ", used: %" JSON_INTEGER_FORMAT
            ", capacity: %" JSON_INTEGER_FORMAT,
            name, asked, used, has);
        return name;
    }
    return NULL;
}

/* Conditions of others (PodScheduled) stay; Ready and its like become `is_ready`. */
static json_t *pod_conditions(const struct fakelet *fakelet, const json_t *pod,
                              bool is_ready, const char *reason)
{
    static const char *const ours[] = { "PodReadyToStartContainers", "Initialized",
                                        "ContainersReady", "Ready" };
    json_t *made = json_array();
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        json_array_append_new(made, condition(fakelet, ours[i], i < 2 || is_ready,
                                              i < 2 || is_ready ? NULL : reason, NULL));
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(json_object_get(pod, "status"), "conditions"), i,
                        each) {
        const char *type = json_string_value(json_object_get(each, "type"));
        bool is_ours = false;
        for (size_t j = 0; j < sizeof ours / sizeof *ours; j++)
            is_ours = is_ours || (type && strcmp(type, ours[j]) == 0);
        if (!is_ours)
            json_array_append(made, each);
    }
    return made;
}

/* Every container running, or, with `exit_code` >= 0, ended; `message` may be NULL. */
static json_t *container_statuses(const struct fakelet *fakelet, const json_t *pod,
                                  int exit_code, const char *message)
{
    json_t *made = json_array();
    size_t i;
    json_t *each;
    json_array_foreach (json_object_get(json_object_get(pod, "spec"), "containers"), i,
                        each) {
        auto_free char *id = xasprintf("fakelet://%s/%zu", kube_uid(pod), i);
        json_t *state =
            exit_code < 0
                ? json_pack("{s:{s:o}}", "running", "startedAt", now_string(fakelet))
                : json_pack("{s:{s:i, s:s, s:o, s:s, s:s*}}", "terminated", "exitCode",
                            exit_code, "reason", exit_code == 0 ? "Completed" : "Error",
                            "finishedAt", now_string(fakelet), "containerID", id,
                            "message", message);
        json_array_append_new(made, json_pack("{s:O, s:O, s:s, s:s, s:b, s:b, s:i, s:o}",
                                              "name", json_object_get(each, "name"),
                                              "image", json_object_get(each, "image"),
                                              "imageID", "", "containerID", id, "ready",
                                              exit_code < 0, "started", exit_code < 0,
                                              "restartCount", 0, "state", state));
    }
    return made;
}

static json_t *status_running(struct fakelet *fakelet, const json_t *pod)
{
    unsigned address = ++fakelet->next_address;
    auto_free char *ip = xasprintf("%s.%u.%u", fakelet->pod_network, address / 250 % 250,
                                   address % 250 + 1);
    return json_pack("{s:s, s:s, s:s, s:[{s:s}], s:o, s:o, s:o}", "phase", "Running",
                     "hostIP", "127.0.0.1", "podIP", ip, "podIPs", "ip", ip, "startTime",
                     now_string(fakelet), "conditions",
                     pod_conditions(fakelet, pod, true, NULL), "containerStatuses",
                     container_statuses(fakelet, pod, -1, NULL));
}

static json_t *status_ended(struct fakelet *fakelet, const json_t *pod, int exit_code,
                            const char *message)
{
    bool is_good = exit_code == 0;
    return json_pack(
        "{s:s, s:o, s:o}", "phase", is_good ? "Succeeded" : "Failed", "conditions",
        pod_conditions(fakelet, pod, false, is_good ? "PodCompleted" : "PodFailed"),
        "containerStatuses", container_statuses(fakelet, pod, exit_code, message));
}

/* What a kubelet says of a pod that it does not take. */
static json_t *status_refused(const char *resource, const char *message)
{
    auto_free char *reason = xasprintf("OutOf%s", resource);
    return json_pack("{s:s, s:s, s:s}", "phase", "Failed", "reason", reason, "message",
                     message);
}

static json_t *pod_by_key(const struct fakelet *fakelet, const char *key)
{
    auto_free char *ns = xstrdup(key);
    char *name = strchr(ns, '/');
    *name++ = '\0';
    return store_find(fakelet->store, &kube_pod, ns, name);
}

/* ---- programs ---- */

static struct program *program_find(struct fakelet *fakelet, const char *uid)
{
    for (size_t i = 0; i < MAX_PROGRAMS; i++)
        if (fakelet->programs[i].state != PROGRAM_NONE &&
            strcmp(fakelet->programs[i].uid, uid) == 0)
            return &fakelet->programs[i];
    return NULL;
}

static void program_forget(struct program *program)
{
    free(program->pod);
    free(program->uid);
    free(program->node);
    *program = (struct program){ .state = PROGRAM_NONE };
}

/* Does not return. */
static void program_become(const struct fakelet *fakelet, const char *folder,
                           const char *address)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(fakelet->run, fakelet->run, folder, address, (char *)NULL);
    _exit(127);
}

/* For a pod that is Running from now on. */
static void program_start(struct fakelet *fakelet, const json_t *pod)
{
    struct program *program = fakelet->programs;
    while (program < fakelet->programs + MAX_PROGRAMS && program->state != PROGRAM_NONE)
        program++;
    auto_free char *folder = xasprintf("%s/%s", fakelet->run_dir, kube_uid(pod));
    auto_free char *path = xasprintf("%s/pod.json", folder);
    if (program == fakelet->programs + MAX_PROGRAMS || mkdir(folder, 0755) < 0 ||
        json_dump_file(pod, path, JSON_COMPACT) < 0) {
        log_event(LOG_ERROR, "fakelet", "pod-not-run", LOG_STR("name", kube_name(pod)));
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        program_become(fakelet, folder, string_at(pod, "status", "podIP"));
    *program = (struct program){
        .state = PROGRAM_RUNS,
        .pid = pid,
        .pod = xasprintf("%s/%s", kube_namespace(pod), kube_name(pod)),
        .uid = xstrdup(kube_uid(pod)),
        .node = xstrdup(string_at(pod, "spec", "nodeName")),
    };
    log_event(LOG_INFO, "fakelet", "program-started", LOG_STR("pod", program->pod),
              LOG_STR("folder", folder));
}

/* What is due for the program of a pod that is being deleted. When to look again. */
static int64_t program_stop(struct fakelet *fakelet, struct program *program,
                            const json_t *pod)
{
    const json_t *metadata = json_object_get(pod, "metadata");
    int64_t grace_s =
        json_integer_value(json_object_get(metadata, "deletionGracePeriodSeconds"));
    if (program->kill_ms == 0) {
        program->kill_ms = fakelet->now_ms + 1000 * grace_s;
        kill(program->pid, SIGTERM);
    }
    if (program->kill_ms > fakelet->now_ms)
        return program->kill_ms;
    kill(program->pid, SIGKILL);
    return fakelet->now_ms + RETRY_MS;
}

/* Takes note of programs that have ended; their pods are due then. */
static void reap_programs(struct fakelet *fakelet)
{
    int status;
    for (size_t i = 0; i < MAX_PROGRAMS; i++) {
        struct program *program = &fakelet->programs[i];
        if (program->state != PROGRAM_RUNS ||
            waitpid(program->pid, &status, WNOHANG) <= 0)
            continue;
        program->state = PROGRAM_ENDED;
        program->exit_code = WIFEXITED(status) ? WEXITSTATUS(status)
                                               : 128 + WTERMSIG(status);
        log_event(LOG_INFO, "fakelet", "program-ended", LOG_STR("pod", program->pod),
                  LOG_INT("code", program->exit_code));
        if (pod_by_key(fakelet, program->pod))
            workqueue_add_at(fakelet->pods, program->pod, fakelet->now_ms);
        else
            program_forget(program);
    }
}

/* Why the program ended, in its own words; NULL: it says nothing. To be freed. */
static char *program_message(const struct fakelet *fakelet, const struct program *program)
{
    auto_free char *path =
        xasprintf("%s/%s/termination-log", fakelet->run_dir, program->uid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *text = xcalloc(1, MESSAGE_BYTES + 1);
    size_t length = fread(text, 1, MESSAGE_BYTES, file);
    fclose(file);
    if (length > 0)
        return text;
    free(text);
    return NULL;
}

/* ---- the life of a pod ---- */

static void pod_written(void *context, const struct kube_result *result)
{
    struct errand *errand = context;
    struct fakelet *fakelet = errand->fakelet;
    if (errand->node)
        errand->node->is_admitting = false;
    if (result->outcome == KUBE_OK && result->object && errand->node) {
        store_put(fakelet->store, &kube_pod, result->object);
        if (fakelet->run && !pod_is_over(result->object))
            program_start(fakelet, result->object);
    }
    if (result->outcome == KUBE_OK || result->outcome == KUBE_NOT_FOUND ||
        result->outcome == KUBE_CONFLICT) {
        workqueue_forget(fakelet->pods, errand->pod);
    } else {
        log_failure(result, "pod-not-written", errand->pod);
        workqueue_add_failed(fakelet->pods, errand->pod, fakelet->now_ms);
    }
    workqueue_done(fakelet->pods, errand->pod);
    errand_free(errand);
}

/* Takes a pod in, or refuses it. One at a time on a node: the next one must see it. */
static void pod_start(struct fakelet *fakelet, struct node *node, const char *key,
                      const json_t *pod)
{
    auto_free char *message = NULL;
    const char *lack = fakelet->is_strict ? node_find_lack(fakelet, node, pod, &message)
                                          : NULL;
    json_auto_t *patch =
        json_pack("{s:o}", "status",
                  lack ? status_refused(lack, message) : status_running(fakelet, pod));
    node->is_admitting = true;
    kube_patch(fakelet->kube, &kube_pod, kube_namespace(pod), kube_name(pod), "status",
               patch, pod_written, errand_new(fakelet, node, key));
}

/* Whose finalizer keeps a pod sees how its containers ended before it is let go of (143:
 * SIGTERM). */
static bool has_finalizers(const json_t *pod)
{
    return json_array_size(
               json_object_get(json_object_get(pod, "metadata"), "finalizers")) > 0;
}

static void pod_tell_end(struct fakelet *fakelet, const char *key, const json_t *pod,
                         int exit_code, const char *message)
{
    json_auto_t *patch =
        json_pack("{s:o}", "status", status_ended(fakelet, pod, exit_code, message));
    kube_patch(fakelet->kube, &kube_pod, kube_namespace(pod), kube_name(pod), "status",
               patch, pod_written, errand_new(fakelet, NULL, key));
}

/* Whether the pod's program is what there is to look after. */
static bool pod_act_on_program(struct fakelet *fakelet, const char *key,
                               const json_t *pod)
{
    struct program *program = program_find(fakelet, kube_uid(pod));
    if (program && program->state == PROGRAM_ENDED && !pod_is_over(pod)) {
        auto_free char *message = program_message(fakelet, program);
        pod_tell_end(fakelet, key, pod, program->exit_code, message);
        return true;
    }
    if (!program || program->state != PROGRAM_RUNS || !kube_is_deleting(pod))
        return false;
    workqueue_add_at(fakelet->pods, key, program_stop(fakelet, program, pod));
    workqueue_done(fakelet->pods, key);
    return true;
}

static void pod_act(struct fakelet *fakelet, const char *key)
{
    json_t *pod = pod_by_key(fakelet, key);
    struct node *node = pod ? pod_node(fakelet, pod) : NULL;
    if (node && pod_act_on_program(fakelet, key, pod))
        return;
    if (node && kube_is_deleting(pod) && has_finalizers(pod) && !pod_is_over(pod)) {
        pod_tell_end(fakelet, key, pod, 143, NULL);
        return;
    }
    if (node && kube_is_deleting(pod)) {
        kube_delete(fakelet->kube, &kube_pod, kube_namespace(pod), kube_name(pod),
                    kube_uid(pod), 0, pod_written, errand_new(fakelet, NULL, key));
        return;
    }
    if (node && pod_is_pending(pod) && !node->is_admitting) {
        pod_start(fakelet, node, key, pod);
        return;
    }
    if (node && pod_is_called_unready(pod)) {
        json_auto_t *patch = json_pack("{s:{s:o}}", "status", "conditions",
                                       pod_conditions(fakelet, pod, true, NULL));
        kube_patch(fakelet->kube, &kube_pod, kube_namespace(pod), kube_name(pod),
                   "status", patch, pod_written, errand_new(fakelet, NULL, key));
        return;
    }
    if (node && pod_is_pending(pod))
        workqueue_add_at(fakelet->pods, key, fakelet->now_ms + 10);
    workqueue_done(fakelet->pods, key);
}

/* A pod whose object is gone has no program. */
static void pod_gone(struct fakelet *fakelet, const json_t *pod)
{
    struct program *program = program_find(fakelet, kube_uid(pod));
    if (program && program->state == PROGRAM_RUNS)
        kill(program->pid, SIGKILL);
    if (program && program->state == PROGRAM_ENDED)
        program_forget(program);
}

static void changed(void *context, const struct kube_resource *resource, json_t *before,
                    json_t *after)
{
    struct fakelet *fakelet = context;
    look_at_clock(fakelet);
    if (resource == &kube_node)
        node_changed(fakelet, before, after);
    else if (after)
        pod_look_later(fakelet, after);
    else
        pod_gone(fakelet, before);
}

/* ---- checkpoint hooks ---- */

static const json_t *pod_at(const struct fakelet *fakelet, const char *address)
{
    for (size_t i = 0; i < store_count(fakelet->store, &kube_pod); i++) {
        const json_t *pod = store_at(fakelet->store, &kube_pod, i);
        if (!strcmp(string_at(pod, "status", "podIP"), address) && !pod_is_over(pod))
            return pod;
    }
    return NULL;
}

static void call_end(struct call *call)
{
    close(call->fd);
    free(call->pod);
    *call = (struct call){ 0 };
}

static void call_accept(struct fakelet *fakelet, int listener)
{
    struct sockaddr_in local;
    socklen_t length = sizeof local;
    char address[INET_ADDRSTRLEN];
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    getsockname(fd, (struct sockaddr *)&local, &length);
    inet_ntop(AF_INET, &local.sin_addr, address, sizeof address);
    const json_t *pod = pod_at(fakelet, address);
    struct call *call = fakelet->calls;
    while (call < fakelet->calls + MAX_CALLS && call->fd)
        call++;
    if (!pod || !pod_node(fakelet, pod) || call == fakelet->calls + MAX_CALLS) {
        close(fd);
        return;
    }
    const json_t *rule = json_object_get(fakelet->hooks, kube_name(pod));
    if (!rule)
        rule = json_object_get(fakelet->hooks, kube_label(pod, JOB_NAME_LABEL));
    *call = (struct call){
        .fd = fd,
        .pod = xasprintf("%s/%s", kube_namespace(pod), kube_name(pod)),
        .status = rule ? (int)json_integer_value(json_array_get(rule, 0)) : 200,
        .due_ms = fakelet->now_ms +
                  (rule ? json_integer_value(json_array_get(rule, 1)) * 1000 : 0),
    };
}

/* What the caller sends; it ends when the caller does. */
static void call_read(struct call *call)
{
    char text[4096];
    ssize_t length = read(call->fd, text, sizeof text - 1);
    if (length == 0 || (length < 0 && errno != EAGAIN)) {
        log_event(LOG_INFO, "fakelet", "hook-left", LOG_STR("pod", call->pod));
        call_end(call);
    } else if (length > 0 && !call->is_told) { /* the body may come after the head */
        call->is_told = true;
        text[length] = '\0';
        log_event(LOG_INFO, "fakelet", "hook-called", LOG_STR("pod", call->pod),
                  LOG_STR("request", text));
    }
}

static void call_answer(struct call *call)
{
    dprintf(call->fd,
            "HTTP/1.1 %d Answer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            call->status);
    log_event(LOG_INFO, "fakelet", "hook-answered", LOG_STR("pod", call->pod),
              LOG_INT("status", call->status));
    call_end(call);
}

/* Answers what is due; returns when the next answer is. */
static int64_t calls_step(struct fakelet *fakelet)
{
    int64_t next_ms = INT64_MAX;
    for (struct call *call = fakelet->calls; call < fakelet->calls + MAX_CALLS; call++) {
        if (!call->fd || !call->status)
            continue;
        if (call->due_ms <= fakelet->now_ms)
            call_answer(call);
        else if (call->due_ms < next_ms)
            next_ms = call->due_ms;
    }
    return next_ms;
}

/* A listener on `port` of all addresses; -2 (which poll() skips) for no port. */
static int hooks_listen(int port, struct het_error *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port) };
    int one = 1;
    if (!port)
        return -2;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 16) < 0)
        return het_fail(err, HET_IO, "port %d: %s", port, strerror(errno));
    return fd;
}

/* ---- commands ---- */

static void pod_ended(void *context, const struct kube_result *result)
{
    struct errand *errand = context;
    if (result->outcome != KUBE_OK)
        log_failure(result, "pod-not-ended", errand->pod);
    errand_free(errand);
}

static int end_pods(struct fakelet *fakelet, const char *who, int exit_code)
{
    int ended = 0;
    for (size_t i = 0; i < store_count(fakelet->store, &kube_pod); i++) {
        json_t *pod = store_at(fakelet->store, &kube_pod, i);
        auto_free char *key = xasprintf("%s/%s", kube_namespace(pod), kube_name(pod));
        if (strcmp(who, key) != 0 && strcmp(who, kube_name(pod)) != 0 &&
            strcmp(who, kube_label(pod, JOB_NAME_LABEL)) != 0)
            continue;
        if (!pod_node(fakelet, pod) || pod_is_over(pod))
            continue;
        json_auto_t *patch =
            json_pack("{s:o}", "status", status_ended(fakelet, pod, exit_code, NULL));
        kube_patch(fakelet->kube, &kube_pod, kube_namespace(pod), kube_name(pod),
                   "status", patch, pod_ended, errand_new(fakelet, NULL, key));
        ended++;
    }
    return ended > 0 ? 0 : -1;
}

static int command_fail(struct fakelet *fakelet, const char *who, const char *code)
{
    return end_pods(fakelet, who, *code ? atoi(code) : 1);
}

static int command_succeed(struct fakelet *fakelet, const char *who, const char *unused)
{
    (void)unused;
    return end_pods(fakelet, who, 0);
}

static int command_silence(struct fakelet *fakelet, const char *name, const char *unused)
{
    (void)unused;
    struct node *node = node_find(fakelet, name);
    if (!node)
        return -1;
    node->machine = MACHINE_SILENT;
    return 0;
}

static void node_deleted(void *context, const struct kube_result *result)
{
    struct errand *errand = context;
    if (result->outcome != KUBE_OK && result->outcome != KUBE_NOT_FOUND)
        log_failure(result, "node-not-deleted", errand->node->name);
    errand_free(errand);
}

static int command_delete(struct fakelet *fakelet, const char *name, const char *unused)
{
    (void)unused;
    struct node *node = node_find(fakelet, name);
    json_t *object = store_find(fakelet->store, &kube_node, "", name);
    if (!node || !object)
        return -1;
    node->machine = MACHINE_GONE;
    node->is_registered = node->has_lease = false;
    node_kill_programs(fakelet, node);
    kube_delete(fakelet->kube, &kube_node, "", name, kube_uid(object), -1, node_deleted,
                errand_new(fakelet, node, NULL));
    return 0;
}

static int command_restore(struct fakelet *fakelet, const char *name, const char *unused)
{
    (void)unused;
    struct node *node = node_find(fakelet, name);
    if (!node)
        return -1;
    node->machine = MACHINE_UP;
    node->is_status_due = true;
    node->write_due_ms = node->lease_due_ms = fakelet->now_ms;
    json_decref(node->allocatable);
    node->allocatable = json_deep_copy(
        json_object_get(json_object_get(node->object, "status"), "allocatable"));
    for (size_t i = 0; i < store_count(fakelet->store, &kube_pod); i++)
        pod_look_later(fakelet, store_at(fakelet->store, &kube_pod, i));
    return 0;
}

static int command_gpus(struct fakelet *fakelet, const char *name, const char *count)
{
    struct node *node = node_find(fakelet, name);
    if (!node || !*count)
        return -1;
    json_object_set_new(node->allocatable, "nvidia.com/gpu", json_string(count));
    node->is_status_due = true;
    return 0;
}

static int command_renew(struct fakelet *fakelet, const char *seconds, const char *unused)
{
    (void)unused;
    int64_t lease_ms = 1000 * atoll(seconds);
    if (lease_ms <= 0)
        return -1;
    fakelet->lease_ms = lease_ms;
    for (size_t i = 0; i < fakelet->node_count; i++) {
        struct node *node = &fakelet->nodes[i];
        if (node->lease_due_ms > fakelet->now_ms + lease_ms)
            node->lease_due_ms = fakelet->now_ms + lease_ms;
    }
    return 0;
}

static int command_hook(struct fakelet *fakelet, const char *who, const char *answer)
{
    int status, seconds;
    if (sscanf(answer, "%d %d", &status, &seconds) != 2)
        return -1;
    json_object_set_new(fakelet->hooks, who, json_pack("[i, i]", status, seconds));
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct fakelet *fakelet, const char *first, const char *second);
} commands[] = {
    { "fail", command_fail },       { "succeed", command_succeed },
    { "silence", command_silence }, { "delete", command_delete },
    { "restore", command_restore }, { "gpus", command_gpus },
    { "renew", command_renew },     { "hook", command_hook },
};

static void run_command(struct fakelet *fakelet, const char *line)
{
    char verb[32] = "", first[256] = "", second[32] = "";
    int status = -1;
    if (sscanf(line, "%31s %255s %31[^\n]", verb, first, second) < 1)
        return; /* an empty line */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(verb, commands[i].name) == 0)
            status = commands[i].run(fakelet, first, second);
    log_event(status == 0 ? LOG_INFO : LOG_ERROR, "fakelet", "command",
              LOG_STR("line", line), LOG_BOOL("done", status == 0));
}

static void read_commands(struct fakelet *fakelet, int fd)
{
    char byte;
    look_at_clock(fakelet);
    while (read(fd, &byte, 1) == 1) {
        if (byte != '\n' && fakelet->command_length + 1 < sizeof fakelet->command) {
            fakelet->command[fakelet->command_length++] = byte;
            continue;
        }
        fakelet->command[fakelet->command_length] = '\0';
        fakelet->command_length = 0;
        run_command(fakelet, fakelet->command);
    }
}

/* ---- start and loop ---- */

static char *read_file(const char *path, size_t *ret_length, struct het_error *err)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = xmalloc(NODE_LIST_BYTES);
    *ret_length = fread(text, 1, NODE_LIST_BYTES, file);
    fclose(file);
    return text;
}

/* Nodes as `kubectl get nodes -o json` prints them: a List. What a server adds (uid,
 * resourceVersion and the like) may be there and is left out. */
static int read_nodes(struct fakelet *fakelet, const char *path, struct het_error *err)
{
    size_t length, i;
    auto_free char *text = read_file(path, &length, err);
    if (!text)
        return -1;
    json_error_t error;
    json_auto_t *list = json_loadb(text, length, 0, &error);
    if (!list)
        return het_fail(err, HET_BAD_INPUT, "%s:%d: %s", path, error.line, error.text);
    json_t *items = json_object_get(list, "items"), *each;
    fakelet->nodes = xcalloc(json_array_size(items) + 1, sizeof(struct node));
    json_array_foreach (items, i, each) {
        struct node *node = &fakelet->nodes[fakelet->node_count++];
        json_t *metadata = json_object_get(each, "metadata");
        json_t *allocatable =
            json_object_get(json_object_get(each, "status"), "allocatable");
        if (*kube_name(each) == '\0' || !json_is_object(allocatable))
            return het_fail(err, HET_BAD_INPUT,
                            "%s: items[%zu]: needs metadata.name and status.allocatable",
                            path, i);
        static const char *const given_by_server[] = { "uid", "resourceVersion",
                                                       "creationTimestamp",
                                                       "managedFields" };
        for (size_t j = 0; j < sizeof given_by_server / sizeof *given_by_server; j++)
            json_object_del(metadata, given_by_server[j]);
        json_object_set_new(each, "apiVersion", json_string("v1"));
        json_object_set_new(each, "kind", json_string("Node"));
        node->object = json_incref(each);
        node->name = kube_name(each);
        node->allocatable = json_deep_copy(allocatable);
    }
    if (fakelet->node_count == 0)
        return het_fail(err, HET_BAD_INPUT, "%s: has no items", path);
    return 0;
}

/* Opened for writing as well, so that it never ends when a writer closes it. */
static int open_control(const char *path, struct het_error *err)
{
    if (!path)
        return -2; /* poll() skips what is negative */
    if (mkfifo(path, 0600) < 0 && errno != EEXIST)
        return het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 ? fd : het_fail(err, HET_IO, "%s: %s", path, strerror(errno));
}

static int open_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Whether we are to end. */
static bool read_signals(struct fakelet *fakelet, int fd)
{
    struct signalfd_siginfo signal;
    bool is_over = false;
    while (read(fd, &signal, sizeof signal) == sizeof signal)
        is_over = is_over || signal.ssi_signo != SIGCHLD;
    reap_programs(fakelet);
    return is_over;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Does what is due; returns when something is due next. */
static int64_t step(struct fakelet *fakelet, struct watch *const watches[2])
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        watch_step(watches[i], fakelet->now_ms);
        next_ms = earlier(next_ms, watch_next_ms(watches[i]));
    }
    if (watch_is_synced(watches[0]))
        for (size_t i = 0; i < fakelet->node_count; i++)
            next_ms = earlier(next_ms, node_step(fakelet, &fakelet->nodes[i]));
    const char *key;
    while ((key = workqueue_take(fakelet->pods, fakelet->now_ms)))
        pod_act(fakelet, key);
    next_ms = earlier(next_ms, workqueue_next_ms(fakelet->pods));
    next_ms = earlier(next_ms, calls_step(fakelet));
    kube_step(fakelet->kube, fakelet->now_ms);
    return earlier(next_ms, kube_next_ms(fakelet->kube));
}

/* The first three of `fds` are the caller's; returns how many there are. */
static nfds_t list_calls(const struct fakelet *fakelet, struct pollfd *fds)
{
    nfds_t count = 3;
    for (size_t i = 0; i < MAX_CALLS; i++)
        if (fakelet->calls[i].fd)
            fds[count++] =
                (struct pollfd){ .fd = fakelet->calls[i].fd, .events = POLLIN };
    return count;
}

static void read_calls(struct fakelet *fakelet, const struct pollfd *fds, nfds_t count)
{
    for (nfds_t k = 3; k < count; k++)
        for (size_t i = 0; i < MAX_CALLS; i++)
            if (fds[k].revents && fakelet->calls[i].fd == fds[k].fd)
                call_read(&fakelet->calls[i]);
}

static void run(struct fakelet *fakelet, struct transport *transport, int control,
                int listener)
{
    struct watch_config nodes = { .resource = &kube_node, .ns = "" };
    struct watch_config pods = { .resource = &kube_pod,
                                 .ns = "",
                                 .field_selector = "spec.nodeName!=" };
    struct watch *const watches[2] = {
        watch_new(fakelet->kube, fakelet->store, &nodes, 1, changed, fakelet),
        watch_new(fakelet->kube, fakelet->store, &pods, 2, changed, fakelet),
    };
    struct pollfd fds[3 + MAX_CALLS] = { { .fd = control, .events = POLLIN },
                                         { .fd = open_signals(), .events = POLLIN },
                                         { .fd = listener, .events = POLLIN } };
    bool is_over = false;
    while (!is_over) {
        look_at_clock(fakelet);
        int64_t wait_ms = step(fakelet, watches) - fakelet->now_ms;
        if (wait_ms < 0)
            wait_ms = 0;
        nfds_t count = list_calls(fakelet, fds);
        transport_poll(transport, fds, count, earlier(wait_ms, 1000));
        look_at_clock(fakelet);
        if (fds[1].revents & POLLIN)
            is_over = read_signals(fakelet, fds[1].fd);
        read_calls(fakelet, fds, count);
        if (fds[2].revents & POLLIN)
            call_accept(fakelet, listener);
        if (fds[0].revents & POLLIN)
            read_commands(fakelet, control);
    }
    close(fds[1].fd);
    watch_free(watches[1]);
    watch_free(watches[0]);
}

static void fakelet_fini(struct fakelet *fakelet)
{
    for (size_t i = 0; i < MAX_CALLS; i++)
        if (fakelet->calls[i].fd)
            call_end(&fakelet->calls[i]);
    for (size_t i = 0; i < MAX_PROGRAMS; i++)
        program_forget(&fakelet->programs[i]);
    json_decref(fakelet->hooks);
    kube_free(fakelet->kube);
    workqueue_free(fakelet->pods);
    store_free(fakelet->store);
    for (size_t i = 0; i < fakelet->node_count; i++) {
        json_decref(fakelet->nodes[i].allocatable);
        json_decref(fakelet->nodes[i].object);
    }
    free(fakelet->nodes);
}

struct settings {
    const char *kubeconfig, *nodes, *control;
    int hook_port; /* 0: none */
};

static const char usage[] =
    "Usage: fakelet --kubeconfig FILE --nodes FILE [--control FIFO] [--strict]\n"
    "               [--hook-port PORT] [--start-ms N] [--stop-ms N] [--lease-ms N]\n"
    "               [--run PROGRAM --run-dir FOLDER] [--pod-network N.N]\n"
    "\n"
    "Plays the kubelets of the nodes in FILE (as `kubectl get nodes -o json` prints them).\n"
    "Commands are read from FIFO, which it makes: fail POD CODE, succeed POD,\n"
    "silence NODE, delete NODE, restore NODE, gpus NODE COUNT,\n"
    "hook POD STATUS SECONDS.\n";

static int read_settings(int argc, char **argv, struct fakelet *fakelet,
                         struct settings *ret)
{
    enum {
        KUBECONFIG = 1,
        NODES,
        CONTROL,
        STRICT,
        START,
        STOP,
        LEASE,
        HOOK,
        RUN,
        RUN_DIR,
        NETWORK
    };
    static const struct option options[] = {
        { "kubeconfig", required_argument, NULL, KUBECONFIG },
        { "nodes", required_argument, NULL, NODES },
        { "control", required_argument, NULL, CONTROL },
        { "strict", no_argument, NULL, STRICT },
        { "start-ms", required_argument, NULL, START },
        { "stop-ms", required_argument, NULL, STOP },
        { "lease-ms", required_argument, NULL, LEASE },
        { "hook-port", required_argument, NULL, HOOK },
        { "run", required_argument, NULL, RUN },
        { "run-dir", required_argument, NULL, RUN_DIR },
        { "pod-network", required_argument, NULL, NETWORK },
        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case KUBECONFIG:
            ret->kubeconfig = optarg;
            break;
        case NODES:
            ret->nodes = optarg;
            break;
        case CONTROL:
            ret->control = optarg;
            break;
        case STRICT:
            fakelet->is_strict = true;
            break;
        case START:
            fakelet->start_ms = atoll(optarg);
            break;
        case STOP:
            fakelet->stop_ms = atoll(optarg);
            break;
        case LEASE:
            fakelet->lease_ms = atoll(optarg);
            break;
        case HOOK:
            ret->hook_port = atoi(optarg);
            break;
        case RUN:
            fakelet->run = optarg;
            break;
        case RUN_DIR:
            fakelet->run_dir = optarg;
            break;
        case NETWORK:
            fakelet->pod_network = optarg;
            break;
        default:
            return -1;
        }
    }
    bool is_whole = ret->kubeconfig && ret->nodes && !fakelet->run == !fakelet->run_dir;
    return is_whole && optind == argc ? 0 : -1;
}

/* The administrator's kubeconfig holds a client certificate: nothing in it is re-read. */
static int serve(struct fakelet *fakelet, const struct settings *settings,
                 struct het_error *err)
{
    struct auth_config config = { .kubeconfig = settings->kubeconfig };
    struct auth *auth = NULL;
    struct transport *transport = NULL;
    int control = open_control(settings->control, err);
    int listener = hooks_listen(settings->hook_port, err);
    int status = control == -1 || listener == -1 ? -1 : auth_load(&config, &auth, err);
    if (status == 0)
        transport = http_transport_new(auth_endpoint, auth, err);
    if (transport) {
        fakelet->kube = kube_new(transport, "fakelet");
        kube_set_rate(fakelet->kube, REQUESTS_PER_S, REQUESTS_PER_S);
        fakelet->store = store_new();
        fakelet->pods = workqueue_new();
        fakelet->hooks = json_object();
        run(fakelet, transport, control, listener);
    }
    status = transport ? 0 : -1;
    fakelet_fini(fakelet);
    if (transport)
        transport_free(transport);
    auth_free(auth);
    return status;
}

int main(int argc, char **argv)
{
    struct fakelet fakelet = {
        .start_ms = 200, .stop_ms = 300, .lease_ms = 2000, .pod_network = "127.244"
    };
    struct settings settings = { 0 };
    struct het_error err = { 0 };
    if (read_settings(argc, argv, &fakelet, &settings) < 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (read_nodes(&fakelet, settings.nodes, &err) < 0 ||
        serve(&fakelet, &settings, &err) < 0) {
        fprintf(stderr, "fakelet: %s\n", err.message);
        return 2;
    }
    return 0;
}
