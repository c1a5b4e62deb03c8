"""What people take home: labels, decisions, lists, the report, and a script that repeats it.

All of it comes from one finished fit. How a command is written is passed in: who started the
workbench knows it.
"""

from __future__ import annotations

import io
import json
import shlex
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..answers.annotations import Annotations
from ..base.formulas import guarded_frame
from ..errors import OptionError
from ..formats.format import TARGETS
from ..formats.writers_init import write
from .decisions import Decisions
from .fits import Fit
from .journal import Entry

Command = Callable[[Mapping[str, str]], list[str]]  # the words of `aggregate` with settings
_CSV, _HTML, _ZIP = "text/csv; charset=utf-8", "text/html; charset=utf-8", "application/zip"
_READ_ME = """This folder repeats what the workbench showed.

sh reproduce.sh writes labels-again.csv, which has the labels of labels.csv.
decisions.csv has the known labels: decisions of reviewers, and those in the file.
reviews.csv has every reviewer's decision, as annotations; `dissensus agree reviews.csv` compares
the reviewers. journal.csv has every entry, also those that were taken back.

Where a file has a column added_apostrophes, cells that a spreadsheet would take for formulas have
an apostrophe in front. dissensus takes it off when it reads the file.
"""


class Taken(NamedTuple):
    """A file to take home."""

    name: str
    kind: str  # media type
    body: bytes


def formats() -> list[str]:
    """Return the formats in which results can be written."""
    return [name for name, target in TARGETS.items() if target.results]


def labels(fit: Fit, format_: str = "long") -> Taken:
    """Return the labels in a format; a folder comes as a zip file."""
    if format_ not in formats():
        raise OptionError(f"no format {format_!r}; there are {', '.join(formats())}")
    kind = TARGETS[format_].kinds[0]
    reading = replace(fit.report.reading, answers=fit.annotations)
    with tempfile.TemporaryDirectory(prefix="dissensus-") as folder:
        if kind == "folder":
            path = Path(folder) / "labels"
            write(fit.report.result, f"{path}/", format=format_, reading=reading)
            return Taken("labels.zip", _ZIP, _zipped(path))
        path = Path(folder) / f"labels.{'parquet' if kind == 'csv' else kind}"
        write(fit.report.result, path, format=format_, reading=reading)
        if kind == "csv":
            return Taken("labels.csv", _CSV, _csv(pl.read_parquet(path)))
        types = {"json": "application/json"}
        return Taken(path.name, types.get(kind, "application/octet-stream"), path.read_bytes())


def decisions_table(fit: Fit) -> Taken:
    """Return all known labels: those decided, and those in the file."""
    gold = fit.report.reading.gold
    rows = [
        (item, label, "decision" if item in fit.gold else "file") for item, label in gold.items()
    ]
    return _table("decisions.csv", rows, ("item", "label", "source"))


def reviews_table(decisions: Decisions) -> Taken:
    """Return every reviewer's decisions, as annotations."""
    name = decisions.changes.name
    rows = [
        (entry.item, entry.reviewer, _word(entry, name(entry.value)), entry.at, entry.comment)
        for entry in decisions.all
    ]
    return _table("reviews.csv", rows, ("item", "annotator", "label", "time", "comment"))


def _word(entry: Entry, label: str) -> str:
    return label if entry.kind == "label" else f"({entry.kind})"


def journal_table(entries: list[Entry]) -> Taken:
    """Return every entry of the journal, with classes of the file."""
    columns = Entry._fields[:-2]  # without what is for the workbench itself
    return _table("journal.csv", [entry[: len(columns)] for entry in entries], columns)


def relabel_table(fit: Fit) -> Taken:
    """Return the items to label again."""
    columns = fit.report.downloads["relabel"].columns
    frame = pl.DataFrame({name: list(values) for name, values in columns.items()}, strict=False)
    return Taken("relabel.csv", _CSV, _csv(frame))


def report_page(fit: Fit) -> Taken:
    """Return the report."""
    return Taken("report.html", _HTML, fit.report.page().encode())


def annotations_table(fit: Fit) -> Taken:
    """Return the annotations with the changes."""
    with tempfile.TemporaryDirectory(prefix="dissensus-") as folder:
        path = Path(folder) / "annotations.parquet"
        write(fit.annotations, path)
        return Taken("annotations.csv", _CSV, _csv(pl.read_parquet(path)))


def settings(fit: Fit) -> dict[str, str]:
    """Return the settings of `aggregate` that give the same labels of `annotations.csv`."""
    classes = fit.annotations.classes.tolist()
    fields = {"gold": "decisions.csv"} if fit.report.reading.gold else {}
    fields |= {"strategy": fit.report.result.method, "scale": fit.annotations.scale}
    if not any("," in name or name != name.strip() for name in classes):
        fields["classes"] = ",".join(classes)
    return fields | {"seed": str(fit.report.seed), "output": "labels-again.csv"}


def script(fit: Fit, command: Command) -> Taken:
    """Return a shell script that repeats the fit."""
    text = f"#!/bin/sh\nset -e\n{shlex.join(command(settings(fit)))}\n"
    return Taken("reproduce.sh", "text/x-shellscript; charset=utf-8", text.encode())


def notebook(fit: Fit) -> Taken:
    """Return a notebook that repeats the fit."""
    annotations: Annotations = fit.annotations
    read = f"classes={annotations.classes.tolist()!r}, scale={annotations.scale!r}"
    gold = "'decisions.csv'" if fit.report.reading.gold else "None"
    changed = " ".join([*fit.changes.sentences, *fit.skipped])
    lines = [
        ("markdown", f"# Labels of {fit.report.name}\n\n{changed}".strip()),
        ("code", f"import dissensus as ds\n\nannotations = ds.read('annotations.csv', {read})"),
        (
            "code",
            f"result = ds.aggregate(\n    annotations, {fit.report.result.method!r}, "
            f"gold={gold}, seed={fit.report.seed}\n)\nresult.to_pandas()",
        ),
        ("code", f"ds.report(annotations, {fit.report.result.method!r}, gold={gold})"),
    ]
    cells: list[dict[str, Any]] = [
        {
            "cell_type": kind,
            "id": f"cell-{position}",
            "metadata": {},
            "source": source,
            **({"execution_count": None, "outputs": []} if kind == "code" else {}),
        }
        for position, (kind, source) in enumerate(lines)
    ]
    body = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return Taken("reproduce.ipynb", "application/x-ipynb+json", json.dumps(body).encode())


def everything(
    fit: Fit, decisions: Decisions, entries: list[Entry], command: Command | None = None
) -> Taken:
    """Return all files in one."""
    parts = [
        labels(fit),
        decisions_table(fit),
        reviews_table(decisions),
        journal_table(entries),
        relabel_table(fit),
        report_page(fit),
        annotations_table(fit),
        *([] if command is None else [script(fit, command)]),
        notebook(fit),
        Taken("README.txt", "text/plain", _READ_ME.encode()),
    ]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in parts:
            archive.writestr(part.name, part.body)
    return Taken("workbench.zip", _ZIP, buffer.getvalue())


# What the page offers: title, and what makes it of a fit; of the script, with a command.
OF_FIT: dict[str, tuple[str, Callable[..., Taken]]] = {
    "decisions": ("Decisions, as gold", decisions_table),
    "relabel": ("Items to label again", relabel_table),
    "report": ("The report", report_page),
    "annotations": ("The annotations, with the changes", annotations_table),
    "script": ("A script that repeats the fit", script),
    "notebook": ("A notebook that repeats the fit", notebook),
}


def _table(name: str, rows: Any, columns: tuple[str, ...]) -> Taken:
    frame = pl.DataFrame([*rows], schema=columns, orient="row", infer_schema_length=None)
    return Taken(name, _CSV, _csv(frame))


def _csv(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    guarded_frame(frame).write_csv(buffer)
    return buffer.getvalue()


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()
