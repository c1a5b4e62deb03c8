"""`dissensus report`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import echo, note, show_json, with_flags
from .files import (
    examine_annotations,
    examine_path,
    holds_marks,
    note_unknown,
    read_known,
    read_known_answers,
    split_names,
)
from .verb import KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..reporting.answer_report import AnswerReport
    from ..reporting.group_comparison import GroupComparison
    from ..reporting.number_report import NumberReport
    from ..reporting.report import Report


@click.command()
@click.argument("path")
@click.argument("second", required=False)
@options(
    (
        *("truth", "inputs", "show", "annotators", "tendency", "waum", "by"),
        *("kind", "assigned", *READING, *KINDS, "json", "seed"),
    ),
    target=0.95,
    strategy="auto",
    output="report.html",
    gold=Computed("those in PATH"),
    title=Computed("the name of the file"),
)
def report(
    path: str,
    second: str | None,
    strategy: str,
    output: str,
    gold: str | None,
    truth: str | None,
    inputs: str | None,
    show: str | None,
    annotators: str | None,
    target: float,
    tendency: str | None,
    waum: str | None,
    by: str | None,
    title: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Write a report about a data set: one page that needs no network.

    Reads any format, checks it, aggregates, scores annotators and items, and plans what to do. A
    short summary goes to the terminal. With --annotators, groups of annotators are compared. With a
    SECOND file, or --by a column of two values, two rounds or groups of annotators are compared:
    before and after training, people and models. Sets, rankings, spans, boxes, points, masks and
    texts are recognised by their columns, or given by --kind; the most disputed items are drawn,
    over the images or in the texts of --inputs.

    \b
    Example:
      dissensus report answers.csv -o report.html
      dissensus report answers.csv --inputs texts.csv --annotators people.csv
      dissensus report boxes.csv --inputs images.csv
      dissensus report before.csv after.csv -o rounds.html
    """
    if output != "-" and Path(output).suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{output}: a report ends in .html")
    in_groups = second is not None or by is not None
    settings: dict[str, Any] = {"seed": seed}
    examined = None if in_groups else examine_path(path, **reading, inputs=inputs)
    for_classes = {"--annotators": annotators, "--tendency": tendency, "--waum": waum}
    run: Callable[..., Report | NumberReport | GroupComparison | AnswerReport]
    if examined is None:
        from ..reporting.group_comparison import report_groups

        settings["truth"] = read_known(truth)
        for_one = {"--gold": gold, "--inputs": inputs} | for_classes
        _refuse(for_one, "does not go with a comparison of two groups")
        (first, before), (last, after) = _read_groups(path, second, by, reading).items()
        run = partial(report_groups, before, after, strategy, names=(first, last))
    elif holds_marks(examined):
        from ..reporting.answer_report import report_answers

        _refuse(for_classes, "needs classes")
        settings |= {
            name: read_known_answers(file, examined.answers, inputs)
            for name, file in (("truth", truth), ("gold", gold))
        }
        settings |= {"texts": _texts_of(inputs, show), "show": split_names(show)}
        run = partial(report_answers, examined, strategy, name=_title(title, path))
    else:
        settings["truth"] = read_known(truth)
        settings["gold"] = read_known(gold, examined.answers)
        if truth and settings["truth"]:
            note_unknown(settings["truth"], examined.answers.items.tolist(), truth)
        settings |= {"name": _title(title, path), "texts": inputs, "show": split_names(show)}
        settings["folder"] = Path(path).parent if Path(path).is_file() else None
        if examined.answers.kind == "numbers":
            from ..reporting.number_report import report_numbers

            _refuse(for_classes, "needs classes")
            method = "mean" if strategy == "auto" else strategy
            run = partial(report_numbers, examined, method)
        else:
            from ..reporting.report import report_labels

            settings |= {"annotators": annotators, "target": target, "tendency": tendency}
            run = partial(report_labels, examined, strategy, waum=waum)
    with progress_bar("reporting") as progress:
        page = run(progress=progress, **settings)
    if output != "-":
        page.save(output)
    if as_json:
        show_json(page.as_dict())
    elif output == "-":
        echo(page.page())
    else:
        _print(page)
        note(f"\nThe report is in {output}")


def _title(title: str | None, path: str) -> str:
    return title or ("standard input" if path == "-" else Path(path).name)


def _texts_of(inputs: str | None, show: str | None) -> str | None:
    """Return the table of texts or images, unless it only has sizes or things to compare."""
    if inputs is None or show is not None:
        return inputs
    from ..formats.side_tables import has_texts

    return inputs if has_texts(inputs) else None


def _refuse(options: dict[str, str | None], reason: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name} {reason}; leave it out")


def _read_groups(
    path: str, second: str | None, by: str | None, reading: dict[str, Any]
) -> dict[str, Annotations]:
    """Return two groups of annotations by name: those of two files, or of a column's values."""
    from ..reporting.group_comparison import split_by

    if by is None:
        paths = (path, str(second))
        names = _distinct_names(*paths)
        rounds = (examine_annotations(file, **reading).annotations for file in paths)
        return dict(zip(names, rounds, strict=True))
    if second is not None:
        raise OptionError("two files and --by: give one of them")
    if f"{by}=" not in (reading["columns"] or ""):
        reading["columns"] = ",".join(filter(None, [reading["columns"], f"{by}={by}"]))
    return split_by(examine_annotations(path, **reading).annotations, by)


def _distinct_names(first: str, second: str) -> tuple[str, str]:
    """Return the shortest names that distinguish two files."""
    first_path, second_path = Path(first), Path(second)
    parts = zip(reversed(first_path.parts), reversed(second_path.parts), strict=False)
    pairs = [
        (first_path.name.partition(".")[0], second_path.name.partition(".")[0]),
        *(pair for pair in parts if pair[0] != pair[1]),
        (first, second),
    ]
    return next((pair for pair in pairs if pair[0] != pair[1] and all(pair)), ("first", "second"))


def _print(page: Report | NumberReport | GroupComparison | AnswerReport) -> None:
    for sentence in page.sentences:
        echo(sentence)
    if page.actions:
        echo("\nWhat to do:")
        for position, action in enumerate(page.actions, 1):
            echo(f"  {position}. {with_flags(action.sentence)}")
