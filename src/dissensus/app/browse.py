"""Items to look through: filtered, searched and sorted, a page at a time, each with its media.

Media are images, sounds and videos that texts name, inside the folder of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.arrays import Integers
from ..errors import DataError
from ..quality.sections import shortened
from ..reporting.details import votes_of
from .decisions import STATUSES
from .fits import Fit, Present

PAGE = 50  # rows
SORTS = ("certainty", "item", "labels", "label")
VOTES = ("split", "unanimous", "outvoted")
_MAX_WORD = 200  # characters of a search
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
    def of(cls, query: Mapping[str, str]) -> Filter:
        """Return the filter of a query; what is not possible is left out."""
        sort = query.get("sort", "certainty")
        number = query.get("page", "1")
        return cls(
            q=query.get("q", "").strip()[:_MAX_WORD],
            label=query.get("label", ""),
            cause=query.get("cause", ""),
            status=query.get("status", "") if query.get("status") in STATUSES else "",
            votes=query.get("votes", "") if query.get("votes") in VOTES else "",
            annotator=query.get("annotator", ""),
            sort=sort if sort in SORTS else "certainty",
            down=query.get("down") == "1",
            page=int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 1,
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
            item_texts = [texts.get(name) for name in names]
            table = table.with_columns(text=pl.Series(item_texts, dtype=pl.String))
        return table.select(pl.all().str.to_lowercase())

    @cached_property
    def causes(self) -> list[str]:
        """Causes of disagreement that occur."""
        return sorted(set(self.fit.report.doubt.cause.tolist()))

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

    def find(self, present: Present, filter_: Filter) -> Page:
        """Return the items that fit a filter."""
        fits = self._mask(present, filter_)
        order = self._order(present, filter_)
        order = order[fits[order]]
        if filter_.down:
            order = order[::-1]
        n_pages = max(-(-len(order) // PAGE), 1)
        page = min(max(filter_.page, 1), n_pages)
        codes = order[(page - 1) * PAGE : page * PAGE].tolist()
        return Page([self.row(present, code) for code in codes], len(order), page, n_pages)

    def _order(self, present: Present, filter_: Filter) -> Integers:
        if filter_.sort == "item":
            return self._by_name
        key = {
            "certainty": present.certainty,
            "labels": self.fit.annotations.labels_per_item,
            "label": present.label,
        }[filter_.sort]
        return np.argsort(key, kind="stable")

    def _mask(self, present: Present, filter_: Filter) -> npt.NDArray[np.bool_]:
        annotations = self.fit.annotations
        fits = np.ones(annotations.n_items, dtype=bool)
        if filter_.q:
            contains = pl.all().str.contains(filter_.q.lower(), literal=True).fill_null(False)
            fits &= self._words.select(pl.any_horizontal(contains)).to_series().to_numpy()
        if filter_.label:
            fits &= present.label == self.fit.classes.get(filter_.label, -2)
        if filter_.cause:
            fits &= self.fit.report.doubt.cause == filter_.cause
        if filter_.status:
            fits &= present.status == STATUSES.index(filter_.status)
        if filter_.votes == "outvoted":
            fits &= self._outvoted
        elif filter_.votes:
            split = self.fit.split_votes
            fits &= split if filter_.votes == "split" else ~split
        if filter_.annotator:
            person = self.fit.people.get(filter_.annotator, -1)
            own = np.zeros(annotations.n_items, dtype=bool)
            own[annotations.item[annotations.annotator == person]] = True
            fits &= own
        return fits

    def row(self, present: Present, code: int) -> Row:
        """Return what the list shows of an item."""
        item = str(self.fit.annotations.items[code])
        label = int(present.label[code])
        return Row(
            item=item,
            text=shortened(self.fit.report.texts.get(item)),
            label=str(self.fit.annotations.classes[label]) if label >= 0 else "undecided",
            certainty=float(present.certainty[code]),
            votes=votes_of(self.fit.annotations, code),
            n_labels=int(self.fit.annotations.labels_per_item[code]),
            cause=str(self.fit.report.doubt.cause[code]),
            status=STATUSES[present.status[code]],
            provisional=bool(present.provisional[code]),
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
    gold: str  # in the file
    votes: list[Vote]
    shares: list[tuple[str, float]]  # probability of every class


def detail(catalogue: Catalogue, present: Present, code: int) -> Detail:
    """Return everything about an item."""
    fit = catalogue.fit
    annotations, result = fit.annotations, fit.report.result
    row = catalogue.row(present, code)
    rows = slice(annotations.index[code], annotations.index[code + 1])
    times = annotations.columns.get("time")
    votes = zip(
        annotations.annotators[annotations.annotator[rows]].tolist(),
        annotations.classes[annotations.label[rows]].tolist(),
        ["" if time is None else str(time)[:19] for time in times[rows].tolist()]
        if times is not None
        else [""] * len(annotations.label[rows]),
        present.accuracy[annotations.annotator[rows]].tolist(),
        strict=True,
    )
    shares = result.probabilities[code]
    order = np.argsort(-shares, kind="stable")[:9]
    return Detail(
        row=row,
        text=fit.report.texts.get(row.item, ""),
        gold=fit.report.reading.gold.get(row.item, "") if row.item not in fit.gold else "",
        votes=[Vote(*vote) for vote in votes],
        shares=list(zip(annotations.classes[order].tolist(), shares[order].tolist(), strict=True)),
    )


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
    files: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in KINDS and path.is_file():
            files.setdefault(path.stem, path.name)
            files[path.name] = path.name
    return {item: files[item] for item in items if item in files}


def as_named(text: str, names: Collection[str]) -> str:
    r"""Return the name that a field of a form stands for: browsers send line breaks as CR LF.

    >>> as_named("one\r\ntwo", {"one\ntwo", "three"})
    'one\ntwo'
    """
    if "\n" not in text and "\r" not in text:
        return text
    matches = [name for name in names if _lines(name) == _lines(text)]
    if len(matches) > 1:
        raise DataError(
            f"{len(matches)} names differ from {text!r} in line breaks only; rename them"
        )
    return matches[0] if matches else text


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
