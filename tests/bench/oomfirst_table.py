#!/usr/bin/env python3
"""Prints a table like Table 1 of the OOM-first paper: oomfirst_table.py [--json] HETPLAN.

For its four settings, with the profiles of synthetic_profile.py: steps as the papers
count them and user CPU of the whole process, of the walks of Metis and of OOM-first under
the paper's rule of memory and under ours, beside the paper's steps; whether both walks end
at the same plan; and the seconds of an iteration of what metis-walk, metis and oomfirst
answer, as hetplan prices them. Plans fit as the papers' do, to the last byte: without
headroom or reserve. "no plan": of what was found nothing fits, or can be built. With --json a
list of rows instead.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

import synthetic_profile

# layers, nodes of 4 GPUs of each type, the paper's steps of Metis and of OOM-first
SETTINGS = [(10, 4, 612, 562), (20, 8, 58078, 41208), (20, 16, 3734, 3482),
            (40, 32, 1714619, 1553492)]
RUNS = 5
NO_PLAN = 1  # the exit status of hetplan
NOTHING = {"search": {"statistics": {"walk": {"best": None, "steps": None}}}}


def write_cluster(nodes, path):
    common = {"gpus": 4, "inter_gb_s": 10, "repeat": nodes}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"nodes": [
            {"type": "V100", "memory_gb": 16, "intra_gb_s": 50, **common},
            {"type": "A100", "memory_gb": 80, "intra_gb_s": 46, **common}]}, file)


def run(command):
    """Standard output and user seconds of one process; no output where there is no plan."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, NO_PLAN):
        sys.exit(f"oomfirst_table: {' '.join(command)} exited with {process.returncode}")
    return json.loads(output) if output else None, usage.ru_utime


def plan(hetplan, folder, algorithm, memory="own", runs=1):
    command = [hetplan, "plan", "--profile", f"{folder}/profile", "--cluster",
               f"{folder}/cluster.json", "--global-batch-size", "128", "--algorithm",
               algorithm, "--memory-model", memory, "--memory-headroom-percent", "0",
               "--state-reserve-bytes", "0", "--statistics", "--output", "json"]
    if algorithm.endswith("-walk"):
        command += ["--metis-variance", "1", "--metis-permute", "128"]
    results = [run(command) for _ in range(runs)]
    return results[0][0], statistics.mean(seconds for _, seconds in results)


def measure(hetplan, layers, nodes, *paper):
    row = {"layers": layers, "gpus": [4 * nodes, 4 * nodes], "paperSteps": paper}
    with tempfile.TemporaryDirectory() as folder:
        synthetic_profile.write(layers, f"{folder}/profile")
        write_cluster(nodes, f"{folder}/cluster.json")
        for memory in ["metis", "own"]:
            best = []
            for algorithm in ["metis-walk", "oomfirst-walk"]:
                answer, seconds = plan(hetplan, folder, algorithm, memory, RUNS)
                walk = (answer or NOTHING)["search"]["statistics"]["walk"]
                best.append(walk["best"])
                row[f"{algorithm} {memory}"] = {"steps": walk["steps"],
                                                "userSeconds": seconds}
            row[f"same best, {memory}"] = None if None in best else best[0] == best[1]
        for algorithm in ["metis-walk", "metis", "oomfirst", "optimal"]:
            answer, seconds = plan(hetplan, folder, algorithm)
            row[algorithm] = {"stepSeconds": answer and answer["predicted"]["iterationSeconds"],
                              "userSeconds": seconds}
    return row


def seconds_in_words(seconds):
    return "no plan" if seconds is None else f"{seconds:.4f}"


def show(rows):
    print(f"{'layers':>6} {'A100+V100':>9} {'memory':>6} | {'steps: paper':>15} "
          f"{'here':>15} | {'user ms':>11} | same best")
    for row in rows:
        for memory in ["metis", "own"]:
            pair = [row[f"{a} {memory}"] for a in ["metis-walk", "oomfirst-walk"]]
            paper = "/".join(map(str, row["paperSteps"])) if memory == "metis" else ""
            steps = "/".join(str(p["steps"] or "no plan") for p in pair)
            same = {True: "yes", False: "no", None: "-"}[row[f"same best, {memory}"]]
            milliseconds = "/".join(f"{p['userSeconds'] * 1e3:.0f}" for p in pair)
            print(f"{row['layers']:6} {'+'.join(map(str, row['gpus'])):>9} {memory:>6} | "
                  f"{paper:>15} {steps:>15} | {milliseconds:>11} | {same}")
    print(f"\n{'layers':>6} {'A100+V100':>9} | seconds an iteration (user s)")
    for row in rows:
        print(f"{row['layers']:6} {'+'.join(map(str, row['gpus'])):>9} | " + ", ".join(
            f"{a} {seconds_in_words(row[a]['stepSeconds'])} ({row[a]['userSeconds']:.2f})"
            for a in ["metis-walk", "metis", "oomfirst", "optimal"]))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--json"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    rows = [measure(arguments[0], *setting) for setting in SETTINGS]
    if "--json" in sys.argv:
        print(json.dumps(rows))
    else:
        show(rows)


main()
