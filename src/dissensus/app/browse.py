"""Items and annotators to look through: filtered, searched and sorted, a page at a time.

Files of items: images, sounds and videos that texts name, inside the folder of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.arrays import Integers
from ..quality.sections import shortened
from ..reporting.details import votes_of
from .decisions import STATUSES
from .fits import Fit, Present

PAGE = 50  # rows
SORTS = ("certainty", "item", "labels", "label")
VOTES = ("split", "unanimous", "outvoted")
_MAX_WORD = 200  # characters of a search


class Filter(NamedTuple):
    """Which items to show."""

    q: str = ""  # in the name or text
    label: str = ""
    cause: str = ""
    status: str = ""
    votes: str = ""
    annotator: str = ""
    sort: str = "certainty"
    down: bool = False
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Filter:
        """Return the filter of a query; what is not possible is left out."""
        sort = given.get("sort", "certainty")
        number = given.get("page", "1")
        return cls(
            given.get("q", "").strip()[:_MAX_WORD],
            given.get("label", ""),
            given.get("cause", ""),
            given.get("status", "") if given.get("status") in STATUSES else "",
            given.get("votes", "") if given.get("votes") in VOTES else "",
            given.get("annotator", ""),
            sort if sort in SORTS else "certainty",
            given.get("down") == "1",
            int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 1,
        )

    def query(self, **changes: Any) -> str:
        """Return the query of this filter with changes."""
        fields = {**self._asdict(), "page": 1, **changes}
        fields["down"] = "1" if fields["down"] else ""
        default = Filter()._asdict()
        return urlencode({k: v for k, v in fields.items() if v and v != default[k]})


class Row(NamedTuple):
    """An item in the list."""

    item: str
    text: str
    label: str
    certainty: float
    votes: str
    n_labels: int
    cause: str
    status: str
    provisional: bool


class Page(NamedTuple):
    """A page of the list."""

    rows: list[Row]
    n_items: int  # that fit the filter
    page: int
    n_pages: int


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The items of a fit, ready to be searched and sorted."""

    fit: Fit

    @cached_property
    def _words(self) -> pl.DataFrame:
        """Names and texts in lower case: (item)."""
        names = self.fit.annotations.items.tolist()
        texts = self.fit.report.texts
        table = pl.DataFrame({"item": names}, schema={"item": pl.String})
        if texts:
            found = [texts.get(name) for name in names]
            table = table.with_columns(text=pl.Series(found, dtype=pl.String))
        return table.select(pl.all().str.to_lowercase())

    @cached_property
    def causes(self) -> list[str]:
        """Causes of disagreement that occur."""
        return sorted(set(self.fit.report.cause.tolist()))

    @cached_property
    def _by_name(self) -> Integers:
        return self._words["item"].arg_sort().to_numpy().astype(np.int64)

    @cached_property
    def _outvoted(self) -> npt.NDArray[np.bool_]:
        """Which items have another label than the one most annotators gave."""
        result = self.fit.report.result
        votes = self.fit.annotations.votes()
        rows = np.arange(len(votes))
        own = votes[rows, np.maximum(result.label, 0)]
        return (result.label >= 0) & (votes.max(axis=1, initial=0) > own)

    def find(self, present: Present, wanted: Filter) -> Page:
        """Return the items that fit a filter."""
        kept = self._mask(present, wanted)
        order = self._order(present, wanted)
        order = order[kept[order]]
        if wanted.down:
            order = order[::-1]
        n_pages = max(-(-len(order) // PAGE), 1)
        page = min(max(wanted.page, 1), n_pages)
        codes = order[(page - 1) * PAGE : page * PAGE].tolist()
        return Page([self.row(present, code) for code in codes], len(order), page, n_pages)

    def _order(self, present: Present, wanted: Filter) -> Integers:
        if wanted.sort == "item":
            return self._by_name
        key = {
            "certainty": present.certainty,
            "labels": self.fit.annotations.labels_per_item,
            "label": present.label,
        }[wanted.sort]
        return np.argsort(key, kind="stable")

    def _mask(self, present: Present, wanted: Filter) -> npt.NDArray[np.bool_]:
        annotations = self.fit.annotations
        kept = np.ones(annotations.n_items, dtype=bool)
        if wanted.q:
            contains = pl.all().str.contains(wanted.q.lower(), literal=True).fill_null(False)
            kept &= self._words.select(pl.any_horizontal(contains)).to_series().to_numpy()
        if wanted.label:
            kept &= present.label == self.fit.classes.get(wanted.label, -2)
        if wanted.cause:
            kept &= self.fit.report.cause == wanted.cause
        if wanted.status:
            kept &= present.status == STATUSES.index(wanted.status)
        if wanted.votes == "outvoted":
            kept &= self._outvoted
        elif wanted.votes:
            split = self.fit.split_votes
            kept &= split if wanted.votes == "split" else ~split
        if wanted.annotator:
            person = self.fit.people.get(wanted.annotator, -1)
            own = np.zeros(annotations.n_items, dtype=bool)
            own[annotations.item[annotations.annotator == person]] = True
            kept &= own
        return kept

    def row(self, present: Present, code: int) -> Row:
        """Return what the list shows of an item."""
        item = str(self.fit.annotations.items[code])
        label = int(present.label[code])
        return Row(
            item,
            shortened(self.fit.report.texts.get(item)),
            str(self.fit.annotations.classes[label]) if label >= 0 else "undecided",
            float(present.certainty[code]),
            votes_of(self.fit.annotations, code),
            int(self.fit.annotations.labels_per_item[code]),
            str(self.fit.report.cause[code]),
            STATUSES[present.status[code]],
            bool(present.provisional[code]),
        )


class Vote(NamedTuple):
    """A label that somebody gave to an item."""

    annotator: str
    label: str
    time: str
    accuracy: float  # of the annotator


class Detail(NamedTuple):
    """An item with everything that is known about it."""

    row: Row
    text: str
    known: str  # in the file
    votes: list[Vote]
    shares: list[tuple[str, float]]  # probability of every class


def detail(catalogue: Catalogue, present: Present, code: int) -> Detail:
    """Return everything about an item."""
    fit = catalogue.fit
    annotations, result = fit.annotations, fit.report.result
    row = catalogue.row(present, code)
    rows = slice(annotations.index[code], annotations.index[code + 1])
    times = annotations.columns.get("time")
    given = zip(
        annotations.annotators[annotations.annotator[rows]].tolist(),
        annotations.classes[annotations.label[rows]].tolist(),
        ["" if one is None else str(one)[:19] for one in times[rows].tolist()]
        if times is not None
        else [""] * len(annotations.label[rows]),
        present.accuracy[annotations.annotator[rows]].tolist(),
        strict=True,
    )
    shares = result.probabilities[code]
    order = np.argsort(-shares, kind="stable")[:9]
    return Detail(
        row,
        fit.report.texts.get(row.item, ""),
        fit.report.reading.gold.get(row.item, "") if row.item not in fit.gold else "",
        [Vote(*one) for one in given],
        list(zip(annotations.classes[order].tolist(), shares[order].tolist(), strict=True)),
    )


KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
_MAX_PATH = 400  # characters


class Media(NamedTuple):
    """A file of an item."""

    path: Path
    kind: str  # its media type


def media_of(text: str | None, folder: Path | None) -> Media | None:
    """Return the file that a text names; `None` for other texts, and for files outside the folder.

    Links are followed first, so none leads out.
    """
    if text is None or folder is None or len(text) > _MAX_PATH or "\0" in text:
        return None
    kind = KINDS.get(Path(text.strip()).suffix.lower())
    if kind is None:
        return None
    try:
        root = folder.resolve()
        path = (root / text.strip()).resolve()
        if path.is_relative_to(root) and path.is_file():
            return Media(path, kind)
    except (OSError, ValueError):
        pass
    return None


def files_by_item(folder: Path, items: list[str]) -> dict[str, str]:
    """Return the file of every item in a folder: the name of the item, with or without ending."""
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in KINDS and path.is_file():
            found.setdefault(path.stem, path.name)
            found[path.name] = path.name
    return {item: found[item] for item in items if item in found}
