"""Scores of annotators and items as people see them: tables of pages, the terminal, and charts.

Tables and details of pages are the same for classes and numbers; large data are cut, the worst and
most doubtful first, and the page says so. `dissensus identify` prints the worst first, too. A chart
draws two scores against each other: those that rank alike lie along a line, and who or what is far
from it is good by one score and bad by the other; Spearman's rank correlation sums it up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Array, Floats, Integers
from ..base.names import Names, abbreviate, as_names
from ..base.storage import as_rows
from ..errors import Note
from ..pages import charts
from ..pages.charts import BLUE, RED, VERDICT_COLOURS, Figure
from ..pages.embedding import embedded_image
from ..pages.sections import Column, Section, SortableTable
from ..pages.sections import Table as SmallTable
from ..pages.wording import amount, formatted, interval, percent
from ..result import Table
from .correlation import within_ranks
from .scores import Scored, find_score
from .verdicts import FAULTS, rated_values

if TYPE_CHECKING:
    from ..deep.learning.label_trainer import Hardness
    from ..reporting.report import Report
    from .annotator_scores import AnnotatorScores
    from .cleaning import Cleaned
    from .items import ItemScores


MAX_ANNOTATORS = 500  # rows
MAX_ITEMS = 1000  # rows
_MAX_LABELS = 60  # of one item
_MAX_EXAMPLES = 10  # labels of one annotator
_MAX_CLASSES = 20  # of annotators' confusion matrices
_SHORT = 120  # characters of a text in the table

SENTENCES = 5  # sentences, pairs and changes on a screen
_CAUSES = ("hard", "ambiguous", "somebody is unreliable", "one label", "clear")  # as they are shown

_MOST = 2000  # points, above which they are counted in cells
_FEW = 200  # points that are drawn large
_CELLS = 40  # along each axis
_AXES = {
    "trace": "trace of the confusion matrix",
    "spam_score": "spam score (0 a spammer, 1 a hammer)",
    "ability": "GLAD's ability",
    "entropy": "entropy of the labels (nats)",
    "waum": "WAUM (low: hard)",
    "waum_perworker": "WAUM, a network for each annotator (low: hard)",
    "aum": "AUM (low: hard)",
    "aumc": "AUM of the majority label (low: hard)",
}
PRUNED = {"too hard": RED, "kept": BLUE}


def shown_annotators(report: Report) -> Integers:
    """Return the annotators with labels, by code, the worst first, and not too many."""
    worst = report.annotator_scores.worst
    return worst[report.annotations.labels_per_annotator[worst] > 0][:MAX_ANNOTATORS]


def annotator_columns(report: Report) -> Table:
    """Return the most important scores of annotators, to download."""
    scores, annotators = report.annotator_scores, shown_annotators(report)
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
        bounds = zip(("labels", "accuracy", "low", "high"), gold, strict=True)
        columns |= {f"known_{name}": values for name, values in bounds}
    columns["evidence"] = np.array(scores.evidence, dtype=object)
    return {name: values[annotators] for name, values in columns.items()}


def annotator_table(
    report: Report, examples: Integers, truth: Any, answers: Any
) -> tuple[SortableTable, list[dict[str, Any]]]:
    """Return the annotators, the worst first, and the details of each.

    Parameters
    ----------
    report
        The report.
    examples
        Rows of the annotations that are examples of labels that differ, the clearest first.
    truth, answers
        The label of every item, and that of every annotation, as texts.
    """
    annotations, scores = report.annotations, report.annotator_scores
    annotators = shown_annotators(report)
    follow, gold, verdict = scores.basis.following, scores.gold, scores.verdict[annotators]
    bounds = zip(follow.low[annotators], follow.high[annotators], strict=True)
    columns = {
        "annotator": Column(annotations.annotators[annotators]),
        "labels": Column(scores.behaviour.labels[annotators], "d"),
        "follows": Column(follow.correlation[annotators], "z.2f"),
        "95% interval": Column([interval(*ends) for ends in bounds], kind="plain number"),
    }
    if gold is not None:
        rows = zip(*(values[annotators].tolist() for values in gold), strict=True)
        right = [
            f"{percent(value)} of {n:.0f} ({percent(low)} to {percent(high)})" if n else ""
            for n, value, low, high in rows
        ]
        columns["right on known items"] = Column(right, kind="plain number")
    level = _level(report)
    if level is not None:
        columns["level"] = Column(level[0][annotators], "+z.2f")
    if scores.peers is not None:
        columns["agrees"] = Column(scores.behaviour.agreement[annotators], percent)
    if not np.isnan(scores.behaviour.seconds[annotators]).all():
        columns["seconds"] = Column(scores.behaviour.seconds[annotators], ".1f")
    columns["verdict"] = Column(verdict, kind="verdict")
    differing: dict[int, list[list[str]]] = {a: [] for a in annotators.tolist()}
    people, items = annotations.annotator[examples], annotations.item[examples]
    for row, annotator, item in zip(
        examples.tolist(), people.tolist(), items.tolist(), strict=True
    ):
        labels = differing.get(annotator)
        if labels is not None and len(labels) < _MAX_EXAMPLES:
            labels.append([annotations.items[item], answers[row], truth[item]])
    small = scores.peers is not None and scores.confusion.shape[1] <= _MAX_CLASSES
    details = as_rows(
        {
            "name": annotations.annotators[annotators],
            "verdict": verdict,
            "evidence": [scores.evidence[a] for a in annotators.tolist()],
            "styles": [_styles(report, level, a) for a in annotators.tolist()],
            "alone": list(differing.values()),
            "confusion": scores.confusion[annotators].round(3).tolist()
            if small
            else [None] * len(annotators),
        }
    )
    caption = f"{amount(len(annotators), 'annotator', annotations.n_annotators)}, the worst first"
    kinds, hint = [[word] for word in verdict], "name or verdict"
    table = SortableTable(
        name="annotator-table",
        caption=caption,
        columns=columns,
        kinds=kinds,
        details="annotator",
        hint=hint,
        filter="Verdict",
    )
    return table, details


def _level(report: Report) -> Floats | None:
    """Return how much higher annotators answer, in units of the labels: (bound, annotator)."""
    styles = report.annotator_scores.basis.styles
    if styles is None:
        return None
    value = rated_values(report.annotations)
    return np.stack(styles.level) * float(value.std())


def _styles(
    report: Report, level: Floats | None, annotator: int
) -> list[tuple[str, str, str]] | None:
    """Return how an annotator uses the scale: names, values and intervals."""
    styles = report.annotator_scores.basis.styles
    if styles is None or level is None:
        return None
    columns = {
        "answers higher by": (level[:, annotator].tolist(), "+z.2f", ""),
        "slope (range of answers)": ([bound[annotator] for bound in styles.slope], ".2f", " times"),
        "noise": ([bound[annotator] for bound in styles.noise], ".2f", " times"),
    }
    return [
        (name, f"{value:{form}}{unit}", interval(low, high, form))
        for name, ((value, low, high), form, unit) in columns.items()
        if value == value
    ]


def shortened(text: str | None) -> str:
    """Return the beginning of a text."""
    return "" if text is None else text[:_SHORT] + "…" * (len(text) > _SHORT)


def item_table(
    report: Report,
    codes: Integers,
    *,
    answers: Array,
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
    codes
        The items by code.
    answers
        What every annotation says: (annotation).
    label
        The label or value of the items.
    columns, details, kinds
        Further columns, details, and kinds to filter by, of the items.
    order
        How the items are ordered, in words.
    """
    annotations, texts, known_labels = report.annotations, report.texts, report.known
    items = annotations.items[codes].tolist()
    names: dict[str, int] = {}
    labels = []
    for item in codes.tolist():
        start, end = annotations.index[item : item + 2].tolist()
        end = min(end, start + _MAX_LABELS)
        people = annotations.annotators[annotations.annotator[start:end]].tolist()
        people_codes = [names.setdefault(name, len(names)) for name in people]
        labels.append(list(zip(people_codes, answers[start:end].tolist(), strict=True)))
    gold = [known_labels.get(name) for name in items]
    written = [
        label.values[k] if label.form is None else formatted(x, label.form)
        for k, x in enumerate(label.values)
    ]
    text = [texts.get(name) for name in items]
    fields = {
        "name": items,
        "label": written,
        **details,
        "n": annotations.labels_per_item[codes].tolist(),
        "text": text,
        "image": [embedded_image(content, report.folder) for content in text],
        "gold": gold,
        "annotations": labels,
    }
    rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    short = [shortened(content) for content in text]
    differs = ["differs" if "differs from the known label" in words else "" for words in kinds]
    shown_columns = {"item": Column(items)}
    if texts:
        shown_columns["text"] = Column(short, kind="plain", classes=["text"] * len(short))
    shown_columns[report.noun] = label
    if known_labels:
        shown_columns["known"] = Column(
            ["" if known_label is None else known_label for known_label in gold], classes=differs
        )
    caption = f"{amount(len(codes), 'item', annotations.n_items)}, {order}"
    hint = "item, text or label" if texts else "a word"
    table = SortableTable(
        name="item-table",
        caption=caption,
        columns={**shown_columns, **columns},
        kinds=kinds,
        details="item",
        hint=hint,
        filter="Show" if kinds else "",
    )
    return table, rows, list(names)


def score_sections(scored: Scored, top: int) -> tuple[Section, ...]:
    """Return one score, the worst first."""
    score = scored.score
    if score.of == "crowd":
        return (Section("score", score.name, text=[f"{score.name} {scored.values[0]:.4f}"]),)
    rows = [(scored.names[code], _cell(scored.values[code])) for code in scored.order[:top]]
    table = SmallTable("", (score.of, score.name), rows)
    title, about = (
        f"{score.name}, the worst first",
        [score.text, *more_rows(len(scored.names), top)],
    )
    return (
        Section("score", score.name, text=[title], panels=[[table]]),
        Section("about", "About the score", text=about),
    )


def items_sections(scores: ItemScores, top: int) -> tuple[Section, ...]:
    """Return the items, the hard ones first."""
    table = scores.table()
    rank = {cause: position for position, cause in enumerate(_CAUSES)}
    cause = np.array([rank.get(reason, len(rank)) for reason in scores.cause.tolist()])
    order = np.lexsort((scores.confidence, cause))
    measures = ("n_labels", "vote_entropy", "agreement", "confidence")
    rows = [
        (
            table["item"][item],
            table["cause"][item],
            *(_cell(table[name][item]) for name in measures),
        )
        for item in order[:top].tolist()
    ]
    heads = ("item", "why they disagree", "labels", "entropy", "agree", "confidence")
    caption = f"{len(order)} items, the hard ones first"
    counts = "; ".join(f"{reason} {count}" for reason, count in scores.causes.items() if count)
    return (
        Section("items", "Items", panels=[[SmallTable(caption, heads, rows, n_texts=2)]]),
        Section("causes", "Causes", text=[counts, *more_rows(len(order), top)]),
    )


def annotators_sections(scores: AnnotatorScores, top: int) -> tuple[Section, ...]:
    """Return the annotators, the worst first, and the evidence."""
    order = scores.worst.tolist()
    names, follow, styles = (
        scores.annotations.annotators,
        scores.basis.following,
        scores.basis.styles,
    )
    kinds = getattr(scores.annotations, "annotator_kinds", ())
    columns: dict[str, Callable[[int], str]] = {
        "annotator": lambda code: str(names[code]),
        "verdict": lambda code: str(scores.verdict[code]),
        **({"kind": lambda code: str(kinds[code])} if len(kinds) else {}),
        "labels": lambda code: str(scores.behaviour.labels[code]),
        "follows": lambda code: _bounded(follow[:3], code),
    }
    n_texts = list(columns).index("labels")
    if scores.gold is not None:
        columns["known"] = lambda code: _percent(scores.gold, code)
    if styles is None:
        columns["right"] = lambda code: _percent(scores.accuracy, code)
    else:
        columns["level"] = lambda code: _bounded(styles.level, code)
    rows = [[cell(code) for cell in columns.values()] for code in order[:top]]
    by = (
        f"by {scores.method}" if scores.peers is not None and styles is None else "by their ratings"
    )
    caption = f"{len(order)} annotators compared with the others, {by}"
    text: list[str] = [*more_rows(len(order), top), verdicts_sentence(scores.verdict_counts)]
    suspect = [code for code in order if scores.verdict[code] in FAULTS]
    text += [
        f"{names[code]} ({scores.verdict[code]}): {scores.evidence[code]}"
        for code in suspect[:SENTENCES]
    ]
    if "likely random" in scores.verdict_counts and not scores.basis.gold_labels.any():
        settle = "Known items ({}) would settle who is only likely random."
        text.append(Note("", remedy=settle, gold=True))
    return (
        Section(
            "annotators", "Annotators", panels=[[SmallTable(caption, [*columns], rows, n_texts)]]
        ),
        Section("verdicts", "Verdicts", text=text),
        Section("copies", "Copies", text=[] if scores.copies is None else _copied(scores.copies)),
    )


def verdicts_sentence(counts: Mapping[str, int]) -> str:
    """Return how many annotators have which verdict."""
    return f"Verdicts: {', '.join(f'{count} {word}' for word, count in counts.items())}."


def _bounded(bounded: Any, code: int) -> str:
    value, low, high = (float(bound[code]) for bound in bounded)
    return "" if math.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _percent(share: Any, code: int) -> str:
    value, low, high = (float(bound[code]) for bound in share[1:])
    return "" if math.isnan(value) else f"{value:.0%} ({100 * low:.0f}–{100 * high:.0f})"


def _copied(copies: Any) -> list[str]:
    text: list[str] = [
        f"{pair.one} and {pair.other} agree too much: {pair.equal} of {pair.common} labels are "
        f"equal, {pair.expected:.0f} are expected; {pair.share:.0%} look copied."
        for pair in copies.pairs[:SENTENCES]
    ]
    if len(copies.pairs) > SENTENCES:
        hidden = f"{len(copies.pairs) - SENTENCES} more pairs agree too much"
        text.append(Note(hidden, remedy="all are in {}.", json=True))
    if copies.sampled < 1:
        text.append(f"Pairs were compared on {copies.sampled:.0%} of the items.")
    return text


def cleaned_sections(cleaned: Cleaned) -> tuple[Section, ...]:
    """Return what was dropped and what that changed."""
    text: list[str] = [f"{cleaned.sentence}."]
    for role, names in (("annotators", cleaned.annotators), ("items", cleaned.items)):
        if len(names):
            text.append(f"No label is left of {role} {abbreviate(names)}.")
    for change in cleaned.changes[:SENTENCES]:
        before, after = change.before or "undecided", change.after or "undecided"
        text.append(f"  {change.item}: {before} → {after}")
    if len(cleaned.changes) > SENTENCES:
        hidden = f"  … {len(cleaned.changes) - SENTENCES} more"
        text.append(Note(hidden, remedy="all are in {}.", json=True))
    return (Section("cleaned", "Cleaned", text=text),)


def more_rows(rows: int, top: int) -> list[str]:
    """Return how many rows a table leaves out, as a sentence; nothing if it shows all."""
    if rows <= top:
        return []
    return [Note(f"{rows - top} more", remedy="{} shows all, -o FILE writes them.", top=rows)]


def _cell(value: Any) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3f}" if float(value) != int(value) else str(int(value))


def annotator_pair(scores: AnnotatorScores) -> Figure | None:
    """Return annotators by trace and spam score, coloured by verdict."""
    if scores.peers is None:
        return None
    names = scores.annotations.annotators
    pair = [
        Scored(find_score(name), names, values)
        for name, values in (("trace", scores.trace), ("spam_score", scores.spam_score))
    ]
    return score_pair(*pair, groups=scores.verdict, palette=VERDICT_COLOURS)


def item_pair(hard: Hardness, entropy: Scored) -> Figure | None:
    """Return items by hardness for a network and by the entropy of their labels."""
    score = Scored(find_score(hard.measure), hard.annotations.items, hard.score)
    groups = as_names(["kept", "too hard"])[hard.pruned.astype(int)]
    return score_pair(score, entropy, groups=groups, palette=PRUNED)


def score_pair(
    x_score: Scored,
    y_score: Scored,
    *,
    groups: Names | None = None,
    palette: Mapping[str, str] | None = None,
) -> Figure | None:
    """Return two scores of the same annotators or items; nothing if fewer than two have both."""
    x, y = x_score.values.astype(float), y_score.values.astype(float)
    defined = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if len(defined) < 2:
        return None
    of, names = x_score.score.of, (x_score.score.name, y_score.score.name)
    x, y = x[defined], y[defined]
    words = _correlation(x, y)
    if len(defined) < len(x_score.values):
        words += f" {len(x_score.values) - len(defined)} {of}s without both scores are not shown."
    axes = [
        charts.number(field, _AXES.get(name, _plain(name)), scale={"zero": False})
        for field, name in zip("xy", names, strict=True)
    ]
    if len(defined) > _MOST:
        spec = _cells(x, y, axes, of)
    else:
        columns: dict[str, Array] = {of: x_score.names[defined], "x": x.round(4), "y": y.round(4)}
        encoding: dict[str, Any] = {"x": axes[0], "y": axes[1]}
        tooltip = [{"field": of}, *({**a, "format": ".3f"} for a in axes)]
        if len(np.unique(y)) < len(y) / 10:
            columns["spread"] = _spread(y).round(4)
            encoding["y"] = {**axes[1], "field": "spread"}
            words += " Equal values are spread a little."
        if groups is not None and palette:
            columns["group"] = groups[defined]
            present = set(columns["group"].tolist())
            colours = {word: tone for word, tone in palette.items() if word in present}
            encoding["color"] = charts.colour("group", colours, symbolOpacity=1, columns=4)
            tooltip.append({"field": "group"})
        encoding["tooltip"] = [{k: v for k, v in a.items() if k != "scale"} for a in tooltip]
        few = len(defined) <= _FEW
        mark: dict[str, Any] = {"type": "circle", "color": BLUE}
        mark |= {"size": 50, "opacity": 0.7} if few else {"size": 25, "opacity": 0.45}
        spec = charts.chart(as_rows(columns), height=280, mark=mark, encoding=encoding)
    title = f"{of.capitalize()}s by {_plain(names[0])} and {_plain(names[1])}"
    return Figure(title, words, spec)


def _plain(name: str) -> str:
    """Return the name of a score in words."""
    word, *words = name.split("_")
    return " ".join([word.upper() if word in ("waum", "aum", "aumc") else word, *words])


def _spread(values: Floats) -> Floats:
    """Return values moved at random by up to a fiftieth of their range."""
    return values + np.random.default_rng(0).uniform(-1, 1, len(values)) * np.ptp(values) / 50


def _correlation(x: Floats, y: Floats) -> str:
    if min(np.ptp(x), np.ptp(y)) == 0:
        return "One of the scores is the same for all."
    one_group = np.zeros(len(x), dtype=np.int64)
    rho = np.corrcoef(within_ranks(one_group, x), within_ranks(one_group, y))[0, 1]
    return f"Spearman's rank correlation of the two scores is {rho:.2f}."


def _cells(x: Floats, y: Floats, axes: list[dict[str, Any]], of: str) -> dict[str, Any]:
    """Return a chart of counts in cells of a grid."""
    counts, *edges = np.histogram2d(x, y, bins=_CELLS)
    row, column = np.nonzero(counts)
    columns = {
        "x": edges[0][row],
        "x2": edges[0][row + 1],
        "y": edges[1][column],
        "y2": edges[1][column + 1],
        "count": counts[row, column].astype(int),
    }
    tone = charts.number("count", f"{of}s", scale={"type": "log", "scheme": "blues"})
    encoding: dict[str, Any] = {
        "x": {**axes[0], "bin": {"binned": True}},
        "x2": {"field": "x2"},
        "y": {**axes[1], "bin": {"binned": True}},
        "y2": {"field": "y2"},
        "color": tone,
        "tooltip": [{"field": "count", "title": f"{of}s"}],
    }
    return charts.chart(as_rows(columns), height=280, mark={"type": "rect"}, encoding=encoding)
