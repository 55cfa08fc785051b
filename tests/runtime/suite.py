"""Runs the tests of this folder (or those whose name has one of the given words) and adds
them up as all our test drivers do."""

import sys
import time
import unittest

import cluster


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0
        self.begun = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        print(f"ok    {test.id()} ({time.monotonic() - self.begun:.1f} s)", flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        print(f"FAIL  {test.id()}\n{self.errors[-1][1]}", flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print(f"FAIL  {test.id()}\n{self.failures[-1][1]}", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skip  {test.id()}: {reason}", flush=True)


def _tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def main():
    assert cluster.RUNTIME in sys.path  # for the tests, which import it
    found = _tests(unittest.defaultTestLoader.discover(".", "test_*.py"))
    words = sys.argv[1:]
    wanted = [t for t in found if not words or any(word in t.id() for word in words)]
    result = _Result()
    unittest.TestSuite(wanted).run(result)
    failed = len(result.errors) + len(result.failures)
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(1 if failed or not result.passed else 0)


if __name__ == "__main__":
    main()
