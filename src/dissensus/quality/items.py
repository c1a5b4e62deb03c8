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
quality of the annotators, or if its posterior stays uncertain though good annotators labelled it;
then the more probable of the two. With two classes there is no scatter: hard items are then mostly
called ambiguous. Below about eight labels, they are seldom distinguished from clear ones.

The posterior probabilities of these three causes come from a model in which annotator a names the
class they perceive with probability `accuracy[a]`, else any other class:

    clear      all perceive one class t, drawn from `prior`;
    ambiguous  a share θ of the annotators perceives class s, the others t; θ is 1/3, 1/2 or 2/3;
    hard       all perceive one class t, but with probability δ an annotator guesses uniformly;
               δ is 1/6, 1/2 or 5/6.

The labels of an item have a likelihood under each cause; those of annotators who guess anyway are
uninformative. EM estimates the share of items that are not clear, and `accuracy`, for which guesses
on hard items do not count as errors. Hard and ambiguous items are equally common a priori: few
labels hardly distinguish them. So are all pairs of classes; the pair of an item is the two classes
that its better annotators named most.

One parameter per annotator is deliberate: confusion matrices learned from the same labels would
absorb the errors on hard and ambiguous items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import entr

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.names import Names, as_names
from ..base.storage import as_plain
from ..formats import as_answers
from ..registry import aggregators
from ..result import Result, Table
from .annotators import check_fitted
from .label_scores import by_annotator, by_cell, by_item

if TYPE_CHECKING:
    from ..pages.sections import Section

CAUSES = (
    *("clear", "ambiguous", "hard", "somebody is unreliable", "one label", "no label"),
    *("split vote", "nobody gave the label"),
)
CLEAR, AMBIGUOUS, HARD, _UNRELIABLE, _ONE, _NONE, _SPLIT, _NOBODY = range(8)  # their indices

_CONFIDENT = 0.9  # below, the consensus is uncertain
_RELIABLE = 0.5  # accuracy from 0, a guess, to 1, always right
_TINY = 1e-12  # a smaller deviation is none

_SHARES = (1 / 3, 1 / 2, 2 / 3)  # θ
_GUESSING = (0.0, 1 / 6, 1 / 2, 5 / 6)  # δ; 0 for a clear item
_STRENGTH, _ACCURACY = 4.0, 0.8  # Beta prior of accuracies
_START = 0.2  # initial share of items that are not clear
_MAX_ITER, _TOLERANCE = 50, 1e-4
_MAX_LABELS, _LAST_ITER = 200_000, 3  # above so many labels, most iterations use a part of them


@dataclass(frozen=True, eq=False, repr=False)
class ItemScores(FrozenArrays, Result):
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
        names = [field.name for field in fields(self) if field.name not in ("items", "notes")]
        columns: dict[str, Array] = {name: getattr(self, name) for name in names}
        return {"item": self.items} | columns

    @property
    def tables(self) -> Mapping[str, Table]:
        """The scores of every item."""
        return {"items": self.table()}

    def sections(self, top: int = 20) -> tuple[Section, ...]:
        """Return the first items, the hard ones first, and the causes of disagreement."""
        from .sections import items_sections

        return items_sections(self, top)

    def as_dict(self) -> dict[str, Any]:
        """Return the columns as plain lists, `None` for NaN."""
        return as_plain(self.table())


def item_scores(
    annotations: Annotations | Any,
    result: ClassAggregation | None = None,
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
    annotations = as_answers(annotations, kind="classes")
    result = check_fitted(annotations, result, seed=seed)
    votes, size = annotations.votes(), annotations.labels_per_item
    causes, cause = item_causes(annotations, result)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.sort(votes, axis=1)[:, ::-1]
        margin = (top[:, 0] - (top[:, 1] if annotations.n_classes > 1 else 0)) / size
        agreement = (votes * (votes - 1)).sum(axis=1) / (size * (size - 1))
    nothing = np.full(annotations.n_items, np.nan)
    return ItemScores(
        items=annotations.items,
        n_labels=size,
        vote_entropy=vote_entropy(annotations, normalized=normalized, corrected=corrected),
        margin=margin,
        agreement=agreement,
        posterior_entropy=entr(result.probabilities).sum(axis=1),
        confidence=result.confidence,
        difficulty=_difficulty(annotations, result, seed) if difficulty else nothing,
        surprise=_surprise(annotations, result),
        item_to_blame=np.where(size > 1, 1 - causes.probability[:, CLEAR], np.nan),
        cause=cause,
    )


def item_causes(
    annotations: Annotations, result: ClassAggregation
) -> tuple[CauseProbabilities, Names]:
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


def _causes(
    annotations: Annotations, result: ClassAggregation, causes: CauseProbabilities
) -> Integers:
    """Return the cause of every item's disagreement, by its index in `CAUSES`."""
    size, uniform = annotations.labels_per_item, 1 / max(annotations.n_classes, 2)
    reliable = (causes.accuracy - uniform) / (1 - uniform) >= _RELIABLE
    votes = by_cell(annotations, reliable[annotations.annotator])  # of reliable annotators
    disputed = (annotations.votes() > 0).sum(axis=1) > 1
    resolved = (votes > 0).sum(axis=1) < 2
    clear, ambiguous, hard = causes.probability.T
    not_clear = np.where(ambiguous >= hard, AMBIGUOUS, HARD)
    uncertain = (clear < 0.5) | (result.posterior.max(axis=1) < _CONFIDENT)
    cause = np.where(disputed & uncertain, not_clear, CLEAR)
    cause = np.where(disputed & resolved & (clear >= 0.5), _UNRELIABLE, cause)
    all_votes = annotations.votes()
    tied = (all_votes == all_votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    cause = np.where(tied & (cause == CLEAR), _SPLIT, cause)
    missing = (result.label >= 0) & (all_votes[np.arange(len(all_votes)), result.label] == 0)
    cause = np.where(missing, _NOBODY, cause)
    return np.where(size == 0, _NONE, np.where(size == 1, _ONE, cause))


def _surprise(annotations: Annotations, result: ClassAggregation) -> Floats:
    """Return by how many deviations labels are less probable than expected: (item)."""
    from ..aggregation.held_out import confusion_from_posterior

    confusion = aggregators.create(result.method).confusion(result.params)
    if confusion is None:
        confusion = confusion_from_posterior(result.answers, result.posterior)
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


def _difficulty(annotations: Annotations, result: ClassAggregation, seed: int) -> Floats:
    """Return GLAD's difficulty of every item; GLAD is fitted unless the result is one."""
    if aggregators.resolve(result.method)[0] != "glad":
        result = aggregators.create("glad").fit(annotations, seed=seed)
    return np.where(annotations.labels_per_item > 0, result.params.difficulty, np.nan)


class CauseProbabilities(NamedTuple):
    """Posterior of the causes, and the fitted accuracies."""

    probability: Floats  # (item, cause): clear, ambiguous, hard; below two labels, clear
    accuracy: Floats  # (annotator)
    trace: tuple[float, ...]  # the log posterior after every iteration


class _FitContext(NamedTuple):
    """Constants of the fit; items with two labels or more."""

    annotations: Annotations
    item: Array  # (annotation)
    cell: Integers  # (annotation): its position in (item, class)
    position: Array  # (annotation): 0 and 1 for the pair's two classes, 2 for any other

    def by_item(self, values: Floats) -> Floats:
        """Return sums over the labels of an item: (item)."""
        return np.add.reduceat(values, self.annotations.index[:-1])  # none is empty

    def of_label(self, first: Floats, second: Floats, neither: Floats) -> Floats:
        """Return the annotator's value for the class of every label: (annotation)."""
        return np.stack([first, second, neither])[self.position, self.annotations.annotator]


class _Posterior(NamedTuple):
    """Posterior of what was perceived."""

    one_class: Floats  # (δ, item, class); δ = 0 if clear
    two_classes: Floats  # (θ, item)
    log_evidence: float


def cause_probabilities(
    annotations: Annotations, accuracy: Floats, prior: Floats
) -> CauseProbabilities:
    """Return the posterior of the causes of every item, and the accuracies of annotators.

    Parameters
    ----------
    annotations
        The annotations.
    accuracy
        Initial accuracies of the annotators.
    prior
        Class prior.
    """
    probability = np.tile([1.0, 0.0, 0.0], (annotations.n_items, 1))
    rows = np.flatnonzero(annotations.labels_per_item > 1)
    if annotations.n_classes < 2 or len(rows) == 0:
        return CauseProbabilities(probability, accuracy, ())
    not_clear, max_iter = _START, _MAX_ITER
    step = -(-len(annotations) // _MAX_LABELS)
    if step > 1:  # start from a fit to a part of the items
        part = _fit_context(annotations.take(rows[::step]), accuracy)
        _, accuracy, not_clear, _ = _fit(
            part, accuracy, prior=prior, not_clear=not_clear, max_iter=_MAX_ITER
        )
        max_iter = _LAST_ITER
    context = _fit_context(annotations.take(rows), accuracy)
    posterior, accuracy, _, trace = _fit(
        context, accuracy, prior=prior, not_clear=not_clear, max_iter=max_iter
    )
    hard = posterior.one_class[1:].sum(axis=(0, 2))
    clear = posterior.one_class[0].sum(axis=1)
    probability[rows] = np.stack([clear, posterior.two_classes.sum(axis=0), hard], axis=1)
    return CauseProbabilities(probability, accuracy, trace)


def _fit(
    context: _FitContext, accuracy: Floats, prior: Floats, not_clear: float, max_iter: int
) -> tuple[_Posterior, Floats, float, tuple[float, ...]]:
    """Return the posterior, accuracies, the share of items that are not clear, and the trace."""
    trace: list[float] = []
    while True:
        posterior = _e_step(context, accuracy, prior, not_clear)
        log_beta = _ACCURACY * np.log(accuracy) + (1 - _ACCURACY) * np.log1p(-accuracy)
        log_prior = _STRENGTH * log_beta.sum() + np.log(not_clear) + np.log1p(-not_clear)
        trace.append(posterior.log_evidence + float(log_prior))
        clear = posterior.one_class[0].sum(axis=1)  # (item)
        updated = _update_accuracy(context, accuracy, posterior)
        share = float((1 - clear).sum() + 1) / (len(clear) + 2)
        change = max(abs(share - not_clear), float(np.abs(updated - accuracy).max()))
        if change < _TOLERANCE or len(trace) == max_iter:
            return posterior, accuracy, not_clear, tuple(trace)
        accuracy, not_clear = updated, share


def _fit_context(annotations: Annotations, accuracy: Floats) -> _FitContext:
    """Return the constants of the fit, with the two classes that better annotators named."""
    uniform = 1 / annotations.n_classes
    better = np.maximum((accuracy - uniform) / (1 - uniform), 0.01)
    support = by_cell(annotations, better[annotations.annotator])
    first = support.argmax(axis=1)
    support[np.arange(annotations.n_items), first] = -1.0
    item, second = annotations.item, support.argmax(axis=1)
    cell = item * np.int64(annotations.n_classes) + annotations.label
    otherwise = np.where(second[item] == annotations.label, 1, 2)
    position = np.where(first[item] == annotations.label, 0, otherwise)
    return _FitContext(annotations, item, cell, position)


def _e_step(context: _FitContext, accuracy: Floats, prior: Floats, not_clear: float) -> _Posterior:
    annotations, n_classes = context.annotations, context.annotations.n_classes
    one_class = np.empty((len(_GUESSING), annotations.n_items, n_classes))
    for position, guessing in enumerate(_GUESSING):
        share = 1 - not_clear if guessing == 0 else not_clear / 2 / (len(_GUESSING) - 1)
        hit, miss = np.log(_given_one(accuracy, guessing, n_classes))
        one_class[position] = by_cell(annotations, (hit - miss)[annotations.annotator])
        one_class[position] += context.by_item(miss[annotations.annotator])[:, None]
        one_class[position] += np.log(prior * share)
    n_pairs = n_classes * (n_classes - 1) / 2
    two_classes = np.empty((len(_SHARES), annotations.n_items))
    for position, share in enumerate(_SHARES):
        log_given = np.log(_given_two(accuracy, share, n_classes))
        two_classes[position] = context.by_item(context.of_label(*log_given))
    two_classes += np.log(not_clear / 2 / len(_SHARES) / n_pairs)
    top = np.maximum(one_class.max(axis=(0, 2)), two_classes.max(axis=0))
    np.exp(one_class - top[:, None], out=one_class)
    np.exp(two_classes - top, out=two_classes)
    total = two_classes.sum(axis=0) + np.einsum("dik->i", one_class)
    one_class /= total[:, None]
    two_classes /= total
    return _Posterior(one_class, two_classes, float((np.log(total) + top).sum()))


def _update_accuracy(context: _FitContext, accuracy: Floats, posterior: _Posterior) -> Floats:
    """Return how often annotators named the class they perceived: (annotator)."""
    annotations, n_classes = context.annotations, context.annotations.n_classes
    annotator, wrong = annotations.annotator, (1 - accuracy) / (n_classes - 1)
    hits = np.zeros(len(annotations))  # probability that the label is the perceived class
    perceived = np.zeros(len(annotations))  # probability that the annotator did not guess
    for guessing, of_class in zip(_GUESSING, posterior.one_class, strict=True):
        hit, miss = _given_one(accuracy, guessing, n_classes)
        as_labelled = of_class.ravel()[context.cell]
        correct = as_labelled * ((1 - guessing) * accuracy / hit)[annotator]
        elsewhere = of_class.sum(axis=1)[context.item] - as_labelled
        hits += correct
        perceived += correct + elsewhere * ((1 - guessing) * wrong / miss)[annotator]
    for share, of_pair in zip(_SHARES, posterior.two_classes, strict=True):
        first, second, neither = _given_two(accuracy, share, n_classes)
        hit = context.of_label(
            share * accuracy / first, (1 - share) * accuracy / second, 0 * neither
        )
        weight = of_pair[context.item]
        hits += weight * hit
        perceived += weight
    total = by_annotator(annotations, perceived) + _STRENGTH
    return (by_annotator(annotations, hits) + _STRENGTH * _ACCURACY) / total


def _given_one(accuracy: Floats, guessing: float, n_classes: int) -> Floats:
    """Return the probability of the perceived class, and of any other: (2, annotator)."""
    wrong = (1 - accuracy) / (n_classes - 1)
    return (1 - guessing) * np.stack([accuracy, wrong]) + guessing / n_classes


def _given_two(accuracy: Floats, share: float, n_classes: int) -> Floats:
    """Return the probability of the first class, the second, and any other: (3, annotator)."""
    wrong = (1 - accuracy) / (n_classes - 1)
    first = share * accuracy + (1 - share) * wrong
    second = (1 - share) * accuracy + share * wrong
    return np.stack([first, second, wrong])
