"""What Python sees: every verb on answers of every kind, and the pages of the workbench."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dissensus as ds
from dissensus.formats import read_truth

from .cases import ANSWERS
from .net import plain_text, plain_value, words_of

VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "agree": lambda answers, truth: ds.agree(answers),
    "aggregate": lambda answers, truth: ds.aggregate(answers),
    "bootstrap": lambda answers, truth: ds.bootstrap(answers, "majority", resamples=5),
    "check": lambda answers, truth: ds.check(answers),
    "compare": lambda answers, truth: ds.compare(answers),
    "evaluate": lambda answers, truth: ds.evaluate(ds.aggregate(answers), _known(answers, truth)),
    "identify": lambda answers, truth: ds.identify(answers),
    "judge": lambda answers, truth: ds.judge(answers),
    "plan": lambda answers, truth: ds.plan(answers, budget=10),
    "report": lambda answers, truth: ds.report(answers),
}


def _known(answers: Any, truth: Path) -> Any:
    return truth if answers.kind in ("classes", "numbers") else read_truth(truth, kind=answers.kind)


PAGES = ("/", "/items", "/review", "/annotators", "/what-if", "/take-home", "/status")


def python_outcomes(inputs: Path) -> dict[str, Any]:
    """Return what reading and every verb return, or how they refuse, for every kind."""
    outcomes = {}
    for name in ANSWERS:
        answers = ds.read(inputs / f"{name}.csv")
        outcomes[f"read {name}"] = {"repr": repr(answers)}
        for verb, call in VERBS.items():
            outcomes[f"{verb} {name}"] = _called(call, answers, inputs / f"{name}_truth.csv")
    return outcomes


def _called(call: Callable[[Any, Any], Any], answers: Any, truth: Path) -> dict[str, Any]:
    try:
        result = call(answers, truth)
    except (ds.DissensusError, TypeError, AttributeError) as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    shown = repr(result)
    plain = {"repr": plain_text(shown) if shown.startswith("<") else shown.partition("(")[0]}
    as_dict = getattr(result, "as_dict", None) or getattr(result, "to_dict", None)
    if as_dict is not None:
        plain["dict"] = plain_value(json.loads(json.dumps(as_dict(), default=str)))
    return plain


def workbench_outcomes(inputs: Path, folder: Path) -> dict[str, Any]:
    """Return the words of all pages before and after some decisions, and what is exported."""
    from starlette.testclient import TestClient

    from dissensus.app.guard import Hosts, Sessions
    from dissensus.app.journal import Journal
    from dissensus.app.server import make_app
    from dissensus.app.workbench import Caller, Workbench
    from dissensus.cli.open import aggregate_command
    from dissensus.formats import examine

    path = inputs / "classes.csv"
    bench = Workbench(
        lambda: examine(path), Journal(folder / "state"), name="classes.csv",
        method="dawid-skene-map", folder=folder, caller=Caller(aggregate_command),
    )  # fmt: skip
    origin = "http://127.0.0.1"
    sessions = Sessions(80)
    client = TestClient(make_app(bench, sessions, Hosts("127.0.0.1")), base_url=origin)
    client.get(f"/enter?token={sessions.token}")
    try:
        outcomes = {f"{page} at first": words_of(client.get(page).text) for page in PAGES}
        bench.start()
        for number in range(6):
            fields = {"item": f"photo {number:02}", "kind": "label", "value": "deer",
                      "request": f"request-{number}"}  # fmt: skip
            client.post("/decide", data=fields, headers={"origin": origin})
        assert bench.settle()
        for what in ("gold", "decisions", "labels"):
            export = client.get(f"/export?what={what}")
            outcomes[f"export {what}"] = {"code": export.status_code,
                                          "lines": plain_text(export.text)}  # fmt: skip
        outcomes |= {f"{page} later": words_of(client.get(page).text) for page in PAGES}
    finally:
        bench.close()
    return outcomes
