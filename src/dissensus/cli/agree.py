"""`dissensus agree`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..base.storage import as_plain
from ..errors import OptionError
from ..pages.terminal import echo, interval, note, number, print_table, print_text, show_json
from .files import class_options, examine_answers, read_annotations
from .verb import ANSWERS, KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..metrics import Agreement, KindAgreement, Pairs
    from ..quality import Camps

_MOST = 15  # rows on a screen
_WIDE = 8  # annotators whose matrix fits a screen
_TITLES = {
    "item": "Items, those with least agreement first",
    "annotator": "Agreement with others, and measures without this annotator",
    "class": "Every class against the rest",
    "option": "Every option, chosen or not",
}


@click.command()
@click.argument("path")
@options(
    (
        *("per", "pairs", "min_overlap", "multiple", "repeats"),
        *("output", "chart", *ANSWERS, *READING, *KINDS, "json", "seed"),
    ),
    measures=Computed("percent, alpha, fleiss, ac1"),
    weights=Computed("those of the scale"),
    repeats=1000,
    confidence=0.95,
    interval="percentile",
)
def agree(
    path: str,
    measures: tuple[str, ...],
    weights: str | None,
    per: Any,
    pairs: bool,
    min_overlap: int | None,
    multiple: bool,
    repeats: int,
    confidence: float,
    interval: Any,
    output: str | None,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Measure how much annotators agree.

    Intervals come from resampling items with all their labels. Items may have any number of
    labels; those with fewer than two are not used. Answers of other kinds are compared by their
    distance, see docs/answers.md.

    \b
    Measures: percent, alpha (Krippendorff), fleiss, ac1 (Gwet), brennan-prediger,
    randolph, conger, cohen and scott (means over pairs of annotators).

    \b
    Example:
      dissensus agree answers.csv --measure alpha --per annotator
    """
    from .. import metrics as agreement
    from ..metrics.sections import pairs_chart
    from ..pages.charts import check_chart, save_chart
    from ..quality import camps

    if chart:
        check_chart(chart)
    _check_output(output)
    if pairs and per:
        raise OptionError("--pairs and --per are two tables; ask for one at a time")
    if multiple and (pairs or chart):
        raise OptionError("--multiple asks one question for each option; pairs need one question")
    answer_reading = None if multiple else examine_answers(path, **reading)
    if answer_reading is not None:
        from . import _answers

        refused = {"--measure": measures, "--weights": weights, "--pairs": pairs, "--chart": chart}
        _answers.refuse(refused, answer_reading.answers.kind)
        settings = {"resamples": repeats, "confidence": confidence, "seed": seed}
        rows = _answers.agree(
            answer_reading.answers, per=per, output=output, as_json=as_json, **settings
        )
        if output:
            _write(rows, output)
        return
    annotations = read_annotations(path, **class_options(path, reading))
    with progress_bar("resampling") as progress:
        measured = agreement.agree(
            annotations,
            measures or None,
            weights=weights,
            by=per,
            multiple=multiple,
            min_overlap=min_overlap or 1,
            resamples=repeats,
            confidence=confidence,
            interval=interval,
            seed=seed,
            progress=progress,
        )
    rows = measured.rows()
    two: Pairs | None = None
    if pairs or chart:
        weighting = weights or annotations.scale
        two = agreement.pairwise(annotations, "cohen", weights=weighting, min_overlap=min_overlap)
        rows = two.rows() if pairs else rows
        if chart:
            save_chart(pairs_chart(two), chart)
            note(f"drawn to {chart}")
    if output:
        _write(rows, output)
    ordered = annotations.scale != "nominal"
    camps_found = camps(annotations, ordered=ordered, seed=seed) if pairs else None
    kinds = () if multiple else agreement.agreement_by_kind(annotations, weights)
    if as_json:
        paired: dict[str, Any] = {"kinds": [kind._asdict() for kind in kinds]} if kinds else {}
        paired |= {} if camps_found is None else {"pairs": rows, "camps": camps_found.as_dict()}
        show_json(measured.as_dict() | as_plain(paired))
    elif output != "-":
        _print(measured)
        _print_kinds(kinds)
        if two is not None and camps_found is not None:
            _print_pairs(two, camps_found)


def _check_output(output: str | None) -> None:
    if output and output != "-" and not output.lower().endswith((".csv", ".json")):
        raise OptionError(f"{output}: the table is written as .csv or .json")


def _write(rows: list[dict[str, Any]], output: str) -> None:
    import csv
    import io
    import json

    from ..base.files import atomic_file

    if output.lower().endswith(".json"):
        body = json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    else:
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        body = text.getvalue()
    if output == "-":
        echo(body, end="")
        return
    with atomic_file(output) as draft:
        draft.write_text(body, encoding="utf-8")
    note(f"{len(rows)} rows written to {output}")


def _print(agreement: Agreement) -> None:
    from ..metrics import measures

    rows = []
    for estimate in agreement.estimates:
        title = measures[estimate.measure].title
        if estimate.measure == "ac1":
            nominal = agreement.scale == "nominal" and agreement.weights in (None, "identity")
            title += "1" if nominal else "2"
        between = interval(estimate.low, estimate.high, 3) or "–"
        rows.append((title, number(estimate.value), between, number(estimate.error)))
    head = "measure" if agreement.by != "option" else "mean over options"
    print_table(
        (head, ">value", f">{100 * agreement.confidence:g} % interval", ">error"),
        rows,
        f"{agreement.n_labels} labels by {agreement.n_annotators} annotators; "
        f"{agreement.n_paired} items have two or more",
    )
    _print_parts(agreement)
    names = [estimate.measure for estimate in agreement.estimates if estimate.measure != "percent"]
    if agreement.word and names:
        name = "alpha" if "alpha" in names else names[0]
        print_text(f"In the usual words, {name} is {agreement.word}.")
    for sentence in agreement.notes:
        print_text(f"Note: {sentence}.")


def _print_kinds(kinds: tuple[KindAgreement, ...]) -> None:
    rows = [(row.between, str(row.pairs), number(row.percent), number(row.kappa)) for row in kinds]
    if rows:
        columns = ("between", ">pairs", ">percent", ">Cohen's kappa")
        print_table(columns, rows, "People and models, means over pairs of annotators")


def _print_parts(agreement: Agreement) -> None:
    from ..metrics import ClassAgreement

    if not agreement.parts:
        return
    records = agreement.rows()
    if isinstance(agreement.parts[0], ClassAgreement):
        records = [
            {"name": part.name, "labels": part.n_labels}
            | {estimate.measure: estimate.value for estimate in part.estimates}
            for part in agreement.parts
            if isinstance(part, ClassAgreement)
        ]
    names = [name.removeprefix("without:").replace("_", " ") for name in records[0]][2:]
    rows = [
        (name, str(n_labels), *map(number, values))
        for name, n_labels, *values in (record.values() for record in records[:_MOST])
    ]
    columns = (agreement.by or "", ">labels", *(f">{name}" for name in names))
    print_table(columns, rows, _TITLES[agreement.by or ""])
    if len(agreement.parts) > _MOST:
        print_text(f"{len(agreement.parts) - _MOST} more; -o writes all.")


def _print_pairs(two: Pairs, camps_found: Camps) -> None:
    least = f"at least {two.min_overlap} common items"
    order = two.order().tolist()
    if len(order) <= _WIDE:
        names, full = [str(two.annotators[code]) for code in order], two.matrix()
        rows = [
            (name, *(number(full[code, column]) for column in order))
            for name, code in zip(names, order, strict=True)
        ]
        print_table(("", *(f">{name}" for name in names)), rows, f"Cohen's kappa, {least}")
    else:
        cells = [
            (str(row["one"]), str(row["other"]), f"{row['items']:.0f}", number(row["value"]))
            for row in two.rows()[:_MOST]
        ]
        columns = ("one", "other", ">items", ">kappa")
        print_table(columns, cells, f"Pairs who agree least, {least}")
    n_known = int(two.known.sum())
    print_text(
        f"{n_known} of {len(two)} pairs with common items have {least}; mean {number(two.mean)}."
    )
    print_text(camps_found.sentence)
