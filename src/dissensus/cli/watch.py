"""`dissensus watch`: files are looked at again and again, or a project of Label Studio is followed.

Of files, what is new is added and the labels are written. Of a project, predictions and agreement
are written back as well.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.files import reason
from ..errors import DataError, DissensusError, OptionError, OutputError
from ..pages.terminal import note, show_json, words_of
from .verb import REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..formats import Reading
    from ..scale import LabelStudioProject, WebhookReceiver
    from ..scale.annotation_log import Mark, NewRows
    from ..scale.online import CurrentLabels
    from ..scale.stream import Stream


_TOGETHER = ("belong together", "exclude each other")
_RELOAD = 60  # looks after which the whole project is read again, though events arrive
_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", "~")


@click.command()
@click.argument("path", required=False)
@options(
    (
        *("label_studio", "project", "key", "listen", "question"),
        *("once", "every --interval", "columns", "classes", "missing", "json", "seed"),
    ),
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
    force: bool,
) -> None:
    """Keep labels up to date while annotations arrive.

    PATH is a file that grows, or a folder that files are added to; its sub-folders are not read.
    New rows update the labels and the annotator parameters without a full fit; now and then there
    is one. Restarted, it resumes where it was: no row is lost or counted twice, also when files are
    renamed, copied or compressed. A column of ids (id, annotation_id …) ensures that even where
    rows are sent twice. A file that cannot be read is reported and stops no other. With the state
    of another PATH it does not go on, unless --force starts again.

    --label-studio follows a project instead: labels and confidences are written back as
    predictions, and the agreement of a task into its meta. With --listen its webhooks are taken at
    once, otherwise the project is read again and again. The API key comes from
    LABEL_STUDIO_API_KEY or a file.

    \b
    Example:
      dissensus watch answers/ -o labels.csv
      dissensus watch --label-studio http://localhost:8080 --project 1 --listen 9000 -o labels.csv
    """
    from ..formats.columns import parse_columns
    from ..formats.sources import format_for
    from ..scale.online import CurrentLabels
    from ..scale.stream import Stream

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
        follower = Follower(
            connected, labels, target, question=question, classes=declared, as_json=as_json
        )
        follow(follower, listen, once=once, seconds=every)
        return
    if path is None:
        raise OptionError("name a file or folder to watch, or --label-studio URL")
    folder = state or str(target.with_name(f".{target.name}.state"))
    opened = Stream.opened(folder, strategy, classes=declared, refit=refit, seed=seed)
    with opened as stream:
        look = Look(
            stream, Path(path), target, columns=parse_columns(columns), missing=missing, once=once
        )
        look.resume(force=force)
        while True:
            n_taken, problems = look.take(), look.problems
            if declared is None:
                _check_classes(stream)
            try:
                if (n_taken or look.gone or look.first) and len(stream.online):
                    _write(look, n_taken, as_json)
                look.first = False
            except OutputError as problem:
                problems = [*problems, problem]
            for error in problems[:-1] if once else problems:
                words = words_of(error)
                note(words if once else f"{words}; looking again in {every:g} s")
            if once and problems:
                raise problems[-1]
            if once:
                return
            try:
                time.sleep(every)
            except KeyboardInterrupt:
                return


class Look:
    """A file or folder that is looked at again and again."""

    def __init__(
        self,
        stream: Stream,
        path: Path,
        output: Path,
        *,
        columns: dict[str, str],
        missing: str,
        once: bool = False,
    ) -> None:
        self.stream, self.path, self.output = stream, path, output
        self.columns, self.missing, self.once = columns, missing, once
        self.first = True
        self.problems: list[DissensusError] = []  # of the last look
        self.gone = 0  # rows that were taken back at the last look
        self.left_out: Counter[str] = Counter()  # at the last look
        self._looked: dict[str, tuple[int, int, int]] = {}  # files at the last look
        self._waiting: dict[str, str] = {}  # lines without an end, by file
        self._unclear: set[str] = set()  # files that are read after all others
        self._noted: set[str] = set()  # messages
        self._beginnings: dict[str, set[str]] = {}  # digest of a first row → files
        self._index(stream.seen)

    def resume(self, *, force: bool) -> None:
        """Report what the state holds; refuse that of another input, or clear it if forced."""
        stream, path = self.stream, str(self.path.resolve())
        source, size = stream.input, len(stream.online)
        if size and source not in (None, path) and not self._is_same_data():
            if not force:
                raise OptionError(
                    f"{stream.folder}: holds annotations of {_short(source)}, not of {self.path}; "
                    f"name another folder with --state, or start again with --force"
                )
            note(f"replaced: {size} annotations of {_short(source)} in {stream.folder}")
            stream.clear()
            self._beginnings = {}
        elif size:
            note(f"resumed: {size} annotations of {self._origin()}; state in {stream.folder}")
        stream.set_input(path)

    def take(self) -> int:
        """Add what is new; return the number of new annotations. A bad file stops no other."""
        self.problems, self.gone = [], 0
        self.left_out.clear()
        self._unclear.clear()
        n_taken = self._take_all(final=False)
        return n_taken + self._take_all(final=True) if self._unclear else n_taken

    def _take_all(self, *, final: bool) -> int:
        n_taken = 0
        try:
            files = sorted(self._files(), key=lambda file: (file.name in self._unclear, file))
        except (OSError, DataError) as problem:
            if self.first:
                raise
            self.problems.append(DataError(f"{self.path}: {reason(problem)}"))
            return 0
        for file in files:
            try:
                stat = file.stat()
                mark = stat.st_ino, stat.st_size, stat.st_ctime_ns
                is_same = self._looked.get(file.name) == mark
                if stat.st_size and (not is_same or file.name in self._waiting):
                    self._looked[file.name] = mark
                    n_taken += self._take(file, settled=is_same or self.once, final=final)
            except FileNotFoundError:
                continue  # it is gone
            except DissensusError as problem:
                self.problems.append(problem)
            except OSError as problem:
                self.problems.append(DataError(f"{file}: {reason(problem)}"))
        return n_taken

    def _take(self, file: Path, *, settled: bool, final: bool) -> int:
        from ..scale.annotation_log import Mark, new_rows

        stream, name = self.stream, file.name
        last_mark = Mark(*stream.seen[name]) if stream.seen.get(name) else None
        new = new_rows(
            file,
            last_mark,
            self.columns,
            self.missing,
            alike=self._alike,
            settled=settled,
            final=final,
        )
        if new.is_unclear:
            self._unclear.add(name)
            del self._looked[name]
            return 0
        waited = self._waiting.pop(name, None)
        if new.unfinished and not settled:
            self._waiting[name] = new.unfinished
        if new.unfinished and new.unfinished != waited:
            note(f"{file}: {new.unfinished} and does not count yet")
        if new.batch is None:
            return 0
        marks = {other: None if mark is None else list(mark) for other, mark in new.marks.items()}
        if new.last and len(new.last) > 3:
            *row, name_of_row = new.last
            if stream.online.has(*row, id=name_of_row):  # as a row of another file
                marks[name] = list(new.marks[name] or ())[:-1]
        item, annotator, label, ids, _ = new.batch
        n_taken = stream.add(item, annotator, label, ids=ids, seen=marks, gone=new.gone)
        self._index(marks)
        self.gone += len(new.gone)
        self.left_out.update(new.left_out)
        _report(file, new)
        return n_taken

    def _index(self, marks: Mapping[str, Any]) -> None:
        for name, mark in marks.items():
            if mark is not None:
                self._beginnings.setdefault(mark[1], set()).add(name)

    def _alike(self, digest: str) -> dict[str, Mark]:
        """Return the marks of files with this digest of their first row."""
        from ..scale.annotation_log import Mark

        marks = self.stream.seen
        names = sorted(self._beginnings.get(digest, ()))
        return {
            name: Mark(*marks[name]) for name in names if marks[name] and marks[name][1] == digest
        }

    def _origin(self) -> str:
        """Return what the annotations so far are of."""
        source = self.stream.input
        names = sorted(name for name in self.stream.seen if "/" not in name)
        if source is None:  # a state of an older version
            return ", ".join(names[:3]) + (" …" if len(names) > 3 else "") or str(self.path)
        if source != str(self.path.resolve()):
            where = f"whose rows are in {self.path}, too"
            if not Path(source).exists():
                where = f"which is {self.path} now"
            return f"{_short(source)}, {where}"
        is_empty = self.path.is_dir() and not any((self.path / name).exists() for name in names)
        return f"{self.path}" + (", whose files are gone" if is_empty else "")

    def _is_same_data(self) -> bool:
        """Return whether most rows that were read before are in what is watched now."""
        from ..scale.annotation_log import Mark, beginnings

        marks = {name: Mark(*mark) for name, mark in self.stream.seen.items() if mark}
        sizes = {mark.all: mark.rows + (mark.last is not None) for mark in marks.values()}
        present: set[str] = set()
        for file in self._files():
            with suppress(DissensusError, OSError):
                present |= beginnings(file, self.columns, self._alike)
        return 2 * sum(sizes[digest] for digest in {marks[name].all for name in present}) > sum(
            sizes.values()
        )

    def _files(self) -> list[Path]:
        if not self.path.exists():
            raise DataError(f"{self.path}: no such file or folder")
        if not self.path.is_dir():
            return [self.path]
        own = self.output.resolve()
        if own.parent == self.path.resolve():
            self._note_once(f"{self.output} is in the folder that is watched, and left out")
        entries = [entry for entry in sorted(self.path.iterdir()) if not entry.name.startswith(".")]
        own_folders = (self.stream.folder.resolve(), own.parent)
        folders = [
            entry.name for entry in entries if entry.is_dir() and entry.resolve() not in own_folders
        ]
        if folders:
            names = ", ".join(folders[:3]) + (" …" if len(folders) > 3 else "")
            self._note_once(f"{self.path}: sub-folders are not read: {names}")
        return [
            entry
            for entry in entries
            if entry.is_file() and entry.resolve() != own and not entry.name.endswith(_UNFINISHED)
        ]

    def note_spellings(self, annotations: Annotations) -> None:
        """Name spellings that look like one, again if there are others."""
        from ..formats.spellings import spelling_notes

        remedy = "aggregate --spelling join makes them one"
        for sentence in spelling_notes(annotations, remedy=remedy):
            self._note_once(sentence, re.sub(r" \d+(?=[,;)])", "", sentence))

    def _note_once(self, message: str, key: str | None = None) -> None:
        if (key or message) not in self._noted:
            self._noted.add(key or message)
            note(message)


def _report(file: Path, new: NewRows) -> None:
    """Report what was unusual about the rows of a file."""
    if new.is_other:
        note(
            f"{file}: another file than the one of this name before; all of it is read, and what "
            "was read before stays"
        )
    if new.origin is not None and new.is_moved:
        note(f"{file}: goes on as {new.origin}, which it begins as; {new.skipped} rows count there")
    elif new.origin is not None:
        note(
            f"{file}: begins as {new.origin}; {new.skipped} rows are a copy and do not count again"
        )
    if new.gone:
        note(f"{file}: a line has gone on after its row was read; the row is replaced")
    if new.swallowing is not None:
        note(f"{file}: {new.swallowing}")
    if new.left_out:
        parts = [
            f"{count} {reason.removesuffix('s') if count == 1 else reason}"
            for reason, count in new.left_out.items()
        ]
        note(f"{file}: left out: {', '.join(parts)}")


def _short(path: str) -> str:
    """Return a path, relative to the current folder if it is in there."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _check_classes(stream: Stream) -> None:
    from ..formats import kind_of_labels

    kind, reason = kind_of_labels(stream.online.log.classes.tolist())
    if kind == "numeric":
        raise DataError(f"watch needs classes, but {reason}; --classes declares them as classes")


def _write(look: Look, n_taken: int, as_json: bool) -> None:
    from ..formats.writers_init import write

    online, target = look.stream.online, look.output
    result = online.result()
    write(result, target)
    look.note_spellings(result.annotations)
    summary: dict[str, Any] = {
        "new": n_taken,
        "n_labels": len(online),
        "n_items": result.annotations.n_items,
        "n_annotators": result.annotations.n_annotators,
        "fitted": online.fitted,
    }
    if look.gone:
        summary["gone"] = look.gone
    if look.left_out:
        summary["left_out"] = dict(look.left_out)
    if as_json:
        show_json(summary)
    else:
        gone = f"{look.gone} gone, " if look.gone else ""
        note(
            f"{n_taken} new annotations, {gone}{summary['n_labels']} in all; labels of "
            f"{summary['n_items']} items are in {target}"
        )
        if result.unidentifiable is not None:
            note(" ".join(result.unidentifiable))


class Follower:
    """A project with its labels, a table and predictions in Label Studio."""

    def __init__(
        self,
        project: LabelStudioProject,
        labels: CurrentLabels,
        target: Path,
        *,
        question: str | None,
        classes: list[str] | None,
        as_json: bool,
    ) -> None:
        self.project, self.labels, self.target = project, labels, target
        self.question, self.classes, self.as_json = question, classes, as_json
        self._first = True
        self._notes: set[str] = set()  # about what was left out, printed once

    def write(self) -> None:
        """Update the labels, and write whatever has changed."""
        from ..formats.writers_init import write

        reading = self.project.reading(self.question, self.classes)
        if reading is None and self._first:
            note(f"no labels in project {self.project.number} yet")
        if reading is not None and reading.annotations.numeric:
            raise DataError("watch needs classes, but this question is answered by numbers")
        for sentence in () if reading is None else reading.notes:
            if sentence not in self._notes:
                note(sentence)
                self._notes.add(sentence)
        changes = self.labels.update(None if reading is None else reading.annotations)
        result = None if reading is None else self.labels.online.result()
        if result is not None and (any(changes) or self._first):
            write(result, self.target)
        written = self.project.write_predictions(self.labels.method, result, reading)
        agreed = self.project.write_agreement(reading)
        if written or agreed or any(changes):
            self._report(reading, changes._asdict(), written)
        self._first = reading is None and self._first

    def _report(self, reading: Reading | None, changes: dict[str, int], written: int) -> None:
        from ..metrics import krippendorff_alpha

        annotations = None if reading is None else reading.annotations
        alpha = math.nan if annotations is None else float(krippendorff_alpha(annotations))
        n_labels, n_items = (
            (0, 0) if annotations is None else (len(annotations), annotations.n_items)
        )
        if self.as_json:
            summary = {**changes, "n_labels": n_labels, "n_items": n_items, "predictions": written}
            show_json({**summary, "alpha": None if math.isnan(alpha) else round(alpha, 6)})
            return
        agreement = "" if math.isnan(alpha) else f"; Krippendorff's alpha {alpha:.3f}"
        note(
            f"{changes['new']} new annotations, {changes['gone']} gone, {n_labels} in all; "
            f"labels of {n_items} items are in {self.target}, {written} predictions were written "
            f"to project {self.project.number}{agreement}"
        )


def connect(url: str, number: int, key: str | None) -> LabelStudioProject:
    """Return a project; report what endangers the key, or the independence of annotators."""
    from ..scale import LabelStudioApi, LabelStudioProject, read_api_key

    api = LabelStudioApi(url, read_api_key(key))
    if api.is_exposed:
        note(f"{api.url}: the API key is sent without encryption; https would hide it")
    if api.project(number).get("show_collab_predictions"):
        note(
            f"project {number} shows predictions to annotators, and labels that follow them are "
            "not independent; switch that off in its settings"
        )
    return LabelStudioProject(api, number)


def follow(follower: Follower, port: int | None, *, once: bool, seconds: float) -> None:
    """Follow a project: by events, if there is a port for them, or else by looking again."""
    from ..scale import WebhookReceiver

    project, reload, changed, is_first, loaded = follower.project, True, False, True, 0.0
    with nullcontext() if port is None or once else WebhookReceiver(port) as receiver:
        if receiver is not None:
            note(f"listening; in Label Studio, add the webhook {receiver.url} with its payload")
        while True:
            try:
                if reload:
                    project.load()
                    loaded = time.monotonic()
                if reload or changed:
                    follower.write()
                reload = is_first = False
            except DissensusError as problem:
                if once or is_first:
                    raise
                note(f"{words_of(problem)}; trying again in {seconds:g} s")
                reload = True
            if once:
                return
            try:
                changed = _wait(project, receiver, seconds)
            except KeyboardInterrupt:
                return
            rounds = 1 if receiver is None else _RELOAD
            reload = reload or time.monotonic() - loaded >= rounds * seconds
            if receiver is not None and receiver.overflowed.is_set():
                receiver.overflowed.clear()
                reload = True


def _wait(project: LabelStudioProject, receiver: WebhookReceiver | None, seconds: float) -> bool:
    """Wait for events or for some seconds; return whether events have changed the project."""
    if receiver is None:
        time.sleep(seconds)
        return False
    return any([project.apply(event) for event in receiver.take(seconds)])  # noqa: C419
