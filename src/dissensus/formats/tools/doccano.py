"""doccano: a zip with a file for each annotator, or JSON lines that name the user.

In the zip or folder the name of a file is the annotator's (`ann.jsonl`, `bob.csv`); a record has an
id, a text or file name, and its labels. In CSV `#` is between labels. Labels with offsets
(`[0, 5, "PER"]`, `entities`) are spans, `bbox` boxes; polygons need the size of their image, which
doccano does not export, and are left out. A record without a class is left out: it was not labelled
yet; where others have marks, a record without is an empty answer. A shared project is exported as
one file without annotators; that is refused.
"""

from __future__ import annotations

import csv
import io
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from ...base.names import text
from ...errors import DataError
from ..annotator_files import AnnotatorFile
from ..collecting import About, Collected, box, describe, joined, length_of, span
from ..format import Export, Head
from ..json_records import decode, records
from ..sources import DAMAGED, Source, check_growth

_ENDINGS = (".jsonl", ".json", ".csv")
_LABELS = ("label", "labels", "cats")  # by kind of project, and by doccano's age
_INPUTS = ("text", "data", "filename", "image")
_OF_LOGS = ("header.json", "_journal/start.json")  # a zip of inspect, not of doccano
_ANNOTATOR = ("annotator", "user", "username", "annotated_by")

_KEYS, _VALUES = {"id", *_INPUTS}, {*_LABELS, "entities", "bbox", "segmentation"}  # in a zip

_UNLABELLED = "without a label"

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
    entities = record.get("entities")
    if isinstance(entities, list) and isinstance(record.get("relations"), list):
        return all(isinstance(one, dict) and "start_offset" in one for one in entities)
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
    return _export(collected)


def _export(collected: Collected) -> Export:
    if collected.others:
        del collected.left_out[None, _UNLABELLED]  # they are empty answers
    return collected.export()


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the labels of every annotator, from a file each."""
    collected = Collected()
    for one in files:
        opened = one.opened()
        for number, record in () if opened is None else records(opened, Record):
            _add(collected, record, one.annotator, number, one.source)
    return _export(collected)


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
        try:
            for one in annotations:
                _add_old(collected, one, item)
        except DataError as problem:
            raise source.fail(f"record {number}: {problem}") from None
        return
    by = annotator or next(
        (record[n] for n in _ANNOTATOR if _scalar(record.get(n)) is not None), None
    )
    if by is None:
        raise source.fail(
            "an export of a shared doccano project has no annotators; "
            "zip one file for each annotator, named after them"
        )
    try:
        _add_marks(collected, record, item, text(by), body)
    except DataError as problem:
        raise source.fail(f"record {number}: {problem}") from None
    for name in _LABELS:
        given = record.get(name)
        if given is None or given == "" or given == []:
            if name in record:
                collected.submitted[item, text(by)] = About()
                collected.leave_out(_UNLABELLED, item, text(by))
            continue
        labels = given if isinstance(given, list) else [given]
        if any(isinstance(one, (list, dict)) for one in labels):
            continue
        if len(labels) > 1:
            collected[name].kind = "multiple"
        collected[name].add(item, text(by), joined(labels))


def _add_marks(collected: Collected, record: Record, item: str, by: str, body: str | None) -> None:
    """Add the spans and boxes of a record, also where there are none."""
    length = length_of(body)
    for name in (*_LABELS, "entities", "spans", "bbox", "segmentation", "relations"):
        given = record.get(name)
        if not isinstance(given, list):
            continue
        if name in ("bbox", "entities", "spans"):
            collected.submitted[item, by] = About()
        for one in given:
            if isinstance(one, str):
                continue
            if isinstance(one, list) and len(one) == 3:
                mark = span(one[0], one[1], one[2], length)
            elif isinstance(one, dict) and "start_offset" in one:
                mark = span(one["start_offset"], one.get("end_offset"), one.get("label"), length)
            elif name == "bbox" and isinstance(one, dict):
                place = [one.get(side) for side in ("x", "y", "width", "height")]
                collected.of_kind("bbox", "boxes").append(item, by, box(place, one.get("label")))
                continue
            else:
                collected.left["polygons" if name == "segmentation" else "relations"] += 1
                continue
            collected.of_kind("spans", "spans").append(item, by, mark)
            collected.submitted[item, by] = About()


def _add_old(collected: Collected, one: Any, item: str) -> None:
    """Add an annotation of doccano 1, which has its user."""
    if isinstance(one, dict) and "start_offset" in one and _scalar(one.get("user")) is not None:
        by, label = text(one["user"]), one.get("label")
        mark = span(one["start_offset"], one.get("end_offset"), label)
        collected.of_kind("spans", "spans").append(item, by, mark)
    elif not isinstance(one, dict) or "points" in one:
        collected.left["polygons"] += 1
    elif _scalar(one.get("user")) is None or _scalar(one.get("label")) is None:
        collected.leave_out("without a user or label", item)
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
