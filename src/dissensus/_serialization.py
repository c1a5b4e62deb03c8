"""Results in folders: plain arrays and JSON, written atomically, read without running code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._files import atomic_folder
from ._names import as_names
from ._relation import Relation
from .errors import DataError

__all__ = ["SavedState", "loading_state", "save_state", "with_prefix"]

_FORMAT = 2


class SavedState(NamedTuple):
    """The content of a folder."""

    values: dict[str, Any]  # from JSON
    arrays: dict[str, Any]
    relation: dict[str, Any]  # the fields of the annotations


def save_state(
    folder: str | Path,
    kind: str,
    annotations: Relation,
    values: dict[str, Any],
    arrays: dict[str, Any],
) -> None:
    """Write a result of some kind with its annotations."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "result.json").exists():
        raise DataError(f"{folder}: holds something else; name a new folder")
    columns = {name: value for name, value in vars(annotations).items() if name != "columns"}
    names = {name: value.tolist() for name, value in columns.items() if value.dtype.kind == "T"}
    codes = {f"annotations.{name}": value for name, value in columns.items() if name not in names}
    with atomic_folder(folder) as target:
        np.savez(target / "arrays.npz", **arrays, **codes)
        content = {"format": _FORMAT, "kind": kind, **values, "names": names}
        (target / "result.json").write_text(json.dumps(content), encoding="utf-8")


@contextmanager
def loading_state(folder: str | Path, kind: str) -> Iterator[SavedState]:
    """Yield the content of a folder; errors while it is used are reported as a damaged folder."""
    folder = Path(folder)
    try:
        values = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        if values["format"] != _FORMAT:
            raise DataError(f"{folder}: written by another version; update dissensus to read it")
        if values["kind"] != kind:
            other = str(values["kind"])
            raise DataError(f"{folder}: a saved {other}; {other.capitalize()}.load reads it")
        names = {name: as_names(texts) for name, texts in values["names"].items()}
        with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
            arrays = dict(stored)
        yield SavedState(values, arrays, {**with_prefix("annotations", arrays), **names})
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(f"{folder}: not a saved result ({problem})") from None


def with_prefix(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays whose names start with a prefix and a point, without them."""
    start = f"{prefix}."
    return {
        name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)
    }
