"""How good each judge is beside people.

People's agreement with each other is the yardstick. For classes: the probability that the judge and
a person who labelled the same item chose the same class (the mean over people, every item counting
the same), and that of two people. Accuracy is against the known class or people's majority, where
tied classes count in parts. For numbers and ordered classes also the mean error, the mean absolute
error and the correlation. Intervals come from resampling items, or clusters of items.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..base.arrays import Floats
from ..metrics.pairs import pairwise
from ..pages import charts
from ..pages.charts import BLUE, ORANGE, Figure
from ..pages.sections import Column, Section, SortableTable
from ..pages.sections import Table as SmallTable
from ..pages.wording import amount, formatted, percent, titles
from .clusters import by_cluster, correlation, known_mean, quantiles, resampled
from .mixed import Mask, Mixed, Repeat, expected_share
from .question import ENOUGH, Estimates, hundredths, names_axis, shortened, too_few, whole_percent

_MIN_ITEMS = 50  # items with two people, below which only one person is needed
_OVERVIEW = ("agreement", "people", "kappa", "accuracy")


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """One judge against people. NaN is what cannot be computed.

    Attributes
    ----------
    judge
        The model.
    n_items
        Items that it and people labelled.
    missing
        Share of all items without an answer of it.
    agreement, low, high
        Agreement with one person, with a confidence interval.
    people
        Agreement of two people on the same items.
    kappa, people_kappa
        Cohen's kappa, weighted by the scale, averaged over pairs.
    accuracy
        Against the known class or people's majority.
    bias, absolute_error, correlation
        Of numbers and ordered classes: mean error, mean absolute error, Pearson's r.
    consistency
        Probability that two answers to the same item are equal, where it was asked again.
    confusion
        Target class and given class, in items; empty for numbers.
    kind
        `model`, or `code` for a scorer that is code.
    """

    judge: str
    n_items: int
    missing: float
    agreement: float = math.nan
    low: float = math.nan
    high: float = math.nan
    people: float = math.nan
    kappa: float
    people_kappa: float
    accuracy: float = math.nan
    bias: float = math.nan
    absolute_error: float = math.nan
    correlation: float = math.nan
    consistency: float
    confusion: Floats  # (target class, given class)
    kind: str

    def sentences(self) -> Iterator[str]:
        """Yield how it compares with people, where that is known."""
        if not self.n_items:
            yield f"How good is {self.judge}? {too_few(0, ENOUGH)}"
            return
        if not math.isnan(self.bias):
            side = "above" if self.bias > 0 else "below"
            r = f", and its correlation with them is {self.correlation:.2f}"
            yield (
                f"{self.judge} is {abs(self.bias):.2g} {side} people on average, off by "
                f"{self.absolute_error:.2g} on an item{'' if math.isnan(self.correlation) else r}."
            )
        if not math.isnan(self.agreement):
            people = f"; two people agree on {whole_percent(self.people)}"
            yield (
                f"{self.judge} agrees with a person on {whole_percent(self.agreement)} of items "
                f"({hundredths(self.low, self.high)}){'' if math.isnan(self.people) else people}."
            )
        elif not math.isnan(self.accuracy):
            share = whole_percent(self.accuracy)
            yield f"{self.judge} is right on {share} of items whose class is known."
        if self.missing >= 0.005:
            yield f"{self.judge} has no answer on {whole_percent(self.missing)} of items."
        if not math.isnan(self.consistency):
            repeated = whole_percent(self.consistency)
            yield f"Asked again, {self.judge} gives the same answer in {repeated} of cases."


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Judges(Estimates[Judge]):
    """How good every model is, and every scorer that is code."""

    name: ClassVar[str] = "judges"
    title: ClassVar[str] = "How good is each judge?"

    ordered: bool
    numeric: bool

    @property
    def models(self) -> tuple[Judge, ...]:
        """The judges that are no code."""
        return tuple(judge for judge in self.rows if judge.kind == "model")

    @property
    def sentences(self) -> tuple[str, ...]:
        """How every judge compares with people, the best model first."""
        code = self.rows[len(self.models) :]
        best = sorted(self.models, key=lambda judge: -np.nan_to_num(judge.agreement, nan=-1.0))
        sentences = [sentence for judge in (*best, *code) for sentence in judge.sentences()]
        if code:
            sentences.append("Scorers that are code are compared with people, but in no panel.")
        return tuple(sentences)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Every judge's agreement with a person, and that of two people as a line."""
        rows = [
            {"judge": shortened(judge.judge, 32)}
            | {name: getattr(judge, name) for name in ("agreement", "low", "high")}
            for judge in self.rows
            if not math.isnan(judge.agreement)
        ]
        rows.sort(key=lambda row: -row["agreement"])
        people = known_mean(np.array([judge.people for judge in self.models]))
        return {"judges": _figure(rows, people)} if rows else {}

    @property
    def sortable_table(self) -> SortableTable | None:
        """All judges."""
        words = titles("judges")
        of_classes = () if self.numeric else ("agreement", "people", "accuracy")
        forms: dict[str, Any] = dict.fromkeys(of_classes, percent) | {"kappa": ".2f"}
        if self.ordered:
            forms |= {"bias": "+.2f", "absolute_error": ".2f", "correlation": ".2f"}
        columns = {
            "judge": Column([judge.judge for judge in self.rows]),
            "kind": Column([judge.kind for judge in self.rows]),
            "items": Column([judge.n_items for judge in self.rows], "d"),
            "no answer": Column([judge.missing for judge in self.rows], percent),
        } | {
            words[name]: Column([getattr(judge, name) for judge in self.rows], form)
            for name, form in forms.items()
        }
        return SortableTable("judge-table", amount(len(self.rows), "judge"), columns)

    def sections(self) -> tuple[Section, ...]:
        """Return one section; its chart is the picture of a page."""
        return (Section(self.name, self.title, self.sentences, table=self.sortable_table),)

    def overview(self, caption: str) -> SmallTable:
        """Return agreement, kappa and accuracy of every judge."""
        words = titles("judges")
        rows = [
            (judge.judge, *(formatted(getattr(judge, name), ".3f") for name in _OVERVIEW))
            for judge in self.rows
        ]
        return SmallTable(caption, ["judge", *(words[name] for name in _OVERVIEW)], rows)


def judges(data: Mixed, *, resamples: int = 200, confidence: float = 0.95, seed: int = 0) -> Judges:
    """Return how good every model is, in the order of their names, then every scorer of code."""
    drawn = resampled(data.cluster, resamples, seed)
    rows = _compared(data, "model", drawn, confidence)
    if len(data.code):
        rows += _compared(replace(data, judges=data.code), "code", drawn, confidence)
    return Judges(rows=tuple(rows), ordered=data.ordered, numeric=data.numeric)


def _compared(data: Mixed, kind: str, drawn: Floats, confidence: float) -> list[Judge]:
    """Return the judges beside people."""
    kappas, people_kappa = _kappas(data)
    rows = []
    for number, (name, repeats) in enumerate(
        zip(data.judge_names, data.judge_repeats, strict=True)
    ):
        answered = repeats[0].label >= 0 if repeats else np.zeros(data.n_items, dtype=bool)
        labelled = answered & data.known
        numbers: dict[str, Any] = {"confusion": np.zeros((0, 0))}
        if not data.numeric and labelled.any():
            numbers = _of_classes(data, repeats, labelled, drawn, confidence)
        if data.ordered and labelled.any():
            value, target = data.judge_value(number)[labelled], data.target_value[labelled]
            error = value - target
            numbers |= {
                "bias": float(error.mean()),
                "absolute_error": float(np.abs(error).mean()),
                "correlation": correlation(value, target),
            }
        rows.append(
            Judge(
                judge=name,
                n_items=int(labelled.sum()),
                missing=1 - float(answered.mean()) if data.n_items else math.nan,
                kappa=kappas[number],
                people_kappa=people_kappa,
                consistency=_consistency(repeats),
                kind=kind,
                **numbers,
            )
        )
    return rows


def _of_classes(
    data: Mixed, repeats: list[Repeat], labelled: Mask, drawn: Floats, confidence: float
) -> dict[str, Any]:
    """Return agreement, accuracy and confusion on the items that the judge and people labelled."""
    twice = labelled & (data.n_people > 1)
    compared = twice if twice.sum() >= _MIN_ITEMS else labelled & (data.n_people > 0)
    with np.errstate(invalid="ignore"):
        agrees = expected_share(data.person_votes / data.n_people[:, None], repeats)
    total, count = by_cluster(data.cluster, np.where(compared, agrees, 0), compared.astype(float))
    with np.errstate(invalid="ignore"):
        means = (drawn @ total) / (drawn @ count)
    low, high = quantiles(means[~np.isnan(means)], confidence)
    return {
        "agreement": known_mean(agrees[compared]),
        "low": low,
        "high": high,
        "people": known_mean(data.people_agree[twice]),
        "accuracy": float(_accuracy(data, repeats)[labelled].mean()),
        "confusion": _confusion(data, repeats),
    }


def _accuracy(data: Mixed, repeats: list[Repeat]) -> Floats:
    """Return the probability of the target class, tied classes in parts: (item)."""
    votes = np.nan_to_num(data.target_shares)
    best = (votes > votes.max(axis=1)[:, None] - 1e-9) & (votes > 0)
    return expected_share(best / np.maximum(best.sum(axis=1), 1)[:, None], repeats)


def _confusion(data: Mixed, repeats: list[Repeat]) -> Floats:
    """Return how often a class of the target was given a class: (target class, given class)."""
    confusion = np.zeros((data.n_classes, data.n_classes))
    for repeat in repeats:
        rows = np.flatnonzero((repeat.label >= 0) & data.known)
        answers = np.zeros((len(rows), data.n_classes))
        answers[np.arange(len(rows)), repeat.label[rows]] = repeat.weight[rows]
        confusion += data.target_shares[rows].T @ answers
    return confusion


def _consistency(repeats: list[Repeat]) -> float:
    """Return the probability that two answers of a judge to one item are equal."""
    equal = pairs = 0
    for number, first in enumerate(repeats):
        for second in repeats[:number]:
            answered = (first.label >= 0) & (second.label >= 0)
            equal += int((first.label == second.label)[answered].sum())
            pairs += int(answered.sum())
    return equal / pairs if pairs else math.nan


def _kappas(data: Mixed) -> tuple[list[float], float]:
    """Return the mean kappa of every judge with people, and that of people."""
    everybody = data.people.merge(data.judges)
    pairs = pairwise(everybody, "cohen", weights=data.people.scale, min_overlap=5)
    is_judge = np.isin(everybody.annotators, data.judges.annotators)
    person = ~is_judge
    of_people = known_mean(pairs.value[person[pairs.one] & person[pairs.other]])
    position = {name: code for code, name in enumerate(everybody.annotators.tolist())}
    out = []
    for name in data.judges.annotators.tolist():
        code = position[name]
        with_people = ((pairs.one == code) & person[pairs.other]) | (
            (pairs.other == code) & person[pairs.one]
        )
        out.append(known_mean(pairs.value[with_people]))
    return out, of_people


def _figure(rows: list[dict[str, Any]], people: float) -> Figure:
    names = [row["judge"] for row in rows]
    x = charts.number(
        "agreement", "agreement with a person", axis=charts.PERCENT, scale={"zero": False}
    )
    y = {"field": "judge", **names_axis(names, 180)}
    tooltip = charts.tooltip(judge="", agreement=".1%", low=".1%", high=".1%")
    layers = charts.dots(x, y, tooltip, along="x", color=BLUE)
    words = "Dots are judges, with 95% intervals."
    if not math.isnan(people):
        layers.append(
            {
                "data": {"values": [{"agreement": people, "two": "two people"}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": ORANGE, "size": 2},
                "encoding": {"x": x},
            }
        )
        words += f" The dashed line is the agreement of two people, {percent(people)}."
    bounds = ("agreement", "low", "high")
    return Figure(
        "Judges and people",
        words,
        charts.chart(rows, height=max(26 * len(rows), 80), layer=layers),
        (
            ("judge", *bounds),
            *((row["judge"], *(percent(row[name]) for name in bounds)) for row in rows),
        ),
    )
