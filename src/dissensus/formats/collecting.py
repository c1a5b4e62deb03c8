"""Answers collected from an export one by one, question by question, until they become tables.

Classes are collected as labels, other kinds as values. Who submitted an item and marked nothing
gave an empty answer; who did not submit it gave none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from ..answers.left_out import LeftOut
from ..answers.sets import join_options, split_options
from ..base.names import text
from ..errors import DataError
from .cells import as_times
from .columns import NEEDED
from .format import Export, Kind, Question
from .questions import as_texts
from .shapes import runs_of, union
from .sources import Source

MARKS: tuple[Kind, ...] = ("spans", "boxes", "points", "masks")
_LONGEST_TEXT = 2**53  # characters, which numbers can count
_BEYOND = 0.01  # share of an image's side that a mark may reach out of it, and one pixel more
_LONG = 60  # characters of a text that names an item
_TEXTS = ("text", "html", "image", "audio", "video", "url")  # what an item usually is
_NOTHING = "(none)"  # the label of an empty set
_FREE = 20  # more different answers than this, most of them different, are free text

Pair = tuple[str, str]  # item, annotator
Options = tuple[str, ...]  # the names of what was chosen, in order


class About(NamedTuple):
    """What is known of an answer beside its value."""

    time: Any = None
    duration: Any = None
    confidence: Any = None
    model: bool = False


class KindAnswers:
    """The answers to one question of another kind than classes."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.values: dict[Pair, Any] = {}
        self.about: dict[Pair, About] = {}
        self.gold: dict[str, Any] = {}
        self.repeated = 0

    def add(self, item: str, annotator: str, value: Any, about: About | None = None) -> None:
        """Add an answer; it replaces an earlier one of the annotator."""
        pair = item, annotator
        self.repeated += pair in self.values
        self.values[pair] = value
        self.about[pair] = about or About()

    def append(self, item: str, annotator: str, mark: Any) -> None:
        """Add a mark to the answer of an annotator."""
        self.values.setdefault((item, annotator), []).append(mark)
        self.about.setdefault((item, annotator), About())

    def complete(self, submitted: Mapping[Pair, About]) -> None:
        """Add empty answers of all who submitted an item."""
        empty: Any = "" if self.kind == "texts" else []
        for pair, about in submitted.items():
            if pair not in self.values:
                self.values[pair], self.about[pair] = empty, about

    def questions(
        self,
        name: str,
        sizes: Mapping[str, tuple[int, int]],
        left_out: Counter[tuple[str | None, str]],
    ) -> dict[str, Question]:
        """Return the question; masks have one for every label."""
        if self.kind != "masks":
            left_out[name, "repeated"] += self.repeated
            return {name: self._question(self.values, self.gold, sizes)}
        sized = {pair: shapes for pair, shapes in self.values.items() if pair[0] in sizes}
        unsized = len(self.values) - len(sized)
        labels = sorted({label for shapes in sized.values() for label, _ in shapes})
        questions = {}
        for label in labels or [""]:
            masks = {pair: _mask(v, label, sizes[pair[0]]) for pair, v in sized.items()}
            gold = {i: _mask(v, label, sizes[i]) for i, v in self.gold.items() if i in sizes}
            question = name if len(labels) < 2 else f"{name}:{label}"
            questions[question] = self._question(masks, gold, sizes)
            left_out[question, "repeated"] += self.repeated
            left_out[question, "on images whose size is unknown"] += unsized
        return questions

    def _question(
        self,
        values: Mapping[Pair, Any],
        gold: Mapping[str, Any],
        sizes: Mapping[str, tuple[int, int]],
    ) -> Question:
        about = [self.about[pair] for pair in values]
        columns = {
            "item": pl.Series([item for item, _ in values], dtype=pl.String),
            "annotator": pl.Series([annotator for _, annotator in values], dtype=pl.String),
        }
        carried = {
            "time": as_times([answer.time for answer in about]),
            "duration": pl.Series(
                [answer.duration for answer in about], dtype=pl.Float64, strict=False
            ),
            "confidence": pl.Series(
                [answer.confidence for answer in about], dtype=pl.Float64, strict=False
            ),
        }
        columns |= {key: column for key, column in carried.items() if column.count()}
        if any(answer.model for answer in about):
            source = ["model" if answer.model else "person" for answer in about]
            columns["source"] = pl.Series(source)
        return Question(
            pl.DataFrame(columns), self.kind, gold=gold, values=list(values.values()), sizes=sizes
        )


def _mask(shapes: Any, label: str, size: tuple[int, int]) -> dict[str, Any]:
    """Return the union of an answer's shapes of one label as a mask."""
    ranges = union(shape for name, shape in shapes if name == label)
    return {"size": list(size), "counts": runs_of(ranges, size)}


@contextmanager
def located(source: Source, where: str) -> Iterator[None]:
    """Say in errors about what a file holds which file it is, and where in it."""
    try:
        yield
    except DataError as problem:
        raise source.fail(f"{where}: {problem}") from None


def span(start: Any, end: Any, label: Any = None, length: int | None = None) -> dict[str, Any]:
    """Return a span; refuse one that is not within a text of this length."""
    if not all(
        isinstance(bound, (int, float)) and not isinstance(bound, bool) for bound in (start, end)
    ):
        raise DataError(f"a span from {start!r:.20} to {end!r:.20}, which are no numbers")
    if max(abs(start), abs(end)) >= _LONGEST_TEXT:
        raise DataError(f"a span from {start!r:.20} to {end!r:.20}, which no text has")
    if not 0 <= start < end:
        raise DataError(f"a span from {start:g} to {end:g}; 0 ≤ start < end")
    if length is not None and end > length:
        raise DataError(f"a span from {start:g} to {end:g}, but the text has {length} characters")
    return _labelled({"start": start, "end": end}, label)


def box(
    place: Sequence[Any], label: Any = None, size: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return a box of x, y, w, h; refuse one that reaches out of an image of this size."""
    mark = dict(zip("xywh", map(_number, place), strict=True))
    if mark["w"] < 0 or mark["h"] < 0:
        raise DataError(f"a box of {mark['w']:g} × {mark['h']:g}; w and h are at least 0")
    _check_within("box", mark["x"], mark["y"], size)
    _check_within("box", mark["x"] + mark["w"], mark["y"] + mark["h"], size)
    return _labelled(mark, label)


def point(x: Any, y: Any, label: Any = None, size: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return a point; refuse one out of an image of this height and width."""
    mark = {"x": _number(x), "y": _number(y)}
    _check_within("point", mark["x"], mark["y"], size)
    return _labelled(mark, label)


def length_of(text: Any) -> int | None:
    """Return how far a span in a text may reach; some tools count UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(text, str) else None


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"a coordinate is {value!r:.20}, not a number") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise DataError("a coordinate is not a finite number")
    return number


def _check_within(word: str, x: float, y: float, size: tuple[int, int] | None) -> None:
    if size is None:
        return
    for at, side in ((x, size[1]), (y, size[0])):
        if not -1 - _BEYOND * side <= at <= side * (1 + _BEYOND) + 1:
            raise DataError(
                f"a {word} reaches {x:g}, {y:g}, out of its image of {size[1]} × {size[0]} pixels"
            )


def _labelled(mark: dict[str, Any], label: Any) -> dict[str, Any]:
    return mark if label is None or label == "" else mark | {"label": str(label)}


class QuestionAnswers:
    """The answers to one question: of classes one option each, of sets any number, also none.

    Once somebody chose several, all answers are sets.
    """

    def __init__(self) -> None:
        self.item: list[str] = []
        self.annotator: list[str] = []
        self.options: list[Options] = []
        self.time: list[Any] = []
        self.duration: list[Any] = []
        self.further: dict[str, dict[int, Any]] = {}  # further columns, by row
        self.sources: dict[int, str | None] = {}  # model, code or unknown, by row; else people
        self.kind: Kind = "single"
        self.several = False
        self.classes: dict[str, None] = {}
        self.gold: dict[str, Options] = {}
        self.conflicting: set[str] = set()
        self._people: dict[str, str] = {}  # equal names are one text in memory
        self.known: dict[Options, Options] = {}

    def add(
        self,
        item: str,
        annotator: str,
        options: Collection[Any],
        time: Any = None,
        duration: Any = None,
        **further: Any,
    ) -> None:
        """Add one answer."""
        for column, value in further.items():
            if value is not None:
                self.further.setdefault(column, {})[len(self.item)] = value
        names = _names(options)
        self.several |= len(options) > 1
        self.item.append(item)
        self.annotator.append(self._people.setdefault(annotator, annotator))
        self.options.append(self.known.setdefault(names, names))
        self.time.append(time)
        self.duration.append(duration)

    def add_model(
        self, item: str, name: Any, options: Collection[Any], confidence: Any = None
    ) -> None:
        """Add the answer of a model, which is an annotator named `model:<name>`."""
        self.sources[len(self.item)] = "model"
        confidence = confidence if isinstance(confidence, (int, float)) else None
        self.add(item, model_name(name), options, confidence=confidence)

    def add_by(
        self,
        kind: str | None,
        name: str,
        item: str,
        options: Collection[Any],
        time: Any = None,
        **further: Any,
    ) -> None:
        """Add the answer of a person, a model, code or, without a kind, of somebody unknown.

        Models and code are annotators named `model:<name>` and `code:<name>`.
        """
        if kind != "person":
            self.sources[len(self.item)] = kind
        annotator = f"{kind}:{name}" if kind in ("model", "code") else name
        self.add(item, annotator, options, time, **further)

    def add_gold(self, item: str, options: Collection[Any]) -> None:
        """Add a gold label, or gold options; two different ones of an item cancel."""
        names = _names(options)
        if self.gold.setdefault(item, names) != names:
            self.conflicting.add(item)

    def question(self) -> Question:
        """Return the question with its answers as a table."""
        columns = {
            "item": pl.Series(self.item, dtype=pl.String),
            "annotator": pl.Series(self.annotator, dtype=pl.String),
            "label": pl.Series(
                [next(iter(names), None) for names in self.options], dtype=pl.String
            ),
            "time": as_times(self.time),
            "duration": pl.Series(self.duration, dtype=pl.Float64, strict=False),
        }
        for name, by_row in self.further.items():
            values = [by_row.get(row) for row in range(len(self.item))]
            dtype = pl.Float64 if name == "confidence" else None
            columns[name] = pl.Series(values, dtype=dtype, strict=False)
        if self.sources:
            sources = [self.sources.get(row, "person") for row in range(len(self.item))]
            columns["source"] = pl.Series(sources, dtype=pl.String)
        frame = pl.DataFrame(
            {name: column for name, column in columns.items() if name in NEEDED or column.count()}
        )
        gold = {item: names for item, names in self.gold.items() if item not in self.conflicting}
        if self.several:
            return Question(
                frame.drop("label"),
                "sets",
                gold={item: list(names) for item, names in gold.items()},
                values=[list(names) for names in self.options],
            )
        frame = frame.drop_nulls("label") if () in self.known else frame
        labels = {item: names[0] for item, names in gold.items() if names}
        return Question(frame, self.kind, self._declared(), gold=labels)

    def _declared(self) -> tuple[str, ...] | None:
        """Return the options that were offered, if only they were chosen."""
        labels = {name for names in self.known for name in names}
        is_declared = self.kind in ("single", "ordinal") and self.classes
        return tuple(self.classes) if is_declared and labels <= self.classes.keys() else None


class ItemTexts:
    """The names and texts of items."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}  # of all items
        self.texts: dict[str, str] = {}
        self.conflicts: set[str] = set()
        self._named: dict[str, str] = {}

    def name(self, identifier: Any, body: str | None) -> str | None:
        """Return an item's name: its id, else its text, shortened with a number if it is long."""
        if identifier is not None and identifier != "":
            item = identifier if type(identifier) is str else text(identifier)
        elif body:
            item = self._named.get(body) or self._shortened(body)
        else:
            return None
        self.names[item] = None
        if body and self.texts.setdefault(item, body) != body:
            self.conflicts.add(item)
        return item

    def _shortened(self, body: str) -> str:
        number = len(self._named) + 1
        name = body if len(body) <= _LONG else f"{body[: _LONG - 1]}… ({number})"
        return self._named.setdefault(body, name)

    def table(self) -> pl.DataFrame | None:
        """Return items and texts, if there are any."""
        if not self.texts:
            return None
        return pl.DataFrame({"item": list(self.texts), "text": list(self.texts.values())})


class Collected:
    """All questions of an export, its items, and counts of what was left out.

    `submitted` has everybody who looked at an item, where one submission answers all questions:
    who marked nothing then gave an empty answer. Options and texts may be optional, so nothing
    is an empty answer to them only if it is the whole submission and there is no other question.
    """

    def __init__(self) -> None:
        self.questions: dict[str, QuestionAnswers] = {}
        self.others: dict[tuple[str, Kind], KindAnswers] = {}
        self.submitted: dict[Pair, About] = {}
        self.blank: set[Pair] = set()  # submitted without any answer
        self.sizes: dict[str, tuple[int, int]] = {}  # item → height and width of its image
        self.items = ItemTexts()
        self.left: Counter[str] = Counter()  # what was left out of answers → how many
        self.left_out: Counter[tuple[str | None, str]] = Counter()  # question, reason → answers
        self.people: dict[str, None] = {}  # whose answers were left out
        self.notes: list[str] = []

    def __getitem__(self, name: str) -> QuestionAnswers:
        """Return the answers to a question, which may be new."""
        if name not in self.questions:
            self.questions[name] = QuestionAnswers()
        return self.questions[name]

    def of_kind(self, name: str, kind: Kind) -> KindAnswers:
        """Return the answers of another kind than classes to a question, which may be new."""
        return self.others.setdefault((name, kind), KindAnswers(kind))

    def leave_out(
        self,
        reason: str,
        item: str | None = None,
        annotator: str | None = None,
        *,
        question: str | None = None,
    ) -> None:
        """Count an answer that is left out, to one question or to whichever it would be."""
        self.left_out[question, reason] += 1
        if item:
            self.items.names[item] = None
        if annotator:
            self.people[annotator] = None

    def add_size(self, item: str, size: tuple[int, int]) -> None:
        """Add the height and width of an image; refuse a second, different one."""
        if self.sizes.setdefault(item, size) != size:
            raise DataError(f"image {item!r} has two sizes, {self.sizes[item]} and {size}")

    def _complete(self) -> None:
        """Add the empty answers of those who submitted an item and marked nothing."""
        marked = [answers for answers in self.others.values() if answers.kind in MARKS]
        texts = [answers for answers in self.others.values() if answers.kind == "texts"]
        for answers in marked:
            answers.complete(self.submitted)
        blank = {pair: self.submitted[pair] for pair in self.submitted if pair in self.blank}
        is_single = len(self.questions) + len(self.others) == 1
        if is_single and texts:
            texts[0].complete(blank)
        elif is_single and (
            several := [answers for answers in self.questions.values() if answers.several]
        ):
            for (item, annotator), about in blank.items():
                several[0].add(item, annotator, (), about.time, about.duration)
        elif not marked:
            for item, annotator in blank:
                self.leave_out("without an answer", item, annotator)

    def _other_questions(self, names: Collection[str]) -> dict[str, Question]:
        """Return the questions of other kinds; a name that is taken gets its kind added."""
        questions: dict[str, Question] = {}
        for (name, kind), answers in self.others.items():
            is_taken = name in names or sum(name == other for other, _ in self.others) > 1
            free = f"{name} ({kind})" if is_taken else name
            questions |= answers.questions(free, self.sizes, self.left_out)
        return {name: question for name, question in questions.items() if question.answers.height}

    def export_of_files(self) -> Export:
        """Return the export of tools whose files have an annotator each."""
        people = sorted({annotator for _, annotator in self.submitted})
        if len(people) == 1:
            self.notes.append(
                f"one file, so one annotator, {people[0]!r}; a folder may have a file of each"
            )
        return self.export()

    def export(self, *, texts: bool = False) -> Export:
        """Return the export; with `texts`, what looks like free text is no class."""
        self._complete()
        tables = {
            name: answers.question() for name, answers in self.questions.items() if answers.item
        }
        kind_questions = self._other_questions(tables)
        questions = {name: self.questions[name] for name in tables}
        for name, answers in questions.items():
            nothing = enumerate(answers.options) if () in answers.known else ()
            for row in (row for row, names in nothing if not (names or answers.several)):
                item, annotator = answers.item[row], answers.annotator[row]
                self.leave_out("with nothing chosen", item, annotator, question=name)
            self.left[f"items with contradicting gold for {name!r}"] += len(answers.conflicting)
        notes = [f"left out: {reason} ({count})" for reason, count in self.left.items() if count]
        sources = Counter(
            source for answers in questions.values() for source in answers.sources.values()
        )
        for source, words in (("model", "models"), ("code", "code")):
            if sources[source]:
                notes.append(f"labels by {words}: {sources[source]}; the column source marks them")
        if self.items.conflicts:
            notes.append(f"items whose text differs under the same id: {len(self.items.conflicts)}")
        tables = with_texts(tables) if texts else tables
        tables = self._accounted(tables | kind_questions)
        return Export(tables, self.items.table(), (*self.notes, *notes))

    def _accounted(self, tables: Mapping[str, Question]) -> dict[str, Question]:
        """Return the questions with what was left out of each, and who answered none of them."""
        names: list[tuple[str, ...]] = []
        for role, everybody in (("item", self.items.names), ("annotator", self.people)):
            labelled = {
                name for question in tables.values() for name in question.answers[role].unique()
            }
            names.append(tuple(name for name in everybody if name not in labelled))
        counts: dict[str | None, dict[str, int]] = {}
        for (question, reason), count in self.left_out.items():
            counts.setdefault(question if question in tables else None, {})[reason] = count
        shared = LeftOut(counts.pop(None, {}), *names)
        return {
            name: replace(question, left_out=shared + LeftOut(counts.get(name, {})))
            for name, question in tables.items()
        }


def with_texts(questions: Mapping[str, Question]) -> dict[str, Question]:
    """Return the questions, those that were answered in free text as texts.

    If all of them look like that, they may be classes with many names, and stay classes.
    """
    prose = {
        name
        for name, question in questions.items()
        if question.kind == "single" and is_free_text(question.answers["label"].to_list())
    }
    if len(prose) == len(questions):
        return dict(questions)
    return {
        name: as_texts(question) if name in prose else question
        for name, question in questions.items()
    }


def is_free_text(answers: Sequence[str]) -> bool:
    """Return whether answers look like texts that people wrote, not like classes or numbers."""
    distinct = pl.Series(answers, dtype=pl.String).unique()
    if distinct.cast(pl.Float64, strict=False).null_count() == 0:
        return False
    many = len(distinct) > max(_FREE, len(answers) / 2)
    return many or bool((distinct.str.len_chars() > 200).any())


def as_labels(question: Question) -> Question:
    r"""Return a question of sets as one of classes, with a class for every set of options.

    >>> rows = pl.DataFrame({"item": ["a", "b"], "annotator": ["x", "x"]})
    >>> as_labels(Question(rows, "sets", values=[["b", "a|c"], []])).contents()
    ['a\\|c|b', '(none)']
    """
    labels = [None if options is None else label_of_options(options) for options in question.values]
    column = pl.Series("label", labels, dtype=pl.String)
    answers = question.answers.with_columns(column)
    gold = {item: label_of_options(options) for item, options in question.gold.items()}
    return replace(question, answers=answers, gold=gold, values=())


def label_of_options(options: Collection[Any]) -> str:
    """Return the label that stands for a set of options."""
    return join_options(_names(options)) or _NOTHING


def options_of_label(label: str) -> list[str]:
    r"""Return the options in a label that stands for a set of them.

    >>> options_of_label(r"cat|dog\|wolf"), options_of_label("(none)")
    (['cat', 'dog|wolf'], [])
    """
    return [] if label == _NOTHING else split_options(label)


def _names(options: Collection[Any]) -> Options:
    """Return the names of options in their order, each once; a single empty name is none."""
    names = {option if type(option) is str else text(option) for option in options}
    return () if names == {""} else tuple(sorted(names))


def model_name(name: Any) -> str:
    """Return the annotator that a model is."""
    return "model" if name is None or name == "" else f"model:{text(name)}"


def describe(data: Any) -> str | None:
    """Return the text of an item: its text or link, or all texts in it with their names."""
    if isinstance(data, str):
        return data if _is_text(data) else None
    if not isinstance(data, Mapping):
        return None
    for name in _TEXTS:
        if name in data and _is_text(data[name]):
            return data[name]
    texts = {name: value for name, value in data.items() if _is_text(value)}
    if len(texts) < 2:
        return next(iter(texts.values()), None)
    return "\n".join(f"{name}: {value}" for name, value in texts.items())


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not value.startswith("data:")
