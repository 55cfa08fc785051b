#!/usr/bin/env python3
"""Checks that the files of docs/examples agree with each other: the same cluster as nodes and
in the short form, the same hardware as file and as ConfigMap, GPU types that the profile
knows, and YAML without anchors, aliases and tags, which our reader does not take.
"""
import json
import pathlib
import sys

import yaml

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples"
GPU_RESOURCE = "nvidia.com/gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"

complaints = []


def complain(name, what):
    complaints.append(f"docs/examples/{name}: {what}")


def load(name):
    text = (EXAMPLES / name).read_text()
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def check_plain(path):
    for event in yaml.parse(path.read_text()):
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            complain(path.name, f"line {event.start_mark.line + 1} has an anchor, alias or tag")


def types_by_alias(hardware):
    names = {}
    for gpu_type in hardware["gpuTypes"]:
        for name in [gpu_type["name"], *gpu_type["aliases"]]:
            names[name] = gpu_type["name"]
    return names


def gpus_of_node_list(nodes, aliases):
    """{node: (GPU type, GPUs)} of the nodes that have GPUs."""
    gpus = {}
    for node in nodes["items"]:
        count = int(node["status"]["allocatable"].get(GPU_RESOURCE, 0))
        labels = node["metadata"]["labels"]
        if count:
            gpus[node["metadata"]["name"]] = (aliases.get(labels[PRODUCT_LABEL]), count)
    return gpus


def gpus_of_short_form(cluster):
    gpus = {}
    for entry in cluster["nodes"]:
        copies = entry.get("repeat")
        names = [entry["name"]] if copies is None else [f"{entry['name']}-{i}" for i in range(copies)]
        gpus.update({name: (entry["type"], entry["gpus"]) for name in names})
    return gpus


def main():
    for path in EXAMPLES.glob("*.yaml"):
        check_plain(path)

    hardware = load("hardware.json")
    config_map = load("hardware-configmap.yaml")
    if json.loads(config_map["data"]["hardware.json"]) != hardware:
        complain("hardware-configmap.yaml", "is not hardware.json")

    gpus = gpus_of_node_list(load("nodes-mixed.json"), types_by_alias(hardware))
    if gpus != gpus_of_short_form(load("cluster-mixed.json")):
        complain("cluster-mixed.json", "is not the cluster of nodes-mixed.json")

    profiled = {gpu_type["name"] for gpu_type in load("opt-350-profile.yaml")["spec"]["gpuTypes"]}
    for gpu_type in sorted({gpu_type for gpu_type, _ in gpus.values()} - profiled):
        complain("opt-350-profile.yaml", f"lacks {gpu_type}, which nodes-mixed.json has")
    for name in ("opt-350-job.yaml", "opt-350-small-job.yaml"):
        job = load(name)
        if job["spec"]["model"]["profileRef"]["name"] != load("opt-350-profile.yaml")["metadata"]["name"]:
            complain(name, "refers to another profile")
        for gpu_type in job["spec"]["resources"].get("gpuTypes", []):
            if gpu_type["name"] not in profiled:
                complain(name, f"asks for {gpu_type['name']}, which the profile lacks")

    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
