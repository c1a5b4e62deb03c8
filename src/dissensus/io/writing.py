"""Annotations, numbers and results as files; what a format cannot hold is said."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from .._files import replacing
from .._names import Names
from ..annotations import Annotations
from ..estimation.result import Estimation
from ..measurements import Numbers
from ..result import Aggregation
from .folders import write_folder
from .sources import format_for
from .tables import write_frame

__all__ = ["losses", "table_of", "write", "write_truth"]


def write(
    what: Annotations | Numbers | Aggregation | Estimation,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write annotations or results; the ending tells the format, `-` is standard output as CSV.

    Annotations go to tables (csv, tsv, parquet, arrow, jsonl), to `json` as
    `{item: {annotator: label}}`, or to a folder as peerannot has them (no ending, or a slash).
    """
    if isinstance(what, Annotations) and goes_to_folder(path, format):
        write_folder(path, what)
        return
    if str(path) == "-":
        body = io.BytesIO()
        _write(what, body, format or "csv", "uncompressed")
        sys.stdout.buffer.write(body.getvalue())
        sys.stdout.buffer.flush()
        return
    kind, compression = format_for(path, format)
    with replacing(path) as draft, draft.open("wb") as file:
        _write(what, file, kind, compression)


def write_truth(truth: Mapping[str, Any], path: str | Path) -> None:
    """Write known labels as a table of item and label."""
    kind, compression = format_for(path)
    frame = pl.DataFrame({"item": list(truth), "label": list(truth.values())})
    with replacing(path) as draft, draft.open("wb") as file:
        write_frame(frame, file, kind, compression)


def goes_to_folder(path: str | Path, format: str | None) -> bool:  # noqa: A002
    """Return whether annotations written there make a folder."""
    if format is not None:
        return format == "peerannot"
    return str(path) != "-" and (
        str(path).endswith("/") or Path(path).is_dir() or not Path(path).suffix
    )


def losses(said: Annotations, path: str | Path, format: str | None = None) -> list[str]:  # noqa: A002
    """Return, one sentence each, what of the annotations the target cannot hold."""
    folder = goes_to_folder(path, format)
    kind = "peerannot" if folder else ("csv" if str(path) == "-" else format_for(path, format)[0])
    lost = []
    silent = int((said.labels_per_item == 0).sum())
    if silent and kind not in ("json", "peerannot"):
        lost.append(f"{silent} items without labels are left out: a table has no row for them")
    unused = said.n_classes - len(np.unique(said.label))
    if unused and kind != "peerannot":
        lost.append(
            f"{unused} classes that nobody used are not written: {kind} does not declare classes"
        )
    if said.columns and kind in ("json", "peerannot"):
        lost.append(f"columns left out: {', '.join(said.columns)}")
    if folder and _repeats(said):
        lost.append("repeated labels are written as lists, which peerannot itself does not read")
    return lost


def table_of(what: Annotations | Numbers | Aggregation | Estimation) -> pl.DataFrame:
    """Return annotations, numbers or a result as a dataframe."""
    if isinstance(what, Estimation):
        table = {"item": what.said.items, "label": what.value, "deviation": what.deviation}
        frame = pl.DataFrame({name: _column(values) for name, values in table.items()})
        return frame.with_columns(pl.col("label", "deviation").fill_nan(None))
    if isinstance(what, Aggregation):
        table = {"item": what.said.items, "label": what.labels, "confidence": what.confidence}
        beliefs = {
            f"p:{name}": what.posterior[:, place]
            for place, name in enumerate(what.classes.tolist())
        }
        return pl.DataFrame({name: _column(values) for name, values in (table | beliefs).items()})
    answers = (
        {"label": _gather(what.classes, what.label)}
        if isinstance(what, Annotations)
        else {"label": pl.Series(what.value)}
    )
    return pl.DataFrame(
        {
            "item": _gather(what.items, what.item),
            "annotator": _gather(what.annotators, what.annotator),
            **answers,
            **{name: _column(values) for name, values in what.columns.items()},
        }
    )


def _write(what: Any, file: IO[bytes], kind: str, compression: str) -> None:
    if kind == "json" and isinstance(what, Annotations):
        file.write(json.dumps(what.to_dict(), ensure_ascii=False).encode())
    else:
        write_frame(table_of(what), file, kind, compression)


def _repeats(said: Annotations) -> bool:
    same_item = np.diff(said.item.astype(np.int64)) == 0
    return bool(np.any(same_item & (np.diff(said.annotator.astype(np.int64)) == 0)))


def _gather(names: Names, codes: Any) -> pl.Series:
    return pl.Series(names.tolist(), dtype=pl.String).gather(pl.Series(codes))


def _column(values: np.ndarray[Any, Any]) -> pl.Series:
    return pl.Series(values.tolist() if values.dtype.kind == "T" else values)
