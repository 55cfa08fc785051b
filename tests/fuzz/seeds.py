"""Seed inputs for the fuzz targets, made of the files that the tests and documents have.

    python3 tests/fuzz/seeds.py FOLDER TARGET...
"""
import base64
import copy
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile

import yaml


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def load(path):
    return yaml.safe_load(read(path)) if path.endswith(".yaml") else json.loads(read(path))


def documents(path):
    return [document for document in yaml.safe_load_all(read(path)) if document]


def plans():
    for path in sorted(glob.glob("tests/golden/*/*/plan.json")):
        text = read(path)
        if text.startswith("{") and len(text) < 20000:
            yield json.loads(text)


def model_profile(types=2, most_size=2):
    """The example's profile, of few GPU types and sizes: small inputs are mutated faster."""
    profile = copy.deepcopy(load("docs/examples/opt-350-profile.yaml"))
    profile["metadata"]["namespace"] = "ns"
    spec = profile["spec"]
    spec["gpuTypes"] = spec["gpuTypes"][:types]
    for one in spec["gpuTypes"]:
        one["measurements"] = [
            m for m in one["measurements"]
            if m["microBatchSize"] <= most_size and m["tensorParallel"] <= 2]
    return profile


def metis_profile(sizes=2):
    files = {}
    for path in sorted(glob.glob("tests/data/sailor/opt-350/*.json")):
        name = os.path.basename(path)
        if int(name.split("_bs")[1].split(".")[0]) <= sizes and "_tp4_" not in name:
            files[name] = load(path)
    return {"files": files}


def sailor_profile(layers=3):
    """A few layers at two sizes; degree 1 only."""
    times, info = {}, load("tests/data/sailor/llm_info.json")["OPT-350"]["1"]
    for path in sorted(glob.glob("tests/data/sailor/layer_times/opt-350/*.json")):
        name = os.path.basename(path).split(".")[0]
        times[name] = {size: {"1": {str(l): degrees["1"][str(l)] for l in range(layers)}}
                       for size, degrees in load(path).items() if size in ("1", "2")}
    return {"layerTimes": times, "llmInfo": {"m": {"1": {str(l): info[str(l)] for l in range(layers)}}},
            "model": "m"}


def nodes():
    items = load("docs/examples/nodes-mixed.json")["items"]
    for item in items:
        labels = item["metadata"]["labels"]
        item["metadata"]["labels"] = {k: v for k, v in labels.items()
                                      if "gpu" in k or "instance-type" in k}
        item["status"].pop("images", None)
        item["status"].pop("nodeInfo", None)
    return items


def clusters():
    for path in sorted(glob.glob("tests/data/clusters/*.json")) + ["docs/examples/cluster-mixed.json"]:
        yield load(path)


def pod(name, node, gpus, phase="Running"):
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "7"},
        "spec": {"nodeName": node, "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": str(gpus)}}}],
            "initContainers": [{"name": "i", "restartPolicy": "Always",
                                "resources": {"limits": {"memory": "1Gi"}}}],
            "overhead": {"cpu": "100m"}},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}}


def jobs():
    for path in sorted(glob.glob("docs/examples/*-job.yaml") + glob.glob("tests/e2e/crd-cases/*.yaml")):
        for document in documents(path):
            if document.get("kind") == "HeteroTrainingJob":
                yield document


# ---- one function a target; each gives texts, or what becomes JSON ----

def seeds_json():
    yield from plans()
    yield [1, -2, 3.25, 1e300, 1e-7, 2**53, "\u00e9\u20ac\n\u007f\"\\", None, True, False, {"": []}]
    yield '{"a":[1.50,0.1e1,-0,-0.0],"b":"\\ud83d\\ude00\\u0001"}'


def seeds_yaml():
    for path in sorted(glob.glob("tests/e2e/crd-cases/*.yaml"))[::6] + [
            "docs/examples/opt-350-job.yaml", "docs/examples/hardware-configmap.yaml"]:
        yield read(path)
    yield "a: &x {b: [1, 0o17, 0x1F, 1_000, .5, ~, yes]}\nc: *x\nd:\n  <<: *x\n  e: |\n    text\n"
    yield "---\n- !!str 1\n- 'a''b'\n- \"\\x41\\u20ac\"\n--- >-\n folded\n text\n...\n"


def seeds_quantity():
    return ["4", "500m", "16Gi", "1e3", "0.5", "-1", "+1.5Ki", "1E", "1Ei", "100u", "3n", ".5k",
            "9223372036854775807", "12E-3", "1e-9"]


def seeds_timestamp():
    return ["2026-01-01T00:00:00Z", "2026-02-28T23:59:59.999999Z", "2024-02-29T12:30:00+05:30",
            "1969-12-31T23:59:59.5-00:01", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]


def seeds_event():
    return ["60s delete node/a", "1m30s restore node/a", "0s gpus node/a 4", "2h apply job.yaml",
            "1500ms fail pod/p-1-0 137", "5s delete job/ns/j", "5s succeed job/j",
            "1s cordon node/a", "1s uncordon node/a", "1s notready node/a", "1s ready node/a"]


def seeds_network():
    files = [load(path) for path in sorted(glob.glob("tests/data/sailor/network/*.json"))]
    for file in files:
        yield dict(itertools.islice(file.items(), 3))
    yield [{"X": {"2": [[0, 0, 1], 1e9]}},
           {"z": {"X": {"1": {"z": {"X": {"1": [[-0.1, 1, 2], 4e9]}}}}}}]


def seeds_node_list():
    items = nodes()
    for few in (items[:3], items[3:6], items[6:]):
        yield {"nodes": {"kind": "NodeList", "items": few},
               "pods": {"kind": "PodList", "items": [pod("p", few[0]["metadata"]["name"], 1)]}}


def seeds_profile():
    yield model_profile(1, 1)
    yield model_profile()
    yield metis_profile(1)
    yield metis_profile() | {
        "precision": "bf16", "optimizer": "sgd", "sharedEmbedding": True,
        "layerTimes": {"A100": {"1": {"1": {str(l): [0.001, 0.002, 0.0001] for l in range(26)}}}}}
    yield sailor_profile()
    yield sailor_profile(1) | {"precision": "bf16", "optimizer": "sgd", "sharedEmbedding": True}
    for path in sorted(glob.glob("tests/e2e/crd-cases/*profile*.yaml")):
        yield from documents(path)


def seeds_megatron_log():
    arguments = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "seq_length": 32,
                 "padded_vocab_size": 128, "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 2,
                 "data_parallel_size": 1, "micro_batch_size": 1, "global_batch_size": 8, "bf16": True,
                 "optimizer": "adam", "pipeline_model_parallel_layout": "Et*2|t*2L"}
    printed = "".join(f"  {name} ........ {value}\n" for name, value in arguments.items())
    yield printed + "times across ranks (ms):\n" + "".join(
        f"  {timer}:\n     rank  0: 10.50\n     rank  1: 11.25\n"
        for timer in ("forward-compute", "backward-compute", "optimizer"))
    one_stage = printed.replace("parallel_size ........ 2", "parallel_size ........ 1").replace("Et*2|t*2L", "None")
    yield one_stage + ("(min, max) time across ranks (ms):\n    forward-compute .....: (10.25, 10.31)\n"
                       "    backward-compute ....: (20.25, 20.31)\n") * 3
    yield one_stage + "time (ms) | forward-compute: 10.31 | backward-compute: 20.5 | optimizer: 3.5\n"


def seeds_model_config():
    cluster = load("docs/examples/cluster-mixed.json")
    for path in sorted(glob.glob("tests/data/models/*.json")):
        profile = {"config": load(path), "sequenceLength": 512, "largestMicroBatch": 4}
        yield {"cluster": cluster, "profile": profile}
        yield {"cluster": cluster, "profile": profile | {
            "precision": "fp16", "optimizer": "sgd", "attention": "eager",
            "calibration": [{"gpuType": "A100", "seconds": 0.5, "microBatchSize": 2,
                             "tensorParallel": 2, "blocks": 1}]}}
    yield {"cluster": cluster, "profile": {"sequenceLength": 64, "config": {"text_config": {
        "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
        "first_k_dense_replace": 1, "hidden_activation": "geglu", "attn_pdrop": 0.1}}}}


def seeds_plan():
    return plans()


def seeds_question():
    job = {"globalBatchSize": 32, "microBatchSizes": [1, 2], "memoryHeadroomPercent": 5,
           "maxGPUs": 8, "gpuTypes": [{"name": "A100", "maxGPUs": 4}, {"name": "V100"}],
           "constraints": {"dataParallel": {"minReplicas": 1, "maxReplicas": 8}, "tensorParallel": {"allowedDegrees": [1, 2]},
                           "pipelineParallel": {"maxStages": 4}}, "seed": 3}
    algorithms = itertools.cycle(["auto", "metis", "megatron"])
    for cluster in clusters():
        yield {"cluster": cluster, "profile": metis_profile(1), "hardware": None,
               "job": {"globalBatchSize": 64, "algorithm": next(algorithms)}}
        yield {"cluster": cluster, "profile": model_profile(), "job": job,
               "hardware": load("docs/examples/hardware.json")}
    yield {"cluster": load("docs/examples/cluster-mixed.json"), "job": job | {"extrapolate": 4, "precision": "fp16"},
           "profile": {"config": load("tests/data/models/opt-350.json"), "sequenceLength": 128, "largestMicroBatch": 2}}
    for plan in plans():
        cluster = load("tests/data/clusters/a100x8_v100x8.json")
        yield {"cluster": cluster, "profile": metis_profile(), "job": job | {"from": plan}}
        break
    for node_list in seeds_node_list():
        yield {"cluster": node_list["nodes"], "pods": node_list["pods"], "profile": model_profile(),
               "job": {"globalBatchSize": 16, "algorithm": "metis", "metisVariance": 1,
                       "metisPermute": 3, "metisSizes": "any", "optimizer": "adam"}}


def seeds_kube():
    items = [pod("a", "n", 1), pod("b", "n", 2, "Failed")]
    metadata = {"resourceVersion": "12", "continue": "abc"}
    yield {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        yield {"type": kind, "object": items[0]}
    yield {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "13"}}}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
              "message": "too old", "details": {"retryAfterSeconds": 1, "causes": [
                  {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}}
    yield {"type": "ERROR", "object": status}
    yield status


def seeds_kubeconfig():
    pem = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", "-", "-subj", "/CN=fuzz"], check=True, capture_output=True).stdout
    key = pem[:pem.index(b"-----BEGIN CERT")]
    certificate = pem[pem.index(b"-----BEGIN CERT"):]
    data, key_data = (base64.b64encode(part).decode() for part in (certificate, key))
    for user in ({"token": "secret"}, {"tokenFile": "/dev/null"},
                 {"client-certificate-data": data, "client-key-data": key_data},
                 {"exec": {"command": "false"}}, {"username": "a", "password": "b"}):
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {
                "server": "https://127.0.0.1:6443", "certificate-authority-data": data,
                "tls-server-name": "kubernetes"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "ns"}}]}
        yield config
        yield yaml.safe_dump(config)


def seeds_job_spec():
    for job in jobs():
        job["metadata"] |= {"namespace": "ns", "uid": "u", "generation": 1,
                            "creationTimestamp": "2026-01-01T00:00:00Z"}
        yield job


def seeds_webhook():
    for index, job in enumerate(jobs()):
        job["metadata"] |= {"namespace": "ns", "uid": "u", "generation": 1}
        request = {"uid": "r", "namespace": "ns", "name": job["metadata"]["name"], "object": job,
                   "operation": "UPDATE" if index % 2 else "CREATE",
                   "resource": {"group": "heterotrain.io", "version": "v1alpha1",
                                "resource": "heterotrainingjobs"},
                   "userInfo": {"username": "ann", "groups": ["g"], "extra": {"scopes": ["x"]}}}
        if index % 2:
            request["oldObject"] = job | {"spec": (job.get("spec") or {}) | {"suspend": index % 4 == 1}}
        yield {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
               "status": {"allowed": index % 3 > 0}}


def pod_states(job, indices, **status):
    return [{"kind": "Pod", "metadata": {"name": f"{job}-1-{i}", "namespace": "ns"}, "status": status}
            for i in indices]


def happenings(job, node):
    """What may befall a running job, as lists for "then"."""
    ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
    runs = pod_states(job, range(4), phase="Running", conditions=ready)
    ended = {"name": "trainer", "state": {"terminated": {"exitCode": 7, "finishedAt": "2026-01-01T00:01:00Z"}}}
    machine = {"kind": "Node", "metadata": {"name": node}}
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}
    start = [[], [], runs]
    yield start + [pod_states(job, range(4), phase="Succeeded", containerStatuses=[
        {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}])]
    yield start + [pod_states(job, [1], phase="Failed", containerStatuses=[ended])]
    yield start + [pod_states(job, [0], phase="Failed", reason="Evicted", conditions=[
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}])]
    yield start + [[machine | {"gone": True}]]
    yield start + [[machine | {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}],
                   [machine | {"spec": {"taints": [taint]}}]]
    yield start + [[{"kind": "HeteroTrainingJob", "metadata": {"name": job, "namespace": "ns", "generation": 2},
                     "spec": {"training": {"globalBatchSize": 128}}}]]
    yield start + [[{"kind": "ConfigMap", "metadata": {"name": f"{job}-plan-1", "namespace": "ns"}, "gone": True}],
                   [item | {"gone": True} for item in pod_states(job, [0, 2])]]


def seeds_reconcile():
    # Plans name types as the controller does.
    plan = json.loads(read("tests/golden/metis/16-gpus/plan.json").replace('"A100"', '"A100-SXM4-40GB"')
                      .replace('"V100"', '"V100-SXM2-16GB"'))
    machines = [
        {"apiVersion": "v1", "kind": "Node", "spec": {},
         "metadata": {"name": entry["name"], "uid": entry["name"], "resourceVersion": "3",
                      "labels": {"nvidia.com/gpu.product": entry["gpu_type"]}},
         "status": {"allocatable": {"nvidia.com/gpu": str(entry["gpus"]), "cpu": "64", "memory": "1Ti"},
                    "conditions": [{"type": "Ready", "status": "True"}]}}
        for entry in plan_nodes(plan)]
    profile = model_profile(1, 1)
    profile["metadata"] |= {"uid": "p", "resourceVersion": "4", "generation": 1}
    worlds = []
    for job in list(jobs())[::5]:
        job["metadata"] |= {"namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "5",
                            "creationTimestamp": "2026-01-01T00:00:00Z"}
        job["spec"].setdefault("training", {})["globalBatchSize"] = plan["globalBatchSize"]
        job["spec"].setdefault("model", {})["profileRef"] = {"name": profile["metadata"]["name"]}
        worlds.append({"objects": machines + [profile, job], "plan": plan})
    yield from worlds
    for then in happenings("opt-350", machines[0]["metadata"]["name"]):
        yield worlds[0] | {"then": then}
    yield {"objects": machines[:1] + [profile, job, pod("x", machines[0]["metadata"]["name"], 2)]}


def seeds_measurement():
    """For the model and the GPU type that the target asks for."""
    groups = [{"name": name, "count": count, "parameterBytes": 1000, "activationOutputBytes": 10}
              for name, count in (("embedding", 1), ("block", 4), ("head", 1))]
    result = {"v": 1, "gpuType": "Tesla-T4", "precision": "BF16", "optimizer": "Adam", "sequenceLength": 128,
              "groups": groups, "m": [[1, 1, [[1, 2, 3]] * 3]]}
    yield result
    yield result | {"memoryMiB": 16384, "optimizerMicroseconds": [[1, 5], [2, 3]],
                    "m": [[tp, size, [[size, 2 * size, 9, 4]] * 3] for tp in (1, 2) for size in (1, 2, 4)]}


def seeds_record():
    """Decisions of random lives: the shortest record of each sequence of actions."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "record")
        subprocess.run(["build/sim", "--record", path, "1-10"], check=True, stdout=subprocess.DEVNULL)
        shortest = {}
        for line in sorted(read(path).splitlines(), key=len):
            actions = json.loads(line)["decision"].get("actions", [])
            shortest.setdefault(tuple(action.get("kind") for action in actions), line)
    return list(shortest.values())[:50]


def plan_nodes(plan):
    """The nodes that a plan uses, with the GPUs it takes of each."""
    used = {}
    for pipeline in plan["pipelines"]:
        for stage in pipeline["stages"]:
            for replica in stage["replicas"]:
                node = used.setdefault(replica["node"], {"gpu_type": replica["gpuType"], "gpus": 0})
                node["gpus"] += len(replica["gpus"])
    return [{"name": name} | node for name, node in used.items()]


def main(folder, targets):
    for target in targets:
        path = os.path.join(folder, target)
        os.makedirs(path, exist_ok=True)
        for i, seed in enumerate(globals()["seeds_" + target]()):
            text = seed if isinstance(seed, str) else json.dumps(seed, separators=(",", ":"), default=str)
            with open(os.path.join(path, f"{i:03}"), "w", encoding="utf-8") as file:
                file.write(text)


main(sys.argv[1], sys.argv[2:])
