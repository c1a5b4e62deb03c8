"""Serving a workbench: a socket, a link with a token, and the browser."""

from __future__ import annotations

import errno
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from threading import Timer

import uvicorn

from ..errors import OptionError
from .guard import Hosts
from .server import make_app
from .sessions import Sessions
from .workbench import Workbench

_USUAL = 8642  # the port that is tried first


def serve(
    workbench: Workbench,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    certificate: str | None = None,
    key: str | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve a workbench until it is interrupted.

    Parameters
    ----------
    workbench
        The workbench.
    host, port
        Where; by default a usual port of this machine, or another one if it is taken.
    browser
        Whether to open the browser.
    certificate, key
        Files for TLS.
    say
        Called with the sentences for the user.
    """
    bound = _bind(host, port)
    port = bound.getsockname()[1]
    hosts, sessions = Hosts(host), Sessions(port)
    scheme = "https" if certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        shown = socket.gethostname()
    address = f"{scheme}://{shown}:{port}/"
    if workbench.outdated_words:
        say(workbench.outdated_words)
    if hosts.team:
        say(f"The workbench is at {address}; the password is asked for.")
        if not certificate:
            say("Without TLS others in this network can read along; give --tls-cert and --tls-key.")
    else:
        address = f"{address}enter?token={sessions.token}"
        say(f"The workbench is at {address}")
    say(f"Decisions are kept in {workbench.journal.path}. Ctrl-C ends the workbench.")
    config = uvicorn.Config(
        make_app(workbench, sessions, hosts),
        log_level="warning",
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=3,
        proxy_headers=False,
    )
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends as Ctrl-C
    workbench.say = say
    workbench.start()
    if browser:
        Timer(0.3, webbrowser.open, [address]).start()
    try:
        uvicorn.Server(config).run(sockets=[bound])
    except KeyboardInterrupt:
        pass
    finally:
        workbench.close()


def _bind(host: str, port: int | None) -> socket.socket:
    """Return a socket at the port, or at another one if none is given and the usual is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in (_USUAL, 0) if port is None else (port,):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, one))
            bound.listen(128)  # from now on browsers wait instead of being refused
        except OSError as problem:
            bound.close()
            if port is None and one and problem.errno == errno.EADDRINUSE:
                continue
            what = "is taken; choose another" if problem.errno == errno.EADDRINUSE else None
            raise OptionError(f"{host}, port {one}: {what or problem.strerror}") from None
        return bound
    raise AssertionError
