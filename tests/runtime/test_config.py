"""heterotrain.config: what a config.json means, and what is refused."""

import json
import os
import unittest

import models
from heterotrain import config


class ReadsConfigs(unittest.TestCase):
    def test_llama_has_rotary_positions_rms_norm_and_a_gated_mlp(self):
        found = config.from_dict(models.LLAMA)
        self.assertEqual((found.layer_count, found.head_layer), (4 + 2, 5))
        self.assertEqual(
            (found.head_count, found.kv_head_count, found.head_size), (8, 2, 4)
        )
        self.assertTrue(
            found.rms_norm and found.gated_mlp and not found.learned_positions
        )
        self.assertFalse(found.qkv_bias or found.mlp_bias or found.tied_embedding)

    def test_gpt2_has_learned_positions_biases_and_a_tied_embedding(self):
        found = config.from_dict({**models.GPT2, "n_inner": None})
        self.assertEqual((found.mlp_size, found.position_count), (4 * 32, 16))
        self.assertTrue(found.qkv_bias and found.output_bias and found.mlp_bias)
        self.assertTrue(found.learned_positions and found.tied_embedding)

    def test_qwen2_has_biases_of_queries_keys_and_values_alone(self):
        for change in ({}, {"attention_bias": True}):
            found = config.from_dict({**models.LLAMA, "model_type": "qwen2", **change})
            self.assertTrue(found.qkv_bias)
            self.assertFalse(found.output_bias or found.mlp_bias)

    def test_llama_has_the_biases_that_its_config_asks_for(self):
        found = config.from_dict({**models.LLAMA, "attention_bias": True})
        self.assertTrue(found.qkv_bias and found.output_bias)
        self.assertFalse(found.mlp_bias)

    def test_sliding_window_limits_the_sample(self):
        found = config.from_dict(
            {**models.LLAMA, "model_type": "mistral", "sliding_window": 8}
        )
        self.assertEqual(found.position_count, 8)
        with self.assertRaisesRegex(config.ConfigError, "sequence length 9"):
            found.check_sequence_length(9)

    def test_rope_parameters_of_newer_configs_are_read(self):
        found = config.from_dict({**models.LLAMA, "rope_parameters": {"rope_theta": 5e5}})
        self.assertEqual(found.rotary_base, 5e5)

    def test_dropout_is_told(self):
        found = config.from_dict({**models.GPT2, "attn_pdrop": 0.1, "resid_pdrop": 0.0})
        self.assertEqual(found.dropout_fields, ("attn_pdrop",))

    def test_example_in_the_file_is_named_in_errors(self):
        path = os.path.join(
            os.environ.get("TMPDIR", "/tmp"), f"config-{os.getpid()}.json"
        )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"vocab_size": 3}, file)
        try:
            with self.assertRaisesRegex(
                config.ConfigError, f"{path}: hidden_size: is missing"
            ):
                config.load(path)
        finally:
            os.unlink(path)


REFUSED = [
    ({"hidden_size": "32"}, "hidden_size: '32' is not a whole number"),
    ({"hidden_size": True}, "hidden_size: True is not a whole number"),
    ({"vocab_size": 0}, "vocab_size: 0 is not between"),
    (
        {"num_attention_heads": 5, "num_key_value_heads": 5},
        "hidden_size: 32 is no multiple",
    ),
    ({"num_key_value_heads": 3}, "num_key_value_heads: 8 heads"),
    ({"head_dim": 7}, "head_dim: 7 is odd"),
    ({"hidden_act": "swish"}, "hidden_act: 'swish'"),
    ({"model_type": "bert"}, "model_type: 'bert'"),
    ({"num_local_experts": 8}, "num_local_experts: mixtures"),
    ({"kv_lora_rank": 512}, "kv_lora_rank"),
    ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, "rope_scaling: type 'yarn'"),
    ({"rope_scaling": {"type": "linear"}}, "factor: is missing"),
    ({"rms_norm_eps": -1.0}, "rms_norm_eps: -1.0 is not above 0"),
    ({"model_type": "mistral", "attention_bias": True}, "attention_bias: mistral has no"),
    ({"model_type": "qwen2", "mlp_bias": True}, "mlp_bias: qwen2 has no"),
    (
        {"model_type": "llava", "text_config": models.LLAMA, "vision_config": {"a": 1}},
        "vision_config: is not supported; to train the text model",
    ),
    ({"tie_word_embeddings": 1}, "tie_word_embeddings: 1 is not true or false"),
]


class RefusesConfigs(unittest.TestCase):
    def test_each_error_names_its_field(self):
        for change, message in REFUSED:
            with self.subTest(change), self.assertRaises(config.ConfigError) as caught:
                config.from_dict({**models.LLAMA, **change})
            self.assertIn(message, str(caught.exception))

    def test_tensor_parallel_degrees_that_heads_do_not_allow(self):
        found = config.from_dict(models.LLAMA)  # 8 heads, 2 key-value heads
        for degree in (1, 2, 4, 8):
            found.check_tensor_parallel(degree)
        for degree in (3, 6, 9):
            with self.subTest(degree), self.assertRaises(config.ConfigError):
                found.check_tensor_parallel(degree)
