"""Bytes that a layer keeps from its forward to its backward pass, and those that it needs only
while it runs. They are measured of a few runs of layers, as the sum of single layers counts
what one hands to the next twice (Metis, 4.3):

    kept(l) = mean over n of M(l-n .. l) - M(l-n .. l-1), n = 1, 2

M is what is held behind the forward pass of such a run, its input and its output included. A
block follows other blocks, the head follows blocks; the embedding has nothing before it, so
that its output is its own. Differs from Metis: one block stands for all.

    workspace(l) = peak(l) - kept(l), l alone, forward and backward

This holds gradients of activations, temporaries, and the input that l was sent from another
stage. On a GPU both come from the caching allocator (torch.cuda.memory_allocated,
max_memory_allocated), which rounds tensors up to 512 bytes. On a CPU there is no such
account: M is the storage of what autograd has saved, and the output; the workspace is not
known.
"""
from dataclasses import dataclass
from typing import Dict, Optional, Sequence, Tuple

import torch

from heterotrain.model import SavedBytes
from heterotrain.profile.bench import BLOCK, EMBEDDING, HEAD, Bench

RUNS = (
    (EMBEDDING,),
    (BLOCK,),
    (HEAD,),
    (BLOCK, BLOCK),
    (BLOCK, BLOCK, BLOCK),
    (BLOCK, HEAD),
    (BLOCK, BLOCK, HEAD),
)
BEFORE = {
    EMBEDDING: [()],
    BLOCK: [(BLOCK,), (BLOCK, BLOCK)],
    HEAD: [(BLOCK,), (BLOCK, BLOCK)],
}


class OutOfMemory(Exception):
    """More than there is."""


@dataclass(frozen=True)
class LayerMemory:
    kept_bytes: int
    workspace_bytes: Optional[int]  # None: not known


@dataclass(frozen=True)
class RunMemory:
    """Of one run of layers, beside weights and gradients."""

    held_bytes: int  # behind the forward pass
    peak_bytes: Optional[int]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _cuda_run(bench: Bench, names: Sequence[str], samples: int) -> RunMemory:
    inputs = bench.inputs(samples)
    torch.cuda.synchronize()
    used = _bytes(inputs.tokens if names[0] == EMBEDDING else inputs.hidden)
    before = torch.cuda.memory_allocated() - used
    torch.cuda.reset_peak_memory_stats()
    output = bench.forward(names, inputs)
    held = torch.cuda.memory_allocated() - before
    bench.backward(names, output, inputs)
    torch.cuda.synchronize()
    return RunMemory(held, torch.cuda.max_memory_allocated() - before)


def _cpu_run(bench: Bench, names: Sequence[str], samples: int) -> RunMemory:
    inputs = bench.inputs(samples)
    with SavedBytes(torch.nn.ModuleList(bench.layers.values())) as saved:
        output = bench.forward(names, inputs)
    held = saved.bytes + _bytes(output)
    bench.backward(names, output, inputs)
    return RunMemory(held, None)


def _measure_runs(bench: Bench, samples: int) -> Dict[Tuple[str, ...], RunMemory]:
    """Of each of RUNS, and of none at all."""
    on_gpu = bench.device.type == "cuda"
    run = _cuda_run if on_gpu else _cpu_run
    if on_gpu:  # what stays from the first time on, tables and workspaces, is nobody's
        run(bench, (EMBEDDING, BLOCK, HEAD), samples)
    return {(): RunMemory(0, 0), **{names: run(bench, names, samples) for names in RUNS}}


def _largest_of_group(bench: Bench, value: int) -> int:
    """Ranks of uneven shares hold different amounts; the largest counts."""
    number = torch.tensor([value], dtype=torch.int64, device=bench.device)
    return int(bench.tp.all_reduce(number, torch.distributed.ReduceOp.MAX).item())


def measure(
    bench: Bench, samples: int, limit_bytes: Optional[int] = None
) -> Dict[str, LayerMemory]:
    """By group. Raises OutOfMemory, if a run of layers holds more than `limit_bytes`; a GPU's
    own limit raises what torch raises."""
    runs = _measure_runs(bench, samples)
    largest = max(run.held_bytes for run in runs.values())
    if limit_bytes and largest > limit_bytes:
        raise OutOfMemory(f"{largest} bytes of {limit_bytes}")
    found = {}
    for name, befores in BEFORE.items():
        added = [
            runs[before + (name,)].held_bytes - runs[before].held_bytes
            for before in befores
        ]
        kept = _largest_of_group(bench, -(-sum(added) // len(added)))
        peak = runs[(name,)].peak_bytes
        workspace = (
            None if peak is None else max(_largest_of_group(bench, peak) - kept, 0)
        )
        found[name] = LayerMemory(kept, workspace)
    return found
