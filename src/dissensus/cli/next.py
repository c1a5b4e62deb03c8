"""`dissensus next`."""

from __future__ import annotations

from pathlib import Path
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
    from ..planning import Plan

__all__ = ["next"]

_SHOWN = 8  # rows of the plan on the terminal
_MUCH = 0.5  # of the labels for one annotator is worth a word


@click.command("next")
@click.argument("path")
@click.option("--budget", type=float, default=100, show_default=True, help="What may be spent.")
@click.option(
    "--policy",
    "-s",
    default="joint",
    show_default=True,
    help="name[setting=value,…]; see `dissensus methods`.",
)
@click.option(
    "--cost", help="Of a label: a number, or a table of annotator and cost.  [default: 1]"
)
@click.option("--limit", help="Labels per annotator: a number, or a table of annotator and limit.")
@click.option("--per-item", type=click.IntRange(min=1), help="More labels of an item, at most.")
@click.option("--batch", type=click.IntRange(min=1), help="Labels to ask for now, at most.")
@click.option("--target", type=float, help="Accuracy that is enough, as 0.95.")
@click.option("--gold", help="Known labels that tell how far to believe the accuracy expected.")
@click.option("--least", type=float, help="Stop below so many nats per cost.")
@click.option(
    "--annotators",
    help="Who may be asked, with commas or a file of a name per line; also new ones.",
)
@click.option("--probabilities", help="What a classifier says of the items, for active-lab.")
@click.option("--draws", type=click.IntRange(min=0), default=10, show_default=True, help="Futures.")
@click.option("--output", "-o", help="Where the plan goes; the ending tells the format.")
@click.option("--chart", help="Also draw the curve, as .svg, .png or .html.")
@reading_options
@json_option
@seed_option
def next(  # noqa: A001
    path: str,
    budget: float,
    policy: str,
    cost: str | None,
    limit: str | None,
    per_item: int | None,
    batch: int | None,
    target: float | None,
    gold: str | None,
    least: float | None,
    annotators: str | None,
    probabilities: str | None,
    draws: int,
    output: str | None,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Say what to label next, by whom, and when to stop.

    The plan names pairs of an item and an annotator, those that promise most for their cost first.
    The curve says how right the labels are expected to be for other budgets.

    \b
    Example:
      dissensus next answers.csv --budget 200 --target 0.95 -o plan.csv
    """
    from ..planning import plan
    from ..readers import read_truth
    from ..reporting.charts import check_chart, save_chart

    if chart:
        check_chart(chart)
    annotations = read_annotations(path, **reading)
    with progress_bar("looking ahead", max(draws, 1)) as progress:
        found = plan(
            annotations,
            budget=budget,
            policy=policy,
            cost=_amounts(cost, "cost"),
            limit=_amounts(limit, "limit"),
            per_item=per_item,
            batch=batch,
            annotators=_names(annotators),
            probabilities=_probabilities(probabilities, annotations),
            target=target,
            gold=read_truth(gold) if gold else None,
            least=least,
            draws=draws,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )
    if output:
        from ..writers.table_files import write_columns

        write_columns(found.table, output)
    if chart:
        from ..reporting.curve import curve_chart

        save_chart(curve_chart(found), chart)
    if as_json:
        show_json(found.as_dict())
    elif output != "-":
        _print(found, written=output)
    if chart:
        note(f"drawn to {chart}")


def _amounts(given: str | None, what: str) -> Any:
    """Return a number, or a number for every annotator from a table."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    from ..readers.columns import NEEDED, find_columns
    from ..readers.sources import open_source
    from ..readers.tables import column_names, read_columns

    source = open_source(given)
    roles = {"annotator": NEEDED["annotator"], what: [what, "price", "amount", "max", "n_labels"]}
    columns = find_columns(column_names(source), roles, None, source.name)
    frame = read_columns(source, list(columns.values())).drop_nulls()
    amounts = {}
    for name, value in frame.select(columns["annotator"], columns[what]).iter_rows():
        try:
            amounts[str(name)] = float(value)
        except ValueError:
            raise source.fail(f"the {what} of {name!r} is {value!r}, not a number") from None
    return amounts


def _names(given: str | None) -> list[str] | None:
    """Return names, as they stand with commas or one on each line of a file."""
    if given is None:
        return None
    file = Path(given)
    texts = file.read_text("utf-8").splitlines() if file.is_file() else given.split(",")
    return [name.strip() for name in texts if name.strip()]


def _probabilities(file: str | None, annotations: Any) -> Any:
    if file is None:
        return None
    from ..readers.probabilities import read_probabilities

    return read_probabilities(file, annotations)


def _print(found: Plan, written: str | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"{len(found)} labels for {found.cost.sum():g}, by {escape(found.policy)}")
    table.add_column("item")
    table.add_column("annotator")
    for name in ("nats", "per cost", "now right", "then"):
        table.add_column(name, justify="right")
    columns = [values[:_SHOWN].tolist() for values in found.table.values()]
    for item, annotator, gain, ratio, _, before, after in zip(*columns, strict=True):
        shown = [f"{gain:.3f}", f"{ratio:.3g}", f"{before:.0%}", f"{after:.0%}"]
        table.add_row(escape(item), escape(annotator), *shown)
    if len(found) > _SHOWN:
        table.add_row("…", f"{len(found) - _SHOWN} more", *[""] * 4)
    console.print(table)
    if found.curve is not None:
        console.print(_curve(found))
    now, then = found.accuracy
    console.print(escape(found.reason))
    console.print(f"Expected to be right: {now:.1%} now, {then:.1%} with this plan.")
    if found.gap is not None:
        gap = found.gap
        told = f"{gap.right:.1%} of {gap.n_items} known items are right"
        console.print(f"{told}; the model is off by {gap.mean:+.1%} ± {gap.reach:.1%} there.")
    if found.target is not None and found.curve is not None and not found.stop:
        console.print(_told(found))
    for sentence in _cautions(found):
        console.print(f"Caution: {escape(sentence)}")
    if written:
        console.print(f"Plan written to {escape(written)}.")


def _curve(found: Plan) -> Any:
    from rich.table import Table

    table = Table(title="What more labels are expected to bring")
    for name in ("more labels", "cost", "right", "nine in ten futures"):
        table.add_column(name, justify="right")
    assert found.curve is not None
    for point in found.curve:
        between = f"{point.low:.1%} – {point.high:.1%}"
        table.add_row(f"{point.labels}", f"{point.cost:g}", f"{point.accuracy:.1%}", between)
    return table


def _told(found: Plan) -> str:
    assert found.curve is not None
    last = found.curve.points[-1]
    if found.reached is None:
        return f"{found.target:.1%} is not expected within {last.labels} more labels."
    where = found.reached
    return f"{found.target:.1%} is expected after {where.labels} more labels, for {where.cost:.4g}."


def _cautions(found: Plan) -> list[str]:
    """Return what a person should know before trusting the plan."""
    import numpy as np

    out = []
    if found.gap is None:
        out.append(
            "the accuracy is the model's own word; on 23 public sets it was 14 points too high in "
            "the mean. --gold measures that."
        )
    if len(found) < 2:
        return out
    load = np.bincount(found.annotator)
    busiest = int(load.argmax())
    if load[busiest] > _MUCH * len(found) and found.annotations.n_annotators > 1:
        name = found.annotations.annotators[busiest]
        out.append(f"{name} gets {load[busiest]} of {len(found)} labels; --limit spreads them.")
    return out
