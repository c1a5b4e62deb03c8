"""Two rounds of annotation, or two groups of annotators: what they share and what differs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..base.plain import as_plain
from ..metrics.agreement_init import Agreement, Estimate, in_words
from ..answers.annotations import Annotations
from ..base.proportions import Proportion, proportion
from ..metrics import Evaluation
from ..pages.page import PageReport
from ..pages.wording import amount, listed, percent
from ..result import Aggregation, Table
from .group_page import group_page
from ..pages.sections import CONFIDENT
from .sentences import volume

Z = float(ndtri(0.975))
UNCLEAR = "no clear change"


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
    return Change(*(float(one[0]) for one in (share.value, share.low, share.high)))


@dataclass(frozen=True, eq=False)
class Group:
    """One of the two: its annotations and what was inferred from them."""

    name: str
    annotations: Annotations
    result: Aggregation
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
        one, two = first.alpha.value, second.alpha.value
        if not (math.isnan(one) or math.isnan(two)):
            words = {"better": "is higher", "worse": "is lower"}
            sentences.append(
                f"Agreement {words.get(self.alpha.word, 'is about the same')} in {second.name}: "
                f"alpha {one:.2f} ({in_words(one)}), then {two:.2f} ({in_words(two)}), a "
                f"difference of {self.alpha.value:+.2f} ({self.alpha.low:+.2f} to "
                f"{self.alpha.high:+.2f})."
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
