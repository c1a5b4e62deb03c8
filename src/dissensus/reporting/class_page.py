"""The page of a report on classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agreement import ClassAgreement
from .class_tables import annotator_table, downloads, item_table
from .sections import Page, Section, Table, estimates_table
from .sentences import advice, amount, formatted, percent, with_interval

if TYPE_CHECKING:
    from .report import Report

_IN_MEMORY = ("annotations", "mapping", "table")  # formats without a file
_MAX_COPIES = 20
_MEASURES = {
    "percent": "pairs that agree",
    "alpha": "Krippendorff's alpha",
    "fleiss": "Fleiss' kappa",
    "ac1": "Gwet's AC1",
}
_SCORES = {
    "accuracy": "accuracy (labelled right)",
    "macro_f1": "macro F1 (mean over classes)",
    "log_loss": "log loss of the truth",
    "brier": "Brier score (squared error of probabilities)",
    "ece": "calibration error (confidence against accuracy)",
}


def class_page(report: Report) -> Page:
    """Return what the page shows."""
    annotations = report.annotations
    annotators, annotator_details = annotator_table(report)
    items, item_details, names = item_table(report)
    files = downloads(report)
    samples = list(report.samples)
    if not files["labels"].columns:
        samples.append("There are too many labels to download here; use `dissensus aggregate`.")
    plan = report.plan
    further = "Further labels would hardly change the result: this is a good point to stop."
    if plan is None:
        further = f"With {amount(annotations.n_items, 'item')}, `dissensus next` makes a plan."
    elif not plan.stop:
        further = (
            "Further labels still help. The plan that can be downloaded above lists "
            f"{amount(len(plan), 'label')} to ask for: which annotator to ask about which item, "
            "the most useful first."
        )
    sections = [
        Section("data", "Data", [_data_text(report)], report.reading.notes, report.check.findings),
        _labels_section(report),
        Section(
            "annotators",
            "Annotators",
            [
                "“Right” is how often a label is the consensus of the other annotators, with a 95% "
                "interval; their own label does not count. “Follows the items” is a correlation, "
                "0 if labels do not depend on the item, whatever an annotator prefers. Click a "
                "name for the evidence."
            ],
            panels=[["annotators"]],
            table=annotators,
            subsections=_copies(report),
        ),
        Section(
            "items",
            "Items",
            [
                "Why annotators disagree: an ambiguous item splits good annotators between two "
                "classes, a hard one makes them err in many ways, and sometimes an annotator is "
                "unreliable and the item itself is clear. Click an item for all its labels."
            ],
            table=items,
        ),
        _agreement_section(report),
        Section("next", "Next steps", [further], panels=[["budget"]]),
    ]
    if report.evaluation is not None:
        scores = {title: report.evaluation.scores.get(name) for name, title in _SCORES.items()}
        known = estimates_table("Scores against known labels", scores)
        panels: list[list[Table | str]] = [[known, "calibration"]]
        sections.insert(2, Section("truth", "Known labels", panels=panels))
    if report.predictions is not None:
        sections.insert(-1, report.predictions.section())
    return Page(
        {
            "annotators": amount(annotations.n_annotators),
            "items": amount(annotations.n_items),
            "labels": amount(len(annotations)),
            "classes": str(annotations.n_classes),
            "alpha": formatted(report.agreement["alpha"].value, ".2f"),
            "to relabel": amount(len(report.doubtful)),
        },
        sections,
        report.charts,
        files,
        ("confidence", "alpha", "verdicts"),
        report.result.method,
        advice(report),
        samples,
        {
            "classes": annotations.classes.tolist(),
            "annotators": annotator_details,
            "items": item_details,
            "names": names,
        },
    )


def _copies(report: Report) -> list[Section]:
    """Return a subsection on pairs who may have copied, if there are any."""
    copies = report.annotator_scores.copies
    rows = [
        (one.one, one.other, str(one.common), str(one.equal), f"{one.expected:.0f}")
        for one in ([] if copies is None else copies.pairs[:_MAX_COPIES])
    ]
    text = (
        "These pairs give equal labels, above all equal errors, more often than two people who "
        "work independently would. Labels do not show who copied from whom."
    )
    heads = ["one", "other", "items in common", "equal", "expected"]
    table = Table("Pairs with suspiciously high agreement", heads, rows, 2)
    return [Section("copies", "Suspiciously high agreement", [text], panels=[[table]])] * bool(rows)


def _data_text(report: Report) -> str:
    reading, size = report.reading, report.check.labels_per_item
    others = [name for name in reading.questions if name != reading.question]
    each = f"{size.least} to {size.most} labels, {size.mean:.1f} on average"
    parts = (
        f"The file was read as {reading.format}." if reading.format not in _IN_MEMORY else "",
        f"The question is {reading.question}." if reading.question else "",
        f"There are also: {', '.join(others)}." if others else "",
        f"An item has {amount(size.least, 'label') if size.least == size.most else each}.",
    )
    return " ".join(filter(None, parts))


def _labels_section(report: Report) -> Section:
    """Return how labels were inferred, and how methods compare."""
    result, comparison = report.result, report.comparison
    name = result.method.partition("[")[0]
    how = {
        "auto": "several methods together, each weighted by how well it predicts held-out labels",
        "majority": "majority vote",
    }.get(name, f"the method {result.method}, which weights annotators by their reliability")
    ended = "" if result.converged else " It had not converged when it was stopped."
    methods = []
    if comparison is not None and comparison.n_scored:
        scored = report.evaluation is not None
        heads = ["method", "behind the best", "with most methods"] + ["accuracy"] * scored
        rows = []
        for one in comparison.methods:
            behind = "best" if one.gap == 0 else f"{one.gap:.3f} ± {2 * one.error:.3f}"
            row = [one.method, behind, percent(one.agreement)]
            if one.evaluation is not None:
                score = one.evaluation.scores.get("accuracy")
                row.append("–" if score is None else f"{score.value:.1%}")
            rows.append(row)
        panel: list[Table | str] = ["methods", Table("Methods side by side", heads, rows)]
        text = [" ".join((comparison.verdict, *comparison.warnings))]
        methods = [Section("methods", "Which method?", text, panels=[panel])]
    return Section(
        "labels",
        "Labels",
        [f"Labels were inferred by {how}.{ended}"],
        result.notes,
        panels=[["classes", "confidence"]],
        subsections=methods,
    )


def _agreement_section(report: Report) -> Section:
    """Return coefficients, agreement by class, and figures of agreement."""
    agreement = report.agreement
    estimates = {_MEASURES.get(one.measure, one.measure): one for one in agreement.estimates}
    tables: list[Table | str] = [estimates_table("Coefficients, intervals over items", estimates)]
    if agreement.by == "class" and report.annotations.n_classes > 2:
        heads = ["class", "labels", "alpha", "interval"]
        by_class = [
            (one.name, str(one.n_labels), *with_interval(estimate))
            for one in agreement.parts
            if isinstance(one, ClassAgreement)
            for estimate in one.estimates
            if estimate.measure == "alpha"
        ]
        tables.append(Table("Every class against the rest", heads, by_class))
    text = (
        f"{percent(agreement['percent'].value)} of the pairs of labels on one item agree. "
        f"Beyond chance, agreement is {agreement.word or 'undefined'}."
    )
    panels: list[list[Table | str]] = [tables, ["confusion"], ["agreement"]]
    return Section("agreement", "Agreement", [text], agreement.notes, panels=panels)
