"""Item scores, and the cause of disagreement on every item.

Scores of the votes alone are `vote_entropy`, `margin` and `agreement`. Scores under a fitted
consensus are `posterior_entropy` and `confidence` (which may be certain although votes split),
`surprise` and GLAD's `difficulty`. With few labels (`n_labels`) they are unreliable.

`cause` is the most probable cause of disagreement on an item:

    no label                unlabelled
    one label               nothing to compare
    somebody is unreliable  reliable annotators agree: without the labels of annotators who are
                            nearer to guessing than to being always right, there is no dispute
    ambiguous               good annotators split between the same two classes
    hard                    good annotators err, in scattered ways
    clear                   all agree, except for errors that these annotators usually make
    split vote              it would be clear, but the vote is tied
    nobody gave the label   the inferred label is nobody's, so the item needs a look

An item is ambiguous or hard if that explains its labels better than a clear item would, given the
quality of the annotators (`_causes`), or if its posterior stays uncertain though good annotators
labelled it; then the more probable of the two. With two classes there is no scatter: hard items are
then mostly called ambiguous. Below about eight labels, they are seldom distinguished from clear
ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import entr

from ..base.names import Names, as_names
from ..base.plain import as_plain
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.tables import Tabular
from ..answers.annotations import Annotations
from ..formats import as_annotations
from ..registry import aggregators
from ..result import Aggregation, Table
from .causes import AMBIGUOUS, CLEAR, HARD, CauseProbabilities, cause_probabilities
from .annotators import check_fitted
from .label_sums import by_cell, by_item

CAUSES = (
    *("clear", "ambiguous", "hard", "somebody is unreliable", "one label", "no label"),
    *("split vote", "nobody gave the label"),
)

_UNRELIABLE, _ONE, _NONE, _SPLIT, _NOBODY = range(3, 8)
_CONFIDENT = 0.9  # below, the consensus is uncertain
_RELIABLE = 0.5  # accuracy from 0, a guess, to 1, always right
_TINY = 1e-12  # a smaller deviation is none


@dataclass(frozen=True, eq=False, repr=False)
class ItemScores(Tabular, FrozenArrays):
    """Scores of every item.

    Attributes
    ----------
    items
        The names of the items.
    n_labels
        Number of labels.
    vote_entropy
        Entropy of its labels, in nats; NaN below two labels.
    margin
        Share of the most frequent label less that of the next; NaN without labels.
    agreement
        Share of pairs of its labels that are equal; NaN below two labels.
    posterior_entropy
        Entropy of the posterior, in nats.
    confidence
        Posterior probability of its label.
    difficulty
        GLAD's difficulty, 1 / easiness; NaN without labels, or if not requested.
    surprise
        How much less probable its labels are than expected, in standard deviations; NaN without
        labels.
    item_to_blame
        Probability that the item is ambiguous or hard, rather than the annotators unreliable.
    cause
        Cause of disagreement, one of `CAUSES`.
    """

    items: Names
    n_labels: Integers  # each of them (item)
    vote_entropy: Floats
    margin: Floats
    agreement: Floats
    posterior_entropy: Floats
    confidence: Floats
    difficulty: Floats
    surprise: Floats
    item_to_blame: Floats
    cause: Names

    def __repr__(self) -> str:
        causes = ", ".join(f"{count} {cause}" for cause, count in self.causes.items() if count)
        return f"<ItemScores of {len(self.items)} items: {causes}>"

    @property
    def causes(self) -> dict[str, int]:
        """The number of items with every cause."""
        causes = self.cause.tolist()
        return {cause: causes.count(cause) for cause in CAUSES}

    def table(self) -> Table:
        """Return the scores as columns, the item first."""
        columns: dict[str, Array] = {
            field.name: getattr(self, field.name) for field in fields(self)[1:]
        }
        return {"item": self.items} | columns

    def _table(self) -> Table:
        return self.table()

    def as_dict(self) -> dict[str, Any]:
        """Return the columns as plain lists, `None` for NaN."""
        return as_plain(self.table())


def item_scores(
    annotations: Annotations | Any,
    result: Aggregation | None = None,
    *,
    difficulty: bool = True,
    normalized: bool = False,
    corrected: bool = False,
    seed: int = 0,
) -> ItemScores:
    """Return scores of all items.

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes.
    result
        A fitted consensus, by default that of `dawid-skene-map`.
    difficulty
        Whether to fit GLAD for its difficulties, which takes longest.
    normalized, corrected
        As in `vote_entropy`.
    seed
        Random seed.

    Examples
    --------
    >>> answers = {"a": "cccccc", "b": "dddddd", "c": "ffffcf", "d": "cccddd", "e": "cdfdfc"}
    >>> annotations = Annotations.from_dict({
    ...     item: dict(zip("uvwxyz", labels, strict=True)) for item, labels in answers.items()
    ... })
    >>> scores = item_scores(annotations)
    >>> scores.agreement.round(2).tolist()
    [1.0, 1.0, 0.67, 0.4, 0.2]
    >>> scores.cause.tolist()
    ['clear', 'clear', 'clear', 'ambiguous', 'hard']
    """
    annotations = as_annotations(annotations)
    result = check_fitted(annotations, result, seed=seed)
    votes, size = annotations.votes(), annotations.labels_per_item
    causes, cause = item_causes(annotations, result)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.sort(votes, axis=1)[:, ::-1]
        margin = (top[:, 0] - (top[:, 1] if annotations.n_classes > 1 else 0)) / size
        agreement = (votes * (votes - 1)).sum(axis=1) / (size * (size - 1))
    nothing = np.full(annotations.n_items, np.nan)
    return ItemScores(
        annotations.items,
        size,
        vote_entropy(annotations, normalized=normalized, corrected=corrected),
        margin,
        agreement,
        entr(result.probabilities).sum(axis=1),
        result.confidence,
        _difficulty(annotations, result, seed) if difficulty else nothing,
        _surprise(annotations, result),
        np.where(size > 1, 1 - causes.probability[:, CLEAR], np.nan),
        cause,
    )


def item_causes(annotations: Annotations, result: Aggregation) -> tuple[CauseProbabilities, Names]:
    """Return the posterior of the causes of disagreement, and the cause of every item in words."""
    prior = result.posterior[annotations.labels_per_item > 0].sum(axis=0) + 1
    accuracy = np.clip(np.nan_to_num(result.agreement, nan=0.8), 0.01, 0.99)
    causes = cause_probabilities(annotations, accuracy, prior / prior.sum())
    return causes, as_names(list(CAUSES))[_causes(annotations, result, causes)]


def vote_entropy(
    annotations: Annotations, *, normalized: bool = False, corrected: bool = False
) -> Floats:
    """Return the entropy of every item's labels; NaN below two labels.

    Parameters
    ----------
    annotations
        The annotations.
    normalized
        Whether to divide by the logarithm of the number of classes: from 0 to 1.
    corrected
        Whether to add the bias correction of Miller and Madow, (classes seen - 1) / (2 labels),
        up to the entropy of an even split.
    """
    votes, size = annotations.votes(), annotations.labels_per_item
    entropy = entr(votes / np.maximum(size, 1)[:, None]).sum(axis=1)
    most = float(np.log(max(annotations.n_classes, 2)))
    if corrected:
        hidden = ((votes > 0).sum(axis=1) - 1) / (2 * np.maximum(size, 1))
        entropy = np.minimum(entropy + hidden, most)
    return np.where(size > 1, entropy / (most if normalized else 1), np.nan)


def _causes(annotations: Annotations, result: Aggregation, causes: CauseProbabilities) -> Integers:
    """Return the cause of every item's disagreement, by its index in `CAUSES`."""
    size, uniform = annotations.labels_per_item, 1 / max(annotations.n_classes, 2)
    reliable = (causes.accuracy - uniform) / (1 - uniform) >= _RELIABLE
    votes = by_cell(annotations, reliable[annotations.annotator])  # of reliable annotators
    disputed = (annotations.votes() > 0).sum(axis=1) > 1
    resolved = (votes > 0).sum(axis=1) < 2
    clear, ambiguous, hard = causes.probability.T
    other = np.where(ambiguous >= hard, AMBIGUOUS, HARD)
    uncertain = (clear < 0.5) | (result.posterior.max(axis=1) < _CONFIDENT)
    cause = np.where(disputed & uncertain, other, CLEAR)
    cause = np.where(disputed & resolved & (clear >= 0.5), _UNRELIABLE, cause)
    given = annotations.votes()
    tied = (given == given.max(axis=1, keepdims=True)).sum(axis=1) > 1
    cause = np.where(tied & (cause == CLEAR), _SPLIT, cause)
    missing = (result.label >= 0) & (given[np.arange(len(given)), result.label] == 0)
    cause = np.where(missing, _NOBODY, cause)
    return np.where(size == 0, _NONE, np.where(size == 1, _ONE, cause))


def _surprise(annotations: Annotations, result: Aggregation) -> Floats:
    """Return by how many deviations labels are less probable than expected: (item)."""
    from ..aggregation.held_out import confusion_from_posterior

    confusion = aggregators.create(result.method).confusion(result.params)
    if confusion is None:
        confusion = confusion_from_posterior(result.annotations, result.posterior)
    log = np.log(np.maximum(confusion, 1e-300))
    entropy = -(np.exp(log) * log).sum(axis=2)  # (annotator, true class)
    variance = (np.exp(log) * log**2).sum(axis=2) - entropy**2
    label = result.posterior.argmax(axis=1)
    annotator, true = annotations.annotator, label[annotations.item]
    excess = -log[annotator, true, annotations.label] - entropy[annotator, true]
    deviation = np.sqrt(np.maximum(by_item(annotations, variance[annotator, true]), 0))
    total = by_item(annotations, excess)
    surprise = np.divide(total, deviation, where=deviation > _TINY, out=np.zeros(len(total)))
    return np.where(annotations.labels_per_item > 0, surprise, np.nan)


def _difficulty(annotations: Annotations, result: Aggregation, seed: int) -> Floats:
    """Return GLAD's difficulty of every item; GLAD is fitted unless the result is one."""
    if aggregators.resolve(result.method)[0] != "glad":
        result = aggregators.create("glad").fit(annotations, seed=seed)
    return np.where(annotations.labels_per_item > 0, result.params.difficulty, np.nan)
