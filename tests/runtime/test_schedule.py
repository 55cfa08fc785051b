"""heterotrain.schedule and transfer: the order of work, and who sends what to whom."""

import unittest

from heterotrain import plan as plans
from heterotrain.schedule import (
    Backward,
    Forward,
    WithNext,
    WithPrevious,
    one_forward_one_backward,
)
from heterotrain.transfer import channels
from random_plan import random_plan


def computes(stage, stages, micro_batches):
    actions = one_forward_one_backward(stage, stages, micro_batches)
    return "".join(
        f"{'F' if isinstance(a, Forward) else 'B'}{a.micro_batch}"
        for a in actions
        if isinstance(a, (Forward, Backward))
    )


class Schedule(unittest.TestCase):
    def test_first_of_three_stages_runs_two_forwards_ahead(self):
        self.assertEqual(computes(0, 3, 4), "F0F1F2B0F3B1B2B3")

    def test_last_stage_alternates(self):
        self.assertEqual(computes(2, 3, 3), "F0B0F1B1F2B2")

    def test_fewer_micro_batches_than_stages_all_run_ahead(self):
        self.assertEqual(computes(0, 4, 2), "F0F1B0B1")

    def test_in_flight_is_at_most_the_stages_that_follow_and_one(self):
        for stages in range(1, 6):
            for stage in range(stages):
                in_flight = most = 0
                for each in computes(stage, stages, 7)[::2]:
                    in_flight += 1 if each == "F" else -1
                    most = max(most, in_flight)
                self.assertEqual(most, min(stages - stage, 7))

    def test_blocking_exchanges_never_wait_for_each_other(self):
        for stages in range(1, 7):
            for micro_batches in range(1, 9):
                self._run(stages, micro_batches)

    def _run(self, stages, micro_batches):
        """Exchanges happen only when both sides have come to them."""
        queues = [
            [
                action
                for action in one_forward_one_backward(stage, stages, micro_batches)
                if isinstance(action, (WithNext, WithPrevious))
            ]
            for stage in range(stages)
        ]
        moved = True
        while moved:
            moved = False
            for left, right in zip(queues, queues[1:]):
                if not (left and right):
                    continue
                ours, theirs = left[0], right[0]
                if isinstance(ours, WithNext) and isinstance(theirs, WithPrevious):
                    self.assertEqual(
                        (ours.send, ours.receive), (theirs.receive, theirs.send)
                    )
                    del left[0], right[0]
                    moved = True
        self.assertEqual(queues, [[]] * stages, (stages, micro_batches))


class Transfers(unittest.TestCase):
    def test_every_sample_has_one_channel_each_way(self):
        for seed in range(60):
            plan = plans.from_dict(random_plan(seed, 6, 2 + seed % 7))
            for pipeline in plan.pipelines:
                for stage, following in zip(pipeline.stages, pipeline.stages[1:]):
                    self._check(pipeline, stage, following)
                    self._check(pipeline, following, stage)

    def _check(self, pipeline, stage, other):
        ranges = []
        for replica in stage.replicas:
            for channel in channels(replica, other):
                first = replica.first_sample
                ranges.append((first + channel.start, first + channel.stop))
                tps = {r.ranks: r.tp for r in other.replicas}
                tp = next(tps[ranks] for ranks in tps if channel.peers[0] in ranks)
                self.assertEqual(len(channel.peers), min(tp, replica.tp))
        ranges.sort()
        self.assertEqual(ranges[0][0], 0)
        self.assertEqual(ranges[-1][1], pipeline.micro_batch_size)
        for before, after in zip(ranges, ranges[1:]):
            self.assertEqual(before[1], after[0])
