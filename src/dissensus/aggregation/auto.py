"""Auto: a stack of methods, weighted by how well they foresee labels they have not seen.

No score without truth picks the best method reliably, and the best one differs from data set to
data set. A stack never loses the whole bet: its posterior is the weighted geometric mean of its
members', so that a member that is sure counts for more than one that is not. The weights are
those under which the mixture of members foresees left-out annotations best; a tenth of them is
shared equally, because such evidence is weak. With fifty gold items or more, they are those under
which the members, fitted without gold, foresee gold best; the members are then fitted again with
gold. Members end early: what they foresee and how they label hardly changes after that.

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

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..engine import Engine, Local
from ..heldout import brief, held_out, mixture_weights
from ..params import Count
from ..registry import aggregators
from ..result import Aggregation, pack_params, unpack_params
from ._base import Aggregator, Fit, first_best
from ._em import logs, normalise, share

__all__ = ["MEMBERS", "Auto", "Stack", "pooled"]

# Models with priors, of every kind that errors come in: each annotator's own, shared by all or by
# groups, out of habit, or because an item is hard.
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
_GUESS = 0.01  # what is left to a uniform guess about gold
_LEAST = 1e-6  # the least belief of a member, so that no single one can veto
_LARGE = 300_000  # annotations from which a fit has all cores, and weights come from a sample
_WORTH_TELLING, _TOLD = 0.05, 4  # the least weight that is told, and of how many
_ALIKE = 0.01  # weights closer than this are the same


class Stack(NamedTuple):
    """What a stack learns: whom of its members to believe, and what they learned."""

    weight: Floats  # (member)
    quality: Floats  # (member, annotator)
    members: tuple[str, ...]  # specifications
    learned: tuple[Any, ...]  # the members' own parameters

    def reindex(self, indices: Integers, n_items: int) -> Stack:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        average = np.nanmean(self.quality, axis=1, keepdims=True)
        quality = np.concatenate([self.quality, average], axis=1)[:, indices]
        learned = tuple(one.reindex(indices, n_items) for one in self.learned)
        return Stack(self.weight, quality, self.members, learned)

    def pack(self) -> dict[str, Any]:
        """Return everything as arrays by name."""
        arrays = {"weight": self.weight, "quality": self.quality, "members": np.array(self.members)}
        for position, one in enumerate(self.learned):
            for name, value in pack_params(one).items():
                arrays[f"{position}.{name}"] = value
        return arrays

    @classmethod
    def unpack(cls, arrays: dict[str, Any]) -> Stack:
        """Return what `pack` packed."""
        members = tuple(arrays["members"].tolist())
        learned = []
        for position, spec in enumerate(members):
            kind = aggregators.find(aggregators.resolve(spec)[0]).learns
            mine = {
                name.removeprefix(f"{position}."): value
                for name, value in arrays.items()
                if name.startswith(f"{position}.")
            }
            learned.append(unpack_params(kind, mine))
        return cls(arrays["weight"], arrays["quality"], members, tuple(learned))


@dataclass(frozen=True, kw_only=True)
class Auto(Aggregator):
    """A stack of methods, each weighted by how well it foresees what it has not seen.

    Parameters
    ----------
    folds
        Into how many parts annotations are dealt to find the weights.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, truth = demo()
    >>> result = Auto().fit(annotations)
    >>> round(float(result.params.weight.sum()), 6)
    1.0
    """

    learns: ClassVar[type] = Stack
    random_folds: ClassVar[bool] = True

    folds: Count = 5

    def infer(self, fit: Fit) -> Aggregation:
        members = [brief(aggregators.create(spec)) for spec in MEMBERS]
        blind = _enough_gold(fit)
        results = _each(fit, members, lambda one, engine: _fit(fit, one, engine, gold=not blind))
        if blind:
            chance = _foreseen_gold(fit, results)
            first = dict(zip(members, results, strict=True))
            results = _each(
                fit, members, lambda one, engine: _fit(fit, one, engine, start=first[one])
            )
        else:
            some = _some(fit.annotations, fit.seed)
            chance = held_out(some, members, folds=self.folds, seed=fit.seed).chance
        weight = (1 - _SHARED) * mixture_weights(chance) + _SHARED / len(members)
        posterior = pooled(weight, [one.posterior for one in results])
        label = first_best(posterior)
        params = Stack(
            weight,
            np.stack([one.quality for one in results]),
            MEMBERS,
            tuple(one.params for one in results),
        )
        return self.conclude(
            fit, posterior, label, params=params, notes=_why(weight, results, label, blind)
        )

    def n_numbers(self, annotations: Annotations) -> int:
        return sum(aggregators.create(spec).n_numbers(annotations) for spec in MEMBERS)

    def judge(self, fit: Fit, params: Stack) -> tuple[Floats, Integers]:
        believed = [
            aggregators.create(spec).judge(fit, learned)[0]
            for spec, learned in zip(params.members, params.learned, strict=True)
        ]
        posterior = pooled(params.weight, believed)
        return posterior, first_best(posterior)

    def confusion(self, params: Stack) -> Floats:
        """Return the weighted geometric mean of the members' matrices."""
        joint: Floats | float = 0.0
        for trust, spec, learned in zip(params.weight, params.members, params.learned, strict=True):
            matrix = aggregators.create(spec).confusion(learned)
            assert matrix is not None  # every member has one
            joint = joint + trust * logs(matrix)
        return share(np.exp(joint))

    def quality(self, params: Stack, agreement: Floats) -> Floats:
        quality = np.where(np.isnan(params.quality), agreement, params.quality)
        return np.clip(params.weight @ quality, 0, 1)


def pooled(weight: Floats, posteriors: list[Floats]) -> Floats:
    """Return the weighted geometric mean of posteriors: (item, class)."""
    joint = np.zeros_like(posteriors[0])
    for trust, one in zip(weight, posteriors, strict=True):
        joint += trust * np.log(np.maximum(one, _LEAST))
    return normalise(joint)[1]


def _some(annotations: Annotations, seed: int) -> Annotations:
    """Return the annotations, or those on enough items to find weights by, drawn at random."""
    if len(annotations) <= _LARGE:
        return annotations
    n_items = max(1, annotations.n_items * _LARGE // len(annotations))
    which = np.random.default_rng(seed).choice(annotations.n_items, n_items, replace=False)
    return annotations.take(np.sort(which))


def _enough_gold(fit: Fit) -> bool:
    return fit.gold is not None and int((fit.gold >= 0).sum()) >= _ENOUGH_GOLD


def _fit(
    fit: Fit, member: Aggregator, engine: Engine, gold: bool = True, start: Any = None
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
    fit: Fit, members: list[Aggregator], work: Callable[[Aggregator, Engine], Aggregation]
) -> list[Aggregation]:
    """Return the members' results: side by side, or one by one where each needs all cores."""
    if len(fit.annotations) >= _LARGE:
        return [work(member, fit.engine) for member in members]
    with ThreadPoolExecutor(Local().cores) as pool:
        return list(pool.map(lambda member: work(member, Local(1)), members))


def _foreseen_gold(fit: Fit, results: list[Aggregation]) -> Floats:
    """Return how probable gold was to members that had not seen it: (member, item)."""
    assert fit.gold is not None
    known = np.flatnonzero(fit.gold >= 0)
    chance = np.stack([one.posterior[known, fit.gold[known]] for one in results])
    return (1 - _GUESS) * chance + _GUESS / fit.annotations.n_classes


def _why(
    weight: Floats, results: list[Aggregation], label: Integers, by_gold: bool
) -> tuple[str, ...]:
    """Return why the stack is as it is, and how far its members agree."""
    what = "gold labels" if by_gold else "left-out labels"
    order = np.argsort(-weight, kind="stable")[:_TOLD]
    told = [f"{MEMBERS[m]} {weight[m]:.0%}" for m in order if weight[m] >= _WORTH_TELLING]
    rest = 1 - sum(weight[m] for m in order if weight[m] >= _WORTH_TELLING)
    if rest >= _WORTH_TELLING:
        told.append(f"others {rest:.0%}")
    why = f"Together these foresee {what} best: {', '.join(told)}."
    if np.ptp(weight) < _ALIKE:
        why = f"Nothing tells the {len(results)} members apart, so all count the same."
    apart = np.mean([(one.label != label).mean() for one in results])
    return (
        why,
        f"The {len(results)} members differ from the stack on {apart:.1%} of the items on average.",
    )
