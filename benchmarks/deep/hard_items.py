"""Hard items from training dynamics: `python benchmarks/run.py deep hard_items`.

Images are drawn shapes of five kinds; a tenth of them is noise, so every label on it is random.
Gaussian items are the same with five clouds and items between them. A crowd of thirty labels every
item three times: a fifth of them guesses blindly, the others are right on 60 to 90 % of the clear
items. All scores see the labels of the crowd alone; AUM gets the true labels, which are random on
noise.

Measured is how well a score separates the tenth from the rest (the area under the ROC curve), and
the accuracy of a classifier trained without the items that WAUM prunes. Seeds decide the images,
the crowd, the networks and the test items; images are encoded once, in a pool from which every seed
draws.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from functools import lru_cache
from time import process_time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import rankdata

from crowds import OUT
from dissensus import Annotations, item_scores
from pages import Section, Table

N_CLASSES, N_ANNOTATORS, PER_ITEM, SHARE, SIDE = 5, 30, 3, 0.1, 24
N_ITEMS, N_TEST = 700, 800
ALPHAS = (0.01, 0.05, 0.1)
RETRAINED = 5  # networks that learn with and without, by seed
_STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262}  # 95 % of means of so many


class Data(NamedTuple):
    x: Any  # (item, …)
    truth: Any  # (item): class; random where ambiguous
    hard: Any  # (item): whether it is ambiguous
    annotations: Annotations
    x_test: Any
    truth_test: Any


def shape(rng: np.random.Generator, kind: int) -> Any:
    """Return an image of a disc, a square, a ring, a cross or stripes: (3, row, column)."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1) * 2 - 1
    across, down, turn = *rng.uniform(-0.25, 0.25, 2), rng.uniform(0, 2 * np.pi)
    u = (x - across) * np.cos(turn) + (y - down) * np.sin(turn)
    v = -(x - across) * np.sin(turn) + (y - down) * np.cos(turn)
    size, far, wide = rng.uniform(0.45, 0.7), np.hypot(u, v), np.maximum(abs(u), abs(v))
    inside = [
        far < size,
        wide < 0.85 * size,
        abs(far - 0.8 * size) < 0.17,
        (np.minimum(abs(u), abs(v)) < 0.18) & (wide < size),
        np.sin(u * rng.uniform(9, 12)) > 0,
    ][kind]
    front, back = rng.uniform(0.2, 1, 3), rng.uniform(0, 0.8, 3)
    while abs(front.mean() - back.mean()) < 0.25:
        front, back = rng.uniform(0.2, 1, 3), rng.uniform(0, 0.8, 3)
    return np.where(inside, front[:, None, None], back[:, None, None])


@lru_cache
def pool() -> dict[str, Any]:
    """Return images to draw from, as vectors of the encoder that comes with the package."""
    from dissensus.deep.nn import as_inputs, encoder_for
    from dissensus.deep.nn.features import cached_features

    rng = np.random.default_rng(7)
    kind = rng.integers(N_CLASSES, size=1600)
    clear = np.stack([shape(rng, each) for each in kind])
    noise = np.broadcast_to(rng.uniform(0, 0.8, (160, 3, 1, 1)), (160, 3, SIDE, SIDE))
    images = np.concatenate([clear, noise])
    images = (
        images
        + rng.normal(size=images.shape)
        * np.where(np.arange(1760) < 1600, 0.12, 0.25)[:, None, None, None]
    )
    inputs = as_inputs(images.clip(0, 1).astype(np.float32))
    encoder = encoder_for("efficientnet-lite0", inputs)
    vectors = np.array(cached_features(encoder, inputs, folder=OUT / "features").values)
    return {"kind": kind, "clear": vectors[:1600], "noise": vectors[1600:]}


def images(seed: int) -> Data:
    """Shapes through `efficientnet-lite0`, a tenth of them noise."""
    rng, kept = np.random.default_rng([seed, 1]), pool()
    drawn = rng.permutation(len(kept["kind"]))[: N_ITEMS + N_TEST]
    mine, test = drawn[:N_ITEMS], drawn[N_ITEMS:]
    truth, hard = kept["kind"][mine], _some(rng)
    x = kept["clear"][mine]
    x[hard] = kept["noise"][rng.permutation(len(kept["noise"]))[: hard.sum()]]
    annotations = crowd(rng, truth, hard)
    return Data(x, truth, hard, annotations, kept["clear"][test], kept["kind"][test])


def gaussian(seed: int) -> Data:
    """Five clouds in ten dimensions, a tenth of the items in their midst."""
    rng = np.random.default_rng([seed, 2])
    centre = rng.normal(size=(N_CLASSES, 10))
    centre -= centre.mean(axis=0)
    centre *= 3 / np.linalg.norm(centre, axis=1).mean()
    truth, hard = rng.integers(N_CLASSES, size=N_ITEMS), _some(rng)
    x = np.where(hard[:, None], 0, centre[truth]) + rng.normal(size=(N_ITEMS, 10))
    test = rng.integers(N_CLASSES, size=N_TEST)
    annotations = crowd(rng, truth, hard)
    return Data(x, truth, hard, annotations, centre[test] + rng.normal(size=(N_TEST, 10)), test)


def _some(rng: np.random.Generator) -> Any:
    hard = np.zeros(N_ITEMS, dtype=bool)
    hard[rng.permutation(N_ITEMS)[: round(SHARE * N_ITEMS)]] = True
    return hard


def crowd(rng: np.random.Generator, truth: Any, hard: Any) -> Annotations:
    """Return three labels on every item, by thirty of whom a fifth guesses."""
    right = rng.uniform(0.6, 0.9, N_ANNOTATORS)
    right[: N_ANNOTATORS // 5] = 0
    wrong = rng.dirichlet(np.ones(N_CLASSES), (N_ANNOTATORS, N_CLASSES))
    wrong[: N_ANNOTATORS // 5] = wrong[: N_ANNOTATORS // 5, :1]  # the same whatever they see
    confusion = right[:, None, None] * np.eye(N_CLASSES) + (1 - right)[:, None, None] * wrong
    item = np.repeat(np.arange(N_ITEMS), PER_ITEM)
    who = np.concatenate(
        [rng.choice(N_ANNOTATORS, PER_ITEM, replace=False) for _ in range(N_ITEMS)]
    )
    rows = np.where(hard[item][:, None], 1 / N_CLASSES, confusion[who, truth[item]])
    label = (rows.cumsum(axis=1) > rng.random(len(item))[:, None]).argmax(axis=1)
    return Annotations.from_codes(
        item, who, label, items=N_ITEMS, annotators=N_ANNOTATORS, classes=N_CLASSES
    )


SETS: dict[str, Callable[[int], Data]] = {"images": images, "gaussian": gaussian}


def area(score: Any, hard: Any) -> float:
    """Return how often a hard item has a higher score than another; equal ones count half."""
    rank = rankdata(np.where(np.isnan(score), np.nanmin(score), score))
    n_hard, n_other = int(hard.sum()), int((~hard).sum())
    return float((rank[hard].sum() - n_hard * (n_hard + 1) / 2) / (n_hard * n_other))


def ranked(name: str, seed: int) -> dict[str, Any]:
    """Return areas under the curve of one seed."""
    from dissensus.deep.learning.hard_items import aum, aumc, waum

    data = SETS[name](seed)
    x, annotations, how = data.x, data.annotations, {"seed": seed}
    ways: dict[str, Callable[[], Any]] = {
        "waum": lambda: waum(x, annotations, alpha=SHARE, **how),
        "waum[margin=pleiss]": lambda: waum(x, annotations, margin="pleiss", **how),
        "waum[normalize=count]": lambda: waum(x, annotations, normalize="count", **how),
        "waum to epoch 50": lambda: waum(x, annotations, held_out=0.0, **how),
        "waum per annotator": lambda: waum(x, annotations, per_annotator=True, **how),
        "aumc": lambda: aumc(x, annotations, **how),
        "aumc[margin=top2,scale=probabilities]": lambda: aumc(
            x, annotations, margin="top2", scale="probabilities", **how
        ),
        "aum of the true labels": lambda: aum(x, data.truth, **how),
    }
    out: dict[str, Any] = {"area": {}, "seconds": {}, "epochs": {}}
    for way, work in ways.items():
        began = process_time()
        found = work()
        out["seconds"][way] = process_time() - began
        out["area"][way] = area(-found.score, data.hard)
        out["epochs"][way] = found.epochs
    began = process_time()
    items = item_scores(annotations, seed=seed)
    for way, score in {
        "vote entropy": items.vote_entropy,
        "GLAD's difficulty": items.difficulty,
        "surprise": items.surprise,
        "doubt (1 − confidence)": -items.confidence,
    }.items():
        out["area"][way] = area(score, data.hard)
        out["seconds"][way] = process_time() - began
    return out


def retrained(name: str, seed: int) -> dict[str, float]:
    """Return accuracies on test items, of classifiers that learn from all or from fewer items."""
    from dissensus.deep.learning.classifier import CrowdClassifier
    from dissensus.deep.learning.hard_items import waum
    from dissensus.deep.nn.settings import Training

    data, out = SETS[name](seed), {}
    hardest = waum(data.x, data.annotations, seed=seed).hardest
    dropped = {"all items": np.zeros(N_ITEMS, dtype=bool), "without the noise": data.hard}
    for alpha in ALPHAS:
        gone = np.zeros(N_ITEMS, dtype=bool)
        gone[hardest[: max(round(alpha * N_ITEMS), 1)]] = True
        dropped[f"waum, alpha {alpha}"] = gone
    rng = np.random.default_rng([seed, 3])
    dropped["without a tenth at random"] = rng.permutation(dropped[f"waum, alpha {ALPHAS[-1]}"])
    truth = data.truth_test.astype(str)
    training = Training(epochs=10, held_out=0)
    for way, gone in dropped.items():
        annotations = data.annotations.keep(~gone[data.annotations.item])
        rights = [
            CrowdClassifier("two-stage[labels=wds]", training=training, seed=number)
            .fit(data.x, annotations)
            .predict(data.x_test)
            == truth
            for number in range(RETRAINED)
        ]
        out[way] = float(np.mean(rights))
    return out


def kept(work: Callable[[str, int], Any], name: str, seed: int) -> Any:
    """Return what a seed gave, measured unless it was before."""
    path = OUT / f"hard-items-{work.__name__}-{name}-{seed}.json"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        path.write_text(json.dumps(work(name, seed)), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def spread(values: list[float]) -> tuple[float, float]:
    """Return a mean and half the width of its 95 % interval."""
    count = len(values)
    if count < 2:
        return values[0], float("nan")
    return float(np.mean(values)), float(
        _STUDENT.get(count, 2) * np.std(values, ddof=1) / count**0.5
    )


def tables(name: str, runs: list[dict[str, Any]]) -> list[Table]:
    """Return what was found, as tables."""
    rows: list[list[Any]] = [["(floor) at random", 0.5, None, None, None]]
    for way in runs[0]["area"]:
        mean, half = spread([run["area"][way] for run in runs])
        epochs = [run["epochs"][way] for run in runs if way in run["epochs"]]
        seconds = float(np.mean([run["seconds"][way] for run in runs]))
        rows.append([way, mean, half, float(np.mean(epochs)) if epochs else None, seconds])
    rows.append(["(ceiling)", 1.0, None, None, None])
    columns = ["score", "area under the curve", "95 % ±", "epochs", "CPU seconds"]
    words = (
        f"{SETS[name].__doc__} {N_ITEMS} items, {PER_ITEM} labels each, {len(runs)} seeds; the "
        "interval is of the mean over seeds."
    )
    found = Table(f"Finding the ambiguous tenth: {name}", columns, rows, words)
    base = [run["accuracy"]["all items"] for run in runs]
    rows = []
    for way in runs[0]["accuracy"]:
        values = [run["accuracy"][way] for run in runs]
        change = spread([one - other for one, other in zip(values, base, strict=True)])
        summary = [None, None] if way == "all items" else list(change)
        rows.append([way, spread(values)[0], *summary])
    words = (
        f"Labels by `wds`, then ten epochs of ordinary training; {RETRAINED} networks and {N_TEST} "
        "test items a seed, none of them noise. Changes are paired by seed."
    )
    columns = ["learned from", "test accuracy", "change", "95 % ±"]
    return [found, Table(f"A classifier that learns without them: {name}", columns, rows, words)]


def main() -> None:
    """Measure, and write the page."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--data", default="images,gaussian")
    summary.add_argument("--seeds", type=int, default=5)
    given = summary.parse_args()
    import torch

    torch.set_num_threads(1)
    for name in given.data.split(","):
        section = Section(f"hard items: {name}", "hard_items")
        runs = []
        for seed in range(given.seeds):
            runs.append(kept(ranked, name, seed) | {"accuracy": kept(retrained, name, seed)})
            for part in (runs[-1]["area"], runs[-1]["accuracy"]):
                print(name, seed, {way: round(value, 3) for way, value in part.items()}, flush=True)
        for table in tables(name, runs):
            section.add(table)
        section.write()


if __name__ == "__main__":
    main()
