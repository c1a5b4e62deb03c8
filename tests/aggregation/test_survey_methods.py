"""Methods of the survey of Zheng et al. (2017): against plain loops, simulations and print."""

import itertools

import numpy as np
import pytest
from scipy.special import betaln, digamma, expit, log_ndtr

from dissensus import Annotations, aggregate, evaluate, simulate

from ..support import shared, shared_truth


def crowd(n_items=12, n_annotators=5, feedback=3, seed=0):
    return simulate(
        "independent-confusion",
        n_items=n_items,
        n_annotators=n_annotators,
        n_classes=2,
        feedback=feedback,
        seed=seed,
    )


def matrix_of(annotations):
    """Return labels as (item, annotator), -1 for none."""
    matrix = np.full((annotations.n_items, annotations.n_annotators), -1)
    matrix[annotations.item, annotations.annotator] = annotations.label
    return matrix


@pytest.mark.parametrize("n_classes", [2, 3])
def test_vi_mf_is_the_mean_field_of_plain_loops(n_classes):
    made = simulate("one-coin", n_items=40, n_annotators=6, n_classes=n_classes, feedback=4, seed=2)
    matrix = matrix_of(made.annotations)
    mu = np.array(
        [[(row == k).sum() / (row >= 0).sum() for k in range(n_classes)] for row in matrix]
    )
    for _ in range(60):
        alpha = np.ones((matrix.shape[1], n_classes, n_classes)) + np.eye(n_classes)
        for (item, annotator), label in np.ndenumerate(matrix):
            if label >= 0:
                alpha[annotator, :, label] += mu[item]
        log = digamma(alpha) - digamma(alpha.sum(axis=2, keepdims=True))
        for item, row in enumerate(matrix):
            joint = sum(log[a, :, label] for a, label in enumerate(row) if label >= 0)
            mu[item] = np.exp(joint - joint.max()) / np.exp(joint - joint.max()).sum()
    found = aggregate(made.annotations, "vi-mf[tol=0,max_iter=60]")
    # It ends where rounding keeps the objective from rising, which may be before the last round.
    np.testing.assert_allclose(found.posterior, mu, atol=1e-6)
    np.testing.assert_allclose(
        found.params.confusion, alpha / alpha.sum(axis=2, keepdims=True), atol=1e-6
    )


def factor(truths, labels):
    """Return log P(labels | truths) of an annotator, their accuracies integrated out."""
    total = 0.0
    for true in (0, 1):
        right = sum(t == true == label for t, label in zip(truths, labels, strict=True))
        wrong = sum(t == true != label for t, label in zip(truths, labels, strict=True))
        total += betaln(2 + right, 1 + wrong) - betaln(2, 1)
    return total


def test_vi_bp_passes_the_messages_of_the_paper():
    """Every message is a sum over all classes of the annotator's other items."""
    matrix = matrix_of(crowd().annotations)
    message = {
        (item, a): 2.0 * label - 1 for (item, a), label in np.ndenumerate(matrix) if label >= 0
    }
    for _ in range(200):
        odds = {
            (item, a): sum(message[item, b] for b in range(5) if (item, b) in message and b != a)
            for item, a in message
        }
        new = {}
        for item, a in message:
            others = [i for i, b in message if b == a and i != item]
            labels = [matrix[item, a], *(matrix[i, a] for i in others)]
            sides = np.zeros(2)
            for truths in itertools.product((0, 1), repeat=len(others)):
                weight = np.prod(
                    [expit((2 * t - 1) * odds[i, a]) for t, i in zip(truths, others, strict=True)]
                )
                for side in (0, 1):
                    sides[side] += weight * np.exp(factor((side, *truths), labels))
            new[item, a] = np.log(sides[1] / sides[0])
        done = max(abs(new[key] - message[key]) for key in message) < 1e-12
        message = new
        if done:
            break
    posterior = [
        expit(sum(message[item, a] for a in range(5) if (item, a) in message))
        for item in range(len(matrix))
    ]
    found = aggregate(crowd().annotations, "vi-bp[tol=1e-12,max_iter=200]")
    np.testing.assert_allclose(found.posterior[:, 1], posterior, atol=1e-7)


def counts_without(probability):
    """Return P(number of true items among all but one): (left out, number), by convolution."""
    rows = []
    for out in range(len(probability)):
        counts = np.ones(1)
        for p in np.delete(probability, out):
            counts = np.convolve(counts, [1 - p, p])
        rows.append(counts)
    return np.array(rows)


def test_vi_bp_integrates_annotators_with_many_labels():
    """The messages of annotators with 100 labels are those of the exact sum over counts."""
    made = crowd(n_items=100, n_annotators=3, feedback=3, seed=4)
    annotations, matrix = made.annotations, matrix_of(made.annotations)
    found = aggregate(annotations, "vi-bp[tol=1e-10,max_iter=300]")
    assert found.converged
    # Exact messages, from those of the mean matrices to their fixed point.
    message = np.log(found.params.confusion[np.arange(3), 1, matrix] + 1e-300) - np.log(
        found.params.confusion[np.arange(3), 0, matrix]
    )
    for _ in range(60):
        odds = message.sum(axis=1, keepdims=True) - message
        for a in range(3):
            ones, zeros = np.flatnonzero(matrix[:, a] == 1), np.flatnonzero(matrix[:, a] == 0)
            for own, rest, label in ((ones, zeros, 1), (zeros, ones, 0)):
                inner = counts_without(expit(odds[own, a]))  # truly 1 among the same label
                outer = np.ones(1)
                for p in expit(odds[rest, a]):
                    outer = np.convolve(outer, [1 - p, p])
                i, j = np.meshgrid(range(len(own)), range(len(rest) + 1), indexing="ij")
                sides = []
                for side in (0, 1):
                    same = i + side  # truly 1 with this label, the item included
                    one, zero = (same, j) if label else (j, same)  # truly 1 and labelled 1, 0
                    n_one, n_zero = len(ones), len(zeros)
                    log = betaln(2 + one, 1 + zero) + betaln(2 + n_zero - zero, 1 + n_one - one)
                    sides.append(np.log(inner @ (np.exp(log) @ outer)))
                message[own, a] = sides[1] - sides[0]
    np.testing.assert_allclose(found.posterior[:, 1], expit(message.sum(axis=1)), atol=2e-5)


def test_multidimensional_reaches_a_maximum_of_its_density():
    made = crowd(n_items=30, n_annotators=8, feedback=6, seed=1)
    annotations = made.annotations
    found = aggregate(annotations, "multidimensional[tol=1e-14,max_iter=3000]")
    feature, plane = found.params.feature[:, 0], found.params.plane
    side = 2.0 * annotations.label - 1

    def density(point):
        x, w, t = point[:30], point[30:38], point[38:]
        inner = x[annotations.item] * w[annotations.annotator] - t[annotations.annotator]
        near = np.logaddexp(-0.5 * ((x - 1) / 0.8) ** 2, -0.5 * ((x + 1) / 0.8) ** 2) - np.log(2)
        prior = -0.5 * ((w - 1) ** 2).sum() / 9 - 0.5 * (t**2).sum() / 9
        return log_ndtr(side * inner).sum() + near.sum() + prior

    point = np.concatenate([feature, plane.T.ravel()])
    assert density(point) == pytest.approx(found.trace[-1], abs=1e-9)
    slope = [
        (density(point + step) - density(point - step)) / 2e-5 for step in 1e-5 * np.eye(len(point))
    ]
    np.testing.assert_allclose(slope, 0, atol=2e-3)


def test_multidimensional_finds_sharp_and_biased_annotators():
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 400)
    feature = 2.0 * truth - 1 + 0.8 * rng.standard_normal(400)
    direction, threshold = rng.uniform(0.3, 3, 20), rng.normal(0, 1, 20)
    inner = feature[:, None] * direction - threshold
    annotations = Annotations.from_matrix(
        (inner + rng.standard_normal(inner.shape) > 0).astype(int)
    )
    found = aggregate(annotations, "multidimensional")
    assert np.corrcoef(found.params.plane[:, 0], direction)[0, 1] > 0.9
    assert np.corrcoef(found.params.plane[:, 1], threshold)[0, 1] > 0.9
    assert np.corrcoef(found.params.feature[:, 0], feature)[0, 1] > 0.9
    right = np.mean(found.label == truth)
    assert right > np.mean(aggregate(annotations, "majority").label == truth) - 0.01


def test_several_dimensions_separate_what_annotators_attend_to():
    rng = np.random.default_rng(3)
    feature = rng.choice([-1.0, 1.0], 600)[:, None] + 0.8 * rng.standard_normal((600, 2))
    direction = np.repeat([[3.0, 0.0], [0.0, 3.0]], 10, axis=0)
    inner = feature @ direction.T
    annotations = Annotations.from_matrix(
        (inner + rng.standard_normal(inner.shape) > 0).astype(int)
    )
    plane = aggregate(annotations, "multidimensional[dimensions=2]").params.plane[:, :2]
    unit = plane / np.linalg.norm(plane, axis=1, keepdims=True)
    alike = unit @ unit.T
    assert alike[:10, :10].min() > alike[:10, 10:].max()


@pytest.mark.parametrize(
    ("name", "method", "accuracy"),
    [
        # Zheng et al. (2017), table 6, as recalled; two decimals, ties at random
        ("s_rel", "ZC", 48.21),
        ("d_product", "ZC", 92.80),
        ("d_possent", "ZC", 95.10),
        ("d_product", "vi-mf", 83.91),
        ("d_possent", "vi-mf", 96.00),
        ("d_possent", "vi-bp", 96.00),
    ],
)
def test_accuracies_of_the_survey(name, method, accuracy):
    found = evaluate(aggregate(shared(name), method), shared_truth(name), resamples=0)
    assert 100 * found.scores["accuracy"].value == pytest.approx(accuracy, abs=0.04)
