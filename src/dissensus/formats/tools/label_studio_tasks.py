"""Tasks for Label Studio, as its import takes them.

Annotations keep their annotator (`completed_by`), time and duration. A result becomes a prediction
for every task: its label, its confidence, and the method as `model_version`. On import Label
Studio gives tasks new ids, so the item's name is also in `data`.

Of other kinds (spans, boxes, points, options, texts), answers are annotations with `completed_by`;
a consensus is a prediction with its score, and so has every mark of it. An empty answer is an
annotation with an empty result. Boxes and points are percents of their image.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from ..collecting import options_of_label
from ..content import MODEL, ONE_SCORE, AnswerContent, Content, is_id
from ..format import AnswerTarget, Target

_CONTROLS = {"spans": "labels", "boxes": "rectanglelabels", "points": "keypointlabels"}
_CONTROLS |= {"sets": "choices", "texts": "textarea"}


def _tasks(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a task for every item: with its annotations, or the label of a result as prediction."""
    return _predicted(content) if content.is_result else _annotated(content)


def _annotated(content: Content) -> Iterator[dict[str, Any]]:
    durations, times = content.column("duration"), content.column("time")
    confidence, by_model = content.column("confidence"), content.by_model
    for item, positions in content.items():
        gold = content.gold.get(item)
        annotations: list[dict[str, Any]] = []
        predictions: list[dict[str, Any]] = []
        for position in positions:
            answer, annotator = content.answers[position], content.annotators[position]
            result = _result(content, answer)
            if by_model[position]:
                score = None if confidence is None else confidence[position]
                predictions.append(_prediction(annotator.removeprefix(MODEL), score, result))
                continue
            annotation = {
                "completed_by": int(annotator) if is_id(annotator) else {"email": annotator},
                "ground_truth": answer == gold,
                "was_cancelled": False,
                "result": result,
            }
            if answer == gold:
                gold = None  # one annotation marks it
            if durations is not None and _is_number(durations[position]):
                annotation["lead_time"] = durations[position]
            if times is not None and isinstance(times[position], datetime):
                annotation["created_at"] = times[position].isoformat() + "Z"
            annotations.append(annotation)
        yield _task(item, content.texts.get(item), annotations, predictions)


def _predicted(content: Content) -> Iterator[dict[str, Any]]:
    for item, label, score in content.labels():
        predictions = []
        if label is not None:
            predictions = [_prediction(content.method, score, _result(content, label))]
        yield _task(item, content.texts.get(item), [], predictions)


def _clashes(content: Content) -> list[str]:
    """Return how many annotators Label Studio does not know, and how much gold is lost."""
    if content.is_result:
        return [ONE_SCORE]
    sentences = _unknown_members(content.people)
    labelled = {
        (item, content.answers[position])
        for item, positions in content.items()
        for position in positions
        if item in content.gold
    }
    lost = sum(pair not in labelled for pair in content.gold.items())
    if lost:
        sentences.append(f"gold of {lost} items is left out: nobody gave that label")
    return sentences


def _unknown_members(people: Iterable[str]) -> list[str]:
    """Return how many annotators Label Studio does not know, if there are any."""
    unknown = [name for name in people if not (is_id(name) or "@" in name)]
    if not unknown:
        return []
    return [
        f"{len(unknown)} annotators are neither numbers nor e-mail addresses, such as "
        f"{unknown[0]!r}: Label Studio takes labels only of members it knows"
    ]


def _task(
    item: str, text_of: str | None, annotations: list[Any], predictions: list[Any]
) -> dict[str, Any]:
    """Return a task for an item."""
    data = {"item": item}
    if text_of is not None:
        data["text"] = text_of
    return {
        "id": int(item) if is_id(item) else item,
        "data": data,
        "annotations": annotations,
        "predictions": predictions,
    }


def _prediction(version: str, score: float | None, result: list[Any]) -> dict[str, Any]:
    prediction: dict[str, Any] = {"model_version": version, "result": result}
    return prediction if score is None else prediction | {"score": score}


def _result(content: Content, answer: Any) -> list[dict[str, Any]]:
    kind: str = "choices"
    value: dict[str, Any] = {"choices": [answer]}
    if content.kind == "sets":
        value = {"choices": options_of_label(answer)}
    elif content.kind == "numeric" and _is_number(answer):
        kind, value = "number", {"number": float(answer)}
    elif content.kind == "ordinal" and is_id(answer):
        kind, value = "rating", {"rating": int(answer)}
    target = "text" if content.texts else "item"
    return [{"from_name": content.question, "to_name": target, "type": kind, "value": value}]


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _answers(content: AnswerContent, lost: list[str]) -> str:
    """Return the tasks of all items."""
    people = [n for n in content.answers.annotators.tolist() if not n.startswith(MODEL)]
    if not content.method:
        lost += _unknown_members(people)
    tasks = []
    for item, answers in content.by_item():
        annotations: list[Any] = []
        predictions: list[Any] = []
        for annotator, value in answers:
            result = _mark_result(content, item, value)
            if content.method or annotator.startswith(MODEL):
                version = content.method or annotator.removeprefix(MODEL)
                prediction = {"model_version": version, "result": result}
                predictions.append(prediction | _score(content, item, result))
                continue
            by = int(annotator) if is_id(annotator) else {"email": annotator}
            annotations.append({"completed_by": by, "was_cancelled": False, "result": result})
        tasks.append(_task(item, content.texts.get(item), annotations, predictions))
    return json.dumps(tasks, ensure_ascii=False)


def _score(content: AnswerContent, item: str, result: list[dict[str, Any]]) -> dict[str, float]:
    """Return the score of a prediction: that of its item, or the mean of its marks."""
    own = content.score(item)
    scores = [entry["score"] for entry in result if "score" in entry] if own is None else [own]
    return {"score": sum(scores) / len(scores)} if scores else {}


def _mark_result(content: AnswerContent, item: str, value: Any) -> list[dict[str, Any]]:
    kind = content.answers.kind
    control = _CONTROLS[kind]
    about = {"from_name": "label", "to_name": "item", "type": control}
    if kind in ("texts", "sets"):
        answer = {"text": [value]} if kind == "texts" else {"choices": value}
        return [about | {"value": answer}] if value else []
    results = []
    for number, mark in enumerate(value, 1):
        labels = {control: [mark["label"]]} if "label" in mark else {}
        entry: dict[str, Any] = about | {"id": f"m{number}"}
        entry["value"] = _place(content, item, mark) | labels
        if not labels and kind != "spans":
            entry["type"] = control.removesuffix("labels")
        if kind != "spans":
            height, width = content.size(item)
            entry |= {"original_width": width, "original_height": height, "image_rotation": 0}
        score = content.score(item, mark)
        results.append(entry if score is None else entry | {"score": score})
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


LABELS = Target(
    summary="tasks with annotations, or with predictions for a result",
    kinds=("json",),
    write=_tasks,
    holds=frozenset({"unlabelled", "repeats", "gold", "texts", "ordinal", "interval"}),
    columns=("duration", "time", "source"),
    clashes=_clashes,
)
ANSWERS = AnswerTarget(
    summary="tasks with annotations, or with predictions for a consensus",
    kinds=("spans", "boxes", "points", "sets", "texts"),
    ending=".json",
    write=_answers,
)
