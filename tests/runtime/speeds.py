"""A cluster of GPUs that are not there, as a profile for hetplan and as seconds to sleep for
heterotrain.train --emulate; both from one table, so that what is predicted can be measured.

Times are made up: type A is the fastest, a block of one sample takes it 20 ms. What a GPU keeps
of a micro-batch forces B and C to cut the model or to split layers.
"""

import json
import os
import subprocess

HETPLAN = os.path.abspath(
    os.environ.get("HETPLAN", os.path.join(os.path.dirname(__file__), "../../build/hetplan"))
)
GIB = 1 << 30
GPU_TYPES = {"A": (40, 0.020), "B": (16, 0.036), "C": (24, 0.026)}  # GiB, seconds of a block
NODES = (("a", "A", 3), ("b", "B", 2), ("c", "C", 2))
DEGREES = {1: 1.0, 2: 1.8}  # how much faster a tensor-parallel group is
MEASURED_SIZES = (1, 2, 4)
LARGEST_SIZE = 7  # that binary parts of measured ones add up to
BLOCKS = 8
ACTIVATION_BYTES = 3000 << 20  # of a block, for one sample
# (group, layers, part of a block's time and activations)
GROUPS = (("embedding", 1, 0.1), ("block", BLOCKS, 1.0), ("head", 1, 0.5))
PARAMETER_BYTES = 40_000  # the model is small: exchanges of gradients take no time
MODEL = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 32,
    "max_position_embeddings": 8,
    "rms_norm_eps": 1e-5,
}
GLOBAL_BATCH_SIZE = 16


def layer_seconds(gpu_type, degree, size, part):
    """(forward, backward) of one layer, as whole microseconds: profiles have no others. A
    sample of a larger micro-batch takes less."""
    _, block_s = GPU_TYPES[gpu_type]
    seconds = block_s * part * size**0.9 / DEGREES[degree]
    return round(seconds / 3, 6), round(seconds * 2 / 3, 6)


def profile():
    """The ModelProfile."""
    types = []
    for name, (memory_gib, _) in GPU_TYPES.items():
        measurements = []
        for degree in DEGREES:
            for size in MEASURED_SIZES:
                for group, _, part in GROUPS:
                    forward_s, backward_s = layer_seconds(name, degree, size, part)
                    measurements.append(
                        {
                            "layerGroup": group,
                            "tensorParallel": degree,
                            "microBatchSize": size,
                            "forwardMicroseconds": round(forward_s * 1e6),
                            "backwardMicroseconds": round(backward_s * 1e6),
                            "activationBytes": int(ACTIVATION_BYTES * part * size / degree),
                            "workspaceBytes": 1,  # what sleeps has no temporaries
                        }
                    )
        types.append(
            {"name": name, "memoryMiB": memory_gib << 10, "measurements": measurements}
        )
    groups = [
        {
            "name": name,
            "count": count,
            "parameterBytes": PARAMETER_BYTES,
            "activationOutputBytes": 512,
        }
        for name, count, _ in GROUPS
    ]
    model = {"name": "tiny", "precision": "FP32", "optimizer": "Adam", "sequenceLength": 8}
    return {
        "apiVersion": "heterotrain.io/v1alpha1",
        "kind": "ModelProfile",
        "metadata": {"name": "tiny"},
        "spec": {"model": model, "layerGroups": groups, "gpuTypes": types},
    }


def emulation():
    """What --emulate reads. A size that was not measured is the sum of its binary parts, as
    the planner has it."""
    parts = [part for _, count, part in GROUPS for _ in range(count)]

    def layer(gpu_type, degree, size, part):
        measured = [
            layer_seconds(gpu_type, degree, bit, part) for bit in MEASURED_SIZES if size & bit
        ]
        return [sum(each) for each in zip(*measured)]

    return {
        gpu_type: {
            degree: {
                size: [layer(gpu_type, degree, size, part) for part in parts]
                for size in range(1, LARGEST_SIZE + 1)
            }
            for degree in DEGREES
        }
        for gpu_type in GPU_TYPES
    }


def cluster():
    return {
        "nodes": [
            {
                "name": name,
                "type": gpu_type,
                "gpus": gpus,
                "memory_gb": GPU_TYPES[gpu_type][0],
                "workspace_gb": 0,
                "intra_gb_s": 100,
                "inter_gb_s": 10,
            }
            for name, gpu_type, gpus in NODES
        ]
    }


class Planner:
    """hetplan on that cluster and model; files in `folder`."""

    def __init__(self, folder):
        self.inputs = []
        for name, value in (("profile", profile()), ("cluster", cluster())):
            path = os.path.join(folder, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file)
            self.inputs += [f"--{name}", path]

    def plan(self, *options):
        """The plan, or None if there is none."""
        batch = ["--global-batch-size", str(GLOBAL_BATCH_SIZE)]
        headroom = ["--memory-headroom-percent", "0"]  # nothing else is in that memory
        found = subprocess.run(
            [HETPLAN, "plan", *self.inputs, *batch, *headroom, "--output", "json", *options],
            capture_output=True,
            text=True,
        )
        if found.returncode == 1:
            return None
        if found.returncode:
            raise RuntimeError(found.stderr)
        return json.loads(found.stdout)


def shape(plan):
    """The plan in a line: micro-batches, and the stages as layers:replicas, each replica as
    its GPU type, its GPUs if there are several, and its samples of a micro-batch."""

    def replica(each):
        gpus = len(each["gpus"])
        return f"{each['gpuType']}{gpus if gpus > 1 else ''}/{each['microBatchSize']}"

    return " + ".join(
        f"{pipeline['microBatches']}x("
        + " | ".join(
            f"{stage['layerCount']}:" + ",".join(replica(each) for each in stage["replicas"])
            for stage in pipeline["stages"]
        )
        + ")"
        for pipeline in plan["pipelines"]
    )
