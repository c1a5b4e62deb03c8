"""A report as one page: no network, one file, readable without scripts.

Names and texts are data: Jinja2 escapes them in the page, and `embedding.py` in the JSON that the
page's script reads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .contents import Contents, contents
from .embedding import filled, shown_charts
from .sentences import advice, amount, percent
from .summary import SURE

if TYPE_CHECKING:
    from ..comparison import Comparison
    from .report import Report

__all__ = ["render"]

_SECTIONS = {
    "overview": "In short",
    "data": "What was read",
    "labels": "Labels",
    "truth": "Truth",
    "annotators": "Annotators",
    "items": "Items",
    "agreement": "Agreement",
    "tendency": "Foresight",
    "next": "What next",
}


def render(report: Report) -> str:
    """Return the page."""
    shown = contents(report)
    charts = report.charts
    has_truth = report.evaluation is not None
    known = {"truth": has_truth, "tendency": report.foresight is not None}
    absent = {name for name, there in known.items() if not there}
    return filled(
        "report.html",
        {**shown.data, "charts": {name: one.spec for name, one in charts.items()}},
        title=report.name,
        sections=[(id_, name) for id_, name in _SECTIONS.items() if id_ not in absent],
        charts=shown_charts(charts),
        sentences=report.sentences,
        advice=advice(report),
        facts=_facts(report),
        has_truth=has_truth,
        foresight=report.foresight,
        has_plan=bool(shown.data["plan"]),
        method=report.result.method,
        seed=report.seed,
        sure=f"{SURE:.0%}",
        samples=[*report.samples, *shown.samples],
        **_told(report, shown),
    )


def _told(report: Report, shown: Contents) -> dict[str, Any]:
    """Return everything that the template shows, as words."""
    result, agreement, found = report.result, report.agreement, report.comparison
    return {
        "read": _read(report),
        "notes": report.reading.notes,
        "findings": report.check.findings,
        "how": _how(report),
        "method_notes": result.notes,
        "methods": [] if found is None or not found.n_scored else _methods(found),
        "methods_head": ["method", "behind the best", "with most"]
        + ["right"] * (report.evaluation is not None),
        "verdict": "" if found is None else found.verdict,
        "compared": " ".join(found.signs) if found is not None else "",
        "scores": _scores(report),
        "annotators": shown.annotators,
        "annotators_caption": shown.annotators_caption,
        "verdicts": list(report.annotator_scores.verdict_counts),
        "has_seconds": shown.has_seconds,
        "copies": shown.copies,
        "items": shown.items,
        "items_caption": shown.items_caption,
        "kinds": shown.kinds,
        "has_texts": report.reading.texts is not None,
        "has_known": bool(report.truth or report.reading.gold),
        "agreement_words": (
            f"{percent(_value(agreement, 'percent'))} of the pairs of labels on one item agree. "
            f"Beyond chance, agreement is {agreement.word or 'undefined'}."
        ),
        "agreement_notes": agreement.notes,
        "coefficients": [
            (_MEASURES.get(one.measure, one.measure), *_interval(one))
            for one in agreement.estimates
        ],
        "by_class": _by_class(report),
        "next_words": _next(report),
    }


_MEASURES = {
    "percent": "pairs that agree",
    "alpha": "Krippendorff's alpha",
    "fleiss": "Fleiss' kappa",
    "ac1": "Gwet's AC1",
}


def _facts(report: Report) -> list[dict[str, str]]:
    annotations = report.annotations
    alpha = _value(report.agreement, "alpha")
    facts = {
        "annotators": amount(annotations.n_annotators, "").strip(),
        "items": amount(annotations.n_items, "").strip(),
        "labels": amount(len(annotations), "").strip(),
        "classes": str(annotations.n_classes),
        "alpha": "–" if math.isnan(alpha) else f"{alpha:.2f}",
        "to relabel": amount(len(report.doubtful), "").strip(),
    }
    return [
        {"name": name, "value": value.removesuffix("s").strip()} for name, value in facts.items()
    ]


def _read(report: Report) -> str:
    found = report.reading
    told = [] if found.format in _PLAIN else [f"The file was read as {found.format}."]
    if found.question:
        told.append(f"The question is {found.question}.")
    others = [name for name in found.questions if name != found.question]
    if others:
        told.append(f"There are also: {', '.join(others)}.")
    size = report.check.labels_per_item
    each = f"{size.least}" if size.least == size.most else f"{size.least} to {size.most}"
    mean = "" if size.least == size.most else f", {size.mean:.1f} on average"
    told.append(f"An item has {each} {'label' if each == '1' else 'labels'}{mean}.")
    return " ".join(told)


_PLAIN = ("annotations", "mapping", "table")  # in memory, so there was no file


def _how(report: Report) -> str:
    """Return how labels were inferred, for somebody who never heard of it."""
    result = report.result
    name = result.method.partition("[")[0]
    way = {
        "auto": "several methods together, each counting by how well it foresees labels that it "
        "has not seen",
        "majority": "a plain vote",
    }.get(name, f"the method {result.method}, which weighs annotators by how they have done")
    ended = "" if result.converged else " It had not settled when it was stopped."
    return f"The label of an item was inferred by {way}.{ended}"


def _methods(found: Comparison) -> list[tuple[str, ...]]:
    rows = []
    for one in found.methods:
        row = [
            one.method,
            "best" if one.behind == 0 else f"{one.behind:.3f} ± {2 * one.error:.3f}",
            percent(one.agreement),
        ]
        if one.evaluation is not None:
            score = one.evaluation.scores.get("accuracy")
            row.append("–" if score is None else f"{score.value:.1%}")
        rows.append(tuple(row))
    return rows


def _next(report: Report) -> str:
    plan = report.plan
    if plan is None:
        return f"With {amount(report.annotations.n_items, 'item')}, `dissensus next` makes a plan."
    if plan.stop:
        return "Further labels would hardly change anything: this is a good place to stop."
    return (
        f"Further labels still help. The plan that can be downloaded above names "
        f"{amount(len(plan), 'question')}: which annotator to ask about which item, the most "
        "useful first."
    )


def _scores(report: Report) -> list[tuple[str, str, str]]:
    if report.evaluation is None:
        return []
    return [
        (
            _SCORES.get(name, name.replace("_", " ")),
            f"{score.value:.3f}",
            f"{score.low:.3f} to {score.high:.3f}",
        )
        for name, score in report.evaluation.scores.items()
        if score is not None and name != "accuracy_as_labelled"
    ]


_SCORES = {
    "accuracy": "labelled right (accuracy)",
    "macro_f1": "mean over classes (macro F1)",
    "log_loss": "surprise at the truth (log loss)",
    "brier": "squared error of beliefs (Brier)",
    "ece": "belief against truth (calibration error)",
}


def _by_class(report: Report) -> list[tuple[str, ...]]:
    from ..agreement import ClassAgreement

    if report.agreement.by != "class" or report.annotations.n_classes < 3:
        return []
    return [
        (one.name, str(one.n_labels), *_interval(_alpha(one.estimates)))
        for one in report.agreement.parts
        if isinstance(one, ClassAgreement)
    ]


def _alpha(estimates: Any) -> Any:
    return next(one for one in estimates if one.measure == "alpha")


def _interval(one: Any, form: str = ".3f") -> tuple[str, str]:
    """Return an estimate and its interval as words."""
    if math.isnan(one.value):
        return "–", ""
    return f"{one.value:{form}}", f"{one.low:{form}} to {one.high:{form}}"


def _value(agreement: Any, measure: str) -> float:
    return next((one.value for one in agreement.estimates if one.measure == measure), math.nan)
