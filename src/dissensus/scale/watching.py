"""Files that are looked at again and again: what is new is added, and labels are written."""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.files import reason
from ..errors import DataError, DissensusError, OptionError, OutputError
from ..formats.scales import kind_of_labels
from ..formats.spellings import spelling_notes
from ..formats.writers_init import write
from ..pages.terminal import note, words_of
from ..result import Result
from .growing_files import Mark, beginnings, new_rows
from .stream import Stream

_UNFINISHED = (".part", ".tmp", ".temp", ".crdownload", "~")
_JOINED = "read them with spelling='join' to make them one"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Update(Result):
    """What a look has changed, and how much there is in all: as numbers, and in sentences."""

    counts: Mapping[str, Any]
    words: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What has changed."""
        return self.words

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        return dict(self.counts)


class Watched(ABC):
    """What is looked at again and again, and the file that labels are written to.

    Parameters
    ----------
    output
        The file of labels.
    once
        Whether there is one look only; its last error is raised.
    say
        Called with sentences for the user.
    """

    def __init__(
        self, output: Path, *, once: bool = False, say: Callable[[str], None] = note
    ) -> None:
        self.output, self.once, self.say = output, once, say
        self._said: set[str] = set()  # sentences that are said once

    @abstractmethod
    def updates(self, seconds: float) -> Iterator[Update]:
        """Yield what looks have changed, with so many seconds between them, until interrupted."""

    def say_once(self, sentence: str, key: str | None = None) -> None:
        """Say a sentence, unless it was said before, or one with the same key."""
        if (key or sentence) not in self._said:
            self._said.add(key or sentence)
            self.say(sentence)


class WatchedFiles(Watched):
    """A file or folder, and the stream of what was in it.

    Parameters, beside those of everything that is watched
    ------------------------------------------------------
    stream
        The annotations so far.
    path
        The file or folder.
    columns, missing
        As in `read`.
    joined
        What makes names one that are spelled in several ways.
    """

    def __init__(
        self,
        stream: Stream,
        path: Path,
        output: Path,
        *,
        columns: Mapping[str, str],
        missing: str,
        joined: str = _JOINED,
        **settings: Any,
    ) -> None:
        super().__init__(output, **settings)
        self.stream, self.path = stream, path
        self.columns, self.missing, self.joined = columns, missing, joined
        self.first = True
        self.problems: list[DissensusError] = []  # of the last look
        self.gone = 0  # rows that were taken back at the last look
        self.left_out: Counter[str] = Counter()  # at the last look
        self._looked: dict[str, tuple[int, int, int]] = {}  # files at the last look
        self._waiting: dict[str, str] = {}  # lines without an end, by file
        self._unclear: set[str] = set()  # files that are read after all others
        self._beginnings: dict[str, set[str]] = {}  # digest of a first row → files
        self._index(stream.seen)

    def resume(self, *, force: bool) -> None:
        """Report what the state holds; refuse that of another input, or clear it if forced."""
        stream, path = self.stream, str(self.path.resolve())
        source, size = stream.input, len(stream.online)
        if size and source not in (None, path) and not self._is_same_data():
            if not force:
                raise OptionError(
                    f"holds annotations of {_short(source)}, not of {self.path}",
                    where=str(stream.folder),
                    remedy="name another folder with {}",
                    state=...,
                ).or_else("or start again with {}", force=True)
            self.say(f"replaced: {size} annotations of {_short(source)} in {stream.folder}")
            stream.clear()
            self._beginnings = {}
        elif size:
            self.say(f"resumed: {size} annotations of {self._origin()}; state in {stream.folder}")
        stream.set_input(path)

    def updates(self, seconds: float) -> Iterator[Update]:
        """Yield what looks have changed; a file that cannot be read stops no other."""
        while True:
            n_taken, update = self.take(), None
            self._check_classes()
            try:
                if (n_taken or self.gone or self.first) and len(self.stream.online):
                    update = self._write(n_taken)
                self.first = False
            except OutputError as problem:
                self.problems.append(problem)
            if update is not None:
                yield update
            if self.once:
                for error in self.problems[:-1]:
                    self.say(words_of(error))
                if self.problems:
                    raise self.problems[-1]
                return
            for error in self.problems:
                self.say(f"{words_of(error)}; looking again in {seconds:g} s")
            try:
                time.sleep(seconds)
            except KeyboardInterrupt:
                return

    def _check_classes(self) -> None:
        log = self.stream.online.log
        labels = kind_of_labels(log.classes.tolist())
        if not log.closed and labels.numeric:
            raise DataError(
                f"watch needs classes, but {labels.reason}",
                remedy="declares them as classes",
                classes=...,
            )

    def _write(self, n_taken: int) -> Update:
        """Write the labels."""
        online = self.stream.online
        result = online.result()
        write(result, self.output)
        for sentence in spelling_notes(result.answers, remedy=self.joined):
            self.say_once(sentence, re.sub(r" \d+(?=[,;)])", "", sentence))
        counts: dict[str, Any] = {
            "new": n_taken,
            "n_labels": len(online),
            "n_items": result.answers.n_items,
            "n_annotators": result.answers.n_annotators,
            "fitted": online.fitted,
        }
        counts |= {"gone": self.gone} if self.gone else {}
        counts |= {"left_out": dict(self.left_out)} if self.left_out else {}
        gone = f"{self.gone} gone, " if self.gone else ""
        words = (
            f"{n_taken} new annotations, {gone}{counts['n_labels']} in all; labels of "
            f"{counts['n_items']} items are in {self.output}"
        )
        why = () if result.unidentifiable is None else (" ".join(result.unidentifiable),)
        return Update(counts=counts, words=(words, *why))

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
            self.say(f"{file}: {new.unfinished} and does not count yet")
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
        for sentence in new.sentences:
            self.say(f"{file}: {sentence}")
        return n_taken

    def _index(self, marks: Mapping[str, Any]) -> None:
        for name, mark in marks.items():
            if mark is not None:
                self._beginnings.setdefault(mark[1], set()).add(name)

    def _alike(self, digest: str) -> dict[str, Mark]:
        """Return the marks of files with this digest of their first row."""
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
            self.say_once(f"{self.output} is in the folder that is watched, and left out")
        entries = [entry for entry in sorted(self.path.iterdir()) if not entry.name.startswith(".")]
        own_folders = (self.stream.folder.resolve(), own.parent)
        folders = [
            entry.name for entry in entries if entry.is_dir() and entry.resolve() not in own_folders
        ]
        if folders:
            names = ", ".join(folders[:3]) + (" …" if len(folders) > 3 else "")
            self.say_once(f"{self.path}: sub-folders are not read: {names}")
        return [
            entry
            for entry in entries
            if entry.is_file() and entry.resolve() != own and not entry.name.endswith(_UNFINISHED)
        ]


def _short(path: str) -> str:
    """Return a path, relative to the current folder if it is in there."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
