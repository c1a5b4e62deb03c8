"""COCO: images, categories and annotations of one annotator.

Every image that the annotator answered is listed, also without an annotation. Masks are run
lengths, uncompressed, with their hulls as boxes. Annotations of a consensus have a score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import DataError
from ..tool_answers import AnswerContent


def body(content: AnswerContent, lost: list[str]) -> str:
    """Return the file of the only annotator."""
    people = content.answers.annotators.tolist()
    if len(people) != 1:
        raise DataError(
            f"COCO has no annotators, and there are {len(people)}; name a folder for a file of each"
        )
    return next(bodies(content, lost))


def bodies(content: AnswerContent, lost: list[str]) -> Iterator[str]:
    """Yield the file of every annotator."""
    del lost  # it holds everything
    number = {item: n for n, item in enumerate(content.answers.items.tolist(), 1)}
    names = [str(name) for name in getattr(content.answers, "classes", ()) if str(name)]
    categories = {name: n for n, name in enumerate(names or ["object"], 1)}
    given: dict[str, list[tuple[str, Any]]] = {}
    for item, answers in content.by_item():
        for annotator, value in answers:
            given.setdefault(annotator, []).append((item, value))
    for annotator in content.answers.annotators.tolist():
        answered = given.get(annotator, [])
        objects = [
            {"image_id": number[item], **_object(content, item, mark, categories)}
            for item, value in answered
            for mark in _objects(value)
        ]
        yield json.dumps(
            {
                "images": [_image(content, item, number[item]) for item, _ in answered],
                "annotations": [{"id": n, **one} for n, one in enumerate(objects, 1)],
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
    one: dict[str, Any] = {"category_id": categories[mark.get("label", next(iter(categories)))]}
    if "counts" in mark:
        area, score = sum(mark["counts"][1::2]), content.score(item)
        one |= {"segmentation": mark, "bbox": _hull(mark), "area": area, "iscrowd": 1}
    else:
        score = content.score(item, mark)
        box = [mark[side] for side in ("x", "y", "w", "h")]
        one |= {"bbox": box, "area": mark["w"] * mark["h"], "iscrowd": 0}
    return one if score is None else one | {"score": score}


def _hull(mask: Any) -> list[int]:
    """Return the smallest box around a mask: x, y, w, h."""
    height, width = mask["size"]
    inside = np.repeat(np.arange(len(mask["counts"])) % 2 == 1, mask["counts"])
    column, row = inside.reshape(width, height).nonzero()
    x, y = int(column.min()), int(row.min())
    return [x, y, int(column.max()) - x + 1, int(row.max()) - y + 1]
