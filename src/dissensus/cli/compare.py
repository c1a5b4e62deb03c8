"""`dissensus compare`."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import note, number, print_table, print_text, show_json
from .files import class_options, examine_answers, read_annotations, read_known
from .verb import ANSWERS, READING, Computed, options

if TYPE_CHECKING:
    from ..aggregation.comparison import Comparison

_WIDE = 100  # columns of a terminal with room for everything


@click.command()
@click.argument("path")
@options(
    ("truth", "gold", "repeats", "chart", *ANSWERS, *READING, "json", "seed"),
    strategies=Computed("common methods of every kind"),
    folds=5,
    repeats=1,
)
def compare(
    path: str,
    strategies: tuple[str, ...],
    truth: str | None,
    gold: str | None,
    folds: int,
    repeats: int,
    chart: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Compare methods, with or without known labels.

    Methods are scored by the likelihood of held-out labels. The verdict says which methods cannot
    be distinguished, and what in the data calls for caution. Repeat -s for several methods. Answers
    of other kinds: one in --folds is left out, and the consensus is compared with it.

    \b
    Example:
      dissensus compare answers.csv -s majority -s dawid-skene --truth truth.csv
    """
    from ..aggregation import comparison
    from ..aggregation.sections import methods_figure
    from ..pages.charts import check_chart

    if chart:
        check_chart(chart)
    answer_reading = examine_answers(path, **reading)
    if answer_reading is not None:
        from . import _answers

        _answers.refuse({"--chart": chart, "--repeats": repeats > 1}, answer_reading.answers.kind)
        settings: dict[str, Any] = {
            "truth": truth,
            "gold": gold,
            "inputs": reading["inputs"],
            "folds": folds,
        }
        _answers.compare(answer_reading.answers, strategies, as_json=as_json, seed=seed, **settings)
        return
    annotations = read_annotations(path, **class_options(path, reading))
    with progress_bar("comparing") as progress:
        compared = comparison.compare(
            annotations,
            strategies or comparison.default_methods(annotations),
            truth=read_known(truth, annotations),
            gold=read_known(gold, annotations),
            folds=folds,
            seeds=repeats,
            seed=seed,
            progress=progress,
        )
    if as_json:
        show_json(compared.as_dict())
    else:
        _print(compared, with_truth=truth is not None)
    if chart and (drawn := methods_figure(compared)) is not None:
        drawn.save(chart)
        note(f"drawn to {chart}")


def _print(comparison: Comparison, *, with_truth: bool) -> None:
    from shutil import get_terminal_size

    from rich.text import Text

    with_memory = not with_truth or get_terminal_size().columns >= _WIDE
    columns = ["method", ">log\nlik.", ">behind\nbest", ">with\nmost %", ">ms"]
    ordered = any(
        "distance" in method.evaluation.scores for method in comparison.methods if method.evaluation
    )
    rows = []
    for method in comparison.methods:
        row: list[Any] = [
            Text(method.method, "bold" if method.tied else ""),
            number(method.held_out, 4),
            f"{number(method.gap, 4)}±{number(method.error, 4)}" if isfinite(method.error) else "–",
            number(100 * method.agreement, 1),
            number(1000 * method.seconds, 0),
        ]
        if with_memory:
            row.append(f"{method.megabytes:.1f}")
        if with_truth and method.evaluation is not None:
            value, low, high = (
                100 * number for number in method.evaluation.scores["accuracy"] or ()
            )
            row.append(f"{number(value, 1)} ({number(low, 1)}–{number(high, 1)})")
            if distance := method.evaluation.scores.get("distance"):
                row.append(f"{distance.value:.2f}")
        rows.append(row)
    columns += [">MB"] * with_memory + [">accuracy %"] * with_truth + [">steps\noff"] * ordered
    title = f"{comparison.n_scored} held-out labels predicted by {len(comparison.methods)} methods"
    print_table(columns, rows, title)
    print_text(comparison.verdict)
    for sign in comparison.warnings:
        print_text(f"Caution: {sign}")
    if comparison.contested:
        print_text("\nItems on which they disagree most:")
        for contested in comparison.contested[:5]:
            votes = (f"{label}: {len(methods)}" for label, methods in contested.labels.items())
            print_text(f"  {contested.item}  {'; '.join(votes)}")
