"""Runs the measurements of one tensor-parallel degree after the other, each in processes of its
own, one a rank: what a degree leaves behind in memory or in its communicators cannot reach the
next, and when a rank runs out of memory the others, which wait for it in a collective, are
ended with it. heterotrain.profile.worker is what runs there.
"""
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import List, Optional, Tuple

from heterotrain.profile.result import Group, Layer, Point
from heterotrain.profile.rounds import Rule

# How a rank says with its exit status that memory was not enough.
OUT_OF_MEMORY_STATUS = 3
POLL_S = 0.05


class Failed(Exception):
    """There is no result; the message says why."""


@dataclass(frozen=True)
class Task:
    """What is measured."""

    config: dict  # of a config.json
    sequence_length: int
    precision: str  # FP32, BF16, FP16
    optimizer: str  # Adam, AdamW, SGD
    device: str  # cpu, cuda
    largest_microbatch: int
    iterations: int  # of a round
    rule: Rule
    memory_mib: Optional[int] = None  # on a CPU, where the growth of micro-batches ends


@dataclass(frozen=True)
class Degree:
    """What was found out of one degree."""

    tp: int
    memory_mib: Optional[int]  # of a GPU
    state_bytes: Optional[int]  # of a parameter
    groups: Tuple[Group, ...]
    optimizer_us: Optional[int]
    points: Tuple[Point, ...]  # none, if not even the first was possible
    out_of_memory: Optional[int]  # the first micro-batch that was too much


def read_task(folder: str) -> Task:
    with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    return Task(**{**task, "rule": Rule(**task["rule"])})


def _start(folder: str, tp: int) -> List[subprocess.Popen]:
    command = [sys.executable, "-m", "heterotrain.profile.worker", folder]
    processes = []
    for rank in range(tp):
        environment = dict(
            os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(tp)
        )
        if tp > 1:  # as torchrun does
            environment.setdefault("OMP_NUM_THREADS", "1")
        processes.append(subprocess.Popen(command, env=environment))
    return processes


def _wait(processes: List[subprocess.Popen]) -> int:
    """0 when all have ended so, or the exit status of one that failed. None is left running."""
    try:
        while True:
            states = [process.poll() for process in processes]
            failed = [state for state in states if state]
            if failed:
                return (
                    OUT_OF_MEMORY_STATUS if OUT_OF_MEMORY_STATUS in failed else failed[0]
                )
            if None not in states:
                return 0
            time.sleep(POLL_S)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def _read_lines(path: str) -> List[dict]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _group(entry: dict) -> Group:
    rank_bytes = {int(tp): amount for tp, amount in entry["rank_bytes"].items()}
    return Group(**{**entry, "rank_bytes": rank_bytes})


def _collect(tp: int, lines: List[dict], ran_out: bool) -> Degree:
    points = tuple(
        Point(tp, line["microbatch"], tuple(Layer(*layer) for layer in line["layers"]))
        for line in lines
        if "microbatch" in line
    )
    said = {key: value for line in lines for key, value in line.items()}
    next_size = 2 * points[-1].microbatch if points else 1
    return Degree(
        tp,
        said.get("memory_mib"),
        said.get("state_bytes"),
        tuple(_group(entry) for entry in said.get("groups", [])),
        said.get("optimizer_us"),
        points,
        next_size if ran_out else None,
    )


def measure_degree(task: Task, tp: int) -> Degree:
    """Until the largest micro-batch or the end of memory. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="heterotrain-profile-") as folder:
        with open(os.path.join(folder, "task.json"), "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(task), file)
        status = _wait(_start(folder, tp))
        if status not in (0, OUT_OF_MEMORY_STATUS):
            failures = _read_lines(os.path.join(folder, "failure.jsonl"))
            why = (
                failures[0]["message"]
                if failures
                else f"a rank ended with status {status}"
            )
            raise Failed(f"tensor-parallel degree {tp}: {why}")
        found = _read_lines(os.path.join(folder, "found.jsonl"))
        return _collect(tp, found, status == OUT_OF_MEMORY_STATUS)
