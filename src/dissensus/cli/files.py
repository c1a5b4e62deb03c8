"""Files that the options of a command name: read with a note of what was odd, or replaced.

A command says which files it replaces, and refuses those that it did not write.
"""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.progress import progress_bar
from ..errors import DissensusError, OutputError
from ..pages.terminal import note, note_reading, show_json

if TYPE_CHECKING:
    from ..answers import Answers
    from ..answers.annotations import Annotations
    from ..answers.base import Relation
    from ..answers.numbers import Numbers
    from ..formats import Reading
    from ..pages.charts import Figure
    from ..result import Result

T = TypeVar("T", "Annotations", "Numbers")


def examine_path(
    path: str, *, models: str | None = None, people: str | None = None, **reading: Any
) -> Reading:
    """Read answers, and what else PATH holds, as the reading options say; print what was odd."""
    from ..answers import KINDS
    from ..formats import examine

    with progress_bar("reading"):
        examined = examine(path, **reading_arguments(**reading))
    if examined.answers.kind in KINDS:
        note(examined.answers.summary)
        note_reading(examined.notes, examined.answers.left_out)
        return examined
    note_reading(examined.notes, examined.answers.left_out)
    return with_kinds(examined, models, people)


def examine_annotations(path: str, **reading: Any) -> Reading:
    """Read annotations, and what else PATH holds; other kinds of answers are refused."""
    return examine_path(path, **reading | {"kind": reading.get("kind") or "single"})


def holds_marks(reading: Reading) -> bool:
    """Return whether answers are more than a class or number."""
    from ..answers import KINDS

    return reading.answers.kind in KINDS


def reading_arguments(
    format_: str | None = None,
    question: str | None = None,
    columns: str | None = None,
    classes: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the arguments of `formats.examine` that the reading options give."""
    from ..formats.columns import parse_columns

    return {
        "format": format_,
        "question": question,
        "columns": parse_columns(columns) if columns else None,
        "classes": [name.strip() for name in classes.split(",")] if classes else None,
        **settings,
    }


def with_kinds(reading: Reading, models: str | None, people: str | None) -> Reading:
    """Return a reading whose annotators have the kinds that patterns give them."""
    if not (models or people):
        return reading
    from dataclasses import replace

    answers = reading.answers.with_kinds(
        models=split_patterns(models), people=split_patterns(people)
    )
    return replace(reading, answers=answers)


def split_patterns(patterns: str | None) -> list[str]:
    """Return patterns separated by commas."""
    return [pattern.strip() for pattern in (patterns or "").split(",") if pattern.strip()]


def read_known_answers(path: str | None, answers: Answers, inputs: str | None = None) -> Any:
    """Read known answers of the same kind, if a file is given."""
    if path is None:
        return None
    from ..answers import Answers
    from ..formats import read_truth

    known_answers = read_truth(path, kind=answers.kind, inputs=inputs)
    if isinstance(known_answers, Answers):
        note_unknown(known_answers.items.tolist(), answers.items.tolist(), path)
    return known_answers


def read_annotations(path: str, **reading: Any) -> Annotations:
    """Read annotations as the reading options say."""
    return examine_annotations(path, **reading).annotations


def read_questions(path: str, question: str, **reading: Any) -> dict[str, Annotations]:
    """Read the annotations of several questions, separated by commas, on the same items."""
    from ..base.names import indices_of, union

    names = list(dict.fromkeys(name.strip() for name in question.split(",")))
    of_question = {name: read_annotations(path, question=name, **reading) for name in names}
    items = of_question[names[0]].items
    for part in of_question.values():
        items = union(items, part.items)
    return {
        name: annotations.with_codes(
            item=indices_of(annotations.items, items)[annotations.item], items=items
        )
        for name, annotations in of_question.items()
    }


def is_data_folder(path: str, answers: str | None = None) -> bool:
    """Return whether a path is a data set folder in the layout of peerannot, or taken for one."""
    usual = "answers.json"
    is_named = answers not in (None, usual)
    return Path(path).is_dir() and (is_named or (Path(path) / usual).exists())


def examine_folder(
    path: str,
    reading: dict[str, Any],
    *,
    answers: str | None = None,
    metadata: str | None = None,
    n_classes: int | None = None,
) -> Reading:
    """Read the annotations of a data set folder, or answers of any other path."""
    if not is_data_folder(path, answers):
        from ..base.names import numbered

        classes = None if n_classes is None else ",".join(numbered(n_classes).tolist())
        return examine_path(path, **reading | {"classes": reading["classes"] or classes})
    file = Path(answers or "answers.json")
    # As in peerannot, a path is relative to the working directory, a name to the folder.
    file = file.resolve() if answers and file.exists() else file
    return read_data_folder(path, reading, answers=file, metadata=metadata, n_classes=n_classes)


def read_data_folder(path: str, reading: dict[str, Any], **settings: Any) -> Reading:
    """Read the annotations of a data set folder, with options of `formats.examine_folder`."""
    from ..formats import ReadOptions
    from ..formats.reading import examine_folder
    from ..formats.scales import with_scale

    with progress_bar("reading"):
        names = ("duplicates", "missing", "spelling")
        options = ReadOptions(**{name: reading[name] for name in names if name in reading})
        data = examine_folder(path, options, **settings)
    note_reading(data.notes, data.annotations.left_out)
    data = with_scale(data, reading["scale"])
    return with_kinds(data, reading.get("models"), reading.get("people"))


def read_known(path: str | None, data: Relation | None = None) -> dict[str, str] | None:
    """Read known labels, if a file is given; say which are about no item of the data."""
    if path is None:
        return None
    from ..formats import read_truth

    known_labels = read_truth(path)
    if data is not None:
        note_unknown(known_labels, data.items.tolist(), path)
    return known_labels


def note_unknown(items: Iterable[str], of_data: Iterable[str], path: str) -> None:
    """Say how many items of a file are not those of the data, and the first of them."""
    from ..answers.left_out import first_names

    names, present = list(items), set(of_data)
    unknown = [name for name in names if name not in present]
    if unknown:
        examples = first_names(unknown)
        note(f"{path}: {len(unknown)} of {len(names)} items are not in the data: {examples}")


def read_probabilities(path: str | None, annotations: Annotations) -> Any:
    """Read the class probabilities of a classifier, if a file is given: (item, class)."""
    if path is None:
        return None
    from ..formats import predictions as probabilities

    return probabilities.read_probabilities(path, annotations)


def split_names(names: str | None) -> list[str] | None:
    """Return names separated by commas, or the lines of a file."""
    if names is None:
        return None
    file = Path(names)
    lines = file.read_text("utf-8").splitlines() if file.is_file() else names.split(",")
    return [name.strip() for name in lines if name.strip()]


def without_removed(annotations: T, file: str | None) -> T:
    """Return the annotations without those on items that a file names."""
    if file is None:
        return annotations
    from ..formats.side_tables import read_removed

    removed = read_removed(file)
    return annotations.subset(
        items=[name for name in annotations.items.tolist() if name not in removed]
    )


def write_table(columns: Any, output: str | None) -> None:
    """Write columns as a table, if a file is given."""
    if output:
        from ..formats.writing import write_columns

        write_columns(columns, output)


def read_any(path: str, **reading: Any) -> Any:
    """Read answers of any kind as the reading options say."""
    return examine_path(path, **reading).answers


def read_any_known(path: str | None, answers: Any, inputs: str | None = None) -> Any:
    """Read known labels or answers of the same kind, if a file is given."""
    from ..answers import KINDS

    if answers.kind in KINDS:
        return read_known_answers(path, answers, inputs)
    return read_known(path, answers)


# What makes a value of a parameter that the command line gives as a file or as words.
VALUES: dict[str, Callable[[Any, Any, str | None], Any]] = {
    "truth": read_any_known,
    "gold": read_any_known,
    "probabilities": lambda file, answers, _: read_probabilities(file, answers),
    "annotators": lambda names, *_: split_names(names),
    "cost": lambda amount, *_: read_amounts(amount, "cost"),
    "limit": lambda amount, *_: read_amounts(amount, "limit"),
}


def value_of(parameter: str, value: Any, answers: Any, inputs: str | None = None) -> Any:
    """Return the value of a parameter of the library's verb."""
    if value is None or parameter not in VALUES:
        return value
    return VALUES[parameter](value, answers, inputs)


def read_amounts(amount: str, role: str) -> float | dict[str, float]:
    """Return a number, or a number for every annotator from a table."""
    from ..formats import side_tables

    try:
        return float(amount)
    except ValueError:
        return side_tables.read_amounts(amount, role)


def check_views(output: str | None, chart: str | None) -> None:
    """Refuse the names of a table and a chart that cannot be written, before any work."""
    if chart:
        from ..pages.charts import check_chart

        check_chart(chart)
    if output and output != "-":
        from ..formats.sources import format_for

        format_for(output)


def show_result(
    result: Result, *, as_json: bool, output: str | None = None, chart: str | None = None
) -> None:
    """Write the main table, print the result as JSON or for people, and draw its first figure."""
    if output:
        write_table(next(iter(result.tables.values())), output)
    if as_json:
        show_json(result.as_dict())
    elif output != "-":
        result.show()
    draw(next(iter(result.figures.values()), None) if chart else None, chart)


def draw(figure: Figure | None, chart: str | None) -> None:
    """Draw a figure to a file, if both are there."""
    if chart and figure is not None:
        figure.save(chart)
        note(f"drawn to {chart}")


def replacing(paths: Sequence[Path], *, own: bool, force: bool) -> None:
    """Report which of these files are replaced; refuse to, unless they are the command's own."""
    present = [str(path) for path in paths if path.exists()]
    if not present:
        return
    if not own and not force:
        names = f"{present[0]} and {len(present) - 1} more" if len(present) > 1 else present[0]
        raise OutputError(
            f"{names}: there already, and not written by this command; --force replaces it"
        )
    note(f"replaced: {', '.join(present)}")


def replace_converted(
    content: Any,
    target: str,
    to: str | None,
    write: Callable[[Any, Path, str | None], None],
    *,
    force: bool,
) -> None:
    """Check the target of a conversion.

    It is our own if reading it and writing that gives the same file. Where nothing would change,
    there is nothing to report.
    """
    from ..formats import examine

    path = Path(target)
    if target == "-" or not (path.is_file() or path.is_dir()):
        return
    layout = to or ("peerannot" if path.is_dir() else None)
    with TemporaryDirectory(prefix="dissensus-") as folder:
        copy, own = Path(folder) / path.resolve().name, False
        write(content, copy, layout)
        if _same(copy, path):
            return
        names = [path / file.name for file in copy.iterdir()] if copy.is_dir() else [path]
        with suppress(DissensusError):
            previous = examine(path)
            if holds_marks(previous):
                readings: tuple[Any, ...] = (previous.answers,)
            else:
                readings = (
                    previous,
                    replace(previous, texts=None),
                )  # texts may be the items' names
            for reading in readings:
                write(reading, copy, layout)
                own = own or _same(copy, path)
    replacing(names, own=own, force=force)


def _same(first: Path, second: Path) -> bool:
    """Return whether a file, or every file of a folder, has the same content elsewhere."""
    if first.is_dir():
        return all(_same(file, second / file.name) for file in first.iterdir())
    return second.is_file() and filecmp.cmp(first, second, shallow=False)
