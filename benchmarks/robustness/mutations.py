"""Damaged files of all formats.

Run it with `python benchmarks/run.py robustness mutations --files 50000 --seed 0`.

Files of every format are changed at random, as in `fuzz.py`, and by what readers of numbers, times,
encodings and quotes trip over. Each is read, checked and written again. It ends as answers or in
one line; anything but a `DissensusError` is a bug, `BaseException` included, and so is a process
that dies or hangs, and anything on standard error, where polars writes its panics. A bug is printed
with the number that makes it again: `python benchmarks/run.py robustness mutations --again 17`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fuzz

FIXTURES = Path(__file__).parents[2] / "tests"
PATIENCE = 20  # seconds for one file
LONGEST = 600  # characters of a message
CHILDREN = 2
PART = 2500  # files for one process

Draw = np.random.Generator
Change = Callable[[bytes, Draw], bytes]
TIMES = (
    *("20٠6-0٠-01", "2026-0٠-01 10:00:00", "٢٠٢٦-٠١-٠١", "2026-01-01T1٠:00:00Z", "9" * 400),
    *("2026-13-45", "2026-02-30", "0000-00-00", "-1", "1e999", "99999-01-01", "2026-01-01T99:99"),
    *("Thu Mar 21 09:31:58 PDT 2٠19", "1８/02/2026", "12:60:61", "inf", "−5", "٣"),
)
HUGE = (
    b"9" * 400,
    b"-" + b"9" * 400,
    b"1e400",
    b"9" * 19,
    b"1" + b"0" * 310 + b".5",
    b"18446744073709551616",
)
ENCODINGS = (b"utf-0", b"utf-16", b"utf-7", b"idna", b"rot13", b"", b"\xff", b"punycode", b"hex")
TEXTS = (
    b'"\\ud800"',
    b'"\\udfff\\ud800"',
    b'"\\u0000"',
    b'"\\ud83d"',
    b'"a\\ud800|b"',
    b'"\\ufeff"',
)


def huge_number(body: bytes, draw: Draw) -> bytes:
    """Replace a number, and perhaps others, by one that no machine's word holds."""
    return _replaced(rb"-?\d+(\.\d+)?", HUGE, body, draw)


def odd_time(body: bytes, draw: Draw) -> bytes:
    """Replace what looks like a date, a time or a number by a time that nobody can read."""
    texts = tuple(text.encode() for text in TIMES)
    return _replaced(rb"\d{4}-\d\d-\d\d[T \d:.Z+]*|\d\d:\d\d(:\d\d)?|\d{9,}|\d+", texts, body, draw)


def half_characters(body: bytes, draw: Draw) -> bytes:
    """Replace a text of JSON by half a character, or by one that has no shape."""
    return _replaced(rb'"[^"\\\n]*"', TEXTS, body, draw)


def declaration(body: bytes, draw: Draw) -> bytes:
    """Declare another encoding for XML."""
    encoding = ENCODINGS[draw.integers(len(ENCODINGS))]
    start = body.find(b"?>") + 2 if body.startswith(b"<?xml") else 0
    return b'<?xml version="1.0" encoding="' + encoding + b'"?>' + body[start:]


def joined_files(body: bytes, draw: Draw) -> bytes:
    """Put the file behind itself, perhaps with a byte order mark between."""
    return body + (b"", b"\n", b"\xef\xbb\xbf", b"\n\xef\xbb\xbf")[draw.integers(4)] + body


def swallowed(body: bytes, draw: Draw) -> bytes:
    """Put a quote before one field and behind another."""
    positions = [position for position, byte in enumerate(body) if byte in b",\t\n"] or [0]
    first, last = sorted(positions[draw.integers(len(positions))] for _ in range(2))
    return body[: first + 1] + b'"' + body[first + 1 : last] + b'"' + body[last:]


def bit(body: bytes, draw: Draw) -> bytes:
    """Flip a single bit, which most formats with checks do not notice."""
    raw = bytearray(body)
    raw[draw.integers(len(raw))] ^= 1 << int(draw.integers(8))
    return bytes(raw)


def _replaced(pattern: bytes, others: tuple[bytes, ...], body: bytes, draw: Draw) -> bytes:
    matches = list(re.finditer(pattern, body[: 10**6]))
    for number in sorted(draw.integers(len(matches), size=draw.integers(1, 4)), reverse=True):
        first, last = matches[number].span()
        body = body[:first] + others[draw.integers(len(others))] + body[last:]
    return body


CHANGES: list[Change] = [
    *(
        *fuzz.CHANGES,
        huge_number,
        huge_number,
        odd_time,
        odd_time,
        half_characters,
        half_characters,
    ),
    *(joined_files, swallowed, bit, bit),
]


@cache
def seeds() -> dict[str, dict[str, bytes]]:
    """Return the files that are changed: by name, one or those of a folder."""
    folders = ("brat", "coco", "conll", "cvat", "doccano")
    alone = [*fuzz.FIXTURES.iterdir(), *(FIXTURES / "fixtures_kinds").iterdir()]
    files = {path.name: {path.name: path.read_bytes()} for path in sorted(alone) if path.is_file()}
    for name in folders:
        home = FIXTURES / "fixtures_kinds" / name
        inside = [path for path in sorted(home.rglob("*")) if path.is_file()]
        files[name] = {str(path.relative_to(home)): path.read_bytes() for path in inside}
        if name in ("cvat", "coco"):
            files |= {f"{name}-{path.name}": {path.name: path.read_bytes()} for path in inside}
    return files | {name: {name: body} for name, body in (fuzz.LONG | _written()).items()}


@cache
def _written() -> dict[str, bytes]:
    """Return tables that this package writes: of classes, with times, and of every kind."""
    from dissensus import read
    from dissensus.formats import read as read_any
    from dissensus.formats.writers_init import write

    written: dict[str, bytes] = {}
    rows = [(f"item{n % 9}", f"w{n % 4}", "xyz"[n % 3 % 2]) for n in range(30)]
    days = [f"2026-01-{1 + n % 28:02d} 10:{n:02d}:00" for n in range(30)]
    item, annotator, label = zip(*rows, strict=True)
    columns = {"item": item, "annotator": annotator, "label": label, "time": days}
    numbers = columns | {"label": [n / 4 for n in range(30)], "duration": list(range(30))}
    with tempfile.TemporaryDirectory() as home:
        for name, table in {"classes": columns, "numbers": numbers}.items():
            frame = pl.DataFrame(table)
            for ending in ("csv", "tsv", "parquet", "arrow", "jsonl", "json", "csv.gz", "csv.zst"):
                path = Path(home) / f"{name}.{ending}"
                write(read(frame), path)
                written[path.name] = path.read_bytes()
            frame.with_columns(pl.col("time").str.to_datetime()).write_parquet(
                path := Path(home) / "t"
            )
            written[f"{name}-typed.parquet"] = path.read_bytes()
            frame.write_ipc_stream(path)
            written[f"{name}-stream.arrow"] = path.read_bytes()
            frame.write_csv(path)
            written[f"{name}-times.csv"] = path.read_bytes()
        for name in ("nested.json", "wide.csv", "crowd-kit.csv", "label-studio.json",
                     "argilla.json", "huggingface.jsonl", "huggingface.parquet"):  # fmt: skip
            path = Path(home) / name
            write(read(pl.DataFrame(columns)), path, format=name.partition(".")[0])
            written[path.name] = path.read_bytes()
        for name in ("label_studio_spans.json", "prodigy_marks.jsonl", "coco", "cvat", "brat"):
            for ending in ("csv", "jsonl", "parquet"):
                path = Path(home) / f"{name}.{ending}"
                try:
                    write(read_any(FIXTURES / "fixtures_kinds" / name), path)
                except ValueError:
                    continue
                written[path.name] = path.read_bytes()
    return written


def make(number: int) -> tuple[str, dict[str, bytes]]:
    """Return what a number changes and how, and the files."""
    draw = np.random.default_rng([number, 3])
    name = list(seeds())[draw.integers(len(seeds()))]
    files = dict(seeds()[name])
    victim = list(files)[draw.integers(len(files))]
    body, done = files[victim], []
    changes = [*CHANGES, declaration, declaration] if victim.endswith("xml") else CHANGES
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        change = changes[draw.integers(len(changes))]
        if body and len(body) < 10**7:
            try:
                body = change(body, draw)
            except (ValueError, RecursionError, fuzz.csv.Error):
                continue  # damaged too much for this change
            done.append(change.__name__)
    return f"{name} {victim}: {' + '.join(done)}", files | {victim: body}


def place(number: int, folder: Path) -> Path:
    """Write the files of a number, and return the path to read."""
    _, files = make(number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder if len(files) > 1 else folder / next(iter(files))


def try_one(number: int, folder: Path) -> tuple[str, str]:
    """Return how reading, checking and writing the files of a number ended, and the message."""
    from dissensus.answers import KINDS
    from dissensus.errors import DissensusError
    from dissensus.formats import examine, read_truth
    from dissensus.formats.format import TOOLS
    from dissensus.formats.writers_init import write
    from dissensus.quality import checks as checking

    draw = np.random.default_rng([number, 4])
    path = place(number, folder / "damaged")
    options: dict[str, Any] = {"missing": "drop"} if draw.random() < 0.5 else {}
    if draw.random() < 0.1:
        options["format"] = list(TOOLS)[draw.integers(len(TOOLS))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                reading = examine(path, **options)
            except DissensusError as problem:
                several = str(problem).split("several questions, ")
                if len(several) == 1:
                    return refused(problem)
                reading = examine(path, question=several[1].split(" (")[0], **options)
            answers = reading.answers.kind in KINDS
            found: Any = reading.answers if answers else reading.annotations
            json.dumps(checking.check(found if answers else reading).as_dict())
            write(found, folder / "again.jsonl")
            if draw.random() < 0.2 and path.is_file():
                read_truth(path)
    except DissensusError as problem:
        return refused(problem)
    except BaseException:
        return "bug", traceback.format_exc(limit=-8)
    return "read", str(reading.format)


def refused(problem: Exception) -> tuple[str, str]:
    """Return that an error is one line of a reasonable length, or a bug."""
    words = str(problem)
    good = "\n" not in words and 0 < len(words) < LONGEST
    return ("refused", "") if good else ("bug", f"message {words[:300]!r}")


def child(first: int, last: int) -> None:
    """Try one number after another, and write how each ended."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"took more than {PATIENCE} s")

    signal.signal(signal.SIGALRM, late)
    import dissensus.formats.writers_init  # noqa: F401

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as stderr:
        seeds()
        os.dup2(stderr.fileno(), 2)
        for number in range(first, last):
            print(json.dumps({"number": number}), flush=True)
            stderr.truncate(0)
            stderr.seek(0)
            signal.alarm(PATIENCE)
            ended, message = try_one(number, Path(folder))
            signal.alarm(0)
            stderr.seek(0)
            if words := stderr.read().decode(errors="replace").strip():
                ended, message = "bug", f"on standard error: {words[:300]} {message}"
            row = {"number": number, "ended": ended, "message": message}
            print(json.dumps(row), flush=True)


def run(first: int, last: int) -> tuple[Counter[str], dict[str, int]]:
    """Try all numbers in processes; return how often they ended how, and a number of every bug."""
    counts: Counter[str] = Counter()
    bugs: dict[str, int] = {}
    waiting = [(start, min(start + PART, last)) for start in range(first, last, PART)]
    running: list[tuple[subprocess.Popen[str], Any, int]] = []
    while waiting or running:
        while waiting and len(running) < CHILDREN:
            start, stop = waiting.pop(0)
            out = tempfile.TemporaryFile("w+")  # noqa: SIM115
            command = [sys.executable, __file__, "--child", str(start), str(stop)]
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, text=True)
            running.append((process, out, stop))
        time.sleep(0.1)
        for entry in [entry for entry in running if entry[0].poll() is not None]:
            running.remove(entry)
            process, out, stop = entry
            out.seek(0)
            rows = [json.loads(row) for row in out.read().splitlines()]
            for row in rows:
                if "ended" in row:
                    counts[
                        f"{row['ended']} {row['message'] if row['ended'] == 'read' else ''}"
                    ] += 1
                    if row["ended"] == "bug":
                        bugs.setdefault(_place_of(row["message"]), row["number"])
            if not rows:
                raise RuntimeError(f"a process did nothing and ended with {process.returncode}")
            if "ended" not in rows[-1]:
                counts["bug "] += 1
                bugs.setdefault(f"the process ended with {process.returncode}", rows[-1]["number"])
            if rows[-1]["number"] + 1 < stop:
                waiting.insert(0, (rows[-1]["number"] + 1, stop))
    return counts, bugs


def _place_of(message: str) -> str:
    """Return the last line of the code and of the message."""
    lines = [line.strip() for line in message.strip().splitlines()]
    positions = [line for line in lines if line.startswith("File")] or [""]
    return f"{positions[-1]} {lines[-1][:200]}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=50_000)
    options.add_argument("--seed", type=int, default=0, help="the first number is a million times")
    options.add_argument("--again", type=int, help="make one file again, and show what happens")
    options.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.child is not None:
        child(*asked.child)
        return 0
    if asked.again is not None:
        print(make(asked.again)[0], place(asked.again, Path("damaged")))
        with tempfile.TemporaryDirectory() as folder:
            print(*try_one(asked.again, Path(folder)), sep="\n")
        return 0
    first = asked.seed * 10**6
    counts, bugs = run(first, first + asked.files)
    print(f"{sum(counts.values())} files")
    for what, count in counts.most_common():
        print(f"{count:8d} {what}")
    for what, number in bugs.items():
        print(f"BUG --again {number} ({make(number)[0]})\n    {what}")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
