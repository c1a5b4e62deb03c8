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
    *("per --by", "pairs", "min_overlap", "multiple", "repeats --resamples"),
    *("output", "chart", *ANSWERS, *READING, *KINDS, "scale --level", "json", "seed"),
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
    if output and output != "-" and not output.lower().endswith((".csv", ".json")):
        raise OptionError(f"{output}: the table is written as .csv or .json")
    if pairs and per:
        raise OptionError("--pairs and --per are two tables; ask for one at a time")
    if multiple and (pairs or chart):
        raise OptionError("--multiple asks one question for each option; pairs need one question")
    given = None if multiple else examine_answers(path, **reading)
    if given is not None:
        from . import _answers

        refused = {"--measure": measures, "--weights": weights, "--pairs": pairs, "--chart": chart}
        _answers.refuse(refused, given.answers.kind)
        settings = {"resamples": repeats, "confidence": confidence, "seed": seed}
        rows = _answers.agree(given.answers, per=per, output=output, as_json=as_json, **settings)
        if output:
            _write(rows, output)
        return
    annotations = read_annotations(path, **class_options(path, reading))
    with progress_bar("resampling") as progress:
        found = agreement.agree(
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
    rows = found.rows()
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
    camped = (
        camps(annotations, ordered=annotations.scale != "nominal", seed=seed) if pairs else None
    )
    kinds = () if multiple else agreement.agreement_by_kind(annotations, weights)
    if as_json:
        paired: dict[str, Any] = {"kinds": [one._asdict() for one in kinds]} if kinds else {}
        paired |= {} if camped is None else {"pairs": rows, "camps": camped.as_dict()}
        show_json(found.as_dict() | as_plain(paired))
    elif output != "-":
        _print(found)
        _print_kinds(kinds)
        if two is not None and camped is not None:
            _print_pairs(two, camped)


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


def _print(found: Agreement) -> None:
    from ..metrics import measures

    rows = []
    for one in found.estimates:
        title = measures[one.measure].title
        if one.measure == "ac1":
            nominal = found.scale == "nominal" and found.weights in (None, "identity")
            title += "1" if nominal else "2"
        between = interval(one.low, one.high, 3) or "–"
        rows.append((title, number(one.value), between, number(one.error)))
    first = "measure" if found.by != "option" else "mean over options"
    print_table(
        (first, ">value", f">{100 * found.confidence:g} % interval", ">error"),
        rows,
        f"{found.n_labels} labels by {found.n_annotators} annotators; "
        f"{found.n_paired} items have two or more",
    )
    _print_parts(found)
    names = [one.measure for one in found.estimates if one.measure != "percent"]
    if found.word and names:
        name = "alpha" if "alpha" in names else names[0]
        print_text(f"In the usual words, {name} is {found.word}.")
    for sentence in found.notes:
        print_text(f"Note: {sentence}.")


def _print_kinds(kinds: tuple[KindAgreement, ...]) -> None:
    rows = [(one.between, str(one.pairs), number(one.percent), number(one.kappa)) for one in kinds]
    if rows:
        columns = ("between", ">pairs", ">percent", ">Cohen's kappa")
        print_table(columns, rows, "People and models, means over pairs of annotators")


def _print_parts(found: Agreement) -> None:
    from ..metrics import ClassAgreement

    if not found.parts:
        return
    records = found.rows()
    if isinstance(found.parts[0], ClassAgreement):
        records = [
            {"name": part.name, "labels": part.n_labels}
            | {one.measure: one.value for one in part.estimates}
            for part in found.parts
            if isinstance(part, ClassAgreement)
        ]
    names = [name.removeprefix("without:").replace("_", " ") for name in records[0]][2:]
    rows = [
        (name, str(n_labels), *map(number, values))
        for name, n_labels, *values in (record.values() for record in records[:_MOST])
    ]
    columns = (found.by or "", ">labels", *(f">{name}" for name in names))
    print_table(columns, rows, _TITLES[found.by or ""])
    if len(found.parts) > _MOST:
        print_text(f"{len(found.parts) - _MOST} more; -o writes all.")


def _print_pairs(two: Pairs, camped: Camps) -> None:
    least = f"at least {two.min_overlap} common items"
    order = two.order().tolist()
    if len(order) <= _WIDE:
        names, full = [str(two.annotators[code]) for code in order], two.matrix()
        rows = [
            (name, *(number(full[code, other]) for other in order))
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
    known = int(two.known.sum())
    print_text(
        f"{known} of {len(two)} pairs with common items have {least}; mean {number(two.mean)}."
    )
    print_text(camped.sentence)
