"""Results in folders: plain arrays and JSON, written atomically, read without running code.

A folder that another program wrote, or that was damaged, is refused in one line; and any value
can be had as JSON has it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError, DissensusError
from .arrays import FrozenArrays
from .files import atomic_folder, read_folder_whole
from .names import as_names

_FORMAT = 2
FILES = ("result.json", "arrays.npz")
_PLAIN = {str, int, bool, type(None)}


class State(NamedTuple):
    """The state of a result or a fitted model: JSON values (`notes`) and arrays by name.

    >>> state = State.join(linear=State({"a": 1}, {"w": np.ones(2)}))
    >>> state.part("linear").arrays["w"].tolist(), sorted(state.arrays)
    ([1.0, 1.0], ['linear.w'])
    """

    notes: dict[str, Any]
    arrays: dict[str, Any]

    @classmethod
    def join(cls, notes: dict[str, Any] | None = None, /, **parts: State) -> State:
        """Return the state of a model with several parts, each under its own name, and notes."""
        arrays = {
            f"{name}.{key}": value
            for name, part in parts.items()
            for key, value in part.arrays.items()
        }
        return cls({name: part.notes for name, part in parts.items()} | (notes or {}), arrays)

    def part(self, name: str) -> State:
        """Return the state of one part."""
        return State(self.notes[name], with_prefix(name, self.arrays))


def save_state(
    folder: str | Path,
    kind: str,
    annotations: FrozenArrays,
    notes: dict[str, Any],
    arrays: dict[str, Any],
) -> None:
    """Write a result of some kind with its annotations."""
    relation = relation_state(annotations)
    with atomic_folder(folder, FILES) as target:
        np.savez(target / "arrays.npz", **arrays, **relation.arrays)
        content = {"format": _FORMAT, "kind": kind, **notes, **relation.notes}
        content["digest"] = digest_of(target / "arrays.npz", content)
        (target / "result.json").write_text(json.dumps(content), encoding="utf-8")


def relation_state(annotations: FrozenArrays) -> State:
    """Return the fields of annotations or answers, which `relation_of` reads."""
    fields = vars(annotations)
    columns: dict[str, Any] = {
        name: value for name, value in fields.items() if isinstance(value, np.ndarray)
    }
    names = {name: value.tolist() for name, value in columns.items() if value.dtype.kind == "O"}
    scale = {"scale": fields["scale"]} if "scale" in fields else {}
    codes = {f"annotations.{name}": value for name, value in columns.items() if name not in names}
    return State({"names": names, **scale}, codes)


@contextmanager
def loading_state(folder: str | Path, *kinds: str) -> Iterator[State]:
    """Yield what a folder of one of these kinds holds; errors meanwhile mean that it is damaged."""
    folder = Path(folder)
    with damage(f"{folder}: not a saved result"):
        yield read_folder_whole(folder, lambda: _load(folder, kinds))


def _load(folder: Path, kinds: tuple[str, ...]) -> State:
    notes = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    if notes["format"] != _FORMAT:
        raise DataError(f"{folder}: written by another version; update dissensus to read it")
    if notes["kind"] not in kinds:
        saved_kind = str(notes["kind"])[:40]
        raise DataError(f"{folder}: a saved {saved_kind}; {saved_kind.capitalize()}.load reads it")
    digest = notes.pop("digest", None)  # folders of earlier versions have none
    if digest not in (None, digest_of(folder / "arrays.npz", notes)):
        raise DataError(f"{folder}: damaged after it was saved; save it again")
    return State(notes, load_arrays(folder / "arrays.npz"))


def load_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file; nothing is unpickled."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return dict(stored)


@contextmanager
def damage(summary: str, remedy: str = "", **instead: Any) -> Iterator[None]:
    """Turn any error while stored state is read into one line; none of it can be trusted.

    With keywords the remedy is theirs, as an error has it; without, it ends the line.
    """
    try:
        yield
    except DissensusError:
        raise
    except Exception as problem:
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        if instead:
            raise DataError(f"{summary} ({reason})", remedy=remedy, **instead) from None
        raise DataError(f"{summary} ({reason}){remedy}") from None


def digest_of(arrays: Path, notes: dict[str, Any]) -> str:
    """Return what shows whether a saved result is as it was written."""
    with arrays.open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b")
    digest.update(json.dumps(notes).encode())
    return digest.hexdigest()[:32]


def relation_of(state: State) -> dict[str, Any]:
    """Return the fields of the annotations of a result."""
    names = {name: as_names(texts) for name, texts in state.notes["names"].items()}
    scale = {"scale": state.notes["scale"]} if "scale" in state.notes else {}
    return {**with_prefix("annotations", state.arrays), **names, **scale}


def with_prefix(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays whose names start with a prefix and a point, without them."""
    start = f"{prefix}."
    return {
        name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)
    }


def as_plain(value: Any) -> Any:
    """Return dictionaries, lists and numbers only, with `None` for NaN and infinity.

    >>> as_plain({"a": np.array([1.0, np.nan]), "b": (True, "x")})
    {'a': [1.0, None], 'b': [True, 'x']}
    """
    match value:
        case float():
            return value if math.isfinite(value) else None
        case np.ndarray() | np.generic():
            return as_plain(value.tolist())
        case list() if set(map(type, value)) <= _PLAIN:
            return list(value)
        case Mapping():
            return {name: as_plain(part) for name, part in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return as_plain(value._asdict())
        case tuple() | list():
            return [as_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    return value


def as_rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a table of columns as rows.

    >>> as_rows({"a": np.array([1, 2]), "b": np.array([0.5, np.nan])})
    [{'a': 1, 'b': 0.5}, {'a': 2, 'b': None}]
    """
    columns = [as_plain(column) for column in table.values()]
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]
