"""The same training in one process on the CPU, sample by sample, without pipelines,
replicas or tensor parallelism: what every plan must come to. Takes train's arguments, of
HETPLAN_FILE the global batch, precision and optimizer, and writes train's checkpoints.
"""

import math
import sys
import time

import torch

from . import arguments, checkpoint, data as samples, plan as plans
from .model import build_layer
from .optimizer import LossScale, Optimizer
from .tensor_parallel import ALONE
from .train import WRONG_INPUT, Report


class Reference:
    def __init__(self, options, plan, config):
        self.options, self.config = options, config
        self.plan = plans.of_one_gpu(plan)
        self.length = arguments.sequence_length(options, config, plan)
        self.data = arguments.open_data(options, config, plan)
        dtype = arguments.dtype(options, plan)
        self.layers = [
            build_layer(config, i, dtype=dtype) for i in range(config.layer_count)
        ]
        if config.tied_embedding:
            self.layers[-1].word_weight = self.layers[0].word_weight
        for layer in self.layers:
            layer.initialise(options.seed)
        self.specs = {spec.key: spec for layer in self.layers for spec in layer.specs}
        parameters = {
            spec.key: layer.get_parameter(spec.name)
            for layer in self.layers
            for spec in layer.specs
        }
        self.optimizer = Optimizer(arguments.settings(options, plan), parameters)
        self.optimizer.copy_to_masters()
        self.loss_scale = LossScale(dtype == torch.float16)

    def loss(self, number):
        """Of one sample, as a part of the mean over the global batch."""
        hidden, targets = samples.batch(self.data, number, 1)
        for layer in self.layers[:-1]:
            hidden = layer(hidden)
        return self.layers[-1](hidden, targets) / (
            self.plan.global_batch_size * self.length
        )

    def step(self, number):
        self.optimizer.zero_gradients()
        total = 0.0
        first = (number - 1) * self.plan.global_batch_size
        for sample in range(first, first + self.plan.global_batch_size):
            loss = self.loss(sample)
            (loss * self.loss_scale.value).backward()
            self.optimizer.accumulate()
            total += loss.item()
        norm = sum(
            g.double().square().sum().item() for g in self.optimizer.gradients.values()
        )
        self._move(number, norm**0.5)
        return total

    def _move(self, number, norm):
        overflowed = self.loss_scale.enabled and not math.isfinite(norm)
        if not overflowed:
            factor = self.optimizer.settings.gradient_factor(norm, self.loss_scale.value)
            self.optimizer.step(number, factor)
        self.loss_scale.update(overflowed)

    def save(self, step):
        holding = checkpoint.Holding(
            self.plan, self.config, 0, ALONE, self.specs, self.optimizer
        )
        progress = checkpoint.Progress(
            step,
            step * self.plan.global_batch_size,
            self.loss_scale.value,
            self.loss_scale.good_steps,
        )
        checkpoint.save(
            self.options.checkpoint_dir,
            holding,
            progress,
            {},
            self.options.keep_checkpoints,
        )


class _Result:
    overflowed = False

    def __init__(self, loss):
        self.loss = loss


def run(options):
    plan = arguments.read_plan()
    reference = Reference(options, plan, arguments.read_model(options, plan))
    report = Report(0, options.report, plan.global_batch_size)
    for number in range(1, options.steps + 1):
        begun = time.monotonic()
        loss = reference.step(number)
        report.step(number, _Result(loss), time.monotonic() - begun)
        every = options.checkpoint_every
        if options.checkpoint_dir and (
            number == options.steps or (every and number % every == 0)
        ):
            reference.save(number)


def main():
    try:
        run(arguments.parser(__doc__.splitlines()[0]).parse_args())
    except WRONG_INPUT as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
