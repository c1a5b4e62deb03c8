"""`dissensus convert`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import json_option, note, read_annotations, reading_options, show_json

__all__ = ["convert"]


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--to", help="Format of OUT, where its ending does not tell; `peerannot` for a folder."
)
@reading_options
@json_option
def convert(source: str, target: str, to: str | None, as_json: bool, **reading: Any) -> None:
    """Write annotations in another format.

    OUT ends in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz or .zst), or is a
    folder, which gets the layout of peerannot. What OUT cannot hold is said.

    \b
    Example:
      dissensus convert answers.csv answers.parquet
    """
    from ..io import losses, write

    said = read_annotations(source, **reading)
    lost = losses(said, target, to)
    write(said, target, format=to)
    for sentence in lost:
        note(sentence)
    counts = {
        "labels": len(said),
        "annotators": said.n_annotators,
        "items": said.n_items,
        "classes": said.n_classes,
    }
    if as_json:
        show_json({**counts, "lost": lost, "written": target})
    elif target != "-":
        note(
            f"{len(said)} labels by {said.n_annotators} annotators on {said.n_items} items "
            f"written to {target}"
        )
