"""Profiling results for tests, made up; and how tests run our programs."""
import os
import pathlib
import subprocess
import sys

from heterotrain.profile.result import Group, Layer, Point, Result

ROOT = pathlib.Path(__file__).resolve().parents[2]
HETPLAN = ROOT / os.environ.get("BUILD", "build") / "hetplan"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/runtime")}

MODEL = {
    "name": "toy",
    "precision": "BF16",
    "optimizer": "AdamW",
    "sequenceLength": 2048,
    "hiddenSize": 4096,
    "vocabSize": 32000,
    "embeddingWeights": "Separate",
    "stateBytesPerParameter": 20,
}
NAMES = ("embedding", "block", "head")


def layer(tp, microbatch, weight):
    """Numbers as long as those of a large model on a slow GPU."""
    return Layer(
        123456 * microbatch * weight // tp,
        234567 * microbatch * weight // tp,
        45678901 * microbatch * weight // tp,
        56789012 * microbatch,
    )


def result(gpu_type="T4", degrees=(1, 2), microbatches=(1, 2, 4), **changes):
    groups = tuple(
        Group(
            name,
            30 if name == "block" else 1,
            404766720,
            16777216,
            {tp: 404766720 // tp + 8192 for tp in degrees if tp > 1},
        )
        for name in NAMES
    )
    points = tuple(
        Point(tp, size, tuple(layer(tp, size, 1 + i) for i in range(len(NAMES))))
        for tp in degrees
        for size in microbatches
    )
    fields = {
        "gpu_type": gpu_type,
        "memory_mib": 15360,
        "model": MODEL,
        "groups": groups,
        "optimizer_us": {tp: 98765 // tp for tp in degrees},
        "points": points,
        "out_of_memory": ((degrees[0], microbatches[-1] * 2),),
    }
    return Result(**{**fields, **changes})


def run_profile(*arguments, **environment):
    """python3 -m heterotrain.profile; standard error is not shown."""
    return subprocess.run(
        [sys.executable, "-m", "heterotrain.profile", *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **environment},
    )
