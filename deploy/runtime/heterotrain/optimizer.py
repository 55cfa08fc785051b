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
    """`parameters`: {(layer, name): Parameter}, in the order in which all is done.
    `gradients` has the same keys and is what `step` applies."""

    def __init__(self, settings, parameters):
        self.settings = settings
        self.parameters = parameters
        dtype = next(iter(parameters.values())).dtype
        self.mixed = dtype in (torch.bfloat16, torch.float16)
        self.gradients = {key: self._zeros(p) for key, p in parameters.items()}
        self.state = {
            key: {name: self._zeros(p) for name in settings.moments}
            for key, p in parameters.items()
        }
        for key, parameter in parameters.items():
            if self.mixed:
                self.state[key]["master"] = self._zeros(parameter)
            else:
                parameter.grad = self.gradients[key]  # autograd adds to it in place

    def _zeros(self, parameter):
        dtype = torch.float32 if self.mixed else parameter.dtype
        return torch.zeros(parameter.shape, dtype=dtype, device=parameter.device)

    def master(self, key):
        """What is moved: the weights themselves, or their fp32 copy."""
        return self.state[key]["master"] if self.mixed else self.parameters[key].data

    def copy_to_masters(self):
        """After weights were set from outside."""
        if self.mixed:
            for key, parameter in self.parameters.items():
                self.state[key]["master"].copy_(parameter.data)

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
        for key, gradient in self.gradients.items():
            if factor != 1.0:
                gradient.mul_(factor)
            self._move(key, gradient, number)
            if self.mixed:
                self.parameters[key].data.copy_(self.state[key]["master"])

    def _move(self, key, gradient, number):
        settings, weight = self.settings, self.master(key)
        rate = settings.rate(number)
        if settings.weight_decay and weight.dim() > 1:
            weight.mul_(1 - rate * settings.weight_decay)
        if settings.kind == "sgd":
            weight.add_(gradient, alpha=-rate)
            return
        mean, square = (self.state[key][name] for name in settings.moments)
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
