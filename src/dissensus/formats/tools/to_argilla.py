"""Records for Argilla 2, as `records.from_json` takes them.

Annotations are responses, one for each user. A result is a suggestion with its score, and the
method is the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from .argilla import are_read_as_texts
from ..content import Content, chosen_options
from .label_studio_tasks import MODEL


def answers(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a record for every item, with a response for every label."""
    confidence, by_model = content.column("confidence"), content.by_model
    for item, positions in content.items():
        responses, suggestion = [], None
        for position in positions:
            value = _value(content, content.answers[position])
            annotator = content.annotators[position]
            if not by_model[position]:
                responses.append({"value": value, "user_id": annotator})
            elif suggestion is None:
                score = None if confidence is None else confidence[position]
                suggestion = {
                    "value": value,
                    "score": score,
                    "agent": annotator.removeprefix(MODEL),
                }
        yield _record(content, item, responses, suggestion)


def results(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a record for every item, with the label of a result as its suggestion."""
    for item, label, score in content.labels():
        suggestion = None
        if label is not None:
            suggestion = {"value": _value(content, label), "score": score, "agent": content.method}
        yield _record(content, item, [], suggestion)


def clashes(content: Content) -> list[str]:
    """Return how many annotators Argilla does not know, and how many labels of models are lost."""
    if content.is_result:
        return []
    sentences, by_model = [], content.by_model
    if content.kind == "single" and are_read_as_texts([*map(str, content.answers)]):
        sentences.append("the labels look like free text: they are read back as texts, not classes")
    unknown = [name for name in content.people if not _is_uuid(name)]
    if unknown:
        sentences.append(
            f"{len(unknown)} annotators are no ids of Argilla's users (UUID), such as "
            f"{unknown[0]!r}: Argilla takes responses only of users it knows"
        )
    more = sum(
        max(sum(by_model[position] for position in positions) - 1, 0)
        for _, positions in content.items()
    )
    if more:
        sentences.append(f"{more} labels of models are left out: a record has one suggestion")
    return sentences


def _record(
    content: Content, item: str, responses: list[Any], suggestion: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": item,
        "fields": {"text": content.texts.get(item, item)},
        "metadata": {},
        "suggestions": {} if suggestion is None else {content.question: suggestion},
        "responses": {content.question: responses} if responses else {},
        "vectors": {},
    }


def _value(content: Content, answer: Any) -> Any:
    if content.kind == "multiple":
        return chosen_options(answer)
    if content.kind == "ordinal" and isinstance(answer, str) and answer.isdigit():
        return int(answer)
    return answer


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
