"""`dissensus aggregate`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import iterations, progress_bar
from ..errors import OptionError
from ..pages.terminal import note, show_json
from .files import (
    class_options,
    examine_annotations,
    examine_answers,
    is_data_folder,
    note_unknown,
    read_data_folder,
    read_known,
    without_removed,
)
from .verb import ANSWERS, KINDS, READING, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..base.engine import Engine
    from ..result import Aggregation
    from ._file_sets import FileSet

_TEXT = (".csv", ".tsv", ".txt", ".json", ".jsonl")  # never Parquet
# peerannot always writes class numbers for these.
_ALWAYS_HARD = {"majority", "two-thirds", "plantnet", "iwmv", "wawa"}


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@options(
    *("output", "to", "hard", "gold", "authors", "save", "address", "work", "resume"),
    *("metadata --metadata_path --metadata-path", "path_remove", "answers --answers-file"),
    *("favour", *ANSWERS, *READING, *KINDS, "scale --labels", "json", "seed"),
    strategy=Computed("auto; mean for numbers, peer-grading with --authors"),
    engine="local",
    memory=Computed("half of the machine's"),
    threads=Computed("all cores"),
    answers="answers.json",
)
def aggregate(
    paths: tuple[str, ...],
    strategy: str | None,
    output: str | None,
    to: str | None,
    hard: bool,
    gold: str | None,
    authors: str | None,
    save: str | None,
    engine: str,
    address: str | None,
    memory: int | None,
    work: str | None,
    resume: bool,
    threads: int | None,
    answers: str,
    metadata: str | None,
    path_remove: str | None,
    favour: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Estimate the true label of every item.

    PATH is a table of annotations (csv, tsv, parquet, arrow, jsonl, json; `-` for standard input),
    an export of a labelling tool, or a data set folder. Several Parquet files, a folder of them, a
    pattern or an address in an object store are one table. The output is a table with a column for
    every class; for a data set folder it is labels/labels_<name>_<strategy>.npy. Sets, rankings,
    spans, boxes, points, masks and texts are recognised by their columns, or given by --kind. With
    --authors, annotators who are authors do not label their own items.

    \b
    Example:
      dissensus aggregate answers.csv -o labels.csv
      dissensus aggregate answers/*.parquet -o labels/ -s dawid-skene --memory 4GiB
    """
    paths = paths or (".",)
    if len(paths) == 1 and (Path(paths[0]).exists() or paths[0] == "-"):
        given = examine_answers(paths[0], **reading)
        if given is not None:
            from . import _answers

            unused = {"--hard": hard, "--path-remove": path_remove, "--authors": authors}
            _answers.refuse(unused, given.answers.kind)
            how: dict[str, Any] = {
                "strategy": strategy,
                "favour": favour,
                "gold": gold,
                "save": save,
            }
            how |= {"inputs": reading["inputs"], "output": output, "to": to, "threads": threads}
            _answers.aggregate(given.answers, as_json=as_json, seed=seed, **how)
            return
    if favour:
        raise OptionError("--favour is for spans, boxes and points")
    reading = class_options(paths[0], reading)
    known = read_known(gold) if gold else None
    files = _file_set(paths, answers, memory, reading)
    if files is not None and files.exceeds_memory(in_parts=resume or engine == "dask"):
        _check_in_parts(to, hard, path_remove, authors, reading)
        settings = {"gold": known, "threads": threads, "work": work, "resume": resume, "seed": seed}
        if known and gold:
            note_unknown(known, files.items_among(known), gold)
        with _cluster(engine, address, threads) as cluster:
            files.aggregate(strategy, output, cluster, save=save, as_json=as_json, **settings)
        return
    if resume:
        raise OptionError("--resume is for Parquet files; nothing else is left unfinished")
    if output and output != "-" and to is None:
        from ..formats.sources import format_for

        format_for(output)  # before anything is computed
    folder = files is None and is_data_folder(paths[0], answers)
    if folder:
        found = read_data_folder(paths[0], reading, answers=answers, metadata=metadata)
    else:
        found = files.read() if files else examine_annotations(paths[0], **reading)
    annotations = found.annotations
    if known:
        note_unknown(known, annotations.items.tolist(), str(gold))
    repeats = int(annotations.repeats.sum())
    if repeats:
        note(
            f"{repeats} labels repeat those of the same annotator on the same item, and all count; "
            "--duplicates first or last keeps one"
        )
    if annotations.mixed_kinds and (strategy or "auto").partition("[")[0] != "judge-pool":
        note(
            "the labels of models count like those of people here, and models share errors; "
            "-s judge-pool weights them"
        )
    if path_remove:
        annotations = without_removed(annotations, path_remove)
    known_authors = None
    if authors:
        annotations, known_authors = _without_own(annotations, authors, strategy or "auto")
    if folder:
        from ..registry import from_peerannot

        annotations.check_classes("a data set folder")
        typed, strategy = strategy, from_peerannot(strategy) if strategy else None
    if annotations.numeric:
        how = {"gold": known, "authors": known_authors, "seed": seed}
        _aggregate_numbers(paths[0], annotations, strategy, output, save, as_json, **how)
        return
    strategy = strategy or "auto"
    with _cluster(engine, address, threads) as cluster:
        known = known or dict(found.gold) or None
        result = _aggregate_classes(annotations, strategy, known, seed, threads, cluster)
    if save:
        result.save(save)
    if folder:
        _write_folder_labels(paths[0], result, typed or strategy, hard, metadata)
    if output or (not as_json and (to or not folder)):
        from ..formats.writers_init import write

        write(result, output or "-", format=to, reading=found)
    if as_json:
        from ..reporting.summary import summarise

        show_json(summarise(annotations, result).as_dict())


def _file_set(
    paths: tuple[str, ...], answers: str, memory: int | None, reading: dict[str, Any]
) -> FileSet | None:
    """Return what may be Parquet files; nothing for a text file or a data set folder."""
    path = Path(paths[0])
    if len(paths) == 1 and (path.suffix.lower() in _TEXT or (path / answers).exists()):
        return None
    from ..formats.dataset_folders import is_dataset
    from ..scale.parquet_files import is_many
    from ._file_sets import FileSet

    if path.is_dir() and ((len(paths) == 1 and is_dataset(path)) or not is_many(paths)):
        return None
    return FileSet(paths, memory, reading)


def _check_in_parts(
    to: str | None,
    hard: bool,
    path_remove: str | None,
    authors: str | None,
    reading: dict[str, Any],
) -> None:
    """Refuse options that need all annotations in memory."""
    scale, duplicates, spelling = (reading[name] for name in ("scale", "duplicates", "spelling"))
    given = {"--to": to, "--hard": hard, "--path-remove": path_remove, "--authors": authors}
    given[f"--duplicates {duplicates}"] = duplicates != "count"
    given[f"--spelling {spelling}"] = spelling != "keep"
    given[f"--scale {scale}"] = scale in ("interval", "ratio")
    for name, value in given.items():
        if value:
            raise OptionError(f"{name} needs all annotations in memory; more with --memory")


def _cluster(
    engine: str, address: str | None, threads: int | None
) -> AbstractContextManager[Engine | None]:
    """Return the context of a Dask cluster; nothing for this machine."""
    if engine == "dask":
        from ..scale.cluster import joined

        return joined(address, threads)
    if address is not None:
        raise OptionError("--address needs --engine dask")
    return nullcontext()


def _aggregate_classes(
    annotations: Annotations,
    strategy: str,
    gold: dict[str, str] | None,
    seed: int,
    threads: int | None,
    cluster: Engine | None,
) -> Aggregation:
    from ..aggregation import as_method
    from ..base.engine import Local

    method, engine = as_method(strategy), cluster or Local(threads)
    with progress_bar("aggregating") as progress:
        result = method.fit(
            annotations, gold=gold, seed=seed, engine=engine, progress=iterations(progress)
        )
    if not result.converged and result.trace:
        note(
            f"not converged after {len(result.trace)} iterations; "
            f"more with -s '{strategy.partition('[')[0]}[max_iter={4 * len(result.trace)}]'"
        )
    for sentence in result.notes:
        note(sentence)
    if result.unidentifiable is not None:
        note(" ".join(result.unidentifiable))
    return result


def _without_own(
    annotations: Annotations, authors: str, strategy: str
) -> tuple[Annotations, dict[str, str]]:
    """Return annotations without those on own work, and the authors."""
    from ..aggregation import as_method, check_authors
    from ..answers.selections import without_own
    from ..formats.side_tables import read_authors

    if not annotations.numeric:
        check_authors(as_method(strategy))
    known = read_authors(authors)
    kept, n_own = without_own(annotations, known)
    note_unknown(known, annotations.items.tolist(), authors)
    note(f"{n_own} labels of authors on their own items are left out")
    return kept, known


def _aggregate_numbers(
    path: str,
    annotations: Annotations,
    strategy: str | None,
    output: str | None,
    save: str | None,
    as_json: bool,
    *,
    gold: dict[str, str] | None,
    authors: dict[str, str] | None,
    seed: int,
) -> None:
    from ..aggregation.numeric_init import estimate
    from ..formats import as_numbers
    from ..formats.writers_init import write

    known = {item: float(value) for item, value in gold.items()} if gold else None
    numbers = as_numbers(annotations, path)
    with progress_bar("aggregating"):
        result = estimate(numbers, strategy, gold=known, authors=authors, seed=seed)
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


def _write_folder_labels(
    path: str, result: Aggregation, strategy: str, hard: bool, metadata: str | None
) -> None:
    """Write the labels of a data set folder, and what else peerannot keeps of a strategy."""
    from ..formats.tools.peerannot import read_metadata
    from ..registry import split_spec
    from ..formats.tools.folders import write_glad, write_labels, write_undecided

    name, method = read_metadata(path, metadata).get("name"), split_spec(result.method)[0]
    as_numbers = hard or method in _ALWAYS_HARD
    file = write_labels(path, result, strategy, hard=as_numbers, suffix=hard, name=name)
    note(f"labels of {result.annotations.n_items} items written to {file}")
    if method == "glad":
        files = write_glad(path, result.params.ability, result.params.log_easiness)
        note(f"abilities and difficulties written to {files[0].parent}")
    elif method == "two-thirds":
        note(f"undecided items written to {write_undecided(path, 'twothird', result)}")
