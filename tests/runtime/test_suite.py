"""The driver itself: what a subtest does counts for its test, and every failure has a name."""

import contextlib
import io
import unittest

import suite


class _Sample(unittest.TestCase):
    def holds(self):
        for number in range(3):
            with self.subTest(number=number):
                pass

    def breaks_in_two_of_three_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 1, "not one")

    def cannot_import(self):
        with self.subTest("a parser"):
            raise ModuleNotFoundError("No module named 'packaging'")

    def is_left_out(self):
        self.skipTest("no GPU")


def _run(*names):
    """The result of these methods of the sample, and what was printed."""
    result, printed = suite.Result(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        unittest.TestSuite(_Sample(name) for name in names).run(result)
    return result, printed.getvalue()


class Driver(unittest.TestCase):
    def test_subtests_that_fail_are_one_failed_test(self):
        result, _ = _run("holds", "breaks_in_two_of_three_parts", "cannot_import", "is_left_out")
        self.assertEqual((result.passed, len(result.failed), len(result.skipped)), (1, 2, 1))

    def test_each_subtest_that_fails_is_printed_with_its_name_and_trace(self):
        _, printed = _run("breaks_in_two_of_three_parts", "cannot_import")
        self.assertIn("breaks_in_two_of_three_parts (number=0)", printed)
        self.assertIn("(number=2)", printed)
        self.assertNotIn("(number=1)", printed)
        self.assertIn("[a parser]", printed)
        self.assertIn("No module named 'packaging'", printed)
        self.assertEqual(printed.count("not ok "), 2)

    def test_a_failure_has_file_line_and_message(self):
        result, _ = _run("cannot_import")
        (name, place), = result.failed.items()
        self.assertTrue(name.endswith("_Sample.cannot_import"), name)
        self.assertRegex(place, r"^tests/runtime/test_suite\.py:\d+: ModuleNotFoundError: No module named 'packaging'$")

    def test_a_test_that_fails_twice_counts_once(self):
        class Broken(_Sample):
            def tearDown(self):
                raise ValueError("again")

        result = suite.Result()
        with contextlib.redirect_stdout(io.StringIO()):
            unittest.TestSuite([Broken("cannot_import")]).run(result)
        self.assertEqual(len(result.failed), 1)
