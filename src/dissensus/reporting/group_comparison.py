"""Two rounds of annotation, or two groups of annotators: what they share and what differs.

Before and after a training, people and models: each group is aggregated by itself, and differences
are reported with intervals. Whether labels are right is judged by both groups together, without
the annotator's own labels, so that no annotator seems to change because others did. An annotator's
change is the difference of two shares of right labels (Agresti and Caffo); that of alpha takes the
groups for independent, which errs towards caution where they share items. A change of an annotator
is called clear if it holds although so many annotators are compared (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..aggregation import aggregate
from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..base.arrays import Integers
from ..base.names import indices_of, union
from ..base.probability import Proportion, proportion
from ..base.storage import as_plain
from ..errors import DataError, OptionError
from ..formats import as_answers, as_truth
from ..metrics import Agreement, Estimate, Evaluation, agree, cohen_kappa, evaluate, in_words
from ..pages.page import PageReport
from ..pages.sections import CONFIDENT
from ..pages.wording import amount, listed, percent
from ..quality import identify
from ..quality.verdicts import LEFT_OUT
from ..result import Table
from .group_page import group_page
from .sentences import volume

Z = float(ndtri(0.975))
UNCLEAR = "no clear change"
_STEPS = 3


class Change(NamedTuple):
    """A share or a difference with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """Whether it is clearly above zero, clearly below, or neither."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else UNCLEAR


def share_of(selected: Any) -> Change:
    """Return a share with Wilson's interval."""
    share = proportion(np.array([float(np.sum(selected))]), np.array([float(len(selected))]))
    return Change(*(float(bounds[0]) for bounds in (share.value, share.low, share.high)))


@dataclass(frozen=True, eq=False)
class Group:
    """One of the two: its annotations and what was inferred from them."""

    name: str
    annotations: Annotations
    result: ClassAggregation
    accuracy: Proportion  # (annotator)
    n_random: int  # annotators whose answers ignore the items
    agreement: Agreement
    evaluation: Evaluation | None

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha with its interval."""
        return self.agreement["alpha"]

    @cached_property
    def right(self) -> Change:
        """The share of labels that agree with the consensus of the others, over annotators."""
        counted = self.accuracy.among > 0
        among = self.accuracy.among[counted]
        if not len(among):
            return Change(math.nan, math.nan, math.nan)
        right = self.accuracy.value[counted] * among
        share, n = float(right.sum() / among.sum()), len(among)
        variance = float(((right - share * among) ** 2).sum()) * n / max(n - 1, 1)
        reach = Z * math.sqrt(variance) / float(among.sum()) if n > 1 else math.nan
        return Change(share, max(share - reach, 0.0), min(share + reach, 1.0))

    @cached_property
    def unsure(self) -> Change:
        """The share of items that need review."""
        identifiable = (self.annotations.labels_per_item > 0) & self.result.is_identifiable
        return share_of(self.result.confidence[identifiable] < CONFIDENT)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {
            "name": self.name,
            "method": self.result.method,
            "n_annotators": self.annotations.n_annotators,
            "n_items": self.annotations.n_items,
            "n_labels": len(self.annotations),
            "agreement": self.agreement.as_dict(),
            "right": as_plain(self.right),
            "unsure": as_plain(self.unsure),
            "evaluation": as_plain(self.evaluation),
        }


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison(PageReport):
    """Two groups, or two rounds: what they share and what differs.

    Attributes
    ----------
    first, second
        The two groups.
    n_common
        Items that both groups labelled.
    same
        Share of these that got the same label, with its interval.
    kappa
        Cohen's, of the inferred labels of the groups on common items.
    alpha
        How much higher the alpha of the second group is.
    annotators
        Annotators in both groups as columns: their labels, the share that is right, its change
        with bounds, and a verdict; the largest losses first.
    items
        Items whose label differs as columns, those of the highest confidence first.
    """

    first: Group
    second: Group
    n_common: int
    same: Change
    kappa: float
    alpha: Change
    annotators: Table
    items: Table
    seed: int = 0

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of both groups."""
        return f"{self.first.name} and {self.second.name}"

    @cached_property
    def sentences(self) -> list[str]:
        """The comparison in a few sentences."""
        first, second = self.first, self.second
        sentences = [f"{group.name}: {volume(group.annotations)}." for group in (first, second)]
        first_alpha, second_alpha = first.alpha.value, second.alpha.value
        if not (math.isnan(first_alpha) or math.isnan(second_alpha)):
            words = {"better": "is higher", "worse": "is lower"}
            sentences.append(
                f"Agreement {words.get(self.alpha.word, 'is about the same')} in {second.name}: "
                f"alpha {first_alpha:.2f} ({in_words(first_alpha)}), then {second_alpha:.2f} "
                f"({in_words(second_alpha)}), a difference of {self.alpha.value:+.2f} "
                f"({self.alpha.low:+.2f} to {self.alpha.high:+.2f})."
            )
        changed = len(self.items["item"])
        sentences.append(
            f"Of {amount(self.n_common, 'item')} in both, {changed} "
            f"({percent(changed / self.n_common)}) got another label."
            if self.n_common
            else "No item is in both, so labels cannot be compared."
        )
        annotators, verdicts = self.annotators["annotator"], self.annotators["verdict"]
        names = {word: annotators[verdicts == word].tolist() for word in ("better", "worse")}
        changes = [
            f"Clearly {word} in {second.name}: {listed(people)}."
            for word, people in names.items()
            if people
        ]
        count = len(annotators)
        unchanged = f"Of {amount(count, 'annotator')} in both, nobody got clearly better or worse."
        return sentences + (changes or [unchanged if count else "No annotator is in both."])

    layout = group_page

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        fields = ("n_common", "same", "kappa", "alpha", "annotators", "items")
        return {
            "sentences": self.sentences,
            "groups": [self.first.as_dict(), self.second.as_dict()],
            **{name: as_plain(getattr(self, name)) for name in fields},
        }


def report_groups(
    first: Any,
    second: Any,
    method: str = "auto",
    *,
    names: tuple[str, str] = ("first", "second"),
    truth: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> GroupComparison:
    """Compare two rounds of annotation, or two groups of annotators.

    Parameters
    ----------
    first, second
        Annotations, or what `read` takes.
    method
        How to aggregate each of the two.
    names
        Their names.
    truth
        Known labels to score both with, `{item: label}` or a table.
    seed
        Random seed.
    progress
        Called with the number of completed steps and their total.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, _ = demo()
    >>> groups = report_groups(annotations, annotations, "majority", names=("before", "after"))
    >>> groups.sentences[-2:]
    ['Of 500 items in both, 0 (0%) got another label.',
     'Of 40 annotators in both, nobody got clearly better or worse.']
    """
    progress = progress or (lambda _completed, _total: None)
    if names[0] == names[1]:
        raise OptionError(f"both groups are called {names[0]}; give them different names")
    parts = [as_answers(first, kind="classes"), as_answers(second, kind="classes")]
    for name, part in zip(names, parts, strict=True):
        if len(part) == 0:
            raise DataError(f"there are no labels in {name}")
        part.check_classes("a comparison of two groups")
    classes = union(parts[0].classes, parts[1].classes)
    scale = parts[0].scale if parts[0].scale == parts[1].scale else "nominal"
    parts = [part.recode(classes).with_scale(scale) for part in parts]
    known_labels = None if truth is None else as_truth(truth)
    joint = _joint(*parts)
    fitted = aggregate(joint, method, seed=seed)
    judged = identify(joint, fitted, copying=False, seed=seed)
    progress(1, _STEPS)
    groups = []
    for position, (name, part) in enumerate(zip(names, parts, strict=True)):
        start = position * parts[0].n_annotators
        own = slice(start, start + part.n_annotators)
        result = aggregate(part, method, seed=seed)
        groups.append(
            Group(
                name=name,
                annotations=part,
                result=result,
                accuracy=Proportion(*(column[own] for column in judged.accuracy)),
                n_random=int(np.isin(judged.verdict[own], LEFT_OUT).sum()),
                agreement=agree(part, seed=seed),
                evaluation=None
                if known_labels is None
                else evaluate(result, known_labels, seed=seed),
            )
        )
        progress(position + 2, _STEPS)
    before, after = groups
    in_after = indices_of(before.annotations.items, after.annotations.items)
    common = np.flatnonzero((in_after >= 0) & (before.result.label >= 0))
    common = common[after.result.label[in_after[common]] >= 0]
    labels = np.stack([before.result.label[common], after.result.label[in_after[common]]], axis=1)
    difference = after.alpha.value - before.alpha.value
    reach = Z * math.hypot(before.alpha.error, after.alpha.error)
    return GroupComparison(
        first=before,
        second=after,
        n_common=len(common),
        same=share_of(labels[:, 0] == labels[:, 1]),
        kappa=cohen_kappa(Annotations.from_matrix(labels), min_overlap=1),
        alpha=Change(difference, difference - reach, difference + reach),
        annotators=_changed_annotators(before, after),
        items=_changed_items(before, after, common, in_after[common]),
        seed=seed,
    )


def split_by(annotations: Annotations, column: str) -> dict[str, Annotations]:
    """Return the annotations of both values of a column, by value.

    >>> source = ["person", "model"] * 2
    >>> annotations = Annotations.from_columns("aabb", "xyxy", "0110", source=source)
    >>> list(split_by(annotations, "source"))
    ['model', 'person']
    """
    if column not in annotations.columns:
        present = ", ".join(annotations.columns) or "none"
        raise OptionError(f"no column {column!r} besides the labels; there are: {present}")
    values = np.asarray([str(value) for value in annotations.columns[column].tolist()])
    distinct = sorted(set(values.tolist()))
    if len(distinct) != 2:
        examples = ", ".join(distinct[:5])
        raise OptionError(f"{column} has {len(distinct)} values ({examples}), but two are compared")
    groups = {}
    for value in distinct:
        part = annotations.keep(values == value)
        groups[value] = part.subset(
            items=part.labels_per_item > 0, annotators=part.labels_per_annotator > 0
        )
    return groups


def _joint(first: Annotations, second: Annotations) -> Annotations:
    """Return both together; an annotator of both counts as two."""
    items = union(first.items, second.items)
    item = [indices_of(part.items, items)[part.item] for part in (first, second)]
    annotator = (
        first.annotator.astype(np.int64),
        second.annotator.astype(np.int64) + first.n_annotators,
    )
    return Annotations.from_codes(
        np.concatenate(item),
        np.concatenate(annotator),
        np.concatenate([first.label, second.label]),
        items=items,
        annotators=first.n_annotators + second.n_annotators,
        classes=first.classes,
        scale=first.scale,
    )


def _changed_annotators(first: Group, second: Group) -> Table:
    """Return the annotators in both groups, the largest losses first."""
    position = indices_of(first.annotations.annotators, second.annotations.annotators)
    in_both = np.flatnonzero(position >= 0)
    groups = [(first.accuracy, in_both), (second.accuracy, position[in_both])]
    count = np.stack([score.among[annotator] for score, annotator in groups])  # (group, annotator)
    right = np.stack([score.value[annotator] for score, annotator in groups])
    compared = np.flatnonzero((count > 0).all(axis=0))
    # Agresti and Caffo: one right and one wrong label more in each group.
    share = (right * count + 1)[:, compared] / (count + 2)[:, compared]
    reach = Z * np.sqrt((share * (1 - share) / (count + 2)[:, compared]).sum(axis=0))
    change = share[1] - share[0]
    wider = float(ndtri(1 - 0.025 / max(len(compared), 1))) / Z * reach
    verdict = np.select([change - wider > 0, change + wider < 0], ["better", "worse"], UNCLEAR)
    order = np.argsort(change, kind="stable")
    columns = {
        "annotator": first.annotations.annotators[in_both[compared]],
        "first_labels": count[0, compared].astype(int),
        "second_labels": count[1, compared].astype(int),
        "first_right": right[0, compared],
        "second_right": right[1, compared],
        "change": change,
        "low": change - reach,
        "high": change + reach,
        "verdict": verdict,
    }
    return {name: column[order] for name, column in columns.items()}


def _changed_items(
    first: Group, second: Group, first_items: Integers, second_items: Integers
) -> Table:
    """Return the items with different labels, those of the highest confidence first."""
    changed = first.result.label[first_items] != second.result.label[second_items]
    first_items, second_items = first_items[changed], second_items[changed]
    confidence = first.result.confidence[first_items], second.result.confidence[second_items]
    order = np.argsort(-np.minimum(*confidence), kind="stable")
    columns = {
        "item": first.annotations.items[first_items],
        "first_label": first.result.labels[first_items],
        "second_label": second.result.labels[second_items],
        "first_confidence": confidence[0],
        "second_confidence": confidence[1],
    }
    return {name: column[order] for name, column in columns.items()}
