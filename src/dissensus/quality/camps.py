"""Camps: two groups of annotators who disagree systematically.

A statement about groups has to pass four rules, because any crowd can be cut into two groups that
look different on the items they were found with:

1. Groups of one half of the items agree more within than between on the other half:
   the mean t of twelve splits, both ways, is above 1.645.
2. Severity does not explain it: t lies 2.33 standard deviations above that of crowds drawn from a
   model in which annotators only differ in severity and in how far they follow the items.
3. On held-out items the correlation within groups exceeds that between them by .05.
4. Two halves of the items give 85 % of the annotators the same group.

All four: "camps". The first three: "some agree more". The first without the second: "severity".
Annotators with fewer than 20 labels on shared items, and those who hardly follow the items, take no
part. With "none", planted camps show what could have been found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..answers.selections import content_order
from ..base.arrays import Floats, FrozenArrays, Integers
from ..base.names import Names
from ..base.storage import as_plain
from ..errors import OptionError
from ..pages.sections import Section
from ..result import Result, Table
from .camp_tests import (
    OneCamp,
    OneOrderedCamp,
    SharedLabels,
    Splits,
    fit_one_camp,
    fit_one_ordered_camp,
)

MIN_LABELS = 20  # on items that others labelled too
MAX_ANNOTATORS = 3000  # pairs of annotators are compared
MIN_T, MIN_Z, MIN_DIFFERENCE, MIN_SAME = 1.645, 2.33, 0.05, 0.85

_DRAWS, _FIRST = 49, 9  # crowds without camps; the first may settle that severity explains all
_PLANTED, _MISSED = 10, 2  # crowds with camps for each share of items; how many may be missed
_SHARES = (0.1, 0.2, 0.3, 0.5)  # of the items, on which planted camps are independent
_LEAST = 4  # annotators, two in each camp
_WEAK = 0.25  # of the median, below which somebody hardly follows the items
_MAX_PAIRS = 10_000_000  # of labels, times classes; beyond, items are sampled
_MAX_DIVIDING = 20
_NAMED = 6  # annotators named in a sentence

Verdict = Literal["camps", "some agree more", "severity", "none"]


class Division(NamedTuple):
    """An item that divides the camps."""

    item: int  # code
    shares: tuple[tuple[float, ...], tuple[float, ...]]  # (camp, class), of the labels given


@dataclass(frozen=True, eq=False, repr=False)
class Camps(FrozenArrays, Result):
    """Whether annotators fall into two camps.

    Attributes
    ----------
    verdict
        `camps`, `some agree more`, `severity` or `none`.
    group
        The camp of every annotator, 0 for the larger; 0 for all who take part where there are no
        camps, -1 for those left out: (annotator).
    t, z
        Statistics of rules 1 and 2; NaN where not computed.
    correlation_within, correlation_between
        Mean correlation of the labels of two annotators on held-out items, within and between
        groups. It is Cohen's kappa where both give every label equally often.
    same_group
        Share of annotators with the same group from two halves of the items.
    detectable
        The smallest share of items, of those tried, on which two camps could judge independently
        of each other and be found in 80 % of simulated crowds; NaN where none could.
    dividing
        The items that divide the camps most, with the share of every label in each camp.
    label_shares
        How often each camp gives a label on items that both labelled: (camp, class).
    severity
        The label whose share differs most between annotators, with the 10th and 90th percentile
        of that share; only where the verdict is `severity`.
    reason
        Why camps were not looked for, or "".
    sampled
        Share of the items that was compared; of very many pairs of labels, a sample.
    """

    annotators: Names
    items: Names
    classes: Names
    verdict: Verdict
    group: Integers
    t: float = math.nan
    z: float = math.nan
    correlation_within: float = math.nan
    correlation_between: float = math.nan
    same_group: float = math.nan
    detectable: float = math.nan
    dividing: tuple[Division, ...] = ()
    label_shares: Floats | None = None
    severity: tuple[str, float, float] = ("", math.nan, math.nan)
    reason: str = ""
    sampled: float = 1.0

    def __repr__(self) -> str:
        return f"<Camps: {self.verdict}; {self.sentence}>"

    @property
    def members(self) -> tuple[list[str], list[str]]:
        """The names in both camps."""
        first, second = (self.annotators[self.group == camp].tolist() for camp in (0, 1))
        return first, second

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        sampling = (
            f" Compared on {100 * self.sampled:.0f} % of the items." if self.sampled < 1 else ""
        )
        return self._found() + sampling

    @property
    def tables(self) -> Mapping[str, Table]:
        """The camp of every annotator."""
        return {"camps": {"annotator": self.annotators, "camp": self.group}}

    def sections(self) -> tuple[Section, ...]:
        """Return what was found, in a sentence."""
        return (Section("camps", "Camps", text=[self.sentence]),)

    def _found(self) -> str:
        n = int((self.group >= 0).sum())
        if self.reason:
            return f"Camps were not looked for: {self.reason}."
        within, between = f"{self.correlation_within:.2f}", f"{self.correlation_between:.2f}"
        if self.verdict == "camps":
            first, second = map(_listed, self.members)
            return (
                f"There are two camps: (1) {first}; (2) {second}. They agree more with their own "
                f"camp (correlation {within}) than with the other ({between}).{self._readiness()} "
                "They judge differently; neither camp is wrong for it."
            )
        if self.verdict == "some agree more":
            return (
                f"Some of {n} annotators agree more with each other (correlation {within}) than "
                f"with the others ({between}), but who belongs where is not clear: two halves of "
                f"the items give {100 * self.same_group:.0f}% of them the same group."
            )
        if self.verdict == "severity":
            name, low, high = self.severity
            return (
                f"Annotators differ in how readily they give the label {name} (most of them in "
                f"{100 * low:.0f} to {100 * high:.0f} % of their labels); no camps beyond that "
                f"were found. {self._power()}"
            )
        if self.t > MIN_T:
            return (
                f"Groups among {n} annotators can be measured but are close: correlation {within} "
                f"within and {between} between them, too little to speak of camps."
            )
        return f"No camps were found among {n} annotators. {self._power()}"

    def _readiness(self) -> str:
        """Return on which label the camps differ most, as a sentence."""
        if self.label_shares is None:
            return ""
        k = int(np.abs(self.label_shares[0] - self.label_shares[1]).argmax())
        first, second = (100 * self.label_shares[:, k]).tolist()
        name = self.classes[k]
        return (
            f" Camp 1 gives the label {name} to {first:.0f} %, camp 2 to {second:.0f} % of items."
        )

    def _power(self) -> str:
        if math.isnan(self.detectable):
            return (
                "But these labels can hardly show any: even two camps that judge half of the items "
                "independently of each other would mostly be missed."
            )
        return (
            f"Two equal camps that judge {100 * self.detectable:.0f} % of the items independently "
            "of each other would mostly have been found; smaller differences may exist."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON; `None` for NaN."""
        names = (
            *("t", "z", "correlation_within", "correlation_between"),
            *("same_group", "detectable", "sampled"),
        )
        classes = self.classes.tolist()
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            **{name: as_plain(getattr(self, name)) for name in names},
            "group": dict(zip(self.annotators.tolist(), self.group.tolist(), strict=True)),
            "dividing": [
                {"item": str(self.items[division.item])}
                | {"shares": [dict(zip(classes, part, strict=True)) for part in division.shares]}
                for division in self.dividing
            ],
        }


def camps(
    annotations: Annotations,
    *,
    left_out: npt.ArrayLike | None = None,
    ordered: bool = False,
    seed: int = 0,
) -> Camps:
    """Return whether annotators fall into two camps that disagree systematically.

    Parameters
    ----------
    annotations
        The annotations.
    left_out
        Annotators who do not follow the items, found random, constant or reversed: one truth value
        for each; by default nobody.
    ordered
        Whether the classes are in order; then their positions are scores, and annotators are
        compared by the correlation of these instead of equal labels.
    seed
        Random seed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(400, 2))  # (item, camp)
    >>> truth[:250, 1] = truth[:250, 0]
    >>> right = rng.random((400, 8)) < 0.9
    >>> labels = (truth[:, [0] * 5 + [1] * 3] == right).astype(int)
    >>> crowd = camps(Annotations.from_matrix(labels))
    >>> crowd.verdict, crowd.group.tolist()
    ('camps', [0, 0, 0, 0, 0, 1, 1, 1])
    """
    included = np.ones(annotations.n_annotators, dtype=bool)
    if left_out is not None:
        included = ~np.asarray(left_out, dtype=bool)
        if len(included) != annotations.n_annotators:
            n = annotations.n_annotators
            raise OptionError(f"left_out has {len(included)} values, but there are {n} annotators")
    rng = np.random.default_rng(seed)
    orders = content_order(annotations, ordered=ordered)
    rows = _rows_by_content(annotations, orders)
    crowd = SharedLabels(rows, included[orders[1]], annotations.n_classes, ordered)
    crowd = crowd.keep(crowd.shared_labels() >= MIN_LABELS)
    crowd = crowd.keep(crowd.shared_labels() >= MIN_LABELS)  # some lost their co-annotators
    names = annotations.annotators, annotations.items, annotations.classes
    group = np.full(annotations.n_annotators, -1)
    reason, sampled = _obstacle(crowd), 1.0
    if not reason:
        n_items = len(crowd.items)
        crowd = crowd.sample(_MAX_PAIRS, rng)
        sampled = len(crowd.items) / n_items
        loading = crowd.loadings()
        follows = loading >= _WEAK * np.median(loading[crowd.included])
        crowd = crowd.keep(follows)
        reason = _obstacle(crowd)
    if reason:
        return Camps(*names, "none", group, reason=reason)
    taking_part = orders[1][crowd.included]  # codes of annotators, in the crowd's order
    group[taking_part] = 0
    splits = Splits(crowd, rng)
    split = splits.compare(crowd.label)
    camp = crowd.groups()
    small = min((camp > 0).sum(), (camp < 0).sum()) < 2
    values: dict[str, Any] = split._asdict() | {"sampled": sampled}
    model, threshold = _one_camp(crowd), MIN_T
    if split.t > MIN_T:
        mean, deviation = _without_camps(splits, model, split.t, rng)
        values["z"] = (split.t - mean) / deviation
        threshold = max(MIN_T, mean + MIN_Z * deviation)
    difference = split.correlation_within - split.correlation_between
    different = difference >= MIN_DIFFERENCE and not small
    if split.t > threshold and different:
        if split.same_group < MIN_SAME:
            return Camps(*names, "some agree more", group, **values)
        larger = 1 if (camp > 0).sum() >= (camp < 0).sum() else -1
        group[taking_part] = np.where(camp == larger, 0, 1)
        dividing, shares = _divisions(annotations, group)
        return Camps(*names, "camps", group, **values, dividing=dividing, label_shares=shares)
    if split.t > threshold:
        return Camps(*names, "none", group, **values)
    values["detectable"] = _detectable(splits, model, threshold, rng)
    if split.t > MIN_T:
        severity = _severity(annotations, group)
        return Camps(*names, "severity", group, **values, severity=severity)
    return Camps(*names, "none", group, **values)


def _rows_by_content(annotations: Annotations, orders: tuple[Integers, ...]) -> Integers:
    """Return item, annotator and label by their position in the order of content."""
    codes = annotations.item, annotations.annotator, annotations.label
    rows = np.stack([np.argsort(order)[code] for order, code in zip(orders, codes, strict=True)])
    return rows[:, np.lexsort(rows[::-1])]


def _one_camp(crowd: SharedLabels) -> OneCamp | OneOrderedCamp:
    """Return a model of this crowd without camps."""
    if crowd.ordered:
        return fit_one_ordered_camp(crowd.on(), crowd.item, crowd.label)
    shape = len(crowd.items), int(crowd.included.sum()), crowd.n_classes
    return fit_one_camp(crowd.item, crowd.annotator, crowd.label, shape)


def _without_camps(
    splits: Splits, model: OneCamp | OneOrderedCamp, t: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return mean and standard deviation of t in crowds that differ in severity only."""
    drawn: list[float] = []
    for count in (_FIRST, _DRAWS):
        while len(drawn) < count:
            drawn.append(splits.compare(model.draw(rng), drawn=True).t)
        mean, deviation = float(np.mean(drawn)), max(float(np.std(drawn, ddof=1)), 1e-9)
        if t < mean + deviation:
            break
    return mean, deviation


def _obstacle(crowd: SharedLabels) -> str:
    """Return why camps cannot be looked for, or ""."""
    n = int(crowd.included.sum())
    if n < _LEAST:
        few = "nobody has" if n == 0 else f"only {n} annotators have"
        return f"{few} {MIN_LABELS} labels that follow the items, where others labelled too"
    if n > MAX_ANNOTATORS:
        return f"{n} annotators are too many to compare all pairs (at most {MAX_ANNOTATORS})"
    return ""


def _detectable(
    splits: Splits, model: OneCamp | OneOrderedCamp, threshold: float, rng: np.random.Generator
) -> float:
    """Return the smallest share of items on which planted camps are found in 80 % of crowds."""
    for share in _SHARES:
        missed = 0
        for _ in range(_PLANTED):
            split = splits.compare(model.draw(rng, share), drawn=True)
            differs = split.correlation_within - split.correlation_between >= MIN_DIFFERENCE
            missed += not (split.t > threshold and differs)
            if missed > _MISSED:
                break
        else:
            return share
    return math.nan


def _divisions(annotations: Annotations, group: Integers) -> tuple[tuple[Division, ...], Floats]:
    """Return the items that divide the camps most, and the share of every label in each camp."""
    camp, n_classes = group[annotations.annotator], annotations.n_classes
    cell = annotations.item.astype(np.int64) * n_classes + annotations.label
    votes = np.stack(
        [
            np.bincount(cell[camp == number], minlength=annotations.n_items * n_classes)
            for number in (0, 1)
        ]
    ).reshape(2, annotations.n_items, n_classes)
    size = votes.sum(axis=2)  # (camp, item)
    shared = np.flatnonzero((size > 0).all(axis=0))
    shares = votes[:, shared] / size[:, shared, None]
    # Few labels say less: one more label, as the item has them, is added to each camp.
    mean = votes[:, shared].sum(axis=0) / size[:, shared].sum(axis=0)[:, None]
    shrunk = (votes[:, shared] + mean) / (size[:, shared, None] + 1)
    distance = np.abs(shrunk[0] - shrunk[1]).sum(axis=1) / 2
    order = np.argsort(-distance, kind="stable")[:_MAX_DIVIDING]
    dividing = tuple(
        Division(int(shared[k]), (tuple(shares[0, k].tolist()), tuple(shares[1, k].tolist())))
        for k in order.tolist()
        if distance[k] > 0
    )
    return dividing, shares.mean(axis=1)


def _severity(annotations: Annotations, group: Integers) -> tuple[str, float, float]:
    """Return the class whose share differs most, and its 10th and 90th percentile."""
    n_classes = annotations.n_classes
    cell = annotations.annotator.astype(np.int64) * n_classes + annotations.label
    counts = np.bincount(cell, minlength=len(group) * n_classes).reshape(-1, n_classes)[group >= 0]
    low, high = np.quantile(counts / counts.sum(axis=1, keepdims=True), [0.1, 0.9], axis=0)
    k = int((high - low).argmax())
    return str(annotations.classes[k]), float(low[k]), float(high[k])


def _listed(names: list[str]) -> str:
    """Return the names of a camp, or their number."""
    if len(names) > _NAMED:
        return f"{len(names)} annotators"
    return ", ".join(names)
