#!/usr/bin/env python3
"""Checks and prices a plan by itself: price.py PLAN --profile DIR --cluster FILE

Written from the definitions of plan, cluster and profile (docs/planner.md), not from the
planner's sources, so that a mistake in one of the two shows up as a difference. PLAN may be
"-". Prints JSON:

    valid, violations   every rule that the plan breaks
    memory              bytes a parameter (16, 20, 24) -> replicas that do not fit with them
    low, high           the parts of an iteration in seconds, in two readings of what
                        the definitions leave open:

              sends of other pipelines        a send and a receive with     rings of layers with
              over the same uplink            the same neighbour            different holders
    low       never at the same time          overlap (full duplex)         overlap on every link
    high      always all at the same time     one after the other           wait for each other's
                                                                            slowest link

Exit status: 0 the plan is valid, 1 it is not, 2 an argument or a file is wrong.

While a layer runs backward, two more micro-batches of the largest layer are there.
Full recomputation keeps the inputs of the layers and one layer's activations, and runs the
forward pass again before the backward pass. Not priced: selective recomputation, levels of
uplinks, measured bandwidth curves; plans and clusters that have them are refused.
"""
import argparse
import collections
import json
import pathlib
import re
import sys

GIB = 1 << 30
MIB = 1 << 20
FRAMEWORK_BYTES = 4 * GIB
PARAMETER_BYTES = 4  # of the profiles: fp32
STATE_BYTES = (16, 20, 24)  # for each parameter, with Adam
# What the backward pass needs while it runs, in micro-batches of the largest layer.
BACKWARD_BATCHES = 2
PROFILED_STATE = 5  # times the parameter bytes, in the memory figures of Metis-format files


class Unsupported(Exception):
    """What this program does not price, or cannot read."""


# ---- profile ----

Measured = collections.namedtuple(
    "Measured", "forward_s backward_s parameter_bytes output_bytes activation_bytes optimizer_s")


class Profile:
    """Layers as measured: seconds by (type, tp, samples), bytes of one rank."""

    def __init__(self, folder, layer_times=None):
        self.measured = {}
        for path in sorted(pathlib.Path(folder).glob("DeviceType.*.json")):
            name = re.fullmatch(r"DeviceType\.(.+)_tp(\d+)_bs(\d+)\.json", path.name)
            if not name:
                raise Unsupported(f"{path}: not a name of a profile file")
            key = name[1], int(name[2]), int(name[3])
            self.measured[key] = self._read(json.loads(path.read_text()), key[2])
        if not self.measured:
            raise Unsupported(f"{folder}: no DeviceType.*.json")
        for gpu_type in {key[0] for key in self.measured} if layer_times else ():
            path = pathlib.Path(layer_times, gpu_type + ".json")
            if path.exists():
                self._read_directions(gpu_type, json.loads(path.read_text()))
        self.layer_count = len(next(iter(self.measured.values())).forward_s)
        self._times = {}

    @staticmethod
    def _read(file, samples):
        seconds = [ms / 1e3 for ms in file["execution_time"]["layer_compute_total_ms"]]
        parameters = file["model"]["parameters"]["parameters_per_layer_bytes"][:len(seconds)]
        outputs = file["model"]["parameters"]["activation_parameters_bytes"]
        memory = file["execution_memory"]["layer_memory_total_mb"]
        return Measured(
            [s / 3 for s in seconds], [s * 2 / 3 for s in seconds], parameters,
            [size / samples for size in outputs],
            [max(0, mb * MIB - PROFILED_STATE * size) / samples
             for mb, size in zip(memory, parameters)],
            file["execution_time"]["optimizer_time_ms"] / 1e3)

    def _read_directions(self, gpu_type, file):
        for (name, tp, samples), old in list(self.measured.items()):
            layers = file.get(str(samples), {}).get(str(tp))
            if name != gpu_type or not layers:
                continue
            times = [layers[str(i)] for i in range(len(layers))]
            count = len(old.forward_s)
            forward = [t[0] for t in times[:count - 1]] + [sum(t[0] for t in times[count - 1:])]
            backward = [t[1] for t in times[:count - 1]] + [sum(t[1] for t in times[count - 1:])]
            self.measured[name, tp, samples] = old._replace(
                forward_s=forward, backward_s=backward)

    def largest(self, gpu_type, tp):
        return max((b for t, d, b in self.measured if (t, d) == (gpu_type, tp)), default=0)

    def layers(self, gpu_type, tp):
        """Any measurement of this degree: sizes do not depend on the samples."""
        return self.measured[gpu_type, tp, self.largest(gpu_type, tp)]

    def times(self, gpu_type, tp, samples):
        """[forward], [backward] of each layer, or None if it was not measured."""
        key = gpu_type, tp, samples
        if key not in self._times:
            self._times[key] = self._sum_of_parts(gpu_type, tp, samples)
        return self._times[key]

    def _sum_of_parts(self, gpu_type, tp, samples):
        key = gpu_type, tp, samples
        if key in self.measured:
            return self.measured[key].forward_s, self.measured[key].backward_s
        if samples < 2 or samples > self.largest(gpu_type, tp):
            return None
        parts = [1 << bit for bit in range(samples.bit_length()) if samples >> bit & 1]
        if len(parts) == 1:
            parts = [samples // 2] * 2
        found = [self.times(gpu_type, tp, part) for part in parts]
        if None in found:
            return None
        return tuple([sum(layer) for layer in zip(*(times[way] for times in found))]
                     for way in (0, 1))


# ---- cluster ----

Node = collections.namedtuple(
    "Node", "gpu_type gpus memory_bytes intra_bytes_s uplink_bytes_s flow_bytes_s latency_s")


def read_cluster(document):
    """{name: Node} of a cluster in the short form that says all numbers itself."""
    if "levels" in document or "network" in document:
        raise Unsupported("levels and networks are not priced")
    nodes, numbers = {}, collections.Counter()
    for entry in document["nodes"]:
        for copy in range(entry.get("repeat", 1)):
            if "name" not in entry:
                stem = entry["type"].lower()
                name = f"{stem}-{numbers[stem]}"
                numbers[stem] += 1
            else:
                name = f"{entry['name']}-{copy}" if "repeat" in entry else entry["name"]
            uplink = entry["inter_gb_s"] * 1e9
            nodes[name] = Node(entry["type"], entry["gpus"], entry["memory_gb"] * GIB,
                               entry["intra_gb_s"] * 1e9, uplink,
                               min(uplink, entry.get("inter_flow_gb_s", 1e30) * 1e9),
                               entry.get("latency_us", 0) / 1e6)
    return nodes


# ---- the rules of a plan ----

def check(plan, profile, nodes):
    """Every rule that the plan breaks, as sentences."""
    wrong = []
    layer_count = plan["layerCount"]
    if layer_count != profile.layer_count:
        wrong.append(f"layerCount {layer_count}, the profile has {profile.layer_count}")
    samples = 0
    used = collections.defaultdict(list)
    for p, pipeline in enumerate(plan["pipelines"]):
        where, next_layer, shares = f"pipeline {p}", 0, set()
        if pipeline["microBatches"] < 1:
            wrong.append(f"{where}: no micro-batches")
        for s, stage in enumerate(pipeline["stages"]):
            if stage["firstLayer"] != next_layer or stage["layerCount"] < 1:
                wrong.append(f"{where} stage {s}: layers from {stage['firstLayer']}, "
                             f"{next_layer} expected")
            next_layer = stage["firstLayer"] + stage["layerCount"]
            shares.add(sum(r["microBatchSize"] for r in stage["replicas"]))
            for r, replica in enumerate(stage["replicas"]):
                wrong += check_replica(f"{where} stage {s} replica {r}", replica, profile, nodes)
                used[replica["node"]] += replica["gpus"]
        if next_layer != layer_count:
            wrong.append(f"{where}: ends at layer {next_layer} of {layer_count}")
        if len(shares) != 1:
            wrong.append(f"{where}: stages take {sorted(shares)} samples")
        samples += pipeline["microBatches"] * max(shares, default=0)
    if samples != plan["globalBatchSize"]:
        wrong.append(f"{samples} samples, the batch has {plan['globalBatchSize']}")
    return wrong + check_gpus(plan, nodes, used)


def check_replica(where, replica, profile, nodes):
    node = nodes.get(replica["node"])
    if not node:
        return [f"{where}: no node {replica['node']}"]
    gpu_type, tp = replica["gpuType"], len(replica["gpus"])
    wrong = []
    if gpu_type != node.gpu_type:
        wrong.append(f"{where}: {gpu_type} on a node of {node.gpu_type}")
    if replica["microBatchSize"] < 1:
        wrong.append(f"{where}: no samples")
    elif tp < 1 or not profile.times(gpu_type, tp, replica["microBatchSize"]):
        wrong.append(f"{where}: {gpu_type} tp {tp} with {replica['microBatchSize']} samples "
                     "was not measured")
    return wrong


def check_gpus(plan, nodes, used):
    wrong = []
    idle = collections.defaultdict(list)
    for entry in plan.get("idle", []):
        idle[entry["node"]] += entry["gpus"]
    for name in sorted(set(used) | set(idle) | set(nodes)):
        if name not in nodes:
            wrong.append(f"no node {name}")
        elif sorted(used[name]) != list(range(len(used[name]))):
            wrong.append(f"{name}: the plan uses GPUs {sorted(used[name])}")
        elif sorted(used[name] + idle[name]) != list(range(nodes[name].gpus)):
            wrong.append(f"{name}: {used[name]} used and {idle[name]} idle "
                         f"of {nodes[name].gpus}")
    return wrong


def replica_memory(profile, pipeline, s, replica, state_bytes):
    stage = pipeline["stages"][s]
    own = slice(stage["firstLayer"], stage["firstLayer"] + stage["layerCount"])
    layers = profile.layers(replica["gpuType"], len(replica["gpus"]))
    in_flight = min(pipeline["microBatches"], len(pipeline["stages"]) - s)
    kept = in_flight * sum(layers.activation_bytes[own])
    if stage.get("recompute") == "full":
        inputs = [0] + layers.output_bytes
        kept = in_flight * sum(inputs[own]) + max(layers.activation_bytes[own])
    passing = BACKWARD_BATCHES * max(layers.activation_bytes[own])
    return (sum(layers.parameter_bytes[own]) / PARAMETER_BYTES * state_bytes
            + (kept + passing) * replica["microBatchSize"] + FRAMEWORK_BYTES)


def out_of_memory(plan, profile, nodes, state_bytes):
    return [f"pipeline {p} stage {s} replica {r}: {bytes_ / GIB:.2f} of "
            f"{nodes[replica['node']].memory_bytes / GIB:.2f} GiB"
            for p, pipeline in enumerate(plan["pipelines"])
            for s, stage in enumerate(pipeline["stages"])
            for r, replica in enumerate(stage["replicas"])
            for bytes_ in [replica_memory(profile, pipeline, s, replica, state_bytes)]
            if bytes_ > nodes[replica["node"]].memory_bytes]


# ---- one iteration ----

def stage_seconds(profile, stage):
    own = slice(stage["firstLayer"], stage["firstLayer"] + stage["layerCount"])
    times = [profile.times(r["gpuType"], len(r["gpus"]), r["microBatchSize"])
             for r in stage["replicas"]]
    again = 1 if stage.get("recompute") == "full" else 0
    return (max(sum(t[0][own]) for t in times),
            max(sum(t[1][own]) + again * sum(t[0][own]) for t in times))


def boundary(profile, pipeline, s):
    """[(sender, receiver, bytes)] of one micro-batch from stage s to the next; both hold the
    samples in the order of their replicas."""
    here, there = pipeline["stages"][s]["replicas"], pipeline["stages"][s + 1]["replicas"]
    last = pipeline["stages"][s]["firstLayer"] + pipeline["stages"][s]["layerCount"] - 1
    flows, begin = [], 0
    for sender in here:
        end, other = begin + sender["microBatchSize"], 0
        for receiver in there:
            shared = min(end, other + receiver["microBatchSize"]) - max(begin, other)
            if shared > 0:
                size = profile.layers(sender["gpuType"], len(sender["gpus"])).output_bytes[last]
                flows.append((sender, receiver, shared * size))
            other += receiver["microBatchSize"]
        begin = end
    return flows


def crossings(flows):
    """Bytes on each uplink: {(node, "out" or "in"): bytes}."""
    load = collections.Counter()
    for sender, receiver, size in flows:
        if sender["node"] != receiver["node"]:
            load[sender["node"], "out"] += size
            load[receiver["node"], "in"] += size
    return load


def send_seconds(flows, nodes, load):
    """Seconds until the slowest flow is done, with `load` on the uplinks."""
    slowest = 0.0
    pairs = collections.Counter()
    for sender, receiver, size in flows:
        a, b = nodes[sender["node"]], nodes[receiver["node"]]
        if sender["node"] == receiver["node"]:
            lanes = min(len(sender["gpus"]), len(receiver["gpus"]))
            slowest = max(slowest, size / lanes / a.intra_bytes_s)
            continue
        latency = max(a.latency_s, b.latency_s)
        pairs[sender["node"], receiver["node"]] += size
        slowest = max(
            slowest,
            load[sender["node"], "out"] / a.uplink_bytes_s + latency,
            load[receiver["node"], "in"] / b.uplink_bytes_s + latency,
            size / min(len(sender["gpus"]), len(receiver["gpus"]))
            / min(a.flow_bytes_s, b.flow_bytes_s) + latency)
    return slowest


def program(s, stage_count, m):
    """What stage s does, as Megatron-LM's one-forward-one-backward orders it: ("F" or "B", i)
    and ("exchange", transfers). A transfer is (way, boundary, i)."""
    first, last = s == 0, s == stage_count - 1
    warm = min(stage_count - s - 1, m)

    def receive_input(i):
        return [] if first else [("act", s - 1, i)]

    def send_output(i):
        return [] if last else [("act", s, i)]

    def receive_gradient(i):
        return [] if last else [("grad", s, i)]

    def send_gradient(i):
        return [] if first else [("grad", s - 1, i)]

    steps = []
    for i in range(warm):
        steps += [("exchange", receive_input(i)), ("F", i), ("exchange", send_output(i))]
    if warm < m:
        steps.append(("exchange", receive_input(warm)))
    for i in range(warm, m):
        back = i - warm
        steps += [("F", i), ("exchange", send_output(i) + receive_gradient(back)), ("B", back)]
        after = receive_input(i + 1) if i + 1 < m else []
        steps.append(("exchange", after + send_gradient(back)))
    for i in range(m - warm, m):
        steps += [("exchange", receive_gradient(i)), ("B", i), ("exchange", send_gradient(i))]
    return [step for step in steps if step[0] != "exchange" or step[1]]


def simulate(forward, backward, act, grad, m, duplex):
    """Seconds of one pipeline. Stages begin a transfer when both are there for it; without
    `duplex` the transfers of an exchange follow each other, activations first."""
    stage_count = len(forward)
    steps = [program(s, stage_count, m) for s in range(stage_count)]
    at, clock = [0] * stage_count, [0.0] * stage_count
    posted, done = {}, {}  # transfer -> {stage: ready}, end
    progress = True
    while progress:
        progress = False
        for s in range(stage_count):
            while at[s] < len(steps[s]):
                kind, what = steps[s][at[s]]
                if kind != "exchange":
                    clock[s] += (forward if kind == "F" else backward)[s]
                else:
                    ready = clock[s]
                    for transfer in what:
                        begins = posted.setdefault(transfer, {})
                        if s not in begins:
                            begins[s] = ready
                            progress = True
                        if transfer not in done and len(begins) == 2:
                            length = (act if transfer[0] == "act" else grad)[transfer[1]]
                            done[transfer] = max(begins.values()) + length
                            progress = True
                        if not duplex:
                            if transfer not in done:
                                break
                            ready = max(ready, done[transfer])
                    if any(transfer not in done for transfer in what):
                        break
                    clock[s] = max([clock[s]] + [done[transfer] for transfer in what])
                at[s] += 1
                progress = True
    assert all(at[s] == len(steps[s]) for s in range(stage_count)), "stages wait for ever"
    return max(clock)


def pipeline_seconds(plan, profile, nodes, high):
    """The slowest pipeline, and each."""
    flows = [[boundary(profile, pipeline, s) for s in range(len(pipeline["stages"]) - 1)]
             for pipeline in plan["pipelines"]]
    everyone = collections.Counter()
    for pipeline in flows:
        for forth in pipeline:
            everyone.update(crossings(forth))
            everyone.update(crossings([(b, a, size) for a, b, size in forth]))
    known, seconds = {}, []
    for pipeline, bounds in zip(plan["pipelines"], flows):
        times = [stage_seconds(profile, stage) for stage in pipeline["stages"]]
        act = [send_seconds(forth, nodes, everyone if high else crossings(forth))
               for forth in bounds]
        backs = [[(b, a, size) for a, b, size in forth] for forth in bounds]
        grad = [send_seconds(back, nodes, everyone if high else crossings(back))
                for back in backs]
        key = (tuple(times), tuple(act), tuple(grad), pipeline["microBatches"])
        if key not in known:
            known[key] = simulate([t[0] for t in times], [t[1] for t in times], act, grad,
                                  pipeline["microBatches"], not high)
        seconds.append(known[key])
    return seconds


def holders_of_layers(plan):
    """{tuple of replicas as (p, s, r): [layers]}: layers that the same replicas hold."""
    groups = collections.defaultdict(list)
    for layer in range(plan["layerCount"]):
        groups[tuple(
            (p, s, r) for p, pipeline in enumerate(plan["pipelines"])
            for s, stage in enumerate(pipeline["stages"])
            if stage["firstLayer"] <= layer < stage["firstLayer"] + stage["layerCount"]
            for r in range(len(stage["replicas"])))].append(layer)
    return groups


def sync_seconds(plan, profile, nodes, high):
    """All-reduce of the gradients: a ring over the holders of a layer, one for each
    tensor-parallel rank. Rings go by node, so that together they cross an uplink once."""
    load, slowest_of = collections.Counter(), []
    for keys, layers in holders_of_layers(plan).items():
        n = len(keys)
        if n < 2:
            continue
        holders = [plan["pipelines"][p]["stages"][s]["replicas"][r] for p, s, r in keys]
        least = min(holders, key=lambda h: len(h["gpus"]))
        rings = len(least["gpus"])
        sizes = profile.layers(least["gpuType"], rings).parameter_bytes
        shard = 2 * (n - 1) / n * sum(sizes[layer] for layer in layers)
        names = {h["node"] for h in holders}
        flow = min(nodes[name].flow_bytes_s for name in names)
        part = {}
        for p, s, r in keys:
            replica = plan["pipelines"][p]["stages"][s]["replicas"][r]
            for gpu in replica["gpus"]:
                part[replica["node"], gpu] = shard / nodes[replica["node"]].intra_bytes_s
        if len(names) > 1:
            part["flow", keys] = shard / flow
        for name in names if len(names) > 1 else ():
            part[name, "uplink"] = shard * rings / nodes[name].uplink_bytes_s
        if high:
            slowest = max(part.values())
            slowest += 2 * (n - 1) * max(nodes[name].latency_s for name in names) \
                if len(names) > 1 else 0
            part = dict.fromkeys(part, slowest)
        load.update(part)
    return max(load.values(), default=0.0)


def step_seconds(plan, profile):
    slowest = 0.0
    for pipeline in plan["pipelines"]:
        for stage in pipeline["stages"]:
            own = slice(stage["firstLayer"], stage["firstLayer"] + stage["layerCount"])
            for replica in stage["replicas"]:
                layers = profile.layers(replica["gpuType"], len(replica["gpus"]))
                slowest = max(slowest, layers.optimizer_s * sum(layers.parameter_bytes[own])
                              / sum(layers.parameter_bytes))
    return slowest


def price(plan, profile, nodes, high):
    if any(stage.get("recompute", "none") not in ("none", "full")
           for pipeline in plan["pipelines"] for stage in pipeline["stages"]):
        raise Unsupported("selective recomputation is not priced")
    parts = {"pipelineSeconds": max(pipeline_seconds(plan, profile, nodes, high)),
             "gradientSyncSeconds": sync_seconds(plan, profile, nodes, high),
             "optimizerSeconds": step_seconds(plan, profile)}
    return {"iterationSeconds": sum(parts.values()), **parts}


def judge(plan, profile, nodes):
    """What this program prints."""
    violations = check(plan, profile, nodes)
    answer = {"valid": not violations, "violations": violations}
    if not violations:
        answer["memory"] = {state: out_of_memory(plan, profile, nodes, state)
                            for state in STATE_BYTES}
        answer["low"] = price(plan, profile, nodes, False)
        answer["high"] = price(plan, profile, nodes, True)
    return answer


def main():
    parser = argparse.ArgumentParser(description="Checks and prices a plan by itself.")
    parser.add_argument("plan", metavar="PLAN")
    parser.add_argument("--profile", required=True, metavar="DIR")
    parser.add_argument("--layer-times", metavar="DIR")
    parser.add_argument("--cluster", required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        text = sys.stdin.read() if options.plan == "-" else pathlib.Path(options.plan).read_text()
        answer = judge(json.loads(text), Profile(options.profile, options.layer_times),
                       read_cluster(json.loads(pathlib.Path(options.cluster).read_text())))
    except (Unsupported, OSError, ValueError, KeyError) as problem:
        print(f"price.py: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 2
    print(json.dumps(answer, indent=2))
    return 0 if answer["valid"] else 1


if __name__ == "__main__":
    sys.exit(main())
