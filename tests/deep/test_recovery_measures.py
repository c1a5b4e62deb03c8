"""Measures of recovered distributions: identities, noise, floors and ceilings. No torch here."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dissensus import Annotations, DataError, OptionError
from dissensus.deep.recovery import base as measures
from dissensus.deep.recovery.base import (
    class_distances,
    distances_from_table,
    soft_labels,
    vote_slope,
)
from dissensus.deep.recovery.evaluation import (
    ceiling_scores,
    evaluate_named,
    evaluate_shares,
    soft_scores,
)
from dissensus.result import Predictions

DISTANCES = [
    measures.manhattan,
    measures.jensen_shannon,
    measures.squared,
    measures.wasserstein,
    measures.kl,
]


@st.composite
def distributions(draw, n=2):
    size = draw(st.integers(2, 5))
    raw = draw(arrays(float, (n, 4, size), elements=st.floats(0, 1)))
    raw = raw + 1e-3
    return raw / raw.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("distance", DISTANCES)
@given(given=distributions())
def test_a_distribution_is_at_no_distance_from_itself(distance, given):
    np.testing.assert_allclose(distance(given[0], given[0]), 0, atol=1e-12)


@pytest.mark.parametrize("distance", DISTANCES[:4])
@given(given=distributions())
def test_distances_are_the_same_both_ways(distance, given):
    np.testing.assert_allclose(distance(*given), distance(*given[::-1]), atol=1e-12)


@pytest.mark.parametrize("distance", [*DISTANCES[:3], measures.kl])
@given(given=distributions(), seed=st.integers(0, 99))
def test_the_order_of_classes_does_not_matter(distance, given, seed):
    order = np.random.default_rng(seed).permutation(given.shape[-1])
    np.testing.assert_allclose(distance(*given), distance(*given[..., order]), atol=1e-12)


@given(given=distributions())
def test_distances_keep_their_bounds(given):
    p, q = given
    assert (measures.manhattan(p, q) <= 2 + 1e-12).all()
    assert (measures.jensen_shannon(p, q) <= 1 + 1e-12).all()
    assert (measures.kl(q, p) >= -1e-12).all()
    np.testing.assert_allclose(
        measures.cross_entropy(q, p) - measures.kl(q, p), measures.entropy(q) * np.log(2), atol=1e-9
    )


def test_what_has_nothing_in_common_is_one_bit_apart():
    p, q = np.array([[1.0, 0, 0]]), np.array([[0, 0.5, 0.5]])
    assert measures.jensen_shannon(p, q) == pytest.approx(1)
    assert measures.manhattan(p, q) == pytest.approx(2)
    assert np.isfinite(measures.kl(q, p)).all()


def test_wasserstein_counts_steps():
    p, q = np.eye(4)[[0]], np.eye(4)[[3]]
    assert measures.wasserstein(p, q) == pytest.approx(3)


def test_five_votes_put_the_law_itself_375_thousandths_away():
    truth, total = np.array([[0.5, 0.5]]), 0.0
    for votes in product([0, 1], repeat=5):
        share = np.array([[1 - sum(votes) / 5, sum(votes) / 5]])
        total += float(measures.manhattan(truth, share)[0]) / 32
    assert total == pytest.approx(0.375)


def test_the_unbiased_squared_distance_is_unbiased():
    truth, p, expected = np.array([0.2, 0.8]), np.array([[0.6, 0.4]]), 0.0
    for votes in product([0, 1], repeat=4):
        probability = np.prod(truth[list(votes)])
        count = np.bincount(votes, minlength=2)[None]
        expected += probability * measures.unbiased_squared(p, count)[0]
    assert expected == pytest.approx(float(((p - truth) ** 2).sum()))
    assert np.isnan(measures.unbiased_squared(p, np.array([[1, 0]]))).all()


def test_one_label_for_all_errs_by_those_who_differ():
    q = np.array([[0.75, 0.25, 0.0]])
    assert measures.perspectivist_error(np.eye(3)[[0]], q) == pytest.approx(0.25)
    steps = class_distances("linear", 3)
    assert measures.perspectivist_error(np.eye(3)[[2]], q, distance=steps) == pytest.approx(0.875)
    np.testing.assert_allclose(measures.most_probable(np.array([[0.4, 0.4, 0.2]])), [[0.5, 0.5, 0]])


def test_reliability_is_perfect_for_the_shares_themselves():
    q = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    found = measures.reliability(q, q)
    assert found.error == pytest.approx(0, abs=1e-12)
    assert found.size.sum() == q.size
    np.testing.assert_array_equal(
        measures.bins_of(np.array([0.0, 0.1, 0.11, 1.0]), 10), [0, 0, 1, 9]
    )


def test_scores_of_the_shares_are_perfect_and_stand_beside_floor_and_ceiling():
    random = np.random.default_rng(1)
    votes = random.multinomial(6, random.dirichlet([1, 1, 1], 120))
    found = evaluate_shares(measures.shares_of(votes), votes, resamples=50)
    for name in ("manhattan", "jensen_shannon", "entropy_gap", "calibration_error"):
        assert found.scores[name].value == pytest.approx(0, abs=1e-9)
        assert found.ceiling[name] > 0
        assert found.scores[name].low <= found.scores[name].value + 1e-12
    assert found.scores["accuracy"].value > 0.7  # ties count a half or a third
    assert found.scores["entropy_pearson"].value == pytest.approx(1)
    assert np.isnan(found.floor["entropy_pearson"])
    assert found.floor["manhattan"] > found.ceiling["manhattan"]
    assert found.as_dict()["floor"]["entropy_pearson"] is None


def test_scores_are_those_of_scikit_learn_and_scipy_where_these_have_them():
    metrics = pytest.importorskip("sklearn.metrics")
    from scipy.stats import pearsonr, spearmanr

    random = np.random.default_rng(2)
    votes = random.multinomial(7, random.dirichlet([1, 1, 1], 200))
    votes = votes[np.sort(votes, axis=1)[:, -1] > np.sort(votes, axis=1)[:, -2]]  # no ties
    p = random.dirichlet([1, 1, 1], len(votes))
    summary = soft_scores(p, votes)
    most, chosen = votes.argmax(axis=1), p.argmax(axis=1)
    one, other = measures.entropy(p), measures.entropy(measures.shares_of(votes))
    assert summary["accuracy"] == pytest.approx(metrics.accuracy_score(most, chosen))
    assert summary["macro_f1"] == pytest.approx(metrics.f1_score(most, chosen, average="macro"))
    assert summary["entropy_pearson"] == pytest.approx(pearsonr(one, other).statistic)
    assert summary["entropy_spearman"] == pytest.approx(spearmanr(one, other).statistic)


def test_items_with_one_vote_do_not_spoil_the_unbiased_distance():
    p, votes = np.full((3, 2), 0.5), np.array([[1, 0], [2, 2], [4, 0]])
    summary = soft_scores(p, votes)["unbiased_squared"]
    assert summary == pytest.approx(measures.unbiased_squared(p, votes)[1:].mean())
    assert np.isnan(soft_scores(p[:1], votes[:1])["unbiased_squared"])


def test_people_asked_again_are_at_no_unbiased_distance():
    random = np.random.default_rng(3)
    votes = random.multinomial(9, random.dirichlet([2, 2], 2000))
    summary = ceiling_scores(votes.astype(float), random=random)
    assert summary["unbiased_squared"] == pytest.approx(0, abs=0.01)


def test_predictions_and_annotations_meet_by_name():
    annotations = Annotations.from_columns(
        ["b", "b", "a", "a", "c"], ["x", "y", "x", "y", "x"], ["no", "no", "yes", "no", "maybe"]
    )
    given = Predictions(
        np.array(["a", "b", "z"]), np.array(["yes", "no"]), np.array([0, 1, 1]),
        np.array([[0.5, 0.5], [0, 1], [1, 0]]),
    )  # fmt: skip
    found = evaluate_named(given, annotations, resamples=0)
    assert found.scores["manhattan"].value == pytest.approx(0)
    assert (found.n_items, found.n_without_votes, found.n_without_prediction) == (2, 1, 1)


def test_what_is_no_distribution_is_refused():
    with pytest.raises(DataError, match="row 1 of the distributions"):
        soft_scores([[1, 0], [0.5, 0.2]], [[1, 0], [1, 0]])
    with pytest.raises(DataError, match="do not match"):
        soft_scores([[1, 0]], [[1, 0], [1, 0]])
    with pytest.raises(DataError, match="has no votes"):
        soft_scores([[1, 0]], [[0, 0]])


def test_a_majority_is_steeper_than_a_person():
    def majority(q, a):  # probability that a majority of a people says yes
        from scipy.stats import binom

        return binom.sf(a // 2, a, q) + (a % 2 == 0) * binom.pmf(a // 2, a, q) / 2

    for a in (1, 3, 4, 5, 8, 15):
        slope = (majority(0.5 + 1e-6, a) - majority(0.5 - 1e-6, a)) / 2e-6
        assert vote_slope(a) == pytest.approx(slope, rel=1e-5)
    assert vote_slope([3, 5]) == pytest.approx((1.5 + 1.875) / 2)
    with pytest.raises(OptionError, match="at least one vote"):
        vote_slope(0)


# Distances between classes.


def test_adjacent_classes_are_closer_on_a_line_and_on_a_circle():
    line, circle = class_distances("linear", 8), class_distances("circle", 8)
    assert line[0, 7] == 1
    assert circle[0, 7] == circle[0, 1] == 0.25
    assert circle[0, 4] == circle.max() == 1
    for distance in (line, circle):
        soft = soft_labels(distance)
        np.testing.assert_allclose(soft.sum(axis=1), 1)
        assert (soft.argmax(axis=1) == np.arange(8)).all()
        assert soft[0, 1] > soft[0, 2]
    assert class_distances("circle", 1).tolist() == [[0.0]]


def test_a_table_of_distances_is_matched_by_name_and_checked():
    rows = [["class", "joy", "anger", "fear"], ["anger", "4", "0", "1"]]
    rows += [["joy", "0", "4", "4"], ["fear", "4", "1", "0"]]
    found = distances_from_table(rows, ["fear", "anger", "joy"])
    np.testing.assert_allclose(found, [[0, 0.25, 1], [0.25, 0, 1], [1, 1, 0]])
    with pytest.raises(OptionError, match="'surprise'"):
        distances_from_table(rows, ["joy", "surprise"])
    with pytest.raises(OptionError, match="symmetric"):
        class_distances([[0, 1], [0.5, 0]], 2)
    with pytest.raises(OptionError, match="linear, circle"):
        class_distances("square", 3)


def test_the_energy_distance_is_least_for_the_shares_themselves():
    random = np.random.default_rng(0)
    q, p = random.dirichlet(np.ones(5), (2, 300))
    for name in ("linear", "circle"):
        distance = class_distances(name, 5)
        np.testing.assert_allclose(measures.energy_distance(q, q, distance), 0, atol=1e-12)
        assert (measures.energy_distance(p, q, distance) > 0).all()
        one = measures.expected_distance(np.eye(5)[[0]], np.eye(5)[[2]], distance)
        assert one == distance[0, 2]
    # For ordered classes it is the squared distance of cumulative shares, per step.
    steps = ((np.cumsum(p - q, axis=1)[:, :-1]) ** 2).sum(axis=1) / 4
    np.testing.assert_allclose(measures.energy_distance(p, q, class_distances("linear", 5)), steps)


def test_scores_of_ordered_classes_count_distances():
    votes = np.array([[3.0, 1, 0], [0, 1, 3]])
    p = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    plain, ordered = soft_scores(p, votes), soft_scores(p, votes, ordered=True)
    assert "expected_distance" not in plain
    np.testing.assert_equal(ordered, soft_scores(p, votes, ordered=True, distance="linear"))
    assert ordered["expected_distance"] == pytest.approx((0.5 + 0.25) / 2)
    found = evaluate_shares(p, votes, distance="circle", resamples=10)
    assert found.floor["energy_distance"] > found.ceiling["energy_distance"]
