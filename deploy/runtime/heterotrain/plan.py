"""The plan that the operator mounts (plan.json), checked, with the rank of every GPU.

Pipelines are copies of the model, cut into stages of consecutive layers; the replicas of a
stage split each micro-batch between them; the GPUs of a replica are a tensor-parallel
group. Ranks are contiguous per node, in the order in which nodes first appear.
"""

import json
from dataclasses import dataclass, replace
from typing import Optional, Tuple

RECOMPUTE = ("none", "selective", "full")
PRECISIONS = ("fp32", "bf16", "fp16")
OPTIMIZERS = ("adam", "adam-distributed", "sgd")


class PlanError(ValueError):
    """The plan cannot be run; the message names the field."""


@dataclass(frozen=True)
class Replica:
    gpu_type: str
    micro_batch_size: int
    first_sample: int  # of the micro-batch
    ranks: Tuple[int, ...]  # [tensor-parallel index]

    @property
    def tp(self):
        return len(self.ranks)

    @property
    def last_sample(self):
        return self.first_sample + self.micro_batch_size


@dataclass(frozen=True)
class Stage:
    first_layer: int
    layer_count: int
    recompute: str
    replicas: Tuple[Replica, ...]

    @property
    def layers(self):
        return range(self.first_layer, self.first_layer + self.layer_count)


@dataclass(frozen=True)
class Pipeline:
    micro_batches: int
    micro_batch_size: int
    first_sample: int  # of the global batch
    stages: Tuple[Stage, ...]


@dataclass(frozen=True)
class Place:
    """Where a rank stands: indices of pipeline, stage, replica, and in its tp group."""

    pipeline: int
    stage: int
    replica: int
    tp_rank: int


@dataclass(frozen=True)
class Plan:
    global_batch_size: int
    layer_count: int
    precision: str
    optimizer: str
    pipelines: Tuple[Pipeline, ...]
    gpus_of_nodes: Tuple[int, ...]  # in the order of ranks
    sequence_length: Optional[int] = None  # tokens of a sample; None: it does not say

    @property
    def world_size(self):
        return sum(self.gpus_of_nodes)

    def replicas(self):
        """(Place with tp_rank 0, Stage, Replica), in the order of the plan."""
        for p, pipeline in enumerate(self.pipelines):
            for s, stage in enumerate(pipeline.stages):
                for r, replica in enumerate(stage.replicas):
                    yield Place(p, s, r, 0), stage, replica

    def place_of(self, rank):
        for place, _, replica in self.replicas():
            if rank in replica.ranks:
                return Place(
                    place.pipeline, place.stage, place.replica, replica.ranks.index(rank)
                )
        raise PlanError(f"rank {rank}: the plan has {self.world_size} ranks")

    def describe(self, rank):
        """A rank in words, for people who look for its pod."""
        place = self.place_of(rank)
        stage = self.pipelines[place.pipeline].stages[place.stage]
        pod, local = 0, rank
        while local >= self.gpus_of_nodes[pod]:
            local -= self.gpus_of_nodes[pod]
            pod += 1
        gpu_type = stage.replicas[place.replica].gpu_type
        return f"rank {rank} (pod {pod}, GPU {local} there, {gpu_type})"

    def holders(self, layer):
        """The replicas that hold a layer, in the order of the plan."""
        return [replica for _, stage, replica in self.replicas() if layer in stage.layers]


# ---- reading ----
class _Object:
    """A JSON object that knows its path."""

    def __init__(self, value, path):
        if not isinstance(value, dict):
            raise PlanError(f"{path or 'plan'}: must be an object")
        self.value, self.path = value, path

    def at(self, name):
        return f"{self.path}.{name}" if self.path else name

    def count(self, name, least=1):
        value = self.value.get(name)
        if type(value) is not int or not least <= value < 2**31:
            raise PlanError(
                f"{self.at(name)}: must be a whole number of at least {least}"
            )
        return value

    def text(self, name):
        value = self.value.get(name)
        if not isinstance(value, str) or not value:
            raise PlanError(f"{self.at(name)}: must be text")
        return value

    def choice(self, name, choices, default):
        value = self.value.get(name, default)
        if value not in choices:
            raise PlanError(
                f"{self.at(name)}: {value!r} is not one of {', '.join(choices)}"
            )
        return value

    def objects(self, name):
        items = self.value.get(name)
        if not isinstance(items, list) or not items:
            raise PlanError(f"{self.at(name)}: must be a list that is not empty")
        return [_Object(item, f"{self.at(name)}[{i}]") for i, item in enumerate(items)]


class _Nodes:
    """Which GPUs of which node are taken; nodes are numbered as they appear."""

    def __init__(self):
        self.gpus = {}  # node -> {local index: path}

    def take(self, replica):
        node, gpus = replica.text("node"), replica.value.get("gpus")
        if not isinstance(gpus, list) or not gpus:
            raise PlanError(f"{replica.at('gpus')}: must be a list that is not empty")
        taken = self.gpus.setdefault(node, {})
        for gpu in gpus:
            if type(gpu) is not int or gpu < 0:
                raise PlanError(
                    f"{replica.at('gpus')}: {gpu!r} is not the index of a GPU"
                )
            if gpu in taken:
                raise PlanError(
                    f"{replica.at('gpus')}: GPU {gpu} of {node} is also in {taken[gpu]}"
                )
            taken[gpu] = replica.at("gpus")
        return node, tuple(gpus)

    def offsets(self):
        """Rank of local index 0 of each node. Used indices must be 0 .. k-1."""
        offsets, rank = {}, 0
        for node, taken in self.gpus.items():
            missing = set(range(len(taken))) - set(taken)
            if missing:
                raise PlanError(
                    f"{taken[max(taken)]}: node {node} uses {len(taken)} GPUs, but not index"
                    f" {min(missing)}"
                )
            offsets[node] = rank
            rank += len(taken)
        return offsets


def _take_all(pipelines):
    nodes = _Nodes()
    gpus = {}
    for pipeline in pipelines:
        for stage in pipeline.objects("stages"):
            for replica in stage.objects("replicas"):
                gpus[replica.path] = nodes.take(replica)
    return nodes, gpus


def _read_replicas(stage, micro_batch_size, ranks_of):
    replicas, first = [], 0
    for item in stage.objects("replicas"):
        size = item.count("microBatchSize")
        replicas.append(Replica(item.text("gpuType"), size, first, ranks_of(item.path)))
        first += size
    if micro_batch_size not in (None, first):
        raise PlanError(
            f"{stage.at('replicas')}: microBatchSize adds up to {first}, in the stage before to"
            f" {micro_batch_size}"
        )
    return tuple(replicas), first


def _read_pipeline(item, layer_count, first_sample, ranks_of):
    stages, layer, size = [], 0, None
    for stage in item.objects("stages"):
        if stage.count("firstLayer", 0) != layer:
            raise PlanError(
                f"{stage.at('firstLayer')}: must be {layer}, as stages cover all layers"
            )
        replicas, size = _read_replicas(stage, size, ranks_of)
        count = stage.count("layerCount")
        recompute = stage.choice("recompute", RECOMPUTE, "none")
        stages.append(Stage(layer, count, recompute, replicas))
        layer += count
    if layer != layer_count:
        raise PlanError(
            f"{item.at('stages')}: have {layer} layers, the plan {layer_count}"
        )
    return Pipeline(item.count("microBatches"), size, first_sample, tuple(stages))


def from_dict(value):
    """The plan in a parsed plan.json. Raises PlanError."""
    root = _Object(value, "")
    root.choice("schedule", ("1F1B",), "1F1B")
    items = root.objects("pipelines")
    nodes, gpus = _take_all(items)
    offsets = nodes.offsets()

    def ranks_of(path):
        node, indices = gpus[path]
        return tuple(offsets[node] + index for index in indices)

    pipelines, samples = [], 0
    for item in items:
        pipeline = _read_pipeline(item, root.count("layerCount", 2), samples, ranks_of)
        pipelines.append(pipeline)
        samples += pipeline.micro_batches * pipeline.micro_batch_size
    if samples != root.count("globalBatchSize"):
        raise PlanError(
            f"globalBatchSize: is {root.count('globalBatchSize')}, the pipelines' microBatches"
            f" have {samples} samples"
        )
    return Plan(
        global_batch_size=samples,
        layer_count=root.count("layerCount", 2),
        precision=root.choice("precision", PRECISIONS, "fp32"),
        optimizer=root.choice("optimizer", OPTIMIZERS, "adam"),
        pipelines=tuple(pipelines),
        gpus_of_nodes=tuple(len(taken) for taken in nodes.gpus.values()),
        sequence_length=(
            root.count("sequenceLength") if "sequenceLength" in root.value else None
        ),
    )


def load(path):
    """The plan in the file `path`. Raises PlanError and OSError."""
    with open(path, encoding="utf-8") as file:
        try:
            return from_dict(json.load(file))
        except (PlanError, json.JSONDecodeError) as error:
            raise PlanError(f"{path}: {error}") from None


def of_one_gpu(plan):
    """What the plan trains, on one GPU, sample by sample."""
    replica = Replica("any", 1, 0, (0,))
    stage = Stage(0, plan.layer_count, "none", (replica,))
    pipeline = Pipeline(plan.global_batch_size, 1, 0, (stage,))
    return replace(plan, pipelines=(pipeline,), gpus_of_nodes=(1,))


def check_against_environment(plan, environment):
    """What torchrun and the operator say must be what the plan says. Raises PlanError."""
    rank = int(environment.get("RANK", 0))
    local_rank = int(environment.get("LOCAL_RANK", 0))
    expected = {
        "WORLD_SIZE": plan.world_size,
        "HETPLAN_WORLD_SIZE": plan.world_size,
        "HETPLAN_GLOBAL_BATCH_SIZE": plan.global_batch_size,
        "HETPLAN_RANK_OFFSET": rank - local_rank,
    }
    if plan.sequence_length is not None:
        expected["HETPLAN_SEQUENCE_LENGTH"] = plan.sequence_length
    for name, value in expected.items():
        if name in environment and environment[name] != str(value):
            raise PlanError(f"{name}: is {environment[name]}, by the plan {value}")
