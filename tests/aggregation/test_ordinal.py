"""Aggregators for classes in an order: against plain formulas, on simulated and on shared data."""

import itertools

import numpy as np
import pytest
from scipy.optimize import check_grad, isotonic_regression, minimize_scalar
from scipy.special import log_softmax, ndtri
from scipy.stats import norm

from dissensus import Annotations, aggregate, simulate
from dissensus.aggregation import DawidSkene, OrdinalDistance, OrdinalLatent, OrdinalSplit
from dissensus.aggregation.ordinal_distance import _sharpen, decreasing
from dissensus.aggregation.ordinal_latent import (
    cuts_of,
    decide,
    label_probabilities,
    offsets,
    update_annotators,
    update_cuts,
)

from ..support import relation

ORDINAL = ["ordinal-distance", "ordinal-split", "ordinal-latent"]
close = {"rtol": 1e-9, "atol": 1e-9}


def drawn(bias=0.5, n_classes=5, seed=0, **given):
    options = {"n_items": 300, "n_annotators": 15, "feedback": 5} | given
    return simulate(f"ordinal[bias={bias}]", n_classes=n_classes, seed=seed, **options)


def right(made, spec):
    return np.mean(aggregate(made.annotations, spec).label == made.truth)


# Decisions


def test_decisions_minimise_what_they_say():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.full(6, 0.4), size=300)
    position = np.arange(6)
    apart = abs(position[:, None] - position)
    for rule, loss in (("class", apart > 0), ("median", apart), ("mean", apart**2)):
        label = decide(posterior, rule)
        np.testing.assert_array_equal(label, (posterior @ loss).argmin(axis=1))


@pytest.mark.parametrize("name", ORDINAL)
def test_the_setting_decides_the_label_and_nothing_else(name):
    made = simulate(
        "ordinal[sharpness=0.8]", n_items=300, n_annotators=15, n_classes=5, feedback=4, seed=3
    )
    rules = ("class", "median", "mean")
    each = {rule: aggregate(made.annotations, f"{name}[decision={rule}]") for rule in rules}
    for rule, found in each.items():
        np.testing.assert_array_equal(found.posterior, each["class"].posterior)
        np.testing.assert_array_equal(found.label, decide(found.posterior, rule))
    assert (each["class"].label != each["mean"].label).any()
    miss = {rule: np.mean((found.label - made.truth) ** 2.0) for rule, found in each.items()}
    assert miss["mean"] <= miss["class"]


# Distance


def test_one_round_of_distances_is_what_the_formula_says():
    """Parameters from votes, then the posterior, item by item."""
    annotations = drawn(n_items=40, n_annotators=6, n_classes=4).annotations
    method = OrdinalDistance(max_iter=1, most_shift=0.5, smoothing=0.2)
    found = method.fit(annotations)
    votes = annotations.votes() / annotations.votes().sum(axis=1, keepdims=True)
    true, given = np.ogrid[:4, :4]

    def log_confusion(sharpness, shift):
        return log_softmax(-sharpness * abs(true + shift - given), axis=1)

    log_given = []
    for who in range(6):
        counts = np.full((4, 4), 0.2)
        for item, label in zip(
            annotations.item[annotations.annotator == who],
            annotations.label[annotations.annotator == who],
            strict=True,
        ):
            counts[:, label] += votes[item]
        best = max(
            (
                minimize_scalar(
                    lambda x, s=shift, n=counts: -(n * log_confusion(x, s)).sum(),
                    bounds=(-5, 20),
                    method="bounded",
                    options={"xatol": 1e-10},
                )
                for shift in (-0.5, -0.25, 0.0, 0.25, 0.5)
            ),
            key=lambda tried: -tried.fun,
        )
        assert found.params.sharpness[who] == pytest.approx(best.x, abs=1e-5)
        log_given.append(log_confusion(found.params.sharpness[who], found.params.shift[who]))
    prior = votes.sum(axis=0) + 0.2
    log_prior = np.log(prior / prior.sum())
    evidence = 0.0
    for item in range(40):
        rows = slice(annotations.index[item], annotations.index[item + 1])
        joint = log_prior.copy()
        for who, label in zip(annotations.annotator[rows], annotations.label[rows], strict=True):
            joint += log_given[who][:, label]
        evidence += np.logaddexp.reduce(joint)
        posterior = np.exp(joint - np.logaddexp.reduce(joint))
        np.testing.assert_allclose(found.posterior[item], posterior, **close)
    penalty = 0.2 * (log_prior.sum() + np.sum(log_given))
    assert found.trace[0] == pytest.approx(evidence + penalty, rel=1e-9)
    np.testing.assert_allclose(method.confusion(found.params), np.exp(log_given), **close)


def test_the_sharpness_is_where_the_slope_is_zero():
    rng = np.random.default_rng(1)
    given = rng.gamma(0.5, size=(4, 4, 30))  # (true, given, annotator)
    distance = np.repeat(abs(np.subtract.outer(range(4), range(4)))[:, :, None], 30, axis=2)
    distance = distance.astype(float)
    best = _sharpen(given, distance, np.ones(30))

    def value(sharpness):
        return np.einsum("tga,tga->a", given, log_softmax(-sharpness * distance, axis=1))

    for step in (-1e-4, 1e-4):
        assert (value(best) >= value(best + step)).all()
    np.testing.assert_allclose(_sharpen(given, distance, np.full(30, 19.0)), best, atol=1e-7)
    exact = np.zeros((4, 4, 1))
    exact[range(4), range(4)] = 5
    assert _sharpen(exact, distance[:, :, :1], np.ones(1)) == 20


def test_sharpness_and_shift_are_recovered():
    made = drawn(bias=0, n_items=600, seed=1)
    found = aggregate(made.annotations, "ordinal-distance[most_shift=0]")
    assert np.corrcoef(found.params.sharpness, made.extras["sharpness"])[0, 1] > 0.9
    made = drawn(n_items=1000, n_annotators=20, feedback=8, seed=1)
    found = aggregate(made.annotations, "ordinal-distance")
    assert np.corrcoef(found.params.shift, made.extras["shift"])[0, 1] > 0.9
    gap = OrdinalDistance().confusion(found.params) - made.crowd.confusion
    assert np.abs(gap).mean() < 0.03


def test_distances_beat_matrices_and_votes_on_their_own_data():
    """Means over seeds 0 to 4, seen: unbiased .964, .951, .946; biased .894, .853, .733."""
    for bias, spec, ahead in (
        (0, "ordinal-distance[most_shift=0]", 0.005),
        (0.5, ORDINAL[0], 0.02),
    ):
        made = [drawn(bias=bias, seed=seed) for seed in range(5)]
        distance, matrix, votes = (
            np.mean([right(one, name) for one in made])
            for name in (spec, "dawid-skene", "majority")
        )
        assert distance > matrix + ahead
        assert matrix > votes


def test_who_answers_the_wrong_way_round_has_a_negative_sharpness():
    made = drawn(bias=0, n_classes=4, n_items=400, n_annotators=8, feedback=8, seed=2)
    annotations = made.annotations
    label = np.where(
        annotations.annotator == 3, 3 - annotations.label.astype(int), annotations.label
    )
    turned = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        label,
        items=annotations.items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
    found = aggregate(turned, "ordinal-distance")
    assert found.params.sharpness[3] < 0
    assert (np.delete(found.params.sharpness, 3) > 0).all()


# Split


def test_falling_is_isotonic_regression():
    rng = np.random.default_rng(2)
    for size in range(1, 7):
        values = rng.normal(size=(50, size))
        plain = [isotonic_regression(row, increasing=False).x for row in values]
        np.testing.assert_allclose(decreasing(values), plain, **close)
        np.testing.assert_array_equal(decreasing(-np.sort(values)), -np.sort(values))


def test_split_is_dawid_skene_at_every_threshold():
    made = drawn(n_classes=4, seed=5)
    annotations = made.annotations
    found = OrdinalSplit().fit(annotations)
    above, trace = [], 0.0
    for threshold in range(3):
        question = Annotations.from_codes(
            annotations.item,
            annotations.annotator,
            (annotations.label > threshold).astype(int),
            items=annotations.items,
            annotators=annotations.annotators,
            classes=2,
        )
        answer = DawidSkene().fit(question)
        above.append(answer.posterior[:, 1])
        trace += answer.trace[-1]
    fixed = [isotonic_regression(row, increasing=False).x for row in np.transpose(above)]
    ends = np.column_stack([np.ones(len(fixed)), fixed, np.zeros(len(fixed))])
    np.testing.assert_allclose(found.posterior, -np.diff(ends, axis=1), **close)
    assert found.trace[-1] == pytest.approx(trace, rel=1e-12)
    assert (np.diff(np.transpose(above), axis=1) > 0).any()  # there was something to repair


def test_two_classes_leave_split_nothing_but_dawid_skene():
    annotations = simulate("one-coin", n_items=100, n_annotators=8, feedback=4).annotations
    split, plain = aggregate(annotations, "ordinal-split"), aggregate(annotations, "dawid-skene")
    np.testing.assert_allclose(split.posterior, plain.posterior, **close)
    np.testing.assert_allclose(split.quality, plain.quality, **close)
    np.testing.assert_allclose(
        OrdinalSplit().confusion(split.params), DawidSkene().confusion(plain.params), **close
    )


# Latent


def from_line(n_classes=5, seed=0, n_items=500, n_annotators=25, labels=6):
    """Draw from the model: positions, biases and precisions, cuts of equally common classes."""
    rng = np.random.default_rng(seed)
    position, bias = rng.normal(size=n_items), rng.normal(0, 0.5, n_annotators)
    log_precision = rng.normal(1.4, 0.8, n_annotators)
    cuts = ndtri(np.arange(1, n_classes) / n_classes)
    item = np.repeat(np.arange(n_items), labels)
    who = np.concatenate([rng.choice(n_annotators, labels, replace=False) for _ in range(n_items)])
    noise = rng.normal(size=len(item)) / np.exp(log_precision[who] / 2)
    label = np.searchsorted(cuts, position[item] + bias[who] + noise)
    annotations = Annotations.from_codes(
        item, who, label, items=n_items, annotators=n_annotators, classes=n_classes
    )
    return annotations, position, bias, log_precision, cuts


def test_positions_biases_precisions_and_cuts_are_recovered():
    annotations, position, bias, log_precision, cuts = from_line()
    found = aggregate(annotations, "ordinal-latent")
    assert found.converged
    assert np.corrcoef(found.params.position, position)[0, 1] > 0.95
    assert np.corrcoef(found.params.bias, bias)[0, 1] > 0.95
    assert np.corrcoef(found.params.log_precision, log_precision)[0, 1] > 0.9
    np.testing.assert_allclose(found.params.cuts, cuts, atol=0.25)


def test_latent_beats_matrices_and_votes_on_its_own_data():
    for seed in range(3):
        annotations, position, *_, cuts = from_line(seed=seed)
        truth = np.searchsorted(cuts, position)
        latent, matrix, votes = (
            np.mean(aggregate(annotations, name).label == truth)
            for name in ("ordinal-latent", "dawid-skene", "majority")
        )
        assert latent > matrix + 0.03
        assert matrix > votes


def test_probabilities_are_differences_of_normal_tails():
    cuts, grid = np.array([-1.0, 0.3, 2.0]), np.linspace(-4, 4, 9)
    bias, scale = np.array([0.5, -1.0]), np.array([0.7, 6.0])
    probability = label_probabilities(offsets(cuts, grid, bias, scale))
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    for who, (low, high) in itertools.product(range(2), enumerate(ends[1:])):
        a, b = ((end - grid - bias[who]) * scale[who] for end in (ends[low], high))
        turned = a > 0
        plain = norm.cdf(np.where(turned, -a, b)) - norm.cdf(np.where(turned, -b, a))
        np.testing.assert_allclose(probability[who, low], np.maximum(plain, 1e-300), rtol=1e-9)
    np.testing.assert_allclose(probability.sum(axis=1), 1)


def test_the_steps_of_latent_climb_to_where_the_slope_is_zero():
    rng = np.random.default_rng(3)
    grid, given = np.linspace(-2, 2, 7), rng.gamma(1.0, 3.0, size=(4, 3, 7))
    middle, gap, bias, log_precision = np.zeros(1), np.zeros(1), np.zeros(4), np.zeros(4)

    def value(x):
        scale = np.exp(x[6:] / 2)
        probability = label_probabilities(offsets(cuts_of(x[:1], x[1:2]), grid, x[2:6], scale))
        return -(given * np.log(probability)).sum() + x @ x / 2

    for _ in range(200):
        bias, log_precision = update_annotators(
            given, cuts_of(middle, gap), grid, bias, log_precision
        )
        middle, gap = update_cuts(given, middle, gap, grid, bias, np.exp(log_precision / 2))
    here = np.concatenate([middle, gap, bias, log_precision])
    flat = check_grad(value, lambda _: np.zeros(10), here, epsilon=1e-6)
    assert flat < 1e-3
    assert value(here) < min(value(here + rng.normal(0, 0.05, 10)) for _ in range(50))


def test_a_finer_grid_changes_little():
    annotations = from_line(n_items=200)[0]
    coarse, fine = (
        aggregate(annotations, "ordinal-latent"),
        aggregate(annotations, "ordinal-latent[nodes=81]"),
    )
    assert np.mean(coarse.label == fine.label) > 0.95
    np.testing.assert_allclose(coarse.params.bias, fine.params.bias, atol=0.05)


# All of them


@pytest.mark.parametrize("name", ORDINAL)
def test_gold_teaches(name):
    made = drawn(bias=1, seed=4)
    gold = dict(itertools.islice(made.truths.items(), 0, 200))
    plain, taught = aggregate(made.annotations, name), aggregate(made.annotations, name, gold=gold)
    rest = slice(200, None)
    before, after = (np.mean(one.label[rest] == made.truth[rest]) for one in (plain, taught))
    assert after > before


@pytest.mark.parametrize(
    ("method", "gap"),
    [(OrdinalDistance(), 0.01), (OrdinalSplit(), 0.07), (OrdinalLatent(), 0.09)],
    ids=ORDINAL,
)
def test_confusion_comes_close_where_annotators_have_no_bias(method, gap):
    """The data are the distance model's own; the others see them through theirs."""
    made = drawn(bias=0, n_classes=4, n_items=1500, n_annotators=12, feedback=6, seed=6)
    confusion = method.confusion(method.fit(made.annotations).params)
    np.testing.assert_allclose(confusion.sum(axis=2), 1)
    assert np.abs(confusion - made.crowd.confusion).mean() < gap


@pytest.mark.parametrize("name", ORDINAL)
def test_the_order_of_classes_is_the_one_declared(name):
    """Between a low and a high label the truth may lie in the middle."""
    rows = [
        (f"{i}", who, label)
        for i in range(30)
        for who, label in zip(
            "xyz",
            ("low", "mid", "high") if i % 3 == 0 else [("low", "mid", "high")[i % 3]] * 3,
            strict=True,
        )
    ]
    there = aggregate(relation(rows, classes=["low", "mid", "high"]), name)
    back = aggregate(relation(rows, classes=["mid", "low", "high"]), name)
    assert there.posterior[0, 1] > back.posterior[0, 0] + 0.01
