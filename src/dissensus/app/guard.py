"""Which requests are let through: those to known hosts, of own origin, in a session.

A page elsewhere can make a browser send requests here. It cannot choose the Host of a name that it
does not own, hide its Origin, or get the cookie sent along. A session begins with the token in the
first link, or with a password, and is known by its cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from threading import Lock
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from ..errors import OptionError
from .journal import Journal

MAX_NAME = 80  # characters of a reviewer's name
_MAX_SESSIONS = 1000
_SHORTEST = 8  # characters of a password
_COST = {"n": 2**14, "r": 8, "p": 1}  # of scrypt: about 50 ms
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_WITHOUT_SESSION = ("/enter", "/login", "/static/app.css", "/static/report.css")
_SAFE = ("GET", "HEAD")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


@dataclass
class Session:
    """A browser that may use the workbench."""

    reviewer: str
    blind: bool = False
    skipped: set[str] = field(default_factory=set)


class Sessions:
    """Sessions by the value of a cookie.

    >>> sessions = Sessions()
    >>> cookie = sessions.enter("ann")
    >>> sessions.find(cookie).reviewer
    'ann'
    >>> sessions.find("guess") is None
    True
    """

    def __init__(self, port: int = 0) -> None:
        self.cookie = f"dissensus-{port}"  # browsers share cookies between ports
        self.token = secrets.token_urlsafe(32)
        self._sessions: dict[str, Session] = {}
        self._lock = Lock()

    def is_token(self, token: str) -> bool:
        """Return whether a link has the right token."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def enter(self, reviewer: str) -> str:
        """Return the cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[cookie] = Session(clean_name(reviewer) or "reviewer")
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie."""
        return self._sessions.get(cookie or "")


def clean_name(name: str) -> str:
    r"""Return a name without what cannot be seen, and not too long.

    >>> clean_name("  Zoe\x00\n Q ")
    'Zoe Q'
    """
    visible = "".join(character if character.isprintable() else " " for character in name)
    return " ".join(visible.split())[:MAX_NAME]


def set_password(journal: Journal, password: str) -> None:
    """Keep the hash of a password."""
    if len(password) < _SHORTEST:
        raise OptionError(f"a password has at least {_SHORTEST} characters")
    salt = secrets.token_bytes(16)
    journal.keep_secret("password", f"{salt.hex()}:{_hash(password, salt)}")


def is_password(journal: Journal, password: str) -> bool:
    """Return whether a password is the one that was set."""
    salt, _, expected = (journal.secret("password") or "").partition(":")
    return bool(expected) and hmac.compare_digest(_hash(password, bytes.fromhex(salt)), expected)


def _hash(password: str, salt: bytes) -> str:
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, maxmem=2**26, **_COST).hex()


class Guard:
    """Refuses requests, and adds headers to answers."""

    def __init__(self, app: Any, *, sessions: Sessions, hosts: Hosts) -> None:
        self.app, self.sessions, self.hosts = app, sessions, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                headers = {**_HEADERS, "content-security-policy": POLICY}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in headers.items()
                    if name.encode() not in present
                ]
            await send(message)

        refused = self._refuse(scope)
        if refused is None:
            await self.app(scope, receive, send_guarded)
        else:
            status, words = refused
            answer = PlainTextResponse(words, status)
            await answer(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> tuple[int, str] | None:
        """Return a status and a sentence for requests that are not let through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self.hosts.known(host):
            return 403, "This name is not one of the workbench. Use the link that it printed.\n"
        if scope["method"] not in (*_SAFE, "POST"):
            return 405, "This is not possible.\n"
        if scope["method"] == "POST" and not _own(headers, scope["scheme"], host):
            return 403, "The request came from another site.\n"
        scope["session"] = self.sessions.find(_cookie(headers, self.sessions.cookie))
        if scope["session"] is None and scope["path"] not in _WITHOUT_SESSION:
            if self.hosts.team and scope["method"] in _SAFE and scope["path"] == "/":
                scope["path"] = "/login"
                return None
            return 401, "Open the link that `dissensus open` printed.\n"
        return None


class Hosts:
    """Names under which a workbench may be asked.

    >>> Hosts("127.0.0.1").known("localhost:8080"), Hosts("127.0.0.1").known("evil.example")
    (True, False)
    """

    def __init__(self, host: str) -> None:
        self.team = not _is_loopback(host)
        self._names = {"localhost", host.lower()}
        if self.team:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def known(self, host: str) -> bool:
        """Return whether a Host header names this machine; a number is never another's name."""
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.team or address.is_loopback


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _own(headers: Headers, scheme: str, host: str) -> bool:
    """Return whether a request that changes something comes from a page of the workbench."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() == f"{scheme}://{host}".lower()
    return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _cookie(headers: Headers, name: str) -> str | None:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(headers.get("cookie", ""))
    except Exception:  # a hostile cookie is none
        return None
    return jar[name].value if name in jar else None
