"""`dissensus report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._shared import (
    examine_annotations,
    json_option,
    note,
    progress_bar,
    reading_options,
    seed_option,
    show_json,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..annotations import Annotations
    from ..readers import Reading
    from ..reporting.group_comparison import Rounds
    from ..reporting.number_report import NumberReport
    from ..reporting.report import Report

__all__ = ["report"]


@click.command()
@click.argument("path")
@click.argument("second", required=False)
@click.option("--strategy", "-s", default="auto", show_default=True, help="name[setting=value,…]")
@click.option("--output", "-o", default="report.html", show_default=True, help="Where it goes.")
@click.option("--gold", help="Known labels that may be used; those found in PATH otherwise.")
@click.option("--truth", help="Known labels to score with; nothing learns from them.")
@click.option("--texts", help="What the items are: a table of item and text, or image file.")
@click.option("--tendency", help="What `tendency evaluate --json` printed, to tell of it as well.")
@click.option("--by", help="Compare two groups instead: those of the two values of this column.")
@click.option(
    "--labels",
    type=click.Choice(["auto", "nominal", "numeric"]),
    default="auto",
    show_default=True,
    help="Whether labels are classes or numbers.",
)
@click.option("--title", help="Of the report.  [default: the file's name]")
@reading_options
@json_option
@seed_option
def report(
    path: str,
    second: str | None,
    strategy: str,
    output: str,
    gold: str | None,
    truth: str | None,
    texts: str | None,
    tendency: str | None,
    by: str | None,
    labels: str,
    title: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Tell everything about a data set on one page.

    Reads anything, checks it, aggregates, scores annotators and items, and writes a page that
    needs no network. A short summary goes to the terminal. With a SECOND file, two rounds or two
    groups of annotators are compared: before and after a training, people and models.

    \b
    Example:
      dissensus report answers.csv -o report.html
      dissensus report before.csv after.csv -o rounds.html
    """
    from ..errors import OptionError
    from ..readers import read_truth

    _check_output(output)
    known = read_truth(truth) if truth else None
    if second is not None or by is not None:
        if second is not None and by is not None:
            raise OptionError("two files and --by: give one of them")
        refused = {"--gold": gold, "--texts": texts, "--tendency": tendency}
        given = next((name for name, value in refused.items() if value is not None), None)
        if given:
            raise OptionError(f"{given} does not go with a comparison of two sides; leave it out")
        told: Report | NumberReport | Rounds = _rounds(
            path, second, by, strategy, known, seed, reading
        )
    else:
        found = examine_annotations(path, **reading)
        name = title or _name(path)
        golden = read_truth(gold) if gold else None
        if _is_numeric(found, labels):
            if tendency is not None:
                raise OptionError("--tendency is of classes, but labels are numbers; leave it out")
            told = _numbers(found, strategy, name, golden, known, seed)
        else:
            told = _classes(found, path, strategy, name, golden, known, texts, tendency, seed)
    if output != "-":
        told.save(output)
    if as_json:
        show_json(told.as_dict())
        return
    if output == "-":
        click.echo(told.page())
        return
    _print(told)
    note(f"\nThe report is in {output}")


def _check_output(output: str) -> None:
    from ..errors import OptionError

    if output != "-" and Path(output).suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{output}: a report ends in .html")


def _name(path: str) -> str:
    return "standard input" if path == "-" else Path(path).name


def _is_numeric(found: Reading, labels: str) -> bool:
    from ..readers import kind_of_labels

    if labels != "auto":
        return labels == "numeric"
    if found.kind == "numeric":
        return True
    kind = kind_of_labels(found.annotations.classes.tolist())
    if found.kind == "single" and kind.kind == "numeric":
        note(f"labels are taken for numbers: {kind.reason}; --labels nominal makes them classes")
        return True
    return False


def _classes(
    found: Reading,
    path: str,
    strategy: str,
    name: str,
    gold: Mapping[str, str] | None,
    truth: Mapping[str, str] | None,
    texts: str | None,
    tendency: str | None,
    seed: int,
) -> Report:
    from ..reporting.report import report as make

    with progress_bar("reporting", 7) as progress:
        return make(
            found,
            strategy,
            name=name,
            gold=gold,
            truth=truth,
            texts=texts,
            tendency=tendency,
            folder=Path(path).parent if Path(path).is_file() else None,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )


def _numbers(
    found: Reading,
    strategy: str,
    name: str,
    gold: Mapping[str, str] | None,
    truth: Mapping[str, str] | None,
    seed: int,
) -> NumberReport:
    from ..readers import as_numbers
    from ..reporting.number_report import report_numbers

    with progress_bar("reporting", 4) as progress:
        return report_numbers(
            as_numbers(found.annotations),
            "mean" if strategy == "auto" else strategy,
            name=name,
            gold=gold,
            truth=truth,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )


def _rounds(
    path: str,
    second: str | None,
    by: str | None,
    strategy: str,
    truth: Mapping[str, str] | None,
    seed: int,
    reading: dict[str, Any],
) -> Rounds:
    from ..reporting.group_report import report_groups, split_by

    sides: dict[str, Annotations]
    if by is not None:
        if reading["columns"] is None or f"{by}=" not in reading["columns"]:
            reading["columns"] = ",".join(filter(None, [reading["columns"], f"{by}={by}"]))
        sides = split_by(examine_annotations(path, **reading).annotations, by)
    else:
        names = [Path(one).name for one in (path, str(second))]
        if names[0] == names[1]:
            names = [path, str(second)]
        if names[0] == names[1]:
            names = ["first", "second"]
        both = (examine_annotations(one, **reading).annotations for one in (path, str(second)))
        sides = dict(zip(names, both, strict=True))
    (one, first), (two, other) = sides.items()
    with progress_bar("reporting", 3) as progress:
        return report_groups(
            first,
            other,
            strategy,
            names=(one, two),
            truth=truth,
            seed=seed,
            progress=lambda done, _total: progress(done),
        )


def _print(told: Report | NumberReport | Rounds) -> None:
    from ..reporting.report import Report
    from ..reporting.sentences import advice

    for sentence in told.sentences:
        click.echo(sentence)
    if isinstance(told, Report):
        click.echo("\nWhat to do:")
        for position, sentence in enumerate(advice(told), 1):
            click.echo(f"  {position}. {sentence}")
