"""Simulated annotators who attend to different positions: labels follow from attention."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from dissensus.errors import MethodError, OptionError

from ..support import benchmark

attentive_crowds = benchmark("attentive_crowds")
simulate_tendency = attentive_crowds.simulate_tendency
KINDS = [("patches", 3), ("images", 3), ("video", 3), ("text", 2)]


def kappas(labels, n_classes):
    """Return Cohen's kappa of every two annotators, written out once more."""
    n = labels.shape[1]
    out = np.eye(n)
    for k in range(n):
        for m in range(k):
            both = np.zeros((n_classes, n_classes))
            np.add.at(both, (labels[:, k], labels[:, m]), 1 / len(labels))
            probability = (both.sum(axis=0) * both.sum(axis=1)).sum()
            out[k, m] = out[m, k] = (np.trace(both) - probability) / (1 - probability)
    return out


@pytest.fixture(scope="module")
def drawn():
    return [simulate_tendency(seed=seed) for seed in range(5)]


def test_groups_agree_within_and_not_across(drawn):
    within, across = [], []
    for one in drawn:
        found = kappas(one.labels, 3)
        same = one.group[:, None] == one.group
        within.append(found[same & ~np.eye(6, dtype=bool)].mean())
        across.append(np.abs(found[~same]).max())
    assert 0.89 < np.mean(within) < 0.92
    assert max(across) < 0.07


def test_dic_of_consensus_and_of_independence_is_as_computed_elsewhere(drawn):
    found = np.array(
        [
            [np.linalg.norm(m - 1), np.linalg.norm(m - np.eye(6))]
            for m in (kappas(one.labels, 3) for one in drawn)
        ]
    )
    assert_allclose(found.mean(axis=0), [4.86, 2.23], atol=0.06)


def test_the_majority_is_right_about_single_annotators_two_times_in_three(drawn):
    shares = []
    for one in drawn:
        votes = np.stack([(one.labels == each).sum(axis=1) for each in range(3)], axis=1)
        lot = np.random.default_rng(0).random(votes.shape)
        shares.append((one.labels == (votes + lot / 2).argmax(axis=1)[:, None]).mean())
    assert np.mean(shares) == pytest.approx(0.629, abs=0.01)


@pytest.mark.parametrize(("kind", "groups"), KINDS)
def test_labels_are_as_frequent_as_their_probabilities(kind, groups):
    one = simulate_tendency(kind=kind, groups=groups, n_items=600, noise=2.0, theta=0.7)
    assert_allclose(one.probabilities.sum(axis=2), 1)
    assert_allclose(one.attention.sum(axis=2), 1)
    probability = np.take_along_axis(one.probabilities, one.labels[:, :, None], axis=2)[:, :, 0]
    expected = np.square(one.probabilities).sum(axis=2)
    assert probability.mean() == pytest.approx(
        expected.mean(), abs=4 * probability.std() / probability.size**0.5
    )
    assert (one.best == one.labels).mean() < 0.95


@pytest.mark.parametrize("profile", ["groups", "soft", "content", "mix", "same"])
def test_profiles_are_where_they_should_be(profile):
    one = simulate_tendency(profile=profile, n_items=50)
    assert_allclose(one.attention.sum(axis=2), 1)
    assert one.pointing(one.attention) == 1
    assert one.cosine(one.attention) == pytest.approx(1)
    moves = np.ptp(one.attention, axis=0).max() > 1e-9  # from item to item
    assert moves == (profile in ("content", "mix"))
    alike = np.abs(one.attention[:, 0] - one.attention[:, 1]).max() < 1e-12
    assert alike == (profile == "same")
    if profile == "groups":
        assert (one.attention[0, 0] > 0).tolist() == [True] * 3 + [False] * 6


def test_taste_parts_annotators_who_look_at_the_same_place():
    plain, apart = (simulate_tendency(taste=taste) for taste in (0.0, 1.0))
    agree = [(one.labels[:, 0] == one.labels[:, 3]).mean() for one in (plain, apart)]
    assert agree[0] > 0.9 > 0.75 > agree[1]


def test_bias_makes_some_classes_more_frequent():
    one = simulate_tendency(bias=20.0)
    assert np.bincount(one.labels[:, 0]).max() > 0.8 * len(one.labels)


def test_shares_of_items_are_kept_annotator_by_annotator():
    one = simulate_tendency(kept=(1.0, 1.0, 0.2, 0.2, 0.2, 0.0))
    found = one.annotations.labels_per_annotator / 1500
    assert_allclose(found, [1, 1, 0.2, 0.2, 0.2, 0], atol=0.04)
    codes = one.annotations.item, one.annotations.annotator
    assert np.array_equal(one.labels[codes], one.annotations.label)


def test_rendered_positions_hold_their_own_content_only():
    one, two = (simulate_tendency(kind="images", n_items=300, blur=0.0, seed=s) for s in (0, 0))
    assert np.array_equal(one.inputs, two.inputs)
    pixels = one.inputs.reshape(300, 3, 3, 8, 3, 8).transpose(0, 2, 4, 1, 3, 5).reshape(300, 9, -1)
    assert np.linalg.matrix_rank(np.log(pixels / (1 - pixels)).reshape(-1, 192), tol=1e-2) == 6
    assert pixels.min() > 0
    assert pixels.max() < 1


def test_texts_hold_the_words_that_annotators_read():
    one = simulate_tendency(kind="text", groups=2, n_items=30, theta=1.0)
    for item, text in enumerate(one.inputs):
        words = text.split()
        for annotator in range(2):
            read = [words[at] for at in np.flatnonzero(one.attention[item, annotator])]
            assert len(read) == 3
        assert one.labels[item, 0] != one.labels[item, 1]
        assert not one.attention[item, :, len(words) :].any()


def test_probabilities_are_those_of_what_annotators_see():
    one = simulate_tendency(kind="patches", n_items=20, noise=0.5, blur=0.0)
    score = np.log(one.probabilities) * 0.5
    assert_allclose(softmax(score / 0.5, axis=2), one.probabilities)
    assert_allclose(one.probabilities[:, 0], one.probabilities[:, 3])  # the same group, no taste
    assert np.abs(one.probabilities[:, 0] - one.probabilities[:, 1]).max() > 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "images", "positions": 8}, "positions = 8, but an image has a square number"),
        ({"kind": "text", "profile": "soft"}, "profile = soft, but a text takes groups or same"),
        ({"kind": "text", "groups": 4}, "groups = 4, but there is room for 3"),
        ({"kept": (0.5,)}, "kept has 1 shares for 6 annotators"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(OptionError, match=message):
        attentive_crowds.Tendencies(**settings)


def test_settings_keep_their_limits():
    with pytest.raises(MethodError, match="noise = 0, but it must be above 0"):
        attentive_crowds.Tendencies(noise=0)
