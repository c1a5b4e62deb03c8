"""Studies of what recovery can be given in addition: tuned copies, distances, features."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from scipy.special import softmax

from dissensus.deep.nn.features import features_of
from dissensus.deep.recovery import base as measures
from dissensus.deep.recovery.base import class_distances
from dissensus.deep.recovery.cross_validation import folds_of, majority
from dissensus.deep.recovery.evaluation import soft_scores
from dissensus.registry import recoverers
from pages import Section, Table
from recovering_ground import PAGE, fitted, loaded, soft_set_of, stored
from soft_sets import LENGTH, SETS, rows_of

FOLDS = 5
TUNED = "auto[tuned=3]"
HALVES = 2  # folds where methods are slow
# Tuning takes long. Its settings were chosen on none of these sets.
MEMBER_HALVES = {
    ("hs_brexit", 0): (0, 1),
    ("hs_brexit", 1): (0, 1),
    ("gwsd", 0): (0, 1),
    ("mp_en", 0): (0,),
    ("mbic", 0): (0,),
}  # (set, seed)
N_EMOTIONS, EMOTION_VOTES = 8, 5
EMOTION_ITEMS, EMOTION_TEST, EMOTION_SEEDS = (200, 800), 500, (1, 2, 3)


def tuned_member() -> None:
    """Tuned copies as members of the default."""
    section, rows = Section("tuned copies as members", PAGE), []
    for (name, seed), halves in MEMBER_HALVES.items():
        rows += compared(name, ("auto", TUNED), halves, seed)
    scores = ["CE", "USQ", "EC", "accuracy", "CPU s", "CE less auto's"]
    heads = ["set", "seed", "items", "method", *scores]
    note = (
        "Items of one half, or of both, predicted from the other half; both seeds have the same "
        "halves. Three copies of MiniLM, the last two layers tuned (5 epochs, batch 16, Adam 1e-4, "
        "of the head 1e-3, with warmup and cosine decay, 64 pieces), each without another fifth of "
        "the items, by which their temperature and their weight are set. Start of the head, rates, "
        "epochs, schedule and the rule of the weight were chosen on 560 items each of "
        "sentiment_polarity, babe_sg2, medrel_treat and md_agreement with one positive item in "
        "ten, and on none of the sets shown. No interval: the copies have the weight 0. In "
        "brackets the 95 % interval of the paired difference, from a bootstrap of items."
    )
    section.add(Table("Tuned copies as members of the default", heads, rows, note))
    section.write()


def ordinal() -> None:
    """A distance between classes, against none."""
    section, rows = Section("distances between classes", PAGE), []
    data = soft_set_of("csc")
    votes = data.annotations.votes()
    q, apart = measures.shares_of(votes), class_distances("linear", votes.shape[1])
    first: dict[str, Any] = {}
    for shown, distance in (("auto", None), ("auto, linear distance", apart)):
        p, seconds = np.zeros(votes.shape), []
        for fold in range(FOLDS):
            found = ordinal_fold(fold, distance)
            p[parts_of(len(p), fold)[1]] = found["proba"]
            seconds.append(float(found["seconds"]))
        each = distance_scores(p, q, apart) | {"Wasserstein": measures.wasserstein(p, q)}
        first = first or each
        rows += distance_rows(shown, each, first, float(np.mean(seconds)))
    rows.sort(key=lambda row: list(first).index(row[0]))
    heads = ["score", "method", "value", "less that of auto", "CPU s"]
    note = (
        f"csc: {len(p)} texts in six ordered classes (not sarcastic to very sarcastic), "
        f"{data.count.mean():.1f} annotators each; one vector per text, {FOLDS} folds, every item "
        "predicted once, seed 0. Distances are scaled to 1 between the first class and the last. "
        "The closest class is that of least expected distance, which `predict` returns where a "
        "distance is given; otherwise the most probable one. The rate of soft labels was chosen "
        "on gwsd and politeness_wikipedia. In brackets the 95 % interval of the paired difference, "
        "from a bootstrap of items."
    )
    section.add(Table("A linear distance on an ordinal scale", heads, rows, note))
    section.write()


def distance_scores(p: Any, q: Any, apart: Any) -> dict[str, Any]:
    """Return how far predictions are from the annotators, item by item."""
    one = np.eye(len(apart))
    return {
        "expected distance": measures.expected_distance(p, q, apart),
        "energy distance": measures.energy_distance(p, q, apart),
        "of the most probable class": measures.expected_distance(one[p.argmax(axis=1)], q, apart),
        "of the closest class": measures.expected_distance(
            one[(p @ apart).argmin(axis=1)], q, apart
        ),
        "CE": measures.cross_entropy(q, p),
    }


def distance_rows(
    shown: str, each: dict[str, Any], first: dict[str, Any], seconds: float
) -> list[list[Any]]:
    """Return a row per score: its mean, and the difference to the first method."""
    return [
        [score, shown, f"{values.mean():.4f}", paired(values - first[score]), seconds]
        for score, values in each.items()
    ]


def emotions() -> None:
    """A distance on a circle of emotions, against none and against a line."""
    section = Section("distances on a circle", PAGE)
    for size in EMOTION_ITEMS:
        rows: list[list[Any]] = []
        first: dict[str, Any] = {}
        for shown, distance in (
            ("auto", None),
            ("auto, linear distance", "linear"),
            ("auto, circle", "circle"),
        ):
            every = [emotions_of(size, seed, distance) for seed in EMOTION_SEEDS]
            p, q = (np.concatenate([one[key] for one in every]) for key in ("proba", "share"))
            each = distance_scores(p, q, class_distances("circle", N_EMOTIONS))
            first = first or each
            seconds = float(np.mean([one["seconds"] for one in every]))
            rows += distance_rows(shown, each, first, seconds)
        rows.sort(key=lambda row: list(first).index(row[0]))
        heads = ["score", "method", "value", "less that of auto", "CPU s"]
        note = (
            f"Simulated: {N_EMOTIONS} classes in the order of a circle; an item has an angle and "
            f"an intensity, of which 16 features are a noisy linear map. {EMOTION_VOTES} "
            "annotators choose a class with a probability that falls with its angle to the "
            f"item's, faster for intense items. {size} items to learn from by their majority "
            f"label, {EMOTION_TEST} to test; {len(EMOTION_SEEDS)} seeds. Distances are steps on "
            "the shorter way around, also in the scores of the row learned with a line, which "
            "takes the last class for the opposite of the first. In brackets the 95 % interval of "
            "the paired difference, from a bootstrap of items."
        )
        section.add(Table(f"Emotions on a circle, {size} items", heads, rows, note))
    section.write()


def emotions_of(size: int, seed: int, distance: str | None) -> dict[str, Any]:
    """Return predictions of the default on simulated emotions, and the annotators' shares."""

    def work() -> dict[str, Any]:
        random = np.random.default_rng([seed, 0xC1C])
        n_items = size + EMOTION_TEST
        angle, intensity = random.uniform(0, 2 * np.pi, n_items), random.uniform(0.2, 1, n_items)
        plane = intensity[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        other = random.standard_normal((n_items, 6))
        features = np.hstack([plane, other]) @ random.standard_normal((8, 16))
        features += 0.5 * random.standard_normal(features.shape)
        center = 2 * np.pi * np.arange(N_EMOTIONS) / N_EMOTIONS  # (class)
        shares = softmax(
            4 * intensity[:, None] * np.cos(angle[:, None] - center), axis=1
        )  # (item, class)
        votes = random.multinomial(EMOTION_VOTES, shares)
        label, train = majority(votes, seed), np.arange(size)
        start = process_time()
        model = recoverers.create("auto").fit(
            features_of(features[train]),
            label[train],
            n_classes=N_EMOTIONS,
            vote_count=EMOTION_VOTES,
            distance=distance,
            seed=seed,
        )
        seconds = process_time() - start
        print(f"emotions {size} {seed} {distance} {seconds:.1f} s", flush=True)
        p = model.predict_proba(features_of(features[size:]))
        return {"proba": p, "share": measures.shares_of(votes[size:]), "seconds": seconds}

    return stored(f"emotions-{size}-{seed}-auto-{distance or 'plain'}", work)


def ordinal_fold(fold: int, distance: Any) -> dict[str, Any]:
    """Return predictions of the default on a fold, with or without a distance."""

    def work() -> dict[str, Any]:
        data = soft_set_of("csc")
        features = features_of(list(data.texts), f"minilm[length={LENGTH}]")
        train, test = parts_of(len(data.texts), fold)
        start = process_time()
        model = recoverers.create("auto").fit(
            features.take(train),
            data.label[train],
            n_classes=data.annotations.n_classes,
            vote_count=data.count[train],
            distance=distance,
        )
        seconds = process_time() - start
        print(f"csc {fold} {'plain' if distance is None else 'linear'} {seconds:.1f} s", flush=True)
        return {"proba": model.predict_proba(features.take(test)), "seconds": seconds}

    return stored(f"csc-fold{fold}-auto-{'plain' if distance is None else 'linear'}", work)


def together() -> None:
    """Texts and features side by side, against either."""
    section, rows = Section("texts with features", PAGE), []
    data = soft_set_of("mbic")
    q = data.share
    loss: dict[str, Any] = {}
    for kind in ("text", "features", "both"):
        p, seconds = np.zeros(q.shape), []
        for fold in range(FOLDS):
            found = together_fold(fold, kind)
            p[parts_of(len(p), fold)[1]] = found["proba"]
            seconds.append(float(found["seconds"]))
        loss[kind] = measures.cross_entropy(q, p)
        scores = soft_scores(p, data.annotations.votes())
        cells = [f"{scores[name]:.4f}" for name in ("cross_entropy", "unbiased_squared")]
        rows.append([kind, *cells, f"{scores['accuracy']:.4f}", np.mean(seconds)])
    best = min(("text", "features"), key=lambda kind: float(loss[kind].mean()))
    for row in rows:
        row.append(paired(loss[row[0]] - loss[best]))
    heads = ["inputs", "CE", "USQ", "accuracy", "CPU s", f"CE less that of {best}"]
    note = (
        f"mbic: {len(q)} sentences of news in two classes; features are topic, outlet and leaning "
        f"of the outlet, one column per value. auto, one vector per text, {FOLDS} folds, every "
        "item predicted once, seed 0. In brackets the 95 % interval of the paired difference, "
        "from a bootstrap of items."
    )
    section.add(Table("Texts and features, alone and together", heads, rows, note))
    section.write()


def together_fold(fold: int, kind: str) -> dict[str, Any]:
    """Return predictions of the default on a fold, from texts, features or both."""

    def work() -> dict[str, Any]:
        data = soft_set_of("mbic")
        inputs: dict[str, Any] = {"text": list(data.texts), "features": source_features("mbic")}
        given = inputs if kind == "both" else inputs[kind]
        encoder = "identity" if kind == "features" else f"minilm[length={LENGTH}]"
        features = features_of(given, encoder)
        train, test = parts_of(len(data.texts), fold)
        start = process_time()
        model = recoverers.create("auto").fit(
            features.take(train),
            data.label[train],
            n_classes=data.annotations.n_classes,
            vote_count=data.count[train],
        )
        seconds = process_time() - start
        print(f"mbic {fold} {kind} {seconds:.1f} s", flush=True)
        return {"proba": model.predict_proba(features.take(test)), "seconds": seconds}

    return stored(f"mbic-fold{fold}-auto-{kind}", work)


def source_features(name: str) -> Any:
    """Return topic, outlet and leaning, one column per value: (item, value)."""
    rows = {row["task"]: row for row in rows_of(SETS[name][0] / "tasks.csv.gz")}
    items = soft_set_of(name).annotations.items.tolist()
    columns = []
    for role in ("topic", "outlet", "outlet_leaning"):
        values = np.array([rows[item][role] for item in items])
        columns.append(values[:, None] == np.unique(values))
    return np.hstack(columns).astype(np.float32)


def half_of(name: str, fold: int, spec: str, seed: int) -> dict[str, Any]:
    """Return the predictions of a method on a half of a set."""

    def work() -> dict[str, Any]:
        data, features = loaded(name)
        train, test = parts_of(len(data.texts), fold, HALVES)
        arrays = fitted(features, data.annotations, data.label, train, test, spec, seed)
        print(f"{name:14s} {fold} {spec:44s} {arrays['seconds']:.1f} s", flush=True)
        return arrays

    return stored(f"{name}-half{fold}-{spec}" + (f"-{seed}" if seed else ""), work)


def parts_of(n_items: int, fold: int, folds: int = FOLDS) -> tuple[Any, Any]:
    """Return the items to learn from and those of a fold."""
    test = folds_of(n_items, folds, 0, 0) == fold
    return np.flatnonzero(~test), np.flatnonzero(test)


def compared(
    name: str, specs: tuple[str, ...], halves: tuple[int, ...], seed: int
) -> list[list[Any]]:
    """Return a row per method: scores of all items, and the difference to the first."""
    data = soft_set_of(name)
    test = np.concatenate([parts_of(len(data.texts), f, HALVES)[1] for f in halves])
    votes = data.annotations.votes()[test]
    q, rows, losses = measures.shares_of(votes), [], []
    for spec in specs:
        every = [half_of(name, fold, spec, seed) for fold in halves]
        p = np.concatenate([one["proba"] for one in every])
        scores = soft_scores(p, votes)
        names = ("cross_entropy", "unbiased_squared", "entropy_pearson", "accuracy")
        cells = [f"{scores[one]:.4f}" for one in names]
        seconds = float(np.mean([one["seconds"] for one in every]))
        losses.append(measures.cross_entropy(q, p))
        less = paired(losses[-1] - losses[0])
        rows.append([name, seed, len(test), spec, *cells, seconds, less])
    return rows


def paired(difference: Any, draws: int = 4000) -> str:
    """Return the mean of paired differences with its 95 % bootstrap interval."""
    if not difference.any():
        return "–"
    size, random = len(difference), np.random.default_rng(0)
    means = random.multinomial(size, np.full(size, 1 / size), draws) @ difference / size
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{difference.mean():.4f} ({low:.4f} to {high:.4f})"
