"""promptfoo: the results of an evaluation as JSON (`promptfoo eval -o results.json`).

An item is one output: test, prompt and provider; the column `system` has the provider, `test` the
test. Every assertion is an annotator who answers the question `pass`, with pass or fail: `human`
is the person who rated outputs in the viewer, `model:<type>` an assertion that asks a model
(`llm-rubric`, `g-eval`, `factuality`, …), `code:<type>` any other. A metric or a number follows
where there is more than one, `model:llm-rubric/tone`. If some score is neither 0 nor 1, scores are
a second question, `score`. What a grader could not grade, and outputs that failed with an error, is
left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from ...base.names import text
from ..collecting import Collected, describe
from ..format import Export, Format, Head
from ..json_records import records
from ..sources import Source
from .inspect_ai import Scorer, add_score

_PEOPLE = "human"
# Assertions that ask a model, as promptfoo lists them; `similar` only compares embeddings.
_MODELS = {
    *("agent-rubric", "answer-relevance", "classifier", "context-faithfulness", "context-recall"),
    *("context-relevance", "conversation-relevance", "factuality", "g-eval", "llm-rubric"),
    *("moderation", "pi", "search-rubric", "select-best", "trajectory:goal-success"),
}
_ALSO_MODELS = ("model-graded-", "promptfoo:redteam:")
_ERROR = 2  # the reason of a failure that no assertion found

Name = str | int | float | None
Scored = tuple[Scorer, str, float | int, dict[str, Any]]  # scorer, item, score, columns


class Assertion(Struct, gc=False):
    """What was asserted of an output."""

    type: str | None = None
    metric: Name = None


class About(Struct, gc=False):
    """What else is known of a result."""

    grader_error: Any = field(default=None, name="graderError")


class Component(Struct, gc=False, rename="camel"):
    """The result of one assertion, or of a set of them."""

    passed: bool | None = field(default=None, name="pass")
    score: float | int | None = None
    assertion: Assertion | None = None
    metadata: About | None = None
    component_results: list[Any] | None = None


class Grading(Struct, gc=False, rename="camel"):
    """The results of all assertions about one output."""

    component_results: list[Component | None] | None = None


class Provider(Struct, gc=False):
    """The system that wrote an output."""

    id: Name = None
    label: Name = None


class Response(Struct, gc=False):
    """An output."""

    output: Any = None


class Result(Struct, gc=False, rename="camel"):
    """One output with its grading."""

    test_idx: Name = None
    prompt_idx: Name = None
    provider: Provider | str | None = None
    vars: Any = None
    response: Response | None = None
    failure_reason: Any = None
    error: Any = None
    grading_result: Grading | None = None


class Results(Struct, gc=False):
    """All outputs."""

    results: list[Result] | None = None


class Output(Struct, gc=False):
    """A file of results."""

    results: Results | list[Result] | None = None


def recognises(head: Head) -> bool:
    """Return whether an object has an evaluation's id and results, or results in results."""
    if head.shape != "object" or "results" not in head.names:
        return False
    results = head.whole.get("results")
    if isinstance(results, dict):
        results = results.get("results")
        tests = results if isinstance(results, list) else []
        return bool(tests) and all(isinstance(test, dict) and "provider" in test for test in tests)
    return results is None and "evalId" in head.names  # too long for a beginning


def read(source: Source) -> Export:
    """Return the outcome of every assertion."""
    collection = Collected()
    scores: list[Scored] = []
    for _, output in records(source, Output):
        results = output.results
        outputs = results.results if isinstance(results, Results) else results
        for number, result in enumerate(outputs or (), 1):
            _add(collection, result, number, scores)
    if any(score not in (0, 1) for _, _, score, _ in scores):
        for scorer, item, score, about in scores:
            add_score(collection, "score", item, score, by=scorer, **about)
    return collection.export()


def _add(collection: Collected, result: Result, number: int, scores: list[Scored]) -> None:
    """Add the outcome of every assertion about one output, and collect the scores."""
    provider = result.provider
    if isinstance(provider, Provider):
        provider = text(provider.id or provider.label or "")
    test = text(number if result.test_idx is None else result.test_idx)
    parts = (test, text(result.prompt_idx or 0), provider or "")
    written = result.response.output if result.response is not None else None
    output = written if isinstance(written, str) else None
    texts = [body for body in (describe(result.vars), output) if body]
    item = collection.items.name("/".join(parts).rstrip("/"), "\n".join(texts) or None) or ""
    grading = result.grading_result
    if grading is None or not grading.component_results:
        failed = result.failure_reason == _ERROR or result.error
        collection.leave_out("failed with an error" if failed else "without assertions", item)
        return
    about = {"system": provider or None, "test": test}
    for scorer, component in _scored(grading.component_results):
        if component.metadata is not None and component.metadata.grader_error:
            collection.leave_out("whose grader failed", item)
            continue
        outcome = None if component.passed is None else "pass" if component.passed else "fail"
        add_score(collection, "pass", item, outcome, by=scorer, **about)
        if component.score is not None:
            scores.append((scorer, item, component.score, about))


def _scored(components: list[Component | None]) -> Iterator[tuple[Scorer, Component]]:
    """Yield every assertion with its scorer; the members of a set follow it in the list."""
    counts: Counter[str] = Counter()
    for component in components:
        if component is None or component.component_results or component.assertion is None:
            continue
        kind = component.assertion.type or "assertion"
        plain = kind.removeprefix("not-")
        metric = component.assertion.metric
        name = kind if metric in (None, "") else f"{kind}/{text(metric)}"
        counts[name] += 1
        if counts[name] > 1:
            name = f"{name}/{counts[name]}"
        if plain == _PEOPLE:
            yield Scorer("person", name), component
        elif plain in _MODELS or plain.startswith(_ALSO_MODELS):
            yield Scorer("model", name), component
        else:
            yield Scorer("code", name), component


FORMAT = Format("promptfoo", recognises=recognises, read=read)
