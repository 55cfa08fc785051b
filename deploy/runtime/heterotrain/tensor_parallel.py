"""The collectives of a tensor-parallel group, as functions that gradients pass through.

A layer's input is the same on all ranks of the group. `enter` stands before a matrix that
is cut by columns, `leave` behind one that is cut by rows (Megatron-LM's f and g):

    enter   forward: nothing         backward: sum over the group
    leave   forward: sum over group  backward: nothing
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class TensorParallel:
    """A rank's place in its group; `group` is None where there is nobody else."""

    rank: int = 0
    size: int = 1
    group: Any = None

    def all_reduce(self, tensor, operation=dist.ReduceOp.SUM):
        """Reduces `tensor` in place over the group, and returns it."""
        if self.size > 1:
            dist.all_reduce(tensor, operation, group=self.group)
        return tensor

    def enter(self, tensor):
        return _Enter.apply(tensor, self) if self.size > 1 else tensor

    def leave(self, tensor):
        return _Leave.apply(tensor, self) if self.size > 1 else tensor


ALONE = TensorParallel()


class _Enter(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor, tp):
        context.tp = tp
        return tensor.view_as(tensor)

    @staticmethod
    def backward(context, gradient):
        return (
            context.tp.all_reduce(gradient.clone(memory_format=torch.contiguous_format)),
            None,
        )


class _Leave(torch.autograd.Function):
    @staticmethod
    def forward(context, tensor, tp):
        return tp.all_reduce(tensor.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(context, gradient):
        return gradient, None


class _CrossEntropy(torch.autograd.Function):
    """Sum of -log softmax(logits)[target], with the vocabulary cut over the group."""

    @staticmethod
    def forward(context, logits, targets, first, tp):
        exact = torch.float64 if logits.dtype == torch.float64 else torch.float32
        scores = logits.to(exact)
        scores = scores - tp.all_reduce(
            scores.max(-1).values, dist.ReduceOp.MAX
        ).unsqueeze(-1)
        local = targets - first
        ours = (local >= 0) & (local < logits.shape[-1])
        local = local.clamp(0, logits.shape[-1] - 1)
        at_target = scores.gather(-1, local.unsqueeze(-1)).squeeze(-1) * ours
        scores.exp_()
        both = tp.all_reduce(torch.stack((scores.sum(-1), at_target)))
        scores /= both[0].unsqueeze(-1)
        context.save_for_backward(scores, local, ours)
        context.dtype = logits.dtype
        return (both[0].log() - both[1]).sum()

    @staticmethod
    def backward(context, gradient):
        softmax, local, ours = context.saved_tensors
        wanted = ours.unsqueeze(-1).to(softmax.dtype)
        # In place, as it is the largest tensor of the model and passed once.
        softmax.scatter_add_(-1, local.unsqueeze(-1), -wanted).mul_(gradient)
        return softmax.to(context.dtype), None, None, None


def cross_entropy_sum(logits, targets, first, tp):
    """Summed over all tokens, on every rank: `logits` [..., own share of the vocabulary],
    which begins at row `first`; `targets` [...] count over the whole vocabulary."""
    return _CrossEntropy.apply(logits, targets, first, tp)
