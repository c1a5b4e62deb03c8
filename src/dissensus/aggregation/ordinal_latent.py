"""Ordinal latent: items have latent positions, which cuts divide into classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import ndtri

from ..base.probability import log_normalize, normalize, safe_log
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations, Part
from ..result import Aggregation
from ..method import FitContext
from ._cuts import blocks, cuts_of, label_probabilities, offsets, update_annotators, update_cuts
from .em import EMAggregator, Expected
from ._ordinal import OrdinalAggregator

_REACH = 4.0  # the grid of positions goes from minus this to this


class LatentParams(NamedTuple):
    """Parameters of the model."""

    middle: Floats  # (1): mean of the cuts
    gap: Floats  # (threshold - 1): distance of two cuts, before softplus
    bias: Floats  # (annotator)
    log_precision: Floats  # (annotator)
    position: Floats  # (item): posterior mean; NaN for items that were not in the fit

    @property
    def cuts(self) -> Floats:
        """Where one class ends and the next begins: (threshold)."""
        return cuts_of(self.middle, self.gap)

    @property
    def scale(self) -> Floats:
        """One over the standard deviation of annotators' noise: (annotator)."""
        return np.exp(self.log_precision / 2)

    def reindex(self, indices: Integers, n_items: int) -> LatentParams:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        bias, log_precision = (
            np.append(one, one.mean())[indices] for one in (self.bias, self.log_precision)
        )
        return LatentParams(self.middle, self.gap, bias, log_precision, np.full(n_items, np.nan))


class NodeCounts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    given: Floats  # (annotator and given class, node)
    gold: Floats  # (class, node)


@dataclass(frozen=True, kw_only=True)
class OrdinalLatent(OrdinalAggregator, EMAggregator[LatentParams, NodeCounts]):
    """Latent positions of items, perceived with bias and noise, fitted with EM.

    Ordinal latent: items have latent positions, which cuts divide into classes.

    The position of an item is drawn from a standard normal distribution. Annotator a perceives it
    as position + bias[a] + e / sqrt(precision[a]), with e standard normal, and names the class
    between whose cuts that lies; the cuts are the same for all. The class of an item is the one in
    which its position lies. Positions are discretized on a grid, so the E-step is a sum. Biases,
    log precisions, the middle of the cuts and the gaps between them, through softplus, have
    standard normal priors. The objective never falls.

        perceived[i, a] = position[i] + bias[a] + e / sqrt(precision[a])
        label[i, a] = the class between whose cuts perceived[i, a] lies

    When it fails: On classes without an order, and where the scale has two meanings, as "neutral"
    and "does not apply" in one class. It is slow: minutes where others take a second.

        W. Chu, Z. Ghahramani. Gaussian processes for ordinal regression. Journal of Machine
        Learning Research 6, 2005. (The cuts.)

        B. Lakshminarayanan, Y. W. Teh. Inferring ground truth from multi-annotator ordinal data: a
        probabilistic approach. arXiv:1305.0015, 2013. (Annotators with a bias and a precision.)

    Parameters
    ----------
    nodes
        Number of nodes of the grid.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalLatent().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    params_type: ClassVar[type] = LatentParams

    nodes: Annotated[int, Interval(ge=5, le=1000)] = 21

    def infer(self, fit: FitContext) -> Aggregation:
        result = super().infer(fit)
        locate = partial(self.locate, params=result.params)
        position = np.concatenate(list(fit.engine.each(locate, fit.parts)))
        return replace(result, params=result.params._replace(position=position))

    def log_joint(self, part: Part, params: LatentParams) -> Floats:
        """Return log P(position, labels): (item, node)."""
        given = np.log(self.given_position(params))
        joint = part.labels @ given.reshape(-1, self.nodes)
        joint += np.log(self.weight)
        if part.gold is not None:
            known = np.flatnonzero(part.gold >= 0)
            joint[known] += np.log(self.truth(params.cuts))[part.gold[known]]
        return joint

    def counts(self, part: Part, posterior: Floats) -> NodeCounts:
        """Return counts under a posterior of positions, (item, node)."""
        gold = np.zeros((part.n_classes, self.nodes))
        if part.gold is not None:
            known = np.flatnonzero(part.gold >= 0)
            gold = np.eye(part.n_classes)[part.gold[known]].T @ posterior[known]
        return NodeCounts(part.labels.T @ posterior, gold)

    def e_step(self, part: Part, params: LatentParams) -> Expected:
        evidence, posterior = log_normalize(self.log_joint(part, params))
        posterior[part.blank] = 0.0
        return Expected(evidence, self.counts(part, posterior))

    def part_posterior(self, part: Part, params: LatentParams) -> Floats:
        _, posterior = log_normalize(self.log_joint(part, params))
        return normalize(posterior @ self.truth(params.cuts).T)

    def locate(self, part: Part, params: LatentParams) -> Floats:
        """Return the posterior mean of positions: (item)."""
        return log_normalize(self.log_joint(part, params))[1] @ self.grid

    def initial_counts(self, part: Part, posterior: Floats) -> NodeCounts:
        _, posterior = log_normalize(safe_log(posterior), part.allowed)
        posterior[part.blank] = 0.0
        even = _first_params(part.n_classes, 0).cuts
        return self.counts(part, posterior @ normalize(self.truth(even) * self.weight))

    def update(self, counts: NodeCounts, last: LatentParams | None) -> LatentParams:
        n_classes = len(counts.gold)
        given = counts.given.reshape(-1, n_classes, self.nodes)
        params = _first_params(n_classes, len(given)) if last is None else last
        with_gold = np.concatenate([given, counts.gold[None]])
        for _ in range(5 if last is None else 1):
            bias, log_precision = params.bias.copy(), params.log_precision.copy()
            for block in blocks(given):
                bias[block], log_precision[block] = update_annotators(
                    given[block], params.cuts, self.grid, bias[block], log_precision[block]
                )
            scale = np.append(np.exp(log_precision / 2), self.sharpest)
            middle, gap = update_cuts(
                with_gold, params.middle, params.gap, self.grid, np.append(bias, 0.0), scale
            )
            params = LatentParams(middle, gap, bias, log_precision, params.position)
        return params

    def log_prior(self, params: LatentParams) -> float:
        return -0.5 * sum(float(one @ one) for one in params[:4])

    def n_floats(self, annotations: Annotations) -> int:
        width = max(self.nodes, annotations.n_classes)
        cells = annotations.n_annotators * annotations.n_classes * width
        return super().n_floats(annotations) + annotations.n_items * self.nodes + 4 * cells

    def confusion(self, params: LatentParams) -> Floats:
        positions = normalize(self.truth(params.cuts) * self.weight)  # (true class, node)
        return normalize((self.given_position(params) @ positions.T).swapaxes(1, 2))

    def quality(self, params: LatentParams, agreement: Floats) -> Floats:
        prior = self.truth(params.cuts) @ self.weight
        return np.einsum("t,att->a", prior, self.confusion(params))

    def given_position(self, params: LatentParams) -> Floats:
        """Return P(label | position): (annotator, given class, node)."""
        out = np.empty((len(params.bias), len(params.cuts) + 1, self.nodes))
        for block in blocks(out):
            off = offsets(params.cuts, self.grid, params.bias[block], params.scale[block])
            out[block] = label_probabilities(off)
        return out

    def truth(self, cuts: Floats) -> Floats:
        """Return P(class | position): (class, node).

        A node represents the positions nearest to it, so the truth is the label of an annotator
        without bias and with the noise of the grid.
        """
        off = offsets(cuts, self.grid, np.zeros(1), np.array([self.sharpest]))
        return label_probabilities(off)[0]

    @property
    def grid(self) -> Floats:
        """The positions of the grid: (node)."""
        return np.linspace(-_REACH, _REACH, self.nodes)

    @property
    def weight(self) -> Floats:
        """Prior probability of every position: (node)."""
        return normalize(np.exp(-(self.grid**2) / 2))

    @property
    def sharpest(self) -> float:
        """One over the standard deviation of the positions that a node represents."""
        return float(np.sqrt(12) * (self.nodes - 1) / (2 * _REACH))


def _first_params(n_classes: int, n_annotators: int) -> LatentParams:
    """Return a uniform prevalence, and annotators of precision one without bias."""
    cuts = ndtri(np.arange(1, n_classes) / n_classes)
    gap = np.log(np.expm1(np.diff(cuts)))
    zero = np.zeros(n_annotators)
    return LatentParams(np.zeros(min(n_classes - 1, 1)), gap, zero, zero, np.empty(0))
