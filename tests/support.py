"""What several test files need: random relations, the shared data, the command."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import strategies as st

from dissensus import Annotations, read, read_truth
from dissensus.cli import main

SHIPPED = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def annotation_rows(
    most: int = 30, items: str = "abcde", annotators: str = "vwxyz", classes: str = "012"
):
    """Draw rows (item, annotator, label), repeats included."""
    row = st.tuples(st.sampled_from(items), st.sampled_from(annotators), st.sampled_from(classes))
    return st.lists(row, min_size=1, max_size=most)


def relation(rows, **declared) -> Annotations:
    item, annotator, label = zip(*rows, strict=True) if rows else ((), (), ())
    return Annotations.from_columns(item, annotator, label, **declared)


def recognised_by(head) -> list[str]:
    """Return all formats that recognise the beginning of a file."""
    from dissensus.formats.format import formats

    known = {name: formats[name].recognises for name in formats}
    return [name for name, recognises in known.items() if recognises and recognises(head)]


def rows_of(annotations: Annotations) -> list[tuple[str, str, str]]:
    """Return (item, annotator, label) by name."""
    columns = (
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        annotations.classes[annotations.label],
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def shared_path(name: str) -> Path:
    """Return the folder of a data set; skip if it neither comes with the tests nor lies beside."""
    path = SHIPPED / name if (SHIPPED / name).exists() else SHARED / name
    if not path.exists():
        pytest.skip(f"{name} may not be shipped, and ../shared/data does not have it")
    return path


def shared_files(pattern: str) -> list[Path]:
    """Return the files of all data sets that are here."""
    return sorted(path for home in (SHIPPED, SHARED) for path in home.glob(pattern))


def shared(name: str) -> Annotations:
    return read(shared_path(name) / "answers.csv.gz")


def shared_truth(name: str) -> dict[str, str]:
    return read_truth(shared_path(name) / "truth.csv.gz")


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


def benchmark(name: str) -> ModuleType:
    """Return a module of the benchmarks that needs no other one."""
    if name in sys.modules:
        return sys.modules[name]
    path = next((Path(__file__).parents[1] / "benchmarks").rglob(f"{name}.py"))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: object, cwd: Path | None = None, stdin: bytes = b"") -> Done:
    """Run the command in this process, as fast as can be, with streams of its own."""
    streams = [io.TextIOWrapper(io.BytesIO(body), encoding="utf-8") for body in (stdin, b"", b"")]
    before, here = (sys.stdin, sys.stdout, sys.stderr), Path.cwd()
    try:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.chdir(cwd or here)
        main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as ending:
        code = int(ending.code or 0)
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        os.chdir(here)
    for stream in streams[1:]:
        stream.flush()
    return Done(code, *(stream.buffer.getvalue() for stream in streams[1:]))


def run_process(*arguments: object, cwd: Path | None = None) -> Done:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "dissensus", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr)
