"""`dissensus convert`."""

from __future__ import annotations

from typing import Any

import click

from ._output import note, show_json
from ._reading import examine_annotations, read_known
from ._replacing import replace_converted
from .options import READING, options


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@options("to", "gold", *READING, "json", "force")
def convert(
    source: str,
    target: str,
    to: str | None,
    gold: str | None,
    as_json: bool,
    force: bool,
    **reading: Any,
) -> None:
    """Write annotations in another format.

    OUT ends in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also .zst), or
    is a folder, which gets the layout of peerannot. --to is one of long, nested, wide, crowd-kit,
    label-studio, argilla, huggingface and peerannot. What OUT cannot hold is reported. An OUT that
    is there is replaced if a conversion has written it, otherwise with --force.

    \b
    Example:
      dissensus convert answers.csv answers.parquet
      dissensus convert answers.csv tasks.json --to label-studio
    """
    from dataclasses import replace

    from ..writers import losses, write

    found = examine_annotations(source, **reading)
    if gold:
        found = replace(found, gold=read_known(gold) or {})
    lost = losses(found, target, to)
    replace_converted(found, target, to, force=force)
    write(found, target, format=to)
    for sentence in lost:
        note(sentence)
    annotations = found.annotations
    if as_json:
        counts = {
            "labels": len(annotations),
            "annotators": annotations.n_annotators,
            "items": annotations.n_items,
            "classes": annotations.n_classes,
        }
        show_json({**counts, "lost": lost, "written": target})
    elif target != "-":
        note(
            f"{len(annotations)} labels by {annotations.n_annotators} annotators on "
            f"{annotations.n_items} items written to {target}"
        )
