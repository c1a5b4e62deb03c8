"""A receiver of webhooks: events of Label Studio wait in a queue until they are taken.

It listens on the loopback address alone and takes JSON only, which no web page of another origin
can send without permission.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Any

from ..base.files import reason
from ..errors import OptionError

HOST = "127.0.0.1"
_LARGEST = 2**26  # bytes of an event
_MOST = 10_000  # events that wait


class WebhookReceiver:
    """A server that collects events while its context is open.

    >>> with WebhookReceiver(0) as receiver:
    ...     receiver.url.startswith("http://127.0.0.1:"), receiver.take(0)
    (True, [])
    """

    def __init__(self, port: int) -> None:
        self._events: Queue[dict[str, Any]] = Queue(_MOST)
        self.overflowed = threading.Event()
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except OSError as problem:
            raise OptionError(
                f"port {port}: {reason(problem)}", remedy="choose another {}", listen=...
            ) from None
        self._server.daemon_threads = True
        self.url = f"http://{HOST}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> WebhookReceiver:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def put(self, event: dict[str, Any]) -> bool:
        """Add an event; return whether there was room."""
        try:
            self._events.put_nowait(event)
        except Full:
            self.overflowed.set()
            return False
        return True

    def take(self, seconds: float) -> list[dict[str, Any]]:
        """Return the events that wait; without any, those that come within some seconds."""
        events = []
        try:
            events.append(self._events.get(timeout=seconds) if seconds else self._events.get(False))
            while True:
                events.append(self._events.get_nowait())
        except Empty:
            return events


def _handler(receiver: WebhookReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10
        server_version, sys_version = "dissensus", ""

        def do_POST(self) -> None:
            kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            length = self.headers.get("Content-Length", "")
            if kind != "application/json":
                self.answer(415)
            elif not length.isdigit():
                self.answer(411)
            elif int(length) > _LARGEST:
                self.answer(413)
            else:
                self.answer(self.received(self.rfile.read(int(length))))

        def received(self, body: bytes) -> int:
            try:
                event = json.loads(body)
            except (ValueError, RecursionError):
                return 400
            if not isinstance(event, dict) or not isinstance(event.get("action"), str):
                return 400
            return 200 if receiver.put(event) else 503

        def answer(self, status: int) -> None:
            self.close_connection = True
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Print nothing."""

    return Handler
