"""What `scale.py` measures, each in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import polars as pl

from parquet_answers import truth_of, write_answers

ROUNDS = "dawid-skene[max_iter={},tol=0]"


class _Clock:
    """Times of the steps that a run reports."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.steps: dict[str, float] = {}
        self.rounds: list[float] = []

    def progress(self, what: str, done: int, total: int) -> None:
        if done == total:
            self.steps[what] = perf_counter() - self.began

    def round(self, _number: int, _objective: float) -> None:
        self.rounds.append(perf_counter() - self.began)

    @property
    def per_round(self) -> float:
        return float(np.median(np.diff(self.rounds)))


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def accuracy(path: Path | str) -> float:
    """Return the share of right labels in a folder or file of labels."""
    total = right = 0
    files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    for file in files:
        found = pl.read_parquet(file, columns=["item", "label"])
        item = found["item"].str.strip_prefix("item-").cast(pl.Int64).to_numpy()
        label = found["label"].str.strip_prefix("class ").cast(pl.Int64).to_numpy()
        right += int((truth_of(item) == label).sum())
        total += len(item)
    return right / total


def beyond_memory(folder: str, output: str, memory: int, rounds: int = 5) -> dict[str, Any]:
    """Aggregate a folder from disk."""
    from dissensus.scale import aggregate_files

    clock = _Clock()
    done = aggregate_files(
        [folder],
        ROUNDS.format(rounds),
        output,
        memory=memory,
        progress=clock.progress,
        on_round=clock.round,
    )
    seconds = perf_counter() - clock.began
    number = len(done.annotations)
    return {
        "answers": number,
        "items": done.annotations.n_items,
        "seconds": seconds,
        "ns": 1e9 * seconds / number,
        "cpu": 1e9 * _processor_time() / number,
        "round": clock.per_round,
        "steps": clock.steps,
        "trace": done.trace[-1],
        "load": os.getloadavg()[0],
    }


def in_memory(folder: str, output: str, rounds: int = 5) -> dict[str, Any]:
    """Aggregate a folder in memory, as `aggregate` does where it fits."""
    from dissensus import aggregate, write
    from dissensus.scale.parquet_files import chunks_of, find_files, read_all

    clock = _Clock()
    annotations = read_all(chunks_of(find_files([folder])))
    read = perf_counter() - clock.began
    result = aggregate(annotations, ROUNDS.format(rounds), progress=clock.round)
    write(result, output)
    seconds = perf_counter() - clock.began
    return {
        "answers": len(annotations),
        "seconds": seconds,
        "ns": 1e9 * seconds / len(annotations),
        "cpu": 1e9 * _processor_time() / len(annotations),
        "read": read,
        "round": clock.per_round,
        "trace": result.trace[-1],
        "load": os.getloadavg()[0],
    }


def rounds_here(folder: str, threads: int, rounds: int = 8) -> dict[str, Any]:
    """Time rounds in this process."""
    from dissensus import aggregate
    from dissensus.base.engine import Local
    from dissensus.scale.parquet_files import chunks_of, find_files, read_all

    annotations = read_all(chunks_of(find_files([folder])))
    clock = _Clock()
    aggregate(annotations, ROUNDS.format(rounds), engine=Local(threads), progress=clock.round)
    return {
        "answers": len(annotations),
        "annotators": annotations.n_annotators,
        "parts": len(Local(threads).cut(annotations)),
        "round": clock.per_round,
        "load": os.getloadavg()[0],
    }


def rounds_on_dask(
    folder: str,
    output: str,
    workers: int = 2,
    rounds: int = 8,
    address: str | None = None,
    kills: int = 0,
) -> dict[str, Any]:
    """Time rounds on a Dask cluster, and compare labels with those of this process."""
    from dissensus.scale import aggregate_files
    from dissensus.scale.dask import joined

    clock = _Clock()
    killed: list[float] = []
    with joined(address, workers) as engine:
        while len(engine.client.nthreads()) < workers:
            sleep(0.05)
        up = perf_counter() - clock.began

        def progress(number: int, objective: float) -> None:
            clock.round(number, objective)
            if len(killed) < kills and number in (2, 4):
                _kill_one(engine.client)
                killed.append(perf_counter() - clock.began)

        done = aggregate_files(
            [folder],
            ROUNDS.format(rounds),
            output,
            engine=engine,
            progress=clock.progress,
            on_round=progress,
        )
        parts = len(done.annotations.shards)
    return {
        "answers": len(done.annotations),
        "annotators": done.annotations.n_annotators,
        "parts": parts,
        "up": up,
        "steps": clock.steps,
        "round": clock.per_round,
        "rounds": np.diff(clock.rounds).tolist(),
        "killed": killed,
        "trace": list(done.trace),
        "seconds": perf_counter() - clock.began,
        "load": os.getloadavg()[0],
    }


def _kill_one(client: Any) -> None:
    """End a worker with -9, a moment after the next round has begun."""
    import threading

    pids = client.run(os.getpid)
    pid = next(iter(pids.values()))

    def kill() -> None:
        sleep(0.05)
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill).start()


def stream(
    items: int, annotators: int, classes: int, batches: int, seed: int, kind: str, refit: float
) -> dict[str, Any]:
    """Take a crowd in batches, and compare with the fit to all of it."""
    from dissensus import aggregate, simulate
    from dissensus.scale import OnlineAggregation

    made = simulate(
        kind, n_items=items, n_annotators=annotators, n_classes=classes, feedback=10, seed=seed
    )
    annotations = made.annotations
    names = (
        annotations.items[annotations.item].tolist(),
        annotations.annotators[annotations.annotator].tolist(),
    )
    columns = (*names, annotations.classes[annotations.label].tolist())
    order = np.random.default_rng(seed).permutation(len(annotations))
    now, began = OnlineAggregation("dawid-skene", refit=refit), perf_counter()
    for rows in np.array_split(order, batches):
        now.add(*([column[row] for row in rows] for column in columns))
    seconds = perf_counter() - began
    began = perf_counter()
    batch = aggregate(annotations, "dawid-skene")
    fitted = perf_counter() - began
    result = now.result()
    position = {name: row for row, name in enumerate(result.answers.items.tolist())}
    label = result.label[[position[name] for name in annotations.items.tolist()]]
    reindex = {name: row for row, name in enumerate(result.answers.annotators.tolist())}
    confusion = result.params.confusion[[reindex[name] for name in annotations.annotators.tolist()]]
    return {
        "labels": len(annotations),
        "accuracy": float(np.mean(label == made.truth)),
        "batch": float(np.mean(batch.label == made.truth)),
        "same": float(np.mean(label == batch.label)),
        "confusion": float(np.abs(confusion - batch.params.confusion).mean()),
        "since": len(now) - now.fitted,
        "seconds": seconds,
        "ms": 1000 * seconds / batches,
        "fit": fitted,
    }


def made(folder: str, number: float, annotators: float, text: bool = False) -> str:
    """Return a folder of answers, written if it is not there."""
    return str(write_answers(Path(folder), int(number), annotators=int(annotators), text=text))
