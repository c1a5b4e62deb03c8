"""What there is to tell about agreement: numbers and names, ready to be shown or kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from ._measures import find_measure

__all__ = ["Agreement", "AnnotatorAgreement", "ClassAgreement", "Estimate", "ItemAgreement"]


class Estimate(NamedTuple):
    """A measure, its bounds and its standard error; NaN where there is none."""

    measure: str
    value: float
    low: float
    high: float
    error: float
    dropped: int  # resamples that gave no value


class ClassAgreement(NamedTuple):
    """A class against the rest, or an option of several that can be chosen."""

    name: str
    n_labels: int
    estimates: tuple[Estimate, ...]


class AnnotatorAgreement(NamedTuple):
    """An annotator: agreement with others on common items, and that of all others."""

    name: str
    n_labels: int
    with_others: float
    without: dict[str, float]  # measure → what it would be without them


class ItemAgreement(NamedTuple):
    """An item, and the share of its pairs of labels that agree."""

    name: str
    n_labels: int
    agreement: float


@dataclass(frozen=True)
class Agreement:
    """How much annotators agree.

    Attributes
    ----------
    estimates
        The measures, in the order they were asked for; with several options, means over them.
    by, parts
        What it is broken down by (`item`, `annotator`, `class` or `option`), and the parts.
    n_paired
        Items with two labels or more, on which everything rests.
    word
        The usual word for alpha, or for the first measure that looks at chance.
    notes
        What a reader should know, a sentence each.
    """

    estimates: tuple[Estimate, ...]
    by: str | None
    parts: tuple[ClassAgreement | AnnotatorAgreement | ItemAgreement, ...]
    level: str
    weights: str | None
    n_items: int
    n_annotators: int
    n_labels: int
    n_paired: int
    resamples: int
    confidence: float
    interval: str
    word: str
    notes: tuple[str, ...]

    def __getitem__(self, measure: str) -> Estimate:
        """Return one of the estimates by name."""
        name = find_measure(measure).name
        for one in self.estimates:
            if one.measure == name:
                return one
        raise KeyError(measure)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a table of what there is: the parts, or the measures where there are none."""
        if not self.parts:
            return [_plain(one) for one in self.estimates]
        out = []
        for part in self.parts:
            if isinstance(part, ClassAgreement):
                head = {self.by or "class": part.name, "n_labels": part.n_labels}
                out += [{**head, **_plain(one)} for one in part.estimates]
            elif isinstance(part, AnnotatorAgreement):
                head = {"annotator": part.name, "n_labels": part.n_labels}
                without = {f"without:{name}": value for name, value in part.without.items()}
                out.append(_plain({**head, "with_others": part.with_others, **without}))
            else:
                told = {"item": part.name, "n_labels": part.n_labels, "agreement": part.agreement}
                out.append(_plain(told))
        return out


def _plain(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return {name: _plain(part) for name, part in value._asdict().items()}
        case tuple():
            return [_plain(part) for part in value]
    return value
