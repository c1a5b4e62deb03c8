import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import Annotations
from dissensus.agreement import in_words, item_agreement, krippendorff_alpha, percent_agreement

# Krippendorff (2011), four coders and twelve units; 0 where a coder is silent.
TEXTBOOK = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)

units = st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=8)


def relation(labels):
    rows = [
        (item, place, label) for item, unit in enumerate(labels) for place, label in enumerate(unit)
    ]
    item, annotator, label = np.array(rows, dtype=int).reshape(-1, 3).T
    return Annotations.from_codes(
        item, annotator, label, items=len(labels), annotators=5, classes=4
    )


def shares_by_hand(labels):
    return [
        np.mean([a == b for a, b in permutations(unit, 2)]) if len(unit) > 1 else math.nan
        for unit in labels
    ]


def alpha_by_hand(labels):
    """Alpha from the matrix of coincidences, pair by pair."""
    pairs = np.zeros((4, 4))
    for unit in labels:
        for a, b in permutations(unit, 2):
            pairs[a, b] += 1 / (len(unit) - 1)
    count = pairs.sum(axis=1)
    total = count.sum()
    observed = total - np.trace(pairs)
    expected = (total**2 - (count**2).sum()) / max(total - 1, 1)
    return 1 - observed / expected if expected > 1e-9 else math.nan


def test_textbook_values():
    said = Annotations.from_matrix(TEXTBOOK.T, missing=0)
    assert krippendorff_alpha(said) == pytest.approx(0.7434, abs=5e-5)
    assert percent_agreement(said) == pytest.approx(0.81818, abs=5e-6)


@given(units)
def test_every_share_is_that_of_the_pairs(labels):
    np.testing.assert_allclose(item_agreement(relation(labels)), shares_by_hand(labels))


@given(units)
def test_percent_is_the_mean_over_items_with_a_pair(labels):
    shares = [share for share in shares_by_hand(labels) if not math.isnan(share)]
    expected = sum(shares) / len(shares) if shares else math.nan
    assert percent_agreement(relation(labels)) == pytest.approx(expected, nan_ok=True)


@given(units)
def test_alpha_is_that_of_the_coincidences(labels):
    expected = alpha_by_hand(labels)
    assert krippendorff_alpha(relation(labels)) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8).filter(lambda x: len(set(x)) > 1))
def test_alpha_of_those_who_always_agree_is_one(truth):
    assert krippendorff_alpha(relation([[label] * 3 for label in truth])) == 1


def test_alpha_of_those_who_never_agree_is_below_zero():
    assert krippendorff_alpha(relation([[0, 1], [1, 0]])) == pytest.approx(-0.5)


def test_without_variation_alpha_is_undefined_and_percent_is_not():
    said = relation([[2, 2], [2, 2, 2]])
    assert math.isnan(krippendorff_alpha(said))
    assert percent_agreement(said) == 1


@pytest.mark.parametrize("labels", [[[]], [[1], [2], []]])
def test_without_a_pair_all_is_undefined(labels):
    said = relation(labels)
    assert math.isnan(krippendorff_alpha(said))
    assert math.isnan(percent_agreement(said))
    assert np.isnan(item_agreement(said)).all()


def test_the_annotations_stay_as_they_are():
    said = relation([[0, 1, 0], [2, 2]])
    before = said.index.copy(), said.label.copy()
    item_agreement(said)
    np.testing.assert_array_equal(said.index, before[0])
    np.testing.assert_array_equal(said.label, before[1])


def test_words_change_at_the_documented_limits():
    limits = [-0.01, 0, 0.19, 0.2, 0.39, 0.4, 0.59, 0.6, 0.79, 0.8, 1.0]
    words = ["poor", *["slight"] * 2, *["fair"] * 2, *["moderate"] * 2, *["substantial"] * 2]
    assert [in_words(alpha) for alpha in limits] == [*words, *["almost perfect"] * 2]
    assert in_words(math.nan) == "undefined"
