"""Answers in Parquet, as many as wanted: `python parquet_answers.py FOLDER NUMBER [--text]`.

Ten answers an item by annotators drawn at random, scattered over all files; every annotator is
right with a probability of their own, between .4 and .95, else names any other of five classes.
Files of 10^7 answers, row groups of 2^20. Truth and accuracy follow from the numbers of item and
annotator, so nothing has to be kept to score labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

PER_ITEM, CLASSES = 10, 5
_STEP = 982_451_653  # a prime: steps through all answers before it comes back
_FILE = 10_000_000


def truth_of(item: np.ndarray) -> np.ndarray:
    """Return the class of every item."""
    return ((item.astype(np.int64) * 2_654_435_761) >> 7) % CLASSES


def write_answers(
    folder: Path, number: int, *, annotators: int = 100_000, text: bool = False, seed: int = 0
) -> Path:
    """Write answers, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    accuracy = np.random.default_rng(seed).uniform(0.4, 0.95, annotators).astype(np.float32)
    for position, start in enumerate(range(0, number, _FILE)):
        file = folder / f"part-{position:05}.parquet"
        if file.exists():
            continue
        row = np.arange(start, min(start + _FILE, number), dtype=np.uint64)
        item = ((row * np.uint64(_STEP)) % np.uint64(number) // np.uint64(PER_ITEM)).astype("int64")
        rng = np.random.default_rng([seed, position])
        who = rng.integers(annotators, size=len(row), dtype=np.int32)
        away = rng.integers(1, CLASSES, size=len(row), dtype=np.int8)
        away[rng.random(len(row), dtype=np.float32) < accuracy[who]] = 0
        label = ((truth_of(item) + away) % CLASSES).astype(np.int8)
        frame = pl.DataFrame({"item": item, "annotator": who, "label": label})
        if text:
            frame = frame.select(
                pl.format("item-{}", pl.col("item").cast(pl.String).str.zfill(9)).alias("item"),
                pl.format("w{}", "annotator").alias("annotator"),
                pl.format("class {}", "label").alias("label"),
            )
        draft = file.with_suffix(".draft")
        frame.write_parquet(draft, compression="lz4", row_group_size=2**20)
        draft.rename(file)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("number", type=float)
    parser.add_argument("--annotators", type=float, default=1e5)
    parser.add_argument("--text", action="store_true")
    summary = parser.parse_args()
    write_answers(
        summary.folder, int(summary.number), annotators=int(summary.annotators), text=summary.text
    )
