"""EM on embeddings, unrolled: every step is differentiable, so gradients reach the embedding.

Item n has a true class t and an embedding u. Annotator r labels it l:

    t ~ share                   share ~ Dirichlet(1 + b)
    u ~ Normal(mean[t], 1)      mean[k] ~ Normal(center of the support, 1 / tau)
    l ~ given[r, ·, t]          by a model of annotators: see `AnnotatorModel`

One step is M, then E, each in closed form. With n items and posterior[n, k] = P(t = k | u, labels):

    count[k] = Σ_n posterior[n, k]
    share[k] = (count[k] + b) / (n + K b)
    mean[k]  = (Σ_n posterior[n, k] u[n] + tau center) / (count[k] + tau)
    labels[r, l, k] = Σ_{n: r labelled n as l} posterior[n, k], from which `given` is estimated

    joint[n, k] = log share[k] − ‖u[n] − mean[k]‖² / 2 + Σ_{r labelled n as l} log given[r, l, k]
    posterior[n, ·] = softmax joint[n, ·]

The objective Σ_n logsumexp joint[n, ·] + log priors never falls. EM starts from the vote shares;
unlabelled items start uniform and take part, as in a Gaussian mixture. After `steps` M steps
a new item has P(t = k | u) ∝ share[k] exp(−‖u − mean[k]‖² / 2), sharpened by `temperature`.

A large b keeps EM on few items from running into one class, but then predictions do not prefer
frequent classes either. With a `share_weight`, they have an exponent of their own:

    frequency[k] = (count[k] + 1) / (n + K)
    P(t = k | u) ∝ frequency[k]^share_weight · exp(−‖u − mean[k]‖² / 2)^temperature

How well embeddings separate classes, and how much frequencies matter, differs from task to task.
With `leave_one_out`, predictions are a mean over several temperatures and weights, each as probable
as it makes the posteriors of the support, every item predicted from all others:

    q(temperature, weight) ∝ exp Σ_n,k posterior[n, k] log P(t = k | u[n], items other than n)

The paper has means around zero (`centred=False`). Around the center of the task's own items, the
location of the embeddings of new classes, which the source classes cannot predict, does not matter.

One perfect annotator, one step and no priors: prototypical networks. Equal embeddings: Dawid &
Skene with priors. No annotators: a Gaussian mixture.

EM stays near its start when most annotators guess. With `starts = everyone` it also starts from the
labels of each annotator alone, and the results are weighted by their objectives.

    A. Kumagai, T. Iwata, T. Nishiyama, Y. Ida, Y. Fujiwara. Meta-learning representations for
    learning from multiple annotators. arXiv:2506.10259, 2025.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ...params import Count, Positive
from .base import AdaptedTasks, Adapter, AdapterSettings, log_parameter
from .episodes import Items, normalize

_TINY = 1e-12
_VOTE_WEIGHT = 0.25  # of the votes in a start from one annotator's labels
_TEMPERATURES = (0.5, 1, 2, 4, 8, 16)  # relative to the learned one
_SHARE_WEIGHTS = (0, 0.5, 1)  # of class frequencies
_MOST_STARTS = 16  # annotators whose labels are a start: those with most labels


class ClassParams(NamedTuple):
    """Parameters of the classes of every episode."""

    log_share: Tensor  # (episode, class)
    log_frequency: Tensor  # (episode, class)
    mean: Tensor  # (episode, class, feature)
    variance: Tensor  # (episode)


class Gaussians(nn.Module):
    """Classes as Gaussians with a common variance, MAP estimates.

    Parameters
    ----------
    b, tau
        The priors of shares and means; see above.
    spread
        Whether the variance, else 1, is estimated from the support: with S the squared distances,
        (S + spread) / (n M + spread), as with that many pseudo-observations of variance 1.
    """

    def __init__(self, b: float, tau: float, spread: float | None = None) -> None:
        super().__init__()
        self.log_b, self.log_tau = log_parameter(b), log_parameter(tau)
        self.log_spread = None if spread is None else log_parameter(spread)

    def update(self, items: Items, posterior: Tensor, last: ClassParams | None) -> ClassParams:
        """Return the M step; `posterior` is zero for padding."""
        b, tau = self.log_b.exp(), self.log_tau.exp()
        variance = items.u.new_ones(len(items.u)) if last is None else last.variance
        count = posterior.sum(dim=1)  # (episode, class)
        total = torch.einsum("enk,enm->ekm", posterior, items.u)
        mean = total / (count + tau * variance[:, None]).clamp(min=_TINY)[:, :, None]
        if self.log_spread is not None:
            spread = self.log_spread.exp()
            distance = (posterior * squared_distance(items.u, mean)).sum(dim=(1, 2))
            variance = (distance + spread) / (count.sum(dim=1) * items.u.shape[2] + spread)
        log_share, log_frequency = (safe_log(normalize(count + prior)) for prior in (b, 1))
        return ClassParams(log_share, log_frequency, mean, variance)

    def log_density(self, classes: ClassParams, u: Tensor) -> Tensor:
        """Return log P(embedding | class): (episode, item, class)."""
        variance = classes.variance[:, None, None]
        exponent = -squared_distance(u, classes.mean) / (2 * variance)
        return exponent - u.shape[2] / 2 * (2 * pi * variance).log()

    def without_each(
        self, u: Tensor, posterior: Tensor, classes: ClassParams
    ) -> tuple[Tensor, Tensor]:
        """Return log-densities, up to a constant, and log-frequencies of each item by the others.

        Both are (episode, item, class).
        """
        total = torch.einsum("enk,enm->ekm", posterior, u)
        count = posterior.sum(dim=1, keepdim=True) - posterior  # (episode, item, class)
        variance = classes.variance[:, None, None]
        scale = (count + self.log_tau.exp() * variance).clamp(min=_TINY)
        # ‖u − mean‖² with mean = (total − posterior · u) / scale, without an array of all of them.
        dot, length = torch.einsum("enm,ekm->enk", u, total), u.square().sum(dim=2)[:, :, None]
        square = total.square().sum(dim=2)[:, None] - posterior * (2 * dot - posterior * length)
        distance = length - 2 * (dot - posterior * length) / scale + square / scale.square()
        return -distance.clamp(min=0) / (2 * variance), safe_log(normalize(count + 1))

    def log_prior(self, classes: ClassParams) -> Tensor:
        """Return the log-density of the parameters, up to a constant: (episode)."""
        length = classes.mean.square().sum(dim=(1, 2))
        prior = self.log_b.exp() * classes.log_share.sum(dim=1) - self.log_tau.exp() / 2 * length
        if self.log_spread is not None:
            variance = classes.variance
            prior = prior - self.log_spread.exp() / 2 * (variance.log() + 1 / variance)
        return prior


class AnnotatorModel(nn.Module, ABC):
    """How annotators err: the likelihood of their labels given the true class."""

    @abstractmethod
    def update(self, items: Items, posterior: Tensor, last: Any) -> Any:
        """Return the M step: the parameters of the annotators; `last` is `None` at first."""

    @abstractmethod
    def log_given(self, params: Any) -> Tensor:
        """Return log-probabilities of labels: (episode, annotator, given, true)."""

    @abstractmethod
    def log_prior(self, params: Any) -> Tensor:
        """Return the log-density of the parameters, up to a constant: (episode)."""

    def log_likelihood(self, params: Any, items: Items) -> Tensor:
        """Return the log-likelihood of the labels by true class: (episode, item, true)."""
        return items.sum_by_item(self.log_given(params).flatten(0, 2)[items.code])

    def confusion(self, params: Any) -> Tensor:
        """Return confusion matrices: (episode, annotator, true, given)."""
        return normalize(self.log_given(params).exp().transpose(2, 3))


class Em(Adapter):
    """Unrolled EM on the support.

    Parameters
    ----------
    annotators
        The model of annotators.
    settings
        Priors of classes, steps, starts, scale and temperature.
    """

    def __init__(self, annotators: AnnotatorModel, settings: EmSettings) -> None:
        super().__init__()
        self.classes = Gaussians(settings.b, settings.tau, settings.spread)
        self.annotators = annotators
        self.steps, self.starts, self.centred = settings.steps, settings.starts, settings.centred
        self.log_scale = log_parameter(settings.scale)
        self.log_temperature = log_parameter(settings.temperature)
        self.leave_one_out = settings.leave_one_out
        weight = settings.share_weight
        self.log_share_weight = None if weight is None else log_parameter(weight)
        many_starts = self.starts == "everyone"
        self.log_evidence = log_parameter(settings.evidence) if many_starts else None

    def adapt(self, support: Items) -> EmTasks:
        return self.adapt_in(support, self.steps)

    def adapt_in(self, support: Items, steps: int) -> EmTasks:
        """Return the adapted tasks after a number of M steps."""
        center = support.u.mean(dim=1, keepdim=True) * self.centred
        original, support = support, self.scaled(support, center)
        starts, usable = self._starts(support)  # (start, episode, item, class), (start, episode)
        items = support.repeat(len(starts)) if len(starts) > 1 else support
        posterior = starts.flatten(0, 1)
        classes, annotators = None, None
        for step in range(steps):
            if step:
                posterior = self.joint(items, classes, annotators).softmax(dim=2)
            classes = self.classes.update(items, posterior, classes)
            annotators = self.annotators.update(items, posterior, annotators)
        log_weight = starts.new_zeros(len(starts), len(support.u))
        if self.log_evidence is not None:
            objective = self.objective(items, classes, annotators).reshape(len(starts), -1)
            objective = (self.log_evidence.exp() * objective).masked_fill(~usable, -torch.inf)
            log_weight = objective.log_softmax(dim=0)
        return EmTasks(
            model=self,
            support=original,
            center=center,
            classes=classes,
            annotators=annotators,
            log_weight=log_weight,
        )

    def scaled(self, items: Items, center: Tensor) -> Items:
        """Return items with centred and scaled embeddings."""
        return items._replace(u=(items.u - center) * self.log_scale.exp())

    def joint(self, items: Items, classes: Any, annotators: Any) -> Tensor:
        """Return log P(class, embedding, labels): (episode, item, class)."""
        labels = self.annotators.log_likelihood(annotators, items)
        return classes.log_share[:, None] + self.classes.log_density(classes, items.u) + labels

    def objective(self, items: Items, classes: Any, annotators: Any) -> Tensor:
        """Return the objective, which no step lowers: (episode)."""
        evidence = self.joint(items, classes, annotators).logsumexp(dim=2)
        priors = self.classes.log_prior(classes) + self.annotators.log_prior(annotators)
        return evidence.sum(dim=1) + priors

    def _starts(self, support: Items) -> tuple[Tensor, Tensor]:
        """Return initial posteriors, and in which episodes each is used."""
        shares = support.shares()
        everywhere = torch.ones_like(shares[:, 0, 0], dtype=torch.bool)
        if self.starts == "votes":
            return shares[None], everywhere[None]
        count = support.sum_by_label(torch.ones_like(support.code)).sum(
            dim=2
        )  # (episode, annotator)
        order = count.argsort(dim=1, descending=True, stable=True)
        rank = order.argsort(dim=1).flatten()[support.annotator]  # (annotation)
        count = count.gather(1, order)
        one_hot = torch.nn.functional.one_hot(support.label, support.n_classes).to(shares)
        posteriors, usable = [shares], [everywhere]
        for index in range(min(support.n_annotators, _MOST_STARTS)):
            labels = support.sum_by_item(one_hot * (rank == index)[:, None])
            labelled = labels.sum(dim=2, keepdim=True) > 0
            start = normalize(labels + _VOTE_WEIGHT * shares)
            posteriors.append(torch.where(labelled, start, shares))
            usable.append(count[:, index] > 0)
        return torch.stack(posteriors), torch.stack(usable)


class EmTasks(AdaptedTasks):
    """Tasks adapted by EM, from one or several starts."""

    def __init__(
        self,
        *,
        model: Em,
        support: Items,
        center: Tensor,
        classes: Any,
        annotators: Any,
        log_weight: Tensor,
    ) -> None:
        self.model, self.original, self.center = model, support, center
        self.classes, self.annotators = classes, annotators
        self.log_weight = log_weight  # (start, episode)

    @cached_property
    def support(self) -> Items:
        """The support, scaled."""
        return self.model.scaled(self.original, self.center)

    def log_truth(self, items: Items) -> Tensor:
        """Return log-probabilities of classes, using labels on these items if there are any.

        Their annotators are those of the support, in the same order.
        """
        model, items = self.model, self.model.scaled(items, self.center)
        items = items.repeat(len(self.log_weight)) if len(self.log_weight) > 1 else items
        log = self._log_classes(items.u)
        if len(items.code):
            log = log + model.annotators.log_likelihood(self.annotators, items)
        return self._mean(log.log_softmax(dim=2)).log_softmax(2)

    def _log_classes(self, u: Tensor) -> Tensor:
        """Return log-probabilities of classes by embeddings alone, up to a constant."""
        model, classes = self.model, self.classes
        density, temperature = model.classes.log_density(classes, u), model.log_temperature.exp()
        if self._pairs is not None:
            log = _log_pairs(temperature * density, classes.log_frequency[:, None])
            return (log + self._pairs[:, :, None, None]).logsumexp(dim=0)
        if model.log_share_weight is None:
            return temperature * (density + classes.log_share[:, None])
        return temperature * density + model.log_share_weight.exp() * classes.log_frequency[:, None]

    @cached_property
    def _pairs(self) -> Tensor | None:
        """Log-probabilities of temperatures and weights of frequencies: (pair, episode)."""
        if not self.model.leave_one_out:
            return None
        posterior = self._joint().softmax(dim=2)
        u = self.support.u.repeat(len(self.log_weight), 1, 1)
        density, log_frequency = self.model.classes.without_each(u, posterior, self.classes)
        log = _log_pairs(self.model.log_temperature.exp() * density, log_frequency)
        return (posterior * log).sum(dim=(2, 3)).log_softmax(dim=0)

    def _joint(self) -> Tensor:
        """Return log P(class, embedding, labels) of the support from every start."""
        items = self.support.repeat(len(self.log_weight))
        return self.model.joint(items, self.classes, self.annotators)

    @property
    def posterior(self) -> Tensor:  # type: ignore[override]
        return self._mean(self._joint().log_softmax(dim=2)).exp()

    def stages(self) -> list[AdaptedTasks]:
        steps = range(1, self.model.steps)
        return [*(self.model.adapt_in(self.original, step) for step in steps), self]

    @property
    def confusion(self) -> Tensor:
        return self._mean(safe_log(self.model.annotators.confusion(self.annotators))).exp()

    def _mean(self, log: Tensor) -> Tensor:
        """Return the weighted mean of the starts' probabilities, as logarithms."""
        log = log.reshape(*self.log_weight.shape, *log.shape[1:])
        weight = self.log_weight.reshape(*self.log_weight.shape, *[1] * (log.ndim - 2))
        return (log + weight).logsumexp(dim=0)


@dataclass(frozen=True, kw_only=True)
class EmSettings(AdapterSettings):
    """EM on embeddings.

    Parameters
    ----------
    steps
        Number of M steps; with 1, prototypes of vote shares.
    starts
        Start from the votes, or also from the labels of every annotator alone (of more than 16,
        those with most labels).
    scale
        Factor on embeddings, whose classes have variance 1 after it.
    temperature
        Factor on the log-densities in predictions.
    share_weight
        Exponent of the frequencies of classes in predictions: near 0 all classes are alike, with 1
        they are as probable as in the support; `None` takes the shares of EM.
    leave_one_out
        Estimate temperature and weight of frequencies in every task, from its support.
    b
        Pseudo-count of every class in EM.
    tau
        Precision of the prior of class means.
    spread
        Estimate the variance of classes from the support, with that many pseudo-observations;
        `None` keeps it at 1.
    evidence
        Factor on the objectives by which several starts are weighted.
    centred
        Center the prior of class means on the support, not on zero.
    """

    steps: Count = 2
    starts: Literal["votes", "everyone"] = "votes"
    scale: Positive = 1.0
    temperature: Positive = 1.0
    share_weight: Positive | None = 1.0
    leave_one_out: bool = False
    b: Positive = 1.0
    tau: Positive = 1e-3
    spread: Positive | None = None
    evidence: Positive = 1.0
    centred: bool = True


def safe_log(probabilities: Tensor) -> Tensor:
    """Return logarithms of probabilities of at least 1e-12."""
    return probabilities.clamp(min=_TINY).log()


def _log_pairs(log_density: Tensor, log_frequency: Tensor) -> Tensor:
    """Return log-probabilities under every temperature and weight: (pair, episode, item, class)."""
    pairs = [t * log_density + w * log_frequency for t in _TEMPERATURES for w in _SHARE_WEIGHTS]
    return torch.stack(pairs).log_softmax(dim=3)


def squared_distance(u: Tensor, mean: Tensor) -> Tensor:
    """Return squared distances: (episode, item, class)."""
    cross = torch.einsum("enm,ekm->enk", u, mean)
    length = u.square().sum(dim=2)[:, :, None] + mean.square().sum(dim=2)[:, None]
    return (length - 2 * cross).clamp(min=0)


class ConfusionMatrices(AnnotatorModel):
    """One confusion matrix per annotator; the parameters are its logarithm."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = log_parameter(c), log_parameter(right)

    def pseudo_counts(self, n_classes: int) -> Tensor:
        """Return the pseudo-counts of every annotator: (given, true)."""
        c = self.log_c.exp()
        return c + self.log_right.exp() * torch.eye(n_classes, dtype=c.dtype, device=c.device)

    def update(self, items: Items, posterior: Tensor, last: Tensor | None) -> Tensor:
        counts = expected_counts(items, posterior) + self.pseudo_counts(items.n_classes)
        return safe_log(normalize(counts, dim=2))

    def log_given(self, params: Tensor) -> Tensor:
        return params

    def log_prior(self, params: Tensor) -> Tensor:
        return (self.pseudo_counts(params.shape[-1]) * params).sum(dim=(1, 2, 3))


def expected_counts(items: Items, posterior: Tensor) -> Tensor:
    """Return expected counts of labels: (episode, annotator, given, true)."""
    return items.sum_by_label(items.per_annotation(posterior))


@dataclass(frozen=True, kw_only=True)
class EmFull(EmSettings):
    """EM on embeddings, one confusion matrix per annotator.

    EM on embeddings with a confusion matrix for every annotator.

        given[r, ·, k] ~ Dirichlet(1 + C[·, k]),    C[l, k] = c + right · 1(l = k)
        given[r, l, k] = (labels[r, l, k] + C[l, k]) / Σ_l (labels[r, l, k] + C[l, k])

    Ten labels of a class determine an annotator's row to about a tenth, so with few labels the
    prior decides. It is meta-learned with the embedding.

    When it fails: With five labels per annotator and many classes, rows of a matrix are their
    prior, and `em-one-coin` is better. If the target differs from the source tasks, so does the
    prior.

    Parameters
    ----------
    c
        Pseudo-count of every label, for every true class.
    right
        Additional pseudo-count of the right label.
    """

    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(ConfusionMatrices(self.c, self.right), self)
