"""`dissensus judge`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import echo, note, show_json
from .files import examine_annotations, read_known, split_patterns, write_table
from .verb import KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..judging import Judging

_LENGTHS = (("chars_1", "chars_2"), ("length_1", "length_2"), ("words_1", "words_2"))
_SYSTEMS = (("system_1", "system_2"), ("model_1", "model_2"), ("model_a", "model_b"))


@click.command()
@click.argument("path")
@options(
    (
        *KINDS,
        *("annotators", "inputs", "by", "cluster", "reference", "truth"),
        *("requirements", "check", "output", *READING, "json", "seed"),
    ),
    sampled="random",
    epsilon=0.1,
    budget=Computed("as many as do nearly as much as all"),
    repeats=200,
    confidence=0.95,
)
def judge(
    path: str,
    models: str | None,
    people: str | None,
    annotators: str | None,
    inputs: str | None,
    by: str | None,
    cluster: str | None,
    reference: str | None,
    truth: str | None,
    sampled: Any,
    epsilon: float,
    requirements: tuple[str, ...],
    check: str | None,
    budget: float | None,
    repeats: int,
    confidence: float,
    output: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Compare models with people as annotators, as far as the data allow.

    May a model replace an annotator? How good is each, what is the true share of a class or the
    true mean, how many independent judges is the panel worth, which items should people check, and
    does a correction hold for other groups? Models are named by --models, by a column `kind` or
    `source` (of PATH, or of the table --annotators), or by the prefix model:. Columns of --by and
    --cluster are in PATH, or in the table of items --inputs.

    \b
    Examples:
      dissensus judge answers.csv --models 'gpt*,claude*' -o judge.html
      dissensus judge answers.csv --require 'replaces(gpt-4o)' --require 'share(pass) >= 0.8'
      dissensus judge answers.csv --check check.csv --budget 200
    """
    from .. import judging
    from ..judging.requirements import parse_requirement

    needed = [parse_requirement(text) for text in requirements]
    if output not in (None, "-") and not output.lower().endswith((".html", ".htm")):
        raise OptionError(f"{output}: the page ends in .html")
    annotations = _read(path, annotators, [by, cluster], reading)
    about = _read_items(inputs)
    annotations = annotations.with_kinds(
        models=split_patterns(models), people=split_patterns(people)
    )
    with progress_bar("judging"):
        judged = judging.judge(
            annotations,
            by=_item_column(annotations, about, by, "--by"),
            cluster=_item_column(annotations, about, cluster, "--cluster"),
            truth=read_known(truth, annotations),
            sampled=sampled,
            epsilon=epsilon,
            reference=reference,
            lengths=_pairs_of(about, _LENGTHS, float),
            systems=_pairs_of(about, _SYSTEMS, str),
            budget=None if budget is None else int(budget),
            resamples=max(repeats, 2),
            confidence=confidence,
            seed=seed,
        )
    outcomes = [judging.check_requirement(judged, requirement) for requirement in needed]
    if check is not None:
        if judged.escalation is None:
            raise DataError("nothing to check: every item has a human label, or none has")
        write_table(judged.escalation.tables["check"], check)
    if output is not None:
        _write_page(judged, path, output)
    if as_json:
        content = judged.as_dict()
        if outcomes:
            content["requirements"] = [
                {"requirement": text, "holds": outcome.holds, "sentence": outcome.sentence}
                for text, outcome in zip(requirements, outcomes, strict=True)
            ]
        show_json(content)
    elif output != "-":
        judged.with_checks_in(check or "").show()
    for outcome in outcomes:
        if not as_json or not outcome.holds:
            note(outcome.sentence)
    if output not in (None, "-"):
        note(f"The page is in {output}")
    if not all(outcome.holds for outcome in outcomes):
        sys.exit(1)


def _write_page(judged: Judging, path: str, output: str) -> None:
    from ..judging.sections import JudgingReport

    page = JudgingReport(judged, "standard input" if path == "-" else Path(path).name)
    if output == "-":
        echo(page.page())
    else:
        page.save(output)


def _read(
    path: str, annotators: str | None, carried: list[str | None], reading: dict[str, Any]
) -> Annotations:
    """Return annotations with the kinds of a table, and with further columns of theirs."""
    from ..formats.side_tables import read_kinds

    to_carry = [name for name in carried if name and name != "time"]
    present = _columns(path) if to_carry else []
    for name in to_carry:
        if name in present and f"{name}=" not in (reading["columns"] or ""):
            reading["columns"] = ",".join(filter(None, [reading["columns"], f"{name}={name}"]))
    annotations = examine_annotations(path, **reading).annotations
    return annotations.with_kinds(read_kinds(annotators)) if annotators else annotations


def _columns(path: str) -> list[str]:
    """Return the columns of a table; none of anything else."""
    from ..formats.sources import open_source
    from ..formats.tables import column_names

    if path == "-" or Path(path).is_dir():
        return []
    source = open_source(path)
    return list(column_names(source)) if source.format not in ("zip", "npy", "json") else []


def _read_items(inputs: str | None) -> dict[str, dict[str, Any]]:
    """Return item → column → value of a table about items."""
    if inputs is None:
        return {}
    from ..formats.side_tables import read_items

    return read_items(inputs)


def _item_column(
    annotations: Annotations, about: Mapping[str, Mapping[str, Any]], name: str | None, option: str
) -> Any:
    """Return the value of a column for every item, from the rows or the table of items."""
    if name is None or name == "time" or name in annotations.columns:
        return name
    if any(name in row for row in about.values()):
        return {item: row.get(name) for item, row in about.items()}
    where = "PATH or --inputs" if about else "PATH; --inputs may give a table of items"
    raise OptionError(f"{option} {name}: no such column in {where}")


def _pairs_of(about: Mapping[str, Mapping[str, Any]], names: Any, kind: type) -> Any:
    """Return item → two values, from the first two of these columns that a table has."""
    first_row: Mapping[str, Any] = next(iter(about.values()), {})
    for left, right in names:
        if left in first_row and right in first_row:
            return {
                item: (kind(row[left]), kind(row[right]))
                for item, row in about.items()
                if row.get(left) is not None and row.get(right) is not None
            }
    return None
