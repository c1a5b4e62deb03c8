"""Numeric: annotators measure, each with a bias and a precision of their own.

Models as judges, simulated: few labels by people, many by models that share errors.

Every item has a true class and one wrong class that misleads models. A person is right with
probability `person_accuracy`, and otherwise chooses any other class. A model is right with
`judge_accuracy`; with probability `shared` this is decided once for all models on an item, and
those who are then wrong choose the misleading class. After the share `drift_after` of the items,
models are right less often, by `drift`. People label the first `per_item` of a random order, on
`n_labelled` random items. A model answers `repeats` times and states a confidence that is higher
where it is right.

Peer grading: annotators are authors of the items, and good authors may grade more reliably.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import numbered
from ..params import NonNegative, Positive, Probability, Settings
from .strategy import Asked, CrowdParameters, Design, Strategy

Answered = tuple[Integers, Integers, Integers, Floats]  # item, annotator, label, confidence


@dataclass(frozen=True, kw_only=True)
class Numeric(Strategy):
    """Annotators who give numbers.

    Numeric: annotators measure, each with a bias and a precision of their own.

    Annotator a says truth[i] + bias[a] + e / sqrt(precision[a]) about item i, with e from a
    standard normal distribution. Truths and biases are normal around 0; precisions come from a
    Gamma with mean 1 / noise². There are no classes.

        answer[i, a] = truth[i] + bias[a] + e / sqrt(precision[a])

    When it fails: No rounding to tens, no typing errors and no stretched scales, which real numbers
    have.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010.

    Parameters
    ----------
    spread
        Standard deviation of the truths.
    bias
        Standard deviation of the annotators' biases.
    noise
        Standard deviation of an answer by an annotator of mean precision.
    evenness
        Shape of the Gamma distribution; more of it, more alike are the precisions.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("numeric", n_items=3, n_annotators=2).annotations
    <Numbers: 6 answers by 2 annotators on 3 items; -2.87... to 6.20...>
    """

    numeric: ClassVar[bool] = True

    spread: Positive = 10.0
    bias: NonNegative = 1.0
    noise: Positive = 1.0
    evenness: Positive = 3.0

    def truth(self, design: Design, rng: np.random.Generator) -> Array:
        return rng.normal(0, self.spread, size=design.n_items)

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        bias = rng.normal(0, self.bias, size=design.n_annotators)
        scale = 1 / (self.noise**2 * self.evenness)
        precision = rng.gamma(self.evenness, scale, size=design.n_annotators)
        return CrowdParameters(0, None, {"bias": bias, "precision": precision})

    def answers(self, crowd: CrowdParameters, pairs: Asked, rng: np.random.Generator) -> Array:
        bias, precision = crowd.extras["bias"], crowd.extras["precision"]
        error = rng.standard_normal(len(pairs.item)) / np.sqrt(precision[pairs.annotator])
        return pairs.truth + bias[pairs.annotator] + error


class JudgedItems(NamedTuple):
    """Simulated labels of people and models, and the truth."""

    annotations: Annotations
    truth: Integers  # (item)


@dataclass(frozen=True, kw_only=True)
class JudgedCrowd(Settings):
    """Models that answer about all items, and people who label some of them.

    Parameters
    ----------
    n_items, n_classes
        Number of items and of classes.
    n_labelled
        Number of items that people label; all of them if not given.
    n_people, per_item
        Number of people, and how many of them label an item.
    n_judges, repeats
        Number of models, and of answers that each gives to an item.
    person_accuracy, judge_accuracy
        Probability that a person or a model is right.
    shared
        Probability that the models' errors on an item are decided for all of them at once.
    drift, drift_after
        How much less often models are right after this share of the items.
    """

    n_items: int = 600
    n_classes: int = 2
    n_labelled: int | None = None
    n_people: int = 3
    per_item: int = 2
    n_judges: int = 4
    repeats: int = 1
    person_accuracy: Probability = 0.85
    judge_accuracy: Probability = 0.8
    shared: Probability = 0.5
    drift: float = 0.0
    drift_after: Probability = 0.5

    def draw(self, rng: np.random.Generator) -> JudgedItems:
        """Return labels of people and models, and the truth."""
        truth = rng.integers(self.n_classes, size=self.n_items)
        rows = [*self._by_models(truth, rng), *self._by_people(truth, rng)]
        item, annotator, label, confidence = (np.concatenate(c) for c in zip(*rows, strict=True))
        judges = [f"model:m{judge + 1}" for judge in range(self.n_judges)]
        people = [f"p{person + 1}" for person in range(self.n_people)]
        annotations = Annotations.from_codes(
            item,
            annotator,
            label,
            items=numbered(self.n_items),
            annotators=judges + people,
            classes=numbered(self.n_classes),
            annotator_kinds=["model"] * self.n_judges + ["person"] * self.n_people,
            confidence=confidence,
            time=item.astype(float),
        )
        return JudgedItems(annotations, truth)

    def _by_models(self, truth: Integers, rng: np.random.Generator) -> Iterator[Answered]:
        """Yield the answers of every model to all items, once for each repeat."""
        items = np.arange(self.n_items)
        trap = self._other(truth, rng)
        accuracy = self.judge_accuracy - self.drift * (items >= self.drift_after * self.n_items)
        luck = rng.random(self.n_items)  # shared by the models
        for judge in range(self.n_judges):
            common = rng.random(self.n_items) < self.shared
            own = np.where(common, luck, rng.random(self.n_items))
            for _ in range(self.repeats):
                chance = own
                if self.repeats > 1:
                    again = rng.random(self.n_items) < 0.8
                    chance = np.where(again, own, rng.random(self.n_items))
                right = chance < accuracy
                label = np.where(right, truth, np.where(common, trap, self._other(truth, rng)))
                logit = rng.normal(np.where(right, 2.0, 0.5), 1.0)
                yield items, np.full(self.n_items, judge), label, 1 / (1 + np.exp(-logit))

    def _by_people(self, truth: Integers, rng: np.random.Generator) -> Iterator[Answered]:
        """Yield the labels of people, one on every item that they label, then the next."""
        labelled = np.sort(rng.permutation(self.n_items)[: self.n_labelled])
        truth = truth[labelled]
        person = rng.permuted(np.tile(np.arange(self.n_people), (len(labelled), 1)), axis=1)
        for number in range(min(self.per_item, self.n_people)):
            right = rng.random(len(labelled)) < self.person_accuracy
            label = np.where(right, truth, self._other(truth, rng))
            yield labelled, self.n_judges + person[:, number], label, np.full(len(label), np.nan)

    def _other(self, label: Integers, rng: np.random.Generator) -> Integers:
        """Return another class for each."""
        return (label + rng.integers(1, max(self.n_classes, 2), size=len(label))) % self.n_classes


def simulate_judges(*, seed: int = 0, **settings: Any) -> JudgedItems:
    """Draw labels of people p1, p2, … and models model:m1, model:m2, …, with known truth.

    Parameters
    ----------
    seed
        Random seed.
    settings
        Those of `JudgedCrowd`.

    Examples
    --------
    >>> drawn = simulate_judges(n_items=100, n_labelled=40, seed=1)
    >>> drawn.annotations
    <Annotations: 480 labels by 7 annotators on 100 items; classes 0, 1>
    >>> drawn.annotations.annotator_kinds.tolist()
    ['model', 'model', 'model', 'model', 'person', 'person', 'person']
    """
    return JudgedCrowd(**settings).draw(np.random.default_rng(seed))


@dataclass(frozen=True, kw_only=True)
class PeerGrading(Strategy):
    """Graders who are authors, too.

    Peer grading: annotators are authors of the items, and good authors may grade more reliably.

    Item i is by annotator i, counted again from 0 where items are more. Annotator a grades item i
    with truth[i] + bias[a] + e / sqrt(precision[a]), e from a standard normal distribution, and own
    items `inflation` higher. log precision[a] rises by `slope` for every standard deviation of the
    mean truth of a's own items; around that, precisions come from a Gamma distribution. There are
    no classes:

        answer[i, a] = truth[i] + bias[a] + e / sqrt(precision[a])

    When it fails: Real graders also agree beforehand, copy each other, or grade a rival down, which
    this crowd never does.

        C. Piech, J. Huang, Z. Chen, C. Do, A. Ng, D. Koller. Tuned models of peer assessment in
        MOOCs.
        International Conference on Educational Data Mining, 2013.

    Parameters
    ----------
    spread
        Standard deviation of the true grades, around 70.
    bias
        Standard deviation of the graders' biases.
    noise
        Standard deviation of an answer by a grader of mean precision with an average grade.
    evenness
        Shape of the Gamma distribution; more of it, more alike are the precisions.
    slope
        What a standard deviation of the own grade adds to the log precision.
    inflation
        How much higher own items are graded.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("peer-grading", n_items=3, n_annotators=3).annotations
    <Numbers: 9 answers by 3 annotators on 3 items; 47.8... to 90.2...>
    """

    numeric: ClassVar[bool] = True

    spread: Positive = 10.0
    bias: NonNegative = 4.0
    noise: Positive = 8.0
    evenness: Positive = 3.0
    slope: float = 0.5
    inflation: float = 15.0

    def truth(self, design: Design, rng: np.random.Generator) -> Array:
        return 70 + self.spread * _merit(design)

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        size = design.n_annotators
        author = np.arange(design.n_items) % size
        items = np.maximum(np.bincount(author, minlength=size), 1)
        own = np.bincount(author, _merit(design), minlength=size) / items
        level = np.exp(self.slope * own) / (self.noise**2 * self.evenness)
        bias = rng.normal(0, self.bias, size=size)
        precision = rng.gamma(self.evenness, level)
        return CrowdParameters(0, None, {"bias": bias, "precision": precision, "authors": author})

    def answers(self, crowd: CrowdParameters, pairs: Asked, rng: np.random.Generator) -> Array:
        bias, precision = crowd.extras["bias"], crowd.extras["precision"]
        error = rng.standard_normal(len(pairs.item)) / np.sqrt(precision[pairs.annotator])
        own = crowd.extras["authors"][pairs.item] == pairs.annotator
        return pairs.truth + bias[pairs.annotator] + error + self.inflation * own


def _merit(design: Design) -> Floats:
    """Return the true grades, standardized: drawn apart, because graders depend on them."""
    return np.random.default_rng([design.seed, 1]).standard_normal(design.n_items)
