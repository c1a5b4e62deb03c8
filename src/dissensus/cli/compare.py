"""`dissensus compare`."""

from __future__ import annotations

from typing import Any

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

__all__ = ["compare"]

_WIDE = 100  # columns of a terminal that has room for everything


@click.command()
@click.argument("path")
@click.option(
    "--strategy",
    "-s",
    "strategies",
    multiple=True,
    help="name[setting=value,…]; again for every method.  [default: a few of each kind]",
)
@click.option("--truth", help="Known labels to score with; no method sees them.")
@click.option("--gold", help="Known labels that methods may use.")
@click.option("--folds", default=5, show_default=True, help="Parts in which labels are left out.")
@click.option("--seeds", default=1, show_default=True, help="How often these are dealt anew.")
@click.option("--chart", help="Also draw it: .svg, .png or .html.")
@reading_options
@json_option
@seed_option
def compare(
    path: str,
    strategies: tuple[str, ...],
    truth: str | None,
    gold: str | None,
    folds: int,
    seeds: int,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Lay methods side by side, with or without truth.

    Without truth, methods are scored by how well they foresee labels that were left out. What
    cannot be told apart is said, and so is what in the data speaks for caution.

    \b
    Example:
      dissensus compare answers.csv -s majority -s dawid-skene --truth truth.csv
    """
    from .. import comparison
    from ..readers import read_truth
    from ..reporting.charts import check_chart
    from ..reporting.method_figures import methods_figure

    if chart:
        check_chart(chart)
    annotations = read_annotations(path, **reading)
    chosen = strategies or comparison.USUAL
    with progress_bar("comparing", len(chosen) * folds * seeds) as progress:
        found = comparison.compare(
            annotations,
            chosen,
            truth=read_truth(truth) if truth else None,
            gold=read_truth(gold) if gold else None,
            folds=folds,
            seeds=seeds,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )
    drawn = methods_figure(found) if chart else None
    if chart and drawn is not None:
        drawn.save(chart)
    if as_json:
        show_json(found.as_dict())
    else:
        _print(found, with_truth=truth is not None)
    if drawn is not None:
        note(f"drawn to {chart}")


def _print(found: Any, *, with_truth: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    with_memory = not with_truth or console.width >= _WIDE
    table = Table(
        title=f"{found.n_scored} left-out labels foreseen by {len(found.methods)} methods"
    )
    table.add_column("method", overflow="fold")
    names = ["log\nchance", "behind\nbest", "with\nmost %", "ms"]
    names += ["MB"] * with_memory + ["accuracy %"] * with_truth
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.methods:
        row = [
            f"[bold]{escape(one.method)}[/bold]" if one.alike else escape(one.method),
            f"{one.held_out:.4f}",
            f"{one.behind:.4f}±{one.error:.4f}",
            f"{100 * one.agreement:.1f}",
            f"{1000 * one.seconds:.0f}",
        ]
        if with_memory:
            row.append(f"{one.megabytes:.1f}")
        if with_truth:
            value, low, high = (100 * number for number in one.evaluation.scores["accuracy"])
            row.append(f"{value:.1f} ({low:.1f}–{high:.1f})")
        table.add_row(*row)
    console.print(table)
    console.print(escape(found.verdict))
    for sign in found.signs:
        console.print(f"Caution: {escape(sign)}")
    if found.contested:
        console.print("\nItems on which they disagree most:")
        for one in found.contested[:5]:
            told = "; ".join(f"{label}: {len(who)}" for label, who in one.labels.items())
            console.print(f"  {escape(one.item)}  {escape(told)}")
