"""heterotrain.sharding: who holds which part of a tensor."""

import unittest

import torch

import models
from heterotrain import config, model
from heterotrain.sharding import Section, cut, split_tensor, take_shard


class CutsTensors(unittest.TestCase):
    def test_sections_of_a_fused_tensor_are_cut_by_themselves(self):
        fused = split_tensor(1, "up", (8, 3), 0, (Section(4), Section(4)))
        self.assertEqual(fused.ranges(2, 1), [(2, 4), (6, 8)])
        self.assertEqual(fused.shard_shape(2, 1), (4, 3))

    def test_uneven_cuts_are_rounded_down(self):
        spec = split_tensor(0, "word", (7, 2), 0)
        self.assertEqual(
            [spec.ranges(3, i) for i in range(3)], [[(0, 2)], [(2, 4)], [(4, 7)]]
        )

    def test_ranks_share_a_key_value_head_where_there_are_fewer_heads(self):
        keys = Section(2 * 4, 4)  # 2 heads of 4
        self.assertEqual(
            [keys.range_of(4, i) for i in range(4)], [(0, 4), (0, 4), (4, 8), (4, 8)]
        )

    def test_queries_stay_with_their_key(self):
        # 6 heads in 3 groups over 2 ranks: one key, then two.
        queries, keys = Section(6 * 4, 2 * 4, 4), Section(3 * 4, 4)
        self.assertEqual([queries.range_of(2, i) for i in range(2)], [(0, 8), (8, 24)])
        self.assertEqual([keys.range_of(2, i) for i in range(2)], [(0, 4), (4, 12)])

    def test_pieces_of_two_degrees_are_the_largest_that_neither_cuts(self):
        spec = split_tensor(0, "word", (12, 2), 0)
        pieces = [(piece.start, piece.stop) for piece in cut(spec, {2, 3})]
        self.assertEqual(pieces, [(0, 4), (4, 6), (6, 8), (8, 12)])

    def test_pieces_put_together_are_the_tensor_for_every_layer_and_degree(self):
        for values in (models.LLAMA, models.GPT2):
            found = config.from_dict(values)
            for layer in range(found.layer_count):
                for spec in model.layer_specs(found, layer):
                    self._check_pieces(spec)

    def _check_pieces(self, spec):
        whole = torch.arange(torch.Size(spec.shape).numel()).view(spec.shape)
        for first, second in ((1, 4), (2, 4), (4, 2), (2, 2)):
            copy = torch.zeros_like(whole)
            for piece in cut(spec, {first, second}):
                rank = next(i for i in range(first) if piece.is_in(first, i))
                shard = take_shard(whole, spec, first, rank)
                piece.of(copy, 1, 0).copy_(piece.of(shard, first, rank))
            self.assertTrue(torch.equal(copy, whole), (spec, first, second))
