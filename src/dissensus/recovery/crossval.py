"""How well methods recover what they were not shown: repeated cross-validation.

Items are dealt into folds, anew in every repeat; a method sees one label per item of the other
folds, and its distributions are scored against what everybody said about the items of this fold.
So every item is predicted once per repeat. Scores are means over folds, then over repeats; their
intervals are of the mean over all folds and too narrow, since folds share items.

Every fold is written to the folder as it comes, and what is there is not computed again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import t as student

from .._files import atomic_file
from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..metrics import Score
from ..registry import recoverers
from ._base import Views
from .evaluating import people_again, soft_scores
from .measures import asked_again, shares_of

__all__ = ["CrossValidation", "cross_validate", "folds_of", "majority"]

FLOOR, CEILING = "marginal", "people asked again"


@dataclass(frozen=True, eq=False)
class CrossValidation:
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
        """Return a mean over folds, then repeats, with a 95 % interval of the mean."""
        values = self.scores[method][score].reshape(-1)
        values = values[~np.isnan(values)]
        if not len(values):
            return Score(np.nan, np.nan, np.nan)
        middle = float(values.mean())
        if len(values) < 2:
            return Score(middle, np.nan, np.nan)
        half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
        return Score(middle, float(middle - half), float(middle + half))

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""

        def plain(score: Score) -> dict[str, float | None]:
            return {k: None if np.isnan(v) else v for k, v in score._asdict().items()}

        return {
            "scores": {
                method: {name: plain(self.mean(method, name)) for name in by}
                for method, by in self.scores.items()
            },
            "seconds": self.seconds,
            "n_items": self.n_items,
            "folds": self.folds,
            "repeats": self.repeats,
        }


def cross_validate(
    views: Views,
    annotations: Annotations,
    specs: Sequence[str],
    *,
    label: Integers | None = None,
    folds: int = 5,
    repeats: int = 5,
    ordered: bool = False,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CrossValidation:
    """Cross-validate methods that see one label per item.

    Parameters
    ----------
    views
        Of the inputs, with whatever the methods need.
    annotations
        What everybody said, items in the order of the views; oracles see it, the others the label.
    specs
        Methods as the registry writes them.
    label
        The label to show; by default the majority, ties drawn.
    folds, repeats
        Into how many parts items are dealt, and how often.
    ordered
        Whether classes stand in order.
    seed
        Decides folds, ties and methods.
    folder
        Where every fold is kept.
    progress
        Called with folds done and folds in all.
    """
    if not 2 <= folds <= annotations.n_items:
        raise OptionError(f"{folds} folds, but there are {annotations.n_items} items")
    if not annotations.labels_per_item.all():
        raise DataError("some items have no annotations; leave them out")
    votes = annotations.votes()
    shown = majority(votes, seed) if label is None else np.asarray(label)
    names = [*specs, *(one for one in (FLOOR, CEILING) if one not in specs)]
    total, done = len(names) * folds * repeats, 0
    kept = None if folder is None else Path(folder)
    if kept is not None:
        _same_data(kept, votes, shown, folds, seed)
    rows: dict[str, list[list[dict[str, float]]]] = {name: [] for name in names}
    proba = {name: np.zeros((repeats, *votes.shape)) for name in names}
    seconds = dict.fromkeys(names, 0.0)
    for name in names:
        for repeat in range(repeats):
            rows[name].append([])
            fold = folds_of(annotations.n_items, folds, seed, repeat)
            for each in range(folds):
                test = np.flatnonzero(fold == each)
                position = _place(kept, name, repeat, each)
                if position is None or not position.exists():
                    began = process_time()
                    p = _predicted(
                        name, views, annotations, shown, votes, fold, each, seed + repeat
                    )
                    found = {"p": p, "seconds": np.array(process_time() - began)}
                    if position is not None:
                        with atomic_file(position) as draft, draft.open("wb") as file:
                            np.savez(file, **found)  # type: ignore[arg-type]
                else:
                    with np.load(position) as stored:
                        found = dict(stored)
                proba[name][repeat, test] = found["p"]
                seconds[name] += float(found["seconds"]) / (folds * repeats)
                if name == CEILING:
                    random = np.random.default_rng([seed, repeat, each])
                    told = people_again(votes[test], ordered=ordered, random=random)
                else:
                    told = soft_scores(found["p"], votes[test], ordered=ordered)
                rows[name][repeat].append(told)
                done += 1
                if progress is not None:
                    progress(done, total)
    scores = {
        name: {
            score: np.array([[fold[score] for fold in repeat] for repeat in by])
            for score in by[0][0]
        }
        for name, by in rows.items()
    }
    return CrossValidation(scores, seconds, proba, annotations.n_items, folds, repeats)


def majority(votes: Floats, seed: int) -> Integers:
    """Return the class that most people chose, ties drawn: (item)."""
    return (votes + 0.5 * np.random.default_rng([seed, 0x71E]).random(votes.shape)).argmax(axis=1)


def folds_of(n_items: int, folds: int, seed: int, repeat: int) -> Integers:
    """Return the fold of every item; folds differ by one item at most."""
    order = np.random.default_rng([seed, repeat, 0xF01D]).permutation(n_items)
    fold = np.empty(n_items, dtype=np.int64)
    fold[order] = np.arange(n_items) % folds
    return fold


def _predicted(
    name: str,
    views: Views,
    annotations: Annotations,
    shown: Integers,
    votes: Floats,
    fold: Integers,
    each: int,
    seed: int,
) -> Floats:
    train, test = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
    if name == CEILING:
        return shares_of(asked_again(votes[test], np.random.default_rng([seed, each])))
    method = recoverers.create(name)
    mine = views.only((*method.needs, *method.likes))
    found = method.fit(
        mine.take(train),
        shown[train],
        n_classes=annotations.n_classes,
        vote_count=annotations.labels_per_item[train],
        annotations=annotations.take(train),
        seed=seed,
    )
    return found.proba(mine.take(test))


def _place(folder: Path | None, name: str, repeat: int, fold: int) -> Path | None:
    if folder is None:
        return None
    told = re.sub(r"[^A-Za-z0-9_.=,-]+", "-", name)
    return folder / told / f"{repeat}-{fold}.npz"


def _same_data(folder: Path, votes: Floats, shown: Array, folds: int, seed: int) -> None:
    """Refuse a folder whose folds are of other data."""
    digest = blake2b(digest_size=12)
    for array in (votes, np.asarray(shown, dtype=np.int64), np.array([folds, seed])):
        digest.update(np.ascontiguousarray(array).tobytes())
    mine, path = {"data": digest.hexdigest()}, folder / "folds.json"
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            known = None
        if known != mine:
            raise DataError(f"{folder}: holds folds of other data, labels or seed; name a new one")
        return
    with atomic_file(path) as draft:
        draft.write_text(json.dumps(mine), encoding="utf-8")
