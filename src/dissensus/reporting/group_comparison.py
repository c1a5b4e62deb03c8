"""What two rounds of annotation, or two groups of annotators, have in common and what differs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..agreement import Agreement, Estimate, in_words
from ..annotations import Annotations
from ..identification.proportions import Proportion, proportion
from ..metrics import Evaluation
from ..result import Aggregation
from .sentences import amount, listed, percent
from .summary import SURE

__all__ = ["Change", "ChangedAnnotator", "ChangedItem", "Rounds", "Side", "Z"]

Z = float(ndtri(0.975))


class Change(NamedTuple):
    """How much more is right, or how much higher alpha is, with a 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """Whether it is a change for the better, for the worse, or none that can be seen."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no clear change"


class ChangedAnnotator(NamedTuple):
    """An annotator of both rounds: the share of right labels in each, and its change."""

    name: str
    labels: tuple[int, int]
    right: tuple[float, float]
    change: Change
    word: str  # better, worse or no clear change, given how many annotators there are


class ChangedItem(NamedTuple):
    """An item that is labelled otherwise in the second round; beliefs beside the labels."""

    name: str
    label: tuple[str, str]
    posterior: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two: its annotations and what was found in them."""

    name: str
    annotations: Annotations
    result: Aggregation
    accuracy: Proportion  # (annotator)
    n_random: int  # annotators who answer at random
    agreement: Agreement
    evaluation: Evaluation | None

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha with its interval."""
        return self.agreement["alpha"]

    @cached_property
    def right(self) -> Change:
        """The share of labels that are right by the others, over annotators."""
        counted = self.accuracy.among > 0
        among = self.accuracy.among[counted]
        if not len(among):
            return Change(math.nan, math.nan, math.nan)
        right = self.accuracy.value[counted] * among
        share, n = float(right.sum() / among.sum()), len(among)
        spread = float(((right - share * among) ** 2).sum()) * n / max(n - 1, 1)
        reach = Z * math.sqrt(spread) / float(among.sum()) if n > 1 else math.nan
        return Change(share, max(share - reach, 0.0), min(share + reach, 1.0))

    @cached_property
    def unsure(self) -> Change:
        """The share of items whose label deserves a second look."""
        posterior = self.result.confidence[self.annotations.labels_per_item > 0]
        low = np.array([float((posterior < SURE).sum())]), np.array([float(len(posterior))])
        share = proportion(*low)
        return Change(*(float(one[0]) for one in (share.value, share.low, share.high)))


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """What two rounds, or two groups, have in common and what differs.

    Attributes
    ----------
    first, second
        The two sides.
    n_common
        Items that both sides labelled.
    same
        Share of these that got the same label, with its interval.
    kappa
        Cohen's, of the labels that the sides inferred on common items.
    alpha
        How much higher the second alpha is.
    annotators
        Annotators of both sides, those who changed most for the worse first.
    items
        Items whose label changed, those that both sides are surest of first.
    """

    first: Side
    second: Side
    n_common: int
    same: Change
    kappa: float
    alpha: Change
    annotators: tuple[ChangedAnnotator, ...]
    items: tuple[ChangedItem, ...]
    seed: int = 0

    def __repr__(self) -> str:
        return f"<Rounds {self.first.name} and {self.second.name}: {' '.join(self.sentences)}>"

    @cached_property
    def sentences(self) -> list[str]:
        """What a reader should know first."""
        told = [
            f"{side.name}: {amount(side.annotations.n_annotators, 'annotator')} gave "
            f"{amount(len(side.annotations), 'label')} to {amount(side.annotations.n_items, 'item')}."
            for side in (self.first, self.second)
        ]
        one, two = self.first.alpha.value, self.second.alpha.value
        if not (math.isnan(one) or math.isnan(two)):
            words = {"better": "is higher", "worse": "is lower"}
            told.append(
                f"Agreement {words.get(self.alpha.word, 'is about the same')} in "
                f"{self.second.name}: alpha {one:.2f} ({in_words(one)}), then {two:.2f} "
                f"({in_words(two)}), a difference of {self.alpha.value:+.2f} "
                f"({self.alpha.low:+.2f} to {self.alpha.high:+.2f})."
            )
        if self.n_common:
            told.append(
                f"Of {amount(self.n_common, 'item')} in both, {len(self.items)} "
                f"({percent(len(self.items) / self.n_common)}) got another label."
            )
        else:
            told.append("No item is in both, so labels cannot be compared.")
        return told + self._people()

    def _people(self) -> list[str]:
        if not self.annotators:
            return ["No annotator is in both."]
        told = []
        for word in ("better", "worse"):
            who = [one.name for one in self.annotators if one.word == word]
            if who:
                told.append(f"Clearly {word} in {self.second.name}: {listed(who)}.")
        if not told:
            count = amount(len(self.annotators), "annotator")
            told.append(f"Of {count} in both, nobody got clearly better or worse.")
        return told

    def page(self) -> str:
        """Return the comparison as one self-contained page."""
        from .group_page import render_rounds

        return render_rounds(self)

    def save(self, path: str | Path) -> None:
        """Write the page."""
        from .._files import atomic_file

        body = self.page()
        with atomic_file(path) as draft:
            draft.write_text(body, encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        told = {
            "sentences": self.sentences,
            "sides": [
                {
                    "name": side.name,
                    "method": side.result.method,
                    "n_annotators": side.annotations.n_annotators,
                    "n_items": side.annotations.n_items,
                    "n_labels": len(side.annotations),
                    "agreement": side.agreement.as_dict(),
                    "right": side.right._asdict(),
                    "unsure": side.unsure._asdict(),
                    "evaluation": side.evaluation and side.evaluation.as_dict(),
                }
                for side in (self.first, self.second)
            ],
            "n_common": self.n_common,
            "same": self.same._asdict(),
            "kappa": self.kappa,
            "alpha": self.alpha._asdict(),
            "annotators": [
                {**one._asdict(), "change": one.change._asdict()} for one in self.annotators
            ],
            "items": [one._asdict() for one in self.items],
        }
        return {name: _plain(value) for name, value in told.items()}

    def _repr_html_(self) -> str:
        from .embedding import framed

        return framed(self.page())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
