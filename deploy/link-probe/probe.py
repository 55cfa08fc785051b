#!/usr/bin/env python3
"""Measures the links between nodes and inside them, for the hardware settings of heterotrain.

Started by torchrun on every node, one process a GPU (nccl), or without GPUs (gloo). Rank 0 prints
one JSON document, the ConfigMap that --hardware-configmap names; what else is said goes to
standard error. Of each GPU type, the slowest of its nodes counts:

    intraGBs   what a GPU gets in a ring all-reduce of the GPUs of its node: 2 (n-1)/n bytes
               are sent for each byte of the message
    interGBs   what all GPUs of a node together send to the next node, while it sends to its next

A rate that cannot be measured (one GPU a node, one node) is left out.

    PROBE_NODE    name of the node; default: the host's
    PROBE_TYPE    GPU type; default: what the driver calls it
    PROBE_MIB     MiB of a message; default 256
    PROBE_ROUNDS  how often it is sent, after one round that does not count; default 5
    PROBE_NAME    name of the ConfigMap; default heterotrain-hardware
"""
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist


def device_of(backend):
    if backend != "nccl":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def type_name(device):
    name = os.environ.get("PROBE_TYPE")
    if not name and device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    return (name or "CPU").replace(" ", "-")


def seconds(work, device, rounds):
    """The slowest rank's mean of `rounds`; all ranks come together before each."""
    taken = []
    for _ in range(rounds + 1):
        dist.barrier()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        begin = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - begin)
    return sum(taken[1:]) / rounds


def inside(nodes, rank, message, device, rounds):
    """GB/s of this rank in an all-reduce of its node; None if it is alone there."""
    groups = [dist.new_group(ranks) for ranks in nodes]  # every rank makes every group
    own = next(i for i, ranks in enumerate(nodes) if rank in ranks)
    count = len(nodes[own])
    taken = seconds(lambda: dist.all_reduce(message, group=groups[own]) if count > 1 else None,
                    device, rounds)
    if count < 2:
        return None
    return 2 * (count - 1) / count * message.numel() * message.element_size() / taken / 1e9


def between(nodes, rank, message, device, rounds):
    """GB/s that this rank sends to the next node; None if there is one node, or the next has
    fewer GPUs and none for this rank."""
    own = next(i for i, ranks in enumerate(nodes) if rank in ranks)
    place = nodes[own].index(rank)
    following, before = nodes[(own + 1) % len(nodes)], nodes[own - 1]
    received = torch.empty_like(message)

    def exchange():
        transfers = []
        if len(nodes) > 1 and place < len(following):
            transfers.append(dist.P2POp(dist.isend, message, following[place]))
        if len(nodes) > 1 and place < len(before):
            transfers.append(dist.P2POp(dist.irecv, received, before[place]))
        for transfer in dist.batch_isend_irecv(transfers) if transfers else ():
            transfer.wait()

    taken = seconds(exchange, device, rounds)
    if len(nodes) < 2 or place >= len(following):
        return None
    return message.numel() * message.element_size() / taken / 1e9


def gpu_types(facts):
    """hardware.json of what the ranks say: of each type, its slowest node."""
    rates = {}
    for node in {fact["node"] for fact in facts}:
        ranks = [fact for fact in facts if fact["node"] == node]
        own = rates.setdefault(ranks[0]["type"], {})
        alone = [fact["inside"] for fact in ranks if fact["inside"] is not None]
        out = [fact["between"] for fact in ranks if fact["between"] is not None]
        if alone:
            own["intraGBs"] = min([*alone, own.get("intraGBs", float("inf"))])
        if out:
            own["interGBs"] = min(sum(out), own.get("interGBs", float("inf")))
    return {"gpuTypes": [{"name": name, **{key: round(rate, 3) for key, rate in own.items()}}
                         for name, own in sorted(rates.items())]}


def config_map(settings):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": os.environ.get("PROBE_NAME", "heterotrain-hardware")},
            "data": {"hardware.json": json.dumps(settings)}}


def main():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    device = device_of(backend)
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    me = {"node": os.environ.get("PROBE_NODE") or socket.gethostname(),
          "type": type_name(device)}
    everybody = [None] * size
    dist.all_gather_object(everybody, me)
    names = sorted({other["node"] for other in everybody})
    nodes = [[r for r in range(size) if everybody[r]["node"] == name] for name in names]
    count = int(os.environ.get("PROBE_MIB", "256")) * (1 << 20) // 4
    message = torch.ones(count, dtype=torch.float32, device=device)
    rounds = int(os.environ.get("PROBE_ROUNDS", "5"))
    me["inside"] = inside(nodes, rank, message, device, rounds)
    me["between"] = between(nodes, rank, message, device, rounds)
    dist.all_gather_object(everybody, me)
    if rank == 0:
        for fact in everybody:
            print(f"link-probe: {fact}", file=sys.stderr)
        print(json.dumps(config_map(gpu_types(everybody))))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
