"""heterotrain.model: layers compute what they should, by other code than theirs."""

import math
import unittest

import torch

import models
from heterotrain import config, model
from heterotrain.tensor_parallel import cross_entropy_sum, ALONE


def build(values, recompute="none"):
    found = config.from_dict(values)
    layers = [
        model.build_layer(found, i, dtype=torch.float64, recompute=recompute)
        for i in range(found.layer_count)
    ]
    for layer in layers:
        layer.initialise(7)
    return found, layers


def hidden(seed=1, samples=2, length=9, size=32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, length, size, dtype=torch.float64, generator=generator)


def llama_block(values, weights, states):
    """A block as the paper has it: complex rotations, one head at a time."""
    heads, keys = values["num_attention_heads"], values["num_key_value_heads"]
    size = states.shape[-1] // heads
    length = states.shape[1]

    def norm(x, weight):
        return (
            x
            / torch.sqrt((x * x).mean(-1, keepdim=True) + values["rms_norm_eps"])
            * weight
        )

    def rotate(x):  # [samples, length, size]: pairs (i, i + size/2) are complex numbers
        angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
            -torch.arange(0, size, 2, dtype=torch.float64) / size
        )
        turned = torch.complex(x[..., : size // 2], x[..., size // 2 :]) * torch.polar(
            torch.ones_like(angle), angle
        )
        return torch.cat((turned.real, turned.imag), -1)

    x = norm(states, weights["attention_norm_weight"])
    query, key, value = torch.split(
        x @ weights["qkv_weight"].T, [heads * size, keys * size, keys * size], -1
    )
    outputs = []
    for head in range(heads):
        group = head * keys // heads
        q = rotate(query[..., head * size : (head + 1) * size])
        k = rotate(key[..., group * size : (group + 1) * size])
        v = value[..., group * size : (group + 1) * size]
        scores = q @ k.transpose(1, 2) / math.sqrt(size)
        scores = scores + torch.full((length, length), -math.inf).triu(1).double()
        outputs.append(scores.softmax(-1) @ v)
    states = states + torch.cat(outputs, -1) @ weights["output_weight"].T
    x = norm(states, weights["mlp_norm_weight"])
    gate, up = (x @ weights["up_weight"].T).chunk(2, -1)
    return states + (gate * gate.sigmoid() * up) @ weights["down_weight"].T


class Computes(unittest.TestCase):
    def test_llama_block_is_the_formula(self):
        _, layers = build(models.LLAMA)
        states = hidden()
        weights = dict(layers[1].named_parameters())
        expected = llama_block(models.LLAMA, weights, states)
        torch.testing.assert_close(layers[1](states), expected, rtol=0, atol=1e-12)

    def test_gpt2_block_is_torchs_own_encoder_layer(self):
        values = {**models.GPT2, "activation_function": "gelu"}
        _, layers = build(values)
        block = layers[1]
        other = torch.nn.TransformerEncoderLayer(
            32,
            4,
            48,
            0.0,
            "gelu",
            1e-5,
            batch_first=True,
            norm_first=True,
            dtype=torch.float64,
        )
        names = {
            "qkv_weight": other.self_attn.in_proj_weight,
            "qkv_bias": other.self_attn.in_proj_bias,
            "output_weight": other.self_attn.out_proj.weight,
            "output_bias": other.self_attn.out_proj.bias,
            "up_weight": other.linear1.weight,
            "up_bias": other.linear1.bias,
            "down_weight": other.linear2.weight,
            "down_bias": other.linear2.bias,
            "attention_norm_weight": other.norm1.weight,
            "attention_norm_bias": other.norm1.bias,
            "mlp_norm_weight": other.norm2.weight,
            "mlp_norm_bias": other.norm2.bias,
        }
        with torch.no_grad():
            for name, theirs in names.items():
                block.get_parameter(name).normal_(0, 0.3)
                theirs.copy_(block.get_parameter(name))
        self.assertEqual(set(names), {name for name, _ in block.named_parameters()})
        states = hidden()
        mask = torch.ones(9, 9, dtype=torch.bool).triu(1)
        torch.testing.assert_close(
            block(states), other(states, src_mask=mask), rtol=0, atol=1e-12
        )

    def test_loss_is_cross_entropy_summed_over_tokens(self):
        generator = torch.Generator().manual_seed(3)
        logits = torch.randn(4, 11, dtype=torch.float64, generator=generator) * 9
        targets = torch.randint(11, (4,), generator=generator)
        ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
        loss = cross_entropy_sum(ours, targets, 0, ALONE)
        expected = torch.nn.functional.cross_entropy(theirs, targets, reduction="sum")
        torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
        (loss * 3).backward()
        (expected * 3).backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-12)

    def test_recomputation_changes_nothing_and_keeps_less(self):
        for values in (models.LLAMA, models.GPT2):
            kept = {}
            for mode in model.RECOMPUTE:
                _, layers = build(values, mode)
                states = hidden().requires_grad_()
                with model.SavedBytes(layers[1]) as saved:
                    result = layers[1](states)
                result.square().sum().backward()
                kept[mode] = (saved.bytes, states.grad, layers[1].qkv_weight.grad)
            self.assertTrue(
                kept["full"][0] < kept["selective"][0] < kept["none"][0], kept
            )
            for mode in ("selective", "full"):
                for ours, plain in zip(kept[mode][1:], kept["none"][1:]):
                    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)

    def test_llama3_scaling_keeps_short_waves_and_slows_long_ones(self):
        scaling = {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
        found = config.from_dict({**models.LLAMA, "rope_scaling": scaling})
        # Waves of 2 pi, 6283, 62832 tokens; 8192 has 1304, 1.3, 0.13 of them. The middle
        # one is (1.3038 - 1) / (4 - 1) kept.
        frequencies = torch.tensor([1.0, 1e-3, 1e-4], dtype=torch.float64)
        kept = (8192 * 1e-3 / (2 * math.pi) - 1) / 3
        middle = 1e-3 * (kept + (1 - kept) / 8)
        torch.testing.assert_close(
            model._scaled(frequencies, found.rotary_scaling),
            torch.tensor([1.0, middle, 1e-4 / 8], dtype=torch.float64),
        )


class Counts(unittest.TestCase):
    def test_parameters_of_each_layer(self):
        found = config.from_dict(models.LLAMA)
        # 32 x 67; norms 2 x 32, qkv (32 + 2 x 8) x 32, output 32 x 32, MLP 3 x 32 x 40.
        block = 2 * 32 + 48 * 32 + 32 * 32 + 3 * 32 * 40
        counts = [model.parameter_count(found, i) for i in range(6)]
        self.assertEqual(counts, [67 * 32, block, block, block, block, 32 + 67 * 32])

    def test_a_rank_of_two_holds_half_but_for_the_norms(self):
        found = config.from_dict(models.LLAMA)
        half = 2 * 32 + (48 * 32 + 32 * 32 + 3 * 32 * 40) // 2
        self.assertEqual(model.parameter_bytes(found, 1, 2, torch.bfloat16), 2 * half)

    def test_built_layers_have_as_many(self):
        for values in (models.LLAMA, models.GPT2):
            found, layers = build(values)
            for i, layer in enumerate(layers):
                count = sum(parameter.numel() for parameter in layer.parameters())
                self.assertEqual(count, model.parameter_count(found, i))

    def test_first_weights_depend_on_seed_layer_and_name(self):
        _, layers = build(models.LLAMA)
        first = layers[1].qkv_weight.clone()
        self.assertFalse(torch.equal(first, layers[2].qkv_weight))
        self.assertFalse(torch.equal(first[:32], layers[1].output_weight))
        layers[1].initialise(8)
        self.assertFalse(torch.equal(first, layers[1].qkv_weight))
        layers[1].initialise(7)
        self.assertTrue(torch.equal(first, layers[1].qkv_weight))
