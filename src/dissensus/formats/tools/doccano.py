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
from ..collecting import About, Collected, box, describe, length_of, located, span
from ..format import Export, Format, Head
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
    lists = [name.lower() for name, value in record.items() if isinstance(value, list)]
    people = ("annotator", "worker", "rater", "user")  # doccano has no parallel list of them
    if "answer" in record or any(word in name for name in lists for word in people):
        return False
    annotations = record.get("annotations")
    if isinstance(annotations, list) and annotations:
        return all(
            isinstance(annotation, dict) and {"label", "user"} <= annotation.keys()
            for annotation in annotations
        )
    entities = record.get("entities")
    if isinstance(entities, list) and isinstance(record.get("relations"), list):
        return all(isinstance(entity, dict) and "start_offset" in entity for entity in entities)
    label_lists = [record[name] for name in _LABELS if isinstance(record.get(name), list)]
    return bool(label_lists) and all(_is_label(label) for labels in label_lists for label in labels)


def _is_label(label: Any) -> bool:
    return isinstance(label, str) or (isinstance(label, list) and len(label) == 3)


def read(source: Source) -> Export:
    """Return the labels of every annotator."""
    collection = Collected()
    if source.format == "zip":
        for annotator, number, record in _unpacked(source):
            if not (_KEYS & record.keys() and _VALUES & record.keys()):
                raise source.fail(
                    f"{annotator}, record {number}: no id or label as doccano has; unpack the zip"
                )
            _add(collection, record, annotator=annotator, number=number, source=source)
    else:
        for number, record in records(source, Record):
            _add(collection, record, annotator=None, number=number, source=source)
    return _export(collection)


def _export(collection: Collected) -> Export:
    if collection.others:
        del collection.left_out[None, _UNLABELLED]  # they are empty answers
    return collection.export()


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the labels of every annotator, from a file each."""
    collection = Collected()
    for file in files:
        opened = file.opened()
        for number, record in () if opened is None else records(opened, Record):
            _add(collection, record, annotator=file.annotator, number=number, source=file.source)
    return _export(collection)


def _add(
    collection: Collected, record: Record, annotator: str | None, number: int, source: Source
) -> None:
    """Add the labels of one record."""
    body = next((record[name] for name in _INPUTS if isinstance(record.get(name), str)), None)
    item = collection.items.name(_scalar(record.get("id")), describe(body))
    if item is None:
        raise source.fail(f"record {number}: neither an id nor a text")
    annotations = record.get("annotations")
    if annotator is None and isinstance(annotations, list):
        with located(source, f"record {number}"):
            for annotation in annotations:
                _add_old(collection, annotation, item)
        return
    by = annotator or next(
        (record[n] for n in _ANNOTATOR if _scalar(record.get(n)) is not None), None
    )
    if by is None:
        raise source.fail(
            "an export of a shared doccano project has no annotators; "
            "zip one file for each annotator, named after them"
        )
    with located(source, f"record {number}"):
        _add_marks(collection, record, item=item, by=text(by), body=body)
    for name in _LABELS:
        value = record.get(name)
        if value is None or value == "" or value == []:
            if name in record:
                collection.submitted[item, text(by)] = About()
                collection.leave_out(_UNLABELLED, item, text(by))
            continue
        labels = value if isinstance(value, list) else [value]
        if any(isinstance(label, (list, dict)) for label in labels):
            continue
        collection[name].add(item, text(by), labels)


def _add_marks(collection: Collected, record: Record, item: str, by: str, body: str | None) -> None:
    """Add the spans and boxes of a record, also where there are none."""
    length = length_of(body)
    for name in (*_LABELS, "entities", "spans", "bbox", "segmentation", "relations"):
        marks = record.get(name)
        if not isinstance(marks, list):
            continue
        if name in ("bbox", "entities", "spans"):
            collection.submitted[item, by] = About()
        for entry in marks:
            if isinstance(entry, str):
                continue
            if isinstance(entry, list) and len(entry) == 3:
                mark = span(entry[0], entry[1], entry[2], length)
            elif isinstance(entry, dict) and "start_offset" in entry:
                mark = span(
                    entry["start_offset"], entry.get("end_offset"), entry.get("label"), length
                )
            elif name == "bbox" and isinstance(entry, dict):
                place = [entry.get(side) for side in ("x", "y", "width", "height")]
                collection.of_kind("bbox", "boxes").append(item, by, box(place, entry.get("label")))
                continue
            else:
                collection.left["polygons" if name == "segmentation" else "relations"] += 1
                continue
            collection.of_kind("spans", "spans").append(item, by, mark)
            collection.submitted[item, by] = About()


def _add_old(collection: Collected, annotation: Any, item: str) -> None:
    """Add an annotation of doccano 1, which has its user."""
    if (
        isinstance(annotation, dict)
        and "start_offset" in annotation
        and _scalar(annotation.get("user")) is not None
    ):
        by, label = text(annotation["user"]), annotation.get("label")
        mark = span(annotation["start_offset"], annotation.get("end_offset"), label)
        collection.of_kind("spans", "spans").append(item, by, mark)
    elif not isinstance(annotation, dict) or "points" in annotation:
        collection.left["polygons"] += 1
    elif _scalar(annotation.get("user")) is None or _scalar(annotation.get("label")) is None:
        collection.leave_out("without a user or label", item)
    else:
        collection["label"].add(item, text(annotation["user"]), [annotation["label"]])


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
            members = [member for member in archive.infolist() if _counts(member.filename)]
            check_growth(source.name, packed, sum(member.file_size for member in members))
            names = Counter(PurePosixPath(member.filename).stem for member in members)
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


FORMAT = Format(
    "doccano",
    recognises=recognises,
    read=read,
    read_files=read_files,
    kinds=("sets", "spans", "boxes"),
)
