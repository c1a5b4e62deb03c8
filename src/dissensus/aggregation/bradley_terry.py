"""Bradley and Terry with ties, a preference for one side, and careless annotators.

With d = score[left] - score[right] + side, an honest answer is left, right or a tie with odds

    e^(d/2) : e^(-d/2) : tie

Annotator j answers honestly with probability `honest[j]`, a priori Beta(8, 2), and otherwise by an
own distribution over left, right and tie. Where it is not known what was shown first, no side is
preferred, and own distributions have left and right alike. Scores have a normal prior with
precision `strength`. Every iteration is an E-step, which answers are honest, and one Newton step on
the scores whose Hessian is the Laplacian of a graph. Intervals come from that Hessian; a ranking of
n things counts as n - 1 comparisons there, since its n (n - 1) / 2 pairs are not independent.

When it fails: Where the comparisons fall apart into groups without a link between them, only the
prior orders the groups. One scale cannot express circles such as A over B over C over A.

    R. A. Bradley, M. E. Terry. Rank analysis of incomplete block designs. Biometrika 39, 1952.

    R. R. Davidson. On extending the Bradley-Terry model to accommodate ties in paired comparison
    experiments. Journal of the American Statistical Association 65, 1970.

    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz. Pairwise ranking aggregation in a
    crowdsourced setting. WSDM, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ..answers.rankings import Pairs, Rankings
from ..base.arrays import Floats, Integers
from ..base.iteration import iterate, objective_settles
from ..method import FitContext, Method
from ..params import Count, NonNegative, Positive
from .aggregation import AnswerAggregation
from .rankings import groups, rankings_result

_SMALL = 200  # things up to which the Hessian is dense
_DENSE = 2500  # things up to which it is inverted
_PROBES = 40  # random vectors that estimate its inverse's diagonal above that
_LONGEST = 2.0  # step of a score
_RTOL = 1e-4  # of a Newton step, which the next one mends
_HALVINGS = 12
_PSEUDO = 5.0  # answers added to the own distribution of an annotator
_TIES = 0.5  # pseudo-count of ties


class Scores(NamedTuple):
    """Parameters, and what they say about the answers."""

    score: Floats  # (thing)
    side: float
    log_tie: float
    honest: Floats  # (annotator)
    own: Floats  # (annotator, outcome): left, right, tie
    likely: Floats  # (pair, outcome): the probability of every outcome, if honest
    weight: Floats  # (pair): the probability that the answer is honest
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class BradleyTerry(Method[Rankings, AnswerAggregation]):
    """Scores of things from comparisons with ties, side preference and careless annotators.

    Parameters
    ----------
    ties
        Whether ties are modelled; otherwise a tie is half a win of both.
    side
        Whether one side may be preferred.
    honest
        Whether annotators may be careless.
    honest_yes, honest_no
        Beta prior of an annotator's share of honest answers.
    strength
        Precision of the normal prior of scores.
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    """

    ties: bool = True
    side: bool = True
    honest: bool = True
    honest_yes: Positive = 8.0
    honest_no: Positive = 2.0
    strength: Positive = 0.3
    max_iter: Count = 200
    tol: NonNegative = 1e-6

    def infer(self, fit: FitContext[Rankings]) -> AnswerAggregation:
        answers: Rankings = fit.answers
        pairs, annotator = answers.pairs(), answers.annotator.astype(np.int64)
        model = _Model(
            settings=self,
            pairs=pairs,
            annotator=annotator[pairs.answer],
            n_things=answers.n_things,
            n_annotators=answers.n_annotators,
        )
        reached, trace, converged = iterate(
            model.first(),
            model.advance,
            objective_settles(self.tol),
            max_iter=self.max_iter,
            progress=fit.progress,
        )
        deviation = _deviations(*model.curvature(reached)[1:], self.strength)
        # Scores have mean zero in a group, and the prior is all that is known of their mean.
        group = groups(pairs, answers.n_things)[0]
        shift = 1 / (self.strength * np.bincount(group)[group])
        deviation = np.sqrt(np.maximum(deviation**2 - shift, 0.0))
        deviation *= np.sqrt(len(pairs.left) / max(int(np.maximum(answers.sizes - 1, 0).sum()), 1))
        honest = np.where(answers.labels_per_annotator > 0, reached.honest, np.nan)
        annotators: dict[str, Any] = {"honest": honest}
        n_pairs = np.bincount(model.annotator, minlength=answers.n_annotators)
        for name, outcome in (("left", 0), ("ties", 2)):
            n_outcomes = np.bincount(
                model.annotator, pairs.outcome == outcome, minlength=answers.n_annotators
            )
            annotators[name] = np.divide(
                n_outcomes, n_pairs, out=np.full(len(n_pairs), np.nan), where=n_pairs > 0
            )
        params = {
            "score": reached.score,
            "side": np.array(reached.side),
            "tie": np.array(np.exp(reached.log_tie)),
            "honest": reached.honest,
            "own": reached.own,
        }
        return rankings_result(
            self,
            fit,
            score=reached.score,
            deviation=deviation,
            annotators=annotators,
            params=params,
            trace=trace,
            converged=converged,
        )


@dataclass(frozen=True, eq=False)
class _Model:
    """The likelihood of comparisons."""

    settings: BradleyTerry
    pairs: Pairs
    annotator: Integers  # (pair)
    n_things: int
    n_annotators: int

    @cached_property
    def shown(self) -> bool:
        """Whether it is known what was shown first."""
        return bool((self.pairs.outcome == 1).any())

    @cached_property
    def shares(self) -> Floats:
        """The outcomes of all answers: (outcome)."""
        shares = np.bincount(self.pairs.outcome, minlength=3) + 0.5
        return self._without_side(shares / shares.sum())

    def _without_side(self, own: Floats) -> Floats:
        """Return distributions over outcomes, with left and right alike where no side is known."""
        if self.shown:
            return own
        middle = own[..., :2].mean(axis=-1, keepdims=True)
        return np.concatenate([middle, middle, own[..., 2:]], axis=-1)

    @property
    def side(self) -> bool:
        """Whether a side may be preferred."""
        return self.settings.side and self.shown

    def first(self) -> Scores:
        shares = self.shares
        own = np.tile(shares, (self.n_annotators, 1))
        yes, no = self.settings.honest_yes, self.settings.honest_no
        mean = yes / (yes + no) if self.settings.honest else 1.0
        log_tie = float(np.log(max(shares[2] / (shares[0] + shares[1]) * 2, 1e-3)))
        honest, nothing = np.full(self.n_annotators, mean), np.zeros(0)
        return self.expect(
            Scores(
                score=np.zeros(self.n_things),
                side=0.0,
                log_tie=log_tie,
                honest=honest,
                own=own,
                likely=nothing,
                weight=nothing,
            )
        )

    @cached_property
    def ties(self) -> bool:
        """Whether ties are modelled."""
        return self.settings.ties and bool((self.pairs.outcome == 2).any())

    def outcomes(self, state: Scores) -> Floats:
        """Return the probabilities of left, right and tie if honest: (pair, outcome)."""
        d = state.score[self.pairs.left] - state.score[self.pairs.right] + state.side
        odds = np.zeros((len(d), 3))
        np.exp(np.clip(d / 2, -350, 350), out=odds[:, 0])
        np.divide(1, odds[:, 0], out=odds[:, 1])
        if self.ties:
            odds[:, 2] = np.exp(state.log_tie)
        odds /= np.einsum("po->p", odds)[:, None]
        return odds

    def expect(self, state: Scores) -> Scores:
        """Return the state with what it says about the answers, and the objective."""
        p, outcome = self.outcomes(state), self.pairs.outcome
        likely = np.take_along_axis(p, outcome[:, None], axis=1)[:, 0]
        if not self.ties:  # a tie is half a win of both
            likely = np.where(outcome == 2, np.sqrt(p[:, 0] * p[:, 1]), likely)
        prior = -0.5 * self.settings.strength * float(state.score @ state.score)
        if self.ties:
            prior += _TIES * (state.log_tie - 2 * np.log1p(np.exp(state.log_tie)))
        if not self.settings.honest:
            objective = float(np.log(likely).sum()) + prior
            return state._replace(likely=p, weight=np.ones(len(outcome)), objective=objective)
        likely *= state.honest[self.annotator]
        careless = (1 - state.honest)[:, None] * state.own
        total = likely + careless.ravel()[self.cell]
        yes, no = self.settings.honest_yes - 1, self.settings.honest_no - 1
        prior += float((yes * np.log(state.honest) + no * np.log1p(-state.honest)).sum())
        prior += float((_PSEUDO * self.shares * np.log(state.own)).sum())
        objective = float(np.log(total).sum()) + prior
        return state._replace(likely=p, weight=likely / total, objective=objective)

    @cached_property
    def cell(self) -> Integers:
        """The cell of every answer in a table (annotator, outcome)."""
        return self.annotator * 3 + self.pairs.outcome

    def advance(self, last: Scores) -> Scores:
        gradient, laplacian, curve = self.curvature(last)
        step = _solve(laplacian, curve, self.settings.strength, gradient)
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max(initial=0)), 1e-12))
        latest = self._others(last)
        for halvings in range(_HALVINGS):
            moved = self.expect(_moved(latest, last, step / 2**halvings, self.side))
            if moved.objective >= last.objective:
                return moved
        moved = self.expect(_moved(latest, last, 0 * step, self.side))
        return moved if moved.objective >= last.objective else last

    def curvature(self, state: Scores) -> tuple[Floats, sparse.csr_array[Any, Any], Floats]:
        """Return gradient, (thing and side), weights of the graph's edges and of the side."""
        p, weight, outcome = state.likely, state.weight, self.pairs.outcome
        won = np.where(outcome == 2, 0.5, outcome == 0)
        mean = p[:, 0] + p[:, 2] / 2
        slope = weight * (won - mean)
        edge = weight * np.maximum(p[:, 0] + p[:, 2] / 4 - mean**2, 1e-12)
        n = self.n_things
        pull = np.bincount(self.pairs.left, slope, n) - np.bincount(self.pairs.right, slope, n)
        gradient = pull - self.settings.strength * state.score
        side = float(slope.sum()) if self.side else 0.0
        laplacian = sparse.coo_array((edge, (self.pairs.left, self.pairs.right)), shape=(n, n))
        links = (laplacian + laplacian.T).tocsr()
        lean = np.bincount(self.pairs.left, edge, n) - np.bincount(self.pairs.right, edge, n)
        curve = np.append(lean, edge.sum()) if self.side else np.zeros(n + 1)
        return np.append(gradient, side), links, curve

    def _others(self, last: Scores) -> Scores:
        """Return the next tie, honest shares and own distributions."""
        settings, weight, log_tie = self.settings, last.weight, last.log_tie
        if self.ties:
            tied, tie = float(weight[self.pairs.outcome == 2].sum()) + _TIES, last.likely[:, 2]
            for _ in range(3):
                factor = np.exp(log_tie - last.log_tie)  # of the odds of a tie
                expected = float(weight @ (factor * tie / (1 + tie * (factor - 1))))
                log_tie += float(np.log(tied / (expected + _TIES)))
        if not settings.honest:
            return last._replace(log_tie=log_tie)
        n = self.n_annotators
        n_pairs = np.bincount(self.annotator, minlength=n)
        yes, no = settings.honest_yes - 1, settings.honest_no - 1
        honest = (np.bincount(self.annotator, weight, n) + yes) / (n_pairs + yes + no)
        own = np.bincount(self.cell, 1 - weight, 3 * n).reshape(n, 3) + _PSEUDO * self.shares
        own = self._without_side(own / own.sum(axis=1, keepdims=True))
        return last._replace(log_tie=log_tie, honest=np.clip(honest, 1e-6, 1 - 1e-6), own=own)


def _moved(latest: Scores, last: Scores, step: Floats, side: bool) -> Scores:
    """Return the state after a step of scores and side."""
    moved = last.side + float(step[-1]) if side else 0.0
    return latest._replace(score=last.score + step[:-1], side=moved)


def _solve(
    links: sparse.csr_array[Any, Any], curve: Floats, strength: float, gradient: Floats
) -> Floats:
    """Return the Newton step of scores and side: (thing and side)."""
    n = links.shape[0]
    diagonal = np.asarray(links.sum(axis=1)).ravel() + strength
    lean, total = curve[:-1], max(float(curve[-1]), 1e-9)

    def apply(vector: Floats) -> Floats:
        top = diagonal * vector[:-1] - links @ vector[:-1] + lean * vector[-1]
        return np.append(top, lean @ vector[:-1] + total * vector[-1])

    if n <= _SMALL:
        return np.asarray(np.linalg.solve(_hessian(links, curve, strength), gradient), np.float64)
    weights = 1 / np.append(diagonal, total)
    size = (n + 1, n + 1)
    conditioned = LinearOperator(size, lambda vector: weights * vector.ravel(), dtype=float)
    operator = LinearOperator(size, lambda vector: apply(vector.ravel()), dtype=float)
    return cg(operator, gradient, rtol=_RTOL, maxiter=500, M=conditioned)[0]


def _hessian(links: sparse.csr_array[Any, Any], curve: Floats, strength: float) -> Floats:
    """Return the Hessian of scores and side: (thing and side, thing and side)."""
    n = links.shape[0]
    hessian = np.zeros((n + 1, n + 1))
    hessian[:n, :n] = np.diag(np.asarray(links.sum(axis=1)).ravel() + strength) - links.toarray()
    hessian[:n, n] = hessian[n, :n] = curve[:-1]
    hessian[n, n] = max(float(curve[-1]), 1e-9)
    return hessian


def _deviations(links: sparse.csr_array[Any, Any], curve: Floats, strength: float) -> Floats:
    """Return the standard deviations of scores: (thing)."""
    n = links.shape[0]
    if n <= _DENSE:
        inverse = np.linalg.inv(_hessian(links, curve, strength))
        return np.sqrt(np.maximum(np.diag(inverse)[:n], 0))
    rng = np.random.default_rng(0)
    total = np.zeros(n)
    for _ in range(_PROBES):
        probe = np.append(rng.choice([-1.0, 1.0], n), 0.0)
        total += probe[:n] * _solve(links, curve, strength, probe)[:n]
    least = 1 / (np.asarray(links.sum(axis=1)).ravel() + strength)  # of the inverse's diagonal
    return np.sqrt(np.maximum(total / _PROBES, least))
