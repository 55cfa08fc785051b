"""heterotrain.profile.document and `merge`: ModelProfiles that the API server and hetplan take."""
import copy
import json
import pathlib
import subprocess
import tempfile
import unittest
from dataclasses import replace

import crd_schema
from heterotrain.profile import document, result
from profile_samples import ENVIRONMENT, HETPLAN, MODEL, result as sample, run_profile

CLUSTER = {
    "nodes": [
        {"name": "t4", "type": "T4", "gpus": 4, "memory_gb": 80},
        {"name": "v100", "type": "V100-SXM2-16GB", "gpus": 4, "memory_gb": 80},
    ]
}


def two_types():
    return document.merge(document.make(sample("T4"), "toy"), sample("V100-SXM2-16GB"))


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def merge(self, *arguments):
        return run_profile("merge", *arguments)


class Making(Folder):
    def test_what_is_made_has_the_structure_of_the_crd(self):
        for profile in (document.make(sample(), "toy", "research"), two_types()):
            self.assertEqual(
                list(crd_schema.complaints(crd_schema.load("modelprofiles"), profile)), []
            )

    def test_the_check_of_the_structure_finds_what_is_wrong(self):
        broken = two_types()
        broken["spec"]["model"]["precision"] = "FP64"
        broken["spec"]["gpuTypes"][0]["measurements"][0]["activationBytes"] = -1
        broken["spec"]["layerGroups"][0]["parameterByte"] = 1
        self.assertEqual(
            len(list(crd_schema.complaints(crd_schema.load("modelprofiles"), broken))), 3
        )

    def test_yaml_and_json_say_the_same(self):
        import yaml

        profile = two_types()
        profile["metadata"]["annotations"] = {
            "a/b": 'yes: no, "1"',
            "empty": "",
            "n": "null",
        }
        self.assertEqual(yaml.safe_load(document.to_yaml(profile)), profile)
        self.assertEqual(document.read(document.to_yaml(profile)), profile)
        self.assertEqual(document.read(json.dumps(profile)), profile)

    def test_hetplan_plans_with_both_types(self):
        profile = self.put("toy.yaml", document.to_yaml(two_types()))
        cluster = self.put("cluster.json", json.dumps(CLUSTER))
        planned = subprocess.run(
            [
                HETPLAN,
                "plan",
                "--profile",
                profile,
                "--cluster",
                cluster,
                "--global-batch-size",
                "16",
                "--precision",
                "bf16",
                "--algorithm",
                "megatron",
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("V100-SXM2-16GB", planned.stdout)
        self.assertIn('"gpuType":"T4"', planned.stdout)


class Merging(Folder):
    def test_a_new_type_stands_beside_the_old_one(self):
        names = [entry["name"] for entry in two_types()["spec"]["gpuTypes"]]
        self.assertEqual(names, ["T4", "V100-SXM2-16GB"])

    def test_a_type_measured_again_replaces_its_entry_but_not_its_price(self):
        profile = two_types()
        profile["spec"]["gpuTypes"][0]["costPerHourMilliUSD"] = 350
        again = document.merge(profile, sample("T4", degrees=(1,)))
        entry = again["spec"]["gpuTypes"][0]
        self.assertEqual({m["tensorParallel"] for m in entry["measurements"]}, {1})
        self.assertEqual(entry["costPerHourMilliUSD"], 350)
        self.assertEqual(len(again["spec"]["gpuTypes"]), 2)

    def test_bytes_of_ranks_of_other_degrees_are_united(self):
        profile = document.merge(
            document.make(sample("T4", degrees=(1, 2)), "toy"),
            sample("V100", degrees=(1, 4)),
        )
        ranks = profile["spec"]["layerGroups"][1]["parameterBytesPerRank"]
        self.assertEqual([rank["tensorParallel"] for rank in ranks], [2, 4])

    def test_another_model_is_refused(self):
        profile = document.make(sample(), "toy")
        groups = sample().groups
        others = [
            sample(model={**MODEL, "sequenceLength": 4096}),
            sample(model={**MODEL, "embeddingWeights": "Shared"}),
            sample(groups=(replace(groups[0], parameter_bytes=1), *groups[1:])),
            sample(groups=(replace(groups[0], rank_bytes={2: 7}), *groups[1:])),
            sample(groups=(replace(groups[0], name="first"), *groups[1:])),
        ]
        for other in others:
            with self.assertRaises(ValueError):
                document.merge(profile, other)

    def test_the_name_may_differ(self):
        document.merge(
            document.make(sample(), "toy"), sample(model={**MODEL, "name": "mine"})
        )

    def test_what_the_server_wrote_is_taken_off_and_the_rest_kept(self):
        live = document.make(sample(), "toy", "research")
        live["metadata"].update(
            uid="u",
            resourceVersion="7",
            generation=2,
            managedFields=[],
            creationTimestamp="2026-01-01T00:00:00Z",
            labels={"a": "b"},
            annotations={document.LAST_APPLIED: "{}"},
        )
        live["status"] = {"gpuTypes": ["T4"]}
        before = copy.deepcopy(live)
        merged = document.merge(live, sample("V100"))
        self.assertEqual(
            merged["metadata"],
            {"name": "toy", "namespace": "research", "labels": {"a": "b"}},
        )
        self.assertNotIn("status", merged)
        self.assertEqual(live, before)

    def test_only_profiles_with_their_own_numbers_are_merged_into(self):
        profile = document.make(sample(), "toy")
        elsewhere = copy.deepcopy(profile)
        elsewhere["spec"]["configMapRef"] = {"name": "numbers"}
        for into in (elsewhere, {**profile, "kind": "ConfigMap"}):
            with self.assertRaises(ValueError):
                document.merge(into, sample("V100"))


class Command(Folder):
    def test_logs_of_two_jobs_become_one_profile(self):
        logs = [
            self.put(f"{name}.log", f"tp 1, ...\n{result.encode(sample(name))}\n")
            for name in ("T4", "V100")
        ]
        merged = self.merge("--name", "toy", "--namespace", "research", "--json", *logs)
        self.assertEqual(merged.returncode, 0, merged.stderr)
        profile = json.loads(merged.stdout)
        self.assertEqual(profile["metadata"], {"name": "toy", "namespace": "research"})
        self.assertEqual([t["name"] for t in profile["spec"]["gpuTypes"]], ["T4", "V100"])

    def test_a_termination_message_is_merged_into_a_profile(self):
        profile = self.put("toy.yaml", document.to_yaml(document.make(sample(), "toy")))
        message = self.put("message", result.encode_compact(sample("V100")))
        merged = self.merge("--into", profile, message)
        self.assertEqual(
            document.read(merged.stdout),
            document.merge(document.make(sample(), "toy"), sample("V100")),
        )

    def test_a_cluster_profile_is_one_if_asked_for(self):
        log = self.put("log", result.encode(sample()))
        self.assertIn(
            "kind: ClusterModelProfile",
            self.merge("--name", "toy", "--cluster", log).stdout,
        )

    def test_what_is_no_result_is_refused_in_words(self):
        cut_off = self.put("log", result.encode(sample())[:1000])
        failed = self.put("failed", result.encode_failure("T4", "no GPU"))
        for path, words in (
            (cut_off, "was it cut off?"),
            (failed, "profiling of T4 failed: no GPU"),
            ("/nonexistent", "No such file"),
        ):
            refused = self.merge("--name", "toy", path)
            self.assertEqual((refused.returncode, refused.stdout), (1, ""))
            self.assertIn(words, refused.stderr)
            self.assertNotIn("Traceback", refused.stderr)

    def test_a_name_or_a_profile_must_be_given(self):
        log = self.put("log", result.encode(sample()))
        self.assertIn("--name", self.merge(log).stderr)

    def test_merging_needs_no_torch(self):
        log = self.put("log", result.encode(sample()))
        (self.folder / "torch.py").write_text(
            "raise ImportError('there is no torch here')"
        )
        merged = run_profile(
            "merge",
            "--name",
            "toy",
            log,
            PYTHONPATH=f"{self.folder}:{ENVIRONMENT['PYTHONPATH']}",
        )
        self.assertEqual(merged.returncode, 0, merged.stderr)
