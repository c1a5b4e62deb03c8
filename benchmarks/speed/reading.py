"""How long reading, starting and simulating take: `python benchmarks/run.py speed reading`.

Reading 1e7 rows of CSV with names as texts is compared with what polars needs to read the same
file and turn its three columns into codes, which are neither in a stable order nor sorted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from crowds import OUT, SIZES
from measure import Found, fresh

_COLUMNS = ("item", "annotator", "label")


def write_rows(path: str, rows: int) -> Found:
    """Write a CSV of so many answers by a hundredth as many annotators, in random order."""
    import numpy as np
    import polars as pl

    draw = np.random.default_rng(0)
    item = np.repeat(np.arange(max(rows // 10, 1)), 10)[:rows]
    draw.shuffle(item)
    codes = {
        "item": ("item-", item, 7),
        "annotator": ("annotator-", draw.integers(max(rows // 1000, 10), size=rows), 5),
        "label": ("class-", draw.integers(10, size=rows), 1),
    }
    frame = pl.DataFrame({name: code for name, (_, code, _) in codes.items()})
    names = [
        (pl.lit(start) + pl.col(name).cast(pl.String).str.zfill(digits)).alias(name)
        for name, (start, _, digits) in codes.items()
    ]
    draft = Path(path).with_suffix(".part")
    draft.parent.mkdir(exist_ok=True)
    frame.lazy().select(names).sink_csv(draft)
    draft.rename(path)
    return {}


def read_ours(path: str) -> Found:
    """Read a file into annotations."""
    from dissensus import read

    start, began = perf_counter(), process_time()
    annotations = read(path)
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - began}
    return {**taken, "rows": len(annotations)}


def read_polars(path: str) -> Found:
    """Read a file with polars and code its columns, each for itself."""
    import polars as pl

    start, began = perf_counter(), process_time()
    frame = pl.read_csv(path, infer_schema=False)
    coded = frame.select(
        pl.col(name).cast(pl.Categorical(pl.Categories.random())) for name in _COLUMNS
    )
    codes = [coded[name].to_physical() for name in _COLUMNS]
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - began}
    return {**taken, "rows": len(codes[0])}


def _stored(rows: int) -> str:
    path = OUT / f"rows-{rows}.csv"
    if not path.exists():
        found = fresh("reading:write_rows", path=str(path), rows=rows)
        if "failed" in found:
            raise SystemExit(found["failed"])
    return str(path)


def in_turns(repeats: int, jobs: dict[str, Callable[[], Found]]) -> dict[str, list[Found]]:
    """Return what every job finds, one after the other, several times."""
    found: dict[str, list[Found]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            found[name].append(job())
    return found


def reading_rows(rows: int, repeats: int) -> list[list[Any]]:
    """Return a row for our reading and one for polars alone."""
    path = _stored(rows)
    found = in_turns(
        repeats,
        {
            "polars reads and codes": lambda: fresh("reading:read_polars", path=path),
            "dissensus reads": lambda: fresh("reading:read_ours", path=path),
        },
    )
    base = found["polars reads and codes"]
    return [
        [f"{name} {rows} rows", *_figures(each, base), *_figures(each, base, "cpu")[:2]]
        for name, each in found.items()
    ]


def _figures(
    each: list[Found], base: list[Found] | None = None, unit: str = "seconds"
) -> list[Any]:
    failed = next((one["failed"] for one in each if "failed" in one), None)
    if failed is not None:
        return [failed, None, None]
    seconds = median(one[unit] for one in each)
    ratio = seconds / median(one[unit] for one in base) if base else None
    return [seconds, ratio, max(one["peak"] for one in each)]


def run(arguments: Sequence[str]) -> Found:
    """Return how long a command takes, from its start to its end."""
    start = perf_counter()
    subprocess.run([sys.executable, "-m", "dissensus", *arguments], check=True, capture_output=True)
    return {"seconds": perf_counter() - start}


def commands(repeats: int) -> list[list[Any]]:
    """Return how long commands take that people wait for, files warm."""
    labels = str(OUT / "labels.csv")
    rows = []
    for arguments in (
        ["--version"],
        ["--help"],
        ["aggregate", _stored(10_000), "-o", labels],
        ["aggregate", _stored(10_000), "-s", "majority", "-o", labels],
    ):
        run(arguments)
        summary = " ".join(Path(word).name if word.startswith("/") else word for word in arguments)
        times = [run(arguments)["seconds"] for _ in range(repeats)]
        rows.append([f"dissensus {summary}", median(times), min(times)])
    return rows


def main() -> None:
    """Measure and write the section."""
    from pages import Section, Table

    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--rows", type=int, default=10_000_000)
    summary.add_argument("--repeats", type=int, default=3)
    summary.add_argument("--simulate", default="M", help="sizes to draw: S, SM, M, L, XL (1e8)")
    given = summary.parse_args()
    section = Section("reading", "performance")
    section.add(
        Table(
            "Reading CSV",
            ["what", "seconds", "× polars", "peak GiB", "CPU seconds", "× polars, CPU"],
            reading_rows(given.rows, given.repeats),
            "Texts as names, rows in random order; the file is in the system's cache.",
        )
    )
    section.add(
        Table(
            "Commands", ["command", "seconds, median", "fastest"], commands(max(5, given.repeats))
        )
    )
    rows = []
    for size in filter(None, given.simulate.split(",")):
        found = fresh("crowds:draw", size=SIZES[size])
        rows.append([size, SIZES[size].answers, *_figures([found])[::2]])
    section.add(Table("Simulating, fast", ["size", "answers", "seconds", "peak GiB"], rows))
    section.write()


if __name__ == "__main__":
    main()
