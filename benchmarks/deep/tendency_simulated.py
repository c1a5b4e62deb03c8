"""Simulated annotators with known attention: `python benchmarks/run.py deep tendency_simulated`.

The distribution of every label and the attention of every annotator are known, so there is an upper
bound (the Bayes rule) and a true map. A seed determines items, annotators, labels and weights.
Settings were chosen on seeds 0, 100 and 101; the reported ones start at 1. Every run is cached in
`out/`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from attentive_crowds import TendencySimulation, simulate_tendency
from crowds import OUT
from dissensus import Annotations
from dissensus.deep.nn.encoders import encoder_for
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.nn.inputs import Texts
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.dic import dic, split_half
from dissensus.deep.tendency.maps import Maps, attention_maps, deletion, word_maps
from dissensus.deep.tendency.qumatl import QueryTendency
from dissensus.registry import tendencies
from pages import Section, Table

QUERY = "query[layers=1,lr=0.003,epochs=25,patience=0,fits=1"
OURS = QUERY.replace("fits=1", "fits=3") + "]"
ONE = QUERY + "]"
TWO = QUERY.replace("fits=1", "fits=2") + "]"
SMALL = QUERY + ",width=32,hidden=64,fc=32,head=bias,heads=4]"
TRAIN, TEST = 1200, 1500
HEARD = (
    "query[layers=1,width=64,hidden=128,fc=64,frame_queries=2,video_layers=1,fits=1,lr=0.005,"
    "epochs=25,patience=0]"
)
SOUNDS = {
    "sound": "600 training items; frames are parts of a log-mel spectrogram of six tones, whose "
    "loudness is the content.",
    "video with sound": "600 training items; six frames of pictures, then six of sound: the first "
    "group watches, the last listens, the second does both.",
}
_STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # 95 % of means of so many
_KEPT = OUT / "tendency_simulated_runs.json"


class Drawn:
    """A simulation, split into training and test items."""

    def __init__(self, seed: int, **settings: Any) -> None:
        n_test, n_train = settings.pop("n_test", TEST), settings.pop("n_train", TRAIN)
        drawn = simulate_tendency(seed=seed, n_items=n_train + n_test, **settings)
        self.whole = drawn
        self.features = _features(drawn, settings.get("kind", "patches"))
        self.train, self.test = np.arange(n_train), np.arange(n_train, n_train + n_test)
        self.annotations = _first(drawn.annotations, n_train)
        self.labels, self.probabilities = drawn.labels[self.test], drawn.probabilities[self.test]
        self.truth: TendencySimulation = replace(drawn, attention=drawn.attention[self.test])

    def concatenated(self) -> Features:
        """Return features whose vectors are all tokens, concatenated."""
        assert self.features.tokens is not None
        values, _ = self.features.tokens.load(np.arange(len(self.features)))
        return Features(values.reshape(len(values), -1))


def _features(drawn: TendencySimulation, kind: str) -> Features:
    if kind == "text":
        return features_of(Texts(drawn.inputs), "minilm", tokens=True)
    if kind == "patches":
        return features_of(drawn.inputs)
    size = drawn.inputs.shape[-1]
    return features_of(drawn.inputs, f"patches[size={size},side=8]", tokens=True)


def _first(annotations: Annotations, n_items: int) -> Annotations:
    kept = annotations.item < n_items
    return Annotations.from_codes(
        annotations.item[kept],
        annotations.annotator[kept],
        annotations.label[kept],
        items=n_items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )


def scored(drawn: Drawn, log: Any) -> dict[str, float]:
    """Return scores on test items, and the floor of DIC."""
    n_items, n_annotators = drawn.labels.shape
    annotations = Annotations.from_matrix(drawn.labels, classes=range(drawn.probabilities.shape[2]))
    flat = log.reshape(n_items * n_annotators, -1)
    law = np.log(np.maximum(drawn.probabilities, 1e-12)).reshape(flat.shape)
    probability = np.take_along_axis(log, drawn.labels[:, :, None], axis=2)
    return {
        "accuracy": float((log.argmax(axis=2) == drawn.labels).mean()),
        "bayes": float((drawn.probabilities.argmax(axis=2) == drawn.labels).mean()),
        "log_loss": float(-np.maximum(probability, np.log(1e-12)).mean()),
        "dic": dic(annotations, annotations.with_codes(label=flat.argmax(axis=1))).dic,
        "drawn": float(
            np.mean(
                [dic(annotations, annotations.with_codes(label=each)).dic for each in _draws(flat)]
            )
        ),
        "floor": split_half(annotations)[0],
        "redrawn": redrawn(annotations, law, repeats=10),
    }


def redrawn(annotations: Annotations, law: Any, repeats: int = 20) -> float:
    """Return the mean DIC between two samples of all labels from their log-probabilities."""
    samples = [annotations.with_codes(label=each) for each in _draws(law, 2 * repeats)]
    pairs = zip(samples[::2], samples[1::2], strict=True)
    return float(np.mean([dic(one, other).dic for one, other in pairs]))


def thinned(annotations: Annotations, share: float, seed: int = 0) -> Annotations:
    """Return annotations without a share of them, which is drawn at random."""
    order = np.random.default_rng([seed, 0xDE1]).permutation(len(annotations))
    kept = np.ones(len(annotations), dtype=bool)
    kept[order[: round(share * len(annotations))]] = False
    return annotations.keep(kept)


def _draws(log: Any, repeats: int = 10) -> Any:
    """Yield labels sampled from the predicted probabilities: (annotation)."""
    cumulated = np.exp(log).cumsum(axis=1)[:, :-1]
    random = np.random.default_rng(0xD1C)
    for _ in range(repeats):
        yield (random.random((len(log), 1)) > cumulated).sum(axis=1)


def measured(
    drawn: Drawn, spec: str, seed: int, features: Features | None = None
) -> dict[str, float]:
    """Fit, and score on the test items."""
    features = drawn.features if features is None else features
    if spec == "the Bayes rule":
        return scored(drawn, np.log(np.maximum(drawn.probabilities, 1e-12)))
    began = process_time()
    model = tendencies.create(spec).fit(
        features.take(drawn.train), drawn.annotations, FitOptions(seed=seed)
    )
    taken = process_time() - began
    test = features.take(drawn.test)
    found = scored(drawn, model.log_proba(test)) | {"seconds": taken}
    if isinstance(model, QueryTendency) and model.nets[0].has_queries:
        found |= attention_scores(drawn, model, test)
    return found


def attention_scores(drawn: Drawn, model: QueryTendency, test: Features) -> dict[str, float]:
    """Return how well maps recover the attention of annotators."""
    texts = isinstance(drawn.whole.inputs, tuple)
    maps = attention_maps(model, test, all_tokens=texts)
    values = words_maps(drawn, maps) if texts else maps.values
    few = np.arange(min(len(test), 60))
    codes = np.arange(model.n_annotators)
    order = attention_maps(model, test.take(few), all_tokens=True).values
    random = np.random.default_rng(0).random(order.shape)
    fits = [
        attention_maps(model, test, fits=[position]).values for position in range(len(model.nets))
    ]
    across = [_apart(fits[0], each) for each in fits[1:]]
    pairs = [(one, two) for one in codes for two in codes if one < two]
    return {
        "pointing": drawn.truth.pointing(values),
        "cosine": drawn.truth.cosine(values),
        "deleted": deletion(model, test.take(few), codes, order)[0],
        "deleted at random": deletion(model, test.take(few), codes, random)[0],
        "annotators apart": float(np.mean([_apart(values[:, a], values[:, b]) for a, b in pairs])),
        "fits apart": float(np.mean(across)) if across else float("nan"),
    }


def words_maps(drawn: Drawn, maps: Maps) -> Any:
    """Return maps over the words of the test items: (item, annotator, word)."""
    encoder: Any = encoder_for("minilm")
    texts = [drawn.whole.inputs[item] for item in drawn.test]
    found = word_maps(maps, texts, encoder.tokenizer, encoder.length)
    out = np.zeros((len(texts), maps.values.shape[1], drawn.truth.attention.shape[2]))
    for item, each in enumerate(found):
        out[item, :, : each.shape[1]] = each
    return out


def _apart(one: Any, two: Any) -> float:
    return float(np.abs(one - two).sum(axis=-1).mean() / 2)


class Runs:
    """Cached runs, by name and seed."""

    def __init__(self, seeds: int, again: bool, *, only_cached: bool = False) -> None:
        self.seeds, self.only_cached = seeds, only_cached
        self.kept = {} if again else self._stored()

    def _stored(self) -> dict[str, dict[str, float]]:
        return json.loads(_KEPT.read_text(encoding="utf-8")) if _KEPT.exists() else {}

    def _keep(self, key: str, found: dict[str, float]) -> None:
        """Store a run; other processes may add theirs."""
        OUT.mkdir(exist_ok=True)
        self.kept[key] = found
        _KEPT.write_text(json.dumps(self._stored() | self.kept, indent=1), encoding="utf-8")

    def over_seeds(self, name: str, work: Callable[[int], dict[str, float]]) -> dict[str, Any]:
        """Return means and half widths of 95 % intervals, `name` and `± name`, and `seeds`.

        If only cached runs are requested and there are none, the result is empty.
        """
        runs = []
        for seed in range(1, self.seeds + 1):
            key = f"{name} | {seed}"
            if key not in self.kept and self.only_cached:
                continue
            if key not in self.kept:
                self._keep(key, work(seed))
                print(key, {k: round(v, 3) for k, v in self.kept[key].items()}, flush=True)
            runs.append(self.kept[key])
        summary: dict[str, Any] = {"seeds": len(runs)} if runs else {}
        for column in runs[0] if runs else ():
            values = [run[column] for run in runs]
            summary[column] = float(np.mean(values))
            summary[f"± {column}"] = half_width(values)
        return summary


def half_width(values: Any) -> float:
    """Return half the width of the 95 % interval of a mean; NaN of one value."""
    spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return float(_STUDENT.get(len(values), 2) * spread / len(values) ** 0.5)


def with_interval(row: dict[str, Any], column: str) -> str:
    """Return a mean and its interval in one cell."""
    if column not in row or np.isnan(row[column]):
        return "–"
    return _cell(row[column], row[f"± {column}"])


def mean_interval(values: Any) -> str:
    """Return the mean of values and its interval in one cell."""
    return _cell(float(np.mean(values)), half_width(values))


def _cell(mean: float, spread: float) -> str:
    return f"{mean:.3f}" + ("" if np.isnan(spread) else f" ± {spread:.3f}")


METHODS = [
    ("the Bayes rule", "the Bayes rule", False),
    ("query, 3 fits", OURS, False),
    ("query", ONE, False),
    ("query, one head (U-cls)", ONE.replace("]", ",head=shared]"), False),
    ("query, no self-attention", ONE.replace("]", ",self_attention=False]"), False),
    ("query, narrow", SMALL, False),
    ("base: no queries", ONE.replace("]", ",qformer=False]"), False),
    ("consensus, patches concatenated", "consensus", True),
    ("linear, patches concatenated", "linear", True),
    ("padl", "padl", False),
    ("padl, patches concatenated", "padl", True),
    ("madl, patches concatenated", "madl", True),
    ("own majority", "own-majority", False),
]
SHOWN = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "dic": "DIC",
    "drawn": "DIC of samples",
    "pointing": "pointing",
    "cosine": "cosine",
    "deleted": "deletion",
    "deleted at random": "at random",
}


def table_of(
    runs: Runs, title: str, rows: list[tuple[str, str, bool]], note: str, **settings: Any
) -> Table:
    """Return the scores of some methods on one simulation."""
    kept: dict[int, Drawn] = {}

    def drawn(seed: int) -> Drawn:
        if seed not in kept:
            kept.clear()
            kept[seed] = Drawn(seed, **settings)
        return kept[seed]

    def run(seed: int, spec: str, concatenate: bool) -> dict[str, float]:
        one = drawn(seed)
        return measured(one, spec, seed, one.concatenated() if concatenate else None)

    cells, found = [], {}
    for name, spec, concatenate in rows:
        found[name] = runs.over_seeds(
            f"{title} | {name}", lambda seed, s=spec, b=concatenate: run(seed, s, b)
        )
        seconds = found[name].get("seconds")
        cells.append([name, *(with_interval(found[name], column) for column in SHOWN), seconds])
    ceiling = found["the Bayes rule"]
    floor = (
        f"The noise of DIC: {ceiling['floor']:.3f} between halves of the labels, "
        f"{ceiling['redrawn']:.3f} between two samples of all labels from their distribution. DIC: "
        "of the most probable labels, which agree more than people do; of samples: of labels "
        "sampled from the predicted probabilities, which are as noisy as people."
    )
    return Table(title, ["method", *SHOWN.values(), "CPU s"], cells, f"{note} {floor}")


def control(runs: Runs) -> Table:
    """Return scores where all annotators attend to the same patch."""

    def run(seed: int) -> dict[str, float]:
        drawn = Drawn(seed, kind="images", profile="same")
        model = tendencies.create(TWO).fit(
            drawn.features.take(drawn.train), drawn.annotations, FitOptions(seed=seed)
        )
        test = drawn.features.take(drawn.test)
        best = model.log_proba(test).argmax(axis=2)
        annotations = [drawn.labels[:, a] != drawn.labels[:, b] for a in range(6) for b in range(a)]
        differ = [best[:, a] != best[:, b] for a in range(6) for b in range(a)]
        return (
            scored(drawn, model.log_proba(test))
            | attention_scores(drawn, model, test)
            | {
                "labels differ": float(np.mean(annotations)),
                "predicted differ": float(np.mean(differ)),
            }
        )

    row = runs.over_seeds("control", run)
    wanted = [
        ("accuracy", "accuracy"),
        ("bayes", "accuracy of the Bayes rule"),
        ("labels differ", "labels of two annotators differ"),
        ("predicted differ", "predicted labels of two annotators differ (Bayes rule: never)"),
        ("annotators apart", "distance between maps of two annotators"),
        ("fits apart", "distance between maps of two fits"),
        ("pointing", "pointing"),
    ]
    return Table(
        "Control: six annotators who attend to the same patch",
        ["", "mean"],
        [[words, with_interval(row, column)] for column, words in wanted],
        "Maps may differ between annotators no more than between fits of the same annotator.",
    )


def deleted(runs: Runs) -> Table:
    """Return the accuracy when training labels are deleted."""
    shares = (0.0, 0.2, 0.3, 0.4)
    rows = [
        ("query", ONE, False),
        ("padl", "padl", False),
        ("padl, patches concatenated", "padl", True),
    ]
    kept: dict[int, Drawn] = {}
    cells = []
    for name, spec, concatenate in rows:
        found = []
        for share in shares:

            def run(seed: int, s: str = spec, b: bool = concatenate, gone: float = share) -> Any:
                if seed not in kept:
                    kept.clear()
                    kept[seed] = Drawn(seed, kind="images")
                drawn = kept[seed]
                whole, drawn.annotations = drawn.annotations, thinned(drawn.annotations, gone, seed)
                found = measured(drawn, s, seed, drawn.concatenated() if b else None)
                drawn.annotations = whole
                return found

            found.append(runs.over_seeds(f"deletion {share} | {name}", run))
        lost = 1 - found[-1]["accuracy"] / found[0]["accuracy"]
        cells.append([name, *(with_interval(each, "accuracy") for each in found), f"{lost:.1%}"])
    return Table(
        "Accuracy when training labels are deleted at random",
        ["method", *(f"{share:.0%} deleted" for share in shares), "lost at 40 %"],
        cells,
        "Images, groups; test labels are untouched.",
    )


def newcomers(runs: Runs) -> Table:
    """Return the accuracy for a new annotator with a few labels."""
    counts = (5, 10, 20, 50, 100)

    def run(seed: int) -> dict[str, float]:
        drawn = Drawn(seed, kind="images")
        known = drawn.annotations.keep(drawn.annotations.annotator < 5)
        known = Annotations.from_codes(
            known.item, known.annotator, known.label, items=TRAIN, annotators=5, classes=3
        )
        model = tendencies.create(ONE).fit(
            drawn.features.take(drawn.train), known, FitOptions(seed=seed)
        )
        test, out = drawn.features.take(drawn.test), {}
        order = np.random.default_rng(seed).permutation(TRAIN)
        for count in counts:
            few = np.sort(order[:count])
            label = drawn.whole.labels[few, 5]
            grown = model.with_annotator(drawn.features.take(few), label, FitOptions(seed=seed))
            best = grown.log_proba(test, np.array([5]))[:, 0].argmax(axis=1)
            out[str(count)] = float((best == drawn.labels[:, 5]).mean())
        whole = tendencies.create(ONE).fit(
            drawn.features.take(drawn.train), drawn.annotations, FitOptions(seed=seed)
        )
        best = whole.log_proba(test, np.array([5]))[:, 0].argmax(axis=1)
        out["all"] = float((best == drawn.labels[:, 5]).mean())
        out["bayes"] = float(
            (drawn.probabilities[:, 5].argmax(axis=1) == drawn.labels[:, 5]).mean()
        )
        return out

    row = runs.over_seeds("newcomers", run)
    columns = [*map(str, counts), "all", "bayes"]
    return Table(
        "A new annotator with a few labels",
        ["labels", *columns[:-2], "1200, fitted with the others", "the Bayes rule"],
        [["accuracy", *(with_interval(row, column) for column in columns)]],
        "Images, groups. Only the query and the head of the new annotator are trained.",
    )


def efficiency() -> Table:
    """Return parameters and time by the number of annotators, on top of an image network."""
    import torch

    encoder = encoder_for("resnet34[size=224]").freeze()
    n_items, n_classes = 16, 6
    images = torch.rand(n_items, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        encoder.tokens(images[:2])
        began = process_time()
        tokens = torch.cat(
            [encoder.tokens(images[start : start + 4]).values for start in range(0, 16, 4)]
        )
        below = (process_time() - began) / n_items
    features = Features.from_tokens(tokens.numpy())
    size = sum(value.numel() for value in encoder.parameters())
    specs = {
        "query, narrow": SMALL.replace("]", ",positions=False]").replace("epochs=25", "epochs=1"),
        "query": ONE.replace("]", ",positions=False]").replace("epochs=25", "epochs=1"),
        "d-lema": "d-lema[epochs=1]",
        "padl": "padl[epochs=1]",
        "madl": "crowd[learner=madl,epochs=1]",
    }
    rows = []
    rng = np.random.default_rng(0)
    for n_annotators in (10, 100, 1000):
        annotations = Annotations.from_codes(
            np.repeat(np.arange(n_items), 10),
            rng.integers(n_annotators, size=10 * n_items),
            rng.integers(n_classes, size=10 * n_items),
            items=n_items,
            annotators=n_annotators,
            classes=n_classes,
        )
        for name, spec in specs.items():
            model = tendencies.create(spec).fit(features, annotations)
            count = sum(value.size for value in model.state().arrays.values())
            times = []
            for _ in range(5):
                began = process_time()
                model.log_proba(features)
                times.append((process_time() - began) / n_items)
            above = min(times)
            rows.append(
                [
                    n_annotators,
                    name,
                    (size + count) / 1e6,
                    count / 1e6,
                    1e3 * (below + above),
                    1e3 * above,
                ]
            )
            print(rows[-1], flush=True)
    return Table(
        "Parameters and time per item, all annotators predicted",
        [
            "annotators",
            "method",
            "parameters, millions",
            "of them above the image network",
            "ms per item",
            "of them above the image network",
        ],
        rows,
        "Items are images of 224 pixels through a network of 34 layers (7 × 7 tokens of 512), six "
        "classes. Methods other than query use the mean of the tokens.",
    )


def main() -> None:
    """Run what is not cached, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="parts, with commas between; default: all")
    parser.add_argument("--again", action="store_true", help="ignore cached runs")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    runs = Runs(given.seeds, given.again)
    names = ("the Bayes rule", "query", "base: no queries")
    few = [row for row in METHODS if row[0] in names]
    thrice = [row for row in METHODS if row[0] in (*names, "query, 3 fits")]
    short = [
        (name, spec.replace("epochs=25", "epochs=12"), concatenate)
        for name, spec, concatenate in thrice
    ]
    seeds = f"Means of {given.seeds} seeds and 95 % intervals of the means."
    groups = "Six annotators in three groups, each of which attends to a region of its own."
    parts: dict[str, tuple[str, Callable[[], Table]]] = {
        "images": (
            "tendency simulated: images",
            lambda: table_of(
                runs, "Images of nine patches", METHODS, f"{groups} {seeds}", kind="images"
            ),
        ),
        "control": ("tendency simulated: control", lambda: control(runs)),
        "video": (
            "tendency simulated: videos",
            lambda: table_of(
                runs, "Videos of nine frames", short, f"{groups} {seeds}", kind="video", n_test=500
            ),
        ),
        **{
            kind: (
                f"tendency simulated: {kind}",
                lambda k=kind, p=positions: table_of(
                    runs,
                    f"{k.capitalize()} of {p} frames",
                    [METHODS[0], ("query, narrow", HEARD, False)],
                    f"{groups} {SOUNDS[k]} {seeds}",
                    kind=k,
                    positions=p,
                    n_train=600,
                    n_test=300,
                ),
            )
            for kind, positions in (("sound", 6), ("video with sound", 12))
        },
        "text": (
            "tendency simulated: texts",
            lambda: table_of(
                runs,
                "Texts of two spans",
                short,
                "Six annotators read one of two spans of words, their own with probability .95. "
                + seeds,
                kind="text",
                groups=2,
                n_test=500,
            ),
        ),
        **{
            profile: (
                f"tendency simulated: {profile}",
                lambda p=profile: table_of(
                    runs, f"Patches, {p}", few, seeds, profile=p, sharpness=4.0
                ),
            )
            for profile in ("soft", "content", "mix")
        },
        "taste": (
            "tendency simulated: taste",
            lambda: table_of(runs, "Patches, groups, and individual tastes", few, seeds, taste=1.0),
        ),
        "deletion": ("tendency simulated: deletion", lambda: deleted(runs)),
        "newcomers": ("tendency simulated: newcomers", lambda: newcomers(runs)),
        "efficiency": ("tendency simulated: efficiency", efficiency),
    }
    for name, (title, work) in parts.items():
        if given.only and name not in given.only.split(","):
            continue
        section = Section(title, "tendency")
        section.add(work())
        section.write()


if __name__ == "__main__":
    main()
