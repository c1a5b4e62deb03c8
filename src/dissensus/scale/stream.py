"""A stream of annotations with its state in a folder: nothing is lost, nothing counts twice.

    stream.json       the method, its settings and the input
    state.npz         the state after a batch
    batch-00000042    the batches after that, each complete or not there

A batch counts from the moment its file has its name. After a restart the state is loaded and the
batches after it are added in the same order, which leads to the same result. The state is written
at every full fit, that is each time the annotations have grown by a factor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..aggregation.aggregation import pack_params, unpack_params
from ..base.files import atomic_file
from ..base.names import text
from ..base.storage import damage, load_arrays, with_prefix
from ..errors import DataError, OptionError
from .annotation_log import AnnotationBatch, AnnotationLog, read_batch, write_batch
from .online import OnlineAggregation
from .pieces import locked

_NOTE = "stream.json"
_TEXTS = ("items", "annotators", "classes", "closed")


class Stream:
    """An `OnlineAggregation` whose batches and state are stored in a folder."""

    def __init__(self, folder: Path, online: OnlineAggregation) -> None:
        self.folder, self.online = folder, online
        self.batch = 0  # number of the last batch
        self.seen: dict[str, Any] = {}  # how far files were read, by name
        self.input: str | None = None  # the file or folder that they are, where it is known
        self._saved = 0  # annotations in the stored state

    @classmethod
    @contextmanager
    def opened(
        cls, folder: str | Path, method: str = "dawid-skene", **settings: Any
    ) -> Iterator[Stream]:
        """Yield the stream in a folder, resumed or new.

        Parameters as in `OnlineAggregation`; while it is open the folder is locked.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            for leftover in path.glob(".*.part"):  # of a run that was killed
                leftover.unlink()
            stream = cls(path, OnlineAggregation(method, **settings))
            stream.input = _check_settings(path, stream.online.settings).get("input")
            stream._load()
            yield stream

    def add(
        self,
        item: Sequence[Any],
        annotator: Sequence[Any],
        label: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
        seen: dict[str, Any] | None = None,
        gone: Sequence[Sequence[str | None]] = (),
    ) -> int:
        """Store and add annotations; return how many were new.

        `seen` marks how far files have been read; rows that are `gone` are removed, each an item,
        an annotator and a label, perhaps with an id.
        """
        self.online.check(item, annotator, label, ids)  # before it is stored
        batch = AnnotationBatch(
            [text(name) for name in item],
            [text(name) for name in annotator],
            [text(name) for name in label],
            ids=None if ids is None else [None if name is None else text(name) for name in ids],
            notes={"seen": seen or {}, "gone": [list(row) for row in gone]},
        )
        write_batch(self._path(self.batch + 1), batch)
        return self._add(batch)

    def set_input(self, path: str) -> None:
        """Store which file or folder this is a stream of."""
        if path != self.input:
            _write_note(self.folder, {**_read_note(self.folder), "input": path})
            self.input = path

    def clear(self) -> None:
        """Remove all annotations, the newest first: what is left at any moment is a stream."""
        for path in sorted(self.folder.glob("batch-*"), reverse=True):
            path.unlink()
        (self.folder / "state.npz").unlink(missing_ok=True)
        self.online = OnlineAggregation(**self.online.settings)
        self.batch, self.seen, self._saved = 0, {}, 0

    def _add(self, batch: AnnotationBatch) -> int:
        self.batch += 1
        for item, annotator, label, *name in batch.notes.get("gone", ()):
            self.online.remove(item, annotator, label, id=name[0] if name else None)
        n_new = self.online.add(batch.item, batch.annotator, batch.label, ids=batch.ids)
        self.seen |= batch.notes["seen"]
        if self.online.fitted > self._saved:
            self._save()
        return n_new

    def _path(self, number: int) -> Path:
        return self.folder / f"batch-{number:08}"

    def _save(self) -> None:
        """Write the state, then remove the batches that it includes."""
        online = self.online
        state = online.log.state()
        texts = {name: state.pop(name) for name in _TEXTS}
        texts |= {"ids": sorted(online.ids)}
        texts |= {"seen": {name: mark for name, mark in self.seen.items() if mark is not None}}
        numbers: dict[str, Any] = {
            "batch": self.batch,
            "fitted": online.fitted,
            "turn": online.turn,
        }
        params = {f"params.{name}": v for name, v in pack_params(online.params).items()}
        with atomic_file(self.folder / "state.npz") as draft, draft.open("wb") as file:
            np.savez(
                file,
                texts=np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8),
                posterior=online.posterior,
                **state,
                **numbers,
                **params,
            )
        self._saved = online.fitted
        for path in self.folder.glob("batch-*"):
            if int(path.name.removeprefix("batch-")) <= self.batch:
                path.unlink()

    def _load(self) -> None:
        online, path = self.online, self.folder / "state.npz"
        if path.exists():
            with damage(
                f"{path}: not the state of a stream of this version",
                "name another folder with {}",
                state=...,
            ):
                arrays = load_arrays(path)
                texts = json.loads(arrays["texts"].tobytes())
                names = {name: texts[name] for name in _TEXTS}
                columns = {name: arrays[name] for name in ("item", "annotator", "label")}
                online.log = AnnotationLog.from_state({**names, **columns, "room": arrays["room"]})
                online.ids, self.seen = set(texts["ids"]), texts["seen"]
                params = with_prefix("params", arrays)
                online.params = unpack_params(online.method.params_type, params)
                online.turn, online.fitted = int(arrays["turn"]), int(arrays["fitted"])
                online.recount(arrays["posterior"])
                self.batch, self._saved = int(arrays["batch"]), online.fitted
        while self._path(self.batch + 1).exists():
            self._add(read_batch(self._path(self.batch + 1)))


def _check_settings(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored about a stream, if it is new its settings; refuse other settings."""
    if not (folder / _NOTE).exists():
        _write_note(folder, settings)
    stored = _read_note(folder)
    for name, value in settings.items():
        if stored.get(name) != value:
            raise OptionError(
                f"started with {name} {stored.get(name)}, not {value}",
                where=str(folder),
                remedy="name another folder with {}",
                state=...,
            )
    return stored


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        note = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        note = None
    if not isinstance(note, dict):
        raise DataError(f"{folder / _NOTE}: not readable; is this the folder of a stream?")
    return note


def _write_note(folder: Path, note: dict[str, Any]) -> None:
    with atomic_file(folder / _NOTE) as draft:
        draft.write_text(json.dumps(note), encoding="utf-8")
