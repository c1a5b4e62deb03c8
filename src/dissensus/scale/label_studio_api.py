"""The HTTP API of Label Studio, as much as is needed to follow a project.

    GET    /api/projects/{id}/
    GET    /api/tasks/?project={id}&page=…&page_size=…&fields=all
    PATCH  /api/tasks/{id}/               meta
    POST   /api/predictions/              task, result, score, model_version
    PATCH  /api/predictions/{id}/
    DELETE /api/predictions/{id}/
    POST   /api/token/refresh/            for personal access tokens

A legacy token is sent as it is (`Token …`). A personal access token, a JWT, is exchanged for a
short-lived one (`Bearer …`). The key appears in no message, and is sent to no other address:
redirects are not followed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from ..base.files import reason
from ..errors import DataError, OptionError

VARIABLE = "LABEL_STUDIO_API_KEY"
ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt, doubled before each of the next
_TIMEOUT = 30
_PAGE = 100  # tasks
_REFRESH = "/api/token/refresh/"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
_AGAIN = (408, 429, *range(500, 600))
_LONGEST = 60  # seconds that a server may ask to wait


class ApiKey:
    """A key that is not shown."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", value):
            raise OptionError("the API key of Label Studio is empty, or not one word of ASCII")
        self._value = value

    def __repr__(self) -> str:
        return "ApiKey(…)"

    @property
    def is_personal(self) -> bool:
        """Whether this is a personal access token, which has to be exchanged."""
        return _JWT.fullmatch(self._value) is not None

    def secret(self) -> str:
        """Return the key itself."""
        return self._value

    def hidden_in(self, text: str) -> str:
        """Return a text without the key."""
        return text.replace(self._value, "…")


def read_api_key(file: str | None = None) -> ApiKey:
    """Return the key in a file, or else in the environment."""
    if file is None:
        value = os.environ.get(VARIABLE, "")
        if not value.strip():
            remedy = f"set {VARIABLE}, or name a file with {{}}"
            raise OptionError("no API key", remedy=remedy, key=...)
    else:
        try:
            value = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise OptionError(f"{file}: {reason(problem)}") from None
    return ApiKey(value.strip())


class LabelStudioApi:
    """A server and a key for it."""

    def __init__(self, url: str, key: ApiKey) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{url}: not the address of a Label Studio, as http://localhost:8080")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise OptionError("the address of Label Studio holds more than host and path")
        self.url, self._key = url.rstrip("/"), key
        self._access: ApiKey | None = None  # for a personal token
        self.is_local = parts.hostname in _LOOPBACK
        self.is_exposed = parts.scheme == "http" and not self.is_local
        handlers = [_NoRedirects(), *([ProxyHandler({})] if self.is_local else [])]
        self._opener: OpenerDirector = build_opener(*handlers)

    def project(self, number: int) -> dict[str, Any]:
        """Return a project."""
        return _object(self, self._call("GET", f"/api/projects/{number}/", f"project {number}"))

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """Return all tasks of a project, with annotations, predictions and meta.

        A task that is deleted while pages are read would move others to a page that was read
        before, so the pages are read again.
        """
        for _ in range(ATTEMPTS):
            tasks = self._pages(project)
            if tasks is not None:
                return tasks
        raise DataError(f"{self.url}: tasks of project {project} are deleted while it is read")

    def _pages(self, project: int) -> list[dict[str, Any]] | None:
        """Return the tasks of all pages; nothing if there were fewer tasks on the way."""
        tasks: list[dict[str, Any]] = []
        page, total = 1, 0  # as the last page had it; older versions do not say
        while True:
            query = {"project": project, "page": page, "page_size": _PAGE, "fields": "all"}
            path = f"/api/tasks/?{urlencode(query)}"
            try:
                answer = self._call("GET", path, f"project {project}")
            except _MissingError:
                if page == 1:
                    raise
                return None if len(tasks) < total else tasks  # past the last page
            part = answer if isinstance(answer, list) else _object(self, answer).get("tasks")
            if not isinstance(part, list) or not all(isinstance(task, dict) for task in part):
                raise DataError(f"{self.url}: no list of tasks, so this is not Label Studio's API")
            stated = answer.get("total") if isinstance(answer, dict) else None
            if isinstance(stated, int) and stated < total:
                return None
            total = stated if isinstance(stated, int) else 0
            if page > 1 and part[:1] == tasks[:1]:
                return tasks  # without pages: all are on each
            tasks += part
            if not part or (len(tasks) >= total if total else len(part) < _PAGE):
                return tasks
            page += 1

    def create_prediction(self, body: Mapping[str, Any]) -> int:
        """Create a prediction, and return its id."""
        prediction = _object(self, self._call("POST", "/api/predictions/", "predictions", body))
        if not isinstance(prediction.get("id"), int):
            raise DataError(f"{self.url}: a prediction without an id")
        return int(prediction["id"])

    def update_prediction(self, number: int, body: Mapping[str, Any]) -> bool:
        """Change a prediction; return whether it is still there."""
        return self._if_there("PATCH", f"/api/predictions/{number}/", body)

    def delete_prediction(self, number: int) -> bool:
        """Delete a prediction; return whether it was still there."""
        return self._if_there("DELETE", f"/api/predictions/{number}/")

    def set_meta(self, task: int, meta: Mapping[str, Any]) -> None:
        """Set the meta of a task."""
        self._call("PATCH", f"/api/tasks/{task}/", f"task {task}", {"meta": meta})

    def _if_there(self, method: str, path: str, body: Any = None) -> bool:
        try:
            self._call(method, path, "such prediction", body)
        except _MissingError:
            return False
        return True

    def _call(self, method: str, path: str, subject: str, body: Any = None) -> Any:
        """Return the answer to a request, after some attempts if the server is not there."""
        problem, wait, remedy = "", 0.0, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(max(PAUSE * 2 ** (attempt - 1), wait))
            try:
                return self._send(method, path, subject, body)
            except _AgainError as refusal:
                problem, wait = str(refusal), refusal.seconds
                remedy = "look less often" if refusal.is_limit else "is Label Studio running?"
        raise DataError(f"{self.url}: {problem} after {ATTEMPTS} attempts; {remedy}")

    def _send(self, method: str, path: str, subject: str, body: Any, fresh: bool = False) -> Any:
        try:
            return self._request(method, path, body)
        except HTTPError as problem:
            status = problem.code
            if status == 401 and self._access and not fresh:
                self._access = None  # it has expired
                return self._send(method, path, subject, body, fresh=True)
            if status in _AGAIN:
                wait = _seconds(problem)
                raise _AgainError(f"status {status}", wait, is_limit=status == 429) from None
            raise self._error(problem, subject) from None

    def _authorization(self) -> str:
        if not self._key.is_personal:
            return f"Token {self._key.secret()}"
        if not self._access:
            answer = self._request("POST", _REFRESH, {"refresh": self._key})
            access = _object(self, answer).get("access")
            if not isinstance(access, str) or not _JWT.fullmatch(access):
                raise DataError(f"{self.url}: no access token for the key")
            self._access = ApiKey(access)
        return f"Bearer {self._access.secret()}"

    def _request(self, method: str, path: str, body: Any) -> Any:
        # No variable holds the key: whoever prints a traceback with its variables sees none.
        request = Request(self.url + path, headers={"Accept": "application/json"}, method=method)
        if path != _REFRESH:
            request.add_header("Authorization", self._authorization())
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body, default=ApiKey.secret).encode()
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as response:
                content = response.read()
        except HTTPError:
            raise
        except URLError as problem:
            cause = problem.reason
            words = reason(cause) if isinstance(cause, Exception) else str(cause)
            raise _AgainError(f"no answer ({words})") from None
        except (OSError, HTTPException) as problem:
            raise _AgainError(f"no answer ({reason(problem)})") from None
        if not content:
            return {}
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise DataError(
                f"{self.url}: its answer is not JSON; name Label Studio's own address"
            ) from None

    def _error(self, problem: HTTPError, subject: str) -> DataError:
        """Return what is wrong with a request about a subject."""
        match problem.code:
            case 401:
                refused, remedy = "the key is not accepted", f"{VARIABLE} or {{}} FILE holds it"
                return DataError(refused, where=self.url, remedy=remedy, key=...)
            case 403:
                return DataError(f"{self.url}: the key's owner has no permission for {subject}")
            case 404:
                return _MissingError(f"{self.url}: no {subject} there")
            case code if code in (301, 302, 303, 307, 308):
                return DataError(f"{self.url}: redirects elsewhere; name the address itself")
        try:
            body = problem.read(2000).decode("utf-8", errors="replace")
        except (OSError, HTTPException):
            body = ""
        answer = f"{self.url}: status {problem.code} for {subject}: {body[:200]}"
        return DataError(self._key.hidden_in(answer))


class _MissingError(DataError):
    """What is asked for is not there."""


class _AgainError(Exception):
    """The server is not there, or busy: another attempt may succeed."""

    def __init__(self, words: str, seconds: float = 0.0, *, is_limit: bool = False) -> None:
        super().__init__(words)
        self.seconds = seconds  # that the server asks to wait
        self.is_limit = is_limit  # whether there were too many requests


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _seconds(problem: HTTPError) -> float:
    """Return how long the server asks to wait; its dates are left to our own pauses."""
    header = (problem.headers.get("Retry-After") or "").strip()
    return float(min(int(header), _LONGEST)) if header.isascii() and header.isdigit() else 0.0


def _object(api: LabelStudioApi, answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise DataError(f"{api.url}: an answer that is not Label Studio's")
    return answer
