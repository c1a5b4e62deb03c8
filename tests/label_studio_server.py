"""A small server that speaks Label Studio's API as it is documented, for one project."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KEY = "0123456789abcdef0123456789abcdef01234567"
JWT = "head.bo-dy.sig_nature"


class FakeLabelStudio:
    """Tasks, annotations and predictions behind `/api/…`, and the requests that came."""

    def __init__(self, texts, project=1):
        self.project, self.next_id = project, 100
        self.tasks = {
            number: {
                "id": number,
                "data": {"text": text},
                "meta": {},
                "annotations": [],
                "predictions": [],
            }
            for number, text in enumerate(texts, 1)
        }
        self.settings = {"id": project, "title": "x", "show_collab_predictions": False}
        self.requests: list[tuple[str, str, str]] = []  # method, path, authorization
        self.failures: list[int] = []  # statuses of the next answers
        self.retry_after = ""  # seconds or a date, in answers that fail
        self.before_page = lambda number: None  # called before a page of tasks is answered
        self.shape = "total"  # of a page: with its total, without, or a list
        self.access = "a.b.c"
        self.redirect = ""
        self.body = None
        self.webhook = None
        self.lock = threading.RLock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def annotate(self, task, by, label, number=None, **more):
        """Create or update an annotation, and send the event if there is a webhook."""
        with self.lock:
            new = number is None
            tick = self._id()
            number = tick if new else number
            annotation = {
                "id": number,
                "task": task,
                "completed_by": by,
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2024-05-01T12:00:00.000000Z",
                "updated_at": f"2024-05-01T12:00:00.{tick:06}Z",
                "lead_time": 1.5,
                "result": [
                    {
                        "id": "r",
                        "from_name": "mood",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": [label] if isinstance(label, str) else label},
                    }
                ],
                **more,
            }
            there = self.tasks[task]["annotations"]
            there[:] = [one for one in there if one["id"] != number] + [annotation]
        self.send("ANNOTATION_CREATED" if new else "ANNOTATION_UPDATED", annotation=annotation)
        return number

    def delete(self, number):
        with self.lock:
            for task in self.tasks.values():
                task["annotations"][:] = [a for a in task["annotations"] if a["id"] != number]
        self.send("ANNOTATIONS_DELETED", annotations=[{"id": number}])

    def predictions(self):
        with self.lock:
            return {
                number: [
                    (one["model_version"], one["result"][0]["value"], one["score"])
                    for one in task["predictions"]
                ]
                for number, task in self.tasks.items()
            }

    def send(self, action, **payload):
        if self.webhook:
            send(self.webhook, {"action": action, **payload, "project": self.settings})

    def _id(self):
        self.next_id += 1
        return self.next_id

    def answer(self, method, path, query, body):
        """Return the status and the answer to a request."""
        with self.lock:
            if path == f"/api/projects/{self.project}/":
                return 200, self.settings
            if path == "/api/tasks/" and query.get("project") == [str(self.project)]:
                size, page = int(query["page_size"][0]), int(query["page"][0])
                self.before_page(page)
                tasks = list(self.tasks.values())
                part = tasks[size * (page - 1) : size * page]
                if page > 1 and not part:
                    return 404, {"detail": "Invalid page."}
                total = {"total": len(tasks)} if self.shape == "total" else {}
                return 200, part if self.shape == "list" else {"tasks": part, **total}
            if path == "/api/predictions/" and method == "POST":
                made = {"id": self._id(), "created_ago": "0 minutes", **body}
                self.tasks[body["task"]]["predictions"].append(made)
                return 201, made
            match = re.fullmatch(r"/api/(predictions|tasks)/(\d+)/", path)
            if match is None:
                return 404, {"detail": "Not found."}
            return self._change(match[1], int(match[2]), method, body)

    def _change(self, kind, number, method, body):
        if kind == "tasks":
            if number not in self.tasks or method != "PATCH":
                return 404, {"detail": "Not found."}
            self.tasks[number].update(body)
            return 200, self.tasks[number]
        for task in self.tasks.values():
            for one in task["predictions"]:
                if one["id"] == number:
                    if method == "DELETE":
                        task["predictions"].remove(one)
                        return 204, None
                    one.update(body)
                    return 200, one
        return 404, {"detail": "Not found."}


def send(url, event, kind="application/json"):
    """Post an event as Label Studio does, and return the status."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    request = urllib.request.Request(url, body, {"Content-Type": kind})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as problem:
        return problem.code


def _handler(studio):
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            given = self.headers.get("Authorization", "")
            studio.requests.append((self.command, parts.path, given))
            if studio.redirect:
                self.send_response(302)
                self.send_header("Location", studio.redirect)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if studio.failures:
                self.reply(studio.failures.pop(0), {"detail": f"busy {given}"})
            elif parts.path == "/api/token/refresh/":
                right = body == {"refresh": JWT}
                self.reply(200 if right else 401, {"access": studio.access} if right else {})
            elif given not in (f"Token {KEY}", f"Bearer {studio.access}"):
                self.reply(401, {"detail": f"Invalid token {given}."})
            else:
                self.reply(*studio.answer(self.command, parts.path, parse_qs(parts.query), body))

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def reply(self, status, content):
            body = b"" if content is None else json.dumps(content).encode()
            body = body if studio.body is None else studio.body
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if studio.retry_after and status >= 400:
                self.send_header("Retry-After", studio.retry_after)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler
