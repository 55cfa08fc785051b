"""Seconds of each layer alone, forward and backward, and of the optimizer step. The time of
several layers is the sum of theirs (Metis, 4.3); a layer of a run of equal ones is measured
once. With tensor parallelism, collectives included, the slowest rank counts.
"""
import statistics
from typing import List, Sequence, Tuple

import torch
import torch.distributed

from heterotrain.optimizer import Optimizer
from heterotrain.profile import rounds, stopwatch
from heterotrain.profile.bench import Bench, layer_counts, make_optimizer
from heterotrain.tensor_parallel import TensorParallel


# What is measured of one layer in a round takes about so long, but for the least iterations.
ROUND_S = 0.5
LEAST_ITERATIONS = 3


def _iterations(seconds: float, most: int) -> int:
    """So many of something that takes `seconds`."""
    enough = int(ROUND_S / seconds) if seconds > 0 else most
    return min(most, max(LEAST_ITERATIONS, enough))


def _slowest_rank(
    tp: TensorParallel, seconds: Sequence[float], device: torch.device
) -> List[float]:
    """Of each time; the same numbers on all ranks, which then decide alike."""
    together = torch.tensor(seconds, dtype=torch.float64, device=device)
    return tp.all_reduce(together, torch.distributed.ReduceOp.MAX).tolist()


def _meet(tp: TensorParallel) -> None:
    """All ranks begin at the same time."""
    if tp.size > 1:
        torch.distributed.barrier(tp.group)


def _layer_seconds(
    bench: Bench, name: str, samples: int, iterations: int
) -> Tuple[float, float]:
    """Medians over the iterations, forward and backward."""
    inputs = bench.inputs(samples)
    _meet(bench.tp)
    watch = stopwatch.start(bench.device)
    watch.mark()
    for _ in range(iterations):
        output = bench.forward((name,), inputs)
        watch.mark()
        bench.backward((name,), output, inputs)
        watch.mark()
        del output
    seconds = watch.seconds()
    return statistics.median(seconds[0::2]), statistics.median(seconds[1::2])


def measure_layers(
    bench: Bench, samples: int, iterations: int, rule: rounds.Rule
) -> rounds.Steady:
    """Forward and backward of each group in turn, each up to `iterations` times a round. Raises
    rounds.Unsteady."""
    timed = [
        rounds.Timed(f"{name}, {direction}", count)
        for name, count in layer_counts(bench.config).items()
        for direction in ("forward", "backward")
    ]

    iterations_of = {name: min(iterations, LEAST_ITERATIONS) for name in bench.layers}

    def run_round() -> List[float]:
        seconds: List[float] = []
        for name in bench.layers:
            seconds += _layer_seconds(bench, name, samples, iterations_of[name])
        return _slowest_rank(bench.tp, seconds, bench.device)

    warm_up = run_round()  # kernels are loaded and chosen, buffers made
    for i, name in enumerate(bench.layers):
        iterations_of[name] = _iterations(sum(warm_up[2 * i : 2 * i + 2]), iterations)
    return rounds.measure(timed, run_round, rule)


def _step_seconds(bench: Bench, optimizer: Optimizer, iterations: int) -> float:
    _meet(bench.tp)
    watch = stopwatch.start(bench.device)
    watch.mark()
    for number in range(iterations):
        optimizer.step(number + 1)
        watch.mark()
    return statistics.median(watch.seconds())


def measure_steps(bench: Bench, kind: str, iterations: int, rule: rounds.Rule) -> float:
    """Seconds of the optimizer step of the whole model: of each group's layer, one after the
    other, so that the state of one is held at a time. Raises rounds.Unsteady."""
    total = 0.0
    for name, count in layer_counts(bench.config).items():
        optimizer = make_optimizer(bench.layers[name], kind)

        def run_round() -> List[float]:
            seconds = _step_seconds(bench, optimizer, iterations)
            return _slowest_rank(bench.tp, [seconds], bench.device)

        run_round()
        timed = [rounds.Timed(f"{name}, optimizer step", count)]
        total += count * rounds.measure(timed, run_round, rule).seconds[0]
    bench.attach_gradients()
    return total
