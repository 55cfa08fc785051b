"""Runs the tests of this folder and adds them up as all our test drivers do: all, or those whose
name has one of the given words; `telling` are those of `make test`, `rest` what it leaves to
`make test-all`."""

import os
import sys
import time
import traceback
import unittest

import cluster

HERE = os.path.dirname(os.path.abspath(__file__))
# Many ranks for long.
LEFT = ("test_speeds.", "test_training.Checkpoints.", "test_training.DistributedOptimizer.")


class Result(unittest.TestResult):
    """Each test has one outcome, its subtests with it: what goes wrong in one of them fails the
    test that it belongs to, once, and is printed under the subtest's own name."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.failed = {}  # test: where it went wrong first
        self.begun = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()
        print(f"# {test.id()}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        print(f"ok {test.id()} ({time.monotonic() - self.begun:.1f} s)", flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        self._fail(test, test, error, self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._fail(test, test, error, self.failures[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            is_failure = issubclass(error[0], test.failureException)
            self._fail(test, subtest, error, (self.failures if is_failure else self.errors)[-1][1])

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.failed[test.id()] = "was expected to fail"
        print(f"not ok {test.id()}: was expected to fail", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"ok {test.id()} # SKIP {reason}", flush=True)

    def _fail(self, test, part, error, trace):
        self.failed.setdefault(test.id(), _place(error))
        print(f"----  {part.id()}\n{trace}", flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        if test.id() in self.failed:
            print(f"not ok {test.id()}: {self.failed[test.id()]}", flush=True)


def _place(error):
    """FILE:LINE: MESSAGE of an exception: the innermost line of this folder."""
    frames = traceback.extract_tb(error[2])
    ours = [frame for frame in frames if os.path.isfile(frame.filename)
            and os.path.dirname(os.path.abspath(frame.filename)) == HERE]
    place = f"tests/runtime/{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"
    lines = str(error[1]).strip().split("\n")
    return f"{place}: {error[0].__name__}: {lines[0][:200]}"


def _tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests(test)
        else:
            yield test


def _is_wanted(name, words):
    is_left = name.startswith(LEFT)
    return not words or any(
        {"telling": not is_left, "rest": is_left}.get(word, word in name) for word in words)


def main():
    assert cluster.RUNTIME in sys.path  # for the tests, which import it
    found = _tests(unittest.defaultTestLoader.discover(".", "test_*.py"))
    words = sys.argv[1:]
    wanted = [test for test in found if _is_wanted(test.id(), words)]
    print(f"1..{len(wanted)}", flush=True)
    result = Result()
    unittest.TestSuite(wanted).run(result)
    for name, place in result.failed.items():
        print(f"FAILED {name} ({place})")
    print(f"{result.passed} passed, {len(result.failed)} failed, {len(result.skipped)} skipped")
    sys.exit(1 if result.failed or not result.passed else 0)


if __name__ == "__main__":
    main()
