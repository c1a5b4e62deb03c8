"""`dissensus agree`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import echo, note, show_json
from .verb import ANSWERS, KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..result import Result


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
    from ..metrics import agree, pairwise
    from ..metrics.sections import pairs_chart
    from ..pages.charts import check_chart, save_chart
    from ..quality import camps
    from ._answers import refuse
    from .files import read_any

    if chart:
        check_chart(chart)
    _check_output(output)
    if pairs and per:
        raise OptionError("--pairs and --per are two tables; ask for one at a time")
    if multiple and (pairs or chart):
        raise OptionError("--multiple asks one question for each option; pairs need one question")
    answers: Any = read_any(path, **reading | ({"kind": "single"} if multiple else {}))
    refuse({"--pairs": pairs, "--chart": chart}, answers)
    with progress_bar("resampling") as progress:
        agreement = agree(
            answers,
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
    rows, content = agreement.rows(), agreement.as_dict()
    results: list[Result] = [agreement]
    if pairs or chart:
        weighting = weights or answers.scale
        two = pairwise(answers, "cohen", weights=weighting, min_overlap=min_overlap)
        if chart:
            save_chart(pairs_chart(two), chart)
            note(f"drawn to {chart}")
    if pairs:
        camps_found = camps(answers, ordered=answers.scale != "nominal", seed=seed)
        rows, results = two.rows(), [agreement, two, camps_found]
        content |= {"pairs": rows, "camps": camps_found.as_dict()}
    if output:
        _write(rows, output)
    if as_json:
        show_json(content)
    elif output != "-":
        for result in results:
            result.show()


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
