"""deploy/link-probe: two processes of this machine, as two nodes and as one."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

PROBE = pathlib.Path(__file__).resolve().parents[2] / "deploy/link-probe/probe.py"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def probe(nodes, types):
    """data of the ConfigMap that rank 0 prints."""
    port = str(free_port())
    ranks = [subprocess.Popen(
        [sys.executable, str(PROBE)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(nodes)), "LOCAL_RANK": "0",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PROBE_NODE": nodes[rank],
             "PROBE_TYPE": types[rank], "PROBE_MIB": "4", "PROBE_ROUNDS": "2"})
        for rank in range(len(nodes))]
    outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks) and not any(outputs[1:])
    document = json.loads(outputs[0])
    assert (document["kind"], document["metadata"]["name"]) == ("ConfigMap",
                                                                "heterotrain-hardware")
    return json.loads(document["data"]["hardware.json"])


class LinkProbe(unittest.TestCase):
    def test_two_nodes_have_a_rate_between_them_and_none_inside(self):
        first, second = probe(["a", "b"], ["A100-SXM4-40GB", "Tesla V100"])["gpuTypes"]
        self.assertEqual((first["name"], second["name"]), ("A100-SXM4-40GB", "Tesla-V100"))
        self.assertGreater(first["interGBs"], 0.001)
        self.assertGreater(second["interGBs"], 0.001)
        self.assertNotIn("intraGBs", first)

    def test_two_ranks_of_a_node_have_a_rate_inside_and_none_out_of_it(self):
        only, = probe(["a", "a"], ["L4", "L4"])["gpuTypes"]
        self.assertGreater(only["intraGBs"], 0.001)
        self.assertNotIn("interGBs", only)

    def test_settings_are_those_that_hetplan_reads(self):
        settings = probe(["a", "b"], ["L4", "L4"])
        hetplan = PROBE.parents[2] / "build/hetplan"
        root = PROBE.parents[2]
        question = {
            "cluster": {"nodes": [{"type": "L4", "gpus": 1, "repeat": 2}]}, "hardware": settings,
            "profile": {"config": json.loads((root / "tests/data/models/opt-350.json").read_text()),
                        "sequenceLength": 512, "precision": "fp16"},
            "job": {"globalBatchSize": 8}}
        run = subprocess.run([hetplan, "plan", "-"], input=json.dumps(question), text=True,
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("assumedLinks", json.loads(run.stdout)["predicted"])


if __name__ == "__main__":
    unittest.main()
