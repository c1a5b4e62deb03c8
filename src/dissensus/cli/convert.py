"""`dissensus convert`, also for publishing: pseudonyms, and a card beside the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import note, show_json
from .files import examine_path, holds_marks, read_known, reading_arguments, replace_converted
from .verb import ANSWERS, READING, command

if TYPE_CHECKING:
    from ..answers import Answers
    from ..formats import Reading
    from ..formats.writers_init import Card


_MEASURES = ("percent", "alpha")
_RESAMPLES = 500


def card_for(reading: Reading, license_: str | None, *, pseudonyms: bool) -> Card:
    """Return the license, if one is given, and how much annotators agree."""
    from .. import metrics as agreement
    from ..formats.writers_init import Card
    from ..pages.terminal import interval, number

    if not len(reading.annotations):
        return Card(license_ or "", (), pseudonyms)
    agreed = agreement.agree(
        reading.annotations, _MEASURES, multiple=reading.kind == "sets", resamples=_RESAMPLES
    )
    sentences = [f"Items with two labels or more: {agreed.n_paired} of {agreed.n_items}."]
    for estimate in agreed.estimates:
        between = interval(estimate.low, estimate.high, 3)
        with_interval = f", 95 % interval {between}" if between else ""
        scale = f" ({agreed.scale})" if estimate.measure == "alpha" else ""
        title = agreed.title_of(estimate.measure).replace("percent", "Percent agreement")
        sentences.append(f"{title}{scale}: {number(estimate.value)}{with_interval}.")
    return Card(license_ or "", tuple(sentences), pseudonyms)


@command(reading=(*ANSWERS, *READING))
def convert(
    source: Annotated[str, "IN"],
    target: Annotated[str, "OUT"],
    *,
    to: str | None = None,
    gold: str | None = None,
    pseudonyms: str | None = None,
    license: str | None = None,  # noqa: A002
    as_json: bool = False,
    force: bool = False,
    **reading: Any,
) -> None:
    """Write annotations in another format.

    OUT ends in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also .zst), or
    is a folder, which gets the layout of peerannot. --to is one of long, nested, wide, crowd-kit,
    label-studio, argilla, huggingface, huggingface-folder and peerannot. What OUT cannot hold is
    reported. An OUT that is there is replaced if a conversion has written it, otherwise with
    --force. --pseudonyms replaces the names of annotators, so that labels can be published; the
    key file is readable by you alone, is used again, and is never written into OUT. Answers of
    other kinds become a table with a row per mark, or records in .jsonl and .json; IN may also be
    the folder of a consensus (`aggregate --save`).

    \b
    Example:
      dissensus convert answers.csv answers.parquet
      dissensus convert answers.csv tasks.json --to label-studio
      dissensus convert answers.csv published --to huggingface-folder --pseudonyms key.json
    """
    from contextlib import nullcontext

    from ..base.files import locked
    from ..formats.pseudonyms import check_key_place, read_key, write_key
    from ..formats.writers_init import losses, pseudonymise, write

    data = None if _is_consensus(source) else examine_path(source, **reading)
    if data is None or holds_marks(data):
        answers = _consensus_in(source) if data is None else data.answers
        for name, value in (("--gold", gold), ("--pseudonyms", pseudonyms), ("--license", license)):
            if value:
                raise OptionError(f"{name} is for classes here, and these are {answers.kind}")
        _convert(answers, target, to, as_json=as_json, force=force)
        return
    publishing = to == "huggingface-folder"
    if license is not None and not publishing:
        raise OptionError("--license is for the card of --to huggingface-folder")
    if pseudonyms is not None:
        check_key_place(pseudonyms, target, to, force=force)
        read_key(pseudonyms)  # what is no key is refused before anything is read
    data, repeated = _first_of_repeats(data, source, to, reading)
    if gold:
        data = replace(data, gold=read_known(gold, data.annotations) or {})

    def save(reading: Reading, path: str | Path, layout: str | None) -> None:
        card = None
        if publishing:
            card = card_for(reading, license, pseudonyms=pseudonyms is not None)
        with progress_bar("writing"):
            write(reading, path, format=layout, card=card)

    # Another conversion may extend the same key, which has to be complete before the output is.
    with nullcontext() if pseudonyms is None else locked(pseudonyms):
        if pseudonyms is not None:
            data, key = pseudonymise(data, read_key(pseudonyms))
        replace_converted(data, target, to, save, force=force)
        if pseudonyms is not None:
            write_key(pseudonyms, key)
    lost = [*repeated, *losses(data, target, to)]
    save(data, target, to)
    if publishing and license is None:
        note("the card names no license; --license cc-by-4.0, for example, adds one")
    for sentence in lost:
        note(sentence)
    annotations = data.annotations
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


def _first_of_repeats(
    data: Reading, source: str, to: str | None, reading: dict[str, Any]
) -> tuple[Reading, list[str]]:
    """Return the first label that an annotator gave to an item, where there is room for one.

    Annotations do not know which label was first, so they are read again; a stream cannot be.
    """
    from ..base.files import is_stream
    from ..formats import examine

    repeats = int(data.annotations.repeats.sum())
    if to != "wide" or not repeats or source == "-" or is_stream(source):
        return data, []
    arguments = reading_arguments(**reading | {"duplicates": "first"})
    first_labels = examine(source, **arguments)
    return replace(data, answers=first_labels.annotations), [
        f"{repeats} labels are left out: an annotator has one cell for an item, and the first "
        "label is kept"
    ]


def _is_consensus(source: str) -> bool:
    return (Path(source) / "result.json").is_file()


def _consensus_in(folder: str) -> Answers:
    """Return the answers of a saved consensus."""
    from ..aggregation.aggregation import AnswerAggregation

    return AnswerAggregation.load(folder).truth


def _convert(answers: Answers, target: str, to: str | None, *, as_json: bool, force: bool) -> None:
    from ..formats.writers_init import write

    def save(content: Any, path: str | Path, layout: str | None) -> None:
        with progress_bar("writing"):
            write(content, path, format=layout)

    replace_converted(answers, target, to, save, force=force)
    save(answers, target, to)
    if as_json:
        counts = {"items": answers.n_items, "annotators": answers.n_annotators}
        counts |= {"answers": len(answers), "empty": int(answers.empty.sum())}
        show_json({"kind": answers.kind, **counts, "lost": [], "written": target})
    elif target != "-":
        note(f"{len(answers)} answers written to {target}")
