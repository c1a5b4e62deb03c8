"""`dissensus aggregate`: of answers of any kind, of data set folders, and of Parquet files.

Sets of Parquet files are one table: read whole if they fit into memory, else aggregated in parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ..answers.left_out import LeftOut
from ..base.progress import iterations, progress_bar
from ..errors import OptionError
from ..pages.terminal import note, note_reading, show_json
from .files import (
    examine_path,
    holds_marks,
    is_data_folder,
    note_unknown,
    read_data_folder,
    read_known,
    with_kinds,
    without_removed,
)
from .verb import ANSWERS, KINDS, READING, Options, command, computed

if TYPE_CHECKING:
    from ..aggregation.aggregation import ClassAggregation, NumberAggregation
    from ..answers.annotations import Annotations
    from ..answers.annotators import Labels
    from ..answers.numbers import Numbers
    from ..base.engine import Engine
    from ..formats import Reading


T = TypeVar("T", "Annotations", "Numbers")
_TEXT = (".csv", ".tsv", ".txt", ".json", ".jsonl")  # never Parquet
# peerannot always writes class numbers for these.
_ALWAYS_HARD = {"majority", "two-thirds", "plantnet", "iwmv", "wawa"}


@dataclass(frozen=True, kw_only=True)
class Machine(Options):
    """Where the work is done, and what of it remains after an interruption."""

    engine: str = "local"
    memory: int | None = computed("half of the machine's")
    threads: int | None = computed("all cores")
    address: str | None = None
    work: str | None = None
    resume: bool = False

    @property
    def in_parts(self) -> bool:
        """Whether the annotations are read in parts, however few they are."""
        return self.resume or self.engine == "dask"

    def cluster(self) -> AbstractContextManager[Engine | None]:
        """Return the context of a Dask cluster; nothing for this machine."""
        if self.engine == "dask":
            from ..scale.dask import joined

            return joined(self.address, self.threads)
        if self.address is not None:
            raise OptionError("--address needs --engine dask")
        return nullcontext()


@dataclass(frozen=True, kw_only=True)
class DataFolder(Options):
    """The files of a data set folder."""

    answers: str = "answers.json"
    metadata: str | None = None
    path_remove: str | None = None
    hard: bool = False

    def refuse_elsewhere(self) -> None:
        """Refuse what has no effect on other data."""
        for flag, value in (("--hard", self.hard), ("--metadata", self.metadata)):
            if value:
                raise OptionError(f"{flag} is for data set folders; leave it out")


@dataclass(frozen=True, kw_only=True)
class Destination(Options):
    """Where results go: a table in a format, a folder to load again, JSON on the terminal."""

    output: str | None = None
    to: str | None = None
    save: str | None = None
    as_json: bool = False

    def save_result(self, result: ClassAggregation | NumberAggregation) -> None:
        """Save what can be loaded again, if a folder is given."""
        if self.save:
            result.save(self.save)

    def write_labels(
        self,
        result: ClassAggregation,
        reading: Reading,
        annotations: Annotations,
        *,
        is_folder: bool,
    ) -> None:
        """Write labels, unless those of a data set folder are enough, and a summary as JSON."""
        if self.output or (not self.as_json and (self.to or not is_folder)):
            from ..formats.writers_init import write

            write(result, self.output or "-", format=self.to, reading=reading)
        if self.as_json:
            from ..reporting.summary import summarise

            show_json(summarise(annotations, result).as_dict())

    def write_numbers(self, result: NumberAggregation) -> None:
        """Save and write the values of numbers."""
        from ..formats.writers_init import write

        self.save_result(result)
        if self.output or not self.as_json:
            write(result, self.output or "-")
        if self.as_json:
            show_json(
                {
                    "method": result.method,
                    "n_items": result.answers.n_items,
                    "n_annotators": result.answers.n_annotators,
                    "n_labels": len(result.answers),
                    "converged": result.converged,
                    "rounds": len(result.trace),
                }
            )


@command(
    strategy="auto; mean for numbers, peer-grading with --authors",
    reading=(*ANSWERS, *READING, *KINDS),
)
def aggregate(
    paths: Annotated[tuple[str, ...], "[PATH]..."],
    *,
    strategy: str | None = None,
    into: Destination,
    gold: str | None = None,
    authors: str | None = None,
    favour: str | None = None,
    folder: DataFolder,
    machine: Machine,
    seed: int = 0,
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
    from ..base.engine import Local

    paths = paths or (".",)
    files = _file_set(paths, folder.answers, machine.memory, reading)
    if files is not None and files.exceeds_memory(machine.in_parts):
        _refuse_favour(favour)
        _check_in_parts(
            reading, to=into.to, hard=folder.hard, path_remove=folder.path_remove, authors=authors
        )
        gold_labels = read_known(gold) if gold else None
        if gold_labels and gold:
            note_unknown(gold_labels, files.items_among(gold_labels), gold)
        files.aggregate(strategy, into, machine, gold=gold_labels, seed=seed)
        return
    is_folder = files is None and is_data_folder(paths[0], folder.answers)
    if is_folder:
        data = read_data_folder(paths[0], reading, answers=folder.answers, metadata=folder.metadata)
    else:
        folder.refuse_elsewhere()
        data = files.read() if files else examine_path(paths[0], **reading)
    if holds_marks(data):
        from . import _answers

        refused = {"--hard": folder.hard, "--path-remove": folder.path_remove}
        _answers.refuse(refused | {"--authors": authors}, data.answers)
        settings: Any = {"inputs": reading["inputs"], "output": into.output, "to": into.to}
        settings |= {"save": into.save, "as_json": into.as_json, "threads": machine.threads}
        settings |= {"strategy": strategy, "favour": favour, "gold": gold, "seed": seed}
        _answers.aggregate(data.answers, **settings)
        return
    _refuse_favour(favour)
    _check_whole(into.output, into.to, resume=machine.resume)
    gold_labels = read_known(gold) if gold else None
    annotations = data.answers
    if gold_labels:
        note_unknown(gold_labels, annotations.items.tolist(), str(gold))
    _note_what_counts(annotations, strategy)
    annotations = without_removed(annotations, folder.path_remove)
    of_numbers = annotations.kind == "numbers"
    aware = None if of_numbers else strategy or "auto"
    annotations, author_of = _without_own(annotations, authors, aware)
    typed = strategy
    if is_folder:
        strategy = _strategy_in_folder(data.annotations, strategy)
    if of_numbers:
        known_numbers: Any = {"gold": gold_labels, "authors": author_of, "seed": seed}
        into.write_numbers(_estimate(annotations, strategy, **known_numbers))
        return
    gold_labels, strategy = gold_labels or dict(data.gold) or None, strategy or "auto"
    with machine.cluster() as cluster:
        at: Any = {"engine": cluster or Local(machine.threads), "seed": seed}
        result = _aggregate_classes(annotations, strategy, gold=gold_labels, **at)
    into.save_result(result)
    if is_folder:
        _write_folder_labels(paths[0], result, typed or "auto", folder)
    into.write_labels(result, data, annotations, is_folder=is_folder)


def _refuse_favour(favour: str | None) -> None:
    if favour:
        raise OptionError("--favour is for spans, boxes and points")


def _check_whole(output: str | None, to: str | None, *, resume: bool) -> None:
    """Refuse what is for Parquet files, and an output of no known format, before any work."""
    if resume:
        raise OptionError("--resume is for Parquet files; nothing else is left unfinished")
    if output and output != "-" and to is None:
        from ..formats.sources import format_for

        format_for(output)


def _note_what_counts(annotations: Labels, strategy: str | None) -> None:
    """Say that repeated labels and those of models count like all others."""
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


def _file_set(
    paths: tuple[str, ...], answers: str, memory: int | None, reading: dict[str, Any]
) -> FileSet | None:
    """Return what may be Parquet files; nothing for a text file or a data set folder."""
    path = Path(paths[0])
    if len(paths) == 1 and (path.suffix.lower() in _TEXT or (path / answers).exists()):
        return None
    from ..formats.tables import is_dataset
    from ..scale.parquet_files import is_many

    if path.is_dir() and ((len(paths) == 1 and is_dataset(path)) or not is_many(paths)):
        return None
    return FileSet(paths, memory, reading)


def _check_in_parts(reading: dict[str, Any], **options: Any) -> None:
    """Refuse options that need all annotations in memory."""
    scale, duplicates, spelling = (reading[name] for name in ("scale", "duplicates", "spelling"))
    needs_memory = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    needs_memory[f"--duplicates {duplicates}"] = duplicates != "count"
    needs_memory[f"--spelling {spelling}"] = spelling != "keep"
    needs_memory[f"--scale {scale}"] = scale in ("interval", "ratio")
    for name, value in needs_memory.items():
        if value:
            raise OptionError(f"{name} needs all annotations in memory; more with --memory")


def _aggregate_classes(
    annotations: Annotations,
    strategy: str,
    *,
    gold: dict[str, str] | None,
    seed: int,
    engine: Engine,
) -> ClassAggregation:
    """Return the labels of a method, and print its notes."""
    from ..aggregation import as_method

    method = as_method(strategy)
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


def _strategy_in_folder(annotations: Annotations, strategy: str | None) -> str | None:
    """Return a strategy of a data set folder, which peerannot may call otherwise."""
    from ..registry import from_peerannot

    annotations.check_classes("a data set folder")
    return from_peerannot(strategy) if strategy else None


def _without_own(
    annotations: T, authors: str | None, strategy: str | None
) -> tuple[T, dict[str, str] | None]:
    """Return answers without those on own work, and the authors, if a file names them.

    A strategy for classes has to know of authors.
    """
    if not authors:
        return annotations, None
    from ..aggregation import as_method
    from ..answers.selections import without_own
    from ..formats.side_tables import read_authors

    author_of = read_authors(authors)
    if strategy is not None:
        as_method(strategy).with_authors(author_of)
    remaining, n_own = without_own(annotations, author_of)
    note_unknown(author_of, annotations.items.tolist(), authors)
    note(f"{n_own} labels of authors on their own items are left out")
    return remaining, author_of


def _estimate(
    numbers: Numbers,
    strategy: str | None,
    *,
    gold: dict[str, str] | None,
    authors: dict[str, str] | None,
    seed: int,
) -> NumberAggregation:
    """Return the values of numbers."""
    from ..aggregation import aggregate

    gold_values = {item: float(value) for item, value in gold.items()} if gold else None
    with progress_bar("aggregating"):
        return aggregate(numbers, strategy or "auto", gold=gold_values, authors=authors, seed=seed)


def _write_folder_labels(
    path: str, result: ClassAggregation, strategy: str, folder: DataFolder
) -> None:
    """Write the labels of a data set folder, and what else peerannot keeps of a strategy."""
    from ..formats.tools.peerannot import read_metadata, write_glad, write_labels, write_undecided
    from ..registry import split_spec

    name, method = read_metadata(path, folder.metadata).get("name"), split_spec(result.method)[0]
    as_numbers = folder.hard or method in _ALWAYS_HARD
    file = write_labels(path, result, strategy, hard=as_numbers, suffix=folder.hard, name=name)
    note(f"labels of {result.answers.n_items} items written to {file}")
    if method == "glad":
        files = write_glad(path, result.params.ability, result.params.log_easiness)
        note(f"abilities and difficulties written to {files[0].parent}")
    elif method == "two-thirds":
        note(f"undecided items written to {write_undecided(path, 'twothird', result)}")


@dataclass(frozen=True)
class FileSet:
    """Files, folders, patterns and addresses that make up one table, and how to read them."""

    paths: tuple[str, ...]
    memory: int | None
    reading: dict[str, Any]

    def exceeds_memory(self, in_parts: bool) -> bool:
        """Return whether these are Parquet files that are too large, or to be done in parts."""
        from ..scale.parquet import fits
        from ..scale.parquet_files import find_files, holds_parquet, is_many, rows_in

        if not is_many(self.paths) and not holds_parquet(self.paths[0]):
            return False
        return in_parts or not fits(rows_in(find_files(self.paths)), self.memory)

    def read(self) -> Reading:
        """Return all rows."""
        from ..formats import Reading
        from ..formats.scales import with_scale
        from ..formats.spellings import Joined, with_spelling_notes
        from ..scale.parquet_files import chunks_of, find_files, is_many, read_all

        if not is_many(self.paths):
            return examine_path(self.paths[0], **self.reading)
        columns, classes = self._columns_and_classes()
        rows = chunks_of(find_files(self.paths), columns, missing=self.reading["missing"])
        joined = Joined() if self.reading["spelling"] == "join" else None
        annotations = read_all(rows, classes, self.reading["duplicates"], joined)
        whole = Reading(annotations, "parquet", notes=annotations.left_out.sentences)
        if joined is not None:
            whole = replace(whole, notes=(*whole.notes, *joined.notes))
        whole = with_spelling_notes(whole, items=not rows.whole["item"])
        whole = with_scale(whole, self.reading["scale"], reorder=classes is None)
        note_reading(whole.notes, whole.annotations.left_out)
        return with_kinds(whole, self.reading.get("models"), self.reading.get("people"))

    def items_among(self, names: Iterable[str]) -> set[str]:
        """Return which of these are items of the table."""
        import polars as pl

        from ..scale.parquet_files import chunks_of, find_files

        columns, _ = self._columns_and_classes()
        wanted_names = pl.Series(list(names), dtype=pl.String).implode()
        rows = chunks_of(find_files(self.paths), columns, missing="keep")
        items = (chunk.read(("item",))["item"].cast(pl.String) for chunk in rows.chunks)
        return {
            name for chunk in items for name in chunk.filter(chunk.is_in(wanted_names)).unique()
        }

    def aggregate(
        self,
        strategy: str | None,
        into: Destination,
        machine: Machine,
        *,
        gold: dict[str, str] | None,
        seed: int,
    ) -> None:
        """Write the labels in parts, and print what was learned."""
        from ..formats.spellings import spelling_notes_of_counts
        from ..scale.fitting import Disk
        from ..scale.parquet import RowReading, aggregate_files
        from ..scale.parquet_files import find_files, rows_in

        if strategy is None:
            strategy = "dawid-skene"
            note("beyond memory, or on a cluster, the default is -s dawid-skene")
        columns, classes = self._columns_and_classes()
        rows = RowReading(
            columns=columns,
            classes=classes,
            gold=gold,
            missing=self.reading["missing"],
            scale=self.reading["scale"],
        )
        with machine.cluster() as cluster, progress_bar("aggregating") as progress:
            result = aggregate_files(
                self.paths,
                strategy,
                into.output,
                reading=rows,
                engine=cluster or Disk(threads=machine.threads),  # type: ignore[arg-type]
                memory=self.memory,
                work=machine.work,
                resume=machine.resume,
                seed=seed,
                on_round=iterations(progress),
            )
        data = result.annotations
        people = data.annotators, data.labels_per_annotator
        for sentence in spelling_notes_of_counts(data.classes, data.labels_per_class, *people):
            note(sentence)
        if into.save:
            result.save(into.save)
        left_out = rows_in(find_files(self.paths)) - len(result.annotations)
        if left_out:
            missing = LeftOut({"without an item, an annotator or a label": left_out})
            note_reading(missing.sentences, missing)
        if result.trace and not result.converged:
            note(f"not converged after {len(result.trace)} iterations; more with max_iter")
        if into.as_json:
            show_json(
                {
                    "method": result.method,
                    "n_items": result.annotations.n_items,
                    "n_annotators": result.annotations.n_annotators,
                    "n_labels": len(result.annotations),
                    "classes": result.annotations.classes.tolist(),
                    "converged": result.converged,
                    "rounds": len(result.trace),
                    "trace": list(result.trace),
                }
            )

    def _columns_and_classes(self) -> tuple[dict[str, str], list[str] | None]:
        from ..formats.columns import parse_columns

        classes = self.reading["classes"]
        names = [name.strip() for name in classes.split(",")] if classes else None
        return parse_columns(self.reading["columns"]), names
