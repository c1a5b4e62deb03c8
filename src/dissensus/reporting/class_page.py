"""The page of a report on classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..judging.sections import judging_section
from ..metrics import ClassAgreement, percent_agreement
from ..metrics.sections import pairs_table
from ..pages.sections import Page, Section, SortableTable, Table, estimates_table
from ..pages.wording import amount, formatted, interval, percent, titles, with_interval
from ..quality.sections import annotator_table, shortened
from .details import class_items, downloads, lone_labels

if TYPE_CHECKING:
    from .number_report import NumberReport
    from .report import Report

IN_MEMORY = ("annotations", "answers", "mapping", "table")  # formats without a file
_MAX_COPIES, _MAX_DIVIDING, _MAX_GROUPS = 20, 10, 12  # rows
TERMS = ("follows", "verdicts", "alpha")
_IN_PART = "agreement of pairs, near labels in part"
_SCORES = ("accuracy", "macro_f1", "log_loss", "brier", "ece")


def class_page(report: Report) -> Page:
    """Return what the page shows."""
    annotations = report.annotations
    labels, label_names = report.result.labels, annotations.classes[annotations.label]
    annotators, annotator_details = annotator_table(
        report, lone_labels(report), labels, label_names
    )
    items, item_details, names = class_items(report)
    files = downloads(report)
    samples = list(report.samples)
    if not files["labels"].columns:
        samples.append("There are too many labels to download here; use `dissensus aggregate`.")
    sections = [
        data_section(report),
        _labels_section(report),
        annotators_section(
            annotators,
            [] if report.camps is None else [report.camps.sentence],
            [*_camps(report), *_groups(report), *_copies(report)],
        ),
        Section(
            "items",
            "Items",
            [
                "Why annotators disagree: an ambiguous item splits good annotators between two "
                "classes, a hard one makes them err in many ways, and sometimes an annotator is "
                "unreliable and the item itself is clear. Click an item for all its labels."
            ],
            panels=[["item scores"]],
            table=items,
        ),
        _agreement_section(report),
    ]
    if report.evaluation is not None:
        words = titles("scores")
        scores = {words[name]: report.evaluation.scores.get(name) for name in _SCORES}
        scores_table = estimates_table("Scores against known labels", scores)
        panels: list[list[Table | str]] = [[scores_table, "calibration"]]
        sections.insert(2, Section("truth", "Known labels", panels=panels))
    if report.judging is not None:
        sections.insert(-1, judging_section(report.judging))
    if report.predictions is not None:
        sections.insert(-1, report.predictions.section())
    return Page(
        facts={
            "annotators": (amount(annotations.n_annotators), "annotators"),
            "items": (amount(annotations.n_items), "items"),
            "labels": (amount(len(annotations)), "labels"),
            "classes": (str(annotations.n_classes), "labels"),
            "alpha": (formatted(report.agreement["alpha"].value, ".2f"), "agreement"),
            "to label again": (amount(len(report.to_relabel)), "items"),
        },
        sections=sections,
        charts=report.charts,
        downloads=files,
        terms=("confidence", *["within"] * (annotations.scale == "ordinal"), *TERMS),
        method=report.result.method,
        actions=report.actions,
        samples=samples,
        picture="classes",
        data={
            "noun": "label",
            "alone": "Labels that nobody else gave",
            "classes": annotations.classes.tolist(),
            "annotators": annotator_details,
            "items": item_details,
            "names": names,
        },
    )


def annotators_section(
    table: SortableTable, sentences: Sequence[str] = (), subsections: Sequence[Section] = ()
) -> Section:
    """Return the section on annotators."""
    text = [
        "Annotators are compared with known labels, or else with the others, never with "
        "themselves. “Follows” is the correlation of their answers with these (0: they ignore the "
        "items, 1: they follow them exactly); verdicts rest on it, not on how often somebody "
        "agrees. Click a name for the evidence.",
        *sentences,
    ]
    return Section(
        "annotators",
        "Annotators",
        text,
        panels=[["annotators"], ["annotator scores"]],
        table=table,
        subsections=subsections,
    )


def _copies(report: Report) -> list[Section]:
    """Return a subsection on pairs who may have copied, if there are any."""
    copies = report.annotator_scores.copies
    rows = [
        (pair.one, pair.other, str(pair.common), str(pair.equal), f"{pair.expected:.0f}")
        for pair in ([] if copies is None else copies.pairs[:_MAX_COPIES])
    ]
    text = (
        "These pairs give equal labels, above all equal errors, more often than two people who "
        "work independently would. Labels do not show who copied from whom."
    )
    heads = ["one", "other", "items in common", "equal", "expected"]
    table = Table("Equal labels of suspiciously similar pairs", heads, rows, 2, "annotator", 2)
    return [Section("copies", "Suspiciously similar pairs", [text], panels=[[table]])] * bool(rows)


def data_section(report: Report | NumberReport) -> Section:
    """Return what was read, and the findings of the check."""
    reading, size = report.reading, report.check.labels_per_item
    other_questions = [name for name in reading.questions if name != reading.question]
    noun = "label" if report.noun == "label" else "answer"
    range_words = f"{size.least} to {size.most} {noun}s, {size.mean:.1f} on average"
    parts = (
        f"The file was read as {reading.format}." if reading.format not in IN_MEMORY else "",
        f"The question is {reading.question}." if reading.question else "",
        f"There are also: {', '.join(other_questions)}." if other_questions else "",
        f"An item has {amount(size.least, noun) if size.least == size.most else range_words}.",
    )
    text = [" ".join(filter(None, parts))]
    return Section("data", "Data", text, reading.notes, report.check.findings)


def _labels_section(report: Report) -> Section:
    """Return how labels were inferred, and how many of them are wrong."""
    result, errors = report.result, report.errors
    name = result.method.partition("[")[0]
    how = {
        "auto": "several methods together, each weighted by how well it predicts held-out labels",
        "majority": "majority vote",
    }.get(name, f"the method {result.method}, which weights annotators by their reliability")
    ended = "" if result.converged else " It had not converged when it was stopped."
    text = [f"Labels were inferred by {how}.{ended} {result.calibration}"]
    if errors.n_items and not report.has_camps:
        basis = "the certainty of labels alone, which can be off by a factor of two"
        if errors.n_checked:
            basis = f"their certainty and {amount(errors.n_checked, 'checked label')}"
        gold = " without gold" if report.reading.gold else ""
        step = " by more than one step" if report.annotations.scale == "ordinal" else ""
        text.append(
            f"Of {amount(errors.n_items, 'label')}{gold}, about {errors.expected:.0f} are "
            f"wrong{step} (90% interval {errors.low:.0f} to {errors.high:.0f}), judged by {basis}."
        )
    if result.unidentifiable is not None:
        text.append(" ".join(result.unidentifiable))
    notes = [*result.notes, "The command `dissensus compare` puts methods side by side."]
    return Section("labels", "Labels", text, panels=[["confidence"]], folded=notes)


def _camps(report: Report) -> list[Section]:
    """Return a subsection on the items that divide camps, if there are any."""
    camps = report.camps
    if camps is None or not report.has_camps:
        return []
    classes, items = camps.classes.tolist(), camps.items
    rows = [
        (
            items[dividing.item],
            *([shortened(report.texts.get(items[dividing.item]))] if report.texts else []),
            *(
                ", ".join(f"{x:.0%} “{name}”" for name, x in zip(classes, shares, strict=True) if x)
                for shares in dividing.shares
            ),
        )
        for dividing in camps.dividing[:_MAX_DIVIDING]
    ]
    text_head = ["text"] if report.texts else []
    camp_heads = [f"camp of {names[0]} and {len(names) - 1} more" for names in camps.members]
    heads = ["item", *text_head, *camp_heads]
    table = Table("Items that divide the camps most", heads, rows, 4, "item", 1)
    text = "Annotators of a camp agree with each other more than with the other camp."
    return [Section("camps", "Camps", [text], panels=[[table]])]


def _groups(report: Report) -> list[Section]:
    """Return a subsection on groups of annotators that were given, if there are any."""
    if report.groups is None:
        return []
    differences = [
        (column.column, difference)
        for column in report.groups.columns
        for difference in column.labels
    ]
    surest = sorted(differences, key=lambda pair: pair[1].p_value)[:_MAX_GROUPS]
    rows = [
        (
            *(column, difference.group, difference.label, f"{100 * difference.difference:+z.1f}"),
            interval(100 * difference.low, 100 * difference.high, "+z.1f"),
        )
        for column, difference in surest
    ]
    heads = ["column", "group", "label", "points more often", "95% interval"]
    caption = "Labels of groups, compared with others on the same items, the surest first"
    table = Table(caption, heads, rows, 3)
    text = report.groups.sentences
    return [Section("groups", "Groups", text, report.groups.notes, panels=[[table]])]


def _agreement_section(report: Report) -> Section:
    """Return coefficients, agreement by class, and figures of agreement."""
    agreement = report.agreement
    names = titles("agreement")
    if agreement.scale != "nominal":
        names["percent"] = _IN_PART
    estimates = {
        names.get(estimate.measure, estimate.measure): estimate for estimate in agreement.estimates
    }
    tables: list[Table | str] = [estimates_table("Coefficients, intervals over items", estimates)]
    if agreement.by == "class" and report.annotations.n_classes > 2:
        heads = ["class", "labels", "alpha", "interval"]
        by_class = [
            (part.name, str(part.n_labels), *with_interval(estimate))
            for part in agreement.parts
            if isinstance(part, ClassAgreement)
            for estimate in part.estimates
            if estimate.measure == "alpha"
        ]
        tables.append(Table("Every class against the rest", heads, by_class))
    equal = percent(percent_agreement(report.annotations))
    text = (
        f"{equal} of the pairs of labels on one item agree. "
        f"Beyond chance, agreement is {agreement.word or 'undefined'}."
    )
    panels: list[list[Table | str]] = [tables, ["confusion"]]
    if report.pairs is not None:
        panels += [[pairs_table(report.pairs)], ["agreement"]]
    return Section("agreement", "Agreement", [text], agreement.notes, panels=panels)
