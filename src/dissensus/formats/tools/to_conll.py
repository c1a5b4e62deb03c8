"""CoNLL: a token on each line with its tag in BIO, an empty line after each sentence.

A line `# sent_id = NAME` before a sentence names its item. Texts are cut at blanks and at the
borders of spans; without texts, spans are taken to count tokens, which are then numbered. A file
has the items of its annotators; where one of several did not answer, `?` stands instead of tags. Of
overlapping spans the longest is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ...errors import DataError
from ..tool_answers import AnswerContent

Tokens = list[tuple[str, int, int]]  # token, start, end


def body(content: AnswerContent, lost: list[str]) -> str:
    """Return one file with a column of tags for each annotator."""
    people = content.answers.annotators.tolist()
    if len(people) > 1:
        lost.append(f"the names of {len(people)} annotators are not written: columns have no names")
    return _file(content, people, lost)


def bodies(content: AnswerContent, lost: list[str]) -> Iterator[str]:
    """Yield the file of every annotator."""
    for name in content.answers.annotators.tolist():
        yield _file(content, [name], lost)


def _file(content: AnswerContent, people: Sequence[str], lost: list[str]) -> str:
    lines: list[str] = []
    overlapping = 0
    for item, answers in content.by_item():
        tokens = _tokens(content, item, [mark for _, marks in answers for mark in marks])
        given = dict(answers)
        if given.keys().isdisjoint(people):
            continue
        columns = []
        for name in people:
            tags, left = _tags(tokens, given.get(name))
            overlapping += left
            columns.append(tags)
        lines.append(f"# sent_id = {_one_line(item)}")
        lines += ["\t".join(row) for row in zip([one[0] for one in tokens], *columns, strict=True)]
        lines.append("")
    if overlapping:
        lost.append(f"spans that overlap longer ones are left out: {overlapping}")
    return "\n".join(lines) + "\n"


def _tokens(content: AnswerContent, item: str, marks: Sequence[dict[str, Any]]) -> Tokens:
    """Return the tokens of a text, cut at blanks and at borders of marks."""
    written = content.texts.get(item)
    borders = {int(mark[side]) for mark in marks for side in ("start", "end")}
    if written is None:
        if content.texts:
            raise DataError(f"item {item!r} has no text")
        return [(f"token{n + 1}", n, n + 1) for n in range(max([1, *borders]))]
    if borders and max(borders) > len(written):
        raise DataError(f"item {item!r}: a span ends at {max(borders)}, its text at {len(written)}")
    tokens: Tokens = []
    for word in re.finditer(r"\S+", written):
        inner = sorted(b for b in borders if word.start() < b < word.end())
        tokens += [(written[a:b], a, b) for a, b in pairwise([word.start(), *inner, word.end()])]
    return tokens or [("-", 0, 1)]


def _tags(tokens: Tokens, marks: Sequence[dict[str, Any]] | None) -> tuple[list[str], int]:
    """Return the tags of one annotator, and how many spans have no room."""
    if marks is None:
        return ["?"] * len(tokens), 0
    tags = ["O"] * len(tokens)
    left = 0
    for mark in sorted(marks, key=lambda mark: (mark["start"] - mark["end"], mark["start"])):
        start, end = mark["start"], mark["end"]
        inside = [n for n, (_, a, b) in enumerate(tokens) if a >= start and b <= end]
        if not inside or any(tags[n] != "O" for n in inside):
            left += 1
            continue
        label = re.sub(r"\s+", "_", str(mark.get("label", "span")))
        for n in inside:
            tags[n] = f"{'B' if n == inside[0] else 'I'}-{label}"
    return tags, left


def _one_line(name: str) -> str:
    return " ".join(name.split())
