#!/usr/bin/env python3
"""Writes the stand-ins for the three settings of AMP's section 4.3 beside this file.

The paper publishes strategies and step times, not the layer times it measured; so these profiles are
of our own making: the seconds of one block on each GPU type are set such that a published step comes out
(../README.md says which), bytes follow from the shapes of the models. Run it after a change.
"""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))
# Calibrated, see ../README.md.
BLOCK_S = {"T4": 0.0175, "V100": 0.0035}  # forward and backward of a GPT-2 block, one sample
HEAD_BLOCKS = 1.5  # what the head takes of that
TRANSGAN_WIDE_S = 0.00535  # forward and backward of a block of width 1024, 81 tokens, on V100
TRANSGAN_RATIO = 2.0  # what a block of width 16 takes of that: the published cuts balance with it
TP_EXPONENT = 0.63  # a degree of t divides the seconds by t to this power, all-reduces included


def group(name, count, parameters, output_elements):
    return {"name": name, "count": count, "parameterBytes": 2 * parameters,
            "activationOutputBytes": 2 * output_elements}


def measurement(name, tp, size, seconds, kept_bytes):
    """Of forward and backward together; backward is two thirds."""
    micro = seconds * 1e6
    return {"layerGroup": name, "tensorParallel": tp, "microBatchSize": size,
            "forwardMicroseconds": round(micro / 3), "backwardMicroseconds": round(micro * 2 / 3),
            "activationBytes": math.ceil(kept_bytes * size)}


def profile(name, hidden, sequence, shared, groups, types):
    return {"apiVersion": "heterotrain.io/v1alpha1", "kind": "ModelProfile", "metadata": {"name": name},
            "spec": {"model": {"name": name, "precision": "FP16", "optimizer": "Adam", "hiddenSize": hidden,
                               "sequenceLength": sequence,
                               "embeddingWeights": "Shared" if shared else "Separate"},
                     "layerGroups": groups, "gpuTypes": types}}


def gpt2():
    s, h, v, heads = 1024, 1024, 52256, 16
    types = []
    for gpu in ("T4", "V100"):
        points = []
        for tp in (1, 2, 4):
            block_s = BLOCK_S[gpu] / tp ** TP_EXPONENT
            for size in (1, 2, 4, 8, 16, 32):
                points += [
                    measurement("embedding", tp, size, size * 1e-4, 2 * s * h),
                    measurement("block", tp, size, size * block_s,
                                s * h * (10 + 24 / tp + 5 * heads * s / h / tp)),
                    measurement("head", tp, size, size * HEAD_BLOCKS * block_s, 6 * s * v / tp)]
        types.append({"name": gpu, "memoryMiB": 16384, "measurements": points})
    groups = [group("embedding", 1, (v + s) * h, s * h), group("block", 24, 12 * h * h + 13 * h, s * h),
              group("head", 1, v * h, s * v)]
    return profile("gpt2-medium", h, s, True, groups, types)


def transgan():
    """56 entries as in the paper's tables; only 0, 3-14 (wide) and 41-52 (narrow) hold work."""
    wide, narrow = (81, 1024), (81 * 32 * 32, 16)  # tokens, width
    points = []
    for tp in (1, 2, 4):
        for size in (1, 2, 4, 8, 16, 32, 64):
            narrow_s = TRANSGAN_WIDE_S * TRANSGAN_RATIO
            points += [
                measurement("input", tp, size, size * TRANSGAN_WIDE_S / 4, 2 * wide[0] * wide[1]),
                measurement("before", tp, size, 0, 0),
                measurement("wide", tp, size, size * TRANSGAN_WIDE_S / tp ** TP_EXPONENT,
                            34 * wide[0] * wide[1] + 5 * 4 * wide[0] ** 2),
                measurement("between", tp, size, 0, 0),
                # Attention inside windows of 256 tokens, 4 heads.
                measurement("narrow", tp, size, size * narrow_s / tp ** TP_EXPONENT,
                            (34 * narrow[0] * narrow[1] + 5 * 4 * narrow[0] * 256) / tp),
                measurement("after", tp, size, 0, 0)]
    elements = wide[0] * wide[1]
    groups = [group("input", 1, 256 * elements, elements), group("before", 2, 0, elements),
              group("wide", 12, 12 * wide[1] ** 2, elements),
              group("between", 26, 0, narrow[0] * narrow[1]),
              group("narrow", 12, 12 * narrow[1] ** 2, narrow[0] * narrow[1]),
              group("after", 3, 0, narrow[0] * narrow[1])]
    return profile("transgan-12-12", 1024, 81, False, groups,
                   [{"name": "V100", "memoryMiB": 16384, "measurements": points}])


def nodes(gpu, count, inside_gbit_s, between_gbit_s):
    return {"name": gpu.lower(), "type": gpu, "gpus": 4, "memory_gb": 16, "intra_gb_s": inside_gbit_s / 8,
            "inter_gb_s": between_gbit_s / 8, "repeat": count}


def write(name, content):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        # One measurement or node a line.
        text = json.dumps(content, separators=(",", ":"))
        file.write(text.replace('{"layerGroup"', '\n{"layerGroup"').replace('{"name"', '\n{"name"') + "\n")


write("gpt2.json", gpt2())
write("transgan.json", transgan())
write("t4x16.json", {"nodes": [nodes("T4", 4, 50, 50)]})
write("v100x12_t4x4.json", {"nodes": [nodes("V100", 3, 170, 10), nodes("T4", 1, 50, 50)]})
write("v100x16.json", {"nodes": [nodes("V100", 4, 170, 10)]})
