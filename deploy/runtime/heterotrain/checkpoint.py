"""Checkpoints, layer by layer, that any plan can load.

    DIR/step-00001200/layer-007.tp-0-of-2.weights.safetensors
                      layer-007.tp-0-of-2.optim.safetensors
                      MANIFEST.json

Each layer is written by one of the replicas that hold it, a file for each tensor-parallel
index; DIR is storage that all pods see. MANIFEST.json comes last, so a checkpoint without
one was not finished. It says how every tensor is cut, in which sections, so that other
programs can cut it anew, and has the size and SHA-256 of every file, and of itself.

Loading takes the newest checkpoint that is whole; each rank reads the pieces that it holds
out of whatever files have them, and verifies those files. Whatever damage any rank meets,
all ranks take the next older checkpoint together.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from . import safetensors
from .model import layer_specs
from .sharding import Section, TensorSpec, cut
from .tensor_parallel import ALONE

MANIFEST = "MANIFEST.json"
VERSION = 2
_FOLDER = re.compile(r"step-(\d{8,})")


# What a damaged or unreadable checkpoint shows itself by; an older one may do.
DAMAGE = (safetensors.FormatError, OSError)


class CheckpointError(ValueError):
    """No checkpoint can be loaded, or it is of another model; names file or tensor."""


@dataclass(frozen=True)
class Holding:
    """What a rank has of the model, to be written or filled."""

    plan: Any
    config: Any
    rank: int
    tp: Any  # TensorParallel
    specs: dict  # key -> TensorSpec
    optimizer: Any
    control: Any = None  # process group of all ranks; None: there is one rank


@dataclass(frozen=True)
class Progress:
    """How far training had come."""

    step: int
    samples: int
    loss_scale: float
    good_steps: int


# ---- what is in a checkpoint ----
def folder_name(step):
    return f"step-{step:08d}"


def file_name(layer, tp_rank, tp, kind):
    return f"layer-{layer:03d}.tp-{tp_rank}-of-{tp}.{kind}.safetensors"


def _writer(plan, layer):
    """The replica that writes a layer: its holders in turn, so that all have some."""
    holders = plan.holders(layer)
    return holders[layer % len(holders)]


def _own_specs(config, layer):
    """The tensors whose identity is this layer (not a tied head's weight), in the order of
    their names, as in files."""
    specs = [spec for spec in layer_specs(config, layer) if spec.layer == layer]
    return sorted(specs, key=lambda spec: spec.name)


def _expected_bytes(plan, config, optimizer):
    """{file name: bytes} of a checkpoint that is written now."""
    weight = next(iter(optimizer.parameters.values())).dtype
    expected = {}
    for layer in range(config.layer_count):
        tp = _writer(plan, layer).tp
        for index in range(tp):
            shapes = {s.name: s.shard_shape(tp, index) for s in _own_specs(config, layer)}
            weights = {name: (shape, weight) for name, shape in shapes.items()}
            optim = {
                f"{name}.{part}": (shape, optimizer.exact)
                for name, shape in shapes.items()
                for part in optimizer.parts
            }
            for kind, entries in (("weights", weights), ("optim", optim)):
                expected[file_name(layer, index, tp, kind)] = safetensors.file_bytes(
                    entries
                )
    return expected


def _describe(spec):
    sections = [[s.length, s.unit, s.finer_unit] for s in spec.sections]
    return {
        "tensor": spec.name,
        "shape": list(spec.shape),
        "splitDim": spec.split_dim,
        "sections": sections,
    }


def _described(layer, value):
    """The spec that _describe described."""
    sections = tuple(Section(*each) for each in value["sections"])
    return TensorSpec(
        layer, value["tensor"], tuple(value["shape"]), value["splitDim"], sections
    )


def _manifest(holding, progress, files, labels):
    """`files`: {file name: {"bytes", "sha256"}}."""
    plan, config = holding.plan, holding.config
    layers = [
        {
            "layer": layer,
            "tp": _writer(plan, layer).tp,
            "tensors": [_describe(spec) for spec in _own_specs(config, layer)],
        }
        for layer in range(config.layer_count)
    ]
    return {
        "version": VERSION,
        "step": progress.step,
        "samples": progress.samples,
        "lossScale": progress.loss_scale,
        "goodSteps": progress.good_steps,
        "optimizer": holding.optimizer.settings.kind,
        "layers": layers,
        "files": files,
        **labels,
    }


def _sealed(manifest):
    """The manifest with its own SHA-256, which covers all its other fields."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    text = json.dumps(fields, separators=(",", ":"), sort_keys=True)
    return {**fields, "sha256": hashlib.sha256(text.encode()).hexdigest()}


# ---- all ranks together ----
def _meet(holding):
    if holding.control is not None:
        dist.barrier(group=holding.control)


def _tell_all(holding, value):
    """Rank 0's JSON value, on every rank."""
    if holding.control is None:
        return value
    text = json.dumps(value).encode() if holding.rank == 0 else b""
    size = torch.tensor([len(text)])
    dist.broadcast(size, 0, group=holding.control)
    content = torch.zeros(int(size), dtype=torch.uint8)
    if holding.rank == 0:
        content = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    dist.broadcast(content, 0, group=holding.control)
    return json.loads(bytes(content.tolist()))


def _tell_each_other(holding, value):
    """[value of each rank], on every rank."""
    if holding.control is None:
        return [value]
    values = [None] * holding.plan.world_size
    dist.all_gather_object(values, value, group=holding.control)
    return values


# ---- writing ----
def save(root, holding, progress, labels, keep):
    """Writes a checkpoint and removes all but the newest `keep`. Collective; returns when
    all is on disk. `labels` go into the manifest. Writing it again does nothing."""
    folder = os.path.join(root, folder_name(progress.step))
    is_there = holding.rank == 0 and _is_whole(folder)
    if holding.rank == 0 and not is_there:
        shutil.rmtree(folder, ignore_errors=True)  # interrupted, or damaged since
        os.makedirs(folder)
    if _tell_all(holding, is_there):
        return
    written = _tell_each_other(holding, _write_layers(folder, holding))
    if holding.rank == 0:
        digests = {name: digest for each in written for name, digest in each.items()}
        expected = _expected_bytes(holding.plan, holding.config, holding.optimizer)
        files = {
            name: {"bytes": size, "sha256": digests[name]}
            for name, size in expected.items()
        }
        try:
            _check_sizes(folder, files)
        except DAMAGE as error:
            raise CheckpointError(f"{error}: must be storage that all pods see") from None
        _write_manifest(folder, _manifest(holding, progress, files, labels))
        _prune(root, keep)
    _meet(holding)


def _write_layers(folder, holding):
    """Every rank goes through all that it has, as optimizer state may be in parts; those
    that write a layer keep it until the layer is complete. Returns {file name: SHA-256} of
    the files that this rank wrote."""
    optimizer = holding.optimizer
    weights, optim, digests = {}, {}, {}
    keys = sorted(holding.specs)
    for key, following in zip(keys, [*keys[1:], None]):
        layer, name = key
        state = optimizer.gather(key)
        if holding.rank not in _writer(holding.plan, layer).ranks:
            continue
        weights[name] = optimizer.parameters[key]
        for part in optimizer.parts:
            optim[f"{name}.{part}"] = state[part].to("cpu")
        if following is None or following[0] != layer:
            for kind, tensors in (("weights", weights), ("optim", optim)):
                name = file_name(layer, holding.tp.rank, holding.tp.size, kind)
                digests[name] = safetensors.write(os.path.join(folder, name), tensors)
            weights, optim = {}, {}
    return digests


def _write_manifest(folder, manifest):
    path = os.path.join(folder, MANIFEST)
    _sync_folder(folder)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(_sealed(manifest), file, separators=(",", ":"), sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)
    _sync_folder(folder)
    _sync_folder(os.path.dirname(folder))


def _sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prune(root, keep):
    finished = [step for step in _steps(root) if _is_finished(_path(root, step))]
    for step in _steps(root):
        if step < finished[0] and step not in finished[:keep]:
            # Without its manifest it is no checkpoint, should the rest take long.
            if step in finished:
                os.unlink(os.path.join(_path(root, step), MANIFEST))
            shutil.rmtree(_path(root, step), ignore_errors=True)


# ---- finding ----
def _path(root, step):
    return os.path.join(root, folder_name(step))


def _steps(root):
    """The steps that have a folder, newest first."""
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return []
    matches = (_FOLDER.fullmatch(name) for name in names)
    return sorted((int(match.group(1)) for match in matches if match), reverse=True)


def _is_finished(folder):
    return os.path.exists(os.path.join(folder, MANIFEST))


def _check_sizes(folder, files):
    for name, file in files.items():
        path = os.path.join(folder, name)
        found = os.path.getsize(path)
        if found != file["bytes"]:
            raise safetensors.FormatError(
                f"{path}: has {found} bytes of {file['bytes']}"
            )


def read_manifest(folder):
    """The manifest of a checkpoint whose files are there in full length. Raises one of
    DAMAGE."""
    path = os.path.join(folder, MANIFEST)
    with open(path, encoding="utf-8") as file:
        try:
            manifest = json.load(file)
            if manifest["version"] != VERSION:
                raise ValueError(f"version {manifest['version']} is not {VERSION}")
            if manifest["sha256"] != _sealed(manifest)["sha256"]:
                raise ValueError("is damaged: its SHA-256 is not that of its fields")
        except KeyError as error:
            raise safetensors.FormatError(f"{path}: has no {error}") from None
        except (ValueError, TypeError) as error:
            raise safetensors.FormatError(f"{path}: {error}") from None
    _check_sizes(folder, manifest["files"])
    return manifest


def _is_whole(folder):
    """Whether every byte is as it was written."""
    try:
        for name, file in read_manifest(folder)["files"].items():
            safetensors.read(os.path.join(folder, name), file["sha256"])
        return True
    except DAMAGE:
        return False


def _sentence(error):
    """What is said of an error: names the file, like all of ours."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@dataclass(frozen=True)
class Candidate:
    """A folder that may have a checkpoint: its manifest, or what is wrong with it."""

    folder: str
    manifest: Any = None
    damage: Any = None  # a sentence
    finished: bool = True


def candidates(root):
    """Those of a folder, newest first; none if nothing was ever written."""
    for step in _steps(root):
        folder = _path(root, step)
        if not _is_finished(folder):
            yield Candidate(folder, damage=f"{folder}: was not finished", finished=False)
            continue
        try:
            yield Candidate(folder, read_manifest(folder))
        except DAMAGE as error:
            yield Candidate(folder, damage=_sentence(error))


def newest(root):
    """(folder, manifest) of the newest checkpoint whose manifest is good and whose files have
    their length; (None, None) if there is none."""
    for candidate in candidates(root):
        if candidate.damage is None:
            return candidate.folder, candidate.manifest
    return None, None


# ---- loading ----
def load(root, holding, log):
    """Fills weights and optimizer from the newest checkpoint that is whole; returns its
    Progress, or None if none was ever finished. Says which newer ones were skipped.
    Collective. Raises CheckpointError if all that were finished are damaged, or if the
    checkpoint is of another model."""
    offers = map(vars, candidates(root)) if holding.rank == 0 else iter(())
    damages = []
    while True:
        offer = _tell_all(holding, next(offers, None))
        if offer is None:
            break
        candidate = Candidate(**offer)
        progress, damage = _try(candidate, holding)
        if damage is None:
            return progress
        log(f"checkpoint skipped: {damage}")
        if candidate.finished:
            damages.append(damage)
    if damages:
        raise CheckpointError("; ".join(damages))
    return None


def _try(candidate, holding):
    """(Progress, None), or (None, the first damage that any rank has met)."""
    if candidate.damage:
        return None, candidate.damage
    progress = damage = None
    try:
        progress = load_from(candidate.folder, candidate.manifest, holding)
    except DAMAGE as error:
        damage = _sentence(error)
    met = [each for each in _tell_each_other(holding, damage) if each]
    return (None, met[0]) if met else (progress, None)


def load_from(folder, manifest, holding):
    """Fills weights and optimizer from one checkpoint. Raises one of DAMAGE, and
    CheckpointError."""
    reader = _Reader(folder, manifest)
    optimizer = holding.optimizer
    for key, spec in holding.specs.items():
        parameter = optimizer.parameters[key].data
        reader.fill(spec, "weights", spec.name, parameter, holding.tp)
        for part in optimizer.parts:
            name = f"{spec.name}.{part}"
            if part == "master" and not reader.has(spec, name):
                optimizer.keep(key, part, parameter)  # written in fp32 or fp64
                continue
            tensor = torch.empty_like(parameter, dtype=optimizer.exact)
            reader.fill(spec, "optim", name, tensor, holding.tp)
            optimizer.keep(key, part, tensor)
    return Progress(
        manifest["step"],
        manifest["samples"],
        manifest["lossScale"],
        manifest["goodSteps"],
    )


class _Reader:
    """Reads pieces of tensors out of a checkpoint's files, each verified when it is first
    opened."""

    def __init__(self, folder, manifest):
        self.folder, self.described = folder, manifest["files"]
        self.layers = {layer["layer"]: layer for layer in manifest["layers"]}
        self.files = {}

    def _open(self, layer, tp_rank, kind):
        name = file_name(layer, tp_rank, self.layers[layer]["tp"], kind)
        if name not in self.files:
            path = os.path.join(self.folder, name)
            self.files[name] = safetensors.read(path, self.described[name]["sha256"])
        return self.files[name]

    def _check(self, spec):
        described = self.layers.get(spec.layer, {}).get("tensors", [])
        if _describe(spec) not in described:
            raise CheckpointError(
                f"{self.folder}: layer {spec.layer} has no {spec.name} of {list(spec.shape)}:"
                " the checkpoint is of another model"
            )

    def has(self, spec, name):
        self._check(spec)
        return name in self._open(spec.layer, 0, "optim")

    def fill(self, spec, kind, name, shard, tp):
        """Fills a rank's shard from the file's tensor `name`, whose cuts are spec's."""
        self._check(spec)
        stored = self.layers[spec.layer]["tp"]
        for piece in cut(spec, {tp.size, stored}):
            if not piece.is_in(tp.size, tp.rank):
                continue
            index = next(i for i in range(stored) if piece.is_in(stored, i))
            tensors = self._open(spec.layer, index, kind)
            if name not in tensors:
                path = file_name(spec.layer, index, stored, kind)
                raise CheckpointError(f"{self.folder}/{path}: has no {name}")
            source = piece.of(tensors[name], stored, index)
            piece.of(shard, tp.size, tp.rank).copy_(source)

    def dtypes(self, layer, kind):
        """{name: dtype} of a layer's tensors."""
        return {name: t.dtype for name, t in self._open(layer, 0, kind).items()}


def whole_tensors(folder):
    """Every tensor of a checkpoint, put together: (layer, name, tensor), those of the
    optimizer called "<name>.exp_avg" and so on. Raises one of DAMAGE, and CheckpointError."""
    reader = _Reader(folder, read_manifest(folder))
    for layer, described in sorted(reader.layers.items()):
        specs = [_described(layer, value) for value in described["tensors"]]
        for kind in ("weights", "optim"):
            for name, dtype in reader.dtypes(layer, kind).items():
                spec = next(s for s in specs if s.name == name.split(".")[0])
                tensor = torch.empty(spec.shape, dtype=dtype)
                reader.fill(spec, kind, name, tensor, ALONE)
                yield layer, name, tensor
