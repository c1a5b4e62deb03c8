"""`dissensus watch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._shared import json_option, note, seed_option, show_json

if TYPE_CHECKING:
    from ..scale.stream import Stream

__all__ = ["watch"]

_PASSED_OVER = (".part", ".tmp", ".temp", ".crdownload", "~")


@click.command()
@click.argument("path")
@click.option("--output", "-o", required=True, help="Where the labels are kept up to date.")
@click.option("--strategy", "-s", default="dawid-skene", show_default=True, help="name[setting=…]")
@click.option("--state", help="Folder for what was read.  [default: beside the output]")
@click.option("--once", is_flag=True, help="Take what is there, then end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=5.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option(
    "--refit",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="Fit anew when annotations have grown by this share.",
)
@click.option("--columns", help="Which column is which: item=…,annotator=…,label=…,id=…")
@click.option("--classes", help="All classes in order, with commas.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Rows without item, annotator or label.",
)
@json_option
@seed_option
def watch(
    path: str,
    output: str,
    strategy: str,
    state: str | None,
    once: bool,
    interval: float,
    refit: float,
    columns: str | None,
    classes: str | None,
    missing: str,
    as_json: bool,
    seed: int,
) -> None:
    """Keep labels up to date while annotations arrive.

    PATH is a file that grows, or a folder into which files are put. New rows change the labels
    and what is thought of annotators without a fit to everything; now and then there is one. Ended
    and started again, it goes on where it was: no row is lost or counted twice. A column of ids
    (id, annotation_id …) makes sure of that also where rows are sent twice.

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
            if (taken or first) and len(stream.running):
                _write(stream, target, taken, as_json)
            if once:
                return
            first = False
            try:
                time.sleep(interval)
            except KeyboardInterrupt:
                return


def _take(stream: Stream, path: Path, columns: dict[str, str], missing: str) -> int:
    """Take what is new in a file or folder; return how many annotations were."""
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
        and not file.name.endswith(_PASSED_OVER)
    ]


def _write(stream: Stream, target: Path, taken: int, as_json: bool) -> None:
    from ..writers import write

    result = stream.running.result()
    write(result, target)
    told: dict[str, Any] = {
        "new": taken,
        "n_labels": len(stream.running),
        "n_items": result.annotations.n_items,
        "n_annotators": result.annotations.n_annotators,
        "fitted": stream.running.fitted,
    }
    if as_json:
        show_json(told)
    else:
        note(
            f"{taken} new annotations, {told['n_labels']} in all; labels of "
            f"{told['n_items']} items are in {target}"
        )
