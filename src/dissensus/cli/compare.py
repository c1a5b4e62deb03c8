"""`dissensus compare`."""

from __future__ import annotations

from typing import Any

import click

from ..base.progress import progress_bar
from ..pages.terminal import note, show_json
from .verb import ANSWERS, READING, Computed, options


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
    from ..aggregation.comparison import compare, default_methods
    from ..pages.charts import check_chart
    from .files import read_any, read_any_known

    if chart:
        check_chart(chart)
    answers = read_any(path, **reading)
    with progress_bar("comparing") as progress:
        compared = compare(
            answers,
            strategies or default_methods(answers),
            truth=read_any_known(truth, answers, reading["inputs"]),
            gold=read_any_known(gold, answers, reading["inputs"]),
            folds=folds,
            seeds=repeats,
            seed=seed,
            progress=progress,
        )
    if as_json:
        show_json(compared.as_dict())
    else:
        compared.show()
    if chart and "methods" in compared.figures:
        compared.figures["methods"].save(chart)
        note(f"drawn to {chart}")
