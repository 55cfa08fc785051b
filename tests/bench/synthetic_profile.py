#!/usr/bin/env python3
"""Writes a synthetic profile in the format of Metis: synthetic_profile.py LAYERS FOLDER.

The setting of the OOM-first paper's Table 1, with base numbers of our own: a GPT-like
model of LAYERS layers (embedding, equal blocks, head) on A100 and V100, tensor-parallel
degrees and micro-batches 1 to 128. As in the paper's generator
  - time grows as the micro-batch beyond 4, falls as the degree beyond 4;
  - a V100 takes 3.5 times as long;
  - the optimizer takes time in proportion to the layers;
  - parameters and memory depend on neither degree nor micro-batch.
Its base, measured files of a 10-layer model, is not used: BASE is made up, round, and of
the same order.
"""
import json
import os
import sys

SIZES = [1, 2, 4, 8, 16, 32, 64, 128]
MEASURED = 4  # degrees and micro-batches up to here have a formula, beyond they scale
SLOWDOWN = {"A100": 1.0, "V100": 3.5}
# embedding, block, head
PARAMETERS = [100_000_000, 50_000_000, 100_000_000]
MEMORY_MIB = [8000, 4150, 12100]
HIDDEN, SEQUENCE = 4096, 1024


def base_ms(tp, batch):
    """Milliseconds of embedding, block, head, forward and backward, on an A100."""
    exchange = {1: 0, 2: 1.1, 4: 1.54}[tp] * (1 + batch)
    return [0.3 * batch + (0.8 if tp > 1 else 0), (29 * batch + 1) / tp + exchange,
            0.2 * batch + 0.2]


def repeat(values, layers):
    embedding, block, head = values
    return [embedding] + [block] * (layers - 2) + [head]


def measurement(gpu, tp, batch, layers):
    scale = SLOWDOWN[gpu] * max(1, batch / MEASURED) / max(1, tp / MEASURED)
    times = [scale * ms for ms in base_ms(min(tp, MEASURED), min(batch, MEASURED))]
    return {
        "model": {"num_layers": layers, "parameters": {
            "parameters_per_layer_bytes": repeat([4 * p for p in PARAMETERS], layers),
            "activation_parameters_bytes": [4 * HIDDEN * SEQUENCE] * layers}},
        "execution_time": {
            "layer_compute_total_ms": repeat(times, layers),
            "optimizer_time_ms": SLOWDOWN[gpu] * 4.0 / min(tp, MEASURED) * layers},
        "execution_memory": {"layer_memory_total_mb": repeat(MEMORY_MIB, layers)},
    }


def write(layers, folder):
    os.makedirs(folder, exist_ok=True)
    for gpu in SLOWDOWN:
        for tp in SIZES:
            for batch in SIZES:
                path = os.path.join(folder, f"DeviceType.{gpu}_tp{tp}_bs{batch}.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(measurement(gpu, tp, batch, layers), file, sort_keys=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(int(sys.argv[1]), sys.argv[2])
