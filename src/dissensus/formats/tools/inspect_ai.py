"""inspect: logs of evaluations, `.eval` (a zip) or `.json`, with the scores of all samples.

A sample is an item, its epochs are repeats (the column `epoch`), and the model under evaluation is
the column `system`. Every scorer is an annotator: `model:<scorer>` if it is inspect's
`model_graded_…` or was given a model, `code:<scorer>` otherwise. Their texts answer the question
`score`, their numbers `number`; the entries of an object are questions of their own, and so are
scores that a person has added. Edited scores are answers of the author of the edit, beside the
scorer's. Scores without a value and samples that were invalidated are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ..annotator_files import Archive, opened
from ..collecting import Collected
from ..format import Export, Format, Head
from ..json_records import decode, records
from ..sources import Source

_HEADERS = ("header.json", "_journal/start.json")  # of a finished and of a running evaluation
_SAMPLES = "samples/"
_UNCHANGED = "UNCHANGED"
_GRADED = "model_graded_"  # inspect's own scorers that ask a model
_MODELS = ("model", "models", "grader", "judge")  # options that name a model
_ATTACHED = "attachment://"  # a text that is kept elsewhere in the log
_UNSCORED = "without a value"
_PARTS = "with parts in parts"


class Scorer(NamedTuple):
    """Who gave a score; the kind is unknown where the tool does not record it."""

    kind: Literal["person", "model", "code"] | None
    name: str


def add_score(
    collection: Collected,
    question: str,
    item: str,
    value: Any,
    *,
    by: Scorer,
    time: Any = None,
    **further: Any,
) -> bool:
    """Add one score, and return whether none of it was left out; what is no label is counted.

    The parts of an object are questions of their own, `question.part`; a list is several options.
    """
    if isinstance(value, dict):
        whole = True
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                collection.leave_out(_PARTS, item, question=f"{question}.{name}")
                whole = False
            else:
                named = f"{question}.{name}"
                whole &= add_score(collection, named, item, part, by=by, time=time, **further)
        return whole
    options = options_of(value)
    if options is None:
        reason = _PARTS if isinstance(value, list) else _UNSCORED
        person = by.name if by.kind == "person" else None
        collection.leave_out(reason, item, person, question=question)
        return False
    answers = collection[question]
    answers.several |= isinstance(value, list)
    answers.add_by(by.kind, by.name, item=item, options=options, time=time, **further)
    return True


def options_of(value: Any) -> list[Any] | None:
    """Return the options that a value holds; nothing where it cannot be a label.

    >>> options_of(4.0), options_of(["b", "a"]), options_of(float("nan"))
    ([4.0], ['b', 'a'], None)
    """
    if value is None or value == "" or isinstance(value, dict):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        flat = all(isinstance(part, (str, int, float)) for part in value)
        return value if flat else None
    return [value]


class Provenance(Struct, gc=False):
    """Who edited a score, and when."""

    author: str | None = None
    timestamp: str | int | float | None = None


class Edit(Struct, gc=False):
    """A score before or after an edit; without provenance, the scorer's own."""

    value: Any = _UNCHANGED
    provenance: Provenance | None = None


class Score(Struct, gc=False):
    """The score of one scorer."""

    value: Any = None
    history: list[Edit] | None = None


class Sample(Struct, gc=False):
    """One item in one epoch."""

    id: int | str | float | None = None
    epoch: int | None = 1
    input: Any = None
    scores: dict[str, Score] | None = None
    completed_at: str | int | float | None = None
    error: Any = None
    invalidation: Any = None


class ScorerSpec(Struct, gc=False):
    """A scorer and its options."""

    name: str | None = None
    options: Any = None


class Spec(Struct, gc=False):
    """What was evaluated."""

    model: str | None = None
    scorers: list[ScorerSpec] | None = None


class Log(Struct, gc=False):
    """A log, with its samples if it is one file."""

    eval: Spec | None = None
    samples: list[Sample] | None = None


def recognises(head: Head) -> bool:
    """Return whether a zip holds a header and samples, or an object a log with its evaluation."""
    if head.shape == "archive":
        return any(name in head.names for name in _HEADERS)
    spec = head.whole.get("eval") if head.shape == "object" else None
    return isinstance(spec, dict) and "task" in spec and "model" in spec


def read(source: Source) -> Export:
    """Return the scores of every sample."""
    collection = Collected()
    if source.format == "zip":
        with opened(source, lambda name: name in _HEADERS or _is_sample(name)) as archive:
            header = next((name for name in _HEADERS if name in archive.members), None)
            if header is None:
                raise source.fail("a zip without header.json, which every log of inspect has")
            spec = _decoded(source, archive, header, Log).eval or Spec()
            scorers = _scorers(spec)
            for name in filter(_is_sample, archive.members):
                sample = _decoded(source, archive, name, Sample)
                _add(collection, source, system=spec.model, scorers=scorers, sample=sample)
    else:
        for _, log in records(source, Log):
            spec = log.eval or Spec()
            scorers = _scorers(spec)
            for sample in log.samples or ():
                _add(collection, source, system=spec.model, scorers=scorers, sample=sample)
    return collection.export()


def _is_sample(name: str) -> bool:
    return name.startswith(_SAMPLES) and name.endswith(".json")


def _decoded(source: Source, archive: Archive, name: str, kind: type[Any]) -> Any:
    inner = replace(source, name=f"{source.name}: {name[:80]!r}")
    for _, record in decode(inner, archive.read(name), kind, by_hand=False):
        return record
    raise inner.fail("empty")


def _add(
    collection: Collected,
    source: Source,
    system: str | None,
    scorers: dict[str, bool],
    sample: Sample,
) -> None:
    """Add the scores of one sample."""
    item = collection.items.name(sample.id, _text(sample.input))
    if item is None:
        raise source.fail("a sample without an id")
    if sample.invalidation is not None:
        collection.leave_out("invalidated", item)
        return
    if not sample.scores:
        collection.leave_out("ended in an error" if sample.error else "without a score", item)
        return
    for name, score in sample.scores.items():
        by_person = any(edit.provenance for edit in (score.history or ())[:1])
        added = by_person and _listed(name, scorers) not in scorers
        for scorer, value, time in _answers(name, score, scorers):
            when = sample.completed_at if time is None else time
            about: Any = {"epoch": sample.epoch, "system": system}
            for question, part in _questions(value, name if added else None):
                add_score(collection, question, item, part, by=scorer, time=when, **about)


def _answers(
    name: str, score: Score, scorers: dict[str, bool]
) -> Iterator[tuple[Scorer, Any, Any]]:
    """Yield scorer, value and time: the scorer's own value, and the last of every editor."""
    listed = _listed(name, scorers)
    model = listed.startswith(_GRADED) or scorers.get(listed, False)
    own = Scorer("model" if model else "code", name)
    if not score.history:
        yield own, score.value, None
        return
    last: dict[Scorer, tuple[Any, Any]] = {}
    for edit in score.history:
        by = edit.provenance
        if edit.value != _UNCHANGED:
            last[own if by is None else Scorer("person", by.author or "unknown author")] = (
                edit.value,
                None if by is None else by.timestamp,
            )
    for scorer, (value, time) in last.items():
        yield scorer, value, time


def _questions(value: Any, question: str | None) -> Iterator[tuple[str, Any]]:
    """Yield questions and their values; a score that a person has added is a question."""
    if isinstance(value, dict):
        yield from value.items()
    elif question is not None:
        yield question, value
    else:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        yield "number" if number else "score", value


def _scorers(spec: Spec) -> dict[str, bool]:
    """Return scorer → whether it asks a model."""
    asks_model: dict[str, bool] = {}
    for scorer in spec.scorers or ():
        options = scorer.options if isinstance(scorer.options, dict) else {}
        name = (scorer.name or "").rpartition("/")[2]
        asks_model[name] = asks_model.get(name, False) or any(map(options.get, _MODELS))
    return asks_model


def _listed(name: str, scorers: dict[str, bool]) -> str:
    """Return the name that a scorer has in the list: without its package, or a second's number."""
    short = name.rpartition("/")[2]
    return short if short in scorers else re.sub(r"\d+$", "", short)


def _text(inputs: Any) -> str | None:
    """Return the text of an input: a text, or the last message with one."""
    if isinstance(inputs, list):
        contents = [message.get("content") for message in inputs if isinstance(message, dict)]
        inputs = next((content for content in reversed(contents) if isinstance(content, str)), None)
    if not isinstance(inputs, str) or inputs.startswith(_ATTACHED):
        return None
    return inputs


FORMAT = Format("inspect", recognises=recognises, read=read, kinds=("sets",))
