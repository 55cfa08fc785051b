"""Whole runs of heterotrain.train: whatever the plan, loss and parameters are those of one
process."""

import json
import os
import signal
import socket
import tempfile
import unittest
import urllib.error
import urllib.request
from unittest import mock

import cluster
import models
from heterotrain import hook, watchdog
from random_plan import finish, random_plan, random_plan_of_batch

TOLERANCE = 1e-10
FP64 = ["--dtype", "float64", "--learning-rate", "1e-3"]


def replica(gpu_type, size, tp):
    return {"gpuType": gpu_type, "microBatchSize": size, "tp": tp}


def stage(first, count, *replicas, recompute="none"):
    return {
        "firstLayer": first,
        "layerCount": count,
        "recompute": recompute,
        "replicas": list(replicas),
    }


def six_gpus(optimizer="adam"):
    """Pods of 3, 2 and 1 GPUs: a pipeline with tp 2, another cut elsewhere, replicas of
    uneven sizes, uneven micro-batches."""
    pipelines = [
        {
            "microBatches": 3,
            "stages": [stage(0, 2, replica("A", 3, 2)), stage(2, 4, replica("A", 3, 1))],
        },
        {
            "microBatches": 2,
            "stages": [
                stage(0, 3, replica("B", 2, 1), replica("B", 1, 1), recompute="full"),
                stage(3, 3, replica("C", 3, 1)),
            ],
        },
    ]
    used = {}
    for pipeline in pipelines:
        for each in pipeline["stages"]:
            for item in each["replicas"]:
                node, tp = f"node-{item['gpuType'].lower()}", item.pop("tp")
                start = used.get(node, 0)
                item.update(node=node, gpus=list(range(start, start + tp)))
                used[node] = start + tp
    return finish(pipelines, models.LAYERS, optimizer)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heterotrain-runtime-")
        self.folder = self.temporary.name

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def arguments(self, model, steps, name, *more):
        """Of a run that writes checkpoints and losses as `name`."""
        config = cluster.write_json(self.folder, "config.json", model)
        return [
            *("--model", config, "--steps", str(steps)),
            *(
                "--checkpoint-dir",
                self.path(name),
                "--report",
                self.path(f"{name}.report"),
            ),
            *more,
        ]

    def run_and_check(self, run, plan, arguments):
        outcome = run(plan, arguments, self.folder)
        self.assertEqual(set(outcome.statuses), {0}, outcome.text()[-4000:])
        return outcome

    def assert_equal_runs(self, first, second, tolerance=TOLERANCE):
        largest, where = cluster.difference(self.path(first), self.path(second))
        self.assertLessEqual(largest, tolerance, where)
        pairs = zip(
            cluster.losses(self.path(f"{first}.report")),
            cluster.losses(self.path(f"{second}.report")),
        )
        self.assertLessEqual(max(abs(a - b) for a, b in pairs), tolerance)


class AnyPlan(RunTest):
    def check(self, plan, model, *more, steps=4):
        run = self.arguments(model, steps, "plan", *FP64, *more)
        alone = self.arguments(model, steps, "alone", *FP64, *more)
        self.run_and_check(cluster.forked, plan, run)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")


def _random_case(seed):
    def test(self):
        # Llama's key-value heads are 2: tp 4 lets two ranks share one.
        llama = seed % 2 == 1
        model, degrees = (
            (models.LLAMA, (1, 2, 4)) if llama else (models.GPT2, (1, 2, 3, 4))
        )
        self.check(random_plan(seed, models.LAYERS, 2 + seed % 6, degrees), model)

    return test


for _seed in (4, 5, 11, 15, 16, 23, 27, 29, 33, 40, 41, 45):
    setattr(AnyPlan, f"test_random_plan_{_seed}_equals_one_process", _random_case(_seed))


class Torchrun(RunTest):
    def test_pods_of_3_2_and_1_gpus_equal_one_process_after_20_steps(self):
        plan = six_gpus()
        self.run_and_check(
            cluster.torchrun, plan, self.arguments(models.LLAMA, 20, "plan", *FP64)
        )
        alone = self.arguments(models.LLAMA, 20, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")

    def test_agents_that_are_told_to_go_leave_a_checkpoint(self):
        plan = six_gpus()
        run = self.arguments(models.LLAMA, 10000, "plan", *FP64)
        agents = cluster.Agents(plan, run, self.folder)
        cluster.wait_for_steps(self.path("plan.report"), 3)
        agents.signal(signal.SIGTERM)
        agents.wait()
        step = len(cluster.losses(self.path("plan.report")))
        self.assertEqual(cluster.newest_step(self.path("plan")), step)
        alone = self.arguments(models.LLAMA, step, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")


class Checkpoints(RunTest):
    def test_goes_on_under_other_plans_as_if_nothing_had_happened(self):
        # tp 2 and uneven replicas, then tp 4 (two ranks share a key-value head), then layers
        # that are held with different degrees.
        plans = [
            six_gpus(),
            random_plan_of_batch(15, 15, models.LAYERS, 5, (1, 2, 4)),
            random_plan_of_batch(45, 15, models.LAYERS, 5, (1, 2, 4)),
        ]
        for steps, plan in zip((3, 5, 8), plans):
            outcome = self.run_and_check(
                cluster.forked, plan, self.arguments(models.LLAMA, steps, "plan", *FP64)
            )
        self.assertIn("start=5", outcome.text())
        alone = self.arguments(models.LLAMA, 8, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plans[0], alone)
        self.assert_equal_runs("plan", "alone")

    def test_damaged_newest_checkpoint_is_passed_over_by_all_ranks(self):
        plan = six_gpus()
        arguments = self.arguments(
            models.LLAMA, 3, "plan", *FP64, "--checkpoint-every", "1"
        )
        self.run_and_check(cluster.forked, plan, arguments)
        newest = self.path("plan/step-00000003")
        os.truncate(os.path.join(newest, "layer-002.tp-0-of-1.optim.safetensors"), 50)
        outcome = self.run_and_check(cluster.forked, plan, arguments)
        self.assertIn("start=2", outcome.text())
        self.assertIn(
            "layer-002.tp-0-of-1.optim.safetensors: has 50 bytes", outcome.text()
        )
        alone = self.arguments(models.LLAMA, 3, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")

    def test_bytes_that_flip_where_one_rank_reads_make_all_ranks_take_the_older_one(self):
        plan = six_gpus()
        arguments = self.arguments(
            models.LLAMA, 3, "plan", *FP64, "--checkpoint-every", "1"
        )
        for at in (8, -40):  # a header, numbers
            self.run_and_check(cluster.forked, plan, arguments)
            name = "layer-005.tp-0-of-1.weights.safetensors"
            with open(self.path(f"plan/step-00000003/{name}"), "r+b") as file:
                file.seek(at, os.SEEK_SET if at > 0 else os.SEEK_END)
                file.write(b"flip")
            outcome = self.run_and_check(cluster.forked, plan, arguments)
            self.assertIn("start=2", outcome.text())
            self.assertIn(f"{name}: is damaged", outcome.text())
        alone = self.arguments(models.LLAMA, 3, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plan, alone)
        largest, where = cluster.difference(self.path("plan"), self.path("alone"))
        self.assertLessEqual(largest, TOLERANCE, where)

    def test_no_whole_checkpoint_is_an_error(self):
        plan = six_gpus()
        arguments = self.arguments(models.LLAMA, 1, "plan", *FP64)
        self.run_and_check(cluster.forked, plan, arguments)
        os.unlink(self.path("plan/step-00000001/layer-000.tp-0-of-2.weights.safetensors"))
        outcome = cluster.forked(plan, arguments, self.folder)
        self.assertIn(2, outcome.statuses)
        self.assertIn("layer-000.tp-0-of-2.weights.safetensors: No such", outcome.text())


class SlowRun(RunTest):
    """A run of many slow steps, in which something happens."""

    STEP_S = 0.05

    def start(self, plan, *more):
        slow = [[self.STEP_S / 18, self.STEP_S / 18]] * models.LAYERS
        sizes = {str(size): slow for size in range(1, 5)}
        speeds = {name: {"1": sizes, "2": sizes} for name in "ABC"}
        emulate = cluster.write_json(self.folder, "speeds.json", speeds)
        arguments = self.arguments(
            models.LLAMA, 10000, "plan", *FP64, "--emulate", emulate
        )
        self.run = cluster.Forked(plan, [*arguments, *more], self.folder)
        cluster.wait_for_steps(self.path("plan.report"), 2)


class Stops(SlowRun):
    """It is stopped somewhere, and goes on under another plan."""

    def go_on_and_compare(self, plan, other):
        """Two steps more under `other`; the same by one process."""
        step = len(cluster.losses(self.path("plan.report")))
        found = cluster.newest_step(self.path("plan"))
        self.assertEqual(found, step, "the checkpoint is that of the last step")
        self.run_and_check(
            cluster.forked, other, self.arguments(models.LLAMA, step + 2, "plan", *FP64)
        )
        alone = self.arguments(models.LLAMA, step + 2, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")

    def get(self, url):
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status

    def test_hook_writes_a_checkpoint_and_the_ranks_wait_for_their_end(self):
        plan, port = six_gpus(), cluster.free_port()
        self.start(plan, "--hook-port", str(port))
        url = f"http://{hook.pod_address()}:{port}/checkpoint"
        body = json.dumps({"kind": "CheckpointRequest", "requestedAt": "now"}).encode()
        with urllib.request.urlopen(url, body, timeout=10) as reply:
            self.assertEqual(reply.status, 202)
        cluster.wait_until(lambda: self.get(url) != 202)
        self.assertEqual(self.get(url), 200)
        for rank in range(6):
            self.run.signal(rank, signal.SIGTERM)
        self.assertEqual(self.run.wait().statuses, [143] * 6)
        other = random_plan_of_batch(40, 15, models.LAYERS, 5, (1, 2, 4))
        self.go_on_and_compare(plan, other)

    def test_one_rank_that_is_to_go_makes_all_write_a_checkpoint(self):
        plan = six_gpus()
        self.start(plan)
        self.run.signal(4, signal.SIGTERM)
        cluster.wait_until(lambda: cluster.newest_step(self.path("plan")) is not None)
        for rank in (0, 1, 2, 3, 5):
            self.run.signal(rank, signal.SIGTERM)
        self.assertEqual(self.run.wait().statuses, [143] * 6)
        self.go_on_and_compare(plan, plan)


class Silence(SlowRun):
    """A rank that is stopped, without an end: the others say which one."""

    def check(self, rank, *messages):
        self.start(six_gpus(), "--silence-limit", "3")
        self.run.signal(rank, signal.SIGSTOP)
        outcome = self.run.wait()
        others = outcome.statuses[:rank] + outcome.statuses[rank + 1 :]
        self.assertIn(watchdog.SILENT, others)
        self.assertLessEqual(set(others), {watchdog.SILENT, -signal.SIGKILL})
        for message in messages:
            self.assertIn(message, outcome.text())

    def test_a_stopped_rank_is_named_by_the_others(self):
        self.check(4, "error: rank 4 (pod 1, GPU 1 there, B) has said nothing for 3 s")

    def test_the_rank_with_the_rendezvous_is_named_too(self):
        self.check(
            0,
            "error: rank 0 (pod 0, GPU 0 there, A) has said nothing for 3 s",
            "the store of the rendezvous",
        )

    def test_a_rank_that_never_comes_is_named(self):
        plan = six_gpus()
        arguments = self.arguments(models.LLAMA, 1, "plan", *FP64, "--timeout", "4")
        self.run = cluster.Forked(plan, [*arguments, "--silence-limit", "2"], self.folder)
        self.run.signal(5, signal.SIGKILL)
        text = self.run.wait(all_at_once=False).text()
        self.assertIn("rank 5 (pod 2, GPU 0 there, C) has not started within 4 s", text)


class DistributedOptimizer(RunTest):
    """Optimizer state in parts over the holders: the same numbers, under any plan."""

    def check(self, plan, model):
        plan["optimizer"] = "adam-distributed"
        options = [*FP64, "--clip-gradient", "0.5"]
        run = self.arguments(model, 4, "plan", *options, "--checkpoint-every", "2")
        self.run_and_check(cluster.forked, plan, run)
        self.run_and_check(cluster.forked, plan, run)  # from the end: nothing to do
        alone = self.arguments(model, 4, "alone", *options)
        self.run_and_check(cluster.run_reference, plan, alone)
        self.assert_equal_runs("plan", "alone")

    def test_degrees_that_differ_by_replica(self):
        self.check(six_gpus(), models.LLAMA)

    def test_ranks_that_share_a_key_value_head(self):
        self.check(random_plan(11, models.LAYERS, 7, (1, 2, 4)), models.LLAMA)

    def test_tied_embeddings(self):
        self.check(random_plan(16, models.LAYERS, 6, (1, 2, 3, 4)), models.GPT2)

    def test_goes_on_from_and_to_undivided_state(self):
        plans = [six_gpus(), six_gpus("adam-distributed"), six_gpus()]
        for steps, plan in zip((2, 4, 5), plans):
            run = self.arguments(models.GPT2, steps, "plan", *FP64)
            self.run_and_check(cluster.forked, plan, run)
        alone = self.arguments(models.GPT2, 5, "alone", *FP64)
        self.run_and_check(cluster.run_reference, plans[0], alone)
        self.assert_equal_runs("plan", "alone")

    def test_bf16_follows_the_undivided_optimizer(self):
        plan = random_plan(10, models.LAYERS, 6, (1,))
        for name, kind in (("plan", "adam-distributed"), ("plain", "adam")):
            run = self.arguments(models.LLAMA, 3, name, "--dtype", "bfloat16")
            self.run_and_check(cluster.forked, {**plan, "optimizer": kind}, run)
        self.assert_equal_runs("plan", "plain", tolerance=0)


class OtherOptions(RunTest):
    def test_sgd_clipped_gradients_and_warm_up_equal_one_process(self):
        options = ["--clip-gradient", "0.5", "--warmup-steps", "3"]
        for name, plan in (("a", six_gpus("sgd")), ("b", six_gpus())):
            run = self.arguments(models.LLAMA, 4, f"plan-{name}", *FP64, *options)
            alone = self.arguments(models.LLAMA, 4, f"alone-{name}", *FP64, *options)
            self.run_and_check(cluster.forked, plan, run)
            self.run_and_check(cluster.run_reference, plan, alone)
            self.assert_equal_runs(f"plan-{name}", f"alone-{name}")

    def test_bf16_is_near_fp32(self):
        # tp 1: gloo of torch 1.13 does not sum bf16.
        plan = random_plan(10, models.LAYERS, 6, (1,))
        run = self.arguments(models.LLAMA, 4, "plan", "--dtype", "bfloat16")
        exact = self.arguments(models.LLAMA, 4, "exact", "--dtype", "float32")
        self.run_and_check(cluster.forked, plan, run)
        self.run_and_check(cluster.run_reference, plan, exact)
        pairs = zip(
            *(cluster.losses(self.path(f"{n}.report")) for n in ("plan", "exact"))
        )
        for ours, theirs in pairs:
            self.assertAlmostEqual(ours, theirs, delta=0.01)

    def test_samples_are_as_long_as_the_plan_says(self):
        for name, plan, more in (
            ("plan", {**six_gpus(), "sequenceLength": 8}, []),
            ("asked", six_gpus(), ["--sequence-length", "8"]),
        ):
            run = self.arguments(models.LLAMA, 2, name, *FP64, *more)
            self.run_and_check(cluster.forked, plan, run)
        self.assert_equal_runs("plan", "asked", tolerance=0)

    def test_loss_falls(self):
        arguments = self.arguments(models.GPT2, 60, "plan", "--learning-rate", "3e-3")
        self.run_and_check(cluster.forked, six_gpus(), arguments)
        losses = cluster.losses(self.path("plan.report"))
        self.assertLess(losses[-1], losses[0] - 0.3)


class Refuses(RunTest):
    def check(self, message, plan, *more, model=models.LLAMA):
        outcome = cluster.forked(
            plan, self.arguments(model, 1, "plan", *more), self.folder
        )
        self.assertIn(2, outcome.statuses)
        self.assertIn(message, outcome.text())

    def test_a_wrong_plan(self):
        self.check(
            "globalBatchSize: is 16, the pipelines'",
            {**six_gpus(), "globalBatchSize": 16},
        )

    def test_a_plan_of_another_model(self):
        model = {**models.LLAMA, "num_hidden_layers": 5}
        self.check("layerCount: is 6, the model has 7", six_gpus(), model=model)

    def test_a_degree_that_the_heads_do_not_allow(self):
        model = {**models.GPT2, "n_embd": 33, "n_head": 1}
        message = "pipelines[0].stages[0].replicas[0].gpus: tensor-parallel degree 2"
        self.check(message, six_gpus(), model=model)

    def test_samples_of_another_length_than_the_plan_was_made_for(self):
        plan = {**six_gpus(), "sequenceLength": 8}
        message = "error: --sequence-length: is 16, but the plan was made for 8"
        self.check(message, plan, "--sequence-length", "16")
        with mock.patch.dict(os.environ, HETPLAN_SEQUENCE_LENGTH="16"):
            self.check("HETPLAN_SEQUENCE_LENGTH: is 16, by the plan 8", plan)

    def test_samples_beyond_the_models_positions(self):
        self.check("sequence length 17", six_gpus(), "--sequence-length", "17")

    def test_a_hook_port_that_another_program_has(self):
        with socket.socket() as other:
            other.bind((hook.pod_address(), 0))
            other.listen()
            port = other.getsockname()[1]
            message = f"error: --hook-port: {port} of {hook.pod_address()}: Address already"
            self.check(message, six_gpus(), "--hook-port", str(port))

    def test_a_rendezvous_port_that_another_program_has(self):
        with socket.socket() as other:
            other.bind(("0.0.0.0", 0))
            other.listen()
            port = other.getsockname()[1]
            with mock.patch("cluster.free_port", return_value=port):
                message = f"error: MASTER_ADDR, MASTER_PORT: 127.0.0.1:{port}: "
                self.check(message, six_gpus(), "--timeout", "20")

    def test_speeds_that_are_missing(self):
        speeds = cluster.write_json(self.folder, "speeds.json", {})
        self.check("speeds.json: A: is missing", six_gpus(), "--emulate", speeds)
