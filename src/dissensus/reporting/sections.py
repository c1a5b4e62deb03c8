"""The sections of a report: one list for every kind, and the page around it.

A section that a kind has not, or for which there is nothing to say, is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..judging.sections import judging_section
from ..metrics import ClassAgreement, percent_agreement
from ..metrics.sections import pairs_table
from ..pages.sections import Page, Section, Table, estimates_table
from ..pages.wording import amount, formatted, interval, percent, titles, with_interval
from ..quality.sections import shortened
from .consensus import consensus_table, plural
from .drawings import disputed_panels
from .parts import LABELS, OTHERS, part

if TYPE_CHECKING:
    from .report import Report

IN_MEMORY = ("annotations", "answers", "mapping", "table")  # formats without a file
_MAX_COPIES, _MAX_DIVIDING, _MAX_GROUPS = 20, 10, 12  # rows
_IN_PART = "agreement of pairs, near labels in part"
_SCORES = {  # against what is known: of other kinds all
    "classes": ("accuracy", "macro_f1", "log_loss", "brier", "ece"),
    "numbers": ("mae", "rmse", "pearson", "spearman"),
}
_KNOWN = {  # title and caption
    "classes": ("Known labels", "Scores against known labels"),
    "numbers": ("Known values", "Scores against known values"),
}
_COUNTED = {"classes": "label"}  # what an item has several of
_FACTS = {  # what answers are called, the sections of items and answers, what to look at again
    "classes": ("labels", "items", "labels", "to label again"),
    "numbers": ("answers", "items", "values", "items to answer again"),
}
_ANSWER_FACTS = ("answers", "disputed", "data", "disputed items")
_TERMS = {  # explained on the page
    "classes": ("confidence", "within", "follows", "verdicts", "alpha"),
    "numbers": ("error", "scatter", "level", "follows", "verdicts", "alpha"),
}
_ANSWER_TERMS = ("distance", "answer verdicts", "found", "distance alpha")
_CERTAIN = {"sets": "set", "masks": "mask", "texts": "text", "rankings": "ranking"}
_ALONE = {  # examples of what an annotator answered
    "classes": "Labels that nobody else gave",
    "numbers": "Answers that are farthest from the values",
}
_PICTURES = ("classes", "values", "scores", "confidence")  # beside the sentences: the first drawn
_COMPARE = "The command `dissensus compare` puts methods side by side."


def sections_of(report: Report) -> tuple[Section, ...]:
    """Return the sections after the opening."""
    judging, predictions = report.judging, report.predictions
    sections = (
        data_section(report),
        inferred_section(report),
        known_section(report),
        annotators_section(report),
        items_section(report),
        None if judging is None else judging_section(judging),
        None if predictions is None else predictions.section(),
        agreement_section(report),
    )
    return tuple(section for section in sections if section is not None)


def page_of(report: Report) -> Page:
    """Return what the page shows."""
    return Page(
        facts=facts(report),
        sections=sections_of(report),
        charts=report.charts,
        downloads=report.downloads,
        terms=terms(report),
        method=report.result.method,
        samples=samples(report),
        picture=next((name for name in _PICTURES if name in report.charts), ""),
        data=clicked(report),
    )


# Around the sections: key figures, terms, and what the script of the page has.


def facts(report: Report) -> Mapping[str, tuple[str, str]]:
    """Return key figures, and the sections that they open."""
    answers = report.answers
    counted, of_items, of_answers, to_see_again = _FACTS.get(report.kind, _ANSWER_FACTS)
    measured = "consensus" if report.agreement is None else "agreement"
    return {
        "annotators": (amount(answers.n_annotators), "annotators"),
        "items": (amount(answers.n_items), of_items),
        counted: (amount(len(answers)), of_answers),
        **extent(report),
        "alpha": (_alpha(report), measured),
        to_see_again: (amount(len(report.doubt.again)), of_items),
    }


@part
def extent(report: Report) -> Mapping[str, tuple[str, str]]:
    """Return how much there is to infer, or was inferred."""
    raise NotImplementedError


@extent.for_kind("classes")
def _n_classes(report: Report) -> Mapping[str, tuple[str, str]]:
    return {"classes": (str(report.answers.n_classes), "labels")}


@extent.for_kind("numbers")
def _nothing(_report: Report) -> Mapping[str, tuple[str, str]]:
    return {}


@extent.for_kind(*OTHERS)
def _n_rows(report: Report) -> Mapping[str, tuple[str, str]]:
    rows = next(iter(report.result.items.values()))
    return {f"{plural(report.noun)} in the consensus": (amount(len(rows)), "consensus")}


def _alpha(report: Report) -> str:
    agreement = report.agreement
    return "–" if agreement is None else formatted(agreement["alpha"].value, ".2f")


def terms(report: Report) -> tuple[str, ...]:
    """Return the terms that the page explains."""
    certain = (f"{_CERTAIN.get(report.kind, 'mark')} confidence", *_ANSWER_TERMS)
    absent = set() if report.doubt.ordered else {"within"}
    absent |= set() if "found" in report.result.annotators else {"found"}
    return tuple(term for term in _TERMS.get(report.kind, certain) if term not in absent)


def samples(report: Report) -> list[str] | None:
    """Return what was computed on a sample or left out; `None` where nothing ever is."""
    if report.samples is None:
        return None
    too_many = "There are too many labels to download here; use `dissensus aggregate`."
    return [*report.samples, *[too_many] * (not report.downloads["labels"].columns)]


def clicked(report: Report) -> Mapping[str, Any]:
    """Return what the page shows of annotators and items that are clicked."""
    if report.kind not in _ALONE:
        return {}
    _, annotators = report.annotator_rows
    _, items, names = report.item_rows
    words = {"noun": report.noun, "alone": _ALONE[report.kind]}
    if hasattr(report.answers, "classes"):
        words["classes"] = report.answers.classes.tolist()
    return words | {"annotators": annotators, "items": items, "names": names}


# Sections.


def data_section(report: Report) -> Section:
    """Return what was read, and the findings of the check."""
    reading, size = report.reading, report.answers.labels_per_item
    question = getattr(reading, "question", None)
    other_questions = [name for name in getattr(reading, "questions", ()) if name != question]
    few, most, noun = int(size.min()), int(size.max()), _COUNTED.get(report.kind, "answer")
    range_words = f"{few} to {most} {noun}s, {size.mean():.1f} on average"
    parts = (
        f"The file was read as {reading.format}." if reading.format not in IN_MEMORY else "",
        f"The question is {question}." if question else "",
        f"There are also: {', '.join(other_questions)}." if other_questions else "",
        "" if report.kind in LABELS else f"The answers are {report.kind}.",
        f"An item has {amount(few, noun) if few == most else range_words}.",
    )
    text = [" ".join(filter(None, parts))]
    return Section("data", "Data", text, reading.notes, report.check.findings)


@part
def inferred_section(report: Report) -> Section:
    """Return how what is true was inferred, and how sure it is."""
    raise NotImplementedError


@inferred_section.for_kind("classes")
def _labels(report: Report) -> Section:
    """Return how labels were inferred, and how many of them are wrong."""
    result, errors = report.result, report.doubt.errors
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
        step = " by more than one step" if report.doubt.ordered else ""
        text.append(
            f"Of {amount(errors.n_items, 'label')}{gold}, about {errors.expected:.0f} are "
            f"wrong{step} (90% interval {errors.low:.0f} to {errors.high:.0f}), judged by {basis}."
        )
    if result.unidentifiable is not None:
        text.append(" ".join(result.unidentifiable))
    notes = [*result.notes, _COMPARE]
    return Section("labels", "Labels", text, panels=[["confidence"]], folded=notes)


@inferred_section.for_kind("numbers")
def _values(report: Report) -> Section:
    """Return how values were estimated."""
    method = report.result.method
    how = {"mean": "the mean of its answers", "median": "the median of its answers"}
    text = f"The value of an item is {how.get(method, f'estimated by the method {method}')}."
    return Section("values", "Values", [text])


@inferred_section.for_kind(*OTHERS)
def _consensus(report: Report) -> Section:
    """Return how the consensus was found, and its rows, the least certain first."""
    result, errors = report.result, report.errors
    ended = "" if result.converged or not result.trace else " It had not converged when it stopped."
    text = [f"The consensus was found by the method {result.method}.{ended}"]
    if errors is not None and errors.n_items and report.evaluation is None:
        text.append(
            f"Of {amount(errors.n_items, report.noun)}, about {errors.expected:.0f} are wrong "
            f"({errors.low:.0f} to {errors.high:.0f}), judged by their confidence alone, which can "
            "be off by a factor of two."
        )
    table, notes = consensus_table(report), [*result.notes, _COMPARE]
    return Section("consensus", "Consensus", text, table=table, folded=notes)


def known_section(report: Report) -> Section | None:
    """Return scores against what is known, and calibration."""
    evaluation = report.evaluation
    if evaluation is None:
        return None
    title, caption = _KNOWN.get(report.kind, ("Known answers", "Scores of the consensus"))
    words, scores = titles("scores"), evaluation.scores
    by_title = {words[name]: scores.get(name) for name in _SCORES.get(report.kind, scores)}
    forms = {words[name]: form for name, form in report.doubt.forms.items()}
    panel: list[Table | str] = [estimates_table(caption, by_title, forms)]
    panel += ["calibration"] * ("calibration" in report.charts)
    return Section("truth", title, panels=[panel])


@part
def annotators_section(report: Report) -> Section:
    """Return the annotators."""
    raise NotImplementedError


@annotators_section.for_kind(*LABELS)
def _who_labelled(report: Report) -> Section:
    text = [
        "Annotators are compared with known labels, or else with the others, never with "
        "themselves. “Follows” is the correlation of their answers with these (0: they ignore the "
        "items, 1: they follow them exactly); verdicts rest on it, not on how often somebody "
        "agrees. Click a name for the evidence.",
        *([] if report.camps is None else [report.camps.sentence]),
    ]
    return Section(
        "annotators",
        "Annotators",
        text,
        panels=[["annotators"], ["annotator scores"]],
        table=report.annotator_rows[0],
        subsections=[*_camps(report), *_groups(report), *_copies(report)],
    )


@annotators_section.for_kind(*OTHERS)
def _who_answered(report: Report) -> Section:
    text = [
        "Annotators are compared with the consensus and with others on the same items. “More "
        "distant” is by how much the distance of their answers to others exceeds the mean distance "
        "of the items they answered. A verdict needs the whole interval of what speaks for it, and "
        "does not say who is right."
    ]
    table = report.annotator_rows[0]
    return Section("annotators", "Annotators", text, panels=[["annotators"]], table=table)


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


@part
def items_section(report: Report) -> Section:
    """Return the items, the most doubtful first."""
    raise NotImplementedError


@items_section.for_kind("classes")
def _labelled(report: Report) -> Section:
    text = [
        "Why annotators disagree: an ambiguous item splits good annotators between two classes, a "
        "hard one makes them err in many ways, and sometimes an annotator is unreliable and the "
        "item itself is clear. Click an item for all its labels."
    ]
    table = report.item_rows[0]
    return Section("items", "Items", text, panels=[["item scores"]], table=table)


@items_section.for_kind("numbers")
def _valued(report: Report) -> Section:
    table = report.item_rows[0]
    return Section("items", "Items", ["Click an item for all its answers."], table=table)


@items_section.for_kind(*OTHERS)
def _disputed_items(report: Report) -> Section:
    return _disputed(report, "Disputed items")


@items_section.for_kind("rankings")
def _disputed_questions(report: Report) -> Section:
    return _disputed(report, "Disputed questions")


def _disputed(report: Report, title: str) -> Section:
    """Return the items whose answers differ most, drawn."""
    n_shown, n_disputed = len(report.doubt.most_disputed), len(report.doubt.again)
    if not n_shown:
        words = ["No two answers to an item differ, or no item has two."]
        return Section("disputed", title, words)
    opening = "This is the item" if n_shown == 1 else f"These are the {n_shown} items"
    words = [f"{opening} whose answers differ most, by their mean distance."]
    if n_disputed:
        words.append(
            f"On {amount(n_disputed, 'item')} of three answers or more, these differ as much as "
            "answers to different items do."
        )
    return Section("disputed", title, words, panels=disputed_panels(report))


@part
def agreement_section(report: Report) -> Section | None:
    """Return measures of agreement."""
    raise NotImplementedError


@agreement_section.for_kind("numbers")
def _agreement_on_numbers(report: Report) -> Section | None:
    alpha = {"Krippendorff's alpha for numbers": report.agreement["alpha"]}
    table = estimates_table("Coefficient, interval over items", alpha)
    text = f"Beyond chance, agreement is {report.agreement.word or 'undefined'}."
    return Section("agreement", "Agreement", [text], report.agreement.notes, panels=[[table]])


@agreement_section.for_kind(*OTHERS)
def _agreement_on_answers(report: Report) -> Section | None:
    agreement = report.agreement
    if agreement is None:
        return None
    names = titles("distances")
    estimates = {names[estimate.measure]: estimate for estimate in agreement.estimates}
    table = estimates_table("Measures, intervals over items", estimates)
    paired = f"{amount(agreement.n_paired, 'item')} have two answers or more."
    return Section("agreement", "Agreement", [paired], agreement.notes, panels=[[table]])


@agreement_section.for_kind("classes")
def _agreement_on_classes(report: Report) -> Section:
    """Return coefficients, agreement by class, and figures of agreement."""
    agreement = report.agreement
    names = titles("agreement")
    if agreement.scale != "nominal":
        names["percent"] = _IN_PART
    estimates = {
        names.get(estimate.measure, estimate.measure): estimate for estimate in agreement.estimates
    }
    tables: list[Table | str] = [estimates_table("Coefficients, intervals over items", estimates)]
    if agreement.by == "class" and report.answers.n_classes > 2:
        heads = ["class", "labels", "alpha", "interval"]
        by_class = [
            (part.name, str(part.n_labels), *with_interval(estimate))
            for part in agreement.parts
            if isinstance(part, ClassAgreement)
            for estimate in part.estimates
            if estimate.measure == "alpha"
        ]
        tables.append(Table("Every class against the rest", heads, by_class))
    equal = percent(percent_agreement(report.answers))
    text = (
        f"{equal} of the pairs of labels on one item agree. "
        f"Beyond chance, agreement is {agreement.word or 'undefined'}."
    )
    panels: list[list[Table | str]] = [tables, ["confusion"]]
    if report.pairs is not None:
        panels += [[pairs_table(report.pairs)], ["agreement"]]
    return Section("agreement", "Agreement", [text], agreement.notes, panels=panels)
