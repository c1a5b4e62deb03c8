from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from dissensus import aggregate
from dissensus.quality.correlation import (
    mutual_information,
    spam_interval,
    spam_moments,
    spam_score,
    trace,
)

from ..annotator_crowds import auc, crowd, quick


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_spam_score_is_the_distance_to_the_nearest_spammer(n_classes):
    rng = np.random.default_rng(n_classes)
    confusion = rng.dirichlet(np.ones(n_classes), (20, n_classes))
    found = spam_score(confusion)
    for one, value in zip(confusion, found, strict=True):
        pairs = sum(((one[t] - one[u]) ** 2).sum() for t, u in combinations(range(n_classes), 2))
        assert value == pytest.approx(pairs / (n_classes * (n_classes - 1)), abs=1e-12)
        nearest = ((one - one.mean(axis=0)) ** 2).sum() / (n_classes - 1)
        assert value == pytest.approx(nearest, abs=1e-12)
        for other in rng.dirichlet(np.ones(n_classes), 50):
            assert ((one - other) ** 2).sum() / (n_classes - 1) >= value - 1e-12
    order = rng.permutation(n_classes)
    np.testing.assert_allclose(spam_score(confusion[:, order][:, :, order]), found, atol=1e-12)
    np.testing.assert_allclose(spam_score(confusion, squared=False) ** 2, found, atol=1e-12)


def test_hammers_score_one_adversaries_too_and_spammers_nothing():
    eye = np.eye(4)
    marginals = np.tile([0.1, 0.2, 0.3, 0.4], (4, 1))
    found = spam_score(np.stack([eye, eye[[1, 2, 3, 0]], marginals]))
    np.testing.assert_allclose(found, [1, 1, 0], atol=1e-12)
    assert np.isnan(spam_score(np.ones((1, 1, 1)))).all()
    sensitivity, specificity = 0.9, 0.6
    binary = np.array([[[sensitivity, 1 - sensitivity], [1 - specificity, specificity]]])
    assert spam_score(binary)[0] == pytest.approx((sensitivity + specificity - 1) ** 2, abs=1e-12)


def test_the_trace_is_shown_three_ways():
    confusion = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    assert trace(confusion)[0] == pytest.approx(1.5)
    assert trace(confusion, normalized=True)[0] == pytest.approx(0.75)
    assert trace(confusion, np.array([0.8, 0.2]))[0] == pytest.approx(0.84)


def test_mutual_information_is_what_the_definition_says():
    rng = np.random.default_rng(0)
    prior, confusion = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (4, 3))
    for one, value in zip(confusion, mutual_information(confusion, prior), strict=True):
        joint = prior[:, None] * one
        alone = joint.sum(axis=0)
        expected = sum(
            joint[t, g] * np.log(joint[t, g] / (prior[t] * alone[g]))
            for t in range(3)
            for g in range(3)
        )
        assert value == pytest.approx(expected, abs=1e-12)
    eye = np.eye(3)
    assert mutual_information(eye[None], np.full(3, 1 / 3))[0] == pytest.approx(np.log(3))
    assert mutual_information(eye[None, [1, 2, 0]], np.full(3, 1 / 3))[0] == pytest.approx(
        np.log(3)
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_moments_of_the_spam_score_are_those_of_draws(n_classes):
    rng = np.random.default_rng(1)
    rows = rng.gamma(1.0, 6.0, (3, n_classes, n_classes)) + 0.2
    mean, variance = spam_moments(rows)
    drawn = rng.standard_gamma(rows, (60_000, *rows.shape))
    drawn /= drawn.sum(axis=-1, keepdims=True)
    value = spam_score(drawn.reshape(-1, n_classes, n_classes)).reshape(-1, 3)
    np.testing.assert_allclose(mean, value.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(variance, value.var(axis=0), rtol=0.05)


def test_the_interval_of_the_spam_score_is_close_to_that_of_draws():
    rng = np.random.default_rng(2)
    size = np.array([1, 5, 20, 100.0])[:, None, None]
    counts = np.concatenate(
        [np.eye(4) * size, np.full((4, 4), 0.25) * size, rng.dirichlet(np.ones(4), (4, 4)) * size]
    )
    exact = spam_interval(counts)
    matrices = rng.standard_gamma(counts + 0.25, (4000, *counts.shape))
    matrices /= np.maximum(matrices.sum(axis=-1, keepdims=True), 1e-300)
    score = spam_score(matrices.reshape(-1, 4, 4)).reshape(4000, -1)
    sampled = (score.mean(axis=0), *np.quantile(score, [0.05, 0.95], axis=0))
    for one, other in zip(exact, sampled, strict=True):
        np.testing.assert_allclose(one, other, atol=0.03)
    assert (exact.low <= exact.mean).all()
    assert (exact.mean <= exact.high).all()
    assert np.isnan(spam_interval(np.ones((2, 1, 1))).high).all()


@pytest.mark.parametrize(("n_classes", "most"), [(2, 0.03), (4, 0.08)])
def test_fitted_hammers_and_spammers_score_as_they_did_in_our_notes(n_classes, most):
    simulated = crowd(
        "hammer-spammer[ratio=0.5]", n_items=300, n_annotators=20, n_classes=n_classes, feedback=7
    )
    result = aggregate(simulated.annotations, "dawid-skene")
    value = spam_score(result.params.confusion)
    assert (value[:10] > 0.97).all()
    assert (value[10:] < most).all()


@pytest.mark.parametrize("n_classes", [2, 4, 10])
def test_spammers_are_ranked_below_hammers_from_ten_labels_on(n_classes):
    found = []
    for seed in range(3):
        simulated = crowd(
            n_items=200, n_annotators=100, n_classes=n_classes, workerload=10, seed=seed
        )
        assert simulated.annotations.labels_per_annotator.max() <= 10
        found.append(auc(quick(simulated.annotations).spam_score, np.arange(100) < 60))
    assert np.mean(found) >= 0.98


def test_the_spam_score_ranks_students_and_teachers_better_than_agreement_does():
    gain = []
    for seed in range(5):
        simulated = crowd(
            "student-teacher[ratio=0.8,copy_prob=0.8]",
            n_items=400,
            n_annotators=30,
            n_classes=5,
            feedback=10,
            seed=seed,
            fast=True,
        )
        found, true = quick(simulated.annotations), spam_score(simulated.crowd.confusion)
        gain.append(
            spearmanr(found.spam_score, true)[0] - spearmanr(found.behaviour.agreement, true)[0]
        )
    assert np.mean(gain) > 0.1
