"""ModelProfile objects from profiling results: made anew, or one more GPU type for one that is
there; and their text. The schema is crds/heterotrain.io_modelprofiles.yaml. No torch here.
"""
import copy
import json
import re
from typing import List, Optional

from heterotrain.profile.result import Group, Result

API_VERSION = "heterotrain.io/v1alpha1"
KINDS = ("ModelProfile", "ClusterModelProfile")
# What the API server writes into metadata.
SERVER_FIELDS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _layer_group(group: Group) -> dict:
    entry = {
        "name": group.name,
        "count": group.count,
        "parameterBytes": group.parameter_bytes,
    }
    if group.rank_bytes:
        entry["parameterBytesPerRank"] = [
            {"tensorParallel": tp, "bytes": group.rank_bytes[tp]}
            for tp in sorted(group.rank_bytes)
        ]
    entry["activationOutputBytes"] = group.output_bytes
    return entry


def _measurements(result: Result) -> List[dict]:
    measurements = []
    for point in result.points:
        for group, layer in zip(result.groups, point.layers):
            entry = {
                "layerGroup": group.name,
                "tensorParallel": point.tp,
                "microBatchSize": point.microbatch,
                "forwardMicroseconds": layer.forward_us,
                "backwardMicroseconds": layer.backward_us,
                "activationBytes": layer.activation_bytes,
            }
            if layer.workspace_bytes is not None:
                entry["workspaceBytes"] = layer.workspace_bytes
            measurements.append(entry)
    return measurements


def _gpu_type(result: Result) -> dict:
    entry = {"name": result.gpu_type}
    if result.memory_mib:
        entry["memoryMiB"] = result.memory_mib
    if result.optimizer_us:
        entry["optimizerMicroseconds"] = [
            {"tensorParallel": tp, "microseconds": result.optimizer_us[tp]}
            for tp in sorted(result.optimizer_us)
        ]
    entry["measurements"] = _measurements(result)
    return entry


def make(
    result: Result, name: str, namespace: Optional[str] = None, kind: str = "ModelProfile"
) -> dict:
    """A ModelProfile of the one GPU type that was measured."""
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "model": dict(result.model),
            "layerGroups": [_layer_group(group) for group in result.groups],
            "gpuTypes": [_gpu_type(result)],
        },
    }


# ---- merging ----


def _without_server_fields(profile: dict) -> dict:
    """What a person would have written; to be changed freely."""
    profile = copy.deepcopy(profile)
    profile.pop("status", None)
    metadata = profile.setdefault("metadata", {})
    for field in SERVER_FIELDS:
        metadata.pop(field, None)
    annotations = metadata.get("annotations", {})
    annotations.pop(LAST_APPLIED, None)
    if not annotations:
        metadata.pop("annotations", None)
    return profile


def _check_model(old: dict, new: dict) -> None:
    """All but the name must be the same kind of training. What the API server fills in counts as
    said."""
    old, new = dict(old, name=None), dict(new, name=None)
    for model in (old, new):
        model.setdefault("embeddingWeights", "Separate")
    for key in sorted(set(old) | set(new)):
        if old.get(key) != new.get(key):
            raise ValueError(
                f"spec.model.{key}: the profile has {old.get(key)}, the result "
                f"{new.get(key)}; profiles of different training are different objects"
            )


def _rank_bytes(group: dict) -> dict:
    return {
        item["tensorParallel"]: item["bytes"]
        for item in group.get("parameterBytesPerRank", [])
    }


def _merge_group(old: dict, new: dict) -> dict:
    for key in ("name", "count", "parameterBytes", "activationOutputBytes"):
        before = old.get(key, 1) if key == "count" else old.get(key)
        if before != new[key]:
            raise ValueError(
                f"spec.layerGroups: {new['name']}: {key} is {before} in the profile "
                f"and {new[key]} in the result; is it the same config.json?"
            )
    ranks = _rank_bytes(old)
    for tp, amount in _rank_bytes(new).items():
        if ranks.setdefault(tp, amount) != amount:
            raise ValueError(
                f"spec.layerGroups: {new['name']}: a rank of {tp} has {ranks[tp]} bytes "
                f"in the profile and {amount} in the result"
            )
    merged = {key: new[key] for key in ("name", "count", "parameterBytes")}
    if ranks:
        merged["parameterBytesPerRank"] = [
            {"tensorParallel": tp, "bytes": ranks[tp]} for tp in sorted(ranks)
        ]
    merged["activationOutputBytes"] = new["activationOutputBytes"]
    return merged


def _merge_gpu_types(old: List[dict], new: dict) -> List[dict]:
    """A type that is there is measured anew: its old points go, its price stays."""
    merged, replaced = [], False
    for entry in old:
        if entry["name"] == new["name"]:
            price = entry.get("costPerHourMilliUSD")
            entry = dict(new) if price is None else dict(new, costPerHourMilliUSD=price)
            replaced = True
        merged.append(entry)
    return merged if replaced else merged + [new]


def merge(profile: dict, result: Result) -> dict:
    """`profile` with the result's GPU type, instead of what it has of it. ValueError, if it is not
    the same model and training."""
    if profile.get("kind") not in KINDS:
        raise ValueError(f"kind: must be {' or '.join(KINDS)}, is {profile.get('kind')}")
    merged = _without_server_fields(profile)
    spec, new = merged["spec"], make(result, "new")["spec"]
    if "configMapRef" in spec:
        raise ValueError(
            "spec.configMapRef: its gpuTypes are elsewhere; merge into those"
        )
    _check_model(spec["model"], new["model"])
    old_groups = spec["layerGroups"]
    if [g["name"] for g in old_groups] != [g["name"] for g in new["layerGroups"]]:
        raise ValueError(
            "spec.layerGroups: profile and result have different groups of layers"
        )
    spec["layerGroups"] = [
        _merge_group(old, group) for old, group in zip(old_groups, new["layerGroups"])
    ]
    spec["gpuTypes"] = _merge_gpu_types(spec["gpuTypes"], new["gpuTypes"][0])
    return merged


# ---- text ----

PLAIN_STRING = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
NOT_STRINGS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}


def _scalar(value) -> str:
    if (
        isinstance(value, str)
        and PLAIN_STRING.fullmatch(value)
        and value.lower() not in NOT_STRINGS
    ):
        return value
    return json.dumps(value)


def _is_flat(value) -> bool:
    return isinstance(value, dict) and not any(
        isinstance(v, (dict, list)) for v in value.values()
    )


def _yaml_lines(value, indent: str) -> List[str]:
    if isinstance(value, list):
        lines = []
        for item in value:
            if _is_flat(item):
                pairs = ", ".join(f"{key}: {_scalar(v)}" for key, v in item.items())
                lines.append(f"{indent}- {{{pairs}}}")
            else:
                nested = _yaml_lines(item, indent + "  ")
                lines += [f"{indent}- {nested[0].lstrip()}", *nested[1:]]
        return lines
    lines = []
    for key, item in value.items():
        if not isinstance(item, (dict, list)) or not item:
            lines.append(f"{indent}{_scalar(key)}: {_scalar(item)}")
        else:
            inner = indent + "  " if isinstance(item, dict) else indent
            lines += [f"{indent}{_scalar(key)}:", *_yaml_lines(item, inner)]
    return lines


def to_yaml(profile: dict) -> str:
    """Objects as blocks, a measurement a line."""
    return "\n".join(_yaml_lines(profile, "")) + "\n"


def read(text: str) -> dict:
    """JSON; or YAML, where PyYAML is installed."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        import yaml
    except ImportError:
        raise ValueError(
            "not JSON, and to read YAML PyYAML is needed; "
            "`kubectl get modelprofile NAME -o json` prints JSON"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"neither JSON nor YAML: {error}") from error
