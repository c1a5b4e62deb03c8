"""Tables for the terminal, and the pages and JSON that keep them.

A page is a Markdown file of sections; a script writes its own section again and leaves the
others. Every section says when, where and how it was made.
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

from crowds import OUT
from openings import write_opening

__all__ = ["Section", "Table", "number"]

_PACKAGES = ("dissensus", "numpy", "scipy", "polars", "crowd-kit", "pandas", "peerannot")


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers under a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        table = "\n".join("| " + " | ".join(map(number, line)) + " |" for line in lines)
        return f"### {self.title}\n\n{table}\n" + (f"\n{self.note}\n" if self.note else "")

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
    page: str  # the file beside this one
    tables: list[Table] = field(default_factory=list)
    source: str = field(default_factory=lambda: _source())  # when the measuring began

    def add(self, table: Table) -> None:
        """Show a table, and keep it."""
        table.show()
        self.tables.append(table)

    def write(self) -> None:
        """Write Markdown and JSON to `out/`, and this section of the page."""
        run = _environment() | {"source": self.source, "changed": _source() != self.source}
        text = f"## {self.name}\n\n{_header(run)}\n\n"
        text += "\n".join(table.markdown() for table in self.tables)
        OUT.mkdir(exist_ok=True)
        (OUT / f"{self.name}.md").write_text(text, encoding="utf-8")
        tables = [{**vars(table)} for table in self.tables]
        data = json.dumps({"made": run, "tables": tables}, indent=1)
        (OUT / f"{self.name}.json").write_text(data, encoding="utf-8")
        _refresh(Path(__file__).parent / self.page, self.name, text)


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
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": " ".join([f"python benchmarks/{Path(sys.argv[0]).name}", *_words(sys.argv[1:])]),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _header(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    changed = "\n**The source changed while this was measured.**" if run["changed"] else ""
    return (
        f"Made by `{run['command']}` on {run['date']}, {run['cores']} cores "
        f"({run['processor']}), {run['memory']}.\n{versions}; "
        f"source {run['source']}.{changed}"
    )


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


def _refresh(page: Path, name: str, text: str) -> None:
    """Put a section in its place on a page, or at its end."""
    words = page.stem.replace("_", " ").capitalize()
    title = f"# {words}\n\nWritten by the scripts in this folder; not by hand.\n"
    whole = (page.read_text(encoding="utf-8") if page.exists() else "") or title
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    section = f"{begin}{text}{end}"
    before, found, rest = whole.partition(begin)
    rest = rest.partition(end)[2]
    whole = before + section + rest if found else f"{whole}\n{section}"
    page.write_text(whole, encoding="utf-8")
    write_opening(page)
