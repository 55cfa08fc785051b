"""One rank's training step: its stage's layers, driven by the schedule.

An iteration is: forward and backward passes of all micro-batches (schedule.py), the sum of
gradients over all who hold a layer (exchange.py), one small sum over all ranks that tells
everybody the loss and who wants to stop, and the optimizer's step.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from . import data as samples
from .distributed_optimizer import DistributedOptimizer
from .exchange import GradientExchange, counted_pieces, groups, portions, shared_pieces
from .model import build_layer
from .optimizer import LossScale, Optimizer
from .schedule import Backward, Forward, WithNext, one_forward_one_backward
from .tensor_parallel import TensorParallel
from .transfer import Boundary


@dataclass(frozen=True)
class Options:
    """What a step depends on, beside plan and model."""

    sequence_length: int
    dtype: torch.dtype
    device: torch.device
    timeout: timedelta  # of a collective, after which it fails


@dataclass(frozen=True)
class StepResult:
    loss: float
    wanted: bool  # some rank wants a checkpoint now
    overflowed: bool  # fp16: nothing was changed


@dataclass(frozen=True)
class Groups:
    """Process groups of a rank. Making them is collective, in one order on all ranks."""

    control: object  # all ranks, on CPU
    tp: TensorParallel
    gradients: dict  # ranks -> process group

    @classmethod
    def make(cls, plan, pieces, rank, timeout):
        control = dist.new_group(backend="gloo", timeout=timeout)
        tp = TensorParallel()
        for _, _, replica in plan.replicas():
            group = None
            if replica.tp > 1:
                group = dist.new_group(list(replica.ranks), timeout=timeout)
            if rank in replica.ranks:
                tp = TensorParallel(replica.ranks.index(rank), replica.tp, group)
        gradients = {}
        for ranks in groups(pieces):
            group = dist.new_group(list(ranks), timeout=timeout)
            if rank in ranks:
                gradients[ranks] = group
        return cls(control, tp, gradients)


class Engine:
    def __init__(self, plan, config, settings, options, data, speed, rank):
        place = plan.place_of(rank)
        self.plan, self.config, self.options = plan, config, options
        self.data, self.speed, self.rank, self.place = data, speed, rank, place
        self.pipeline = plan.pipelines[place.pipeline]
        self.stage = self.pipeline.stages[place.stage]
        self.replica = self.stage.replicas[place.replica]
        pieces = list(shared_pieces(plan, config))
        self.groups = Groups.make(plan, pieces, rank, options.timeout)
        self.tp = self.groups.tp
        self.layers = self._build_layers()
        self.specs = {spec.key: spec for layer in self.layers for spec in layer.specs}
        self.optimizer = self._make_optimizer(settings)
        self.loss_scale = LossScale(options.dtype == torch.float16)
        self.exchange = GradientExchange(pieces, self.groups.gradients, rank, self.tp)
        self.counted = list(counted_pieces(plan, config, rank))
        self.next = self._boundary(place.stage + 1)
        self.previous = self._boundary(place.stage - 1)
        self.actions = list(
            one_forward_one_backward(
                place.stage, len(self.pipeline.stages), self.pipeline.micro_batches
            )
        )

    # ---- what this rank holds ----
    def _build_layers(self):
        layers = [
            build_layer(
                self.config,
                layer,
                self.tp,
                self.options.dtype,
                self.options.device,
                self.stage.recompute,
            )
            for layer in self.stage.layers
        ]
        if self.config.tied_embedding and self.is_first and self.is_last:
            layers[-1].word_weight = layers[0].word_weight
        return layers

    def _parameters(self):
        return {
            spec.key: layer.get_parameter(spec.name)
            for layer in self.layers
            for spec in layer.specs
        }

    def _make_optimizer(self, settings):
        parameters = self._parameters()
        if settings.kind != "adam-distributed":
            return Optimizer(settings, parameters)
        own = list(portions(self.plan, self.config, self.rank))
        return DistributedOptimizer(
            settings, parameters, own, self.groups.gradients, self.rank, self.tp
        )

    def _boundary(self, stage):
        if not 0 <= stage < len(self.pipeline.stages):
            return None
        return Boundary(self.replica, self.pipeline.stages[stage], self.tp)

    @property
    def is_first(self):
        return self.stage.first_layer == 0

    @property
    def is_last(self):
        return self.config.head_layer in self.stage.layers

    def initialise(self, seed):
        for layer in self.layers:
            layer.initialise(seed)
        self.optimizer.copy_to_masters()

    # ---- a step ----
    def step(self, number, first_sample, wants_checkpoint=False):
        """Step 1, 2, ... of all ranks at once; `first_sample`: of its global batch."""
        self.optimizer.zero_gradients()
        loss = self._run_schedule(first_sample)
        self.exchange.sum(self.optimizer.gradients)
        squares, overflowed = self._gradient_facts()
        # The loss is the same on all ranks of a replica; its first one tells it.
        told = loss.item() if self.tp.rank == 0 else 0.0
        facts = torch.tensor(
            [told, float(wants_checkpoint), float(overflowed), squares],
            dtype=torch.float64,
        )
        dist.all_reduce(facts, group=self.groups.control)
        loss, wanted, overflowed, squares = facts.tolist()
        if not overflowed:
            factor = self.optimizer.settings.gradient_factor(
                squares**0.5, self.loss_scale.value
            )
            self.optimizer.step(number, factor)
        self.loss_scale.update(overflowed > 0)
        return StepResult(loss, wanted > 0, overflowed > 0)

    def _gradient_facts(self):
        """(this rank's part of the squared norm, whether a gradient is not finite); only
        what is needed is computed."""
        gradients = self.optimizer.gradients
        if self.loss_scale.enabled:
            finite = torch.stack([each.isfinite().all() for each in gradients.values()])
            if not finite.all().item():
                return 0.0, True
        if not self.optimizer.settings.clip_norm:
            return 0.0, False
        squares = torch.zeros((), dtype=torch.float64, device=self.options.device)
        for piece in self.counted:
            view = piece.of(gradients[piece.spec.key], self.tp.size, self.tp.rank)
            squares += view.double().square().sum()
        return squares.item(), False

    def _run_schedule(self, first_sample):
        kept = {}  # micro-batch -> (input, output)
        received = None
        loss = torch.zeros((), dtype=torch.float64, device=self.options.device)
        for action in self.actions:
            if isinstance(action, Forward):
                output = self._forward(action.micro_batch, received, first_sample)
                kept[action.micro_batch] = (received, output)
                if self.is_last:
                    loss += output.detach()
            elif isinstance(action, Backward):
                gradient = self._backward(*kept.pop(action.micro_batch), received)
            elif isinstance(action, WithNext):
                outgoing = None if action.send is None else kept[action.send][1].detach()
                received = self._receive(self.next, outgoing, action.receive)
            else:
                outgoing = None if action.send is None else gradient
                received = self._receive(self.previous, outgoing, action.receive)
        return loss

    def _receive(self, boundary, outgoing, micro_batch):
        incoming = None
        if micro_batch is not None:
            size = (
                self.replica.micro_batch_size,
                self.options.sequence_length,
                self.config.hidden_size,
            )
            incoming = torch.empty(
                size, dtype=self.options.dtype, device=self.options.device
            )
        boundary.exchange(None if outgoing is None else outgoing.contiguous(), incoming)
        return incoming

    def _forward(self, micro_batch, received, first_sample):
        """Hidden states, or on the last stage this micro-batch's part of the mean loss of
        the global batch."""
        begun = time.monotonic()
        inputs, targets = self._tokens(micro_batch, first_sample)
        hidden = inputs if self.is_first else received.requires_grad_()
        for layer in self.layers:
            if layer.index == self.config.head_layer:
                tokens = self.plan.global_batch_size * self.options.sequence_length
                hidden = layer(hidden, targets) / tokens
            else:
                hidden = layer(hidden)
        self.speed.wait("forward", begun)
        return hidden

    def _tokens(self, micro_batch, first_sample):
        if not (self.is_first or self.is_last):
            return None, None
        first = (
            first_sample
            + self.pipeline.first_sample
            + micro_batch * self.pipeline.micro_batch_size
            + self.replica.first_sample
        )
        tokens = samples.batch(self.data, first, self.replica.micro_batch_size)
        return tuple(part.to(self.options.device) for part in tokens)

    def _backward(self, inputs, output, gradient):
        """The gradient of the stage's input; None on the first stage."""
        begun = time.monotonic()
        if self.is_last:
            (output * self.loss_scale.value).backward()
        else:
            output.backward(gradient)
        self.optimizer.accumulate()
        self.speed.wait("backward", begun)
        return None if self.is_first else inputs.grad
