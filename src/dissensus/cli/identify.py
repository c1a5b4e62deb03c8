"""`dissensus identify`, and `identificationinfo` as peerannot calls its list of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._deep import Network, network_options
from ._hard import Wanted, find_hard, hard_options
from ._identified import (
    give,
    item_table,
    json_of,
    print_annotators,
    print_cleaned,
    print_items,
    print_score,
    rows_of,
)
from ._shared import (
    examine_annotations,
    json_option,
    note,
    progress_bar,
    reading_options,
    seed_option,
    show_json,
)

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..identification.scores import Asked, Scored
    from ..readers import Reading

__all__ = ["identificationinfo", "identify"]

_STEPS = 6  # of `identify`


@click.command()
@click.argument("path", default=".")
@click.option(
    "--method",
    "--strategy",
    "-s",
    "name",
    help="One score, see `dissensus identificationinfo`.  [default: all of annotators]",
)
@click.option(
    "--consensus",
    default="dawid-skene-map",
    show_default=True,
    help="The method whose consensus everything is compared with.",
)
@click.option("--items", is_flag=True, help="The table of items instead of that of annotators.")
@click.option("--gold", help="Table of known labels.")
@click.option("--probabilities", help="What a classifier says of the items, for CROWDLAB.")
@click.option(
    "--drop",
    "rules",
    multiple=True,
    help="Leave out labels: 'spam_score < 0.05', 'item.cause == hard'; again for more rules.",
)
@click.option(
    "--output", "-o", help="Where the table goes, or with --drop the annotations that are kept."
)
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, help="Rows.")
@click.option("--communities", type=click.IntRange(min=0), default=0, help="How many to look for.")
@click.option(
    "--models/--no-models",
    default=None,
    help="Fit GLAD and MACE as well.  [default: up to 100 000 labels]",
)
@click.option("--copying/--no-copying", default=True, help="Look for pairs who agree too much.")
@click.option(
    "-K", "--n-classes", type=click.IntRange(min=1), help="Classes, where they are 0, 1 …"
)
@click.option("--labels", help="Answers of a folder.  [default: answers.json]")
@click.option("--metadata_path", "--metadata-path", "metadata", help="Instead of the folder's own.")
@click.option("--matrix-file", help="Confusion matrices (.npy) for spam_score, trace and waum.")
@click.option(
    "--maxiter-dawid-skene",
    "--maxiter-DS",
    "rounds",
    type=click.IntRange(min=1),
    help="Rounds of Dawid and Skene behind spam_score, trace and waum.  [default in a folder: 50]",
)
@hard_options
@network_options(epochs=50)
@reading_options
@json_option
@seed_option
def identify(
    path: str,
    name: str | None,
    consensus: str,
    items: bool,
    gold: str | None,
    probabilities: str | None,
    rules: tuple[str, ...],
    output: str | None,
    most: int,
    communities: int,
    models: bool | None,
    copying: bool,
    n_classes: int | None,
    labels: str | None,
    metadata: str | None,
    matrix_file: str | None,
    rounds: int | None,
    hard_labels: str | None,
    use_pleiss: bool,
    alpha: float,
    topk: int,
    held_out: float,
    network: Network,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Say whom to trust, who copies, and which items are hard.

    Every annotator is compared with the consensus of the others. Without -s all scores are shown,
    the worst annotators first, with a verdict; --items shows the items. In a peerannot folder, -s
    also writes identification/… as peerannot names it. aum, aumc, waum and waum_perworker train a
    network on what the items are, and find those that it cannot learn.

    \b
    Examples:
      dissensus identify answers.csv
      dissensus identify answers.csv --drop "verdict == spammer" -o kept.csv
      dissensus identify answers.csv -s waum --inputs texts.csv
    """
    from ..identification.scores import Asked, find_score, score
    from ..readers import read_truth

    found = find_score(name) if name else None
    if items and name:
        raise click.UsageError("--items shows all scores of items; give it without -s")
    folder = _is_folder(path, labels)
    read = _read(path, folder, labels, metadata, n_classes, reading)
    annotations = read.annotations
    asked = Asked(
        annotations,
        consensus,
        gold=read_truth(gold) if gold else None,
        matrices=_matrices(matrix_file),
        rounds=rounds if rounds or not folder else 50,
        probabilities=_probabilities(probabilities, annotations),
        communities=communities,
        seed=seed,
    )
    if rules:
        _clean(asked, rules, output, as_json)
        return
    if found and found.trains:
        wanted = Wanted(
            found, path, folder, metadata, hard_labels, use_pleiss, alpha, topk, held_out, network
        )
        find_hard(wanted, read, asked, output=output, most=most, as_json=as_json)
        return
    if found:
        scored = score(asked, found.name)
        if folder:
            _write_as_peerannot(path, scored, asked, both=name is not None and name == "glad")
        give(scored.table(), output)
        if as_json:
            show_json(json_of(scored))
        elif not output:
            print_score(scored, most)
        return
    if items:
        table = item_table(asked)
        give(table, output)
        if as_json:
            show_json(rows_of(table))
        elif not output:
            print_items(table, most)
        return
    with progress_bar("scoring annotators") as progress:
        identified = asked.identified(models=models, copying=copying, progress=progress)
    table = dict(identified.table())
    if probabilities:
        table["annotator_quality"] = asked.quality.annotator_quality
    give(table, output)
    if as_json:
        show_json(identified.as_dict())
    elif not output:
        print_annotators(identified, most)


@click.command()
@json_option
def identificationinfo(as_json: bool) -> None:
    """List the scores of annotators, items and the crowd."""
    from ..identification.scores import SCORES

    if as_json:
        show_json(
            [
                {"name": one.name, "of": one.of, "text": one.text, "aliases": list(one.aliases)}
                for one in SCORES
            ]
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("score", "of", "what it says", "also called", title="dissensus identify -s …")
    for one in SCORES:
        table.add_row(one.name, one.of, one.text, ", ".join(one.aliases))
    Console(highlight=False).print(table)


def _is_folder(path: str, labels: str | None) -> bool:
    """Return whether it is a folder as peerannot has them."""
    from ..readers.folders import is_folder

    return is_folder(path) and (labels is not None or (Path(path) / "answers.json").exists())


def _read(
    path: str,
    folder: bool,
    labels: str | None,
    metadata: str | None,
    n_classes: int | None,
    reading: dict[str, Any],
) -> Reading:
    from .._names import numbered
    from ..readers import Reading
    from ..readers.folders import read_folder

    classes = None if n_classes is None else numbered(n_classes).tolist()
    if not folder:
        if classes and not reading["classes"]:
            reading["classes"] = ",".join(classes)
        return examine_annotations(path, **reading)
    answers = Path(labels or "answers.json")
    # As peerannot has it, a path counts from here; a name counts from the folder.
    if labels and answers.exists():
        answers = answers.resolve()
    annotations = read_folder(path, answers=answers, metadata=metadata, classes=classes)
    return Reading(annotations, "folder")


def _matrices(file: str | None) -> Any:
    if file is None:
        return None
    from ..errors import DataError
    from ..readers.folders import load_array

    matrices = load_array(file)
    if matrices.ndim != 3 or matrices.dtype.kind not in "fiu":
        raise DataError(f"{file}: confusion matrices are numbers (annotator, true, given)")
    return matrices.astype(float)


def _probabilities(file: str | None, annotations: Annotations) -> Any:
    if file is None:
        return None
    from ..readers.probabilities import read_probabilities

    return read_probabilities(file, annotations)


def _clean(asked: Asked, rules: tuple[str, ...], output: str | None, as_json: bool) -> None:
    from ..identification.cleaning import clean
    from ..writers import write

    cleaned = clean(asked.annotations, rules, result=asked.result, gold=asked.gold, seed=asked.seed)
    if output:
        write(cleaned.annotations, output)
    if as_json:
        show_json(cleaned.as_dict())
    elif output != "-":
        print_cleaned(cleaned, output)


def _write_as_peerannot(path: str, scored: Scored, asked: Asked, *, both: bool) -> None:
    """Write a score where peerannot would, if it has a place for it."""
    import numpy as np

    from ..identification.scores import score
    from ..readers.folders import save_array

    for one in (scored, score(asked, "difficulty")) if both else (scored,):
        if one.score.file is None:
            continue
        position = Path(path) / "identification" / one.score.file
        values = one.values
        if one.score.of == "crowd":
            values = values[0]
        elif one.score.file.startswith("glad/"):  # there, with the number it belongs to
            values = np.stack([np.arange(len(values), dtype=float), values], axis=1)
        save_array(position, np.asarray(values))
        note(f"{one.score.name} written to {position}")
