"""Repeated cross-validation of recovery methods.

Items are split into random folds, reshuffled in every repeat; a method sees one label per item of
the other folds, and its distributions are scored against all annotations of the fold. So every item
is predicted once per repeat. Scores are means over folds and repeats; their intervals treat folds
as independent and are too narrow, since folds share items.

Every fold is saved to the folder when it is done, and a finished fold is not computed again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...base.files import atomic_file
from ...base.storage import damage, load_arrays
from ...base.tables import columns_of
from ...errors import DataError, OptionError
from ...method import Progress
from ...metrics import Score
from ...pages.sections import Section
from ...pages.sections import Table as SmallTable
from ...registry import recoverers
from ...result import Result, Table
from ..nn.features import Features, features_of
from .base import class_distances, resample_votes, shares_of
from .evaluation import ceiling_scores, plain_number, soft_scores

FLOOR, CEILING = "marginal", "people asked again"
# Heads of a table, and the scores below them.
_SHOWN = {
    "Manh.\ndist.": "manhattan",
    "JSD\nbits": "jensen_shannon",
    "sq.\nunb.": "unbiased_squared",
    "cross\nentr.": "cross_entropy",
    "entr.\ncorr.": "entropy_pearson",
    "accu-\nracy": "accuracy",
    "macro\nF1": "macro_f1",
}


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Result):
    """Scores of methods over folds and repeats.

    Attributes
    ----------
    scores
        Method → score → its values: (repeat, fold). The floor and people asked again are among
        the methods.
    seconds
        Method → processor seconds of one fold.
    proba
        Method → (repeat, item, class).
    """

    scores: dict[str, dict[str, Floats]]
    seconds: dict[str, float]
    proba: dict[str, Floats]
    n_items: int
    folds: int
    repeats: int

    def mean(self, method: str, score: str) -> Score:
        """Return the mean over folds and repeats with its 95 % interval."""
        values = self.scores[method][score].reshape(-1)
        values = values[~np.isnan(values)]
        if not len(values):
            return Score(np.nan, np.nan, np.nan)
        mean = float(values.mean())
        if len(values) < 2:
            return Score(mean, np.nan, np.nan)
        half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
        return Score(mean, float(mean - half), float(mean + half))

    @property
    def tables(self) -> Mapping[str, Table]:
        """Mean scores of every method."""
        rows = [
            {"method": method} | {name: self.mean(method, name).value for name in by_name}
            for method, by_name in self.scores.items()
        ]
        return {"methods": columns_of(rows)}

    def sections(self) -> tuple[Section, ...]:
        """Return a table of the main scores."""
        rows = [
            (method, *(f"{self.mean(method, score).value:.3f}" for score in _SHOWN.values()))
            for method in self.scores
        ]
        title = f"{self.n_items} items, {self.folds} folds, {self.repeats} repeats"
        table = SmallTable(title, ("method", *_SHOWN), rows, n_texts=1 + len(_SHOWN))
        return (Section("methods", title, panels=[[table]]),)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        scores = {
            method: {
                name: {key: plain_number(v) for key, v in self.mean(method, name)._asdict().items()}
                for name in by_name
            }
            for method, by_name in self.scores.items()
        }
        sizes = {"n_items": self.n_items, "folds": self.folds, "repeats": self.repeats}
        return {"scores": scores, "seconds": self.seconds, **sizes}


def cross_validate_inputs(
    inputs: Any,
    annotations: Annotations,
    specs: Sequence[str],
    *,
    encoder: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> CrossValidation:
    """Cross-validate methods on inputs, which are encoded once with all parts that methods need.

    Further arguments are those of `cross_validate`.
    """
    methods = [recoverers.create(spec) for spec in specs]
    used = {part for method in methods for part in (*method.needs, *method.uses)}
    parts = {name: name in used for name in ("vectors", "tokens", "raw")}
    features = features_of(inputs, encoder, seed=seed, progress=progress, **parts)
    return cross_validate(features, annotations, specs, seed=seed, progress=progress, **settings)


def cross_validate(
    features: Features,
    annotations: Annotations,
    specs: Sequence[str],
    *,
    label: Integers | None = None,
    folds: int = 5,
    repeats: int = 5,
    ordered: bool = False,
    distance: str | ArrayLike | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> CrossValidation:
    """Cross-validate methods that see one label per item.

    Parameters
    ----------
    features
        Of the inputs, with all parts that the methods need.
    annotations
        Items in the order of the features; oracles see them, other methods the label.
    specs
        Methods as the registry writes them.
    label
        The label to learn from; by default the majority, ties drawn.
    folds, repeats
        Number of folds, and of reshuffled repeats.
    ordered
        Whether classes are ordered; their distance is then linear, by default.
    distance
        Distances between classes, to learn with and in scores: `linear`, `circle` or a matrix.
    seed
        Random seed of folds, ties and methods.
    folder
        Where every fold is saved.
    progress
        Called with folds done, folds in total and a message.
    """
    if not 2 <= folds <= annotations.n_items:
        raise OptionError(f"{folds} folds, but there are {annotations.n_items} items")
    if not annotations.labels_per_item.all():
        raise DataError("some items have no annotations; leave them out")
    votes = annotations.votes()
    if ordered and distance is None:
        distance = "linear"
    if distance is not None:
        distance = class_distances(distance, annotations.n_classes)
    label = majority(votes, seed) if label is None else np.asarray(label)
    names = [*specs, *(name for name in (FLOOR, CEILING) if name not in specs)]
    total = len(names) * folds * repeats
    if folder is not None:
        _check_same_data(Path(folder), votes, label, folds=folds, seed=seed, distance=distance)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    proba = {name: np.zeros((repeats, *votes.shape)) for name in names}
    seconds = dict.fromkeys(names, 0.0)
    scored: dict[str, Any] = {"ordered": ordered, "distance": distance}
    for n_done, (name, repeat, fold) in enumerate(
        product(names, range(repeats), range(folds)), start=1
    ):
        test = folds_of(annotations.n_items, folds, seed, repeat) == fold
        train, test = np.flatnonzero(~test), np.flatnonzero(test)
        path = None
        if folder is not None:
            safe = re.sub(r"[^A-Za-z0-9_.=,-]+", "-", name)
            path = Path(folder) / safe / f"{repeat}-{fold}.npz"
        if path is not None and path.exists():
            p, duration = _read_fold(path, votes.shape[1])
        else:
            start = process_time()
            if name == CEILING:
                random = np.random.default_rng([seed + repeat, fold])
                p = shares_of(resample_votes(votes[test], random))
            else:
                split = {"label": label, "train": train, "test": test}
                p = _predict(
                    name, features, annotations, **split, seed=seed + repeat, distance=distance
                )
            duration = process_time() - start
            if path is not None:
                _write_fold(path, p, duration)
        proba[name][repeat, test] = p
        seconds[name] += duration / (folds * repeats)
        if name == CEILING:
            random = np.random.default_rng([seed, repeat, fold])
            rows[name].append(ceiling_scores(votes[test], random=random, **scored))
        else:
            rows[name].append(soft_scores(p, votes[test], **scored))
        if progress is not None:
            progress(n_done, total, name)
    scores = {
        name: {key: np.array([row[key] for row in by]).reshape(repeats, folds) for key in by[0]}
        for name, by in rows.items()
    }
    return CrossValidation(
        scores=scores,
        seconds=seconds,
        proba=proba,
        n_items=annotations.n_items,
        folds=folds,
        repeats=repeats,
    )


def majority(votes: Floats, seed: int) -> Integers:
    """Return the class with most votes, ties drawn: (item)."""
    return (votes + 0.5 * np.random.default_rng([seed, 0x71E]).random(votes.shape)).argmax(axis=1)


def folds_of(n_items: int, folds: int, seed: int, repeat: int) -> Integers:
    """Return the fold of every item; sizes differ by one item at most."""
    order = np.random.default_rng([seed, repeat, 0xF01D]).permutation(n_items)
    fold = np.empty(n_items, dtype=np.int64)
    fold[order] = np.arange(n_items) % folds
    return fold


def _read_fold(path: Path, n_classes: int) -> tuple[Floats, float]:
    """Return the distributions of a finished fold, (item, class), and how long they took."""
    with damage(f"{path}: not a fold of a cross-validation", "; remove it"):
        arrays = load_arrays(path)
        return arrays["p"].reshape(-1, n_classes), float(arrays["seconds"])


def _write_fold(path: Path, p: Floats, duration: float) -> None:
    with atomic_file(path) as draft, draft.open("wb") as file:
        np.savez(file, p=p, seconds=np.array(duration))


def _predict(
    name: str,
    features: Features,
    annotations: Annotations,
    *,
    label: Integers,
    train: Integers,
    test: Integers,
    **settings: Any,
) -> Floats:
    method = recoverers.create(name)
    features = features.only((*method.needs, *method.uses))
    recovery = method.fit(
        features.take(train),
        label[train],
        n_classes=annotations.n_classes,
        vote_count=annotations.labels_per_item[train],
        annotations=annotations.take(train),
        **settings,
    )
    return recovery.predict_proba(features.take(test))


def _check_same_data(
    folder: Path, votes: Floats, label: Array, *, folds: int, seed: int, distance: Any
) -> None:
    """Refuse a folder with folds of other data."""
    digest = blake2b(digest_size=12)
    settings = [] if distance is None else [distance]
    for array in (votes, np.asarray(label, dtype=np.int64), np.array([folds, seed]), *settings):
        digest.update(np.ascontiguousarray(array).tobytes())
    expected, path = json.dumps({"data": digest.hexdigest()}), folder / "folds.json"
    if not path.exists():
        with atomic_file(path) as draft:
            draft.write_text(expected, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != expected:
        raise DataError(
            f"{folder}: holds folds of other data, labels, distances or seed; name a new one"
        )
