"""The scale of labels: classes, classes in order, or numbers, from their names and disagreements.

Labels are numbers if all are numbers and some are not whole or more than 20 are different. They are
an ordinal scale if their names are a known sequence (never … always), or if they are whole numbers
in a row and disagreements respect their order. With o[k, l] the pairs of labels k ≠ l on an item
(an item with n labels counts n times), e[k, l] their number expected from class frequencies, and
|k - l| a distance in steps,

    r = (Σ o |k - l| / Σ o) / (Σ e |k - l| / Σ e)

is 1 where the order does not matter. It must be at most 0.95, two standard errors included, and
smaller than under nearly all other orders of the classes. Three or four classes have few orders, so
there neighbours must also be confused more than any pair that is farther apart (of three classes,
twice as much), relative to e. Codes of unordered classes pass by accident at a rate of about 3 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from ..answers.annotations import NUMERIC, Annotations, Scale
from ..base.arrays import Floats
from ..base.names import NUMBER, Names, as_values, text
from ..errors import Note
from .long_tables import numbers_from

if TYPE_CHECKING:
    from .format import Kind
    from .reading import Reading

_MOST_CLASSES = 20
_LARGEST_RATIO = 0.95  # r
_BETTER_ORDERS = 0.02  # share of the other orders that may have a smaller r
_FEW = 4  # classes with few orders
_FEWEST = 20  # disagreements that can show an order
_ALL_ORDERS = 6  # classes up to which all orders are tried
_N_ORDERS = 2000
_BLOCK = 2**18  # items
_SEQUENCES = (
    "strongly disagree, disagree, somewhat disagree, slightly disagree, neutral, undecided, "
    "neither agree nor disagree, slightly agree, somewhat agree, agree, strongly agree",
    "never, rarely, seldom, occasionally, sometimes, often, usually, always",
    "very bad, very poor, bad, poor, fair, acceptable, average, good, very good, excellent",
    "very negative, negative, neutral, positive, very positive",
    "very low, low, medium, moderate, high, very high",
    "none, mild, moderate, severe",
    "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
    "very unlikely, unlikely, neutral, likely, very likely",
    "not at all, slightly, somewhat, moderately, very, extremely",
)


_SCALES: dict[Kind, Scale] = {"sets": "nominal", "ordinal": "ordinal", "numeric": "interval"}
_KINDS: dict[Scale, Kind] = {
    "nominal": "single",
    "ordinal": "ordinal",
    "interval": "numeric",
    "ratio": "numeric",
}


class LabelKind(NamedTuple):
    """Whether labels are classes or numbers, and why."""

    kind: Literal["nominal", "numeric"]
    reason: str

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers."""
        return self.kind == "numeric"


class LabelScale(NamedTuple):
    """The scale of labels, why, and the order of classes if it is not that of their names."""

    scale: Scale
    reason: str
    classes: tuple[str, ...] | None = None


def kind_of_labels(labels: Iterable[Any]) -> LabelKind:
    """Return whether a column holds numbers or classes, which may be ordered.

    Labels are numeric if all are numbers and some are not whole or more than 20 are different.

    >>> kind_of_labels(["1", "2.5"])
    LabelKind(kind='numeric', reason='all are numbers, and 2.5 is not a whole one')
    >>> kind_of_labels([1, 2, 2]).reason
    '2 whole numbers, no more than 20, are taken for classes'
    """
    present = (label for label in labels if label is not None and label == label)
    texts = (label if isinstance(label, str) else text(label) for label in present)
    names = [name for name in dict.fromkeys(map(str.strip, texts)) if name]
    if not names:
        return LabelKind("nominal", "there are no labels")
    word = next((name for name in names if not re.match(NUMBER, name)), None)
    if word is not None:
        return LabelKind("nominal", f"{word!r} is not a number")
    broken = next((name for name in names if not float(name).is_integer()), None)
    if broken is not None:
        return LabelKind("numeric", f"all are numbers, and {broken} is not a whole one")
    count = len({float(name) for name in names})
    if count > _MOST_CLASSES:
        return LabelKind("numeric", f"{count} whole numbers are more than {_MOST_CLASSES} classes")
    return LabelKind(
        "nominal", f"{count} whole numbers, no more than {_MOST_CLASSES}, are taken for classes"
    )


def scale_of_labels(annotations: Annotations) -> LabelScale:
    """Return the scale that the names and disagreements of labels show."""
    kind, reason = kind_of_labels(annotations.classes.tolist())
    if kind == "numeric":
        return LabelScale("interval", reason)
    sequence = _known_sequence(annotations.classes)
    if sequence is not None:
        return LabelScale("ordinal", "their names are a known sequence", sequence)
    if not in_a_row(annotations.classes):
        return LabelScale("nominal", reason)
    pairs = np.zeros((annotations.n_classes, annotations.n_classes))
    bounds = [*range(0, annotations.n_items, _BLOCK), annotations.n_items]
    for part in annotations.parts(list(pairwise(bounds))):
        pairs += pair_counts(part.votes())
    return ordered_by(pairs)


def in_a_row(classes: Names) -> bool:
    """Return whether classes are whole numbers in equal steps, of which at most half are missing.

    >>> in_a_row(np.array(["1", "2", "4"])), in_a_row(np.array(["1", "2", "30"]))
    (True, False)
    """
    value = as_values(classes)
    if value is None or not 2 < len(value) <= _MOST_CLASSES or (value % 1).any():
        return False
    steps = np.diff(np.sort(value))
    if steps.max() >= 2**63:
        return False
    steps = steps.astype(np.int64)
    return bool(steps.sum() / np.gcd.reduce(steps) + 1 <= 2 * len(value))


def pair_counts(votes: Floats) -> Floats:
    """Return the pairs of labels on items, an item with n labels counting n times: (class, class).

    The votes are (item, class).
    """
    size = votes.sum(axis=1)
    votes = votes[size > 1]
    weighted = votes / (size[size > 1] - 1)[:, None]
    return weighted.T @ votes - np.diag(weighted.sum(axis=0))


def ordered_by(pairs: Floats) -> LabelScale:
    """Return whether pairs of labels, of classes in their order, show that order."""
    is_used = pairs.sum(axis=1) > 0
    pairs = pairs[np.ix_(is_used, is_used)]
    count, size = pairs.sum(axis=1), len(pairs)
    if size < 3:
        return LabelScale("nominal", "fewer than three classes are used on items with two labels")
    off_diagonal = ~np.eye(size, dtype=bool)
    disagreements = pairs[off_diagonal].sum() / 2
    if disagreements < _FEWEST:
        return LabelScale("nominal", f"{disagreements:.0f} disagreements are too few for an order")
    observed, expected = pairs * off_diagonal, np.outer(count, count) * off_diagonal
    observed, expected = observed / observed.sum(), expected / expected.sum()
    position = _positions(size)
    steps = np.abs(position[:, :, None] - position[:, None, :])  # (order, class, class)
    by_chance = (steps * expected).sum(axis=(1, 2))
    ratio = (steps * observed).sum(axis=(1, 2)) / by_chance
    spread = (steps[0] ** 2 * observed).sum() - (steps[0] * observed).sum() ** 2
    error = np.sqrt(max(spread, 0) / disagreements) / by_chance[0]
    if ratio[0] + 2 * error > _LARGEST_RATIO:
        return LabelScale("nominal", "disagreements do not show an order of these numbers")
    lift = np.divide(observed, expected, out=np.zeros_like(observed), where=off_diagonal)
    falls = all(
        lift[steps[0] == step].min() > (2 if size == 3 else 1) * lift[steps[0] == step + 1].max()
        for step in range(1, size - 1)
    )
    better = (ratio < ratio[0] - 1e-9).mean()
    if better > _BETTER_ORDERS or (size <= _FEW and not falls):
        return LabelScale("nominal", "disagreements fit other orders of these numbers better")
    return LabelScale("ordinal", f"disagreements are {1 - ratio[0]:.0%} closer than by chance")


def _known_sequence(classes: Names) -> tuple[str, ...] | None:
    """Return classes in order if they are part of a known sequence."""
    plain = {re.sub(r"[\s_-]+", " ", name.strip().casefold()): name for name in classes.tolist()}
    if len(plain) < 3:
        return None
    for sequence in (line.split(", ") for line in _SEQUENCES):
        if plain.keys() <= set(sequence):
            return tuple(plain[name] for name in sequence if name in plain)
    return None


def _positions(size: int) -> Floats:
    """Return positions of classes under all orders, or random ones; first as they are."""
    if size <= _ALL_ORDERS:
        orders = [order for order in permutations(range(size)) if order[0] < order[-1]]
        return np.argsort(orders, axis=1).astype(float)
    rng = np.random.default_rng(0)
    return np.stack([np.arange(size), *(rng.permutation(size) for _ in range(_N_ORDERS))]) * 1.0


def with_scale(
    reading: Reading, scale: str = "auto", *, reorder: bool = True, source: Any = None
) -> Reading:
    """Return a reading whose labels have a scale; `auto` detects it, with a note.

    Names that are a known sequence are put in order, if `reorder`. On an interval or ratio scale
    labels are numbers; one that is none is an error that names its line of the source.
    """
    reading = _scaled(reading, scale, reorder=reorder)
    if reading.annotations.scale not in NUMERIC:
        return reading
    return replace(reading, answers=numbers_from(reading.annotations, source))


def _scaled(reading: Reading, scale: str, *, reorder: bool) -> Reading:
    annotations = reading.annotations
    if scale != "auto":
        annotations = annotations.with_scale(cast(Scale, scale))
        kind = _KINDS[annotations.scale] if reading.kind != "sets" else reading.kind
        return replace(reading, answers=annotations, kind=kind, reason="as requested")
    if reading.kind in _SCALES:
        labels = LabelScale(_SCALES[reading.kind], f"the {reading.format} file declares it")
    elif reading.format == "folder" and annotations.scale != "nominal":
        labels = LabelScale(annotations.scale, "the metadata of the folder say so")
    elif reading.format == "folder":
        labels = LabelScale("nominal", "the labels of a data set folder are class numbers")
    else:
        labels = scale_of_labels(annotations)
    notes = reading.notes
    if labels.scale != "nominal":
        if labels.classes is not None and reorder:
            annotations = annotations.recode(labels.classes)
        annotations = annotations.with_scale(labels.scale)
        ends = " to ".join(annotations.classes[[0, -1]].tolist())
        scale_name = "an ordinal scale" if labels.scale == "ordinal" else "numbers"
        sentence = f"labels {ends} are taken for {scale_name}: {labels.reason}"
        notes += (Note(sentence, remedy="makes them classes", scale="nominal"),)
    return replace(reading, answers=annotations, notes=notes, reason=labels.reason)
