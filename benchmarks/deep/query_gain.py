"""When the query network of `tendency` pays.

Run it with `python benchmarks/run.py deep query_gain [SET:SEED…]`.

One fit has the linear members and the query network, so what the network adds is the difference of
two pools of the same members, with it and without. The interval is a bootstrap over the held-out
items; CPU seconds are those of the fits with and without it, on one thread, features apart. Rows
are appended to `out/query_gain.jsonl`, and the page shows all of them.
"""

from __future__ import annotations

import json
import sys
from time import process_time
from typing import Any

import numpy as np

from crowds import OUT
from dissensus.deep.nn.features import Features
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.auto import AutoTendency
from dissensus.registry import tendencies
from pages import Section, Table
from tendency import loaded, split

KEPT = OUT / "query_gain.jsonl"
RUNS = ["lewidi_hs_brexit:0", "babe_sg1:0", "disaggreghateit:0"]
DRAWS = 2000
COLUMNS = (
    *("set", "split", "annotators", "labels of the median annotator", "taken by default"),
    *("weight", "log loss without", "gain", "95 % interval", "CPU seconds without", "with"),
)


def measured(name: str, seed: int) -> dict[str, Any]:
    """Return what the network adds on one split of a set, whether or not the default has it."""
    data = loaded(name)
    learned, held = split(data.annotations, seed)
    annotations, there = data.annotations.take(learned), data.annotations.take(held)
    seconds, models = [], []
    for spec in ("auto[queries=never]", "auto[queries=always]"):
        method, began = tendencies.create(spec), process_time()
        known = (
            data.features if method.needs_tokens(annotations) else Features(data.features.vectors)
        )
        models.append(method.fit(known.take(learned), annotations, FitOptions(seed=seed)))
        seconds.append(process_time() - began)
    model = models[-1]
    assert isinstance(model, AutoTendency)
    weight = dict(zip(model.members, model.weight.tolist(), strict=True)).get("queries", 0.0)
    item, annotator = there.item.astype(np.int64), there.annotator.astype(np.int64)
    features = data.features.take(held)
    without, given = (
        one.log_probability(features, item, annotator)[np.arange(len(there)), there.label]
        for one in models
    )
    gain, size = np.bincount(item, given - without), np.bincount(item)
    draw = np.random.default_rng(seed).integers(len(size), size=(DRAWS, len(size)))
    means = gain[draw].sum(axis=1) / size[draw].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {
        "set": name,
        "split": seed,
        "annotators": annotations.n_annotators,
        "median": float(np.median(annotations.labels_per_annotator)),
        "taken": tendencies.create("auto").needs_tokens(annotations),
        "weight": weight,
        "without": float(-without.mean()),
        "gain": float(gain.sum() / size.sum()),
        "low": float(low),
        "high": float(high),
        "seconds": seconds,
    }


def main(runs: list[str]) -> None:
    """Measure the runs that are missing, and write the page."""
    rows = []
    if KEPT.exists():
        rows = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    have = {(row["set"], row["split"]) for row in rows}
    for run in runs:
        name, seed = run.split(":")
        if (name, int(seed)) not in have:
            rows.append(measured(name, int(seed)))
            OUT.mkdir(exist_ok=True)
            with KEPT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(rows[-1], flush=True)
    cells = [
        [
            *(row["set"], row["split"], row["annotators"], row["median"]),
            "yes" if row["taken"] and row["weight"] > 0 else "no",
            *(round(row[name], 4) for name in ("weight", "without", "gain")),
            f"{row['low']:.4f} to {row['high']:.4f}",
            *(round(each, 1) for each in row["seconds"]),
        ]
        for row in sorted(rows, key=lambda row: (row["set"], row["split"]))
    ]
    section = Section("query network", "tendency")
    note = (
        "Gain: mean log loss of held-out labels without the network, minus that with it; positive "
        "where the network helps. It is taken by default with token features, at most 64 "
        "annotators, a median of 100 labels, and a weight of .05 or more."
    )
    section.add(Table("When the query network pays", COLUMNS, cells, note))
    section.write()


if __name__ == "__main__":
    main(sys.argv[1:] or RUNS)
