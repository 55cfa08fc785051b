"""The layers of a transformer, each built by itself, cut for tensor parallelism.

    layer = build_layer(config, index, tp, dtype, device)   # weights not yet set
    layer.initialise(seed)                                  # the same whatever the tp

    embedding (layer 0)          tokens [samples, length]       -> hidden
    block     (1 .. blocks)      hidden [samples, length, size] -> hidden
    head      (the last)         hidden, targets                -> loss, summed over tokens

Matrices are cut as Megatron-LM does: query, key, value, gate and up by columns, the output
of attention and the MLP's down by rows, embedding and head by rows of the vocabulary.
layer_specs says it tensor by tensor (sharding.py); parameters carry the names from there.
All ranks of the group call each layer with the same input.
"""

import functools
import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .sharding import Section, TensorSpec, split_tensor, take_shard
from .tensor_parallel import ALONE, cross_entropy_sum

RECOMPUTE = ("none", "selective", "full")


# ---- the tensors of each layer ----
def _norm_specs(config, layer, name):
    size = (config.hidden_size,)
    specs = [TensorSpec(layer, f"{name}_weight", size, initial="ones")]
    if not config.rms_norm:
        specs.append(TensorSpec(layer, f"{name}_bias", size, initial="zeros"))
    return specs


def _embedding_specs(config):
    specs = [
        split_tensor(0, "word_weight", (config.vocabulary_size, config.hidden_size), 0)
    ]
    if config.learned_positions:
        size = (config.position_count, config.hidden_size)
        specs.append(TensorSpec(0, "position_weight", size))
    return specs


def _query_key_value_sections(config):
    queries_of_a_key = config.head_count // config.kv_head_count
    size = config.head_size
    query = Section(config.head_count * size, queries_of_a_key * size, size)
    key = Section(config.kv_head_count * size, size)
    return query, key, key


def _linear_specs(layer, name, shape, dim, sections, bias, initial="normal"):
    """Weight [outputs, inputs] cut along `dim`, and the bias, which a matrix that is cut
    by columns adds piece by piece, and one that is cut by rows once behind the sum."""
    specs = [split_tensor(layer, f"{name}_weight", shape, dim, sections, initial=initial)]
    if bias and dim == 0:
        specs.append(
            split_tensor(layer, f"{name}_bias", shape[:1], 0, sections, initial="zeros")
        )
    elif bias:
        specs.append(TensorSpec(layer, f"{name}_bias", shape[:1], initial="zeros"))
    return specs


def _block_specs(config, layer):
    hidden, mlp = config.hidden_size, config.mlp_size
    qkv = _query_key_value_sections(config)
    width = sum(section.length for section in qkv)
    ups = (Section(mlp),) * (2 if config.gated_mlp else 1)
    return [
        *_norm_specs(config, layer, "attention_norm"),
        *_linear_specs(layer, "qkv", (width, hidden), 0, qkv, config.qkv_bias),
        *_linear_specs(
            layer,
            "output",
            (hidden, qkv[0].length),
            1,
            qkv[:1],
            config.output_bias,
            "residual",
        ),
        *_norm_specs(config, layer, "mlp_norm"),
        *_linear_specs(layer, "up", (mlp * len(ups), hidden), 0, ups, config.mlp_bias),
        *_linear_specs(
            layer, "down", (hidden, mlp), 1, None, config.mlp_bias, "residual"
        ),
    ]


def _head_specs(config):
    layer = config.head_layer
    size = (config.vocabulary_size, config.hidden_size)
    weight = split_tensor(0 if config.tied_embedding else layer, "word_weight", size, 0)
    return [*_norm_specs(config, layer, "norm"), weight]


def layer_specs(config, index):
    """The tensors that layer `index` computes with, in order. The tied head's weight is
    there with the identity of layer 0's."""
    if index == 0:
        return _embedding_specs(config)
    if index == config.head_layer:
        return _head_specs(config)
    return _block_specs(config, index)


# ---- what a layer takes ----
def parameter_count(config, index, tp_size=1, tp_rank=0):
    """Numbers that a rank holds of layer `index`; a tied head counts its copy."""
    shapes = (spec.shard_shape(tp_size, tp_rank) for spec in layer_specs(config, index))
    return sum(math.prod(shape) for shape in shapes)


def parameter_bytes(config, index, tp_size=1, dtype=torch.float32):
    """Bytes of the weights of rank 0 of `tp_size`, which holds as much as any."""
    return parameter_count(config, index, tp_size) * _element_bytes(dtype)


def output_bytes(config, index, samples, length, dtype=torch.float32):
    """Bytes that layer `index` hands to the next one; 0 for the head."""
    if index == config.head_layer:
        return 0
    return samples * length * config.hidden_size * _element_bytes(dtype)


def _element_bytes(dtype):
    return torch.empty((), dtype=dtype).element_size()


class SavedBytes:
    """Counts what autograd keeps for the backward pass while it is entered, parameters of
    `module` left out: `with SavedBytes(layer) as saved: ...; saved.bytes`. A layer that is
    recomputed keeps its input beside, which is not seen here."""

    def __init__(self, module):
        self._sizes = {}
        self._parameters = {p.data_ptr() for p in module.parameters()}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(
            self._pack, lambda kept: kept
        )

    @property
    def bytes(self):
        return sum(self._sizes.values())

    def __enter__(self):
        self._hooks.__enter__()
        return self

    def __exit__(self, *error):
        self._hooks.__exit__(*error)

    def _pack(self, tensor):
        storage = getattr(tensor, "untyped_storage", tensor.storage)()
        if storage.data_ptr() not in self._parameters:
            self._sizes[storage.data_ptr()] = storage.nbytes()
        return tensor


# ---- layers ----
class Layer(torch.nn.Module):
    """Holds this rank's shard of each tensor of layer_specs, under its name."""

    def __init__(self, config, index, tp=ALONE, dtype=torch.float32, device="cpu"):
        super().__init__()
        self.config, self.index, self.tp = config, index, tp
        self.specs = layer_specs(config, index)
        for spec in self.specs:
            shape = spec.shard_shape(tp.size, tp.rank)
            weight = torch.nn.Parameter(torch.empty(shape, dtype=dtype, device=device))
            self.register_parameter(spec.name, weight)

    def initialise(self, seed):
        """Random weights, the same numbers for every tp, device and neighbour."""
        for spec in self.specs:
            parameter = self.get_parameter(spec.name)
            whole = initial_tensor(spec, self.config, seed, parameter.dtype)
            with torch.no_grad():
                parameter.copy_(take_shard(whole, spec, self.tp.size, self.tp.rank))

    def norm(self, hidden, name):
        weight = getattr(self, f"{name}_weight")
        epsilon = self.config.norm_epsilon
        if not self.config.rms_norm:
            bias = getattr(self, f"{name}_bias")
            return F.layer_norm(hidden, weight.shape, weight, bias, epsilon)
        exact = hidden if hidden.dtype == torch.float64 else hidden.float()
        scale = torch.rsqrt(exact.square().mean(-1, keepdim=True) + epsilon)
        return (exact * scale).to(hidden.dtype) * weight

    def by_columns(self, hidden, name):
        """This rank's share of the outputs."""
        bias = getattr(self, f"{name}_bias", None)
        return F.linear(hidden, getattr(self, f"{name}_weight"), bias)

    def by_rows(self, hidden, name):
        """From this rank's share of the inputs, all outputs."""
        bias = getattr(self, f"{name}_bias", None)
        result = self.tp.leave(F.linear(hidden, getattr(self, f"{name}_weight")))
        return result if bias is None else result + bias


def initial_tensor(spec, config, seed, dtype):
    """A whole tensor as it is before the first step, on the CPU. Drawn in fp64 for fp64,
    else in fp32, from the seed, the layer and the name."""
    if spec.initial in ("ones", "zeros"):
        return getattr(torch, spec.initial)(spec.shape, dtype=dtype)
    deviation = config.initializer_range
    if spec.initial == "residual":  # GPT-2: the sum over the depth keeps its size
        deviation /= math.sqrt(2 * config.block_count)
    name = functools.reduce(
        lambda sum, char: (sum * 131 + ord(char)) % 65521, spec.name, 0
    )
    generator = torch.Generator().manual_seed((seed * 100003 + spec.layer) * 65521 + name)
    drawn_in = torch.float64 if dtype == torch.float64 else torch.float32
    whole = torch.empty(spec.shape, dtype=drawn_in)
    return whole.normal_(0, deviation, generator=generator).to(dtype)


class Embedding(Layer):
    def forward(self, tokens):
        (first, last), *_ = self.specs[0].ranges(self.tp.size, self.tp.rank)
        if self.tp.size == 1:
            hidden = F.embedding(tokens, self.word_weight)
        else:
            elsewhere = (tokens < first) | (tokens >= last)
            rows = (tokens - first).masked_fill(elsewhere, 0)
            hidden = F.embedding(rows, self.word_weight)
            hidden = self.tp.leave(hidden.masked_fill(elsewhere.unsqueeze(-1), 0))
        if self.config.learned_positions:
            hidden = hidden + self.position_weight[: tokens.shape[1]]
        return hidden


class Block(Layer):
    recompute = "none"

    def forward(self, hidden):
        if self.recompute == "full" and torch.is_grad_enabled():
            return _recomputed(self._compute, hidden)
        return self._compute(hidden)

    def _compute(self, hidden):
        hidden = hidden + self._attention(self.norm(hidden, "attention_norm"))
        return hidden + self._mlp(self.norm(hidden, "mlp_norm"))

    def _attention(self, hidden):
        config = self.config
        fused = self.by_columns(self.tp.enter(hidden), "qkv")
        qkv = self.specs_named("qkv_weight").ranges(self.tp.size, self.tp.rank)
        parts = fused.split([stop - start for start, stop in qkv], -1)
        samples, length, _ = hidden.shape
        heads = [
            part.view(samples, length, -1, config.head_size).transpose(1, 2)
            for part in parts
        ]
        if not config.learned_positions:
            tables = rotary_tables(config, length, hidden.dtype, hidden.device)
            heads[:2] = [_rotate(part, *tables) for part in heads[:2]]
        if self.recompute == "selective" and torch.is_grad_enabled():
            context = _recomputed(causal_attention, *heads)
        else:
            context = causal_attention(*heads)
        return self.by_rows(
            context.transpose(1, 2).reshape(samples, length, -1), "output"
        )

    def _mlp(self, hidden):
        inner = self.by_columns(self.tp.enter(hidden), "up")
        if self.config.gated_mlp:
            gate, inner = inner.chunk(2, -1)
            inner = _activate(gate, self.config.activation) * inner
        else:
            inner = _activate(inner, self.config.activation)
        return self.by_rows(inner, "down")

    def specs_named(self, name):
        return next(spec for spec in self.specs if spec.name == name)


class Head(Layer):
    def logits(self, hidden):
        """This rank's share of the vocabulary."""
        return F.linear(self.tp.enter(self.norm(hidden, "norm")), self.word_weight)

    def forward(self, hidden, targets):
        (first, _), *_ = self.specs[-1].ranges(self.tp.size, self.tp.rank)
        return cross_entropy_sum(self.logits(hidden), targets, first, self.tp)


def build_layer(
    config, index, tp=ALONE, dtype=torch.float32, device="cpu", recompute="none"
):
    """Layer `index` of the model, as rank tp.rank of tp.size holds it. Recomputation is a
    block's: "full" keeps its input alone, "selective" all but the scores of attention."""
    config.check_tensor_parallel(tp.size)
    if index == 0:
        return Embedding(config, index, tp, dtype, device)
    if index == config.head_layer:
        return Head(config, index, tp, dtype, device)
    block = Block(config, index, tp, dtype, device)
    block.recompute = recompute
    return block


# ---- parts of a block ----
def _recomputed(function, *inputs):
    # There is no dropout: no random state to keep.
    return checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)


def _activate(values, name):
    if name == "silu":
        return F.silu(values)
    if name == "relu":
        return F.relu(values)
    return F.gelu(values, approximate="tanh" if name == "gelu_new" else "none")


def causal_attention(query, key, value):
    """[samples, heads, length, size] each; a key's heads serve several queries' in turn."""
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = (part.repeat_interleave(group, 1) for part in (key, value))
    if hasattr(F, "scaled_dot_product_attention"):  # torch 2
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    length = query.shape[2]
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
    exact = torch.float64 if query.dtype == torch.float64 else torch.float32
    weights = scores.masked_fill(later, -math.inf).softmax(-1, dtype=exact)
    return weights.to(query.dtype) @ value


@functools.lru_cache(maxsize=8)
def rotary_tables(config, length, dtype, device):
    """(cos, sin), [length, head size], of the angles position * frequency."""
    half = torch.arange(0, config.head_size, 2, dtype=torch.float64) / config.head_size
    frequencies = _scaled(config.rotary_base**-half, config.rotary_scaling)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def _scaled(frequencies, scaling):
    if scaling is None:
        return frequencies
    slow = frequencies / scaling.factor
    if scaling.kind == "linear":
        return slow
    # Llama 3.1: long waves are slowed, short ones kept, those between mixed.
    waves = scaling.original_positions * frequencies / (2 * math.pi)
    width = scaling.high_frequency_factor - scaling.low_frequency_factor
    kept = ((waves - scaling.low_frequency_factor) / width).clamp(0, 1)
    return kept * frequencies + (1 - kept) * slow


def _rotate(heads, cosine, sine):
    first, second = heads.chunk(2, -1)
    return heads * cosine + torch.cat((-second, first), -1) * sine
