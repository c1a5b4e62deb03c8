"""brat: a folder for each annotator, with a text and its annotations, `a.txt` and `a.ann`.

A line `T1<tab>Person 0 5<tab>Marie` is a span in characters. An empty `.ann` file is an empty
answer. A span in several pieces is read as its hull. Relations, events, attributes and notes are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..annotator_files import AnnotatorFile, of_one_file, text_of
from ..collecting import About, Collected, located, span
from ..format import Export, Format, Head
from ..sources import Source

_SPAN = re.compile(r"T\d+\t(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)(?:\t|$)")
_OTHER = {"R": "relations", "E": "events", "A": "attributes", "M": "attributes", "N": "links"}
_OTHER |= {"*": "relations", "#": "notes of annotators"}


def recognises(head: Head) -> bool:
    """Return whether lines are annotations such as `T1`, a label and its offsets."""
    lines = [line for line in head.raw if line.strip()]
    return (
        bool(lines)
        and any(map(_SPAN.match, lines))
        and all(line[0] in "T*REAMN#" for line in lines)
    )


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the spans of all annotators."""
    collection = Collected()
    texts = {
        (file.annotator, file.document): file.source for file in files if file.ending == ".txt"
    }
    marked = [file for file in files if file.ending == ".ann"] or list(files)
    flat = all(
        file.document == "" for file in marked
    )  # documents of one annotator, named by their folder
    for file in marked:
        folder = Path(file.source.name).resolve().parent.name
        by = folder if flat and len(marked) > 1 else file.annotator
        item = file.document or file.annotator
        written = texts.get((file.annotator, file.document))
        body = None if written is None else text_of(written)
        item = collection.items.name(item, body) or item
        if item in collection.items.conflicts:
            raise file.source.fail(f"annotators have different texts of {item!r}")
        collection.submitted[item, by] = About()
        _add(collection, file.source, item=item, by=by, body=body)
    collection.of_kind("spans", "spans")
    return collection.export_of_files()


def _add(collection: Collected, source: Source, item: str, by: str, body: str | None) -> None:
    length = None if body is None else len(body)
    for number, line in enumerate(text_of(source).splitlines(), 1):
        if not line.strip():
            continue
        match = _SPAN.match(line)
        if match is None and line[0] != "T" and line[0] in _OTHER:
            collection.left[_OTHER[line[0]]] += 1
            continue
        if match is None:
            raise source.fail(f"line {number}: not a span such as T1<tab>Person 0 5<tab>Marie")
        pieces = [tuple(map(int, piece.split())) for piece in match[2].split(";")]
        collection.left["gaps in spans, which are read as their hulls"] += len(pieces) - 1
        with located(source, f"line {number}"):
            mark = span(min(p[0] for p in pieces), max(p[1] for p in pieces), match[1], length)
        collection.of_kind("spans", "spans").append(item, by, mark)


FORMAT = Format(
    "brat",
    recognises=recognises,
    read=of_one_file(read_files),
    read_files=read_files,
    kinds=("spans",),
)
