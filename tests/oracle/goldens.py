#!/usr/bin/env python3
"""Compares `hetplan cost` with price.py on the plans of tests/golden: goldens.py [-v]

Of every golden plan with a Metis-format profile and a cluster in the short form: price.py
finds no broken rule, every replica fits at 24 bytes a parameter, the lower bound is not above
either reading, and what hetplan says is not more than TOLERANCE below the low reading or
above the high one. -v prints a line for each. Exit 1 if something does not hold.
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys

import price

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 0.01
# What a plan was searched with and price.py must know too; the other options do not matter.
INPUTS = ("--profile", "--layer-times", "--cluster")


def inputs_of(folder):
    words = shlex.split((folder / "arguments").read_text())
    found = {word: words[i + 1] for i, word in enumerate(words) if word in INPUTS}
    unknown = {"--precision", "--optimizer", "--network", "--shared-embedding"} & set(words)
    return found if not unknown and (ROOT / found.get("--profile", "")).is_dir() else None


def hetplan_cost(plan, inputs):
    program = os.environ.get("HETPLAN", str(ROOT / "build/hetplan"))
    command = [program, "cost", *(word for pair in inputs.items() for word in pair), str(plan)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else {"failed": run.stderr or run.stdout}


def complaints(plan, profile, nodes, cost):
    answer = price.judge(plan, profile, nodes)
    if not answer["valid"]:
        return answer["violations"]
    wrong = answer["memory"][24]
    if "failed" in cost:
        return wrong + [f"hetplan cost: {cost['failed']}"]
    low, high = answer["low"]["iterationSeconds"], answer["high"]["iterationSeconds"]
    ours, bound = cost["iterationSeconds"], plan["predicted"]["lowerBoundSeconds"]
    if not low * (1 - TOLERANCE) <= ours <= high * (1 + TOLERANCE):
        wrong.append(f"hetplan says {ours:.6g} s, price.py {low:.6g} to {high:.6g}")
    if bound > low:
        wrong.append(f"lower bound {bound:.6g} s, price.py {low:.6g}")
    if "-v" in sys.argv:
        print(f"{plan['algorithm']:14} {len(plan['pipelines']):3} pipelines: hetplan {ours:.6g} s, "
              f"price.py {low:.6g} to {high:.6g}")
    return wrong


def main():
    profiles, compared, failed = {}, 0, 0
    for path in sorted(ROOT.glob("tests/golden/*/*/plan.json")):
        inputs = inputs_of(path.parent) if path.parent.parent.name != "render" else None
        if not inputs or not path.read_text().startswith("{"):
            continue
        key = inputs["--profile"], inputs.get("--layer-times")
        if key not in profiles:
            profiles[key] = price.Profile(ROOT / key[0], key[1] and ROOT / key[1])
        plan = json.loads(path.read_text())
        nodes = price.read_cluster(json.loads((ROOT / inputs["--cluster"]).read_text()))
        for sentence in complaints(plan, profiles[key], nodes, hetplan_cost(path, inputs)):
            print(f"{path.relative_to(ROOT)}: {sentence}", file=sys.stderr)
            failed = 1
        compared += 1
    if compared < 10:
        print(f"goldens.py: only {compared} plans to compare", file=sys.stderr)
        failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
