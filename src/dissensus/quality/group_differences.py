"""Groups of annotators that are given: what they label differently, and who is flagged.

For every column of a table about annotators:

- how much more often a group gives a label than the others do on the same items: a regression on
  membership with one level for every item, standard errors over annotators;
- whether annotators agree more within groups than between: one t-test of d (`camp_tests`) with
  these groups, and the correlation within and between;
- whether verdicts fall on one group more than on the others (Fisher's exact test).

Shares and agreement leave flagged annotators out, unless that leaves a group without two members.
Sentences speak of what stands after Bonferroni's correction for all comparisons of its kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr, stdtrit

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.names import text
from ..base.storage import as_plain
from ..errors import OptionError
from .camp_tests import SharedLabels, fit_one_group, members, pair_correlations, t_statistic
from .camps import MAX_ANNOTATORS

_FEW = 5  # different numbers that are still groups
_MOST = 20  # groups of a column
_LEAST = 2  # annotators of a group
_LEVEL = 0.05


class LabelDifference(NamedTuple):
    """How much more often a group gives a label than others on the same items."""

    group: str
    label: str
    difference: float  # of shares
    error: float
    low: float  # 95 % interval
    high: float
    p_value: float


class Flags(NamedTuple):
    """How many annotators of a group and of the others are flagged."""

    group: str
    flagged: int
    among: int
    others_flagged: int
    others: int
    p_value: float


@dataclass(frozen=True)
class ColumnDifferences:
    """What one column of a table about annotators divides.

    Attributes
    ----------
    groups
        Names and numbers of annotators.
    labels, flags
        By group; of two groups or two classes, `labels` has the second, as the first mirrors it.
    t, p_value
        Whether annotators agree more within groups than between them, one-sided.
    """

    column: str
    groups: dict[str, int]
    labels: tuple[LabelDifference, ...]
    t: float
    p_value: float
    correlation_within: float
    correlation_between: float
    flags: tuple[Flags, ...]


@dataclass(frozen=True)
class GroupDifferences:
    """What groups of annotators label differently.

    Attributes
    ----------
    columns
        What every column divides.
    notes
        Columns and groups that were left out, and why.
    """

    columns: tuple[ColumnDifferences, ...]
    notes: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """A sentence for every group on which verdicts fall more than on others, surest first."""
        tests = sum(max(len(column.flags) - 1, 1) for column in self.columns)
        flags = [(column, flag) for column in self.columns for flag in column.flags]
        return [
            f"Verdicts fall on {_named(column, flag.group)} more than on others: "
            f"{flag.flagged} of {flag.among} annotators are flagged, "
            f"{flag.others_flagged} of {flag.others} elsewhere (Fisher's exact test, "
            f"{_p(flag.p_value)}); leaving them out would remove labels of this group."
            for column, flag in sorted(flags, key=lambda flag: flag[1].p_value)
            if flag.p_value * tests < _LEVEL
            and flag.flagged * flag.others > flag.others_flagged * flag.among
        ]

    @property
    def sentences(self) -> list[str]:
        """What was found, in plain words; warnings first."""
        out = self.warnings
        tests = sum(len(column.labels) for column in self.columns)
        for column in self.columns:
            for contrast in column.labels:
                if contrast.p_value * tests < _LEVEL:
                    direction = "more" if contrast.difference > 0 else "less"
                    low, high = sorted(100 * abs(end) for end in (contrast.low, contrast.high))
                    out.append(
                        f"Annotators of {_named(column, contrast.group)} give the label "
                        f"“{contrast.label}” {100 * abs(contrast.difference):.1f} points "
                        f"{direction} often than others on the same items "
                        f"(95 % interval {low:.1f} to {high:.1f})."
                    )
            if column.p_value * len(self.columns) < _LEVEL:
                out.append(
                    f"Annotators agree more with those of the same {column.column} "
                    f"(correlation {column.correlation_within:.2f}) than with others "
                    f"({column.correlation_between:.2f}; "
                    f"t = {column.t:.1f}, {_p(column.p_value)})."
                )
        return out or ["No column divides the annotators beyond chance."] if self.columns else out

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON; `None` for NaN."""
        return {"sentences": self.sentences, **as_plain(self)}


def group_differences(
    annotations: Annotations,
    attributes: Mapping[str, Sequence[Any]],
    flagged: npt.ArrayLike | None = None,
    *,
    ordered: bool = False,
) -> GroupDifferences:
    """Return what groups of annotators label differently.

    Parameters
    ----------
    annotations
        The annotations.
    attributes
        Columns of a table about annotators, one value for each in their order, `None` where
        unknown; as `read_attributes` returns them. Numbers of many values are cut at quartiles.
    flagged
        Annotators with a verdict against them, such as random or constant: one truth value each.
    ordered
        Whether the classes are in order.

    Examples
    --------
    >>> labels = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    >>> teams = {"team": ["a", "a", "b", "b"]}
    >>> (column,) = group_differences(Annotations.from_matrix(labels), teams).columns
    >>> [(group, label, round(difference, 2)) for group, label, difference, *_ in column.labels]
    [('b', '1', -0.5)]
    """
    n = annotations.n_annotators
    suspects = np.zeros(n, dtype=bool) if flagged is None else np.asarray(flagged, dtype=bool)
    if len(suspects) != n:
        raise OptionError(f"flagged has {len(suspects)} values, but there are {n} annotators")
    active = annotations.labels_per_annotator > 0
    columns, notes = [], []
    for name, values in attributes.items():
        if len(values) != n:
            raise OptionError(f"{name} has {len(values)} values, but there are {n} annotators")
        names, group, note = _groups(values, active)
        notes += [f"{name}: {sentence}" for sentence in note]
        if len(names) > 1:
            columns.append(
                _column(
                    annotations, name, names=names, group=group, suspects=suspects, ordered=ordered
                )
            )
    return GroupDifferences(tuple(columns), tuple(notes))


def _column(
    annotations: Annotations,
    column: str,
    names: list[str],
    group: Integers,
    suspects: npt.NDArray[np.bool_],
    ordered: bool,
) -> ColumnDifferences:
    sizes = {name: int((group == k).sum()) for k, name in enumerate(names)}
    fair = np.where(suspects, -1, group)
    if min(int((fair == k).sum()) for k in range(len(names))) < _LEAST:
        fair = group
    labels = [
        difference
        for k, name in enumerate(names)
        if k > 0 or len(names) > 2
        for difference in _label_differences(annotations, fair >= 0, fair == k, name)
    ]
    flags = [
        _fisher(name, suspects, group == k, group >= 0)
        for k, name in enumerate(names)
        if suspects.any()
    ]
    t = within = between = math.nan
    rows = np.stack([annotations.item, annotations.annotator, annotations.label]).astype(np.int64)
    crowd = SharedLabels(rows, fair >= 0, annotations.n_classes, ordered)
    crowd = crowd.keep(crowd.shared_labels() > 1)
    if 2 <= crowd.included.sum() <= MAX_ANNOTATORS and len(crowd.items) > 1:
        items, member = crowd.on(), members(fair[crowd.included])
        fitted = fit_one_group(items, crowd.label)
        t = t_statistic(items, fitted, member)
        within, between = pair_correlations(items, fitted, member)
    p_value = float(ndtr(-t))
    return ColumnDifferences(
        column=column,
        groups=sizes,
        labels=tuple(labels),
        t=t,
        p_value=p_value,
        correlation_within=within,
        correlation_between=between,
        flags=tuple(flags),
    )


def _label_differences(
    annotations: Annotations, among: npt.NDArray[np.bool_], inside: npt.NDArray[np.bool_], name: str
) -> list[LabelDifference]:
    """Return how much more often a group gives every label than others on the same items."""
    rows = among[annotations.annotator]
    item, annotator = annotations.item[rows].astype(np.int64), annotations.annotator[rows]
    size = np.maximum(np.bincount(item, minlength=annotations.n_items), 1)

    def within_items(value: Floats) -> Floats:
        return value - (np.bincount(item, value, len(size)) / size)[item]

    member = within_items(inside[annotator].astype(np.float64))
    square, out = float(member @ member), []
    compared = np.bincount(annotator, member**2, len(among)) > 0
    n = int(compared.sum())  # annotators on items of both
    if square == 0 or min((compared & inside).sum(), (compared & ~inside).sum()) < _LEAST:
        return []
    reach = float(stdtrit(n - 2, 0.975))
    for k, label in enumerate(annotations.classes.tolist()):
        if k == 0 and annotations.n_classes == 2:
            continue
        centred = within_items((annotations.label[rows] == k).astype(np.float64))
        value = float(member @ centred) / square
        score = np.bincount(annotator, member * (centred - value * member), len(among))
        error = math.sqrt(float(score @ score) * n / (n - 1)) / square
        p_value = float(2 * stdtr(n - 2, -abs(value) / error)) if error > 0 else math.nan
        ends = value - reach * error, value + reach * error
        out.append(LabelDifference(name, label, value, error, *ends, p_value))
    return out


def _fisher(
    name: str,
    suspects: npt.NDArray[np.bool_],
    inside: npt.NDArray[np.bool_],
    grouped: npt.NDArray[np.bool_],
) -> Flags:
    among, n_others = int(inside.sum()), int((grouped & ~inside).sum())
    n_flagged, n_flagged_others = (
        int((suspects & inside).sum()),
        int((suspects & grouped & ~inside).sum()),
    )
    from scipy.stats import fisher_exact  # slow to import

    p_value = fisher_exact(
        np.array([[n_flagged, among - n_flagged], [n_flagged_others, n_others - n_flagged_others]])
    )[1]
    return Flags(
        name,
        flagged=n_flagged,
        among=among,
        others_flagged=n_flagged_others,
        others=n_others,
        p_value=float(p_value),
    )


def _groups(
    values: Sequence[Any], active: npt.NDArray[np.bool_]
) -> tuple[list[str], Integers, list[str]]:
    """Return names of groups, the group of every annotator or -1, and notes."""
    names = [None if _missing(value) else text(value) for value in values]
    numbers = [_number(value) for value in values]
    present = [number for number, name in zip(numbers, names, strict=True) if name is not None]
    notes = []
    if None not in present and len(set(present)) > _FEW:
        cuts = np.unique(np.quantile(np.array(present, dtype=float), [0.25, 0.5, 0.75]))
        titles = [f"up to {cuts[0]:g}"]
        titles += [f"{low:g} to {high:g}" for low, high in pairwise(cuts.tolist())]
        titles += [f"above {cuts[-1]:g}"]
        names = [
            None if number is None else titles[int(np.searchsorted(cuts, number))]
            for number in numbers
        ]
        notes.append("numbers were cut at their quartiles")
    counts = Counter(
        name for name, is_active in zip(names, active, strict=True) if name and is_active
    )
    order = dict.fromkeys(titles) if notes else sorted(counts)
    groups = [name for name in order if counts[name] >= _LEAST]
    nobody = np.full(len(names), -1)
    if len(groups) > _MOST:
        return [], nobody, [f"{len(groups)} groups are too many (at most {_MOST}); merge some"]
    if len(groups) < 2:
        return [], nobody, [f"no two groups have {_LEAST} annotators each; not compared"]
    if len(groups) < len(counts):
        single = len(counts) - len(groups)
        notes.append(
            f"{single} {'value' if single == 1 else 'values'} of single annotators left out"
        )
    position = {name: k for k, name in enumerate(groups)}
    group = np.array([position.get(name or "", -1) for name in names])
    return groups, np.where(active, group, -1), notes


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float | None:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _named(column: ColumnDifferences, group: str) -> str:
    return f"{column.column} = {group}"


def _p(value: float) -> str:
    return "p < .001" if value < 0.001 else f"p = {value:.3f}"
