"""Simulated crowds who choose classes, each by a model of how annotators come to be wrong.

Most models are a confusion matrix for every annotator, drawn as the class says. Some also give
items a difficulty, or let annotators copy each other; these override how answers are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from ..base.arrays import Array, Floats
from ..errors import DataError, MethodError, OptionError
from ..params import Count, NonNegative, Positive, Probability
from .strategy import Asked, CrowdParameters, Design, Strategy, dominant, one_coin

_CLOSE = 1e-6  # rows whose sum is this near to one are taken as they are


@dataclass(frozen=True, kw_only=True)
class IndependentConfusion(Strategy):
    """A random confusion matrix per annotator, with the largest probability for the truth.

    Independent confusion: every annotator has a random confusion matrix, and is mostly right.

    The rows of a matrix are uniform on the simplex. In each, the diagonal entry is then swapped
    with the largest, so that no wrong class is more probable than the true one. On average an
    annotator is right with probability (1 + 1/2 + … + 1/K) / K.

        confusion[a, t, ·] ~ Dirichlet(1, …, 1), largest entry swapped with [t]

    When it fails: Errors are independent between annotators, which flatters Dawid-Skene and its
    family.

        A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
        EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("independent-confusion", n_annotators=2, n_classes=3)
    >>> confusion = drawn.crowd.confusion  # (annotator, true class, given class)
    >>> bool((confusion.argmax(axis=2) == [0, 1, 2]).all())
    True
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        confusion = uniform_matrices(design.n_annotators, design.n_classes, rng)
        return CrowdParameters(design.n_classes, confusion, {})


def uniform_matrices(count: int, n_classes: int, rng: np.random.Generator) -> Floats:
    """Return matrices with rows uniform on the simplex, the largest entry on the diagonal."""
    return dominant(rng.dirichlet(np.ones(n_classes), size=(count, n_classes)))


@dataclass(frozen=True, kw_only=True)
class Community(Strategy):
    """Annotators whose confusion matrices vary around that of their community.

    Communities: annotators of one community make similar mistakes.

    Every community has a confusion matrix, drawn as in `independent-confusion`. Every annotator
    belongs to one, any of them with the same probability. Row t of the annotator's own matrix is
    drawn from a Dirichlet(strength · row t of the community's matrix).

        confusion[a, t, ·] ~ Dirichlet(strength · matrix[community of a, t, ·])

    When it fails: Communities share matrices, not errors on the same items, so answers stay
    independent given the truth.

        M. Venanzi, J. Guiver, G. Kazai, P. Kohli, M. Shokouhi. Community-based Bayesian aggregation
        models for crowdsourcing. Proceedings of WWW, 2014. doi:10.1145/2566486.2567989

    Parameters
    ----------
    n_communities
        How many communities there are.
    strength
        How close annotators stay to their community.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(Community(n_communities=2), n_annotators=6, seed=1)
    >>> drawn.extras["community"].tolist()
    [1, 0, 1, 0, 0, 1]
    """

    n_communities: Count = 3
    strength: Positive = 10.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        centre = uniform_matrices(self.n_communities, design.n_classes, rng)
        community = rng.choice(self.n_communities, size=design.n_annotators)
        expected = centre[community]  # (annotator, true class, given class)
        amount = rng.standard_gamma(self.strength * expected)
        total = amount.sum(axis=2, keepdims=True)
        # A very small strength can leave nothing to divide; the expectation then stands in.
        confusion = np.where(total > 0, amount / np.where(total > 0, total, 1), expected)
        extras = {"community": community, "community_matrices": centre}
        return CrowdParameters(design.n_classes, confusion, extras)


@dataclass(frozen=True, kw_only=True)
class DiscreteDifficulty(Strategy):
    """Items of three difficulties, annotators of two abilities.

    Discrete difficulty: items are easy, hard or random; annotators are good or bad.

    Everybody is right on an easy item, and everybody guesses on a random one. On a hard item
    answers come from confusion matrices. The rows of good annotators are drawn from a
    Dirichlet(0.2), with the largest entry brought to the diagonal. Those of bad annotators are
    drawn from a Dirichlet(5) and left as they are, close to a guess. Good annotators come first.

        P(label g of a on i | t) = identity, confusion[a] or 1 / n_classes by difficulty[i]

    When it fails: Difficulty has three values and is the same for everybody; real items are hard
    for some.

        J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more:
        optimal integration of labels from labelers of unknown expertise. Advances in Neural
        Information Processing Systems 22, 2009.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    ratio
        Share of good annotators; their number is rounded down.
    ratio_diff
        How many easy items come on one hard item.
    random
        Share of random items.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate(DiscreteDifficulty(random=0.5), n_items=4).extras["difficulties"].tolist()
    ['easy', 'easy', 'random', 'random']
    """

    ratio: Probability = 0.1
    ratio_diff: NonNegative = 1.0
    random: Probability = 0.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_classes = design.n_classes
        hard = (1 - self.random) / (self.ratio_diff + 1)
        shares = [self.ratio_diff * hard, hard, self.random]
        difficulty = rng.choice(["easy", "hard", "random"], p=shares, size=design.n_items)
        n_good = int(self.ratio * design.n_annotators)
        n_bad = design.n_annotators - n_good
        good = rng.dirichlet(np.full(n_classes, 0.2), size=(n_good, n_classes))
        bad = rng.dirichlet(np.full(n_classes, 5.0), size=(n_bad, n_classes))
        confusion = np.concatenate([dominant(good), bad])
        return CrowdParameters(n_classes, confusion, {"difficulties": difficulty})

    def answers(self, crowd: CrowdParameters, pairs: Asked, rng: np.random.Generator) -> Array:
        difficulty = crowd.extras["difficulties"][pairs.item]
        label = pairs.truth.copy()
        hard = np.flatnonzero(difficulty == "hard")
        if len(hard):
            label[hard] = super().answers(crowd, Asked(*(part[hard] for part in pairs)), rng)
        guessed = np.flatnonzero(difficulty == "random")
        if len(guessed):
            label[guessed] = rng.choice(crowd.n_classes, size=len(guessed))
        return label


@dataclass(frozen=True, kw_only=True)
class GivenMatrices(Strategy):
    """Confusion matrices that are given.

    Given matrices: the confusion matrix of every annotator is known beforehand.

    Annotator a, seeing an item of class t, says g with probability `matrices[a, t, g]`. The
    matrices come from a NumPy file, or from Python with `simulate("given-matrices", matrices=…)`.

        P(label g of a | t) = matrices[a, t, g]

    When it fails: Matrices estimated from few labels are noisy, and data drawn from them are
    noisier than the crowd was.

        A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
        EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806

    Parameters
    ----------
    file
        A `.npy` file with an array (annotator, true class, given class).

    Examples
    --------
    >>> from dissensus import simulate
    >>> contrary = [[[0, 1], [1, 0]]]
    >>> drawn = simulate("given-matrices", matrices=contrary, n_items=4)
    >>> drawn.truth.tolist(), drawn.annotations.label.tolist()
    ([1, 1, 1, 0], [0, 0, 0, 1])
    """

    file: str | None = None

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        if (self.file is None) == (design.matrices is None):
            raise OptionError("given-matrices needs its matrices: give either file or matrices")
        matrices: Any = design.matrices if self.file is None else _load(self.file)
        return CrowdParameters(design.n_classes, _checked(matrices, design), {})


def _load(file: str) -> Array:
    try:
        with Path(file).open("rb") as handle:
            return np.lib.format.read_array(handle, allow_pickle=False)
    except OSError as problem:
        raise DataError(f"{file}: {problem.strerror or 'cannot be read'}") from None
    except ValueError:
        raise DataError(
            f"{file}: not one NumPy array of numbers; write it with numpy.save"
        ) from None


def _checked(values: Any, design: Design) -> Floats:
    """Return the matrices, if that is what they are."""
    try:
        matrices = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("matrices must be numbers (annotator, true class, given class)") from None
    requested = (design.n_annotators, design.n_classes, design.n_classes)
    if matrices.shape != requested:
        raise OptionError(
            f"matrices of shape {matrices.shape}, but n_annotators = {design.n_annotators} and "
            f"n_classes = {design.n_classes} need {requested}"
        )
    wrong = ~(matrices >= 0).all(axis=2) | ~(abs(matrices.sum(axis=2) - 1) <= _CLOSE)
    if wrong.any():
        annotator, true = np.argwhere(wrong)[0].tolist()
        row = matrices[annotator, true].tolist()
        raise OptionError(
            f"annotator {annotator}, true class {true}: {row} is not a distribution; "
            "it needs numbers from 0 that sum to 1"
        )
    return matrices


@dataclass(frozen=True, kw_only=True)
class Glad(Strategy):
    """Annotators with abilities and items with difficulties.

    GLAD: able annotators are right, and easy items are labelled right.

    Annotator a is right about item i with probability sigmoid(ability[a] · exp(log_easiness[i])).
    Otherwise all wrong classes are equally probable. Both parameters are drawn from a normal
    distribution around 1 with deviation 1. A negative ability is somebody who is wrong on purpose.

        P(a is right about i) = sigmoid(ability[a] · exp(log_easiness[i]))

    When it fails: Wrong labels are spread evenly, so no two classes are easily mistaken for each
    other.

        J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more:
        optimal integration of labels from labelers of unknown expertise. Advances in Neural
        Information Processing Systems 22, 2009.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("glad", n_items=4, n_annotators=2)
    >>> {name: values.shape for name, values in drawn.extras.items()}
    {'ability': (2,), 'log_easiness': (4,)}
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        ability = rng.normal(1, 1, size=design.n_annotators)
        log_easiness = rng.normal(1, 1, size=design.n_items)
        extras = {"ability": ability, "log_easiness": log_easiness}
        return CrowdParameters(design.n_classes, None, extras)

    def probabilities(self, crowd: CrowdParameters, pairs: Asked) -> Floats:
        easiness = np.exp(crowd.extras["log_easiness"][pairs.item])
        correct = expit(crowd.extras["ability"][pairs.annotator] * easiness)  # (answer)
        return one_coin(correct[:, None], pairs.truth[:, None] == np.arange(crowd.n_classes))


@dataclass(frozen=True, kw_only=True)
class HammerSpammer(Strategy):
    """Annotators who are always right, and annotators who guess.

    Hammers and spammers: some annotators are always right, the others guess.

    A hammer's confusion matrix is the identity. A spammer gives every class with the same
    probability, whatever the truth. Spammers come last.

        confusion[a] = identity for hammers, 1 / n_classes everywhere for spammers

    When it fails: Real annotators are neither: methods that look perfect here, such as `mace`, need
    not be so on real data.

        D. R. Karger, S. Oh, D. Shah. Iterative learning for reliable crowdsourcing systems.
        Advances in Neural Information Processing Systems 24, 2011.

    Parameters
    ----------
    ratio
        Share of spammers; their number is rounded down.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(HammerSpammer(ratio=0.5), n_annotators=2)
    >>> drawn.crowd.confusion.tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    """

    ratio: Probability = 0.1

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_hammers = design.n_annotators - int(self.ratio * design.n_annotators)
        shape = (design.n_annotators, design.n_classes, design.n_classes)
        confusion = np.full(shape, 1 / design.n_classes)
        confusion[:n_hammers] = np.eye(design.n_classes)
        return CrowdParameters(design.n_classes, confusion, {})


@dataclass(frozen=True, kw_only=True)
class Mace(Strategy):
    """Annotators who know, or guess with a response bias.

    MACE: annotators either know the answer or guess with a response bias.

    Annotator a gives the true class with probability trust[a]. Otherwise the label is drawn from
    their response bias, a distribution over the classes that does not depend on the item. Trust is
    drawn from a Beta(0.5, 0.5), which makes many experts and many spammers and few in between,
    response biases uniformly from the simplex.

        P(label g of a | t) = trust[a] · 1(g = t) + (1 - trust[a]) · bias[a, g]

    When it fails: No honest errors: who knows is always right, so votes of the trusted need no more
    than a few.

        D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy. Learning whom to trust with MACE.
        Proceedings of NAACL-HLT, 2013.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("mace", n_annotators=2, n_classes=3)
    >>> {name: values.shape for name, values in drawn.extras.items()}
    {'trust': (2,), 'response_bias': (2, 3)}
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        trust = rng.beta(0.5, 0.5, size=design.n_annotators)
        response_bias = rng.dirichlet(np.ones(design.n_classes), size=design.n_annotators)
        knows = trust[:, None, None]
        confusion = knows * np.eye(design.n_classes) + (1 - knows) * response_bias[:, None, :]
        return CrowdParameters(
            design.n_classes, confusion, {"trust": trust, "response_bias": response_bias}
        )


@dataclass(frozen=True, kw_only=True)
class OneCoin(Strategy):
    """One probability of being right per annotator.

    One coin: every annotator is right with a probability of their own, for all classes.

    The probabilities are drawn from a Beta(a, b), stretched from [0, 1] to [low, high]. A wrong
    label is any other class with the same probability.

        right[a] = low + (high - low) · Beta(a, b)

    When it fails: All classes are equally hard and all errors equally probable, which no real task
    has.

        Y. Zhang, X. Chen, D. Zhou, M. I. Jordan. Spectral methods meet EM: a provably optimal
        algorithm for crowdsourcing. Journal of Machine Learning Research 17, 2016.

    Parameters
    ----------
    a
        First shape of the Beta distribution; more of it, more annotators near `high`.
    b
        Second shape; more of it, more annotators near `low`.
    low
        The smallest probability of being right.
    high
        The largest probability of being right.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(OneCoin(low=0.75, high=0.75), n_classes=2)
    >>> drawn.crowd.confusion.tolist()
    [[[0.75, 0.25], [0.25, 0.75]]]
    """

    a: Positive = 1.0
    b: Positive = 1.0
    low: Probability = 0.5
    high: Probability = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise MethodError(f"low = {self.low}, but it must be at most high = {self.high}")

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        correct = self.low + (self.high - self.low) * rng.beta(
            self.a, self.b, size=design.n_annotators
        )
        is_true = np.eye(design.n_classes, dtype=bool)
        confusion = one_coin(correct[:, None, None], is_true)
        return CrowdParameters(design.n_classes, confusion, {"correct": correct})


@dataclass(frozen=True, kw_only=True)
class Ordinal(Strategy):
    """Annotators who miss by a little more often than by a lot.

    Ordinal: classes stand in an order, and near classes are confused more often than far ones.

    Annotator a, seeing an item of class t, says g with a probability proportional to
    exp(-sharpness[a] · |t + shift[a] - g|). A positive shift is somebody who rates too high. Shifts
    are drawn from a normal distribution around 0, sharpness from a Gamma with shape 4.

        P(label g of a | t) ∝ exp(-sharpness[a] · |t + shift[a] - g|)

    When it fails: The steps of the scale are equally wide for everybody; real raters avoid ends or
    use three of five steps.

        D. Zhou, Q. Liu, J. C. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
        conditional entropy. Proceedings of ICML, 2014. (The idea that confusion follows the order;
        the formula is ours.)

    Parameters
    ----------
    sharpness
        Mean sharpness of the annotators; towards 0 they guess.
    bias
        Standard deviation of the annotators' shifts, in classes.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(Ordinal(bias=0), n_classes=4)
    >>> row = drawn.crowd.confusion[0, 0]  # (given class)
    >>> bool((np.diff(row) < 0).all())
    True
    """

    sharpness: Positive = 2.0
    bias: NonNegative = 0.5

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        sharpness = rng.gamma(4, self.sharpness / 4, size=design.n_annotators)
        shift = rng.normal(0, self.bias, size=design.n_annotators)
        true, label = np.ogrid[: design.n_classes, : design.n_classes]
        distance = abs(true + shift[:, None, None] - label)  # (annotator, true, given)
        confusion = softmax(-sharpness[:, None, None] * distance, axis=2)
        return CrowdParameters(
            design.n_classes, confusion, {"sharpness": sharpness, "shift": shift}
        )


@dataclass(frozen=True, kw_only=True)
class StudentTeacher(Strategy):
    """Annotators with confusion matrices of their own, and annotators who took over one of these.

    Students and teachers: some annotators have learned from others, with all their mistakes.

    Teachers have random confusion matrices, as in `independent-confusion`. Every student has one
    teacher, any of them with the same probability, and the teacher's matrix. Students come last.
    Their answers are still independent, unless `copy_prob` is set: with that probability a student
    gives the teacher's answer where the teacher has labelled the item too. This breaks what most
    models assume, that answers are independent once the truth is known.

        confusion[student] = confusion[teacher of the student]

    When it fails: Copies are whole matrices or whole answers; real annotators copy now and then,
    and from several others.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    ratio
        Share of students; their number is rounded down.
    copy_prob
        Probability that a student gives the teacher's answer, where there is one.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(StudentTeacher(ratio=0.6), n_annotators=5, seed=1)
    >>> drawn.extras["student_teacher_association"].tolist()
    [[2, 1], [3, 0], [4, 1]]
    """

    ratio: Probability = 0.1
    copy_prob: Probability = 0.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_students = int(self.ratio * design.n_annotators)
        n_teachers = design.n_annotators - n_students
        if n_teachers == 0:
            raise OptionError(
                f"ratio = {self.ratio} makes students of all {design.n_annotators} annotators; "
                "lower it, so that somebody can teach"
            )
        matrices = uniform_matrices(n_teachers, design.n_classes, rng)
        teacher = rng.choice(n_teachers, replace=True, size=n_students)
        student = np.arange(n_teachers, design.n_annotators)
        pairs = np.column_stack([student, teacher])  # (student, 2)
        confusion = np.concatenate([matrices, matrices[teacher]])
        return CrowdParameters(design.n_classes, confusion, {"student_teacher_association": pairs})

    def answers(self, crowd: CrowdParameters, pairs: Asked, rng: np.random.Generator) -> Array:
        label, item, annotator = super().answers(crowd, pairs, rng), pairs.item, pairs.annotator
        student, teacher = crowd.extras["student_teacher_association"].T
        if self.copy_prob == 0 or len(student) == 0:
            return label
        learned = np.full(int(student.max()) + 1, -1)  # (annotator): the teacher, or -1
        learned[student] = teacher
        # An answer is one number, so that a teacher's can be looked up in sorted order.
        key = item.astype(np.int64) * len(learned) + annotator
        by_key = key.argsort(kind="stable")
        taught = np.flatnonzero(learned[annotator] >= 0)
        requested = key[taught] - annotator[taught] + learned[annotator[taught]]
        position = by_key[np.searchsorted(key, requested, sorter=by_key)]  # nobody is past the end
        shared = key[position] == requested
        taught, position = taught[shared], position[shared]
        copied = rng.random(len(taught)) < self.copy_prob
        label[taught[copied]] = label[position[copied]]
        return label
