"""Agreement of annotators, side by side in several measures and with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._names import as_names
from .._relation import Floats
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..errors import DataError, OptionError
from ._joint import Panel
from ._measures import Measure, find_measure
from ._notes import notes_on
from .differences import LEVELS, Wish
from .intervals import IntervalKind, blocks, check_interval, draws, interval_of, jackknife_error
from .options import split_options
from .result import Agreement, AnnotatorAgreement, ClassAgreement, Estimate, ItemAgreement
from .shares import agreement_of_items, agreement_with_others
from .words import in_words

__all__ = ["USUAL", "By", "How", "agree", "as_classes", "estimated"]

USUAL = ("percent", "alpha", "fleiss", "ac1")

By = Literal["item", "annotator", "class"]


class How(NamedTuple):
    """How intervals are made."""

    resamples: int
    confidence: float
    interval: str
    seed: int
    progress: Callable[[int, int], None]


def agree(
    annotations: Annotations | Numbers,
    measures: Sequence[str] | str | None = None,
    *,
    level: Wish | None = None,
    weights: Wish | None = None,
    by: By | None = None,
    multiple: bool = False,
    mark: str = "|",
    min_overlap: int = 1,
    resamples: int = 1000,
    confidence: float = 0.95,
    interval: IntervalKind = "percentile",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Agreement:
    """Return how much annotators agree.

    Parameters
    ----------
    annotations
        Annotations, or numbers.
    measures
        Names of measures; by default percent, alpha, Fleiss' kappa and AC1, for numbers alpha.
    level
        What labels are: nominal, ordinal, interval, ratio, or a matrix of differences.
        Annotations are nominal, numbers interval, unless told otherwise.
    weights
        Weights of measures other than alpha, by name or as a matrix; by default those of the level.
    by
        Also break down: every `class` against the rest, every `annotator` (what would be without
        them), every `item`.
    multiple
        Labels name several options with `mark` between them: each is a question of its own.
    min_overlap
        Common items below which a pair of annotators does not count, for cohen and scott.
    resamples, confidence, interval, seed
        Draws of items for intervals, what these cover, percentile or bca, and what is random.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[1, 1, 1], [2, 2, 1], [2, 2, 2], [1, 1, 1], [1, 2, 2]])
    >>> found = agree(annotations, ["percent", "alpha"], resamples=0)
    >>> [(one.measure, round(one.value, 3)) for one in found.estimates], found.word
    ([('percent', 0.733), ('alpha', 0.5)], 'moderate')
    """
    check_interval(resamples, confidence, interval)
    if by not in (None, "item", "annotator", "class"):
        raise OptionError(f"by = {by!r}, but it must be item, annotator or class")
    if by is not None and multiple:
        raise OptionError("several options are already broken down: leave out `by`")
    if level is None:
        level = "interval" if isinstance(annotations, Numbers) else "nominal"
    if isinstance(level, str) and level not in (*LEVELS, "circular", "bipolar"):
        raise OptionError(f"no level {level!r}; there are {', '.join(LEVELS)}, circular, bipolar")
    usual = ("alpha",) if isinstance(annotations, Numbers) else USUAL
    names = (measures,) if isinstance(measures, str) else tuple(measures or usual)
    chosen = list({one.name: one for one in map(find_measure, names)}.values())
    if isinstance(annotations, Numbers):
        annotations = as_classes(annotations)
    if not len(annotations):
        raise DataError("there are no labels, so nobody can agree")
    how = How(resamples, confidence, interval, seed, progress or (lambda _done, _all: None))
    parts: Sequence[ClassAgreement | AnnotatorAgreement | ItemAgreement] = ()
    if multiple:
        options = split_options(annotations, mark)
        if not options:
            raise DataError("no label names an option")
        panels = [
            Panel(one, chosen, min_overlap=min_overlap, by_item=True) for one in options.values()
        ]
        estimates, each = estimated(panels, how)
        counts = [int((one.label == 1).sum()) for one in options.values()]
        parts = list(map(ClassAgreement, options, counts, each))
    else:
        panel = Panel(annotations, chosen, level=level, weights=weights, min_overlap=min_overlap)
        panels = [panel]
        estimates = estimated(panels, how)[0]
    if by == "class":
        parts = _by_class(annotations, chosen, how)
    elif by == "annotator":
        parts = _by_annotator(annotations, panel)
    elif by == "item":
        parts = _by_item(annotations, panel)
    value = {one.measure: one.value for one in estimates}
    told = [value[name] for name in ("alpha", *value) if name in value and name != "percent"]
    return Agreement(
        estimates=estimates,
        by="option" if multiple else by,
        parts=tuple(parts),
        level=level if isinstance(level, str) else "given differences",
        weights=weights if isinstance(weights, str) or weights is None else "given weights",
        n_items=annotations.n_items,
        n_annotators=annotations.n_annotators,
        n_labels=len(annotations),
        n_paired=int((annotations.labels_per_item > 1).sum()),
        resamples=resamples,
        confidence=confidence,
        interval=interval,
        word=in_words(told[0]) if told else "",
        notes=notes_on(annotations, estimates, level, weights, panels[0], min_overlap),
    )


def as_classes(numbers: Numbers) -> Annotations:
    """Return numbers as annotations whose classes are the different numbers, in order."""
    values, label = np.unique(numbers.value, return_inverse=True)
    return Annotations(
        index=numbers.index,
        annotator=numbers.annotator,
        label=label.astype(np.min_scalar_type(max(len(values) - 1, 0))),
        items=numbers.items,
        annotators=numbers.annotators,
        classes=as_names(values.tolist()),
    )


def estimated(
    panels: Sequence[Panel], how: How
) -> tuple[tuple[Estimate, ...], list[tuple[Estimate, ...]]]:
    """Return the mean over panels and each of them; the panels share the items that are drawn."""
    times = panels[0].times
    value = np.stack([panel.values for panel in panels])  # (panel, measure)
    pieces, done, pairs = [], 0, _draws_pairs(panels)
    for weights in draws(times, how.resamples, how.seed):
        pieces.append(np.stack([panel.under(weights, pairs=pairs) for panel in panels]))
        done += len(weights)
        how.progress(done, how.resamples)
    drawn = np.concatenate(pieces, axis=2) if pieces else np.empty((*value.shape, 0))
    error = np.stack([panel.errors() for panel in panels])
    cheap = [not one.by_pairs for one in panels[0].chosen]
    wanted = how.interval == "bca" or (np.isnan(error) & cheap).any()
    left_out = np.full((*value.shape, 0), np.nan)  # (panel, measure, block)
    if wanted and (how.interval == "bca" or any(cheap)):
        left = blocks(times, how.seed)
        left_out = np.stack([panel.under(left, pairs=pairs) for panel in panels])
    chosen = panels[0].chosen
    each = [
        _estimates(chosen, *one, how) for one in zip(value, drawn, error, left_out, strict=True)
    ]
    if len(panels) == 1:
        return each[0], each
    means = [_mean(one) for one in (value, drawn, left_out)]
    nothing = np.full(len(chosen), np.nan)
    return _estimates(chosen, means[0], means[1], nothing, means[2], how), each


def _draws_pairs(panels: Sequence[Panel]) -> bool:
    """Return whether measures of pairs are drawn: only where there is one pair.

    A mean over pairs with few common items falls in every draw, because items come twice; the
    quantiles of the draws may then leave out the value itself.
    """
    return all(not panel.by_pairs or len(panel.overlap) < 2 for panel in panels)


def _estimates(
    chosen: Sequence[Measure],
    value: Floats,  # (measure)
    drawn: Floats,  # (measure, draw)
    error: Floats,  # (measure)
    left_out: Floats,  # (measure, block)
    how: How,
) -> tuple[Estimate, ...]:
    out = []
    for position, one in enumerate(chosen):
        middle, known = float(value[position]), float(error[position])
        if math.isnan(known) and not math.isnan(middle):
            known = jackknife_error(left_out[position])
        if math.isnan(known) and (~np.isnan(drawn[position])).sum() > 1:
            known = float(np.nanstd(drawn[position], ddof=1))
        if one.by_pairs and drawn.shape[1] and np.isnan(drawn[position]).all():
            low, high = middle + known * ndtri([0.5 - how.confidence / 2, 0.5 + how.confidence / 2])
            out.append(Estimate(one.name, middle, float(low), min(float(high), 1.0), known, 0))
            continue
        corrected = left_out[position] if how.interval == "bca" else None
        low, high, dropped = interval_of(middle, drawn[position], how.confidence, corrected)
        out.append(Estimate(one.name, middle, low, high, known, dropped))
    return tuple(out)


def _mean(values: Floats) -> Floats:
    """Return the mean over panels that have a value; NaN where none has."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0).sum(axis=0), known.sum(axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _by_class(
    annotations: Annotations, chosen: Sequence[Measure], how: How
) -> list[ClassAgreement]:
    """Return every class that somebody used against the rest."""
    count = np.bincount(annotations.label, minlength=annotations.n_classes)
    out = []
    for label in np.flatnonzero(count).tolist():
        against = Annotations(
            index=annotations.index,
            annotator=annotations.annotator,
            label=(annotations.label == label).astype(np.uint8),
            items=annotations.items,
            annotators=annotations.annotators,
            classes=as_names(["rest", annotations.classes[label]]),
        )
        estimates = estimated([Panel(against, chosen)], how)[0]
        out.append(ClassAgreement(annotations.classes[label], int(count[label]), estimates))
    return out


def _by_annotator(annotations: Annotations, panel: Panel) -> list[AnnotatorAgreement]:
    """Return every annotator with a label, those who agree least with others first."""
    alike = agreement_with_others(annotations, panel.weighting)
    without = panel.without_each()
    names = [one.name for one in panel.chosen]
    count = annotations.labels_per_annotator
    return [
        AnnotatorAgreement(
            annotations.annotators[who],
            int(count[who]),
            float(alike[who]),
            dict(zip(names, without[:, who].tolist(), strict=True)),
        )
        for who in np.argsort(alike, kind="stable").tolist()  # NaN stands last
        if count[who]
    ]


def _by_item(annotations: Annotations, panel: Panel) -> list[ItemAgreement]:
    """Return every item, those with least agreement first."""
    shares = agreement_of_items(annotations, panel.weighting)
    order = np.argsort(shares, kind="stable")
    columns = annotations.items[order], annotations.labels_per_item[order], shares[order]
    return list(map(ItemAgreement, *(column.tolist() for column in columns)))
