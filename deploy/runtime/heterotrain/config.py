"""The shape of a transformer, read from a Hugging Face config.json.

Two kinds are built: Llama's (RMS norm, gated MLP, rotary positions, grouped-query
attention; model_type llama, mistral, qwen2) and GPT-2's (LayerNorm, GELU, biases, learned
positions; gpt2). What a config asks for and this package does not compute is refused by
name; dropout is the exception: it is never applied (dropout_fields tells).

Layers are numbered as in plans: 0 embeds, 1 .. block_count are blocks, block_count + 1 is
the head with the final norm and the loss.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Optional, Tuple

MODEL_TYPES = ("llama", "mistral", "qwen2", "gpt2")
ACTIVATIONS = ("silu", "gelu", "gelu_new", "relu")


class ConfigError(ValueError):
    """The config is wrong or asks for something that is not computed; names the field."""


@dataclass(frozen=True)
class RotaryScaling:
    """rope_scaling: how positions beyond those of pre-training are squeezed."""

    kind: str  # "linear" or "llama3"
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 1.0
    original_positions: int = 1


@dataclass(frozen=True)
class ModelConfig:
    vocabulary_size: int
    hidden_size: int
    block_count: int
    head_count: int
    kv_head_count: int
    head_size: int
    mlp_size: int
    position_count: int  # tokens of the longest sample
    rms_norm: bool  # else LayerNorm
    norm_epsilon: float
    gated_mlp: bool
    activation: str
    qkv_bias: bool
    output_bias: bool  # of attention's output
    mlp_bias: bool
    learned_positions: bool  # else rotary
    rotary_base: float
    rotary_scaling: Optional[RotaryScaling]
    tied_embedding: bool
    initializer_range: float
    dropout_fields: Tuple[str, ...] = field(default=(), compare=False)

    @property
    def layer_count(self):
        return self.block_count + 2

    @property
    def head_layer(self):
        return self.block_count + 1

    def check_sequence_length(self, length):
        if not 1 <= length <= self.position_count:
            raise ConfigError(
                f"sequence length {length}: the model has {self.position_count} positions"
            )

    def check_tensor_parallel(self, tp):
        """Any degree up to the number of heads, if the key-value heads can follow."""
        if tp > self.head_count:
            raise ConfigError(
                f"tensor-parallel degree {tp}: there are {self.head_count} heads"
            )
        if tp > self.kv_head_count and (tp % self.kv_head_count or self.head_count % tp):
            raise ConfigError(
                f"tensor-parallel degree {tp}: {self.head_count} heads and"
                f" {self.kv_head_count} key-value heads cannot be split so"
            )
        if tp > self.mlp_size or tp > self.vocabulary_size:
            raise ConfigError(
                f"tensor-parallel degree {tp}: the MLP or vocabulary is smaller"
            )


_REQUIRED = object()


class _Fields:
    """Reads fields under any of their names, and names them in errors."""

    def __init__(self, values):
        self.values = values

    def get(self, names, types, default=_REQUIRED):
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if not isinstance(value, types) or (
                isinstance(value, bool) and types is not bool
            ):
                raise ConfigError(f"{name}: {value!r} is not {_type_name(types)}")
            return value
        if default is _REQUIRED:
            raise ConfigError(f"{names[0]}: is missing")
        return default

    def count(self, *names, default=_REQUIRED):
        value = self.get(names, int, default)
        if value is not None and not 1 <= value < 2**31:
            raise ConfigError(f"{names[0]}: {value} is not between 1 and 2^31")
        return value

    def number(self, *names, default=_REQUIRED):
        value = self.get(names, (int, float), default)
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{names[0]}: {value} is not above 0")
        return float(value)

    def truth(self, *names, default=_REQUIRED):
        return self.get(names, bool, default)


def _type_name(types):
    return {bool: "true or false", int: "a whole number", str: "text"}.get(
        types, "a number"
    )


def _model_type(fields):
    name = fields.get(
        ["model_type"], str, "gpt2" if "n_embd" in fields.values else "llama"
    )
    if name not in MODEL_TYPES:
        raise ConfigError(f"model_type: {name!r} is not one of {', '.join(MODEL_TYPES)}")
    return name


def _refuse_what_is_not_computed(values):
    for name in ("num_local_experts", "n_routed_experts", "num_experts"):
        if (values.get(name) or 0) > 1:
            raise ConfigError(f"{name}: mixtures of experts are not supported")
    for name in ("kv_lora_rank", "is_encoder_decoder", "add_cross_attention"):
        if values.get(name):
            raise ConfigError(f"{name}: is not supported")
    for name in ("scale_attn_by_inverse_layer_idx",):
        if values.get(name):
            raise ConfigError(f"{name}: is not supported")
    if values.get("scale_attn_weights") is False:
        raise ConfigError("scale_attn_weights: false is not supported")


def _refuse_towers(values):
    """A config of several models: what is beside the text would be left out silently."""
    for name in ("vision_config", "audio_config"):
        if values.get(name):
            raise ConfigError(
                f"{name}: is not supported; to train the text model alone, give its"
                " text_config as the config"
            )


def _refuse_biases(values, kind):
    """Biases that a model of this type never has, whatever its config says."""
    names = {"mistral": ("attention_bias", "mlp_bias"), "qwen2": ("mlp_bias",)}
    for name in names.get(kind, ()):
        if values.get(name):
            raise ConfigError(f"{name}: {kind} has no such biases; leave it out")


def _rotary_scaling(values):
    scaling = values.get("rope_scaling") or values.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return None
    if kind not in ("linear", "llama3"):
        raise ConfigError(f"rope_scaling: type {kind!r} is not default, linear or llama3")
    fields = _Fields(scaling)
    if kind == "linear":
        return RotaryScaling(kind, fields.number("factor"))
    return RotaryScaling(
        kind,
        fields.number("factor"),
        fields.number("low_freq_factor"),
        fields.number("high_freq_factor"),
        fields.count("original_max_position_embeddings"),
    )


def _positions(values, fields, gpt2):
    """The longest sample: all positions, or the window beyond which attention is cut."""
    positions = fields.count(
        "max_position_embeddings", "n_positions", default=None if gpt2 else 2048
    )
    if positions is None:
        raise ConfigError("n_positions: is missing")
    window = (
        values.get("sliding_window") if values.get("use_sliding_window", True) else None
    )
    return min(positions, window) if isinstance(window, int) else positions


def from_dict(values):
    """The shape that a config.json, as parsed, describes. Raises ConfigError."""
    if not isinstance(values, dict):
        raise ConfigError("config: is not an object")
    _refuse_towers(values)
    values = values.get("text_config") or values
    fields = _Fields(values)
    kind = _model_type(fields)
    _refuse_biases(values, kind)
    _refuse_what_is_not_computed(values)
    gpt2 = kind == "gpt2"
    hidden = fields.count("hidden_size", "n_embd", "d_model")
    heads = fields.count("num_attention_heads", "n_head", "num_heads")
    kv_heads = fields.count("num_key_value_heads", default=heads)
    head_size = fields.count("head_dim", default=None)
    if head_size is None and hidden % heads:
        raise ConfigError(f"hidden_size: {hidden} is no multiple of the {heads} heads")
    head_size = head_size or hidden // heads
    if heads % kv_heads:
        raise ConfigError(
            f"num_key_value_heads: {heads} heads are no multiple of {kv_heads}"
        )
    if not gpt2 and head_size % 2:
        raise ConfigError(
            f"head_dim: {head_size} is odd, which rotary positions do not allow"
        )
    activation = fields.get(
        ["hidden_act", "activation_function"], str, "gelu_new" if gpt2 else "silu"
    )
    if activation not in ACTIVATIONS:
        raise ConfigError(
            f"hidden_act: {activation!r} is not one of {', '.join(ACTIVATIONS)}"
        )
    attention_bias = fields.truth("attention_bias", default=gpt2)
    rope = values.get("rope_parameters") or {}
    return ModelConfig(
        vocabulary_size=fields.count("vocab_size"),
        hidden_size=hidden,
        block_count=fields.count("num_hidden_layers", "n_layer", "num_layers"),
        head_count=heads,
        kv_head_count=kv_heads,
        head_size=head_size,
        mlp_size=fields.count(
            "intermediate_size", "n_inner", "ffn_dim", default=4 * hidden
        ),
        position_count=_positions(values, fields, gpt2),
        rms_norm=not gpt2,
        norm_epsilon=fields.number(
            "rms_norm_eps",
            "layer_norm_epsilon",
            "layer_norm_eps",
            default=1e-5 if gpt2 else 1e-6,
        ),
        gated_mlp=not gpt2,
        activation=activation,
        qkv_bias=attention_bias or kind == "qwen2",
        output_bias=attention_bias and kind != "qwen2",
        mlp_bias=fields.truth("mlp_bias", default=gpt2),
        learned_positions=gpt2,
        rotary_base=_Fields({**rope, **values}).number("rope_theta", default=10000.0),
        rotary_scaling=None if gpt2 else _rotary_scaling(values),
        tied_embedding=fields.truth("tie_word_embeddings", default=gpt2),
        initializer_range=fields.number("initializer_range", default=0.02),
        dropout_fields=tuple(
            sorted(
                k
                for k, v in values.items()
                if "drop" in k and isinstance(v, float) and v > 0
            )
        ),
    )


def load(path):
    """The shape in the file `path`. Raises ConfigError and OSError."""
    with open(path, encoding="utf-8") as file:
        try:
            return from_dict(json.load(file))
        except (ConfigError, json.JSONDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None
