#!/usr/bin/env python3
"""Whether what is proposed without options fits, and how near predicted peaks are: memory.py [-v]

1. For each model of PROFILES and each cluster of tests/data/clusters: every replica of the plan
   that `hetplan plan` proposes fits by price.py at 24 bytes a parameter.
2. Of each measured run of tests/data/sailor/measured: what `hetplan cost` predicts for the fullest
   GPU is between LEAST and MOST of what was measured there.

-v prints a line for each. Exit 1 if something does not hold.
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import price

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAILOR = ROOT / "tests/data/sailor"
PROFILES = {"opt-350": 1024, "gpt-neo-2.7": 1024}  # and their global batch
LEAST, MOST = 0.99, 1.07
GIB = 1 << 30


def hetplan(*arguments):
    program = os.environ.get("HETPLAN", str(ROOT / "build/hetplan"))
    run = subprocess.run([program, *map(str, arguments)], cwd=ROOT, capture_output=True,
                         text=True, check=False)
    if not run.stdout.startswith("{"):
        sys.exit(f"memory.py: hetplan {' '.join(map(str, arguments))}: {run.stderr}")
    return json.loads(run.stdout)


def proposed(name, batch, cluster, profile):
    plan = hetplan("plan", "--profile", SAILOR / name, "--cluster", cluster,
                   "--global-batch-size", batch, "--effort", 10000)
    nodes = price.read_cluster(json.loads(cluster.read_text()))
    answer = price.judge(plan, profile, nodes)
    if "-v" in sys.argv:
        print(f"{name:12} {cluster.name:40} {plan['predicted']['iterationSeconds']:.4g} s")
    return answer["violations"] or answer["memory"][24]


def proposals():
    wrong = []
    for name, batch in PROFILES.items():
        profile = price.Profile(SAILOR / name)
        for cluster in sorted((ROOT / "tests/data/clusters").glob("*.json")):
            wrong += [f"{name} on {cluster.name}: {sentence}"
                      for sentence in proposed(name, batch, cluster, profile)]
    return wrong


def plan_of(row):
    """The plan that ran: a node of four GPUs a replica."""
    replicas, stages, node, first = int(row["replicas"]), [], 0, 0
    for count in map(int, row["layers_per_stage"].split("/")):
        stages.append({"firstLayer": first, "layerCount": count, "replicas": [
            {"gpuType": "GH200", "node": f"n-{node + r}", "gpus": [0, 1, 2, 3],
             "microBatchSize": int(row["microbatch"])} for r in range(replicas)]})
        node, first = node + replicas, first + count
    batch = int(row["global_batch"])
    microbatches = batch // (replicas * int(row["microbatch"]))
    plan = {"globalBatchSize": batch, "layerCount": first,
            "pipelines": [{"microBatches": microbatches, "stages": stages}]}
    cluster = {"nodes": [{"name": f"n-{n}", "type": "GH200", "gpus": 4} for n in range(node)]}
    return plan, cluster


def predicted(row, folder):
    files = [pathlib.Path(folder, name) for name in ("plan.json", "cluster.json")]
    for path, content in zip(files, plan_of(row)):
        path.write_text(json.dumps(content))
    answer = hetplan("cost", "--profile", SAILOR / "measured", "--cluster", files[1], files[0])
    return max(peak["bytes"] for peak in answer["peakMemoryBytes"])


def measured():
    wrong = []
    with open(SAILOR / "measured/gh200_opt350.csv", encoding="ascii") as text, \
            tempfile.TemporaryDirectory() as folder:
        for row in csv.DictReader(text):
            peak, ours = int(row["peak_bytes"]), predicted(row, folder)
            line = (f"{row['stages']} stages, {row['replicas']} replicas of {row['microbatch']} "
                    f"samples: {ours / GIB:.2f} GiB predicted, {peak / GIB:.2f} measured")
            if "-v" in sys.argv:
                print(f"{line}: {100 * (ours / peak - 1):+.1f} %")
            if not LEAST <= ours / peak <= MOST:
                wrong.append(line)
    return wrong


def main():
    wrong = proposals() + measured()
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
