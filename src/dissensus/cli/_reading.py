"""Reading what the options of a command name: annotations, known labels, lists of names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._output import note

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..readers import Reading


def examine_annotations(
    path: str,
    format_: str | None = None,
    question: str | None = None,
    columns: str | None = None,
    classes: str | None = None,
    missing: str = "error",
    scale: str = "auto",
    duplicates: str = "count",
) -> Reading:
    """Read annotations, and what else PATH holds, as the reading options say."""
    from ..readers.columns import parse_columns
    from ..readers.reading import examine

    reading = examine(
        path,
        format=format_,
        question=question,
        columns=parse_columns(columns) if columns else None,
        classes=[name.strip() for name in classes.split(",")] if classes else None,
        missing=missing,
        scale=scale,
        duplicates=duplicates,
    )
    for sentence in reading.notes:
        note(sentence)
    return reading


def read_annotations(path: str, **reading: Any) -> Annotations:
    """Read annotations as the reading options say."""
    return examine_annotations(path, **reading).annotations


def is_data_folder(path: str, answers: str | None = None) -> bool:
    """Return whether a path is a data set folder in the layout of peerannot, or taken for one."""
    usual = "answers.json"
    named = answers not in (None, usual)
    return Path(path).is_dir() and (named or (Path(path) / usual).exists())


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
        from .._names import numbered

        classes = None if n_classes is None else ",".join(numbered(n_classes).tolist())
        return examine_annotations(path, **reading | {"classes": reading["classes"] or classes})
    file = Path(answers or "answers.json")
    # As in peerannot, a path is relative to the working directory, a name to the folder.
    file = file.resolve() if answers and file.exists() else file
    return read_data_folder(path, reading, answers=file, metadata=metadata, n_classes=n_classes)


def read_data_folder(path: str, reading: dict[str, Any], **given: Any) -> Reading:
    """Read the annotations of a data set folder, with options of `readers.examine_folder`."""
    from ..readers.reading import examine_folder, with_scale

    found = examine_folder(path, duplicates=reading["duplicates"], **given)
    for sentence in found.notes:
        note(sentence)
    return with_scale(found, reading["scale"])


def read_known(path: str | None) -> dict[str, str] | None:
    """Read known labels, if a file is given."""
    if path is None:
        return None
    from ..readers import read_truth

    return read_truth(path)


def read_probabilities(path: str | None, annotations: Annotations) -> Any:
    """Read the class probabilities of a classifier, if a file is given: (item, class)."""
    if path is None:
        return None
    from ..readers import probabilities

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
    from ..readers.side_tables import read_removed

    removed = read_removed(file)
    return annotations.subset(
        items=[name for name in annotations.items.tolist() if name not in removed]
    )
