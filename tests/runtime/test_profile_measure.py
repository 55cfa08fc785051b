"""heterotrain.profile measures: a small model on the CPU, its ranks joined by gloo. What is
compared are counts; of times only that four samples take a processor longer than one.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import torch

import crd_schema
from heterotrain import config as model_config
from heterotrain.model import SavedBytes
from heterotrain.profile import document, memory, result, stopwatch, times, worker
from heterotrain.profile.bench import BLOCK, EMBEDDING, HEAD, Bench
from heterotrain.profile.measure import with_positions
from heterotrain.profile.rounds import Rule, Unsteady
from profile_samples import ENVIRONMENT, HETPLAN, run_profile

BLOCKS = 3
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 160,
    "vocab_size": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "max_position_embeddings": 64,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 48,
    "n_layer": 2,
    "n_head": 3,
    "vocab_size": 301,
    "n_positions": 32,
}
LENGTH = 64
# Times are not what is tested: rounds may differ as they like.
QUICK = (
    "--device",
    "cpu",
    "--rounds",
    "2",
    "--iterations",
    "3",
    "--spread-percent",
    "100000",
)


def measure(folder, config, *arguments):
    """Runs the command; (its exit status, the lines that it printed, the compact result)."""
    model, message = pathlib.Path(folder, "config.json"), pathlib.Path(
        folder, "termination-log"
    )
    model.write_text(json.dumps(config))
    message.write_text("")
    done = run_profile(
        "measure",
        "--result",
        str(message),
        "--gpu-type",
        "T4",
        *QUICK,
        "--model",
        str(model),
        *arguments,
    )
    return done.returncode, done.stdout.splitlines(), message.read_text()


def run_hetplan(*arguments):
    done = subprocess.run([HETPLAN, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Measured(unittest.TestCase):
    """One measurement, of two degrees and three sizes, from which all is read."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.status, cls.lines, cls.compact = measure(
            cls.folder,
            LLAMA,
            "--sequence-length",
            str(LENGTH),
            "--precision",
            "FP32",
            "--largest-tensor-parallel",
            "2",
            "--largest-micro-batch",
            "4",
        )
        cls.result = result.decode(cls.lines[-1])
        cls.profile = cls.folder / "profile.yaml"
        cls.profile.write_text(document.to_yaml(document.make(cls.result, "toy")))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def point(self, tp, microbatch):
        return next(
            p for p in self.result.points if (p.tp, p.microbatch) == (tp, microbatch)
        )

    def test_every_degree_and_size_was_measured(self):
        self.assertEqual(self.status, 0)
        self.assertEqual(
            [(p.tp, p.microbatch) for p in self.result.points],
            [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)],
        )
        self.assertEqual(
            [(g.name, g.count) for g in self.result.groups],
            [("embedding", 1), ("block", BLOCKS), ("head", 1)],
        )
        self.assertEqual(sorted(self.result.optimizer_us), [1, 2])
        self.assertEqual(self.result.out_of_memory, ())

    def test_the_compact_result_says_the_same(self):
        self.assertEqual(result.decode(self.compact), self.result)

    def test_the_profile_has_the_structure_of_the_crd(self):
        schema = crd_schema.load("modelprofiles")
        profile = document.make(self.result, "toy")
        self.assertEqual(list(crd_schema.complaints(schema, profile)), [])

    def test_activations_grow_with_the_samples(self):
        # What does not, the mask of the scores, is at most length x length bytes for each.
        for tp in (1, 2):
            for group in range(3):
                one, two, four = (
                    self.point(tp, n).layers[group].activation_bytes for n in (1, 2, 4)
                )
                self.assertEqual(four - two, 2 * (two - one))
                self.assertLessEqual(abs(two - 2 * one), 2 * LENGTH * LENGTH)

    def test_outputs_are_hidden_states(self):
        self.assertEqual(
            [group.output_bytes for group in self.result.groups],
            [LENGTH * 64 * 4, LENGTH * 64 * 4, 0],
        )

    def costs(self, profile, tp, *options):
        """Of a pipeline with a stage for each layer, the peaks by stage."""
        cluster = {
            "nodes": [
                {
                    "name": "n",
                    "type": "T4",
                    "gpus": tp,
                    "memory_gb": 15,
                    "repeat": BLOCKS + 2,
                }
            ]
        }
        stages = [
            {
                "firstLayer": layer,
                "layerCount": 1,
                "recompute": "none",
                "replicas": [
                    {
                        "gpuType": "T4",
                        "gpus": list(range(tp)),
                        "microBatchSize": 1,
                        "node": f"n-{layer}",
                    }
                ],
            }
            for layer in range(BLOCKS + 2)
        ]
        plan = {
            "apiVersion": "heterotrain.io/v1alpha1",
            "kind": "Plan",
            "globalBatchSize": 1,
            "layerCount": BLOCKS + 2,
            "optimizer": "adam",
            "precision": "fp32",
            "schedule": "1F1B",
            "pipelines": [{"microBatches": 1, "stages": stages}],
        }
        for name, value in (("cluster.json", cluster), ("plan.json", plan)):
            (self.folder / name).write_text(json.dumps(value))
        priced = run_hetplan(
            "cost",
            "--profile",
            str(profile),
            "--cluster",
            str(self.folder / "cluster.json"),
            *options,
            str(self.folder / "plan.json"),
        )
        self.assertEqual(priced["violations"], [])
        return priced

    def test_parameters_are_those_that_hetplan_works_out_from_the_config(self):
        for tp in (1, 2):
            ours = self.costs(self.profile, tp)["peakMemoryBytes"]
            estimated = self.costs(
                self.folder / "config.json",
                tp,
                "--sequence-length",
                str(LENGTH),
                "--precision",
                "fp32",
            )["peakMemoryBytes"]
            self.assertEqual(
                [peak["stateBytes"] for peak in ours],
                [peak["stateBytes"] for peak in estimated],
            )

    def test_hetplan_predicts_a_single_gpu_as_the_sum_of_what_was_measured(self):
        cluster = self.folder / "one.json"
        cluster.write_text(
            json.dumps(
                {"nodes": [{"name": "n", "type": "T4", "gpus": 1, "memory_gb": 15}]}
            )
        )
        plan = run_hetplan(
            "plan",
            "--profile",
            str(self.profile),
            "--cluster",
            str(cluster),
            "--global-batch-size",
            "4",
        )
        size = plan["pipelines"][0]["stages"][0]["replicas"][0]["microBatchSize"]
        micro_batches = plan["pipelines"][0]["microBatches"]
        layers = self.point(1, size).layers
        one = sum(
            group.count * (layer.forward_us + layer.backward_us)
            for group, layer in zip(self.result.groups, layers)
        )
        expected_us = micro_batches * one + self.result.optimizer_us[1]
        self.assertAlmostEqual(
            plan["predicted"]["iterationSeconds"] * 1e6, expected_us, delta=1
        )


class Ends(unittest.TestCase):
    def measure(self, config, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return measure(folder, config, *arguments)

    def test_out_of_memory_ends_the_growth_and_is_recorded(self):
        # Three blocks hold about 3 * 0.4 MiB a sample: three of 4 are more than 4 MiB, of 2 are not.
        status, lines, compact = self.measure(
            LLAMA,
            "--sequence-length",
            "64",
            "--precision",
            "FP32",
            "--largest-micro-batch",
            "64",
            "--memory-mib",
            "4",
        )
        found = result.decode(compact)
        self.assertEqual(status, 0, lines)
        self.assertEqual([p.microbatch for p in found.points], [1, 2])
        self.assertEqual(found.out_of_memory, ((1, 4),))
        self.assertEqual(found.memory_mib, 4)

    def test_where_not_one_sample_fits_there_is_no_result(self):
        status, lines, compact = self.measure(
            LLAMA, "--sequence-length", "64", "--memory-mib", "1", "--precision", "FP32"
        )
        self.assertEqual(status, 1)
        self.assertEqual(json.loads(compact), json.loads(lines[-1]))
        self.assertEqual(json.loads(compact)["gpuType"], "T4")
        self.assertIn("not memory enough for one sample", json.loads(compact)["error"])

    def test_rounds_that_never_agree_are_refused(self):
        status, _, compact = self.measure(
            LLAMA,
            "--sequence-length",
            "16",
            "--spread-percent",
            "0",
            "--most-rounds",
            "3",
            "--precision",
            "FP32",
        )
        self.assertEqual(status, 1)
        self.assertIn("3 rounds did not get there", json.loads(compact)["error"])

    def test_what_cannot_be_measured_is_refused_in_words(self):
        for config, arguments, words in (
            ({**LLAMA, "num_experts": 8}, (), "mixtures of experts"),
            ({**LLAMA, "hidden_size": None}, (), "hidden_size: is missing"),
            (LLAMA, ("--sequence-length", "65"), "sequence length 65"),
            (LLAMA, ("--gpu-type", "a b"), "GPU type 'a b'"),
            (LLAMA, ("--largest-micro-batch", "5000"), "largest micro-batch 5000"),
            ([], (), "not an object"),
        ):
            status, lines, compact = self.measure(
                config, "--sequence-length", "16", *arguments
            )
            self.assertEqual(status, 1)
            self.assertIn(words, json.loads(compact)["error"])
            self.assertEqual(lines[-1], compact)

    def test_a_config_without_a_longest_sample_takes_any(self):
        unsaid = {k: v for k, v in LLAMA.items() if k != "max_position_embeddings"}
        for config, length, positions in (
            (unsaid, 8192, 8192),
            (LLAMA, 8192, LLAMA["max_position_embeddings"]),
            (GPT2, 8192, GPT2["n_positions"]),
        ):
            found = model_config.from_dict(with_positions(config, length))
            self.assertEqual(found.position_count, positions)

    def test_no_result_file_is_made_where_there_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/none"
            status, lines, _ = measure(
                folder, [], "--sequence-length", "16", "--result", path
            )
            self.assertIn("not an object", lines[-1])
            self.assertFalse(os.path.exists(path))

    def test_without_a_gpu_the_cpu_is_not_measured_instead(self):
        with mock.patch.dict(ENVIRONMENT, CUDA_VISIBLE_DEVICES=""):
            status, _, compact = self.measure(
                LLAMA, "--sequence-length", "16", "--device", "cuda"
            )
        self.assertEqual(status, 1)
        self.assertIn("no GPU here", json.loads(compact)["error"])

    def test_degrees_end_where_the_model_cannot_be_split(self):
        # 3 heads: degree 4 is too many. A tied head, uneven shares, learned positions.
        status, lines, compact = self.measure(
            GPT2,
            "--sequence-length",
            "32",
            "--precision",
            "FP32",
            "--largest-tensor-parallel",
            "8",
            "--name",
            "small",
            "--largest-micro-batch",
            "1",
        )
        self.assertEqual(status, 0, lines)
        found = result.decode(compact)
        self.assertEqual([p.tp for p in found.points], [1, 2])
        self.assertEqual(
            found.model,
            {
                "name": "small",
                "precision": "FP32",
                "optimizer": "Adam",
                "sequenceLength": 32,
                "hiddenSize": 48,
                "vocabSize": 301,
                "embeddingWeights": "Shared",
            },
        )
        embedding, _, head = found.groups
        self.assertEqual(embedding.parameter_bytes, (301 + 32) * 48 * 4)
        self.assertEqual(head.parameter_bytes, (301 + 2) * 48 * 4)
        self.assertEqual(embedding.rank_bytes, {2: (151 + 32) * 48 * 4})
        self.assertEqual(head.rank_bytes, {2: (151 + 2) * 48 * 4})

    def test_what_the_operator_sets_is_enough(self):
        unsaid = {k: v for k, v in LLAMA.items() if k != "max_position_embeddings"}
        with tempfile.TemporaryDirectory() as folder:
            message = pathlib.Path(folder, "termination-log")
            message.write_text("")
            environment = {
                "HETPROFILE_MODEL": json.dumps(unsaid),
                "HETPROFILE_GPU_TYPE": "V100",
                "HETPROFILE_PRECISION": "BF16",
                "HETPROFILE_SEQUENCE_LENGTH": "16",
                "HETPROFILE_TENSOR_PARALLEL": "1",
                "HETPROFILE_MICRO_BATCH": "2",
                "HETPROFILE_DEVICE": "cpu",
                "HETPROFILE_SPREAD_PERCENT": "100000",
                "HETPROFILE_RESULT": str(message),
            }
            self.assertEqual(run_profile("measure", **environment).returncode, 0)
            found = result.decode(message.read_text())
        self.assertEqual((found.gpu_type, found.model["sequenceLength"]), ("V100", 16))
        self.assertEqual([p.microbatch for p in found.points], [1, 2])
        # Weight 2, sum of gradients 4, master 4, moments 8, a micro-batch's gradient 2.
        self.assertEqual(found.model["stateBytesPerParameter"], 20)


def make_bench(config=LLAMA, precision="FP32", length=LENGTH):
    return Bench(model_config.from_dict(config), precision, length, torch.device("cpu"))


class Accuracy(unittest.TestCase):
    def test_the_memory_of_a_stage_is_the_sum_of_its_layers(self):
        for config, length in ((LLAMA, LENGTH), (GPT2, 32)):
            for precision in ("FP32", "BF16"):
                bench = make_bench(config, precision, length)
                kept = memory.measure(bench, 2)
                stage = [EMBEDDING, *[BLOCK] * 6, HEAD]
                inputs = bench.inputs(2)
                with SavedBytes(torch.nn.ModuleList(bench.layers.values())) as saved:
                    loss = bench.forward(stage, inputs)
                expected = sum(kept[name].kept_bytes for name in stage)
                # The loss itself, and what the layers share, stand apart.
                self.assertAlmostEqual(saved.bytes, expected, delta=0.01 * expected)
                del loss

    def test_four_samples_take_longer_than_one(self):
        # By what the processor did, whoever else was using it.
        bench, rule = make_bench(), Rule(rounds=2, most_rounds=2, share=1e3)
        with mock.patch.object(stopwatch.time, "perf_counter", time.thread_time):
            one, four = (
                times.measure_layers(bench, n, 3, rule).seconds for n in (1, 4)
            )
        for i in (2, 3, 4, 5):  # of block and head; the embedding takes no time
            self.assertGreater(four[i], one[i])

    def test_a_layer_keeps_less_in_half_the_precision(self):
        fp32, bf16 = (
            memory.measure(make_bench(precision=p), 1) for p in ("FP32", "BF16")
        )
        for name in (EMBEDDING, BLOCK, HEAD):
            self.assertLess(bf16[name].kept_bytes, fp32[name].kept_bytes)

    def test_passes_leave_gradients_to_be_summed(self):
        for precision in ("FP32", "BF16"):
            bench = make_bench(precision=precision)
            sums = bench._sums[BLOCK].gradients
            stage, inputs = (BLOCK,), bench.inputs(1)
            for _ in range(2):
                bench.backward(stage, bench.forward(stage, inputs), inputs)
            once = {key: gradient.clone() for key, gradient in sums.items()}
            for _ in range(2):
                bench.backward(stage, bench.forward(stage, inputs), inputs)
            for key, gradient in sums.items():
                self.assertGreater(gradient.abs().sum(), 0)
                self.assertTrue(
                    torch.allclose(gradient, 2 * once[key], rtol=1e-2, atol=1e-6), key
                )


class Clock:
    """Goes on by a millisecond each time somebody looks."""

    now = 0.0

    def __call__(self):
        self.now += 1e-3
        return self.now


class NoisyBlock(torch.nn.Module):
    """By the clock, every other round takes 20 ms longer."""

    def __init__(self, block, clock, iterations):
        super().__init__()
        self.block, self.clock, self.iterations, self.calls = (
            block,
            clock,
            iterations,
            0,
        )

    def forward(self, hidden):
        if self.calls // self.iterations % 2:
            self.clock.now += 0.02
        self.calls += 1
        return self.block(hidden)


class Noise(unittest.TestCase):
    def test_a_noisy_layer_is_refused_by_name(self):
        bench, clock = make_bench(length=8), Clock()
        bench.layers[BLOCK] = NoisyBlock(bench.layers[BLOCK], clock, 3)
        said = "block, forward: the last 3 rounds took 1.000 to 21.000 ms"
        with mock.patch.object(stopwatch.time, "perf_counter", clock):
            with self.assertRaisesRegex(Unsteady, said):
                times.measure_layers(
                    bench, 1, 3, Rule(rounds=3, most_rounds=6, share=0.5)
                )

    def test_layers_that_repeat_are_taken(self):
        with mock.patch.object(stopwatch.time, "perf_counter", Clock()):
            steady = times.measure_layers(
                make_bench(length=8), 1, 3, Rule(rounds=3, share=0.05)
            )
        self.assertEqual(steady.rounds, 3)
        for seconds in steady.seconds:
            self.assertAlmostEqual(seconds, 1e-3)

    def test_a_slow_layer_is_repeated_less(self):
        class Slow(torch.nn.Module):
            calls = 0

            def forward(self, hidden):
                self.calls += 1
                clock.now += (
                    0.1  # 0.102 s with its backward pass: half a second has room for 4
                )
                return block(hidden)

        bench, clock = make_bench(length=8), Clock()
        block, bench.layers[BLOCK] = bench.layers[BLOCK], Slow()
        with mock.patch.object(stopwatch.time, "perf_counter", clock):
            times.measure_layers(bench, 1, 10, Rule(rounds=2, share=0.05))
        self.assertEqual(
            bench.layers[BLOCK].calls, 3 + 2 * 4
        )  # the warm-up, two rounds

    def test_what_torch_says_of_memory_is_understood(self):
        for text in (
            "CUDA out of memory. Tried to allocate 2.00 GiB",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
        ):
            self.assertTrue(worker.is_out_of_memory(RuntimeError(text)))
        self.assertTrue(worker.is_out_of_memory(MemoryError()))
        self.assertTrue(
            worker.is_out_of_memory(torch.cuda.OutOfMemoryError("CUDA out of memory."))
        )
        self.assertFalse(worker.is_out_of_memory(RuntimeError("shapes do not match")))
        self.assertFalse(worker.is_out_of_memory(ValueError("out of memory")))
