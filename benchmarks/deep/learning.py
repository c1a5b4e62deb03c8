"""Learning from annotators on real data: `python benchmarks/run.py deep learning`.

Every method trains the same classifier on the same features with the settings it has by default,
once per seed; a seed decides weights, order, dropout and which items are held out. The epoch is the
one under which the annotations on held-out items are most likely: no truth is used, and the test
set is looked at once, after training. The ceiling trains on the truth, the floor on majorities.

One row chooses its volume first, by `choose` on the annotations that it learns from, for every seed
anew. On sentiment, the rows that train many networks have three seeds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dissensus import Annotations, read, read_truth
from dissensus.metrics import evaluate
from dissensus.registry import learners
from dissensus.result import Predictions
from kept import KEPT, kept
from pages import Section, Table

DATA = Path(__file__).parents[3] / "shared" / "data"
CEILING, FLOOR = "true labels", "two-stage"
CHOSEN = "raykar[folds=5], volume chosen"
VOLUMES = (0, 0.03, 0.1, 0.3)
SPECS = [
    CEILING,
    FLOOR,
    "two-stage[labels=naive-soft,soft=True]",
    "two-stage[labels=dawid-skene]",
    "two-stage[labels=dawid-skene,soft=True]",
    "two-stage[labels=glad,soft=True]",
    "raykar",
    "raykar[folds=5]",
    CHOSEN,
    *(name for name in learners if name not in ("two-stage", "raykar")),
    "confusion-layer[joint=False]",
    "madl[instance=True]",
    "annot-mix[instance=True]",
]
_SLOW = {"raykar[folds=5]", CHOSEN}
_KEYS = ("spec", "accuracy", "half", "ece", "log_loss", "held", "epoch", "seconds", "seeds")
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262}  # 95 % of means of so many


class Data(NamedTuple):
    annotations: Annotations
    x: Any  # (item, feature)
    truth: list[str]  # (item): of the items with annotations, for the ceiling
    x_test: Any
    truth_test: list[str]


def labelme() -> Data:
    """1000 images with labels of 59 annotators, 1188 to test; 512 features each."""
    annotations, truth = _read("labelme")
    known = np.load(DATA / "labelme" / "features.npz")
    x = known["x_train"].astype(np.float32)[[int(item) for item in annotations.items]]
    test = [truth[str(1500 + row)] for row in range(len(known["x_test"]))]
    return Data(annotations, x, [truth[item] for item in annotations.items], known["x_test"], test)


def music() -> Data:
    """700 songs with labels of 44 annotators, 300 to test; 124 features each."""
    annotations, truth = _read("music")
    x = np.load(DATA / "music" / "features.npz")["x"].astype(np.float32)
    mine = [int(item) for item in annotations.items]
    test = [row for row in range(len(x)) if row not in set(mine)]
    return Data(
        annotations,
        x[mine],
        [truth[item] for item in annotations.items],
        x[test],
        [truth[str(i)] for i in test],
    )


def sentiment() -> Data:
    """4999 sentences with labels of 203 annotators, 3999 to test; through MiniLM."""
    from dissensus.deep.nn.features import features_of
    from dissensus.deep.nn.inputs import Texts

    annotations, truth = _read("sentiment_polarity")
    with gzip.open(DATA / "sentiment_polarity" / "tasks.csv.gz", "rt", encoding="utf-8") as file:
        rows = {row["task"]: row["text"] for row in csv.DictReader(file)}
    test = [item for item in truth if item not in set(annotations.items.tolist()) and item in rows]
    texts = [rows[item] for item in [*annotations.items.tolist(), *test]]
    inputs = Texts(tuple(texts))
    x = features_of(inputs, "minilm").vectors
    size = annotations.n_items
    return Data(
        annotations,
        x[:size],
        [truth[i] for i in annotations.items],
        x[size:],
        [truth[i] for i in test],
    )


def _read(name: str) -> tuple[Annotations, dict[str, str]]:
    return read(DATA / name / "answers.csv.gz"), read_truth(DATA / name / "truth.csv.gz")


SETS: dict[str, Callable[[], Data]] = {
    "labelme": labelme, "music": music, "sentiment": sentiment,
}  # fmt: skip


def measured(data: Data, spec: str, seed: int, epochs: int | None) -> dict[str, Any]:
    """Train once, and look at the test set once."""
    from choosing import choose
    from dissensus.deep.learning.classifier import CrowdClassifier

    annotations, summary = data.annotations, {}
    if spec == CEILING:
        annotations = Annotations.from_columns(
            annotations.items,
            ["truth"] * annotations.n_items,
            data.truth,
            items=annotations.items,
            classes=annotations.classes,
        )
    default = CrowdClassifier.nested["training"]
    settings = {"training": default if epochs is None else replace(default, epochs=epochs)}
    began = process_time()
    if spec == CHOSEN:
        specs = [f"raykar[volume={volume}]" for volume in VOLUMES]
        found = choose(specs, data.x, annotations, seed=seed, **settings)
        summary = {"volume": VOLUMES[specs.index(found.spec)], "candidates": found.candidates}
        spec = f"raykar[folds=5,volume={summary['volume']}]"
    made = CrowdClassifier("two-stage" if spec == CEILING else spec, seed=seed, **settings)
    made.fit(data.x, annotations)
    taken = process_time() - began
    summary |= scores(data, made.predict_proba(data.x_test))
    best = made.history_.rows[made.history_.best - 1]
    return {**summary, "held": best.score or float("nan"), "epoch": best.epoch, "seconds": taken}


def scores(data: Data, posterior: Any) -> dict[str, float]:
    """Return accuracy, ECE and log loss of probabilities of the test items: (item, class)."""
    names = np.arange(len(posterior)).astype(str).astype(object)
    found = evaluate(
        Predictions(names, data.annotations.classes, posterior.argmax(axis=1), posterior),
        dict(zip(names.tolist(), data.truth_test, strict=True)),
        resamples=0,
    )
    return {name: found.scores[name].value for name in ("accuracy", "ece", "log_loss")}


def row_of(name: str, data: Data, spec: str, seeds: int, epochs: int | None) -> dict[str, Any]:
    """Return means over seeds, and half the width of their 95 % intervals."""
    seeds = min(seeds, 3) if name == "sentiment" and spec in _SLOW else seeds
    runs = [
        kept(
            "learning",
            f"{name} {spec} {seed} {epochs}",
            partial(measured, data, spec, seed, epochs),
        )
        for seed in range(seeds)
    ]
    summary: dict[str, Any] = {
        key: float(np.mean([run[key] for run in runs])) for key in _KEYS if key in runs[0]
    }
    accuracy = [run["accuracy"] for run in runs]
    spread = float(np.std(accuracy, ddof=1)) if seeds > 1 else float("nan")
    summary |= {"spec": spec, "half": STUDENT.get(seeds, 2) * spread / seeds**0.5, "seeds": seeds}
    summary["volumes"] = [run["volume"] for run in runs if "volume" in run]
    print(
        f"{spec:42s} {summary['accuracy']:.3f} ± {summary['half']:.3f}  ECE {summary['ece']:.3f}",
        flush=True,
    )
    return summary


def verdicts(rows: list[dict[str, Any]]) -> str:
    """Return what stands out in the table."""
    by = {row["spec"]: row for row in rows}
    ends = [row for row in rows if not row["spec"].startswith((CEILING, FLOOR))]
    two = [row for row in rows if row["spec"].startswith(FLOOR)]
    if not ends or FLOOR not in by:
        return ""
    best, stage = (max(some, key=lambda row: row["accuracy"]) for some in (ends, two))
    below = [row["spec"] for row in rows if row["accuracy"] <= by[FLOOR]["accuracy"]]
    below.remove(FLOOR)
    volumes = ", ".join(f"{volume:g}" for volume in by.get(CHOSEN, {}).get("volumes", []))
    return (
        f"Best end to end: {best['spec']}, {best['accuracy']:.3f} "
        f"({best['accuracy'] - by[FLOOR]['accuracy']:+.3f} against majority labels, ECE "
        f"{best['ece']:.3f}); best of two stages: {stage['spec']}, {stage['accuracy']:.3f}. "
        f"Not above majority labels: {', '.join(below) or 'none'}."
        + (f" Volumes chosen, by seed: {volumes}." if volumes else "")
    )


def main() -> None:
    """Train, and write the page."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--data", default="labelme,music,sentiment")
    summary.add_argument("--seeds", type=int, default=5)
    summary.add_argument("--epochs", type=int, help="instead of the default")
    summary.add_argument("--methods", help="specifications, with semicolons between; default: all")
    given = summary.parse_args()
    specs = given.methods.split(";") if given.methods else SPECS
    import torch

    torch.set_num_threads(1)
    for name in given.data.split(","):
        section = Section(f"learning on {name}", "learning")
        try:
            data = SETS[name]()
        except Exception as error:
            print(f"{name} is left out: {error}")
            continue
        rows = [row_of(name, data, spec, given.seeds, given.epochs) for spec in specs]
        columns = ["method", "accuracy", "95 % ±", "ECE", "log loss", "held-out log-likelihood"]
        columns += ["best epoch", "CPU seconds", "seeds"]
        note = (
            f"{SETS[name].__doc__} Means over seeds; the interval is of the mean over seeds, and "
            "does not include the sampling of the test set. Held-out likelihoods are per label: of "
            "all labels on an item together for two-stage, raykar and confusion-layer, of each "
            f"alone for the others. {verdicts(rows)} {KEPT}"
        )
        cells = [[row[key] for key in _KEYS] for row in rows]
        section.add(Table(f"Learning on {name}", columns, cells, note))
        section.write()


if __name__ == "__main__":
    main()
