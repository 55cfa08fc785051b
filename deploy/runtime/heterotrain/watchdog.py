"""Notices a rank that falls silent, and says which.

A rank that is stopped, or whose node is gone without a word, leaves the others waiting in a
collective that tells nobody who is missing. So a thread of each rank counts up a number in the
store of the rendezvous, and looks at the number of the next rank. If that stands still for
`silence_s`, all ranks end with the same sentence and the exit status SILENT; so they do if the
store itself, which the node of rank 0 has, does not answer. A rank that has yet to come is
waited for `start_s` long.

A rank looks at one other, so the store's load grows with the number of ranks and no faster.
"""

import os
import sys
import threading
import time

SILENT = 75  # EX_TEMPFAIL: the plan may run, this set of ranks does not
DONE = 1 << 40  # a number that no rank counts up to


class Watchdog:
    """`store`: a connection that nobody else uses, as its calls may block. `describe(rank)`
    names a rank; `end(text)` is called once, in a thread of this object."""

    def __init__(self, store, rank, world_size, silence_s, start_s, describe, end=None):
        self.store, self.rank, self.world_size = store, rank, world_size
        self.silence_s, self.start_s = silence_s, start_s
        self.describe, self.end = describe, end or _end
        self.interval_s = min(2.0, silence_s / 4)
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._prefix = f"heterotrain/{restart}"
        self._counts = {}  # rank -> number last seen
        self._changed_s = {}  # rank -> when it was seen first
        self._answered_s = time.monotonic()
        self._stopped = threading.Event()
        self._said = threading.Lock()
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._watch, self._watch_the_store)
        ]

    def start(self):
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        """This rank ends as it should: nobody is to miss it."""
        self._stopped.set()
        self._threads[0].join(self.interval_s)

    def wait_for_verdict(self):
        """For a rank whose collective has failed: if the others have ended because a rank is
        silent, this one ends with the same sentence, before this returns."""
        self._threads[0].join(self.interval_s + 1)

    # ---- the numbers in the store ----
    def _key(self, rank):
        return f"{self._prefix}/alive/{rank}"

    def _count_up(self, by):
        self.store.add(self._key(self.rank), by)

    def _is_silent(self, rank, now):
        """Whether the number of `rank` has stood still for too long."""
        count = self.store.add(self._key(rank), 0)  # does not wait for the key
        if count >= DONE:
            return False
        if count != self._counts.get(rank):
            self._counts[rank], self._changed_s[rank] = count, now
        limit = self.silence_s if count else self.start_s
        return now - self._changed_s[rank] > limit

    # ---- what all ranks end with ----
    def _verdict(self):
        """What some rank has found, or None."""
        if not self.store.add(f"{self._prefix}/verdict", 0):
            return None
        return self.store.get(f"{self._prefix}/verdict-text").decode()

    def _tell(self, text):
        self.store.set(f"{self._prefix}/verdict-text", text)
        self.store.add(f"{self._prefix}/verdict", 1)

    def _finish(self, text):
        if self._said.acquire(blocking=False) and not self._stopped.is_set():
            self.end(text)

    def _sentence(self, rank):
        if not self._counts[rank]:
            return f"{self.describe(rank)} has not started within {self.start_s:g} s"
        return (
            f"{self.describe(rank)} has said nothing for {self.silence_s:g} s: its process is"
            " stopped, or its node is gone or cannot be reached"
        )

    # ---- threads ----
    def _watch(self):
        watched = (self.rank + 1) % self.world_size
        try:
            self._count_up(1)
            while not self._stopped.wait(self.interval_s):
                self._count_up(1)
                verdict = self._verdict()
                if verdict is None and self._is_silent(watched, time.monotonic()):
                    verdict = self._sentence(watched)
                    self._tell(verdict)
                self._answered_s = time.monotonic()
                if verdict is not None:
                    self._finish(verdict)
                    return
            self._count_up(DONE)
        except RuntimeError:
            pass  # The store is gone: _watch_the_store says so, if it is not the end.

    def _watch_the_store(self):
        looked_s = time.monotonic()
        while not self._stopped.wait(self.interval_s):
            now = time.monotonic()
            if now - looked_s > 2 * self.interval_s:
                # It was this process that was stopped, or starved.
                self._answered_s = now
                self._changed_s = {rank: now for rank in self._changed_s}
            looked_s = now
            if now - self._answered_s > self.silence_s:
                self._finish(
                    f"{self.describe(0)} has said nothing for {self.silence_s:g} s: its node has"
                    " the store of the rendezvous, which does not answer"
                )
                return


def _end(text):
    """Ends the process from a thread, whatever its main thread is blocked in."""
    print(f"error: {text}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(SILENT)
