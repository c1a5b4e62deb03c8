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
from typing import TYPE_CHECKING, Any

from ..base.progress import progress_bar
from ..errors import DissensusError, OutputError
from ..pages.terminal import note, note_reading, show_json

if TYPE_CHECKING:
    from ..answers import Answers
    from ..answers.annotations import Annotations
    from ..answers.base import Relation
    from ..formats import Reading
    from ..formats.any_kind import AnswerReading
    from ..pages.charts import Figure
    from ..result import Result


def examine_annotations(
    path: str, *, models: str | None = None, people: str | None = None, **reading: Any
) -> Reading:
    """Read annotations, and what else PATH holds, as the reading options say."""
    from ..formats.reading import examine

    with progress_bar("reading"):
        examined = examine(path, **reading_arguments(**reading))
    note_reading(examined.notes, examined.annotations.left_out)
    return with_kinds(examined, models, people)


def reading_arguments(
    format_: str | None = None,
    question: str | None = None,
    columns: str | None = None,
    classes: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return the arguments of `readers.examine` that the reading options give."""
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

    annotations = reading.annotations.with_kinds(
        models=split_patterns(models), people=split_patterns(people)
    )
    return replace(reading, annotations=annotations)


def split_patterns(patterns: str | None) -> list[str]:
    """Return patterns separated by commas."""
    return [pattern.strip() for pattern in (patterns or "").split(",") if pattern.strip()]


def examine_answers(path: str, **reading: Any) -> AnswerReading | None:
    """Read answers that are more than a class or number, and say their kind; or nothing.

    Options as those of `examine_annotations`, and kind, assigned and inputs.
    """
    from ..formats import any_kind
    from ..formats.columns import parse_columns

    of_classes = ("format_", "classes", "models", "people")
    settings = {name: value for name, value in reading.items() if name not in of_classes}
    settings["format"] = reading.get("format_")
    settings["columns"] = parse_columns(reading.get("columns")) or None
    with progress_bar("reading"):
        answer_reading = any_kind.examine_answers(path, **settings)
    if answer_reading is not None:
        note(answer_reading.answers.summary)
        note_reading(answer_reading.notes, answer_reading.answers.left_out)
    return answer_reading


def class_options(path: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Return the reading options of classes, without those of answers of other kinds."""
    from ..formats.columns import CLASSES, as_kind

    of_answers = {"kind", "assigned", "inputs"}
    settings = {name: value for name, value in reading.items() if name not in of_answers}
    kind = as_kind(reading.get("kind"))
    if kind in CLASSES:
        from ..formats.any_kind import column_of_labels

        if settings.get("scale", "auto") == "auto" and kind != "single":
            settings["scale"] = CLASSES[kind]
        settings["columns"] = settings.get("columns") or column_of_labels(path)
    return settings


def read_known_answers(path: str | None, answers: Answers, inputs: str | None = None) -> Any:
    """Read known answers of the same kind, if a file is given."""
    if path is None:
        return None
    from ..answers import Answers
    from ..formats.any_kind import read_known

    known_answers = read_known(path, answers.kind, inputs)
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
    """Read the annotations of a data set folder, or of any other path."""
    if not is_data_folder(path, answers):
        from ..base.names import numbered

        classes = None if n_classes is None else ",".join(numbered(n_classes).tolist())
        return examine_annotations(path, **reading | {"classes": reading["classes"] or classes})
    file = Path(answers or "answers.json")
    # As in peerannot, a path is relative to the working directory, a name to the folder.
    file = file.resolve() if answers and file.exists() else file
    return read_data_folder(path, reading, answers=file, metadata=metadata, n_classes=n_classes)


def read_data_folder(path: str, reading: dict[str, Any], **settings: Any) -> Reading:
    """Read the annotations of a data set folder, with options of `readers.examine_folder`."""
    from ..formats.reading import examine_folder, with_scale

    with progress_bar("reading"):
        names = ("duplicates", "missing", "spelling")
        how = {name: reading[name] for name in names if name in reading}
        data = examine_folder(path, **how, **settings)
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


def without_removed(annotations: Annotations, file: str | None) -> Annotations:
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
    answer_reading = examine_answers(path, **reading)
    if answer_reading is not None:
        return answer_reading.answers
    return read_annotations(path, **class_options(path, reading))


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
    from ..formats.any_kind import AnswerReading, examine_any

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
            previous = examine_any(path)
            if isinstance(previous, AnswerReading):
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
