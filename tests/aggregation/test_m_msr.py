"""M-MSR: skills from products, against plain loops and with corrupted rows."""

import math
from collections import defaultdict

import numpy as np
import pytest

from dissensus import Annotations, aggregate
from dissensus.aggregation import MMsr
from dissensus.aggregation.m_msr import complete

from ..support import relation
from .test_votes import answers_of


def test_products_of_skills_are_taken_apart():
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.1, 0.9, 11)
    position = np.arange(11)
    met = abs(position[:, None] - position) % 9 == 1  # a ring and some more; nothing is left out
    met[0, 5] = met[5, 0] = True
    assert met.sum(axis=1).min() < 4
    size = np.where(met, np.outer(skill, skill), 0)
    found, still = complete(size, met, 0.01, MMsr(max_iter=10_000))
    assert still
    np.testing.assert_allclose(found, skill, atol=1e-6)


def test_a_few_corrupted_rows_change_nothing():
    rng = np.random.default_rng(1)
    skill = rng.uniform(0.2, 0.9, 20)
    size = np.outer(skill, skill)
    corrupted = [3, 11, 17]
    for row in corrupted:
        size[row] = size[:, row] = rng.uniform(0, 1, 20)
    met = ~np.eye(20, dtype=bool)
    found, still = complete(np.where(met, size, 0), met, 0.01, MMsr(max_iter=10_000))
    assert still
    honest = np.setdiff1d(np.arange(20), corrupted)
    np.testing.assert_allclose(found[honest], skill[honest], atol=1e-6)


def plain_products(annotations: Annotations) -> tuple[np.ndarray, np.ndarray]:
    """Return agreement beyond probability of all pairs who share an item; no repeats."""
    given_by = defaultdict(dict)
    for item, annotator, label in answers_of(annotations):
        given_by[annotator][item] = label
    k, m = max(annotations.n_classes, 2), annotations.n_annotators
    product, met = np.zeros((m, m)), np.zeros((m, m), dtype=bool)
    for one in range(m):
        for other in range(m):
            common = given_by[one].keys() & given_by[other].keys()
            if one != other and common:
                share = np.mean([given_by[one][i] == given_by[other][i] for i in common])
                product[one, other] = (k * share - 1) / (k - 1)
                met[one, other] = True
    return product, met


def plain_mmsr(size, met, n_items, few, rounds=500):
    left, right = np.ones(len(size)), np.ones(len(size))
    for _ in range(rounds):
        for own, other in ((right, left), (left, right)):
            fresh = own.copy()
            for j in range(len(size)):
                summary = sorted(size[i, j] / other[i] for i in range(len(size)) if met[i, j])
                below = sum(value < own[j] for value in summary)
                above = sum(value > own[j] for value in summary)
                rest = summary[min(few, below) : len(summary) - min(few, above)]
                if rest:
                    fresh[j] = np.mean(rest) or 1 / math.sqrt(n_items)
            own[:] = fresh
    return left * math.sqrt(np.linalg.norm(right) / np.linalg.norm(left))


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_estimates_that_are_left_out_lie_on_their_side(rounds):
    rng = np.random.default_rng(rounds)
    size, met = rng.random((14, 14)) * 1.6, ~np.eye(14, dtype=bool)
    if rounds == 1:
        size[0] = size[:, 0] = 0  # later on, what replaces zeros depends on the scale
    size = np.where(met, np.maximum(size, size.T), 0)
    expected = plain_mmsr(size, met, 100, 13 // 2 - 1, rounds)
    found, _ = complete(size, met, 0.1, MMsr(max_iter=rounds, tol=0))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_m_msr_equals_a_plain_implementation():
    rng = np.random.default_rng(4)
    truth, skill = rng.integers(3, size=200), rng.uniform(0.3, 0.95, 10)
    annotations = np.where(
        rng.random((200, 10)) < skill, truth[:, None], rng.integers(3, size=(200, 10))
    )
    annotations[rng.random((200, 10)) < 0.4] = -1
    made = Annotations.from_matrix(annotations)
    product, met = plain_products(made)
    few = met.sum(axis=1).min() // 2 - 1
    assert few == 3
    expected = np.minimum(plain_mmsr(np.abs(product), met, 200, few), 1 - 1 / math.sqrt(200))
    result = aggregate(made, "m-msr")
    assert result.converged
    np.testing.assert_allclose(result.quality, (1 + 2 * expected) / 3, atol=1e-9)
    right = skill + (1 - skill) / 3
    np.testing.assert_allclose(result.quality, right, atol=0.12)
    weight = np.log(2 * result.quality / (1 - result.quality))
    np.testing.assert_allclose(result.params.weight, weight, atol=1e-9)


def test_annotators_who_never_met_anybody_weigh_nothing():
    rows = [(f"{n}", who, str(n % 2)) for n in range(9) for who in "xyz"]
    result = aggregate(relation([*rows, ("lonely", "w", "1")]), "m-msr")
    found = dict(zip(result.answers.annotators, result.params.weight, strict=True))
    assert found["w"] == 0
    assert found["x"] > 0
    assert dict(zip(result.answers.items, result.labels, strict=True))["lonely"] == "1"


def test_more_annotators_than_peers_are_measured_by_the_peers():
    rng = np.random.default_rng(6)
    truth, skill = rng.integers(2, size=600), rng.uniform(0.1, 0.95, 30)
    annotations = np.where(
        rng.random((600, 30)) < skill, truth[:, None], rng.integers(2, size=(600, 30))
    )
    annotations[:, 10:][rng.random((600, 20)) < 0.3] = -1  # the first ten have most labels
    made = Annotations.from_matrix(annotations)
    everybody, some = aggregate(made, "m-msr"), aggregate(made, "m-msr[peers=10]")
    np.testing.assert_allclose(some.quality[10:], (1 + skill[10:]) / 2, atol=0.08)
    assert np.abs(some.quality - everybody.quality).max() < 0.08
    assert np.mean(some.label == everybody.label) > 0.99


def test_m_msr_finds_adversaries():
    rng = np.random.default_rng(8)
    truth = rng.integers(2, size=500)
    probability = np.array([0.9, 0.85, 0.8, 0.8, 0.75, 0.7, 0.1, 0.2])
    annotations = np.where(rng.random((500, 8)) < probability, truth[:, None], 1 - truth[:, None])
    result = aggregate(Annotations.from_matrix(annotations), "m-msr")
    np.testing.assert_allclose(result.quality, probability, atol=0.06)
