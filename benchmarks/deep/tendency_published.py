"""The published setting of the query model beside ours.

Run it with `python benchmarks/run.py deep tendency_published`.

`qumab` is the setting of the code that the authors of QuMATL published with its later version.
Their Q-Former is pretrained, 12 layers of 768 numbers; here both models have one that starts at
random, is narrow enough for a CPU, and is trained with the same learning rate. Everything above it
is as published: width 256, unit vectors, dropout of .5 and .3, ReLU, batches of 64 items, the epoch
with the lowest validation loss. Every run is cached in `out/`.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tendency
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.maps import attention_maps
from dissensus.registry import tendencies
from pages import Section, Table
from tendency_simulated import Drawn, Runs, with_interval, words_maps

TRAINING = "epochs=20,lr=0.003,patience=0"
NARROW = f"width=128,heads=4,hidden=256,cross_every=1,{TRAINING}"
# Tokens of their image encoder carry their position; ours of images and sound do not.
SIMULATED = {
    "ours": f"query[layers=1,fits=1,{TRAINING}]",
    "published": f"qumab[layers=2,positions=True,{NARROW}]",
}
REAL = {
    "ours": tendency.METHODS["query, one fit"],
    "published": tendency.METHODS["published setting"],
}
SIMULATIONS: dict[str, dict[str, Any]] = {
    "images": {"kind": "images"},
    "control": {"kind": "images", "profile": "same"},
    "videos": {"kind": "video"},
    "texts": {"kind": "text", "groups": 2},
    "soft": {"profile": "soft"},
    "content": {"profile": "content"},
    "mix": {"profile": "mix"},
    "taste": {"taste": 1.0},
}
N_TRAIN, N_TEST = 600, 400
MOST = 600  # items of a real set
LAYERS = ("mean", "last", "penultimate")


def simulated(settings: dict[str, Any], spec: str, seed: int) -> dict[str, float]:
    """Fit on simulated items, and score predictions and maps on others."""
    drawn = Drawn(seed, n_train=N_TRAIN, n_test=N_TEST, **settings)
    model = tendencies.create(spec).fit(
        drawn.features.take(drawn.train), drawn.annotations, FitOptions(seed=seed)
    )
    test = drawn.features.take(drawn.test)
    log = model.log_proba(test)
    given = np.take_along_axis(log, drawn.labels[:, :, None], axis=2)
    found = {
        "accuracy": float((log.argmax(axis=2) == drawn.labels).mean()),
        "log_loss": float(-np.maximum(given, np.log(1e-12)).mean()),
    }
    texts = isinstance(drawn.whole.inputs, tuple)
    for layers in LAYERS:
        if layers == "mean" or "layers=1" not in spec:
            maps = attention_maps(model, test, layers=layers, all_tokens=texts)
            values = words_maps(drawn, maps) if texts else maps.values
            found[layers] = drawn.truth.pointing(values)
    return found


def simulated_table(runs: Runs, names: list[str]) -> Table:
    """Return both settings on these simulations."""
    rows = []
    for name in names:
        settings = SIMULATIONS[name]
        for label, spec in SIMULATED.items():
            found = runs.over_seeds(
                f"published | {name} | {label}",
                lambda seed, s=settings, m=spec: simulated(s, m, seed),
            )
            if found:
                cells = [with_interval(found, key) for key in ("log_loss", "accuracy", *LAYERS)]
                rows.append([name, label, found["seeds"], *cells])
    heads = ["simulation", "setting", "seeds", "log loss", "accuracy"]
    heads += [f"pointing, {layers}" for layers in ("mean of layers", "last", "last but one")]
    return Table(
        "Simulated annotators",
        heads,
        rows,
        f"{N_TRAIN} training and {N_TEST} test items, six annotators; means of the seeds and "
        "95 % intervals of the means. Ours has one layer, the published setting two. Pointing: "
        "how often the highest position of a map is attended to. The published code takes its maps "
        "from the second last of all layers, which is the last one with cross-attention.",
    )


def real(name: str, spec: str, seed: int, cache: dict[str, tendency.Data]) -> dict[str, float]:
    """Fit on a part of a real set, and score on the rest."""
    if name not in cache:
        cache.clear()
        cache[name] = tendency.loaded(name, MOST)
    found = tendency.measured(cache[name], spec, seed, 0.0)
    shown = ("log_loss", "accuracy", "macro_f1", "weighted_f1", "seconds")
    return {key: found[key] for key in shown}


def real_table(runs: Runs, names: list[str]) -> Table:
    """Return both settings on these real sets."""
    rows = []
    cache: dict[str, tendency.Data] = {}
    for name in names:
        for label, spec in REAL.items():
            found = runs.over_seeds(
                f"published | {name} | {label}",
                lambda seed, n=name, m=spec: real(n, m, seed, cache),
            )
            shown = ("log_loss", "accuracy", "macro_f1", "weighted_f1")
            if found:
                cells = [with_interval(found, key) for key in shown]
                rows.append([name, label, found["seeds"], *cells, found["seconds"]])
    return Table(
        "Real annotators",
        ["set", "setting", "splits", "log loss", "accuracy", "macro F1", "weighted F1", "CPU s"],
        rows,
        f"At most {MOST} items of a set, four fifths of them to learn from. One fit "
        "each, at most 12 epochs with patience 3. Queries attend to each other with up to "
        "64 annotators.",
    )


def main() -> None:
    """Run what is not cached, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="simulations and sets, in a section of their own")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="ignore cached runs")
    parser.add_argument("--tables", action="store_true", help="only write the page")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    runs = Runs(given.seeds, given.again, only_cached=given.tables)
    every = [*SIMULATIONS, *tendency.TEXTS]
    names = given.only.split(",") if given.only else every
    title = "tendency: the published setting" + (f" on {', '.join(names)}" if given.only else "")
    section = Section(title, "tendency")
    for table, known in ((simulated_table, SIMULATIONS), (real_table, tendency.TEXTS)):
        here = [name for name in names if name in known]
        if here:
            section.add(table(runs, here))
    section.write()


if __name__ == "__main__":
    main()
