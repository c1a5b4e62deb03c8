"""`dissensus convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import OptionError
from ._output import note, show_json
from ._reading import class_options, examine_annotations, examine_answers, read_known
from ._replacing import replace_converted
from .options import ANSWERS, READING, options

if TYPE_CHECKING:
    from ..answers import Answers


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@options("to", "gold", *ANSWERS, *READING, "json", "force")
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
    is there is replaced if a conversion has written it, otherwise with --force. Answers of other
    kinds become a table with a row per mark, or records in .jsonl and .json; IN may also be the
    folder of a consensus (`aggregate --save`).

    \b
    Example:
      dissensus convert answers.csv answers.parquet
      dissensus convert answers.csv tasks.json --to label-studio
    """
    from dataclasses import replace

    other = _answers_of(source, reading)
    if other is not None:
        if gold:
            raise OptionError(f"--gold is for classes here, and these are {other.kind}")
        _convert(other, target, to, as_json=as_json, force=force)
        return
    reading = class_options(source, reading)
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


def _answers_of(source: str, reading: dict[str, Any]) -> Answers | None:
    """Return answers of other kinds in a file, or those of a saved consensus."""
    if (Path(source) / "result.json").is_file():
        from ..consensus import Consensus

        return Consensus.load(source).consensus
    found = examine_answers(source, **reading)
    return None if found is None else found.answers


def _convert(answers: Answers, target: str, to: str | None, *, as_json: bool, force: bool) -> None:
    from ..writers import write

    replace_converted(answers, target, to, force=force)
    write(answers, target, format=to)
    if as_json:
        counts = {"items": answers.n_items, "annotators": answers.n_annotators}
        counts |= {"answers": len(answers), "empty": int(answers.empty.sum())}
        show_json({"kind": answers.kind, **counts, "lost": [], "written": target})
    elif target != "-":
        note(f"{len(answers)} answers written to {target}")
