"""Whether measured times repeat. A round measures everything once, each time as the median of
several iterations. Rounds are added until the last few of them agree; what they then say is
their median. If they never agree, there is no number to be had: Unsteady.

Agreeing means that largest and smallest of those rounds differ by at most a share (5 %) of the
median. Layers that take less than a hundredth of the model's time are not held to more than
that: the allowance of each is the share of its median or of that hundredth, whichever is more.
No torch and no clock here.
"""
import statistics
from dataclasses import dataclass
from typing import Callable, List, Sequence

# The part of the model's time below which a layer's own jitter does not matter.
SMALL_PART = 0.01


class Unsteady(Exception):
    """The rounds do not agree; the message says which time it was."""


@dataclass(frozen=True)
class Rule:
    rounds: int = 5  # so many must agree
    most_rounds: int = 20  # after so many it is given up
    share: float = 0.05  # by which they may differ


@dataclass(frozen=True)
class Timed:
    """Something that is timed: "block, forward", of which the model has `count`."""

    name: str
    count: int


@dataclass(frozen=True)
class Steady:
    seconds: List[float]  # of each, the median over the rounds
    spread: float  # the largest difference, as a share
    rounds: int  # that it took


def _medians(rounds: Sequence[Sequence[float]]) -> List[float]:
    return [statistics.median(column) for column in zip(*rounds)]


def _ranges(rounds: Sequence[Sequence[float]]) -> List[float]:
    return [max(column) - min(column) for column in zip(*rounds)]


def _weights(timed: Sequence[Timed], medians: Sequence[float]) -> List[float]:
    """The time of which each may differ by the share."""
    total = sum(what.count * median for what, median in zip(timed, medians))
    return [
        max(median, SMALL_PART * total / what.count)
        for what, median in zip(timed, medians)
    ]


def _spreads(timed: Sequence[Timed], rounds: Sequence[Sequence[float]]) -> List[float]:
    weights = _weights(timed, _medians(rounds))
    return [
        length / weight if weight > 0 else 0.0
        for length, weight in zip(_ranges(rounds), weights)
    ]


def _complaint(timed: Sequence[Timed], rounds: Sequence[Sequence[float]]) -> str:
    spreads = _spreads(timed, rounds)
    worst = spreads.index(max(spreads))
    times = [seconds[worst] * 1e3 for seconds in rounds]
    return (
        f"{timed[worst].name}: the last {len(rounds)} rounds took {min(times):.3f} to "
        f"{max(times):.3f} ms, {100 * spreads[worst]:.0f} % apart"
    )


def measure(
    timed: Sequence[Timed], run_round: Callable[[], Sequence[float]], rule: Rule
) -> Steady:
    """Calls `run_round`, which returns the seconds of each of `timed`, until the last
    `rule.rounds` agree. Raises Unsteady after `rule.most_rounds`."""
    rounds: List[Sequence[float]] = []
    while len(rounds) < rule.most_rounds:
        rounds.append(run_round())
        last = rounds[-rule.rounds :]
        spread = max(_spreads(timed, last))
        if len(last) == rule.rounds and spread <= rule.share:
            return Steady(_medians(last), spread, len(rounds))
    raise Unsteady(
        f"{_complaint(timed, rounds[-rule.rounds:])}; {100 * rule.share:g} % are "
        f"allowed, and {len(rounds)} rounds did not get there. Does anything else use "
        f"these processors, or do their clocks change?"
    )
