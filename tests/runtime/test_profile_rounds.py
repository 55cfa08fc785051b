"""heterotrain.profile.rounds: numbers that repeat are taken, others are refused."""
import itertools
import unittest

from heterotrain.profile.rounds import Rule, Timed, Unsteady, measure

TIMED = [
    Timed("block, forward", 10),
    Timed("block, backward", 10),
    Timed("head, forward", 1),
]
RULE = Rule(rounds=3, most_rounds=8, share=0.05)


def rounds_of(*times):
    """A round after the other, each a list of seconds; the last repeats for ever."""
    iterator = itertools.chain(times, itertools.repeat(times[-1]))
    return lambda: next(iterator)


class Rounds(unittest.TestCase):
    def test_equal_rounds_are_taken_at_once(self):
        steady = measure(TIMED, rounds_of([1.0, 2.0, 3.0]), RULE)
        self.assertEqual(
            (steady.seconds, steady.spread, steady.rounds), ([1.0, 2.0, 3.0], 0.0, 3)
        )

    def test_the_median_of_the_rounds_counts(self):
        steady = measure(TIMED, rounds_of([1.0, 2, 3], [1.04, 2, 3], [1.01, 2, 3]), RULE)
        self.assertEqual(steady.seconds[0], 1.01)
        self.assertAlmostEqual(steady.spread, 0.04 / 1.01)

    def test_rounds_before_the_clock_had_settled_do_not_count(self):
        steady = measure(TIMED, rounds_of([2.0, 4, 3], [1.5, 3, 3], [1.0, 2, 3]), RULE)
        self.assertEqual((steady.seconds, steady.rounds), ([1.0, 2, 3], 5))

    def test_a_noisy_layer_is_refused_by_name(self):
        noisy = itertools.cycle([[1.0, 2, 3], [1.0, 2.2, 3]])
        with self.assertRaises(Unsteady) as refused:
            measure(TIMED, lambda: next(noisy), RULE)
        self.assertIn(
            "block, backward: the last 3 rounds took 2000.000 to 2200.000 ms, 9 %",
            str(refused.exception),
        )
        self.assertIn("8 rounds", str(refused.exception))

    def test_jitter_of_what_takes_no_time_does_not_matter(self):
        # The model takes 10 * 3 + 0.02 s; the head may differ by 5 % of a hundredth of it.
        jitter = itertools.cycle([[1.0, 2, 0.02], [1.0, 2, 0.03]])
        self.assertEqual(measure(TIMED, lambda: next(jitter), RULE).rounds, 3)

    def test_jitter_of_a_small_layer_that_is_there_often_matters(self):
        # 1,000 blocks are all of the model, though each is a thousandth.
        jitter = itertools.cycle([[1e-3], [1.1e-3]])
        with self.assertRaises(Unsteady):
            measure([Timed("block, forward", 1000)], lambda: next(jitter), RULE)

    def test_times_of_nothing_are_steady(self):
        self.assertEqual(
            measure(TIMED, rounds_of([0.0, 0.0, 0.0]), RULE).seconds, [0.0] * 3
        )
