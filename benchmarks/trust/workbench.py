"""The workbench under load.

Run it with `python benchmarks/run.py trust workbench [size reviewers kills what-if stop]`.

Real servers are asked over HTTP by the standard library's client. `size`: a million labels on
200 000 items. `reviewers`: twenty at once, a hundred decisions each. `kills`: -9 while deciding.
`stop`: on gold sets, a reviewer who knows the truth follows the queue until the workbench says that
it is good enough; the error rate that it states then is compared with the true one
(stopping.py).
"""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from defaults import labels
from dissensus.app.journal import Journal
from dissensus.planning.label_errors import SPREAD
from gold_sets import SETS, load
from pages import Section, Table
from stopping import SPREADS, chosen_without, follow, stated
from stopping import stop as stopped

SEED = 0


class Server:
    """A workbench in a process of its own."""

    def __init__(self, path: Path, *options: str) -> None:
        line = [sys.executable, "-m", "dissensus", "open", str(path), "--no-browser", "--port", "0"]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [*line, *options], stderr=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stderr is not None
        for text in self.process.stderr:
            found = re.search(r"http://127.0.0.1:(\d+)/enter\?token=(\S+)", text)
            if found:
                break
        else:
            raise RuntimeError("the workbench did not start")
        self.port, self.token = int(found[1]), found[2]
        self.seconds = time.perf_counter() - self.started

    def client(self, name: str = "ann") -> Client:
        """Return a reviewer's browser."""
        return Client(self, name)

    def memory(self) -> float:
        """Return the largest memory so far, in GiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**20  # type: ignore[index]

    def kill(self) -> None:
        """End it without a word."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Client:
    """A reviewer's browser: one connection, a cookie."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        answer = self.ask(f"/enter?token={server.token}", cookie="")
        self.cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        self.post("/reviewer", name=name)

    def ask(
        self, path: str, body: str | None = None, cookie: str | None = None
    ) -> http.client.HTTPResponse:
        """Return the answer to a request; its body is in `text`."""
        headers = {"cookie": self.cookie if cookie is None else cookie}
        if body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
            headers["origin"] = f"http://127.0.0.1:{self.server.port}"
        self.connection.request("GET" if body is None else "POST", path, body, headers)
        answer = self.connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        return answer

    def post(self, path: str, **fields: str) -> http.client.HTTPResponse:
        """Return the answer to a form."""
        return self.ask(path, urlencode(fields))

    def next_item(self) -> str | None:
        """Return the next item of the queue."""
        text = self.ask("/review").text  # type: ignore[attr-defined]
        found = re.search(r'name="item" value="([^"]*)"', text)
        return found[1] if found else None


def milliseconds(work: list[float]) -> str:
    """Return the median and the 95th percentile."""
    half, most = np.percentile(np.array(work) * 1000, [50, 95])
    return f"{half:.0f} / {most:.0f}"


def size(folder: Path) -> list[tuple[str, str, str]]:
    """Return rows about a million labels."""
    path = labels(folder / "million.csv", 1_000_000)
    server = Server(path)
    client, rng = server.client(), random.Random(SEED)
    queries = {
        "list": lambda: {"page": str(rng.randint(1, 4000)), "sort": rng.choice(["item", "labels"])},
        "filter": lambda: {
            "label": f"c{rng.randint(0, 4)}",
            "votes": rng.choice(["split", "unanimous", ""]),
            "status": rng.choice(["", "open"]),
        },
        "search": lambda: {"q": str(rng.randint(100, 9999))},
        "an annotator": lambda: {"annotator": f"a{rng.randint(0, 999)}"},
    }
    spent: dict[str, list[float]] = {name: [] for name in queries}
    for name in [*queries] * 125:
        start = time.perf_counter()
        answer = client.ask("/items?" + urlencode(queries[name]()))
        spent[name].append(time.perf_counter() - start)
        assert answer.status == 200
    rows = [
        (f"{name}, median / 95th percentile, ms", milliseconds(each), "300")
        for name, each in spent.items()
    ]
    together = [one for each in spent.values() for one in each]
    rows.append(("all 500 requests", milliseconds(together), "300"))
    decided = []
    for _ in range(30):
        item = client.next_item()
        start = time.perf_counter()
        client.post("/decide", item=str(item), value="c0", request=str(rng.random()))
        shown = client.ask("/items/one?" + urlencode({"name": str(item)}))
        decided.append(time.perf_counter() - start)
        assert "provisional" in shown.text  # type: ignore[attr-defined]
    rows.append(("a decision, and its item as updated", milliseconds(decided), "500"))
    rows.append(("largest memory, GiB", f"{server.memory():.2f}", "1.5"))
    rows.append(("start, with reading and the fit, s", f"{server.seconds:.1f}", ""))
    server.kill()
    return rows


def reviewers(folder: Path) -> list[tuple[str, str, str]]:
    """Return rows about twenty reviewers at once."""
    path = labels(folder / "many.csv", 50_000)
    server = Server(path)

    def work(k: int) -> list[str]:
        client, mine = server.client(f"reviewer {k}"), []
        for n in range(100):
            item = client.next_item()
            given = {"item": str(item), "value": f"c{n % 5}", "request": f"{k}-{n}"}
            answers = [client.post("/decide", **given)]
            if n % 7 == 0:  # a browser that sends it again
                answers.append(client.post("/decide", **given))
            assert all(one.status == 303 for one in answers)
            mine.append(str(item))
        return mine

    start = time.perf_counter()
    with ThreadPoolExecutor(20) as pool:
        acknowledged = [item for mine in pool.map(work, range(20)) for item in mine]
    seconds = time.perf_counter() - start
    server.kill()
    journal = Journal(f"{path}.workbench")
    kept = Counter(one.item for one in journal.entries())
    journal.close()
    return [
        ("decisions acknowledged", str(len(acknowledged)), "2000"),
        ("lost", str(sum((Counter(acknowledged) - kept).values())), "0"),
        ("doubled", str(sum((kept - Counter(acknowledged)).values())), "0"),
        ("items given to two reviewers", str(sum(n > 1 for n in kept.values())), "0"),
        ("decisions per second", f"{2000 / seconds:.0f}", ""),
    ]


def kills(folder: Path, number: int = 25) -> list[tuple[str, str, str]]:
    """Return rows about kills at random moments while four reviewers decide."""
    path = labels(folder / "killed.csv", 20_000)
    rng, acknowledged = random.Random(SEED), set()
    for attempt in range(number):
        server = Server(path)

        def work(k: int, server: Server = server, attempt: int = attempt) -> None:
            try:
                client = server.client(f"reviewer {k}")
                for n in range(10_000):
                    item = client.next_item()
                    name = f"{attempt}-{k}-{n}"
                    answer = client.post(
                        "/decide", item=str(item), value="c1", comment=name, request=name
                    )
                    if answer.status == 303:
                        acknowledged.add(name)
            except (OSError, http.client.HTTPException):
                return

        with ThreadPoolExecutor(4) as pool:
            for k in range(4):
                pool.submit(work, k)
            time.sleep(rng.uniform(0.3, 2.0))
            server.kill()
    journal = Journal(f"{path}.workbench")
    kept = Counter(one.comment for one in journal.entries())
    journal.close()
    return [
        ("kills", str(number), "25"),
        ("decisions acknowledged", str(len(acknowledged)), ""),
        ("of these lost", str(len(acknowledged - set(kept))), "0"),
        ("doubled", str(sum(n > 1 for n in kept.values())), "0"),
    ]


def what_if(folder: Path) -> list[tuple[str, str, str]]:
    """Return a row about a what-if with 100 000 labels."""
    server = Server(labels(folder / "what_if.csv", 100_000))
    client, spent = server.client(), []
    for k in range(5):
        start = time.perf_counter()
        answer = client.ask("/what-if?" + urlencode({"try": "1", "leave": f"a{k}"}))
        spent.append(time.perf_counter() - start)
        assert "would change" in answer.text  # type: ignore[attr-defined]
    server.kill()
    return [("what if, median / 95th percentile, ms", milliseconds(spent), "3000")]


def stop(_folder: Path) -> list[tuple[str, ...]]:
    """Return, for every gold set, what is stated at the stop and what is true."""
    followed, before = {}, {}
    for name in SETS:
        annotations, truth = load(name)
        known = [item for item in annotations.items.tolist() if item in truth]
        fits = follow(annotations.subset(items=known), truth)
        followed[name], before[name] = fits, float(fits[0].wrong.mean())
        print(name, flush=True)
    paths = {
        spread: {name: list(stated(fits, spread)) for name, fits in followed.items()}
        for spread in SPREADS
    }
    scores = {
        spread: {name: float(np.mean([one.score for one in way])) for name, way in ways.items()}
        for spread, ways in paths.items()
    }
    rows = []
    for name, spread in chosen_without(scores).items():
        end, way = stopped(followed[name], spread), paths[spread][name]
        rows.append(
            (
                name,
                str(len(followed[name][0].certainty)),
                f"{before[name]:.1%}",
                f"{end.checked:.0%}",
                f"{end.expected:.1%} ({end.low:.1%} to {end.high:.1%})",
                f"{end.true:.1%}",
                "yes" if end.holds else "no",
                "yes" if end.true <= 0.05 else "no",
                f"{np.mean([one.holds for one in way]):.0%}",
                f"{spread.shift}, {spread.slope}, {spread.drift}",
            )
        )
    best = min(scores, key=lambda spread: np.mean(list(scores[spread].values())))
    print("best on all sets:", best, "in use:", SPREAD)
    return rows


PARTS = {"size": size, "reviewers": reviewers, "kills": kills, "what-if": what_if, "stop": stop}
TITLES = {
    "size": "A million labels on 200 000 items",
    "reviewers": "Twenty reviewers at once, a hundred decisions each",
    "kills": "Kills with -9 while four reviewers decide",
    "what-if": "What if, with 100 000 labels",
    "stop": "A reviewer who knows the truth, until the workbench says stop (target 95 %)",
}
_STOP = (
    "set",
    "items",
    "wrong before",
    "checked",
    "stated wrong (90 %)",
    "truly wrong",
    "holds",
    "≤ 5 %",
    "holds on the way",
    "shift, slope, drift",
)


def main() -> None:
    """Measure, show and keep."""
    for name in sys.argv[1:] or list(PARTS):
        section = Section(f"workbench {name}", "workbench")
        with tempfile.TemporaryDirectory() as folder:
            rows = PARTS[name](Path(folder))
        columns = _STOP if name == "stop" else ("what", "seen", "bar")
        section.add(Table(TITLES[name], columns, rows))
        section.write()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
