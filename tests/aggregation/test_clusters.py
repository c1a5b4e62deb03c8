"""Clusters and communities of annotators: `dswc`, `dswc-vb` and `cbcc`."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, psi

from dissensus import Annotations, aggregate, simulate
from dissensus.aggregation import bcc as cbcc
from dissensus.base.probability import normalize

from ..support import shared
from .test_latent_models import accuracy, answers, crowd, expected_log, table


def log_beta(counts) -> float:
    return float(gammaln(counts).sum() - gammaln(np.sum(counts)))


def entropy(p) -> float:
    return -float((p * np.log(np.maximum(p, 1e-300))).sum())


DSWC = [
    ("T1", 5, 0.775),
    ("T1", 10, 0.770),
    ("T2", 5, 0.845),
    ("T2", 10, 0.840),
    ("T3", 5, 0.795),
    ("T3", 6, 0.780),
    ("T3", 10, 0.815),
    ("T5", 2, 0.600),
    ("T5", 5, 0.660),
]


@pytest.mark.numeric
@pytest.mark.parametrize(("name", "clusters", "printed"), DSWC)
def test_dswc_on_the_published_simulations(name, clusters, printed):
    made = table(name)
    result = aggregate(made.annotations, f"DSWC[L={clusters}]")
    assert round(float(np.mean(result.label == made.truth)), 6) == printed


@pytest.mark.parametrize(
    ("name", "clusters", "expected"),
    [
        ("labelme", 2, 0.787),
        ("bluebirds", 2, 0.824),
        ("bluebirds", 3, 0.806),
        ("bluebirds", 10, 0.889),
        ("dog", 2, 0.818),
        ("dog", 3, 0.829),
        ("dog", 5, 0.830),
        ("dog", 10, 0.828),
        ("rte", 2, 0.930),
        ("rte", 3, 0.928),
        ("rte", 5, 0.929),
        ("face4", 2, 0.654),
        ("face4", 3, 0.658),
        ("face4", 5, 0.652),
        ("face4", 10, 0.651),
    ],
)
def test_dswc_on_public_data(name, clusters, expected):
    result = aggregate(shared(name), f"dawid_skene_clust[L={clusters}]")
    assert accuracy(result, name) == pytest.approx(expected, abs=0.003)


def plain_dswc(annotations: Annotations, clusters: int, rounds: int):
    """Return posteriors after iterations of parallel updates, as published."""
    n_annotators, n_classes = annotations.n_annotators, annotations.n_classes
    votes = annotations.votes()
    truth = votes / votes.sum(axis=1, keepdims=True)

    def counted(truth):
        counts = np.zeros((n_annotators, n_classes, n_classes))
        for item, who, label in answers(annotations):
            counts[who, :, label] += truth[item]
        return counts

    single = counted(truth) + 1e-10
    single /= single.sum(axis=2, keepdims=True)
    norms = [np.linalg.svd(matrix, compute_uv=False).sum() for matrix in single]
    order = sorted(range(n_annotators), key=lambda who: -norms[who])
    member = np.zeros((n_annotators, clusters))
    confusion = np.zeros((clusters, n_classes, n_classes))
    for c in range(clusters):
        block = order[n_annotators * c // clusters : n_annotators * (c + 1) // clusters]
        member[block, c] = 1
        confusion[c] = single[block].mean(axis=0)
    for _ in range(rounds):
        prior = truth.mean(axis=0) + 1e-10
        weight = member.mean(axis=0) + 1e-10
        joint = np.tile(np.log(prior), (annotations.n_items, 1))
        for item, who, label in answers(annotations):
            for c in range(clusters):
                joint[item] += member[who, c] * np.log(confusion[c, :, label])
        log_member = np.log(weight) + np.einsum("atg,ctg->ac", counted(truth), np.log(confusion))
        truth = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        member = np.exp(log_member - logsumexp(log_member, axis=1, keepdims=True))
        confusion = np.einsum("ac,atg->ctg", member, counted(truth)) + 1e-10
        confusion /= confusion.sum(axis=2, keepdims=True)
    return truth


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_dswc_equals_a_plain_implementation(rounds):
    annotations = crowd(n_annotators=9)
    result = aggregate(annotations, f"dswc[L=4,max_iter={rounds},tol=0]")
    np.testing.assert_allclose(result.posterior, plain_dswc(annotations, 4, rounds), atol=1e-9)


def test_one_cluster_pools_everybody():
    result = aggregate(crowd(), "dswc[L=1]")
    np.testing.assert_allclose(result.params.confusion, result.params.confusion[:1].repeat(8, 0))


def test_a_cluster_for_everybody_begins_as_dawid_skene():
    annotations = crowd()
    alone = aggregate(annotations, f"dswc[L={annotations.n_annotators},max_iter=1]")
    plain = aggregate(annotations, "dawid-skene[smoothing=1e-10,max_iter=1]")
    np.testing.assert_allclose(alone.posterior, plain.posterior, atol=1e-9)


def test_clusters_that_nobody_is_in_do_no_harm():
    annotations = crowd(n_annotators=5, feedback=3)
    for name in ("dswc[L=12]", "dswc-vb[L=12]", "cbcc[L=12]"):
        result = aggregate(annotations, name)
        assert np.isfinite(result.posterior).all()
        np.testing.assert_allclose(result.params.confusion.sum(axis=2), 1)


def agreement_of_partitions(one, other) -> float:
    """Return the adjusted Rand index."""
    cells = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(cells, (one, other), 1)
    pairs, rows, columns = ((x * (x - 1) / 2).sum() for x in (cells, cells.sum(1), cells.sum(0)))
    probability = rows * columns / (len(one) * (len(one) - 1) / 2)
    return (pairs - probability) / ((rows + columns) / 2 - probability)


@pytest.mark.parametrize("name", ["dswc[L=6]", "dswc-vb[L=6]"])
def test_students_are_found_beside_their_teachers(name):
    made = simulate(
        "student-teacher[ratio=0.8]",
        n_items=1000,
        n_annotators=30,
        n_classes=5,
        feedback=10,
        seed=2,
    )
    group = np.arange(30)
    student, teacher = made.extras["student_teacher_association"].T
    group[student] = teacher
    result = aggregate(made.annotations, name)
    assert agreement_of_partitions(group, result.params.member.argmax(axis=1)) > 0.8
    assert np.mean(result.label == made.truth) > 0.85


def test_clusters_that_are_not_needed_are_left():
    made = simulate(
        "community[n_communities=3,strength=1e4]",
        n_items=600,
        n_annotators=40,
        n_classes=3,
        feedback=10,
        seed=0,
    )
    result = aggregate(made.annotations, "dswc-vb[L=8,concentration=0.01]")
    found = result.params.member.argmax(axis=1)
    assert len(np.unique(found)) == 3
    assert agreement_of_partitions(made.extras["community"], found) == 1


def test_the_bound_of_clusters_is_what_the_formula_says():
    annotations = crowd()
    result = aggregate(annotations, "dswc-vb[L=3,max_iter=4,tol=0]")
    q, r = result.posterior, result.params.member
    params = result.params
    true, size = params.true + 1.0, r.sum(axis=0) + 0.1
    before = params.given_true.reshape(-1, 3, 3)  # (annotator, given, true)
    base = 0.5 + np.eye(3)
    total = (q * expected_log(true)).sum() + entropy(q) + (r * expected_log(size)).sum()
    total += entropy(r)
    for counts, pseudo in ((true, np.ones(3)), (size, np.full(3, 0.1))):
        total += log_beta(counts) - log_beta(pseudo)
        total -= ((counts - pseudo) * expected_log(counts)).sum()
    for c in range(3):
        for t in range(3):
            counts = base[:, t] + np.tensordot(r[:, c], before[:, :, t], 1)
            log = expected_log(counts)
            total += log_beta(counts) - log_beta(base[:, t]) - ((counts - base[:, t]) * log).sum()
            for item, who, label in answers(annotations):
                total += q[item, t] * r[who, c] * log[label]
    assert result.trace[-1] == pytest.approx(total, rel=1e-10)


def test_the_bound_of_communities_is_what_the_formula_says():
    annotations = crowd()
    result = aggregate(annotations, "cbcc[L=2,max_iter=4,tol=0]")
    q, params = result.posterior, result.params
    true, size, r = params.true, params.size, params.member
    total = (q * expected_log(true)).sum() + entropy(q) + (r * expected_log(size)).sum()
    total += entropy(r)
    for counts in (true, size):
        pseudo = np.ones(len(counts))
        total += log_beta(counts) - log_beta(pseudo)
        total -= ((counts - pseudo) * expected_log(counts)).sum()
    for t in range(3):
        imagined = np.log(normalize(0.5 + np.eye(3)[t]))
        for c in range(2):
            total += ((params.base[c, :, t] - 1) * imagined).sum() - log_beta(params.base[c, :, t])
        for who in range(annotations.n_annotators):
            counts = params.given_true[who, :, t]
            log = expected_log(counts)
            total -= ((counts - 1) * log).sum() - log_beta(counts)
            for c in range(2):
                base = params.base[c, :, t]
                total += r[who, c] * (((base - 1) * log).sum() - log_beta(base))
    for item, who, label in answers(annotations):
        for t in range(3):
            total += q[item, t] * expected_log(params.given_true[who, :, t])[label]
    assert result.trace[-1] == pytest.approx(total, rel=1e-10)


def test_the_matrix_of_a_community_is_the_best_one():
    rng = np.random.default_rng(0)
    mean, base = rng.normal(-2, 3, size=(2, 4, 4)), np.full((2, 4, 4), 2.5)
    best = cbcc._fit_dirichlet(mean, base)
    np.testing.assert_allclose(best.sum(axis=1), 10)
    gap = psi(best) - mean  # the same for all labels of a class: the slope on the simplex is zero
    np.testing.assert_allclose(gap, gap[:, :1].repeat(4, axis=1), atol=1e-8)
    far = np.array([[[0.0], [-300.0], [-1e4]]])  # classes that are hardly ever named
    best = cbcc._fit_dirichlet(far, np.full((1, 3, 1), 1 / 3))
    assert (best > 0).all()
    np.testing.assert_allclose(np.diff(psi(best) - far, axis=1), 0, atol=1e-6 * 1e4)


def test_those_with_few_labels_borrow_from_their_community():
    made = simulate(
        "community[n_communities=2,strength=50]",
        n_items=600,
        n_annotators=120,
        n_classes=3,
        feedback=4,
        seed=1,
    )
    far = {
        name: np.abs(
            aggregate(made.annotations, name).params.confusion - made.crowd.confusion
        ).mean()
        for name in ("cbcc[L=2]", "dawid-skene")
    }
    assert far["cbcc[L=2]"] < 0.7 * far["dawid-skene"]


def test_a_community_that_is_everything_leaves_nobody_a_matrix_of_their_own():
    result = aggregate(crowd(), "cbcc[L=1,strength=1e7]")
    np.testing.assert_allclose(
        result.params.confusion, result.params.community_confusion.repeat(8, 0), atol=1e-4
    )
