"""The checkpoint hook of a training program, method HTTP (docs/api.md).

In the program of every rank, around the training loop:

    hook = CheckpointHook(port=8476) if rank == 0 else None
    for step in range(steps):
        train(step)
        wanted = broadcast_from_rank_0(hook.is_wanted() if hook else None)
        if wanted:                    # all ranks see it at the same step
            save_checkpoint(step)     # a collective: returns when all have written
            if hook:
                hook.acknowledge()
            break                     # what comes after would be lost

Run by itself it plays a program whose checkpoints take a while:

    python3 checkpoint_hook.py --port 8476 --checkpoint-seconds 5
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_REQUEST_BYTES = 64 << 10


class CheckpointHook:
    """Listens for requests in a thread of its own; the training loop asks it."""

    def __init__(self, port, host="", path="/checkpoint"):
        self._lock = threading.Lock()
        self._requested_at = None  # the request that waits; the newest one counts
        self._done_at = None       # the request that was acknowledged last
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                if self.path != path or length > MAX_REQUEST_BYTES:
                    self._answer(404)
                    return
                request = json.loads(self.rfile.read(length))
                self._answer(hook._request(request["requestedAt"]))

            def do_GET(self):
                self._answer(hook._state() if self.path == path else 404)

            def _answer(self, status):
                self.send_response(status)
                if status == 202:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def is_wanted(self):
        """Whether a checkpoint was asked for and is not acknowledged yet."""
        with self._lock:
            return self._requested_at is not None

    def acknowledge(self):
        """The checkpoint is written, by all ranks."""
        with self._lock:
            self._done_at, self._requested_at = self._requested_at, None

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _request(self, requested_at):
        with self._lock:
            if requested_at == self._done_at:
                return 200  # the same request once more
            self._requested_at = requested_at
            return 202

    def _state(self):
        with self._lock:
            if self._requested_at is not None:
                return 202
            return 200 if self._done_at is not None else 404


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--port", type=int, default=8476)
    options.add_argument("--host", default="")
    options.add_argument("--checkpoint-seconds", type=float, default=5)
    chosen = options.parse_args()
    hook = CheckpointHook(chosen.port, chosen.host)
    print("listening", flush=True)
    while True:
        time.sleep(0.05)  # a training step
        if hook.is_wanted():
            time.sleep(chosen.checkpoint_seconds)
            hook.acknowledge()
            print("checkpoint written", flush=True)


if __name__ == "__main__":
    main()
