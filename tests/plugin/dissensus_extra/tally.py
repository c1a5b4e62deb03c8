"""Tally: a line for each item with its labels, between tabs, after a line `# tally`.

photo 1<tab>ann=cat<tab>bob=dog
"""

from __future__ import annotations

from dissensus.formats.collecting import Collected
from dissensus.formats.content import Content
from dissensus.formats.format import Export, Format, Head, Target
from dissensus.formats.sources import Source

_FIRST = "# tally"


def recognises(head: Head) -> bool:
    """Return whether the first line says so."""
    return head.raw[:1] == (_FIRST,)


def read(source: Source) -> Export:
    """Return the labels of all items."""
    collection = Collected()
    for number, line in enumerate(source.lines(), 1):
        item, *labels = line.split("\t")
        if line == _FIRST or not line.strip():
            continue
        collection.items.name(item, None)
        for label in labels:
            annotator, equals, name = label.partition("=")
            if not (item and annotator and equals):
                raise source.fail(f"line {number}: not an item and annotator=label")
            collection["label"].add(item, annotator, [name])
    return collection.export()


def write(content: Content) -> str:
    """Return a line for every item."""
    lines = [_FIRST]
    for item, positions in content.items():
        labels = [f"{content.annotators[row]}={content.answers[row]}" for row in positions]
        lines.append("\t".join([item, *labels]))
    return "\n".join(lines) + "\n"


FORMAT = Format(
    "tally",
    recognises=recognises,
    read=read,
    labels=Target(
        summary="a line for each item with its labels",
        kinds=("tally",),
        write=write,
        holds=frozenset({"unlabelled", "repeats"}),
        results=False,
    ),
)
