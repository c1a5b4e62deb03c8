"""`dissensus watch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._files import reason
from ..errors import DataError, DissensusError, OptionError, OutputError
from ._output import note, show_json
from .options import REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..scale.stream import Stream

_TOGETHER = ("belong together", "exclude each other")
_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", "~")


@click.command()
@click.argument("path", required=False)
@options(
    *("label_studio", "project", "key", "listen", "question"),
    *("once", "every --interval", "columns", "classes", "missing", "json", "seed"),
    output=REQUIRED,
    strategy="dawid-skene",
    state=Computed("beside the output"),
    every=5.0,
    refit=0.5,
)
def watch(
    path: str | None,
    output: str,
    strategy: str,
    state: str | None,
    label_studio: str | None,
    project: int | None,
    key: str | None,
    listen: int | None,
    question: str | None,
    once: bool,
    every: float,
    refit: float,
    columns: str | None,
    classes: str | None,
    missing: str,
    as_json: bool,
    seed: int,
) -> None:
    """Keep labels up to date while annotations arrive.

    PATH is a file that grows, or a folder that files are added to. New rows update the labels and
    the annotator parameters without a full fit; now and then there is one. Restarted, it resumes
    where it was: no row is lost or counted twice. A column of ids (id, annotation_id …) ensures
    that even where rows are sent twice. A file that cannot be read is reported and stops no other.

    --label-studio follows a project instead: labels and confidences are written back as
    predictions, and the agreement of a task into its meta. With --listen its webhooks are taken at
    once, otherwise the project is read again and again. The API key comes from
    LABEL_STUDIO_API_KEY or a file.

    \b
    Example:
      dissensus watch answers/ -o labels.csv
      dissensus watch --label-studio http://localhost:8080 --project 1 --listen 9000 -o labels.csv
    """
    from ..live.current_labels import CurrentLabels
    from ..readers.columns import parse_columns
    from ..readers.sources import format_for
    from ..scale.stream import Stream
    from ._label_studio import Follower, connect, follow

    format_for(output)
    target = Path(output)
    declared = [name.strip() for name in classes.split(",")] if classes else None
    live = {"--project": project, "--key": key, "--listen": listen, "--question": question}
    of_files = {"PATH": path, "--state": state, "--columns": columns}
    for name, value in (of_files if label_studio else live).items():
        if value is not None:
            raise OptionError(f"{name} and --label-studio {_TOGETHER[bool(label_studio)]}")
    if label_studio is not None:
        if project is None:
            raise OptionError("--label-studio needs the number of a project: --project NUMBER")
        labels = CurrentLabels(strategy, classes=declared, refit=refit, seed=seed)
        connected = connect(label_studio, project, key)
        follower = Follower(connected, labels, target, question, declared, as_json)
        follow(follower, listen, once=once, every=every)
        return
    if path is None:
        raise OptionError("name a file or folder to watch, or --label-studio URL")
    folder = state or str(target.with_name(f".{target.name}.state"))
    opened = Stream.opened(folder, strategy, classes=declared, refit=refit, seed=seed)
    with opened as stream:
        look = Look(stream, Path(path), target, parse_columns(columns), missing)
        while True:
            taken, problems = look.take(), look.problems
            if declared is None:
                _check_classes(stream)
            try:
                if (taken or look.first) and len(stream.online):
                    _write(stream, target, taken, as_json)
                look.first = False
            except OutputError as problem:
                problems = [*problems, problem]
            if once and problems:
                raise problems[-1]
            for one in problems:
                note(f"{one}; looking again in {every:g} s")
            if once:
                return
            try:
                time.sleep(every)
            except KeyboardInterrupt:
                return


class Look:
    """A file or folder that is looked at again and again."""

    def __init__(
        self, stream: Stream, path: Path, output: Path, columns: dict[str, str], missing: str
    ) -> None:
        self.stream, self.path, self.output = stream, path, output
        self.columns, self.missing = columns, missing
        self.first = True
        self.problems: list[DissensusError] = []  # of the last look
        self._looked: dict[str, tuple[int, int, int]] = {}  # files at the last look

    def take(self) -> int:
        """Add what is new; return the number of new annotations. A bad file stops no other."""
        self.problems, taken = [], 0
        try:
            files = self._files()
        except (OSError, DataError) as problem:
            if self.first:
                raise
            self.problems.append(DataError(f"{self.path}: {reason(problem)}"))
            return 0
        for file in files:
            try:
                stat = file.stat()
                mark = stat.st_ino, stat.st_size, stat.st_ctime_ns
                if stat.st_size and self._looked.get(file.name) != mark:
                    self._looked[file.name] = mark
                    taken += self._take(file)
            except FileNotFoundError:
                continue  # it is gone
            except DissensusError as problem:
                self.problems.append(problem)
            except OSError as problem:
                self.problems.append(DataError(f"{file}: {reason(problem)}"))
        return taken

    def _take(self, file: Path) -> int:
        from ..sharded.batches import Mark, new_rows

        seen = self.stream.seen.get(file.name)
        batch = new_rows(file, Mark(*seen) if seen else None, self.columns, self.missing)
        if not batch.notes:
            return 0
        if batch.notes["other"]:
            note(f"{file}: another file than the one of this name before; all of it is read")
        mark = {file.name: batch.notes["mark"]}
        return self.stream.add(batch.item, batch.annotator, batch.label, ids=batch.ids, seen=mark)

    def _files(self) -> list[Path]:
        if not self.path.exists():
            raise DataError(f"{self.path}: no such file or folder")
        if not self.path.is_dir():
            return [self.path]
        own = self.output.resolve()
        if self.first and own.parent == self.path.resolve():
            note(f"{self.output} is in the folder that is watched, and left out")
        return [
            file
            for file in sorted(self.path.iterdir())
            if file.is_file()
            and file.resolve() != own
            and not file.name.startswith(".")
            and not file.name.endswith(_UNFINISHED)
        ]


def _check_classes(stream: Stream) -> None:
    from ..readers import kind_of_labels

    kind, reason = kind_of_labels(stream.online.log.classes.tolist())
    if kind == "numeric":
        raise DataError(f"watch needs classes, but {reason}; --classes declares them as classes")


def _write(stream: Stream, target: Path, taken: int, as_json: bool) -> None:
    from ..writers import write

    result = stream.online.result()
    write(result, target)
    summary: dict[str, Any] = {
        "new": taken,
        "n_labels": len(stream.online),
        "n_items": result.annotations.n_items,
        "n_annotators": result.annotations.n_annotators,
        "fitted": stream.online.fitted,
    }
    if as_json:
        show_json(summary)
    else:
        note(
            f"{taken} new annotations, {summary['n_labels']} in all; labels of "
            f"{summary['n_items']} items are in {target}"
        )
        if result.unidentifiable is not None:
            note(" ".join(result.unidentifiable))
