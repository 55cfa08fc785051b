"""What one profiling Job found out about one model on one GPU type, and its compact form: one
line of JSON of at most 4,096 bytes, all that a pod's termination message holds. Numbers are
whole, in the units of a ModelProfile.

    {"v":1, "gpuType":"A100-SXM4-40GB", "memoryMiB":40536,
     "name":"llama-8b", "precision":"BF16", "optimizer":"AdamW", "sequenceLength":2048, ...,
     "groups":[{"name":"block", "count":24, "parameterBytes":P, "activationOutputBytes":A,
                "parameterBytesPerRank":[[2,B],[4,B]]}, ...],
     "optimizerMicroseconds":[[tp, us], ...],
     "m":[[tp, micro-batch, [[forward us, backward us, activation bytes, workspace bytes],
                             ... one a group]], ...],
     "oom":[[tp, micro-batch], ...], "cut":3}

docs/api.md says what each field means. No torch here: this is also read where there is none.
"""
import json
from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional, Tuple

VERSION = 1
# Kubernetes keeps so much of a termination message.
MOST_BYTES = 4096
# The fields of a ModelProfile's spec.model.
MODEL_FIELDS = (
    "name",
    "precision",
    "optimizer",
    "sequenceLength",
    "hiddenSize",
    "vocabSize",
    "embeddingWeights",
    "stateBytesPerParameter",
)
# Bounds of crds/heterotrain.io_modelprofiles.yaml.
MOST_DEGREE, MOST_MICROBATCH = 64, 4096
MOST_MICROSECONDS, MOST_AMOUNT = 86400000000, 2**53


@dataclass(frozen=True)
class Group:
    """A run of equal layers."""

    name: str
    count: int
    parameter_bytes: int  # of a whole layer
    output_bytes: int  # handed to the next layer for one sample
    rank_bytes: Dict[int, int] = field(
        default_factory=dict
    )  # by degree, where not a t-th


@dataclass(frozen=True)
class Layer:
    """One layer of a group at one point, on one rank, for the whole micro-batch."""

    forward_us: int
    backward_us: int
    activation_bytes: int  # kept from the forward to the backward pass
    workspace_bytes: Optional[int] = None  # needed only while it runs; None: not measured


@dataclass(frozen=True)
class Point:
    tp: int
    microbatch: int
    layers: Tuple[Layer, ...]  # one a group, in their order


@dataclass(frozen=True)
class Result:
    gpu_type: str
    memory_mib: Optional[int]
    model: dict  # spec.model of a ModelProfile
    groups: Tuple[Group, ...]
    optimizer_us: Dict[int, int]  # of the whole model, by degree
    points: Tuple[Point, ...]  # by (tp, microbatch)
    out_of_memory: Tuple[
        Tuple[int, int], ...
    ] = ()  # the first (tp, microbatch) that was too much
    cut: int = 0  # points that the compact form had no room for


def _group_json(group: Group) -> dict:
    json_group = {
        "name": group.name,
        "count": group.count,
        "parameterBytes": group.parameter_bytes,
        "activationOutputBytes": group.output_bytes,
    }
    if group.rank_bytes:
        json_group["parameterBytesPerRank"] = [
            [tp, group.rank_bytes[tp]] for tp in sorted(group.rank_bytes)
        ]
    return json_group


def _layer_json(layer: Layer) -> list:
    numbers = [layer.forward_us, layer.backward_us, layer.activation_bytes]
    return numbers if layer.workspace_bytes is None else numbers + [layer.workspace_bytes]


def encode(result: Result) -> str:
    """The result as one line, however long."""
    whole = {"v": VERSION, "gpuType": result.gpu_type}
    if result.memory_mib:
        whole["memoryMiB"] = result.memory_mib
    whole.update(result.model)
    whole["groups"] = [_group_json(group) for group in result.groups]
    if result.optimizer_us:
        whole["optimizerMicroseconds"] = [
            [tp, result.optimizer_us[tp]] for tp in sorted(result.optimizer_us)
        ]
    whole["m"] = [
        [p.tp, p.microbatch, [_layer_json(layer) for layer in p.layers]]
        for p in result.points
    ]
    if result.out_of_memory:
        whole["oom"] = [list(point) for point in result.out_of_memory]
    if result.cut:
        whole["cut"] = result.cut
    return json.dumps(whole, separators=(",", ":"))


def _without_last_point(result: Result) -> Result:
    """Without the largest micro-batch of the largest degree, and without what is said of a degree
    of which no point is left."""
    points = result.points[:-1]
    degrees = {point.tp for point in points}
    groups = tuple(
        replace(g, rank_bytes={tp: b for tp, b in g.rank_bytes.items() if tp in degrees})
        for g in result.groups
    )
    optimizer = {tp: us for tp, us in result.optimizer_us.items() if tp in degrees}
    return replace(
        result, points=points, groups=groups, optimizer_us=optimizer, cut=result.cut + 1
    )


def encode_compact(result: Result, most_bytes: int = MOST_BYTES) -> str:
    """The result in at most `most_bytes`. Points that do not fit are left out, from the largest
    degree and micro-batch down, and counted in "cut": what is left is a smaller profile, not a
    wrong one. ValueError, if there is not room for one point."""
    line = encode(result)
    while len(line.encode()) > most_bytes:
        if len(result.points) < 2:
            raise ValueError(
                f"the result needs {len(line.encode())} bytes for one point, of "
                f"{most_bytes}; take the whole one from the log"
            )
        result = _without_last_point(result)
        line = encode(result)
    return line


def encode_failure(gpu_type: str, message: str, most_bytes: int = MOST_BYTES) -> str:
    """Why there is no result, in the form of a result."""
    while True:
        line = json.dumps(
            {"v": VERSION, "gpuType": gpu_type, "error": message}, separators=(",", ":")
        )
        excess = len(line) - most_bytes
        if excess <= 0:
            return line
        message = message[: -excess - 3] + "..."


# ---- reading ----


def _whole(value, least: int, most: int, what: str) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not least <= value <= most
    ):
        raise ValueError(
            f"{what}: must be a whole number from {least} to {most}, is {value!r}"
        )
    return value


def _pairs(value, most_first: int, most_second: int, what: str) -> Dict[int, int]:
    pairs = {}
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{what}: must be pairs of numbers")
        first = _whole(pair[0], 1, most_first, what)
        if first in pairs:
            raise ValueError(f"{what}: {first} stands there twice")
        pairs[first] = _whole(pair[1], 0, most_second, what)
    return pairs


def _read_group(value: dict) -> Group:
    name = value["name"]
    what = f"groups: {name}"
    return Group(
        name,
        _whole(value["count"], 1, 4096, what),
        _whole(value["parameterBytes"], 0, MOST_AMOUNT, what),
        _whole(value["activationOutputBytes"], 0, MOST_AMOUNT, what),
        _pairs(value.get("parameterBytesPerRank", []), MOST_DEGREE, MOST_AMOUNT, what),
    )


def _read_layer(value: list, what: str) -> Layer:
    if not 3 <= len(value) <= 4:
        raise ValueError(f"{what}: a layer has 3 or 4 numbers, not {len(value)}")
    forward, backward = (_whole(us, 0, MOST_MICROSECONDS, what) for us in value[:2])
    memory = [_whole(amount, 0, MOST_AMOUNT, what) for amount in value[2:]]
    return Layer(forward, backward, memory[0], memory[1] if len(memory) > 1 else None)


def _read_point(value: list, group_count: int) -> Point:
    tp, microbatch, layers = value
    what = f"m: tensor-parallel degree {tp}, micro-batch {microbatch}"
    _whole(tp, 1, MOST_DEGREE, what)
    _whole(microbatch, 1, MOST_MICROBATCH, what)
    if len(layers) != group_count:
        raise ValueError(f"{what}: {len(layers)} layers for {group_count} groups")
    return Point(tp, microbatch, tuple(_read_layer(layer, what) for layer in layers))


def decode(line: str) -> Result:
    """Reads either form. ValueError says what is wrong, or why the Job failed."""
    try:
        whole = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"no whole result ({error}); was it cut off?") from error
    if not isinstance(whole, dict) or whole.get("v") != VERSION:
        raise ValueError(f"not a profiling result of version {VERSION}")
    if "error" in whole:
        raise ValueError(f"profiling of {whole.get('gpuType')} failed: {whole['error']}")
    try:
        groups = tuple(_read_group(group) for group in whole["groups"])
        points = tuple(
            sorted(
                (_read_point(point, len(groups)) for point in whole["m"]),
                key=lambda point: (point.tp, point.microbatch),
            )
        )
        optimizer = _pairs(
            whole.get("optimizerMicroseconds", []),
            MOST_DEGREE,
            MOST_MICROSECONDS,
            "optimizerMicroseconds",
        )
        model = {name: whole[name] for name in MODEL_FIELDS if name in whole}
        result = Result(
            str(whole["gpuType"]),
            whole.get("memoryMiB"),
            model,
            groups,
            optimizer,
            points,
            tuple(tuple(p) for p in whole.get("oom", [])),
            whole.get("cut", 0),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a whole profiling result: {error!r}") from error
    _check(result)
    return result


def _check(result: Result) -> None:
    if not result.points:
        raise ValueError("no point was measured")
    keys: List[Tuple[int, int]] = [
        (point.tp, point.microbatch) for point in result.points
    ]
    if len(set(keys)) != len(keys):
        raise ValueError("a point stands there twice")


def find_results(text: str) -> List[Result]:
    """All results among the lines of a log or of a termination message."""
    lines = [line.strip() for line in text.splitlines()]
    results = [decode(line) for line in lines if line.startswith('{"v":')]
    if not results:
        raise ValueError("no line holds a profiling result")
    return results
