"""The checkpoint hook of rank 0 (docs/api.md of the operator): POST asks for a checkpoint,
GET says whether it is written."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_REQUEST_BYTES = 64 << 10


class HookError(ValueError):
    """The hook cannot listen; names its port."""


def pod_address():
    """The address of this host's own name, which is the pod's; "" (all) if it has none."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


class CheckpointHook:
    """Listens in a thread of its own; the training loop asks it."""

    def __init__(self, port, host=None, path="/checkpoint"):
        self._wanted = threading.Event()
        self._written = threading.Event()
        self.path = path
        host = pod_address() if host is None else host
        try:
            self._server = ThreadingHTTPServer((host, port), _handler_of(self))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise HookError(
                f"--hook-port: {port} of {host or 'all addresses'}: {reason}"
            ) from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def is_wanted(self):
        """Whether a checkpoint was asked for."""
        return self._wanted.is_set()

    def acknowledge(self):
        """All ranks have written the checkpoint, and train no further: it answers what is
        asked from now on, too."""
        self._written.set()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def post(self):
        """The status that answers a request."""
        self._wanted.set()
        return 200 if self._written.is_set() else 202

    def get(self):
        if self._written.is_set():
            return 200
        return 202 if self._wanted.is_set() else 404


def _handler_of(hook):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60  # seconds, for a connection that says nothing

        def do_POST(self):
            if self.path != hook.path:
                self.close_connection = True  # its body was not read
                self._answer(404)
            elif not self._is_request():
                self.close_connection = True
                self._answer(400)
            else:
                self._answer(hook.post())

        def do_GET(self):
            self._answer(hook.get() if self.path == hook.path else 404)

        def _is_request(self):
            try:
                length = int(self.headers.get("Content-Length", 0))
                if not 0 <= length <= MAX_REQUEST_BYTES:
                    return False
                return json.loads(self.rfile.read(length))["kind"] == "CheckpointRequest"
            except (ValueError, KeyError, TypeError):
                return False

        def _answer(self, status):
            self.send_response(status)
            if status == 202:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    return Handler
