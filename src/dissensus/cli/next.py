"""`dissensus next`."""

from __future__ import annotations

from typing import Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import note, print_text, show_json
from .files import read_known, read_probabilities, split_names, write_table
from .verb import ANSWERS, KINDS, READING, Computed, options

_BY_ANNOTATOR = ("classes",)  # kinds whose plan names annotators


@click.command("next")
@click.argument("path")
@options(
    (
        *("strategy", "limit", "per_item", "batch", "truth"),
        *("min_gain", "among", "probabilities", "output", "chart"),
        *(*ANSWERS, *READING, *KINDS, "json", "seed"),
    ),
    budget=100.0,
    target=0.95,
    strategy="joint",
    cost=Computed("1"),
    draws=10,
)
def next(  # noqa: A001
    path: str,
    budget: float,
    strategy: str,
    cost: str | None,
    limit: str | None,
    per_item: int | None,
    batch: int | None,
    target: float,
    truth: str | None,
    min_gain: float | None,
    among: str | None,
    probabilities: str | None,
    draws: int,
    output: str | None,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Plan what to label next, by which annotator, and when to stop.

    The plan lists pairs of item and annotator, the largest expected gain per cost first. The curve
    predicts the accuracy for other budgets. Known labels (--truth) correct the expected accuracy;
    nothing is learned from them. --among may name new annotators. Of answers of other kinds it
    lists the items to show again, by the expected distance of answers.

    \b
    Example:
      dissensus next answers.csv --budget 200 --target 0.95 -o plan.csv
    """
    from ..pages.charts import check_chart, save_chart
    from ..planning import plan
    from ..planning.sections import curve_chart
    from ._answers import refuse
    from .files import read_any

    if chart:
        check_chart(chart)
    answers = read_any(path, **reading)
    refuse({"--chart": chart, "--probabilities": probabilities}, answers)
    people = split_names(among)
    if people is None and getattr(answers, "mixed_kinds", False) and answers.kind in _BY_ANNOTATOR:
        people = answers.annotators[~answers.is_kind("model")].tolist()
        note("only people are asked; --among names others, too")
    with progress_bar("sampling") as progress:
        proposal = plan(
            answers,
            budget=budget,
            policy=strategy,
            cost=_amounts(cost, "cost"),
            limit=_amounts(limit, "limit"),
            per_item=per_item,
            batch=batch,
            annotators=people,
            probabilities=read_probabilities(probabilities, answers),
            target=target,
            truth=read_known(truth, answers),
            min_gain=min_gain,
            draws=draws,
            seed=seed,
            progress=progress,
        )
    write_table(proposal.table, output)
    if as_json:
        show_json(proposal.as_dict())
    elif output != "-":
        proposal.show()
        if output:
            print_text(f"Plan written to {output}.")
    if chart:
        save_chart(curve_chart(proposal), chart)
        note(f"drawn to {chart}")


def _amounts(amount: str | None, role: str) -> Any:
    """Return a number, or a number for every annotator from a table."""
    if amount is None:
        return None
    try:
        return float(amount)
    except ValueError:
        from ..formats.side_tables import read_amounts

        return read_amounts(amount, role)
