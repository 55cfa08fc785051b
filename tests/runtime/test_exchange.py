"""heterotrain.exchange: every number is summed over all who hold it, and given once."""

import unittest

import torch

import models
from heterotrain import config, exchange, plan as plans
from random_plan import random_plan


class Exchanges(unittest.TestCase):
    def test_sums_over_pieces_are_sums_over_holders(self):
        for seed in range(12):
            values = models.LLAMA if seed % 2 else models.GPT2
            found = config.from_dict(values)
            plan = plans.from_dict(
                random_plan(seed, models.LAYERS, 2 + seed % 6, (1, 2, 4))
            )
            self._check(plan, found)

    def _check(self, plan, found):
        """Each replica's gradient of each number is 1, cut over its ranks; where ranks of a
        replica share a key-value head, each has a part of it. The sum must be the number
        of replicas everywhere."""
        shared = list(exchange.shared_pieces(plan, found))
        for spec, holders in exchange.tensors_and_holders(plan, found):
            shards = {}
            for holder in holders:
                for index, rank in enumerate(holder.ranks):
                    shape = spec.shard_shape(holder.tp, index)
                    shards[rank] = (holder.tp, index, torch.ones(shape))
                if spec.split_dim is not None:
                    self._split_shared_heads(spec, holder, shards)
            for piece in (each for each in shared if each.piece.spec.key == spec.key):
                views = [
                    piece.piece.of(shards[r][2], *shards[r][:2]) for r in piece.ranks
                ]
                given = [v for v, r in zip(views, piece.ranks) if r in piece.givers]
                total = sum(view.clone() for view in given)
                for view in views:
                    view.copy_(total)
            for tp, index, shard in shards.values():
                self.assertTrue(
                    (shard - len(holders)).abs().max() < 1e-6, (spec, tp, index)
                )

    def _split_shared_heads(self, spec, holder, shards):
        for piece in exchange.cut(spec, {holder.tp}):
            having = [i for i in range(holder.tp) if piece.is_in(holder.tp, i)]
            for index in having:
                shard = shards[holder.ranks[index]][2]
                piece.of(shard, holder.tp, index).fill_(1 / len(having))

    def test_every_number_is_counted_once(self):
        for seed in range(12):
            found = config.from_dict(models.LLAMA if seed % 2 else models.GPT2)
            plan = plans.from_dict(
                random_plan(seed, models.LAYERS, 2 + seed % 6, (1, 2, 4))
            )
            counted = 0
            for rank in range(plan.world_size):
                for piece in exchange.counted_pieces(plan, found, rank):
                    shape = list(piece.spec.shape)
                    if piece.spec.split_dim is not None:
                        shape[piece.spec.split_dim] = piece.stop - piece.start
                    counted += torch.Size(shape).numel()
            everything = sum(
                torch.Size(spec.shape).numel()
                for spec, _ in exchange.tensors_and_holders(plan, found)
            )
            self.assertEqual(counted, everything)

    def test_one_holder_of_equal_ranks_exchanges_nothing(self):
        found = config.from_dict(models.GPT2)
        plan = plans.from_dict(random_plan(18, models.LAYERS, 2, (1, 2)))
        self.assertEqual([r.tp for _, _, r in plan.replicas()], [2])
        self.assertEqual(list(exchange.shared_pieces(plan, found)), [])
