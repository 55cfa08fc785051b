"""heterotrain.safetensors and checkpoint: what is written, found and refused."""

import json
import os
import struct
import tempfile
import unittest

import torch

import models
from heterotrain import checkpoint, compare, config, plan as plans, safetensors
from heterotrain.model import build_layer
from heterotrain.optimizer import Optimizer, Settings
from heterotrain.tensor_parallel import ALONE
from test_training import six_gpus


class FolderTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heterotrain-runtime-")
        self.root = self.temporary.name

    def tearDown(self):
        self.temporary.cleanup()


class Safetensors(FolderTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.root, "a.safetensors")
        self.tensors = {
            "a": torch.arange(6, dtype=torch.float32).view(2, 3),
            "b": torch.tensor([1.5, -2.0]).to(torch.bfloat16),
            "c": torch.empty(0, 4),
        }

    def test_what_is_written_is_read(self):
        safetensors.write(self.path, self.tensors)
        read = safetensors.read(self.path)
        self.assertEqual(list(read), ["a", "b", "c"])
        for name, tensor in self.tensors.items():
            self.assertEqual(read[name].dtype, tensor.dtype)
            self.assertTrue(torch.equal(read[name], tensor))
        entries = {name: (t.shape, t.dtype) for name, t in self.tensors.items()}
        self.assertEqual(os.path.getsize(self.path), safetensors.file_bytes(entries))

    def test_the_file_is_as_the_format_says(self):
        safetensors.write(self.path, {"a": torch.tensor([1.0, 2.0])})
        with open(self.path, "rb") as file:
            content = file.read()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        self.assertEqual(
            header, {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        )
        self.assertEqual(content[8 + length :], struct.pack("<2f", 1, 2))
        self.assertEqual(length % 8, 0)

    def test_damaged_files_are_refused(self):
        safetensors.write(self.path, self.tensors)
        with open(self.path, "rb") as file:
            whole = file.read()
        length = struct.unpack("<Q", whole[:8])[0]
        damages = [
            (whole[:5], "has 5 bytes"),
            (struct.pack("<Q", 1 << 40) + whole[8:], "header of"),
            (whole[: 8 + length + 4], "ends at byte"),
            (whole[:8] + b"x" * length + whole[8 + length :], "Expecting value"),
            (whole.replace(b'"F32"', b'"F99"'), "F99"),
            (whole.replace(b'"shape":[2,3]', b'"shape":[2,4]'), "do not fit the shape"),
        ]
        for content, message in damages:
            with open(self.path, "wb") as file:
                file.write(content)
            with self.subTest(message), self.assertRaises(
                safetensors.FormatError
            ) as caught:
                safetensors.read(self.path)
            self.assertIn(message, str(caught.exception))
            self.assertIn(self.path, str(caught.exception))


def holding(values=models.LLAMA, kind="adam", dtype=torch.float64, seed=3):
    """Of one process, with random weights and optimizer state."""
    found = config.from_dict(values)
    layers = [build_layer(found, i, dtype=dtype) for i in range(found.layer_count)]
    specs, parameters = {}, {}
    for layer in layers:
        layer.initialise(seed)
        for spec in layer.specs:
            specs[spec.key], parameters[spec.key] = spec, layer.get_parameter(spec.name)
    optimizer = Optimizer(Settings(kind=kind), parameters)
    optimizer.copy_to_masters()
    generator = torch.Generator().manual_seed(seed)
    for state in optimizer.state.values():
        for name in optimizer.settings.moments:
            state[name].copy_(torch.rand(state[name].shape, generator=generator))
    plan = plans.of_one_gpu(plans.from_dict(six_gpus()))
    return checkpoint.Holding(plan, found, 0, ALONE, specs, optimizer)


def progress(step):
    return checkpoint.Progress(step, 10 * step, 1.0, 0)


class Checkpoints(FolderTest):
    def save(self, step, keep=9, **which):
        checkpoint.save(
            self.root, holding(**which), progress(step), {"revision": "4"}, keep
        )
        return os.path.join(self.root, f"step-{step:08d}")

    def load(self, **which):
        target = holding(**which)
        self.lines = []
        return checkpoint.load(self.root, target, self.lines.append), target

    def assert_damaged_newest_is_passed_over(self, message):
        found, _ = self.load()
        self.assertEqual(found.step, 1)
        self.assertIn(message, self.lines[0])

    def test_names_are_layer_and_shard_and_the_manifest_says_how_tensors_are_cut(self):
        folder = self.save(1)
        names = sorted(os.listdir(folder))
        self.assertEqual(names[0], "MANIFEST.json")
        self.assertEqual(names[1], "layer-000.tp-0-of-1.optim.safetensors")
        self.assertEqual(len(names), 1 + 2 * models.LAYERS)
        manifest = checkpoint.read_manifest(folder)
        self.assertEqual((manifest["step"], manifest["revision"]), (1, "4"))
        tensors = {t["tensor"]: t for t in manifest["layers"][1]["tensors"]}
        self.assertEqual(tensors["output_weight"]["splitDim"], 1)
        self.assertEqual(tensors["up_weight"]["sections"], [[40, 1, None], [40, 1, None]])
        self.assertEqual(
            tensors["qkv_weight"]["sections"], [[32, 16, 4], [8, 4, None], [8, 4, None]]
        )

    def test_loaded_is_what_was_written(self):
        self.save(1, seed=3)
        found, target = self.load(seed=4)
        self.assertEqual(found, progress(1))
        expected = holding(seed=3)
        for key, parameter in expected.optimizer.parameters.items():
            self.assertTrue(torch.equal(parameter, target.optimizer.parameters[key]))
            for name, tensor in expected.optimizer.state[key].items():
                self.assertTrue(torch.equal(tensor, target.optimizer.state[key][name]))

    def test_tied_weight_is_written_once(self):
        folder = self.save(1, values=models.GPT2)
        names = safetensors.read(f"{folder}/layer-005.tp-0-of-1.weights.safetensors")
        self.assertEqual(list(names), ["norm_bias", "norm_weight"])

    def test_sixteen_bits_keep_their_fp32_copy(self):
        folder = self.save(1, dtype=torch.bfloat16)
        tensors = safetensors.read(f"{folder}/layer-001.tp-0-of-1.optim.safetensors")
        self.assertEqual(tensors["qkv_weight.master"].dtype, torch.float32)
        _, target = self.load(dtype=torch.bfloat16, seed=4)
        self.assertTrue(
            torch.equal(
                target.optimizer.state[1, "qkv_weight"]["master"],
                tensors["qkv_weight.master"],
            )
        )

    def test_weights_of_another_precision_are_converted(self):
        self.save(1, dtype=torch.float32)
        _, target = self.load(dtype=torch.bfloat16, seed=4)
        expected = holding(dtype=torch.float32).optimizer.parameters[1, "qkv_weight"]
        state = target.optimizer.state[1, "qkv_weight"]
        self.assertFalse(torch.equal(state["master"], expected))  # rounded to 16 bits
        self.assertTrue(torch.equal(state["master"], expected.bfloat16().float()))

    def test_nothing_there_is_no_error(self):
        self.assertIsNone(self.load()[0])
        self.root = os.path.join(self.root, "missing")
        self.assertIsNone(self.load()[0])

    def test_unfinished_newest_is_passed_over(self):
        self.save(1)
        os.unlink(os.path.join(self.save(2), "MANIFEST.json"))
        self.assert_damaged_newest_is_passed_over("step-00000002: was not finished")

    def test_newest_without_a_shard_is_passed_over(self):
        self.save(1)
        os.unlink(os.path.join(self.save(2), "layer-003.tp-0-of-1.optim.safetensors"))
        self.assert_damaged_newest_is_passed_over(
            "layer-003.tp-0-of-1.optim.safetensors: No such"
        )

    def test_truncated_newest_is_passed_over(self):
        self.save(1)
        path = os.path.join(self.save(2), "layer-004.tp-0-of-1.weights.safetensors")
        os.truncate(path, os.path.getsize(path) - 8)
        self.assert_damaged_newest_is_passed_over(
            "layer-004.tp-0-of-1.weights.safetensors: has"
        )

    def damage(self, path, at, count=4):
        """Flips a bit in each of `count` bytes."""
        with open(path, "r+b") as file:
            file.seek(at)
            content = file.read(count)
            file.seek(at)
            file.write(bytes(byte ^ 4 for byte in content))

    def test_four_flipped_bytes_anywhere_are_noticed(self):
        self.save(1)
        newest = self.save(2, seed=4)
        for name in ("layer-003.tp-0-of-1.weights", "layer-000.tp-0-of-1.optim"):
            path = os.path.join(newest, f"{name}.safetensors")
            size = os.path.getsize(path)
            for at in (0, 8, 60, size // 2, size - 4):  # length, header, numbers
                with self.subTest(name=name, at=at):
                    self.damage(path, at)
                    found, target = self.load(seed=5)
                    self.assertEqual(found.step, 1)
                    self.assertIn(f"{name}.safetensors: is damaged", self.lines[0])
                    expected = holding(seed=3).optimizer.parameters
                    for key, parameter in target.optimizer.parameters.items():
                        self.assertTrue(torch.equal(parameter, expected[key]))
                    self.damage(path, at)  # as it was
        self.assertEqual(self.load()[0].step, 2)

    def test_manifest_that_says_something_else_is_noticed(self):
        self.save(1)
        path = os.path.join(self.save(2), "MANIFEST.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for before, after in (
            ('"samples":20', '"samples":21'),
            ('"lossScale":1.0', '"lossScale":1.5'),
        ):
            with self.subTest(before):
                self.assertIn(before, text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text.replace(before, after))
                self.assert_damaged_newest_is_passed_over("MANIFEST.json: is damaged")

    def test_a_damaged_checkpoint_is_written_again_when_its_step_comes_again(self):
        self.save(1)
        folder = self.save(2)
        self.damage(os.path.join(folder, "layer-002.tp-0-of-1.optim.safetensors"), 400)
        self.assertEqual(self.load()[0].step, 1)
        self.save(2)
        self.assertEqual(self.load()[0].step, 2)

    def test_torn_manifest_is_passed_over(self):
        self.save(1)
        os.truncate(os.path.join(self.save(2), "MANIFEST.json"), 100)
        self.assert_damaged_newest_is_passed_over("MANIFEST.json: ")

    def test_damage_to_all_is_an_error_not_a_new_start(self):
        os.unlink(os.path.join(self.save(1), "layer-000.tp-0-of-1.weights.safetensors"))
        with self.assertRaisesRegex(
            checkpoint.CheckpointError, "layer-000.tp-0-of-1.weights"
        ):
            self.load()

    def test_first_checkpoint_that_was_not_finished_is_a_new_start(self):
        os.unlink(os.path.join(self.save(1), "MANIFEST.json"))
        self.assertIsNone(self.load()[0])

    def test_another_model_is_refused(self):
        self.save(1)
        with self.assertRaisesRegex(
            checkpoint.CheckpointError, "layer 1 has no up_weight"
        ):
            self.load(values={**models.LLAMA, "intermediate_size": 44})

    def test_adam_cannot_go_on_from_sgd(self):
        self.save(1, kind="sgd")
        with self.assertRaisesRegex(
            checkpoint.CheckpointError, "has no word_weight.exp_avg"
        ):
            self.load()

    def test_only_the_newest_are_kept(self):
        for step in (1, 2, 3, 4):
            self.save(step, keep=2)
        self.assertEqual(
            sorted(os.listdir(self.root)), ["step-00000003", "step-00000004"]
        )

    def test_what_an_interrupted_run_left_is_replaced(self):
        folder = os.path.join(self.root, "step-00000001")
        os.makedirs(folder)
        stale = os.path.join(folder, "layer-000.tp-0-of-2.weights.safetensors")
        open(stale, "w", encoding="utf-8").close()
        self.save(1)
        self.assertFalse(os.path.exists(stale))

    def test_a_checkpoint_is_not_written_twice(self):
        folder = self.save(1, seed=3)
        self.save(1, seed=4)
        other = self.save(2, seed=3)
        self.assertEqual(compare.difference(folder, other)[0], 0.0)

    def test_compare_finds_the_largest_difference(self):
        first = self.save(1)
        changed = holding()
        with torch.no_grad():
            changed.optimizer.parameters[2, "down_weight"][3, 5] += 0.25
        other = os.path.join(self.root, "other")
        checkpoint.save(other, changed, progress(1), {}, 9)
        largest, where = compare.difference(first, compare.step_folder(other))
        self.assertAlmostEqual(largest, 0.25, delta=1e-9)
        self.assertEqual(where, "layer 2 down_weight")
