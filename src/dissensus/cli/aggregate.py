"""`dissensus aggregate`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import (
    json_option,
    note,
    progress_bar,
    read_annotations,
    reading_options,
    seed_option,
    show_json,
)

__all__ = ["aggregate"]

# peerannot writes these as class numbers whether asked for or not.
_ALWAYS_HARD = {"majority"}


@click.command()
@click.argument("path", default=".")
@click.option(
    "--strategy", "-s", default="dawid-skene", show_default=True, help="name[setting=value,…]"
)
@click.option(
    "--output", "-o", help="Where the labels go; the ending tells the format.  [default: -]"
)
@click.option("--hard", is_flag=True, help="For a folder: write class numbers, not probabilities.")
@click.option("--gold", help="Table of known labels; they are kept and learned from.")
@click.option("--save", help="Folder to keep the whole result in, for `Aggregation.load`.")
@click.option(
    "--engine",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="Where to work.",
)
@click.option("--threads", type=click.IntRange(min=1), help="How many.  [default: all cores]")
@click.option("--answers-file", default="answers.json", show_default=True, help="In a folder.")
@click.option("--metadata_path", "--metadata-path", "metadata", help="Instead of the folder's own.")
@click.option("--path-remove", help="Text file whose last column names items to leave out.")
@reading_options
@json_option
@seed_option
def aggregate(
    path: str,
    strategy: str,
    output: str | None,
    hard: bool,
    gold: str | None,
    save: str | None,
    engine: str,  # noqa: ARG001
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
    input) or a data set folder. The labels are written as a table with a column for every class;
    for a folder they also go to labels/labels_<name>_<strategy>.npy.

    \b
    Example:
      dissensus aggregate answers.csv -s dawid-skene -o labels.csv
    """
    from ..engine import Local
    from ..io import read_truth, write
    from ..io.folders import is_folder, read_folder, read_metadata, write_labels
    from ..registry import aggregators

    method = aggregators.create(strategy)
    folder = is_folder(path)
    said = (
        read_folder(path, answers=answers_file, metadata=metadata)
        if folder
        else read_annotations(path, **reading)
    )
    if path_remove:
        said = said.subset(items=[name for name in said.items if name not in _removed(path_remove)])
    with progress_bar("aggregating") as tell:
        result = method.fit(
            said,
            gold=read_truth(gold) if gold else None,
            seed=seed,
            engine=Local(threads),
            progress=tell,
        )
    if not result.converged:
        note(
            f"not converged after {len(result.trace)} rounds; "
            f"more with -s '{strategy.partition('[')[0]}[max_iter={4 * len(result.trace)}]'"
        )
    if save:
        result.save(save)
    if folder:
        name = read_metadata(path, metadata).get("name")
        as_numbers = hard or aggregators.resolve(strategy)[0] in _ALWAYS_HARD
        place = write_labels(path, result, strategy, hard=as_numbers, suffix=hard, name=name)
        note(f"labels of {said.n_items} items written to {place}")
    if output:
        write(result, output)
    if as_json:
        from ..reporting.summary import summarise

        show_json(summarise(said, result).as_dict())
    elif not output and not folder:
        write(result, "-")


def _removed(file: str) -> set[str]:
    from pathlib import Path

    from ..errors import DataError

    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{file}: {problem}") from None
    return {line.split()[-1] for line in lines if line.strip()}
