"""deploy/profiler/job.yaml, and the commands in docs/training.md: what they give our program it
takes."""
import re
import unittest
from unittest import mock

import yaml

from heterotrain.profile import __main__ as program
from profile_samples import ROOT

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


def commands_of(document):
    """[(measure or merge, its options)] of what a document has people type."""
    text = (ROOT / document).read_text().replace("\\\n", " ")
    for line in re.findall(r"-m heterotrain\.profile ((?:measure|merge)[^\n|>`]*)", text):
        yield line.split()[0], re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)


class Documentation(unittest.TestCase):
    def test_its_commands_have_the_options_that_they_are_given(self):
        commands = list(commands_of("docs/training.md"))
        self.assertGreater(len(commands), 2)
        for command, options in commands:
            with mock.patch("sys.stdout") as stdout, self.assertRaises(SystemExit):
                program._parse([command, "--help"])
            known = "".join(call.args[0] for call in stdout.write.call_args_list)
            for option in options:
                self.assertRegex(known, rf"{option}\b", command)

    def test_the_environment_is_told_of(self):
        source = (ROOT / "deploy/runtime/heterotrain/profile/__main__.py").read_text()
        told = (ROOT / "docs/training.md").read_text()
        for name in sorted(set(re.findall(r"HETPROFILE_\w+", source))):
            self.assertIn(name, told)
