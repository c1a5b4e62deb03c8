"""The default of every kind that has several good methods: weigh or choose among them.

For classes `Auto` pools methods of every kind, weighted by the likelihood of held-out labels. For
texts `TextAuto` chooses between ROVER, which mixes words, and the medoid, which does not.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers.annotations import Annotations
from ..answers.selections import content_sample
from ..answers.texts import Texts
from ..base.arrays import Floats, Integers
from ..base.engine import Engine, Local
from ..base.probability import (
    ENOUGH_GOLD,
    fit_temperature,
    label_temperature,
    mixture_weights,
    most_probable,
    temper,
)
from ..base.storage import with_prefix
from ..method import FitContext, Fitted, Method
from ..params import Folds, Probability
from ..registry import aggregators
from .aggregation import AnswerAggregation, ClassAggregation, pack_params, unpack_params
from .classes import ClassContext, ClassMethod
from .held_out import confusion_from_posterior, held_out, stopped_early
from .medoid import Medoid
from .rover import Rover

# One or two of every kind: votes, hard items, spamming, confusion matrices of clusters, of
# individuals with equally frequent classes and with others, for easy and hard items, of annotators
# and items.
MEMBERS = (
    "iwmv",
    "glad",
    "mace[prevalence=estimated]",
    "dswc-vb",
    "vi-mf",
    "hierarchical[max_iter=20,pooled=1,estimate=True]",
    "two-level[max_iter=20,strength=16]",
    "crossed-effects[max_iter=12]",
)
ORDERED_MEMBERS = ("ordinal-split", "ordinal-distance")  # beside them, where classes are ordered
_SMALL_MEMBERS = ("crossed-effects[max_iter=12]",)  # not for more than
_CELLS = 2_000_000  # annotations times squared number of classes
_EQUAL = 0.1  # of the weights, for all members alike
_SCALE = 3.0  # of the members' temperatures; a pool needs less than a single method
_GUESS = 0.01  # weight of a uniform guess about gold
_SAMPLE = 20_000  # annotations that the weights are found on: more changes nothing
_FITTED = 36_000  # annotations times folds: small data have more folds
_MOST_FOLDS = 10
_LARGE = 300_000  # annotations from which a fit has all cores
_MIN_WEIGHT, _MAX_NAMED = 0.05, 4  # members that the notes name
_SAME = 0.01  # weights closer than this are the same
_ARRAYS = ("weight", "quality", "confusion")
_TEXTS_SAMPLE = 20_000  # pairs of answers


class Pool(NamedTuple):
    """Weights and parameters of the members of a pool."""

    weight: Floats  # (member)
    quality: Floats  # (annotator)
    confusion: Floats  # (annotator, true class, given class): counted from the pool's posterior
    members: tuple[str, ...]  # specifications
    params: tuple[Any, ...]  # the members' own parameters

    def reindex(self, indices: Integers, n_items: int) -> Pool:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        quality = np.append(self.quality, np.nanmean(self.quality))[indices]
        mean = self.confusion.mean(axis=0, keepdims=True)
        confusion = np.concatenate([self.confusion, mean])[indices]
        params = tuple(member.reindex(indices, n_items) for member in self.params)
        return Pool(
            weight=self.weight,
            quality=quality,
            confusion=confusion,
            members=self.members,
            params=params,
        )

    def pack(self) -> dict[str, Any]:
        """Return all parameters as arrays by name."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        arrays["members"] = np.array(self.members)
        for position, member in enumerate(self.params):
            for name, value in pack_params(member).items():
                arrays[f"{position}.{name}"] = value
        return arrays

    @classmethod
    def unpack(cls, arrays: dict[str, Any]) -> Pool:
        """Return the parameters that `pack` packed."""
        members = tuple(arrays["members"].tolist())
        params = []
        for position, spec in enumerate(members):
            kind = aggregators.find(aggregators.resolve(spec)[0]).params_type
            params.append(unpack_params(kind, with_prefix(str(position), arrays)))
        weight, quality, confusion = (arrays[name] for name in _ARRAYS)
        return cls(
            weight=weight,
            quality=quality,
            confusion=confusion,
            members=members,
            params=tuple(params),
        )


@dataclass(frozen=True, kw_only=True)
class Auto(ClassMethod):
    """A linear pool of methods of every kind, weighted by held-out likelihood.

    Auto: a linear pool of methods of every kind, weighted by held-out likelihood.

    No score without truth selects the best method reliably, and the best one differs from data set
    to data set. So members of every kind are fitted, and their posteriors are averaged: a member
    that is sure and wrong cannot veto. Every posterior is first tempered, since annotators share
    errors (see `calibration`). The weights maximize the likelihood of held-out annotations under
    the mixture of tempered members; a tenth of them is shared equally, because this evidence is
    weak. With fifty gold items or more, half of the evidence is the likelihood of gold under
    members fitted without it, and one more temperature is fitted to gold; the members are then
    fitted again with gold. Members are stopped early: their labels hardly change after that. The
    fewer annotations, the more folds: a member is then judged by nearly all of them.

        posterior[i, t] = Σ_m weight[m] · tempered posterior_m[i, t]
        weight = argmax Σ over held-out annotations of log Σ_m weight[m] P_m(annotation)

    When it fails: Where all members share an error, as when most annotators copy each other or
    misread the same instruction, so does the pool; only gold shows it. Below a few hundred
    annotations the weights are close to equal, and it takes the time of all its members together.

        D. H. Wolpert. Stacked generalization. Neural Networks 5(2), 1992.

        Y. Yao, A. Vehtari, D. Simpson, A. Gelman. Using stacking to average Bayesian predictive
        distributions. Bayesian Analysis 13(3), 2018. doi:10.1214/17-BA1091

        R. Ranjan, T. Gneiting. Combining probability forecasts. Journal of the Royal Statistical
        Society B 72(1), 2010. doi:10.1111/j.1467-9868.2009.00726.x

    Parameters
    ----------
    folds
        Least number of folds for the held-out likelihood; small data have up to ten.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, truth = demo()
    >>> result = Auto().fit(annotations)
    >>> round(float(result.params.weight.sum()), 6)
    1.0
    """

    params_type: ClassVar[type] = Pool

    folds: Folds = 3

    def infer(self, fit: ClassContext) -> ClassAggregation:
        annotations, specs = fit.answers, members_of(fit.answers)
        members = [stopped_early(aggregators.create(spec)) for spec in specs]
        by_gold = fit.n_gold >= ENOUGH_GOLD
        results = _each(
            fit, members, lambda member, engine: _fit(fit, member, engine, gold=not by_gold)
        )
        sample = content_sample(annotations, _SAMPLE, fit.seed)
        folds = n_folds(len(sample), self.folds)
        evidence = held_out(sample, members, folds=folds, seed=fit.seed, scale=_SCALE)
        weight, factor, wrong = mixture_weights(evidence.probability, pseudo_count=0), 1.0, 0
        if by_gold:
            free, truth = _gold_evidence(fit, results)
            gold_likelihood = (1 - _GUESS) * free[:, np.arange(len(truth)), truth]  # (member, item)
            by_truth = mixture_weights(
                gold_likelihood + _GUESS / annotations.n_classes, pseudo_count=0
            )
            weight = (weight + by_truth) / 2
            mean = np.tensordot(_with_equal(weight), free, axes=1)
            factor, wrong = fit_temperature(mean, truth), int((most_probable(mean) != truth).sum())
            by_member = dict(zip(members, results, strict=True))
            results = _each(
                fit,
                members,
                lambda member, engine: _fit(fit, member, engine, start=by_member[member]),
            )
        weight = _with_equal(weight)
        posteriors = [fitted.posterior for fitted in results]
        posterior = pooled(weight, posteriors, annotations.labels_per_item)
        quality = np.nansum(
            [w * fitted.quality for w, fitted in zip(weight, results, strict=True)], 0
        )
        confusion = confusion_from_posterior(annotations, posterior)
        own = tuple(fitted.params for fitted in results)
        params = Pool(
            weight=weight,
            quality=np.clip(quality, 0, 1),
            confusion=confusion,
            members=specs,
            params=own,
        )
        notes = _notes(
            specs, weight, results=results, label=most_probable(posterior), by_gold=by_gold
        )
        result = self.result(fit, posterior, Fitted(params, notes=notes))
        if not by_gold:
            return result
        temperature = np.full(annotations.n_items, factor)
        return replace(result, temperature=temperature, n_gold=fit.n_gold, gold_errors=wrong)

    def temperature(self, n_labels: Integers) -> Floats | None:
        return None  # members are tempered

    def n_floats(self, annotations: Annotations) -> int:
        members = map(aggregators.create, members_of(annotations))
        return sum(member.n_floats(annotations) for member in members)

    def posterior(self, fit: ClassContext, params: Pool) -> Floats:
        members = zip(params.members, params.params, strict=True)
        posteriors = [aggregators.create(spec).posterior(fit, own) for spec, own in members]
        return pooled(params.weight, posteriors, fit.answers.labels_per_item)

    def quality(self, params: Pool, agreement: Floats) -> Floats:
        return np.where(np.isnan(agreement), np.nan, params.quality)


def members_of(annotations: Annotations) -> tuple[str, ...]:
    """Return the specifications of the members for some annotations."""
    ordered = annotations.scale == "ordinal" and annotations.n_classes > 2
    small = len(annotations) * annotations.n_classes**2 <= _CELLS
    members = MEMBERS + ORDERED_MEMBERS * ordered
    return tuple(spec for spec in members if small or spec not in _SMALL_MEMBERS)


def n_folds(n_annotations: int, least: int) -> int:
    """Return the number of folds: more where fits are fast and every label counts.

    >>> [n_folds(n, 3) for n in (500, 5_000, 20_000)]
    [10, 7, 3]
    """
    return max(least, min(_FITTED // max(n_annotations, 1), _MOST_FOLDS))


def pooled(weight: Floats, posteriors: list[Floats], n_labels: Integers) -> Floats:
    """Return the weighted mean of tempered posteriors, each (item, class)."""
    temperature = label_temperature(n_labels, _SCALE)
    out = np.zeros_like(posteriors[0])
    for share, posterior in zip(weight, posteriors, strict=True):
        out += share * temper(posterior, temperature)
    return out


def _with_equal(weight: Floats) -> Floats:
    """Return weights of which a part is the same for all members."""
    return (1 - _EQUAL) * weight + _EQUAL / len(weight)


def _gold_evidence(fit: ClassContext, results: list[ClassAggregation]) -> tuple[Floats, Integers]:
    """Return what members fitted without gold say about gold items, and the known classes."""
    assert fit.gold is not None
    gold_items = np.flatnonzero((fit.gold >= 0) & (fit.answers.labels_per_item > 0))
    temperature = label_temperature(fit.answers.labels_per_item[gold_items], _SCALE)
    return np.stack(
        [temper(result.posterior[gold_items], temperature) for result in results]
    ), fit.gold[gold_items]


def _fit(
    fit: ClassContext, member: ClassMethod, engine: Engine, gold: bool = True, start: Any = None
) -> ClassAggregation:
    known_labels = None
    if gold and fit.gold is not None:
        gold_items = np.flatnonzero(fit.gold >= 0)
        labels = fit.answers.classes[fit.gold[gold_items]]
        known_labels = dict(
            zip(fit.answers.items[gold_items].tolist(), labels.tolist(), strict=True)
        )
    return member.fit(
        fit.answers,
        gold=known_labels,
        start=start,
        seed=fit.seed,
        engine=engine,
        features=fit.features,
    )


def _each(
    fit: ClassContext,
    members: list[ClassMethod],
    work: Callable[[ClassMethod, Engine], ClassAggregation],
) -> list[ClassAggregation]:
    """Return the members' results: in parallel, or one by one where each needs all cores."""
    if len(fit.answers) >= _LARGE:
        return [work(member, fit.engine) for member in members]
    with ThreadPoolExecutor(Local().cores) as pool:
        return list(pool.map(lambda member: work(member, Local(1)), members))


def _notes(
    members: tuple[str, ...],
    weight: Floats,
    results: list[ClassAggregation],
    label: Integers,
    by_gold: bool,
) -> tuple[str, ...]:
    """Return sentences about the weights, and about the agreement of the members."""
    order = np.argsort(-weight, kind="stable")[:_MAX_NAMED]
    leading = [m for m in order if weight[m] >= _MIN_WEIGHT]
    shares = [f"{members[m]} {weight[m]:.0%}" for m in leading]
    remainder = 1 - sum(weight[m] for m in leading)
    if remainder >= _MIN_WEIGHT:
        shares.append(f"others {remainder:.0%}")
    evidence = "held-out and known" if by_gold else "held-out"
    sentence = f"Together these predict {evidence} labels best: {', '.join(shares)}."
    if np.ptp(weight) < _SAME:
        sentence = f"The {len(results)} members predict labels equally well, so all count the same."
    difference = np.mean([(result.label != label).mean() for result in results])
    return (
        sentence,
        f"The {len(results)} members differ from the pool on {difference:.1%} of the items "
        "on average.",
    )


@dataclass(frozen=True, kw_only=True)
class TextAuto(Method[Texts, AnswerAggregation]):
    """ROVER where texts are alike, otherwise the medoid.

    The method for texts: ROVER for transcripts, the medoid for translations.

    Words of transcripts are the same or wrong, so they can be mixed. Where answers differ by half
    of their words and more they are phrased differently, and a mixture would be nobody's sentence.

        rover if answers differ by less than half of their words, else medoid

    When it fails: Texts between transcript and translation, such as free paraphrases with common
    phrases: the share of different words decides, and may do so wrongly for a small set.

    Parameters
    ----------
    apart
        The mean distance of two answers to an item from which the medoid is used.
    """

    apart: Probability = 0.5

    def infer(self, fit: FitContext[Any]) -> AnswerAggregation:
        first, second = fit.answers.within_item_pairs()
        step = max(1, len(first) // _TEXTS_SAMPLE)
        distance = fit.answers.distance(first[::step], second[::step])
        mean = float(np.mean(distance)) if len(distance) else 0.0
        method = Medoid() if mean >= self.apart else Rover()
        name = "the answer closest to the others" if mean >= self.apart else "a vote word by word"
        note = f"Two answers differ in {mean:.0%} of their words on average, so {name} is taken."
        result = method.infer(fit)
        return replace(result, notes=(note.replace("%", " %"), *result.notes))
