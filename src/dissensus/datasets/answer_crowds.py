"""Simulated crowds whose answers are sets, rankings, boxes or masks.

A strategy draws the parameters of its annotators, the truth of every item, and what those who are
asked then answer. What people are like is in the class of each: they overlook or add things, are
imprecise or careless, or prefer a side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from ..answers.marks import Boxes
from ..answers.masks import Masks as MaskAnswers
from ..answers.rankings import Rankings
from ..answers.sets import Sets as SetAnswers
from ..base.arrays import Floats
from ..base.names import numbered
from ..params import Count, NonNegative, Positive, Probability
from .strategy import AnswerStrategy, Assigned, Drawn

_SIZE = (640.0, 480.0)  # width and height of images


@dataclass(frozen=True, kw_only=True)
class Comparisons(AnswerStrategy):
    """Annotators who compare two things per item, by Bradley and Terry with ties.

    Comparisons: which of two things is better, with ties, a side, and careless annotators.

        odds of left : right : tie = e^(d/2) : e^(-d/2) : tie
        d = score[left] - score[right] + side

    When it fails: One scale for all annotators: there are no tastes and no circles.

    Parameters
    ----------
    things
        Number of things.
    spread
        Standard deviation of their scores.
    tie
        Weight of a tie, against those of left and right.
    careless
        Share of annotators who answer at random.
    side
        Preference for the left side, in units of scores.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("comparisons[things=5]", n_items=20, n_annotators=3).answers
    <rankings: 20 items, 3 annotators, 5 things, 2.0 ranked at a time>
    """

    things: Count = 20
    spread: Positive = 1.0
    tie: NonNegative = 0.5
    careless: Probability = 0.1
    side: float = 0.0

    def draw(self, assignment: Assigned, rng: np.random.Generator) -> Drawn:
        n = max(self.things, 2)
        score = rng.normal(0, self.spread, n)
        left = rng.integers(n, size=assignment.n_items)
        right = (left + rng.integers(1, n, size=assignment.n_items)) % n
        careless = rng.random(assignment.n_annotators) < self.careless
        difference = (score[left] - score[right] + self.side)[assignment.item]
        odds = np.stack(
            [np.exp(difference / 2), np.exp(-difference / 2), np.full(len(difference), self.tie)], 1
        )
        odds[careless[assignment.annotator]] = 1.0
        cumulative = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
        outcome = (rng.random(len(difference))[:, None] > cumulative[:, :2]).sum(axis=1)
        names, thing_names = assignment.names, numbered(n)
        answers = Rankings.from_comparisons(
            names["items"][assignment.item],
            names["annotators"][assignment.annotator],
            left=thing_names[left[assignment.item]],
            right=thing_names[right[assignment.item]],
            winner=np.array(["left", "right", "tie"])[outcome],
            **names,
        )
        truth = dict(zip(thing_names.tolist(), score.round(6).tolist(), strict=True))
        return Drawn(answers, truth, {"careless": careless})


@dataclass(frozen=True, kw_only=True)
class Masks(AnswerStrategy):
    """Annotators who paint one object in an image.

    Masks: ellipses with uncertain borders, and annotators who are far off.

        mask of a = pixels with distance to the border + smooth noise + shift[a] > 0
        bad annotators: the same, moved elsewhere

    When it fails: Every object is one ellipse; real ones have holes, and details that annotators
    leave out together.

    Parameters
    ----------
    size
        Height and width of images in pixels.
    noise
        Standard deviation of the border of a mask in pixels.
    shift
        Standard deviation of how much too large or too small an annotator's masks are.
    bad
        Share of annotators whose masks are elsewhere.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("masks", n_items=4, n_annotators=3).answers
    <masks: 4 items, 3 annotators>
    """

    size: Count = 64
    noise: NonNegative = 1.5
    shift: NonNegative = 1.0
    bad: Probability = 0.1

    def draw(self, assignment: Assigned, rng: np.random.Generator) -> Drawn:
        shift = rng.normal(0, self.shift, assignment.n_annotators)
        bad = rng.random(assignment.n_annotators) < self.bad
        border = [self._border(rng) for _ in range(assignment.n_items)]
        counts = []
        for item, annotator in zip(
            assignment.item.tolist(), assignment.annotator.tolist(), strict=True
        ):
            noise = gaussian_filter(rng.normal(size=(self.size, self.size)), 4)
            noise *= self.noise / max(float(noise.std()), 1e-9)
            inside = border[item] + noise + shift[annotator] > 0
            if bad[annotator]:
                far = rng.integers(-self.size // 3, self.size // 3 + 1, 2)
                inside = np.roll(inside, far, axis=(0, 1))
            counts.append(_runs(inside))
        names = assignment.names
        size = dict.fromkeys(names["items"].tolist(), (self.size, self.size))
        answers = MaskAnswers.from_columns(
            names["items"][assignment.item], names["annotators"][assignment.annotator], counts,
            size=size, **names,
        )  # fmt: skip
        true_counts = [_runs(depth > 0) for depth in border]
        items = names["items"]
        truth = MaskAnswers.from_columns(items, ["truth"] * len(items), true_counts, size=size)
        return Drawn(answers, truth, {"shift": shift, "bad": bad})

    def _border(self, rng: np.random.Generator) -> Floats:
        """Return about how far pixels are inside an ellipse: (row, column)."""
        middle = self.size * rng.uniform(0.375, 0.625, 2)
        axes = self.size * rng.uniform(0.125, 0.28, 2)
        angle = rng.uniform(0, np.pi)
        y, x = np.mgrid[: self.size, : self.size] - middle[:, None, None]
        along = (x * np.cos(angle) + y * np.sin(angle)) / axes[0]
        across = (y * np.cos(angle) - x * np.sin(angle)) / axes[1]
        return (1 - np.hypot(along, across)) * np.sqrt(axes[0] * axes[1])


def _runs(inside: npt.NDArray[np.bool_]) -> list[int]:
    """Return run lengths, column by column, those outside first."""
    flat = inside.T.ravel()
    change = np.flatnonzero(np.diff(flat, prepend=False))
    return np.diff(np.concatenate([[0], change, [len(flat)]])).tolist()


@dataclass(frozen=True, kw_only=True)
class Objects(AnswerStrategy):
    """Annotators who draw boxes around objects.

    Objects: boxes in images, some missed, some spurious, with imprecise corners.

        corner of a = true corner + spread · size · N(0, 1), with probability found[a]
        number of spurious boxes ~ Poisson(clutter)

    When it fails: Misses do not depend on what the object looks like; real objects that are small
    or hidden are missed by most.

    Parameters
    ----------
    objects
        Mean number of objects in an image; it is drawn from a Poisson distribution.
    yes, no
        The Beta distribution of the share of objects that an annotator finds.
    clutter
        Mean number of spurious boxes in an answer.
    spread
        Standard deviation of corners, relative to the size of a box.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("objects", n_items=5, n_annotators=3).answers
    <boxes: 5 items, 3 annotators, ... marks...>
    """

    objects: NonNegative = 4.0
    yes: Positive = 6.0
    no: Positive = 3.0
    clutter: NonNegative = 0.3
    spread: NonNegative = 0.05

    def draw(self, assignment: Assigned, rng: np.random.Generator) -> Drawn:
        n = rng.poisson(self.objects, assignment.n_items)
        true_item = np.repeat(np.arange(assignment.n_items), n)
        true = _boxes(len(true_item), rng)
        sensitivity = rng.beta(self.yes, self.no, assignment.n_annotators)
        start = np.cumsum(n) - n
        n_objects = n[assignment.item]
        row = np.repeat(np.arange(len(assignment.item)), n_objects)
        at = np.arange(len(row)) - np.repeat(np.cumsum(n_objects) - n_objects, n_objects)
        at += np.repeat(start[assignment.item], n_objects)
        hit = rng.random(len(row)) < sensitivity[assignment.annotator[row]]
        row, at = row[hit], at[hit]
        extent = np.tile(true[at, 2:], 2)
        corners = np.hstack([true[at, :2], true[at, :2] + true[at, 2:]])
        corners = corners + rng.normal(size=corners.shape) * self.spread * extent
        low, high = (
            np.minimum(corners[:, :2], corners[:, 2:]),
            np.maximum(corners[:, :2], corners[:, 2:]),
        )
        extra = np.repeat(
            np.arange(len(assignment.item)), rng.poisson(self.clutter, len(assignment.item))
        )
        place = np.vstack([np.hstack([low, high - low]), _boxes(len(extra), rng)])
        rows = np.concatenate([row, extra])
        bare = np.setdiff1d(np.arange(len(assignment.item)), rows)
        rows = np.concatenate([rows, bare])
        place = np.vstack([place, np.full((len(bare), 4), np.nan)]).round(1)
        names = assignment.names
        answers = Boxes.from_columns(
            names["items"][assignment.item[rows]],
            names["annotators"][assignment.annotator[rows]],
            *place.T,
            **names,
        )
        empty = np.flatnonzero(n == 0)
        true_place = np.vstack([true, np.full((len(empty), 4), np.nan)]).round(1)
        items = names["items"][np.concatenate([true_item, empty])]
        truth = Boxes.from_columns(
            items, ["truth"] * len(items), *true_place.T, items=names["items"]
        )
        return Drawn(answers, truth, {"found": sensitivity})


def _boxes(count: int, rng: np.random.Generator) -> Floats:
    """Return boxes inside an image: x, y, w, h."""
    size = rng.uniform(0.05, 0.25, (count, 2)) * _SIZE
    return np.hstack([rng.random((count, 2)) * (np.array(_SIZE) - size), size])


@dataclass(frozen=True, kw_only=True)
class Sets(AnswerStrategy):
    """Annotators who choose any number of options.

    Sets: options that go together, and annotators who miss or add options.

        P(a chooses o) = sensitivity[a] if o is true of the item else 1 - specificity[a]

    When it fails: Annotators miss options independently; real ones stop after the first one or two.

    Parameters
    ----------
    options
        Number of options.
    profiles
        Number of groups of options that go together; every item has one of them.
    inside, outside
        Probability of an option in the profile of an item, and of any other.
    yes, no
        The Beta distribution of sensitivities; specificities have three times `yes`.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("sets", n_items=10, n_annotators=3).answers
    <sets: 10 items, 3 annotators, 10 options, ... chosen on average...>
    """

    options: Count = 10
    profiles: Count = 5
    inside: Probability = 0.9
    outside: Probability = 0.05
    yes: Positive = 6.0
    no: Positive = 4.0

    def draw(self, assignment: Assigned, rng: np.random.Generator) -> Drawn:
        member = rng.random((self.profiles, self.options)) < 2.5 / self.options
        profile = rng.integers(self.profiles, size=assignment.n_items)
        likely = np.where(member[profile], self.inside, self.outside)
        true = rng.random((assignment.n_items, self.options)) < likely
        sensitivity = rng.beta(self.yes, self.no, assignment.n_annotators)
        specificity = rng.beta(3 * self.yes, self.no / 2, assignment.n_annotators)
        shape = (len(assignment.item), self.options)
        yes = (
            sensitivity[assignment.annotator][:, None],
            1 - specificity[assignment.annotator][:, None],
        )
        choices = rng.random(shape) < np.where(true[assignment.item], *yes)
        names, options = assignment.names, numbered(self.options)
        answers = SetAnswers.from_values(
            names["items"][assignment.item],
            names["annotators"][assignment.annotator],
            [options[row].tolist() for row in choices],
            options=options,
            **names,
        )
        truth = SetAnswers.from_values(
            names["items"], ["truth"] * assignment.n_items, [options[row].tolist() for row in true],
            options=options,
        )  # fmt: skip
        return Drawn(answers, truth, {"sensitivity": sensitivity, "specificity": specificity})
