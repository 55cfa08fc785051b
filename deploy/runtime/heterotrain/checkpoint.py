"""Checkpoints, layer by layer, that any plan can load.

    DIR/step-00001200/layer-007.tp-0-of-2.weights.safetensors
                      layer-007.tp-0-of-2.optim.safetensors
                      MANIFEST.json

Each layer is written by one of the replicas that hold it, a file for each tensor-parallel
index; DIR is storage that all pods see. MANIFEST.json comes last, so a checkpoint without
one was not finished. It says how every tensor is cut, in which sections, so that other
programs can cut it anew.

Loading takes the newest checkpoint that is whole; each rank reads the pieces that it holds
out of whatever files have them.
"""

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
VERSION = 1
_FOLDER = re.compile(r"step-(\d{8,})")


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


def _manifest(holding, progress, expected, labels):
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
        "files": expected,
        **labels,
    }


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
    _write_layers(folder, holding)
    _meet(holding)
    if holding.rank == 0:
        expected = _expected_bytes(holding.plan, holding.config, holding.optimizer)
        try:
            _check_files(folder, expected)
        except CheckpointError as error:
            raise CheckpointError(f"{error}: must be storage that all pods see") from None
        _write_manifest(folder, _manifest(holding, progress, expected, labels))
        _prune(root, keep)
    _meet(holding)


def _write_layers(folder, holding):
    """Every rank goes through all that it has, as optimizer state may be in parts; those
    that write a layer keep it until the layer is complete."""
    optimizer = holding.optimizer
    weights, optim = {}, {}
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
                path = file_name(layer, holding.tp.rank, holding.tp.size, kind)
                safetensors.write(os.path.join(folder, path), tensors)
            weights, optim = {}, {}


def _write_manifest(folder, manifest):
    path = os.path.join(folder, MANIFEST)
    _sync_folder(folder)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(manifest, file, separators=(",", ":"), sort_keys=True)
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


def _check_files(folder, expected):
    for name, size in expected.items():
        path = os.path.join(folder, name)
        try:
            found = os.path.getsize(path)
        except OSError as error:
            raise CheckpointError(f"{path}: {error.strerror}") from None
        if found != size:
            raise CheckpointError(f"{path}: has {found} bytes of {size}")


def read_manifest(folder):
    """The manifest of a checkpoint whose files are there in full. Raises
    CheckpointError."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        if manifest["version"] != VERSION:
            raise CheckpointError(
                f"{path}: version {manifest['version']} is not {VERSION}"
            )
        files = manifest["files"]
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: {error}") from None
    _check_files(folder, files)
    return manifest


def _is_whole(folder):
    try:
        read_manifest(folder)
        return True
    except CheckpointError:
        return False


def find(root):
    """(folder, manifest, lines) of the newest checkpoint that is whole, with a line for each
    newer one that is not; folder None if none was ever finished. Raises CheckpointError if all
    that were finished are damaged."""
    skipped, damaged = [], []
    for step in _steps(root):
        folder = _path(root, step)
        if not _is_finished(folder):
            skipped.append(f"{folder}: was not finished")
            continue
        try:
            return folder, read_manifest(folder), skipped
        except CheckpointError as error:
            skipped.append(str(error))
            damaged.append(str(error))
    if damaged:
        raise CheckpointError("; ".join(damaged))
    return None, None, skipped


# ---- loading ----
def load(root, holding, log):
    """Fills weights and optimizer from the newest checkpoint; returns its Progress, or None
    if there is none. Collective. Raises CheckpointError."""
    found = None
    if holding.rank == 0:
        try:
            folder, manifest, skipped = find(root)
            for line in skipped:
                log(f"checkpoint skipped: {line}")
            found = {"folder": folder, "manifest": manifest}
        except CheckpointError as error:
            found = {"error": str(error)}
    found = _tell_all(holding, found)
    if "error" in found:
        raise CheckpointError(found["error"])
    if found["folder"] is None:
        return None
    return load_from(found["folder"], found["manifest"], holding)


def load_from(folder, manifest, holding):
    """Fills weights and optimizer from one checkpoint."""
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
    """Reads pieces of tensors out of a checkpoint's files."""

    def __init__(self, folder, manifest):
        self.folder = folder
        self.layers = {layer["layer"]: layer for layer in manifest["layers"]}
        self.files = {}

    def _open(self, layer, tp_rank, kind):
        name = file_name(layer, tp_rank, self.layers[layer]["tp"], kind)
        if name not in self.files:
            self.files[name] = safetensors.read(os.path.join(self.folder, name))
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
    optimizer called "<name>.exp_avg" and so on. Raises CheckpointError."""
    reader = _Reader(folder, read_manifest(folder))
    for layer, described in sorted(reader.layers.items()):
        specs = [_described(layer, value) for value in described["tensors"]]
        for kind in ("weights", "optim"):
            for name, dtype in reader.dtypes(layer, kind).items():
                spec = next(s for s in specs if s.name == name.split(".")[0])
                tensor = torch.empty(spec.shape, dtype=dtype)
                reader.fill(spec, kind, name, tensor, ALONE)
                yield layer, name, tensor
