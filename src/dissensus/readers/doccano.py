"""doccano: a zip with a file for each annotator, or JSON lines that name the user.

In the zip the name of a file is the annotator's (`ann.jsonl`, `bob.csv`); a record has an id, a
text or file name, and its labels. In CSV `#` is between labels. Records without a label are left
out: they were not labelled yet. A shared project is exported as one file without annotators; that
is refused.
"""

from __future__ import annotations

import csv
import io
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from .._names import text
from ..errors import DataError
from ._answers import Collected, describe, joined
from .exports import Export, Head
from .json_records import decode, records
from .packing import DAMAGED, check_growth
from .sources import Source

_ENDINGS = (".jsonl", ".json", ".csv")
_LABELS = ("label", "labels", "cats")  # by kind of project, and by doccano's age
_INPUTS = ("text", "data", "filename", "image")
_OF_LOGS = ("header.json", "_journal/start.json")  # a zip of inspect, not of doccano
_ANNOTATOR = ("annotator", "user", "username", "annotated_by")

_KEYS, _VALUES = {"id", *_INPUTS}, {*_LABELS, "entities", "bbox", "segmentation"}  # in a zip

Record = dict[str, Any]


def recognises(head: Head) -> bool:
    """Return whether a zip holds jsonl, json or csv, or records have id, text and label lists."""
    if head.shape == "archive":
        files = [name for name in head.names if _counts(name)]
        if any(name in _OF_LOGS for name in files):
            return False
        return bool(files) and all(name.lower().endswith(_ENDINGS) for name in files)
    return head.all_records(_is_record)


def _is_record(record: Record) -> bool:
    if "id" not in record or not any(name in record for name in _INPUTS):
        return False
    lists = [name.lower() for name, given in record.items() if isinstance(given, list)]
    people = ("annotator", "worker", "rater", "user")  # doccano has no parallel list of them
    if "answer" in record or any(word in name for name in lists for word in people):
        return False
    annotations = record.get("annotations")
    if isinstance(annotations, list) and annotations:
        return all(isinstance(one, dict) and {"label", "user"} <= one.keys() for one in annotations)
    given = [record[name] for name in _LABELS if isinstance(record.get(name), list)]
    return bool(given) and all(_is_label(one) for labels in given for one in labels)


def _is_label(one: Any) -> bool:
    return isinstance(one, str) or (isinstance(one, list) and len(one) == 3)


def read(source: Source) -> Export:
    """Return the labels of every annotator."""
    collected = Collected()
    if source.format == "zip":
        for annotator, number, record in _unpacked(source):
            if not (_KEYS & record.keys() and _VALUES & record.keys()):
                raise source.fail(
                    f"{annotator}, record {number}: no id or label as doccano has; unpack the zip"
                )
            _add(collected, record, annotator, number, source)
    else:
        for number, record in records(source, Record):
            _add(collected, record, None, number, source)
    if not collected.questions and collected.left["spans and boxes"]:
        raise source.fail("only spans, boxes or relations in it; labels of whole texts are read")
    return collected.export()


def _add(
    collected: Collected, record: Record, annotator: str | None, number: int, source: Source
) -> None:
    """Add the labels of one record."""
    body = next((record[name] for name in _INPUTS if isinstance(record.get(name), str)), None)
    item = collected.items.name(_scalar(record.get("id")), describe(body))
    if item is None:
        raise source.fail(f"record {number}: neither an id nor a text")
    annotations = record.get("annotations")
    if annotator is None and isinstance(annotations, list):
        for one in annotations:
            _add_old(collected, one, item)
        return
    by = annotator or next(
        (record[n] for n in _ANNOTATOR if _scalar(record.get(n)) is not None), None
    )
    if by is None:
        raise source.fail(
            "an export of a shared doccano project has no annotators; "
            "zip one file for each annotator, named after them"
        )
    for name in ("entities", "spans", "relations", "bbox", "segmentation"):
        shapes = record.get(name)
        collected.left["spans and boxes"] += len(shapes) if isinstance(shapes, list) else 0
    for name in _LABELS:
        given = record.get(name)
        if given is None or given == "" or given == []:
            collected.left["records without a label"] += name in record
            continue
        labels = given if isinstance(given, list) else [given]
        shapes = [one for one in labels if isinstance(one, (list, dict))]
        if shapes:
            collected.left["spans and boxes"] += len(shapes)
            continue
        if len(labels) > 1:
            collected[name].kind = "multiple"
        collected[name].add(item, text(by), joined(labels))


def _add_old(collected: Collected, one: Any, item: str) -> None:
    """Add an annotation of doccano 1, which has its user."""
    if not isinstance(one, dict) or "start_offset" in one or "points" in one:
        collected.left["spans and boxes"] += 1
    elif _scalar(one.get("user")) is None or _scalar(one.get("label")) is None:
        collected.left["annotations without a user or label"] += 1
    else:
        collected["label"].add(item, text(one["user"]), joined([one["label"]]))


def _scalar(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) and value != "" else None


def _counts(name: str) -> bool:
    """Return whether this is a file, and not one that archivers add."""
    path = PurePosixPath(name)
    return not (name.endswith("/") or "__MACOSX" in path.parts or path.name.startswith("."))


def _unpacked(source: Source) -> Iterator[tuple[str, int, Record]]:
    """Yield annotator, number and record; nothing is ever written to disk."""
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            packed = file.seek(0, io.SEEK_END)
            members = [one for one in archive.infolist() if _counts(one.filename)]
            check_growth(source.name, packed, sum(one.file_size for one in members))
            names = Counter(PurePosixPath(one.filename).stem for one in members)
            for name in (name for name, count in names.items() if count > 1):
                raise source.fail(f"two files in it are called {name!r}, as one annotator")
            for member in members:
                path = PurePosixPath(member.filename)
                for number, record in _parsed(source, archive.read(member), path.suffix.lower()):
                    yield path.stem, number, record
    except DataError:
        raise
    except (*DAMAGED, struct.error) as problem:
        raise source.fail(f"damaged zip ({problem})") from None


def _parsed(source: Source, body: bytes, ending: str) -> Iterator[tuple[int, Record]]:
    body = body.removeprefix(b"\xef\xbb\xbf")
    if not body.strip():
        return
    if ending != ".csv":
        yield from decode(source, body, Record)
        return
    try:
        rows = csv.DictReader(io.StringIO(body.decode("utf-8"), newline=""))
        for number, row in enumerate(rows, 1):
            label = row.get("label")
            yield number, {**row, "label": label.split("#") if label else []}
    except UnicodeDecodeError:
        raise source.fail("not UTF-8; save it again as UTF-8") from None
    except csv.Error as problem:
        raise source.fail(f"not CSV ({problem})") from None
