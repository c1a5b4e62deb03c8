"""A report on numbers: what items are worth, who answers too high, and where answers scatter.

An item is wide if it has three answers or more and these scatter more than twice as much as usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._relation import Floats, Integers
from ..aggregation.numeric import Estimation, estimate
from ..agreement import Agreement, Estimate, agree
from ..answers.numbers import Numbers
from ..checking import Check, check
from ..errors import DataError
from ..metrics import Evaluation, evaluate
from ..result import Table
from .annotator_bias import WIDE, Standing, scatter_of_items, standing
from .sentences import amount, listed

__all__ = ["NumberReport", "report_numbers"]

VERDICTS = {
    "does not follow the others": "does not follow the others",
    "too high": "answers too high",
    "too low": "answers too low",
    "scattered": "scatters widely",
}


@dataclass(frozen=True, eq=False, repr=False)
class NumberReport:
    """What a report on numbers tells, as numbers.

    Attributes
    ----------
    name, annotations, result
        The data set, its numbers, and the values that were inferred.
    check, agreement, evaluation
        What the verbs `check`, `agree` and `evaluate` say.
    standing
        Every annotator beside the others.
    scatter
        Standard deviation of the answers on every item; NaN below two.
    """

    name: str
    annotations: Numbers
    result: Estimation
    check: Check
    agreement: Agreement
    evaluation: Evaluation | None
    standing: Standing
    scatter: Floats  # (item)
    seed: int = 0

    def __repr__(self) -> str:
        return f"<NumberReport on {self.name}: {' '.join(self.sentences)}>"

    @property
    def annotators(self) -> Table:
        """Every annotator, as columns."""
        told = self.standing
        return {
            "annotator": self.annotations.annotators,
            "n_answers": self.annotations.labels_per_annotator,
            "shift": told.shift,
            "scatter": told.scatter,
            "follows": told.follows,
            "verdict": np.array(told.verdict),
        }

    @property
    def items(self) -> Table:
        """Every item, as columns."""
        return {**self.result.items, "scatter": self.scatter}

    @cached_property
    def usual(self) -> float:
        """The scatter of answers on an ordinary item."""
        return float(np.nanmedian(self.scatter)) if np.isfinite(self.scatter).any() else math.nan

    @cached_property
    def wide(self) -> Integers:
        """Items of three answers or more that scatter widely, by code, the widest first."""
        order = np.argsort(-np.nan_to_num(self.scatter), kind="stable")
        wide = (self.scatter > WIDE * self.usual) & (self.annotations.labels_per_item > 2)
        return order[wide[order]]

    @property
    def alpha(self) -> Estimate:
        """Krippendorff's alpha for numbers."""
        return self.agreement["alpha"]

    @cached_property
    def sentences(self) -> list[str]:
        """The report in a few sentences."""
        annotations = self.annotations
        told = [
            f"{amount(annotations.n_annotators, 'annotator')} gave {amount(len(annotations), 'number')} to "
            f"{amount(annotations.n_items, 'item')}, {len(annotations) / max(annotations.n_items, 1):.1f} each on "
            f"average, from {annotations.value.min():g} to {annotations.value.max():g}."
        ]
        if math.isnan(self.alpha.value):
            told.append("Agreement cannot be measured: no two numbers on an item, or all the same.")
        else:
            told.append(
                f"Agreement is {self.agreement.word} (alpha {self.alpha.value:.2f}, "
                f"{self.alpha.low:.2f} to {self.alpha.high:.2f})."
            )
        for verdict, does in VERDICTS.items():
            who = [
                str(name)
                for name, word in zip(
                    annotations.annotators.tolist(), self.standing.verdict, strict=True
                )
                if word == verdict
            ]
            if who:
                told.append(
                    f"{amount(len(who), 'annotator')} {_many(does, len(who))}: {listed(who)}."
                )
        if not math.isnan(self.usual):
            told.append(
                f"Answers on an item usually scatter by {self.usual:.3g}; on "
                f"{amount(len(self.wide), 'item')} by more than twice as much."
            )
        if self.evaluation is not None:
            error, fit = (self.evaluation.scores[name] for name in ("mae", "pearson"))
            if error is not None and fit is not None:
                told.append(
                    f"Of {amount(self.evaluation.n_scored, 'item')} whose value is known, the "
                    f"estimates are off by {error.value:.3g} on average (correlation "
                    f"{fit.value:.2f})."
                )
        return told

    def page(self) -> str:
        """Return the report as one self-contained page."""
        from .number_page import render_numbers

        return render_numbers(self)

    def save(self, path: str | Path) -> None:
        """Write the page."""
        from .._files import atomic_file

        body = self.page()
        with atomic_file(path) as draft:
            draft.write_text(body, encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {
            "name": self.name,
            "sentences": self.sentences,
            "method": self.result.method,
            "check": self.check.as_dict(),
            "agreement": self.agreement.as_dict(),
            "annotators": {name: _plain(column) for name, column in self.annotators.items()},
            "wide": [self.annotations.items[item] for item in self.wide.tolist()],
            "evaluation": self.evaluation and self.evaluation.as_dict(),
        }

    def _repr_html_(self) -> str:
        from .embedding import framed

        return framed(self.page())


def report_numbers(
    annotations: Numbers,
    method: str = "mean",
    *,
    name: str = "numbers",
    gold: Mapping[Any, Any] | None = None,
    truth: Mapping[Any, Any] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NumberReport:
    """Return everything there is to know about numbers.

    Parameters
    ----------
    annotations
        The numbers.
    method
        How to estimate the value of an item.
    name
        Of the data set, for titles.
    gold
        Known values that may be used.
    truth
        Known values to score with.
    seed
        Decides what is random.
    progress
        Called with the steps that are done and how many there are.

    Examples
    --------
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])
    >>> report_numbers(annotations).sentences[0]
    '3 annotators gave 6 numbers to 2 items, 3.0 each on average, from 1 to 9.'
    """
    if len(annotations) == 0:
        raise DataError("there are no numbers to report on")
    progress = progress or (lambda _done, _total: None)
    looked = check(annotations)
    progress(1, _STEPS)
    result = estimate(annotations, method, gold=gold, seed=seed)
    progress(2, _STEPS)
    agreement = agree(annotations, seed=seed)
    progress(3, _STEPS)
    found = NumberReport(
        name,
        annotations,
        result,
        looked,
        agreement,
        None if truth is None else evaluate(result, truth, seed=seed),
        standing(annotations),
        scatter_of_items(annotations),
        seed,
    )
    progress(4, _STEPS)
    return found


_STEPS = 4


def _many(does: str, count: int) -> str:
    if count == 1:
        return does
    word, _, rest = does.partition(" ")
    return f"{'do' if word == 'does' else word.removesuffix('s')} {rest}"


def _plain(column: Any) -> list[Any]:
    return [None if isinstance(one, float) and math.isnan(one) else one for one in column.tolist()]
