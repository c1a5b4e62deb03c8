"""`dissensus watch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._output import note, show_json
from .options import REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..scale.stream import Stream

_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", "~")


@click.command()
@click.argument("path")
@options(
    *("once", "every --interval", "columns", "classes", "missing", "json", "seed"),
    output=REQUIRED,
    strategy="dawid-skene",
    state=Computed("beside the output"),
    every=5.0,
    refit=0.5,
)
def watch(
    path: str,
    output: str,
    strategy: str,
    state: str | None,
    once: bool,
    every: float,
    refit: float,
    columns: str | None,
    classes: str | None,
    missing: str,
    as_json: bool,
    seed: int,
) -> None:
    """Keep labels up to date while annotations arrive.

    PATH is a file that grows, or a folder that files are added to. New rows update the labels and
    the annotator parameters without a full fit; now and then there is one. Restarted, it resumes
    where it was: no row is lost or counted twice. A column of ids (id, annotation_id …) ensures
    that even where rows are sent twice.

    \b
    Example:
      dissensus watch answers/ -o labels.csv
    """
    from ..readers.columns import parse_columns
    from ..readers.sources import format_for
    from ..scale.stream import Stream

    format_for(output)
    target = Path(output)
    folder = state or str(target.with_name(f".{target.name}.state"))
    declared = [name.strip() for name in classes.split(",")] if classes else None
    opened = Stream.opened(folder, strategy, classes=declared, refit=refit, seed=seed)
    with opened as stream:
        first = True
        while True:
            taken = _take(stream, Path(path), parse_columns(columns), missing)
            if declared is None:
                _check_classes(stream)
            if (taken or first) and len(stream.online):
                _write(stream, target, taken, as_json)
            if once:
                return
            first = False
            try:
                time.sleep(every)
            except KeyboardInterrupt:
                return


def _take(stream: Stream, path: Path, columns: dict[str, str], missing: str) -> int:
    """Add what is new in a file or folder; return the number of new annotations."""
    from ..sharded.batches import new_rows

    taken = 0
    for file in _files(path):
        name = file.name if path.is_dir() else "."
        seen = stream.seen.get(name, 0)
        batch = new_rows(file, seen, columns, missing)
        if batch.notes["rows"] > seen:
            taken += stream.add(
                batch.item,
                batch.annotator,
                batch.label,
                ids=batch.ids,
                seen={name: batch.notes["rows"]},
            )
    return taken


def _check_classes(stream: Stream) -> None:
    from ..errors import DataError
    from ..readers import kind_of_labels

    kind, reason = kind_of_labels(stream.online.log.classes.tolist())
    if kind == "numeric":
        raise DataError(f"watch needs classes, but {reason}; --classes declares them as classes")


def _files(path: Path) -> list[Path]:
    from ..errors import DataError

    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path] if path.stat().st_size else []
    return [
        file
        for file in sorted(path.iterdir())
        if file.is_file()
        and file.stat().st_size
        and not file.name.startswith(".")
        and not file.name.endswith(_UNFINISHED)
    ]


def _write(stream: Stream, target: Path, taken: int, as_json: bool) -> None:
    from ..writers import write

    result = stream.online.result()
    write(result, target)
    summary: dict[str, Any] = {
        "new": taken,
        "n_labels": len(stream.online),
        "n_items": result.annotations.n_items,
        "n_annotators": result.annotations.n_annotators,
        "fitted": stream.online.fitted,
    }
    if as_json:
        show_json(summary)
    else:
        note(
            f"{taken} new annotations, {summary['n_labels']} in all; labels of "
            f"{summary['n_items']} items are in {target}"
        )
