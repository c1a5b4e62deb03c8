"""COCO: JSON with images, categories and annotations, one file for each annotator.

The format has no annotators: a folder, or several paths, has a file of each, named after them.
Boxes are the question `boxes`, segmentations the masks: polygons and run lengths of both codings,
united by category, one question for each. A single category `object` is none. An image without
annotations is an empty answer. Key points are left out.

Written, every image that the annotator answered is listed, also without an annotation. Masks are
run lengths, uncompressed, with their hulls as boxes. Annotations of a consensus have a score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...base.arrays import Integers
from ...base.names import text
from ...errors import DataError
from ..annotator_files import AnnotatorFile, of_one_file
from ..collecting import About, Collected, box, located
from ..content import AnswerContent
from ..format import AnswerTarget, Export, Format, Head
from ..json_records import records
from ..shapes import checked_size, from_packed_counts, from_polygon, from_runs
from ..sources import Source

_KEYS = {"info", "licenses", "images", "annotations", "categories", "type", "videos"}
# The lists may be longer than the beginning of a file, so one entry is enough.
_LIST = re.compile(
    r'"images"\s*:\s*\[\s*(\{[^{}]*"(file_name|width|id)"|\]\s*,\s*"(annotations|categories)")'
    r'|"annotations"\s*:\s*\[\s*\{[^{}]*"image_id"'
)
_UNLABELLED = "object"  # the only category of marks without labels


class Image(Struct, gc=False):
    """An image."""

    id: int | str
    file_name: str | None = None
    width: int | float | None = None
    height: int | float | None = None


class Category(Struct, gc=False):
    """A label."""

    id: int | str
    name: str | None = None


class Object(Struct, gc=False):
    """One thing in an image."""

    image_id: int | str
    category_id: int | str | None = None
    bbox: list[Any] | None = None
    segmentation: Any = None
    keypoints: Any = None


class File(Struct, gc=False):
    """A file of one annotator."""

    images: list[Image]
    annotations: list[Object]
    categories: list[Category] = msgspec.field(default_factory=list)


def recognises(head: Head) -> bool:
    """Return whether an object has lists of images and annotations."""
    if head.shape != "object" or not set(head.names) <= _KEYS:
        return False
    return any(map(_LIST.search, head.raw))


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the boxes and masks of all annotators."""
    collection = Collected()
    contents: list[tuple[str, Source, File]] = []
    for file in files:
        opened = file.opened()
        if opened is None:
            raise file.source.fail("empty; a file without marks still lists its images")
        contents += [(file.annotator, opened, content) for _, content in records(opened, File)]
    labels = {category.name for _, _, content in contents for category in content.categories}
    for annotator, opened, content in contents:
        if labels == {_UNLABELLED}:
            content.categories = [Category(category.id, "") for category in content.categories]
        _add(collection, content, annotator, opened)
    if not collection.others:
        collection.of_kind("boxes", "boxes")
    return collection.export_of_files()


def _add(collection: Collected, content: File, by: str, source: Source) -> None:
    """Add what one annotator marked."""
    names = {
        category.id: text(category.id if category.name is None else category.name)
        for category in content.categories
    }
    items: dict[Any, str] = {}
    for image in content.images:
        item = items[image.id] = text(image.file_name or image.id)
        collection.submitted[item, by] = About()
        if image.width is not None and image.height is not None:
            with located(source, f"image {image.id!r}"):
                collection.add_size(item, checked_size(image.height, image.width))
    for number, annotation in enumerate(content.annotations, 1):
        with located(source, f"annotation {number}"):
            _add_object(collection, annotation, by=by, items=items, names=names)


def _add_object(
    collection: Collected, annotation: Object, by: str, items: dict[Any, str], names: dict[Any, str]
) -> None:
    if annotation.image_id not in items:
        raise DataError(f"no image has the id {annotation.image_id!r}")
    item = items[annotation.image_id]
    label = names.get(
        annotation.category_id,
        "" if annotation.category_id is None else text(annotation.category_id),
    )
    size = collection.sizes.get(item)
    collection.left["key points"] += bool(annotation.keypoints)
    if annotation.bbox:
        if len(annotation.bbox) != 4:
            raise DataError(f"a bbox of {len(annotation.bbox)} numbers")
        collection.of_kind("boxes", "boxes").append(item, by, box(annotation.bbox, label, size))
    if annotation.segmentation:
        if size is None:
            raise DataError(f"image {item!r} has no width and height")
        masks = collection.of_kind("masks", "masks")
        for shape in _shapes(annotation.segmentation, size):
            masks.append(item, by, (label, shape))


def _shapes(segmentation: Any, size: tuple[int, int]) -> list[Integers]:
    """Return polygons, or run lengths compressed or not, as ranges of pixels."""
    if isinstance(segmentation, list):
        if any(
            not isinstance(polygon, list) or len(polygon) % 2 or len(polygon) < 6
            for polygon in segmentation
        ):
            raise DataError("a polygon is a list of x, y, x, y, … with three corners or more")
        return [from_polygon(polygon, size) for polygon in segmentation]
    if not isinstance(segmentation, dict) or not {"counts", "size"} <= segmentation.keys():
        raise DataError("a segmentation is a list of polygons, or has counts and size")
    if segmentation["size"] != list(size):
        raise DataError(
            f"a mask of size {segmentation['size']!r:.40} on an image of size {list(size)}"
        )
    counts = segmentation["counts"]
    if isinstance(counts, str):
        return [from_packed_counts(counts, size)]
    if not isinstance(counts, list):
        raise DataError("counts are a list of run lengths, or a text that packs them")
    return [from_runs(counts, size)]


def write(content: AnswerContent, lost: list[str]) -> str:
    """Return the file of the only annotator."""
    people = content.answers.annotators.tolist()
    if len(people) != 1:
        raise DataError(
            f"COCO has no annotators, and there are {len(people)}; name a folder for a file of each"
        )
    return next(write_each(content, lost))


def write_each(content: AnswerContent, lost: list[str]) -> Iterator[str]:
    """Yield the file of every annotator."""
    del lost  # it holds everything
    number = {item: n for n, item in enumerate(content.answers.items.tolist(), 1)}
    names = [str(name) for name in getattr(content.answers, "classes", ()) if str(name)]
    categories = {name: n for n, name in enumerate(names or ["object"], 1)}
    by_annotator: dict[str, list[tuple[str, Any]]] = {}
    for item, answers in content.by_item():
        for annotator, value in answers:
            by_annotator.setdefault(annotator, []).append((item, value))
    for annotator in content.answers.annotators.tolist():
        answered = by_annotator.get(annotator, [])
        objects = [
            {"image_id": number[item], **_object(content, item, mark, categories)}
            for item, value in answered
            for mark in _objects(value)
        ]
        yield json.dumps(
            {
                "images": [_image(content, item, number[item]) for item, _ in answered],
                "annotations": [{"id": n, **entry} for n, entry in enumerate(objects, 1)],
                "categories": [{"id": n, "name": name} for name, n in categories.items()],
            },
            ensure_ascii=False,
        )


def _image(content: AnswerContent, item: str, number: int) -> dict[str, Any]:
    image: dict[str, Any] = {"id": number, "file_name": item}
    if item in content.sizes:
        image["height"], image["width"] = content.sizes[item]
    return image


def _objects(value: Any) -> list[Any]:
    """Return boxes, or the mask unless it has no pixels."""
    if isinstance(value, list):
        return value
    return [value] if sum(value["counts"][1::2]) else []


def _object(
    content: AnswerContent, item: str, mark: Any, categories: dict[str, int]
) -> dict[str, Any]:
    entry: dict[str, Any] = {"category_id": categories[mark.get("label", next(iter(categories)))]}
    if "counts" in mark:
        area, score = sum(mark["counts"][1::2]), content.score(item)
        entry |= {"segmentation": mark, "bbox": _hull(mark), "area": area, "iscrowd": 1}
    else:
        score = content.score(item, mark)
        box = [mark[side] for side in ("x", "y", "w", "h")]
        entry |= {"bbox": box, "area": mark["w"] * mark["h"], "iscrowd": 0}
    return entry if score is None else entry | {"score": score}


def _hull(mask: Any) -> list[int]:
    """Return the smallest box around a mask: x, y, w, h."""
    height, width = mask["size"]
    inside = np.repeat(np.arange(len(mask["counts"])) % 2 == 1, mask["counts"])
    column, row = inside.reshape(width, height).nonzero()
    x, y = int(column.min()), int(row.min())
    return [x, y, int(column.max()) - x + 1, int(row.max()) - y + 1]


FORMAT = Format(
    "coco",
    recognises=recognises,
    read=of_one_file(read_files),
    read_files=read_files,
    kinds=("boxes", "masks"),
    answers=AnswerTarget(
        summary="images and annotations of one annotator, or a folder with a file of each",
        kinds=("boxes", "masks"),
        ending=".json",
        write=write,
        write_each=write_each,
    ),
)
