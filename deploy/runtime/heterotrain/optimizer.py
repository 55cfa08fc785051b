"""Adam, AdamW and SGD over a rank's shards, and what they hold beside the weights.

fp64 and fp32 are trained as they are. Weights of 16 bits have a master copy in fp32, which
is what the optimizer moves, and gradients are added up in fp32 over the micro-batches.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Settings:
    kind: str = "adam"  # of plan.OPTIMIZERS
    learning_rate: float = 1e-3
    warmup_steps: int = 0
    weight_decay: float = 0.0  # apart from the gradient (AdamW), of matrices alone
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_norm: float = 0.0  # 0: gradients are not clipped

    def rate(self, step):
        """The learning rate of step 1, 2, ..."""
        return self.learning_rate * min(1.0, step / max(1, self.warmup_steps))

    def gradient_factor(self, norm, loss_scale):
        """What gradients of that norm, of a loss times loss_scale, are multiplied with."""
        factor = 1.0 / loss_scale
        if self.clip_norm and norm * factor > self.clip_norm:
            factor = self.clip_norm / norm
        return factor

    @property
    def moments(self):
        return () if self.kind == "sgd" else ("exp_avg", "exp_avg_sq")


class Optimizer:
    """`parameters`: {(layer, name): Parameter}. `gradients` has the same keys and is what
    `step` applies."""

    def __init__(self, settings, parameters):
        self.settings = settings
        self.parameters = parameters
        dtype = next(iter(parameters.values())).dtype
        self.mixed = dtype in (torch.bfloat16, torch.float16)
        self.exact = torch.float32 if self.mixed else dtype
        # What is held of each parameter, and goes into checkpoints.
        self.parts = settings.moments + (("master",) if self.mixed else ())
        self.gradients = {
            key: torch.zeros_like(p, dtype=self.exact, requires_grad=False)
            for key, p in parameters.items()
        }
        if not self.mixed:
            for key, parameter in parameters.items():
                parameter.grad = self.gradients[key]  # autograd adds to it in place
        self.make_state()

    # ---- state: all of it here, in parts over ranks in distributed_optimizer ----
    def make_state(self):
        self.state = {
            key: {part: torch.zeros_like(gradient) for part in self.parts}
            for key, gradient in self.gradients.items()
        }

    def gather(self, key):
        """{part: tensor} of a parameter. Collective, in the order of keys, where the state
        is in parts over ranks."""
        return self.state[key]

    def keep(self, key, part, tensor):
        """Takes what `gather` gave."""
        self.state[key][part].copy_(tensor)

    def copy_to_masters(self):
        """After weights were set from outside."""
        if self.mixed:
            for key, parameter in self.parameters.items():
                self.keep(key, "master", parameter.data)

    # ---- a step ----
    def zero_gradients(self):
        for gradient in self.gradients.values():
            gradient.zero_()

    def accumulate(self):
        """After each backward pass: adds what came to `gradients`."""
        if not self.mixed:
            return
        for key, parameter in self.parameters.items():
            if parameter.grad is not None:
                self.gradients[key].add_(parameter.grad)
                parameter.grad = None

    @torch.no_grad()
    def step(self, number, factor=1.0):
        """Step 1, 2, ... with gradients times `factor`."""
        for key, parameter in self.parameters.items():
            state = self.state[key]
            weight = state["master"] if self.mixed else parameter.data
            gradient = self.gradients[key].mul_(factor)
            self.move(weight, gradient, state, number, decays=parameter.dim() > 1)
            if self.mixed:
                parameter.data.copy_(weight)

    def move(self, weight, gradient, state, number, decays):
        """One step of numbers that belong together, in place."""
        settings = self.settings
        rate = settings.rate(number)
        if settings.weight_decay and decays:
            weight.mul_(1 - rate * settings.weight_decay)
        if settings.kind == "sgd":
            weight.add_(gradient, alpha=-rate)
            return
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(settings.beta1).add_(gradient, alpha=1 - settings.beta1)
        square.mul_(settings.beta2).addcmul_(gradient, gradient, value=1 - settings.beta2)
        root = (square / (1 - settings.beta2**number)).sqrt_().add_(settings.epsilon)
        weight.addcdiv_(mean, root, value=-rate / (1 - settings.beta1**number))


class LossScale:
    """What the loss is multiplied with so that fp16 gradients do not vanish: halved when
    one overflows, and that step left out; doubled after GROWTH_STEPS good ones."""

    START = 2.0**16
    GROWTH_STEPS = 2000

    def __init__(self, enabled):
        self.enabled = enabled
        self.value = self.START if enabled else 1.0
        self.good_steps = 0

    def restore(self, value, good_steps):
        """As it was when a checkpoint was written."""
        if self.enabled:
            self.value, self.good_steps = value, good_steps

    def update(self, overflowed):
        if not self.enabled:
            return
        self.good_steps = 0 if overflowed else self.good_steps + 1
        if overflowed:
            self.value = max(1.0, self.value / 2)
        elif self.good_steps == self.GROWTH_STEPS:
            self.value *= 2
            self.good_steps = 0
