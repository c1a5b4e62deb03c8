"""CVAT: XML with images and their shapes, one file for each annotator.

The format has no annotators: a folder, or several paths, has a file of each (the replicas of a
consensus job), named after them. Boxes, points, and masks with polygons are a question each; masks
are united by label, one question for each. Tags of whole images are a question of several options.
An image without shapes is an empty answer. Rotated boxes are read as their upright hulls; lines,
ellipses, cuboids, skeletons and tracks are left out. Documents that define entities are refused.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any
from xml.parsers import expat

from ...base.names import text
from ...errors import DataError
from ..annotator_files import AnnotatorFile, of_one_file
from ..collecting import About, Collected, box, located, point
from ..format import Export, Format, Head
from ..shapes import checked_size, from_polygon, from_rows, rotated_hull
from ..sources import Source

_CHUNK = 2**20
_DEEPEST = 20  # elements within elements; a shape has three


def recognises(head: Head) -> bool:
    """Return whether XML begins with annotations of images or a task."""
    elements = {"image", "meta", "track", "version"}
    return (
        head.shape == "xml"
        and head.names[:1] == ("annotations",)
        and bool(elements & {*head.names})
    )


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the shapes of all annotators."""
    collection = Collected()
    for file in files:
        if file.ending not in (".xml", ""):
            continue
        for image in _images(file.source, collection):
            name = image.get("name") or image.get("id")
            if not name:
                raise file.source.fail("an image without a name")
            with located(file.source, f"image {name!r}"):
                _add(collection, image, name, file.annotator)
    if not any(collection["tags"].options):
        del collection.questions["tags"]
    if not (collection.others or collection.questions):
        collection.of_kind("boxes", "boxes")
    return collection.export_of_files()


def _add(collection: Collected, image: ET.Element, item: str, by: str) -> None:
    """Add the shapes of one image."""
    size = checked_size(image.get("height"), image.get("width"))
    collection.add_size(item, size)
    collection.submitted[item, by] = About()
    tags: list[str] = []
    for number, shape in enumerate(image, 1):
        try:
            _add_shape(collection, shape, item=item, by=by, size=size, tags=tags)
        except DataError as problem:
            raise DataError(f"shape {number}: {problem}") from None
    collection["tags"].several = True
    collection["tags"].add(item, by, tags)


def _add_shape(
    collection: Collected,
    shape: ET.Element,
    item: str,
    by: str,
    size: tuple[int, int],
    tags: list[str],
) -> None:
    label = shape.get("label", "")
    match shape.tag:
        case "box":
            left, top, right, bottom = _numbers(shape, "xtl", "ytl", "xbr", "ybr")
            place = (left, top, right - left, bottom - top)
            (turn,) = _numbers(shape, "rotation") if shape.get("rotation") else (0.0,)
            if turn:
                collection.left["rotations of boxes, which are read as upright hulls"] += 1
                place = _turned(place, turn)
            mark = box(place, label, None if turn else size)
            collection.of_kind("boxes", "boxes").append(item, by, mark)
        case "points":
            for x, y in _points(shape):
                mark = point(x, y, label, size)
                collection.of_kind("points", "points").append(item, by, mark)
        case "polygon":
            pixels = from_polygon(_points(shape), size)
            collection.of_kind("masks", "masks").append(item, by, (label, pixels))
        case "mask":
            runs = [_whole(run) for run in shape.get("rle", "").split(",")]
            left, top, width, height = (
                _whole(shape.get(n)) for n in ("left", "top", "width", "height")
            )
            pixels = from_rows(runs, (left, top, width, height), size)
            collection.of_kind("masks", "masks").append(item, by, (label, pixels))
        case "tag":
            tags.append(text(label))
        case kind:
            collection.left[f"shapes of kind {kind}"] += 1


def _turned(
    place: tuple[float, float, float, float], degrees: float
) -> tuple[float, float, float, float]:
    """Return the hull of a box that is turned around its centre."""
    x, y, w, h = place
    _, _, wide, high = rotated_hull((0, 0, w, h), degrees)
    centre = x + w / 2, y + h / 2
    return centre[0] - wide / 2, centre[1] - high / 2, wide, high


def _numbers(shape: ET.Element, *names: str) -> list[float]:
    try:
        return [float(shape.attrib[name]) for name in names]
    except KeyError as missing:
        raise DataError(f"a {shape.tag} without {missing.args[0]}") from None
    except ValueError:
        raise DataError(f"a {shape.tag} whose {', '.join(names)} are no numbers") from None


def _whole(value: str | None) -> int:
    try:
        return int(float(value or ""))
    except (ValueError, OverflowError):
        raise DataError(f"a mask with {value!r:.20} instead of a whole number") from None


def _points(shape: ET.Element) -> list[tuple[float, float]]:
    try:
        pairs = [tuple(map(float, pair.split(","))) for pair in shape.attrib["points"].split(";")]
        return [(x, y) for x, y in pairs]
    except (KeyError, ValueError):
        raise DataError(f"a {shape.tag} whose points are not x,y;x,y;…") from None


def _images(source: Source, collection: Collected) -> Iterator[ET.Element]:
    """Yield every image with its shapes; refuse entities, which can grow without bound."""

    def refuse(*_: Any) -> None:
        raise source.fail("XML that defines entities is not read; CVAT writes none")

    builder, depth = ET.TreeBuilder(), 0
    finished: list[ET.Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, builder
        depth += 1
        if depth > _DEEPEST:
            raise source.fail(f"XML nested deeper than {_DEEPEST}")
        if depth == 2:
            builder = ET.TreeBuilder()
        if depth >= 2:
            builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        if depth >= 2:
            builder.end(tag)
        if depth == 2:
            finished.append(builder.close())
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = parser.StartDoctypeDeclHandler = refuse
    try:
        with source.file() as file:
            while True:
                chunk = file.read(_CHUNK)
                parser.Parse(chunk, not chunk)
                for element in finished:
                    collection.left["tracks of videos"] += element.tag == "track"
                    if element.tag == "image":
                        yield element
                finished.clear()
                if not chunk:
                    return
    except DataError:
        raise
    except (LookupError, ValueError):
        raise source.fail("XML in an encoding that is not known; save it as UTF-8") from None
    except expat.ExpatError as problem:
        raise source.fail(f"line {problem.lineno}: not XML ({problem})") from None


FORMAT = Format(
    "cvat",
    recognises=recognises,
    read=of_one_file(read_files),
    read_files=read_files,
    kinds=("sets", "boxes", "points", "masks"),
)
