"""The web server: addresses, and what each answers.

Serving a workbench: a socket, a link with a token, and the browser.
"""

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
from ..errors import DissensusError, OptionError
from ..pages import embedding
from . import exports
from .browse import media_of
from .decisions import is_fingerprint
from .guard import Guard, Hosts, Session, Sessions, clean_name, is_password
from .journal import RequestError
from .pages import Pages
from .workbench import Workbench

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


class Asked(NamedTuple):
    """What a request asks: fields by name, and all values of repeated ones."""

    session: Session
    lists: dict[str, list[str]]

    @property
    def one(self) -> dict[str, str]:
        """The last value of every field."""
        return {name: values[-1] for name, values in self.lists.items()}

    @property
    def request(self) -> str | None:
        """The id of a form, the hash of a long one; `None` if it has none."""
        given = self.one.get("request", "")
        return given or None if len(given) <= _MAX_ID else sha256(given.encode()).hexdigest()


Handler = Callable[[Asked], Response]


class _TooLargeError(Exception):
    pass


def make_app(workbench: Workbench, sessions: Sessions, hosts: Hosts) -> Starlette:
    """Return the web app of a workbench."""
    pages, journal = Pages(workbench), workbench.journal

    def shown(page: Callable[[Session, dict[str, str]], str]) -> Handler:
        return lambda asked: HTMLResponse(page(asked.session, asked.one))

    def decide(asked: Asked) -> Response:
        given, session = asked.one, asked.session
        kind = given.get("kind", "label")
        number, labels = given.get("changes", ""), given.get("labels")
        entry = workbench.decide(
            session.reviewer,
            given.get("item", ""),
            kind,
            given.get("value", "") if kind == "label" else "",
            comment=given.get("comment", "").strip()[:_MAX_COMMENT],
            drawn=given.get("drawn") == "1",
            request=asked.request,
            changes=int(number) if re.fullmatch("[0-9]{1,18}", number) else None,
            labels=labels if labels is not None and is_fingerprint(labels) else None,
        )
        if given.get("origin") == "review":
            return _go("/review")
        return _go("/items/one", name=entry.item)

    def undo(asked: Asked) -> Response:
        taken = workbench.undo(asked.session.reviewer, request=asked.request)
        return _go("/items/one", name=taken.item)

    def keep(asked: Asked) -> Response:
        changes = pages.changes_asked(asked.lists)
        workbench.keep(asked.session.reviewer, changes, asked.request)
        return _go("/what-if")

    def take_back(asked: Asked) -> Response:
        workbench.take_back(asked.session.reviewer, asked.request)
        return _go("/what-if")

    def confirm(asked: Asked) -> Response:
        workbench.confirm(asked.session.reviewer, asked.one.get("mark", ""), asked.request)
        return _go("/")

    def reviewer(asked: Asked) -> Response:
        session, given = asked.session, asked.one
        session.reviewer = clean_name(given.get("name", "")) or session.reviewer
        session.blind = given.get("blind") == "1"
        return _go("/review")

    def what_if(asked: Asked) -> Response:
        return HTMLResponse(pages.what_if(asked.session, asked.one, asked.lists))

    def status(asked: Asked) -> Response:
        return HTMLResponse(pages.fill("status_only.html", asked.session))

    def report(_asked: Asked) -> Response:
        policy = "frame-ancestors 'none'"  # the page has its own, with the hashes of its scripts
        body = workbench.present.fit.report.page()
        return HTMLResponse(body, headers={"content-security-policy": policy})

    def export(asked: Asked) -> Response:
        what = asked.one.get("what", "labels")
        if what == "reviews":
            return _sent(exports.reviews_table(workbench.decisions))
        if what == "journal":
            return _sent(exports.journal_table(workbench.entries()))
        if what not in ("labels", "all", *exports.OF_FIT):
            return PlainTextResponse("There is no such export.\n", 404)
        if not workbench.settled and not workbench.settle(_WAIT):
            return PlainTextResponse(f"{_why_not(workbench.problem)}\n", 503)
        fit = workbench.present.fit
        if what == "labels":
            taken = exports.labels(fit, asked.one.get("format", "long"))
        elif what == "all":
            taken = exports.everything(fit, workbench.decisions, workbench.entries())
        else:
            taken = exports.OF_FIT[what][1](fit)
        return _sent(taken)

    def _sent(taken: exports.Taken) -> Response:
        headers = {"content-disposition": f'attachment; filename="{taken.name}"'}
        return Response(taken.body, media_type=taken.kind, headers=headers)

    def media(asked: Asked) -> Response:
        text = workbench.present.fit.report.texts.get(asked.one.get("item", ""))
        found = media_of(text, workbench.folder)
        if found is None:
            return PlainTextResponse("This item has no file.\n", 404)
        return FileResponse(found.path, media_type=found.kind)

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.\n", 404)
        body = await run_in_threadpool(_static, name)
        headers = {"cache-control": "no-cache" if name != "vega.js" else "max-age=86400"}
        return Response(body, media_type=_STATIC[name], headers=headers)

    async def enter(request: Request) -> Response:
        if not sessions.is_token(request.query_params.get("token", "")):
            return PlainTextResponse("This link has expired. Use the newest one.\n", 401)
        return _welcome(request, sessions.enter(_user()))

    async def login(request: Request) -> Response:
        if not hosts.team:
            return PlainTextResponse("Open the link that `dissensus open` printed.\n", 401)
        if request.method != "POST":
            return HTMLResponse(pages.login())
        try:
            fields = await _form(request)
        except (_TooLargeError, ClientDisconnect) as problem:
            return _refused(problem)
        given = {name: values[-1] for name, values in fields.items()}
        right = await run_in_threadpool(is_password, journal, given.get("password", ""))
        if not right or not clean_name(given.get("name", "")):
            await asyncio.sleep(_SLOW)
            words = "Give a name." if right else "This is not the password."
            return HTMLResponse(pages.login(words), 403)
        return _welcome(request, sessions.enter(given["name"]))

    def _welcome(request: Request, cookie: str) -> Response:
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            sessions.cookie, cookie, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return answer

    def route(path: str, handler: Handler, method: str = "GET") -> Route:
        return Route(path, _answering(handler, pages), methods=[method])

    routes = [
        route("/", shown(pages.overview)),
        route("/items", shown(pages.items)),
        route("/items/one", shown(pages.item)),
        route("/review", shown(pages.review)),
        route("/annotators", shown(pages.annotators)),
        route("/annotators/one", shown(pages.annotator)),
        route("/what-if", what_if),
        route("/take-home", shown(pages.take_home)),
        route("/status", status),
        route("/report", report),
        route("/export", export),
        route("/file", media),
        route("/decide", decide, "POST"),
        route("/undo", undo, "POST"),
        route("/changes", keep, "POST"),
        route("/changes/undo", take_back, "POST"),
        route("/confirm", confirm, "POST"),
        route("/reviewer", reviewer, "POST"),
        Route("/static/{name}", static),
        Route("/enter", enter),
        Route("/login", login, methods=["GET", "POST"]),
    ]
    guard = Middleware(Guard, sessions=sessions, hosts=hosts)
    return Starlette(routes=routes, middleware=[guard])


def _answering(handler: Handler, pages: Pages) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that runs a handler in a thread and shows its errors as pages."""

    async def answer(request: Request) -> Response:
        session: Session = request.scope["session"]
        try:
            posted = request.method == "POST"
            lists = await _form(request) if posted else _fields(request.url.query)
            return await run_in_threadpool(handler, Asked(session, lists))
        except (_TooLargeError, ClientDisconnect) as problem:
            return _refused(problem)
        except DissensusError as problem:
            words, status = str(problem), 409 if isinstance(problem, RequestError) else 400
        except OSError as problem:
            words, status = reason(problem), 400
        page = await run_in_threadpool(pages.failed, session, words)
        return HTMLResponse(page, status)

    return answer


async def _form(request: Request) -> dict[str, list[str]]:
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
