"""Which ranks sum which gradients, and the sums.

Every tensor's gradient is the sum over all replicas, of all pipelines, that hold its
layer; of a tied embedding, over the holders of the first and of the last layer. Loss and
gradients are scaled by the global batch beforehand, so the sum is weighted by samples.
Where holders have different tensor-parallel degrees, the tensor is cut into the pieces
that no shard cuts, and each piece is summed by the ranks that have it: nothing is padded.

Sets of ranks are worked on in one order everywhere, so no two wait for each other.
"""

from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.distributed as dist

from .model import layer_specs
from .sharding import Piece, cut

# Pieces are copied into one buffer of about so many bytes for each collective: large
# enough for full bandwidth, small beside the gradients.
BUCKET_BYTES = 32 << 20


@dataclass(frozen=True)
class SharedPiece:
    """A piece whose gradient the `ranks` sum; of ranks that hold equal copies one gives it
    (`givers`), all take it."""

    piece: Piece
    ranks: tuple
    givers: frozenset


def tensors_and_holders(plan, config):
    """[(spec, replicas)] of every tensor of the model, in order of layers."""
    found = []
    for layer in range(config.layer_count):
        for spec in layer_specs(config, layer):
            if spec.layer != layer:
                continue  # a tied head's weight is layer 0's
            holders = plan.holders(layer)
            if config.tied_embedding and spec.key == (0, "word_weight"):
                also = plan.holders(config.head_layer)
                holders = holders + [r for r in also if r not in holders]
            found.append((spec, holders))
    return found


def _share_whole(spec, holders):
    """A tensor that no rank has a part of: ranks of a replica compute equal gradients."""
    piece = cut(spec, ())[0]
    if len(holders) == 1:
        return
    if len({holder.tp for holder in holders}) == 1:
        for ranks in zip(*(holder.ranks for holder in holders)):
            yield SharedPiece(piece, tuple(sorted(ranks)), frozenset(ranks))
        return
    ranks = tuple(sorted(rank for holder in holders for rank in holder.ranks))
    yield SharedPiece(piece, ranks, frozenset(holder.ranks[0] for holder in holders))


def _share_pieces(spec, holders):
    for piece in cut(spec, {holder.tp for holder in holders}):
        ranks = tuple(
            sorted(
                rank
                for holder in holders
                for index, rank in enumerate(holder.ranks)
                if piece.is_in(holder.tp, index)
            )
        )
        if len(ranks) > 1:
            yield SharedPiece(piece, ranks, frozenset(ranks))


def shared_pieces(plan, config):
    """Every piece that more than one rank must sum."""
    for spec, holders in tensors_and_holders(plan, config):
        share = _share_whole if spec.split_dim is None else _share_pieces
        yield from share(spec, holders)


def counted_pieces(plan, config, rank):
    """The pieces that this rank counts in sums over the whole model: over all ranks, every
    number of every tensor once."""
    for spec, holders in tensors_and_holders(plan, config):
        owner = holders[0]
        for piece in cut(spec, {owner.tp}):
            index = next(i for i in range(owner.tp) if piece.is_in(owner.tp, i))
            if owner.ranks[index] == rank:
                yield piece


@dataclass(frozen=True)
class Portion:
    """A piece of a tensor that this rank has, and all ranks that have it: each looks after
    an equal part of its numbers, in the order of ranks."""

    piece: Piece
    ranks: tuple

    def bounds(self, count, index):
        """Of `count` numbers, those of the index-th rank: (start, stop)."""
        return count * index // len(self.ranks), count * (index + 1) // len(self.ranks)


def portions(plan, config, rank):
    """All that a rank has, in one order on all ranks."""
    shared_by = {
        (shared.piece.spec.key, shared.piece.start): shared.ranks
        for shared in shared_pieces(plan, config)
        if rank in shared.ranks
    }
    found = tensors_and_holders(plan, config)
    for spec, holders in sorted(found, key=lambda each: each[0].key):
        own = next((holder for holder in holders if rank in holder.ranks), None)
        if own is None:
            continue
        for piece in cut(spec, {holder.tp for holder in holders}):
            if piece.is_in(own.tp, own.ranks.index(rank)):
                yield Portion(piece, shared_by.get((spec.key, piece.start), (rank,)))


def groups(pieces):
    """The sets of ranks among shared pieces, in the order in which all make them."""
    return sorted({piece.ranks for piece in pieces})


class GradientExchange:
    """One rank's part in the sums. `process_groups` has those of `groups` that it is in."""

    def __init__(self, pieces, process_groups, rank, tp):
        self.process_groups = process_groups
        self.rank, self.tp = rank, tp
        self.pieces = defaultdict(list)
        for shared in pieces:
            if rank in shared.ranks:
                self.pieces[shared.ranks].append(shared)

    def sum(self, gradients):
        """Sums in place; `gradients` has a tensor for each key of this rank's."""
        for ranks in sorted(self.pieces):
            bucket, size = [], 0
            for shared in self.pieces[ranks]:
                gradient = gradients[shared.piece.spec.key]
                view = shared.piece.of(gradient, self.tp.size, self.tp.rank)
                if self.rank not in shared.givers:
                    view.zero_()
                bucket.append(view)
                size += view.numel() * view.element_size()
                if size >= BUCKET_BYTES:
                    _sum_bucket(bucket, self.process_groups[ranks])
                    bucket, size = [], 0
            if bucket:
                _sum_bucket(bucket, self.process_groups[ranks])


def _sum_bucket(views, group):
    if len(views) == 1 and views[0].is_contiguous():
        dist.all_reduce(views[0], group=group)
        return
    flat = torch.cat([view.reshape(-1) for view in views])
    dist.all_reduce(flat, group=group)
    at = 0
    for view in views:
        view.copy_(flat[at : at + view.numel()].view(view.shape))
        at += view.numel()
