"""EM on embeddings, unrolled: every step is smooth, so a loss after it reaches the embedding.

Item n has a hidden class t and an embedding u. Annotator r, asked about it, says l:

    t ~ share                   share ~ Dirichlet(1 + b)
    u ~ Normal(mean[t], 1)      mean[k] ~ Normal(middle of the support, 1 / tau)
    l ~ given[r, ·, t]          by a model of annotators: see `Annotators`

One step is M, then E, each in closed form. With n items and posterior[n, k] = P(t = k | u, labels):

    count[k] = Σ_n posterior[n, k]
    share[k] = (count[k] + b) / (n + K b)
    mean[k]  = (Σ_n posterior[n, k] u[n] + tau middle) / (count[k] + tau)
    said[r, l, k] = Σ_{n: r said l} posterior[n, k], from which `Annotators` make `given`

    joint[n, k] = log share[k] − ‖u[n] − mean[k]‖² / 2 + Σ_{r said l of n} log given[r, l, k]
    posterior[n, ·] = softmax joint[n, ·]

The objective Σ_n logsumexp joint[n, ·] + log priors never falls. The start is the share of votes;
items that nobody labelled start even and join in, as in a Gaussian mixture. After `steps` M steps
a new item has P(t = k | u) ∝ share[k] exp(−‖u − mean[k]‖² / 2), sharpened by `temperature`.

The paper has means around zero (`centred=False`). Around the middle of the task's own items it does
not matter where embeddings of new classes lie as a whole, which those of the source cannot tell.

One faultless annotator, one step and no priors: prototypical networks. Embeddings that are all the
same: Dawid & Skene with priors. No annotators: a Gaussian mixture.

EM ends where it began when most annotators guess. With `starts = everyone` it also begins from each
annotator's word alone, and every end counts by its objective.

    A. Kumagai, T. Iwata, T. Nishiyama, Y. Ida, Y. Fujiwara. Meta-learning representations for
    learning from multiple annotators. arXiv:2506.10259, 2025.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ..params import Count, Positive
from .adapter import Adapted, Adapter, Rule, logarithm
from .items import Items, share

__all__ = [
    "Annotators",
    "Classes",
    "Em",
    "EmRule",
    "EmTask",
    "Gaussians",
    "MapRule",
    "logs",
    "squared_distance",
]

_TINY = 1e-12
_DOUBT = 0.25  # how much the votes count where one annotator's word is the start
_MOST = 16  # annotators whose word is a start: those with most labels


class Classes(NamedTuple):
    """What is learned of the classes of every episode."""

    log_share: Tensor  # (episode, class)
    mean: Tensor  # (episode, class, feature)
    variance: Tensor  # (episode)


class Gaussians(nn.Module):
    """Classes as Gaussians of one variance, fitted to the most probable parameters.

    Parameters
    ----------
    b, tau
        The priors of shares and means; see above.
    spread
        Whether the variance, else 1, is learned from the support: with S the squared distances,
        (S + spread) / (n M + spread), as if that many more had been seen at variance 1.
    """

    def __init__(self, b: float, tau: float, spread: float | None = None) -> None:
        super().__init__()
        self.log_b, self.log_tau = logarithm(b), logarithm(tau)
        self.log_spread = None if spread is None else logarithm(spread)

    def update(self, items: Items, posterior: Tensor, last: Classes | None) -> Classes:
        """Return the M step; `posterior` is zero for padding."""
        b, tau = self.log_b.exp(), self.log_tau.exp()
        variance = items.u.new_ones(len(items.u)) if last is None else last.variance
        count = posterior.sum(dim=1)  # (episode, class)
        total = torch.einsum("enk,enm->ekm", posterior, items.u)
        mean = total / (count + tau * variance[:, None]).clamp(min=_TINY)[:, :, None]
        if self.log_spread is not None:
            more = self.log_spread.exp()
            far = (posterior * squared_distance(items.u, mean)).sum(dim=(1, 2))
            variance = (far + more) / (count.sum(dim=1) * items.u.shape[2] + more)
        return Classes(logs(share(count + b)), mean, variance)

    def log_joint(self, classes: Classes, u: Tensor) -> Tensor:
        """Return log P(class, embedding): (episode, item, class)."""
        variance = classes.variance[:, None, None]
        near = -squared_distance(u, classes.mean) / (2 * variance)
        return classes.log_share[:, None] + near - u.shape[2] / 2 * (2 * pi * variance).log()

    def log_predictive(self, classes: Classes, u: Tensor) -> Tensor:
        """Return the same for items that were not learned from."""
        return self.log_joint(classes, u)

    def log_prior(self, classes: Classes) -> Tensor:
        """Return the log-density of the parameters, up to a constant: (episode)."""
        length = classes.mean.square().sum(dim=(1, 2))
        found = self.log_b.exp() * classes.log_share.sum(dim=1) - self.log_tau.exp() / 2 * length
        if self.log_spread is not None:
            variance = classes.variance
            found = found - self.log_spread.exp() / 2 * (variance.log() + 1 / variance)
        return found


class Annotators(nn.Module, ABC):
    """How annotators err: what is learned of them, and how probable it makes their labels."""

    @abstractmethod
    def update(self, items: Items, posterior: Tensor, last: Any) -> Any:
        """Return what is learned of the annotators; `last` is `None` in the first step."""

    @abstractmethod
    def log_given(self, crowd: Any) -> Tensor:
        """Return log-probabilities of labels: (episode, annotator, given, true)."""

    @abstractmethod
    def log_prior(self, crowd: Any) -> Tensor:
        """Return the log-density of what was learned, up to a constant: (episode)."""

    def log_given_labels(self, crowd: Any, items: Items) -> Tensor:
        """Return log P(what was said | true class): (annotation, true)."""
        return self.log_given(crowd).flatten(0, 2)[items.annotations]

    def confusion(self, crowd: Any) -> Tensor:
        """Return confusion matrices: (episode, annotator, true, given)."""
        return share(self.log_given(crowd).exp().transpose(2, 3))


class Em(Adapter):
    """The loop: M, E, M, … on the support.

    Parameters
    ----------
    classes
        What embeddings of a class look like.
    annotators
        How annotators err.
    settings
        Steps, starts, scale and temperature.
    """

    def __init__(self, classes: Gaussians, annotators: Annotators, settings: EmRule) -> None:
        super().__init__()
        self.classes, self.annotators = classes, annotators
        self.steps, self.starts, self.centred = settings.steps, settings.starts, settings.centred
        self.log_scale = logarithm(settings.scale)
        self.log_temperature = logarithm(settings.temperature)
        self.log_evidence = logarithm(settings.evidence) if self.starts == "everyone" else None

    def adapt(self, support: Items) -> EmTask:
        middle = self.middle(support)
        support = self.scaled(support, middle)
        starts, usable = self._beliefs(support)  # (start, episode, item, class), (start, episode)
        items = support.repeat(len(starts)) if len(starts) > 1 else support
        posterior = starts.flatten(0, 1)
        classes, crowd = None, None
        for step in range(self.steps):
            if step:
                posterior = self.joint(items, classes, crowd).softmax(dim=2)
            seen = posterior * items.present[:, :, None]
            classes = self.classes.update(items, seen, classes)
            crowd = self.annotators.update(items, seen, crowd)
        log_weight = starts.new_zeros(len(starts), len(support.u))
        if self.log_evidence is not None:
            objective = self.objective(items, classes, crowd).reshape(len(starts), -1)
            objective = (self.log_evidence.exp() * objective).masked_fill(~usable, -torch.inf)
            log_weight = objective.log_softmax(dim=0)
        return EmTask(self, support, middle, classes, crowd, log_weight)

    def middle(self, support: Items) -> Tensor:
        """Return around what class means are believed to lie: (episode, 1, feature)."""
        return share(support.present * self.centred, dim=1)[:, None] @ support.u

    def scaled(self, items: Items, middle: Tensor) -> Items:
        """Return items with embeddings from the middle, in units of the classes' spread."""
        return items._replace(u=(items.u - middle) * self.log_scale.exp())

    def joint(self, items: Items, classes: Any, crowd: Any) -> Tensor:
        """Return log P(class, embedding, labels): (episode, item, class)."""
        heard = items.by_item(self.annotators.log_given_labels(crowd, items))
        return self.classes.log_joint(classes, items.u) + heard

    def objective(self, items: Items, classes: Any, crowd: Any) -> Tensor:
        """Return what no step lowers: (episode)."""
        evidence = self.joint(items, classes, crowd).logsumexp(dim=2) * items.present
        priors = self.classes.log_prior(classes) + self.annotators.log_prior(crowd)
        return evidence.sum(dim=1) + priors

    def _beliefs(self, support: Items) -> tuple[Tensor, Tensor]:
        """Return what to begin from: beliefs, and in which episodes each of them is a start."""
        shares = support.shares()
        everywhere = torch.ones_like(shares[:, 0, 0], dtype=torch.bool)
        if self.starts == "votes":
            return shares[None], everywhere[None]
        count = support.by_annotations(torch.ones_like(support.annotations)).sum(
            dim=2
        )  # (episode, annotator)
        order = count.argsort(dim=1, descending=True, stable=True)
        rank = order.argsort(dim=1).flatten()[support.annotator]  # (annotation)
        count = count.gather(1, order)
        chosen = torch.nn.functional.one_hot(support.label, support.n_classes).to(shares)
        posteriors, usable = [shares], [everywhere]
        for position in range(min(support.n_annotators, _MOST)):
            word = support.by_item(chosen * (rank == position)[:, None])
            spoke = word.sum(dim=2, keepdim=True) > 0
            posteriors.append(torch.where(spoke, share(word + _DOUBT * shares), shares))
            usable.append(count[:, position] > 0)
        return torch.stack(posteriors), torch.stack(usable)


class EmTask(Adapted):
    """Tasks learned by EM, from one or several starts."""

    def __init__(
        self,
        model: Em,
        support: Items,
        middle: Tensor,
        classes: Any,
        crowd: Any,
        log_weight: Tensor,
    ) -> None:
        self.model, self.support, self.middle = model, support, middle
        self.classes, self.crowd = classes, crowd
        self.log_weight = log_weight  # (start, episode)

    def log_truth(self, items: Items) -> Tensor:
        """Return log-probabilities of classes; labels on these items count too, if there are any.

        They have to be of the annotators of the support, in the same order.
        """
        model, items = self.model, self.model.scaled(items, self.middle)
        items = items.repeat(len(self.log_weight)) if len(self.log_weight) > 1 else items
        log = model.classes.log_predictive(self.classes, items.u) * model.log_temperature.exp()
        if len(items.annotations):
            log = log + items.by_item(model.annotators.log_given_labels(self.crowd, items))
        return self._mixed(log.log_softmax(dim=2), self.log_weight[:, :, None, None]).log_softmax(2)

    @property
    def posterior(self) -> Tensor:  # type: ignore[override]
        items = self.support.repeat(len(self.log_weight))
        log = self.model.joint(items, self.classes, self.crowd).log_softmax(dim=2)
        return self._mixed(log, self.log_weight[:, :, None, None]).exp()

    @property
    def confusion(self) -> Tensor:
        log = logs(self.model.annotators.confusion(self.crowd))
        return self._mixed(log, self.log_weight[:, :, None, None, None]).exp()

    def _mixed(self, log: Tensor, weight: Tensor) -> Tensor:
        """Return the mean of the starts' probabilities, as logarithms."""
        return (log.reshape(*self.log_weight.shape, *log.shape[1:]) + weight).logsumexp(dim=0)


@dataclass(frozen=True, kw_only=True)
class EmRule(Rule):
    """EM on embeddings.

    Parameters
    ----------
    steps
        M steps; with 1, prototypes of soft votes.
    starts
        Begin from the votes, or from these and also from every annotator's word alone (of more
        than 16, those with most labels).
    scale
        Factor on embeddings, whose classes have variance 1 after it.
    temperature
        How much sharper predictions are than the model says.
    b
        Pseudo-count of every class.
    tau
        Precision of the prior of class means.
    evidence
        How much an end counts by its objective, of several starts.
    centred
        Believe class means to lie around the middle of the support, not around zero.
    """

    steps: Count = 2
    starts: Literal["votes", "everyone"] = "votes"
    scale: Positive = 1.0
    temperature: Positive = 1.0
    b: Positive = 1.0
    tau: Positive = 1e-3
    evidence: Positive = 1.0
    centred: bool = True


@dataclass(frozen=True, kw_only=True)
class MapRule(EmRule):
    """EM to the most probable parameters.

    Parameters
    ----------
    spread
        Learn the variance of classes from the support, with that many pseudo-observations;
        `None` keeps it at 1.
    """

    spread: Positive | None = None

    def classes(self) -> Gaussians:
        """Return the classes' part of the model."""
        return Gaussians(self.b, self.tau, self.spread)


def logs(probabilities: Tensor) -> Tensor:
    """Return logarithms; what cannot be counts as one in 1e12."""
    return probabilities.clamp(min=_TINY).log()


def squared_distance(u: Tensor, mean: Tensor) -> Tensor:
    """Return squared distances: (episode, item, class)."""
    cross = torch.einsum("enm,ekm->enk", u, mean)
    length = u.square().sum(dim=2)[:, :, None] + mean.square().sum(dim=2)[:, None]
    return (length - 2 * cross).clamp(min=0)
