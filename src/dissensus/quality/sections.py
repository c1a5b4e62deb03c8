"""Tables and details of annotators and items, the same for classes and numbers.

Large data are cut, the worst and most doubtful first, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.plain import as_rows
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from .annotator_evidence import rating_scores
from ..pages.wording import amount, formatted, interval, percent
from ..result import Table
from ..pages.embedding import embedded_image
from ..pages.sections import Column, SortableTable

if TYPE_CHECKING:
    from ..reporting.number_report import NumberReport
    from ..reporting.report import Report

MAX_ANNOTATORS = 500  # rows
MAX_ITEMS = 1000  # rows
_MAX_LABELS = 60  # of one item
_MAX_EXAMPLES = 10  # labels of one annotator
_MAX_CLASSES = 20  # of annotators' confusion matrices
_SHORT = 120  # characters of a text in the table


def shown_annotators(report: Report | NumberReport) -> Integers:
    """Return the annotators with labels, by code, the worst first, and not too many."""
    worst = report.annotator_scores.worst
    return worst[report.annotations.labels_per_annotator[worst] > 0][:MAX_ANNOTATORS]


def annotator_columns(report: Report | NumberReport) -> Table:
    """Return the most important scores of annotators, to download."""
    scores, shown = report.annotator_scores, shown_annotators(report)
    follow, gold = scores.basis.following, scores.gold
    columns: dict[str, Any] = {
        "annotator": scores.annotations.annotators,
        "verdict": scores.verdict,
        "labels": scores.behaviour.labels,
        "follows": follow.correlation,
        "follows_low": follow.low,
        "follows_high": follow.high,
    }
    if gold is not None:
        known = zip(("labels", "accuracy", "low", "high"), gold, strict=True)
        columns |= {f"known_{name}": values for name, values in known}
    columns["evidence"] = np.array(scores.evidence, dtype=object)
    return {name: values[shown] for name, values in columns.items()}


def annotator_table(
    report: Report | NumberReport, examples: Integers, truth: Any, given: Any
) -> tuple[SortableTable, list[dict[str, Any]]]:
    """Return the annotators, the worst first, and the details of each.

    Parameters
    ----------
    report
        The report.
    examples
        Rows of the annotations that are examples of labels that differ, the clearest first.
    truth, given
        The label of every item, and that of every annotation, as texts.
    """
    annotations, scores = report.annotations, report.annotator_scores
    shown = shown_annotators(report)
    follow, gold, verdict = scores.basis.following, scores.gold, scores.verdict[shown]
    bounds = zip(follow.low[shown], follow.high[shown], strict=True)
    columns = {
        "annotator": Column(annotations.annotators[shown]),
        "labels": Column(scores.behaviour.labels[shown], "d"),
        "follows": Column(follow.correlation[shown], "z.2f"),
        "95% interval": Column([interval(*ends) for ends in bounds], kind="plain number"),
    }
    if gold is not None:
        rows = zip(*(values[shown].tolist() for values in gold), strict=True)
        right = [
            f"{percent(value)} of {n:.0f} ({percent(low)} to {percent(high)})" if n else ""
            for n, value, low, high in rows
        ]
        columns["right on known items"] = Column(right, kind="plain number")
    level = _level(report)
    if level is not None:
        columns["level"] = Column(level[0][shown], "+z.2f")
    if scores.peers is not None:
        columns["agrees"] = Column(scores.behaviour.agreement[shown], percent)
    if not np.isnan(scores.behaviour.seconds[shown]).all():
        columns["seconds"] = Column(scores.behaviour.seconds[shown], ".1f")
    columns["verdict"] = Column(verdict, kind="verdict")
    alone: dict[int, list[list[str]]] = {a: [] for a in shown.tolist()}
    people, items = annotations.annotator[examples], annotations.item[examples]
    for row, annotator, item in zip(
        examples.tolist(), people.tolist(), items.tolist(), strict=True
    ):
        labels = alone.get(annotator)
        if labels is not None and len(labels) < _MAX_EXAMPLES:
            labels.append([annotations.items[item], given[row], truth[item]])
    small = scores.peers is not None and scores.confusion.shape[1] <= _MAX_CLASSES
    details = as_rows(
        {
            "name": annotations.annotators[shown],
            "verdict": verdict,
            "evidence": [scores.evidence[a] for a in shown.tolist()],
            "styles": [_styles(report, level, a) for a in shown.tolist()],
            "alone": list(alone.values()),
            "confusion": scores.confusion[shown].round(3).tolist()
            if small
            else [None] * len(shown),
        }
    )
    caption = f"{amount(len(shown), 'annotator', annotations.n_annotators)}, the worst first"
    kinds, hint = [[word] for word in verdict], "name or verdict"
    table = SortableTable("annotator-table", caption, columns, kinds, "annotator", hint, "Verdict")
    return table, details


def _level(report: Report | NumberReport) -> Floats | None:
    """Return how much higher annotators answer, in units of the labels: (bound, annotator)."""
    styles = report.annotator_scores.basis.styles
    if styles is None:
        return None
    answers: Any = report.annotations
    classes = isinstance(answers, Annotations)
    value = rating_scores(answers)[answers.label] if classes else answers.value
    return np.stack(styles.level) * float(value.std())


def _styles(
    report: Report | NumberReport, level: Floats | None, annotator: int
) -> list[tuple[str, str, str]] | None:
    """Return how an annotator uses the scale: names, values and intervals."""
    styles = report.annotator_scores.basis.styles
    if styles is None or level is None:
        return None
    shown = {
        "answers higher by": (level[:, annotator].tolist(), "+z.2f", ""),
        "slope (range of answers)": ([bound[annotator] for bound in styles.slope], ".2f", " times"),
        "noise": ([bound[annotator] for bound in styles.noise], ".2f", " times"),
    }
    return [
        (name, f"{value:{form}}{unit}", interval(low, high, form))
        for name, ((value, low, high), form, unit) in shown.items()
        if value == value
    ]


def shortened(text: str | None) -> str:
    """Return the beginning of a text."""
    return "" if text is None else text[:_SHORT] + "…" * (len(text) > _SHORT)


def item_table(
    report: Report | NumberReport,
    shown: Integers,
    given: Array,
    label: Column,
    columns: Mapping[str, Column],
    details: Mapping[str, Sequence[Any]],
    kinds: Sequence[Sequence[str]],
    order: str,
) -> tuple[SortableTable, list[dict[str, Any]], list[str]]:
    """Return items with their texts, the details of each, and the names of annotators in these.

    Parameters
    ----------
    report
        The report.
    shown
        Items by code.
    given
        What every annotation says: (annotation).
    label
        The label or value of the items.
    columns, details, kinds
        Further columns, details, and kinds to filter by, of the items.
    order
        How the items are ordered, in words.
    """
    annotations, texts, known = report.annotations, report.texts, report.known
    items = annotations.items[shown].tolist()
    names: dict[str, int] = {}
    labels = []
    for item in shown.tolist():
        start, end = annotations.index[item : item + 2].tolist()
        end = min(end, start + _MAX_LABELS)
        people = annotations.annotators[annotations.annotator[start:end]].tolist()
        codes = [names.setdefault(name, len(names)) for name in people]
        labels.append(list(zip(codes, given[start:end].tolist(), strict=True)))
    gold = [known.get(name) for name in items]
    written = [
        label.values[k] if label.form is None else formatted(x, label.form)
        for k, x in enumerate(label.values)
    ]
    text = [texts.get(name) for name in items]
    fields = {
        "name": items,
        "label": written,
        **details,
        "n": annotations.labels_per_item[shown].tolist(),
        "text": text,
        "image": [embedded_image(one, report.folder) for one in text],
        "gold": gold,
        "annotations": labels,
    }
    rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    short = [shortened(one) for one in text]
    differs = ["differs" if "differs from the known label" in each else "" for each in kinds]
    shown_columns = {"item": Column(items)}
    if texts:
        shown_columns["text"] = Column(short, kind="plain", classes=["text"] * len(short))
    shown_columns[report.noun] = label
    if known:
        shown_columns["known"] = Column(
            ["" if one is None else one for one in gold], classes=differs
        )
    caption = f"{amount(len(shown), 'item', annotations.n_items)}, {order}"
    hint = "item, text or label" if texts else "a word"
    table = SortableTable(
        "item-table",
        caption,
        {**shown_columns, **columns},
        kinds,
        "item",
        hint,
        "Show" if kinds else "",
    )
    return table, rows, list(names)
