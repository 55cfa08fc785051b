"""The order of one stage's work in an iteration: one forward, one backward (1F1B), as
Megatron-LM does it without interleaving, and as the planner simulates it.

Stage s of S runs S-s-1 forwards, then alternates, then drains what is in flight. A send
and a receive between two stages that fall together are one exchange on both sides:
whatever blocks until its partner has come cannot deadlock.
"""

from typing import NamedTuple, Optional


class Forward(NamedTuple):
    micro_batch: int


class Backward(NamedTuple):
    micro_batch: int


class WithNext(NamedTuple):
    """Exchange with the stage after this one: outputs go, gradients come."""

    send: Optional[int]  # micro-batch, or None
    receive: Optional[int]


class WithPrevious(NamedTuple):
    """Exchange with the stage before this one: gradients go, inputs come."""

    send: Optional[int]
    receive: Optional[int]


def one_forward_one_backward(stage, stage_count, micro_batches):
    """The actions of stage `stage`. Those with a stage that does not exist are left out."""
    for action in _all_actions(stage_count - stage - 1, micro_batches):
        if isinstance(action, WithNext) and stage == stage_count - 1:
            continue
        if isinstance(action, WithPrevious) and stage == 0:
            continue
        yield action


def _all_actions(stages_behind, micro_batches):
    warm_up = min(stages_behind, micro_batches)
    steady = micro_batches - warm_up
    for m in range(warm_up):
        yield WithPrevious(None, m)
        yield Forward(m)
        yield WithNext(m, None)
    if steady:
        yield WithPrevious(None, warm_up)
    for m in range(steady):
        ahead = warm_up + m
        yield Forward(ahead)
        yield WithNext(ahead, m)
        yield Backward(m)
        yield WithPrevious(m, ahead + 1 if m + 1 < steady else None)
    for m in range(steady, micro_batches):
        yield WithNext(None, m)
        yield Backward(m)
        yield WithPrevious(m, None)
