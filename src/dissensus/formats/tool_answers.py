"""Answers of other kinds than classes, and consensus of them, as files of labelling tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import polars as pl

from ..base.files import atomic_file, atomic_folder, write_stdout
from ..base.arrays import Array
from ..answers import Answers
from ..errors import DataError, OptionError
from .targets import ANSWER_TARGETS

_OWN = ".dissensus-answers"  # marks a folder as written here


class ConsensusLike(Protocol):
    """The result of a consensus."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def items(self) -> Mapping[str, Array]:
        """What is true of the items, by column."""

    @property
    def consensus(self) -> Answers:
        """The same as answers of one annotator."""


@dataclass(frozen=True, eq=False)
class AnswerContent:
    """Answers with everything that a format might hold.

    Attributes
    ----------
    answers
        The answers; of a consensus, those of one annotator.
    texts
        Texts of the items, or links to their images.
    sizes
        Height and width of images: item → (height, width).
    method
        The method of a consensus; empty for answers.
    scores
        The confidence of a consensus, by item and the coordinates of the mark.
    """

    answers: Answers
    texts: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    method: str = ""
    scores: Mapping[tuple[Any, ...], float] = field(default_factory=dict)

    def score(self, item: str, mark: Mapping[str, Any] | None = None) -> float | None:
        """Return the confidence of a mark, or of an item's value."""
        place = () if mark is None else tuple(v for name, v in mark.items() if name != "label")
        return self.scores.get((item, *place))

    def size(self, item: str) -> tuple[int, int]:
        """Return height and width of an image; refuse one whose size is unknown."""
        if item not in self.sizes:
            raise DataError(f"image {item!r} has no size; give the height and width of images")
        return self.sizes[item]

    def by_item(self) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        """Yield every item with its annotators and their values."""
        values, index = self.answers.values(), self.answers.index.tolist()
        names = self.answers.annotators[self.answers.annotator].tolist()
        for position, item in enumerate(self.answers.items.tolist()):
            rows = range(index[position], index[position + 1])
            yield item, [(names[row], values[row]) for row in rows]


def write_answers(
    what: Answers | ConsensusLike,
    path: str | Path,
    *,
    format: str,  # noqa: A002
    texts: Mapping[str, str] | pl.DataFrame | None = None,
    sizes: Mapping[str, tuple[int, int]] | None = None,
) -> list[str]:
    """Write answers, or a consensus, as a labelling tool reads them; return what was lost.

    Parameters
    ----------
    what
        Answers of any annotators, or the result of a consensus.
    path
        A file; for `coco` and `conll` also a folder (no ending, or a slash), which gets a file for
        each annotator, named after them. `-` is standard output.
    format
        `conll` (spans), `coco` (boxes, masks) or `label-studio`.
    texts
        Texts of the items, which spans of characters need in CoNLL.
    sizes
        Height and width of images, item → (height, width), which boxes need in Label Studio.
    """
    if format not in ANSWER_TARGETS:
        known = ", ".join(ANSWER_TARGETS)
        raise OptionError(f"answers are not written as {format!r}; there are {known}")
    target = ANSWER_TARGETS[format]
    content = _content_of(what, texts, sizes)
    if content.answers.kind not in target.kinds:
        kinds = " and ".join(target.kinds)
        raise OptionError(f"{format} holds {kinds}, not {content.answers.kind}")
    lost: list[str] = []
    if str(path) != "-" and (str(path).endswith("/") or not Path(path).suffix):
        if not target.per_annotator:
            raise DataError(f"{path}: {format} is one file for all annotators; name a file")
        bodies = target.module.bodies(content, lost)
        _write_folder(path, content.answers.annotators.tolist(), bodies, target.ending, lost)
        return lost
    body = target.module.body(content, lost).encode()
    if str(path) == "-":
        write_stdout(body)
    else:
        with atomic_file(path) as draft:
            draft.write_bytes(body)
    return lost


def _write_folder(
    path: str | Path, names: list[str], bodies: Iterator[str], ending: str, lost: list[str]
) -> None:
    """Write a file for each annotator, all of them or none."""
    with atomic_folder(path, (_OWN,)) as draft:
        for name, body in zip(names, bodies, strict=True):
            (draft / f"{_file_name(name)}{ending}").write_text(body, encoding="utf-8")
        (draft / _OWN).write_text("", encoding="utf-8")
    changed = [name for name in names if _file_name(name) != name]
    if changed:
        lost.append(f"files of {len(changed)} annotators have other names, such as {changed[0]!r}")


def _content_of(
    what: Answers | ConsensusLike,
    texts: Mapping[str, str] | pl.DataFrame | None,
    sizes: Mapping[str, tuple[int, int]] | None,
) -> AnswerContent:
    if isinstance(texts, pl.DataFrame):
        texts = dict(texts.select("item", "text").drop_nulls("text").iter_rows())
    answers = what if isinstance(what, Answers) else what.consensus
    known = _own_sizes(answers) | dict(sizes or {})
    if isinstance(what, Answers):
        return AnswerContent(what, texts or {}, known)
    return AnswerContent(answers, texts or {}, known, what.method, _scores(answers, what.items))


def _own_sizes(answers: Answers) -> dict[str, tuple[int, int]]:
    """Return the sizes of images that answers have with them."""
    size = getattr(answers, "size", None)
    if size is None:
        return {}
    pairs = np.asarray(size)[:, ::-1] if answers.kind == "points" else np.asarray(size)
    known = zip(answers.items.tolist(), pairs.tolist(), strict=True)
    return {item: (int(h), int(w)) for item, (h, w) in known if h == h and w == w}


def _scores(answers: Answers, items: Mapping[str, Array]) -> dict[tuple[Any, ...], float]:
    """Return the confidence of every row of a consensus by item and coordinates."""
    if "confidence" not in items or "item" not in items:
        return {}
    place = [items[name].tolist() for name in getattr(answers, "coordinates", ())]
    keys = zip(items["item"].tolist(), *place, strict=True)
    return dict(zip(keys, items["confidence"].tolist(), strict=True))


def _file_name(name: str) -> str:
    """Return a name as a file's: no slash, no point at its beginning, not empty.

    >>> _file_name("ann@example.org"), _file_name("../x")
    ('ann@example.org', '%2E.%2Fx')
    """
    safe = quote(name, safe=" @+,=")
    safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe
    return safe or "%"
