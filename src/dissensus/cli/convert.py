"""`dissensus convert`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import examine_annotations, json_option, note, reading_options, show_json

__all__ = ["convert"]


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--to",
    metavar="FORMAT",
    help="long, nested, wide, crowd-kit, label-studio, argilla, huggingface or peerannot, or a "
    "kind of file where the ending of OUT does not tell.",
)
@click.option("--gold", help="Known labels, for formats that have a place for them.")
@reading_options
@json_option
def convert(
    source: str, target: str, to: str | None, gold: str | None, as_json: bool, **reading: Any
) -> None:
    """Write annotations in another format.

    OUT ends in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also .zst),
    or is a folder, which gets the layout of peerannot. What OUT cannot hold is said.

    \b
    Example:
      dissensus convert answers.csv answers.parquet
      dissensus convert answers.csv tasks.json --to label-studio
    """
    from dataclasses import replace

    from ..readers import read_truth
    from ..writers import losses, write

    found = examine_annotations(source, **reading)
    if gold:
        found = replace(found, gold=read_truth(gold))
    lost = losses(found, target, to)
    write(found, target, format=to)
    for sentence in lost:
        note(sentence)
    annotations = found.annotations
    counts = {
        "labels": len(annotations),
        "annotators": annotations.n_annotators,
        "items": annotations.n_items,
        "classes": annotations.n_classes,
    }
    if as_json:
        show_json({**counts, "lost": lost, "written": target})
    elif target != "-":
        note(
            f"{len(annotations)} labels by {annotations.n_annotators} annotators on {annotations.n_items} items "
            f"written to {target}"
        )
