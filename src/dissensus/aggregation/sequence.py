"""Sequence: the tags of a text form a chain, and annotators depend on their own last tag.

The chain is worked on for many texts at once, position by position: forward-backward for posteriors
of tags, Viterbi for the best sequence. Sequences lie one after the other in arrays of tokens. They
are visited from the longest, so those that reach a position are always the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import psi

from ..answers.marks import Spans
from ..base.arrays import Array, Floats, Integers, count_up
from ..base.iteration import iterate, objective_settles
from ..base.probability import expected_log, label_temperature, negative_kl, temper
from ..method import FitContext, Method
from ..params import Count, NonNegative, Positive
from .aggregation import AnswerAggregation

_OUTSIDE = (
    0  # the first tag; then beginning and inside of the first label, of the second, and so on
)


class Smoothed(NamedTuple):
    """What follows from the emissions of all sequences."""

    evidence: float  # log, summed
    state: Floats  # (token, state): posterior
    moves: Floats  # (state, next state): expected number of transitions
    ahead: Floats  # (token, state): likelihood of the token and all after it, up to a factor


@dataclass(frozen=True)
class Chain:
    """The positions of tokens in their sequences."""

    length: Integers  # (sequence): at least 1

    @property
    def first(self) -> Integers:
        """The first token of every sequence."""
        return np.cumsum(self.length) - self.length

    def steps(self) -> Iterator[Integers]:
        """Yield the tokens at every position, in the order of sequences from the longest."""
        order = np.argsort(-self.length, kind="stable")
        begins, length = self.first[order], self.length[order]
        for position in range(int(length[0]) if len(length) else 0):
            yield begins[: np.searchsorted(-length, -position)] + position

    def smooth(self, emission: Floats, start: Floats, move: Floats) -> Smoothed:
        """Return posteriors from log emissions, (token, state), and weights of start and moves."""
        highest = emission.max(axis=1, keepdims=True)
        likelihood = np.exp(emission - highest)
        forward, scale = np.empty_like(likelihood), np.empty(len(likelihood))
        steps = list(self.steps())
        for position, tokens in enumerate(steps):
            predicted = start if position == 0 else forward[tokens - 1] @ move
            forward[tokens] = predicted * likelihood[tokens]
            scale[tokens] = forward[tokens].sum(axis=1)
            forward[tokens] /= scale[tokens, None]
        ahead, moves = (
            likelihood / scale[:, None],
            np.zeros_like(move),
        )  # last tokens: nothing follows
        for tokens in steps[:0:-1]:
            moves += forward[tokens - 1].T @ ahead[tokens]
            ahead[tokens - 1] *= ahead[tokens] @ move.T
        state = forward * ahead * scale[:, None] / np.where(likelihood > 0, likelihood, 1.0)
        evidence = float(np.log(scale).sum() + highest.sum())
        return Smoothed(evidence, state, moves * move, ahead)

    def best(self, emission: Floats, start: Floats, move: Floats) -> Integers:
        """Return the most probable states of all tokens, by Viterbi."""
        with np.errstate(divide="ignore"):
            log_start, log_move = np.log(start), np.log(move)
        score, origin = np.empty_like(emission), np.zeros(emission.shape, dtype=np.int64)
        steps = list(self.steps())
        for position, tokens in enumerate(steps):
            if position == 0:
                score[tokens] = log_start + emission[tokens]
                continue
            paths = score[tokens - 1][:, :, None] + log_move  # (sequence, state, next state)
            origin[tokens] = paths.argmax(axis=1)
            score[tokens] = paths.max(axis=1) + emission[tokens]
        state = np.zeros(len(emission), dtype=np.int64)
        last = self.first + self.length - 1
        state[last] = score[last].argmax(axis=1)
        for tokens in steps[:0:-1]:
            state[tokens - 1] = origin[tokens, state[tokens]]
        return state


class Tags(NamedTuple):
    """Spans as tags of tokens."""

    chain: Chain  # over the items with marks
    item: Integers  # (sequence)
    labels: sparse.csr_array[Any, Any]  # (token, annotator and last tag and tag)
    gold: Integers  # (token): the known tag, or -1
    n_tags: int

    @property
    def legal(self) -> Array:
        """Which tag may follow which: (tag, next tag)."""
        tag = np.arange(self.n_tags)
        inside = (tag > 0) & (tag % 2 == 0)
        follows = (tag[:, None] == tag) | (tag[:, None] == tag - 1)
        return ~inside | follows


class State(NamedTuple):
    """The Dirichlet counts of all parameters, and what follows from those before."""

    start: Floats  # (tag)
    move: Floats  # (tag, next tag)
    labels: Floats  # (annotator, last tag, given tag, true tag)
    smoothed: Smoothed | None
    objective: float


@dataclass(frozen=True, kw_only=True)
class Sequence(Method[Spans, AnswerAggregation]):
    """A chain of tags, with annotators who depend on their own last tag.

    Sequence: the tags of a text form a chain, and annotators depend on their own last tag.

    Spans without overlaps are tags of tokens: outside, or beginning or inside of a label. True tags
    form a Markov chain in which a tag inside follows only the beginning or inside of the same
    label. An annotator's tag depends on the true tag and on the tag they gave before. Transitions
    and annotators have Dirichlet priors; the fit is variational Bayes with forward-backward over
    whole texts, and the spans are the most probable sequence. Where marks within an answer overlap,
    the later one counts.

        P(tags, labels) = Π_n P(tag[n] | tag[n-1]) Π_a P(label[a, n] | tag[n], label[a, n-1])

    When it fails: Overlapping or nested spans cannot be expressed, and with few texts the matrices
    of rare labels are their prior.

        E. Simpson, I. Gurevych. A Bayesian approach for sequence tagging with crowds. EMNLP, 2019.
        doi:10.18653/v1/D19-1101

    Parameters
    ----------
    smoothing
        Pseudo-count of every cell.
    right
        Further pseudo-count of the right tag.
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.

    Examples
    --------
    >>> spans = Spans.from_columns("aaabbb", "xyzxyz", [0, 0, 1, 5, 5, 5], [2, 2, 2, 7, 7, 7])
    >>> table = Sequence().fit(spans).items
    >>> table["start"].tolist(), table["end"].tolist()
    ([0, 5], [2, 7])
    """

    smoothing: Positive = 0.1
    right: NonNegative = 1.0
    max_iter: Count = 100
    tol: NonNegative = 1e-6

    def infer(self, fit: FitContext[Spans]) -> AnswerAggregation:
        answers = fit.answers
        tags = tags_of(answers, fit.gold)
        if len(tags.chain.length) == 0:
            return self._result(fit, tags, np.zeros((0, 4), np.int64), np.zeros(0))
        state, trace, converged = iterate(
            self._start(tags, answers.n_annotators),
            lambda last: self._advance(tags, last),
            objective_settles(self.tol),
            max_iter=self.max_iter,
            progress=fit.progress,
        )
        start, move, emission = self._weights(tags, state)
        smoothed = tags.chain.smooth(emission, start, move)
        spans = spans_of(tags.chain, tags.chain.best(emission, start, move))
        sure = span_posterior(tags.chain, smoothed, move, spans)
        params = {"start": state.start, "move": state.move, "given": state.labels}
        fitted = {"params": params, "trace": trace, "converged": converged}
        return self._result(fit, tags, spans, sure, **fitted)

    def _start(self, tags: Tags, n_annotators: int) -> State:
        """Return the counts under the shares of votes for every token."""
        n = tags.n_tags
        votes = tags.labels @ np.tile(np.eye(n), (n_annotators * (n + 1), 1))
        votes[tags.gold >= 0] = np.eye(n)[tags.gold[tags.gold >= 0]]
        state = votes / votes.sum(axis=1, keepdims=True)
        is_first = np.zeros(len(state), dtype=bool)
        is_first[tags.chain.first] = True
        later = np.flatnonzero(~is_first)
        return self._update(
            tags, state, moves=state[later - 1].T @ state[later], objective=np.nan, smoothed=None
        )

    def _update(
        self, tags: Tags, state: Floats, moves: Floats, objective: float, smoothed: Smoothed | None
    ) -> State:
        """Return the counts with those of the prior added; illegal moves have none."""
        n, legal = tags.n_tags, tags.legal
        tag_counts = (tags.labels.T @ state).reshape(-1, n + 1, n, n) + self._prior(n)
        start = np.where(legal[_OUTSIDE], state[tags.chain.first].sum(axis=0) + self.smoothing, 0.0)
        move = np.where(legal, moves + self.smoothing, 0.0)
        return State(
            start=start, move=move, labels=tag_counts, smoothed=smoothed, objective=objective
        )

    def _prior(self, n_tags: int) -> Floats:
        """Return the pseudo-counts of annotators: (given tag, true tag)."""
        return self.smoothing + self.right * np.eye(n_tags)

    def _weights(self, tags: Tags, state: State) -> tuple[Floats, Floats, Floats]:
        """Return weights of start and moves, and log emissions: (token, true tag)."""
        start, move = (_expected_weights(counts) for counts in (state.start, state.move))
        log_given = expected_log(state.labels, axis=2).reshape(-1, tags.n_tags)
        emission = tags.labels @ log_given
        gold_tokens = np.flatnonzero(tags.gold >= 0)
        sure = np.full((len(gold_tokens), tags.n_tags), -np.inf)
        at = np.arange(len(gold_tokens)), tags.gold[gold_tokens]
        sure[at] = emission[gold_tokens, tags.gold[gold_tokens]]
        emission[gold_tokens] = sure
        return start, move, emission

    def _advance(self, tags: Tags, last: State) -> State:
        start, move, emission = self._weights(tags, last)
        smoothed = tags.chain.smooth(emission, start, move)
        objective = smoothed.evidence + negative_kl(
            last.labels, np.broadcast_to(self._prior(tags.n_tags), last.labels.shape), axis=2
        )
        for counts in (last.start[None], last.move):
            for row in counts:
                legal = row[row > 0]
                objective += negative_kl(legal, np.full(len(legal), self.smoothing))
        return self._update(
            tags, smoothed.state, moves=smoothed.moves, objective=objective, smoothed=smoothed
        )

    def _result(
        self, fit: FitContext[Spans], tags: Tags, spans: Integers, sure: Floats, **fitted: Any
    ) -> AnswerAggregation:
        """Return the spans, (sequence, start, end, label), as a result."""
        answers: Spans = fit.answers
        free = ~fit.known[tags.item[spans[:, 0]]]
        item, place, label = (
            tags.item[spans[free, 0]],
            spans[free, 1:3].astype(float),
            spans[free, 3],
        )
        odds = np.column_stack([sure, 1 - sure])[free]
        confidence = temper(odds, label_temperature(answers.labels_per_item[item]))[:, 0]
        if fit.gold is not None:
            item, place = (
                np.concatenate([item, fit.gold.mark_item]),
                np.vstack([place, fit.gold.place]),
            )
            label = np.concatenate([label, answers.label_codes(fit.gold)])
            confidence = np.concatenate([confidence, np.ones(fit.gold.n_elements)])
        order = np.lexsort((label, *place.T[::-1], item))
        item, place, label = item[order], place[order], label[order]
        marked, exact = _exact_marks(answers, item, place)
        table = answers.table_of(item, place, label) | {
            "confidence": confidence[order],
            "n_marked": marked,
            "n_looked": answers.labels_per_item[item],
        }
        annotator, size = answers.annotator, answers.n_annotators
        n_spans = np.bincount(item, minlength=answers.n_items)[answers.item]
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN for those who never looked
            found_share = np.bincount(annotator[answers.answer], exact, minlength=size)
            spurious = np.bincount(annotator[answers.answer], ~exact, minlength=size)
            people = {
                "found": found_share / np.bincount(annotator, n_spans, minlength=size),
                "spurious": spurious / answers.labels_per_annotator,
            }
        return AnswerAggregation.of(self, fit, table, people, **fitted)


def tags_of(spans: Spans, gold: Spans | None) -> Tags:
    """Return spans as tags; of marks that overlap within an answer, the later counts."""
    n_tags = 1 + 2 * len(spans.classes)
    length = np.zeros(spans.n_items, dtype=np.int64)
    for marks in (spans,) if gold is None else (spans, gold):
        np.maximum.at(length, marks.mark_item, marks.place[:, 1].astype(np.int64))
    item = np.flatnonzero(length)
    begins = np.cumsum(length) - length  # token of every item
    size = length[spans.item]  # of every answer
    tag = _tag_tokens(spans, np.cumsum(size) - size, spans.label, int(size.sum()))
    previous = np.concatenate([[n_tags], tag[:-1]]) if len(tag) else tag
    position = count_up(size)
    previous[position == 0] = n_tags
    annotator = np.repeat(spans.annotator.astype(np.int64), size)
    column = (annotator * (n_tags + 1) + previous) * n_tags + tag
    token = np.repeat(begins[spans.item], size) + position
    shape = (int(length.sum()), spans.n_annotators * (n_tags + 1) * n_tags)
    labels = sparse.csr_array((np.ones(len(token)), (token, column)), shape=shape)
    gold_tag = np.full(shape[0], -1)
    if gold is not None:
        size = length[gold.item]
        rows = np.repeat(begins[gold.item], size) + count_up(size)
        codes = spans.label_codes(gold)
        gold_tag[rows] = _tag_tokens(gold, np.cumsum(size) - size, codes, int(size.sum()))
    return Tags(chain=Chain(length[item]), item=item, labels=labels, gold=gold_tag, n_tags=n_tags)


def _tag_tokens(spans: Spans, begins: Integers, label: Array, n_tokens: int) -> Integers:
    """Return the tag of every token of every answer, given the answers' first tokens."""
    start, end = spans.place.astype(np.int64).T
    size = end - start
    at = np.repeat(begins[spans.answer] + start, size) + count_up(size)
    tag = np.full(n_tokens, _OUTSIDE, dtype=np.int64)
    begin = 1 + 2 * label.astype(np.int64)
    tag[at] = np.repeat(begin, size) + (count_up(size) > 0)
    return tag


def spans_of(chain: Chain, tag: Integers) -> Integers:
    """Return the spans of legal tags: (span; sequence, start, end, label)."""
    sequence = np.repeat(np.arange(len(chain.length)), chain.length)
    begin = np.flatnonzero(tag % 2 == 1)
    ends = np.flatnonzero((tag == _OUTSIDE) | (tag % 2 == 1))  # what ends a span before it
    ends = np.union1d(ends, np.append(chain.first, len(tag)))
    stop = ends[np.searchsorted(ends, begin, side="right")]
    begins = chain.first[sequence[begin]]
    return np.column_stack([sequence[begin], begin - begins, stop - begins, (tag[begin] - 1) // 2])


def span_posterior(chain: Chain, smoothed: Smoothed, move: Floats, spans: Integers) -> Floats:
    """Return the posterior probability that exactly these spans are there.

    Given all answers the chain is still a Markov chain, forwards, with moves that `ahead` weighs.
    """
    sequence, start, end, label = spans.T
    begin, inside = 1 + 2 * label, 2 + 2 * label
    begins = chain.first[sequence]
    probability = smoothed.state[begins + start, begin].copy()
    last = begin
    for step in range(1, int((end - start).max(initial=0)) + 1):
        token = begins + start + step
        open_ = np.flatnonzero((start + step <= end) & (start + step < chain.length[sequence]))
        ahead = smoothed.ahead[token[open_]]
        weight = move[last[open_]] * ahead  # (span, next tag)
        goes_on = weight[np.arange(len(open_)), inside[open_]] / weight.sum(axis=1)
        within = (start + step < end)[open_]
        probability[open_] *= np.where(within, goes_on, 1 - goes_on)
        last = inside
    return probability


def _expected_weights(counts: Floats) -> Floats:
    """Return exp E[log] of Dirichlets along the last axis; zero where the count is."""
    safe = np.where(counts > 0, counts, 1.0)
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(counts > 0, np.exp(psi(safe) - psi(total)), 0.0)


def _exact_marks(answers: Spans, item: Integers, place: Floats) -> tuple[Integers, Array]:
    """Return how often each span was marked, and which marks are one of the spans."""
    keys = np.vstack(
        [np.column_stack([item, place]), np.column_stack([answers.mark_item, answers.place])]
    )
    group = np.unique(keys, axis=0, return_inverse=True)[1]
    inferred, marked = group[: len(item)], group[len(item) :]
    times = np.bincount(marked, minlength=int(group.max(initial=-1)) + 1)
    return times[inferred], np.isin(marked, inferred)
