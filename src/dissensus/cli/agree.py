"""`dissensus agree`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from ._shared import (
    json_option,
    note,
    progress_bar,
    read_annotations,
    reading_options,
    seed_option,
    show_json,
)

if TYPE_CHECKING:
    from ..agreement import Agreement, Clusters, Estimate, Pairs

__all__ = ["agree"]

_MOST = 15  # rows on a screen
_WIDE = 8  # annotators whose matrix fits a screen


@click.command()
@click.argument("path")
@click.option(
    "--measure",
    "-m",
    "names",
    multiple=True,
    help="Which one; again for every measure.  [default: percent, alpha, fleiss, ac1]",
)
@click.option(
    "--level",
    type=click.Choice(["nominal", "ordinal", "interval", "ratio"]),
    default="nominal",
    show_default=True,
    help="What labels are.",
)
@click.option(
    "--weights",
    type=click.Choice(["identity", "linear", "quadratic", "ordinal", "ratio"]),
    help="For measures other than alpha.  [default: as the level says]",
)
@click.option(
    "--by", type=click.Choice(["item", "annotator", "class"]), help="Break it down as well."
)
@click.option("--pairs", is_flag=True, help="Annotators two by two, and groups of them.")
@click.option("--min-overlap", type=click.IntRange(min=1), help="Common items that a pair needs.")
@click.option("--multiple", is_flag=True, help="Labels name several options, as in a|b.")
@click.option(
    "--resamples",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="For intervals; 0 for none.",
)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="What intervals cover."
)
@click.option(
    "--interval",
    type=click.Choice(["percentile", "bca"]),
    default="percentile",
    show_default=True,
    help="How they are made.",
)
@click.option("--output", "-o", help="Write the table that is shown, whole: .csv or .json.")
@click.option("--chart", help="Heat map of pairs: .svg, .png or .html.")
@reading_options
@json_option
@seed_option
def agree(
    path: str,
    names: tuple[str, ...],
    level: str,
    weights: str | None,
    by: Any,
    pairs: bool,
    min_overlap: int | None,
    multiple: bool,
    resamples: int,
    confidence: float,
    interval: Any,
    output: str | None,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Say how much annotators agree, in several measures.

    Intervals come from items drawn anew, with all their labels. Items may have any number of
    labels; those with fewer than two say nothing.

    \b
    Measures: percent, alpha (Krippendorff), fleiss, ac1 (Gwet), brennan-prediger,
    randolph, conger, cohen and scott (means over pairs of annotators).

    \b
    Example:
      dissensus agree answers.csv --measure alpha --by annotator
    """
    from .. import agreement

    _check(output, chart, pairs, by, multiple)
    annotations = read_annotations(path, **reading)
    with progress_bar("drawing items", resamples) as progress:
        found = agreement.agree(
            annotations,
            names or None,
            scale=level,
            weights=weights,
            by=by,
            multiple=multiple,
            min_overlap=min_overlap or 1,
            resamples=resamples,
            confidence=confidence,
            interval=interval,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )
    two: Pairs | None = None
    groups: Clusters | None = None
    if pairs or chart:
        wish = weights or level
        two = agreement.pairwise(annotations, "cohen", weights=wish, min_overlap=min_overlap)
        groups = agreement.cluster(two)
    if chart and two is not None and groups is not None:
        from ..reporting.charts import pairs_chart, save_chart

        save_chart(pairs_chart(two, groups), chart)
        note(f"drawn to {chart}")
    rows = two.rows() if pairs and two is not None else found.rows()
    if output:
        _write(rows, output)
    if as_json:
        beside = {"pairs": rows, "groups": groups.as_dict()} if pairs and groups else {}
        show_json(found.as_dict() | beside)
    elif output != "-":
        _print(found)
        if pairs and two is not None and groups is not None:
            _print_pairs(two, groups)


def _check(output: str | None, chart: str | None, pairs: bool, by: str | None, many: bool) -> None:
    """Say what cannot be before anything is read."""
    from ..errors import OptionError
    from ..reporting.charts import check_chart

    if chart:
        check_chart(chart)
    if output and output != "-" and not output.lower().endswith((".csv", ".json")):
        raise OptionError(f"{output}: the table is written as .csv or .json")
    if pairs and by:
        raise OptionError("--pairs and --by are two tables; ask for one at a time")
    if many and (pairs or chart):
        raise OptionError("--multiple asks one question for each option; pairs need one question")


def _write(rows: list[dict[str, Any]], output: str) -> None:
    import csv
    import io
    import json

    from .._files import atomic_file

    if output.lower().endswith(".json"):
        body = json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    else:
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        body = text.getvalue()
    if output == "-":
        click.echo(body, nl=False)
        return
    with atomic_file(output) as draft:
        draft.write_text(body, encoding="utf-8")
    note(f"{len(rows)} rows written to {output}")


def _print(found: Agreement) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..agreement import measures

    console = Console(highlight=False)
    table = Table(
        title=f"{found.n_labels} labels by {found.n_annotators} annotators; "
        f"{found.n_paired} items have two or more"
    )
    table.add_column("measure" if found.by != "option" else "mean over options")
    for column in ("value", f"{100 * found.confidence:g} % interval", "error"):
        table.add_column(column, justify="right")
    for one in found.estimates:
        title = measures[one.measure].title
        if one.measure == "ac1":
            title += (
                "1" if found.scale == "nominal" and found.weights in (None, "identity") else "2"
            )
        table.add_row(title, _number(one.value), _between(one), _number(one.error))
    console.print(table)
    _print_parts(found, console)
    if found.word and any(one.measure != "percent" for one in found.estimates):
        told = next((one for one in found.estimates if one.measure == "alpha"), None)
        name = (
            "alpha"
            if told
            else next(one.measure for one in found.estimates if one.measure != "percent")
        )
        console.print(f"In the usual words, {name} is {found.word}.")
    for sentence in found.notes:
        console.print(f"Note: {escape(sentence)}.")


def _print_parts(found: Agreement, console: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ..agreement import AnnotatorAgreement, ClassAgreement

    if not found.parts:
        return
    names = [one.measure for one in found.estimates]
    table = Table(title=_TITLES[found.by or ""])
    table.add_column(found.by or "", overflow="fold")
    table.add_column("labels", justify="right")
    first = found.parts[0]
    if isinstance(first, AnnotatorAgreement):
        names = ["with others", *names]
    elif not isinstance(first, ClassAgreement):
        names = ["agreement"]
    for name in names:
        table.add_column(name, justify="right")
    for part in found.parts[:_MOST]:
        if isinstance(part, ClassAgreement):
            cells = [_number(one.value) for one in part.estimates]
        elif isinstance(part, AnnotatorAgreement):
            cells = [_number(value) for value in (part.with_others, *part.without.values())]
        else:
            cells = [_number(part.agreement)]
        table.add_row(escape(part.name), str(part.n_labels), *cells)
    console.print(table)
    more = len(found.parts) - _MOST
    if more > 0:
        console.print(f"{more} more; -o writes all.")


_TITLES = {
    "item": "Items, those with least agreement first",
    "annotator": "Agreement with others, and measures without this annotator",
    "class": "Every class against the rest",
    "option": "Every option, chosen or not",
}


def _print_pairs(two: Pairs, groups: Clusters) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    least = f"at least {two.min_overlap} common items"
    if len(groups.order) <= _WIDE:
        table = Table(title=f"Cohen's kappa, {least}")
        table.add_column("", overflow="fold")
        full = two.matrix()
        for who in groups.order.tolist():
            table.add_column(escape(two.annotators[who]), justify="right", overflow="fold")
        for who in groups.order.tolist():
            cells = [_number(full[who, other]) for other in groups.order.tolist()]
            table.add_row(escape(two.annotators[who]), *cells)
    else:
        table = Table(title=f"Pairs who agree least, {least}")
        for name in ("one", "other"):
            table.add_column(name, overflow="fold")
        for name in ("items", "kappa"):
            table.add_column(name, justify="right")
        for row in two.rows()[:_MOST]:
            one, other = (escape(str(row[side])) for side in ("one", "other"))
            table.add_row(one, other, f"{row['items']:.0f}", _number(row["value"] or math.nan))
    console.print(table)
    known = int(two.known.sum())
    console.print(f"{known} of {len(two)} pairs who met have {least}; mean {_number(two.mean)}.")
    if groups.n_clusters > 1:
        console.print(
            f"{groups.n_clusters} groups of annotators (silhouette {groups.silhouette:.2f}): "
            f"{' and '.join(str(size) for size in groups.sizes)} annotators."
        )
    else:
        console.print("No groups of annotators stand apart.")


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def _between(one: Estimate) -> str:
    return "–" if math.isnan(one.low) else f"{one.low:.3f} to {one.high:.3f}"
