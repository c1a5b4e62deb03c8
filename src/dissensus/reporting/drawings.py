"""Disputed items drawn: everybody's marks over the image or in the text, votes, and choices.

Drawings are SVG and HTML without scripts. Names, labels and texts are escaped by `Markup.format`.
Colours are classes of the style sheet, so that they follow the theme.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from ..aggregation.rover import align
from ..answers.marks import Marks, Spans
from ..answers.masks import Masks
from ..answers.rankings import Rankings
from ..answers.sets import Sets
from ..answers.texts import Texts
from ..base.arrays import Floats
from ..pages.embedding import Picture, item_picture
from ..pages.sections import Drawing, Table
from ..pages.wording import amount, formatted, percent
from ..registry import methods
from .parts import part

if TYPE_CHECKING:
    from .report import Report

_COLOURS = 8  # classes of the style sheet
_MOST = 24  # answers drawn for an item
_CONTEXT = 60  # characters before the first and after the last mark
_LONG = 800  # characters of a text
_SLOTS = 60  # of a transcript
_SIDE = 480  # pixels of a mask's longer side, above which it is drawn coarser
_ORDERS = 4  # different rankings named for a question
_MARGIN = 0.04  # around marks, of their extent
CONSENSUS = "consensus"


Draw = Callable[["DisputedItem", str, str], Drawing | Table]  # an item, with title and words


class DisputedItem(NamedTuple):
    """An item with what is drawn of it."""

    report: Report
    item: int
    rows: Any  # answers, not too many
    consensus: int | None  # row of the consensus

    @property
    def answers(self) -> Any:
        """All answers."""
        return self.report.answers

    @property
    def agreed(self) -> Any:
        """The consensus as answers."""
        return self.report.result.truth

    @property
    def text(self) -> str | None:
        """The item's text or name of an image, if it is given."""
        return self.report.texts.get(str(self.answers.items[self.item]))

    @property
    def names(self) -> list[str]:
        """Annotators of the answers."""
        return self.answers.annotators[self.answers.annotator[self.rows]].tolist()


@part
def disputed_panels(report: Report) -> list[list[Any]]:
    """Return drawings of the most disputed items, or a table of the most disputed questions."""
    raise NotImplementedError


def _panels(report: Report, draw: Draw) -> list[list[Any]]:
    """Return a drawing or table for every item of the most disputed ones."""
    panels = []
    answers, agreed = report.answers, report.result.truth
    for item in report.doubt.most_disputed.tolist():
        first, last = int(answers.index[item]), int(answers.index[item + 1])
        start, end = agreed.index[item : item + 2].tolist()
        rows = np.arange(first, min(last, first + _MOST))
        disputed = DisputedItem(report, item, rows, start if end > start else None)
        distance = report.doubt.distance[item]
        words = f"{amount(last - first, 'answer')}, mean distance {distance:.2f}."
        if last - first > _MOST:
            words += f" The first {_MOST} are shown."
        panels.append([draw(disputed, str(answers.items[item]), words)])
    return panels


def _legend(names: Sequence[str], *, agreed: bool) -> Markup:
    """Return the names with their colours."""
    entries = [
        Markup('<li><span class="chip {}"></span><span dir="auto">{}</span></li>').format(
            _colour(position), name
        )
        for position, name in enumerate(names)
    ]
    if agreed:
        entries.append(Markup('<li><span class="chip agreed"></span>{}</li>').format(CONSENSUS))
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


def _colour(position: int) -> str:
    """Return the CSS classes of an annotator: a colour, and a dash after the last colour."""
    dash = min(position // _COLOURS, 2)
    return f"a{position % _COLOURS}" + (f" d{dash}" if dash else "")


def _picture(
    frame: Sequence[float], shapes: Iterable[Markup], picture: Picture | None, label: str
) -> Markup:
    """Return shapes in a frame of x, y, width and height, over the image if there is one."""
    x, y, width, height = map(float, frame)
    below = Markup("")
    if picture is not None:
        below = Markup('<image href="{}" width="{}" height="{}"/>').format(
            picture.url, picture.width, picture.height
        )
    rect = Markup('<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>').format(
        *map(_short, (x, y, width, height))
    )
    head = Markup(
        '<svg class="drawn" viewBox="{}" role="img" aria-label="{}" style="aspect-ratio:{}/{}">'
    ).format(" ".join(map(_short, (x, y, width, height))), label, _short(width), _short(height))
    return head + below + rect + Markup("").join(shapes) + Markup("</svg>")


def _short(value: float) -> str:
    """Return a coordinate with at most two digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _frame(low: Floats, high: Floats) -> tuple[float, float, float, float]:
    """Return x, y, width and height around corners, with a margin."""
    size = np.maximum(high - low, 1.0)
    margin = _MARGIN * size.max()
    return (*(low - margin).tolist(), *(size + 2 * margin).tolist())


def _points_in_image(disputed: DisputedItem, title: str, words: str) -> Drawing:
    """Return points of everybody, over the image or on a frame of its size, where that is known."""
    size = disputed.answers.size[disputed.item]
    frame = (0, 0, *size.tolist()) if np.isfinite(size).all() else None
    return _marks_in_image(disputed, title, words, frame)


def _marks_in_image(
    disputed: DisputedItem, title: str, words: str, of_image: Sequence[float] | None = None
) -> Drawing:
    """Return marks of everybody, over the image, on its frame, or on one of their extent."""
    answers: Marks = disputed.answers
    picture = item_picture(disputed.text, disputed.report.folder)
    layers: list[tuple[Any, int, str, str]] = []  # answers, row, classes, name
    names = disputed.names
    for position, row in enumerate(disputed.rows.tolist()):
        layers.append((answers, row, _colour(position), names[position]))
    if disputed.consensus is not None:
        layers.append((disputed.agreed, disputed.consensus, "halo", CONSENSUS))
        layers.append((disputed.agreed, disputed.consensus, "agreed", CONSENSUS))
    places = [
        source.place[source.starts[row] : source.starts[row + 1]] for source, row, _, _ in layers
    ]
    corners = answers.corners(np.vstack(places)).reshape(-1, 2)
    if picture is not None:
        corners = np.vstack([corners, [[0, 0], [picture.width, picture.height]]])
        frame: Any = (0, 0, picture.width, picture.height)
        inside = (corners >= 0).all() and (corners.max(axis=0) <= frame[2:]).all()
        frame = frame if inside else _frame(corners.min(axis=0), corners.max(axis=0))
    elif of_image is not None:
        frame = of_image
    elif len(corners):
        frame = _frame(corners.min(axis=0), corners.max(axis=0))
    else:
        return Drawing(title, f"{words} Nobody marked anything.", Markup(""))
    radius = max(frame[2], frame[3]) / 120
    shapes = []
    for (source, row, classes, name), place in zip(layers, places, strict=True):
        labels = source.classes[source.label[source.starts[row] : source.starts[row + 1]]].tolist()
        for at, label in zip(place.tolist(), labels, strict=True):
            tip = f"{name}: {label}" if label else name
            shapes.append(_shape(at, classes, tip, radius))
    if picture is None:
        (x, y, width, height) = frame
        words += f" From x {x:.0f} to {x + width:.0f}, y {y:.0f} to {y + height:.0f}."
    drawn = _picture(frame, shapes, picture, f"{answers.kind} of all annotators")
    legend = _legend(names, agreed=disputed.consensus is not None)
    return Drawing(title, words, drawn + legend)


def _shape(place: list[float], classes: str, tip: str, radius: float) -> Markup:
    """Return a box, or a circle for a point."""
    if len(place) == 4:
        return Markup(
            '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
        ).format(classes, *map(_short, place), tip)
    size = radius * (2 if classes in ("agreed", "halo") else 1)
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
        classes, *map(_short, place), _short(size), tip
    )


def _masks(disputed: DisputedItem, title: str, words: str) -> Drawing:
    """Return the contours of everybody's masks, around the pixels that anybody marked."""
    answers: Masks = disputed.answers
    masks = [answers.pixels(row) for row in disputed.rows.tolist()]
    layers = [(mask, _colour(position)) for position, mask in enumerate(masks)]
    if disputed.consensus is not None:
        agreed = disputed.agreed.pixels(disputed.consensus)
        layers += [(agreed, "halo"), (agreed, "agreed")]
    either = np.any([mask for mask, _ in layers], axis=0)
    if not either.any():
        return Drawing(title, f"{words} Nobody marked anything.", Markup(""))
    picture = item_picture(disputed.text, disputed.report.folder)
    height, width = either.shape
    rows, columns = np.flatnonzero(either.any(axis=1)), np.flatnonzero(either.any(axis=0))
    frame: Any = (0, 0, width, height)
    if picture is None:
        low = np.array([columns[0], rows[0]], dtype=float)
        frame = _frame(low, np.array([columns[-1] + 1, rows[-1] + 1], dtype=float))
    names = [*disputed.names, CONSENSUS, CONSENSUS]
    shapes = [
        Markup('<path class="{}" d="{}"><title>{}</title></path>').format(
            classes, contour(mask), names[position]
        )
        for position, (mask, classes) in enumerate(layers)
    ]
    words += f" The image has {width} × {height} pixels."
    drawn = _picture(frame, shapes, picture, "masks of all annotators")
    return Drawing(
        title, words, drawn + _legend(disputed.names, agreed=disputed.consensus is not None)
    )


def contour(mask: npt.NDArray[np.bool_]) -> str:
    """Return the border of a mask as an SVG path of straight lines; large masks are coarser.

    >>> contour(np.array([[False, True], [True, True]]))
    'M1 0H2M0 1H1M0 2H2M0 1V2M1 0V1M2 0V2'
    """
    step = -(-max(mask.shape) // _SIDE)
    inside = np.pad(mask[::step, ::step], 1)
    parts = []
    for lines, letter in ((inside, "H"), (inside.T, "V")):
        edge = lines[1:] != lines[:-1]  # (border, pixel)
        change = np.diff(np.pad(edge, ((0, 0), (1, 1))).astype(np.int8), axis=1)
        where, start = np.nonzero(change == 1)
        stop = np.nonzero(change == -1)[1]
        ends = zip((where * step).tolist(), ((start - 1) * step).tolist(), strict=True)
        for (at, begin), end in zip(ends, ((stop - 1) * step).tolist(), strict=True):
            start_point = f"{begin} {at}" if letter == "H" else f"{at} {begin}"
            parts.append(f"M{start_point}{letter}{end}")
    return "".join(parts)


def _spans(disputed: DisputedItem, title: str, words: str, *, tokens: bool) -> Drawing:
    """Return the text once for everybody, with their spans; without it, a line of positions."""
    answers: Spans = disputed.answers
    rows = [
        (name, answers, row)
        for name, row in zip(disputed.names, disputed.rows.tolist(), strict=True)
    ]
    if disputed.consensus is not None:
        rows.insert(0, (CONSENSUS, disputed.agreed, disputed.consensus))
    spans = [
        [
            (int(start), int(end), int(label))
            for (start, end), label in zip(
                source.place[source.starts[row] : source.starts[row + 1]].tolist(),
                source.label[source.starts[row] : source.starts[row + 1]].tolist(),
                strict=True,
            )
        ]
        for _, source, row in rows
    ]
    flat = [span for row_spans in spans for span in row_spans]
    if not flat:
        return Drawing(title, f"{words} Nobody marked anything.", Markup(""))
    text = disputed.text
    if text is not None:
        spans = [_characters(text, row_spans, tokens) for row_spans in spans]
        flat = [span for row_spans in spans for span in row_spans]
        low = max(min(start for start, _, _ in flat) - _CONTEXT, 0)
        high = min(max(end for _, end, _ in flat) + _CONTEXT, len(text), low + _LONG)
        lanes = [_marked_text(text, row_spans, answers, low=low, high=high) for row_spans in spans]
    else:
        last = max(end for _, end, _ in flat)
        first = min(start for start, _, _ in flat)
        lanes = [_bars(row_spans, answers, first, last) for row_spans in spans]
        words += f" Positions {first} to {last}."
    return Drawing(title, words, _lanes([name for name, _, _ in rows], lanes))


def _lanes(names: Sequence[str], lanes: Sequence[Markup]) -> Markup:
    """Return a row for every annotator; the consensus is the first."""
    rows = [
        Markup('<tr{}><th scope="row" dir="auto">{}</th><td dir="auto">{}</td></tr>').format(
            Markup(' class="agreed"') if position == 0 and name == CONSENSUS else "", name, lane
        )
        for position, (name, lane) in enumerate(zip(names, lanes, strict=True))
    ]
    return Markup('<table class="lanes"><tbody>{}</tbody></table>').format(Markup("").join(rows))


def _characters(
    text: str, spans: list[tuple[int, int, int]], tokens: bool
) -> list[tuple[int, int, int]]:
    """Return spans in characters, where they are given in tokens."""
    if not tokens:
        return [(min(a, len(text)), min(b, len(text)), label) for a, b, label in spans]
    at = [token.span() for token in re.finditer(r"\S+", text)]
    return [
        (at[start][0], at[min(end, len(at)) - 1][1], label)
        for start, end, label in spans
        if start < len(at)
    ]


def _marked_text(
    text: str, spans: list[tuple[int, int, int]], answers: Spans, *, low: int, high: int
) -> Markup:
    """Return a part of a text with spans and their labels in it."""
    inside = [(max(a, low), min(b, high), label) for a, b, label in spans if a < high and b > low]
    cuts = sorted({low, high, *(end for a, b, _ in inside for end in (a, b))})
    pieces = [Markup("…")] if low > 0 else []
    for start, stop in pairwise(cuts):
        over = [label for a, b, label in inside if a <= start and stop <= b]
        piece = Markup("{}").format(text[start:stop])
        if over:
            piece = Markup('<mark class="k{}">{}</mark>').format(over[-1] % _COLOURS, piece)
        ended = [answers.classes[label] for a, b, label in inside if b == stop]
        names = [Markup("<sub>{}</sub>").format(name) for name in ended if name]
        pieces.append(piece + Markup("").join(names))
    pieces += [Markup("…")] if high < len(text) else []
    return Markup("").join(pieces)


def _bars(spans: list[tuple[int, int, int]], answers: Spans, first: int, last: int) -> Markup:
    """Return spans as bars on a line of positions."""
    width = max(last - first, 1)
    bars = []
    for start, end, label in spans:
        name = f"{answers.classes[label]} {start}–{end}".strip()
        bars.append(
            Markup(
                '<span class="bar-on-line k{}" style="left:{}%;width:{}%" title="{}">{}</span>'
            ).format(
                label % _COLOURS,
                _short(100 * (start - first) / width),
                _short(100 * (end - start) / width),
                name,
                name,
            )
        )
    return Markup('<span class="line">{}</span>').format(Markup("").join(bars))


def _texts(disputed: DisputedItem, title: str, words: str) -> Drawing:
    """Return transcripts word by word with the votes in every slot, other texts as they are."""
    answers: Texts = disputed.answers
    agreed = "" if disputed.consensus is None else str(disputed.agreed.text[disputed.consensus])
    if not disputed.report.result.method.startswith("rover"):
        names = [CONSENSUS, *disputed.names]
        lanes = [
            Markup("{}").format(transcript)
            for transcript in (agreed, *answers.text[disputed.rows].tolist())
        ]
        return Drawing(title, words, _lanes(names, lanes))
    only = answers.part(disputed.item, disputed.item + 1)
    batch = next(iter(align(only)))
    tokens = only.tokens
    slots = batch.slots[0, : min(int(batch.length[0]), _SLOTS)]  # (slot, answer)
    spelled, word = np.append(tokens.spellings, ""), np.append(tokens.word, -1)
    spelling = np.append(tokens.spelling, len(spelled) - 1)
    words_given = word[slots]
    weight = disputed.report.result.params["weight"][only.annotator[batch.answer[0]]]
    share = np.array([[weight[row == candidate].sum() for candidate in row] for row in words_given])
    share = share.reshape(words_given.shape) / weight.sum()
    method: Any = methods["texts"].create(disputed.report.result.method)
    counted = np.where(words_given < 0, method.empty * share, share)
    winner = counted.argmax(axis=1) if len(words_given) else np.zeros(0, dtype=int)
    names = only.annotators[only.annotator[batch.answer[0]]].tolist()
    body = []
    for position, name in enumerate(names[:_MOST]):
        cells = [
            Markup("<td{}>{}</td>").format(
                Markup(' class="other"') if row[position] != row[best] else "",
                spelled[spelling[slot[position]]] or "–",
            )
            for slot, row, best in zip(slots, words_given, winner, strict=True)
        ]
        body.append(
            Markup('<tr><th scope="row" dir="auto">{}</th>{}</tr>').format(
                name, Markup("").join(cells)
            )
        )
    votes = Markup("").join(
        Markup("<td>{}</td>").format(percent(float(weights[best])))
        for weights, best in zip(share, winner, strict=True)
    )
    if int(batch.length[0]) > _SLOTS:
        words += f" The first {_SLOTS} of {batch.length[0]} slots are shown."
    table = Markup(
        '<p class="agreed-text" dir="auto"><span class="dim">{}:</span> {}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="votes by word">'
        '<table class="slots"><tbody>{}<tr class="votes"><th scope="row">share of votes</th>{}</tr>'
        "</tbody></table></div>"
    ).format(CONSENSUS, agreed or "(empty)", Markup("").join(body), votes)
    return Drawing(title, words, table)


def _options(disputed: DisputedItem, title: str, words: str) -> Table:
    """Return options and who chose them, with the probability of each."""
    answers: Sets = disputed.answers
    values = answers.values()
    option_sets = [set(values[row]) for row in disputed.rows.tolist()]
    table = disputed.report.result.items
    rows = []
    for name in answers.options.tolist():
        yes = table[f"p:{name}"][disputed.item] if f"p:{name}" in table else np.nan
        ticks = ["✓" if name in options else "" for options in option_sets]
        if any(ticks) or yes > 0.5:
            rows.append((name, formatted(float(yes), percent), *ticks))
    rows.append(("(none)", "", *("✓" if not options else "" for options in option_sets)))
    return Table(f"{title}: {words}", ["option", "probability", *disputed.names], rows)


def _questions(report: Report) -> Table:
    """Return the most disputed questions with the orders that were given."""
    answers: Rankings = report.answers
    words = answers.as_table()[0]["ranking"]
    rows = []
    for item in report.doubt.most_disputed.tolist():
        rankings = words[answers.index[item] : answers.index[item + 1]].tolist()
        common = Counter(map(_in_order, rankings)).most_common()
        orders = [f"{order} ({count})" for order, count in common[:_ORDERS]]
        orders += [f"{amount(len(common) - _ORDERS, 'other order')}"] * (len(common) > _ORDERS)
        name, distance = str(answers.items[item]), f"{report.doubt.distance[item]:.2f}"
        rows.append((name, "; ".join(orders), str(len(rankings)), distance))
    heads = ["question", "orders (how many gave them)", "answers", "mean distance"]
    return Table("The most disputed questions", heads, rows, 2)


def _in_order(words: str) -> str:
    """Return a ranking whose tied things are in alphabetical order, so that equal ones are equal.

    >>> _in_order("b = a > c")
    'a = b > c'
    """
    return " > ".join(" = ".join(sorted(group.split(" = "))) for group in words.split(" > "))


def counts_tokens(report: Report) -> bool:
    """Return whether spans count tokens: every one ends within the tokens of its text."""
    answers: Spans = report.answers
    names = answers.items.tolist()
    size = np.array([len(report.texts.get(name, "").split()) for name in names])
    has_text = np.array([name in report.texts for name in names], dtype=bool)
    marked = has_text[answers.mark_item]
    end = answers.place[marked, 1]
    return bool(len(end)) and bool((end <= size[answers.mark_item][marked]).all())


@disputed_panels.for_kind("spans")
def _panels_of_spans(report: Report) -> list[list[Any]]:
    return _panels(report, partial(_spans, tokens=counts_tokens(report)))


@disputed_panels.for_kind("boxes")
def _panels_of_boxes(report: Report) -> list[list[Any]]:
    return _panels(report, _marks_in_image)


@disputed_panels.for_kind("points")
def _panels_of_points(report: Report) -> list[list[Any]]:
    return _panels(report, _points_in_image)


@disputed_panels.for_kind("masks")
def _panels_of_masks(report: Report) -> list[list[Any]]:
    return _panels(report, _masks)


@disputed_panels.for_kind("texts")
def _panels_of_texts(report: Report) -> list[list[Any]]:
    return _panels(report, _texts)


@disputed_panels.for_kind("sets")
def _panels_of_sets(report: Report) -> list[list[Any]]:
    return _panels(report, _options)


@disputed_panels.for_kind("rankings")
def _panels_of_rankings(report: Report) -> list[list[Any]]:
    return [[_questions(report)]]
