"""Annotations, answers, results, tables, arrays and JSON as files, each whole or not there."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
import numpy as np
import polars as pl

from ..answers import Answers
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..base.arrays import Array
from ..base.files import atomic_file, atomic_folder, write_stdout
from ..base.panics import without_panics
from ..base.tables import Tabular, frame_of_table
from ..errors import DataError, OptionError
from .content import Content, Writable, content_of, is_fitted
from .reading import Reading
from .sources import FORMATS, format_for
from .targets import ANSWER_TARGETS, TARGETS, destination_of
from .tools.huggingface_folders import Card

_OWN = ".dissensus-answers"  # marks a folder as written here


def write(
    what: Writable | Reading | Any,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    gold: Any = None,
    texts: Mapping[str, str] | Any = None,
    reading: Reading | None = None,
    card: Card | None = None,
) -> None:
    """Write annotations or results; the ending gives the format, `-` is standard output as CSV.

    Parameters
    ----------
    what
        Annotations, numbers, answers, a result of any kind, a reading with its gold and texts, or
        what `read` takes. Answers are records in .jsonl and .json, a row per mark elsewhere.
    path
        A file ending in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also
        .zst); a folder (no ending, or a slash) gets the layout of peerannot.
    format
        `long`, `nested`, `wide`, `crowd-kit`, `label-studio`, `argilla`, `huggingface`,
        `huggingface-folder` or `peerannot`, or a kind of file where the ending does not show it.
    gold, texts
        Known classes and texts of items, by item, for formats that hold them.
    reading
        For a result, the reading it is based on, for its question, gold and texts.
    card
        For `huggingface-folder`, what its card has beside the data.
    """
    if isinstance(what, Answers):
        _write_answers(what, path, format)
        return
    if isinstance(what, Tabular) and not isinstance(what, Relation) and not is_fitted(what):
        write_columns(what._table(), path, format)
        return
    content = content_of(what, gold, texts, reading)
    destination = destination_of(content.what, path, format)
    if destination.kind == "folder":
        settings = {"card": card} if destination.target == "huggingface-folder" else {}
        TARGETS[destination.target].module.save(content, path, **settings)
        return
    if destination.target in ("long", "crowd-kit"):
        names = {"item": "task", "annotator": "worker"} if destination.target != "long" else {}
        body: Any = content.what.to_polars().rename(names, strict=False)
    else:
        body = _body(content, destination.target)
    _save(body, path, destination.kind, destination.compression)


def _write_answers(answers: Answers, path: str | Path, format_name: str | None) -> None:
    """Write answers for a tool, as records where the file is JSON, or as a long table."""
    if format_name in ANSWER_TARGETS:
        write_answers(answers, path, format=format_name)
        return
    kind, compression = _kind_of_file(path, format_name)
    if kind == "npy":
        raise OptionError("answers are written as a table or as JSON", where=str(path))
    body = answers.to_rows() if kind in ("jsonl", "json") else answers.to_polars()
    _save(body, path, kind, compression)


def _kind_of_file(path: str | Path, format_name: str | None) -> tuple[str, str]:
    if format_name is not None and format_name not in FORMATS:
        names = ", ".join((*FORMATS, *ANSWER_TARGETS))
        raise OptionError(
            remedy=f"{{}}: answers of this kind are written as {names}", to=format_name
        )
    if str(path) == "-":
        return format_name or "csv", "uncompressed"
    return format_for(path, format_name)


def write_columns(
    columns: Mapping[str, Array],
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write columns as a table; the ending gives the format, `-` is standard output as CSV.

    NaN is left empty.
    """
    frame = frame_of_table(columns)
    kind, compression = _kind_of_file(path, format)
    _save(frame, path, kind, compression)


def write_truth(truth: Mapping[str, Any], path: str | Path) -> None:
    """Write known labels as a table of item and label."""
    columns = {"item": list(truth), "label": list(truth.values())}
    write_columns({name: np.array(values) for name, values in columns.items()}, path)


def write_json(path: Path, content: Any, indent: int | None = None) -> None:
    """Write JSON."""
    with atomic_file(path) as draft:
        body = json.dumps(content, indent=indent, ensure_ascii=indent is None)
        draft.write_text(body, encoding="utf-8")


def save_array(path: Path, array: Array) -> None:
    """Write an array."""
    with atomic_file(path) as draft, draft.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _body(content: Content, name: str) -> Any:
    """Return the table, records or object of a format that is not a long table."""
    if name == "nested" and not content.is_result:
        if not isinstance(content.what, Annotations):
            raise OptionError("nested JSON holds classes, not numbers; write a table")
        return content.what.to_dict()
    target = TARGETS[name]
    if not content.is_result:
        return target.module.answers(content)
    if not target.results:
        names = ", ".join(key for key in TARGETS if TARGETS[key].results)
        raise OptionError(f"{name} is for annotations; a result can be written as {names}")
    return target.module.results(content)


def _save(body: Any, path: str | Path, kind: str, compression: Any) -> None:
    """Write a table, records or one object to a file, whole or not at all, or to standard output.

    Records are written one by one, as a list or a line each.
    """
    frame = body if isinstance(body, pl.DataFrame) else None
    if compression == "zstd" and (frame is None or kind == "json"):
        raise DataError("JSON is written plain or as .gz, not as .zst")
    with atomic_file(path) if str(path) != "-" else nullcontext() as draft:
        file: Any = io.BytesIO() if draft is None else draft.open("wb")
        with file:
            if frame is None:
                _save_json(body, file, kind, compression)
            else:
                with _writable_times(frame, path):
                    _save_frame(frame, file, kind, compression)
            if draft is None:
                write_stdout(file.getvalue())


def _save_frame(frame: pl.DataFrame, file: Any, kind: str, compression: Any) -> None:
    """Write a table."""
    match kind:
        case "json":
            _save_json(frame.iter_rows(named=True), file, kind, compression)
        case "parquet":
            frame.write_parquet(file, compression="zstd")
        case "arrow":
            frame.write_ipc(file)
        case "jsonl":
            frame.write_ndjson(file, compression=compression)
        case _:
            separator = "\t" if kind == "tsv" else ","
            frame.write_csv(file, separator=separator, compression=compression)


@contextmanager
def _writable_times(frame: pl.DataFrame, path: str | Path) -> Iterator[None]:
    """Refuse times that no calendar has, at which polars panics while it writes."""
    if not any(dtype.is_temporal() for dtype in frame.dtypes):
        yield
        return
    try:
        with without_panics():
            yield
    except (pl.exceptions.ComputeError, ValueError, OverflowError):
        message = "a time is out of the years that can be written"
        raise DataError(message, where=str(path)) from None


def _save_json(body: Any, file: Any, kind: str, compression: str) -> None:
    """Write one object, or records as a list or a line each, one by one."""
    if compression == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            _save_json(body, packed, kind, "uncompressed")
        return
    encode = msgspec.json.Encoder().encode
    if isinstance(body, dict):
        file.write(encode(body))
        return
    before, between, after = (b"", b"\n", b"\n") if kind == "jsonl" else (b"[", b",\n", b"]\n")
    file.write(before)
    for number, record in enumerate(body):
        file.write((between if number else b"") + encode(record))
    file.write(after)


class ConsensusLike(Protocol):
    """The result of a consensus."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def items(self) -> Mapping[str, Array]:
        """What is true of the items, by column."""

    @property
    def truth(self) -> Answers:
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
        names = ", ".join(ANSWER_TARGETS)
        raise OptionError(f"answers are not written as {format!r}; there are {names}")
    target = ANSWER_TARGETS[format]
    content = _content_of(what, texts, sizes)
    if content.answers.kind not in target.kinds:
        kinds = " and ".join(target.kinds)
        raise OptionError(f"{format} holds {kinds}, not {content.answers.kind}")
    lost: list[str] = []
    if str(path) != "-" and (str(path).endswith("/") or not Path(path).suffix):
        if not target.per_annotator:
            message = f"{format} is one file for all annotators; name a file"
            raise DataError(message, where=str(path))
        names = content.answers.annotators.tolist()
        files = zip(names, target.module.bodies(content, lost), strict=True)
        _write_folder(path, files, target.ending)
        renamed = [name for name in names if _file_name(name) != name]
        if renamed:
            example = f"such as {renamed[0]!r}"
            lost.append(f"files of {len(renamed)} annotators have other names, {example}")
        return lost
    body = target.module.body(content, lost).encode()
    if str(path) == "-":
        write_stdout(body)
    else:
        with atomic_file(path) as draft:
            draft.write_bytes(body)
    return lost


def _write_folder(path: str | Path, files: Iterable[tuple[str, str]], ending: str) -> None:
    """Write a file for each annotator, all of them or none."""
    with atomic_folder(path, (_OWN,)) as draft:
        for name, body in files:
            (draft / f"{_file_name(name)}{ending}").write_text(body, encoding="utf-8")
        (draft / _OWN).write_text("", encoding="utf-8")


def _content_of(
    source: Answers | ConsensusLike,
    texts: Mapping[str, str] | pl.DataFrame | None,
    sizes: Mapping[str, tuple[int, int]] | None,
) -> AnswerContent:
    if isinstance(texts, pl.DataFrame):
        texts = dict(texts.select("item", "text").drop_nulls("text").iter_rows())
    answers = source if isinstance(source, Answers) else source.truth
    all_sizes = _own_sizes(answers) | dict(sizes or {})
    if isinstance(source, Answers):
        return AnswerContent(source, texts or {}, all_sizes)
    return AnswerContent(
        answers,
        texts=texts or {},
        sizes=all_sizes,
        method=source.method,
        scores=_scores(answers, source.items),
    )


def _own_sizes(answers: Answers) -> dict[str, tuple[int, int]]:
    """Return the sizes of images that answers have with them."""
    size = getattr(answers, "size", None)
    if size is None:
        return {}
    pairs = np.asarray(size)[:, ::-1] if answers.kind == "points" else np.asarray(size)
    sizes = zip(answers.items.tolist(), pairs.tolist(), strict=True)
    return {item: (int(h), int(w)) for item, (h, w) in sizes if h == h and w == w}


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
