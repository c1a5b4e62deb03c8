"""A stream of annotations with its state in a folder: nothing is lost, nothing counts twice.

    stream.json       the method and how it is kept up to date
    state.npz         everything up to a batch
    batch-00000042    the batches after that, each whole or not there

A batch counts from the moment its file has its name. Whoever starts again loads the state and
takes the batches after it in the same order, which leads to the same place. The state is written
when the method is fitted to all annotations, that is each time they have grown by a share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic_file
from .._names import text
from ..errors import DataError, OptionError
from ..registry import aggregators
from ..result import pack_params, unpack_params
from ..sharded.batches import Batch, read_batch, write_batch
from .growing import Growing
from .running import Running
from .work import locked

__all__ = ["Stream"]


class Stream:
    """A `Running` whose batches are kept."""

    def __init__(self, folder: Path, running: Running) -> None:
        self.folder, self.running = folder, running
        self.batch = 0  # the last one that was taken
        self.seen: dict[str, int] = {}  # rows that were read, by file
        self._saved = 0  # annotations at the last state

    @classmethod
    @contextmanager
    def opened(
        cls,
        folder: str | Path,
        method: str = "dawid-skene",
        *,
        classes: Sequence[Any] | None = None,
        **how: Any,
    ) -> Iterator[Stream]:
        """Yield the stream in a folder, taken up where it was, or a new one.

        Words as in `Running`; while it is open nobody else may write to the folder.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with locked(path):
            running = Running(method, classes=classes, **how)
            told = {"method": aggregators.describe(running.method), "seed": running.seed}
            told |= {"refit": running.refit, "refresh": running.refresh}
            told |= {"classes": None if classes is None else [str(name) for name in classes]}
            _agree(path, told)
            stream = cls(path, running)
            stream._load()
            yield stream

    def add(
        self,
        item: Sequence[Any],
        annotator: Sequence[Any],
        label: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
        seen: dict[str, int] | None = None,
    ) -> int:
        """Take annotations and keep them; return how many were new.

        `seen` says how many rows of which file have been read with them.
        """
        if not len(item) == len(annotator) == len(label):
            raise DataError("columns of different length")  # before it is kept
        batch = Batch(
            [text(name) for name in item],
            [text(name) for name in annotator],
            [text(name) for name in label],
            None if ids is None else [text(one) for one in ids],
            {"seen": seen or {}},
        )
        write_batch(self._path(self.batch + 1), batch)
        return self._take(batch)

    def _take(self, batch: Batch) -> int:
        self.batch += 1
        taken = self.running.add(batch.item, batch.annotator, batch.label, ids=batch.ids)
        self.seen |= batch.notes["seen"]
        if self.running.fitted > self._saved:
            self._save()
        return taken

    def _path(self, number: int) -> Path:
        return self.folder / f"batch-{number:08}"

    def _save(self) -> None:
        """Write the state, then let go of the batches that it holds."""
        running = self.running
        kept = running.annotations.kept()
        texts = {name: kept.pop(name) for name in ("items", "annotators", "classes")}
        texts |= {"ids": sorted(running.ids), "seen": self.seen}
        numbers: dict[str, Any] = {
            "batch": self.batch,
            "fitted": running.fitted,
            "turn": running.turn,
        }
        learned = {f"params.{name}": v for name, v in pack_params(running.params).items()}
        with atomic_file(self.folder / "state.npz") as draft, draft.open("wb") as file:
            np.savez(
                file,
                texts=np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8),
                posterior=running.posterior,
                **kept,
                **numbers,
                **learned,
            )
        self._saved = running.fitted
        for path in self.folder.glob("batch-*"):
            if int(path.name.removeprefix("batch-")) <= self.batch:
                path.unlink()

    def _load(self) -> None:
        running, path = self.running, self.folder / "state.npz"
        if path.exists():
            try:
                with np.load(path, allow_pickle=False) as stored:
                    arrays = dict(stored)
                texts = json.loads(arrays["texts"].tobytes())
                names = {name: texts[name] for name in ("items", "annotators", "classes")}
                columns = {name: arrays[name] for name in ("item", "annotator", "label")}
                running.annotations = Growing.restored(
                    {**names, **columns, "room": int(arrays["room"])}
                )
                running.ids, self.seen = set(texts["ids"]), texts["seen"]
                learned = {
                    name.removeprefix("params."): value
                    for name, value in arrays.items()
                    if name.startswith("params.")
                }
                running.params = unpack_params(running.method.params_type, learned)
                running.turn, running.fitted = int(arrays["turn"]), int(arrays["fitted"])
                running.recount(arrays["belief"])
                self.batch, self._saved = int(arrays["batch"]), running.fitted
            except (OSError, ValueError, KeyError, TypeError) as problem:
                raise DataError(f"{path}: not a saved stream ({problem})") from None
        while self._path(self.batch + 1).exists():
            self._take(read_batch(self._path(self.batch + 1)))


def _agree(folder: Path, told: dict[str, Any]) -> None:
    """Write down how the stream is kept, or refuse to keep it otherwise."""
    note = folder / "stream.json"
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
    except FileNotFoundError:
        with atomic_file(note) as draft:
            draft.write_text(json.dumps(told), encoding="utf-8")
        return
    except ValueError:
        raise DataError(f"{note}: not readable; is this the folder of a stream?") from None
    for name, value in told.items():
        if before.get(name) != value:
            raise OptionError(
                f"{folder}: begun with {name} {before.get(name)}, not {value}; "
                "name another folder with --state"
            )
