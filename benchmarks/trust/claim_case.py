"""Reports under test: what a case holds, and how stated numbers are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import recomputed

Checks = Iterator[tuple[bool | None, str]]
Groups = Sequence[Any]

_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ENOUGH = 10  # labels for a verdict
MISSED = "outside the 90% interval"


class Verdict(NamedTuple):
    """A claim, and whether it is true."""

    set: str
    claim: str
    sentence: str
    ok: bool | None
    detail: str

    @classmethod
    def of(cls, case: Case, claim: str, sentence: str, ok: Any, detail: str) -> Verdict:
        """Return the verdict on a claim of a report."""
        return cls(case.name, claim, sentence, None if ok is None else bool(ok), detail)

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "measured" if self.ok is None else str(bool(self.ok)).lower()


@dataclass(frozen=True)
class Case:
    """A report, and the rows that it is about."""

    name: str
    rows: pd.DataFrame  # item, annotator, label; value if ordered
    report: Any
    page: Any
    folder: Path
    given: dict[str, str]  # the truth that the report got
    hidden: dict[str, str]  # the truth
    people: pd.DataFrame | None = None
    ordered: bool = False
    method: str = "auto"

    @cached_property
    def labels(self) -> dict[str, str]:
        """The inferred labels, from the download."""
        columns = self.page.downloads["labels"].columns
        return dict(zip(map(str, columns["item"]), map(str, columns["label"]), strict=True))

    @cached_property
    def certainty(self) -> dict[str, float]:
        """The certainty of every label."""
        items = self.report.annotations.items.tolist()
        return dict(zip(items, self.report.doubt.certainty.tolist(), strict=True))

    @cached_property
    def people_of(self) -> dict[str, list[str]]:
        """Annotators by verdict, from the table."""
        columns = self.page.downloads["annotators"].columns
        found: dict[str, list[str]] = {}
        for name, verdict in zip(columns["annotator"], columns["verdict"], strict=True):
            found.setdefault(str(verdict), []).append(str(name))
        return found

    @cached_property
    def stated(self) -> pd.DataFrame:
        """The table of annotators, from the download."""
        columns = self.page.downloads["annotators"].columns
        return pd.DataFrame({k: list(v) for k, v in columns.items()}).set_index("annotator")

    @cached_property
    def wrong(self) -> dict[str, bool]:
        """Whether labels are wrong, where the truth is known; by more than a step if ordered."""
        if self.report.annotations.scale != "ordinal":
            pairs = self.labels.items()
            return {i: self.hidden[i] != label for i, label in pairs if i in self.hidden}
        step = {name: k for k, name in enumerate(self.report.annotations.classes.tolist())}
        return {
            item: abs(step[self.hidden[item]] - step[label]) > 1
            for item, label in self.labels.items()
            if item in self.hidden
        }

    def holds(self, inside: bool, about: str) -> tuple[bool | None, str]:
        """Return that a 90 % interval holds the truth; a miss is only measured, see `claims.py`."""
        return (True, f"truth: {about}") if inside else (None, f"{MISSED}: {about}")

    @property
    def steps(self) -> bool:
        """Whether labels are right within one step."""
        return getattr(self.report.annotations, "scale", "") == "ordinal"

    def follows(self, name: str, known: dict[str, str]) -> recomputed.Follows:
        """Return how far an annotator follows known labels, elsewhere the others."""
        return recomputed.follows(self.rows, known, self.ordered, name)


def near(stated: float, found: float, digits: int) -> bool:
    """Return whether a stated number is the found one, rounded."""
    return abs(stated - found) <= 0.5000001 * 10**-digits


def close(what: str, stated: str, found: float) -> tuple[bool, str]:
    """Return whether a text states a number, with its digits."""
    digits = len(stated.partition(".")[2])
    return near(float(stated), found, digits), f"{what} {found:.4g}, stated {stated}"


def share(text: str) -> tuple[float, float]:
    """Return the shares that a percentage may stand for."""
    value = float(text.split()[-1].rstrip("%")) / 100
    if text.startswith("above"):
        return value, 1.0
    if text.startswith("below"):
        return 0.0, value
    reach = 0.5000001 * 10 ** -(2 + len(text.rstrip("%").partition(".")[2]))
    return value - reach, value + reach


def is_share(what: str, stated: str, found: float) -> tuple[bool, str]:
    """Return whether a percentage states a share."""
    low, high = share(stated)
    return low <= found <= high, f"{what} {found:.4f}, stated {stated}"


def count(text: str) -> int:
    """Return a number written as digits or a word."""
    word = text.lower().replace("\u202f", "")
    return _NUMBERS.index(word) if word in _NUMBERS else int(word)


def same(what: str, stated: str | int, found: int) -> tuple[bool, str]:
    """Return whether a count is stated."""
    return count(str(stated)) == found, f"{what} {found}, stated {stated}"
