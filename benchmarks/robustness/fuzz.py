"""Thousands of faults: `python benchmarks/run.py robustness fuzz --seconds 120 --seed 0`.

Every fixture of every format, and small long tables, are changed at random: bits, lines, fields,
values of JSON, encodings, packing. Each must end as annotations or in one line that says what is
wrong, in a process that may not grow by more than a gibibyte. Others try tables of typed values,
odd settings of every method, damaged saved folders of every kind, and output that cannot be
written or that several threads and processes write (`fuzz_faults.py`). What does otherwise is
printed with the number that makes it again: `python benchmarks/run.py robustness fuzz --again 17`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fuzz_faults

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
MEMORY = 2**30  # bytes more than after the imports
PATIENCE = 20  # seconds for one file
LONGEST = 600  # characters of a message

Draw = np.random.Generator
LONG = {
    "table.csv": b'task,worker,label,time\na,x,1,10\n"a, b",y,2,11\nc,x,1,\n\xe2\x98\x83,z,c,12\n',
    "table.jsonl": b'{"task":"a","worker":"x","label":1}\n{"task":"b","worker":"y","label":"2"}\n',
    "table.json": b'[{"item":"a","user":"x","answer":"p"},{"item":"b","user":"y","answer":null}]',
    "nested.json": b'{"a":{"x":1,"y":[0,1]},"b":{"y":"2"}}',
    "columns.json": b'{"task":["a","b"],"worker":["x","y"],"label":[1,2]}',
}
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, "", " ", "x", "\x00", "\ud800", "NaN", "a|b"),
    *([], {}, [[]], [None], [{}], {"a": None}, {"": ""}, [1, "a", None], {"value": []}, "[", "{}"),
    *("true", "-1", "2020-13-45", "é\u202e", "'", '"', "=1+1", "\n", "a\tb", "1" * 5000),
]


def flip(body: bytes, draw: Draw) -> bytes:
    raw = bytearray(body)
    for position in draw.integers(len(raw), size=draw.integers(1, 9)):
        raw[position] ^= 1 << int(draw.integers(8))
    return bytes(raw)


def cut(body: bytes, draw: Draw) -> bytes:
    return body[: draw.integers(len(body))]


def cut_out(body: bytes, draw: Draw) -> bytes:
    first, last = np.sort(draw.integers(len(body), size=2))
    return body[:first] + body[last:]


def lines(body: bytes, draw: Draw) -> bytes:
    """Delete, repeat, swap or empty a line."""
    rows = body.split(b"\n")
    one, two = draw.integers(len(rows), size=2)
    match draw.integers(4):
        case 0:
            del rows[one]
        case 1:
            rows[one:one] = [rows[two]] * int(draw.integers(1, 30))
        case 2:
            rows[one], rows[two] = rows[two], rows[one]
        case _:
            rows[one] = b""
    return b"\n".join(rows)


def marks(body: bytes, draw: Draw) -> bytes:
    """Put or take away something that has a meaning."""
    raw = bytearray(body)
    mark = [b",", b'"', b"\n", b"\t", b"{", b"]", b":", b"\\", b"\x00", b"\xff", b"\r", b"e9", b"|"]
    for position in draw.integers(len(raw) + 1, size=draw.integers(1, 6)):
        raw[position:position] = mark[draw.integers(len(mark))]
    return bytes(raw)


def encoding(body: bytes, draw: Draw) -> bytes:
    text = body.decode("utf-8", errors="replace")
    match draw.integers(7):
        case 0:
            return text.encode("utf-16")
        case 1:
            return b"\xfe\xff" + text.encode("utf-16-be")[: int(draw.integers(2 * len(text) + 1))]
        case 2:
            return text.encode("utf-16-le")
        case 3:
            return text.encode("latin-1", errors="replace") + b"\xe9"
        case 4:
            return text.encode("utf-8-sig")
        case 5:
            return text.replace("\n", "\r\n").encode()
        case _:
            return text.replace("\n", "\r").encode()


def long(body: bytes, draw: Draw) -> bytes:
    """Make some of it very long, or very deep."""
    position = int(draw.integers(len(body)))
    more = [b"x" * 10**6, b"[" * 10**4, b'{"a":' * 10**4, b"9" * 10**4, b"," * 10**4, b"\n" * 10**4]
    return body[:position] + more[draw.integers(len(more))] + body[position:]


def packing(body: bytes, draw: Draw) -> bytes:
    match draw.integers(4):
        case 0:
            packed = gzip.compress(body)
        case 1:
            packed = gzip.compress(b"a,b,c\n" * 10**5 + body)
        case _:
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in ("ann.jsonl", "../bob.json", "/cy.csv", "dir/")[: draw.integers(1, 5)]:
                    archive.writestr(name, body)
            packed = out.getvalue()
    return flip(packed, draw) if draw.random() < 0.5 else packed


def value(body: bytes, draw: Draw) -> bytes:
    """Replace values of JSON, or fields of a table, by values of another kind."""
    try:
        found = json.loads(body)
    except ValueError:
        return _row_values(body, draw)
    for _ in range(draw.integers(1, 4)):
        found = _changed(found, draw)
    return _dumped(found).encode("utf-8", errors="replace")


def _row_values(body: bytes, draw: Draw) -> bytes:
    text = body.decode("utf-8", errors="replace")
    rows = text.split("\n")
    position = int(draw.integers(len(rows)))
    try:
        rows[position] = _dumped(_changed(json.loads(rows[position]), draw))
        return "\n".join(rows).encode("utf-8", errors="replace")
    except ValueError:
        return _fields(text, draw)


def _fields(text: str, draw: Draw) -> bytes:
    mark = "\t" if "\t" in text.split("\n")[0] else ","
    table = list(csv.reader(io.StringIO(text), delimiter=mark))
    for _ in range(draw.integers(1, 4)):
        row = table[draw.integers(len(table))]
        if not row:
            continue
        position = int(draw.integers(len(row)))
        match draw.integers(5):
            case 0:
                del row[position]
            case 1:
                row.insert(position, row[-1])
            case 2:  # deeper: a cell may be JSON itself
                try:
                    row[position] = _dumped(_changed(json.loads(row[position]), draw))
                except ValueError:
                    row[position] = table[0][position % max(len(table[0]), 1)] if table[0] else ""
            case _:
                odd = ODD[draw.integers(len(ODD))]
                row[position] = odd if isinstance(odd, str) else _dumped(odd)
    out = io.StringIO()
    csv.writer(out, delimiter=mark, lineterminator="\n").writerows(table)
    return out.getvalue().encode("utf-8", errors="replace")


def _changed(found: Any, draw: Draw) -> Any:
    """Return a value in which one part, at any depth, is another."""
    if isinstance(found, dict) and found and draw.random() < 0.85:
        name = list(found)[draw.integers(len(found))]
        if draw.random() < 0.1:
            return {key: one for key, one in found.items() if key != name}
        if draw.random() < 0.1:
            return {**found, str(ODD[draw.integers(len(ODD))]): found[name]}
        return {**found, name: _changed(found[name], draw)}
    if isinstance(found, list) and found and draw.random() < 0.85:
        position = int(draw.integers(len(found)))
        more = [_changed(found[position], draw)] * int(draw.integers(0, 3))
        return [*found[:position], *more, *found[position + 1 :]]
    return ODD[draw.integers(len(ODD))]


def _dumped(found: Any) -> str:
    return json.dumps(found, ensure_ascii=bool(len(str(found)) % 2))


CHANGES: list[Callable[[bytes, Draw], bytes]] = [
    *(flip, cut, cut_out, lines, marks, encoding, long, packing),
    *(value, value, value, value),
]


@cache
def seeds() -> dict[str, bytes]:
    """Return the files that are changed, by name."""
    found = {path.name: path.read_bytes() for path in sorted(FIXTURES.iterdir()) if path.is_file()}
    return {**LONG, **found}


def make(number: int) -> tuple[str, bytes]:
    """Return the changed file of a number, and what was done to which."""
    draw = np.random.default_rng(number)
    files = seeds()
    name = list(files)[draw.integers(len(files))]
    body, done = files[name], []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        change = CHANGES[draw.integers(len(CHANGES))]
        if body and len(body) < 10**7:
            try:
                body = change(body, draw)
            except (ValueError, RecursionError, csv.Error):
                continue  # damaged too much for this change
            done.append(change.__name__)
    return f"{name}: {' + '.join(done)}", body


def kind_of(number: int) -> str:
    """Return what a number tries."""
    kinds = ["file"] * 12 + ["typed"] * 3 + ["setting"] * 2 + ["folder"] * 2 + ["output"]
    return kinds[number % len(kinds)]


def try_one(number: int, path: Path) -> tuple[str, str]:
    """Return how the fault of a number ended, and the message."""
    draw, kind = np.random.default_rng([number, 2]), kind_of(number)
    if kind == "file":
        return try_file(number, path)
    try:
        if kind == "folder":
            change = [flip, cut, cut_out, marks, value][draw.integers(5)]
            return fuzz_faults.damaged_folders(draw, path.parent, change)
        others = {
            "typed": fuzz_faults.typed_values,
            "setting": fuzz_faults.odd_settings,
            "output": fuzz_faults.output_faults,
        }
        return others[kind](draw, path.parent)
    except Exception:
        return "bug", traceback.format_exc(limit=-6)


def try_file(number: int, path: Path) -> tuple[str, str]:
    """Return how reading the changed file ended, and the message."""
    from dissensus.errors import DataError
    from dissensus.formats import examine
    from dissensus.formats.format import TOOLS

    draw = np.random.default_rng([number, 1])
    _, body = make(number)
    path.write_bytes(body)
    options: dict[str, Any] = {"missing": "drop"} if draw.random() < 0.5 else {}
    if draw.random() < 0.15:
        options["format"] = list(TOOLS)[draw.integers(len(TOOLS))]
    try:
        annotations = examine(path, **options)
    except DataError as problem:
        summary = str(problem)
        if "several questions" in summary and "question" not in options:
            names = summary.split("several questions, ")[1].split(" (")[0]
            options["question"] = names
            try:
                annotations = examine(path, **options)
            except DataError as again:
                summary = str(again)
            else:
                return "annotations", str(annotations.format)
        good = "\n" not in summary and len(summary) < LONGEST and summary.startswith(str(path))
        return ("refused", "") if good else ("bug", f"message {summary[:300]!r}")
    except Exception:
        return "bug", traceback.format_exc(limit=-6)
    return "annotations", str(annotations.format)


def child(first: int, seconds: float) -> None:
    """Try one number after another, and write how each ended."""
    import dissensus.cli.aggregate
    import dissensus.formats  # noqa: F401

    fuzz_faults.saved_folders()

    def late(*_: Any) -> None:
        raise TimeoutError(f"took more than {PATIENCE} s")

    signal.signal(signal.SIGALRM, late)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 4 * MEMORY, size + 4 * MEMORY))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    stop = time.monotonic() + seconds
    number = first
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < stop:
            print(json.dumps({"number": number}), flush=True)
            signal.alarm(PATIENCE)
            ended, summary = try_one(number, Path(folder) / "damaged.dat")
            signal.alarm(0)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
            if grown > MEMORY:
                ended, summary = "bug", f"grew by {grown / 2**20:.0f} MiB"
            print(json.dumps({"number": number, "ended": ended, "message": summary}), flush=True)
            number += 1
            if grown > MEMORY:
                return


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument(
        "--seed", type=int, default=0, help="the first number is a million times it"
    )
    options.add_argument("--again", type=int, help="make one file again, and show what happens")
    options.add_argument("--child", type=int, help=argparse.SUPPRESS)
    summary = options.parse_args()
    if summary.child is not None:
        child(summary.child, summary.seconds)
        return 0
    if summary.again is not None:
        if kind_of(summary.again) == "file":
            what, body = make(summary.again)
            Path("damaged.dat").write_bytes(body)
            print(f"{what}: damaged.dat, {len(body)} bytes")
        with tempfile.TemporaryDirectory() as folder:
            print(*try_one(summary.again, Path(folder) / "damaged.dat"), sep="\n")
        return 0
    counts: Counter[str] = Counter()
    bugs: dict[str, int] = {}
    number, stop = summary.seed * 10**6, time.monotonic() + summary.seconds
    while time.monotonic() < stop:
        left = stop - time.monotonic()
        command = [sys.executable, __file__, "--child", str(number), "--seconds", str(left)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        rows = [json.loads(row) for row in run.stdout.splitlines()]
        for row in rows:
            if "ended" in row:
                shown = row["message"] if row["ended"] in ("annotations", "good") else ""
                counts[f"{row['ended']} {shown}"] += 1
                if row["ended"] == "bug":
                    bugs.setdefault(row["message"].strip().splitlines()[-1][:200], row["number"])
        if rows and "ended" not in rows[-1]:
            bugs.setdefault(
                f"process ended with {run.returncode}: {run.stderr[-300:]}", rows[-1]["number"]
            )
            counts["bug "] += 1
        if not rows:
            print(run.stderr)
            return 1
        number = rows[-1]["number"] + 1
    print(f"{sum(counts.values())} faults")
    for what, count in counts.most_common():
        print(f"{count:8d} {what}")
    for what, number in bugs.items():
        made = make(number)[0] if kind_of(number) == "file" else kind_of(number)
        print(f"BUG --again {number} ({made})\n    {what}")
    return 1 if bugs else 0


if __name__ == "__main__":
    sys.exit(main())
