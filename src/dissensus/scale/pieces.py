"""Labels in pieces, combined into the output: a folder of them, one file, or a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import move, rmtree

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.files import atomic_file, atomic_folder, check_folder, is_stream, write_stdout
from ..base.names import Names
from ..base.arrays import Floats, Integers
from ..errors import OptionError
from ..formats.sources import format_for

_SINKS: dict[str, Callable[[pl.LazyFrame, Path], None]] = {
    "parquet": lambda rows, path: rows.sink_parquet(path, compression="zstd"),
    "csv": lambda rows, path: rows.sink_csv(path),
    "tsv": lambda rows, path: rows.sink_csv(path, separator="\t"),
    "arrow": lambda rows, path: rows.sink_ipc(path),
    "jsonl": lambda rows, path: rows.sink_ndjson(path),
}

PIECES = ("part-*.parquet",)  # in a folder of labels


def is_address(path: str) -> bool:
    """Return whether a path is an address of an object store."""
    return "://" in path


def one_file(output: str | None) -> str | None:
    """Return the format of an output that is one file; `None` for a folder or a stream."""
    if output is None or output == "-" or is_address(output):
        return None
    name = Path(output).name
    if output.endswith("/") or Path(output).is_dir() or not ("." in name or is_stream(output)):
        return None
    kind, compression = format_for(output)
    if kind not in _SINKS or compression != "uncompressed":
        raise OptionError(
            f"{output}: labels of many items go to a folder, or to a file ending in "
            ".parquet, .csv, .tsv, .arrow or .jsonl"
        )
    return kind


def check_pieces(output: str | None) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    if one_file(output) is None and output not in (None, "-") and not is_address(str(output)):
        check_folder(str(output), PIECES)


@contextmanager
def combining(output: str | None, work: Path) -> Iterator[str]:
    """Yield a folder for pieces; the output appears only if all went well.

    An object store has no renaming: pieces are written in place, and `_SUCCESS` after them.
    """
    if output is not None and is_address(output):
        yield output.rstrip("/")
        import fsspec

        with fsspec.open(f"{output.rstrip('/')}/_SUCCESS", "wb") as file:
            file.write(b"")
        return
    kind, pieces = one_file(output), work / "pieces"
    rmtree(pieces, ignore_errors=True)
    pieces.mkdir()
    yield str(pieces)
    files = sorted(pieces.glob("part-*.parquet"))
    if kind is not None and output is not None:
        with atomic_file(output) as draft:
            _SINKS[kind](pl.scan_parquet(files), draft)
        return
    if output is not None and output != "-":
        with atomic_folder(output, PIECES) as draft:
            for file in files:
                move(file, draft / file.name)
        return
    for position, file in enumerate(files):
        write_stdout(pl.read_parquet(file).write_csv(include_header=not position).encode())


def write_piece(
    folder: str,
    start: int,
    items: pl.Series,
    label: Integers,
    posterior: Floats,
    classes: Names,
    identifiable: npt.NDArray[np.bool_],
) -> None:
    """Write the labels of some items, the first of which has the number `start`.

    The confidence is null where it cannot be told.
    """
    undecided = pl.Series(label < 0)
    chosen = np.where(label < 0, posterior.argmax(axis=1), label)
    confidence = np.take_along_axis(posterior, chosen[:, None], axis=1)[:, 0]
    names = pl.Series(classes.tolist(), dtype=pl.String).gather(chosen)
    frame = pl.DataFrame(
        {
            "item": items,
            "label": names.set(undecided, None),
            "confidence": pl.Series(confidence).set(pl.Series(~identifiable), None),
            **{f"p:{name}": posterior[:, k] for k, name in enumerate(classes.tolist())},
        }
    )
    path = f"{folder}/part-{start:015}.parquet"
    if is_address(path):
        frame.write_parquet(path, compression="zstd")
        return
    with atomic_file(path) as draft:
        frame.write_parquet(draft, compression="zstd")
