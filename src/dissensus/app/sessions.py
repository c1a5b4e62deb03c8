"""Who may use a workbench: a token in the first link, or a password, then a cookie."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from threading import Lock

from ..errors import OptionError
from .journal import Journal

MAX_NAME = 80  # characters of a reviewer's name
_MAX_SESSIONS = 1000
_SHORTEST = 8  # characters of a password
_COST = {"n": 2**14, "r": 8, "p": 1}  # of scrypt: about 50 ms


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

    def is_token(self, given: str) -> bool:
        """Return whether a link has the right token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

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
    visible = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(visible.split())[:MAX_NAME]


def set_password(journal: Journal, password: str) -> None:
    """Keep the hash of a password."""
    if len(password) < _SHORTEST:
        raise OptionError(f"a password has at least {_SHORTEST} characters")
    salt = secrets.token_bytes(16)
    journal.keep_secret("password", f"{salt.hex()}:{_hash(password, salt)}")


def is_password(journal: Journal, given: str) -> bool:
    """Return whether a password is the one that was set."""
    salt, _, known = (journal.secret("password") or "").partition(":")
    return bool(known) and hmac.compare_digest(_hash(given, bytes.fromhex(salt)), known)


def _hash(password: str, salt: bytes) -> str:
    raw = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(raw, salt=salt, maxmem=2**26, **_COST).hex()
