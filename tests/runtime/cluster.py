"""Runs the program of heterotrain.train as pods do, on this machine.

`torchrun` starts an agent for each node of the plan, with the environment that the
operator gives its pod. `forked` starts the ranks as children of this process, which has
torch loaded already: many plans in little time.
"""

import json
import os
import socket
import subprocess
import sys
import time
import traceback

RUNTIME = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../deploy/runtime"))
sys.path.insert(0, RUNTIME)

from heterotrain import checkpoint, compare, plan as plans, reference, train  # noqa: E402

TIMEOUT_S = 120
CORES = len(os.sched_getaffinity(0))


class Clock:
    """Seconds of a machine that has a core for everybody: where more wants to run than there
    are cores, time passes more slowly, by that ratio."""

    def __init__(self):
        self._passed, self._last = 0.0, time.monotonic()

    def is_over(self):
        """Whether TIMEOUT_S have passed."""
        now = time.monotonic()
        with open("/proc/loadavg", encoding="ascii") as file:
            running = int(file.read().split()[3].split("/")[0])
        self._passed += (now - self._last) * CORES / max(CORES, running)
        self._last = now
        return self._passed > TIMEOUT_S


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)
    return path


def _nodes(plan):
    """[(first rank, GPUs)] in the order of ranks; one, if the plan is too wrong to tell."""
    try:
        counts = plans.from_dict(plan).gpus_of_nodes
    except plans.PlanError:
        counts = (1,)
    return [(sum(counts[:i]), count) for i, count in enumerate(counts)]


def _environment(plan, plan_file, port, node):
    nodes = _nodes(plan)
    offset, count = nodes[node]
    values = {
        "PET_NNODES": len(nodes),
        "PET_NPROC_PER_NODE": count,
        "PET_NODE_RANK": node,
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": port,
        "PET_RDZV_BACKEND": "static",
        "PET_RDZV_ID": "test-g1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "HETPLAN_FILE": plan_file,
        "HETPLAN_REVISION": 1,
        "HETPLAN_RANK_OFFSET": offset,
        "HETPLAN_WORLD_SIZE": sum(count for _, count in nodes),
        "HETPLAN_GLOBAL_BATCH_SIZE": plan.get("globalBatchSize"),
        "OMP_NUM_THREADS": 1,
    }
    return {name: str(value) for name, value in values.items()}


class Outcome:
    """Exit status and output of each process."""

    def __init__(self):
        self.statuses, self.outputs = [], []

    def text(self):
        return "\n".join(self.outputs)


def _run_child(module, environment, arguments, log):
    """In a child: never returns."""
    status = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        os.environ.update(environment)
        sys.argv = [module.__name__, *arguments]
        module.main()
        status = 0
    except SystemExit as exit_:
        status = exit_.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Forked:
    """The ranks of a plan as children of this process."""

    def __init__(self, plan, arguments, folder, module=train):
        port, plan_file = free_port(), write_json(folder, "plan.json", plan)
        self.children, self.logs = [], []
        nodes = _nodes(plan) if module is train else [(0, 1)]
        for node, (offset, count) in enumerate(nodes):
            environment = _environment(plan, plan_file, port, node)
            for local in range(count):
                self._start(
                    module, environment, offset + local, local, nodes, arguments, folder
                )

    def _start(self, module, environment, rank, local, nodes, arguments, folder):
        environment = {
            **environment,
            "RANK": str(rank),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(sum(count for _, count in nodes)),
        }
        log = os.path.join(folder, f"rank-{rank}.log")
        open(log, "w", encoding="utf-8").close()
        child = os.fork()
        if child == 0:
            _run_child(module, environment, arguments, log)
        self.children.append(child)
        self.logs.append(log)

    def signal(self, rank, number):
        os.kill(self.children[rank], number)

    def wait(self, all_at_once=True):
        """The Outcome; what has not ended after TIMEOUT_S is killed (status -9), and so are
        all once one has failed, if they end `all_at_once`."""
        outcome, clock = Outcome(), Clock()
        statuses = {}
        while len(statuses) < len(self.children):
            for child in self.children:
                if child not in statuses:
                    ended, status = os.waitpid(child, os.WNOHANG)
                    if ended:
                        statuses[child] = os.waitstatus_to_exitcode(status)
            failed = any(status not in (0, train.STOPPED) for status in statuses.values())
            if clock.is_over() or (failed and all_at_once):
                self._kill(statuses)
            time.sleep(0.01)
        outcome.statuses = [statuses[child] for child in self.children]
        for log in self.logs:
            with open(log, encoding="utf-8") as file:
                outcome.outputs.append(file.read())
        return outcome

    def _kill(self, statuses):
        for child in self.children:
            if child not in statuses:
                os.kill(child, 9)


def forked(plan, arguments, folder):
    return Forked(plan, arguments, folder).wait()


def run_reference(plan, arguments, folder):
    return Forked(plan, arguments, folder, reference).wait()


class Agents:
    """A torchrun for each node of a plan."""

    def __init__(self, plan, arguments, folder):
        port, plan_file = free_port(), write_json(folder, "plan.json", plan)
        self.agents = []
        for node in range(len(_nodes(plan))):
            environment = {**os.environ, **_environment(plan, plan_file, port, node)}
            # Debian's torchrun 1.13 on Python 3.11 fails on its own defaults of these two.
            environment.update(PET_REDIRECTS="9:1", PET_TEE="9:1", PYTHONPATH=RUNTIME)
            command = [
                sys.executable,
                "-m",
                "torch.distributed.run",
                "-m",
                "heterotrain.train",
            ]
            log = open(os.path.join(folder, f"node-{node}.log"), "w+", encoding="utf-8")
            agent = subprocess.Popen(
                [*command, *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            self.agents.append((agent, log))

    def signal(self, number):
        for agent, _ in self.agents:
            agent.send_signal(number)

    def wait(self):
        """The Outcome; what has not ended after TIMEOUT_S is killed."""
        outcome, clock = Outcome(), Clock()
        for agent, log in self.agents:
            while agent.poll() is None and not clock.is_over():
                time.sleep(0.05)
            if agent.poll() is None:
                agent.kill()
            outcome.statuses.append(agent.wait())
            log.seek(0)
            outcome.outputs.append(log.read())
            log.close()
        return outcome


def torchrun(plan, arguments, folder):
    return Agents(plan, arguments, folder).wait()


def wait_until(is_so):
    clock = Clock()
    while not is_so():
        if clock.is_over():
            raise AssertionError(f"still not so after {TIMEOUT_S} s")
        time.sleep(0.05)


def wait_for_steps(report, count):
    wait_until(lambda: os.path.exists(report) and len(losses(report)) >= count)


def difference(folder, other):
    """Largest difference between the newest checkpoints of two folders."""
    return compare.difference(compare.step_folder(folder), compare.step_folder(other))


def losses(report):
    with open(report, encoding="utf-8") as file:
        return [json.loads(line)["loss"] for line in file]


def newest_step(folder):
    """Of the finished checkpoints in a folder; None if there is none."""
    path, manifest = checkpoint.newest(folder)
    return manifest["step"] if path else None
