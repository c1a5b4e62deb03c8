"""Beyond memory and one machine.

Run it with `python benchmarks/run.py speed scale PART…` (see `--help` for the parts).

memory   10^9 answers (or --answers) from disk with Dawid–Skene, five rounds, beside the same in
         memory at 10^7 and 3·10^7 answers: time per answer and peak memory.
dask     10^7 answers on two workers beside two threads of one process; workers killed with -9.
stream   1000 batches beside the fit to everything, over seeds.
model    time per round against answers, annotators, workers and a slow network (two network
         namespaces and tc; needs root), a model fitted to it, and what it says of 10^10 answers.
hosts    a network trained by torchrun on two hosts (network namespaces), same weights as on one.

Everything measured is kept in `out/scale/`; delete it to measure anew.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import nnls

from hosts import Hosts, can_make_hosts, train_on_two_hosts
from kept import KEPT, kept
from measure import fresh
from pages import Section, Table
from scale_jobs import accuracy, made

_CLASSES = 5
_CACHE = 4e6  # bytes of parameters that a core finds again without going to memory, roughly


def memory(work: Path, answers: int) -> None:
    """Measure what does not fit into memory."""
    section = Section("scale-memory", "scale")
    found = {}
    for number in (10**7, 3 * 10**7):
        folder = made(str(work / f"a{number}"), number, 1e5)
        output = str(work / "labels.parquet")
        found[number, "in memory"] = kept(
            "scale",
            f"memory-{number}",
            lambda f=folder, o=output: fresh("scale_jobs:in_memory", folder=f, output=o),
        )
    for number in (10**7, answers):
        folder = made(str(work / f"a{number}"), number, 1e5)
        found[number, "from disk"] = kept(
            "scale", f"disk-{number}", lambda f=folder: _from_disk(f, str(work / "labels"))
        )
    names = ("seconds", "ns", "cpu", "round", "peak", "accuracy", "load")
    rows = [
        [number, how, *([one["failed"]] if "failed" in one else [one.get(n) for n in names])]
        for (number, how), one in found.items()
    ]
    large, small = found[answers, "from disk"], found[3 * 10**7, "in memory"]
    note = (
        ""
        if "failed" in large or "failed" in small
        else (
            f"Per answer, from disk / in memory: {large['ns'] / small['ns']:.2f} of the time, "
            f"{large['cpu'] / small['cpu']:.2f} of processor time. "
        )
    )
    section.add(
        Table(
            "Dawid–Skene, 5 rounds, 10^5 annotators, 5 classes, from Parquet to labels in Parquet",
            [
                "answers",
                "how",
                "seconds",
                "ns per answer",
                "processor ns per answer",
                "s per round",
                "peak GiB",
                "right",
                "load",
            ],
            rows,
            f"{note}From disk with --memory 4GiB. Load: processes that ran or waited when it "
            f"ended, on two cores; above two, times are those of a shared machine. {KEPT}",
        )
    )
    section.write()


def _from_disk(folder: str, output: str) -> dict[str, Any]:
    found = fresh("scale_jobs:beyond_memory", folder=folder, output=output, memory=4 * 2**30)
    if "failed" not in found:
        found["accuracy"] = accuracy(output)
        shutil.rmtree(output)
    return found


def dask(work: Path) -> None:
    """Measure two workers beside two threads, and kill workers."""
    section = Section("scale-dask", "scale")
    rows = []
    for annotators in (10**4, 10**5):
        folder = made(str(work / f"b{annotators}"), 1e7, annotators)
        here = kept(
            "scale",
            f"threads-{annotators}",
            lambda f=folder: fresh("scale_jobs:rounds_here", folder=f, threads=2),
        )
        there = {}
        for kills in (0, 2):
            output = str(work / f"labels-{kills}.parquet")
            there[kills] = kept(
                "scale",
                f"dask-{annotators}-{kills}",
                lambda f=folder, o=output, k=kills: fresh(
                    "scale_jobs:rounds_on_dask", folder=f, output=o, kills=k
                ),
            )
        local = str(work / "labels-local.parquet")
        fresh("scale_jobs:in_memory", folder=folder, output=local, rounds=8)
        apart = [_apart(local, str(work / f"labels-{kills}.parquet")) for kills in (0, 2)]
        plain, killed = there[0], there[2]
        rows.append(
            [
                annotators,
                here["round"],
                plain["round"],
                plain["round"] / here["round"],
                plain["up"],
                plain["steps"]["sorting"] - plain["up"],
                apart[0],
                len(killed["killed"]),
                max(killed["rounds"]),
                apart[1],
                plain["load"],
            ]
        )
    section.add(
        Table(
            "10^7 answers, two workers of one thread beside two threads of one process",
            [
                "annotators",
                "threads, s per round",
                "Dask, s per round",
                "ratio",
                "cluster up, s",
                "reading and coding, s",
                "largest difference of posteriors",
                "workers killed",
                "longest round then, s",
                "largest difference then",
                "load",
            ],
            rows,
            f"Medians over 8 rounds. {KEPT}",
        )
    )
    section.write()


def _apart(one: str, other: str) -> float | None:
    if not (Path(one).exists() and Path(other).exists()):
        return None
    there, back = (pl.read_parquet(path).sort("item") for path in (one, other))
    posteriors = [name for name in there.columns if name.startswith("p:")]
    apart = there.select(posteriors).to_numpy() - back.select(posteriors).to_numpy()
    return float(np.abs(apart).max())


def stream(seeds: int) -> None:
    """Measure a stream beside the fit to everything."""
    section = Section("scale-stream", "scale")
    rows = []
    for kind in ("independent-confusion", "hammer-spammer", "one-coin"):
        found = [
            kept(
                "scale",
                f"stream-{kind}-{seed}",
                lambda k=kind, s=seed: fresh(
                    "scale_jobs:stream",
                    items=10_000,
                    annotators=100,
                    classes=4,
                    batches=1000,
                    seed=s,
                    kind=k,
                    refit=0.5,
                ),
            )
            for seed in range(seeds)
        ]
        columns = {name: np.array([one[name] for one in found]) for name in found[0]}
        gap = 100 * (columns["accuracy"] - columns["batch"])
        rows.append(
            [
                kind,
                100 * float(columns["batch"].mean()),
                f"{gap.mean():.2f} ({gap.min():.2f} to {gap.max():.2f})",
                f"{columns['confusion'].mean():.4f} (at most {columns['confusion'].max():.4f})",
                100 * float(columns["same"].mean()),
                float(columns["since"].mean()),
                float(columns["ms"].mean()),
                float(columns["fit"].mean()),
            ]
        )
    section.add(
        Table(
            "10^5 labels in 1000 batches, Dawid–Skene, beside the fit to all of them",
            [
                "crowd",
                "batch, % right",
                "stream less batch, points",
                "mean difference of confusion",
                "same labels, %",
                "labels since the last fit",
                "ms per batch",
                "one fit, s",
            ],
            rows,
            f"10^4 items, 100 annotators, 4 classes, {seeds} seeds, refit at half more. {KEPT}",
        )
    )
    section.write()


def model(work: Path) -> None:
    """Measure rounds over sizes, workers and links; fit a model; extrapolate."""
    section = Section("scale-model", "scale")
    points = []
    for number in (10**6, 10**7):
        for annotators in (10**3, 10**4, 10**5):
            folder = made(str(work / f"m{number}-{annotators}"), number, annotators)
            for threads in (1, 2):
                found = kept(
                    "scale",
                    f"model-threads{threads}-{number}-{annotators}",
                    lambda f=folder, t=threads: fresh(
                        "scale_jobs:rounds_here", folder=f, threads=t
                    ),
                )
                points.append(("threads", threads, np.inf, found))
            for workers in (1, 2):
                found = kept(
                    "scale",
                    f"model-dask{workers}-{number}-{annotators}",
                    lambda f=folder, w=workers: fresh(
                        "scale_jobs:rounds_on_dask",
                        folder=f,
                        output=str(work / "labels.parquet"),
                        workers=w,
                    ),
                )
                points.append(("dask", workers, np.inf, found))
    if can_make_hosts():
        points += _slow_links(work)
    points = [point for point in points if "failed" not in point[3]]
    terms = np.array([_terms(*point) for point in points])
    times = np.array([point[3]["round"] for point in points])
    weight = 1 / times  # errors count as shares
    fitted = nnls(terms * weight[:, None], times * weight)[0]
    error = np.abs(terms @ fitted / times - 1)
    section.add(
        Table(
            "A model of a round, fitted to the measurements below",
            ["term", "fitted"],
            [
                ["ns per answer and core", 1e9 * fitted[0]],
                ["ns more, for the share of parameters beyond a cache of 4 MB", 1e9 * fitted[1]],
                ["ns per byte of counts, made and added, and part", 1e9 * fitted[2]],
                ["ns per byte of counts or parameters through Dask, and level", 1e9 * fitted[3]],
                ["ms per level of tasks", 1e3 * fitted[4]],
                ["ms per task", 1e3 * fitted[5]],
                ["bytes on the link over its rate", fitted[6]],
            ],
            f"Errors of the model: median {np.median(error):.0%}, largest {error.max():.0%}, over "
            f"{len(points)} measurements. {KEPT}",
        )
    )
    section.add(
        Table(
            "Measured and modelled rounds, s",
            ["how", "workers", "Mbit/s", "answers", "annotators", "measured", "model"],
            [
                [
                    kind,
                    count,
                    None if np.isinf(rate) else rate / 1e6,
                    f["answers"],
                    f["annotators"],
                    f["round"],
                    float(row @ fitted),
                ]
                for (kind, count, rate, f), row in zip(points, terms, strict=True)
            ],
        )
    )
    section.add(
        Table(
            "What the model says of 10^10 answers, 5 classes",
            ["machines", "cores each", "annotators", "Gbit/s", "s per round", "of it network"],
            [
                [
                    machines,
                    cores,
                    annotators,
                    rate / 1e9,
                    *_predicted(fitted, machines, cores, annotators, rate),
                ]
                for machines, cores in ((1, 16), (10, 16), (100, 16), (100, 2))
                for annotators in (10**5, 10**6)
                for rate in (10e9,)
            ],
            "Not measured: one machine of two cores stands behind it. Memory has to be there: "
            "9 bytes an answer, and 200 bytes an annotator for each of parameters and counts.",
        )
    )
    section.write()


def _terms(kind: str, workers: int, rate: float, found: dict[str, Any]) -> list[float]:
    """Return what a round's time is made of; see the table of the model for the words."""
    size = found["annotators"] * _CLASSES**2 * 8.0
    parts, levels = found["parts"], 1 + int(np.ceil(np.log(max(found["parts"], 1)) / np.log(4)))
    on_dask = kind == "dask"
    return [
        found["answers"] / workers,
        found["answers"] / workers * max(0.0, 1 - _CACHE / size),
        size * parts / workers,
        size * (1 + levels) if on_dask else 0.0,
        (1.0 + levels) if on_dask else 0.0,
        (1.0 + 2 * parts) if on_dask else 0.0,
        16.0 * size / rate if not np.isinf(rate) else 0.0,  # there and back, in bits
    ]


def _predicted(
    fitted: np.ndarray, machines: int, cores: int, annotators: int, rate: float
) -> tuple[float, float]:
    workers = machines * cores
    parts = max(workers, 10**10 // 8_000_000)
    summary = {"annotators": annotators, "answers": 1e10, "parts": parts}
    terms = np.array(_terms("dask", workers, np.inf, summary))
    size = annotators * _CLASSES**2 * 8.0
    hops = np.ceil(np.log2(machines)) if machines > 1 else 0.0
    network = fitted[6] * 2 * hops * 8 * size / rate
    return float(terms @ fitted + network), float(network)


def _slow_links(work: Path) -> list[Any]:
    points = []
    for rate in (100e6, 1000e6):
        for annotators in (10**3, 10**4):
            folder = made(str(work / f"m{10**6}-{annotators}"), 1e6, annotators)

            def measure(f: str = folder, r: float = rate) -> dict[str, Any]:
                with Hosts(r) as hosts, hosts.cluster() as address:
                    return fresh(
                        "scale_jobs:rounds_on_dask",
                        folder=f,
                        output=str(work / "labels.parquet"),
                        workers=2,
                        address=address,
                    )

            found = kept("scale", f"model-link{rate:g}-{annotators}", measure)
            points.append(("dask", 2, rate, found))
    return points


def hosts(work: Path) -> None:
    """Train on two hosts."""
    section = Section("scale-hosts", "scale")
    found = kept("scale", "hosts", lambda: train_on_two_hosts(work / "hosts"))
    section.add(
        Table(
            "A network trained by torchrun on two hosts (network namespaces)",
            ["what", "found"],
            [[name, str(value)] for name, value in found.items()],
        )
    )
    section.write()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=["memory", "dask", "stream", "model", "hosts"])
    parser.add_argument("--answers", type=float, default=1e9)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--work", type=Path, default=Path(os.environ.get("TMPDIR", "/tmp")) / "scale"
    )
    summary = parser.parse_args()
    summary.work.mkdir(parents=True, exist_ok=True)
    for part in summary.parts:
        if part == "memory":
            memory(summary.work, int(summary.answers))
        elif part == "stream":
            stream(summary.seeds)
        else:
            {"dask": dask, "model": model, "hosts": hosts}[part](summary.work)


if __name__ == "__main__":
    main()
