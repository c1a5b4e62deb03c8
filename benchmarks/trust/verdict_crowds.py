"""Crowds of annotators whose kind is known, to measure verdicts with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissensus import Annotations

__all__ = ["KnownCrowd", "class_crowd", "rating_crowd"]

N = 40  # annotators
STYLES = ("normal", "harsh", "lenient", "extreme", "central")
SPAMMERS = ("uniform", "marginal", "constant")


class KnownCrowd(NamedTuple):
    """Labels of a crowd, and what every annotator is like."""

    annotations: Annotations
    kind: np.ndarray  # (annotator)

    def are(self, *kinds: str) -> np.ndarray:
        """Return which annotators are of these kinds."""
        return np.isin(self.kind, kinds)


def rating_crowd(
    rng: np.random.Generator,
    n_classes: int,
    labels: int,
    per_item: int,
    *,
    noise: float = 0.5,
    after_scale: bool = False,
) -> KnownCrowd:
    """Return ratings of a crowd with harsh, lenient, extreme and central raters, and spammers.

    An annotator perceives an item with noise and reports it on a scale of their own; with
    `after_scale` noise is added to the report instead, which makes central raters worse. A fifth of
    the annotators are spammers: uniform, drawn from the crowd's marginals, or one class with 2 %
    slips.
    """
    n_spammers = N // 5
    kind = [SPAMMERS[i % 3] for i in range(n_spammers)]
    kind += rng.choice(STYLES, N - n_spammers).tolist()
    item, annotator = assigned(rng, labels, per_item)
    standing = rng.normal(size=item.max() + 1)
    shift = np.array([{"harsh": -1.0, "lenient": 1.0}.get(one, 0.0) for one in kind])
    slope = np.array([{"extreme": 1.8, "central": 0.5}.get(one, 1.0) for one in kind])
    error = noise * rng.normal(size=len(item)) / (slope[annotator] if after_scale else 1)
    reported = shift[annotator] + slope[annotator] * (standing[item] + error)
    label = np.rint((n_classes - 1) * (0.5 + reported / 4)).clip(0, n_classes - 1).astype(int)
    share = np.bincount(label[annotator >= n_spammers], minlength=n_classes).astype(float)
    share /= share.sum()
    for spammer in range(n_spammers):
        own = annotator == spammer
        drawn = rng.integers(0, n_classes, own.sum())
        if kind[spammer] == "marginal":
            drawn = rng.choice(n_classes, own.sum(), p=share)
        elif kind[spammer] == "constant":
            drawn = np.where(rng.random(own.sum()) < 0.02, drawn, rng.choice(n_classes, p=share))
        label[own] = drawn
    return KnownCrowd(_annotations(item, annotator, label, n_classes), np.array(kind))


def class_crowd(
    rng: np.random.Generator, n_classes: int, labels: int, per_item: int, *, weak: bool = True
) -> KnownCrowd:
    """Return classes of a crowd with guessers, constant, biased and weak annotators.

    Good annotators are right 70 to 95 % of the time, low ones 40 to 60 % (60 to 70 % with two
    classes), biased ones give a favourite class half of the time. Guessers draw half of their
    labels uniformly, half from the shares of the classes.
    """
    kind = ["guesser", "constant"] * 3 + ["biased", "low"] * (5 if weak else 0)
    kind = np.array([*kind, *["good"] * (N - len(kind))])
    item, annotator = assigned(rng, labels, per_item)
    share = rng.dirichlet(np.full(n_classes, 5.0))
    truth = rng.choice(n_classes, item.max() + 1, p=share)[item]
    low = rng.uniform(0.6, 0.7, N) if n_classes == 2 else rng.uniform(0.4, 0.6, N)
    right = np.where(kind == "low", low, rng.uniform(0.7, 0.95, N))
    wrong = (truth + rng.integers(1, n_classes, len(truth))) % n_classes
    label = np.where(rng.random(len(truth)) < right[annotator], truth, wrong)
    favourite, half = rng.integers(0, n_classes, N)[annotator], rng.random(len(truth)) < 0.5
    own = kind[annotator]
    label = np.where((own == "biased") & half | (own == "constant"), favourite, label)
    guess = rng.choice(n_classes, len(truth), p=share)
    guess = np.where(half, rng.integers(0, n_classes, len(truth)), guess)
    label = np.where(own == "guesser", guess, label)
    return KnownCrowd(_annotations(item, annotator, label, n_classes), kind)


def assigned(rng: np.random.Generator, labels: int, per_item: int) -> tuple[np.ndarray, np.ndarray]:
    """Return who labels which item: always those with the fewest labels so far, at random."""
    n_items, done = N * labels // per_item, np.zeros(N)
    chosen = np.empty((n_items, per_item), dtype=int)
    for item in range(n_items):
        chosen[item] = np.argsort(done + rng.random(N))[:per_item]
        done[chosen[item]] += 1
    return np.repeat(np.arange(n_items), per_item), chosen.ravel()


def _annotations(item, annotator, label, n_classes) -> Annotations:
    return Annotations.from_codes(
        item, annotator, label, items=int(item.max()) + 1, annotators=N, classes=n_classes
    )
