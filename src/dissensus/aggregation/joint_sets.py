"""Joint sets: options that go together, and annotators who miss or add options.

Whether option o is true of item i, z[i, o], depends on the item's profile c, one of a few patterns
of options; given the profile, options are independent. Annotator j chooses a true option with
probability `sensitivity[j, o]` and leaves out a false one with probability `specificity[j, o]`:

    P(y, c) = share[c] · product over o of (yes[c, o] e^l1[i, o] + (1 - yes[c, o]) e^l0[i, o])

where l1 and l0 are the log probabilities of all answers about the option if it is true or false, so
the E-step is exact. Sensitivities and specificities are shrunk to those of all annotators, which
are fitted first, as if one annotator had given all answers.

Annotators share errors, so l1 and l0 count one over a temperature once parameters are fitted. The
number of profiles and the temperature are those under which held-out answers are most probable; a
temperature above one needs a gain of two standard errors.

When it fails: With few items, profiles are not supported by the data, and one profile makes it
options on their own. Options that nobody dares to choose are not recovered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..answers.annotations import Annotations
from ..answers.selections import content_folds, content_order
from ..answers.sets import Sets
from ..base.arrays import Floats, Integers
from ..base.iteration import iterate, objective_settles
from ..base.names import as_names
from ..method import FitContext, Method, no_progress
from ..params import Count, NonNegative, Positive, Whole
from .aggregation import AnswerAggregation
from .sets import known_options, sets_result

_PROFILES = (1, 5, 10, 20)  # numbers of profiles to choose from
_TEMPERATURES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_HELD_OUT = 10  # one answer in so many is held out
_FEWEST = 20  # held-out answers that can choose
_ITEMS_EACH = 10  # items that a profile needs
_LEAST = 1e-3  # of a probability
_ROUNDS = 10  # of k-means
_POOLED = 50  # iterations of the fit of all annotators together


class Profiles(NamedTuple):
    """Parameters."""

    share: Floats  # (profile)
    yes: Floats  # (profile, option): whether an option is true
    sensitivity: Floats  # (annotator, option)
    specificity: Floats  # (annotator, option)


class Counts(NamedTuple):
    """Expected counts, which add up over parts of the items."""

    evidence: float
    profile: Floats  # (profile)
    true: Floats  # (profile, option)
    hits: Floats  # (annotator, option): chosen and true
    is_true: Floats  # (annotator, option): true, of those asked
    avoided: Floats  # (annotator, option): left out and false
    is_false: Floats  # (annotator, option)


class Centres(NamedTuple):
    """Where rates are shrunk to."""

    yes: Floats  # (option)
    sensitivity: Floats  # (option)
    specificity: Floats  # (option)


class _Step(NamedTuple):
    params: Profiles
    counts: Counts | None = None
    objective: float = np.nan


class _Part(NamedTuple):
    """Items with their answers, and known options."""

    bounds: Integers  # (item + 1): the answers to item i are at bounds[i]:bounds[i + 1]
    annotator: Integers  # (answer)
    has_option: npt.NDArray[np.bool_]  # (answer, option)
    by_annotator: sparse.csr_array[Any, Any]  # (annotator, answer): ones
    gold: npt.NDArray[np.int8] | None  # (item, option): 1, 0, or -1 where it is unknown

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """Items with answers or gold."""
        answered = np.diff(self.bounds) > 0
        return answered if self.gold is None else answered | (self.gold[:, 0] >= 0)


@dataclass(frozen=True, kw_only=True)
class JointSets(Method[Sets, AnswerAggregation]):
    """Options that go together in profiles, with sensitivity and specificity of annotators.

    Parameters
    ----------
    profiles
        Number of profiles; 0 chooses it by held-out answers.
    strength
        Answers by which annotators are shrunk to all annotators.
    temperature
        What the evidence of answers is divided by; 0 chooses it by held-out answers.
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    """

    profiles: Whole = 0
    strength: Positive = 4.0
    temperature: NonNegative = 0.0
    max_iter: Count = 200
    tol: NonNegative = 1e-6

    def infer(self, fit: FitContext[Sets]) -> AnswerAggregation:
        answers = fit.answers
        gold = known_options(fit)
        n_profiles, temperature, notes = self._choose(fit)
        step, trace, converged = self._run(fit, answers, gold, n_profiles)
        parts = _parts(answers, fit, gold)
        rows = fit.engine.each(
            partial(posterior, params=step.params, temperature=temperature), parts
        )
        posteriors = list(rows)
        yes, exact = (np.concatenate([pair[k] for pair in posteriors]) for k in (0, 1))
        counts = step.counts
        assert counts is not None
        quality = {
            "sensitivity": _ratio(counts.hits, counts.is_true),
            "specificity": _ratio(counts.avoided, counts.is_false),
        }
        params = dict(step.params._asdict()) | {"temperature": np.array(temperature)}
        return sets_result(
            self,
            fit,
            yes=yes,
            exact=exact,
            quality=quality,
            params=params,
            trace=trace,
            converged=converged,
            notes=notes,
        )

    def _run(
        self, fit: FitContext[Sets], answers: Sets, gold: Any, n_profiles: int
    ) -> tuple[_Step, tuple[float, ...], bool]:
        """Return the last step of EM, its trace, and whether it converged."""
        start, pooled = _start(answers, n_profiles), _together(answers)
        centres, settled = None, objective_settles(self.tol)
        for crowd, max_iter in ((pooled, _POOLED), (answers, self.max_iter)):
            parts = _parts(crowd, fit, gold)
            rates = [np.tile(rate[0], (crowd.n_annotators, 1)) for rate in start[2:]]
            first_step = _Step(Profiles(start.share, start.yes, *rates))
            centred = partial(self._advance, fit=fit, parts=parts, centres=centres)
            progress = fit.progress if centres is not None else no_progress
            run = iterate(first_step, centred, settled, max_iter=max_iter, progress=progress)
            start = run.state.params
            mean = start.share @ start.yes
            centres = Centres(mean, start.sensitivity[0], start.specificity[0])
        return run

    def _advance(
        self, last: _Step, fit: FitContext[Sets], parts: list[_Part], centres: Centres | None
    ) -> _Step:
        params = last.params if last.counts is None else self.update(last.counts, centres)
        counts = fit.engine.add_up(partial(expect, params=params), parts)
        return _Step(params, counts, counts.evidence + self.log_prior(params, centres))

    def update(self, counts: Counts, centres: Centres | None) -> Profiles:
        """Return the parameters that maximize the expected log posterior."""
        pairs = (
            (counts.true, counts.profile[:, None]),
            (counts.hits, counts.is_true),
            (counts.avoided, counts.is_false),
        )
        rates = [
            _inside((right + weight * centre) / (all_ + weight))
            for (right, all_), (weight, centre) in zip(pairs, self._priors(centres), strict=True)
        ]
        n_items, size = counts.profile.sum(), len(counts.profile)
        return Profiles((counts.profile + 1) / (n_items + size), *rates)

    def log_prior(self, params: Profiles, centres: Centres | None) -> float:
        """Return the log prior density of the parameters, up to a constant."""
        total = float(np.log(params.share).sum())
        for rates, (weight, centre) in zip(params[1:], self._priors(centres), strict=True):
            total += weight * float(
                (centre * np.log(rates) + (1 - centre) * np.log1p(-rates)).sum()
            )
        return total

    def _priors(self, centres: Centres | None) -> list[tuple[float, Any]]:
        """Return pseudo-counts and centres of all rates."""
        if centres is None:
            return [(1.0, 0.5)] * 3
        return list(zip((1.0, self.strength, self.strength), centres, strict=True))

    def _choose(self, fit: FitContext[Sets]) -> tuple[int, float, tuple[str, ...]]:
        """Return number of profiles and temperature, by held-out answers where they are open."""
        answers: Sets = fit.answers
        sizes = [n for n in _PROFILES if n == 1 or n * _ITEMS_EACH <= answers.n_items]
        sizes = [self.profiles] if self.profiles else sizes
        temperatures = [self.temperature] if self.temperature else list(_TEMPERATURES)
        if len(sizes) * len(temperatures) == 1:
            return sizes[0], temperatures[0], ()
        held = content_folds(_sizes(answers), _HELD_OUT, fit.seed) == 0
        held &= answers.labels_per_item[answers.item] > 1
        if held.sum() < _FEWEST:
            return sizes[0], temperatures[0], ()
        train, test = answers.keep(~held), answers.keep(held)
        scores: dict[tuple[int, float], Floats] = {}  # log probabilities: (held-out answer)
        for size in sizes:
            params = self._run(fit, train, None, size)[0].params
            for temperature in temperatures:
                scores[size, temperature] = held_out(train, test, params, temperature)
        size, temperature = max(scores, key=lambda setting: float(scores[setting].mean()))
        gain = scores[size, temperature] - scores[size, temperatures[0]]
        if gain.mean() < 2 * gain.std() / np.sqrt(len(gain)):  # it may be luck
            temperature = temperatures[0]
        loss = -scores[size, temperature].mean()
        words = f"{size} profiles" if size > 1 else "independent options"
        note = f"Held-out answers are predicted best with {words} (log loss {loss:.2f} an answer)."
        return size, temperature, (note,)


def expect(part: _Part, params: Profiles) -> Counts:
    """Return the log evidence and the expected counts of a part."""
    true, false = _evidence(part, params)
    weight, evidence = _profiles(part, params, true, false)
    yes = np.zeros_like(true)
    by_profile = np.zeros_like(params.yes)
    for c, rate in enumerate(params.yes):
        in_profile = weight[:, c, None] * _yes(rate, true, false)
        by_profile[c] = in_profile.sum(axis=0)
        yes += in_profile
    is_true = np.repeat(yes, np.diff(part.bounds), axis=0)  # (answer, option)
    has_option = part.has_option
    sums = [is_true * has_option, is_true, (1 - is_true) * ~has_option, 1 - is_true]
    return Counts(
        evidence, weight.sum(axis=0), by_profile, *(part.by_annotator @ values for values in sums)
    )


def posterior(part: _Part, params: Profiles, temperature: float) -> tuple[Floats, Floats]:
    """Return P(option is true), (item, option), and the probability of the set of likely ones."""
    true, false = _evidence(part, params, temperature)
    weight, _ = _profiles(part, params, true, false)
    yes = np.zeros_like(true)
    for c, rate in enumerate(params.yes):
        yes += weight[:, c, None] * _yes(rate, true, false)
    exact = np.zeros(len(yes))
    for c, rate in enumerate(params.yes):
        in_profile = _yes(rate, true, false)
        exact += weight[:, c] * np.where(yes > 0.5, in_profile, 1 - in_profile).prod(axis=1)
    return yes, exact


def held_out(train: Sets, test: Sets, params: Profiles, temperature: float = 1.0) -> Floats:
    """Return the log probability of answers to items, given the other answers: (answer)."""
    part = _part(train, None)
    true, false = _evidence(part, params, temperature)
    weight, _ = _profiles(part, params, true, false)
    item, annotator = test.item, test.annotator
    has_option = np.asarray(test.chosen().todense()) > 0
    if_true = np.where(has_option, params.sensitivity[annotator], 1 - params.sensitivity[annotator])
    if_false = np.where(
        has_option, 1 - params.specificity[annotator], params.specificity[annotator]
    )
    total = np.zeros(len(test))
    for c, rate in enumerate(params.yes):
        yes = _yes(rate, true, false)[item]
        total += weight[item, c] * (yes * if_true + (1 - yes) * if_false).prod(axis=1)
    return np.log(np.maximum(total, 1e-300))


def _evidence(part: _Part, params: Profiles, temperature: float = 1.0) -> tuple[Floats, Floats]:
    """Return the log probability of the answers if an option is true, and if not."""
    rates = params.sensitivity, 1 - params.specificity
    out = []
    for rate in rates:
        log_yes, log_no = np.log(rate)[part.annotator], np.log(1 - rate)[part.annotator]
        total = np.zeros((len(part.bounds) - 1, part.has_option.shape[1]))
        answered = np.diff(part.bounds) > 0
        if answered.any():
            log_rate = np.where(part.has_option, log_yes, log_no)
            total[answered] = np.add.reduceat(log_rate, part.bounds[:-1][answered], axis=0)
        out.append(total / temperature)
    if part.gold is not None:
        out[0][part.gold == 0] = -np.inf
        out[1][part.gold == 1] = -np.inf
    return out[0], out[1]


def _yes(rate: Floats, true: Floats, false: Floats) -> Floats:
    """Return P(option is true) in a profile: (item, option)."""
    return 1 / (1 + np.exp(np.minimum(false - true + np.log((1 - rate) / rate), 700.0)))


def _profiles(part: _Part, params: Profiles, true: Floats, false: Floats) -> tuple[Floats, float]:
    """Return P(profile | answers), (item, profile), and the log evidence."""
    joint = np.empty((len(true), len(params.share)))
    for c, rate in enumerate(params.yes):
        by_option = np.logaddexp(np.log(rate) + true, np.log(1 - rate) + false)
        joint[:, c] = np.log(params.share[c]) + by_option.sum(axis=1)
    joint[~part.answered] = -np.inf
    highest = joint.max(axis=1, initial=-np.inf)
    weight = np.exp(joint - np.where(np.isfinite(highest), highest, 0.0)[:, None])
    total = weight.sum(axis=1)
    answered = total > 0
    weight[answered] /= total[answered, None]
    evidence = float(np.log(total[answered]).sum() + highest[answered].sum())
    if not answered.all():
        weight[~answered] = 0.0
    return weight, evidence


def _start(answers: Sets, n_profiles: int) -> Profiles:
    """Return parameters from vote shares, of one annotator for all."""
    part = _part(answers, None)
    share = np.zeros((answers.n_items, answers.n_options))
    answered = np.diff(part.bounds) > 0
    share[answered] = np.add.reduceat(
        part.has_option.astype(float), part.bounds[:-1][answered], axis=0
    )
    share[answered] /= np.diff(part.bounds)[answered, None]
    order = content_order(_sizes(answers))[0]
    order = order[answered[order]]
    centre = _centres(share[order], n_profiles)
    size = np.bincount(_nearest(share[order], centre), minlength=n_profiles) + 1.0
    true_share = np.repeat(share, np.diff(part.bounds), axis=0)
    rates = [
        _inside(((weight * right).sum(axis=0, keepdims=True) + 0.5) / (weight.sum(axis=0) + 1))
        for weight, right in ((true_share, part.has_option), (1 - true_share, ~part.has_option))
    ]
    return Profiles(size / size.sum(), _inside(centre, 0.01), *rates)


def _together(answers: Sets) -> Sets:
    """Return the answers as if one annotator had given all of them."""
    nobody = np.zeros(len(answers), dtype=np.uint8)
    return replace(answers, annotator=nobody, annotators=as_names(["all"]))


def _centres(share: Floats, number: int) -> Floats:
    """Return centres of vote shares: farthest first, then ten rounds of k-means."""
    centre = share.mean(axis=0, keepdims=True)
    while len(centre) < number:
        far = ((share[:, None] - centre) ** 2).sum(axis=2).min(axis=1)
        centre = np.concatenate([centre, share[[far.argmax()]]])
    for _ in range(_ROUNDS if number > 1 else 0):
        nearest = _nearest(share, centre)
        for c in range(number):
            if (nearest == c).any():
                centre[c] = share[nearest == c].mean(axis=0)
    return centre


def _nearest(share: Floats, centre: Floats) -> Integers:
    distance = (centre**2).sum(axis=1) - 2 * share @ centre.T  # (item, profile), up to a constant
    return distance.argmin(axis=1)


def _parts(answers: Sets, fit: FitContext[Sets], gold: Any) -> list[_Part]:
    bounds = fit.engine.cut(answers)
    cut = zip(bounds, answers.parts(bounds), strict=True)
    return [_part(part, None if gold is None else gold[a:b]) for (a, b), part in cut]


def _part(answers: Sets, gold: Any) -> _Part:
    n = len(answers)
    annotator = answers.annotator.astype(np.int64)
    shape = (answers.n_annotators, n)
    by_annotator: sparse.csr_array[Any, Any] = sparse.coo_array(
        (np.ones(n), (annotator, np.arange(n))), shape=shape
    ).tocsr()
    has_option = np.zeros((n, answers.n_options), dtype=bool)
    has_option[answers.answer, answers.option] = True
    return _Part(
        bounds=answers.index,
        annotator=annotator,
        has_option=has_option,
        by_annotator=by_annotator,
        gold=gold,
    )


def _sizes(answers: Sets) -> Annotations:
    """Return answers by their number of options, to order them whatever their names are."""
    size = np.minimum(answers.sizes, answers.n_options)
    return Annotations.from_codes(
        answers.item,
        answers.annotator,
        size,
        items=answers.items,
        annotators=answers.annotators,
        classes=answers.n_options + 1,
    )


def _inside(rates: Floats, least: float = _LEAST) -> Floats:
    return np.clip(rates, least, 1 - least)


def _ratio(right: Floats, trials: Floats) -> Floats:
    """Return the rate over all options, NaN where nobody was asked: (annotator)."""
    total = trials.sum(axis=1)
    return np.divide(right.sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 1e-9)
