"""Hierarchical linear models of annotators: objective, formula, cross-validation, components."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax

pytest.importorskip("torch", reason="features need torch")

from dissensus import Annotations
from dissensus.deep.nn.features import Features
from dissensus.deep.tendency.classifier import TendencyClassifier
from dissensus.deep.tendency.linear import Linear, random_folds
from dissensus.deep.tendency.pairs import KERNELS, Components, Pairs, fit_components
from dissensus.deep.tendency.shrunk import Priors, _Model, fit_shrunk
from dissensus.registry import tendencies

from .test_tendency import crowd

PARTS = [
    Priors(0.5),
    Priors(0.5, 1),
    Priors(0.5, 1, 0.3),
    Priors(0.5, 1, 0.3, 0.2),
    Priors(0.5, 1, 0.3, 0.2, 0.7, 2),
    Priors(0.5, 1, 0.3, 0.0, 0.7, 2, 0.4),
    Priors(0.0, 2, 0, 0.5, level=0.0),
]


def pairs_of(seed=0, ordinal=False, n_items=15, n_annotators=4):
    random = np.random.default_rng(seed)
    _, annotations = crowd(seed, n_items, n_annotators)
    x, known = random.normal(size=(n_items, 4)), random.normal(size=(n_annotators, 2))
    weight = random.random(len(annotations))
    return Pairs.of(x, annotations, metadata=known, ordinal=ordinal, weight=weight).in_order


@pytest.mark.parametrize("n_items", [15, 90])  # heads in blocks, and each by itself
@pytest.mark.parametrize("ordinal", [False, True])
@pytest.mark.parametrize("priors", PARTS)
def test_gradients_are_those_of_the_objective(priors, ordinal, n_items):
    model = _Model(pairs_of(ordinal=ordinal, n_items=n_items), priors)
    at = np.random.default_rng(1).normal(size=model.bounds[-1])
    error = check_grad(lambda p: model.objective(p)[0], lambda p: model.objective(p)[1], at)
    assert error < 1e-3


@pytest.mark.parametrize("priors", PARTS)
def test_the_objective_is_the_likelihood_and_the_prior(priors):
    pairs = pairs_of()
    model = _Model(pairs, priors)
    at = np.random.default_rng(2).normal(size=model.bounds[-1])
    heads = model.heads(model.parts(at))
    log = log_softmax(heads.logits(pairs.x, pairs.item, pairs.annotator), axis=1)
    likelihood = (pairs.target * log).sum(axis=1) @ pairs.weight
    prior = model.shrinkage * at  # in units of the prior standard deviations
    assert model.objective(at)[0] == pytest.approx(0.5 * prior @ prior - likelihood)


@pytest.mark.parametrize("priors", PARTS)
def test_units_are_those_of_the_posterior(priors):
    """The diagonal of the Hessian is about one in every part, at the start of a fit."""
    pairs = pairs_of(n_items=400)
    model = _Model(replace(pairs, weight=None), priors._replace(rank=0, slope=0.0))
    start, step = np.zeros(model.bounds[-1]), 1e-4
    for name, size in zip(model.shapes, np.diff(model.bounds, prepend=0), strict=True):
        first = int(model.bounds[list(model.shapes).index(name)] - size)
        used = [i for i in range(first, first + size) if model.units[i] > 0]
        diagonal = []
        for index in used:
            there = start.copy()
            there[index] = step
            diagonal.append(model.objective(there)[1][index] - model.objective(start)[1][index])
        assert not used or 0.2 < np.mean(diagonal) / step < 5, name


def test_a_fit_in_32_bits_finds_what_64_find():
    pairs, priors = pairs_of(n_items=90), Priors(0.5, 1, 0.3, 0.2, 0.0, 0, 0.4)
    single = replace(pairs, x=pairs.x.astype(np.float32))
    heads = [fit_shrunk(each, priors, tol=1e-9).heads for each in (pairs, single)]
    here, there = (each.logits(pairs.x, pairs.item, pairs.annotator) for each in heads)
    np.testing.assert_allclose(
        here - here.mean(1)[:, None], there - there.mean(1)[:, None], atol=0.01
    )


def test_logits_are_the_formula():
    pairs = pairs_of()
    heads = fit_shrunk(pairs, Priors(0.5, 1, 0.3, 0.2, 0.7, 2, 0.4)).heads
    for item, k in ((0, 1), (3, 2)):
        x = pairs.x[item]
        own = heads.own[k] @ x + np.einsum("r,rqd,d->q", heads.embedding[k], heads.factor, x)
        summary = ((1 + heads.slope[k]) * (heads.weight @ x) + own) @ heads.basis
        summary = summary + heads.level + heads.bias[k]
        found = heads.logits(pairs.x, np.array([item]), np.array([k]))[0]
        np.testing.assert_allclose(found, summary)


def test_contrasts_find_what_a_direction_for_every_class_would():
    pairs, priors = pairs_of(n_items=60), Priors(0.5, 1, 0.0, 0.4)
    every = replace(pairs, basis=np.eye(3))
    here, there = (
        log_softmax(
            fit_shrunk(each, priors, tol=1e-12).heads.logits(each.x, each.item, each.annotator), 1
        )
        for each in (pairs, every)
    )
    np.testing.assert_allclose(here, there, atol=1e-3)


@pytest.mark.parametrize(("n_items", "sliced"), [(15, False), (90, True)])
def test_blocks_and_slices_hold_every_annotation_once(n_items, sliced):
    pairs = pairs_of(n_items=n_items)
    assert (bool(pairs.slices), bool(pairs.blocks)) == (sliced, not sliced)
    position = [block.position.ravel() for block in pairs.blocks]
    position += [np.arange(rows.start, rows.stop) for _, rows in pairs.slices]
    kept = np.concatenate(position)
    assert sorted(kept[kept < len(pairs.item)]) == list(range(len(pairs.item)))
    for block in pairs.blocks:
        for who, row in zip(block.annotator, block.position, strict=True):
            assert (pairs.annotator[row[row < len(pairs.item)]] == who).all()
    for who, rows in pairs.slices:
        assert (pairs.annotator[rows] == who).all()


def test_a_shared_head_predicts_the_same_for_all():
    features, annotations = crowd()
    probability = tendencies.create("shared").fit(features, annotations).log_proba(features)
    np.testing.assert_allclose(probability, probability[:, :1].repeat(5, axis=1))


def test_annotators_without_labels_have_the_shared_head():
    features, annotations = crowd()
    model = Linear(shared=0.5, bias=1, slope=0.3, own=0.4, kernel="linear").fit(
        features, annotations
    )
    found = model.heads
    assert not found.bias[-1].any()
    assert not found.own[-1].any()
    assert found.slope[-1] == 0


def test_wider_priors_allow_larger_biases():
    features, annotations = crowd(n_items=200)
    size = [
        np.abs(
            Linear(shared=0.5, bias=b, slope=0, own=0, kernel="linear")
            .fit(features, annotations)
            .heads.bias
        ).max()
        for b in (0.01, 0.3, 3.0)
    ]
    assert size[0] < size[1] < size[2]


def test_heads_are_recovered_from_many_labels():
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 3))
    weight = np.array([[2.0, 0, 0], [0, 2.0, 0]])  # (annotator, feature)
    label = (x @ weight.T + random.logistic(size=(3000, 2)) > 0).astype(int)
    found = TendencyClassifier("linear[kernel=linear,own=1]").fit(x, label)
    probability = found.predict_annotator_proba(x)[:, :, 1]
    truth = 1 / (1 + np.exp(-x @ weight.T))
    assert np.abs(probability - truth).mean() < 0.03


def test_priors_are_narrow_if_annotators_are_alike():
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 3)).astype(np.float32)
    label = (2 * x[:, :1] + random.logistic(size=(400, 8)) > 0).astype(int)
    model = Linear(kernel="linear").fit(Features(x), Annotations.from_matrix(label))
    together = model.log_proba(Features(x))
    assert np.abs(np.exp(together) - np.exp(together).mean(axis=1, keepdims=True)).max() < 0.15


def test_items_of_a_fold_are_held_out_together():
    _, annotations = crowd()
    fold = random_folds(annotations, 3, 0)
    assert np.bincount(fold).tolist() == [20, 20, 20]


def test_ordinal_logits_differ_by_one_number_between_neighbours():
    features, annotations = crowd(n_classes=4)
    model = Linear(ordinal=True, bias=0, slope=0, own=0, shared=1, kernel="linear").fit(
        features, annotations
    )
    step = np.diff(model.log_proba(features)[:, 0] - model.heads.level, axis=1)
    np.testing.assert_allclose(step, step[:, :1].repeat(3, axis=1), atol=1e-9)


def test_a_scale_is_learned_better_in_order():
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 6)).astype(np.float32)
    score_of = 2 * x[:, :1] + random.normal(size=(150, 4)) + np.array([-0.5, 0, 0, 0.5])
    label = np.digitize(score_of, [-2, -0.7, 0.7, 2])
    annotations = Annotations.from_matrix(label)
    half = np.arange(75)
    loss = {}
    for ordinal in (False, True):
        model = Linear(ordinal=ordinal, kernel="linear").fit(
            Features(x[:75]), annotations.take(half)
        )
        there = annotations.take(half + 75)
        log = model.log_probability(Features(x[75:]), there.item, there.annotator)
        loss[ordinal] = -log[np.arange(len(there)), there.label].mean()
    assert loss[True] < loss[False]


@pytest.mark.parametrize("kernel", KERNELS)
def test_components_are_orthogonal_and_have_variance_one_together(kernel):
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    found, there = fit_components(vectors, 4, KERNELS[kernel])
    x = found.of(Features(vectors)).astype(np.float64)
    np.testing.assert_allclose(x, there, atol=1e-6)
    x = x - x.mean(axis=0)
    covariance = x.T @ x / len(x)
    assert covariance.trace() == pytest.approx(1)
    np.testing.assert_allclose(covariance, np.diag(covariance.diagonal()), atol=1e-6)
    again = Components.from_arrays(found.arrays())
    np.testing.assert_array_equal(again.of(Features(vectors)), found.of(Features(vectors)))


def test_the_cosine_kernel_ignores_lengths():
    vectors = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    found, _ = fit_components(vectors, 4, KERNELS["cosine"])
    np.testing.assert_allclose(
        found.of(Features(vectors)), found.of(Features(3 * vectors)), atol=1e-5
    )
