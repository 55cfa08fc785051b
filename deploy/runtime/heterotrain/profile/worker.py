"""One rank of one tensor-parallel degree: python3 -m heterotrain.profile.worker FOLDER

FOLDER/task.json says what is measured (degrees.Task); RANK and WORLD_SIZE who this is. Rank 0
appends what it finds to FOLDER/found.jsonl, a line at a time, so that what was measured before
memory ran out is there. Ends with degrees.OUT_OF_MEMORY_STATUS, if it did; else in failure
appends why to FOLDER/failure.jsonl and ends with 1.
"""
import dataclasses
import json
import os
import sys
import traceback
from typing import Optional

import torch
import torch.distributed

from heterotrain import config as model_config
from heterotrain.profile import memory, times
from heterotrain.profile.bench import (
    Bench,
    groups,
    make_optimizer,
    state_bytes_per_parameter,
)
from heterotrain.profile.degrees import OUT_OF_MEMORY_STATUS, Task, read_task
from heterotrain.profile.result import Layer
from heterotrain.profile.rounds import Steady, Unsteady
from heterotrain.tensor_parallel import TensorParallel

MIB = 1 << 20
# What torch, its libraries and we call it.
OUT_OF_MEMORY_SIGNS = (
    "out of memory",
    "ALLOC_FAILED",
    "can't allocate memory",
    "not enough memory",
)


def is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, (memory.OutOfMemory, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(
        s in str(error) for s in OUT_OF_MEMORY_SIGNS
    )


class Finder:
    """Measures, and writes down what it finds."""

    def __init__(self, task: Task, folder: str, tp: TensorParallel, device: torch.device):
        self.task, self.folder, self.tp, self.device = task, folder, tp, device

    def note(self, found: dict) -> None:
        if self.tp.rank == 0:
            with open(
                os.path.join(self.folder, "found.jsonl"), "a", encoding="utf-8"
            ) as file:
                file.write(json.dumps(found) + "\n")

    def say(self, text: str) -> None:
        if self.tp.rank == 0:
            print(f"tp {self.tp.size}, {text}", flush=True)

    def memory_mib(self) -> Optional[int]:
        if self.device.type != "cuda":
            return self.task.memory_mib
        return torch.cuda.get_device_properties(self.device).total_memory // MIB

    def run(self) -> None:
        task = self.task
        config = model_config.from_dict(task.config)
        bench = Bench(config, task.precision, task.sequence_length, self.device, self.tp)
        optimizer = make_optimizer(bench.layers["block"], task.optimizer)
        described = groups(config, task.precision, task.sequence_length, self.tp.size)
        self.note(
            {
                "memory_mib": self.memory_mib(),
                "state_bytes": state_bytes_per_parameter(optimizer),
                "groups": [dataclasses.asdict(group) for group in described],
            }
        )
        del optimizer
        self.find_step(bench)
        samples = 1
        while samples <= task.largest_microbatch:
            self.find_point(bench, samples)
            samples *= 2

    def find_step(self, bench: Bench) -> None:
        task = self.task
        seconds = times.measure_steps(bench, task.optimizer, task.iterations, task.rule)
        self.note({"optimizer_us": _microseconds(seconds)})
        self.say(f"optimizer step: {seconds * 1e3:.3f} ms")

    def find_point(self, bench: Bench, samples: int) -> None:
        task = self.task
        limit = (
            task.memory_mib * MIB
            if task.memory_mib and self.device.type == "cpu"
            else None
        )
        bytes_of = memory.measure(bench, samples, limit)
        steady = times.measure_layers(bench, samples, task.iterations, task.rule)
        layers = [
            Layer(
                _microseconds(steady.seconds[2 * i]),
                _microseconds(steady.seconds[2 * i + 1]),
                bytes_of[name].kept_bytes,
                bytes_of[name].workspace_bytes,
            )
            for i, name in enumerate(bench.layers)
        ]
        self.note(
            {
                "microbatch": samples,
                "layers": [dataclasses.astuple(layer) for layer in layers],
            }
        )
        self.say(_sentence(bench, samples, layers, steady))


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def _sentence(bench: Bench, samples: int, layers, steady: Steady) -> str:
    parts = [
        f"{name} {layer.forward_us / 1e3:.3f} + {layer.backward_us / 1e3:.3f} ms, "
        f"{layer.activation_bytes / MIB:.1f} MiB"
        for name, layer in zip(bench.layers, layers)
    ]
    return (
        f"micro-batch {samples}: {'; '.join(parts)} "
        f"({steady.rounds} rounds, the last within {100 * steady.spread:.1f} %)"
    )


def _join_group(folder: str, device: torch.device) -> TensorParallel:
    """Through a file: all ranks are on this machine, and no port can be taken."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if size == 1:
        return TensorParallel()
    if device.type == "cpu":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "nccl" if device.type == "cuda" else "gloo"
    torch.distributed.init_process_group(
        backend, init_method=f"file://{folder}/rendezvous", rank=rank, world_size=size
    )
    return TensorParallel(rank, size)


def _run(folder: str) -> int:
    try:
        task = read_task(folder)
        device = torch.device("cpu")
        if task.device == "cuda":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        Finder(task, folder, _join_group(folder, device), device).run()
    except (
        Exception
    ) as error:  # whatever it was, the other ranks and the Job must hear of it
        if is_out_of_memory(error):
            return OUT_OF_MEMORY_STATUS
        with open(os.path.join(folder, "failure.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps({"message": f"{error}"}) + "\n")
        if not isinstance(error, (Unsteady, model_config.ConfigError)):
            traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    status = _run(os.path.abspath(sys.argv[1]))
    sys.stdout.flush()
    # At once: the ranks of a broken group would wait for each other while it is taken apart.
    os._exit(status)
