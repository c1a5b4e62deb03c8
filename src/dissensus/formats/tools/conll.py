"""CoNLL: a token on each line with its tag, an empty line after each sentence.

The token is the first column and the tag the last, `B-PER`, `I-PER` or `O`; BIO, IOB1, BILOU and
BIOES are read alike. Several columns of tags are annotators, `?` where one gave none. A file for
each annotator, or a folder with their documents, is aligned by characters: tokens may be cut
differently, the text must be the same. An item is a sentence of the first file, and spans are
characters of its tokens with one blank between them; `# sent_id = NAME` before a sentence names it.
A sentence without tags is an empty answer.

Written, tags are BIO, and a line `# sent_id = NAME` before a sentence names its item. Texts are cut
at blanks and at the borders of spans; without texts, spans are taken to count tokens, which are
then numbered. A file has the items of its annotators; where one of several did not answer, `?`
stands instead of tags. Of overlapping spans the longest is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ...errors import DataError
from ..annotator_files import AnnotatorFile, of_one_file, text_of
from ..collecting import About, Collected, span
from ..content import AnswerContent
from ..format import AnswerTarget, Export, Format, Head
from ..sources import Source

_TAG = re.compile(r"O|[BILUSEM]-\S+")
_NONE = ("?", "_")  # no tag by this annotator
_BEGINS, _ENDS = "BUS", "LUSE"  # prefixes of a token that begins or ends a span
_COMMENT = re.compile(r"#( |$)|-DOCSTART-")
_NAMED = re.compile(r"# sent_id = (.*\S)")
_LEAST = 0.99  # share of lines whose last column is a tag

Marks = list[tuple[int, int, str]]  # start, end and label, in characters without blanks
Tokens = list[tuple[str, int, int]]  # token, start, end


class Sentence(NamedTuple):
    """A sentence, with the marks of every column of tags; nothing where it has no tags."""

    tokens: tuple[str, ...]
    marks: tuple[Marks | None, ...]
    name: str = ""  # where a line `# sent_id = NAME` is before it

    @property
    def letters(self) -> str:
        """The characters of all tokens."""
        return "".join(self.tokens)


def recognises(head: Head) -> bool:
    """Return whether lines are a token, perhaps further columns, and a tag such as B-PER or O."""
    rows = [_fields(line) for line in head.raw if line.strip() and not _COMMENT.match(line)]
    if head.shape != "table" or len(rows) < 2 or any(len(row) < 2 for row in rows):
        return False
    fits = [_TAG.fullmatch(row[-1]) is not None for row in rows]
    none = [row[-1] in _NONE for row in rows]
    return (fits[0] or none[0]) and any(fits) and sum(fits) + sum(none) >= _LEAST * len(rows)


def read_files(files: Sequence[AnnotatorFile]) -> Export:
    """Return the spans of all annotators."""
    collection = Collected()
    collection.of_kind("spans", "spans")
    documents: dict[str, list[AnnotatorFile]] = {}
    for file in files:
        documents.setdefault(file.document, []).append(file)
    for document, of_document in documents.items():
        reference: list[Sentence] = []  # the sentences of the first file, and others' own
        positions: dict[tuple[str, ...], int] = {}  # name, or letters and how often → sentence
        for file in of_document:
            sentences = _sentences(collection, file.source)
            if reference and _letters(sentences) == _letters(reference):
                sentences = _cut_as(reference, sentences, collection.left)
            times: Counter[str] = Counter()
            for sentence in sentences:
                times[sentence.letters] += 1
                key = sentence.letters, str(times[sentence.letters])
                at = positions.setdefault(
                    (sentence.name,) if sentence.name else key, len(positions)
                )
                if at == len(reference):
                    reference.append(sentence)
                if reference[at].letters != sentence.letters:
                    raise file.source.fail(f"sentence {sentence.name!r} has another text elsewhere")
                numbered = f"{document}:{at + 1}" if document else str(at + 1)
                name = sentence.name or numbered
                collection.items.name(name, " ".join(reference[at].tokens))
                tokens = reference[at].tokens
                _add(collection, name, sentence=sentence, tokens=tokens, by=file.annotator)
    return collection.export_of_files()


def _add(
    collection: Collected, item: str, sentence: Sentence, tokens: Sequence[str], by: str
) -> None:
    """Add the marks of every column as characters of tokens with one blank between them."""
    position = [at for at, letter in enumerate(" ".join(tokens)) if letter != " "]
    for column, marks in enumerate(sentence.marks, 1):
        if marks is None:
            continue
        annotator = by if len(sentence.marks) == 1 else str(column)
        collection.submitted[item, annotator] = About()
        for start, end, label in marks:
            mark = span(position[start], position[end - 1] + 1, label)
            collection.of_kind("spans", "spans").append(item, annotator, mark)


def _letters(sentences: Sequence[Sentence]) -> str:
    return "".join(sentence.letters for sentence in sentences)


def _sentences(collection: Collected, source: Source) -> list[Sentence]:
    """Return the sentences of a file."""
    blocks: list[list[list[str]]] = [[]]
    names: dict[int, str] = {}  # block → name
    width = 0
    for number, line in enumerate(text_of(source).split("\n"), 1):
        fields = _fields(line)
        if not fields or _COMMENT.match(line):
            if blocks[-1]:
                blocks.append([])
            if match := _NAMED.match(line):
                names[len(blocks) - 1] = match[1]
            continue
        width = width or len(fields)
        if len(fields) != width or width < 2:
            raise source.fail(
                f"line {number}: {len(fields)} columns, but the first line has {width}"
            )
        blocks[-1].append(fields)
    rows = [row for block in blocks for row in block]
    if not rows:
        return []
    columns = _tag_columns(rows)
    skipped = width - 1 - len(columns)
    if skipped:
        collection.left["columns between token and tag"] = skipped
    return [
        _sentence(block, columns, names.get(number, ""))
        for number, block in enumerate(blocks)
        if block
    ]


def _tag_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the last columns that hold tags of the same labels: one for each annotator."""
    last = len(rows[0]) - 1
    types = [{row[at].partition("-")[2] for row in rows} - {""} for at in range(last + 1)]
    first = last
    while first > 1:
        tags = {row[first - 1] for row in rows}
        alike = not types[first - 1] or not types[last] or types[first - 1] & types[last]
        if not alike or not all(_TAG.fullmatch(tag) or tag in _NONE for tag in tags):
            break
        first -= 1
    return list(range(first, last + 1))


def _sentence(block: Sequence[Sequence[str]], columns: Sequence[int], name: str) -> Sentence:
    tokens = tuple(row[0] for row in block)
    bounds = [0, *accumulate(map(len, tokens))]
    marks = tuple(_marks([row[at] for row in block], bounds) for at in columns)
    return Sentence(tokens, marks, name)


def _marks(tags: Sequence[str], bounds: Sequence[int]) -> Marks | None:
    """Return the spans that tags stand for.

    A span begins at a tag that says so, after `O`, after another label, or after a tag that ends
    one; so the same reading fits BIO, IOB1, BILOU and BIOES.

    >>> _marks(["I-PER", "I-PER", "B-PER", "O", "U-LOC"], [0, 2, 5, 6, 7, 9])
    [(0, 5, 'PER'), (5, 6, 'PER'), (7, 9, 'LOC')]
    """
    if all(tag in _NONE for tag in tags):
        return None
    marks: Marks = []
    open_label: str | None = None
    for tag, (start, end) in zip(tags, pairwise(bounds), strict=True):
        if tag == "O" or tag in _NONE:
            open_label = None
            continue
        prefix, label = (tag[0], tag[2:]) if _TAG.fullmatch(tag) else ("I", tag)
        if prefix in _BEGINS or open_label != label:
            marks.append((start, end, label))
        else:
            marks[-1] = (marks[-1][0], end, label)
        open_label = None if prefix in _ENDS else label
    return marks


def _cut_as(
    reference: Sequence[Sentence], sentences: Sequence[Sentence], left_out: Counter[str]
) -> list[Sentence]:
    """Return the marks of sentences in the sentences of another cut of the same text."""
    bounds = [0, *accumulate(len(sentence.letters) for sentence in reference)]
    n_columns = len(sentences[0].marks)
    cut_marks: list[list[Marks | None]] = [[None] * n_columns for _ in reference]
    begin = 0
    for sentence in sentences:
        stop = begin + len(sentence.letters)
        first, last = bisect_right(bounds, begin) - 1, bisect_right(bounds, stop - 1) - 1
        for column, marks in enumerate(sentence.marks):
            if marks is None:
                continue
            for at in range(first, last + 1):
                cut_marks[at][column] = cut_marks[at][column] or []
            for start, end, label in marks:
                at = bisect_right(bounds, begin + start) - 1
                cut_at = min(begin + end, bounds[at + 1])
                left_out["ends of spans that reach into the next sentence"] += cut_at < begin + end
                earlier = cut_marks[at][column] or []
                cut_marks[at][column] = [
                    *earlier,
                    (begin + start - bounds[at], cut_at - bounds[at], label),
                ]
        begin = stop
    return [
        Sentence(sentence.tokens, tuple(marks), sentence.name)
        for sentence, marks in zip(reference, cut_marks, strict=True)
    ]


def _fields(line: str) -> list[str]:
    """Return the columns of a line; other blanks than these may be part of a token."""
    return [field for field in re.split(r"[ \t]+", line) if field]


def write(content: AnswerContent, lost: list[str]) -> str:
    """Return one file with a column of tags for each annotator."""
    people = content.answers.annotators.tolist()
    if len(people) > 1:
        lost.append(f"the names of {len(people)} annotators are not written: columns have no names")
    return _file(content, people, lost)


def write_each(content: AnswerContent, lost: list[str]) -> Iterator[str]:
    """Yield the file of every annotator."""
    for name in content.answers.annotators.tolist():
        yield _file(content, [name], lost)


def _file(content: AnswerContent, people: Sequence[str], lost: list[str]) -> str:
    lines: list[str] = []
    overlapping = 0
    for item, answers in content.by_item():
        tokens = _tokens(content, item, [mark for _, marks in answers for mark in marks])
        by_annotator = dict(answers)
        if by_annotator.keys().isdisjoint(people):
            continue
        columns = []
        for name in people:
            tags, n_lost = _tags(tokens, by_annotator.get(name))
            overlapping += n_lost
            columns.append(tags)
        lines.append(f"# sent_id = {_one_line(item)}")
        lines += [
            "\t".join(row) for row in zip([token[0] for token in tokens], *columns, strict=True)
        ]
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
    n_lost = 0
    for mark in sorted(marks, key=lambda mark: (mark["start"] - mark["end"], mark["start"])):
        start, end = mark["start"], mark["end"]
        inside = [n for n, (_, a, b) in enumerate(tokens) if a >= start and b <= end]
        if not inside or any(tags[n] != "O" for n in inside):
            n_lost += 1
            continue
        label = re.sub(r"\s+", "_", str(mark.get("label", "span")))
        for n in inside:
            tags[n] = f"{'B' if n == inside[0] else 'I'}-{label}"
    return tags, n_lost


def _one_line(name: str) -> str:
    return " ".join(name.split())


FORMAT = Format(
    "conll",
    recognises=recognises,
    read=of_one_file(read_files),
    read_files=read_files,
    kinds=("spans",),
    answers=AnswerTarget(
        summary="tokens with tags: a column for each annotator, or a folder with a file of each",
        kinds=("spans",),
        ending=".conll",
        write=write,
        write_each=write_each,
    ),
)
