"""heterotrain.profile.result: the compact form says the same as the whole, or less, but never
something else."""
import json
import unittest
from dataclasses import replace

from heterotrain.profile import result
from profile_samples import layer, result as sample

POWERS = tuple(2**i for i in range(8))


class Compact(unittest.TestCase):
    def test_a_result_comes_back_as_it_was(self):
        self.assertEqual(result.decode(result.encode(sample())), sample())

    def test_what_fits_is_not_cut(self):
        self.assertEqual(result.encode_compact(sample()), result.encode(sample()))

    def test_workspace_that_was_not_measured_is_not_there(self):
        points = tuple(
            replace(p, layers=tuple(replace(l, workspace_bytes=None) for l in p.layers))
            for p in sample().points
        )
        self.assertEqual(
            result.decode(result.encode(sample(points=points))).points, points
        )

    def test_what_does_not_fit_is_cut_from_the_largest_degree_down(self):
        whole = sample(degrees=(1, 2, 4, 8), microbatches=POWERS)
        line = result.encode_compact(whole)
        kept = result.decode(line)
        self.assertLessEqual(len(line.encode()), 4096)
        self.assertGreater(kept.cut, 0)
        self.assertEqual(len(kept.points) + kept.cut, len(whole.points))
        self.assertEqual(kept.points, whole.points[: len(kept.points)])
        one_more = replace(whole, points=whole.points[: len(kept.points) + 1])
        self.assertGreater(len(result.encode(one_more).encode()), 4096)

    def test_of_a_degree_that_is_cut_nothing_is_left(self):
        whole = sample(degrees=(1, 2, 4, 8), microbatches=POWERS)
        line = result.encode_compact(whole, 1500)
        kept = result.decode(line)
        degrees = {point.tp for point in kept.points}
        self.assertEqual(degrees, {1})
        self.assertEqual(set(kept.optimizer_us), degrees)
        self.assertEqual([group.rank_bytes for group in kept.groups], [{}] * 3)

    def test_every_limit_is_kept_or_refused(self):
        whole = sample(degrees=(1, 2, 4), microbatches=POWERS[:4])
        needed = len(result.encode_compact(replace(whole, points=whole.points[:1])))
        for most in range(200, len(result.encode(whole)) + 2, 7):
            try:
                line = result.encode_compact(whole, most)
            except ValueError as error:
                self.assertLess(most, needed + 100)
                self.assertIn("for one point", str(error))
                continue
            self.assertLessEqual(len(line), most)
            kept = result.decode(line)
            self.assertEqual(kept.points, whole.points[: len(kept.points)])

    def test_a_truncated_message_is_refused(self):
        line = result.encode(sample())
        for length in range(0, len(line), 13):
            with self.assertRaises(ValueError):
                result.decode(line[:length])

    def test_a_failure_says_why_in_any_length(self):
        line = result.encode_failure("T4", 'no "such"\nGPU ' * 1000)
        self.assertLessEqual(len(line), 4096)
        with self.assertRaisesRegex(ValueError, 'profiling of T4 failed: no "such"'):
            result.decode(line)

    def test_wrong_numbers_are_refused(self):
        good = json.loads(result.encode(sample()))
        for change in (
            {"v": 2},
            {"m": []},
            {"m": [[1, 0, good["m"][0][2]]]},
            {"m": [[1, 1, good["m"][0][2][:2]]]},
            {"m": [good["m"][0], good["m"][0]]},
            {"m": [[1, 1, [[1, 2]] * 3]]},
            {"m": [[1, 1, [[1, 2, -3]] * 3]]},
            {"m": [[1, 1, [[1, 2, 3.5]] * 3]]},
            {"m": [[65, 1, [[1, 2, 3]] * 3]]},
            {"optimizerMicroseconds": [[1, 2], [1, 3]]},
            {"groups": {}},
        ):
            with self.assertRaises(ValueError, msg=change):
                result.decode(json.dumps({**good, **change}))

    def test_results_are_found_in_a_log(self):
        log = f"tp 1, micro-batch 1: ...\n{result.encode(sample())}\nbye\n"
        self.assertEqual(result.find_results(log), [sample()])
        with self.assertRaisesRegex(ValueError, "no line"):
            result.find_results("tp 1\n")


class Samples(unittest.TestCase):
    def test_the_numbers_are_as_long_as_they_get(self):
        self.assertGreater(layer(1, 64, 3).activation_bytes, 8 << 30)
