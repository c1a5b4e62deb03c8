"""`dissensus report`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import echo, note, print_opening, show_json
from .files import (
    class_options,
    examine_annotations,
    examine_answers,
    note_unknown,
    read_known,
    read_known_answers,
    split_names,
)
from .verb import KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..formats import Reading
    from ..formats.any_kind import AnswerReading
    from ..reporting.group_comparison import GroupComparison
    from ..reporting.report import Report


@click.command()
@click.argument("path")
@click.argument("second", required=False)
@options(
    (
        *("truth", "inputs --texts", "show", "annotators", "tendency", "waum", "by"),
        *("kind", "assigned", *READING, *KINDS, "scale --labels", "json", "seed"),
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
    of_classes = {"annotators": annotators, "tendency": tendency, "waum": waum}
    settings: dict[str, Any] = {"seed": seed}
    run: Callable[..., Report | GroupComparison]
    if second is not None or by is not None:
        from ..reporting.group_comparison import report_groups

        flags = {f"--{name}": value for name, value in of_classes.items()}
        _refuse({"--gold": gold, "--inputs": inputs} | flags)
        settings["truth"] = read_known(truth)
        pair = _read_groups(path, second, by, class_options(path, reading))
        (first, before), (last, after) = pair.items()
        run = partial(report_groups, before, after, strategy, names=(first, last))
    else:
        from ..reporting.report import report as report_on

        name = title or ("standard input" if path == "-" else Path(path).name)
        settings |= {"name": name, "show": split_names(show), "target": target} | of_classes
        answers = _other_kind(path, reading, inputs)
        if answers is not None:
            read = partial(read_known_answers, answers=answers.answers, inputs=inputs)
            settings |= {"gold": read(gold), "truth": read(truth)}
            settings["texts"] = _texts_of(inputs, show)
            run = partial(report_on, answers, strategy)
        else:
            examined, known_labels = _labels(path, reading, gold=gold, truth=truth)
            settings |= known_labels | {"texts": inputs}
            settings["folder"] = Path(path).parent if Path(path).is_file() else None
            run = partial(report_on, examined, strategy)
    with progress_bar("reporting") as progress:
        page = run(progress=progress, **settings)
    if output != "-":
        page.save(output)
    if as_json:
        show_json(page.as_dict())
    elif output == "-":
        echo(page.page())
    else:
        print_opening(page.opening)
        note(f"\nThe report is in {output}")


def _other_kind(path: str, reading: dict[str, Any], inputs: str | None) -> AnswerReading | None:
    """Return answers that are more than a class or number; nothing for those."""
    if path != "-" and not Path(path).exists():
        return None  # the error is that of reading classes
    return examine_answers(path, **reading, inputs=inputs)


def _texts_of(inputs: str | None, show: str | None) -> str | None:
    """Return the table of texts or images, unless it only has sizes or things to compare."""
    if inputs is None or show is not None:
        return inputs
    from ..formats.side_tables import has_texts

    return inputs if has_texts(inputs) else None


def _labels(
    path: str, reading: dict[str, Any], *, gold: str | None, truth: str | None
) -> tuple[Reading, dict[str, Any]]:
    """Return labels or numbers, and the known ones of both options."""
    true_labels = read_known(truth)
    examined = examine_annotations(path, **class_options(path, reading))
    labels = examined.annotations
    both = {"truth": true_labels, "gold": read_known(gold, labels)}
    if truth and true_labels:
        note_unknown(true_labels, labels.items.tolist(), truth)
    if labels.numeric:
        from ..formats import as_numbers

        numbers: Any = as_numbers(labels, path)
        examined = replace(examined, annotations=numbers)
    return examined, both


def _refuse(options: dict[str, str | None]) -> None:
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name} does not go with a comparison of two groups; leave it out")


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
