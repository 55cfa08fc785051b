"""How the tensors of a layer are cut between the ranks of a tensor-parallel group.

A tensor is cut along one dimension, or not at all. A fused tensor has sections along that
dimension ([query; key; value], [gate; up]), each of which is cut by itself: a rank holds
its piece of every section, one after the other. Sections are cut at multiples of a unit
(a head), as evenly as that goes: of n units rank i of t holds n*i/t .. n*(i+1)/t, rounded
down. If there are fewer units than ranks, finer units are cut; if these are too few too
(key-value heads), several ranks hold the same unit, and the gradient of it is the sum of
theirs.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import torch


@dataclass(frozen=True)
class Section:
    length: int
    unit: int = 1
    finer_unit: Optional[int] = None

    def range_of(self, tp_size, tp_rank):
        """(start, stop) inside the section of what rank `tp_rank` of `tp_size` holds."""
        unit = self.unit
        if self.length // unit < tp_size and self.finer_unit:
            unit = self.finer_unit
        count = self.length // unit
        first = count * tp_rank // tp_size
        last = max(count * (tp_rank + 1) // tp_size, first + 1)
        return first * unit, last * unit


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of the model: `layer` and `name` are its identity in plans' exchange and in
    checkpoints. The tied head's weight is layer 0's."""

    layer: int
    name: str
    shape: Tuple[int, ...]
    split_dim: Optional[int] = None  # None: every rank holds all of it
    sections: Tuple[Section, ...] = ()
    initial: str = "normal"  # "normal", "residual" (scaled by depth), "ones", "zeros"

    @property
    def key(self):
        return self.layer, self.name

    def ranges(self, tp_size, tp_rank):
        """The (start, stop) along split_dim that a rank holds, one a section, in order."""
        ranges, base = [], 0
        for section in self.sections:
            start, stop = section.range_of(tp_size, tp_rank)
            ranges.append((base + start, base + stop))
            base += section.length
        return ranges

    def shard_shape(self, tp_size, tp_rank):
        if self.split_dim is None:
            return self.shape
        shape = list(self.shape)
        shape[self.split_dim] = sum(b - a for a, b in self.ranges(tp_size, tp_rank))
        return tuple(shape)


def split_tensor(layer, name, shape, dim, sections=None, **rest):
    """A TensorSpec that is cut along `dim`, of one section unless said otherwise."""
    sections = sections or (Section(shape[dim]),)
    assert sum(section.length for section in sections) == shape[dim]
    return TensorSpec(layer, name, tuple(shape), dim, tuple(sections), **rest)


@dataclass(frozen=True)
class Piece:
    """A part of a tensor that a set of ranks holds as a whole: start .. stop of the whole
    tensor along split_dim, which rank r of a group of size t finds at local_start(t, r).
    """

    spec: TensorSpec
    start: int
    stop: int

    def local_start(self, tp_size, tp_rank):
        """Where a shard has the piece, along split_dim; None: it has not."""
        offset = 0
        for start, stop in self.spec.ranges(tp_size, tp_rank):
            if start <= self.start and self.stop <= stop:
                return offset + self.start - start
            offset += stop - start
        return None

    def is_in(self, tp_size, tp_rank):
        return (
            self.spec.split_dim is None or self.local_start(tp_size, tp_rank) is not None
        )

    def of(self, shard, tp_size, tp_rank):
        """The view of the piece in a rank's shard."""
        if self.spec.split_dim is None:
            return shard
        start = self.local_start(tp_size, tp_rank)
        return shard.narrow(self.spec.split_dim, start, self.stop - self.start)


def cut(spec, tp_sizes):
    """The largest pieces that no shard of any of these degrees cuts, in order."""
    if spec.split_dim is None:
        return [Piece(spec, 0, 0)]
    points = set()
    for tp_size in set(tp_sizes):
        for tp_rank in range(tp_size):
            for start, stop in spec.ranges(tp_size, tp_rank):
                points.update((start, stop))
    points = sorted(points)
    return [Piece(spec, start, stop) for start, stop in zip(points, points[1:])]


def take_shard(whole, spec, tp_size, tp_rank):
    """A copy of what a rank holds of the whole tensor."""
    if spec.split_dim is None or tp_size == 1:
        return whole.clone()
    parts = [
        whole.narrow(spec.split_dim, a, b - a) for a, b in spec.ranges(tp_size, tp_rank)
    ]
    return torch.cat(parts, spec.split_dim)
