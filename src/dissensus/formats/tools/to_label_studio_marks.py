"""Tasks for Label Studio with spans, boxes, points, options and texts, as its import takes them.

Answers are annotations with `completed_by`; a consensus is a prediction with its score, and so has
every mark of it. An empty answer is an annotation with an empty result. Boxes and points are
percents of their image.
"""

from __future__ import annotations

import json
from typing import Any

from ..content import is_id
from .label_studio_tasks import MODEL, task_of
from ..tool_answers import AnswerContent

_CONTROLS = {"spans": "labels", "boxes": "rectanglelabels", "points": "keypointlabels"}
_CONTROLS |= {"sets": "choices", "texts": "textarea"}


def body(content: AnswerContent, lost: list[str]) -> str:
    """Return the tasks of all items."""
    people = [n for n in content.answers.annotators.tolist() if not n.startswith(MODEL)]
    unknown = [name for name in people if not (is_id(name) or "@" in name)]
    if unknown and not content.method:
        lost.append(
            f"{len(unknown)} annotators are neither numbers nor e-mail addresses, such as "
            f"{unknown[0]!r}: Label Studio takes labels only of members it knows"
        )
    tasks = []
    for item, answers in content.by_item():
        annotations: list[Any] = []
        predictions: list[Any] = []
        for annotator, value in answers:
            result = _result(content, item, value)
            if content.method or annotator.startswith(MODEL):
                version = content.method or annotator.removeprefix(MODEL)
                prediction = {"model_version": version, "result": result}
                predictions.append(prediction | _score(content, item, result))
                continue
            by = int(annotator) if is_id(annotator) else {"email": annotator}
            annotations.append({"completed_by": by, "was_cancelled": False, "result": result})
        tasks.append(task_of(item, content.texts.get(item), annotations, predictions))
    return json.dumps(tasks, ensure_ascii=False)


def _score(content: AnswerContent, item: str, result: list[dict[str, Any]]) -> dict[str, float]:
    """Return the score of a prediction: that of its item, or the mean of its marks."""
    own = content.score(item)
    scores = [one["score"] for one in result if "score" in one] if own is None else [own]
    return {"score": sum(scores) / len(scores)} if scores else {}


def _result(content: AnswerContent, item: str, value: Any) -> list[dict[str, Any]]:
    kind = content.answers.kind
    control = _CONTROLS[kind]
    about = {"from_name": "label", "to_name": "item", "type": control}
    if kind in ("texts", "sets"):
        given = {"text": [value]} if kind == "texts" else {"choices": value}
        return [about | {"value": given}] if value else []
    results = []
    for number, mark in enumerate(value, 1):
        labels = {control: [mark["label"]]} if "label" in mark else {}
        one: dict[str, Any] = about | {"id": f"m{number}"}
        one["value"] = _place(content, item, mark) | labels
        if not labels and kind != "spans":
            one["type"] = control.removesuffix("labels")
        if kind != "spans":
            height, width = content.size(item)
            one |= {"original_width": width, "original_height": height, "image_rotation": 0}
        score = content.score(item, mark)
        results.append(one if score is None else one | {"score": score})
    return results


def _place(content: AnswerContent, item: str, mark: dict[str, Any]) -> dict[str, Any]:
    if content.answers.kind == "spans":
        text = content.texts.get(item)
        part = {} if text is None else {"text": text[int(mark["start"]) : int(mark["end"])]}
        return {"start": mark["start"], "end": mark["end"], **part}
    height, width = content.size(item)
    place = {"x": 100 * mark["x"] / width, "y": 100 * mark["y"] / height}
    if content.answers.kind == "points":
        return place | {"width": 0.5}  # of the dot that is drawn
    sides = {"width": 100 * mark["w"] / width, "height": 100 * mark["h"] / height}
    return place | sides | {"rotation": 0}
