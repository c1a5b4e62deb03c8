"""Which method for which situation: `python benchmarks/run.py accuracy situations`.

Every method that aggregates, on simulated crowds such as users have: few annotators or many, a
scale of five steps, spammers, hard items, copied answers, a rare class, many classes. The choice of
a method in the documentation, and the picture of each, are made of these tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dissensus import Annotations, DissensusError, aggregate, aggregators, estimators, simulate
from dissensus.answers.numbers import Numbers
from pages import Section, Table

MODELS = ("judge-pool",)  # needs labels by models
ROBUST = "gaussian[freedom=4]"


@dataclass(frozen=True)
class Situation:
    """Labels as users have them."""

    name: str
    text: str
    strategy: str
    design: dict[str, Any]
    ordinal: bool = False
    rare: float = 1.0  # share of items kept, of all classes but the first

    def draw(self, seed: int) -> tuple[Annotations, np.ndarray]:
        """Return annotations and the true codes of their items."""
        drawn = simulate(self.strategy, **self.design, seed=seed)
        annotations, truth = drawn.annotations, np.asarray(drawn.truth)
        if self.ordinal:
            annotations = annotations.with_scale("ordinal")
        if self.rare < 1:
            random = np.random.default_rng(seed).random(len(truth))
            kept = annotations.items[(truth == 0) | (random < self.rare)]
            known = dict(zip(annotations.items.tolist(), truth.tolist(), strict=True))
            annotations = annotations.subset(items=kept)
            truth = np.array([known[item] for item in annotations.items.tolist()])
        return annotations, truth


SITUATIONS = (
    Situation(
        "five raters, 1–5",
        "five annotators rate all of 200 items on a scale of five steps",
        "ordinal",
        {"n_items": 200, "n_annotators": 5, "n_classes": 5},
        ordinal=True,
    ),
    Situation(
        "crowd, 1–5",
        "60 annotators rate 400 items on a scale of five steps, three ratings each",
        "ordinal",
        {"n_items": 400, "n_annotators": 60, "n_classes": 5, "feedback": 3},
        ordinal=True,
    ),
    Situation(
        "two annotators",
        "two annotators label all of 200 items, three classes",
        "one-coin",
        {"n_items": 200, "n_annotators": 2, "n_classes": 3},
    ),
    Situation(
        "five annotators",
        "five annotators label all of 200 items, four classes, each with own confusions",
        "independent-confusion",
        {"n_items": 200, "n_annotators": 5, "n_classes": 4},
    ),
    Situation(
        "crowd",
        "100 annotators, 500 items, two classes, three labels each",
        "one-coin",
        {"n_items": 500, "n_annotators": 100, "n_classes": 2, "feedback": 3},
    ),
    Situation(
        "spammers",
        "50 annotators, four of ten guess, 400 items, four classes, five labels each",
        "hammer-spammer[ratio=0.4]",
        {"n_items": 400, "n_annotators": 50, "n_classes": 4, "feedback": 5},
    ),
    Situation(
        "hard items",
        "50 annotators, 400 items of different difficulty, four classes, five labels each",
        "glad",
        {"n_items": 400, "n_annotators": 50, "n_classes": 4, "feedback": 5},
    ),
    Situation(
        "copied answers",
        "30 annotators, half of whom copy most answers, 400 items, four classes, five labels each",
        "student-teacher[ratio=0.5,copy_prob=0.8]",
        {"n_items": 400, "n_annotators": 30, "n_classes": 4, "feedback": 5},
    ),
    Situation(
        "rare class",
        "30 annotators, two classes, one item in ten of the rare one, five labels each",
        "independent-confusion",
        {"n_items": 600, "n_annotators": 30, "n_classes": 2, "feedback": 5},
        rare=1 / 9,
    ),
    Situation(
        "many classes",
        "200 annotators, 1000 items, 20 classes, three labels each",
        "one-coin",
        {"n_items": 1000, "n_annotators": 200, "n_classes": 20, "feedback": 3},
    ),
)


@dataclass(frozen=True)
class NumberSituation:
    """Numbers as users have them; `spoil` changes answers."""

    name: str
    text: str
    design: dict[str, Any]
    spoil: Callable[[np.ndarray, np.random.Generator], np.ndarray] = lambda given, _: given

    def draw(self, seed: int) -> tuple[Numbers, np.ndarray]:
        """Return answers and true values."""
        drawn = simulate("numeric", **self.design, seed=seed)
        numbers = drawn.annotations
        value = self.spoil(numbers.value.copy(), np.random.default_rng(seed))
        given = numbers.items[numbers.item], numbers.annotators[numbers.annotator], value
        return Numbers.from_columns(*given), np.asarray(drawn.truth)


def with_outliers(value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return answers of which five in a hundred are typing errors, ten times too large."""
    return np.where(random.random(len(value)) < 0.05, 10 * value, value)


NUMBERS = (
    NumberSituation(
        "five annotators",
        "five annotators give a number to all of 200 items, each with own bias and precision",
        {"n_items": 200, "n_annotators": 5},
    ),
    NumberSituation(
        "crowd",
        "60 annotators, 400 items, three numbers each",
        {"n_items": 400, "n_annotators": 60, "feedback": 3},
    ),
    NumberSituation(
        "typing errors",
        "as the first, and five answers in a hundred are ten times too large",
        {"n_items": 200, "n_annotators": 5},
        with_outliers,
    ),
)


def accuracy(posterior: np.ndarray, truth: np.ndarray) -> float:
    """Return the accuracy, expected over ties."""
    best = np.isclose(posterior, posterior.max(axis=1, keepdims=True), rtol=1e-9)
    return float((best[np.arange(len(truth)), truth] / best.sum(axis=1)).mean())


def distance(posterior: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean distance of the label to the truth in steps, expected over ties."""
    best = np.isclose(posterior, posterior.max(axis=1, keepdims=True), rtol=1e-9)
    best = best / best.sum(axis=1, keepdims=True)
    steps = np.abs(np.arange(posterior.shape[1]) - truth[:, None])
    return float((best * steps).sum(axis=1).mean())


def half_interval(values: list[float]) -> float:
    """Return half a 95 % interval of the mean."""
    return float(stats.sem(values) * stats.t.ppf(0.975, len(values) - 1))


def measure(seeds: int) -> tuple[list[list[Any]], list[list[Any]], float]:
    """Return the rows of accuracies and of distances, and the widest half interval."""
    draws = {one.name: [one.draw(seed) for seed in range(seeds)] for one in SITUATIONS}
    right, far, widest = [], [], 0.0
    for method in aggregators:
        if method in MODELS:
            continue
        row: list[Any] = [method]
        steps: list[Any] = [method]
        for one in SITUATIONS:
            try:
                fitted = [aggregate(a, method).posterior for a, _ in draws[one.name]]
            except DissensusError:  # two classes only
                row.append(None)
                steps += [None] * one.ordinal
                continue
            truths = [truth for _, truth in draws[one.name]]
            scores = [accuracy(p, t) for p, t in zip(fitted, truths, strict=True)]
            row.append(f"{100 * np.mean(scores):.1f}")
            widest = max(widest, half_interval(scores))
            if one.ordinal:
                away = [distance(p, t) for p, t in zip(fitted, truths, strict=True)]
                steps.append(f"{np.mean(away):.3f}")
        right.append(row)
        far.append(steps)
        print(*row)
    return right, far, widest


def number_rows(seeds: int) -> list[list[Any]]:
    """Return the root mean squared errors of every method for numbers."""
    draws = {one.name: [one.draw(seed) for seed in range(seeds)] for one in NUMBERS}
    rows = []
    for method in (*estimators, ROBUST):
        row: list[Any] = [method]
        for one in NUMBERS:
            errors = [
                float(np.sqrt(np.mean((estimators.create(method).fit(a).value - truth) ** 2)))
                for a, truth in draws[one.name]
            ]
            row.append(f"{np.mean(errors):.2f}")
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    section = Section("situations", "situations")
    right, far, widest = measure(seeds)
    section.add(
        Table("The situations", ["situation", "labels"], [[s.name, s.text] for s in SITUATIONS])
    )
    section.add(
        Table(
            "Accuracy in percent, by situation",
            ["method", *(one.name for one in SITUATIONS)],
            right,
            f"Means over {seeds} seeds, ties as their expectation; half a 95 % interval of a mean "
            f"is at most {100 * widest:.1f}. Without skills, gold or features, `weighted` and "
            "`gold-majority` are plain votes and `lfc` is `dawid-skene`.",
        )
    )
    section.add(
        Table(
            "Distance to the truth in steps, on scales",
            ["method", *(one.name for one in SITUATIONS if one.ordinal)],
            far,
            "Mean distance of the label to the true step: lower is better.",
        )
    )
    texts = [[one.name, one.text] for one in NUMBERS]
    section.add(Table("The situations with numbers", ["situation", "answers"], texts))
    section.add(
        Table(
            "Root mean squared error of numbers, by situation",
            ["method", *(one.name for one in NUMBERS)],
            number_rows(seeds),
            f"Means over {seeds} seeds: lower is better.",
        )
    )
    section.write()


if __name__ == "__main__":
    main()
