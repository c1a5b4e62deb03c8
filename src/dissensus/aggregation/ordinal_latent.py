"""Latent: every item lies somewhere on a line, which cuts divide into classes.

The place of an item is drawn from a standard normal distribution. Annotator a sees it at place +
bias[a] + e / sqrt(precision[a]), with e from a standard normal, and names the class between whose
cuts that lies; the cuts are the same for all. The class of an item is the one in which its place
lies. Places live on a grid, so EM needs no other integral: belief about places, then biases and
precisions of annotators, then cuts; the objective never falls. Biases, logarithms of precisions,
the middle of the cuts and the gaps between them, through softplus, have standard normal priors.

    W. Chu, Z. Ghahramani. Gaussian processes for ordinal regression. Journal of Machine Learning
    Research 6, 2005. (The cuts.)

    B. Lakshminarayanan, Y. W. Teh. Inferring ground truth from multi-annotator ordinal data: a
    probabilistic approach. arXiv:1305.0015, 2013. (Annotators with a bias and a precision.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge
from scipy.special import ndtri

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..result import Aggregation
from ._base import Fit
from ._cuts import blocks, chances, cut_better, cuts_of, offsets, see_better
from ._em import EMAggregator, Expected, logs, normalise, share
from ._ordinal import OrdinalAggregator

__all__ = ["Line", "OrdinalLatent", "Seen"]

_REACH = 4.0  # how far the grid of places goes on either side


class Line(NamedTuple):
    """What the model learns."""

    middle: Floats  # (1): mean of the cuts
    gap: Floats  # (threshold - 1): what lies between two cuts, before softplus
    bias: Floats  # (annotator)
    log_precision: Floats  # (annotator)
    position: Floats  # (item): expected under the posterior; NaN where it was not asked for

    @property
    def cuts(self) -> Floats:
        """Where one class ends and the next begins: (threshold)."""
        return cuts_of(self.middle, self.gap)

    @property
    def scale(self) -> Floats:
        """One over the standard deviation of what annotators see: (annotator)."""
        return np.exp(self.log_precision / 2)

    def reindex(self, indices: Integers, n_items: int) -> Line:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        bias, log_precision = (
            np.append(one, one.mean())[indices] for one in (self.bias, self.log_precision)
        )
        return Line(self.middle, self.gap, bias, log_precision, np.full(n_items, np.nan))


class Seen(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the items."""

    given: Floats  # (annotator and given class, node)
    gold: Floats  # (class, node)


@dataclass(frozen=True, kw_only=True)
class OrdinalLatent(OrdinalAggregator, EMAggregator[Line, Seen]):
    """Items on a line that annotators see with bias and noise, fitted with EM.

    Parameters
    ----------
    nodes
        How many places the grid has.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalLatent().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    learns: ClassVar[type] = Line

    nodes: Annotated[int, Ge(5)] = 21

    def infer(self, fit: Fit) -> Aggregation:
        result = super().infer(fit)
        locate = partial(self.locate, params=result.params)
        position = np.concatenate(list(fit.engine.each(locate, fit.parts)))
        return replace(result, params=result.params._replace(position=position))

    def log_joint(self, part: Part, params: Line) -> Floats:
        """Return log P(place, what was said): (item, node)."""
        given = np.log(self.chance(params))
        joint = part.labels @ given.reshape(-1, self.nodes)
        joint += np.log(self.weight)
        if part.gold is not None:
            known = np.flatnonzero(part.gold >= 0)
            joint[known] += np.log(self.truth(params.cuts))[part.gold[known]]
        return joint

    def counts(self, part: Part, posterior: Floats) -> Seen:
        """Return what is learned from a belief about places (item, node)."""
        gold = np.zeros((part.n_classes, self.nodes))
        if part.gold is not None:
            known = np.flatnonzero(part.gold >= 0)
            gold = np.eye(part.n_classes)[part.gold[known]].T @ posterior[known]
        return Seen(part.labels.T @ posterior, gold)

    def expect(self, part: Part, params: Line) -> Expected:
        evidence, posterior = normalise(self.log_joint(part, params))
        posterior[part.blank] = 0.0
        return Expected(evidence, self.counts(part, posterior))

    def believe(self, part: Part, params: Line) -> Floats:
        _, posterior = normalise(self.log_joint(part, params))
        return share(posterior @ self.truth(params.cuts).T)

    def locate(self, part: Part, params: Line) -> Floats:
        """Return the expected places of a part: (item)."""
        return normalise(self.log_joint(part, params))[1] @ self.grid

    def learn(self, part: Part, start: Floats | None) -> Seen:
        posterior = share(part.votes) if start is None else start[part.start : part.stop]
        _, posterior = normalise(logs(posterior), part.allowed)
        posterior[part.blank] = 0.0
        even = _begin(part.n_classes, 0).cuts
        return self.counts(part, posterior @ share(self.truth(even) * self.weight))

    def update(self, counts: Seen, last: Line | None) -> Line:
        n_classes = len(counts.gold)
        given = counts.given.reshape(-1, n_classes, self.nodes)
        params = _begin(n_classes, len(given)) if last is None else last
        everybody = np.concatenate([given, counts.gold[None]])  # the truth sees, too
        for _ in range(5 if last is None else 1):
            bias, log_precision = params.bias.copy(), params.log_precision.copy()
            for block in blocks(given):
                bias[block], log_precision[block] = see_better(
                    given[block], params.cuts, self.grid, bias[block], log_precision[block]
                )
            scale = np.append(np.exp(log_precision / 2), self.sharpest)
            middle, gap = cut_better(
                everybody, params.middle, params.gap, self.grid, np.append(bias, 0.0), scale
            )
            params = Line(middle, gap, bias, log_precision, params.position)
        return params

    def log_prior(self, params: Line) -> float:
        return -0.5 * sum(float(one @ one) for one in params[:4])

    def n_numbers(self, annotations: Annotations) -> int:
        cells = (
            annotations.n_annotators
            * annotations.n_classes
            * max(self.nodes, annotations.n_classes)
        )
        return super().n_numbers(annotations) + annotations.n_items * self.nodes + 4 * cells

    def confusion(self, params: Line) -> Floats:
        positions = share(self.truth(params.cuts) * self.weight)  # (true class, node)
        return share((self.chance(params) @ positions.T).swapaxes(1, 2))

    def quality(self, params: Line, agreement: Floats) -> Floats:
        prior = self.truth(params.cuts) @ self.weight
        return np.einsum("t,att->a", prior, self.confusion(params))

    def chance(self, params: Line) -> Floats:
        """Return how probable every label is at every place: (annotator, given class, node)."""
        out = np.empty((len(params.bias), len(params.cuts) + 1, self.nodes))
        for block in blocks(out):
            off = offsets(params.cuts, self.grid, params.bias[block], params.scale[block])
            out[block] = chances(off)
        return out

    def truth(self, cuts: Floats) -> Floats:
        """Return how probable every class is at every place: (class, node).

        A place stands for all that is nearer to it than to others. So the truth is what somebody
        without bias would say who has the noise of the grid.
        """
        off = offsets(cuts, self.grid, np.zeros(1), np.array([self.sharpest]))
        return chances(off)[0]

    @property
    def grid(self) -> Floats:
        """The places that items may have: (node)."""
        return np.linspace(-_REACH, _REACH, self.nodes)

    @property
    def weight(self) -> Floats:
        """How probable every place is before anything was said: (node)."""
        return share(np.exp(-(self.grid**2) / 2))

    @property
    def sharpest(self) -> float:
        """One over the standard deviation of what is nearest to a place."""
        return float(np.sqrt(12) * (self.nodes - 1) / (2 * _REACH))


def _begin(n_classes: int, n_annotators: int) -> Line:
    """Return equally common classes, and annotators of precision one without bias."""
    cuts = ndtri(np.arange(1, n_classes) / n_classes)
    gap = np.log(np.expm1(np.diff(cuts)))
    zero = np.zeros(n_annotators)
    return Line(np.zeros(min(n_classes - 1, 1)), gap, zero, zero, np.empty(0))
