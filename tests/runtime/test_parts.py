"""Data, optimizer, emulated speeds and the hook, each by itself."""

import os
import struct
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import torch

import cluster
from heterotrain import data, emulate, plan as plans
from heterotrain.hook import CheckpointHook
from heterotrain.optimizer import LossScale, Optimizer, Settings
from test_training import six_gpus


class Data(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="heterotrain-runtime-")
        self.path = os.path.join(self.temporary.name, "tokens")

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, form, tokens):
        with open(self.path, "wb") as file:
            file.write(struct.pack(f"<{len(tokens)}{form}", *tokens))

    def test_sample_depends_on_its_number_and_the_seed_alone(self):
        tokens = data.SyntheticTokens(50, 8, 1)
        self.assertTrue(
            torch.equal(tokens.sample(3), data.SyntheticTokens(50, 8, 1).sample(3))
        )
        self.assertFalse(torch.equal(tokens.sample(3), tokens.sample(4)))
        self.assertFalse(
            torch.equal(tokens.sample(3), data.SyntheticTokens(50, 8, 2).sample(3))
        )

    def test_targets_are_one_token_further_on(self):
        inputs, targets = data.batch(data.SyntheticTokens(50, 8, 1), 5, 2)
        self.assertEqual(inputs.shape, (2, 8))
        self.assertTrue(torch.equal(inputs[:, 1:], targets[:, :-1]))

    def test_an_epoch_visits_every_window_once(self):
        self.write("H", range(60001, 60001 + 4 * 5 + 1))
        tokens = data.TokenFile(self.path, 1 << 16, 4, 0)
        first = sorted(int(tokens.sample(n)[0]) for n in range(5))
        self.assertEqual(first, [60001 + 4 * n for n in range(5)])
        orders = {
            tuple(int(tokens.sample(5 * epoch + n)[0]) for n in range(5))
            for epoch in range(8)
        }
        self.assertGreater(len(orders), 1)

    def test_large_vocabularies_have_32_bits(self):
        self.write("I", [70000 + i for i in range(5)])
        tokens = data.TokenFile(self.path, 100000, 4, 0)
        self.assertEqual(tokens.sample(0).tolist(), [70000, 70001, 70002, 70003, 70004])

    def test_short_files_and_foreign_tokens_are_refused(self):
        self.write("H", range(4))
        with self.assertRaisesRegex(data.DataError, "4 tokens are fewer"):
            data.TokenFile(self.path, 10, 4, 0)
        self.write("H", [1, 2, 3, 10, 4])
        with self.assertRaisesRegex(
            data.DataError, "token 10 is beyond the vocabulary of 10"
        ):
            data.TokenFile(self.path, 10, 4, 0).sample(0)


def optimizers(dtype=torch.float64, **settings):
    """(ours over one matrix, the same matrix for torch's)."""
    weight = torch.arange(6, dtype=dtype).view(2, 3) / 7
    ours = torch.nn.Parameter(weight.clone())
    return Optimizer(Settings(**settings), {(0, "w"): ours}), torch.nn.Parameter(
        weight.clone()
    )


def gradients(dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(2, 3, generator=generator).to(dtype) for _ in range(5)]


class Optimizers(unittest.TestCase):
    def check(self, make_theirs, **settings):
        ours, theirs = optimizers(**settings)
        reference = make_theirs([theirs])
        for number, gradient in enumerate(gradients(), 1):
            ours.gradients[0, "w"].copy_(gradient)
            ours.step(number)
            theirs.grad = gradient
            reference.step()
        torch.testing.assert_close(
            ours.parameters[0, "w"].data, theirs.data, rtol=0, atol=1e-14
        )

    def test_adam_is_torchs(self):
        self.check(lambda p: torch.optim.Adam(p, lr=1e-2), learning_rate=1e-2)

    def test_weight_decay_is_adamws(self):
        self.check(
            lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
            learning_rate=1e-2,
            weight_decay=0.1,
        )

    def test_sgd_is_torchs(self):
        self.check(lambda p: torch.optim.SGD(p, lr=1e-2), learning_rate=1e-2, kind="sgd")

    def test_sixteen_bits_follow_an_fp32_copy(self):
        ours, _ = optimizers(torch.bfloat16, learning_rate=1e-4)
        ours.copy_to_masters()
        start = ours.state[0, "w"]["master"].clone()
        for number in (1, 2, 3):
            ours.zero_gradients()
            for gradient in gradients(torch.bfloat16)[:2]:
                ours.parameters[0, "w"].grad = gradient
                ours.accumulate()
            ours.step(number)
        # Three steps of 1e-4 are lost in bf16 at 0.7, not in the copy.
        moved = (ours.state[0, "w"]["master"] - start).abs()
        self.assertTrue(((moved > 2e-4) & (moved < 4e-4)).all(), moved)
        expected = sum(g.float() for g in gradients(torch.bfloat16)[:2])
        self.assertTrue(torch.equal(ours.gradients[0, "w"], expected))

    def test_rate_rises_during_warm_up(self):
        settings = Settings(learning_rate=0.4, warmup_steps=4)
        self.assertEqual([settings.rate(n) for n in (1, 2, 4, 9)], [0.1, 0.2, 0.4, 0.4])

    def test_norm_is_clipped_after_the_loss_scale(self):
        settings = Settings(clip_norm=2.0)
        self.assertEqual(settings.gradient_factor(8.0, 8.0), 1 / 8)
        self.assertEqual(settings.gradient_factor(80.0, 8.0), 2 / 80)

    def test_loss_scale_halves_at_overflow_and_doubles_after_good_steps(self):
        scale = LossScale(True)
        scale.update(True)
        self.assertEqual(scale.value, LossScale.START / 2)
        for _ in range(LossScale.GROWTH_STEPS):
            scale.update(False)
        self.assertEqual(scale.value, LossScale.START)
        off = LossScale(False)
        off.update(True)
        self.assertEqual(off.value, 1.0)


class Speeds(unittest.TestCase):
    def setUp(self):
        plan = plans.from_dict(six_gpus())
        self.stages = plan.pipelines[1].stages
        layers = [[0.001 * (i + 1), 0.01 * (i + 1)] for i in range(6)]
        self.table = {"B": {"1": {"2": layers}}}

    def test_a_stage_takes_its_layers(self):
        stage = self.stages[0]  # layers 0 to 2, recomputed
        speed = emulate.EmulatedSpeed(self.table, stage, stage.replicas[0])
        self.assertAlmostEqual(speed.forward_s, 0.001 + 0.002 + 0.003)
        self.assertAlmostEqual(speed.backward_s, 0.01 + 0.02 + 0.03 + speed.forward_s)
        begun = time.monotonic()
        speed.wait("backward", begun)
        self.assertGreaterEqual(time.monotonic() - begun, speed.backward_s)

    def test_what_the_file_lacks_is_named(self):
        stage = self.stages[0]
        with self.assertRaisesRegex(emulate.EmulationError, "^B.1.1: is missing"):
            emulate.EmulatedSpeed(self.table, stage, stage.replicas[1])
        self.table["B"]["1"]["1"] = [[1, 1]]
        with self.assertRaisesRegex(emulate.EmulationError, "B.1.1: has 1 layers"):
            emulate.EmulatedSpeed(self.table, stage, stage.replicas[1])


class Hook(unittest.TestCase):
    def setUp(self):
        self.port = cluster.free_port()
        self.hook = CheckpointHook(self.port, "127.0.0.1")

    def tearDown(self):
        self.hook.close()

    def call(self, body=None, path="/checkpoint"):
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, body, timeout=10) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def post(self, body=b'{"kind": "CheckpointRequest"}', **more):
        return self.call(body, **more)

    def test_asks_until_the_checkpoint_is_written(self):
        self.assertEqual(self.call(), 404)
        self.assertFalse(self.hook.is_wanted())
        self.assertEqual((self.post(), self.call()), (202, 202))
        self.assertTrue(self.hook.is_wanted())
        self.hook.acknowledge()
        self.assertEqual((self.call(), self.post()), (200, 200))

    def test_only_requests_for_checkpoints_stop_the_training(self):
        self.assertEqual(self.post(path="/other"), 404)
        for body in (b"", b"{", b"[]", b'{"kind": "Other"}'):
            self.assertEqual(self.post(body), 400, body)
        self.assertFalse(self.hook.is_wanted())
