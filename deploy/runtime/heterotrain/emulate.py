"""Speeds of GPUs that are not there: a stage's forward and backward pass take, by sleeping
on top of what they compute, the time that a file gives for the GPU type.

    { gpuType: { tp: { microBatchSize: [[forward seconds, backward seconds] per layer] } } }
"""

import json
import time


class EmulationError(ValueError):
    """The file lacks what the plan needs; the message names it."""


class RealSpeed:
    """Nothing is emulated."""

    def wait(self, direction, begun):
        pass


class EmulatedSpeed:
    """Of one rank's stage. `forward_s` and `backward_s` are of one micro-batch."""

    def __init__(self, table, stage, replica):
        path = [replica.gpu_type, str(replica.tp), str(replica.micro_batch_size)]
        layers = table
        for i, name in enumerate(path):
            if not isinstance(layers, dict) or name not in layers:
                raise EmulationError(f"{'.'.join(path[: i + 1])}: is missing")
            layers = layers[name]
        if len(layers) <= max(stage.layers):
            raise EmulationError(f"{'.'.join(path)}: has {len(layers)} layers")
        self.forward_s = sum(layers[layer][0] for layer in stage.layers)
        self.backward_s = sum(layers[layer][1] for layer in stage.layers)
        if stage.recompute == "full":
            self.backward_s += self.forward_s

    def wait(self, direction, begun):
        """`begun`: time.monotonic() when the pass began."""
        seconds = self.forward_s if direction == "forward" else self.backward_s
        time.sleep(max(0.0, begun + seconds - time.monotonic()))


def speed_of(path, stage, replica):
    """From the file `path`; None: as fast as it goes."""
    if path is None:
        return RealSpeed()
    with open(path, encoding="utf-8") as file:
        try:
            return EmulatedSpeed(json.load(file), stage, replica)
        except (EmulationError, json.JSONDecodeError) as error:
            raise EmulationError(f"{path}: {error}") from None
