"""The layers that are measured, as one rank of a tensor-parallel group holds them, and what
goes into them. One layer stands for all that are equal to it: embedding, a block, head.
They are those that heterotrain.train runs, with random weights, and gradients are added up as
there.
"""
from dataclasses import dataclass
from typing import Dict, Sequence, Tuple

import torch

from heterotrain.config import ModelConfig
from heterotrain.model import build_layer, output_bytes, parameter_count
from heterotrain.optimizer import Optimizer, Settings
from heterotrain.profile.result import Group
from heterotrain.tensor_parallel import ALONE, TensorParallel

EMBEDDING, BLOCK, HEAD = "embedding", "block", "head"
DTYPES = {"FP32": torch.float32, "BF16": torch.bfloat16, "FP16": torch.float16}


def layer_indices(config: ModelConfig) -> Dict[str, int]:
    """The layer that stands for each group, by the group's name, in their order."""
    return {EMBEDDING: 0, BLOCK: 1, HEAD: config.head_layer}


def layer_counts(config: ModelConfig) -> Dict[str, int]:
    return {EMBEDDING: 1, BLOCK: config.block_count, HEAD: 1}


def make_optimizer(layer: torch.nn.Module, kind: str) -> Optimizer:
    """Of one layer; `kind` is Adam, AdamW or SGD."""
    settings = Settings(
        kind="sgd" if kind == "SGD" else "adam",
        weight_decay=0.01 if kind == "AdamW" else 0.0,
    )
    optimizer = Optimizer(
        settings, {spec.key: layer.get_parameter(spec.name) for spec in layer.specs}
    )
    optimizer.copy_to_masters()
    return optimizer


def state_bytes_per_parameter(optimizer: Optimizer) -> int:
    """Weight, gradient and optimizer state. With 16 bits also the gradient that autograd hands
    over, which is there for a whole stage when its backward pass ends."""
    key, weight = next(iter(optimizer.parameters.items()))
    held = [weight, optimizer.gradients[key], *optimizer.state[key].values()]
    held += [weight] if optimizer.mixed else []
    return sum(tensor.element_size() for tensor in held)


def groups(
    config: ModelConfig, precision: str, length: int, tp: int
) -> Tuple[Group, ...]:
    """The layers as a ModelProfile has them. A tied head counts the copy of the embedding's
    weights that its stage holds. Of several ranks with uneven shares the largest counts.
    """
    dtype = DTYPES[precision]
    element = torch.empty((), dtype=dtype).element_size()
    found = []
    for name, index in layer_indices(config).items():
        whole = parameter_count(config, index) * element
        of_a_rank = (
            max(parameter_count(config, index, tp, rank) for rank in range(tp)) * element
        )
        rank_bytes = {} if of_a_rank == -(-whole // tp) else {tp: of_a_rank}
        found.append(
            Group(
                name,
                layer_counts(config)[name],
                whole,
                output_bytes(config, index, 1, length, dtype),
                rank_bytes,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Inputs:
    """What a micro-batch brings to a stage that begins with the embedding, or with another
    layer; and what comes back to one that does not end with the head."""

    tokens: torch.Tensor
    targets: torch.Tensor
    hidden: torch.Tensor
    gradient: torch.Tensor


class Bench:
    def __init__(
        self,
        config: ModelConfig,
        precision: str,
        length: int,
        device: torch.device,
        tp: TensorParallel = ALONE,
    ):
        self.config, self.length, self.device, self.tp = config, length, device, tp
        self.dtype = DTYPES[precision]
        self.layers = {
            name: build_layer(config, index, tp, self.dtype, device)
            for name, index in layer_indices(config).items()
        }
        for layer in self.layers.values():
            self._fill(layer)
        self.attach_gradients()

    def _fill(self, layer: torch.nn.Module) -> None:
        """On the device: what the weights are does not matter, where they are drawn does."""
        for spec in layer.specs:
            weight = layer.get_parameter(spec.name)
            with torch.no_grad():
                if spec.initial in ("ones", "zeros"):
                    weight.fill_(1 if spec.initial == "ones" else 0)
                else:
                    weight.normal_(0, self.config.initializer_range)

    def attach_gradients(self) -> None:
        """Somewhere to add up the gradients of micro-batches: optimizers of the least state."""
        self._sums = {
            name: make_optimizer(layer, "SGD") for name, layer in self.layers.items()
        }

    def inputs(self, samples: int) -> Inputs:
        shape = (samples, self.length)
        hidden_shape = (*shape, self.config.hidden_size)
        # All ranks of a group have the same input.
        generator = torch.Generator(device=self.device).manual_seed(samples)

        def tokens():
            return torch.randint(
                self.config.vocabulary_size,
                shape,
                device=self.device,
                generator=generator,
            )

        def hidden():
            return torch.randn(
                hidden_shape, dtype=torch.float32, device=self.device, generator=generator
            ).to(self.dtype)

        return Inputs(tokens(), tokens(), hidden().requires_grad_(), hidden())

    def forward(self, names: Sequence[str], inputs: Inputs) -> torch.Tensor:
        """A stage of these layers; its output is hidden states, or the loss."""
        inputs.hidden.grad = None  # nobody adds to it: it is sent away
        state = inputs.tokens if names[0] == EMBEDDING else inputs.hidden
        for name in names:
            layer = self.layers[name]
            state = layer(state, inputs.targets) if name == HEAD else layer(state)
        return state

    def backward(
        self, names: Sequence[str], output: torch.Tensor, inputs: Inputs
    ) -> None:
        output.backward(None if names[-1] == HEAD else inputs.gradient)
        for name in set(names):
            self._sums[name].accumulate()
