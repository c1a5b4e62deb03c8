"""Tasks for Label Studio, as its import takes them.

Annotations keep their annotator (`completed_by`), time and duration. A result becomes a prediction
for every task: its label, its confidence, and the method as `model_version`. On import Label
Studio gives tasks new ids, so the item's name is also in `data`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ..content import Content, chosen_options, is_id

MODEL = "model:"  # prefix of models among annotators


def answers(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a task for every item, with an annotation for every label."""
    durations, times = content.column("duration"), content.column("time")
    confidence, by_model = content.column("confidence"), content.by_model
    for item, positions in content.items():
        known = content.gold.get(item)
        annotations: list[dict[str, Any]] = []
        predictions: list[dict[str, Any]] = []
        for position in positions:
            answer, annotator = content.answers[position], content.annotators[position]
            result = _result(content, answer)
            if by_model[position]:
                score = None if confidence is None else confidence[position]
                predictions.append(_prediction(annotator.removeprefix(MODEL), score, result))
                continue
            one = {
                "completed_by": int(annotator) if is_id(annotator) else {"email": annotator},
                "ground_truth": answer == known,
                "was_cancelled": False,
                "result": result,
            }
            if answer == known:
                known = None  # one annotation marks it
            if durations is not None and _is_number(durations[position]):
                one["lead_time"] = durations[position]
            if times is not None and isinstance(times[position], datetime):
                one["created_at"] = times[position].isoformat() + "Z"
            annotations.append(one)
        yield task_of(item, content.texts.get(item), annotations, predictions)


def results(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a task for every item, with the label of a result as its prediction."""
    for item, label, score in content.labels():
        predictions = []
        if label is not None:
            predictions = [_prediction(content.method, score, _result(content, label))]
        yield task_of(item, content.texts.get(item), [], predictions)


def clashes(content: Content) -> list[str]:
    """Return how many annotators Label Studio does not know, and how much gold is lost."""
    if content.is_result:
        return []
    sentences = []
    unknown = [name for name in content.people if not (is_id(name) or "@" in name)]
    if unknown:
        sentences.append(
            f"{len(unknown)} annotators are neither numbers nor e-mail addresses, such as "
            f"{unknown[0]!r}: Label Studio takes labels only of members it knows"
        )
    given = {
        (item, content.answers[position])
        for item, positions in content.items()
        for position in positions
        if item in content.gold
    }
    lost = sum(pair not in given for pair in content.gold.items())
    if lost:
        sentences.append(f"gold of {lost} items is left out: nobody gave that label")
    return sentences


def task_of(
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
    if content.kind == "multiple":
        value = {"choices": chosen_options(answer)}
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
