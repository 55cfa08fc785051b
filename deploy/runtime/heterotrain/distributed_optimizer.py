"""Adam with its state in parts over the ranks that hold the same numbers (ZeRO, stage 1).

Of every piece of a tensor that k ranks have, each looks after a k-th of the numbers: it has
their moments and master copies, moves them, and hands the new weights to the others.
"""

from collections import defaultdict

import torch
import torch.distributed as dist

from .exchange import BUCKET_BYTES
from .optimizer import Optimizer


class DistributedOptimizer(Optimizer):
    """`portions`: exchange.portions of this rank; `process_groups`: of their ranks."""

    def __init__(self, settings, parameters, portions, process_groups, rank, tp):
        self.portions = portions
        self.process_groups = process_groups
        self.rank, self.tp = rank, tp
        self.portions_of = defaultdict(list)
        self.shared = defaultdict(list)  # ranks -> portions
        for portion in portions:
            self.portions_of[portion.piece.spec.key].append(portion)
            if len(portion.ranks) > 1:
                self.shared[portion.ranks].append(portion)
        super().__init__(settings, parameters)

    # ---- numbers of a portion ----
    def _view(self, portion, tensors):
        tensor = tensors[portion.piece.spec.key]
        return portion.piece.of(
            getattr(tensor, "data", tensor), self.tp.size, self.tp.rank
        )

    def _own(self, portion, tensors):
        """This rank's part, flat; a view where the piece is contiguous."""
        flat = self._view(portion, tensors).reshape(-1)
        start, stop = portion.bounds(flat.numel(), portion.ranks.index(self.rank))
        return flat[start:stop]

    # ---- state ----
    def make_state(self):
        self.state = {
            portion: {
                part: torch.zeros_like(self._own(portion, self.gradients))
                for part in self.parts
            }
            for portion in self.portions
        }

    def gather(self, key):
        whole = {part: torch.empty_like(self.gradients[key]) for part in self.parts}
        for portion in self.portions_of[key]:
            for part in self.parts:
                self._share([portion], [self.state[portion][part]], {key: whole[part]})
        return whole

    def keep(self, key, part, tensor):
        for portion in self.portions_of[key]:
            self.state[portion][part].copy_(self._own(portion, {key: tensor}))

    # ---- a step ----
    @torch.no_grad()
    def step(self, number, factor=1.0):
        moved = {}
        for portion in self.portions:
            state = self.state[portion]
            weight = (
                state["master"] if self.mixed else self._own(portion, self.parameters)
            )
            gradient = self._own(portion, self.gradients) * factor
            decays = len(portion.piece.spec.shape) > 1
            self.move(weight, gradient, state, number, decays)
            moved[portion] = weight
            if len(portion.ranks) == 1:
                self._share([portion], [weight], self.parameters)
        for ranks in sorted(self.shared):
            for bucket in self._buckets(self.shared[ranks]):
                self._share(
                    bucket, [moved[portion] for portion in bucket], self.parameters
                )

    def _buckets(self, portions):
        bucket, size = [], 0
        for portion in portions:
            bucket.append(portion)
            view = self._view(portion, self.parameters)
            size += view.numel() * view.element_size()
            if size >= BUCKET_BYTES:
                yield bucket
                bucket, size = [], 0
        if bucket:
            yield bucket

    def _share(self, portions, parts, tensors):
        """Fills the portions of `tensors` from all ranks' parts, of which this one gives
        `parts`. The portions have the same ranks."""
        views = [self._view(portion, tensors) for portion in portions]
        ranks, dtype = portions[0].ranks, views[0].dtype
        if len(ranks) == 1:
            for view, part in zip(views, parts):
                view.copy_(part.view(view.shape))
            return
        # All give as many bytes: parts are padded to the largest.
        sizes = [-(-view.numel() // len(ranks)) for view in views]
        given = torch.zeros(sum(sizes), dtype=dtype, device=views[0].device)
        for room, part in zip(given.split(sizes), parts):
            room[: part.numel()].copy_(part)
        taken = [torch.empty_like(given) for _ in ranks]
        # As bytes: gloo does not know every type.
        dist.all_gather(
            [each.view(torch.uint8) for each in taken],
            given.view(torch.uint8),
            group=self.process_groups[ranks],
        )
        split = [each.split(sizes) for each in taken]
        for i, (portion, view) in enumerate(zip(portions, views)):
            bounds = [portion.bounds(view.numel(), j) for j in range(len(ranks))]
            rooms = [
                split[j][i][: stop - start] for j, (start, stop) in enumerate(bounds)
            ]
            view.copy_(torch.cat(rooms).view(view.shape))
