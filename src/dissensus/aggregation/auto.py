"""Auto: a stacked ensemble of methods, weighted by held-out likelihood.

No score without truth selects the best method reliably, and the best one differs from data set to
data set. The posterior of the ensemble is the weighted geometric mean of its members', so that
confident members count for more. The weights maximize the likelihood of held-out annotations under
the mixture of members; a tenth of them is shared equally, because this evidence is weak. With fifty
gold items or more, they maximize the likelihood of gold under members fitted without gold; the
members are then fitted again with gold. Members are stopped early: their held-out likelihood and
labels hardly change after that.

    D. H. Wolpert. Stacked generalization. Neural Networks 5(2), 1992.

    Y. Yao, A. Vehtari, D. Simpson, A. Gelman. Using stacking to average Bayesian predictive
    distributions. Bayesian Analysis 13(3), 2018. doi:10.1214/17-BA1091
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._probability import log_normalize, most_probable, normalize, safe_log
from .._relation import Floats, Integers
from .._serialization import with_prefix
from ..annotations import Annotations
from ..engine import Engine, Local
from ..heldout import held_out, mixture_weights, stopped_early
from ..params import Folds
from ..registry import aggregators
from ..result import Aggregation, pack_params, unpack_params
from ._base import Aggregator, FitContext, Fitted

# Models with priors, for every kind of error: individual, shared by all or by groups, spamming,
# and hard items.
MEMBERS = (
    "hierarchical",
    "hierarchical[pooled=1,estimate=True]",
    "hierarchical[pooled=0,estimate=True]",
    "bcc",
    "bcc[strength=1]",
    "cbcc",
    "dswc-vb",
    "mace[prevalence=estimated]",
    "two-level",
    "two-level[strength=1]",
    "two-level[strength=16]",
)
_ENOUGH_GOLD = 50
_SHARED = 0.1  # of the weights, equally
_GUESS = 0.01  # weight of a uniform guess about gold
_LEAST = 1e-6  # least posterior probability of a member, so that no single one can veto
_LARGE = 300_000  # annotations from which a fit has all cores, and weights come from a sample
_MIN_WEIGHT, _MAX_NAMED = 0.05, 4  # members that the notes name
_EQUAL = 0.01  # weights closer than this are the same


class Stack(NamedTuple):
    """Weights and parameters of the members of an ensemble."""

    weight: Floats  # (member)
    quality: Floats  # (member, annotator)
    members: tuple[str, ...]  # specifications
    params: tuple[Any, ...]  # the members' own parameters

    def reindex(self, indices: Integers, n_items: int) -> Stack:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        average = np.nanmean(self.quality, axis=1, keepdims=True)
        quality = np.concatenate([self.quality, average], axis=1)[:, indices]
        params = tuple(one.reindex(indices, n_items) for one in self.params)
        return Stack(self.weight, quality, self.members, params)

    def pack(self) -> dict[str, Any]:
        """Return all parameters as arrays by name."""
        arrays = {"weight": self.weight, "quality": self.quality, "members": np.array(self.members)}
        for position, one in enumerate(self.params):
            for name, value in pack_params(one).items():
                arrays[f"{position}.{name}"] = value
        return arrays

    @classmethod
    def unpack(cls, arrays: dict[str, Any]) -> Stack:
        """Return the parameters that `pack` packed."""
        members = tuple(arrays["members"].tolist())
        params = []
        for position, spec in enumerate(members):
            kind = aggregators.find(aggregators.resolve(spec)[0]).params_type
            params.append(unpack_params(kind, with_prefix(str(position), arrays)))
        return cls(arrays["weight"], arrays["quality"], members, tuple(params))


@dataclass(frozen=True, kw_only=True)
class Auto(Aggregator):
    """A stacked ensemble of methods, weighted by held-out likelihood.

    Parameters
    ----------
    folds
        Number of folds for the held-out likelihood.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, truth = demo()
    >>> result = Auto().fit(annotations)
    >>> round(float(result.params.weight.sum()), 6)
    1.0
    """

    params_type: ClassVar[type] = Stack
    random_folds: ClassVar[bool] = True

    folds: Folds = 5

    def infer(self, fit: FitContext) -> Aggregation:
        members = [stopped_early(aggregators.create(spec)) for spec in MEMBERS]
        by_gold = fit.gold is not None and int((fit.gold >= 0).sum()) >= _ENOUGH_GOLD
        results = _each(fit, members, lambda one, engine: _fit(fit, one, engine, gold=not by_gold))
        if by_gold:
            probability = _gold_probability(fit, results)
            first = dict(zip(members, results, strict=True))
            results = _each(
                fit, members, lambda one, engine: _fit(fit, one, engine, start=first[one])
            )
        else:
            sample = _sample(fit.annotations, fit.seed)
            probability = held_out(sample, members, folds=self.folds, seed=fit.seed).probability
        weight = (1 - _SHARED) * mixture_weights(probability) + _SHARED / len(members)
        posterior = geometric_mean(weight, [one.posterior for one in results])
        quality = np.stack([one.quality for one in results])
        params = Stack(weight, quality, MEMBERS, tuple(one.params for one in results))
        notes = _notes(weight, results, most_probable(posterior), by_gold)
        return self.result(fit, posterior, Fitted(params, notes=notes))

    def n_floats(self, annotations: Annotations) -> int:
        return sum(aggregators.create(spec).n_floats(annotations) for spec in MEMBERS)

    def posterior(self, fit: FitContext, params: Stack) -> Floats:
        members = zip(params.members, params.params, strict=True)
        posteriors = [aggregators.create(spec).posterior(fit, own) for spec, own in members]
        return geometric_mean(params.weight, posteriors)

    def confusion(self, params: Stack) -> Floats:
        """Return the weighted geometric mean of the members' matrices."""
        joint: Floats | float = 0.0
        for weight, spec, own in zip(params.weight, params.members, params.params, strict=True):
            matrix = aggregators.create(spec).confusion(own)
            assert matrix is not None  # every member has one
            joint = joint + weight * safe_log(matrix)
        return normalize(np.exp(joint))

    def quality(self, params: Stack, agreement: Floats) -> Floats:
        quality = np.where(np.isnan(params.quality), agreement, params.quality)
        return np.clip(params.weight @ quality, 0, 1)


def geometric_mean(weight: Floats, posteriors: list[Floats]) -> Floats:
    """Return the weighted geometric mean of posteriors: (item, class)."""
    joint = np.zeros_like(posteriors[0])
    for share, one in zip(weight, posteriors, strict=True):
        joint += share * np.log(np.maximum(one, _LEAST))
    return log_normalize(joint)[1]


def _sample(annotations: Annotations, seed: int) -> Annotations:
    """Return the annotations, or those on a random sample of items."""
    if len(annotations) <= _LARGE:
        return annotations
    n_items = max(1, annotations.n_items * _LARGE // len(annotations))
    which = np.random.default_rng(seed).choice(annotations.n_items, n_items, replace=False)
    return annotations.take(np.sort(which))


def _fit(
    fit: FitContext, member: Aggregator, engine: Engine, gold: bool = True, start: Any = None
) -> Aggregation:
    known = None
    if gold and fit.gold is not None:
        which = np.flatnonzero(fit.gold >= 0)
        labels = fit.annotations.classes[fit.gold[which]]
        known = dict(zip(fit.annotations.items[which].tolist(), labels.tolist(), strict=True))
    return member.fit(
        fit.annotations,
        gold=known,
        start=start,
        seed=fit.seed,
        engine=engine,
        features=fit.features,
    )


def _each(
    fit: FitContext, members: list[Aggregator], work: Callable[[Aggregator, Engine], Aggregation]
) -> list[Aggregation]:
    """Return the members' results: in parallel, or one by one where each needs all cores."""
    if len(fit.annotations) >= _LARGE:
        return [work(member, fit.engine) for member in members]
    with ThreadPoolExecutor(Local().cores) as pool:
        return list(pool.map(lambda member: work(member, Local(1)), members))


def _gold_probability(fit: FitContext, results: list[Aggregation]) -> Floats:
    """Return the probability of gold under members fitted without it: (member, item)."""
    assert fit.gold is not None
    known = np.flatnonzero(fit.gold >= 0)
    probability = np.stack([one.posterior[known, fit.gold[known]] for one in results])
    return (1 - _GUESS) * probability + _GUESS / fit.annotations.n_classes


def _notes(
    weight: Floats, results: list[Aggregation], label: Integers, by_gold: bool
) -> tuple[str, ...]:
    """Return sentences about the weights, and about the agreement of the members."""
    order = np.argsort(-weight, kind="stable")[:_MAX_NAMED]
    named = [m for m in order if weight[m] >= _MIN_WEIGHT]
    shares = [f"{MEMBERS[m]} {weight[m]:.0%}" for m in named]
    rest = 1 - sum(weight[m] for m in named)
    if rest >= _MIN_WEIGHT:
        shares.append(f"others {rest:.0%}")
    what = "gold" if by_gold else "held-out"
    first = f"Together these predict {what} labels best: {', '.join(shares)}."
    if np.ptp(weight) < _EQUAL:
        first = f"The {len(results)} members predict labels equally well, so all count the same."
    apart = np.mean([(one.label != label).mean() for one in results])
    return (
        first,
        f"The {len(results)} members differ from the ensemble on {apart:.1%} of the items on "
        "average.",
    )
