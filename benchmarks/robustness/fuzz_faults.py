"""More that `fuzz.py` tries: typed values, odd settings, damaged folders, output that fails.

Each function tries one number and returns how it ended: `good`, `refused` (in one line), or `bug`.
"""

from __future__ import annotations

import atexit
import csv
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

Draw = np.random.Generator
Ended = tuple[str, str]
LONGEST = 600  # characters of a message
ROWS = [(i, w, "xyz"[(i * w + i) % 3]) for i in range(8) for w in range(5)]
TABLE = "task,worker,label\n" + "".join(f"{i},{w},{label}\n" for i, w, label in ROWS)

KINDS: list[Any] = [
    *(pl.Int8, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean, pl.String),
    *(pl.Binary, pl.Date, pl.Time, pl.Categorical, pl.Decimal(20, 3)),
    *(pl.Datetime(unit) for unit in ("ms", "us", "ns")),
    *(pl.Duration(unit) for unit in ("ms", "us", "ns")),
]
TEXTS = ["a", "b", " a", "", "NaN", "None", "n/a", "1.0", "1", "é\u202e", "\x00", "x" * 300, "-1"]


def refused(problem: Exception) -> Ended:
    """Return whether an error is one line of a reasonable length."""
    words = str(problem)
    good = "\n" not in words and 0 < len(words) < LONGEST
    return ("refused", "") if good else ("bug", f"message {words[:300]!r}")


def typed_values(draw: Draw, folder: Path) -> Ended:
    """Write a table of any types, read it, and count names: no two values may become one."""
    from dissensus.errors import DataError
    from dissensus.formats import examine

    size = int(draw.integers(1, 30))
    frame = pl.DataFrame({role: _column(draw, size) for role in ("item", "annotator", "label")})
    path, kind = folder / "typed", str(draw.choice(["parquet", "arrow", "jsonl", "json"]))
    if "json" in kind and any(one in (pl.Binary, pl.Int128) for one in frame.dtypes):
        return "refused", ""
    {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "jsonl": frame.write_ndjson,
     "json": frame.write_json}[kind](path)  # fmt: skip
    try:
        found = examine(path, missing="drop").annotations
    except DataError as problem:
        return refused(problem)
    if kind in ("parquet", "arrow") and len(found):
        whole = frame.drop_nulls()
        for role in ("item", "annotator"):
            if whole.schema[role].is_float():
                whole = whole.filter(~pl.col(role).is_nan())
            if whole.schema[role] == pl.String:
                whole = whole.filter(pl.col(role) != "")
        if whole.schema["label"].is_float():
            whole = whole.filter(~pl.col("label").is_nan())
        if whole.schema["label"] == pl.String:
            gap = pl.col("label").str.to_lowercase().is_in(["", "nan", "na", "n/a", "null"])
            whole = whole.filter(~gap)
        sizes = [whole[role].n_unique() for role in ("item", "annotator")]
        if len(found) == whole.height and [found.n_items, found.n_annotators] != sizes:
            return "bug", f"{sizes} names became {found.n_items}, {found.n_annotators}"
    return "good", "typed"


def _column(draw: Draw, size: int) -> pl.Series:
    kind = KINDS[draw.integers(len(KINDS))]
    if kind in (pl.String, pl.Categorical, pl.Binary):
        texts = [TEXTS[one] for one in draw.integers(len(TEXTS), size=size)]
        column = pl.Series([one.encode() for one in texts] if kind == pl.Binary else texts)
    elif kind in (pl.Float32, pl.Float64):
        odd = [0.0, -0.0, 1.0, 1.5, np.nan, np.inf, 1e300, 1e-300, 2.0**60]
        column = pl.Series([odd[one] for one in draw.integers(len(odd), size=size)])
    elif kind == pl.Boolean:
        column = pl.Series(draw.random(size) < 0.5)
    else:
        top = 100 if kind == pl.Int8 else 10**4 if kind == pl.Date else 10 ** draw.integers(1, 13)
        column = pl.Series(draw.integers(1, top, size=size))
    gaps = pl.Series(draw.random(size) < draw.choice([0, 0, 0.2]))
    return pl.select(pl.when(~gaps).then(column.cast(kind, strict=False)).alias("one")).to_series()


def odd_settings(draw: Draw, _folder: Path) -> Ended:
    """Fit a method with one or two settings that nobody would choose."""
    from dissensus import Annotations, Numbers, aggregate, aggregators, estimators
    from dissensus.errors import DissensusError
    from dissensus.params import describe_fields

    names = [*aggregators, *estimators]
    name = names[draw.integers(len(names))]
    numeric = name not in list(aggregators)
    method = (estimators if numeric else aggregators).find(name)
    two = getattr(method, "max_classes", None) == 2
    rows = [(i, w, label if not two else "xy"[label == "y"]) for i, w, label in ROWS]
    fields = [one for one in describe_fields(method) if one.name != "folds"]
    chosen = {}
    for _ in range(int(draw.integers(1, 3)) if fields else 0):
        field = fields[draw.integers(len(fields))]
        chosen[field.name] = _odd_value({one.base for one in field.options}, draw)
    spec = f"{name}[{','.join(f'{key}={value!r}' for key, value in chosen.items())}]"
    annotations = Annotations.from_columns(*zip(*rows, strict=True))
    numbers = Numbers.from_columns(
        *zip(*((i, w, i * 1.5 + w % 3) for i, w, _ in ROWS), strict=True)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if numeric:
                good = np.isfinite(aggregate(numbers, spec).value).all()
                return ("good", "setting") if good else ("bug", f"{spec} gave no values")
            result = aggregate(annotations, spec)
    except DissensusError as problem:
        return refused(problem)
    good = np.allclose(result.posterior.sum(axis=1), 1, atol=1e-6) and (result.posterior >= 0).all()
    return ("good", "setting") if good else ("bug", f"{spec} gave no posterior")


def _odd_value(bases: set[Any], draw: Draw) -> Any:
    values: list[Any] = [None, "text", True]
    if float in bases:
        values = [
            1e-320,
            1e-31,
            1e-30,
            1e-12,
            0.0,
            1e-3,
            0.5,
            1.0,
            7.0,
            1e3,
            1e9,
            1e30,
            1e308,
            -1.0,
        ]
    elif int in bases:
        values = [-1, 0, 1, 2, 7, 30, 10**7, 10**20]
    return values[draw.integers(len(values))]


@cache
def saved_folders() -> dict[str, tuple[Path, Callable[[Path], Any]]]:
    """Return a saved folder of every kind, and what loads it."""
    import tempfile

    from dissensus import (
        Annotations,
        ClassAggregation,
        CrowdClassifier,
        DistributionRecovery,
        FewShotCrowd,
        NumberAggregation,
        Numbers,
        TendencyClassifier,
        Training,
        aggregate,
    )
    from dissensus.deep.meta.episodes import Sizes
    from dissensus.scale.stream import Stream

    home = Path(tempfile.mkdtemp(prefix="fuzz-saved-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    columns = [*zip(*ROWS, strict=True)]
    annotations = Annotations.from_columns(*columns)
    aggregate(annotations, "dawid-skene").save(home / "aggregation")
    numbers = Numbers.from_columns(columns[0], columns[1], [float(i) for i, _, _ in ROWS])
    aggregate(numbers, "gaussian").save(home / "estimation")
    with Stream.opened(home / "stream") as stream:
        stream.add(*columns)
    with Stream.opened(home / "stream") as stream:
        stream.add(["n"], ["n"], ["x"])
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(36, 4)), rng.integers(3, size=(36, 4))
    tiny = Training(epochs=1, batch=16, held_out=0.0)
    CrowdClassifier("global-noise", hidden=4, training=tiny).fit(x, labels).save(
        home / "classifier"
    )
    TendencyClassifier("linear[folds=2,kernel=linear]").fit(x, labels).save(home / "tendency")
    DistributionRecovery("marginal").fit(x, labels).save(home / "recovery")
    sizes = Sizes(ways=(2,), shots=(1,), annotators=(2,), queries=1)
    few = FewShotCrowd("ridge", sizes=sizes, tuning=1, episodes=16, training=tiny)
    few.fit(x, labels[:, 0]).save(home / "meta")
    CrowdClassifier("global-noise", hidden=4, training=tiny).fit(x, labels, folder=home / "run")

    def resume(folder: Path) -> None:
        longer = Training(epochs=2, batch=16, held_out=0.0)
        CrowdClassifier("global-noise", hidden=4, training=longer).fit(
            x, labels, folder=folder, resume=True
        )

    def opened(folder: Path) -> None:
        with Stream.opened(folder) as stream:
            stream.online.result()

    loads: dict[str, Callable[[Path], Any]] = {
        "aggregation": ClassAggregation.load,
        "estimation": NumberAggregation.load,
        "stream": opened,
        "classifier": CrowdClassifier.load,
        "tendency": TendencyClassifier.load,
        "recovery": DistributionRecovery.load,
        "meta": FewShotCrowd.load,
        "run": resume,
    }
    for name, load in loads.items():
        if name not in ("stream", "run"):
            load(home / name)
    return {name: (home / name, load) for name, load in loads.items()}


def damaged_folders(draw: Draw, folder: Path, change: Callable[[bytes, Draw], bytes]) -> Ended:
    """Damage a file of a saved folder, and load it."""
    from dissensus.errors import DissensusError

    kinds = saved_folders()
    name = list(kinds)[draw.integers(len(kinds))]
    source, load = kinds[name]
    target = folder / "saved"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    files = sorted(path for path in target.rglob("*") if path.is_file())
    victim = files[draw.integers(len(files))]
    before = victim.read_bytes()
    if draw.random() < 0.1:
        victim.unlink()
    elif draw.random() < 0.1:
        victim.write_bytes(files[draw.integers(len(files))].read_bytes())
    elif before:
        try:
            victim.write_bytes(change(before, draw))
        except (ValueError, RecursionError, csv.Error):
            victim.write_bytes(before[: len(before) // 2])
    try:
        load(target)
    except DissensusError as problem:
        return refused(problem)
    same = victim.exists() and victim.read_bytes() == before
    harmless = same or name in ("stream", "run") or victim.name in ("result.json", "model.json")
    return ("good", name) if harmless else ("bug", f"{name}: damaged {victim.name} was loaded")


COMMANDS = [
    ["aggregate", "a.csv", "-s", "majority", "-o", "{}.csv"],
    ["aggregate", "a.csv", "-s", "dawid-skene", "-o", "{}.parquet"],
    ["aggregate", "a.csv", "-s", "majority", "--json", "--save", "{}"],
    ["convert", "a.csv", "{}.json", "--force"],
    ["convert", "a.csv", "{}.arrow", "--force"],
    ["agree", "a.csv", "-o", "{}.csv"],
    ["identify", "a.csv", "-o", "{}.csv"],
    ["simulate", "--folder", "{}", "--force"],
    ["watch", "a.csv", "-o", "{}.csv", "--once"],
    ["next", "a.csv", "-o", "{}.csv"],
]


def output_faults(draw: Draw, folder: Path) -> Ended:
    """Run a command whose output is full, read-only, a pipe, a folder, or written by others."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    (folder / "a.csv").write_text(TABLE)
    command = COMMANDS[draw.integers(len(COMMANDS))]
    fault = str(draw.choice(["full", "proc", "below", "folder", "pipe", "device", "threads"]))
    output, before = "out/x", {}
    if fault == "full":
        output = f"{_full_disk()}/x"
    elif fault == "proc":
        output = "/proc/nowhere/x"  # not even root may write there
    elif fault == "below":
        (folder / "out" / "file").write_text("mine")
        output, before = "out/file/below/x", {"file": b"mine"}
    elif fault == "folder":
        for ending in ("", ".csv", ".json", ".parquet", ".arrow"):
            (folder / "out" / f"x{ending}").mkdir()
            (folder / "out" / f"x{ending}" / "mine").write_text("mine")
    elif fault == "device":
        command, output = [*COMMANDS[0][:-1], "{}"], str(draw.choice(["/dev/full", "/dev/null"]))
    elif fault == "pipe":
        return _pipe(folder)
    elif fault == "threads":
        return _threads(draw, folder)
    code, words = _run([word.format(output) for word in command], folder)
    if code not in (0, 2) or "Traceback" in words:
        return "bug", f"{fault}: {command} ended with {code}: {words[-300:]}"
    kept = {path.name: path.read_bytes() for path in (folder / "out").iterdir() if path.is_file()}
    if code == 2 and (kept != before or any(one.endswith(".part") for one in kept)):
        return "bug", f"{fault}: {command} left {sorted(kept)}"
    if fault in ("proc", "below", "full") and code == 0:
        return "bug", f"{fault}: {command} ended well"
    return "good" if code == 0 else "refused", fault if code == 0 else ""


def _run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in a process of its own; return its exit code and messages."""
    command = [sys.executable, "-m", "dissensus", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode(errors="replace")


@cache
def _full_disk() -> str:
    """Return a folder without space: a small disk in memory where that can be made."""
    import tempfile

    folder = tempfile.mkdtemp(prefix="fuzz-full-")
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "/proc/nowhere"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # the last first: unmounted before
    atexit.register(subprocess.run, ["umount", folder], check=False)
    try:
        with open(f"{folder}/filler", "wb") as file:  # noqa: PTH123
            file.write(b"x" * 10**6)
    except OSError:
        pass
    return folder


def _pipe(folder: Path) -> Ended:
    pipe = folder / "out" / "pipe.csv"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    code, words = _run(["aggregate", "a.csv", "-s", "majority", "-o", "out/pipe.csv"], folder)
    reader.join(10)
    good = code == 0 and pipe.is_fifo() and bool(found) and found[0].startswith(b"item,label")
    return ("good", "pipe") if good else ("bug", f"pipe: {code}, {words[-300:]}")


def _threads(draw: Draw, folder: Path) -> Ended:
    """Write one file and one folder from two threads and two processes, and read both."""
    from dissensus import Annotations, ClassAggregation, aggregate

    target, problems = folder / "out" / "saved", []
    made = [
        aggregate(Annotations.from_columns(*zip(*ROWS[:size], strict=True)), "majority")
        for size in draw.integers(10, 40, size=2)
    ]
    known = {tuple(one.posterior.ravel()) for one in made}
    made[0].save(target)
    children = []
    for number, one in enumerate(made):
        one.save(folder / f"source-{number}")
        code = (
            f"one = Aggregation.load('source-{number}')\nfor _ in range(20): one.save('out/saved')"
        )
        command = [sys.executable, "-c", f"from dissensus import Aggregation\n{code}"]
        children.append(subprocess.Popen(command, cwd=folder))

    def work(one: Any) -> None:
        try:
            while children[0].poll() is None or children[1].poll() is None:
                one.save(target)
                if tuple(ClassAggregation.load(target).posterior.ravel()) not in known:
                    problems.append("a mixture was read")
        except Exception as problem:
            problems.append(repr(problem))

    threads = [threading.Thread(target=work, args=(one,)) for one in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(child.wait() for child in children):
        problems.append("a process failed")
    left = [path.name for path in (folder / "out").iterdir()]
    if problems or left != ["saved"]:
        return "bug", f"threads: {problems[:1]}, left {left}"
    return "good", "threads"
