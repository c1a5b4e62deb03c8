"""Running a case, making its outputs plain, and comparing them with what is recorded."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import click

from dissensus.cli import cli

from ..support import run
from .cases import Case

RECORDS = Path(__file__).parent / "records"
WIDTH = "100"  # of the terminal
_CLOSE, _CLOSE_DEEP = 1e-7, 1e-6
_CLOSE_LOOSE = 1e-3  # of what amplifies rounding: conjugate gradients stopped early, kernels
_LOOSE = ("GLAD-CG", "kernel-ridge")
_MOST_ROWS = 40  # of a table, or entries of a list in JSON, that are recorded
# What differs from run to run, and the word that stands for it.
_PASSING = (
    (re.compile(r"\b\d+(\.\d+)?(e-?\d+)? ?(s|ms|seconds|minutes)\b"), "SECONDS"),
    (re.compile(r"\b\d+(\.\d+)? (GiB|MiB|kB)\b"), "MEMORY"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|November \d+, \d{4}"), "DATE"),
)
_COSTS = {"seconds", "MiB", "s", "ms", "MB"}
_PROGRESS = re.compile(r"^[\w ]+: \d+ s$")
_BORDERS = re.compile("([━─])[━─]+")  # as wide as what a table holds
_PASSING_KEYS = {"seconds", "memory", "mib", "version", "megabytes", "peak_mib", "fit_seconds"}
_LEFT_ALONE = {".pt", ".safetensors", ".part", ".png", ".zip", ".lock"}


def outcome(case: Case, inputs: Path, folder: Path) -> dict[str, Any]:
    """Return how the last command of a case ended, what it printed and the files it wrote."""
    work = folder / "work"
    shutil.copytree(inputs, work)
    for command in case.commands[:-1]:
        run(*command, cwd=work)
    if case.commands[-1][-1] == "--help":
        _forget_help(cli)
    before = {path: path.stat().st_mtime_ns for path in _files(work)}
    silent = {"DISSENSUS_PROGRESS": "0"}  # a slow machine would print more
    with warnings.catch_warnings(), mock.patch.dict(os.environ, silent):
        warnings.simplefilter("error")
        done = run(*case.commands[-1], cwd=work)
    plain = {
        "code": done.returncode,
        "out": plain_text(done.stdout.decode(), work),
        "err": plain_text(done.stderr.decode(), work),
        "files": {
            path.relative_to(work).as_posix(): _plain_file(path, work)
            for path in _files(work)
            if before.get(path) != path.stat().st_mtime_ns and path.suffix not in _LEFT_ALONE
        },
    }
    shutil.rmtree(work)
    return {key: value for key, value in plain.items() if value or key == "code"}


def _forget_help(command: click.Command) -> None:
    """Forget the help option, which click keeps as the first context had it: that of a test."""
    command._help_option = None
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            _forget_help(command.get_command(context, name))


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def _plain_file(path: Path, work: Path) -> Any:
    match path.suffix:
        case ".html" | ".svg":
            return words_of(path.read_text())
        case ".parquet" | ".npy" | ".npz" | ".sqlite":
            return f"{path.suffix} file"
        case ".csv" | ".tsv" | ".json" | ".jsonl" | ".txt" | ".md":
            return plain_text(path.read_text(), work)
    return "a file"


def plain_text(text: str, work: Path | None = None) -> Any:
    """Return JSON as values, a table as rows, other texts as lines."""
    if work is not None:
        text = text.replace(str(work.resolve()), "FOLDER").replace(str(work), "FOLDER")
    stripped = text.strip()
    if stripped.startswith(("{", "[")):
        try:
            return plain_value(json.loads(stripped))
        except ValueError:
            pass
    lines = text.splitlines()
    if len(lines) > 1 and re.match(r'^[\w"][\w:" ]*(,[\w"][^,]*)+$', lines[0]):
        rows = list(csv.reader(io.StringIO(text)))
        if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
            more = [f"… {len(rows)} rows"] if len(rows) > _MOST_ROWS else []
            passing = [name in _PASSING_KEYS for name in rows[0]]
            rows = [[_cell(cell, hidden) for cell, hidden in zip(row, passing, strict=True)]
                    for row in rows[:_MOST_ROWS]]  # fmt: skip
            return {"table": [*rows, *more]}
    return [_plain_line(line) for line in _without_costs(lines) if not _PROGRESS.match(line)]


def _without_costs(lines: list[str]) -> list[str]:
    """Return lines with a word for the seconds and memory in tables, whatever their width."""
    plain, starts = list(lines), [n for n, line in enumerate(lines) if line.startswith("┏")]
    for start in starts:
        end = next((n for n in range(start, len(lines)) if lines[n].startswith("└")), len(lines))
        heads = [re.split("([┃│])", line) for line in lines[start:end] if "┃" in line]
        hidden = {n for cells in heads for n, cell in enumerate(cells) if cell.strip() in _COSTS}
        if hidden:
            plain[start : end + 1] = [
                _without_cost(line, hidden) for line in lines[start : end + 1]
            ]
            plain[max(start - 1, 0)] = plain[max(start - 1, 0)].strip()  # the title, in the middle
    return plain


def _without_cost(line: str, hidden: set[int]) -> str:
    if "│" in line:
        cells = re.split("([┃│])", line)
        line = "".join("COST" if n in hidden else cell for n, cell in enumerate(cells))
    return _BORDERS.sub(r"\1", re.sub("  +", " ", line))


def _plain_line(line: str) -> str:
    for pattern, word in _PASSING:
        line = pattern.sub(word, line)
    return line.rstrip()


def _cell(cell: str, hidden: bool) -> str | float:
    if hidden:
        return "COST"
    try:
        number = float(cell)
    except ValueError:
        return _plain_line(cell)
    return _rounded(number) if math.isfinite(number) else cell


def _rounded(number: float) -> float:
    return float(f"{number:.9g}")


def plain_value(value: Any, key: str = "") -> Any:
    if key in _PASSING_KEYS:
        return key.upper()
    match value:
        case dict():
            return {name: plain_value(inner, name) for name, inner in sorted(value.items())}
        case list():
            more = [f"… {len(value)} entries"] if len(value) > _MOST_ROWS else []
            return [*map(plain_value, value[:_MOST_ROWS]), *more]
        case float():
            return _rounded(value)
        case str():
            return _plain_line(value)
    return value


class _Words(HTMLParser):
    """The texts of a page, without its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._inside.append(tag)
        self.words += [value for name, value in attrs if name == "aria-label" and value]

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside and data.strip():
            self.words.append(_plain_line(" ".join(data.split())))


def words_of(page: str) -> list[str]:
    parser = _Words()
    parser.feed(page)
    return parser.words


def compared(group: str, outcomes: dict[str, Any], close: dict[str, float]) -> list[str]:
    """Return where the outcomes of a group differ from what is recorded."""
    before = recorded(group)
    return [
        f"{name}: {line}"
        for name in sorted(before.keys() | outcomes.keys())
        for line in differences(before.get(name), outcomes.get(name), close.get(name, _CLOSE))
    ]


def differences(recorded: Any, seen: Any, close: float, where: str = "") -> Iterator[str]:
    """Yield where two outcomes differ, numbers by more than `close`."""
    if isinstance(recorded, dict) and isinstance(seen, dict):
        for name in sorted(recorded.keys() | seen.keys()):
            if name not in recorded or name not in seen:
                yield f"{where}/{name}: {'gone' if name in recorded else 'new'}"
            else:
                yield from differences(recorded[name], seen[name], close, f"{where}/{name}")
    elif isinstance(recorded, list) and isinstance(seen, list):
        if len(recorded) != len(seen):
            yield f"{where}: {len(recorded)} entries before, {len(seen)} now"
        for number, (before, now) in enumerate(zip(recorded, seen, strict=False)):
            yield from differences(before, now, close, f"{where}/{number}")
    elif _are_numbers(recorded, seen):
        if not math.isclose(recorded, seen, rel_tol=close, abs_tol=close):
            yield f"{where}: {recorded} before, {seen} now"
    elif recorded != seen:
        yield f"{where}: {recorded!r} before, {seen!r} now"


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def recorded(group: str) -> dict[str, Any]:
    """Return the recorded outcomes of a group, by case."""
    path = RECORDS / f"{group}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def record(group: str, outcomes: dict[str, Any]) -> None:
    """Write the outcomes of a group, a line for every part."""
    RECORDS.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False, sort_keys=True)}"
             for name, one in outcomes.items()]  # fmt: skip
    (RECORDS / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def tolerance(case: Case) -> float:
    """Return how far numbers of a case may be from what is recorded."""
    if any(method in case.name for method in _LOOSE):
        return _CLOSE_LOOSE
    return _CLOSE_DEEP if case.deep else _CLOSE
