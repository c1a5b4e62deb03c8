"""What every item's labels tell about the item, and why there is disagreement.

Scores of the votes alone are `vote_entropy`, `margin` and `agreement`. Scores of the votes under a
crowd that was fitted are `posterior_entropy` and `confidence` (how sure the truth is, which may be
very sure although votes split), `surprise` and GLAD's `difficulty`. Read them beside `n_labels`:
of few labels they say little.

`cause` says in a word why annotators disagree on an item:

    no label                nobody was asked
    one label               nobody could disagree
    somebody is unreliable  those whom the crowd trusts agree: without the labels of annotators who
                            stand nearer to guessing than to being always right, nothing is left to
                            explain
    ambiguous               good annotators split between the same two classes
    hard                    good annotators err, in scattered ways
    clear                   all agree, but for slips that this crowd is known to make

An item is ambiguous or hard if that story explains its labels better than a clear item would, under
a crowd whose quality is accounted for (`_cause_probabilities`), or if its truth stays in doubt though good
annotators labelled it; then the likelier of the two. Between two classes there is no scatter: hard
items are then mostly called ambiguous. Below some eight labels on an item, it can seldom be told
from a clear one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._names import Names
from .._relation import Array, Floats, Integers, frozen
from ..annotations import Annotations
from ..errors import OptionError
from ..registry import aggregators
from ..result import Aggregation, Table
from ._causes import AMBIGUOUS, CLEAR, HARD, CauseProbabilities, cause_probabilities
from .label_sums import by_cell, by_item

__all__ = ["CAUSES", "ItemScores", "item_scores", "vote_entropy"]

CAUSES = ("clear", "ambiguous", "hard", "somebody is unreliable", "one label", "no label")

_UNRELIABLE, _ONE, _NONE = range(3, 6)
_METHOD = "dawid-skene-map"
_SURE = 0.9  # a truth that is believed less is in doubt
_TRUSTED = 0.5  # from 0, a guess, to 1, always right
_PLAIN = 1e-12  # a share or deviation below is none


@dataclass(frozen=True, eq=False, repr=False)
class ItemScores:
    """Scores of every item.

    Attributes
    ----------
    items
        The names of the items.
    n_labels
        How many labels an item has.
    vote_entropy
        Entropy of its labels, in nats; NaN below two labels.
    margin
        Share of the most frequent label less that of the next; NaN without labels.
    agreement
        Share of pairs of its labels that are equal; NaN below two labels.
    posterior_entropy
        Entropy of the belief in its classes, in nats.
    confidence
        Belief in its label.
    difficulty
        How hard it is to GLAD, 1 / easiness; NaN without labels, or if not wanted.
    surprise
        How much less probable its labels are than the crowd's usually, in standard deviations; NaN
        without labels.
    item_to_blame
        Probability that the item, ambiguous or hard, explains its labels, and not the annotators.
    cause
        Why there is disagreement, one of `CAUSES`.
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

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, frozen(getattr(self, field.name)))

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {cause}" for cause, count in self.causes.items() if count)
        return f"<ItemScores of {len(self.items)} items: {told}>"

    @property
    def causes(self) -> dict[str, int]:
        """How many items have every cause."""
        found = self.cause.tolist()
        return {cause: found.count(cause) for cause in CAUSES}

    def table(self) -> Table:
        """Return the scores as columns, the item first."""
        columns: dict[str, Array] = {"item": self.items}
        columns |= {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return columns

    def as_dict(self) -> dict[str, Any]:
        """Return the columns as plain lists, `None` for what is not known."""
        return {name: _plain_list(values) for name, values in self.table().items()}


def item_scores(
    annotations: Annotations,
    result: Aggregation | None = None,
    *,
    difficulty: bool = True,
    normalised: bool = False,
    corrected: bool = False,
    seed: int = 0,
) -> ItemScores:
    """Return scores of all items.

    Parameters
    ----------
    annotations
        The annotations.
    result
        A fit to them, by default of `dawid-skene-map`.
    difficulty
        Whether to fit GLAD for its difficulties, which takes longest.
    normalised, corrected
        As `vote_entropy` takes them.
    seed
        Of the fits.

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
    if result is None:
        result = aggregators.create(_METHOD).fit(annotations, seed=seed)
    elif not _same(annotations, result.annotations):
        raise OptionError("the result speaks of other annotations; fit it to these, or leave it")
    votes, size = annotations.votes(), annotations.labels_per_item
    found = _cause_probabilities(annotations, result)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.sort(votes, axis=1)[:, ::-1]
        margin = (top[:, 0] - (top[:, 1] if annotations.n_classes > 1 else 0)) / size
        agreement = (votes * (votes - 1)).sum(axis=1) / (size * (size - 1))
    hardness = (
        _difficulty(annotations, result, seed)
        if difficulty
        else np.full(annotations.n_items, np.nan)
    )
    return ItemScores(
        annotations.items,
        size,
        vote_entropy(annotations, normalised=normalised, corrected=corrected),
        margin,
        agreement,
        _entropy(result.posterior),
        result.confidence,
        hardness,
        _surprise(annotations, result),
        np.where(size > 1, 1 - found.chance[:, CLEAR], np.nan),
        np.array(CAUSES, dtype=np.dtypes.StringDType())[_causes(annotations, result, found)],
    )


def vote_entropy(
    annotations: Annotations, *, normalised: bool = False, corrected: bool = False
) -> Floats:
    """Return the entropy of every item's labels; NaN below two labels, which is not "easy".

    Parameters
    ----------
    annotations
        The annotations.
    normalised
        Whether to divide by the logarithm of the number of classes: from 0 to 1.
    corrected
        Whether to add what few labels hide, (classes seen - 1) / (2 labels), as Miller and Madow
        have it; at most up to the entropy of an even split.
    """
    votes, size = annotations.votes(), annotations.labels_per_item
    entropy = _entropy(votes / np.maximum(size, 1)[:, None])
    most = float(np.log(max(annotations.n_classes, 2)))
    if corrected:
        hidden = ((votes > 0).sum(axis=1) - 1) / (2 * np.maximum(size, 1))
        entropy = np.minimum(entropy + hidden, most)
    return np.where(size > 1, entropy / (most if normalised else 1), np.nan)


def _cause_probabilities(annotations: Annotations, result: Aggregation) -> CauseProbabilities:
    labelled = annotations.labels_per_item > 0
    prior = result.posterior[labelled].sum(axis=0) + 1
    right = np.clip(np.nan_to_num(result.agreement, nan=0.8), 0.01, 0.99)
    return cause_probabilities(annotations, right, prior / prior.sum())


def _causes(annotations: Annotations, result: Aggregation, found: CauseProbabilities) -> Integers:
    """Return the cause of every item's disagreement, by its place among `CAUSES`."""
    size, chance = annotations.labels_per_item, 1 / max(annotations.n_classes, 2)
    trusted = (found.right - chance) / (1 - chance) >= _TRUSTED
    kept = by_cell(
        annotations, trusted[annotations.annotator]
    )  # (item, class): labels of trusted annotators
    disputed = (annotations.votes() > 0).sum(axis=1) > 1
    resolved = (kept > 0).sum(axis=1) < 2
    odd = np.where(found.chance[:, AMBIGUOUS] >= found.chance[:, HARD], AMBIGUOUS, HARD)
    doubtful = (found.chance[:, CLEAR] < 0.5) | (result.confidence < _SURE)
    cause = np.where(disputed & doubtful, odd, CLEAR)
    cause = np.where(disputed & resolved & (found.chance[:, CLEAR] >= 0.5), _UNRELIABLE, cause)
    return np.where(size == 0, _NONE, np.where(size == 1, _ONE, cause))


def _surprise(annotations: Annotations, result: Aggregation) -> Floats:
    """Return by how many deviations labels are less probable than the crowd's usually: (item)."""
    from ..heldout import counted

    confusion = aggregators.create(result.method).confusion(result.params)
    log = np.log(np.maximum(counted(result) if confusion is None else confusion, 1e-300))
    usual = -(np.exp(log) * log).sum(axis=2)  # (annotator, true class)
    spread = (np.exp(log) * log**2).sum(axis=2) - usual**2
    label = result.posterior.argmax(axis=1)
    annotator, true = annotations.annotator, label[annotations.item]
    excess = by_item(annotations, -log[annotator, true, annotations.label] - usual[annotator, true])
    deviation = np.sqrt(np.maximum(by_item(annotations, spread[annotator, true]), 0))
    surprise = np.divide(excess, deviation, where=deviation > _PLAIN, out=np.zeros(len(excess)))
    return np.where(annotations.labels_per_item > 0, surprise, np.nan)


def _difficulty(annotations: Annotations, result: Aggregation, seed: int) -> Floats:
    """Return how hard every item is to GLAD, which is fitted unless the result is one."""
    if aggregators.resolve(result.method)[0] != "glad":
        result = aggregators.create("glad").fit(annotations, seed=seed)
    return np.where(annotations.labels_per_item > 0, result.params.difficulty, np.nan)


def _entropy(shares: Floats) -> Floats:
    return -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1) + 0.0


def _same(annotations: Annotations, other: Annotations) -> bool:
    return annotations is other or annotations == other


def _plain_list(values: Array) -> list[Any]:
    if values.dtype.kind == "f":
        return [None if np.isnan(value) else value for value in values.tolist()]
    return values.tolist()
