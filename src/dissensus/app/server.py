"""The web server: addresses and what each answers; then the socket, the link and the browser."""

from __future__ import annotations

import asyncio
import errno
import getpass
import re
import signal
import socket
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from threading import Timer
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from ..base.files import reason
from ..errors import DissensusError, Note, OptionError
from ..pages import embedding
from ..pages.terminal import words_of
from . import exports
from .browse import media_of
from .decisions import is_fingerprint
from .guard import Guard, Hosts, Session, Sessions, clean_name, is_password
from .journal import RequestError
from .pages import Pages
from .workbench import Workbench

_USUAL = 8642  # the port that is tried first
_MAX_BODY = 200_000  # bytes of a form
_MAX_COMMENT = 2000  # characters
_MAX_ID = 80  # characters of the id of a form
_WAIT = 120.0  # seconds that an export waits for a fit
_SLOW = 1.0  # seconds after a wrong password
_STATIC = {
    "app.css": "text/css",
    "report.css": "text/css",
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "vega.js": "text/javascript",
}
_SHARED = ("report.css", "charts.js")  # with the report


class Form(NamedTuple):
    """What a request asks: fields by name, each with all its values."""

    session: Session
    lists: dict[str, list[str]]

    @property
    def fields(self) -> dict[str, str]:
        """The last value of every field."""
        return {name: values[-1] for name, values in self.lists.items()}

    @property
    def request(self) -> str | None:
        """The id of a form, the hash of a long one; `None` if it has none."""
        name = self.fields.get("request", "")
        return name or None if len(name) <= _MAX_ID else sha256(name.encode()).hexdigest()


Handler = Callable[[Form], Response]


class _TooLargeError(Exception):
    pass


def make_app(workbench: Workbench, sessions: Sessions, hosts: Hosts) -> Starlette:
    """Return the web app of a workbench."""
    pages = Pages(workbench)
    handlers, door = Handlers(workbench, pages), Door(workbench, pages, sessions, hosts)

    def show(page: Callable[[Session, dict[str, str]], str]) -> Handler:
        return lambda form: HTMLResponse(page(form.session, form.fields))

    looks: dict[str, Handler] = {
        "/": show(pages.overview),
        "/items": show(pages.items),
        "/items/one": show(pages.item),
        "/review": show(pages.review),
        "/annotators": show(pages.annotators),
        "/annotators/one": show(pages.annotator),
        "/what-if": handlers.what_if,
        "/take-home": show(pages.take_home),
        "/status": handlers.status,
        "/report": handlers.report,
        "/export": handlers.export,
        "/file": handlers.media,
    }
    changes: dict[str, Handler] = {
        "/decide": handlers.decide,
        "/undo": handlers.undo,
        "/changes": handlers.keep,
        "/changes/undo": handlers.take_back,
        "/confirm": handlers.confirm,
        "/reviewer": handlers.reviewer,
    }
    routes = [
        *(Route(path, _answering(handler, pages)) for path, handler in looks.items()),
        *(
            Route(path, _answering(handler, pages), methods=["POST"])
            for path, handler in changes.items()
        ),
        Route("/static/{name}", _send_static),
        Route("/enter", door.enter),
        Route("/login", door.login, methods=["GET", "POST"]),
    ]
    guard = Middleware(Guard, sessions=sessions, hosts=hosts)
    return Starlette(routes=routes, middleware=[guard])


@dataclass(frozen=True)
class Handlers:
    """What a workbench answers to forms of a session, besides its pages."""

    workbench: Workbench
    pages: Pages

    def decide(self, form: Form) -> Response:
        """Enter a decision; go on with the queue, or back to the item."""
        fields, session = form.fields, form.session
        kind = fields.get("kind", "label")
        number, labels = fields.get("changes", ""), fields.get("labels")
        entry = self.workbench.decide(
            session.reviewer,
            fields.get("item", ""),
            kind,
            fields.get("value", "") if kind == "label" else "",
            comment=fields.get("comment", "").strip()[:_MAX_COMMENT],
            drawn=fields.get("drawn") == "1",
            request=form.request,
            changes=int(number) if re.fullmatch("[0-9]{1,18}", number) else None,
            labels=labels if labels is not None and is_fingerprint(labels) else None,
        )
        if fields.get("origin") == "review":
            return _go("/review")
        return _go("/items/one", name=entry.item)

    def undo(self, form: Form) -> Response:
        """Take back the reviewer's last decision."""
        entry = self.workbench.undo(form.session.reviewer, request=form.request)
        return _go("/items/one", name=entry.item)

    def keep(self, form: Form) -> Response:
        """Keep changes."""
        changes = self.pages.changes_asked(form.lists)
        self.workbench.keep(form.session.reviewer, changes, form.request)
        return _go("/what-if")

    def take_back(self, form: Form) -> Response:
        """Take back the changes that are kept."""
        self.workbench.take_back(form.session.reviewer, form.request)
        return _go("/what-if")

    def confirm(self, form: Form) -> Response:
        """Let decisions on labels that are gone count."""
        mark = form.fields.get("mark", "")
        self.workbench.confirm(form.session.reviewer, mark, form.request)
        return _go("/")

    def reviewer(self, form: Form) -> Response:
        """Name the reviewer, and hide or show what others say."""
        session, fields = form.session, form.fields
        session.reviewer = clean_name(fields.get("name", "")) or session.reviewer
        session.blind = fields.get("blind") == "1"
        return _go("/review")

    def what_if(self, form: Form) -> Response:
        """Return the form for changes, with the effect of those asked for."""
        return HTMLResponse(self.pages.what_if(form.session, form.fields, form.lists))

    def status(self, form: Form) -> Response:
        """Return what happens in the background."""
        return HTMLResponse(self.pages.fill("status_only.html", form.session))

    def report(self, _form: Form) -> Response:
        """Return the report."""
        policy = "frame-ancestors 'none'"  # the page has its own, with the hashes of its scripts
        body = self.workbench.present.fit.report.page()
        return HTMLResponse(body, headers={"content-security-policy": policy})

    def export(self, form: Form) -> Response:
        """Return a file to take home; one that needs a fit waits for it."""
        workbench, name = self.workbench, form.fields.get("what", "labels")
        if name == "reviews":
            return _sent(exports.reviews_table(workbench.decisions))
        if name == "journal":
            return _sent(exports.journal_table(workbench.entries()))
        is_script = name == "script"
        if name not in ("labels", "all", *exports.OF_FIT) or (
            is_script and not workbench.caller.command
        ):
            return PlainTextResponse("There is no such export.\n", 404)
        if not workbench.settled and not workbench.settle(_WAIT):
            return PlainTextResponse(f"{_why_not(workbench.problem)}\n", 503)
        fit, command = workbench.present.fit, workbench.caller.command
        if name == "labels":
            return _sent(exports.labels(fit, form.fields.get("format", "long")))
        if name == "all":
            return _sent(exports.everything(fit, workbench.decisions, workbench.entries(), command))
        make = exports.OF_FIT[name][1]
        return _sent(make(fit, command) if is_script else make(fit))

    def media(self, form: Form) -> Response:
        """Return the image, sound or video of an item."""
        text = self.workbench.present.fit.report.texts.get(form.fields.get("item", ""))
        file = media_of(text, self.workbench.folder)
        if file is None:
            return PlainTextResponse("This item has no file.\n", 404)
        return FileResponse(file.path, media_type=file.kind)


@dataclass(frozen=True)
class Door:
    """How a browser gets a session: by the token of a link, or by a name and a password."""

    workbench: Workbench
    pages: Pages
    sessions: Sessions
    hosts: Hosts

    async def enter(self, request: Request) -> Response:
        """Let in who has the token."""
        if not self.sessions.is_token(request.query_params.get("token", "")):
            return PlainTextResponse("This link has expired. Use the newest one.\n", 401)
        return self._welcome(request, self.sessions.enter(_user()))

    async def login(self, request: Request) -> Response:
        """Return the form, or let in who knows the password."""
        if not self.hosts.team:
            return PlainTextResponse("Open the link that `dissensus open` printed.\n", 401)
        if request.method != "POST":
            return HTMLResponse(self.pages.login())
        try:
            lists = await _posted(request)
        except (_TooLargeError, ClientDisconnect) as problem:
            return _refused(problem)
        fields = {name: values[-1] for name, values in lists.items()}
        journal, password = self.workbench.journal, fields.get("password", "")
        is_right = await run_in_threadpool(is_password, journal, password)
        if not is_right or not clean_name(fields.get("name", "")):
            await asyncio.sleep(_SLOW)
            words = "Give a name." if is_right else "This is not the password."
            return HTMLResponse(self.pages.login(words), 403)
        return self._welcome(request, self.sessions.enter(fields["name"]))

    def _welcome(self, request: Request, cookie: str) -> Response:
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            self.sessions.cookie, cookie, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return answer


async def _send_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.\n", 404)
    body = await run_in_threadpool(_static, name)
    headers = {"cache-control": "no-cache" if name != "vega.js" else "max-age=86400"}
    return Response(body, media_type=_STATIC[name], headers=headers)


def _sent(file: exports.Taken) -> Response:
    headers = {"content-disposition": f'attachment; filename="{file.name}"'}
    return Response(file.body, media_type=file.kind, headers=headers)


def _answering(handler: Handler, pages: Pages) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs a handler in a thread and shows its errors as pages."""

    def run(form: Form) -> Response:
        with pages.workbench.caller.scope():
            try:
                return handler(form)
            except DissensusError as problem:
                words, status = words_of(problem), 409 if isinstance(problem, RequestError) else 400
            except OSError as problem:
                words, status = reason(problem), 400
            return HTMLResponse(pages.failed(form.session, words), status)

    async def answer(request: Request) -> Response:
        session: Session = request.scope["session"]
        try:
            posted = request.method == "POST"
            lists = await _posted(request) if posted else _fields(request.url.query)
        except (_TooLargeError, ClientDisconnect) as problem:
            return _refused(problem)
        return await run_in_threadpool(run, Form(session, lists))

    return answer


async def _posted(request: Request) -> dict[str, list[str]]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise _TooLargeError
    return _fields(body.decode("utf-8", "replace"))


def _refused(problem: Exception) -> Response:
    """Return the answer to a form that cannot be read."""
    if isinstance(problem, _TooLargeError):
        return PlainTextResponse("The form is too large.\n", 413)
    return PlainTextResponse("The form did not arrive whole.\n", 400)


def _fields(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(text, keep_blank_values=True, errors="replace", max_num_fields=5000)
    except ValueError:  # too many
        return {}


def _why_not(problem: str) -> str:
    """Return why an export that needs a fit does not come, and which come without one."""
    why = f"The last fit failed: {problem}" if problem else "The fit takes long; try again"
    return f"{why.rstrip('.')}. All decisions and the journal can be taken home without a fit."


def _go(path: str, **query: str) -> RedirectResponse:
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


@lru_cache
def _static(name: str) -> str:
    if name == "vega.js":
        return embedding.bundle()
    if name in _SHARED:
        return embedding.resource(name)
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "reviewer"


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
    host_name = f"[{host}]" if ":" in host else host
    if host in ("0.0.0.0", "::"):
        host_name = socket.gethostname()
    address = f"{scheme}://{host_name}:{port}/"
    if workbench.outdated_words:
        say(workbench.outdated_words)
    if hosts.team:
        say(f"The workbench is at {address}; the password is asked for.")
        if not certificate:
            words = "Without TLS others in this network can read along"
            say(Note(words, remedy="give {} and its key.", tls_cert=...))
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
    for number in (_USUAL, 0) if port is None else (port,):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, number))
            bound.listen(128)  # from now on browsers wait instead of being refused
        except OSError as problem:
            bound.close()
            if port is None and number and problem.errno == errno.EADDRINUSE:
                continue
            why = "is taken; choose another" if problem.errno == errno.EADDRINUSE else None
            raise OptionError(f"{host}, port {number}: {why or problem.strerror}") from None
        return bound
    raise AssertionError
