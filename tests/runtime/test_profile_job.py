"""deploy/profiler/job.yaml, and the commands in docs/training.md."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import yaml

from heterotrain.profile import __main__ as program
from heterotrain.profile import document, result
from profile_samples import ENVIRONMENT, ROOT, result as sample

JOB = yaml.safe_load((ROOT / "deploy/profiler/job.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
# What the level "restricted" of Pod Security asks for (kubernetes.io, Pod Security Standards);
# volumes of these kinds alone, nothing of the host.
VOLUMES = {"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}


class Template(unittest.TestCase):
    def test_the_program_takes_its_arguments(self):
        self.assertEqual(CONTAINER["command"][:3], ["python3", "-m", "heterotrain.profile"])
        environment = {variable["name"]: variable["value"] for variable in CONTAINER["env"]}
        with mock.patch.dict("os.environ", environment):
            options = program._parse(CONTAINER["command"][3:] + CONTAINER["args"])
        self.assertEqual(options.gpu_type, "A100-SXM4-40GB")
        self.assertEqual(options.result, CONTAINER["terminationMessagePath"])
        self.assertEqual((options.device, options.largest_tensor_parallel), ("cuda", None))

    def test_it_reads_and_writes_only_what_is_mounted(self):
        mounts = {mount["mountPath"]: mount["name"] for mount in CONTAINER["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in POD["volumes"]}
        self.assertEqual(set(mounts.values()), set(volumes))
        self.assertIn("--model=/model/config.json", CONTAINER["args"])
        self.assertIn("configMap", volumes[mounts["/model"]])
        self.assertIn("emptyDir", volumes[mounts["/tmp"]])

    def test_it_is_allowed_where_pods_are_restricted(self):
        self.assertTrue(POD["securityContext"]["runAsNonRoot"])
        self.assertEqual(POD["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertFalse(CONTAINER["securityContext"]["allowPrivilegeEscalation"])
        self.assertEqual(CONTAINER["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertEqual([v for v in POD["volumes"] if not VOLUMES & set(v)], [])
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(POD))
        self.assertFalse(POD["automountServiceAccountToken"])


# Instead of a cluster: keeps what is applied in files, and prints what lies there for it.
KUBECTL = """#!/bin/bash
set -eu
case "$1 $2" in
"create configmap") cp "${4#--from-file=}" configmap ;;
"apply -f") cat "${3/#-//dev/stdin}" >>applied; echo --- >>applied ;;
"wait --for=condition=complete") ;;
"logs job/profile-llama-8b-a100-sxm4-40gb") cat answer-logs ;;
"get "*) cat "answer-get-$2" ;;
*) exit 2 ;;
esac
"""
# A quick look at the CPU, where the page measures GPUs; no more is changed.
PYTHON = """#!/bin/bash
case "$*" in
*" measure "*) set -- "$@" --device cpu --rounds 1 --iterations 1 --largest-micro-batch 1 --precision FP32 ;;
esac
exec {python} "$@"
"""
TINY = {"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1,
        "intermediate_size": 16, "vocab_size": 64, "max_position_embeddings": 2048}


def blocks(document, heading):
    """What a section has people type, a block after the other."""
    section = (ROOT / document).read_text().split(f"{heading}\n")[1].split("\n### ")[0]
    return [re.sub(r"^    ", "", block, flags=re.M)
            for block in re.findall(r"((?:^    [^\n]+\n)+)", section, re.M)]


class Documentation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.symlink(ROOT / "deploy", self.folder / "deploy")
        for name, text in (("kubectl", KUBECTL), ("python3", PYTHON.format(python=sys.executable))):
            self.put(name, text).chmod(0o755)

    def put(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_its_commands_do_what_it_says(self):
        a100, v100, h100 = (sample(name) for name in ("A100-SXM4-40GB", "V100", "H100"))
        message = {"status": {"containerStatuses": [{"state": {"terminated": {
            "message": result.encode_compact(a100)}}}]}}
        waiting = {"status": {"containerStatuses": [{"state": {"waiting": {}}}]}}
        self.put("config.json", json.dumps(TINY))
        self.put("v100.log", result.encode(v100) + "\n")
        self.put("h100.log", result.encode(h100) + "\n")
        self.put("answer-logs", result.encode(a100) + "\n")
        self.put("answer-get-modelprofile", json.dumps(document.make(a100, "llama-8b", "research")))
        self.put("answer-get-pods", json.dumps({"items": [waiting, message]}))
        written = []
        for block in blocks("docs/training.md", "### Measure a model on your GPUs"):
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=self.folder, text=True,
                                  env={**ENVIRONMENT, "PATH": f"{self.folder}:{os.environ['PATH']}"},
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, block + done.stdout + done.stderr)
            profile = self.folder / "llama-8b-profile.yaml"
            written.append(yaml.safe_load(profile.read_text()) if profile.exists() else None)
        both = document.merge(document.make(a100, "llama-8b", "research"), v100)
        job, first, second = list(yaml.safe_load_all((self.folder / "applied").read_text()))[:3]
        self.assertEqual(json.loads((self.folder / "configmap").read_text()), TINY)
        self.assertEqual((job, first), (JOB, both))
        self.assertEqual(second, document.merge(document.make(a100, "llama-8b", "research"), h100))
        self.assertEqual(written[3], document.make(a100, "llama-8b"))
        measured = result.find_results((self.folder / "a100.log").read_text())[0]
        self.assertEqual((measured.gpu_type, measured.model["sequenceLength"]), ("A100-SXM4-40GB", 2048))

    def test_the_environment_is_told_of(self):
        source = (ROOT / "deploy/runtime/heterotrain/profile/__main__.py").read_text()
        told = (ROOT / "docs/training.md").read_text()
        for name in sorted(set(re.findall(r"HETPROFILE_\w+", source))):
            self.assertIn(name, told)
