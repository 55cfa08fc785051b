"""Seconds between moments: of a CPU by its clock; of a GPU by events in its stream, so that
what it does is timed and not when it was asked to.
"""
import time
from typing import List

import torch


class CpuStopwatch:
    def __init__(self):
        self._moments: List[float] = []

    def mark(self) -> None:
        self._moments.append(time.perf_counter())

    def seconds(self) -> List[float]:
        """From each mark to the next."""
        return [b - a for a, b in zip(self._moments, self._moments[1:])]


class CudaStopwatch:
    def __init__(self):
        self._events: List[torch.cuda.Event] = []

    def mark(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def seconds(self) -> List[float]:
        """From each mark to the next; waits for the last."""
        torch.cuda.synchronize()
        return [a.elapsed_time(b) * 1e-3 for a, b in zip(self._events, self._events[1:])]


def start(device: torch.device):
    return CudaStopwatch() if device.type == "cuda" else CpuStopwatch()
