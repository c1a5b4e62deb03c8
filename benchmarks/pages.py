"""Tables for the terminal, and the JSON that keeps them.

A file beside the scripts holds the tables of one page, in sections; a script writes its own section
again and leaves the others. Every table says when, where and how it was made.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from openings import path_of, write_pages

__all__ = ["Section", "Table", "number"]

_PACKAGES = ("dissensus", "numpy", "scipy", "polars", "crowd-kit", "pandas", "peerannot")


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers under a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def stored(self, section: str, made: dict[str, Any]) -> dict[str, Any]:
        """Return it as it is kept: cells are texts, as people read them."""
        return {
            "section": section,
            "title": self.title,
            "made": made,
            "columns": [str(column) for column in self.columns],
            "note": self.note,
            "rows": [[number(cell) for cell in row] for row in self.rows],
        }

    def show(self) -> None:
        """Print it."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table as Printed

        printed = Printed(title=self.title, caption=self.note or None)
        for column in self.columns:
            printed.add_column(column)
        for row in self.rows:
            printed.add_row(*(escape(number(cell)) for cell in row))
        wide = None if sys.stdout.isatty() else 200
        Console(width=wide).print(printed)


@dataclass
class Section:
    """What one script measured."""

    name: str
    page: str  # the file that keeps the tables
    tables: list[Table] = field(default_factory=list)
    source: str = field(default_factory=lambda: _source())  # when the measuring began

    def add(self, table: Table) -> None:
        """Show a table, and keep it."""
        table.show()
        self.tables.append(table)

    def write(self) -> None:
        """Write the tables of this section, the page made of them, and the headlines."""
        made = _environment() | {"source": self.source, "changed": _source() != self.source}
        tables = [one.stored(self.name, made) for one in self.tables]
        path = path_of(self.page) or Path(sys.argv[0]).parent / f"{self.page}.json"
        earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        sections = list(dict.fromkeys([*(one["section"] for one in earlier), self.name]))
        kept = [one for one in earlier if one["section"] != self.name] + tables
        kept.sort(key=lambda one: sections.index(one["section"]))
        path.write_text(as_json(kept), encoding="utf-8")
        write_pages(self.page)


def as_json(tables: list[dict[str, Any]]) -> str:
    """Return tables as JSON, with a line for each row."""

    def dumped(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    parts = []
    for table in tables:
        head = [f'  "{key}": {dumped(value)}' for key, value in table.items() if key != "rows"]
        rows = ",\n".join(f"   {dumped(row)}" for row in table["rows"])
        parts.append(" {\n" + ",\n".join(head) + f',\n  "rows": [\n{rows}\n  ]\n }}')
    return "[\n" + ",\n".join(parts) + "\n]\n"


def number(value: Any) -> str:
    """Return a cell as people read it: three digits of a number, a dash for nothing.

    >>> number(0.0012345), number(1234567), number(None), number("over 120 s")
    ('0.00123', '1234567', '–', 'over 120 s')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def _words(given: list[str]) -> list[str]:
    """Return the words of a command without folders of this machine."""
    return ["FOLDER" if Path(word).is_absolute() else word for word in given]


def _environment() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    script = Path(sys.argv[0])
    words = ["python benchmarks/run.py", script.parent.name, script.stem, *_words(sys.argv[1:])]
    versions = {"python": platform.python_version(), **_versions()}
    return {
        "command": " ".join(words),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def _source() -> str:
    """Return a digest of the package's source: its version alone does not show changes."""
    package = find_spec("dissensus")
    assert package is not None
    assert package.origin is not None
    digest = sha256()
    for file in sorted(Path(package.origin).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor() -> str:
    try:
        summary = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    name = re.search(r"model name\s*:\s*(.+)", summary)
    return name[1].strip() if name else platform.machine()
