"""`dissensus aggregate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._large import Large, engine_at, large_options, tell_labelled
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
    from ..engine import Engine
    from ..readers import Reading
    from ..result import Aggregation

__all__ = ["aggregate"]

# peerannot writes these as class numbers whether asked for or not.
_ALWAYS_HARD = {"majority", "two-thirds", "plantnet", "iwmv", "wawa"}


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--strategy",
    "-s",
    help="name[setting=value,…].  [default: auto; ordinal-distance; mean, for numbers]",
)
@click.option(
    "--labels",
    "kind",
    type=click.Choice(["auto", "nominal", "ordinal", "numeric"]),
    default="auto",
    show_default=True,
    help="What labels are: classes, classes in order, or numbers.",
)
@click.option(
    "--output", "-o", help="Where the labels go; the ending tells the format.  [default: -]"
)
@click.option(
    "--to", help="Format of the labels, to go back into a tool: label-studio, argilla, huggingface."
)
@click.option("--hard", is_flag=True, help="For a folder: write class numbers, not probabilities.")
@click.option("--gold", help="Table of known labels; they are kept and learned from.")
@click.option("--save", help="Folder to keep the whole result in, for `Aggregation.load`.")
@large_options
@click.option("--threads", type=click.IntRange(min=1), help="How many.  [default: all cores]")
@click.option("--answers-file", default="answers.json", show_default=True, help="In a folder.")
@click.option("--metadata_path", "--metadata-path", "metadata", help="Instead of the folder's own.")
@click.option("--path-remove", help="Text file whose last column names items to leave out.")
@reading_options
@json_option
@seed_option
def aggregate(
    paths: tuple[str, ...],
    strategy: str | None,
    kind: str,
    output: str | None,
    to: str | None,
    hard: bool,
    gold: str | None,
    save: str | None,
    engine: str,
    address: str | None,
    memory: int | None,
    work: str | None,
    resume: bool,
    threads: int | None,
    answers_file: str,
    metadata: str | None,
    path_remove: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Estimate the true label of every item.

    PATH is a table of who said what (csv, tsv, parquet, arrow, jsonl, json; `-` for standard
    input) or a data set folder; several Parquet files, a folder of them, a pattern or an address
    in an object store are one table. The labels are written as a table with a column for every
    class; for a data set folder they also go to labels/labels_<name>_<strategy>.npy.

    \b
    Example:
      dissensus aggregate answers.csv -o labels.csv
      dissensus aggregate answers/*.parquet -o labels/ -s dawid-skene --memory 4GiB
    """
    from ..errors import OptionError
    from ..readers import Reading, read_truth
    from ..readers.folders import is_folder, read_folder
    from ..readers.side_tables import read_removed
    from ..readers.sources import format_for
    from ..sharded.chunks import is_many

    path = paths[0] if paths else "."
    large = Large(paths or (".",), engine, address, memory, work, resume, threads, reading)
    answered = (Path(path) / answers_file).exists()
    folder = len(paths) < 2 and is_folder(path) and (answered or not is_many(large.paths))
    if not folder and large.wanted():
        _refuse({"--to": to, "--hard": hard, "--path-remove": path_remove}, kind)
        done = large.aggregate(strategy, output, read_truth(gold) if gold else None, seed)
        if save:
            done.save(save)
        tell_labelled(done, as_json)
        return
    if resume:
        raise OptionError("--resume is for sets of Parquet files: nothing else is left unfinished")
    if output and output != "-" and to is None:
        format_for(output)  # before anything is computed
    if folder:
        found = Reading(read_folder(path, answers=answers_file, metadata=metadata), "folder")
    elif is_many(large.paths):
        found = large.read()
    else:
        found = examine_annotations(path, **reading)
    annotations = found.annotations
    if path_remove:
        removed = read_removed(path_remove)
        annotations = annotations.subset(
            items=[name for name in annotations.items if name not in removed]
        )
    if not folder and _are_numbers(annotations, kind):
        _estimate(annotations, strategy or "mean", output, gold, save, as_json, seed)
        return
    strategy = strategy or ("ordinal-distance" if kind == "ordinal" else "auto")
    known = read_truth(gold) if gold else dict(found.gold) or None
    with engine_at(engine, address, threads) as cluster:
        result = _fit(annotations, strategy, known, seed, threads, cluster)
    if save:
        result.save(save)
    if folder:
        _write_labels(path, result, strategy, hard, metadata)
    _tell(found, result, output, to, as_json)


def _are_numbers(annotations: Annotations, kind: str) -> bool:
    """Return whether labels are to be taken for numbers, and say so where nobody told."""
    from ..readers import kind_of_labels

    if kind != "auto":
        return kind == "numeric"
    found = kind_of_labels(annotations.classes.tolist())
    if found.kind == "numeric":
        note(f"labels are taken for numbers: {found.reason}; --labels nominal makes them classes")
    return found.kind == "numeric"


def _refuse(options: dict[str, Any], kind: str) -> None:
    """Say which options have no meaning beyond memory."""
    from ..errors import OptionError

    told = [name for name, value in options.items() if value]
    if kind not in ("auto", "nominal", "ordinal"):
        told.append(f"--labels {kind}")
    if told:
        raise OptionError(f"{told[0]} needs all annotations in memory; more with --memory")


def _fit(
    annotations: Annotations,
    strategy: str,
    gold: Any,
    seed: int,
    threads: int | None,
    cluster: Engine | None = None,
) -> Aggregation:
    from ..engine import Local
    from ..registry import aggregators

    with progress_bar("aggregating") as progress:
        result = aggregators.create(strategy).fit(
            annotations, gold=gold, seed=seed, engine=cluster or Local(threads), progress=progress
        )
    if not result.converged and result.trace:
        note(
            f"not converged after {len(result.trace)} rounds; "
            f"more with -s '{strategy.partition('[')[0]}[max_iter={4 * len(result.trace)}]'"
        )
    for sentence in result.notes:
        note(sentence)
    return result


def _write_labels(
    path: str, result: Aggregation, strategy: str, hard: bool, metadata: str | None
) -> None:
    from ..readers.folders import read_metadata
    from ..registry import aggregators
    from ..writers.folders import write_labels

    name = read_metadata(path, metadata).get("name")
    as_numbers = hard or aggregators.resolve(strategy)[0] in _ALWAYS_HARD
    position = write_labels(path, result, strategy, hard=as_numbers, suffix=hard, name=name)
    note(f"labels of {result.annotations.n_items} items written to {position}")


def _tell(
    found: Reading, result: Aggregation, output: str | None, to: str | None, as_json: bool
) -> None:
    from ..writers import write

    if output or (to and not as_json):
        write(result, output or "-", format=to, reading=found)
    if as_json:
        from ..reporting.summary import summarise

        show_json(summarise(result.annotations, result).as_dict())
    elif not output and not to and found.format != "folder":
        write(result, "-")


def _estimate(
    annotations: Annotations,
    strategy: str,
    output: str | None,
    gold: str | None,
    save: str | None,
    as_json: bool,
    seed: int,
) -> None:
    from ..readers import as_numbers, read_truth
    from ..registry import estimators
    from ..writers import write

    method = estimators.create(strategy)
    known = {item: float(value) for item, value in read_truth(gold).items()} if gold else None
    result = method.fit(as_numbers(annotations), gold=known, seed=seed)
    if save:
        result.save(save)
    if output or not as_json:
        write(result, output or "-")
    if as_json:
        show_json(
            {
                "method": result.method,
                "n_items": annotations.n_items,
                "n_annotators": annotations.n_annotators,
                "n_labels": len(annotations),
                "converged": result.converged,
                "rounds": len(result.trace),
            }
        )
